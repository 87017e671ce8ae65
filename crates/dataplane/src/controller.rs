//! The control thread's end.
use crate::api::*;
use crate::counters::{self, Shared};
use crate::drops::DropReason;
use crate::graph::Source;
use crate::inspect::{Held, PIECE, Part, Piece};
use crate::message::Command;
use crate::ports::Ports;
use crate::punt;
use crate::routes::{Routes, Write};
use crate::worker::WorkerPort;
use dpdk::{Consumer, Pool, Port, Producer};
use ipnet::IpNet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;
use wire::eth::MacAddr;

/// The control thread's end of the data plane: commands and packets in, events and punts out.
///
/// Commands are applied in their order, between bursts, and before any packet that is injected after them. Routes and groups are
/// no commands to the worker: they are written here and count at once, but after the adjacencies that were set before them
/// ([`Controller::catch_up`]).
pub struct Controller {
    pub(crate) commands: rtrb::Producer<Command>,
    pub(crate) events: rtrb::Consumer<Event>,
    pub(crate) pieces: rtrb::Consumer<Piece>,
    /// A piece was asked for and has not been taken.
    pub(crate) inspecting: bool,
    pub(crate) punts: Consumer,
    pub(crate) injects: Producer,
    pub(crate) pool: Pool,
    pub(crate) shared: Arc<Shared>,
    pub(crate) ports: Ports,
    pub(crate) routes: Routes,
    /// Sessions that the worker does not have though we did not say so.
    pub(crate) gone: rtrb::Consumer<(SessionIndex, u32)>,
    /// Commands that were sent, and how many of them have to be applied before routes are written again.
    pub(crate) sent: u64,
    pub(crate) after: u64,
    /// The piece that was asked for, if it is one of routes.
    pub(crate) asked: Option<(InstanceIndex, Option<IpNet>)>,
    /// Ports that the worker lets go of.
    pub(crate) removed: rtrb::Consumer<(PortIndex, Port)>,
    pub(crate) limits: Limits,
    /// TSC cycles in a second.
    pub(crate) second: u64,
}

impl Controller {
    fn send(&mut self, command: Command) -> Result<(), Busy> {
        self.commands.push(command).map_err(|_| Busy)?;
        self.sent += 1;
        Ok(())
    }

    /// How many commands are taken now, of whatever kind.
    pub fn free_commands(&mut self) -> usize {
        self.catch_up();
        self.commands.slots().min(self.routes.room())
    }

    /// Writes the routes and groups that waited for adjacencies before them; true if none does any more. To be called as long
    /// as it says false; [`Controller::poll_event`] does it too.
    pub fn catch_up(&mut self) -> bool {
        while let Ok((index, serial)) = self.gone.pop() {
            self.routes.gone(index, serial);
        }
        while let Some(write) = self.routes.next() {
            let waits = match write {
                Write::Adjacency(..) => false,
                Write::Route(..) | Write::Group(..) => {
                    self.shared.applied.load(Relaxed) < self.after
                }
            };
            // There is room for what making it may leave to be sent.
            if waits || self.room().is_err() {
                return false;
            }
            let left = self.routes.make();
            let known = matches!(left, Some(Command::SetAdjacency(_, Some(_))));
            if left.is_some_and(|command| self.send(command).is_err()) {
                return false;
            }
            if known {
                self.after = self.sent;
            }
        }
        true
    }

    fn write(&mut self, write: Write) -> Result<(), Busy> {
        self.routes.push(write)?;
        self.catch_up();
        Ok(())
    }

    /// Adds a port in a place of the caller's choice. On an error the port is dropped, which closes it.
    pub fn add_port(&mut self, index: PortIndex, config: PortConfig) -> Result<(), PortError> {
        self.settled()?;
        let vlans = self.ports.add(index, &config)?;
        let own = config.mac.unwrap_or(MacAddr(config.port.mac()));
        let port = WorkerPort {
            index,
            source: Source::of(index, &config.role, own),
            own,
            mtu: config.port.mtu(),
            port: config.port,
            polled: true,
        };
        Ok(self.send(Command::AddPort(port, vlans))?)
    }

    /// Changes the segments of an access port. Sessions whose VLAN is not in the segment any more are removed;
    /// [`Event::Usage`] has their last counters.
    pub fn set_segments(&mut self, index: PortIndex, to: &[Segment]) -> Result<(), PortError> {
        self.settled()?;
        let vlans = self.ports.set_segments(index, to)?;
        Ok(self.send(Command::SetSegments(index, vlans))?)
    }

    /// Removes a port; [`Controller::poll_removed`] hands it back. Its sessions are removed with it, and [`Event::Usage`]
    /// has their last counters; its neighbours are forgotten. Subinterfaces have to be removed before.
    pub fn remove_port(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.settled()?;
        self.ports.remove(index)?;
        Ok(self.send(Command::RemovePort(index))?)
    }

