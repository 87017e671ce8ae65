//! Control packets between subscribers and the control plane: Ethernet frames in GTP-U tunnels.

use super::{ControlPlane, Now, Output};
use crate::counters::Counter;
use crate::entry::Entry;
use crate::topology::{PortId, UserPlaneId};
use core::net::SocketAddr;
use session::{Circuit, NotTaken};
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, TPID_8021Q, Tag, Tags};
use wire::{gtpu, nsh};

/// Reason for which a redirected frame is dropped.
pub(super) type Refused = Counter;

impl ControlPlane {
    pub(super) fn on_gtpu(&mut self, now: Now, from: SocketAddr, bytes: &[u8]) {
        let Some(plane) = self.user_planes.find(from.ip()) else {
            return self.counters.count(Counter::UnknownUserPlane);
        };
        let taken = match gtpu::Packet::parse(bytes) {
            Ok(gtpu::Packet::Gpdu { teid, payload }) => self.on_tunnel(now, plane, teid, payload),
            Ok(gtpu::Packet::EchoRequest { sequence }) => {
                let mut bytes = Vec::new();
                let answer = gtpu::Packet::EchoResponse { sequence };
                if answer.emit(&mut bytes).is_ok() {
                    self.outputs.push_back(Output::Gtpu { to: from, bytes });
                }
                Ok(())
            }
            Ok(gtpu::Packet::ErrorIndication { teid, .. }) => Err(self.why_absent(plane, teid)),
            Ok(_) => Ok(()),
            Err(_) => Err(Counter::MalformedFrame),
        };
        if let Err(counter) = taken {
            self.counters.count(counter);
        }
    }

    fn on_tunnel(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        teid: u32,
        payload: &[u8],
    ) -> Result<(), Refused> {
        if self.has_default_tunnel(plane, teid) {
            return self.on_default_tunnel(now, plane, payload);
        }
        match self.session_in(plane, teid) {
            Some(index) => self.on_session_frame(now, index, payload),
            None => Err(self.why_unowned(plane, teid)),
        }
    }

    /// Session of this tunnel of a user plane.
    fn session_in(&self, plane: UserPlaneId, teid: u32) -> Option<u32> {
        let index = self.sessions.in_tunnel(teid)?;
        (self.plane_of(index) == plane).then_some(index)
    }

    /// Whether a default session of a user plane has this tunnel.
    fn has_default_tunnel(&self, plane: UserPlaneId, teid: u32) -> bool {
        let port = self.user_planes.port_in_tunnel(teid);
        port.is_some_and(|port| {
            self.topology.has_port(port) && self.topology.port(port).user_plane == plane
        })
    }

    /// Counter for a frame in a tunnel without a session. Its session ended meanwhile, or the user plane has a session that was not
    /// stored before a restart, which the audit will find.
    fn why_unowned(&self, plane: UserPlaneId, teid: u32) -> Refused {
        match self.released_tunnels.contains(teid) || self.is_comparing(plane) {
            true => Counter::StaleTunnel,
            false => Counter::UnknownTunnel,
        }
    }

    /// Counter for an Error Indication (TS 29.281 §7.3.1): the user plane does not have a tunnel. If a session has the tunnel, the
    /// session is being established again after a restart, or deleted.
    fn why_absent(&self, plane: UserPlaneId, teid: u32) -> Refused {
        let is_ours =
            self.session_in(plane, teid).is_some() || self.has_default_tunnel(plane, teid);
        match is_ours {
            true => Counter::StaleTunnel,
            false => self.why_unowned(plane, teid),
        }
    }

