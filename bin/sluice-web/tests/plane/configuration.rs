//! The configuration of a control plane that only tells what it is asked.

use super::*;

/// The configuration in force, of which only edits are followed. Other versions do not exist, and pools are refused.
pub struct InForce {
    version: u64,
    tree: Value,
}

impl Default for InForce {
    fn default() -> Self {
        InForce {
            version: 7,
            tree: json!({"ipv4-pools": {}, "user-planes": {"up1": {}}}),
        }
    }
}

/// Why a change is rejected that is in force already.
const NOTHING: &str = "nothing changes";

impl InForce {
    /// Carries out a change, or says what is wrong with it.
    fn change(&mut self, change: Option<Change>) -> Result<Vec<ConfigurationFault>, Refusal> {
        let faults = faults(change.as_ref());
        match change.and_then(|change| change.change) {
            Some(change::Change::Edits(edits)) if edits.base != self.version => {
                return Err(Refusal::Outdated(
                    "somebody else has changed the same".into(),
                ));
            }
            Some(change::Change::Edits(edits)) if faults.is_empty() => {
                let before = self.tree.clone();
                for edit in edits.edits {
                    let words = config::Path::from_iter(edit.words);
                    let edit = match edit.delete {
                        true => config::Edit::delete(words),
                        false => config::Edit::set(words),
                    };
                    edit.apply(&mut self.tree).expect("a good edit");
                }
                if self.tree == before {
                    return Ok(vec![ConfigurationFault {
                        message: NOTHING.into(),
                        ..ConfigurationFault::default()
                    }]);
                }
            }
            Some(change::Change::Document(document)) => {
                assert!(document.len() > 1_000_000 || document == r#"{"pools":{}}"#);
            }
            _ => {}
        }
        self.version += u64::from(faults.is_empty());
        Ok(faults)
    }

    pub fn configure(
        &mut self,
        request: ConfigurationRequest,
    ) -> Result<ConfigurationResponse, Refusal> {
        let effects = vec![Effect {
            text: "3 sessions end".into(),
            sessions: 3,
            ends: true,
        }];
        let is_by = |by: &str| assert_eq!(by.split(' ').next(), Some("netops"));
        Ok(match request {
            ConfigurationRequest::Versions => ConfigurationResponse::Versions(vec![Version {
                version: self.version,
                ..Version::default()
            }]),
            ConfigurationRequest::Get(version)
                if version.is_none_or(|version| version == self.version) =>
            {
                ConfigurationResponse::Configuration(GetConfigurationResponse {
                    version: self.version,
                    document: "ipv4-pools: {}\n".into(),
                    tree: config::masked(&self.tree).to_string(),
                })
            }
            ConfigurationRequest::Get(other) => {
                let other = other.unwrap_or_default();
                return Err(Refusal::NotFound(format!("there is no version {other}")));
            }
            ConfigurationRequest::Check(change) => {
                ConfigurationResponse::Checked(CheckChangeResponse {
                    faults: faults(Some(&change)),
                    effects,
                    tree: "{}".into(),
                })
            }
            ConfigurationRequest::Commit { by, commit } => {
                is_by(&by);
                let comment = commit.comment;
                let drain = "sluice drain user-plane up1 --end-sessions 20";
                assert!(
                    ["", "a rate", "gNMI", drain].contains(&&*comment),
                    "{comment}"
                );
                assert!(commit.end_sessions || comment != drain);
                let faults = self.change(commit.change)?;
                ConfigurationResponse::Committed(CommitResponse {
                    version: if faults.is_empty() { self.version } else { 0 },
                    unchanged: faults.iter().any(|fault| fault.message == NOTHING),
                    faults,
                    effects,
                    pending: Vec::new(),
                })
            }
            ConfigurationRequest::Confirm { by, lock: 0 } => {
                is_by(&by);
                ConfigurationResponse::Confirmed(self.version)
            }
            other => panic!("{other:?} is not asked"),
        })
    }
}

/// Whether a commit takes long: one of edits of an IPv4 pool that is called so.
pub fn is_slow(request: &ConfigurationRequest) -> bool {
    let ConfigurationRequest::Commit { commit, .. } = request else {
        return false;
    };
    let change = commit.change.as_ref();
    match change.and_then(|change| change.change.as_ref()) {
        Some(change::Change::Edits(edits)) => {
            let mut edits = edits.edits.iter();
            edits.any(|edit| {
                edit.words
                    .starts_with(&["ipv4-pools".into(), "slow".into()])
            })
        }
        _ => false,
    }
}

/// What is wrong with a change: edits of pools.
fn faults(change: Option<&Change>) -> Vec<ConfigurationFault> {
    let edits = match change.and_then(|change| change.change.as_ref()) {
        Some(change::Change::Edits(edits)) => &*edits.edits,
        _ => &[],
    };
    let pool = edits.iter().find(|edit| edit.words[0] == "pools");
    let fault = |edit: &Edit| ConfigurationFault {
        path: edit.words[..2].join(" "),
        message: "there is no such pool".into(),
        line: 0,
    };
    pool.map(fault).into_iter().collect()
}
