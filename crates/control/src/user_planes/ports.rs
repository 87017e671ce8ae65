//! Access ports of user planes: the default session of each port, and the prefix blocks that it announces for its group.

use super::{Answer, Request, UserPlaneEvent, UserPlanes};
use crate::addresses::Net;
use crate::topology::{Group, GroupId, PortId, Seid, Topology, UserPlaneId};
use core::time::Duration;
use pfcp::FailReason;
use pfcp::bng::{DefaultSpec, PoolNet};
use std::collections::{BTreeMap, BTreeSet};
use wire::pfcp::{Cause, Message};

/// Prefix blocks of a group: those to announce, and those that its user plane knows.
#[derive(Default)]
pub(super) struct Nets {
    pub wanted: BTreeSet<Net>,
    pub told: BTreeMap<Net, u16>,
    pub under_way: Option<Change>,
    /// Number of the last change. It identifies answers to earlier changes.
    pub number: u8,
}

/// Change of the prefix blocks that a user plane announces for a group.
pub(super) enum Change {
    /// Prefix blocks with their slots.
    Add(Vec<(Net, u16)>),
    Remove(Vec<Net>),
}

impl UserPlanes {
    /// Announces a prefix block of a group.
    pub fn announce(&mut self, now: Duration, group: GroupId, net: Net, topology: &Topology) {
        self.nets.entry(group).or_default().wanted.insert(net);
        self.tell_nets(now, group, topology);
    }

    /// Withdraws a prefix block of a group.
    pub fn withdraw(&mut self, now: Duration, group: GroupId, net: Net, topology: &Topology) {
        self.nets.entry(group).or_default().wanted.remove(&net);
        self.tell_nets(now, group, topology);
    }

    /// User plane's SEID of a port's default session, while that is open.
    pub fn default_session(&self, port: PortId) -> Option<u64> {
        self.defaults.get(&port).copied()
    }

    /// Marks a port's default session as closed until it is opened again.
    pub fn forget_default_session(&mut self, port: PortId) {
        self.defaults.remove(&port);
    }

    pub(super) fn open_default_sessions(
        &mut self,
        now: Duration,
        plane: UserPlaneId,
        topology: &Topology,
    ) {
        for (port, _) in topology.ports().filter(|(_, p)| p.user_plane == plane) {
            self.open_default_session(now, port, topology);
        }
    }

    /// Opens the closed default sessions of a user plane, whose ports are new or were rejected.
    pub fn open_missing(&mut self, now: Duration, plane: UserPlaneId, topology: &Topology) {
        if !self.is_up(plane) {
            return; // the association opens them
        }
        let asked = |id: PortId| {
            let is_it =
                |request: &Request| matches!(request, Request::DefaultSession(port) if *port == id);
            self.requests.iter().any(|(_, request)| is_it(request))
        };
        let ports = topology.ports().filter(|(id, port)| {
            port.user_plane == plane && !port.retired && self.default_session(*id).is_none()
        });
        let (asked, others): (Vec<PortId>, Vec<PortId>) =
            ports.map(|(id, _)| id).partition(|id| asked(*id));
        self.known_since.extend(asked);
        for port in others {
            self.open_default_session(now, port, topology);
        }
    }

    /// TEID of a port's default session.
    fn open_tunnel(&mut self, id: PortId) -> u32 {
        if let Some(teid) = self.tunnel_of_port(id) {
            return teid;
        }
        let teid = self
            .teids
            .of_port(id, |teid| self.ports_by_teid.contains_key(&teid));
        self.ports_by_teid.insert(teid, id);
        self.teids_of_ports.insert(id, teid);
        teid
    }

    /// TEID of a port's default session, if it was opened before.
    pub fn tunnel_of_port(&self, id: PortId) -> Option<u32> {
        self.teids_of_ports.get(&id).copied()
    }

    /// Access port whose default session has this control tunnel.
    pub fn port_in_tunnel(&self, teid: u32) -> Option<PortId> {
        self.ports_by_teid.get(&teid).copied()
    }

    /// Opens the default session of a port. The user plane replaces an existing one, with its prefix blocks.
    pub fn open_default_session(&mut self, now: Duration, id: PortId, topology: &Topology) {
        let port = topology.port(id);
        let teid = self.open_tunnel(id);
        let spec = DefaultSpec {
            node_id: self.node_id(),
            cp_f_seid: self.f_seid(port.user_plane, Seid::of_port(id)),
            logical_port: Some(port.name.clone().into_bytes()),
            uplink: self.uplink(port.user_plane, teid),
            downlink: Some(self.downlink(port.user_plane, teid)),
            nets: Vec::new(),
        };
        let (establish, _) = spec.establish();
        self.defaults.remove(&id);
        self.known_since.remove(&id);
        let request = Request::DefaultSession(id);
        if let Err(error) = self.ask(now, port.user_plane, 0, request, establish) {
            tracing::warn!(port = %port.name, %error, "cannot open the default session");
        }
    }

