//! The thread of an access network: it keeps its homes dialling, talking and listening.

use super::dialler::Dialler;
use super::traffic::Traffic;
use super::{
    HomeOutcome, Order, Outcome, Plan, Residents, Row, Sessions, Shown, Status, family_of, locked,
    overhead,
};
use crate::port::{FRAME, Port};
use crate::roll::Roll;
use anyhow::{Context, Result};
use cpe::{End, Family, Home, Homes, Output, Received, State, Verdict};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::HashSet;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant, SystemTime};
use wire::eth::MacAddr;

/// Frames taken at one go.
const BURST: usize = 512;
/// How often the status is renewed.
const STATUS_EVERY: Duration = Duration::from_millis(200);
/// How many homes have a row.
const ROWS: usize = 256;
/// Reasons for ends that are told apart; a gateway may give any number of them.
const REASONS: usize = 64;
/// All others.
const OTHER_REASONS: &str = "other reasons";

/// Everything that the homes' thread owns.
pub(super) struct Keeper {
    homes: Homes,
    macs: HashSet<MacAddr>,
    port: Port,
    shown: Shown,
    status: Status,
    dialler: Dialler,
    traffic: Traffic,
    roll: Roll,
    outcome: Outcome,
    sessions: Vec<Sessions>,
    run: u64,
    pause: Duration,
    start: Instant,
    /// Whether homes send verified packets now.
    sending: bool,
    /// Whether the plan lets them send at all.
    sends: bool,
    /// Who was online when the homes were told to hang up.
    were_online: Vec<bool>,
    /// Which homes had a delegated prefix then.
    had_prefix: Vec<bool>,
    reported: Duration,
    /// When all homes rebooted, until they are online again.
    rebooted: Option<Duration>,
    /// When all homes reboot once more.
    reboot_at: Option<Duration>,
}

impl Keeper {
    pub(super) fn new(residents: Residents, plan: Plan, port: Port, shown: Shown) -> Self {
        let Residents {
            first,
            configs,
            all,
        } = residents;
        let count = configs.len() as u32;
        let numbers = [first, count, all];
        let interval = plan.interval.unwrap_or(Duration::MAX);
        let sends = plan.interval.is_some() && count > 0;
        Keeper {
            macs: configs.iter().map(|config| config.mac).collect(),
            homes: Homes::new(configs, plan.run.wrapping_add(first.into())),
            port,
            shown,
            status: Status::default(),
            dialler: Dialler::new(count, plan.dialling, plan.flapping),
            traffic: Traffic::new(numbers, plan.far, interval, plan.run, plan.largest),
            roll: Roll::new(count as usize),
            outcome: Outcome::default(),
            sessions: vec![Sessions::default(); count as usize],
            run: plan.run,
            pause: plan.pause,
            start: Instant::now(),
            sending: sends,
            sends,
            were_online: Vec::new(),
            had_prefix: Vec::new(),
            reported: Duration::ZERO,
            rebooted: None,
            reboot_at: None,
        }
    }

    pub(super) fn run(mut self, inbox: &Receiver<Order>) -> Result<Outcome> {
        let mut buffer = [0; FRAME];
        loop {
            match inbox.try_recv() {
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => break,
                Ok(order) => self.obey(order),
                Err(TryRecvError::Empty) => {}
            }
            let now = self.start.elapsed();
            if self.reboot_at.is_some_and(|at| at <= now) {
                self.reboot_at = None;
                self.reboot();
            }
            self.dialler.run(now, &mut self.homes, self.run);
            self.homes.on_timeout(now);
            self.act(now);
            let busy = self.receive(&mut buffer)?;
            if self.sending {
                self.send(now);
            }
            if now.saturating_sub(self.reported) >= STATUS_EVERY {
                self.report(now);
            }
            if !busy {
                self.rest()?;
            }
        }
        self.report(self.start.elapsed());
        Ok(self.conclude())
    }

    fn obey(&mut self, order: Order) {
        let now = self.start.elapsed();
        match order {
            Order::Quiet => self.sending = false,
            Order::Speak => {
                self.sending = self.sends;
                self.traffic.restart(now);
            }
            Order::Call => self.roll.call(),
            Order::Reboot(again) => {
                self.reboot();
                self.reboot_at = again.map(|after| now + after);
            }
            Order::Flap => self.dialler.start_flapping(now),
            Order::Stay => self.dialler.stop_flapping(),
            Order::HangUp => {
                self.prepare_to_leave(now);
                self.dialler.hang_up(&self.homes);
            }
            Order::Leave => {
                self.prepare_to_leave(now);
                self.dialler.leave(&mut self.homes);
            }
            Order::Stop => {}
        }
    }

