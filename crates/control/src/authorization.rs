//! What RADIUS servers want of a session while it lasts: its end, and changes of its authorization.

use crate::entry::Entry;
use crate::evaluate::AaaAnswer;
use crate::next_pools::Pools;
use aaa::{FramedRoute, RequestKey};
use core::net::IpAddr;
use ipnet::{IpNet, Ipv6Net};
use policy::{Binding, Bindings, Policy, Role};
use std::borrow::Cow;
use std::sync::Arc;

/// Policy that is to replace the one in force.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub policy: Policy,
    /// Change of authorization that it carries out, if any.
    pub change: Option<ChangeKey>,
}

impl Authorization {
    /// A session's bindings with the changed ones.
    fn bindings(&self, before: &Bindings) -> Bindings {
        let claimed = self.claimed.iter().copied();
        // the claim was checked, and one that contradicts what the subscriber has got since is left out
        claimed.fold(self.kept(before), |all, new| all.with(new).unwrap_or(all))
    }

    /// What a session keeps of its bindings, with the metrics that its routes get. What is inside a withdrawn prefix of the link goes
    /// with it.
    pub fn kept(&self, before: &Bindings) -> Bindings {
        let route = |net: IpNet| self.routes.iter().find(|route| route.net == net);
        let withdrawn = withdrawn_links(before, &self.links);
        let is_withdrawn = |net: &IpNet| withdrawn.iter().any(|link| link.contains(net));
        let kept = before.filtered(|binding| match binding.role {
            _ if is_withdrawn(&binding.prefix) => false,
            Role::Route => {
                !self.replaces_routes(binding.is_ipv4()) || route(binding.prefix).is_some()
            }
            _ => true,
        });
        kept.with_metrics(|had| route(had.prefix).map_or(had.metric, |route| route.metric))
    }

    /// Bindings that a session is to have, of which it may have some.
    pub fn wanted(&self) -> impl Iterator<Item = Binding> {
        let links = self.links.iter().map(|prefix| Binding::link(*prefix));
        let routes = self.routes.iter();
        links.chain(routes.map(|route| Binding::route(route.net, route.metric)))
    }

    fn replaces_routes(&self, of_ipv4: bool) -> bool {
        let is_ipv4 = |route: &FramedRoute| matches!(route.net, IpNet::V4(_));
        self.is_whole || self.routes.iter().any(|route| is_ipv4(route) == of_ipv4)
    }
}

/// Prefixes of the link that a session loses when it gets these instead. Without new ones it keeps its own.
pub(crate) fn withdrawn_links(before: &Bindings, links: &[Ipv6Net]) -> Vec<IpNet> {
    let withdrawn = before
        .links()
        .filter(|own| !links.is_empty() && !links.contains(own));
    withdrawn.map(IpNet::from).collect()
}

impl Proposal {
    /// Whether both are the same proposal.
    pub fn is(&self, other: &Proposal) -> bool {
        self.policy == other.policy && self.change == other.change
    }
}

/// Name of what a RADIUS server wants of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKey {
    /// A request of the server (RFC 5176), which waits for its answer.
    Request(RequestKey),
    /// The server's answer to a new question; the number is unique in a session for as long as it matters.
    Answer(u8),
}

impl ChangeKey {
    /// Request that waits for an answer.
    pub fn request(self) -> Option<RequestKey> {
        match self {
            ChangeKey::Request(key) => Some(key),
            ChangeKey::Answer(_) => None,
        }
    }
}

/// What a RADIUS server wants of a session and is not done yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingRequest {
    pub key: ChangeKey,
    pub wanted: Wanted,
}

/// What a RADIUS server wants of a session.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Its end.
    End,
    /// Other values.
    Change(Box<Authorization>),
}

/// Values in place of those that AAA gave before.
#[derive(Clone, Debug)]
pub(crate) struct Authorization {
    pub answer: AaaAnswer,
    /// Whether it is a whole answer: what it does not say is taken away. Otherwise that stays.
    pub is_whole: bool,
    /// All Class attributes.
    pub class: Box<[Vec<u8>]>,
    /// Prefixes of the link, in place of those of before. Empty: those stay.
    pub links: Box<[Ipv6Net]>,
    /// Networks behind the subscriber's router, in place of those of the same families.
    pub routes: Box<[FramedRoute]>,
    /// Those of the prefixes and routes that are allocated for the change and are not the session's yet.
    pub claimed: Vec<Binding>,
    /// Pools from the subscriber's next connection on.
    pub pools: Pools,
    /// Address of the RADIUS server that asked for the change. `None`: the gateway has asked.
    pub by: Option<IpAddr>,
}

impl Entry {
    /// Change of authorization that is under way.
    pub fn change(&self) -> Option<(ChangeKey, &Authorization)> {
        match self.under_way.requests.front()? {
            PendingRequest {
                key,
                wanted: Wanted::Change(change),
            } => Some((*key, change)),
            _ => None,
        }
    }

    /// The same, to be altered.
    pub fn change_mut(&mut self) -> Option<&mut Authorization> {
        match &mut self.under_way.held()?.requests.front_mut()?.wanted {
            Wanted::Change(change) => Some(change),
            Wanted::End => None,
        }
    }

    /// AAA's answer with the change that is under way.
    pub fn wanted_answer(&self) -> Cow<'_, AaaAnswer> {
        match self.change() {
            Some((_, change)) if change.is_whole => Cow::Borrowed(&change.answer),
            Some((_, change)) => Cow::Owned(self.answer.changed_by(&change.answer)),
            None => Cow::Borrowed(&self.answer),
        }
    }

    /// The session's bindings with the change that is under way.
    pub fn wanted_bindings(&self) -> Cow<'_, Bindings> {
        let bindings = &self.policy.forwarding.bindings;
        match self.change() {
            Some((_, change)) if change.is_whole || !change.routes.is_empty() => {
                Cow::Owned(change.bindings(bindings))
            }
            _ => Cow::Borrowed(bindings),
        }
    }

    /// Puts AAA's answer with the change that was under way in force.
    pub fn adopt_change(
        &mut self,
        answer: Arc<AaaAnswer>,
    ) -> Option<(ChangeKey, Box<Authorization>)> {
        let is_change = |first: &mut PendingRequest| matches!(first.wanted, Wanted::Change(_));
        let requests = &mut self.under_way.held()?.requests;
        let PendingRequest { key, wanted } = requests.pop_front_if(is_change)?;
        let Wanted::Change(change) = wanted else {
            return None;
        };
        self.answer = answer;
        if change.is_whole || !change.class.is_empty() {
            self.who.class.clone_from(&change.class);
        }
        Some((key, change))
    }
}
