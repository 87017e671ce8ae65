//! What stands under a node of the tree, and where it waits.

/// A subscriber or a node, as calendars hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    Subscriber(u32),
    Node(u32),
}

/// Who has an alarm on the wheel, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// It may send.
    MaySend(Child),
    /// A subscriber is below its committed rate again.
    Committed(u32),
}

/// Marks a node.
const NODE: u32 = 1 << 31;
/// Marks a subscriber that waits for its committed rate.
const COMMITTED: u32 = 1 << 30;

impl Alarm {
    #[inline(always)]
    pub fn id(self) -> u32 {
        match self {
            Alarm::MaySend(child) => child.id(),
            Alarm::Committed(at) => at | COMMITTED,
        }
    }

    #[inline(always)]
    pub fn of(id: u32) -> Self {
        match id & COMMITTED {
            0 => Alarm::MaySend(Child::of(id)),
            _ => Alarm::Committed(id & !COMMITTED),
        }
    }
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Band {
    /// Below a committed rate, or of a strict class.
    Guaranteed = 0,
    Excess = 1,
}

impl Band {
    pub const ALL: [Band; 2] = [Band::Guaranteed, Band::Excess];
}

/// Calendars that have a child. It may be in several: what it finds there when its time comes decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(u8);

/// The wheel, to send.
const WHEEL: u8 = 4;
/// The wheel, to be below the committed rate.
const COMMITTED_WHEEL: u8 = 8;

impl Places {
    pub const NOWHERE: Places = Places(0);

    #[inline(always)]
    pub fn is_on_wheel(self) -> bool {
        self.0 & WHEEL != 0
    }

    #[inline(always)]
    pub fn set_on_wheel(&mut self, is: bool) {
        self.0 = self.0 & !WHEEL | if is { WHEEL } else { 0 };
    }

    #[inline(always)]
    pub fn awaits_committed(self) -> bool {
        self.0 & COMMITTED_WHEEL != 0
    }

    #[inline(always)]
    pub fn set_awaits_committed(&mut self, is: bool) {
        self.0 = self.0 & !COMMITTED_WHEEL | if is { COMMITTED_WHEEL } else { 0 };
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

    /// In none.
    pub fn is_nowhere(self) -> bool {
        self.0 == 0
    }
}

/// Virtual time of an octet of a child with weight 1.
const SHARE: u32 = 1 << 16;
/// Virtual time in a slot of a node's calendar: 64 octets of a child with weight 1.
const SLOT: u32 = 22;

/// The share of a child in what its parent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Virtual time of an octet.
    octet: u32,
}

impl Share {
    pub const NONE: Share = Share { octet: 0 };

    /// Of a weight from 1 to 1,000; 0 counts as 1.
    pub fn new(weight: u16) -> Self {
        Share {
            octet: SHARE / u32::from(weight.clamp(1, 1000)),
        }
    }

    /// Virtual time of so many octets.
    #[inline(always)]
    pub fn time(self, octets: u32) -> u64 {
        u64::from(octets) * u64::from(self.octet)
    }
}

/// The slot of a virtual time.
#[inline(always)]
pub(crate) fn slot(tag: u64) -> u64 {
    tag >> SLOT
}

/// The virtual time at which a slot begins.
#[inline(always)]
pub(crate) fn begin(slot: u64) -> u64 {
    slot << SLOT
}
