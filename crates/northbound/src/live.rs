//! The service of those who watch: the control plane's side of the socket, and the command line's.

use crate::calls::{Asked, Calls};
use crate::live_client::LiveClient as Generated;
use crate::live_server::{Live, LiveServer};
use crate::{
    CallError, Connection, TraceRequest, TraceResponse, TracedPacket, WatchStateRequest,
    WatchStateResponse, other_answer,
};
use futures_util::stream::{BoxStream, StreamExt, once, try_unfold};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;
use tonic::{Response as Reply, Status, Streaming};

/// The largest request that is read, in octets.
const MAX_REQUEST: usize = 4096;
/// How long a trace may run, in seconds.
const SECONDS: RangeInclusive<u32> = 1..=3600;
/// Packets of a session in a second.
const SAMPLES: RangeInclusive<u32> = 0..=1000;
/// How long a trace runs if nothing else is asked, in seconds.
pub const TRACE_SECONDS: u32 = 600;
/// Forwarded packets of a session that a trace shows in a second if nothing else is asked.
pub const TRACE_SAMPLES: u32 = 10;
/// Packets of a trace that are told together.
const TOGETHER: usize = 64;

/// What those who watch ask.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveRequest {
    /// The state now.
    GetState,
    /// Follow a subscriber; the numbers are within their limits.
    Trace(TraceRequest),
}

/// What they are told.
#[derive(Debug)]
pub enum LiveResponse {
    /// To [`LiveRequest::GetState`].
    State(Box<WatchStateResponse>),
    /// To [`LiveRequest::Trace`]. It ends when the receiver is dropped.
    Tracing(Tracing),
}

/// A trace that runs.
#[derive(Debug)]
pub struct Tracing {
    /// The home that is followed.
    pub followed: String,
    /// What was said, as it comes.
    pub packets: mpsc::Receiver<TracedPacket>,
    /// How many were missed.
    pub missed: Arc<AtomicU64>,
}

/// A request with the place for its answer.
pub type LiveCall = Asked<LiveRequest, LiveResponse>;

/// The service, which hands every request to `calls`.
pub(crate) fn service(calls: mpsc::Sender<LiveCall>) -> LiveServer<impl Live> {
    LiveServer::new(Service(Calls::new(calls))).max_decoding_message_size(MAX_REQUEST)
}

struct Service(Calls<LiveRequest, LiveResponse>);

#[tonic::async_trait]
impl Live for Service {
    type WatchStateStream = BoxStream<'static, Result<WatchStateResponse, Status>>;
    type TraceStream = BoxStream<'static, Result<TraceResponse, Status>>;

    async fn watch_state(
        &self,
        request: tonic::Request<WatchStateRequest>,
    ) -> Result<Reply<Self::WatchStateStream>, Status> {
        let every = request.into_inner().interval_milliseconds;
        let read = |answer| match answer {
            LiveResponse::State(state) => Ok(*state),
            other => Err(other_answer(other)),
        };
        Ok(Reply::new(self.0.watch(
            every,
            || LiveRequest::GetState,
            read,
        )?))
    }

    async fn trace(
        &self,
        request: tonic::Request<TraceRequest>,
    ) -> Result<Reply<Self::TraceStream>, Status> {
        let request = request.into_inner();
        for (name, value, limits) in [
            ("seconds", request.seconds, SECONDS),
            ("packets a second", request.samples_per_second, SAMPLES),
            (
                "packets of which one is shown",
                request.sample_one_in,
                1..=u32::MAX,
            ),
        ] {
            if !limits.contains(&value) {
                let (least, most) = limits.into_inner();
                return Err(Status::invalid_argument(format!(
                    "{value} {name}: expected {least} to {most}"
                )));
            }
        }
        let end = Instant::now() + Duration::from_secs(request.seconds.into());
        let mut tracing = match self.0.ask(LiveRequest::Trace(request)).await? {
            LiveResponse::Tracing(tracing) => tracing,
            other => return Err(other_answer(other)),
        };
        let first = TraceResponse {
            followed: std::mem::take(&mut tracing.followed),
            ..TraceResponse::default()
        };
        let rest = try_unfold(Some((tracing, end)), async |state| {
            let Some((mut tracing, end)) = state else {
                return Ok(None);
            };
            let mut told = TraceResponse::default();
            match timeout_at(end, tracing.packets.recv()).await {
                Ok(Some(packet)) => told.packets.push(packet),
                Ok(None) => told.ended = "the control plane ends".into(),
                Err(_) => told.ended = "its time is over".into(),
            }
            while told.packets.len() < TOGETHER
                && let Ok(packet) = tracing.packets.try_recv()
            {
                told.packets.push(packet);
            }
            told.missed = tracing.missed.load(Ordering::Relaxed);
            let more = told.ended.is_empty().then_some((tracing, end));
            Ok(Some((told, more)))
        });
        Ok(Reply::new(Box::pin(once(async { Ok(first) }).chain(rest))))
    }
}

/// A connection of someone who watches.
pub struct LiveClient {
    connection: Connection,
    client: Generated<Channel>,
}

impl LiveClient {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client = Generated::new(connection.channel());
        Ok(LiveClient { connection, client })
    }

    /// Follows a subscriber.
    pub fn trace(mut self, request: TraceRequest) -> Result<Traced, CallError> {
        let parts = self.connection.wait(self.client.trace(request))?;
        Ok(Traced {
            connection: self.connection,
            parts: parts.into_inner(),
        })
    }

    /// The state now, and again after each interval of 100 ms to 60 s.
    pub fn watch_state(mut self, interval: Duration) -> Result<States, CallError> {
        let request = WatchStateRequest {
            interval_milliseconds: u32::try_from(interval.as_millis()).unwrap_or(u32::MAX),
        };
        let states = self.connection.wait(self.client.watch_state(request))?;
        Ok(States {
            connection: self.connection,
            states: states.into_inner(),
            interval,
        })
    }
}

/// A trace, as it comes.
pub struct Traced {
    connection: Connection,
    parts: Streaming<TraceResponse>,
}

impl Traced {
    /// What came within this time: `Ok(None)` if nothing did.
    pub fn next(&mut self, within: Duration) -> Result<Option<TraceResponse>, CallError> {
        match self.connection.wait_for(within, self.parts.message()) {
            Ok(Some(part)) => Ok(Some(part)),
            Ok(None) => Ok(Some(TraceResponse {
                ended: "the control plane ends".into(),
                ..TraceResponse::default()
            })),
            Err(CallError::Broken(why)) if why.kind() == std::io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// States that come one after the other.
pub struct States {
    connection: Connection,
    states: Streaming<WatchStateResponse>,
    interval: Duration,
}

impl States {
    /// Waits for the next one; `None`: the control plane ends.
    pub fn wait(&mut self) -> Result<Option<WatchStateResponse>, CallError> {
        let States {
            connection,
            states,
            interval,
        } = self;
        connection.wait_for(connection.patience() + *interval, states.message())
    }
}
