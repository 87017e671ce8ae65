//! Many homes in one loop.

use crate::home::{Home, HomeConfig, Output, Received};
use crate::progress::State;
use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use wire::eth::{Frame, MacAddr};

/// What tells the homes on a wire apart: MAC address, S-VLAN and C-VLAN.
type Line = (MacAddr, (Option<u16>, Option<u16>));

/// A street of homes behind one wire: frames go to whom they are for, one structure holds all deadlines.
///
/// ```
/// use core::time::Duration;
/// use cpe::{HomeConfig, Homes, Output};
///
/// let config = |n| HomeConfig::new([2, 0, 0, 0, 0, n].into(), 100, n.into(), format!("home{n}"), "secret");
/// let mut homes = Homes::new((1..=3).map(config), 42);
/// homes.dial(1, Duration::ZERO);
/// let Some((1, Output::Frame(padi))) = homes.poll_output() else { panic!() };
/// assert_eq!(padi[..6], [0xff; 6]);
/// assert_eq!(homes.poll_at(), Some(Duration::from_secs(3))); // when the PADI is repeated
/// ```
#[derive(Debug)]
pub struct Homes {
    homes: Vec<Home>,
    lines: HashMap<Line, u32>,
    /// A deadline for each home that has one, perhaps one that has moved to later since.
    deadlines: BinaryHeap<Reverse<(Duration, u32)>>,
    /// The earliest entry of a home in `deadlines`.
    armed: Vec<Option<Duration>>,
    /// The state of each home after its last event, and how many homes are in each state.
    states: Vec<State>,
    counts: [u32; State::ALL.len()],
    outputs: VecDeque<(u32, Output)>,
}

impl Homes {
    /// Homes numbered from 0 in the order of `configs`; the same seed dials the same way.
    pub fn new(configs: impl IntoIterator<Item = HomeConfig>, seed: u64) -> Self {
        let with_seed = |(n, config)| Home::new(config, seed.wrapping_add((n as u64) << 32));
        let homes: Vec<Home> = configs.into_iter().enumerate().map(with_seed).collect();
        let line = |home: &Home| (home.config().mac, home.config().tags.vids());
        let mut counts = [0; State::ALL.len()];
        counts[State::Offline as usize] = homes.len() as u32;
        Homes {
            states: vec![State::Offline; homes.len()],
            counts,
            lines: homes
                .iter()
                .zip(0..)
                .map(|(home, n)| (line(home), n))
                .collect(),
            deadlines: BinaryHeap::new(),
            armed: vec![None; homes.len()],
            outputs: VecDeque::new(),
            homes,
        }
    }

    /// All of them, by number.
    pub fn as_slice(&self) -> &[Home] {
        &self.homes
    }

    /// How many of them are in this state.
    pub fn at(&self, state: State) -> u32 {
        self.counts[state as usize]
    }

    /// Home `number` starts to dial.
    pub fn dial(&mut self, number: u32, now: Duration) {
        self.homes[number as usize].dial(now);
        self.after(number);
    }

    /// Home `number` hangs up.
    pub fn hang_up(&mut self, number: u32, now: Duration) {
        self.homes[number as usize].hang_up(now);
        self.after(number);
    }

    /// Home `number` leaves its session at once, with a PADT alone.
    pub fn leave_at_once(&mut self, number: u32) {
        self.homes[number as usize].leave_at_once();
        self.after(number);
    }

    /// Home `number` loses its power for a moment ([`Home::reboot`]); what it had still to do is not done.
    pub fn reboot(&mut self, number: u32, seed: u64) {
        self.homes[number as usize].reboot(seed);
        self.outputs.retain(|(other, _)| *other != number);
        self.after(number);
    }

    /// Takes a frame off the wire: whose it is, and what it was; `None` if it is no home's.
    pub fn handle_frame<'f>(
        &mut self,
        now: Duration,
        bytes: &'f [u8],
    ) -> Option<(u32, Received<'f>)> {
        let frame = Frame::parse(bytes).ok()?;
        let number = *self
            .lines
            .get(&(frame.header.destination, frame.header.tags.vids()))?;
        let received = self.homes[number as usize].handle(now, &frame);
        self.after(number);
        Some((number, received))
    }

    /// The next thing to do, and which home does it.
    pub fn poll_output(&mut self) -> Option<(u32, Output)> {
        self.outputs.pop_front()
    }

    /// When [`Homes::on_timeout`] is due; now and then a little early.
    pub fn poll_at(&self) -> Option<Duration> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// Does whatever is due at `now`.
    pub fn on_timeout(&mut self, now: Duration) {
        while let Some(&Reverse((at, number))) = self.deadlines.peek() {
            if at > now {
                break;
            }
            self.deadlines.pop();
            let slot = number as usize;
            if self.armed[slot] == Some(at) {
                self.armed[slot] = None;
                self.homes[slot].on_timeout(now);
                self.after(number);
            }
        }
    }

    /// Collects what a home has to do, and sees to its next deadline.
    ///
    /// A deadline that moves to later keeps its entry, which then finds nothing to do: with an entry for each time that
    /// it moves, the heap would grow by one with every packet.
    fn after(&mut self, number: u32) {
        let slot = number as usize;
        while let Some(output) = self.homes[slot].poll_output() {
            self.outputs.push_back((number, output));
        }
        let state = self.homes[slot].state();
        let before = std::mem::replace(&mut self.states[slot], state);
        self.counts[before as usize] -= 1;
        self.counts[state as usize] += 1;
        if let Some(at) = self.homes[slot].poll_at()
            && self.armed[slot].is_none_or(|armed| at < armed)
        {
            self.armed[slot] = Some(at);
            self.deadlines.push(Reverse((at, number)));
        }
    }
}
