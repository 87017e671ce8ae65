//! Accounting: what is recorded of a session, written into the store before it is sent, and kept there until a server
//! has it.
//!
//! A Start or Stop is stored with the slot under which it will be sent, in the same batch as the change of the session that
//! it tells of; it goes out when that batch is on the disk, and the store forgets it when a server has answered. So
//! whatever dies, the same datagram is sent again, and a session has one Start and one Stop (decision 0006). An interim
//! record waits for its batch too, because no later one may say less; but it is not stored, and may get lost.

use super::{Awaited, ControlPlane, Now, Output, Waiting};
use crate::aaa_clients::AaaClients;
use crate::accounting::{RecordKind, RecordStage};
use crate::counters::Counter;
use crate::entry::{Owed, Stage, Started};
use crate::store::Record as StoreRecord;
use crate::topology::Seid;
use aaa::{AccountingKind, AccountingRecord, Delivery, Slot, TerminateCause, Traffic};
use session::Cause;
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const ACCOUNTING_PREFIX: &[u8] = b"accounting/";

fn key(seid: Seid, kind: RecordKind) -> Vec<u8> {
    [ACCOUNTING_PREFIX, &seid.0.to_be_bytes(), &[kind as u8]].concat()
}

/// Acct-Terminate-Cause (RFC 2866 §5.10).
fn terminate_cause(cause: Cause) -> TerminateCause {
    match cause {
        Cause::UserRequest => TerminateCause::UserRequest,
        Cause::LostCarrier => TerminateCause::LostCarrier,
        Cause::IdleTimeout => TerminateCause::IdleTimeout,
        Cause::SessionTimeout => TerminateCause::SessionTimeout,
        Cause::AdminReset => TerminateCause::AdminReset,
        Cause::AdminReboot => TerminateCause::AdminReboot,
        Cause::PortError | Cause::Loopback => TerminateCause::PortError,
        Cause::NasError => TerminateCause::NasError,
        Cause::NasRequest => TerminateCause::NasRequest,
        Cause::AuthFailed | Cause::NegotiationFailed => TerminateCause::UserError,
    }
}

impl ControlPlane {
    /// AAA follows the configuration.
    pub(super) fn update_aaa(&mut self, now: Now, owed: &[(Seid, RecordKind, Owed)]) {
        let used: HashSet<&str> = self
            .sessions
            .iter()
            .filter_map(|(_, e)| e.servers.as_deref())
            .collect();
        let is_owed = |name: &str| {
            let stored = owed
                .iter()
                .any(|(_, _, owed)| owed.servers.as_deref() == Some(name));
            used.contains(name) || self.accounting.is_owed(name) || stored
        };
        let configuration = &self.configuration;
        self.aaa
            .update(now.at, configuration, &self.numbers, is_owed);
        let sockets = self.aaa.sockets();
        if sockets != self.radius_sockets {
            let kept = |socket: &(bool, u16)| (*socket, self.radius_ports.get(socket).copied());
            let wanted = sockets.iter().map(kept).collect();
            self.outputs.push_back(Output::RadiusSockets(wanted));
            self.radius_sockets = sockets;
        }
    }

    /// The session's times are counted from its start.
    pub(super) fn arm_times(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        if entry.account.started.is_some() && !entry.is_closing() {
            let control = &entry.policy.control;
            let (interval, granted) = (control.interim_interval, control.session_timeout);
            entry.account.arm_interim(now.at, interval);
            entry.account.arm_timeout(now.at, granted);
        }
    }

    /// The session begins with the batch that makes its first address family durable, and its Start is in that batch.
    pub(super) fn begin_account(&mut self, now: Now, index: u32) {
        let account = &mut self.entry(index).account;
        if account.started.is_some() {
            return;
        }
        account.started = Some(Started {
            at: now.at,
            before: 0,
            unix: now.unix,
        });
        self.arm_times(now, index);
        self.record(now, index, AccountingKind::Start);
    }

