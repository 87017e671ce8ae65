//! Priority (IEEE 802.1p: the first three bits behind the type of a tag, IEEE 802.1Q §9.6) of the frame in which a packet came. Without a
//! tag it is 0.
//!
//! A packet from a core port loses its tag before a policy asks for the priority, and may go to another worker before. So the priority is kept in octets
//! that the frame does not need any more.
use super::classify::{self, ETHERNET, TAG};
use dpdk::{HEAD, Window};

/// Where the frame's tag has its priority.
const IN_TAG: usize = HEAD + ETHERNET;
/// Where it is kept when the tag has been taken out: the frame begins later then.
const KEPT: usize = HEAD;
/// Types of Ethernet are larger (IEEE 802.3 §3.2.6): a smaller number in that place is a priority.
const NO_TYPE: u16 = 8;

/// That of a frame with a tag: of the outer one.
#[inline(always)]
pub(crate) fn of_tag(w: &Window) -> u8 {
    w.u8(IN_TAG) >> 5
}

/// That of a frame from an access port.
#[inline(never)]
pub(crate) fn of_access(w: &Window) -> u8 {
    match classify::depth(w) {
        0 => 0,
        _ => of_tag(w),
    }
}

/// Keeps that of a frame whose tag has been taken out.
#[inline(always)]
pub(crate) fn keep(w: &mut Window, priority: u8) {
    w.put8(KEPT, priority);
}

/// Keeps that of a packet from a core port for another worker, in place of the type of the frame.
#[inline(always)]
pub(crate) fn hand_on(w: &mut Window, ip: usize) {
    if is_untagged(ip) {
        w.put16(ip - 2, w.u8(KEPT).into());
    }
}

/// That of a packet from a core port, which may have been another worker's.
#[inline(never)]
pub(crate) fn of_core(w: &Window, ip: usize) -> u8 {
    match w.u16(ip - 2) {
        priority @ ..NO_TYPE => priority as u8,
        _ if is_untagged(ip) => w.u8(KEPT),
        _ => 0,
    }
}

/// Has the tag been taken out of the frame from a core port, so that its packet is where it was behind the tag?
#[inline(always)]
fn is_untagged(ip: usize) -> bool {
    ip == HEAD + ETHERNET + TAG
}
