//! The two cache lines of a session that packets need: one upstream, one downstream.
use super::counts::Counts;
use crate::api::SessionEntry;
use crate::nodes::classify::number;
use crate::tables::policies::Passes;
use ipnet::{IpNet, Ipv6Net};
use policy::{Direction, PrioritySource};
use wire::eth::PPPOE_SESSION;

/// What upstream packets of a session are checked against, and their counters: one cache line. Octets of the frame are as
/// the CPU loads them.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Up {
    /// Octets 6 to 13 of the frame: the MAC address and, with tags, the outer TPID.
    pub mac: u64,
    /// Octets 14 to 21 of the frame, as far as they are tags, without priorities. The last two, which no tag has, are the length
    /// of the delegated prefix and flags: [`ROUTED`] and [`POLICED`].
    pub tags: u64,
    /// Octets 0 to 7 of the frame: the gateway's address and the beginning of the subscriber's.
    pub begin: u64,
    /// The first 64 bits of the IPv6 prefix of the link, and of a delegated one.
    pub v6: u64,
    pub delegated: u64,
    pub counts: Counts,
    /// The IPv4 address, 0 for none.
    pub v4: u32,
    pub instance: u16,
    /// Number of tags, or [`VACANT`]; with [`SAMPLED`] if the session is.
    pub depth: u8,
    /// Length of the link's IPv6 prefix; 0 for none or for one that is longer than 64.
    pub v6_length: u8,
}

/// The subscriber may send from what the routes say, too.
const ROUTED: u8 = 1;
/// What the subscriber sends, or what is sent to it, has a policy or a rate.
const POLICED: u8 = 2;

/// The priority in the tags of what is sent to the subscriber is that of the packet's code point.
const BY_DSCP: u8 = 4;

/// A flag, if it is set.
fn flag(flag: u8, is_set: bool) -> u8 {
    if is_set { flag } else { 0 }
}

/// The depth of an entry without a session: no frame has it.
const VACANT: u8 = 0x80;
/// Part of the depth of a session that is sampled: no frame has that depth either, and its packets are looked at closer,
/// at no cost to those of others.
const SAMPLED: u8 = 0x40;

/// What counts of `mac` and `tags` in a frame with so many tags.
pub(crate) const MASKS: [(u64, u64); 3] = [
    (0xffff_ffff_ffff_0000_u64.to_be(), 0),
    (0xffff_ffff_ffff_ffff, 0x0fff_0000_0000_0000_u64.to_be()),
    (0xffff_ffff_ffff_ffff, 0x0fff_ffff_0fff_0000_u64.to_be()),
];

impl Up {
    pub(super) const NONE: Up = Up {
        mac: 0,
        tags: 0,
        begin: 0,
        v6: 0,
        delegated: 0,
        counts: Counts::NONE,
        v4: 0,
        instance: 0,
        depth: VACANT,
        v6_length: 0,
    };

    #[inline(always)]
    pub fn vacant(&self) -> bool {
        self.depth == VACANT
    }

    /// Whether copies of its packets are taken.
    pub fn is_sampled(&self) -> bool {
        self.depth & SAMPLED != 0
    }

    /// Begins or ends to take copies of its packets.
    pub fn sample(&mut self, on: bool) {
        self.depth = self.depth & !SAMPLED | if on { SAMPLED } else { 0 };
    }

    /// Length of the delegated prefix; 0 for none.
    #[inline(always)]
    pub fn delegated_length(&self) -> u8 {
        self.tags.to_ne_bytes()[6]
    }

    /// May the subscriber send from what the routes say, too?
    pub fn is_routed(&self) -> bool {
        self.tags.to_ne_bytes()[7] & ROUTED != 0
    }

    /// Whether the session's policy has to permit what the subscriber sends.
    #[inline(always)]
    pub fn is_policed(&self) -> bool {
        self.tags.to_ne_bytes()[7] & POLICED != 0
    }

