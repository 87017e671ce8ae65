//! The command line: what can be asked, and how the answers look.

pub mod queues;
pub mod table;
mod test_aaa;
mod watch;

mod ask;
mod backup;
mod check;
mod clear;
mod configuration;
mod denials;
mod drain;
mod explain;
mod export;
mod filter;
mod history;
mod listing;
mod password;
mod query;
mod show;
mod store;
mod tables;

pub(crate) use ask::Watching;
pub use ask::{Configuration, Failure, Sockets};
pub(crate) use drain::not_there_yet;
pub use show::Answer;
pub(crate) use show::terminal_width;
pub use tables::versions;

use crate::lab::LabOptions;
use crate::load::Load;
use crate::top::Top;
use crate::trace::Trace;
use clap::{CommandFactory, Parser, Subcommand};
pub use northbound::units;
pub(crate) use northbound::word;
use northbound::{MOST_WATCH_SECONDS, catalogue, time};
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
    #[command(about = catalogue::CONFIGURE.about)]
    Configure {
        /// Keep everybody else out meanwhile
        #[arg(value_parser = ["exclusive"])]
        exclusive: Option<String>,
    },
    #[command(about = catalogue::EXPLAIN.about)]
    Explain(explain::Explain),
    #[command(about = catalogue::WHO.about)]
    Who(history::Who),
    /// End something
    #[command(subcommand)]
    Clear(Clear),
    /// Move something to another place
    #[command(subcommand)]
    Move(Move),
    /// Say that something is known
    #[command(subcommand)]
    Acknowledge(Acknowledge),
    /// Try something out
    #[command(subcommand)]
    Test(Test),
    /// Copy something while it is in use
    #[command(subcommand)]
    Backup(backup::Backup),
    /// Hand something to other programs
    #[command(subcommand)]
    Export(export::Export),
    /// Empty something before work is done on it
    #[command(subcommand)]
    Drain(drain::Drain),
    #[command(about = catalogue::TOP.about)]
    Top(Top),
    #[command(about = catalogue::TRACE.about)]
    Trace(Trace),
    /// Count something for some time, or see it happen
    #[command(subcommand)]
    Watch(Watch),
    #[command(about = catalogue::CHECK.about)]
    Check(Check),
    /// Check, back up or bring back the session store, where it lies
    #[command(subcommand)]
    Store(store::Store),
    /// Print the hash of a password for `users NAME password-hash`
    ///
    /// The password is asked for unseen, or is the first line of the input.
    HashPassword,
    /// Print the completions for a shell
    ///
    /// `sluice completions bash > /etc/bash_completion.d/sluice`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a folder: sluice man /usr/share/man/man1
    Man {
        /// The folder
        folder: PathBuf,
    },
    /// Run homes, gateway and internet in namespaces (needs root)
    Lab(LabOptions),
    /// Load a gateway with emulated homes on an interface
    Load(Box<Load>),
}

