//! The control plane's side.

use crate::mi_client::MiClient;
use crate::network::{NetworkError, client_tls};
use crate::{
    ApplyRequest, ApplyResponse, DescribeRequest, DescribeResponse, Document, DocumentFault,
    GetSessionPolicyRequest, ListAclRulesRequest, ListAclRulesResponse, ListNeighboursRequest,
    ListNeighboursResponse, ListPoliciesRequest, ListPortsRequest, ListQueueAggregatesRequest,
    ListQueueAggregatesResponse, ListRoutesRequest, ListRoutesResponse, MoveAggregateRequest,
    SampleRequest, SampleResponse, State, ValidateRequest, WatchRequest, WatchRulesRequest,
};
use config::start::Tls;
use hyper_util::rt::TokioIo;
use northbound::{
    AclRule, CallError, CheckLedgerRequest, DropCounter, Ledger, ListDropsRequest,
    MoveAggregateResponse, Neighbour, Port, QueueAggregate, Route, SessionPolicy, TrafficPolicy,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Uri};
use tonic::{Code, Status, Streaming};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take: ports are opened meanwhile.
const ANSWER: Duration = Duration::from_secs(60);
/// After so long without a sign of life a user plane is asked for one, and is given up after as long again.
const SILENCE: Duration = Duration::from_secs(10);
/// Between two attempts to reach a user plane, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Where a user plane serves its management interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket on this machine.
    Unix(PathBuf),
    /// An address and a TCP port.
    Tcp(SocketAddr),
}

impl FromStr for Endpoint {
    type Err = NetworkError;

    /// A path, with or without `unix:` before it, or `192.0.2.2:8806`, `[2001:db8::2]:8806`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Endpoint::Unix(path.into()));
        }
        let at = text.parse().map(Endpoint::Tcp);
        at.map_err(|_| NetworkError::Endpoint(text.to_owned()))
    }
}

/// The way to one user plane. It connects when it is used, and again when the connection is lost.
#[derive(Clone, Debug)]
pub struct Client(MiClient<Channel>);

impl Client {
    /// A way that begins to connect when it is used first. It needs a tokio runtime.
    ///
    /// # Errors
    /// The files of `tls` cannot be used, or there are none for an address that is not a loopback address.
    pub fn new(endpoint: &Endpoint, tls: Option<&Tls>) -> Result<Self, NetworkError> {
        let channel = match endpoint {
            Endpoint::Unix(path) => unix(path.clone()),
            Endpoint::Tcp(at) => tcp(*at, tls)?,
        };
        Ok(Client(MiClient::new(channel)))
    }

