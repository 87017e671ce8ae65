//! gtpu.
