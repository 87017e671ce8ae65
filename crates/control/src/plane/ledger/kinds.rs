//! Kinds of resources in the control plane's resource audit, and what a difference means for the operator.

use northbound::Kind;

/// Entries of the session table, which determine SEID and TEIDs.
pub(super) const SESSION: Kind = Kind::new(
    "session",
    "an entry of the session table holds another entry's session: restart sluice-cp, which reads the sessions from its \
        store",
    "a session is not in the entry that its SEID names: restart sluice-cp, which reads the sessions from its store",
);
pub(super) const ADDRESS: Kind = Kind::new(
    "address",
    "leaked: no session has it, and no other subscriber can get it",
    "a session has it, but its pool may allocate it to another subscriber",
);
pub(super) const LENT_NET: Kind = Kind::new(
    "pool prefix block",
    "leaked: the group has it but none of its sessions has an address in it, and no other group can get it",
    "a session has an address in it, but the pool may allocate it to another group",
);
pub(super) const NET: Kind = Kind::new(
    "prefix block",
    "the group announces it, but none of its sessions has an address in it",
    "a session has an address in it, but the group does not announce it: no packet reaches the subscriber",
);
pub(super) const ANNOUNCEMENT: Kind = Kind::new(
    "announced prefix block",
    "the user plane announces it, but the group no longer has it",
    "the user plane does not announce it: no packet reaches the subscribers in it",
);
pub(super) const SESSION_ID: Kind = Kind::new(
    "PPPoE session id",
    "leaked: no session has it, and no other session of the segment can get it",
    "a session has it, but another session may get it too",
);
pub(super) const LINE: Kind = Kind::new(
    "access line",
    "it leads to a session that no longer exists",
    "the session is not found when its subscriber reconnects: the subscriber may have one more than its MAC address may have",
);
pub(super) const USER: Kind = Kind::new(
    "session of a user name",
    "it counts against the user name's sessions, but no longer exists: the user may be refused too early",
    "it does not count among the user name's sessions: the user may have more than it is allowed",
);
pub(super) const SUBSCRIBER: Kind = Kind::new(
    "session of a subscriber",
    "it counts against the subscriber's sessions, but no longer exists: the subscriber may be refused too early",
    "it does not count among the subscriber's sessions: the subscriber may have more than it is allowed",
);
pub(super) const TIMER: Kind = Kind::new(
    "timer",
    "it fires for a session that no longer exists or needs no timer",
    "the session waits for a timer that does not fire: its keepalive, interim records or end are late",
);
pub(super) const SHEDDING: Kind = Kind::new(
    "half-open session",
    "it is in the half-open list but is not half-open",
    "it is half-open but not in the half-open list: it cannot be ended when there are too many",
);
pub(super) const HALF_OPEN: Kind = Kind::new(
    "half-open count",
    "the count is too high: half-open sessions are ended too early",
    "the count is too low: their limit does not hold",
);
pub(super) const PUT_BACK: Kind = Kind::new(
    "put back",
    "too many sessions count as being established again: others wait longer for their rules",
    "too few sessions count as being established again",
);
pub(super) const PORT: Kind = Kind::new(
    "access port",
    "it is open, but its user plane is not associated",
    "the user plane is associated but has not opened it: no subscriber can connect. If this lasts, compare the port's name \
        in both configurations",
);
pub(super) const REQUEST: Kind = Kind::new(
    "PFCP request",
    "it is no longer sent: the operation that waits for its answer would wait for ever",
    "no operation waits for its answer",
);
pub(super) const QUESTION: Kind = Kind::new(
    "AAA request",
    "it is no longer sent: the operation that waits for its answer would wait for ever",
    "no operation waits for its answer",
);
pub(super) const ORDER: Kind = Kind::new(
    "CoA or Disconnect request",
    "nobody carries it out: the RADIUS server gets no answer",
    "the RADIUS server no longer waits for it",
);
pub(super) const RECORD: Kind = Kind::new(
    "accounting record",
    "leaked: no session owns it, but it holds a RADIUS identifier: restart sluice-cp, which reads the records from its \
        store",
    "a session's record is not delivered: restart sluice-cp, which reads the records from its store",
);
pub(super) const WAIT: Kind = Kind::new(
    "wait",
    "an operation is pending, but no session waits for it",
    "a session waits for an operation that is not pending: it would wait for ever",
);
/// Rules of sessions at the user planes, found by PFCP audits.
pub(super) const RULES: Kind = Kind::new(
    "rules",
    "its user plane has rules of an unknown session: they are deleted there",
    "its user plane has other rules of the session, or none: they are installed again",
);
