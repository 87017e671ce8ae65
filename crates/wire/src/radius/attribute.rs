//! Attributes: numbers and typed values.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;

use super::dictionary::{DataType, Kind, knows_vendor};
use crate::{Malformed, Result};

/// The longest value of one attribute.
pub const MAX_VALUE: usize = 253;

/// Passwords, and proofs from which a weak password can be guessed. Some are protected on the wire.
const SECRETS: [Kind; 4] = [
    Kind::USER_PASSWORD,
    Kind::CHAP_PASSWORD,
    Kind::MS_CHAP2_RESPONSE,
    Kind::MS_CHAP2_SUCCESS,
];

/// An attribute.
#[derive(Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Which one.
    pub kind: Kind,
    /// Its value, of the type that the dictionary gives it.
    pub value: Value,
}

/// A value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// 32 bits.
    Integer(u32),
    /// UTF-8.
    Text(String),
    /// Any octets.
    Octets(Vec<u8>),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// An IPv6 prefix.
    Ipv6Prefix(Ipv6Net),
    /// An interface identifier.
    InterfaceId(u64),
    /// Seconds since 1970.
    Time(u32),
    /// What was received does not fit the attribute's type.
    Invalid(Vec<u8>),
}

impl Value {
    /// The octets of a text, of octets, or of what is invalid.
    pub fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Octets(octets) | Self::Invalid(octets) => Some(octets),
            _ => None,
        }
    }

    fn parse(kind: Kind, bytes: &[u8]) -> Self {
        let value = match kind.data_type() {
            DataType::Octets => Some(Self::Octets(bytes.to_vec())),
            DataType::Text => core::str::from_utf8(bytes)
                .ok()
                .map(|text| Self::Text(text.to_owned())),
            DataType::Integer => bytes
                .try_into()
                .ok()
                .map(u32::from_be_bytes)
                .map(Self::Integer),
            DataType::Time => bytes
                .try_into()
                .ok()
                .map(u32::from_be_bytes)
                .map(Self::Time),
            DataType::InterfaceId => bytes
                .try_into()
                .ok()
                .map(u64::from_be_bytes)
                .map(Self::InterfaceId),
            DataType::Ipv4 => bytes
                .try_into()
                .ok()
                .map(|octets: [u8; 4]| Self::Ipv4(octets.into())),
            DataType::Ipv6 => bytes
                .try_into()
                .ok()
                .map(|octets: [u8; 16]| Self::Ipv6(octets.into())),
            DataType::Ipv6Prefix => parse_prefix(bytes).map(Self::Ipv6Prefix),
        };
        value.unwrap_or_else(|| Self::Invalid(bytes.to_vec()))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) | Self::Time(number) => out.extend(number.to_be_bytes()),
            Self::Text(text) => out.extend(text.as_bytes()),
            Self::Octets(octets) | Self::Invalid(octets) => out.extend(octets),
            Self::Ipv4(address) => out.extend(address.octets()),
            Self::Ipv6(address) => out.extend(address.octets()),
            Self::InterfaceId(identifier) => out.extend(identifier.to_be_bytes()),
            Self::Ipv6Prefix(prefix) => {
                out.extend([0, prefix.prefix_len()]);
                out.extend(
                    &prefix.network().octets()[..usize::from(prefix.prefix_len()).div_ceil(8)],
                );
            }
        }
    }
}

/// RFC 3162 §2.3: a reserved octet, the length, and up to sixteen octets in which nothing is set beyond the length.
fn parse_prefix(bytes: &[u8]) -> Option<Ipv6Net> {
    let (&[_, length], octets) = bytes.split_first_chunk()?;
    if octets.len() > 16 || octets.len() * 8 < usize::from(length) {
        return None;
    }
    let mut address = [0; 16];
    address[..octets.len()].copy_from_slice(octets);
    let prefix = Ipv6Net::new(Ipv6Addr::from(address), length).ok()?;
    (prefix.network() == prefix.addr()).then_some(prefix)
}

impl Attribute {
    pub(super) fn emit(&self, out: &mut Vec<u8>) -> Result<()> {
        match self.value.octets() {
            Some(octets) if octets.len() > MAX_VALUE && self.kind.is_concatenated() => octets
                .chunks(MAX_VALUE)
                .try_for_each(|part| emit(self.kind, out, |out| out.extend(part))),
            _ => emit(self.kind, out, |out| self.value.emit(out)),
        }
    }
}

