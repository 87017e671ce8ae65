//! The command line: what can be asked, and how the answers look.

pub mod table;
pub mod units;

mod alarms;
mod ask;
mod check;
mod configuration;
mod drain;
mod explain;
mod history;
mod show;
mod store;
mod tables;
mod time;
mod workers;

pub(crate) use alarms::word as severity;
pub(crate) use ask::Watching;
pub use ask::{Configuration, Failure, Sockets};
pub use configuration::versions;
pub(crate) use drain::not_there_yet;
pub use show::Answer;
pub(crate) use show::terminal_width;

use crate::lab::LabOptions;
use crate::top::Top;
use crate::trace::Trace;
use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

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
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the state of the gateway
    #[command(subcommand)]
    Show(Show),
    /// Change the configuration, or with commands on standard input have it changed
    Configure {
        /// Keep everybody else out meanwhile
        #[arg(value_parser = ["exclusive"])]
        exclusive: Option<String>,
    },
    /// Say why a subscriber is online or not, and where its packets go
    Explain(explain::Explain),
    /// Say who had an address, now or at another time
    Who(history::Who),
    /// End something
    #[command(subcommand)]
    Clear(Clear),
    /// Empty something before work is done on it
    #[command(subcommand)]
    Drain(drain::Drain),
    /// Watch sessions, alarms, throughput, drops, workers and pools, live
    Top(Top),
    /// Follow a subscriber's control messages and packets, live
    Trace(Trace),
    /// Check that everything which is held has its owner, in both planes
    Check(Check),
    /// Check, back up or bring back the session store, on the machine where it is
    #[command(subcommand)]
    Store(store::Store),
    /// Print the completions for a shell: sluice completions bash > /etc/bash_completion.d/sluice
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a folder: sluice man /usr/share/man/man1
    Man {
        /// The folder
        folder: PathBuf,
    },
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
        #[arg(value_name = "SESSION")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// The configuration, without its secrets
    Configuration {
        /// As it was in this version
        #[arg(long)]
        version: Option<u64>,
        #[command(flatten)]
        format: Format,
    },
    /// The versions of the configuration: who made each, when and why
    Versions(Format),
    /// The control plane's user planes
    UserPlanes(Format),
    /// The subscribers by name, with their sessions and addresses
    Subscribers(Format),
    /// The ports of all user planes, or of one
    Ports(OfUserPlane),
    /// What the forwarding tables of all user planes have, or of one
    Routes(OfUserPlane),
    /// The threads that forward packets: how busy they are, what they hand over to each other
    Workers(OfUserPlane),
    /// The neighbours on the core ports of all user planes, or of one
    Neighbours(OfUserPlane),
    /// The address pools: how much there is, how much is used, and who has nets of them
    Pools(Format),
    /// The PFCP associations with the user planes
    Associations(Format),
    /// The RADIUS servers, and how they are doing
    AaaServers(Format),
    /// What is wrong
    Alarms(alarms::Alarms),
    /// What happened to subscribers and to the system
    Events(history::Events),
    /// What was dropped or refused, by name
    Drops {
        /// Also the counters that are zero
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, clap::Args)]
struct OfUserPlane {
    /// Its node id
    #[arg(value_name = "USER-PLANE")]
    name: Option<String>,
    #[command(flatten)]
    format: Format,
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
        #[arg(value_name = "SESSION")]
        id: String,
    },
}

impl Cli {
    /// Does what was asked for; without a command, whatever is typed.
    pub fn run(mut self) -> ExitCode {
        match self.command.take() {
            None => crate::shell::run(self.sockets, None),
            Some(Command::Configure { exclusive }) => {
                crate::shell::run(self.sockets, Some(exclusive.is_some()))
            }
            Some(Command::Store(store)) => match store.run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            },
            Some(Command::Completions { shell }) => {
                let mut command = Cli::command();
                clap_complete::generate(shell, &mut command, "sluice", &mut std::io::stdout());
                ExitCode::SUCCESS
            }
            Some(Command::Man { folder }) => {
                match clap_mangen::generate_to(Cli::command(), &folder) {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(error) => Failure::Other(format!("{}: {error}", folder.display())).report(),
                }
            }
            Some(Command::Lab(options)) => crate::lab::run(&options),
            Some(command) => match command.answer(&self.sockets).and_then(Answer::print) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            },
        }
    }

    /// What is to be shown of a command that was typed at the interactive command line.
    pub fn answer(self, sockets: &Sockets) -> Result<Answer, Failure> {
        match self.command {
            Some(command) => command.answer(sockets),
            None => Ok(Answer::default()),
        }
    }
}

impl Command {
    fn answer(self, sockets: &Sockets) -> Result<Answer, Failure> {
        match self {
            Command::Show(show) => show.answer(sockets),
            Command::Explain(explain) => explain.answer(sockets),
            Command::Who(who) => who.answer(sockets),
            Command::Clear(Clear::Session { id }) => show::clear_session(sockets, &id),
            Command::Drain(drain) => drain.run(sockets),
            Command::Top(top) => top.run(sockets),
            Command::Trace(trace) => trace.run(sockets),
            Command::Check(check) => check::ledger(sockets, check.repair, check.format.json),
            Command::Configure { .. }
            | Command::Store(_)
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Lab(_) => Err(Failure::Other(
                "this is for a shell: leave with `exit` and type it behind `sluice`".into(),
            )),
        }
    }
}

impl Show {
    fn answer(self, sockets: &Sockets) -> Result<Answer, Failure> {
        match self {
            Show::Sessions(format) => show::sessions(sockets, format.json),
            Show::Session { id, format } => show::session(sockets, &id, format.json),
            Show::UserPlanes(format) => show::user_planes(sockets, format.json),
            Show::Subscribers(format) => tables::subscribers(sockets, format.json),
            Show::Ports(of) => tables::ports(sockets, of.name.as_deref(), of.format.json),
            Show::Routes(of) => tables::routes(sockets, of.name.as_deref(), of.format.json),
            Show::Neighbours(of) => tables::neighbours(sockets, of.name.as_deref(), of.format.json),
            Show::Workers(of) => workers::show(sockets, of.name.as_deref(), of.format.json),
            Show::Pools(format) => tables::pools(sockets, format.json),
            Show::Associations(format) => tables::associations(sockets, format.json),
            Show::AaaServers(format) => tables::aaa_servers(sockets, format.json),
            Show::Alarms(alarms) => alarms.answer(sockets),
            Show::Events(events) => events.answer(sockets),
            Show::Drops { all, format } => show::drops(sockets, all, format.json),
            Show::Configuration { version, format } => {
                configuration::show(sockets, version, format.json)
            }
            Show::Versions(format) => versions(&mut sockets.configuration()?, format.json),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
