//! The configuration service's side of the socket, and the command line's.

use crate::calls::{Asked, Calls, other_answer};
use crate::configuration_client::ConfigurationClient as Generated;
use crate::configuration_server::{Configuration, ConfigurationServer};
use crate::{
    CallError, Caller, Change, CheckChangeRequest, CheckChangeResponse, CommitRequest,
    CommitResponse, ConfirmRequest, ConfirmResponse, Connection, GetConfigurationRequest,
    GetConfigurationResponse, ListManagedRequest, ListManagedResponse, ListVersionsRequest,
    ListVersionsResponse, LockRequest, LockResponse, Managed, Version,
};
use futures_util::stream::{BoxStream, StreamExt, once, pending};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Response as Reply, Status, Streaming};

/// The largest document that is read, in octets, with room for what is around it.
pub const MAX_DOCUMENT: usize = (96 << 20) + 65_536;
/// How long a commit may take: user planes are asked first, and a million rules are compiled to see whether that can be done.
pub const PATIENCE_FOR_A_COMMIT: Duration = Duration::from_secs(180);

/// How long a version may take that has a million rules.
const PATIENCE_FOR_A_VERSION: Duration = Duration::from_secs(60);

/// What is asked of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigurationRequest {
    /// A version.
    Get(Option<u64>),
    /// Every version.
    Versions,
    /// What a change would do.
    Check(Change),
    /// A change is made.
    Commit {
        /// Who makes it.
        by: String,
        /// What is made.
        commit: CommitRequest,
    },
    /// A version is kept.
    Confirm {
        /// Who keeps it.
        by: String,
        /// The lock that they hold; 0: none.
        lock: u64,
    },
    /// Everybody else is kept out.
    Lock {
        /// By whom.
        by: String,
    },
    /// And let in again.
    Unlock(u64),
    /// What each user plane has.
    Managed,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigurationResponse {
    /// To [`ConfigurationRequest::Get`].
    Configuration(GetConfigurationResponse),
    /// To [`ConfigurationRequest::Versions`].
    Versions(Vec<Version>),
    /// To [`ConfigurationRequest::Check`].
    Checked(CheckChangeResponse),
    /// To [`ConfigurationRequest::Commit`].
    Committed(CommitResponse),
    /// To [`ConfigurationRequest::Confirm`]: the version that stays.
    Confirmed(u64),
    /// To [`ConfigurationRequest::Lock`]: the lock's number.
    Locked(u64),
    /// To [`ConfigurationRequest::Unlock`].
    Done,
    /// To [`ConfigurationRequest::Managed`].
    Managed(Vec<Managed>),
}

/// A request with the place for its answer.
pub type ConfigurationCall = Asked<ConfigurationRequest, ConfigurationResponse>;
type Way = Calls<ConfigurationRequest, ConfigurationResponse>;

/// The service, which hands every request to `calls`.
pub(crate) fn service(
    calls: mpsc::Sender<ConfigurationCall>,
) -> ConfigurationServer<impl Configuration> {
    ConfigurationServer::new(Service(Calls::new(calls))).max_decoding_message_size(MAX_DOCUMENT)
}

struct Service(Way);

/// Lets go of a lock when whoever held it has gone.
struct Held(Way, u64);

impl Drop for Held {
    fn drop(&mut self) {
        let (way, lock) = (self.0.clone(), self.1);
        tokio::spawn(async move { way.ask(ConfigurationRequest::Unlock(lock)).await });
    }
}

#[tonic::async_trait]
impl Configuration for Service {
    type LockStream = BoxStream<'static, Result<LockResponse, Status>>;

