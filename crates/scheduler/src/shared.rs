//! The rate of a port that several workers share. Each worker has a scheduler of its own for its sessions.
//!
//! **The sum is exact.** The port has one time `next` before which nobody may send, as it has with one worker. A worker takes the time since then
//! by a compare-and-swap (a claim), sends within it, and gives the rest back. Packets leave within claims only. So what all send
//! together in a time is at most the rate's octets of that time, the port's burst and one packet, whatever the workers do at once.
//!
//! **The shares are those of one scheduler.** Each worker publishes the virtual times of its packets that wait for the port, by band. A worker's turn has
//! come if no other has packets in a band before, or packets of the same band with an earlier virtual time (start-time fair queueing: Goyal, Vin
//! and Cheng, 1996). So weights, guaranteed rates and strict classes count for the subscribers of all workers, and nobody computes shares.
//!
//! **Nothing is left unused.** A worker that has no packets publishes so, and is not waited for. A worker whose turn has come may be
//! late, as the system runs another thread. The others wait for it only as long as the port makes up for the time, the next ones in the order for
//! less than those behind. The late worker makes up for [`AWAY`] at most, as its virtual time is behind.
//!
//! Packets are not touched by this: a claim is for all that leave in a call. The words are hints but for `next`, nothing else is read because
//! of them, and changes of one word have an order: no ordering stronger than relaxed is needed.
use crate::child::Band;
use crate::node::Node;
use crate::packet::Chain;
use crate::schedule::{Dropped, ROOT};
use crate::subscriber::SubscriberIndex;
use crate::tree::Scheduler;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use policy::Rate;
use policy::pace::{Pace, parts};
use std::sync::Arc;

/// Rate of a port that several workers share, and what they publish.
pub struct SharedRate {
    rate: Rate,
    /// When the port may send, in parts of ticks.
    next: Alone<AtomicU64>,
    /// For each worker and [`Band`] a word: virtual time, and in the last bit whether packets wait. It alone writes it.
    workers: Box<[Alone<[AtomicU64; 2]>]>,
}

/// Something in cache lines of its own; processors fetch two at once.
#[derive(Default)]
#[repr(align(128))]
struct Alone<T>(T);

impl SharedRate {
    /// A rate for so many workers, numbered from 0, in octets of frames with preamble, gap and check sequence.
    pub fn new(rate: Rate, workers: u16) -> Arc<Self> {
        Arc::new(SharedRate {
            rate,
            next: Alone::default(),
            workers: (0..workers).map(|_| Alone::default()).collect(),
        })
    }

    /// The rate of all workers together.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

/// Octets on the wire of a frame that is as large as any. So much of the port's time is kept for the last packet of a claim.
const LARGEST: u32 = 10_240;
/// Octets on the wire of a frame of usual size. The port makes up for its time at least.
const FRAME: u32 = 1_542;
/// Time of so many frames that a worker makes up for at least that did not come when it was its turn.
const FRAMES_AWAY: u64 = 8;
/// Part of a second that a worker makes up for that did not come when it was its turn.
const AWAY: u64 = 100;
/// Virtual time at which a worker begins: a child that comes may be a calendar's length before those that are there.
const BEGIN: u64 = 1 << 32;
/// A port without a claim may not send.
const CLOSED: u64 = u64::MAX;

/// A worker's end of a shared rate.
pub(crate) struct Claimant {
    shared: Arc<SharedRate>,
    worker: usize,
    pace: Pace,
    /// The time that the port makes up for, in parts of ticks.
    slack: u64,
    /// For each band, what the slot of the port's calendar lacks to the virtual time of all workers, modulo 2^64.
    offsets: [u64; 2],
    /// What is published.
    words: [u64; 2],
    /// When it was to look again, and for how long it has not come since it was behind, in parts of ticks.
    due: u64,
    away: u64,
    most_away: u64,
    claim: Option<Claim>,
}

/// Time of the port that a worker may use.
struct Claim {
    /// Where `next` was, or the earliest time that is made up for.
    start: u64,
    /// Where `next` is until the claim is settled.
    until: u64,
    /// When the port may send, for the scheduler that uses the claim.
    next: u64,
}

impl Claimant {
    fn new(shared: Arc<SharedRate>, worker: usize, (hz, slack): (u64, u64), root: &Node) -> Self {
        let pace = Pace::new(Some(shared.rate), hz);
        // a worker that is woken is later than a slow port waits otherwise
        let frame = pace.time(FRAME);
        Claimant {
            pace,
            shared,
            worker,
            slack: slack.max(frame),
            offsets: Band::ALL.map(|band| BEGIN.wrapping_sub(root.turn(band).0)),
            words: [0; 2],
            due: 0,
            away: 0,
            most_away: parts(hz / AWAY).max(FRAMES_AWAY * frame),
            claim: None,
        }
    }

