//! What an event says, and who and where it names, in words.

use crate::units::{duration, octets};
use crate::words::word;
use crate::{Binding, BindingRole, Event, EventKind, Subscriber};

/// User plane, port and VLANs.
pub fn line(who: &Subscriber) -> String {
    let vlans = [who.s_tag, who.c_tag].into_iter().flatten();
    let vlans: String = vlans.map(|vlan| format!(".{vlan}")).collect();
    format!("{}/{}{vlans}", who.user_plane, who.port)
}

/// Addresses and prefixes.
pub fn addresses(ipv4: Option<&String>, ipv6: Option<&String>, others: &[Binding]) -> String {
    let own = [ipv4, ipv6].into_iter().flatten().cloned();
    let others = others.iter().map(|other| match other.role() {
        BindingRole::Host => other.prefix.clone(),
        _ => binding(other),
    });
    let all: Vec<String> = own.chain(others).collect();
    match all.is_empty() {
        true => "no address".into(),
        false => all.join(" "),
    }
}

/// A binding with its role.
pub fn binding(binding: &Binding) -> String {
    format!("{} {}", word(&[], binding.role()), binding.prefix)
}

/// What an event says beside who and when.
pub fn told(event: &Event) -> String {
    let (ipv4, ipv6) = (event.ipv4.as_ref(), event.ipv6_prefix.as_ref());
    let has = addresses(ipv4, ipv6, &event.other_bindings);
    let by = |text: &str| match &event.by {
        Some(by) if text.is_empty() => format!("by {by}"),
        Some(by) => format!("{text}, by {by}"),
        None => text.to_owned(),
    };
    let lasted = event
        .since
        .map(|since| duration(event.at.saturating_sub(since)));
    match (event.kind(), lasted) {
        (EventKind::Online, Some(took)) => format!("{has}, {took} after it dialled in"),
        (EventKind::Online, None) => has,
        (EventKind::Changed, _) => format!("{has}; {}", event.text),
        (EventKind::Ended, Some(lasted)) => format!("{}; had {has} for {lasted}", by(&event.text)),
        (EventKind::Counted, _) => {
            let traffic = event.traffic.unwrap_or_default();
            let (up, down) = (octets(traffic.up_octets), octets(traffic.down_octets));
            format!("{up} up, {down} down")
        }
        (EventKind::Refused, _) => match &event.reply {
            Some(reply) => format!("{}; it was told \"{reply}\"", event.text),
            None => event.text.clone(),
        },
        _ => by(&event.text),
    }
}
