//! Builders of the control plane's messages, from specifications.
//!
//! Rules of a session: PDRs 1 and 2 carry control packets up and down, PDRs 3 and 4 carry IPv4, PDRs 6 and 7 carry IPv6. PDR 5 takes the
//! control packets inside IPv6 before PDR 6. The FARs have the same numbers. The framed routes of an endpoint are announced (TS 29.244
//! §5.16): routes, with their metrics, and addresses outside the group's prefix blocks. Of several link prefixes the first is named as one,
//! and the others as delegated prefixes, which a user plane of the version before takes, too.
use super::decoded::{ControlTunnel, SubscriberRules, UsageRule};
use super::{DefaultSpec, Family, PoolNet, SessionSpec, Told, Tunnel, echoes, settings};
use core::borrow::Borrow;
use ipnet::IpNet;
use policy::{Access, Binding, Direction, Forwarding, Role};
use wire::eth::PPPOE_DISCOVERY;
use wire::pfcp::*;

/// Maximum number of prefix blocks in one message, so that it fits into a datagram of 1,500 octets.
pub const NETS_PER_MESSAGE: usize = 12;

/// First PDR id for prefix blocks.
const FIRST_NET: u16 = 0x1000;
/// FAR of a default session that drops packets.
const DISCARD: u32 = 3;
const QER: u32 = 1;

/// Precedence: lower numbers come first.
mod precedence {
    pub const REDIRECT: u32 = 50;
    pub const CONTROL: u32 = 100;
    pub const DATA: u32 = 200;
    pub const NET: u32 = u32::MAX;
}

/// Endpoint ids of a session.
mod endpoint {
    pub const CIRCUIT: u8 = 1;
    pub const IPV4_ACCESS: u8 = 2;
    pub const IPV4_CORE: u8 = 3;
    pub const TUNNEL: u8 = 4;
    pub const IPV6_ACCESS: u8 = 5;
    pub const IPV6_CORE: u8 = 6;
}

/// Filters for packets inside PPP that the user plane sends to the control plane: neighbour discovery and DHCPv6. They are written for the
/// downlink, as TS 29.244 §8.2.5 requires, so the far end's ports are in "from".
pub(super) const ND_FLOW: &str = "permit out 58 from any to assigned icmptypes 133-137";
pub(super) const DHCPV6_FLOW: &str = "permit out 17 from any 547 to assigned";

#[derive(Default)]
struct Rules {
    endpoints: Vec<CreateTrafficEndpoint>,
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
}

impl Rules {
    fn append(&mut self, mut other: Rules) {
        self.endpoints.append(&mut other.endpoints);
        self.pdrs.append(&mut other.pdrs);
        self.fars.append(&mut other.fars);
    }
}

fn forward(far_id: u32, parameters: ForwardingParameters) -> CreateFar {
    CreateFar {
        far_id,
        apply_action: ApplyAction::FORW,
        forwarding_parameters: Some(parameters),
    }
}

fn to_access() -> ForwardingParameters {
    ForwardingParameters {
        destination_interface: Interface::Access,
        ..Default::default()
    }
}

fn to_control(tunnel: Tunnel) -> ForwardingParameters {
    ForwardingParameters {
        destination_interface: Interface::CpFunction,
        outer_header_creation: Some(OuterHeaderCreation::gtpu(tunnel.teid, tunnel.address)),
        ..Default::default()
    }
}

fn discovery_frames() -> EthernetPacketFilter {
    EthernetPacketFilter {
        ethertype: Some(PPPOE_DISCOVERY),
        ..Default::default()
    }
}

fn from_tunnel(pdr_id: u16, far_id: u32) -> CreatePdr {
    CreatePdr {
        pdr_id,
        precedence: precedence::CONTROL,
        pdi: Pdi {
            source_interface: Interface::CpFunction,
            traffic_endpoints: vec![endpoint::TUNNEL],
            ..Default::default()
        },
        outer_header_removal: Some(OuterHeaderRemoval::GTPU_IP),
        far_id: Some(far_id),
        ..Default::default()
    }
}

