//! The sockets: connections with TLS, each within its limits.

use crate::access::Peer;
use crate::api::{Site, router};
use crate::audience::Audience;
use crate::certificate;
use crate::destinations::{Destinations, Plan};
use crate::feed::FOLLOWERS;
use crate::gateway::Gateway;
use crate::gnmi;
use crate::lease::Lease;
use crate::limits::{Connected, Limits};
use crate::lists::{List, ListFile};
use crate::live::WATCHERS;
use crate::passwords::Passwords;
use crate::records::EXPORTERS;
use crate::sign_ins::SignIns;
use crate::trace::TRACERS;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use config::start::Web;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use northbound::supervisor;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Maximum number of connections. More wait in the sockets' backlogs.
const CONNECTIONS: usize = 256;
/// How long a client may take for its TLS handshake, for the head of a request, and between two requests.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of connections for gNMI.
const GNMI_CONNECTIONS: usize = 64;
/// Maximum size of the head of a request, in octets.
const HEAD: usize = 16 * 1024;
/// Maximum number of requests at once on a connection.
const STREAMS: u32 = 32;
/// Threads for checks of passwords and for changes of files. Each destination may have one more at work: for its name, or its file.
const BLOCKING: usize = 4;
/// Before another try, when the system lets no connection in.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until a signal ends it.
///
/// # Errors
/// The state folder, a certificate or a socket cannot be used; the text names it.
pub fn run(start: &Web, plans: Vec<Plan>) -> Result<(), String> {
    let tls = TlsAcceptor::from(certificate::tls(start)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING + plans.len())
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        // with a connection of its own: calls that stay take no room from those that are answered
        let feed = Gateway::new(&start.api_socket);
        let site = Site {
            gateway: Gateway::new(&start.api_socket),
            destinations: Destinations::start(plans, &start.state, &feed)?,
            feed,
            followers: Arc::new(Semaphore::new(FOLLOWERS)),
            exporters: Arc::new(Semaphore::new(EXPORTERS)),
            tracers: Arc::new(Semaphore::new(TRACERS)),
            tokens: List::open(ListFile::of(&start.state))?,
            users: List::open(ListFile::of(&start.state))?,
            links: List::open(ListFile::of(&start.state))?,
            passwords: Passwords::new()?,
            sign_ins: SignIns::default(),
            limits: Limits::default(),
            audience: Audience::new(&start.hosts),
            watchers: Arc::new(Semaphore::new(WATCHERS)),
        };
        let site = Arc::new(site);
        let server = Server {
            limits: site.limits.clone(),
            router: router(site.clone()),
            tls,
            room: Arc::new(Semaphore::new(CONNECTIONS)),
        };
        server.listen(&start.listen, "serves HTTPS").await?;
        if let Some(gnmi) = &start.gnmi {
            let server = Server {
                router: gnmi::router(site),
                room: Arc::new(Semaphore::new(GNMI_CONNECTIONS)),
                ..server
            };
            server.listen(&gnmi.listen, "serves gNMI").await?;
        }
        tell("READY=1");
        ended().await?;
        tell("STOPPING=1");
        Ok(())
    })
}

/// Tells the supervisor.
fn tell(state: &str) {
    if let Err(error) = supervisor::notify(state) {
        tracing::warn!(%error, "cannot tell the supervisor");
    }
}

/// Waits for a signal that ends the daemon.
async fn ended() -> Result<(), String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[derive(Clone)]
struct Server {
    router: Router,
    limits: Limits,
    tls: TlsAcceptor,
    room: Arc<Semaphore>,
}

impl Server {
    /// Listens at these addresses.
    async fn listen(&self, addresses: &[SocketAddr], said: &'static str) -> Result<(), String> {
        for at in addresses {
            let listener = TcpListener::bind(at).await;
            let listener = listener.map_err(|error| format!("cannot listen at {at}: {error}"))?;
            if let Ok(at) = listener.local_addr() {
                tracing::info!(%at, "{said}");
            }
            tokio::spawn(self.clone().accept(listener));
        }
        Ok(())
    }

    /// Lets connections in, while there is room.
    async fn accept(self, listener: TcpListener) {
        loop {
            let Ok(room) = self.room.clone().acquire_owned().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            // Otherwise a part of an answer waits for the client's delayed acknowledgement, 40 ms. Without it the connection works as well.
            let _ = stream.set_nodelay(true);
            let peer = peer.ip();
            // closed before TLS: a refusal costs no cryptography
            let Ok(connected) = self.limits.connect(peer, Instant::now()) else {
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                let _held: (OwnedSemaphorePermit, Connected) = (room, connected);
                let lease = Lease::begin();
                let in_time = tokio::select! {
                    () = server.connection(stream, peer, lease.clone()) => true,
                    () = lease.over() => false,
                };
                tracing::debug!(%peer, in_time, "a connection ends");
            });
        }
    }

    /// Serves a connection until it ends.
    async fn connection(self, stream: TcpStream, peer: IpAddr, lease: Lease) {
        let shaken = timeout(PATIENCE, self.tls.accept(stream)).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%peer, %error, "no TLS"),
            Err(_) => return tracing::debug!(%peer, "no TLS in time"),
        };
        let router = self.router;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(lease.clone());
            router.clone().oneshot(request)
        });
        let mut http = Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(HEAD);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEAD as u32)
            .keep_alive_interval(PATIENCE)
            .keep_alive_timeout(PATIENCE);
        // nobody waits, without a limit of time, to see which of the two it is
        let http = match is_http2 {
            true => http.http2_only(),
            false => http.http1_only(),
        };
        if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%peer, error, "a connection breaks");
        }
    }
}
