//! Everything in one place: the parts, the ways between them, the clock, and what happens next.

use crate::check::{Checks, LISTEN};
use crate::describe;
use crate::disk::Disk;
use crate::plan::{CALM, END, Fault, HOMES, Plan, SERVERS, STORM, USER_PLANES, Way};
use crate::server::{self, Books, Gift, Health, SECRET};
use crate::street::{House, Line, RESTLESS, Whim};
use crate::user_plane::{Sent, UserPlane, gtpu_at};
use control::{ControlPlane, Input, Now, Output, Restored};
use core::cmp::Reverse;
use core::time::Duration;
use cpe::{Arrival, Family, Label, Party, Received, State, Verdict, Verifier};
use dataplane::PortIndex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use wire::pfcp::ntp_seconds;
use wire::radius::{Kind, Value};
use wire::{gtpu, ipv4, ipv6, udp};

/// The wall clock when the simulation begins.
const EPOCH: u32 = 1_700_000_000;
const BEGIN: Duration = Duration::from_secs(1000);
/// The internet's own addresses.
const INTERNET: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(
        0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1,
    )),
];
const TRAFFIC_PORT: u16 = 7777;
const RUN: u64 = 42;

/// What happens later.
enum Event {
    /// A datagram arrives.
    Arrival(Way, Datagram),
    /// Somebody's timer.
    Wake(Who),
    /// A worker comes to its commands; of this life of the user plane.
    Work(usize, u32),
    /// The disk has synced; for this life of the control plane.
    Synced(u32),
    /// A home feels like something.
    Whim(usize),
    /// A home sends packets.
    Talk(usize),
    /// A home that wants to be online dials again.
    Redial(usize),
    /// Something breaks.
    Break(usize),
    /// And is mended.
    Mend(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Control,
    UserPlane(usize),
    Home(usize),
}

#[derive(Clone)]
enum Datagram {
    Pfcp(Vec<u8>),
    Gtpu(Vec<u8>),
    /// With the life of the control plane whose socket it is, and the socket's number.
    Radius(u32, u16, SocketAddr, Vec<u8>),
}

struct Later(Duration, u64, Event);

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Later {}
impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Later {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What passes without delay: on lines, and in the core.
enum Instant {
    FromHome(usize, Vec<u8>),
    ToHome(Line, Vec<u8>),
    Internet(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Storm,
    Calm,
    End,
}

/// What a run was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events.
    pub events: u64,
    /// Datagrams between the parts.
    pub datagrams: u64,
    /// How often a home got online.
    pub online: u64,
    /// Verified packets that came back to their home.
    pub replies: u64,
    /// Sessions that were accounted for.
    pub sessions: u64,
    /// Faults.
    pub faults: u64,
}

impl core::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.events += other.events;
        self.datagrams += other.datagrams;
        self.online += other.online;
        self.replies += other.replies;
        self.sessions += other.sessions;
        self.faults += other.faults;
    }
}

/// Who is told what happens.
pub type Log<'a> = Box<dyn FnMut(Duration, &str) + 'a>;

/// The whole simulation.
pub struct World<'a> {
    /// What the seed stands for.
    pub plan: Plan,
    random: StdRng,
    now: Duration,
    queue: BinaryHeap<Reverse<Later>>,
    sequence: u64,
    armed: BTreeMap<Who, Duration>,
    instants: VecDeque<Instant>,

    config: config::ControlPlane,
    /// The control plane, while it lives.
    pub(crate) control: Option<ControlPlane>,
    control_life: u32,
    pub(crate) disk: Disk,
    /// The user planes, while they live.
    pub(crate) planes: Vec<Option<UserPlane>>,
    plane_lives: Vec<u32>,
    servers: [Health; SERVERS],
    pub(crate) books: Books,
    pub(crate) houses: Vec<House>,
    /// How often each way is cut.
    cuts: BTreeMap<Way, u32>,
    /// How many faults keep each part down.
    down: BTreeMap<(u8, usize), u32>,
    at_internet: Verifier,
    at_homes: Verifier,
    /// Faults and whims, or everybody wants to be online, or everybody leaves.
    phase: Phase,
    pub(crate) checks: Checks,
    pub(crate) wrong: Option<String>,
    /// What the run was like.
    pub summary: Summary,
    log: Option<Log<'a>>,
}

