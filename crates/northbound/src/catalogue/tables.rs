//! The tables.

use super::Access::Read;
use super::Kind::{Cell, Flag, Number, Rows, Text, Texts, Word};
use super::Unit::{
    BitsPerSecond, Count, Exact, Id, Microseconds, Nanoseconds, Octets, PrefixLength, Seconds, SecondsAgo, Time,
    TimeAgo,
};
use super::{Argument, Column, EVENT_KINDS, SESSION_FILTER, Table, Takes, Words};

/// Every table, in the order in which they are offered.
pub const TABLES: &[&Table] = &[
    &SESSIONS,
    &SUBSCRIBERS,
    &LINES,
    &TROUBLE,
    &SESSION_COUNTS,
    &SESSION_CLEARS,
    &WAITS,
    &USER_PLANES,
    &PORTS,
    &LAG_MEMBERS,
    &ROUTES,
    &NEIGHBOURS,
    &DAEMONS,
    &WORKERS,
    &ACL,
    &POLICIES,
    &QUEUES,
    &QUEUE_AGGREGATES,
    &PROTECTION,
    &POOLS,
    &ASSOCIATIONS,
    &AAA_SERVERS,
    &ALARMS,
    &ALARM_HISTORY,
    &EVENTS,
    &FIGURES,
    &DROPS,
    &VERSIONS,
];

/// No word is replaced: each is shown as the message has it, with blanks.
const AS_IT_IS: Words = &[];

/// Short words for events in a table.
pub const EVENT_WORDS: Words = &[
    ("user-plane-back", "back"),
    ("user-plane-lost", "lost"),
    ("alarm-raised", "alarm"),
    ("alarm-cleared", "cleared"),
    ("alarm-acknowledged", "acknowledged"),
];

const OF_USER_PLANE: Argument =
    Argument::new("user-plane", Takes::UserPlane, "Its node id");

/// `sluice show sessions`.
pub const SESSIONS: Table = Table {
    name: "sessions",
    about: "All sessions, or those that a filter matches",
    message: Some("Session"),
    key: &["id"],
    calls: &["ControlPlane/ListSessions", "ControlPlane/CountSessions"],
    access: Read,
    subscribers: true,
    arguments: &SESSION_FILTER,
    columns: &[
        Column::new("id", Text, "Session id; also its Acct-Session-Id").under("ID", 0),
        Column::new("state", Word(AS_IT_IS), "How far the session has come").under("STATE", 0),
        Column::new("user", Text, "User name; empty before authentication").under("USER", 0),
        Column::new("user_plane", Text, "Node id of its user plane").under("PORT", 7),
        Column::new("port", Text, "Access port").beside("/"),
        Column::new("s_tag", Number(Id), "Outer VLAN id").under("VLAN", 2).or("untagged"),
        Column::new("c_tag", Number(Id), "Inner VLAN id").beside("."),
        Column::new("mac", Text, "MAC address of the subscriber").under("MAC", 6),
        Column::new("pppoe_session_id", Number(Exact), "PPPoE session id").under("PPPOE", 8),
        Column::new("ipv4", Text, "IPv4 address").under("IPV4", 0),
        Column::new("ipv6_prefix", Text, "IPv6 prefix of the link").under("IPV6", 1),
        Column::new("online_seconds", Number(Seconds), "Time since its first address").under("ONLINE", 3),
        Column::new("traffic.up_octets", Number(Octets), "IP octets from the subscriber").under("UP", 5),
        Column::new("traffic.down_octets", Number(Octets), "IP octets to the subscriber").under("DOWN", 4),
        Column::new("traffic.up_packets", Number(Count), "IP packets from the subscriber"),
        Column::new("traffic.down_packets", Number(Count), "IP packets to the subscriber"),
        Column::new("ipv4_traffic.up_octets", Number(Octets), "IPv4 octets from the subscriber"),
        Column::new("ipv4_traffic.down_octets", Number(Octets), "IPv4 octets to the subscriber"),
        Column::new("ipv4_traffic.up_packets", Number(Count), "IPv4 packets from the subscriber"),
        Column::new("ipv4_traffic.down_packets", Number(Count), "IPv4 packets to the subscriber"),
        Column::new("ipv6_traffic.up_octets", Number(Octets), "IPv6 octets from the subscriber"),
        Column::new("ipv6_traffic.down_octets", Number(Octets), "IPv6 octets to the subscriber"),
        Column::new("ipv6_traffic.up_packets", Number(Count), "IPv6 packets from the subscriber"),
        Column::new("ipv6_traffic.down_packets", Number(Count), "IPv6 packets to the subscriber"),
        Column::new("group", Text, "Subscriber group"),
        Column::new("network_instance", Text, "Network instance (VRF) of its addresses"),
        Column::new("profile", Text, "Subscriber profile; empty: the defaults"),
        Column::new("routes", Texts, "Other prefixes that are routed to it"),
        Column::new("subscriber", Text, "What its subscriber is known by: the access line, or the user name"),
        Column::new("subscriber_handle", Number(Id), "Handle of its subscriber; also its QER Correlation ID"),
        Column::new("fallback", Text, "Fallback by which it came in while no RADIUS server answered; empty: none"),
        Column::new("access_loop", Texts, "Rates, delays and encapsulation of its access loop, as the access node says them"),
        Column::new("line", Text, "Access line: circuit id, VLANs, or MAC address on a shared VLAN"),
        Column::new("without_effect", Texts, "Attributes of AAA's answer that have no effect, and why"),
        Column::new("next_connection", Texts, "What a RADIUS server has changed from its subscriber's next connection on"),
    ],
};

