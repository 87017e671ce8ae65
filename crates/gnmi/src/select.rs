//! What a path leads to in data.

use crate::model::{Kind, Node};
use crate::path::{Path, Step};
use serde_json::Value;

/// What was found.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// Where, without `*`.
    pub path: Path,
    /// The node.
    pub node: &'a Node,
    /// Its value: of a list's entry the entry, of a list without keys all of them.
    pub value: &'a Value,
}

/// Finds what these steps lead to from a node with its value. `path` leads to the node.
pub fn select<'a>(node: &'a Node, value: &'a Value, path: &Path, steps: &[Step]) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    find(node, value, path.clone(), steps, &mut found);
    found
}

fn find<'a>(
    node: &'a Node,
    value: &'a Value,
    path: Path,
    steps: &[Step],
    found: &mut Vec<Found<'a>>,
) {
    let Some((step, rest)) = steps.split_first() else {
        return found.push(Found { path, node, value });
    };
    for (name, part) in node.parts().iter().filter(|(name, _)| step.leads_to(name)) {
        let Some(below) = value.get(name) else {
            continue;
        };
        for (own, entry) in entries(name, part, below) {
            let fits = |(key, value): (&String, &String)| own.keys.get(key) == Some(value);
            if step.keys.iter().all(fits) {
                let mut path = path.clone();
                path.steps.push(own);
                find(part, entry, path, rest, found);
            }
        }
    }
}

/// The entries of a list with keys, each with its step; or the node as it is.
fn entries<'a>(name: &str, node: &Node, value: &'a Value) -> Vec<(Step, &'a Value)> {
    match (&node.kind, value) {
        (Kind::List { keys, .. }, Value::Array(entries)) if !keys.is_empty() => {
            let step = |entry: &'a Value| {
                let mut step = Step::to(name);
                let values = keys.iter().map(|key| (key.clone(), text(&entry[key])));
                step.keys.extend(values);
                (step, entry)
            };
            entries.iter().map(step).collect()
        }
        _ => vec![(Step::to(name), value)],
    }
}

/// A value as it stands in a path.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Every value at or below a node, each with its path. Entries of a list without keys are one value together.
pub fn leaves<'a>(found: &Found<'a>) -> Vec<Found<'a>> {
    let mut all = Vec::new();
    collect(found.node, found.value, found.path.clone(), &mut all);
    all
}

fn collect<'a>(node: &'a Node, value: &'a Value, path: Path, all: &mut Vec<Found<'a>>) {
    let unkeyed = matches!(&node.kind, Kind::List { keys, .. } if keys.is_empty());
    if node.parts().is_empty() || unkeyed {
        return all.push(Found { path, node, value });
    }
    for (name, part) in node.parts() {
        let Some(below) = value.get(name) else {
            continue;
        };
        for (step, entry) in entries(name, part, below) {
            let mut path = path.clone();
            path.steps.push(step);
            collect(part, entry, path, all);
        }
    }
}
