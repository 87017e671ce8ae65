//! Neighbours on core ports, and the questions about those that are not known.
use crate::api::{Adjacency, AdjacencyIndex, PortIndex};
use crate::tables::interfaces::Interface;
use core::net::IpAddr;
use policy::PrioritySource;
use wire::eth::MacAddr;

/// A neighbour, as rewriting wants it: half a cache line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Neighbour {
    /// Two octets of padding, then the Ethernet header; the type is left open.
    pub header: [u8; 16],
    /// The port, of which the neighbour's interface may be a part.
    pub port: u16,
    /// The largest IP packet that it takes; 0 if it is not known.
    pub mtu: u16,
    /// The VLAN id of frames to it, 0 without a tag; with [`BY_DSCP`].
    pub vlan: u16,
    known: bool,
    used: bool,
    /// When (TSC) the control thread may be asked for it again.
    ask_after: u64,
}

const _: () = assert!(size_of::<Neighbour>() == 32);

/// In place of the highest bit of the tag's priority: it is that of the packet's code point.
const BY_DSCP: u16 = 1 << 15;

fn by_dscp(source: PrioritySource) -> u16 {
    match source {
        PrioritySource::Fixed => 0,
        PrioritySource::Dscp => BY_DSCP,
    }
}

impl Neighbour {
    /// Priority and VLAN id of the tag of a packet with a code point: priority 0, or that of the code point (RFC 2474 §4.2.2).
    #[inline(always)]
    pub fn tci(&self, dscp: impl FnOnce() -> u8) -> u16 {
        match self.vlan & BY_DSCP {
            0 => self.vlan,
            _ => self.vlan & !BY_DSCP | u16::from(dscp() >> 3) << 13,
        }
    }
}

/// No interface: what no adjacency is on.
const NOWHERE: PortIndex = PortIndex(u16::MAX);

/// All adjacencies, by index.
pub(crate) struct Adjacencies {
    all: Box<[Neighbour]>,
    /// The interfaces that they are on, also of those that are not resolved.
    on: Box<[PortIndex]>,
}

impl Adjacencies {
    pub fn new(limit: u32) -> Self {
        Adjacencies {
            all: vec![Neighbour::default(); limit as usize].into(),
            on: vec![NOWHERE; limit as usize].into(),
        }
    }

    /// Sets the neighbour (`None`: not known any more). False if the index is beyond the limit.
    pub fn set(
        &mut self,
        AdjacencyIndex(index): AdjacencyIndex,
        to: Option<(Adjacency, &Interface)>,
    ) -> bool {
        let Some(place) = self.all.get_mut(index as usize) else {
            return false;
        };
        self.on[index as usize] = to.map_or(NOWHERE, |(adjacency, _)| adjacency.port);
        let resolved = to.and_then(|(adjacency, interface)| Some((adjacency.mac?, interface)));
        *place = resolved.map_or_else(Neighbour::default, |(mac, interface)| {
            let mut header = [0; 16];
            header[2..8].copy_from_slice(&mac.0);
            header[8..14].copy_from_slice(&interface.own.0);
            Neighbour {
                header,
                port: interface.port.0,
                mtu: interface.mtu,
                vlan: interface.vlan | by_dscp(interface.priority_source),
                known: true,
                ..Neighbour::default()
            }
        });
        true
    }

    /// Is the adjacency, resolved or not, on this interface?
    pub fn is_on(&self, AdjacencyIndex(index): AdjacencyIndex, interface: PortIndex) -> bool {
        self.on.get(index as usize) == Some(&interface)
    }

    /// The neighbour, which is used now for a packet of this size; nothing if it does not take such, or is not known.
    #[inline(always)]
    pub fn take(
        &mut self,
        AdjacencyIndex(index): AdjacencyIndex,
        total: usize,
    ) -> Option<&Neighbour> {
        let neighbour = self.all.get_mut(index as usize)?;
        if total > neighbour.mtu as usize {
            return None;
        }
        neighbour.used = true;
        Some(neighbour)
    }

    /// The neighbour, which is used now.
    pub fn get(&mut self, AdjacencyIndex(index): AdjacencyIndex) -> Option<&Neighbour> {
        let neighbour = self.all.get_mut(index as usize).filter(|n| n.known)?;
        neighbour.used = true;
        Some(neighbour)
    }

    /// The neighbour, for those who look and do not use it.
    pub fn known(&self, AdjacencyIndex(index): AdjacencyIndex) -> Option<Adjacency> {
        let neighbour = self.all.get(index as usize).filter(|n| n.known)?;
        let port = self.on[index as usize];
        let [_, _, mac @ .., _, _, _, _, _, _, _, _] = neighbour.header;
        Some(Adjacency {
            port,
            mac: Some(MacAddr(mac)),
        })
    }

    /// An interface takes packets of this size now.
    pub fn set_mtu(&mut self, interface: PortIndex, mtu: u16) {
        for neighbour in self.on(interface) {
            neighbour.mtu = mtu;
        }
    }

    /// The priority of tags comes from elsewhere now.
    pub fn set_priority_source(&mut self, interface: PortIndex, source: PrioritySource) {
        for neighbour in self.on(interface) {
            neighbour.vlan = neighbour.vlan & !BY_DSCP | by_dscp(source);
        }
    }

    /// Forgets the neighbours on an interface.
    pub fn forget(&mut self, interface: PortIndex) {
        for (neighbour, on) in self.all.iter_mut().zip(&mut self.on) {
            if *on == interface {
                (*neighbour, *on) = (Neighbour::default(), NOWHERE);
            }
        }
    }