#[derive(Debug, Subcommand)]
enum Show {
    #[command(flatten)]
    Table(query::Query),
    #[command(about = catalogue::SHOW_SESSION.about)]
    Session {
        /// Its id, as `show sessions` prints it
        #[arg(value_name = "SESSION")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    #[command(about = catalogue::SHOW_SUBSCRIBER.about)]
    Subscriber {
        /// A name, a line, a circuit id, a MAC address, a session, or an address
        #[arg(value_name = "SUBSCRIBER")]
        subscriber: String,
        #[command(flatten)]
        format: Format,
    },
    #[command(about = catalogue::SHOW_CONFIGURATION.about)]
    Configuration {
        /// As it was in this version
        #[arg(long)]
        version: Option<u64>,
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
    // The option's name of earlier releases stays for one more.
    #[arg(long, alias = "ledger", required = true)]
    resources: bool,
    /// Release leaked resources, and allocate missing ones
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Test {
    #[command(about = catalogue::TEST_AAA.about)]
    Aaa(test_aaa::TestAaa),
}

#[derive(Debug, Subcommand)]
enum Watch {
    #[command(about = catalogue::WATCH_SESSION.about)]
    Session {
        /// Its id, as `show sessions` prints it
        #[arg(value_name = "SESSION")]
        id: String,
        /// End after so many seconds; 0: now [default: 60]
        #[arg(long, default_value_t = 60, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_WATCH_SECONDS)))]
        seconds: u32,
    },
    #[command(about = catalogue::WATCH_EVENTS.about)]
    Events(watch::Events),
}

#[derive(Debug, Subcommand)]
enum Move {
    #[command(about = catalogue::MOVE_AGGREGATE.about)]
    Aggregate {
        /// Its name, such as up1/access0/olt1 or up1/access0/olt1.100, as `show qos aggregates` prints it
        #[arg(value_name = "AGGREGATE")]
        name: String,
        /// Number of the worker, as `show workers` prints it
        #[arg(long, value_name = "WORKER", value_parser = clap::value_parser!(u32).range(0..=15))]
        worker: u32,
    },
}

#[derive(Debug, Subcommand)]
enum Acknowledge {
    #[command(about = catalogue::ACKNOWLEDGE_ALARM.about)]
    Alarm {
        /// Its name, as `show alarms` prints it
        #[arg(value_name = "ALARM")]
        alarm: String,
        /// What it is raised of; needed if several alarms have this name
        #[arg(value_name = "RESOURCE")]
        resource: Option<String>,
        /// What is known of it, at most 1000 characters
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum Clear {
    #[command(about = catalogue::CLEAR_SESSION.about)]
    Session {
        /// Its id, as `show sessions` prints it
        #[arg(value_name = "SESSION")]
        id: String,
    },
    #[command(about = catalogue::CLEAR_SESSIONS.about)]
    Sessions(Box<clear::ClearSessions>),
    #[command(about = catalogue::CLEAR_BACK_OFF.about)]
    BackOff {
        /// A MAC address, a circuit id, or a line such as up1/access0.100.7, as `show protection` prints them
        who: String,
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
            Some(Command::HashPassword) => match password::hash() {
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
            Some(Command::Load(load)) => crate::load::run(&load),
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
            Command::Clear(Clear::Sessions(clear)) => clear.answer(sockets),
            Command::Clear(Clear::BackOff { who }) => show::clear_back_off(sockets, &who),
            Command::Move(Move::Aggregate { name, worker }) => {
                show::move_aggregate(sockets, &name, worker)
            }
            Command::Acknowledge(Acknowledge::Alarm {
                alarm,
                resource,
                comment,
            }) => show::acknowledge_alarm(sockets, alarm, resource, comment),
            Command::Watch(Watch::Session { id, seconds }) => {
                show::watch_session(sockets, &id, seconds)
            }
            Command::Watch(Watch::Events(events)) => events.run(sockets),
            Command::Test(Test::Aaa(test)) => test.answer(sockets),
            Command::Backup(backup) => backup.run(sockets),
            Command::Export(export) => export.run(sockets),
            Command::Drain(drain) => drain.run(sockets),
            Command::Top(top) => top.run(sockets),
            Command::Trace(trace) => trace.run(sockets),
            Command::Check(check) => check::ledger(sockets, check.repair, check.format.json),
            Command::Configure { .. }
            | Command::Store(_)
            | Command::HashPassword
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Lab(_)
            | Command::Load(_) => Err(Failure::Other(
                "this is for a shell: leave with `exit` and type it behind `sluice`".into(),
            )),
        }
    }
}

impl Show {
    fn answer(self, sockets: &Sockets) -> Result<Answer, Failure> {
        match self {
            Show::Table(query) => query.answer(sockets),
            Show::Session { id, format } => show::session(sockets, &id, format.json),
            Show::Subscriber { subscriber, format } => {
                show::subscriber(sockets, &subscriber, format.json)
            }
            Show::Configuration { version, format } => {
                configuration::show(sockets, version, format.json)
            }
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
