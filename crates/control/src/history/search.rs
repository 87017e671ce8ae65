//! Questions that the history answers: what happened, and who had an address.

use super::event::{self, Address, Event, Families, Key, Step, Subscriber, What};
use super::log::{OpenView, Reader};
use super::segment::{self, Blocks, Closed, End};
use super::subject::Subject;
use crate::alarms::Condition;
use core::ops::ControlFlow;
use session::Cause;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Those about this.
    pub subject: Option<Subject>,
    /// Only alarms that were raised or cleared.
    pub alarms: bool,
    /// None before this, in seconds since 1970.
    pub since: Option<u32>,
    /// None after this.
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

/// A segment, closed or not.
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
        let may_be_about = |subject: &Subject| {
            !subject.can_be_filtered(summary.prefix_lengths)
                || closed.may_contain(&subject.hashes(summary.prefix_lengths))
        };
        in_time
            && (!query.alarms || closed.may_contain(&[Key::Alarms.hash()]))
            && query.subject.as_ref().is_none_or(may_be_about)
    }

    /// Its octets as far as its blocks go, and the salt; `None` if it has gone meanwhile.
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

    /// It cannot be read, which is told once.
    fn damaged(&self, reader: &Reader, why: &io::Error) {
        match self {
            Part::Closed(closed) if !closed.damage_told.swap(true, Ordering::Relaxed) => {
                reader.damaged(&closed.path, why);
            }
            Part::Closed(_) => {}
            // whoever writes it will see
            Part::Open(open) => {
                tracing::warn!(path = %open.path.display(), %why, "cannot read the history")
            }
        }
    }

    /// Every event that is wanted.
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
    /// Every segment, the oldest first or the latest first.
    fn all(&self, backward: bool) -> impl Iterator<Item = Part> + use<> {
        let (closed, open) = self.segments();
        let closed = closed.into_iter().map(Part::Closed);
        let mut parts: Vec<Part> = closed.chain(open.map(Part::Open)).collect();
        if backward {
            parts.reverse();
        }
        parts.into_iter()
    }

    /// Those that may have something of what is wanted.
    pub(super) fn parts<'a>(
        &self,
        query: &'a Query,
        backward: bool,
    ) -> impl Iterator<Item = Part> + use<'a> {
        self.all(backward).filter(|part| part.may_have(query))
    }

    /// Every event that is wanted, in the order in which they happened.
    pub fn forward(&self, query: &Query, tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(self.parts(query, false), false, query, tell);
    }

    /// The same, the latest first.
    pub fn backward(&self, query: &Query, tell: impl FnMut(&Event<'_>) -> ControlFlow<()>) {
        self.visit(self.parts(query, true), true, query, tell);
    }

    /// Every event of these segments that is wanted.
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

/// The most segments that are looked at, and that are read, to know which alarms are raised: nothing is served until then.
/// An alarm that was raised before these is raised anew if what it is about still holds.
const RECENT: (usize, usize) = (1024, 16);

impl Reader {
    /// The alarms that were raised and not cleared when the history ended, and when they were.
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

/// Somebody who has, or had, an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The session's SEID.
    pub session: u64,
    /// The subscriber's name.
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
    /// What it had.
    pub addresses: Families,
    /// From when on, in seconds since 1970; `None`: it is not known any more.
    pub from: Option<u32>,
    /// How it ended.
    pub until: Until,
}

/// How somebody's having an address ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// It has it.
    Now,
    /// It had it until then.
    Ended {
        /// Seconds since 1970.
        at: u32,
        /// Why; `None`: it got another address.
        cause: Option<Cause>,
        /// Who ended it, if somebody did.
        by: Option<String>,
    },
    /// It does not have it any more, and since when is not known: at the latest then, if anybody had it after it.
    Unknown(Option<u32>),
}

