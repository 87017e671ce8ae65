//! Which packets may have been lost because a user plane was dead.

use super::topology::UserPlane;
use std::time::{Duration, Instant};

/// A user plane that is back may still be without packets that were sent before: the homes' counters are as old as this.
const AFTER: Duration = Duration::from_millis(500);

/// Times in which user planes did not forward, and what was sent to them then.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// Deaths that nobody ordered, in words.
    pub deaths: Vec<String>,
    planes: [Outage; 2],
}

/// See [`Outages`]; counters are those of packets from the homes, and to them.
#[derive(Clone, Copy, Debug, Default)]
struct Outage {
    sent: [u64; 2],
    at_risk: [u64; 2],
    /// When it last did not forward.
    last: Option<Instant>,
}

impl Outages {
    /// Looks at a user plane: whether it forwards, and the packets sent to it so far from the homes and to them.
    pub fn note(&mut self, up: UserPlane, forwards: bool, sent: [u64; 2]) {
        let plane = &mut self.planes[up as usize];
        if !forwards {
            plane.last = Some(Instant::now());
        }
        if plane.last.is_some_and(|last| last.elapsed() < AFTER) {
            for ((at_risk, sent), before) in plane.at_risk.iter_mut().zip(sent).zip(plane.sent) {
                *at_risk += sent.saturating_sub(before);
            }
        }
        plane.sent = sent;
    }

    /// How many packets from the homes of a user plane, and to them, were sent while it did not forward.
    pub fn at_risk(&self, up: UserPlane) -> [u64; 2] {
        self.planes[up as usize].at_risk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_while_it_did_not_forward_is_at_risk() {
        let mut outages = Outages::default();
        let up = UserPlane::Two;
        outages.note(up, true, [100, 200]);
        assert_eq!(outages.at_risk(up), [0, 0]);
        outages.note(up, false, [110, 220]);
        outages.note(up, true, [115, 230]);
        assert_eq!(outages.at_risk(up), [15, 30]);
        assert_eq!(outages.at_risk(UserPlane::One), [0, 0]);
        std::thread::sleep(AFTER);
        outages.note(up, true, [1000, 2000]);
        assert_eq!(outages.at_risk(up), [15, 30]);
    }
}