    /// Handles a frame in a default tunnel. The NSH names the port.
    fn on_default_tunnel(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        payload: &[u8],
    ) -> Result<(), Refused> {
        let packet = nsh::Packet::parse(payload).map_err(|_| Counter::MalformedFrame)?;
        let frame = Frame::parse(packet.frame).map_err(|_| Counter::MalformedFrame)?;
        if frame.header.ethertype != PPPOE_DISCOVERY {
            return Err(Counter::DiscoveryIgnored);
        }
        // the inner one of two tags is a C-tag (IEEE 802.1ad); the rules of a session could not say otherwise
        let is_c_tag = |tag: Tag| tag.tpid == TPID_8021Q;
        if !frame.header.tags.inner.is_none_or(is_c_tag) {
            return Err(Counter::UnknownSegment);
        }
        let port = self.topology.find_port(plane, packet.logical_port);
        let port = port.ok_or(Counter::UnknownSegment)?;
        let segment = self.topology.find_segment(port, &frame.header.tags);
        let segment = segment.ok_or(Counter::UnknownSegment)?;
        let own = self
            .topology
            .group(self.topology.port(port).group)
            .virtual_mac;
        let destination = frame.header.destination;
        if destination != own && destination != MacAddr::BROADCAST {
            return Err(Counter::DiscoveryIgnored); // for another access concentrator
        }
        let circuit = Circuit {
            logical_port: packet.logical_port.into(),
            tags: frame.header.tags.without_priority(),
            mac: frame.header.source,
        };
        self.on_discovery(now, segment, circuit, frame.payload)
    }

    fn on_session_frame(&mut self, now: Now, index: u32, bytes: &[u8]) -> Result<(), Refused> {
        let frame = Frame::parse(bytes).map_err(|_| Counter::MalformedFrame)?;
        let entry = self.entry(index);
        let own = frame.header.source == entry.circuit.mac
            && frame.header.tags.vids() == entry.circuit.tags.vids();
        if !own {
            return Err(Counter::ForeignFrame);
        }
        let Some(link) = &mut entry.link else {
            return Ok(());
        };
        match link.on_frame(now.at, frame.header.ethertype, frame.payload) {
            Ok(()) => {}
            Err(NotTaken::Malformed) => return Err(Counter::MalformedFrame),
            Err(NotTaken::Foreign) => return Err(Counter::ForeignFrame),
            Err(NotTaken::Discarded(why)) => {
                tracing::trace!(session = %entry.seid, why = why.0, "frame discarded");
            }
        }
        self.carry_out(now, index);
        Ok(())
    }

    /// Sends a PPPoE packet to an access line through its port's default tunnel.
    pub(super) fn send_by_default(&mut self, port: PortId, circuit: &Circuit, payload: &[u8]) {
        let owner = &self.topology.port(port);
        let (plane, group) = (owner.user_plane, owner.group);
        let source = self.topology.group(group).virtual_mac;
        let frame = frame(circuit, circuit.tags, source, PPPOE_DISCOVERY, payload);
        let packet = nsh::Packet {
            logical_port: &circuit.logical_port,
            frame: &frame,
        };
        let mut bytes = Vec::with_capacity(frame.len() + 32);
        if packet.emit(&mut bytes).is_ok()
            && let Some(teid) = self.user_planes.tunnel_of_port(port)
        {
            self.send(plane, teid, &bytes);
        }
    }

    /// Sends the payload of a frame to a session through its own tunnel.
    pub(super) fn send_to_session(&mut self, index: u32, ethertype: u16, payload: &[u8]) {
        let entry: &Entry = &self.sessions[index];
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let tags = entry.circuit.tags;
        let tags = tags.with_priority(entry.policy.forwarding.packets.vlan_priority);
        let frame = frame(&entry.circuit, tags, entry.gateway_mac, ethertype, payload);
        let (plane, teid) = (port.user_plane, entry.teid);
        self.send(plane, teid, &frame);
    }

    fn send(&mut self, plane: UserPlaneId, teid: u32, payload: &[u8]) {
        let mut bytes = Vec::with_capacity(payload.len() + 8);
        let far_end = self.user_planes.downlink(plane, teid);
        if gtpu::emit_gpdu(far_end.teid, payload, &mut bytes).is_ok() {
            let to = SocketAddr::new(far_end.address, gtpu::PORT);
            self.outputs.push_back(Output::Gtpu { to, bytes });
        }
    }
}

/// Frame to an access line.
fn frame(
    circuit: &Circuit,
    tags: Tags,
    source: MacAddr,
    ethertype: u16,
    payload: &[u8],
) -> Vec<u8> {
    let header = Header {
        destination: circuit.mac,
        source,
        tags,
        ethertype,
    };
    let mut frame = Vec::with_capacity(header.len() + payload.len());
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}
