//! An access network: one thread, one port, and all homes on it. The lab has one for each user plane, `sluice load` has one.

mod dialler;
mod keeper;
mod outcome;
mod traffic;

pub use outcome::{HomeOutcome, Outcome, Sessions, SetUps};

use crate::internet::Reach;
use crate::octets::OctetsByHome;
use crate::port::Port;
use anyhow::{Context, Result};
use cpe::{Counts, Family, HomeConfig, State};
use keeper::Keeper;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The UDP port of verified packets, at both ends.
pub const PORT: u16 = 20_000;
/// Sizes of the IP packets in turn: small ones, a middling one, and the largest that PPPoE carries.
const SIZES: [usize; 4] = [96, 128, 576, 1492];
/// Homes of the lab that dial at the same time; more would only wait for one another.
const LAB_AT_ONCE: u32 = 256;
/// How long a home of the lab waits before it dials again.
const LAB_REDIAL: Duration = Duration::from_secs(1);
/// Between two looks at a port of the lab: what comes meanwhile is taken in one go, which leaves the machine to the daemons.
const LAB_PAUSE: Duration = Duration::from_millis(1);

/// The IP packet size of the packet with this sequence number.
pub fn size_of(sequence: u64) -> usize {
    SIZES[(sequence % SIZES.len() as u64) as usize]
}

/// What the homes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Send no more verified packets.
    Quiet,
    /// Send them again.
    Speak,
    /// Note from now on who has received something.
    Call,
    /// All lose their power for a moment, tell nobody, and dial again at once; and once more after this time.
    Reboot(Option<Duration>),
    /// All hang up, not faster than they dial, and nobody dials again.
    HangUp,
    /// All leave at once with a PADT alone, and nobody dials again.
    Leave,
    /// From now on homes leave and come back, if the plan says so.
    Flap,
    /// No home leaves any more in order to come back.
    Stay,
    /// The thread ends.
    Stop,
}

/// How homes come online.
#[derive(Clone, Copy, Debug)]
pub struct Dialling {
    /// The most homes whose sessions are being set up, or ended, at one time.
    pub at_once: u32,
    /// Homes that dial in a second; `None`: as fast as they can. At the end they hang up not faster than that.
    pub rate: Option<f64>,
    /// How long a home waits before it dials again.
    pub redial: Duration,
}

/// How a home leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Terminate-Request, and PADT after the answer.
    Terminate,
    /// PADT alone.
    Padt,
    /// Without a word, as if it had lost its power.
    Silent,
}

/// Homes that leave and come back.
#[derive(Clone, Copy, Debug)]
pub struct Flapping {
    /// So many homes leave in a second.
    pub rate: f64,
    /// How they leave; `None`: one after the other in each way.
    pub how: Option<Leaving>,
    /// How long they stay away.
    pub off: Duration,
}

impl Flapping {
    /// How the home leaves that leaves after so many others.
    fn way(&self, after: u64) -> Leaving {
        const WAYS: [Leaving; 3] = [Leaving::Terminate, Leaving::Padt, Leaving::Silent];
        self.how
            .unwrap_or(WAYS[(after % WAYS.len() as u64) as usize])
    }
}

/// Whom the homes send verified packets to.
#[derive(Clone, Debug)]
pub enum Far {
    /// The lab's internet host, which sends packets of its own to the homes.
    Internet {
        /// Where the homes are made known to it.
        reach: Sender<Reach>,
        /// Its addresses.
        host: [IpAddr; 2],
    },
    /// Each home to the next one, and the last one to the first.
    Homes,
    /// A reflector ([`crate::reflector`]) with an address in each family that it has.
    Reflector([Option<IpAddr>; 2]),
}

/// What the homes of an access network do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How they come online.
    pub dialling: Dialling,
    /// Whether they leave and come back.
    pub flapping: Option<Flapping>,
    /// Whom they send to.
    pub far: Far,
    /// Each home that is online sends one packet in each family once in this time; `None`: no home ever sends.
    pub interval: Option<Duration>,
    /// The largest IP packet that the port carries.
    pub largest: usize,
    /// The shortest time between two looks at the port.
    pub pause: Duration,
    /// A number of this run alone.
    pub run: u64,
}

impl Plan {
    /// The plan of the lab's homes: all come online as fast as they can and talk to the internet host.
    pub fn of_lab(interval: Duration, run: u64, reach: Sender<Reach>, host: [IpAddr; 2]) -> Self {
        Plan {
            dialling: Dialling {
                at_once: LAB_AT_ONCE,
                rate: None,
                redial: LAB_REDIAL,
            },
            flapping: None,
            far: Far::Internet { reach, host },
            interval: Some(interval),
            largest: usize::MAX,
            pause: LAB_PAUSE,
            run,
        }
    }
}

