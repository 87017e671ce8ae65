//! Whether a document is one of the model: every fault is found in one go, with its line, its place and what is expected.

mod contradictions;
mod pools;
mod radius;
mod whole;

pub use contradictions::new_contradictions;

use crate::model::{Acl, Configuration, UserPlaneDocument};
use crate::schema::{self, Kind, Leaf, Schema, Type};
use crate::tree::{Node, Value};
use crate::values::MASK;
use crate::{Fault, Path};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest name of an entry, in octets.
const MAX_NAME: usize = 253;
/// The longest value, in octets.
const MAX_TEXT: usize = 4096;
/// Faults after which it is not worth going on.
const MAX_FAULTS: usize = 1000;

/// A configuration that holds in itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// As it was written: without defaults.
    pub tree: Json,
    /// As it is used.
    pub configuration: Arc<Configuration>,
}

impl Default for Checked {
    fn default() -> Self {
        Checked {
            tree: Json::Object(serde_json::Map::new()),
            configuration: Arc::default(),
        }
    }
}

/// Reads and checks a document.
///
/// # Errors
/// Everything that is wrong with it, in the order of the lines.
pub fn read(text: &str) -> Result<Checked, Vec<Fault>> {
    let (node, faults) = crate::tree::parse(text);
    let Some(node) = node else {
        return Err(faults);
    };
    check_node(&node, faults)
}

/// Checks a tree that was put together by edits.
///
/// # Errors
/// Everything that is wrong with it; lines are 0.
pub fn check(tree: &Json) -> Result<Checked, Vec<Fault>> {
    check_node(&unwritten(tree), Vec::new())
}

/// What is wrong with what a user plane is told: the same as in a configuration, for it may come from elsewhere. Lines are 0.
pub fn user_plane(document: &UserPlaneDocument) -> Vec<Fault> {
    let instances = serde_json::to_value(&document.network_instances);
    let ports = serde_json::to_value(&document.ports);
    // Their rules were parsed, one by one, as the document was read. All of them as texts again would take long.
    let acls = document.acls.iter().map(|(name, acl)| {
        let without_rules = Acl {
            rules: BTreeMap::new(),
            count: acl.count,
        };
        (name, without_rules)
    });
    let acls = serde_json::to_value(acls.collect::<BTreeMap<_, _>>());
    let policers = serde_json::to_value(&document.policers);
    let policies = serde_json::to_value(&document.policies);
    let trees = [
        ("network-instances", instances),
        ("ports", ports),
        ("acls", acls),
        ("policers", policers),
        ("policies", policies),
    ];
    let nodes = trees.map(|(name, tree)| {
        let tree = tree.expect("a document has only names and values");
        (name.to_owned(), unwritten(&tree))
    });
    let root = Node {
        line: 0,
        value: Value::Map(nodes.clone().into()),
    };
    let mut checker = Checker {
        root: &root,
        path: Path::default(),
        faults: Vec::new(),
    };
    for ((name, node), model) in nodes.iter().zip([
        "network-instances",
        "user-planes * ports",
        "acls",
        "policers",
        "policies",
    ]) {
        let model = schema::root().find(&Path::from_iter(model.split(' ')));
        checker.path.push(name);
        checker.node(model.expect("the model has it"), node);
        checker.path.pop();
    }
    match checker.faults.is_empty() {
        true => whole::user_plane(document),
        false => checker.faults,
    }
}

fn check_node(node: &Node, faults: Vec<Fault>) -> Result<Checked, Vec<Fault>> {
    let mut checker = Checker {
        root: node,
        path: Path::default(),
        faults,
    };
    let tree = checker.node(schema::root(), node);
    let tree = tree.unwrap_or_else(|| Checked::default().tree);
    let mut faults = checker.faults;
    if faults.is_empty() {
        match Configuration::deserialize(&tree) {
            Ok(configuration) => {
                faults = whole::check(&configuration);
                if faults.is_empty() {
                    return Ok(Checked {
                        tree,
                        configuration: Arc::new(configuration),
                    });
                }
            }
            // the schema and the types are one declaration: only a format that neither names gets here
            Err(error) => faults.push(Fault::of_document(error.to_string())),
        }
    }
    for fault in faults.iter_mut().filter(|fault| fault.line == 0) {
        fault.line = node.line_of(&fault.path);
    }
    faults.sort_by_key(|fault| fault.line);
    Err(faults)
}

