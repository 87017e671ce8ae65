//! Mirror of the kernel's tables, from a reading and the changes since. It is compact: a full Internet table has more than a
//! million routes, and very few different ways.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Bound;

use ipnet::IpNet;

use crate::announcement::Announcement;
use crate::netlink::message::{
    Fact, Hop, Link, Neighbour, NextHop, Place, Route, RouteKey, RouteKind, Way,
};

/// Facts of one complete reading.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) routes: Routes,
    pub(super) objects: HashMap<u32, NextHop>,
    pub(super) neighbours: HashMap<(u32, IpAddr), Neighbour>,
    pub(super) loopback: Option<u32>,
    pub(super) links: HashMap<u32, Link>,
    /// Announced subscriber prefixes, with the links of their routes.
    pub(super) ours: BTreeSet<(Announcement, u32)>,
}

impl Snapshot {
    /// Adds a fact to the reading.
    pub fn add(&mut self, fact: Fact) {
        match fact {
            Fact::Link(link) => {
                if link.name == "lo" {
                    self.loopback = Some(link.index);
                }
                self.links.insert(link.index, link);
            }
            Fact::Route { route, .. } if route.ours => {
                let hops = route.way.hops.iter();
                self.ours
                    .extend(hops.map(|hop| (route.announcement(), hop.link)));
            }
            Fact::Route { route, place } => self.routes.add(route, place),
            Fact::NextHop(id, what) => {
                self.objects.insert(id, what);
            }
            Fact::Neighbour(n) => {
                self.neighbours.insert((n.link, n.address), n);
            }
            _ => {}
        }
    }

    /// Whether there is already a route to the same prefix.
    pub fn has(&self, route: &Route) -> bool {
        let announced = route.announcement();
        match route.ours {
            true => self
                .ours
                .range((announced, 0)..=(announced, u32::MAX))
                .next()
                .is_some(),
            false => self.routes.contains(&route.destination),
        }
    }

    /// Kind and next hops of a way, with its next hop object resolved.
    pub(super) fn resolved(&self, way: &Way) -> (RouteKind, Vec<Hop>) {
        let Some(object) = way.object.and_then(|id| self.objects.get(&id)) else {
            return (way.kind, way.hops.clone());
        };
        let hop = |id: &u32, weight: u16| match self.objects.get(id) {
            Some(NextHop::Hop(hop)) => Some(Hop { weight, ..*hop }),
            _ => None, // no group is a member of another
        };
        match object {
            NextHop::Discard => (RouteKind::Discard, Vec::new()),
            NextHop::Hop(hop) => (way.kind, vec![*hop]),
            NextHop::Group(members) => {
                let hops = members.iter().filter_map(|(id, weight)| hop(id, *weight));
                (way.kind, hops.collect())
            }
        }
    }

    /// Prefixes with a route through a link.
    pub(super) fn through(&self, link: u32) -> Vec<IpNet> {
        let through = |way: &Way| self.resolved(way).1.iter().any(|hop| hop.link == link);
        let ways = self.routes.ways.all.iter();
        let ways = ways.filter(|(_, (way, _))| through(way));
        let ways: HashSet<u32> = ways.map(|(id, _)| id as u32).collect();
        let all = self.routes.by_prefix.iter();
        let through = |entry: &Entry| ways.contains(&entry.way);
        let found = all.filter(|(_, entries)| entries.all().iter().any(through));
        found.map(|(prefix, _)| *prefix).collect()
    }

    /// Whether a route uses this object, directly or in a group.
    pub(super) fn uses(&self, object: u32) -> bool {
        let in_group = |id: &u32| match self.objects.get(id) {
            Some(NextHop::Group(members)) => members.iter().any(|(member, _)| *member == object),
            _ => false,
        };
        let mut used = self.routes.ways.all.iter();
        used.any(|(_, (way, _))| {
            let used = way.object;
            used.is_some_and(|id| id == object || in_group(&id))
        })
    }
}

/// Route to a prefix, which is stored elsewhere. The local table's routes come first, then the smallest metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    metric: u32,
    way: u32,
}

/// Routes of a prefix. Nearly every prefix has one.
#[derive(Debug)]
enum Entries {
    One(Entry),
    Several(Box<[Entry]>),
}

