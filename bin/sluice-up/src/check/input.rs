//! The packets of a capture, and the way that each comes.

use super::conf::Conf;
use super::plane::{Names, Plane};
use dataplane::{Inject, InstanceIndex, PortIndex};
use dpdk::BURST;
use std::fmt;
use wire::pcap::{Capture, ETHERNET, Interface, Packet, RAW_IP};

/// How packets come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a port.
    Port(String),
    /// From the gateway itself, to be sent by a port or subinterface as they are.
    Frame(PortIndex),
    /// From the gateway itself, to be routed in an instance.
    Route(InstanceIndex),
}

/// A capture whose packets can be sent.
pub struct Input<'a> {
    capture: &'a Capture<'a>,
    /// Of each of its interfaces.
    ways: Vec<Way>,
}

impl<'a> Input<'a> {
    /// Says how the packets come, or what is wrong.
    pub fn new(conf: &Conf, names: &Names, capture: &'a Capture<'a>) -> Result<Self, String> {
        let mut cut = (1..)
            .zip(&capture.packets)
            .filter(|(_, p)| p.octets.len() < p.length as usize);
        if let Some((n, Packet { length, octets, .. })) = cut.next() {
            let captured = octets.len();
            return Err(format!(
                "packet {n} was cut when it was captured: {captured} of {length} octets; tcpdump takes whole ones with `-s 0`"
            ));
        }
        let ways = capture.interfaces.iter().map(|i| way(conf, names, i));
        let ways = ways.collect::<Result<_, _>>()?;
        Ok(Input { capture, ways })
    }

    /// The packets that come at once, one round after the other: one way, one time, a burst at most.
    pub fn rounds(&self) -> Vec<Round<'_>> {
        let packets = &self.capture.packets;
        let same = |a: &Packet<'_>, b: &Packet<'_>| (a.at, a.interface) == (b.at, b.interface);
        let mut first = 0;
        let bursts = packets.chunk_by(same).flat_map(|all| all.chunks(BURST));
        let round = |packets: &'a [Packet<'a>]| {
            let begins = first;
            first += packets.len();
            let way = &self.ways[packets[0].interface];
            Round {
                first: begins,
                way,
                packets,
            }
        };
        bursts.map(round).collect()
    }
}

fn way(conf: &Conf, names: &Names, interface: &Interface<'_>) -> Result<Way, String> {
    let name = interface.name.unwrap_or_default();
    let link = |way, link: u16| match interface.link == link {
        true => Ok(way),
        false => Err(format!(
            "interface `{name}` has link type {}: expected {link}",
            interface.link
        )),
    };
    if let Some(of) = name.strip_prefix("gateway/") {
        return match (names.instance(of), names.interface(of)) {
            (Some(instance), _) if interface.link == RAW_IP => Ok(Way::Route(instance)),
            (_, Some(port)) => link(Way::Frame(port), ETHERNET),
            (Some(instance), None) => link(Way::Route(instance), RAW_IP),
            (None, None) => Err(format!(
                "interface `{name}`: there is neither a port nor a network instance `{of}`"
            )),
        };
    }
    match (conf.ports.contains_key(name), &conf.input) {
        (true, _) => link(Way::Port(name.into()), ETHERNET),
        (false, Some(port)) => link(Way::Port(port.clone()), ETHERNET),
        (false, None) => Err(match interface.name {
            Some(_) => {
                format!("interface `{name}` is no port: `input` may name the one that is meant")
            }
            None => {
                "its interfaces have no names: `input` has to name the port that is meant".into()
            }
        }),
    }
}

/// Packets that come at once.
pub struct Round<'a> {
    /// The place of the first among all, from 0 on.
    pub first: usize,
    /// How they come.
    pub way: &'a Way,
    packets: &'a [Packet<'a>],
}

/// Their numbers, from 1 on.
impl fmt::Display for Round<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packets.len() {
            1 => write!(f, "{}", self.first + 1),
            n => write!(f, "{}-{}", self.first + 1, self.first + n),
        }
    }
}

impl Round<'_> {
    /// Sends them.
    pub fn send(&self, plane: &mut Plane) -> Result<(), String> {
        for packet in self.packets {
            let sent = match self.way {
                Way::Port(name) => plane.send(name, packet.octets),
                Way::Frame(port) => plane.inject(Inject::Port(*port, packet.octets)),
                Way::Route(instance) => plane.inject(Inject::Route(*instance, packet.octets)),
            };
            sent.map_err(|why| format!("packet {self}: {why}"))?;
        }
        Ok(())
    }
}
