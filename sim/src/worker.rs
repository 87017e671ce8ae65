//! A packet path as the real workers promise it to be, one packet at a time: sessions by port and PPPoE session id,
//! anti-spoofing, and the way to the internet and back.
//!
//! As there, host routes count when a command is given, and a session when its worker comes to it; each worker comes to its
//! own commands in its own time. Which session is whose, its index and its PPPoE session id say by their last bits.

use dataplane::{PortIndex, Refusal, SessionEntry, SessionIndex, Usage, Volume, host_routes};
use ipnet::IpNet;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use userplane::engine::WorkerCommand;
use wire::eth::{Frame, Header, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::{ipv4, ipv6, nd, ppp, pppoe, udp};

/// What a worker says to a command.
#[derive(Debug)]
pub enum Event {
    /// A session could not be set, and is gone.
    Refused(SessionIndex, Refusal),
    /// Counters, and whether the session is not there (any more).
    Usage(SessionIndex, Usage, bool),
}

/// Result of forwarding a frame from a home.
#[derive(Debug, PartialEq, Eq)]
pub enum UplinkResult {
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

/// What waits for a worker.
enum Command {
    /// With its serial number.
    Set(SessionEntry, u32),
    Refuse(SessionIndex, Refusal),
    Read(SessionIndex),
    Remove(SessionIndex),
}

impl Command {
    fn index(&self) -> SessionIndex {
        match self {
            Command::Set(entry, _) => entry.index,
            Command::Refuse(index, _) | Command::Read(index) | Command::Remove(index) => *index,
        }
    }
}

/// A worker: its sessions, and what they used.
#[derive(Default)]
struct Worker {
    commands: VecDeque<Command>,
    entries: BTreeMap<SessionIndex, SessionEntry>,
    usage: BTreeMap<SessionIndex, Usage>,
    by_id: BTreeMap<(PortIndex, u16), SessionIndex>,
    /// It does nothing.
    stands_still: bool,
}

/// All workers of a user plane, and the host routes of their sessions.
pub struct Workers {
    all: Vec<Worker>,
    /// Sessions as the control thread admitted them, with their serial numbers.
    admitted: BTreeMap<SessionIndex, (SessionEntry, u32)>,
    by_address: BTreeMap<IpNet, SessionIndex>,
    serial: u32,
    /// Addresses that sessions got since somebody looked.
    pub taken: Vec<IpNet>,
}

impl Workers {
    /// So many workers, which have nothing.
    pub fn new(workers: u16) -> Self {
        Workers {
            all: (0..workers).map(|_| Worker::default()).collect(),
            admitted: BTreeMap::new(),
            by_address: BTreeMap::new(),
            serial: 0,
            taken: Vec::new(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The worker of an index or a PPPoE session id.
    pub fn of(&self, number: u32) -> usize {
        number as usize % self.all.len()
    }

    /// Every session, and whether its host routes lead to it.
    pub fn entries(&self) -> impl Iterator<Item = (&SessionEntry, bool)> {
        let all = self.all.iter().flat_map(|worker| worker.entries.values());
        all.map(|entry| {
            let leads = |net| self.by_address.get(&net) == Some(&entry.index);
            (entry, host_routes(entry).all(leads))
        })
    }

    /// The host routes.
    pub fn routes(&self) -> impl Iterator<Item = (IpNet, SessionIndex)> {
        self.by_address.iter().map(|(net, index)| (*net, *index))
    }

    /// Sessions of which a worker has not heard the last yet.
    pub fn commanded(&self) -> impl Iterator<Item = SessionIndex> {
        let waiting = self.all.iter().flat_map(|worker| &worker.commands);
        waiting.map(Command::index)
    }

    /// The session that has an address.
    pub fn owner(&self, address: &IpNet) -> Option<&SessionEntry> {
        let (entry, _) = self.admitted.get(self.by_address.get(address)?)?;
        Some(entry)
    }

    /// Whether something waits for a worker that could see to it.
    pub fn has_commands(&self, worker: usize) -> bool {
        let worker = &self.all[worker];
        !worker.stands_still && !worker.commands.is_empty()
    }

    /// A worker stands still, or goes on.
    pub fn stand_still(&mut self, worker: usize, still: bool) {
        self.all[worker].stands_still = still;
    }

    /// Every counter begins anew.
    pub fn forget_usage(&mut self) {
        let usage = self.all.iter_mut().flat_map(|w| w.usage.values_mut());
        usage.for_each(|usage| *usage = Usage::default());
    }

    /// Gives a command.
    pub fn command(&mut self, command: WorkerCommand) {
        let command = match command {
            WorkerCommand::Set(entry) => match self.admit(&entry) {
                Ok(()) => Command::Set(entry, self.serial),
                Err(reason) => {
                    self.withdraw(entry.index);
                    Command::Refuse(entry.index, reason)
                }
            },
            WorkerCommand::Read(index) => Command::Read(index),
            // no session moves here
            WorkerCommand::Forget(_) => return,
            WorkerCommand::Remove(index) => {
                self.withdraw(index);
                Command::Remove(index)
            }
        };
        let worker = self.of(command.index().0);
        self.all[worker].commands.push_back(command);
    }

    fn admit(&mut self, entry: &SessionEntry) -> Result<(), Refusal> {
        if self.of(entry.index.0) != self.of(entry.pppoe_session_id.into()) {
            return Err(Refusal::Malformed);
        }
        let others = |owner: Option<&SessionIndex>| owner.is_some_and(|i| *i != entry.index);
        if host_routes(entry).any(|a| others(self.by_address.get(&a))) {
            return Err(Refusal::AddressTaken);
        }
        self.withdraw(entry.index);
        self.serial += 1;
        self.taken.extend(host_routes(entry));
        let routes = host_routes(entry).map(|a| (a, entry.index));
        self.by_address.extend(routes);
        let admitted = (entry.clone(), self.serial);
        self.admitted.insert(entry.index, admitted);
        Ok(())
    }

    fn withdraw(&mut self, index: SessionIndex) {
        if let Some((entry, _)) = self.admitted.remove(&index) {
            for address in host_routes(&entry) {
                self.by_address.remove(&address);
            }
        }
    }

    /// A worker comes to its commands: what it says to them.
    pub fn obey(&mut self, worker: usize) -> Vec<Event> {
        let mut said = Vec::new();
        if !self.has_commands(worker) {
            return said;
        }
        for command in std::mem::take(&mut self.all[worker].commands) {
            let (index, serial) = match &command {
                Command::Set(entry, serial) => (entry.index, Some(*serial)),
                command => (command.index(), None),
            };
            let event = self.all[worker].obey(command);
            // One that the worker itself refused has no routes any more, unless it was set again meanwhile.
            let admitted = self.admitted.get(&index).map(|(_, serial)| *serial);
            if matches!(event, Some(Event::Refused(..))) && serial.is_some() && admitted == serial {
                self.withdraw(index);
            }
            said.extend(event);
        }
        said
    }

    /// A frame from a home.
    pub fn uplink(&mut self, port: PortIndex, bytes: &[u8]) -> UplinkResult {
        let Ok(frame) = Frame::parse(bytes) else {
            return UplinkResult::Drop("truncated");
        };
        let Ok(packet) = pppoe::Packet::parse(frame.payload) else {
            return UplinkResult::Drop("bad-pppoe");
        };
        if frame.header.ethertype == PPPOE_DISCOVERY && packet.session_id == 0 {
            return UplinkResult::Discovery;
        }
        let worker = self.of(packet.session_id.into());
        self.all[worker].uplink(port, &frame, &packet)
    }

    /// A packet from the core: the frame that it becomes, and at which port; `None` if no session has the address.
    pub fn downlink(&mut self, packet: &[u8]) -> Option<(PortIndex, Vec<u8>)> {
        let (protocol, to) = match packet.first()? >> 4 {
            4 => {
                let to = ipv4::Packet::parse(packet).ok()?.header.destination;
                (ppp::IPV4, IpAddr::from(to))
            }
            _ => {
                let to = ipv6::Packet::parse(packet).ok()?.header.destination;
                (ppp::IPV6, IpAddr::from(to))
            }
        };
        let index = self.longest_match(to)?;
        let worker = self.of(index.0);
        self.all[worker].downlink(index, protocol, packet)
    }

    /// The session to which the longest prefix with an address leads.
    fn longest_match(&self, address: IpAddr) -> Option<SessionIndex> {
        let longest = IpNet::from(address).max_prefix_len();
        let nets = (1..=longest)
            .rev()
            .map(|length| IpNet::new(address, length));
        let mut known = nets.filter_map(|net| self.by_address.get(&net.ok()?.trunc()));
        known.next().copied()
    }
}

impl Worker {
    fn obey(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Set(entry, _) => {
                let index = entry.index;
                self.set(entry)
                    .err()
                    .map(|reason| self.refuse(index, reason))
            }
            Command::Refuse(index, reason) => Some(self.refuse(index, reason)),
            Command::Read(index) => {
                let gone = !self.entries.contains_key(&index);
                let usage = self.usage.get(&index).copied().unwrap_or_default();
                Some(Event::Usage(index, usage, gone))
            }
            Command::Remove(index) => {
                self.remove(index);
                let usage = self.usage.remove(&index).unwrap_or_default();
                Some(Event::Usage(index, usage, true))
            }
        }
    }

    fn refuse(&mut self, index: SessionIndex, reason: Refusal) -> Event {
        self.remove(index);
        self.usage.remove(&index);
        Event::Refused(index, reason)
    }

    fn set(&mut self, entry: SessionEntry) -> Result<(), Refusal> {
        let id = (entry.port, entry.pppoe_session_id);
        if self.by_id.get(&id).is_some_and(|i| *i != entry.index) {
            return Err(Refusal::IdTaken);
        }
        self.remove(entry.index);
        self.by_id.insert(id, entry.index);
        self.usage.entry(entry.index).or_default();
        self.entries.insert(entry.index, entry);
        Ok(())
    }

    fn remove(&mut self, index: SessionIndex) {
        if let Some(entry) = self.entries.remove(&index) {
            self.by_id.remove(&(entry.port, entry.pppoe_session_id));
        }
    }

    fn uplink(
        &mut self,
        port: PortIndex,
        frame: &Frame<'_>,
        packet: &pppoe::Packet<'_>,
    ) -> UplinkResult {
        if self.stands_still {
            return UplinkResult::Drop("worker stands still");
        }
        let Some(&index) = self.by_id.get(&(port, packet.session_id)) else {
            return UplinkResult::Drop("unknown-session");
        };
        let (header, entry) = (&frame.header, &self.entries[&index]);
        if header.destination != entry.gateway_mac {
            return UplinkResult::Drop("not-for-us");
        }
        if header.source != entry.peer_mac {
            return UplinkResult::Drop("wrong-mac");
        }
        if header.tags.vids() != entry.tags.vids() {
            return UplinkResult::Drop("wrong-tag");
        }
        match (header.ethertype, ppp::Frame::parse(packet.payload)) {
            (PPPOE_SESSION, Ok(frame)) => self.data(index, &frame),
            (PPPOE_DISCOVERY, _) => UplinkResult::Control(index),
            _ => UplinkResult::Drop("bad-pppoe"),
        }
    }

    fn data(&mut self, index: SessionIndex, frame: &ppp::Frame<'_>) -> UplinkResult {
        let entry = &self.entries[&index];
        let verdict = match frame.protocol {
            ppp::IPV4 => source_v4(entry, frame.payload),
            ppp::IPV6 => source_v6(entry, frame.payload),
            _ => Err(UplinkResult::Control(index)),
        };
        if let Err(result) = verdict {
            return result;
        }
        let volume = self.volume(index, frame.protocol);
        volume.up_packets += 1;
        volume.up_octets += frame.payload.len() as u64;
        UplinkResult::Forward(frame.payload.to_vec())
    }

    fn downlink(
        &mut self,
        index: SessionIndex,
        protocol: u16,
        packet: &[u8],
    ) -> Option<(PortIndex, Vec<u8>)> {
        if self.stands_still {
            return None;
        }
        let entry = self.entries.get(&index)?;
        if packet.len() > usize::from(entry.packets.largest_packet()) {
            return None;
        }
        let sent = (entry.port, encapsulate(entry, protocol, packet));
        let volume = self.volume(index, protocol);
        volume.down_packets += 1;
        volume.down_octets += packet.len() as u64;
        Some(sent)
    }

    /// What counts a session's packets of a PPP protocol.
    fn volume(&mut self, index: SessionIndex, protocol: u16) -> &mut Volume {
        let usage = self.usage.entry(index).or_default();
        match protocol {
            ppp::IPV6 => &mut usage.ipv6,
            _ => &mut usage.ipv4,
        }
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

fn owns(entry: &SessionEntry, source: impl Into<IpAddr>) -> bool {
    let source = source.into();
    host_routes(entry).any(|net| net.contains(&source))
}

fn source_v4(entry: &SessionEntry, bytes: &[u8]) -> Result<(), UplinkResult> {
    match ipv4::Packet::parse(bytes) {
        Ok(packet) if owns(entry, packet.header.source) => Ok(()),
        Ok(_) => Err(UplinkResult::Drop("spoofed-source-v4")),
        Err(_) => Err(UplinkResult::Drop("bad-ipv4")),
    }
}

/// Neighbour discovery and DHCPv6 are for the control plane, which alone takes link-local sources.
fn source_v6(entry: &SessionEntry, bytes: &[u8]) -> Result<(), UplinkResult> {
    let Ok(packet) = ipv6::Packet::parse(bytes) else {
        return Err(UplinkResult::Drop("bad-ipv6"));
    };
    let source = packet.header.source;
    let own = owns(entry, source);
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
            let to = packet.header.destination;
            (to.is_multicast() || to.is_unicast_link_local())
                && udp::Datagram::parse(packet.payload)
                    .is_ok_and(|d| d.destination_port == DHCPV6_SERVER)
        }
        _ => false,
    };
    match (own, control) {
        (true, false) => Ok(()),
        _ if control && (own || link || source.is_unspecified()) => {
            Err(UplinkResult::Control(entry.index))
        }
        _ if link => Err(UplinkResult::Drop("link-local")),
        _ => Err(UplinkResult::Drop("spoofed-source-v6")),
    }
}
