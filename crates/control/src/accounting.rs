//! Queue of accounting records that no RADIUS server has acknowledged yet.
//!
//! A Start or Stop is stored with the slot under which it will be sent, in the same batch as the change of the session that
//! it tells of; it goes out when that batch is on the disk, and the store forgets it when a server has answered. So
//! whatever dies, the same datagram is sent again, and a session has one Start and one Stop (decision 0006). An interim
//! record waits for its batch too, because no later one may say less; but it is not stored, and may get lost.
//!
//! An Accounting-On is stored like a Start, and the Starts of its server group wait for it: a server that got it after a Start would take
//! a live session for a dead one. Its key has the group's number in place of a session, in generation 0, which no
//! subscriber's session has.

use crate::aaa_clients::AaaClients;
use crate::journal::{Awaited, Journal};
use crate::records::Owed;
use crate::store::Record;
use crate::topology::Seid;
use aaa::{Delivery, Slot};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Prefix of the keys of records, followed by the session's identifier and the kind.
pub(crate) const ACCOUNTING_PREFIX: &[u8] = b"accounting/";

fn key(seid: Seid, kind: RecordKind) -> Vec<u8> {
    [ACCOUNTING_PREFIX, &seid.0.to_be_bytes(), &[kind as u8]].concat()
}

/// Kind of a record. A session's records are delivered in this order. The last two are of the gateway itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordKind {
    Start = 1,
    Interim = 2,
    Stop = 3,
    /// Accounting-On.
    On = 4,
    /// Accounting-Off.
    Off = 5,
}

impl RecordKind {
    const STORED: [RecordKind; 3] = [RecordKind::Start, RecordKind::Stop, RecordKind::On];

    /// Whether records of this kind are in the store until a server has acknowledged them.
    fn is_stored(self) -> bool {
        Self::STORED.contains(&self)
    }

    /// Kind of a stored record, by its number in the key.
    pub fn stored(number: u8) -> Option<Self> {
        Self::STORED.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Progress of a record's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordStage {
    /// Waits for the session's Start, or a Start for the group's Accounting-On, to be acknowledged; or for a free slot.
    Waiting,
    /// Waits until the store has the record and its slot on disk.
    Written(Slot),
    /// The RADIUS client has it.
    InFlight(Slot),
}

/// Accounting record.
pub(crate) struct AccountingRecord {
    /// Its session. A record of the gateway itself has the number of its server group, in generation 0.
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
    by_session: HashMap<Seid, [Option<u64>; 5]>,
    /// Tokens of records that wait for a slot, oldest first, by server group. Starts that wait for an Accounting-On are among them.
    starved: BTreeMap<Arc<str>, VecDeque<u64>>,
    /// Server groups whose Accounting-On is not acknowledged yet, with what stands for a session of it.
    announced: BTreeMap<Arc<str>, Seid>,
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
        if kind == RecordKind::On {
            self.announced.insert(servers.clone(), seid);
        }
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

    fn remove(&mut self, token: u64) -> Option<AccountingRecord> {
        let record = self.records.remove(&token)?;
        if let Some(of_session) = self.by_session.get_mut(&record.seid) {
            of_session[record.kind as usize - 1] = None;
            if *of_session == [None; 5] {
                self.by_session.remove(&record.seid);
            }
        }
        if record.kind == RecordKind::On {
            self.announced.remove(&record.servers);
        }
        Some(record)
    }

    /// Lets a record wait for a free slot.
    fn starve(&mut self, token: u64) {
        if let Some(record) = self.records.get(&token) {
            let starved = self.starved.entry(record.servers.clone());
            starved.or_default().push_back(token);
        }
    }

    /// Removes the record that has waited longest for a slot from the waiting list.
    fn next_starved(&mut self, servers: &str) -> Option<u64> {
        self.starved.get_mut(servers)?.pop_front()
    }

    /// Whether an Accounting-Off is under way.
    pub fn has_off(&self) -> bool {
        let mut records = self.records.values();
        records.any(|record| record.kind == RecordKind::Off)
    }

