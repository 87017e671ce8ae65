//! LCP's own options and packets (RFC 1661 §6, §5.7–5.9).
//!
//! ```
//! use wire::lcp::{Auth, Opt};
//!
//! let options = [Opt::Mru(1492), Opt::Auth(Auth::ChapMd5), Opt::Magic(0x1234_5678)];
//! let mut bytes = Vec::new();
//! options.iter().for_each(|o| o.emit(&mut bytes));
//! assert_eq!(Opt::parse_all(&bytes).unwrap(), options);
//! ```
use crate::mschapv2;
use crate::ppp::{self, RawOption};
use crate::{Malformed, Result};

/// Code: Protocol-Reject.
pub const PROTOCOL_REJECT: u8 = 8;
/// Code: Echo-Request.
pub const ECHO_REQUEST: u8 = 9;
/// Code: Echo-Reply.
pub const ECHO_REPLY: u8 = 10;
/// Code: Discard-Request.
pub const DISCARD_REQUEST: u8 = 11;
/// Code: Identification (RFC 1570).
pub const IDENTIFICATION: u8 = 12;
/// Code: Time-Remaining (RFC 1570).
pub const TIME_REMAINING: u8 = 13;

const MRU: u8 = 1;
const AUTH: u8 = 3;
const MAGIC: u8 = 5;

/// CHAP's algorithm MD5 (RFC 1994 §3).
const MD5: u8 = 5;

/// What the Authentication-Protocol option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth<'a> {
    /// PAP (RFC 1334).
    Pap,
    /// CHAP with MD5 (RFC 1994).
    ChapMd5,
    /// MS-CHAPv2 (RFC 2759).
    MsChapV2,
    /// Another protocol or algorithm, with what follows the protocol number.
    Other(u16, &'a [u8]),
}

/// A configuration option; others, and known ones of the wrong length, are `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt<'a> {
    /// Maximum-Receive-Unit.
    Mru(u16),
    /// Authentication-Protocol.
    Auth(Auth<'a>),
    /// Magic-Number.
    Magic(u32),
    /// Any other.
    Unknown(RawOption<'a>),
}

impl<'a> From<RawOption<'a>> for Opt<'a> {
    fn from(raw: RawOption<'a>) -> Self {
        match (raw.kind, raw.data) {
            (MRU, &[a, b]) => Opt::Mru(u16::from_be_bytes([a, b])),
            (MAGIC, &[a, b, c, d]) => Opt::Magic(u32::from_be_bytes([a, b, c, d])),
            (AUTH, [a, b, rest @ ..]) => Opt::Auth(match (u16::from_be_bytes([*a, *b]), rest) {
                (ppp::PAP, []) => Auth::Pap,
                (ppp::CHAP, [MD5]) => Auth::ChapMd5,
                (ppp::CHAP, [mschapv2::ALGORITHM]) => Auth::MsChapV2,
                (protocol, rest) => Auth::Other(protocol, rest),
            }),
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
        let raw = |kind, data: &[u8], out: &mut Vec<u8>| RawOption { kind, data }.emit(out);
        match self {
            Opt::Mru(mru) => raw(MRU, &mru.to_be_bytes(), out),
            Opt::Magic(magic) => raw(MAGIC, &magic.to_be_bytes(), out),
            Opt::Auth(Auth::Pap) => raw(AUTH, &ppp::PAP.to_be_bytes(), out),
            Opt::Auth(Auth::ChapMd5) => raw(AUTH, &[0xc2, 0x23, MD5], out),
            Opt::Auth(Auth::MsChapV2) => raw(AUTH, &[0xc2, 0x23, mschapv2::ALGORITHM], out),
            Opt::Auth(Auth::Other(protocol, rest)) => {
                raw(AUTH, &[&protocol.to_be_bytes(), *rest].concat(), out);
            }
            Opt::Unknown(option) => option.emit(out),
        }
    }
}

/// The data of Echo-Request, Echo-Reply and Discard-Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// The sender's magic number, 0 if it has none.
    pub magic: u32,
    /// What follows.
    pub data: &'a [u8],
}

impl<'a> Echo<'a> {
    /// Reads the data of the packet.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (&magic, data) = data
            .split_first_chunk()
            .ok_or(Malformed("LCP echo without magic number"))?;
        Ok(Echo {
            magic: u32::from_be_bytes(magic),
            data,
        })
    }

    /// Appends it to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.magic.to_be_bytes());
        out.extend_from_slice(self.data);
    }
}

/// The data of a Protocol-Reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolReject<'a> {
    /// The protocol that the sender does not know.
    pub protocol: u16,
    /// The packet that was refused, perhaps truncated.
    pub information: &'a [u8],
}

impl<'a> ProtocolReject<'a> {
    /// Reads the data of the packet.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (&protocol, information) = data
            .split_first_chunk()
            .ok_or(Malformed("Protocol-Reject without protocol number"))?;
        Ok(ProtocolReject {
            protocol: u16::from_be_bytes(protocol),
            information,
        })
    }

    /// Appends it to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.protocol.to_be_bytes());
        out.extend_from_slice(self.information);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(mru: u16, magic: u32, protocol: u16, kind in 6u8.., data in prop::collection::vec(any::<u8>(), 2..20)) {
            let options = [
                Opt::Mru(mru),
                Opt::Magic(magic),
                Opt::Auth(Auth::Pap),
                Opt::Auth(Auth::ChapMd5),
                Opt::Auth(Auth::MsChapV2),
                Opt::Auth(Auth::Other(protocol, &data)),
                Opt::Unknown(RawOption { kind, data: &data }),
                Opt::Unknown(RawOption { kind: MRU, data: &[1] }),
            ];
            let mut bytes = Vec::new();
            options.iter().for_each(|o| o.emit(&mut bytes));
            prop_assert_eq!(Opt::parse_all(&bytes), Ok(options.to_vec()));
        }

        #[test]
        fn echo_and_protocol_reject_round_trip(magic: u32, protocol: u16, data: Vec<u8>) {
            let mut bytes = Vec::new();
            Echo { magic, data: &data }.emit(&mut bytes);
            prop_assert_eq!(Echo::parse(&bytes), Ok(Echo { magic, data: &data }));
            let mut bytes = Vec::new();
            ProtocolReject { protocol, information: &data }.emit(&mut bytes);
            prop_assert_eq!(ProtocolReject::parse(&bytes), Ok(ProtocolReject { protocol, information: &data }));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Opt::parse_all(&bytes);
            let _ = Echo::parse(&bytes);
            let _ = ProtocolReject::parse(&bytes);
        }
    }

    #[test]
    fn truncated_packets_are_refused() {
        assert!((0..4).all(|n| Echo::parse(&[0; 4][..n]).is_err()));
        assert!((0..2).all(|n| ProtocolReject::parse(&[0; 2][..n]).is_err()));
    }

    #[test]
    fn chap_with_another_algorithm_is_not_md5() {
        // MS-CHAP (RFC 2433)
        let options = Opt::parse_all(&[3, 5, 0xc2, 0x23, 0x80]).unwrap();
        assert_eq!(options, [Opt::Auth(Auth::Other(ppp::CHAP, &[0x80]))]);
    }
}
