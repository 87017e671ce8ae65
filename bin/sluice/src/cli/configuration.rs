//! The configuration and its versions, as tables and as JSON.

use super::ask::{Configuration, Failure, Sockets};
use super::show::{Answer, terminal_width};
use super::table::{Column, Table};
use super::time;
use super::units::duration;

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

/// `sluice show versions`.
pub fn versions(configuration: &mut Configuration, json: bool) -> Result<Answer, Failure> {
    let versions = configuration.ask(|c| c.versions())?;
    if json {
        return Answer::json(&versions);
    }
    let now = time::now();
    let mut table = Table::new(&[
        Column::numbers("VERSION", 0),
        Column::numbers("AGO", 0),
        Column::words("BY", 0),
        Column::words("STATE", 0),
        Column::words("COMMENT", 0),
    ]);
    let last = versions.last().map(|v| v.version);
    for v in versions.iter().rev() {
        let state = match v.confirm_by {
            Some(by) => format!("waits {} to be confirmed", duration(by.saturating_sub(now))),
            None if Some(v.version) == last => "in force".into(),
            None => String::new(),
        };
        table.push([
            v.version.to_string(),
            duration(now.saturating_sub(v.at)),
            v.by.clone(),
            state,
            v.comment.clone(),
        ]);
    }
    Ok(Answer::table(table.render(terminal_width())))
}
