//! The management interface on the network: mutual TLS, or a loopback address.

use config::start::{Management, Tls};
use futures_util::Stream;
use northbound::{Bounded, bounded};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// How long the other side may take to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why the management interface cannot be served, or asked.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The Unix socket cannot be listened on.
    #[error("{}: {source}", path.display())]
    Socket {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("{at}: {source}")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Whoever reaches the address could change everything.
    #[error("{0} without TLS: expected `tls` beside it, or a loopback address")]
    Open(String),
    /// A certificate or key cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Certificates and key are not what they should be.
    #[error("the certificates and the key of `tls` cannot be used: {0}")]
    Tls(String),
    /// It is none that can be connected to.
    #[error(
        "`{0}`: expected the path of a Unix socket, or an address and a port such as 192.0.2.2:8806"
    )]
    Endpoint(String),
}

fn file(path: &Path) -> Result<Vec<u8>, NetworkError> {
    std::fs::read(path).map_err(|source| NetworkError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn identity(tls: &Tls) -> Result<Identity, NetworkError> {
    Ok(Identity::from_pem(file(&tls.certificate)?, file(&tls.key)?))
}

/// Only whom the authority vouches for is let in.
pub(crate) fn server_tls(tls: &Tls) -> Result<ServerTlsConfig, NetworkError> {
    Ok(ServerTlsConfig::new()
        .identity(identity(tls)?)
        .client_ca_root(Certificate::from_pem(file(&tls.authority)?))
        .timeout(HANDSHAKE))
}

/// Only whom the authority vouches for, under the name that is connected to, is spoken to.
pub(crate) fn client_tls(tls: &Tls) -> Result<ClientTlsConfig, NetworkError> {
    Ok(ClientTlsConfig::new()
        .identity(identity(tls)?)
        .ca_certificate(Certificate::from_pem(file(&tls.authority)?))
        .timeout(HANDSHAKE))
}

/// A TCP address that is listened on.
pub(crate) struct Port(TcpListener);

impl Port {
    pub fn bind(at: SocketAddr, management: &Management) -> Result<Self, NetworkError> {
        if management.tls.is_none() && !at.ip().is_loopback() {
            return Err(NetworkError::Open(at.to_string()));
        }
        let listen = || {
            let listener = std::net::TcpListener::bind(at)?;
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        let listener = listen().map_err(|source| NetworkError::Listen { at, source })?;
        Ok(Port(listener))
    }

    pub fn connections(self) -> impl Stream<Item = io::Result<Bounded<TcpStream>>> {
        bounded(self, async |port: &Port| {
            let (stream, _) = port.0.accept().await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}
