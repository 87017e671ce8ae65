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
    table: Table,
    /// Prefixes that changes told of.
    told: HashSet<IpNet>,
    /// A table did not come to rest.
    pub doubtful: bool,
}

/// How the reading of one table goes.
#[derive(Default)]
struct Table {
    /// Something of it went while it was read, so that others may have been passed over.
    disturbed: bool,
    /// How often it was read before.
    before: usize,
    /// Routes that it shows for the first time, though it was read before.
    fresh: Vec<IpNet>,
}

/// What follows when a table has been read to its end.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Next,
    Again,
    /// It was read [`MOST`] times and did not come to rest: the next one.
    Doubt,
}

impl Table {
    /// It has been read to its end.
    fn ends(&mut self, told: &HashSet<IpNet>) -> After {
        let mut fresh = std::mem::take(&mut self.fresh).into_iter();
        let new = self.before == 0 || fresh.any(|net| !told.contains(&net));
        self.before += 1;
        match std::mem::take(&mut self.disturbed) && new {
            false => After::Next,
            true if self.before < MOST => After::Again,
            true => After::Doubt,
        }
    }
}

impl Scan {
    /// Begins.
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            dump: Dump::start()?,
            snapshot: Snapshot::default(),
            table: Table::default(),
            told: HashSet::new(),
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
        self.table.disturbed |= self.dump.stage() == table && matches!(change, Fact::RouteGone(_));
    }

    /// Reads a portion, of some 300 routes. Whether a table has been read to its end: then whoever has heard of every change
    /// until now calls [`Scan::go_on`].
    pub fn read(&mut self) -> io::Result<bool> {
        let portion = self.dump.read()?;
        self.table.disturbed |= portion.interrupted;
        for fact in portion.facts {
            if self.table.before > 0
                && let Fact::Route { route, .. } = &fact
                && !self.snapshot.has(route)
            {
                self.table.fresh.push(route.destination);
            }
            self.snapshot.add(fact);
        }
        Ok(portion.last)
    }

    /// Goes on with the next table, or with the same one; gives everything if that was the last.
    pub fn go_on(&mut self) -> io::Result<Option<Snapshot>> {
        match self.table.ends(&self.told) {
            After::Again => {
                self.dump.again()?;
                return Ok(None);
            }
            After::Doubt => self.doubtful = true,
            After::Next => {}
        }
        self.table = Table::default();
        match self.dump.next_table()? {
            true => Ok(None),
            false => Ok(Some(std::mem::take(&mut self.snapshot))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    /// A table of which something went while it was read so many times before, and that shows these nets anew.
    fn disturbed(before: usize, fresh: &[&str]) -> Table {
        Table {
            disturbed: true,
            before,
            fresh: fresh.iter().map(|text| net(text)).collect(),
        }
    }

    #[test]
    fn a_table_that_held_still_is_read_once() {
        assert_eq!(Table::default().ends(&HashSet::new()), After::Next);
    }

    #[test]
    fn a_table_of_which_something_went_is_read_until_it_shows_nothing_new() {
        let mut table = disturbed(0, &[]);
        assert_eq!(table.ends(&HashSet::new()), After::Again);
        // It held still the second time.
        assert_eq!(table.ends(&HashSet::new()), After::Next);
        assert_eq!(disturbed(1, &[]).ends(&HashSet::new()), After::Next);
        let told = HashSet::from([net("192.0.2.0/24")]);
        assert_eq!(disturbed(1, &["192.0.2.0/24"]).ends(&told), After::Next);
        let passed_over = ["192.0.2.0/24", "198.51.100.0/24"];
        assert_eq!(disturbed(1, &passed_over).ends(&told), After::Again);
    }

    #[test]
    fn a_table_that_never_rests_is_read_so_often_and_no_more() {
        let mut table = Table::default();
        let mut times = 0;
        let after = loop {
            times += 1;
            table.disturbed = true;
            table.fresh.push(net("192.0.2.0/24"));
            match table.ends(&HashSet::new()) {
                After::Again => {}
                after => break after,
            }
        };
        assert_eq!((times, after), (MOST, After::Doubt));
    }
}
