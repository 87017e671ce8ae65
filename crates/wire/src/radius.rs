//! radius.
