//! `test aaa`: what AAA says of a user. The password is in the body of the request, and in no log and no answer.

use crate::access::Caller;
use crate::api::{Site, done, role_of, scope_of};
use crate::gateway::value;
use crate::problem::Problem;
use crate::query::given;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use config::Secret;
use northbound::TestAaaRequest;
use northbound::catalogue::TEST_AAA;
use serde::Deserialize;
use std::sync::Arc;

/// Path of tests. Its declaration has no password, because a command line must not have one.
pub const PATH: &str = "/api/v1/actions/test-aaa";

/// Body of a test.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Body {
    user: String,
    password: Secret,
    #[serde(default, deserialize_with = "given")]
    access_profile: Option<String>,
}

/// Asks AAA as a session would. No session begins.
///
/// # Errors
/// The caller may not, the body is not what is expected, or the control plane refuses.
pub async fn test(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.may(scope_of(&TEST_AAA), role_of(&TEST_AAA))?;
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    // serde's own sentence could have the password in it
    let expected = r#"Expected `{"user": NAME, "password": PASSWORD}`, with `access-profile` if there are several."#;
    let read = serde_json::from_slice(&body);
    let body: Body = read.map_err(|_| Problem::bad_request(expected))?;
    let request = TestAaaRequest {
        user: body.user.clone(),
        password: body.password.reveal().into(),
        access_profile: body.access_profile.clone().unwrap_or_default(),
    };
    let request = northbound::on_behalf_of(&caller.name, request);
    let tested = site.gateway.control_plane().test_aaa(request).await;
    let result = tested
        .as_ref()
        .map_or_else(|status| status.message(), |_| "done");
    // who asked about whom, and what came of it
    tracing::info!(
        who = caller.name,
        action = TEST_AAA.name,
        user = body.user,
        access_profile = body.access_profile,
        result,
        "an action"
    );
    let tested = tested.map_err(|status| site.gateway.problem(&status))?;
    Ok(done(&value(&tested.into_inner())))
}
