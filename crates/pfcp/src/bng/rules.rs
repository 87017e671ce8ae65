//! Rules of one session at the user plane, stored as they were sent.
use super::decoded::DecodedRules;
use super::{echoes, read};
use core::fmt;
use wire::pfcp::*;

/// Rejection of rules, as in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Cause.
    pub cause: Cause,
    /// Offending element.
    pub offending_ie: Option<IeId>,
    /// Failed rule.
    pub failed_rule: Option<FailedRule>,
}

impl Rejection {
    pub(super) fn of(cause: Cause, offending_ie: IeId) -> Self {
        Rejection {
            cause,
            offending_ie: Some(offending_ie),
            failed_rule: None,
        }
    }

    /// Rejection of a rule that cannot be carried out.
    pub(super) fn rule(failed_rule: FailedRule, offending_ie: IeId) -> Self {
        Rejection {
            cause: Cause::RULE_CREATION_FAILURE,
            offending_ie: Some(offending_ie),
            failed_rule: Some(failed_rule),
        }
    }

    /// Type of the offending element, for a response.
    pub fn offending_kind(&self) -> Option<u16> {
        self.offending_ie.map(|id| id.kind)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        if let Some(id) = self.offending_ie {
            write!(f, ", element {}", id.kind)?;
        }
        match self.failed_rule {
            Some(rule) => write!(f, ", {rule:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejection {}

/// Maximum number of rules of one kind in a session. A default session has many prefix blocks.
pub const MAX_RULES: usize = 4096;

/// Rules of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub(super) pdn_type: Option<PdnType>,
    pub(super) pdrs: Vec<CreatePdr>,
    pub(super) fars: Vec<CreateFar>,
    pub(super) urrs: Vec<CreateUrr>,
    pub(super) qers: Vec<CreateQer>,
    pub(super) endpoints: Vec<CreateTrafficEndpoint>,
    /// Magic number with which the user plane answers LCP echo requests.
    pub(super) echo_magic: Option<u32>,
}

/// Kind of rule: its id and its elements.
trait Rule {
    type Id: Copy + PartialEq;
    /// Element that has its id.
    const ID: IeId;
    fn id(&self) -> Self::Id;
    fn failed(id: Self::Id) -> Option<FailedRule>;
}

macro_rules! rule {
    ($rule:ident, $field:ident: $id:ty, $ie:expr, $failed:expr) => {
        impl Rule for $rule {
            type Id = $id;
            const ID: IeId = $ie;

            fn id(&self) -> $id {
                self.$field
            }

            fn failed(id: $id) -> Option<FailedRule> {
                $failed(id)
            }
        }
    };
}

rule!(CreatePdr, pdr_id: u16, ie::PDR_ID, |id| Some(FailedRule::Pdr(id)));
rule!(CreateFar, far_id: u32, ie::FAR_ID, |id| Some(FailedRule::Far(id)));
rule!(CreateUrr, urr_id: u32, ie::URR_ID, |id| Some(FailedRule::Urr(id)));
rule!(CreateQer, qer_id: u32, ie::QER_ID, |id| Some(FailedRule::Qer(id)));
rule!(CreateTrafficEndpoint, id: u8, ie::TRAFFIC_ENDPOINT_ID, |_| None);

fn refuse<R: Rule>(id: R::Id) -> Rejection {
    Rejection {
        cause: Cause::RULE_CREATION_FAILURE,
        offending_ie: Some(R::ID),
        failed_rule: R::failed(id),
    }
}

/// Rules of an establishment.
fn distinct<R: Rule>(rules: Vec<R>) -> Result<Vec<R>, Rejection> {
    for (at, rule) in rules.iter().enumerate() {
        if rules[..at].iter().any(|old| old.id() == rule.id()) {
            return Err(refuse::<R>(rule.id()));
        }
        if at >= MAX_RULES {
            return Err(too_many(rule));
        }
    }
    Ok(rules)
}

fn too_many<R: Rule>(rule: &R) -> Rejection {
    Rejection {
        cause: Cause::NO_RESOURCES_AVAILABLE,
        ..refuse::<R>(rule.id())
    }
}

fn create<R: Rule>(have: &mut Vec<R>, new: impl IntoIterator<Item = R>) -> Result<(), Rejection> {
    for rule in new {
        if have.iter().any(|old| old.id() == rule.id()) {
            return Err(refuse::<R>(rule.id()));
        }
        if have.len() >= MAX_RULES {
            return Err(too_many(&rule));
        }
        have.push(rule);
    }
    Ok(())
}

fn remove<R: Rule>(have: &mut Vec<R>, id: R::Id) -> Result<(), Rejection> {
    let at = have
        .iter()
        .position(|rule| rule.id() == id)
        .ok_or_else(|| refuse::<R>(id))?;
    have.remove(at);
    Ok(())
}

fn update<R: Rule>(
    have: &mut [R],
    id: R::Id,
    change: impl FnOnce(&mut R),
) -> Result<(), Rejection> {
    change(
        have.iter_mut()
            .find(|rule| rule.id() == id)
            .ok_or_else(|| refuse::<R>(id))?,
    );
    Ok(())
}

fn set<T: Clone>(to: &mut T, new: &Option<T>) {
    if let Some(new) = new {
        *to = new.clone();
    }
}

fn set_optional<T: Clone>(to: &mut Option<T>, new: &Option<T>) {
    if new.is_some() {
        *to = new.clone();
    }
}

fn set_list<T: Clone>(to: &mut Vec<T>, new: &[T]) {
    if !new.is_empty() {
        *to = new.to_vec();
    }
}

fn apply<T: Clone>(to: &mut Option<T>, change: &Option<Change<T>>) {
    if let Some(change) = change {
        *to = change.clone().into_option();
    }
}

impl RuleSet {
    /// Rules of a new session.
    pub fn establish(request: SessionEstablishmentRequest) -> Result<RuleSet, Rejection> {
        let lcp = request.lcp_connectivity.as_ref();
        let echo_magic = lcp.map(echoes::read).transpose()?.flatten();
        Ok(RuleSet {
            echo_magic,
            pdn_type: request.pdn_type,
            endpoints: distinct(request.create_traffic_endpoints)?,
            fars: distinct(request.create_fars)?,
            urrs: distinct(request.create_urrs)?,
            qers: distinct(request.create_qers)?,
            pdrs: distinct(request.create_pdrs)?,
        })
    }

    /// Rules after a modification. The old rules stay unchanged, so that a rejected modification has no effect.
    pub fn modify(&self, request: &SessionModificationRequest) -> Result<RuleSet, Rejection> {
        let mut rules = self.clone();
        if let Some(lcp) = &request.lcp_connectivity {
            rules.echo_magic = echoes::read(lcp)?;
        }
        rules.apply_removals(request)?;
        create(
            &mut rules.endpoints,
            request.create_traffic_endpoints.iter().cloned(),
        )?;
        create(&mut rules.fars, request.create_fars.iter().cloned())?;
        create(&mut rules.urrs, request.create_urrs.iter().cloned())?;
        create(&mut rules.qers, request.create_qers.iter().cloned())?;
        create(&mut rules.pdrs, request.create_pdrs.iter().cloned())?;
        rules.apply_updates(request)?;
        for query in &request.query_urrs {
            if !rules.has_urr(query.urr_id) {
                return Err(refuse::<CreateUrr>(query.urr_id));
            }
        }
        Ok(rules)
    }

    /// Packs the rules into the few octets of a message, to keep hundreds of thousands of sessions. Returns the rules if they do not fit.
    pub fn pack(self) -> Result<Box<[u8]>, Box<RuleSet>> {
        let nobody = core::net::Ipv4Addr::UNSPECIFIED;
        let request = SessionEstablishmentRequest {
            node_id: NodeId::Ipv4(nobody),
            cp_f_seid: FSeid::new(0, nobody.into()),
            create_pdrs: self.pdrs,
            create_fars: self.fars,
            create_urrs: self.urrs,
            create_qers: self.qers,
            create_traffic_endpoints: self.endpoints,
            pdn_type: self.pdn_type,
            lcp_connectivity: self.echo_magic.map(echoes::answers),
        };
        let packet = Packet::session(0, 0, request);
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_ok() {
            return Ok(bytes.into_boxed_slice());
        }
        let Message::SessionEstablishmentRequest(request) = packet.message else {
            unreachable!("it was put there");
        };
        Err(Box::new(RuleSet {
            echo_magic: self.echo_magic,
            pdn_type: request.pdn_type,
            pdrs: request.create_pdrs,
            fars: request.create_fars,
            urrs: request.create_urrs,
            qers: request.create_qers,
            endpoints: request.create_traffic_endpoints,
        }))
    }

    /// Unpacks the rules of [`RuleSet::pack`].
    pub fn unpack(bytes: &[u8]) -> Option<RuleSet> {
        match parse(bytes).ok()?.packet.message {
            Message::SessionEstablishmentRequest(request) => RuleSet::establish(request).ok(),
            _ => None,
        }
    }

    /// Whether there is a QER with this id.
    pub(super) fn has_qer(&self, qer_id: u32) -> bool {
        self.qers.iter().any(|qer| qer.qer_id == qer_id)
    }

    /// Whether there is a URR with this id.
    pub fn has_urr(&self, urr_id: u32) -> bool {
        self.urrs.iter().any(|urr| urr.urr_id == urr_id)
    }

    /// Decodes the rules. Fails if they cannot be carried out exactly.
    pub fn decode(&self) -> Result<DecodedRules, Rejection> {
        read::decode(self)
    }

    fn apply_removals(&mut self, request: &SessionModificationRequest) -> Result<(), Rejection> {
        for rule in &request.remove_pdrs {
            remove(&mut self.pdrs, rule.pdr_id)?;
        }
        for rule in &request.remove_fars {
            remove(&mut self.fars, rule.far_id)?;
        }
        for rule in &request.remove_urrs {
            remove(&mut self.urrs, rule.urr_id)?;
        }
        for rule in &request.remove_qers {
            remove(&mut self.qers, rule.qer_id)?;
        }
        for endpoint in &request.remove_traffic_endpoints {
            remove(&mut self.endpoints, endpoint.id)?;
        }
        Ok(())
    }

    fn apply_updates(&mut self, request: &SessionModificationRequest) -> Result<(), Rejection> {
        for new in &request.update_traffic_endpoints {
            update(&mut self.endpoints, new.id, |endpoint| {
                update_endpoint(endpoint, new)
            })?;
        }
        for new in &request.update_fars {
            update(&mut self.fars, new.far_id, |far| update_far(far, new))?;
        }
        for new in &request.update_urrs {
            update(&mut self.urrs, new.urr_id, |urr| update_urr(urr, new))?;
        }
        for new in &request.update_qers {
            update(&mut self.qers, new.qer_id, |qer| update_qer(qer, new))?;
        }
        for new in &request.update_pdrs {
            update(&mut self.pdrs, new.pdr_id, |pdr| update_pdr(pdr, new))?;
        }
        Ok(())
    }
}

fn update_pdr(pdr: &mut CreatePdr, new: &UpdatePdr) {
    set(&mut pdr.precedence, &new.precedence);
    set(&mut pdr.pdi, &new.pdi);
    apply(&mut pdr.outer_header_removal, &new.outer_header_removal);
    apply(
        &mut pdr.bbf_outer_header_removal,
        &new.bbf_outer_header_removal,
    );
    set_optional(&mut pdr.far_id, &new.far_id);
    set_list(&mut pdr.urr_ids, &new.urr_ids);
    set_list(&mut pdr.qer_ids, &new.qer_ids);
    pdr.predefined_rules
        .retain(|name| !new.former_predefined_rules.contains(name));
    pdr.predefined_rules
        .extend_from_slice(&new.predefined_rules);
}

/// Updates a FAR. An update may add forwarding parameters to a FAR that dropped packets before.
fn update_far(far: &mut CreateFar, new: &UpdateFar) {
    set(&mut far.apply_action, &new.apply_action);
    let Some(new) = &new.forwarding_parameters else {
        return;
    };
    let parameters = far.forwarding_parameters.get_or_insert_default();
    set(
        &mut parameters.destination_interface,
        &new.destination_interface,
    );
    apply(&mut parameters.network_instance, &new.network_instance);
    apply(
        &mut parameters.outer_header_creation,
        &new.outer_header_creation,
    );
    apply(
        &mut parameters.linked_traffic_endpoint,
        &new.linked_traffic_endpoint,
    );
    apply(
        &mut parameters.bbf_outer_header_creation,
        &new.bbf_outer_header_creation,
    );
    apply(&mut parameters.mtu, &new.mtu);
    set_optional(&mut parameters.settings, &new.settings);
}

fn update_urr(urr: &mut CreateUrr, new: &UpdateUrr) {
    set(&mut urr.measurement_method, &new.measurement_method);
    set(&mut urr.reporting_triggers, &new.reporting_triggers);
    set_optional(&mut urr.measurement_period, &new.measurement_period);
    set_optional(
        &mut urr.measurement_information,
        &new.measurement_information,
    );
}

fn update_qer(qer: &mut CreateQer, new: &UpdateQer) {
    set_optional(&mut qer.correlation_id, &new.correlation_id);
    set(&mut qer.gate_status, &new.gate_status);
    set_optional(&mut qer.maximum_bit_rate, &new.maximum_bit_rate);
    set_optional(&mut qer.guaranteed_bit_rate, &new.guaranteed_bit_rate);
    set_optional(&mut qer.filter_rules, &new.filter_rules);
}

fn update_endpoint(endpoint: &mut CreateTrafficEndpoint, new: &UpdateTrafficEndpoint) {
    set_optional(&mut endpoint.f_teid, &new.f_teid);
    set_optional(&mut endpoint.network_instance, &new.network_instance);
    set_list(&mut endpoint.ue_ip_addresses, &new.ue_ip_addresses);
    set_list(&mut endpoint.framed_routes, &new.framed_routes);
    set_list(&mut endpoint.framed_ipv6_routes, &new.framed_ipv6_routes);
    set_optional(&mut endpoint.logical_port, &new.logical_port);
    set_optional(&mut endpoint.pppoe_session_id, &new.pppoe_session_id);
    set_optional(&mut endpoint.mac_address, &new.mac_address);
    set_optional(&mut endpoint.s_tag, &new.s_tag);
    set_optional(&mut endpoint.c_tag, &new.c_tag);
    set_optional(&mut endpoint.outer_tpid, &new.outer_tpid);
}
