//! The data plane of a check, over ports in memory.

use super::conf::{Adjacency, Conf, Destination, Policy, Port, Session};
use super::{Failure, wrong};
use dataplane::*;
use dpdk::{Eal, EalOptions, Mbuf, MemoryPeer, Pool};
use policy::Direction;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use userplane::configure::{ipv4_options, priority_source, source_check};

/// Memory of the packet buffers and tables.
const MEMORY_MIB: u32 = 64;

/// The names of what the data plane knows by numbers.
pub struct Names {
    /// The ports, then the subinterfaces.
    interfaces: Vec<String>,
    ports: usize,
    instances: Vec<String>,
    adjacencies: Vec<String>,
    groups: Vec<String>,
    sessions: Vec<String>,
    indexes: Vec<SessionIndex>,
}

fn place(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|known| known == name)
}

impl Names {
    fn new(conf: &Conf) -> Self {
        // Index and PPPoE session id name the same worker.
        let workers = u32::from(conf.workers);
        let ids = conf
            .sessions
            .values()
            .map(|s| u32::from(s.pppoe_session_id));
        let indexes = ids
            .zip(0..)
            .map(|(id, n)| SessionIndex(n * workers + id % workers));
        let parts = conf.ports.values().flat_map(|p| p.subinterfaces.keys());
        Names {
            interfaces: conf.ports.keys().chain(parts).cloned().collect(),
            ports: conf.ports.len(),
            instances: conf.network_instances.clone(),
            adjacencies: conf.adjacencies.keys().cloned().collect(),
            groups: conf.groups.keys().cloned().collect(),
            sessions: conf.sessions.keys().cloned().collect(),
            indexes: indexes.collect(),
        }
    }

    /// Of the ports, in the order of their numbers.
    pub fn ports(&self) -> &[String] {
        &self.interfaces[..self.ports]
    }

    /// Of the sessions, likewise.
    pub fn sessions(&self) -> &[String] {
        &self.sessions
    }

    /// A port or subinterface.
    pub fn interface(&self, name: &str) -> Option<PortIndex> {
        place(&self.interfaces, name).map(|n| PortIndex(n as u16))
    }

    /// A network instance.
    pub fn instance(&self, name: &str) -> Option<InstanceIndex> {
        place(&self.instances, name).map(|n| InstanceIndex(n as u16))
    }

    fn session(&self, name: &str) -> Option<SessionIndex> {
        place(&self.sessions, name).map(|n| self.indexes[n])
    }

    /// What the session with this index is called.
    fn called(&self, index: SessionIndex) -> &str {
        let place = self.indexes.iter().position(|known| *known == index);
        &self.sessions[place.expect("a session of this data plane")]
    }

    fn adjacency(&self, name: &str) -> Option<AdjacencyIndex> {
        place(&self.adjacencies, name).map(|n| AdjacencyIndex(n as u32))
    }

    fn group(&self, name: &str) -> Option<GroupIndex> {
        place(&self.groups, name).map(|n| GroupIndex(n as u32))
    }

    /// The kind of a punt, and whom it is about.
    pub fn punt(&self, kind: PuntKind) -> String {
        let instance = |InstanceIndex(n)| &self.instances[n as usize];
        let name = kind.class().name;
        match kind.subject() {
            Subject::None => name.into(),
            Subject::Session(index) => format!("{name} {}", self.called(index)),
            Subject::Interface(PortIndex(n)) => format!("{name} {}", self.interfaces[n as usize]),
            Subject::Instance(of) => format!("{name} {}", instance(of)),
            Subject::NextHop(to) => format!("{name} {} {}", instance(to.instance), to.mtu),
        }
    }
}

/// What came of a round.
#[derive(Default)]
pub struct Came {
    /// The edges that packets took.
    pub path: Vec<Edge>,
    /// What ports sent.
    pub out: Vec<(usize, Vec<u8>)>,
    /// What was punted.
    pub punted: Vec<Punted>,
    /// What was dropped, and how often.
    pub dropped: Vec<(DropReason, u64)>,
}

