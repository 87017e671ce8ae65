//! Which home dials, leaves and comes back, and when.

use super::{Dialling, Flapping, Leaving};
use cpe::{Homes, Rate, State};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Before a home leaves, nobody sends to it, and it sends nothing: what is under way then is not lost by its leaving.
const QUIET: Duration = Duration::from_millis(500);

/// Decides over all homes of an access network.
#[derive(Debug)]
pub(super) struct Dialler {
    dialling: Dialling,
    flapping: Option<Flapping>,
    /// How fast homes dial, and at the end hang up.
    pace: Option<Rate>,
    flaps_pace: Option<Rate>,
    /// Those that dial as soon as they may.
    waiting: VecDeque<u32>,
    /// Those that wait before they dial again.
    resting: BinaryHeap<Reverse<(Duration, u32)>>,
    /// Those that are about to leave and to come back.
    going: VecDeque<(Duration, u32)>,
    /// Those that are about to leave for good.
    hanging_up: VecDeque<u32>,
    muted: Vec<bool>,
    /// Where the next home that flaps is looked for.
    next: u32,
    flaps: u64,
    leaving: bool,
}

impl Dialler {
    /// All homes want to dial.
    pub(super) fn new(homes: u32, dialling: Dialling, flapping: Option<Flapping>) -> Self {
        let pace = |per_second| Rate::new(per_second, Duration::ZERO);
        Dialler {
            dialling,
            flapping,
            pace: dialling.rate.map(pace),
            flaps_pace: None,
            waiting: (0..homes).collect(),
            resting: BinaryHeap::new(),
            going: VecDeque::new(),
            hanging_up: VecDeque::new(),
            muted: vec![false; homes as usize],
            next: 0,
            flaps: 0,
            leaving: false,
        }
    }

    /// Whether the home is about to leave, or has not come back yet: nobody sends to it.
    pub(super) fn is_muted(&self, home: u32) -> bool {
        self.muted[home as usize]
    }

    /// How often homes have left in order to come back.
    pub(super) fn flaps(&self) -> u64 {
        self.flaps
    }

    /// From now on homes flap, if they shall at all.
    pub(super) fn start_flapping(&mut self, now: Duration) {
        let pace = |flapping: Flapping| Rate::new(flapping.rate, now);
        self.flaps_pace = self.flapping.map(pace);
    }

    /// No home leaves any more in order to come back.
    pub(super) fn stop_flapping(&mut self) {
        self.flaps_pace = None;
        for (_, home) in self.going.drain(..) {
            self.muted[home as usize] = false;
        }
    }

    /// Does what is due. `seed` is for homes that forget everything.
    pub(super) fn run(&mut self, now: Duration, homes: &mut Homes, seed: u64) {
        while let Some(&Reverse((at, home))) = self.resting.peek()
            && at <= now
        {
            self.resting.pop();
            self.waiting.push_back(home);
        }
        self.mute_some(now, homes);
        self.let_go(now, homes, seed);
        self.dial(now, homes);
        self.hang_up_some(now, homes);
    }

    fn dial(&mut self, now: Duration, homes: &mut Homes) {
        while !self.waiting.is_empty() && under_way(homes) < self.dialling.at_once {
            if self.pace.as_mut().is_some_and(|pace| !pace.take(now)) {
                break;
            }
            if let Some(home) = self.waiting.pop_front() {
                homes.dial(home, now);
            }
        }
    }

    /// Chooses homes to flap, in turn.
    fn mute_some(&mut self, now: Duration, homes: &Homes) {
        let Some(pace) = &mut self.flaps_pace else {
            return;
        };
        let all = self.muted.len() as u32;
        while pace.take(now) {
            let turns = (0..all).map(|turn| (self.next + turn) % all);
            let is_there = |home: &u32| {
                let state = homes.as_slice()[*home as usize].state();
                state == State::Online && !self.muted[*home as usize]
            };
            let Some(home) = turns.into_iter().find(is_there) else {
                break;
            };
            self.next = (home + 1) % all;
            self.muted[home as usize] = true;
            self.going.push_back((now + QUIET, home));
        }
    }

    /// Those whose time has come leave, if they are still there.
    fn let_go(&mut self, now: Duration, homes: &mut Homes, seed: u64) {
        while let Some(&(at, home)) = self.going.front()
            && at <= now
        {
            self.going.pop_front();
            let state = homes.as_slice()[home as usize].state();
            let Some(flapping) = self.flapping else {
                continue;
            };
            // Who has lost its session meanwhile and has another one is not muted any more.
            if state != State::Online || !self.muted[home as usize] {
                continue;
            }
            match flapping.way(self.flaps) {
                Leaving::Terminate => homes.hang_up(home, now),
                Leaving::Padt => homes.leave_at_once(home),
                Leaving::Silent => {
                    homes.reboot(home, seed ^ u64::from(home) << 32 ^ now.as_nanos() as u64);
                    self.rest(now + flapping.off, home);
                }
            }
            self.flaps += 1;
        }
    }

    /// A home has come online.
    pub(super) fn came_online(&mut self, home: u32) {
        self.muted[home as usize] = false;
    }

    /// A session, or the attempt at one, has ended; `planned` if the home has hung up.
    pub(super) fn ended(&mut self, home: u32, planned: bool, now: Duration) {
        let pause = match self.flapping {
            Some(flapping) if planned => flapping.off,
            _ => self.dialling.redial,
        };
        if !self.leaving {
            self.rest(now + pause, home);
        }
    }

