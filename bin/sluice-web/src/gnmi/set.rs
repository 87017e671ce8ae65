//! Set: all edits of a request are one commit.

use super::read::{target, tree};
use super::who::Known;
use super::{PATIENCE, in_time, now};
use crate::api::Site;
use gnmi::edits::edits;
use gnmi::gnmi_ext::{Extension, commit::Action, extension::Ext};
use gnmi::operations::{Operation, Verb, operations};
use gnmi::path;
use gnmi::proto::update_result::Operation as Code;
use gnmi::proto::{SetRequest, SetResponse, UpdateResult};
use northbound::{
    Change, CommitRequest, CommitResponse, ConfigurationFault, Edit, Edits, MOST_CONFIRM,
    PATIENCE_FOR_A_COMMIT, change,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::Status;

/// Maximum length of the id of a commit, in octets.
const ID: usize = 256;
/// The time for a confirmation where the client names none, in seconds (gNMI Commit Confirmed Extension, section 3.2.1).
const ROLLBACK: i64 = 600;

/// The commit that waits for its confirmation: the id that its client gave it, and its version.
#[derive(Debug, Default)]
pub struct Commits(Mutex<Option<(String, u64)>>);

impl Commits {
    fn waiting(&self) -> MutexGuard<'_, Option<(String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version that was committed under this id.
    fn version(&self, id: &str) -> Option<u64> {
        let waiting = self.waiting();
        let (own, version) = waiting.as_ref()?;
        (own == id).then_some(*version)
    }
}

/// What a request's extension says of its commit.
enum Confirmation {
    /// Nothing: the change stays.
    None,
    /// The change has to be confirmed under this id within these seconds.
    Within(String, u32),
    /// An earlier change is confirmed.
    Of(String),
}

/// Carries out a Set.
pub async fn set(
    site: &Arc<Site>,
    commits: &Arc<Commits>,
    known: &Known,
    request: SetRequest,
) -> Result<SetResponse, Status> {
    let prefix = target(request.prefix.as_ref())?;
    let confirmation = confirmation(&request.extension)?;
    if !request.union_replace.is_empty() {
        let why = "union_replace is not offered: use replace";
        return Err(Status::unimplemented(why));
    }
    let operations = operations(&request).map_err(Status::invalid_argument)?;
    if matches!(confirmation, Confirmation::Of(_)) && !operations.is_empty() {
        return Err(Status::invalid_argument(
            "a confirmation changes nothing else",
        ));
    }
    let response = operations.iter().map(result).collect();
    let work = Work {
        site: site.clone(),
        commits: commits.clone(),
        who: known.caller.name.clone(),
    };
    // waited for here, so that no more than one goes on without its client
    let turn = in_time(PATIENCE, async { Ok(site.gateway.document().await) }).await?;
    // a task goes on when its client goes: what was committed is logged, and can be confirmed
    let done = tokio::spawn(async move {
        let _turn = turn;
        work.carry_out(&operations, confirmation).await
    });
    let failed = |_| Status::internal("the Set failed: look at the log of sluice-web");
    done.await.map_err(failed)??;
    Ok(SetResponse {
        prefix,
        response,
        timestamp: now(),
        extension: Vec::new(),
    })
}

/// What a client is told of an operation.
fn result(operation: &Operation) -> UpdateResult {
    let code = match operation.verb {
        Verb::Delete => Code::Delete,
        Verb::Replace => Code::Replace,
        Verb::Update => Code::Update,
    };
    UpdateResult {
        path: Some(operation.path.to_sent()),
        op: code.into(),
    }
}

/// A Set at work.
struct Work {
    site: Arc<Site>,
    commits: Arc<Commits>,
    who: String,
}

impl Work {
    async fn carry_out(
        &self,
        operations: &[Operation],
        confirmation: Confirmation,
    ) -> Result<(), Status> {
        match confirmation {
            Confirmation::None => {
                self.commit(operations, 0).await?;
            }
            Confirmation::Within(id, seconds) => {
                let Some(version) = self.commit(operations, seconds).await? else {
                    return Err(Status::failed_precondition(
                        "nothing changes, so there is nothing to confirm: leave the extension out",
                    ));
                };
                *self.commits.waiting() = Some((id, version));
            }
            Confirmation::Of(id) => self.confirm(&id).await?,
        }
        Ok(())
    }

    /// Commits the edits of all operations. Returns the version, or [`None`] if nothing changes.
    async fn commit(
        &self,
        operations: &[Operation],
        confirm_within: u32,
    ) -> Result<Option<u64>, Status> {
        let (base, tree) = in_time(PATIENCE, tree(&self.site)).await?;
        let edits = edits(&tree, operations).map_err(Status::invalid_argument)?;
        if edits.is_empty() {
            return Ok(None);
        }
        let (gateway, who) = (&self.site.gateway, &self.who);
        let commit = gateway.commit(request(base, &edits, confirm_within), who);
        let committed = in_time(PATIENCE_FOR_A_COMMIT, commit).await;
        let result = said(&committed);
        tracing::info!(who, kind = "gnmi", result, "a commit");
        let committed = committed.map_err(|status| gateway.problem(&status))?;
        match committed.faults.first() {
            None => Ok(Some(committed.version)),
            // secrets were hidden in what was read, and others may have made the same change: only the control plane can compare
            Some(_) if committed.unchanged => Ok(None),
            Some(fault) => Err(refused(fault)),
        }
    }

    /// Keeps the change that was committed under this id, and no other.
    async fn confirm(&self, id: &str) -> Result<(), Status> {
        let Some(version) = self.commits.version(id) else {
            return Err(Status::failed_precondition(
                "no commit by gNMI with this id waits for a confirmation: `sluice show versions` says what waits",
            ));
        };
        let gateway = &self.site.gateway;
        let newest = in_time(PATIENCE, gateway.newest()).await;
        if newest.map_err(|status| gateway.problem(&status))? != version {
            return Err(Status::failed_precondition(format!(
                "version {version}, which has this id, is not the newest any more: `sluice show versions` says what came after it"
            )));
        }
        let kept = in_time(PATIENCE, gateway.confirm(&self.who)).await;
        kept.map_err(|status| gateway.problem(&status))?;
        *self.commits.waiting() = None;
        Ok(())
    }
}

fn request(base: u64, edits: &[config::Edit], confirm_within: u32) -> CommitRequest {
    let edit = |edit: &config::Edit| Edit {
        delete: edit.verb == config::Verb::Delete,
        words: edit.words.steps().to_vec(),
    };
    let edits = edits.iter().map(edit).collect();
    CommitRequest {
        change: Some(Change {
            change: Some(change::Change::Edits(Edits { base, edits })),
        }),
        comment: "gNMI".into(),
        confirm_within,
        ..CommitRequest::default()
    }
}

/// What came of a commit, for the log.
fn said(committed: &Result<CommitResponse, Status>) -> String {
    match committed {
        Ok(of) if of.faults.is_empty() => {
            let effects = of.effects.iter().map(|effect| effect.text.as_str());
            let effects = effects.collect::<Vec<_>>().join("; ");
            format!("version {}: {effects}", of.version)
        }
        Ok(of) if of.unchanged => "nothing changes".to_owned(),
        Ok(of) => format!("{} faults", of.faults.len()),
        Err(status) => status.message().to_owned(),
    }
}

/// Why a commit is refused.
fn refused(fault: &ConfigurationFault) -> Status {
    let message = &fault.message;
    // no place of the request is wrong: sessions would end, or somebody has locked the configuration
    if fault.path.is_empty() {
        return Status::failed_precondition(format!("Nothing was changed: {message}"));
    }
    let words = config::Path::parse(&fault.path).unwrap_or_default();
    let place = path::of_words(&words);
    Status::invalid_argument(format!("Nothing was changed: {place}: {message}"))
}

fn confirmation(extensions: &[Extension]) -> Result<Confirmation, Status> {
    let other = || {
        Status::unimplemented(
            "no other extension is offered than a commit that has to be confirmed, and its confirmation",
        )
    };
    let commit = match extensions {
        [] => return Ok(Confirmation::None),
        [
            Extension {
                ext: Some(Ext::Commit(commit)),
            },
        ] => commit,
        _ => return Err(other()),
    };
    if !(1..=ID).contains(&commit.id.len()) {
        let why = format!("the commit's id has to have 1 to {ID} octets");
        return Err(Status::invalid_argument(why));
    }
    match &commit.action {
        Some(Action::Commit(asked)) => {
            let seconds = asked
                .rollback_duration
                .map_or(ROLLBACK, |time| time.seconds);
            if !(1..=i64::from(MOST_CONFIRM)).contains(&seconds) {
                let why = format!("rollback_duration is {seconds} s: expected 1 to {MOST_CONFIRM}");
                return Err(Status::invalid_argument(why));
            }
            Ok(Confirmation::Within(commit.id.clone(), seconds as u32))
        }
        Some(Action::Confirm(_)) => Ok(Confirmation::Of(commit.id.clone())),
        _ => Err(other()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnmi::gnmi_ext::{self, Commit, Duration};

    #[test]
    fn a_confirmation_has_ten_minutes_unless_the_client_says_otherwise() {
        let seconds = |rollback_duration| {
            let asked = gnmi_ext::CommitRequest { rollback_duration };
            let commit = Commit {
                id: "c1".into(),
                action: Some(Action::Commit(asked)),
            };
            let ext = Some(Ext::Commit(commit));
            match confirmation(&[Extension { ext }]) {
                Ok(Confirmation::Within(_, seconds)) => Some(seconds),
                _ => None,
            }
        };
        let of = |seconds| Some(Duration { seconds, nanos: 0 });
        assert_eq!(seconds(None), Some(600));
        assert_eq!(seconds(of(60)), Some(60));
        assert_eq!(seconds(of(0)), None);
        assert_eq!(seconds(of(i64::from(MOST_CONFIRM) + 1)), None);
    }

    #[test]
    fn a_fault_without_a_place_is_none_of_the_request() {
        let fault = |path: &str| {
            refused(&ConfigurationFault {
                path: path.into(),
                message: "no".into(),
                line: 0,
            })
        };
        let state = fault("");
        assert_eq!(state.code(), tonic::Code::FailedPrecondition);
        assert_eq!(state.message(), "Nothing was changed: no");
        let request = fault("ipv4-pools homes prefix");
        assert_eq!(request.code(), tonic::Code::InvalidArgument);
        let place = "Nothing was changed: /configuration/ipv4-pools[name=homes]/prefix: no";
        assert_eq!(request.message(), place);
    }
}
