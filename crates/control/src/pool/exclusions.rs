//! Units that a pool does not allocate.

use super::space::Space;
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Numbers of units, as ranges that neither overlap nor touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges(Vec<RangeInclusive<u128>>);

impl Ranges {
    fn new(ranges: impl Iterator<Item = RangeInclusive<u128>>) -> Self {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u128>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => merged.push(range),
            }
        }
        Ranges(merged)
    }

    /// Position of the first range that does not end before a number.
    fn from(&self, number: u128) -> usize {
        self.0.partition_point(|range| *range.end() < number)
    }

    fn contains(&self, number: u128) -> bool {
        let range = self.0.get(self.from(number));
        range.is_some_and(|range| range.contains(&number))
    }

    /// The parts of the ranges that are within another one.
    fn within(&self, outer: RangeInclusive<u128>) -> impl Iterator<Item = RangeInclusive<u128>> {
        let (first, last) = outer.into_inner();
        let ranges = self.0[self.from(first)..].iter();
        let ranges = ranges.take_while(move |range| *range.start() <= last);
        ranges.map(move |range| *range.start().max(&first)..=*range.end().min(&last))
    }
}

/// Units that a pool does not allocate by itself.
#[derive(Clone, Debug)]
pub(super) struct Exclusions {
    space: Space,
    /// The gateway's own, which nobody gets.
    own: Ranges,
    /// These and the configured ones, which are allocated on request.
    all: Ranges,
}

impl Exclusions {
    pub fn new(space: Space, own: &[IpAddr], excluded: &[RangeInclusive<IpAddr>]) -> Self {
        let own = own.iter().map(|address| *address..=*address);
        let own: Vec<_> = own.collect();
        let numbers = |range: &RangeInclusive<IpAddr>| space.numbers(*range.start(), *range.end());
        Exclusions {
            space,
            all: Ranges::new(own.iter().chain(excluded).filter_map(numbers)),
            own: Ranges::new(own.iter().filter_map(numbers)),
        }
    }

    /// Whether nobody gets a unit.
    pub fn is_own(&self, number: u128) -> bool {
        self.is_end(number) || self.own.contains(number)
    }

    /// Whether a unit is allocated on request only, or never.
    pub fn contains(&self, number: u128) -> bool {
        self.is_end(number) || self.all.contains(number)
    }

    /// Number of units that are allocated without request, or the largest number if there are more.
    pub fn usable(&self) -> u64 {
        let usable = self.usable_within(0..=self.space.units() - 1);
        usable.try_into().unwrap_or(u64::MAX)
    }

    /// Number of blocks of which units are allocated without request.
    pub fn usable_nets(&self) -> u64 {
        let units = u128::from(self.space.net_units());
        let ends = u128::from(self.space.skips_ends());
        // ranges do not touch, so a block without a usable unit is inside one of them, but for its ends
        let excluded = self.all.0.iter().map(|range| {
            let first = range.start().saturating_sub(ends).div_ceil(units);
            let behind = (range.end() + 1 + ends) / units;
            behind.saturating_sub(first) as u64
        });
        self.space.net_count() - excluded.sum::<u64>()
    }

    /// Number of a block's units that are allocated without request.
    pub fn usable_of_net(&self, net: u64) -> u128 {
        let units = u128::from(self.space.net_units());
        let first = u128::from(net) * units;
        self.usable_within(first..=first + units - 1)
    }

    /// The first block from a number on of which units are allocated without request. Excluded ranges are passed over as a whole.
    pub fn next_usable_net(&self, from: u64) -> Option<u64> {
        let units = u128::from(self.space.net_units());
        let mut net = from;
        while net < self.space.net_count() {
            if self.usable_of_net(net) > 0 {
                return Some(net);
            }
            let inner = u128::from(net) * units + u128::from(self.space.skips_ends());
            let range = self.all.0.get(self.all.from(inner));
            let behind = range.map_or(0, |range| ((range.end() + 1) / units) as u64);
            net = behind.max(net + 1);
        }
        None
    }

    fn usable_within(&self, range: RangeInclusive<u128>) -> u128 {
        let excluded = self.all.within(range.clone());
        let excluded: u128 = excluded.map(|part| self.without_ends(&part)).sum();
        self.without_ends(&range) - excluded
    }

    fn is_end(&self, number: u128) -> bool {
        let units = u128::from(self.space.net_units());
        self.space.skips_ends() && (number.is_multiple_of(units) || number % units == units - 1)
    }

    /// Number of units of a range that are not the first or last one of their block, where these count.
    fn without_ends(&self, range: &RangeInclusive<u128>) -> u128 {
        let ends = self.ends_before(range.end() + 1) - self.ends_before(*range.start());
        range.end() + 1 - range.start() - ends
    }

    /// Number of first and last units of blocks before a unit.
    fn ends_before(&self, number: u128) -> u128 {
        let units = u128::from(self.space.net_units());
        match self.space.skips_ends() {
            true => number / units * 2 + u128::from(!number.is_multiple_of(units)),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Blocks of four addresses and of one prefix, compared with a look at each unit.
        #[test]
        fn counts_are_those_of_the_units(
            ranges in prop::collection::vec((0u8..70, 0u8..70), 0..6),
            own in prop::collection::vec(0u8..70, 0..4),
            length in 28u8..=32,
        ) {
            let space = Space::new("10.0.0.0/26".parse().unwrap(), length, 32).unwrap();
            let address = |host: u8| IpAddr::from([10, 0, 0, host]);
            let range = |(a, b): &(u8, u8)| address(*a.min(b))..=address(*a.max(b));
            let ranges: Vec<_> = ranges.iter().map(range).collect();
            let own: Vec<_> = own.into_iter().map(address).collect();
            let exclusions = Exclusions::new(space, &own, &ranges);
            let mut usable = 0;
            for number in 0..64 {
                let at = address(number);
                let is_end = exclusions.is_end(number.into());
                let is_own = is_end || own.contains(&at);
                let is_excluded = is_own || ranges.iter().any(|range| range.contains(&at));
                prop_assert_eq!(exclusions.is_own(number.into()), is_own);
                prop_assert_eq!(exclusions.contains(number.into()), is_excluded);
                usable += u64::from(!is_excluded);
            }
            prop_assert_eq!(exclusions.usable(), usable);
            let nets = 0..space.net_count();
            let usable_nets = nets.clone().filter(|net| exclusions.usable_of_net(*net) > 0);
            prop_assert_eq!(exclusions.usable_nets(), usable_nets.count() as u64);
            let of_nets = nets.clone().map(|net| exclusions.usable_of_net(net));
            prop_assert_eq!(of_nets.sum::<u128>(), usable.into());
            for net in nets.clone() {
                let next = (net..nets.end).find(|net| exclusions.usable_of_net(*net) > 0);
                prop_assert_eq!(exclusions.next_usable_net(net), next);
            }
        }
    }
}
