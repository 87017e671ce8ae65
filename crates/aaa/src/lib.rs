//! RADIUS.
