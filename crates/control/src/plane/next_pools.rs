//! Pools that a RADIUS server has changed: an open session keeps its addresses, and the pools count from the subscriber's next
//! connection on (decision 0026).

use super::{ControlPlane, Now};
use crate::addresses::Kind;
use crate::assigned::Assigned;
use crate::counters::Counter;
use crate::entry::Entry;
use crate::fallback::AcceptedBy;
use crate::next_pools::{NextPools, Pools, PoolsKey};
use crate::remembered::encode_key;
use aaa::AccessAccept;
use config::model::SubscriberIdentity;
use std::sync::Arc;

impl ControlPlane {
    /// Key of the changed pools of a session's subscriber.
    fn pools_key(&self, entry: &Entry) -> Arc<[u8]> {
        let access = self.view().access_profile(entry.segment);
        let is_of_line = access.subscriber_identity == SubscriberIdentity::Line;
        encode_key(&PoolsKey {
            servers: access.server_group.as_deref(),
            username: &entry.who.username,
            line: is_of_line.then(|| self.key_line(entry)),
        })
    }

    /// Remembers changed pools of a session's subscriber, in place of those of the same kinds.
    pub(super) fn remember_pools(&mut self, now: Now, index: u32, changed: &Pools) {
        if changed.is_empty() {
            return;
        }
        let key = self.pools_key(&self.sessions[index]);
        let before = self.next_pools.get(&key);
        let pools = before.map_or_else(|| changed.clone(), |next| changed.over(&next.pools));
        self.keep_pools(now, key, pools);
    }

    fn keep_pools(&mut self, now: Now, key: Arc<[u8]>, pools: Pools) {
        if pools.is_empty() {
            return self.next_pools.remove(&key, &mut self.journal);
        }
        let since = now.unix;
        let next = NextPools { since, pools };
        let most = self.configuration.limits.sessions as usize;
        if (self.next_pools).put(key, next, most, &mut self.journal) {
            self.counters.count(Counter::NextPoolsFull);
        }
    }

    /// Forgets the changed pools of a session's subscriber.
    pub(super) fn forget_pools(&mut self, index: u32) {
        let key = self.pools_key(&self.sessions[index]);
        self.next_pools.remove(&key, &mut self.journal);
    }

    /// Forgets changed pools of the kinds of which a newer answer says something. Returns those that are left.
    pub(super) fn settle_pools(&mut self, now: Now, index: u32, accept: &AccessAccept) -> Pools {
        if self.next_pools.is_empty() {
            return Pools::default();
        }
        let key = self.pools_key(&self.sessions[index]);
        let Some(NextPools { pools, .. }) = self.next_pools.get(&key) else {
            return Pools::default();
        };
        // the last answer was repeated, and the change may have come after it
        let is_older = self.sessions[index].accepted_by == AcceptedBy::LastAnswer;
        let pools = match is_older {
            true => pools.clone(),
            false => pools.unless_said(accept),
        };
        let pools = self.pools_of_instance(index, pools);
        self.keep_pools(now, key, pools.clone());
        pools
    }

    /// Pools that the session's network instance has.
    fn pools_of_instance(&mut self, index: u32, pools: Pools) -> Pools {
        let instance = self.sessions[index].instance;
        let has = |kind: Kind, pool: &String| {
            let length = self.addresses.pool_length(instance, pool, kind);
            length.is_some_and(|length| kind.fits(length))
        };
        let left = pools.filtered(has);
        if left != pools {
            self.counters.count(Counter::NextPoolGone);
            let entry = &self.sessions[index];
            let user = entry.who.username.escape_ascii().to_string();
            let pools = pools.texts().collect::<Vec<_>>().join(", ");
            tracing::warn!(session = %entry.seid, user, pools, "a changed pool is not in the subscriber's network instance any more: \
                the subscriber gets addresses as without the change");
        }
        left
    }

    /// The answer to a subscriber that connects, with the changed pools of the kinds of which it says nothing.
    pub(super) fn with_next_pools(
        &mut self,
        now: Now,
        index: u32,
        accept: &AccessAccept,
    ) -> Option<AccessAccept> {
        let pools = self.settle_pools(now, index, accept);
        (!pools.is_empty()).then(|| pools.in_place(accept))
    }

    /// Changed pools of which a session has no address, for operators.
    pub(super) fn pools_to_come(&self, entry: &Entry) -> Vec<String> {
        if self.next_pools.is_empty() {
            return Vec::new();
        }
        let key = self.pools_key(entry);
        let Some(NextPools { pools, .. }) = self.next_pools.get(&key) else {
            return Vec::new();
        };
        let is_to_come = |kind: Kind, pool: &String| {
            let assigned = Assigned {
                fixed: Vec::new(),
                pool: Some(pool),
            };
            !self.keeps(entry.seid.index(), kind, &assigned)
        };
        pools.filtered(is_to_come).texts().collect()
    }
}