    /// Whether a record of a session waits for a server.
    pub fn has_sessions(&self) -> bool {
        let mut records = self.records.values();
        records.any(|record| record.seid.generation() > 0)
    }

    /// Whether a record waits for this server group.
    pub fn is_owed(&self, servers: &str) -> bool {
        self.records
            .values()
            .any(|record| &*record.servers == servers)
    }
}

/// Delivery. A record goes from the journal to the client of its server group.
impl AccountingQueue {
    /// Withdraws a record that is not to be delivered any more: an interim record whose place a later one takes, or an Accounting-On of
    /// a server group that is removed.
    pub fn withdraw(
        &mut self,
        seid: Seid,
        kind: RecordKind,
        aaa: &mut AaaClients,
        journal: &mut Journal,
    ) {
        let Some(token) = self.find(seid, kind) else {
            return;
        };
        let Some(record) = self.remove(token) else {
            return;
        };
        if let Some(client) = aaa.client(&record.servers) {
            match record.stage {
                RecordStage::Waiting => {}
                RecordStage::Written(slot) => client.give_back(slot),
                RecordStage::InFlight(slot) => client.withdraw(token, slot),
            }
        }
        if kind.is_stored() {
            journal.add(Record::delete(key(seid, kind)));
        }
        self.serve_starved(&record.servers, aaa, journal);
    }

    /// Takes a slot for a record, and adds both to the current batch. A record that has to wait for another one, or for a slot, is
    /// stored without one.
    pub fn prepare(&mut self, token: u64, aaa: &mut AaaClients, journal: &mut Journal) {
        let Some(record) = self.records.get(&token) else {
            return;
        };
        let (seid, kind) = (record.seid, record.kind);
        let waits = match kind {
            RecordKind::Start => self.announced.contains_key(&record.servers),
            RecordKind::Stop => self.find(seid, RecordKind::Start).is_some(),
            RecordKind::Interim | RecordKind::On | RecordKind::Off => false,
        };
        let servers = record.servers.clone();
        if kind == RecordKind::Start && !waits {
            self.give_up_announcements(&servers, aaa, journal);
        }
        let client = (!waits).then(|| aaa.client(&servers)).flatten();
        let slot = client.and_then(|client| client.take_slot());
        match (slot, kind) {
            (Some(slot), _) => {
                if let Some(record) = self.records.get_mut(&token) {
                    record.stage = RecordStage::Written(slot);
                }
                journal.await_batch(Awaited::Record(token));
            }
            (None, RecordKind::Interim | RecordKind::Off) => return drop(self.remove(token)),
            (None, RecordKind::Stop) if waits => {} // its Start brings it along
            (None, _) => self.starve(token),
        }
        self.persist(token, slot, journal);
    }

    /// Withdraws the Accounting-Ons of other groups than that of a session which begins. Their servers may write into the same database,
    /// and take the session for a dead one.
    fn give_up_announcements(
        &mut self,
        servers: &str,
        aaa: &mut AaaClients,
        journal: &mut Journal,
    ) {
        while let Some((group, seid)) = self.announced.iter().find(|(name, _)| &***name != servers)
        {
            tracing::warn!(
                group = &**group,
                "Accounting-On is given up before a server has acknowledged it, because a session \
                of another server group begins"
            );
            self.withdraw(*seid, RecordKind::On, aaa, journal);
        }
    }

    fn persist(&self, token: u64, slot: Option<Slot>, journal: &mut Journal) {
        if let Some(record) = self.records.get(&token)
            && record.kind.is_stored()
        {
            let owed = Owed {
                slot: slot.map(|slot| (slot.socket(), slot.identifier())),
                attributes: record.attributes.clone(),
                servers: Some((*record.servers).to_owned()),
            };
            journal.add(Record::put(key(record.seid, record.kind), owed.to_bytes()));
        }
    }

