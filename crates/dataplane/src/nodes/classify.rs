//! Nodes `classify-access`, `classify-core` and `untag`: what kind of frame it is, by its addresses, tags and types.
//!
//! Out, from an access port: discovery, LACP → punt; session stage and PADT → `session`.
//! Out, from a core port: IP to the gateway's address → `lookup`; ARP, multicast and the like → punt to the kernel. A
//! tagged frame is that of a subinterface.
//! Drops: `truncated`, `not-for-us`, `unknown-vlan`, `unexpected-type`.
use crate::api::PortIndex;
use crate::drops::DropReason;
use crate::nodes::ip::Family;
use crate::nodes::priority;
use crate::shard::Owners;
use crate::tables::Vlans;
use crate::tables::interfaces::Interfaces;
use crate::tables::sessions::Sessions;
use dpdk::{HEAD, Window};
use wire::eth::{
    IPV4, IPV6, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION, SLOW_PROTOCOLS, TPID_8021AD, TPID_8021Q,
};

/// A frame from an access port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The session stage, without tags, with one and with two.
    Untagged,
    Tagged,
    Double,
    /// A PADT, with so many tags.
    Termination(u8),
    /// PPPoE discovery outside of any session.
    Discovery,
    /// LACP.
    SlowProtocol,
    /// Of a session that another worker has.
    Other(u16),
    Drop(DropReason),
}

impl Access {
    /// The session stage, behind `DEPTH` tags.
    const fn session<const DEPTH: usize>() -> Self {
        match DEPTH {
            0 => Access::Untagged,
            1 => Access::Tagged,
            _ => Access::Double,
        }
    }

    /// Is it a session stage?
    #[inline(always)]
    pub fn is_session(self) -> bool {
        matches!(self, Access::Untagged | Access::Tagged | Access::Double)
    }
}

/// A frame from a core port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    V4,
    V6,
    /// For the kernel.
    Kernel,
    /// With a tag (IEEE 802.1Q): `tagged` says more.
    Tagged,
    /// What `tagged` says of a frame on this interface.
    TaggedV4(PortIndex),
    TaggedV6(PortIndex),
    TaggedKernel(PortIndex),
    /// An IP packet whose source node `source` refuses.
    Refused(Family, DropReason),
    Drop(DropReason),
}

/// Octets of the PPPoE header (RFC 2516 §4).
pub(crate) const PPPOE: usize = 6;
/// Octets of Ethernet without tags.
pub(crate) const ETHERNET: usize = 14;

/// Is there a tag at `at`?
#[inline(always)]
fn is_tag(w: &Window, at: usize) -> bool {
    let tpid = w.raw16(at);
    tpid == TPID_8021Q.to_be() || tpid == TPID_8021AD.to_be()
}

/// The destination address as a number.
#[inline(always)]
fn destination(w: &Window) -> u64 {
    w.u64(HEAD) >> 16
}

/// An address as a number.
pub(crate) const fn number(MacAddr([a, b, c, d, e, f]): MacAddr) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Has the (destination) address the group bit?
const fn is_group(address: u64) -> bool {
    address >> 40 & 1 != 0
}

/// How many tags a frame has: 0, 1 or 2.
#[inline(always)]
pub(crate) fn depth(w: &Window) -> usize {
    if !is_tag(w, HEAD + 12) {
        0
    } else if !is_tag(w, HEAD + 16) {
        1
    } else {
        2
    }
}

/// Looks at a frame of `len` octets that has `DEPTH` tags from an access port with these VLANs, of which
/// some may have been moved (`MOVED`): what it is, and the place
/// of the session that it names (which may be vacant), 0 if none. Whose address it has is for `session` to see, and in
/// discovery for the control plane: the gateway has one in each subscriber group.
#[inline(always)]
pub(crate) fn access<const DEPTH: usize, const MOVED: bool>(
    w: &Window,
    len: usize,
    (vlans, owners): (&Vlans, &Owners),
    sessions: &Sessions,
) -> (Access, u32) {
    let short = len < ETHERNET + 4 * DEPTH + PPPOE;
    if short | (w.u16(HEAD + 12 + 4 * DEPTH) != PPPOE_SESSION) {
        return discovery::<DEPTH, MOVED>(w, len, (vlans, owners), sessions);
    }
    let id = session_id::<DEPTH>(w);
    if !is_here::<DEPTH, MOVED>(w, id, owners, sessions) {
        return (
            Access::Other(worker::<DEPTH, MOVED>(w, id, owners, sessions)),
            0,
        );
    }
    match sessions.slot_in::<MOVED>(vlans, vid::<DEPTH>(w), id) {
        None => (Access::Drop(DropReason::UnknownVlan), 0),
        Some(slot) => (Access::session::<DEPTH>(), slot),
    }
}

