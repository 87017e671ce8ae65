//! `sluice drain`: a commit made for whoever wants a user plane empty.

use super::ask::{Failure, Sockets};
use super::show::Answer;
use northbound::{Change, CommitRequest, Edit, Edits, catalogue, change};
use serde_json::Value;

/// The settings that drain a user plane.
const STATE: &str = "admin-state";
const RATE: &str = "end-sessions";

/// What is to be drained.
#[derive(Debug, clap::Subcommand)]
pub enum Drain {
    #[command(about = catalogue::DRAIN_USER_PLANE.about)]
    UserPlane {
        /// Its node id
        #[arg(value_name = "USER-PLANE")]
        name: String,
        /// End its sessions, so many in a second
        #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u16).range(1..=10_000))]
        end_sessions: Option<u16>,
        /// Take new sessions again
        #[arg(long, conflicts_with = "end_sessions")]
        stop: bool,
    },
}

impl Drain {
    /// Does it.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let Drain::UserPlane {
            name,
            end_sessions,
            stop,
        } = self;
        let mut configuration = sockets.configuration()?;
        let in_force = configuration.ask(|c| c.get(None))?;
        let tree: Value = serde_json::from_str(&in_force.tree)
            .map_err(|error| Failure::Other(error.to_string()))?;
        let Some(plane) = tree["user-planes"].get(&name) else {
            let why =
                format!("user plane `{name}` does not exist: `sluice show user-planes` lists them");
            return Err(Failure::Other(why));
        };
        let edits = match stop {
            true => stopping(&name, plane),
            false => draining(&name, plane, end_sessions),
        };
        if edits.is_empty() {
            let how = if stop {
                "is not drained"
            } else {
                "is drained like that already"
            };
            return Ok(Answer::of(vec![format!("user plane {name} {how}")]));
        }
        let how = match (stop, end_sessions) {
            (true, _) => " --stop".into(),
            (false, Some(rate)) => format!(" --end-sessions {rate}"),
            (false, None) => String::new(),
        };
        let edits = Edits {
            base: in_force.version,
            edits,
        };
        let commit = CommitRequest {
            change: Some(Change {
                change: Some(change::Change::Edits(edits)),
            }),
            comment: format!("sluice drain user-plane {name}{how}"),
            end_sessions: end_sessions.is_some(),
            ..CommitRequest::default()
        };
        let done = configuration.ask(|c| c.commit(commit))?;
        if !done.faults.is_empty() {
            let why = done.faults.iter().map(|fault| fault.message.as_str());
            return Err(Failure::Other(why.collect::<Vec<_>>().join("\n")));
        }
        let mut lines: Vec<String> = done.effects.into_iter().map(|e| e.text).collect();
        lines.extend(done.pending.iter().map(|why| not_there_yet(why)));
        if !stop {
            lines.push("`show user-planes` says how far it is".into());
        }
        Ok(Answer::of(lines))
    }
}

/// What a commit says of a user plane that does not have it yet.
pub fn not_there_yet(why: &str) -> String {
    format!("not there yet: {why}")
}

fn edit(delete: bool, plane: &str, leaf: &[&str]) -> Edit {
    let words = ["user-planes", plane].into_iter();
    let words = words.chain(leaf.iter().copied());
    Edit {
        delete,
        words: words.map(str::to_owned).collect(),
    }
}

/// Whatever is set of the two is deleted.
fn stopping(name: &str, plane: &Value) -> Vec<Edit> {
    let set = [STATE, RATE]
        .into_iter()
        .filter(|leaf| !plane[*leaf].is_null());
    set.map(|leaf| edit(true, name, &[leaf])).collect()
}

fn draining(name: &str, plane: &Value, rate: Option<u16>) -> Vec<Edit> {
    let mut edits = Vec::new();
    if plane[STATE] != "shutting-down" {
        edits.push(edit(false, name, &[STATE, "shutting-down"]));
    }
    match rate {
        Some(rate) if plane[RATE] != rate => {
            edits.push(edit(false, name, &[RATE, &rate.to_string()]));
        }
        None if !plane[RATE].is_null() => edits.push(edit(true, name, &[RATE])),
        _ => {}
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(edits: &[Edit]) -> Vec<String> {
        let verb = |edit: &Edit| if edit.delete { "delete" } else { "set" };
        let line = |edit: &Edit| format!("{} {}", verb(edit), edit.words.join(" "));
        edits.iter().map(line).collect()
    }

    #[test]
    fn a_drain_is_the_edits_that_are_missing_and_its_end_takes_them_back() {
        let (open, drained) = (json!({}), json!({STATE: "shutting-down", RATE: 5}));
        let state = "set user-planes up1 admin-state shutting-down";
        assert_eq!(lines(&draining("up1", &open, None)), [state]);
        let rate = "set user-planes up1 end-sessions 10";
        assert_eq!(lines(&draining("up1", &open, Some(10))), [state, rate]);
        assert_eq!(lines(&draining("up1", &drained, Some(10))), [rate]);
        assert_eq!(lines(&draining("up1", &drained, Some(5))), [""; 0]);
        let no_rate = "delete user-planes up1 end-sessions";
        assert_eq!(lines(&draining("up1", &drained, None)), [no_rate]);
        let no_state = "delete user-planes up1 admin-state";
        assert_eq!(lines(&stopping("up1", &drained)), [no_state, no_rate]);
        assert_eq!(lines(&stopping("up1", &open)), [""; 0]);
    }
}
