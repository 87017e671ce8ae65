//! RADIUS (RFC 2865, 2866, 2869): packets, attributes as typed values, and the keyed digests that protect them.
//!
//! Which attributes there are, and of which type, is said in `radius.dictionary` beside this crate's sources; the
//! constants of [`Kind`] and the named values in [`values`] are generated from it.
//!
//! ```
//! use wire::radius::{Attribute, Code, Kind, Packet, Value, values};
//!
//! let mut request = Packet::new(Code::ACCESS_REQUEST, 7, [0x42; 16]);
//! request.push(Kind::USER_NAME, b"alice");
//! request.push(Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED);
//! let bytes = request.emit_access_request(b"secret").unwrap();
//!
//! let received = Packet::parse(&bytes).unwrap();
//! assert_eq!(received.code, Code::ACCESS_REQUEST);
//! assert_eq!(received.get(Kind::USER_NAME), Some(&Value::Octets(b"alice".to_vec())));
//! assert_eq!(Kind::SERVICE_TYPE.name(), Some("Service-Type"));
//! ```

use core::fmt;

use crate::{Malformed, Result};

mod attribute;
mod crypto;
mod dictionary;

pub use attribute::{Attribute, MAX_VALUE, Value};
pub use crypto::{
    Missing, chap_response, hide_password, reveal_password, sign_accounting_request,
    verify_access_request, verify_accounting_request, verify_dynamic_request, verify_response,
    verify_status_server,
};
pub use dictionary::{DataType, Kind, values};

/// Length of the fixed part of a packet.
pub const HEADER_LEN: usize = 20;
/// The longest packet (RFC 2865 §3).
pub const MAX_LEN: usize = 4096;
/// Most packets are shorter, in octets.
const TYPICAL_LEN: usize = 384;

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// RFC 2865 §4.1.
    pub const ACCESS_REQUEST: Self = Self(1);
    /// RFC 2865 §4.2.
    pub const ACCESS_ACCEPT: Self = Self(2);
    /// RFC 2865 §4.3.
    pub const ACCESS_REJECT: Self = Self(3);
    /// RFC 2866 §4.1.
    pub const ACCOUNTING_REQUEST: Self = Self(4);
    /// RFC 2866 §4.2.
    pub const ACCOUNTING_RESPONSE: Self = Self(5);
    /// RFC 2865 §4.4.
    pub const ACCESS_CHALLENGE: Self = Self(11);
    /// RFC 5997.
    pub const STATUS_SERVER: Self = Self(12);
    /// RFC 5176.
    pub const DISCONNECT_REQUEST: Self = Self(40);
    /// RFC 5176.
    pub const DISCONNECT_ACK: Self = Self(41);
    /// RFC 5176.
    pub const DISCONNECT_NAK: Self = Self(42);
    /// RFC 5176.
    pub const COA_REQUEST: Self = Self(43);
    /// RFC 5176.
    pub const COA_ACK: Self = Self(44);
    /// RFC 5176.
    pub const COA_NAK: Self = Self(45);

    /// The name in the RFCs.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::ACCESS_REQUEST => "Access-Request",
            Self::ACCESS_ACCEPT => "Access-Accept",
            Self::ACCESS_REJECT => "Access-Reject",
            Self::ACCOUNTING_REQUEST => "Accounting-Request",
            Self::ACCOUNTING_RESPONSE => "Accounting-Response",
            Self::ACCESS_CHALLENGE => "Access-Challenge",
            Self::STATUS_SERVER => "Status-Server",
            Self::DISCONNECT_REQUEST => "Disconnect-Request",
            Self::DISCONNECT_ACK => "Disconnect-ACK",
            Self::DISCONNECT_NAK => "Disconnect-NAK",
            Self::COA_REQUEST => "CoA-Request",
            Self::COA_ACK => "CoA-ACK",
            Self::COA_NAK => "CoA-NAK",
            _ => return None,
        })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Code({})", self.0),
        }
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its kind.
    pub code: Code,
    /// Matches replies with requests.
    pub identifier: u8,
    /// The Request or the Response Authenticator, as it stands in the packet.
    pub authenticator: [u8; 16],
    /// The attributes in order.
    pub attributes: Vec<Attribute>,
}

impl Packet {
    /// A packet without attributes.
    pub fn new(code: Code, identifier: u8, authenticator: [u8; 16]) -> Self {
        Self {
            code,
            identifier,
            authenticator,
            attributes: Vec::new(),
        }
    }

    /// Adds an attribute.
    pub fn push(&mut self, kind: Kind, value: impl Into<Value>) {
        self.attributes.push(Attribute {
            kind,
            value: value.into(),
        });
    }

    /// The first value of this kind.
    pub fn get(&self, kind: Kind) -> Option<&Value> {
        self.all(kind).next()
    }

    /// Every value of this kind, in order.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.attributes
            .iter()
            .filter(move |attribute| attribute.kind == kind)
            .map(|attribute| &attribute.value)
    }

    /// Reads a packet. Attributes that do not fit their type are kept as [`Value::Invalid`]; only where the boundaries of
    /// attributes are lost is the packet refused.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let bytes = trim(bytes)?;
        let authenticator = bytes[4..HEADER_LEN].try_into().expect("sixteen octets");
        let mut packet = Self::new(Code(bytes[0]), bytes[1], authenticator);
        for span in Spans::new(bytes) {
            let (number, range) = span?;
            attribute::parse(number, &bytes[range], &mut packet.attributes);
        }
        Ok(packet)
    }

    /// Writes the packet with its authenticator as it is.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<()> {
        self.emit_with(&[], out)
    }

    /// The same with these octets of attributes before the others.
    fn emit_with(&self, first: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.reserve(TYPICAL_LEN);
        out.extend([self.code.0, self.identifier, 0, 0]);
        out.extend(self.authenticator);
        out.extend(first);
        for attribute in &self.attributes {
            if first.is_empty() || attribute.kind != Kind::MESSAGE_AUTHENTICATOR {
                attribute.emit(out)?;
            }
        }
        let length = out.len() - start;
        if length > MAX_LEN {
            return Err(Malformed("RADIUS: packet longer than 4096 octets"));
        }
        out[start + 2..start + 4].copy_from_slice(&(length as u16).to_be_bytes());
        Ok(())
    }
}

/// The packet without what a datagram may carry behind it (RFC 2865 §3: padding, to be ignored).
fn trim(bytes: &[u8]) -> Result<&[u8]> {
    if bytes.len() < HEADER_LEN {
        return Err(Malformed("RADIUS: shorter than a header"));
    }
    match usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) {
        ..HEADER_LEN => Err(Malformed("RADIUS: length field shorter than a header")),
        length if length > MAX_LEN => {
            Err(Malformed("RADIUS: length field longer than 4096 octets"))
        }
        length => bytes
            .get(..length)
            .ok_or(Malformed("RADIUS: length field beyond the datagram")),
    }
}

/// The attributes of a trimmed packet: their numbers and where their values are.
struct Spans<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Spans<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: HEADER_LEN,
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Result<(u8, core::ops::Range<usize>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = rest.get(1).map_or(0, |&length| usize::from(length));
        if length < 2 || length > rest.len() {
            self.at = self.bytes.len();
            return Some(Err(Malformed("RADIUS: attribute length")));
        }
        let value = self.at + 2..self.at + length;
        self.at += length;
        Some(Ok((rest[0], value)))
    }
}

#[cfg(test)]
mod tests;
