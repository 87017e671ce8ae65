//! The homes' side of the lab: for each user plane one thread, one TAP, and all homes on it.

use super::internet::Reach;
use super::roll::Roll;
use anyhow::{Context, Result};
use cpe::{
    Arrival, Counts, End, Family, Home, HomeConfig, Homes, Label, Output, Pace, Party, Received,
    State, Verdict, Verifier,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tun_rs::SyncDevice;

/// The UDP port of verified packets, at both ends.
pub const PORT: u16 = 20_000;
/// Sizes of the IP packets in turn: small ones, a middling one, and the largest that PPPoE carries.
const SIZES: [usize; 4] = [96, 128, 576, 1492];

/// Homes that dial at the same time; more would only wait for one another.
const DIALLING: usize = 256;
/// How long a home waits before it dials again.
const REDIAL: Duration = Duration::from_secs(1);
/// Between two looks at the TAP: what comes meanwhile is taken in one go.
const PAUSE: Duration = Duration::from_millis(1);
/// Frames taken at one go.
const BURST: usize = 512;
/// How often the status is renewed.
const STATUS_EVERY: Duration = Duration::from_millis(200);

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
    /// All hang up, and nobody dials again.
    HangUp,
    /// The thread ends.
    Stop,
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
    /// Homes that were online at least once.
    pub ever_online: u32,
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
    /// Those of several streets together.
    pub fn of_all(streets: &[Status]) -> Status {
        let mut all = Status::default();
        for street in streets {
            let earlier = all.first_online.into_iter().chain(street.first_online);
            all.first_online = earlier.min();
            all.last_online = all.last_online.max(street.last_online);
            all.ever_online += street.ever_online;
            all.sent += street.sent;
            all.counts += street.counts;
            all.octets += street.octets;
            all.unsent += street.unsent;
            all.leaving |= street.leaving;
            for (&state, count) in &street.states {
                *all.states.entry(state).or_default() += count;
            }
            for (end, count) in &street.ends {
                *all.ends.entry(end.clone()).or_default() += count;
            }
            for (&stray, count) in &street.strays {
                *all.strays.entry(stray).or_default() += count;
            }
            all.rows.extend_from_slice(&street.rows);
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

/// How many homes have a row.
const ROWS: usize = 256;

/// Who lives in a street.
pub struct Residents {
    /// The number of the first home; the others follow.
    pub first: u32,
    /// The homes.
    pub configs: Vec<HomeConfig>,
    /// How many homes there are in all streets.
    pub all: u32,
}

/// The thread of the homes of a user plane.
pub struct Street {
    orders: Sender<Order>,
    status: Arc<Mutex<Status>>,
    thread: JoinHandle<Result<()>>,
}

impl Street {
    /// All homes begin to dial.
    ///
    /// Each sends to the internet host one packet in each family once in `interval`.
    pub fn open(
        residents: Residents,
        interval: Duration,
        run: u64,
        tap: SyncDevice,
        internet: Sender<Reach>,
        host: [IpAddr; 2],
    ) -> Result<Self> {
        let (orders, inbox) = channel();
        let status = Arc::new(Mutex::new(Status::default()));
        let shared = Arc::clone(&status);
        let name = format!("homes-{}", residents.first);
        let mut keeper = Keeper::new(residents, interval, run, tap, internet, host, shared);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || keeper.run(&inbox))
            .context("cannot start the homes' thread")?;
        Ok(Street {
            orders,
            status,
            thread,
        })
    }

    /// How the homes are getting on, not older than a fraction of a second.
    pub fn status(&self) -> Status {
        locked(&self.status).clone()
    }

    /// Tells the homes; a thread that has ended does not listen, and [`Street::close`] says why.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Has the thread ended by itself?
    pub fn failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread.
    pub fn close(self) -> Result<Status> {
        self.order(Order::Stop);
        match self.thread.join() {
            Ok(done) => done?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(locked(&self.status).clone())
    }
}

/// A status is whole even if a thread died while it was held.
fn locked(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Everything that the homes' thread owns.
struct Keeper {
    /// The number of the first of them in the whole lab.
    first: u32,
    homes: Homes,
    tap: SyncDevice,
    internet: Sender<Reach>,
    host: [IpAddr; 2],
    shared: Arc<Mutex<Status>>,
    status: Status,
    verifier: Verifier,
    roll: Roll,
    pace: Pace,
    sequences: Vec<[u64; 2]>,
    run: u64,
    start: Instant,
    waiting: VecDeque<u32>,
    redialling: VecDeque<(Duration, u32)>,
    seen_online: Vec<bool>,
    sending: bool,
    leaving: bool,
    reported: Duration,
}

impl Keeper {
    fn new(
        residents: Residents,
        interval: Duration,
        run: u64,
        tap: SyncDevice,
        internet: Sender<Reach>,
        host: [IpAddr; 2],
        shared: Arc<Mutex<Status>>,
    ) -> Self {
        let Residents {
            first,
            configs,
            all,
        } = residents;
        let count = configs.len() as u32;
        Keeper {
            first,
            homes: Homes::new(configs, run.wrapping_add(first.into())),
            tap,
            internet,
            host,
            shared,
            status: Status::default(),
            verifier: Verifier::new(run, all),
            roll: Roll::new(count as usize),
            pace: Pace::new(count, interval, Duration::ZERO),
            sequences: vec![[0; 2]; count as usize],
            run,
            start: Instant::now(),
            waiting: (0..count).collect(),
            redialling: VecDeque::new(),
            seen_online: vec![false; count as usize],
            sending: count > 0,
            leaving: false,
            reported: Duration::ZERO,
        }
    }

    fn run(&mut self, inbox: &Receiver<Order>) -> Result<()> {
        let mut buffer = [0; 2048];
        loop {
            match inbox.try_recv() {
                Ok(Order::Quiet) => self.sending = false,
                Ok(Order::Speak) => {
                    self.sending = true;
                    self.pace.restart(self.start.elapsed());
                }
                Ok(Order::Call) => self.roll.call(),
                Ok(Order::HangUp) => self.hang_up(),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let now = self.start.elapsed();
            self.dial(now);
            self.homes.on_timeout(now);
            let busy = self.receive(now, &mut buffer)?;
            self.act(now);
            if self.sending {
                self.send(now);
            }
            if now.saturating_sub(self.reported) >= STATUS_EVERY {
                self.report(now);
            }
            if !busy {
                self.rest(now)?;
            }
        }
        self.report(self.start.elapsed());
        Ok(())
    }

    /// Sleeps until there is something to do, and always a little, so that what comes meanwhile is one batch.
    fn rest(&self, now: Duration) -> Result<()> {
        std::thread::sleep(PAUSE);
        let mut until = self.reported + STATUS_EVERY;
        if self.sending && self.status.ever_online > 0 {
            until = until.min(self.pace.next_at());
        }
        let soonest = [
            self.homes.poll_at(),
            self.redialling.front().map(|(at, _)| *at),
        ];
        until = soonest.into_iter().flatten().fold(until, Duration::min);
        let left = until.saturating_sub(now + PAUSE).as_millis();
        let timeout = PollTimeout::from(u16::try_from(left).unwrap_or(u16::MAX));
        let mut wanted = [PollFd::new(self.tap.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wanted, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for the homes' TAP"),
        }
    }

    fn dial(&mut self, now: Duration) {
        while self.redialling.front().is_some_and(|(at, _)| *at <= now) {
            self.waiting
                .extend(self.redialling.pop_front().map(|(_, home)| home));
        }
        if self.waiting.is_empty() || self.leaving {
            return;
        }
        let settled = |home: &&Home| matches!(home.state(), State::Offline | State::Online);
        let under_way =
            self.homes.as_slice().len() - self.homes.as_slice().iter().filter(settled).count();
        for _ in under_way..DIALLING {
            let Some(home) = self.waiting.pop_front() else {
                break;
            };
            self.homes.dial(home, now);
        }
    }

    fn hang_up(&mut self) {
        let now = self.start.elapsed();
        (self.sending, self.leaving, self.status.leaving) = (false, true, true);
        self.waiting.clear();
        self.redialling.clear();
        for home in 0..self.homes.as_slice().len() as u32 {
            self.homes.hang_up(home, now);
        }
    }

    /// Takes what has come; true if there may be more.
    fn receive(&mut self, now: Duration, buffer: &mut [u8]) -> Result<bool> {
        for _ in 0..BURST {
            match self.tap.recv(buffer) {
                Ok(length) => self.received(now, &buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("cannot read the homes' TAP"),
            }
        }
        Ok(true)
    }

    fn received(&mut self, now: Duration, frame: &[u8]) {
        match self.homes.handle_frame(now, frame) {
            // Broadcasts of others on the bridge.
            None if frame.first().is_some_and(|octet| octet & 1 == 1) => {}
            None => self.stray("a frame for no home"),
            Some((_, Received::Quiet)) => {}
            Some((_, Received::Stray(what))) => self.stray(what),
            Some((home, Received::Datagram(datagram))) => {
                let family = family_of(datagram.source);
                self.status.octets += (datagram.payload.len() + overhead(family)) as u64;
                let from =
                    (datagram.source == self.host[family as usize]).then_some(Party::Internet);
                let arrival = Arrival {
                    at: Party::Home(self.first + home),
                    from,
                    family,
                };
                if self.verifier.check(arrival, datagram.payload) == Verdict::InOrder
                    && self.roll.note(home as usize, family)
                {
                    self.status.all_heard = Some(Instant::now());
                }
            }
        }
    }

    fn stray(&mut self, what: &'static str) {
        self.verifier.count_misdelivered();
        *self.status.strays.entry(what).or_default() += 1;
    }

    /// Carries out what the homes want done.
    fn act(&mut self, now: Duration) {
        while let Some((home, output)) = self.homes.poll_output() {
            match output {
                Output::Frame(frame) => self.transmit(&frame),
                Output::Up(address) => {
                    self.tell(Reach {
                        home: self.first + home,
                        family: family_of(address),
                        address: Some(address),
                    });
                    self.note_online(home, now);
                }
                Output::Down(family) => self.tell(Reach {
                    home: self.first + home,
                    family,
                    address: None,
                }),
                Output::Ended(end) => self.ended(home, &end, now),
            }
        }
    }

    fn note_online(&mut self, home: u32, now: Duration) {
        let online = self.homes.as_slice()[home as usize].state() == State::Online;
        if online && !std::mem::replace(&mut self.seen_online[home as usize], true) {
            self.status.ever_online += 1;
            self.status.first_online.get_or_insert(now);
            self.status.last_online = Some(now);
        }
    }

    fn ended(&mut self, home: u32, end: &End, now: Duration) {
        if *end != End::HungUp {
            *self.status.ends.entry(end.to_string()).or_default() += 1;
        }
        if !self.leaving {
            self.redialling.push_back((now + REDIAL, home));
        }
    }

    fn tell(&self, reach: Reach) {
        // An internet that has gone is noticed by whoever watches it.
        let _ = self.internet.send(reach);
    }

    /// One verified packet in each family for each home whose turn it is.
    fn send(&mut self, now: Duration) {
        for number in self.pace.due(now) {
            for family in Family::ALL {
                if self.homes.as_slice()[number as usize].state() == State::Online {
                    self.send_one(number, family);
                }
            }
        }
    }

    fn send_one(&mut self, number: u32, family: Family) {
        let sequence = self.sequences[number as usize][family as usize];
        let label = Label {
            run: self.run,
            from: Party::Home(self.first + number),
            to: Party::Internet,
            family,
            sequence,
        };
        let mut payload = Vec::with_capacity(1500);
        label.emit(size_of(sequence) - overhead(family), &mut payload);
        let home = &self.homes.as_slice()[number as usize];
        if let Some(frame) = home.datagram(self.host[family as usize], PORT, PORT, &payload)
            && self.transmit_checked(&frame)
        {
            self.sequences[number as usize][family as usize] += 1;
            self.status.sent += 1;
        }
    }

    fn transmit(&mut self, frame: &[u8]) {
        self.transmit_checked(frame);
    }

    fn transmit_checked(&mut self, frame: &[u8]) -> bool {
        let sent = self.tap.send(frame).is_ok();
        self.status.unsent += u64::from(!sent);
        sent
    }

    fn report(&mut self, now: Duration) {
        self.reported = now;
        self.status.states.clear();
        for home in self.homes.as_slice() {
            *self.status.states.entry(home.state()).or_default() += 1;
        }
        self.status.counts = self.verifier.counts();
        let rows = self.homes.as_slice().iter().zip(0..).take(ROWS);
        self.status.rows = rows.map(|(home, number)| self.row(home, number)).collect();
        locked(&self.shared).clone_from(&self.status);
    }

    fn row(&self, home: &Home, number: u32) -> Row {
        let received = |family| self.verifier.received(self.first + number, family);
        Row {
            user: home.config().user.clone(),
            line: home.config().tags.to_string(),
            state: home.state(),
            session_id: home.session_id(),
            addresses: [home.ipv4().map(IpAddr::from), home.ipv6().map(IpAddr::from)],
            packets: [
                self.sequences[number as usize].iter().sum(),
                Family::ALL.into_iter().map(received).sum(),
            ],
        }
    }
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
