//! User plane.
fn main() {}
