//! The graph as data: its nodes, each with its file, and the edges between them.
//!
//! `graph` says of each packet which edges it takes, by these names; the diagram in ARCHITECTURE.md is drawn from them,
//! and each has a case in which a packet takes it (`bin/sluice-up/cases`). A new way for packets is a line here, a
//! `took` in `graph`, and a case.
use crate::drops::DropReason;

macro_rules! nodes {
    ($($variant:ident $name:literal $file:literal,)*) => {
        /// A node of the graph, or an end of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Node {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Node {
            /// All nodes, in the order in which packets pass them.
            pub const ALL: &'static [Node] = &[$(Node::$variant,)*];

            /// The node's name.
            pub const fn name(self) -> &'static str {
                match self { $(Node::$variant => $name,)* }
            }

            /// The file that says what it does, in `crates/dataplane/src`.
            pub const fn file(self) -> &'static str {
                match self { $(Node::$variant => $file,)* }
            }

            /// Why packets are dropped there.
            pub fn drops(self) -> impl Iterator<Item = DropReason> {
                let all = DropReason::ALL.iter().copied();
                all.filter(move |reason| reason.nodes().contains(&self))
            }
        }
    };
}

macro_rules! edges {
    ($($variant:ident $from:ident => $to:ident $label:literal,)*) => {
        /// A way from one node to another.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Edge {
            $(#[doc = concat!("From [`", stringify!($from), "`](Node::", stringify!($from), ") to [`",
                stringify!($to), "`](Node::", stringify!($to), "): ", $label)] $variant,)*
        }

        impl Edge {
            /// All edges, in the order in which packets take them.
            pub const ALL: &'static [Edge] = &[$(Edge::$variant,)*];

            /// Where it begins.
            pub const fn from(self) -> Node {
                match self { $(Edge::$variant => Node::$from,)* }
            }

            /// Where it ends.
            pub const fn to(self) -> Node {
                match self { $(Edge::$variant => Node::$to,)* }
            }

            /// Which packets take it.
            pub const fn label(self) -> &'static str {
                match self { $(Edge::$variant => $label,)* }
            }
        }
    };
}

nodes! {
    AccessRx "access-rx" "worker.rs",
    CoreRx "core-rx" "worker.rs",
    Gateway "gateway" "worker.rs",
    ClassifyAccess "classify-access" "nodes/classify.rs",
    ClassifyCore "classify-core" "nodes/classify.rs",
    Untag "untag" "nodes/classify.rs",
    Session "session" "nodes/session.rs",
    Policy "policy" "nodes/policy.rs",
    Ip "ip" "nodes/ip.rs",
    Source "source" "nodes/source.rs",
    Lookup "lookup" "nodes/lookup.rs",
    Hop "hop" "nodes/rewrite.rs",
    Mss "mss" "nodes/mss.rs",
    Neighbour "neighbour" "nodes/rewrite.rs",
    Connected "connected" "nodes/lookup.rs",
    Subscriber "subscriber" "nodes/rewrite.rs",
    Fragment "fragment" "nodes/fragment.rs",
    Queue "queue" "queues.rs",
    Tx "tx" "worker.rs",
    HandOver "hand-over" "worker.rs",
    Samples "samples" "tables/samples.rs",
    Punt "punt" "nodes/punt.rs",
}