    /// The words of the other workers, each of both bands.
    fn others(&self) -> impl Iterator<Item = [u64; 2]> {
        let all = self.shared.workers.iter().enumerate();
        let others = all.filter(|(worker, _)| *worker != self.worker);
        others.map(|(_, words)| [0, 1].map(|band: usize| words.0[band].load(Relaxed)))
    }

    /// The earliest virtual time at which packets of other workers wait in a band; without any, the latest of other workers.
    fn now(&self, band: Band) -> u64 {
        let (mut first, mut latest) = (None, 0);
        for words in self.others() {
            let (time, waits) = (words[band as usize] >> 1, words[band as usize] & 1 != 0);
            latest = latest.max(time);
            if waits {
                first = Some(first.map_or(time, |first: u64| first.min(time)));
            }
        }
        first.unwrap_or(latest)
    }

    fn time(&self, band: Band, root: &Node) -> u64 {
        let (slot, _) = root.turn(band);
        slot.wrapping_add(self.offsets[band as usize])
    }

    /// How many other workers come before this one, and how many wait at all. `None`: packets that do not wait.
    fn ahead(&self, band: Option<Band>, root: &Node) -> (u64, u64) {
        let time = band.map(|band| self.time(band, root));
        let (mut ahead, mut waiting) = (0, 0);
        for words in self.others() {
            let first = Band::ALL
                .into_iter()
                .find(|band| words[*band as usize] & 1 != 0);
            let Some(first) = first else {
                continue;
            };
            let is_before = |time| words[first as usize] >> 1 < time;
            let is_ahead = band.is_none_or(|band| first < band)
                || band == Some(first) && time.is_some_and(is_before);
            waiting += 1;
            ahead += u64::from(is_ahead);
        }
        (ahead, waiting)
    }

    /// How long the port waits for so many workers that come before: from a half to seven eighths of what it makes up for.
    fn patience(&self, ahead: u64) -> u64 {
        match ahead {
            0 => 0,
            ahead => self.slack / 8 * (3 + ahead.min(4)),
        }
    }

    /// Moves a band on to the virtual time of the others.
    fn catch_up(&mut self, band: Band, root: &Node) {
        let behind = self.now(band).saturating_sub(self.time(band, root));
        let offset = &mut self.offsets[band as usize];
        *offset = offset.wrapping_add(behind);
    }

    /// A band that had no packets has no claim for the time before.
    fn join(&mut self, band: Band, root: &Node) {
        let (_, waits) = root.turn(band);
        if waits && self.words[band as usize] & 1 == 0 {
            self.catch_up(band, root);
        }
    }

    /// Nor has a worker that has not come for too long.
    fn count_away(&mut self, root: &Node, now: u64) {
        let late = now.saturating_sub(self.due);
        if late > self.patience(1) && self.is_waited_for() {
            self.away += late;
        }
        if self.away > self.most_away {
            self.away = 0;
            Band::ALL.iter().for_each(|band| self.catch_up(*band, root));
        }
    }

