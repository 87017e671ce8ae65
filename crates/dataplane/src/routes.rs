//! Routes and groups as the control thread writes them, the host routes of its sessions among them.
//!
//! What is written counts at once, while commands wait for the workers, which have the neighbours. So that no packet is sent to
//! one that a worker does not know yet, or no more, these changes are made in their order: what comes after a neighbour is
//! written when the workers have that.
use crate::api::*;
use crate::inspect::{Held, PIECE, Part, Piece, host_routes, nets_of};
use crate::nodes::lookup;
use crate::tables::fib::{Counts, Owner, Refused, Writer};
use crate::tables::groups::Groups;
use ipnet::{IpNet, Ipv6Net};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};

/// Changes that may wait for the workers.
const MOST_WAITING: usize = 4096;

/// A change of what packets find.
pub(crate) enum Write {
    Route(InstanceIndex, IpNet, Option<Destination>),
    Group(GroupIndex, Vec<AdjacencyIndex>),
    /// Made by the workers.
    Adjacency(AdjacencyIndex, Option<Adjacency>),
}

/// What is left of a change: what the workers make, and what is to be told.
pub(crate) enum Left {
    Adjacency(AdjacencyIndex, Option<Adjacency>),
    Told(Event),
}

/// For each session's place, how many sessions have had it: what is on its way to one of them is not given to the next.
pub(crate) type Generations = Arc<[AtomicU32]>;

/// What the worker is to know of a session that is admitted.
#[derive(Clone, Copy)]
pub(crate) struct Admitted {
    /// Of this setting of the session.
    pub serial: u32,
    /// Of the session.
    pub generation: u32,
}

/// What a session has, as long as it is there.
struct SessionRoutes {
    /// Which of the sessions that had its place it is.
    serial: u32,
    instance: InstanceIndex,
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    routed: Box<[IpNet]>,
}

impl SessionRoutes {
    fn routes(&self) -> impl Iterator<Item = IpNet> {
        nets_of(self.ipv4, self.ipv6, &self.routed)
    }
}

/// All routes and groups.
pub(crate) struct Routes {
    writer: Writer,
    groups: Groups,
    limits: Limits,
    /// By index, as far as there were any.
    sessions: Vec<Option<SessionRoutes>>,
    generations: Generations,
    serial: u32,
    /// Changes that are not made yet, in their order.
    waiting: VecDeque<Write>,
}

impl Routes {
    /// The routes that every instance has from the start.
    pub fn new(
        limits: &Limits,
        mut writer: Writer,
        groups: Groups,
        generations: Generations,
    ) -> Result<Self, Refused> {
        for instance in (0..limits.instances).map(InstanceIndex) {
            for net in lookup::unroutable() {
                let discard = Some(Destination::Discard);
                writer.set(instance, net, Owner::Route, discard)?;
            }
        }
        Ok(Routes {
            writer,
            groups,
            limits: *limits,
            sessions: Vec::new(),
            generations,
            serial: 0,
            waiting: VecDeque::new(),
        })
    }

    /// May the session be set, as far as its addresses go?
    fn check(&self, entry: &SessionEntry) -> Result<(), Refusal> {
        if entry.instance.0 >= self.writer.instances() {
            return Err(Refusal::Malformed);
        }
        let most = 2 + entry.routed.len();
        if entry.index.0 >= self.limits.sessions || !self.writer.has_room(most) {
            return Err(Refusal::TableFull);
        }
        let own = Destination::Session(entry.index);
        let taken = |to: Destination| {
            to == Destination::Local || matches!(to, Destination::Session(_)) && to != own
        };
        let mut nets = host_routes(entry);
        let is_taken = |net: IpNet| {
            let waits = self.waiting.iter().any(|write| match write {
                Write::Route(instance, other, Some(to)) => {
                    *instance == entry.instance && *other == net && taken(*to)
                }
                _ => false,
            });
            waits || self.writer.exact(entry.instance, net).is_some_and(taken)
        };
        match nets.any(is_taken) {
            true => Err(Refusal::AddressTaken),
            false => Ok(()),
        }
    }

    /// Lets the host routes of a session lead to it, and those that it had before and has no more to nobody.
    pub fn admit(&mut self, entry: &SessionEntry) -> Result<Admitted, Refusal> {
        self.check(entry)?;
        self.serial = self.serial.wrapping_add(1).max(1);
        let place = entry.index.0 as usize;
        if self.sessions.len() <= place {
            self.sessions.resize_with(place + 1, || None);
        }
        let new = SessionRoutes {
            serial: self.serial,
            instance: entry.instance,
            ipv4: entry.ipv4,
            ipv6: entry.ipv6,
            routed: entry.routed.clone(),
        };
        let generations = &self.generations[place];
        let generation = match self.sessions[place] {
            Some(_) => generations.load(Relaxed),
            // Before a route leads to the session: a worker that finds the route finds this, too.
            None => generations.fetch_add(1, Release).wrapping_add(1),
        };
        // First what it has now: what stays leads to it all the time.
        for net in host_routes(entry) {
            let to = Some(Destination::Session(entry.index));
            self.say(new.instance, net, to);
        }
        if let Some(old) = self.sessions[place].replace(new) {
            let gone = old.routes().filter(|net| {
                let stays = |new| old.instance == entry.instance && new == *net;
                !host_routes(entry).any(stays)
            });
            gone.for_each(|net| self.say(old.instance, net, None));
        }
        Ok(Admitted {
            serial: self.serial,
            generation,
        })
    }