    /// A port that was removed, when nothing is on its way to it any more; its place is free then.
    pub fn poll_removed(&mut self) -> Option<RemovedPort> {
        let (index, port) = self.removed.pop().ok()?;
        let counted = &self.shared.ports[index.0 as usize];
        let counters = self.ports.removed(index, counted.snapshot());
        counted.reset();
        Some(RemovedPort {
            index,
            port,
            counters,
        })
    }

    /// Adds a subinterface in a place of the caller's choice.
    pub fn add_subinterface(
        &mut self,
        index: PortIndex,
        part: Subinterface,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.add_part(index, &part)?;
        Ok(self.send(Command::AddSubinterface(index, part))?)
    }

    /// Removes a subinterface; its neighbours are forgotten.
    pub fn remove_subinterface(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.settled()?;
        self.ports.remove_part(index)?;
        Ok(self.send(Command::RemoveSubinterface(index))?)
    }

    /// Changes the largest IP packet that leaves by a core port or subinterface, in octets. The device of a port is told
    /// by [`dpdk::PortHandle::set_mtu`].
    pub fn set_mtu(&mut self, index: PortIndex, mtu: u16) -> Result<(), PortError> {
        self.settled()?;
        self.ports.check_core(index)?;
        Ok(self.send(Command::SetMtu(index, mtu))?)
    }

    /// Whether a command about a port will be taken, which no adjacency's may be behind.
    fn settled(&mut self) -> Result<(), Busy> {
        match self.catch_up() {
            true => self.room(),
            false => Err(Busy),
        }
    }

    /// Whether a command will be taken: what is noted here has to reach the worker.
    fn room(&self) -> Result<(), Busy> {
        match self.commands.slots() {
            0 => Err(Busy),
            _ => Ok(()),
        }
    }

    /// Adds a session, or changes one that has the same index; counters go on. Its host routes are set with it. One that is refused
    /// ([`Event::SessionRefused`]) is not there afterwards.
    pub fn set_session(&mut self, entry: SessionEntry) -> Result<(), Busy> {
        self.room()?;
        self.catch_up();
        self.room()?;
        let index = entry.index;
        match self.routes.admit(&entry) {
            Ok(serial) => self.send(Command::SetSession(entry, serial)),
            Err(reason) => {
                self.routes.withdraw(index);
                self.send(Command::Refuse(index, reason))
            }
        }
    }

    /// Removes a session and its host routes. [`Event::Usage`] with `removed` answers, also for one that is not there.
    pub fn remove_session(&mut self, index: SessionIndex) -> Result<(), Busy> {
        self.room()?;
        self.routes.withdraw(index);
        self.send(Command::RemoveSession(index))
    }

    /// Asks for a session's counters; [`Event::Usage`] answers.
    pub fn read_usage(&mut self, index: SessionIndex) -> Result<(), Busy> {
        self.send(Command::ReadUsage(index))
    }

    /// Begins to show copies of the packets of a session that is there, at most this many ([`PuntKind::SampledUp`],
    /// [`PuntKind::SampledDown`]); without a rate, ends that. It ends with the session, too.
    pub fn sample(&mut self, index: SessionIndex, rate: Option<SampleRate>) -> Result<(), Busy> {
        self.send(Command::Sample(index, rate))
    }

    /// Adds a route or changes where it leads.
    pub fn set_route(
        &mut self,
        instance: InstanceIndex,
        prefix: IpNet,
        to: Destination,
    ) -> Result<(), Busy> {
        self.write(Write::Route(instance, prefix.trunc(), Some(to)))
    }

    /// Removes a route, if there is one.
    pub fn remove_route(&mut self, instance: InstanceIndex, prefix: IpNet) -> Result<(), Busy> {
        self.write(Write::Route(instance, prefix.trunc(), None))
    }

    /// Sets the members of a group, at most [`MAX_MEMBERS`](crate::MAX_MEMBERS); one that is named more than once gets more of
    /// the flows. Only those flows move that must: of a member that goes, and to one that comes.
    pub fn set_group(
        &mut self,
        index: GroupIndex,
        members: &[AdjacencyIndex],
    ) -> Result<(), GroupError> {
        self.routes.check_group(index, members.len())?;
        self.routes.push_group(index, members.to_vec());
        self.catch_up();
        Ok(())
    }

    /// Takes all members from a group; packets to it have no route.
    pub fn remove_group(&mut self, index: GroupIndex) -> Result<(), GroupError> {
        self.set_group(index, &[])
    }

    /// Sets the neighbour that an adjacency stands for.
    pub fn set_adjacency(
        &mut self,
        index: AdjacencyIndex,
        adjacency: Adjacency,
    ) -> Result<(), Busy> {
        self.write(Write::Adjacency(index, Some(adjacency)))
    }

    /// Forgets the neighbour; packets to it are dropped and [`Event::AdjacencyMissing`] asks for it.
    pub fn remove_adjacency(&mut self, index: AdjacencyIndex) -> Result<(), Busy> {
        self.write(Write::Adjacency(index, None))
    }

