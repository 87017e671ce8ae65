//! Traces: live copies of a subscriber's control messages, with secrets masked.
//!
//! A trace follows one access line: user plane, port, VLAN ids and MAC address. A MAC address alone is not enough, because homes at
//! different ports may have the same one. Frames, RADIUS requests (NAS-Port-Id, Calling-Station-Id) and the sessions of PFCP messages
//! identify the line. A trace also follows later sessions of the line. Without a trace, a message costs one check of an empty list.

mod mask;
#[cfg(test)]
mod tests;

use crate::plane::ControlPlane;
use crate::topology::{AccessLine, Seid};
use northbound::{Refusal, TracedPacket, TracedPath};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use wire::eth::{Frame, MacAddr};
use wire::pfcp::Message;
use wire::radius::{self, Kind, Value};
use wire::{gtpu, nsh, pfcp};

/// Maximum number of traces.
const MOST: usize = 8;
/// Maximum number of messages that wait for a reader.
const QUEUE: usize = 1024;
/// Maximum number of control messages per second and trace, so that one home does not delay the others.
const MOST_A_SECOND: u32 = 1000;
/// Maximum number of a subscriber's sessions, and of its pending requests, that a trace remembers.
const MOST_KNOWN: usize = 64;
/// Maximum number of sessions in an error message that asks to choose one.
const MOST_NAMED: usize = 4;

/// Subject of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Home on this line.
    Line(AccessLine),
    /// Home without a session. Its line is the first one with a frame from this MAC address.
    Unheard(MacAddr),
}

impl core::fmt::Display for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Subject::Line(line) => line.fmt(f),
            Subject::Unheard(mac) => mac.fmt(f),
        }
    }
}

/// Started trace.
#[derive(Debug)]
pub(crate) struct Begun {
    pub subject: Subject,
    /// Its line, once known.
    pub line: oneshot::Receiver<AccessLine>,
}

/// Output of a trace. Nothing waits for a slow reader; missed messages are counted.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    to: mpsc::Sender<TracedPacket>,
    missed: Arc<AtomicU64>,
}

impl Reader {
    /// Creates the output, its reader, and the counter of missed messages.
    pub fn new() -> (Self, mpsc::Receiver<TracedPacket>, Arc<AtomicU64>) {
        let (to, packets) = mpsc::channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let reader = Reader {
            to,
            missed: missed.clone(),
        };
        (reader, packets, missed)
    }

    /// Forwards a packet from a user plane, with secrets masked.
    pub fn sampled(&self, mut packet: TracedPacket) {
        mask::frame(&mut packet.octets);
        self.pass(packet);
    }

    /// Adds messages that were missed before they arrived here.
    pub fn count_missed(&self, more: u64) {
        self.missed.fetch_add(more, Ordering::Relaxed);
    }

    fn pass(&self, packet: TracedPacket) {
        if self.to.try_send(packet).is_err() {
            self.count_missed(1);
        }
    }

    /// Waits until the reader is closed.
    pub async fn closed(&self) {
        self.to.closed().await;
    }
}

/// Identifiers of a session in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Access line.
    pub line: AccessLine,
    /// Address of its user plane.
    pub user_plane: IpAddr,
    /// The user plane's SEID, once it has answered.
    pub up_seid: Option<u64>,
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From this peer to us.
    In,
    /// From us to this peer.
    Out,
}

/// Received or sent datagram.
#[derive(Clone, Copy)]
pub(crate) struct Datagram<'a> {
    pub way: Way,
    /// Our own end.
    pub own: SocketAddr,
    pub peer: SocketAddr,
    pub bytes: &'a [u8],
}

/// Running traces.
#[derive(Default)]
pub(crate) struct Traces(Vec<Running>);

struct Running {
    subject: Subject,
    /// Receiver of the line, until it is known.
    waits: Option<oneshot::Sender<AccessLine>>,
    reader: Reader,
    /// Sessions of the subscriber, with their user planes' SEIDs.
    sessions: VecDeque<(Seid, Option<(IpAddr, u64)>)>,
    /// Pending RADIUS requests of the subscriber: socket, server, identifier.
    asked: VecDeque<(u16, SocketAddr, u8)>,
    /// Start of the current second, and the number of messages in it.
    second: (Instant, u32),
}

impl Traces {
    /// Whether no trace runs.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Starts a trace.
    pub fn begin(
        &mut self,
        plane: &ControlPlane,
        subject: Subject,
        reader: Reader,
    ) -> Result<Begun, Refusal> {
        self.forget();
        if self.0.len() >= MOST {
            return Err(Refusal::Busy(format!(
                "{MOST} traces are running: stop one of them, or wait"
            )));
        }
        let (waits, line) = oneshot::channel();
        let mut running = Running {
            sessions: VecDeque::new(),
            subject: subject.clone(),
            waits: Some(waits),
            reader,
            asked: VecDeque::new(),
            second: (Instant::now(), 0),
        };
        if let Subject::Line(line) = &subject {
            running.found(plane, line.clone());
        }
        self.0.push(running);
        Ok(Begun { subject, line })
    }

