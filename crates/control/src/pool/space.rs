//! Arithmetic of a pool: its prefix consists of prefix blocks, and these of units.

use super::BadPool;
use config::model::{MOST_BLOCK_BITS, MOST_UNIT_BITS};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;
use ipnet::IpNet;

/// Prefix of a pool with the lengths of its blocks and units. Units are counted from the prefix's first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    prefix: IpNet,
    net_length: u8,
    unit_length: u8,
}

impl Space {
    pub fn new(prefix: IpNet, net_length: u8, unit_length: u8) -> Result<Self, BadPool> {
        let length = prefix.prefix_len();
        let fits = (length..=unit_length).contains(&net_length)
            && unit_length <= prefix.max_prefix_len()
            && net_length - length <= MOST_BLOCK_BITS;
        if !fits {
            return Err(BadPool::NetLength {
                net: net_length,
                prefix: length,
                unit: unit_length,
            });
        }
        if unit_length - net_length > MOST_UNIT_BITS {
            return Err(BadPool::NetTooLarge(net_length));
        }
        Ok(Space {
            prefix: prefix.trunc(),
            net_length,
            unit_length,
        })
    }

    /// Number of units of a block.
    pub fn net_units(self) -> u32 {
        1 << (self.unit_length - self.net_length)
    }

    /// Number of blocks.
    pub fn net_count(self) -> u64 {
        1 << (self.net_length - self.prefix.prefix_len())
    }

    /// Number of units.
    pub fn units(self) -> u128 {
        u128::from(self.net_count()) * u128::from(self.net_units())
    }

    /// Whether the first and the last unit of a block are never allocated: some home routers reject .0 and .255 as their own address.
    pub fn skips_ends(self) -> bool {
        let is_ipv4 = matches!(self.prefix, IpNet::V4(_));
        is_ipv4 && self.unit_length == 32 && self.net_units() > 2
    }

    /// Unit with this number.
    pub fn unit(self, number: u128) -> IpNet {
        self.at(number, self.unit_length)
    }

    /// Block with this number.
    pub fn net(self, number: u64) -> IpNet {
        let first = u128::from(number) * u128::from(self.net_units());
        self.at(first, self.net_length)
    }

    /// Number of a unit; `None` for a prefix outside the pool or of another length.
    pub fn number(self, unit: IpNet) -> Option<u128> {
        let is_unit = unit.prefix_len() == self.unit_length && self.prefix.contains(&unit);
        is_unit.then(|| self.number_of(unit.network()))
    }

    /// Numbers of the units that have addresses of a range; `None` if there is none.
    pub fn numbers(self, first: IpAddr, last: IpAddr) -> Option<RangeInclusive<u128>> {
        let (lowest, highest) = (self.prefix.network(), self.prefix.broadcast());
        let is_apart = first.is_ipv4() != lowest.is_ipv4() || last < lowest || first > highest;
        let (first, last) = (first.max(lowest), last.min(highest));
        (!is_apart).then(|| self.number_of(first)..=self.number_of(last))
    }

    /// Number of the unit that has an address of the pool.
    fn number_of(self, address: IpAddr) -> u128 {
        (bits(address) - bits(self.prefix.network())) >> self.shift()
    }

    fn at(self, number: u128, length: u8) -> IpNet {
        let bits = bits(self.prefix.network()) + (number << self.shift());
        let address = match self.prefix {
            IpNet::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            IpNet::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        IpNet::new_assert(address, length)
    }

    fn shift(self) -> u8 {
        self.prefix.max_prefix_len() - self.unit_length
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_every_length_have_numbers() {
        for (prefix, net, unit, number, text) in [
            ("10.0.0.0/8", 24, 32, 0x1_0203, "10.1.2.3/32"),
            ("2001:db8::/32", 56, 64, 0x1_0001, "2001:db8:1:1::/64"),
            ("2001:db8::/32", 48, 56, 0x102, "2001:db8:1:200::/56"),
            ("2001:db8::/32", 40, 44, 0xfff, "2001:db8:fff0::/44"),
            ("2001:db8::/64", 120, 128, 0x1_0002, "2001:db8::1:2/128"),
            (
                "2001:db8::/64",
                120,
                128,
                u64::MAX.into(),
                "2001:db8::ffff:ffff:ffff:ffff/128",
            ),
        ] {
            let space = Space::new(prefix.parse().unwrap(), net, unit).unwrap();
            let unit: IpNet = text.parse().unwrap();
            assert_eq!(space.unit(number), unit);
            assert_eq!(space.number(unit), Some(number), "{text}");
            let block = space.net((number / u128::from(space.net_units())) as u64);
            assert!(block.contains(&unit) && block.prefix_len() == net);
        }
    }

    #[test]
    fn a_range_covers_the_units_that_it_touches() {
        let space = Space::new("2001:db8::/40".parse().unwrap(), 48, 56).unwrap();
        let numbers =
            |first: &str, last: &str| space.numbers(first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(numbers("2001:db8::1", "2001:db8:0:100::"), Some(0..=1));
        assert_eq!(numbers("::", "2001:db8::"), Some(0..=0));
        assert_eq!(
            numbers("2001:db8:ff:ff00::", "ffff::"),
            Some(0xffff..=0xffff)
        );
        assert_eq!(numbers("2001:db8:100::", "ffff::"), None);
        assert_eq!(numbers("10.0.0.1", "10.0.0.2"), None);
    }
}
