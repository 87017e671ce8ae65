//! What the history says, as the local API tells it.

use super::bindings::longest;
use super::subject::unescaped;
use super::{Event, Figure, Held, Kind, Step, Subscriber, Traffic, Until, What, parse_prefix};
use crate::plane::severity;
use crate::topology::Seid;
use ipnet::IpNet;
use northbound::{BindingRole, EventKind, Holder, Session, SessionState, SubscriberState};
use policy::{Binding, Bindings, Role};
use session::Cause;

/// Octets as they are shown.
pub(super) fn text(octets: &[u8]) -> String {
    octets.escape_ascii().to_string()
}

/// A subscriber as the local API tells it.
pub(super) fn subscriber(who: &Subscriber<'_>) -> northbound::Subscriber {
    let [s_tag, c_tag] = who.vlans.map(|vlan| vlan.map(u32::from));
    let [circuit_id, remote_id] = who.line.map(|id| id.map(text));
    northbound::Subscriber {
        session: Seid(who.session).to_string(),
        user: text(who.user),
        mac: wire::eth::MacAddr(who.mac).to_string(),
        user_plane: who.user_plane.to_owned(),
        port: who.port.to_owned(),
        s_tag,
        c_tag,
        circuit_id,
        remote_id,
    }
}

/// A figure as the local API tells it.
pub(super) fn figure(figure: &Figure) -> northbound::Figure {
    northbound::Figure {
        name: figure.name.clone(),
        resource: figure.resource.clone(),
        unit: figure.unit.clone(),
        at: figure.unix.into(),
        seconds: figure.seconds,
        mean: figure.mean.round() as u64,
        most: figure.most.round() as u64,
        most_at: figure.most_at.into(),
    }
}

/// An event with its number as the local API tells it.
pub(super) fn row(number: u64, event: &Event<'_>) -> northbound::Event {
    let mut row = northbound::Event {
        number,
        at: event.unix.into(),
        kind: kind(&event.what).into(),
        ..northbound::Event::default()
    };
    match &event.what {
        What::System {
            resource, by, text, ..
        } => {
            row.resource = (*resource).to_owned();
            row.by = by.map(str::to_owned);
            row.text = (*text).to_owned();
        }
        What::Alarm {
            fault,
            resource,
            text,
            ..
        } => {
            row.resource = (*resource).to_owned();
            row.text = (*text).to_owned();
            row.alarm = Some(fault.name().into());
            row.severity = severity(fault.severity()).into();
        }
        What::Acknowledged {
            fault,
            resource,
            by,
            comment,
        } => {
            row.resource = (*resource).to_owned();
            row.by = Some((*by).to_owned());
            row.text = (*comment).to_owned();
            row.alarm = Some(fault.name().into());
            row.severity = severity(fault.severity()).into();
        }
        What::Subscriber(who, step) => {
            row.subscriber = Some(subscriber(who));
            row_of_step(&mut row, step);
        }
    }
    row
}