fn tunnel_endpoint(tunnel: Tunnel) -> CreateTrafficEndpoint {
    CreateTrafficEndpoint {
        id: endpoint::TUNNEL,
        f_teid: Some(FTeid::new(tunnel.teid, tunnel.address)),
        ..Default::default()
    }
}

/// Bindings of an address family.
fn of_family(forwarding: &Forwarding, family: Family) -> impl Iterator<Item = &Binding> {
    let bindings = forwarding.bindings.iter();
    bindings.filter(move |binding| binding.is_ipv4() == (family == Family::Ipv4))
}

/// Framed route of a binding that is announced (RFC 2865 §5.22, RFC 3162 §2.5). The unspecified gateway stands for the subscriber's
/// router. A user plane of the version before reads the first word alone.
fn framed_route(binding: &Binding) -> String {
    let net = binding.prefix;
    match (binding.metric, net) {
        (None, _) => net.to_string(),
        (Some(metric), IpNet::V4(_)) => format!("{net} 0.0.0.0 {metric}"),
        (Some(metric), IpNet::V6(_)) => format!("{net} :: {metric}"),
    }
}

/// UE IP address of a binding; `None` for a route (TS 29.244 §8.2.62).
fn ue_ip_address(binding: &Binding) -> Option<UeIpAddress> {
    match (binding.role, binding.prefix) {
        (Role::Route, _) => None,
        (_, IpNet::V4(net)) => Some(UeIpAddress::v4(net.addr())),
        (Role::Delegated, IpNet::V6(net)) => Some(UeIpAddress {
            ipv6: Some(net.network()),
            delegation_bits: Some(64u8.saturating_sub(net.prefix_len())),
            ..Default::default()
        }),
        (_, IpNet::V6(net)) => Some(UeIpAddress::v6(net.network(), net.prefix_len())),
    }
}

/// First data rule of an address family: the PDR and the FAR of packets from the subscriber. Those to the subscriber follow.
fn first_data_rule(family: Family) -> u16 {
    match family {
        Family::Ipv4 => 3,
        Family::Ipv6 => 6,
    }
}

/// Ids in the rules of one address family.
struct FamilyRules {
    family: Family,
    access: u8,
    core: u8,
    ppp: u16,
}

impl SessionSpec {
    /// Establishment for control packets only, at the start of a session.
    pub fn establish_control(&self) -> SessionEstablishmentRequest {
        self.establishment(self.control_rules())
    }

    /// Complete establishment, for a user plane that lost the session. Each address family with an address is open.
    pub fn establish(&self) -> SessionEstablishmentRequest {
        let mut rules = self.control_rules();
        for family in [Family::Ipv4, Family::Ipv6] {
            rules.append(self.family_rules(family).unwrap_or_default());
        }
        self.establishment(rules)
    }

    /// Digest of the session's rules, as the user plane computes it.
    pub fn digest(&self) -> u64 {
        self.decoded().digest()
    }

    /// Decoded rules of [`SessionSpec::establish`].
    pub fn decoded(&self) -> SubscriberRules {
        let has_ipv6 = of_family(&self.forwarding, Family::Ipv6).next().is_some();
        SubscriberRules {
            circuit: self.circuit.clone(),
            access: self.access,
            tunnel: ControlTunnel {
                uplink: self.uplink,
                downlink: Some(self.downlink),
            },
            subscriber: self.subscriber,
            usage: Some(UsageRule {
                urr_id: self.urr_id,
                volume: true,
                packets: true,
                duration: true,
                period: self.usage_period,
            }),
            forwarding: Forwarding {
                bindings: self.forwarding.bindings.with_one_link(),
                ..self.forwarding.with_bindings(|_| true)
            },
            redirect_nd: has_ipv6,
            redirect_dhcpv6: has_ipv6,
            echo_magic: self.open_echo_magic(),
        }
    }

    /// Magic number of answers to echo requests, if an address family is open.
    fn open_echo_magic(&self) -> Option<u32> {
        let is_open = self.forwarding.bindings.iter().next().is_some();
        self.echo_magic.filter(|_| is_open)
    }

