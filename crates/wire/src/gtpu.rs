//! GTP-U (3GPP TS 29.281), version 1: the tunnels of the control packet redirection interface.
//!
//! ```
//! use wire::gtpu::{self, Packet};
//!
//! let mut bytes = Vec::new();
//! gtpu::emit_gpdu(0x10, b"a whole Ethernet frame", &mut bytes).unwrap();
//! assert_eq!(Packet::parse(&bytes).unwrap(), Packet::Gpdu { teid: 0x10, payload: b"a whole Ethernet frame" });
//! ```
use crate::{Malformed, Result};
use core::net::IpAddr;

/// The UDP port of GTP-U.
pub const PORT: u16 = 2152;

const ECHO_REQUEST: u8 = 1;
const ECHO_RESPONSE: u8 = 2;
const ERROR_INDICATION: u8 = 26;
const END_MARKER: u8 = 254;
const G_PDU: u8 = 255;

/// Version 1, GTP (not GTP').
const VERSION_1: u8 = 0x30;
const HAS_EXTENSION: u8 = 0x04;
const HAS_SEQUENCE: u8 = 0x02;
const HAS_N_PDU: u8 = 0x01;

/// Length of the header without its optional part, in octets.
const HEADER_LEN: usize = 8;

const SHORT: Malformed = Malformed("GTP-U packet is cut short");

/// A GTP-U packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A packet of a tunnel.
    Gpdu {
        /// The tunnel at the receiver.
        teid: u32,
        /// What is carried.
        payload: &'a [u8],
    },
    /// Are you there?
    EchoRequest {
        /// To be repeated in the answer.
        sequence: u16,
    },
    /// Yes.
    EchoResponse {
        /// Of the request.
        sequence: u16,
    },
    /// The peer does not know a tunnel.
    ErrorIndication {
        /// The tunnel, as the peer was sent it.
        teid: u32,
        /// The peer.
        peer: IpAddr,
    },
    /// The last packet of a tunnel that moves elsewhere.
    EndMarker {
        /// The tunnel at the receiver.
        teid: u32,
    },
    /// A type of message that is not known, to be ignored.
    Unknown(u8),
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(length).ok_or(SHORT)?;
    *bytes = tail;
    Ok(head)
}

