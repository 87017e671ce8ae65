//! What passes between the control thread and the workers: commands' subjects, events, punts, counters.
use crate::compiled::MOST_CLASSES;
use crate::punt::{PuntClass, PuntKind, PuntLimits};
use crate::queues::{PartState, QueueState};
use crate::tables::classes::ClassCounts;
use core::net::{IpAddr, Ipv4Addr};
use core::num::NonZeroU16;
use core::ops::RangeInclusive;
use ipnet::{IpNet, Ipv6Net};
use policy::{Direction, PacketSettings, Rate};
use wire::eth::{MacAddr, Tags};

/// A logical interface, chosen by the control thread: a port, or a subinterface of a core port; 0 to
/// [`Limits::interfaces`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortIndex(pub u16);

/// A network instance (VRF); 0 to [`Limits::instances`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceIndex(pub u16);

/// A session's place in the tables, chosen by the control thread; 0 to [`Limits::sessions`] - 1. Divided by
/// [`Config::workers`] it leaves the worker of the session's PPPoE session id, by [`Lanes::even`](wire::pfcp::Lanes::even).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionIndex(pub u32);

/// An adjacency, chosen by the control thread; 0 to [`Limits::adjacencies`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdjacencyIndex(pub u32);

/// A group of adjacencies, chosen by the control thread; 0 to [`Limits::groups`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupIndex(pub u32);

/// What the data plane is made of. Ports come later ([`Controller::add_port`](crate::Controller::add_port)), and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Workers: 1, 2, 4, 8 or 16.
    pub workers: u16,
    /// How large the tables may become.
    pub limits: Limits,
    /// How much may be punted, by each worker.
    pub punts: PuntLimits,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: 1,
            limits: Limits::default(),
            punts: PuntLimits::default(),
        }
    }
}

/// A port and its part.
pub struct PortConfig {
    /// The open port.
    pub port: dpdk::Port,
    /// The address that the gateway has there, if not the device's own. On access ports sessions have theirs.
    pub mac: Option<MacAddr>,
    /// Where it leads.
    pub role: Role,
}

/// Where a port leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// To subscribers.
    Access {
        /// The access segments, which do not overlap.
        segments: Vec<Segment>,
    },
    /// To the core of a network instance.
    Core {
        /// The instance that packets from there are routed in.
        instance: InstanceIndex,
    },
}

/// An access segment, which has PPPoE session ids of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What the segment is known by on its port when the port's segments change: sessions stay whose VLAN stays in the
    /// segment of the same id.
    pub id: u16,
    /// Its (outer) VLAN ids, 0 to 4095; untagged frames count as VLAN 0.
    pub vlans: Vec<RangeInclusive<u16>>,
}

impl Segment {
    /// The only segment of a port: every VLAN, and untagged frames.
    pub fn whole_port() -> Vec<Segment> {
        vec![Segment {
            id: 0,
            vlans: vec![0..=4095],
        }]
    }
}

/// Rates of the frames to the sessions of an access segment whose policies have queues, in octets of the wire (IEEE 802.3: preamble, gap and
/// frame check sequence included).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentRates {
    /// Which segment of the port it is.
    pub id: u16,
    /// Its (outer) VLAN ids, 0 to 4095.
    pub vlans: Vec<RangeInclusive<u16>>,
    /// Rate of all of them together.
    pub rate: Option<Rate>,
    /// Rate of each.
    pub vlan_rate: Option<Rate>,
}

/// How the source of a packet from a core port or subinterface is checked (RFC 3704 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceCheck {
    /// Not at all.
    #[default]
    Off,
    /// It has a route that does not discard, and is neither a subscriber's nor the gateway's own (§2.4).
    Loose,
    /// In addition, the route leaves by the interface on which the packet came (§2.2).
    Strict,
}

/// What is forwarded of packets with IPv4 options (RFC 7126).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ipv4Options {
    /// All.
    Forward,
    /// Those without a source route, and whose options can be read.
    #[default]
    DropSourceRoutes,
    /// None.
    Drop,
}

/// A part of a core port: the frames of one VLAN (IEEE 802.1Q). They are sent with priority 0; of what is received the
/// priority is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subinterface {
    /// The core port.
    pub port: PortIndex,
    /// Its VLAN id, 1 to 4094.
    pub vlan: u16,
    /// The instance that packets from there are routed in.
    pub instance: InstanceIndex,
    /// The largest IP packet, in octets.
    pub mtu: u16,
}

