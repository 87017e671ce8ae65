//! The gateway, its homes and its servers on one clock.

use super::servers::{Request, Server};
use crate::later::Later;
use crate::radius_checker::RadiusChecker;
use crate::server::SECRET;
use crate::user_plane::{Memory, PORTS, Sent, UserPlane, gtpu_at};
use config::Configuration;
use control::management::{Next, Standing, Wanted};
use control::{ControlPlane, Dictionary, Input, Now, Output, Restored};
use core::cmp::Reverse;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use dataplane::PortIndex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use wire::gtpu;
use wire::pfcp::ntp_seconds;
use wire::radius::Code;

const CONTROL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const USER_PLANE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
/// The wall clock at the beginning.
const EPOCH: u32 = 1_700_000_000;
/// Homes with the same outer VLAN.
const HOMES_A_VLAN: usize = 4000;
/// The access port of all homes.
const PORT: PortIndex = PortIndex(0);
/// From one part to another.
const DELAY: Duration = Duration::from_micros(300);
/// Between two looks at what waits in the control plane.
const LOOK: Duration = Duration::from_secs(20);

/// Who has a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Control,
    UserPlane,
    Home(usize),
}

/// What happens later.
enum Event {
    Wake(Who),
    ToControl(Datagram),
    ToUserPlane(Datagram),
    ToServer(usize, Request),
    Work(usize),
    Synced,
    Kept(u64),
    Dial(usize),
    HangUp(usize),
    Look,
}

enum Datagram {
    Pfcp(Vec<u8>),
    Gtpu(Vec<u8>),
    Radius(u16, SocketAddr, Vec<u8>),
}

/// A home, and what it wants.
pub struct House {
    home: Home,
    /// It dials again when its session ends.
    pub wants: bool,
    /// Sessions and attempts that ended, other than by its own will.
    pub ends: u32,
    /// When it was online for the first time.
    pub online_at: Option<Duration>,
}

/// Everything.
pub struct Gateway {
    pub now: Duration,
    pub random: StdRng,
    queue: BinaryHeap<Reverse<Later<Event>>>,
    sequence: u64,
    armed: BTreeMap<Who, Duration>,
    frames: VecDeque<(usize, Vec<u8>)>,
    pub control: ControlPlane,
    batches: u64,
    up: UserPlane,
    pub servers: Vec<Server>,
    pub checker: RadiusChecker,
    pub houses: Vec<House>,
    /// The most open RADIUS requests that the control plane had, when it was looked at.
    pub most_requests: u64,
    /// Time of the machine that the control plane took for its inputs.
    pub spent: Duration,
    /// Changes of authorization that the control plane acknowledged.
    pub acknowledged: u32,
    wrong: Option<String>,
}

fn server_address(server: usize) -> IpAddr {
    [192, 0, 2, 8 + server as u8].into()
}

fn configuration(servers: usize, limits: &str) -> Arc<Configuration> {
    let (all, names): (String, Vec<String>) = (0..servers)
        .map(|n| {
            let address = server_address(n);
            let server = format!("    server{n}: {{address: {address}, secret-key: {SECRET}}}\n");
            (server, format!("server{n}"))
        })
        .unzip();
    let text = format!(
        "limits: {{{limits}}}
network-instances: {{default: {{gateway: [100.64.0.1]}}}}
user-planes:
  up1:
    address: {USER_PLANE}
    management: /run/up1.sock
    ports: {{{}: {{role: access, device: a, segments: {{all: {{access-profile: pppoe}}}}}}}}
access-profiles: {{pppoe: {{server-group: radius, subscriber-profile: home}}}}
subscriber-profiles: {{home: {{dns: [192.0.2.53]}}}}
ipv4-pools: {{homes: {{prefix: 100.64.0.0/16}}}}
ipv6-pools: {{homes: {{prefix: '2001:db8:100::/40'}}}}
aaa:
  servers:
{all}  server-groups: {{radius: {{servers: [{}], interim-interval: 120, family-counters: redback}}}}
  dynamic-authorization: {{clients: {{first: {{address: {}, secret-key: {SECRET}}}}}}}
",
        PORTS[0],
        names.join(", "),
        server_address(0)
    );
    let checked = config::check::read(&text);
    checked
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
        .configuration
}

