//! DHCPv6 (RFC 8415).

/// DUID based on a UUID (RFC 6355).
pub const DUID_UUID: u16 = 4;
