//! A control plane, a user plane that only keeps rules, homes and a store, in one thread on a clock of its own.

use control::store::Record;
use control::{ControlPlane, Input, Now, Output, Restored};
use core::net::SocketAddr;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{Request, Response, Session};
use pfcp::bng::{Facts, RuleSet, SessionFacts};
use pfcp::{Config, Event, Node, Role};
use std::collections::{BTreeMap, VecDeque};
use wire::eth::Frame;
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{Cause, FSeid, Message, NodeId, ntp_seconds};
use wire::radius::{Code, Kind, Packet, Value, verify_access_request, verify_accounting_request};
use wire::{gtpu, nsh};

const CP: &str = "192.0.2.1";
const UP: &str = "192.0.2.2";
const EPOCH: u32 = 1_700_000_000;

fn at(host: &str, port: u16) -> SocketAddr {
    SocketAddr::new(host.parse().unwrap(), port)
}

/// What a user plane knows: rules by its own SEID.
pub struct UserPlane {
    node: Node,
    sessions: BTreeMap<u64, Held>,
    next_seid: u64,
    /// Sessions that the audit under way has named.
    named: std::collections::BTreeSet<u64>,
    epoch: u32,
    /// The cause that establishments of subscribers' sessions are refused with.
    pub refuse: Option<Cause>,
    /// The cause that changes of nets are refused with.
    pub refuse_nets: Option<Cause>,
    /// Sessions are not deleted, and nobody is told why.
    pub keeps_all: bool,
    /// What was answered to reports.
    pub told: Vec<Cause>,
}

/// A session: its rules, what they come to, and the control plane's SEID.
struct Held {
    rules: RuleSet,
    facts: Facts,
    cp_seid: u64,
    /// Usage reports so far.
    reports: u32,
}

impl Held {
    fn new(rules: RuleSet, cp_seid: u64) -> Self {
        let facts = rules.facts().expect("rules that can be served");
        Held {
            rules,
            facts,
            cp_seid,
            reports: 0,
        }
    }

