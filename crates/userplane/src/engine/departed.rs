//! Sessions that were deleted not long ago.
//!
//! The answer to a deletion carries the session's last counters, and nobody acknowledges an answer. A control plane that died
//! before it had written them down, or lost the path, asks again; it is told the same again.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use wire::pfcp::UsageReport;

use crate::table::Seid;

/// So many are remembered: more than can end until a lost path is noticed.
const MOST: usize = 65_536;

/// What the answer to a session's deletion said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Last {
    pub(super) peer: SocketAddr,
    pub(super) cp_seid: u64,
    pub(super) reports: Vec<UsageReport>,
}

/// The sessions that ended last, and what was said of each.
#[derive(Debug, Default)]
pub(super) struct Departed {
    last: HashMap<Seid, Last>,
    /// The one that ended first in front.
    order: VecDeque<Seid>,
}

impl Departed {
    /// Remembers a session in place of the one that ended first, if there are very many.
    pub(super) fn remember(&mut self, seid: Seid, last: Last) {
        if self.order.len() == MOST
            && let Some(first) = self.order.pop_front()
        {
            self.last.remove(&first);
        }
        self.last.insert(seid, last);
        self.order.push_back(seid);
    }

    /// What a control plane was told of a session.
    pub(super) fn find(&self, seid: Seid, peer: SocketAddr) -> Option<&Last> {
        self.last.get(&seid).filter(|last| last.peer == peer)
    }

    /// A control plane is at another address now.
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
        assert_eq!((departed.last.len(), departed.order.len()), (MOST, MOST));
        let other = "192.0.2.9:8805".parse().unwrap();
        assert_eq!(departed.find(seid(2), other), None);
        departed.move_peer(peer, other);
        assert_eq!(departed.find(seid(2), other).unwrap().cp_seid, 2);
    }
}
