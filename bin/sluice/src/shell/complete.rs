//! What may come next on a line: words with what they mean. Nothing here knows a terminal.

use clap::Command;
use config::edit::get;
use config::schema::{Kind, Leaf, Schema, Type, root};
use config::{Path, quoted};
use serde_json::Value;

/// What is longer than this pushes its meaning to the right.
const WIDEST_WORD: usize = 32;

/// A word that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word as it has to be typed; in angle brackets where anything of a kind may stand.
    pub word: String,
    /// What it is.
    pub help: String,
}

impl Candidate {
    /// A word with what it is.
    pub fn new(word: impl Into<String>, help: impl Into<String>) -> Self {
        Candidate {
            word: word.into(),
            help: help.into(),
        }
    }

    /// Whether it can be put on the line as it is.
    pub fn is_word(&self) -> bool {
        !self.word.starts_with('<')
    }
}

/// The words of a line up to the cursor, and the one that is being typed (empty behind a blank).
pub fn split(line: &str) -> (Vec<String>, String) {
    let open = line.chars().filter(|c| *c == '"').count() % 2 == 1;
    let closed = if open {
        format!("{line}\"")
    } else {
        line.to_owned()
    };
    let mut words = config::words(&closed).unwrap_or_default();
    let behind_a_blank = !open && line.chars().next_back().is_none_or(char::is_whitespace);
    let last = if behind_a_blank {
        String::new()
    } else {
        words.pop().unwrap_or_default()
    };
    (words, last)
}

/// Those that begin as the word which is being typed; what stands for anything fits as well.
pub fn fitting(all: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = all
        .into_iter()
        .filter(|c| !c.is_word() || c.word.trim_start_matches('"').starts_with(typed))
        .collect();
    all.sort_by(|a, b| (a.is_word(), &a.word).cmp(&(b.is_word(), &b.word)));
    all
}