    fn report(&mut self, urr_id: u32, octets: u64) -> wire::pfcp::UsageReport {
        self.reports += 1;
        wire::pfcp::UsageReport {
            urr_id,
            sequence: self.reports - 1,
            volume: Some(wire::pfcp::VolumeMeasurement {
                uplink_octets: Some(octets),
                downlink_octets: Some(2 * octets),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

impl UserPlane {
    fn new(recovery: u32) -> Self {
        let config = Config::new(Role::User, NodeId::Fqdn("up1".into()), recovery);
        UserPlane {
            node: Node::new(config),
            sessions: BTreeMap::new(),
            next_seid: 100,
            named: Default::default(),
            epoch: 0,
            refuse: None,
            refuse_nets: None,
            keeps_all: false,
            told: Vec::new(),
        }
    }

    fn facts(&self) -> impl Iterator<Item = &Facts> {
        self.sessions.values().map(|held| &held.facts)
    }

    /// What there is of subscribers, in order of the PPPoE session id.
    pub fn subscribers(&self) -> Vec<SessionFacts> {
        let session = |f: &Facts| match f {
            Facts::Session(s) => Some((**s).clone()),
            Facts::Default(_) => None,
        };
        let mut sessions: Vec<SessionFacts> = self.facts().filter_map(session).collect();
        sessions.sort_by_key(|s| s.pppoe_session_id);
        sessions
    }

    pub fn nets(&self) -> Vec<String> {
        let nets = self.facts().flat_map(|facts| match facts {
            Facts::Default(d) => d.nets.as_slice(),
            Facts::Session(_) => &[],
        });
        nets.map(|n| n.net.to_string()).collect()
    }

    fn audit(&mut self, audit: &wire::pfcp::Audit) -> wire::pfcp::AuditResult {
        if self.epoch != audit.epoch {
            self.epoch = audit.epoch;
            self.named.clear();
        }
        let mut result = wire::pfcp::AuditResult::default();
        for (place, (seid, digest)) in audit.sessions.iter().enumerate() {
            self.named.insert(*seid);
            let held = self.sessions.get(seid).map(|held| &held.facts);
            if !matches!(held, Some(Facts::Session(s)) if s.digest() == *digest) {
                result.wrong.push(place as u16);
            }
        }
        if audit.last {
            let unnamed = self.sessions.iter().filter(|(seid, held)| {
                matches!(held.facts, Facts::Session(_)) && !self.named.contains(seid)
            });
            let strangers = unnamed.take(AUDIT_BLOCK);
            result.strangers = strangers
                .map(|(seid, held)| (held.cp_seid, *seid))
                .collect();
            self.named
                .extend(result.strangers.iter().map(|(_, seid)| seid)); // each is told once
        }
        result
    }

    /// One session is gone, or its rules are damaged; nobody is told.
    pub fn forget_one(&mut self) {
        let subscriber = |(_, held): &(&u64, &Held)| matches!(held.facts, Facts::Session(_));
        let seid = *self.sessions.iter().find(subscriber).expect("a session").0;
        self.sessions.remove(&seid);
    }

    /// The default sessions are gone.
    #[allow(dead_code)] // the ledger's tests do this
    pub fn forget_default(&mut self) {
        let subscriber = |held: &Held| matches!(held.facts, Facts::Session(_));
        self.sessions.retain(|_, held| subscriber(held));
    }

    #[allow(dead_code)]
    pub fn forget_last(&mut self) {
        let subscriber = |(_, held): &(&u64, &Held)| matches!(held.facts, Facts::Session(_));
        let seid = *self.sessions.iter().rfind(subscriber).expect("a session").0;
        self.sessions.remove(&seid);
    }

    pub fn damage_one(&mut self) {
        let sessions = self.sessions.values_mut();
        let mut subscribers = sessions.filter_map(|held| match &mut held.facts {
            Facts::Session(facts) => Some(facts),
            Facts::Default(_) => None,
        });
        subscribers.next().expect("a session").ipv4 = None;
    }

    fn serve(&mut self, seid: u64, message: Message) -> (u64, Message) {
        match message {
            Message::SessionEstablishmentRequest(m) => {
                let cp = m.cp_f_seid.seid;
                let subscriber = !m.create_urrs.is_empty();
                if let Some(cause) = self.refuse.filter(|_| subscriber) {
                    let refusal = wire::pfcp::SessionEstablishmentResponse {
                        node_id: NodeId::Fqdn("up1".into()),
                        cause,
                        ..Default::default()
                    };
                    return (cp, refusal.into());
                }
                self.sessions.retain(|_, held| held.cp_seid != cp);
                self.next_seid += 1;
                let rules =
                    RuleSet::establish(m.clone()).expect("an establishment that can be served");
                self.sessions.insert(self.next_seid, Held::new(rules, cp));
                let response = wire::pfcp::SessionEstablishmentResponse {
                    node_id: NodeId::Fqdn("up1".into()),
                    cause: Cause::REQUEST_ACCEPTED,
                    up_f_seid: Some(FSeid::new(self.next_seid, UP.parse().unwrap())),
                    ..Default::default()
                };
                (cp, response.into())
            }
            Message::SessionModificationRequest(m) => self.modify(seid, &m),
            Message::SessionDeletionRequest(_) => {
                let mut gone = self.sessions.remove(&seid);
                let response = wire::pfcp::SessionDeletionResponse {
                    cause: match gone {
                        Some(_) => Cause::REQUEST_ACCEPTED,
                        None => Cause::SESSION_CONTEXT_NOT_FOUND,
                    },
                    usage_reports: gone.iter_mut().map(|held| held.report(1, 70)).collect(),
                    ..Default::default()
                };
                (gone.map_or(0, |held| held.cp_seid), response.into())
            }
            other => panic!("the control plane asks {}", other.name()),
        }
    }

    fn modify(&mut self, seid: u64, m: &wire::pfcp::SessionModificationRequest) -> (u64, Message) {
        let mut response = wire::pfcp::SessionModificationResponse {
            cause: Cause::REQUEST_ACCEPTED,
            ..Default::default()
        };
        let Some(held) = self.sessions.get_mut(&seid) else {
            response.cause = Cause::SESSION_CONTEXT_NOT_FOUND;
            return (0, response.into());
        };
        let cp_seid = held.cp_seid;
        if let Some(audit) = &m.audit {
            response.audit_result = Some(self.audit(audit));
            return (cp_seid, response.into());
        }
        let is_default = matches!(held.facts, Facts::Default(_));
        if let Some(cause) = self.refuse_nets.filter(|_| is_default) {
            response.cause = cause;
            return (cp_seid, response.into());
        }
        let rules = held
            .rules
            .modify(m)
            .expect("a modification that can be served");
        *held = Held {
            reports: held.reports,
            ..Held::new(rules, cp_seid)
        };
        let queries = m.query_urrs.iter();
        response.usage_reports = queries.map(|q| held.report(q.urr_id, 1000)).collect();
        (cp_seid, response.into())
    }

    /// Reports so many octets up, and twice as many down, of every session.
    fn report(&mut self, now: Duration, octets: u64) {
        for held in self.sessions.values_mut() {
            if let Facts::Session(_) = held.facts {
                let report = wire::pfcp::SessionReportRequest {
                    report_type: wire::pfcp::ReportType::USAGE,
                    usage_reports: vec![held.report(1, octets)],
                    ..Default::default()
                };
                let asked = self
                    .node
                    .request(now, at(CP, 8805), held.cp_seid, report, 0);
                asked.expect("an association");
            }
        }
    }
}

/// The RADIUS server: lets everybody in, and keeps the records. It knows a datagram that comes again (RFC 2866 §3).
#[derive(Default)]
pub struct Radius {
    /// Attributes of Access-Accept.
    pub accept: Vec<(Kind, Value)>,
    pub records: Vec<Packet>,
    /// Accounting requests with the number of the socket that they came from.
    pub datagrams: Vec<(u16, Vec<u8>)>,
    /// Does not answer.
    pub dead: bool,
    /// Does not take records.
    pub full: bool,
    /// Takes records, but the answers get lost.
    pub unheard: bool,
}

const SECRET: &[u8] = b"testing123";

impl Radius {
    fn serve(&mut self, socket: u16, bytes: &[u8]) -> Option<Vec<u8>> {
        let request = Packet::parse(bytes).unwrap();
        let mut reply = match request.code {
            _ if self.dead => return None,
            Code::ACCOUNTING_REQUEST if self.full => return None,
            Code::ACCOUNTING_REQUEST => {
                let datagram = (socket, bytes.to_vec());
                if !self.datagrams.contains(&datagram) {
                    self.records
                        .push(verify_accounting_request(bytes, SECRET).unwrap());
                }
                self.datagrams.push(datagram);
                if self.unheard {
                    return None;
                }
                Packet::new(Code::ACCOUNTING_RESPONSE, request.identifier, [0; 16])
            }
            _ => {
                verify_access_request(bytes, SECRET).unwrap();
                let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
                let attributes = self.accept.iter().cloned();
                attributes.for_each(|(kind, value)| accept.push(kind, value));
                accept
            }
        };
        reply.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; 16]);
        Some(reply.emit_response(&request.authenticator, SECRET).unwrap())
    }

    /// Acct-Status-Type of the records, in their order.
    pub fn kinds(&self) -> Vec<u32> {
        self.records
            .iter()
            .map(|r| number(r, Kind::ACCT_STATUS_TYPE))
            .collect()
    }
}

pub fn number(packet: &Packet, kind: Kind) -> u32 {
    match packet.get(kind) {
        Some(Value::Integer(n) | Value::Time(n)) => *n,
        other => panic!("{other:?}"),
    }
}

pub struct World {
    pub now: Duration,
    pub plane: ControlPlane,
    pub up: UserPlane,
    /// No datagram passes between the planes.
    pub cut: bool,
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
    answers: VecDeque<Response>,
    /// Frames of homes on their way to the user plane.
    frames: VecDeque<Vec<u8>>,
    _users: tempfile::NamedTempFile,
}

/// A configuration whose pools and limits a test may choose.
pub struct Choice {
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
user-planes: [{{node-id: up1, address: {UP}, access-ports: [{{port: access0}}]}}]
network-instances:
  default:
    gateway: 100.64.0.1
{}{}    dns: [192.0.2.53, '2001:db8::53']
aaa: {aaa}
",
            choice.sessions,
            choice.half_open,
            choice.accounting_records,
            pool("ipv4-pool", choice.ipv4_pool),
            pool("ipv6-pool", choice.ipv6_pool),
        );
        let now = Duration::from_secs(1000);
        let mut world = World {
            now,
            plane: start(&config, &BTreeMap::new(), moment(now, 0)),
            up: UserPlane::new(7),
            cut: false,
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

    pub fn call(&mut self, call: Request) -> Response {
        let now = self.moment();
        self.plane.handle(now, Input::Call { ticket: 1, call });
        self.settle();
        self.answers.pop_front().expect("an answer")
    }

    pub fn sessions(&mut self) -> Vec<Session> {
        match self.call(Request::ShowSessions) {
            Response::Sessions { sessions } => sessions,
            other => panic!("{other:?}"),
        }
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
            let logical_port = b"access0";
            nsh::Packet {
                logical_port,
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
                Output::Pfcp { bytes, .. } if !self.cut => {
                    self.up.node.handle_datagram(self.now, at(CP, 8805), &bytes)
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
                Output::Answer { response, .. } => self.answers.push_back(response),
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
                }) if self.up.keeps_all => {}
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
