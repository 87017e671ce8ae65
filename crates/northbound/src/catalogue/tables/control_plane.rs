//! What the control plane has: pools, associations, servers, versions, accounts.

use super::AS_IT_IS;
use crate::catalogue::Access::Read;
use crate::catalogue::Kind::{Number, Rows, Text, Word};
use crate::catalogue::Unit::{Exact, Microseconds, PrefixLength, Seconds, SecondsAgo, Time, TimeAgo};
use crate::catalogue::{Column, Table};

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
