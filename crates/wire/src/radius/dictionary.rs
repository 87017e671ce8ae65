//! The dictionary, as it was generated.

use core::fmt;

/// Which attribute: a number of the standard space, or one of a vendor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The vendor's enterprise number; zero for a standard attribute.
    pub vendor: u32,
    /// The attribute's number.
    pub number: u8,
}

impl Kind {
    /// A standard attribute.
    pub const fn standard(number: u8) -> Self {
        Self { vendor: 0, number }
    }

    /// An attribute of the ADSL Forum (RFC 4679 §3).
    pub const fn adsl_forum(number: u8) -> Self {
        Self {
            vendor: Kind::ADSL_FORUM_AGENT_CIRCUIT_ID.vendor,
            number,
        }
    }

    /// The name in the dictionary; `None` if it is not there.
    pub fn name(self) -> Option<&'static str> {
        Some(self.definition()?.name)
    }

    /// The type in the dictionary; octets if it is not there.
    pub fn data_type(self) -> DataType {
        self.definition()
            .map_or(DataType::Octets, |definition| definition.data)
    }

    pub(super) fn is_concatenated(self) -> bool {
        self.definition()
            .is_some_and(|definition| definition.concat)
    }

    fn definition(self) -> Option<&'static Definition> {
        let at = DEFINITIONS.binary_search_by_key(&self, |definition| definition.kind);
        at.ok().map(|at| &DEFINITIONS[at])
    }

    /// Every attribute of the dictionary.
    pub fn all() -> impl Iterator<Item = Self> {
        DEFINITIONS.iter().map(|definition| definition.kind)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.vendor) {
            (Some(name), _) => f.write_str(name),
            (None, 0) => write!(f, "Attr-{}", self.number),
            (None, vendor) => write!(f, "Attr-26.{vendor}.{}", self.number),
        }
    }
}

/// Whether the dictionary has attributes of this vendor, and so knows how they look inside.
pub(super) fn knows_vendor(vendor: u32) -> bool {
    let before = DEFINITIONS.partition_point(|definition| definition.kind.vendor < vendor);
    let next = DEFINITIONS.get(before);
    vendor != 0 && next.is_some_and(|definition| definition.kind.vendor == vendor)
}

/// The type of an attribute's value (RFC 8044 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// 32 bits.
    Integer,
    /// UTF-8.
    Text,
    /// Any octets ("string" in the RFCs).
    Octets,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A prefix length and as many octets of the prefix as it takes, or more.
    Ipv6Prefix,
    /// 64 bits.
    InterfaceId,
    /// Seconds since 1970.
    Time,
}

struct Definition {
    kind: Kind,
    name: &'static str,
    data: DataType,
    concat: bool,
}

include!(concat!(env!("OUT_DIR"), "/radius_dictionary.rs"));
