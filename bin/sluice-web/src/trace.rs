//! What a subscriber and the gateway say to each other: as server-sent events (HTML Living Standard, section 9.2), and as a file for
//! Wireshark.

use crate::access::{Caller, Lasting};
use crate::api::{Site, parameters, role_of};
use crate::gateway::{Gateway, next, value};
use crate::problem::Problem;
use crate::query::Arguments;
use crate::scope::Scope;
use crate::sse;
use ::trace::{Line, Writer};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, once, unfold};
use northbound::catalogue::TRACE;
use northbound::live_client::LiveClient;
use northbound::{TRACE_SAMPLES, TRACE_SECONDS, TraceRequest, TraceResponse};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Status, Streaming};

/// Path of the messages as they happen.
pub const PATH: &str = "/api/v1/trace";
/// Path of the same as a file.
pub const FILE: &str = "/api/v1/trace/file";
/// Subscribers that are traced at once from here. The control plane traces 8: some are left for the command line.
pub const TRACERS: usize = 4;

/// A trace that runs, with its room.
type Traced = (Streaming<TraceResponse>, OwnedSemaphorePermit);

/// Tells messages until the time is over or the client goes.
///
/// # Errors
/// The caller may not, there is no such subscriber, too many are traced, or the control plane does not answer.
pub async fn messages(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let (_, (parts, room)) = begin(&site, &caller, &uri).await?;
    Ok(sse::response(parts, room, told))
}

/// Writes messages to a file until the time is over or the client goes. If the trace breaks off, the answer ends with an error.
///
/// # Errors
/// As with [`messages`].
pub async fn file(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let (who, traced) = begin(&site, &caller, &uri).await?;
    // into memory, which does not fail
    let mut file = Writer::begin(Vec::new()).map_err(failed)?;
    let head = std::mem::take(file.get_mut());
    let packets = unfold(Some((traced, file)), async |reading| {
        let ((mut parts, room), mut file) = reading?;
        let part = match next(&mut parts).await {
            Ok(part) => part,
            // the client must not take it for a complete file
            Err(status) => return Some((Err(io::Error::other(status)), None)),
        };
        let written = part
            .packets
            .iter()
            .try_for_each(|packet| file.packet(packet));
        let written = written.map(|()| std::mem::take(file.get_mut()));
        let goes_on = part.ended.is_empty() && written.is_ok();
        Some((written, goes_on.then_some(((parts, room), file))))
    });
    let whole = once(async { Ok(head) }).chain(packets);
    let name = format!("attachment; filename=\"{}.pcapng\"", plain(&who));
    let head = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, name),
    ];
    Ok((Extension(Lasting), head, Body::from_stream(whole)).into_response())
}

/// Begins a trace. Returns who is traced.
async fn begin(site: &Site, caller: &Caller, uri: &Uri) -> Result<(String, Traced), Problem> {
    caller.may(Scope::Trace, role_of(&TRACE))?;
    let arguments = Arguments::read(TRACE.arguments, parameters(uri)?, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    let Ok(room) = site.tracers.clone().try_acquire_owned() else {
        let detail =
            format!("{TRACERS} subscribers are traced from here already: ask again later.");
        return Err(Problem::later(StatusCode::SERVICE_UNAVAILABLE, 10, detail));
    };
    let number = |name, default| {
        arguments
            .number(name)
            .map_or(default, |number| number as u32)
    };
    let who = arguments.text("who").unwrap_or_default().to_owned();
    let request = TraceRequest {
        subject: who.clone(),
        seconds: number("seconds", TRACE_SECONDS),
        sample_one_in: number("one-in", 1),
        samples_per_second: number("samples", TRACE_SAMPLES),
    };
    let parts = site.gateway.trace(request).await;
    let result = parts.as_ref().map_or_else(|s| s.message(), |_| "begun");
    // who looks at subscribers can be told afterwards
    tracing::info!(who = caller.name, %arguments, result, "a trace");
    let parts = parts.map_err(|status| site.gateway.problem(&status))?;
    Ok((who, (parts, room)))
}

/// Events of a part.
fn told(part: &TraceResponse) -> Vec<Event> {
    let event = |name: &str, data: Value| Event::default().event(name).data(data.to_string());
    let followed =
        (!part.followed.is_empty()).then(|| event("followed", json!({"line": part.followed})));
    let packets = part.packets.iter();
    let packets = packets.map(|packet| Event::default().data(value(&Line::of(packet)).to_string()));
    let ended = (!part.ended.is_empty())
        .then(|| event("ended", json!({"why": part.ended, "missed": part.missed})));
    followed.into_iter().chain(packets).chain(ended).collect()
}

/// A name of a file.
fn plain(who: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.@".contains(*c);
    let of = |c: char| if is_plain(&c) { c } else { '-' };
    who.chars().take(64).map(of).collect()
}

fn failed(error: io::Error) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

impl Gateway {
    /// Follows a subscriber.
    ///
    /// # Errors
    /// There is none, too many are followed, or why the control plane does not answer.
    pub async fn trace(&self, request: TraceRequest) -> Result<Streaming<TraceResponse>, Status> {
        Ok(LiveClient::new(self.channel())
            .trace(request)
            .await?
            .into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::TracedPacket;

    #[test]
    fn messages_have_words_and_the_last_part_says_why_it_is_the_last() {
        let first = TraceResponse {
            followed: "02:00:5e:10:00:01 at up1/access0.100.7".into(),
            packets: vec![TracedPacket::default()],
            ..TraceResponse::default()
        };
        let text = sse::text(told(&first));
        let mut parts = text.split_terminator("\n\n");
        let followed =
            "event: followed\ndata: {\"line\":\"02:00:5e:10:00:01 at up1/access0.100.7\"}";
        assert_eq!(parts.next(), Some(followed));
        let data = parts.next().unwrap().strip_prefix("data: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["says"], "0 octets that cannot be read");
        assert_eq!(parts.next(), None);
        let last = TraceResponse {
            missed: 3,
            ended: "its time is over".into(),
            ..TraceResponse::default()
        };
        let ended = "event: ended\ndata: {\"missed\":3,\"why\":\"its time is over\"}\n\n";
        assert_eq!(sse::text(told(&last)), ended);
    }

    #[test]
    fn nobody_names_a_file_as_he_likes() {
        assert_eq!(plain("home7@sluice"), "home7@sluice");
        assert_eq!(plain("02:00:5e:10:00:01"), "02-00-5e-10-00-01");
        assert_eq!(plain("../x\"\r\n;é"), "..-x-----");
    }
}
