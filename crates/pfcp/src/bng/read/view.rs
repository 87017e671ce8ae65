//! One PDR with everything that it refers to.
use super::super::rules::{Rejection, RuleSet};
use super::super::{Circuit, Tunnel};
use super::Outcome;
use core::net::IpAddr;
use ipnet::IpNet;
use policy::Binding;
use wire::eth::{MacAddr, PPPOE_DISCOVERY, TPID_8021AD, TPID_8021Q, Tag, Tags};
use wire::pfcp::*;

/// Refuses a PDR because of one of its elements.
pub fn refuse(pdr: &CreatePdr, offending: IeId) -> Rejection {
    Rejection::rule(FailedRule::Pdr(pdr.pdr_id), offending)
}

/// A rule must say this.
pub fn want<T>(value: Option<T>, pdr: &CreatePdr, offending: IeId) -> Outcome<T> {
    let missing = Rejection {
        cause: Cause::CONDITIONAL_IE_MISSING,
        ..refuse(pdr, offending)
    };
    value.ok_or(missing)
}

/// A rule must not say this.
pub fn forbid(said: bool, pdr: &CreatePdr, offending: IeId) -> Outcome<()> {
    if said {
        Err(refuse(pdr, offending))
    } else {
        Ok(())
    }
}

/// Two rules must say the same.
pub fn agree<T: PartialEq>(
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

/// Access line in a PDR, borrowed from the rules; becomes a [`Circuit`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessLine<'a> {
    logical_port: &'a [u8],
    tags: Tags,
    mac: MacAddr,
    gateway_mac: MacAddr,
}

impl From<AccessLine<'_>> for Circuit {
    fn from(line: AccessLine<'_>) -> Self {
        Circuit {
            logical_port: line.logical_port.to_vec(),
            tags: line.tags,
            mac: line.mac,
            gateway_mac: line.gateway_mac,
        }
    }
}

/// A PDR with what it refers to: its PDI's own fields and those of its endpoint.
pub struct View<'a> {
    pub rules: &'a RuleSet,
    pub pdr: &'a CreatePdr,
    pub endpoint: Option<&'a CreateTrafficEndpoint>,
    pub far: &'a CreateFar,
}

