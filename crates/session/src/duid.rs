//! DUID of the gateway's DHCPv6 server.
use sha2::{Digest, Sha256};
use wire::dhcpv6::DUID_UUID;

/// Length of the DUID: type and UUID.
const LENGTH: usize = 18;

/// DUID of the gateway: a DUID-UUID (RFC 6355). Gateways have no address or clock that stays the same on another machine, so it
/// is computed from the gateway's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duid([u8; LENGTH]);

impl Duid {
    /// DUID of the gateway with this name. Its UUID is one of version 8 (RFC 9562 §5.8).
    pub fn of_gateway(name: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"sluice DHCPv6 server ");
        hash.update(name.as_bytes());
        let hash = hash.finalize();
        let mut duid = [0; LENGTH];
        duid[..2].copy_from_slice(&DUID_UUID.to_be_bytes());
        duid[2..].copy_from_slice(&hash[..LENGTH - 2]);
        duid[8] = duid[8] & 0x0f | 0x80; // version
        duid[10] = duid[10] & 0x3f | 0x80; // variant
        Duid(duid)
    }

    /// Its octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duid_follows_from_the_name_alone() {
        let duid = Duid::of_gateway("cp.example");
        assert_eq!(duid, Duid::of_gateway("cp.example"));
        assert_ne!(duid, Duid::of_gateway("cp2.example"));
        let octets = duid.as_bytes();
        assert_eq!((octets.len(), &octets[..2]), (18, &[0, 4][..]));
        assert_eq!((octets[8] >> 4, octets[10] >> 6), (8, 0b10));
    }
}
