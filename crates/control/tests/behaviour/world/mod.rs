//! A control plane, a user plane that only keeps rules, homes and a store, in one thread on a clock of its own.

use aaa::Secret;
use config::{Checked, Configuration, Edit, Fault};
use control::plane::Effect;
use control::store::Record;
use control::{ControlPlane, Dictionary, Input, Now, Output, Restored};
use core::net::SocketAddr;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{AaaServer, Answer, Request, Response, Session};
use pfcp::bng::DecodedRules;
use pfcp::{Config, Event, Node, Role};
use policy::Access;
use radius::Radius;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
pub use user_plane::UserPlane;
use wire::eth::{Frame, PPPOE_DISCOVERY};
use wire::pfcp::{Cause, Message, NodeId, SessionReportRequest, SluiceFeatures, ntp_seconds};
use wire::{gtpu, nsh};

pub mod radius;
pub mod user_plane;

const CP: &str = "192.0.2.1";
pub const UP: &str = "192.0.2.2";
/// Of another user plane, which a test may be.
const OTHER: &str = "192.0.2.33";
/// The access port that the user plane has.
const PORT: &[u8] = b"access0";
const EPOCH: u32 = 1_700_000_000;

fn at(host: &str, port: u16) -> SocketAddr {
    SocketAddr::new(host.parse().unwrap(), port)
}

pub struct World {
    pub now: Duration,
    pub plane: ControlPlane,
    pub up: UserPlane,
    /// No datagram passes between the planes.
    pub cut: bool,
    /// Session Modification Requests on their way to the user plane, while they are held up.
    pub held_up: Option<Vec<Vec<u8>>>,
    /// The Session Establishment Requests that the user plane got.
    pub establishments: Vec<Vec<u8>>,
    /// The disk does not answer.
    pub disk_stalls: bool,
    pub store: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What was on the disk when it began not to answer.
    on_disk: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Seconds by which the wall clock was set forward.
    pub wall_step: i64,
    /// The machine's run.
    pub boot: &'static str,
    pub batches: u64,
    pub homes: Vec<Home>,
    pub radius: Radius,
    pub configuration: Arc<Configuration>,
    /// As it was written.
    pub tree: serde_json::Value,
    /// A place of the configuration whose changes do not reach the control plane.
    pub frozen: Option<config::Path>,
    /// How often a plane was started again.
    lives: u32,
    /// Frames that homes got.
    pub heard: Vec<Vec<u8>>,
    /// Where PFCP datagrams went.
    pub told: Vec<SocketAddr>,
    /// When and where RADIUS requests went, and their codes.
    pub asked: Vec<(Duration, SocketAddr, u8)>,
    /// Datagrams and records that the control plane has sent and stored.
    pub said: u64,
    /// Blocks of events that the history has on its disk.
    pub history: Vec<(u64, Vec<u8>)>,
    /// The history's disk does not answer.
    pub history_stalls: bool,
    /// Passwords are not compared with their hashes.
    pub verifiers_stall: bool,
    /// Comparisons that wait: ticket, hash, password.
    pub to_verify: VecDeque<(u64, Secret, Secret)>,
    /// How much of the history is to be kept.
    pub history_bounds: Option<control::history::Bounds>,
    answers: VecDeque<Answer>,
    /// Answers to requests of the RADIUS server.
    pub obeyed: VecDeque<Vec<u8>>,
    /// UDP port on which the control plane listens for these.
    pub dynamic_port: Option<u16>,
    /// Sockets that the RADIUS clients have.
    pub radius_sockets: BTreeMap<(bool, u16), control::RadiusSocket>,
    /// Servers over TCP and TLS.
    pub radius_servers: control::RadiusServers,
    /// PFCP datagrams to the other user plane.
    pub to_other: VecDeque<Vec<u8>>,
    /// Frames of homes on their way to the user plane.
    frames: VecDeque<Vec<u8>>,
    /// Discovery packets that homes sent.
    pub asked_for: Vec<Vec<u8>>,
}

