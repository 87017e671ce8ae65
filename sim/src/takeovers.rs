//! Takeovers of fixed addresses: a session that begins while an earlier one has its home's address gets that address.

use control::topology::Seid;
use core::time::Duration;
use std::collections::BTreeMap;

/// Takeover that is under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Session that has the address.
    giver: Seid,
    /// Session that is to have it.
    heir: Seid,
    /// When a server last accepted the home.
    accepted: Option<Duration>,
    /// The heir has the address. Further answers to a request that came twice are about nothing.
    is_given: bool,
    /// Another heir began before this one, and had not got the address.
    hurried: bool,
}

/// Takeovers of all homes.
#[derive(Default)]
pub struct Takeovers {
    /// By home.
    open: BTreeMap<usize, Open>,
    /// Takeovers whose heir came online with the address.
    pub done: u64,
    /// Those of them whose giver had an heir before.
    pub hurried: u64,
    /// From the answer of a server until the heir had the address, in the longest of them.
    pub longest: Duration,
}

impl Takeovers {
    /// A session is being set up while another one has its home's address.
    pub fn begin(&mut self, home: usize, giver: Seid, heir: Seid) {
        let before = self.open.get(&home);
        if before.is_some_and(|open| open.heir == heir) {
            return;
        }
        let open = Open {
            giver,
            heir,
            accepted: None,
            is_given: false,
            hurried: before.is_some_and(|open| open.giver == giver),
        };
        self.open.insert(home, open);
    }

    /// A server accepts a home.
    pub fn accept(&mut self, now: Duration, home: usize) {
        if let Some(open) = self.open.get_mut(&home).filter(|open| !open.is_given) {
            open.accepted = Some(now);
        }
    }

    /// A session has its home's address.
    pub fn has(&mut self, now: Duration, home: usize, heir: Seid) {
        let open = self.open.get_mut(&home).filter(|open| open.heir == heir);
        let Some(open) = open else {
            return;
        };
        open.is_given = true;
        if let Some(accepted) = open.accepted.take() {
            self.longest = self.longest.max(now - accepted);
        }
    }

    /// A session is online with its home's address.
    pub fn end(&mut self, home: usize, heir: Seid) {
        if let Some(open) = self.open.get(&home).filter(|open| open.heir == heir) {
            self.done += 1;
            self.hurried += u64::from(open.hurried);
            self.open.remove(&home);
        }
    }
}
