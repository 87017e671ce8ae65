//! Compiles a session's decoded rules for this user plane's ports and network instances.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use dataplane::{InstanceIndex, Policies, PortIndex, SessionEntry, SessionIndex};
use ipnet::IpNet;
use pfcp::bng::{ControlTunnel, DecodedRules, DefaultRules, Rejection, SubscriberRules, UsageRule};
use policy::{Access, Direction, TrafficPolicies};
use tracing::warn;
use wire::eth::MacAddr;
use wire::pfcp::{Cause, IeId, bbf_ie, ie, own};

use crate::announcement::Announcement;
use crate::policies::{Claim, PolicyKey, PolicyNumbers};

/// Minimum IPv4 MTU (RFC 791 §3.2).
const LEAST_MTU: u16 = 68;

/// Names that rules refer to.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Access ports by their logical name, with their own MAC addresses.
    pub access_ports: HashMap<Vec<u8>, (PortIndex, MacAddr)>,
    /// Network instances by name.
    pub instances: HashMap<String, InstanceIndex>,
    /// Numbers of policies by name.
    pub policies: PolicyNumbers,
    /// Address of this user plane's end of every tunnel.
    pub address: Option<IpAddr>,
}

/// Compiled session: what the user plane installs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are sessions of subscribers"
)]
pub enum CompiledSession {
    /// Default session.
    Default {
        /// Access port whose discovery packets the session takes; `None`: all access ports.
        port: Option<PortIndex>,
        /// Tunnel for control packets.
        tunnel: ControlTunnel,
        /// Prefix blocks to announce, sorted.
        nets: Vec<(InstanceIndex, Announcement)>,
    },
    /// Session of a subscriber.
    Subscriber {
        /// Entry of the worker's session table.
        entry: SessionEntry,
        /// Tunnel for control packets.
        tunnel: ControlTunnel,
        /// Prefixes that the session announces, sorted.
        nets: Vec<(InstanceIndex, Announcement)>,
        /// Usage reporting rule.
        usage: Option<UsageRule>,
        /// Digest of the rules, for audits.
        digest: u64,
        /// Our LCP magic number in answers to echo requests; `None`: these go to the control plane.
        echo_magic: Option<u32>,
        /// Policies of packets from and to the subscriber, whose numbers the entry has.
        policies: [Option<Arc<PolicyKey>>; 2],
    },
}

impl CompiledSession {
    /// Whether this is a default session.
    pub fn is_default(&self) -> bool {
        matches!(self, CompiledSession::Default { .. })
    }

    /// Tunnel for control packets.
    pub fn tunnel(&self) -> ControlTunnel {
        match self {
            CompiledSession::Default { tunnel, .. }
            | CompiledSession::Subscriber { tunnel, .. } => *tunnel,
        }
    }

    /// Prefixes to announce, sorted.
    pub fn nets(&self) -> &[(InstanceIndex, Announcement)] {
        match self {
            CompiledSession::Default { nets, .. } | CompiledSession::Subscriber { nets, .. } => {
                nets
            }
        }
    }

    /// Usage reporting rule, if usage is measured.
    pub fn usage(&self) -> Option<UsageRule> {
        match self {
            CompiledSession::Default { .. } => None,
            CompiledSession::Subscriber { usage, .. } => *usage,
        }
    }
}

fn refused(offending_ie: IeId) -> Rejection {
    Rejection {
        cause: Cause::RULE_CREATION_FAILURE,
        offending_ie: Some(offending_ie),
        failed_rule: None,
    }
}

impl Layout {
    /// Compiles the rules of the session at `index`, or rejects them.
    pub fn compile(
        &self,
        index: SessionIndex,
        rules: &DecodedRules,
    ) -> Result<CompiledSession, Rejection> {
        match rules {
            DecodedRules::Default(rules) => self.default_session(rules),
            DecodedRules::Session(rules) => self.subscriber(index, rules),
        }
    }

    fn default_session(&self, rules: &DefaultRules) -> Result<CompiledSession, Rejection> {
        self.check_tunnel(&rules.tunnel)?;
        let port = rules
            .logical_port
            .as_deref()
            .map(|name| self.port(name))
            .transpose()?
            .map(|(port, _)| port);
        let mut nets = Vec::with_capacity(rules.nets.len());
        for net in &rules.nets {
            let instance = self.instance(&net.network_instance)?;
            nets.push((instance, net.net.trunc().into()));
        }
        nets.sort();
        nets.dedup();
        Ok(CompiledSession::Default {
            port,
            tunnel: rules.tunnel,
            nets,
        })
    }

