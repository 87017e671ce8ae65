//! The control thread's end.
use crate::api::*;
use crate::build::INJECTS;
use crate::compiled::{CompiledPolicy, PolicyCompiler, RuleHits};
use crate::counters::{self, Shared, Wake};
use crate::drops::DropReason;
use crate::egress::Egress;
use crate::graph::Source;
use crate::handoff;
use crate::inspect::{Held, PIECE, Part, Piece};
use crate::message::Command;
use crate::moves::Transfer;
use crate::ports::Ports;
use crate::protection::{Offence, Untrusted};
use crate::punt::{self, PuntClass, PuntKind, PuntLimits};
use crate::relocation::{Aliases, KeptOwners, Move};
use crate::routes::{Left, Routes, Write};
use crate::shard::{Owners, Shard};
use crate::tables::sessions::Sources;
use crate::worker::WorkerPort;
use dpdk::{Consumer, Pool, Producer, Queue};
use ipnet::IpNet;
use policy::{Direction, PrioritySource, Rate};
use scheduler::SharedRate;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wire::eth::MacAddr;
use wire::pfcp::Lanes;

/// The control thread's end of the data plane: commands and packets in, events and punts out.
///
/// What concerns a session goes to its worker, what concerns all to each. A worker applies commands in their order, between
/// bursts, and before any packet that is injected after them. Routes and groups are no commands: they are written here and
/// count at once, but after the adjacencies that were set before them ([`Controller::catch_up`]).
pub struct Controller {
    pub(crate) links: Box<[Link]>,
    pub(crate) wake: Arc<Wake>,
    /// That of worker 0.
    pub(crate) shard: Shard,
    pub(crate) lanes: Lanes,
    /// Sessions that were moved to another worker.
    pub(crate) aliases: Aliases,
    /// Workers of VLANs that were moved, by access port.
    pub(crate) owners: BTreeMap<PortIndex, Arc<Owners>>,
    pub(crate) kept: KeptOwners,
    /// Most frames that wait at a worker.
    pub(crate) most_waiting: usize,
    /// The move that is under way.
    pub(crate) moving: Option<Box<Move>>,
    /// Ticks of a second.
    pub(crate) hz: u64,
    /// How often punts were asked for.
    pub(crate) turn: usize,
    /// A piece was asked for and has not been taken.
    pub(crate) inspecting: bool,
    pub(crate) pool: Pool,
    pub(crate) ports: Ports,
    pub(crate) routes: Routes,
    /// Policies that workers may have: the last to let go of one frees it, and that is never a worker.
    pub(crate) policies: Vec<Arc<CompiledPolicy>>,
    /// Counters that workers may have, for the same reason.
    pub(crate) rule_hits: Vec<Arc<RuleHits>>,
    /// The piece that was asked for, if it is one of routes.
    pub(crate) asked: Option<(InstanceIndex, Option<IpNet>)>,
    pub(crate) limits: Limits,
    /// TSC cycles in a second.
    pub(crate) second: u64,
}

/// The way to a worker and back.
pub(crate) struct Link {
    pub commands: rtrb::Producer<Command>,
    pub events: rtrb::Consumer<Event>,
    pub pieces: rtrb::Consumer<Piece>,
    pub punts: Consumer,
    pub injects: Producer,
    /// Sessions that the worker does not have though we did not say so.
    pub gone: rtrb::Consumer<(SessionIndex, u32)>,
    /// Who exceeds a rate.
    pub offences: rtrb::Consumer<Offence>,
    /// Ports that the worker has let go of, and its queues of them.
    pub removed: rtrb::Consumer<(PortIndex, Option<Queue>)>,
    /// Sessions that have left the worker, or have come to it.
    pub transfers: rtrb::Consumer<Box<Transfer>>,
    pub shared: Arc<Shared>,
    /// Commands that were sent, and how many of them have to be applied before routes are written again.
    pub sent: u64,
    pub after: u64,
}

impl Link {
    pub(crate) fn send(&mut self, command: Command) -> Result<(), Busy> {
        self.commands.push(command).map_err(|_| Busy)?;
        self.sent += 1;
        Ok(())
    }

    /// Has the worker applied what has to be before routes are written?
    fn is_ready(&self) -> bool {
        self.shared.applied.load(Relaxed) >= self.after
    }

    fn is_quiet(&self) -> bool {
        self.punts.is_empty()
            && self.events.is_empty()
            && self.pieces.is_empty()
            && self.offences.is_empty()
            && self.removed.is_empty()
            && self.transfers.is_empty()
    }
}

