//! Control planes: the path to each, and what becomes of its sessions when that is lost.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dataplane::SessionIndex;
use tracing::warn;

use super::{After, Engine, Now, Session};

/// How long a control plane may take to tell its sessions after a restart, its own or ours. It goes on sending to them meanwhile.
const TELLING_SESSIONS: Duration = Duration::from_secs(60);

/// What is kept of a control plane.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// When it came (back).
    since: Duration,
    pub(super) path: Path,
    /// Its last audit.
    pub(super) audit: u32,
    /// It came back, and has until then to tell its nets again.
    pub(super) telling: Option<Duration>,
}

/// The path to a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Path {
    #[default]
    Alive,
    /// Its sessions are held until then, or for ever.
    Lost(Option<Duration>),
}

impl<T: Copy> Engine<T> {
    /// A control plane is there (again).
    pub fn peer_up(&mut self, now: Now, peer: SocketAddr) {
        let known = self.peers.entry(peer).or_default();
        (known.path, known.since) = (Path::Alive, now.monotonic);
        self.await_nets(now, peer);
    }

    /// A control plane cannot be reached: its sessions are held as long as the configuration says, reports wait.
    /// Returns how many there are.
    pub fn peer_lost(&mut self, now: Now, address: SocketAddr) -> usize {
        let sessions = self.table.iter().filter(|(_, s)| s.peer == address);
        let held = sessions.count();
        if held == 0 {
            self.forget_peer(address);
            return 0;
        }
        let until = self.config.hold.map(|hold| now.monotonic + hold);
        let peer = self.peers.entry(address).or_default();
        (peer.path, peer.telling) = (Path::Lost(until), None);
        held
    }

    /// When the sessions of a control plane that cannot be reached have been held long enough.
    pub(super) fn hold_ends(&self) -> Option<Duration> {
        let ends = self.peers.values().filter_map(|peer| match peer.path {
            Path::Lost(until) => until,
            Path::Alive => None,
        });
        ends.min()
    }

    /// Removes the sessions of control planes that did not come back in time.
    pub(super) fn end_hold(&mut self, now: Now) {
        while self.hold_ends().is_some_and(|at| at <= now.monotonic) {
            let due =
                |peer: &Peer| matches!(peer.path, Path::Lost(Some(at)) if at <= now.monotonic);
            let Some((&address, _)) = self.peers.iter().find(|(_, peer)| due(peer)) else {
                return;
            };
            let sessions = self.forget_peer(address);
            self.counters.hold_expired += sessions as u64;
            warn!(
                peer = %address, sessions,
                "the control plane did not come back within `hold-sessions`: its sessions are removed; it establishes them \
                    again when the path returns"
            );
        }
    }

    /// A control plane is at another address now; its sessions are held there from now on.
    /// Returns how many there are.
    pub fn move_peer(&mut self, from: SocketAddr, to: SocketAddr) -> usize {
        let mut moved = 0;
        for session in self.table.iter_mut().filter(|s| s.peer == from) {
            session.peer = to;
            moved += 1;
        }
        if let Some(before) = self.peers.remove(&from) {
            let audit = &mut self.peers.entry(to).or_default().audit;
            *audit = (*audit).max(before.audit);
        }
        self.departed.move_peer(from, to);
        if let Some(nets) = self.held.remove(&from) {
            self.release_nets(to);
            self.held.insert(to, nets);
        }
        moved
    }

    /// A control plane lost its sessions, released the association or was away for too long: they are deleted, and
    /// nothing is remembered of it. Returns how many there were.
    pub fn forget_peer(&mut self, peer: SocketAddr) -> usize {
        let of_peer =
            |(index, session): (SessionIndex, &Session<T>)| (session.peer == peer).then_some(index);
        let indices: Vec<SessionIndex> = self.table.iter().filter_map(of_peer).collect();
        for &index in &indices {
            self.remove(index, After::Nothing);
        }
        self.release_nets(peer);
        self.peers.remove(&peer);
        indices.len()
    }

    /// Whether a control plane audits (decision 0005). One that does knows a report by its number; one of another make may add
    /// up what it is told again, and takes a session that was deleted for one that nobody knows.
    pub(super) fn audits(&self, peer: &SocketAddr) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.audit != 0)
    }

    /// Whether a control plane has yet to tell us its sessions, or may be about to.
    pub(super) fn is_telling(&self, now: Duration, address: IpAddr) -> bool {
        let mut peers = self.peers.iter();
        match peers.find(|(peer, _)| peer.ip() == address) {
            Some((_, peer)) => now < peer.since + TELLING_SESSIONS,
            // not associated yet; where none is named, any may call
            None if self.config.control_planes.is_empty() => self.peers.is_empty(),
            None => self.config.control_planes.contains(&address),
        }
    }

    /// Whether this is a control plane's address.
    pub fn is_peer(&self, address: IpAddr) -> bool {
        self.peers.keys().any(|peer| peer.ip() == address)
    }
}