/// A configuration whose ports, pools and limits a test may choose.
pub struct Choice {
    pub access_ports: &'static str,
    pub ipv4_pool: Option<&'static str>,
    pub ipv6_pool: Option<&'static str>,
    pub sessions: u32,
    pub half_open: u32,
    pub accounting_records: u32,
    /// AAA by RADIUS instead of users.
    pub radius: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice {
            access_ports: "access0: {role: access, device: a}",
            ipv4_pool: Some("{prefix: 100.64.0.0/16}"),
            ipv6_pool: Some("{prefix: '2001:db8:100::/48'}"),
            sessions: 1000,
            half_open: 1000,
            accounting_records: 1000,
            radius: false,
        }
    }
}

impl Choice {
    /// AAA by RADIUS, all else as usual.
    pub fn radius() -> Self {
        Choice {
            radius: true,
            ..Choice::default()
        }
    }
}

impl Choice {
    /// The configuration, with a user for each home.
    pub fn document(&self, homes: usize) -> String {
        let pool = |key: &str, pool: Option<&str>| {
            pool.map_or(String::new(), |pool| format!("{key}: {{homes: {pool}}}\n"))
        };
        let aaa = match self.radius {
            true => "    server-group: radius
aaa:
  servers: {one: {address: 192.0.2.9, secret-key: testing123}}
  server-groups: {radius: {servers: [one], interim-interval: 0, interim-jitter: 0}}
"
            .into(),
            false => {
                let users = (0..homes).map(|n| format!("  home{n}: {{password: secret{n}}}\n"));
                format!("users:\n{}", users.collect::<String>())
            }
        };
        format!(
            "limits: {{sessions: {}, half-open: {}, accounting-records: {}}}
network-instances: {{default: {{gateway: [100.64.0.1]}}}}
user-planes:
  up1:
    address: {UP}
    management: /run/up1.sock
    ports: {{{}}}
subscriber-profiles: {{home: {{dns: [192.0.2.53, '2001:db8::53']}}}}
{}{}access-profiles:
  pppoe:
    subscriber-profile: home
{aaa}",
            self.sessions,
            self.half_open,
            self.accounting_records,
            self.access_ports
                .replace('}', ", segments: {all: {access-profile: pppoe}}}"),
            pool("ipv4-pools", self.ipv4_pool),
            pool("ipv6-pools", self.ipv6_pool),
        )
    }
}

impl World {
    pub fn new(homes: usize, choice: Choice) -> Self {
        World::of(homes, &choice.document(homes))
    }

    /// A world of this configuration.
    pub fn of(homes: usize, document: &str) -> Self {
        let checked = checked(document);
        let (tree, configuration) = (checked.tree, checked.configuration);
        let now = Duration::from_secs(1000);
        let mut world = World {
            now,
            plane: start(
                &configuration,
                &BTreeMap::new(),
                moment(now, 0),
                0,
                0,
                "first",
            ),
            up: UserPlane::new(7),
            cut: false,
            held_up: None,
            establishments: Vec::new(),
            disk_stalls: false,
            store: BTreeMap::new(),
            on_disk: None,
            wall_step: 0,
            boot: "first",
            batches: 0,
            homes: (0..homes).map(home).collect(),
            radius: Radius::default(),
            configuration,
            tree,
            frozen: None,
            lives: 0,
            heard: Vec::new(),
            told: Vec::new(),
            asked: Vec::new(),
            said: 0,
            history: Vec::new(),
            history_stalls: false,
            history_bounds: None,
            verifiers_stall: false,
            to_verify: VecDeque::new(),
            answers: VecDeque::new(),
            obeyed: VecDeque::new(),
            dynamic_port: None,
            radius_sockets: BTreeMap::new(),
            radius_servers: BTreeMap::new(),
            to_other: VecDeque::new(),
            frames: VecDeque::new(),
            asked_for: Vec::new(),
        };
        world.run(Duration::from_secs(2));
        world
    }

    /// Homes that stay however long they hear nothing.
    pub fn with_patient_homes(homes: usize) -> Self {
        let mut world = World::new(homes, Choice::default());
        for home in &mut world.homes {
            let patient = HomeConfig {
                echo_interval: None,
                ..home.config().clone()
            };
            *home = Home::new(patient, 1);
        }
        world
    }

