//! The thread of an access network: it keeps its homes dialling, talking and listening.

use super::{Order, PORT, Residents, Row, Shown, Status, family_of, locked, overhead, size_of};
use crate::internet::Reach;
use crate::roll::Roll;
use anyhow::{Context, Result};
use cpe::{
    Arrival, End, Family, Home, Homes, Label, Output, Pace, Party, Received, State, Verdict,
    Verifier,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};
use tun_rs::SyncDevice;

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

/// How many homes have a row.
const ROWS: usize = 256;

/// Everything that the homes' thread owns.
pub(super) struct Keeper {
    /// The number of the first of them in the whole lab.
    first: u32,
    homes: Homes,
    tap: SyncDevice,
    internet: Sender<Reach>,
    host: [IpAddr; 2],
    shown: Shown,
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
    /// When all homes rebooted, until they are online again.
    rebooted: Option<Duration>,
    /// When all homes reboot once more.
    reboot_at: Option<Duration>,
}

impl Keeper {
    pub(super) fn new(
        residents: Residents,
        interval: Duration,
        run: u64,
        tap: SyncDevice,
        internet: Sender<Reach>,
        host: [IpAddr; 2],
        shown: Shown,
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
            shown,
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
            rebooted: None,
            reboot_at: None,
        }
    }

    pub(super) fn run(&mut self, inbox: &Receiver<Order>) -> Result<()> {
        let mut buffer = [0; 2048];
        loop {
            match inbox.try_recv() {
                Ok(Order::Quiet) => self.sending = false,
                Ok(Order::Speak) => {
                    self.sending = true;
                    self.pace.restart(self.start.elapsed());
                }
                Ok(Order::Call) => self.roll.call(),
                Ok(Order::Reboot(again)) => {
                    self.reboot();
                    self.reboot_at = again.map(|after| self.start.elapsed() + after);
                }
                Ok(Order::HangUp) => self.hang_up(),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let now = self.start.elapsed();
            if self.reboot_at.is_some_and(|at| at <= now) {
                self.reboot_at = None;
                self.reboot();
            }
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
            self.reboot_at,
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

    fn reboot(&mut self) {
        let now = self.start.elapsed();
        self.status.reboots += 1;
        self.status.back_online = None;
        self.rebooted = Some(now);
        self.redialling.clear();
        self.waiting.clear();
        for home in 0..self.homes.as_slice().len() as u32 {
            let seed = self.run ^ now.as_nanos() as u64 ^ (u64::from(home) << 32);
            self.homes.reboot(home, seed);
            self.waiting.push_back(home);
        }
        self.report(now);
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
                let octets = datagram.payload.len() + overhead(family);
                self.status.octets += octets as u64;
                self.shown.octets.add(home, family, octets);
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
        let homes = self.homes.as_slice();
        let is_online = |home: &Home| home.state() == State::Online;
        if let Some(rebooted) = self.rebooted.filter(|_| homes.iter().all(is_online)) {
            self.status.back_online = Some(now - rebooted);
            self.rebooted = None;
        }
        let online = is_online(&homes[home as usize]);
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
        locked(&self.shown.status).clone_from(&self.status);
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
