//! What is done to an answer before it is shown: `| match alice | count`.

use crate::cli::Answer;
use crate::cli::units::counted;
use northbound::catalogue::{ACTIONS, Access, Action, Argument};

/// One step behind a `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Only lines that have this text in them, in whatever case.
    Match(String),
    /// Only lines that have it not.
    Except(String),
    /// How many lines there are.
    Count,
    /// In JSON.
    Json,
    /// All at once, without a pause after each screen.
    NoMore,
    /// Again and again, after so many seconds.
    Watch(u64),
    /// In `configure`: compared with a version, or with what is in force.
    Compare(Option<u64>),
}

/// The words of the pipes, with what each does.
pub const PIPES: [(&str, &str); 7] = [
    (
        "compare",
        "In `configure`: what differs from what is in force, or from a version",
    ),
    ("count", "How many lines there are"),
    ("except", "Only lines without a text"),
    ("json", "In JSON"),
    ("match", "Only lines with a text"),
    ("no-more", "Without a pause after each screen"),
    (
        "watch",
        "Again and again, every 2 seconds or as many as you say; Ctrl-C ends it",
    ),
];

/// A line's command, and its pipes.
///
/// # Errors
/// A text that says what is expected.
pub fn parse(line: &str) -> Result<(Vec<String>, Vec<Pipe>), String> {
    let words = config::words(line)?;
    let mut parts = words.split(|word| word == "|");
    let command = parts.next().unwrap_or_default().to_vec();
    let pipes: Result<Vec<Pipe>, String> = parts.map(one).collect();
    Ok((command, pipes?))
}

fn one(words: &[String]) -> Result<Pipe, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["match", text] => Ok(Pipe::Match(text.to_lowercase())),
        ["except", text] => Ok(Pipe::Except(text.to_lowercase())),
        ["count"] => Ok(Pipe::Count),
        ["json"] => Ok(Pipe::Json),
        ["no-more"] => Ok(Pipe::NoMore),
        ["compare"] => Ok(Pipe::Compare(None)),
        ["compare", version] => match version.parse() {
            Ok(version) => Ok(Pipe::Compare(Some(version))),
            Err(_) => Err(format!("`{version}` is no version: `versions` lists them")),
        },
        ["watch"] => Ok(Pipe::Watch(2)),
        ["watch", seconds] => match seconds.parse() {
            Ok(seconds @ 1..=3600) => Ok(Pipe::Watch(seconds)),
            _ => Err(format!(
                "`{seconds}` is no number of seconds: expected 1 to 3600"
            )),
        },
        _ => {
            let known: Vec<&str> = PIPES.iter().map(|(word, _)| *word).collect();
            let what = words.join(" ");
            Err(format!(
                "`| {what}` is not known: expected one of {}; `match` and `except` want a text",
                known.join(", ")
            ))
        }
    }
}

/// Whether these pipes do something to what a command shows.
///
/// # Errors
/// A text that says which one does not.
pub fn fit(command: &[String], pipes: &[Pipe]) -> Result<(), String> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let words = words.strip_prefix(&["run"]).unwrap_or(&words);
    let what = words.first().copied().unwrap_or_default();
    let as_it_comes = what == "trace" || what == "top" && !words.contains(&"--once");
    for pipe in pipes {
        match pipe {
            Pipe::Compare(_) => {
                return Err(
                    "`| compare` stands behind `show` in `configure`, and before other pipes"
                        .into(),
                );
            }
            Pipe::Watch(_) if !only_asks(words) => {
                return Err(format!(
                    "`| watch` does not do `{what}` again and again: it is for commands that only ask"
                ));
            }
            Pipe::Json | Pipe::NoMore => {}
            _ if as_it_comes => {
                return Err(format!(
                    "`{what}` shows what comes while it comes, which no pipe but `| json` changes{}",
                    if what == "top" {
                        "; `top --once` ends, and its page can be piped"
                    } else {
                        ""
                    }
                ));
            }
            Pipe::Match(_) | Pipe::Except(_) | Pipe::Count | Pipe::Watch(_) => {}
        }
    }
    Ok(())
}