fn row_of_step(row: &mut northbound::Event, step: &Step<'_>) {
    let since = |unix: u32| Some(u64::from(unix)).filter(|unix| *unix > 0);
    match step {
        Step::Refused {
            dialled,
            servers,
            why,
            reply,
        } => {
            row.since = since(*dialled);
            row.server_group = servers.map(str::to_owned);
            row.text = (*why).to_owned();
            row.reply = Some(text(reply)).filter(|reply| !reply.is_empty());
        }
        Step::Failed { dialled, cause } => {
            row.since = since(*dialled);
            row.text = cause.text().into();
        }
        Step::Online {
            dialled,
            servers,
            profile,
            instance,
            bindings,
        } => {
            row.since = since(*dialled);
            row.server_group = servers.map(str::to_owned);
            row.text = profile.map_or(String::new(), |name| format!("profile {name}"));
            put_bindings(row, instance, bindings);
        }
        Step::Changed {
            instance,
            before,
            bindings,
        } => {
            row.text = format!("before: {}", list(before));
            put_bindings(row, instance, bindings);
        }
        Step::Authorized { by, text } => {
            row.by = Some((*by).to_owned());
            row.text = (*text).to_owned();
        }
        Step::Ended {
            started,
            cause,
            by,
            instance,
            bindings,
        } => {
            row.since = since(*started);
            row.by = by.map(str::to_owned);
            row.text = cause.text().into();
            put_bindings(row, instance, bindings);
        }
        Step::FellBack { servers, fallback } => {
            row.server_group = servers.map(str::to_owned);
            row.text = format!("no RADIUS server answered: accepted by fallback {fallback}");
        }
        Step::Counted {
            started,
            ended,
            cause,
            instance,
            bindings,
            traffic: all,
            families,
        } => {
            row.since = since(*started);
            row.ended = since(*ended);
            row.text = cause.text().into();
            row.traffic = Some(traffic(*all));
            let [ipv4, ipv6] = families.map_or([None; 2], |of| of.map(Some));
            row.ipv4_traffic = ipv4.map(traffic);
            row.ipv6_traffic = ipv6.map(traffic);
            put_bindings(row, instance, bindings);
        }
    }
}

fn traffic(traffic: Traffic) -> northbound::Traffic {
    northbound::Traffic {
        up_packets: traffic.up_packets,
        up_octets: traffic.up_octets,
        down_packets: traffic.down_packets,
        down_octets: traffic.down_octets,
    }
}

fn put_bindings(row: &mut northbound::Event, instance: &str, bindings: &Bindings) {
    row.network_instance = Some(instance.to_owned());
    row.ipv4 = bindings.ipv4().map(|address| address.to_string());
    row.ipv6_prefix = bindings.ipv6().map(|prefix| prefix.to_string());
    row.other_bindings = others(bindings);
}

/// Bindings as text, with the role of those that the subscriber's router does not have itself.
fn list(bindings: &Bindings) -> String {
    let all = bindings.iter().map(|binding| match binding.role {
        Role::Host | Role::Link => binding.to_string(),
        Role::Delegated => format!("delegated {binding}"),
        Role::Route => format!("route {binding}"),
    });
    let all: Vec<String> = all.collect();
    match all.is_empty() {
        true => "none".into(),
        false => all.join(" and "),
    }
}

fn binding_row(binding: &Binding) -> northbound::Binding {
    let role = match binding.role {
        Role::Host => BindingRole::Host,
        Role::Link => BindingRole::Link,
        Role::Delegated => BindingRole::Delegated,
        Role::Route => BindingRole::Route,
    };
    northbound::Binding {
        role: role.into(),
        prefix: binding.to_string(),
    }
}

/// Bindings for which a row has no field of its own.
pub(crate) fn others(bindings: &Bindings) -> Vec<northbound::Binding> {
    bindings.others().map(binding_row).collect()
}

/// The kind of an event as the local API tells it.
pub(super) fn kind(what: &What<'_>) -> EventKind {
    match what {
        What::System { kind, .. } => kind_of(*kind),
        What::Alarm { raised: true, .. } => EventKind::AlarmRaised,
        What::Alarm { raised: false, .. } => EventKind::AlarmCleared,
        What::Acknowledged { .. } => EventKind::AlarmAcknowledged,
        What::Subscriber(_, step) => match step {
            Step::Refused { .. } => EventKind::Refused,
            Step::Failed { .. } => EventKind::Failed,
            Step::Online { .. } => EventKind::Online,
            Step::Changed { .. } => EventKind::Changed,
            Step::Authorized { .. } => EventKind::Authorized,
            Step::Ended { .. } => EventKind::Ended,
            Step::FellBack { .. } => EventKind::FellBack,
            Step::Counted { .. } => EventKind::Counted,
        },
    }
}

/// Whether events of a kind are about a subscriber.
pub(super) fn is_of_subscriber(kind: EventKind) -> bool {
    use EventKind::{Authorized, Changed, Counted, Ended, Failed, FellBack, Online, Refused};
    matches!(
        kind,
        Refused | Failed | Online | Changed | Authorized | Ended | FellBack | Counted
    )
}