impl Controller {
    /// The worker of a session with this index or PPPoE session id.
    fn link(&mut self, number: u32) -> &mut Link {
        &mut self.links[self.shard.of(number) as usize]
    }

    /// Sends a command to each worker; there is room for it.
    pub(crate) fn send_all(&mut self, mut command: impl FnMut(u16) -> Command) -> Result<(), Busy> {
        self.room()?;
        for (worker, link) in (0..).zip(&mut self.links) {
            link.send(command(worker))?;
        }
        Ok(())
    }

    /// How many commands are taken now, of whatever kind.
    pub fn free_commands(&mut self) -> usize {
        self.catch_up();
        match self.moving.is_some() {
            true => 0,
            false => self.slots().min(self.routes.room()),
        }
    }

    /// How many commands every worker takes.
    pub(crate) fn slots(&self) -> usize {
        let slots = self.links.iter().map(|link| link.commands.slots());
        slots.min().unwrap_or(0)
    }

    /// Writes the routes and groups that waited for adjacencies before them; true if none does any more. To be called as long
    /// as it says false; [`Controller::poll_event`] does it too.
    pub fn catch_up(&mut self) -> bool {
        self.go_on_moving();
        for link in &mut self.links {
            while let Ok((index, serial)) = link.gone.pop() {
                self.routes.gone(index, serial);
                // it may have been told before the session moved
                let now = self.aliases.place(self.aliases.name(index));
                self.routes.gone(now, serial);
            }
        }
        while let Some(write) = self.routes.next() {
            let waits = match write {
                Write::Adjacency(..) => false,
                Write::Route(..) | Write::Group(..) => !self.links.iter().all(Link::is_ready),
            };
            // There is room for what making it may leave to be sent.
            if waits || self.room().is_err() {
                return false;
            }
            let sent = match self.routes.make() {
                Some(Left::Adjacency(index, to)) => {
                    let sent = self.send_all(|_| Command::SetAdjacency(index, to));
                    let known = self.links.iter_mut().filter(|_| to.is_some());
                    known.for_each(|link| link.after = link.sent);
                    sent
                }
                Some(Left::Told(event)) => self.links[0].send(Command::Tell(event)),
                None => Ok(()),
            };
            if sent.is_err() {
                return false;
            }
        }
        self.moving.is_none()
    }

    fn write(&mut self, write: Write) -> Result<(), Busy> {
        self.routes.push(write)?;
        self.catch_up();
        Ok(())
    }

    /// Adds a port in a place of the caller's choice. On an error the port is dropped, which closes it.
    pub fn add_port(&mut self, index: PortIndex, config: PortConfig) -> Result<(), PortError> {
        self.settled()?;
        let own = config.mac.unwrap_or(MacAddr(config.port.mac()));
        let (mtu, source) = (config.port.mtu(), Source::of(index, &config.role, own));
        let (vlans, queues) = (self.ports).add(index, config, self.links.len() as u16)?;
        let with_queue = queues.len() as u16;
        let mut queues = queues.into_iter();
        Ok(self.send_all(|worker| {
            let port = WorkerPort {
                index,
                source,
                own,
                mtu,
                queue: queues.next(),
                egress: Egress::of(worker, with_queue),
                polled: true,
            };
            Command::AddPort(port, vlans.clone())
        })?)
    }

    /// Sets the rate at which packets leave by a port, in octets of the wire (IEEE 802.3: preamble, gap and frame check sequence
    /// included); `None`: as fast as the port takes them. All workers share it.
    pub fn set_egress_rate(
        &mut self,
        index: PortIndex,
        rate: Option<Rate>,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.device(index)?;
        let rate = rate.map(|rate| SharedRate::new(rate, self.links.len() as u16));
        Ok(self.send_all(|_| Command::SetEgressRate(index, rate.clone()))?)
    }

    /// Sets the rates of the segments of an access port. Each worker keeps them for its own sessions: those of a segment or VLAN with a rate
    /// belong to one worker.
    pub fn set_segment_rates(
        &mut self,
        index: PortIndex,
        rates: &[SegmentRates],
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.device(index)?;
        let rates: Arc<[SegmentRates]> = rates.into();
        Ok(self.send_all(|_| Command::SetSegmentRates(index, rates.clone()))?)
    }

