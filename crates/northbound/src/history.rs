//! The history service's side of the socket, and the command line's.

use crate::history_client::HistoryClient as Generated;
use crate::history_server::{History, HistoryServer};
use crate::{
    BackupRequest, BackupResponse, CallError, Connection, Event, EventKind, Explanation, Figure,
    FindHoldersRequest, FindHoldersResponse, FindSubscriberRequest, FindSubscriberResponse,
    FollowEventsRequest, FollowEventsResponse, LineHistory, ListAlarmsRequest, ListAlarmsResponse,
    ListEventsRequest, ListEventsResponse, ListFiguresRequest, ListFiguresResponse,
    ListLinesRequest, ListLinesResponse, ListTroubleRequest, ListTroubleResponse, Refusal, Trouble,
};
use futures_util::stream::{BoxStream, unfold};
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Channel;
use tonic::{Response as Reply, Status, Streaming};

/// How long a question about years may take.
const PATIENCE_FOR_YEARS: Duration = Duration::from_secs(60);
/// The largest request that is read, in octets: names and addresses are short.
const MAX_REQUEST: usize = 4096;
/// Parts of an answer that wait for whoever asked.
const PARTS: usize = 4;

/// Matching events that are counted at most, where only the latest are told.
pub const MOST_COUNTED: usize = 10_000;

/// Number of matching events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matching {
    /// Events that were counted.
    pub events: u64,
    /// There may be more.
    pub or_more: bool,
}

impl Matching {
    /// The number in a part of an answer, if there is one. Earlier versions do not say that there may be more than the [`MOST_COUNTED`] that
    /// they counted.
    pub fn of(part: &ListEventsResponse) -> Option<Self> {
        part.matching.map(|events| Matching {
            events,
            or_more: part.or_more || events == MOST_COUNTED as u64,
        })
    }
}

impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_more = if self.or_more { " or more" } else { "" };
        write!(f, "{}{or_more}", self.events)
    }
}

impl FollowEventsRequest {
    /// Records of sessions that were counted from a time on, or behind a record, and before a time.
    pub fn of_records(since: Option<u64>, until: Option<u64>, after: Option<u64>) -> Self {
        let mut request = FollowEventsRequest {
            after,
            since: since.or(Some(0)),
            until: until.or(Some(u64::MAX)),
            ..FollowEventsRequest::default()
        };
        request.push_kinds(EventKind::Counted);
        request
    }
}

impl FollowEventsResponse {
    /// Refuses to go on behind a number if that would leave something out.
    ///
    /// # Errors
    /// Events are gone; the sentence says what to do.
    pub fn refuse_gap(&self) -> Result<(), String> {
        match self.lost {
            0 => Ok(()),
            lost => Err(format!(
                "{lost} events at least behind that number are not in the history any more, and records may be among them: ask with \
                 `since` for those that are"
            )),
        }
    }
}

/// What the history is asked, with the place for the answer.
#[derive(Debug)]
pub enum HistoryCall {
    /// What happened, part by part; dropping the place ends the answer.
    Events(
        ListEventsRequest,
        mpsc::Sender<Result<ListEventsResponse, Refusal>>,
    ),
    /// What happens, as it happens, part by part; dropping the place ends the answer.
    Follow(
        FollowEventsRequest,
        mpsc::Sender<Result<FollowEventsResponse, Refusal>>,
    ),
    /// What happened on access lines, part by part; dropping the place ends the answer.
    Lines(
        ListLinesRequest,
        mpsc::Sender<Result<ListLinesResponse, Refusal>>,
    ),
    /// Figures over time, part by part; dropping the place ends the answer.
    Figures(
        ListFiguresRequest,
        mpsc::Sender<Result<ListFiguresResponse, Refusal>>,
    ),
    /// Where sessions ended and set-ups failed.
    Trouble(
        ListTroubleRequest,
        oneshot::Sender<Result<ListTroubleResponse, Refusal>>,
    ),
    /// A backup: how far it is, until it is complete; dropping the place ends it.
    Backup(mpsc::Sender<Result<BackupResponse, Refusal>>),
    /// Who had an address.
    Holders(
        FindHoldersRequest,
        oneshot::Sender<Result<FindHoldersResponse, Refusal>>,
    ),
    /// What is known of a subscriber.
    Subscriber(
        FindSubscriberRequest,
        oneshot::Sender<Result<FindSubscriberResponse, Refusal>>,
    ),
    /// What is wrong now.
    Alarms(oneshot::Sender<Result<ListAlarmsResponse, Refusal>>),
}

/// The service, which hands every request to `calls`.
pub(crate) fn service(calls: mpsc::Sender<HistoryCall>) -> HistoryServer<impl History> {
    HistoryServer::new(Service(calls)).max_decoding_message_size(MAX_REQUEST)
}

struct Service(mpsc::Sender<HistoryCall>);

/// An answer in parts.
type Parts<T> = BoxStream<'static, Result<T, Status>>;

fn gone<T>(_: T) -> Status {
    Status::unavailable("the daemon is shutting down")
}

