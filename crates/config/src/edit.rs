//! Changes of a configuration, as they are typed: `set PATH [VALUE]` and `delete PATH`.

use crate::Path;
use crate::path::{quoted, words};
use crate::schema::{self, Kind, Schema, plain};
use serde_json::{Map, Value};
use std::fmt;

/// What happens to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is made, or gets a value. A list of values gets one more.
    Set,
    /// It goes, with all that is below it.
    Delete,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 2] = [Verb::Set, Verb::Delete];

    /// The one that a line begins with.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.word() == word)
    }

    /// As it is typed.
    pub const fn word(self) -> &'static str {
        match self {
            Verb::Set => "set",
            Verb::Delete => "delete",
        }
    }

    /// What it does.
    pub const fn about(self) -> &'static str {
        match self {
            Verb::Set => "Make something, or give it a value",
            Verb::Delete => "Delete something with all that is below it",
        }
    }
}

/// One change. Its words are the place and, where a value is set, the value behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is done.
    pub verb: Verb,
    /// Where, and the value.
    pub words: Path,
}

/// Why an edit cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{edit}`: {why}")]
pub struct EditError {
    /// The edit, secrets hidden.
    pub edit: String,
    /// What is wrong and what is expected.
    pub why: String,
}

impl Edit {
    /// An edit that sets.
    pub fn set(words: Path) -> Self {
        Edit {
            verb: Verb::Set,
            words,
        }
    }

    /// An edit that deletes.
    pub fn delete(words: Path) -> Self {
        Edit {
            verb: Verb::Delete,
            words,
        }
    }

    /// Reads a line that a person typed.
    ///
    /// # Errors
    /// A text that says what is expected.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = words(line)?.into_iter();
        let verb = words.next().and_then(|word| Verb::of_word(&word));
        let verb =
            verb.ok_or_else(|| format!("`{line}`: expected `set PATH VALUE` or `delete PATH`"))?;
        Ok(Edit {
            verb,
            words: words.collect(),
        })
    }

    /// The place that it changes: of a value in a list the list.
    pub fn place(&self) -> Path {
        let mut schema = Some(schema::root());
        let mut place = Path::default();
        for word in self.words.steps() {
            match schema {
                Some(s) if s.leaf().is_some() => break,
                Some(s) => schema = s.step(word),
                None => {}
            }
            place.push(word);
        }
        place
    }

    /// Carries it out.
    ///
    /// # Errors
    /// The model has no such place, or there is nothing to delete.
    pub fn apply(&self, tree: &mut Value) -> Result<(), EditError> {
        let steps = self.words.steps();
        let done = match self.verb {
            Verb::Set => set(tree, schema::root(), steps),
            Verb::Delete => delete(tree, schema::root(), steps),
        };
        done.map_err(|why| EditError {
            edit: self.to_string(),
            why,
        })
    }
}

/// As it is typed; a secret is hidden, and whatever stands behind it: it may be the rest of one with blanks in it.
impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.word())?;
        let mut schema = Some(schema::root());
        for word in self.words.steps() {
            let leaf = schema.and_then(Schema::leaf);
            if leaf.is_some_and(|leaf| leaf.secret) {
                return write!(f, " {}", crate::values::MASK);
            }
            write!(f, " {}", quoted(word))?;
            schema = schema.and_then(|schema| schema.step(word));
        }
        Ok(())
    }
}

fn parts(schema: &Schema) -> String {
    match &schema.kind {
        Kind::Container(parts) => {
            let names: Vec<&str> = parts.keys().map(String::as_str).collect();
            format!("expected one of {}", names.join(", "))
        }
        Kind::Entries { key, .. } => format!("expected {key}"),
        Kind::Leaf(leaf) | Kind::LeafList(leaf) => format!("expected {}", leaf.expected()),
    }
}

