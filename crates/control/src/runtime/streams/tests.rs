//! Connections to servers of the test's own, on loopback addresses.

use super::*;
use crate::plane::RadiusTls;
use aaa::{Connection, Role};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn connection(server: SocketAddr) -> RadiusConnection {
    RadiusConnection {
        group: 3,
        connection: Connection {
            role: Role::Authentication,
            server,
            number: 0,
        },
    }
}

fn streams(server: SocketAddr, tls: Option<RadiusTls>) -> Streams {
    let mut streams = Streams::new();
    let binding = RadiusBinding {
        group: "radius".into(),
        source: Some("127.0.0.9".parse().unwrap()),
        vrf: None,
    };
    streams.follow([((3, server), RadiusServer { binding, tls })].into());
    streams
}

fn packet_of(code: u8, length: u8) -> Vec<u8> {
    let mut packet = vec![code, 7, 0, length];
    packet.resize(length.into(), code);
    packet
}

async fn event(streams: &mut Streams) -> StreamEvent {
    let next = timeout(10 * Duration::from_secs(1), streams.next());
    next.await.expect("an event").expect("an open queue").1
}

async fn closed(streams: &mut Streams) -> String {
    match event(streams).await {
        StreamEvent::Closed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

#[tokio::test]
async fn packets_are_told_apart_by_their_length_and_a_wrong_length_ends_the_connection() {
    let (listener, at) = listener().await;
    let mut streams = streams(at, None);
    let (first, second) = (packet_of(1, 20), packet_of(1, 44));
    assert_eq!(streams.send(connection(at), first.clone()), None);
    assert_eq!(streams.send(connection(at), second.clone()), None);
    let (mut server, from) = listener.accept().await.unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.9", "the source address");
    let mut received = [0; 64];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(received, *[first, second].concat());

    let (two, three) = (packet_of(2, 30), packet_of(3, 20));
    let octets = [two.clone(), three.clone()].concat();
    for part in octets.chunks(7) {
        server.write_all(part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(event(&mut streams).await, StreamEvent::Packet(two));
    assert_eq!(event(&mut streams).await, StreamEvent::Packet(three));
    server.write_all(&[2, 1, 0, 19]).await.unwrap();
    let reason = closed(&mut streams).await;
    assert!(reason.contains("a length of 19 octets"), "{reason}");
    assert_eq!(
        server.read(&mut received).await.unwrap_or(0),
        0,
        "it is closed"
    );
}

#[tokio::test]
async fn a_connection_that_ends_or_is_refused_is_told_with_the_reason_and_a_closed_one_is_not() {
    let (listener, at) = listener().await;
    let mut streams = streams(at, None);
    streams.send(connection(at), packet_of(1, 20));
    drop(listener.accept().await.unwrap());
    let reason = closed(&mut streams).await;
    let reset = "the connection was lost: Connection reset by peer";
    let ended = reason == "the server closed the connection" || reason.starts_with(reset);
    assert!(ended, "{reason}");

    streams.send(connection(at), packet_of(1, 20));
    let (server, _) = listener.accept().await.unwrap();
    streams.close(connection(at));
    drop(server);
    streams.send(connection(at), packet_of(1, 20));
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(&packet_of(2, 20)).await.unwrap();
    let packet = StreamEvent::Packet(packet_of(2, 20));
    assert_eq!(event(&mut streams).await, packet, "of the new one");
    streams.close(connection(at));

    drop(listener);
    streams.send(connection(at), packet_of(1, 20));
    let reason = closed(&mut streams).await;
    let refused = format!("cannot connect to TCP {at} from 127.0.0.9: Connection refused");
    assert!(reason.starts_with(&refused), "{reason}");
}

#[tokio::test]
async fn a_server_that_takes_nothing_is_no_place_for_more_than_a_queue() {
    let (_listener, at) = listener().await;
    let mut streams = streams(at, None);
    let reasons = (0..=QUEUE).map(|_| streams.send(connection(at), packet_of(1, 20)));
    let reasons: Vec<String> = reasons.flatten().collect();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    streams.follow(RadiusServers::new());
    let gone = streams.send(connection(at), packet_of(1, 20));
    assert_eq!(gone.as_deref(), Some("the server is not configured"));
}

/// An authority, a certificate of a server and one of a client.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn new(server_name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        let issuer = Issuer::new(params, authority_key);
        for (file, name) in [("server", server_name), ("client", "bng.example")] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.path().join(format!("{file}.pem")), certificate.pem()).unwrap();
            std::fs::write(
                folder.path().join(format!("{file}.key")),
                key.serialize_pem(),
            )
            .unwrap();
        }
        Certificates { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tls(&self, server_name: &str) -> RadiusTls {
        RadiusTls {
            authority: self.path("ca.pem"),
            certificate: self.path("client.pem"),
            key: self.path("client.key"),
            server_name: server_name.into(),
        }
    }

    /// A server that lets in whom this authority has signed.
    fn acceptor(&self, authority: &Path) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(authority).unwrap())
            .unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        let certificate = CertificateDer::from_pem_file(self.path("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path("server.key")).unwrap();
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Why a connection to a server with this name and these certificates ends; nothing if a packet came back.
async fn tls_trouble(own: RadiusTls, server: TlsAcceptor) -> Option<String> {
    let (listener, at) = listener().await;
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = server.accept(stream).await else {
            return 0;
        };
        let mut request = [0; 20];
        let count = stream.read(&mut request).await.unwrap_or(0);
        let _ = stream.write_all(&packet_of(2, 20)).await;
        let _ = stream.shutdown().await;
        count
    });
    let mut streams = streams(at, Some(own));
    streams.send(connection(at), packet_of(1, 20));
    let trouble = match event(&mut streams).await {
        StreamEvent::Packet(packet) => {
            assert_eq!(packet, packet_of(2, 20));
            assert_eq!(
                closed(&mut streams).await,
                "the server closed the connection"
            );
            None
        }
        StreamEvent::Closed(reason) => Some(reason),
    };
    drop(streams);
    let received = served.await.unwrap();
    assert_eq!(
        received,
        if trouble.is_none() { 20 } else { 0 },
        "nothing is sent"
    );
    trouble
}

#[tokio::test]
async fn both_sides_of_tls_prove_who_they_are_or_nothing_is_sent() {
    let ours = Certificates::new("radius.example");
    let foreign = Certificates::new("radius.example");
    let server = || ours.acceptor(&ours.path("ca.pem"));
    let good = || ours.tls("radius.example");
    assert_eq!(tls_trouble(good(), server()).await, None);

    let other_name = tls_trouble(ours.tls("other.example"), server())
        .await
        .unwrap();
    assert!(
        other_name.contains("not valid for name \"other.example\""),
        "{other_name}"
    );
    let wrong_authority = RadiusTls {
        authority: foreign.path("ca.pem"),
        ..good()
    };
    let wrong_authority = tls_trouble(wrong_authority, server()).await.unwrap();
    let unknown = "the TLS handshake failed: invalid peer certificate: ";
    assert!(wrong_authority.starts_with(unknown), "{wrong_authority}");
    let refuses_us = ours.acceptor(&foreign.path("ca.pem"));
    let refused = tls_trouble(good(), refuses_us).await.unwrap();
    assert!(refused.contains("alert"), "{refused}");
}

#[tokio::test]
async fn a_file_that_is_missing_or_none_of_its_kind_is_named() {
    let ours = Certificates::new("127.0.0.1");
    let (_listener, at) = listener().await;
    let missing = ours.path("missing.pem");
    let wrong = [
        RadiusTls {
            authority: missing.clone(),
            ..ours.tls("127.0.0.1")
        },
        RadiusTls {
            certificate: missing.clone(),
            ..ours.tls("127.0.0.1")
        },
        RadiusTls {
            key: ours.path("client.pem"),
            ..ours.tls("127.0.0.1")
        },
        RadiusTls {
            certificate: ours.path("client.key"),
            ..ours.tls("127.0.0.1")
        },
        RadiusTls {
            key: ours.path("server.key"),
            ..ours.tls("127.0.0.1")
        },
    ];
    let named = [
        "missing.pem",
        "missing.pem",
        "client.pem",
        "client.key",
        "client.pem",
    ];
    for (tls, file) in wrong.into_iter().zip(named) {
        let mut streams = streams(at, Some(tls));
        streams.send(connection(at), packet_of(1, 20));
        let reason = closed(&mut streams).await;
        assert!(reason.contains(file), "{reason}");
    }
}
