//! The user plane's side.

use crate::client::unusable;
use crate::mi_server::{Mi, MiServer};
use crate::network::{NetworkError, Port as TcpPort, server_tls};
use crate::{
    ApplyRequest, ApplyResponse, DescribeRequest, DescribeResponse, Document, DocumentFault,
    GetSessionPolicyRequest, GetSessionPolicyResponse, ListAclRulesRequest, ListAclRulesResponse,
    ListNeighboursRequest, ListNeighboursResponse, ListPoliciesRequest, ListPoliciesResponse,
    ListPortsRequest, ListPortsResponse, ListQueueAggregatesRequest, ListQueueAggregatesResponse,
    ListRoutesRequest, ListRoutesResponse, MAX_TEXT, MoveAggregateRequest, SampleRequest,
    SampleResponse, Sampling, SessionPlace, State, ValidateRequest, ValidateResponse, WatchRequest,
    WatchRulesRequest, WatchRulesResponse,
};
use config::start::Management;
use futures_util::Stream;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::BoxStream;
use northbound::{
    AclRule, Asked, Calls, CheckLedgerRequest, CheckLedgerResponse, DropCounter, Ledger,
    ListDropsRequest, ListDropsResponse, MoveAggregateResponse, Neighbour, Port, QueueAggregate,
    Refusal, Route, SessionPolicy, TrafficPolicy, UnixSocket, other_answer, server,
};
use std::io;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tonic::transport::server::Connected;
use tonic::{Response as Reply, Status};

/// The largest request that is read, in octets: a document and what is around it.
const MAX_REQUEST: usize = MAX_TEXT + 1024;
/// Calls of one connection that are read and answered at once.
const AT_ONCE: usize = 4;

/// What the user plane is asked or told.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Who it is, what it can do and what is in force.
    Describe,
    /// What is wrong with a document, which is whole ([`Document::verify`]).
    Validate(Document),
    /// Put a document in force, which is whole ([`Document::verify`]).
    Apply(Document),
    /// The state.
    GetState,
    /// Show copies of packets.
    Sample(Sampling),
    /// The ports with their counters.
    ListPorts,
    /// Routes, at most [`northbound::PAGE`] of them.
    ListRoutes {
        /// The last one of the page before; none at first.
        after: Option<Route>,
    },
    /// Neighbours, at most [`northbound::PAGE`] of them.
    ListNeighbours {
        /// The last one of the page before; none at first.
        after: Option<Neighbour>,
    },
    /// The named counters of whatever was refused or dropped.
    ListDrops,
    /// Rules of an ACL, at most [`northbound::PAGE`] of them.
    ListAclRules {
        /// Name of the ACL.
        acl: String,
        /// The last one of the page before; none at first.
        after: Option<AclRule>,
    },
    /// The policies.
    ListPolicies,
    /// Queues of ports and of their parts, at most [`northbound::PAGE`] of them.
    ListQueueAggregates {
        /// The last one of the page before; none at first.
        after: Option<QueueAggregate>,
    },
    /// What the policies of a session have done.
    GetSessionPolicy(SessionPlace),
    /// Count how often the packets of a session hit each rule.
    WatchRules {
        /// The session.
        session: SessionPlace,
        /// How long, at most [`northbound::MOST_WATCH_SECONDS`]; 0 ends it.
        seconds: u32,
    },
    /// Move an aggregate to a worker.
    MoveAggregate(MoveAggregateRequest),
    /// Compare what is held with the owners of it, in both directions.
    CheckLedger {
        /// Give back what has no owner, and book what is missing.
        repair: bool,
    },
}

/// What the user plane answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// To [`Request::Describe`].
    Description(DescribeResponse),
    /// To [`Request::Validate`]: what is wrong.
    Faults(Vec<DocumentFault>),
    /// To [`Request::Apply`].
    Applied(ApplyResponse),
    /// To [`Request::GetState`].
    State(Box<State>),
    /// To [`Request::ListPorts`].
    Ports {
        /// The ports in the order of the configuration.
        ports: Vec<Port>,
    },
    /// To [`Request::ListRoutes`].
    Routes(ListRoutesResponse),
    /// To [`Request::ListNeighbours`].
    Neighbours(ListNeighboursResponse),
    /// To [`Request::ListDrops`].
    Drops {
        /// Every counter, those that are zero too.
        drops: Vec<DropCounter>,
    },
    /// To [`Request::ListAclRules`].
    AclRules(ListAclRulesResponse),
    /// To [`Request::ListPolicies`].
    Policies {
        /// The policies in the order of their names.
        policies: Vec<TrafficPolicy>,
    },
    /// To [`Request::ListQueueAggregates`].
    QueueAggregates(ListQueueAggregatesResponse),
    /// To [`Request::GetSessionPolicy`].
    SessionPolicy(Box<SessionPolicy>),
    /// To [`Request::WatchRules`]: it has begun, or ended.
    WatchingRules,
    /// To [`Request::Sample`]: it has begun.
    Sampling,
    /// To [`Request::MoveAggregate`].
    Moved(MoveAggregateResponse),
    /// To [`Request::CheckLedger`].
    Ledger {
        /// What is held, and what differs.
        ledger: Ledger,
    },
}

