//! TLS for connections to RADIUS servers (RFC 6614): certificates of both sides.

use crate::plane::RadiusTls;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Makes a TCP connection a TLS connection. The files are read each time, so that renewed certificates are used.
///
/// # Errors
/// Why not, for the operator.
pub(super) async fn connect(
    tls: &RadiusTls,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(tls.server_name.clone());
    let name = name.map_err(|_| format!("`{}` is no name of a server", tls.server_name))?;
    let connector = TlsConnector::from(Arc::new(client(tls).await?));
    let connected = connector.connect(name, stream).await;
    connected.map_err(|error| format!("the TLS handshake failed: {error}"))
}

async fn client(tls: &RadiusTls) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&tls.authority).await? {
        let added = roots.add(authority);
        added.map_err(|error| unusable(&tls.authority, &error))?;
    }
    let own = certificates(&tls.certificate).await?;
    let key = PrivateKeyDer::from_pem_slice(&read(&tls.key).await?);
    let key = key.map_err(|error| unusable(&tls.key, &error))?;
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let client = builder.with_root_certificates(roots);
    let client = client.with_client_auth_cert(own, key);
    client.map_err(|error| unusable(&tls.certificate, &error))
}

async fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let octets = read(path).await?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
    match all {
        Ok(all) if all.is_empty() => Err(format!("{} has no certificate", path.display())),
        Ok(all) => Ok(all),
        Err(error) => Err(unusable(path, &error)),
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let octets = tokio::fs::read(path).await;
    octets.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> String {
    format!("{} cannot be used: {error}", path.display())
}