/// The same for what is not in the session stage.
#[cold]
#[inline(never)]
fn discovery<const DEPTH: usize, const MOVED: bool>(
    w: &Window,
    len: usize,
    (vlans, owners): (&Vlans, &Owners),
    sessions: &Sessions,
) -> (Access, u32) {
    if len < ETHERNET + 4 * DEPTH + PPPOE {
        return (Access::Drop(DropReason::Truncated), 0);
    }
    match w.u16(HEAD + 12 + 4 * DEPTH) {
        PPPOE_DISCOVERY => {}
        SLOW_PROTOCOLS if DEPTH == 0 => return (Access::SlowProtocol, 0),
        _ => return (Access::Drop(DropReason::UnexpectedType), 0),
    }
    let id = session_id::<DEPTH>(w);
    if id != 0 && !is_here::<DEPTH, MOVED>(w, id, owners, sessions) {
        return (
            Access::Other(worker::<DEPTH, MOVED>(w, id, owners, sessions)),
            0,
        );
    }
    match sessions.slot_in::<MOVED>(vlans, vid::<DEPTH>(w), id) {
        None => (Access::Drop(DropReason::UnknownVlan), 0),
        Some(_) if id == 0 => (Access::Discovery, 0),
        Some(slot) => (Access::Termination(DEPTH as u8), slot),
    }
}

/// The worker that has a session id in the frame's VLAN.
#[inline(always)]
fn worker<const DEPTH: usize, const MOVED: bool>(
    w: &Window,
    id: u16,
    owners: &Owners,
    sessions: &Sessions,
) -> u16 {
    match MOVED {
        true => sessions.ids().worker(owners, vid::<DEPTH>(w), id),
        false => sessions.ids().of(id),
    }
}

/// Is it this one?
#[inline(always)]
fn is_here<const DEPTH: usize, const MOVED: bool>(
    w: &Window,
    id: u16,
    owners: &Owners,
    sessions: &Sessions,
) -> bool {
    worker::<DEPTH, MOVED>(w, id, owners, sessions) == sessions.ids().own
}

/// The outer VLAN id, 0 without tags.
pub(crate) fn outer_vid(w: &Window) -> u16 {
    match depth(w) {
        0 => vid::<0>(w),
        _ => vid::<1>(w),
    }
}

/// The outer VLAN id, 0 without tags.
#[inline(always)]
fn vid<const DEPTH: usize>(w: &Window) -> u16 {
    match DEPTH {
        0 => 0,
        _ => w.u16(HEAD + 14) & 0xfff,
    }
}

/// What is PPPoE's session id, if it is PPPoE.
#[inline(always)]
fn session_id<const DEPTH: usize>(w: &Window) -> u16 {
    w.u16(HEAD + ETHERNET + 4 * DEPTH + 2)
}

/// Looks at a frame of `len` octets from a core port where the gateway's address is `own`.
#[inline(always)]
pub(crate) fn core(w: &Window, len: usize, own: u64) -> Core {
    if len < ETHERNET {
        return Core::Drop(DropReason::Truncated);
    }
    let to = destination(w);
    match w.u16(HEAD + 12) {
        IPV4 if to == own => Core::V4,
        IPV6 if to == own => Core::V6,
        TPID_8021Q => Core::Tagged,
        _ if to == own || is_group(to) => Core::Kernel,
        _ => Core::Drop(DropReason::NotForUs),
    }
}

/// Octets of a tag.
pub(crate) const TAG: usize = 4;

