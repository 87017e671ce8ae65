//! Changes of the configuration: what one would do, its commit, and its confirmation.

use crate::access::{Caller, refuse};
use crate::api::{Site, done};
use crate::gateway::Gateway;
use crate::problem::Problem;
use crate::query::{Arguments, given};
use crate::role::Role;
use crate::scope::Scope;
use axum::Extension;
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use config::Verb;
use northbound::{
    Change, CheckChangeRequest, CommitRequest, CommitResponse, ConfirmRequest, DrainOrder, Edit,
    Edits, GetConfigurationRequest, ListVersionsRequest, MOST_COMMENT, MOST_CONFIRM, change,
    on_behalf_of,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Status;

/// The largest document of a request, with what is around it, in octets: whoever has a larger one uses the command line.
pub const MAX_DOCUMENT: usize = (16 << 20) + 65_536;
/// Time limit for the body of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// A change, and how it is to be committed. One of `edits`, `document` and `version` says what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Order {
    /// Lines such as `set pools homes prefix 100.64.0.0/16` and `delete pools homes`.
    #[serde(deserialize_with = "given")]
    edits: Option<Vec<String>>,
    /// Version that the edits start from. What others have changed since then elsewhere is kept.
    #[serde(deserialize_with = "given")]
    base: Option<u64>,
    /// The whole configuration: YAML in a text, or an object.
    #[serde(deserialize_with = "given")]
    document: Option<Value>,
    /// An earlier version.
    #[serde(deserialize_with = "given")]
    version: Option<u64>,
    comment: String,
    /// Seconds within which it has to be confirmed; 0: it need not be.
    confirm_within: u32,
    end_sessions: bool,
}

impl Order {
    /// Refuses a comment or a confirm time-out that is too long. The control plane is told them with a commit, not with a check.
    fn bounded(&self) -> Result<(), Problem> {
        if self.comment.chars().count() > MOST_COMMENT {
            let expected =
                format!("`comment` is too long: expected at most {MOST_COMMENT} characters");
            return Err(Problem::bad_request(expected));
        }
        if self.confirm_within > MOST_CONFIRM {
            let within = self.confirm_within;
            return Err(Problem::bad_request(format!(
                "`confirm-within` is {within}: expected 0 to {MOST_CONFIRM}"
            )));
        }
        Ok(())
    }
}

/// Kind of a change for the log. The change itself is not logged, because it may contain a secret.
fn kind(change: Option<&Change>) -> &'static str {
    match change.and_then(|change| change.change.as_ref()) {
        Some(change::Change::Edits(_)) => "edits",
        Some(change::Change::Document(_)) => "document",
        Some(change::Change::Version(_)) => "version",
        None => "nothing",
    }
}

/// Reads a request to check or to commit a change.
async fn ordered(site: &Site, request: Request) -> Result<CommitRequest, Problem> {
    let body = read(request).await?;
    let order: Order = serde_json::from_slice(&body).map_err(|error| {
        Problem::bad_request(format!("The body is not what is expected: {error}."))
    })?;
    order.bounded()?;
    let change = match (order.edits, order.base, order.document, order.version) {
        (Some(lines), base, None, None) => {
            let edits = lines.iter().map(|line| edit(line));
            let edits = edits.collect::<Result<_, _>>();
            let edits = edits.map_err(Problem::bad_request)?;
            let base = match base {
                Some(base) => base,
                None => {
                    let newest = site.gateway.newest().await;
                    newest.map_err(|status| site.gateway.problem(&status))?
                }
            };
            change::Change::Edits(Edits { base, edits })
        }
        (None, None, Some(Value::String(document)), None) => change::Change::Document(document),
        // JSON is YAML
        (None, None, Some(document @ Value::Object(_)), None) => {
            change::Change::Document(document.to_string())
        }
        (None, None, None, Some(version)) => change::Change::Version(version),
        _ => {
            return Err(Problem::bad_request(
                "Expected one of `edits` (lines such as `set PATH VALUE` or `delete PATH`; `base` may stand beside them), `document` (the \
                 whole configuration: a text or an object) and `version` (an earlier one).",
            ));
        }
    };
    Ok(CommitRequest {
        change: Some(Change {
            change: Some(change),
        }),
        comment: order.comment,
        confirm_within: order.confirm_within,
        end_sessions: order.end_sessions,
        lock: 0,
    })
}

/// A line as it is typed in `sluice configure`.
fn edit(line: &str) -> Result<Edit, String> {
    let edit = config::edit::Edit::parse(line)?;
    Ok(Edit {
        delete: edit.verb == Verb::Delete,
        words: edit.words.steps().to_vec(),
    })
}

/// Says what a change would do.
///
/// # Errors
/// The caller may not, or the body is not a change. Faults of the changed configuration are no error: they are the answer.
pub async fn check(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let request = admit(&caller, request).await?;
    let _one = site.gateway.document().await;
    let commit = ordered(&site, request).await?;
    let would = site.gateway.check(commit.change.unwrap_or_default()).await;
    Ok(done(&would.map_err(|s| site.gateway.problem(&s))?))
}

/// Commits a change.
///
/// # Errors
/// The caller may not, the body is not a change, or the change is refused: then `faults` says why, each with its place.
pub async fn commit(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let request = admit(&caller, request).await?;
    let _one = site.gateway.document().await;
    let commit = ordered(&site, request).await?;
    let kind = kind(commit.change.as_ref());
    let committed = site.gateway.commit(commit, &caller.name).await;
    let result = match &committed {
        Ok(of) if of.faults.is_empty() => format!("version {}", of.version),
        Ok(of) => format!("{} faults", of.faults.len()),
        Err(status) => status.message().to_owned(),
    };
    tracing::info!(who = caller.name, kind, result, "a commit");
    let committed = committed.map_err(|status| site.gateway.problem(&status))?;
    match committed.faults.first() {
        None => Ok(done(&json!(committed))),
        Some(first) => {
            let place = match &*first.path {
                "" => String::new(),
                path => format!("{path}: "),
            };
            let detail = format!("Nothing was changed: {place}{}", first.message);
            Err(Problem::of_faults(detail, committed.faults))
        }
    }
}

