//! PFCP (3GPP TS 29.244), the state control interface between the planes, with the Broadband Forum's elements (TR-459).
//!
//! [`Packet`] is a whole message. The structs below it are the tables of TS 29.244 field by field: what is mandatory is
//! plain, what is optional or conditional is an `Option`, what may be repeated is a `Vec`. Elements that are not known
//! are skipped and counted ([`Received::ignored`]). Deviation: an element that is known but wrong refuses the message
//! even where the standard would let it pass as absent, because a rule without its address filter is no rule.
//!
//! ```
//! use wire::pfcp::{HeartbeatRequest, Packet, parse};
//!
//! let packet = Packet::node(7, HeartbeatRequest { recovery_time_stamp: 3_900_000_000 });
//! let mut bytes = Vec::new();
//! packet.emit(&mut bytes).unwrap();
//! assert_eq!(parse(&bytes).unwrap().packet, packet);
//! ```
mod bbf;
mod cause;
mod codec;
mod ethernet;
mod features;
pub mod ie;
mod kinds;
mod messages;
#[cfg(test)]
mod octets;
pub mod own;
mod rules;
#[cfg(test)]
mod tests;
mod usage;
mod values;

pub use bbf::{
    BbfOuterHeaderCreation, BbfOuterHeaderRemoval, BbfUpFeatures, MagicNumbers, PppLcpConnectivity,
    PppProtocol, VerificationTimers,
};
pub use cause::Cause;
pub use codec::{Change, IeId};
pub use ethernet::{MacAddresses, SdfFilter, VlanTag};
pub use features::*;
pub use kinds::{FailedRule, Interface, OuterHeaderRemoval, PdnType};
pub use messages::*;
pub use own::{Audit, AuditResult, KnownSettings, Lanes, Settings, SluiceFeatures};
pub use rules::*;
pub use usage::{BitRate, GateStatus, VolumeMeasurement};
pub use values::{
    EntityAddress, FSeid, FTeid, NodeId, OuterHeaderCreation, UeIpAddress, ntp_seconds,
};

/// The types of the BBF's elements.
pub mod bbf_ie {
    pub use super::bbf::{
        ENTERPRISE, LOGICAL_PORT, MTU, OUTER_HEADER_CREATION, OUTER_HEADER_REMOVAL,
        PPP_LCP_CONNECTIVITY, PPP_LCP_MAGIC_NUMBER, PPP_PROTOCOL, PPPOE_SESSION_ID,
        UP_FUNCTION_FEATURES, VERIFICATION_TIMERS,
    };
}

use crate::Malformed;
use codec::Cursor;

/// The UDP port of PFCP.
pub const PORT: u16 = 8805;
/// The version that this is.
pub const VERSION: u8 = 1;
/// Sequence numbers have 24 bits.
pub const SEQUENCE_MASK: u32 = 0x00ff_ffff;
/// Most messages take less, in octets, but for those with all of a session's rules.
const TYPICAL_SIZE: usize = 512;
const WITH_RULES: usize = 1536;

/// The header of a message (§7.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message type.
    pub kind: u8,
    /// The receiver's name for the session: in messages about sessions, 0 while it is not known.
    pub seid: Option<u64>,
    /// Sequence number, 24 bits.
    pub sequence: u32,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The receiver's name for the session, in messages about sessions only.
    pub seid: Option<u64>,
    /// Sequence number, 24 bits.
    pub sequence: u32,
    /// The body.
    pub message: Message,
}