    fn prepare_to_leave(&mut self, now: Duration) {
        (self.sending, self.status.leaving) = (false, true);
        self.reboot_at = None;
        if self.were_online.is_empty() {
            let is_online = |home: &Home| home.state() == State::Online;
            self.were_online = self.homes.as_slice().iter().map(is_online).collect();
            let has_prefix = |home: &Home| !home.delegated().is_empty();
            self.had_prefix = self.homes.as_slice().iter().map(has_prefix).collect();
            self.outcome.hung_up = now;
        }
    }

    /// Sleeps until there is something to do, and always a little if the plan says so, so that what comes meanwhile is one batch.
    fn rest(&self) -> Result<()> {
        if !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
        let mut until = self.reported + STATUS_EVERY;
        if self.sending && self.homes.at(State::Online) > 0 {
            until = until.min(self.traffic.next_at());
        }
        let soonest = [
            self.homes.poll_at(),
            self.dialler.next_at(&self.homes),
            self.reboot_at,
        ];
        until = soonest.into_iter().flatten().fold(until, Duration::min);
        let left = until.saturating_sub(self.start.elapsed());
        let mut wanted = [PollFd::new(self.port.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut wanted, Some(TimeSpec::from_duration(left)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for the homes' port"),
        }
    }

    fn reboot(&mut self) {
        let now = self.start.elapsed();
        self.status.reboots += 1;
        self.status.back_online = None;
        self.rebooted = Some(now);
        self.dialler.all_rebooted();
        for home in 0..self.homes.as_slice().len() as u32 {
            let seed = self.run ^ now.as_nanos() as u64 ^ (u64::from(home) << 32);
            self.homes.reboot(home, seed);
        }
        self.report(now);
    }

    /// Takes what has come, and answers it; true if there may be more.
    fn receive(&mut self, buffer: &mut [u8; FRAME]) -> Result<bool> {
        for _ in 0..BURST {
            let Some(arrived) = self.port.receive(buffer)? else {
                return Ok(false);
            };
            let now = self.start.elapsed();
            // The kernel's clock is another one, and may have been set meanwhile.
            let age = arrived
                .at
                .and_then(|at| SystemTime::now().duration_since(at).ok());
            let at = now.saturating_sub(age.unwrap_or_default());
            self.received(at, &buffer[..arrived.length]);
            self.act(now);
        }
        Ok(true)
    }

    fn received(&mut self, at: Duration, frame: &[u8]) {
        match self.homes.handle_frame(at, frame) {
            None if self.is_others(frame) => {}
            None => self.stray("a frame for no home"),
            Some((_, Received::Quiet)) => {}
            Some((_, Received::Stray(what))) => self.stray(what),
            Some((home, Received::Datagram(datagram))) => {
                let family = family_of(datagram.source);
                let octets = datagram.payload.len() + overhead(family);
                self.status.octets += octets as u64;
                self.shown.octets.add(home, family, octets);
                let verdict = self.traffic.arrived(home, &datagram, at, &self.homes);
                if verdict == Verdict::InOrder && self.roll.note(home as usize, family) {
                    self.status.all_heard = Some(Instant::now());
                }
            }
        }
    }

    /// Whether a frame that is for no home is no business of ours: a broadcast, or on an interface that others use too.
    fn is_others(&self, frame: &[u8]) -> bool {
        let Some(destination) = frame.first_chunk::<6>() else {
            return self.port.is_shared();
        };
        let destination = MacAddr(*destination);
        destination.is_group() || self.port.is_shared() && !self.macs.contains(&destination)
    }

    fn stray(&mut self, what: &'static str) {
        self.traffic.count_stray();
        *self.status.strays.entry(what).or_default() += 1;
    }

    /// Carries out what the homes want done.
    fn act(&mut self, now: Duration) {
        while let Some((home, output)) = self.homes.poll_output() {
            match output {
                Output::Frame(frame) => {
                    self.transmit(&frame);
                }
                Output::Up(address) => self.traffic.addressed(home, address),
                Output::Down(family) => self.traffic.unaddressed(home, family),
                Output::Online => self.came_online(home, now),
                Output::Ended(end) => self.ended(home, &end, now),
            }
        }
    }

    fn came_online(&mut self, home: u32, now: Duration) {
        self.dialler.came_online(home);
        let all = self.homes.as_slice().len() as u32;
        if let Some(rebooted) = self
            .rebooted
            .filter(|_| self.homes.at(State::Online) == all)
        {
            self.status.back_online = Some(now - rebooted);
            self.rebooted = None;
        }
        let progress = self.homes.as_slice()[home as usize].progress();
        let sessions = &mut self.sessions[home as usize];
        // A family that was lost and has come back is no other set-up.
        if progress.online != sessions.counted {
            sessions.counted = progress.online;
            self.outcome.set_ups.record(progress);
            self.status.set_ups += 1;
            if sessions.set_up == 0 {
                self.status.ever_online += 1;
                self.status.first_online.get_or_insert(now);
                self.status.last_online = Some(now);
                if self.status.ever_online == all - all / 100 {
                    self.status.most_online = Some(now);
                }
            }
            sessions.set_up += 1;
        }
    }

    fn ended(&mut self, home: u32, end: &End, now: Duration) {
        let is_planned = *end == End::HungUp;
        if !is_planned {
            let why = printable(&end.to_string());
            let sessions = &mut self.sessions[home as usize];
            let progress = self.homes.as_slice()[home as usize].progress();
            match progress.online {
                Some(_) => sessions.lost += 1,
                None => sessions.failed += 1,
            }
            sessions.last_end = Some(why.clone());
            let ends = &mut self.status.ends;
            let is_known = ends.contains_key(&why) || ends.len() < REASONS;
            let why = if is_known { why } else { OTHER_REASONS.into() };
            *ends.entry(why).or_default() += 1;
        }
        self.dialler.ended(home, is_planned, now);
    }

    /// One verified packet in each family for each home whose turn it is.
    fn send(&mut self, now: Duration) {
        for home in self.traffic.due(now) {
            let is_there = self.homes.as_slice()[home as usize].state() == State::Online;
            if !is_there || self.dialler.is_muted(home) {
                continue;
            }
            for family in Family::ALL {
                let may_hear = |other| !self.dialler.is_muted(other);
                let now = self.start.elapsed();
                let packet = self
                    .traffic
                    .packet(home, family, &self.homes, may_hear, now);
                if let Some(packet) = packet {
                    let sent = self.transmit(&packet.frame);
                    // A refused packet is a lost one. Sent again, one that is always refused would hold up all that follow.
                    self.status.unsent_packets += u64::from(!sent);
                    self.traffic.sent(home, packet.family);
                    self.status.sent += 1;
                }
            }
        }
    }

    fn transmit(&mut self, frame: &[u8]) -> bool {
        let sent = self.port.send(frame);
        self.status.unsent += u64::from(!sent);
        sent
    }

    fn report(&mut self, now: Duration) {
        self.reported = now;
        let counted = State::ALL.map(|state| (state, self.homes.at(state)));
        let counted = counted.into_iter().filter(|(_, count)| *count > 0);
        self.status.states = counted.collect();
        self.status.counts = self.traffic.counts();
        self.status.flaps = self.dialler.flaps();
        self.status.overflowed = self.port.overflowed();
        let rows = self.homes.as_slice().iter().zip(0..).take(ROWS);
        self.status.rows = rows.map(|(home, number)| self.row(home, number)).collect();
        locked(&self.shown.status).clone_from(&self.status);
    }

    fn row(&self, home: &Home, number: u32) -> Row {
        Row {
            user: home.config().user.clone(),
            line: home.config().tags.to_string(),
            state: home.state(),
            session_id: home.session_id(),
            addresses: [home.ipv4().map(IpAddr::from), home.ipv6().map(IpAddr::from)],
            packets: [
                self.traffic.sent_by(number).iter().sum(),
                self.traffic.received_by(number).iter().sum(),
            ],
        }
    }

    /// What all of it has come to.
    fn conclude(self) -> Outcome {
        let mut outcome = self.outcome;
        let homes = self.homes.as_slice().iter().zip(self.sessions).zip(0..);
        let concluded = homes.map(|((home, sessions), number)| HomeOutcome {
            user: home.config().user.clone(),
            line: home.config().tags.to_string(),
            is_online: self.were_online.get(number as usize) == Some(&true),
            has_prefix: self.had_prefix.get(number as usize) == Some(&true),
            sessions,
            sent: self.traffic.sent_by(number),
            arrived: self.traffic.arrived_of(number),
            reflected: self.traffic.reflected_of(number),
        });
        outcome.homes = concluded.collect();
        outcome.delays = self.traffic.into_delays();
        outcome
    }
}

/// A text of the gateway's without what a terminal would obey.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}
