//! A subscriber, and the queues of its classes.
use crate::child::{Band, Places, Share};
use crate::node::WIRE;
use crate::profile::{CLASSES, Compiled, SHARE};
use core::hint::select_unpredictable;
use policy::Rate;
use policy::pace::Pace;

/// A packet is charged no more octets than this in the virtual times of classes.
const MOST_CHARGE: u32 = 16_383;

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

/// What packets need of a subscriber beside the queue of their class: a cache line, and one of what its classes are chosen by, so that
/// their queues are left alone. CPUs fetch such a pair together.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Subscriber {
    /// When it may send.
    pub next: u64,
    pub pace: Pace,
    /// When it is below its committed rate again.
    pub committed_next: u64,
    pub committed: Pace,
    /// Virtual time of its next packet, among the children of its aggregate.
    pub tag: u64,
    /// Virtual time of the packet of a class that was served last, which wraps around, as those of the classes do.
    pub class_time: u64,
    pub share: Share,
    pub parent: u32,
    pub profile: u16,
    /// Classes whose queues are not empty.
    pub backlog: u8,
    pub places: Places,
    /// Octets of each frame's header, which the rates do not count.
    pub header: u8,
    /// Packets are not queued for it: it is gone, or its number was never given.
    pub is_vacant: bool,
    /// When each class may send, if it has a rate.
    pub class_next: [u64; CLASSES],
    /// Virtual time of the next packet of each class.
    pub class_tag: [u64; CLASSES],
}

const _: () = assert!(size_of::<Subscriber>() == 128);
const _: () = assert!(core::mem::offset_of!(Subscriber, class_next) == 64);

impl Subscriber {
    pub const VACANT: Subscriber = Subscriber {
        next: 0,
        pace: Pace::NONE,
        committed_next: 0,
        committed: Pace::NONE,
        tag: 0,
        class_time: 0,
        share: Share::NONE,
        parent: 0,
        profile: 0,
        backlog: 0,
        places: Places::NOWHERE,
        header: 0,
        is_vacant: true,
        class_next: [0; CLASSES],
        class_tag: [0; CLASSES],
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

    /// Charges a packet to its rates and that of the class. No time before `past` is made up for. Returns whether it was below the committed
    /// rate.
    #[inline(always)]
    pub fn charge_rates(
        &mut self,
        profile: &Compiled,
        class: usize,
        octets: u32,
        [past, now]: [u64; 2],
    ) -> bool {
        let charge = self.charged(profile, octets);
        let next = &mut self.class_next[class];
        *next = (*next).max(past) + profile.classes[class].pace.time(charge);
        let is_committed = self.is_below_committed(now);
        if is_committed {
            self.committed_next = self.committed_next.max(past) + self.committed.time(charge);
        }
        self.next = self.next.max(past) + self.pace.time(charge);
        is_committed
    }

    /// What a frame of so many octets is charged.
    #[inline(always)]
    fn charged(&self, profile: &Compiled, octets: u32) -> u32 {
        let packet = octets.saturating_sub(self.header.into());
        profile.overhead.charged(packet)
    }

    /// Charges it to its share and that of the class.
    #[inline(always)]
    pub fn charge_shares(
        &mut self,
        profile: &Compiled,
        class: usize,
        octets: u32,
        is_committed: bool,
    ) {
        if profile.strict & 1 << class == 0 {
            let charge = self.charged(profile, octets).min(MOST_CHARGE);
            // what it could not have because of its rate is no claim
            self.class_time = self
                .class_time
                .wrapping_add(self.ahead(class).max(0) as u64);
            let time = u64::from(charge * profile.classes[class].share);
            self.class_tag[class] = self.class_time.wrapping_add(time);
        }
        if !is_committed {
            self.tag += self.share.time(octets + WIRE);
        }
    }

    /// How far the next packet of a class is ahead of virtual time.
    #[inline(always)]
    fn ahead(&self, class: usize) -> i64 {
        self.class_tag[class].wrapping_sub(self.class_time) as i64
    }

    /// A class has packets again: it has no claim for the time in which it had none. Whoever was served is ahead by a packet at most; what seems
    /// to be more is of times that have gone round.
    #[inline(always)]
    pub fn resume(&mut self, class: usize) {
        const MOST: i64 = MOST_CHARGE as i64 * SHARE as i64;
        if !(0..=MOST).contains(&self.ahead(class)) {
            self.class_tag[class] = self.class_time;
        }
    }

    /// Is it below its committed rate?
    #[inline(always)]
    pub fn is_below_committed(&self, now: u64) -> bool {
        self.committed.is_limited() && self.committed_next <= now
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
    /// Nothing waits.
    Nothing,
    /// Nothing before its own rate permits it.
    Limited,
    /// Nothing before the rate of a class permits it.
    ClassesLimited,
    /// A packet of this class.
    Class(usize, Band),
}

/// The class whose turn it is: the first strict one, or the weighted one that is the furthest behind.
#[inline(always)]
pub(crate) fn choose(subscriber: &Subscriber, profile: &Compiled, now: u64) -> Choice {
    if subscriber.backlog == 0 {
        return Choice::Nothing;
    }
    if subscriber.next > now {
        return Choice::Limited;
    }
    let ready = subscriber.backlog & !limited(subscriber, profile, now);
    if ready == 0 {
        return Choice::ClassesLimited;
    }
    let strict = ready & profile.strict;
    if strict != 0 {
        return Choice::Class(strict.trailing_zeros() as usize, Band::Guaranteed);
    }
    let band = match subscriber.is_below_committed(now) {
        true => Band::Guaranteed,
        false => Band::Excess,
    };
    let class = match ready & (ready - 1) {
        0 => ready.trailing_zeros() as usize,
        _ => furthest_behind(subscriber, ready),
    };
    Choice::Class(class, band)
}

/// The classes that have packets but have reached their rates.
#[inline(always)]
pub(crate) fn limited(subscriber: &Subscriber, profile: &Compiled, now: u64) -> u8 {
    let limited = |class: &usize| subscriber.class_next[*class] > now;
    let paced = classes(subscriber.backlog & profile.paced);
    paced
        .filter(limited)
        .fold(0, |mask, class| mask | 1 << class)
}

/// The class of those in a mask whose virtual time is the earliest. It is as good as random which one that is, so there is no branch.
#[inline(always)]
fn furthest_behind(subscriber: &Subscriber, mask: u8) -> usize {
    let (mut first, mut earliest) = (0, i64::MAX);
    for class in 0..CLASSES {
        let ahead = subscriber.ahead(class);
        let is_earlier = mask >> class & 1 != 0 && ahead < earliest;
        first = select_unpredictable(is_earlier, class, first);
        earliest = select_unpredictable(is_earlier, ahead, earliest);
    }
    first
}