/// A packet for the control thread.
pub struct Punted {
    /// What it is.
    pub kind: PuntKind,
    /// It, or the part of it that matters.
    pub octets: Vec<u8>,
}

impl Punted {
    /// Is it an IP packet, without what was in front of it?
    pub fn is_ip(&self) -> bool {
        self.kind.is_ip()
    }
}

impl Came {
    /// What became of the packets.
    pub fn fate(&self, names: &Names) -> String {
        let out = self.out.iter();
        let out = out.map(|(port, _)| format!("out {}", names.interfaces[*port]));
        let times = |(reason, n): &(DropReason, u64)| vec![reason.name(); *n as usize];
        let dropped = self.dropped.iter().flat_map(times);
        let dropped = dropped.map(|name| format!("drop {name}"));
        let punted = self
            .punted
            .iter()
            .map(|p| format!("punt {}", names.punt(p.kind)));
        let all: Vec<_> = out.chain(dropped).chain(punted).collect();
        all.join(", ")
    }
}

/// The data plane.
pub struct Plane {
    /// Of what is in it.
    pub names: Names,
    /// The control thread's end.
    pub controller: Controller,
    workers: Vec<Worker>,
    pool: Pool,
    /// The other ends of the ports' queues, by name.
    peers: BTreeMap<String, Vec<MemoryPeer>>,
    /// What had been dropped before this round.
    dropped: Vec<DropCounter>,
    /// Sessions that end while packets wait, and when.
    ending: Vec<(Duration, SessionIndex)>,
}

/// Number of a policy; those that are not there share one.
fn number(conf: &Conf, name: &str) -> PolicyIndex {
    let names = conf.policies.keys();
    let before = names.take_while(|other| *other != name).count();
    PolicyIndex(NonZeroU16::MIN.saturating_add(before as u16))
}

impl Plane {
    /// Makes what `conf`, read from `file`, describes.
    pub fn new(conf: &Conf, file: &Path) -> Result<Self, Failure> {
        let eal = Eal::start(&EalOptions {
            memory_mib: MEMORY_MIB,
            huge_pages: false,
        })?;
        let pool = eal.pool("packets", conf.buffers)?;
        let names = Names::new(conf);
        let segments = conf.ports.values().map(|p| p.segments().len() as u16);
        let limits = Limits {
            interfaces: names.interfaces.len() as u16,
            segments: segments.sum(),
            instances: names.instances.len() as u16,
            sessions: names.sessions.len() as u32 * u32::from(conf.workers),
            handed_over: conf.hand_over_queue,
            punted: conf.punts.queue.unwrap_or(Limits::default().punted),
            adjacencies: names.adjacencies.len() as u32,
            groups: names.groups.len() as u32,
            ..Limits::default()
        };
        let punts = conf.punts.limits().map_err(|why| wrong(file, why))?;
        let config = Config {
            workers: conf.workers,
            limits,
            punts,
        };
        let (controller, workers) = channel(&eal, pool, config)?;
        let mut plane = Plane {
            dropped: controller.drops(),
            names,
            controller,
            workers,
            pool,
            peers: BTreeMap::new(),
            ending: Vec::new(),
        };
        let refused = |why| wrong(file, why);
        let options = ipv4_options(conf.ipv4_options);
        plane.command(|c| c.set_ipv4_options(options));
        for (name, port) in &conf.ports {
            plane.add_port(&eal, name, port, file)?;
        }
        for (name, adjacency) in &conf.adjacencies {
            plane.set_adjacency(name, adjacency).map_err(refused)?;
        }
        for (name, members) in &conf.groups {
            let index = plane.names.group(name).expect("its own name");
            let members: Vec<_> = (members.iter())
                .map(|member| plane.names.adjacency(member).expect("it was checked"))
                .collect();
            let set = plane.controller.set_group(index, &members);
            set.map_err(|why| wrong(file, format!("groups {name}: {why}")))?;
        }
        for (name, policy) in &conf.policies {
            plane.set_policy(conf, name, policy).map_err(refused)?;
        }
        for (name, session) in &conf.sessions {
            plane.set_session(conf, name, session).map_err(refused)?;
        }
        for (of, routes) in &conf.routes {
            let instance = plane.names.instance(of).expect("it was checked");
            for (prefix, to) in routes {
                let to = plane.destination(to);
                plane.command(|c| c.set_route(instance, *prefix, to));
            }
        }
        plane.settle().map_err(refused)?;
        plane.remove(conf).map_err(refused)?;
        Ok(plane)
    }

