//! What has to become of a frame, written from the protocols' rules alone, the slow and plain way.
use crate::frames::{self, GATEWAY, Home};
use crate::world::{ACCESS, ACCESS2, CORE, CORE2, ROUTER, ROUTER2, World};
use dataplane::{
    AdjacencyIndex, Destination, InstanceIndex, PortIndex, PuntKind, SessionIndex, SourceCheck,
};
use ipnet::IpNet;
use std::net::IpAddr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Out(u16, Vec<u8>),
    Punt(PuntKind, u16, Vec<u8>),
    Drop(&'static str),
}

use Fate::{Drop, Out, Punt};

pub struct Model {
    pub homes: Vec<Home>,
    /// Of both core ports.
    pub source_check: SourceCheck,
    routes: Vec<(u16, IpNet, Destination)>,
}

fn be(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

impl Model {
    pub fn new(homes: &[Home]) -> Model {
        let mut routes: Vec<_> = World::table()
            .into_iter()
            .map(|(i, p, d)| (i, p.parse().unwrap(), d))
            .collect();
        for net in [
            "0.0.0.0/8",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "224.0.0.0/3",
            "::/127",
            "::ffff:0:0/96",
            "fe80::/10",
            "ff00::/8",
        ] {
            routes.extend([0, 1].map(|i| (i, net.parse().unwrap(), Destination::Discard)));
        }
        for home in homes {
            let to = Destination::Session(SessionIndex(home.index));
            let mut v6 = [0; 16];
            v6[..8].copy_from_slice(&home.v6);
            routes.push((0, IpNet::new(home.v4.into(), 32).unwrap(), to));
            routes.push((0, IpNet::new(v6.into(), 64).unwrap(), to));
        }
        Model {
            homes: homes.to_vec(),
            source_check: SourceCheck::Off,
            routes,
        }
    }

    pub fn fate(&self, port: u16, frame: &[u8]) -> Fate {
        match port {
            ACCESS | ACCESS2 => self.access(port, frame),
            CORE => self.core(port, 0, frame),
            CORE2 => self.core(port, 1, frame),
            _ => unreachable!(),
        }
    }

    fn access(&self, port: u16, frame: &[u8]) -> Fate {
        // Addresses, up to two tags, type.
        let mut tags = vec![];
        let mut rest = frame.get(12..).unwrap_or_default();
        while tags.len() < 2 && rest.len() >= 4 && matches!(be(rest), 0x8100 | 0x88a8) {
            tags.push((be(rest), be(&rest[2..]) & 0xfff));
            rest = &rest[4..];
        }
        if rest.len() < 8 {
            return Drop("truncated");
        }
        let (ethertype, pppoe) = (be(rest), &rest[2..]);
        if !matches!(ethertype, 0x8863 | 0x8864) {
            return Drop("unexpected-type");
        }
        let vid = tags.first().map_or(0, |t| t.1);
        let segment = match vid {
            0 => 1,
            100..=199 => 2,
            300 => 3,
            _ => return Drop("unknown-vlan"),
        };
        let id = be(&pppoe[2..]);
        if ethertype == 0x8863 && id == 0 {
            return Punt(PuntKind::Discovery, port, frame.to_vec());
        }
        let in_segment = |h: &&Home| match h.tags.first().map_or(0, |t| t.1) {
            0 => segment == 1,
            300 => segment == 3,
            _ => segment == 2,
        };
        let Some(home) = self
            .homes
            .iter()
            .find(|h| h.port == port && h.id == id && in_segment(h))
        else {
            return Drop("unknown-session");
        };
        if frame[..6] != GATEWAY {
            return Drop("not-for-us");
        }
        if frame[6..12] != home.mac {
            return Drop("wrong-mac");
        }
        if tags != home.tags {
            return Drop("wrong-tag");
        }
        let control = Punt(
            PuntKind::Session(SessionIndex(home.index)),
            port,
            frame.to_vec(),
        );
        if ethertype == 0x8863 {
            return control;
        }
        let (length, payload) = (be(&pppoe[4..]) as usize, &pppoe[6..]);
        if pppoe[..2] != [0x11, 0] || length < 2 || length > payload.len() {
            return Drop("bad-pppoe");
        }
        let packet = &payload[2..length];
        match be(payload) {
            0x0021 => self.v4_from(home, port, packet),
            0x0057 => self.v6_from(home, packet, control, port),
            0xc021 if matches!(payload.get(2), Some(9 | 10)) => Punt(
                PuntKind::Echo(SessionIndex(home.index)),
                port,
                frame.to_vec(),
            ),
            _ => control,
        }
    }

    fn v4_from(&self, home: &Home, port: u16, packet: &[u8]) -> Fate {
        let packet = match sound_v4(packet) {
            Ok(packet) => packet,
            Err(drop) => return drop,
        };
        if packet[12..16] != home.v4 {
            return Drop("spoofed-source-v4");
        }
        self.route(0, port, Some(home), packet, &[])
    }

    fn v6_from(&self, home: &Home, packet: &[u8], control: Fate, port: u16) -> Fate {
        let packet = match sound_v6(packet) {
            Ok(packet) => packet,
            Err(drop) => return drop,
        };
        let source: [u8; 16] = packet[8..24].try_into().unwrap();
        let (link_local, own) = (
            source[0] == 0xfe && source[1] & 0xc0 == 0x80,
            source[..8] == home.v6,
        );
        let is_control = match packet[6] {
            58 => matches!(packet.get(40), Some(133..=137)),
            17 => packet.len() >= 44 && be(&packet[42..]) == 547,
            _ => false,
        };
        if is_control && (own || link_local || source == [0; 16]) {
            return control;
        }
        if link_local {
            return Drop("link-local");
        }
        if !own {
            return Drop("spoofed-source-v6");
        }
        self.route(0, port, Some(home), packet, &[])
    }

    fn core(&self, port: u16, instance: u16, frame: &[u8]) -> Fate {
        if frame.len() < 14 {
            return Drop("truncated");
        }
        let kernel = Punt(for_kernel(port, frame), port, frame.to_vec());
        if frame[..6] != GATEWAY {
            return if frame[0] & 1 == 1 {
                kernel
            } else {
                Drop("not-for-us")
            };
        }
        let packet = match be(&frame[12..]) {
            0x0800 => sound_v4(&frame[14..]),
            0x86dd => {
                let address = |at: usize| frame.get(14 + at..14 + at + 2).unwrap_or(&[0, 0]);
                let link_local = |a: &[u8]| a[0] == 0xfe && a[1] & 0xc0 == 0x80;
                if frame.len() >= 54
                    && (link_local(address(8))
                        || link_local(address(24))
                        || frame[22..38] == [0; 16])
                {
                    return kernel;
                }
                sound_v6(&frame[14..])
            }
            _ => return kernel,
        };
        match packet {
            Ok(packet) => match self.refused(instance, port, packet) {
                None => self.route(instance, port, None, packet, frame),
                Some(why) => Drop(why),
            },
            Err(drop) => drop,
        }
    }

    /// Why the source of a packet from a core port cannot be.
    fn refused(&self, instance: u16, port: u16, packet: &[u8]) -> Option<&'static str> {
        let (source, martian) = match packet[0] >> 4 == 4 {
            true => {
                let octets = <[u8; 4]>::try_from(&packet[12..16]).unwrap();
                let martian = octets[0] == 0 || octets[0] == 127 || octets[0] >= 224;
                (IpAddr::from(octets), martian)
            }
            false => {
                let octets = <[u8; 16]>::try_from(&packet[8..24]).unwrap();
                let martian = octets[..8] == [0; 8] || octets[0] == 0xff;
                (IpAddr::from(octets), martian)
            }
        };
        let strict = match self.source_check {
            _ if martian => return Some("martian-source"),
            SourceCheck::Off => return None,
            SourceCheck::Loose => false,
            SourceCheck::Strict => true,
        };
        let leaves_by = match self.find(instance, source) {
            None | Some(Destination::Discard) => return Some("unrouted-source"),
            Some(Destination::Session(_) | Destination::Local) => return Some("inside-source"),
            Some(Destination::Adjacency(AdjacencyIndex(0))) => CORE,
            Some(Destination::Adjacency(AdjacencyIndex(1))) => CORE2,
            Some(Destination::Connected(PortIndex(port))) => port,
            Some(Destination::Adjacency(_) | Destination::Group(_)) => u16::MAX,
        };
        (strict && leaves_by != port).then_some("reverse-path")
    }

    /// The route to an address.
    fn find(&self, instance: u16, address: IpAddr) -> Option<Destination> {
        let matching = self
            .routes
            .iter()
            .filter(|(i, net, _)| *i == instance && net.contains(&address));
        let longest = matching.max_by_key(|(_, net, _)| net.prefix_len());
        longest.map(|(_, _, to)| *to)
    }

    /// One hop of a sound packet, from a home or (with its whole frame) from the core.
    fn route(
        &self,
        instance: u16,
        port: u16,
        from: Option<&Home>,
        packet: &[u8],
        frame: &[u8],
    ) -> Fate {
        let v4 = packet[0] >> 4 == 4;
        let destination = match v4 {
            true => IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap()),
            false => IpAddr::from(<[u8; 16]>::try_from(&packet[24..40]).unwrap()),
        };
        let to = match self.find(instance, destination) {
            None => return Drop("no-route"),
            Some(Destination::Discard) => return Drop("discard-route"),
            Some(Destination::Local) => {
                return match from {
                    Some(_) => Punt(
                        PuntKind::Local(InstanceIndex(instance)),
                        port,
                        packet.to_vec(),
                    ),
                    None => Punt(for_kernel(port, frame), port, frame.to_vec()),
                };
            }
            Some(to) => to,
        };
        if packet[if v4 { 8 } else { 7 }] <= 1 {
            return Drop("ttl-expired");
        }
        let packet = &frames::hop(packet);
        let (port, router) = match to {
            Destination::Adjacency(AdjacencyIndex(0)) => (CORE, ROUTER),
            Destination::Adjacency(AdjacencyIndex(1)) => (CORE2, ROUTER2),
            Destination::Session(SessionIndex(index)) => {
                let home = self
                    .homes
                    .iter()
                    .find(|h| h.index == index)
                    .expect("a home");
                if packet.len() > home.mtu {
                    return Drop("too-big");
                }
                return Out(home.port, home.gets(packet));
            }
            _ => return Drop("no-adjacency"),
        };
        Out(port, frames::frame(router, GATEWAY, packet))
    }
}

