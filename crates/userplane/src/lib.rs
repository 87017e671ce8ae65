//! User plane.