/// A value in the type of its leaf. One that is of no such type is kept as it is: whoever checks the whole says what is
/// wrong with it.
fn typed(leaf: &schema::Leaf, text: &str) -> Value {
    let number = || text.parse::<i64>().ok().map(Value::from);
    let converted = match leaf.leaf_type {
        schema::Type::Integer(..) => number(),
        schema::Type::Boolean => text.parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    converted.unwrap_or_else(|| Value::from(text))
}

fn set(tree: &mut Value, schema: &Schema, steps: &[String]) -> Result<(), String> {
    match (&schema.kind, steps) {
        (Kind::Leaf(leaf), [value]) => *tree = typed(leaf, value),
        // a rule is typed as it is written, without quotes
        (Kind::Leaf(leaf), words @ [_, ..]) if leaf.is_of_words() => *tree = words.join(" ").into(),
        (Kind::LeafList(leaf), [value]) => {
            let value = typed(leaf, value);
            let list = list(tree);
            if !list.contains(&value) {
                list.push(value);
            }
        }
        (Kind::Leaf(_) | Kind::LeafList(_), []) => {
            return Err(format!("the value is missing: {}", parts(schema)));
        }
        (Kind::Leaf(_) | Kind::LeafList(_), _) => {
            return Err(format!(
                "this is more than one value: {}; a text with blanks needs quotes",
                parts(schema)
            ));
        }
        (Kind::Container(_), []) => return Err(format!("this is no value: {}", parts(schema))),
        (Kind::Entries { .. }, []) => {
            return Err(format!("the name is missing: {}", parts(schema)));
        }
        (Kind::Entries { entry, .. }, [_]) if entry.leaf().is_some() => {
            return Err(format!("the value is missing: {}", parts(entry)));
        }
        (Kind::Entries { .. }, [name]) => {
            map(tree)
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
        }
        (Kind::Container(_) | Kind::Entries { .. }, [name, rest @ ..]) => {
            let Some(below) = schema.step(name) else {
                return Err(format!("`{name}` is not known here: {}", parts(schema)));
            };
            let there = map(tree).contains_key(name);
            let place = map(tree).entry(name).or_insert(Value::Null);
            let done = set(place, below, rest);
            if done.is_err() && !there {
                map(tree).remove(name);
            }
            return done;
        }
    }
    Ok(())
}

fn delete(tree: &mut Value, schema: &Schema, steps: &[String]) -> Result<(), String> {
    let Some((name, rest)) = steps.split_first() else {
        *tree = Value::Object(Map::new());
        return Ok(());
    };
    let nothing = || format!("cannot delete `{name}`: it is not configured");
    if let Kind::LeafList(leaf) = &schema.kind {
        let value = typed(leaf, name);
        let list = list(tree);
        let at = list.iter().position(|v| *v == value).ok_or_else(nothing)?;
        list.remove(at);
        return match rest {
            [] => Ok(()),
            _ => Err("this is more than one value".into()),
        };
    }
    let Some(below) = schema.step(name) else {
        return Err(format!("`{name}` is not known here: {}", parts(schema)));
    };
    let map = map(tree);
    let place = map.get_mut(name).ok_or_else(nothing)?;
    if rest.is_empty() {
        map.remove(name);
        return Ok(());
    }
    if matches!(below.kind, Kind::Leaf(_)) {
        // `delete … mtu 1500`: the value is there for people, and has to be the one that is set
        return match rest {
            [value] if plain(place) == *value => {
                map.remove(name);
                Ok(())
            }
            _ => Err(format!("`{name}` has another value")),
        };
    }
    delete(place, below, rest)?;
    // what is empty now says nothing; an entry without settings is still an entry
    let entry = matches!(schema.kind, Kind::Entries { .. });
    if !entry && (*place == Value::Object(Map::new()) || *place == Value::Array(Vec::new())) {
        map.remove(name);
    }
    Ok(())
}

fn map(tree: &mut Value) -> &mut Map<String, Value> {
    if !tree.is_object() {
        *tree = Value::Object(Map::new());
    }
    tree.as_object_mut().expect("just made")
}

fn list(tree: &mut Value) -> &mut Vec<Value> {
    if !tree.is_array() {
        *tree = Value::Array(Vec::new());
    }
    tree.as_array_mut().expect("just made")
}

/// The edits that make one tree of another.
pub fn difference(from: &Value, to: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    differ(
        schema::root(),
        &mut Path::default(),
        Some(from),
        Some(to),
        &mut edits,
    );
    edits
}

/// The edits that make a tree of nothing.
pub fn all(tree: &Value) -> Vec<Edit> {
    difference(&Value::Null, tree)
}

fn differ(
    schema: &Schema,
    path: &mut Path,
    from: Option<&Value>,
    to: Option<&Value>,
    edits: &mut Vec<Edit>,
) {
    if from == to {
        return;
    }
    match (&schema.kind, to) {
        (_, None) => edits.push(Edit::delete(path.clone())),
        (Kind::Leaf(_), Some(value)) => edits.push(Edit::set(path.join(plain(value)))),
        (Kind::LeafList(_), Some(list)) => {
            if from.is_some() {
                edits.push(Edit::delete(path.clone()));
            }
            let values = list.as_array().into_iter().flatten();
            edits.extend(values.map(|value| Edit::set(path.join(plain(value)))));
        }
        (Kind::Container(_) | Kind::Entries { .. }, Some(to)) => {
            let nothing = Map::new();
            let object = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned();
            let (old, new) = (
                object(from).unwrap_or_default(),
                to.as_object().unwrap_or(&nothing),
            );
            let entries = matches!(schema.kind, Kind::Entries { .. });
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                edits.push(Edit::delete(path.join(name)));
            }
            for (name, value) in new {
                let Some(below) = schema.step(name) else {
                    continue;
                };
                path.push(name);
                if entries && !old.contains_key(name) && *value == Value::Object(Map::new()) {
                    edits.push(Edit::set(path.clone()));
                }
                differ(below, path, old.get(name), Some(value), edits);
                path.pop();
            }
        }
    }
}

/// Puts edits that were made of `base` onto `current`, which others have changed since.
///
/// # Errors
/// The places that both changed, differently.
pub fn merge(base: &Value, edits: &[Edit], current: &Value) -> Result<Value, Vec<Path>> {
    let mut wanted = base.clone();
    for edit in edits {
        // what was deleted here and by others as well is gone either way
        let _ = edit.apply(&mut wanted);
    }
    let ours = difference(base, &wanted);
    let theirs = difference(base, current);
    let mut conflicts = Vec::new();
    for own in &ours {
        let place = own.place();
        let meets = |other: &&Edit| {
            let other = other.place();
            place.contains(&other) || other.contains(&place)
        };
        let same = get(&wanted, &place) == get(current, &place);
        if !same && theirs.iter().any(|other| meets(&other)) {
            conflicts.push(place);
        }
    }
    conflicts.dedup();
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let mut merged = current.clone();
    for edit in &ours {
        let _ = edit.apply(&mut merged);
    }
    Ok(merged)
}

/// What a tree has in a place.
pub fn get<'a>(tree: &'a Value, path: &Path) -> Option<&'a Value> {
    path.steps()
        .iter()
        .try_fold(tree, |tree, step| tree.get(step))
}