/// The packet without padding, if its header is sound.
fn sound_v4(bytes: &[u8]) -> Result<&[u8], Fate> {
    if bytes.len() < 20 || bytes[0] >> 4 != 4 {
        return Err(Drop("bad-ipv4"));
    }
    let (header, total) = ((bytes[0] & 15) as usize * 4, be(&bytes[2..]) as usize);
    if header < 20 || total < header || total > bytes.len() {
        return Err(Drop("bad-ipv4"));
    }
    // A sum over a sound header comes out as 0.
    if frames::checksum(&bytes[..header]) != 0 {
        return Err(Drop("bad-checksum"));
    }
    match source_route(&bytes[20..header]) {
        None => Err(Drop("bad-ipv4")),
        Some(true) => Err(Drop("source-route")),
        Some(false) => Ok(&bytes[..total]),
    }
}

/// Is there a source route among options? `None`: they cannot be read.
fn source_route(options: &[u8]) -> Option<bool> {
    let mut at = 0;
    while at < options.len() && options[at] != 0 {
        at += match options[at] {
            1 => 1,
            131 | 137 => return Some(true),
            _ => match *options.get(at + 1)? as usize {
                length if length >= 2 && at + length <= options.len() => length,
                _ => return None,
            },
        };
    }
    Some(false)
}

