//! Packet path.
