//! Reads rules by what they say: each PDR, with its endpoints and its FAR, is recognised as one of the things that a
//! session is made of. What cannot be done exactly as it is said is refused.
use super::build::{DHCPV6_FLOW, ND_FLOW};
use super::facts::{ControlTunnel, DefaultFacts, Facts, SessionFacts, UsageRule};
use super::rules::{Rejection, RuleSet};
use super::{Circuit, Family, PoolNet, Tunnel};
use core::net::IpAddr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use wire::eth::{MacAddr, PPPOE_DISCOVERY, TPID_8021AD, TPID_8021Q, Tag, Tags};
use wire::pfcp::*;

type Outcome<T> = Result<T, Rejection>;

pub(super) fn facts(rules: &RuleSet) -> Outcome<Facts> {
    match rules.pdn_type {
        None => default_session(rules).map(Facts::Default),
        Some(PdnType::Ethernet) => session(rules).map(|facts| Facts::Session(Box::new(facts))),
        Some(_) => Err(Rejection::of(Cause::SERVICE_NOT_SUPPORTED, ie::PDN_TYPE)),
    }
}

/// Refuses a PDR because of one of its elements.
fn refuse(pdr: &CreatePdr, offending: IeId) -> Rejection {
    Rejection::rule(FailedRule::Pdr(pdr.pdr_id), offending)
}

/// A rule must say this.
fn want<T>(value: Option<T>, pdr: &CreatePdr, offending: IeId) -> Outcome<T> {
    let missing = Rejection {
        cause: Cause::CONDITIONAL_IE_MISSING,
        ..refuse(pdr, offending)
    };
    value.ok_or(missing)
}

/// A rule must not say this.
fn forbid(said: bool, pdr: &CreatePdr, offending: IeId) -> Outcome<()> {
    if said {
        Err(refuse(pdr, offending))
    } else {
        Ok(())
    }
}

/// Two rules must say the same.
fn agree<T: PartialEq>(
    known: &mut Option<T>,
    new: T,
    pdr: &CreatePdr,
    offending: IeId,
) -> Outcome<()> {
    match known {
        Some(old) if *old != new => Err(refuse(pdr, offending)),
        _ => {
            *known = Some(new);
            Ok(())
        }
    }
}

/// A PDR with what it refers to: its PDI's own fields and those of its endpoint.
struct View<'a> {
    rules: &'a RuleSet,
    pdr: &'a CreatePdr,
    endpoint: Option<&'a CreateTrafficEndpoint>,
    far: &'a CreateFar,
}

