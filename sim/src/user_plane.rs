//! A user plane: the real parts of `userplane` that do no I/O, around a model of its workers and of its ports' devices.
//!
//! What is carried between them is carried in the order of `userplane::run`: everything that the node and the engine have
//! to say before anything else is heard; of what a worker has, first its answers and then what it punted.
//!
//! It is nothing until it is told its ports over the management interface, or goes on with what it was told before.
//!
//! What is otherwise than there: the queues to the workers are never full, so nobody is refused because it is behind; a net is
//! announced and withdrawn in no time, without a kernel, and a crash takes it back; the core has neither neighbours
//! nor routes to be found.

use crate::worker::{Event as WorkerEvent, UplinkResult, Workers};
use config::{Fault, HoldSessions, UserPlaneDocument};
use core::time::Duration;
use dataplane::{Held, InstanceIndex, Part, Piece, PortIndex, SessionIndex};
use mi::{Begun, Configured, Document, DocumentFault, InForce, Keep, Response};
use northbound::{Ledger, Refusal};
use pfcp::{Node, RequestId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;
use userplane::announcement::Announcement;
use userplane::association;
use userplane::compile::Layout;
use userplane::cpri::{Redirection, Verdict};
use userplane::engine::{Engine, FromSubscriber, Now, Output};
use userplane::ledger::Shown;
use userplane::managed::{Managed, read};
use userplane::policies::PolicyNumbers;
use wire::eth::MacAddr;
use wire::gtpu;
use wire::pfcp::ntp_seconds;

/// Its access ports; each has homes.
pub const PORTS: [&str; 2] = ["access0", "access1"];

/// What a user plane says against a document while a device is missing.
pub const MISSING_DEVICE: &str = "there is no such device now";

/// What a user plane sends.
#[derive(Debug)]
pub enum Sent {
    /// A PFCP datagram to this address.
    Pfcp(IpAddr, Vec<u8>),
    /// A GTP-U datagram to this address.
    Gtpu(IpAddr, Vec<u8>),
    /// A frame to a home.
    Frame(PortIndex, Vec<u8>),
    /// A packet to the internet.
    Internet(Vec<u8>),
}

/// The document of a user plane on its disk, which outlives it.
#[derive(Clone, Default)]
pub struct Memory(Rc<RefCell<Documents>>);

#[derive(Default)]
struct Documents {
    last: Option<Document>,
    next: Option<Document>,
}

impl Keep for Memory {
    fn begin(&self, document: &Document) -> io::Result<()> {
        self.0.borrow_mut().next = Some(document.clone());
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        let mut documents = self.0.borrow_mut();
        documents.last = documents.next.take();
        Ok(())
    }

    fn give_up(&self) -> io::Result<()> {
        self.0.borrow_mut().next = None;
        Ok(())
    }
}

impl Memory {
    /// The last document; what an earlier life did not finish is cleared away.
    fn document(&self) -> Option<Document> {
        let mut documents = self.0.borrow_mut();
        documents.next = None;
        documents.last.clone()
    }
}

/// A user plane that runs.
pub struct UserPlane {
    /// What it started with.
    start: config::start::UserPlane,
    configured: Configured<Memory>,
    /// Its access ports.
    open: BTreeSet<PortIndex>,
    /// A device that its ports need is not there now.
    pub misses_device: bool,
    /// PFCP datagrams that wait until it is told its ports.
    early: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The time of the input that it is at.
    moment: control::Now,
    node: Node,
    engine: Engine<RequestId>,
    /// Numbers of policies at the workers.
    policies: PolicyNumbers,
    redirection: Redirection,
    /// The packet path.
    pub workers: Workers,
    /// Frames that each worker punted and nobody has taken yet.
    punts: Vec<VecDeque<Punt>>,
    /// Of each worker: somebody was told that there is work.
    told: Vec<bool>,
    /// The nets that it announces.
    pub nets: BTreeSet<Announcement>,
    /// How often it was associated with the control plane.
    pub associations: u32,
    /// Time of the machine that its control thread took, and what of it was the model's of its workers.
    spent: Duration,
    modelled: Duration,
    sent: VecDeque<Sent>,
}

/// A frame for the control plane: of a session, or for discovery.
type Punt = (Option<SessionIndex>, PortIndex, Vec<u8>);

/// PFCP datagrams that wait in the socket of one that has no ports.
const EARLY: usize = 64;

/// A port's MAC address.
fn mac(port: PortIndex) -> MacAddr {
    MacAddr([2, 0xff, 0, 0, 0, port.0 as u8])
}

fn now(moment: control::Now) -> Now {
    Now {
        monotonic: moment.at,
        ntp: ntp_seconds(moment.unix.into()),
    }
}

impl UserPlane {
    /// One that has just started. `random` differs from start to start.
    pub fn new(
        start: config::start::UserPlane,
        kept: Memory,
        random: u32,
        moment: control::Now,
    ) -> Self {
        let node = userplane::node(&start, now(moment), random);
        let engine = userplane::engine_config(&start, random);
        let last = kept.document();
        let mut up = UserPlane {
            configured: Configured::new(kept),
            open: BTreeSet::new(),
            misses_device: false,
            early: VecDeque::new(),
            moment,
            node,
            engine: Engine::new(engine),
            policies: PolicyNumbers::default(),
            redirection: Redirection::new(start.address, Vec::new()),
            workers: Workers::new(start.workers),
            punts: vec![VecDeque::new(); start.workers.into()],
            told: vec![false; start.workers.into()],
            nets: BTreeSet::new(),
            associations: 0,
            spent: Duration::ZERO,
            modelled: Duration::ZERO,
            sent: VecDeque::new(),
            start,
        };
        if let Some(last) = last {
            let done = up.resume(&last, read(&last), moment.unix.into());
            done.expect("it could be done before");
        }
        up
    }

    /// It waits to be told its ports.
    fn is_blank(&self) -> bool {
        self.configured.in_force().is_none()
    }

    /// The document that it goes by.
    pub fn in_force(&self) -> Option<InForce> {
        self.configured.in_force().cloned()
    }

    /// What is wrong with a document.
    pub fn judge(&self, document: &Document) -> Vec<DocumentFault> {
        self.validate(read(document))
    }

    /// It is to become what a document says.
    pub fn on_document(
        &mut self,
        moment: control::Now,
        document: Document,
    ) -> Result<Response, Refusal> {
        self.moment = moment;
        let answer = self.put_in_force(document);
        if !self.is_blank() {
            for (from, bytes) in std::mem::take(&mut self.early) {
                self.node.handle_datagram(moment.at, from, &bytes);
            }
        }
        self.settle(moment);
        answer
    }

    fn put_in_force(&mut self, document: Document) -> Result<Response, Refusal> {
        match self.configured.begin(document)? {
            Begun::Done(response) => Ok(response),
            Begun::Write(document) => {
                let written = self.configured.kept().begin(&document);
                let now = self.moment.unix.into();
                self.apply(&document, written, read(&document), now)
            }
        }
    }

    /// Time of the machine that its control thread took.
    pub fn spent(&self) -> Duration {
        self.spent - self.modelled
    }

    /// What it counted of sessions that it removed without being asked for their counters.
    pub fn unreported(&self) -> u64 {
        self.engine.counters.unreported_octets
    }

    /// What its PFCP entity counted.
    pub fn pfcp_counters(&self) -> pfcp::Counters {
        self.node.counters()
    }

    /// Waits until the workers have done everything that they were told; one that stands still has nothing to say in time.
    fn catch_up(&mut self) {
        self.settle(self.moment);
        while let Some(worker) = (0..self.workers.count()).find(|w| self.workers.has_commands(*w)) {
            self.work(self.moment, worker);
        }
    }

    /// What it holds: the control thread by itself, and against the worker.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::of(&self.start.node_id);
        let reports = self.node.open_tokens().collect();
        self.engine.compare(&mut ledger, &reports);
        let mut shown = Shown::default();
        let instance = InstanceIndex(0);
        let sessions = self.workers.entries().map(|(entry, whole)| Held::Session {
            entry: entry.clone(),
            whole,
        });
        let routes = self.workers.routes();
        let routes = routes.map(|(net, index)| Held::HostRoute(instance, net, index));
        for (part, found) in [
            (Part::FIRST, Vec::from_iter(sessions)),
            (Part::Routes(instance, None), Vec::from_iter(routes)),
        ] {
            shown.touched.sessions.extend(self.workers.commanded());
            let piece = Piece {
                part,
                found,
                next: None,
                workers: 1, // all of them in one piece
            };
            shown.judge(&self.engine, &BTreeMap::new(), &piece);
        }
        shown.compare(&mut ledger);
        ledger
    }

    /// When [`UserPlane::on_timeout`] is due.
    pub fn poll_at(&self) -> Option<Duration> {
        let node = self.node.poll_at().filter(|_| !self.is_blank());
        [node, self.engine.poll_at()].into_iter().flatten().min()
    }

    /// Lets time pass.
    pub fn on_timeout(&mut self, moment: control::Now) {
        if !self.is_blank() {
            self.node.on_timeout(moment.at);
        }
        self.engine.on_timeout(now(moment));
        self.settle(moment);
    }

    /// What is to be sent next.
    pub fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// A worker for which, or from which, something waits; says so once until [`UserPlane::work`].
    pub fn poll_work(&mut self) -> Option<usize> {
        let mut workers = 0..self.workers.count();
        let worker = workers.find(|w| {
            let work = self.workers.has_commands(*w) || !self.punts[*w].is_empty();
            work && !self.told[*w]
        })?;
        self.told[worker] = true;
        Some(worker)
    }

    /// A worker stands still, or goes on.
    pub fn stand_still(&mut self, worker: usize, still: bool) {
        self.workers.stand_still(worker, still);
    }

    /// A PFCP datagram came.
    pub fn on_pfcp(&mut self, moment: control::Now, from: SocketAddr, bytes: &[u8]) {
        let begin = Instant::now();
        match self.is_blank() {
            false => self.node.handle_datagram(moment.at, from, bytes),
            true if self.early.len() < EARLY => self.early.push_back((from, bytes.to_vec())),
            true => {}
        }
        self.spent += begin.elapsed();
        self.settle(moment);
    }

    /// A GTP-U datagram came.
    pub fn on_gtpu(&mut self, moment: control::Now, from: SocketAddr, bytes: &[u8]) {
        let begin = Instant::now();
        let verdict = self
            .redirection
            .receive(&self.engine, moment.at, from.ip(), bytes);
        self.spent += begin.elapsed();
        match verdict {
            Verdict::Send(port, frame) => self.sent.push_back(Sent::Frame(port, frame.to_vec())),
            Verdict::Reply(reply) => self.sent.push_back(Sent::Gtpu(from.ip(), reply)),
            Verdict::Done => {}
        }
    }

    /// A frame of a home came; why it was dropped, if it was.
    pub fn on_frame(&mut self, port: PortIndex, frame: &[u8]) -> Option<&'static str> {
        if !self.open.contains(&port) {
            return Some("no-such-port");
        }
        match self.workers.uplink(port, frame) {
            // The network card chooses by the addresses.
            UplinkResult::Discovery => {
                self.punt(usize::from(frame[11]), (None, port, frame.to_vec()))
            }
            UplinkResult::Control(index) => {
                self.punt(index.0 as usize, (Some(index), port, frame.to_vec()))
            }
            UplinkResult::Forward(packet) => self.sent.push_back(Sent::Internet(packet)),
            UplinkResult::Drop(why) => return Some(why),
        }
        None
    }

    fn punt(&mut self, number: usize, punt: Punt) {
        let worker = number % self.punts.len();
        self.punts[worker].push_back(punt);
    }

    /// A packet of the internet came; false if it was dropped.
    pub fn on_packet(&mut self, packet: &[u8]) -> bool {
        let frame = self.workers.downlink(packet);
        let sent = frame.map(|(port, frame)| self.sent.push_back(Sent::Frame(port, frame)));
        sent.is_some()
    }

    /// A worker comes to what it was told, and the control thread to what the worker says.
    pub fn work(&mut self, moment: control::Now, worker: usize) {
        self.told[worker] = false;
        let heard = self.workers.obey(worker);
        let begin = Instant::now();
        for heard in heard {
            match heard {
                WorkerEvent::Refused(index, reason) => self.engine.worker_refused(index, reason),
                WorkerEvent::Usage(index, usage, gone) => {
                    association::count(&mut self.engine, now(moment), index, usage, gone);
                }
            }
        }
        for (session, port, frame) in std::mem::take(&mut self.punts[worker]) {
            let whose = session.map(|index| self.engine.from_subscriber(index, &frame));
            match whose {
                Some(FromSubscriber::Answer(reply)) => {
                    self.sent.push_back(Sent::Frame(port, reply));
                    continue;
                }
                Some(FromSubscriber::Taken) => continue,
                Some(FromSubscriber::Pass) | None => {}
            }
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
                .extend(wrapped.map(|(to, bytes)| Sent::Gtpu(to, bytes)));
        }
        self.spent += begin.elapsed();
        self.settle(moment);
    }

    fn settle(&mut self, moment: control::Now) {
        let begin = Instant::now();
        while self.settle_node(moment) | self.settle_engine(moment) {}
        self.spent += begin.elapsed();
    }

    fn settle_node(&mut self, moment: control::Now) -> bool {
        let mut any = false;
        while !self.is_blank()
            && let Some(output) = self.node.poll_output()
        {
            any = true;
            match output {
                pfcp::Output::Transmit { to, bytes } => {
                    self.sent.push_back(Sent::Pfcp(to.ip(), bytes));
                }
                pfcp::Output::Event(event) => {
                    self.associations +=
                        u32::from(matches!(event, pfcp::Event::AssociationUp { .. }));
                    association::hear(&self.node, &mut self.engine, now(moment), event);
                }
            }
        }
        any
    }

    fn settle_engine(&mut self, moment: control::Now) -> bool {
        let mut any = false;
        while let Some(output) = self.engine.poll_output() {
            any = true;
            match association::carry(&mut self.node, &mut self.engine, moment.at, output) {
                Some(Output::Worker(command)) => {
                    let begin = Instant::now();
                    self.workers.command(command);
                    self.modelled += begin.elapsed();
                }
                Some(Output::Send(port, frame)) => self.sent.push_back(Sent::Frame(port, frame)),
                Some(Output::AddNet(_, net)) => drop(self.nets.insert(net)),
                Some(Output::RemoveNet(_, net)) => drop(self.nets.remove(&net)),
                Some(Output::Respond { .. } | Output::Report { .. }) | None => {} // carried
            }
        }
        any
    }
}

