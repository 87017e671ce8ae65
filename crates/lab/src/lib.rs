//! The lab: homes, access network, gateway and internet on one machine, in network namespaces of their own.
//!
//! [`topology`] builds the network of the lab that [`claim`] gives it. [`gateway`] starts the daemons and lets [`supervisor`] keep
//! them going, [`access_network`] holds the homes and [`internet`] the host that they talk to.
//! [`web_manager`] is for browsers of this machine. `sluice lab` conducts these parts; the
//! end-to-end cases build their networks and processes from them. It needs root.
//!
//! ```no_run
//! use lab::topology::{Lab, Place, UserPlane};
//!
//! let lab = Lab::new("docs")?;
//! let tap = lab.tap(UserPlane::One, "home0")?; // a home's line, behind the access bridge
//! lab.netns(Place::Internet).run(&["ping", "-c", "1", "198.51.100.2"])?;
//! drop(tap);
//! lab.close()?;
//! # Ok::<(), anyhow::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod access_network;
pub mod claim;
pub mod daemon;
pub mod gateway;
pub mod internet;
pub mod keep;
pub mod netns;
pub mod octets;
pub mod port;
pub mod process;
pub mod reflector;
pub mod roll;
pub mod routes;
pub mod supervisor;
pub mod topology;
pub mod web_manager;