/// How large the tables may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ports and subinterfaces together. (Of ports there are at most [`dpdk::MAX_PORTS`].)
    pub interfaces: u16,
    /// Access segments of all ports together.
    pub segments: u16,
    /// Network instances.
    pub instances: u16,
    /// Sessions.
    pub sessions: u32,
    /// Adjacencies.
    pub adjacencies: u32,
    /// Groups of adjacencies.
    pub groups: u32,
    /// Routes in all instances, host routes of sessions included.
    pub routes: usize,
    /// Packets that wait on their way from one worker to another.
    pub handed_over: u32,
    /// Packets of a worker that wait for the control thread, a power of two.
    pub punted: u32,
    /// Policies of the packets of a direction.
    pub policies: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            interfaces: 512,
            segments: 8192,
            instances: 1,
            sessions: 1 << 17,
            adjacencies: 4096,
            groups: 1024,
            routes: 1 << 21,
            handed_over: 2048,
            punted: 2048,
            policies: 4096,
        }
    }
}

/// A rate of packets and what may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntRate {
    /// Packets a second.
    pub per_second: u32,
    /// Packets at once.
    pub burst: u32,
}

/// A policy of the packets of one direction, chosen by the control thread; 1 to [`Limits::policies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyIndex(pub NonZeroU16);

/// The policies that a session's packets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Of packets from the subscriber.
    pub up: Option<PolicyIndex>,
    /// Of packets to the subscriber.
    pub down: Option<PolicyIndex>,
}

/// What the policy of a session has done to the packets of a direction, since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyState {
    /// The policy that they pass. `None`: the session has only a rate.
    pub policy: Option<PolicyIndex>,
    /// Packets that were denied.
    pub denied_packets: u64,
    /// Octets of these IP packets.
    pub denied_octets: u64,
    /// Packets above the rate, which were dropped.
    pub exceeded_packets: u64,
    /// Packets above the rate of all sessions of the subscriber together, which were dropped: those of all its sessions.
    pub subscriber_exceeded_packets: u64,
    /// Packets above the committed rate of the policer, which passed.
    pub yellow_packets: u64,
    /// What happened to the packets of each class of the policy, in their order, since it has these classes. `None`: no packet of the session
    /// was in one since then.
    pub classes: Option<[ClassCounts; MOST_CLASSES]>,
    /// Queues of the packets to the subscriber: without a class, and of each class of the policy in their order. `None`: none has waited.
    pub queues: Option<[QueueState; MOST_CLASSES + 1]>,
    /// What denied the last one. `None`: none was denied.
    pub last_denial: Option<LastDenial>,
}

/// What denied the last packet that was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastDenial {
    /// Position of the rule in its policy, from 0. `None`: no rule matched the packet.
    pub rule: Option<u16>,
    /// [`CompiledPolicy::compilation`](crate::CompiledPolicy::compilation) of that policy, which may not be in force any more.
    pub compilation: u32,
}

/// A subscriber's session, as the worker needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// Its place in the tables.
    pub index: SessionIndex,
    /// The access port.
    pub port: PortIndex,
    /// The VLAN tags, with their TPIDs. Their priorities are not looked at: what is sent has that of `packets`.
    pub tags: Tags,
    /// The subscriber's address.
    pub peer_mac: MacAddr,
    /// The gateway's address towards the subscriber (the virtual one of its group): the source of what is sent to it,
    /// and the destination that its frames must have. The port has to receive what is sent there.
    pub gateway_mac: MacAddr,
    /// PPPoE session id within the access segment, never 0.
    pub pppoe_session_id: u16,
    /// The network instance.
    pub instance: InstanceIndex,
    /// How its policy treats its packets.
    pub packets: PacketSettings,
    /// Which policies its packets pass.
    pub policies: Policies,
    /// The subscriber handle that ties sessions together (QER Correlation ID).
    pub subscriber: u64,
    /// The IPv4 address, once the family is up; its host route comes with the session.
    pub ipv4: Option<Ipv4Addr>,
    /// The IPv6 prefix (a /64), once the family is up; its route comes with the session.
    pub ipv6: Option<Ipv6Net>,
    /// What else is routed to the subscriber and may be sent from: delegated prefixes, networks behind its router. Workers do
    /// not have it, as they find it in the routes.
    pub routed: Box<[IpNet]>,
}