    /// Claims time of the port for a band of its packets, or for packets that do not wait at all (`None`), if it is this worker's turn. Returns
    /// when the port may send; `None`: not now.
    fn claim(&mut self, band: Option<Band>, root: &Node, now: u64) -> Option<u64> {
        let next = self.shared.next.0.load(Relaxed);
        if next > now {
            return None;
        }
        if let Some(band) = band {
            self.join(band, root);
        }
        let (ahead, waiting) = self.ahead(band, root);
        if ahead > 0 {
            self.away = 0;
        }
        if now - next < self.patience(ahead) || band.is_none() && waiting > 0 {
            return None;
        }
        let start = next.max(now.saturating_sub(self.slack));
        let until = now + self.pace.time(LARGEST);
        (self.shared.next.0)
            .compare_exchange(next, until, Relaxed, Relaxed)
            .ok()?;
        // a turn is short, so that others do not wait for long
        let most = if waiting > 0 {
            self.slack / 4
        } else {
            self.slack
        };
        let next = now - most.min(now - start);
        self.claim = Some(Claim { start, until, next });
        Some(next)
    }

    /// Gives back what the claim was not used for; `next`: when the port may send after what was sent.
    fn settle(&mut self, next: u64) {
        let Some(claim) = self.claim.take() else {
            return;
        };
        let used = claim.start + (next - claim.next);
        // Fails if the time is over and others have claimed: then nothing is left to be given back.
        let _ = (self.shared.next.0).compare_exchange(claim.until, used, Relaxed, Relaxed);
    }

    /// Publishes what waits for the port; not `can_send`: nothing does, or the device takes no more.
    fn publish(&mut self, root: &Node, can_send: bool, now: u64) {
        for band in Band::ALL {
            self.join(band, root);
            let (_, waits) = root.turn(band);
            let word = self.time(band, root) << 1 | u64::from(waits && can_send);
            if self.words[band as usize] != word {
                self.words[band as usize] = word;
                self.shared.workers[self.worker].0[band as usize].store(word, Relaxed);
            }
        }
        self.due = self.shared.next.0.load(Relaxed).max(now);
    }

    /// When to look whether the turn has come, of packets that wait.
    fn look_at(&self, root: &Node, now: u64) -> u64 {
        let next = self.shared.next.0.load(Relaxed);
        match next > now || self.ahead(root.band(), root).0 == 0 {
            true => next,
            false => now + self.slack / 8,
        }
    }

    fn is_waited_for(&self) -> bool {
        self.words.iter().any(|word| word & 1 != 0)
    }
}

impl Drop for Claimant {
    /// Nobody waits for a worker that has gone.
    fn drop(&mut self) {
        for word in &self.shared.workers[self.worker].0 {
            word.store(0, Relaxed);
        }
    }
}

impl<C: Chain> Scheduler<C> {
    /// Gives the port a rate that it shares with other workers, of which this is the one with a number; `None`: no rate. What waits goes on
    /// waiting. Workers may have the new rate one after the other: it has nothing to do with the one before.
    ///
    /// # Panics
    /// If the rate is for fewer workers.
    pub fn share_rate(&mut self, rate: Option<(Arc<SharedRate>, u16)>) {
        let root = &mut self.nodes[ROOT as usize];
        root.pace = Pace::new(rate.as_ref().map(|(shared, _)| shared.rate), self.hz);
        root.next = if rate.is_some() { CLOSED } else { self.now };
        let times = (self.hz, self.port_slack);
        self.share = rate.map(|(shared, worker)| {
            assert!(usize::from(worker) < shared.workers.len());
            Box::new(Claimant::new(shared, worker.into(), times, root))
        });
    }

    /// Begins a burst of packets that are [offered](Scheduler::offer). They have to wait for the port's rate unless this is called before,
    /// and [`Scheduler::close`] after them; without a shared rate both do nothing.
    #[inline]
    pub fn open(&mut self, now: u64) {
        if self.share.is_some() && self.nodes[ROOT as usize].band().is_none() {
            self.claim(None, parts(now));
        }
    }

