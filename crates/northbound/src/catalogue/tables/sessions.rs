//! Sessions, and the subscribers and lines that have them.

use super::AS_IT_IS;
use crate::catalogue::Access::Read;
use crate::catalogue::Kind::{Number, Rows, Text, Texts, Word};
use crate::catalogue::Unit::{Count, Exact, Id, Microseconds, Octets, Seconds, Time};
use crate::catalogue::{Argument, Column, SESSION_FILTER, Table, Takes};

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
