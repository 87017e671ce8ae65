//! The rules of a subscriber's session.
use super::super::Tunnel;
use super::super::build::{DHCPV6_FLOW, ND_FLOW};
use super::super::decoded::SubscriberRules;
use super::super::rules::{Rejection, RuleSet};
use super::super::settings;
use super::view::{AccessLine, View, agree, downlink_of, find_endpoint, forbid, uplink_of, want};
use super::{Outcome, control_tunnel, qer, usage_rule};
use ipnet::Ipv6Net;
use policy::{
    Access, Binding, Bindings, Forwarding, Name, PacketSettings, Role, TrafficPolicies, Treatment,
};
use wire::pfcp::*;

/// What the rules have said so far.
#[derive(Default)]
struct Gathered<'a> {
    line: Option<AccessLine<'a>>,
    access: Option<Access>,
    uplink: Option<Tunnel>,
    downlink: Option<Tunnel>,
    network_instance: Option<&'a str>,
    packets: Option<PacketSettings>,
    policy_up: Option<Option<Name>>,
    policy_down: Option<Option<Name>>,
    up: Named,
    down: Named,
    control: bool,
    nd: bool,
    dhcpv6: bool,
    /// Of the rule that redirects, and of the one that it must come before.
    redirect_precedence: Option<u32>,
    ipv6_precedence: Option<u32>,
}

/// What the rules of one direction name.
#[derive(Default)]
struct Named {
    addresses: Vec<Binding>,
    /// Framed routes.
    routes: Vec<Binding>,
}

