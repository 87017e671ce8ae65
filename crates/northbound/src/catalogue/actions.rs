//! The actions, and the questions whose answers are no tables.

use super::Access::{Change, Read};
use super::{Action, Argument, Takes, filter_with};
use crate::{MOST_CLEAR_RATE, MOST_WATCH_SECONDS};

/// Every action.
pub const ACTIONS: &[&Action] = &[
    &SHOW_SESSION,
    &SHOW_SUBSCRIBER,
    &SHOW_CONFIGURATION,
    &EXPLAIN,
    &WHO,
    &TOP,
    &TRACE,
    &WATCH_SESSION,
    &WATCH_EVENTS,
    &EXPORT_RECORDS,
    &CHECK,
    &CLEAR_SESSION,
    &CLEAR_SESSIONS,
    &CLEAR_BACK_OFF,
    &ACKNOWLEDGE_ALARM,
    &TEST_AAA,
    &BACKUP_HISTORY,
    &DRAIN_USER_PLANE,
    &MOVE_AGGREGATE,
    &CONFIGURE,
    &COMMIT,
    &COMMIT_CHECK,
    &COMMIT_CONFIRM,
];

/// One session.
pub const SHOW_SESSION: Action = Action {
    name: "show session",
    about: "One session, with its counters and what its policies have denied, read from the user plane now",
    calls: &[
        "ControlPlane/GetSession",
        "ControlPlane/GetSessionPolicy",
        "History/FindSubscriber",
    ],
    access: Read,
    arguments: &[SESSION],
};

/// One subscriber.
pub const SHOW_SUBSCRIBER: Action = Action {
    name: "show subscriber",
    about: "One subscriber, with all of its sessions",
    calls: &["History/FindSubscriber"],
    access: Read,
    arguments: &[SUBSCRIBER],
};

const SUBSCRIBER: Argument = Argument::new(
    "subscriber",
    Takes::Subscriber,
    "A name, a line, a circuit id, a MAC address, a session, or an address",
)
.required();

/// The configuration as a document.
pub const SHOW_CONFIGURATION: Action = Action {
    name: "show configuration",
    about: "The configuration, without its secrets",
    calls: &["Configuration/GetConfiguration"],
    access: Read,
    arguments: &[Argument::new(
        "version",
        Takes::Number(0, u64::MAX),
        "As it was in this version",
    )],
};

/// Why a subscriber is online or not.
pub const EXPLAIN: Action = Action {
    name: "explain",
    about: "Say why a subscriber is online or not, and where its packets go",
    calls: &["History/FindSubscriber", "ControlPlane/GetSessionPolicy"],
    access: Read,
    arguments: &[SUBSCRIBER],
};

/// Who had an address.
pub const WHO: Action = Action {
    name: "who",
    about: "Say who had an address, now or at another time",
    calls: &["History/FindHolders"],
    access: Read,
    arguments: &[
        Argument::new(
            "address",
            Takes::Address,
            "An IPv4 or IPv6 address or prefix",
        )
        .required(),
        Argument::new(
            "at",
            Takes::Time,
            "When it was: `at` and a time such as 2026-11-22T07:15:00Z, 07:15 (UTC) or -2h [default: now]",
        ),
    ],
};

/// The gateway at work.
pub const TOP: Action = Action {
    name: "top",
    about: "Watch sessions, alarms, throughput, drops, workers and pools",
    calls: &["Live/WatchState"],
    access: Read,
    arguments: &[Argument::new(
        "interval",
        Takes::Number(1, 60),
        "Seconds from one look to the next",
    )],
};

/// A subscriber's messages and packets. It changes nothing, but it shows what a subscriber sends.
pub const TRACE: Action = Action {
    name: "trace",
    about: "Follow a subscriber's control messages and packets, live",
    calls: &["Live/Trace"],
    access: Change,
    arguments: &[
        Argument::new(
            "who",
            Takes::Home,
            "A session's id or address, the name of a user who has a session, or a home's MAC address, which need not be online",
        )
        .required(),
        Argument::new("seconds", Takes::Number(1, 3600), "End after so many seconds"),
        Argument::new(
            "samples",
            Takes::Number(0, 1000),
            "Show at most so many forwarded packets of a session in a second; 0: none",
        ),
        Argument::new(
            "one-in",
            Takes::Number(1, u32::MAX as u64),
            "Show only one in so many forwarded packets",
        ),
    ],
};

