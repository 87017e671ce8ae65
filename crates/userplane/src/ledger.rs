//! Resource audit of the user plane: sessions here against the worker's tables, and the kernel's tables against what was
//! announced and mirrored.
//!
//! The worker shows its tables in pieces ([`dataplane::Piece`]) between bursts. A piece includes every command from before its
//! request. Whatever was commanded between the request and the comparison is not judged, so that nothing has to stop.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use dataplane::{
    AdjacencyIndex, Destination, Held, InstanceIndex, Part, Piece, SessionIndex, first_routes,
    host_routes,
};
use ipnet::IpNet;
use northbound::{Differences, Kind, Ledger};

use crate::engine::{Engine, Expected};
use crate::fib::Fib;

pub mod kinds;

/// Session, by its control plane's SEID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub u64);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Allocated and owned resources of one kind, as they are collected.
#[derive(Debug)]
pub struct Book<K, O> {
    /// Allocated resources.
    pub booked: Vec<K>,
    /// Owned resources, with their owners.
    pub owned: Vec<(K, O)>,
    /// Number of further resources that are both allocated and owned.
    pub agreed: u64,
}

impl<K, O> Default for Book<K, O> {
    fn default() -> Self {
        Book {
            booked: Vec::new(),
            owned: Vec::new(),
            agreed: 0,
        }
    }
}

impl<K: Ord + Copy, O: fmt::Display> Book<K, O> {
    /// Adds a resource that is allocated or owned, or both.
    pub(crate) fn judge(&mut self, key: K, booked: bool, owner: Option<O>) {
        match (booked, owner) {
            (true, Some(_)) => self.agreed += 1,
            (true, None) => self.booked.push(key),
            (false, Some(owner)) => self.owned.push((key, owner)),
            (false, None) => {}
        }
    }

    /// Counts the resources on both sides and drops them, so that a full table is not compared all at once.
    fn settle(&mut self) {
        let Self {
            booked,
            owned,
            agreed,
        } = self;
        booked.sort_unstable();
        let mut matched = vec![false; booked.len()];
        owned.retain(|(key, _)| match booked.binary_search(key) {
            Ok(at) if !matched[at] => {
                matched[at] = true;
                *agreed += 1;
                false
            }
            _ => true,
        });
        let mut matched = matched.into_iter();
        booked.retain(|_| matched.next() == Some(false));
    }

    pub(crate) fn compare(
        self,
        ledger: &mut Ledger,
        kind: &Kind,
        name: impl Fn(&K) -> String,
    ) -> Differences<K, O> {
        let differences = ledger.compare(kind, self.booked, self.owned, name);
        ledger.agreed(self.agreed);
        differences
    }
}

/// Resources that were commanded since the piece was requested.
#[derive(Debug, Default)]
pub struct Touched {
    /// Sessions that were set or removed.
    pub sessions: HashSet<SessionIndex>,
    /// Routes that were set or removed.
    pub routes: HashSet<(InstanceIndex, IpNet)>,
    /// Adjacencies that were set or removed.
    pub adjacencies: HashSet<AdjacencyIndex>,
}

/// What the worker has shown so far, compared.
#[derive(Debug, Default)]
pub struct Shown {
    /// Kept up to date by the code that commands the worker; cleared with every piece.
    pub touched: Touched,
    sessions: Book<SessionIndex, Name>,
    ids: Book<(u32, SessionIndex), Name>,
    queues: Book<u32, Name>,
    host_routes: Book<(InstanceIndex, IpNet, SessionIndex), Name>,
    routes: Book<(InstanceIndex, IpNet), &'static str>,
    adjacencies: Book<AdjacencyIndex, &'static str>,
}

/// Leaked and missing resources of the worker.
#[derive(Debug)]
pub struct Wrong {
    /// Sessions by index.
    pub sessions: Vec<SessionIndex>,
    /// Session-id entries that lead to the wrong session.
    pub ids: Vec<u32>,
    /// Places of queues without a session.
    pub queues: Vec<u32>,
    /// Host routes without a session.
    pub host_routes: Vec<(InstanceIndex, IpNet)>,
    /// Mirrored routes.
    pub routes: Vec<(InstanceIndex, IpNet)>,
    /// Mirrored next hops.
    pub adjacencies: Vec<AdjacencyIndex>,
}

