//! The ways to a daemon: the command line's, which waits for each answer and has no tasks of its own, and that of a daemon that goes on.

use hyper_util::rt::TokioIo;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status, TimeoutExpired};

/// How long a daemon may take to compare all of its tables.
pub const PATIENCE_FOR_A_CHECK: Duration = Duration::from_secs(60);
/// What a daemon may send before it was taken in, in octets.
const WINDOW: u32 = 1 << 20;

/// Why a daemon could not be asked, or did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens on the socket.
    #[error("nothing answers at {}: {source}", path.display())]
    Unreachable {
        /// The socket's path.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The connection broke or the time ran out before the answer.
    #[error("the answer did not come: {0}")]
    Broken(io::Error),
    /// What answers does not speak as this version does.
    #[error("it does not answer as this version does ({0}): are both of the same version?")]
    Unknown(String),
    /// The daemon says why not.
    #[error("{0}")]
    Refused(String),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        CallError::from(&status)
    }
}

/// The one place where a failed call becomes words: those of whoever was asked, or ours, never gRPC's.
impl From<&Status> for CallError {
    fn from(status: &Status) -> Self {
        let mut cause = std::error::Error::source(status);
        // what the daemon says comes without a cause, what happens here with one
        if cause.is_none() && status.code() != Code::Unimplemented {
            return CallError::Refused(status.message().to_owned());
        }
        let mut last = status.message().to_owned();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return CallError::broken(error.kind(), error.to_string());
            }
            if error.is::<TimeoutExpired>() {
                return CallError::Broken(ErrorKind::TimedOut.into());
            }
            (last, cause) = (error.to_string(), error.source());
        }
        match status.code() {
            Code::Unimplemented | Code::Internal => CallError::Unknown(last),
            _ => CallError::broken(ErrorKind::ConnectionReset, last),
        }
    }
}

impl CallError {
    /// In which way a connection is lost says nothing to an operator.
    fn broken(kind: ErrorKind, why: String) -> Self {
        let why = match kind {
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof => "the connection was lost".to_owned(),
            _ => why,
        };
        CallError::Broken(io::Error::new(kind, why))
    }
}

/// A connection to a daemon's Unix socket.
pub struct Connection {
    runtime: Runtime,
    channel: Channel,
    patience: Duration,
}

impl Connection {
    /// Connects to the socket at `path`; each answer, or part of one, may take as long as `patience`.
    ///
    /// # Errors
    /// [`CallError::Unreachable`] if nobody listens.
    pub fn open(path: &Path, patience: Duration) -> Result<Self, CallError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CallError::Broken)?;
        let channel = runtime.block_on(connect(path))?;
        Ok(Connection {
            runtime,
            channel,
            patience,
        })
    }

    /// For a client that is generated.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// How long an answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Waits for an answer, or a part of one.
    ///
    /// # Errors
    /// Why it did not come, or what the daemon refused.
    pub fn wait<T>(&self, answer: impl Future<Output = Result<T, Status>>) -> Result<T, CallError> {
        self.wait_for(self.patience, answer)
    }

    /// Waits for an answer to a question that takes its time.
    ///
    /// # Errors
    /// As [`Connection::wait`].
    pub fn wait_for<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, CallError> {
        let answer = async { tokio::time::timeout(patience, answer).await };
        match self.runtime.block_on(answer) {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(CallError::Broken(ErrorKind::TimedOut.into())),
        }
    }
}

/// A channel to the daemon's socket at `path`, for a process that goes on. It connects when it is first used, and again after the
/// connection broke. Calls beyond those that the daemon serves at once wait.
pub fn channel(path: &Path) -> Channel {
    let path = path.to_owned();
    let again = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    endpoint().connect_with_connector_lazy(again)
}

fn endpoint() -> Endpoint {
    Endpoint::from_static("http://daemon.invalid") // not looked up
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
}

async fn connect(path: &Path) -> Result<Channel, CallError> {
    let unreachable = |source| CallError::Unreachable {
        path: path.to_owned(),
        source,
    };
    let mut stream = Some(UnixStream::connect(path).await.map_err(unreachable)?);
    // a connection that broke is not made again: whoever asked is told
    let once = tower::service_fn(move |_: Uri| {
        let stream = stream.take().ok_or(ErrorKind::ConnectionReset);
        async { Ok::<_, io::Error>(TokioIo::new(stream?)) }
    });
    let connected = endpoint().connect_with_connector(once).await;
    connected.map_err(|error| CallError::from(Status::from_error(error.into())))
}
