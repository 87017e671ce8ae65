//! How much rules can take at most when they are compiled, without compiling them.

use super::{MOST_OCTETS, MOST_RULES, list, sets};
use crate::rule::{Ranges, Rule};

/// Octets of a list and of a rule besides what depends on groups: tables of ports, protocols and addresses.
const OF_LIST: usize = 512 << 10;
const OF_RULE: usize = 1 << 10;
/// Octets of a group besides its words: 64 rules with two IPv6 prefixes, and what leads there.
const OF_GROUP: usize = 64 * 64 + 64;

/// Whether rules fit into a classifier in any case. If not, only compiling them tells. Takes some 20 ns for each rule and each port.
pub fn surely_fits(rules: &[Rule]) -> bool {
    let families = [Rule::concerns_ipv4, Rule::concerns_ipv6];
    let most = families.map(|concerns| {
        let of_family: Vec<&Rule> = rules.iter().filter(|rule| concerns(rule)).collect();
        most_octets(&of_family)
    });
    let most: Option<usize> = most.into_iter().sum();
    rules.len() <= MOST_RULES && most.is_some_and(|octets| octets <= MOST_OCTETS)
}

/// The most octets of what is compiled for one family. `None`: the rules may tell too many numbers apart.
fn most_octets(rules: &[&Rule]) -> Option<usize> {
    let rows = most_rows(rules);
    // each prefix is one entry, and a further one for each 64 rules; an entry begins at most one group. Both sides have some for all addresses
    let lists = rules.len() / list::MOST_RULES + 1;
    let groups = rules.len() + rules.len() / 64 + 8 * lists;
    let of_groups = groups * (rows * size_of::<u64>() + OF_GROUP);
    (rows < sets::Rows::MOST).then_some(of_groups + rules.len() * OF_RULE + lists * OF_LIST)
}

/// The most rows of a list: intervals of ports and lengths, protocols, and with few exceptions all flags and code points.
fn most_rows(rules: &[&Rule]) -> usize {
    let bounds = |ranges: &dyn Fn(&Rule) -> Vec<(u16, u16)>| {
        let ranges = rules.iter().flat_map(|rule| ranges(rule));
        let ends = ranges.flat_map(|(low, high)| [u32::from(low), u32::from(high) + 1]);
        distinct(ends.collect())
    };
    let of = |ranges: &Ranges| ranges.iter().collect::<Vec<_>>();
    let protocols = rules.iter().filter_map(|rule| rule.protocol);
    let flags_and_code_points = 2 * 65 + 64;
    distinct(protocols.map(u32::from).collect())
        + bounds(&|rule| of(&rule.destination_ports))
        + bounds(&|rule| of(&rule.source_ports))
        + 2 * bounds(&|rule| of(&rule.icmp_types))
        + bounds(&|rule| rule.length.into_iter().collect())
        + flags_and_code_points
        + 8
}

fn distinct(mut numbers: Vec<u32>) -> usize {
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Classifier;

    fn rules(count: usize, text: impl Fn(usize) -> String) -> Vec<Rule> {
        (0..count).map(|n| text(n).parse().unwrap()).collect()
    }

    /// The most that rules take, which is not less than what they do.
    fn most(rules: &[Rule]) -> usize {
        let [v4, v6] = [Rule::concerns_ipv4, Rule::concerns_ipv6].map(|concerns| {
            let of_family: Vec<&Rule> = rules.iter().filter(|rule| concerns(rule)).collect();
            most_octets(&of_family).unwrap()
        });
        let octets = Classifier::new(rules).unwrap().octets();
        assert!(v4 + v6 >= octets, "{v4} + {v6}, {octets}");
        v4 + v6
    }

    #[test]
    fn rules_take_no_more_than_their_bound() {
        let places = |n: usize| (n * 7919 % 220 + 1, n / 7 % 256, n % 256);
        let host = |n| {
            let (a, b, c) = places(n);
            format!("deny tcp from any to {a}.{b}.{c}.9 {}", n % 100)
        };
        let nested = |n: usize| {
            let (a, length) = (1 + n % 200, 8 + n % 25);
            let mask = u32::MAX << (32 - length);
            let to = std::net::Ipv4Addr::from(u32::from_be_bytes([a as u8, 85, 85, 85]) & mask);
            format!(
                "permit udp from 10.0.0.0/8 {} to {to}/{length}",
                n * 31 % 65_536
            )
        };
        let v6 = |n: usize| {
            format!(
                "deny tcp from 2001:db8:{n:x}::/48 to 2001:db8::{n:x} 1-{}",
                n + 1
            )
        };
        let everywhere = |n: usize| format!("deny udp from any {n} to any dscp ef length {n}");
        let icmp = |n: usize| {
            format!(
                "deny icmp from 10.{}.{}.0/24 to any icmptypes {}",
                n / 256,
                n % 256,
                n % 256
            )
        };
        for count in [1, 60, 900] {
            most(&rules(count, host));
            most(&rules(count, nested));
            most(&rules(count, v6));
            most(&rules(count, everywhere));
            most(&rules(count, icmp));
        }
        assert!(surely_fits(&[]));
        // as many as a policy may have, with a hundred ports
        assert!(surely_fits(&rules(MOST_RULES, host)));
        assert!(!surely_fits(&rules(MOST_RULES + 1, host)));
        assert!(
            !surely_fits(&rules(4000, v6)),
            "they tell 4,000 ports apart"
        );
    }
}
