//! The state at a glance, for those who watch: what is counted all along, never a walk through all sessions.

use super::ControlPlane;
use northbound::{SessionCounts, WatchStateResponse, WatchedUserPlane};

/// Sessions that came and went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Sessions that wait for their last counters.
    pub closing: u64,
    pub begun: u64,
    pub opened: u64,
    pub ended: u64,
}

impl ControlPlane {
    /// The state, without its time and what only the user planes know.
    pub fn overview(&self) -> WatchStateResponse {
        let mut drops = self.drop_rows();
        drops.retain(|drop| drop.count > 0);
        let user_planes = self.topology.user_planes();
        let user_planes = user_planes.map(|(id, plane)| WatchedUserPlane {
            node_id: plane.node_id.clone(),
            associated: self.user_planes.is_up(id),
            ..WatchedUserPlane::default()
        });
        let mut user_planes: Vec<WatchedUserPlane> = user_planes.collect();
        user_planes.sort_by(|a, b| a.node_id.cmp(&b.node_id));
        WatchStateResponse {
            sessions: Some(self.session_counts()),
            user_planes,
            drops,
            pools: self.addresses.use_of_pools(&self.topology),
            ..WatchStateResponse::default()
        }
    }

    fn session_counts(&self) -> SessionCounts {
        let (all, connecting) = (self.sessions.len() as u64, self.half_open as u64);
        let Tally {
            closing,
            begun,
            opened,
            ended,
        } = self.tally;
        SessionCounts {
            connecting,
            online: all.saturating_sub(connecting + closing),
            closing,
            begun,
            opened,
            ended,
        }
    }
}
