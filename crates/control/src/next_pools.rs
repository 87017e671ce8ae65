//! Pools that RADIUS servers have changed and that count from the subscriber's next connection on, in memory and in the store.

use crate::addresses::Kind;
use crate::assigned::Assigned;
use crate::records::{extend, from_bytes_with_rest, take, to_bytes};
use crate::remembered::{KeyLine, Remember, Remembered};
use aaa::AccessAccept;
use serde::{Deserialize, Serialize};

/// Prefix of the keys of changed pools, followed by an encoded [`PoolsKey`].
pub(crate) const NEXT_POOLS_PREFIX: &[u8] = b"next-pools/";

/// Names of pools, of the kinds of addresses of which one is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pools([Option<String>; Kind::ALL.len()]);

impl Pools {
    /// Pools that an answer or a change names.
    pub fn of(accept: &AccessAccept) -> Self {
        Pools(Kind::ALL.map(|kind| Assigned::of(accept, kind).pool.cloned()))
    }

    pub fn is_empty(&self) -> bool {
        *self == Pools::default()
    }

    /// These pools, and others of the kinds of which none of these is.
    pub fn over(&self, others: &Pools) -> Self {
        Pools(Kind::ALL.map(|kind| {
            let own = self.0[kind as usize].clone();
            own.or_else(|| others.0[kind as usize].clone())
        }))
    }

    /// The pools for which `keep` returns true.
    pub fn filtered(&self, keep: impl Fn(Kind, &String) -> bool) -> Self {
        Pools(Kind::ALL.map(|kind| {
            let own = self.0[kind as usize].as_ref();
            own.filter(|pool| keep(kind, pool)).cloned()
        }))
    }

    /// Pools of the kinds of which a newer answer says nothing. An address says what a pool says, and more.
    pub fn unless_said(&self, accept: &AccessAccept) -> Self {
        self.filtered(|kind, _| Assigned::of(accept, kind).is_empty())
    }

    /// An answer with these pools in place of what it says of their kinds.
    pub fn in_place(&self, accept: &AccessAccept) -> AccessAccept {
        let mut accept = accept.clone();
        let [ipv4, link, delegated, address] = self.0.clone();
        if ipv4.is_some() {
            (accept.framed_ip, accept.framed_pool) = (None, ipv4);
        }
        if link.is_some() {
            (accept.framed_ipv6_prefixes, accept.framed_ipv6_pool) = (Vec::new(), link);
        }
        if delegated.is_some() {
            (accept.delegated_prefixes, accept.delegated_pool) = (Vec::new(), delegated);
        }
        if address.is_some() {
            (accept.framed_ipv6_address, accept.ipv6_address_pool) = (None, address);
        }
        accept
    }

    /// Text for operators, for each kind.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let named = Kind::ALL.into_iter().zip(&self.0);
        named.filter_map(|(kind, pool)| Some(format!("{} {}", pool_name(kind), pool.as_ref()?)))
    }
}

/// What operators call the pool of a kind of addresses.
fn pool_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ipv4Address => "IPv4 pool",
        Kind::Link => "IPv6 pool",
        Kind::Delegated => "delegated pool",
        Kind::Ipv6Address => "IPv6 address pool",
    }
}

/// Subscriber of changed pools: the user name, and the access line if that is what its access profile knows it by. The MAC
/// address is not part of it: another router must not undo the change.
#[derive(Debug, Serialize)]
pub(crate) struct PoolsKey<'a> {
    pub servers: Option<&'a str>,
    pub username: &'a [u8],
    pub line: Option<KeyLine<'a>>,
}

/// [`NextPools`] in the store, with the pools of IPv4 addresses and of links. The others follow, if there are any.
#[derive(Serialize, Deserialize)]
struct Stored {
    since: u32,
    first: [Option<String>; 2],
}

/// Changed pools of a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NextPools {
    /// Time of the change, or of the last connection for which it counted, in seconds since 1970.
    pub since: u32,
    pub pools: Pools,
}

