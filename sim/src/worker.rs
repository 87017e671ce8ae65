//! A packet path as the real worker promises it to be, one packet at a time: sessions by port and PPPoE session id,
//! anti-spoofing, and the way to the internet and back.

use dataplane::{PortIndex, Refusal, SessionEntry, SessionIndex, Usage};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use userplane::engine::WorkerCommand;
use wire::eth::{Frame, Header, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::{ipv4, ipv6, nd, ppp, pppoe, udp};

/// What the worker says to a command.
#[derive(Debug)]
pub enum Event {
    /// A session could not be set, and is gone.
    Refused(SessionIndex, Refusal),
    /// Counters, and whether the session is not there (any more).
    Usage(SessionIndex, Usage, bool),
}

/// What becomes of a frame from a home.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// For the default tunnel.
    Discovery,
    /// For the session's tunnel.
    Control(SessionIndex),
    /// An IP packet for the core.
    Forward(Vec<u8>),
    /// Dropped for this reason.
    Drop(&'static str),
}

/// ICMPv6 type of a Redirect (RFC 4861 §4.5).
const REDIRECT: u8 = 137;
/// The port of DHCPv6 servers.
const DHCPV6_SERVER: u16 = 547;

/// Sessions, as the control thread told them, and what they used.
#[derive(Default)]
pub struct Worker {
    entries: BTreeMap<SessionIndex, SessionEntry>,
    usage: BTreeMap<SessionIndex, Usage>,
    by_id: BTreeMap<(PortIndex, u16), SessionIndex>,
    by_address: BTreeMap<IpNet, SessionIndex>,
    /// Addresses that sessions got since somebody looked.
    pub taken: Vec<IpNet>,
}

fn addresses(entry: &SessionEntry) -> impl Iterator<Item = IpNet> + use<> {
    let ipv4 = entry.ipv4.map(|a| IpNet::from(IpAddr::from(a)));
    ipv4.into_iter().chain(entry.ipv6.map(IpNet::from))
}

impl Worker {
    /// Every session.
    pub fn entries(&self) -> impl Iterator<Item = &SessionEntry> {
        self.entries.values()
    }

    /// The session that has an address.
    pub fn owner(&self, address: &IpNet) -> Option<&SessionEntry> {
        self.entries.get(self.by_address.get(address)?)
    }

    /// What a session used so far.
    pub fn usage(&self, index: SessionIndex) -> Usage {
        self.usage.get(&index).copied().unwrap_or_default()
    }

    /// Obeys.
    pub fn obey(&mut self, command: WorkerCommand) -> Option<Event> {
        match command {
            WorkerCommand::Set(entry) => {
                let index = entry.index;
                let refusal = self.set(entry).err()?;
                self.remove(index);
                self.usage.remove(&index);
                Some(Event::Refused(index, refusal))
            }
            WorkerCommand::Read(index) => {
                let gone = !self.entries.contains_key(&index);
                Some(Event::Usage(index, self.usage(index), gone))
            }
            WorkerCommand::Remove(index) => {
                self.remove(index);
                let usage = self.usage.remove(&index).unwrap_or_default();
                Some(Event::Usage(index, usage, true))
            }
        }
    }

    fn set(&mut self, entry: SessionEntry) -> Result<(), Refusal> {
        let id = (entry.port, entry.pppoe_session_id);
        let others = |owner: Option<&SessionIndex>| owner.is_some_and(|i| *i != entry.index);
        if others(self.by_id.get(&id)) {
            return Err(Refusal::IdTaken);
        }
        if addresses(&entry).any(|a| others(self.by_address.get(&a))) {
            return Err(Refusal::AddressTaken);
        }
        self.remove(entry.index);
        self.by_id.insert(id, entry.index);
        self.taken.extend(addresses(&entry));
        self.by_address
            .extend(addresses(&entry).map(|a| (a, entry.index)));
        self.usage.entry(entry.index).or_default();
        self.entries.insert(entry.index, entry);
        Ok(())
    }

    fn remove(&mut self, index: SessionIndex) {
        if let Some(entry) = self.entries.remove(&index) {
            self.by_id.remove(&(entry.port, entry.pppoe_session_id));
            for address in addresses(&entry) {
                self.by_address.remove(&address);
            }
        }
    }

    /// A frame from a home.
    pub fn uplink(&mut self, port: PortIndex, bytes: &[u8]) -> Fate {
        let Ok(frame) = Frame::parse(bytes) else {
            return Fate::Drop("truncated");
        };
        let Ok(packet) = pppoe::Packet::parse(frame.payload) else {
            return Fate::Drop("bad-pppoe");
        };
        let header = &frame.header;
        if header.ethertype == PPPOE_DISCOVERY && packet.session_id == 0 {
            return Fate::Discovery;
        }
        let Some(&index) = self.by_id.get(&(port, packet.session_id)) else {
            return Fate::Drop("unknown-session");
        };
        let entry = &self.entries[&index];
        if header.destination != entry.gateway_mac {
            return Fate::Drop("not-for-us");
        }
        if header.source != entry.peer_mac {
            return Fate::Drop("wrong-mac");
        }
        if header.tags.vids() != entry.tags.vids() {
            return Fate::Drop("wrong-tag");
        }
        match (header.ethertype, ppp::Frame::parse(packet.payload)) {
            (PPPOE_SESSION, Ok(frame)) => self.data(index, &frame),
            (PPPOE_DISCOVERY, _) => Fate::Control(index),
            _ => Fate::Drop("bad-pppoe"),
        }
    }

    fn data(&mut self, index: SessionIndex, frame: &ppp::Frame<'_>) -> Fate {
        let entry = &self.entries[&index];
        let verdict = match frame.protocol {
            ppp::IPV4 => source_v4(entry, frame.payload),
            ppp::IPV6 => source_v6(entry, frame.payload),
            _ => Err(Fate::Control(index)),
        };
        if let Err(fate) = verdict {
            return fate;
        }
        let usage = self.usage.entry(index).or_default();
        usage.up_packets += 1;
        usage.up_octets += frame.payload.len() as u64;
        Fate::Forward(frame.payload.to_vec())
    }

    /// A packet from the core: the frame that it becomes, and at which port; `None` if no session has the address.
    pub fn downlink(&mut self, packet: &[u8]) -> Option<(PortIndex, Vec<u8>)> {
        let (protocol, prefix) = match packet.first()? >> 4 {
            4 => (
                ppp::IPV4,
                IpNet::from(IpAddr::from(
                    ipv4::Packet::parse(packet).ok()?.header.destination,
                )),
            ),
            _ => {
                let address = ipv6::Packet::parse(packet).ok()?.header.destination;
                (ppp::IPV6, IpNet::new(address.into(), 64).ok()?.trunc())
            }
        };
        let index = *self.by_address.get(&prefix)?;
        let entry = &self.entries[&index];
        if packet.len() > usize::from(entry.mtu) {
            return None;
        }
        let usage = self.usage.entry(index).or_default();
        usage.down_packets += 1;
        usage.down_octets += packet.len() as u64;
        Some((entry.port, encapsulate(entry, protocol, packet)))
    }
}

fn encapsulate(entry: &SessionEntry, protocol: u16, packet: &[u8]) -> Vec<u8> {
    let (mut frame, mut payload) = (Vec::new(), Vec::new());
    Header {
        destination: entry.peer_mac,
        source: entry.gateway_mac,
        tags: entry.tags,
        ethertype: PPPOE_SESSION,
    }
    .emit(&mut frame);
    ppp::Frame {
        protocol,
        payload: packet,
    }
    .emit(&mut payload);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id: entry.pppoe_session_id,
        payload: &payload,
    }
    .emit(&mut frame);
    frame
}