/// Whether a command can be done again and again, as the catalogue says.
fn only_asks(words: &[&str]) -> bool {
    let named = |action: &&&Action| {
        let mut typed = words.iter();
        (action.name.split(' ')).all(|word| typed.next() == Some(&word))
    };
    match ACTIONS.iter().filter(named).max_by_key(|a| a.name.len()) {
        Some(action) => {
            let told = |argument: &&Argument| words.contains(&&*format!("--{}", argument.name));
            let told = action.arguments.iter().filter(told);
            let needed = told.map(|argument| argument.access).chain([action.access]);
            needed.max() == Some(Access::Read)
        }
        None => matches!(words, ["show" | "versions" | "compare", ..]),
    }
}

/// The lines that are left. The first line of a table is its heading and stays; its total does not, for it is of all lines.
pub fn apply(pipes: &[Pipe], answer: Answer) -> Vec<String> {
    let Answer {
        mut lines,
        table,
        mut total,
        ..
    } = answer;
    for pipe in pipes {
        let heading = usize::from(table && !lines.is_empty());
        match pipe {
            Pipe::Match(text) => keep(&mut lines, heading, |line| line.contains(text)),
            Pipe::Except(text) => keep(&mut lines, heading, |line| !line.contains(text)),
            Pipe::Count => return vec![counted(lines.len() - heading, "line")],
            Pipe::Json | Pipe::NoMore | Pipe::Watch(_) | Pipe::Compare(_) => continue,
        }
        total = None;
    }
    lines.extend(total);
    lines
}

fn keep(lines: &mut Vec<String>, heading: usize, wanted: impl Fn(&str) -> bool) {
    let mut at = 0;
    lines.retain(|line| {
        at += 1;
        at <= heading || wanted(&line.to_lowercase())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_read_and_applied_in_order() {
        let (command, pipes) = parse("show sessions | match Alice | except 'x | count").unwrap();
        assert_eq!(command, ["show", "sessions"]);
        assert_eq!(
            pipes,
            [
                Pipe::Match("alice".into()),
                Pipe::Except("'x".into()),
                Pipe::Count
            ]
        );
        let lines = ["USER", "ALICE 1", "alice 'x", "bob"]
            .map(str::to_owned)
            .to_vec();
        let table = || Answer {
            total: Some("3 in all, none of them alice".into()),
            ..Answer::table(lines.clone())
        };
        assert_eq!(apply(&pipes, table()), ["1 line"]);
        assert_eq!(apply(&pipes[..1], table()), ["USER", "ALICE 1", "alice 'x"]);
        assert_eq!(apply(&[Pipe::Count], table()), ["3 lines"]);
        assert_eq!(apply(&[Pipe::NoMore], table()).len(), 5);
        assert_eq!(
            apply(&pipes[..1], Answer::of(lines.clone())),
            ["ALICE 1", "alice 'x"]
        );
    }

    #[test]
    fn a_pipe_that_does_nothing_is_refused() {
        for (line, why) in [
            ("show user-planes | compare", "stands behind `show`"),
            ("show | match a | compare", "stands behind `show`"),
            ("trace alice | match lcp", "while it comes"),
            ("run top | count", "`top --once` ends"),
            ("clear session 1 | watch", "only ask"),
            ("commit | watch 5", "only ask"),
            ("set users a password hunter2 | watch", "`set` again"),
            ("check --ledger --repair | watch", "only ask"),
        ] {
            let (command, pipes) = parse(line).unwrap();
            let said = fit(&command, &pipes).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
        for line in [
            "run show sessions | match a | watch",
            "top --once | match up1",
            "trace alice | json",
            "commit check | match sessions",
            "commit check | watch",
            "versions | json",
        ] {
            let (command, pipes) = parse(line).unwrap();
            assert_eq!(fit(&command, &pipes), Ok(()), "{line}");
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        for (line, why) in [
            ("x | grep a", "expected one of compare, count"),
            ("x | watch 0", "1 to 3600"),
            ("x |", "`| `"),
        ] {
            let said = parse(line).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
