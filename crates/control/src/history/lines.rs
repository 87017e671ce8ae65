//! What happened on each access line, read from the events. Nothing is kept for it: so it is there after a restart, and as old as the
//! history.

use super::event::{Event, Step, Subscriber, What};
use super::rows::{subscriber, text};
use super::{Query, Reader};
use crate::subscribers::LineText;
use core::ops::ControlFlow;
use northbound::{LineEvent, LineHistory};
use std::collections::HashMap;
use wire::eth::MacAddr;

/// Maximum number of lines in an answer: 131,072 homes.
const MOST: usize = 131_072;

/// Lines of the selected events.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The line that was heard of last comes first.
    pub lines: Vec<LineHistory>,
    /// Lines were left out.
    pub more: bool,
}

impl Reader {
    /// Lines with selected events. Stops when `goes_on` says false.
    pub(super) fn lines(&self, query: &Query, goes_on: impl FnMut() -> bool) -> Lines {
        let mut found = Lines::default();
        let mut known = HashMap::new();
        self.visit(query, true, goes_on, |_, event| {
            if let What::Subscriber(who, step) = &event.what {
                found.add(&mut known, event, who, step);
            }
            ControlFlow::Continue(())
        });
        found
    }
}

impl Lines {
    /// Adds an event that is earlier than those before. `known`: places of the lines.
    fn add(
        &mut self,
        known: &mut HashMap<String, usize>,
        event: &Event<'_>,
        who: &Subscriber<'_>,
        step: &Step<'_>,
    ) {
        let name = line_of(who);
        let place = match known.get(&name) {
            Some(place) => *place,
            None if self.lines.len() >= MOST => {
                self.more = true;
                return;
            }
            None => {
                self.lines.push(LineHistory {
                    line: name.clone(),
                    subscriber: Some(subscriber(who)),
                    heard_at: event.unix.into(),
                    ..LineHistory::default()
                });
                known.insert(name, self.lines.len() - 1);
                self.lines.len() - 1
            }
        };
        count(&mut self.lines[place], event.unix, who, step);
    }
}

/// The access line of a subscriber, as sessions name it.
fn line_of(who: &Subscriber<'_>) -> String {
    let port = format!("{}/{}", who.user_plane, who.port);
    LineText::of(who.line, who.vlans, MacAddr(who.mac)).at(&port)
}

/// Counts an event of a line, and keeps the latest one of each kind.
fn count(line: &mut LineHistory, unix: u32, who: &Subscriber<'_>, step: &Step<'_>) {
    let (count, latest, why) = match step {
        Step::Online { .. } => (&mut line.set_ups, &mut line.last_online, ""),
        Step::Ended { cause, .. } => (&mut line.ends, &mut line.last_ended, cause.text()),
        Step::Refused { why, .. } => (&mut line.refusals, &mut line.last_refused, *why),
        Step::Failed { cause, .. } => (&mut line.failures, &mut line.last_failed, cause.text()),
        Step::Changed { .. }
        | Step::Authorized { .. }
        | Step::FellBack { .. }
        | Step::Counted { .. } => return,
    };
    *count += 1;
    latest.get_or_insert_with(|| LineEvent {
        at: unix.into(),
        user: text(who.user),
        text: why.into(),
    });
}
