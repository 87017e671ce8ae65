//! User planes: associations, default sessions, and the prefix blocks that groups announce.

use crate::plane::Now;
use crate::teids::Teids;
use crate::topology::{GroupId, PortId, Seid, Topology, UserPlane, UserPlaneId};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use pfcp::bng::Tunnel;
use pfcp::{Config, Event, FailReason, Features, Node, Output, RequestError, RequestId, Role};
use policy::Setting;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::pfcp::{
    Cause, CpFunctionFeatures, FSeid, Lanes, Message, NodeId, SluiceFeatures, ntp_seconds,
};

mod ledger;
mod ports;

use ports::Nets;

/// UDP port of PFCP (TS 29.244 §6.8.2.1).
pub const PFCP_PORT: u16 = 8805;

/// Pending PFCP request to a user plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Establish(Seid),
    /// Session modification. The number distinguishes it from earlier ones.
    Modify(Seid, u8),
    Usage(Seid, UsageFor),
    Delete(Seid),
    /// Deletes a session of the user plane that the control plane does not have.
    DeleteUnknown(UserPlaneId, u64),
    /// Block of the audit of this epoch, in a port's default session.
    Audit(UserPlaneId, PortId, u32),
    DefaultSession(PortId),
    /// Deletion of a port's default session.
    ClosePort(PortId),
    /// Change of a group's prefix blocks. The number distinguishes it from earlier ones.
    Nets(GroupId, u8),
}

impl Request {
    fn is_modification(self) -> bool {
        matches!(self, Request::Modify(..))
    }
}

/// Purpose of reading a session's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageFor {
    /// Interim accounting record.
    Interim,
    /// Call of the local API with this ticket, for this session only.
    Call(u64),
    /// Call of the local API with this ticket, for all sessions.
    List(u64),
}

/// Result of a request: its answer, or the reason for its failure.
pub(crate) type Answer = Result<Message, FailReason>;

/// Event that the control plane handles.
#[derive(Debug)]
pub(crate) enum UserPlaneEvent {
    Transmit(SocketAddr, Vec<u8>),
    /// An association was set up. `lost`: the user plane has none of our sessions.
    Up {
        plane: UserPlaneId,
        lost: bool,
    },
    /// An association ended, with the reason.
    Down(UserPlaneId, &'static str),
    /// The default session of an access port is open.
    Open(PortId),
    /// A request was answered or has failed.
    Answer(Request, Answer),
    /// Unsolicited report of a user plane.
    Report {
        id: RequestId,
        seid: Seid,
        message: Message,
    },
    /// A user plane established a session under this SEID of its own, but no request waits for the answer.
    EstablishedLate(UserPlaneId, Seid, u64),
}

/// Maximum number of pending establishments after a user plane lost its sessions. It keeps both planes busy, and the answers (under
/// 1 kB each, with the kernel's overhead) fit into a receive buffer of the default limit, 2 × 208 KiB. The requests (1.2 kB) need more:
/// our user plane sets its buffer to 4 MiB.
const RESYNC_WINDOW: usize = 384;

/// State of all user planes.
pub(crate) struct UserPlanes {
    node: Node,
    node_id: NodeId,
    own: config::Addresses,
    peers: BTreeMap<UserPlaneId, Peer>,
    /// TEIDs of default sessions, in both directions.
    teids: Teids,
    teids_of_ports: BTreeMap<PortId, u32>,
    ports_by_teid: BTreeMap<u32, PortId>,
    /// User planes' SEIDs of open default sessions, by port.
    defaults: BTreeMap<PortId, u64>,
    /// Ports that their user plane got after their default session was requested. The pending request may still fail.
    known_since: BTreeSet<PortId>,
    nets: BTreeMap<GroupId, Nets>,
    requests: Slab<Request>,
    /// How many of them are session modifications.
    modifying: usize,
    events: VecDeque<UserPlaneEvent>,
}

struct Peer {
    address: SocketAddr,
    /// Recovery time stamp of the user plane's run that has our sessions.
    recovery: Option<u32>,
    standing: Standing,
    /// Sessions to establish again or to delete, in order.
    resync: VecDeque<Seid>,
    resyncing: usize,
    /// Number of sessions restored since the association.
    resynced: usize,
    resync_began: Duration,
}

/// State of an association, for operators.
#[derive(Clone, Copy, Default)]
pub(crate) struct Standing {
    /// Whether there was an association since the control plane's start.
    pub seen: bool,
    /// Time at which the association began or ended.
    pub since: Duration,
    /// Number of associations with a new recovery time stamp.
    pub restarts: u32,
}

/// State of the path to a user plane, for operators.
pub(crate) struct PathStatus {
    pub address: SocketAddr,
    pub answering: bool,
    /// Time of the last answer.
    pub heard: Option<Duration>,
    pub heartbeat_interval: Duration,
    /// Number of requests that are queued or wait for an answer.
    pub pending: usize,
}

impl UserPlanes {
    /// `recovery_time_stamp` is the control plane's own. It stays the same as long as the store exists.
    pub fn new(
        start: &config::start::ControlPlane,
        (recovery_time_stamp, first_sequence): (u32, u32),
        teids: Teids,
        now: Now,
    ) -> Self {
        let node_id = NodeId::Fqdn(start.node_id.clone());
        let node = Node::new(Config {
            retain_sessions: true,
            first_sequence,
            clock: ntp_seconds(now.unix.into()).wrapping_sub(now.at.as_secs() as u32),
            features: Features {
                cp: Some(CpFunctionFeatures::BUNDLING),
                sluice: Some(SluiceFeatures::FRAMES),
                ..Features::default()
            },
            ..Config::new(Role::Control, node_id.clone(), recovery_time_stamp)
        });
        UserPlanes {
            node,
            node_id,
            own: start.address,
            teids,
            teids_of_ports: BTreeMap::new(),
            ports_by_teid: BTreeMap::new(),
            peers: BTreeMap::new(),
            defaults: BTreeMap::new(),
            known_since: BTreeSet::new(),
            nets: BTreeMap::new(),
            requests: Slab::new(),
            modifying: 0,
            events: VecDeque::new(),
        }
    }