/// A response, or why there is none.
pub type Answer = Result<Response, Refusal>;
/// A request with the place for its answer.
pub type Call = Asked<Request, Response>;

/// Listens on a Unix socket, as [`UnixSocket::bind`] does, and on the addresses of `management`, and hands every request to
/// `calls`, until the receiver is dropped.
///
/// # Errors
/// What cannot be listened on, and why; an address without TLS that is not a loopback address.
pub fn serve(
    socket: &Path,
    management: Option<&Management>,
    calls: mpsc::Sender<Call>,
) -> Result<impl Future<Output = ()> + use<>, NetworkError> {
    let calls = Calls::new(calls);
    let unix = UnixSocket::bind(socket).map_err(|source| NetworkError::Socket {
        path: socket.to_owned(),
        source,
    })?;
    let mut served = vec![run(&calls, None, unix.connections())?];
    if let Some(management) = management {
        for at in &management.listen {
            let port = TcpPort::bind(*at, management)?;
            served.push(run(&calls, Some(management), port.connections())?);
        }
    }
    Ok(async {
        join_all(served).await;
    })
}

/// Serves the connections of one socket.
fn run<S: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    calls: &Calls<Request, Response>,
    management: Option<&Management>,
    connections: impl Stream<Item = io::Result<S>> + Send + 'static,
) -> Result<BoxFuture<'static, ()>, NetworkError> {
    let mut server = server().concurrency_limit_per_connection(AT_ONCE);
    if let Some(tls) = management.and_then(|management| management.tls.as_ref()) {
        server = server.tls_config(server_tls(tls)?).map_err(unusable)?;
    }
    let service = MiServer::new(Service(calls.clone())).max_decoding_message_size(MAX_REQUEST);
    let (router, calls) = (server.add_service(service), calls.clone());
    Ok(Box::pin(async move {
        let end = calls.closed();
        let served = router.serve_with_incoming_shutdown(connections, end);
        if let Err(error) = served.await {
            tracing::error!(%error, "the management interface stops");
        }
    }))
}

struct Service(Calls<Request, Response>);

/// A document of a request, if it is whole.
fn whole(document: Option<Document>) -> Result<Document, Status> {
    let document = document.unwrap_or_default();
    document.verify().map_err(Status::invalid_argument)?;
    Ok(document)
}

#[tonic::async_trait]
impl Mi for Service {
    type WatchStream = BoxStream<'static, Result<State, Status>>;
    type SampleStream = BoxStream<'static, Result<SampleResponse, Status>>;

    async fn describe(
        &self,
        _: tonic::Request<DescribeRequest>,
    ) -> Result<Reply<DescribeResponse>, Status> {
        match self.0.ask(Request::Describe).await? {
            Response::Description(description) => Ok(Reply::new(description)),
            other => Err(other_answer(other)),
        }
    }

    async fn validate(
        &self,
        request: tonic::Request<ValidateRequest>,
    ) -> Result<Reply<ValidateResponse>, Status> {
        let document = whole(request.into_inner().document)?;
        match self.0.ask(Request::Validate(document)).await? {
            Response::Faults(faults) => Ok(Reply::new(ValidateResponse { faults })),
            other => Err(other_answer(other)),
        }
    }