fn sound_v6(bytes: &[u8]) -> Result<&[u8], Fate> {
    if bytes.len() < 40 || bytes[0] >> 4 != 6 {
        return Err(Drop("bad-ipv6"));
    }
    let packet = bytes
        .get(..40 + be(&bytes[4..]) as usize)
        .ok_or(Drop("bad-ipv6"))?;
    match (packet[6], packet.get(40..44)) {
        (43, Some([_, _, 0, _])) => Err(Drop("routing-header")),
        _ => Ok(packet),
    }
}

/// The kind of a whole frame for the kernel. What a frame has not, it is not.
fn for_kernel(port: u16, frame: &[u8]) -> PuntKind {
    let port = PortIndex(port);
    let at = |offset: usize| frame.get(offset).copied().unwrap_or_default();
    let ethertype = be(&frame[12..]);
    let (protocol, ports) = match ethertype {
        0x0800 => {
            let first = u16::from_be_bytes([at(20), at(21)]) & 0x3fff == 0;
            (at(23), first.then_some(14 + 4 * usize::from(at(14) & 15)))
        }
        0x86dd => (at(20), Some(54)),
        _ => (255, None),
    };
    let port_of = |offset| u16::from_be_bytes([at(offset), at(offset + 1)]);
    let ports = ports.map_or([0; 2], |first| [port_of(first), port_of(first + 2)]);
    let discovery = ethertype == 0x86dd && protocol == 58 && matches!(at(54), 133..=137);
    if ethertype == 0x0806 || discovery {
        return PuntKind::Resolution(port);
    }
    let routing = match protocol {
        89 | 103 => true,
        6 => ports.iter().any(|port| [179, 646].contains(port)),
        17 => (ports.iter()).any(|port| [3784, 3785, 4784, 646, 520, 521].contains(port)),
        _ => false,
    };
    if ethertype < 0x600 || routing {
        PuntKind::Routing(port)
    } else if frame[0] & 1 == 1 {
        PuntKind::Multicast(port)
    } else {
        PuntKind::ForUs(port)
    }
}