    /// Changes the segments of an access port. Sessions whose VLAN is not in the segment any more are removed;
    /// [`Event::Usage`] has their last counters.
    pub fn set_segments(&mut self, index: PortIndex, to: &[Segment]) -> Result<(), PortError> {
        self.settled()?;
        let vlans = self.ports.set_segments(index, to)?;
        Ok(self.send_all(|_| Command::SetSegments(index, vlans.clone()))?)
    }

    /// Removes a port; [`Controller::poll_removed`] hands it back. Its sessions are removed with it, and [`Event::Usage`]
    /// has their last counters; its neighbours are forgotten. Subinterfaces have to be removed before.
    pub fn remove_port(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.settled()?;
        self.ports.remove(index)?;
        self.owners.remove(&index);
        Ok(self.send_all(|_| Command::RemovePort(index))?)
    }

    /// A port that was removed, when nothing is on its way to it any more; its place is free then.
    pub fn poll_removed(&mut self) -> Option<RemovedPort> {
        for link in &mut self.links {
            while let Ok((index, queue)) = link.removed.pop() {
                if !self.ports.let_go(index, queue) {
                    continue;
                }
                let counted = self.counted(index);
                for link in &self.links {
                    link.shared.ports[index.0 as usize].reset();
                }
                return self.ports.removed(index, counted);
            }
        }
        None
    }

    /// What the workers counted of a port.
    fn counted(&self, PortIndex(index): PortIndex) -> PortCounters {
        let counted = self
            .links
            .iter()
            .map(|link| &link.shared.ports[index as usize]);
        counted.fold(PortCounters::default(), |sum, port| port.added_to(sum))
    }

    /// Adds a subinterface in a place of the caller's choice.
    pub fn add_subinterface(
        &mut self,
        index: PortIndex,
        part: Subinterface,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.add_part(index, &part)?;
        Ok(self.send_all(|_| Command::AddSubinterface(index, part))?)
    }

    /// Removes a subinterface; its neighbours are forgotten.
    pub fn remove_subinterface(&mut self, index: PortIndex) -> Result<(), PortError> {
        self.settled()?;
        self.ports.remove_part(index)?;
        Ok(self.send_all(|_| Command::RemoveSubinterface(index))?)
    }

    /// A port's device, for what the workers need not know.
    pub fn device(&self, index: PortIndex) -> Result<&dpdk::Port, PortError> {
        self.ports.device(index)
    }

    /// Changes the largest IP packet that leaves by a core port or subinterface, in octets. The device of a port is told
    /// by [`dpdk::Port::set_mtu`].
    pub fn set_mtu(&mut self, index: PortIndex, mtu: u16) -> Result<(), PortError> {
        self.settled()?;
        self.ports.check_core(index)?;
        Ok(self.send_all(|_| Command::SetMtu(index, mtu))?)
    }

    /// Changes how the sources of packets from a core port or subinterface are checked. A new one does not check them.
    pub fn set_source_check(
        &mut self,
        index: PortIndex,
        check: SourceCheck,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.check_core(index)?;
        Ok(self.send_all(|_| Command::SetSourceCheck(index, check))?)
    }

    /// Changes where the priority in the tags of a subinterface's frames comes from. That of a new one is 0.
    pub fn set_priority_source(
        &mut self,
        index: PortIndex,
        source: PrioritySource,
    ) -> Result<(), PortError> {
        self.settled()?;
        self.ports.check_part(index)?;
        Ok(self.send_all(|_| Command::SetPrioritySource(index, source))?)
    }

    /// Changes what is forwarded of packets with IPv4 options.
    pub fn set_ipv4_options(&mut self, options: Ipv4Options) -> Result<(), Busy> {
        self.send_all(|_| Command::SetIpv4Options(options))
    }

    /// Whether a command about a port will be taken, which no adjacency's may be behind.
    pub(crate) fn settled(&mut self) -> Result<(), Busy> {
        match self.catch_up() {
            true => self.room(),
            false => Err(Busy),
        }
    }

    /// Whether a command about a session will be taken: not while sessions move.
    fn room_for_session(&self) -> Result<(), Busy> {
        match self.moving {
            Some(_) => Err(Busy),
            None => self.room(),
        }
    }

    /// Whether a command will be taken: what is noted here has to reach the workers.
    fn room(&self) -> Result<(), Busy> {
        match self.slots() {
            0 => Err(Busy),
            _ => Ok(()),
        }
    }