    /// Lets the host routes of a session lead to another index, at another worker; `None` if it is not there. The index is free.
    pub fn relocate(&mut self, from: SessionIndex, to: SessionIndex) -> Option<Admitted> {
        let mut hosted = self.sessions.get_mut(from.0 as usize)?.take()?;
        self.serial = self.serial.wrapping_add(1).max(1);
        hosted.serial = self.serial;
        let place = to.0 as usize;
        if self.sessions.len() <= place {
            self.sessions.resize_with(place + 1, || None);
        }
        // Before a route leads to the session, as in `admit`.
        let generation = self.generations[place]
            .fetch_add(1, Release)
            .wrapping_add(1);
        for net in hosted.routes() {
            self.say(hosted.instance, net, Some(Destination::Session(to)));
        }
        let serial = hosted.serial;
        self.sessions[place] = Some(hosted);
        Some(Admitted { serial, generation })
    }

    /// A session is there no more.
    pub fn withdraw(&mut self, SessionIndex(index): SessionIndex) {
        let hosted = self.sessions.get_mut(index as usize);
        if let Some(old) = hosted.and_then(Option::take) {
            old.routes()
                .for_each(|net| self.say(old.instance, net, None));
        }
    }

    /// The worker has no more of the session that had this serial number, unasked.
    pub fn gone(&mut self, index: SessionIndex, serial: u32) {
        let hosted = self.sessions.get(index.0 as usize).and_then(Option::as_ref);
        if hosted.is_some_and(|hosted| hosted.serial == serial) {
            self.withdraw(index);
        }
    }

    /// Puts in what a worker does not have of an entry. Has the session the host routes that it says?
    pub fn complete(&self, entry: &mut SessionEntry) -> bool {
        let hosted = self.sessions.get(entry.index.0 as usize);
        if let Some(Some(hosted)) = hosted {
            entry.routed = hosted.routed.clone();
        }
        let own = Some(Destination::Session(entry.index));
        host_routes(entry).all(|net| self.writer.exact(entry.instance, net) == own)
    }

    /// A host route whose session is not there goes.
    pub fn remove_host_route(&mut self, instance: InstanceIndex, net: IpNet) {
        self.say(instance, net, None);
    }

    /// What a session says about a net. Refused only while the worker stands still for so long that too much rests; then
    /// that is counted, and the ledger finds what is missing or too much.
    fn say(&mut self, instance: InstanceIndex, net: IpNet, to: Option<Destination>) {
        let _ = self.writer.set(instance, net, Owner::Session, to);
    }

    /// Takes a change, to be made when those before it are.
    pub fn push(&mut self, write: Write) -> Result<(), Busy> {
        match self.room() {
            0 => Err(Busy),
            _ => {
                self.waiting.push_back(write);
                Ok(())
            }
        }
    }

    /// Takes the change of a group, of which there are not so many that it would have to wait for room: a full queue forgets
    /// what it was to have before.
    pub fn push_group(&mut self, index: GroupIndex, members: Vec<AdjacencyIndex>) {
        if self.room() == 0 {
            let other = |write: &Write| !matches!(write, Write::Group(of, _) if *of == index);
            self.waiting.retain(other);
        }
        self.waiting.push_back(Write::Group(index, members));
    }

    /// How many changes are taken now.
    pub fn room(&self) -> usize {
        MOST_WAITING.saturating_sub(self.waiting.len())
    }

    /// The change that is to be made next.
    pub fn next(&self) -> Option<&Write> {
        self.waiting.front()
    }

    /// Makes the next change; what is left of it to do.
    pub fn make(&mut self) -> Option<Left> {
        match self.waiting.pop_front()? {
            Write::Adjacency(index, to) => return Some(Left::Adjacency(index, to)),
            // It was checked.
            Write::Group(index, members) => self.groups.set(index, &members),
            Write::Route(instance, prefix, to) => {
                let set = self.writer.set(instance, prefix, Owner::Route, to);
                if set.is_err() {
                    return Some(Left::Told(Event::RouteRefused { instance, prefix }));
                }
            }
        }
        None
    }

    /// Whether a group can have so many members.
    pub fn check_group(&self, index: GroupIndex, members: usize) -> Result<(), GroupError> {
        self.groups.check(index, members)
    }

    /// What there is, and what it takes.
    pub fn counts(&self) -> Counts {
        self.writer.counts()
    }

    /// The piece of an instance's routes behind a prefix.
    pub fn piece(&self, instance: InstanceIndex, after: Option<IpNet>, workers: u16) -> Piece {
        let mut found = Vec::new();
        let mut last = None;
        if instance.0 < self.writer.instances() {
            for (net, said) in self.writer.after(instance, after).take(PIECE / 2) {
                if let Some(to) = said.by(Owner::Route) {
                    found.push(Held::Route(instance, net, to));
                }
                if let Some(Destination::Session(index)) = said.by(Owner::Session) {
                    found.push(Held::HostRoute(instance, net, index));
                }
                last = Some(net);
            }
        }
        let next = match last {
            Some(last) => Part::Routes(instance, Some(last)),
            None if instance.0 + 1 < self.writer.instances() => {
                Part::Routes(InstanceIndex(instance.0 + 1), None)
            }
            None => Part::Adjacencies(AdjacencyIndex(0)),
        };
        Piece {
            part: Part::Routes(instance, after),
            found,
            next: Some(next),
            workers,
        }
    }
}
