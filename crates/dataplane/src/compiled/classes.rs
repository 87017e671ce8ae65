//! Classes of a policy's packets: which one a packet is in, and what the policy does with those in it.
use super::{PolicerSettings, PolicyClass, PolicyRules, Verdict};
use crate::police::{Colour, MeterRates, MeterSettings, Tokens};
use policy::Direction;
use std::hash::{DefaultHasher, Hash, Hasher};

pub use policy::MOST_CLASSES;

// three bits of a verdict name them
const _: () = assert!(MOST_CLASSES == 7);

/// A class of a packet, from 1; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// None.
    pub const NONE: Class = Class(0);

    /// From 1; 0: none.
    #[inline(always)]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Position among the classes. `None`: the packet is in none.
    #[inline(always)]
    pub fn position(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// Policer of the packets of a class: the same for all sessions, each of which has tokens of its own.
#[derive(Clone, Copy, Debug)]
struct ClassPolicer {
    rates: MeterRates,
    settings: PolicerSettings,
}

/// The classes of a policy, compiled.
#[derive(Debug)]
pub(crate) struct Classes {
    /// For each code point the class of packets that no rule puts into one.
    of_dscp: [Class; 64],
    /// For each priority (IEEE 802.1p) the class of those that their code point does not put into one either. `None`: no class has priorities, and nobody
    /// looks for that of a packet.
    of_priority: Option<[Class; 8]>,
    /// Of each direction. To a subscriber, the rates of classes with queues are kept by waiting.
    policers: [[Option<ClassPolicer>; MOST_CLASSES]; 2],
    /// Code points that packets of each class get, and in front of them those without a class.
    marks: [Option<u8>; MOST_CLASSES + 1],
    /// Stands for the names of the classes and their order. What sessions have counted is of classes with these names.
    names: u32,
    /// How many there are.
    len: u8,
}

impl Classes {
    /// `None`: no packet is in a class or gets a mark without a rule.
    pub fn of(policy: &PolicyRules, hz: u64) -> Option<Box<Self>> {
        if policy.classes.is_empty() && policy.mark.is_none() {
            return None;
        }
        let mut classes = Classes {
            of_dscp: [Class::NONE; 64],
            of_priority: None,
            policers: [[None; MOST_CLASSES]; 2],
            marks: [policy.mark; MOST_CLASSES + 1],
            names: names(&policy.classes),
            len: policy.classes.len().min(MOST_CLASSES) as u8,
        };
        for (class, number) in policy.classes.iter().take(MOST_CLASSES).zip(1..) {
            for dscp in (0..64).filter(|dscp| class.dscps >> dscp & 1 == 1) {
                classes.of_dscp[dscp as usize] = Class(number);
            }
            for priority in (0..8).filter(|priority| class.priorities >> priority & 1 == 1) {
                let of_priority = classes.of_priority.get_or_insert([Class::NONE; 8]);
                of_priority[priority as usize] = Class(number);
            }
            let own = class.policer;
            let up = own.or_else(|| policer_of_queue(policy, number.into()));
            for (direction, settings) in [(Direction::Up, up), (Direction::Down, own)] {
                classes.policers[direction as usize][usize::from(number) - 1] =
                    settings.map(|settings| ClassPolicer {
                        rates: MeterRates::new(settings.meter, hz),
                        settings,
                    });
            }
            classes.marks[usize::from(number)] = class.mark.or(policy.mark);
        }
        Some(Box::new(classes))
    }

    /// The class of a packet that comes with a code point, in a frame with a priority.
    #[inline(always)]
    pub fn class(&self, verdict: Verdict, dscp: u8, priority: impl FnOnce() -> u8) -> Class {
        match (verdict.class(), self.of_dscp[usize::from(dscp & 63)]) {
            (Class::NONE, Class::NONE) => match &self.of_priority {
                None => Class::NONE,
                Some(of_priority) => of_priority[usize::from(priority() & 7)],
            },
            (Class::NONE, of_dscp) => of_dscp,
            (of_rule, _) => of_rule,
        }
    }

    /// The code point that packets of a class get if no rule says another one.
    #[inline(always)]
    pub fn mark(&self, Class(class): Class) -> Option<u8> {
        self.marks[usize::from(class) & MOST_CLASSES]
    }

    /// Colour of a packet of so many octets, which comes with a code point, and the code point that it gets for the colour.
    #[inline(always)]
    pub fn colour(
        &self,
        (direction, position): (Direction, usize),
        tokens: &mut Tokens,
        octets: usize,
        dscp: u8,
        now: u64,
    ) -> (Colour, Option<u8>) {
        let policers = &self.policers[direction as usize];
        let Some(Some(ClassPolicer { rates, settings })) = policers.get(position) else {
            return (Colour::Green, None);
        };
        let charged = settings.overhead.charged(octets as u32);
        let colour = rates.colour(tokens, charged, settings.incoming(dscp), now);
        let mark = settings.yellow_mark.filter(|_| colour == Colour::Yellow);
        (colour, mark)
    }

    /// Tokens that a class had under another policy, or another version of this one, as those of this one's policer.
    pub fn adopted(
        &self,
        (direction, position): (Direction, usize),
        tokens: Tokens,
        now: u64,
    ) -> Tokens {
        match &self.policers[direction as usize][position] {
            Some(policer) => policer.rates.adopted(tokens, now),
            None => Tokens::default(),
        }
    }

    /// The policers of the classes that have one in a direction, each with the position of the class.
    pub fn meters(&self, direction: Direction) -> impl Iterator<Item = (usize, MeterSettings)> {
        let policers = self.policers[direction as usize].iter().enumerate();
        policers
            .filter_map(|(position, policer)| Some((position, policer.as_ref()?.settings.meter)))
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Stands for the names of the classes and their order.
    #[inline(always)]
    pub fn names(&self) -> u32 {
        self.names
    }
}

/// The rate of a class's queue as a policer, for what a subscriber sends: nothing of that waits.
fn policer_of_queue(policy: &PolicyRules, number: usize) -> Option<PolicerSettings> {
    let profile = &policy.queues.as_ref()?.profile;
    Some(PolicerSettings {
        meter: MeterSettings::of_rate(profile.classes.get(number)?.rate?),
        overhead: profile.overhead,
        is_colour_aware: false,
        yellow_mark: None,
    })
}

fn names(classes: &[PolicyClass]) -> u32 {
    let mut hasher = DefaultHasher::new();
    let names = classes.iter().map(|class| &class.name);
    names.for_each(|name| name.hash(&mut hasher));
    hasher.finish() as u32
}

/// The class that a rule puts its packets into.
pub(super) fn class_of(rule: &acl::Rule, classes: &[PolicyClass]) -> Class {
    let name = rule.class();
    let position = classes.iter().position(|class| Some(&*class.name) == name);
    let position = position.filter(|position| *position < MOST_CLASSES);
    Class(position.map_or(0, |position| position as u8 + 1))
}

impl Verdict {
    /// Where the three bits of the class are.
    const CLASS: u32 = 4;

    /// The verdict for packets that are in a class.
    pub(super) fn in_class(self, Class(class): Class) -> Self {
        Verdict(self.0 | u16::from(class) << Verdict::CLASS)
    }

    /// The class into which the rule puts the packet.
    #[inline(always)]
    fn class(self) -> Class {
        Class((self.0 >> Verdict::CLASS) as u8 & MOST_CLASSES as u8)
    }
}