/// A message that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub packet: Packet,
    /// How many elements were skipped, because they are unknown or repeated.
    pub ignored: u32,
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Not PFCP, or cut short: dropped without an answer (§7.6.3).
    Malformed(Malformed),
    /// Another version: answered by Version Not Supported, unless it is that itself (§7.6.2).
    Version {
        /// The version of the message.
        version: u8,
        /// Its type.
        kind: u8,
        /// The sequence number, if it is where version 1 has it.
        sequence: u32,
    },
    /// A type of message that is not known: dropped without an answer (§7.6.4).
    UnknownMessage(Header),
    /// An element is missing or wrong: a request is answered with this cause (§7.6.5).
    Refused {
        /// The header, for the answer.
        header: Header,
        /// What was wrong.
        cause: Cause,
        /// With which element.
        offending_ie: Option<IeId>,
    },
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ParseError::Malformed(why) => why.fmt(f),
            ParseError::Version { version, .. } => {
                write!(f, "PFCP version {version}, only {VERSION} is supported")
            }
            ParseError::UnknownMessage(header) => {
                write!(f, "PFCP message type {} is not known", header.kind)
            }
            ParseError::Refused {
                header,
                cause,
                offending_ie,
            } => {
                write!(f, "PFCP message type {}: {cause}", header.kind)?;
                match offending_ie {
                    Some(id) => write!(f, ", element {}", id.kind),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for ParseError {}

const SHORT: ParseError = ParseError::Malformed(Malformed("PFCP message is cut short"));

/// Splits a message into header and body. Octets behind the length that the header states are ignored.
fn parse_header(bytes: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    let [flags, kind, high, low, rest @ ..] = bytes else {
        return Err(SHORT);
    };
    let version = flags >> 5;
    if version != VERSION {
        let at = if flags & 1 != 0 { 8 } else { 0 };
        let sequence = rest
            .get(at..)
            .and_then(|bytes| Cursor(bytes).u24().ok())
            .unwrap_or(0);
        return Err(ParseError::Version {
            version,
            kind: *kind,
            sequence,
        });
    }
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let mut cursor = Cursor(rest.get(..length).ok_or(SHORT)?);
    let seid = if flags & 1 != 0 {
        Some(cursor.u64().map_err(|_| SHORT)?)
    } else {
        None
    };
    let sequence = cursor.u24().map_err(|_| SHORT)?;
    let _priority = cursor.u8().map_err(|_| SHORT)?;
    Ok((
        Header {
            kind: *kind,
            seid,
            sequence,
        },
        cursor.0,
    ))
}

/// Parses one message.
pub fn parse(bytes: &[u8]) -> Result<Received, ParseError> {
    let (header, body) = parse_header(bytes)?;
    if !Message::is_known(header.kind) {
        return Err(ParseError::UnknownMessage(header));
    }
    if is_about_session(header.kind) != header.seid.is_some() {
        return Err(ParseError::Malformed(Malformed(
            "PFCP message with a SEID where none belongs, or without its own",
        )));
    }
    let mut ignored = 0;
    match Message::read(header.kind, body, &mut ignored) {
        Ok(message) => {
            let packet = Packet {
                seid: header.seid,
                sequence: header.sequence,
                message,
            };
            Ok(Received { packet, ignored })
        }
        Err(fault) => Err(ParseError::Refused {
            header,
            cause: fault.cause,
            offending_ie: fault.ie,
        }),
    }
}

impl Packet {
    /// A message about a node.
    pub fn node(sequence: u32, message: impl Into<Message>) -> Self {
        Packet {
            seid: None,
            sequence,
            message: message.into(),
        }
    }

    /// A message about a session.
    pub fn session(seid: u64, sequence: u32, message: impl Into<Message>) -> Self {
        Packet {
            seid: Some(seid),
            sequence,
            message: message.into(),
        }
    }

    /// Appends the message. More than 65,535 octets cannot be sent; then nothing is appended.
    pub fn emit(&self, out: &mut Vec<u8>) -> crate::Result<()> {
        let start = out.len();
        let about_session = self.message.is_about_session();
        out.reserve(match self.message {
            Message::SessionEstablishmentRequest(_) => WITH_RULES,
            _ => TYPICAL_SIZE,
        });
        out.extend_from_slice(&[
            VERSION << 5 | u8::from(about_session),
            self.message.kind(),
            0,
            0,
        ]);
        if about_session {
            out.extend_from_slice(&self.seid.unwrap_or(0).to_be_bytes());
        }
        out.extend_from_slice(&(self.sequence << 8).to_be_bytes());
        self.message.write(out);
        let Ok(length) = u16::try_from(out.len() - start - 4) else {
            out.truncate(start);
            return Err(Malformed("PFCP message of more than 65,535 octets"));
        };
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// Flag FO in the first octet: another message follows in the same datagram (§7.2.2.1).
const FOLLOW_ON: u8 = 0x04;

/// Marks a message that another one follows in the same datagram. Only for peers with the feature BUNDL.
pub fn mark_followed(message: &mut [u8]) {
    if let Some(flags) = message.first_mut() {
        *flags |= FOLLOW_ON;
    }
}

/// Marks a message that no other one follows.
pub fn mark_alone(message: &mut [u8]) {
    if let Some(flags) = message.first_mut() {
        *flags &= !FOLLOW_ON;
    }
}

/// The first message of a datagram, and the rest of the datagram (§6.5). The rest is empty after the last message.
pub fn split(datagram: &[u8]) -> (&[u8], &[u8]) {
    match *datagram {
        [flags, _, high, low, ..] if flags >> 5 == VERSION && flags & FOLLOW_ON != 0 => {
            let length = 4 + usize::from(u16::from_be_bytes([high, low]));
            datagram.split_at(length.min(datagram.len()))
        }
        _ => (datagram, &[]),
    }
}

/// The answer to a message of another version (§7.6.2): its header states ours.
pub fn version_not_supported(sequence: u32) -> Packet {
    Packet::node(sequence & SEQUENCE_MASK, VersionNotSupportedResponse {})
}