fn source_v4(entry: &SessionEntry, bytes: &[u8]) -> Result<(), Fate> {
    match ipv4::Packet::parse(bytes) {
        Ok(packet) if entry.ipv4 == Some(packet.header.source) => Ok(()),
        Ok(_) => Err(Fate::Drop("spoofed-source-v4")),
        Err(_) => Err(Fate::Drop("bad-ipv4")),
    }
}

/// Neighbour discovery and DHCPv6 are for the control plane, which alone takes link-local sources.
fn source_v6(entry: &SessionEntry, bytes: &[u8]) -> Result<(), Fate> {
    let Ok(packet) = ipv6::Packet::parse(bytes) else {
        return Err(Fate::Drop("bad-ipv6"));
    };
    let source = packet.header.source;
    let own = entry.ipv6.is_some_and(|prefix| prefix.contains(&source));
    let link = source.is_unicast_link_local();
    let control = match packet.header.next_header {
        ipv6::ICMPV6 => {
            let discovery = nd::ROUTER_SOLICITATION..=REDIRECT;
            packet
                .payload
                .first()
                .is_some_and(|kind| discovery.contains(kind))
        }
        ipv6::UDP => {
            udp::Datagram::parse(packet.payload).is_ok_and(|d| d.destination_port == DHCPV6_SERVER)
        }
        _ => false,
    };
    match (own, control) {
        (true, false) => Ok(()),
        _ if control && (own || link || source.is_unspecified()) => Err(Fate::Control(entry.index)),
        _ if link => Err(Fate::Drop("link-local")),
        _ => Err(Fate::Drop("spoofed-source-v6")),
    }
}
