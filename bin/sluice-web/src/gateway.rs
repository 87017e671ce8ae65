//! The control plane, as this server asks it: rows of the catalogue's tables in the JSON that `sluice show --json` prints.

use crate::changes::MAX_DOCUMENT;
use crate::problem::Problem;
use crate::query::{Arguments, Query};
use northbound::catalogue::{
    ACKNOWLEDGE_ALARM, Action, BACKUP_HISTORY, CHECK, CLEAR_BACK_OFF, CLEAR_SESSION,
    CLEAR_SESSIONS, DRAIN_USER_PLANE, MOVE_AGGREGATE, Table, WATCH_SESSION,
};
use northbound::configuration_client::ConfigurationClient;
use northbound::control_plane_client::ControlPlaneClient;
use northbound::history_client::HistoryClient;
use northbound::tables_client::TablesClient;
use northbound::{
    AcknowledgeAlarmRequest, Association, BackupRequest, BackupResponse, CheckLedgerRequest,
    CheckUserPlaneLedgerRequest, ClearBackOffRequest, ClearSessionRequest, DaemonRow, EventKind,
    LineRow, ListAaaServersRequest, ListAclRulesRequest, ListAlarmsRequest,
    ListAssociationsRequest, ListDropsRequest, ListEventsRequest, ListEventsResponse,
    ListFiguresRequest, ListFiguresResponse, ListLinesRequest, ListNeighboursRequest,
    ListPoliciesRequest, ListPoolsRequest, ListPoolsResponse, ListPortsRequest,
    ListQueueAggregatesRequest, ListQueueAggregatesResponse, ListRoutesRequest,
    ListSessionClearsRequest, ListSessionsRequest, ListTroubleRequest, ListUserPlaneDropsRequest,
    ListUserPlanesRequest, ListVersionsRequest, Matching, MoveAggregateRequest, Process,
    QueueAggregate, Session, SubscriberRow, WatchRulesRequest, WatchStateResponse,
    WatchedUserPlane, WorkerRow, time,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// How far back the events of lines count where nothing else is said, in seconds.
const DAY: u64 = 24 * 60 * 60;
/// Events where neither their number nor a time is asked for.
const LATEST: u32 = 100;
/// The first state comes at once, whatever the time to the next, in seconds.
const INTERVAL: u32 = 60;
/// Tables that are put together of all sessions, and audits, at once. At 131,072 sessions one takes some 400 MB for a moment.
const WHOLE: usize = 1;
/// The largest answer about the configuration: it may have the configuration in two forms, with more around the texts than they have.
const LARGEST_ANSWER: usize = 4 * MAX_DOCUMENT;
/// Documents of the configuration at once. One of 16 MiB takes some 100 MB for a moment.
const DOCUMENTS: usize = 1;

/// Seconds for which the rules of a session are watched if nothing else is said.
const WATCH: u64 = 60;

/// The actions that are offered.
pub const ACTIONS: [&Action; 9] = [
    &CLEAR_SESSION,
    &CLEAR_SESSIONS,
    &CLEAR_BACK_OFF,
    &ACKNOWLEDGE_ALARM,
    &WATCH_SESSION,
    &CHECK,
    &BACKUP_HISTORY,
    &DRAIN_USER_PLANE,
    &MOVE_AGGREGATE,
];

/// A page of a table.
#[derive(Debug, Default, Serialize)]
pub struct Page {
    /// Its rows.
    pub rows: Vec<Value>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<u64>,
    /// How many rows all pages have together, where that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// There may be more of them than `total` says.
    #[serde(skip_serializing_if = "Not::not")]
    pub or_more: bool,
    /// Why any user plane could not be asked.
    pub missing: Vec<String>,
}

/// The way to the control plane.
#[derive(Clone, Debug)]
pub struct Gateway {
    channel: Channel,
    socket: Arc<PathBuf>,
    whole: Arc<Semaphore>,
    documents: Arc<Semaphore>,
}

impl Gateway {
    /// The control plane that listens on this socket. It is connected to when it is first asked.
    pub fn new(socket: &Path) -> Self {
        Gateway {
            channel: northbound::channel(socket),
            socket: Arc::new(socket.to_owned()),
            whole: Arc::new(Semaphore::new(WHOLE)),
            documents: Arc::new(Semaphore::new(DOCUMENTS)),
        }
    }

    /// What a client is told when the control plane gives no answer.
    pub fn problem(&self, status: &Status) -> Problem {
        Problem::of(status, &self.socket)
    }

    /// The turn of a request that reads or writes a document of the configuration. Nobody closes what it waits for.
    pub async fn document(&self) -> Option<OwnedSemaphorePermit> {
        self.documents.clone().acquire_owned().await.ok()
    }

    /// A page of a table.
    ///
    /// # Errors
    /// What the control plane or the user plane that is asked for refuses, or why it does not answer.
    pub async fn page(&self, table: &Table, query: &Query) -> Result<Page, Status> {
        match table.name {
            "sessions" => self.sessions(query).await,
            "session-clears" => {
                let request = ListSessionClearsRequest {};
                let asked = self.control_plane().list_session_clears(request).await?;
                Ok(cut(asked.into_inner().clears, query))
            }
            "subscribers" => self.subscribers(query).await,
            "lines" => self.lines(query).await,
            "trouble" => self.trouble(query).await,
            "session-counts" => {
                let counts = self.state().await?.sessions.unwrap_or_default();
                Ok(cut([counts], query))
            }
            "waits" => Ok(cut([self.state().await?.waits.unwrap_or_default()], query)),
            "user-planes" => Ok(cut(self.user_planes().await?, query)),
            "ports" => self.ports(query).await,
            "routes" => self.routes(query).await,
            "neighbours" => self.neighbours(query).await,
            "daemons" => Ok(self.daemons(query).await),
            "workers" => self.watched(query, WorkerRow::of).await,
            "acl" => self.acl_rules(query).await,
            "policies" => self.policies(query).await,
            "qos session" => self.queues(query).await,
            "qos aggregates" => self.queue_aggregates(query).await,
            "protection" => self.watched(query, |plane| plane.offenders).await,
            "lag-members" => self.watched(query, |plane| plane.lag_members).await,
            "pools" => self.pools(query).await,
            "associations" => Ok(cut(self.associations().await?, query)),
            "aaa-servers" => {
                let request = ListAaaServersRequest {};
                let asked = self.tables().list_aaa_servers(request).await?;
                Ok(cut(asked.into_inner().servers, query))
            }
            "alarms" => {
                let asked = self.history().list_alarms(ListAlarmsRequest {}).await?;
                Ok(cut(asked.into_inner().alarms, query))
            }
            "alarms history" => self.alarm_history(query).await,
            "events" => self.happened(query).await,
            "figures" => self.figures(query).await,
            "drops" => self.drops(query).await,
            "versions" => {
                let request = ListVersionsRequest {};
                let asked = self.configuration().list_versions(request).await?;
                Ok(cut(asked.into_inner().versions, query))
            }
            other => Err(Status::not_found(format!("there is no table {other}"))),
        }
    }

    /// Carries out an action on behalf of a person. Returns what it says, if it says something.
    ///
    /// # Errors
    /// What the control plane refuses, or why it does not answer.
    pub async fn act(
        &self,
        action: &Action,
        arguments: &Arguments,
        person: &str,
    ) -> Result<Option<Value>, Status> {
        let mut client = self.control_plane();
        let text = |name| arguments.text(name).unwrap_or_default().to_owned();
        match action.name {
            "clear session" => {
                let id = text("session");
                let request = northbound::on_behalf_of(person, ClearSessionRequest { id });
                client.clear_session(request).await.map(|_| None)
            }
            "clear sessions" => self.clear_sessions(arguments, person).await.map(Some),
            "clear back-off" => {
                let who = text("who");
                let request = northbound::on_behalf_of(person, ClearBackOffRequest { who });
                client.clear_back_off(request).await.map(|_| None)
            }
            "acknowledge alarm" => {
                let request = AcknowledgeAlarmRequest {
                    alarm: text("alarm"),
                    resource: arguments.text("resource").map(str::to_owned),
                    comment: text("comment"),
                };
                let request = northbound::on_behalf_of(person, request);
                client.acknowledge_alarm(request).await.map(|_| None)
            }
            "watch session" => {
                let seconds = arguments.number("seconds").unwrap_or(WATCH);
                let request = WatchRulesRequest {
                    id: text("session"),
                    seconds: seconds.try_into().unwrap_or(u32::MAX),
                };
                let request = northbound::on_behalf_of(person, request);
                client.watch_rules(request).await.map(|_| None)
            }
            "check" => {
                let ledger = self.audit(arguments.flag("repair"), person).await?;
                Ok(Some(ledger))
            }
            "backup history" => self.backup(person).await.map(Some),
            "drain user-plane" => self.drain(arguments, person).await.map(Some),
            "move aggregate" => {
                let worker = arguments.number("worker").unwrap_or_default();
                let worker = worker.try_into().unwrap_or(u32::MAX);
                let request = MoveAggregateRequest::named(&text("aggregate"), worker)?;
                let request = northbound::on_behalf_of(person, request);
                let moved = client.move_aggregate(request).await?.into_inner();
                let split = moved.split_subscribers;
                Ok(Some(
                    json!({ "sessions": moved.sessions, "split_subscribers": split }),
                ))
            }
            other => Err(Status::not_found(format!("there is no action {other}"))),
        }
    }

    /// The resource audit of every plane. A user plane that does not answer is told, and the others are audited.
    async fn audit(&self, repair: bool, person: &str) -> Result<Value, Status> {
        let _one = self.whole.acquire().await;
        let mut client = self.control_plane();
        let request = northbound::on_behalf_of(person, CheckLedgerRequest { repair });
        let own = client.check_ledger(request).await?.into_inner().ledger;
        let (mut all, mut missing) = (own.unwrap_or_default(), Vec::new());
        for plane in self.associations().await? {
            let request = CheckUserPlaneLedgerRequest {
                user_plane: plane.node_id,
                repair,
            };
            let request = northbound::on_behalf_of(person, request);
            match client.check_user_plane_ledger(request).await {
                Ok(told) => all.add(told.into_inner().ledger.unwrap_or_default()),
                Err(status) => missing.push(status.message().to_owned()),
            }
        }
        Ok(json!({
            "balanced": all.is_balanced(),
            "accounts": all.accounts,
            "findings": all.findings,
            "missing": missing,
        }))
    }

    /// A copy of the history. It ends early if whoever asked for it goes.
    async fn backup(&self, person: &str) -> Result<Value, Status> {
        let request = northbound::on_behalf_of(person, BackupRequest {});
        let mut telling = self.history().backup(request).await?.into_inner();
        let mut last = BackupResponse::default();
        while let Some(told) = telling.message().await? {
            last = told;
        }
        Ok(json!({ "path": last.path, "octets": last.octets }))
    }

    fn tables(&self) -> TablesClient<Channel> {
        TablesClient::new(self.channel.clone())
    }

    /// The connection to it.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Its client of the sessions.
    pub fn control_plane(&self) -> ControlPlaneClient<Channel> {
        ControlPlaneClient::new(self.channel.clone())
    }

    /// Its client of what was.
    pub fn history(&self) -> HistoryClient<Channel> {
        HistoryClient::new(self.channel.clone())
    }

    /// Its client of the configuration.
    pub fn configuration(&self) -> ConfigurationClient<Channel> {
        let client = ConfigurationClient::new(self.channel.clone());
        client.max_decoding_message_size(LARGEST_ANSWER)
    }

    async fn all_sessions(&self) -> Result<Vec<Session>, Status> {
        let request = ListSessionsRequest::default();
        let listing = self.control_plane().list_sessions(request).await?;
        let (mut listing, mut sessions) = (listing.into_inner(), Vec::new());
        while let Some(part) = listing.message().await? {
            sessions.extend(part.sessions);
        }
        sessions.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(sessions)
    }

    async fn lines(&self, query: &Query) -> Result<Page, Status> {
        let _one = self.whole.acquire().await;
        let subscriber = query.arguments.text("line").unwrap_or_default();
        let request = ListLinesRequest {
            subscriber: subscriber.into(),
            since: query.arguments.time("since").or(Some(time::now() - DAY)),
        };
        let listing = self.history().list_lines(request).await?;
        let (mut listing, mut histories) = (listing.into_inner(), Vec::new());
        while let Some(part) = listing.message().await? {
            histories.extend(part.lines);
        }
        let rows = LineRow::of(subscriber, &self.all_sessions().await?, histories);
        Ok(match query.arguments.flag("worst") {
            true => cut(LineRow::worst(rows), query),
            false => cut(rows, query),
        })
    }

    async fn trouble(&self, query: &Query) -> Result<Page, Status> {
        let kind = EventKind::list(query.arguments.text("kind").unwrap_or_default());
        let kind = kind.map_err(Status::invalid_argument)?;
        let request = ListTroubleRequest {
            until: query.arguments.time("until"),
            kind: kind.first().copied().unwrap_or_default().into(),
        };
        let told = self.history().list_trouble(request).await?;
        Ok(cut(told.into_inner().trouble, query))
    }

    async fn subscribers(&self, query: &Query) -> Result<Page, Status> {
        let _one = self.whole.acquire().await;
        let sessions = self.all_sessions().await?;
        Ok(cut(SubscriberRow::of(&sessions), query))
    }

    async fn user_planes(&self) -> Result<Vec<northbound::UserPlane>, Status> {
        let request = ListUserPlanesRequest {};
        let asked = self.control_plane().list_user_planes(request).await?;
        Ok(asked.into_inner().user_planes)
    }

    async fn associations(&self) -> Result<Vec<Association>, Status> {
        let request = ListAssociationsRequest {};
        let asked = self.tables().list_associations(request).await?;
        Ok(asked.into_inner().associations)
    }

    async fn ports(&self, query: &Query) -> Result<Page, Status> {
        let request = ListPortsRequest {
            user_plane: user_plane(query),
        };
        let listing = self.tables().list_ports(request).await?;
        parts(listing.into_inner(), query, Into::into).await
    }

    async fn routes(&self, query: &Query) -> Result<Page, Status> {
        let request = ListRoutesRequest {
            user_plane: user_plane(query),
        };
        let listing = self.tables().list_routes(request).await?;
        parts(listing.into_inner(), query, Into::into).await
    }

    async fn neighbours(&self, query: &Query) -> Result<Page, Status> {
        let request = ListNeighboursRequest {
            user_plane: user_plane(query),
        };
        let listing = self.tables().list_neighbours(request).await?;
        parts(listing.into_inner(), query, Into::into).await
    }

    async fn acl_rules(&self, query: &Query) -> Result<Page, Status> {
        let request = ListAclRulesRequest {
            user_plane: user_plane(query),
            acl: query.arguments.text("acl").unwrap_or_default().into(),
        };
        let listing = self.tables().list_acl_rules(request).await?;
        parts(listing.into_inner(), query, Into::into).await
    }

    async fn policies(&self, query: &Query) -> Result<Page, Status> {
        let request = ListPoliciesRequest {
            user_plane: user_plane(query),
        };
        let listing = self.tables().list_policies(request).await?;
        parts(listing.into_inner(), query, Into::into).await
    }

    async fn queues(&self, query: &Query) -> Result<Page, Status> {
        let id = query.arguments.text("session").unwrap_or_default();
        let details = self.session(id.into()).await?;
        let missing = details.missing_queues().into_iter().collect();
        let page = cut(details.queues(), query);
        Ok(Page { missing, ..page })
    }

    async fn queue_aggregates(&self, query: &Query) -> Result<Page, Status> {
        let request = ListQueueAggregatesRequest::default();
        let listing = self.tables().list_queue_aggregates(request).await?;
        let read = |part: ListQueueAggregatesResponse| {
            let (mut rows, why) = part.into();
            if let Some(asked) = query.arguments.text("aggregate") {
                rows.retain(|row: &QueueAggregate| row.is_meant(asked));
            }
            (rows, why)
        };
        parts(listing.into_inner(), query, read).await
    }

    async fn pools(&self, query: &Query) -> Result<Page, Status> {
        let listing = self.tables().list_pools(ListPoolsRequest {}).await?;
        let read = |part: ListPoolsResponse| (part.pool.into_iter().collect(), None);
        parts(listing.into_inner(), query, read).await
    }

    async fn state(&self) -> Result<WatchStateResponse, Status> {
        let state = self.watch(INTERVAL).await?.message().await?;
        state.ok_or_else(|| Status::unavailable("the control plane ends"))
    }

    /// The processes of the control plane, of user planes, and of this server, which knows its own while nobody else answers.
    async fn daemons(&self, query: &Query) -> Page {
        let (rows, missing) = match self.state().await {
            Ok(state) => {
                let missing = WatchedUserPlane::silent(&state.user_planes);
                (DaemonRow::of(state), missing)
            }
            Err(status) => {
                let why = format!("the control plane does not answer: {}", status.message());
                (Vec::new(), vec![why])
            }
        };
        let own = DaemonRow {
            name: "sluice-web".into(),
            user_plane: String::new(),
            process: Process::own(),
        };
        let page = cut(rows.into_iter().chain([own]), query);
        Page { missing, ..page }
    }

    /// Rows of what user planes reported last.
    async fn watched<R: Serialize, I: IntoIterator<Item = R>>(
        &self,
        query: &Query,
        rows: impl Fn(WatchedUserPlane) -> I,
    ) -> Result<Page, Status> {
        let mut planes = self.state().await?.user_planes;
        if let Some(name) = query.arguments.text("user-plane") {
            planes.retain(|plane| plane.node_id == name);
            if planes.is_empty() {
                return Err(Status::not_found(format!(
                    "user plane `{name}` does not exist: the table user-planes lists them"
                )));
            }
        }
        let missing = WatchedUserPlane::silent(&planes);
        let page = cut(planes.into_iter().flat_map(rows), query);
        Ok(Page { missing, ..page })
    }

    async fn alarm_history(&self, query: &Query) -> Result<Page, Status> {
        let request = ListEventsRequest {
            alarms: true,
            last: Some(LATEST),
            ..ListEventsRequest::default()
        };
        self.events(request, query).await
    }

    async fn happened(&self, query: &Query) -> Result<Page, Status> {
        let kinds = EventKind::list(query.arguments.text("kinds").unwrap_or_default());
        let kinds = kinds.map_err(Status::invalid_argument)?;
        let last = query
            .arguments
            .number("last")
            .and_then(|last| last.try_into().ok());
        let all = query.arguments.text("since").is_some();
        let request = ListEventsRequest {
            subscriber: query
                .arguments
                .text("subscriber")
                .unwrap_or_default()
                .into(),
            since: query.arguments.time("since"),
            until: query.arguments.time("until"),
            last: last.or((!all).then_some(LATEST)),
            alarms: false,
            kinds: kinds.into_iter().map(Into::into).collect(),
            also: query.arguments.text("also").unwrap_or_default().into(),
            count: true,
        };
        self.events(request, query).await
    }

    async fn events(&self, request: ListEventsRequest, query: &Query) -> Result<Page, Status> {
        let listing = self.history().list_events(request).await?.into_inner();
        let mut matching = None;
        let read = |part: ListEventsResponse| {
            matching = Matching::of(&part).or(matching);
            (part.events, None)
        };
        let page = parts(listing, query, read).await?;
        Ok(Page {
            total: matching.map(|matching| matching.events),
            or_more: matching.is_some_and(|matching| matching.or_more),
            ..page
        })
    }

    async fn figures(&self, query: &Query) -> Result<Page, Status> {
        let arguments = &query.arguments;
        let request = ListFiguresRequest {
            name: arguments.text("figure").unwrap_or_default().into(),
            resource: arguments.text("of").map(Into::into),
            since: arguments.time("since"),
            until: arguments.time("until"),
        };
        let listing = self.history().list_figures(request).await?.into_inner();
        let read = |part: ListFiguresResponse| (part.figures, None);
        parts(listing, query, read).await
    }

    /// Every plane's counters. What one has is told even where a user plane does not answer.
    async fn drops(&self, query: &Query) -> Result<Page, Status> {
        let mut client = self.control_plane();
        let mut drops = client
            .list_drops(ListDropsRequest {})
            .await?
            .into_inner()
            .drops;
        // the associations name the user planes without a look at their sessions
        let asked = self.associations().await?.into_iter().map(|plane| {
            let (mut client, user_plane) = (client.clone(), plane.node_id);
            let request = ListUserPlaneDropsRequest { user_plane };
            async move { client.list_user_plane_drops(request).await }
        });
        let mut missing = Vec::new();
        for told in futures_util::future::join_all(asked).await {
            match told {
                Ok(told) => drops.extend(told.into_inner().drops),
                Err(status) => missing.push(status.message().to_owned()),
            }
        }
        Ok(Page {
            missing,
            ..cut(drops, query)
        })
    }
}

fn user_plane(query: &Query) -> String {
    query
        .arguments
        .text("user-plane")
        .unwrap_or_default()
        .into()
}

/// Next part of an answer whose last part is marked.
///
/// # Errors
/// The call failed, or the answer ends without its last part.
pub async fn next<T>(parts: &mut Streaming<T>) -> Result<T, Status> {
    let part = parts.message().await?;
    part.ok_or_else(|| Status::unavailable("the control plane has ended the answer"))
}

/// A row, or what it is, as `--json` prints it.
pub fn value(row: &impl Serialize) -> Value {
    // a message has no map whose keys are no texts: nothing else can fail
    serde_json::to_value(row).unwrap_or_default()
}

/// A page of rows of which all are there.
pub fn cut<R: Serialize>(rows: impl IntoIterator<Item = R>, query: &Query) -> Page {
    let mut page = Page::default();
    for (place, row) in (0..)
        .zip(rows)
        .skip(usize::try_from(query.cursor).unwrap_or(usize::MAX))
    {
        if page.rows.len() == query.limit {
            page.next = Some(place);
            break;
        }
        page.rows.push(value(&row));
    }
    page
}

/// A page of rows that come in parts. Those behind it are not waited for.
async fn parts<M, R: Serialize>(
    mut listing: Streaming<M>,
    query: &Query,
    mut read: impl FnMut(M) -> (Vec<R>, Option<String>),
) -> Result<Page, Status> {
    let (mut page, mut place) = (Page::default(), 0);
    while let Some(part) = listing.message().await? {
        let (rows, why) = read(part);
        page.missing.extend(why);
        for row in rows {
            if place >= query.cursor {
                if page.rows.len() == query.limit {
                    page.next = Some(place);
                    return Ok(page);
                }
                page.rows.push(value(&row));
            }
            place += 1;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        let page = |cursor, limit| {
            let mut query = Query::all();
            (query.limit, query.cursor) = (limit, cursor);
            let page = cut(0..10, &query);
            (page.rows, page.next)
        };
        assert_eq!(page(0, 4).1, Some(4));
        assert_eq!(
            page(4, 4),
            (vec![4.into(), 5.into(), 6.into(), 7.into()], Some(8))
        );
        assert_eq!(page(8, 4), (vec![8.into(), 9.into()], None));
        assert_eq!(page(0, 10).1, None);
        assert_eq!(page(u64::MAX, 4), (vec![], None));
    }
}
