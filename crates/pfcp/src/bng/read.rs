//! Reads rules by what they say: each PDR, with its endpoints and its FAR, is recognised as one of the things that a
//! session is made of. What cannot be done exactly as it is said is refused.
mod session;
mod view;

use super::decoded::{ControlTunnel, DecodedRules, DefaultRules, UsageRule};
use super::rules::{Rejection, RuleSet};
use super::{PoolNet, Tunnel};
use session::session;
use view::{View, agree, downlink_of, forbid, uplink_of, want};
use wire::pfcp::*;

type Outcome<T> = Result<T, Rejection>;

pub(super) fn decode(rules: &RuleSet) -> Outcome<DecodedRules> {
    match rules.pdn_type {
        None if rules.echo_magic.is_some() => Err(Rejection::of(
            Cause::SERVICE_NOT_SUPPORTED,
            bbf_ie::PPP_LCP_CONNECTIVITY,
        )),
        None => default_session(rules).map(DecodedRules::Default),
        Some(PdnType::Ethernet) => {
            session(rules).map(|decoded| DecodedRules::Session(Box::new(decoded)))
        }
        Some(_) => Err(Rejection::of(Cause::SERVICE_NOT_SUPPORTED, ie::PDN_TYPE)),
    }
}

fn control_tunnel(uplink: Option<Tunnel>, downlink: Option<Tunnel>) -> Outcome<ControlTunnel> {
    let missing = Rejection::of(Cause::RULE_CREATION_FAILURE, ie::CREATE_PDR);
    Ok(ControlTunnel {
        uplink: uplink.ok_or(missing)?,
        downlink,
    })
}

fn default_session(rules: &RuleSet) -> Outcome<DefaultRules> {
    let mut uplink = None;
    let mut downlink = None;
    let mut nets = Vec::new();
    let mut port = None;
    for pdr in &rules.pdrs {
        let view = View::of(rules, pdr)?;
        view.names_no_policy()?;
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
    Ok(DefaultRules {
        logical_port,
        tunnel: control_tunnel(uplink, downlink)?,
        nets,
    })
}

fn pool_net(view: &View<'_>) -> Outcome<PoolNet> {
    let mut routes = view.routes();
    let (Some(net), None) = (routes.next(), routes.next()) else {
        return Err(view.refuse(ie::FRAMED_ROUTE));
    };
    let network_instance =
        want(view.network_instance(), view.pdr, ie::NETWORK_INSTANCE)?.to_owned();
    Ok(PoolNet {
        slot: view.pdr.pdr_id,
        network_instance,
        net: net?.prefix,
    })
}

/// The session's QER, which has the subscriber handle and the rates. Closed gates are refused for as long as nothing enforces them.
fn qer(rules: &RuleSet) -> Outcome<Option<&CreateQer>> {
    let [qer] = &rules.qers[..] else {
        let second = rules
            .qers
            .get(1)
            .map(|qer| Rejection::rule(FailedRule::Qer(qer.qer_id), ie::CREATE_QER));
        return second.map_or(Ok(None), Err);
    };
    let refused = |offending| Err(Rejection::rule(FailedRule::Qer(qer.qer_id), offending));
    if qer.gate_status != GateStatus::OPEN {
        return refused(ie::GATE_STATUS);
    }
    Ok(Some(qer))
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
