//! Enumerations as words, where prost keeps them as numbers: in JSON, and as people read them.

use crate::catalogue::Words;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub fn serialize<E, S>(number: &i32, serializer: S) -> Result<S::Ok, S::Error>
where
    E: TryFrom<i32> + Default + Serialize,
    S: Serializer,
{
    // of a newer version: not one of those that are known here
    E::try_from(*number)
        .unwrap_or_default()
        .serialize(serializer)
}

pub fn deserialize<'de, E, D>(deserializer: D) -> Result<i32, D::Error>
where
    E: Into<i32> + Deserialize<'de>,
    D: Deserializer<'de>,
{
    E::deserialize(deserializer).map(E::into)
}

/// A word of an enumeration as people read it.
pub fn word(words: Words, value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => shown_word(words, &word),
        _ => String::new(),
    }
}

/// A word of JSON as people read it.
pub fn shown_word(words: Words, word: &str) -> String {
    let other = words.iter().find(|(from, _)| *from == word);
    match (other, word) {
        (Some((_, to)), _) => (*to).into(),
        (None, "unspecified") => "unknown".into(),
        (None, word) => word.replace('-', " "),
    }
}