impl Shown {
    /// Compares a piece. `fibs` are the instances' routes.
    pub fn judge<T: Copy>(
        &mut self,
        engine: &Engine<T>,
        fibs: &BTreeMap<InstanceIndex, &Fib>,
        piece: &Piece,
    ) {
        match piece.part {
            Part::Sessions(from) => self.judge_sessions(engine, from, piece),
            Part::Ids(_) => {
                let strays = piece.found.iter().filter_map(|held| match held {
                    Held::StrayId { place, index } => Some((*place, *index)),
                    _ => None,
                });
                self.ids.booked.extend(strays);
            }
            Part::Queues(_) => self.judge_queues(engine, piece),
            Part::Routes(instance, after) => {
                self.judge_host_routes(engine, piece);
                if let Some(fib) = fibs.get(&instance) {
                    self.judge_routes(fib, instance, after, piece);
                }
            }
            Part::Adjacencies(from) => {
                if let Some(fib) = fibs.values().next() {
                    self.judge_adjacencies(fib, from, piece);
                }
            }
            Part::Interfaces(_) | Part::Segments(..) => {}
        }
        self.touched = Touched::default();
    }

    fn judge_sessions<T: Copy>(&mut self, engine: &Engine<T>, from: SessionIndex, piece: &Piece) {
        for held in &piece.found {
            let Held::Session { entry, whole } = held else {
                continue;
            };
            let right = match engine.expected(entry.index) {
                Expected::Nothing => true, // it is there, and nobody's
                Expected::Entry(expected) => *whole && expected == entry,
                Expected::Unsettled => false,
            };
            if right && !self.touched.sessions.contains(&entry.index) {
                self.sessions.booked.push(entry.index);
            }
        }
        let end = match piece.next {
            Some(Part::Sessions(next)) if piece.of_same_worker(from, next) => next,
            _ => SessionIndex(u32::MAX),
        };
        for (index, name) in engine.names(from, end, piece.workers) {
            let settled = matches!(engine.expected(index), Expected::Entry(_));
            if settled && !self.touched.sessions.contains(&index) {
                self.sessions.owned.push((index, name));
            }
        }
    }

    /// A session gets queues with its first packet that may have to wait: none is missing.
    fn judge_queues<T: Copy>(&mut self, engine: &Engine<T>, piece: &Piece) {
        for held in &piece.found {
            let Held::Queues {
                place,
                port,
                session,
                whole,
            } = *held
            else {
                continue;
            };
            let known = session.map(|index| (index, engine.expected(index)));
            let owner = match known {
                Some((index, _)) if self.touched.sessions.contains(&index) => continue,
                Some((_, Expected::Unsettled)) => continue,
                Some((index, Expected::Entry(entry))) => {
                    (whole && entry.port == port).then(|| engine.name(index))
                }
                Some((_, Expected::Nothing)) | None => None,
            };
            self.queues.judge(place, true, owner);
        }
    }

    fn judge_host_routes<T: Copy>(&mut self, engine: &Engine<T>, piece: &Piece) {
        for held in &piece.found {
            let Held::HostRoute(instance, net, index) = *held else {
                continue;
            };
            let key = (instance, net, index);
            if self.touched.sessions.contains(&index) {
                continue;
            }
            match engine.expected(index) {
                Expected::Unsettled => {}
                Expected::Entry(e)
                    if e.instance == instance && host_routes(e).any(|n| n == net) =>
                {
                    self.host_routes.judge(key, true, Some(engine.name(index)));
                }
                _ => self.host_routes.booked.push(key),
            }
        }
    }

