//! What a client asks of a table or an action: their own arguments; and of a table, which page.

use northbound::catalogue::{Argument, Table, Takes};
use northbound::time;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// Rows of a page if nothing else is asked.
pub const DEFAULT_LIMIT: usize = 100;
/// Maximum number of rows of a page.
pub const MOST_LIMIT: usize = 1000;

/// Values of arguments, each what its declaration takes.
#[derive(Debug, Default)]
pub struct Arguments(BTreeMap<&'static str, String>);

impl Arguments {
    /// Reads names with their values; `others` are names that are read elsewhere.
    ///
    /// # Errors
    /// An argument is unknown, repeated, missing, or not what it has to be; the sentence says what is expected.
    pub fn read(
        declared: &'static [Argument],
        given: Vec<(String, String)>,
        others: &[&str],
    ) -> Result<Self, String> {
        let mut arguments = Arguments::default();
        for (name, value) in given {
            let Some(argument) = declared.iter().find(|argument| argument.name == name) else {
                let known = declared.iter().map(|argument| argument.name);
                let known: Vec<_> = known.chain(others.iter().copied()).collect();
                return Err(format!(
                    "`{name}` is not known here: expected one of {}",
                    known.join(", ")
                ));
            };
            check(argument, &value)?;
            if arguments.0.insert(argument.name, value).is_some() {
                return Err(format!("`{name}` is given twice: expected once"));
            }
        }
        let mut required = declared.iter().filter(|argument| argument.required);
        let missing = required.find(|argument| match argument.takes {
            Takes::Nothing => !arguments.flag(argument.name),
            _ => arguments.text(argument.name).is_none(),
        });
        match missing {
            Some(argument) => Err(format!(
                "`{}` is missing: {}",
                argument.name, argument.about
            )),
            None => Ok(arguments),
        }
    }

    /// A text that was given.
    pub fn text(&self, argument: &str) -> Option<&str> {
        self.0.get(argument).map(String::as_str)
    }

    /// Whether an argument that takes nothing was given.
    pub fn flag(&self, argument: &str) -> bool {
        self.text(argument).is_some_and(|value| value != "false")
    }

    /// A number that was given.
    pub fn number(&self, argument: &str) -> Option<u64> {
        self.text(argument)?.parse().ok()
    }

    /// A moment that was given, in seconds since 1970.
    pub fn time(&self, argument: &str) -> Option<u64> {
        time::read(self.text(argument)?, time::now()).ok()
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self
            .0
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"));
        f.write_str(&all.collect::<Vec<_>>().join(" "))
    }
}

/// A question to a table.
#[derive(Debug)]
pub struct Query {
    /// Its own arguments.
    pub arguments: Arguments,
    /// Maximum number of rows.
    pub limit: usize,
    /// Where to begin: 0, or where an earlier page ended.
    pub cursor: u64,
}

impl Query {
    /// A whole table.
    pub fn all() -> Self {
        Query {
            arguments: Arguments::default(),
            limit: usize::MAX,
            cursor: 0,
        }
    }

    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// As [`Arguments::read`].
    pub fn read(table: &Table, mut parameters: Vec<(String, String)>) -> Result<Self, String> {
        let (mut limit, mut cursor) = (DEFAULT_LIMIT, 0);
        for (_, value) in parameters.extract_if(.., |(name, _)| name == "limit") {
            let number = value.parse().ok();
            let number = number.filter(|number| (1..=MOST_LIMIT).contains(number));
            let expected = || format!("`limit` is `{value}`: expected 1 to {MOST_LIMIT}");
            limit = number.ok_or_else(expected)?;
        }
        for (_, value) in parameters.extract_if(.., |(name, _)| name == "cursor") {
            let expected =
                |_| format!("`cursor` is `{value}`: expected `next` of an earlier answer");
            cursor = value.parse().map_err(expected)?;
        }
        Ok(Query {
            arguments: Arguments::read(table.arguments, parameters, &["limit", "cursor"])?,
            limit,
            cursor,
        })
    }
}

/// Reads a member of a body that may be left out. `null` is not of its type: it does not stand for a member that is not there.
///
/// # Errors
/// The value is not of the type.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// Whether a value is what an argument takes. Names are the control plane's business.
fn check(declared: &Argument, value: &str) -> Result<(), String> {
    let name = declared.name;
    match declared.takes {
        Takes::Nothing if !matches!(value, "" | "true" | "false") => {
            Err(format!("`{name}` is `{value}`: expected true or false"))
        }
        Takes::Number(least, most) => {
            let number = value.parse::<u64>().ok();
            let fits = number.is_some_and(|number| (least..=most).contains(&number));
            fits.then_some(())
                .ok_or_else(|| format!("`{name}` is `{value}`: expected {least} to {most}"))
        }
        Takes::Word(words) if !words.contains(&value) => Err(format!(
            "`{name}` is `{value}`: expected one of {}",
            words.join(", ")
        )),
        Takes::Time => time::read(value, time::now()).map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::catalogue::{ACL, EVENTS, LINES};

    fn read(table: &Table, url: &[(&str, &str)]) -> Result<Query, String> {
        let parameters = url.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        Query::read(table, parameters.collect())
    }

    #[test]
    fn parameters_are_those_of_the_table() {
        let lines = read(&LINES, &[("worst", ""), ("since", "-2h"), ("limit", "7")]).unwrap();
        assert!(lines.arguments.flag("worst") && lines.arguments.time("since").is_some());
        assert_eq!((lines.limit, lines.cursor), (7, 0));
        let not_worst = read(&LINES, &[("worst", "false")]).unwrap();
        assert!(!not_worst.arguments.flag("worst"));
        let events = read(&EVENTS, &[("last", "5"), ("cursor", "9")]).unwrap();
        assert_eq!(
            (events.arguments.number("last"), events.cursor),
            (Some(5), 9)
        );
        assert_eq!(events.limit, DEFAULT_LIMIT);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_expected() {
        for (table, url, says) in [
            (&EVENTS, &[("last", "0")][..], "expected 1 to 100000"),
            (&EVENTS, &[("since", "soon")], "is no time"),
            (&EVENTS, &[("limit", "1001")], "expected 1 to 1000"),
            (&EVENTS, &[("limit", "0")], "expected 1 to 1000"),
            (&EVENTS, &[("cursor", "-1")], "`next` of an earlier answer"),
            (&EVENTS, &[("user", "x")], "one of subscriber, also, kinds"),
            (&EVENTS, &[("last", "1"), ("last", "2")], "given twice"),
            (&LINES, &[("worst", "perhaps")], "true or false"),
            (&ACL, &[], "`acl` is missing"),
        ] {
            let said = read(table, url).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
