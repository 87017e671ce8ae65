//! Queries of the history: events, and who had an address.

use super::bindings::overlap;
use super::candidates::{Candidate, Finder};
use super::database::{Reader, segments};
use super::event::{self, Event, Step, Subscriber, What};
use super::rows::kind;
use super::subject::Subject;
use crate::alarms::Alarms;
use core::ops::ControlFlow;
use ipnet::IpNet;
use northbound::{EventKind, Matching};
use policy::Bindings;
use session::Cause;
use std::collections::HashSet;

/// Selection of events.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Events about all of these.
    pub subjects: Vec<Subject>,
    /// Events of any of these kinds; empty: of all.
    pub kinds: Vec<EventKind>,
    /// Only alarms that were raised, acknowledged or cleared.
    pub alarms: bool,
    /// Earliest time, in seconds since 1970.
    pub since: Option<u32>,
    /// Latest time, in seconds since 1970.
    pub until: Option<u32>,
}

impl Query {
    /// Whether all of these times are selected; `None`: some may be.
    pub(super) fn has_times(&self, earliest: u32, latest: u32) -> Option<bool> {
        let [since, until] = [self.since.unwrap_or(0), self.until.unwrap_or(u32::MAX)];
        match (
            earliest >= since && latest <= until,
            earliest > until || latest < since,
        ) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    pub(super) fn wants(&self, event: &Event<'_>) -> bool {
        self.since.is_none_or(|since| event.unix >= since)
            && self.until.is_none_or(|until| event.unix <= until)
            && self.subjects.iter().all(|subject| subject.matches(event))
            && (self.kinds.is_empty() || self.kinds.contains(&kind(&event.what)))
            && (!self.alarms
                || matches!(event.what, What::Alarm { .. } | What::Acknowledged { .. }))
    }
}

/// Keys that are read to count those events that are not told: some 10 ms. In that time 3,072 events are read.
pub const EFFORT: usize = 98_304;

/// How far the latest selected events are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Events that are told.
    pub told: usize,
    /// Events that are counted, with those that are told.
    pub counted: usize,
    /// Keys that are read to count those that are not told. An event takes as long as 32 keys.
    pub effort: usize,
}

impl Extent {
    const ALL: Self = Extent {
        told: usize::MAX,
        counted: usize::MAX,
        effort: usize::MAX,
    };
}

/// What is left of an [`Extent`].
struct Limit {
    /// Events that are still told.
    told: usize,
    /// Effort to tell those that are told.
    before: usize,
    /// Effort to count others.
    effort: usize,
}

impl Limit {
    fn new(extent: Extent) -> Self {
        Limit {
            told: extent.told,
            before: 0,
            effort: extent.effort,
        }
    }

    /// Notes that an event was found, with this effort until now.
    fn tell(&mut self, effort: usize) {
        if self.told > 0 {
            self.told -= 1;
            self.before = effort;
        }
    }

    /// Whether counting ends, with this effort until now.
    fn is_reached(&self, effort: usize) -> bool {
        self.told == 0 && effort - self.before >= self.effort
    }
}

impl Reader {
    /// Visits the selected events in the order in which they happened.
    pub fn forward(&self, query: &Query, mut tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(query, false, || true, |_, event| tell(event));
    }

    /// Visits the selected events, the latest first.
    pub fn backward(&self, query: &Query, mut tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(query, true, || true, |_, event| tell(event));
    }

    /// Visits the selected events with their numbers in one of both orders, while `goes_on` says so.
    pub(super) fn visit(
        &self,
        query: &Query,
        backward: bool,
        goes_on: impl FnMut() -> bool,
        mut tell: impl FnMut(u64, &Event<'_>) -> ControlFlow<()>,
    ) {
        let tell = |id, event: Option<&Event<'_>>| match event {
            Some(event) => tell(id, event),
            None => ControlFlow::Continue(()),
        };
        if let Err(error) = self.try_visit(query, backward, Extent::ALL, goes_on, tell) {
            self.cannot_read(&error);
        }
    }

    /// Visits the latest selected events with their numbers, and counts them and those before.
    pub fn latest(
        &self,
        query: &Query,
        extent: Extent,
        goes_on: impl FnMut() -> bool,
        mut tell: impl FnMut(u64, &Event<'_>),
    ) -> Matching {
        let mut events = 0;
        let count = |id, event: Option<&Event<'_>>| {
            if let Some(event) = event.filter(|_| events < extent.told) {
                tell(id, event);
            }
            events += 1;
            match events < extent.counted {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let are_all = match extent.counted {
            0 => Ok(false),
            _ => self.try_visit(query, true, extent, goes_on, count),
        };
        let are_all = are_all.unwrap_or_else(|error| {
            self.cannot_read(&error);
            false
        });
        Matching {
            events: events as u64,
            or_more: !are_all,
        }
    }

    /// Each statement reads by itself: a reader that waits for its client keeps nobody from removing what is old. Behind the first `told` events
    /// those are not read that are selected for certain. Returns whether all selected events were visited.
    fn try_visit(
        &self,
        query: &Query,
        backward: bool,
        extent: Extent,
        mut goes_on: impl FnMut() -> bool,
        mut tell: impl FnMut(u64, Option<&Event<'_>>) -> ControlFlow<()>,
    ) -> rusqlite::Result<bool> {
        let connection = self.connect()?;
        let mut finder = Finder::new(&connection, query)?;
        let mut limit = Limit::new(extent);
        for segment in segments(&connection, backward)? {
            if query.has_times(segment.earliest, segment.latest) == Some(false) {
                continue;
            }
            if limit.is_reached(finder.effort()) || !goes_on() {
                return Ok(false);
            }
            let mut candidates = finder.candidates(&segment)?;
            if backward {
                candidates.reverse();
            }
            for Candidate { id, is_certain } in candidates {
                if !is_certain && limit.is_reached(finder.effort()) {
                    return Ok(false);
                }
                let record = match is_certain && limit.told == 0 {
                    true => None,
                    false => Some(finder.read(id)?),
                };
                let event = record.as_ref().map(|record| event::read(record));
                let event = event.map(|event| event.filter(|event| query.wants(event)));
                if event == Some(None) {
                    continue; // another one
                }
                limit.tell(finder.effort());
                if tell(id, event.flatten().as_ref()).is_break() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Alarms that were raised and not cleared, with their acknowledgements.
    pub(crate) fn alarms(&self) -> Alarms {
        let query = Query {
            alarms: true,
            ..Query::default()
        };
        let mut alarms = Alarms::default();
        self.forward(&query, |event| {
            alarms.replay(event);
            ControlFlow::Continue(())
        });
        alarms
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
        | Step::FellBack { .. }
        | Step::Counted { .. } => return None,
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
            subjects: vec![Subject::prefix(prefix)],
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
