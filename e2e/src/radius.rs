//! RADIUS servers: Debian's FreeRADIUS, and one that signs its replies wrongly.

use anyhow::{Context, Result};
use sluice::lab::process::Process;
use sluice::lab::topology::{Lab, Place};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The secret that `raddb` and the control plane share; it exists in these tests only.
pub const SECRET: &str = "sluice-e2e";

/// FreeRADIUS with the configuration in `raddb`.
pub struct FreeRadius {
    process: Process,
    detail: PathBuf,
}

/// An entry of the detail file: attributes by name.
pub type Entry = BTreeMap<String, String>;

impl FreeRadius {
    /// Starts it beside the control plane.
    pub fn start(lab: &Lab) -> Result<Self> {
        let raddb = Path::new(env!("CARGO_MANIFEST_DIR")).join("raddb");
        let detail = lab.dir().join("detail");
        if detail.exists() {
            std::fs::remove_file(&detail)?;
        }
        let mut command = lab
            .netns(Place::ControlPlane)
            .command("/usr/sbin/freeradius");
        command
            .args(["-f", "-l", "stdout", "-d"])
            .arg(raddb)
            .env("SLUICE_E2E_RUN", lab.dir());
        let mut process = Process::spawn(lab.dir(), "freeradius", command)?;
        let log = process.log().to_owned();
        process.wait_until("Ready to process requests", Duration::from_secs(20), || {
            std::fs::read_to_string(&log)
                .is_ok_and(|text| text.contains("Ready to process requests"))
        })?;
        Ok(FreeRadius { process, detail })
    }

    /// The process, for its log.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The accounting records that arrived about a user, in order.
    pub fn accounting(&self, user: &str) -> Result<Vec<Entry>> {
        let text = match std::fs::read_to_string(&self.detail) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context("cannot read FreeRADIUS' detail file"),
        };
        let about = |entry: &Entry| entry.get("User-Name").is_some_and(|name| name == user);
        Ok(entries(&text).into_iter().filter(about).collect())
    }
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
    pub fn start(lab: &Lab) -> Result<Self> {
        let socket = lab
            .netns(Place::ControlPlane)
            .within(|| UdpSocket::bind("0.0.0.0:1812"))??;
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