impl Held {
    fn new(who: &Subscriber<'_>, instance: &str, addresses: Families) -> Self {
        Held {
            session: who.session,
            user: who.user.to_vec(),
            mac: who.mac,
            user_plane: who.user_plane.to_owned(),
            port: who.port.to_owned(),
            vlans: who.vlans,
            line: who.line.map(|id| id.map(<[u8]>::to_vec)),
            instance: instance.to_owned(),
            addresses,
            from: None,
            until: Until::Now,
        }
    }

    /// Whether it had the address at some time of this second.
    pub fn at(&self, unix: u32) -> bool {
        let ended = match &self.until {
            Until::Ended { at, .. } | Until::Unknown(Some(at)) => *at < unix,
            Until::Now | Until::Unknown(None) => false,
        };
        !ended && self.from.is_none_or(|from| from <= unix)
    }
}

/// A change of who has the address.
enum Mention {
    Gains(u32, Held),
    Keeps(Held),
    /// At that time, from that time, why, by whom.
    Loses(u32, Held, Option<u32>, Option<Cause>, Option<String>),
}

fn mention(event: &Event<'_>, address: &Address) -> Option<Mention> {
    let What::Subscriber(who, step) = &event.what else {
        return None;
    };
    let unix = event.unix;
    Some(match step {
        Step::Online {
            instance,
            addresses,
            ..
        } => Mention::Gains(unix, Held::new(who, instance, *addresses)),
        Step::Changed {
            instance,
            before,
            addresses,
        } => match (before.contains(address), addresses.contains(address)) {
            (false, _) => Mention::Gains(unix, Held::new(who, instance, *addresses)),
            (true, true) => Mention::Keeps(Held::new(who, instance, *addresses)),
            (true, false) => {
                Mention::Loses(unix, Held::new(who, instance, *before), None, None, None)
            }
        },
        Step::Ended {
            started,
            cause,
            by,
            instance,
            addresses,
        } => {
            let held = Held::new(who, instance, *addresses);
            let by = by.map(str::to_owned);
            Mention::Loses(unix, held, Some(*started), Some(*cause), by)
        }
        Step::Refused { .. } | Step::Failed { .. } => return None,
    })
}

impl Reader {
    /// Who had an address in the second `unix`, and who before and after it as far as that was met with. `live`: who has it
    /// now, as was known at the time `asked`; `instances`: how many network instances there are, in each of which somebody
    /// may have it.
    pub fn who(
        &self,
        address: Address,
        unix: u32,
        instances: usize,
        live: Vec<Held>,
        asked: u32,
    ) -> Vec<Held> {
        let query = Query {
            subject: Some(Subject::address(address)),
            ..Query::default()
        };
        let mut met = Vec::new();
        let mut known = HashSet::new();
        self.backward(&query, |event| {
            let Some(mention) = mention(event, &address) else {
                return ControlFlow::Continue(());
            };
            // who had it before is of no interest once it is known who got it before that second
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

/// Who had the address when, of what happened in its order. Those who seem to have it still are there as well.
fn fold(met: Vec<Mention>) -> Vec<Held> {
    let mut all: Vec<Held> = Vec::new();
    for mention in met {
        let (session, instance) = (mention.held().session, mention.held().instance.clone());
        let is_open = |held: &&mut Held| held.session == session && held.until == Until::Now;
        let open = all.iter_mut().find(is_open);
        match (mention, open) {
            (Mention::Loses(at, lost, _, cause, by), Some(open)) => {
                open.addresses = lost.addresses;
                open.until = Until::Ended { at, cause, by };
            }
            (Mention::Loses(at, lost, from, cause, by), None) => all.push(Held {
                from,
                until: Until::Ended { at, cause, by },
                ..lost
            }),
            (Mention::Gains(_, held) | Mention::Keeps(held), Some(open)) => {
                open.addresses = held.addresses;
            }
            (Mention::Keeps(held), None) => all.push(held),
            (Mention::Gains(unix, held), None) => {
                // nobody else can have it then: their end was not told
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

/// Those who have it now are known better by the control plane.
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
