//! What only sessions need whose policy has something to do for each packet: one cache line for each direction, which packets of other
//! sessions do not touch. And the policies that they name, compiled.
use crate::api::{LastDenial, PolicyIndex, PolicyState, SessionEntry};
use crate::compiled::CompiledPolicy;
use crate::police::Policer;
use crate::tables::homes::{self, Home};
use crate::tables::watches::Watches;
use policy::Direction;
use std::sync::Arc;

/// What lets packets of a session pass in a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Passes {
    /// Nothing has to.
    #[default]
    Freely,
    /// A rate of the session or its subscriber.
    ByRate,
    /// A policy.
    By(PolicyIndex),
}

impl Passes {
    pub fn of(entry: &SessionEntry, direction: Direction) -> Self {
        let (packets, policies) = (&entry.packets, entry.policies);
        let (rate, policy) = match direction {
            Direction::Up => (packets.rate_up.or(packets.subscriber_rate_up), policies.up),
            Direction::Down => (
                packets.rate_down.or(packets.subscriber_rate_down),
                policies.down,
            ),
        };
        match (policy, rate) {
            (Some(policy), _) => Passes::By(policy),
            (None, Some(_)) => Passes::ByRate,
            (None, None) => Passes::Freely,
        }
    }

    pub fn is_free(self) -> bool {
        self == Passes::Freely
    }
}

const _: () = assert!(size_of::<Passes>() == 4);

/// What the policy of a session does for each packet of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct PolicyLine {
    /// Rate of the packets.
    pub policer: Policer,
    /// Packets that a rule denied.
    pub denied: u64,
    /// Octets of these.
    pub denied_octets: u64,
    /// Packets above the rate.
    pub exceeded: u64,
    /// Number of the policy that they pass; `None`: all of them pass.
    pub policy: Option<PolicyIndex>,
    /// The rule that denied the last one of them, counted from 1; 0: none.
    pub denied_by: u16,
    /// The compilation that this rule belongs to.
    pub denied_in: u32,
    /// The subscriber's rate of all its sessions; `None`: there is none.
    pub home: Option<Home>,
    /// Whether the hits of the rules by the packets of the session are counted (`watches`).
    pub is_watched: bool,
}

const _: () = assert!(size_of::<PolicyLine>() == 64);

impl PolicyLine {
    /// The line of a session for a direction; `home` is that of its subscriber, if this has a rate in either one. `hz` ticks are a second.
    pub fn of(entry: &SessionEntry, home: Option<Home>, direction: Direction, hz: u64) -> Self {
        let (packets, policies) = (&entry.packets, entry.policies);
        let (rate, policy) = match direction {
            Direction::Up => (packets.rate_up, policies.up),
            Direction::Down => (packets.rate_down, policies.down),
        };
        PolicyLine {
            policer: Policer::new(rate, hz),
            policy,
            home: home.filter(|_| homes::rate(packets, direction).is_some()),
            ..PolicyLine::default()
        }
    }

    /// Whether there is something to do for packets.
    pub fn is_needed(&self) -> bool {
        self.policer.has_limit() || self.policy.is_some() || self.home.is_some()
    }

    /// What the policy has done so far, as far as this line has it. `None`: there is nothing to do for packets.
    pub fn state(&self) -> Option<PolicyState> {
        let last_denial = LastDenial {
            rule: self.denied_by.checked_sub(1),
            compilation: self.denied_in,
        };
        self.is_needed().then(|| PolicyState {
            policy: self.policy,
            denied_packets: self.denied,
            denied_octets: self.denied_octets,
            exceeded_packets: self.exceeded,
            subscriber_exceeded_packets: 0,
            yellow_packets: 0,
            classes: None,
            queues: None,
            last_denial: (self.denied > 0).then_some(last_denial),
        })
    }

    /// Whether two lines say the same, whatever tokens there are and whatever was counted.
    pub fn agrees(self, other: PolicyLine) -> bool {
        self.continuing(other) == other
    }

    /// The line with the state of another one.
    pub fn continuing(self, other: PolicyLine) -> Self {
        let policer = self.policer.with_tokens_of(other.policer);
        if !self.is_needed() {
            return PolicyLine {
                policer,
                ..PolicyLine::default()
            };
        }
        PolicyLine {
            policer,
            policy: self.policy,
            home: self.home,
            ..other
        }
    }
}

/// The compiled policies of a worker, by their numbers.
pub(crate) struct CompiledPolicies {
    all: Box<[Option<Arc<CompiledPolicy>>]>,
    /// Sessions of which the hits of each rule are counted.
    pub watches: Watches,
}

impl CompiledPolicies {
    /// Room for policies up to this number.
    pub fn new(most: u16) -> Self {
        CompiledPolicies {
            all: (0..=most).map(|_| None).collect(),
            watches: Watches::new(),
        }
    }

    /// The policy of a number, if the worker has it.
    #[inline(always)]
    pub fn get(&self, PolicyIndex(index): PolicyIndex) -> Option<&CompiledPolicy> {
        self.all.get(usize::from(index.get()))?.as_deref()
    }

    /// Sets or forgets a policy. No packet is treated by it and the former one: nobody calls this within a burst.
    pub fn set(&mut self, PolicyIndex(index): PolicyIndex, policy: Option<Arc<CompiledPolicy>>) {
        // the controller has looked whether there is room
        if let Some(place) = self.all.get_mut(usize::from(index.get())) {
            *place = policy;
        }
    }
}
