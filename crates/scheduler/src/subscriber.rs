//! A subscriber, and what is kept of its classes: those of four are in its line, those of others in another line, which few have.
use crate::child::{Places, Share};
use crate::node::WIRE;
use crate::profile::{CLASSES, Compiled, SHARE};
use policy::Rate;
use policy::pace::Pace;

/// A packet is charged no more octets than this in the virtual times of classes.
const MOST_CHARGE: u32 = 16_383;
/// So they fit into a word with the number of the class and a bit.
const _: () = assert!(MOST_CHARGE as u64 * SHARE as u64 * (CLASSES as u64) < 1 << 31);

/// Classes that a line has, and queues that belong to its number.
pub(crate) const LINE_CLASSES: usize = 4;

// two lines are enough
const _: () = assert!(CLASSES <= 2 * LINE_CLASSES);

/// The largest weight.
const MOST_WEIGHT: u16 = 1000;

/// No line.
pub(crate) const NO_LINE: u32 = u32::MAX;

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A subscriber, all of whose classes are in its line.
    Whole,
    /// A subscriber whose further classes are in the line [`Subscriber::other`].
    Extended,
    /// Further classes of the subscriber [`Subscriber::other`]. Nothing but the classes counts in such a line.
    Further,
    /// Nothing: it was never given, or what it stood for is gone.
    Vacant,
}

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

/// What packets need of a subscriber beside the queue of their class: a cache line, and one for what few have. Further classes are in a line
/// of the same kind.
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
    pub ahead: [u32; LINE_CLASSES],
    pub share: Share,
    pub parent: u32,
    pub profile: u16,
    /// Classes whose queues are not empty.
    pub backlog: u8,
    pub places: Places,
    /// Octets of each frame's header, which the rates do not count.
    pub header: u8,
    pub kind: Kind,
    /// Packets that wait, of all its classes.
    pub waiting: u16,
    /// The committed rate.
    pub committed: Pace,
    /// When each class may send, if it has a rate.
    pub class_next: [u64; LINE_CLASSES],
    /// Until when the strict classes have had more than they may while others wait, which come first meanwhile.
    pub strict_next: u64,
    /// The line of further classes; in such a line, the subscriber. [`NO_LINE`] without one.
    pub other: u32,
    /// What it adds to the weights of those above it.
    pub weight: u16,
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
        ahead: [0; LINE_CLASSES],
        share: Share::NONE,
        parent: 0,
        profile: 0,
        backlog: 0,
        places: Places::NOWHERE,
        header: 0,
        kind: Kind::Vacant,
        waiting: 0,
        committed: Pace::NONE,
        class_next: [0; LINE_CLASSES],
        strict_next: 0,
        other: NO_LINE,
        weight: 0,
    };

    /// Whether packets are queued for it.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        matches!(self.kind, Kind::Whole | Kind::Extended)
    }

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
        self.weight = settings.weight.clamp(1, MOST_WEIGHT);
        self.share = Share::new(self.weight.into());
        self.profile = settings.profile.0;
        self.header = settings.header;
    }

    /// Charges a packet to its rates and that of the class, and to no share. No time before `past` is made up for.
    #[inline(always)]
    pub fn charge_rates(
        &mut self,
        further: Option<&mut Subscriber>,
        (profile, class): (&Compiled, usize),
        octets: u32,
        times: [u64; 2],
    ) {
        let charge = self.charged(profile, octets);
        self.charge_to_rates(further, (profile, class), charge, times);
    }

    /// Charges a packet to its rates and its share, and to those of the class. Returns whether it was below the committed rate.
    #[inline(always)]
    pub fn charge(
        &mut self,
        mut further: Option<&mut Subscriber>,
        (profile, class): (&Compiled, usize),
        octets: u32,
        times: [u64; 2],
    ) -> bool {
        let charge = self.charged(profile, octets);
        let line = further.as_deref_mut();
        let is_committed = self.charge_to_rates(line, (profile, class), charge, times);
        if profile.strict & 1 << class == 0 {
            let place = class % LINE_CLASSES;
            let served = self.line_of(&mut further, class).ahead[place];
            self.advance(served);
            if let Some(further) = &mut further {
                further.advance(served);
            }
            let ahead = charge.min(MOST_CHARGE) * profile.classes[class].share;
            self.line_of(&mut further, class).ahead[place] = ahead;
        }
        if !is_committed {
            self.tag += self.share.time(octets + WIRE);
        }
        is_committed
    }

    /// Notes that a strict class has sent a frame of so many octets while others wait: these are to have a ninth of the rate. A time
    /// of `slack` is made up for, and that of two packets.
    pub fn note_strict(&mut self, profile: &Compiled, octets: u32, slack: u64, now: u64) {
        if self.backlog & !profile.strict != 0 {
            let time = self.pace.time(self.charged(profile, octets));
            let past = now.saturating_sub(slack.max(2 * time));
            self.strict_next = self.strict_next.max(past) + time + time / 8;
        }
    }

    /// The line that has a class.
    #[inline(always)]
    fn line_of<'a>(
        &'a mut self,
        further: &'a mut Option<&mut Subscriber>,
        class: usize,
    ) -> &'a mut Subscriber {
        match further {
            Some(further) if class >= LINE_CLASSES => further,
            _ => self,
        }
    }

    /// The classes of a line come closer to the virtual time, which has moved on.
    #[inline(always)]
    fn advance(&mut self, served: u32) {
        self.ahead = self.ahead.map(|ahead| ahead.saturating_sub(served));
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
        mut further: Option<&mut Subscriber>,
        (profile, class): (&Compiled, usize),
        charge: u32,
        [past, now]: [u64; 2],
    ) -> bool {
        if profile.paced & 1 << class != 0 {
            let line = self.line_of(&mut further, class);
            let next = &mut line.class_next[class % LINE_CLASSES];
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

/// A subscriber's line, and that of its further classes, if it `is_extended`.
#[inline(always)]
pub(crate) fn lines(
    all: &mut [Subscriber],
    at: usize,
    is_extended: bool,
) -> (&mut Subscriber, Option<&mut Subscriber>) {
    if !is_extended {
        return (&mut all[at], None);
    }
    let further = all[at].other as usize;
    let (low, high) = all.split_at_mut(at.max(further));
    match at < further {
        true => (&mut low[at], Some(&mut high[0])),
        false => (&mut high[0], Some(&mut low[further])),
    }
}

/// [`Subscriber::charge`] of one that has further classes. It has no access to the scheduler, whose fields would have to be read again behind it.
#[cold]
pub(crate) fn charge_extended(
    all: &mut [Subscriber],
    at: usize,
    of: (&Compiled, usize),
    octets: u32,
    times: [u64; 2],
) -> bool {
    let (subscriber, further) = lines(all, at, true);
    subscriber.charge(further, of, octets, times)
}
