//! Where a daemon listens, and how much it lets in.

use futures_util::Stream;
use futures_util::stream::unfold;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::Server;
use tonic::transport::server::Connected;

/// Connections that are served at once on one socket; more wait in the socket's backlog.
pub const MAX_CONNECTIONS: usize = 32;
/// Calls under way at once on one connection.
const MAX_CALLS: u32 = 32;
/// The most octets of a call's headers.
const MAX_HEADERS: u32 = 16 * 1024;
/// What one connection may send before it was taken in, in octets.
const WINDOW: u32 = 256 * 1024;
/// After so long without a sign of life a peer is asked for one, and is given up after as long again.
const SILENCE: Duration = Duration::from_secs(20);
/// Before another try, when the system lets no connection in.
const PAUSE: Duration = Duration::from_millis(100);

/// A gRPC server with bounds on what one connection may cost.
pub fn server() -> Server {
    Server::builder()
        .max_concurrent_streams(MAX_CALLS)
        .http2_max_header_list_size(MAX_HEADERS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .http2_keepalive_interval(Some(SILENCE))
        .http2_keepalive_timeout(Some(SILENCE))
}

/// A Unix socket that is listened on; its name goes with it.
pub struct UnixSocket {
    listener: UnixListener,
    name: PathBuf,
}

impl UnixSocket {
    /// Binds `path`; folders that are missing are made.
    ///
    /// A socket file that nobody listens on any more is replaced; one that a living process answers on is an error
    /// (`AddrInUse`), so that a second daemon does not take the first one's place unseen.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if path.exists() {
            match std::os::unix::net::UnixStream::connect(path) {
                Ok(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::AddrInUse,
                        format!("{} is in use by a running process", path.display()),
                    ));
                }
                Err(_) => std::fs::remove_file(path)?,
            }
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        Ok(UnixSocket {
            listener: UnixListener::bind(path)?,
            name: path.to_owned(),
        })
    }

    /// The connections that come, at most [`MAX_CONNECTIONS`] at once.
    pub fn connections(self) -> impl Stream<Item = io::Result<Bounded<UnixStream>>> {
        let accept = async |socket: &UnixSocket| Ok(socket.listener.accept().await?.0);
        bounded(self, accept)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.name) {
            tracing::debug!(%error, "cannot remove the socket");
        }
    }
}

/// What `accept` gives of a listener, one after the other: at most [`MAX_CONNECTIONS`] at once.
pub fn bounded<L, S>(
    listener: L,
    accept: impl AsyncFn(&L) -> io::Result<S>,
) -> impl Stream<Item = io::Result<Bounded<S>>> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    unfold((listener, room, accept), |(listener, room, accept)| async {
        let permit = room.clone().acquire_owned().await.ok()?;
        let stream = loop {
            match accept(&listener).await {
                Ok(stream) => break stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        let connection = Bounded {
            stream,
            _permit: permit,
        };
        Some((Ok(connection), (listener, room, accept)))
    })
}

/// A connection that another one may come for when it ends.
pub struct Bounded<S> {
    stream: S,
    _permit: OwnedSemaphorePermit,
}

impl<S: Connected> Connected for Bounded<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, octets)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
