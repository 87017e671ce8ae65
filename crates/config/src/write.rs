//! A configuration as YAML.

use crate::schema::{self, Kind, Schema};
use crate::values::MASK;
use serde_json::Value;
use std::fmt::Write;

/// The document of a tree, in the order of the alphabet. With `secrets` it is what it was made of; without, they are
/// hidden, and the document is only good for reading.
pub fn write(tree: &Value, secrets: bool) -> String {
    let mut out = String::new();
    let empty = tree.as_object().is_none_or(serde_json::Map::is_empty);
    match empty {
        true => out.push_str("{}\n"),
        false => node(&mut out, schema::root(), tree, 0, secrets),
    }
    out
}

/// A tree with its secrets hidden.
pub fn masked(tree: &Value) -> Value {
    mask(schema::root(), tree)
}

fn mask(schema: &Schema, tree: &Value) -> Value {
    match (&schema.kind, tree) {
        (Kind::Leaf(leaf), _) if leaf.secret => Value::from(MASK),
        (_, Value::Object(map)) => {
            let below = |(name, value): (&String, &Value)| {
                let masked = schema
                    .step(name)
                    .map_or(Value::Null, |schema| mask(schema, value));
                (name.clone(), masked)
            };
            Value::Object(map.iter().map(below).collect())
        }
        (_, other) => other.clone(),
    }
}

fn node(out: &mut String, schema: &Schema, tree: &Value, depth: usize, secrets: bool) {
    let mut entries: Vec<(&String, &Value)> = tree.as_object().into_iter().flatten().collect();
    // numbers in their order, not that of the alphabet
    entries.sort_by_key(|(name, _)| name.parse::<u32>().ok());
    for (name, value) in entries {
        let Some(below) = schema.step(name) else {
            continue;
        };
        let indent = 2 * depth;
        let _ = write!(
            out,
            "{:indent$}{}:",
            "",
            scalar(&Value::from(name.as_str()))
        );
        match (&below.kind, value) {
            (Kind::Leaf(leaf), _) if leaf.secret && !secrets => {
                let _ = writeln!(out, " '{MASK}'");
            }
            (Kind::Leaf(_), value) => {
                let _ = writeln!(out, " {}", scalar(value));
            }
            (Kind::LeafList(_), value) => {
                let list: Vec<String> =
                    value.as_array().into_iter().flatten().map(scalar).collect();
                let _ = writeln!(out, " [{}]", list.join(", "));
            }
            (_, value) if value.as_object().is_none_or(serde_json::Map::is_empty) => {
                out.push_str(" {}\n")
            }
            (_, value) => {
                out.push('\n');
                node(out, below, value, depth + 1, secrets);
            }
        }
    }
}

/// A value as YAML: as it is where nothing else could be read into it, otherwise in JSON's quotes, which YAML knows.
fn scalar(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-@+".contains(c);
    let first = text
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '/');
    let address =
        text.parse::<std::net::Ipv4Addr>().is_ok() || text.parse::<ipnet::Ipv4Net>().is_ok();
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if address || first && !word && text.chars().all(plain) {
        return text.clone();
    }
    // in a double-quoted text YAML knows all of JSON's escapes (YAML 1.2.2 §5.7), and wants more escaped (§5.1)
    let mut quoted = String::new();
    for c in Value::from(text.as_str()).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'..='\u{ffff}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted
}
