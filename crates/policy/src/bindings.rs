//! The addresses and prefixes of a session.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};
use triomphe::ThinArc;

/// Maximum number of bindings of one session.
pub const MOST_BINDINGS: usize = 64;

/// Maximum number of link prefixes of one session. Each of them is an option of every Router Advertisement.
pub const MOST_LINKS: usize = 8;

/// What a prefix is to the subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The address of the subscriber's router: a prefix of full length.
    Host,
    /// A prefix of the link between router and gateway: a /64 (RFC 4862).
    Link,
    /// A prefix that the router hands on to its own networks (RFC 8415 §6.3).
    Delegated,
    /// A route to networks behind the router (Framed-Route, RFC 2865 §5.22).
    Route,
}

/// A prefix that belongs to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binding {
    /// What it is to the subscriber.
    pub role: Role,
    /// The prefix, without host bits.
    pub prefix: IpNet,
    /// The user plane announces it for the session alone: no net that it announces for the subscriber group covers it. A route
    /// is always announced.
    pub is_announced: bool,
    /// Metric of a route, with which it is announced (RFC 2865 §5.22). `None`: the default of the kernel's routes.
    pub metric: Option<u32>,
}

impl Binding {
    /// The address of the subscriber's router.
    pub fn host(address: IpAddr) -> Self {
        Binding::new(Role::Host, address.into())
    }

    /// A prefix of the link.
    pub fn link(prefix: Ipv6Net) -> Self {
        Binding::new(Role::Link, prefix.trunc().into())
    }

    /// A route with its metric.
    pub fn route(prefix: IpNet, metric: Option<u32>) -> Self {
        Binding {
            metric,
            ..Binding::new(Role::Route, prefix)
        }
    }

    /// A prefix in a role.
    pub fn new(role: Role, prefix: IpNet) -> Self {
        Binding {
            role,
            prefix,
            is_announced: role == Role::Route,
            metric: None,
        }
    }

    /// Whether it is one of IPv4.
    pub fn is_ipv4(&self) -> bool {
        matches!(self.prefix, IpNet::V4(_))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Host => self.prefix.addr().fmt(f),
            Role::Link | Role::Delegated | Role::Route => self.prefix.fmt(f),
        }
    }
}

/// Bindings of one session: sorted, each prefix once, and without contradiction. Clones share them. It is one pointer, since a session has
/// several clones; `None`: there are none.
#[derive(Clone, Default)]
pub struct Bindings(Option<ThinArc<(), Binding>>);

impl PartialEq for Bindings {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Bindings {}

impl Hash for Bindings {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.all().hash(state);
    }
}

impl fmt::Debug for Bindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bindings").field(&self.all()).finish()
    }
}

/// Why bindings cannot belong to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// Two host addresses of one family.
    TwoHosts(IpNet, IpNet),
    /// More link prefixes than [`MOST_LINKS`].
    TooManyLinks(usize),
    /// A prefix twice, in two roles.
    Twice(IpNet),
    /// A host address that is none, a link prefix that is no /64, a prefix with host bits, or a metric of what is no route.
    Malformed(IpNet),
    /// More than [`MOST_BINDINGS`].
    TooMany(usize),
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::TwoHosts(a, b) => {
                write!(f, "two host addresses of one family, {a} and {b}")
            }
            Contradiction::TooManyLinks(count) => {
                write!(
                    f,
                    "{count} link prefixes, and at most {MOST_LINKS} are possible"
                )
            }
            Contradiction::Twice(net) => write!(f, "{net} in two roles"),
            Contradiction::Malformed(net) => write!(f, "{net} cannot have its role"),
            Contradiction::TooMany(count) => {
                write!(
                    f,
                    "{count} bindings, and at most {MOST_BINDINGS} are possible"
                )
            }
        }
    }
}

impl core::error::Error for Contradiction {}