impl Managed for UserPlane {
    type Kept = Memory;

    fn configured(&mut self) -> &mut Configured<Memory> {
        &mut self.configured
    }

    fn check(&self, _: &UserPlaneDocument) -> Vec<Fault> {
        let missing = self.misses_device.then_some(MISSING_DEVICE);
        missing.map(Fault::of_document).into_iter().collect()
    }

    /// As `configure` does: sessions of ports that go end first, then everything has its new name.
    fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let faults = self.check(document);
        if !faults.is_empty() {
            return Err(faults);
        }
        let all = (0..).map(PortIndex).zip(PORTS);
        let named: Vec<(PortIndex, &str)> = all
            .filter(|(_, name)| document.ports.contains_key(*name))
            .collect();
        let open: BTreeSet<PortIndex> = named.iter().map(|(port, _)| *port).collect();
        for port in self.open.difference(&open) {
            self.engine.end_port(*port);
        }
        self.catch_up();
        self.open = open;
        let tunnels = named
            .iter()
            .map(|(port, name)| (*port, name.as_bytes().to_vec()));
        self.redirection.set_ports(tunnels.clone().collect());
        self.engine.set_layout(Layout {
            access_ports: tunnels
                .map(|(port, name)| (name, (port, mac(port))))
                .collect(),
            instances: HashMap::from([("default".to_owned(), InstanceIndex(0))]),
            policies: self.policies.clone(),
            address: Some(self.start.address),
        });
        self.engine.set_hold(match document.hold_sessions {
            HoldSessions::Forever => None,
            HoldSessions::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
        });
        Ok(())
    }
}

/// Where GTP-U is served.
pub fn gtpu_at(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, gtpu::PORT)
}
