//! The models: every data node that is served, in the terms of YANG (RFC 7950).

use crate::openconfig;
use config::schema::{Kind as SettingKind, Leaf, Schema, Type as SettingType};
use northbound::catalogue::{Column, Kind as ColumnKind, TABLES, Table};
use std::sync::LazyLock;

/// Leaf that has the name of an entry of the configuration, which is the key of the entry's list.
pub const NAME: &str = "name";
/// Leaf that has the value of an entry of the configuration that has no parts.
pub const VALUE: &str = "value";

/// A model: a YANG module with one node at its top.
#[derive(Debug)]
pub struct Model {
    /// Name of the module.
    pub name: &'static str,
    /// Who publishes it.
    pub organization: &'static str,
    /// Its revision or version.
    pub version: &'static str,
    /// Name of the node at its top.
    pub top: &'static str,
    /// The node at its top.
    pub node: Node,
    /// Whether it is what can be set; otherwise it is state.
    pub is_configuration: bool,
}

/// A data node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub about: String,
    /// What is below it.
    pub kind: Kind,
}

/// What is below a node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Named parts.
    Container(Parts),
    /// Entries.
    List {
        /// Leaves that tell an entry from all others. Without any, entries have no path of their own.
        keys: Vec<String>,
        /// Parts of an entry.
        parts: Parts,
        /// Its entries are values of the configuration, not parts.
        of_values: bool,
    },
    /// A value.
    Leaf(Value),
    /// Values in an order.
    LeafList(Value),
}

/// Parts of a container or of a list's entry, by name.
pub type Parts = Vec<(String, Node)>;

/// What a value may be.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub value_type: Type,
    /// What it counts.
    pub units: Option<String>,
    /// What holds without it.
    pub default: Option<String>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A text.
    Text,
    /// A number between two others, these included.
    Integer(i64, i64),
    /// A number of 64 bits without sign. RFC 7951 (section 6.1) encodes it as a text.
    Counter,
    /// The same, or an empty text where a row has none. It is a key, which no row may lack.
    CounterOrNone,
    /// `true` or `false`.
    Boolean,
    /// One of these words, with what each means.
    Word(Vec<(String, String)>),
}

/// Every model: the configuration, the state, and those of OpenConfig.
pub fn models() -> &'static [Model] {
    static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
        let openconfig = openconfig::ALL.iter().map(|one| (one.model)());
        [configuration(), state()]
            .into_iter()
            .chain(openconfig)
            .collect()
    });
    &MODELS
}

/// The model with this node at its top.
pub fn model(top: &str) -> Option<&'static Model> {
    models().iter().find(|model| model.top == top)
}

/// Name of a table as a node: `qos-aggregates`.
pub fn node_name(table: &Table) -> String {
    table.name.replace(' ', "-")
}

/// The table that is served as this node.
pub fn table(name: &str) -> Option<&'static Table> {
    let mut tables = TABLES.iter().copied();
    tables.find(|table| node_name(table) == name)
}

/// Whether a table is one row: rows without a key cannot be told from each other, and metrics of them would be those of one.
pub fn is_one_row(table: &Table) -> bool {
    table.key.is_empty() && table.has_metrics()
}

impl Node {
    /// A leaf with this type.
    pub fn leaf(about: impl Into<String>, value_type: Type) -> Self {
        Node {
            about: about.into(),
            kind: Kind::Leaf(Value {
                value_type,
                units: None,
                default: None,
            }),
        }
    }

    /// A container of these parts.
    pub fn container(about: impl Into<String>, parts: Parts) -> Self {
        let (about, kind) = (about.into(), Kind::Container(parts));
        Node { about, kind }
    }

    /// Its parts; none of a value.
    pub fn parts(&self) -> &[(String, Node)] {
        match &self.kind {
            Kind::Container(parts) | Kind::List { parts, .. } => parts,
            Kind::Leaf(_) | Kind::LeafList(_) => &[],
        }
    }

    /// The part of this name.
    pub fn part(&self, name: &str) -> Option<&Node> {
        let mut parts = self.parts().iter();
        parts.find(|(part, _)| part == name).map(|(_, node)| node)
    }
}

fn configuration() -> Model {
    Model {
        name: "sluice-configuration",
        organization: "Sluice",
        version: "2026-11-28",
        top: "configuration",
        node: setting(config::schema::root()),
        is_configuration: true,
    }
}