impl Bindings {
    /// Sorts and checks bindings.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn new(bindings: impl IntoIterator<Item = Binding>) -> Result<Self, Contradiction> {
        let mut bindings: Vec<Binding> = bindings.into_iter().collect();
        bindings.sort();
        bindings.dedup();
        if bindings.len() > MOST_BINDINGS {
            return Err(Contradiction::TooMany(bindings.len()));
        }
        let links = bindings.iter().filter(|b| b.role == Role::Link).count();
        if links > MOST_LINKS {
            return Err(Contradiction::TooManyLinks(links));
        }
        for (at, binding) in bindings.iter().enumerate() {
            check_form(binding)?;
            for other in &bindings[..at] {
                check_pair(other, binding)?;
            }
        }
        Ok(Bindings::sorted(&bindings))
    }

    /// Bindings that are sorted and without contradiction.
    fn sorted(bindings: &[Binding]) -> Self {
        let shared = (!bindings.is_empty()).then(|| ThinArc::from_header_and_slice((), bindings));
        Bindings(shared)
    }

    fn all(&self) -> &[Binding] {
        self.0.as_ref().map_or(&[], |shared| &shared.slice)
    }

    /// All of them, by role.
    pub fn iter(&self) -> impl Iterator<Item = &Binding> {
        self.all().iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The IPv4 host address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.all().iter().find_map(|binding| match binding {
            Binding {
                role: Role::Host,
                prefix: IpNet::V4(net),
                ..
            } => Some(net.addr()),
            _ => None,
        })
    }

    /// The first IPv6 prefix of the link.
    pub fn ipv6(&self) -> Option<Ipv6Net> {
        self.links().next()
    }

    /// All IPv6 prefixes of the link, in order.
    pub fn links(&self) -> impl Iterator<Item = Ipv6Net> {
        self.all().iter().filter_map(|binding| match binding {
            Binding {
                role: Role::Link,
                prefix: IpNet::V6(net),
                ..
            } => Some(*net),
            _ => None,
        })
    }

    /// The IPv6 host address.
    pub fn ipv6_address(&self) -> Option<Ipv6Addr> {
        self.all().iter().find_map(|binding| match binding {
            Binding {
                role: Role::Host,
                prefix: IpNet::V6(net),
                ..
            } => Some(net.addr()),
            _ => None,
        })
    }

    /// The delegated prefixes.
    pub fn delegated(&self) -> impl Iterator<Item = Ipv6Net> {
        self.all()
            .iter()
            .filter_map(|binding| match (binding.role, binding.prefix) {
                (Role::Delegated, IpNet::V6(net)) => Some(net),
                _ => None,
            })
    }

    /// All but [`Bindings::ipv4`] and [`Bindings::ipv6`].
    pub fn others(&self) -> impl Iterator<Item = &Binding> {
        let first = self.ipv6().map(IpNet::from);
        self.all().iter().filter(move |binding| match binding.role {
            Role::Host => !binding.is_ipv4(),
            Role::Link => Some(binding.prefix) != first,
            Role::Delegated | Role::Route => true,
        })
    }

    /// These for rules that have room for one link prefix: further ones are delegated prefixes, which are forwarded alike.
    pub fn with_one_link(&self) -> Bindings {
        let first = self.ipv6().map(IpNet::from);
        let bindings = self.all().iter().map(|binding| Binding {
            role: match binding.role {
                Role::Link if Some(binding.prefix) != first => Role::Delegated,
                role => role,
            },
            ..*binding
        });
        let mut bindings: Vec<Binding> = bindings.collect();
        bindings.sort();
        self.changed_to(bindings)
    }

    /// The bindings for which `keep` is true.
    pub fn filtered(&self, keep: impl Fn(&Binding) -> bool) -> Bindings {
        self.changed_to(self.all().iter().filter(|b| keep(b)).copied().collect())
    }

    /// These with the announcement that follows from their roles alone, as long as nobody looks at the pools.
    pub fn regardless_of_pools(&self) -> Bindings {
        let bindings = self.all().iter();
        let regardless = bindings.map(|binding| Binding {
            is_announced: binding.role == Role::Route,
            ..*binding
        });
        self.changed_to(regardless.collect())
    }

    /// These with other metrics of their routes.
    pub fn with_metrics(&self, metric: impl Fn(&Binding) -> Option<u32>) -> Bindings {
        let bindings = self.all().iter().map(|binding| Binding {
            metric: metric(binding).filter(|_| binding.role == Role::Route),
            ..*binding
        });
        self.changed_to(bindings.collect())
    }

    /// These after a change; shared if nothing differs, so that a session has its bindings in memory once.
    fn changed_to(&self, bindings: Vec<Binding>) -> Bindings {
        match *self.all() == *bindings {
            true => self.clone(),
            false => Bindings::sorted(&bindings),
        }
    }

    /// These with one more.
    ///
    /// # Errors
    /// What it contradicts.
    pub fn with(&self, binding: Binding) -> Result<Bindings, Contradiction> {
        Bindings::new(self.all().iter().copied().chain([binding]))
    }

    /// A host address and a link prefix, which never contradict each other.
    pub fn of(ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Net>) -> Bindings {
        let host = ipv4.map(|address| Binding::host(address.into()));
        let bindings: Vec<Binding> = host.into_iter().chain(ipv6.map(Binding::link)).collect();
        Bindings::sorted(&bindings)
    }
}

fn check_form(binding: &Binding) -> Result<(), Contradiction> {
    let net = binding.prefix;
    let fits = match (binding.role, net) {
        (Role::Host, net) => net.prefix_len() == net.max_prefix_len(),
        (Role::Link, IpNet::V6(net)) => net.prefix_len() == 64,
        // longer ones cannot be told (TS 29.244 §8.2.62)
        (Role::Delegated, IpNet::V6(net)) => net.prefix_len() <= 64,
        (Role::Route, _) => binding.is_announced,
        (Role::Link | Role::Delegated, IpNet::V4(_)) => false,
    };
    let has_room = binding.metric.is_none() || binding.role == Role::Route;
    match fits && has_room && net.trunc() == net {
        true => Ok(()),
        false => Err(Contradiction::Malformed(net)),
    }
}

