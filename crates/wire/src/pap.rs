//! PAP (RFC 1334): a name and a password in the clear.
//!
//! ```
//! use wire::{pap::Packet, ppp::{self, Frame}};
//!
//! let request = Packet::Request { id: 1, peer_id: b"alice", password: b"s3cret" };
//! let mut bytes = Vec::new();
//! request.emit(&mut bytes);
//! let frame = Frame::parse(&bytes).unwrap();
//! assert_eq!(frame.protocol, ppp::PAP);
//! assert_eq!(Packet::parse(frame.payload), Ok(request));
//! assert!(!format!("{request:?}").contains("s3cret"));
//! ```
use crate::ppp::{self, Control};
use crate::{Malformed, Result};

const REQUEST: u8 = 1;
const ACK: u8 = 2;
const NAK: u8 = 3;

/// A PAP packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Authenticate-Request.
    Request {
        /// Identifier.
        id: u8,
        /// Who wants in.
        peer_id: &'a [u8],
        /// The password.
        password: &'a [u8],
    },
    /// Authenticate-Ack.
    Ack {
        /// Identifier of the request.
        id: u8,
        /// A text for people, at most 255 octets.
        message: &'a [u8],
    },
    /// Authenticate-Nak.
    Nak {
        /// Identifier of the request.
        id: u8,
        /// A text for people, at most 255 octets.
        message: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Reads the payload of a PAP frame.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Control { code, id, data } = Control::parse(bytes)?;
        match code {
            REQUEST => {
                let (peer_id, rest) = split_field(data)?;
                let (password, _) = split_field(rest)?;
                Ok(Packet::Request {
                    id,
                    peer_id,
                    password,
                })
            }
            // The text is optional for some implementations, with its length.
            ACK | NAK if data.is_empty() => Ok(Self::reply(code, id, &[])),
            ACK | NAK => Ok(Self::reply(code, id, split_field(data)?.0)),
            _ => Err(Malformed("PAP code is unknown")),
        }
    }

    fn reply(code: u8, id: u8, message: &'a [u8]) -> Self {
        if code == ACK {
            Packet::Ack { id, message }
        } else {
            Packet::Nak { id, message }
        }
    }

    /// Appends the whole PPP frame to `out`. No field may be longer than 255 octets; what is longer is cut.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let mut field = |bytes: &[u8]| {
            let bytes = &bytes[..bytes.len().min(255)];
            data.push(bytes.len() as u8);
            data.extend_from_slice(bytes);
        };
        let (code, id) = match *self {
            Packet::Request {
                id,
                peer_id,
                password,
            } => {
                field(peer_id);
                field(password);
                (REQUEST, id)
            }
            Packet::Ack { id, message } => {
                field(message);
                (ACK, id)
            }
            Packet::Nak { id, message } => {
                field(message);
                (NAK, id)
            }
        };
        Control {
            code,
            id,
            data: &data,
        }
        .emit(ppp::PAP, out);
    }
}

fn split_field(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first().ok_or(Malformed("PAP field missing"))?;
    rest.split_at_checked(length.into())
        .ok_or(Malformed("PAP field beyond the packet"))
}

/// Without the password.
impl core::fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Packet::Request { id, peer_id, .. } => write!(
                f,
                "Request {{ id: {id}, peer_id: {:?} }}",
                peer_id.escape_ascii()
            ),
            Packet::Ack { id, message } => write!(
                f,
                "Ack {{ id: {id}, message: {:?} }}",
                message.escape_ascii()
            ),
            Packet::Nak { id, message } => write!(
                f,
                "Nak {{ id: {id}, message: {:?} }}",
                message.escape_ascii()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..=255)
    }

    proptest! {
        #[test]
        fn emit_then_parse(id: u8, a in field(), b in field()) {
            for packet in [
                Packet::Request { id, peer_id: &a, password: &b },
                Packet::Ack { id, message: &a },
                Packet::Nak { id, message: &b },
            ] {
                let mut bytes = Vec::new();
                packet.emit(&mut bytes);
                prop_assert_eq!(Packet::parse(&bytes[2..]), Ok(packet));
                prop_assert!(Packet::parse(&bytes[2..bytes.len() - 1]).is_err());
            }
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>, code in 1u8..4, data: Vec<u8>) {
            let _ = Packet::parse(&bytes);
            let mut bytes = Vec::new();
            Control { code, id: 0, data: &data }.emit(ppp::PAP, &mut bytes);
            let _ = Packet::parse(&bytes[2..]);
        }
    }

    #[test]
    fn a_reply_without_text_is_accepted() {
        assert_eq!(
            Packet::parse(&[2, 7, 0, 4]),
            Ok(Packet::Ack {
                id: 7,
                message: &[]
            })
        );
    }
}
