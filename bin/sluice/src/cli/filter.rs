//! The filter of sessions, as it is typed: the catalogue's arguments, each behind its name.

use super::ask::Failure;
use super::query::argument;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use northbound::SessionFilter;
use northbound::catalogue::SESSIONS;

/// A filter that was typed.
#[derive(Debug)]
pub struct Filter(ArgMatches);

impl Filter {
    /// What it says.
    pub fn read(&self) -> Result<SessionFilter, Failure> {
        read(&self.0)
    }
}

/// The filter in what was typed.
pub(super) fn read(given: &ArgMatches) -> Result<SessionFilter, Failure> {
    let text = |name: &str| {
        let value = given.get_raw(name)?.next()?;
        Some(value.to_string_lossy().into_owned())
    };
    SessionFilter::read(text).map_err(Failure::Other)
}

impl FromArgMatches for Filter {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Filter(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Filter::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Filter {
    fn augment_args(command: Command) -> Command {
        command.args(SESSIONS.arguments.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Filter::augment_args(command)
    }
}
