//! The parts that run: started and killed, given their inputs, and rid of what they have to say.

use super::intruders::Towards;
use super::{CONTROL, Datagram, Event, Gateway, USER_PLANE, Who, moment, server_address};
use crate::outage::servers::Request;
use crate::user_plane::{Sent, UserPlane, gtpu_at};
use control::{ControlPlane, Dictionary, Input, Output, Restored};
use core::time::Duration;
use rand::Rng;
use std::net::SocketAddr;
use std::time::Instant;
use wire::gtpu;
use wire::pfcp::ntp_seconds;
use wire::radius::Code;

/// From one part to another.
const DELAY: Duration = Duration::from_micros(300);
/// Until a disk has what it was handed.
const SYNC: Duration = Duration::from_millis(1);

impl Gateway {
    /// The control plane starts, from its store.
    pub fn start_control(&mut self) {
        let now = moment(self.now);
        let seed = self.random.random();
        let live = self.disk.open();
        let restored =
            live.and_then(|live| Restored::read(live, ntp_seconds(now.unix.into()), "boot"));
        let started = restored.and_then(|restored| {
            let (start, configuration) = (&self.start, self.configuration.clone());
            let restored = restored.behind_history(self.history);
            let dictionary = Dictionary::shipped();
            ControlPlane::new(start, dictionary, configuration, restored, seed, now)
                .map_err(|faults| format!("{faults:?}"))
        });
        match started {
            Ok(control) => {
                self.control = Some(control);
                self.user_plane_was_told();
                self.drain_control();
            }
            Err(why) => self.wrong(format!("the control plane does not start: {why}")),
        }
    }

    /// The control plane dies: what is not on its disks is lost.
    pub fn kill_control(&mut self) {
        self.control = None;
        self.control_life += 1;
        self.armed.remove(&Who::Control);
        self.disk.crash(&mut self.disk_random);
        let handed = std::mem::take(&mut self.disk.history);
        let written = self.disk_random.random_range(0..=handed.len());
        let last = written.checked_sub(1).and_then(|last| handed.get(last));
        self.history = last.map_or(self.history, |(number, _)| *number);
    }

    /// The user plane starts. It knows its ports if it has ever been told them, and no session.
    pub fn start_user_plane(&mut self) {
        let start = format!(
            "node-id: up1\naddress: {USER_PLANE}\ncontrol-planes: [{CONTROL}]\nmax-sessions: 30000\nworkers: 1\n"
        );
        let start = config::parse(&start, "up.yaml").expect("a start file");
        let (random, now) = (self.random.random(), moment(self.now));
        self.up = Some(UserPlane::new(start, self.kept.clone(), random, now));
        self.user_plane_was_told();
        self.drain_user_plane();
    }

    /// The user plane dies, with all that it had.
    pub fn kill_user_plane(&mut self) {
        self.up = None;
        self.plane_life += 1;
        self.armed.remove(&Who::UserPlane);
    }

    /// The control plane learns that a user plane has its ports.
    pub(super) fn user_plane_was_told(&mut self) {
        let up = self.up.as_ref();
        let is_told = up.is_some_and(|up| up.in_force().is_some());
        if let Some(control) = self.control.as_mut().filter(|_| is_told) {
            control.user_plane_was_told(moment(self.now), "up1");
            self.drain_control();
        }
    }

    pub(super) fn wrong(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    pub(super) fn control_is_due(&mut self) {
        let (begin, now) = (Instant::now(), moment(self.now));
        if let Some(control) = &mut self.control {
            control.on_timeout(now);
        }
        self.spent += begin.elapsed();
        self.drain_control();
    }

    pub(super) fn user_plane_is_due(&mut self) {
        let now = moment(self.now);
        if let Some(up) = &mut self.up {
            up.on_timeout(now);
        }
        self.drain_user_plane();
    }

    pub(super) fn at_server(&mut self, server: usize, request: &Request) {
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
            Err(why) => self.wrong(why),
        }
    }

