//! What the history says, as the local API tells it.

use super::subject::unescaped;
use super::{Event, Families, Held, Kind, Step, Subscriber, Until, What};
use crate::plane::severity;
use crate::topology::Seid;
use northbound::{EventKind, Holder, Session, SessionState, SubscriberState};
use session::Cause;

fn text(octets: &[u8]) -> String {
    octets.escape_ascii().to_string()
}

fn subscriber(who: &Subscriber<'_>) -> northbound::Subscriber {
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

/// An event as the local API tells it.
pub(super) fn row(event: &Event<'_>) -> northbound::Event {
    let mut row = northbound::Event {
        at: event.unix.into(),
        ..northbound::Event::default()
    };
    match &event.what {
        What::System {
            kind,
            resource,
            by,
            text,
        } => {
            row.kind = kind_of(*kind).into();
            row.resource = (*resource).to_owned();
            row.by = by.map(str::to_owned);
            row.text = (*text).to_owned();
        }
        What::Alarm {
            raised,
            fault,
            resource,
            text,
        } => {
            row.kind = match raised {
                true => EventKind::AlarmRaised,
                false => EventKind::AlarmCleared,
            }
            .into();
            row.resource = (*resource).to_owned();
            row.text = (*text).to_owned();
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
    match *step {
        Step::Refused {
            dialled,
            servers,
            why,
            reply,
        } => {
            row.kind = EventKind::Refused.into();
            row.since = since(dialled);
            row.server_group = servers.map(str::to_owned);
            row.text = why.to_owned();
            row.reply = Some(text(reply)).filter(|reply| !reply.is_empty());
        }
        Step::Failed { dialled, cause } => {
            row.kind = EventKind::Failed.into();
            row.since = since(dialled);
            row.text = cause.text().into();
        }
        Step::Online {
            dialled,
            servers,
            profile,
            instance,
            addresses,
        } => {
            row.kind = EventKind::Online.into();
            row.since = since(dialled);
            row.server_group = servers.map(str::to_owned);
            row.text = profile.map_or(String::new(), |name| format!("profile {name}"));
            put_addresses(row, instance, addresses);
        }
        Step::Changed {
            instance,
            before,
            addresses,
        } => {
            row.kind = EventKind::Changed.into();
            row.text = format!("before: {}", list(&before));
            put_addresses(row, instance, addresses);
        }
        Step::Ended {
            started,
            cause,
            by,
            instance,
            addresses,
        } => {
            row.kind = EventKind::Ended.into();
            row.since = since(started);
            row.by = by.map(str::to_owned);
            row.text = cause.text().into();
            put_addresses(row, instance, addresses);
        }
    }
}

fn put_addresses(row: &mut northbound::Event, instance: &str, addresses: Families) {
    row.network_instance = Some(instance.to_owned());
    row.ipv4 = addresses.ipv4.map(|address| address.to_string());
    row.ipv6_prefix = addresses.ipv6.map(|prefix| prefix.to_string());
}

fn list(addresses: &Families) -> String {
    let ipv4 = addresses.ipv4.map(|address| address.to_string());
    let ipv6 = addresses.ipv6.map(|prefix| prefix.to_string());
    let all: Vec<String> = ipv4.into_iter().chain(ipv6).collect();
    match all.is_empty() {
        true => "none".into(),
        false => all.join(" and "),
    }
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

/// Somebody who had an address, as the local API tells it.
pub(super) fn holder(held: Held) -> Holder {
    let [s_tag, c_tag] = held.vlans.map(|vlan| vlan.map(u32::from));
    let [circuit_id, remote_id] = held.line.map(|id| id.map(|id| text(&id)));
    let now = held.until == Until::Now;
    let (to, because, by) = match held.until {
        Until::Now => (None, String::new(), None),
        Until::Ended { at, cause, by } => {
            let because = cause.map_or("it got another address", Cause::text);
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
        ipv4: held.addresses.ipv4.map(|address| address.to_string()),
        ipv6_prefix: held.addresses.ipv6.map(|prefix| prefix.to_string()),
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
        addresses: addresses_of(session),
        from: state.online_since.and_then(|at| u32::try_from(at).ok()),
        until: Until::Now,
    })
}

fn addresses_of(session: &Session) -> Families {
    let ipv4 = session.ipv4.as_deref();
    let ipv6 = session.ipv6_prefix.as_deref();
    Families {
        ipv4: ipv4.and_then(|text| text.parse().ok()),
        ipv6: ipv6.and_then(|text| text.parse().ok()),
    }
}
