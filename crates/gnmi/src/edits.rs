//! Edits of the configuration that a Set stands for, as they are typed in `sluice configure`.

use crate::model::{self, Kind, Node};
use crate::operations::{Operation, Verb};
use crate::path::{Path, Step};
use config::Edit;
use serde_json::Value;

/// Maximum number of edits of a Set.
pub const MOST: usize = 20_000;

/// The edits that carry out these operations, one after the other, on the configuration whose tree this is. None, where the configuration
/// is afterwards as it was: a client may repeat its request.
///
/// # Errors
/// An operation cannot be carried out; the sentence names its path. No value is in it, which may be a secret.
pub fn edits(start: &Value, operations: &[Operation]) -> Result<Vec<Edit>, String> {
    let (mut tree, mut edits) = (start.clone(), Vec::new());
    for operation in operations {
        let path = &operation.path;
        let said = |why: String| format!("{path}: {why}");
        let place = place(path).map_err(said)?;
        let first = edits.len();
        let replaces = operation.verb != Verb::Update;
        if replaces && is_there(&tree, &place) {
            edits.push(Edit::delete(config::Path::from_iter(&place.words)));
        }
        if operation.verb != Verb::Delete {
            let before = Some(&tree).filter(|_| !replaces);
            let mut found = Found {
                before,
                edits: &mut edits,
            };
            found.set(&place, &operation.value).map_err(said)?;
        }
        for edit in &edits[first..] {
            // the text of an error has the edit, of which secrets are hidden
            edit.apply(&mut tree)
                .map_err(|error| said(error.to_string()))?;
        }
    }
    match tree == *start {
        true => Ok(Vec::new()),
        false => Ok(edits),
    }
}

/// A place of the configuration: its node, and the words that lead there.
#[derive(Clone, Debug)]
struct Place {
    node: &'static Node,
    words: Vec<String>,
    /// It is an entry of the list that `node` is.
    is_entry: bool,
}

/// The place to which a path leads.
fn place(path: &Path) -> Result<Place, String> {
    let (first, rest) = path
        .steps
        .split_first()
        .ok_or("expected a path that begins with /configuration")?;
    let model = first.name.as_deref().and_then(model::model);
    let model = model.filter(|model| model.is_configuration);
    let model = model.ok_or("only what is below /configuration can be set")?;
    let mut place = Place {
        node: &model.node,
        words: Vec::new(),
        is_entry: false,
    };
    for step in rest {
        place = place.step(step)?;
    }
    Ok(place)
}

impl Place {
    fn step(&self, step: &Step) -> Result<Place, String> {
        let name = step.name.as_deref();
        let name = name.ok_or("`*` cannot be set: name each node")?;
        if matches!(self.node.kind, Kind::List { .. }) && !self.is_entry {
            return Err(format!(
                "an entry's `{}` is missing, such as [{0}=VALUE]",
                model::NAME
            ));
        }
        let mut place = self.part(name)?;
        if let Some(key) = step.keys.get(model::NAME) {
            place.words.push(key.clone());
            place.is_entry = true;
        }
        Ok(place)
    }

    /// The place of a part.
    fn part(&self, name: &str) -> Result<Place, String> {
        let node = self.node.part(name);
        let node = node.ok_or_else(|| format!("`{name}` is not known here"))?;
        let mut words = self.words.clone();
        match &self.node.kind {
            Kind::List { of_values, .. } => match name {
                model::NAME => return Err("the name of an entry cannot be changed".into()),
                // the value of an entry is the entry
                model::VALUE if *of_values => {}
                _ => words.push(name.into()),
            },
            _ => words.push(name.into()),
        }
        Ok(Place {
            node,
            words,
            is_entry: false,
        })
    }

    fn entry(&self, name: String) -> Place {
        let mut entry = self.clone();
        entry.words.push(name);
        entry.is_entry = true;
        entry
    }
}

fn is_there(tree: &Value, place: &Place) -> bool {
    let mut words = place.words.iter();
    words
        .try_fold(tree, |value, word| value.get(word))
        .is_some()
}

