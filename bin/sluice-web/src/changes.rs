//! Changes of the configuration: what one would do, its commit, and its confirmation.

use crate::api::{Caller, Site, done};
use crate::gateway::Gateway;
use crate::problem::Problem;
use crate::tokens::Role;
use axum::Extension;
use axum::body::{Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use config::Verb;
use northbound::{
    Change, CheckChangeRequest, CommitRequest, CommitResponse, ConfirmRequest, Edit, Edits,
    ListVersionsRequest, MAX_DOCUMENT, change, on_behalf_of,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Status;

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(30);
/// How long one may take that is not wanted, and its maximum size in octets.
const UNWANTED: Duration = Duration::from_secs(1);
const SMALL: usize = 16 * 1024;

/// A change, and how it is to be committed. One of `edits`, `document` and `version` says what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Order {
    /// Lines such as `set pools homes prefix 100.64.0.0/16` and `delete pools homes`.
    edits: Option<Vec<String>>,
    /// Version that the edits start from. What others have changed since then elsewhere is kept.
    base: Option<u64>,
    /// The whole configuration: YAML in a text, or an object.
    document: Option<Value>,
    /// An earlier version.
    version: Option<u64>,
    comment: String,
    /// Seconds within which it has to be confirmed; 0: it need not be.
    confirm_within: u32,
    end_sessions: bool,
}

/// Kind of a change, as the log has it: an edit may have a secret in it.
const fn kind(change: &change::Change) -> &'static str {
    match change {
        change::Change::Edits(_) => "edits",
        change::Change::Document(_) => "document",
        change::Change::Version(_) => "version",
    }
}

impl Order {
    fn read(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            Problem::bad_request(format!("The body is not what is expected: {error}."))
        })
    }

    /// What is to be changed.
    async fn change(&mut self, gateway: &Gateway) -> Result<change::Change, Problem> {
        let which = (self.edits.take(), self.document.take(), self.version);
        Ok(match which {
            (Some(lines), None, None) => {
                let edits = lines.iter().map(|line| edit(line));
                let edits = edits
                    .collect::<Result<_, _>>()
                    .map_err(Problem::bad_request)?;
                let base = match self.base {
                    Some(base) => base,
                    None => gateway.newest().await.map_err(|s| gateway.problem(&s))?,
                };
                change::Change::Edits(Edits { base, edits })
            }
            (None, Some(Value::String(document)), None) => change::Change::Document(document),
            // JSON is YAML
            (None, Some(document), None) => change::Change::Document(document.to_string()),
            (None, None, Some(version)) => change::Change::Version(version),
            _ => {
                return Err(Problem::bad_request(
                    "Expected one of `edits` (lines such as `set PATH VALUE` or `delete PATH`), `document` (the whole configuration) and \
                     `version` (an earlier one).",
                ));
            }
        })
    }
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
    let mut order = Order::read(&read(request).await?)?;
    let change = Some(order.change(&site.gateway).await?);
    let would = site.gateway.check(Change { change }).await;
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
    let mut order = Order::read(&read(request).await?)?;
    let change = order.change(&site.gateway).await?;
    let kind = kind(&change);
    let request = CommitRequest {
        change: Some(Change {
            change: Some(change),
        }),
        comment: order.comment,
        confirm_within: order.confirm_within,
        end_sessions: order.end_sessions,
        lock: 0,
    };
    let committed = site.gateway.commit(request, &caller.name).await;
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
    let result = kept.as_ref().map_or_else(
        |status| status.message().to_owned(),
        |version| format!("version {version}"),
    );
    tracing::info!(who = caller.name, result, "a confirmation");
    let version = kept.map_err(|status| site.gateway.problem(&status))?;
    Ok(done(&json!({"version": version})))
}

/// Lets through who may configure. Of others a small body is read, too: curl takes an answer to what it has not sent yet for a fault of
/// HTTP/2.
async fn admit(caller: &Caller, request: Request) -> Result<Request, Problem> {
    match caller.needs(Role::Configure) {
        Ok(()) => Ok(request),
        Err(problem) => {
            // what it was does not matter, nor whether it came
            let _ = timeout(UNWANTED, to_bytes(request.into_body(), SMALL)).await;
            Err(problem)
        }
    }
}

/// Reads a body, while others wait. One that says that it is too large is not waited for.
async fn read(request: Request) -> Result<Bytes, Problem> {
    if request.body().size_hint().lower() > MAX_DOCUMENT as u64 {
        let detail = format!("The body is too large: expected at most {MAX_DOCUMENT} octets.");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let body = timeout(BODY, Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| {
        let detail = format!("The body takes longer than {} seconds.", BODY.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    })?;
    body.map_err(|error| Problem::new(error.status(), error.body_text()))
}

impl Gateway {
    /// Number of the newest version; 0 without one.
    async fn newest(&self) -> Result<u64, Status> {
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

    async fn commit(&self, request: CommitRequest, person: &str) -> Result<CommitResponse, Status> {
        let request = on_behalf_of(person, request);
        Ok(self.configuration().commit(request).await?.into_inner())
    }

    async fn confirm(&self, person: &str) -> Result<u64, Status> {
        let request = on_behalf_of(person, ConfirmRequest { lock: 0 });
        let kept = self.configuration().confirm(request).await?;
        Ok(kept.into_inner().version)
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
}