    /// Changes the configuration as an operator does, line by line; what it does.
    pub fn configure(&mut self, lines: &[&str]) -> Result<Vec<Effect>, Vec<Fault>> {
        let mut tree = self.tree.clone();
        for line in lines {
            let edit = Edit::parse(line).unwrap();
            edit.apply(&mut tree).unwrap();
        }
        if let Some(frozen) = &self.frozen {
            put_back(&mut tree, &self.tree, frozen.steps());
        }
        let checked = config::check::check(&tree)?;
        let configuration = checked.configuration;
        let now = self.moment();
        let planned = self.plane.plan(now, &configuration);
        let done = self.plane.reconfigure(now, configuration.clone());
        assert_eq!(planned, done, "what was planned is done");
        if done.is_ok() {
            (self.tree, self.configuration) = (checked.tree, configuration);
            self.plane.user_plane_was_told(now, "up1");
        }
        self.settle();
        done
    }

    /// No resource is leaked, and none is missing.
    #[track_caller]
    pub fn assert_balanced(&self) {
        let ledger = self.plane.ledger();
        assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    }

    pub fn moment(&self) -> Now {
        moment(self.now, self.wall_step)
    }

    pub fn dial(&mut self, n: usize) {
        self.homes[n].dial(self.now);
        self.settle();
    }

    /// The only home is replaced by the one of this number, which dials. The session of the one before stays.
    #[allow(dead_code)] // not every program that has this world
    pub fn dial_instead(&mut self, n: usize) {
        self.homes = vec![home(n)];
        self.dial(0);
    }

    /// A home's router is switched off and on, without a goodbye. Its next session has another Host-Uniq.
    pub fn switch_off_and_on(&mut self, n: usize) {
        let config = self.homes[n].config().clone();
        self.homes[n] = Home::new(config, 1000 + self.now.as_millis() as u64);
    }

    pub fn hang_up(&mut self, n: usize) {
        self.homes[n].hang_up(self.now);
        self.settle();
    }

    pub fn dial_all(&mut self) {
        (0..self.homes.len()).for_each(|n| self.dial(n));
        self.run(Duration::from_secs(10));
    }

    pub fn online(&self) -> usize {
        self.homes
            .iter()
            .filter(|h| h.state() == State::Online)
            .count()
    }

    pub fn stored_sessions(&self) -> usize {
        self.stored(b"session/")
    }

    /// The numbers that the store keeps.
    pub fn numbers(&self) -> Vec<String> {
        let keys = self.store.keys().filter(|key| key.starts_with(b"number/"));
        keys.map(|key| key.escape_ascii().to_string()).collect()
    }

    /// Whether an edit can be carried out.
    pub fn can_edit(&self, line: &str) -> bool {
        let edit = Edit::parse(line).unwrap();
        edit.apply(&mut self.tree.clone()).is_ok()
    }

    /// Accounting records that no server has yet.
    pub fn stored_records(&self) -> usize {
        self.stored(b"accounting/")
    }

    fn stored(&self, prefix: &[u8]) -> usize {
        let keys = self.store.keys();
        keys.filter(|key| key.starts_with(prefix)).count()
    }

    pub fn count(&self, counter: control::counters::Counter) -> u64 {
        self.plane.counters().get(counter)
    }

    /// The RADIUS server at an address asks for something.
    pub fn order(&mut self, host: &str, bytes: &[u8]) {
        let (now, from) = (self.moment(), at(host, 40_000));
        let input = Input::DynamicAuthorization { from, bytes };
        self.plane.handle(now, input);
        self.settle();
    }

    pub fn call(&mut self, call: Request) -> Answer {
        let now = self.moment();
        self.plane.handle(now, Input::Call { ticket: 1, call });
        self.settle();
        self.answers.pop_front().expect("an answer")
    }

    pub fn aaa_servers(&mut self) -> Vec<AaaServer> {
        match self.call(Request::ListAaaServers) {
            Ok(Response::AaaServers { servers }) => servers,
            other => panic!("{other:?}"),
        }
    }

    pub fn sessions(&mut self) -> Vec<Session> {
        let (mut sessions, mut from) = (Vec::new(), Some(0));
        while let Some(place) = from {
            match self.call(Request::ListSessions { from: place }) {
                Ok(Response::Sessions {
                    sessions: more,
                    next,
                }) => {
                    sessions.extend(more);
                    from = next;
                }
                other => panic!("{other:?}"),
            }
        }
        sessions.sort_by(|a, b| a.id.cmp(&b.id));
        sessions
    }

