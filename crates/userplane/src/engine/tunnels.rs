//! Tunnels of control packets: which tunnel a packet takes, and which session a tunnel belongs to.

use std::net::IpAddr;
use std::time::Duration;

use dataplane::{PortIndex, SessionEntry, SessionIndex};
use pfcp::bng::Tunnel;

use super::{Engine, Session};
use crate::compile::CompiledSession;

/// Owner of the tunnel that a packet came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downlink {
    /// A default session. The packet itself names the port at which it leaves.
    Default,
    /// A subscriber session, with its port.
    Session(SessionIndex, PortIndex),
}

/// Why a packet from a tunnel is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDownlink {
    /// No session has the tunnel, and no reason is known.
    Unknown,
    /// The session of the tunnel has ended, or its control plane may still have to establish it again.
    Stale,
    /// The packet does not come from the session's control plane.
    WrongPeer,
}

fn entry_of<T>(session: &Session<T>) -> Option<&SessionEntry> {
    match &session.compiled {
        CompiledSession::Subscriber { entry, .. } => Some(entry),
        CompiledSession::Default { .. } => None,
    }
}

impl<T: Copy> Engine<T> {
    /// The subscriber sessions.
    pub fn subscribers(&self) -> impl Iterator<Item = &SessionEntry> {
        let sessions = self.table.iter();
        sessions.filter_map(|(_, session)| entry_of(session))
    }

    /// The subscriber session with an index.
    pub fn subscriber(&self, index: SessionIndex) -> Option<&SessionEntry> {
        entry_of(self.table.get(index)?)
    }

    /// Tunnel for discovery packets received at a port: that of the port's own default session, or of one for all ports.
    pub fn discovery_tunnel(&self, port: PortIndex) -> Option<Tunnel> {
        let of = |wanted: Option<PortIndex>| {
            let index = self.defaults.iter().find(|(_, port)| **port == wanted)?.0;
            Some(self.table.get(*index)?.compiled.tunnel().uplink)
        };
        of(Some(port)).or_else(|| of(None))
    }

    /// Tunnel for a session's control packets.
    pub fn control_tunnel(&self, index: SessionIndex) -> Option<Tunnel> {
        self.table
            .get(index)
            .map(|session| session.compiled.tunnel().uplink)
    }

    /// Destination of a packet that came from a tunnel at `now`.
    pub fn downlink(&self, now: Duration, teid: u32, from: IpAddr) -> Result<Downlink, NoDownlink> {
        let seid = self.table.by_teid(teid);
        let session = seid.and_then(|seid| Some((seid, self.table.resolve(seid)?)));
        let Some((seid, session)) = session else {
            return Err(
                match self.table.was_released(teid) || self.is_telling(now, from) {
                    true => NoDownlink::Stale,
                    false => NoDownlink::Unknown,
                },
            );
        };
        if session.peer.ip() != from && session.compiled.tunnel().uplink.address != from {
            return Err(NoDownlink::WrongPeer);
        }
        Ok(match &session.compiled {
            CompiledSession::Default { .. } => Downlink::Default,
            CompiledSession::Subscriber { entry, .. } => Downlink::Session(seid.index, entry.port),
        })
    }
}
