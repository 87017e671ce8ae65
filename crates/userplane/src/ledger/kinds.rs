//! What the user plane books, and what it means for the operator when it does not balance.

use northbound::Kind;

pub(crate) const PLACE: Kind = Kind::new(
    "session",
    "a place in the session table is taken, and no session is in it: there is room for fewer",
    "a session's place counts as free: the next session would take it",
);
pub(crate) const TEID: Kind = Kind::new(
    "TEID",
    "no session has the tunnel, and none can be given it",
    "the session's control packets from the control plane are dropped",
);
pub(crate) const DEFAULT: Kind = Kind::new(
    "default session",
    "discovery packets go to a session that is no more",
    "discovery packets of its port do not reach the control plane: no subscriber can dial in",
);
pub(crate) const NET: Kind = Kind::new(
    "net",
    "it is announced for a default session that does not name it",
    "a default session names it, and it is not announced: nothing reaches the subscribers in it",
);
pub(crate) const TIMER: Kind = Kind::new(
    "report timer",
    "it fires for a session that wants no report",
    "the session's usage is not reported until the control plane asks for it",
);
pub(crate) const REPORT: Kind = Kind::new(
    "usage report",
    "its acknowledgement will meet nobody",
    "it counts as sent and nobody sends it: the session's usage is not reported any more",
);
pub(crate) const ENTRY: Kind = Kind::new(
    "forwarding entry",
    "the worker forwards for a session that is not there: a subscriber that has ended, or an address that another may get",
    "the worker does not have the session as it was told: its subscriber's packets are dropped or counted wrongly",
);
pub(crate) const SESSION_ID: Kind = Kind::new(
    "stray PPPoE session id",
    "packets of this segment and id are taken for a session that is not there",
    "its session's packets are dropped",
);
pub(crate) const HOST_ROUTE: Kind = Kind::new(
    "host route",
    "packets to it go to a session that does not have the address",
    "nothing reaches the session at this address",
);
pub(crate) const ROUTE: Kind = Kind::new(
    "route",
    "packets go where the kernel has no route any more",
    "the kernel has this route and packets do not follow it; is the worker's table full (`sluice show drops`)?",
);
pub(crate) const ADJACENCY: Kind = Kind::new(
    "next hop",
    "the kernel knows no such neighbour any more",
    "the kernel knows this neighbour and packets to it are dropped",
);
pub(crate) const KERNEL_ROUTE: Kind = Kind::new(
    "kernel route",
    "it has `proto 96` and no group announces it: traffic for it is drawn to this gateway and dropped",
    "the kernel does not have it, and routing protocols do not announce it: nothing reaches the subscribers in it",
);
pub(crate) const VIEW: Kind = Kind::new(
    "mirrored route",
    "it was taken from the kernel, which does not have it (any more)",
    "the kernel has it, and that was not noticed",
);
pub(crate) const NEIGHBOUR: Kind = Kind::new(
    "mirrored neighbour",
    "it was taken from the kernel, which does not have it (any more)",
    "the kernel has it, and that was not noticed",
);
pub(crate) const MEANING: Kind = Kind::new(
    "resolved route",
    "it was derived from a route or neighbour that is no more",
    "nothing was derived from a route or neighbour; are there too many next hops (`sluice show drops`)?",
);
pub(crate) const DEVICE: Kind = Kind::new(
    "device",
    "the kernel has it and it is not configured",
    "the interface is gone or down: bring it up, or restart sluice-up, which makes it again",
);
