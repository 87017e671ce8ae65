//! chap.