/// A place of the configuration as a node. Entries become a list, of which the name that the operator chooses is the key.
fn setting(schema: &Schema) -> Node {
    let kind = match &schema.kind {
        SettingKind::Container(parts) => Kind::Container(settings(parts)),
        SettingKind::Leaf(leaf) => Kind::Leaf(value(leaf)),
        SettingKind::LeafList(leaf) => Kind::LeafList(value(leaf)),
        SettingKind::Entries { key, entry, .. } => {
            let mut parts = vec![(NAME.to_owned(), Node::leaf(key, Type::Text))];
            let of_values = entry.leaf().is_some();
            match &entry.kind {
                SettingKind::Container(below) => parts.extend(settings(below)),
                _ => parts.push((VALUE.to_owned(), setting(entry))),
            }
            Kind::List {
                keys: vec![NAME.into()],
                parts,
                of_values,
            }
        }
    };
    let secret = schema.leaf().is_some_and(|leaf| leaf.secret);
    let about = match secret {
        true => format!("{} It is never shown.", schema.doc),
        false => schema.doc.clone(),
    };
    Node { about, kind }
}

fn settings<'a>(parts: impl IntoIterator<Item = (&'a String, &'a Schema)>) -> Parts {
    let parts = parts.into_iter();
    parts
        .map(|(name, part)| (name.clone(), setting(part)))
        .collect()
}

fn value(leaf: &Leaf) -> Value {
    Value {
        value_type: match &leaf.leaf_type {
            SettingType::Text(_) => Type::Text,
            SettingType::Integer(least, most) => Type::Integer(*least, *most),
            SettingType::Boolean => Type::Boolean,
            SettingType::Word(words) => Type::Word(words.clone()),
        },
        units: leaf.unit.clone(),
        default: leaf.default.clone(),
    }
}

fn state() -> Model {
    let tables = TABLES.iter();
    let tables = tables
        .map(|table| (node_name(table), rows(table)))
        .collect();
    Model {
        name: "sluice-state",
        organization: "Sluice",
        version: "2026-11-28",
        top: "state",
        node: Node::container("State of the gateway, a list for each table.", tables),
        is_configuration: false,
    }
}

fn rows(table: &Table) -> Node {
    let mut parts = columns(table.columns);
    for (name, part) in &mut parts {
        // a key that a row lacks is an empty text
        if let Kind::Leaf(value) = &mut part.kind
            && value.value_type == Type::Counter
            && table.key.contains(&name.as_str())
        {
            value.value_type = Type::CounterOrNone;
        }
    }
    let kind = match is_one_row(table) {
        true => Kind::Container(parts),
        false => Kind::List {
            keys: table.key.iter().map(|key| (*key).to_owned()).collect(),
            parts,
            of_values: false,
        },
    };
    let about = format!("{}.", table.about);
    Node { about, kind }
}

/// Columns as nodes: a field `traffic.up_octets` is the leaf `up_octets` in the container `traffic`.
fn columns(columns: &[Column]) -> Parts {
    let mut all = Parts::new();
    for column in columns.iter().filter(|column| !column.derived) {
        let inside = format!("{}.", column.field);
        // a flag for something whose parts are columns too is said by these
        if columns.iter().any(|other| other.field.starts_with(&inside)) {
            continue;
        }
        let about = format!("{}.", column.about);
        match column.field.split_once('.') {
            None => all.push((column.field.to_owned(), cell(about, &column.kind))),
            Some((above, field)) => {
                let there = all.iter_mut().find(|(name, _)| name == above);
                let container = match there {
                    Some((_, container)) => container,
                    None => {
                        let fresh = Node::container(format!("Parts of `{above}`."), Parts::new());
                        all.push((above.to_owned(), fresh));
                        &mut all.last_mut().expect("just pushed").1
                    }
                };
                if let Kind::Container(parts) = &mut container.kind {
                    parts.push((field.to_owned(), cell(about, &column.kind)));
                }
            }
        }
    }
    all
}

fn cell(about: String, kind: &ColumnKind) -> Node {
    match kind {
        ColumnKind::Text | ColumnKind::Word(_) => Node::leaf(about, Type::Text),
        ColumnKind::Number(_) => Node::leaf(about, Type::Counter),
        ColumnKind::Flag(..) => Node::leaf(about, Type::Boolean),
        ColumnKind::Texts => Node {
            about,
            kind: Kind::LeafList(Value {
                value_type: Type::Text,
                units: None,
                default: None,
            }),
        },
        ColumnKind::Cell(below) | ColumnKind::Rows { columns: below, .. } => Node {
            about,
            kind: Kind::List {
                keys: Vec::new(),
                parts: columns(below),
                of_values: false,
            },
        },
    }
}
