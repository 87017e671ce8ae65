//! Enumerations as words in JSON, where prost keeps them as numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
