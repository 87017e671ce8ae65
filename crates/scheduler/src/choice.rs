//! What a subscriber may send: which of its classes is the next one.
use crate::child::Band;
use crate::packet::Chain;
use crate::profile::{CLASSES, Compiled};
use crate::subscriber::{LINE_CLASSES, Subscriber, classes};
use crate::tree::Scheduler;

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

impl<C: Chain> Scheduler<C> {
    /// The class whose turn it is: the first strict one, unless the others would starve, or the weighted one that is the furthest behind.
    #[inline(always)]
    pub(crate) fn choose(&self, subscriber: &Subscriber, profile: &Compiled, now: u64) -> Choice {
        if subscriber.backlog == 0 {
            return Choice::Nothing;
        }
        if subscriber.next > now {
            return Choice::Limited;
        }
        let ready = subscriber.backlog & !self.limited(subscriber, profile, now);
        if ready == 0 {
            return Choice::ClassesLimited;
        }
        let strict = ready & profile.strict;
        if strict != 0 && (subscriber.strict_next <= now || ready == strict) {
            return Choice::Class(strict.trailing_zeros() as usize, Band::Guaranteed);
        }
        let band = match subscriber.is_below_committed(now) {
            true => Band::Guaranteed,
            false => Band::Excess,
        };
        let ready = ready ^ strict;
        let first = match ready >> LINE_CLASSES {
            0 => furthest_behind(&subscriber.ahead, ready),
            _ => self.furthest_behind_of_all(subscriber, ready),
        };
        Choice::Class(first as usize % CLASSES, band)
    }

    /// The classes that have packets but have reached their rates.
    #[inline(always)]
    pub(crate) fn limited(&self, subscriber: &Subscriber, profile: &Compiled, now: u64) -> u8 {
        let paced = classes(subscriber.backlog & profile.paced);
        paced
            .filter(|class| self.class_next(subscriber, *class) > now)
            .fold(0, |mask, class| mask | 1 << class)
    }

    /// When a class may send, if it has a rate and a line.
    #[inline(always)]
    pub(crate) fn class_next(&self, subscriber: &Subscriber, class: usize) -> u64 {
        match subscriber.class_next.get(class) {
            Some(next) => *next,
            None => self.further_next(subscriber, class),
        }
    }

    #[cold]
    fn further_next(&self, subscriber: &Subscriber, class: usize) -> u64 {
        let further = self.subscribers.get(subscriber.other as usize);
        let next = further.and_then(|further| further.class_next.get(class - LINE_CLASSES));
        next.copied().unwrap_or(0)
    }

    /// [`furthest_behind`] where further classes have packets, too.
    #[cold]
    fn furthest_behind_of_all(&self, subscriber: &Subscriber, mask: u8) -> u32 {
        let own = furthest_behind(&subscriber.ahead, mask);
        let further = self.subscribers.get(subscriber.other as usize);
        further.map_or(own, |further| {
            let first = furthest_behind(&further.ahead, mask >> LINE_CLASSES);
            own.min(first + LINE_CLASSES as u32)
        })
    }
}

/// The class of a line whose virtual time is the earliest, of those in a mask, in the last bits of a number by which lines are compared. It is
/// as good as random which one it is, so there is no branch.
#[inline(always)]
fn furthest_behind(ahead: &[u32; LINE_CLASSES], mask: u8) -> u32 {
    let mut first = u32::MAX;
    for (class, ahead) in ahead.iter().enumerate() {
        // a class that is not in the mask comes after all that are
        let is_out = u32::from(mask >> class & 1 == 0);
        let place = ahead * CLASSES as u32 + class as u32;
        first = first.min(place + (is_out << 31));
    }
    first
}