    /// Modification that opens an address family. `None` if it has no binding.
    pub fn add_family(&self, family: Family) -> Option<SessionModificationRequest> {
        let rules = self.family_rules(family)?;
        Some(SessionModificationRequest {
            create_pdrs: rules.pdrs,
            create_fars: rules.fars,
            create_traffic_endpoints: rules.endpoints,
            lcp_connectivity: self.open_echo_magic().map(echoes::answers),
            ..Default::default()
        })
    }

    /// Modification that closes an address family.
    pub fn remove_family(&self, family: Family) -> SessionModificationRequest {
        let (pdrs, endpoints): (&[u16], _) = match family {
            Family::Ipv4 => (&[3, 4], [endpoint::IPV4_ACCESS, endpoint::IPV4_CORE]),
            Family::Ipv6 => (&[5, 6, 7], [endpoint::IPV6_ACCESS, endpoint::IPV6_CORE]),
        };
        let first_far = u32::from(first_data_rule(family));
        SessionModificationRequest {
            remove_pdrs: pdrs.iter().map(|id| RemovePdr { pdr_id: *id }).collect(),
            remove_fars: [first_far, first_far + 1]
                .map(|far_id| RemoveFar { far_id })
                .into(),
            remove_traffic_endpoints: endpoints.map(|id| RemoveTrafficEndpoint { id }).into(),
            ..Default::default()
        }
    }

    /// What the user plane knows of the session once it has these rules, as far as a modification can change it.
    pub fn told(&self) -> Told {
        Told {
            subscriber: self.subscriber,
            forwarding: self.forwarding.clone(),
        }
    }

    /// Modification from what the user plane was told before to the rules of this specification; `None` without a difference. A
    /// subscriber handle is replaced by another one, never taken away.
    pub fn change_from(
        &self,
        told: &Told<impl Borrow<Forwarding>>,
    ) -> Option<SessionModificationRequest> {
        let before = told.forwarding.borrow();
        let moved = before.network_instance != self.forwarding.network_instance;
        let parameters = settings::change(&before.packets, &self.forwarding.packets);
        let mut change = SessionModificationRequest::default();
        let rate = settings::change_of_rate(&before.packets, &self.forwarding.packets);
        let guaranteed = settings::change_of_guaranteed(&before.packets, &self.forwarding.packets);
        let handle = self
            .subscriber
            .filter(|handle| Some(*handle) != told.subscriber);
        let rules = settings::change_of_filter_rules(&before.policies, &self.forwarding.policies);
        if handle.is_some() || rate.is_some() || guaranteed.is_some() || rules.is_some() {
            change.update_qers.push(UpdateQer {
                qer_id: QER,
                correlation_id: handle,
                maximum_bit_rate: rate,
                guaranteed_bit_rate: guaranteed,
                filter_rules: rules,
                ..Default::default()
            });
        }
        for family in [Family::Ipv4, Family::Ipv6] {
            let mut old = of_family(before, family).peekable();
            let mut new = of_family(&self.forwarding, family).peekable();
            let (had, has) = (old.peek().is_some(), new.peek().is_some());
            if !old.eq(new) || moved && has {
                if had {
                    let gone = self.remove_family(family);
                    change.remove_pdrs.extend(gone.remove_pdrs);
                    change.remove_fars.extend(gone.remove_fars);
                    let endpoints = gone.remove_traffic_endpoints;
                    change.remove_traffic_endpoints.extend(endpoints);
                }
                let rules = self.family_rules(family).unwrap_or_default();
                change.create_pdrs.extend(rules.pdrs);
                change.create_fars.extend(rules.fars);
                change.create_traffic_endpoints.extend(rules.endpoints);
            } else if has {
                let up = first_data_rule(family);
                change
                    .update_fars
                    .extend(parameters.iter().map(|parameters| UpdateFar {
                        far_id: u32::from(up + 1),
                        forwarding_parameters: Some(parameters.clone()),
                        ..Default::default()
                    }));
                for (direction, pdr) in [(Direction::Up, up), (Direction::Down, up + 1)] {
                    let (old, new) = (&before.policies, &self.forwarding.policies);
                    let changed = settings::change_of_policy(old, new, direction, pdr);
                    change.update_pdrs.extend(changed);
                }
            }
        }
        // a keepalive needs the number, which an earlier control plane may not have told
        let asks_for_keepalive = before.packets.keepalive != self.forwarding.packets.keepalive;
        if !change.create_pdrs.is_empty() || asks_for_keepalive {
            change.lcp_connectivity = self.open_echo_magic().map(echoes::answers);
        }
        (change != SessionModificationRequest::default()).then_some(change)
    }

