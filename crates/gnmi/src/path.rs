//! Paths as clients send them.

use crate::model::{Kind, Model, Node, model, models};
use crate::proto::{Path as Sent, PathElem};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of steps of a path.
const STEPS: usize = 32;
/// Maximum number of keys of a step.
const KEYS: usize = 8;
/// Maximum length of a name or key, in octets. A value of a key may be as long as a name of the configuration.
const LENGTH: usize = 256;
/// Stands for every name, or every value of a key.
const ANY: &str = "*";

/// A path from the root, in which every name is one of the models' or `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// Its steps.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// Name of a node; `None`: any.
    pub name: Option<String>,
    /// Keys with their values. A key that is not there may have any value.
    pub keys: BTreeMap<String, String>,
}

impl Step {
    /// A step to a node.
    pub fn to(name: &str) -> Self {
        Step {
            name: Some(name.into()),
            keys: BTreeMap::new(),
        }
    }

    /// Whether it leads to a node of this name.
    pub fn leads_to(&self, name: &str) -> bool {
        self.name.as_deref().is_none_or(|own| own == name)
    }
}

impl Path {
    /// Reads a path behind a prefix.
    ///
    /// # Errors
    /// It is too long, or no model has such a node; the sentence says which, and what is expected.
    pub fn read(prefix: Option<&Sent>, sent: &Sent) -> Result<Self, String> {
        let elements = prefix.into_iter().flat_map(|prefix| &prefix.elem);
        let elements: Vec<&PathElem> = elements.chain(&sent.elem).take(STEPS + 1).collect();
        if elements.len() > STEPS {
            return Err(format!("the path has more than {STEPS} steps"));
        }
        let origins = [prefix.map_or("", |prefix| &prefix.origin), &sent.origin];
        let steps = elements.into_iter().map(step);
        let path = Path {
            steps: steps.collect::<Result<_, _>>()?,
        };
        for origin in origins {
            if !["", "sluice", "openconfig"].contains(&origin) {
                return Err(format!(
                    "origin `{}` is not known: expected none, sluice, or openconfig",
                    shortened(origin)
                ));
            }
        }
        path.check()?;
        Ok(path)
    }

    /// Whether it leads to one node, and to one entry of each list.
    pub fn is_exact(&self) -> bool {
        let mut nodes = match self.steps.first().and_then(|first| first.name.as_deref()) {
            Some(top) => model(top).map(|model| &model.node),
            None => return false,
        };
        self.steps.iter().skip(1).all(|step| {
            let name = step.name.as_deref();
            nodes = nodes.zip(name).and_then(|(node, name)| node.part(name));
            match nodes.map(|node| &node.kind) {
                Some(Kind::List { keys, .. }) => keys.iter().all(|key| step.keys.contains_key(key)),
                Some(_) => true,
                None => false,
            }
        })
    }

    /// The models that it leads to.
    pub fn models(&self) -> impl Iterator<Item = &'static Model> {
        let first = self.steps.first();
        let leads = move |model: &&Model| first.is_none_or(|step| step.leads_to(model.top));
        models().iter().filter(leads)
    }

    /// The path as it is sent.
    pub fn to_sent(&self) -> Sent {
        let element = |step: &Step| PathElem {
            name: step.name.clone().unwrap_or_else(|| ANY.into()),
            key: step.keys.clone().into_iter().collect(),
        };
        Sent {
            elem: self.steps.iter().map(element).collect(),
            ..Sent::default()
        }
    }

    /// Compares it with the models.
    fn check(&self) -> Result<(), String> {
        let Some((first, rest)) = self.steps.split_first() else {
            return Ok(());
        };
        let tops: Vec<&Node> = self.models().map(|model| &model.node).collect();
        if tops.is_empty() {
            let known: Vec<&str> = models().iter().map(|model| model.top).collect();
            return Err(unknown(self, first, &known));
        }
        if !first.keys.is_empty() {
            return Err(format!("{self}: `{}` has no keys", first.name()));
        }
        let mut nodes = tops;
        for step in rest {
            let known: Vec<&str> = nodes
                .iter()
                .flat_map(|node| node.parts())
                .map(|(name, _)| name.as_str())
                .collect();
            nodes = nodes
                .iter()
                .flat_map(|node| node.parts())
                .filter(|(name, _)| step.leads_to(name))
                .map(|(_, node)| node)
                .filter(|node| step.keys.keys().all(|key| has_key(node, key)))
                .collect();
            if nodes.is_empty() && known.iter().any(|name| step.leads_to(name)) {
                return Err(format!("{self}: `{}` has no such keys", step.name()));
            }
            if nodes.is_empty() {
                return Err(unknown(self, step, &known));
            }
        }
        Ok(())
    }
}