impl<'a> View<'a> {
    fn of(rules: &'a RuleSet, pdr: &'a CreatePdr) -> Outcome<View<'a>> {
        forbid(
            !pdr.predefined_rules.is_empty(),
            pdr,
            ie::ACTIVATE_PREDEFINED_RULES,
        )?;
        forbid(
            pdr.pdi.traffic_endpoints.len() > 1,
            pdr,
            ie::TRAFFIC_ENDPOINT_ID,
        )?;
        let endpoint = match pdr.pdi.traffic_endpoints.first() {
            Some(id) => Some(
                find_endpoint(rules, *id).ok_or_else(|| refuse(pdr, ie::TRAFFIC_ENDPOINT_ID))?,
            ),
            None => None,
        };
        let far_id = want(pdr.far_id, pdr, ie::FAR_ID)?;
        let far = rules
            .fars
            .iter()
            .find(|far| far.far_id == far_id)
            .ok_or_else(|| refuse(pdr, ie::FAR_ID))?;
        Ok(View {
            rules,
            pdr,
            endpoint,
            far,
        })
    }

    /// Where packets go; `None` when they are discarded.
    fn destination(&self) -> Outcome<Option<&'a ForwardingParameters>> {
        let refused = |offending| Err(Rejection::rule(FailedRule::Far(self.far.far_id), offending));
        match (self.far.apply_action, &self.far.forwarding_parameters) {
            (ApplyAction::DROP, _) => Ok(None),
            (ApplyAction::FORW, Some(parameters)) => Ok(Some(parameters)),
            (ApplyAction::FORW, None) => refused(ie::FORWARDING_PARAMETERS),
            _ => refused(ie::APPLY_ACTION),
        }
    }

    fn refuse(&self, offending: IeId) -> Rejection {
        refuse(self.pdr, offending)
    }

    fn f_teid(&self) -> Option<FTeid> {
        self.pdr.pdi.f_teid.or(self.endpoint.and_then(|e| e.f_teid))
    }

    fn network_instance(&self) -> Option<&'a str> {
        let endpoint = self.endpoint.and_then(|e| e.network_instance.as_deref());
        self.pdr.pdi.network_instance.as_deref().or(endpoint)
    }

    fn ue_addresses(&self) -> &'a [UeIpAddress] {
        match self.endpoint {
            Some(endpoint) if self.pdr.pdi.ue_ip_addresses.is_empty() => &endpoint.ue_ip_addresses,
            _ => &self.pdr.pdi.ue_ip_addresses,
        }
    }

    fn logical_port(&self) -> Option<&'a [u8]> {
        let endpoint = self.endpoint.and_then(|e| e.logical_port.as_deref());
        self.pdr.pdi.logical_port.as_deref().or(endpoint)
    }

    fn pppoe_session_id(&self) -> Option<u16> {
        self.pdr
            .pdi
            .pppoe_session_id
            .or(self.endpoint.and_then(|e| e.pppoe_session_id))
    }

    fn has_routes(&self) -> bool {
        let pdi = &self.pdr.pdi;
        let endpoint = self
            .endpoint
            .is_some_and(|e| !e.framed_routes.is_empty() || !e.framed_ipv6_routes.is_empty());
        endpoint || !pdi.framed_routes.is_empty() || !pdi.framed_ipv6_routes.is_empty()
    }

    /// The line, as the endpoint or the PDI's frame filters give it.
    fn circuit(&self) -> Outcome<Circuit> {
        let filters = &self.pdr.pdi.ethernet_filters;
        let macs = filters
            .iter()
            .flat_map(|filter| &filter.mac_addresses)
            .next();
        let macs = self.endpoint.and_then(|e| e.mac_address.as_ref()).or(macs);
        let ranged =
            macs.is_some_and(|m| m.upper_source.is_some() || m.upper_destination.is_some());
        forbid(ranged, self.pdr, ie::MAC_ADDRESS)?;
        let station = |mac: Option<MacAddr>| {
            want(
                mac.filter(|mac| mac.is_station()),
                self.pdr,
                ie::MAC_ADDRESS,
            )
        };
        Ok(Circuit {
            logical_port: want(self.logical_port(), self.pdr, bbf_ie::LOGICAL_PORT)?.to_vec(),
            tags: self.tags()?,
            mac: station(macs.and_then(|m| m.source))?,
            gateway_mac: station(macs.and_then(|m| m.destination))?,
        })
    }

    fn tags(&self) -> Outcome<Tags> {
        let filters = &self.pdr.pdi.ethernet_filters;
        let s_tag = self
            .endpoint
            .and_then(|e| e.s_tag)
            .or(filters.iter().find_map(|filter| filter.s_tag));
        let c_tag = self
            .endpoint
            .and_then(|e| e.c_tag)
            .or(filters.iter().find_map(|filter| filter.c_tag));
        let outer = vid(s_tag).ok_or_else(|| self.refuse(ie::S_TAG))?;
        let inner = vid(c_tag).ok_or_else(|| self.refuse(ie::C_TAG))?;
        forbid(outer.is_none() && inner.is_some(), self.pdr, ie::C_TAG)?;
        let usual = if inner.is_some() {
            TPID_8021AD
        } else {
            TPID_8021Q
        };
        let tpid = self.endpoint.and_then(|e| e.outer_tpid).unwrap_or(usual);
        forbid(
            ![TPID_8021Q, TPID_8021AD].contains(&tpid),
            self.pdr,
            own::OUTER_TPID,
        )?;
        let outer = outer.map(|vid| Tag {
            tpid,
            ..Tag::new(vid)
        });
        Ok(Tags {
            outer,
            inner: inner.map(Tag::new),
        })
    }

    /// The flows inside the packets, wherever the rule names them.
    fn flows(&self) -> impl Iterator<Item = &'a SdfFilter> {
        let in_frames = self
            .pdr
            .pdi
            .ethernet_filters
            .iter()
            .flat_map(|filter| &filter.sdf_filters);
        self.pdr.pdi.sdf_filters.iter().chain(in_frames)
    }

    fn is_about_discovery(&self) -> bool {
        self.pdr
            .pdi
            .ethernet_filters
            .iter()
            .any(|filter| filter.ethertype == Some(PPPOE_DISCOVERY))
    }

    /// Data rules are measured and limited by the session's one URR and one QER, all of them or none.
    fn check_session_rules(&self) -> Outcome<()> {
        let known =
            |ids: &[u32], of: &[u32]| ids.len() <= 1 && ids.iter().all(|id| of.contains(id));
        let urrs: Vec<u32> = self.rules.urrs.iter().map(|urr| urr.urr_id).collect();
        let qers: Vec<u32> = self.rules.qers.iter().map(|qer| qer.qer_id).collect();
        let counted = urrs.is_empty() || !self.pdr.urr_ids.is_empty();
        forbid(
            !known(&self.pdr.urr_ids, &urrs) || !counted,
            self.pdr,
            ie::URR_ID,
        )?;
        forbid(!known(&self.pdr.qer_ids, &qers), self.pdr, ie::QER_ID)
    }
}

