//! A RADIUS server that costs little: it verifies CHAP, accepts, acknowledges records, and counts Starts and Stops of each session.
//!
//! It is a process of its own, this program under [`WORD`], so that its CPU time is its own.

use crate::access_network::PASSWORD;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, SECRET};
use anyhow::{Context, Result, bail};
use lab::process::Process;
use lab::topology::{Lab, Place};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use wire::radius::{
    Code, Kind, Packet, Value, chap_response, values, verify_access_request,
    verify_accounting_request,
};

/// What the process of the server is started with, before the path of its socket.
pub const WORD: &str = "--radius-stub";

/// Receive buffer of a socket, in octets.
const RECEIVE_BUFFER: usize = 8 << 20;

/// What it has counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Subscribers that it has accepted.
    pub accepted: u64,
    /// Subscribers that it has rejected.
    pub rejected: u64,
    /// Requests that nobody who knows the secret has sent.
    pub wrong: u64,
    /// Records that came again because their answer was late or lost.
    pub repeated: u64,
    /// Sessions that a record was about.
    pub sessions: u64,
    /// Sessions with one Start and one Stop.
    pub complete: u64,
    /// Sessions with more than one Start or more than one Stop.
    pub double: u64,
}

/// A server that runs.
pub struct RadiusStub {
    process: Process,
    socket: PathBuf,
}

impl RadiusStub {
    /// Starts it in the control plane's namespace.
    pub fn start(lab: &Lab) -> Result<Self> {
        let socket = lab.dir().join("radius.sock");
        let mut command = lab
            .netns(Place::ControlPlane)
            .command(std::env::current_exe()?);
        command.arg(WORD).arg(&socket);
        let mut process = Process::spawn(lab.dir(), "radius-stub", command)?;
        process.wait_until("its socket", PATIENCE, || summary(&socket).is_ok())?;
        Ok(RadiusStub { process, socket })
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        self.process.id()
    }

    /// What it has counted so far.
    pub fn summary(&self) -> Result<Summary> {
        summary(&self.socket)
    }

    /// Waits until each session has one Start and one Stop; there are at least so many.
    pub fn wait_complete(&mut self, least: u64) -> Result<Summary> {
        let socket = self.socket.clone();
        let is_complete = |counted: Summary| {
            counted.sessions >= least && counted.complete == counted.sessions && counted.wrong == 0
        };
        let all = || summary(&socket).is_ok_and(is_complete);
        let waited = self.process.wait_until("every Stop", PATIENCE, all);
        let counted = self.summary()?;
        waited.with_context(|| format!("{counted:?}, at least {least} sessions"))?;
        Ok(counted)
    }

    /// Ends it.
    pub fn stop(mut self) -> Result<()> {
        self.process.stop()
    }
}

fn summary(socket: &Path) -> Result<Summary> {
    Ok(serde_json::from_reader(UnixStream::connect(socket)?)?)
}

/// The server's own side: serves until it is killed. Whoever connects to its Unix socket reads a [`Summary`].
pub fn serve(socket: &Path) -> Result<()> {
    // Of the server before, which was killed.
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let authentication = listen(ALONE.authentication)?;
    let accounting = listen(ALONE.accounting)?;
    let listener = UnixListener::bind(socket)?;
    let server = Server::default();
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&authentication, Server::access));
        scope.spawn(|| server.run(&accounting, Server::record));
        for asked in listener.incoming() {
            // Whoever has asked may be gone.
            let _ = serde_json::to_writer(asked?, &server.summary());
        }
        bail!("the socket is closed")
    })
}

/// A socket that has room for what comes while others use the core.
fn listen(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((ALONE.address, port))?;
    setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER)?;
    Ok(socket)
}

#[derive(Default)]
struct Server {
    counts: Mutex<Summary>,
    sessions: Mutex<HashMap<String, Session>>,
    /// The latest record of each sender and identifier (RFC 2866 section 3).
    latest: Mutex<HashMap<(SocketAddr, u8), [u8; 16]>>,
}

/// Records of a session.
#[derive(Clone, Copy, Default)]
struct Session {
    starts: u32,
    stops: u32,
}

/// Answers a request; `None` if it is not to be answered.
type Answer = fn(&Server, &[u8], SocketAddr) -> Option<Vec<u8>>;