    /// Adds a user plane. `recovery` is the recovery time stamp of its run that had our sessions.
    pub fn add(
        &mut self,
        now: Duration,
        id: UserPlaneId,
        plane: &UserPlane,
        recovery: Option<u32>,
    ) {
        let address = SocketAddr::new(plane.address, PFCP_PORT);
        let peer = Peer {
            address,
            recovery,
            standing: Standing {
                since: now,
                ..Standing::default()
            },
            resync: VecDeque::new(),
            resyncing: 0,
            resynced: 0,
            resync_began: now,
        };
        self.peers.insert(id, peer);
        // one that left before the store knew its address cannot be reached
        if !plane.address.is_unspecified() {
            self.node.add_peer(now, address);
            let name = NodeId::Fqdn(plane.node_id.clone());
            self.node.reserve(address, name);
        }
    }

    /// Moves a user plane to another address, where it has none of our sessions.
    pub fn relocate(
        &mut self,
        now: Duration,
        id: UserPlaneId,
        plane: &UserPlane,
        topology: &Topology,
    ) {
        self.forget_default_sessions(id, topology);
        if let Some(peer) = self.peers.remove(&id) {
            self.node.release(now, peer.address);
        }
        self.add(now, id, plane, None);
    }

    /// Removes a user plane without sessions.
    pub fn remove(&mut self, now: Duration, id: UserPlaneId, topology: &Topology) {
        self.forget_default_sessions(id, topology);
        if let Some(peer) = self.peers.remove(&id) {
            self.node.release(now, peer.address);
        }
        let of_plane =
            |group: &GroupId| topology.has_group(*group) && topology.group(*group).user_plane == id;
        self.nets.retain(|group, _| !of_plane(group));
    }

    /// Whether a user plane is known.
    pub fn knows(&self, id: UserPlaneId) -> bool {
        self.peers.contains_key(&id)
    }

    pub fn node_id(&self) -> NodeId {
        self.node_id.clone()
    }

    /// Control plane's F-SEID of a session.
    pub fn f_seid(&self, plane: UserPlaneId, seid: Seid) -> FSeid {
        FSeid::new(seid.0, self.own_address(plane))
    }

    /// Control plane's end of a tunnel.
    pub fn uplink(&self, plane: UserPlaneId, teid: u32) -> Tunnel {
        Tunnel {
            teid,
            address: self.own_address(plane),
        }
    }