fn take_u16(bytes: &mut &[u8]) -> Result<u16> {
    take(bytes, 2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
}

/// Skips extension headers (§5.2.1). Those that a receiver must understand are refused: none is known here.
fn skip_extensions(body: &mut &[u8], mut kind: u8) -> Result<()> {
    while kind != 0 {
        if kind & 0x80 != 0 {
            return Err(Malformed("GTP-U extension header that must be understood"));
        }
        let units = usize::from(take(body, 1)?[0]);
        if units == 0 {
            return Err(Malformed("GTP-U extension header of length zero"));
        }
        let rest = take(body, units * 4 - 1)?;
        kind = rest[rest.len() - 1];
    }
    Ok(())
}

impl<'a> Packet<'a> {
    /// Parses the payload of a UDP datagram. Sequence numbers of tunnelled packets are accepted and not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some((&[flags, kind, high, low, t0, t1, t2, t3], rest)) =
            bytes.split_first_chunk::<HEADER_LEN>()
        else {
            return Err(SHORT);
        };
        if flags & 0xf0 != VERSION_1 {
            return Err(Malformed("not GTP-U version 1"));
        }
        let teid = u32::from_be_bytes([t0, t1, t2, t3]);
        let length = usize::from(u16::from_be_bytes([high, low]));
        let mut body = rest.get(..length).ok_or(SHORT)?;
        let mut sequence = 0;
        if flags & (HAS_EXTENSION | HAS_SEQUENCE | HAS_N_PDU) != 0 {
            sequence = take_u16(&mut body)?;
            let next = take(&mut body, 2)?[1];
            if flags & HAS_EXTENSION != 0 {
                skip_extensions(&mut body, next)?;
            }
        }
        match kind {
            G_PDU => Ok(Packet::Gpdu {
                teid,
                payload: body,
            }),
            ECHO_REQUEST => Ok(Packet::EchoRequest { sequence }),
            ECHO_RESPONSE => Ok(Packet::EchoResponse { sequence }),
            ERROR_INDICATION => parse_error_indication(body),
            END_MARKER => Ok(Packet::EndMarker { teid }),
            kind => Ok(Packet::Unknown(kind)),
        }
    }

    /// Appends the packet. One whose length does not fit its header cannot be sent; then nothing is appended.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<()> {
        match *self {
            Packet::Gpdu { teid, payload } => return emit_gpdu(teid, payload, out),
            // "The Sequence Number field shall be present" in echoes and error indications (§5.1).
            Packet::EchoRequest { sequence } => {
                emit_with_sequence(ECHO_REQUEST, sequence, &[], out)
            }
            // Recovery (type 14) is sent as 0 and means nothing any more (§8.2).
            Packet::EchoResponse { sequence } => {
                emit_with_sequence(ECHO_RESPONSE, sequence, &[14, 0], out)
            }
            Packet::ErrorIndication { teid, peer } => {
                let [a, b, c, d] = teid.to_be_bytes();
                let mut elements = vec![16, a, b, c, d];
                match peer {
                    IpAddr::V4(address) => {
                        elements.extend_from_slice(&[133, 0, 4]);
                        elements.extend_from_slice(&address.octets());
                    }
                    IpAddr::V6(address) => {
                        elements.extend_from_slice(&[133, 0, 16]);
                        elements.extend_from_slice(&address.octets());
                    }
                }
                emit_with_sequence(ERROR_INDICATION, 0, &elements, out);
            }
            Packet::EndMarker { teid } => emit_header(VERSION_1, END_MARKER, 0, teid, out),
            Packet::Unknown(kind) => emit_header(VERSION_1, kind, 0, 0, out),
        }
        Ok(())
    }
}

fn emit_header(flags: u8, kind: u8, length: u16, teid: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[flags, kind]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&teid.to_be_bytes());
}

fn emit_with_sequence(kind: u8, sequence: u16, elements: &[u8], out: &mut Vec<u8>) {
    emit_header(
        VERSION_1 | HAS_SEQUENCE,
        kind,
        4 + elements.len() as u16,
        0,
        out,
    );
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(elements);
}

/// The first packet of a datagram, and the rest of the datagram. Several in one are our own: see [`SluiceFeatures::FRAMES`].
///
/// [`SluiceFeatures::FRAMES`]: crate::pfcp::SluiceFeatures::FRAMES
pub fn split(datagram: &[u8]) -> (&[u8], &[u8]) {
    match *datagram {
        [flags, _, high, low, ..] if flags & 0xf0 == VERSION_1 => {
            let length = HEADER_LEN + usize::from(u16::from_be_bytes([high, low]));
            datagram.split_at(length.min(datagram.len()))
        }
        _ => (datagram, &[]),
    }
}

/// Appends a packet of a tunnel, without a sequence number.
pub fn emit_gpdu(teid: u32, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = u16::try_from(payload.len())
        .map_err(|_| Malformed("GTP-U payload of more than 65,535 octets"))?;
    emit_header(VERSION_1, G_PDU, length, teid, out);
    out.extend_from_slice(payload);
    Ok(())
}