    /// Sends a record that is on disk, unless a later one has taken its place.
    pub fn deliver(&mut self, now: Duration, token: u64, aaa: &mut AaaClients) {
        if let Some(record) = self.records.get(&token)
            && let RecordStage::Written(slot) = record.stage
        {
            let delivery = match record.kind {
                RecordKind::Interim | RecordKind::Off => Delivery::Once,
                RecordKind::Start | RecordKind::Stop | RecordKind::On => Delivery::UntilRecorded,
            };
            self.hand_over(now, token, (slot, delivery), aaa);
        }
    }

    fn hand_over(
        &mut self,
        now: Duration,
        token: u64,
        (slot, delivery): (Slot, Delivery),
        aaa: &mut AaaClients,
    ) {
        if let Some(record) = self.records.get_mut(&token)
            && let Some(client) = aaa.client(&record.servers)
        {
            record.stage = RecordStage::InFlight(slot);
            let attributes = std::mem::take(&mut record.attributes);
            client.account(now, token, slot, attributes, delivery);
        }
    }

    /// Forgets a record: a server has it, or it is an interim record that was given up. Returns the session if it was its Start.
    pub fn on_accounted(
        &mut self,
        token: u64,
        aaa: &mut AaaClients,
        journal: &mut Journal,
    ) -> Option<Seid> {
        let record = self.remove(token)?;
        if record.kind.is_stored() {
            journal.add(Record::delete(key(record.seid, record.kind)));
        }
        if record.kind == RecordKind::Start
            && let Some(stop) = self.find(record.seid, RecordKind::Stop)
        {
            self.prepare(stop, aaa, journal);
        }
        self.serve_starved(&record.servers, aaa, journal);
        (record.kind == RecordKind::Start).then_some(record.seid)
    }

    /// Uses the free slots.
    fn serve_starved(&mut self, servers: &str, aaa: &mut AaaClients, journal: &mut Journal) {
        while !self.announced.contains_key(servers)
            && aaa.client(servers).is_some_and(|c| c.has_slot())
            && let Some(token) = self.next_starved(servers)
        {
            self.prepare(token, aaa, journal);
        }
    }

    /// Sends an Accounting-Off at once and without the store.
    pub fn announce_off(
        &mut self,
        now: Duration,
        (number, servers): (u16, Arc<str>),
        attributes: Box<[u8]>,
        aaa: &mut AaaClients,
    ) {
        let slot = aaa.client(&servers).and_then(|client| client.take_slot());
        if let Some(slot) = slot {
            let seid = Seid::new(0, number.into());
            let token = self.add(seid, RecordKind::Off, servers, attributes);
            self.hand_over(now, token, (slot, Delivery::Once), aaa);
        }
    }

    /// Goes on with the records that the store held, in the order of its keys: a Start comes before its Stop. Returns the
    /// sessions whose records are lost, because no server is configured.
    pub fn resume(
        &mut self,
        now: Duration,
        owed: Vec<(Seid, RecordKind, Owed)>,
        aaa: &mut AaaClients,
        journal: &mut Journal,
    ) -> Vec<Seid> {
        let (mut others, mut lost) = (Vec::new(), Vec::new());
        for (seid, kind, owed) in owed {
            let first_group = || aaa.first_group().map(str::to_owned);
            let Some(servers) = owed.servers.or_else(first_group) else {
                lost.push(seid);
                journal.add(Record::delete(key(seid, kind)));
                continue;
            };
            let servers: Arc<str> = servers.into();
            let token = self.add(seid, kind, servers.clone(), owed.attributes);
            let slot = owed.slot.map(|(socket, number)| Slot::new(socket, number));
            let mut client = aaa.client(&servers);
            let mut claim = |slot: &Slot| client.as_mut().is_some_and(|c| c.claim_slot(*slot));
            match slot.filter(&mut claim) {
                Some(slot) => self.hand_over(now, token, (slot, Delivery::Resumed), aaa),
                None => others.push(token),
            }
        }
        for token in others {
            self.prepare(token, aaa, journal);
        }
        lost
    }
}