/// `sluice show subscribers`; the rows are [`crate::SubscriberRow`].
pub const SUBSCRIBERS: Table = Table {
    name: "subscribers",
    about: "The subscribers, with their sessions and addresses",
    message: None,
    key: &["name", "subscriber"],
    calls: &["ControlPlane/ListSessions"],
    access: Read,
    subscribers: true,
    arguments: &[],
    columns: &[
        Column::new("name", Text, "User name; of several, the first in order").under("SUBSCRIBER", 0),
        Column::new("subscriber", Text, "What it is known by: its access line, or its user name").under("KNOWN BY", 5),
        Column::new("subscriber_handle", Number(Id), "Handle, which its sessions share"),
        Column::new("sessions", Number(Exact), "Its sessions").under("SESSIONS", 0),
        Column::new("online", Number(Exact), "Those of them that are online"),
        Column::new("ipv4", Texts, "IPv4 addresses").under("IPV4", 0),
        Column::new("ipv6_prefixes", Texts, "IPv6 prefixes of the links").under("IPV6", 3),
        Column::new("routes", Texts, "Other prefixes that are routed to them"),
        Column::new("online_seconds", Number(Seconds), "Time since the first address of the oldest session").under("ONLINE", 1),
        Column::new("profile", Text, "Subscriber profile; empty: the defaults").under("PROFILE", 2),
        Column::new("user_planes", Texts, "Node ids of the user planes").under("USER PLANE", 4),
    ],
};

/// `sluice show lines`; the rows are [`crate::LineRow`].
pub const LINES: Table = Table {
    name: "lines",
    about: "The access lines: who is online, what happened there",
    message: None,
    key: &["line"],
    calls: &["ControlPlane/ListSessions", "History/ListLines"],
    access: Read,
    subscribers: true,
    arguments: &[
        Argument::new("line", Takes::Subscriber, "Only where this has been: a line, a circuit id, a name, or a MAC address"),
        Argument::new("since", Takes::Time, "What happened before this does not count [default: -24h]"),
        Argument::new("worst", Takes::Nothing, "Only lines with trouble, those with most of it first"),
    ],
    columns: &[
        Column::new("line", Text, "Circuit and remote id, or VLANs, or the MAC address on a shared VLAN").under("LINE", 0),
        Column::new("users", Texts, "User names of its sessions, or of who was there last").under("SUBSCRIBER", 1),
        Column::new("online", Number(Exact), "Sessions that are online").under("ONLINE", 0),
        Column::new("online_seconds", Number(Seconds), "Time since the first address of the oldest session").under("FOR", 3),
        Column::new("set_ups", Number(Exact), "How often a session came online").under("CAME", 2),
        Column::new("ends", Number(Exact), "How often a session that was online ended").under("WENT", 2),
        Column::new("refusals", Number(Exact), "How often AAA refused a subscriber").under("REFUSED", 2),
        Column::new("failures", Number(Exact), "How often a session ended before it was online, for another reason").under("FAILED", 2),
        Column::derived("last_trouble", Text, "The latest refusal, failure or end").under("LAST TROUBLE", 4),
        Column::new("heard_at", Number(Time), "When something happened there last"),
        Column::new("access_loop", Texts, "Rates, delays and encapsulation of its access loop, as the access node says them"),
        Column::new("subscriber.mac", Text, "MAC address of who was there last"),
        Column::new("subscriber.session", Text, "Session id"),
        Column::new("subscriber.user", Text, "User name; empty before authentication"),
        Column::new("subscriber.user_plane", Text, "Node id of the user plane"),
        Column::new("subscriber.port", Text, "Access port"),
        Column::new("subscriber.s_tag", Number(Id), "Outer VLAN id"),
        Column::new("subscriber.c_tag", Number(Id), "Inner VLAN id"),
        Column::new("subscriber.circuit_id", Text, "Circuit id of the line (TR-101)"),
        Column::new("subscriber.remote_id", Text, "Remote id of the line (TR-101)"),
        Column::new("last_online.at", Number(Time), "When a subscriber came online last"),
        Column::new("last_online.user", Text, "User name of the subscriber"),
        Column::new("last_online.text", Text, "Empty: it needs no reason"),
        Column::new("last_ended.at", Number(Time), "When a session that was online ended last"),
        Column::new("last_ended.user", Text, "User name of the subscriber; empty before authentication"),
        Column::new("last_ended.text", Text, "Why it ended"),
        Column::new("last_refused.at", Number(Time), "When AAA refused a subscriber last"),
        Column::new("last_refused.user", Text, "User name of the subscriber; empty before authentication"),
        Column::new("last_refused.text", Text, "Why AAA refused it"),
        Column::new("last_failed.at", Number(Time), "When a session ended before it was online"),
        Column::new("last_failed.user", Text, "User name of the subscriber; empty before authentication"),
        Column::new("last_failed.text", Text, "Why it ended"),
    ],
};

/// What the table `trouble` counts, of each hour and of all together.
const ENDED: Column = Column::new("ended", Number(Exact), "How often a session that was online ended").under("WENT", 0);
const FAILED: Column = Column::new("failed", Number(Exact), "How often a session ended before it was online, for another reason than AAA's").under("FAILED", 0);
const REFUSED: Column = Column::new("refused", Number(Exact), "How often AAA refused a subscriber").under("REFUSED", 0);

/// `sluice show trouble`.
pub const TROUBLE: Table = Table {
    name: "trouble",
    about: "Where sessions ended and set-ups failed, hour by hour of one day: the 64 outer VLANs with most of it",
    message: Some("Trouble"),
    key: &["lines"],
    calls: &["History/ListTrouble"],
    access: Read,
    subscribers: true,
    arguments: &[
        Argument::new("kind", Takes::Word(&["ended", "failed", "refused"]), "Only sessions that ended, or set-ups that failed, or that AAA refused"),
        Argument::new("until", Takes::Time, "A time of the last of 24 hours [default: now]"),
    ],
    columns: &[
        Column::new("lines", Text, "Lines of an outer VLAN, or a line without an inner one, as `show events` takes them").under("LINES", 0),
        Column::new(
            "hours",
            Rows {
                columns: &[
                    Column::new("at", Number(Time), "Begin of the hour").under("HOUR (UTC)", 0),
                    ENDED,
                    FAILED,
                    REFUSED,
                ],
                repeated: &[],
            },
            "Each of the 24 hours",
        )
        .under("HOUR (UTC)", 0),
        ENDED,
        FAILED,
        REFUSED,
        Column::new("counted_since", Number(Time), "When counting began: nothing is known of earlier hours"),
    ],
};

