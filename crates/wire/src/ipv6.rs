//! ipv6.