    /// The entry with the same counters and what `entry` and `sources` say.
    pub(super) fn with(self, entry: &SessionEntry, sources: Sources) -> Up {
        let tpid = entry.tags.outer.map_or(0, |t| t.tpid);
        let tag = |tag: Option<wire::eth::Tag>| tag.map_or(0, |t| t.vid as u64 & 0xfff);
        let inner_tpid = entry.tags.inner.map_or(0, |t| t.tpid) as u64;
        let half = |net: Option<Ipv6Net>| match net.filter(|net| net.prefix_len() <= 64) {
            Some(net) => ((u128::from(net.network()) >> 64) as u64, net.prefix_len()),
            None => (0, 0),
        };
        let (v6, v6_length) = half(entry.ipv6);
        let (delegated, delegated_length) = half(sources.delegated);
        let policed = !Passes::of(entry, Direction::Up).is_free();
        let flags = flag(ROUTED, sources.routed) | flag(POLICED, policed);
        let mac = number(entry.peer_mac);
        let tags = tag(entry.tags.outer) << 48 | inner_tpid << 32 | tag(entry.tags.inner) << 16;
        Up {
            mac: (mac << 16 | tpid as u64).to_be(),
            begin: (number(entry.gateway_mac) << 16 | mac >> 32).to_be(),
            tags: (tags | (delegated_length as u64) << 8 | flags as u64).to_be(),
            v6,
            v6_length,
            delegated,
            v4: entry.ipv4.map_or(0, u32::from),
            instance: entry.instance.0,
            depth: entry.tags.count() as u8 | self.depth & SAMPLED,
            ..self
        }
    }
}

/// How downstream packets of a session are sent, and their counters: one cache line.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Down {
    /// Everything in front of the IP header, at the end of these octets; PPPoE's length and PPP's protocol are open.
    pub header: [u8; 32],
    pub counts: Counts,
    /// Of the session, among those that had its index.
    pub generation: u32,
    pub port: u16,
    /// The largest IP packet that is sent without a closer look: the MTU, or 0 if there is no session, or it is sampled.
    pub plain: u16,
    /// The largest IP packet that the subscriber takes.
    pub mtu: u16,
    /// Length of the header, 0 if there is no session.
    pub length: u8,
    /// [`POLICED`] and [`BY_DSCP`].
    pub(super) flags: u8,
}

const _: () = assert!(size_of::<Up>() == 64 && size_of::<Down>() == 64);

impl Down {
    /// Whether the session's policy has to permit what is sent.
    #[inline(always)]
    pub fn is_policed(&self) -> bool {
        self.flags & POLICED != 0
    }

    /// Whether the priority in the tags is that of the packet's code point.
    #[inline(always)]
    pub fn has_priority_by_dscp(&self) -> bool {
        self.flags & BY_DSCP != 0
    }

    /// Whether copies of its packets are taken.
    pub fn is_sampled(&self) -> bool {
        self.length != 0 && self.plain == 0
    }

    /// The entry with the same counters and what `entry` says.
    pub(super) fn with(self, entry: &SessionEntry) -> Down {
        let mut header = [0; 32];
        let mut at = 32;
        let mut before = |bytes: &[u8]| {
            at -= bytes.len();
            header[at..at + bytes.len()].copy_from_slice(bytes);
        };
        before(&[0; 4]); // PPPoE length, PPP protocol
        before(&entry.pppoe_session_id.to_be_bytes());
        before(&[0x11, 0]); // PPPoE version 1, type 1, code 0 (RFC 2516 §4)
        before(&PPPOE_SESSION.to_be_bytes());
        let tags = entry.tags.with_priority(entry.packets.vlan_priority);
        for tag in [tags.inner, tags.outer].into_iter().flatten() {
            before(&tag.tci().to_be_bytes());
            before(&tag.tpid.to_be_bytes());
        }
        before(&entry.gateway_mac.0);
        before(&entry.peer_mac.0);
        let policed = !Passes::of(entry, Direction::Down).is_free();
        let by_dscp = entry.packets.priority_source == PrioritySource::Dscp;
        let mtu = entry.packets.largest_packet();
        Down {
            header,
            port: entry.port.0,
            plain: if self.is_sampled() { 0 } else { mtu },
            mtu,
            length: 32 - at as u8,
            flags: flag(POLICED, policed) | flag(BY_DSCP, by_dscp),
            ..self
        }
    }
}

/// What else a subscriber may send from, beside its address and the prefix of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// The prefix that the session's entry has, of at most 64 bits: most that is sent over IPv6 is from a delegated one.
    delegated: Option<Ipv6Net>,
    /// There are more, which are found in the routes.
    pub(super) routed: bool,
}

impl Sources {
    /// These nets.
    pub fn of(nets: &[IpNet]) -> Self {
        let mut six = nets.iter().filter_map(|net| match net {
            IpNet::V6(net) => Some(*net),
            IpNet::V4(_) => None,
        });
        let delegated = six.find(|net| net.prefix_len() <= 64);
        Sources {
            delegated,
            routed: nets.len() > usize::from(delegated.is_some()),
        }
    }
}