    fn judge_routes(
        &mut self,
        fib: &Fib,
        instance: InstanceIndex,
        after: Option<IpNet>,
        piece: &Piece,
    ) {
        const KERNEL: &str = "the kernel's tables";
        let touched = |net: IpNet| self.touched.routes.contains(&(instance, net));
        let routes = piece.found.iter().filter_map(|held| match *held {
            Held::Route(_, net, to) if !touched(net) => Some((net, to)),
            _ => None,
        });
        for (net, to) in routes {
            match fib.installed(net) {
                Some(expected) if expected == to => self.routes.booked.push((instance, net)),
                Some(_) => {} // another: it is missing, and set again
                None if first_routes().any(|first| first == (net, to)) => {}
                None => self.routes.booked.push((instance, net)),
            }
        }
        let last = match piece.next {
            Some(Part::Routes(same, last)) if same == instance => last,
            _ => None,
        };
        let owned = fib
            .installed_between(after, last)
            .filter(|net| !touched(*net));
        let owned = owned.map(|net| ((instance, net), KERNEL));
        self.routes.owned.extend(owned);
        self.routes.settle();
    }

    fn judge_adjacencies(&mut self, fib: &Fib, from: AdjacencyIndex, piece: &Piece) {
        let settled = |index: &AdjacencyIndex| !self.touched.adjacencies.contains(index);
        for held in &piece.found {
            if let Held::Adjacency(index, adjacency) = held
                && settled(index)
                && fib
                    .neighbour(*index)
                    .is_none_or(|known| known == *adjacency)
            {
                self.adjacencies.booked.push(*index);
            }
        }
        let end = match piece.next {
            Some(Part::Adjacencies(next)) => next,
            _ => AdjacencyIndex(u32::MAX),
        };
        let known = fib.neighbours().filter(|index| (from..end).contains(index));
        let known = known
            .filter(settled)
            .map(|index| (index, "the kernel's neighbours"));
        self.adjacencies.owned.extend(known);
    }

    /// Adds the results to the resource audit.
    pub fn compare(self, ledger: &mut Ledger) -> Wrong {
        let sessions = self
            .sessions
            .compare(ledger, &kinds::ENTRY, |index| index.0.to_string());
        let missing = sessions.missing.into_iter().map(|(index, _)| index);
        let ids = self
            .ids
            .compare(ledger, &kinds::SESSION_ID, |(place, index)| {
                format!("place {place}, which leads to session {}", index.0)
            });
        let queues = self
            .queues
            .compare(ledger, &kinds::QUEUES, |place| format!("place {place}"));
        let hosts = self
            .host_routes
            .compare(ledger, &kinds::HOST_ROUTE, |(_, net, index)| {
                format!("{net} to session {}", index.0)
            });
        let routes = self
            .routes
            .compare(ledger, &kinds::ROUTE, |(_, net)| net.to_string());
        let hops = self.adjacencies;
        let hops = hops.compare(ledger, &kinds::ADJACENCY, |index| index.0.to_string());
        let unset = routes.missing.into_iter().map(|(route, _)| route);
        let unknown = hops.missing.into_iter().map(|(index, _)| index);
        let hosts = hosts.without_owner.into_iter();
        Wrong {
            sessions: sessions.without_owner.into_iter().chain(missing).collect(),
            ids: ids
                .without_owner
                .into_iter()
                .map(|(place, _)| place)
                .collect(),
            queues: queues.without_owner,
            host_routes: hosts.map(|(instance, net, _)| (instance, net)).collect(),
            routes: routes.without_owner.into_iter().chain(unset).collect(),
            adjacencies: hops.without_owner.into_iter().chain(unknown).collect(),
        }
    }
}

/// The worker's destination of a kernel route.
pub(crate) fn destination(target: crate::fib::Target) -> Destination {
    use crate::fib::Target;
    match target {
        Target::Adjacency(id) => Destination::Adjacency(AdjacencyIndex(id)),
        Target::Group(id) => Destination::Group(dataplane::GroupIndex(id)),
        Target::OnLink(port) => Destination::Connected(dataplane::PortIndex(port)),
        Target::Local => Destination::Local,
        Target::Discard => Destination::Discard,
    }
}