/// The control plane's address towards a user plane.
fn control_address(_plane: usize) -> IpAddr {
    [192, 0, 2, 1].into()
}

fn plane_address(plane: usize) -> IpAddr {
    [192, 0, 2, 2 + plane as u8].into()
}

fn server_address(server: usize) -> IpAddr {
    [192, 0, 2, 8 + server as u8].into()
}

fn plane_at(address: IpAddr) -> Option<usize> {
    (0..USER_PLANES).find(|plane| plane_address(*plane) == address)
}

fn plane_name(plane: usize) -> String {
    format!("up{}", plane + 1)
}

fn document(plan: &Plan) -> config::ControlPlane {
    let port = |name: &&str| format!("{{port: {name}}}");
    let ports = crate::user_plane::PORTS
        .iter()
        .map(port)
        .collect::<Vec<_>>()
        .join(", ");
    let planes: Vec<String> = (0..USER_PLANES)
        .map(|n| {
            format!(
                "{{node-id: {}, address: '{}', access-ports: [{ports}]}}",
                plane_name(n),
                plane_address(n)
            )
        })
        .collect();
    let servers: Vec<String> = (0..SERVERS)
        .map(|n| format!("{{address: {}, secret: {SECRET}}}", server_address(n)))
        .collect();
    let Plan {
        sessions,
        half_open,
        echo,
        interim,
        ipv4_pool,
        ipv6_pool,
        ..
    } = plan;
    let text = format!(
        "node-id: cp1
address: {}
limits: {{sessions: {sessions}, half-open: {half_open}}}
user-planes: [{}]
network-instances:
  default:
    gateway: 100.64.0.1
    ipv4-pool: {{prefix: 100.64.0.0/{}, net-length: {}}}
    ipv6-pool: {{prefix: '2001:db8:100::/{}', net-length: {}}}
    dns: [192.0.2.53, '2001:db8::53']
pppoe: {{echo: {{interval: {echo}, failures: 3}}}}
aaa: {{radius: {{servers: [{}], interim-interval: {interim}}}}}
",
        control_address(0),
        planes.join(", "),
        ipv4_pool.0,
        ipv4_pool.1,
        ipv6_pool.0,
        ipv6_pool.1,
        servers.join(", "),
    );
    config::parse(&text, "cp.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Some homes are given something special.
fn gifts(user: &str) -> Gift {
    let number: usize = user.trim_start_matches("home").parse().unwrap_or(0);
    match number {
        3 => vec![(
            Kind::FRAMED_IP_ADDRESS,
            Value::Ipv4([203, 0, 113, 3].into()),
        )],
        RESTLESS => vec![(Kind::SESSION_TIMEOUT, Value::Integer(40))],
        25 => vec![(
            Kind::FRAMED_IP_ADDRESS,
            Value::Ipv4([203, 0, 113, 25].into()),
        )],
        33 => vec![(Kind::ACCT_INTERIM_INTERVAL, Value::Integer(20))],
        _ => Vec::new(),
    }
}

impl<'a> World<'a> {
    /// The world that a seed stands for.
    pub fn new(seed: u64, log: Option<Log<'a>>) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut random);
        let mut world = World {
            houses: House::draw_all(&mut random),
            config: document(&plan),
            random,
            now: BEGIN,
            queue: BinaryHeap::new(),
            sequence: 0,
            armed: BTreeMap::new(),
            instants: VecDeque::new(),
            control: None,
            control_life: 0,
            disk: Disk::default(),
            planes: (0..USER_PLANES).map(|_| None).collect(),
            plane_lives: vec![0; USER_PLANES],
            servers: [Health::Well; SERVERS],
            books: Books::default(),
            cuts: BTreeMap::new(),
            down: BTreeMap::new(),
            at_internet: Verifier::new(RUN, HOMES as u32),
            at_homes: Verifier::new(RUN, HOMES as u32),
            phase: Phase::Storm,
            checks: Checks::default(),
            wrong: None,
            summary: Summary::default(),
            log,
            plan,
        };
        let plan = format!("{:?}", world.plan);
        world.say(|| plan);
        (0..USER_PLANES).for_each(|plane| world.start_user_plane(plane));
        world.start_control_plane();
        world
    }

    /// Lets everything happen.
    ///
    /// # Errors
    /// What is wrong, and when it was found.
    pub fn run(&mut self) -> Result<Summary, String> {
        for home in 0..HOMES {
            let at = self
                .random
                .random_range(Duration::ZERO..Duration::from_secs(30));
            self.later(at, Event::Whim(home));
            let at = self
                .random
                .random_range(Duration::ZERO..Duration::from_secs(10));
            self.later(at, Event::Talk(home));
        }
        for (number, (at, _, span)) in self.plan.faults.clone().into_iter().enumerate() {
            self.later(at, Event::Break(number));
            // Whatever breaks is mended when the storm is over.
            self.later((at + span).min(STORM), Event::Mend(number));
        }
        self.pass(STORM)?;
        self.calm_down();
        self.pass(CALM - LISTEN)?;
        self.houses
            .iter_mut()
            .for_each(|house| house.heard = [0; 2]);
        self.pass(LISTEN)?;
        self.check_calm();
        self.hang_up_all();
        self.pass(END)?;
        self.check_end();
        self.summary.sessions = self.books.accounts.len() as u64;
        self.verdict().map(|()| self.summary)
    }

    fn verdict(&self) -> Result<(), String> {
        match &self.wrong {
            Some(what) => Err(format!(
                "after {:.6} s: {what}",
                (self.now - BEGIN).as_secs_f64()
            )),
            None => Ok(()),
        }
    }

    fn pass(&mut self, span: Duration) -> Result<(), String> {
        let end = self.now + span;
        while let Some(Reverse(Later(at, ..))) = self.queue.peek()
            && *at <= end
        {
            let Some(Reverse(Later(at, _, event))) = self.queue.pop() else {
                break;
            };
            self.now = at;
            self.summary.events += 1;
            self.happen(event);
            self.settle_instants();
            self.check_step();
            self.verdict()?;
        }
        self.now = end;
        Ok(())
    }

    pub(crate) fn moment(&self) -> Now {
        Now {
            at: self.now,
            unix: EPOCH + self.now.as_secs() as u32,
        }
    }

    pub(crate) fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log(self.now - BEGIN, &what());
        }
    }

    /// The first thing that is found wrong counts.
    pub(crate) fn wrong(&mut self, what: String) {
        self.say(|| format!("WRONG: {what}"));
        self.wrong.get_or_insert(what);
    }

    fn later(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.queue
            .push(Reverse(Later(self.now + after, self.sequence, event)));
    }

    /// Sees to somebody's next deadline.
    fn arm(&mut self, who: Who) {
        let at = match who {
            Who::Control => self.control.as_ref().and_then(ControlPlane::poll_at),
            Who::UserPlane(n) => self.planes[n].as_ref().and_then(UserPlane::poll_at),
            Who::Home(n) => self.houses[n].home.poll_at(),
        };
        let Some(at) = at.map(|at| at.max(self.now)) else {
            self.armed.remove(&who);
            return;
        };
        if self.armed.get(&who) != Some(&at) {
            self.armed.insert(who, at);
            self.later(at - self.now, Event::Wake(who));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(way, datagram) => self.arrive(way, datagram),
            Event::Wake(who) => {
                if self.armed.get(&who) == Some(&self.now) {
                    self.armed.remove(&who);
                    self.wake(who);
                }
            }
            Event::Work(plane, life) => {
                let moment = self.moment();
                if let Some(up) = self.planes[plane]
                    .as_mut()
                    .filter(|_| self.plane_lives[plane] == life)
                {
                    up.work(moment);
                    self.drain_user_plane(plane);
                }
            }
            Event::Synced(life) if life == self.control_life => {
                if let Some(batch) = self.disk.synced() {
                    self.say(|| format!("disk: batch {batch} is safe"));
                    self.control_input(Input::Durable(batch));
                }
                self.sync();
            }
            Event::Synced(_) => {}
            Event::Whim(home) => self.whim(home),
            Event::Talk(home) => self.talk(home),
            Event::Redial(home) if self.phase == Phase::Calm => {
                self.houses[home].home.dial(self.now);
                self.drain_home(home);
            }
            Event::Redial(_) => {}
            Event::Break(number) => self.change(number, true),
            Event::Mend(number) => self.change(number, false),
        }
    }

    fn wake(&mut self, who: Who) {
        let moment = self.moment();
        match who {
            Who::Control => {
                if let Some(control) = &mut self.control {
                    control.on_timeout(moment);
                    self.drain_control();
                }
            }
            Who::UserPlane(n) => {
                if let Some(up) = &mut self.planes[n] {
                    up.on_timeout(moment);
                    self.drain_user_plane(n);
                }
            }
            Who::Home(n) => {
                self.houses[n].home.on_timeout(self.now);
                self.drain_home(n);
            }
        }
    }

    // ---- the ways

    fn send(&mut self, way: Way, datagram: Datagram) {
        self.summary.datagrams += 1;
        let says = match &datagram {
            _ if self.log.is_none() => String::new(),
            Datagram::Pfcp(bytes) => describe::pfcp(bytes),
            Datagram::Gtpu(bytes) => describe::gtpu(bytes),
            Datagram::Radius(_, _, _, bytes) => describe::radius(bytes),
        };
        let Plan {
            loss,
            twice,
            late,
            delay,
            ..
        } = self.plan;
        let lossy = self.phase == Phase::Storm;
        let mut chance = |of: u32| lossy && of > 0 && self.random.random_range(0..1000) < of;
        let cut = self.cuts.get(&way).is_some_and(|cuts| *cuts > 0);
        if chance(loss) || cut {
            return self.say(|| format!("{way:?} {says} (lost)"));
        }
        let copies = 1 + u32::from(chance(twice));
        for _ in 0..copies {
            let mut micros = self.random.random_range(delay / 2..=delay * 2);
            if lossy && late > 0 && self.random.random_range(0..1000) < late {
                micros += self.random.random_range(0..4_000_000);
            }
            self.later(
                Duration::from_micros(micros),
                Event::Arrival(way, datagram.clone()),
            );
        }
        self.say(|| format!("{way:?} {says}{}", if copies > 1 { " (twice)" } else { "" }));
    }

    fn arrive(&mut self, way: Way, datagram: Datagram) {
        let moment = self.moment();
        match (way, datagram) {
            (Way::ToUserPlane(n), datagram) => {
                let Some(up) = &mut self.planes[n] else {
                    return;
                };
                let from = control_address(n);
                match datagram {
                    Datagram::Pfcp(bytes) => {
                        up.on_pfcp(moment, SocketAddr::new(from, wire::pfcp::PORT), &bytes)
                    }
                    Datagram::Gtpu(bytes) => up.on_gtpu(gtpu_at(from), &bytes),
                    Datagram::Radius(..) => {}
                }
                self.drain_user_plane(n);
            }
            (Way::FromUserPlane(n), Datagram::Pfcp(bytes)) => {
                let from = SocketAddr::new(plane_address(n), wire::pfcp::PORT);
                self.control_input(Input::Pfcp {
                    from,
                    bytes: &bytes,
                });
            }
            (Way::FromUserPlane(n), Datagram::Gtpu(bytes)) => {
                let from = SocketAddr::new(plane_address(n), gtpu::PORT);
                self.control_input(Input::Gtpu {
                    from,
                    bytes: &bytes,
                });
            }
            (Way::ToServer(n), Datagram::Radius(life, socket, at, bytes)) => {
                self.serve(n, life, socket, at, &bytes)
            }
            (Way::FromServer(_), Datagram::Radius(life, socket, from, bytes))
                if life == self.control_life =>
            {
                self.control_input(Input::Radius {
                    socket,
                    from,
                    bytes: &bytes,
                });
            }
            _ => {}
        }
    }

    fn serve(&mut self, server: usize, life: u32, socket: u16, at: SocketAddr, bytes: &[u8]) {
        let health = self.servers[server];
        if health == Health::Dead {
            return;
        }
        match server::serve(health, &mut self.books, &gifts, bytes) {
            Ok(Some(reply)) => self.send(
                Way::FromServer(server),
                Datagram::Radius(life, socket, at, reply),
            ),
            Ok(None) => {}
            Err(why) => self.wrong_in_books(why),
        }
    }

    // ---- the control plane

    fn control_input(&mut self, input: Input<'_>) {
        let moment = self.moment();
        if let Some(control) = &mut self.control {
            control.handle(moment, input);
            self.drain_control();
        }
    }

    fn drain_control(&mut self) {
        while let Some(output) = self.control.as_mut().and_then(ControlPlane::poll_output) {
            match output {
                Output::Pfcp { to, bytes } => {
                    if let Some(plane) = plane_at(to.ip()) {
                        self.send(Way::ToUserPlane(plane), Datagram::Pfcp(bytes));
                    }
                }
                Output::Gtpu { to, bytes } => {
                    if let Some(plane) = plane_at(to.ip()) {
                        self.check_release(plane, &bytes);
                        self.send(Way::ToUserPlane(plane), Datagram::Gtpu(bytes));
                    }
                }
                Output::Radius { socket, to, bytes } => {
                    if let Some(server) = (0..SERVERS).find(|n| server_address(*n) == to.ip()) {
                        let datagram = Datagram::Radius(self.control_life, socket, to, bytes);
                        self.send(Way::ToServer(server), datagram);
                    }
                }
                Output::Store(records) => {
                    self.disk.write(records);
                    self.sync();
                }
                Output::Answer { .. } => {}
            }
        }
        self.checks.control_changed = true;
        self.arm(Who::Control);
    }

    fn sync(&mut self) {
        if let Some(span) = self.disk.sync(&mut self.random) {
            self.later(span, Event::Synced(self.control_life));
        }
    }

    fn start_control_plane(&mut self) {
        let live = self
            .disk
            .live
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let moment = self.moment();
        let restored = Restored::read(live, ntp_seconds(moment.unix.into()));
        let seed = self.random.random();
        let started = restored
            .and_then(|restored| ControlPlane::new(self.config.clone(), restored, seed, moment));
        match started {
            Ok(control) => {
                let sessions = control.session_count();
                self.say(|| format!("control plane starts with {sessions} sessions"));
                self.control = Some(control);
                self.control_life += 1;
                self.drain_control();
            }
            Err(error) => self.wrong(format!("the control plane does not start: {error}")),
        }
    }

    // ---- the user planes

    fn start_user_plane(&mut self, plane: usize) {
        let random = self.random.random();
        let moment = self.moment();
        let name = plane_name(plane);
        self.say(|| format!("{name} starts"));
        self.planes[plane] = Some(UserPlane::start(
            &name,
            plane_address(plane),
            random,
            moment,
        ));
        self.plane_lives[plane] += 1;
        self.arm(Who::UserPlane(plane));
    }

    fn drain_user_plane(&mut self, plane: usize) {
        let Some(up) = &mut self.planes[plane] else {
            return;
        };
        let mut sent = Vec::new();
        while let Some(one) = up.poll_sent() {
            sent.push(one);
        }
        let has_work = up.has_work();
        for one in sent {
            match one {
                Sent::Pfcp(bytes) => self.send(Way::FromUserPlane(plane), Datagram::Pfcp(bytes)),
                Sent::Gtpu(bytes) => self.send(Way::FromUserPlane(plane), Datagram::Gtpu(bytes)),
                Sent::Frame(PortIndex(port), frame) => {
                    if let Some(line) = Line::of_frame(plane, PortIndex(port), &frame) {
                        self.instants.push_back(Instant::ToHome(line, frame));
                    }
                }
                Sent::Internet(packet) => self.instants.push_back(Instant::Internet(packet)),
            }
        }
        if has_work {
            let after = Duration::from_micros(self.random.random_range(1..300));
            self.later(after, Event::Work(plane, self.plane_lives[plane]));
        }
        self.checks.planes_changed = true;
        self.arm(Who::UserPlane(plane));
    }

    // ---- lines and the core

    fn settle_instants(&mut self) {
        while let Some(instant) = self.instants.pop_front() {
            match instant {
                Instant::FromHome(home, frame) => self.leave_home(home, &frame),
                Instant::ToHome(line, frame) => self.reach_home(line, &frame),
                Instant::Internet(packet) => self.at_internet(&packet),
            }
        }
    }

    fn leave_home(&mut self, home: usize, frame: &[u8]) {
        let Line { plane, port, .. } = self.houses[home].line;
        let Some(up) = &mut self.planes[plane] else {
            return;
        };
        let dropped = up.on_frame(PortIndex(port), frame);
        if let Some(why) = dropped {
            self.say(|| format!("home{home} {} (dropped: {why})", describe::frame(frame)));
        }
        self.drain_user_plane(plane);
    }

    fn reach_home(&mut self, line: Line, frame: &[u8]) {
        let Some(home) = line.home() else { return };
        self.say(|| format!("home{home} gets {}", describe::frame(frame)));
        let house = &mut self.houses[home];
        match house.home.handle_frame(self.now, frame) {
            Received::Quiet => {}
            Received::Datagram(datagram) => {
                let family = if datagram.source.is_ipv4() {
                    Family::V4
                } else {
                    Family::V6
                };
                let at = Party::Home(home as u32);
                let from = INTERNET
                    .contains(&datagram.source)
                    .then_some(Party::Internet);
                let payload = datagram.payload.to_vec();
                house.heard[family as usize] += 1;
                self.summary.replies += 1;
                let verdict = self.at_homes.check(Arrival { at, from, family }, &payload);
                if verdict != Verdict::InOrder {
                    self.wrong(format!(
                        "{verdict:?} at home{home}: {:?}",
                        Label::parse(&payload)
                    ));
                }
            }
            // A control packet that was under way while the session was replaced by another one.
            Received::Stray("another session's packet" | "not a PPPoE session packet") => {}
            Received::Stray(why) => {
                let frame = describe::frame(frame);
                self.wrong(format!("home{home} got {frame}: {why}"));
            }
        }
        self.drain_home(home);
    }

    fn drain_home(&mut self, home: usize) {
        while let Some(output) = self.houses[home].home.poll_output() {
            match output {
                cpe::Output::Frame(frame) => {
                    self.say(|| format!("home{home} {}", describe::frame(&frame)));
                    self.instants.push_back(Instant::FromHome(home, frame));
                }
                cpe::Output::Up(address) => {
                    self.summary.online += 1;
                    self.say(|| format!("home{home} has {address}"));
                }
                cpe::Output::Down(family) => self.say(|| format!("home{home} lost {family:?}")),
                cpe::Output::Ended(end) => {
                    self.say(|| format!("home{home} ended: {end}"));
                    if self.phase == Phase::Calm {
                        let after = Duration::from_millis(self.random.random_range(500..3_000));
                        self.later(after, Event::Redial(home));
                    }
                }
            }
        }
        self.arm(Who::Home(home));
    }

    /// A packet of a home comes to the internet, which answers.
    fn at_internet(&mut self, packet: &[u8]) {
        let Some((source, payload)) = datagram_of(packet) else {
            return;
        };
        let Some(label) = Label::parse(&payload) else {
            return self.wrong("a damaged packet at the internet".into());
        };
        let family = if source.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        let from = self.owner(source, label.from);
        let arrival = Arrival {
            at: Party::Internet,
            from,
            family,
        };
        let verdict = self.at_internet.check(arrival, &payload);
        if verdict != Verdict::InOrder {
            return self.wrong(format!(
                "{verdict:?} at the internet from {source} of {from:?}: {label:?}"
            ));
        }
        let reply = Label {
            from: Party::Internet,
            to: label.from,
            ..label
        };
        let reply = reply_to(source, &reply);
        let Some(plane) = self.route(source) else {
            return;
        };
        if let Some(up) = &mut self.planes[plane] {
            up.on_packet(&reply);
            self.drain_user_plane(plane);
        }
    }

    /// The user plane that announces an address, in the longest net.
    fn route(&self, address: IpAddr) -> Option<usize> {
        let announced = self.planes.iter().enumerate().flat_map(|(n, up)| {
            let nets = up.iter().flat_map(|up| &up.nets);
            nets.filter(|net| net.contains(&address))
                .map(move |net| (net.prefix_len(), n))
        });
        announced.max().map(|(_, n)| n)
    }

    fn talk(&mut self, home: usize) {
        for family in Family::ALL {
            let house = &mut self.houses[home];
            let label = Label {
                run: RUN,
                from: Party::Home(home as u32),
                to: Party::Internet,
                family,
                sequence: house.sent[family as usize],
            };
            let mut payload = Vec::new();
            label.emit(self.random.random_range(40..200), &mut payload);
            let to = INTERNET[family as usize];
            if let Some(frame) = house
                .home
                .datagram(to, TRAFFIC_PORT, TRAFFIC_PORT, &payload)
            {
                house.sent[family as usize] += 1;
                self.instants.push_back(Instant::FromHome(home, frame));
            }
        }
        let after = Duration::from_millis(self.random.random_range(1_000..10_000));
        self.later(after, Event::Talk(home));
    }

    // ---- what homes and misfortunes do

    fn whim(&mut self, home: usize) {
        if self.phase != Phase::Storm {
            return;
        }
        let whim = self.houses[home].whim(&mut self.random);
        self.say(|| format!("home{home} wants to {whim:?}"));
        let mut after = Duration::from_millis(self.random.random_range(200..60_000));
        let now = self.now;
        match whim {
            Whim::Dial | Whim::Guess => {
                let honest = whim == Whim::Dial;
                if self.houses[home].is_honest() != honest {
                    self.houses[home].reset(&mut self.random, honest);
                }
                self.houses[home].home.dial(now);
            }
            Whim::HangUp => self.houses[home].home.hang_up(now),
            Whim::Vanish => {
                self.houses[home].reset(&mut self.random, true);
                after = Duration::from_millis(self.random.random_range(0..20_000));
            }
            Whim::Stay => {}
        }
        self.drain_home(home);
        self.later(after, Event::Whim(home));
    }

    fn change(&mut self, number: usize, breaks: bool) {
        let fault = self.plan.faults[number].1.clone();
        self.say(|| format!("{fault:?} {}", if breaks { "BREAKS" } else { "is mended" }));
        self.summary.faults += u64::from(breaks);
        match fault {
            Fault::ControlPlane => match self.count_down((0, 0), breaks) {
                (0, 1) => self.kill_control_plane(),
                (1, 0) => self.start_control_plane(),
                _ => {}
            },
            Fault::UserPlane(n) => match self.count_down((1, n), breaks) {
                (0, 1) => self.planes[n] = None,
                (1, 0) => self.start_user_plane(n),
                _ => {}
            },
            Fault::Server(n) => self.servers[n] = if breaks { Health::Dead } else { Health::Well },
            Fault::WrongSecret(n) => {
                self.servers[n] = if breaks { Health::Wrong } else { Health::Well }
            }
            Fault::Cut(ways) => {
                for way in ways {
                    let cuts = self.cuts.entry(way).or_default();
                    *cuts = if breaks {
                        *cuts + 1
                    } else {
                        cuts.saturating_sub(1)
                    };
                }
            }
            Fault::Disk => {
                self.disk.stalled = matches!(self.count_down((2, 0), breaks), (_, 1..));
                self.sync();
            }
        }
    }

    /// How many faults kept a part down before, and do now.
    fn count_down(&mut self, part: (u8, usize), breaks: bool) -> (u32, u32) {
        let count = self.down.entry(part).or_default();
        let before = *count;
        *count = if breaks { before + 1 } else { before - 1 };
        (before, *count)
    }

    fn kill_control_plane(&mut self) {
        self.checks.count_life(self.control.as_ref());
        self.control = None;
        self.armed.remove(&Who::Control);
        self.disk.crash(&mut self.random);
    }

    /// The storm is over: everybody wants to be online, and stay.
    fn calm_down(&mut self) {
        self.say(|| "--- calm".into());
        self.phase = Phase::Calm;
        for home in 0..HOMES {
            // One that never asks whether its session still lives cannot know that it ended when nobody could tell it so.
            let house = &mut self.houses[home];
            if !house.is_honest() || house.home.config().echo_interval.is_none() {
                house.reset(&mut self.random, true);
            }
        }
        self.keep_online();
    }

    /// Everybody who is offline dials again.
    fn keep_online(&mut self) {
        for home in 0..HOMES {
            self.houses[home].home.dial(self.now);
            self.drain_home(home);
        }
        self.settle_instants();
    }

    fn hang_up_all(&mut self) {
        self.say(|| "--- everybody hangs up".into());
        self.phase = Phase::End;
        for home in 0..HOMES {
            self.houses[home].home.hang_up(self.now);
            self.drain_home(home);
        }
        self.settle_instants();
    }

    /// Homes that are not online.
    pub(crate) fn offline(&self) -> Vec<usize> {
        let homes = self.houses.iter().enumerate();
        homes
            .filter(|(_, h)| h.home.state() != State::Online)
            .map(|(n, _)| n)
            .collect()
    }

    /// Every live net, and who announces it.
    pub(crate) fn announced(&self) -> BTreeSet<(ipnet::IpNet, usize)> {
        let planes = self.planes.iter().enumerate();
        planes
            .flat_map(|(n, up)| up.iter().flat_map(|up| &up.nets).map(move |net| (*net, n)))
            .collect()
    }
}

