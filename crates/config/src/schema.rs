//! The model as data: what there is, what it means, what it may be. Made from the types in [`crate::model`], it is what
//! checks a document, completes a command and fills the reference manual.

use crate::Path;
use crate::model::Configuration;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A node of the model.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What it is, in Markdown.
    pub doc: String,
    /// What is below it.
    pub kind: Kind,
    /// It has to be there.
    pub required: bool,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Named parts.
    Container(BTreeMap<String, Schema>),
    /// Entries whose names the operator chooses.
    Entries {
        /// What the names are.
        key: String,
        /// The place whose entries they name, if they do.
        reference: Option<Path>,
        /// The format of the names, if not every name will do.
        format: Option<String>,
        /// Each entry.
        entry: Box<Schema>,
    },
    /// Values in an order.
    LeafList(Leaf),
    /// One value.
    Leaf(Leaf),
}

/// What a value may be.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Its type.
    pub leaf_type: Type,
    /// What it counts, such as `seconds`.
    pub unit: Option<String>,
    /// What holds without it.
    pub default: Option<String>,
    /// The place of whose entries it names one.
    pub reference: Option<Path>,
    /// It is never shown.
    pub secret: bool,
    /// A value as an example.
    pub example: Option<String>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A text, of a format that [`crate::values::check`] knows, if one is named.
    Text(Option<String>),
    /// A number between two others, these included.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// One of these words, with what each means.
    Word(Vec<(String, String)>),
}

/// The model.
pub fn root() -> &'static Schema {
    static ROOT: LazyLock<Schema> = LazyLock::new(|| {
        let json = json_schema();
        Reader(&json).node(&json, false)
    });
    &ROOT
}

/// The model as a JSON Schema (draft 2020-12), for editors.
pub fn json_schema() -> Value {
    schemars::schema_for!(Configuration).to_value()
}

impl Schema {
    /// What is one step further: a part, any entry, or for a list of values any value.
    pub fn step(&self, name: &str) -> Option<&Schema> {
        match &self.kind {
            Kind::Container(parts) => parts.get(name),
            Kind::Entries { entry, .. } => Some(entry),
            Kind::LeafList(_) | Kind::Leaf(_) => None,
        }
    }

    /// What a path leads to, if the model has it; the last step may be a value of a list.
    pub fn find(&self, path: &Path) -> Option<&Schema> {
        path.steps()
            .iter()
            .try_fold(self, |schema, name| schema.step(name))
    }

    /// A path as [`Schema::leaves`] names places: names that the operator chooses are `*`. It ends where the model does, before a value.
    pub fn pattern(&self, path: &Path) -> Path {
        let (mut schema, mut pattern) = (self, Path::default());
        for name in path.steps() {
            let Some(next) = schema.step(name) else {
                break;
            };
            let is_entry = matches!(schema.kind, Kind::Entries { .. });
            pattern.push(if is_entry { "*" } else { name });
            schema = next;
        }
        pattern
    }

    /// Every leaf and list of values below, with its place; names that the operator chooses are `*`.
    pub fn leaves(&self) -> Vec<(Path, &Schema)> {
        let mut found = Vec::new();
        self.collect(&mut Path::default(), &mut found);
        found
    }

    fn collect<'a>(&'a self, path: &mut Path, found: &mut Vec<(Path, &'a Schema)>) {
        match &self.kind {
            Kind::Leaf(_) | Kind::LeafList(_) => found.push((path.clone(), self)),
            Kind::Container(parts) => {
                for (name, part) in parts {
                    path.push(name);
                    part.collect(path, found);
                    path.pop();
                }
            }
            Kind::Entries { entry, .. } => {
                path.push("*");
                entry.collect(path, found);
                path.pop();
            }
        }
    }

    /// The value of a leaf or of a list of values.
    pub fn leaf(&self) -> Option<&Leaf> {
        match &self.kind {
            Kind::Leaf(leaf) | Kind::LeafList(leaf) => Some(leaf),
            _ => None,
        }
    }
}

impl Leaf {
    /// Whether a value is made of words with blanks between them.
    pub fn is_of_words(&self) -> bool {
        matches!(&self.leaf_type, Type::Text(Some(format)) if format == "acl-rule")
    }

    /// What may stand there, for a message or a manual: `1 to 65535 (seconds)`.
    pub fn expected(&self) -> String {
        let what = match &self.leaf_type {
            Type::Boolean => "true or false".into(),
            Type::Integer(min, max) => format!("a number from {min} to {max}"),
            Type::Word(words) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
                format!("one of {}", words.join(", "))
            }
            Type::Text(_) if self.reference.is_some() => {
                format!(
                    "a name from `{}`",
                    self.reference.as_ref().expect("just seen")
                )
            }
            Type::Text(Some(format)) => crate::values::describe(format).into(),
            Type::Text(None) => "a text".into(),
        };
        match &self.unit {
            Some(unit) => format!("{what} ({unit})"),
            None => what,
        }
    }
}

