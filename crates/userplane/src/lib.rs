//! The user plane's control thread: everything of `sluice-up` that is not the packet path.
//!
//! **What lives here.** [`start`](start()) brings a user plane up that is nothing yet,
//! [`configure`] makes it what a document says, at first and whenever that changes, and
//! [`run::UserPlane::run`] is its loop. The parts that decide know no sockets and no clock,
//! so that a simulator can run them:
//!
//! | module | what it decides |
//! |---|---|
//! | [`association`] | what control planes and sessions have to do with one another |
//! | [`engine`] | PFCP sessions: establishment to deletion, usage, reports |
//! | [`compile`] | what a session's rules come to, in ports and network instances |
//! | [`fib`] | what the kernel's routes and neighbours mean for forwarding |
//! | [`managed`] | documents of the management interface coming into force |
//! | [`cpri`] | control packets in GTP-U, both ways |
//! | [`icmp`] | the gateway's own ICMP errors |
//! | [`ledger`] | whether everything that is held has its owner |
//!
//! [`netlink`], [`device`], [`configure`] and [`run`] are the edge: sockets, TAPs, TUNs, the loop.
//!
//! **Who may call it.** `bin/sluice-up`, and tests.
//!
//! **The kernel's part.** Addresses of core ports and the gateway's own are the kernel's:
//! a TAP for each core port and subinterface, a TUN for each network instance, both persistent. Subscriber
//! nets are exported as `NET dev TUN proto sluice` (protocol number 96). A clean exit
//! withdraws them, since nobody forwards any more; a crash leaves them for the successor,
//! which keeps them for a minute and then removes what no control plane asked for again, so
//! that routing does not notice a restart. A supervisor that is told of the devices (systemd's
//! descriptor store) holds them open meanwhile, or they would lose their carrier.
//!
//! ```
//! use userplane::fib::{Command, Fib, Target};
//!
//! // One core port (3) behind the TAP with link index 10; the TUN has link index 9.
//! let mut fib = Fib::new([(10, 3)].into(), 9);
//! fib.add_net("100.64.0.0/24".parse().unwrap());
//! assert_eq!(
//!     fib.take_commands(),
//!     [
//!         Command::Export("100.64.0.0/24".parse().unwrap()),
//!         Command::SetRoute("100.64.0.0/24".parse().unwrap(), Target::Discard),
//!     ]
//! );
//! ```
#![forbid(unsafe_code)]

pub mod association;
pub mod compile;
pub mod configure;
pub mod cpri;
pub mod device;
pub mod engine;
pub mod fib;
pub mod host;
pub mod icmp;
pub mod ledger;
pub mod managed;
pub mod netlink;
pub mod run;
mod start;
pub mod table;

pub use start::{
    Parts, SetLevel, StartError, WorkerThreads, engine_config, node_config, start, was_told,
};
