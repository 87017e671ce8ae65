//! Pools that RADIUS servers have changed and that count from the subscriber's next connection on, in memory and in the store.

use crate::records::{from_bytes, to_bytes};
use crate::remembered::{KeyLine, Remember, Remembered};
use aaa::AccessAccept;
use serde::{Deserialize, Serialize};

/// Prefix of the keys of changed pools, followed by an encoded [`PoolsKey`].
pub(crate) const NEXT_POOLS_PREFIX: &[u8] = b"next-pools/";

/// Names of pools, of the families of which one is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pools {
    pub ipv4: Option<String>,
    pub ipv6: Option<String>,
}

impl Pools {
    /// Pools that an answer or a change names.
    pub fn of(accept: &AccessAccept) -> Self {
        Pools {
            ipv4: accept.framed_pool.clone(),
            ipv6: accept.framed_ipv6_pool.clone(),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Pools::default()
    }

    /// These pools, and others of the families of which none of these is.
    pub fn over(&self, others: &Pools) -> Self {
        Pools {
            ipv4: self.ipv4.clone().or_else(|| others.ipv4.clone()),
            ipv6: self.ipv6.clone().or_else(|| others.ipv6.clone()),
        }
    }

    /// Pools of the families of which a newer answer says nothing. An address says what a pool says, and more.
    pub fn unless_said(&self, accept: &AccessAccept) -> Self {
        let ipv4 = accept.framed_ip.is_some() || accept.framed_pool.is_some();
        let ipv6 = !accept.framed_ipv6_prefixes.is_empty() || accept.framed_ipv6_pool.is_some();
        Pools {
            ipv4: self.ipv4.clone().filter(|_| !ipv4),
            ipv6: self.ipv6.clone().filter(|_| !ipv6),
        }
    }

    /// An answer with these pools in place of what it says of their families.
    pub fn in_place(&self, accept: &AccessAccept) -> AccessAccept {
        let mut accept = accept.clone();
        if let Some(pool) = &self.ipv4 {
            (accept.framed_ip, accept.framed_pool) = (None, Some(pool.clone()));
        }
        if let Some(pool) = &self.ipv6 {
            accept.framed_ipv6_prefixes.clear();
            accept.framed_ipv6_pool = Some(pool.clone());
        }
        accept
    }

    /// Text for operators, for each family.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let ipv4 = self.ipv4.iter().map(|pool| format!("IPv4 pool {pool}"));
        let ipv6 = self.ipv6.iter().map(|pool| format!("IPv6 pool {pool}"));
        ipv4.chain(ipv6)
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

/// Changed pools of a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NextPools {
    /// Time of the change, or of the last connection for which it counted, in seconds since 1970.
    pub since: u32,
    pub pools: Pools,
}

impl NextPools {
    /// Decodes a value of the store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        from_bytes(bytes)
    }
}

impl Remember for NextPools {
    const PREFIX: &'static [u8] = NEXT_POOLS_PREFIX;

    fn since(&self) -> u32 {
        self.since
    }

    fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }
}

/// Changed pools of all subscribers.
pub(crate) type AllNextPools = Remembered<NextPools>;

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(ipv4: Option<&str>, ipv6: Option<&str>) -> Pools {
        let name = |name: &str| name.to_owned();
        Pools {
            ipv4: ipv4.map(name),
            ipv6: ipv6.map(name),
        }
    }

    #[test]
    fn a_newer_answer_counts_for_the_families_of_which_it_says_something() {
        let both = pools(Some("a"), Some("b"));
        let said = |accept: AccessAccept| both.unless_said(&accept);
        assert_eq!(said(AccessAccept::default()), both);
        let address = AccessAccept {
            framed_ip: Some([192, 0, 2, 7].into()),
            ..AccessAccept::default()
        };
        assert_eq!(said(address), pools(None, Some("b")));
        let pool = AccessAccept {
            framed_ipv6_pool: Some("c".into()),
            ..AccessAccept::default()
        };
        assert_eq!(said(pool), pools(Some("a"), None));
    }

    #[test]
    fn changed_pools_stand_for_what_an_older_answer_says_of_their_family() {
        let accept = AccessAccept {
            framed_ip: Some([192, 0, 2, 7].into()),
            framed_ipv6_pool: Some("c".into()),
            ..AccessAccept::default()
        };
        let changed = pools(Some("a"), None).in_place(&accept);
        let ipv4 = (changed.framed_ip, changed.framed_pool.as_deref());
        assert_eq!(ipv4, (None, Some("a")));
        assert_eq!(changed.framed_ipv6_pool.as_deref(), Some("c"));
    }

    #[test]
    fn changed_pools_are_stored_and_read_again() {
        let next = NextPools {
            since: 7,
            pools: pools(Some("walled"), None),
        };
        assert_eq!(NextPools::from_bytes(&next.to_bytes()), Ok(next.clone()));
        let stored = b"\x08\x07\x01\x06walled\x00";
        assert_eq!(NextPools::from_bytes(stored), Ok(next.clone()), "version 8");
        assert!(NextPools::from_bytes(&next.to_bytes()[..3]).is_err());
    }
}
