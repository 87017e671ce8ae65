//! Emulated homes for the lab and for load: client-side state machines of PPPoE and PPP, and verified traffic.
//!
//! Nothing here comes from the gateway's own state machines: what a home expects of a gateway was written down a second
//! time, from the RFCs, so that the two cannot share a mistake; they share the codecs of [`wire`] alone. There is no I/O
//! and no clock either. Whoever has a wire (the lab's TAP, a test's other end) owns [`Homes`], or a single [`Home`].
//!
//! ```
//! use core::time::Duration;
//! use cpe::{Home, HomeConfig, Output, State};
//!
//! let config = HomeConfig::new([2, 0, 0, 0, 0, 7].into(), 100, 7, "home7", "secret");
//! let mut home = Home::new(config, 1);
//! home.dial(Duration::ZERO);
//! let Some(Output::Frame(padi)) = home.poll_output() else { panic!() };
//! assert_eq!(padi[12..20], [0x81, 0x00, 0, 100, 0x81, 0x00, 0, 7]);
//! assert_eq!(home.state(), State::Discovery);
//! ```
#![forbid(unsafe_code)]

mod auth;
mod data;
mod discovery;
mod histogram;
mod home;
mod homes;
mod leases;
mod link;
mod negotiate;
mod network;
mod pace;
mod progress;
mod random;
mod reflector;
mod terms;
mod traffic;

pub use histogram::Histogram;
pub use home::{Datagram, End, Home, HomeConfig, Output, Received};
pub use homes::Homes;
pub use leases::Delegation;
pub use pace::{Pace, Rate};
pub use progress::{Progress, State};
pub use reflector::Reflector;
pub use terms::Auth;
pub use traffic::{Arrival, Counts, Label, Party, Stamp, Verdict, Verifier};

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];
}
