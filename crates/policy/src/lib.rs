//! What a session is given: its policy, declared once.
//!
//! The control plane evaluates a [`Policy`] for each session. The part that concerns packets, [`Forwarding`], travels to the
//! user plane and decides there what happens to them. Every setting is declared in one place, with [`settings!`](settings).
//! Differences, the stored form and the rows that people see are derived from the declaration. What cannot be derived, the
//! coding in PFCP and the configuration, is checked against it by tests.
//!
//! Any room may use this one. It uses none.
//!
//! ```
//! use policy::{Binding, Bindings, PacketSettings, Policy};
//!
//! let mut policy = Policy::default();
//! policy.forwarding.bindings = Bindings::new([Binding::host([100, 64, 0, 7].into())]).unwrap();
//! policy.forwarding.packets.mtu = Some(1480);
//!
//! let before = Policy::default();
//! let differences: Vec<&str> = policy.differences(&before).map(|setting| setting.name).collect();
//! assert_eq!(differences, ["mtu"]);
//! assert_eq!(Policy::from_bytes(&policy.to_bytes()), Ok(policy));
//! ```
#![forbid(unsafe_code)]

use core::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

mod access;
mod bindings;
mod filter_rules;
mod overhead;
pub mod pace;
mod settings;
mod stored;

pub use access::Access;
pub use bindings::{Binding, Bindings, Contradiction, MOST_BINDINGS, MOST_LINKS, Role};
pub use filter_rules::FilterRules;
pub use overhead::Overhead;
pub use settings::{
    ControlSettings, Keepalive, Name, Origin, Origins, Overrides, PacketSettings, PrioritySource,
    Rate, Row, Setting, TimeoutAction, TrafficPolicies,
};

/// The largest IP packet over PPPoE unless both sides agree on more, in octets (RFC 2516 §7).
pub const PPPOE_MTU: u16 = 1492;

/// Maximum number of classes of a traffic policy, beside the packets that are in none.
pub const MOST_CLASSES: usize = 7;

/// Everything that a session is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The part that concerns packets.
    pub forwarding: Forwarding,
    /// The part that the control plane alone carries out. Policies with the same may share it.
    pub control: Arc<ControlSettings>,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the subscriber.
    Up,
    /// To the subscriber.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];
}

impl TrafficPolicies {
    /// Policy of a direction, by name.
    pub fn of(&self, direction: Direction) -> Option<&Name> {
        match direction {
            Direction::Up => self.policy_up.as_ref(),
            Direction::Down => self.policy_down.as_ref(),
        }
    }
}

/// The part of a policy that concerns packets: what the user plane is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Addresses and prefixes.
    pub bindings: Bindings,
    /// The rest, which many sessions have alike: policies with the same may share it.
    pub treatment: Arc<Treatment>,
}

/// What happens to the packets of a session, whatever addresses it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Treatment {
    /// Network instance (VRF) of the bindings. Empty while there are none.
    pub network_instance: String,
    /// How packets are treated.
    pub packets: PacketSettings,
    /// Which policies they pass.
    pub policies: TrafficPolicies,
}

/// Treatment of sessions without bindings.
static UNTREATED: LazyLock<Arc<Treatment>> = LazyLock::new(Arc::default);

impl Default for Forwarding {
    fn default() -> Self {
        Forwarding {
            bindings: Bindings::default(),
            treatment: UNTREATED.clone(),
        }
    }
}

impl Deref for Forwarding {
    type Target = Treatment;

    fn deref(&self) -> &Treatment {
        &self.treatment
    }
}

/// A change is of this one alone: what it shares with others is copied before.
impl DerefMut for Forwarding {
    fn deref_mut(&mut self) -> &mut Treatment {
        Arc::make_mut(&mut self.treatment)
    }
}

impl Forwarding {
    /// Bindings and what happens to their packets.
    pub fn new(bindings: Bindings, treatment: impl Into<Arc<Treatment>>) -> Self {
        Forwarding {
            bindings,
            treatment: treatment.into(),
        }
    }

    /// This part as long as only some bindings are open to packets. Without any, nothing of it concerns a packet.
    pub fn with_bindings(&self, is_open: impl Fn(&Binding) -> bool) -> Forwarding {
        let bindings = self.bindings.filtered(is_open);
        if bindings.is_empty() {
            return Forwarding::default();
        }
        Forwarding::new(bindings, self.treatment.clone())
    }
}

impl Policy {
    /// The settings that differ. Bindings and network instance are no settings.
    pub fn differences(&self, other: &Policy) -> impl Iterator<Item = &'static Setting> {
        let (own, others) = (&self.forwarding.packets, &other.forwarding.packets);
        let policies = self
            .forwarding
            .policies
            .differences(&other.forwarding.policies);
        own.differences(others)
            .chain(policies)
            .chain(self.control.differences(&other.control))
    }

    /// Every setting with its value as text, and where that came from.
    pub fn rows(&self, origins: &Origins) -> Vec<Row> {
        let mut rows = self.forwarding.packets.rows(origins);
        rows.extend(self.forwarding.policies.rows(origins));
        rows.extend(self.control.rows(origins));
        rows
    }
}
