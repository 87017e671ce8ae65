//! Values that are more than a number or a text, and the formats of texts.

use crate::Template;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use range::AddressRange;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

mod range;

/// A shared secret: never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// What stands for a secret wherever it is shown.
pub const MASK: &str = "********";

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a daemon is reached: one address, or a list of one IPv4 and one IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// The IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

impl Addresses {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (ipv4, ipv6) = (self.ipv4.map(IpAddr::from), self.ipv6.map(IpAddr::from));
        ipv4.into_iter().chain(ipv6)
    }

    /// The one of the same family as `peer`; `None` if there is none.
    pub fn towards(&self, peer: IpAddr) -> Option<IpAddr> {
        self.iter().find(|own| own.is_ipv4() == peer.is_ipv4())
    }

    /// Takes one more in; an error if there is one of its family.
    fn add<E: Error>(&mut self, address: IpAddr) -> Result<(), E> {
        let other = match address {
            IpAddr::V4(address) => self.ipv4.replace(address).map(IpAddr::from),
            IpAddr::V6(address) => self.ipv6.replace(address).map(IpAddr::from),
        };
        match other {
            Some(other) => Err(E::custom(format!(
                "`{other}` and `{address}` have the same address family: expected at most one IPv4 and one IPv6 address"
            ))),
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct OneOrTwo;

        impl<'de> Visitor<'de> for OneOrTwo {
            type Value = Addresses;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an IP address, or a list of one IPv4 and one IPv6 address")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Addresses, E> {
                let address = text.parse().map_err(|_| {
                    E::custom(format!("`{text}` is not an IP address: expected one, or a list of one IPv4 and one IPv6 \
                        address"))
                })?;
                let mut one = NONE;
                one.add(address).map(|()| one)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Addresses, A::Error> {
                let mut all = NONE;
                while let Some(address) = list.next_element()? {
                    all.add(address)?;
                }
                match all.iter().next() {
                    Some(_) => Ok(all),
                    None => Err(A::Error::invalid_length(0, &self)),
                }
            }
        }

        const NONE: Addresses = Addresses {
            ipv4: None,
            ipv6: None,
        };
        d.deserialize_any(OneOrTwo)
    }
}

/// Rule of an ACL, as a text in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclRule(pub acl::Rule);

impl Serialize for AclRule {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AclRule {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let rule = String::deserialize(d)?.parse();
        rule.map(AclRule).map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for AclRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AclRule".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Rule of an ACL.",
            "type": "string",
            "x-format": "acl-rule",
            "x-example": "deny tcp from any to 192.0.2.0/24 25,465",
        })
    }
}

/// Processors, as the kernel writes them: `2-5,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(BTreeSet<u16>);

impl std::ops::Deref for CpuList {
    type Target = BTreeSet<u16>;

    fn deref(&self) -> &BTreeSet<u16> {
        &self.0
    }
}

impl FromIterator<u16> for CpuList {
    fn from_iter<I: IntoIterator<Item = u16>>(cpus: I) -> Self {
        CpuList(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && last < CPUS).then_some(first..=last)
        };
        let parts = text.split(',').map(range);
        let ranges: Option<Vec<RangeInclusive<u16>>> = parts.collect();
        let ranges = ranges
            .ok_or_else(|| format!("`{text}` is no list of cores: expected such as `2-5,8`"))?;
        Ok(ranges.into_iter().flatten().collect())
    }
}

/// More processors than any system has.
const CPUS: u16 = 8192;

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<u16> = self.0.iter().copied().collect();
        for (n, run) in all.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                run => write!(f, "{comma}{}-{}", run[0], run[run.len() - 1])?,
            }
        }
        Ok(())
    }
}

/// How long something is held: `forever`, or a number of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldSessions {
    /// Until the path returns.
    #[default]
    Forever,
    /// So many seconds, at least 1.
    Seconds(u32),
}

impl Serialize for HoldSessions {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            HoldSessions::Forever => s.serialize_str("forever"),
            HoldSessions::Seconds(seconds) => s.serialize_str(&seconds.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for HoldSessions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // a number may be read as a text
        let text = String::deserialize(d)?;
        match (text.as_str(), text.parse()) {
            ("forever", _) => Ok(HoldSessions::Forever),
            (_, Ok(seconds @ 1..)) => Ok(HoldSessions::Seconds(seconds)),
            _ => Err(serde::de::Error::custom(format!(
                "`hold-sessions` is `{text}`: expected `forever`, or at least 1 second"
            ))),
        }
    }
}

/// A set of outer VLAN ids (0 to 4095) and untagged frames, written `untagged,100-199,300`. By default: everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SvlanSet {
    untagged: bool,
    ranges: Vec<(u16, u16)>,
}

impl Default for SvlanSet {
    fn default() -> Self {
        SvlanSet {
            untagged: true,
            ranges: vec![(0, 4095)],
        }
    }
}