impl Step {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(ANY)
    }
}

/// The node of a path without `*` in its names.
pub fn node_of(path: &Path) -> Option<&'static Node> {
    let (first, rest) = path.steps.split_first()?;
    let top = &model(first.name.as_deref()?)?.node;
    rest.iter()
        .try_fold(top, |node, step| node.part(step.name.as_deref()?))
}

fn has_key(node: &Node, key: &str) -> bool {
    match &node.kind {
        Kind::List { keys, .. } => keys.iter().any(|own| own == key),
        _ => false,
    }
}

fn unknown(path: &Path, step: &Step, known: &[&str]) -> String {
    let name = step.name();
    match known {
        [] => format!("{path}: there is nothing below, and `{name}` is asked for"),
        known => format!(
            "{path}: `{name}` is not known: expected one of {}",
            known.join(", ")
        ),
    }
}

fn step(element: &PathElem) -> Result<Step, String> {
    let short = |text: &String| text.len() <= LENGTH;
    if !short(&element.name) || element.key.len() > KEYS {
        return Err(format!(
            "`{}`: expected a name of at most {LENGTH} octets, and at most {KEYS} keys",
            shortened(&element.name)
        ));
    }
    if !element
        .key
        .iter()
        .all(|(key, value)| short(key) && short(value))
    {
        return Err(format!(
            "`{}`: expected keys of at most {LENGTH} octets",
            element.name
        ));
    }
    // RFC 7951 (section 4) names a module before a colon; names of nodes are unambiguous without
    let plain = |name: &str| match name.split_once(':') {
        Some((module, name)) if models().iter().any(|model| model.name == module) => {
            name.to_owned()
        }
        _ => name.to_owned(),
    };
    let keys = element.key.iter().filter(|(_, value)| *value != ANY);
    Ok(Step {
        name: Some(plain(&element.name)).filter(|name| name != ANY),
        keys: keys
            .map(|(key, value)| (plain(key), value.clone()))
            .collect(),
    })
}

/// A text that a client sent, cut for a message.
fn shortened(text: &str) -> String {
    text.chars().take(32).collect()
}

/// As the specification writes paths.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("/");
        }
        for step in &self.steps {
            write!(f, "/{}", step.name())?;
            for (key, value) in &step.keys {
                let value = value.replace('\\', "\\\\").replace(']', "\\]");
                write!(f, "[{key}={value}]")?;
            }
        }
        Ok(())
    }
}

/// The path of a place of the configuration, as far as its model has it.
pub fn of_words(words: &config::Path) -> Path {
    let top = &models()[0];
    let mut path = Path {
        steps: vec![Step::to(top.top)],
    };
    let (mut node, mut words) = (&top.node, words.steps().iter());
    while let Some(part) = words.next() {
        let Some(below) = node.part(part) else {
            break;
        };
        let mut step = Step::to(part);
        if let Kind::List { keys, .. } = &below.kind {
            step.keys
                .extend(keys.iter().cloned().zip(words.next().cloned()));
        }
        path.steps.push(step);
        node = below;
    }
    path
}
