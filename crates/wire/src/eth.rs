//! Ethernet II frames, untagged, with one VLAN tag, or with two (QinQ).
//!
//! ```
//! use wire::eth::{Frame, Header, MacAddr, Tag, Tags};
//!
//! let header = Header {
//!     destination: MacAddr::BROADCAST,
//!     source: "02:00:00:00:00:01".parse().unwrap(),
//!     tags: Tags::qinq(100, 7),
//!     ethertype: wire::eth::PPPOE_DISCOVERY,
//! };
//! let mut bytes = Vec::new();
//! header.emit(&mut bytes);
//! bytes.extend_from_slice(b"payload");
//! let frame = Frame::parse(&bytes).unwrap();
//! assert_eq!(frame.header, header);
//! assert_eq!(frame.payload, b"payload");
//! assert_eq!(frame.header.tags.to_string(), "100.7");
//! ```
use crate::{Malformed, Result};
use core::fmt;
use core::str::FromStr;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of the PPPoE discovery stage.
pub const PPPOE_DISCOVERY: u16 = 0x8863;
/// EtherType of the PPPoE session stage.
pub const PPPOE_SESSION: u16 = 0x8864;
/// EtherType of the slow protocols, LACP among them (IEEE 802.3 Annex 57A.4).
pub const SLOW_PROTOCOLS: u16 = 0x8809;
/// TPID of a customer tag (IEEE 802.1Q).
pub const TPID_8021Q: u16 = 0x8100;
/// TPID of a service tag (IEEE 802.1ad).
pub const TPID_8021AD: u16 = 0x88a8;

/// A MAC address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// 00:00:00:00:00:00, which no station has.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Is the group bit set (multicast or broadcast)?
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Could this be the address of one station: neither a group address nor all zeros?
    pub fn is_station(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }

    /// The modified EUI-64 interface identifier (RFC 4291 appendix A).
    pub const fn eui64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// The address that an IPv6 multicast group maps to (RFC 2464 §7).
    pub const fn of_ipv6_group(group: core::net::Ipv6Addr) -> MacAddr {
        let o = group.octets();
        MacAddr([0x33, 0x33, o[12], o[13], o[14], o[15]])
    }

    /// In hexadecimal, made by hand: a store of sessions is full of them.
    fn text(self) -> [u8; 17] {
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
        let mut text = [b':'; 17];
        for (pair, octet) in text.chunks_mut(3).zip(self.0) {
            (pair[0], pair[1]) = (digit(octet >> 4), digit(octet & 15));
        }
        text
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        MacAddr(octets)
    }
}