fn house(number: usize, seed: u64) -> House {
    let [.., middle, low] = number.to_be_bytes();
    let (outer, inner) = (number / HOMES_A_VLAN, number % HOMES_A_VLAN);
    let mac = [2, 0, 0, 0, middle, low].into();
    let (user, password) = (format!("home{number}"), format!("secret{number}"));
    let config = HomeConfig::new(mac, 100 + outer as u16, 1 + inner as u16, user, password);
    House {
        home: Home::new(config, seed),
        wants: false,
        ends: 0,
        online_at: None,
    }
}

impl Gateway {
    /// A gateway with so many homes, all offline, and servers of these speeds.
    pub fn new(seed: u64, homes: usize, speeds: &[u32]) -> Self {
        Self::limited(seed, homes, speeds, "")
    }

    /// As [`Gateway::new`], with `limits` in the configuration.
    pub fn limited(seed: u64, homes: usize, speeds: &[u32], limits: &str) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let configuration = configuration(speeds.len(), limits);
        let now = Duration::from_secs(1000);
        let moment = moment(now);
        let start = format!("node-id: cp1\naddress: {CONTROL}\n");
        let start = config::parse(&start, "cp.yaml").expect("a start file");
        let restored = Restored::read(Vec::new(), ntp_seconds(moment.unix.into()), "boot");
        let control = ControlPlane::new(
            &start,
            Dictionary::shipped(),
            configuration.clone(),
            restored.expect("an empty store"),
            random.random(),
            moment,
        );
        let start = "node-id: up1\naddress: 192.0.2.2\ncontrol-planes: [192.0.2.1]\nmax-sessions: 30000\nworkers: 1\n";
        let start = config::parse(start, "up.yaml").expect("a start file");
        let up = UserPlane::new(start, Memory::default(), random.random(), moment);
        let houses = (0..homes).map(|n| house(n, random.random())).collect();
        let speeds = speeds.iter().enumerate();
        let mut gateway = Gateway {
            now,
            queue: BinaryHeap::new(),
            sequence: 0,
            armed: BTreeMap::new(),
            frames: VecDeque::new(),
            control: control.expect("a configuration that was checked"),
            batches: 0,
            up,
            servers: speeds.map(|(n, speed)| Server::new(n, *speed)).collect(),
            checker: RadiusChecker::default(),
            houses,
            most_requests: 0,
            spent: Duration::ZERO,
            acknowledged: 0,
            wrong: None,
            random,
        };
        gateway.tell_user_plane(&configuration);
        gateway.drain_control();
        gateway.later(LOOK, Event::Look);
        gateway
    }

    fn tell_user_plane(&mut self, configuration: &Configuration) {
        let wanted = Wanted::new(configuration, "up1", 1);
        let mut standing = Standing::default();
        standing.met(None);
        let Next::Apply(document) = standing.next(&wanted) else {
            panic!("a user plane without a document is brought one");
        };
        let moment = moment(self.now);
        let answer = self.up.on_document(moment, document);
        answer.expect("a document that it can carry out");
        self.control.user_plane_was_told(moment, "up1");
        self.drain_user_plane();
    }

    /// A home wants to be online from some time within a span on.
    pub fn dial_within(&mut self, home: usize, span: Duration) {
        let after = self.random.random_range(Duration::ZERO..span);
        self.later(after, Event::Dial(home));
    }

    /// A home leaves at some time within a span.
    pub fn hang_up_within(&mut self, home: usize, span: Duration) {
        let after = self.random.random_range(Duration::ZERO..span);
        self.later(after, Event::HangUp(home));
    }

    /// A server asks for a change of authorization.
    pub fn ask(&mut self, port: u16, bytes: &[u8]) {
        let from = SocketAddr::new(server_address(0), port);
        self.input(Input::DynamicAuthorization { from, bytes });
    }

    /// Homes that are online, of these.
    pub fn online(&self, homes: core::ops::Range<usize>) -> usize {
        let online = |house: &&House| house.home.state() == State::Online;
        self.houses[homes].iter().filter(online).count()
    }

    /// Number of these resources that the control plane has allocated.
    pub fn held(&self, kinds: &[&str]) -> u64 {
        let ledger = self.control.ledger();
        kinds.iter().map(|kind| ledger.held(kind)).sum()
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// What was found wrong first.
    pub fn pass(&mut self, span: Duration) -> Result<(), String> {
        let end = self.now + span;
        while let Some(Reverse(Later(at, ..))) = self.queue.peek()
            && *at <= end
        {
            let Some(Reverse(Later(at, _, event))) = self.queue.pop() else {
                break;
            };
            self.now = at;
            self.happen(event);
            while let Some((home, frame)) = self.frames.pop_front() {
                let house = &mut self.houses[home];
                house.home.handle_frame(self.now, &frame);
                self.drain_home(home);
            }
            if let Some(wrong) = self.wrong.take() {
                return Err(format!("{:.3} s: {wrong}", self.now.as_secs_f64()));
            }
        }
        self.now = end;
        Ok(())
    }

    fn later(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        let later = Later(self.now + after, self.sequence, event);
        self.queue.push(Reverse(later));
    }

    fn arm(&mut self, who: Who, at: Option<Duration>) {
        let Some(at) = at.map(|at| at.max(self.now)) else {
            self.armed.remove(&who);
            return;
        };
        if self.armed.insert(who, at) != Some(at) {
            self.later(at - self.now, Event::Wake(who));
        }
    }

    fn happen(&mut self, event: Event) {
        let moment = moment(self.now);
        match event {
            Event::Wake(who) => {
                if self.armed.get(&who) == Some(&self.now) {
                    self.armed.remove(&who);
                    self.wake(who);
                }
            }
            Event::ToControl(datagram) => self.at_control(datagram),
            Event::ToUserPlane(Datagram::Pfcp(bytes)) => {
                let from = SocketAddr::new(CONTROL, wire::pfcp::PORT);
                self.up.on_pfcp(moment, from, &bytes);
                self.drain_user_plane();
            }
            Event::ToUserPlane(Datagram::Gtpu(bytes)) => {
                self.up.on_gtpu(moment, gtpu_at(CONTROL), &bytes);
                self.drain_user_plane();
            }
            Event::ToUserPlane(Datagram::Radius(..)) => {}
            Event::ToServer(server, request) => self.at_server(server, &request),
            Event::Work(worker) => {
                self.up.work(moment, worker);
                self.drain_user_plane();
            }
            Event::Synced => {
                self.batches += 1;
                self.input(Input::Durable(self.batches));
            }
            Event::Kept(number) => self.input(Input::Kept(number)),
            Event::Dial(home) => {
                self.houses[home].wants = true;
                self.houses[home].home.dial(self.now);
                self.drain_home(home);
            }
            Event::HangUp(home) => {
                self.houses[home].wants = false;
                self.houses[home].home.hang_up(self.now);
                self.drain_home(home);
            }
            Event::Look => {
                let open = self.control.ledger().held("AAA request");
                self.most_requests = self.most_requests.max(open);
                self.later(LOOK, Event::Look);
            }
        }
    }

    fn wake(&mut self, who: Who) {
        match who {
            Who::Control => {
                let (begin, now) = (Instant::now(), moment(self.now));
                self.control.on_timeout(now);
                self.spent += begin.elapsed();
                self.drain_control();
            }
            Who::UserPlane => {
                self.up.on_timeout(moment(self.now));
                self.drain_user_plane();
            }
            Who::Home(home) => {
                self.houses[home].home.on_timeout(self.now);
                self.drain_home(home);
            }
        }
    }

    fn at_server(&mut self, server: usize, request: &Request) {
        let answers =
            self.servers[server].take(self.now, request, &mut self.checker, &mut self.random);
        match answers {
            Ok(answers) => {
                let from = SocketAddr::new(server_address(server), request.port);
                for (at, bytes) in answers {
                    let answer = Datagram::Radius(request.socket, from, bytes);
                    self.later(at + DELAY - self.now, Event::ToControl(answer));
                }
            }
            Err(why) => {
                self.wrong.get_or_insert(why);
            }
        }
    }

    fn at_control(&mut self, datagram: Datagram) {
        let at = |port| SocketAddr::new(USER_PLANE, port);
        match &datagram {
            Datagram::Pfcp(bytes) => self.input(Input::Pfcp {
                from: at(wire::pfcp::PORT),
                bytes,
            }),
            Datagram::Gtpu(bytes) => self.input(Input::Gtpu {
                from: at(gtpu::PORT),
                bytes,
            }),
            Datagram::Radius(socket, from, bytes) => self.input(Input::Radius {
                socket: *socket,
                from: *from,
                bytes,
            }),
        }
    }

    fn input(&mut self, input: Input<'_>) {
        let (begin, now) = (Instant::now(), moment(self.now));
        self.control.handle(now, input);
        self.spent += begin.elapsed();
        self.drain_control();
    }

    fn poll_control(&mut self) -> Option<Output> {
        let begin = Instant::now();
        let output = self.control.poll_output();
        self.spent += begin.elapsed();
        output
    }

    fn drain_control(&mut self) {
        while let Some(output) = self.poll_control() {
            match output {
                Output::Pfcp { bytes, .. } => {
                    self.later(DELAY, Event::ToUserPlane(Datagram::Pfcp(bytes)));
                }
                Output::Gtpu { bytes, .. } => {
                    self.later(DELAY, Event::ToUserPlane(Datagram::Gtpu(bytes)));
                }
                Output::Radius { socket, to, bytes } => {
                    let mut servers = 0..self.servers.len();
                    let server = servers.find(|n| server_address(*n) == to.ip());
                    let port = to.port();
                    let request = Request {
                        socket,
                        port,
                        bytes,
                    };
                    if let Some(server) = server {
                        self.later(DELAY, Event::ToServer(server, request));
                    }
                }
                Output::DynamicAuthorization { bytes, .. } => {
                    self.acknowledged += u32::from(bytes[0] == Code::COA_ACK.0);
                }
                Output::Store(_) => self.later(Duration::from_millis(1), Event::Synced),
                Output::History { number, .. } => {
                    self.later(Duration::from_millis(1), Event::Kept(number));
                }
                _ => {}
            }
        }
        let at = self.control.poll_at();
        self.arm(Who::Control, at);
    }

    fn drain_user_plane(&mut self) {
        while let Some(sent) = self.up.poll_sent() {
            match sent {
                Sent::Pfcp(_, bytes) => self.later(DELAY, Event::ToControl(Datagram::Pfcp(bytes))),
                Sent::Gtpu(_, bytes) => self.later(DELAY, Event::ToControl(Datagram::Gtpu(bytes))),
                Sent::Frame(_, frame) => {
                    let home = usize::from(frame[4]) << 8 | usize::from(frame[5]);
                    self.frames.push_back((home, frame));
                }
                Sent::Internet(_) => {}
            }
        }
        while let Some(worker) = self.up.poll_work() {
            self.later(Duration::from_micros(50), Event::Work(worker));
        }
        let at = self.up.poll_at();
        self.arm(Who::UserPlane, at);
    }

    fn drain_home(&mut self, home: usize) {
        while let Some(output) = self.houses[home].home.poll_output() {
            match output {
                cpe::Output::Frame(frame) => {
                    self.up.on_frame(PORT, &frame);
                }
                cpe::Output::Up(_) => {
                    self.houses[home].online_at.get_or_insert(self.now);
                }
                cpe::Output::Down(_) | cpe::Output::Online => {}
                cpe::Output::Ended(_) => {
                    let house = &mut self.houses[home];
                    if house.wants {
                        house.ends += 1;
                        // as routers do
                        let after = self.random.random_range(5_000..30_000);
                        self.later(Duration::from_millis(after), Event::Dial(home));
                    }
                }
            }
        }
        let at = self.houses[home].home.poll_at();
        self.arm(Who::Home(home), at);
        self.drain_user_plane();
    }
}

fn moment(now: Duration) -> Now {
    Now {
        at: now,
        unix: EPOCH + now.as_secs() as u32,
    }
}
