//! Between the PFCP transport, the sessions and the worker.

use dataplane::Event as WorkerEvent;
use pfcp::{DownReason, Event, Output};
use tracing::{error, info, warn};
use wire::pfcp::NodeId;

use super::{ForWorker, Now, UserPlane};
use crate::engine;

impl UserPlane {
    pub(super) fn settle_node(&mut self) -> bool {
        let mut any = false;
        if self.is_blank() {
            return any;
        }
        while let Some(output) = self.node.poll_output() {
            any = true;
            match output {
                Output::Transmit { to, bytes } => {
                    if !self.sending.push(to, &bytes) {
                        self.send_pfcp();
                        self.sending.push(to, &bytes);
                    }
                }
                Output::Event(event) => self.pfcp_event(event),
            }
        }
        any
    }

    /// Sends what waits. A datagram that is lost here is one lost on the way.
    pub(super) fn send_pfcp(&mut self) {
        self.counters.send_failed += self.sending.try_send(&self.pfcp) as u64;
    }

    fn pfcp_event(&mut self, event: Event) {
        match event {
            Event::AssociationUp { peer, info } => {
                if info.restarted && !info.retain_sessions {
                    // TS 23.527 §4.2: with another time stamp its sessions are gone.
                    let sessions = self.engine.forget_peer(peer);
                    info!(%peer, sessions, "the control plane began anew: its sessions are deleted");
                }
                if let Some(former) = info.moved_from {
                    let sessions = self.engine.move_peer(former, peer);
                    info!(%peer, %former, sessions, "the control plane has another address: its sessions go along");
                }
                self.engine.peer_up(self.clock.now(), peer);
                info!(%peer, node = %name(&info.node_id), "associated with the control plane");
            }
            Event::AssociationDown { peer, reason } => self.association_down(peer, reason),
            Event::NodeIdTaken {
                peer,
                node_id,
                owner,
            } => {
                // Whoever calls for ever must not fill the log.
                let refused = self.node.counters().node_id_taken;
                if refused.is_power_of_two() {
                    error!(
                        %peer, node = %name(&node_id), %owner, refused,
                        "refused a control plane that goes by the name of another, whose path is \
                         alive: give each a `node-id` of its own, or end the one that is no longer wanted"
                    );
                }
            }
            Event::VersionMismatch { peer, version } => warn!(
                %peer, version,
                "the control plane speaks another version of PFCP: expected version 1; it was told"
            ),
            Event::Request { id, seid, message } => {
                let now = self.clock.now();
                self.engine.request(now, id, id.peer, seid, message);
            }
            Event::Response { token, message, .. } => {
                self.engine.reported(token, message.cause());
            }
            Event::Failed { token, .. } => self.engine.reported(token, None),
            Event::EstablishedLate { .. } => {} // a user plane asks nobody for sessions
            Event::AssociationRejected { peer, cause } => {
                warn!(%peer, %cause, "the control plane refused the association");
            }
        }
    }

    fn association_down(&mut self, peer: std::net::SocketAddr, reason: DownReason) {
        let sessions = self.engine.peer_lost(self.clock.now(), peer);
        match reason {
            DownReason::Released => {
                let sessions = self.engine.forget_peer(peer);
                info!(%peer, sessions, "the association was released: its sessions are deleted");
            }
            DownReason::PathLost => warn!(
                %peer, sessions,
                "the control plane does not answer: its sessions are held (`hold-sessions`) and go on forwarding"
            ),
            reason => {
                info!(%peer, sessions, ?reason, "the association ended; its sessions are held")
            }
        }
    }

    pub(super) fn settle_engine(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.engine.poll_output() {
            any = true;
            match output {
                engine::Output::Worker(command) => {
                    let new = self.newly_sampled(&command);
                    self.for_worker(ForWorker::Session(command));
                    if let Some((index, rate)) = new {
                        self.for_worker(ForWorker::Sample(index, Some(rate)));
                    }
                }
                engine::Output::Respond { to, seid, message } => {
                    self.node.respond(to, seid, message);
                }
                engine::Output::Report {
                    peer,
                    seid,
                    token,
                    message,
                } => {
                    let now = self.clock.now().monotonic;
                    if self.node.request(now, peer, seid, message, token).is_err() {
                        self.engine.reported(token, None);
                    }
                }
                engine::Output::AddNet(instance, net) => {
                    if let Some(instance) = self.instances.get_mut(usize::from(instance.0)) {
                        instance.fib.add_net(net);
                    }
                }
                engine::Output::RemoveNet(instance, net) => {
                    if let Some(instance) = self.instances.get_mut(usize::from(instance.0)) {
                        instance.fib.remove_net(net);
                    }
                }
            }
        }
        any
    }

    pub(super) fn worker_event(&mut self, now: Now, event: WorkerEvent) {
        match event {
            WorkerEvent::Usage {
                index,
                usage,
                removed,
            } => {
                let usage = pfcp::bng::Usage {
                    up_packets: usage.up_packets,
                    up_octets: usage.up_octets,
                    down_packets: usage.down_packets,
                    down_octets: usage.down_octets,
                };
                self.engine.worker_usage(now, index, usage, removed);
            }
            WorkerEvent::SessionRefused { index, reason } => {
                warn!(index = index.0, ?reason, "the worker refused a session");
                self.engine.worker_refused(index, reason);
            }
            WorkerEvent::RouteRefused { prefix, .. } => {
                if self.counters.routes_refused == 0 {
                    warn!(%prefix, "the worker refused a route: its table is full; further ones are only counted");
                }
                self.counters.routes_refused += 1;
            }
            WorkerEvent::AdjacencyRefused(id) => {
                warn!(adjacency = id.0, "the worker refused a next hop");
                self.counters.adjacencies_refused += 1;
            }
            WorkerEvent::AdjacencyUsed(id) => self.each_fib(|fib| fib.adjacency_used(id.0)),
            WorkerEvent::AdjacencyMissing(id) => self.each_fib(|fib| fib.adjacency_missing(id.0)),
            WorkerEvent::NeighbourMissing { port, address } => {
                self.each_fib(|fib| fib.neighbour_missing(port.0, address));
            }
        }
    }

    /// One network namespace, one instance: further ones would have adjacencies of their
    /// own range.
    fn each_fib(&mut self, act: impl Fn(&mut crate::fib::Fib)) {
        if let Some(instance) = self.instances.first_mut() {
            act(&mut instance.fib);
        }
    }
}

fn name(node_id: &NodeId) -> String {
    match node_id {
        NodeId::Ipv4(address) => address.to_string(),
        NodeId::Ipv6(address) => address.to_string(),
        NodeId::Fqdn(name) => name.clone(),
    }
}
