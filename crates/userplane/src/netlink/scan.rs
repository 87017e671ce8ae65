//! Complete reading of the kernel's tables while they change.
//!
//! The kernel does not hold its tables still for a reader. It continues at the right place, but when routes before that place
//! have been removed meanwhile, it may skip others that exist, without notice: for IPv6 it counts the routes that it has shown
//! (fib6_dump_table). So a table from which a route was removed during the reading is read again, until a reading shows no new
//! route except those that changes announced meanwhile. The changes also tell which routes are gone.

use std::collections::HashSet;
use std::io;

use ipnet::IpNet;

use super::message::Fact;
use super::request::DUMPS;
use super::socket::Dump;
use crate::fib::Snapshot;

/// Maximum number of readings of a table.
const MOST: usize = 8;
/// Positions of the routes in [`DUMPS`].
const IPV4: usize = DUMPS.len() - 2;
const IPV6: usize = DUMPS.len() - 1;

/// Reading under way.
pub struct Scan {
    dump: Dump,
    snapshot: Snapshot,
    table: Table,
    /// Prefixes that changes concerned.
    told: HashSet<IpNet>,
    /// Whether a table kept changing until the last attempt.
    pub doubtful: bool,
}

/// State of the reading of one table.
#[derive(Default)]
struct Table {
    /// Whether a route was removed during the reading, so that others may have been skipped.
    disturbed: bool,
    /// Number of earlier readings.
    before: usize,
    /// Routes that first appeared in a repeated reading.
    fresh: Vec<IpNet>,
}

/// What follows after a table has been read to its end.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Next,
    Again,
    /// The table kept changing in [`MOST`] readings: continue with the next one.
    Doubt,
}

impl Table {
    /// Handles the end of a reading of the table.
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
    /// Starts a reading.
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            dump: Dump::start()?,
            snapshot: Snapshot::default(),
            table: Table::default(),
            told: HashSet::new(),
            doubtful: false,
        })
    }

    /// Notes a change that arrives during the reading.
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

    /// Reads a portion of some 300 routes. Returns whether a table has been read to its end. Then the caller handles every change
    /// until now and calls [`Scan::go_on`].
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

    /// Continues with the next table, or reads the same one again. Returns everything after the last table.
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

    /// A table from which a route was removed, after `before` readings, with these new prefixes.
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
        // No change during the second reading.
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