impl FromStr for MacAddr {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self> {
        const WRONG: Malformed =
            Malformed("a MAC address is six octets in hex, such as 02:00:5e:10:00:01");
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().ok_or(WRONG)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(WRONG);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| WRONG)?;
        }
        if parts.next().is_some() {
            return Err(WRONG);
        }
        Ok(MacAddr(octets))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for MacAddr {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> core::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(core::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for MacAddr {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> core::result::Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tag {
    /// 0x8100 or 0x88a8.
    pub tpid: u16,
    /// VLAN identifier, 0 to 4095.
    pub vid: u16,
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
}

impl Tag {
    /// A tag with TPID 0x8100 and priority 0.
    pub const fn new(vid: u16) -> Self {
        Tag {
            tpid: TPID_8021Q,
            vid,
            pcp: 0,
            dei: false,
        }
    }

    /// The tag control information: PCP, DEI, VID.
    pub const fn tci(self) -> u16 {
        (self.pcp as u16 & 7) << 13 | (self.dei as u16) << 12 | (self.vid & 0xfff)
    }

    /// The tag of a TPID and a tag control information.
    pub const fn from_tci(tpid: u16, tci: u16) -> Self {
        Tag {
            tpid,
            vid: tci & 0xfff,
            pcp: (tci >> 13) as u8,
            dei: tci & 0x1000 != 0,
        }
    }
}

/// The VLAN tags of a frame: none, `outer` alone, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tags {
    /// The only tag, or the outer one (S-tag).
    pub outer: Option<Tag>,
    /// The inner one (C-tag), only beside an outer one.
    pub inner: Option<Tag>,
}

impl Tags {
    /// No tag.
    pub const NONE: Tags = Tags {
        outer: None,
        inner: None,
    };

    /// One tag with TPID 0x8100.
    pub const fn single(vid: u16) -> Self {
        Tags {
            outer: Some(Tag::new(vid)),
            inner: None,
        }
    }

    /// Two tags with TPID 0x8100, outer first.
    pub const fn qinq(outer: u16, inner: u16) -> Self {
        Tags {
            outer: Some(Tag::new(outer)),
            inner: Some(Tag::new(inner)),
        }
    }

    /// How many tags there are.
    pub const fn count(self) -> usize {
        self.outer.is_some() as usize + self.inner.is_some() as usize
    }

    /// The VLAN identifiers, which name a line; priorities do not.
    pub fn vids(self) -> (Option<u16>, Option<u16>) {
        (self.outer.map(|t| t.vid), self.inner.map(|t| t.vid))
    }

    /// The same tags, each with a priority, 0 to 7.
    pub fn with_priority(self, pcp: u8) -> Tags {
        let with = |tag: Tag| Tag { pcp, ..tag };
        Tags {
            outer: self.outer.map(with),
            inner: self.inner.map(with),
        }
    }

    /// The same tags with priority and drop eligibility cleared, for use as a key.
    pub fn without_priority(self) -> Self {
        let clear = |t: Tag| Tag {
            pcp: 0,
            dei: false,
            ..t
        };
        Tags {
            outer: self.outer.map(clear),
            inner: self.inner.map(clear),
        }
    }
}

/// `untagged`, `100`, or `100.7`.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outer, self.inner) {
            (None, _) => f.write_str("untagged"),
            (Some(outer), None) => write!(f, "{}", outer.vid),
            (Some(outer), Some(inner)) => write!(f, "{}.{}", outer.vid, inner.vid),
        }
    }
}

/// Everything in front of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: MacAddr,
    /// Source address.
    pub source: MacAddr,
    /// VLAN tags.
    pub tags: Tags,
    /// EtherType behind the tags.
    pub ethertype: u16,
}

impl Header {
    /// Length on the wire: 14, 18 or 22 octets.
    pub const fn len(&self) -> usize {
        14 + 4 * self.tags.count()
    }

    /// Never: a header has at least 14 octets.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Appends the header to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&self.source.0);
        for tag in [self.tags.outer, self.tags.inner].into_iter().flatten() {
            out.extend_from_slice(&tag.tpid.to_be_bytes());
            out.extend_from_slice(&tag.tci().to_be_bytes());
        }
        out.extend_from_slice(&self.ethertype.to_be_bytes());
    }
}

/// A frame, its payload borrowed (with the padding that a short frame has on the wire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Addresses, tags and EtherType.
    pub header: Header,
    /// What follows the EtherType.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads addresses, at most two tags, and the EtherType. A third tag is left as EtherType and payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        const SHORT: Malformed = Malformed("Ethernet frame shorter than its header");
        let (&destination, rest) = bytes.split_first_chunk::<6>().ok_or(SHORT)?;
        let (&source, mut rest) = rest.split_first_chunk::<6>().ok_or(SHORT)?;
        let mut tags = [None; 2];
        for slot in &mut tags {
            let Some((tag, after)) = split_tag(rest)? else {
                break;
            };
            *slot = Some(tag);
            rest = after;
        }
        let (&ethertype, payload) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
        let header = Header {
            destination: MacAddr(destination),
            source: MacAddr(source),
            tags: Tags {
                outer: tags[0],
                inner: tags[1],
            },
            ethertype: u16::from_be_bytes(ethertype),
        };
        Ok(Frame { header, payload })
    }
}

