//! Octets and packets of each address family in accounting records. No standard has attributes for them, but vendors have.

use wire::radius::{Kind, Packet};

use crate::message::{AccountingRecord, Traffic};

/// Vendor whose attributes for address families accounting records have, beside the standard ones, which count both families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FamilyCounters {
    /// None.
    #[default]
    None,
    /// ERX-IPv6-Acct-…: those of IPv6.
    Erx,
    /// Acct-…-IPv4-… and Acct-…-IPv6-… of Redback.
    Redback,
}

/// Attributes for one direction: octets below 2^32, those above in units of 2^32, and packets.
#[derive(Clone, Copy)]
pub(crate) struct Counters {
    pub octets: Kind,
    pub gigawords: Kind,
    pub packets: Kind,
}

const fn counters(vendor: u32, [octets, gigawords, packets]: [u8; 3]) -> Counters {
    Counters {
        octets: Kind {
            vendor,
            number: octets,
        },
        gigawords: Kind {
            vendor,
            number: gigawords,
        },
        packets: Kind {
            vendor,
            number: packets,
        },
    }
}

const ERX: u32 = 4874;
const REDBACK: u32 = 2352;

/// From the subscriber and to the subscriber.
type BothWays = [Counters; 2];

const ERX_IPV6: BothWays = [
    counters(ERX, [151, 155, 153]),
    counters(ERX, [152, 156, 154]),
];
const REDBACK_IPV4: BothWays = [
    counters(REDBACK, [214, 218, 216]),
    counters(REDBACK, [215, 219, 217]),
];
const REDBACK_IPV6: BothWays = [
    counters(REDBACK, [220, 224, 222]),
    counters(REDBACK, [221, 225, 223]),
];

/// Adds the counters of address families, if they are known.
pub(crate) fn push(packet: &mut Packet, counters: FamilyCounters, record: &AccountingRecord) {
    let Some(families) = record.families else {
        return;
    };
    let [ipv4, ipv6] = match counters {
        FamilyCounters::None => return,
        FamilyCounters::Erx => [None, Some(ERX_IPV6)],
        FamilyCounters::Redback => [Some(REDBACK_IPV4), Some(REDBACK_IPV6)],
    };
    for (both_ways, family) in [(ipv4, families.ipv4), (ipv6, families.ipv6)] {
        let Some([input, output]) = both_ways else {
            continue;
        };
        push_traffic(packet, input, family.input);
        push_traffic(packet, output, family.output);
    }
}

/// Adds the counters of one direction.
pub(crate) fn push_traffic(packet: &mut Packet, counters: Counters, traffic: Traffic) {
    packet.push(counters.octets, traffic.octets as u32);
    packet.push(counters.gigawords, (traffic.octets >> 32) as u32);
    packet.push(counters.packets, traffic.packets as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;

    /// The numbers are those of the shipped dictionaries.
    #[test]
    fn attributes_have_their_vendors_names() {
        let dictionary = Dictionary::shipped();
        let number = |name: &str| {
            let id = dictionary.find(name)?.id?;
            Some((id.vendor, id.number))
        };
        let named = |[input, output]: BothWays, name: &dyn Fn(&str, &str) -> String| {
            for (counters, direction) in [(input, "Input"), (output, "Output")] {
                for (kind, what) in [
                    (counters.octets, "Octets"),
                    (counters.gigawords, "Gigawords"),
                    (counters.packets, "Packets"),
                ] {
                    let name = name(direction, what);
                    let expected = Some((kind.vendor, u32::from(kind.number)));
                    assert_eq!(number(&name), expected, "{name}");
                }
            }
        };
        named(ERX_IPV6, &|direction, what| {
            format!("ERX-IPv6-Acct-{direction}-{what}")
        });
        named(REDBACK_IPV4, &|direction, what| {
            format!("Acct-{direction}-IPv4-{what}")
        });
        named(REDBACK_IPV6, &|direction, what| {
            format!("Acct-{direction}-IPv6-{what}")
        });
    }
}