/// `sluice show session-counts`.
pub const SESSION_COUNTS: Table = Table {
    name: "session-counts",
    about: "How many sessions there are, and how many came and went",
    message: Some("SessionCounts"),
    key: &[],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("connecting", Number(Exact), "Sessions without an address so far").under("CONNECTING", 0).gauge(),
        Column::new("online", Number(Exact), "Sessions with an address").under("ONLINE", 0).gauge(),
        Column::new("closing", Number(Exact), "Sessions that wait for their last counters").under("CLOSING", 0).gauge(),
        Column::new("begun", Number(Exact), "Set-ups that began since the control plane started").under("BEGUN", 0).counter(),
        Column::new("opened", Number(Exact), "Those of them that came online").under("OPENED", 0).counter(),
        Column::new("ended", Number(Exact), "Sessions that ended since the control plane started").under("ENDED", 0).counter(),
    ],
};

/// `sluice show session-clears`.
pub const SESSION_CLEARS: Table = Table {
    name: "session-clears",
    about: "The latest `clear sessions`, the last one first, and how far they are",
    message: Some("SessionClear"),
    key: &["at"],
    calls: &["ControlPlane/ListSessionClears"],
    access: Read,
    subscribers: true,
    arguments: &[],
    columns: &[
        Column::new("at", Number(Time), "When it began").under("TIME", 0),
        Column::new("by", Text, "Who ends the sessions").under("BY", 0),
        Column::new("filter", Text, "Which sessions").under("FILTER", 3),
        Column::new("sessions", Number(Exact), "Sessions that matched when it began").under("SESSIONS", 0),
        Column::new("ended", Number(Exact), "Sessions that it has ended").under("ENDED", 0),
        Column::new("gone", Number(Exact), "Sessions that had ended by themselves before").under("GONE", 2),
        Column::new("rate", Number(Exact), "Sessions that it ends in a second").under("RATE", 2),
        Column::new("remaining_seconds", Number(Seconds), "Time until the last one ends").under("REMAINING", 1).or("none"),
        Column::new("stopped_by", Text, "Who stopped it; empty: nobody").under("STOPPED BY", 1),
    ],
};

/// `sluice show waits`.
pub const WAITS: Table = Table {
    name: "waits",
    about: "How long subscribers' frames wait for the control plane, from the kernel to its loop",
    message: Some("Waits"),
    key: &[],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("longest_microseconds", Number(Microseconds), "The longest wait of the present minute and of the one before").under("LONGEST", 0).gauge(),
        Column::new("long", Number(Exact), "How often frames had waited for more than 5 ms when they were read, since the control plane started").under("LONG", 0).counter(),
    ],
};

/// `sluice show user-planes`.
pub const USER_PLANES: Table = Table {
    name: "user-planes",
    about: "The control plane's user planes",
    message: Some("UserPlane"),
    key: &["node_id"],
    calls: &["ControlPlane/ListUserPlanes", "Configuration/ListManaged"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("node_id", Text, "PFCP Node ID").under("NODE", 0),
        Column::new("address", Text, "Where it serves PFCP and GTP-U").under("ADDRESS", 2),
        Column::new("state", Word(AS_IT_IS), "How it stands with the control plane").under("STATE", 0),
        Column::new("drain", Flag("drained", ""), "It takes no new sessions").beside(", "),
        Column::new("since_seconds", Number(Seconds), "Time since the association came or went").under("SINCE", 1),
        Column::new("started_at", Number(TimeAgo), "When it started").under("STARTED", 3),
        Column::new("restarts", Number(Exact), "Restarts of it since the control plane started").under("RESTARTS", 1),
        Column::new("sessions", Number(Exact), "Sessions on it").under("SESSIONS", 0),
        Column::new(
            "access_ports",
            Cell(&[
                Column::new("name", Text, "Access port").under("", 0),
                Column::new("open", Flag("", "(closed)"), "Subscribers can connect there").beside(" "),
            ]),
            "Its access ports",
        )
        .under("ACCESS PORTS", 1),
        Column::new("drain.sessions_before", Number(Exact), "Sessions when the drain began"),
        Column::new("drain.since_seconds", Number(Seconds), "Time since the drain began"),
        Column::new("drain.rate", Number(Exact), "Sessions that the drain ends in a second; 0: none"),
        Column::new("drain.remaining_seconds", Number(Seconds), "Time until the drain has ended the last session"),
        Column::new("drain.waits", Flag("yes", "no"), "The drain waits until the user plane answers"),
    ],
};

/// `sluice show ports`.
pub const PORTS: Table = Table {
    name: "ports",
    about: "The ports of all user planes, or of one",
    message: Some("Port"),
    key: &["user_plane", "name"],
    calls: &["Tables/ListPorts"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 0).label(),
        Column::new("name", Text, "Logical port").under("PORT", 0).label(),
        Column::new("role", Text, "access or core").under("ROLE", 0).label(),
        Column::new("link_up", Flag("up", "down"), "State of the link").under("LINK", 0).gauge(),
        Column::new("device", Text, "DPDK device").under("DEVICE", 3),
        Column::new("mac", Text, "Its own MAC address").under("MAC", 4),
        Column::new("rx_packets", Number(Count), "Frames received").under("RX PACKETS", 2).counter(),
        Column::new("rx_octets", Number(Octets), "Octets received").under("RX", 0).counter(),
        Column::new("rx_lost", Number(Count), "Frames lost by the driver: queue full, damaged, or no buffer").under("LOST", 1).counter(),
        Column::new("tx_packets", Number(Count), "Frames sent").under("TX PACKETS", 2).counter(),
        Column::new("tx_octets", Number(Octets), "Octets sent").under("TX", 0).counter(),
        Column::new("tx_dropped", Number(Count), "Frames that the device did not take").under("DROPPED", 1).counter(),
    ],
};

