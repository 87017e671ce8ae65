//! Why somebody is not there.

use super::Explanation;
use super::sentences::name;
use crate::telling::{line, told};
use crate::time::moment;
use crate::units::counted;
use crate::{Event, EventKind, FindSubscriberResponse, LineHistory};

/// Why somebody is not there.
pub(super) fn sentences(
    known: &Explanation,
    asked: &str,
    found: &FindSubscriberResponse,
    similar: &[String],
) -> Vec<String> {
    let own = known.events.iter().rev();
    let mut own = own.filter(|event| event.subscriber.is_some());
    // that its traffic is counted comes behind its end, and perhaps behind its next attempt
    let last = own.clone().find(|event| event.kind() != EventKind::Counted);
    let last = last.or_else(|| own.next());
    let mut said = match last {
        Some(event) if is_line(asked, event) => known
            .lines
            .iter()
            .flat_map(|line| of_line(asked, line))
            .collect(),
        Some(event) => absence(asked, event),
        None if found.is_user => vec![format!(
            "{asked} is a user of the configuration and has not dialled in, as far as is known."
        )],
        None => vec![format!(
            "Nothing is known of {asked}: no session and no event has it as name, MAC address, session or address."
        )],
    };
    if !similar.is_empty() {
        said.push(format!("Names that are like it: {}.", similar.join(", ")));
    }
    said
}

/// Whether a line was asked for, not who was there.
fn is_line(asked: &str, event: &Event) -> bool {
    let who = event.subscriber.clone().unwrap_or_default();
    let ids = [who.circuit_id.as_deref(), who.remote_id.as_deref()];
    ids.contains(&Some(asked)) || line(&who) == asked
}

/// Why nobody is connected from a line.
fn of_line(asked: &str, of: &LineHistory) -> Vec<String> {
    let since = match (&of.last_online, &of.last_ended) {
        (_, Some(ended)) => format!(
            "Nobody has been connected from line {asked} since {}: the session of {} ended ({}).",
            moment(ended.at),
            by(&ended.user),
            ended.text
        ),
        (Some(online), None) => format!(
            "Nobody is connected from line {asked}. {} came online there at {}, and its end was not recorded.",
            by(&online.user),
            moment(online.at)
        ),
        (None, None) => {
            format!("Nobody has connected from line {asked}, as far back as the history goes.")
        }
    };
    let mut said = vec![since];
    let tries = [
        ("AAA has refused attempts", of.refusals, &of.last_refused),
        ("Attempts have failed", of.failures, &of.last_failed),
    ];
    for (what, times, last) in tries {
        said.extend(last.as_ref().map(|last| {
            format!(
                "{what} there {}, the last one at {} by {}: {}.",
                counted(times, "time"),
                moment(last.at),
                by(&last.user),
                last.text
            )
        }));
    }
    let who = of.subscriber.clone().unwrap_or_default();
    said.push(format!(
        "It is {}. It was heard of last at {}, from MAC address {} at {}.",
        of.line,
        moment(of.heard_at),
        who.mac,
        line(&who)
    ));
    said
}

/// Who it was, by a name that may be empty.
fn by(user: &str) -> &str {
    match user.is_empty() {
        true => "somebody who gave no name",
        false => user,
    }
}

/// Why it is not online, by what happened to it last.
fn absence(asked: &str, event: &Event) -> Vec<String> {
    let who = event.subscriber.clone().unwrap_or_default();
    let at = moment(event.at);
    let name = name(&who.user, &who.mac);
    let why = match event.kind() {
        EventKind::Refused => {
            let by = match &event.server_group {
                Some(group) => format!("RADIUS server group {group}"),
                None => "the users of the configuration".into(),
            };
            format!(
                "{name} is not online: {by} refused it at {at}: {}.",
                told(event)
            )
        }
        EventKind::Failed => {
            format!(
                "{name} is not online: it dialled in, and that ended at {at}: {}.",
                told(event)
            )
        }
        EventKind::Ended => format!(
            "{name} is not online: its session ended at {at}: {}.",
            told(event)
        ),
        EventKind::Counted => format!(
            "{name} is not online: its session ended at {}: {}; it had {}.",
            moment(event.ended.unwrap_or(event.at)),
            event.text,
            told(event)
        ),
        _ => format!(
            "{name} is not online, although its end was not recorded; it was last heard of at {at}."
        ),
    };
    let mut said = vec![why];
    said.push(format!(
        "It was at {} with MAC address {}.",
        line(&who),
        who.mac
    ));
    if asked != who.user && !who.user.is_empty() {
        said.push(format!(
            "{asked} was looked for as name, MAC address, session and address."
        ));
    }
    said
}