impl Entries {
    fn all(&self) -> &[Entry] {
        match self {
            Entries::One(entry) => std::slice::from_ref(entry),
            Entries::Several(entries) => entries,
        }
    }

    fn into_vec(self) -> Vec<Entry> {
        match self {
            Entries::One(entry) => vec![entry],
            Entries::Several(entries) => entries.into_vec(),
        }
    }

    fn of(entries: Vec<Entry>) -> Option<Self> {
        match entries[..] {
            [] => None,
            [entry] => Some(Entries::One(entry)),
            _ => Some(Entries::Several(entries.into())),
        }
    }
}

/// Routes by prefix.
#[derive(Debug, Default)]
pub(super) struct Routes {
    by_prefix: BTreeMap<IpNet, Entries>,
    ways: Ways,
}

/// A way, and whether the route is in the local table.
type Known = (Way, bool);

/// The different ways, with reference counts.
#[derive(Debug, Default)]
struct Ways {
    all: slab::Slab<Known>,
    users: Vec<u32>,
    by_way: HashMap<Known, u32>,
}

impl Ways {
    fn acquire(&mut self, known: Known) -> u32 {
        if let Some(&id) = self.by_way.get(&known) {
            self.users[id as usize] += 1;
            return id;
        }
        let id = self.all.insert(known.clone());
        if self.users.len() <= id {
            self.users.resize(id + 1, 0);
        }
        self.users[id] = 1;
        self.by_way.insert(known, id as u32);
        id as u32
    }

    fn release(&mut self, id: u32) {
        let users = &mut self.users[id as usize];
        *users -= 1;
        if *users == 0 {
            let known = self.all.remove(id as usize);
            self.by_way.remove(&known);
        }
    }

    fn way(&self, entry: Entry) -> &Way {
        &self.all[entry.way as usize].0
    }

    fn key(&self, entry: Entry) -> RouteKey {
        RouteKey {
            local: self.all[entry.way as usize].1,
            metric: entry.metric,
        }
    }
}

/// Whether routes with the same key are one route with several next hops. This holds for IPv6 routes by routers
/// (fib6_add_rt2node); each message has all of their next hops.
fn merges(prefix: &IpNet, way: &Way) -> bool {
    let by_router = way.hops.iter().any(|hop| hop.gateway.is_some());
    prefix.addr().is_ipv6() && way.object.is_none() && by_router
}

fn same_hop(a: &Hop, b: &Hop) -> bool {
    (a.link, a.gateway) == (b.link, b.gateway)
}

impl Routes {
    /// Adds a route.
    pub fn add(&mut self, route: Route, place: Place) {
        let (prefix, key) = (route.destination, route.key);
        let merging = merges(&prefix, &route.way);
        let mut entries = self.take(&prefix);
        let ways = &mut self.ways;
        let mut position = None;
        if merging || place == Place::Instead {
            let of_key = |entry: &Entry| ways.key(*entry) == key;
            let alike = |e: &Entry| of_key(e) && merges(&prefix, ways.way(*e)) == merging;
            position = entries.iter().position(alike);
            if place == Place::Instead {
                position = position.or_else(|| entries.iter().position(of_key));
            }
        }
        let entry = Entry {
            metric: key.metric,
            way: ways.acquire((route.way, key.local)),
        };
        let known = entries.iter().position(|other| *other == entry);
        match (known, position) {
            (Some(_), position) if position.is_none() || position == known => {
                ways.release(entry.way);
            }
            // Drops the route that this one replaces. It can be known already, when changes from the time of a reading are
            // applied again.
            (known, Some(place)) => {
                ways.release(entries[place].way);
                entries[place] = entry;
                if let Some(other) = known {
                    ways.release(entries.remove(other).way);
                }
            }
            (_, None) if place == Place::First => entries.insert(0, entry),
            (_, None) => entries.push(entry),
        }
        self.put(prefix, entries);
    }

