//! Nodes `lookup` and `connected`: where the packet's destination leads in its network instance.
//!
//! Out: to a neighbour or a subscriber → `rewrite`; to the gateway itself → punt.
//! Drops: `no-route`, `discard-route`, `no-adjacency` (on a connected net), `bad-inject`.
use super::classify::ETHERNET;
use super::ip::Family;
use super::{Exit, Part};
use crate::api::{Destination, InstanceIndex, PortIndex};
use crate::drops::DropReason;
use crate::nodes::punt;
use crate::punt::PuntKind;
use crate::tables::fib::{Reader, Table, Target};
use crate::tables::groups::Groups;
use core::net::IpAddr;
use dpdk::{BURST, HEAD, Window};
use ipnet::IpNet;

/// Where a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Subscriber,
    /// A core port or subinterface.
    Core(PortIndex),
    /// The gateway itself, or the kernel, which has routed it already.
    Gateway,
}

/// Looks the packet's destination up.
#[inline(always)]
pub(crate) fn find(fibs: &Reader, table: Table, family: Family, w: &Window, ip: usize) -> Target {
    match family {
        Family::V4 => fibs.find_v4(table, w.u32(ip + 16)),
        Family::V6 => fibs.find_v6(table, w.u128(ip + 24)),
    }
}

/// IPv6 addresses of a burst, which are looked up together: each takes several steps through memory.
pub(crate) struct Batch {
    n: usize,
    addresses: [u128; BURST],
    targets: [Target; BURST],
}

impl Batch {
    pub fn new() -> Self {
        Batch {
            n: 0,
            addresses: [0; BURST],
            targets: [Target::default(); BURST],
        }
    }

    /// Adds the destination of the packet at `ip`, and asks for its first line; its place. There is one for each packet of
    /// a burst.
    #[inline(always)]
    pub fn add(&mut self, fibs: &Reader, table: Table, w: &Window, ip: usize) -> u32 {
        self.add_address(fibs, table, w.u128(ip + 24))
    }

    /// The same for an address.
    #[inline(always)]
    pub fn add_address(&mut self, fibs: &Reader, table: Table, address: u128) -> u32 {
        let place = self.n % BURST;
        fibs.touch_v6(table, address);
        self.addresses[place] = address;
        self.n = place + 1;
        place as u32
    }

    /// Looks all of them up, and begins anew.
    #[inline(always)]
    pub fn find(&mut self, fibs: &Reader, table: Table) {
        let n = core::mem::take(&mut self.n);
        if n > 0 {
            fibs.find_v6_all(table, &self.addresses[..n], &mut self.targets);
        }
    }

    /// Where the one at a place leads.
    #[inline(always)]
    pub fn target(&self, place: u32) -> Target {
        self.targets[place as usize % BURST]
    }
}

/// What the packet's flow has of a group's neighbours, if the target is a group.
#[inline(always)]
pub(crate) fn of_group(
    groups: &Groups,
    target: Target,
    family: Family,
    w: &Window,
    ip: usize,
) -> Target {
    match target.group() {
        None => target,
        Some(group) => groups.member(group, flow(family, w, ip)),
    }
}

/// The same number for all packets of a flow: of the addresses, the protocol, and the ports if there are any and the packet is
/// no fragment. (What follows an extension header of IPv6 is not looked for.)
#[inline(never)]
fn flow(family: Family, w: &Window, ip: usize) -> u32 {
    let (source, destination, protocol, ports) = match family {
        Family::V4 => {
            let whole = w.u16(ip + 6) & 0x3fff == 0;
            let options = (w.u8(ip) & 0xf) as usize * 4;
            let addresses = (w.u32(ip + 12) as u64, w.u32(ip + 16) as u64);
            (
                addresses.0,
                addresses.1,
                w.u8(ip + 9),
                whole.then_some(ip + options),
            )
        }
        Family::V6 => {
            let mixed = |at| w.u64(at).rotate_left(29) ^ w.u64(at + 8);
            (mixed(ip + 8), mixed(ip + 24), w.u8(ip + 6), Some(ip + 40))
        }
    };
    // TCP, UDP, DCCP, SCTP, UDP-Lite begin with them.
    let ports = ports.filter(|_| matches!(protocol, 6 | 17 | 33 | 132 | 136));
    let ports = ports.map_or(0, |at| w.u32(at));
    // Multiplications of 64 bits, folded: each bit of what goes in changes half of those that come out.
    let mix = |a: u64, b: u64| {
        let product = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03) as u128;
        (product >> 64) as u64 ^ product as u64
    };
    let of_ports = (ports as u64) << 8 | protocol as u64;
    let hash = mix(
        mix(source, destination),
        of_ports.wrapping_mul(0xff51_afd7_ed55_8ccd),
    );
    (hash >> 32) as u32 ^ hash as u32
}