/// Looks at a tagged frame of `len` octets from core port `port` where the gateway's address is `own`.
#[inline]
pub(crate) fn tagged(w: &Window, len: usize, port: u16, own: u64, interfaces: &Interfaces) -> Core {
    if len < ETHERNET + TAG {
        return Core::Drop(DropReason::Truncated);
    }
    let vlan = w.u16(HEAD + ETHERNET) & 0xfff;
    let Some(interface) = interfaces.tagged(PortIndex(port), vlan) else {
        return Core::Drop(DropReason::UnknownVlan);
    };
    let to = destination(w);
    match w.u16(HEAD + 12 + TAG) {
        IPV4 if to == own => Core::TaggedV4(interface),
        IPV6 if to == own => Core::TaggedV6(interface),
        _ if to == own || is_group(to) => Core::TaggedKernel(interface),
        _ => Core::Drop(DropReason::NotForUs),
    }
}

/// Takes the tag out: the frame begins [`TAG`] octets later then. Its priority is kept.
#[inline]
pub(crate) fn untag(w: &mut Window) {
    let (first, last, priority) = (w.u64(HEAD), w.u32(HEAD + 8), priority::of_tag(w));
    w.put64(HEAD + TAG, first);
    w.put32(HEAD + TAG + 8, last);
    priority::keep(w, priority);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{InstanceIndex, SourceCheck, Subinterface};
    use crate::shard::NO_OWNERS;
    use crate::tables::interfaces::Interface;
    use crate::tables::no_vlans;
    use wire::eth::{Header, Tag, Tags};

    const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);

    fn classify(tags: Tags, ethertype: u16, id: u16, cut: usize) -> (Access, u32) {
        let sessions = Sessions::with(1, &[0..=0, 100..=199]);
        let mut frame = vec![];
        Header {
            destination: OWN,
            source: MacAddr([2, 0, 0, 0, 0, 9]),
            tags,
            ethertype,
        }
        .emit(&mut frame);
        frame.extend([0x11, 0]);
        frame.extend(id.to_be_bytes());
        frame.extend([0; 2]);
        let (w, len) = (Window::of(&frame), frame.len() - cut);
        match depth(&w) {
            0 => access::<0, false>(
                &w,
                len,
                (sessions.vlans(PortIndex(0)), &NO_OWNERS),
                &sessions,
            ),
            1 => access::<1, false>(
                &w,
                len,
                (sessions.vlans(PortIndex(0)), &NO_OWNERS),
                &sessions,
            ),
            _ => access::<2, false>(
                &w,
                len,
                (sessions.vlans(PortIndex(0)), &NO_OWNERS),
                &sessions,
            ),
        }
    }

    #[test]
    fn frames_of_every_vlan_model() {
        let models = [Tags::NONE, Tags::single(100), Tags::qinq(100, 7), {
            let mut tags = Tags::qinq(199, 4095);
            tags.outer.as_mut().unwrap().tpid = TPID_8021AD;
            tags.outer.as_mut().unwrap().pcp = 7;
            tags
        }];
        for (tags, depth) in models.into_iter().zip([0, 1, 2, 2]) {
            let slot = 5;
            let session = match depth {
                0 => Access::Untagged,
                1 => Access::Tagged,
                _ => Access::Double,
            };
            assert_eq!(classify(tags, PPPOE_SESSION, 5, 0), (session, slot));
            let termination = Access::Termination(depth);
            assert_eq!(classify(tags, PPPOE_DISCOVERY, 5, 0), (termination, slot));
            assert_eq!(
                classify(tags, PPPOE_DISCOVERY, 0, 0),
                (Access::Discovery, 0)
            );
            for (ethertype, cut, why) in [
                (PPPOE_SESSION, 1, DropReason::Truncated),
                (IPV4, 0, DropReason::UnexpectedType),
                (0x0806, 0, DropReason::UnexpectedType),
            ] {
                assert_eq!(
                    classify(tags, ethertype, 5, cut),
                    (Access::Drop(why), 0),
                    "{why:?}"
                );
            }
        }
        let unknown = (Access::Drop(DropReason::UnknownVlan), 0);
        assert_eq!(classify(Tags::single(99), PPPOE_SESSION, 5, 0), unknown);
        assert_eq!(classify(Tags::single(200), PPPOE_DISCOVERY, 0, 0), unknown);
    }

    #[test]
    fn frames_from_the_core() {
        let look = |to: MacAddr, ethertype: u16, len| {
            let mut frame = vec![];
            Header {
                destination: to,
                source: MacAddr([2; 6]),
                tags: Tags::NONE,
                ethertype,
            }
            .emit(&mut frame);
            core(&Window::of(&frame), len, number(OWN))
        };
        assert_eq!(look(OWN, IPV4, 60), Core::V4);
        assert_eq!(look(OWN, IPV6, 60), Core::V6);
        assert_eq!(look(OWN, 0x0806, 60), Core::Kernel);
        assert_eq!(look(MacAddr::BROADCAST, 0x0806, 60), Core::Kernel);
        assert_eq!(
            look(MacAddr([0x33, 0x33, 0, 0, 0, 1]), IPV6, 60),
            Core::Kernel
        );
        assert_eq!(
            look(MacAddr([2; 6]), IPV4, 60),
            Core::Drop(DropReason::NotForUs)
        );
        assert_eq!(look(OWN, IPV4, 13), Core::Drop(DropReason::Truncated));
    }

    #[test]
    fn tagged_frames_from_the_core() {
        let mut interfaces = Interfaces::new(8);
        let port = Interface {
            port: PortIndex(2),
            own: OWN,
            mtu: 1500,
            vlan: 0,
            instance: InstanceIndex(0),
            source_check: SourceCheck::Off,
            priority_source: policy::PrioritySource::Fixed,
        };
        interfaces.add_port(port, no_vlans());
        let part = Subinterface {
            port: PortIndex(2),
            vlan: 300,
            instance: InstanceIndex(0),
            mtu: 1400,
        };
        interfaces.add_subinterface(PortIndex(5), part);
        let classify = |interfaces: &Interfaces, to: MacAddr, tag: Tag, ethertype: u16, len| {
            let mut frame = vec![];
            let tags = Tags {
                outer: Some(tag),
                inner: None,
            };
            Header {
                destination: to,
                source: MacAddr([2; 6]),
                tags,
                ethertype,
            }
            .emit(&mut frame);
            let w = Window::of(&frame);
            match core(&w, len, number(OWN)) {
                Core::Tagged => tagged(&w, len, 2, number(OWN), interfaces),
                other => other,
            }
        };
        let look = |to, tag, ethertype, len| classify(&interfaces, to, tag, ethertype, len);
        let urgent = Tag {
            pcp: 7,
            ..Tag::new(300)
        };
        let part = PortIndex(5);
        for tag in [Tag::new(300), urgent] {
            assert_eq!(look(OWN, tag, IPV4, 60), Core::TaggedV4(part));
            assert_eq!(look(OWN, tag, IPV6, 60), Core::TaggedV6(part));
        }
        let arp = look(MacAddr::BROADCAST, urgent, 0x0806, 60);
        assert_eq!(arp, Core::TaggedKernel(part));
        // A priority alone is no VLAN: the port's own.
        let own = look(OWN, Tag::new(0), IPV4, 60);
        assert_eq!(own, Core::TaggedV4(PortIndex(2)));
        for (to, vlan, len, why) in [
            (OWN, 301, 60, DropReason::UnknownVlan),
            (MacAddr([2; 6]), 300, 60, DropReason::NotForUs),
            (OWN, 300, 17, DropReason::Truncated),
        ] {
            assert_eq!(look(to, Tag::new(vlan), IPV4, len), Core::Drop(why));
        }
        interfaces.remove(part);
        let gone = classify(&interfaces, OWN, urgent, IPV4, 60);
        assert_eq!(gone, Core::Drop(DropReason::UnknownVlan));
    }

    #[test]
    fn what_is_untagged_is_the_frame_without_its_tag() {
        let header = Header {
            destination: OWN,
            source: MacAddr([7, 8, 9, 10, 11, 12]),
            tags: Tags::single(300),
            ethertype: IPV4,
        };
        let (mut with, mut without) = (vec![], vec![]);
        header.emit(&mut with);
        Header {
            tags: Tags::NONE,
            ..header
        }
        .emit(&mut without);
        let mut w = Window::of(&with);
        untag(&mut w);
        assert_eq!(w.bytes(HEAD + TAG..HEAD + TAG + ETHERNET), without);
    }
}
