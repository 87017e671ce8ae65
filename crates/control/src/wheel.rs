//! A hierarchical timer wheel: one timer per session, one wheel per shard.
//!
//! It has eight levels of 64 slots, as in Varghese and Lauck's paper. A timer is in the level of the highest bits in which its
//! deadline differs from the elapsed time. It moves down when its slot is reached. Arming and cancelling are O(1), and a timer
//! moves at most seven times. The nodes are indexed by the session's own slot number, so nothing is allocated once the table has
//! grown to its sessions.
//!
//! ```
//! use core::time::Duration;
//! use control::wheel::TimerWheel;
//!
//! let mut wheel = TimerWheel::new(Duration::from_millis(10));
//! wheel.arm(7, Duration::from_millis(25));
//! assert!(wheel.next_at().is_some_and(|at| at <= Duration::from_millis(30)));
//! assert_eq!(wheel.pop(Duration::from_millis(20)), None);
//! while let Some(session) = wheel.pop(Duration::from_millis(30)) {
//!     assert_eq!(session, 7); // the session may arm itself again here
//! }
//! ```

use core::time::Duration;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 8;
const LAST_TICK: u64 = (1 << (BITS * LEVELS as u32)) - 1;
const NIL: u32 = u32::MAX;
const IDLE: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Node {
    deadline: u64,
    previous: u32,
    next: u32,
    /// Its bucket: level × 64 + slot, or `IDLE`.
    bucket: u16,
}

const UNARMED: Node = Node {
    deadline: 0,
    previous: NIL,
    next: NIL,
    bucket: IDLE,
};

/// One timer for each key; keys are small numbers such as slab indices.
pub struct TimerWheel {
    tick: Duration,
    /// Ticks up to this one have been served.
    elapsed: u64,
    nodes: Vec<Node>,
    heads: Box<[u32; LEVELS * SLOTS]>,
    tails: Box<[u32; LEVELS * SLOTS]>,
    occupied: [u64; LEVELS],
    armed: usize,
}

impl TimerWheel {
    /// Creates a wheel that starts at time zero and turns by `tick`. No timer fires early. Each is due at most one tick after its
    /// time, and fires at the next [`pop`](Self::pop).
    ///
    /// # Panics
    /// If `tick` is zero.
    pub fn new(tick: Duration) -> Self {
        assert!(!tick.is_zero(), "a wheel turns by more than nothing");
        Self {
            tick,
            elapsed: 0,
            nodes: Vec::new(),
            heads: Box::new([NIL; LEVELS * SLOTS]),
            tails: Box::new([NIL; LEVELS * SLOTS]),
            occupied: [0; LEVELS],
            armed: 0,
        }
    }

    /// Number of armed timers.
    pub fn len(&self) -> usize {
        self.armed
    }

