//! Daemons that are stopped, and go on: time passed them by, and whatever came waits in buffers that have an end.

use super::{Datagram, Event, Who, World};
use crate::plan::{Link, Part};
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many datagrams a daemon takes from a socket before it looks at the others.
const PORTION: usize = 64;

/// The buffer of what comes through tunnels.
const TUNNELS: u8 = 1;

/// What waits for a daemon.
pub(super) enum Waiting {
    Datagram(Link, Datagram),
    /// A home's.
    Frame(usize, Vec<u8>),
    /// For a user plane, from the core.
    Packet(usize, Vec<u8>),
}

/// A daemon that is stopped.
#[derive(Default)]
pub(super) struct Stop {
    /// The faults that stopped it, by number.
    by: BTreeSet<usize>,
    /// What waits, by the buffer that it waits in.
    buffers: BTreeMap<u8, VecDeque<Waiting>>,
    /// What was ready of its own meanwhile, in this order: disks, and the queue between its threads.
    ready: VecDeque<Event>,
}

impl Waiting {
    fn buffer(&self) -> u8 {
        match self {
            Waiting::Datagram(_, Datagram::Pfcp(_)) => 0,
            Waiting::Datagram(_, Datagram::Gtpu(_)) => TUNNELS,
            Waiting::Datagram(_, Datagram::Radius(_) | Datagram::Dynamic(_)) => 2,
            Waiting::Frame(..) | Waiting::Packet(..) => 3,
        }
    }
}

/// What a daemon that goes on may come to first.
enum Turn {
    Buffer(u8),
    Ready,
    Timers,
}

impl World<'_> {
    pub(super) fn is_stopped(&self, part: Part) -> bool {
        self.stops.contains_key(&part)
    }

    /// A fault stops a daemon, or is over.
    pub(super) fn stop(&mut self, number: usize, part: Part, breaks: bool) {
        let lives = match part {
            Part::Control => self.control.is_some(),
            Part::UserPlane(n) => self.planes[n].is_some(),
        };
        if breaks && lives {
            self.stops.entry(part).or_default().by.insert(number);
        } else if let Some(stop) = self.stops.get_mut(&part).filter(|_| !breaks)
            && stop.by.remove(&number)
            && stop.by.is_empty()
        {
            let stop = self.stops.remove(&part).unwrap_or_default();
            self.go_on(part, stop);
        }
    }

    /// Keeps something for a daemon that is stopped, as long as there is room.
    pub(super) fn keep_waiting(&mut self, part: Part, what: Waiting) {
        let Some(stop) = self.stops.get_mut(&part) else {
            return;
        };
        let buffer = stop.buffers.entry(what.buffer()).or_default();
        if buffer.len() < self.plan.buffer {
            buffer.push_back(what);
        } else {
            self.say(|| format!("{part:?}: a buffer is full"));
        }
    }

    /// Keeps what a stopped daemon would do by itself until it goes on; gives it back if it is not stopped.
    pub(super) fn unless_stopped(&mut self, part: Part, event: Event) -> Option<Event> {
        match self.stops.get_mut(&part) {
            Some(stop) => {
                stop.ready.push_back(event);
                None
            }
            None => Some(event),
        }
    }

    /// Everything is there at once. Which of it comes first is left to chance, as the daemons' loops leave it.
    fn go_on(&mut self, part: Part, mut stop: Stop) {
        let mut timers = true;
        loop {
            let buffers = stop.buffers.keys().map(|buffer| Turn::Buffer(*buffer));
            let ready = stop.ready.front().map(|_| Turn::Ready);
            let timers_due = timers.then_some(Turn::Timers);
            let mut turns: Vec<Turn> = buffers.chain(ready).chain(timers_due).collect();
            if turns.is_empty() {
                return;
            }
            match turns.swap_remove(self.random.random_range(0..turns.len())) {
                Turn::Buffer(buffer) => self.take_portion(&mut stop, buffer),
                Turn::Ready => {
                    let event = stop.ready.pop_front();
                    event.into_iter().for_each(|event| self.happen(event));
                }
                Turn::Timers => {
                    timers = false;
                    self.wake(match part {
                        Part::Control => Who::Control,
                        Part::UserPlane(n) => Who::UserPlane(n),
                    });
                }
            }
        }
    }

    fn take_portion(&mut self, stop: &mut Stop, buffer: u8) {
        for _ in 0..PORTION {
            let Some(waiting) = stop.buffers.get_mut(&buffer).and_then(VecDeque::pop_front) else {
                stop.buffers.remove(&buffer);
                return;
            };
            // A user plane sends what is in the tunnels before it obeys a request.
            if matches!(
                waiting,
                Waiting::Datagram(Link::ToUserPlane(_), Datagram::Pfcp(_))
            ) {
                let tunnels = stop.buffers.entry(TUNNELS).or_default();
                let portion: Vec<_> = tunnels.drain(..tunnels.len().min(PORTION)).collect();
                portion.into_iter().for_each(|one| self.take(one));
            }
            self.take(waiting);
        }
    }

    fn take(&mut self, waiting: Waiting) {
        match waiting {
            Waiting::Datagram(link, datagram) => self.arrive(link, datagram),
            Waiting::Frame(home, frame) => self.leave_home(home, &frame),
            Waiting::Packet(plane, packet) => self.leave_core(plane, &packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn two_disks_may_be_ready_while_a_daemon_is_stopped() {
        let second = Duration::from_secs(1);
        let mut world = World::new(1, None);
        world.stop(0, Part::Control, true);
        assert!(!world.disk.is_idle(), "the first batch is under way");
        world.pass(second).unwrap(); // the store's disk is ready, and then the history's
        world.happen(Event::Kept(world.control_life, 0));
        world.stop(0, Part::Control, false);
        world.pass(second).unwrap();
        assert!(world.disk.is_idle());
    }
}
