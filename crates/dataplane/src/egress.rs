//! How the packets of a port leave: at once, by another worker, or at the port's rate.
use crate::police::TICK_PARTS;
use dpdk::{Burst, Fifo};
use policy::Rate;

/// A port's way out, as a worker has it.
pub(crate) enum Egress {
    /// By the worker's own queue, at once.
    Direct,
    /// By the queue of this worker.
    By(u16),
    /// By the worker's own queue, at the port's rate.
    Scheduled(Box<Shaper>),
}

impl Egress {
    /// That of a worker without a rate. The first so many have queues; the others send by those, in turns.
    pub fn unscheduled(worker: u16, queues: u16) -> Self {
        match worker < queues {
            true => Egress::Direct,
            false => Egress::By(worker % queues.max(1)),
        }
    }

    /// The rate, if the worker keeps it.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Egress::Scheduled(shaper) => Some(shaper.rate),
            _ => None,
        }
    }
}

/// Packets that wait at most.
const PACKETS: usize = 2048;
/// Packets wait for this long at most, in milliseconds; 16 of Ethernet's size always may.
const LONGEST_WAIT: u64 = 20;
const LEAST_QUEUE: u64 = 16 * 1500;
/// What a frame takes on the wire beside its octets: frame check sequence, preamble, gap (IEEE 802.3).
const WIRE: u64 = 24;
/// After a time without a round so much of it may be made up for, in microseconds: a worker sleeps for less, and wakes up late.
const CATCH_UP: u64 = 200;

/// Lets a port's packets wait until its rate lets them leave.
pub(crate) struct Shaper {
    waiting: Fifo,
    rate: Rate,
    /// Octets that wait at most.
    most: u64,
    /// Time in which an octet leaves.
    per_octet: u64,
    /// Time that may be made up for.
    catch_up: u64,
    /// When (TSC, in parts of ticks) the next packet may leave.
    next: u64,
}

impl Shaper {
    /// `hz` ticks are a second.
    pub fn new(rate: Rate, hz: u64) -> Self {
        Shaper {
            waiting: Fifo::new(PACKETS),
            rate,
            most: (rate.get() * LONGEST_WAIT / 8).max(LEAST_QUEUE),
            per_octet: TICK_PARTS.per_octet(rate, hz),
            catch_up: (hz / 1_000_000 * CATCH_UP) << TICK_PARTS.bits,
            next: 0,
        }
    }

    /// Takes over what waits in another one.
    pub fn continue_with(&mut self, other: Shaper) {
        (self.waiting, self.next) = (other.waiting, other.next);
    }

    /// Takes packets that are to leave; those for which there is no room stay.
    pub fn take(&mut self, packets: &mut Burst) {
        self.waiting.take(packets, self.most);
    }

    /// Moves the packets that may leave now into a burst.
    pub fn release(&mut self, now: u64, burst: &mut Burst) {
        let now = now << TICK_PARTS.bits;
        if self.waiting.is_empty() {
            return;
        }
        self.next = self.next.max(now.saturating_sub(self.catch_up));
        while self.next <= now
            && let Some(octets) = self.waiting.next_len()
            && self.waiting.send(burst)
        {
            self.next += TICK_PARTS.cost(octets as u64 + WIRE, self.per_octet);
        }
    }

    /// Takes back what the port did not take; its time has not come yet.
    pub fn give_back(&mut self, burst: &mut Burst) {
        let octets = burst.octets() + WIRE * burst.len() as u64;
        let cost = TICK_PARTS.cost(octets, self.per_octet);
        self.next = self.next.saturating_sub(cost);
        self.waiting.give_back(burst);
    }

    /// Moves packets into a burst, whatever the rate; false if none waits.
    pub fn empty(&mut self, burst: &mut Burst) -> bool {
        while self.waiting.send(burst) {}
        !burst.is_empty()
    }

    /// When (TSC) the next packet may leave, if one waits.
    pub fn deadline(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| (self.next >> TICK_PARTS.bits) + 1)
    }
}
