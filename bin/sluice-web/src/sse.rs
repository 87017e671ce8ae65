//! Server-sent events (HTML Living Standard, section 9.2) made of a call at the control plane that goes on.

use crate::access::Lasting;
use axum::http::header::CACHE_CONTROL;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, iter, unfold};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Streaming;

/// After so long without an event a client gets a comment, so that it, and whatever is between, knows that the stream stands.
const SILENCE: Duration = Duration::from_secs(15);

/// Tells the parts of a call as events, until the call ends, the client goes or reads too slowly, or its connection's time is over. The client's
/// room is held until then.
pub fn response<T: Send + 'static>(
    parts: Streaming<T>,
    room: OwnedSemaphorePermit,
    events: fn(&T) -> Vec<Event>,
) -> Response {
    let parts = unfold((parts, room), async |(mut parts, room)| {
        let part = parts.message().await.ok()??;
        Some((part, (parts, room)))
    });
    let told = parts.flat_map(move |part| iter(events(&part)).map(Ok::<_, Infallible>));
    let told = Sse::new(told).keep_alive(KeepAlive::new().interval(SILENCE));
    let mut response = told.into_response();
    // that of all answers is stricter
    response.headers_mut().remove(CACHE_CONTROL);
    response.extensions_mut().insert(Lasting);
    response
}

/// Events as a client reads them.
#[cfg(test)]
pub fn text(events: Vec<Event>) -> String {
    use futures_util::FutureExt;
    let told = Sse::new(iter(events).map(Ok::<_, Infallible>));
    let body = axum::body::to_bytes(told.into_response().into_body(), usize::MAX);
    let octets = body.now_or_never().expect("all is there").unwrap();
    String::from_utf8(octets.into()).unwrap()
}
