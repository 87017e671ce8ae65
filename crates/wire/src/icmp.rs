//! icmp.
