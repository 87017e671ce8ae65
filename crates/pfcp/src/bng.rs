//! PFCP rules between the gateway's planes (TR-459): builders for the control plane's messages, and the user plane's decoder.
//!
//! The decoder interprets the contents of the rules. It does not depend on the ids that the builders use.
mod build;
mod decoded;
mod echoes;
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

use core::net::IpAddr;
use ipnet::IpNet;
use policy::{Access, Forwarding};
use wire::eth::{MacAddr, Tags};
use wire::pfcp::{FSeid, NodeId, UsageReport, UsageReportTrigger, VolumeMeasurement};

/// Access line and MAC addresses of a subscriber, with which its frames are verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Circuit {
    /// Name of the access port.
    pub logical_port: Vec<u8>,
    /// VLAN tags without priorities. PFCP carries the outer or only tag as S-TAG, with its TPID in an element of our own, and the
    /// inner tag, whose TPID is always 0x8100, as C-TAG.
    pub tags: Tags,
    /// MAC address of the subscriber's router (source address in PFCP).
    pub mac: MacAddr,
    /// Gateway's MAC address towards it: the virtual MAC address of its group (destination address in PFCP).
    pub gateway_mac: MacAddr,
}

/// One end of a GTP-U tunnel, to which packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// IP address.
    pub address: IpAddr,
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Specification of a subscriber's session by the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSpec {
    /// The control plane.
    pub node_id: NodeId,
    /// The control plane's name for the session, and its address.
    pub cp_f_seid: FSeid,
    /// Access line and MAC addresses.
    pub circuit: Circuit,
    /// How it is attached to the line.
    pub access: Access,
    /// Subscriber handle. Sessions of one home share it. `None` as long as the subscriber is not identified.
    pub subscriber: Option<u32>,
    /// Control plane's end of the tunnel for the session's control packets.
    pub uplink: Tunnel,
    /// User plane's end of that tunnel. The TEID is in the subscriber group's range.
    pub downlink: Tunnel,
    /// Forwarding part of its policy. Each address family with a binding is open.
    pub forwarding: Forwarding,
    /// URR ID. Each establishment of the session uses another one, so that repeated reports of the previous URR are recognised:
    /// sequence numbers (UR-SEQN) start again with each URR.
    pub urr_id: u32,
    /// Interval of usage reports in seconds; `None` for no periodic reports.
    pub usage_period: Option<u32>,
    /// Our LCP magic number, with which the user plane answers LCP echo requests while an address family is open; `None`: it answers none.
    /// It travels with the rules of the address families, because both change only when LCP is negotiated, and with a changed
    /// keepalive, and is not in the digest: a user plane that was not told passes the requests on.
    pub echo_magic: Option<u32>,
}

/// What a user plane was told of a session, as far as a modification can change it. `F` holds or shares a [`Forwarding`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told<F = Forwarding> {
    /// Subscriber handle.
    pub subscriber: Option<u32>,
    /// Forwarding part of the policy.
    pub forwarding: F,
}

/// Specification of a default session: tunnels for discovery packets and answers, and the prefix blocks that the user plane announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultSpec {
    /// The control plane.
    pub node_id: NodeId,
    /// The control plane's name for the session, and its address.
    pub cp_f_seid: FSeid,
    /// Access port whose discovery packets it takes; `None` for all.
    pub logical_port: Option<Vec<u8>>,
    /// Control plane's end of the tunnel for discovery packets, with CPR-NSH.
    pub uplink: Tunnel,
    /// User plane's end of the tunnel for answers, with CPR-NSH; `None` for a user plane without that feature.
    pub downlink: Option<Tunnel>,
    /// Prefix blocks of the group at the start.
    pub nets: Vec<PoolNet>,
}

/// Prefix block of a pool. The user plane announces it, and drops packets to addresses in it that no session has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolNet {
    /// Number below 0xe000 with which the block is removed, unique in the default session.
    pub slot: u16,
    /// Network instance.
    pub network_instance: String,
    /// Prefix.
    pub net: IpNet,
}

/// Packets and octets in both directions. Octets are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets from the subscriber.
    pub up_packets: u64,
    /// Their octets.
    pub up_octets: u64,
    /// Packets to the subscriber.
    pub down_packets: u64,
    /// Their octets.
    pub down_octets: u64,
}

impl Volume {
    /// Difference from `earlier`, for counters that only increase; 0 where `earlier` is more.
    pub fn since(self, earlier: Volume) -> Volume {
        Volume {
            up_packets: self.up_packets.saturating_sub(earlier.up_packets),
            up_octets: self.up_octets.saturating_sub(earlier.up_octets),
            down_packets: self.down_packets.saturating_sub(earlier.down_packets),
            down_octets: self.down_octets.saturating_sub(earlier.down_octets),
        }
    }

    /// Sum of both, at most 2^64 - 1 each.
    pub fn plus(self, other: Volume) -> Volume {
        Volume {
            up_packets: self.up_packets.saturating_add(other.up_packets),
            up_octets: self.up_octets.saturating_add(other.up_octets),
            down_packets: self.down_packets.saturating_add(other.down_packets),
            down_octets: self.down_octets.saturating_add(other.down_octets),
        }
    }

