//! The gateway, its homes and its servers on one clock.

mod checks;
mod intruders;
mod parts;

use super::servers::{Request, Server};
use crate::disk::Disk;
use crate::later::Later;
use crate::radius_checker::RadiusChecker;
use crate::server::SECRET;
use crate::user_plane::{Memory, PORTS, UserPlane};
use checks::Checks;
pub use checks::Connected;
use config::Configuration;
use control::management::{Next, Standing, Wanted};
use control::{ControlPlane, Input, Now};
use core::cmp::Reverse;
use core::time::Duration;
use cpe::{Delegation, Home, HomeConfig, State};
use dataplane::PortIndex;
use intruders::Intruders;
use northbound::Answer;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const CONTROL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const USER_PLANE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
/// An address that is not configured.
const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 20));
/// The wall clock at the beginning.
const EPOCH: u32 = 1_700_000_000;
/// Homes with the same outer VLAN.
const HOMES_A_VLAN: usize = 4000;
/// The access port of all homes.
const PORT: PortIndex = PortIndex(0);
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
    /// Somebody sends something false, and does so this many times more.
    Intrude(u32),
    /// A worker comes to its commands; of this life of the user plane.
    Work(u32, usize),
    /// The store's disk has synced; for this life of the control plane.
    Synced(u32),
    /// The history's disk has everything up to this block; for this life of the control plane.
    Kept(u32, u64),
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
    start: config::start::ControlPlane,
    configuration: Arc<Configuration>,
    /// The control plane, while it lives.
    control: Option<ControlPlane>,
    control_life: u32,
    disk: Disk,
    /// The disk's own, so that what it takes does not change what homes do.
    disk_random: StdRng,
    /// The last block of events that the history's disk has.
    history: u64,
    /// The user plane, while it lives.
    up: Option<UserPlane>,
    plane_life: u32,
    /// What it was told, on its disk.
    kept: Memory,
    pub servers: Vec<Server>,
    pub checker: RadiusChecker,
    pub houses: Vec<House>,
    /// The most open RADIUS requests that the control plane had, when it was looked at.
    pub most_requests: u64,
    /// Time of the machine that the control plane took for its inputs.
    pub spent: Duration,
    /// Changes of authorization that the control plane acknowledged.
    pub acknowledged: u32,
    /// Events that have happened.
    pub events: u64,
    checks: Checks,
    intruders: Intruders,
    /// The last answer of the local API.
    answer: Option<Answer>,
    wrong: Option<String>,
}

fn server_address(server: usize) -> IpAddr {
    [192, 0, 2, 8 + server as u8].into()
}

fn configuration(servers: usize, limits: &str, delegates: bool) -> Arc<Configuration> {
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
subscriber-profiles: {{home: {{dns: [192.0.2.53], delegated-pools: [{}]}}}}
ipv4-pools: {{homes: {{prefix: 100.64.0.0/16}}}}
ipv6-pools: {{homes: {{prefix: '2001:db8:100::/40'}}, delegated: {{prefix: '2001:db8:8000::/33', prefix-length: 56}}}}
aaa:
  servers:
{all}  server-groups: {{radius: {{servers: [{}], interim-interval: 120, family-counters: redback}}}}
  dynamic-authorization: {{clients: {{first: {{address: {}, secret-key: {SECRET}}}}}}}
",
        PORTS[0],
        if delegates { "delegated" } else { "" },
        names.join(", "),
        server_address(0)
    );
    let checked = config::check::read(&text);
    checked
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
        .configuration
}

