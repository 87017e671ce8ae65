//! The frames that go in, and what has to come out.
use crate::layout::Layout;
use crate::routes::{NEIGHBOURS, Routes};
use dataplane::{InstanceIndex, PortIndex};
use rand::Rng;
use rand::seq::IndexedRandom;
use wire::eth::{Header, IPV4, IPV6, MacAddr, PPPOE_SESSION, Tag, Tags};

pub const ACCESS: PortIndex = PortIndex(0);
pub const CORE: PortIndex = PortIndex(1);
pub const GATEWAY: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// Which family they are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
    /// Every other one.
    Both,
}

/// How large the frames are where they come in, in octets without the check sequence and without a VLAN tag of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Octets(u16),
    /// 7 of 64, 4 of 570 and 1 of 1,500 octets.
    Imix,
    /// 6 of 66 (IPv6: 86), 3 of 594 and 3 of 1,492 octets: half of either family have 559 on the average.
    LargeImix,
}

/// One packet: whose it is, and the address at the other end.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub session: u32,
    address: u128,
    neighbour: u32,
    v6: bool,
    octets: u16,
    layout: Layout,
}

impl Spec {
    /// One of a session in the plain layout.
    pub fn random(
        way: Way,
        family: Family,
        size: Size,
        sessions: u32,
        routes: &Routes,
        random: &mut impl Rng,
    ) -> Self {
        let v6 = match family {
            Family::V4 => false,
            Family::V6 => true,
            Family::Both => random.random(),
        };
        let (address, neighbour) = match v6 {
            true => routes.pick_v6(random),
            false => {
                let (address, neighbour) = routes.pick_v4(random);
                (address.into(), neighbour)
            }
        };
        let octets = match size {
            Size::Octets(octets) => octets,
            Size::Imix => *[64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1500]
                .choose(random)
                .expect("sizes"),
            Size::LargeImix => match random.random_range(0..4) {
                0 => 594,
                1 => 1492,
                _ if v6 => 86,
                _ => 66,
            },
        };
        let least = if way == Way::Up { 30 } else { 14 } + if v6 { 40 } else { 20 } + 8;
        Spec {
            session: random.random_range(0..sessions),
            address,
            neighbour,
            v6,
            octets: octets.max(least),
            layout: Layout::PLAIN,
        }
    }

    /// The same of a session in this instance of a layout, whose routes the address was taken from.
    pub fn within(self, layout: Layout, InstanceIndex(instance): InstanceIndex) -> Self {
        let instances = u32::from(layout.instances);
        Spec {
            session: self.session / instances * instances + u32::from(instance),
            layout,
            ..self
        }
    }

    /// The frame as it comes in.
    pub fn input(&self, way: Way) -> Vec<u8> {
        match way {
            Way::Up => {
                let ip = self.packet(way, 64, self.octets - 30);
                self.access_frame(&ip, GATEWAY, home(self.session))
            }
            Way::Down => {
                let ip = self.packet(way, 64, self.octets - 14);
                self.core_frame(&ip, GATEWAY, neighbour(0))
            }
        }
    }

    /// The frame as it has to go out.
    pub fn output(&self, way: Way) -> Vec<u8> {
        match way {
            Way::Up => {
                let ip = self.packet(way, 63, self.octets - 30);
                self.core_frame(&ip, neighbour(self.neighbour), GATEWAY)
            }
            Way::Down => {
                let ip = self.packet(way, 63, self.octets - 14);
                self.access_frame(&ip, home(self.session), GATEWAY)
            }
        }
    }

    fn access_frame(&self, ip: &[u8], destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(2048);
        Header {
            destination,
            source,
            tags: self.layout.tags(self.session),
            ethertype: PPPOE_SESSION,
        }
        .emit(&mut frame);
        frame.extend([0x11, 0]);
        frame.extend(self.layout.pppoe_id(self.session).to_be_bytes());
        frame.extend((ip.len() as u16 + 2).to_be_bytes());
        frame.extend(if self.v6 { [0, 0x57] } else { [0, 0x21] });
        frame.extend(ip);
        frame
    }

    fn core_frame(&self, ip: &[u8], destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(2048);
        let vlan = self.layout.core_vlan(self.layout.instance(self.session));
        Header {
            destination,
            source,
            tags: Tags {
                outer: vlan.map(Tag::new),
                inner: None,
            },
            ethertype: if self.v6 { IPV6 } else { IPV4 },
        }
        .emit(&mut frame);
        frame.extend(ip);
        frame
    }

    /// TCP without SYN where it has room and the session's number is odd, else UDP.
    fn packet(&self, way: Way, ttl: u8, octets: u16) -> Vec<u8> {
        let own_v4 = address_v4(self.session);
        let own_v6 = address_v6(self.session) | 0x99;
        let header = if self.v6 { 40 } else { 20 };
        let tcp = self.session % 2 == 1 && octets >= header + 20;
        let protocol = if tcp { 6 } else { 17 };
        let mut p = Vec::with_capacity(2048);
        if self.v6 {
            let ends = match way {
                Way::Up => [own_v6, self.address],
                Way::Down => [self.address, own_v6],
            };
            p.extend([0x60, 0, 0, 0]);
            p.extend((octets - 40).to_be_bytes());
            p.extend([protocol, ttl]);
            ends.iter().for_each(|end| p.extend(end.to_be_bytes()));
        } else {
            let ends = match way {
                Way::Up => [own_v4, self.address as u32],
                Way::Down => [self.address as u32, own_v4],
            };
            p.extend([0x45, 0]);
            p.extend(octets.to_be_bytes());
            p.extend([0, 0, 0x40, 0, ttl, protocol, 0, 0]);
            ends.iter().for_each(|end| p.extend(end.to_be_bytes()));
            let sum = wire::checksum::of(&p);
            p[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        if tcp {
            p.extend([
                0x1f, 0x90, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0,
            ]);
        }
        p.resize(octets as usize, FILL);
        p
    }
}

/// Octets in which all headers lie.
pub const HEADERS: usize = 96;

/// What lies behind the headers.
pub const FILL: u8 = 7;

pub fn neighbour(n: u32) -> MacAddr {
    let [_, b, c, d] = (n % NEIGHBOURS).to_be_bytes();
    MacAddr([2, 0, 2, b, c, d])
}

pub fn home(session: u32) -> MacAddr {
    let [_, b, c, d] = session.to_be_bytes();
    MacAddr([2, 0, 1, b, c, d])
}

pub fn address_v4(session: u32) -> u32 {
    0x6440_0000 + session
}

pub fn address_v6(session: u32) -> u128 {
    0x2001_0db8 << 96 | (session as u128) << 64
}
