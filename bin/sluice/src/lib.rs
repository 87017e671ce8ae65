//! The `sluice` command: the two daemons' local API as tables, the lab that runs a whole gateway in namespaces,
//! and emulated homes that load any gateway.
//!
//! The binary parses [`cli::Cli`] and runs it; everything else is behind that.
//!
//! ```
//! use clap::Parser;
//! use sluice::cli::Cli;
//!
//! assert!(Cli::try_parse_from(["sluice", "show", "sessions"]).is_ok());
//! assert!(Cli::try_parse_from(["sluice", "show", "nonsense"]).is_err());
//! ```
#![forbid(unsafe_code)]

pub mod cli;
mod lab;
mod load;
mod screen;
pub mod shell;
mod top;
mod trace;