/// How the homes are getting on.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Homes at each stage.
    pub states: BTreeMap<State, u32>,
    /// When the first home came online, since the first dialled.
    pub first_online: Option<Duration>,
    /// When the latest home to come online for the first time did.
    pub last_online: Option<Duration>,
    /// When 99 % of the homes had come online for the first time.
    pub most_online: Option<Duration>,
    /// Homes that were online at least once.
    pub ever_online: u32,
    /// How often all homes have rebooted.
    pub reboots: u32,
    /// Time from the last reboot until every home was online again; `None`: not yet.
    pub back_online: Option<Duration>,
    /// Verified packets sent.
    pub sent: u64,
    /// Verified packets received.
    pub counts: Counts,
    /// Octets of the IP packets among them.
    pub octets: u64,
    /// Why sessions and attempts ended, other than by our own hanging up, and how often.
    pub ends: BTreeMap<String, u32>,
    /// Frames that could not be sent.
    pub unsent: u64,
    /// Verified packets among them. They count as sent, and so as lost.
    pub unsent_packets: u64,
    /// Frames that came and were lost because this process was too slow for them.
    pub overflowed: u64,
    /// Set-ups that succeeded: more than homes, if homes came back.
    pub set_ups: u64,
    /// How often homes have left in order to come back.
    pub flaps: u64,
    /// What the first strays were.
    pub strays: BTreeMap<&'static str, u32>,
    /// Have they been told to hang up?
    pub leaving: bool,
    /// When, after an [`Order::Call`], something had come to every home in both families; the latest call that got so far.
    pub all_heard: Option<Instant>,
    /// One row for each of the first homes.
    pub rows: Vec<Row>,
}

impl Status {
    /// Those of several access networks together.
    pub fn of_all(networks: &[Status]) -> Status {
        let mut all = Status::default();
        for network in networks {
            let earlier = all.first_online.into_iter().chain(network.first_online);
            all.first_online = earlier.min();
            all.last_online = all.last_online.max(network.last_online);
            all.ever_online += network.ever_online;
            all.sent += network.sent;
            all.counts += network.counts;
            all.octets += network.octets;
            all.unsent += network.unsent;
            all.unsent_packets += network.unsent_packets;
            all.overflowed += network.overflowed;
            all.set_ups += network.set_ups;
            all.flaps += network.flaps;
            all.leaving |= network.leaving;
            for (&state, count) in &network.states {
                *all.states.entry(state).or_default() += count;
            }
            for (end, count) in &network.ends {
                *all.ends.entry(end.clone()).or_default() += count;
            }
            for (&stray, count) in &network.strays {
                *all.strays.entry(stray).or_default() += count;
            }
            all.rows.extend_from_slice(&network.rows);
        }
        all
    }

    /// Homes at this stage.
    pub fn at(&self, state: State) -> u32 {
        self.states.get(&state).copied().unwrap_or(0)
    }
}

/// A home in the live table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its user name.
    pub user: String,
    /// Its line, as S-tag.C-tag.
    pub line: String,
    /// How far it has come.
    pub state: State,
    /// Its PPPoE session.
    pub session_id: Option<u16>,
    /// Its addresses.
    pub addresses: [Option<IpAddr>; 2],
    /// Verified packets that it has sent and received.
    pub packets: [u64; 2],
}

/// Who lives in an access network.
pub struct Residents {
    /// The number of the first home; the others follow.
    pub first: u32,
    /// The homes.
    pub configs: Vec<HomeConfig>,
    /// How many homes there are in all access networks.
    pub all: u32,
}

/// The thread of the homes of a user plane.
pub struct AccessNetwork {
    orders: Sender<Order>,
    shown: Shown,
    thread: JoinHandle<Result<Outcome>>,
}

/// What the thread shows of the homes.
#[derive(Clone)]
struct Shown {
    status: Arc<Mutex<Status>>,
    octets: OctetsByHome,
}

impl AccessNetwork {
    /// All homes begin to dial.
    pub fn open(residents: Residents, plan: Plan, port: Port) -> Result<Self> {
        let (orders, inbox) = channel();
        let shown = Shown {
            status: Arc::new(Mutex::new(Status::default())),
            octets: OctetsByHome::new(residents.configs.len()),
        };
        let name = format!("homes-{}", residents.first);
        let keeper = Keeper::new(residents, plan, port, shown.clone());
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || keeper.run(&inbox))
            .context("cannot start the homes' thread")?;
        Ok(AccessNetwork {
            orders,
            shown,
            thread,
        })
    }

    /// How the homes are getting on, not older than a fraction of a second.
    pub fn status(&self) -> Status {
        locked(&self.shown.status).clone()
    }

    /// Octets of the IPv4 and the IPv6 packets that came to each home so far.
    pub fn octets(&self) -> Vec<[u64; 2]> {
        self.shown.octets.read()
    }

    /// Tells the homes; a thread that has ended does not listen, and [`AccessNetwork::close`] says why.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Has the thread ended by itself?
    pub fn failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread.
    pub fn close(self) -> Result<Status> {
        self.finish().map(|(status, _)| status)
    }

    /// Ends the thread; what it has come to.
    pub fn finish(self) -> Result<(Status, Outcome)> {
        self.order(Order::Stop);
        let outcome = match self.thread.join() {
            Ok(done) => done?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok((locked(&self.shown.status).clone(), outcome))
    }
}

/// A status is whole even if a thread died while it was held.
fn locked(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The family of an address.
pub fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    }
}

/// IP and UDP headers.
pub fn overhead(family: Family) -> usize {
    match family {
        Family::V4 => 28,
        Family::V6 => 48,
    }
}
