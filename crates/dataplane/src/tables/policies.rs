//! What only sessions need whose policy has something to do for each packet: one cache line for each direction, which packets of other
//! sessions do not touch. And the policies that they name, compiled.
use crate::api::{LastDenial, Policies, PolicyIndex, PolicyState};
use crate::compiled::CompiledPolicy;
use crate::police::Policer;
use policy::{Direction, PacketSettings};
use std::sync::Arc;

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
}

const _: () = assert!(size_of::<PolicyLine>() == 64);

impl PolicyLine {
    /// The line of these settings for a direction; `hz` ticks are a second.
    pub fn of(packets: &PacketSettings, policies: Policies, direction: Direction, hz: u64) -> Self {
        let (rate, policy) = match direction {
            Direction::Up => (packets.rate_up, policies.up),
            Direction::Down => (packets.rate_down, policies.down),
        };
        PolicyLine {
            policer: Policer::new(rate, hz),
            policy,
            ..PolicyLine::default()
        }
    }

    /// Whether there is something to do for packets.
    pub fn is_needed(&self) -> bool {
        self.policer.has_limit() || self.policy.is_some()
    }

    /// What the policy has done so far, with the yellow packets that its meter has counted. `None`: there is nothing to do for packets.
    pub fn state(&self, yellow_packets: u64) -> Option<PolicyState> {
        let last_denial = LastDenial {
            rule: self.denied_by.checked_sub(1),
            compilation: self.denied_in,
        };
        self.is_needed().then(|| PolicyState {
            policy: self.policy,
            denied_packets: self.denied,
            denied_octets: self.denied_octets,
            exceeded_packets: self.exceeded,
            yellow_packets,
            last_denial: (self.denied > 0).then_some(last_denial),
        })
    }

    /// Whether two lines say the same, whatever tokens there are and whatever was counted.
    pub fn agrees(self, other: PolicyLine) -> bool {
        self.continuing(other) == other
    }

    /// The line with the state of another one.
    pub fn continuing(self, other: PolicyLine) -> Self {
        if !self.is_needed() {
            return PolicyLine::default();
        }
        PolicyLine {
            policer: self.policer.with_tokens_of(other.policer),
            policy: self.policy,
            ..other
        }
    }
}

/// The compiled policies of a worker, by their numbers.
pub(crate) struct CompiledPolicies {
    all: Box<[Option<Arc<CompiledPolicy>>]>,
    /// Those of them that have a policer.
    policers: usize,
}

impl CompiledPolicies {
    /// Room for policies up to this number.
    pub fn new(most: u16) -> Self {
        CompiledPolicies {
            all: (0..=most).map(|_| None).collect(),
            policers: 0,
        }
    }

    /// The policy of a number, if the worker has it.
    #[inline(always)]
    pub fn get(&self, PolicyIndex(index): PolicyIndex) -> Option<&CompiledPolicy> {
        self.all.get(usize::from(index.get()))?.as_deref()
    }

    /// Whether a policy has a policer.
    #[inline(always)]
    pub fn any_policer(&self) -> bool {
        self.policers > 0
    }

    /// Sets or forgets a policy. No packet is treated by it and the former one: nobody calls this within a burst.
    pub fn set(&mut self, PolicyIndex(index): PolicyIndex, policy: Option<Arc<CompiledPolicy>>) {
        let Some(place) = self.all.get_mut(usize::from(index.get())) else {
            return; // the controller has looked
        };
        let has_policer = |policy: &Option<Arc<CompiledPolicy>>| {
            usize::from(policy.as_ref().is_some_and(|p| p.policer().is_some()))
        };
        self.policers = self.policers + has_policer(&policy) - has_policer(place);
        *place = policy;
    }
}
