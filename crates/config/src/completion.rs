//! What may come next on a line as it is typed in `configure`: words with what they mean. Nothing here knows a terminal or a page.

use crate::edit::{Verb, get};
use crate::schema::{Kind, Leaf, Schema, Type, root};
use crate::{Path, quoted};
use serde_json::Value;

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

/// A line up to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its whole words.
    pub words: Vec<String>,
    /// The word that is being typed; empty behind a blank.
    pub typed: String,
    /// Where in the line that word begins, in octets, an open quote included.
    pub begins: usize,
}

impl Line {
    /// Reads it. A quote may be open.
    pub fn read(line: &str) -> Self {
        let open = line.chars().filter(|c| *c == '"').count() % 2 == 1;
        let closed = if open {
            format!("{line}\"")
        } else {
            line.to_owned()
        };
        let mut words = crate::words(&closed).unwrap_or_default();
        let behind_a_blank = !open && line.chars().next_back().is_none_or(char::is_whitespace);
        let typed = if behind_a_blank {
            String::new()
        } else {
            words.pop().unwrap_or_default()
        };
        let begins = last_word(line);
        Line {
            words,
            typed,
            begins,
        }
    }
}

/// Where the last word begins.
fn last_word(line: &str) -> usize {
    let mut begins = line.len();
    let (mut quoted, mut blank) = (false, true);
    for (at, c) in line.char_indices() {
        if blank && !c.is_whitespace() {
            begins = at;
        }
        if c == '"' {
            quoted = !quoted;
        }
        blank = c.is_whitespace() && !quoted;
        if blank {
            begins = line.len();
        }
    }
    begins
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
            _ => vec![Candidate::new("<value>", expected(leaf))],
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

/// What helps somebody to type a line: `set PATH VALUE` or `delete PATH`.
#[derive(Debug)]
pub struct Completions {
    /// Where in the line the word begins that is being typed, in octets.
    pub begins: usize,
    /// The place that the words lead to, as far as the model has it.
    pub place: Path,
    /// What that place is.
    pub about: String,
    /// What may stand next, where that is not one of a few words.
    pub expected: Option<String>,
    /// The words that may stand next and begin as what is typed.
    pub words: Vec<Candidate>,
}

impl Completions {
    /// Those of a line up to the cursor, in the configuration that the line changes.
    pub fn of(line: &str, tree: &Value) -> Self {
        let line = Line::read(line);
        let verb = line.words.first().and_then(|word| Verb::of_word(word));
        let words = match verb {
            Some(_) => &line.words[1..],
            None => &[],
        };
        let (place, schema) = place(words);
        let all = match verb {
            Some(verb) => Places {
                tree,
                here: &Path::default(),
                there: verb == Verb::Delete,
            }
            .after(words),
            None if line.words.is_empty() => Verb::ALL
                .map(|verb| Candidate::new(verb.word(), verb.about()))
                .into(),
            None => Vec::new(),
        };
        let (words, other): (Vec<_>, Vec<_>) = fitting(all, &line.typed)
            .into_iter()
            .partition(Candidate::is_word);
        let other = other.into_iter().next().map(|candidate| candidate.help);
        let leaf = schema.leaf().filter(|_| verb == Some(Verb::Set));
        Completions {
            begins: line.begins,
            place,
            about: schema.doc.replace('\n', " "),
            expected: other.or(leaf.map(expected)),
            words,
        }
    }
}

/// Place that words lead to, as far as the model has it.
fn place(words: &[String]) -> (Path, &'static Schema) {
    let (mut path, mut schema) = (Path::default(), root());
    for word in words {
        let Some(below) = schema.step(word) else {
            break;
        };
        path.push(word);
        schema = below;
    }
    (path, schema)
}

/// What may stand in a leaf, and what holds without it.
fn expected(leaf: &Leaf) -> String {
    let default = leaf.default.as_ref().map(|d| format!(", {d} by default"));
    leaf.expected() + &default.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Value {
        crate::check::read(include_str!("../../../deploy/examples/sluice.yaml"))
            .unwrap()
            .tree
    }

    /// The words that may follow a line in a place of the example.
    fn places(here: &str, line: &str, there: bool) -> Vec<String> {
        let (tree, here) = (example(), Path::parse(here).unwrap());
        let Line { words, typed, .. } = Line::read(line);
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
    fn a_word_with_blanks_is_one_word_and_is_replaced_as_a_whole() {
        for (line, words, typed, begins) in [
            ("", &[][..], "", 0),
            ("show ses", &["show"], "ses", 5),
            ("show ", &["show"], "", 5),
            ("set users \"a b", &["set", "users"], "a b", 10),
            ("set users \"a b\" ", &["set", "users", "a b"], "", 16),
            (
                "set users \"a b\" pass",
                &["set", "users", "a b"],
                "pass",
                16,
            ),
        ] {
            let read = Line::read(line);
            assert_eq!(read.words, words, "{line}");
            assert_eq!((&*read.typed, read.begins), (typed, begins), "{line}");
        }
    }

    /// What helps with a line of the example: the place, what is expected, and the words.
    fn completions(line: &str) -> (String, Option<String>, Vec<String>) {
        let found = Completions::of(line, &example());
        let words = found.words.into_iter().map(|candidate| candidate.word);
        (found.place.to_string(), found.expected, words.collect())
    }

    #[test]
    fn a_line_is_completed_with_what_is_known_of_its_place() {
        let words = |line| completions(line).2;
        assert_eq!(words(""), ["delete", "set"]);
        assert_eq!(words("s"), ["set"]);
        assert_eq!(words("set user-planes "), ["up1", "up2"]);
        assert_eq!(words("show user-planes "), [""; 0]);
        assert_eq!(words("# set "), [""; 0]);
        let (place, expected, _) = completions("set limits half-open 5");
        assert_eq!(place, "limits half-open");
        let expected = expected.unwrap();
        assert!(expected.starts_with("a number from "), "{expected}");
        assert!(expected.ends_with(" by default"), "{expected}");
        let (place, expected, words) = completions("set access-profiles pppoe authentication ");
        assert_eq!(place, "access-profiles pppoe authentication");
        assert!(expected.unwrap().starts_with("one of "));
        assert!(words.contains(&"pap".to_owned()), "{words:?}");
        let (place, expected, words) = completions("set limits nothing of this");
        assert_eq!((&*place, expected, words), ("limits", None, vec![]));
        let about = Completions::of("set limits ", &example()).about;
        assert_eq!(
            about,
            root().find(&Path::parse("limits").unwrap()).unwrap().doc
        );
    }

    proptest! {
        #[test]
        fn any_text_may_be_a_line(line in "(set |delete |)(limits |users |)[a-z\" \\\\é\t|<]{0,30}") {
            let found = Completions::of(&line, &Value::Null);
            prop_assert!(line.is_char_boundary(found.begins));
        }
    }

    #[test]
    fn a_secret_is_neither_told_nor_a_place() {
        let mut tree = example();
        let edit = crate::Edit::parse("set users test@sluice password hunter2").unwrap();
        edit.apply(&mut tree).unwrap();
        for line in [
            "set users test@sluice password ",
            "set users test@sluice password hunter2 ",
            "delete users test@sluice password ",
            "delete users test@sluice password hunter2 ",
        ] {
            let found = format!("{:?}", Completions::of(line, &tree));
            assert!(!found.contains("hunter2"), "{found}");
            assert!(found.contains("password"), "{found}");
        }
    }
}