    fn establishment(&self, rules: Rules) -> SessionEstablishmentRequest {
        SessionEstablishmentRequest {
            node_id: self.node_id.clone(),
            cp_f_seid: self.cp_f_seid,
            create_pdrs: rules.pdrs,
            create_fars: rules.fars,
            create_traffic_endpoints: rules.endpoints,
            create_qers: vec![self.qer()],
            create_urrs: vec![self.urr()],
            pdn_type: Some(PdnType::Ethernet),
            lcp_connectivity: self.open_echo_magic().map(echoes::answers),
        }
    }

    fn qer(&self) -> CreateQer {
        CreateQer {
            qer_id: QER,
            correlation_id: self.subscriber,
            gate_status: GateStatus::OPEN,
            maximum_bit_rate: settings::maximum_bit_rate(&self.forwarding.packets),
            guaranteed_bit_rate: settings::guaranteed_bit_rate(&self.forwarding.packets),
            filter_rules: settings::filter_rules(&self.forwarding.policies),
        }
    }

    fn urr(&self) -> CreateUrr {
        CreateUrr {
            urr_id: self.urr_id,
            measurement_method: MeasurementMethod::VOLUME | MeasurementMethod::DURATION,
            reporting_triggers: match self.usage_period {
                Some(_) => ReportingTriggers::PERIODIC,
                None => ReportingTriggers::default(),
            },
            measurement_period: self.usage_period,
            measurement_information: Some(MeasurementInformation::PACKETS),
        }
    }

    fn access_endpoint(&self, id: u8) -> CreateTrafficEndpoint {
        let Access::Pppoe(pppoe_session_id) = self.access;
        CreateTrafficEndpoint {
            id,
            logical_port: Some(self.circuit.logical_port.clone()),
            s_tag: self.circuit.tags.outer.map(|tag| VlanTag::vid(tag.vid)),
            c_tag: self.circuit.tags.inner.map(|tag| VlanTag::vid(tag.vid)),
            outer_tpid: self.circuit.tags.outer.map(|tag| tag.tpid),
            mac_address: Some(MacAddresses {
                source: Some(self.circuit.mac),
                destination: Some(self.circuit.gateway_mac),
                ..Default::default()
            }),
            pppoe_session_id: Some(pppoe_session_id),
            ..Default::default()
        }
    }

    fn control_rules(&self) -> Rules {
        let up = CreatePdr {
            pdr_id: 1,
            precedence: precedence::CONTROL,
            pdi: Pdi {
                source_interface: Interface::Access,
                traffic_endpoints: vec![endpoint::CIRCUIT],
                ethernet_filters: vec![discovery_frames()],
                ppp_protocols: vec![PppProtocol::Control],
                ..Default::default()
            },
            far_id: Some(1),
            ..Default::default()
        };
        // Those of both families will find room.
        let mut rules = Rules {
            endpoints: Vec::with_capacity(6),
            pdrs: Vec::with_capacity(7),
            fars: Vec::with_capacity(6),
        };
        rules.append(Rules {
            endpoints: vec![
                self.access_endpoint(endpoint::CIRCUIT),
                tunnel_endpoint(self.downlink),
            ],
            pdrs: vec![up, from_tunnel(2, 2)],
            fars: vec![forward(1, to_control(self.uplink)), forward(2, to_access())],
        });
        rules
    }

