//! The kernel's routing tables, as messages.
//!
//! [`message`] and [`route`] turn rtnetlink messages into the few facts that a user plane needs. [`request`] builds the messages
//! that we send. [`socket`] is the only part that touches the kernel; [`scan`] and [`follower`] use it. [`crate::fib`] decides
//! what the facts mean for forwarding, and never sees a socket.

pub mod follower;
pub mod message;
pub mod request;
pub mod route;
pub mod scan;
pub mod socket;

/// Route protocol number (`rtm_protocol`) of the routes that Sluice exports.
///
/// 96 is in the range that `/etc/iproute2/rt_protos` leaves to the user; put
/// `96 sluice` there and `ip route show proto sluice` shows them by name.
pub const PROTO_SLUICE: u8 = 96;
