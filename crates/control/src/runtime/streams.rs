//! Connections to RADIUS servers over TCP and TLS (RFC 6613, RFC 6614). Each has a task, which connects, sends what is queued, and
//! passes received packets to the loop. When to connect again is the RADIUS client's affair.

use super::{RADIUS_QUEUE, tls};
use crate::plane::{RadiusBinding, RadiusConnection, RadiusServer, RadiusServers};
use core::net::SocketAddr;
use core::time::Duration;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use std::collections::HashMap;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wire::radius::{HEADER_LEN, MAX_LEN};

/// Maximum number of packets that wait for a connection. It has 256 identifiers; some may be used again after a time-out.
const QUEUE: usize = 512;
/// Time in which a connection must be open, TLS included.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without a packet from the server after which a connection is closed. The next request opens another one.
const IDLE: Duration = Duration::from_secs(120);
/// Time in which the server's machine must acknowledge what was sent, and time between two keepalives.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// Connections to RADIUS servers.
pub(super) struct Streams {
    servers: RadiusServers,
    open: HashMap<RadiusConnection, Open>,
    /// Number of the last connection.
    last: u64,
    sender: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
}

struct Open {
    /// Distinguishes it from earlier connections with the same name.
    serial: u64,
    queue: mpsc::Sender<Vec<u8>>,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// It has received a packet.
    Packet(Vec<u8>),
    /// It has ended, or could not be opened. The reason is for the operator.
    Closed(String),
}

type Report = (RadiusConnection, u64, StreamEvent);

impl Streams {
    pub fn new() -> Self {
        let (sender, reports) = mpsc::channel(RADIUS_QUEUE);
        Streams {
            servers: RadiusServers::new(),
            open: HashMap::new(),
            last: 0,
            sender,
            reports,
        }
    }

    /// Takes the servers over. Connections to servers that are gone are closed.
    pub fn follow(&mut self, servers: RadiusServers) {
        self.servers = servers;
        let servers = &self.servers;
        let stays = |on: &RadiusConnection| servers.contains_key(&(on.group, on.connection.server));
        self.open.retain(|connection, _| stays(connection));
    }

    /// Sends a packet on a connection, which is opened if it is not open. Returns why the connection is closed if it does not take the
    /// packet.
    pub fn send(&mut self, on: RadiusConnection, bytes: Vec<u8>) -> Option<String> {
        if !self.open.contains_key(&on) {
            let Some(server) = self.servers.get(&(on.group, on.connection.server)) else {
                return Some("the server is not configured".into());
            };
            let opened = self.open(on, server.clone());
            self.open.insert(on, opened);
        }
        match self.open[&on].queue.try_send(bytes) {
            // of one that has ended, the loop is about to be told
            Ok(()) | Err(TrySendError::Closed(_)) => None,
            Err(TrySendError::Full(_)) => {
                self.open.remove(&on);
                Some(format!(
                    "it does not take what is sent: {QUEUE} packets wait"
                ))
            }
        }
    }

    /// Closes a connection. Nothing more of it is reported.
    pub fn close(&mut self, connection: RadiusConnection) {
        self.open.remove(&connection);
    }

    /// Next event of a connection that is open.
    pub async fn next(&mut self) -> Option<(RadiusConnection, StreamEvent)> {
        loop {
            let (connection, serial, event) = self.reports.recv().await?;
            let open = self.open.get(&connection);
            if open.is_none_or(|open| open.serial != serial) {
                continue;
            }
            if matches!(event, StreamEvent::Closed(_)) {
                self.open.remove(&connection);
            }
            return Some((connection, event));
        }
    }

    fn open(&mut self, on: RadiusConnection, server: RadiusServer) -> Open {
        self.last += 1;
        let serial = self.last;
        let (queue, queued) = mpsc::channel(QUEUE);
        let reports = Reports {
            on,
            serial,
            sender: self.sender.clone(),
        };
        let task = tokio::spawn(async move {
            let reason = live(on.connection.server, &server, queued, &reports).await;
            tracing::info!(server = %on.connection.server, role = ?on.connection.role, reason, "RADIUS connection is closed");
            reports.report(StreamEvent::Closed(reason)).await;
        });
        Open {
            serial,
            queue,
            task: task.abort_handle(),
        }
    }
}