    /// Closes the default session of a retired port. Returns false if the request cannot be sent now.
    pub fn close_port(&mut self, now: Duration, id: PortId, topology: &Topology) -> bool {
        let closing = |request: &Request| matches!(request, Request::ClosePort(port) | Request::DefaultSession(port) if *port == id);
        if self.requests.iter().any(|(_, request)| closing(request)) {
            return true;
        }
        let Some(up_seid) = self.default_session(id) else {
            return false;
        };
        let plane = topology.port(id).user_plane;
        let request = Request::ClosePort(id);
        self.ask(now, plane, up_seid, request, pfcp::bng::delete())
            .is_ok()
    }

    pub(super) fn on_port_closed(
        &mut self,
        now: Duration,
        port: PortId,
        message: Answer,
        topology: &Topology,
    ) {
        if let Ok(Message::SessionDeletionResponse(_)) = message {
            self.defaults.remove(&port);
            self.forget_told(topology.groups().filter(|(_, g)| g.carrier == port));
            tracing::info!(port = %topology.port(port).name, "access port is closed");
            if !topology.port(port).retired {
                self.open_default_session(now, port, topology); // it is wanted again
            }
        }
    }

    /// Moves a group's prefix blocks to another port. The previous port keeps announcing its blocks until it is closed.
    pub fn carry(&mut self, now: Duration, group: GroupId, topology: &Topology) {
        let nets = self.nets.entry(group).or_default();
        nets.told.clear();
        nets.under_way = None;
        self.tell_nets(now, group, topology);
    }

    /// Whether the user plane announces exactly the group's prefix blocks.
    pub fn is_told(&self, group: GroupId) -> bool {
        let nets = self.nets.get(&group);
        nets.is_none_or(|nets| nets.under_way.is_none() && nets.told.keys().eq(nets.wanted.iter()))
    }

    /// Forgets a group without prefix blocks.
    pub fn forget_group(&mut self, group: GroupId) {
        self.nets.remove(&group);
    }

    pub(super) fn forget_default_sessions(&mut self, plane: UserPlaneId, topology: &Topology) {
        for (id, _) in topology.ports().filter(|(_, p)| p.user_plane == plane) {
            self.defaults.remove(&id);
        }
        self.forget_told(topology.groups().filter(|(_, g)| g.user_plane == plane));
    }

