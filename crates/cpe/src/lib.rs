//! Emulated homes.
