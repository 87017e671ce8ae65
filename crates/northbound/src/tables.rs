//! The service of tables: the control plane's side of the socket, and the command line's.

use crate::calls::{Calls, other_answer};
use crate::tables_client::TablesClient as Generated;
use crate::tables_server::{Tables, TablesServer};
use crate::{
    AaaServer, AclRule, Association, CallError, Connection, ListAaaServersRequest,
    ListAaaServersResponse, ListAclRulesRequest, ListAclRulesResponse, ListAssociationsRequest,
    ListAssociationsResponse, ListNeighboursRequest, ListNeighboursResponse, ListPoliciesRequest,
    ListPoliciesResponse, ListPoolsRequest, ListPoolsResponse, ListPortsRequest, ListPortsResponse,
    ListQueueAggregatesRequest, ListQueueAggregatesResponse, ListRoutesRequest, ListRoutesResponse,
    Neighbour, Pool, Port, QueueAggregate, Request, Response, Route, TrafficPolicy, UserPlaneTable,
};
use futures_util::stream::{BoxStream, iter, try_unfold};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Response as Reply, Status, Streaming};

/// The largest request that is read, in octets.
const MAX_REQUEST: usize = 4096;

type Way = Calls<Request, Response>;
/// Rows, and whether there are more.
type Page<R> = Result<(Vec<R>, bool), Status>;

/// The service, which hands every request to `calls`.
pub(crate) fn service(calls: Way) -> TablesServer<impl Tables> {
    TablesServer::new(Service(calls)).max_decoding_message_size(MAX_REQUEST)
}

struct Service(Way);

/// A listing of what user planes have, and how far it has come.
struct Listing<R> {
    calls: Way,
    /// One is asked, whose failure is that of the listing; otherwise all.
    one: bool,
    /// Those that are left; the first is being asked.
    names: VecDeque<String>,
    /// The last row of its page before.
    after: Option<R>,
}

/// A part of a listing: rows, or why a user plane could not be asked.
enum Part<R> {
    Rows(Vec<R>),
    Missing(String),
}

impl<R: Clone> Listing<R> {
    async fn begin(calls: Way, user_plane: String) -> Result<Self, Status> {
        let one = !user_plane.is_empty();
        let names = if one {
            VecDeque::from([user_plane])
        } else {
            match calls.ask(Request::ListAssociations).await? {
                Response::Associations { associations } => {
                    associations.into_iter().map(|a| a.node_id).collect()
                }
                other => return Err(other_answer(other)),
            }
        };
        Ok(Listing {
            calls,
            one,
            names,
            after: None,
        })
    }

    /// A page is asked for when whoever reads has room for it, so that no more than a few wait.
    async fn next(
        mut self,
        ask: impl FnOnce(Option<R>) -> UserPlaneTable,
        read: fn(Response) -> Page<R>,
    ) -> Result<Option<(Part<R>, Self)>, Status> {
        let Some(name) = self.names.front().cloned() else {
            return Ok(None);
        };
        let table = ask(self.after.take());
        let asked = self.calls.ask(Request::UserPlane { name, table }).await;
        let part = match asked.and_then(read) {
            Ok((rows, more)) => {
                self.after = rows.last().cloned().filter(|_| more);
                Part::Rows(rows)
            }
            Err(status) if self.one => return Err(status),
            Err(status) => Part::Missing(status.message().to_owned()),
        };
        if self.after.is_none() {
            self.names.pop_front();
        }
        Ok(Some((part, self)))
    }
}

#[tonic::async_trait]
impl Tables for Service {
    type ListPoolsStream = BoxStream<'static, Result<ListPoolsResponse, Status>>;
    type ListPortsStream = BoxStream<'static, Result<ListPortsResponse, Status>>;
    type ListRoutesStream = BoxStream<'static, Result<ListRoutesResponse, Status>>;
    type ListNeighboursStream = BoxStream<'static, Result<ListNeighboursResponse, Status>>;
    type ListAclRulesStream = BoxStream<'static, Result<ListAclRulesResponse, Status>>;
    type ListPoliciesStream = BoxStream<'static, Result<ListPoliciesResponse, Status>>;
    type ListQueueAggregatesStream =
        BoxStream<'static, Result<ListQueueAggregatesResponse, Status>>;