impl Server {
    fn run(&self, socket: &UdpSocket, answer: Answer) {
        let mut request = [0; 4096];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut request) else {
                continue;
            };
            match answer(self, &request[..length], from) {
                // An answer that is not taken is as one that is lost: the request comes again.
                Some(bytes) => drop(socket.send_to(&bytes, from)),
                None => locked(&self.counts).wrong += 1,
            }
        }
    }

    fn access(&self, bytes: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        let request = verify_access_request(bytes, SECRET.as_bytes()).ok()?;
        let code = match knows_password(&request) {
            true => Code::ACCESS_ACCEPT,
            false => Code::ACCESS_REJECT,
        };
        let mut counts = locked(&self.counts);
        counts.accepted += u64::from(code == Code::ACCESS_ACCEPT);
        counts.rejected += u64::from(code == Code::ACCESS_REJECT);
        drop(counts);
        answer(code, &request)
    }

    fn record(&self, bytes: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let request = verify_accounting_request(bytes, SECRET.as_bytes()).ok()?;
        let sender = (from, request.identifier);
        let before = locked(&self.latest).insert(sender, request.authenticator);
        match before == Some(request.authenticator) {
            true => locked(&self.counts).repeated += 1,
            false => self.note(&request),
        }
        answer(Code::ACCOUNTING_RESPONSE, &request)
    }

    fn note(&self, request: &Packet) {
        let id = request.get(Kind::ACCT_SESSION_ID).and_then(Value::octets);
        let (Some(Value::Integer(status)), Some(id)) = (request.get(Kind::ACCT_STATUS_TYPE), id)
        else {
            return;
        };
        let (starts, stops) = match *status {
            values::ACCT_STATUS_TYPE_START => (1, 0),
            values::ACCT_STATUS_TYPE_STOP => (0, 1),
            _ => return,
        };
        let id = String::from_utf8_lossy(id).into_owned();
        let mut sessions = locked(&self.sessions);
        let session = sessions.entry(id).or_default();
        session.starts += starts;
        session.stops += stops;
    }

    fn summary(&self) -> Summary {
        let mut summary = *locked(&self.counts);
        for session in locked(&self.sessions).values() {
            let Session { starts, stops } = *session;
            summary.sessions += 1;
            summary.complete += u64::from((starts, stops) == (1, 1));
            summary.double += u64::from(starts > 1 || stops > 1);
        }
        summary
    }
}

fn answer(code: Code, request: &Packet) -> Option<Vec<u8>> {
    let reply = Packet::new(code, request.identifier, [0; 16]);
    let bytes = reply.emit_response(&request.authenticator, SECRET.as_bytes());
    bytes.ok()
}

/// Whether the subscriber's answer to the challenge is right (RFC 1994 section 4.1).
fn knows_password(request: &Packet) -> bool {
    let octets = |kind| request.get(kind).and_then(Value::octets);
    let challenge = octets(Kind::CHAP_CHALLENGE).unwrap_or(&request.authenticator);
    let given = octets(Kind::CHAP_PASSWORD).and_then(<[u8]>::split_first);
    given.is_some_and(|(&id, response)| {
        response == chap_response(id, PASSWORD.as_bytes(), challenge)
    })
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: u32, id: u8, session: &str) -> Vec<u8> {
        let mut packet = Packet::new(Code::ACCOUNTING_REQUEST, id, [0; 16]);
        packet.push(Kind::ACCT_STATUS_TYPE, status);
        packet.push(Kind::ACCT_SESSION_ID, session);
        packet.emit_accounting_request(SECRET.as_bytes()).unwrap()
    }

    #[test]
    fn records_that_come_again_count_once_and_second_ones_are_found() {
        let server = Server::default();
        let from = SocketAddr::from(([192, 0, 2, 1], 40_000));
        let (start, stop) = (record(1, 0, "a"), record(2, 1, "a"));
        for bytes in [&start, &start, &stop, &record(1, 2, "b")] {
            assert!(server.record(bytes, from).is_some());
        }
        let counted = server.summary();
        assert_eq!(
            (counted.sessions, counted.complete, counted.double),
            (2, 1, 0)
        );
        assert_eq!(counted.repeated, 1);
        server.record(&record(2, 3, "a"), from);
        assert_eq!(server.summary().double, 1);
        assert!(server.record(&start[1..], from).is_none());
    }

    #[test]
    fn only_the_password_is_accepted() {
        let server = Server::default();
        let from = SocketAddr::from(([192, 0, 2, 1], 40_000));
        for (password, code) in [
            (PASSWORD, Code::ACCESS_ACCEPT),
            ("wrong", Code::ACCESS_REJECT),
        ] {
            let challenge = [7; 16];
            let response = chap_response(3, password.as_bytes(), &challenge);
            let mut packet = Packet::new(Code::ACCESS_REQUEST, 1, [9; 16]);
            packet.push(Kind::CHAP_CHALLENGE, challenge.to_vec());
            packet.push(Kind::CHAP_PASSWORD, [&[3][..], &response].concat());
            let bytes = packet.emit_access_request(SECRET.as_bytes()).unwrap();
            let answer = server.access(&bytes, from).unwrap();
            assert_eq!(Packet::parse(&answer).unwrap().code, code);
        }
    }
}
