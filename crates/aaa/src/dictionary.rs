//! Dictionaries: names, numbers and types of RADIUS attributes, in FreeRADIUS' file format.
//!
//! [`Dictionary::shipped`] has the standard attributes and those of common vendors. [`Dictionary::load`] adds an operator's files.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

mod parser;
#[cfg(test)]
mod tests;

/// Number of an attribute in the standard space, or in the space of a vendor (RFC 2865 §5.26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId {
    /// Private enterprise number of the vendor. 0: a standard attribute.
    pub vendor: u32,
    /// Number of the attribute: 1 to 255, or more octets if the vendor's format has them.
    pub number: u32,
}

/// Attribute of a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name as the dictionary writes it.
    pub name: String,
    /// Number. `None`: the attribute never is an attribute of a packet, because it is part of another attribute (TLV, RFC 6929), or
    /// internal to a server.
    pub id: Option<AttributeId>,
    /// Type of the value.
    pub data_type: DataType,
    /// Whether the value starts with a tag (RFC 2868 §3.1).
    pub tagged: bool,
    /// Whether the value is encrypted (RFC 2868 §3.5). Such a value cannot be read.
    pub encrypted: bool,
}

/// Type of an attribute's value (RFC 8044 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// UTF-8.
    Text,
    /// Unsigned number of 1, 2, 4 or 8 octets.
    Number(u8),
    /// IPv4 address.
    Ipv4,
    /// IPv6 address.
    Ipv6,
    /// IPv4 or IPv6 address, which the length tells.
    Ip,
    /// IPv4 prefix (RFC 8044 §3.11).
    Ipv4Prefix,
    /// IPv6 prefix (RFC 3162 §2.3).
    Ipv6Prefix,
    /// Every other type: octets, dates, TLVs and so on. No setting is read from it.
    Octets,
}

/// Value of an attribute, as far as a setting can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// Unsigned number.
    Number(u64),
    /// Address.
    Address(IpAddr),
    /// Prefix. Its host bits are zero.
    Prefix(IpNet),
    /// Octets without a meaning here.
    Octets(&'a [u8]),
}

/// Layout of a vendor's attributes inside Vendor-Specific (`format=` of VENDOR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Octets of the number: 1, 2 or 4.
    pub number: u8,
    /// Octets of the length: 0, 1 or 2. With 0 the value reaches to the end.
    pub length: u8,
    /// Whether an octet follows that says that the value continues in the next attribute.
    pub continuation: bool,
}

impl Default for Format {
    /// One octet each, as RFC 2865 §5.26 recommends.
    fn default() -> Self {
        Format {
            number: 1,
            length: 1,
            continuation: false,
        }
    }
}

/// Names, numbers and types of attributes.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// Numbers of vendors by name in lower case.
    vendor_names: HashMap<String, u32>,
    formats: HashMap<u32, Format>,
    by_id: HashMap<AttributeId, Arc<Definition>>,
    /// By name in lower case: names differ in more than their case.
    by_name: HashMap<String, Arc<Definition>>,
}

/// Why a dictionary is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1. 0: the file as a whole.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            0 => write!(f, "{file}: {}", self.message),
            line => write!(f, "{file}:{line}: {}", self.message),
        }
    }
}

impl core::error::Error for DictionaryError {}

/// Files of the shipped dictionary.
const SHIPPED: [(&str, &str); 10] = [
    ("standard", include_str!("../dictionaries/standard")),
    ("adsl-forum", include_str!("../dictionaries/adsl-forum")),
    ("cisco", include_str!("../dictionaries/cisco")),
    ("erx", include_str!("../dictionaries/erx")),
    ("huawei", include_str!("../dictionaries/huawei")),
    ("microsoft", include_str!("../dictionaries/microsoft")),
    ("mikrotik", include_str!("../dictionaries/mikrotik")),
    ("nokia", include_str!("../dictionaries/nokia")),
    ("redback", include_str!("../dictionaries/redback")),
    ("wispr", include_str!("../dictionaries/wispr")),
];

impl Dictionary {
    /// The shipped dictionary: standard attributes, and those of Cisco, Juniper (ERX), Huawei, Microsoft, MikroTik, Nokia, Redback,
    /// WISPr and the ADSL Forum.
    pub fn shipped() -> Arc<Dictionary> {
        static DICTIONARY: LazyLock<Arc<Dictionary>> = LazyLock::new(|| {
            let files = SHIPPED.map(|(name, _)| PathBuf::from(name));
            let text = |file: &Path| {
                let found = SHIPPED.iter().find(|(name, _)| Path::new(name) == file);
                found
                    .map(|(_, text)| (*text).to_owned())
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            };
            let dictionary = Dictionary::default().load(&files, text);
            Arc::new(dictionary.expect("a test reads the shipped dictionary"))
        });
        DICTIONARY.clone()
    }