    /// The lesser of both, number by number.
    fn at_most(self, limit: Volume) -> Volume {
        Volume {
            up_packets: self.up_packets.min(limit.up_packets),
            up_octets: self.up_octets.min(limit.up_octets),
            down_packets: self.down_packets.min(limit.down_packets),
            down_octets: self.down_octets.min(limit.down_octets),
        }
    }

    /// Octets in both directions.
    pub fn octets(self) -> u64 {
        self.up_octets.saturating_add(self.down_octets)
    }

    /// Volume of a measurement. Missing fields count as 0.
    fn measured(measurement: VolumeMeasurement) -> Volume {
        Volume {
            up_packets: measurement.uplink_packets.unwrap_or(0),
            up_octets: measurement.uplink_octets.unwrap_or(0),
            down_packets: measurement.downlink_packets.unwrap_or(0),
            down_octets: measurement.downlink_octets.unwrap_or(0),
        }
    }

    /// Measurement of the volume, with packets or without.
    fn measurement(self, with_packets: bool) -> VolumeMeasurement {
        let packets = |count| with_packets.then_some(count);
        VolumeMeasurement {
            total_octets: Some(self.octets()),
            uplink_octets: Some(self.up_octets),
            downlink_octets: Some(self.down_octets),
            total_packets: packets(self.up_packets.saturating_add(self.down_packets)),
            uplink_packets: packets(self.up_packets),
            downlink_packets: packets(self.down_packets),
        }
    }
}

/// Usage of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// IPv4 and IPv6.
    pub total: Volume,
    /// IPv6's part of the total.
    pub ipv6: Volume,
    /// Whether the address family of some of the total is not known: user planes exist whose reports do not tell.
    pub lacks_families: bool,
}

impl Usage {
    /// Usage of a user plane, which knows each packet's family.
    pub fn of_families(ipv4: Volume, ipv6: Volume) -> Usage {
        Usage {
            total: ipv4.plus(ipv6),
            ipv6,
            lacks_families: false,
        }
    }

    /// IPv4's and IPv6's part, unless the family of some of it is not known. A sum of octets that has reached its bound, which only a user
    /// plane that lies makes, has no parts any more.
    pub fn families(self) -> Option<[Volume; 2]> {
        let Volume {
            up_octets,
            down_octets,
            ..
        } = self.total;
        let is_known = !self.lacks_families && up_octets.max(down_octets) < u64::MAX;
        is_known.then(|| [self.total.since(self.ipv6), self.ipv6])
    }

    /// Difference from `earlier`, for counters that only increase.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            total: self.total.since(earlier.total),
            ipv6: self.ipv6.since(earlier.ipv6),
            lacks_families: self.lacks_families,
        }
    }

    /// Sum of both.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            total: self.total.plus(other.total),
            ipv6: self.ipv6.plus(other.ipv6),
            lacks_families: self.lacks_families || other.lacks_families,
        }
    }

    /// Usage in a report, since the previous report. Missing fields count as 0.
    pub fn of_report(report: &UsageReport) -> Usage {
        let total = Volume::measured(report.volume.unwrap_or_default());
        let ipv6 = report.ipv6_volume.map(Volume::measured);
        Usage {
            total,
            ipv6: ipv6.unwrap_or_default().at_most(total),
            lacks_families: ipv6.is_none() && total != Volume::default(),
        }
    }
}

/// URR of the user plane: makes usage reports from counters that only increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageMeter {
    rule: UsageRule,
    sequence: u32,
    reported: Usage,
    since: u32,
}

impl UsageMeter {
    /// Starts measuring at `now`, in seconds since 1900 (see [`wire::pfcp::ntp_seconds`]), from the counter values `counters`.
    pub const fn new(rule: UsageRule, counters: Usage, now: u32) -> Self {
        UsageMeter {
            rule,
            sequence: 0,
            reported: counters,
            since: now,
        }
    }

    /// Rule of this URR.
    pub const fn rule(&self) -> UsageRule {
        self.rule
    }

    /// Sets a changed rule.
    pub fn set_rule(&mut self, rule: UsageRule) {
        self.rule = rule;
    }

    /// Usage since the last report.
    pub fn unreported(&self, counters: Usage) -> Usage {
        counters.since(self.reported)
    }

    /// Makes the next report, with the usage since the previous one.
    pub fn report(
        &mut self,
        counters: Usage,
        now: u32,
        trigger: UsageReportTrigger,
    ) -> UsageReport {
        let used = self.unreported(counters);
        let measurement = |volume: Volume| {
            let is_asked_for = self.rule.volume;
            is_asked_for.then(|| volume.measurement(self.rule.packets))
        };
        let report = UsageReport {
            urr_id: self.rule.urr_id,
            sequence: self.sequence,
            trigger,
            start_time: Some(self.since),
            end_time: Some(now),
            volume: measurement(used.total),
            duration: self.rule.duration.then_some(now.wrapping_sub(self.since)),
            ipv6_volume: measurement(used.ipv6),
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.reported = counters;
        self.since = now;
        report
    }
}