pub fn session(rules: &RuleSet) -> Outcome<SubscriberRules> {
    let mut gathered = Gathered::default();
    for pdr in &rules.pdrs {
        let view = View::of(rules, pdr)?;
        let Some(to) = view.destination()? else {
            return Err(view.refuse(ie::APPLY_ACTION));
        };
        match (pdr.pdi.source_interface, to.destination_interface) {
            (Interface::Access, Interface::CpFunction) => {
                view.names_no_policy()?;
                forbid(view.routes().next().is_some(), pdr, ie::FRAMED_ROUTE)?;
                gathered.control_up(&view, to)?;
            }
            (Interface::CpFunction, Interface::Access) => {
                view.names_no_policy()?;
                forbid(view.routes().next().is_some(), pdr, ie::FRAMED_ROUTE)?;
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

impl<'a> Gathered<'a> {
    /// Every rule of the access side must be about the same line and PPPoE session.
    fn access(&mut self, view: &View<'a>) -> Outcome<()> {
        let line = view.line()?;
        agree(&mut self.line, line, view.pdr, ie::TRAFFIC_ENDPOINT_ID)?;
        let id = want(view.pppoe_session_id(), view.pdr, bbf_ie::PPPOE_SESSION_ID)?;
        forbid(id == 0, view.pdr, bbf_ie::PPPOE_SESSION_ID)?;
        agree(
            &mut self.access,
            Access::Pppoe(id),
            view.pdr,
            bbf_ie::PPPOE_SESSION_ID,
        )
    }

    /// Control packets: either discovery and PPP control, or what IPv6 data holds for the control plane.
    fn control_up(&mut self, view: &View<'a>, to: &ForwardingParameters) -> Outcome<()> {
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
            match flow.flow_description.as_deref() {
                Some(flow) if says(flow, ND_FLOW) => self.nd = true,
                Some(flow) if says(flow, DHCPV6_FLOW) => self.dhcpv6 = true,
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

    fn instance(&mut self, view: &View<'a>, said: Option<&'a str>) -> Outcome<()> {
        let name = want(said, view.pdr, ie::NETWORK_INSTANCE)?;
        forbid(name.is_empty(), view.pdr, ie::NETWORK_INSTANCE)?;
        agree(
            &mut self.network_instance,
            name,
            view.pdr,
            ie::NETWORK_INSTANCE,
        )
    }

    /// Packets from the subscriber. The endpoint's addresses are the only sources that pass.
    fn data_up(&mut self, view: &View<'a>, to: &'a ForwardingParameters) -> Outcome<()> {
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
        agree_on_policy(&mut self.policy_up, view)?;
        let families = families_of(view)?;
        self.up.add(view, families)?;
        if families.ipv6 {
            let first = self.ipv6_precedence.unwrap_or(u32::MAX).min(pdr.precedence);
            self.ipv6_precedence = Some(first);
        }
        Ok(())
    }

    /// Packets to the subscriber, encapsulated as the linked endpoint says.
    fn data_down(&mut self, view: &View<'a>, to: &'a ForwardingParameters) -> Outcome<()> {
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
        let packets = settings::read(to).map_err(refused)?;
        let other = self.packets.replace(packets);
        if let Some(offending) = other.and_then(|other| settings::difference(&other, &packets)) {
            return Err(view.refuse(offending));
        }
        agree_on_policy(&mut self.policy_down, view)?;
        self.down.add(view, Families::BOTH)
    }

    fn finish(self, rules: &RuleSet) -> Outcome<SubscriberRules> {
        let refused = |offending| Rejection::of(Cause::RULE_CREATION_FAILURE, offending);
        let missing = |offending| Rejection::of(Cause::CONDITIONAL_IE_MISSING, offending);
        if !self.control || self.downlink.is_none() {
            return Err(missing(ie::CREATE_PDR));
        }
        // What may be sent from an address and what is sent to it must be the same, or spoofing passes.
        let (up, bindings) = (self.up.bindings()?, self.down.bindings()?);
        if up != bindings {
            return Err(refused(ie::UE_IP_ADDRESS));
        }
        if let (Some(redirect), Some(data)) = (self.redirect_precedence, self.ipv6_precedence)
            && redirect >= data
        {
            return Err(refused(ie::PRECEDENCE));
        }
        let qer = qer(rules)?;
        // without an open address family nothing of it concerns a packet
        let (packets, filter_rules) = match (self.packets, qer) {
            (Some(packets), Some(qer)) => {
                let refused = |element| Rejection::rule(FailedRule::Qer(qer.qer_id), element);
                let packets = settings::with_rates(packets, qer);
                let rules = settings::read_filter_rules(qer);
                (packets.map_err(refused)?, rules.map_err(refused)?)
            }
            (packets, _) => (packets.unwrap_or_default(), None),
        };
        Ok(SubscriberRules {
            circuit: self.line.ok_or(missing(ie::TRAFFIC_ENDPOINT_ID))?.into(),
            access: self.access.ok_or(missing(bbf_ie::PPPOE_SESSION_ID))?,
            tunnel: control_tunnel(self.uplink, self.downlink)?,
            subscriber: qer.and_then(|qer| qer.correlation_id),
            usage: usage_rule(rules)?,
            // a session without an open address family is being negotiated
            echo_magic: rules
                .echo_magic
                .filter(|_| bindings.iter().next().is_some()),
            forwarding: Forwarding::new(
                bindings,
                Treatment {
                    network_instance: self.network_instance.unwrap_or_default().to_owned(),
                    packets,
                    policies: TrafficPolicies {
                        policy_up: self.policy_up.flatten(),
                        policy_down: self.policy_down.flatten(),
                        filter_rules,
                    },
                },
            ),
            redirect_nd: self.nd,
            redirect_dhcpv6: self.dhcpv6,
        })
    }
}

/// The rules of a direction name one policy, or all of them none.
fn agree_on_policy(known: &mut Option<Option<Name>>, view: &View<'_>) -> Outcome<()> {
    let policy = settings::policy(view.pdr).map_err(|offending| view.refuse(offending))?;
    agree(known, policy, view.pdr, ie::ACTIVATE_PREDEFINED_RULES)
}

/// Which families pass.
#[derive(Clone, Copy)]
struct Families {
    ipv4: bool,
    ipv6: bool,
}

impl Families {
    const BOTH: Families = Families {
        ipv4: true,
        ipv6: true,
    };
}

/// Which families a rule about PPP data lets pass.
fn families_of(view: &View<'_>) -> Outcome<Families> {
    let protocols = &view.pdr.pdi.ppp_protocols;
    want(protocols.first(), view.pdr, bbf_ie::PPP_PROTOCOL)?;
    let (mut ipv4, mut ipv6) = (false, false);
    for protocol in protocols {
        match protocol {
            PppProtocol::Specific(0x0021) => ipv4 = true,
            PppProtocol::Specific(0x0057) => ipv6 = true,
            PppProtocol::Data => (ipv4, ipv6) = (true, true),
            _ => return Err(view.refuse(bbf_ie::PPP_PROTOCOL)),
        }
    }
    Ok(Families { ipv4, ipv6 })
}

impl Named {
    fn add(&mut self, view: &View<'_>, families: Families) -> Outcome<()> {
        for said in view.ue_addresses() {
            self.add_address(view, said, families)?;
        }
        for route in view.routes() {
            let route = route?;
            let passes = match route.is_ipv4() {
                true => families.ipv4,
                false => families.ipv6,
            };
            forbid(!passes, view.pdr, ie::FRAMED_ROUTE)?;
            self.routes.push(route);
        }
        Ok(())
    }

    fn add_address(
        &mut self,
        view: &View<'_>,
        said: &UeIpAddress,
        families: Families,
    ) -> Outcome<()> {
        let refused = || view.refuse(ie::UE_IP_ADDRESS);
        let chosen = said.choose_ipv4 || said.choose_ipv6;
        let ipv6 = said
            .ipv6
            .map(|prefix| Ipv6Net::new(prefix, said.ipv6_length()).map_err(|_| refused()))
            .transpose()?;
        let passes = (said.ipv4.is_none() || families.ipv4) && (ipv6.is_none() || families.ipv6);
        if chosen || !passes || (said.ipv4.is_none() && ipv6.is_none()) {
            return Err(refused());
        }
        let host = said.ipv4.map(|address| Binding::host(address.into()));
        let ipv6 = ipv6.map(|net| match (said.delegation_bits, net.prefix_len()) {
            (Some(_), _) => Binding::new(Role::Delegated, net.into()),
            (None, 128) => Binding::new(Role::Host, net.into()),
            // one of any other length is refused as none
            (None, _) => Binding::new(Role::Link, net.into()),
        });
        self.addresses.extend(host.into_iter().chain(ipv6));
        Ok(())
    }

    /// A framed route that is one of the addresses says that this is announced, and cannot have a metric.
    fn bindings(&self) -> Outcome<Bindings> {
        let addresses = self.addresses.iter().map(|binding| {
            let route = self.routes.iter().find(|r| r.prefix == binding.prefix);
            Binding {
                is_announced: route.is_some(),
                metric: route.and_then(|route| route.metric),
                ..*binding
            }
        });
        let is_address = |route: &&Binding| self.addresses.iter().any(|b| b.prefix == route.prefix);
        let routes = self.routes.iter().filter(|route| !is_address(route));
        let routes = routes.copied();
        Bindings::new(addresses.chain(routes))
            .map_err(|_| Rejection::of(Cause::RULE_CREATION_FAILURE, ie::UE_IP_ADDRESS))
    }
}

/// Is this the known flow? Blanks make no difference, and "any" and "assigned" mean the same on the subscriber's side.
fn says(flow: &str, known: &str) -> bool {
    let mut before = "";
    let words = flow.split_whitespace().map(|word| {
        let side = std::mem::replace(&mut before, word) == "to" && word == "any";
        if side { "assigned" } else { word }
    });
    flow == known || words.eq(known.split(' '))
}
