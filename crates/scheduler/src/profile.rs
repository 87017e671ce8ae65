//! What many subscribers have in common: classes, and what a packet is charged.
use crate::codel::Delays;
use core::time::Duration;
use policy::pace::Pace;
use policy::{Overhead, Rate};

/// Classes of a subscriber.
pub const CLASSES: usize = 4;

/// When a class has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Before all classes after it. Give it a rate, or the others may starve.
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
    /// CoDel (RFC 8289): the delay that is acceptable, and the interval. `None`: packets are dropped only at the limit.
    pub delays: Option<(Duration, Duration)>,
}

impl Default for QueueSettings {
    /// Weight 1, 256 KiB, CoDel with the values that RFC 8289 §4.4 recommends.
    fn default() -> Self {
        QueueSettings {
            discipline: Discipline::Weighted(1),
            rate: None,
            limit: 256 << 10,
            delays: Some((Duration::from_millis(5), Duration::from_millis(100))),
        }
    }
}

/// Classes of subscribers, in order of their priority, and what their lines take beside the octets of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueProfile {
    /// The classes. Strict ones come first; a strict class behind a weighted one has its turn before that, too.
    pub classes: [QueueSettings; CLASSES],
    /// What a packet is charged beyond the octets behind the frame's header.
    pub overhead: Overhead,
}

impl Default for QueueProfile {
    /// Four classes with the same weight, and no overhead.
    fn default() -> Self {
        QueueProfile {
            classes: [QueueSettings::default(); CLASSES],
            overhead: Overhead::IP,
        }
    }
}

/// A profile as the scheduler needs it.
#[derive(Clone, Copy)]
pub(crate) struct Compiled {
    pub classes: [Class; CLASSES],
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
    /// Virtual time of an octet.
    pub share: u32,
    pub delays: Option<Delays>,
}

/// Virtual time of an octet of a class with weight 1. A weight of 255 takes 64 of it.
pub(crate) const SHARE: u32 = 1 << 14;

impl Compiled {
    pub fn new(profile: &QueueProfile, hz: u64) -> Self {
        let mask = |is: fn(&QueueSettings) -> bool| {
            let bits = profile.classes.iter().enumerate();
            bits.map(|(at, class)| u8::from(is(class)) << at).sum()
        };
        Compiled {
            classes: profile.classes.map(|class| Class::new(&class, hz)),
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
            share: SHARE / u32::from(weight),
            delays: settings.delays.map(|(target, interval)| Delays {
                target: stamp(target, hz),
                interval: stamp(interval, hz),
            }),
        }
    }
}

/// Ticks in a unit of a stamp: 2^10, half a microsecond.
pub(crate) const STAMP: u32 = 10;

/// A time in units of stamps.
fn stamp(time: Duration, hz: u64) -> u32 {
    let ticks = time.as_nanos() * u128::from(hz) / 1_000_000_000;
    (ticks >> STAMP).min(u128::from(u32::MAX / 4)) as u32
}