    /// Marks the prefix blocks of these groups as unknown to the user plane.
    fn forget_told<'a>(&mut self, groups: impl Iterator<Item = (GroupId, &'a Group)>) {
        for (id, _) in groups {
            let nets = self.nets.entry(id).or_default();
            nets.told.clear();
            nets.under_way = None;
        }
    }

    pub(super) fn on_default_session(
        &mut self,
        now: Duration,
        port: PortId,
        message: Answer,
        topology: &Topology,
    ) {
        let name = &topology.port(port).name;
        match message {
            Ok(Message::SessionEstablishmentResponse(m)) if m.cause == Cause::REQUEST_ACCEPTED => {
                let up_seid = m.up_f_seid.map_or(0, |f| f.seid);
                self.defaults.insert(port, up_seid);
                tracing::info!(port = %name, "access port is open for subscribers");
                self.events.push_back(UserPlaneEvent::Open(port));
                let carried = topology.groups().filter(|(_, group)| group.carrier == port);
                for (group, _) in carried {
                    let nets = self.nets.entry(group).or_default();
                    nets.told.clear();
                    nets.under_way = None;
                    self.tell_nets(now, group, topology);
                }
            }
            Ok(Message::SessionEstablishmentResponse(_)) if self.known_since.contains(&port) => {
                self.open_default_session(now, port, topology);
            }
            Ok(Message::SessionEstablishmentResponse(m)) => {
                let offending = m.offending_ie;
                tracing::warn!(port = %name, cause = %m.cause, ?offending, "user plane rejects the default session: no \
                    subscriber can connect on this port until the user plane has its configuration (`show user-planes`)");
            }
            Err(FailReason::TimedOut) => {
                tracing::warn!(port = %name, "user plane did not answer the default session's establishment: retrying");
                self.open_default_session(now, port, topology);
            }
            _ => {} // the next association opens it
        }
    }

    /// Sends the next change of a group's prefix blocks. Only one message is pending at a time, so that none overtakes another.
    fn tell_nets(&mut self, now: Duration, group: GroupId, topology: &Topology) {
        let carrier = topology.group(group).carrier;
        let Some(up_seid) = self.default_session(carrier) else {
            return;
        };
        let nets = self.nets.entry(group).or_default();
        if nets.under_way.is_some() {
            return;
        }
        let at_once = pfcp::bng::NETS_PER_MESSAGE;
        let gone = nets
            .told
            .iter()
            .filter(|(net, _)| !nets.wanted.contains(net));
        let gone: Vec<(Net, u16)> = gone
            .take(at_once)
            .map(|(net, slot)| (*net, *slot))
            .collect();
        let (change, messages) = if gone.is_empty() {
            let used = self.slots_of(carrier, topology);
            let nets = &self.nets[&group];
            let mut slots = (0..0xe000).filter(|slot| !used.contains(slot));
            let new = nets
                .wanted
                .iter()
                .filter(|net| !nets.told.contains_key(net));
            let adding: Vec<(Net, u16)> = new
                .take(at_once)
                .map_while(|net| Some((*net, slots.next()?)))
                .collect();
            let named: Vec<PoolNet> = adding
                .iter()
                .map(|(net, slot)| PoolNet {
                    slot: *slot,
                    network_instance: topology.instance(net.instance).name.clone(),
                    net: net.net,
                })
                .collect();
            (Change::Add(adding), DefaultSpec::add_nets(&named))
        } else {
            let (removing, slots): (Vec<Net>, Vec<u16>) = gone.into_iter().unzip();
            (Change::Remove(removing), DefaultSpec::remove_nets(&slots))
        };
        let Some(message) = messages.into_iter().next() else {
            return;
        };
        let plane = topology.group(group).user_plane;
        let nets = self.nets.entry(group).or_default();
        nets.number = nets.number.wrapping_add(1);
        let request = Request::Nets(group, nets.number);
        let asked = self.ask(now, plane, up_seid, request, message);
        let nets = self.nets.entry(group).or_default();
        nets.under_way = asked.is_ok().then_some(change);
    }

    /// Slots in use in the default session of a port, by all groups whose prefix blocks it carries.
    fn slots_of(&self, carrier: PortId, topology: &Topology) -> BTreeSet<u16> {
        let carried = self.nets.iter().filter(|(group, _)| {
            topology.has_group(**group) && topology.group(**group).carrier == carrier
        });
        let slots = carried.flat_map(|(_, nets)| {
            let adding = match &nets.under_way {
                Some(Change::Add(adding)) => adding.as_slice(),
                _ => &[],
            };
            let adding = adding.iter().map(|(_, slot)| *slot);
            nets.told.values().copied().chain(adding)
        });
        slots.collect()
    }

    /// Opens the default session that carries a group's prefix blocks again, when the state of the user plane is unknown.
    pub fn tell_again(&mut self, now: Duration, group: GroupId, topology: &Topology) {
        let carrier = topology.group(group).carrier;
        self.open_default_session(now, carrier, topology);
    }

    pub(super) fn on_nets(
        &mut self,
        now: Duration,
        group: GroupId,
        number: u8,
        message: Answer,
        topology: &Topology,
    ) {
        let nets = self.nets.entry(group).or_default();
        if nets.number != number {
            return; // what it was about has been told anew
        }
        let Some(change) = nets.under_way.take() else {
            return; // of an association that has ended
        };
        match message {
            Ok(Message::SessionModificationResponse(m)) if m.cause == Cause::REQUEST_ACCEPTED => {
                match change {
                    Change::Add(added) => nets.told.extend(added),
                    Change::Remove(removed) => {
                        nets.told.retain(|net, _| !removed.contains(net));
                    }
                }
                self.tell_nets(now, group, topology);
            }
            Ok(Message::SessionModificationResponse(m))
                if m.cause == Cause::SESSION_CONTEXT_NOT_FOUND =>
            {
                self.tell_again(now, group, topology);
            }
            Ok(Message::SessionModificationResponse(m)) => {
                let name = &topology.group(group).name;
                tracing::error!(group = %name, cause = %m.cause, "user plane rejects the group's prefix blocks: they are \
                    not announced");
                // the next change tells them again
            }
            Err(FailReason::TimedOut) => self.tell_again(now, group, topology),
            _ => {} // the next association tells them
        }
    }
}
