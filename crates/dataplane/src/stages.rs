//! Single stages of the packet path, for benchmarks; only with the feature `stages`.
use crate::Worker;
use crate::api::PortIndex;
use crate::graph::Tables;
use crate::nodes::classify::{self, Access};
use crate::nodes::{Leave, session};
use dpdk::{Burst, Outs, Packet, Rest, Window};

/// Classification, session and anti-spoof of frames from access port `port`, with nothing after it. The packets that
/// pass stay in the burst, unchanged, and are counted by their sessions; the others are freed.
pub struct Admission {
    outs: Outs,
    rest: Rest<Leave>,
}

#[inline(always)]
fn look<const DEPTH: usize>(t: &Tables, w: &Window, len: usize, port: u16) -> Access {
    let kind = classify::access::<DEPTH>(w, len, port, &t.sessions);
    if let Access::Untagged { slot } | Access::Tagged { slot } | Access::Double { slot } = kind {
        t.sessions.touch_up(slot);
    }
    kind
}

#[inline(always)]
fn admit<const DEPTH: usize>(
    t: &mut Tables,
    slot: u32,
    packet: &mut Packet<'_>,
) -> Result<usize, Leave> {
    let len = packet.len();
    let up = t.sessions.up(slot);
    session::admit::<DEPTH>(up, packet.window(), len, &t.fibs).map(|_| 0)
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            outs: Outs::new(1),
            rest: Rest::default(),
        }
    }
}

impl Admission {
    /// Passes a burst through; how many packets are left.
    pub fn pass(
        &mut self,
        worker: &mut Worker,
        PortIndex(port): PortIndex,
        burst: &mut Burst,
    ) -> usize {
        burst.two_pass(
            &mut worker.tables,
            &mut self.outs,
            &mut self.rest,
            |t, w, len| match classify::depth(w) {
                0 => look::<0>(t, w, len, port),
                1 => look::<1>(t, w, len, port),
                _ => look::<2>(t, w, len, port),
            },
            |t, kind, packet| match kind {
                Access::Double { slot } => admit::<2>(t, slot, packet),
                Access::Tagged { slot } => admit::<1>(t, slot, packet),
                Access::Untagged { slot } => admit::<0>(t, slot, packet),
                _ => Err(Leave::default()),
            },
        );
        if !self.rest.is_empty() {
            self.rest.settle(|_, _| ());
        }
        core::mem::swap(self.outs.get(0), burst);
        burst.len()
    }
}
