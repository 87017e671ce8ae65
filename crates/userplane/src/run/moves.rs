//! Moves of aggregates from worker to worker, which an operator has asked for.

use std::ops::RangeInclusive;

use dataplane::{MOST_MOVED, PortIndex};
use mi::{Answer, MoveAggregateRequest, Response};
use northbound::{MoveAggregateResponse, Refusal};
use tokio::sync::oneshot;
use tracing::info;

use super::{Busy, ForWorker, UserPlane};

/// VLANs of a port that are to be one worker's.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    port: PortIndex,
    vlans: Vec<RangeInclusive<u16>>,
    worker: u16,
}

/// A move that is asked for or under way.
pub(super) struct Moving {
    reply: oneshot::Sender<Answer>,
    /// What will have moved. `None`: commands that were given before are not done.
    moved: Option<MoveAggregateResponse>,
}

impl UserPlane {
    /// Moves an aggregate. The answer comes at the end.
    pub(super) fn move_aggregate(
        &mut self,
        request: &MoveAggregateRequest,
        reply: oneshot::Sender<Answer>,
    ) {
        match self.find_aggregate(request) {
            Ok(aggregate) => {
                self.moving = Some(Moving { reply, moved: None });
                self.for_worker(ForWorker::Move(aggregate));
            }
            Err(refusal) => {
                let _ = reply.send(Err(refusal)); // the caller may have gone away
            }
        }
    }

    fn find_aggregate(&self, request: &MoveAggregateRequest) -> Result<Aggregate, Refusal> {
        if self.moving.is_some() || self.check.is_some() {
            let why = "another move or a resource audit is under way: try again when it is done";
            return Err(Refusal::Busy(why.into()));
        }
        let MoveAggregateRequest {
            port: name,
            segment,
            s_tag,
            worker,
        } = request;
        let port = self.ports.get(name);
        let found = port.and_then(|port| Some((port.index, port.vlans_of(segment)?)));
        let Some((port, mut vlans)) = found else {
            return Err(Refusal::NotFound(format!(
                "port `{name}` has no access segment `{segment}`: `sluice show qos aggregates` shows those with queues"
            )));
        };
        if let Some(vlan) = s_tag {
            let vlan = u16::try_from(*vlan).unwrap_or(u16::MAX);
            if !vlans.iter().any(|range| range.contains(&vlan)) {
                return Err(Refusal::NotFound(format!(
                    "access segment `{segment}` of port `{name}` has no VLAN {vlan}"
                )));
            }
            vlans = vec![vlan..=vlan];
        }
        let workers = self.controller.workers().count();
        let worker = usize::try_from(*worker).unwrap_or(usize::MAX);
        if worker >= workers {
            return Err(Refusal::NotFound(format!(
                "there is no worker {worker}: this user plane has {workers}, from 0 on (`sluice show workers`)"
            )));
        }
        let aggregate = Aggregate {
            port,
            vlans,
            worker: worker as u16,
        };
        match self.sessions_to_move(&aggregate).len() {
            0..=MOST_MOVED => Ok(aggregate),
            sessions => Err(Refusal::Busy(format!(
                "{sessions} sessions are too many for one move, which takes {MOST_MOVED}: move its VLANs one by one"
            ))),
        }
    }

    fn sessions_to_move(&self, aggregate: &Aggregate) -> Vec<dataplane::SessionIndex> {
        let Aggregate {
            port,
            vlans,
            worker,
        } = aggregate;
        self.engine.to_move(*port, vlans, *worker)
    }

    /// Begins a move, behind all commands that were given before.
    pub(super) fn begin_move(&mut self, aggregate: &Aggregate) -> Result<(), Busy> {
        let mut ports = self.ports.iter();
        let Some((name, _)) = ports.find(|(_, port)| port.index == aggregate.port) else {
            if let Some(Moving { reply, .. }) = self.moving.take() {
                let gone = Refusal::NotFound("the port was closed meanwhile".into());
                let _ = reply.send(Err(gone)); // the caller may have gone away
            }
            return Ok(());
        };
        let sessions = self.sessions_to_move(aggregate);
        if !self.controller.takes_move(sessions.len()) {
            return Err(Busy);
        }
        let (ports, returning) = (&self.ports, &self.off_ports);
        let is_there = |port: &str| ports.contains_key(port) || returning.contains_key(port);
        self.moved.retain(is_there);
        self.moved.note(name, &aggregate.vlans, aggregate.worker);
        if let Some(moving) = &mut self.moving {
            let (port, worker) = (aggregate.port, aggregate.worker);
            let split = self.engine.split_by_move(port, &aggregate.vlans, worker);
            moving.moved = Some(MoveAggregateResponse {
                sessions: sessions.len() as u32,
                split_subscribers: split as u32,
            });
        }
        let Aggregate {
            port,
            vlans,
            worker,
        } = aggregate.clone();
        let relocation = self.engine.relocate(port, vlans, worker, sessions);
        let begun = self.controller.relocate(relocation);
        begun.expect("there is room, and the port is there");
        Ok(())
    }

    /// Answers when the move is done.
    pub(super) fn end_move(&mut self) {
        if self.controller.is_moving() {
            return;
        }
        let is_done = |moving: &mut Moving| moving.moved.is_some();
        if let Some(Moving { reply, moved }) = self.moving.take_if(is_done) {
            let moved = moved.unwrap_or_default();
            let (sessions, split_subscribers) = (moved.sessions, moved.split_subscribers);
            info!(
                sessions,
                split_subscribers, "an aggregate has moved to another worker"
            );
            self.moved.keep(move |written| {
                let answer = match written {
                    Ok(()) => Ok(Response::Moved(moved)),
                    Err(error) => Err(Refusal::Failed(format!(
                        "the aggregate has moved, but that cannot be written to the disk ({error}): after a restart of the user plane it is \
                         where it was before"
                    ))),
                };
                let _ = reply.send(answer); // the caller may have gone away
            });
        }
    }
}