fn find_endpoint(rules: &RuleSet, id: u8) -> Option<&CreateTrafficEndpoint> {
    rules.endpoints.iter().find(|endpoint| endpoint.id == id)
}

/// The VLAN identifier that a tag element asks for: none for no element. Priorities cannot be asked for.
fn vid(tag: Option<VlanTag>) -> Option<Option<u16>> {
    match tag {
        None => Some(None),
        Some(VlanTag {
            vid: Some(vid),
            pcp: None,
            dei: None,
        }) => Some(Some(vid)),
        Some(_) => None,
    }
}

fn tunnel_of(f_teid: FTeid) -> Option<Tunnel> {
    match f_teid {
        FTeid::Given {
            teid,
            ipv4: Some(address),
            ipv6: None,
        } => Some(Tunnel {
            teid,
            address: IpAddr::V4(address),
        }),
        FTeid::Given {
            teid,
            ipv4: None,
            ipv6: Some(address),
        } => Some(Tunnel {
            teid,
            address: IpAddr::V6(address),
        }),
        _ => None,
    }
}

/// The tunnel to the control plane, which a FAR names.
fn uplink_of(view: &View<'_>, to: &ForwardingParameters, nsh: bool) -> Outcome<Tunnel> {
    let far = FailedRule::Far(view.far.far_id);
    let bbf = to.bbf_outer_header_creation;
    let wanted = nsh.then_some(BbfOuterHeaderCreation::CPR_NSH);
    if bbf != wanted {
        return Err(Rejection::rule(far, bbf_ie::OUTER_HEADER_CREATION));
    }
    let refused = Rejection::rule(far, ie::OUTER_HEADER_CREATION);
    let header = to.outer_header_creation.ok_or(refused)?;
    let plain = header.port.is_none() && header.c_tag.is_none() && header.s_tag.is_none();
    match header {
        OuterHeaderCreation {
            teid: Some(teid),
            ipv4: Some(address),
            ipv6: None,
            ..
        } if plain => Ok(Tunnel {
            teid,
            address: address.into(),
        }),
        OuterHeaderCreation {
            teid: Some(teid),
            ipv4: None,
            ipv6: Some(address),
            ..
        } if plain => Ok(Tunnel {
            teid,
            address: address.into(),
        }),
        _ => Err(refused),
    }
}

/// The tunnel from the control plane, which a PDR names. CHOOSE is not offered (no FTUP).
fn downlink_of(view: &View<'_>, to: &ForwardingParameters) -> Outcome<Tunnel> {
    let f_teid = want(view.f_teid(), view.pdr, ie::F_TEID)?;
    if let FTeid::Choose { .. } = f_teid {
        let cause = Cause::INVALID_F_TEID_ALLOCATION_OPTION;
        return Err(Rejection {
            cause,
            ..view.refuse(ie::F_TEID)
        });
    }
    let removed = view
        .pdr
        .outer_header_removal
        .is_some_and(OuterHeaderRemoval::is_gtpu);
    forbid(!removed, view.pdr, ie::OUTER_HEADER_REMOVAL)?;
    let plain = to.outer_header_creation.is_none() && to.bbf_outer_header_creation.is_none();
    forbid(!plain, view.pdr, ie::OUTER_HEADER_CREATION)?;
    tunnel_of(f_teid).ok_or_else(|| view.refuse(ie::F_TEID))
}

