//! Accounting records that no server has yet.

use crate::topology::Seid;
use aaa::Slot;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Which record of a session, in the order in which they are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    Start = 1,
    Interim = 2,
    Stop = 3,
}

impl Which {
    /// By its number in the store.
    pub fn stored(number: u8) -> Option<Self> {
        [Which::Start, Which::Stop]
            .into_iter()
            .find(|which| *which as u8 == number)
    }
}

/// How far the delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// For the session's Start to be recorded, or for a slot.
    Waits,
    /// Its slot is being made durable with it.
    Written(Slot),
    /// The RADIUS client has it.
    Underway(Slot),
}

/// A record.
pub(crate) struct Page {
    pub seid: Seid,
    pub which: Which,
    /// The group of servers that it is for.
    pub servers: Arc<str>,
    /// What it says; the client's from [`Stage::Underway`] on.
    pub attributes: Box<[u8]>,
    pub stage: Stage,
}

/// All of them. A session has at most one of each kind: an interim record replaces the one before.
#[derive(Default)]
pub(crate) struct Book {
    pages: HashMap<u64, Page>,
    last: u64,
    by_session: HashMap<Seid, [Option<u64>; 3]>,
    /// Those that found no slot free, in order, by their servers.
    starved: BTreeMap<Arc<str>, VecDeque<u64>>,
}

impl Book {
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// The tokens of all records.
    pub fn tokens(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    /// Every session's records.
    pub fn of_sessions(&self) -> impl Iterator<Item = (u64, Seid)> {
        let sessions = self.by_session.iter();
        sessions.flat_map(|(seid, tokens)| tokens.iter().flatten().map(|token| (*token, *seid)))
    }

    /// Adds a record and gives its token.
    pub fn add(
        &mut self,
        seid: Seid,
        which: Which,
        servers: Arc<str>,
        attributes: Box<[u8]>,
    ) -> u64 {
        self.last += 1;
        let token = self.last;
        let page = Page {
            seid,
            which,
            servers,
            attributes,
            stage: Stage::Waits,
        };
        self.pages.insert(token, page);
        self.by_session.entry(seid).or_default()[which as usize - 1] = Some(token);
        token
    }

    /// A session's record.
    pub fn find(&self, seid: Seid, which: Which) -> Option<u64> {
        self.by_session.get(&seid)?[which as usize - 1]
    }

    pub fn has(&self, token: u64) -> bool {
        self.pages.contains_key(&token)
    }

    pub fn page(&mut self, token: u64) -> Option<&mut Page> {
        self.pages.get_mut(&token)
    }

    pub fn remove(&mut self, token: u64) -> Option<Page> {
        let page = self.pages.remove(&token)?;
        if let Some(of_session) = self.by_session.get_mut(&page.seid) {
            of_session[page.which as usize - 1] = None;
            if *of_session == [None; 3] {
                self.by_session.remove(&page.seid);
            }
        }
        Some(page)
    }

    /// There is no slot for a record now.
    pub fn starve(&mut self, token: u64) {
        if let Some(page) = self.pages.get(&token) {
            let starved = self.starved.entry(page.servers.clone());
            starved.or_default().push_back(token);
        }
    }

    /// The record that has waited for a slot for longest.
    pub fn next_starved(&mut self, servers: &str) -> Option<u64> {
        self.starved.get_mut(servers)?.pop_front()
    }

    /// Whether a record is for these servers.
    pub fn is_owed(&self, servers: &str) -> bool {
        self.pages.values().any(|page| &*page.servers == servers)
    }
}
