//! The filter of sessions: arguments that the table of sessions and the action that ends many of them share.

use super::{Argument, Takes};

/// Arguments that [`crate::SessionFilter::read`] reads. A session is meant if everything that is given is true of it.
pub const SESSION_FILTER: [Argument; 17] = [
    filter(
        "state",
        Takes::Word(&["connecting", "online", "closing"]),
        "Sessions that have come this far",
    ),
    filter("user", Takes::Subscriber, "Sessions of this user name"),
    filter(
        "user-prefix",
        Takes::Text,
        "Sessions whose user name begins with this",
    ),
    filter(
        "network-instance",
        Takes::Text,
        "Sessions with addresses in this network instance (VRF)",
    ),
    filter(
        "user-plane",
        Takes::UserPlane,
        "Sessions on this user plane",
    ),
    filter("group", Takes::Text, "Sessions of this subscriber group"),
    filter("port", Takes::Text, "Sessions on access ports of this name"),
    filter(
        "s-tag",
        Takes::Number(0, 4095),
        "Sessions with this outer VLAN id",
    ),
    filter(
        "c-tag",
        Takes::Number(0, 4095),
        "Sessions with this inner VLAN id",
    ),
    filter(
        "profile",
        Takes::Text,
        "Sessions with this subscriber profile",
    ),
    filter(
        "policy",
        Takes::Text,
        "Sessions with this traffic policy in either direction",
    ),
    filter(
        "service",
        Takes::Text,
        "Sessions that asked for this PPPoE service name",
    ),
    filter(
        "address",
        Takes::Address,
        "Sessions with an address in this prefix, or with a prefix that has this address",
    ),
    filter(
        "mac",
        Takes::Text,
        "Sessions with this MAC address, or one that begins with these octets",
    ),
    filter("circuit-id", Takes::Text, "Sessions with this circuit id"),
    filter(
        "online-before",
        Takes::Time,
        "Sessions that have been online since before this time; -2h: for more than two hours",
    ),
    filter(
        "online-after",
        Takes::Time,
        "Sessions that came online at this time or later",
    ),
];

const fn filter(name: &'static str, takes: Takes, about: &'static str) -> Argument {
    Argument::new(name, takes, about).named()
}

/// The filter with further arguments behind it; `ALL` is the number of all of them.
pub(super) const fn filter_with<const MORE: usize, const ALL: usize>(
    more: [Argument; MORE],
) -> [Argument; ALL] {
    let mut all = [SESSION_FILTER[0]; ALL];
    let mut place = 0;
    while place < ALL {
        all[place] = if place < SESSION_FILTER.len() {
            SESSION_FILTER[place]
        } else {
            more[place - SESSION_FILTER.len()]
        };
        place += 1;
    }
    all
}