    fn add_port(&mut self, eal: &Eal, name: &str, port: &Port, file: &Path) -> Result<(), Failure> {
        let fault = |why: PortError| wrong(file, format!("ports {name}: {why}"));
        let (device, peers) = eal.memory_port(name, port.queue, self.pool, port.queues)?;
        let instance = self
            .names
            .instance(&port.network_instance)
            .expect("it was checked");
        let role = match port.is_access() {
            true => Role::Access {
                segments: port.segments(),
            },
            false => Role::Core { instance },
        };
        let index = self.names.interface(name).expect("its own name");
        let config = PortConfig {
            port: device,
            mac: Some(port.mac),
            role,
        };
        self.controller.add_port(index, config).map_err(fault)?;
        self.peers.insert(name.into(), peers);
        if !port.is_access() {
            self.controller.set_mtu(index, port.mtu).map_err(fault)?;
            let check = source_check(port.source_check);
            (self.controller.set_source_check(index, check)).map_err(fault)?;
        }
        if let Some(kbps) = port.egress_rate {
            let rate = Rate::new(kbps);
            self.controller
                .set_egress_rate(index, rate)
                .map_err(fault)?;
        }
        let rates = port.segment_rates();
        if !rates.is_empty() {
            self.controller
                .set_segment_rates(index, &rates)
                .map_err(fault)?;
        }
        for (name, part) in &port.subinterfaces {
            let own = self.names.interface(name).expect("its own name");
            let instance = self.names.instance(&part.network_instance);
            let check = source_check(part.source_check);
            let source = priority_source(part.priority_source);
            let part = Subinterface {
                port: index,
                vlan: part.vlan_id,
                instance: instance.expect("it was checked"),
                mtu: part.mtu,
            };
            self.controller.add_subinterface(own, part).map_err(fault)?;
            (self.controller.set_source_check(own, check)).map_err(fault)?;
            (self.controller.set_priority_source(own, source)).map_err(fault)?;
        }
        self.settle().map_err(|why| wrong(file, why))
    }

    fn set_adjacency(&mut self, name: &str, adjacency: &Adjacency) -> Result<(), String> {
        let index = self.names.adjacency(name).expect("its own name");
        let port = self
            .names
            .interface(&adjacency.port)
            .expect("it was checked");
        let mac = adjacency.mac;
        self.command(|c| c.set_adjacency(index, dataplane::Adjacency { port, mac }));
        self.settle()
    }

    fn set_policy(&mut self, conf: &Conf, name: &str, policy: &Policy) -> Result<(), String> {
        let refused = |why: String| format!("policies {name}: {why}");
        let rules = policy.rules().map_err(refused)?;
        let compiled = self.controller.policy_compiler().compile(&rules);
        let compiled = Arc::new(compiled.map_err(|why| refused(why.to_string()))?);
        let index = number(conf, name);
        self.command(|c| c.set_policy(index, Some(compiled.clone())));
        self.settle()
    }

    /// Number of what the packets of a session's direction pass.
    fn policy_of(
        &mut self,
        conf: &Conf,
        (name, session): (&str, &Session),
        direction: Direction,
    ) -> Result<Option<PolicyIndex>, String> {
        let Some(rules) = session.own_policy(conf, direction)? else {
            let named = match direction {
                Direction::Up => &session.policy_up,
                Direction::Down => &session.policy_down,
            };
            return Ok(named.as_deref().map(|name| number(conf, name)));
        };
        let compiled = self.controller.policy_compiler().compile(&rules);
        let compiled = Arc::new(compiled.map_err(|why| why.to_string())?);
        // behind those of the policies, and one that is not known
        let before = conf.sessions.keys().take_while(|other| *other != name);
        let first = conf.policies.len() + 1 + 2 * before.count();
        let place = first + usize::from(direction == Direction::Down);
        let index = PolicyIndex(NonZeroU16::MIN.saturating_add(place as u16));
        self.command(|c| c.set_policy(index, Some(compiled.clone())));
        Ok(Some(index))
    }

