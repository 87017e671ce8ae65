//! Models of OpenConfig, as far as the tables and the configuration have what they ask for.

mod components;
mod interfaces;
mod network_instances;

use crate::model::{Kind, Model, Node, Parts, Type, node_name};
use northbound::catalogue::Table;
use serde_json::Value;

/// A model of OpenConfig, made of data of the other models.
#[derive(Debug)]
pub struct OpenConfig {
    /// Name of the node at its top.
    pub top: &'static str,
    /// Data that it is made of.
    pub origins: &'static [Origin],
    /// Makes its value of those of its origins, in their order.
    pub make: fn(&[&Value]) -> Value,
    /// Changes of it say more than samples.
    pub tells_changes: bool,
    /// Its nodes.
    pub model: fn() -> Model,
}

/// Data that a model of OpenConfig is made of.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// Rows of a table.
    Table(&'static Table),
    /// The configuration in force.
    Configuration,
}

/// All of them.
pub const ALL: [&OpenConfig; 3] = [
    &interfaces::INTERFACES,
    &components::COMPONENTS,
    &network_instances::NETWORK_INSTANCES,
];

/// The one with this node at its top.
pub fn find(top: &str) -> Option<&'static OpenConfig> {
    ALL.into_iter().find(|one| one.top == top)
}

/// Rows of a table as its model has them.
fn rows<'a>(value: &'a Value, table: &Table) -> impl Iterator<Item = &'a Value> {
    entries(&value[node_name(table)])
}

/// Entries of a list.
fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_default()
}

/// Name of a port or sub-interface of a user plane.
fn port_name(user_plane: &str, port: &str) -> String {
    format!("{user_plane}/{port}")
}

fn leaf(name: &str, about: &str) -> (String, Node) {
    (name.to_owned(), Node::leaf(about, Type::Text))
}

/// A list as OpenConfig has them: its key, and the same in `state` beside the rest.
fn list(about: &str, key: &str, key_about: &str, state: Parts, more: Parts) -> Node {
    let state = [vec![leaf(key, key_about)], state].concat();
    let parts = vec![
        leaf(key, key_about),
        ("state".into(), Node::container("State.", state)),
    ];
    Node {
        about: about.into(),
        kind: Kind::List {
            keys: vec![key.into()],
            parts: [parts, more].concat(),
            of_values: false,
        },
    }
}

/// A model with a list at its top.
fn model(
    (name, version): (&'static str, &'static str),
    top: &'static str,
    (entry, list): (&str, Node),
) -> Model {
    Model {
        name,
        organization: "OpenConfig working group",
        version,
        top,
        node: Node::container("Entries.", vec![(entry.to_owned(), list)]),
        is_configuration: false,
    }
}
