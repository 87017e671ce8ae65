//! The nodes. Each is a file: what it does, its ways out, the drops that it names, and at its foot its tests.
//! [`crate::graph`] puts them together.
pub(crate) mod classify;
pub(crate) mod fields;
pub(crate) mod fragment;
pub(crate) mod ip;
pub(crate) mod lookup;
pub(crate) mod mss;
pub(crate) mod policy;
pub(crate) mod priority;
pub(crate) mod punt;
pub(crate) mod rewrite;
pub(crate) mod session;
pub(crate) mod source;

use crate::drops::DropReason;
use crate::punt::PuntKind;

/// A packet that leaves the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is dropped.
    Drop(DropReason),
    /// The control thread gets it, the whole frame or a part of it.
    Punt(PuntKind, Part),
    /// It is not dropped: its session is sampled, which only the graph knows to do.
    Sampled,
    /// It is not dropped: its session's counters have no room for it, and the graph carries them over.
    Full,
    /// It is dropped; the control thread may see it, to tell the sender.
    DropAndNotify(DropReason, PuntKind, Part),
    /// So many fragments were sent in its place.
    Fragmented(u8),
}

/// Which part of the frame is meant: what lies behind the first `strip` octets, up to `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub strip: u8,
    pub len: u16,
}

impl Part {
    pub const WHOLE: Part = Part {
        strip: 0,
        len: u16::MAX,
    };
}

/// What becomes of a frame without a window.
impl Default for Exit {
    fn default() -> Self {
        Exit::Drop(DropReason::UnsupportedBuffer)
    }
}

impl From<DropReason> for Exit {
    fn from(reason: DropReason) -> Self {
        Exit::Drop(reason)
    }
}