    fn rest(&mut self, until: Duration, home: u32) {
        self.resting.push(Reverse((until, home)));
    }

    /// All homes have rebooted and want to dial.
    pub(super) fn all_rebooted(&mut self) {
        self.resting.clear();
        self.waiting = (0..self.muted.len() as u32).collect();
    }

    /// All homes hang up for good, not faster than they dial.
    pub(super) fn hang_up(&mut self) {
        self.forget_plans();
        self.hanging_up = (0..self.muted.len() as u32).collect();
    }

    /// All homes leave for good, now.
    pub(super) fn leave(&mut self, homes: &mut Homes) {
        self.forget_plans();
        self.hanging_up.clear();
        for home in 0..self.muted.len() as u32 {
            homes.leave_at_once(home);
        }
    }

    fn forget_plans(&mut self) {
        self.stop_flapping();
        self.waiting.clear();
        self.resting.clear();
        self.leaving = true;
    }

    fn hang_up_some(&mut self, now: Duration, homes: &mut Homes) {
        while let Some(&home) = self.hanging_up.front() {
            let is_offline = homes.as_slice()[home as usize].state() == State::Offline;
            if !is_offline && self.pace.as_mut().is_some_and(|pace| !pace.take(now)) {
                break;
            }
            self.hanging_up.pop_front();
            homes.hang_up(home, now);
        }
    }

    /// Whether homes are still to be told to hang up.
    pub(super) fn is_hanging_up(&self) -> bool {
        !self.hanging_up.is_empty()
    }

    /// When there is something to do, at the latest.
    pub(super) fn next_at(&self, homes: &Homes) -> Option<Duration> {
        let may_dial = !self.waiting.is_empty() && under_way(homes) < self.dialling.at_once;
        let paced = may_dial || self.is_hanging_up();
        let paced = paced.then(|| self.pace.as_ref().map_or(Duration::ZERO, Rate::next_at));
        let soonest = [
            paced,
            self.resting.peek().map(|Reverse((at, _))| *at),
            self.going.front().map(|(at, _)| *at),
            self.flaps_pace.as_ref().map(Rate::next_at),
        ];
        soonest.into_iter().flatten().min()
    }
}

/// Homes that are neither online nor offline.
fn under_way(homes: &Homes) -> u32 {
    homes.as_slice().len() as u32 - homes.at(State::Offline) - homes.at(State::Online)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpe::{HomeConfig, Output};

    fn homes(count: u32) -> Homes {
        let config =
            |n: u32| HomeConfig::new([2, 0, 0, 0, 0, n as u8].into(), 100, n as u16 + 1, "x", "y");
        Homes::new((0..count).map(config), 1)
    }

    fn dialling(at_once: u32, rate: Option<f64>) -> Dialling {
        Dialling {
            at_once,
            rate,
            redial: Duration::from_secs(1),
        }
    }

    #[test]
    fn homes_dial_at_their_rate_and_not_too_many_at_once() {
        let mut homes = homes(50);
        let mut dialler = Dialler::new(50, dialling(20, Some(100.0)), None);
        let mut dialled = |ms| {
            dialler.run(Duration::from_millis(ms), &mut homes, 0);
            homes.at(State::Discovery)
        };
        assert_eq!(
            [0, 5, 10, 15, 20].map(&mut dialled),
            [1, 1, 2, 2, 3],
            "one in 10 ms"
        );
        assert_eq!((20..1000).map(dialled).max(), Some(20), "at once");
    }

    #[test]
    fn a_home_that_was_refused_dials_again_after_a_while() {
        let mut homes = homes(1);
        let mut dialler = Dialler::new(1, dialling(1, None), None);
        dialler.run(Duration::ZERO, &mut homes, 0);
        homes.hang_up(0, Duration::ZERO);
        let ended = std::iter::from_fn(|| homes.poll_output());
        assert!(
            ended
                .into_iter()
                .any(|(_, o)| matches!(o, Output::Ended(_)))
        );
        dialler.ended(0, false, Duration::ZERO);
        assert_eq!(dialler.next_at(&homes), Some(Duration::from_secs(1)));
        dialler.run(Duration::from_millis(999), &mut homes, 0);
        assert_eq!(homes.at(State::Offline), 1);
        dialler.run(Duration::from_millis(1000), &mut homes, 0);
        assert_eq!(homes.at(State::Discovery), 1);
    }

    #[test]
    fn who_hangs_up_for_good_dials_no_more() {
        let mut homes = homes(30);
        let mut dialler = Dialler::new(30, dialling(100, Some(1000.0)), None);
        for ms in 0..40 {
            dialler.run(Duration::from_millis(ms), &mut homes, 0);
        }
        assert_eq!(homes.at(State::Discovery), 30);
        dialler.hang_up();
        dialler.run(Duration::from_millis(40), &mut homes, 0);
        // the rate makes up for the last 20 ms
        assert!(homes.at(State::Discovery) >= 8, "not all at once");
        for ms in 41..100 {
            dialler.run(Duration::from_millis(ms), &mut homes, 0);
        }
        assert_eq!(homes.at(State::Offline), 30);
        dialler.ended(3, true, Duration::from_millis(100));
        assert_eq!(dialler.next_at(&homes), None);
    }
}
