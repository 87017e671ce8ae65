//! The named reasons for which packets are dropped, each with the nodes that drop for it.
use crate::edges::Node;

macro_rules! drops {
    ($($variant:ident $name:literal [$($node:ident),+] $text:literal,)*) => {
        /// Why a packet was dropped. Every packet in is a packet out, a packet punted, or one of these.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $text] $variant,)*
        }

        impl DropReason {
            /// All reasons.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)*];

            /// The reason's name, as `sluice show drops` prints it.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name,)* }
            }

            /// The nodes of the graph where packets are dropped for it.
            pub const fn nodes(self) -> &'static [Node] {
                match self { $(DropReason::$variant => &[$(Node::$node),+],)* }
            }

            /// The reason in a sentence.
            pub const fn description(self) -> &'static str {
                match self { $(DropReason::$variant => $text,)* }
            }
        }
    };
}

drops! {
    UnsupportedBuffer "unsupported-buffer" [AccessRx, CoreRx]
        "The frame does not lie in one packet buffer of its own.",
    Truncated "truncated" [ClassifyAccess, ClassifyCore, Untag]
        "The frame ends before its headers do.",
    NotForUs "not-for-us" [ClassifyCore, Untag, Session]
        "The frame is addressed to another station than the gateway.",
    UnknownVlan "unknown-vlan" [ClassifyAccess, Untag]
        "The frame's VLAN is in no access segment of the port, and no subinterface has it.",
    UnexpectedType "unexpected-type" [ClassifyAccess]
        "The frame from an access port is not PPPoE.",
    BadPppoe "bad-pppoe" [Session]
        "The PPPoE header is not version 1, type 1, code 0, or longer than the frame.",
    UnknownSession "unknown-session" [Session]
        "No session has this PPPoE session id in the access segment.",
    WrongMac "wrong-mac" [Session]
        "The source MAC address is not that of the session.",
    WrongTag "wrong-tag" [Session]
        "The VLAN tags are not those of the session.",
    SpoofedSourceV4 "spoofed-source-v4" [Session]
        "The IPv4 source address is not one of the session's.",
    SpoofedSourceV6 "spoofed-source-v6" [Session]
        "The IPv6 source address is not one of the session's.",
    LinkLocal "link-local" [Session]
        "A link-local IPv6 packet from a subscriber is not one that the control plane answers.",
    DeniedUp "denied-up" [Policy]
        "A rule of the session's policy denies the packet from the subscriber, or no rule permits it.",
    DeniedDown "denied-down" [Policy]
        "A rule of the session's policy denies the packet to the subscriber, or no rule permits it.",
    UndeterminedTransport "undetermined-transport" [Policy]
        "The session's policy needs a transport header that a fragment cuts off or may overwrite, or that lies behind too many options or extension headers.",
    PolicyMissing "policy-missing" [Policy]
        "The user plane does not have the session's policy, or is still compiling it.",
    RateExceededUp "rate-exceeded-up" [Policy]
        "The packet from a subscriber is above the rate that its policy permits.",
    RateExceededDown "rate-exceeded-down" [Policy]
        "The packet to a subscriber is above the rate that its policy permits.",
    ClassExceededUp "class-exceeded-up" [Policy]
        "The packet from a subscriber is above the rate of its class in the session's policy.",
    ClassExceededDown "class-exceeded-down" [Policy]
        "The packet to a subscriber is above the rate of its class in the session's policy.",
    SubscriberExceededUp "subscriber-exceeded-up" [Policy]
        "The packet from a subscriber is above the rate of all its sessions together.",
    SubscriberExceededDown "subscriber-exceeded-down" [Policy]
        "The packet to a subscriber is above the rate of all its sessions together.",
    BadIpv4 "bad-ipv4" [Session, Ip, Fragment]
        "The IPv4 header's version or lengths are wrong.",
    BadChecksum "bad-checksum" [Session, Ip]
        "The IPv4 header's checksum is wrong.",
    BadIpv6 "bad-ipv6" [Session, Ip]
        "The IPv6 header's version or length is wrong.",
    SourceRoute "source-route" [Session, Ip]
        "The IPv4 header has a loose or strict source route.",
    Ipv4Options "ipv4-options" [Session, Ip]
        "The IPv4 header has options, and the user plane forwards none.",
    RoutingHeader "routing-header" [Session, Ip]
        "The IPv6 packet has a routing header of type 0.",
    MartianSource "martian-source" [Ip]
        "The source address of the packet from the core is one that no packet may have: loopback, multicast, reserved.",
    UnroutedSource "unrouted-source" [Source]
        "The source address of the packet from the core has no route, or one that discards.",
    InsideSource "inside-source" [Source]
        "The source address of the packet from the core is a subscriber's or the gateway's own.",
    ReversePath "reverse-path" [Source]
        "The route to the source address does not leave by the interface on which the packet came.",
    TtlExpired "ttl-expired" [Hop]
        "The time to live or hop limit ended here.",
    NoRoute "no-route" [Lookup]
        "The network instance has no route to the destination.",
    DiscardRoute "discard-route" [Lookup]
        "The route to the destination says discard: an unassigned or unroutable address.",
    NoAdjacency "no-adjacency" [Neighbour, Connected]
        "The address of the next hop is not known (yet).",
    StaleSession "stale-session" [Subscriber]
        "The route leads to a session that is gone.",
    TooBig "too-big" [Fragment]
        "The packet is larger than its next hop takes, and may not be fragmented; its sender is told.",
    NoBuffer "no-buffer" [Fragment]
        "The packet had to be fragmented, and there was no room for its fragments.",
    PuntPoliced "punt-policed" [Punt]
        "The rate for packets of this kind to the control plane is exceeded.",
    LinePoliced "line-policed" [Punt]
        "The rate for packets of this kind from the MAC address, its access line, its VLAN or its port is exceeded.",
    HeldDown "held-down" [Punt]
        "The MAC address on its access line has exceeded its rate for long, and is not listened to for a while.",
    SessionPoliced "session-policed" [Punt]
        "The rate for control packets of this session is exceeded.",
    PuntQueueFull "punt-queue-full" [Punt]
        "The queue to the control thread is full.",
    BadInject "bad-inject" [Gateway, Lookup]
        "A packet of the gateway itself, or of another worker, cannot be sent: no such port (any more), or it leads back to the gateway.",
    HandOverFull "hand-over-full" [HandOver]
        "The queue to the worker that the packet's session belongs to is full.",
    QueueFull "queue-full" [Queue]
        "The queue of the packet's class to the subscriber is full.",
    SubscriberQueuesFull "subscriber-queues-full" [Queue]
        "Half of the room for waiting packets or more is used, and the packet's subscriber has its share of what waits.",
    AggregateQueuesFull "aggregate-queues-full" [Queue]
        "Half of the room for waiting packets or more is used, and the packet's access segment or VLAN has its share of what waits.",
    PortQueuesFull "port-queues-full" [Queue]
        "Half of the room for waiting packets or more is used, and the packet's port has its share of what waits.",
    QueueDelay "queue-delay" [Queue]
        "Packets of the class to the subscriber have waited for too long, and this one tells its sender to send less.",
    QueuePurged "queue-purged" [Queue]
        "The session or port is gone for whose turn the packet has waited.",
    EgressQueueFull "egress-queue-full" [Queue]
        "More packets wait for the port's egress rate than it lets wait.",
    TxQueueFull "tx-queue-full" [Tx]
        "The port's transmit queue is full.",
}

#[cfg(test)]
mod tests {
    use super::DropReason;
    use std::collections::HashSet;

    #[test]
    fn names_differ_and_positions_are_numbers() {
        let names: HashSet<_> = DropReason::ALL.iter().map(|d| d.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
        assert!(
            DropReason::ALL
                .iter()
                .enumerate()
                .all(|(i, &d)| d as usize == i)
        );
        assert!(
            DropReason::ALL
                .iter()
                .all(|d| d.description().ends_with('.'))
        );
    }
}