    /// Adds the attributes of files. `read` returns a file's text; an included file is named relative to the file that includes it.
    /// An attribute of these files replaces one of this dictionary with the same number or name.
    ///
    /// # Errors
    /// The first error: a file that cannot be read or understood, a name with two numbers, a cycle of includes, or a limit: 1,024
    /// files, 16 files deep, 16 MiB, 65,536 attributes.
    pub fn load(
        &self,
        files: &[PathBuf],
        read: impl FnMut(&Path) -> io::Result<String>,
    ) -> Result<Dictionary, DictionaryError> {
        let mut parser = parser::Parser::new(self, read);
        for file in files {
            parser.file(file, None)?;
        }
        let found = parser.finish();
        let mut merged = self.clone();
        merged.vendor_names.extend(found.vendor_names);
        merged.formats.extend(found.formats);
        merged.by_id.extend(found.by_id);
        merged.by_name.extend(found.by_name);
        Ok(merged)
    }

    /// The attribute with a number.
    pub fn attribute(&self, id: AttributeId) -> Option<&Definition> {
        self.by_id.get(&id).map(|definition| &**definition)
    }

    /// The attribute with a name. The case of letters does not matter.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        let definition = self.by_name.get(&name.to_ascii_lowercase());
        definition.map(|definition| &**definition)
    }

    /// Layout of a vendor's attributes. `None`: no dictionary has the vendor.
    pub fn format(&self, vendor: u32) -> Option<Format> {
        self.formats.get(&vendor).copied()
    }
}

impl Format {
    /// Splits the inside of Vendor-Specific, behind the vendor's number, into numbers and values. `None`: it does not add up, or a
    /// value is spread over several attributes.
    pub fn split(self, mut inner: &[u8]) -> Option<Vec<(u32, &[u8])>> {
        let mut found = Vec::new();
        loop {
            let (number, rest) = number(inner, self.number)?;
            let (value, rest) = match self.length {
                0 => (rest, &rest[rest.len()..]),
                octets => {
                    let (length, rest) = self::number(rest, octets)?;
                    let header = u32::from(self.number) + u32::from(octets);
                    rest.split_at_checked(length.checked_sub(header)? as usize)?
                }
            };
            let value = match (self.continuation, value) {
                (false, value) | (true, [0, value @ ..]) => value,
                (true, _) => return None,
            };
            found.push((number, value));
            if rest.is_empty() {
                return Some(found);
            }
            inner = rest;
        }
    }
}

/// Takes a number of so many octets, at most 4, off the front.
fn number(octets: &[u8], length: u8) -> Option<(u32, &[u8])> {
    let (number, rest) = octets.split_at_checked(length.into())?;
    let append = |sum: u32, octet: &u8| sum << 8 | u32::from(*octet);
    Some((number.iter().fold(0, append), rest))
}

impl Definition {
    /// Reads a value. `None`: it does not fit the type, or is encrypted.
    pub fn read<'a>(&self, octets: &'a [u8]) -> Option<Value<'a>> {
        if self.encrypted {
            return None;
        }
        let octets = match (self.tagged, self.data_type, octets) {
            // the tag takes the place of the number's first octet
            (true, DataType::Number(4), [_, rest @ ..]) => {
                return number(rest, 3).and_then(|(number, rest)| {
                    rest.is_empty().then_some(Value::Number(number.into()))
                });
            }
            // an octet above 0x1F is the first one of the text (RFC 2868 §3.3)
            (true, _, [0..=0x1f, rest @ ..]) => rest,
            (_, _, octets) => octets,
        };
        self.data_type.read(octets)
    }
}

impl DataType {
    fn read(self, octets: &[u8]) -> Option<Value<'_>> {
        let ipv4 = |octets: &[u8]| <[u8; 4]>::try_from(octets).ok().map(Ipv4Addr::from);
        let ipv6 = |octets: &[u8]| <[u8; 16]>::try_from(octets).ok().map(Ipv6Addr::from);
        Some(match self {
            DataType::Text => Value::Text(core::str::from_utf8(octets).ok()?),
            DataType::Number(length) if octets.len() == usize::from(length) => {
                let append = |sum: u64, octet: &u8| sum << 8 | u64::from(*octet);
                Value::Number(octets.iter().fold(0, append))
            }
            DataType::Number(_) => return None,
            DataType::Ipv4 => Value::Address(ipv4(octets)?.into()),
            DataType::Ipv6 => Value::Address(ipv6(octets)?.into()),
            DataType::Ip => match octets.len() {
                4 => Value::Address(ipv4(octets)?.into()),
                _ => Value::Address(ipv6(octets)?.into()),
            },
            DataType::Ipv4Prefix => {
                let (&[_, length], address) = octets.split_first_chunk()?;
                Value::Prefix(Ipv4Net::new(ipv4(address)?, length).ok()?.trunc().into())
            }
            DataType::Ipv6Prefix => {
                let (&[_, length], prefix) = octets.split_first_chunk()?;
                let mut address = [0; 16];
                address.get_mut(..prefix.len())?.copy_from_slice(prefix);
                if prefix.len() * 8 < usize::from(length) {
                    return None;
                }
                Value::Prefix(Ipv6Net::new(address.into(), length).ok()?.trunc().into())
            }
            DataType::Octets => Value::Octets(octets),
        })
    }
}
