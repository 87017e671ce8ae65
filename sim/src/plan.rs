//! What a seed stands for: how large everything is, how bad the network, and which misfortunes come when.

use crate::access_network::Line;
use crate::disk::DiskFault;
use core::time::Duration;
use rand::Rng;
use rand::rngs::StdRng;

/// How long homes come and go while things break.
pub const STORM: Duration = Duration::from_secs(300);
/// How long everything then has to come to rest, with everybody online.
pub const CALM: Duration = Duration::from_secs(240);
/// How long everything has to end, once everybody has hung up.
pub const END: Duration = Duration::from_secs(300);

/// Emulated homes.
pub const HOMES: usize = 50;
/// User planes.
pub const USER_PLANES: usize = 2;
/// RADIUS servers, in the order in which they are asked.
pub const SERVERS: usize = 2;

/// Share of runs with strangers.
const STRANGERS: f64 = 0.2;
/// How many workers a user plane may have.
const WORKERS: [u32; 3] = [1, 2, 4];

/// A link between two of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// From the control plane to a user plane.
    ToUserPlane(usize),
    /// And back.
    FromUserPlane(usize),
    /// From somebody who claims to be a user plane.
    FromImpostor(usize),
    /// From a user plane that says what is not so.
    FromLiar(usize),
    /// From a stranger on the network between the planes to this user plane, or to the control plane.
    Stranger {
        /// Whom it forges or attacks.
        plane: usize,
        /// To the control plane.
        to_control: bool,
        /// With the source address of the other plane.
        forged: bool,
    },
    /// From the control plane to a RADIUS server.
    ToServer(usize),
    /// And back.
    FromServer(usize),
}

/// A daemon, and the machine that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The control plane.
    Control,
    /// A user plane.
    UserPlane(usize),
}

/// Something that breaks, and is mended later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The control plane dies at once, and starts again from its store.
    ControlPlane,
    /// A user plane dies at once, and starts again knowing nothing.
    UserPlane(usize),
    /// A RADIUS server does not answer.
    Server(usize),
    /// A RADIUS server answers with another secret.
    WrongSecret(usize),
    /// Nothing passes on these links.
    Cut(Vec<Link>),
    /// Something is wrong with the control plane's disk.
    Disk(DiskFault),
    /// The control plane's machine loses its power, and what its disk was to write; it starts again.
    Power,
    /// Bits flip on the control plane's disk.
    Flip,
    /// A daemon is stopped, and continued (SIGSTOP, SIGCONT).
    Stop(Part),
    /// The wall clock of a machine is set, by so many seconds; it stays so.
    Clock(Part, i32),
    /// Somebody else claims to be this user plane, from an address of its own, so many times.
    Impostor(usize, u32),
    /// This user plane says what it may not, besides all else, so many times.
    Liar(usize, u32),
    /// A stranger sends to this user plane and to the control plane, by its own address and by theirs, so many times.
    Stranger(usize, u32),
    /// A worker of this user plane stands still.
    Worker(usize, usize),
    /// What this user plane counts begins anew, with nobody told.
    Recount(usize),
    /// This home sends what it may not, besides all else, so many times.
    Hostile(usize, u32),
    /// This home's line is noisy: so many of its next PPP control packets come once more, with some bits flipped.
    Noise(usize, u32),
    /// The household hangs up, and another one moves in and dials. That stays so, too.
    MoveIn(usize),
    /// The operator changes the configuration, by these of [`CHANGES`].
    Change(usize),
}

