//! Counters that two threads see. A worker alone writes its own (those of injection: the control thread alone); what there
//! is of all workers together, the control thread adds up.
use crate::api::{FragmentCounters, PortCounters};
use crate::drops::DropReason;
use crate::punt::{EachKind, PuntKind, Shown};
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, BorrowedFd};

/// Adds to a counter that has one writer: no locked instruction is needed.
#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// How the control thread is woken up.
pub(crate) struct Wake {
    /// The control thread sleeps on `wakeup`.
    asleep: AtomicBool,
    wakeup: EventFd,
}

impl Wake {
    pub fn new() -> nix::Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Wake {
            asleep: AtomicBool::new(false),
            wakeup: EventFd::from_value_and_flags(0, flags)?,
        })
    }

    /// Readable when a worker has something for the control thread that sleeps.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// The control thread goes to sleep, if nothing waits for it: whether it does. Workers signal what comes from now on.
    pub fn sleep(&self, nothing_waits: impl FnOnce() -> bool) -> bool {
        // The descriptor does not block; that nothing was signalled is no error.
        let _ = self.wakeup.read();
        self.asleep.store(true, Relaxed);
        // Either the worker sees in `rouse` that we sleep, or we see what it has for us: the pair is the fence before that.
        fence(SeqCst);
        let sleeps = nothing_waits();
        if !sleeps {
            self.asleep.store(false, Relaxed);
        }
        sleeps
    }

    /// A worker signals the control thread, if that sleeps and something waits for it. Between what the worker did and this is a
    /// [`pass`](crate::fib::Reader::pass), in which there is a fence: no other is needed.
    #[inline]
    pub fn rouse(&self, something_waits: impl FnOnce() -> bool) {
        if !self.asleep.load(Relaxed) {
            return;
        }
        if something_waits() && self.asleep.swap(false, Relaxed) {
            // Fails only if it would block, and then the control thread is awake.
            let _ = self.wakeup.write(1);
        }
    }
}

/// What a worker and the control thread share: no cache line is another worker's too.
#[repr(align(128))]
pub(crate) struct Shared {
    /// By interface; those of subinterfaces are not used.
    pub ports: Box<[Port]>,
    pub drops: [AtomicU64; DropReason::ALL.len()],
    /// By the kinds' numbers: those that were punted, and those above the kind's rate.
    pub punts: EachKind<AtomicU64>,
    pub policed: EachKind<AtomicU64>,
    /// Packets above the rate of somebody for whose name there was no room.
    pub unnamed: AtomicU64,
    fragmented: AtomicU64,
    fragments: AtomicU64,
    pub injected: AtomicU64,
    /// Commands that the worker has applied.
    pub applied: AtomicU64,
    /// TSC cycles of rounds in which there was something to do.
    pub busy: AtomicU64,
    /// Bursts that ports received.
    pub bursts: AtomicU64,
    /// Packets that were left to other workers, and that they left to this one.
    pub handed_over: AtomicU64,
    pub taken_over: AtomicU64,
}

/// A port's counters. While there is no port in its place nobody writes them.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Port {
    pub rx_packets: AtomicU64,
    pub rx_octets: AtomicU64,
    pub tx_packets: AtomicU64,
    pub tx_octets: AtomicU64,
    pub tx_dropped: AtomicU64,
}

impl Shared {
    pub fn new(interfaces: u16) -> Self {
        Shared {
            ports: (0..interfaces).map(|_| Port::default()).collect(),
            drops: [const { AtomicU64::new(0) }; DropReason::ALL.len()],
            punts: [const { AtomicU64::new(0) }; PuntKind::ALL.len()],
            policed: [const { AtomicU64::new(0) }; PuntKind::ALL.len()],
            unnamed: AtomicU64::new(0),
            fragmented: AtomicU64::new(0),
            fragments: AtomicU64::new(0),
            injected: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            bursts: AtomicU64::new(0),
            handed_over: AtomicU64::new(0),
            taken_over: AtomicU64::new(0),
        }
    }

    #[inline]
    pub fn count_drop(&self, reason: DropReason, n: u64) {
        add(&self.drops[reason as usize], n);
    }

    /// Packets that left the path to the control thread, without notices of dropped ones.
    pub fn punted(&self) -> u64 {
        let packets = PuntKind::ALL.iter().zip(&self.punts);
        let packets = packets.filter(|(class, _)| class.shown == Shown::Packet);
        packets.map(|(_, punts)| punts.load(Relaxed)).sum()
    }

    /// A packet was sent in so many fragments.
    pub fn count_fragments(&self, fragments: u64) {
        add(&self.fragmented, 1);
        add(&self.fragments, fragments);
    }

    pub fn fragments(&self) -> FragmentCounters {
        FragmentCounters {
            packets: self.fragmented.load(Relaxed),
            fragments: self.fragments.load(Relaxed),
        }
    }
}

impl Port {
    /// These counters and those of other workers; what they do not know of is left as it is.
    pub fn added_to(&self, sum: PortCounters) -> PortCounters {
        PortCounters {
            rx_packets: sum.rx_packets + self.rx_packets.load(Relaxed),
            rx_octets: sum.rx_octets + self.rx_octets.load(Relaxed),
            tx_packets: sum.tx_packets + self.tx_packets.load(Relaxed),
            tx_octets: sum.tx_octets + self.tx_octets.load(Relaxed),
            tx_dropped: sum.tx_dropped + self.tx_dropped.load(Relaxed),
            ..sum
        }
    }

    /// For the next port in this place.
    pub fn reset(&self) {
        let Port {
            rx_packets,
            rx_octets,
            tx_packets,
            tx_octets,
            tx_dropped,
        } = self;
        let all = [rx_packets, rx_octets, tx_packets, tx_octets, tx_dropped];
        all.into_iter()
            .for_each(|counter| counter.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fib;

    #[test]
    fn nothing_that_comes_is_slept_over() {
        let rounds = if cfg!(miri) { 10 } else { 500 };
        let mut reader = fib::tests::small().reader();
        for _ in 0..rounds {
            let wake = Wake::new().unwrap();
            let (mut sent, came) = rtrb::RingBuffer::new(1);
            let sleeps;
            (reader, sleeps) = std::thread::scope(|scope| {
                let (sent, wake) = (&mut sent, &wake);
                let worker = scope.spawn(move || {
                    sent.push(()).unwrap();
                    reader.pass();
                    wake.rouse(|| sent.slots() == 0);
                    reader
                });
                let sleeps = wake.sleep(|| came.is_empty());
                (worker.join().unwrap(), sleeps)
            });
            assert!(!came.is_empty());
            let signalled = wake.wakeup.read().is_ok();
            assert!(
                signalled || !sleeps,
                "it sleeps, and nobody says what waits"
            );
        }
    }

    #[test]
    fn a_signal_is_for_one_sleep_and_something_that_waits() {
        let wake = Wake::new().unwrap();
        let signalled = || wake.wakeup.read().is_ok();
        wake.rouse(|| true);
        assert!(!signalled(), "nobody sleeps");
        assert!(!wake.sleep(|| false));
        wake.rouse(|| true);
        assert!(!signalled(), "it did not go to sleep");
        assert!(wake.sleep(|| true));
        wake.rouse(|| false);
        assert!(!signalled(), "nothing waits");
        wake.rouse(|| true);
        assert!(signalled());
        wake.rouse(|| true);
        assert!(!signalled(), "it was told already");
        assert!(wake.sleep(|| true));
        wake.rouse(|| true);
        assert!(wake.sleep(|| true));
        assert!(!signalled(), "what was signalled before is over");
    }
}
