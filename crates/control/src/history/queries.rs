//! Queries about the history. Each runs in a task of its own and reads the database outside the control plane's loop.

use super::backup::{self, Backup};
use super::follow::FOLLOWERS;
use super::rows::{figure, holder, is_of_subscriber, live, row};
use super::{EFFORT, Extent, FigureQuery, Held, Query, Reader, Subject, Until, parse_prefix};
use crate::plane::Found;
use core::ops::ControlFlow;
use ipnet::IpNet;
use northbound::{
    Calls, EventKind, FindHoldersRequest, FindHoldersResponse, FindSubscriberRequest,
    FindSubscriberResponse, HistoryCall, ListAlarmsResponse, ListEventsRequest, ListEventsResponse,
    ListFiguresRequest, ListFiguresResponse, ListLinesRequest, ListLinesResponse,
    ListTroubleRequest, ListTroubleResponse, MOST_COUNTED, Matching, Refusal, Request, Response,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum number of queries that read the disk at the same time. Others wait.
const AT_ONCE: usize = 4;
/// Maximum number of event lists that are sent at the same time. Others are refused.
const LISTS: usize = 32;
/// The same of lists of lines and figures, each of which is put together as a whole.
const WHOLE_LISTS: usize = 4;
/// Time in which a client must read a part of a list. It may show the list page by page.
const READ_TIMEOUT: Duration = Duration::from_secs(600);
/// Time that figures are of where nothing else is said, in seconds.
const DAY: u32 = 86_400;
/// Events in one part of an answer.
const PAGE: usize = 512;
/// Maximum number of latest events in one request.
const MOST: u32 = 100_000;
/// Time to wait for an event that is not on disk yet.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// Service that answers the history calls of the local API.
#[derive(Clone)]
pub(crate) struct HistoryQueries {
    reader: Reader,
    /// Last block that is on the disk.
    pub(super) written: watch::Receiver<u64>,
    plane: Calls<Request, Response>,
    unix: fn() -> u32,
    turns: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    whole_lists: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    pub(super) followers: Arc<Semaphore>,
}

impl HistoryQueries {
    /// Answers from the database (`reader`) and from the control plane (`plane`). `written` says when there is more in the database.
    pub fn new(
        reader: Reader,
        written: watch::Receiver<u64>,
        plane: mpsc::Sender<northbound::Call>,
        unix: fn() -> u32,
    ) -> Self {
        HistoryQueries {
            reader,
            written,
            plane: Calls::new(plane),
            unix,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            lists: Arc::new(Semaphore::new(LISTS)),
            whole_lists: Arc::new(Semaphore::new(WHOLE_LISTS)),
            backups: Arc::new(Semaphore::new(1)),
            followers: Arc::new(Semaphore::new(FOLLOWERS)),
        }
    }

    /// Serves until every client handle is dropped.
    pub async fn run(self, mut calls: mpsc::Receiver<HistoryCall>) {
        while let Some(call) = calls.recv().await {
            let queries = self.clone();
            // whoever asked may have gone
            tokio::spawn(async move {
                match call {
                    HistoryCall::Events(request, parts) => queries.events(request, parts).await,
                    HistoryCall::Follow(request, parts) => queries.follow(request, parts).await,
                    HistoryCall::Lines(request, parts) => queries.lines(request, parts).await,
                    HistoryCall::Figures(request, parts) => queries.figures(request, parts).await,
                    HistoryCall::Trouble(request, reply) => {
                        let _ = reply.send(queries.trouble(request).await);
                    }
                    HistoryCall::Backup(parts) => queries.backup(parts).await,
                    HistoryCall::Holders(request, reply) => {
                        let _ = reply.send(queries.holders(request).await);
                    }
                    HistoryCall::Subscriber(request, reply) => {
                        let _ = reply.send(queries.subscriber(request).await);
                    }
                    HistoryCall::Alarms(reply) => {
                        let _ = reply.send(queries.alarms().await);
                    }
                }
            });
        }
    }

    /// Reads in a blocking thread, when it is this query's turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Reader) -> T + Send + 'static,
    ) -> T {
        let _turn = self.turns.acquire().await.expect("it is never closed");
        self.read_in_turn(f).await
    }

    async fn read_in_turn<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Reader) -> T + Send + 'static,
    ) -> T {
        let reader = self.reader.clone();
        let done = spawn_blocking(move || f(&reader)).await;
        done.expect("a reader does not panic")
    }

    async fn events(&self, request: ListEventsRequest, parts: mpsc::Sender<Part>) {
        let last = request.last;
        if last.is_some_and(|last| last > MOST) {
            let why = format!("at most {MOST} of the latest events can be asked for");
            let _ = parts.send(Err(Refusal::Invalid(why))).await;
            return;
        }
        let Ok(_list) = self.lists.try_acquire() else {
            let why = format!("{LISTS} lists of events are being read: stop one, or wait");
            let _ = parts.send(Err(Refusal::Busy(why))).await;
            return;
        };
        let mut listener = Listener::new(parts, self.turns.clone());
        listener.take_turn().await;
        self.read_in_turn(move |reader| {
            let query = query_of(reader, &request, &listener);
            match last {
                Some(last) => tell_last(reader, &query, (last as usize, request.count), listener),
                None => tell_all(reader, &query, request.count, listener),
            }
        })
        .await;
    }

    /// Copies the history beside the questions, one copy at a time.
    async fn backup(&self, parts: mpsc::Sender<backup::Part>) {
        let Ok(_only) = self.backups.try_acquire() else {
            let why = "a backup of the history is being made: wait until it is complete";
            let _ = parts.send(Err(Refusal::Busy(why.into()))).await;
            return;
        };
        let prepared = self.read_in_turn(|reader| Backup::prepare(reader, backup::RESERVE));
        let told = match prepared.await {
            Ok(backup) => backup.run(&parts).await,
            Err(error) => Err(error),
        };
        let told = told.map_err(|error| {
            let why = format!("the history is not copied: {error}");
            tracing::warn!("{why}");
            Refusal::Failed(why)
        });
        let _ = parts.send(told).await;
    }

    async fn lines(
        &self,
        request: ListLinesRequest,
        parts: mpsc::Sender<Result<ListLinesResponse, Refusal>>,
    ) {
        let Some(_list) = self.whole_list(&parts).await else {
            return;
        };
        let query = Query {
            subjects: subject(&request.subscriber).into_iter().collect(),
            since: time(request.since),
            ..Query::default()
        };
        let told = parts.clone();
        let found = self
            .read(move |reader| reader.lines(&query, || !told.is_closed()))
            .await;
        let mut pages = found.lines.chunks(PAGE).peekable();
        while let Some(page) = pages.next() {
            let part = ListLinesResponse {
                lines: page.to_vec(),
                more: found.more && pages.peek().is_none(),
            };
            if parts.send_timeout(Ok(part), READ_TIMEOUT).await.is_err() {
                return;
            }
        }
    }

    async fn trouble(&self, request: ListTroubleRequest) -> Result<ListTroubleResponse, Refusal> {
        let kind = match request.kind() {
            EventKind::Unspecified => None,
            kind @ (EventKind::Ended | EventKind::Failed | EventKind::Refused) => Some(kind),
            _ => {
                let why = "this kind is not counted: expected ended, failed or refused";
                return Err(Refusal::Invalid(why.into()));
            }
        };
        let until = time(request.until).unwrap_or_else(self.unix);
        let trouble = self.read(move |reader| reader.trouble(until, kind)).await;
        Ok(ListTroubleResponse { trouble })
    }

    /// Leave to put a list together; without it the client is told.
    async fn whole_list<T>(
        &self,
        parts: &mpsc::Sender<Result<T, Refusal>>,
    ) -> Option<SemaphorePermit<'_>> {
        let list = self.whole_lists.try_acquire().ok();
        if list.is_none() {
            let why = format!(
                "{WHOLE_LISTS} lists of lines or figures are being read: stop one, or wait"
            );
            let _ = parts.send(Err(Refusal::Busy(why))).await;
        }
        list
    }

    async fn figures(
        &self,
        request: ListFiguresRequest,
        parts: mpsc::Sender<Result<ListFiguresResponse, Refusal>>,
    ) {
        let Some(_list) = self.whole_list(&parts).await else {
            return;
        };
        let now = (self.unix)();
        let until = time(request.until).unwrap_or(now.saturating_add(1));
        let query = FigureQuery {
            name: request.name,
            resource: request.resource,
            since: time(request.since).unwrap_or(until.saturating_sub(DAY)),
            until,
        };
        if query.since > query.until {
            let why = "figures end before they begin: `until` is before `since`".to_owned();
            let _ = parts.send(Err(Refusal::Invalid(why))).await;
            return;
        }
        let figures = self.read(move |reader| reader.figures(&query, now)).await;
        for page in figures.chunks(PAGE) {
            let figures = page.iter().map(figure).collect();
            let part = ListFiguresResponse { figures };
            if parts.send_timeout(Ok(part), READ_TIMEOUT).await.is_err() {
                return;
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<Response, Refusal> {
        let answer = self.plane.ask(request).await;
        answer.map_err(|status| Refusal::Failed(status.message().to_owned()))
    }

    async fn find(&self, what: &str) -> Result<FindSubscriberResponse, Refusal> {
        let (mut all, mut from) = (Found::default(), 0);
        loop {
            let subscriber = what.to_owned();
            let answer = self.ask(Request::FindSubscriber { subscriber, from });
            let next = match answer.await? {
                Response::Subscriber { found, next } => {
                    all.add(found);
                    next
                }
                other => return Err(other_answer(&other)),
            };
            match next.filter(|_| !all.is_complete()) {
                Some(next) => from = next,
                None => return Ok(all.answer()),
            }
        }
    }

    async fn alarms(&self) -> Result<ListAlarmsResponse, Refusal> {
        match self.ask(Request::ListAlarms).await? {
            Response::Alarms(alarms) => Ok(alarms),
            other => Err(other_answer(&other)),
        }
    }

    async fn subscriber(
        &self,
        request: FindSubscriberRequest,
    ) -> Result<FindSubscriberResponse, Refusal> {
        self.find(&request.subscriber).await
    }

    async fn holders(&self, request: FindHoldersRequest) -> Result<FindHoldersResponse, Refusal> {
        let prefix = parse_prefix(&request.address).ok_or_else(|| {
            Refusal::Invalid(format!(
                "`{}` is no address: expected an IPv4 or IPv6 address or prefix",
                request.address
            ))
        })?;
        let mut held = self.held(&request, prefix).await?;
        if held.iter().any(|held| held.until == Until::Unknown(None)) {
            tokio::time::sleep(ON_ITS_WAY).await;
            held = self.held(&request, prefix).await?;
        }
        let at = when(&request, self.unix);
        let (then, others): (Vec<Held>, Vec<Held>) = held.into_iter().partition(|h| h.at(at));
        let others = match then.is_empty() {
            true => neighbours(others, at),
            false => Vec::new(),
        };
        let row = |held| holder(held, prefix);
        Ok(FindHoldersResponse {
            at: at.into(),
            holders: then.into_iter().map(row).collect(),
            others: others.into_iter().map(row).collect(),
            oldest: self.reader.status().oldest.map(u64::from),
        })
    }

    async fn held(
        &self,
        request: &FindHoldersRequest,
        prefix: IpNet,
    ) -> Result<Vec<Held>, Refusal> {
        let asked = (self.unix)();
        let found = self.find(&request.address).await?;
        let live = found.subscribers.iter().filter_map(live).collect();
        let instances = found.network_instances as usize;
        let at = when(request, self.unix);
        let who = move |reader: &Reader| reader.who(prefix, at, instances, live, asked);
        Ok(self.read(who).await)
    }
}

fn other_answer(answer: &Response) -> Refusal {
    Refusal::Failed(format!(
        "the plane answered another request: {answer:.100?}"
    ))
}

fn when(request: &FindHoldersRequest, unix: fn() -> u32) -> u32 {
    let at = request.at.map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    at.unwrap_or_else(unix)
}

/// The last one before that time, and the first one after it.
fn neighbours(others: Vec<Held>, at: u32) -> Vec<Held> {
    let (after, before): (Vec<Held>, Vec<Held>) = others
        .into_iter()
        .partition(|held| held.from.is_some_and(|from| from > at));
    before
        .into_iter()
        .last()
        .into_iter()
        .chain(after.into_iter().next())
        .collect()
}

/// A time of a request, as the history counts it.
fn time(at: Option<u64>) -> Option<u32> {
    at.map(|at| u32::try_from(at).unwrap_or(u32::MAX))
}

/// The subject of a request; `None` for all.
pub(super) fn subject(text: &str) -> Option<Subject> {
    (!text.is_empty()).then(|| Subject::of_events(text))
}

fn query_of(reader: &Reader, request: &ListEventsRequest, listener: &Listener) -> Query {
    let subjects = [&request.subscriber, &request.also];
    let subjects: Vec<Subject> = subjects.iter().filter_map(|text| subject(text)).collect();
    let mut query = Query {
        subjects,
        kinds: Vec::new(),
        alarms: request.alarms,
        since: time(request.since),
        until: time(request.until),
    };
    let kinds: Vec<EventKind> = request.kinds().collect();
    // what befell the user planes that it was on is of interest, too
    let of_planes = kinds.is_empty() || kinds.iter().any(|kind| !is_of_subscriber(*kind));
    if of_planes && !query.subjects.is_empty() {
        let planes = reader.user_planes(&query, MOST as usize, listener.is_there());
        let subjects = std::mem::take(&mut query.subjects).into_iter();
        let with_planes = subjects.map(|subject| subject.and_resources(planes.iter().cloned()));
        query.subjects = with_planes.collect();
    }
    query.kinds = kinds;
    query
}

fn tell_all(reader: &Reader, query: &Query, count: bool, mut listener: Listener) {
    let (mut page, mut events) = (Vec::new(), 0);
    reader.visit(query, false, listener.is_there(), |number, event| {
        page.push(row(number, event));
        events += 1;
        match page.len() < PAGE || listener.tell(std::mem::take(&mut page)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    if listener.tell(page) && count {
        let or_more = false;
        listener.tell_count(Matching { events, or_more });
    }
}

fn tell_last(reader: &Reader, query: &Query, (last, count): (usize, bool), mut listener: Listener) {
    let extent = Extent {
        told: last,
        counted: if count { last.max(MOST_COUNTED) } else { last },
        effort: EFFORT,
    };
    let mut events = VecDeque::new();
    let matching = reader.latest(query, extent, listener.is_there(), |number, event| {
        events.push_front(row(number, event));
    });
    if count && !listener.tell_count(matching) {
        return;
    }
    while !events.is_empty() {
        let page = events.drain(..PAGE.min(events.len())).collect();
        if !listener.tell(page) {
            return;
        }
    }
}

type Part = Result<ListEventsResponse, Refusal>;

/// Whoever asked for a list of events, with the turn to read it.
struct Listener {
    parts: mpsc::Sender<Part>,
    /// Where it is said that the list is not whole.
    last_word: Option<mpsc::OwnedPermit<Part>>,
    turns: Arc<Semaphore>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Listener {
    fn new(parts: mpsc::Sender<Part>, turns: Arc<Semaphore>) -> Self {
        Listener {
            last_word: parts.clone().try_reserve_owned().ok(),
            parts,
            turns,
            turn: None,
        }
    }

    async fn take_turn(&mut self) {
        self.turn = self.turns.clone().acquire_owned().await.ok();
    }

    /// Whether anybody waits for the next segment.
    fn is_there(&self) -> impl FnMut() -> bool + use<> {
        let parts = self.parts.clone();
        move || !parts.is_closed()
    }

    /// Tells events. False if whoever asked has gone, or does not read. While they do not, others have the turn.
    fn tell(&mut self, events: Vec<northbound::Event>) -> bool {
        let part = ListEventsResponse {
            events,
            ..ListEventsResponse::default()
        };
        part.events.is_empty() || self.send(part)
    }

    /// Tells how many events match.
    fn tell_count(&mut self, count: Matching) -> bool {
        self.send(ListEventsResponse {
            events: Vec::new(),
            matching: Some(count.events),
            or_more: count.or_more,
        })
    }

    fn send(&mut self, part: ListEventsResponse) -> bool {
        match self.parts.try_send(Ok(part)) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(part)) => {
                self.turn = None;
                Handle::current().block_on(self.wait_and_tell(part))
            }
        }
    }

    async fn wait_and_tell(&mut self, part: Part) -> bool {
        let Ok(sent) = timeout(READ_TIMEOUT, self.parts.send(part)).await else {
            let why = format!(
                "the list ends here: the client read nothing for {} s",
                READ_TIMEOUT.as_secs()
            );
            if let Some(last_word) = self.last_word.take() {
                last_word.send(Err(Refusal::Failed(why)));
            }
            return false;
        };
        self.take_turn().await;
        sent.is_ok()
    }
}
