//! Events as syslog messages (RFC 5424). The fields of an event are structured data.

use crate::gateway::value;
use northbound::{AlarmSeverity, Event, EventKind, time};
use serde::Serialize;
use std::fmt::Write;

/// Facility of all messages: system daemons (RFC 5424, section 6.2.1).
const DAEMON: u8 = 3;
/// Name of the structured data. The private enterprise number is that of documentation and examples (RFC 5612), as in the PFCP elements
/// of Sluice: the project has none of its own.
pub const SD_ID: &str = "sluice@32473";
/// Characters of a value that are kept. With all its values a message is far below the 65,507 octets of a datagram.
const LONGEST: usize = 512;
/// Network prefixes that are kept.
const BINDINGS: usize = 32;

/// A message, without its frame.
pub fn message(event: &Event, host: &str) -> String {
    let (kind, severity) = (word(&event.kind()), severity(event));
    let at = time::moment(event.at).replacen(' ', "T", 1);
    let mut message = format!(
        "<{}>1 {at} {host} sluice - {kind} [{SD_ID}",
        DAEMON * 8 + severity
    );
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = write!(message, " {name}=\"{}\"", escaped(value));
        }
    };
    fields(event, &mut put);
    let text = sentence(event);
    // a message that is not ASCII begins with a byte order mark (RFC 5424, section 6.4)
    let mark = if text.is_ascii() { "" } else { "\u{feff}" };
    message + "] " + mark + &text
}

/// A message in its frame for a stream (RFC 6587, section 3.4.1; RFC 5425, section 4.3).
pub fn frame(message: &str) -> String {
    format!("{} {message}", message.len())
}

/// Name of this machine as syslog has it, `-` if it is none that may stand there (RFC 5424, section 6.2.4).
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    match (1..=255).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic()) {
        true => name.to_owned(),
        false => "-".to_owned(),
    }
}

fn fields(event: &Event, put: &mut dyn FnMut(&str, &str)) {
    put("number", &event.number.to_string());
    put("kind", &word(&event.kind()));
    if let Some(who) = &event.subscriber {
        put("session", &who.session);
        put("user", &who.user);
        put("mac", &who.mac);
        put("user_plane", &who.user_plane);
        put("port", &who.port);
        for (name, tag) in [("s_tag", who.s_tag), ("c_tag", who.c_tag)] {
            put(name, &tag.map_or(String::new(), |tag| tag.to_string()));
        }
        put("circuit_id", who.circuit_id.as_deref().unwrap_or_default());
        put("remote_id", who.remote_id.as_deref().unwrap_or_default());
    }
    for (name, value) in [
        ("by", &event.by),
        ("server_group", &event.server_group),
        ("reply", &event.reply),
        ("network_instance", &event.network_instance),
        ("ipv4", &event.ipv4),
        ("ipv6_prefix", &event.ipv6_prefix),
        ("alarm", &event.alarm),
    ] {
        put(name, value.as_deref().unwrap_or_default());
    }
    put("resource", &event.resource);
    put("text", &event.text);
    let since = event.since.map(|since| since.to_string());
    put("since", &since.unwrap_or_default());
    if let Some(traffic) = &event.traffic {
        let ended = event.ended.map(|ended| ended.to_string());
        put("ended", &ended.unwrap_or_default());
        put("up_octets", &traffic.up_octets.to_string());
        put("down_octets", &traffic.down_octets.to_string());
        put("up_packets", &traffic.up_packets.to_string());
        put("down_packets", &traffic.down_packets.to_string());
    }
    if event.severity() != AlarmSeverity::Unspecified {
        put("severity", &word(&event.severity()));
    }
    for binding in event.other_bindings.iter().take(BINDINGS) {
        let role = word(&binding.role());
        put("binding", &format!("{role} {}", binding.prefix));
    }
}

