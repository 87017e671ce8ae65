//! RADIUS servers: Debian's FreeRADIUS, and one that signs its replies wrongly.

use crate::accounting::is;
use crate::guard::PATIENCE;
use anyhow::{Context, Result};
use lab::process::Process;
use lab::topology::{CP_MANAGEMENT_V4, Lab, Place};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The secret that the servers and the control plane share. It protects nothing: it exists in these tests only.
pub const SECRET: &str = "sluice-e2e";

/// Where a server is and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its log is `NAME.log`, its accounting records are in `NAME.detail`.
    pub name: &'static str,
    /// An address of the control plane's namespace.
    pub address: Ipv4Addr,
    /// UDP port for authentication.
    pub authentication: u16,
    /// UDP port for accounting.
    pub accounting: u16,
}

/// The one server of most cases.
pub const ALONE: Server = Server {
    name: "freeradius",
    address: CP_MANAGEMENT_V4,
    authentication: 1812,
    accounting: 1813,
};

/// Two servers in the order in which the control plane asks them; RADIUS' first port numbers are registered still.
pub const PAIR: [Server; 2] = [
    Server {
        name: "freeradius-1",
        address: Ipv4Addr::new(192, 0, 2, 11),
        authentication: 1812,
        accounting: 1813,
    },
    Server {
        name: "freeradius-2",
        address: Ipv4Addr::new(192, 0, 2, 12),
        authentication: 1645,
        accounting: 1646,
    },
];

/// For how long the control plane passes over a server that did not answer.
const DEAD_TIME: Duration = Duration::from_secs(5);

impl Server {
    /// The accounting records of sessions that it has received so far, in order.
    pub fn records(&self, lab: &Lab) -> Result<Vec<Entry>> {
        let of_sessions = |entry: &Entry| !is_announcement(entry);
        Ok(self
            .received(lab)?
            .into_iter()
            .filter(of_sessions)
            .collect())
    }

    /// What it has received so far of the gateway itself: Accounting-On and Accounting-Off, in order.
    pub fn announcements(&self, lab: &Lab) -> Result<Vec<Entry>> {
        Ok(self
            .received(lab)?
            .into_iter()
            .filter(is_announcement)
            .collect())
    }

    fn received(&self, lab: &Lab) -> Result<Vec<Entry>> {
        match std::fs::read_to_string(self.detail(lab)) {
            Ok(text) => Ok(entries(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).context("cannot read FreeRADIUS' detail file"),
        }
    }

    /// Those about a user.
    pub fn accounting(&self, lab: &Lab, user: &str) -> Result<Vec<Entry>> {
        let about = |entry: &Entry| entry.get("User-Name").is_some_and(|name| name == user);
        Ok(self.records(lab)?.into_iter().filter(about).collect())
    }

    /// Those about a session. A user's earlier session may still be said to have ended after the next one has begun.
    pub fn accounting_of(&self, lab: &Lab, session: &str) -> Result<Vec<Entry>> {
        let about = |entry: &Entry| entry.get("Acct-Session-Id").is_some_and(|id| id == session);
        Ok(self.records(lab)?.into_iter().filter(about).collect())
    }

    /// How many subscribers it has accepted since it was started last.
    pub fn accepted(&self, lab: &Lab) -> Result<usize> {
        let log = lab.dir().join(format!("{}.log", self.name));
        let text = match std::fs::read_to_string(log) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        Ok(text.matches("Login OK").count())
    }

    /// The last errors and warnings in its log.
    pub fn troubles(&self, lab: &Lab) -> String {
        let log = lab.dir().join(format!("{}.log", self.name));
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let of_note = |line: &&str| {
            [": Error:", ": Warning:", ": WARNING:", ": ERROR:"]
                .iter()
                .any(|kind| line.contains(kind))
        };
        let lines: Vec<&str> = text.lines().filter(of_note).collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// Removes its records, which are those of the case before. It is not running.
    pub fn forget(&self, lab: &Lab) -> Result<()> {
        match std::fs::remove_file(self.detail(lab)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.context("cannot remove FreeRADIUS' detail file"),
        }
    }

    /// The file of its records.
    pub fn detail(&self, lab: &Lab) -> PathBuf {
        lab.dir().join(format!("{}.detail", self.name))
    }

    /// The server in the control plane's document.
    pub fn yaml(&self) -> String {
        let Server {
            address,
            authentication,
            accounting,
            ..
        } = self;
        format!(
            "{{address: {address}, auth-port: {authentication}, acct-port: {accounting}, secret-key: {SECRET}, timeout: 1, \
             retransmit-attempts: 1, dead-time: {}}}",
            DEAD_TIME.as_secs()
        )
    }
}

/// Whether a record is about the gateway instead of a session.
fn is_announcement(entry: &Entry) -> bool {
    is(entry, "Accounting-On") || is(entry, "Accounting-Off")
}

/// How requests get to a server.
#[derive(Clone, Copy, Debug)]
pub enum Over<'a> {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS, with the certificates in a folder: `ca.pem`, `server.pem` and `server.key`.
    Tls(&'a Path),
}

/// FreeRADIUS with the configuration in `raddb`.
pub struct FreeRadius(Process);

/// An entry of the detail file: attributes by name.
pub type Entry = BTreeMap<String, String>;

impl FreeRadius {
    /// Starts it beside the control plane. What it has recorded before stays.
    pub fn start(lab: &Lab, server: &Server, secret: &str) -> Result<Self> {
        FreeRadius::start_with(lab, server, secret, &FreeRadius::users())
    }

    /// The file of users of most cases.
    pub fn users() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("raddb/users")
    }

    /// The same with another file of users.
    pub fn start_with(lab: &Lab, server: &Server, secret: &str, users: &Path) -> Result<Self> {
        FreeRadius::run(lab, server, (secret, users), Over::Udp)
    }

    /// The same over another transport.
    pub fn start_over(lab: &Lab, server: &Server, secret: &str, over: Over<'_>) -> Result<Self> {
        FreeRadius::run(lab, server, (secret, &FreeRadius::users()), over)
    }

    fn run(
        lab: &Lab,
        server: &Server,
        (secret, users): (&str, &Path),
        over: Over<'_>,
    ) -> Result<Self> {
        let (name, certificates) = match over {
            Over::Udp => ("radiusd", Path::new("")),
            Over::Tcp => ("tcp", Path::new("")),
            Over::Tls(folder) => ("tls", folder),
        };
        let raddb = Path::new(env!("CARGO_MANIFEST_DIR")).join("raddb");
        let mut command = lab
            .netns(Place::ControlPlane)
            .command("/usr/sbin/freeradius");
        command
            .args(["-f", "-l", "stdout", "-d"])
            .arg(raddb)
            .args(["-n", name])
            .env("SLUICE_E2E_RUN", lab.dir())
            .env("SLUICE_E2E_TLS", certificates)
            .env("SLUICE_E2E_DETAIL", server.detail(lab))
            .env("SLUICE_E2E_USERS", users)
            .env("SLUICE_E2E_SECRET", secret)
            .env("SLUICE_E2E_ADDRESS", server.address.to_string())
            .env(
                "SLUICE_E2E_AUTHENTICATION",
                server.authentication.to_string(),
            )
            .env("SLUICE_E2E_ACCOUNTING", server.accounting.to_string());
        let mut process = Process::spawn(lab.dir(), server.name, command)?;
        let log = process.log().to_owned();
        process.wait_until("Ready to process requests", PATIENCE, || {
            std::fs::read_to_string(&log)
                .is_ok_and(|text| text.contains("Ready to process requests"))
        })?;
        Ok(FreeRadius(process))
    }

    /// The process, for its log.
    pub fn process(&self) -> &Process {
        &self.0
    }

    /// Ends it.
    pub fn stop(mut self) -> Result<()> {
        self.0.stop()
    }
}

/// Sends a request of these attributes with Debian's radclient, from the control plane's namespace, once; what it prints, at the latest
/// after this time.
pub fn radclient(
    lab: &Lab,
    to: IpAddr,
    kind: &str,
    secret: &str,
    attributes: &str,
    limit: Duration,
) -> Result<String> {
    let to = SocketAddr::new(to, 3799).to_string();
    let limit = limit.as_secs().to_string();
    let mut command = lab.netns(Place::ControlPlane).command("/usr/bin/radclient");
    command
        .args(["-x", "-r", "1", "-p", "32", "-t", &limit, &to, kind, secret])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("radclient does not start")?;
    let mut stdin = child.stdin.take().context("radclient has no input")?;
    writeln!(stdin, "{attributes}")?;
    drop(stdin);
    let said = child.wait_with_output()?;
    Ok(format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    ))
}

