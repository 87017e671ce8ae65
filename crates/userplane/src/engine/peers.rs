//! Control planes: the path to each, and what becomes of its sessions when the path is lost.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dataplane::SessionIndex;
use tracing::warn;

use super::{After, Engine, Now, Session};

/// Time for a control plane to establish its sessions again after a restart, its own or ours. It goes on sending to them
/// meanwhile.
const TELLING_SESSIONS: Duration = Duration::from_secs(60);

/// State of a control plane.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// When it came up last.
    since: Duration,
    pub(super) path: Path,
    /// Epoch of its last audit.
    pub(super) audit: u32,
    /// It came up again and has until this time to announce its prefixes.
    pub(super) telling: Option<Duration>,
}

/// Path to a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Path {
    #[default]
    Alive,
    /// Its sessions are held until this time; `None`: for ever.
    Lost(Option<Duration>),
}

impl<T: Copy> Engine<T> {
    /// Notes that a control plane is reachable (again).
    pub fn peer_up(&mut self, now: Now, peer: SocketAddr) {
        let known = self.peers.entry(peer).or_default();
        (known.path, known.since) = (Path::Alive, now.monotonic);
        self.await_nets(now, peer);
    }

    /// Notes that a control plane is unreachable. Its sessions are held for the configured time, and reports wait. Returns the
    /// number of sessions.
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

    /// Next time at which a hold time ends.
    pub(super) fn hold_ends(&self) -> Option<Duration> {
        let ends = self.peers.values().filter_map(|peer| match peer.path {
            Path::Lost(until) => until,
            Path::Alive => None,
        });
        ends.min()
    }

    /// Removes the sessions of control planes that did not return in time.
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

    /// Moves the sessions of a control plane to its new address. Returns the number of sessions.
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

    /// Deletes all sessions and state of a control plane: it lost its sessions, released the association or was away for too
    /// long. Returns the number of sessions.
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

    /// Whether a control plane audits (decision 0005). One that does recognizes a repeated report by its number. One of another
    /// vendor may count a repeated report twice, and takes a deleted session for an unknown one.
    pub(super) fn audits(&self, peer: &SocketAddr) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.audit != 0)
    }

    /// Whether a control plane may still have sessions to establish again.
    pub(super) fn is_telling(&self, now: Duration, address: IpAddr) -> bool {
        let mut peers = self.peers.iter();
        match peers.find(|(peer, _)| peer.ip() == address) {
            Some((_, peer)) => now < peer.since + TELLING_SESSIONS,
            // Not associated yet.
            None => self.config.control_planes.contains(&address),
        }
    }

    /// Whether this is the address of a control plane: for PFCP, or for its tunnels.
    pub fn is_peer(&self, address: IpAddr) -> bool {
        self.peers.keys().any(|peer| peer.ip() == address)
            || self.config.control_planes.contains(&address)
            || self.defaults.keys().any(|index| {
                let session = self.table.get(*index);
                session.is_some_and(|s| s.compiled.tunnel().uplink.address == address)
            })
    }
}
