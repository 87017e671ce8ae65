//! Which sessions a filter of the local API means.

use super::ControlPlane;
use crate::entry::{Entry, Stage};
use ipnet::IpNet;
use northbound::{Refusal, SessionFilter};
use std::net::IpAddr;

/// Octets of a MAC address.
const MAC: usize = 6;

/// A filter whose values were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    given: SessionFilter,
    address: Option<IpNet>,
    mac: Vec<u8>,
}

impl Filter {
    /// Reads the values of a filter.
    ///
    /// # Errors
    /// A value cannot be. The sentence says what is expected.
    pub fn read(given: SessionFilter) -> Result<Self, Refusal> {
        let words = ["", "connecting", "online", "closing"];
        if !words.contains(&given.state.as_str()) {
            let expected = format!(
                "`{}` is no state of a session: expected connecting, online or closing",
                given.state
            );
            return Err(Refusal::Invalid(expected));
        }
        Ok(Filter {
            address: address(&given.address)?,
            mac: octets(&given.mac)?,
            given,
        })
    }

    /// Whether everything that is given is true of a session. What costs least, and tells most sessions apart, comes first.
    pub fn matches(&self, plane: &ControlPlane, entry: &Entry) -> bool {
        let given = &self.given;
        let is = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
        is(&given.state, state(entry))
            && self.is_on_line(entry)
            && self.is_of_user(entry)
            && self.is_of_age(entry)
            && self.has_address(entry)
            && self.has_policy(entry)
            && (given.service.is_empty() || shown(&entry.tags.service, &given.service))
            && self.is_at(plane, entry)
            && (given.profile.is_empty()
                || plane.view().policy_inputs(entry).profile_name() == Some(&*given.profile))
    }

    fn is_on_line(&self, entry: &Entry) -> bool {
        let (outer, inner) = entry.circuit.tags.vids();
        let tag = |wanted: Option<u32>, tag: Option<u16>| {
            wanted.is_none_or(|wanted| tag.map(u32::from) == Some(wanted))
        };
        let circuit_id = entry.tags.line.circuit_id.as_deref();
        tag(self.given.s_tag, outer)
            && tag(self.given.c_tag, inner)
            && entry.circuit.mac.0.starts_with(&self.mac)
            && (self.given.circuit_id.is_empty()
                || circuit_id.is_some_and(|id| shown(id, &self.given.circuit_id)))
    }

    fn is_of_user(&self, entry: &Entry) -> bool {
        let (given, name) = (&self.given, &entry.who.username);
        (given.user.is_empty() || shown(name, &given.user)) && begins(name, &given.user_prefix)
    }

    fn is_of_age(&self, entry: &Entry) -> bool {
        let started = entry.account.started.map(|started| u64::from(started.unix));
        let given = &self.given;
        let before = given.online_before;
        let after = given.online_after;
        before.is_none_or(|before| started.is_some_and(|at| at < before))
            && after.is_none_or(|after| started.is_some_and(|at| at >= after))
    }

    fn has_address(&self, entry: &Entry) -> bool {
        let bindings = &entry.policy.forwarding.bindings;
        self.address.is_none_or(|wanted| {
            let mut prefixes = bindings.iter().map(|binding| binding.prefix);
            prefixes.any(|own| wanted.contains(&own) || own.contains(&wanted))
        })
    }

    fn has_policy(&self, entry: &Entry) -> bool {
        let policies = &entry.policy.forwarding.policies;
        let mut both = [&policies.policy_up, &policies.policy_down].into_iter();
        self.given.policy.is_empty()
            || both.any(|name| {
                name.as_ref()
                    .is_some_and(|name| name.as_str() == self.given.policy)
            })
    }

    /// Where it is attached, by the names of the configuration.
    fn is_at(&self, plane: &ControlPlane, entry: &Entry) -> bool {
        let (given, topology) = (&self.given, &plane.topology);
        let is = |wanted: &str, name: &str| wanted.is_empty() || wanted == name;
        let port = topology.port(topology.segment(entry.segment).port);
        is(&given.port, &port.name)
            && is(
                &given.user_plane,
                &topology.user_plane(port.user_plane).node_id,
            )
            && is(&given.group, &topology.group(entry.group).name)
            && is(
                &given.network_instance,
                &topology.instance(entry.instance).name,
            )
    }
}

/// How far a session has come, in the word that operators see.
fn state(entry: &Entry) -> &'static str {
    match entry.stage {
        Stage::Admitted(_) | Stage::Connecting => "connecting",
        Stage::Online => "online",
        Stage::Closing(_) => "closing",
    }
}

/// Whether octets from the network are this text, as operators see them.
fn shown(octets: &[u8], text: &str) -> bool {
    octets.escape_ascii().eq(text.bytes())
}

fn begins(octets: &[u8], text: &str) -> bool {
    let mut shown = octets.escape_ascii();
    text.bytes().all(|wanted| shown.next() == Some(wanted))
}

/// An address or a prefix; of a prefix the bits behind it do not count. An empty text is none.
fn address(text: &str) -> Result<Option<IpNet>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let alone = |_| text.parse::<IpAddr>().map(IpNet::from);
    let read = text.parse::<IpNet>().or_else(alone);
    let read = read.map(|prefix| Some(prefix.trunc()));
    read.map_err(|_| {
        Refusal::Invalid(format!(
            "`{text}` is no IPv4 or IPv6 address or prefix: expected such as 100.64.0.0/24"
        ))
    })
}

/// One to six octets in hexadecimal, with colons or hyphens between them. An empty text has none.
fn octets(text: &str) -> Result<Vec<u8>, Refusal> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let octet = |part: &str| {
        let is_octet = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
        is_octet
            .then(|| u8::from_str_radix(part, 16).ok())
            .flatten()
    };
    let parts = text.trim_end_matches([':', '-']).split([':', '-']);
    let octets: Option<Vec<u8>> = parts.map(octet).collect();
    octets.filter(|octets| octets.len() <= MAC).ok_or_else(|| {
        Refusal::Invalid(format!(
            "`{text}` is no MAC address and no beginning of one: expected such as 02:00:5e:10:00:01 or 02:00:5e"
        ))
    })
}

#[cfg(test)]
pub(super) mod tests;