/// `sluice show lag-members`.
pub const LAG_MEMBERS: Table = Table {
    name: "lag-members",
    about: "The devices of ports that have several, and whether packets leave and arrive by them",
    message: Some("LagMember"),
    key: &["user_plane", "port", "device"],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 0).label(),
        Column::new("port", Text, "Logical port").under("PORT", 0).label(),
        Column::new("device", Text, "DPDK device").under("MEMBER", 0).label(),
        Column::new("link_up", Flag("up", "down"), "State of its link").under("LINK", 0).gauge(),
        Column::new("speed_bits_per_second", Number(BitsPerSecond), "Speed of its link").under("SPEED", 4).gauge(),
        Column::new("state", Word(AS_IT_IS), "used, or why not: link-down, silent, looped, other-partner, other-speed, waiting, too-few").under("STATE", 0).gauge(),
        Column::new("partner", Text, "MAC address of the system at the other end").under("PARTNER", 1),
        Column::new("partner_key", Number(Id), "That system's key of the group").under("KEY", 3),
        Column::new("partner_port", Number(Id), "That system's number of the port").under("ITS PORT", 2),
        Column::new("tx_lacpdus", Number(Count), "LACPDUs sent").under("TX", 4).counter(),
        Column::new("rx_lacpdus", Number(Count), "LACPDUs received").under("RX", 4).counter(),
        Column::new("rx_malformed", Number(Count), "Frames of the link that could not be read").under("MALFORMED", 5).counter(),
    ],
};

/// `sluice show routes`.
pub const ROUTES: Table = Table {
    name: "routes",
    about: "What the forwarding tables of all user planes have, or of one",
    message: Some("Route"),
    key: &["user_plane", "network_instance", "prefix"],
    calls: &["Tables/ListRoutes"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 1),
        Column::new("network_instance", Text, "Network instance (VRF)").under("INSTANCE", 2),
        Column::new("prefix", Text, "Destination").under("PREFIX", 0),
        Column::new("kind", Word(&[("on-link", "link")]), "Where it leads").under("LEADS", 0),
        Column::new("next_hop", Text, "Address of the neighbour").under("NEXT HOP", 0),
        Column::new("port", Text, "Core port or subinterface").under("PORT", 0),
        Column::new("mac", Text, "MAC address of the neighbour").under("MAC", 3),
        Column::new(
            "further",
            Rows {
                columns: &[
                    Column::new("address", Text, "Address of the neighbour").under("NEXT HOP", 0),
                    Column::new("port", Text, "Core port or subinterface").under("PORT", 0),
                    Column::new("mac", Text, "MAC address of the neighbour").under("MAC", 0).or("unresolved"),
                ],
                repeated: &["user_plane", "network_instance"],
            },
            "The other neighbours, where flows are spread among several",
        ),
    ],
};

/// `sluice show neighbours`.
pub const NEIGHBOURS: Table = Table {
    name: "neighbours",
    about: "The neighbours on the core ports of all user planes, or of one",
    message: Some("Neighbour"),
    key: &["user_plane", "network_instance", "port", "address"],
    calls: &["Tables/ListNeighbours"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 1),
        Column::new("network_instance", Text, "Network instance (VRF)").under("INSTANCE", 2),
        Column::new("port", Text, "Core port or subinterface").under("PORT", 0),
        Column::new("address", Text, "IP address").under("ADDRESS", 0),
        Column::new("mac", Text, "MAC address").under("MAC", 0),
        Column::new("state", Word(AS_IT_IS), "Whether the MAC address is known, or to be confirmed").under("STATE", 0),
        Column::new("routes", Number(Exact), "Routes that lead to it").under("ROUTES", 3),
    ],
};

/// `sluice show daemons`; the rows are [`crate::DaemonRow`].
pub const DAEMONS: Table = Table {
    name: "daemons",
    about: "The daemons' processes: memory, processor time, threads, file descriptors",
    message: None,
    key: &["name", "user_plane"],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("name", Text, "The daemon's program").under("DAEMON", 0).label(),
        Column::new("user_plane", Text, "Node id, if it is a user plane").under("USER PLANE", 0).label(),
        Column::new("resident_octets", Number(Octets), "Memory that it has, without huge pages").under("MEMORY", 0).gauge(),
        Column::new("huge_octets", Number(Octets), "Huge pages that it has").under("HUGE PAGES", 1).gauge(),
        Column::new("cpu_microseconds", Number(Microseconds), "Processor time of all of its threads since it was started").under("CPU", 0).counter(),
        Column::new("threads", Number(Exact), "Its threads").under("THREADS", 2).gauge(),
        Column::new("descriptors", Number(Exact), "File descriptors that it has open").under("FILES", 2).gauge(),
        Column::new("started_at", Number(TimeAgo), "When it was started").under("STARTED", 0).gauge(),
    ],
};

/// `sluice show workers`; the rows are [`crate::WorkerRow`].
pub const WORKERS: Table = Table {
    name: "workers",
    about: "The threads that forward packets: how busy they are, what they hand over to each other",
    message: None,
    key: &["user_plane", "number"],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 0).label(),
        Column::new("number", Number(Exact), "Number of the worker").under("WORKER", 0).label(),
        Column::new("busy_nanoseconds", Number(Nanoseconds), "Time that it had work").under("BUSY", 0).counter(),
        Column::new("busy_cycles", Number(Count), "The same in cycles of the time stamp counter").under("CYCLES", 2),
        Column::new("bursts", Number(Count), "Bursts of up to 64 packets received").under("BURSTS", 0),
        Column::new("rx_packets", Number(Count), "Packets received from ports").under("RX", 0).counter(),
        Column::new("tx_packets", Number(Count), "Packets sent by ports").under("TX", 0).counter(),
        Column::new("handed_over", Number(Count), "Packets handed over to other workers").under("GIVEN", 0).counter(),
        Column::new("taken_over", Number(Count), "Packets taken over from other workers").under("TAKEN", 0).counter(),
        Column::new("punted", Number(Count), "Packets for the control plane or the kernel").under("PUNTED", 1).counter(),
        Column::new("injected", Number(Count), "Packets from the control plane or the kernel").under("INJECTED", 1).counter(),
    ],
};

/// `sluice show acl`.
pub const ACL: Table = Table {
    name: "acl",
    about: "The rules of an ACL, and how often each was the first to match, at all user planes or at one",
    message: Some("AclRule"),
    key: &["user_plane", "acl", "number"],
    calls: &["Tables/ListAclRules"],
    access: Read,
    subscribers: false,
    arguments: &[
        Argument::new("acl", Takes::Acl, "Its name").required(),
        OF_USER_PLANE,
    ],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 1),
        Column::new("number", Number(Exact), "Number of the rule in the ACL").under("RULE", 0),
        Column::new("text", Text, "The rule").under("TEXT", 0),
        // exact, because they are compared: a packet more or less matters
        Column::new("packets", Number(Exact), "Packets that it was the first rule to match; empty if the ACL does not count").under("PACKETS", 0),
        Column::new("octets", Number(Octets), "Octets of these IP packets").under("OCTETS", 2),
        Column::new("acl", Text, "Name of the ACL"),
    ],
};