impl Service {
    async fn ask<T>(
        &self,
        call: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> HistoryCall,
    ) -> Result<Reply<T>, Status> {
        let (reply, answer) = oneshot::channel();
        self.0.send(call(reply)).await.map_err(gone)?;
        Ok(Reply::new(answer.await.map_err(gone)??))
    }

    async fn stream<T: Send + 'static>(
        &self,
        call: impl FnOnce(mpsc::Sender<Result<T, Refusal>>) -> HistoryCall,
    ) -> Result<Reply<Parts<T>>, Status> {
        let (part, parts) = mpsc::channel(PARTS);
        self.0.send(call(part)).await.map_err(gone)?;
        let told = unfold(parts, async |mut parts| {
            let part: Result<_, Refusal> = parts.recv().await?;
            Some((part.map_err(Status::from), parts))
        });
        Ok(Reply::new(Box::pin(told)))
    }
}

#[tonic::async_trait]
impl History for Service {
    type ListEventsStream = Parts<ListEventsResponse>;
    type FollowEventsStream = Parts<FollowEventsResponse>;
    type ListLinesStream = Parts<ListLinesResponse>;
    type ListFiguresStream = Parts<ListFiguresResponse>;
    type BackupStream = Parts<BackupResponse>;

    async fn list_events(
        &self,
        request: tonic::Request<ListEventsRequest>,
    ) -> Result<Reply<Self::ListEventsStream>, Status> {
        self.stream(|parts| HistoryCall::Events(request.into_inner(), parts))
            .await
    }

    async fn follow_events(
        &self,
        request: tonic::Request<FollowEventsRequest>,
    ) -> Result<Reply<Self::FollowEventsStream>, Status> {
        self.stream(|parts| HistoryCall::Follow(request.into_inner(), parts))
            .await
    }

    async fn list_lines(
        &self,
        request: tonic::Request<ListLinesRequest>,
    ) -> Result<Reply<Self::ListLinesStream>, Status> {
        self.stream(|parts| HistoryCall::Lines(request.into_inner(), parts))
            .await
    }

    async fn list_figures(
        &self,
        request: tonic::Request<ListFiguresRequest>,
    ) -> Result<Reply<Self::ListFiguresStream>, Status> {
        self.stream(|parts| HistoryCall::Figures(request.into_inner(), parts))
            .await
    }

    async fn backup(
        &self,
        _: tonic::Request<BackupRequest>,
    ) -> Result<Reply<Self::BackupStream>, Status> {
        self.stream(HistoryCall::Backup).await
    }

    async fn find_holders(
        &self,
        request: tonic::Request<FindHoldersRequest>,
    ) -> Result<Reply<FindHoldersResponse>, Status> {
        self.ask(|reply| HistoryCall::Holders(request.into_inner(), reply))
            .await
    }

    async fn list_alarms(
        &self,
        _: tonic::Request<ListAlarmsRequest>,
    ) -> Result<Reply<ListAlarmsResponse>, Status> {
        self.ask(HistoryCall::Alarms).await
    }

    async fn list_trouble(
        &self,
        request: tonic::Request<ListTroubleRequest>,
    ) -> Result<Reply<ListTroubleResponse>, Status> {
        self.ask(|reply| HistoryCall::Trouble(request.into_inner(), reply))
            .await
    }

    async fn find_subscriber(
        &self,
        request: tonic::Request<FindSubscriberRequest>,
    ) -> Result<Reply<FindSubscriberResponse>, Status> {
        self.ask(|reply| HistoryCall::Subscriber(request.into_inner(), reply))
            .await
    }
}

/// A connection to the history of a control plane. Each call waits for its answer.
pub struct HistoryClient {
    connection: Connection,
    client: Generated<Channel>,
}