/// Changes of the configuration; each is taken back later.
pub const CHANGES: [&[&str]; 9] = [
    &["set subscriber-profiles home mtu 1400"],
    &[
        "set access-profiles pppoe echo-interval 7",
        "set access-profiles pppoe echo-failures 2",
    ],
    &["set aaa server-groups radius interim-interval 7"],
    &["set subscriber-profiles home session-timeout 60"],
    &[
        "set subscriber-groups east virtual-mac 02:00:00:00:00:77",
        "set user-planes up1 ports access0 subscriber-group east",
    ],
    &["delete user-planes up1 ports access1"],
    &["delete user-planes up2"],
    &[
        "set user-planes up1 admin-state shutting-down",
        "set user-planes up1 end-sessions 3",
    ],
    &[REMOVES_SERVER],
];
/// The change after which records may be written down by two servers.
const REMOVES_SERVER: &str = "delete aaa server-groups radius servers server0";

/// What a seed stands for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many datagrams of a thousand are lost.
    pub loss: u32,
    /// How many come twice.
    pub twice: u32,
    /// How many come much later than those sent after them.
    pub late: u32,
    /// The planes speak over IPv6.
    pub over_ipv6: bool,
    /// Which RADIUS servers are asked over IPv6.
    pub servers_over_ipv6: [bool; SERVERS],
    /// How many workers each user plane has.
    pub workers: [u16; USER_PLANES],
    /// How many datagrams, or frames, wait for a daemon that does not read them.
    pub buffer: usize,
    /// The usual delay on a link, in microseconds.
    pub delay: u64,
    /// Prefix lengths of the pool of addresses and of the nets cut from it.
    pub ipv4_pool: (u8, u8),
    /// Prefix lengths of the pool of prefixes and of the nets cut from it.
    pub ipv6_pool: (u8, u8),
    /// The most sessions.
    pub sessions: u32,
    /// The most that are half-open.
    pub half_open: u32,
    /// Seconds between interim records.
    pub interim: u32,
    /// Seconds between keepalives.
    pub echo: u16,
    /// When what breaks, and for how long.
    pub faults: Vec<(Duration, Fault, Duration)>,
}

impl Plan {
    /// Draws a plan.
    pub fn draw(random: &mut StdRng) -> Self {
        let one_of =
            |random: &mut StdRng, choices: &[u32]| choices[random.random_range(0..choices.len())];
        // Often there is room for all, sometimes for fewer than there are homes.
        let roomy = random.random_bool(0.7);
        let (ipv4_pool, ipv6_pool) = match random.random_range(0..4) {
            _ if roomy => ((16, 24), (48, 56)),
            0 => ((26, 28), (48, 56)),
            1 => ((24, 29), (58, 61)),
            _ => ((26, 30), (56, 62)),
        };
        let faults = one_of(random, &[0, 1, 2, 4, 8, 16]);
        let strangers = if random.random_bool(STRANGERS) {
            random.random_range(1..4)
        } else {
            0
        };
        Plan {
            loss: one_of(random, &[0, 0, 5, 20, 100, 250]),
            twice: one_of(random, &[0, 0, 5, 50, 200]),
            late: one_of(random, &[0, 0, 5, 50, 200]),
            delay: one_of(random, &[50, 500, 5_000, 50_000]).into(),
            over_ipv6: random.random_bool(0.5),
            servers_over_ipv6: [random.random_bool(0.3), random.random_bool(0.3)],
            workers: core::array::from_fn(|_| one_of(random, &WORKERS) as u16),
            buffer: one_of(random, &[20, 200, 2_000]) as usize,
            ipv4_pool,
            ipv6_pool,
            sessions: if roomy {
                1000
            } else {
                one_of(random, &[30, 48, 1000])
            },
            half_open: one_of(random, &[3, 10, 1000]),
            interim: one_of(random, &[0, 15, 60]),
            echo: one_of(random, &[10, 30]) as u16,
            faults: {
                let mut all: Vec<_> = (0..faults).flat_map(|_| Fault::draw(random)).collect();
                all.extend((0..strangers).map(|_| draw_stranger(random)));
                all
            },
        }
    }

