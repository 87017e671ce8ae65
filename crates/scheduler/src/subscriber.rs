//! A subscriber, and the queues of its classes.
use crate::child::{Band, Places, Share};
use crate::node::WIRE;
use crate::profile::{CLASSES, Compiled, SHARE};
use policy::Rate;
use policy::pace::Pace;

/// A packet is charged no more octets than this in the virtual times of classes.
const MOST_CHARGE: u32 = 16_383;
/// So they fit into a word with the number of the class and a bit.
const _: () = assert!((MOST_CHARGE as u64 * SHARE as u64) < 1 << 29 && CLASSES == 4);

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

/// What packets need of a subscriber beside the queue of their class: a cache line, and one for rates that few have.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Subscriber {
    /// When it may send.
    pub next: u64,
    pub pace: Pace,
    /// When it is below its committed rate again; [`NEVER`] without one.
    pub committed_next: u64,
    /// Virtual time of its next packet, among the children of its aggregate.
    pub tag: u64,
    /// How far the next packet of each class is ahead of the virtual time of the one that was served last. It has no claim for what the others
    /// were served meanwhile, be it that it had no packets or that it was held by its rate.
    pub ahead: [u32; CLASSES],
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
    /// The committed rate.
    pub committed: Pace,
    /// When each class may send, if it has a rate.
    pub class_next: [u64; CLASSES],
}

/// No time.
pub(crate) const NEVER: u64 = u64::MAX;

const _: () = assert!(size_of::<Subscriber>() == 128);
const _: () = assert!(core::mem::offset_of!(Subscriber, committed) == 64);

impl Subscriber {
    pub const VACANT: Subscriber = Subscriber {
        next: 0,
        pace: Pace::NONE,
        committed_next: NEVER,
        tag: 0,
        ahead: [0; CLASSES],
        share: Share::NONE,
        parent: 0,
        profile: 0,
        backlog: 0,
        places: Places::NOWHERE,
        header: 0,
        is_vacant: true,
        committed: Pace::NONE,
        class_next: [0; CLASSES],
    };

    /// Changes the settings. What waits goes on waiting.
    pub fn set(&mut self, settings: &SubscriberSettings, now: u64, hz: u64) {
        let pace = Pace::new(settings.rate, hz);
        let left = self.next.saturating_sub(now);
        self.next = self.next.min(now) + pace.rescaled(left, self.pace);
        self.pace = pace;
        self.committed = Pace::new(settings.committed, hz);
        self.committed_next = match self.committed.is_limited() {
            true => self.committed_next.min(now),
            false => NEVER,
        };
        self.share = Share::new(settings.weight);
        self.profile = settings.profile.0;
        self.header = settings.header;
    }

    /// Charges a packet to its rates and that of the class, and to no share. No time before `past` is made up for.
    #[inline(always)]
    pub fn charge_rates(&mut self, profile: &Compiled, class: usize, octets: u32, times: [u64; 2]) {
        self.charge_to_rates(profile, class, self.charged(profile, octets), times);
    }

    /// Charges a packet to its rates and its share, and to those of the class. Returns whether it was below the committed rate.
    #[inline(always)]
    pub fn charge(
        &mut self,
        profile: &Compiled,
        class: usize,
        octets: u32,
        times: [u64; 2],
    ) -> bool {
        let charge = self.charged(profile, octets);
        let is_committed = self.charge_to_rates(profile, class, charge, times);
        if profile.strict & 1 << class == 0 {
            let served = self.ahead[class];
            self.ahead = self.ahead.map(|ahead| ahead.saturating_sub(served));
            self.ahead[class] = charge.min(MOST_CHARGE) * profile.classes[class].share;
        }
        if !is_committed {
            self.tag += self.share.time(octets + WIRE);
        }
        is_committed
    }

    /// What a frame of so many octets is charged.
    #[inline(always)]
    fn charged(&self, profile: &Compiled, octets: u32) -> u32 {
        let packet = octets.saturating_sub(self.header.into());
        profile.overhead.charged(packet)
    }

    #[inline(always)]
    fn charge_to_rates(
        &mut self,
        profile: &Compiled,
        class: usize,
        charge: u32,
        [past, now]: [u64; 2],
    ) -> bool {
        if profile.paced & 1 << class != 0 {
            let next = &mut self.class_next[class];
            *next = (*next).max(past) + profile.classes[class].pace.time(charge);
        }
        let is_committed = self.is_below_committed(now);
        if is_committed {
            self.committed_next = self.committed_next.max(past) + self.committed.time(charge);
        }
        self.next = self.next.max(past) + self.pace.time(charge);
        is_committed
    }

    /// Is it below its committed rate?
    #[inline(always)]
    pub fn is_below_committed(&self, now: u64) -> bool {
        self.committed_next <= now
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
    Choice::Class(furthest_behind(&subscriber.ahead, ready), band)
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
fn furthest_behind(ahead: &[u32; CLASSES], mask: u8) -> usize {
    let mut first = u32::MAX;
    for (class, ahead) in ahead.iter().enumerate() {
        // a class that is not in the mask comes after all that are
        let is_out = u32::from(mask >> class & 1 == 0);
        let place = ahead * CLASSES as u32 + class as u32;
        first = first.min(place + (is_out << 31));
    }
    first as usize % CLASSES
}
