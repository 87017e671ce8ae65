//! Ranges of addresses.

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Addresses of one family, written as an address, a prefix, or first and last address: `192.0.2.1`, `192.0.2.0/28`,
/// `192.0.2.10-192.0.2.20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// Its addresses, from the first to the last.
    pub fn addresses(&self) -> RangeInclusive<IpAddr> {
        self.first..=self.last
    }

    /// Whether it has addresses of a prefix.
    pub fn overlaps(&self, net: IpNet) -> bool {
        let is_same_family = self.first.is_ipv4() == net.addr().is_ipv4();
        is_same_family && self.first <= net.broadcast() && net.network() <= self.last
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once('-') {
            Some((first, last)) => first.parse().ok().zip(last.parse().ok()),
            None if text.contains('/') => {
                let net = text.parse::<IpNet>().ok();
                let net = net.filter(|net| net.addr() == net.network());
                net.map(|net| (net.network(), net.broadcast()))
            }
            None => text.parse().ok().map(|address| (address, address)),
        };
        let range = parsed.map(|(first, last): (IpAddr, IpAddr)| AddressRange { first, last });
        let in_order = |range: &AddressRange| {
            range.first.is_ipv4() == range.last.is_ipv4() && range.first <= range.last
        };
        range.filter(in_order).ok_or_else(|| {
            format!("`{text}` is no address, no prefix and no range: expected such as 192.0.2.1, 192.0.2.0/28 or \
                192.0.2.10-192.0.2.20")
        })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = 0..=if self.first.is_ipv4() { 32 } else { 128 };
        let nets = lengths.filter_map(|length| IpNet::new(self.first, length).ok());
        let mut nets = nets.filter(|net| net.network() == self.first);
        match nets.find(|net| net.broadcast() == self.last) {
            Some(net) if net.prefix_len() == net.max_prefix_len() => self.first.fmt(f),
            Some(net) => net.fmt(f),
            None => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl Serialize for AddressRange {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressRange {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_prefixes_and_ranges_are_read_and_written() {
        for (text, count) in [
            ("192.0.2.1", 1),
            ("192.0.2.0/28", 16),
            ("192.0.2.10-192.0.2.20", 11),
            ("2001:db8::1", 1),
        ] {
            let range: AddressRange = text.parse().unwrap();
            assert_eq!(range.to_string(), text);
            let (first, last) = range.addresses().into_inner();
            if let (IpAddr::V4(first), IpAddr::V4(last)) = (first, last) {
                assert_eq!(last.to_bits() - first.to_bits() + 1, count);
            }
        }
        let range: AddressRange = "2001:db8::-2001:db8:0:ff:ffff:ffff:ffff:ffff"
            .parse()
            .unwrap();
        assert_eq!(range.to_string(), "2001:db8::/56", "as it is shortest");
        for wrong in [
            "",
            "x",
            "192.0.2.1/24",
            "192.0.2.9-192.0.2.1",
            "192.0.2.1-2001:db8::1",
            "192.0.2.1-20",
        ] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_overlaps_the_prefixes_that_it_touches() {
        let range: AddressRange = "10.0.0.250-10.0.1.3".parse().unwrap();
        let overlaps = |net: &str| range.overlaps(net.parse().unwrap());
        assert!(overlaps("10.0.0.0/24") && overlaps("10.0.1.0/30") && overlaps("10.0.0.0/8"));
        assert!(!overlaps("10.0.2.0/24") && !overlaps("10.0.0.0/25") && !overlaps("::/0"));
    }
}