    /// Removes traces whose reader is closed.
    pub fn forget(&mut self) {
        self.0.retain(|running| !running.reader.to.is_closed());
    }

    /// Handles a GTP-U datagram: a frame from or to a home.
    pub fn gtpu(&mut self, plane: &ControlPlane, datagram: Datagram<'_>) {
        self.forget();
        let Some((line, bytes)) = line_of_frame(plane, datagram) else {
            return;
        };
        for running in &mut self.0 {
            if !running.is_about(plane, &line) {
                continue;
            }
            let mut octets = bytes.to_vec();
            mask::frame(&mut octets);
            let packet = packet(plane, TracedPath::Access, datagram, octets);
            running.pass(TracedPacket {
                port: line.port.clone(),
                ..packet
            });
        }
    }

    /// Handles a PFCP datagram.
    pub fn pfcp(&mut self, plane: &ControlPlane, datagram: Datagram<'_>) {
        self.forget();
        let Ok(received) = pfcp::parse(datagram.bytes) else {
            return;
        };
        for running in &mut self.0 {
            if running.is_in(plane, datagram, &received.packet) {
                let mut octets = datagram.bytes.to_vec();
                pfcp::mark_alone(&mut octets); // those that shared its datagram are of others
                running.pass(packet(plane, TracedPath::Pfcp, datagram, octets));
            }
        }
    }

    /// Handles a RADIUS datagram of the socket with this number.
    pub fn radius(&mut self, plane: &ControlPlane, socket: u16, datagram: Datagram<'_>) {
        self.forget();
        let Some(identifier) = datagram.bytes.get(1).copied() else {
            return;
        };
        let exchange = (socket, datagram.peer, identifier);
        for running in &mut self.0 {
            let is_its = match datagram.way {
                Way::In => running.asked.contains(&exchange),
                Way::Out => running.asks(plane, datagram.bytes),
            };
            // another's request has taken the identifier
            if datagram.way == Way::Out {
                running.asked.retain(|asked| *asked != exchange);
            }
            if !is_its {
                continue;
            }
            if datagram.way == Way::Out {
                remember(&mut running.asked, exchange);
            }
            let mut octets = datagram.bytes.to_vec();
            mask::radius(&mut octets);
            running.pass(packet(plane, TracedPath::Radius, datagram, octets));
        }
    }
}

impl Running {
    fn pass(&mut self, packet: TracedPacket) {
        let (began, count) = &mut self.second;
        if began.elapsed() >= Duration::from_secs(1) {
            (*began, *count) = (Instant::now(), 0);
        }
        *count += 1;
        match *count <= MOST_A_SECOND {
            true => self.reader.pass(packet),
            false => self.reader.count_missed(1),
        }
    }

    /// Sets the line, remembers its sessions and reports the line to the client.
    fn found(&mut self, plane: &ControlPlane, line: AccessLine) {
        let sessions = plane.sessions_at(&line).map(|(seid, traced)| {
            let up = traced.up_seid.map(|up_seid| (traced.user_plane, up_seid));
            (seid, up)
        });
        self.sessions = sessions.take(MOST_KNOWN).collect();
        self.subject = Subject::Line(line.clone());
        if let Some(waits) = self.waits.take() {
            let _ = waits.send(line); // nobody waits if no packets are wanted
        }
    }

    /// Whether a line is the subscriber's.
    fn is_about(&mut self, plane: &ControlPlane, line: &AccessLine) -> bool {
        if matches!(self.subject, Subject::Unheard(mac) if mac == line.mac) {
            self.found(plane, line.clone());
        }
        matches!(&self.subject, Subject::Line(own) if own == line)
    }

    /// Whether a session is the subscriber's. If so, the trace remembers it.
    fn knows(&mut self, plane: &ControlPlane, seid: Seid) -> bool {
        let knows =
            |sessions: &VecDeque<(Seid, _)>| sessions.iter().any(|(known, _)| *known == seid);
        if knows(&self.sessions) {
            return true;
        }
        let traced = plane.traced(seid);
        let is_its = traced.is_some_and(|traced| self.is_about(plane, &traced.line));
        if is_its && !knows(&self.sessions) {
            remember(&mut self.sessions, (seid, None));
        }
        is_its
    }

    /// Whether a PFCP message is about a session of the subscriber. A message has the receiver's SEID of the session; an establishment
    /// also has ours.
    fn is_in(&mut self, plane: &ControlPlane, at: Datagram<'_>, packet: &pfcp::Packet) -> bool {
        if let Message::SessionEstablishmentRequest(request) = &packet.message {
            return self.knows(plane, Seid(request.cp_f_seid.seid));
        }
        let Some(name) = packet.seid.filter(|seid| *seid != 0) else {
            return false;
        };
        if at.way == Way::In {
            return self.knows(plane, Seid(name));
        }
        for (seid, up) in &mut self.sessions {
            let traced = plane.traced(*seid);
            let told = traced.and_then(|t| Some((t.user_plane, t.up_seid?)));
            *up = told.or(*up);
        }
        let wanted = Some((at.peer.ip(), name));
        self.sessions.iter().any(|(_, up)| *up == wanted)
    }

