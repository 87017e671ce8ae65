//! Single stages of the packet path, for benchmarks; only with the feature `stages`.
use crate::Worker;
use crate::api::PortIndex;
use crate::nodes::classify::{self, Access};
use crate::nodes::{Leave, session};
use dpdk::{Burst, Outs, Rest};

/// Classification, session and anti-spoof of frames from access port `port`, with nothing after it. The packets that
/// pass stay in the burst, unchanged, and are counted by their sessions; the others are freed.
pub struct Admission {
    outs: Outs,
    rest: Rest<Leave>,
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
            |t, w, len| {
                let kind = classify::access(w, len, port, &t.sessions);
                if let Access::Session { slot, .. } = kind {
                    t.sessions.touch_up(slot);
                }
                kind
            },
            |t, kind, packet| match kind {
                Access::Session { slot, depth } => {
                    let len = packet.len();
                    let up = t.sessions.up(slot);
                    session::admit(up, packet.window(), len, depth, &t.fibs).map(|_| 0)
                }
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
