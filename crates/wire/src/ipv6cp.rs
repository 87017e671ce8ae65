//! IPV6CP's option (RFC 5072): the interface identifier.
//!
//! ```
//! use wire::ipv6cp::Opt;
//!
//! let mut bytes = Vec::new();
//! Opt::InterfaceId(0x0200_00ff_fe00_0001).emit(&mut bytes);
//! assert_eq!(Opt::parse_all(&bytes).unwrap(), [Opt::InterfaceId(0x0200_00ff_fe00_0001)]);
//! ```
use crate::Result;
use crate::ppp::RawOption;

const INTERFACE_ID: u8 = 1;

/// A configuration option; others, and an identifier of the wrong length, are `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt<'a> {
    /// Interface-Identifier: the low half of the sender's link-local address.
    InterfaceId(u64),
    /// Any other.
    Unknown(RawOption<'a>),
}

impl<'a> From<RawOption<'a>> for Opt<'a> {
    fn from(raw: RawOption<'a>) -> Self {
        match (raw.kind, raw.data.try_into()) {
            (INTERFACE_ID, Ok(octets)) => Opt::InterfaceId(u64::from_be_bytes(octets)),
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
        match self {
            Opt::InterfaceId(id) => RawOption {
                kind: INTERFACE_ID,
                data: &id.to_be_bytes(),
            }
            .emit(out),
            Opt::Unknown(raw) => raw.emit(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(id: u64, kind in 2u8.., data in prop::collection::vec(any::<u8>(), 0..20)) {
            let options = [
                Opt::InterfaceId(id),
                Opt::Unknown(RawOption { kind, data: &data }),
                Opt::Unknown(RawOption { kind: INTERFACE_ID, data: &[1; 7] }),
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
