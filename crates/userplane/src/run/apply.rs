//! Commands to the worker and to the kernel.

use std::time::Duration;

use dataplane::{Adjacency, AdjacencyIndex, GroupIndex, InstanceIndex, PortIndex, first_routes};
use tracing::{debug, info, warn};
use wire::eth::MacAddr;

use super::{BACKLOG, Busy, Command, ForWorker, UserPlane, WorkerCommand};
use crate::announcement::Announcement;
use crate::ledger::destination;
use crate::netlink::request;

/// Time until a rejected kernel request is tried again. All of the kernel's tables are read for that.
const AGAIN: Duration = Duration::from_secs(10);

impl UserPlane {
    /// Carries out the outputs of the parts until there are none.
    pub(crate) fn settle(&mut self) {
        while self.settle_node() | self.settle_engine() {}
        self.send_pfcp();
        let instances = self.instances.iter_mut();
        let commands = instances.flat_map(|(index, instance)| {
            let commands = instance.fib.take_commands().into_iter();
            commands.map(|command| (*index, command))
        });
        let commands: Vec<_> = commands.collect();
        for (instance, command) in commands {
            self.carry_out(instance, command);
        }
        self.flush();
        self.engine.worker_behind = self.backlog.len() > BACKLOG;
    }

    /// Carries out what the routes of an instance ask for.
    fn carry_out(&mut self, instance: InstanceIndex, command: Command) {
        match command {
            Command::SetRoute(prefix, target) => {
                let to = destination(target);
                self.for_worker(ForWorker::SetRoute(instance, prefix, to));
            }
            Command::RemoveRoute(prefix) => {
                // A route that every instance has from the start is restored.
                let first = first_routes().find(|(net, _)| *net == prefix);
                self.for_worker(match first {
                    Some((_, to)) => ForWorker::SetRoute(instance, prefix, to),
                    None => ForWorker::RemoveRoute(instance, prefix),
                });
            }
            Command::SetAdjacency { id, port, mac } => {
                let to = Adjacency {
                    port: PortIndex(port),
                    mac: mac.map(MacAddr),
                };
                self.for_worker(ForWorker::SetAdjacency(AdjacencyIndex(id), Some(to)));
            }
            Command::RemoveAdjacency(id) => {
                self.for_worker(ForWorker::SetAdjacency(AdjacencyIndex(id), None));
            }
            Command::SetGroup(id, members) => {
                let members = members.into_iter().map(AdjacencyIndex).collect();
                self.for_worker(ForWorker::SetGroup(GroupIndex(id), members));
            }
            Command::RemoveGroup(id) => {
                self.for_worker(ForWorker::RemoveGroup(GroupIndex(id)));
            }
            Command::UseNeighbour(link, address) => {
                let asked = self
                    .requester
                    .request(request::use_neighbour(link, address));
                self.counters.neighbour_requests_failed += u64::from(asked.is_err());
            }
            Command::Export(net) => self.export(instance, net),
            Command::Withdraw(net, link) => self.withdraw(net, link),
            Command::Resync => {
                self.kernel.read_again(self.clock.now().monotonic);
            }
        }
    }

    fn export(&mut self, index: InstanceIndex, net: Announcement) {
        let Some(instance) = self.instances.get(&index) else {
            return;
        };
        let tun = &instance.tun;
        match self.requester.request(request::export(net, tun.index())) {
            Ok(()) => debug!(%net, device = tun.name(), "the kernel has a subscriber prefix"),
            Err(error) => {
                warn!(
                    %net, device = tun.name(), %error,
                    "cannot announce a subscriber prefix: retrying in {} s", AGAIN.as_secs()
                );
                self.compare_again();
            }
        }
    }

    fn withdraw(&mut self, net: Announcement, link: u32) {
        match self.requester.request(request::withdraw(net, link)) {
            Ok(()) => debug!(%net, "the kernel no longer has a subscriber prefix"),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => {
                warn!(%net, %error, "cannot withdraw a subscriber prefix: retrying in {} s", AGAIN.as_secs());
                self.compare_again();
            }
        }
    }

    /// Schedules a reading after the kernel rejected a request. It compares the tables with the desired state.
    fn compare_again(&mut self) {
        self.kernel.read_again(self.clock.now().monotonic + AGAIN);
    }

    /// Passes commands to the worker in order, until its queue is full.
    pub(super) fn flush(&mut self) {
        while let Some(command) = self.backlog.pop_front() {
            if let Err(Busy) = self.tell_worker(&command) {
                self.backlog.push_front(command);
                return;
            }
        }
    }

    fn tell_worker(&mut self, command: &ForWorker) -> Result<(), Busy> {
        let controller = &mut self.controller;
        match command {
            ForWorker::Move(aggregate) => self.begin_move(aggregate),
            ForWorker::Session(WorkerCommand::Set(entry)) => controller.set_session(entry.clone()),
            ForWorker::Session(WorkerCommand::Remove(index)) => controller.remove_session(*index),
            ForWorker::Session(WorkerCommand::Read(index)) => controller.read_usage(*index),
            ForWorker::Session(WorkerCommand::Forget(index)) => {
                controller.forget_place(*index);
                Ok(())
            }
            ForWorker::SetRoute(instance, prefix, to) => {
                controller.set_route(*instance, *prefix, *to)
            }
            ForWorker::RemoveRoute(instance, prefix) => controller.remove_route(*instance, *prefix),
            ForWorker::SetAdjacency(index, Some(to)) => controller.set_adjacency(*index, *to),
            ForWorker::SetAdjacency(index, None) => controller.remove_adjacency(*index),
            ForWorker::SetGroup(index, members) => {
                let set = controller.set_group(*index, members);
                set.expect("the dataplane has room for all groups and their members");
                Ok(())
            }
            ForWorker::RemoveGroup(index) => {
                let set = controller.remove_group(*index);
                set.expect("the dataplane has room for all groups");
                Ok(())
            }
            ForWorker::ReadPolicy(index, direction) => controller.read_policy(*index, *direction),
            ForWorker::ReadQueues(worker, port, from, room) => {
                controller.read_queues(*worker, *port, (*from, *room))
            }
            ForWorker::WatchRules(index, direction, hits) => {
                controller.watch_rules(*index, *direction, hits.clone())
            }
            ForWorker::Sample(index, rate) => controller.sample(*index, *rate),
            ForWorker::Inspect(part) => controller.inspect(*part),
            ForWorker::RemoveStrayId(place) => controller.remove_stray_id(*place),
            ForWorker::RemoveStrayQueues(place) => controller.remove_stray_queues(*place),
            ForWorker::RemoveHostRoute(instance, net) => {
                controller.remove_host_route(*instance, *net)
            }
        }
    }

    /// Withdraws the announcements on a clean exit, because nobody forwards any more. After a crash they stay for the next
    /// process. TAPs and TUNs stay in either case.
    pub(super) fn shut_down(&mut self) {
        let announced = self.instances.values().flat_map(|instance| {
            let link = instance.tun.index();
            instance.fib.nets().map(move |net| (net, link))
        });
        let announced: Vec<_> = announced.collect();
        for (net, link) in announced {
            self.withdraw(net, link);
        }
        let sessions = self.engine.sessions();
        info!(
            sessions,
            "user plane stops; TAPs and TUNs stay, subscriber prefixes are withdrawn"
        );
    }
}
