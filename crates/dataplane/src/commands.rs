//! Commands, applied to the tables between bursts.
use crate::api::*;
use crate::compiled::RuleHits;
use crate::graph::{Source, Tables};
use crate::inspect::{self, PIECE};
use crate::message::Command;
use crate::routes::Admitted;
use crate::tables::interfaces::Interface;
use crate::tables::sessions::Sources;
use crate::worker::Worker;
use policy::{Direction, PrioritySource};
use std::sync::Arc;

/// Applies a command. It has at most one answer, for which there is room.
pub(crate) fn apply(worker: &mut Worker, command: Command) {
    let answer = match command {
        Command::SetSession(entry, sources, admitted) => {
            set_session(worker, entry, sources, admitted)
        }
        Command::Refuse(index, reason) => {
            remove_session(worker, index);
            Some(Event::SessionRefused { index, reason })
        }
        Command::Tell(event) => Some(event),
        Command::RemoveSession(index) => Some(remove_session(worker, index)),
        Command::ReadUsage(index) => {
            let usage = worker.tables.sessions.usage(index);
            Some(Event::Usage {
                index,
                usage: usage.unwrap_or_default(),
                removed: usage.is_none(),
            })
        }
        Command::ReadPolicy(index, direction) => Some(Event::PolicyState {
            index,
            direction,
            state: policy_state(worker, index, direction).map(Box::new),
        }),
        Command::ReadQueues(port, from, mut parts) => {
            let (queues, mut all) = (&mut worker.tables.queues, 0);
            let next = queues.read(port, from, (&mut parts, &mut all));
            Some(Event::Queues { next, parts, all })
        }
        Command::WatchRules(index, direction, hits) => {
            watch_rules(worker, (index, direction), hits);
            None
        }
        Command::Sample(index, rate) => {
            let tables = &mut worker.tables;
            let room = rate.is_none_or(|rate| tables.samples.begin(index, rate));
            if !tables.sessions.sample(index, rate.is_some() && room) || rate.is_none() {
                tables.samples.end(index);
            }
            None
        }
        Command::SetAdjacency(index, to) => set_adjacency(worker, index, to),
        Command::SetSegmentRates(port, rates) => {
            worker.tables.queues.set_segment_rates(port, rates);
            None
        }
        Command::SetEgressRate(port, rate) => {
            worker.tables.queues.set_rate(port, rate);
            None
        }
        Command::SetPuntLimits(limits) => {
            worker.punter.set(&limits);
            None
        }
        Command::SetUntrusted(vlans) => {
            worker.punter.set_untrusted(vlans);
            None
        }
        Command::SetIpv4Options(options) => {
            worker.tables.ipv4_options = options;
            None
        }
        Command::SetPolicy(index, policy) => {
            if let Some(compiled) = &policy {
                worker.tables.queues.change_policy(index, compiled);
            }
            // the controller has it as well, so that it is not freed here
            worker.tables.policies.set(index, policy);
            None
        }
        Command::RemovePort(port) => {
            worker.release_others(port);
            remove_port(worker, port);
            None
        }
        Command::Hold(port, owners) => {
            worker.hold(port, owners);
            None
        }
        Command::SetOwners(port, owners, keeps_taken) => {
            (worker.tables.sessions).set_owners(port, Some(owners), keeps_taken);
            None
        }
        Command::Fence(unqueued) => {
            worker.begin_fence(unqueued);
            None
        }
        Command::Release(transfer) => {
            worker.release(transfer);
            None
        }
        Command::Adopt(transfer) => {
            worker.adopt(transfer);
            None
        }
        Command::Unhold(port, owners) => {
            worker.unhold(port, owners);
            None
        }
        Command::EndMove => {
            worker.tables.sessions.forget_owners_before();
            None
        }
        Command::Inspect(part, found) => {
            let piece = inspect::inspect(worker, part, found);
            // one is under way at a time
            worker.pieces.push(piece).expect("room for one piece");
            None
        }
        Command::RemoveStrayId(place) => {
            let place = worker.tables.sessions.shard.place(place);
            worker.tables.sessions.remove_stray(place);
            None
        }
        Command::RemoveStrayQueues(place) => {
            let place = worker.tables.sessions.shard.place(place);
            worker.tables.queues.remove_stray(place, &worker.shared);
            None
        }
        other => {
            ports(worker, other);
            None
        }
    };
    if let Some(event) = answer {
        tell(worker, event);
    }
}