/// Reads what `schemars` makes of the types.
struct Reader<'a>(&'a Value);

impl Reader<'_> {
    fn node(&self, json: &Value, required: bool) -> Schema {
        let merged = self.resolve(json);
        let text = |key: &str| merged.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = if let Some(properties) = merged.get("properties").and_then(Value::as_object) {
            let needed = merged.get("required").and_then(Value::as_array);
            let needed = |name: &str| needed.is_some_and(|all| all.iter().any(|n| n == name));
            let part =
                |(name, json): (&String, &Value)| (name.clone(), self.node(json, needed(name)));
            Kind::Container(properties.iter().map(part).collect())
        } else if let Some(entry) = merged.get("additionalProperties").filter(|v| v.is_object()) {
            Kind::Entries {
                key: text("x-key").unwrap_or_else(|| "its name".into()),
                reference: text("x-key-reference").map(|r| reference(&r)),
                format: text("x-key-format"),
                entry: Box::new(self.node(entry, false)),
            }
        } else if merged.get("type").is_some_and(|t| t == "array") {
            let mut all = self.resolve(merged.get("items").unwrap_or(&Value::Null));
            for key in ["x-reference", "x-unit", "x-example", "x-format"] {
                all.extend(merged.get(key).map(|v| (key.to_owned(), v.clone())));
            }
            all.remove("default");
            let mut leaf = leaf(&all);
            let default = merged.get("default").and_then(Value::as_array);
            let default = default.map(|list| list.iter().map(plain).collect::<Vec<_>>().join(" "));
            leaf.default = default.filter(|text| !text.is_empty());
            Kind::LeafList(leaf)
        } else {
            Kind::Leaf(leaf(&merged))
        };
        Schema {
            doc: text("description").unwrap_or_default(),
            kind,
            required,
        }
    }

    /// A schema with what it refers to put in place; what stands beside a reference goes before it.
    fn resolve(&self, json: &Value) -> Map<String, Value> {
        let mut own = json.as_object().cloned().unwrap_or_default();
        let mut below = Map::new();
        if let Some(Value::String(name)) = own.remove("$ref") {
            let target = name
                .strip_prefix('#')
                .and_then(|pointer| self.0.pointer(pointer));
            below = self.resolve(target.unwrap_or(&Value::Null));
        } else if let Some(Value::Array(choices)) = own.remove("anyOf") {
            // an `Option` of something that has a name
            let real = choices
                .iter()
                .find(|c| c.get("type").is_none_or(|t| t != "null"));
            below = self.resolve(real.unwrap_or(&Value::Null));
        }
        below.extend(own);
        below
    }
}

fn reference(text: &str) -> Path {
    text.split('/').filter(|step| !step.is_empty()).collect()
}

/// A JSON value as it is written in a document.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn leaf(json: &Map<String, Value>) -> Leaf {
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| json.get(key).and_then(Value::as_i64);
    let is = |name: &str| match json.get("type") {
        Some(Value::Array(types)) => types.iter().any(|t| t == name),
        Some(one) => one == name,
        None => false,
    };
    let words = |list: &Vec<Value>| {
        let word = |v: &Value| match v {
            Value::String(word) => Some((word.clone(), String::new())),
            v => Some((
                v.get("const")?.as_str()?.to_owned(),
                v.get("description")?.as_str()?.to_owned(),
            )),
        };
        Type::Word(list.iter().filter_map(word).collect())
    };
    let leaf_type = match json
        .get("oneOf")
        .or(json.get("enum"))
        .and_then(Value::as_array)
    {
        Some(list) => words(list),
        None if is("boolean") => Type::Boolean,
        None if is("integer") => {
            let widest = match json.get("format").and_then(Value::as_str) {
                Some("uint8") => u8::MAX.into(),
                Some("uint16") => u16::MAX.into(),
                _ => u32::MAX.into(),
            };
            Type::Integer(
                number("minimum").unwrap_or(0),
                number("maximum").unwrap_or(widest),
            )
        }
        None => Type::Text(text("x-format").or_else(|| text("format"))),
    };
    Leaf {
        leaf_type,
        unit: text("x-unit"),
        default: json.get("default").filter(|v| !v.is_null()).map(plain),
        reference: text("x-reference").map(|r| reference(&r)),
        secret: json.get("x-secret").is_some_and(|v| v == true),
        example: text("x-example"),
    }
}
