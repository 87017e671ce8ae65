//! Moves of VLANs from worker to worker, as the control thread conducts them (`docs/decisions/0023-lanes.md`).
//!
//! One is under way at a time. Each step begins when all workers have done the one before. Meanwhile commands about sessions have to wait.
use crate::api::*;
use crate::controller::Controller;
use crate::inspect::Held;
use crate::message::Command;
use crate::moves::{TRANSFER, Transfer, Way};
use crate::punt::PuntKind;
use crate::shard::{BY_LANE, Owners};
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Places of sessions that are not where their indexes say, since they were moved to another worker.
#[derive(Default)]
pub(crate) struct Aliases {
    places: HashMap<SessionIndex, SessionIndex>,
    names: HashMap<SessionIndex, SessionIndex>,
}

impl Aliases {
    /// Where a session is.
    pub fn place(&self, name: SessionIndex) -> SessionIndex {
        self.places.get(&name).copied().unwrap_or(name)
    }

    /// The index of the session at a place.
    pub fn name(&self, place: SessionIndex) -> SessionIndex {
        self.names.get(&place).copied().unwrap_or(place)
    }

    fn set(&mut self, name: SessionIndex, place: SessionIndex) {
        self.forget(name);
        if name != place {
            self.places.insert(name, place);
            self.names.insert(place, name);
        }
    }

    fn forget(&mut self, name: SessionIndex) {
        if let Some(place) = self.places.remove(&name) {
            self.names.remove(&place);
        }
    }

    /// The event as the control thread knows the session.
    pub fn rename_event(&self, mut event: Event) -> Event {
        if let Event::Usage { index, .. }
        | Event::PolicyState { index, .. }
        | Event::SessionRefused { index, .. } = &mut event
        {
            *index = self.name(*index);
        }
        event
    }

    /// The same for what is punted.
    pub fn rename_punt(&self, kind: PuntKind) -> PuntKind {
        match kind {
            PuntKind::Session(index) => PuntKind::Session(self.name(index)),
            PuntKind::Echo(index) => PuntKind::Echo(self.name(index)),
            PuntKind::Redirect(index) => PuntKind::Redirect(self.name(index)),
            PuntKind::SampledUp(index) => PuntKind::SampledUp(self.name(index)),
            PuntKind::SampledDown(index) => PuntKind::SampledDown(self.name(index)),
            other => other,
        }
    }

    /// The same for what a worker holds.
    pub fn rename(&self, held: &mut Held) {
        match held {
            Held::Session { entry, .. } => entry.index = self.name(entry.index),
            Held::StrayId { index, .. } | Held::HostRoute(_, _, index) => {
                *index = self.name(*index);
            }
            Held::Queues { session, .. } => *session = session.map(|index| self.name(index)),
            _ => {}
        }
    }
}

/// Portions of a worker's sessions that have room for all frames that wait there.
const FEW_PORTIONS: usize = 64;

/// Maximum number of sessions of one move.
pub const MOST_MOVED: usize = 200_000;

/// Sessions of VLANs that move to one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The access port.
    pub port: PortIndex,
    /// Its (outer) VLAN ids; untagged frames count as VLAN 0.
    pub vlans: Vec<RangeInclusive<u16>>,
    /// The worker that has all their sessions afterwards, also those that come later.
    pub worker: u16,
    /// All sessions of these VLANs that are at other workers, with places for them: free indexes of the worker.
    pub sessions: Vec<(SessionIndex, SessionIndex)>,
}

/// A move that is under way.
pub(crate) struct Move {
    port: PortIndex,
    worker: u16,
    /// Whose the VLANs are at the end.
    owners: Arc<Owners>,
    sessions: Vec<(SessionIndex, SessionIndex)>,
    /// Room for commands that a step may need at a worker.
    commands: usize,
    step: Step,
    /// How many commands each worker has applied at the end of the step.
    due: Box<[u64]>,
}

/// What all workers are doing.
enum Step {
    /// The new worker begins to hold.
    Hold,
    /// The others begin to hand over to it. Then sessions leave their workers, in portions.
    Turn(Vec<(u16, Box<Transfer>)>),
    /// So many portions are under way.
    Transfer(usize),
    /// What the former workers have handed over leaves before what is held.
    Pass,
    /// What is held goes on.
    End,
}

