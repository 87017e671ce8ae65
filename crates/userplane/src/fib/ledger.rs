//! Resource audit of the kernel's tables: a fresh reading against what was announced and mirrored. The kernel goes on changing
//! its tables, so a difference counts only if two readings show it. Routes are compared in portions, because the control thread
//! has other work, too.

use std::collections::HashSet;
use std::hash::Hash;
use std::net::IpAddr;
use std::ops::Bound;

use dataplane::{Adjacency, AdjacencyIndex, Destination, PortIndex};
use ipnet::IpNet;
use northbound::Ledger;
use wire::eth::MacAddr;

use super::{Desired, Fib, Snapshot, Target, either, host};
use crate::announcement::Announcement;
use crate::ledger::{Book, destination, kinds};

/// Result of comparing a reading.
#[derive(Debug)]
pub struct Reading {
    exported: Book<(Announcement, u32), &'static str>,
    routes: Book<IpNet, &'static str>,
    neighbours: Book<(u32, IpAddr), &'static str>,
    devices: Book<u32, &'static str>,
    /// Last prefix whose routes were compared.
    after: Option<IpNet>,
}

/// Comparison of the dataplane's routes with the kernel's tables and the subscriber prefixes.
#[derive(Debug, Default)]
pub struct Meaning {
    book: Book<IpNet, &'static str>,
    /// Last prefix that was compared.
    after: Option<IpNet>,
}

impl Meaning {
    /// Adds the result to the resource audit. Returns the prefixes with differences.
    pub fn compare(self, ledger: &mut Ledger) -> Vec<IpNet> {
        let found = self.book.compare(ledger, &kinds::MEANING, IpNet::to_string);
        let missing = found.missing.into_iter().map(|(net, _)| net);
        found.without_owner.into_iter().chain(missing).collect()
    }
}

impl Reading {
    /// Drops the differences that an earlier reading does not have.
    pub fn confirm(&mut self, earlier: &Reading) {
        confirm(&mut self.exported, &earlier.exported);
        confirm(&mut self.routes, &earlier.routes);
        confirm(&mut self.neighbours, &earlier.neighbours);
        confirm(&mut self.devices, &earlier.devices);
    }

    /// Adds the result to the resource audit.
    pub fn compare(self, ledger: &mut Ledger) {
        let on_link = |(net, link): &(Announcement, u32)| format!("{net} on link {link}");
        self.exported.compare(ledger, &kinds::KERNEL_ROUTE, on_link);
        self.routes.compare(ledger, &kinds::VIEW, IpNet::to_string);
        let on_link = |(link, address): &(u32, IpAddr)| format!("{address} on link {link}");
        self.neighbours.compare(ledger, &kinds::NEIGHBOUR, on_link);
        let name = |link: &u32| format!("link {link}");
        self.devices.compare(ledger, &kinds::DEVICE, name);
    }
}

fn confirm<K: Copy + Eq + Hash, O>(book: &mut Book<K, O>, earlier: &Book<K, O>) {
    fn sides<K: Copy + Eq + Hash, O>(book: &Book<K, O>) -> [HashSet<K>; 2] {
        let owned = book.owned.iter().map(|(key, _)| *key);
        [book.booked.iter().copied().collect(), owned.collect()]
    }
    let ([booked, owned], [booked_then, owned_then]) = (sides(book), sides(earlier));
    let differed = |key: &K| booked_then.contains(key) != owned_then.contains(key);
    let counts = |key: &K| booked.contains(key) == owned.contains(key) || differed(key);
    book.booked.retain(counts);
    book.owned.retain(|(key, _)| counts(key));
}

impl Fib {
    /// Compares announcements, neighbours and devices with the kernel's. Routes follow ([`Fib::read_on`]).
    pub fn read(&self, now: &Snapshot) -> Reading {
        let mut reading = Reading {
            exported: Book::default(),
            routes: Book::default(),
            neighbours: Book::default(),
            devices: Book::default(),
            after: None,
        };
        reading.exported.booked.extend(&now.ours);
        let nets = self.nets.iter().map(|net| ((*net, self.tun), "a group"));
        reading.exported.owned.extend(nets);
        let mac = |of: &Snapshot, key: &(u32, IpAddr)| of.neighbours.get(key).and_then(|n| n.mac);
        let resolved = |of: &Snapshot| -> Vec<(u32, IpAddr)> {
            let keys = of.neighbours.keys().copied();
            let ours = keys.filter(|(link, _)| self.ports.contains_key(link));
            ours.filter(|key| mac(of, key).is_some()).collect()
        };
        let same = |key: &(u32, IpAddr)| {
            let now = mac(now, key);
            now.is_none() || now == mac(&self.kernel, key)
        };
        let known = resolved(&self.kernel).into_iter();
        reading.neighbours.booked.extend(known.filter(same));
        let found = resolved(now).into_iter().map(|key| (key, "the kernel"));
        reading.neighbours.owned.extend(found);
        let devices: Vec<u32> = self.ports.keys().copied().chain([self.tun]).collect();
        let up = |link: &u32| now.links.get(link).is_some_and(|link| link.up);
        reading
            .devices
            .booked
            .extend(devices.iter().copied().filter(up));
        let owned = devices.into_iter().map(|link| (link, "the configuration"));
        reading.devices.owned.extend(owned);
        reading
    }