/// `sluice show policies`.
pub const POLICIES: Table = Table {
    name: "policies",
    about: "The policies of packets at all user planes, or at one: which are in force, and what they take",
    message: Some("TrafficPolicy"),
    key: &["user_plane", "name"],
    calls: &["Tables/ListPolicies"],
    access: Read,
    subscribers: false,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("USER PLANE", 1),
        Column::new("name", Text, "Name of the policy").under("POLICY", 0),
        Column::new("state", Word(AS_IT_IS), "Whether the workers have it as the configuration says it; missing: only sessions name it").under("STATE", 0),
        Column::new("rules", Number(Exact), "Rules of its ACLs in the configuration").under("RULES", 0),
        Column::new("octets", Number(Octets), "Memory of what the workers have; none: packets of its sessions are dropped").under("MEMORY", 0).or("none"),
        Column::new("sessions", Number(Exact), "Sessions that name it, for one direction or for both").under("SESSIONS", 0),
        Column::new("trouble", Text, "Why it cannot be compiled, and what to do").under("TROUBLE", 2),
    ],
};

/// `sluice show qos session`; the rows are [`crate::QueueRow`].
pub const QUEUES: Table = Table {
    name: "qos session",
    about: "Queues of a session's classes: what was sent, what waits, and for what, read from the user plane now",
    message: None,
    key: &["queue"],
    calls: &["ControlPlane/GetSession", "ControlPlane/GetSessionPolicy", "History/FindSubscriber"],
    access: Read,
    subscribers: true,
    arguments: &[Argument::new("session", Takes::Session, "Its id, as `show sessions` prints it").required()],
    columns: &[
        Column::new("queue", Text, "Class of its packets").under("QUEUE", 0),
        Column::new("limited_by", Text, "What packets have waited for in the last seconds: the rate of the class, that of the session (line or plan), an aggregate, the port, or nothing").under("LIMITED BY", 0),
        Column::new("delay", Text, "Time that 99 of 100 frames that had to wait have waited at most").under("DELAY", 0),
        Column::new("waiting_octets", Number(Octets), "Octets that wait").under("QUEUED", 0),
        Column::new("most_octets", Number(Octets), "The most octets that have waited").under("MOST", 3),
        Column::new("packets", Number(Count), "Frames that have left").under("PACKETS", 2),
        Column::new("octets", Number(Octets), "Their octets").under("SENT", 1),
        // exact, because they are compared: a drop more or less matters
        Column::new("full_drops", Number(Exact), "Frames that found no room").under("FULL", 0),
        Column::new("delay_drops", Number(Exact), "Frames that were dropped as frames have waited for too long").under("LATE", 0),
        Column::new("marks", Number(Exact), "Frames that were marked for the same reason (ECN)").under("MARKED", 1),
    ],
};

/// `sluice show qos aggregates`.
pub const QUEUE_AGGREGATES: Table = Table {
    name: "qos aggregates",
    about: "Queues of the ports of all user planes, and of segments and VLANs with rates: what was sent, what waits, and for what",
    message: Some("QueueAggregate"),
    key: &["user_plane", "port", "segment", "s_tag"],
    calls: &["Tables/ListQueueAggregates"],
    access: Read,
    subscribers: false,
    arguments: &[Argument::new("aggregate", Takes::QueueAggregate, "Only what is called so, in whole or in part: a user plane, port, segment, or VLAN id")],
    columns: &[
        Column::derived("name", Text, "User plane, port, access segment and outer VLAN").under("AGGREGATE", 0),
        Column::new("user_plane", Text, "Node id of the user plane"),
        Column::new("port", Text, "Logical port"),
        Column::new("segment", Text, "Access segment; empty: the whole port"),
        Column::new("s_tag", Number(Id), "Outer VLAN id, 0 for untagged frames; absent: the whole segment"),
        Column::new("rate_bits_per_second", Number(BitsPerSecond), "Its rate").under("RATE", 0).or("none"),
        Column::new("bits_per_second", Number(BitsPerSecond), "Sent in the last second, in octets of the wire as the rate").under("SENT NOW", 0),
        Column::new("limited_by", Word(LIMIT_WORDS), "What frames wait for: a class, the subscriber's own rate (line or plan), an aggregate (this one, one above or one below), the port, or nothing").under("LIMITED BY", 0),
        Column::derived("delay", Text, "Time within which 99 of 100 frames that had to wait in the last second were sent").under("DELAY", 1),
        Column::new("waiting_octets", Number(Octets), "Octets that waited in the last second").under("QUEUED", 0),
        Column::new("waiting_packets", Number(Exact), "Frames that wait: each takes a packet buffer").under("BUFFERS", 3),
        Column::new("most_octets", Number(Octets), "Octets that waited at most").under("MOST", 4),
        Column::new("subscribers", Number(Exact), "Sessions with queues").under("SESSIONS", 2),
        Column::new("waiting_subscribers", Number(Exact), "Those of them whose frames waited").under("WAIT", 2),
        Column::new("packets", Number(Count), "Frames sent").under("PACKETS", 5),
        Column::new("octets", Number(Octets), "Their octets on the wire").under("SENT", 5),
        // exact, because they are compared: a drop more or less matters
        Column::new("drops", Number(Exact), "Frames refused or dropped").under("DROPPED", 0),
        Column::new("delay_milliseconds", Number(Exact), "The delay as a number, 1000 for more than 100 ms"),
        Column::derived("at", Text, "Worker that has its sessions with queues; if several have them, each keeps the rate for its own").under("WORKER", 2),
        Column::new("worker", Number(Id), "Number of that worker; absent of a port, and if there are several"),
        Column::new("workers", Number(Exact), "How many workers have sessions of it with queues"),
    ],
};

/// Words for what frames wait for.
pub const LIMIT_WORDS: Words = &[("unspecified", "nothing")];