    async fn apply(
        &self,
        request: tonic::Request<ApplyRequest>,
    ) -> Result<Reply<ApplyResponse>, Status> {
        let document = whole(request.into_inner().document)?;
        match self.0.ask(Request::Apply(document)).await? {
            Response::Applied(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn watch(
        &self,
        request: tonic::Request<WatchRequest>,
    ) -> Result<Reply<Self::WatchStream>, Status> {
        let every = request.into_inner().interval_milliseconds;
        let read = |answer| match answer {
            Response::State(state) => Ok(*state),
            other => Err(other_answer(other)),
        };
        Ok(Reply::new(self.0.watch(
            every,
            || Request::GetState,
            read,
        )?))
    }

    /// It ends when nobody reads any more: the user plane sees that the other end is closed.
    async fn sample(
        &self,
        request: tonic::Request<SampleRequest>,
    ) -> Result<Reply<Self::SampleStream>, Status> {
        let (sampling, copies) = Sampling::of(&request.into_inner())?;
        match self.0.ask(Request::Sample(sampling)).await? {
            Response::Sampling => Ok(Reply::new(Box::pin(copies))),
            other => Err(other_answer(other)),
        }
    }

    async fn list_ports(
        &self,
        _: tonic::Request<ListPortsRequest>,
    ) -> Result<Reply<ListPortsResponse>, Status> {
        match self.0.ask(Request::ListPorts).await? {
            Response::Ports { ports } => Ok(Reply::new(ListPortsResponse { ports })),
            other => Err(other_answer(other)),
        }
    }

    async fn list_routes(
        &self,
        request: tonic::Request<ListRoutesRequest>,
    ) -> Result<Reply<ListRoutesResponse>, Status> {
        let after = request.into_inner().after;
        match self.0.ask(Request::ListRoutes { after }).await? {
            Response::Routes(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn list_neighbours(
        &self,
        request: tonic::Request<ListNeighboursRequest>,
    ) -> Result<Reply<ListNeighboursResponse>, Status> {
        let after = request.into_inner().after;
        match self.0.ask(Request::ListNeighbours { after }).await? {
            Response::Neighbours(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn list_drops(
        &self,
        _: tonic::Request<ListDropsRequest>,
    ) -> Result<Reply<ListDropsResponse>, Status> {
        match self.0.ask(Request::ListDrops).await? {
            Response::Drops { drops } => Ok(Reply::new(ListDropsResponse { drops })),
            other => Err(other_answer(other)),
        }
    }

    async fn list_acl_rules(
        &self,
        request: tonic::Request<ListAclRulesRequest>,
    ) -> Result<Reply<ListAclRulesResponse>, Status> {
        let ListAclRulesRequest { acl, after } = request.into_inner();
        match self.0.ask(Request::ListAclRules { acl, after }).await? {
            Response::AclRules(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn list_policies(
        &self,
        _: tonic::Request<ListPoliciesRequest>,
    ) -> Result<Reply<ListPoliciesResponse>, Status> {
        match self.0.ask(Request::ListPolicies).await? {
            Response::Policies { policies } => Ok(Reply::new(ListPoliciesResponse { policies })),
            other => Err(other_answer(other)),
        }
    }

    async fn list_queue_aggregates(
        &self,
        request: tonic::Request<ListQueueAggregatesRequest>,
    ) -> Result<Reply<ListQueueAggregatesResponse>, Status> {
        let after = request.into_inner().after;
        match self.0.ask(Request::ListQueueAggregates { after }).await? {
            Response::QueueAggregates(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn get_session_policy(
        &self,
        request: tonic::Request<GetSessionPolicyRequest>,
    ) -> Result<Reply<GetSessionPolicyResponse>, Status> {
        let place = SessionPlace::of(request.into_inner())?;
        match self.0.ask(Request::GetSessionPolicy(place)).await? {
            Response::SessionPolicy(policy) => Ok(Reply::new(GetSessionPolicyResponse {
                policy: Some(*policy),
            })),
            other => Err(other_answer(other)),
        }
    }

    async fn watch_rules(
        &self,
        request: tonic::Request<WatchRulesRequest>,
    ) -> Result<Reply<WatchRulesResponse>, Status> {
        let WatchRulesRequest { session, seconds } = request.into_inner();
        northbound::check_watch_seconds(seconds)?;
        let session = SessionPlace::of(session.unwrap_or_default())?;
        let watch = Request::WatchRules { session, seconds };
        match self.0.ask(watch).await? {
            Response::WatchingRules => Ok(Reply::new(WatchRulesResponse {})),
            other => Err(other_answer(other)),
        }
    }

    async fn move_aggregate(
        &self,
        request: tonic::Request<MoveAggregateRequest>,
    ) -> Result<Reply<MoveAggregateResponse>, Status> {
        let asked = Request::MoveAggregate(request.into_inner());
        match self.0.ask(asked).await? {
            Response::Moved(moved) => Ok(Reply::new(moved)),
            other => Err(other_answer(other)),
        }
    }

    async fn check_ledger(
        &self,
        request: tonic::Request<CheckLedgerRequest>,
    ) -> Result<Reply<CheckLedgerResponse>, Status> {
        let repair = request.into_inner().repair;
        match self.0.ask(Request::CheckLedger { repair }).await? {
            Response::Ledger { ledger } => Ok(Reply::new(CheckLedgerResponse {
                ledger: Some(ledger),
            })),
            other => Err(other_answer(other)),
        }
    }
}
