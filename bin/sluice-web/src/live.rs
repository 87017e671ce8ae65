//! The gateway's state as it changes, as server-sent events (HTML Living Standard, section 9.2).

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
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::response::sse::Event;
use northbound::catalogue::TOP;
use northbound::live_client::LiveClient;
use northbound::{WatchStateRequest, WatchStateResponse};
use std::sync::Arc;
use tonic::{Status, Streaming};

/// Path of the states.
pub const PATH: &str = "/api/v1/top";
/// Clients that watch at once. Each is a call that stays at the control plane, which takes a bounded number of them.
pub const WATCHERS: usize = 16;
/// Seconds between two states if nothing else is asked.
const INTERVAL: u64 = 1;

/// Tells a state every few seconds, until the client goes, or the connection's time is over: a browser then asks again by itself.
///
/// # Errors
/// The caller may not, too many watch, or the control plane does not answer.
pub async fn top(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.may(Scope::Tables, Role::Support)?;
    let arguments = Arguments::read(TOP.arguments, parameters(&uri)?, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    let Ok(room) = site.watchers.clone().try_acquire_owned() else {
        let detail = format!("{WATCHERS} clients watch already: ask again later.");
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, 10, detail));
    };
    // the state names senders above a rate: who looks at subscribers can be told afterwards
    tracing::info!(who = caller.name, "the state is watched");
    let seconds = arguments.number("interval").unwrap_or(INTERVAL);
    let states = site.gateway.watch(seconds as u32).await;
    let states = states.map_err(|status| site.gateway.problem(&status))?;
    // whoever reads slowly misses states: nothing is kept for it
    Ok(sse::response(states, room, told))
}

fn told(state: &WatchStateResponse) -> Vec<Event> {
    vec![Event::default().data(value(state).to_string())]
}

impl Gateway {
    /// The gateway's state, every few seconds; the first one comes at once.
    ///
    /// # Errors
    /// Why the control plane does not answer.
    pub async fn watch(&self, seconds: u32) -> Result<Streaming<WatchStateResponse>, Status> {
        let request = WatchStateRequest {
            interval_milliseconds: seconds.saturating_mul(1000),
        };
        let states = LiveClient::new(self.channel()).watch_state(request).await?;
        Ok(states.into_inner())
    }
}