    fn family_rules(&self, family: Family) -> Option<Rules> {
        of_family(&self.forwarding, family).next()?;
        Some(match family {
            Family::Ipv4 => self.data_rules(FamilyRules {
                family,
                access: endpoint::IPV4_ACCESS,
                core: endpoint::IPV4_CORE,
                ppp: 0x0021,
            }),
            Family::Ipv6 => {
                let mut rules = self.data_rules(FamilyRules {
                    family,
                    access: endpoint::IPV6_ACCESS,
                    core: endpoint::IPV6_CORE,
                    ppp: 0x0057,
                });
                rules.pdrs.insert(0, redirect());
                rules
            }
        })
    }

    fn data_rules(&self, family: FamilyRules) -> Rules {
        let up_id = first_data_rule(family.family);
        let down_id = up_id + 1;
        let data = |pdr_id: u16, direction: Direction, pdi: Pdi| CreatePdr {
            pdr_id,
            precedence: precedence::DATA,
            pdi,
            far_id: Some(u32::from(pdr_id)),
            urr_ids: vec![self.urr_id],
            qer_ids: vec![QER],
            predefined_rules: settings::predefined(&self.forwarding.policies, direction),
            ..Default::default()
        };
        let mut up = data(
            up_id,
            Direction::Up,
            Pdi {
                source_interface: Interface::Access,
                traffic_endpoints: vec![family.access],
                ppp_protocols: vec![PppProtocol::Specific(family.ppp)],
                ..Default::default()
            },
        );
        up.bbf_outer_header_removal = Some(BbfOuterHeaderRemoval::PPP);
        let down = data(
            down_id,
            Direction::Down,
            Pdi {
                source_interface: Interface::Core,
                traffic_endpoints: vec![family.core],
                ..Default::default()
            },
        );
        let to_core = ForwardingParameters {
            destination_interface: Interface::Core,
            network_instance: Some(self.forwarding.network_instance.clone()),
            ..Default::default()
        };
        let mut to_subscriber = ForwardingParameters {
            linked_traffic_endpoint: Some(family.access),
            bbf_outer_header_creation: Some(BbfOuterHeaderCreation::TRAFFIC_ENDPOINT),
            ..to_access()
        };
        settings::put(&self.forwarding.packets, &mut to_subscriber);
        Rules {
            endpoints: self.family_endpoints(&family),
            pdrs: vec![up, down],
            fars: vec![
                forward(up_id.into(), to_core),
                forward(down_id.into(), to_subscriber),
            ],
        }
    }

    fn family_endpoints(&self, family: &FamilyRules) -> Vec<CreateTrafficEndpoint> {
        let told = Forwarding {
            bindings: self.forwarding.bindings.with_one_link(),
            ..Default::default()
        };
        let bindings = || of_family(&told, family.family);
        let announced = bindings().filter(|binding| binding.is_announced);
        let announced: Vec<String> = announced.map(framed_route).collect();
        let (framed_routes, framed_ipv6_routes) = match family.family {
            Family::Ipv4 => (announced, Vec::new()),
            Family::Ipv6 => (Vec::new(), announced),
        };
        let with_address = |endpoint: CreateTrafficEndpoint| CreateTrafficEndpoint {
            network_instance: Some(self.forwarding.network_instance.clone()),
            ue_ip_addresses: bindings().filter_map(ue_ip_address).collect(),
            framed_routes: framed_routes.clone(),
            framed_ipv6_routes: framed_ipv6_routes.clone(),
            ..endpoint
        };
        let core = CreateTrafficEndpoint {
            id: family.core,
            ..Default::default()
        };
        vec![
            with_address(self.access_endpoint(family.access)),
            with_address(core),
        ]
    }
}

/// PDR for neighbour discovery and DHCPv6, which travel inside PPP but belong to the control plane.
fn redirect() -> CreatePdr {
    let flow = |text: &str| SdfFilter {
        flow_description: Some(text.to_owned()),
        ..Default::default()
    };
    CreatePdr {
        pdr_id: 5,
        precedence: precedence::REDIRECT,
        pdi: Pdi {
            source_interface: Interface::Access,
            traffic_endpoints: vec![endpoint::CIRCUIT],
            ppp_protocols: vec![PppProtocol::Specific(0x0057)],
            sdf_filters: vec![flow(ND_FLOW), flow(DHCPV6_FLOW)],
            ..Default::default()
        },
        far_id: Some(1),
        ..Default::default()
    }
}