    /// Whether there are strangers on the network between the planes.
    pub fn has_strangers(&self) -> bool {
        let is_stranger = |(_, fault, _): &(_, Fault, _)| matches!(fault, Fault::Stranger(..));
        self.faults.iter().any(is_stranger)
    }

    /// Whether the planes' datagrams are neither lost nor much delayed, and nothing happens but that strangers send theirs.
    pub fn has_only_strangers(&self) -> bool {
        let is_stranger = |(_, fault, _): &(_, Fault, _)| matches!(fault, Fault::Stranger(..));
        self.loss == 0 && self.late == 0 && self.faults.iter().all(is_stranger)
    }

    /// Whether there is less room than homes, and it is used: where few may be half-open, homes wait for one another.
    pub fn is_crowded(&self) -> bool {
        (self.sessions as usize) < HOMES && self.half_open as usize >= HOMES
    }

    /// Whether every datagram arrives in its time, and nothing breaks.
    pub fn is_smooth(&self) -> bool {
        self.loss == 0 && self.late == 0 && self.faults.is_empty()
    }

    /// Whether everything that is sent to a RADIUS server arrives, and what it answers, too, while the control plane lives.
    pub fn servers_are_reached(&self) -> bool {
        let in_between = |fault: &Fault| match fault {
            Fault::Server(_) | Fault::WrongSecret(_) => true,
            Fault::Cut(links) => links
                .iter()
                .any(|link| matches!(link, Link::ToServer(_) | Link::FromServer(_))),
            Fault::Change(n) => CHANGES[*n].contains(&REMOVES_SERVER),
            // An answer that waits while it is stopped may come after the next try.
            Fault::Stop(part) => *part == Part::Control,
            Fault::ControlPlane
            | Fault::Power
            | Fault::Flip
            | Fault::UserPlane(_)
            | Fault::Disk(_)
            | Fault::Clock(..)
            | Fault::Impostor(..)
            | Fault::Liar(..)
            | Fault::Stranger(..)
            | Fault::Worker(..)
            | Fault::Recount(_)
            | Fault::Hostile(..)
            | Fault::Noise(..)
            | Fault::MoveIn(_) => false,
        };
        self.loss == 0 && !self.faults.iter().any(|(_, fault, _)| in_between(fault))
    }
}

impl Fault {
    /// One misfortune; some are several faults.
    fn draw(random: &mut StdRng) -> Vec<(Duration, Fault, Duration)> {
        let at = random.random_range(Duration::ZERO..STORM);
        let short = Duration::from_millis(random.random_range(10..3_000));
        let long = Duration::from_millis(random.random_range(3_000..90_000));
        let some = if random.random_bool(0.5) { short } else { long };
        let mostly_short = if random.random_bool(0.8) { short } else { long };
        let plane = random.random_range(0..USER_PLANES);
        let server = random.random_range(0..SERVERS);
        let (fault, span) = match random.random_range(0..31) {
            0 => (Fault::ControlPlane, mostly_short),
            1 => (Fault::Power, mostly_short),
            19..22 => (Fault::Disk(draw_disk(random)), some),
            22 => (Fault::Flip, Duration::ZERO),
            23..25 => {
                let times = random.random_range(1..100);
                (Fault::Liar(plane, times), Duration::ZERO)
            }
            25 => {
                let home = random.random_range(0..HOMES);
                let times = random.random_range(1..200);
                (Fault::Hostile(home, times), Duration::ZERO)
            }
            26 => (Fault::Recount(plane), Duration::ZERO),
            29 => {
                let home = random.random_range(0..HOMES);
                let packets = random.random_range(1..60);
                (Fault::Noise(home, packets), Duration::ZERO)
            }
            27..29 => {
                let worker = random.random_range(0..WORKERS.len());
                (Fault::Worker(plane, worker), some)
            }
            2..4 => (Fault::UserPlane(plane), mostly_short),
            4 => (Fault::Server(server), some),
            5 => (Fault::WrongSecret(server), some),
            6 => (Fault::Disk(DiskFault::Stalls), short * 2),
            7..11 => (Fault::Cut(draw_cut(random, plane, server)), some),
            11..13 => (Fault::Stop(draw_part(random, plane)), some / 3),
            13 => {
                let seconds = random.random_range(-3_600..=3_600);
                let part = draw_part(random, plane);
                return vec![(at, Fault::Clock(part, seconds), Duration::ZERO)];
            }
            14 => {
                let impostor = Fault::Impostor(plane, random.random_range(1..20));
                return vec![(at, impostor, Duration::ZERO)];
            }
            15..17 => return die_together(random, at),
            17..19 => (Fault::Change(random.random_range(0..CHANGES.len())), some),
            _ => return move_during_cut(random, at, long, plane),
        };
        vec![(at, fault, span)]
    }
}

