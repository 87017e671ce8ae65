//! Control plane.
fn main() {}
