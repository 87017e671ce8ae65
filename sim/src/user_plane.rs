//! A user plane: the real parts of `userplane` that do no I/O, around a model of its worker.
//!
//! What is carried between them is carried in the order of `userplane::run`: everything that the node and the engine have
//! to say before anything else is heard; of what the worker has, first its answers and then what it punted.
//!
//! What is otherwise than there: the queue to the worker is never full, so nobody is refused because it is behind; a net is
//! announced and withdrawn in no time, without a kernel, and a crash takes it back; the core has neither neighbours
//! nor routes to be found.

use crate::worker::{Event as Heard, Fate, Worker};
use core::time::Duration;
use dataplane::{Held, InstanceIndex, Part, Piece, PortIndex, SessionIndex};
use ipnet::IpNet;
use northbound::Ledger;
use pfcp::{DownReason, Event, Node, RequestId, Role};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use userplane::compile::Layout;
use userplane::cpri::{Redirection, Verdict};
use userplane::engine::{Config, Engine, Now, Output, WorkerCommand};
use userplane::ledger::Shown;
use wire::eth::MacAddr;
use wire::gtpu;
use wire::pfcp::{BbfUpFeatures, NodeId, SluiceFeatures, UpFunctionFeatures, ntp_seconds};

/// Its access ports; each has homes.
pub const PORTS: [&str; 2] = ["access0", "access1"];

/// What a user plane sends.
#[derive(Debug)]
pub enum Sent {
    /// A PFCP datagram to the control plane.
    Pfcp(Vec<u8>),
    /// A GTP-U datagram to it.
    Gtpu(Vec<u8>),
    /// A frame to a home.
    Frame(PortIndex, Vec<u8>),
    /// A packet to the internet.
    Internet(Vec<u8>),
}

/// A user plane that runs.
pub struct UserPlane {
    name: String,
    node: Node,
    engine: Engine<RequestId>,
    redirection: Redirection,
    /// The packet path.
    pub worker: Worker,
    commands: VecDeque<WorkerCommand>,
    /// Frames that the worker punted and nobody has taken yet: of a session, or for discovery.
    punts: VecDeque<(Option<SessionIndex>, PortIndex, Vec<u8>)>,
    /// Somebody was told that there is work.
    told: bool,
    /// The nets that it announces.
    pub nets: BTreeSet<IpNet>,
    sent: VecDeque<Sent>,
}

fn now(moment: control::Now) -> Now {
    Now {
        monotonic: moment.at,
        ntp: ntp_seconds(moment.unix.into()),
    }
}

impl UserPlane {
    /// One that has just started. `random` differs from start to start.
    pub fn start(name: &str, address: IpAddr, random: u32, moment: control::Now) -> Self {
        let node_id = NodeId::Fqdn(name.to_owned());
        let mut node = pfcp::Config::new(Role::User, node_id.clone(), now(moment).ntp);
        node.features = pfcp::Features {
            up: Some(
                UpFunctionFeatures::TRAFFIC_ENDPOINTS
                    | UpFunctionFeatures::FRAMED_ROUTES
                    | UpFunctionFeatures::PACKET_COUNTS
                    | UpFunctionFeatures::PREFIX_LENGTHS,
            ),
            bbf: Some(BbfUpFeatures::PPPOE),
            sluice: Some(SluiceFeatures::DEFAULT_CP_TO_UP_RULE),
            ..Default::default()
        };
        node.first_sequence = random;
        let port = |n: u16| MacAddr([2, 0xff, 0, 0, 0, n as u8]);
        let ports = (0..)
            .zip(PORTS)
            .map(|(n, name)| (PortIndex(n), name.as_bytes().to_vec()));
        let layout = Layout {
            access_ports: ports
                .clone()
                .map(|(n, name)| (name, (n, port(n.0))))
                .collect(),
            instances: HashMap::from([("default".to_owned(), InstanceIndex(0))]),
            address: Some(address),
        };
        let engine = Config {
            layout,
            max_sessions: 1000,
            seed: random,
            ..Config::new(node_id, address)
        };
        UserPlane {
            name: name.to_owned(),
            node: Node::new(node),
            engine: Engine::new(engine),
            redirection: Redirection::new(address, ports.collect()),
            worker: Worker::default(),
            commands: VecDeque::new(),
            punts: VecDeque::new(),
            told: false,
            nets: BTreeSet::new(),
            sent: VecDeque::new(),
        }
    }

