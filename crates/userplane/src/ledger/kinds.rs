//! Kinds of resources in the user plane's resource audit, and what a difference means for the operator.

use northbound::Kind;

pub(crate) const PLACE: Kind = Kind::new(
    "session",
    "leaked: an entry of the session table is allocated but holds no session, so the table has less room",
    "a session's entry counts as free: the next session would take it",
);
pub(crate) const TEID: Kind = Kind::new(
    "TEID",
    "leaked: no session has the tunnel, and none can get it",
    "the session's control packets from the control plane are dropped",
);
pub(crate) const DEFAULT: Kind = Kind::new(
    "default session",
    "discovery packets go to a session that no longer exists",
    "discovery packets of its port do not reach the control plane: no subscriber can connect",
);
pub(crate) const NET: Kind = Kind::new(
    "prefix block",
    "it is announced for a default session that does not name it",
    "a default session names it, but it is not announced: no packet reaches the subscribers in it",
);
pub(crate) const TIMER: Kind = Kind::new(
    "timer",
    "it fires for a session that waits for nothing",
    "the session's usage is not reported until the control plane asks for it, or nobody notices that it is idle or gone",
);
pub(crate) const REPORT: Kind = Kind::new(
    "usage report",
    "no session waits for its acknowledgement",
    "it counts as sent but is not: the session's usage is no longer reported",
);
pub(crate) const ENTRY: Kind = Kind::new(
    "forwarding entry",
    "the worker forwards for a session that no longer exists; another subscriber may get its address",
    "the worker's entry is missing or wrong: the subscriber's packets are dropped or counted wrongly",
);
pub(crate) const SESSION_ID: Kind = Kind::new(
    "stray PPPoE session id",
    "packets of this segment and id match a session that no longer exists",
    "its session's packets are dropped",
);
pub(crate) const QUEUES: Kind = Kind::new(
    "queues of a session",
    "the session no longer exists, or its packets do not find them: memory of the worker, and a part of the rate of its port",
    "its session's packets do not wait",
);
pub(crate) const HOST_ROUTE: Kind = Kind::new(
    "host route",
    "packets to it go to a session that does not have the address",
    "no packet reaches the session at this address",
);
pub(crate) const ROUTE: Kind = Kind::new(
    "route",
    "packets follow a route that the kernel no longer has",
    "the kernel has this route, but packets do not follow it; check whether the worker's table is full (`sluice show \
        drops`)",
);
pub(crate) const ADJACENCY: Kind = Kind::new(
    "next hop",
    "the kernel no longer has this neighbour",
    "the kernel has this neighbour, but packets to it are dropped",
);
pub(crate) const KERNEL_ROUTE: Kind = Kind::new(
    "kernel route",
    "leaked: it has `proto 96` but no group announces it, so traffic for it comes to this gateway and is dropped",
    "the kernel does not have it, so routing protocols do not announce it: no packet reaches the subscribers in it",
);
pub(crate) const VIEW: Kind = Kind::new(
    "mirrored route",
    "it was copied from the kernel, which does not have it",
    "the kernel has it, but it was not copied",
);
pub(crate) const NEIGHBOUR: Kind = Kind::new(
    "mirrored neighbour",
    "it was copied from the kernel, which does not have it",
    "the kernel has it, but it was not copied",
);
pub(crate) const MEANING: Kind = Kind::new(
    "resolved route",
    "it was derived from a route or neighbour that no longer exists",
    "nothing was derived from a route or neighbour; check whether there are too many next hops (`sluice show drops`)",
);
pub(crate) const DEVICE: Kind = Kind::new(
    "device",
    "the kernel has it, but it is not configured",
    "the interface is missing or down: bring it up, or restart sluice-up, which creates it again",
);
