//! The command line: what can be asked, and how the answers look.

pub mod table;
pub mod units;

mod ask;
mod check;
mod show;
mod store;

pub use ask::{Failure, Sockets};

use crate::lab::LabOptions;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The exit code when a daemon does not answer.
const UNREACHABLE: u8 = 3;

/// Looks into a running gateway, and runs a whole one in a lab.
#[derive(Debug, Parser)]
#[command(
    name = "sluice",
    version,
    after_help = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 a daemon does not answer."
)]
pub struct Cli {
    #[command(flatten)]
    sockets: Sockets,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the state of the gateway
    #[command(subcommand)]
    Show(Show),
    /// End something
    #[command(subcommand)]
    Clear(Clear),
    /// Check that everything which is held has its owner, in both planes
    Check(Check),
    /// Check, back up or bring back the session store, on the machine where it is
    #[command(subcommand)]
    Store(store::Store),
    /// Run homes, access network, gateway and internet in namespaces of this machine (needs root)
    Lab(LabOptions),
}

#[derive(Debug, Subcommand)]
enum Show {
    /// All sessions
    Sessions(Format),
    /// One session, with its counters read from the user plane now
    Session {
        /// Its id, as `show sessions` prints it
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// The control plane's user planes
    UserPlanes(Format),
    /// The user plane's ports
    Ports(Format),
    /// What was dropped or refused, by name
    Drops {
        /// Also the counters that are zero
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct Format {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Check {
    /// Compare addresses, ids, tunnels, rules, routes and timers with the sessions that they are for
    #[arg(long, required = true)]
    ledger: bool,
    /// Give back what has no owner, and book what is missing
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Clear {
    /// End a session; its subscriber may dial in again
    Session {
        /// Its id, as `show sessions` prints it
        id: String,
    },
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> ExitCode {
        let sockets = self.sockets;
        let done = match self.command {
            Command::Show(Show::Sessions(format)) => show::sessions(&sockets, format.json),
            Command::Show(Show::Session { id, format }) => {
                show::session(&sockets, &id, format.json)
            }
            Command::Show(Show::UserPlanes(format)) => show::user_planes(&sockets, format.json),
            Command::Show(Show::Ports(format)) => show::ports(&sockets, format.json),
            Command::Show(Show::Drops { all, format }) => show::drops(&sockets, all, format.json),
            Command::Clear(Clear::Session { id }) => show::clear_session(&sockets, &id),
            Command::Check(check) => check::ledger(&sockets, check.repair, check.format.json),
            Command::Store(store) => store.run(),
            Command::Lab(options) => return crate::lab::run(&options),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("sluice: {failure}");
                match failure {
                    Failure::Unreachable { .. } => ExitCode::from(UNREACHABLE),
                    Failure::Other(_) => ExitCode::FAILURE,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