    /// Whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.armed == 0
    }

    /// Keys of the armed timers.
    pub fn armed(&self) -> impl Iterator<Item = u32> {
        let nodes = (0..).zip(&self.nodes);
        nodes.filter_map(|(key, node)| (node.bucket != IDLE).then_some(key))
    }

    /// Whether the timer of `key` fires at most one tick after `at`, or at the next [`pop`](Self::pop) if `at` has passed.
    pub fn wakes(&self, key: u32, at: Duration) -> bool {
        let node = self.nodes.get(key as usize);
        let due = self.tick_of(at).max(self.elapsed + 1);
        node.is_some_and(|node| node.bucket != IDLE && node.deadline <= due)
    }

    fn tick_of(&self, at: Duration) -> u64 {
        let tick = at.as_nanos().div_ceil(self.tick.as_nanos());
        u64::try_from(tick).unwrap_or(LAST_TICK).min(LAST_TICK)
    }

    /// Sets the timer of `key` and replaces its earlier one. A time in the past fires at the next tick, so that a session that
    /// always fires at once cannot block the others.
    pub fn arm(&mut self, key: u32, at: Duration) {
        if key as usize >= self.nodes.len() {
            self.nodes.resize(key as usize + 1, UNARMED);
        }
        self.unlink(key);
        let due = self.tick_of(at).max(self.elapsed + 1);
        self.nodes[key as usize].deadline = due.min(LAST_TICK);
        self.link(key);
    }

    /// Cancels the timer of `key`, if it has one.
    pub fn cancel(&mut self, key: u32) {
        if (key as usize) < self.nodes.len() {
            self.unlink(key);
        }
    }

    /// Takes the next timer that is due at `now`, ordered by time. The order within a tick is not defined.
    pub fn pop(&mut self, now: Duration) -> Option<u32> {
        let now = u64::try_from(now.as_nanos() / self.tick.as_nanos())
            .map_or(LAST_TICK, |tick| tick.min(LAST_TICK));
        while let Some((bucket, start)) = self.first() {
            if start > now {
                break;
            }
            self.elapsed = self.elapsed.max(start);
            if bucket < SLOTS {
                let key = self.heads[bucket];
                self.unlink(key);
                return Some(key);
            }
            self.move_down(bucket);
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    /// Calls `fire` with the key of every timer that is due at `now`.
    pub fn expire(&mut self, now: Duration, mut fire: impl FnMut(u32)) {
        while let Some(key) = self.pop(now) {
            fire(key);
        }
    }

    /// Time of the next call of [`pop`](Self::pop). It is never after the earliest timer is due, but may be before, when timers
    /// move down a level.
    pub fn next_at(&self) -> Option<Duration> {
        let (_, start) = self.first()?;
        let nanos = self.tick.as_nanos() * u128::from(start);
        Some(Duration::new(
            (nanos / 1_000_000_000) as u64,
            (nanos % 1_000_000_000) as u32,
        ))
    }

    /// First occupied bucket and its first tick. Timers on a level are later than all timers on lower levels, and no slot before
    /// the current one is ever occupied.
    fn first(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let shift = BITS * level as u32;
        let around = self.elapsed >> (shift + BITS) << (shift + BITS);
        Some((level * SLOTS + slot, around | (slot as u64) << shift))
    }

    /// Spreads a bucket over the lower levels. It moves all timers at once: a timer left behind could be due before one that
    /// moved.
    fn move_down(&mut self, bucket: usize) {
        while self.heads[bucket] != NIL {
            let key = self.heads[bucket];
            self.unlink(key);
            self.link(key);
        }
    }

    fn link(&mut self, key: u32) {
        let deadline = self.nodes[key as usize].deadline;
        // A timer that has just moved down may be due now. The lowest bit keeps the logarithm defined.
        let differing = (deadline ^ self.elapsed) | 1;
        let level = (differing.ilog2() / BITS) as usize;
        let slot = (deadline >> (BITS * level as u32)) as usize % SLOTS;
        let bucket = level * SLOTS + slot;
        let last = self.tails[bucket];
        self.nodes[key as usize] = Node {
            deadline,
            previous: last,
            next: NIL,
            bucket: bucket as u16,
        };
        match last {
            NIL => self.heads[bucket] = key,
            last => self.nodes[last as usize].next = key,
        }
        self.tails[bucket] = key;
        self.occupied[level] |= 1 << slot;
        self.armed += 1;
    }

    fn unlink(&mut self, key: u32) {
        let Node {
            previous,
            next,
            bucket,
            ..
        } = self.nodes[key as usize];
        if bucket == IDLE {
            return;
        }
        let bucket = usize::from(bucket);
        match previous {
            NIL => self.heads[bucket] = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NIL => self.tails[bucket] = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        if self.heads[bucket] == NIL {
            self.occupied[bucket / SLOTS] &= !(1 << (bucket % SLOTS));
        }
        self.nodes[key as usize].bucket = IDLE;
        self.armed -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u32, u64),
        Cancel(u32),
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Microseconds over many orders of magnitude, so that every level is used.
        let span = || (0u32..42, 0u64..1000).prop_map(|(shift, low)| (1u64 << shift) + low);
        let step = prop_oneof![
            4 => (0u32..40, span()).prop_map(|(key, after)| Step::Arm(key, after)),
            1 => (0u32..40).prop_map(Step::Cancel),
            3 => span().prop_map(Step::Pass),
        ];
        prop::collection::vec(step, 1..200)
    }

    /// The same wheel, the plain way.
    #[derive(Default)]
    struct Model {
        elapsed: u128,
        by_tick: BTreeMap<u128, BTreeSet<u32>>,
        by_key: BTreeMap<u32, u128>,
    }

    impl Model {
        fn cancel(&mut self, key: u32) {
            if let Some(tick) = self.by_key.remove(&key) {
                let keys = self.by_tick.get_mut(&tick).unwrap();
                keys.remove(&key);
                if keys.is_empty() {
                    self.by_tick.remove(&tick);
                }
            }
        }

        fn arm(&mut self, key: u32, at: Duration) {
            self.cancel(key);
            let tick = at
                .as_nanos()
                .div_ceil(TICK.as_nanos())
                .max(self.elapsed + 1);
            self.by_tick.entry(tick).or_default().insert(key);
            self.by_key.insert(key, tick);
        }

        fn expire(&mut self, now: Duration) -> Vec<(u128, u32)> {
            self.elapsed = self.elapsed.max(now.as_nanos() / TICK.as_nanos());
            let later = self.by_tick.split_off(&(self.elapsed + 1));
            let due = std::mem::replace(&mut self.by_tick, later);
            let fired: Vec<_> = due
                .into_iter()
                .flat_map(|(tick, keys)| keys.into_iter().map(move |key| (tick, key)))
                .collect();
            for (_, key) in &fired {
                self.by_key.remove(key);
            }
            fired
        }
    }

    proptest! {
        #[test]
        fn fires_what_a_sorted_map_would(steps in steps()) {
            let (mut wheel, mut model, mut now) = (TimerWheel::new(TICK), Model::default(), Duration::ZERO);
            for step in steps {
                match step {
                    Step::Arm(key, after) => {
                        let at = now + Duration::from_micros(after);
                        wheel.arm(key, at);
                        model.arm(key, at);
                    }
                    Step::Cancel(key) => {
                        wheel.cancel(key);
                        model.cancel(key);
                    }
                    Step::Pass(time) => {
                        now += Duration::from_micros(time);
                        let due = model.expire(now);
                        let ticks: BTreeMap<u32, u128> = due.iter().map(|&(tick, key)| (key, tick)).collect();
                        let mut fired = Vec::new();
                        wheel.expire(now, |key| fired.push((ticks.get(&key).copied(), key)));
                        prop_assert!(fired.is_sorted_by_key(|(tick, _)| *tick), "out of order: {fired:?}");
                        fired.sort();
                        prop_assert_eq!(fired, due.into_iter().map(|(tick, key)| (Some(tick), key)).collect::<Vec<_>>());
                    }
                }
                prop_assert_eq!(wheel.len(), model.by_key.len());
                let earliest = model.by_tick.keys().next().map(|tick| TICK * *tick as u32);
                prop_assert_eq!(wheel.next_at().is_some(), earliest.is_some());
                prop_assert!(wheel.next_at() <= earliest);
            }
        }
    }

    #[test]
    fn following_next_at_reaches_every_timer_in_few_steps() {
        let mut wheel = TimerWheel::new(TICK);
        wheel.arm(0, Duration::from_secs(40_000_000));
        let mut wakeups = 0;
        loop {
            wakeups += 1;
            let at = wheel.next_at().unwrap();
            if wheel.pop(at).is_some() {
                assert_eq!(at, Duration::from_secs(40_000_000));
                break;
            }
        }
        assert!(wakeups <= LEVELS, "{wakeups} wake-ups");
    }

    #[test]
    fn a_timer_armed_again_in_the_past_does_not_hold_up_the_loop() {
        let mut wheel = TimerWheel::new(TICK);
        wheel.arm(0, Duration::ZERO);
        let mut calls = 0;
        while let Some(key) = wheel.pop(TICK * 5) {
            wheel.arm(key, Duration::ZERO);
            calls += 1;
        }
        assert_eq!(calls, 5);
    }

    #[test]
    fn the_furthest_time_is_taken() {
        let mut wheel = TimerWheel::new(TICK);
        wheel.arm(0, Duration::MAX);
        assert_eq!(wheel.pop(Duration::from_secs(1_000_000_000)), None);
        wheel.cancel(0);
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_at(), None);
    }

    #[test]
    fn a_hundred_thousand_timers_need_no_more_memory_after_the_first_round() {
        let mut wheel = TimerWheel::new(TICK);
        for key in 0..131_072 {
            wheel.arm(key, Duration::from_millis(u64::from(key)));
        }
        let capacity = wheel.nodes.capacity();
        let mut fired = 0;
        let end = Duration::from_secs(300);
        while let Some(key) = wheel.pop(end) {
            fired += 1;
            if fired <= 131_072 {
                wheel.arm(key, end);
            }
        }
        assert_eq!(wheel.nodes.capacity(), capacity);
        assert_eq!(size_of::<Node>(), 24);
    }
}
