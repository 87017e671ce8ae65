//! Which sequence numbers a peer uses now (TS 29.244 §7.2.2.2: 24 bits, chosen by the sender of the request).
//!
//! A request that somebody recorded and repeats much later has left the cache of answers, so it would be carried out again. Its
//! sequence number tells it from a new one, if it is known which numbers the peer uses now. The numbers of the requests themselves do
//! not tell that: other vendors' peers may have a counter for each session, a restarted peer begins anywhere, and one forged
//! request would shut the real peer out. So only the peer's own word counts, in the answer to a heartbeat of ours
//! ([`wire::pfcp::HeartbeatResponse::next_sequence`]). The numbers of peers that say nothing are not checked.
use core::time::Duration;
use std::collections::VecDeque;
use wire::pfcp::SEQUENCE_MASK;

/// How far ahead of its last word a peer may be: more than two minutes at 30,000 requests a second. The next heartbeat is due after
/// ten seconds.
const AHEAD: u32 = 1 << 22;
/// How far behind its first word in an association a peer may be, beside the requests that were carried out since the association began:
/// those that are under way.
const UNDER_WAY: u32 = 1024;
/// Answers to heartbeats that come sooner after another one say nothing new.
const APART: Duration = Duration::from_secs(1);

/// What a peer said of its next sequence number.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// When it said so, and the number. All but the first are younger than the patience of whoever sends a request.
    said: VecDeque<(Duration, u32)>,
    /// Whether it said so since the association began. Until then its counter may be another one.
    is_current: bool,
    /// Number of its requests that were carried out since the association began, until it said so.
    carried_out: u32,
}

impl Numbering {
    /// The peer says which number it uses next.
    pub fn say(&mut self, now: Duration, patience: Duration, next: u32) {
        let next = next & SEQUENCE_MASK;
        // The counter of a peer that was not restarted goes on.
        let goes_on = !self.said.is_empty() && self.is_ahead(next);
        if !self.is_current && !goes_on {
            let behind = self.carried_out.saturating_add(UNDER_WAY);
            let first = next.wrapping_sub(behind) & SEQUENCE_MASK;
            self.said = [(now, first), (now, next)].into();
        } else if self
            .said
            .back()
            .is_some_and(|(last, _)| *last + APART <= now)
        {
            self.said.push_back((now, next));
        }
        self.is_current = true;
        while let Some((second, _)) = self.said.get(1)
            && *second + patience <= now
            && self.said.len() > 2
        {
            self.said.pop_front();
        }
    }

    /// Whether the peer may still send a request with this number. One that it took before its oldest word here was given up
    /// meanwhile: `patience` is the time after which the peer no longer sends it again.
    pub fn allows(&self, sequence: u32) -> bool {
        !self.is_current || self.is_ahead(sequence)
    }

    /// Whether a number is ahead of the oldest word, and not far ahead of the newest.
    fn is_ahead(&self, sequence: u32) -> bool {
        let (Some((_, oldest)), Some((_, newest))) = (self.said.front(), self.said.back()) else {
            return true;
        };
        let ahead_of_oldest = |number: u32| number.wrapping_sub(*oldest) & SEQUENCE_MASK;
        ahead_of_oldest(sequence) < ahead_of_oldest(*newest).saturating_add(AHEAD)
    }

    /// A request of the peer is carried out.
    pub fn carry_out(&mut self) {
        self.carried_out = self.carried_out.saturating_add(u32::from(!self.is_current));
    }

    /// The association is another one: the peer may have been restarted.
    pub fn begin(&mut self) {
        (self.is_current, self.carried_out) = (false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn heartbeats(numbering: &mut Numbering, from: u32, step: u32, count: u32) {
        for n in 0..count {
            let now = Duration::from_secs(u64::from(n) * 10);
            numbering.say(now, PATIENCE, from.wrapping_add(n.wrapping_mul(step)));
        }
    }

    #[test]
    fn whoever_says_nothing_may_use_any_number() {
        let mut numbering = Numbering::default();
        assert!(numbering.allows(0) && numbering.allows(SEQUENCE_MASK));
        heartbeats(&mut numbering, 5, 1, 3);
        assert!(!numbering.allows(1 << 23));
        numbering.begin();
        assert!(numbering.allows(1 << 23));
        numbering.say(Duration::from_secs(30), PATIENCE, 1 << 23);
        assert!(numbering.allows(1 << 23) && !numbering.allows(25));
    }

    /// What was recorded before the path was lost is old after it, unless the peer was restarted and begins elsewhere.
    #[test]
    fn a_counter_goes_on_over_an_interruption() {
        let mut numbering = Numbering::default();
        heartbeats(&mut numbering, 100, 100, 30);
        numbering.begin();
        (0..50).for_each(|_| numbering.carry_out());
        numbering.say(Duration::from_secs(400), PATIENCE, 4000);
        assert!(numbering.allows(3950) && !numbering.allows(2950));
        let mut first = Numbering::default();
        (0..50).for_each(|_| first.carry_out());
        first.say(Duration::ZERO, PATIENCE, 4000);
        assert!(first.allows(4000 - UNDER_WAY - 50) && !first.allows(4000 - UNDER_WAY - 51));
    }

    /// An idle peer uses a number for each heartbeat of its own, so that yesterday's are behind it.
    #[test]
    fn the_numbers_of_yesterday_are_behind_even_an_idle_peer() {
        let mut numbering = Numbering::default();
        heartbeats(&mut numbering, 1000, 1, 8640);
        let next = 1000 + 8639;
        assert!(numbering.allows(next) && numbering.allows(next - 1));
        assert!(!numbering.allows(1000) && !numbering.allows(next - 10));
        assert!(numbering.said.len() <= 3);
    }

    proptest! {
        /// What the peer took a number for in the last ten seconds, and what it takes one for until the next heartbeats, is allowed,
        /// wherever the counter wraps around.
        #[test]
        fn numbers_in_use_are_allowed(from in 0u32..1 << 24, rate in 1u32..30_000, beats in 1u32..50, share in 0.0..1.0) {
            let mut numbering = Numbering::default();
            let step = rate * 10;
            heartbeats(&mut numbering, from, step, beats);
            let next = from + (beats - 1) * step;
            let late = (f64::from(step.min(UNDER_WAY)) * share) as u32;
            prop_assert!(numbering.allows((next + late) & SEQUENCE_MASK));
            prop_assert!(numbering.allows((next + 3 * step) & SEQUENCE_MASK));
            prop_assert!(numbering.allows(next.wrapping_sub(late) & SEQUENCE_MASK));
        }
    }
}