    /// The control plane dies and comes back with what its store holds.
    pub fn restart_control_plane(&mut self) {
        self.batches = 0;
        if let Some(on_disk) = self.on_disk.take() {
            (self.store, self.disk_stalls) = (on_disk, false);
        }
        self.lives += 1;
        let seed = self.lives as u8;
        let last = self.last_block();
        self.plane = start(
            &self.configuration,
            &self.store,
            self.moment(),
            seed,
            last,
            self.boot,
        );
        self.settle();
    }

    /// The user plane dies and comes back knowing nothing.
    pub fn restart_user_plane(&mut self) {
        self.lives += 1;
        self.up = UserPlane::new(7 + self.lives);
        self.settle();
    }

    /// From now on, the user plane lets requests about sessions wait.
    pub fn be_late(&mut self) {
        self.up.late = Some(Vec::new());
    }

    /// The user plane answers what waits, and waits no more.
    pub fn answer_late(&mut self) {
        for (id, seid, message) in self.up.late.take().unwrap_or_default() {
            let (cp_seid, response) = self.up.serve(seid, message);
            self.up.node.respond(id, cp_seid, response);
        }
        self.settle();
    }

    /// The user plane answers what waits, and lets deletions wait on.
    pub fn answer_late_but_deletions(&mut self) {
        let late = self.up.late.take().unwrap_or_default().into_iter();
        let (deletions, others) =
            late.partition(|(_, _, message)| matches!(message, Message::SessionDeletionRequest(_)));
        self.up.late = Some(others);
        self.answer_late();
        self.up.late = Some(deletions);
    }

    /// An earlier user plane takes the place of the one that was there: it has these features, and says neither its lanes nor which
    /// settings it knows.
    pub fn with_earlier_user_plane(&mut self, features: SluiceFeatures) {
        self.lives += 1;
        self.up = UserPlane::of_before(7 + self.lives, features);
        self.settle();
    }

    /// A user plane that watches subscribers takes the place of the one that was there.
    pub fn with_watching_user_plane(&mut self) {
        self.lives += 1;
        self.up = UserPlane::watching(7 + self.lives);
        self.settle();
    }

    /// The user plane reports so many octets of every session, of its own accord.
    pub fn user_plane_reports(&mut self, octets: u64) {
        self.up.report(self.now, octets);
        self.settle();
    }

    /// The user plane repeats a report that it made before.
    pub fn user_plane_repeats(&mut self, report: (u64, SessionReportRequest)) {
        self.up.report_again(self.now, report);
        self.settle();
    }

    /// The user plane asks for an association.
    pub fn user_plane_calls(&mut self) {
        self.up.node.add_peer(self.now, at(CP, 8805));
        self.up.node.on_timeout(self.now);
        self.settle();
    }

    /// Datagrams of the control plane that were on their way for long reach the user plane.
    pub fn arrive_late(&mut self, datagrams: &[Vec<u8>]) {
        for bytes in datagrams {
            let node = &mut self.up.node;
            node.handle_datagram(self.now, at(CP, 8805), bytes);
        }
        self.settle();
    }

    /// Somebody at another address asks for an association: what it hears.
    pub fn call_as(&mut self, address: &str, name: &str) -> Vec<Option<Cause>> {
        let mut caller = Node::new(Config::new(Role::User, NodeId::Fqdn(name.into()), 99));
        caller.add_peer(self.now, at(CP, 8805));
        caller.on_timeout(self.now);
        let from = at(address, 8805);
        while let Some(pfcp::Output::Transmit { bytes, .. }) = caller.poll_output() {
            let input = Input::Pfcp {
                from,
                bytes: &bytes,
            };
            self.plane.handle(self.moment(), input);
        }
        let mut heard = Vec::new();
        while let Some(Output::Pfcp { to, bytes }) = self.plane.poll_output() {
            assert_eq!(to, from);
            heard.push(wire::pfcp::parse(&bytes).unwrap().packet.message.cause());
        }
        heard
    }

    /// Another user plane says what it has to say; what it hears.
    pub fn settle_other(&mut self, other: &mut Node) -> Vec<Event> {
        let mut heard = Vec::new();
        loop {
            while let Some(output) = other.poll_output() {
                match output {
                    pfcp::Output::Transmit { bytes, .. } => {
                        let (from, bytes) = (at(OTHER, 8805), &*bytes);
                        let input = Input::Pfcp { from, bytes };
                        self.plane.handle(self.moment(), input);
                    }
                    pfcp::Output::Event(event) => heard.push(event),
                }
            }
            self.settle();
            if self.to_other.is_empty() {
                return heard;
            }
            for bytes in self.to_other.drain(..) {
                other.handle_datagram(self.now, at(CP, 8805), &bytes);
            }
        }
    }