/// The message for people.
fn sentence(event: &Event) -> String {
    let who = match &event.subscriber {
        Some(who) if who.user.is_empty() => &who.mac,
        Some(who) => &who.user,
        None => &event.resource,
    };
    let mut text = word(&event.kind()).replace('-', " ");
    for (between, more) in [
        (" ", event.alarm.as_deref().unwrap_or_default()),
        (" ", who),
        (": ", &event.text),
        (" by ", event.by.as_deref().unwrap_or_default()),
    ] {
        if !more.is_empty() {
            text += between;
            text.extend(plain(more));
        }
    }
    text
}

/// What RFC 5674, section 2, makes of severities of alarms; everything else is a notice at most.
fn severity(event: &Event) -> u8 {
    match (event.kind(), event.severity()) {
        (EventKind::AlarmRaised, AlarmSeverity::Critical) => 1,
        (EventKind::AlarmRaised, AlarmSeverity::Major) => 2,
        (EventKind::AlarmRaised, AlarmSeverity::Minor) => 3,
        (EventKind::AlarmRaised, _) | (EventKind::UserPlaneLost, _) => 4,
        _ if event.subscriber.is_some() => 6,
        _ => 5,
    }
}

/// An enumeration's word, as JSON has it. Those of kinds fit into a MSGID (RFC 5424, section 6.2.7).
fn word(of: &impl Serialize) -> String {
    value(of).as_str().unwrap_or_default().to_owned()
}

/// A text as far as it is kept. Control characters, with which a subscriber could begin a line of its own in somebody's file, are no
/// part of it.
fn plain(text: &str) -> impl Iterator<Item = char> {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(LONGEST).map(shown)
}

/// A value of structured data (RFC 5424, section 6.3.3).
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in plain(value) {
        if matches!(c, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::Subscriber;

    fn online() -> Event {
        Event {
            at: 1_795_331_730,
            number: 65_537,
            kind: EventKind::Online.into(),
            subscriber: Some(Subscriber {
                session: "18bcff4aa4100000".into(),
                user: "home7@sluice".into(),
                s_tag: Some(100),
                ..Subscriber::default()
            }),
            ipv4: Some("100.64.0.9".into()),
            ..Event::default()
        }
    }

    #[test]
    fn an_event_is_a_message_with_its_fields() {
        assert_eq!(
            message(&online(), "gw"),
            "<30>1 2026-11-22T07:15:30Z gw sluice - online [sluice@32473 number=\"65537\" kind=\"online\" \
             session=\"18bcff4aa4100000\" user=\"home7@sluice\" s_tag=\"100\" ipv4=\"100.64.0.9\"] online home7@sluice"
        );
        assert_eq!(frame("abc"), "3 abc");
        assert_eq!(frame("ä"), "2 ä", "octets are counted");
    }

    #[test]
    fn alarms_have_the_severity_of_rfc_5674() {
        let of = |kind: EventKind, severity: AlarmSeverity| {
            let event = Event {
                kind: kind.into(),
                severity: severity.into(),
                ..Event::default()
            };
            message(&event, "-").split_once('>').unwrap().0.to_owned()
        };
        assert_eq!(of(EventKind::AlarmRaised, AlarmSeverity::Critical), "<25");
        assert_eq!(of(EventKind::AlarmRaised, AlarmSeverity::Warning), "<28");
        assert_eq!(of(EventKind::AlarmCleared, AlarmSeverity::Critical), "<29");
        assert_eq!(
            of(EventKind::UserPlaneLost, AlarmSeverity::Unspecified),
            "<28"
        );
    }

    #[test]
    fn nobody_can_write_a_line_or_a_field_of_his_own() {
        let event = Event {
            text: "a\"] [x y=\"1\"\n<0>1 \\ ü".into(),
            ..Event::default()
        };
        let message = message(&event, "-");
        assert!(!message.contains('\n'), "{message}");
        assert!(
            message.contains(r#"text="a\"\] [x y=\"1\"?<0>1 \\ ü"] "#),
            "{message}"
        );
        assert!(message.contains("] \u{feff}"), "{message}");
        let long = Event {
            text: "x".repeat(100_000),
            ..Event::default()
        };
        assert!(super::message(&long, "-").len() < 2000);
    }
}