impl NextPools {
    /// Decodes a value of the store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (_, stored, mut rest): (_, Stored, _) = from_bytes_with_rest(bytes)?;
        let [ipv4, link] = stored.first;
        let [delegated, address] = match rest.is_empty() {
            true => [None, None],
            false => take(&mut rest)?,
        };
        Ok(NextPools {
            since: stored.since,
            pools: Pools([ipv4, link, delegated, address]),
        })
    }
}

impl Remember for NextPools {
    const PREFIX: &'static [u8] = NEXT_POOLS_PREFIX;

    fn since(&self) -> u32 {
        self.since
    }

    fn to_bytes(&self) -> Vec<u8> {
        let [ipv4, link, delegated, address] = self.pools.0.clone();
        let stored = to_bytes(&Stored {
            since: self.since,
            first: [ipv4, link],
        });
        match [delegated, address] {
            [None, None] => stored,
            others => extend(&others, stored),
        }
    }
}

/// Changed pools of all subscribers.
pub(crate) type AllNextPools = Remembered<NextPools>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pools in the order of [`Kind::ALL`]; an empty name is none.
    fn pools(names: [&str; 4]) -> Pools {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Pools(names.map(name))
    }

    #[test]
    fn a_newer_answer_counts_for_the_kinds_of_which_it_says_something() {
        let all = pools(["a", "b", "c", "d"]);
        let said = |accept: AccessAccept| all.unless_said(&accept);
        assert_eq!(said(AccessAccept::default()), all);
        let address = AccessAccept {
            framed_ip: Some([192, 0, 2, 7].into()),
            ..AccessAccept::default()
        };
        assert_eq!(said(address), pools(["", "b", "c", "d"]));
        let pool = AccessAccept {
            framed_ipv6_pool: Some("e".into()),
            ..AccessAccept::default()
        };
        assert_eq!(said(pool), pools(["a", "", "c", "d"]));
        let prefix = AccessAccept {
            delegated_prefixes: vec!["2001:db8:7700::/56".parse().unwrap()],
            ..AccessAccept::default()
        };
        assert_eq!(said(prefix), pools(["a", "b", "", "d"]));
    }

    #[test]
    fn changed_pools_stand_for_what_an_older_answer_says_of_their_kind() {
        let accept = AccessAccept {
            framed_ip: Some([192, 0, 2, 7].into()),
            framed_ipv6_pool: Some("e".into()),
            delegated_prefixes: vec!["2001:db8:7700::/56".parse().unwrap()],
            framed_ipv6_address: Some("2001:db8::7".parse().unwrap()),
            ..AccessAccept::default()
        };
        let changed = pools(["a", "", "c", ""]).in_place(&accept);
        let expected = AccessAccept {
            framed_pool: Some("a".into()),
            framed_ipv6_pool: Some("e".into()),
            delegated_pool: Some("c".into()),
            framed_ipv6_address: accept.framed_ipv6_address,
            ..AccessAccept::default()
        };
        assert_eq!(changed, expected);
        assert_eq!(
            pools(["", "", "", "d"])
                .in_place(&accept)
                .framed_ipv6_address,
            None
        );
    }

    #[test]
    fn changed_pools_are_stored_and_read_again() {
        for names in [
            ["walled", "", "", ""],
            ["", "b", "c", ""],
            ["", "", "", "d"],
        ] {
            let pools = pools(names);
            let next = NextPools { since: 7, pools };
            assert_eq!(NextPools::from_bytes(&next.to_bytes()), Ok(next.clone()));
            assert!(NextPools::from_bytes(&next.to_bytes()[..3]).is_err());
        }
    }

    #[test]
    fn a_record_of_version_8_is_read() {
        let pools = pools(["walled", "", "", ""]);
        let stored = b"\x08\x07\x01\x06walled\x00";
        assert_eq!(
            NextPools::from_bytes(stored),
            Ok(NextPools { since: 7, pools })
        );
    }
}