    /// Control plane's address in the user plane's address family.
    fn own_address(&self, plane: UserPlaneId) -> IpAddr {
        let own = self.own.towards(self.peer(plane).address.ip());
        own.expect("checked by the configuration")
    }

    /// User plane's end of a tunnel.
    pub fn downlink(&self, plane: UserPlaneId, teid: u32) -> Tunnel {
        Tunnel {
            teid,
            address: self.peer(plane).address.ip(),
        }
    }

    /// User plane with this address.
    pub fn find(&self, address: IpAddr) -> Option<UserPlaneId> {
        let mut peers = self.peers.iter();
        let (id, _) = peers.find(|(_, peer)| peer.address.ip() == address)?;
        Some(*id)
    }

    pub fn is_up(&self, plane: UserPlaneId) -> bool {
        let peer = self.peers.get(&plane);
        peer.is_some_and(|peer| self.node.is_associated(peer.address))
    }

    /// Whether the user plane can carry out a policy setting. True for one that is not associated.
    pub fn takes_setting(&self, plane: UserPlaneId, setting: &Setting) -> bool {
        let info = self.node.peer_info(self.peer(plane).address);
        info.is_none_or(|info| info.features.takes_setting(setting))
    }

    /// Whether the user plane supports all bindings and their announcement. True for one that is not associated.
    pub fn takes_bindings(&self, plane: UserPlaneId) -> bool {
        let info = self.node.peer_info(self.peer(plane).address);
        info.is_none_or(|info| info.features.bindings())
    }

    /// Whether the user plane announces routes with their metrics. True for one that is not associated.
    pub fn takes_metrics(&self, plane: UserPlaneId) -> bool {
        let info = self.node.peer_info(self.peer(plane).address);
        info.is_none_or(|info| info.features.metrics())
    }

    /// Whether the user plane answers LCP echo requests of subscribers if requested.
    pub fn answers_echoes(&self, plane: UserPlaneId) -> bool {
        let info = self.node.peer_info(self.peer(plane).address);
        info.is_some_and(|info| info.features.echo_replies())
    }

    /// What the user plane at an address can do, as it said at its last association.
    pub fn features(&self, address: IpAddr) -> Option<&Features> {
        let plane = self.find(address)?;
        let info = self.node.peer_info(self.peer(plane).address)?;
        Some(&info.features)
    }

    /// Workers of the user plane's sessions. One of before does not say them: it has at most 16, in turn.
    pub fn lanes(&self, plane: UserPlaneId) -> Lanes {
        let info = self.node.peer_info(self.peer(plane).address);
        let said = info.and_then(|info| info.features.lanes);
        said.unwrap_or_else(|| Lanes::even(16))
    }

    /// Whether the path is alive, so that control packets of its subscribers arrive.
    pub fn is_answering(&self, plane: UserPlaneId) -> bool {
        let peer = self.peers.get(&plane);
        peer.is_some_and(|peer| self.node.is_answering(peer.address))
    }

    /// State of the path to a user plane.
    pub fn path(&self, plane: UserPlaneId) -> PathStatus {
        let address = self.peer(plane).address;
        PathStatus {
            address,
            answering: self.node.is_answering(address),
            heard: self.node.last_heard(address),
            heartbeat_interval: self.node.heartbeat_interval(),
            pending: self.node.pending(address),
        }
    }

    pub fn counters(&self) -> pfcp::Counters {
        self.node.counters()
    }

    pub fn standing(&self, plane: UserPlaneId) -> Standing {
        self.peer(plane).standing
    }

    /// Recovery time stamp of the user plane's run that has our sessions.
    pub fn recovery(&self, plane: UserPlaneId) -> Option<u32> {
        self.peer(plane).recovery
    }

    pub fn datagram(&mut self, now: Duration, from: SocketAddr, bytes: &[u8], topology: &Topology) {
        self.node.handle_datagram(now, from, bytes);
        self.drain(now, topology);
    }

    pub fn on_timeout(&mut self, now: Duration, topology: &Topology) {
        self.node.on_timeout(now);
        self.drain(now, topology);
    }