fn draw_stranger(random: &mut StdRng) -> (Duration, Fault, Duration) {
    let at = random.random_range(Duration::ZERO..STORM);
    let plane = random.random_range(0..USER_PLANES);
    let stranger = Fault::Stranger(plane, random.random_range(1..100));
    (at, stranger, Duration::ZERO)
}

fn draw_disk(random: &mut StdRng) -> DiskFault {
    match random.random_range(0..6) {
        0 => DiskFault::Stalls,
        1 => DiskFault::IsSlow,
        2 => DiskFault::RefusesWrites,
        3 => DiskFault::RefusesSyncs,
        _ => DiskFault::IsFull(random.random_range(0..20_000)),
    }
}

fn draw_part(random: &mut StdRng, plane: usize) -> Part {
    match random.random_bool(0.5) {
        true => Part::Control,
        false => Part::UserPlane(plane),
    }
}

/// The control plane and one or all of the user planes die at the same moment; each comes back when it does.
fn die_together(random: &mut StdRng, at: Duration) -> Vec<(Duration, Fault, Duration)> {
    let one = random.random_range(0..2 * USER_PLANES);
    let planes = (0..USER_PLANES).filter(|n| one >= USER_PLANES || *n == one);
    let dead = [Fault::ControlPlane]
        .into_iter()
        .chain(planes.map(Fault::UserPlane));
    dead.map(|fault| {
        (
            at,
            fault,
            Duration::from_millis(random.random_range(10..8_000)),
        )
    })
    .collect()
}

/// While nothing passes between the planes a home hangs up, and another one dials in on its circuit.
fn move_during_cut(
    random: &mut StdRng,
    at: Duration,
    span: Duration,
    plane: usize,
) -> Vec<(Duration, Fault, Duration)> {
    let links = vec![Link::ToUserPlane(plane), Link::FromUserPlane(plane)];
    let homes: Vec<usize> = Line::all()
        .zip(0..)
        .filter(|(line, _)| line.plane == plane)
        .map(|(_, home)| home)
        .collect();
    let mut faults = vec![(at, Fault::Cut(links), span)];
    for _ in 0..random.random_range(1..4) {
        let home = homes[random.random_range(0..homes.len())];
        let after = random.random_range(Duration::ZERO..span);
        faults.push((at + after, Fault::MoveIn(home), Duration::ZERO));
    }
    faults
}

fn draw_cut(random: &mut StdRng, plane: usize, server: usize) -> Vec<Link> {
    match random.random_range(0..7) {
        0..2 => vec![Link::ToUserPlane(plane), Link::FromUserPlane(plane)],
        2 => vec![Link::ToUserPlane(plane)],
        3 => vec![Link::FromUserPlane(plane)],
        4 => vec![Link::ToServer(server)],
        5 => vec![Link::FromServer(server)],
        _ => {
            let planes =
                (0..USER_PLANES).flat_map(|n| [Link::ToUserPlane(n), Link::FromUserPlane(n)]);
            planes.chain((0..SERVERS).map(Link::ToServer)).collect()
        }
    }
}
