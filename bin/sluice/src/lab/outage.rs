//! Which packets may have been lost because a user plane was dead.

use lab::topology::UserPlane;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What was sent so shortly before may have been under way when a user plane died, and what was sent until so long
/// after it was back may not have been counted yet: a busy machine forwards late, and the homes' counters are not new.
const MARGIN: Duration = Duration::from_millis(500);

/// Times in which user planes did not forward, and what was sent to them then.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// Deaths that nobody ordered, in words.
    pub deaths: Vec<String>,
    planes: [Outage; 2],
}

/// See [`Outages`]; counters are those of packets from the homes, and to them.
#[derive(Clone, Debug, Default)]
struct Outage {
    /// What had been sent at each look of the last [`MARGIN`].
    looks: VecDeque<(Instant, [u64; 2])>,
    /// How much of what was sent has been held against an outage, or is too old to be.
    judged: [u64; 2],
    at_risk: [u64; 2],
    /// When it last did not forward.
    last: Option<Instant>,
}

impl Outages {
    /// Looks at a user plane: whether it forwards, and the packets sent to it so far from the homes and to them.
    pub fn note(&mut self, up: UserPlane, forwards: bool, sent: [u64; 2]) {
        let (plane, now) = (&mut self.planes[up as usize], Instant::now());
        plane.looks.push_back((now, sent));
        while let Some(&(at, old)) = plane.looks.front()
            && now - at > MARGIN
        {
            plane.judged = [0, 1].map(|way| plane.judged[way].max(old[way]));
            plane.looks.pop_front();
        }
        if !forwards {
            plane.last = Some(now);
        }
        if plane.last.is_some_and(|last| now - last < MARGIN) {
            for way in [0, 1] {
                plane.at_risk[way] += sent[way].saturating_sub(plane.judged[way]);
            }
            plane.judged = sent;
        }
    }

    /// How many packets from the homes of a user plane, and to them, were sent while it did not forward, or shortly before
    /// or after.
    pub fn at_risk(&self, up: UserPlane) -> [u64; 2] {
        self.planes[up as usize].at_risk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_during_an_outage_or_close_to_it_is_at_risk() {
        let mut outages = Outages::default();
        let up = UserPlane::Two;
        outages.note(up, true, [50, 100]);
        std::thread::sleep(MARGIN * 2);
        outages.note(up, true, [100, 200]);
        assert_eq!(outages.at_risk(up), [0, 0]);
        outages.note(up, false, [110, 220]);
        assert_eq!(outages.at_risk(up), [60, 120]);
        outages.note(up, true, [115, 230]);
        assert_eq!(outages.at_risk(up), [65, 130]);
        assert_eq!(outages.at_risk(UserPlane::One), [0, 0]);
        std::thread::sleep(MARGIN);
        outages.note(up, true, [1000, 2000]);
        assert_eq!(outages.at_risk(up), [65, 130]);
    }
}
