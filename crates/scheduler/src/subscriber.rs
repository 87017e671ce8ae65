//! A subscriber, and the queues of its classes.
use crate::child::{Band, Places, Share};
use crate::codel::CoDel;
use crate::pace::Pace;
use crate::packet::Chain;
use crate::profile::{CLASSES, Compiled};
use policy::Rate;

/// Number of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberIndex(pub u32);

/// Number of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileIndex(pub u16);

/// Settings of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberSettings {
    /// Its classes, and what its packets are charged.
    pub profile: ProfileIndex,
    /// The most that it gets (PIR), in octets as its profile charges them. `None`: as much as its aggregate.
    pub rate: Option<Rate>,
    /// What it gets before others get more than that (CIR). `None`: nothing.
    pub committed: Option<Rate>,
    /// Its share where its aggregate is short: 1 to 1,000.
    pub weight: u16,
    /// Octets of each frame's header, which the rates do not count.
    pub header: u8,
}

/// What packets need of a subscriber beside the queue of their class: a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Subscriber {
    /// When it may send.
    pub next: u64,
    pub pace: Pace,
    /// When it is below its committed rate again.
    pub committed_next: u64,
    pub committed: Pace,
    /// Virtual time of its next packet, among the children of its aggregate.
    pub tag: u64,
    pub share: Share,
    /// Virtual time of the class that was served last.
    pub class_time: u32,
    pub parent: u32,
    pub profile: u16,
    /// Classes whose queues are not empty.
    pub backlog: u8,
    pub places: Places,
    /// Octets of each frame's header, which the rates do not count.
    pub header: u8,
    /// Packets are not queued for it: it is gone, or its number was never given.
    pub is_vacant: bool,
}

const _: () = assert!(size_of::<Subscriber>() == 64);

impl Subscriber {
    pub const VACANT: Subscriber = Subscriber {
        next: 0,
        pace: Pace::NONE,
        committed_next: 0,
        committed: Pace::NONE,
        tag: 0,
        share: Share::NONE,
        class_time: 0,
        parent: 0,
        profile: 0,
        backlog: 0,
        places: Places::NOWHERE,
        header: 0,
        is_vacant: true,
    };

    /// Changes the settings. What waits goes on waiting.
    pub fn set(&mut self, settings: &SubscriberSettings, now: u64, hz: u64) {
        let pace = Pace::new(settings.rate, hz);
        let left = self.next.saturating_sub(now);
        self.next = self.next.min(now) + pace.rescaled(left, self.pace);
        self.pace = pace;
        self.committed = Pace::new(settings.committed, hz);
        self.committed_next = self.committed_next.min(now);
        self.share = Share::new(settings.weight);
        self.profile = settings.profile.0;
        self.header = settings.header;
    }

    /// Is it below its committed rate?
    #[inline(always)]
    pub fn is_below_committed(&self, now: u64) -> bool {
        self.committed.is_limited() && self.committed_next <= now
    }
}

/// The queue of a class: a cache line.
#[repr(align(64))]
pub(crate) struct Queue<C> {
    pub chain: C,
    /// Octets that wait.
    pub octets: u32,
    /// Virtual time of its next packet, among the classes of its subscriber.
    pub tag: u32,
    /// When it may send.
    pub next: u64,
    pub codel: CoDel,
    /// Octets that have left.
    pub sent: u64,
}

impl<C: Chain> Default for Queue<C> {
    fn default() -> Self {
        Queue {
            chain: C::default(),
            octets: 0,
            tag: 0,
            next: 0,
            codel: CoDel::default(),
            sent: 0,
        }
    }
}

/// The numbers of the classes of a mask.
#[inline(always)]
pub(crate) fn classes(mut mask: u8) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let class = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (class < CLASSES).then_some(class)
    })
}

/// What a subscriber may send now.
pub(crate) enum Choice {
    Nothing,
    /// Not before this time.
    At(u64),
    /// A packet of this class.
    Class(usize, Band),
}

/// The class whose turn it is: the first strict one, or the weighted one that is the furthest behind.
#[inline]
pub(crate) fn choose<C: Chain>(
    subscriber: &Subscriber,
    queues: &[Queue<C>],
    profile: &Compiled,
    now: u64,
) -> Choice {
    if subscriber.backlog == 0 {
        return Choice::Nothing;
    }
    if subscriber.next > now {
        return Choice::At(subscriber.next);
    }
    let band = match subscriber.is_below_committed(now) {
        true => Band::Guaranteed,
        false => Band::Excess,
    };
    // A class without a rate of its own needs no look at its line, if it is the only one.
    let mut earliest = u64::MAX;
    for class in classes(subscriber.backlog & profile.strict) {
        let next = queues[class].next;
        if next <= now {
            return Choice::Class(class, Band::Guaranteed);
        }
        earliest = earliest.min(next);
    }
    let mut best: Option<(usize, u32)> = None;
    for class in classes(subscriber.backlog & !profile.strict) {
        let queue = &queues[class];
        if queue.next > now {
            earliest = earliest.min(queue.next);
        } else if best.is_none_or(|(_, tag)| (queue.tag.wrapping_sub(tag) as i32) < 0) {
            best = Some((class, queue.tag));
        }
    }
    match best {
        Some((class, _)) => Choice::Class(class, band),
        None => Choice::At(earliest),
    }
}
