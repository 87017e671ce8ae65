//! What the control plane books, and what it means for the operator when it does not balance.

use northbound::Kind;

/// Places in the session table, with the SEID and TEIDs that follow from them.
pub(super) const SESSION: Kind = Kind::new(
    "session",
    "a place in the session table holds a session of another place: restart sluice-cp, which reads them from its store",
    "a session is not where its SEID says: restart sluice-cp, which reads it from its store",
);
pub(super) const ADDRESS: Kind = Kind::new(
    "address",
    "no session has it, and no other subscriber can get it",
    "a session has it, and its pool may give it to another subscriber",
);
pub(super) const LENT_NET: Kind = Kind::new(
    "pool net",
    "it is lent to the group although none of its sessions has an address in it: no other group can get it",
    "a session has an address in it, and the pool may lend it to another group",
);
pub(super) const NET: Kind = Kind::new(
    "net",
    "the group announces it although none of its sessions has an address in it",
    "a session has an address in it, and the group does not announce it: nothing reaches the subscriber",
);
pub(super) const ANNOUNCEMENT: Kind = Kind::new(
    "announced net",
    "the user plane announces it, and the group does not want that any more",
    "the user plane was not told to announce it: nothing reaches the subscribers in it",
);
pub(super) const SESSION_ID: Kind = Kind::new(
    "PPPoE session id",
    "no session has it, and no other subscriber of the segment can get it",
    "a session has it, and another subscriber may get it too",
);
pub(super) const LINE: Kind = Kind::new(
    "access line",
    "the session that it leads to is no more",
    "the subscriber's session is not found when it dials in anew: it would have two",
);
pub(super) const TIMER: Kind = Kind::new(
    "timer",
    "it fires for a session that is no more, or wants no timer",
    "the session waits for a timer that does not fire: its keepalive, interim records or end are late",
);
pub(super) const SHEDDING: Kind = Kind::new(
    "half-open session",
    "it is to be shed although it is not half-open",
    "it is half-open, and cannot be shed when too many are",
);
pub(super) const HALF_OPEN: Kind = Kind::new(
    "half-open count",
    "more sessions are counted as half-open than there are: others are shed too early",
    "fewer sessions are counted as half-open than there are: their limit does not hold",
);
pub(super) const PUT_BACK: Kind = Kind::new(
    "put back",
    "more sessions are counted as being put back than are: others wait longer for their rules",
    "fewer sessions are counted as being put back than are",
);
pub(super) const PORT: Kind = Kind::new(
    "access port",
    "it is open although its user plane is not there",
    "the user plane is there and has not opened it: no subscriber can dial in. If it stays so, compare its name in both \
     configurations",
);
pub(super) const REQUEST: Kind = Kind::new(
    "PFCP request",
    "nobody sends it any more: whoever asked would wait for ever",
    "its answer will meet nobody",
);
pub(super) const QUESTION: Kind = Kind::new(
    "AAA question",
    "nobody sends it any more: whoever asked would wait for ever",
    "its answer will meet nobody",
);
pub(super) const RECORD: Kind = Kind::new(
    "accounting record",
    "no session is known for it, and it holds a RADIUS identifier: restart sluice-cp, which reads it from its store",
    "a session owes it, and nobody delivers it: restart sluice-cp, which reads it from its store",
);
pub(super) const WAIT: Kind = Kind::new(
    "wait",
    "somebody sees to it although nobody waits",
    "nobody sees to what is waited for: it would last for ever",
);
/// What user planes have of sessions, as audits find.
pub(super) const RULES: Kind = Kind::new(
    "rules",
    "its user plane has rules of a session that we do not have: they are deleted there",
    "its user plane has other rules of it than we believe, or none: it is told them again",
);