    /// Removes a route or some of its next hops: IPv6 removes the next hops of a route one by one.
    pub fn remove(&mut self, gone: &Route) {
        let prefix = gone.destination;
        let mut entries = self.take(&prefix);
        let ways = &mut self.ways;
        let merging = merges(&prefix, &gone.way);
        let fits = |entry: &Entry| {
            let way = ways.way(*entry);
            let same = ways.key(*entry) == gone.key && way.kind == gone.way.kind;
            let mut hops = way.hops.iter();
            same && match gone.way.object {
                Some(_) => way.object == gone.way.object,
                None if merging => merges(&prefix, way) && hops.any(|hop| has(&gone.way.hops, hop)),
                None => way.object.is_none() && way.hops == gone.way.hops,
            }
        };
        // A route whose link went down has fewer next hops than before.
        let alike = |entry: &Entry| {
            let (key, kind) = (ways.key(*entry), ways.way(*entry).kind);
            (key, kind) == (gone.key, gone.way.kind) && prefix.addr().is_ipv4()
        };
        let place = entries.iter().position(fits);
        if let Some(place) = place.or_else(|| entries.iter().position(alike)) {
            let (old, metric) = (entries[place].way, entries[place].metric);
            let mut way = ways.way(entries[place]).clone();
            way.hops.retain(|hop| !has(&gone.way.hops, hop));
            if merging && !way.hops.is_empty() {
                let way = ways.acquire((way, gone.key.local));
                entries[place] = Entry { metric, way };
            } else {
                entries.remove(place);
            }
            ways.release(old);
        }
        self.put(prefix, entries);
    }

    fn take(&mut self, prefix: &IpNet) -> Vec<Entry> {
        let entries = self.by_prefix.remove(prefix).map(Entries::into_vec);
        entries.unwrap_or_default()
    }

    fn put(&mut self, prefix: IpNet, entries: Vec<Entry>) {
        if let Some(entries) = Entries::of(entries) {
            self.by_prefix.insert(prefix, entries);
        }
    }

    /// Way of the route that the kernel uses.
    pub fn best(&self, prefix: &IpNet) -> Option<&Way> {
        let entries = self.by_prefix.get(prefix)?.all();
        let rank = |entry: &&Entry| {
            let key = self.ways.key(**entry);
            (!key.local, key.metric)
        };
        Some(self.ways.way(*entries.iter().min_by_key(rank)?))
    }

    /// Prefixes with routes, after a given one or from the first on.
    pub fn prefixes(&self, after: Option<IpNet>) -> impl Iterator<Item = IpNet> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.by_prefix.range((from, Bound::Unbounded));
        range.map(|(prefix, _)| *prefix)
    }

    /// Whether both mirrors have the same routes to a prefix.
    pub fn same(&self, other: &Routes, prefix: &IpNet) -> bool {
        let of = |routes: &Routes| -> Vec<(RouteKey, Way)> {
            let entries = routes.by_prefix.get(prefix).map_or(&[][..], Entries::all);
            let known = entries.iter().map(|entry| {
                let way = routes.ways.way(*entry).clone();
                (routes.ways.key(*entry), way)
            });
            known.collect()
        };
        let (ours, theirs) = (of(self), of(other));
        ours.len() == theirs.len() && ours.iter().all(|route| theirs.contains(route))
    }

    /// Whether there is a route to a prefix.
    pub fn contains(&self, prefix: &IpNet) -> bool {
        self.by_prefix.contains_key(prefix)
    }
}

fn has(hops: &[Hop], hop: &Hop) -> bool {
    hops.iter().any(|other| same_hop(other, hop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_known_as_long_as_a_route_goes_it() {
        let mut routes = Routes::default();
        let to = |net: u8, gateway: u8| Route {
            destination: format!("10.{net}.0.0/16").parse().unwrap(),
            key: RouteKey {
                local: false,
                metric: 0,
            },
            way: Way {
                kind: RouteKind::Forward,
                object: None,
                hops: vec![Hop {
                    link: 1,
                    gateway: Some([192, 0, 2, gateway].into()),
                    weight: 1,
                }],
            },
            ours: false,
        };
        let known = |routes: &Routes| (routes.ways.all.len(), routes.ways.by_way.len());
        for (net, gateway) in [(1, 1), (2, 1), (3, 2)] {
            routes.add(to(net, gateway), Place::Last);
        }
        assert_eq!(known(&routes), (2, 2));
        routes.remove(&to(1, 1));
        assert_eq!(known(&routes), (2, 2), "another goes it");
        routes.add(to(3, 3), Place::Instead);
        assert_eq!(known(&routes), (2, 2), "one for another");
        routes.remove(&to(2, 1));
        routes.remove(&to(3, 3));
        assert_eq!(known(&routes), (0, 0));
    }
}
