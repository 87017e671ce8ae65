//! Everything in one place: the parts, the links between them, the clock, and what happens next.

mod changes;
mod faults;
mod hosts;
mod liars;
mod lines;
mod links;
mod mi;
mod orders;
mod scene;
mod stops;
mod strangers;

use crate::access_network::{House, Line};
use crate::check::{CROWDED, Checks, LISTEN};
use crate::disk::Disk;
use crate::history_checker::HistoryChecker;
use crate::later::Later;
use crate::plan::{CALM, END, HOMES, Link, Part, Plan, SERVERS, STORM, USER_PLANES};
use crate::radius_checker::RadiusChecker;
use crate::server::Health;
use crate::traffic::Traffic;
use crate::user_plane::{Memory, UserPlane};
use control::{ControlPlane, Now};
use core::cmp::Reverse;
use core::time::Duration;
use cpe::Verifier;
use mi::{Mi, MiConnection};
use orders::Orders;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scene::document;
pub(crate) use scene::{METRIC, fixed_address, fixed_prefix, further_prefix, routes};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use stops::Stop;
use strangers::Recorded;

/// The wall clock when the simulation begins.
const EPOCH: u32 = 1_700_000_000;
const BEGIN: Duration = Duration::from_secs(1000);
/// Tells our packets from those of another run.
const RUN: u64 = 42;

/// What happens later.
enum Event {
    /// A datagram arrives.
    Arrival(Link, Datagram),
    /// Somebody's timer.
    Wake(Who),
    /// A worker comes to its commands; of this life of the user plane.
    Work(usize, u32, usize),
    /// The disk has synced; for this life of the control plane.
    Synced(u32),
    /// The history's disk has everything up to this block; for this life of the control plane.
    Kept(u32, u64),
    /// A subscriber acts.
    Action(usize),
    /// A home sends packets.
    Talk(usize),
    /// A home that wants to be online dials again.
    Redial(usize),
    /// Somebody claims to be a user plane, and does so this many times more.
    Claim(usize, u32),
    /// A user plane lies, and does so this many times more.
    Lie(usize, u32),
    /// A stranger sends something, and does so this many times more.
    Intrude(usize, u32),
    /// A home misbehaves, and does so this many times more.
    Misbehave(usize, u32),
    /// A RADIUS server wants something of a session.
    Order(usize),
    /// It repeats the request of this identifier.
    Repeat(usize, u8),
    /// The supervisor tries again to start the control plane.
    Supervise,
    /// Something happens on this connection of a user plane's management interface.
    Mi(usize, u64, Mi),
    /// A user plane that died over a document comes back.
    Rise(usize),
    /// Sessions that a change ends may have ended; for this life of the control plane.
    LetGo(u32),
    /// The operator makes room for everybody.
    MakeRoom,
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
    Radius(Box<Radius>),
    /// Request of a RADIUS server, or the answer to it.
    Dynamic(Vec<u8>),
}

#[derive(Clone)]
struct Radius {
    /// The number of the control plane's socket, which keeps its port over all lives.
    socket: u16,
    server: SocketAddr,
    bytes: Vec<u8>,
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
    /// Sessions of which accounting says to the octet what they carried, as it has to.
    pub exact: u64,
    /// Changes of the configuration that came into force.
    pub changes: u64,
    /// Changes that a user plane refused, for then.
    pub refused: u64,
    /// Runs with less room than homes, in which that room was seen to be used.
    pub crowded: u64,
    /// Runs at whose end everybody was seen to be online, and to hear and be heard in every family.
    pub lively: u64,
    /// Requests of RADIUS servers that were acknowledged.
    pub ordered: u64,
    /// Sessions that came online with the fixed address of an earlier one, which had not ended when they began.
    pub takeovers: u64,
    /// Those that began before another session, which had not ended either, had taken it over.
    pub hurried: u64,
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
        self.exact += other.exact;
        self.changes += other.changes;
        self.refused += other.refused;
        self.crowded += other.crowded;
        self.lively += other.lively;
        self.ordered += other.ordered;
        self.takeovers += other.takeovers;
        self.hurried += other.hurried;
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
    pub(crate) now: Duration,
    queue: BinaryHeap<Reverse<Later<Event>>>,
    sequence: u64,
    armed: BTreeMap<Who, Duration>,
    instants: VecDeque<Instant>,