    async fn get_configuration(
        &self,
        request: tonic::Request<GetConfigurationRequest>,
    ) -> Result<Reply<GetConfigurationResponse>, Status> {
        match self
            .0
            .ask(ConfigurationRequest::Get(request.into_inner().version))
            .await?
        {
            ConfigurationResponse::Configuration(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn list_versions(
        &self,
        _: tonic::Request<ListVersionsRequest>,
    ) -> Result<Reply<ListVersionsResponse>, Status> {
        match self.0.ask(ConfigurationRequest::Versions).await? {
            ConfigurationResponse::Versions(versions) => {
                Ok(Reply::new(ListVersionsResponse { versions }))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn check_change(
        &self,
        request: tonic::Request<CheckChangeRequest>,
    ) -> Result<Reply<CheckChangeResponse>, Status> {
        let change = request.into_inner().change.unwrap_or_default();
        match self.0.ask(ConfigurationRequest::Check(change)).await? {
            ConfigurationResponse::Checked(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn commit(
        &self,
        request: tonic::Request<CommitRequest>,
    ) -> Result<Reply<CommitResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let commit = request.into_inner();
        match self
            .0
            .ask(ConfigurationRequest::Commit { by, commit })
            .await?
        {
            ConfigurationResponse::Committed(answer) => Ok(Reply::new(answer)),
            other => Err(other_answer(other)),
        }
    }

    async fn confirm(
        &self,
        request: tonic::Request<ConfirmRequest>,
    ) -> Result<Reply<ConfirmResponse>, Status> {
        let by = Caller::name_in(&request).await;
        let lock = request.into_inner().lock;
        match self
            .0
            .ask(ConfigurationRequest::Confirm { by, lock })
            .await?
        {
            ConfigurationResponse::Confirmed(version) => {
                Ok(Reply::new(ConfirmResponse { version }))
            }
            other => Err(other_answer(other)),
        }
    }

    async fn list_managed(
        &self,
        _: tonic::Request<ListManagedRequest>,
    ) -> Result<Reply<ListManagedResponse>, Status> {
        match self.0.ask(ConfigurationRequest::Managed).await? {
            ConfigurationResponse::Managed(managed) => {
                Ok(Reply::new(ListManagedResponse { managed }))
            }
            other => Err(other_answer(other)),
        }
    }

    /// The lock is held as long as the stream is: a connection that breaks lets go of it.
    async fn lock(
        &self,
        request: tonic::Request<LockRequest>,
    ) -> Result<Reply<Self::LockStream>, Status> {
        let by = Caller::name_in(&request).await;
        let way = self.0.clone();
        // a task of its own: whoever goes before the answer comes lets go of the lock, too
        let held = tokio::spawn(async move {
            match way.ask(ConfigurationRequest::Lock { by }).await? {
                ConfigurationResponse::Locked(lock) => Ok(Held(way, lock)),
                other => Err(other_answer(other)),
            }
        });
        let held = held.await.map_err(|e| Status::internal(e.to_string()))??;
        let lock = held.1;
        let told = once(async move { Ok(LockResponse { lock }) }).chain(pending());
        let told = told.map(move |answer| {
            let _ = &held;
            answer
        });
        Ok(Reply::new(Box::pin(told)))
    }
}

/// A connection to the configuration of a control plane. Each call waits for its answer.
pub struct ConfigurationClient {
    connection: Connection,
    client: Generated<Channel>,
}

/// The configuration is locked as long as this lives.
pub struct ConfigurationLock {
    /// The number that commits under this lock name.
    pub number: u64,
    _held: Streaming<LockResponse>,
}

impl ConfigurationClient {
    /// As [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(path, patience)?;
        let client =
            Generated::new(connection.channel()).max_decoding_message_size(4 * MAX_DOCUMENT);
        Ok(ConfigurationClient { connection, client })
    }

    /// A version; the one in force for `None`.
    pub fn get(&mut self, version: Option<u64>) -> Result<GetConfigurationResponse, CallError> {
        let answer = self
            .client
            .get_configuration(GetConfigurationRequest { version });
        let answer = self.connection.wait_for(PATIENCE_FOR_A_VERSION, answer)?;
        Ok(answer.into_inner())
    }

    /// Every version that is kept, the oldest first.
    pub fn versions(&mut self) -> Result<Vec<Version>, CallError> {
        let answer = self.client.list_versions(ListVersionsRequest {});
        Ok(self.connection.wait(answer)?.into_inner().versions)
    }

    /// What a change would do.
    pub fn check(&mut self, change: Change) -> Result<CheckChangeResponse, CallError> {
        let answer = self.client.check_change(CheckChangeRequest {
            change: Some(change),
        });
        Ok(self
            .connection
            .wait_for(PATIENCE_FOR_A_COMMIT, answer)?
            .into_inner())
    }

    /// Makes a change.
    pub fn commit(&mut self, commit: CommitRequest) -> Result<CommitResponse, CallError> {
        let answer = self.client.commit(commit);
        Ok(self
            .connection
            .wait_for(PATIENCE_FOR_A_COMMIT, answer)?
            .into_inner())
    }

    /// Keeps the version that waits for that.
    pub fn confirm(&mut self, lock: u64) -> Result<u64, CallError> {
        let answer = self.client.confirm(ConfirmRequest { lock });
        Ok(self.connection.wait(answer)?.into_inner().version)
    }

    /// What each user plane has of the configuration in force.
    pub fn managed(&mut self) -> Result<Vec<Managed>, CallError> {
        let answer = self.client.list_managed(ListManagedRequest {});
        Ok(self.connection.wait(answer)?.into_inner().managed)
    }

    /// Keeps everybody else from changing the configuration.
    pub fn lock(&mut self) -> Result<ConfigurationLock, CallError> {
        let mut held = self
            .connection
            .wait(self.client.lock(LockRequest {}))?
            .into_inner();
        let told = self.connection.wait(held.message())?;
        Ok(ConfigurationLock {
            number: told.map_or(0, |told| told.lock),
            _held: held,
        })
    }
}
