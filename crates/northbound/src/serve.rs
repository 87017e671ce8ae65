//! The control plane's side of its socket.

use crate::caller::Gate;
use crate::calls::{Asked, Calls, Refusal, other_answer};
use crate::catalogue::{Access, REPAIR};
use crate::clears;
use crate::configuration::ConfigurationCall;
use crate::control_plane_server::{ControlPlane, ControlPlaneServer};
use crate::live::LiveCall;
use crate::{
    AaaServer, AcknowledgeAlarmRequest, AcknowledgeAlarmResponse, AclRule, Association, Caller,
    CheckLedgerRequest, CheckLedgerResponse, CheckUserPlaneLedgerRequest, ClearBackOffRequest,
    ClearBackOffResponse, ClearSessionRequest, ClearSessionResponse, ClearSessionsRequest,
    ClearSessionsResponse, CountSessionsRequest, CountSessionsResponse, DropCounter,
    FindSubscriberResponse, GetSessionPolicyRequest, GetSessionPolicyResponse, GetSessionRequest,
    GetSessionResponse, HistoryCall, Ledger, ListAlarmsResponse, ListDropsRequest,
    ListDropsResponse, ListSessionClearsRequest, ListSessionClearsResponse, ListSessionsRequest,
    ListSessionsResponse, ListUserPlaneDropsRequest, ListUserPlanesRequest, ListUserPlanesResponse,
    MoveAggregateRequest, MoveAggregateResponse, Neighbour, Pool, Port, QueueAggregate, Route,
    Session, SessionClear, SessionFilter, SessionPolicy, TestAaaRequest, TestAaaResponse,
    TrafficPolicy, UnixSocket, UserPlane, WatchRulesRequest, WatchRulesResponse, server,
};
use futures_util::stream::{BoxStream, try_unfold};
use std::io;
use std::path::Path;
use tokio::sync::mpsc;
use tonic::{Response as Reply, Status};

/// The largest request that is read, in octets.
const MAX_REQUEST: usize = 64 * 1024;

/// Bounds of the times by which [`QueueState::waits`](crate::QueueState) counts, in milliseconds.
pub const QUEUE_WAITS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];

/// The longest time for which the rules of a session are watched, in seconds.
pub const MOST_WATCH_SECONDS: u32 = 3600;

/// Checks how long the rules of a session are to be watched.
///
/// # Errors
/// INVALID_ARGUMENT: too long.
pub fn check_watch_seconds(seconds: u32) -> Result<(), Status> {
    match seconds {
        0..=MOST_WATCH_SECONDS => Ok(()),
        _ => Err(Status::invalid_argument(format!(
            "{seconds} seconds: expected 0 to {MOST_WATCH_SECONDS}"
        ))),
    }
}

/// Maximum number of characters of a comment: of an acknowledgement, or of a commit.
pub const MOST_COMMENT: usize = 1000;
/// The longest time within which a commit has to be confirmed, in seconds.
pub const MOST_CONFIRM: u32 = 86_400;

/// How many sessions end in a second for a `clear sessions` if nothing else is said.
pub const CLEAR_RATE: u32 = 100;
/// The most sessions that end in a second for a `clear sessions`.
pub const MOST_CLEAR_RATE: u32 = 1000;

/// The most sessions, routes or neighbours that a plane tells at once.
pub const PAGE: usize = 512;

/// Password of a subscriber. Its `Debug` form does not show it.
#[derive(Clone, PartialEq)]
pub struct Password(pub String);

impl core::fmt::Debug for Password {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("<password>")
    }
}

