//! Overview of the state, from counters that exist anyway. It never walks through all sessions.

use super::ControlPlane;
use crate::entry::Entry;
use crate::sessions::Tally;
use crate::topology::{AccessLine, Seid};
use crate::trace::Traced;
use core::net::IpAddr;
use core::time::Duration;
use northbound::{SessionCounts, WatchStateResponse, WatchedUserPlane};
use pfcp::Features;

impl ControlPlane {
    /// State without its time and without the user planes' data.
    pub fn overview(&self, now: Duration) -> WatchStateResponse {
        let mut drops = self.drop_rows();
        drops.retain(|drop| drop.count > 0);
        let offenders = self.failing_senders(now);
        let of_plane = |name: &str| {
            let rows = offenders.iter().filter(|row| row.user_plane == name);
            rows.cloned().collect()
        };
        let user_planes = self.topology.user_planes();
        let user_planes = user_planes.map(|(id, plane)| WatchedUserPlane {
            node_id: plane.node_id.clone(),
            associated: self.user_planes.is_up(id),
            offenders: of_plane(&plane.node_id),
            ..WatchedUserPlane::default()
        });
        let mut user_planes: Vec<WatchedUserPlane> = user_planes.collect();
        user_planes.sort_by(|a, b| a.node_id.cmp(&b.node_id));
        WatchStateResponse {
            sessions: Some(self.session_counts()),
            user_planes,
            drops,
            pools: self.addresses.use_of_pools(&self.topology),
            alarms: self.alarm_rows().alarms,
            ..WatchStateResponse::default()
        }
    }

    fn session_counts(&self) -> SessionCounts {
        let (all, connecting) = (self.sessions.len() as u64, self.sessions.half_open() as u64);
        let Tally {
            closing,
            begun,
            opened,
            ended,
        } = self.sessions.tally();
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

/// Lookups for traces.
impl ControlPlane {
    /// Identifiers of a session in messages.
    pub(crate) fn traced(&self, seid: Seid) -> Option<Traced> {
        let entry = &self.sessions[self.sessions.find(seid)?];
        Some(Traced {
            line: self.access_line(entry),
            user_plane: self
                .topology
                .user_plane(self.plane_of(seid.index()))
                .address,
            up_seid: entry.rules.up_seid,
        })
    }

    /// Sessions on an access line that are not closing.
    pub(crate) fn sessions_at(&self, line: &AccessLine) -> impl Iterator<Item = (Seid, Traced)> {
        let segments = self.topology.segments().filter(|(_, segment)| {
            let port = self.topology.port(segment.port);
            let user_plane = self.topology.user_plane(port.user_plane);
            port.name == line.port && user_plane.node_id == line.user_plane
        });
        let (outer, inner) = line.vids;
        let keys = segments.map(move |(segment, _)| (segment, outer, inner, line.mac));
        let indexes = keys.flat_map(|key| self.sessions.on_line(key));
        indexes.filter_map(|index| {
            let seid = self.sessions[index].seid;
            Some((seid, self.traced(seid)?))
        })
    }

    /// Access line of a session.
    pub(crate) fn access_line(&self, entry: &Entry) -> AccessLine {
        let port = self.topology.segment(entry.segment).port;
        let port = self.topology.port(port);
        AccessLine {
            user_plane: self.topology.user_plane(port.user_plane).node_id.clone(),
            port: port.name.clone(),
            vids: entry.circuit.tags.vids(),
            mac: entry.circuit.mac,
        }
    }

    /// Access line of the session with this control tunnel.
    pub(crate) fn line_in_tunnel(&self, teid: u32) -> Option<AccessLine> {
        let index = self.sessions.in_tunnel(teid)?;
        Some(self.access_line(&self.sessions[index]))
    }

    /// Whether this is the control tunnel of an access port's default session.
    pub(crate) fn is_default_tunnel(&self, teid: u32) -> bool {
        self.user_planes.port_in_tunnel(teid).is_some()
    }

    /// Whether the user plane at an address takes several PFCP messages in a datagram.
    pub(crate) fn bundles_messages(&self, address: IpAddr) -> bool {
        let features = self.user_planes.features(address);
        features.is_some_and(Features::bundles_messages)
    }

    /// Whether the user plane at an address takes several GTP-U packets in a datagram.
    pub(crate) fn bundles_frames(&self, address: IpAddr) -> bool {
        let features = self.user_planes.features(address);
        features.is_some_and(Features::bundles_frames)
    }

    /// Name of the user plane at an address.
    pub(crate) fn user_plane_at(&self, address: IpAddr) -> Option<&str> {
        let plane = self.user_planes.find(address)?;
        Some(&self.topology.user_plane(plane).node_id)
    }
}
