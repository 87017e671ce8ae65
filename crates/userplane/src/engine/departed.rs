//! Recently deleted sessions.
//!
//! The answer to a deletion carries the session's last counters, and nobody acknowledges an answer. A control plane that lost the
//! path asks again and gets the same answer. A control plane that restarted before it stored the end still has the session, and
//! establishes it again. The new session then reports the usage that the old one had left to report.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use wire::pfcp::UsageReport;

use crate::table::Seid;

/// Maximum number that are remembered: more sessions than can end before a lost path is noticed. Their tables have room for 114,688; one
/// that is more than half full would double as entries come and go.
const MOST: usize = 50_000;

/// Answer to a session's deletion.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Last {
    pub(super) peer: SocketAddr,
    pub(super) cp_seid: u64,
    pub(super) reports: Vec<UsageReport>,
}

/// The last sessions that ended, with the answer about each.
#[derive(Debug, Default)]
pub(super) struct Departed {
    last: HashMap<Seid, Last>,
    /// By the control plane's SEID.
    named: HashMap<u64, Seid>,
    /// Oldest first.
    order: VecDeque<Seid>,
}

impl Departed {
    /// Remembers a session. Above the maximum, the oldest one is forgotten.
    pub(super) fn remember(&mut self, seid: Seid, last: Last) {
        if self.order.len() == MOST
            && let Some(first) = self.order.pop_front()
        {
            self.forget(first);
        }
        self.named.insert(last.cp_seid, seid);
        self.last.insert(seid, last);
        self.order.push_back(seid);
    }

    /// The answer that a control plane got about a session.
    pub(super) fn find(&self, seid: Seid, peer: SocketAddr) -> Option<&Last> {
        self.last.get(&seid).filter(|last| last.peer == peer)
    }

    /// The earlier session with the same SEID of the control plane, and the answer about it.
    pub(super) fn before(&self, cp_seid: u64, peer: SocketAddr) -> Option<(Seid, &Last)> {
        let seid = *self.named.get(&cp_seid)?;
        Some((seid, self.find(seid, peer)?))
    }

    pub(super) fn forget(&mut self, seid: Seid) {
        let Some(last) = self.last.remove(&seid) else {
            return;
        };
        if self.named.get(&last.cp_seid) == Some(&seid) {
            self.named.remove(&last.cp_seid);
        }
    }

    /// Moves sessions to the new address of their control plane.
    pub(super) fn move_peer(&mut self, from: SocketAddr, to: SocketAddr) {
        let of_peer = self.last.values_mut().filter(|last| last.peer == from);
        of_peer.for_each(|last| last.peer = to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_ended_first_is_forgotten_first() {
        let peer: SocketAddr = "192.0.2.1:8805".parse().unwrap();
        let seid = |n: usize| Seid::from_u64(1 << 32 | n as u64);
        let mut departed = Departed::default();
        for n in 0..MOST + 2 {
            let last = Last {
                peer,
                cp_seid: n as u64,
                reports: Vec::new(),
            };
            departed.remember(seid(n), last);
        }
        let known = |n| departed.find(seid(n), peer).map(|last| last.cp_seid);
        assert_eq!([known(0), known(1), known(2)], [None, None, Some(2)]);
        let sizes = (
            departed.last.len(),
            departed.named.len(),
            departed.order.len(),
        );
        assert_eq!(sizes, (MOST, MOST, MOST));
        assert_eq!(departed.before(1, peer), None);
        let last = departed.find(seid(2), peer).unwrap();
        assert_eq!(departed.before(2, peer), Some((seid(2), last)));
        departed.forget(seid(3));
        assert_eq!(
            (departed.find(seid(3), peer), departed.before(3, peer)),
            (None, None)
        );
        let other = "192.0.2.9:8805".parse().unwrap();
        assert_eq!(departed.find(seid(2), other), None);
        departed.move_peer(peer, other);
        assert_eq!(departed.find(seid(2), other).unwrap().cp_seid, 2);
    }
}