/// What the control plane is asked or told.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Sessions.
    ListSessions {
        /// The place in the table of sessions where to begin: 0, or [`Response::Sessions::next`].
        from: usize,
        /// How many of them, 1 to [`PAGE`].
        most: usize,
        /// Which of them.
        filter: Box<SessionFilter>,
    },
    /// How many sessions there are.
    CountSessions,
    /// Ids of the sessions that a filter matches, of some of the table of sessions.
    MatchSessions {
        /// The place in the table of sessions where to begin: 0, or [`Response::Matches::next`].
        from: usize,
        /// Which sessions.
        filter: Box<SessionFilter>,
    },
    /// End sessions, so many in a second.
    ClearSessions {
        /// Their ids.
        ids: Vec<u64>,
        /// How they were chosen.
        filter: Box<SessionFilter>,
        /// How many end in a second, 1 to [`MOST_CLEAR_RATE`].
        rate: u32,
        /// Who ends them.
        by: String,
    },
    /// End no more sessions for the last [`Request::ClearSessions`].
    StopClear {
        /// Who stops it.
        by: String,
    },
    /// The latest [`Request::ClearSessions`].
    ListSessionClears,
    /// One session with its counters, read from the user plane now.
    GetSession {
        /// The session's id as [`Session::id`] prints it.
        id: String,
    },
    /// What the policies of a session have done, which only its user plane can tell.
    GetSessionPolicy {
        /// The session's id.
        id: String,
    },
    /// Count how often the packets of a session hit each rule of its policies, which its user plane does.
    WatchRules {
        /// The session's id.
        id: String,
        /// How long, at most [`MOST_WATCH_SECONDS`]; 0 ends it.
        seconds: u32,
    },
    /// End a session as an administrator's reset.
    ClearSession {
        /// The session's id.
        id: String,
        /// Who ends it.
        by: String,
    },
    /// Forget failed set-ups and logins, so that discovery packets are answered.
    ClearBackOff {
        /// A MAC address, a circuit id, or a line.
        who: String,
    },
    /// Acknowledge a raised alarm.
    AcknowledgeAlarm {
        /// Its name.
        alarm: String,
        /// Its resource; `None`: the only one for which an alarm of this name is raised.
        resource: Option<String>,
        /// What the operator says of it, at most [`MOST_COMMENT`] characters.
        comment: String,
        /// The operator.
        by: String,
    },
    /// Ask AAA about a user, as a session would.
    TestAaa {
        /// The user name.
        user: String,
        /// The password.
        password: Password,
        /// Access profile of the segment; empty: the only one.
        access_profile: String,
    },
    /// The sessions of a subscriber with what is known of it: by name or id all of them, else those among the next sessions.
    FindSubscriber {
        /// A name, a MAC address, a session's id, or an address.
        subscriber: String,
        /// Place in the table of sessions to go on at; 0: the first.
        from: usize,
    },
    /// The alarms that are raised.
    ListAlarms,
    /// Every user plane.
    ListUserPlanes,
    /// The named counters of whatever was refused or dropped.
    ListDrops,
    /// The pools and who has nets of them.
    ListPools,
    /// The PFCP associations.
    ListAssociations,
    /// The RADIUS servers.
    ListAaaServers,
    /// What a user plane has, which only itself can tell.
    UserPlane {
        /// Its node id.
        name: String,
        /// What is asked.
        table: UserPlaneTable,
    },
    /// Compare what is held with the owners of it, in both directions.
    CheckLedger {
        /// Give back what has no owner, and book what is missing.
        repair: bool,
    },
}

/// A table of a user plane.
#[derive(Clone, Debug, PartialEq)]
pub enum UserPlaneTable {
    /// Its ports.
    Ports,
    /// Its routes, at most [`PAGE`] of them.
    Routes {
        /// The last one of the page before; none at first.
        after: Option<Route>,
    },
    /// Its neighbours, at most [`PAGE`] of them.
    Neighbours {
        /// The last one of the page before; none at first.
        after: Option<Neighbour>,
    },
    /// Its counters, those that are zero too.
    Drops,
    /// Rules of an ACL, at most [`PAGE`] of them.
    AclRules {
        /// Name of the ACL.
        acl: String,
        /// The last one of the page before; none at first.
        after: Option<AclRule>,
    },
    /// Its policies.
    Policies,
    /// Queues of its ports and of their parts, at most [`PAGE`] of them.
    QueueAggregates {
        /// The last one of the page before; none at first.
        after: Option<QueueAggregate>,
    },
    /// What the policies of a session have done.
    SessionPolicy {
        /// The session, of which port, VLAN ids, MAC address and PPPoE session id count.
        session: Box<Session>,
    },
    /// Nothing: it begins to watch the rules of a session, or ends that.
    WatchRules {
        /// The session, as for [`UserPlaneTable::SessionPolicy`].
        session: Box<Session>,
        /// How long.
        seconds: u32,
    },
    /// Nothing: an aggregate moves to a worker.
    MoveAggregate(MoveAggregateRequest),
    /// Its ledger.
    Ledger {
        /// Give back what has no owner, and book what is missing.
        repair: bool,
    },
}

