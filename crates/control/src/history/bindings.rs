//! Bindings of a session in its events, and their stored form.
//!
//! An event contains the IPv4 address and the prefix of the link, as every version writes them. The other bindings follow the event
//! in its record ([`Others`]), where earlier versions do not look. A session has at most [`policy::MOST_BINDINGS`], and all of them
//! are stored: at most 1.2 KiB, twice that in an event of a change.

use super::event::{Event, Step, What};
use core::net::{IpAddr, Ipv4Addr};
use ipnet::{IpNet, Ipv6Net};
use policy::{Binding, Bindings, Role};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Parses an address or a prefix.
pub fn parse_prefix(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let prefix = address.or_else(|_| text.parse::<IpNet>());
    prefix.ok().map(|prefix| prefix.trunc())
}

/// Whether one of two prefixes contains the other.
pub(super) fn overlap(a: IpNet, b: IpNet) -> bool {
    a.contains(&b) || b.contains(&a)
}

/// The longest binding that overlaps a prefix.
pub(super) fn longest(bindings: &Bindings, prefix: IpNet) -> Option<&Binding> {
    let all = bindings.iter().filter(|own| overlap(own.prefix, prefix));
    all.max_by_key(|own| own.prefix.prefix_len())
}

/// Stores the bindings that an event contains itself.
pub(super) fn serialize<S: Serializer>(
    bindings: &Bindings,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (bindings.ipv4(), bindings.ipv6()).serialize(serializer)
}

/// Reads the bindings that an event contains itself.
pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Bindings, D::Error> {
    let (ipv4, ipv6) = <(Option<Ipv4Addr>, Option<Ipv6Net>)>::deserialize(deserializer)?;
    Ok(Bindings::of(ipv4, ipv6))
}

/// Bindings that follow an event: present ones, and those before the change.
#[derive(Serialize, Deserialize)]
pub(super) struct Others {
    now: Vec<(Role, IpNet)>,
    before: Vec<(Role, IpNet)>,
}

impl Others {
    /// Bindings that an event does not contain itself; `None` if there are none.
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let What::Subscriber(_, step) = &event.what else {
            return None;
        };
        let others = |bindings: &Bindings| {
            let others = bindings.others();
            others
                .map(|binding| (binding.role, binding.prefix))
                .collect()
        };
        let [now, before] = step
            .bindings()
            .map(|bindings| bindings.map_or_else(Vec::new, others));
        (!now.is_empty() || !before.is_empty()).then_some(Others { now, before })
    }

    /// Adds the bindings to those that the event contains itself. Contradictory ones are left out.
    pub fn add_to(self, event: &mut Event<'_>) {
        let What::Subscriber(_, step) = &mut event.what else {
            return;
        };
        let add = |bindings: &mut Bindings, others: Vec<(Role, IpNet)>| {
            let others = others.into_iter();
            let others = others.map(|(role, prefix)| Binding::new(role, prefix));
            if let Ok(all) = Bindings::new(bindings.iter().copied().chain(others)) {
                *bindings = all;
            }
        };
        match step {
            Step::Online { bindings, .. }
            | Step::Ended { bindings, .. }
            | Step::Counted { bindings, .. } => {
                add(bindings, self.now);
            }
            Step::Changed {
                before, bindings, ..
            } => {
                add(before, self.before);
                add(bindings, self.now);
            }
            Step::Refused { .. }
            | Step::Failed { .. }
            | Step::Authorized { .. }
            | Step::FellBack { .. } => {}
        }
    }
}
