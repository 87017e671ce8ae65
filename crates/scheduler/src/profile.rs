//! What many subscribers have in common: classes, and what a packet is charged.
use crate::codel::Delays;
use crate::dual::Coupled;
use crate::subscriber::LINE_CLASSES;
use core::time::Duration;
use policy::pace::Pace;
use policy::{Overhead, Rate};

/// Classes of a subscriber at most: those of a policy, and that of packets in none.
pub const CLASSES: usize = policy::MOST_CLASSES + 1;

// a mask of classes is an octet
const _: () = assert!(CLASSES <= 8);

/// When a class has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Before all classes after it. While others wait as well, the strict ones of a subscriber leave them a ninth of its rate.
    Strict,
    /// Shares with the other weighted classes what the strict ones leave.
    Weighted(u8),
}

/// Settings of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// When it has its turn. A weight of 0 counts as 1.
    pub discipline: Discipline,
    /// The most that it gets. `None`: as much as the subscriber.
    pub rate: Option<Rate>,
    /// Octets that wait at most. A single packet always may.
    pub limit: u32,
    /// A packet that has waited for longer is dropped when its turn comes, as nobody needs it any more. `None`: none is.
    pub longest_wait: Option<Duration>,
    /// What keeps packets from waiting for long.
    pub management: Management,
}

/// Active queue management (RFC 7567): what keeps packets from waiting for long. Packets whose senders understand marks (ECN, RFC 3168) are
/// marked in place of being dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// Nothing: packets are dropped only at the limit.
    TailDrop,
    /// CoDel (RFC 8289).
    CoDel {
        /// Delay that is acceptable as long as it lasts.
        target: Duration,
        /// Time in which senders can react.
        interval: Duration,
    },
    /// Each flow has a queue of its own with CoDel, by turns, and those that have few packets come first (FQ-CoDel, RFC 8290). At the limit the
    /// flow with the most octets loses.
    FqCoDel {
        /// Delay that is acceptable in each flow as long as it lasts.
        target: Duration,
        /// Time in which senders can react.
        interval: Duration,
    },
    /// Two queues, coupled: one of packets that are marked at once (L4S, RFC 9330), which hardly wait, and one of all others, whose senders
    /// get as much each (DualPI2, RFC 9332).
    DualPi2 {
        /// Delay of the packets that are not of L4S.
        target: Duration,
    },
}

impl Default for QueueSettings {
    /// Weight 1, 256 KiB, CoDel with the values that RFC 8289 §4.4 recommends.
    fn default() -> Self {
        QueueSettings {
            discipline: Discipline::Weighted(1),
            rate: None,
            limit: 256 << 10,
            longest_wait: None,
            management: Management::CoDel {
                target: Duration::from_millis(5),
                interval: Duration::from_millis(100),
            },
        }
    }
}

/// Classes of subscribers, in order of their priority, and what their lines take beside the octets of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProfile {
    /// The classes, [`CLASSES`] at most: those behind them are as if they were not there, and those that lack of the first four have the default
    /// settings. Strict ones come first; a strict class behind a weighted one has its turn before that, too.
    pub classes: Vec<QueueSettings>,
    /// What a packet is charged beyond the octets behind the frame's header.
    pub overhead: Overhead,
}

impl Default for QueueProfile {
    /// Four classes with the same weight, and no overhead.
    fn default() -> Self {
        QueueProfile {
            classes: vec![QueueSettings::default(); 4],
            overhead: Overhead::IP,
        }
    }
}

/// A profile as the scheduler needs it.
#[derive(Clone, Copy)]
pub(crate) struct Compiled {
    /// What waits in a class that the profile does not have any more leaves by the default settings.
    pub classes: [Class; CLASSES],
    /// How many classes there are.
    pub len: u8,
    /// The strict classes.
    pub strict: u8,
    /// Those with a rate.
    pub paced: u8,
    pub overhead: Overhead,
}

#[derive(Clone, Copy)]
pub(crate) struct Class {
    pub pace: Pace,
    pub limit: u32,
    /// In units of stamps.
    pub longest_wait: u32,
    /// Virtual time of an octet.
    pub share: u32,
    pub aqm: Aqm,
}

/// [`Management`] with times in the unit of the stamps.
#[derive(Clone, Copy)]
pub(crate) enum Aqm {
    TailDrop,
    CoDel(Delays),
    FqCoDel(Delays),
    DualPi2(Coupled),
}

impl Aqm {
    fn new(management: Management, hz: u64) -> Self {
        let delays = |target, interval| Delays {
            target: stamp(target, hz),
            interval: stamp(interval, hz),
        };
        match management {
            Management::TailDrop => Aqm::TailDrop,
            Management::CoDel { target, interval } => Aqm::CoDel(delays(target, interval)),
            Management::FqCoDel { target, interval } => Aqm::FqCoDel(delays(target, interval)),
            Management::DualPi2 { target } => Aqm::DualPi2(Coupled::new(target, hz)),
        }
    }

    /// Whether it takes queues from the pool.
    pub fn has_sub_queues(self) -> bool {
        matches!(self, Aqm::FqCoDel(_) | Aqm::DualPi2(_))
    }
}

/// Virtual time of an octet of a class with weight 1. A weight of 255 takes 64 of it.
pub(crate) const SHARE: u32 = 1 << 14;

impl Compiled {
    /// Whether there are classes that are not in a subscriber's own line.
    pub fn has_further(&self) -> bool {
        usize::from(self.len) > LINE_CLASSES
    }

    pub fn new(profile: &QueueProfile, hz: u64) -> Self {
        let len = profile.classes.len().min(CLASSES);
        let settings = &profile.classes[..len];
        let mask = |is: fn(&QueueSettings) -> bool| {
            let bits = settings.iter().enumerate();
            bits.map(|(at, class)| u8::from(is(class)) << at).sum()
        };
        let class = |at: usize| settings.get(at).copied().unwrap_or_default();
        Compiled {
            classes: core::array::from_fn(|at| Class::new(&class(at), hz)),
            len: len as u8,
            strict: mask(|class| class.discipline == Discipline::Strict),
            paced: mask(|class| class.rate.is_some()),
            overhead: profile.overhead,
        }
    }
}

impl Class {
    fn new(settings: &QueueSettings, hz: u64) -> Self {
        let weight = match settings.discipline {
            Discipline::Strict => 1,
            Discipline::Weighted(weight) => weight.max(1),
        };
        Class {
            pace: Pace::new(settings.rate, hz),
            limit: settings.limit,
            longest_wait: settings
                .longest_wait
                .map_or(u32::MAX, |wait| stamp(wait, hz)),
            share: SHARE / u32::from(weight),
            aqm: Aqm::new(settings.management, hz),
        }
    }
}

/// Ticks in a unit of a stamp: 2^10, half a microsecond.
pub(crate) const STAMP: u32 = 10;

/// A time in units of stamps.
pub(crate) fn stamp(time: Duration, hz: u64) -> u32 {
    let ticks = time.as_nanos() * u128::from(hz) / 1_000_000_000;
    (ticks >> STAMP).min(u128::from(u32::MAX / 4)) as u32
}