impl Controller {
    /// The worker of sessions of a VLAN with a PPPoE session id.
    pub(crate) fn worker(&self, port: PortIndex, outer: u16, id: u16) -> u16 {
        let owner = self
            .owners
            .get(&port)
            .map(|owners| owners[usize::from(outer) & 0xfff]);
        match owner.filter(|owner| *owner != BY_LANE) {
            Some(owner) => owner.into(),
            None => self.lanes.worker(id).into(),
        }
    }

    /// The worker that a VLAN of an access port was moved to; `None`: the lanes of its PPPoE session ids say it.
    pub fn owner(&self, port: PortIndex, outer: u16) -> Option<u16> {
        let owner = *self.owners.get(&port)?.get(usize::from(outer))?;
        (owner != BY_LANE).then_some(owner.into())
    }

    /// Where a session is: its index, or the place that it was moved to last.
    pub fn place_of(&self, index: SessionIndex) -> SessionIndex {
        self.aliases.place(index)
    }

    /// The worker that has the session of an index.
    pub fn worker_of(&self, index: SessionIndex) -> u16 {
        self.shard.of(self.aliases.place(index).0)
    }

    /// The session of an index is gone, and the next one with the index is where the index says. The place that it was moved to is free.
    pub fn forget_place(&mut self, index: SessionIndex) {
        self.aliases.forget(index);
    }

    /// Says which workers have VLANs of an access port that has no sessions: each (outer) VLAN id with its worker; untagged frames count as
    /// VLAN 0. Of a port that has some they are [moved](Controller::relocate).
    ///
    /// # Errors
    /// There is no such port or worker, or the workers do not take commands now.
    pub fn set_owners(
        &mut self,
        port: PortIndex,
        workers: impl IntoIterator<Item = (u16, u16)>,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.device(port)?;
        let mut owners = [BY_LANE; 4096];
        for (vlan, worker) in workers {
            if worker >= self.shard.workers() {
                return Err(PortError::Unknown(port));
            }
            owners[usize::from(vlan) & 0xfff] = worker as u8;
        }
        let owners = self.kept.keep(owners);
        self.owners.insert(port, owners.clone());
        Ok(self.send_all(|_| Command::SetOwners(port, owners.clone(), false))?)
    }

    /// Moves VLANs to a worker. No packet is lost, but for lack of room, and those of a flow stay in order. Until it is done
    /// ([`Controller::is_moving`]), commands about sessions are refused.
    ///
    /// # Errors
    /// The port is no access port, the worker does not exist, or the workers do not take commands now.
    pub fn relocate(&mut self, relocation: Relocation) -> Result<(), PortError> {
        let Relocation {
            port,
            vlans,
            worker,
            sessions,
        } = relocation;
        if !self.takes_move(sessions.len()) {
            return Err(Busy.into());
        }
        let commands = self.commands_of_move(sessions.len());
        self.ports.device(port)?;
        if worker >= self.shard.workers() {
            return Err(PortError::Unknown(port));
        }
        let mut owners = match self.owners.get(&port) {
            Some(owners) => **owners,
            None => [BY_LANE; 4096],
        };
        let mut held = owners;
        for vlan in vlans.iter().flat_map(|range| range.clone()) {
            owners[usize::from(vlan) & 0xfff] = worker as u8;
            held[usize::from(vlan) & 0xfff] = self.shard.workers() as u8;
        }
        let link = &mut self.links[usize::from(worker)];
        link.send(Command::Hold(port, self.kept.keep(held)))?;
        let owners = self.kept.keep(owners);
        self.owners.insert(port, owners.clone());
        self.moving = Some(Box::new(Move {
            port,
            worker,
            owners,
            sessions,
            commands,
            step: Step::Hold,
            due: self.sent(),
        }));
        Ok(())
    }

    /// Whether a move of so many sessions, at most [`MOST_MOVED`], can begin now.
    pub fn takes_move(&mut self, sessions: usize) -> bool {
        !self.inspecting && self.catch_up() && self.slots() >= self.commands_of_move(sessions)
    }

    /// Room for commands that a step of a move may need at a worker.
    fn commands_of_move(&self, sessions: usize) -> usize {
        sessions.div_ceil(TRANSFER) + 2 * self.links.len() + 4
    }

    /// Whether sessions move.
    pub fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// What was sent to each worker so far.
    fn sent(&self) -> Box<[u64]> {
        self.links.iter().map(|link| link.sent).collect()
    }