fn kind_of(kind: Kind) -> EventKind {
    match kind {
        Kind::Started => EventKind::Started,
        Kind::Stopped => EventKind::Stopped,
        Kind::UserPlaneBack => EventKind::UserPlaneBack,
        Kind::UserPlaneLost => EventKind::UserPlaneLost,
        Kind::Committed => EventKind::Committed,
        Kind::Confirmed => EventKind::Confirmed,
        Kind::RolledBack => EventKind::RolledBack,
    }
}

/// Somebody who had an address or prefix, as the local API tells it.
pub(super) fn holder(held: Held, prefix: IpNet) -> Holder {
    let [s_tag, c_tag] = held.vlans.map(|vlan| vlan.map(u32::from));
    let [circuit_id, remote_id] = held.line.map(|id| id.map(|id| text(&id)));
    let now = held.until == Until::Now;
    let (to, because, by) = match held.until {
        Until::Now => (None, String::new(), None),
        Until::Ended { at, cause, by } => {
            let because = cause.map_or("its addresses changed", Cause::text);
            (Some(at), because.to_owned(), by)
        }
        Until::Unknown(before) => (before, "its end was not recorded".into(), None),
    };
    Holder {
        now,
        subscriber: Some(northbound::Subscriber {
            session: Seid(held.session).to_string(),
            user: text(&held.user),
            mac: wire::eth::MacAddr(held.mac).to_string(),
            user_plane: held.user_plane,
            port: held.port,
            s_tag,
            c_tag,
            circuit_id,
            remote_id,
        }),
        network_instance: held.instance,
        ipv4: held.bindings.ipv4().map(|address| address.to_string()),
        ipv6_prefix: held.bindings.ipv6().map(|prefix| prefix.to_string()),
        other_bindings: others(&held.bindings),
        binding: longest(&held.bindings, prefix).map(binding_row),
        from: held.from.map(u64::from),
        to: to.map(u64::from),
        ended_because: because,
        ended_by: by,
    }
}

/// Who has an address by what the control plane says of a session.
pub(super) fn live(state: &SubscriberState) -> Option<Held> {
    let session = state.session.as_ref()?;
    if session.state() != SessionState::Online || state.sibling {
        return None;
    }
    let octets = |text: &Option<String>| text.as_deref().map(unescaped);
    let vlan = |vlan: Option<u32>| vlan.and_then(|vlan| u16::try_from(vlan).ok());
    Some(Held {
        session: u64::from_str_radix(&session.id, 16).ok()?,
        user: unescaped(&session.user),
        mac: session.mac.parse::<wire::eth::MacAddr>().ok()?.0,
        user_plane: session.user_plane.clone(),
        port: session.port.clone(),
        vlans: [vlan(session.s_tag), vlan(session.c_tag)],
        line: [octets(&state.circuit_id), octets(&state.remote_id)],
        instance: session.network_instance.clone(),
        bindings: bindings_of(session, &state.other_bindings),
        from: state.online_since.and_then(|at| u32::try_from(at).ok()),
        until: Until::Now,
    })
}

fn bindings_of(session: &Session, others: &[northbound::Binding]) -> Bindings {
    let ipv4 = session.ipv4.as_deref().and_then(|text| text.parse().ok());
    let ipv6 = session.ipv6_prefix.as_deref();
    let own = Bindings::of(ipv4, ipv6.and_then(|text| text.parse().ok()));
    let others = others.iter().filter_map(|other| {
        let role = match other.role() {
            BindingRole::Host => Role::Host,
            BindingRole::Link => Role::Link,
            BindingRole::Delegated => Role::Delegated,
            BindingRole::Route => Role::Route,
            BindingRole::Unspecified => return None,
        };
        Some(Binding::new(role, parse_prefix(&other.prefix)?))
    });
    Bindings::new(own.iter().copied().chain(others)).unwrap_or(own)
}