    /// Adds a session, or changes one that has the same index; counters go on. Its host routes are set with it. One that is refused
    /// ([`Event::SessionRefused`]) is not there afterwards.
    pub fn set_session(&mut self, mut entry: SessionEntry) -> Result<(), Busy> {
        self.room()?;
        self.catch_up();
        self.room_for_session()?;
        entry.index = self.aliases.place(entry.index);
        let index = entry.index;
        let outer = entry.tags.outer.map_or(0, |tag| tag.vid);
        let worker = self.worker(entry.port, outer, entry.pppoe_session_id);
        let admitted = match self.shard.of(index.0) == worker {
            true => self.routes.admit(&entry),
            false => Err(Refusal::Malformed),
        };
        // A worker frees no memory.
        let sources = Sources::of(&core::mem::take(&mut entry.routed));
        match admitted {
            Ok(admitted) => self
                .link(index.0)
                .send(Command::SetSession(entry, sources, admitted)),
            Err(reason) => {
                self.routes.withdraw(index);
                self.link(index.0).send(Command::Refuse(index, reason))
            }
        }
    }

    /// What compiles policies for these workers.
    pub fn policy_compiler(&self) -> PolicyCompiler {
        PolicyCompiler {
            workers: self.links.len() as u16,
            hz: self.hz,
        }
    }

    /// Sets a policy, or forgets it: then the packets of its sessions are dropped (`policy-missing`). Packets are treated by the former
    /// one or by this one, never by both.
    ///
    /// # Errors
    /// The workers do not take a command now.
    pub fn set_policy(
        &mut self,
        index: PolicyIndex,
        policy: Option<Arc<CompiledPolicy>>,
    ) -> Result<(), Busy> {
        self.send_all(|_| Command::SetPolicy(index, policy.clone()))?;
        self.policies.retain(|policy| Arc::strong_count(policy) > 1);
        self.policies.extend(policy);
        Ok(())
    }

    /// Removes a session and its host routes. [`Event::Usage`] with `removed` answers, also for one that is not there.
    pub fn remove_session(&mut self, index: SessionIndex) -> Result<(), Busy> {
        self.room_for_session()?;
        let index = self.aliases.place(index);
        self.routes.withdraw(index);
        self.link(index.0).send(Command::RemoveSession(index))
    }

    /// Asks for a session's counters; [`Event::Usage`] answers.
    pub fn read_usage(&mut self, index: SessionIndex) -> Result<(), Busy> {
        self.room_for_session()?;
        let index = self.aliases.place(index);
        self.link(index.0).send(Command::ReadUsage(index))
    }

    /// Asks what the policies of a session have done; [`Event::PolicyState`] answers.
    ///
    /// # Errors
    /// The worker does not take a command now.
    pub fn read_policy(&mut self, index: SessionIndex, direction: Direction) -> Result<(), Busy> {
        self.room_for_session()?;
        let index = self.aliases.place(index);
        self.link(index.0)
            .send(Command::ReadPolicy(index, direction))
    }

    /// Asks a worker what the queues of a port have done and hold, from a queue with a number on, which is 0 at first; [`Event::Queues`]
    /// answers. `room`: of so many parts of the port at most.
    ///
    /// # Errors
    /// The worker does not take a command now.
    pub fn read_queues(
        &mut self,
        worker: u16,
        port: PortIndex,
        (from, room): (u32, usize),
    ) -> Result<(), Busy> {
        let command = Command::ReadQueues(port, from, Vec::with_capacity(room));
        self.link(worker.into()).send(command)
    }

    /// Counts how often the packets of a session hit each rule of its policy in a direction, or ends that. At most [`MAX_WATCHED`]
    /// sessions are watched. It ends with the session, and goes on if only the session's rates change. After a change of the policy,
    /// hits are counted when the worker gets counters of the new compilation.
    ///
    /// # Errors
    /// The worker does not take a command now.
    pub fn watch_rules(
        &mut self,
        index: SessionIndex,
        direction: Direction,
        hits: Option<Arc<RuleHits>>,
    ) -> Result<(), Busy> {
        self.room_for_session()?;
        let index = self.aliases.place(index);
        self.link(index.0)
            .send(Command::WatchRules(index, direction, hits.clone()))?;
        self.rule_hits.retain(|hits| Arc::strong_count(hits) > 1);
        self.rule_hits.extend(hits);
        Ok(())
    }