    async fn list_pools(
        &self,
        _: tonic::Request<ListPoolsRequest>,
    ) -> Result<Reply<Self::ListPoolsStream>, Status> {
        match self.0.ask(Request::ListPools).await? {
            Response::Pools { pools } => {
                let told = |pool| Ok(ListPoolsResponse { pool: Some(pool) });
                Ok(Reply::new(Box::pin(iter(pools.into_iter().map(told)))))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn list_associations(
        &self,
        _: tonic::Request<ListAssociationsRequest>,
    ) -> Result<Reply<ListAssociationsResponse>, Status> {
        match self.0.ask(Request::ListAssociations).await? {
            Response::Associations { associations } => {
                Ok(Reply::new(ListAssociationsResponse { associations }))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn list_aaa_servers(
        &self,
        _: tonic::Request<ListAaaServersRequest>,
    ) -> Result<Reply<ListAaaServersResponse>, Status> {
        match self.0.ask(Request::ListAaaServers).await? {
            Response::AaaServers { servers } => Ok(Reply::new(ListAaaServersResponse { servers })),
            other => Err(other_answer(other)),
        }
    }

    async fn list_ports(
        &self,
        request: tonic::Request<ListPortsRequest>,
    ) -> Result<Reply<Self::ListPortsStream>, Status> {
        let listing = Listing::begin(self.0.clone(), request.into_inner().user_plane).await?;
        let parts = try_unfold(listing, async |listing: Listing<Port>| {
            let read = |response| match response {
                Response::Ports { ports } => Ok((ports, false)),
                other => Err(other_answer(other)),
            };
            let next = listing.next(|_| UserPlaneTable::Ports, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), listing)))
        });
        Ok(Reply::new(Box::pin(parts)))
    }

    async fn list_routes(
        &self,
        request: tonic::Request<ListRoutesRequest>,
    ) -> Result<Reply<Self::ListRoutesStream>, Status> {
        let listing = Listing::begin(self.0.clone(), request.into_inner().user_plane).await?;
        let parts = try_unfold(listing, async |listing: Listing<Route>| {
            let read = |response| match response {
                Response::Routes { routes, more } => Ok((routes, more)),
                other => Err(other_answer(other)),
            };
            let ask = |after| UserPlaneTable::Routes { after };
            let next = listing.next(ask, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), listing)))
        });
        Ok(Reply::new(Box::pin(parts)))
    }

    async fn list_neighbours(
        &self,
        request: tonic::Request<ListNeighboursRequest>,
    ) -> Result<Reply<Self::ListNeighboursStream>, Status> {
        let listing = Listing::begin(self.0.clone(), request.into_inner().user_plane).await?;
        let parts = try_unfold(listing, async |listing: Listing<Neighbour>| {
            let read = |response| match response {
                Response::Neighbours { neighbours, more } => Ok((neighbours, more)),
                other => Err(other_answer(other)),
            };
            let ask = |after| UserPlaneTable::Neighbours { after };
            let next = listing.next(ask, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), listing)))
        });
        Ok(Reply::new(Box::pin(parts)))
    }

    async fn list_acl_rules(
        &self,
        request: tonic::Request<ListAclRulesRequest>,
    ) -> Result<Reply<Self::ListAclRulesStream>, Status> {
        let ListAclRulesRequest { user_plane, acl } = request.into_inner();
        let listing: Listing<AclRule> = Listing::begin(self.0.clone(), user_plane).await?;
        let parts = try_unfold((listing, acl), async |(listing, acl)| {
            let read = |response| match response {
                Response::AclRules { rules, more } => Ok((rules, more)),
                other => Err(other_answer(other)),
            };
            let of = acl.clone();
            let ask = |after| UserPlaneTable::AclRules { acl: of, after };
            let next = listing.next(ask, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), (listing, acl))))
        });
        Ok(Reply::new(Box::pin(parts)))
    }

    async fn list_policies(
        &self,
        request: tonic::Request<ListPoliciesRequest>,
    ) -> Result<Reply<Self::ListPoliciesStream>, Status> {
        let listing = Listing::begin(self.0.clone(), request.into_inner().user_plane).await?;
        let parts = try_unfold(listing, async |listing: Listing<TrafficPolicy>| {
            let read = |response| match response {
                Response::Policies { policies } => Ok((policies, false)),
                other => Err(other_answer(other)),
            };
            let next = listing.next(|_| UserPlaneTable::Policies, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), listing)))
        });
        Ok(Reply::new(Box::pin(parts)))
    }

    async fn list_queue_aggregates(
        &self,
        request: tonic::Request<ListQueueAggregatesRequest>,
    ) -> Result<Reply<Self::ListQueueAggregatesStream>, Status> {
        let listing = Listing::begin(self.0.clone(), request.into_inner().user_plane).await?;
        let parts = try_unfold(listing, async |listing: Listing<QueueAggregate>| {
            let read = |response| match response {
                Response::QueueAggregates { aggregates, more } => Ok((aggregates, more)),
                other => Err(other_answer(other)),
            };
            let ask = |after| UserPlaneTable::QueueAggregates { after };
            let next = listing.next(ask, read).await?;
            Ok(next.map(|(part, listing)| (part.into(), listing)))
        });
        Ok(Reply::new(Box::pin(parts)))
    }
}

