//! Connections to destinations: TCP, with TLS where the URL says so.

use super::target::Target;
use crate::certificate::authorities;
use socket2::SockRef;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;

/// Authorities that Debian's ca-certificates keeps: those of destinations that name none.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// How long a connection, and TLS on it, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the kernel waits for the acknowledgement of what was sent, before it gives the connection up (RFC 5482).
pub const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// A connection of either kind.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// TLS 1.2 and 1.3 to servers whose certificates these authorities have signed.
///
/// # Errors
/// The file cannot be read, or has no certificate; the text names it.
pub fn tls(authority: Option<&Path>) -> Result<TlsConnector, String> {
    let roots = authorities(authority.unwrap_or(Path::new(AUTHORITIES)))?;
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(tls)))
}

/// Connects.
///
/// # Errors
/// Why there is no connection.
pub async fn connect(
    target: &Target,
    tls: Option<&TlsConnector>,
) -> Result<Box<dyn Connection>, String> {
    let connected = timeout(PATIENCE, TcpStream::connect((target.host(), target.port))).await;
    let stream = connected.map_err(|_| "no connection within 10 s".to_owned())?;
    let stream = stream.map_err(|error| format!("no connection: {error}"))?;
    let limited = SockRef::from(&stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    limited.map_err(|error| format!("no limit for acknowledgements: {error}"))?;
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(target.host().to_owned()).map_err(|e| e.to_string())?;
    let shaken = timeout(PATIENCE, tls.connect(name, stream)).await;
    let stream = shaken.map_err(|_| "no TLS within 10 s".to_owned())?;
    Ok(Box::new(
        stream.map_err(|error| format!("no TLS: {error}"))?,
    ))
}
