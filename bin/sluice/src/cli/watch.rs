//! `sluice watch events`: events as they happen.

use super::ask::{Failure, Sockets};
use super::history::derive;
use super::listing::Row;
use super::show::Answer;
use super::time::moment;
use crate::screen::Interrupt;
use northbound::catalogue::EVENT_WORDS;
use northbound::{Event, EventKind, FollowEventsRequest, word};
use std::io::{self, Write};
use std::time::Duration;

/// How long Ctrl-C may wait.
const LOOK: Duration = Duration::from_millis(100);

/// Which events are watched.
#[derive(Debug, clap::Args)]
pub struct Events {
    /// Of whom: a name, a MAC address, a session, or an address
    #[arg(long, value_name = "SUBSCRIBER")]
    subscriber: Option<String>,
    /// Only these kinds, with commas between them, such as alarm-raised,ended
    #[arg(long, value_name = "TEXT")]
    kinds: Option<String>,
    /// First those behind the event with this number [default: only what happens from now on]
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Print JSON, one line for each event
    #[arg(long)]
    json: bool,
}

impl Events {
    /// Shows events until somebody has seen enough.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let kinds = EventKind::list(self.kinds.as_deref().unwrap_or_default());
        let mut request = FollowEventsRequest {
            after: self.after,
            subscriber: self.subscriber.unwrap_or_default(),
            ..FollowEventsRequest::default()
        };
        let kinds = kinds.map_err(Failure::Other)?;
        kinds.into_iter().for_each(|kind| request.push_kinds(kind));
        let interrupt = Interrupt::listen()?;
        let mut followed = sockets.follow(request)?;
        while !interrupt.is_asked() {
            let Some(part) = followed.next(LOOK)? else {
                continue;
            };
            if part.lost > 0 {
                eprintln!(
                    "{} events at least are not in the history any more",
                    part.lost
                );
            }
            match print(&part.events, self.json) {
                // `sluice watch events | head` is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                done => done?,
            }
        }
        Ok(Answer::default())
    }
}

fn print(events: &[Event], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for event in events {
        match json {
            true => writeln!(out, "{}", serde_json::to_string(event)?)?,
            false => writeln!(out, "{}", line(event))?,
        }
    }
    out.flush()
}

/// An event as a line: when, what, who, and why or with what.
fn line(event: &Event) -> String {
    let mut row = Row::new();
    derive(event, &mut row);
    let of = |name: &str| row[name].as_str().unwrap_or_default();
    let (at, kind) = (moment(event.at), word(EVENT_WORDS, event.kind()));
    format!("{at}  {kind:<12}  {:<20}  {}", of("who"), of("why"))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_with_when_what_who_and_why() {
        let event = Event {
            at: 1_795_331_730,
            kind: EventKind::AlarmRaised.into(),
            resource: "up1".into(),
            text: "it does not answer".into(),
            ..Event::default()
        };
        assert_eq!(
            line(&event),
            "2026-11-22 07:15:30Z  alarm         up1                   it does not answer"
        );
    }
}