    /// Ends a burst of packets.
    #[inline]
    pub fn close(&mut self) {
        if self.share.is_some() {
            self.settle();
        }
    }

    /// Whether no packets wait, and no other worker thinks so. Otherwise [`Scheduler::dequeue`] has to be called.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0
            && self
                .share
                .as_ref()
                .is_none_or(|share| !share.is_waited_for())
    }

    /// As [`Scheduler::dequeue`]: packets leave while it is this worker's turn, one band after the other.
    #[inline(never)]
    pub(crate) fn dequeue_shared(
        &mut self,
        now: u64,
        most: usize,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> usize {
        // all whose time has come have to be known before one of them has its turn
        self.expire(now);
        if let Some(share) = &mut self.share {
            share.count_away(&self.nodes[ROOT as usize], now);
        }
        let mut left = 0;
        while left < most
            && let Some(band) = self.nodes[ROOT as usize].band()
            && self.claim(Some(band), now)
        {
            left += self.serve_waiting(band, most - left, now, leave, dropped);
            self.settle();
        }
        // who stands in the calendars may have gone
        let can_send = most > 0 && self.waiting > 0;
        if let Some(share) = &mut self.share {
            share.publish(&self.nodes[ROOT as usize], can_send, now);
        }
        left
    }

    /// Claims time of the port, if it is this worker's turn: the port may send then.
    fn claim(&mut self, band: Option<Band>, now: u64) -> bool {
        let root = &mut self.nodes[ROOT as usize];
        let claimed = (self.share.as_mut()).and_then(|share| share.claim(band, root, now));
        root.next = claimed.unwrap_or(CLOSED);
        claimed.is_some()
    }

    fn settle(&mut self) {
        let root = &mut self.nodes[ROOT as usize];
        if let Some(share) = &mut self.share {
            share.settle(root.next);
        }
        root.next = CLOSED;
    }

    /// When the port may send, of packets that wait.
    #[inline(always)]
    pub(crate) fn port_next(&self) -> u64 {
        let root = &self.nodes[ROOT as usize];
        match &self.share {
            None => root.next,
            Some(share) => share.look_at(root, self.now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{AggregateSettings, PORT};
    use std::thread;

    /// A millionth of a second, at a rate by which an octet takes as long.
    const MICROSECOND: u64 = 1_000;
    const OCTETS: u32 = 1_000;

    /// Threads that look at a clock that all of them move on send as much as one would, and no more.
    #[test]
    fn threads_are_never_above_the_rate_together() {
        let rounds = if cfg!(miri) { 60 } else { 20_000 };
        let (begin, end) = (
            MICROSECOND << 20,
            (MICROSECOND << 20) + rounds * 100 * MICROSECOND,
        );
        let shared = SharedRate::new(Rate::kbps(8_000), 3);
        let clock = AtomicU64::new(begin);
        let sends = |worker| {
            let port = AggregateSettings {
                parent: PORT,
                rate: None,
            };
            let (hz, root) = (1_000_000 * MICROSECOND, Node::new(&port, 1));
            let times = (hz, parts(200 * MICROSECOND));
            let mut share = Claimant::new(shared.clone(), worker, times, &root);
            let mut sent = 0;
            loop {
                let now = clock.fetch_add(100 * MICROSECOND, Relaxed);
                if now >= end {
                    return sent;
                }
                if let Some(mut next) = share.claim(Some(Band::Excess), &root, parts(now)) {
                    while next <= parts(now) {
                        next += share.pace.time(OCTETS);
                        sent += 1;
                    }
                    share.settle(next);
                }
                share.publish(&root, false, parts(now));
            }
        };
        let sent: u64 = thread::scope(|scope| {
            let threads = [0, 1, 2].map(|worker| scope.spawn(move || sends(worker)));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        // what the port makes up for, and the last packet
        let most = ((end - begin) / MICROSECOND + u64::from(FRAME)) / u64::from(OCTETS) + 1;
        assert!(sent <= most && sent >= most / 2, "{sent} of {most}");
    }
}
