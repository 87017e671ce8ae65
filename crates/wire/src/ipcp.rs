//! IPCP's options (RFC 1332) with the DNS servers of RFC 1877.
//!
//! ```
//! use wire::ipcp::Opt;
//!
//! let options = [Opt::Address([0, 0, 0, 0].into()), Opt::PrimaryDns([0, 0, 0, 0].into())];
//! let mut bytes = Vec::new();
//! options.iter().for_each(|o| o.emit(&mut bytes));
//! assert_eq!(Opt::parse_all(&bytes).unwrap(), options);
//! ```
use crate::Result;
use crate::ppp::RawOption;
use core::net::Ipv4Addr;

const ADDRESS: u8 = 3;
const PRIMARY_DNS: u8 = 129;
const PRIMARY_NBNS: u8 = 130;
const SECONDARY_DNS: u8 = 131;
const SECONDARY_NBNS: u8 = 132;

/// A configuration option; others, and known ones of the wrong length, are `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt<'a> {
    /// IP-Address: the sender's.
    Address(Ipv4Addr),
    /// Primary DNS server.
    PrimaryDns(Ipv4Addr),
    /// Secondary DNS server.
    SecondaryDns(Ipv4Addr),
    /// Primary NBNS server.
    PrimaryNbns(Ipv4Addr),
    /// Secondary NBNS server.
    SecondaryNbns(Ipv4Addr),
    /// Any other.
    Unknown(RawOption<'a>),
}

impl<'a> From<RawOption<'a>> for Opt<'a> {
    fn from(raw: RawOption<'a>) -> Self {
        let Ok(octets) = <[u8; 4]>::try_from(raw.data) else {
            return Opt::Unknown(raw);
        };
        let address = Ipv4Addr::from(octets);
        match raw.kind {
            ADDRESS => Opt::Address(address),
            PRIMARY_DNS => Opt::PrimaryDns(address),
            SECONDARY_DNS => Opt::SecondaryDns(address),
            PRIMARY_NBNS => Opt::PrimaryNbns(address),
            SECONDARY_NBNS => Opt::SecondaryNbns(address),
            _ => Opt::Unknown(raw),
        }
    }
}

impl<'a> Opt<'a> {
    /// Reads the data of a configure packet.
    pub fn parse_all(bytes: &'a [u8]) -> Result<Vec<Self>> {
        RawOption::iter(bytes)
            .map(|raw| raw.map(Opt::from))
            .collect()
    }

    /// Appends the option to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (kind, address) = match self {
            Opt::Address(a) => (ADDRESS, a),
            Opt::PrimaryDns(a) => (PRIMARY_DNS, a),
            Opt::SecondaryDns(a) => (SECONDARY_DNS, a),
            Opt::PrimaryNbns(a) => (PRIMARY_NBNS, a),
            Opt::SecondaryNbns(a) => (SECONDARY_NBNS, a),
            Opt::Unknown(raw) => return raw.emit(out),
        };
        RawOption {
            kind,
            data: &address.octets(),
        }
        .emit(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(a: [u8; 4], kind in 4u8..129, data in prop::collection::vec(any::<u8>(), 0..20)) {
            let a = a.into();
            let options = [
                Opt::Address(a),
                Opt::PrimaryDns(a),
                Opt::SecondaryDns(a),
                Opt::PrimaryNbns(a),
                Opt::SecondaryNbns(a),
                Opt::Unknown(RawOption { kind, data: &data }),
                Opt::Unknown(RawOption { kind: ADDRESS, data: &[1, 2, 3] }),
            ];
            let mut bytes = Vec::new();
            options.iter().for_each(|o| o.emit(&mut bytes));
            prop_assert_eq!(Opt::parse_all(&bytes), Ok(options.to_vec()));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Opt::parse_all(&bytes);
        }
    }
}
