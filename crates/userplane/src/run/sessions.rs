//! Connects the PFCP transport, the sessions and the worker.

use std::net::SocketAddr;

use dataplane::{Event as WorkerEvent, Inject};
use pfcp::Output;
use tracing::warn;

use super::{ForWorker, Now, UserPlane};
use crate::{association, engine};

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
                    let info = self.node.peer_info(to);
                    let joins = info.is_some_and(|info| info.features.bundles_messages());
                    if let Some(full) = self.messages.push(to, bytes, joins) {
                        self.batch_pfcp(full);
                    }
                }
                Output::Event(event) => {
                    let now = self.clock.now();
                    association::hear(&self.node, &mut self.engine, now, event);
                }
            }
        }
        any
    }

    fn batch_pfcp(&mut self, (to, bytes): (SocketAddr, Vec<u8>)) {
        if !self.sending.push(to, &bytes) {
            self.send_batch();
            self.sending.push(to, &bytes);
        }
    }

    /// Sends the waiting messages.
    pub(super) fn send_pfcp(&mut self) {
        while let Some(datagram) = self.messages.pop() {
            self.batch_pfcp(datagram);
        }
        self.send_batch();
    }

    /// Sends the waiting datagrams. A send error counts as a loss on the way.
    fn send_batch(&mut self) {
        self.counters.send_failed += self.sending.try_send(&self.pfcp) as u64;
    }

    pub(super) fn settle_engine(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.engine.poll_output() {
            any = true;
            let now = self.clock.now().monotonic;
            let Some(output) = association::carry(&mut self.node, &mut self.engine, now, output)
            else {
                continue;
            };
            match output {
                engine::Output::Worker(command) => {
                    let new = self.newly_sampled(&command);
                    self.follow_watched(&command);
                    self.for_worker(ForWorker::Session(command));
                    self.renew_watches();
                    if let Some((index, rate)) = new {
                        self.for_worker(ForWorker::Sample(index, Some(rate)));
                    }
                }
                engine::Output::Send(port, frame) => {
                    let sent = self.controller.inject(Inject::Port(port, &frame));
                    self.counters.inject_busy += u64::from(sent.is_err());
                }
                engine::Output::AddNet(instance, net) => {
                    if let Some(instance) = self.instances.get_mut(&instance) {
                        instance.fib.add_net(net);
                    }
                }
                engine::Output::RemoveNet(instance, net) => {
                    if let Some(instance) = self.instances.get_mut(&instance) {
                        instance.fib.remove_net(net);
                    }
                }
                engine::Output::Respond { .. } | engine::Output::Report { .. } => {} // carried
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
                association::count(&mut self.engine, now, index, usage, removed);
            }
            WorkerEvent::PolicyState {
                index,
                direction,
                state,
            } => self.tell_session_policy(index, direction, state.map(|state| *state)),
            WorkerEvent::Queues { next, parts, all } => self.queues_told(next, parts, all),
            WorkerEvent::SessionRefused { index, reason } => {
                warn!(index = index.0, ?reason, "the worker rejected a session");
                self.engine.worker_refused(index, reason);
            }
            WorkerEvent::RouteRefused { prefix, .. } => {
                if self.counters.routes_refused == 0 {
                    warn!(%prefix, "the worker rejected a route: its table is full; further rejected routes are only \
                        counted");
                }
                self.counters.routes_refused += 1;
            }
            WorkerEvent::AdjacencyRefused(id) => {
                warn!(adjacency = id.0, "the worker rejected a next hop");
                self.counters.adjacencies_refused += 1;
            }
            WorkerEvent::AdjacencyUsed(id) => self.each_fib(|fib| fib.adjacency_used(id.0)),
            WorkerEvent::AdjacencyMissing(id) => self.each_fib(|fib| fib.adjacency_missing(id.0)),
            WorkerEvent::NeighbourMissing { port, address } => {
                self.each_fib(|fib| fib.neighbour_missing(port.0, address, now.monotonic));
            }
        }
    }

    /// Applies a change to the only instance: there is one network namespace. Further ones would need their own adjacency ranges.
    fn each_fib(&mut self, act: impl Fn(&mut crate::fib::Fib)) {
        if let Some(instance) = self.instances.values_mut().next() {
            act(&mut instance.fib);
        }
    }
}