/// TEID Data I (type 16) and GTP-U Peer Address (type 133), in this order (§7.3.1). Others may follow.
fn parse_error_indication<'a>(mut body: &[u8]) -> Result<Packet<'a>> {
    const WRONG: Malformed = Malformed("GTP-U error indication without its elements");
    let &[16, a, b, c, d, 133, ..] = body else {
        return Err(WRONG);
    };
    take(&mut body, 6)?;
    let length = take_u16(&mut body)?;
    let address = take(&mut body, usize::from(length))?;
    let peer = match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
        (Ok(octets), _) => IpAddr::from(octets),
        (_, Ok(octets)) => IpAddr::from(octets),
        _ => return Err(WRONG),
    };
    Ok(Packet::ErrorIndication {
        teid: u32::from_be_bytes([a, b, c, d]),
        peer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(payload: &[u8]) -> impl Strategy<Value = Packet<'_>> {
        prop_oneof![
            any::<u32>().prop_map(move |teid| Packet::Gpdu { teid, payload }),
            any::<u16>().prop_map(|sequence| Packet::EchoRequest { sequence }),
            any::<u16>().prop_map(|sequence| Packet::EchoResponse { sequence }),
            any::<(u32, IpAddr)>().prop_map(|(teid, peer)| Packet::ErrorIndication { teid, peer }),
            any::<u32>().prop_map(|teid| Packet::EndMarker { teid }),
            (3u8..20).prop_map(Packet::Unknown),
        ]
    }

    proptest! {
        #[test]
        fn emit_then_parse_is_identity(packet in packet(b"frame")) {
            let mut bytes = Vec::new();
            packet.emit(&mut bytes).unwrap();
            prop_assert_eq!(Packet::parse(&bytes).unwrap(), packet);
            for end in 0..bytes.len() {
                prop_assert!(Packet::parse(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_octets_are_parsed_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64), valid in any::<bool>()) {
            if let (true, Some(first)) = (valid, bytes.first_mut()) {
                *first = VERSION_1 | *first & 7;
            }
            let _ = Packet::parse(&bytes);
        }
    }

    #[test]
    fn optional_fields_are_skipped() {
        let with_sequence = [0x32, 255, 0, 6, 0, 0, 0, 9, 0x12, 0x34, 0, 0, b'h', b'i'];
        assert_eq!(
            Packet::parse(&with_sequence),
            Ok(Packet::Gpdu {
                teid: 9,
                payload: b"hi"
            })
        );
        let with_extension = [
            0x34, 255, 0, 10, 0, 0, 0, 9, 0, 0, 0, 0x40, 1, 0xab, 0xcd, 0, b'h', b'i',
        ];
        assert_eq!(
            Packet::parse(&with_extension),
            Ok(Packet::Gpdu {
                teid: 9,
                payload: b"hi"
            })
        );
    }

    #[test]
    fn extensions_that_cannot_be_skipped_are_refused() {
        let mut bytes = [0x34, 255, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0, 0, 0];
        assert!(Packet::parse(&bytes).is_err());
        (bytes[11], bytes[12]) = (0x40, 0);
        assert!(Packet::parse(&bytes).is_err());
    }

    #[test]
    fn octets_behind_the_length_are_not_payload() {
        assert_eq!(
            Packet::parse(&[0x30, 255, 0, 1, 0, 0, 0, 9, b'h', b'i']),
            Ok(Packet::Gpdu {
                teid: 9,
                payload: b"h"
            })
        );
    }

    proptest! {
        #[test]
        fn packets_of_one_datagram_come_apart(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)) {
            let mut datagram = Vec::new();
            for payload in &payloads {
                emit_gpdu(7, payload, &mut datagram).unwrap();
            }
            let mut rest = &datagram[..];
            for payload in &payloads {
                let (first, behind) = split(rest);
                prop_assert_eq!(Packet::parse(first), Ok(Packet::Gpdu { teid: 7, payload }));
                rest = behind;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_octets_come_apart_in_the_end(mut rest in prop::collection::vec(any::<u8>(), 0..200), valid in any::<bool>()) {
            if let (true, Some(first)) = (valid, rest.first_mut()) {
                *first = VERSION_1;
            }
            let (first, behind) = split(&rest);
            prop_assert_eq!([first, behind].concat(), rest.clone());
            prop_assert!(behind.is_empty() || first.len() >= HEADER_LEN);
        }
    }

    #[test]
    fn what_is_too_long_is_not_sent() {
        let mut bytes = Vec::new();
        assert!(emit_gpdu(1, &vec![0; 65_536], &mut bytes).is_err());
        assert!(bytes.is_empty());
    }
}
