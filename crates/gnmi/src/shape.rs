//! Data as the models have it, made of what the local API tells.

use crate::model::{self, Kind, Node, Type};
use northbound::catalogue::Table;
use serde_json::{Map, Value};

/// The configuration of its tree: entries become a list.
pub fn configuration(node: &Node, tree: &Value) -> Value {
    let Value::Object(tree) = tree else {
        return tree.clone();
    };
    match &node.kind {
        Kind::List { of_values, .. } => {
            let entry = |(name, value): (&String, &Value)| {
                let mut entry = Map::new();
                entry.insert(model::NAME.into(), name.as_str().into());
                match of_values {
                    true => {
                        entry.insert(model::VALUE.into(), value.clone());
                    }
                    false => entry.extend(settings(node, value)),
                }
                Value::Object(entry)
            };
            Value::Array(tree.iter().map(entry).collect())
        }
        _ => Value::Object(settings(node, &Value::Object(tree.clone()))),
    }
}

fn settings(node: &Node, value: &Value) -> Map<String, Value> {
    let parts = value.as_object().into_iter().flatten();
    let part = |(name, value): (&String, &Value)| {
        let part = node.part(name)?;
        Some((name.clone(), configuration(part, value)))
    };
    parts.filter_map(part).collect()
}

/// Rows of a table as its node has them: only columns, each of its type.
pub fn rows(table: &Table, node: &Node, rows: &[Value]) -> Value {
    match &node.kind {
        Kind::List { keys, .. } => {
            let row = |row: &Value| {
                let mut shaped = parts(node, row);
                for key in keys {
                    shaped.entry(key.as_str()).or_insert_with(|| "".into());
                }
                Value::Object(shaped)
            };
            Value::Array(rows.iter().map(row).collect())
        }
        _ => {
            debug_assert!(model::is_one_row(table));
            let row = rows.first().map(|row| parts(node, row));
            Value::Object(row.unwrap_or_default())
        }
    }
}

fn parts(node: &Node, row: &Value) -> Map<String, Value> {
    let cell = |(name, part): &(String, Node)| Some((name.clone(), cell(part, row.get(name)?)?));
    node.parts().iter().filter_map(cell).collect()
}

fn cell(node: &Node, value: &Value) -> Option<Value> {
    match (&node.kind, value) {
        (_, Value::Null) => None,
        (Kind::Container(_), Value::Object(_)) => Some(Value::Object(parts(node, value))),
        (Kind::List { .. }, Value::Array(rows)) => {
            let rows = rows.iter().map(|row| Value::Object(parts(node, row)));
            Some(Value::Array(rows.collect()))
        }
        (Kind::LeafList(_), Value::Array(_)) => Some(value.clone()),
        (Kind::Leaf(leaf), value) => match (&leaf.value_type, value) {
            (Type::Boolean, Value::Bool(_)) => Some(value.clone()),
            // a flag may say that something is there
            (Type::Boolean, _) => Some(true.into()),
            (Type::Counter | Type::CounterOrNone, Value::Number(_)) => Some(value.clone()),
            (Type::Text, Value::String(_)) => Some(value.clone()),
            _ => None,
        },
        _ => None,
    }
}
