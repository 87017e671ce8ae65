//! CHAP (RFC 1994): challenge, response, and the verdict.
//!
//! ```
//! use wire::chap::Packet;
//!
//! let challenge = Packet::Challenge { id: 1, value: &[7; 16], name: b"bng" };
//! let mut bytes = Vec::new();
//! challenge.emit(&mut bytes);
//! assert_eq!(Packet::parse(&bytes[2..]), Ok(challenge));
//! ```
use crate::ppp::{self, Control};
use crate::{Malformed, Result};

const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;
const SUCCESS: u8 = 3;
const FAILURE: u8 = 4;

/// A CHAP packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The authenticator asks.
    Challenge {
        /// Identifier, part of what is hashed.
        id: u8,
        /// The challenge, 1 to 255 octets.
        value: &'a [u8],
        /// Who asks.
        name: &'a [u8],
    },
    /// The peer answers.
    Response {
        /// Identifier of the challenge.
        id: u8,
        /// The hash, 1 to 255 octets.
        value: &'a [u8],
        /// Who answers.
        name: &'a [u8],
    },
    /// Authenticated.
    Success {
        /// Identifier of the response.
        id: u8,
        /// A text for people.
        message: &'a [u8],
    },
    /// Not authenticated.
    Failure {
        /// Identifier of the response.
        id: u8,
        /// A text for people.
        message: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// Reads the payload of a CHAP frame.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Control { code, id, data } = Control::parse(bytes)?;
        match code {
            CHALLENGE => {
                split_value(data).map(|(value, name)| Packet::Challenge { id, value, name })
            }
            RESPONSE => split_value(data).map(|(value, name)| Packet::Response { id, value, name }),
            SUCCESS => Ok(Packet::Success { id, message: data }),
            FAILURE => Ok(Packet::Failure { id, message: data }),
            _ => Err(Malformed("CHAP code is unknown")),
        }
    }

    /// Appends the whole PPP frame to `out`. A value must have 1 to 255 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let with_value = |value: &[u8], name: &[u8]| {
            debug_assert!((1..=255).contains(&value.len()));
            [&[value.len() as u8], value, name].concat()
        };
        let (code, id, data) = match *self {
            Packet::Challenge { id, value, name } => (CHALLENGE, id, with_value(value, name)),
            Packet::Response { id, value, name } => (RESPONSE, id, with_value(value, name)),
            Packet::Success { id, message } => (SUCCESS, id, message.to_vec()),
            Packet::Failure { id, message } => (FAILURE, id, message.to_vec()),
        };
        Control {
            code,
            id,
            data: &data,
        }
        .emit(ppp::CHAP, out);
    }
}

fn split_value(data: &[u8]) -> Result<(&[u8], &[u8])> {
    match data.split_first() {
        None | Some((0, _)) => Err(Malformed("CHAP value is empty")),
        Some((&length, rest)) => rest
            .split_at_checked(length.into())
            .ok_or(Malformed("CHAP value beyond the packet")),
    }
}

/// Without challenge and response, from which a weak password could be guessed.
impl core::fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (kind, id, text) = match self {
            Packet::Challenge { id, name, .. } => ("Challenge", id, name),
            Packet::Response { id, name, .. } => ("Response", id, name),
            Packet::Success { id, message } => ("Success", id, message),
            Packet::Failure { id, message } => ("Failure", id, message),
        };
        write!(f, "{kind} {{ id: {id}, text: {:?} }}", text.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(id: u8, value in prop::collection::vec(any::<u8>(), 1..=255), text: Vec<u8>) {
            for packet in [
                Packet::Challenge { id, value: &value, name: &text },
                Packet::Response { id, value: &value, name: &text },
                Packet::Success { id, message: &text },
                Packet::Failure { id, message: &text },
            ] {
                let mut bytes = Vec::new();
                packet.emit(&mut bytes);
                prop_assert_eq!(Packet::parse(&bytes[2..]), Ok(packet));
                prop_assert!(Packet::parse(&bytes[2..bytes.len() - 1]).is_err());
            }
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>, code in 1u8..5, data: Vec<u8>) {
            let _ = Packet::parse(&bytes);
            let mut bytes = Vec::new();
            Control { code, id: 0, data: &data }.emit(ppp::CHAP, &mut bytes);
            let _ = Packet::parse(&bytes[2..]);
        }
    }

    #[test]
    fn an_empty_value_is_refused() {
        assert!(Packet::parse(&[2, 1, 0, 5, 0]).is_err());
        assert!(Packet::parse(&[2, 1, 0, 4]).is_err());
    }
}
