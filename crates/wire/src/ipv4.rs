//! ipv4.