/// Source and payload of a UDP packet.
fn datagram_of(packet: &[u8]) -> Option<(IpAddr, Vec<u8>)> {
    match packet.first()? >> 4 {
        4 => {
            let packet = ipv4::Packet::parse(packet).ok()?;
            let datagram = udp::Datagram::parse(packet.payload).ok()?;
            Some((packet.header.source.into(), datagram.payload.to_vec()))
        }
        _ => {
            let packet = ipv6::Packet::parse(packet).ok()?;
            let datagram = udp::Datagram::parse(packet.payload).ok()?;
            Some((packet.header.source.into(), datagram.payload.to_vec()))
        }
    }
}

/// The internet's answer to a home's address.
fn reply_to(address: IpAddr, label: &Label) -> Vec<u8> {
    let (mut payload, mut segment, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    label.emit(Label::MIN_SIZE, &mut payload);
    let datagram = udp::Datagram {
        source_port: TRAFFIC_PORT,
        destination_port: TRAFFIC_PORT,
        payload: &payload,
    };
    match (INTERNET, address) {
        ([IpAddr::V4(from), _], IpAddr::V4(to)) => {
            datagram.emit_v4(from, to, &mut segment);
            let header = ipv4::Header::new(ipv4::UDP, from, to);
            ipv4::Packet {
                header,
                options: &[],
                payload: &segment,
            }
            .emit(&mut packet);
        }
        ([_, IpAddr::V6(from)], IpAddr::V6(to)) => {
            datagram.emit_v6(from, to, &mut segment);
            let header = ipv6::Header::new(ipv6::UDP, from, to);
            ipv6::Packet {
                header,
                payload: &segment,
            }
            .emit(&mut packet);
        }
        _ => {}
    }
    packet
}
