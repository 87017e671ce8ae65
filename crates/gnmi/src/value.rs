//! Values as they are sent: JSON, and JSON of the IETF (RFC 7951).

use crate::model::{Node, Type};
use crate::proto::typed_value::Value as Sent;
use crate::proto::{Encoding as Code, TypedValue};
use serde_json::{Map, Value};

/// The encodings that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON: numbers are numbers, names are plain.
    Json,
    /// JSON of RFC 7951: numbers of 64 bits are texts, names at the top have their module.
    JsonIetf,
}

impl Encoding {
    /// All of them, as they are sent.
    pub const ALL: [Code; 2] = [Code::Json, Code::JsonIetf];

    /// The encoding that a client asks for.
    ///
    /// # Errors
    /// It is not offered.
    pub fn read(sent: i32) -> Result<Self, String> {
        match Code::try_from(sent) {
            Ok(Code::Json) => Ok(Encoding::Json),
            Ok(Code::JsonIetf) => Ok(Encoding::JsonIetf),
            Ok(other) => Err(format!(
                "encoding {} is not offered: expected JSON or JSON_IETF",
                other.as_str_name()
            )),
            Err(_) => Err(format!(
                "encoding {sent} is not known: expected JSON or JSON_IETF"
            )),
        }
    }

    /// The value of a node of a module.
    pub fn encode(self, module: &str, node: &Node, value: &Value) -> TypedValue {
        let value = match self {
            Encoding::Json => Sent::JsonVal(value.to_string().into_bytes()),
            Encoding::JsonIetf => {
                let value = qualified(module, ietf(node, value));
                Sent::JsonIetfVal(value.to_string().into_bytes())
            }
        };
        TypedValue { value: Some(value) }
    }
}

/// The value in the encoding of RFC 7951, but for the names at its top.
fn ietf(node: &Node, value: &Value) -> Value {
    use crate::model::Kind::{Leaf, LeafList};
    match (&node.kind, value) {
        (_, Value::Array(all)) => all.iter().map(|one| ietf(node, one)).collect(),
        (Leaf(leaf) | LeafList(leaf), Value::Number(number)) if is_wide(&leaf.value_type) => {
            number.to_string().into()
        }
        (_, Value::Object(parts)) => {
            let part = |(name, value): (&String, &Value)| {
                let part = node.part(name)?;
                Some((name.clone(), ietf(part, value)))
            };
            Value::Object(parts.iter().filter_map(part).collect())
        }
        _ => value.clone(),
    }
}

/// Whether a number of this type has more than 32 bits.
pub fn is_wide(value_type: &Type) -> bool {
    match value_type {
        Type::Integer(least, most) => *most > u32::MAX.into() || *least < i32::MIN.into(),
        Type::Counter | Type::CounterOrNone => true,
        _ => false,
    }
}

/// Puts the module before the names at the top.
fn qualified(module: &str, value: Value) -> Value {
    match value {
        Value::Object(parts) => {
            let part = |(name, value)| (format!("{module}:{name}"), value);
            Value::Object(parts.into_iter().map(part).collect::<Map<_, _>>())
        }
        Value::Array(all) => {
            let all = all.into_iter().map(|one| qualified(module, one));
            all.collect()
        }
        other => other,
    }
}

/// A value that a client sends, as JSON.
///
/// # Errors
/// It is none, is in an encoding that is not offered, or is no JSON.
pub fn decode(sent: Option<&TypedValue>) -> Result<Value, String> {
    let Some(value) = sent.and_then(|sent| sent.value.as_ref()) else {
        return Err("the value is missing".into());
    };
    Ok(match value {
        // the parser's sentence could have a secret in it
        Sent::JsonVal(text) | Sent::JsonIetfVal(text) => serde_json::from_slice(text)
            .map_err(|error| format!("the value is no JSON (column {})", error.column()))?,
        Sent::StringVal(text) | Sent::AsciiVal(text) => text.as_str().into(),
        Sent::IntVal(number) => (*number).into(),
        Sent::UintVal(number) => (*number).into(),
        Sent::BoolVal(flag) => (*flag).into(),
        Sent::LeaflistVal(all) => {
            let one = |one: &TypedValue| match &one.value {
                // only scalars may be there
                Some(Sent::LeaflistVal(_)) => Err("a list of values has a list in it".into()),
                _ => decode(Some(one)),
            };
            Value::Array(all.element.iter().map(one).collect::<Result<_, String>>()?)
        }
        _ => {
            return Err(
                "the value's encoding is not offered: expected JSON, JSON_IETF, a text, a \
                 number, true or false, or a list of these"
                    .into(),
            );
        }
    })
}