    /// The session's end is recorded. The caller deletes what is stored of it in the same batch.
    pub(super) fn close_account(&mut self, now: Now, index: u32) {
        let Stage::Closing(ending) = self.entry(index).stage else {
            return;
        };
        if self.entry(index).account.started.is_some() {
            let cause = terminate_cause(ending.cause);
            self.record(now, index, AccountingKind::Stop(cause));
        }
    }

    /// Sends an interim record with what is known of the session now, unless its Start is still on its way.
    pub(super) fn record_interim(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        let seid = entry.seid;
        if entry.account.started.is_none() || entry.is_closing() {
            return;
        }
        // without what it says in the store, it could say more than a later one
        if self.accounting.find(seid, RecordKind::Start).is_none() && self.persist(now, index) {
            self.record(now, index, AccountingKind::Interim);
        }
    }

    fn record(&mut self, now: Now, index: u32, kind: AccountingKind) {
        let Some(servers) = self.entry(index).servers.clone() else {
            return; // nobody keeps records
        };
        let record_kind = match kind {
            AccountingKind::Start => RecordKind::Start,
            AccountingKind::Interim => RecordKind::Interim,
            AccountingKind::Stop(_) => RecordKind::Stop,
        };
        let seid = self.entry(index).seid;
        self.withdraw_interim(seid);
        let record = self.accounting_record(now, index, kind);
        let attributes = match self.aaa.attributes(&servers, &record) {
            Ok(attributes) => attributes,
            Err(why) => return self.lose(seid, &why),
        };
        if self.accounting.len() >= self.configuration.limits.accounting_records as usize {
            if record_kind != RecordKind::Interim {
                self.lose(seid, "too many records wait for a server");
            }
            return;
        }
        let token = self.accounting.add(seid, record_kind, servers, attributes);
        self.prepare(token);
    }

    fn lose(&mut self, seid: Seid, why: &str) {
        self.counters.count(Counter::AccountingLost);
        tracing::error!(session = %seid, why, "an accounting record is lost");
    }

    fn accounting_record(&self, now: Now, index: u32, kind: AccountingKind) -> AccountingRecord {
        let entry = &self.sessions[index];
        let usage = entry.account.usage;
        let (session_time, event_time) = match entry.stage {
            Stage::Closing(ending) => (ending.lasted, ending.unix),
            _ => (entry.account.lasted(now.at), now.unix),
        };
        AccountingRecord {
            kind,
            username: entry.who.username.to_vec(),
            acct_session_id: entry.seid.to_string(),
            nas_port: self.nas_port(index),
            class: entry.who.class.to_vec(),
            framed_ip: entry.ipv4(),
            framed_ipv6_prefix: entry.ipv6(),
            framed_interface_id: entry.status().and_then(|status| status.peer_interface_id),
            authentic: AaaClients::authentic(entry.servers.as_deref()),
            event_time,
            session_time,
            input: Traffic {
                octets: usage.up_octets,
                packets: usage.up_packets,
            },
            output: Traffic {
                octets: usage.down_octets,
                packets: usage.down_packets,
            },
        }
    }

    /// A later record of the session takes the place of its interim record.
    fn withdraw_interim(&mut self, seid: Seid) {
        let Some(token) = self.accounting.find(seid, RecordKind::Interim) else {
            return;
        };
        let Some(record) = self.accounting.remove(token) else {
            return;
        };
        if let Some(client) = self.aaa.client(&record.servers) {
            match record.stage {
                RecordStage::Waiting => {}
                RecordStage::Written(slot) => client.give_back(slot),
                RecordStage::InFlight(slot) => client.withdraw(token, slot),
            }
        }
        self.serve_starved(&record.servers);
    }

