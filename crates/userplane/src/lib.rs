//! The user plane's control thread: everything of `sluice-up` that is not the packet path.
//!
//! **What lives here.** [`start`](start()) starts an unconfigured user plane. [`configure`] applies documents, at first and on
//! each change. [`run::UserPlane::run`] is the loop. The parts that decide use no sockets and no clock, so that a simulator can
//! run them:
//!
//! | module | what it decides |
//! |---|---|
//! | [`association`] | what events of control planes mean for sessions |
//! | [`engine`] | PFCP sessions: establishment to deletion, usage, reports |
//! | [`compile`] | how a session's rules map to ports and network instances |
//! | [`fib`] | what the kernel's routes and neighbours mean for forwarding |
//! | [`managed`] | how documents of the management interface come into force |
//! | [`cpri`] | control packets in GTP-U, in both directions |
//! | [`icmp`] | the gateway's own ICMP errors |
//! | `lag` | which members of a port are used, by LACP |
//! | [`portal`] | what connections get that a rule redirects |
//! | [`ledger`] | which resources are leaked or missing |
//!
//! [`netlink`], [`device`], [`configure`] and [`run`] do the I/O: sockets, TAPs, TUNs, the loop.
//!
//! **Who may call it.** `bin/sluice-up`, and tests.
//!
//! **The kernel's part.** The kernel owns the addresses of core ports and the gateway's own. Each core port and subinterface has a
//! TAP, and each network instance a TUN; both are persistent. Subscriber prefixes are exported as `NET dev TUN proto sluice` (protocol
//! number 96), with the metric of the subscriber's policy, if it has one. A clean exit withdraws them, because nobody forwards any
//! more. A crash leaves them for the next process. It keeps them for a minute and then removes those that no control plane announced
//! again, so that routing does not notice a restart. A supervisor (systemd's descriptor store) holds the devices open meanwhile;
//! otherwise they would lose their carrier.
//!
//! ```
//! use userplane::fib::{Command, Fib, Target};
//!
//! // One core port (3) behind the TAP with link index 10; the TUN has link index 9.
//! let mut fib = Fib::new([(10, 3)].into(), 9);
//! let net: ipnet::IpNet = "100.64.0.0/24".parse().unwrap();
//! fib.add_net(net);
//! assert_eq!(
//!     fib.take_commands(),
//!     [
//!         Command::Export(net.into()),
//!         Command::SetRoute(net, Target::Discard),
//!     ]
//! );
//! ```
#![forbid(unsafe_code)]

pub mod announcement;
pub mod association;
mod bucket;
pub mod compile;
pub mod configure;
pub mod cpri;
pub mod device;
mod documents;
pub mod engine;
pub mod fib;
pub mod host;
pub mod icmp;
mod lag;
pub mod ledger;
pub mod managed;
mod moved;
pub mod netlink;
pub mod policies;
pub mod portal;
pub mod run;
mod start;
pub mod table;

pub use documents::DocumentReader;
pub use moved::Moved;
pub use start::{Parts, SetLevel, StartError, WorkerThreads, engine_config, node, start, was_told};