impl SvlanSet {
    /// Whether frames with this outer VLAN id (`None`: untagged) belong to the set.
    pub fn contains(&self, s_vlan: Option<u16>) -> bool {
        match s_vlan {
            None => self.untagged,
            Some(id) => self.ranges.iter().any(|&(a, b)| (a..=b).contains(&id)),
        }
    }

    /// Every member, `None` first when untagged frames belong to the set.
    pub fn members(&self) -> impl Iterator<Item = Option<u16>> + '_ {
        let tagged = self.ranges.iter().flat_map(|&(a, b)| (a..=b).map(Some));
        self.untagged.then_some(None).into_iter().chain(tagged)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}` is not a set of S-VLANs: expected ids or ranges between 0 and 4095, or `untagged`, \
                 separated by commas, such as `untagged,100-199`"
            )
        };
        let mut set = SvlanSet {
            untagged: false,
            ranges: Vec::new(),
        };
        for part in text.split(',').map(str::trim) {
            if part == "untagged" {
                set.untagged = true;
                continue;
            }
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            let id = |s: &str| {
                s.trim()
                    .parse::<u16>()
                    .ok()
                    .filter(|&id| id <= 4095)
                    .ok_or_else(expected)
            };
            let (a, b) = (id(a)?, id(b)?);
            if a > b || set.ranges.iter().any(|&(c, d)| a <= d && c <= b) {
                return Err(expected());
            }
            set.ranges.push((a, b));
        }
        Ok(set)
    }
}

impl fmt::Display for SvlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tagged = self.ranges.iter().map(|&(a, b)| match a == b {
            true => a.to_string(),
            false => format!("{a}-{b}"),
        });
        let parts: Vec<String> = self
            .untagged
            .then(|| "untagged".to_owned())
            .into_iter()
            .chain(tagged)
            .collect();
        f.write_str(&parts.join(","))
    }
}

impl Serialize for SvlanSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SvlanSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // a single id may be written as a number
        SvlanSet::parse(&String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

/// The formats of texts in the model, with what each is.
const FORMATS: [(&str, &str); 19] = [
    ("ip", "an IP address such as 192.0.2.1 or 2001:db8::1"),
    ("ipv4", "an IPv4 address such as 192.0.2.1"),
    ("ipv6", "an IPv6 address such as 2001:db8::1"),
    ("ipv4-prefix", "an IPv4 prefix such as 192.0.2.0/24"),
    ("ipv6-prefix", "an IPv6 prefix such as 2001:db8::/40"),
    (
        "prefix",
        "an IPv4 or IPv6 prefix such as 192.0.2.0/24 or 2001:db8::/40",
    ),
    (
        "addresses",
        "an address, a prefix or a range such as 192.0.2.1, 192.0.2.0/28 or 192.0.2.10-192.0.2.20",
    ),
    (
        "interface-address",
        "an address with its prefix length such as 192.0.2.1/24",
    ),
    (
        "interface",
        "the name of a kernel interface: 1 to 15 octets",
    ),
    ("mac", "a unicast MAC address such as 02:53:00:00:00:01"),
    (
        "s-vlans",
        "VLAN ids or ranges between 0 and 4095, or `untagged`, separated by commas, such as untagged,100-199",
    ),
    (
        "acl-rule",
        "a rule such as `deny tcp from any to 192.0.2.0/24 25`",
    ),
    ("dscp", "a code point such as ef, af41, cs1 or 10"),
    (
        "portal",
        "an address such as https://portal.example/pay, of at most 255 characters without spaces",
    ),
    (
        "class",
        "1 to 32 letters, digits, `-`, `_` and `.`, such as voice",
    ),
    ("rule-number", "a number from 1 to 4294967295"),
    ("hold", "`forever`, or at least 1 second"),
    (
        "endpoint",
        "the path of a Unix socket, or an address and a TCP port such as 192.0.2.2:8806 or [2001:db8::2]:8806",
    ),
    (
        "template",
        "a text with variables such as {user}@isp.example or {port}:{svlan}.{cvlan}",
    ),
];

/// What a format is, for people.
pub(crate) fn describe(format: &str) -> &'static str {
    let found = FORMATS.iter().find(|(name, _)| *name == format);
    found.map_or("a text", |(_, what)| what)
}

/// Whether a text is of a format. Those of [`fault`] are not looked at.
pub(crate) fn check(format: &str, text: &str) -> bool {
    let prefix = |net: IpNet| net.addr() == net.network();
    match format {
        "ip" => text.parse::<IpAddr>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ipv4-prefix" => text.parse::<Ipv4Net>().is_ok_and(|net| prefix(net.into())),
        "ipv6-prefix" => text.parse::<Ipv6Net>().is_ok_and(|net| prefix(net.into())),
        "prefix" => text.parse::<IpNet>().is_ok_and(prefix),
        "addresses" => text.parse::<AddressRange>().is_ok(),
        "interface-address" => text.parse::<IpNet>().is_ok(),
        "interface" => {
            let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
            (1..=IFNAME_MAX).contains(&text.len())
                && text.chars().all(plain)
                && text != "."
                && text != ".."
        }
        "mac" => mac(text).is_some_and(|mac| mac[0] & 1 == 0 && mac != [0; 6]),
        "s-vlans" => SvlanSet::parse(text).is_ok(),
        "dscp" => acl::dscp_value(text).is_some(),
        "class" => acl::is_class_name(text),
        "portal" => is_portal(text),
        // as it is written by us: a zero in front would be another name for the same rule
        "rule-number" => text
            .parse()
            .is_ok_and(|n: u32| n > 0 && n.to_string() == text),
        "hold" => text == "forever" || text.parse::<u32>().is_ok_and(|seconds| seconds > 0),
        "endpoint" => {
            text.starts_with('/')
                || text
                    .parse::<std::net::SocketAddr>()
                    .is_ok_and(|at| at.port() > 0)
        }
        "device" => !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()),
        _ => true,
    }
}

/// Longest address of a portal: with it, the response that leads there fits into any TCP segment (RFC 9293 §3.7.1).
const LONGEST_PORTAL: usize = 255;

/// Whether a text can be the address to which subscribers are led (RFC 9110 §4.2): it stands in a field of HTTP as it is.
fn is_portal(text: &str) -> bool {
    let schemes = ["http://", "https://"];
    let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    has_host && text.len() <= LONGEST_PORTAL && text.chars().all(|c| c.is_ascii_graphic())
}

/// What is wrong with a text that is not of a format, if there is more to say than what is expected.
pub(crate) fn fault(format: &str, text: &str) -> Option<String> {
    match format {
        "template" => text.parse::<Template>().err(),
        "acl-rule" => match text.parse::<acl::Rule>() {
            Err(why) => Some(why.to_string()),
            Ok(rule) => of_one_subscriber(&rule),
        },
        _ => None,
    }
}

/// Why a rule can be one of a subscriber (NAS-Filter-Rule), and none of an ACL, which many share.
fn of_one_subscriber(rule: &acl::Rule) -> Option<String> {
    if rule.direction().is_some() {
        return Some("a rule of an ACL has no direction: expected no `in` or `out`, as `policy-up` and `policy-down` say it".into());
    }
    let is_assigned = [rule.source(), rule.destination()].contains(&acl::Address::Assigned);
    is_assigned.then(|| "a rule of an ACL does not know whose it is: expected `any`, as packets have an address of the subscriber on its side".into())
}

/// The longest name of a Linux interface (IFNAMSIZ less the end), in octets.
pub(crate) const IFNAME_MAX: usize = 15;

/// The octets of a MAC address written with colons.
pub fn mac(text: &str) -> Option<[u8; 6]> {
    let octets = text.split(':').map(|octet| match octet.len() {
        2 => u8::from_str_radix(octet, 16).ok(),
        _ => None,
    });
    octets.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svlan_sets() {
        let set = SvlanSet::parse("untagged, 100-199,300").unwrap();
        assert!(set.contains(None) && set.contains(Some(100)) && set.contains(Some(300)));
        assert!(!set.contains(Some(99)) && !set.contains(Some(200)));
        assert_eq!(set.to_string(), "untagged,100-199,300");
        assert_eq!(set.members().count(), 102);
        for wrong in ["", "4096", "200-100", "1-10,5", "x", "1--2"] {
            assert!(SvlanSet::parse(wrong).is_err(), "{wrong}");
        }
        assert!(!SvlanSet::parse("100").unwrap().contains(None));
    }

    #[test]
    fn cores_are_written_as_the_kernel_does() {
        for (text, cores, written) in [
            ("0", vec![0], "0"),
            ("8,2-5", vec![2, 3, 4, 5, 8], "2-5,8"),
            ("0-1, 2", vec![0, 1, 2], "0-2"),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.iter().copied().collect::<Vec<_>>(), cores);
            assert_eq!(list.to_string(), written);
        }
        for wrong in ["", "x", "5-2", "1-", "-1", "8192", "0-99999"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_or_one_of_each_family() {
        let read = |text: &str| serde_saphyr::from_str::<Addresses>(text);
        let both = read("[192.0.2.1, '2001:db8::1']").unwrap();
        let (four, six): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), "2001:db8::1".parse().unwrap());
        assert_eq!(both.towards([192, 0, 2, 9].into()), Some(four));
        assert_eq!(both.towards("::1".parse().unwrap()), Some(six));
        let one = read("2001:db8::1").unwrap();
        assert_eq!(one, read("['2001:db8::1']").unwrap());
        assert_eq!(one.towards(four), None);
        assert_eq!(one.iter().collect::<Vec<_>>(), [six]);
        for (wrong, says) in [
            ("192.0.2.300", "expected one, or a list"),
            ("[192.0.2.1, 192.0.2.2]", "same address family"),
            ("[]", "a list of one IPv4"),
            ("{ipv4: 192.0.2.1}", "an IP address, or a list"),
        ] {
            let said = read(wrong).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret: Secret = serde_saphyr::from_str("hunter2").unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