/// What a session has sent and received, since it was first set: octets and packets of IP, without PPP and what is
/// below. Upstream counts what passed anti-spoofing, downstream what was sent towards the subscriber.
/// Control packets (discovery, PPP's own protocols, neighbour discovery, DHCPv6) are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// IPv4 packets.
    pub ipv4: Volume,
    /// IPv6 packets.
    pub ipv6: Volume,
}

/// Packets and their octets in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets from the subscriber.
    pub up_packets: u64,
    /// Octets from the subscriber.
    pub up_octets: u64,
    /// Packets to the subscriber.
    pub down_packets: u64,
    /// Octets to the subscriber.
    pub down_octets: u64,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// To a neighbour on a core port.
    Adjacency(AdjacencyIndex),
    /// To a subscriber.
    Session(SessionIndex),
    /// To the gateway itself.
    Local,
    /// Nowhere.
    Discard,
    /// Onto the net of a core port or subinterface, to a neighbour that is not known yet: [`Event::NeighbourMissing`] says which.
    /// Known ones have host routes to their adjacencies.
    Connected(PortIndex),
    /// To one of the neighbours of a group: each flow to one of them. To nobody, if the group has none.
    Group(GroupIndex),
}

/// A neighbour on a core port or subinterface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Adjacency {
    /// The port or subinterface.
    pub port: PortIndex,
    /// The neighbour's address. `None`: it is not resolved.
    pub mac: Option<MacAddr>,
}

/// What the worker reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The answer to `read_usage` and, as the last of a session, to `remove_session`. Unasked, with `removed`, of a
    /// session whose port or VLAN was taken away.
    Usage {
        /// The session.
        index: SessionIndex,
        /// What it used, cumulative.
        usage: Usage,
        /// The session is not (or no longer) there.
        removed: bool,
    },
    /// The answer to `read_policy`.
    PolicyState {
        /// The session.
        index: SessionIndex,
        /// Which packets.
        direction: Direction,
        /// What its policy did to them. `None`: it has none.
        state: Option<Box<PolicyState>>,
    },
    /// The answer to `read_queues`.
    Queues {
        /// The number to go on with; `None`: all queues are counted.
        next: Option<u32>,
        /// Parts of the port with queues at the worker, of all that there are as many as there was room for.
        parts: Vec<PartState>,
        /// How many there are.
        all: usize,
    },
    /// A session could not be set, and is not there now: its place is free again.
    SessionRefused {
        /// The session.
        index: SessionIndex,
        /// Why.
        reason: Refusal,
    },
    /// A route could not be set.
    RouteRefused {
        /// The instance.
        instance: InstanceIndex,
        /// The prefix.
        prefix: ipnet::IpNet,
    },
    /// An adjacency could not be set: its index is beyond the limit, or the port does not exist or is no core port.
    AdjacencyRefused(AdjacencyIndex),
    /// Packets went to this adjacency in the last seconds: keep the neighbour's entry fresh.
    AdjacencyUsed(AdjacencyIndex),
    /// A packet wanted an adjacency that is not set (at most one event a second for each).
    AdjacencyMissing(AdjacencyIndex),
    /// A packet wanted a neighbour on a connected net (at most a few events a second for each).
    NeighbourMissing {
        /// The port or subinterface.
        port: PortIndex,
        /// The neighbour.
        address: IpAddr,
    },
}

/// Why a session was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another session has the PPPoE session id in this segment.
    IdTaken,
    /// The port is no access port, or the VLAN is in none of its segments.
    NoSegment,
    /// Another session, or the gateway itself, has the address or prefix.
    AddressTaken,
    /// There is no room for more sessions or routes.
    TableFull,
    /// The tags or the PPPoE session id are not such as can be on the wire, or the port or instance does not exist, or index and
    /// PPPoE session id name different workers.
    Malformed,
}

/// A packet that left the path for the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Punt<'a> {
    /// What it is.
    pub kind: PuntKind,
    /// The port where it arrived.
    pub port: PortIndex,
    /// The number of the port's member by which it came, if the port has several ([`dpdk::Port::join`]).
    pub member: u16,
    /// The Ethernet frame or the IP packet: [`PuntKind`] says which.
    pub frame: &'a [u8],
}

/// Sessions that can be sampled at once.
pub const MAX_SAMPLED: usize = 128;
/// Maximum number of sessions of which the hits of each rule are counted at once.
pub const MAX_WATCHED: usize = 8;

/// How many packets of a session are shown to the control thread; a second's share does not come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRate {
    /// One in so many, at least 1.
    pub one_in: u32,
    /// At most so many in a second.
    pub per_second: u32,
}