    start: config::start::ControlPlane,
    /// The configuration of now, and which version it is.
    pub(crate) configuration: config::Checked,
    version: u64,
    /// Until when user planes are told of it at the latest.
    letting_go: Option<Duration>,
    /// The control plane's connections to user planes that are configured.
    mi_connections: BTreeMap<usize, MiConnection>,
    /// How many there were.
    connections: u64,
    /// The control plane, while it lives.
    pub(crate) control: Option<ControlPlane>,
    control_life: u32,
    /// How often its machine was started.
    boots: u32,
    pub(crate) disk: Disk,
    /// The user planes, while they live.
    pub(crate) planes: Vec<Option<UserPlane>>,
    plane_lives: Vec<u32>,
    /// What they were told, on their disks.
    kept: Vec<Memory>,
    /// What sessions carried.
    pub(crate) traffic: Traffic,
    servers: [Health; SERVERS],
    orders: Orders,
    pub(crate) radius: RadiusChecker,
    /// What the history was told.
    pub(crate) history: HistoryChecker,
    pub(crate) houses: Vec<House>,
    /// Daemons that are stopped.
    stops: BTreeMap<Part, Stop>,
    /// When each daemon's monotonic clock began.
    origins: BTreeMap<Part, Duration>,
    /// By how many seconds each machine's wall clock was set.
    clocks: BTreeMap<Part, i64>,
    /// The changes of the configuration that hold now, by the numbers of their faults.
    changes: BTreeSet<usize>,
    /// Those that were taken back.
    over: BTreeSet<usize>,
    /// How often each was refused although no device was missing.
    refusals: BTreeMap<usize, u32>,
    /// The configuration has room for everybody.
    has_room: bool,
    /// What strangers recorded, where there are any.
    recorded: Recorded,
    /// The sequence number of each user plane's last request.
    last_sequences: [u32; USER_PLANES],
    /// So many further audit blocks of each user plane name sessions that it makes up.
    inventions: [u32; USER_PLANES],
    /// How many faults cut each link.
    cuts: BTreeMap<Link, u32>,
    /// How many faults keep each part down.
    down: BTreeMap<(u8, usize), u32>,
    at_internet: Verifier,
    at_homes: Verifier,
    /// Faults and subscriber actions, or everybody wants to be online, or everybody leaves.
    phase: Phase,
    pub(crate) checks: Checks,
    pub(crate) wrong: Option<String>,
    /// What the run was like.
    pub summary: Summary,
    log: Option<Log<'a>>,
}
impl<'a> World<'a> {
    /// The world that a seed stands for.
    pub fn new(seed: u64, log: Option<Log<'a>>) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut random);
        let mut world = World {
            houses: House::draw_all(&mut random),
            start: scene::start(&plan),
            configuration: document(&plan),
            disk: Disk::new(random.random()),
            version: 1,
            letting_go: None,
            mi_connections: BTreeMap::new(),
            connections: 0,
            random,
            now: BEGIN,
            queue: BinaryHeap::new(),
            sequence: 0,
            armed: BTreeMap::new(),
            instants: VecDeque::new(),
            control: None,
            control_life: 0,
            boots: 1,
            planes: (0..USER_PLANES).map(|_| None).collect(),
            plane_lives: vec![0; USER_PLANES],
            kept: vec![Memory::default(); USER_PLANES],
            traffic: Traffic::default(),
            servers: [Health::Well; SERVERS],
            orders: Orders::default(),
            radius: RadiusChecker::default(),
            history: HistoryChecker::default(),
            stops: BTreeMap::new(),
            origins: BTreeMap::new(),
            clocks: BTreeMap::new(),
            changes: BTreeSet::new(),
            over: BTreeSet::new(),
            refusals: BTreeMap::new(),
            has_room: false,
            recorded: Recorded::default(),
            last_sequences: [0; USER_PLANES],
            inventions: [0; USER_PLANES],
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
            self.later(at, Event::Action(home));
            let at = self
                .random
                .random_range(Duration::ZERO..Duration::from_secs(10));
            self.later(at, Event::Talk(home));
        }
        (0..SERVERS).for_each(|server| self.order(server));
        for (number, (at, _, span)) in self.plan.faults.clone().into_iter().enumerate() {
            self.later(at, Event::Break(number));
            // Whatever breaks is mended when the storm is over.
            self.later((at + span).min(STORM), Event::Mend(number));
        }
        self.pass(STORM)?;
        self.calm_down();
        self.pass(CROWDED)?;
        self.check_crowd();
        self.make_room();
        self.pass(CALM - CROWDED - LISTEN)?;
        self.houses
            .iter_mut()
            .for_each(|house| house.heard = [0; 2]);
        self.pass(LISTEN)?;
        self.check_calm();
        self.check_orders();
        self.hang_up_all();
        self.pass(END)?;
        self.check_end();
        self.summary.sessions = self.radius.sessions() as u64;
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

    /// What a daemon's clocks show. The monotonic one begins with the daemon; the wall clock is its machine's.
    fn moment(&self, part: Part) -> Now {
        let set = self.clocks.get(&part).copied().unwrap_or(0);
        Now {
            at: self.now - self.origin(part),
            unix: (i64::from(EPOCH) + self.now.as_secs() as i64 + set) as u32,
        }
    }

    fn origin(&self, part: Part) -> Duration {
        self.origins.get(&part).copied().unwrap_or_default()
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
        let (at, origin) = match who {
            Who::Control => (
                self.control.as_ref().and_then(ControlPlane::poll_at),
                self.origin(Part::Control),
            ),
            Who::UserPlane(n) => (
                self.planes[n].as_ref().and_then(UserPlane::poll_at),
                self.origin(Part::UserPlane(n)),
            ),
            Who::Home(n) => (self.houses[n].home.poll_at(), Duration::ZERO),
        };
        let Some(at) = at.map(|at| (origin + at).max(self.now)) else {
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
            Event::Arrival(link, datagram) => self.arrive(link, datagram),
            Event::Wake(who) => {
                if self.armed.get(&who) == Some(&self.now) {
                    self.armed.remove(&who);
                    self.wake(who);
                }
            }
            Event::Work(plane, life, worker) => {
                let part = Part::UserPlane(plane);
                let event = Event::Work(plane, life, worker);
                if self.unless_stopped(part, event).is_none() {
                    return;
                }
                let moment = self.moment(part);
                if let Some(up) = self.planes[plane]
                    .as_mut()
                    .filter(|_| self.plane_lives[plane] == life)
                {
                    up.work(moment, worker);
                    self.checks.planes_changed = true;
                    self.drain_user_plane(plane);
                }
            }
            Event::Synced(life) if life == self.control_life => {
                let event = Event::Synced(life);
                if self.unless_stopped(Part::Control, event).is_some() {
                    self.synced();
                }
            }
            Event::Kept(life, number) if life == self.control_life => {
                let event = Event::Kept(life, number);
                if self.unless_stopped(Part::Control, event).is_some() {
                    self.kept(number);
                }
            }
            Event::Synced(_) | Event::Kept(..) => {}
            Event::Action(home) => self.act(home),
            Event::Talk(home) => self.talk(home),
            Event::Redial(home) if self.phase == Phase::Calm => {
                self.houses[home].home.dial(self.now);
                self.drain_home(home);
            }
            Event::Redial(_) => {}
            Event::Order(server) => self.order(server),
            Event::Repeat(server, identifier) => self.repeat_order(server, identifier),
            Event::Claim(plane, more) => self.claim(plane, more),
            Event::Lie(plane, more) => self.lie(plane, more),
            Event::Intrude(plane, more) => self.intrude(plane, more),
            Event::Misbehave(home, more) => self.misbehave(home, more),
            Event::Supervise => self.supervise(),
            Event::Mi(plane, connection, what) => self.on_mi(plane, connection, what),
            Event::Rise(plane) => {
                if self.count_down((1, plane), false) == (1, 0) {
                    self.start_user_plane(plane);
                }
            }
            Event::LetGo(life) => self.let_go(life),
            Event::MakeRoom => self.make_room(),
            Event::Break(number) => self.change(number, true),
            Event::Mend(number) => self.change(number, false),
        }
    }

    fn wake(&mut self, who: Who) {
        match who {
            Who::Control if !self.is_stopped(Part::Control) => {
                let moment = self.moment(Part::Control);
                if let Some(control) = &mut self.control {
                    control.on_timeout(moment);
                    self.drain_control();
                }
            }
            Who::UserPlane(n) if !self.is_stopped(Part::UserPlane(n)) => {
                let moment = self.moment(Part::UserPlane(n));
                if let Some(up) = &mut self.planes[n] {
                    up.on_timeout(moment);
                    self.drain_user_plane(n);
                }
            }
            Who::Home(n) => {
                self.houses[n].home.on_timeout(self.now);
                self.drain_home(n);
            }
            Who::Control | Who::UserPlane(_) => {} // when it goes on
        }
    }
}