fn control_tunnel(uplink: Option<Tunnel>, downlink: Option<Tunnel>) -> Outcome<ControlTunnel> {
    let missing = Rejection::of(Cause::RULE_CREATION_FAILURE, ie::CREATE_PDR);
    Ok(ControlTunnel {
        uplink: uplink.ok_or(missing)?,
        downlink,
    })
}

fn default_session(rules: &RuleSet) -> Outcome<DefaultFacts> {
    let mut uplink = None;
    let mut downlink = None;
    let mut nets = Vec::new();
    let mut port = None;
    for pdr in &rules.pdrs {
        let view = View::of(rules, pdr)?;
        let to = view.destination()?;
        match (
            pdr.pdi.source_interface,
            to.map(|to| to.destination_interface),
            to,
        ) {
            (Interface::Access, Some(Interface::CpFunction), Some(to)) => {
                forbid(!view.is_about_discovery(), pdr, ie::ETHERNET_PACKET_FILTER)?;
                agree(
                    &mut uplink,
                    uplink_of(&view, to, true)?,
                    pdr,
                    ie::OUTER_HEADER_CREATION,
                )?;
                agree(
                    &mut port,
                    view.logical_port().map(<[u8]>::to_vec),
                    pdr,
                    bbf_ie::LOGICAL_PORT,
                )?;
            }
            (Interface::CpFunction, Some(Interface::Access), Some(to)) => {
                agree(&mut downlink, downlink_of(&view, to)?, pdr, ie::F_TEID)?;
            }
            (Interface::Core, None, None) => nets.push(pool_net(&view)?),
            _ => return Err(view.refuse(ie::SOURCE_INTERFACE)),
        }
    }
    nets.sort();
    let logical_port = port.flatten();
    Ok(DefaultFacts {
        logical_port,
        tunnel: control_tunnel(uplink, downlink)?,
        nets,
    })
}

