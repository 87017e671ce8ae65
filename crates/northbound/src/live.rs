//! The service of those who watch: the control plane's side of the socket, and the command line's.

use crate::calls::{Asked, Calls};
use crate::live_client::LiveClient as Generated;
use crate::live_server::{Live, LiveServer};
use crate::{CallError, Connection, WatchStateRequest, WatchStateResponse};
use futures_util::stream::{BoxStream, try_unfold};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tonic::transport::Channel;
use tonic::{Response as Reply, Status, Streaming};

/// The intervals at which the state can be watched, in milliseconds.
const INTERVALS: RangeInclusive<u32> = 100..=60_000;

/// What those who watch ask.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveRequest {
    /// The state now.
    GetState,
}

/// What they are told.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveResponse {
    /// To [`LiveRequest::GetState`].
    State(Box<WatchStateResponse>),
}

/// A request with the place for its answer.
pub type LiveCall = Asked<LiveRequest, LiveResponse>;

/// The service, which hands every request to `calls`.
pub(crate) fn service(calls: mpsc::Sender<LiveCall>) -> LiveServer<impl Live> {
    LiveServer::new(Service(Calls::new(calls)))
}

struct Service(Calls<LiveRequest, LiveResponse>);

#[tonic::async_trait]
impl Live for Service {
    type WatchStateStream = BoxStream<'static, Result<WatchStateResponse, Status>>;

    /// A state is asked for when it is time and whoever watches has room for it: none is kept for a slow reader.
    async fn watch_state(
        &self,
        request: tonic::Request<WatchStateRequest>,
    ) -> Result<Reply<Self::WatchStateStream>, Status> {
        let milliseconds = request.into_inner().interval_milliseconds;
        if !INTERVALS.contains(&milliseconds) {
            let (least, most) = INTERVALS.into_inner();
            return Err(Status::invalid_argument(format!(
                "an interval of {milliseconds} ms: expected {least} to {most}"
            )));
        }
        let mut ticks = interval(Duration::from_millis(milliseconds.into()));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let states = try_unfold((self.0.clone(), ticks), async |(calls, mut ticks)| {
            ticks.tick().await;
            let LiveResponse::State(state) = calls.ask(LiveRequest::GetState).await?;
            Ok(Some((*state, (calls, ticks))))
        });
        Ok(Reply::new(Box::pin(states)))
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

/// States that come one after the other.
pub struct States {
    connection: Connection,
    states: Streaming<WatchStateResponse>,
    interval: Duration,
}

impl States {
    /// Waits for the next one; `None`: the control plane ends.
    pub fn next(&mut self) -> Result<Option<WatchStateResponse>, CallError> {
        let States {
            connection,
            states,
            interval,
        } = self;
        connection.wait_for(connection.patience() + *interval, states.message())
    }
}
