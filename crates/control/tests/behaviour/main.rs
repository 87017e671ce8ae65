//! The control plane from outside: homes, RADIUS and user planes talk to it in a world of one thread, with a clock of its own.

mod aaa_answer;
mod access_loop;
mod announcements;
mod backlog;
mod bindings;
mod change;
mod disk;
mod drain;
mod dynamic;
mod fallback;
mod history;
mod lanes;
mod last_counters;
mod leaves;
mod liar;
mod names;
mod plane;
mod radius_records;
mod recorded_bindings;
mod resume;
mod store_crash;
mod store_fixtures;
mod subscribers;
mod unknown_peers;
mod users;
mod world;