    /// Lets time pass, in order of what is due.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.settle();
            let homes = self.homes.iter().filter_map(Home::poll_at);
            let due = homes
                .chain(self.plane.poll_at())
                .chain(self.up.node.poll_at())
                .min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            let now = self.moment();
            self.plane.on_timeout(now);
            self.up.node.on_timeout(self.now);
            self.homes
                .iter_mut()
                .for_each(|home| home.on_timeout(self.now));
        }
        self.now = end;
    }

    /// The disk does not answer: what is written from now on is lost with the control plane.
    pub fn stall_disk(&mut self) {
        (self.on_disk, self.disk_stalls) = (Some(self.store.clone()), true);
    }

    /// The disk answers again.
    pub fn disk_recovers(&mut self) {
        (self.on_disk, self.disk_stalls) = (None, false);
        let now = self.moment();
        self.plane.handle(now, Input::Durable(self.batches));
        self.settle();
    }

    /// Carries everything to where it goes until nobody has anything to say.
    pub fn settle(&mut self) {
        while self.settle_homes() | self.settle_control() | self.settle_user() | self.verify() {}
    }

    fn settle_homes(&mut self) -> bool {
        for home in &mut self.homes {
            while let Some(output) = home.poll_output() {
                if let cpe::Output::Frame(frame) = output {
                    self.frames.push_back(frame);
                }
            }
        }
        let any = !self.frames.is_empty();
        while let Some(frame) = self.frames.pop_front() {
            self.redirect(&frame);
            let is_discovery = Frame::parse(&frame).unwrap().header.ethertype == PPPOE_DISCOVERY;
            self.asked_for.extend(is_discovery.then_some(frame));
        }
        any
    }

    /// What the packet path does with a control packet: the session's tunnel if it belongs to one, else the default.
    pub fn redirect(&mut self, bytes: &[u8]) {
        let frame = Frame::parse(bytes).unwrap();
        let packet = wire::pppoe::Packet::parse(frame.payload).unwrap();
        // whose session is the latest sends most
        let own = self.up.decoded().rev().find_map(|decoded| match decoded {
            DecodedRules::Session(s)
                if packet.session_id != 0 && s.access == Access::Pppoe(packet.session_id) =>
            {
                Some(s.tunnel.uplink)
            }
            DecodedRules::Default(d) if packet.session_id == 0 => Some(d.tunnel.uplink),
            _ => None,
        });
        let Some(tunnel) = own else {
            return;
        };
        let mut inner = bytes.to_vec();
        if packet.session_id == 0 {
            inner.clear();
            nsh::Packet {
                logical_port: PORT,
                frame: bytes,
            }
            .emit(&mut inner)
            .unwrap();
        }
        self.tunnel(tunnel.teid, &inner);
    }

    /// A home begins LCP anew: it has to prove itself again, and its address families go and come again.
    pub fn begin_ppp_anew(&mut self, session: usize) {
        let rules = &self.up.subscribers()[session];
        let Access::Pppoe(session_id) = rules.access;
        let header = wire::eth::Header {
            destination: rules.circuit.gateway_mac,
            source: rules.circuit.mac,
            tags: rules.circuit.tags,
            ethertype: wire::eth::PPPOE_SESSION,
        };
        let mut frame = Vec::new();
        header.emit(&mut frame);
        let request = [0xc0, 0x21, wire::ppp::CONFIGURE_REQUEST, 99, 0, 4];
        let packet = wire::pppoe::Packet {
            code: 0,
            session_id,
            payload: &request,
        };
        packet.emit(&mut frame);
        self.redirect(&frame);
        self.settle();
    }

    /// A packet of a tunnel to the control plane.
    pub fn tunnel(&mut self, teid: u32, payload: &[u8]) {
        if self.cut {
            return;
        }
        let mut bytes = Vec::new();
        gtpu::emit_gpdu(teid, payload, &mut bytes).unwrap();
        let (now, from) = (self.moment(), at(UP, gtpu::PORT));
        self.plane.handle(
            now,
            Input::Gtpu {
                from,
                bytes: &bytes,
            },
        );
    }

    /// The helper threads do what waits, unless they stall.
    fn verify(&mut self) -> bool {
        if self.verifiers_stall || self.to_verify.is_empty() {
            return false;
        }
        for (ticket, hash, password) in std::mem::take(&mut self.to_verify) {
            let hash = str::from_utf8(hash.expose()).unwrap();
            let is_right = config::password::verify(hash, password.expose());
            let now = self.moment();
            self.plane
                .handle(now, Input::PasswordVerified { ticket, is_right });
        }
        true
    }

    fn settle_control(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.plane.poll_output() {
            any = true;
            self.said += u64::from(!matches!(output, Output::HistoryBounds(_)));
            match output {
                Output::Pfcp { bytes, .. } if bytes[1] == 52 && self.held_up.is_some() => {
                    self.held_up
                        .iter_mut()
                        .for_each(|held| held.push(bytes.clone()));
                }
                Output::Pfcp { to, bytes } if to == at(OTHER, 8805) => {
                    self.to_other.push_back(bytes);
                }
                Output::Pfcp { to, bytes } if !self.cut => {
                    self.told.push(to);
                    self.up.node.handle_datagram(self.now, at(CP, 8805), &bytes);
                    if bytes[1] == 50 {
                        self.establishments.push(bytes);
                    }
                }
                Output::Gtpu { bytes, .. } if !self.cut => self.deliver(&bytes),
                Output::Store(records) => self.write(records),
                Output::Radius { socket, to, bytes } => {
                    self.asked.push((self.now, to, bytes[0]));
                    if let Some(bytes) = self.radius.serve(to, socket, &bytes) {
                        let now = self.moment();
                        let input = Input::Radius {
                            socket,
                            from: to,
                            bytes: &bytes,
                        };
                        self.plane.handle(now, input);
                    }
                }
                Output::History { number, block } => self.keep(number, block),
                Output::HistoryBounds(bounds) => self.history_bounds = Some(bounds),
                Output::VerifyPassword {
                    ticket,
                    hash,
                    password,
                    ..
                } => self.to_verify.push_back((ticket, hash, password)),
                Output::Answer { answer, .. } => self.answers.push_back(answer),
                Output::DynamicAuthorization { bytes, .. } => self.obeyed.push_back(bytes),
                Output::DynamicPort(port) => self.dynamic_port = port,
                Output::RadiusSockets(wanted) => self.radius_sockets = wanted,
                Output::RadiusServers(servers) => self.radius_servers = servers,
                Output::RadiusSend { connection, bytes } => {
                    let (to, number) = (connection.connection.server, connection.connection.number);
                    self.asked.push((self.now, to, bytes[0]));
                    if let Some(bytes) = self.radius.serve(to, number, &bytes) {
                        let bytes = &bytes;
                        let input = Input::RadiusPacket { connection, bytes };
                        self.plane.handle(self.moment(), input);
                    }
                }
                _ => {}
            }
        }
        any
    }

    /// The history takes a block, unless it has it.
    fn keep(&mut self, number: u64, block: Vec<u8>) {
        if self.history_stalls {
            return;
        }
        if number > self.last_block() {
            self.history.push((number, block));
        }
        self.plane.handle(self.moment(), Input::Kept(number));
    }

    fn last_block(&self) -> u64 {
        self.history.last().map_or(0, |(number, _)| *number)
    }

    fn write(&mut self, records: Vec<Record>) {
        for record in records {
            match record.value {
                Some(value) => self.store.insert(record.key, value),
                None => self.store.remove(&record.key),
            };
        }
        self.batches += 1;
        if !self.disk_stalls {
            let now = self.moment();
            self.plane.handle(now, Input::Durable(self.batches));
        }
    }

    /// A packet of a tunnel to the user plane, which puts the frame on the access network.
    fn deliver(&mut self, bytes: &[u8]) {
        let gtpu::Packet::Gpdu { teid, payload } = gtpu::Packet::parse(bytes).unwrap() else {
            return;
        };
        let is_default = self.up.decoded().any(
            |f| matches!(f, DecodedRules::Default(d) if d.tunnel.downlink.is_some_and(|t| t.teid == teid)),
        );
        let frame = if is_default {
            nsh::Packet::parse(payload).unwrap().frame
        } else {
            payload
        };
        self.heard.push(frame.to_vec());
        let destination = Frame::parse(frame).unwrap().header.destination;
        for home in self
            .homes
            .iter_mut()
            .filter(|h| h.config().mac == destination)
        {
            home.handle_frame(self.now, frame);
        }
    }

    fn settle_user(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.up.node.poll_output() {
            any = true;
            match output {
                pfcp::Output::Transmit { bytes, .. } if !self.cut => {
                    let (now, from) = (self.moment(), at(UP, 8805));
                    self.plane.handle(
                        now,
                        Input::Pfcp {
                            from,
                            bytes: &bytes,
                        },
                    );
                }
                pfcp::Output::Event(Event::Request {
                    message: Message::SessionDeletionRequest(_),
                    ..
                }) if self.up.keeps_all => self.up.kept += 1,
                pfcp::Output::Event(Event::Request {
                    message: Message::SessionModificationRequest(_),
                    seid,
                    ..
                }) if self.up.silent_about_nets && self.up.is_default(seid) => {}
                pfcp::Output::Event(Event::Request {
                    message: message @ Message::SessionModificationRequest(_),
                    seid,
                    ..
                }) if self.up.silent_about_changes && !self.up.is_default(seid) => {
                    self.up.serve(seid, message);
                }
                pfcp::Output::Event(Event::Request { id, seid, message })
                    if self.up.late.is_some() && !self.up.is_default(seid) =>
                {
                    let late = self.up.late.as_mut().expect("it is there");
                    late.push((id, seid, message));
                }
                pfcp::Output::Event(Event::Request { id, seid, message }) => {
                    let (cp_seid, response) = self.up.serve(seid, message);
                    self.up.node.respond(id, cp_seid, response);
                }
                pfcp::Output::Event(Event::Response { message, .. }) => {
                    self.up.told.extend(message.cause())
                }
                _ => {}
            }
        }
        any
    }
}

