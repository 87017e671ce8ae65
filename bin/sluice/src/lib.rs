//! The `sluice` command: the two daemons' local API as tables, and the lab that runs a whole gateway in namespaces.
//!
//! The binary calls [`cli`]; the end-to-end cases build their networks from [`lab::topology`] and their processes from
//! [`lab::process`].
//!
//! ```no_run
//! use sluice::lab::topology::{Lab, Place, UserPlane};
//!
//! let lab = Lab::new("docs")?;
//! let tap = lab.tap(UserPlane::One, "home0")?; // a home's line, behind the access bridge
//! lab.netns(Place::Internet).run(&["ping", "-c", "1", "198.51.100.2"])?;
//! drop(tap);
//! lab.close()?;
//! # Ok::<(), anyhow::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod cli;
pub mod lab;
mod screen;
pub mod shell;
mod top;
mod trace;