/// A packet that the control thread sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject<'a> {
    /// A whole Ethernet frame, sent by a port as it is, or by a subinterface with its tag.
    Port(PortIndex, &'a [u8]),
    /// A whole Ethernet frame, sent by a member of a port with several, by its number: at once, whatever waits for the port.
    Member(PortIndex, u16, &'a [u8]),
    /// An IP packet of the gateway itself, routed in an instance; its time to live is left alone.
    Route(InstanceIndex, &'a [u8]),
}

/// A command or packet was not taken because a queue is full; try again once the worker has caught up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker's queue is full")]
pub struct Busy;

/// Why a group is not set. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The index is beyond [`Limits::groups`].
    #[error("group {} is beyond the limit", .0.0)]
    NoPlace(GroupIndex),
    /// It has more members than [`MAX_MEMBERS`](crate::MAX_MEMBERS).
    #[error("a group of {0} neighbours is too large")]
    Members(usize),
}

/// Why a port or subinterface is not added, changed or removed. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Try again once the worker has caught up.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The index is beyond [`Limits::interfaces`], or taken, also by a port that has not been handed back.
    #[error("interface {} is taken or beyond the limit", .0.0)]
    NoPlace(PortIndex),
    /// There is no such interface, or it is not of the kind that is asked for.
    #[error("interface {} is not there, or is another kind of interface", .0.0)]
    Unknown(PortIndex),
    /// There is no such network instance.
    #[error("there is no network instance {}", .0.0)]
    NoInstance(InstanceIndex),
    /// The VLAN is none (1 to 4094), or another subinterface of the port has it.
    #[error("VLAN {0} is none, or another subinterface has it")]
    Vlan(u16),
    /// The access segments contradict each other, or are too many.
    #[error("{0}")]
    Segments(String),
    /// The port has subinterfaces, which have to go first.
    #[error("interface {} has subinterfaces", .0.0)]
    HasSubinterfaces(PortIndex),
}

/// A port that was removed: nothing polls it, and no packet is on its way to it. Its queues are its own again.
#[derive(Debug)]
pub struct RemovedPort {
    /// What was its place, which is free again.
    pub index: PortIndex,
    /// The port; dropping it closes it.
    pub port: dpdk::Port,
    /// Its last counters.
    pub counters: PortCounters,
}

/// A snapshot of a port's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Which port.
    pub index: PortIndex,
    /// The device.
    pub name: String,
    /// The gateway's address there.
    pub mac: MacAddr,
    /// Access or core.
    pub access: bool,
    /// The link is up.
    pub up: bool,
    /// Packets received.
    pub rx_packets: u64,
    /// Octets received (Ethernet without frame check sequence).
    pub rx_octets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Octets sent.
    pub tx_octets: u64,
    /// Packets not sent because the queue was full.
    pub tx_dropped: u64,
    /// Packets lost by the driver: queue full, damaged, or no buffer.
    pub rx_lost: u64,
    /// Frames that came by a member of a LAG from which nothing is received.
    pub unaggregated: u64,
}

/// What a worker did since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Rounds in which there was something to do took it so long.
    pub busy: std::time::Duration,
    /// The same in cycles of the time stamp counter.
    pub busy_cycles: u64,
    /// Bursts of up to [`dpdk::BURST`] packets that it received from ports.
    pub bursts: u64,
    /// Packets that it received from ports.
    pub rx_packets: u64,
    /// Packets that it sent by ports.
    pub tx_packets: u64,
    /// Packets that it gave to the control thread, without those that are counted as drops too.
    pub punted: u64,
    /// Packets that it took from the control thread.
    pub injected: u64,
    /// Packets that it handed over to other workers.
    pub handed_over: u64,
    /// Packets that other workers handed over to it.
    pub taken_over: u64,
}

/// How often packets were dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCounter {
    /// The reason.
    pub reason: crate::DropReason,
    /// Packets.
    pub packets: u64,
}

/// How many packets of a kind were punted, and how many the kind's rate did not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntCounter {
    /// The kind.
    pub class: &'static PuntClass,
    /// Packets.
    pub packets: u64,
    /// Packets above the rate; those that are no copies or notices are drops (`punt-policed`).
    pub policed: u64,
}

/// What was fragmented: in the place of each of these packets, its fragments were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentCounters {
    /// Packets.
    pub packets: u64,
    /// Their fragments.
    pub fragments: u64,
}