    /// Whether a RADIUS request is about the subscriber.
    fn asks(&mut self, plane: &ControlPlane, bytes: &[u8]) -> bool {
        let Ok(packet) = radius::Packet::parse(bytes) else {
            return false;
        };
        let text = |kind| match packet.get(kind) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        // of a session that ended before the trace began, the line alone is known
        let mac = text(Kind::CALLING_STATION_ID).and_then(|mac| mac.parse::<MacAddr>().ok());
        if let Subject::Line(line) = &self.subject
            && mac == Some(line.mac)
            && text(Kind::NAS_PORT_ID) == Some(&line.nas_port_id())
        {
            return true;
        }
        let seid = text(Kind::ACCT_SESSION_ID).and_then(|id| u64::from_str_radix(id, 16).ok());
        seid.is_some_and(|seid| self.knows(plane, Seid(seid)))
    }
}

/// Adds an item and drops the oldest above the maximum.
fn remember<T>(known: &mut VecDeque<T>, one: T) {
    if known.len() >= MOST_KNOWN {
        known.pop_front();
    }
    known.push_back(one);
}

fn packet(
    plane: &ControlPlane,
    path: TracedPath,
    Datagram { way, own, peer, .. }: Datagram<'_>,
    octets: Vec<u8>,
) -> TracedPacket {
    let user_plane = match path {
        TracedPath::Radius => None,
        _ => plane.user_plane_at(peer.ip()),
    };
    let (source, destination) = match way {
        Way::In => (peer, own),
        Way::Out => (own, peer),
    };
    TracedPacket {
        at_nanoseconds: nanoseconds(),
        path: path.into(),
        sent: way == Way::Out,
        user_plane: user_plane.unwrap_or_default().to_owned(),
        source: source.to_string(),
        destination: destination.to_string(),
        length: octets.len() as u32,
        octets,
        ..TracedPacket::default()
    }
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Line of a frame, and the frame. `None` for a tunnel that belongs to no session.
fn line_of_frame<'a>(
    plane: &ControlPlane,
    datagram: Datagram<'a>,
) -> Option<(AccessLine, &'a [u8])> {
    let Ok(gtpu::Packet::Gpdu { teid, payload }) = gtpu::Packet::parse(datagram.bytes) else {
        return None;
    };
    let user_plane = plane.user_plane_at(datagram.peer.ip())?;
    let (port, bytes) = match plane.is_default_tunnel(teid) {
        true => {
            let packet = nsh::Packet::parse(payload).ok()?;
            let port = String::from_utf8_lossy(packet.logical_port);
            (port.into_owned(), packet.frame)
        }
        false => {
            let line = plane.line_in_tunnel(teid);
            let line = line.filter(|line| line.user_plane == user_plane)?;
            (line.port, payload)
        }
    };
    let frame = Frame::parse(bytes).ok()?;
    let line = AccessLine {
        user_plane: user_plane.to_owned(),
        port,
        vids: frame.header.tags.vids(),
        mac: match datagram.way {
            Way::In => frame.header.source,
            Way::Out => frame.header.destination,
        },
    };
    Some((line, bytes))
}

/// Subject of a request by the sessions that it names ([`ControlPlane::lines_of`]), or by the MAC address of a home that is not online.
///
/// # Errors
/// It names nobody, or several.
pub(crate) fn subject(
    text: &str,
    mut sessions: Vec<(Seid, AccessLine)>,
) -> Result<Subject, Refusal> {
    sessions.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
    sessions.dedup_by(|(_, a), (_, b)| a == b);
    match (&sessions[..], text.parse()) {
        ([(_, line)], _) => Ok(Subject::Line(line.clone())),
        ([], Ok(mac)) => Ok(Subject::Unheard(mac)),
        ([], Err(_)) => Err(Refusal::NotFound(format!(
            "no session has the user name, id or address `{text}`: trace a subscriber who is not online by MAC address, \
                such as 02:00:5e:10:00:01"
        ))),
        (several, _) => Err(Refusal::NotFound(choose(text, several))),
    }
}

/// Error for a request that matches sessions on several lines.
fn choose(text: &str, sessions: &[(Seid, AccessLine)]) -> String {
    let named = sessions.iter().take(MOST_NAMED);
    let named: Vec<String> = named
        .map(|(seid, line)| format!("{seid} ({line})"))
        .collect();
    let more = match sessions.len() > MOST_NAMED {
        true => ", ...",
        false => "",
    };
    format!(
        "sessions on {} lines go by `{text}`, and a trace follows one line: name it by the id of its session: {}{more}",
        sessions.len(),
        named.join(", ")
    )
}