fn split_tag(bytes: &[u8]) -> Result<Option<(Tag, &[u8])>> {
    let tpid = match bytes.first_chunk::<2>() {
        Some(&tpid) => u16::from_be_bytes(tpid),
        None => return Err(Malformed("Ethernet frame shorter than its header")),
    };
    if tpid != TPID_8021Q && tpid != TPID_8021AD {
        return Ok(None);
    }
    let (&[_, _, a, b], rest) = bytes
        .split_first_chunk::<4>()
        .ok_or(Malformed("VLAN tag cut off"))?;
    Ok(Some((
        Tag::from_tci(tpid, u16::from_be_bytes([a, b])),
        rest,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag() -> impl Strategy<Value = Tag> {
        (
            prop_oneof![Just(TPID_8021Q), Just(TPID_8021AD)],
            any::<u16>(),
        )
            .prop_map(|(p, t)| Tag::from_tci(p, t))
    }

    fn tags() -> impl Strategy<Value = Tags> {
        prop_oneof![
            Just(Tags::NONE),
            tag().prop_map(|t| Tags {
                outer: Some(t),
                inner: None
            }),
            (tag(), tag()).prop_map(|(a, b)| Tags {
                outer: Some(a),
                inner: Some(b)
            }),
        ]
    }

    proptest! {
        #[test]
        fn emit_then_parse(d: [u8; 6], s: [u8; 6], tags in tags(), ethertype: u16, payload: Vec<u8>) {
            prop_assume!(ethertype != TPID_8021Q && ethertype != TPID_8021AD);
            let header = Header { destination: MacAddr(d), source: MacAddr(s), tags, ethertype };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            prop_assert_eq!(bytes.len(), header.len());
            bytes.extend_from_slice(&payload);
            prop_assert_eq!(Frame::parse(&bytes), Ok(Frame { header, payload: &payload }));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Frame::parse(&bytes);
        }

        #[test]
        fn mac_text_round_trip(octets: [u8; 6]) {
            let mac = MacAddr(octets);
            prop_assert_eq!(mac.to_string().parse::<MacAddr>(), Ok(mac));
        }

        #[test]
        fn mac_from_any_text_never_panics(text: String) {
            let _ = text.parse::<MacAddr>();
        }
    }

    #[test]
    fn every_truncation_of_a_header_is_refused() {
        let mut bytes = Vec::new();
        Header {
            destination: MacAddr::BROADCAST,
            source: MacAddr::ZERO,
            tags: Tags::qinq(1, 2),
            ethertype: IPV4,
        }
        .emit(&mut bytes);
        for n in 0..bytes.len() {
            assert!(Frame::parse(&bytes[..n]).is_err(), "{n} octets");
        }
        assert!(Frame::parse(&bytes).is_ok());
    }

    #[test]
    fn a_service_tag_alone_and_outside_is_seen() {
        let alone = Tags {
            outer: Some(Tag {
                tpid: TPID_8021AD,
                ..Tag::new(100)
            }),
            inner: None,
        };
        let both = Tags {
            inner: Some(Tag::new(7)),
            ..alone
        };
        for tags in [alone, both] {
            let mut bytes = Vec::new();
            Header {
                destination: MacAddr::BROADCAST,
                source: MacAddr::ZERO,
                tags,
                ethertype: IPV6,
            }
            .emit(&mut bytes);
            assert_eq!(Frame::parse(&bytes).unwrap().header.tags, tags);
        }
    }

    #[test]
    fn mac_text_is_strict() {
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "02:00:00:00:00:+1",
            "02:00:00:00:00:zz",
        ] {
            assert!(wrong.parse::<MacAddr>().is_err(), "{wrong}");
        }
        assert_eq!(
            "02-00-5E-10-00-01".parse::<MacAddr>().unwrap().to_string(),
            "02:00:5e:10:00:01"
        );
    }

    #[test]
    fn eui64_flips_the_universal_bit() {
        assert_eq!(
            MacAddr([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]).eui64(),
            0x3656_78ff_fe9a_bcde
        );
    }
}