/// Keeps the version that waits for that.
///
/// # Errors
/// The caller may not, or nothing waits.
pub async fn confirm(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    read(admit(&caller, request).await?).await?;
    let kept = site.gateway.confirm(&caller.name).await;
    let version = kept.map_err(|status| site.gateway.problem(&status))?;
    Ok(done(&json!({"version": version})))
}

/// Admits a caller with the role `configure`.
async fn admit(caller: &Caller, request: Request) -> Result<Request, Problem> {
    match caller.may(Scope::Configuration, Role::Configure) {
        Ok(()) => Ok(request),
        Err(problem) => Err(refuse(request, problem).await),
    }
}

/// Reads the body of a request. A body that is announced as too large is refused before it is read.
async fn read(request: Request) -> Result<Bytes, Problem> {
    if request.body().size_hint().lower() > MAX_DOCUMENT as u64 {
        let detail = format!("The body is too large: expected at most {MAX_DOCUMENT} octets.");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let body = timeout(PATIENCE, Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| {
        let detail = format!("The body takes longer than {} seconds.", PATIENCE.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    })?;
    body.map_err(|error| Problem::new(error.status(), error.body_text()))
}

impl Gateway {
    /// Number of the newest version; 0 without one.
    ///
    /// # Errors
    /// Why the control plane does not answer.
    pub async fn newest(&self) -> Result<u64, Status> {
        let told = self
            .configuration()
            .list_versions(ListVersionsRequest {})
            .await?;
        let newest = told.into_inner().versions.pop();
        Ok(newest.map_or(0, |newest| newest.version))
    }

    async fn check(&self, change: Change) -> Result<Value, Status> {
        let request = CheckChangeRequest {
            change: Some(change),
        };
        let would = self
            .configuration()
            .check_change(request)
            .await?
            .into_inner();
        let tree: Value = serde_json::from_str(&would.tree).unwrap_or_default();
        Ok(json!({"faults": would.faults, "effects": would.effects, "tree": tree}))
    }

    /// Commits on behalf of a person.
    ///
    /// # Errors
    /// What the control plane refuses, or why it does not answer. Faults are no error.
    pub async fn commit(
        &self,
        request: CommitRequest,
        person: &str,
    ) -> Result<CommitResponse, Status> {
        let request = on_behalf_of(person, request);
        Ok(self.configuration().commit(request).await?.into_inner())
    }

    /// Drains a user plane, or ends its drain, by a commit. Without anything to change there is no commit.
    ///
    /// # Errors
    /// The user plane does not exist, the arguments contradict each other, or the commit is refused.
    pub async fn drain(&self, arguments: &Arguments, person: &str) -> Result<Value, Status> {
        let order = DrainOrder {
            user_plane: arguments.text("user-plane").unwrap_or_default().into(),
            end_sessions: arguments
                .number("end-sessions")
                .and_then(|rate| rate.try_into().ok()),
            stop: arguments.flag("stop"),
        };
        if order.stop && order.end_sessions.is_some() {
            let why = "`stop` and `end-sessions` contradict each other: expected one of them";
            return Err(Status::invalid_argument(why));
        }
        let _one = self.document().await;
        let request = GetConfigurationRequest { version: None };
        let in_force = self.configuration().get_configuration(request).await?;
        let in_force = in_force.into_inner();
        let Some(commit) = order.commit(&in_force)? else {
            return Ok(json!({"version": in_force.version, "effects": [], "pending": []}));
        };
        let done = self.commit(commit, person).await?;
        if !done.faults.is_empty() {
            let why = done.faults.iter().map(|fault| fault.message.as_str());
            let why = why.collect::<Vec<_>>().join("; ");
            return Err(Status::failed_precondition(format!(
                "Nothing was changed: {why}"
            )));
        }
        Ok(json!({"version": done.version, "effects": done.effects, "pending": done.pending}))
    }

    /// Confirms the version that waits for that, on behalf of a person, and logs it. Returns its number.
    ///
    /// # Errors
    /// Nothing waits, or the control plane does not answer.
    pub async fn confirm(&self, person: &str) -> Result<u64, Status> {
        let request = on_behalf_of(person, ConfirmRequest { lock: 0 });
        let kept = self.configuration().confirm(request).await;
        let kept = kept.map(|kept| kept.into_inner().version);
        let result = kept.as_ref().map_or_else(
            |status| status.message().to_owned(),
            |version| format!("version {version}"),
        );
        tracing::info!(who = person, result, "a confirmation");
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_edit_as_it_is_typed() {
        let delete = edit(r#"delete pools "a b""#).unwrap();
        assert!(delete.delete);
        assert_eq!(delete.words, ["pools", "a b"]);
        assert!(!edit("set pools homes prefix 100.64.0.0/16").unwrap().delete);
        assert!(edit("show pools").unwrap_err().contains("`set PATH VALUE`"));
    }

    #[test]
    fn null_is_no_change_and_stands_for_nothing_that_is_left_out() {
        let read = |text: &str| serde_json::from_str::<Order>(text);
        assert!(read(r#"{"edits": ["delete pools"], "base": 3}"#).is_ok());
        for wrong in [
            r#"{"edits": null}"#,
            r#"{"document": "", "version": null}"#,
            r#"{"edits": [], "base": null}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
