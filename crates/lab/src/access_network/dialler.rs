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
        while !self.waiting.is_empty() && self.has_room(homes) {
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
        if !self.has_room(homes) {
            return;
        }
        let all = self.muted.len() as u32;
        while self.flaps_pace.as_mut().is_some_and(|pace| pace.take(now)) {
            // All that are online are about to leave already: looking at each home would find none.
            if homes.at(State::Online) as usize <= self.going.len() {
                break;
            }
            let turns = (0..all).map(|turn| (self.next + turn) % all);
            let is_there = |home: &u32| is_online(homes, *home) && !self.muted[*home as usize];
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
            // A home that has lost its session meanwhile and has another one is not muted any more.
            let is_there = is_online(homes, home) && self.muted[home as usize];
            if is_there && !self.has_room(homes) {
                break;
            }
            self.going.pop_front();
            let Some(flapping) = self.flapping.filter(|_| is_there) else {
                continue;
            };
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

    /// All homes have rebooted and want to dial, unless they were told to leave.
    pub(super) fn all_rebooted(&mut self) {
        self.resting.clear();
        if !self.leaving {
            self.waiting = (0..self.muted.len() as u32).collect();
        }
    }

    /// All homes hang up for good, not faster than they dial and not too many at once.
    pub(super) fn hang_up(&mut self, homes: &Homes) {
        self.forget_plans();
        // Those that are under way come first: they make room, and do not need any.
        let all = 0..self.muted.len() as u32;
        let (online, mut in_turn): (VecDeque<u32>, VecDeque<u32>) =
            all.partition(|&home| is_online(homes, home));
        in_turn.extend(online);
        self.hanging_up = in_turn;
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
            if is_online(homes, home) && !self.has_room(homes) {
                break;
            }
            if !is_offline && self.pace.as_mut().is_some_and(|pace| !pace.take(now)) {
                break;
            }
            self.hanging_up.pop_front();
            homes.hang_up(home, now);
        }
    }

    /// Whether one more home may be under way.
    fn has_room(&self, homes: &Homes) -> bool {
        let under_way =
            homes.as_slice().len() as u32 - homes.at(State::Offline) - homes.at(State::Online);
        under_way < self.dialling.at_once
    }

    /// When there is something to do, at the latest. What waits for room has no time: room is made by a frame or a time-out of a
    /// home that is under way.
    pub(super) fn next_at(&self, homes: &Homes) -> Option<Duration> {
        let has_room = self.has_room(homes);
        let may_dial = has_room && !self.waiting.is_empty();
        let next = self.hanging_up.front();
        let may_hang_up = next.is_some_and(|&home| has_room || !is_online(homes, home));
        let paced = may_dial || may_hang_up;
        let paced = paced.then(|| self.pace.as_ref().map_or(Duration::ZERO, Rate::next_at));
        let going = self.going.front().map(|(at, _)| *at);
        let flaps = self.flaps_pace.as_ref().map(Rate::next_at);
        let soonest = [
            paced,
            self.resting.peek().map(|Reverse((at, _))| *at),
            going.filter(|_| has_room),
            flaps.filter(|_| has_room),
        ];
        soonest.into_iter().flatten().min()
    }
}

fn is_online(homes: &Homes, home: u32) -> bool {
    homes.as_slice()[home as usize].state() == State::Online
}

#[cfg(test)]
mod tests;
