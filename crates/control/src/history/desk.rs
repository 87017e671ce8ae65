//! Where questions about the past are answered: each in a task of its own, which reads the segments beside the loop.

use super::rows::{holder, live, row};
use super::{Address, Held, Query, Reader, Subject, Until, What};
use core::ops::ControlFlow;
use northbound::{
    Calls, FindHoldersRequest, FindHoldersResponse, FindSubscriberRequest, FindSubscriberResponse,
    HistoryCall, ListAlarmsResponse, ListEventsRequest, ListEventsResponse, Refusal, Request,
    Response,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;

/// Questions that read the disk at the same time; others wait.
const AT_ONCE: usize = 4;
/// Events in one part of an answer.
const PAGE: usize = 512;
/// The most of the latest events that are asked for.
const MOST: u32 = 100_000;
/// What has just happened is on its way to the disk for some milliseconds.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// See the module's page.
#[derive(Clone)]
pub(crate) struct Desk {
    reader: Reader,
    plane: Calls<Request, Response>,
    unix: fn() -> u32,
    turns: Arc<Semaphore>,
}

impl Desk {
    /// Answers from what `reader` reads and from what the control plane says, which `plane` leads to.
    pub fn new(reader: Reader, plane: mpsc::Sender<northbound::Call>, unix: fn() -> u32) -> Self {
        Desk {
            reader,
            plane: Calls::new(plane),
            unix,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Serves until nobody can ask any more.
    pub async fn run(self, mut calls: mpsc::Receiver<HistoryCall>) {
        while let Some(call) = calls.recv().await {
            let desk = self.clone();
            // whoever asked may have gone
            tokio::spawn(async move {
                match call {
                    HistoryCall::Events(request, parts) => desk.events(request, parts).await,
                    HistoryCall::Holders(request, reply) => {
                        let _ = reply.send(desk.holders(request).await);
                    }
                    HistoryCall::Subscriber(request, reply) => {
                        let _ = reply.send(desk.subscriber(request).await);
                    }
                    HistoryCall::Alarms(reply) => {
                        let _ = reply.send(desk.alarms().await);
                    }
                }
            });
        }
    }

    /// Reads beside the loop.
    async fn read<T: Send + 'static>(&self, f: impl FnOnce(&Reader) -> T + Send + 'static) -> T {
        let _turn = self.turns.acquire().await.expect("it is never closed");
        let reader = self.reader.clone();
        let done = spawn_blocking(move || f(&reader)).await;
        done.expect("a reader does not panic")
    }

    async fn events(
        &self,
        request: ListEventsRequest,
        parts: mpsc::Sender<Result<ListEventsResponse, Refusal>>,
    ) {
        let last = request.last;
        if last.is_some_and(|last| last > MOST) {
            let why = format!("at most {MOST} of the latest events can be asked for");
            let _ = parts.send(Err(Refusal::Failed(why))).await;
            return;
        }
        self.read(move |reader| {
            let query = query_of(reader, &request);
            match last {
                Some(last) => tell_last(reader, &query, last as usize, &parts),
                None => tell_all(reader, &query, &parts),
            }
        })
        .await;
    }

    async fn ask(&self, request: Request) -> Result<Response, Refusal> {
        let answer = self.plane.ask(request).await;
        answer.map_err(|status| Refusal::Failed(status.message().to_owned()))
    }

    async fn find(&self, what: &str) -> Result<FindSubscriberResponse, Refusal> {
        let subscriber = what.to_owned();
        match self.ask(Request::FindSubscriber { subscriber }).await? {
            Response::Subscriber(found) => Ok(found),
            other => Err(other_answer(&other)),
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
        let address = Address::parse(&request.address).ok_or_else(|| {
            Refusal::Failed(format!(
                "`{}` is no address: expected an IPv4 address, an IPv6 address or an IPv6 prefix",
                request.address
            ))
        })?;
        let mut held = self.held(&request, address).await?;
        if held.iter().any(|held| held.until == Until::Unknown(None)) {
            tokio::time::sleep(ON_ITS_WAY).await;
            held = self.held(&request, address).await?;
        }
        let at = when(&request, self.unix);
        let (then, others): (Vec<Held>, Vec<Held>) = held.into_iter().partition(|h| h.at(at));
        let others = match then.is_empty() {
            true => neighbours(others, at),
            false => Vec::new(),
        };
        Ok(FindHoldersResponse {
            at: at.into(),
            holders: then.into_iter().map(holder).collect(),
            others: others.into_iter().map(holder).collect(),
            oldest: self.reader.status().oldest.map(u64::from),
        })
    }

    async fn held(
        &self,
        request: &FindHoldersRequest,
        address: Address,
    ) -> Result<Vec<Held>, Refusal> {
        let asked = (self.unix)();
        let found = self.find(&request.address).await?;
        let live = found.subscribers.iter().filter_map(live).collect();
        let instances = found.network_instances as usize;
        let at = when(request, self.unix);
        let who = move |reader: &Reader| reader.who(address, at, instances, live, asked);
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

fn query_of(reader: &Reader, request: &ListEventsRequest) -> Query {
    let time = |at: Option<u64>| at.map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    let subject = (!request.subscriber.is_empty()).then(|| Subject::parse(&request.subscriber));
    let mut query = Query {
        subject,
        alarms: request.alarms,
        since: time(request.since),
        until: time(request.until),
    };
    // what befell the user planes that it was on is of interest, too
    if let Some(subject) = query.subject.take() {
        let planes = planes_of(
            reader,
            &Query {
                subject: Some(subject.clone()),
                ..query.clone()
            },
        );
        query.subject = Some(subject.and_resources(planes));
    }
    query
}

fn planes_of(reader: &Reader, query: &Query) -> Vec<String> {
    let mut planes = Vec::new();
    let mut looked_at = 0;
    reader.backward(query, |event| {
        if let What::Subscriber(who, _) = &event.what
            && !planes.iter().any(|known: &String| known == who.user_plane)
        {
            planes.push(who.user_plane.to_owned());
        }
        looked_at += 1;
        match looked_at < MOST {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    planes
}

type Parts = mpsc::Sender<Result<ListEventsResponse, Refusal>>;

fn tell_all(reader: &Reader, query: &Query, parts: &Parts) {
    let mut page = Vec::new();
    reader.forward(query, |event| {
        page.push(row(event));
        match page.len() < PAGE || tell(std::mem::take(&mut page), parts) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    tell(page, parts);
}

fn tell_last(reader: &Reader, query: &Query, last: usize, parts: &Parts) {
    let mut events = VecDeque::new();
    if last > 0 {
        reader.backward(query, |event| {
            events.push_front(row(event));
            match events.len() < last {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
    }
    while !events.is_empty() {
        let page = events.drain(..PAGE.min(events.len())).collect();
        if !tell(page, parts) {
            return;
        }
    }
}

/// False if whoever asked has gone.
fn tell(events: Vec<northbound::Event>, parts: &Parts) -> bool {
    events.is_empty()
        || parts
            .blocking_send(Ok(ListEventsResponse { events }))
            .is_ok()
}
