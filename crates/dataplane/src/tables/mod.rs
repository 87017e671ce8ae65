//! The tables that the worker owns: it alone reads and writes them, so there is neither a lock nor an atomic.
pub(crate) mod adjacency;
pub(crate) mod fib;
pub(crate) mod sessions;