    /// Asks who the user plane of this name is, again and again until it answers.
    pub async fn meet(&mut self, name: &str) -> DescribeResponse {
        let (mut pause, longest) = BACKOFF;
        let mut told = false;
        loop {
            match self.describe().await {
                Ok(description) => return description,
                Err(status) if !told => {
                    told = true;
                    let error = reason(&status);
                    tracing::warn!(
                        user_plane = name,
                        error,
                        "a user plane's management interface does not answer: check that sluice-up runs there, in the same \
                            version as this control plane. Until then the user plane keeps its ports"
                    );
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Who the user plane is, what it can do, and which document is in force.
    pub async fn describe(&mut self) -> Result<DescribeResponse, Status> {
        Ok(self.0.describe(DescribeRequest {}).await?.into_inner())
    }

    /// What is wrong with a document.
    pub async fn validate(&mut self, document: Document) -> Result<Vec<DocumentFault>, Status> {
        let document = Some(document);
        let answer = self.0.validate(ValidateRequest { document }).await?;
        Ok(answer.into_inner().faults)
    }

    /// Puts a document in force. It is if the answer has no faults.
    pub async fn apply(&mut self, document: Document) -> Result<ApplyResponse, Status> {
        let document = Some(document);
        let answer = self.0.apply(ApplyRequest { document }).await?;
        Ok(answer.into_inner())
    }

    /// The ports with their counters.
    pub async fn ports(&mut self) -> Result<Vec<Port>, Status> {
        let answer = self.0.list_ports(ListPortsRequest {}).await?;
        Ok(answer.into_inner().ports)
    }

    /// Some routes: the first ones, or those behind one.
    pub async fn routes(&mut self, after: Option<Route>) -> Result<ListRoutesResponse, Status> {
        let answer = self.0.list_routes(ListRoutesRequest { after }).await?;
        Ok(answer.into_inner())
    }

    /// Some neighbours: the first ones, or those behind one.
    pub async fn neighbours(
        &mut self,
        after: Option<Neighbour>,
    ) -> Result<ListNeighboursResponse, Status> {
        let request = ListNeighboursRequest { after };
        Ok(self.0.list_neighbours(request).await?.into_inner())
    }

    /// The counters, those that are zero too.
    pub async fn drops(&mut self) -> Result<Vec<DropCounter>, Status> {
        let answer = self.0.list_drops(ListDropsRequest {}).await?;
        Ok(answer.into_inner().drops)
    }

    /// Some rules of an ACL with their counters: the first ones, or those behind one.
    pub async fn acl_rules(
        &mut self,
        acl: String,
        after: Option<AclRule>,
    ) -> Result<ListAclRulesResponse, Status> {
        let request = ListAclRulesRequest { acl, after };
        Ok(self.0.list_acl_rules(request).await?.into_inner())
    }

    /// The policies, those that only sessions name too.
    pub async fn policies(&mut self) -> Result<Vec<TrafficPolicy>, Status> {
        let answer = self.0.list_policies(ListPoliciesRequest {}).await?;
        Ok(answer.into_inner().policies)
    }

    /// Queues of ports and of their parts: the first ones, or those behind one.
    pub async fn queue_aggregates(
        &mut self,
        after: Option<QueueAggregate>,
    ) -> Result<ListQueueAggregatesResponse, Status> {
        let request = ListQueueAggregatesRequest { after };
        Ok(self.0.list_queue_aggregates(request).await?.into_inner())
    }

    /// What the policies of a session have done.
    pub async fn session_policy(
        &mut self,
        session: GetSessionPolicyRequest,
    ) -> Result<SessionPolicy, Status> {
        let answer = self.0.get_session_policy(session).await?.into_inner();
        Ok(answer.policy.unwrap_or_default())
    }

    /// Counts for so many seconds how often the packets of a session hit each rule; 0 ends it.
    pub async fn watch_rules(
        &mut self,
        session: GetSessionPolicyRequest,
        seconds: u32,
    ) -> Result<(), Status> {
        let session = Some(session);
        let request = WatchRulesRequest { session, seconds };
        self.0.watch_rules(request).await?;
        Ok(())
    }

    /// Moves an aggregate to a worker.
    pub async fn move_aggregate(
        &mut self,
        request: MoveAggregateRequest,
    ) -> Result<MoveAggregateResponse, Status> {
        Ok(self.0.move_aggregate(request).await?.into_inner())
    }

    /// Compares what the user plane holds with the owners of it, and puts right what differs if `repair` is set.
    pub async fn check_ledger(&mut self, repair: bool) -> Result<Ledger, Status> {
        let request = CheckLedgerRequest { repair };
        let answer = self.0.check_ledger(request).await?.into_inner();
        Ok(answer.ledger.unwrap_or_default())
    }

    /// The state now, and again after each interval of 100 ms to 60 s, until the connection is lost.
    pub async fn watch(&mut self, interval: Duration) -> Result<Streaming<State>, Status> {
        let interval_milliseconds = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX);
        let request = WatchRequest {
            interval_milliseconds,
        };
        Ok(self.0.watch(request).await?.into_inner())
    }

    /// Copies of packets of a home's sessions, as long as they are read.
    pub async fn sample(
        &mut self,
        request: SampleRequest,
    ) -> Result<Streaming<SampleResponse>, Status> {
        Ok(self.0.sample(request).await?.into_inner())
    }
}

/// Whether a call failed because something else is under way there.
pub fn is_busy(status: &Status) -> bool {
    status.code() == Code::Aborted
}

/// Whether a call failed because what it is about is not there.
pub fn is_absent(status: &Status) -> bool {
    status.code() == Code::NotFound
}

/// Why a call failed, in words for an operator.
pub fn reason(status: &Status) -> String {
    CallError::from(status).to_string()
}

fn settings(uri: Uri) -> tonic::transport::Endpoint {
    Channel::builder(uri)
        .connect_timeout(CONNECT)
        .timeout(ANSWER)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE)
        .keep_alive_while_idle(true)
}

fn unix(path: PathBuf) -> Channel {
    let connect = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    });
    let nowhere = Uri::from_static("http://user-plane.invalid"); // not looked up
    settings(nowhere).connect_with_connector_lazy(connect)
}

fn tcp(at: SocketAddr, tls: Option<&Tls>) -> Result<Channel, NetworkError> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let uri = format!("{scheme}://{at}").parse();
    let uri = uri.map_err(|_| NetworkError::Endpoint(at.to_string()))?;
    let endpoint = match tls {
        Some(tls) => settings(uri)
            .tls_config(client_tls(tls)?)
            .map_err(unusable)?,
        None if at.ip().is_loopback() => settings(uri),
        None => return Err(NetworkError::Open(at.to_string())),
    };
    Ok(endpoint.connect_lazy())
}

pub(crate) fn unusable(error: tonic::transport::Error) -> NetworkError {
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    NetworkError::Tls(cause.unwrap_or_else(|| error.to_string()))
}