/// Edits that were found so far.
struct Found<'a> {
    /// The configuration before; [`None`]: nothing is there any more.
    before: Option<&'a Value>,
    edits: &'a mut Vec<Edit>,
}

impl Found<'_> {
    fn push(&mut self, edit: Edit) -> Result<(), String> {
        if self.edits.len() >= MOST {
            return Err(format!(
                "this is more than {MOST} changes at once: commit a document by the command line or REST"
            ));
        }
        self.edits.push(edit);
        Ok(())
    }

    fn set_words(&mut self, place: &Place, value: Option<String>) -> Result<(), String> {
        let words = place.words.iter().cloned().chain(value);
        self.push(Edit::set(words.collect()))
    }

    /// Sets what a value has.
    fn set(&mut self, place: &Place, value: &Value) -> Result<(), String> {
        match (&place.node.kind, value) {
            (Kind::Leaf(_), value) => {
                let text = scalar(value).ok_or("expected one value")?;
                self.set_words(place, Some(text))
            }
            (Kind::LeafList(_), Value::Array(values)) => self.set_all(place, values),
            (Kind::Container(_), Value::Object(parts)) => self.set_parts(place, parts),
            (Kind::List { .. }, Value::Object(parts)) if place.is_entry => {
                self.set_entry(place, parts)
            }
            (Kind::List { .. }, Value::Array(entries)) if !place.is_entry => {
                for entry in entries {
                    let parts = entry.as_object().ok_or("expected a list of objects")?;
                    let name = member(parts, model::NAME).and_then(scalar);
                    let name = name.ok_or("an entry has no `name`")?;
                    self.set_entry(&place.entry(name), parts)?;
                }
                Ok(())
            }
            (Kind::LeafList(_), _) => Err("expected a list of values".into()),
            (Kind::Container(_), _) => Err("expected an object".into()),
            (Kind::List { .. }, _) if place.is_entry => Err("expected an object".into()),
            (Kind::List { .. }, _) => Err("expected a list of objects".into()),
        }
    }

    /// A list of values is one value: what is there before goes.
    fn set_all(&mut self, place: &Place, values: &[Value]) -> Result<(), String> {
        if self.before.is_some_and(|tree| is_there(tree, place)) {
            self.push(Edit::delete(config::Path::from_iter(&place.words)))?;
        }
        for value in values {
            let text = scalar(value).ok_or("expected a list of values")?;
            self.set_words(place, Some(text))?;
        }
        Ok(())
    }

    fn set_entry(
        &mut self,
        place: &Place,
        parts: &serde_json::Map<String, Value>,
    ) -> Result<(), String> {
        let name = member(parts, model::NAME);
        if name.is_some_and(|name| scalar(name).as_ref() != place.words.last()) {
            return Err("the value's `name` is not that of the entry".into());
        }
        let of_values = matches!(
            place.node.kind,
            Kind::List {
                of_values: true,
                ..
            }
        );
        match of_values {
            false => self.set_words(place, None)?,
            // otherwise a replacement would delete the entry
            true if member(parts, model::VALUE).is_none() => {
                return Err("an entry has no `value`".into());
            }
            true => {}
        }
        self.set_parts(place, parts)
    }

    fn set_parts(
        &mut self,
        place: &Place,
        parts: &serde_json::Map<String, Value>,
    ) -> Result<(), String> {
        for (name, value) in parts {
            let name = plain(name);
            if name == model::NAME && place.is_entry {
                continue;
            }
            let part = place.part(name)?;
            let said = |why| format!("{name}: {why}");
            self.set(&part, value).map_err(said)?;
        }
        Ok(())
    }
}

/// A name without its module (RFC 7951, section 4).
fn plain(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, name)| name)
}

fn member<'a>(parts: &'a serde_json::Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut parts = parts.iter();
    parts
        .find(|(own, _)| plain(own) == name)
        .map(|(_, value)| value)
}

/// One value as it is typed.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