/// What the policy of a session has done, and what waits for it.
fn policy_state(worker: &Worker, index: SessionIndex, direction: Direction) -> Option<PolicyState> {
    let Tables {
        sessions,
        policies,
        queues,
        ..
    } = &worker.tables;
    let state = sessions.policy_state(index, direction, policies)?;
    let place = sessions.shard.place(index.0) as usize;
    let queues = match direction {
        Direction::Up => None,
        Direction::Down => queues.state(place, worker.tables.now),
    };
    Some(PolicyState { queues, ..state })
}

/// Counts the hits of rules by the packets of a session, or ends that; the controller has the counters, too.
pub(crate) fn watch_rules(
    worker: &mut Worker,
    (index, direction): (SessionIndex, Direction),
    hits: Option<Arc<RuleHits>>,
) {
    let Tables {
        sessions, policies, ..
    } = &mut worker.tables;
    let line = sessions.policy(index, direction);
    let hits = hits.filter(|_| line.is_some());
    let is_watched = policies.watches.set((index, direction), hits);
    if let Some(line) = line {
        line.is_watched = is_watched;
    }
}

pub(crate) fn tell(worker: &mut Worker, event: Event) {
    let told = worker.tables.events.push(event);
    told.expect("room was found before");
}

/// Commands about ports, which the control thread has checked.
fn ports(worker: &mut Worker, command: Command) {
    let Tables {
        interfaces,
        adjacencies,
        sessions,
        ..
    } = &mut worker.tables;
    match command {
        Command::AddPort(port, vlans) => {
            match port.source {
                Source::Core { instance, .. } => {
                    let interface = Interface {
                        port: port.index,
                        own: port.own,
                        mtu: port.mtu,
                        vlan: 0,
                        instance: InstanceIndex(instance),
                        source_check: SourceCheck::Off,
                        priority_source: PrioritySource::Fixed,
                    };
                    interfaces.add_port(interface, vlans);
                }
                _ => sessions.set_segments(port.index, Some(vlans)),
            }
            worker.ports.push(port);
        }
        Command::SetSegments(index, vlans) => {
            sessions.set_segments(index, Some(vlans));
            worker.sweep = Some(Sweep::default());
        }
        Command::AddSubinterface(index, part) => interfaces.add_subinterface(index, part),
        Command::RemoveSubinterface(index) => {
            interfaces.remove(index);
            adjacencies.forget(index);
        }
        Command::SetMtu(index, mtu) => {
            interfaces.set_mtu(index, mtu);
            adjacencies.set_mtu(index, mtu);
        }
        Command::SetSourceCheck(index, check) => interfaces.set_source_check(index, check),
        Command::SetPrioritySource(index, source) => {
            interfaces.set_priority_source(index, source);
            adjacencies.set_priority_source(index, source);
        }
        _ => {}
    }
}

fn remove_port(worker: &mut Worker, index: PortIndex) {
    worker.tables.interfaces.remove(index);
    worker.tables.adjacencies.forget(index);
    worker.tables.sessions.set_segments(index, None);
    let leaving = worker.ports.iter_mut().find(|p| p.index == index);
    leaving.expect("the port is there").polled = false;
    worker.sweep = Some(Sweep {
        removing: Some(index),
        ..Sweep::default()
    });
}