impl HistoryClient {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client = Generated::new(connection.channel());
        Ok(HistoryClient { connection, client })
    }

    /// What happened, in its order, one event after the other as they come. Stops when `tell` says false. Returns how many events match, if
    /// that was asked for.
    pub fn events(
        &mut self,
        request: ListEventsRequest,
        mut tell: impl FnMut(Event) -> bool,
    ) -> Result<Option<Matching>, CallError> {
        let HistoryClient { connection, client } = self;
        let listing = connection.wait_for(PATIENCE_FOR_YEARS, client.list_events(request))?;
        let (mut listing, mut matching) = (listing.into_inner(), None);
        while let Some(part) = connection.wait_for(PATIENCE_FOR_YEARS, listing.message())? {
            matching = Matching::of(&part).or(matching);
            for event in part.events {
                if !tell(event) {
                    return Ok(None);
                }
            }
        }
        Ok(matching)
    }

    /// What happens, as it happens.
    ///
    /// # Errors
    /// Too many follow already, or the control plane does not answer.
    pub fn follow(mut self, request: FollowEventsRequest) -> Result<Followed, CallError> {
        let parts = self.connection.wait(self.client.follow_events(request))?;
        Ok(Followed {
            connection: self.connection,
            parts: parts.into_inner(),
        })
    }

    /// Records of sessions, part by part as they come. Stops when `tell` says false.
    ///
    /// # Errors
    /// Some behind `after` are gone, too many clients follow events, or the control plane does not answer to the end.
    pub fn records(
        &mut self,
        request: FollowEventsRequest,
        mut tell: impl FnMut(Vec<Event>) -> bool,
    ) -> Result<(), CallError> {
        let HistoryClient { connection, client } = self;
        let parts = connection.wait(client.follow_events(request))?;
        let mut parts = parts.into_inner();
        loop {
            let part = connection.wait_for(PATIENCE_FOR_YEARS, parts.message())?;
            let part = part.ok_or(CallError::Broken(ErrorKind::UnexpectedEof.into()))?;
            part.refuse_gap().map_err(CallError::Refused)?;
            let complete = part.complete;
            if !tell(part.events) || complete {
                return Ok(());
            }
        }
    }

    /// What happened on access lines, and whether lines were left out. The line that was heard of last comes first.
    pub fn lines(
        &mut self,
        request: ListLinesRequest,
    ) -> Result<(Vec<LineHistory>, bool), CallError> {
        let HistoryClient { connection, client } = self;
        let listing = connection.wait_for(PATIENCE_FOR_YEARS, client.list_lines(request))?;
        let (mut listing, mut lines, mut more) = (listing.into_inner(), Vec::new(), false);
        while let Some(part) = connection.wait_for(PATIENCE_FOR_YEARS, listing.message())? {
            lines.extend(part.lines);
            more |= part.more;
        }
        Ok((lines, more))
    }

    /// Figures over time, series by series.
    pub fn figures(&mut self, request: ListFiguresRequest) -> Result<Vec<Figure>, CallError> {
        let HistoryClient { connection, client } = self;
        let listing = connection.wait_for(PATIENCE_FOR_YEARS, client.list_figures(request))?;
        let (mut listing, mut figures) = (listing.into_inner(), Vec::new());
        while let Some(part) = connection.wait_for(PATIENCE_FOR_YEARS, listing.message())? {
            figures.extend(part.figures);
        }
        Ok(figures)
    }

    /// Copies the history. `tell` hears how far it is, each second; returns the last of it, with the path.
    pub fn backup(
        &mut self,
        mut tell: impl FnMut(&BackupResponse),
    ) -> Result<BackupResponse, CallError> {
        let HistoryClient { connection, client } = self;
        let telling = connection.wait_for(PATIENCE_FOR_YEARS, client.backup(BackupRequest {}))?;
        let (mut telling, mut last) = (telling.into_inner(), BackupResponse::default());
        while let Some(told) = connection.wait_for(PATIENCE_FOR_YEARS, telling.message())? {
            tell(&told);
            last = told;
        }
        Ok(last)
    }

    /// Who had an address.
    pub fn holders(
        &mut self,
        address: &str,
        at: Option<u64>,
    ) -> Result<FindHoldersResponse, CallError> {
        let address = address.to_owned();
        let answer = self.client.find_holders(FindHoldersRequest { address, at });
        let answer = self.connection.wait_for(PATIENCE_FOR_YEARS, answer)?;
        Ok(answer.into_inner())
    }

    /// Where sessions ended and set-ups failed, hour by hour.
    pub fn trouble(&mut self, request: ListTroubleRequest) -> Result<Vec<Trouble>, CallError> {
        let HistoryClient { connection, client } = self;
        let told = connection.wait_for(PATIENCE_FOR_YEARS, client.list_trouble(request))?;
        Ok(told.into_inner().trouble)
    }

    /// What is wrong now.
    pub fn alarms(&mut self) -> Result<ListAlarmsResponse, CallError> {
        let answer = self.client.list_alarms(ListAlarmsRequest {});
        Ok(self.connection.wait(answer)?.into_inner())
    }

    /// Why a subscriber is online or not.
    pub fn explain(&mut self, subscriber: &str) -> Result<Explanation, CallError> {
        let explanation = Explanation::of(self.connection.channel(), subscriber);
        self.connection.wait_for(PATIENCE_FOR_YEARS, explanation)
    }

    /// What is known of a subscriber.
    pub fn subscriber(&mut self, subscriber: &str) -> Result<FindSubscriberResponse, CallError> {
        let subscriber = subscriber.to_owned();
        let answer = self
            .client
            .find_subscriber(FindSubscriberRequest { subscriber });
        Ok(self.connection.wait(answer)?.into_inner())
    }
}

/// Events that come one after the other.
pub struct Followed {
    connection: Connection,
    parts: Streaming<FollowEventsResponse>,
}

impl Followed {
    /// What came within this time: `Ok(None)` if nothing did.
    ///
    /// # Errors
    /// The control plane has ended, or does not answer any more.
    pub fn next(&mut self, within: Duration) -> Result<Option<FollowEventsResponse>, CallError> {
        match self.connection.wait_for(within, self.parts.message()) {
            Ok(None) => Err(CallError::Broken(ErrorKind::UnexpectedEof.into())),
            Err(CallError::Broken(why)) if why.kind() == ErrorKind::TimedOut => Ok(None),
            told => told,
        }
    }
}
