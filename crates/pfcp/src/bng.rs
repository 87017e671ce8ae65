//! What the gateway's two planes say to each other in PFCP rules (TR-459), in both directions: builders that the control
//! plane fills messages with, and a reader by which the user plane learns what the rules of a session come to.
//!
//! The reader goes by what rules say. It does not know the ids that the builders give them.
mod build;
mod decoded;
mod read;
mod released_tunnels;
mod rules;
mod settings;
#[cfg(test)]
mod tests;

pub use build::{NETS_PER_MESSAGE, audit, delete, query_usage};
pub use decoded::{ControlTunnel, DecodedRules, DefaultRules, SubscriberRules, UsageRule};
pub use released_tunnels::ReleasedTunnels;
pub use rules::{Rejection, RuleSet};
pub use settings::{numbered_settings, without_numbered};

use core::net::IpAddr;
use ipnet::IpNet;
use policy::Forwarding;
use wire::eth::{MacAddr, Tags};
use wire::pfcp::{FSeid, NodeId, UsageReport, UsageReportTrigger, VolumeMeasurement};

/// The subscriber's line: everything that its frames are verified by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Circuit {
    /// The name of the access port.
    pub logical_port: Vec<u8>,
    /// Its tags, without priorities. The outer or only one is sent as S-TAG, with its TPID in an element of our own; the
    /// inner one, whose TPID is always 0x8100, as C-TAG.
    pub tags: Tags,
    /// The MAC address of the subscriber's router (sent as source address).
    pub mac: MacAddr,
    /// The gateway's MAC address towards it: the virtual one of its subscriber group (sent as destination address).
    pub gateway_mac: MacAddr,
}

/// One end of a GTP-U tunnel: where its packets are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// The address of the end.
    pub address: IpAddr,
}

/// An address family of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// A subscriber's session as the control plane wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSpec {
    /// The control plane.
    pub node_id: NodeId,
    /// The control plane's name for the session, and its address.
    pub cp_f_seid: FSeid,
    /// Where the subscriber is.
    pub circuit: Circuit,
    /// Its PPPoE session.
    pub pppoe_session_id: u16,
    /// The subscriber handle; sessions of one home share it.
    pub subscriber: u32,
    /// Where the user plane sends the session's control packets.
    pub uplink: Tunnel,
    /// Where the control plane sends them; the TEID is of the subscriber group's range.
    pub downlink: Tunnel,
    /// What its policy says about packets. Each family that has a binding passes.
    pub forwarding: Forwarding,
    /// The URR by which it is measured. Whoever establishes a session anew gives it another, so that reports of the one
    /// before, which may still be repeated, are not taken for its own: numbers (UR-SEQN) begin anew with each.
    pub urr_id: u32,
    /// Seconds between usage reports, if there are to be any.
    pub usage_period: Option<u32>,
}

/// The session that an association begins with: discovery up to the control plane, answers down, and the nets that the
/// user plane announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultSpec {
    /// The control plane.
    pub node_id: NodeId,
    /// The control plane's name for the session, and its address.
    pub cp_f_seid: FSeid,
    /// The access port whose discovery packets it takes; `None` for all.
    pub logical_port: Option<Vec<u8>>,
    /// Where the user plane sends discovery packets, with CPR-NSH.
    pub uplink: Tunnel,
    /// Where the control plane sends answers, with CPR-NSH; `None` for a user plane without that feature.
    pub downlink: Option<Tunnel>,
    /// The nets that the group has at the start.
    pub nets: Vec<PoolNet>,
}

/// A net of a pool: announced by the user plane, which discards what no session in it owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolNet {
    /// A number below 0xe000 by which the net is removed again, unique in the default session.
    pub slot: u16,
    /// Where it lives.
    pub network_instance: String,
    /// The net.
    pub net: IpNet,
}

/// What a session carried. Octets are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Packets from the subscriber.
    pub up_packets: u64,
    /// Their octets.
    pub up_octets: u64,
    /// Packets to the subscriber.
    pub down_packets: u64,
    /// Their octets.
    pub down_octets: u64,
}

impl Usage {
    /// What was added since `earlier`, of counters that only grow.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            up_packets: self.up_packets.saturating_sub(earlier.up_packets),
            up_octets: self.up_octets.saturating_sub(earlier.up_octets),
            down_packets: self.down_packets.saturating_sub(earlier.down_packets),
            down_octets: self.down_octets.saturating_sub(earlier.down_octets),
        }
    }

    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            up_packets: self.up_packets.saturating_add(other.up_packets),
            up_octets: self.up_octets.saturating_add(other.up_octets),
            down_packets: self.down_packets.saturating_add(other.down_packets),
            down_octets: self.down_octets.saturating_add(other.down_octets),
        }
    }

    /// What a report says was carried since the report before it. Fields that it leaves out count as nothing.
    pub fn of_report(report: &UsageReport) -> Usage {
        let volume = report.volume.unwrap_or_default();
        Usage {
            up_packets: volume.uplink_packets.unwrap_or(0),
            up_octets: volume.uplink_octets.unwrap_or(0),
            down_packets: volume.downlink_packets.unwrap_or(0),
            down_octets: volume.downlink_octets.unwrap_or(0),
        }
    }
}

/// The user plane's side of a URR: turns growing counters into reports of what was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageMeter {
    rule: UsageRule,
    sequence: u32,
    reported: Usage,
    since: u32,
}

impl UsageMeter {
    /// Begins to measure at `now`, in seconds since 1900 as [`wire::pfcp::ntp_seconds`] gives them, from counters that
    /// stand at `counters`.
    pub const fn new(rule: UsageRule, counters: Usage, now: u32) -> Self {
        UsageMeter {
            rule,
            sequence: 0,
            reported: counters,
            since: now,
        }
    }

    /// The rule that it measures for.
    pub const fn rule(&self) -> UsageRule {
        self.rule
    }

    /// The rule was changed.
    pub fn set_rule(&mut self, rule: UsageRule) {
        self.rule = rule;
    }

    /// What was counted since the last report.
    pub fn unreported(&self, counters: Usage) -> Usage {
        counters.since(self.reported)
    }

    /// The next report: everything since the one before.
    pub fn report(
        &mut self,
        counters: Usage,
        now: u32,
        trigger: UsageReportTrigger,
    ) -> UsageReport {
        let used = self.unreported(counters);
        let packets = |count| self.rule.packets.then_some(count);
        let volume = VolumeMeasurement {
            total_octets: Some(used.up_octets.saturating_add(used.down_octets)),
            uplink_octets: Some(used.up_octets),
            downlink_octets: Some(used.down_octets),
            total_packets: packets(used.up_packets.saturating_add(used.down_packets)),
            uplink_packets: packets(used.up_packets),
            downlink_packets: packets(used.down_packets),
        };
        let report = UsageReport {
            urr_id: self.rule.urr_id,
            sequence: self.sequence,
            trigger,
            start_time: Some(self.since),
            end_time: Some(now),
            volume: self.rule.volume.then_some(volume),
            duration: self.rule.duration.then_some(now.wrapping_sub(self.since)),
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.reported = counters;
        self.since = now;
        report
    }
}