/// Reads a detail file: a line with the time, then ` \tName = value` lines, then an empty line.
fn entries(text: &str) -> Vec<Entry> {
    let parse = |block: &str| -> Entry {
        let pairs = block
            .lines()
            .filter_map(|line| line.trim().split_once(" = "));
        pairs
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect()
    };
    text.split("\n\n")
        .map(parse)
        .filter(|entry| !entry.is_empty())
        .collect()
}

/// A server that answers every Access-Request with an accept whose authenticators are wrong, as somebody would who
/// does not know the secret.
pub struct Forger {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Forger {
    /// Starts it beside the control plane.
    pub fn start(lab: &Lab, server: &Server) -> Result<Self> {
        let at = (server.address, server.authentication);
        let socket = lab
            .netns(Place::ControlPlane)
            .within(|| UdpSocket::bind(at))??;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let (stop, answered) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (until, count) = (stop.clone(), answered.clone());
        let thread = std::thread::spawn(move || {
            let mut request = [0; 4096];
            while !until.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut request) else {
                    continue;
                };
                if length >= 20 && socket.send_to(&forged_accept(request[1]), from).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Forger {
            stop,
            answered,
            thread: Some(thread),
        })
    }

    /// How many requests it has answered.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Access-Accept with arbitrary Response Authenticator and Message-Authenticator.
fn forged_accept(identifier: u8) -> Vec<u8> {
    let mut reply = vec![2, identifier, 0, 38];
    reply.extend([0xaa; 16]);
    reply.extend([80, 18]);
    reply.extend([0xbb; 16]);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_entries_are_read() {
        let text = "Fri Nov 20 12:13:06 2026\n\tUser-Name = \"alice\"\n\tAcct-Status-Type = Start\n\n\
                    Fri Nov 20 12:13:09 2026\n\tUser-Name = \"alice\"\n\tAcct-Input-Octets = 84\n\n";
        let entries = entries(text);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0]["User-Name"], "alice");
        assert_eq!(entries[1]["Acct-Input-Octets"], "84");
    }

    #[test]
    fn the_forged_accept_is_well_formed() {
        let accept = forged_accept(7);
        assert_eq!(accept.len(), 38);
        assert_eq!(accept[..4], [2, 7, 0, 38]);
    }
}
