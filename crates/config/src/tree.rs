//! YAML as a tree of texts with their lines; what each text means, the schema says.
//!
//! Nothing is guessed from how a value looks (`no` is a text like any other), and nothing may be hidden: anchors,
//! aliases, tags and a second document are refused.

use crate::{Fault, Path};
use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput};
use std::collections::BTreeMap;

/// The longest document that is read, in octets: 256 ACLs of 4,000 rules have some 90 octets for each rule.
pub const MAX_DOCUMENT: usize = 96 << 20;
/// How deep a document may be nested.
const MAX_DEPTH: usize = 32;

/// A value and the line of its name, counted from 1; 0 if it was never written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The line.
    pub line: u64,
    /// What is there.
    pub value: Value,
}

/// What a document has in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: `key:`.
    Nothing,
    /// One text, also where it looks like a number.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Map(BTreeMap<String, Node>),
}

impl Node {
    /// Where a path leads, or the nearest place above it.
    pub fn line_of(&self, path: &Path) -> u64 {
        let mut node = self;
        for step in path.steps() {
            let below = match &node.value {
                Value::Map(map) => map.get(step),
                Value::List(list) => list.iter().find(|n| n.value == Value::Scalar(step.clone())),
                _ => None,
            };
            match below {
                Some(below) => node = below,
                None => break,
            }
        }
        node.line
    }
}

/// Reads a document. Whatever can be read is returned together with what is wrong; of a text that is no YAML nothing is.
pub fn parse(text: &str) -> (Option<Node>, Vec<Fault>) {
    if text.len() > MAX_DOCUMENT {
        let found = text.len() / 1_000_000;
        let message = format!(
            "the document has {found} MB: expected at most {} MiB",
            MAX_DOCUMENT >> 20
        );
        return (None, vec![Fault::of_document(message)]);
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut reader = Reader {
        parser: Parser::new_from_str_with_options(text, options),
        path: Path::default(),
        faults: Vec::new(),
    };
    match reader.document() {
        Ok(node) => (Some(node), reader.faults),
        Err(fault) => (None, vec![fault]),
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    path: Path,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, Fault> {
        let mut root = None;
        while let Some((event, line)) = self.next()? {
            match event {
                Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(
                        self.fault(line, "a second YAML document starts here: expected one")
                    );
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, line)?),
            }
        }
        Ok(root.unwrap_or(Node {
            line: 1,
            value: Value::Nothing,
        }))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, u64)>, Fault> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, span.start.line() as u64))),
            Some(Err(error)) => {
                let line = error.marker().line() as u64;
                Err(Fault {
                    line,
                    path: self.path.clone(),
                    message: format!("this is not valid YAML: {}", error.info()),
                })
            }
        }
    }

    fn fault(&self, line: u64, message: impl Into<String>) -> Fault {
        Fault {
            line,
            path: self.path.clone(),
            message: message.into(),
        }
    }

    fn node(&mut self, event: Event<'a>, line: u64) -> Result<Node, Fault> {
        if self.path.steps().len() > MAX_DEPTH {
            return Err(self.fault(line, format!("nested deeper than {MAX_DEPTH}")));
        }
        let value = match event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                return Err(self.fault(
                    line,
                    "anchors (`&name`) are not supported: write the value itself",
                ));
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                return Err(self.fault(
                    line,
                    "tags (`!name`) are not supported: write only the value",
                ));
            }
            Event::Scalar(text, style, ..) => match (style, &*text) {
                (ScalarStyle::Plain, "" | "~" | "null") => Value::Nothing,
                _ => Value::Scalar(text.into_owned()),
            },
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            Event::Alias(_) => {
                return Err(self.fault(
                    line,
                    "aliases (`*name`) are not supported: write the value itself",
                ));
            }
            _ => return Err(self.fault(line, "expected a value")),
        };
        Ok(Node { line, value })
    }

    fn list(&mut self) -> Result<Value, Fault> {
        let mut list = Vec::new();
        while let Some((event, line)) = self.next()? {
            if event == Event::SequenceEnd {
                break;
            }
            self.path.push(list.len().to_string());
            list.push(self.node(event, line)?);
            self.path.pop();
        }
        Ok(Value::List(list))
    }

    fn map(&mut self) -> Result<Value, Fault> {
        let mut map = BTreeMap::new();
        while let Some((event, line)) = self.next()? {
            let key = match event {
                Event::MappingEnd => break,
                event => self.node(event, line)?,
            };
            let Value::Scalar(key) = key.value else {
                return Err(self.fault(line, "this is not a valid name: expected `name: value`"));
            };
            self.path.push(key.clone());
            let Some((event, at)) = self.next()? else {
                return Err(self.fault(line, "expected a value"));
            };
            let mut node = self.node(event, at)?;
            node.line = line;
            if let Some(first) = map.get(&key) {
                let first: &Node = first;
                let message = format!(
                    "this setting is already in line {}: expected once",
                    first.line
                );
                self.faults.push(self.fault(line, message));
            } else {
                map.insert(key, node);
            }
            self.path.pop();
        }
        Ok(Value::Map(map))
    }
}