/// Way of a connection's events to the loop. When the loop is behind, what the server sends waits in the connection.
struct Reports {
    on: RadiusConnection,
    serial: u64,
    sender: mpsc::Sender<Report>,
}

impl Reports {
    async fn report(&self, event: StreamEvent) {
        // the loop ends with the process
        let _ = self.sender.send((self.on, self.serial, event)).await;
    }
}

/// Life of a connection. Returns why it has ended.
async fn live(
    to: SocketAddr,
    server: &RadiusServer,
    queued: mpsc::Receiver<Vec<u8>>,
    reports: &Reports,
) -> String {
    let late = |what: &str| format!("{what} took longer than {} seconds", CONNECT.as_secs());
    let stream = match timeout(CONNECT, connect(to, &server.binding)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return refusal(to, &server.binding, &error),
        Err(_) => return late("the connection"),
    };
    let Some(credentials) = &server.tls else {
        return exchange(stream, queued, reports).await;
    };
    match timeout(CONNECT, tls::connect(credentials, stream)).await {
        Ok(Ok(stream)) => exchange(stream, queued, reports).await,
        Ok(Err(why)) => why,
        Err(_) => late("the TLS handshake"),
    }
}

fn refusal(to: SocketAddr, binding: &RadiusBinding, error: &io::Error) -> String {
    let from = binding.place("from");
    let advice = match error.kind() {
        io::ErrorKind::AddrNotAvailable if binding.source.is_some() => {
            format!(
                ". Give the address to an interface, or change it in `aaa server-groups {}`",
                binding.group
            )
        }
        _ => String::new(),
    };
    format!("cannot connect to TCP {to}{from}: {error}{advice}")
}

async fn connect(to: SocketAddr, binding: &RadiusBinding) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new();
    let keepalive = keepalive.with_time(UNACKNOWLEDGED);
    socket.set_tcp_keepalive(&keepalive.with_interval(UNACKNOWLEDGED / 4))?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    if let Some(device) = &binding.vrf {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if let Some(source) = binding.source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    TcpSocket::from_std_stream(socket.into()).connect(to).await
}

/// Sends and receives until the connection ends. Returns why.
async fn exchange<S: AsyncRead + AsyncWrite>(
    stream: S,
    queued: mpsc::Receiver<Vec<u8>>,
    reports: &Reports,
) -> String {
    let (reader, writer) = tokio::io::split(stream);
    tokio::select! {
        reason = receive(reader, reports) => reason,
        error = send(writer, queued) => format!("cannot send to the server: {error}"),
    }
}

async fn send(
    mut writer: impl AsyncWrite + Unpin,
    mut queued: mpsc::Receiver<Vec<u8>>,
) -> io::Error {
    while let Some(packet) = queued.recv().await {
        let written = match writer.write_all(&packet).await {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        if let Err(error) = written {
            return error;
        }
    }
    // the connection is being closed, and its task with it
    core::future::pending().await
}

async fn receive(mut reader: impl AsyncRead + Unpin, reports: &Reports) -> String {
    loop {
        match timeout(IDLE, packet(&mut reader)).await {
            Ok(Ok(packet)) => reports.report(StreamEvent::Packet(packet)).await,
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return "the server closed the connection".into();
            }
            Ok(Err(error)) => return format!("the connection was lost: {error}"),
            Err(_) => return format!("nothing came for {} seconds", IDLE.as_secs()),
        }
    }
}

/// Reads a packet by its length (RFC 6613 §2.6.4: another length than that of a packet ends the connection).
async fn packet(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    reader.read_exact(&mut head).await?;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if !(HEADER_LEN..=MAX_LEN).contains(&length) {
        let why = format!("a packet states a length of {length} octets");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut packet = head.to_vec();
    packet.resize(length, 0);
    reader.read_exact(&mut packet[head.len()..]).await?;
    Ok(packet)
}

#[cfg(test)]
mod tests;
