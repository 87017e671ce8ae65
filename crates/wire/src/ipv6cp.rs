//! ipv6cp.