/// A search for sessions whose port or VLAN was taken away, a little at a time: there may be very many. Packets from their
/// subscribers find nobody from the start; packets to them are sent until they are found.
#[derive(Default)]
pub(crate) struct Sweep {
    /// The place to go on at.
    next: u32,
    /// The port whose queue is handed back at the end.
    removing: Option<PortIndex>,
}

/// Goes on with the search. It has at most one event, for which there is room.
pub(crate) fn sweep(worker: &mut Worker) {
    let Some(mut sweep) = worker.sweep.take() else {
        return;
    };
    let sessions = &worker.tables.sessions;
    if let Some(index) = sessions.misplaced(sweep.next, PIECE as u32) {
        let place = sessions.shard.place(index.0);
        let gone = remove_session(worker, index);
        tell(worker, gone);
        is_gone(worker, index, worker.serials[place as usize]);
        sweep.next = place + 1;
    } else {
        sweep.next += PIECE as u32;
    }
    if (sweep.next as usize) < worker.tables.sessions.places() {
        worker.sweep = Some(sweep);
        return;
    }
    let leaving = worker.ports.iter();
    let mut leaving = leaving.map(|port| Some(port.index));
    if let Some(place) = leaving.position(|index| index == sweep.removing) {
        let port = worker.ports.swap_remove(place);
        worker.tables.queues.remove_port(port.index, &worker.shared);
        let handed = worker.removed.push((port.index, port.queue));
        handed.expect("room for every port");
    }
}

/// Adds or changes a session. One that is refused is not there afterwards, even if it was before: what its subscriber
/// sends must not be taken for what it was.
fn set_session(
    worker: &mut Worker,
    entry: SessionEntry,
    sources: Sources,
    admitted: Admitted,
) -> Option<Event> {
    let (index, port) = (entry.index, entry.port);
    match worker.tables.sessions.check(&entry) {
        Ok(()) => {
            (worker.tables.sessions).set(entry, sources, admitted.generation);
            let place = worker.tables.sessions.shard.place(index.0) as usize;
            set_serial(worker, place, admitted.serial);
            let queues = &mut worker.tables.queues;
            queues.follow(place, Some(port), &worker.shared);
            if queues.has(place) {
                // what waits must not go on at the rate of before until another packet comes
                worker.tables.queues_of(index, place);
            }
            None
        }
        Err(reason) => {
            remove_session(worker, index);
            is_gone(worker, index, admitted.serial);
            Some(Event::SessionRefused { index, reason })
        }
    }
}

/// Notes which of the sessions that had a place has it now.
pub(crate) fn set_serial(worker: &mut Worker, place: usize, serial: u32) {
    if worker.serials.len() <= place {
        worker.serials.resize(place + 1, 0);
    }
    worker.serials[place] = serial;
}

/// Lets the control thread know that a session is not there, though that was not its wish.
pub(crate) fn is_gone(worker: &mut Worker, index: SessionIndex, serial: u32) {
    let told = worker.gone.push((index, serial));
    told.expect("room was found before");
}

fn remove_session(worker: &mut Worker, index: SessionIndex) -> Event {
    let removed = worker.tables.sessions.remove(index);
    if removed.is_some() {
        worker.tables.samples.end(index);
        let place = worker.tables.sessions.shard.place(index.0) as usize;
        (worker.tables.queues).follow(place, None, &worker.shared);
    }
    Event::Usage {
        index,
        usage: removed.map(|(_, usage)| usage).unwrap_or_default(),
        removed: true,
    }
}

fn set_adjacency(
    worker: &mut Worker,
    index: AdjacencyIndex,
    to: Option<Adjacency>,
) -> Option<Event> {
    let Tables {
        interfaces,
        adjacencies,
        ..
    } = &mut worker.tables;
    let set = match to {
        None => adjacencies.set(index, None),
        Some(to) => interfaces
            .get(to.port)
            .is_some_and(|interface| adjacencies.set(index, Some((to, interface)))),
    };
    (!set).then_some(Event::AdjacencyRefused(index))
}
