//! `sluice show TABLE`: names, arguments, columns and help are those of the catalogue.

use super::ask::{Failure, Sockets};
use super::filter;
use super::listing::{Row, columns_help, table};
use super::show::{Answer, terminal_width};
use super::tables::{ASKED, Ask};
use super::time;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use northbound::SessionFilter;
use northbound::catalogue::{self, Argument, Takes};
use serde::Serialize;

/// A table that is asked for.
#[derive(Debug)]
pub struct Query {
    table: &'static catalogue::Table,
    ask: Ask,
    given: ArgMatches,
}

impl clap::Subcommand for Query {
    fn augment_subcommands(command: Command) -> Command {
        let tables = ASKED.iter().map(|(table, _)| *table);
        tables.fold(command, |command, table| match table.name.split_once(' ') {
            None => command.subcommand(offered(table, table.name)),
            Some((outer, inner)) => {
                let command = match command.find_subcommand(outer) {
                    Some(_) => command,
                    None => command.subcommand(group(outer, table)),
                };
                command.mut_subcommand(outer, |outer| {
                    let outer = outer.disable_help_subcommand(true);
                    outer.subcommand(offered(table, inner))
                })
            }
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Query::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        let first =
            |(table, _): &(&catalogue::Table, Ask)| table.name.split(' ').next() == Some(name);
        ASKED.iter().any(first)
    }
}

impl clap::FromArgMatches for Query {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut words, mut given) = (Vec::new(), matches);
        while let Some((word, below)) = given.subcommand() {
            words.push(word);
            given = below;
        }
        let name = words.join(" ");
        let asked = ASKED.iter().find(|(table, _)| table.name == name);
        let (table, ask) = asked.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(Query {
            table,
            ask: *ask,
            given: given.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Query::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The first word of a table's name that is no table itself.
fn group(name: &'static str, table: &'static catalogue::Table) -> Command {
    Command::new(name)
        .about(table.about)
        .subcommand_required(true)
}

/// A table as a command.
fn offered(table: &'static catalogue::Table, name: &'static str) -> Command {
    let json = Arg::new("json").long("json").help("Print JSON");
    Command::new(name)
        .about(table.about)
        .after_long_help(columns_help(table))
        .args(table.arguments.iter().map(argument))
        .arg(json.action(ArgAction::SetTrue))
}

/// What names something stands alone, everything else behind its own name.
pub(super) fn argument(declared: &'static Argument) -> Arg {
    let arg = alone(declared);
    match declared.named {
        true => arg.long(declared.name),
        false => arg,
    }
}

fn alone(declared: &'static Argument) -> Arg {
    let name = declared.name;
    let arg = Arg::new(name)
        .help(declared.about)
        .required(declared.required);
    match declared.takes {
        Takes::Nothing => arg.long(name).action(ArgAction::SetTrue),
        Takes::Time => arg.long(name).value_name("TIME").allow_hyphen_values(true),
        Takes::Number(least, most) => arg
            .long(name)
            .value_name("NUMBER")
            .value_parser(value_parser!(u64).range(least..=most)),
        Takes::UserPlane => arg.value_name("USER-PLANE"),
        Takes::Acl => arg.value_name("ACL"),
        Takes::QueueAggregate => arg.value_name("AGGREGATE"),
        Takes::Session => arg.value_name("SESSION"),
        Takes::Subscriber => arg.value_name("SUBSCRIBER"),
        Takes::Home => arg.value_name("WHO"),
        Takes::Address => arg.value_name("ADDRESS"),
        Takes::Text => arg.long(name).value_name("NAME"),
        Takes::Word(words) => arg
            .long(name)
            .value_name("WORD")
            .value_parser(PossibleValuesParser::new(words)),
    }
}

impl Query {
    /// Asks for the rows, and shows them.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        (self.ask)(self, sockets)
    }

    /// JSON was asked for.
    pub fn json(&self) -> bool {
        self.flag("json")
    }

    /// Whether an argument that takes nothing was given.
    pub fn flag(&self, argument: &str) -> bool {
        self.given.get_flag(argument)
    }

    /// A number that was given.
    pub fn number(&self, argument: &str) -> Option<u64> {
        self.given.get_one(argument).copied()
    }

    /// A text that was given.
    pub fn text(&self, argument: &str) -> Option<&str> {
        let text = self.given.get_one::<String>(argument);
        text.map(String::as_str)
    }

    /// The filter of sessions that was given.
    pub fn filter(&self) -> Result<SessionFilter, Failure> {
        filter::read(&self.given)
    }

    /// A moment that was given, in seconds since 1970.
    pub fn time(&self, argument: &str) -> Result<Option<u64>, Failure> {
        let read = self
            .text(argument)
            .map(|text| time::read(text, time::now()));
        read.transpose().map_err(Failure::Other)
    }

    /// Rows as they were asked for.
    pub fn shown<R: Serialize>(&self, rows: &[R]) -> Result<Answer, Failure> {
        self.derived(rows, |_, _| ())
    }

    /// The same, with the fields that `derive` makes.
    pub fn derived<R: Serialize>(
        &self,
        rows: &[R],
        derive: impl Fn(&R, &mut Row),
    ) -> Result<Answer, Failure> {
        shown(self.table, self.json(), rows, derive)
    }

    /// A last line, which JSON has none of.
    pub fn with_total(&self, answer: Answer, total: String) -> Answer {
        let total = (!self.json()).then_some(total);
        Answer { total, ..answer }
    }
}

/// Rows as they were asked for; without its heading if there is nothing below it.
pub fn shown<R: Serialize>(
    of: &catalogue::Table,
    json: bool,
    rows: &[R],
    derive: impl Fn(&R, &mut Row),
) -> Result<Answer, Failure> {
    match (json, rows.is_empty()) {
        (true, _) => Answer::json(&rows),
        (false, true) => Ok(Answer::default()),
        (false, false) => {
            let lines = table(of, rows, derive).render(terminal_width());
            Ok(Answer::table(lines))
        }
    }
}
