//! Which tunnel a control packet takes, and whose tunnel one came through.

use std::net::IpAddr;
use std::time::Duration;

use dataplane::{PortIndex, SessionEntry, SessionIndex};
use pfcp::bng::Tunnel;

use super::Engine;
use crate::compile::CompiledSession;

/// Whose tunnel a packet came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downlink {
    /// A default session's: the packet says itself at which port it leaves.
    Default,
    /// A subscriber's.
    Session(SessionIndex, PortIndex),
}

/// Why a packet from a tunnel is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDownlink {
    /// No session has the tunnel, and nothing says why.
    Unknown,
    /// The session that had the tunnel has ended, or its control plane has not told us its sessions yet.
    Stale,
    /// The packet does not come from the session's control plane.
    WrongPeer,
}

impl<T: Copy> Engine<T> {
    /// The subscribers' sessions.
    pub fn subscribers(&self) -> impl Iterator<Item = &SessionEntry> {
        let sessions = self.table.iter();
        sessions.filter_map(|(_, session)| match &session.compiled {
            CompiledSession::Subscriber { entry, .. } => Some(entry),
            CompiledSession::Default { .. } => None,
        })
    }

    /// The tunnel for discovery packets that came in at a port: that of the port's own
    /// default session, or of one for all ports.
    pub fn discovery_tunnel(&self, port: PortIndex) -> Option<Tunnel> {
        let of = |wanted: Option<PortIndex>| {
            let index = self.defaults.iter().find(|(_, port)| **port == wanted)?.0;
            Some(self.table.get(*index)?.compiled.tunnel().uplink)
        };
        of(Some(port)).or_else(|| of(None))
    }

    /// The tunnel for a session's control packets.
    pub fn control_tunnel(&self, index: SessionIndex) -> Option<Tunnel> {
        self.table
            .get(index)
            .map(|session| session.compiled.tunnel().uplink)
    }

    /// Where a packet from a tunnel goes, that came `now`.
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