    /// What it holds: the control thread by itself, and against the worker.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::of(&self.name);
        let reports = self.node.open_tokens().collect();
        self.engine.compare(&mut ledger, &reports);
        let mut shown = Shown::default();
        let commanded = self.commands.iter().map(|command| match command {
            WorkerCommand::Set(entry) => entry.index,
            WorkerCommand::Remove(index) | WorkerCommand::Read(index) => *index,
        });
        shown.touched.sessions.extend(commanded);
        let sessions = self.worker.entries().map(|entry| Held::Session {
            entry: entry.clone(),
            whole: true,
        });
        let piece = Piece {
            part: Part::FIRST,
            found: sessions.collect(),
            next: None,
            workers: 1,
        };
        shown.judge(&self.engine, &[], &piece);
        shown.compare(&mut ledger);
        ledger
    }

    /// When [`UserPlane::on_timeout`] is due.
    pub fn poll_at(&self) -> Option<Duration> {
        [self.node.poll_at(), self.engine.poll_at()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass.
    pub fn on_timeout(&mut self, moment: control::Now) {
        self.node.on_timeout(moment.at);
        self.engine.on_timeout(now(moment));
        self.settle(moment);
    }

    /// What is to be sent next.
    pub fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Whether the two threads have something for one another; says so once until [`UserPlane::work`].
    pub fn has_work(&mut self) -> bool {
        let work = !(self.commands.is_empty() && self.punts.is_empty());
        work && !std::mem::replace(&mut self.told, true)
    }

    /// A PFCP datagram came.
    pub fn on_pfcp(&mut self, moment: control::Now, from: SocketAddr, bytes: &[u8]) {
        self.node.handle_datagram(moment.at, from, bytes);
        self.settle(moment);
    }

    /// A GTP-U datagram came.
    pub fn on_gtpu(&mut self, from: SocketAddr, bytes: &[u8]) {
        match self.redirection.receive(&self.engine, from.ip(), bytes) {
            Verdict::Send(port, frame) => self.sent.push_back(Sent::Frame(port, frame.to_vec())),
            Verdict::Reply(reply) => self.sent.push_back(Sent::Gtpu(reply)),
            Verdict::Done => {}
        }
    }

    /// A frame of a home came; why it was dropped, if it was.
    pub fn on_frame(&mut self, port: PortIndex, frame: &[u8]) -> Option<&'static str> {
        match self.worker.uplink(port, frame) {
            Fate::Discovery => self.punts.push_back((None, port, frame.to_vec())),
            Fate::Control(index) => self.punts.push_back((Some(index), port, frame.to_vec())),
            Fate::Forward(packet) => self.sent.push_back(Sent::Internet(packet)),
            Fate::Drop(why) => return Some(why),
        }
        None
    }

    /// A packet of the internet came; false if it was dropped.
    pub fn on_packet(&mut self, packet: &[u8]) -> bool {
        let frame = self.worker.downlink(packet);
        let sent = frame.map(|(port, frame)| self.sent.push_back(Sent::Frame(port, frame)));
        sent.is_some()
    }

    /// The worker comes to what it was told, and the control thread to what the worker says.
    pub fn work(&mut self, moment: control::Now) {
        self.told = false;
        for command in std::mem::take(&mut self.commands) {
            match self.worker.obey(command) {
                Some(Heard::Refused(index, reason)) => self.engine.worker_refused(index, reason),
                Some(Heard::Usage(index, u, gone)) => {
                    let usage = pfcp::bng::Usage {
                        up_packets: u.up_packets,
                        up_octets: u.up_octets,
                        down_packets: u.down_packets,
                        down_octets: u.down_octets,
                    };
                    self.engine.worker_usage(now(moment), index, usage, gone);
                }
                None => {}
            }
        }
        for (session, port, frame) in std::mem::take(&mut self.punts) {
            let wrapped = match session {
                Some(index) => {
                    let tunnel = self.engine.control_tunnel(index);
                    self.redirection.wrap_control(tunnel, &frame)
                }
                None => {
                    let tunnel = self.engine.discovery_tunnel(port);
                    self.redirection.wrap_discovery(tunnel, port, &frame)
                }
            };
            self.sent
                .extend(wrapped.map(|(_, bytes)| Sent::Gtpu(bytes)));
        }
        self.settle(moment);
    }

    fn settle(&mut self, moment: control::Now) {
        while self.settle_node(moment) | self.settle_engine(moment) {}
    }

    fn settle_node(&mut self, moment: control::Now) -> bool {
        let mut any = false;
        while let Some(output) = self.node.poll_output() {
            any = true;
            match output {
                pfcp::Output::Transmit { bytes, .. } => self.sent.push_back(Sent::Pfcp(bytes)),
                pfcp::Output::Event(event) => self.on_event(moment, event),
            }
        }
        any
    }

    /// As `userplane::run` does.
    fn on_event(&mut self, moment: control::Now, event: Event) {
        match event {
            Event::AssociationUp { peer, info } => {
                if info.restarted && !info.retain_sessions {
                    self.engine.forget_peer(peer);
                }
                self.engine.peer_up(now(moment), peer);
            }
            Event::AssociationDown { peer, reason } => {
                self.engine.peer_lost(now(moment), peer);
                if reason == DownReason::Released {
                    self.engine.forget_peer(peer);
                }
            }
            Event::Request { id, seid, message } => {
                self.engine.request(now(moment), id, id.peer, seid, message);
            }
            Event::Response { token, message, .. } => self.engine.reported(token, message.cause()),
            Event::Failed { token, .. } => self.engine.reported(token, None),
            Event::EstablishedLate { .. } => {} // a user plane asks nobody for sessions
            Event::VersionMismatch { .. }
            | Event::AssociationRejected { .. }
            | Event::NodeIdTaken { .. } => {}
        }
    }

    fn settle_engine(&mut self, moment: control::Now) -> bool {
        let mut any = false;
        while let Some(output) = self.engine.poll_output() {
            any = true;
            match output {
                Output::Worker(command) => self.commands.push_back(command),
                Output::Respond { to, seid, message } => self.node.respond(to, seid, message),
                Output::Report {
                    peer,
                    seid,
                    token,
                    message,
                } => {
                    if self
                        .node
                        .request(moment.at, peer, seid, message, token)
                        .is_err()
                    {
                        self.engine.reported(token, None);
                    }
                }
                Output::AddNet(_, net) => drop(self.nets.insert(net)),
                Output::RemoveNet(_, net) => drop(self.nets.remove(&net)),
            }
        }
        any
    }
}

/// Where GTP-U is served.
pub fn gtpu_at(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, gtpu::PORT)
}