/// `sluice show protection`.
pub const PROTECTION: Table = Table {
    name: "protection",
    about: "Senders above a rate of `protection`, and senders whose set-ups or logins fail",
    message: Some("Offender"),
    key: &["user_plane", "port", "s_tag", "c_tag", "circuit_id", "mac", "kind", "level"],
    calls: &["Live/WatchState"],
    access: Read,
    subscribers: true,
    arguments: &[OF_USER_PLANE],
    columns: &[
        Column::new("user_plane", Text, "Node id of the user plane").under("PORT", 2).label(),
        Column::new("port", Text, "Port or sub-interface").beside("/"),
        Column::new("s_tag", Number(Id), "Outer VLAN id").under("VLAN", 0).or("untagged"),
        Column::new("c_tag", Number(Id), "Inner VLAN id").beside("."),
        Column::new("circuit_id", Text, "Circuit id of the access node").under("CIRCUIT", 3),
        Column::new("mac", Text, "MAC address; for a line, VLAN or port the last one seen").under("MAC", 0),
        Column::new("kind", Text, "A setting of `protection`, `failed-set-ups` or `failed-logins`").under("KIND", 0).label(),
        Column::new("level", Text, "Level: mac, line, vlan or port").under("LEVEL", 1).label(),
        Column::new("dropped", Number(Count), "Packets dropped or not answered").under("DROPPED", 0),
        Column::new("since_seconds", Number(Seconds), "Time since it began").under("FOR", 0),
        Column::new("holds", Number(Exact), "Number of hold-downs, back-offs or lock-outs").under("HOLDS", 4),
        Column::new("held_seconds", Number(Seconds), "Time until that ends").under("HELD", 0),
    ],
};

/// `sluice show pools`.
pub const POOLS: Table = Table {
    name: "pools",
    about: "The address pools: how much there is, how much is used, and who has nets of them",
    message: Some("Pool"),
    key: &["name", "prefix"],
    calls: &["Tables/ListPools"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("name", Text, "Name").under("POOL", 0).label(),
        Column::new("prefix", Text, "Prefix that it is cut from").under("PREFIX", 0).label(),
        Column::new("network_instance", Text, "Network instance (VRF)").under("INSTANCE", 3).label(),
        Column::new(
            "shares",
            Rows {
                columns: &[
                    Column::new("user_plane", Text, "Node id of the user plane").under("GROUP", 0),
                    Column::new("group", Text, "Subscriber group").beside(" "),
                    Column::new("used", Number(Exact), "Addresses that its subscribers have").under("USED", 0),
                    Column::new("nets", Number(Exact), "Nets that it has").under("NETS", 0),
                ],
                repeated: &[],
            },
            "Groups that have nets of it, a line each",
        )
        .under("GROUP", 0),
        Column::new("prefix_length", Number(PrefixLength), "Prefix length of what one subscriber gets").under("EACH", 2),
        Column::new("size", Number(Exact), "Addresses or prefixes for subscribers").under("SIZE", 0).gauge(),
        Column::new("used", Number(Exact), "Those that subscribers have").under("USED", 0).gauge(),
        Column::derived("free", Number(Exact), "Those that nobody has").under("FREE", 0),
        Column::new("lent_nets", Number(Exact), "Nets that groups have").under("NETS", 2),
        Column::new("nets", Number(Exact), "Nets that there are").beside("/"),
        Column::new("net_length", Number(PrefixLength), "Prefix length of a net").under("OF", 1),
        Column::new("full_at", Number(Time), "When it is full if it goes on growing as in the last week").under("FULL (UTC)", 1),
    ],
};

/// `sluice show associations`.
pub const ASSOCIATIONS: Table = Table {
    name: "associations",
    about: "The PFCP associations with the user planes",
    message: Some("Association"),
    key: &["node_id"],
    calls: &["Tables/ListAssociations"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("node_id", Text, "PFCP Node ID of the user plane").under("NODE", 0).label(),
        Column::new("address", Text, "Where it serves PFCP").under("ADDRESS", 0),
        Column::new("state", Word(AS_IT_IS), "Whether there is one, and the peer answers").under("STATE", 0).gauge(),
        Column::new("since_seconds", Number(Seconds), "Time since it came or went").under("SINCE", 0),
        Column::new("recovery_time_stamp", Number(TimeAgo), "When the peer started (Recovery Time Stamp)").under("PEER STARTED", 2),
        Column::new("heard_seconds", Number(SecondsAgo), "Time since the peer last answered").under("HEARD", 0).or("never").gauge(),
        Column::new("heartbeat_interval", Number(Seconds), "Time between two heartbeats").under("HEARTBEAT", 1),
        Column::new("pending", Number(Exact), "Requests without an answer so far").under("PENDING", 3).gauge(),
        Column::new("restarts", Number(Exact), "Restarts of the peer since the control plane started").under("RESTARTS", 4).counter(),
    ],
};

/// `sluice show aaa-servers`.
pub const AAA_SERVERS: Table = Table {
    name: "aaa-servers",
    about: "The RADIUS servers, and how they are doing",
    message: Some("AaaServer"),
    key: &["group", "role", "name"],
    calls: &["Tables/ListAaaServers"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("name", Text, "Name of the server").under("SERVER", 0).label(),
        Column::new("group", Text, "Server group").under("GROUP", 4).label(),
        Column::new(
            "role",
            Word(&[("authentication", "auth"), ("accounting", "acct")]),
            "What it is asked for",
        )
        .under("ROLE", 0).label(),
        Column::new("address", Text, "Address and port").under("ADDRESS", 1),
        Column::new("transport", Text, "How requests get to it").under("OVER", 6),
        Column::new("state", Word(AS_IT_IS), "Whether it answers").under("STATE", 0).gauge(),
        Column::new("out_seconds", Number(Seconds), "Time since it stopped answering").beside(" "),
        Column::new("requests", Number(Exact), "Requests sent, without repetitions").under("REQUESTS", 0).counter(),
        Column::new("retransmissions", Number(Exact), "Requests sent again").under("AGAIN", 3).counter(),
        Column::new("answers", Number(Exact), "Answers that proved to be its own").under("ANSWERS", 0).counter(),
        Column::new("timeouts", Number(Exact), "Requests that it never answered").under("TIMEOUTS", 0).counter(),
        Column::new("round_trip_microseconds", Number(Microseconds), "Round-trip time of the last request").under("RTT", 2).gauge(),
        Column::new("last_answer_seconds", Number(SecondsAgo), "Time since its last answer").under("HEARD", 5),
        Column::new("probes", Number(Exact), "Status-Server packets sent while it was out"),
        Column::new("probe_answers", Number(Exact), "Answers to them"),
        Column::new("trouble", Text, "Why it could not be connected to").under("TROUBLE", 8),
        Column::new("window", Number(Exact), "Requests that it may have unanswered").under("WINDOW", 7).gauge(),
        Column::new("waiting", Number(Exact), "Requests that wait for room in the window").under("WAITING", 2).gauge(),
    ],
};