/// What a message of each listing is, both ways.
macro_rules! parts {
    ($($message:ident { $rows:ident: $row:ident })+) => {
        $(impl From<Part<$row>> for $message {
            fn from(part: Part<$row>) -> Self {
                match part {
                    Part::Rows($rows) => $message { $rows, missing: None },
                    Part::Missing(why) => $message {
                        $rows: Vec::new(),
                        missing: Some(why),
                    },
                }
            }
        }

        impl From<$message> for (Vec<$row>, Option<String>) {
            fn from(message: $message) -> Self {
                (message.$rows, message.missing)
            }
        })+
    };
}

parts! {
    ListPortsResponse { ports: Port }
    ListRoutesResponse { routes: Route }
    ListNeighboursResponse { neighbours: Neighbour }
    ListAclRulesResponse { rules: AclRule }
    ListPoliciesResponse { policies: TrafficPolicy }
    ListQueueAggregatesResponse { aggregates: QueueAggregate }
}

/// A connection to the tables of a control plane. Each call waits for its answer.
///
/// What is asked of user planes is asked of the one that is named, or of all: then comes, beside the rows, why any of them
/// could not be asked.
pub struct TablesClient {
    connection: Connection,
    client: Generated<Channel>,
}

impl TablesClient {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client = Generated::new(connection.channel());
        Ok(TablesClient { connection, client })
    }

    /// The pools and who has nets of them.
    pub fn pools(&mut self) -> Result<Vec<Pool>, CallError> {
        let answer = self.client.list_pools(ListPoolsRequest {});
        let mut listing = self.connection.wait(answer)?.into_inner();
        let mut pools = Vec::new();
        while let Some(part) = self.connection.wait(listing.message())? {
            pools.extend(part.pool);
        }
        Ok(pools)
    }

    /// The PFCP associations.
    pub fn associations(&mut self) -> Result<Vec<Association>, CallError> {
        let answer = self.client.list_associations(ListAssociationsRequest {});
        Ok(self.connection.wait(answer)?.into_inner().associations)
    }

    /// The RADIUS servers of each server group.
    pub fn aaa_servers(&mut self) -> Result<Vec<AaaServer>, CallError> {
        let answer = self.client.list_aaa_servers(ListAaaServersRequest {});
        Ok(self.connection.wait(answer)?.into_inner().servers)
    }

    /// Ports with their counters.
    pub fn ports(
        &mut self,
        user_plane: Option<&str>,
    ) -> Result<(Vec<Port>, Vec<String>), CallError> {
        let user_plane = user_plane.unwrap_or_default().to_owned();
        let answer = self.client.list_ports(ListPortsRequest { user_plane });
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }

    /// Routes of forwarding tables.
    pub fn routes(
        &mut self,
        user_plane: Option<&str>,
    ) -> Result<(Vec<Route>, Vec<String>), CallError> {
        let user_plane = user_plane.unwrap_or_default().to_owned();
        let answer = self.client.list_routes(ListRoutesRequest { user_plane });
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }

    /// Neighbours on core ports' links.
    pub fn neighbours(
        &mut self,
        user_plane: Option<&str>,
    ) -> Result<(Vec<Neighbour>, Vec<String>), CallError> {
        let user_plane = user_plane.unwrap_or_default().to_owned();
        let answer = self
            .client
            .list_neighbours(ListNeighboursRequest { user_plane });
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }

    /// Rules of an ACL with their counters.
    pub fn acl_rules(
        &mut self,
        acl: &str,
        user_plane: Option<&str>,
    ) -> Result<(Vec<AclRule>, Vec<String>), CallError> {
        let request = ListAclRulesRequest {
            user_plane: user_plane.unwrap_or_default().to_owned(),
            acl: acl.to_owned(),
        };
        let answer = self.client.list_acl_rules(request);
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }

    /// Policies of packets.
    pub fn policies(
        &mut self,
        user_plane: Option<&str>,
    ) -> Result<(Vec<TrafficPolicy>, Vec<String>), CallError> {
        let user_plane = user_plane.unwrap_or_default().to_owned();
        let answer = self
            .client
            .list_policies(ListPoliciesRequest { user_plane });
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }

    /// Queues of ports and of their parts.
    pub fn queue_aggregates(
        &mut self,
        user_plane: Option<&str>,
    ) -> Result<(Vec<QueueAggregate>, Vec<String>), CallError> {
        let user_plane = user_plane.unwrap_or_default().to_owned();
        let answer = self
            .client
            .list_queue_aggregates(ListQueueAggregatesRequest { user_plane });
        collect(&self.connection, self.connection.wait(answer)?.into_inner())
    }
}

fn collect<M: Into<(Vec<R>, Option<String>)>, R>(
    connection: &Connection,
    mut listing: Streaming<M>,
) -> Result<(Vec<R>, Vec<String>), CallError> {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    while let Some(part) = connection.wait(listing.message())? {
        let (more, why) = part.into();
        rows.extend(more);
        missing.extend(why);
    }
    Ok((rows, missing))
}