    /// Takes a slot for a record, and writes both into the batch that is being put together. A Stop that has to wait for its
    /// Start, or for a slot, is written without.
    pub(super) fn prepare(&mut self, token: u64) {
        let Some(record) = self.accounting.record(token) else {
            return;
        };
        let (seid, kind, servers) = (record.seid, record.kind, record.servers.clone());
        let first =
            kind != RecordKind::Stop || self.accounting.find(seid, RecordKind::Start).is_none();
        let slot = first
            .then(|| self.aaa.client(&servers)?.take_slot())
            .flatten();
        match slot {
            Some(slot) => {
                if let Some(record) = self.accounting.record(token) {
                    record.stage = RecordStage::Written(slot);
                }
                self.waiting.push_back(Waiting {
                    batch: self.batch,
                    what: Awaited::Record(token),
                });
            }
            None if kind == RecordKind::Interim => return drop(self.accounting.remove(token)),
            None if first => self.accounting.starve(token),
            None => {}
        }
        self.persist_record(token, slot);
    }

    fn persist_record(&mut self, token: u64, slot: Option<Slot>) {
        let Some(record) = self.accounting.record(token) else {
            return;
        };
        if record.kind != RecordKind::Interim {
            let owed = Owed {
                slot: slot.map(|slot| (slot.socket(), slot.identifier())),
                attributes: record.attributes.clone(),
                servers: Some((*record.servers).to_owned()),
            };
            let record = StoreRecord::put(key(record.seid, record.kind), owed.to_bytes());
            self.records.push(record);
        }
    }

    /// The disk has a record: it goes out.
    pub(super) fn deliver(&mut self, now: Now, token: u64) {
        let Some(record) = self.accounting.record(token) else {
            return; // a later one took its place
        };
        let delivery = match record.kind {
            RecordKind::Interim => Delivery::Once,
            RecordKind::Start | RecordKind::Stop => Delivery::UntilRecorded,
        };
        if let RecordStage::Written(slot) = record.stage {
            self.hand_over(now, token, slot, delivery);
        }
    }

    fn hand_over(&mut self, now: Now, token: u64, slot: Slot, delivery: Delivery) {
        let Some(record) = self.accounting.record(token) else {
            return;
        };
        if let Some(client) = self.aaa.client(&record.servers) {
            record.stage = RecordStage::InFlight(slot);
            let attributes = std::mem::take(&mut record.attributes);
            client.account(now.at, token, slot, attributes, delivery);
        }
    }

    /// A server has a record, or an interim record was given up.
    pub(super) fn on_accounted(&mut self, token: u64) {
        let Some(record) = self.accounting.remove(token) else {
            return;
        };
        if record.kind != RecordKind::Interim {
            self.records
                .push(StoreRecord::delete(key(record.seid, record.kind)));
        }
        if record.kind == RecordKind::Start
            && let Some(stop) = self.accounting.find(record.seid, RecordKind::Stop)
        {
            self.prepare(stop);
        }
        self.serve_starved(&record.servers);
    }

    /// A slot is free.
    fn serve_starved(&mut self, servers: &str) {
        if self.aaa.client(servers).is_some_and(|c| c.has_slot())
            && let Some(token) = self.accounting.next_starved(servers)
        {
            self.prepare(token);
        }
    }

    /// Goes on with the records that the store held, in the order of its keys: a Start comes before its Stop.
    pub(super) fn resume_records(&mut self, now: Now, owed: Vec<(Seid, RecordKind, Owed)>) {
        let mut others = Vec::new();
        for (seid, kind, owed) in owed {
            let Owed {
                slot,
                attributes,
                servers,
            } = owed;
            let Some(servers) = servers.or_else(|| self.aaa.first_group().map(str::to_owned))
            else {
                self.lose(seid, "no RADIUS server is configured");
                self.records.push(StoreRecord::delete(key(seid, kind)));
                continue;
            };
            let servers: Arc<str> = servers.into();
            let token = self.accounting.add(seid, kind, servers.clone(), attributes);
            let slot = slot.map(|(socket, identifier)| Slot::new(socket, identifier));
            let aaa = &mut self.aaa;
            let claim = |slot: &Slot| {
                aaa.client(&servers)
                    .is_some_and(|client| client.claim_slot(*slot))
            };
            match slot.filter(claim) {
                Some(slot) => self.hand_over(now, token, slot, Delivery::Resumed),
                None => others.push(token),
            }
        }
        others.into_iter().for_each(|token| self.prepare(token));
    }
}
