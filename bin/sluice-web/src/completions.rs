//! What may come next on a line of a change, for whoever types one in the web manager.

use crate::access::Caller;
use crate::api::{Site, done};
use crate::problem::Problem;
use crate::role::Role;
use crate::scope::Scope;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use config::Edit;
use config::completion::Completions;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Path of completions. The line is in the body of the request and in no log, because it may have a secret in it.
pub const PATH: &str = "/api/v1/configuration/completions";
/// Longest line, in characters.
pub const LONGEST_LINE: usize = 4096;
/// Maximum number of words to choose from.
pub const MOST_OPTIONS: usize = 100;

/// Body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The line up to the cursor.
    line: String,
    /// The lines above it, which may have made what this one names.
    #[serde(default)]
    edits: Vec<String>,
}

/// Says what may come next on a line, and what the place is that it leads to.
///
/// # Errors
/// The caller may not, the body is not what is expected, or the control plane does not answer.
pub async fn complete(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.may(Scope::Configuration, Role::Support)?;
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let body = read(&body)?;
    let _one = site.gateway.document().await;
    let tree = site.gateway.in_force(None).await;
    let (_, mut tree) = tree.map_err(|status| site.gateway.problem(&status))?;
    for line in &body.edits {
        // a line that is not finished yet changes nothing
        if let Ok(edit) = Edit::parse(line) {
            let _ = edit.apply(&mut tree);
        }
    }
    let found = Completions::of(&body.line, &tree);
    if found.place.steps().first().is_some_and(|s| s == "users") {
        // who looks at subscribers can be told afterwards
        let place = found.place.to_string();
        tracing::info!(who = caller.name, place, "a line is completed");
    }
    Ok(done(&told(&body.line, &found)))
}

fn read(body: &[u8]) -> Result<Body, Problem> {
    // serde's own sentence could have the line in it
    let expected = format!(
        r#"Expected `{{"line": LINE}}`, the line up to the cursor with at most {LONGEST_LINE} characters; the lines above it may be `edits`."#
    );
    let read = serde_json::from_slice(body).ok();
    let read = read.filter(|body: &Body| body.line.chars().count() <= LONGEST_LINE);
    read.ok_or_else(|| Problem::bad_request(expected))
}

fn told(line: &str, found: &Completions) -> Value {
    let options = found.words.iter().take(MOST_OPTIONS);
    let options: Vec<_> = options
        .map(|option| json!({"word": option.word, "help": option.help}))
        .collect();
    json!({
        "begins": line[..found.begins].chars().count(),
        "place": found.place.to_string(),
        "about": found.about,
        "expected": found.expected,
        "more": found.words.len() - options.len(),
        "options": options,
    })
}
