//! A control plane, a user plane that only keeps rules, homes and a store, in one thread on a clock of its own.

use aaa::Secret;
pub use choice::Choice;
use config::{Checked, Configuration, Edit, Fault};
use control::plane::{Effect, Progress};
use control::{ControlPlane, Dictionary, Input, Now, Restored};
use core::net::SocketAddr;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{AaaServer, Answer, PAGE, Request, Response, Session};
use radius::Radius;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
pub use user_plane::UserPlane;
use wire::pfcp::ntp_seconds;

mod carry;
mod choice;
mod parties;
pub mod radius;
pub mod user_plane;

const CP: &str = "192.0.2.1";
pub const UP: &str = "192.0.2.2";
/// Of another user plane, which a test may be.
const OTHER: &str = "192.0.2.33";
/// The access port that the user plane has.
const PORT: &[u8] = b"access0";
const EPOCH: u32 = 1_700_000_000;
/// Recovery Time Stamp of the first user plane. Each later one started a second after the one before.
pub const STARTED: u32 = ntp_seconds(EPOCH as u64);

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
            up: UserPlane::new(STARTED),
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
        let effects = self.plan(&configuration)?;
        let prepared = self.plane.prepare_change(configuration.clone())?;
        self.plane.follow_change(now, prepared);
        (self.tree, self.configuration) = (checked.tree, configuration);
        self.plane.user_plane_was_told(now, "up1");
        self.settle();
        Ok(effects)
    }

    /// Effects that a configuration would have.
    pub fn plan(&self, new: &Arc<Configuration>) -> Result<Vec<Effect>, Vec<Fault>> {
        let mut plan = self.plane.begin_plan(new.clone())?;
        loop {
            match self.plane.plan_more(self.moment(), plan) {
                Progress::More(further) => plan = further,
                Progress::Done(effects) => return Ok(effects),
            }
        }
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
            match self.call(Request::ListSessions {
                from: place,
                most: PAGE,
                filter: Box::default(),
            }) {
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
