//! What happened, and who had an address.

use super::ask::{Failure, Sockets};
use super::listing::Row;
use super::show::Answer;
use super::time::{self, moment};
use northbound::telling::{addresses, binding, line, told};
use northbound::{
    Event, FindHoldersResponse, Holder, LineHistory, ListEventsRequest, Matching, Subscriber,
};

/// How many of the latest events are shown where nothing else is said.
pub(super) const LATEST: u32 = 100;

/// `sluice who`.
#[derive(Debug, clap::Args)]
pub struct Who {
    /// An IPv4 or IPv6 address or prefix
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// When it was: `at` and a time such as 2026-11-22T07:15:00Z, 07:15 (UTC) or -2h [default: now]
    #[arg(value_name = "at TIME", num_args = 0..=2, allow_hyphen_values = true)]
    at: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn read(text: Option<&String>) -> Result<Option<u64>, Failure> {
    let read = text.map(|text| time::read(text, time::now()));
    read.transpose().map_err(Failure::Other)
}

/// Every event that is asked for, and how many match if that is asked for.
pub(super) fn events(
    sockets: &Sockets,
    request: ListEventsRequest,
) -> Result<(Vec<Event>, Option<Matching>), Failure> {
    let mut events = Vec::new();
    let matching = sockets.history(|history| {
        history.events(request, |event| {
            events.push(event);
            true
        })
    })?;
    Ok((events, matching))
}

/// That these are not all events that match.
pub(super) fn cut(shown: usize, matching: Matching) -> String {
    format!("the latest {shown} of {matching} events: --last shows more of them")
}

/// The columns of an event that its message has no field for.
pub(super) fn derive(event: &Event, row: &mut Row) {
    let who = event.subscriber.as_ref();
    let who = who.map_or_else(|| event.resource.clone(), name);
    row.insert("who".into(), who.into());
    row.insert("why".into(), told(event).into());
}

fn name(who: &Subscriber) -> String {
    match who.user.is_empty() {
        true => who.mac.clone(),
        false => who.user.clone(),
    }
}

/// The latest trouble of a line; empty without any.
pub(super) fn trouble(line: &LineHistory) -> String {
    let all = [
        ("refused", &line.last_refused),
        ("failed", &line.last_failed),
        ("ended", &line.last_ended),
    ];
    let there = all
        .into_iter()
        .filter_map(|(word, at)| Some((word, at.as_ref()?)));
    let last = there.max_by_key(|(_, event)| event.at);
    last.map_or(String::new(), |(word, event)| {
        format!("{} {word}: {}", moment(event.at), event.text)
    })
}

impl Who {
    fn at(&self) -> Result<Option<u64>, Failure> {
        match self.at.as_slice() {
            [] => Ok(None),
            [word, time] if word == "at" => read(Some(time)),
            [time] if time != "at" => read(Some(time)),
            _ => Err(Failure::Other(
                "expected a time behind `at`: 2026-11-22T07:15:00Z, 07:15 (UTC) or -2h".into(),
            )),
        }
    }

    /// Who had the address.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        let at = self.at()?;
        let found = sockets.history(|history| history.holders(&self.address, at))?;
        match self.json {
            true => Answer::json(&found),
            false => Ok(Answer::of(page(&self.address, &found, at.is_none()))),
        }
    }
}

/// Who had an address, in words.
fn page(address: &str, found: &FindHoldersResponse, now: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let when = moment(found.at);
    if found.holders.is_empty() {
        lines.push(match now {
            true => format!("Nobody has {address} now ({when})."),
            false => format!("Nobody had {address} at {when}, as far as is known."),
        });
        match found.oldest {
            Some(oldest) if oldest > found.at => lines.push(format!(
                "The history reaches back to {}: of what was before, only what ended since is known.",
                moment(oldest)
            )),
            None => lines.push("The history is empty.".into()),
            Some(_) => {}
        }
    }
    for holder in &found.holders {
        lines.extend(holder_page(holder));
    }
    for other in &found.others {
        let before = other.from.is_none_or(|from| from <= found.at);
        lines.push(String::new());
        lines.push(if before { "Before:" } else { "After:" }.into());
        lines.extend(holder_page(other));
    }
    lines
}

