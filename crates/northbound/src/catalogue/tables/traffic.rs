//! What happens to packets: rules, policies, queues, protection, drops.

use super::{AS_IT_IS, OF_USER_PLANE};
use crate::catalogue::Access::Read;
use crate::catalogue::Kind::{Number, Text, Word};
use crate::catalogue::Unit::{BitsPerSecond, Count, Exact, Id, Octets, Seconds};
use crate::catalogue::{Argument, Column, Table, Takes, Words};

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
