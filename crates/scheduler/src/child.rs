//! What stands under a node of the tree, and where it waits.
use crate::subscriber::LINE_CLASSES;

/// A subscriber or a node, as calendars hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    Subscriber(u32),
    Node(u32),
}

/// Who waits on the wheel, and for what. None of them comes earlier than it was when the timer was set, unless settings change: whoever waits
/// sends nothing in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A node may send.
    Node(u32),
    /// A subscriber may send.
    Subscriber(u32),
    /// A subscriber is below its committed rate again.
    Committed(u32),
    /// A class of a subscriber may send: which one of a line of classes.
    Class(u32, usize),
}

/// Marks a node.
const NODE: u32 = 1 << 31;
/// Where a timer of a subscriber says which one it is. There are fewer than 2^28 subscribers.
const TIMER: u32 = 28;

impl Timer {
    #[inline(always)]
    pub fn id(self) -> u32 {
        match self {
            Timer::Node(at) => at | NODE,
            Timer::Subscriber(at) => at,
            Timer::Committed(at) => at | 1 << TIMER,
            Timer::Class(at, class) => at | (2 + class as u32) << TIMER,
        }
    }

    #[inline(always)]
    pub fn of(id: u32) -> Self {
        let at = id & ((1 << TIMER) - 1);
        match id >> TIMER {
            0 => Timer::Subscriber(at),
            1 => Timer::Committed(at),
            timer if timer < 8 => Timer::Class(at, timer as usize - 2),
            _ => Timer::Node(id & !NODE),
        }
    }

    /// Its bit among the places.
    #[inline(always)]
    fn place(self) -> u8 {
        match self {
            Timer::Node(_) | Timer::Subscriber(_) => 1 << 2,
            Timer::Committed(_) => 1 << 3,
            Timer::Class(_, class) => 1 << (4 + class),
        }
    }
}

const _: () = assert!(2 + LINE_CLASSES <= 8 && 4 + LINE_CLASSES <= 8);

impl Child {
    #[inline(always)]
    pub fn id(self) -> u32 {
        match self {
            Child::Subscriber(at) => at,
            Child::Node(at) => at | NODE,
        }
    }

    #[inline(always)]
    pub fn of(id: u32) -> Self {
        match id & NODE {
            0 => Child::Subscriber(id),
            _ => Child::Node(id & !NODE),
        }
    }
}

/// In which of its parent's calendars a child is. What is guaranteed comes before what is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Band {
    /// Below a committed rate, or of a strict class.
    Guaranteed = 0,
    Excess = 1,
}

impl Band {
    pub const ALL: [Band; 2] = [Band::Guaranteed, Band::Excess];
}

/// Where a child waits: in the bands of its parent, and for what on the wheel. It may be in several places, in each once: what it finds when
/// its time comes decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(u8);

impl Places {
    pub const NOWHERE: Places = Places(0);

    #[inline(always)]
    pub fn has(self, timer: Timer) -> bool {
        self.0 & timer.place() != 0
    }

    #[inline(always)]
    pub fn set(&mut self, timer: Timer) {
        self.0 |= timer.place();
    }

    #[inline(always)]
    pub fn clear(&mut self, timer: Timer) {
        self.0 &= !timer.place();
    }

    #[inline(always)]
    pub fn is_in(self, band: Band) -> bool {
        self.0 & 1 << band as u8 != 0
    }

    #[inline(always)]
    pub fn enter(&mut self, band: Band) {
        self.0 |= 1 << band as u8;
    }

    #[inline(always)]
    pub fn leave(&mut self, band: Band) {
        self.0 &= !(1 << band as u8);
    }

    /// Whether it waits for its rate, or its committed one.
    #[inline(always)]
    pub fn has_timer(self) -> bool {
        self.has(Timer::Subscriber(0)) || self.has(Timer::Committed(0))
    }

    /// In none.
    pub fn is_nowhere(self) -> bool {
        self.0 == 0
    }
}

/// Virtual time of an octet of a child with weight 1 is 2^16. A share keeps as many bits behind the point, as an aggregate has the weights of
/// thousands of homes.
const SHARE: u64 = 1 << 16;
const POINT: u64 = 1 << 16;
/// Virtual time in a slot of a node's calendar: 64 octets of a child with weight 1.
const SLOT: u32 = 22;

/// The share of a child in what its parent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Virtual time of an octet, in parts of it.
    octet: u32,
}

impl Share {
    pub const NONE: Share = Share { octet: 0 };

    /// Of a weight; 0 counts as 1.
    pub fn new(weight: u64) -> Self {
        let octet = (SHARE * POINT / weight.max(1)).clamp(1, u32::MAX.into());
        Share {
            octet: octet as u32,
        }
    }

    /// Virtual time of so many octets, which is never nothing, however large the weight is.
    #[inline(always)]
    pub fn time(self, octets: u32) -> u64 {
        (u64::from(octets) * u64::from(self.octet)).div_ceil(POINT)
    }
}

/// The slot of a virtual time.
#[inline(always)]
pub(crate) const fn slot(tag: u64) -> u64 {
    tag >> SLOT
}

/// The virtual time at which a slot begins.
#[inline(always)]
pub(crate) fn begin(slot: u64) -> u64 {
    slot << SLOT
}
