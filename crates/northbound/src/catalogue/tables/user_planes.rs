//! User planes: their ports, routes, neighbours and workers, and the daemons.

use super::{AS_IT_IS, OF_USER_PLANE};
use crate::catalogue::Access::Read;
use crate::catalogue::Kind::{Cell, Flag, Number, Rows, Text, Word};
use crate::catalogue::Unit::{BitsPerSecond, Count, Exact, Id, Microseconds, Nanoseconds, Octets, Seconds, TimeAgo};
use crate::catalogue::{Column, Table};

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