/// The packet's destination, for questions about it.
pub(crate) fn address(family: Family, w: &Window, ip: usize) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(w.u32(ip + 16).into()),
        Family::V6 => IpAddr::V6(w.u128(ip + 24).into()),
    }
}

/// What a destination means for a packet of `total` octets that came from `origin`, if it leads neither to a neighbour nor
/// to a subscriber: the core port on which its neighbour has to be found first.
pub(crate) fn elsewhere(
    target: Target,
    origin: Origin,
    instance: u16,
    w: &Window,
    ip: usize,
    total: usize,
) -> Result<PortIndex, Exit> {
    match target.destination() {
        Some(Destination::Connected(port)) => Ok(port),
        Some(Destination::Discard) => Err(DropReason::DiscardRoute.into()),
        // Neighbours and subscribers are found by their targets, and groups have no groups among their members.
        None
        | Some(Destination::Adjacency(_) | Destination::Session(_) | Destination::Group(_)) => {
            Err(DropReason::NoRoute.into())
        }
        Some(Destination::Local) => Err(match origin {
            Origin::Subscriber => {
                Exit::Punt(PuntKind::Local(InstanceIndex(instance)), packet(ip, total))
            }
            Origin::Core(interface) => punt::for_kernel(w, ip - ETHERNET, ip + total, interface),
            Origin::Gateway => DropReason::BadInject.into(),
        }),
    }
}

/// The IP packet without what is below it, and without padding.
pub(crate) fn packet(ip: usize, total: usize) -> Part {
    Part {
        strip: (ip - HEAD) as u8,
        len: total as u16,
    }
}

/// IPv6 packets that no router forwards: from or to link-local addresses, or from none (RFC 4291 §2.5.2, §2.5.6).
/// On a core port they are for the kernel.
#[inline(always)]
pub(crate) fn stays_on_link(w: &Window, ip: usize) -> bool {
    let (source, destination) = (w.u128(ip + 8), w.u64(ip + 24));
    let link_local = |high: u64| high >> 54 == 0xfe80 >> 6;
    link_local((source >> 64) as u64) | link_local(destination) | (source == 0)
}

/// Destinations that are never forwarded (RFC 6890, RFC 4291): each instance discards them unless it is told of a
/// longer prefix.
pub(crate) fn unroutable() -> impl Iterator<Item = IpNet> {
    let nets = [
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/3",
        "::/127",
        "::ffff:0:0/96",
        "fe80::/10",
        "ff00::/8",
    ];
    nets.into_iter().map(|net| net.parse().expect("a prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(destination: Option<Destination>, origin: Origin) -> Result<PortIndex, Exit> {
        let mut w = Window::default();
        w.put16(HEAD + 28, wire::eth::IPV4);
        elsewhere(
            destination.map(Target::of).unwrap_or_default(),
            origin,
            2,
            &w,
            HEAD + 30,
            84,
        )
    }

    #[test]
    fn every_destination_from_every_origin() {
        let core = Origin::Core(PortIndex(1));
        for origin in [Origin::Subscriber, core, Origin::Gateway] {
            assert_eq!(
                to(Some(Destination::Connected(PortIndex(1))), origin),
                Ok(PortIndex(1))
            );
            assert_eq!(
                to(Some(Destination::Discard), origin),
                Err(DropReason::DiscardRoute.into())
            );
            assert_eq!(to(None, origin), Err(DropReason::NoRoute.into()));
        }
        let local = |origin| to(Some(Destination::Local), origin);
        let packet = Part { strip: 30, len: 84 };
        assert_eq!(
            local(Origin::Subscriber),
            Err(Exit::Punt(PuntKind::Local(InstanceIndex(2)), packet))
        );
        let frame = Part {
            strip: 16,
            len: u16::MAX,
        };
        assert_eq!(
            local(core),
            Err(Exit::Punt(PuntKind::ForUs(PortIndex(1)), frame))
        );
        assert_eq!(local(Origin::Gateway), Err(DropReason::BadInject.into()));
    }

    #[test]
    fn what_stays_on_the_link() {
        let stays = |source: &str, destination: &str| {
            let mut packet = vec![0; 8];
            for a in [source, destination] {
                packet.extend(a.parse::<core::net::Ipv6Addr>().unwrap().octets());
            }
            stays_on_link(&Window::of(&packet), HEAD)
        };
        assert!(
            stays("fe80::1", "2001:db8::1")
                && stays("2001:db8::1", "febf::1")
                && stays("::", "2001:db8::1")
        );
        assert!(!stays("2001:db8::1", "2001:db8::2") && !stays("fec0::1", "2001:db8::2"));
    }

    #[test]
    fn unroutable_nets_are_prefixes() {
        assert!(unroutable().all(|net| net == net.trunc()));
    }
}
