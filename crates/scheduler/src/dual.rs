//! DualPI2 (RFC 9332): a queue for packets of L4S, which are marked as soon as one waits, and one for all others, which are dropped or marked by
//! the square of the probability that couples both, so that a flow here gets as much as a flow there.
use crate::packet::{Chain, Packet};
use crate::profile::{Aqm, stamp};
use crate::queue::{Gone, Head, SHORT, octets};
use crate::sub_queues::{NONE, SubQueues};
use core::time::Duration;

/// Between two changes of the probability (RFC 9332, Appendix A.1: Tupdate).
const UPDATE: Duration = Duration::from_millis(16);
/// Gains of the controller, in Hz, for round trips of at most 100 ms (A.1: alpha, beta).
const ALPHA: f64 = 0.16;
const BETA: f64 = 3.2;
/// What couples the queues (§2.1: k).
const COUPLING: f32 = 2.0;
/// From this probability on, marks do not suffice, and packets are dropped in both (A.1, A.2: p_Cmax, 1 / k^2).
const MOST_MARKED: f32 = 0.25;
/// Packets of L4S that have waited less than this are not marked for it, and those that have waited more always are (A.1: minTh, maxTh).
const RAMP: [Duration; 2] = [Duration::from_micros(800), Duration::from_micros(1200)];
/// Of ten octets, this many are of L4S while both have packets, so that they cannot starve the others (§4.2.2).
const SHARES: [i32; 2] = [1, 9];

/// The settings in the unit of the stamps.
#[derive(Clone, Copy)]
pub(crate) struct Coupled {
    target: u32,
    update: u32,
    alpha: f32,
    beta: f32,
    ramp: [u32; 2],
}

impl Coupled {
    pub fn new(target: Duration, hz: u64) -> Self {
        let update = stamp(UPDATE, hz);
        // probability for a unit of delay
        let gain = |hz: f64| (hz * UPDATE.as_secs_f64() / f64::from(update.max(1))) as f32;
        Coupled {
            target: stamp(target, hz),
            update: update.max(1),
            alpha: gain(ALPHA),
            beta: gain(BETA),
            ramp: RAMP.map(|time| stamp(time, hz)),
        }
    }
}

/// A class with two queues.
#[derive(Clone, Copy)]
pub(crate) struct Dual {
    /// The probability of the controller (p'), when it was found, and the delay then.
    p: f32,
    updated: u32,
    delay: u32,
    /// Queues of packets of L4S and of the others, while there are packets.
    low: u32,
    classic: u32,
}

impl Dual {
    pub fn new(now: u32) -> Self {
        Dual {
            p: 0.0,
            updated: now,
            delay: 0,
            low: NONE,
            classic: NONE,
        }
    }

    /// Packets wait again: in the meantime there was no delay.
    pub fn resume(&mut self, settings: &Coupled, now: u32) {
        let rounds = now.wrapping_sub(self.updated) / settings.update;
        if rounds > 0 {
            let decay = settings.alpha * settings.target as f32 * rounds as f32;
            self.p = (self.p - decay).max(0.0);
            (self.updated, self.delay) = (now, 0);
        }
    }

    /// Adds a packet. Gives it back if there is no queue for it.
    #[inline]
    pub fn push<C: Chain>(
        &mut self,
        packet: C::Packet,
        pool: &mut SubQueues<C>,
    ) -> Result<(), C::Packet> {
        for at in [&mut self.low, &mut self.classic] {
            if *at == NONE {
                match pool.take((0, 0)) {
                    Some(queue) => *at = queue,
                    None => return Err(packet),
                }
            }
        }
        let to = match packet.ecn().is_low_latency() {
            true => self.low,
            false => self.classic,
        };
        pool.get(to).fifo.push(packet);
        Ok(())
    }