    /// Begins to show copies of the packets of a session that is there, at most this many ([`PuntKind::SampledUp`],
    /// [`PuntKind::SampledDown`]); without a rate, ends that. It ends with the session, too.
    pub fn sample(&mut self, index: SessionIndex, rate: Option<SampleRate>) -> Result<(), Busy> {
        self.room_for_session()?;
        let index = self.aliases.place(index);
        self.link(index.0).send(Command::Sample(index, rate))
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

    /// Sets the neighbour that an adjacency stands for. Packets to one that is not resolved are dropped, and
    /// [`Event::AdjacencyMissing`] asks for it.
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
            part => {
                let of = match part {
                    Part::Sessions(SessionIndex(number))
                    | Part::Ids(number)
                    | Part::Queues(number) => number,
                    // All have the same.
                    _ => 0,
                };
                let command = Command::Inspect(part, Vec::with_capacity(PIECE));
                self.link(of).send(command)?;
            }
        }
        self.inspecting = true;
        Ok(())
    }

    /// The piece that was asked for, when it is there.
    pub fn poll_piece(&mut self) -> Option<Piece> {
        let piece = match self.asked.take() {
            Some((instance, after)) => {
                let workers = self.shard.workers();
                let mut piece = self.routes.piece(instance, after, workers);
                piece
                    .found
                    .iter_mut()
                    .for_each(|held| self.aliases.rename(held));
                piece
            }
            None => {
                let mut links = self.links.iter_mut();
                let piece = links.find_map(|link| link.pieces.pop().ok())?;
                self.routed(piece)
            }
        };
        self.inspecting = false;
        Some(piece)
    }

    /// A piece of the worker's, with what is known here alone: of sessions, whether their host routes lead to them.
    fn routed(&self, mut piece: Piece) -> Piece {
        for held in &mut piece.found {
            if let Held::Session { entry, whole } = held {
                *whole &= self.routes.complete(entry);
            }
            self.aliases.rename(held);
        }
        piece
    }

    /// Empties a place that [`Held::StrayId`](crate::Held::StrayId) named.
    pub fn remove_stray_id(&mut self, place: u32) -> Result<(), Busy> {
        self.link(place).send(Command::RemoveStrayId(place))
    }

    /// Removes the queues at a place that [`Held::Queues`](crate::Held::Queues) named, with what waits in them.
    ///
    /// # Errors
    /// The worker does not take a command now.
    pub fn remove_stray_queues(&mut self, place: u32) -> Result<(), Busy> {
        self.link(place).send(Command::RemoveStrayQueues(place))
    }

    /// Removes a host route whose session is not there. One that comes with a session goes with it.
    pub fn remove_host_route(&mut self, instance: InstanceIndex, net: IpNet) -> Result<(), Busy> {
        self.routes.remove_host_route(instance, net);
        Ok(())
    }

    /// Sends a packet of the gateway itself. One to a PPPoE session waits for the commands that were given before to the
    /// session's worker, others for those to worker 0.
    pub fn inject(&mut self, packet: Inject<'_>) -> Result<(), Busy> {
        let tagged = |interface| self.ports.tagged(interface);
        let mbuf = handoff::wrap(&self.pool, packet, tagged).ok_or(Busy)?;
        let worker = match handoff::session(packet) {
            Some((port, outer, id)) => self.worker(port, outer, id),
            None => 0,
        };
        let link = &mut self.links[usize::from(worker)];
        link.injects.send(mbuf).map_err(|_| Busy)?;
        counters::add(&link.shared.injected, 1);
        Ok(())
    }

    /// Whether so many more packets can be injected now, whoever gets them.
    pub fn takes_injects(&self, packets: usize) -> bool {
        let waiting: usize = self.links.iter().map(|link| link.injects.len()).sum();
        waiting + packets < INJECTS as usize
    }

    /// Shows the punted packets, at most `most` of them, and says how many there were.
    pub fn recv_punts(&mut self, most: usize, mut f: impl FnMut(Punt<'_>)) -> usize {
        let mut n = 0;
        // Each time another one comes first: none of the workers waits for the others.
        self.turn += 1;
        for link in 0..self.links.len() {
            let link = (link + self.turn) % self.links.len();
            let link = &mut self.links[link];
            while n < most
                && let Some(mbuf) = link.punts.recv()
            {
                n += 1;
                if let Some((kind, port)) = punt::unpack(mbuf.meta()) {
                    f(Punt {
                        kind: self.aliases.rename_punt(kind),
                        port,
                        member: mbuf.member(),
                        frame: mbuf.data(),
                    });
                }
            }
        }
        n
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.catch_up();
        for (worker, link) in self.links.iter_mut().enumerate() {
            while let Ok(event) = link.events.pop() {
                // Each worker says that.
                if worker == 0 || !matches!(event, Event::AdjacencyRefused(_)) {
                    return Some(self.aliases.rename_event(event));
                }
            }
        }
        None
    }

    /// Who exceeds a rate for what is punted, with the worker that says so: once a second while it lasts.
    pub fn poll_offence(&mut self) -> Option<(u16, Offence)> {
        let mut workers = (0..).zip(self.links.iter_mut());
        workers.find_map(|(worker, link)| Some((worker, link.offences.pop().ok()?)))
    }

    /// Packets above the rate of somebody whom a worker has no room to name.
    pub fn unnamed_offences(&self) -> u64 {
        self.sum(|shared| shared.unnamed.load(Relaxed))
    }

    /// Changes how much each worker punts. The length of its queue stays.
    pub fn set_punt_limits(&mut self, limits: &PuntLimits) -> Result<(), Busy> {
        self.send_all(|_| Command::SetPuntLimits(Box::new(*limits)))
    }

    /// Says on which VLANs of all ports circuit and remote ids do not name access lines.
    pub fn set_untrusted(&mut self, vlans: Untrusted) -> Result<(), Busy> {
        let vlans = Arc::new(vlans);
        self.send_all(|_| Command::SetUntrusted(vlans.clone()))
    }

    /// Readable when punts or events have come since [`Controller::arm`].
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wake.wakeup()
    }

    /// To be called before sleeping on [`Controller::wakeup`]: clears it and asks the workers to signal what comes.
    /// False if something waits already: then take it instead of sleeping.
    pub fn arm(&mut self) -> bool {
        self.wake.sleep(|| {
            self.links.iter().all(Link::is_quiet)
                && self.asked.is_none()
                && self.routes.next().is_none()
                && self.moving.is_none()
        })
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
        self.ports.counters(|index| self.counted(index)).collect()
    }

    /// The sum of something over all workers.
    fn sum(&self, of: impl Fn(&Shared) -> u64) -> u64 {
        self.links.iter().map(|link| of(&link.shared)).sum()
    }

    /// The drop counters, those at 0 too.
    pub fn drops(&self) -> Vec<DropCounter> {
        let count = |&reason: &DropReason| DropCounter {
            reason,
            packets: self.sum(|shared| shared.drops[reason as usize].load(Relaxed)),
        };
        DropReason::ALL.iter().map(count).collect()
    }

    /// The punt counters, those at 0 too.
    pub fn punts(&self) -> Vec<PuntCounter> {
        let count = |(number, class): (usize, &'static PuntClass)| PuntCounter {
            class,
            packets: self.sum(|shared| shared.punts[number].load(Relaxed)),
            policed: self.sum(|shared| shared.policed[number].load(Relaxed)),
        };
        PuntKind::ALL.iter().enumerate().map(count).collect()
    }

    /// Packets that were fragmented, and their fragments.
    pub fn fragments(&self) -> FragmentCounters {
        FragmentCounters {
            packets: self.sum(|shared| shared.fragments().packets),
            fragments: self.sum(|shared| shared.fragments().fragments),
        }
    }

    /// What each worker did since its start.
    pub fn workers(&self) -> impl Iterator<Item = WorkerCounters> {
        let second = u128::from(self.second);
        self.links.iter().map(move |Link { shared, .. }| {
            let ports = || shared.ports.iter();
            let busy_cycles = shared.busy.load(Relaxed);
            let busy = u128::from(busy_cycles) * 1_000_000_000 / second;
            WorkerCounters {
                busy: Duration::from_nanos(busy as u64), // 584 years
                busy_cycles,
                bursts: shared.bursts.load(Relaxed),
                rx_packets: ports().map(|port| port.rx_packets.load(Relaxed)).sum(),
                tx_packets: ports().map(|port| port.tx_packets.load(Relaxed)).sum(),
                punted: shared.punted(),
                injected: shared.injected.load(Relaxed),
                handed_over: shared.handed_over.load(Relaxed),
                taken_over: shared.taken_over.load(Relaxed),
            }
        })
    }

    /// Packets that were injected.
    pub fn injected(&self) -> u64 {
        self.sum(|shared| shared.injected.load(Relaxed))
    }
}
