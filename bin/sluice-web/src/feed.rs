//! Events as they happen, as server-sent events (HTML Living Standard, section 9.2). The `id` of each is the number of the event, which a
//! browser sends back in `Last-Event-ID`: so it goes on without a gap and without a repetition.

use crate::access::Caller;
use crate::api::{Site, parameters};
use crate::gateway::{Gateway, value};
use crate::problem::Problem;
use crate::query::Arguments;
use crate::role::Role;
use crate::scope::Scope;
use crate::sse;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::response::sse::Event as Told;
use northbound::catalogue::WATCH_EVENTS;
use northbound::{EventKind, FollowEventsRequest, FollowEventsResponse};
use serde_json::json;
use std::sync::Arc;
use tonic::{Status, Streaming};

/// Path of the events.
pub const PATH: &str = "/api/v1/events/stream";
/// Clients that follow at once. With 16 destinations they stay below the 32 calls that the control plane takes of a connection.
pub const FOLLOWERS: usize = 12;

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
    caller.may(Scope::Events, Role::Support)?;
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
    Ok(sse::response(parts, room, told))
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

/// Events of a part. An `id` without data moves the client's place where nothing is for it.
fn told(part: &FollowEventsResponse) -> Vec<Told> {
    let of = |number: u64| Told::default().id(number.to_string());
    let lost = (part.lost > 0).then(|| {
        let at_least = json!({"at_least": part.lost});
        Told::default().event("lost").data(at_least.to_string())
    });
    let all = part.events.iter();
    let all = all.map(|event| of(event.number).data(value(event).to_string()));
    let is_told = part
        .events
        .last()
        .is_some_and(|event| event.number == part.last);
    let place = (!is_told).then(|| of(part.last));
    lost.into_iter().chain(all).chain(place).collect()
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
            ..FollowEventsResponse::default()
        };
        let text = sse::text(told(&part));
        let data = text.strip_prefix("id: 7\ndata: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data.trim_end()).unwrap();
        assert_eq!(
            (&data["number"], &data["text"]),
            (&7.into(), &"a\nb".into())
        );
        assert_eq!(text.lines().count(), 3, "{text}");
        let nothing = FollowEventsResponse {
            last: 9,
            lost: 3,
            ..FollowEventsResponse::default()
        };
        assert_eq!(
            sse::text(told(&nothing)),
            "event: lost\ndata: {\"at_least\":3}\n\nid: 9\n\n"
        );
    }
}