impl<'a> View<'a> {
    pub fn of(rules: &'a RuleSet, pdr: &'a CreatePdr) -> Outcome<View<'a>> {
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
    pub fn destination(&self) -> Outcome<Option<&'a ForwardingParameters>> {
        let refused = |offending| Err(Rejection::rule(FailedRule::Far(self.far.far_id), offending));
        match (self.far.apply_action, &self.far.forwarding_parameters) {
            (ApplyAction::DROP, _) => Ok(None),
            (ApplyAction::FORW, Some(parameters)) => Ok(Some(parameters)),
            (ApplyAction::FORW, None) => refused(ie::FORWARDING_PARAMETERS),
            _ => refused(ie::APPLY_ACTION),
        }
    }

    /// Only data rules name policies.
    pub fn names_no_policy(&self) -> Outcome<()> {
        let names = &self.pdr.predefined_rules;
        forbid(!names.is_empty(), self.pdr, ie::ACTIVATE_PREDEFINED_RULES)
    }

    pub fn refuse(&self, offending: IeId) -> Rejection {
        refuse(self.pdr, offending)
    }

    pub fn f_teid(&self) -> Option<FTeid> {
        self.pdr.pdi.f_teid.or(self.endpoint.and_then(|e| e.f_teid))
    }

    pub fn network_instance(&self) -> Option<&'a str> {
        let endpoint = self.endpoint.and_then(|e| e.network_instance.as_deref());
        self.pdr.pdi.network_instance.as_deref().or(endpoint)
    }

    pub fn ue_addresses(&self) -> &'a [UeIpAddress] {
        match self.endpoint {
            Some(endpoint) if self.pdr.pdi.ue_ip_addresses.is_empty() => &endpoint.ue_ip_addresses,
            _ => &self.pdr.pdi.ue_ip_addresses,
        }
    }

    pub fn logical_port(&self) -> Option<&'a [u8]> {
        let endpoint = self.endpoint.and_then(|e| e.logical_port.as_deref());
        self.pdr.pdi.logical_port.as_deref().or(endpoint)
    }

    pub fn pppoe_session_id(&self) -> Option<u16> {
        self.pdr
            .pdi
            .pppoe_session_id
            .or(self.endpoint.and_then(|e| e.pppoe_session_id))
    }

    /// The framed routes: each one's first word is its net, and the third one its metric (RFC 2865 §5.22, RFC 3162 §2.5). The gateway
    /// between them is not for us.
    pub fn routes(&self) -> impl Iterator<Item = Outcome<Binding>> {
        let pdi = &self.pdr.pdi;
        let endpoint =
            |of: fn(&CreateTrafficEndpoint) -> &Vec<String>| self.endpoint.into_iter().flat_map(of);
        let ipv4 = pdi.framed_routes.iter();
        let ipv4 = ipv4.chain(endpoint(|endpoint| &endpoint.framed_routes));
        let ipv6 = pdi.framed_ipv6_routes.iter();
        let ipv6 = ipv6.chain(endpoint(|endpoint| &endpoint.framed_ipv6_routes));
        let refused = || self.refuse(ie::FRAMED_ROUTE);
        let ipv4 = ipv4.map(|text| route(text).filter(Binding::is_ipv4));
        let ipv6 = ipv6.map(|text| route(text).filter(|route| !route.is_ipv4()));
        ipv4.chain(ipv6).map(move |route| route.ok_or_else(refused))
    }

    /// Access line from the traffic endpoint or from the PDI's Ethernet filters.
    pub fn line(&self) -> Outcome<AccessLine<'a>> {
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
        Ok(AccessLine {
            logical_port: want(self.logical_port(), self.pdr, bbf_ie::LOGICAL_PORT)?,
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
    pub fn flows(&self) -> impl Iterator<Item = &'a SdfFilter> {
        let in_frames = self
            .pdr
            .pdi
            .ethernet_filters
            .iter()
            .flat_map(|filter| &filter.sdf_filters);
        self.pdr.pdi.sdf_filters.iter().chain(in_frames)
    }

    pub fn is_about_discovery(&self) -> bool {
        self.pdr
            .pdi
            .ethernet_filters
            .iter()
            .any(|filter| filter.ethertype == Some(PPPOE_DISCOVERY))
    }

    /// Data rules are measured and limited by the session's one URR and one QER, all of them or none.
    pub fn check_session_rules(&self) -> Outcome<()> {
        let (rules, pdr) = (self.rules, self.pdr);
        let urrs = pdr.urr_ids.len() <= 1 && pdr.urr_ids.iter().all(|id| rules.has_urr(*id));
        let counted = rules.urrs.is_empty() || !pdr.urr_ids.is_empty();
        forbid(!urrs || !counted, pdr, ie::URR_ID)?;
        let qers = pdr.qer_ids.len() <= 1 && pdr.qer_ids.iter().all(|id| rules.has_qer(*id));
        forbid(!qers, pdr, ie::QER_ID)
    }
}

pub fn find_endpoint(rules: &RuleSet, id: u8) -> Option<&CreateTrafficEndpoint> {
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
pub fn uplink_of(view: &View<'_>, to: &ForwardingParameters, nsh: bool) -> Outcome<Tunnel> {
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
pub fn downlink_of(view: &View<'_>, to: &ForwardingParameters) -> Outcome<Tunnel> {
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

/// The route that a framed route's text says.
fn route(text: &str) -> Option<Binding> {
    let mut words = text.split_whitespace();
    let net: IpNet = words.next()?.parse().ok()?;
    let metric = words.nth(1).map(str::parse).transpose().ok()?;
    (net.trunc() == net).then(|| Binding::route(net, metric))
}
