//! Announcements of the gateway itself to the servers of a group (RFC 2866 §5.1). Accounting-On says that every session that a server
//! still has is none, so it goes out only while the store has no session and no record of one: sessions live on while the control plane
//! is away. Accounting-Off says the same at a planned end. Sessions of all groups count, because servers of different groups may write
//! into one database, and know the gateway by its address.

use super::{ControlPlane, Now};
use crate::accounting::RecordKind;
use crate::topology::Seid;
use aaa::Announcement;
use std::sync::Arc;

impl ControlPlane {
    /// Sends Accounting-On to the groups that this run has not served before, if no session lives on.
    pub(super) fn announce_groups(&mut self, now: Now) {
        let groups = &self.configuration.aaa.server_groups;
        let is_new = |name: &&String| !self.served_groups.contains(&***name);
        let new: Vec<Arc<str>> = groups.keys().filter(is_new).map(|n| (**n).into()).collect();
        self.served_groups.extend(new.iter().cloned());
        if new.is_empty() || self.has_accounts() {
            return;
        }
        for servers in new {
            if let Some((number, attributes)) = self.announcement(now, &servers, true) {
                tracing::info!(
                    group = &*servers,
                    "no session lives on: the server group gets Accounting-On, and records of new \
                    sessions wait until a server has acknowledged it"
                );
                let seid = Seid::new(0, number.into());
                let token = (self.accounting).add(seid, RecordKind::On, servers, attributes);
                self.accounting
                    .prepare(token, &mut self.aaa, &mut self.journal);
            }
        }
    }

    /// Whether there is a session that has accounting, or a record of one.
    fn has_accounts(&self) -> bool {
        let mut sessions = self.sessions.entries();
        sessions.any(|entry| entry.servers.is_some()) || self.accounting.has_sessions()
    }

    /// Withdraws what groups that the configuration has no more have not acknowledged yet.
    pub(super) fn forget_groups(&mut self) {
        let groups = &self.configuration.aaa.server_groups;
        let gone = |name: &Arc<str>| !groups.contains_key(&**name);
        for servers in self.served_groups.extract_if(.., gone) {
            if let Some(number) = self.aaa.number(&servers) {
                let (seid, on) = (Seid::new(0, number.into()), RecordKind::On);
                (self.accounting).withdraw(seid, on, &mut self.aaa, &mut self.journal);
            }
        }
    }

    /// Sends Accounting-Off to the groups that have acknowledged everything, if no session lives on.
    pub(super) fn announce_end(&mut self, now: Now) {
        if self.has_accounts() {
            return;
        }
        for servers in self.served_groups.clone() {
            if let Some((number, attributes)) = self.announcement(now, &servers, false) {
                let group = (number, servers);
                (self.accounting).announce_off(now.at, group, attributes, &mut self.aaa);
            }
        }
    }

    /// Number of a group and attributes of an announcement to it; `None` if it gets none, or still has one to acknowledge.
    fn announcement(&mut self, now: Now, servers: &str, begins: bool) -> Option<(u16, Box<[u8]>)> {
        let group = self.configuration.aaa.server_groups.get(servers)?;
        if !group.accounting_on || self.accounting.is_owed(servers) {
            return None;
        }
        let id = Seid::new(self.generations.next(&mut self.journal), 0);
        let announcement = Announcement {
            begins,
            acct_session_id: id.to_string(),
            event_time: now.unix,
        };
        let attributes = self.aaa.announcement(servers, &announcement)?;
        Some((self.aaa.number(servers)?, attributes))
    }

    /// Whether a server has still to answer an Accounting-Off.
    pub fn is_leaving(&self) -> bool {
        self.accounting.has_off()
    }
}