/// What the control plane answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// To [`Request::ListSessions`].
    Sessions {
        /// The sessions.
        sessions: Vec<Session>,
        /// Where to go on; `None` at the end.
        next: Option<usize>,
    },
    /// To [`Request::CountSessions`].
    SessionCount(u64),
    /// To [`Request::MatchSessions`].
    Matches {
        /// Their ids.
        ids: Vec<u64>,
        /// Where to go on; `None` at the end.
        next: Option<usize>,
    },
    /// To [`Request::ClearSessions`] and [`Request::StopClear`].
    Clearing(ClearSessionsResponse),
    /// To [`Request::ListSessionClears`].
    SessionClears {
        /// The last one first.
        clears: Vec<SessionClear>,
    },
    /// To [`Request::GetSession`].
    Session {
        /// The session.
        session: Box<Session>,
    },
    /// To [`Request::TestAaa`].
    AaaTested(TestAaaResponse),
    /// To [`Request::FindSubscriber`].
    Subscriber {
        /// A part of the answer.
        found: FindSubscriberResponse,
        /// Where to go on, unless that was all.
        next: Option<usize>,
    },
    /// To [`Request::ListAlarms`].
    Alarms(ListAlarmsResponse),
    /// To [`Request::ListUserPlanes`].
    UserPlanes {
        /// The user planes in the order of the configuration.
        user_planes: Vec<UserPlane>,
    },
    /// To [`Request::ListDrops`] and [`UserPlaneTable::Drops`].
    Drops {
        /// Every counter, those that are zero too.
        drops: Vec<DropCounter>,
    },
    /// To [`Request::ListPools`].
    Pools {
        /// The pools.
        pools: Vec<Pool>,
    },
    /// To [`Request::ListAssociations`].
    Associations {
        /// The associations.
        associations: Vec<Association>,
    },
    /// To [`Request::ListAaaServers`].
    AaaServers {
        /// The servers.
        servers: Vec<AaaServer>,
    },
    /// To [`UserPlaneTable::Ports`].
    Ports {
        /// The ports.
        ports: Vec<Port>,
    },
    /// To [`UserPlaneTable::Routes`].
    Routes {
        /// The routes.
        routes: Vec<Route>,
        /// There are more.
        more: bool,
    },
    /// To [`UserPlaneTable::Neighbours`].
    Neighbours {
        /// The neighbours.
        neighbours: Vec<Neighbour>,
        /// There are more.
        more: bool,
    },
    /// To [`UserPlaneTable::AclRules`].
    AclRules {
        /// The rules.
        rules: Vec<AclRule>,
        /// There are more.
        more: bool,
    },
    /// To [`UserPlaneTable::Policies`].
    Policies {
        /// The policies.
        policies: Vec<TrafficPolicy>,
    },
    /// To [`UserPlaneTable::QueueAggregates`].
    QueueAggregates {
        /// The ports and parts of ports.
        aggregates: Vec<QueueAggregate>,
        /// There are more.
        more: bool,
    },
    /// To [`Request::GetSessionPolicy`] and [`UserPlaneTable::SessionPolicy`].
    SessionPolicy {
        /// Its policies.
        policy: Box<SessionPolicy>,
    },
    /// To [`UserPlaneTable::MoveAggregate`].
    Moved(MoveAggregateResponse),
    /// To [`Request::CheckLedger`] and [`UserPlaneTable::Ledger`].
    Ledger {
        /// What is held, and what differs.
        ledger: Ledger,
    },
    /// An order was carried out.
    Done,
}

/// A response, or why there is none.
pub type Answer = Result<Response, Refusal>;
/// A request with the place for its answer.
pub type Call = Asked<Request, Response>;

/// Binds `path` as [`UnixSocket::bind`] does and hands every request to `calls`, those about the configuration to
/// `configuration`, those of who watches to `live` and those about the past to `history`, until the first receiver is dropped.
///
/// # Errors
/// As [`UnixSocket::bind`].
pub fn serve(
    path: &Path,
    calls: mpsc::Sender<Call>,
    configuration: mpsc::Sender<ConfigurationCall>,
    live: mpsc::Sender<LiveCall>,
    history: mpsc::Sender<HistoryCall>,
) -> io::Result<impl Future<Output = ()> + use<>> {
    let socket = UnixSocket::bind(path)?;
    let calls = Calls::new(calls);
    let service = ControlPlaneServer::new(Service(calls.clone()));
    let router = server()
        .layer(Gate)
        .add_service(service.max_decoding_message_size(MAX_REQUEST))
        .add_service(crate::tables::service(calls.clone()))
        .add_service(crate::configuration::service(configuration))
        .add_service(crate::live::service(live))
        .add_service(crate::history::service(history));
    Ok(async move {
        let end = calls.closed();
        let served = router.serve_with_incoming_shutdown(socket.connections(), end);
        if let Err(error) = served.await {
            tracing::error!(%error, "the local API ends");
        }
    })
}

struct Service(Calls<Request, Response>);

#[tonic::async_trait]
impl ControlPlane for Service {
    type ListSessionsStream = BoxStream<'static, Result<ListSessionsResponse, Status>>;

