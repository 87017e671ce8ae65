//! The tables.

mod control_plane;
mod history;
mod sessions;
mod traffic;
mod user_planes;

use super::{Argument, Table, Takes, Words};
pub use control_plane::*;
pub use history::*;
pub use sessions::*;
pub use traffic::*;
pub use user_planes::*;

/// Every table, in the order in which they are offered.
pub const TABLES: &[&Table] = &[
    &SESSIONS,
    &SUBSCRIBERS,
    &LINES,
    &TROUBLE,
    &SESSION_COUNTS,
    &SESSION_CLEARS,
    &WAITS,
    &USER_PLANES,
    &PORTS,
    &LAG_MEMBERS,
    &ROUTES,
    &NEIGHBOURS,
    &DAEMONS,
    &WORKERS,
    &ACL,
    &POLICIES,
    &QUEUES,
    &QUEUE_AGGREGATES,
    &PROTECTION,
    &POOLS,
    &ASSOCIATIONS,
    &AAA_SERVERS,
    &ALARMS,
    &ALARM_HISTORY,
    &EVENTS,
    &FIGURES,
    &DROPS,
    &VERSIONS,
];

/// No word is replaced: each is shown as the message has it, with blanks.
const AS_IT_IS: Words = &[];

const OF_USER_PLANE: Argument =
    Argument::new("user-plane", Takes::UserPlane, "Its node id");
