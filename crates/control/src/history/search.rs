//! Queries of the history: events, and who had an address.

use super::bindings::overlap;
use super::event::{self, Event, Key, Step, Subscriber, What};
use super::log::{OpenView, Reader};
use super::segment::{self, Blocks, Closed, End};
use super::subject::Subject;
use crate::alarms::Condition;
use core::ops::ControlFlow;
use ipnet::IpNet;
use policy::Bindings;
use session::Cause;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Selection of events.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Events about this subject.
    pub subject: Option<Subject>,
    /// Only raised or cleared alarms.
    pub alarms: bool,
    /// Earliest time, in seconds since 1970.
    pub since: Option<u32>,
    /// Latest time, in seconds since 1970.
    pub until: Option<u32>,
}

impl Query {
    fn wants(&self, event: &Event<'_>) -> bool {
        self.since.is_none_or(|since| event.unix >= since)
            && self.until.is_none_or(|until| event.unix <= until)
            && self.subject.as_ref().is_none_or(|s| s.matches(event))
            && (!self.alarms || matches!(event.what, What::Alarm { .. }))
    }
}

/// Segment, closed or open.
pub(super) enum Part {
    Closed(Arc<Closed>),
    Open(OpenView),
}

impl Part {
    fn summary(&self) -> &segment::Summary {
        match self {
            Part::Closed(closed) => &closed.summary,
            Part::Open(open) => &open.summary,
        }
    }

    fn may_have(&self, query: &Query) -> bool {
        let summary = self.summary();
        let [first, last] = summary.times;
        let in_time = query.since.is_none_or(|since| last >= since)
            && query.until.is_none_or(|until| first <= until);
        let Part::Closed(closed) = self else {
            return in_time;
        };
        let lengths = summary.prefix_lengths;
        let subject = query.subject.as_ref();
        let subject = subject.filter(|subject| subject.can_be_filtered(lengths));
        if !in_time || !query.alarms && subject.is_none() {
            return in_time;
        }
        // whoever reads the segment says why it cannot be read
        closed.filter().is_none_or(|filter| {
            (!query.alarms || filter.may_have(&Key::Alarms))
                && subject.is_none_or(|subject| subject.may_be_in(&filter, lengths))
        })
    }

    /// Octets of header and blocks, and the salt; `None` if the segment has been removed meanwhile or cannot be read.
    fn read(&self, reader: &Reader) -> Option<(Vec<u8>, u64)> {
        let (path, length, salt) = match self {
            Part::Closed(closed) => (&closed.path, closed.end, closed.salt),
            Part::Open(open) => (&open.path, open.length, open.salt),
        };
        match segment::read_to(path, length) {
            Ok(bytes) => Some((bytes, salt)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.damaged(reader, &error);
                None
            }
        }
    }

    /// Reports that the segment cannot be read; a closed segment is reported once.
    fn damaged(&self, reader: &Reader, why: &io::Error) {
        match self {
            Part::Closed(closed) if !closed.damage_told.swap(true, Ordering::Relaxed) => {
                reader.damaged(&closed.path, why);
            }
            Part::Closed(_) => {}
            // The writer will notice.
            Part::Open(open) => {
                tracing::warn!(path = %open.path.display(), %why, "cannot read the history")
            }
        }
    }

    /// Selected events of the segment.
    fn events<'a>(
        &self,
        (bytes, salt): (&'a [u8], u64),
        query: &Query,
        reader: &Reader,
    ) -> Vec<Event<'a>> {
        let mut blocks = Blocks::new(bytes, salt, self.summary().blocks[0]);
        let events = blocks.by_ref().flat_map(|(_, block)| event::events(block));
        let events = events.filter(|event| query.wants(event)).collect();
        if matches!(self, Part::Closed(_)) && blocks.end() != End::Whole {
            let why = io::Error::new(io::ErrorKind::InvalidData, "a block in it is damaged");
            self.damaged(reader, &why);
        }
        events
    }
}

impl Reader {
    /// All segments, the oldest or the latest first.
    fn all(&self, backward: bool) -> impl Iterator<Item = Part> + use<> {
        let (closed, open) = self.segments();
        let closed = closed.into_iter().map(Part::Closed);
        let mut parts: Vec<Part> = closed.chain(open.map(Part::Open)).collect();
        if backward {
            parts.reverse();
        }
        parts.into_iter()
    }