    /// Takes the next packet, marked or not (A.1: dualpi2_dequeue). `dropped` gets those that are dropped before it.
    #[inline]
    pub fn pop<C: Chain>(
        &mut self,
        aqm: &Aqm,
        now: u32,
        pool: &mut SubQueues<C>,
        gone: &mut Gone,
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<Head<C::Packet>> {
        if let Aqm::DualPi2(settings) = aqm {
            self.update(settings, now, pool);
        }
        loop {
            let (is_low, mut head) = self.next(now, pool, gone)?;
            let Aqm::DualPi2(settings) = aqm else {
                return Some(head); // the profile has changed since
            };
            let queue = pool.get(if is_low { self.low } else { self.classic });
            // then it is not marked for its waiting (A.1: Th_len)
            let few = queue.fifo.octets <= SHORT;
            let [drops, marks] = match is_low {
                true => self.of_low(settings, head.waited, few),
                false => self.of_classic(&head.packet),
            };
            if is_due(&mut queue.due, drops) {
                gone.drops += 1;
                dropped(head.packet);
                continue;
            }
            if is_due(&mut queue.due, marks) {
                head.packet.mark();
                gone.marks += 1;
            }
            return Some(head);
        }
    }

    /// Probabilities with which a packet of L4S is dropped and marked. Few are those behind it.
    fn of_low(&self, settings: &Coupled, waited: u32, few: bool) -> [f32; 2] {
        let [from, to] = settings.ramp;
        let native = match few {
            true => 0.0,
            false => waited.saturating_sub(from) as f32 / (to - from).max(1) as f32,
        };
        let coupled = COUPLING * self.p;
        let drops = match coupled >= 1.0 {
            true => self.p * self.p,
            false => 0.0,
        };
        [drops, native.max(coupled).min(1.0)]
    }

    /// The same for a packet that is not of L4S.
    fn of_classic(&self, packet: &impl Packet) -> [f32; 2] {
        let p = self.p * self.p;
        match packet.ecn().is_capable() && p <= MOST_MARKED {
            true => [0.0, p],
            false => [p, 0.0],
        }
    }

    /// Changes the probability by the longer of both delays (A.1: dualpi2_update), once for each time that has passed.
    fn update<C: Chain>(&mut self, settings: &Coupled, now: u32, pool: &mut SubQueues<C>) {
        if now.wrapping_sub(self.updated) < settings.update {
            return;
        }
        self.updated = now;
        let delay = pool.get(self.low).delay.max(pool.get(self.classic).delay);
        let error = delay as f32 - settings.target as f32;
        let change = delay as f32 - self.delay as f32;
        let p = self.p + settings.alpha * error + settings.beta * change;
        self.p = p.clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Takes the first packet of one of the queues, and says whether it is that of L4S. Those come first, but for the share of the others.
    fn next<C: Chain>(
        &mut self,
        now: u32,
        pool: &mut SubQueues<C>,
        gone: &mut Gone,
    ) -> Option<(bool, Head<C::Packet>)> {
        let [low, classic] = [self.low, self.classic].map(|at| pool.get(at).fifo.octets > 0);
        let [of_classic, of_low] = SHARES;
        let credit = pool.get(self.classic).credit;
        let is_low = low && (!classic || credit <= 0);
        let queue = pool.get(if is_low { self.low } else { self.classic });
        let head = queue.fifo.pop(now, gone)?;
        // what remains is not late
        queue.delay = if queue.fifo.octets > 0 {
            head.waited
        } else {
            0
        };
        if low && classic {
            let octets = octets(&head.packet) as i32;
            let change = if is_low { of_classic } else { -of_low };
            pool.get(self.classic).credit = credit + change * octets;
        }
        Some((is_low, head))
    }

    /// No packet waits: the queues are given back.
    pub fn end<C: Chain>(&mut self, pool: &mut SubQueues<C>) {
        for at in [&mut self.low, &mut self.classic] {
            if *at != NONE {
                pool.give(core::mem::take(at));
            }
        }
    }

    /// The queue whose turn may be next.
    pub fn first(&self) -> u32 {
        self.low
    }
}

/// Whether something is due that is to happen with a probability: as often as that says, without chance (A.1: recur).
fn is_due(due: &mut f32, probability: f32) -> bool {
    *due += probability;
    let is_due = *due >= 1.0;
    if is_due {
        *due -= 1.0;
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_as_often_as_it_is_probable() {
        for percent in [0, 1, 25, 99, 100] {
            let mut due = 0.0;
            let times = (0..10_000).filter(|_| is_due(&mut due, percent as f32 / 100.0));
            assert!(times.count().abs_diff(percent * 100) <= 1, "{percent}");
        }
    }
}
