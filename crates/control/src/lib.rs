//! Control plane.
