//! The configuration as a document and as JSON.

use super::ask::{Failure, Sockets};
use super::show::Answer;

/// `sluice show configuration`.
pub fn show(sockets: &Sockets, version: Option<u64>, json: bool) -> Result<Answer, Failure> {
    let shown = sockets.configuration()?.ask(|c| c.get(version))?;
    if json {
        let tree: serde_json::Value =
            serde_json::from_str(&shown.tree).map_err(|error| Failure::Other(error.to_string()))?;
        return Answer::json(&tree);
    }
    Ok(Answer::of(
        shown.document.lines().map(str::to_owned).collect(),
    ))
}