/// `sluice show alarms`.
pub const ALARMS: Table = Table {
    name: "alarms",
    about: "What is wrong",
    message: Some("Alarm"),
    key: &["name", "resource"],
    calls: &["History/ListAlarms"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("severity", Word(AS_IT_IS), "How severe it is (RFC 8632)").under("SEVERITY", 0).label(),
        Column::new("name", Text, "Name of the alarm").under("ALARM", 0).label(),
        Column::new("resource", Text, "User plane, server, group or pool; empty: the control plane").under("OF", 0),
        Column::new("raised_at", Number(Time), "When it was raised").under("SINCE (UTC)", 1),
        Column::new("acknowledged.by", Text, "Who has acknowledged it").under("ACKNOWLEDGED", 1),
        Column::new("acknowledged.comment", Text, "What that operator says of it").beside(": "),
        Column::new("acknowledged.at", Number(Time), "When it was acknowledged"),
        Column::new("text", Text, "What is wrong, and what to do").under("TEXT", 0),
    ],
};

/// `sluice show alarms history`.
pub const ALARM_HISTORY: Table = Table {
    name: "alarms history",
    about: "The alarms that were raised and cleared",
    message: Some("Event"),
    key: &[],
    calls: &["History/ListEvents"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("at", Number(Time), "When").under("TIME (UTC)", 0),
        Column::new("alarm", Text, "Name of the alarm").under("ALARM", 0),
        Column::derived("became", Text, "How severe it is, or that it was cleared").under("SEVERITY", 1),
        Column::new("resource", Text, "User plane, server, group or pool; empty: the control plane").under("OF", 0),
        Column::new("text", Text, "What was wrong").under("TEXT", 0),
    ],
};

/// `sluice show events`.
pub const EVENTS: Table = Table {
    name: "events",
    about: "What happened to subscribers and to the system",
    message: Some("Event"),
    key: &[],
    calls: &["History/ListEvents"],
    access: Read,
    subscribers: true,
    arguments: &[
        Argument::new("subscriber", Takes::Subscriber, "Of whom: a name, a line, a MAC address, a session or an address; or how a name or line begins: up1/access0.100.*"),
        Argument::new("also", Takes::Subscriber, "Of this as well, which may be the same").named(),
        EVENT_KINDS,
        Argument::new("since", Takes::Time, "None before this: 2026-11-22T07:15:00Z, 07:15 (UTC), or -2h"),
        Argument::new("until", Takes::Time, "None after this"),
        Argument::new("last", Takes::Number(1, 100_000), "Only the latest, so many [default: 100, or all if --since is given]"),
    ],
    columns: &[
        Column::new("at", Number(Time), "When").under("TIME (UTC)", 0),
        Column::new("kind", Word(EVENT_WORDS), "What").under("EVENT", 0),
        Column::derived("who", Text, "Subscriber, user plane, server, pool or version").under("WHO OR WHAT", 0),
        Column::new("subscriber.user_plane", Text, "Node id of the subscriber's user plane").under("LINE", 2),
        Column::new("subscriber.port", Text, "Access port").beside("/"),
        Column::new("subscriber.s_tag", Number(Id), "Outer VLAN id").beside("."),
        Column::new("subscriber.c_tag", Number(Id), "Inner VLAN id").beside("."),
        Column::new("subscriber.mac", Text, "MAC address of the subscriber").under("MAC", 3),
        Column::new("subscriber.session", Text, "Session id").under("SESSION", 4),
        Column::derived("why", Text, "Why, or with which addresses").under("WHY OR WITH WHAT", 0),
        Column::new("subscriber.user", Text, "User name; empty before authentication"),
        Column::new("subscriber.circuit_id", Text, "Circuit id of the line (TR-101)"),
        Column::new("subscriber.remote_id", Text, "Remote id of the line (TR-101)"),
        Column::new("resource", Text, "User plane, server, pool or version, where it is about the system"),
        Column::new("by", Text, "User who did it"),
        Column::new("text", Text, "Why, or what it says"),
        Column::new("since", Number(Time), "When the subscriber had connected, or had come online if it ended or is counted"),
        Column::new("server_group", Text, "Server group that was asked"),
        Column::new("reply", Text, "What AAA told the subscriber (Reply-Message)"),
        Column::new("network_instance", Text, "Network instance (VRF) of the addresses"),
        Column::new("ipv4", Text, "IPv4 address of the subscriber"),
        Column::new("ipv6_prefix", Text, "IPv6 prefix of the subscriber"),
        Column::new(
            "other_bindings",
            Cell(&[
                Column::new("role", Word(AS_IT_IS), "What it is to the subscriber").under("", 0),
                Column::new("prefix", Text, "Address or prefix").beside(" "),
            ]),
            "Other bindings of the subscriber",
        ),
        Column::new("alarm", Text, "Name of the alarm that was raised, acknowledged or cleared"),
        Column::new("severity", Word(AS_IT_IS), "How severe the alarm is (RFC 8632)"),
        Column::new("number", Number(Exact), "Number of the event, larger than that of each earlier one"),
        Column::new("ended", Number(Time), "When the session had ended, if it is counted"),
        Column::new("traffic.up_octets", Number(Octets), "IP octets from the subscriber, if the session is counted"),
        Column::new("traffic.down_octets", Number(Octets), "IP octets to the subscriber"),
        Column::new("traffic.up_packets", Number(Count), "IP packets from the subscriber"),
        Column::new("traffic.down_packets", Number(Count), "IP packets to the subscriber"),
        Column::new("ipv4_traffic.up_octets", Number(Octets), "IPv4 octets from the subscriber"),
        Column::new("ipv4_traffic.down_octets", Number(Octets), "IPv4 octets to the subscriber"),
        Column::new("ipv4_traffic.up_packets", Number(Count), "IPv4 packets from the subscriber"),
        Column::new("ipv4_traffic.down_packets", Number(Count), "IPv4 packets to the subscriber"),
        Column::new("ipv6_traffic.up_octets", Number(Octets), "IPv6 octets from the subscriber"),
        Column::new("ipv6_traffic.down_octets", Number(Octets), "IPv6 octets to the subscriber"),
        Column::new("ipv6_traffic.up_packets", Number(Count), "IPv6 packets from the subscriber"),
        Column::new("ipv6_traffic.down_packets", Number(Count), "IPv6 packets to the subscriber"),
    ],
};

