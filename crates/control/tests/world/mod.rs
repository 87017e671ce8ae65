//! A control plane, a user plane that only keeps rules, homes and a store, in one thread on a clock of its own.

use control::store::Record;
use control::{ControlPlane, Input, Now, Output, Restored};
use core::net::SocketAddr;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{Answer, Request, Response, Session};
use pfcp::bng::Facts;
use pfcp::{Config, Event, Node, Role};
use radius::Radius;
use std::collections::{BTreeMap, VecDeque};
pub use user_plane::UserPlane;
use wire::eth::Frame;
use wire::pfcp::{Cause, Message, NodeId, ntp_seconds};
use wire::{gtpu, nsh};

pub mod radius;
mod user_plane;

const CP: &str = "192.0.2.1";
const UP: &str = "192.0.2.2";
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
    batches: u64,
    pub homes: Vec<Home>,
    pub radius: Radius,
    config: String,
    answers: VecDeque<Answer>,
    /// Frames of homes on their way to the user plane.
    frames: VecDeque<Vec<u8>>,
    _users: tempfile::NamedTempFile,
}

/// A configuration whose ports, pools and limits a test may choose.
pub struct Choice {
    pub access_ports: &'static str,
    pub ipv4_pool: Option<&'static str>,
    pub ipv6_pool: Option<&'static str>,
    pub sessions: u32,
    pub half_open: u32,
    pub accounting_records: u32,
    /// AAA by RADIUS instead of the users file.
    pub radius: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice {
            access_ports: "{port: access0}",
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

impl World {
    pub fn new(homes: usize, choice: Choice) -> Self {
        use std::io::Write;
        let mut users = tempfile::NamedTempFile::new().unwrap();
        writeln!(users, "users:").unwrap();
        for n in 0..homes {
            writeln!(users, "  - {{name: home{n}, password: secret{n}}}").unwrap();
        }
        let pool = |key: &str, prefix: Option<&str>| {
            prefix.map_or(String::new(), |p| format!("    {key}: {p}\n"))
        };
        let aaa = match choice.radius {
            true => "{radius: {servers: [{address: 192.0.2.9, secret: testing123}], interim-interval: 0}}".into(),
            false => format!("{{users-file: {}}}", users.path().display()),
        };
        let config = format!(
            "node-id: cp1
address: {CP}
limits: {{sessions: {}, half-open: {}, accounting-records: {}}}
user-planes: [{{node-id: up1, address: {UP}, access-ports: [{}]}}]
network-instances:
  default:
    gateway: 100.64.0.1
{}{}    dns: [192.0.2.53, '2001:db8::53']
aaa: {aaa}
",
            choice.sessions,
            choice.half_open,
            choice.accounting_records,
            choice.access_ports,
            pool("ipv4-pool", choice.ipv4_pool),
            pool("ipv6-pool", choice.ipv6_pool),
        );
        let now = Duration::from_secs(1000);
        let mut world = World {
            now,
            plane: start(&config, &BTreeMap::new(), moment(now, 0)),
            up: UserPlane::new(7),
            cut: false,
            held_up: None,
            establishments: Vec::new(),
            disk_stalls: false,
            store: BTreeMap::new(),
            on_disk: None,
            wall_step: 0,
            batches: 0,
            homes: (0..homes).map(home).collect(),
            radius: Radius::default(),
            config,
            answers: VecDeque::new(),
            frames: VecDeque::new(),
            _users: users,
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

    pub fn moment(&self) -> Now {
        moment(self.now, self.wall_step)
    }

    pub fn dial(&mut self, n: usize) {
        self.homes[n].dial(self.now);
        self.settle();
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

    pub fn call(&mut self, call: Request) -> Answer {
        let now = self.moment();
        self.plane.handle(now, Input::Call { ticket: 1, call });
        self.settle();
        self.answers.pop_front().expect("an answer")
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
        self.plane = start(&self.config, &self.store, self.moment());
        self.settle();
    }

    /// The user plane dies and comes back knowing nothing.
    pub fn restart_user_plane(&mut self) {
        self.up = UserPlane::new(8);
        self.settle();
    }

    /// The user plane reports so many octets of every session, of its own accord.
    pub fn user_plane_reports(&mut self, octets: u64) {
        self.up.report(self.now, octets);
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
        while self.settle_homes() | self.settle_control() | self.settle_user() {}
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
        }
        any
    }

    /// What the packet path does with a control packet: the session's tunnel if it belongs to one, else the default.
    pub fn redirect(&mut self, bytes: &[u8]) {
        let frame = Frame::parse(bytes).unwrap();
        let packet = wire::pppoe::Packet::parse(frame.payload).unwrap();
        let own = self.up.facts().find_map(|facts| match facts {
            Facts::Session(s)
                if packet.session_id != 0 && s.pppoe_session_id == packet.session_id =>
            {
                Some(s.tunnel.uplink)
            }
            Facts::Default(d) if packet.session_id == 0 => Some(d.tunnel.uplink),
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

    fn settle_control(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.plane.poll_output() {
            any = true;
            match output {
                Output::Pfcp { bytes, .. } if bytes[1] == 52 && self.held_up.is_some() => {
                    self.held_up
                        .iter_mut()
                        .for_each(|held| held.push(bytes.clone()));
                }
                Output::Pfcp { bytes, .. } if !self.cut => {
                    self.up.node.handle_datagram(self.now, at(CP, 8805), &bytes);
                    if bytes[1] == 50 {
                        self.establishments.push(bytes);
                    }
                }
                Output::Gtpu { bytes, .. } if !self.cut => self.deliver(&bytes),
                Output::Store(records) => self.write(records),
                Output::Radius { socket, to, bytes } => {
                    if let Some(bytes) = self.radius.serve(socket, &bytes) {
                        let now = self.moment();
                        let input = Input::Radius {
                            socket,
                            from: to,
                            bytes: &bytes,
                        };
                        self.plane.handle(now, input);
                    }
                }
                Output::Answer { answer, .. } => self.answers.push_back(answer),
                _ => {}
            }
        }
        any
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
        let is_default = self.up.facts().any(
            |f| matches!(f, Facts::Default(d) if d.tunnel.downlink.is_some_and(|t| t.teid == teid)),
        );
        let frame = if is_default {
            nsh::Packet::parse(payload).unwrap().frame
        } else {
            payload
        };
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

fn start(config: &str, store: &BTreeMap<Vec<u8>, Vec<u8>>, moment: Now) -> ControlPlane {
    let live = store.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let restored = Restored::read(live, ntp_seconds(moment.unix.into()), "boot").unwrap();
    let seed = [moment.at.as_secs() as u8; 32];
    ControlPlane::new(
        config::parse(config, "cp.yaml").unwrap(),
        restored,
        seed,
        moment,
    )
    .unwrap()
}

fn home(n: usize) -> Home {
    let mac = [2, 0, 0, 0, (n >> 8) as u8, n as u8].into();
    let mut config = HomeConfig::new(
        mac,
        100,
        1 + n as u16,
        format!("home{n}"),
        format!("secret{n}"),
    );
    config.echo_interval = Some(Duration::from_secs(10));
    Home::new(config, n as u64)
}