    /// Segments that may have selected events.
    pub(super) fn parts<'a>(
        &self,
        query: &'a Query,
        backward: bool,
    ) -> impl Iterator<Item = Part> + use<'a> {
        self.all(backward).filter(|part| part.may_have(query))
    }

    /// Visits the selected events in the order in which they happened.
    pub fn forward(&self, query: &Query, tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(self.parts(query, false), false, query, tell);
    }

    /// Visits the selected events, the latest first.
    pub fn backward(&self, query: &Query, tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(self.parts(query, true), true, query, tell);
    }

    /// Visits the selected events of these segments.
    pub(super) fn visit(
        &self,
        parts: impl Iterator<Item = Part>,
        backward: bool,
        query: &Query,
        mut tell: impl FnMut(&Event<'_>) -> ControlFlow<()>,
    ) {
        for part in parts {
            let Some((bytes, salt)) = part.read(self) else {
                continue;
            };
            let mut events = part.events((&bytes, salt), query, self);
            if backward {
                events.reverse();
            }
            if events.iter().try_for_each(&mut tell).is_break() {
                return;
            }
        }
    }
}

/// Maximum number of segments that are checked, and that are read, to find the raised alarms: the control plane does not serve
/// until then. An earlier alarm is raised again if its fault persists.
const RECENT: (usize, usize) = (1024, 16);

impl Reader {
    /// Alarms that were raised and not cleared at the end of the history, with their times.
    pub fn raised(&self) -> Vec<(Condition, u32)> {
        let query = Query {
            alarms: true,
            ..Query::default()
        };
        let (mut known, mut raised) = (HashSet::new(), Vec::new());
        let recent = self.all(true).take(RECENT.0);
        let recent = recent.filter(|part| part.may_have(&query)).take(RECENT.1);
        self.visit(recent, true, &query, |event| {
            if let What::Alarm {
                raised: is_raised,
                fault,
                resource,
                text,
            } = event.what
                && known.insert((fault, resource.to_owned()))
                && is_raised
            {
                let condition = Condition {
                    fault,
                    resource: resource.to_owned(),
                    text: text.to_owned(),
                };
                raised.push((condition, event.unix));
            }
            ControlFlow::Continue(())
        });
        raised
    }
}

/// Session that has or had an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The session's SEID.
    pub session: u64,
    /// User name of the subscriber.
    pub user: Vec<u8>,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The user plane's node id.
    pub user_plane: String,
    /// The access port.
    pub port: String,
    /// Outer and inner VLAN id.
    pub vlans: [Option<u16>; 2],
    /// Circuit and remote id of the line.
    pub line: [Option<Vec<u8>>; 2],
    /// The network instance.
    pub instance: String,
    /// All its bindings.
    pub bindings: Bindings,
    /// Start, in seconds since 1970; `None`: no longer known.
    pub from: Option<u32>,
    /// End.
    pub until: Until,
}

/// End of a session's use of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// It still has the address.
    Now,
    /// It had the address until this time.
    Ended {
        /// Seconds since 1970.
        at: u32,
        /// Cause; `None`: its addresses changed.
        cause: Option<Cause>,
        /// Who ended it, if anybody.
        by: Option<String>,
    },
    /// The end is unknown. If another session had the address later, this is the latest possible time.
    Unknown(Option<u32>),
}

impl Held {
    fn new(who: &Subscriber<'_>, instance: &str, bindings: &Bindings) -> Self {
        Held {
            session: who.session,
            user: who.user.to_vec(),
            mac: who.mac,
            user_plane: who.user_plane.to_owned(),
            port: who.port.to_owned(),
            vlans: who.vlans,
            line: who.line.map(|id| id.map(<[u8]>::to_vec)),
            instance: instance.to_owned(),
            bindings: bindings.clone(),
            from: None,
            until: Until::Now,
        }
    }

    /// Whether it had the address at some time in this second.
    pub fn at(&self, unix: u32) -> bool {
        let ended = match &self.until {
            Until::Ended { at, .. } | Until::Unknown(Some(at)) => *at < unix,
            Until::Now | Until::Unknown(None) => false,
        };
        !ended && self.from.is_none_or(|from| from <= unix)
    }
}

/// Change of an address's owner.
enum Mention {
    Gains(u32, Held),
    Keeps(Held),
    /// Time of the end, time of the start, cause, and by whom.
    Loses(u32, Held, Option<u32>, Option<Cause>, Option<String>),
}