fn moment(now: Duration, wall_step: i64) -> Now {
    let unix = i64::from(EPOCH) + now.as_secs() as i64 + wall_step;
    Now {
        at: now,
        unix: unix as u32,
    }
}

/// A document of the configuration's model, checked.
pub fn checked(document: &str) -> Checked {
    let checked = config::check::read(document);
    checked.unwrap_or_else(|faults| panic!("{faults:#?}\n{document}"))
}

/// Puts a place of a tree back to what it was.
fn put_back(tree: &mut serde_json::Value, old: &serde_json::Value, steps: &[String]) {
    let Some((first, rest)) = steps.split_first() else {
        return *tree = old.clone();
    };
    let empty = serde_json::Value::Null;
    let before = old.get(first);
    if rest.is_empty() && before.is_none() {
        tree.as_object_mut().map(|map| map.remove(first));
    } else if let Some(map) = tree.as_object_mut()
        && (map.contains_key(first) || before.is_some())
    {
        let below = map.entry(first).or_insert_with(|| serde_json::json!({}));
        put_back(below, before.unwrap_or(&empty), rest);
    }
}

fn start(
    configuration: &Arc<Configuration>,
    store: &BTreeMap<Vec<u8>, Vec<u8>>,
    moment: Now,
    seed: u8,
    last_block: u64,
    boot: &str,
) -> ControlPlane {
    let live = store.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let restored = Restored::read(live, ntp_seconds(moment.unix.into()), boot).unwrap();
    let restored = restored.behind_history(last_block);
    let file = format!("node-id: cp1\naddress: {CP}\n");
    let file: config::start::ControlPlane = config::parse(&file, "cp.yaml").unwrap();
    ControlPlane::new(
        &file,
        Dictionary::shipped(),
        configuration.clone(),
        restored,
        [seed; 32],
        moment,
    )
    .unwrap()
}

fn home(n: usize) -> Home {
    let [.., high, middle, low] = n.to_be_bytes();
    let mac = [2, 0, 0, high, middle, low].into();
    let mut config = HomeConfig::new(
        mac,
        100 + (n / 4000) as u16,
        1 + (n % 4000) as u16,
        format!("home{n}"),
        format!("secret{n}"),
    );
    config.echo_interval = Some(Duration::from_secs(10));
    Home::new(config, n as u64)
}