    fn on(&mut self, interface: PortIndex) -> impl Iterator<Item = &mut Neighbour> {
        let all = self.all.iter_mut().zip(&self.on);
        all.filter(move |(n, on)| n.known && **on == interface)
            .map(|(n, _)| n)
    }

    #[inline(always)]
    pub fn touch(&self, AdjacencyIndex(index): AdjacencyIndex) {
        if let Some(neighbour) = self.all.get(index as usize) {
            dpdk::prefetch_early(neighbour);
        }
    }

    /// Should the control thread be asked for this one now? At most once a second.
    pub fn ask(&mut self, AdjacencyIndex(index): AdjacencyIndex, now: u64, second: u64) -> bool {
        let Some(neighbour) = self.all.get_mut(index as usize) else {
            return false;
        };
        let ask = now >= neighbour.ask_after;
        if ask {
            neighbour.ask_after = now + second;
        }
        ask
    }

    /// Those that were used since the last time.
    pub fn used(&mut self) -> impl Iterator<Item = AdjacencyIndex> + '_ {
        let used = |(index, n): (usize, &mut Neighbour)| {
            core::mem::take(&mut n.used).then_some(AdjacencyIndex(index as u32))
        };
        self.all.iter_mut().enumerate().filter_map(used)
    }
}

/// Maximum number of requests per second.
const PLACES: usize = 256;

/// Rate limit of requests to resolve neighbours on connected nets: one per second for each place, and an address has one place by its
/// hash. Packets to all addresses of a net cause no more than [`PLACES`] requests per second.
pub(crate) struct Asked {
    /// Time of each place's next request, in ticks.
    next: [u64; PLACES],
}

impl Asked {
    pub fn new() -> Self {
        Asked { next: [0; PLACES] }
    }

    /// Should the control thread be asked for this one now?
    pub fn ask(&mut self, port: PortIndex, address: IpAddr, now: u64, second: u64) -> bool {
        // FNV-1a, folded: two families of one host, or neighbours in a row, do not meet in one place.
        let hash = |octets: &[u8]| {
            octets.iter().fold(0x811c_9dc5_u32, |h, &o| {
                (h ^ o as u32).wrapping_mul(0x0100_0193)
            })
        };
        let hash = match address {
            IpAddr::V4(a) => hash(&a.octets()),
            IpAddr::V6(a) => hash(&a.octets()),
        };
        let place = &mut self.next[(hash >> 16 ^ hash ^ port.0 as u32) as usize % PLACES];
        let free = now >= *place;
        if free {
            *place = now + second;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_known_used_and_forgotten() {
        let (mut all, index) = (Adjacencies::new(8), AdjacencyIndex(3));
        let mac = MacAddr([1; 6]);
        let interface = Interface {
            port: PortIndex(1),
            own: MacAddr([2; 6]),
            mtu: 1500,
            vlan: 0,
            instance: crate::InstanceIndex(0),
            source_check: crate::SourceCheck::Off,
            priority_source: PrioritySource::Fixed,
        };
        assert!(all.get(index).is_none() && all.ask(index, 0, 10) && !all.ask(index, 9, 10));
        assert!(all.set(
            index,
            Some((
                Adjacency {
                    port: PortIndex(1),
                    mac: Some(mac)
                },
                &interface
            ))
        ));
        assert!(all.used().next().is_none());
        assert_eq!(
            all.get(index).unwrap().header,
            [0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0]
        );
        assert_eq!(all.used().collect::<Vec<_>>(), [index]);
        assert!(all.used().next().is_none());
        all.set_mtu(PortIndex(2), 9000);
        all.forget(PortIndex(2));
        assert_eq!(all.get(index).unwrap().mtu, 1500);
        all.set_mtu(PortIndex(1), 9000);
        assert_eq!(all.get(index).unwrap().mtu, 9000);
        all.forget(PortIndex(1));
        assert!(all.get(index).is_none());
        assert!(all.set(index, None) && all.get(index).is_none());
        assert!(all.ask(index, 5, 10) && !all.ask(index, 14, 10) && all.ask(index, 15, 10));
        assert!(!all.set(AdjacencyIndex(8), None));
    }

    #[test]
    fn a_missing_neighbour_is_asked_for_once_a_second() {
        let mut asked = Asked::new();
        let address = |s: &str| s.parse::<IpAddr>().unwrap();
        let a = address("198.51.100.7");
        assert!(asked.ask(PortIndex(0), a, 0, 10));
        assert!(!asked.ask(PortIndex(0), a, 9, 10));
        assert!(asked.ask(PortIndex(1), a, 9, 10));
        assert!(asked.ask(PortIndex(1), a, 19, 10));
        assert!(asked.ask(PortIndex(1), address("2001:db8::7"), 19, 10));
    }

    #[test]
    fn packets_to_all_addresses_of_a_net_cause_a_bounded_number_of_requests() {
        let mut asked = Asked::new();
        let mut flood = |now| {
            let all =
                (0..100_000_u128).map(|n| IpAddr::from((0x2001_0db8 << 96 | n).to_be_bytes()));
            all.filter(|address| asked.ask(PortIndex(1), *address, now, 10))
                .count()
        };
        assert_eq!([0, 9, 10].map(&mut flood), [PLACES, 0, PLACES]);
    }
}