    /// Compares the routes of the next prefixes, at most `most`. Returns whether more may be left.
    pub fn read_on(&self, now: &Snapshot, reading: &mut Reading, most: usize) -> bool {
        let ours = self.kernel.routes.prefixes(reading.after);
        let theirs = now.routes.prefixes(reading.after);
        let portion: Vec<IpNet> = either(ours, theirs).take(most).collect();
        for net in &portion {
            let (ours, theirs) = (self.kernel.routes.contains(net), now.routes.contains(net));
            // A different route counts as missing, and is read again.
            let same = !theirs || now.routes.same(&self.kernel.routes, net);
            let owner = theirs.then_some("the kernel");
            reading.routes.judge(*net, ours && same, owner);
        }
        reading.after = portion.last().copied();
        portion.len() == most
    }

    /// Links of this instance that are down in a reading.
    pub fn down_in<'a>(&'a self, now: &'a Snapshot) -> impl Iterator<Item = u32> + 'a {
        let links = self.ports.keys().copied().chain([self.tun]);
        links.filter(|link| now.links.get(link).is_some_and(|link| !link.up))
    }

    /// Compares the dataplane's routes of the next prefixes, at most `most`, with the desired ones. Returns whether more may be
    /// left.
    pub fn compare_on(&self, meaning: &mut Meaning, most: usize) -> bool {
        let portion = self.prefixes_behind(meaning.after, most);
        portion.iter().for_each(|net| self.judge(meaning, *net));
        meaning.after = portion.last().copied();
        if portion.len() == most {
            return true;
        }
        let neighbours = self.kernel.neighbours.keys();
        let hosts = neighbours.map(|(_, address)| host(*address));
        let others: HashSet<IpNet> = hosts
            .chain(self.nets.iter().map(|announced| announced.net))
            .collect();
        let judged =
            |net: &IpNet| self.installed.contains_key(net) || self.kernel.routes.contains(net);
        let others = others.into_iter().filter(|net| !judged(net));
        others.for_each(|net| self.judge(meaning, net));
        false
    }

    fn judge(&self, meaning: &mut Meaning, net: IpNet) {
        let wanted = match self.desired(net) {
            Desired::Nothing => None,
            Desired::Target(target) => Some(target),
            Desired::Via(link, address) => {
                let id = self.by_hop.get(&(link, address));
                Some(id.map_or(Target::OnLink(u16::MAX), |id| Target::Adjacency(*id)))
            }
            Desired::Spread(hops) => Some(self.known_any(&hops)),
        };
        let told = self.installed.get(&net).copied();
        let booked = told.is_some() && (wanted.is_none() || told == wanted);
        let owner = wanted.map(|_| "the kernel's tables");
        meaning.book.judge(net, booked, owner);
    }

    /// Updates the dataplane's routes of these prefixes.
    pub fn repair(&mut self, prefixes: Vec<IpNet>) {
        prefixes.into_iter().for_each(|net| self.refresh(net));
    }

    /// Destination of a prefix in the dataplane.
    pub fn installed(&self, net: IpNet) -> Option<Destination> {
        self.installed.get(&net).copied().map(destination)
    }

    /// The dataplane's prefixes after `after` and up to `last`.
    pub fn installed_between(
        &self,
        after: Option<IpNet>,
        last: Option<IpNet>,
    ) -> impl Iterator<Item = IpNet> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let to = last.map_or(Bound::Unbounded, Bound::Included);
        self.installed.range((from, to)).map(|(net, _)| *net)
    }

    /// The dataplane's resolved next hops.
    pub fn neighbours(&self) -> impl Iterator<Item = AdjacencyIndex> + '_ {
        let known = self.adjacencies.iter().filter(|(_, a)| a.mac.is_some());
        known.map(|(id, _)| AdjacencyIndex(id as u32))
    }

    /// A resolved next hop of the dataplane.
    pub fn neighbour(&self, index: AdjacencyIndex) -> Option<Adjacency> {
        let adjacency = self.adjacencies.get(index.0 as usize)?;
        Some(Adjacency {
            port: PortIndex(*self.ports.get(&adjacency.hop.0)?),
            mac: Some(MacAddr(adjacency.mac?)),
        })
    }
}
