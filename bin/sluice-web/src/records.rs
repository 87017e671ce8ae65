//! Records of sessions that have ended, as lines of JSON. They come as they are read from the history: neither this server nor the control
//! plane has all of them in memory, and whoever reads slowly slows its own answer down.

use crate::access::Caller;
use crate::api::{Site, parameters};
use crate::gateway::next;
use crate::problem::Problem;
use crate::query::Arguments;
use crate::role::Role;
use crate::scope::Scope;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, TryStreamExt, iter, unfold};
use northbound::catalogue::EXPORT_RECORDS;
use northbound::{FollowEventsRequest, FollowEventsResponse};
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Streaming;

/// Path of the records.
pub const PATH: &str = "/api/v1/records";
/// Clients that are given records at once, on the connection of those that follow the events.
pub const EXPORTERS: usize = 2;
/// Lines of JSON have no registered type; this one is what programs look for.
pub const MEDIA_TYPE: &str = "application/x-ndjson";

/// Tells the records. An answer that cannot be completed ends with an error of its connection, so that nobody takes it for the whole.
///
/// # Errors
/// The caller may not, records are missing, too many ask, or the control plane does not answer.
pub async fn export(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.may(Scope::Records, Role::Support)?;
    let arguments = Arguments::read(EXPORT_RECORDS.arguments, parameters(&uri)?, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    let Ok(room) = site.exporters.clone().try_acquire_owned() else {
        let detail = format!("{EXPORTERS} clients are given records already: ask again later.");
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, 10, detail));
    };
    // who looks at subscribers can be told afterwards
    tracing::info!(who = caller.name, %arguments, "records are exported");
    let request = FollowEventsRequest::of_records(
        arguments.time("since"),
        arguments.time("until"),
        arguments.number("after"),
    );
    let parts = site.feed.follow(request).await;
    let mut parts = parts.map_err(|status| site.gateway.problem(&status))?;
    let first = next(&mut parts).await;
    let first = first.map_err(|status| site.gateway.problem(&status))?;
    let gap = |detail| Problem::new(StatusCode::GONE, format!("{detail}."));
    first.refuse_gap().map_err(gap)?;
    let rest = unfold(
        (!first.complete).then_some((parts, room)),
        async |reading: Option<(Streaming<_>, OwnedSemaphorePermit)>| {
            let (mut parts, room) = reading?;
            let part = next(&mut parts).await;
            let goes_on = part.as_ref().is_ok_and(|part| !part.complete);
            Some((part, goes_on.then_some((parts, room))))
        },
    );
    let parts = iter([Ok(first)]).chain(rest).map_err(Error::other);
    let lines = parts.and_then(async |part| lines(&part));
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], Body::from_stream(lines)).into_response())
}

fn lines(part: &FollowEventsResponse) -> Result<Bytes, Error> {
    let mut lines = Vec::new();
    for record in &part.events {
        serde_json::to_writer(&mut lines, record)
            .map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
        lines.push(b'\n');
    }
    Ok(lines.into())
}
