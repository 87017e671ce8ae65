//! Single stages of the packet path, for benchmarks; only with the feature `stages`.
use crate::Worker;
use crate::api::PortIndex;
use crate::drops::DropReason;
use crate::graph::Tables;
use crate::nodes::classify::{self, Access};
use crate::nodes::{Exit, session};
use crate::shard::NO_OWNERS;
use crate::tables::Vlans;
use crate::tables::sessions::Sessions;
use dpdk::{Burst, Exits, Gone, HEAD, Packet, TxBuffers, Window};

/// Classification, session and anti-spoof of frames from access port `port`, with nothing after it. The packets that
/// pass stay in the burst, unchanged, and are counted by their sessions; the others are freed.
pub struct Admission {
    outs: TxBuffers,
    rest: Exits<Exit>,
}

#[inline(always)]
fn look(sessions: &Sessions, vlans: &Vlans, w: &Window, len: usize) -> (Access, u32) {
    let (kind, slot) = match classify::depth(w) {
        0 => classify::access::<0, false>(w, len, (vlans, &NO_OWNERS), sessions),
        1 => classify::access::<1, false>(w, len, (vlans, &NO_OWNERS), sessions),
        _ => classify::access::<2, false>(w, len, (vlans, &NO_OWNERS), sessions),
    };
    dpdk::prefetch_early(sessions.up_lines().at(slot));
    (kind, slot)
}

#[inline(always)]
fn admit<const DEPTH: usize>(t: &mut Tables, slot: u32, mut packet: Packet<'_, Exit>) -> Gone {
    let len = packet.len();
    let (up, whose) = t.sessions.entry(slot);
    match session::admit::<DEPTH>(up, whose, packet.window(), len, &t.fibs, &t.ipv4_options) {
        Ok(_) => packet.send(0, HEAD as u32, len as u32),
        Err(leave) => packet.leave(leave),
    }
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            outs: TxBuffers::new(1),
            rest: Exits::default(),
        }
    }
}

impl Admission {
    /// Passes a burst through; how many packets are left.
    pub fn pass(&mut self, worker: &mut Worker, port: PortIndex, burst: &mut Burst) -> usize {
        let t = &mut worker.tables;
        let vlans = t.sessions.vlans(port);
        let lines = t.sessions.up_lines();
        let seen = burst.look(&mut self.rest, |w, len| look(&t.sessions, vlans, w, len));
        let soon = |(_, slot)| dpdk::prefetch(lines.at(slot));
        seen.act(
            &mut self.outs,
            &mut self.rest,
            soon,
            |(kind, slot), packet| match kind {
                Access::Double => admit::<2>(t, slot, packet),
                Access::Tagged => admit::<1>(t, slot, packet),
                Access::Untagged => admit::<0>(t, slot, packet),
                _ => packet.leave(Exit::default()),
            },
        );
        if !self.rest.is_empty() {
            self.rest.settle(|_, mbuf| Some(mbuf));
        }
        core::mem::swap(self.outs.get(0), burst);
        burst.len()
    }
}

/// What follows the verdict that packets are dropped: they are counted, and their buffers are freed.
pub struct Drops {
    outs: TxBuffers,
    rest: Exits<Exit>,
}

impl Default for Drops {
    fn default() -> Self {
        Drops {
            outs: TxBuffers::new(1),
            rest: Exits::default(),
        }
    }
}

impl Drops {
    /// Gives every packet of a burst the verdict.
    pub fn judge(&mut self, burst: &mut Burst) {
        let seen = burst.look(&mut self.rest, |_, _| ());
        let verdict = Exit::Drop(DropReason::UnknownSession);
        seen.act(
            &mut self.outs,
            &mut self.rest,
            |()| {},
            |(), packet| packet.leave(verdict),
        );
    }

    /// Drops them.
    pub fn settle(&mut self, worker: &mut Worker) {
        let Worker {
            punter,
            tables,
            shared,
            ..
        } = worker;
        let Tables { now, sessions, .. } = tables;
        self.rest
            .settle(|leave, mbuf| punter.settle(leave, mbuf, 0, *now, sessions, shared));
    }
}
