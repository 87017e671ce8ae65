//! What happened: alarms, events, figures.

use super::AS_IT_IS;
use crate::catalogue::Access::Read;
use crate::catalogue::Kind::{Cell, Number, Text, Word};
use crate::catalogue::Unit::{Count, Exact, Id, Octets, Seconds, Time};
use crate::catalogue::{Argument, Column, EVENT_KINDS, Table, Takes, Words};

/// Short words for events in a table.
pub const EVENT_WORDS: Words = &[
    ("user-plane-back", "back"),
    ("user-plane-lost", "lost"),
    ("alarm-raised", "alarm"),
    ("alarm-cleared", "cleared"),
    ("alarm-acknowledged", "acknowledged"),
];

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