edges! {
    AccessFrame AccessRx => ClassifyAccess "frames",
    CoreFrame CoreRx => ClassifyCore "frames",
    GatewayPacket Gateway => Ip "IP packets",
    GatewayFrame Gateway => Tx "frames",
    Discovery ClassifyAccess => Punt "discovery",
    SlowProtocol ClassifyAccess => Punt "LACP",
    OfSession ClassifyAccess => Session "session stage, PADT",
    OfOther ClassifyAccess => HandOver "other workers' sessions",
    CoreV4 ClassifyCore => Ip "IPv4",
    CoreV6 ClassifyCore => Ip "IPv6",
    CoreKernel ClassifyCore => Punt "ARP, multicast, LACP",
    CoreLinkLocal ClassifyCore => Punt "IPv6 of the link",
    Tagged ClassifyCore => Untag "tagged",
    TaggedV4 Untag => Ip "IPv4",
    TaggedV6 Untag => Ip "IPv6",
    TaggedKernel Untag => Punt "ARP, multicast",
    TaggedLinkLocal Untag => Punt "IPv6 of the link",
    SessionControl Session => Punt "control",
    SampledUp Session => Samples "copies",
    PolicyUp Session => Policy "of sessions with policies or rates",
    PermittedUp Policy => Session "permitted",
    Redirected Policy => Punt "redirected",
    SubscriberV4 Session => Lookup "IPv4",
    SubscriberV6 Session => Lookup "IPv6",
    SubscriberSyn Session => Mss "SYN",
    SynToLookup Mss => Lookup "SYN",
    Sound Ip => Lookup "sound headers",
    ToSource Ip => Source "from interfaces with a source check",
    Sourced Source => Lookup "sources that may be",
    LocalFromSubscriber Lookup => Punt "from subscribers to the gateway",
    LocalFromCore Lookup => Punt "from the core to the gateway",
    Forwarded Lookup => Hop "to be forwarded",
    OwnToNeighbour Lookup => Neighbour "the gateway's own",
    OwnToConnected Lookup => Connected "the gateway's own",
    OwnToSubscriber Lookup => Subscriber "the gateway's own",
    Expired Hop => Punt "expired",
    ToNeighbour Hop => Neighbour "adjacency",
    ToConnected Hop => Connected "connected net",
    ToOther Lookup => HandOver "other workers' sessions",
    ToSubscriber Hop => Subscriber "session",
    Untagged Neighbour => Tx "by a port",
    Retagged Neighbour => Tx "by a subinterface",
    PolicyDown Subscriber => Policy "to sessions with policies or rates",
    PermittedDown Policy => Subscriber "permitted",
    Encapsulated Subscriber => Tx "PPPoE",
    Queued Subscriber => Queue "of sessions with queues",
    Dequeued Queue => Tx "in their turn",
    ToMss Subscriber => Mss "SYN",
    SynToSubscriber Mss => Subscriber "SYN",
    SampledDown Subscriber => Samples "copies",
    LargeToNeighbour Neighbour => Fragment "too big",
    LargeToSubscriber Subscriber => Fragment "too big",
    Fragments Fragment => Tx "fragments",
    QueuedFragments Fragment => Queue "fragments to sessions with queues",
    Refused Fragment => Punt "what is left of those that must be whole",
    EgressQueued Tx => Queue "by a port with a rate",
    ByOther Tx => HandOver "by other workers' queues",
    TakenFrame HandOver => ClassifyAccess "frames of sessions",
    TakenPacket HandOver => Lookup "packets that were looked up",
    TakenReady HandOver => Tx "frames that are ready",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_node_is_reached_and_names_differ() {
        let ends = [Node::AccessRx, Node::CoreRx, Node::Gateway];
        for node in Node::ALL {
            let reached = Edge::ALL.iter().any(|edge| edge.to() == *node);
            assert_eq!(reached, !ends.contains(node), "{node:?}");
        }
        let names: HashSet<_> = Node::ALL.iter().map(|node| node.name()).collect();
        assert_eq!(names.len(), Node::ALL.len());
        let ways: HashSet<_> = (Edge::ALL.iter())
            .map(|edge| (edge.from(), edge.to(), edge.label()))
            .collect();
        assert_eq!(ways.len(), Edge::ALL.len());
    }

    /// What is in code quotes in a text.
    fn quoted(text: &str) -> HashSet<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn a_node_s_file_says_which_it_is_and_what_it_drops() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
        let nodes = std::fs::read_dir(format!("{source}nodes")).unwrap();
        let nodes = nodes.map(|file| format!("nodes/{}", file.unwrap().file_name().display()));
        // folders have their tests
        let files = nodes.filter(|file| file.ends_with(".rs") && file != "nodes/mod.rs");
        for file in files {
            let text = std::fs::read_to_string(format!("{source}{file}")).unwrap();
            let header: Vec<&str> = (text.lines())
                .map_while(|line| line.strip_prefix("//!"))
                .collect();
            let header = header.join("");
            let (first, drops) = header.split_once("Drops: ").unwrap_or((&header, ""));
            let its: Vec<_> = Node::ALL
                .iter()
                .filter(|node| node.file() == file)
                .collect();
            let names: HashSet<_> = its.iter().map(|node| node.name()).collect();
            let said = first.split(':').next().unwrap();
            assert_eq!(quoted(said), names, "{file}: the nodes");
            let reasons = its.iter().flat_map(|node| node.drops());
            let reasons: HashSet<_> = reasons.map(DropReason::name).collect();
            assert_eq!(quoted(drops), reasons, "{file}: the drops");
        }
        for node in Node::ALL {
            let file = format!("{source}{}", node.file());
            assert!(std::fs::exists(&file).unwrap(), "{file}");
        }
    }
}