    fn subscriber(
        &self,
        index: SessionIndex,
        rules: &SubscriberRules,
    ) -> Result<CompiledSession, Rejection> {
        self.check_tunnel(&rules.tunnel)?;
        let Access::Pppoe(pppoe_session_id) = rules.access;
        if pppoe_session_id == 0 {
            return Err(refused(bbf_ie::PPPOE_SESSION_ID));
        }
        if !rules.circuit.mac.is_station() {
            return Err(refused(ie::MAC_ADDRESS));
        }
        let forwarding = &rules.forwarding;
        let instance = match &forwarding.network_instance[..] {
            "" => InstanceIndex(0),
            name => self.instance(name)?,
        };
        if forwarding.packets.largest_packet() < LEAST_MTU {
            return Err(refused(bbf_ie::MTU));
        }
        let (port, port_mac) = self.port(&rules.circuit.logical_port)?;
        let gateway_mac = match rules.circuit.gateway_mac {
            mac if mac.is_station() => mac,
            // A control plane that names no MAC address lets the port answer with its own.
            _ => port_mac,
        };
        let bindings = &forwarding.bindings;
        let announced = bindings.iter().filter(|binding| binding.is_announced);
        let nets = announced.map(|b| (instance, Announcement::new(b.prefix, b.metric)));
        let mut nets: Vec<_> = nets.collect();
        nets.sort();
        // the worker checks source addresses against these two itself
        let (ipv4, ipv6) = (bindings.ipv4(), bindings.ipv6());
        let own = [
            ipv4.map(|address| IpAddr::from(address).into()),
            ipv6.map(IpNet::from),
        ];
        let [up, down] = Direction::BOTH.map(|way| self.policy(&forwarding.policies, way));
        let (up, down) = (up?, down?);
        let number = |claim: &Option<Claim>| claim.as_ref().map(|(number, _)| *number);
        let routed = bindings.iter().map(|binding| binding.prefix);
        let entry = SessionEntry {
            index,
            port,
            tags: rules.circuit.tags,
            peer_mac: rules.circuit.mac,
            gateway_mac,
            pppoe_session_id,
            instance,
            packets: forwarding.packets,
            policies: Policies {
                up: number(&up),
                down: number(&down),
            },
            subscriber: rules.subscriber.unwrap_or(0).into(),
            ipv4,
            ipv6,
            routed: routed.filter(|net| !own.contains(&Some(*net))).collect(),
        };
        Ok(CompiledSession::Subscriber {
            entry,
            nets,
            tunnel: rules.tunnel,
            usage: rules.usage,
            digest: rules.digest(),
            echo_magic: rules.echo_magic,
            policies: [up, down].map(|claim| claim.map(|(_, key)| key)),
        })
    }

    fn port(&self, name: &[u8]) -> Result<(PortIndex, MacAddr), Rejection> {
        self.access_ports
            .get(name)
            .copied()
            .ok_or(refused(bbf_ie::LOGICAL_PORT))
    }

    /// What the packets of a direction pass. Rules of the subscriber must be rules: what cannot be read would let more pass.
    fn policy(
        &self,
        policies: &TrafficPolicies,
        direction: Direction,
    ) -> Result<Option<Claim>, Rejection> {
        let key = PolicyKey::of(policies, direction).map_err(|why| {
            warn!(%why, "rules of a subscriber are rejected");
            refused(own::FILTER_RULES)
        })?;
        let Some(key) = key else {
            return Ok(None);
        };
        let full = Rejection {
            cause: Cause::NO_RESOURCES_AVAILABLE,
            ..refused(ie::ACTIVATE_PREDEFINED_RULES)
        };
        self.policies.claim(&key).map(Some).ok_or(full)
    }

    fn instance(&self, name: &str) -> Result<InstanceIndex, Rejection> {
        self.instances
            .get(name)
            .copied()
            .ok_or(refused(ie::NETWORK_INSTANCE))
    }

    /// Checks that the far end has our address family, and that the near end is our address.
    fn check_tunnel(&self, tunnel: &ControlTunnel) -> Result<(), Rejection> {
        let Some(own) = self.address else {
            return Ok(());
        };
        if tunnel.uplink.address.is_ipv4() != own.is_ipv4() {
            return Err(Rejection {
                cause: Cause::INVALID_FORWARDING_POLICY,
                ..refused(ie::OUTER_HEADER_CREATION)
            });
        }
        match tunnel.downlink {
            Some(downlink) if downlink.address != own || downlink.teid == 0 => {
                Err(refused(ie::F_TEID))
            }
            _ => Ok(()),
        }
    }
}