    pub fn poll_at(&self) -> Option<Duration> {
        self.node.poll_at()
    }

    pub fn poll(&mut self, now: Duration, topology: &Topology) -> Option<UserPlaneEvent> {
        if self.events.is_empty() {
            self.drain(now, topology);
        }
        self.events.pop_front()
    }

    /// Sends a request. The answer arrives as [`UserPlaneEvent::Answer`].
    pub fn ask(
        &mut self,
        now: Duration,
        plane: UserPlaneId,
        up_seid: u64,
        request: Request,
        message: impl Into<Message>,
    ) -> Result<(), RequestError> {
        let token = self.book(request);
        let peer = self.peer(plane).address;
        let asked = self.node.request(now, peer, up_seid, message, token);
        if asked.is_err() {
            self.unbook(token);
        }
        asked
    }

    /// Adds a request to those that wait for their answers. Returns its token.
    fn book(&mut self, request: Request) -> u64 {
        self.modifying += usize::from(request.is_modification());
        self.requests.insert(request) as u64
    }

    /// Removes a request from those that wait.
    fn unbook(&mut self, token: u64) -> Option<Request> {
        let request = self.requests.try_remove(token as usize)?;
        self.modifying -= usize::from(request.is_modification());
        Some(request)
    }

    /// Number of session modifications that wait for their answers.
    pub fn modifying(&self) -> usize {
        self.modifying
    }

    /// Answers a report.
    pub fn acknowledge(&mut self, id: RequestId, up_seid: u64, cause: Cause) {
        let response = wire::pfcp::SessionReportResponse {
            cause,
            ..Default::default()
        };
        self.node.respond(id, up_seid, response);
    }

    /// Begins the restoration of sessions after a new association, which cancels an earlier one.
    pub fn begin_resync(&mut self, now: Duration, plane: UserPlaneId) {
        let peer = self.peer_mut(plane);
        peer.resync.clear();
        peer.resyncing = 0;
        peer.resynced = 0;
        peer.resync_began = now;
    }

    /// Queues sessions of a user plane to be established again or deleted.
    pub fn queue_resync(&mut self, plane: UserPlaneId, sessions: impl IntoIterator<Item = Seid>) {
        self.peer_mut(plane).resync.extend(sessions);
    }

    /// Takes the next session to restore, if the window permits.
    pub fn next_resync(&mut self, plane: UserPlaneId) -> Option<Seid> {
        let peer = self.peer_mut(plane);
        if peer.resyncing >= RESYNC_WINDOW {
            return None;
        }
        let seid = peer.resync.pop_front()?;
        peer.resyncing += 1;
        Some(seid)
    }

    /// Notes the end of one restoration, with or without success. After the last one, returns their number and duration.
    pub fn resync_done(&mut self, now: Duration, plane: UserPlaneId) -> Option<(usize, Duration)> {
        let peer = self.peer_mut(plane);
        peer.resyncing = peer.resyncing.checked_sub(1)?;
        peer.resynced += 1;
        let last = peer.resyncing == 0 && peer.resync.is_empty();
        last.then(|| (peer.resynced, now.saturating_sub(peer.resync_began)))
    }

    /// Whether sessions are still to be restored.
    pub fn is_resyncing(&self, plane: UserPlaneId) -> bool {
        let peer = self.peer(plane);
        peer.resyncing > 0 || !peer.resync.is_empty()
    }

    fn peer(&self, plane: UserPlaneId) -> &Peer {
        &self.peers[&plane]
    }

    fn peer_mut(&mut self, plane: UserPlaneId) -> &mut Peer {
        self.peers.get_mut(&plane).expect("a user plane of ours")
    }

