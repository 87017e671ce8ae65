//! The operations of a Set, as a client sends them.

use crate::path::Path;
use crate::proto::{self, SetRequest, Update};
use crate::value::decode;
use serde_json::Value;

/// Maximum number of operations of a request.
const MOST: usize = 1024;

/// What a Set does at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Removes it, if it is there.
    Delete,
    /// Gives it this value and no other.
    Replace,
    /// Sets what the value has, and leaves the rest.
    Update,
}

/// An operation of a Set.
#[derive(Debug)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// Where.
    pub path: Path,
    /// The value; null for [`Verb::Delete`].
    pub value: Value,
}

/// The operations of a request in the order in which they are carried out (section 3.4.3 of the specification): deletions,
/// replacements, updates.
///
/// # Errors
/// There are too many, or a path or value cannot be read; the sentence says which.
pub fn operations(request: &SetRequest) -> Result<Vec<Operation>, String> {
    let SetRequest {
        prefix,
        delete,
        replace,
        update,
        ..
    } = request;
    let count = delete.len() + replace.len() + update.len();
    if count > MOST {
        return Err(format!(
            "the request has {count} operations: expected at most {MOST}"
        ));
    }
    let prefix = prefix.as_ref();
    let sets = |verb, all: &[Update]| {
        let set = |update: &Update| {
            let none = proto::Path::default();
            let path = Path::read(prefix, update.path.as_ref().unwrap_or(&none))?;
            let value = decode(update.val.as_ref()).map_err(|why| format!("{path}: {why}"))?;
            Ok(Operation { verb, path, value })
        };
        all.iter().map(set).collect::<Result<Vec<_>, String>>()
    };
    let deletes = delete.iter().map(|path| {
        Ok(Operation {
            verb: Verb::Delete,
            path: Path::read(prefix, path)?,
            value: Value::Null,
        })
    });
    let mut all = deletes.collect::<Result<Vec<_>, String>>()?;
    all.extend(sets(Verb::Replace, replace)?);
    all.extend(sets(Verb::Update, update)?);
    Ok(all)
}
