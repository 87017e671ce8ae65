//! nsh.
