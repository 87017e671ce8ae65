//! Events as they happen, as server-sent events (HTML Living Standard, section 9.2). The `id` of each is the number of the event, which a
//! browser sends back in `Last-Event-ID`: so it goes on without a gap and without a repetition.

use crate::access::Caller;
use crate::api::{Site, parameters};
use crate::gateway::{Gateway, value};
use crate::problem::Problem;
use crate::query::Arguments;
use crate::role::Role;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use northbound::catalogue::WATCH_EVENTS;
use northbound::{EventKind, FollowEventsRequest, FollowEventsResponse};
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tonic::{Status, Streaming};

/// Path of the events.
pub const PATH: &str = "/api/v1/events/stream";
/// Clients that follow at once. With 16 destinations they stay below the 32 calls that the control plane takes of a connection.
pub const FOLLOWERS: usize = 12;
/// After so long without an event a client gets a comment, so that it, and whatever is between, knows that the stream stands.
const SILENCE: Duration = Duration::from_secs(15);

/// Tells events until the client goes, reads too slowly, or its connection's time is over. It goes on with the last number that it knows.
///
/// # Errors
/// The caller may not, too many follow, or the control plane does not answer.
pub async fn events(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(Role::Support)?;
    let arguments = Arguments::read(WATCH_EVENTS.arguments, parameters(&uri)?, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    let kinds = EventKind::list(arguments.text("kinds").unwrap_or_default());
    let kinds = kinds.map_err(Problem::bad_request)?;
    let mut request = FollowEventsRequest {
        // what a browser has seen since the page asked counts
        after: last_event_id(&headers)?.or(arguments.number("after")),
        subscriber: arguments.text("subscriber").unwrap_or_default().into(),
        ..FollowEventsRequest::default()
    };
    kinds.into_iter().for_each(|kind| request.push_kinds(kind));
    let Ok(room) = site.followers.clone().try_acquire_owned() else {
        let detail = format!("{FOLLOWERS} clients follow the events already: ask again later.");
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, 10, detail));
    };
    // who looks at subscribers can be told afterwards
    tracing::info!(who = caller.name, %arguments, "events are watched");
    let parts = site.feed.follow(request).await;
    let parts = parts.map_err(|status| site.gateway.problem(&status))?;
    // a client that does not read keeps the control plane from sending, which ends the call then
    let told = unfold((parts, room), async |(mut parts, room)| {
        let text = match timeout(SILENCE, parts.message()).await {
            Err(_) => Bytes::from_static(b":\n\n"),
            Ok(part) => text(&part.ok()??).into(),
        };
        Some((Ok::<_, Infallible>(text), (parts, room)))
    });
    let head = [(CONTENT_TYPE, "text/event-stream")];
    Ok((head, Body::from_stream(told)).into_response())
}

/// Number of the last event that a client has got.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(id) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = id.to_str().ok().and_then(|id| id.parse().ok());
    let expected = "`Last-Event-ID` is no number of an event: expected the `id` of one.";
    number
        .map(Some)
        .ok_or_else(|| Problem::bad_request(expected))
}

/// A part as text. An `id` without data moves the client's place where nothing is for it.
fn text(part: &FollowEventsResponse) -> String {
    let mut text = String::new();
    if part.lost > 0 {
        let _ = write!(
            text,
            "event: lost\ndata: {{\"at_least\":{}}}\n\n",
            part.lost
        );
    }
    for event in &part.events {
        let _ = write!(text, "id: {}\ndata: {}\n\n", event.number, value(event));
    }
    if part
        .events
        .last()
        .is_none_or(|event| event.number != part.last)
    {
        let _ = write!(text, "id: {}\n\n", part.last);
    }
    text
}

impl Gateway {
    /// Events as they happen.
    ///
    /// # Errors
    /// Too many follow, or why the control plane does not answer.
    pub async fn follow(
        &self,
        request: FollowEventsRequest,
    ) -> Result<Streaming<FollowEventsResponse>, Status> {
        Ok(self.history().follow_events(request).await?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::Event;

    #[test]
    fn every_event_has_its_number_and_the_place_moves_without_one() {
        let event = Event {
            number: 7,
            text: "a\nb".into(),
            ..Event::default()
        };
        let part = FollowEventsResponse {
            events: vec![event.clone()],
            last: 7,
            lost: 0,
        };
        let told = text(&part);
        let data = told.strip_prefix("id: 7\ndata: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data.trim_end()).unwrap();
        assert_eq!(
            (&data["number"], &data["text"]),
            (&7.into(), &"a\nb".into())
        );
        assert_eq!(told.lines().count(), 3, "{told}");
        let nothing = FollowEventsResponse {
            last: 9,
            lost: 3,
            ..FollowEventsResponse::default()
        };
        assert_eq!(
            text(&nothing),
            "event: lost\ndata: {\"at_least\":3}\n\nid: 9\n\n"
        );
    }
}
