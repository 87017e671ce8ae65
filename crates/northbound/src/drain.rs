//! Drains of user planes: commits of the two settings that empty one.

use crate::{Change, CommitRequest, Edit, Edits, GetConfigurationResponse, Refusal, change};
use serde_json::Value;

/// The settings that drain a user plane.
const STATE: &str = "admin-state";
const RATE: &str = "end-sessions";

/// Order to drain a user plane, or to end its drain ([`crate::catalogue::DRAIN_USER_PLANE`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainOrder {
    /// Its node id.
    pub user_plane: String,
    /// How many of its sessions end in a second; `None`: they stay.
    pub end_sessions: Option<u16>,
    /// It takes new sessions again.
    pub stop: bool,
}

impl DrainOrder {
    /// The commit that is missing on top of this version; `None` if the user plane is as wanted.
    ///
    /// # Errors
    /// The configuration has no such user plane.
    pub fn commit(
        &self,
        in_force: &GetConfigurationResponse,
    ) -> Result<Option<CommitRequest>, Refusal> {
        let tree: Value = serde_json::from_str(&in_force.tree)
            .map_err(|error| Refusal::Failed(format!("the configuration is no JSON: {error}")))?;
        let name = &self.user_plane;
        let Some(plane) = tree["user-planes"].get(name) else {
            return Err(Refusal::NotFound(format!(
                "user plane `{name}` does not exist: `sluice show user-planes` lists them"
            )));
        };
        let edits = self.edits(plane);
        if edits.is_empty() {
            return Ok(None);
        }
        let how = match (self.stop, self.end_sessions) {
            (true, _) => " --stop".into(),
            (false, Some(rate)) => format!(" --end-sessions {rate}"),
            (false, None) => String::new(),
        };
        let base = in_force.version;
        Ok(Some(CommitRequest {
            change: Some(Change {
                change: Some(change::Change::Edits(Edits { base, edits })),
            }),
            comment: format!("sluice drain user-plane {name}{how}"),
            end_sessions: self.end_sessions.is_some(),
            ..CommitRequest::default()
        }))
    }

    /// The edits that are missing at a user plane with these settings.
    fn edits(&self, plane: &Value) -> Vec<Edit> {
        if self.stop {
            let set = [STATE, RATE].into_iter();
            let set = set.filter(|leaf| !plane[*leaf].is_null());
            return set.map(|leaf| self.edit(true, &[leaf])).collect();
        }
        let mut edits = Vec::new();
        if plane[STATE] != "shutting-down" {
            edits.push(self.edit(false, &[STATE, "shutting-down"]));
        }
        match self.end_sessions {
            Some(rate) if plane[RATE] != rate => {
                edits.push(self.edit(false, &[RATE, &rate.to_string()]));
            }
            None if !plane[RATE].is_null() => edits.push(self.edit(true, &[RATE])),
            _ => {}
        }
        edits
    }

    fn edit(&self, delete: bool, leaf: &[&str]) -> Edit {
        let words = ["user-planes", &self.user_plane].into_iter();
        let words = words.chain(leaf.iter().copied());
        Edit {
            delete,
            words: words.map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn order(end_sessions: Option<u16>, stop: bool) -> DrainOrder {
        DrainOrder {
            user_plane: "up1".into(),
            end_sessions,
            stop,
        }
    }

    fn lines(order: &DrainOrder, plane: &Value) -> Vec<String> {
        let verb = |edit: &Edit| if edit.delete { "delete" } else { "set" };
        let line = |edit: &Edit| format!("{} {}", verb(edit), edit.words.join(" "));
        order.edits(plane).iter().map(line).collect()
    }

    #[test]
    fn a_drain_is_the_edits_that_are_missing_and_its_end_takes_them_back() {
        let (open, drained) = (json!({}), json!({STATE: "shutting-down", RATE: 5}));
        let state = "set user-planes up1 admin-state shutting-down";
        assert_eq!(lines(&order(None, false), &open), [state]);
        let rate = "set user-planes up1 end-sessions 10";
        assert_eq!(lines(&order(Some(10), false), &open), [state, rate]);
        assert_eq!(lines(&order(Some(10), false), &drained), [rate]);
        assert_eq!(lines(&order(Some(5), false), &drained), [""; 0]);
        let no_rate = "delete user-planes up1 end-sessions";
        assert_eq!(lines(&order(None, false), &drained), [no_rate]);
        let no_state = "delete user-planes up1 admin-state";
        assert_eq!(lines(&order(None, true), &drained), [no_state, no_rate]);
        assert_eq!(lines(&order(None, true), &open), [""; 0]);
    }

    #[test]
    fn a_commit_is_made_of_the_version_in_force_where_one_is_needed() {
        let in_force = GetConfigurationResponse {
            version: 7,
            tree: json!({"user-planes": {"up1": {}}}).to_string(),
            ..GetConfigurationResponse::default()
        };
        let commit = order(Some(20), false).commit(&in_force).unwrap().unwrap();
        assert!(commit.end_sessions);
        assert_eq!(
            commit.comment,
            "sluice drain user-plane up1 --end-sessions 20"
        );
        let change = commit.change.and_then(|change| change.change);
        assert!(matches!(change, Some(change::Change::Edits(edits)) if edits.base == 7));
        assert_eq!(order(None, true).commit(&in_force), Ok(None));
        let other = DrainOrder {
            user_plane: "up9".into(),
            ..order(None, false)
        };
        let refused = other.commit(&in_force).unwrap_err();
        assert!(refused.to_string().contains("`up9` does not exist"));
    }
}