/// Appends an attribute, or one of the parts of a long one.
fn emit(kind: Kind, out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    let start = out.len();
    if kind.vendor != 0 {
        out.extend([Kind::VENDOR_SPECIFIC.number, 0]);
        out.extend(kind.vendor.to_be_bytes());
    }
    let inner = out.len();
    out.extend([kind.number, 0]);
    value(out);
    let length = |from| u8::try_from(out.len() - from).ok();
    let (Some(whole), Some(part)) = (length(start), length(inner)) else {
        out.truncate(start);
        return Err(Malformed("RADIUS: value too long for an attribute"));
    };
    // Both are the same octet of a standard attribute.
    out[start + 1] = whole;
    out[inner + 1] = part;
    Ok(())
}

/// Reads one attribute: usually into one more of `attributes`, into several if a vendor put several into it, and into
/// the last one if it goes on with that.
pub(super) fn parse(number: u8, bytes: &[u8], attributes: &mut Vec<Attribute>) {
    let kind = Kind::standard(number);
    if kind == Kind::VENDOR_SPECIFIC {
        return parse_vendor(bytes, attributes);
    }
    match attributes.last_mut() {
        Some(Attribute {
            kind: last,
            value: Value::Octets(octets),
        }) if *last == kind && kind.is_concatenated() => {
            octets.extend(bytes);
        }
        _ => attributes.push(Attribute {
            kind,
            value: Value::parse(kind, bytes),
        }),
    }
}

/// RFC 2865 §5.26: the inside of a vendor's attribute is the vendor's affair, so only that of vendors in the dictionary
/// is looked at, and one that does not add up is kept closed as a whole.
fn parse_vendor(bytes: &[u8], attributes: &mut Vec<Attribute>) {
    let before = attributes.len();
    let known = bytes
        .split_first_chunk()
        .map(|(vendor, inner)| (u32::from_be_bytes(*vendor), inner));
    let intact = match known {
        Some((vendor, inner)) if knows_vendor(vendor) => {
            parse_inner(vendor, inner, attributes).is_some()
        }
        Some(_) => {
            attributes.push(Attribute {
                kind: Kind::VENDOR_SPECIFIC,
                value: Value::Octets(bytes.to_vec()),
            });
            true
        }
        None => false,
    };
    if !intact {
        attributes.truncate(before);
        attributes.push(Attribute {
            kind: Kind::VENDOR_SPECIFIC,
            value: Value::Invalid(bytes.to_vec()),
        });
    }
}

fn parse_inner(vendor: u32, mut inner: &[u8], attributes: &mut Vec<Attribute>) -> Option<()> {
    loop {
        let (&[number, length], rest) = inner.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(length).checked_sub(2)?)?;
        let kind = Kind { vendor, number };
        attributes.push(Attribute {
            kind,
            value: Value::parse(kind, value),
        });
        if rest.is_empty() {
            return Some(());
        }
        inner = rest;
    }
}

impl fmt::Debug for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is in a log stays there for ever.
        if SECRETS.contains(&self.kind) {
            return write!(f, "{:?} = <hidden>", self.kind);
        }
        write!(f, "{:?} = {:?}", self.kind, self.value)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) | Self::Time(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Octets(octets) => write!(f, "\"{}\"", octets.escape_ascii()),
            Self::Ipv4(address) => write!(f, "{address}"),
            Self::Ipv6(address) => write!(f, "{address}"),
            Self::Ipv6Prefix(prefix) => write!(f, "{prefix}"),
            Self::InterfaceId(identifier) => write!(f, "{identifier:#018x}"),
            Self::Invalid(octets) => write!(f, "invalid \"{}\"", octets.escape_ascii()),
        }
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Value {
    fn from(octets: &[u8]) -> Self {
        Self::Octets(octets.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(octets: &[u8; N]) -> Self {
        Self::Octets(octets.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(octets: Vec<u8>) -> Self {
        Self::Octets(octets)
    }
}

impl From<Ipv4Addr> for Value {
    fn from(address: Ipv4Addr) -> Self {
        Self::Ipv4(address)
    }
}

impl From<Ipv6Addr> for Value {
    fn from(address: Ipv6Addr) -> Self {
        Self::Ipv6(address)
    }
}

impl From<Ipv6Net> for Value {
    fn from(prefix: Ipv6Net) -> Self {
        Self::Ipv6Prefix(prefix)
    }
}