    /// Does what is next of a move.
    pub(crate) fn go_on_moving(&mut self) {
        let Some(mut moving) = self.moving.take() else {
            return;
        };
        let mut links = self.links.iter().zip(&moving.due);
        let is_done = links.all(|(link, due)| link.shared.applied.load(Relaxed) >= *due);
        if !is_done || self.slots() < moving.commands {
            self.moving = Some(moving);
            return;
        }
        let next = match core::mem::replace(&mut moving.step, Step::Hold) {
            Step::Hold => Some(self.turn(&mut moving)),
            Step::Turn(transfers) => Some(self.let_go(transfers)),
            Step::Transfer(left) => Some(self.pass_on(&moving, left)),
            Step::Pass => Some(self.end_move(&moving)),
            Step::End => {
                let links = self.links.iter_mut();
                links.for_each(|link| while link.transfers.pop().is_ok() {});
                None
            }
        };
        self.moving = next.map(|step| {
            moving.step = step;
            moving.due = self.sent();
            moving
        });
    }

    /// Packets go to the new worker from now on.
    fn turn(&mut self, moving: &mut Move) -> Step {
        let mut ways: BTreeMap<u16, Vec<Way>> = BTreeMap::new();
        for (name, to) in core::mem::take(&mut moving.sessions) {
            let from = self.aliases.place(name);
            self.aliases.set(name, to);
            if let Some(admitted) = self.routes.relocate(from, to) {
                let way = Way { from, to, admitted };
                ways.entry(self.shard.of(from.0)).or_default().push(way);
            }
        }
        // The routes lead to the new worker: whoever has this command sends nothing to the former ones any more.
        self.send_all_but(moving.worker, || {
            Command::SetOwners(moving.port, moving.owners.clone(), true)
        });
        // The new worker as well, which may be at a burst whose destinations it has looked up before.
        self.send_to(moving.worker, Command::Fence(false));
        let most = self.most_waiting;
        let portions = ways.into_iter().flat_map(|(from, ways)| {
            let portions: Vec<_> = ways.chunks(TRANSFER).map(<[Way]>::to_vec).collect();
            let frames = room_for_frames(most, portions.len());
            let transfers = portions.into_iter();
            transfers.map(move |ways| (from, Transfer::new(ways, frames)))
        });
        Step::Turn(portions.collect())
    }

    /// The former workers do what is on its way to them, and let go of the sessions.
    fn let_go(&mut self, transfers: Vec<(u16, Box<Transfer>)>) -> Step {
        let (all, mut fenced) = (transfers.len(), None);
        for (from, transfer) in transfers {
            if fenced != Some(from) {
                self.send_to(from, Command::Fence(true));
                fenced = Some(from);
            }
            self.send_to(from, Command::Release(transfer));
        }
        Step::Transfer(all)
    }

    /// Passes sessions on that have left their workers.
    fn pass_on(&mut self, moving: &Move, mut left: usize) -> Step {
        for link in 0..self.links.len() {
            while let Ok(transfer) = self.links[link].transfers.pop() {
                self.send_to(moving.worker, Command::Adopt(transfer));
                left -= 1;
            }
        }
        if left > 0 {
            return Step::Transfer(left);
        }
        for worker in 0..self.shard.workers() {
            self.send_to(worker, Command::Fence(false));
        }
        Step::Pass
    }

    fn end_move(&mut self, moving: &Move) -> Step {
        let owners = moving.owners.clone();
        self.send_to(moving.worker, Command::Unhold(moving.port, owners));
        self.send_all_but(moving.worker, || Command::EndMove);
        Step::End
    }

    fn send_all_but(&mut self, but: u16, command: impl Fn() -> Command) {
        for worker in (0..self.shard.workers()).filter(|worker| *worker != but) {
            self.send_to(worker, command());
        }
    }

    /// Sends a command of a move, for which there was room when the step began.
    fn send_to(&mut self, worker: u16, command: Command) {
        let sent = self.links[usize::from(worker)].send(command);
        sent.expect("room was found before the step");
    }
}

/// Room for frames in each of so many portions: for all that may wait at the worker, as long as that takes little memory. A worker that finds more
/// in one portion of very many makes room itself.
fn room_for_frames(most: usize, portions: usize) -> usize {
    match portions <= FEW_PORTIONS {
        true => most,
        false => most * FEW_PORTIONS / portions,
    }
}

/// Owners that workers may have: the last to let go of them frees them, and that is never a worker.
#[derive(Default)]
pub(crate) struct KeptOwners(Vec<Arc<Owners>>);

impl KeptOwners {
    fn keep(&mut self, owners: Owners) -> Arc<Owners> {
        self.0.retain(|owners| Arc::strong_count(owners) > 1);
        let owners = Arc::new(owners);
        self.0.push(owners.clone());
        owners
    }
}