fn holder_page(holder: &Holder) -> Vec<String> {
    let who = holder.subscriber.clone().unwrap_or_default();
    let by = holder.ended_by.as_ref().map(|by| format!(" by {by}"));
    let (by, because) = (by.unwrap_or_default(), &holder.ended_because);
    let until = match holder.to {
        _ if holder.now => "now".into(),
        Some(to) => format!("{} ({because}{by})", moment(to)),
        None => format!("unknown ({because})"),
    };
    let (ipv4, ipv6) = (holder.ipv4.as_ref(), holder.ipv6_prefix.as_ref());
    let mut lines = vec![
        ("subscriber", who.user.clone()),
        ("has", addresses(ipv4, ipv6, &holder.other_bindings)),
        (
            "from",
            holder.from.map_or("before what is kept".into(), moment),
        ),
        ("until", until),
        ("line", line(&who)),
        ("mac", who.mac),
        ("session", who.session),
        ("network instance", holder.network_instance.clone()),
    ];
    lines.extend(holder.binding.as_ref().map(|by| ("found by", binding(by))));
    lines.extend(who.circuit_id.map(|id| ("circuit id", id)));
    lines.extend(who.remote_id.map(|id| ("remote id", id)));
    let lines = lines.into_iter();
    lines
        .map(|(name, value)| format!("{name:<18}{value}").trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::listing::table;
    use super::*;
    use northbound::{Binding, BindingRole, EventKind, ListEventsResponse, catalogue};

    fn example() -> Subscriber {
        Subscriber {
            session: "18bcff4aa4100000".into(),
            user: "home7@sluice".into(),
            mac: "02:00:00:00:00:07".into(),
            user_plane: "up1".into(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: Some(7),
            ..Subscriber::default()
        }
    }

    #[test]
    fn that_there_are_more_events_is_said() {
        let said = |matching, or_more| {
            let part = ListEventsResponse {
                matching: Some(matching),
                or_more,
                ..ListEventsResponse::default()
            };
            cut(100, Matching::of(&part).unwrap())
        };
        assert!(said(1234, false).starts_with("the latest 100 of 1234 events"));
        assert!(said(1234, true).starts_with("the latest 100 of 1234 or more events"));
        let earlier = said(10_000, false);
        assert!(earlier.contains("of 10000 or more"), "{earlier}");
    }

    #[test]
    fn the_table_of_events_fits_eighty_columns_and_says_when_who_and_why() {
        let refused = Event {
            at: 1_795_331_730,
            kind: EventKind::Refused.into(),
            subscriber: Some(example()),
            text: "rejected by the server".into(),
            reply: Some("wrong password".into()),
            ..Event::default()
        };
        let table = table(&catalogue::EVENTS, &[refused], derive);
        let lines = table.render(Some(80));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        for word in ["2026-11-22 07:15:30", "refused", "home7@sluice"] {
            assert!(lines[1].contains(word), "{lines:#?}");
        }
        let full = &table.render(None)[1];
        assert!(
            full.contains("up1/access0.100.7") && full.contains("wrong password"),
            "{full}"
        );
    }

    fn route() -> Binding {
        Binding {
            role: BindingRole::Route.into(),
            prefix: "203.0.113.0/29".into(),
        }
    }

    #[test]
    fn an_event_is_told_with_the_roles_of_further_prefixes() {
        let event = Event {
            kind: EventKind::Online.into(),
            ipv4: Some("100.64.0.9".into()),
            other_bindings: vec![
                Binding {
                    role: BindingRole::Host.into(),
                    prefix: "2001:db8:5::1".into(),
                },
                route(),
            ],
            ..Event::default()
        };
        assert_eq!(
            told(&event),
            "100.64.0.9 2001:db8:5::1 route 203.0.113.0/29"
        );
    }

    #[test]
    fn who_had_an_address_is_said_with_line_and_end() {
        let holder = Holder {
            subscriber: Some(example()),
            ipv4: Some("100.64.0.9".into()),
            other_bindings: vec![route()],
            binding: Some(route()),
            from: Some(1_795_331_000),
            to: Some(1_795_331_730),
            ended_because: "administrator".into(),
            ended_by: Some("alice".into()),
            ..Holder::default()
        };
        let found = FindHoldersResponse {
            at: 1_795_331_500,
            holders: vec![holder.clone()],
            ..FindHoldersResponse::default()
        };
        let said = page("100.64.0.9", &found, false).join("\n");
        for words in [
            "subscriber        home7@sluice",
            "until             2026-11-22 07:15:30Z (administrator by alice)",
            "line              up1/access0.100.7",
            "has               100.64.0.9 route 203.0.113.0/29",
            "found by          route 203.0.113.0/29",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let nobody = FindHoldersResponse {
            at: 1_795_331_900,
            others: vec![holder],
            oldest: Some(1),
            ..FindHoldersResponse::default()
        };
        let said = page("100.64.0.9", &nobody, false).join("\n");
        assert!(
            said.starts_with("Nobody had 100.64.0.9 at 2026-11-22 07:18:20Z"),
            "{said}"
        );
        assert!(said.contains("Before:"), "{said}");
    }
}