/// Hits of rules by a subscriber's packets. It changes nothing, but few sessions are watched at once.
pub const WATCH_SESSION: Action = Action {
    name: "watch session",
    about: "Count for some time which rules the packets of a session match; `show session` shows it",
    calls: &["ControlPlane/WatchRules"],
    access: Change,
    arguments: &[
        SESSION,
        Argument::new(
            "seconds",
            Takes::Number(0, MOST_WATCH_SECONDS as u64),
            "End after so many seconds; 0: now [default: 60]",
        ),
    ],
};

/// Kinds of events, as [`EventKind::list`](crate::EventKind::list) reads them.
pub(super) const EVENT_KINDS: Argument = Argument::new(
    "kinds",
    Takes::Text,
    "Only these kinds, with commas between them, such as alarm-raised,ended",
);

/// Events as they happen.
pub const WATCH_EVENTS: Action = Action {
    name: "watch events",
    about: "Show events of subscribers and of the system as they happen",
    calls: &["History/FollowEvents"],
    access: Read,
    arguments: &[
        Argument::new(
            "subscriber",
            Takes::Subscriber,
            "Of whom: a name, a MAC address, a session, or an address",
        ),
        EVENT_KINDS,
        Argument::new(
            "after",
            Takes::Number(0, u64::MAX),
            "First those behind the event with this number [default: only what happens from now on]",
        ),
    ],
};

/// Records of sessions that have ended.
pub const EXPORT_RECORDS: Action = Action {
    name: "export records",
    about: "Print a record of each session that has ended and is counted, one line of JSON each",
    calls: &["History/FollowEvents"],
    access: Read,
    arguments: &[
        Argument::new(
            "since",
            Takes::Time,
            "Only sessions that were counted then or later: 2026-11-22T07:15:00Z, 07:15 (UTC), or -2h",
        ),
        Argument::new(
            "until",
            Takes::Time,
            "Only sessions that were counted before this [default: all up to now]",
        ),
        Argument::new(
            "after",
            Takes::Number(0, u64::MAX),
            "Only those behind the record with this number, of which none may be missing",
        ),
    ],
};

/// The resource audit of every plane; its table is [`super::ACCOUNTS`].
pub const CHECK: Action = Action {
    name: "check",
    about: "Check that every resource has its owner, in both planes",
    calls: &[
        "ControlPlane/CheckLedger",
        "ControlPlane/CheckUserPlaneLedger",
    ],
    access: Read,
    arguments: &[
        Argument::new(
            "resources",
            Takes::Nothing,
            "Compare addresses, ids, tunnels, rules, routes and timers with the sessions that they are for",
        )
        .required(),
        REPAIR,
    ],
};

/// What [`CHECK`] may be told.
pub const REPAIR: Argument = Argument::new(
    "repair",
    Takes::Nothing,
    "Release leaked resources, and allocate missing ones",
)
.needs(Change);

/// Ends a session.
pub const CLEAR_SESSION: Action = Action {
    name: "clear session",
    about: "End a session; its subscriber may connect again",
    calls: &["ControlPlane/ClearSession"],
    access: Change,
    arguments: &[SESSION],
};

/// Ends the sessions that a filter matches.
pub const CLEAR_SESSIONS: Action = Action {
    name: "clear sessions",
    about: "End the sessions that a filter matches, so many in a second; their subscribers may connect again",
    calls: &[
        "ControlPlane/CountSessions",
        "ControlPlane/ListSessions",
        "ControlPlane/ClearSessions",
    ],
    access: Change,
    arguments: &CLEAR_SESSIONS_ARGUMENTS,
};

const CLEAR_SESSIONS_ARGUMENTS: [Argument; 20] = filter_with([
    Argument::new(
        "expect",
        Takes::Number(0, u64::MAX),
        "How many sessions match, as was seen before; if another number matches now, none ends",
    ),
    Argument::new(
        "rate",
        Takes::Number(1, MOST_CLEAR_RATE as u64),
        "How many end in a second [default: 100]",
    ),
    Argument::new(
        "stop",
        Takes::Nothing,
        "End no more sessions for the last `clear sessions`",
    ),
]);