/// Words with what they mean, one below the other, on lines of at most `width` columns.
pub fn listing(all: &[Candidate], width: usize) -> Vec<String> {
    let longest = all.iter().map(|c| c.word.chars().count()).max();
    let column = longest.unwrap_or(0).min(WIDEST_WORD) + 4;
    let mut lines = Vec::new();
    for candidate in all {
        let mut line = format!("  {:<1$}", candidate.word, column - 2);
        for word in candidate.help.split_whitespace() {
            let begun = line.chars().count() > column;
            if begun && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(core::mem::replace(&mut line, " ".repeat(column)));
            } else if begun {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// What may follow words of a command; `live` gives the names of what there is of a kind, such as `SESSION`.
pub fn of_command(
    command: &Command,
    words: &[String],
    live: &dyn Fn(&str) -> Vec<Candidate>,
) -> Vec<Candidate> {
    let mut command = command;
    let mut positional = 0;
    for word in words {
        match command
            .get_subcommands()
            .find(|sub| sub.get_name() == word && positional == 0)
        {
            Some(sub) => command = sub,
            None if word.starts_with('-') => {}
            None => positional += 1,
        }
    }
    let mut all = Vec::new();
    if positional == 0 {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        all.extend(subs.map(|sub| Candidate::new(sub.get_name(), help(sub.get_about()))));
    }
    if let Some(argument) = command.get_positionals().nth(positional) {
        let name = argument
            .get_value_names()
            .and_then(|n| n.first())
            .map_or("VALUE", |n| n.as_str());
        all.push(Candidate::new(
            format!("<{}>", name.to_lowercase()),
            help(argument.get_help()),
        ));
        all.extend(live(name));
    }
    let flags = command
        .get_arguments()
        .filter(|a| !a.is_positional() && !a.is_global_set() && !a.is_hide_set());
    all.extend(flags.filter_map(|a| {
        Some(Candidate::new(
            format!("--{}", a.get_long()?),
            help(a.get_help()),
        ))
    }));
    all.retain(|candidate| !words.contains(&candidate.word) || !candidate.word.starts_with("--"));
    all
}

fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// What may follow in `set`, or of what is there, in `delete`, `edit` and `show`.
pub struct Places<'a> {
    /// The candidate that is being edited.
    pub tree: &'a Value,
    /// Where in it the words begin.
    pub here: &'a Path,
    /// Only what is there, and no values.
    pub there: bool,
}

impl Places<'_> {
    /// What may follow these words.
    pub fn after(&self, words: &[String]) -> Vec<Candidate> {
        let path: Path = self.here.steps().iter().chain(words).cloned().collect();
        let mut schema = root();
        for step in path.steps() {
            match schema.step(step) {
                Some(below) => schema = below,
                None => return Vec::new(), // a value stands there already
            }
        }
        let tree = get(self.tree, &path);
        match &schema.kind {
            Kind::Container(parts) => {
                let parts = parts
                    .iter()
                    .filter(|(name, _)| !self.there || tree.is_some_and(|t| t.get(name).is_some()));
                parts
                    .map(|(name, part)| Candidate::new(name, first_line(part)))
                    .collect()
            }
            Kind::Entries { key, reference, .. } => {
                let mut all = names(tree);
                if !self.there {
                    let target = reference.as_ref().and_then(|r| get(self.tree, r));
                    all.extend(names(target));
                    all.push(Candidate::new("<name>", key.clone()));
                }
                all.sort_by(|a, b| a.word.cmp(&b.word));
                all.dedup_by(|a, b| a.word == b.word);
                all
            }
            Kind::LeafList(_) if self.there => {
                let values = tree.and_then(Value::as_array).into_iter().flatten();
                values
                    .map(|v| Candidate::new(quoted(&text(v)), ""))
                    .collect()
            }
            Kind::Leaf(_) if self.there => Vec::new(),
            Kind::Leaf(leaf) | Kind::LeafList(leaf) => self.values(leaf),
        }
    }

    fn values(&self, leaf: &Leaf) -> Vec<Candidate> {
        if let Some(reference) = &leaf.reference {
            return match get(self.tree, reference) {
                Some(tree) => names(Some(tree)),
                None => vec![Candidate::new(
                    "<name>",
                    format!("there is none yet: `set {reference} <name>`"),
                )],
            };
        }
        match &leaf.leaf_type {
            Type::Boolean => ["true", "false"]
                .map(|word| Candidate::new(word, default(leaf, word)))
                .into(),
            Type::Word(words) => words
                .iter()
                .map(|(word, doc)| Candidate::new(word, doc))
                .collect(),
            _ => {
                let default = leaf.default.as_ref().map(|d| format!(", {d} by default"));
                vec![Candidate::new(
                    "<value>",
                    leaf.expected() + &default.unwrap_or_default(),
                )]
            }
        }
    }
}

fn default(leaf: &Leaf, word: &str) -> String {
    match leaf.default.as_deref() == Some(word) {
        true => "by default".into(),
        false => String::new(),
    }
}

fn names(tree: Option<&Value>) -> Vec<Candidate> {
    let entries = tree.and_then(Value::as_object).into_iter().flatten();
    entries
        .map(|(name, _)| Candidate::new(quoted(name), ""))
        .collect()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn first_line(schema: &Schema) -> String {
    schema
        .doc
        .split(". ")
        .next()
        .unwrap_or_default()
        .replace('\n', " ")
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn example() -> Value {
        config::check::read(include_str!("../../../../deploy/examples/sluice.yaml"))
            .unwrap()
            .tree
    }

    #[test]
    fn what_words_mean_is_broken_between_words_and_stays_beside_them() {
        let all = [
            Candidate::new("end", "Ends something that is going on"),
            Candidate::new("longer", ""),
        ];
        let lines = listing(&all, 24);
        let wanted = [
            "  end     Ends something",
            "          that is going",
            "          on",
            "  longer",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(listing(&all, 1).len(), 7, "a word a line at the least");
    }

    /// The words that may follow a line in a place of the example.
    fn places(here: &str, line: &str, there: bool) -> Vec<String> {
        let (tree, here) = (example(), Path::parse(here).unwrap());
        let (words, typed) = split(line);
        let places = Places {
            tree: &tree,
            here: &here,
            there,
        };
        fitting(places.after(&words), &typed)
            .into_iter()
            .map(|c| c.word)
            .collect()
    }

    #[test]
    fn what_can_be_set_is_everything_that_the_model_has_there() {
        assert_eq!(
            places("", "subscriber-", false),
            ["subscriber-groups", "subscriber-profiles"]
        );
        assert_eq!(places("", "user-planes ", false), ["<name>", "up1", "up2"]);
        assert_eq!(places("user-planes up1 ports", "core0 m", false), ["mtu"]);
        assert_eq!(
            places("", "user-planes up1 ports access0 subscriber-group ", false),
            ["east"]
        );
        assert_eq!(
            places("", "access-profiles pppoe authentication p", false),
            ["pap"]
        );
        assert_eq!(places("", "limits sessions ", false), ["<value>"]);
        assert_eq!(places("", "limits sessions 5 ", false), [""; 0]);
        assert_eq!(places("", "nowhere x ", false), [""; 0]);
    }

    #[test]
    fn what_can_be_deleted_is_what_is_there() {
        assert_eq!(
            places("", "aaa servers first ", true),
            ["address", "secret-key"]
        );
        assert_eq!(
            places("", "aaa server-groups radius servers ", true),
            ["first", "second"]
        );
        assert_eq!(places("", "users t", true), ["test@sluice"]);
    }

    #[test]
    fn a_word_with_blanks_is_one_word() {
        assert_eq!(
            split("set users \"a b\" pass"),
            (
                vec!["set".into(), "users".into(), "a b".into()],
                "pass".into()
            )
        );
        assert_eq!(
            split("set users \"a b"),
            (vec!["set".into(), "users".into()], "a b".into())
        );
        assert_eq!(split("show "), (vec!["show".into()], String::new()));
    }

    #[test]
    fn a_command_offers_its_parts_what_there_is_and_its_flags() {
        let json = || {
            Arg::new("json")
                .long("json")
                .help("Print JSON")
                .action(clap::ArgAction::SetTrue)
        };
        let session = Command::new("session")
            .about("One")
            .arg(Arg::new("id").value_name("SESSION"))
            .arg(json());
        let command = Command::new("x").subcommand(
            Command::new("show")
                .subcommand(session)
                .subcommand(Command::new("ports")),
        );
        let live = |kind: &str| match kind {
            "SESSION" => vec![Candidate::new("1f", "alice")],
            _ => Vec::new(),
        };
        let after = |line: &str| {
            let (words, typed) = split(line);
            let found = fitting(of_command(&command, &words, &live), &typed);
            found.into_iter().map(|c| c.word).collect::<Vec<_>>()
        };
        assert_eq!(after("show "), ["ports", "session"]);
        assert_eq!(after("show session "), ["<session>", "--json", "1f"]);
        assert_eq!(after("show session 1f --json "), [""; 0]);
    }
}