    fn set_session(&mut self, conf: &Conf, name: &str, session: &Session) -> Result<(), String> {
        let index = self.names.session(name).expect("its own name");
        let instance = self.names.instance(&session.network_instance);
        let entry = SessionEntry {
            index,
            port: self.names.interface(&session.port).expect("it was checked"),
            tags: session.tags()?,
            peer_mac: session.mac,
            gateway_mac: session.gateway_mac.unwrap_or(conf.ports[&session.port].mac),
            pppoe_session_id: session.pppoe_session_id,
            instance: instance.expect("it was checked"),
            packets: session.packets()?,
            policies: Policies {
                up: self.policy_of(conf, (name, session), Direction::Up)?,
                down: self.policy_of(conf, (name, session), Direction::Down)?,
            },
            subscriber: session.subscriber,
            ipv4: session.ipv4,
            ipv6: session.ipv6,
            routed: session.routed.clone().into(),
        };
        self.command(|c| c.set_session(entry.clone()));
        if let Some(sample) = session.sample {
            self.command(|c| c.sample(index, Some(sample.into())));
        }
        self.settle()
    }

    /// Removes what is to be gone.
    fn remove(&mut self, conf: &Conf) -> Result<(), String> {
        for (name, _) in conf.sessions.iter().filter(|(_, session)| session.removed) {
            let index = self.names.session(name).expect("its own name");
            self.command(|c| c.remove_session(index));
        }
        for (name, _) in conf.ports.iter().filter(|(_, port)| port.removed) {
            let index = self.names.interface(name).expect("its own name");
            let removed = self.controller.remove_port(index);
            removed.map_err(|why| format!("ports {name}: {why}"))?;
        }
        self.settle()?;
        while self.controller.poll_removed().is_some() {}
        for (name, session) in &conf.sessions {
            let index = self.names.session(name).expect("its own name");
            let after = session.ends_after.map(Duration::from_millis);
            self.ending.extend(after.map(|after| (after, index)));
        }
        Ok(())
    }

    fn destination(&self, to: &Destination) -> dataplane::Destination {
        use dataplane::Destination as To;
        match to {
            Destination::Adjacency(name) => {
                To::Adjacency(self.names.adjacency(name).expect("it was checked"))
            }
            Destination::Group(name) => To::Group(self.names.group(name).expect("it was checked")),
            Destination::Session(name) => {
                To::Session(self.names.session(name).expect("it was checked"))
            }
            Destination::Connected(port) => {
                To::Connected(self.names.interface(port).expect("it was checked"))
            }
            Destination::Local => To::Local,
            Destination::Discard => To::Discard,
        }
    }

    /// Gives a command, when there is room for it.
    fn command(&mut self, give: impl Fn(&mut Controller) -> Result<(), Busy>) {
        while give(&mut self.controller).is_err() {
            self.work(Duration::ZERO);
        }
    }

    /// Works until there is nothing left to do, also when packets that wait for their turn may leave.
    fn work(&mut self, mut at: Duration) {
        loop {
            while self
                .workers
                .iter_mut()
                .any(|worker| worker.step_traced(at) > 0)
            {}
            let departures = self.workers.iter().filter_map(Worker::next_departure);
            let Some(next) = departures.min() else {
                return;
            };
            at = at.max(next);
            let ends = self.ending.iter().position(|(end, _)| *end <= at);
            if let Some((_, session)) = ends.map(|ends| self.ending.swap_remove(ends)) {
                self.command(|c| c.remove_session(session));
            }
        }
    }