    fn drain(&mut self, now: Duration, topology: &Topology) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Transmit { to, bytes } => {
                    self.events.push_back(UserPlaneEvent::Transmit(to, bytes));
                }
                Output::Event(event) => self.on_event(now, event, topology),
            }
        }
    }

    fn on_event(&mut self, now: Duration, event: Event, topology: &Topology) {
        match event {
            Event::AssociationUp { peer, info } => {
                let Some(plane) = self.find(peer.ip()) else {
                    return;
                };
                let entry = self.peer_mut(plane);
                let before = entry.recovery.replace(info.recovery_time_stamp);
                let lost = before != Some(info.recovery_time_stamp);
                entry.standing.restarts += u32::from(lost && before.is_some());
                (entry.standing.seen, entry.standing.since) = (true, now);
                let name = &topology.user_plane(plane).node_id;
                tracing::info!(user_plane = %name, %peer, lost_sessions = lost, "user plane associated");
                self.open_default_sessions(now, plane, topology);
                self.events.push_back(UserPlaneEvent::Up { plane, lost });
            }
            Event::AssociationDown { peer, reason } => {
                tracing::warn!(%peer, ?reason, "user plane is no longer associated; its sessions are kept");
                if let Some(plane) = self.find(peer.ip()) {
                    self.peer_mut(plane).standing.since = now;
                    self.forget_default_sessions(plane, topology);
                    let down = UserPlaneEvent::Down(plane, why(reason));
                    self.events.push_back(down);
                }
            }
            Event::AssociationRejected { peer, cause } => {
                tracing::warn!(%peer, %cause, "user plane rejects the association: retrying");
            }
            Event::NodeIdTaken {
                peer,
                node_id,
                owner,
            } => {
                // whoever calls for ever must not fill the log
                let refused = self.node.counters().node_id_taken;
                if refused.is_power_of_two() {
                    tracing::error!(%peer, ?node_id, %owner, refused, "rejected a user plane with another user plane's node \
                        id: give each its own `node-id`, and configure its address here");
                }
            }
            Event::NotBelieved { from, doubt, times } => {
                tracing::warn!(%from, times, "{doubt}");
            }
            Event::VersionMismatch { peer, version } => {
                tracing::warn!(%peer, version, "the peer uses a PFCP version other than 1: check what runs there");
            }
            Event::Request { id, seid, message } => {
                let seid = Seid(seid);
                self.events
                    .push_back(UserPlaneEvent::Report { id, seid, message });
            }
            Event::Response { token, message, .. } => {
                self.on_answer(now, token, Ok(message), topology)
            }
            Event::EstablishedLate {
                peer,
                seid,
                peer_seid,
            } => {
                if let Some(plane) = self.find(peer.ip()) {
                    let seid = Seid(seid);
                    self.on_established_late(now, plane, seid, peer_seid, topology);
                }
            }
            Event::Failed {
                token,
                reason,
                peer,
            } => {
                tracing::debug!(%peer, ?reason, "PFCP request failed");
                self.on_answer(now, token, Err(reason), topology);
            }
        }
    }

    fn on_answer(&mut self, now: Duration, token: u64, message: Answer, topology: &Topology) {
        let Some(request) = self.unbook(token) else {
            return;
        };
        match request {
            Request::DefaultSession(port) | Request::ClosePort(port)
                if !topology.has_port(port) => {}
            Request::Nets(group, _) if !topology.has_group(group) => {}
            Request::DefaultSession(port) => self.on_default_session(now, port, message, topology),
            Request::ClosePort(port) => self.on_port_closed(now, port, message, topology),
            Request::Nets(group, number) => {
                self.on_nets(now, group, number, message, topology);
            }
            request => self
                .events
                .push_back(UserPlaneEvent::Answer(request, message)),
        }
    }

    /// Handles an old request that a user plane repeated, which replaced the default session or session that we know.
    fn on_established_late(
        &mut self,
        now: Duration,
        plane: UserPlaneId,
        seid: Seid,
        up_seid: u64,
        topology: &Topology,
    ) {
        let mut ports = topology.ports().filter(|(_, p)| p.user_plane == plane);
        let Some((port, _)) = ports.find(|(port, _)| Seid::of_port(*port) == seid) else {
            let late = UserPlaneEvent::EstablishedLate(plane, seid, up_seid);
            return self.events.push_back(late);
        };
        if self.default_session(port).is_some_and(|own| own != up_seid) {
            self.open_default_session(now, port, topology);
        }
    }
}

/// Reason for which an association ended, for operators.
fn why(reason: pfcp::DownReason) -> &'static str {
    match reason {
        pfcp::DownReason::PathLost => "it no longer answers",
        pfcp::DownReason::Released => "one side released the association",
        pfcp::DownReason::Restarted => "it was restarted",
        pfcp::DownReason::Forgotten => "it does not know the association",
    }
}