/// Ends a back-off or a lock-out.
pub const CLEAR_BACK_OFF: Action = Action {
    name: "clear back-off",
    about: "Forget failed set-ups and logins of a MAC address or an access line",
    calls: &["ControlPlane/ClearBackOff"],
    access: Change,
    arguments: &[Argument::new(
        "who",
        Takes::Text,
        "A MAC address, a circuit id, or a line such as up1/access0.100.7, as `show protection` prints them",
    )
    .required()],
};

/// Says that an operator knows of an alarm.
pub const ACKNOWLEDGE_ALARM: Action = Action {
    name: "acknowledge alarm",
    about: "Acknowledge a raised alarm; `show alarms` shows by whom, until it is cleared",
    calls: &["ControlPlane/AcknowledgeAlarm"],
    access: Change,
    arguments: &[
        Argument::new("alarm", Takes::Text, "Its name, as `show alarms` prints it").required(),
        Argument::new(
            "resource",
            Takes::Text,
            "What it is raised of; needed if several alarms have this name",
        ),
        Argument::new(
            "comment",
            Takes::Text,
            "What is known of it, at most 1000 characters",
        ),
    ],
};

/// Asks AAA about a user.
pub const TEST_AAA: Action = Action {
    name: "test aaa",
    about: "Ask AAA about a user as a session would, and show what each value of the answer comes to",
    calls: &["ControlPlane/TestAaa"],
    access: Change,
    arguments: &[
        Argument::new("user", Takes::Subscriber, "The user name").required(),
        Argument::new(
            "access-profile",
            Takes::Text,
            "Access profile of the session; needed if there are several",
        ),
    ],
};

const SESSION: Argument = Argument::new(
    "session",
    Takes::Session,
    "Its id, as `show sessions` prints it",
)
.required();

/// Copies the history.
pub const BACKUP_HISTORY: Action = Action {
    name: "backup history",
    about: "Copy the history into a file beside it, while it is written",
    calls: &["History/Backup"],
    access: Change,
    arguments: &[],
};

/// Empties a user plane: a commit of its `admin-state`.
pub const DRAIN_USER_PLANE: Action = Action {
    name: "drain user-plane",
    about: "Take no new sessions on a user plane; those that it has stay, unless they are to be ended",
    calls: &["Configuration/GetConfiguration", "Configuration/Commit"],
    access: Change,
    arguments: &[
        Argument::new("user-plane", Takes::UserPlane, "Its node id").required(),
        Argument::new(
            "end-sessions",
            Takes::Number(1, 10_000),
            "End its sessions, so many in a second",
        ),
        Argument::new("stop", Takes::Nothing, "Take new sessions again"),
    ],
};

/// Moves an aggregate to a worker of its user plane.
pub const MOVE_AGGREGATE: Action = Action {
    name: "move aggregate",
    about: "Move an access segment, or an outer VLAN of one, to a worker of its user plane; no session ends, and what waits goes along",
    calls: &["ControlPlane/MoveAggregate"],
    access: Change,
    arguments: &[
        Argument::new(
            "aggregate",
            Takes::QueueAggregate,
            "Its name, such as up1/access0/olt1 or up1/access0/olt1.100, as `show qos aggregates` prints it",
        )
        .required(),
        Argument::new(
            "worker",
            Takes::Number(0, 15),
            "Number of the worker, as `show workers` prints it",
        )
        .required(),
    ],
};

/// Begins to edit the configuration; `exclusive` locks it.
pub const CONFIGURE: Action = Action {
    name: "configure",
    about: "Change the configuration, or with commands on standard input have it changed",
    calls: &["Configuration/Lock"],
    access: Change,
    arguments: &[Argument::new(
        "exclusive",
        Takes::Nothing,
        "Keep everybody else out meanwhile",
    )],
};

/// Makes edits, a document or an earlier version the configuration.
pub const COMMIT: Action = Action {
    name: "commit",
    about: "Make the candidate the configuration",
    calls: &["Configuration/Commit"],
    access: Change,
    arguments: &[],
};

/// What a commit would do.
pub const COMMIT_CHECK: Action = Action {
    name: "commit check",
    about: "Only say what it would do",
    calls: &["Configuration/CheckChange"],
    access: Read,
    arguments: &[],
};

/// Keeps a version.
pub const COMMIT_CONFIRM: Action = Action {
    name: "commit confirm",
    about: "Keep a version that waits for it",
    calls: &["Configuration/Confirm"],
    access: Change,
    arguments: &[],
};
