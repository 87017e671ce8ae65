//! Counters that two threads see. A worker alone writes its own (those of injection: the control thread alone); what there
//! is of all workers together, the control thread adds up.
use crate::api::{FragmentCounters, PortCounters, PuntCounters, PuntKind};
use crate::drops::DropReason;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use nix::sys::eventfd::EventFd;

/// Adds to a counter that has one writer: no locked instruction is needed.
#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// How the control thread is woken up.
pub(crate) struct Wake {
    /// The control thread sleeps on `wakeup`.
    pub asleep: AtomicBool,
    pub wakeup: EventFd,
}

/// What a worker and the control thread share.
pub(crate) struct Shared {
    /// By interface; those of subinterfaces are not used.
    pub ports: Box<[Port]>,
    pub drops: [AtomicU64; DropReason::ALL.len()],
    punts: [AtomicU64; 6],
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
            punts: [const { AtomicU64::new(0) }; 6],
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

    pub fn count_punt(&self, kind: PuntKind) {
        let place = match kind {
            PuntKind::Discovery => 0,
            PuntKind::Session(_) => 1,
            PuntKind::Core(_) => 2,
            PuntKind::Local(_) => 3,
            PuntKind::TtlExpired(_) => 4,
            PuntKind::TooBig { .. } => 5,
            // copies: the packets themselves went on
            PuntKind::SampledUp(_) | PuntKind::SampledDown(_) => return,
        };
        add(&self.punts[place], 1);
    }

    pub fn punts(&self) -> PuntCounters {
        let [discovery, session, core, local, ttl_expired, too_big] =
            [0, 1, 2, 3, 4, 5].map(|i: usize| self.punts[i].load(Relaxed));
        PuntCounters {
            discovery,
            session,
            core,
            local,
            ttl_expired,
            too_big,
        }
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
