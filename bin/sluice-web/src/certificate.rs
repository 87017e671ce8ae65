//! TLS of the server: its certificate, the operator's own or one that is generated at the first start, and whose certificates clients need.

use config::start::Web;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

/// TLS 1.2 and 1.3 with the certificate that the start file names, or with a generated one of the state folder.
///
/// # Errors
/// A file cannot be read or written, or is no certificate or key; the text names it.
pub fn tls(start: &Web) -> Result<Arc<ServerConfig>, String> {
    if let Some(own) = &start.tls {
        return server(start, &own.certificate, &own.key);
    }
    let certificate = start.state.join("certificate.pem");
    let key = start.state.join("key.pem");
    generate(&start.hosts, &certificate, &key)?;
    server(start, &certificate, &key)
}

/// Reads the files that the start file names, and generates nothing.
///
/// # Errors
/// A file cannot be read, or is no certificate or key; the text names it.
pub fn check(start: &Web) -> Result<(), String> {
    match &start.tls {
        Some(own) => server(start, &own.certificate, &own.key).map(drop),
        None => clients(start).map(drop),
    }
}

fn server(start: &Web, certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let chain = CertificateDer::pem_file_iter(certificate);
    let chain: Vec<_> = chain
        .and_then(Iterator::collect)
        .map_err(|error| said(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| said(key, &error))?;
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(clients(start)?)
        .with_single_cert(chain, private);
    let mut tls = tls.map_err(|error| said(certificate, &error))?;
    tls.alpn_protocols = vec![b"h2".into(), b"http/1.1".into()];
    Ok(Arc::new(tls))
}

/// Whose certificates clients need, if they need one.
fn clients(start: &Web) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let Some(file) = &start.client_authority else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let provider = Arc::new(ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(file)?), provider);
    clients
        .build()
        .map(|clients| clients as _)
        .map_err(|error| said(file, &error))
}

fn said(file: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", file.display())
}

/// The certificates of authorities in a PEM file.
///
/// # Errors
/// The file cannot be read, or has none; the text names it.
pub fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut roots = RootCertStore::empty();
    let (known, _) = roots.add_parsable_certificates(read.map_err(|error| said(file, &error))?);
    match known {
        0 => Err(said(file, &"it has no certificate of an authority")),
        _ => Ok(roots),
    }
}

/// Generates a certificate for these hosts that signs itself, unless there is one.
fn generate(hosts: &[String], certificate: &Path, key: &Path) -> Result<(), String> {
    if certificate.exists() && key.exists() {
        return Ok(());
    }
    // an IPv6 address has brackets in a URL, and none in a certificate
    let names = hosts
        .iter()
        .map(|host| host.trim_matches(['[', ']']).into());
    let names: Vec<String> = names.collect();
    let made = rcgen::generate_simple_self_signed(names);
    let made = made.map_err(|error| format!("a certificate cannot be generated: {error}"))?;
    let parts = [
        (key, made.signing_key.serialize_pem()),
        (certificate, made.cert.pem()),
    ];
    let folder = certificate.parent().unwrap_or(Path::new("."));
    let written = config::folder::make(folder).and_then(|()| {
        let write = |(path, text): (&Path, String)| config::folder::replace(path, text.as_bytes());
        parts.into_iter().try_for_each(write)
    });
    written.map_err(|error| said(folder, &error))?;
    tracing::info!(certificate = %certificate.display(), "a certificate is generated");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::start::ServerCertificate;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_certificate_is_generated_once_and_its_key_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let start = Web {
            state: folder.path().join("web"),
            ..Web::default()
        };
        let read = |name: &str| std::fs::read(start.state.join(name)).unwrap();
        tls(&start).unwrap();
        let (certificate, key) = (read("certificate.pem"), read("key.pem"));
        let mode = std::fs::metadata(start.state.join("key.pem")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        tls(&start).unwrap();
        assert_eq!(
            (read("certificate.pem"), read("key.pem")),
            (certificate, key)
        );
        // the same as the operator's own, and a key in place of a certificate
        let own = |certificate: &str| Web {
            tls: Some(ServerCertificate {
                certificate: start.state.join(certificate),
                key: start.state.join("key.pem"),
            }),
            ..Web::default()
        };
        assert!(tls(&own("certificate.pem")).is_ok());
        for (wrong, says) in [("nowhere.pem", "nowhere.pem"), ("key.pem", "key.pem")] {
            let said = tls(&own(wrong)).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
        let clients = |file: &str| Web {
            client_authority: Some(start.state.join(file)),
            ..start.clone()
        };
        assert!(tls(&clients("certificate.pem")).is_ok());
        for (wrong, says) in [
            ("nowhere.pem", "nowhere.pem"),
            ("key.pem", "no certificate of an authority"),
        ] {
            let said = tls(&clients(wrong)).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