/// Destinations of events, which `sluice-web` has: no table of the local API.
pub const DESTINATIONS: Table = Table {
    name: "destinations",
    about: "Where events are sent to, and how far each destination has got",
    message: None,
    key: &["name"],
    calls: &[],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("name", Text, "Its name in the start file").under("NAME", 0).label(),
        Column::new("to", Text, "Where it is, without the path").under("TO", 0),
        Column::new("last", Number(Exact), "Number of the last event that it has got").under("LAST", 1),
        Column::new("behind_seconds", Number(Seconds), "How long the oldest event waits that it has not got; 0: none waits").under("BEHIND", 0).gauge(),
        Column::new("sent", Number(Exact), "Events that were sent, since sluice-web was started").under("SENT", 1).counter(),
        Column::new("failures", Number(Exact), "Times that it did not take events").under("FAILURES", 1).counter(),
        Column::new("lost", Number(Exact), "Events that left the history before they could be sent, at least").under("LOST", 1).counter(),
        Column::new("sent_at", Number(Time), "When it took events last").under("SENT AT (UTC)", 2),
        Column::new("error", Text, "Why it gets nothing now; empty: nothing is wrong").under("ERROR", 0),
    ],
};

/// `sluice show figures`.
pub const FIGURES: Table = Table {
    name: "figures",
    about: "Figures over time: sessions, set-ups, traffic, drops, pools",
    message: Some("Figure"),
    key: &["name", "resource", "at"],
    calls: &["History/ListFigures"],
    access: Read,
    subscribers: false,
    arguments: &[
        Argument::new("figure", Takes::Text, "Only this one, by its name, in rows over the time [default: one row for each]"),
        Argument::new("of", Takes::Text, "Only that of a user plane, port, pool or aggregate"),
        Argument::new("since", Takes::Time, "Begin of the time [default: -24h]"),
        Argument::new("until", Takes::Time, "End of the time [default: now]"),
    ],
    columns: &[
        Column::new("name", Text, "Name of the figure").under("FIGURE", 0),
        Column::new("resource", Text, "Of what; empty: the gateway as a whole").under("OF", 0),
        Column::new("at", Number(Time), "Begin of the time").under("TIME (UTC)", 2),
        Column::new("seconds", Number(Seconds), "Length of the time").under("FOR", 4),
        Column::new("mean", Number(Count), "Mean of the samples, one each ten seconds").under("MEAN", 0),
        Column::new("most", Number(Count), "Highest sample").under("MOST", 0),
        Column::new("unit", Text, "What it counts").under("UNIT", 1),
        Column::new("most_at", Number(Time), "When the highest sample was").under("MOST AT (UTC)", 3),
    ],
};

/// `sluice show drops`.
pub const DROPS: Table = Table {
    name: "drops",
    about: "What was dropped or refused, by name",
    message: Some("DropCounter"),
    key: &["plane", "name"],
    calls: &["ControlPlane/ListDrops", "ControlPlane/ListUserPlaneDrops"],
    access: Read,
    subscribers: false,
    arguments: &[Argument::new("all", Takes::Nothing, "Also the counters that are zero")],
    columns: &[
        Column::new("plane", Text, "control-plane, or the user plane's node id").under("PLANE", 1).label(),
        Column::new("name", Text, "Name of the counter").under("NAME", 0).label(),
        // exact, because they are compared: a drop more or less matters
        Column::new("count", Number(Exact), "How often since the daemon started").under("COUNT", 0).counter(),
        Column::new("meaning", Text, "What it means").under("MEANING", 0),
    ],
};

/// `sluice show versions`.
pub const VERSIONS: Table = Table {
    name: "versions",
    about: "The versions of the configuration: who made each, when and why",
    message: Some("Version"),
    key: &["version"],
    calls: &["Configuration/ListVersions"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("version", Number(Exact), "Number of the version").under("VERSION", 0),
        Column::derived("ago", Number(Seconds), "Time since it was committed").under("AGO", 0),
        Column::new("by", Text, "User who committed it").under("BY", 0),
        Column::derived("state", Text, "Whether it is in force, or waits to be confirmed").under("STATE", 0),
        Column::new("comment", Text, "Why it was committed").under("COMMENT", 0),
        Column::new("at", Number(Time), "When it was committed"),
        Column::new("confirm_by", Number(Time), "When it goes if it is not confirmed"),
    ],
};

/// The table of `sluice check --resources`.
pub const ACCOUNTS: Table = Table {
    name: "accounts",
    about: "Resources of each plane by kind: how many are leaked or missing",
    message: Some("Account"),
    key: &["plane", "kind"],
    calls: &["ControlPlane/CheckLedger", "ControlPlane/CheckUserPlaneLedger"],
    access: Read,
    subscribers: false,
    arguments: &[],
    columns: &[
        Column::new("plane", Text, "Node id of the plane").under("PLANE", 0),
        Column::new("kind", Text, "Kind of resource").under("KIND", 0),
        Column::new("booked", Number(Exact), "Resources that the tables have").under("ALLOCATED", 0),
        Column::new("owned", Number(Exact), "Resources that their owners have").under("OWNED", 0),
        Column::new("without_owner", Number(Exact), "Allocated, and nobody's").under("LEAKED", 0),
        Column::new("missing", Number(Exact), "Owned, and not allocated").under("MISSING", 0),
    ],
};