fn check_pair(a: &Binding, b: &Binding) -> Result<(), Contradiction> {
    match (a.role, b.role) {
        (Role::Host, Role::Host) if a.is_ipv4() == b.is_ipv4() => {
            Err(Contradiction::TwoHosts(a.prefix, b.prefix))
        }
        _ if a.prefix == b.prefix => Err(Contradiction::Twice(a.prefix)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(role: Role, prefix: &str) -> Binding {
        Binding::new(role, prefix.parse().unwrap())
    }

    #[test]
    fn contradictions_are_named() {
        use Role::{Delegated, Host, Link, Route};
        let sound = [
            binding(Host, "100.64.0.7/32"),
            binding(Host, "2001:db8:5::1/128"),
            binding(Link, "2001:db8:0:7::/64"),
            binding(Delegated, "2001:db8:7700::/56"),
            binding(Route, "192.0.2.0/28"),
            binding(Route, "2001:db8:ff::/48"),
        ];
        let all = Bindings::new(sound).unwrap();
        assert_eq!(all.ipv4(), Some([100, 64, 0, 7].into()));
        assert_eq!(all.ipv6(), Some("2001:db8:0:7::/64".parse().unwrap()));
        assert_eq!(all.ipv6_address(), Some("2001:db8:5::1".parse().unwrap()));
        let delegated: Vec<_> = all.delegated().collect();
        assert_eq!(delegated, ["2001:db8:7700::/56".parse().unwrap()]);
        let others: Vec<Binding> = all.others().copied().collect();
        assert_eq!(others, [sound[1], sound[3], sound[4], sound[5]]);
        assert_eq!(all, Bindings::new(sound.into_iter().rev()).unwrap());
        assert_eq!(all, Bindings::new(sound.into_iter().chain(sound)).unwrap());
        let with = |role, prefix| Bindings::new(sound.into_iter().chain([binding(role, prefix)]));
        let said = |role, prefix| with(role, prefix).unwrap_err().to_string();
        assert_eq!(
            said(Host, "100.64.0.8/32"),
            "two host addresses of one family, 100.64.0.7/32 and 100.64.0.8/32"
        );
        let more: Vec<Binding> = (8..15)
            .map(|n| binding(Link, &format!("2001:db8:0:{n}::/64")))
            .collect();
        let with_more = Bindings::new(sound.into_iter().chain(more.iter().copied())).unwrap();
        assert_eq!(with_more.links().count(), MOST_LINKS);
        assert_eq!(with_more.ipv6(), all.ipv6());
        let others = with_more.others().filter(|other| other.role == Link);
        assert!(others.eq(&more), "all but the first");
        let one = with_more.with_one_link();
        assert_eq!(Bindings::new(one.iter().copied()).as_ref(), Ok(&one));
        assert_eq!((one.links().count(), one.ipv6()), (1, all.ipv6()));
        assert_eq!(one.iter().count(), with_more.iter().count());
        assert_eq!(
            with_more.with(binding(Link, "2001:db8:0:f::/64")),
            Err(Contradiction::TooManyLinks(9))
        );
        assert_eq!(
            said(Route, "2001:db8:7700::/56"),
            "2001:db8:7700::/56 in two roles"
        );
        for (role, prefix) in [
            (Host, "10.0.0.0/24"),
            (Link, "2001:db8:1::/56"),
            (Link, "10.0.0.0/24"),
            (Delegated, "10.0.0.0/24"),
            (Delegated, "2001:db8:1::/65"),
            (Route, "10.0.0.1/24"),
        ] {
            let prefix = binding(role, prefix);
            assert_eq!(
                Bindings::new([prefix]),
                Err(Contradiction::Malformed(prefix.prefix))
            );
        }
        let quiet = Binding {
            is_announced: false,
            ..binding(Route, "192.0.2.64/28")
        };
        assert!(all.with(quiet).is_err(), "a route is announced");
        let measured = Binding {
            metric: Some(5),
            ..binding(Delegated, "2001:db8:7800::/56")
        };
        assert!(all.with(measured).is_err(), "only routes have metrics");
        let net = "192.0.2.0/28".parse().unwrap();
        let same = all.with(Binding::route(net, Some(5)));
        assert_eq!(same, Err(Contradiction::Twice(net)));
        let many =
            (0..=64).map(|n| Binding::new(Route, IpNet::new([10, n, 0, 0].into(), 16).unwrap()));
        assert_eq!(Bindings::new(many.clone()), Err(Contradiction::TooMany(65)));
        assert_eq!(Bindings::new(many.take(64)).unwrap().iter().count(), 64);
    }
}