    /// A page is asked for when whoever reads has room for it: no more than a few wait, however many sessions there are.
    async fn list_sessions(
        &self,
        request: tonic::Request<ListSessionsRequest>,
    ) -> Result<Reply<Self::ListSessionsStream>, Status> {
        let ListSessionsRequest { from, most, filter } = request.into_inner();
        let filter = Box::new(filter.unwrap_or_default());
        let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let left = match most {
            0 => usize::MAX,
            most => place(most),
        };
        let begin = (self.0.clone(), Some(place(from)), left);
        let pages = try_unfold(begin, move |(calls, from, left)| {
            let filter = filter.clone();
            async move {
                let Some(from) = from.filter(|_| left > 0) else {
                    return Ok(None);
                };
                let most = left.min(PAGE);
                let list = Request::ListSessions { from, most, filter };
                match calls.ask(list).await? {
                    Response::Sessions { sessions, next } => {
                        let left = left.saturating_sub(sessions.len());
                        let page = ListSessionsResponse {
                            sessions,
                            next: next.map(|next| next as u64),
                        };
                        Ok(Some((page, (calls, next, left))))
                    }
                    other => Err(other_answer(other)),
                }
            }
        });
        Ok(Reply::new(Box::pin(pages)))
    }

    async fn count_sessions(
        &self,
        request: tonic::Request<CountSessionsRequest>,
    ) -> Result<Reply<CountSessionsResponse>, Status> {
        let filter = request.into_inner().filter.unwrap_or_default();
        let sessions = clears::count(&self.0, filter).await?;
        Ok(Reply::new(CountSessionsResponse { sessions }))
    }

    async fn clear_sessions(
        &self,
        request: tonic::Request<ClearSessionsRequest>,
    ) -> Result<Reply<ClearSessionsResponse>, Status> {
        let by = Caller::name_in(&request).await;
        clears::begin(&self.0, request.into_inner(), by).await
    }