fn mention(event: &Event<'_>, prefix: IpNet) -> Option<Mention> {
    let What::Subscriber(who, step) = &event.what else {
        return None;
    };
    let unix = event.unix;
    let has = |bindings: &Bindings| bindings.iter().any(|own| overlap(own.prefix, prefix));
    Some(match step {
        Step::Online {
            instance, bindings, ..
        } => Mention::Gains(unix, Held::new(who, instance, bindings)),
        Step::Changed {
            instance,
            before,
            bindings,
        } => match (has(before), has(bindings)) {
            (false, _) => Mention::Gains(unix, Held::new(who, instance, bindings)),
            (true, true) => Mention::Keeps(Held::new(who, instance, bindings)),
            (true, false) => {
                Mention::Loses(unix, Held::new(who, instance, before), None, None, None)
            }
        },
        Step::Ended {
            started,
            cause,
            by,
            instance,
            bindings,
        } => {
            let held = Held::new(who, instance, bindings);
            let by = by.map(str::to_owned);
            Mention::Loses(unix, held, Some(*started), Some(*cause), by)
        }
        Step::Refused { .. }
        | Step::Failed { .. }
        | Step::Authorized { .. }
        | Step::FellBack { .. } => return None,
    })
}

impl Reader {
    /// Sessions that had an address or a prefix in the second `unix`, and those before and after it as far as the search met them. `live`:
    /// sessions that have it now, as known at the time `asked`. `instances`: number of network instances; in each, one session
    /// may have the address.
    pub fn who(
        &self,
        prefix: IpNet,
        unix: u32,
        instances: usize,
        live: Vec<Held>,
        asked: u32,
    ) -> Vec<Held> {
        let query = Query {
            subject: Some(Subject::prefix(prefix)),
            ..Query::default()
        };
        let mut met = Vec::new();
        let mut known = HashSet::new();
        self.backward(&query, |event| {
            let Some(mention) = mention(event, prefix) else {
                return ControlFlow::Continue(());
            };
            // Earlier owners do not matter once the owner at that second is known.
            if event.unix < unix && matches!(mention, Mention::Gains(..)) {
                known.insert(mention.held().instance.clone());
            }
            met.push(mention);
            match known.len() >= instances {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        met.reverse();
        let mut held = fold(met);
        reconcile(&mut held, live, asked);
        held.sort_by_key(|held| held.from);
        held
    }
}

impl Mention {
    fn held(&self) -> &Held {
        match self {
            Mention::Gains(_, held) | Mention::Keeps(held) | Mention::Loses(_, held, ..) => held,
        }
    }
}

/// Builds the periods of ownership from changes in order. Sessions without an end are included.
fn fold(met: Vec<Mention>) -> Vec<Held> {
    let mut all: Vec<Held> = Vec::new();
    for mention in met {
        let (session, instance) = (mention.held().session, mention.held().instance.clone());
        let is_open = |held: &&mut Held| held.session == session && held.until == Until::Now;
        let open = all.iter_mut().find(is_open);
        match (mention, open) {
            (Mention::Loses(at, lost, _, cause, by), Some(open)) => {
                open.bindings = lost.bindings;
                open.until = Until::Ended { at, cause, by };
            }
            (Mention::Loses(at, lost, from, cause, by), None) => all.push(Held {
                from,
                until: Until::Ended { at, cause, by },
                ..lost
            }),
            (Mention::Gains(_, held) | Mention::Keeps(held), Some(open)) => {
                open.bindings = held.bindings;
            }
            (Mention::Keeps(held), None) => all.push(held),
            (Mention::Gains(unix, held), None) => {
                // No other session can have the address then: its end was not recorded.
                let others = all
                    .iter_mut()
                    .filter(|other| other.until == Until::Now && other.instance == instance);
                others.for_each(|other| other.until = Until::Unknown(Some(unix)));
                all.push(Held {
                    from: Some(unix),
                    ..held
                });
            }
        }
    }
    all
}

/// Corrects the periods with the control plane's live sessions.
fn reconcile(held: &mut Vec<Held>, live: Vec<Held>, asked: u32) {
    for open in held.iter_mut().filter(|held| held.until == Until::Now) {
        let is_live = live.iter().any(|live| live.session == open.session);
        if !is_live && open.from.is_none_or(|from| from < asked) {
            open.until = Until::Unknown(None);
        }
    }
    let known: HashSet<u64> = held
        .iter()
        .filter(|held| held.until == Until::Now)
        .map(|held| held.session)
        .collect();
    held.extend(
        live.into_iter()
            .filter(|live| !known.contains(&live.session)),
    );
}