    pub(super) fn at_control(&mut self, datagram: Datagram) {
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

    pub(super) fn at_user_plane(&mut self, datagram: &Datagram) {
        let now = moment(self.now);
        let Some(up) = &mut self.up else {
            return;
        };
        match datagram {
            Datagram::Pfcp(bytes) => {
                up.on_pfcp(now, SocketAddr::new(CONTROL, wire::pfcp::PORT), bytes)
            }
            Datagram::Gtpu(bytes) => up.on_gtpu(now, gtpu_at(CONTROL), bytes),
            Datagram::Radius(..) => {}
        }
        self.drain_user_plane();
    }

    pub(super) fn work(&mut self, worker: usize) {
        let now = moment(self.now);
        if let Some(up) = &mut self.up {
            up.work(now, worker);
        }
        self.drain_user_plane();
    }

    fn sync(&mut self) {
        // always as fast: here the servers are what is slow
        if self.disk.sync(&mut self.disk_random).is_some() {
            self.later(SYNC, Event::Synced(self.control_life));
        }
    }

    pub(super) fn synced(&mut self) {
        match self.disk.synced() {
            Ok(Some(batch)) => self.input(Input::Durable(batch)),
            Ok(None) => {}
            Err(why) => self.wrong(format!("the store failed: {why}")),
        }
        self.sync();
    }

    /// The history's disk has every block up to this one.
    pub(super) fn keep(&mut self, number: u64) {
        self.history = number;
        let handed = &mut self.disk.history;
        handed.retain(|(other, _)| *other > number);
        self.input(Input::Kept(number));
    }

    pub(super) fn input(&mut self, input: Input<'_>) {
        let (begin, now) = (Instant::now(), moment(self.now));
        if let Some(control) = &mut self.control {
            control.handle(now, input);
        }
        self.spent += begin.elapsed();
        self.drain_control();
    }

    fn poll_control(&mut self) -> Option<Output> {
        let begin = Instant::now();
        let output = self.control.as_mut()?.poll_output();
        self.spent += begin.elapsed();
        output
    }

    pub(super) fn drain_control(&mut self) {
        while let Some(output) = self.poll_control() {
            match output {
                Output::Pfcp { to, bytes } => self.send_pfcp(to, bytes),
                Output::Gtpu { bytes, .. } => {
                    self.check_release(&bytes);
                    self.later(DELAY, Event::ToUserPlane(Datagram::Gtpu(bytes)));
                }
                Output::Radius { socket, to, bytes } => self.ask_server(socket, to, bytes),
                Output::DynamicAuthorization { bytes, .. } => {
                    self.acknowledged += u32::from(bytes[0] == Code::COA_ACK.0);
                }
                Output::Store(records) => {
                    self.disk.write(records);
                    self.sync();
                }
                Output::History { number, block } => {
                    self.disk.history.push_back((number, block));
                    self.later(SYNC, Event::Kept(self.control_life, number));
                }
                Output::Answer { answer, .. } => self.answer = Some(answer),
                _ => {}
            }
        }
        self.check_step();
        let at = self.control.as_ref().and_then(ControlPlane::poll_at);
        self.arm(Who::Control, at);
    }

    fn send_pfcp(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.listen_in(Towards::UserPlane, to, &bytes) {
            self.later(DELAY, Event::ToUserPlane(Datagram::Pfcp(bytes)));
        }
    }

    fn ask_server(&mut self, socket: u16, to: SocketAddr, bytes: Vec<u8>) {
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

    pub(super) fn drain_user_plane(&mut self) {
        while let Some(sent) = self.up.as_mut().and_then(UserPlane::poll_sent) {
            match sent {
                Sent::Pfcp(to, bytes) => {
                    let to = SocketAddr::new(to, wire::pfcp::PORT);
                    if self.listen_in(Towards::Control, to, &bytes) {
                        self.later(DELAY, Event::ToControl(Datagram::Pfcp(bytes)));
                    }
                }
                Sent::Gtpu(_, bytes) => self.later(DELAY, Event::ToControl(Datagram::Gtpu(bytes))),
                Sent::Frame(_, frame) => {
                    let home = usize::from(frame[4]) << 8 | usize::from(frame[5]);
                    self.frames.push_back((home, frame));
                }
                Sent::Internet(packet) => self.checks.internet.push(packet),
            }
        }
        while let Some(worker) = self.up.as_mut().and_then(UserPlane::poll_work) {
            let work = Event::Work(self.plane_life, worker);
            self.later(Duration::from_micros(50), work);
        }
        let at = self.up.as_ref().and_then(UserPlane::poll_at);
        self.arm(Who::UserPlane, at);
    }
}