/// Block of an audit, in a modification of a default session.
pub fn audit(audit: Audit) -> SessionModificationRequest {
    SessionModificationRequest {
        audit: Some(audit),
        ..Default::default()
    }
}

/// Request for a session's usage; `urr_id` is [`SessionSpec::urr_id`].
pub fn query_usage(urr_id: u32) -> SessionModificationRequest {
    SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id }],
        ..Default::default()
    }
}

/// Deletion of a session. The answer has its last usage.
pub fn delete() -> SessionDeletionRequest {
    SessionDeletionRequest {}
}

impl DefaultSpec {
    /// Establishment of the default session. Prefix blocks after the first [`NETS_PER_MESSAGE`] follow in modifications.
    pub fn establish(&self) -> (SessionEstablishmentRequest, Vec<SessionModificationRequest>) {
        let (first, rest) = self.nets.split_at(self.nets.len().min(NETS_PER_MESSAGE));
        let up = CreatePdr {
            pdr_id: 1,
            precedence: precedence::CONTROL,
            pdi: Pdi {
                source_interface: Interface::Access,
                logical_port: self.logical_port.clone(),
                ethernet_filters: vec![discovery_frames()],
                ..Default::default()
            },
            far_id: Some(1),
            ..Default::default()
        };
        let to_control = ForwardingParameters {
            bbf_outer_header_creation: Some(BbfOuterHeaderCreation::CPR_NSH),
            ..to_control(self.uplink)
        };
        let discard = CreateFar {
            far_id: DISCARD,
            apply_action: ApplyAction::DROP,
            ..Default::default()
        };
        let mut request = SessionEstablishmentRequest {
            node_id: self.node_id.clone(),
            cp_f_seid: self.cp_f_seid,
            create_pdrs: vec![up],
            create_fars: vec![forward(1, to_control), discard],
            ..Default::default()
        };
        if let Some(tunnel) = self.downlink {
            request.create_pdrs.push(from_tunnel(2, 2));
            request.create_fars.push(forward(2, to_access()));
            request
                .create_traffic_endpoints
                .push(tunnel_endpoint(tunnel));
        }
        request.create_pdrs.extend(first.iter().map(net_rule));
        (request, Self::add_nets(rest))
    }

    /// Modification that adds prefix blocks.
    pub fn add_nets(nets: &[PoolNet]) -> Vec<SessionModificationRequest> {
        let message = |nets: &[PoolNet]| SessionModificationRequest {
            create_pdrs: nets.iter().map(net_rule).collect(),
            ..Default::default()
        };
        nets.chunks(NETS_PER_MESSAGE).map(message).collect()
    }

    /// Modification that removes prefix blocks, by their slots.
    pub fn remove_nets(slots: &[u16]) -> Vec<SessionModificationRequest> {
        let message = |slots: &[u16]| SessionModificationRequest {
            remove_pdrs: slots
                .iter()
                .map(|slot| RemovePdr {
                    pdr_id: net_rule_id(*slot),
                })
                .collect(),
            ..Default::default()
        };
        slots.chunks(NETS_PER_MESSAGE).map(message).collect()
    }
}

fn net_rule_id(slot: u16) -> u16 {
    FIRST_NET.saturating_add(slot)
}

fn net_rule(net: &PoolNet) -> CreatePdr {
    let mut pdi = Pdi {
        source_interface: Interface::Core,
        network_instance: Some(net.network_instance.clone()),
        ..Default::default()
    };
    match net.net {
        IpNet::V4(net) => pdi.framed_routes.push(net.trunc().to_string()),
        IpNet::V6(net) => pdi.framed_ipv6_routes.push(net.trunc().to_string()),
    }
    CreatePdr {
        pdr_id: net_rule_id(net.slot),
        precedence: precedence::NET,
        pdi,
        far_id: Some(DISCARD),
        ..Default::default()
    }
}