/// The first word of a Framed-Route is the net (RFC 2865 §5.22); a gateway behind it is not for us.
fn pool_net(view: &View<'_>) -> Outcome<PoolNet> {
    let pdi = &view.pdr.pdi;
    let first = |text: &String| {
        text.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let net: Option<IpNet> = match (&pdi.framed_routes[..], &pdi.framed_ipv6_routes[..]) {
        ([route], []) => first(route).parse::<Ipv4Net>().ok().map(IpNet::V4),
        ([], [route]) => first(route).parse::<Ipv6Net>().ok().map(IpNet::V6),
        _ => None,
    };
    let net = net
        .filter(|net| net.trunc() == *net)
        .ok_or_else(|| view.refuse(ie::FRAMED_ROUTE))?;
    let network_instance =
        want(view.network_instance(), view.pdr, ie::NETWORK_INSTANCE)?.to_owned();
    Ok(PoolNet {
        slot: view.pdr.pdr_id,
        network_instance,
        net,
    })
}

/// What the rules have said so far.
#[derive(Default)]
struct Gathered {
    circuit: Option<Circuit>,
    pppoe_session_id: Option<u16>,
    uplink: Option<Tunnel>,
    downlink: Option<Tunnel>,
    network_instance: Option<String>,
    mtu: Option<u16>,
    up: Addresses,
    down: Addresses,
    control: bool,
    nd: bool,
    dhcpv6: bool,
    /// Of the rule that redirects, and of the one that it must come before.
    redirect_precedence: Option<u32>,
    ipv6_precedence: Option<u32>,
}

#[derive(Default, PartialEq, Eq)]
struct Addresses {
    ipv4: Option<core::net::Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
}

fn session(rules: &RuleSet) -> Outcome<SessionFacts> {
    let mut gathered = Gathered::default();
    for pdr in &rules.pdrs {
        let view = View::of(rules, pdr)?;
        forbid(view.has_routes(), pdr, ie::FRAMED_ROUTE)?;
        let Some(to) = view.destination()? else {
            return Err(view.refuse(ie::APPLY_ACTION));
        };
        match (pdr.pdi.source_interface, to.destination_interface) {
            (Interface::Access, Interface::CpFunction) => gathered.control_up(&view, to)?,
            (Interface::CpFunction, Interface::Access) => {
                let tunnel = downlink_of(&view, to)?;
                agree(&mut gathered.downlink, tunnel, pdr, ie::F_TEID)?;
            }
            (Interface::Access, Interface::Core) => gathered.data_up(&view, to)?,
            (Interface::Core, Interface::Access) => gathered.data_down(&view, to)?,
            _ => return Err(view.refuse(ie::SOURCE_INTERFACE)),
        }
    }
    gathered.finish(rules)
}

impl Gathered {
    /// Every rule of the access side must be about the same line and PPPoE session.
    fn access(&mut self, view: &View<'_>) -> Outcome<()> {
        let circuit = view.circuit()?;
        agree(
            &mut self.circuit,
            circuit,
            view.pdr,
            ie::TRAFFIC_ENDPOINT_ID,
        )?;
        let id = want(view.pppoe_session_id(), view.pdr, bbf_ie::PPPOE_SESSION_ID)?;
        forbid(id == 0, view.pdr, bbf_ie::PPPOE_SESSION_ID)?;
        agree(
            &mut self.pppoe_session_id,
            id,
            view.pdr,
            bbf_ie::PPPOE_SESSION_ID,
        )
    }

    /// Control packets: either discovery and PPP control, or what IPv6 data holds for the control plane.
    fn control_up(&mut self, view: &View<'_>, to: &ForwardingParameters) -> Outcome<()> {
        let pdr = view.pdr;
        self.access(view)?;
        agree(
            &mut self.uplink,
            uplink_of(view, to, false)?,
            pdr,
            ie::OUTER_HEADER_CREATION,
        )?;
        match pdr.pdi.ppp_protocols[..] {
            [PppProtocol::Control] => {
                forbid(view.flows().next().is_some(), pdr, ie::SDF_FILTER)?;
                forbid(!view.is_about_discovery(), pdr, ie::ETHERNET_PACKET_FILTER)?;
                self.control = true;
            }
            [PppProtocol::Specific(0x0057)] => self.redirect(view)?,
            _ => return Err(view.refuse(bbf_ie::PPP_PROTOCOL)),
        }
        Ok(())
    }

    fn redirect(&mut self, view: &View<'_>) -> Outcome<()> {
        want(view.flows().next(), view.pdr, ie::SDF_FILTER)?;
        for flow in view.flows() {
            match flow.flow_description.as_deref().map(canonical).as_deref() {
                Some(ND_FLOW) => self.nd = true,
                Some(DHCPV6_FLOW) => self.dhcpv6 = true,
                _ => return Err(view.refuse(ie::SDF_FILTER)),
            }
        }
        let latest = self
            .redirect_precedence
            .unwrap_or(0)
            .max(view.pdr.precedence);
        self.redirect_precedence = Some(latest);
        Ok(())
    }

    fn instance(&mut self, view: &View<'_>, said: Option<&str>) -> Outcome<()> {
        let name = want(said, view.pdr, ie::NETWORK_INSTANCE)?.to_owned();
        agree(
            &mut self.network_instance,
            name,
            view.pdr,
            ie::NETWORK_INSTANCE,
        )
    }

    /// Packets from the subscriber. The endpoint's addresses are the only sources that pass.
    fn data_up(&mut self, view: &View<'_>, to: &ForwardingParameters) -> Outcome<()> {
        let pdr = view.pdr;
        self.access(view)?;
        view.check_session_rules()?;
        let removal = pdr.bbf_outer_header_removal == Some(BbfOuterHeaderRemoval::PPP);
        forbid(!removal, pdr, bbf_ie::OUTER_HEADER_REMOVAL)?;
        forbid(view.flows().next().is_some(), pdr, ie::SDF_FILTER)?;
        self.instance(
            view,
            to.network_instance.as_deref().or(view.network_instance()),
        )?;
        if let Some(name) = view.network_instance() {
            self.instance(view, Some(name))?;
        }
        let families = families_of(view)?;
        for address in view.ue_addresses() {
            self.up.add(view, address, &families)?;
        }
        if families.contains(&Family::Ipv6) {
            let first = self.ipv6_precedence.unwrap_or(u32::MAX).min(pdr.precedence);
            self.ipv6_precedence = Some(first);
        }
        Ok(())
    }

    /// Packets to the subscriber, encapsulated as the linked endpoint says.
    fn data_down(&mut self, view: &View<'_>, to: &ForwardingParameters) -> Outcome<()> {
        let pdr = view.pdr;
        view.check_session_rules()?;
        self.instance(view, view.network_instance())?;
        let refused = |offending| Rejection::rule(FailedRule::Far(view.far.far_id), offending);
        if to.bbf_outer_header_creation != Some(BbfOuterHeaderCreation::TRAFFIC_ENDPOINT) {
            return Err(refused(bbf_ie::OUTER_HEADER_CREATION));
        }
        let linked = to
            .linked_traffic_endpoint
            .and_then(|id| find_endpoint(view.rules, id));
        let linked = linked.ok_or(refused(ie::TRAFFIC_ENDPOINT_ID))?;
        self.access(&View {
            rules: view.rules,
            pdr,
            endpoint: Some(linked),
            far: view.far,
        })?;
        let mtu = to.mtu.ok_or(refused(bbf_ie::MTU))?;
        agree(&mut self.mtu, mtu, pdr, bbf_ie::MTU)?;
        for address in view.ue_addresses() {
            self.down
                .add(view, address, &[Family::Ipv4, Family::Ipv6])?;
        }
        Ok(())
    }

    fn finish(self, rules: &RuleSet) -> Outcome<SessionFacts> {
        let refused = |offending| Rejection::of(Cause::RULE_CREATION_FAILURE, offending);
        let missing = |offending| Rejection::of(Cause::CONDITIONAL_IE_MISSING, offending);
        if !self.control || self.downlink.is_none() {
            return Err(missing(ie::CREATE_PDR));
        }
        // What may be sent from an address and what is sent to it must be the same, or spoofing passes.
        if self.up != self.down {
            return Err(refused(ie::UE_IP_ADDRESS));
        }
        if let (Some(redirect), Some(data)) = (self.redirect_precedence, self.ipv6_precedence) {
            if redirect >= data {
                return Err(refused(ie::PRECEDENCE));
            }
        }
        Ok(SessionFacts {
            circuit: self.circuit.ok_or(missing(ie::TRAFFIC_ENDPOINT_ID))?,
            pppoe_session_id: self
                .pppoe_session_id
                .ok_or(missing(bbf_ie::PPPOE_SESSION_ID))?,
            tunnel: control_tunnel(self.uplink, self.downlink)?,
            subscriber: subscriber(rules)?,
            usage: usage_rule(rules)?,
            network_instance: self.network_instance,
            mtu: self.mtu,
            ipv4: self.up.ipv4,
            ipv6: self.up.ipv6,
            redirect_nd: self.nd,
            redirect_dhcpv6: self.dhcpv6,
        })
    }
}

/// Which families a rule about PPP data lets pass.
fn families_of(view: &View<'_>) -> Outcome<Vec<Family>> {
    let family = |protocol: &PppProtocol| match protocol {
        PppProtocol::Specific(0x0021) => Ok(vec![Family::Ipv4]),
        PppProtocol::Specific(0x0057) => Ok(vec![Family::Ipv6]),
        PppProtocol::Data => Ok(vec![Family::Ipv4, Family::Ipv6]),
        _ => Err(view.refuse(bbf_ie::PPP_PROTOCOL)),
    };
    let protocols = &view.pdr.pdi.ppp_protocols;
    want(protocols.first(), view.pdr, bbf_ie::PPP_PROTOCOL)?;
    protocols
        .iter()
        .map(family)
        .collect::<Outcome<Vec<_>>>()
        .map(|families| families.concat())
}

impl Addresses {
    fn add(&mut self, view: &View<'_>, said: &UeIpAddress, families: &[Family]) -> Outcome<()> {
        let refused = || view.refuse(ie::UE_IP_ADDRESS);
        let chosen = said.choose_ipv4 || said.choose_ipv6;
        let length = said.ipv6_length();
        let ipv6 = said
            .ipv6
            .map(|prefix| Ipv6Net::new(prefix, length).map_err(|_| refused()))
            .transpose()?;
        let passes = (said.ipv4.is_none() || families.contains(&Family::Ipv4))
            && (ipv6.is_none() || families.contains(&Family::Ipv6));
        // One prefix of 64 bits per session: delegated ones come with their own rules.
        let sound = ipv6.is_none_or(|net| net.prefix_len() == 64 && net.trunc() == net);
        if chosen || !passes || !sound || (said.ipv4.is_none() && ipv6.is_none()) {
            return Err(refused());
        }
        if let Some(address) = said.ipv4 {
            agree(&mut self.ipv4, address, view.pdr, ie::UE_IP_ADDRESS)?;
        }
        if let Some(net) = ipv6 {
            agree(&mut self.ipv6, net, view.pdr, ie::UE_IP_ADDRESS)?;
        }
        Ok(())
    }
}

/// The same rule with single blanks; "any" and "assigned" mean the same on the subscriber's side.
fn canonical(flow: &str) -> String {
    let mut words: Vec<&str> = flow.split_whitespace().collect();
    if let Some(to) = words.iter().position(|word| *word == "to") {
        if let Some(side) = words.get_mut(to + 1).filter(|side| **side == "any") {
            *side = "assigned";
        }
    }
    words.join(" ")
}

/// The session's QER: the subscriber handle. Rates and closed gates are refused for as long as nothing enforces them.
fn subscriber(rules: &RuleSet) -> Outcome<Option<u32>> {
    let [qer] = &rules.qers[..] else {
        let second = rules
            .qers
            .get(1)
            .map(|qer| Rejection::rule(FailedRule::Qer(qer.qer_id), ie::CREATE_QER));
        return second.map_or(Ok(None), Err);
    };
    let refused = |offending| Err(Rejection::rule(FailedRule::Qer(qer.qer_id), offending));
    if qer.maximum_bit_rate.is_some() {
        return refused(ie::MBR);
    }
    if qer.guaranteed_bit_rate.is_some() {
        return refused(ie::GBR);
    }
    if qer.gate_status != GateStatus::OPEN {
        return refused(ie::GATE_STATUS);
    }
    Ok(qer.correlation_id)
}

fn usage_rule(rules: &RuleSet) -> Outcome<Option<UsageRule>> {
    let [urr] = &rules.urrs[..] else {
        let second = rules
            .urrs
            .get(1)
            .map(|urr| Rejection::rule(FailedRule::Urr(urr.urr_id), ie::CREATE_URR));
        return second.map_or(Ok(None), Err);
    };
    let refused = |offending| Err(Rejection::rule(FailedRule::Urr(urr.urr_id), offending));
    let method = urr.measurement_method;
    if method.contains(MeasurementMethod::EVENT) {
        return refused(ie::MEASUREMENT_METHOD);
    }
    let information = urr.measurement_information.unwrap_or_default();
    if !MeasurementInformation::PACKETS.contains(information) {
        return refused(ie::MEASUREMENT_INFORMATION);
    }
    if !ReportingTriggers::PERIODIC.contains(urr.reporting_triggers) {
        return refused(ie::REPORTING_TRIGGERS);
    }
    let periodic = urr.reporting_triggers.contains(ReportingTriggers::PERIODIC);
    let period = urr.measurement_period.filter(|seconds| *seconds > 0);
    if periodic && period.is_none() {
        let cause = Cause::CONDITIONAL_IE_MISSING;
        return Err(Rejection {
            cause,
            ..Rejection::rule(FailedRule::Urr(urr.urr_id), ie::MEASUREMENT_PERIOD)
        });
    }
    Ok(Some(UsageRule {
        urr_id: urr.urr_id,
        volume: method.contains(MeasurementMethod::VOLUME),
        packets: information.contains(MeasurementInformation::PACKETS),
        duration: method.contains(MeasurementMethod::DURATION),
        period: period.filter(|_| periodic),
    }))
}