/// A tree as if it were written, in no line.
fn unwritten(tree: &Json) -> Node {
    let value = match tree {
        Json::Null => Value::Nothing,
        Json::Object(map) => Value::Map(
            map.iter()
                .map(|(name, v)| (name.clone(), unwritten(v)))
                .collect(),
        ),
        Json::Array(list) => Value::List(list.iter().map(unwritten).collect()),
        scalar => Value::Scalar(schema::plain(scalar)),
    };
    Node { line: 0, value }
}

struct Checker<'a> {
    root: &'a Node,
    path: Path,
    faults: Vec<Fault>,
}

impl Checker<'_> {
    fn fault(&mut self, line: u64, message: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault {
                line,
                path: self.path.clone(),
                message,
            });
        }
    }

    /// The value in its type, if it is right; what is wrong is noted.
    fn node(&mut self, schema: &Schema, node: &Node) -> Option<Json> {
        match (&schema.kind, &node.value) {
            (Kind::Container(parts), Value::Map(map)) => {
                Some(self.container(parts, node.line, map))
            }
            (Kind::Container(parts), Value::Nothing) => {
                Some(self.container(parts, node.line, &BTreeMap::new()))
            }
            (
                Kind::Entries {
                    reference,
                    format,
                    entry,
                    ..
                },
                Value::Map(map),
            ) => {
                let (reference, format) = (reference.as_ref(), format.as_deref());
                let map = map
                    .iter()
                    .filter_map(|(name, node)| self.entry(reference, format, entry, name, node));
                Some(Json::Object(map.collect()))
            }
            (Kind::Entries { .. }, Value::Nothing) => Some(Json::Object(serde_json::Map::new())),
            (Kind::LeafList(leaf), Value::List(list)) => self.leaf_list(leaf, node.line, list),
            (Kind::LeafList(leaf), Value::Scalar(_)) => {
                self.leaf_list(leaf, node.line, std::slice::from_ref(node))
            }
            (Kind::LeafList(_), Value::Nothing) => Some(Json::Array(Vec::new())),
            (Kind::Leaf(leaf), Value::Scalar(text)) => self.leaf(leaf, node.line, text),
            (Kind::Leaf(leaf), _) => {
                let expected = leaf.expected();
                self.fault(
                    node.line,
                    format!("a value is missing here: expected {expected}"),
                );
                None
            }
            (Kind::Container(parts), _) => {
                let names: Vec<&str> = parts.keys().map(String::as_str).collect();
                self.fault(
                    node.line,
                    format!(
                        "this is a single value: expected `name: value`, where the name is one of {}",
                        names.join(", ")
                    ),
                );
                None
            }
            (Kind::Entries { key, .. }, _) => {
                self.fault(node.line, format!("entries are missing here: expected `name:` with settings below it, where the \
                    name is {key}"));
                None
            }
            (Kind::LeafList(leaf), Value::Map(_)) => {
                let expected = leaf.expected();
                self.fault(
                    node.line,
                    format!("this is not a list: expected `[value, value]`, each {expected}"),
                );
                None
            }
        }
    }

    fn container(
        &mut self,
        parts: &BTreeMap<String, Schema>,
        line: u64,
        map: &BTreeMap<String, Node>,
    ) -> Json {
        let mut made = serde_json::Map::new();
        for (name, node) in map {
            self.path.push(name);
            match parts.get(name) {
                None => {
                    let message = unknown(name, "a setting", parts.keys());
                    self.fault(node.line, message);
                }
                Some(schema) => {
                    if let Some(json) = self.node(schema, node).filter(|json| !is_empty(json)) {
                        made.insert(name.clone(), json);
                    }
                }
            }
            self.path.pop();
        }
        for (name, schema) in parts.iter().filter(|(_, schema)| schema.required) {
            if !map.contains_key(name) {
                let doc = schema.doc.lines().next().unwrap_or_default();
                let expected = schema.leaf().map(Leaf::expected).unwrap_or_default();
                self.fault(
                    line,
                    format!("`{name}` is missing: expected {expected}. {doc}"),
                );
            }
        }
        Json::Object(made)
    }

    fn entry(
        &mut self,
        reference: Option<&Path>,
        format: Option<&str>,
        schema: &Schema,
        name: &str,
        node: &Node,
    ) -> Option<(String, Json)> {
        self.path.push(name);
        let wrong = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '*';
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(wrong) {
            let message = format!(
                "this is not a valid name: expected 1 to {MAX_NAME} octets without blanks, quotes and `*`"
            );
            self.fault(node.line, message);
        }
        if let Some(format) = format
            && !crate::values::check(format, name)
        {
            let expected = crate::values::describe(format);
            self.fault(
                node.line,
                format!("`{name}` is not valid here: expected {expected}"),
            );
        }
        if let Some(reference) = reference {
            self.reference(reference, node.line, name);
        }
        let made = self.node(schema, node);
        self.path.pop();
        Some((name.to_owned(), made?))
    }

    fn leaf_list(&mut self, leaf: &Leaf, line: u64, list: &[Node]) -> Option<Json> {
        let mut made = Vec::new();
        let mut seen = BTreeSet::new();
        for node in list {
            let Value::Scalar(text) = &node.value else {
                let expected = leaf.expected();
                self.fault(
                    node.line,
                    format!("this is not a single value: expected {expected}"),
                );
                continue;
            };
            if !seen.insert(text) {
                self.fault(
                    node.line,
                    format!("`{text}` is listed twice: expected once"),
                );
            }
            made.extend(self.leaf(leaf, node.line.max(line), text));
        }
        Some(Json::Array(made))
    }

    fn leaf(&mut self, leaf: &Leaf, line: u64, text: &str) -> Option<Json> {
        let expected = || leaf.expected();
        let shown = if leaf.secret {
            "the value"
        } else {
            &format!("`{text}`")
        };
        if text.len() > MAX_TEXT {
            self.fault(
                line,
                format!(
                    "the value has {} octets: expected at most {MAX_TEXT}",
                    text.len()
                ),
            );
            return None;
        }
        if leaf.secret && (text == MASK || text.is_empty()) {
            self.fault(
                line,
                "this is the placeholder of a hidden secret: expected the secret itself".into(),
            );
            return None;
        }
        let json = match &leaf.leaf_type {
            Type::Boolean => text.parse().ok().map(Json::Bool),
            Type::Integer(min, max) => {
                let number = text.parse().ok().filter(|n| (min..=max).contains(&n));
                number.map(|n: i64| Json::from(n))
            }
            Type::Word(words) => {
                let known = words.iter().any(|(word, _)| word == text);
                if !known {
                    let message = unknown(text, "a value", words.iter().map(|(word, _)| word));
                    self.fault(line, message);
                    return None;
                }
                Some(Json::from(text))
            }
            Type::Text(format) => {
                let format = format.as_deref();
                if let Some(fault) = format.and_then(|format| crate::values::fault(format, text)) {
                    self.fault(line, fault);
                    return None;
                }
                let good = format.is_none_or(|format| crate::values::check(format, text));
                good.then(|| Json::from(text))
            }
        };
        if json.is_none() {
            self.fault(
                line,
                format!("{shown} is not valid here: expected {}", expected()),
            );
        }
        if let Some(reference) = &leaf.reference {
            self.reference(reference, line, text);
        }
        json
    }

    /// A name has to be that of an entry.
    fn reference(&mut self, to: &Path, line: u64, name: &str) {
        let mut node = Some(self.root);
        for step in to.steps() {
            node = node.and_then(|node| match &node.value {
                Value::Map(map) => map.get(step),
                _ => None,
            });
        }
        let entries = match node.map(|node| &node.value) {
            Some(Value::Map(map)) => map,
            _ => &BTreeMap::new(),
        };
        if !entries.contains_key(name) {
            let message = format!(
                "`{to}` has no `{name}`: {}",
                suggestion(name, entries.keys())
            );
            self.fault(line, message);
        }
    }
}

/// A map or list with nothing in it says no more than its absence.
fn is_empty(json: &Json) -> bool {
    match json {
        Json::Object(map) => map.is_empty(),
        Json::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn unknown<'a>(name: &str, what: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    format!("`{name}` is not {what} here: {}", suggestion(name, known))
}

/// The nearest of the names that would be right, and if they are not too many, all of them.
fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    let near = |other: &&String| strsim::damerau_levenshtein(name, other);
    let nearest = known
        .clone()
        .min_by_key(near)
        .filter(|n| near(n) <= (name.len() / 3).max(1));
    let all: Vec<&str> = known.map(String::as_str).collect();
    let expected = match all.len() {
        0 => "none is configured".into(),
        1..=16 => format!("expected one of {}", all.join(", ")),
        n => format!("expected one of {n} names"),
    };
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`? {expected}"),
        None => expected,
    }
}
