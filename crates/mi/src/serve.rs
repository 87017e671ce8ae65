//! The user plane's side.

use crate::mi_server::{Mi, MiServer};
use crate::{ListPortsRequest, ListPortsResponse, Port};
use northbound::{
    Asked, Calls, CheckLedgerRequest, CheckLedgerResponse, DropCounter, Ledger, ListDropsRequest,
    ListDropsResponse, Refusal, UnixSocket, other_answer, server,
};
use std::io;
use std::path::Path;
use tokio::sync::mpsc;
use tonic::{Response as Reply, Status};

/// The largest request that is read, in octets.
const MAX_REQUEST: usize = 64 * 1024;

/// What the user plane is asked or told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The ports with their counters.
    ListPorts,
    /// The named counters of whatever was refused or dropped.
    ListDrops,
    /// Compare what is held with the owners of it, in both directions.
    CheckLedger {
        /// Give back what has no owner, and book what is missing.
        repair: bool,
    },
}

/// What the user plane answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// To [`Request::ListPorts`].
    Ports {
        /// The ports in the order of the configuration.
        ports: Vec<Port>,
    },
    /// To [`Request::ListDrops`].
    Drops {
        /// Every counter, those that are zero too.
        drops: Vec<DropCounter>,
    },
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

/// Binds `path` as [`UnixSocket::bind`] does and hands every request to `calls`, until the receiver is dropped.
///
/// # Errors
/// As [`UnixSocket::bind`].
pub fn serve(
    path: &Path,
    calls: mpsc::Sender<Call>,
) -> io::Result<impl Future<Output = ()> + use<>> {
    let socket = UnixSocket::bind(path)?;
    let calls = Calls::new(calls);
    let service = MiServer::new(Service(calls.clone()));
    let router = server().add_service(service.max_decoding_message_size(MAX_REQUEST));
    Ok(async move {
        let end = calls.closed();
        let served = router.serve_with_incoming_shutdown(socket.connections(), end);
        if let Err(error) = served.await {
            tracing::error!(%error, "the management interface ends");
        }
    })
}

struct Service(Calls<Request, Response>);

#[tonic::async_trait]
impl Mi for Service {
    async fn list_ports(
        &self,
        _: tonic::Request<ListPortsRequest>,
    ) -> Result<Reply<ListPortsResponse>, Status> {
        match self.0.ask(Request::ListPorts).await? {
            Response::Ports { ports } => Ok(Reply::new(ListPortsResponse { ports })),
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
