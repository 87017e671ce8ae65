//! Set: all edits of a request are one commit.

use super::now;
use super::read::{target, tree};
use super::who::Known;
use crate::api::Site;
use gnmi::edits::edits;
use gnmi::gnmi_ext::{Extension, commit::Action, extension::Ext};
use gnmi::operations::{Operation, Verb, operations};
use gnmi::path;
use gnmi::proto::update_result::Operation as Code;
use gnmi::proto::{SetRequest, SetResponse, UpdateResult};
use northbound::{Change, CommitRequest, Edit, Edits, change};
use std::sync::{Mutex, PoisonError};
use tonic::Status;

/// Maximum length of the id of a commit, in octets.
const ID: usize = 256;
/// The longest time for a confirmation, in seconds.
const LONGEST: i64 = 86_400;

/// The commit that waits for its confirmation, by the id that its client gave it.
#[derive(Debug, Default)]
pub struct Commits(Mutex<Option<String>>);

impl Commits {
    fn id(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    site: &Site,
    commits: &Commits,
    known: &Known,
    request: SetRequest,
) -> Result<SetResponse, Status> {
    let who = &known.caller.name;
    let prefix = target(request.prefix.as_ref())?;
    let confirmation = confirmation(&request.extension)?;
    if !request.union_replace.is_empty() {
        let why = "union_replace is not offered: use replace";
        return Err(Status::unimplemented(why));
    }
    let operations = operations(&request).map_err(Status::invalid_argument)?;
    let mut within = 0;
    match &confirmation {
        Confirmation::Of(id) => {
            if !operations.is_empty() {
                return Err(Status::invalid_argument(
                    "a confirmation changes nothing else",
                ));
            }
            confirm(site, commits, who, id).await?;
        }
        Confirmation::Within(_, seconds) => within = *seconds,
        Confirmation::None => {}
    }
    if !operations.is_empty() {
        commit(site, who, &operations, within).await?;
    }
    if let Confirmation::Within(id, _) = confirmation {
        *commits.id() = Some(id);
    }
    let result = |operation: &Operation| UpdateResult {
        path: Some(operation.path.to_sent()),
        op: match operation.verb {
            Verb::Delete => Code::Delete,
            Verb::Replace => Code::Replace,
            Verb::Update => Code::Update,
        }
        .into(),
    };
    Ok(SetResponse {
        prefix,
        response: operations.iter().map(result).collect(),
        timestamp: now(),
        extension: Vec::new(),
    })
}

/// Commits the edits of all operations.
async fn commit(
    site: &Site,
    who: &str,
    operations: &[Operation],
    confirm_within: u32,
) -> Result<(), Status> {
    let _one = site.gateway.document().await;
    let (base, tree) = tree(site).await?;
    let edits = edits(tree, operations).map_err(Status::invalid_argument)?;
    if edits.is_empty() {
        return Ok(());
    }
    let edit = |edit: &config::Edit| Edit {
        delete: edit.verb == config::Verb::Delete,
        words: edit.words.steps().to_vec(),
    };
    let edits = edits.iter().map(edit).collect();
    let request = CommitRequest {
        change: Some(Change {
            change: Some(change::Change::Edits(Edits { base, edits })),
        }),
        comment: "gNMI".into(),
        confirm_within,
        ..CommitRequest::default()
    };
    let committed = site.gateway.commit(request, who).await;
    let result = match &committed {
        Ok(of) if of.faults.is_empty() => {
            let effects = of.effects.iter().map(|effect| effect.text.as_str());
            let effects = effects.collect::<Vec<_>>().join("; ");
            format!("version {}: {effects}", of.version)
        }
        Ok(of) => format!("{} faults", of.faults.len()),
        Err(status) => status.message().to_owned(),
    };
    tracing::info!(who, kind = "gnmi", result, "a commit");
    let committed = committed.map_err(|status| site.gateway.problem(&status))?;
    match committed.faults.first() {
        None => Ok(()),
        Some(fault) => {
            let words = config::Path::parse(&fault.path).unwrap_or_default();
            let place = path::of_words(&words);
            let why = format!("Nothing was changed: {place}: {}", fault.message);
            Err(Status::invalid_argument(why))
        }
    }
}

/// Keeps the change that was committed under this id.
async fn confirm(site: &Site, commits: &Commits, who: &str, id: &str) -> Result<(), Status> {
    if commits.id().as_deref() != Some(id) {
        return Err(Status::failed_precondition(
            "no commit by gNMI with this id waits for a confirmation: `sluice show versions` says what waits",
        ));
    }
    let kept = site.gateway.confirm(who).await;
    let result = kept.as_ref().map_or_else(
        |status| status.message().to_owned(),
        |version| format!("version {version}"),
    );
    tracing::info!(who, result, "a confirmation");
    kept.map_err(|status| site.gateway.problem(&status))?;
    *commits.id() = None;
    Ok(())
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
            let seconds = asked.rollback_duration.map_or(0, |time| time.seconds);
            if !(1..=LONGEST).contains(&seconds) {
                let why = format!("rollback_duration is {seconds} s: expected 1 to {LONGEST}");
                return Err(Status::invalid_argument(why));
            }
            Ok(Confirmation::Within(commit.id.clone(), seconds as u32))
        }
        Some(Action::Confirm(_)) => Ok(Confirmation::Of(commit.id.clone())),
        _ => Err(other()),
    }
}
