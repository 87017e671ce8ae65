//! Release of a session: the one code path that releases all its resources, whatever ended it.

use super::persist::{ending_key, session_key};
use super::{ControlPlane, Now};
use crate::entry::{Ending, UnderWay};
use crate::session_ids::Home;
use crate::store::Record as StoreRecord;
use policy::Access;
use session::Cause;

impl ControlPlane {
    /// Ends a session. The subscriber may reconnect at once. The session on the user plane is deleted first, because its last
    /// counters belong in the accounting record.
    pub(super) fn release(&mut self, now: Now, index: u32, cause: Cause) {
        let entry = &self.sessions[index];
        if entry.is_closing() {
            return;
        }
        let user = entry.who.username.escape_ascii().to_string();
        let mac = entry.circuit.mac;
        tracing::info!(session = %entry.seid, user, %mac, %cause, "session ends");
        let ending = Ending {
            cause,
            lasted: entry.account.lasted(now.at),
            unix: now.unix,
        };
        self.note_outcome(now, index, cause);
        let seid = self.sessions[index].seid;
        self.aaa.withdraw(seid);
        self.sessions.close(index, ending);
        self.end_changes(now, index);
        self.note_end(now, index, cause);
        self.persist_ending(index, ending);
        if !self.sessions[index].rules.establishing {
            self.delete(now, index);
        }
    }

    /// Deletes the session on the user plane. It waits for a user plane that is not associated.
    pub(super) fn delete(&mut self, now: Now, index: u32) {
        let under_way = self.entry(index).under_way.held();
        if under_way.is_some_and(|held| held.delete_at.take().is_some()) {
            self.sessions.arm(index);
        }
        let rules = &self.entry(index).rules;
        if rules.up_seid.is_none() && !rules.unsettled {
            self.finish(now, index);
        } else if !self.ask_delete(now, index) {
            let entry = self.entry(index);
            tracing::debug!(session = %entry.seid, "user plane is away; the session is taken down when it is back");
        }
    }

    /// Records the end and releases all resources, after the user plane has deleted the session.
    pub(super) fn finish(&mut self, now: Now, index: u32) {
        if !self.entry(index).is_closing() {
            return;
        }
        self.put_back_done(now, index);
        self.close_account(now, index);
        self.note_counted(now, index);
        self.remember_bindings(index);
        self.take_back(now, index, |_| true);
        let mut entry = self.sessions.remove(index);
        self.note_drained(entry.user_plane);
        self.leave_subscriber(&entry);
        self.released_tunnels.remember(entry.teid);
        let ids = self.session_ids.entry(entry.segment).or_default();
        let Access::Pppoe(id) = entry.access;
        let home = Home::of(&entry.circuit.tags, entry.circuit.mac, &entry.tags.line);
        ids.release(id, home, now.at);
        if entry.stored {
            let keys = [session_key(entry.seid), ending_key(entry.seid)];
            self.journal.extend(keys.map(StoreRecord::delete));
        }
        if let Some(under_way) = entry.under_way.held() {
            let UnderWay {
                requests, heirs, ..
            } = std::mem::take(under_way);
            self.answer_disconnects(requests.into_iter());
            self.wake_heirs(now, heirs);
        }
    }
}