    /// Asks for a piece of what the worker holds once every command before is applied; one at a time.
    /// [`Controller::poll_piece`] has it.
    pub fn inspect(&mut self, part: Part) -> Result<(), Busy> {
        if self.inspecting || !self.catch_up() {
            return Err(Busy);
        }
        match part {
            Part::Routes(instance, after) => self.asked = Some((instance, after)),
            // the worker need not ask for memory
            part => self.send(Command::Inspect(part, Vec::with_capacity(PIECE)))?,
        }
        self.inspecting = true;
        Ok(())
    }

    /// The piece that was asked for, when it is there.
    pub fn poll_piece(&mut self) -> Option<Piece> {
        let piece = match self.asked.take() {
            Some((instance, after)) => self.routes.piece(instance, after),
            None => self.pieces.pop().ok().map(|piece| self.routed(piece))?,
        };
        self.inspecting = false;
        Some(piece)
    }

    /// A piece of the worker's, with what is known here alone: of sessions, whether their host routes lead to them.
    fn routed(&self, mut piece: Piece) -> Piece {
        for held in &mut piece.found {
            if let Held::Session { entry, whole } = held {
                *whole &= self.routes.leads(entry);
            }
        }
        piece
    }

    /// Empties a place that [`Held::StrayId`](crate::Held::StrayId) named.
    pub fn remove_stray_id(&mut self, place: u32) -> Result<(), Busy> {
        self.send(Command::RemoveStrayId(place))
    }

    /// Removes a host route whose session is not there. One that comes with a session goes with it.
    pub fn remove_host_route(&mut self, instance: InstanceIndex, net: IpNet) -> Result<(), Busy> {
        self.routes.remove_host_route(instance, net);
        Ok(())
    }

    /// Sends a packet of the gateway itself.
    pub fn inject(&mut self, packet: Inject<'_>) -> Result<(), Busy> {
        let tagged = |interface| self.ports.tagged(interface);
        let mbuf = punt::wrap(&self.pool, packet, tagged).ok_or(Busy)?;
        self.injects.send(mbuf).map_err(|_| Busy)?;
        counters::add(&self.shared.injected, 1);
        Ok(())
    }

    /// Shows the punted packets, at most `most` of them, and says how many there were.
    pub fn recv_punts(&mut self, most: usize, mut f: impl FnMut(Punt<'_>)) -> usize {
        for n in 0..most {
            let Some(mbuf) = self.punts.recv() else {
                return n;
            };
            if let Some((kind, port)) = punt::unpack(mbuf.meta()) {
                f(Punt {
                    kind,
                    port,
                    frame: mbuf.data(),
                });
            }
        }
        most
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.catch_up();
        self.events.pop().ok()
    }

    /// Readable when punts or events have come since [`Controller::arm`].
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.shared.wakeup.as_fd()
    }

    /// To be called before sleeping on [`Controller::wakeup`]: clears it and asks the worker to signal what comes.
    /// False if something waits already: then take it instead of sleeping.
    pub fn arm(&mut self) -> bool {
        // The descriptor does not block; that nothing was signalled is no error.
        let _ = self.shared.wakeup.read();
        self.shared.asleep.store(true, SeqCst);
        let idle = self.punts.is_empty()
            && self.events.is_empty()
            && self.pieces.is_empty()
            && self.removed.is_empty()
            && self.asked.is_none()
            && self.routes.next().is_none();
        if !idle {
            self.shared.asleep.store(false, SeqCst);
        }
        idle
    }

    /// The limits that the data plane was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What the tables of routes hold, and what they take.
    pub fn routes(&self) -> crate::fib::Counts {
        self.routes.counts()
    }

    /// The ports' counters, by index.
    pub fn ports(&self) -> Vec<PortCounters> {
        let counted = |index: PortIndex| self.shared.ports[index.0 as usize].snapshot();
        self.ports.counters(counted).collect()
    }

    /// The drop counters, those at 0 too.
    pub fn drops(&self) -> Vec<DropCounter> {
        let count = |&reason: &DropReason| DropCounter {
            reason,
            packets: self.shared.drops[reason as usize].load(Relaxed),
        };
        DropReason::ALL.iter().map(count).collect()
    }

    /// The punt counters.
    pub fn punts(&self) -> PuntCounters {
        self.shared.punts()
    }

    /// Packets that were fragmented, and their fragments.
    pub fn fragments(&self) -> FragmentCounters {
        self.shared.fragments()
    }

    /// The time that the worker spent in rounds in which there was something to do, since its start.
    pub fn busy(&self) -> Duration {
        let cycles = u128::from(self.shared.busy.load(Relaxed));
        let nanoseconds = cycles * 1_000_000_000 / u128::from(self.second);
        Duration::from_nanos(nanoseconds as u64) // 584 years
    }

    /// Packets that were injected.
    pub fn injected(&self) -> u64 {
        self.shared.injected.load(Relaxed)
    }
}