fn house(number: usize, seed: u64, delegation: Option<Delegation>) -> House {
    let [.., middle, low] = number.to_be_bytes();
    let (outer, inner) = (number / HOMES_A_VLAN, number % HOMES_A_VLAN);
    let mac = [2, 0, 0, 0, middle, low].into();
    let (user, password) = (format!("home{number}"), format!("secret{number}"));
    let config = HomeConfig {
        delegation,
        ..HomeConfig::new(mac, 100 + outer as u16, 1 + inner as u16, user, password)
    };
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

    /// As [`Gateway::new`], with homes that ask for a delegated prefix as well.
    pub fn delegating(seed: u64, homes: usize, speeds: &[u32]) -> Self {
        let delegation = Delegation {
            rapid_commit: false,
        };
        Self::of(seed, homes, speeds, "", Some(delegation))
    }

    /// As [`Gateway::new`], with `limits` in the configuration.
    pub fn limited(seed: u64, homes: usize, speeds: &[u32], limits: &str) -> Self {
        Self::of(seed, homes, speeds, limits, None)
    }

    fn of(
        seed: u64,
        homes: usize,
        speeds: &[u32],
        limits: &str,
        delegation: Option<Delegation>,
    ) -> Self {
        let start = format!("node-id: cp1\naddress: {CONTROL}\n");
        let start = config::parse(&start, "cp.yaml").expect("a start file");
        let mut disk_random = StdRng::seed_from_u64(!seed);
        let mut gateway = Gateway {
            now: Duration::from_secs(1000),
            random: StdRng::seed_from_u64(seed),
            queue: BinaryHeap::new(),
            sequence: 0,
            armed: BTreeMap::new(),
            frames: VecDeque::new(),
            start,
            configuration: configuration(speeds.len(), limits, delegation.is_some()),
            control: None,
            control_life: 0,
            disk: Disk::new(disk_random.random()),
            disk_random,
            history: 0,
            up: None,
            plane_life: 0,
            kept: Memory::default(),
            servers: (0..).zip(speeds).map(|(n, s)| Server::new(n, *s)).collect(),
            checker: RadiusChecker::default(),
            houses: Vec::new(),
            most_requests: 0,
            spent: Duration::ZERO,
            acknowledged: 0,
            events: 0,
            checks: Checks::default(),
            intruders: Intruders::new(seed),
            answer: None,
            wrong: None,
        };
        gateway.start_control();
        gateway.start_user_plane();
        gateway.tell_user_plane();
        gateway.houses = (0..homes)
            .map(|n| house(n, gateway.random.random(), delegation))
            .collect();
        gateway.later(LOOK, Event::Look);
        gateway
    }

    /// Time of the machine that the user plane's control thread took.
    pub fn user_plane_spent(&self) -> Duration {
        self.up.as_ref().map_or(Duration::ZERO, UserPlane::spent)
    }

    /// Tells a user plane that knows nothing its ports.
    fn tell_user_plane(&mut self) {
        let wanted = Wanted::new(&self.configuration, "up1", 1);
        let mut standing = Standing::default();
        standing.met(None);
        let Next::Apply(document) = standing.next(&wanted) else {
            panic!("a user plane without a document is brought one");
        };
        let moment = moment(self.now);
        if let Some(up) = &mut self.up {
            let answer = up.on_document(moment, document);
            answer.expect("a document that it can carry out");
        }
        self.user_plane_was_told();
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

    /// Homes lose their power: the gateway is not told, and they dial when they are told to.
    pub fn power_cut(&mut self) {
        for home in 0..self.houses.len() {
            let seed = self.random.random();
            let house = &mut self.houses[home];
            house.home.reboot(seed);
            (house.wants, house.online_at) = (false, None);
            self.drain_home(home);
        }
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

    /// The first homes that are not online, and how far each has come.
    pub fn offline(&self) -> String {
        let homes = self.houses.iter().enumerate();
        let states = homes.map(|(home, house)| (home, house.home.state()));
        let offline = states.filter(|(_, state)| *state != State::Online);
        format!("{:?}", Vec::from_iter(offline.take(10)))
    }

    /// The control plane, while it lives.
    pub fn control(&self) -> Option<&ControlPlane> {
        self.control.as_ref()
    }

    /// Number of these resources that the control plane has allocated.
    pub fn held(&self, kinds: &[&str]) -> u64 {
        let ledger = self.control().map(ControlPlane::ledger);
        let held = |kind: &&str| ledger.as_ref().map_or(0, |ledger| ledger.held(kind));
        kinds.iter().map(held).sum()
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
            self.step()?;
        }
        self.now = end;
        Ok(())
    }

    /// Lets the next thing happen.
    ///
    /// # Errors
    /// What was found wrong first.
    pub fn step(&mut self) -> Result<(), String> {
        let Some(Reverse(Later(at, _, event))) = self.queue.pop() else {
            return Ok(());
        };
        self.now = at;
        self.events += 1;
        self.happen(event);
        while let Some((home, frame)) = self.frames.pop_front() {
            let house = &mut self.houses[home];
            house.home.handle_frame(self.now, &frame);
            self.drain_home(home);
        }
        match self.wrong.take() {
            Some(wrong) => Err(format!("{:.6} s: {wrong}", self.now.as_secs_f64())),
            None => Ok(()),
        }
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
        match event {
            Event::Wake(who) => {
                if self.armed.get(&who) == Some(&self.now) {
                    self.armed.remove(&who);
                    self.wake(who);
                }
            }
            Event::ToControl(datagram) => self.at_control(datagram),
            Event::ToUserPlane(datagram) => self.at_user_plane(&datagram),
            Event::ToServer(server, request) => self.at_server(server, &request),
            Event::Intrude(more) => self.intrude(more),
            Event::Work(life, worker) if life == self.plane_life => self.work(worker),
            Event::Synced(life) if life == self.control_life => self.synced(),
            Event::Kept(life, number) if life == self.control_life => self.keep(number),
            Event::Work(..) | Event::Synced(_) | Event::Kept(..) => {} // of an earlier life
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
                let open = self.held(&["AAA request"]);
                self.most_requests = self.most_requests.max(open);
                self.later(LOOK, Event::Look);
            }
        }
    }

    fn wake(&mut self, who: Who) {
        match who {
            Who::Control => self.control_is_due(),
            Who::UserPlane => self.user_plane_is_due(),
            Who::Home(home) => {
                self.houses[home].home.on_timeout(self.now);
                self.drain_home(home);
            }
        }
    }

    fn drain_home(&mut self, home: usize) {
        while let Some(output) = self.houses[home].home.poll_output() {
            match output {
                cpe::Output::Frame(frame) => {
                    if let Some(up) = &mut self.up {
                        up.on_frame(PORT, &frame);
                    }
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