    async fn list_session_clears(
        &self,
        _: tonic::Request<ListSessionClearsRequest>,
    ) -> Result<Reply<ListSessionClearsResponse>, Status> {
        match self.0.ask(Request::ListSessionClears).await? {
            Response::SessionClears { clears } => {
                Ok(Reply::new(ListSessionClearsResponse { clears }))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn get_session(
        &self,
        request: tonic::Request<GetSessionRequest>,
    ) -> Result<Reply<GetSessionResponse>, Status> {
        let id = request.into_inner().id;
        match self.0.ask(Request::GetSession { id }).await? {
            Response::Session { session } => Ok(Reply::new(GetSessionResponse {
                session: Some(*session),
            })),
            other => Err(other_answer(other)),
        }
    }

    async fn get_session_policy(
        &self,
        request: tonic::Request<GetSessionPolicyRequest>,
    ) -> Result<Reply<GetSessionPolicyResponse>, Status> {
        let id = request.into_inner().id;
        match self.0.ask(Request::GetSessionPolicy { id }).await? {
            Response::SessionPolicy { policy } => Ok(Reply::new(GetSessionPolicyResponse {
                policy: Some(*policy),
            })),
            other => Err(other_answer(other)),
        }
    }

    async fn watch_rules(
        &self,
        request: tonic::Request<WatchRulesRequest>,
    ) -> Result<Reply<WatchRulesResponse>, Status> {
        let WatchRulesRequest { id, seconds } = request.into_inner();
        check_watch_seconds(seconds)?;
        match self.0.ask(Request::WatchRules { id, seconds }).await? {
            Response::Done => Ok(Reply::new(WatchRulesResponse {})),
            other => Err(other_answer(other)),
        }
    }

    async fn clear_session(
        &self,
        request: tonic::Request<ClearSessionRequest>,
    ) -> Result<Reply<ClearSessionResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let id = request.into_inner().id;
        let clear = Request::ClearSession {
            id: id.clone(),
            by: by.clone(),
        };
        match self.0.ask(clear).await? {
            Response::Done => {
                tracing::info!(session = id, by, "an administrator ends a session");
                Ok(Reply::new(ClearSessionResponse {}))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn clear_back_off(
        &self,
        request: tonic::Request<ClearBackOffRequest>,
    ) -> Result<Reply<ClearBackOffResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let who = request.into_inner().who;
        let clear = Request::ClearBackOff { who: who.clone() };
        match self.0.ask(clear).await? {
            Response::Done => {
                tracing::info!(who, by, "an administrator ends a back-off");
                Ok(Reply::new(ClearBackOffResponse {}))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn acknowledge_alarm(
        &self,
        request: tonic::Request<AcknowledgeAlarmRequest>,
    ) -> Result<Reply<AcknowledgeAlarmResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let AcknowledgeAlarmRequest {
            alarm,
            resource,
            comment,
        } = request.into_inner();
        let characters = comment.chars().count();
        if characters > MOST_COMMENT {
            return Err(Status::invalid_argument(format!(
                "the comment has {characters} characters: expected at most {MOST_COMMENT}"
            )));
        }
        let acknowledge = Request::AcknowledgeAlarm {
            alarm,
            resource,
            comment,
            by,
        };
        match self.0.ask(acknowledge).await? {
            Response::Done => Ok(Reply::new(AcknowledgeAlarmResponse {})),
            other => Err(other_answer(other)),
        }
    }

    async fn test_aaa(
        &self,
        request: tonic::Request<TestAaaRequest>,
    ) -> Result<Reply<TestAaaResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let TestAaaRequest {
            user,
            password,
            access_profile,
        } = request.into_inner();
        tracing::info!(user, by, "an administrator tests AAA");
        let test = Request::TestAaa {
            user,
            password: Password(password),
            access_profile,
        };
        match self.0.ask(test).await? {
            Response::AaaTested(tested) => Ok(Reply::new(tested)),
            other => Err(other_answer(other)),
        }
    }

    async fn list_user_planes(
        &self,
        _: tonic::Request<ListUserPlanesRequest>,
    ) -> Result<Reply<ListUserPlanesResponse>, Status> {
        match self.0.ask(Request::ListUserPlanes).await? {
            Response::UserPlanes { user_planes } => {
                Ok(Reply::new(ListUserPlanesResponse { user_planes }))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn list_drops(
        &self,
        _: tonic::Request<ListDropsRequest>,
    ) -> Result<Reply<ListDropsResponse>, Status> {
        drops(self.0.ask(Request::ListDrops).await?)
    }

    async fn list_user_plane_drops(
        &self,
        request: tonic::Request<ListUserPlaneDropsRequest>,
    ) -> Result<Reply<ListDropsResponse>, Status> {
        let ListUserPlaneDropsRequest { user_plane: name } = request.into_inner();
        let table = UserPlaneTable::Drops;
        drops(self.0.ask(Request::UserPlane { name, table }).await?)
    }

    async fn move_aggregate(
        &self,
        request: tonic::Request<MoveAggregateRequest>,
    ) -> Result<Reply<MoveAggregateResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let request = request.into_inner();
        let (name, worker) = (request.user_plane.clone(), request.worker);
        let (port, segment, s_tag) = (request.port.clone(), request.segment.clone(), request.s_tag);
        let table = UserPlaneTable::MoveAggregate(request);
        match self
            .0
            .ask(Request::UserPlane {
                name: name.clone(),
                table,
            })
            .await?
        {
            Response::Moved(moved) => {
                tracing::info!(
                    user_plane = name,
                    port,
                    segment,
                    s_tag,
                    worker,
                    sessions = moved.sessions,
                    by,
                    "an administrator moves an aggregate"
                );
                Ok(Reply::new(moved))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn check_ledger(
        &self,
        request: tonic::Request<CheckLedgerRequest>,
    ) -> Result<Reply<CheckLedgerResponse>, Status> {
        let repair = permit_repair(&request, request.get_ref().repair).await?;
        ledger(self.0.ask(Request::CheckLedger { repair }).await?)
    }

    async fn check_user_plane_ledger(
        &self,
        request: tonic::Request<CheckUserPlaneLedgerRequest>,
    ) -> Result<Reply<CheckLedgerResponse>, Status> {
        let repair = permit_repair(&request, request.get_ref().repair).await?;
        let name = request.into_inner().user_plane;
        let table = UserPlaneTable::Ledger { repair };
        ledger(self.0.ask(Request::UserPlane { name, table }).await?)
    }
}

/// Whether to repair, which not everybody may who may check.
async fn permit_repair<T>(request: &tonic::Request<T>, repair: bool) -> Result<bool, Status> {
    let needed = if repair { REPAIR.access } else { Access::Read };
    Caller::permit(Caller::of(request), needed).await?;
    Ok(repair)
}

fn drops(response: Response) -> Result<Reply<ListDropsResponse>, Status> {
    match response {
        Response::Drops { drops } => Ok(Reply::new(ListDropsResponse { drops })),
        other => Err(other_answer(other)),
    }
}

fn ledger(response: Response) -> Result<Reply<CheckLedgerResponse>, Status> {
    match response {
        Response::Ledger { ledger } => Ok(Reply::new(CheckLedgerResponse {
            ledger: Some(ledger),
        })),
        other => Err(other_answer(other)),
    }
}
