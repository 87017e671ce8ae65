//! Queue of accounting records that no RADIUS server has acknowledged yet.

use crate::topology::Seid;
use aaa::Slot;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Kind of a record. A session's records are delivered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordKind {
    Start = 1,
    Interim = 2,
    Stop = 3,
}

impl RecordKind {
    /// Kind of a stored record, by its number in the key.
    pub fn stored(number: u8) -> Option<Self> {
        [RecordKind::Start, RecordKind::Stop]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// Progress of a record's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordStage {
    /// Waits for the session's Start to be acknowledged, or for a free slot.
    Waiting,
    /// Waits until the store has the record and its slot on disk.
    Written(Slot),
    /// The RADIUS client has it.
    InFlight(Slot),
}

/// Accounting record of a session.
pub(crate) struct AccountingRecord {
    pub seid: Seid,
    pub kind: RecordKind,
    /// Server group that receives it.
    pub servers: Arc<str>,
    /// Encoded attributes. Empty from [`RecordStage::InFlight`] on, when the RADIUS client has them.
    pub attributes: Box<[u8]>,
    pub stage: RecordStage,
}

/// Records of all sessions. A session has at most one of each kind: a new interim record replaces the previous one.
#[derive(Default)]
pub(crate) struct AccountingQueue {
    records: HashMap<u64, AccountingRecord>,
    last: u64,
    by_session: HashMap<Seid, [Option<u64>; 3]>,
    /// Tokens of records that wait for a slot, oldest first, by server group.
    starved: BTreeMap<Arc<str>, VecDeque<u64>>,
}

impl AccountingQueue {
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Tokens of all records.
    pub fn tokens(&self) -> impl Iterator<Item = u64> {
        self.records.keys().copied()
    }

    /// Tokens of all records, with their sessions.
    pub fn of_sessions(&self) -> impl Iterator<Item = (u64, Seid)> {
        let sessions = self.by_session.iter();
        sessions.flat_map(|(seid, tokens)| tokens.iter().flatten().map(|token| (*token, *seid)))
    }

    /// Adds a record and returns its token.
    pub fn add(
        &mut self,
        seid: Seid,
        kind: RecordKind,
        servers: Arc<str>,
        attributes: Box<[u8]>,
    ) -> u64 {
        self.last += 1;
        let token = self.last;
        let record = AccountingRecord {
            seid,
            kind,
            servers,
            attributes,
            stage: RecordStage::Waiting,
        };
        self.records.insert(token, record);
        self.by_session.entry(seid).or_default()[kind as usize - 1] = Some(token);
        token
    }

    /// Token of a session's record.
    pub fn find(&self, seid: Seid, kind: RecordKind) -> Option<u64> {
        self.by_session.get(&seid)?[kind as usize - 1]
    }

    pub fn has(&self, token: u64) -> bool {
        self.records.contains_key(&token)
    }

    pub fn record(&mut self, token: u64) -> Option<&mut AccountingRecord> {
        self.records.get_mut(&token)
    }

    pub fn remove(&mut self, token: u64) -> Option<AccountingRecord> {
        let record = self.records.remove(&token)?;
        if let Some(of_session) = self.by_session.get_mut(&record.seid) {
            of_session[record.kind as usize - 1] = None;
            if *of_session == [None; 3] {
                self.by_session.remove(&record.seid);
            }
        }
        Some(record)
    }

    /// Lets a record wait for a free slot.
    pub fn starve(&mut self, token: u64) {
        if let Some(record) = self.records.get(&token) {
            let starved = self.starved.entry(record.servers.clone());
            starved.or_default().push_back(token);
        }
    }

    /// Removes the record that has waited longest for a slot from the waiting list.
    pub fn next_starved(&mut self, servers: &str) -> Option<u64> {
        self.starved.get_mut(servers)?.pop_front()
    }

    /// Whether a record waits for this server group.
    pub fn is_owed(&self, servers: &str) -> bool {
        self.records
            .values()
            .any(|record| &*record.servers == servers)
    }
}