    /// Has all commands applied; what was refused, if anything was.
    fn settle(&mut self) -> Result<(), String> {
        self.work(Duration::ZERO);
        while let Some(event) = self.controller.poll_event() {
            return Err(match event {
                Event::SessionRefused { index, reason } => {
                    format!("sessions {}: refused: {reason:?}", self.names.called(index))
                }
                Event::RouteRefused { prefix, .. } => format!("routes {prefix}: refused"),
                Event::AdjacencyRefused(AdjacencyIndex(n)) => {
                    format!(
                        "adjacencies {}: refused",
                        self.names.adjacencies[n as usize]
                    )
                }
                _ => continue,
            });
        }
        Ok(())
    }

    /// Has a frame come in by a port; in as many buffers as it needs.
    pub fn send(&mut self, port: &str, frame: &[u8]) -> Result<(), String> {
        let room = || "there are no more packet buffers".to_owned();
        let mut mbuf: Option<Mbuf> = None;
        // From the last part on: chains grow at the front.
        for part in frame.chunks(PART).rev() {
            let mut head = self.pool.packet(part).ok_or_else(room)?;
            if let Some(tail) = mbuf.take() {
                head.chain(tail).map_err(|_| "it is too long")?;
            }
            mbuf = Some(head);
        }
        let mbuf = mbuf.or_else(|| self.pool.alloc()).ok_or_else(room)?;
        let queues = self.peers.get_mut(port).expect("a port");
        let sent = queues[0].to_port.send(mbuf);
        sent.map_err(|_| format!("`queue` of port {port} is too short for what comes at once"))
    }

    /// Has the control thread send a packet.
    pub fn inject(&mut self, packet: Inject<'_>) -> Result<(), String> {
        let injected = self.controller.inject(packet);
        injected.map_err(|Busy| "it does not fit a packet buffer".into())
    }

    /// Has the workers work, and takes what comes.
    pub fn round(&mut self, at: Duration) -> Came {
        self.work(at);
        let mut came = Came {
            path: self
                .workers
                .iter_mut()
                .flat_map(Worker::take_path)
                .collect(),
            ..Came::default()
        };
        for (port, queues) in self.peers.values_mut().enumerate() {
            for peer in queues {
                while let Some(mbuf) = peer.from_port.recv() {
                    came.out.push((port, mbuf.data().to_vec()));
                }
            }
        }
        self.controller.recv_punts(usize::MAX, |punt| {
            came.punted.push(Punted {
                kind: punt.kind,
                octets: punt.frame.to_vec(),
            });
        });
        while self.controller.poll_event().is_some() {}
        let now = self.controller.drops();
        let pairs = now.iter().zip(&self.dropped);
        let counted = pairs.map(|(now, before)| (now.reason, now.packets - before.packets));
        came.dropped = counted.filter(|(_, n)| *n > 0).collect();
        self.dropped = now;
        came
    }

    /// What a session used, if it is there.
    pub fn usage(&mut self, session: usize) -> Option<Usage> {
        let index = self.names.indexes[session];
        self.command(|c| c.read_usage(index));
        self.work(Duration::ZERO);
        let mut events = std::iter::from_fn(|| self.controller.poll_event());
        events.find_map(|event| match event {
            Event::Usage {
                usage,
                removed: false,
                ..
            } => Some(usage),
            _ => None,
        })
    }

    /// What the queues of a port have done at each worker that has some. There are fewer than are counted at once.
    pub fn queues(&mut self, port: PortIndex) -> Vec<AggregateState> {
        for worker in 0..self.workers.len() as u16 {
            self.command(|c| c.read_queues(worker, port, (0, 1)));
        }
        self.work(Duration::ZERO);
        let events = std::iter::from_fn(|| self.controller.poll_event());
        let parts = events.filter_map(|event| match event {
            Event::Queues { parts, .. } => parts.first().map(|part| part.counts),
            _ => None,
        });
        parts.collect()
    }
}

/// Octets that fit a packet buffer.
const PART: usize = 2048;
