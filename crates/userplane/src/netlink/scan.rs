//! A whole reading of the kernel's tables while they change.
//!
//! The kernel does not hold still for a reader. What it has at the place where it goes on is right, but when routes before
//! that place have gone meanwhile, it may pass over others that are there: of IPv6 it counts how many it has shown already
//! (fib6_dump_table), and that without saying so. So a table of which something went while it was read is read again,
//! until that shows nothing new but what changes tell of that were heard meanwhile. They also say what is not there any more.

use std::collections::HashSet;
use std::io;

use ipnet::IpNet;

use super::message::Fact;
use super::request::DUMPS;
use super::socket::Dump;
use crate::fib::Snapshot;

/// How often a table is read at most.
const MOST: usize = 8;
/// The places of the routes among [`DUMPS`].
const IPV4: usize = DUMPS.len() - 2;
const IPV6: usize = DUMPS.len() - 1;

/// A reading under way.
pub struct Scan {
    dump: Dump,
    snapshot: Snapshot,
    /// Something of the table that is being read went, so that others may have been passed over.
    disturbed: bool,
    /// How often this table was read.
    times: usize,
    /// Prefixes that changes told of.
    told: HashSet<IpNet>,
    /// Routes that this table shows for the first time, though it was read before.
    fresh: Vec<IpNet>,
    /// A table did not come to rest.
    pub doubtful: bool,
}

impl Scan {
    /// Begins.
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            dump: Dump::start()?,
            snapshot: Snapshot::default(),
            disturbed: false,
            times: 1,
            told: HashSet::new(),
            fresh: Vec::new(),
            doubtful: false,
        })
    }

    /// Hears of a change that comes while this reads.
    pub fn hear(&mut self, change: &Fact) {
        let (Fact::Route { route, .. } | Fact::RouteGone(route)) = change else {
            return;
        };
        let table = match route.destination {
            IpNet::V4(_) => IPV4,
            IpNet::V6(_) => IPV6,
        };
        if self.dump.stage() <= table {
            self.told.insert(route.destination);
        }
        self.disturbed |= self.dump.stage() == table && matches!(change, Fact::RouteGone(_));
    }

    /// Reads a portion, of some 300 routes. Whether a table has been read to its end: then whoever has heard of every change
    /// until now calls [`Scan::go_on`].
    pub fn read(&mut self) -> io::Result<bool> {
        let portion = self.dump.read()?;
        self.disturbed |= portion.interrupted;
        for fact in portion.facts {
            if self.times > 1
                && let Fact::Route { route, .. } = &fact
                && !self.snapshot.has(route)
            {
                self.fresh.push(route.destination);
            }
            self.snapshot.add(fact);
        }
        Ok(portion.last)
    }

    /// Goes on with the next table, or with the same one; gives everything if that was the last.
    pub fn go_on(&mut self) -> io::Result<Option<Snapshot>> {
        let mut fresh = std::mem::take(&mut self.fresh).into_iter();
        let new = self.times == 1 || fresh.any(|net| !self.told.contains(&net));
        if std::mem::take(&mut self.disturbed) && new {
            if self.times < MOST {
                self.times += 1;
                self.dump.again()?;
                return Ok(None);
            }
            self.doubtful = true;
        }
        self.times = 1;
        match self.dump.next_table()? {
            true => Ok(None),
            false => Ok(Some(std::mem::take(&mut self.snapshot))),
        }
    }
}
