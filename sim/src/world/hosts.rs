//! The parts that run: started, given their inputs, and rid of what they have to say.

use super::liars::LIES;
use super::scene::{control_address, plane_at, plane_name, server_address, user_plane_start};
use super::{Datagram, Event, Instant, Radius, Who, World};
use crate::access_network::Line;
use crate::plan::{Link, Part, SERVERS};
use crate::user_plane::{Sent, UserPlane};
use control::{ControlPlane, Dictionary, Input, Output, Restored};
use core::time::Duration;
use dataplane::PortIndex;
use rand::Rng;
use wire::pfcp::ntp_seconds;

impl World<'_> {
    pub(super) fn control_input(&mut self, input: Input<'_>) {
        let moment = self.moment(Part::Control);
        if let Some(control) = &mut self.control {
            control.handle(moment, input);
            self.drain_control();
        }
    }

    pub(super) fn drain_control(&mut self) {
        while let Some(output) = self.control.as_mut().and_then(ControlPlane::poll_output) {
            match output {
                Output::Pfcp { to, bytes } => match plane_at(to.ip()) {
                    Some(_) if to.port() == LIES => self.check_lie(&bytes),
                    Some(plane) => self.send(Link::ToUserPlane(plane), Datagram::Pfcp(bytes)),
                    None => self.wrong(format!("{to}, which is no user plane's, is answered")),
                },
                Output::Gtpu { to, bytes } => match plane_at(to.ip()) {
                    Some(plane) => {
                        self.check_release(&bytes);
                        self.send(Link::ToUserPlane(plane), Datagram::Gtpu(bytes));
                    }
                    None => self.wrong(format!("{to}, which is no user plane's, is answered")),
                },
                Output::Radius { socket, to, bytes } => {
                    if let Some(server) =
                        (0..SERVERS).find(|n| server_address(&self.plan, *n) == to.ip())
                    {
                        let radius = Radius {
                            socket,
                            server: to,
                            bytes,
                        };
                        self.send(Link::ToServer(server), Datagram::Radius(radius.into()));
                    }
                }
                Output::Store(records) => {
                    self.disk.write(records);
                    self.sync();
                }
                Output::History { number, block } => self.keep(number, &block),
                // a socket keeps its number, and with that its port; servers are asked over UDP; no user has a hash
                Output::RadiusSockets(_)
                | Output::RadiusServers(_)
                | Output::RadiusSend { .. }
                | Output::RadiusClose(_)
                | Output::HistoryBounds(_)
                | Output::Answer { .. }
                | Output::VerifyPassword { .. } => {}
                Output::DynamicPort(_) => {}
                Output::DynamicAuthorization { to, bytes } => {
                    let server = (0..SERVERS).find(|n| server_address(&self.plan, *n) == to.ip());
                    if let Some(server) = server {
                        self.send(Link::ToServer(server), Datagram::Dynamic(bytes));
                    }
                }
            }
        }
        self.checks.control_changed = true;
        self.arm(Who::Control);
    }

    /// The history's disk takes a block, and may take its time to say so: the control plane may die before.
    fn keep(&mut self, number: u64, block: &[u8]) {
        self.disk.history.push_back((number, block.to_vec()));
        let after = Duration::from_micros(self.random.random_range(1..20_000));
        self.later(after, Event::Kept(self.control_life, number));
    }

    /// The history's disk has every block up to this one.
    pub(super) fn kept(&mut self, number: u64) {
        let history = &mut self.disk.history;
        let upto = history.partition_point(|(other, _)| *other <= number);
        let blocks = history.drain(..upto).collect();
        self.remember(blocks);
        self.control_input(Input::Kept(number));
    }

    pub(super) fn sync(&mut self) {
        if let Some(span) = self.disk.sync(&mut self.random) {
            self.later(span, Event::Synced(self.control_life));
        }
    }

    pub(super) fn synced(&mut self) {
        match self.disk.synced() {
            Ok(Some(batch)) => {
                self.say(|| format!("disk: batch {batch} is safe"));
                self.control_input(Input::Durable(batch));
            }
            Ok(None) => {}
            Err(error) => self.wrong(format!("the store failed: {error}")),
        }
        self.sync();
    }

    pub(super) fn start_control_plane(&mut self) {
        let moment = self.moment(Part::Control);
        let seed = self.random.random();
        let boot = format!("boot {}", self.boots);
        let started = self
            .disk
            .open()
            .and_then(|live| Restored::read(live, ntp_seconds(moment.unix.into()), &boot))
            .and_then(|restored| {
                let restored = restored.behind_history(self.history.last);
                let configuration = self.configuration.configuration.clone();
                ControlPlane::new(
                    &self.start,
                    Dictionary::shipped(),
                    configuration,
                    restored,
                    seed,
                    moment,
                )
                .map_err(|faults| format!("{faults:?}"))
            });
        match started {
            Ok(control) => {
                let sessions = control.session_count();
                self.say(|| format!("control plane starts with {sessions} sessions"));
                self.control = Some(control);
                self.control_life += 1;
                self.drain_control();
                self.manage();
            }
            Err(error) => self.wrong(format!("the control plane does not start: {error}")),
        }
    }

    // ---- the user planes

    pub(super) fn start_user_plane(&mut self, plane: usize) {
        let random = self.random.random();
        self.origins.insert(Part::UserPlane(plane), self.now);
        let moment = self.moment(Part::UserPlane(plane));
        let start = user_plane_start(&self.plan, plane);
        self.say(|| format!("{} starts", plane_name(plane)));
        let kept = self.kept[plane].clone();
        self.planes[plane] = Some(UserPlane::new(start, kept, random, moment));
        self.plane_lives[plane] += 1;
        self.arm(Who::UserPlane(plane));
    }

    pub(super) fn drain_user_plane(&mut self, plane: usize) {
        let control = control_address(self.plan.over_ipv6);
        let Some(up) = &mut self.planes[plane] else {
            return;
        };
        let mut sent = Vec::new();
        while let Some(one) = up.poll_sent() {
            sent.push(one);
        }
        let work: Vec<usize> = std::iter::from_fn(|| up.poll_work()).collect();
        for one in sent {
            match one {
                Sent::Pfcp(to, _) | Sent::Gtpu(to, _) if to != control => {
                    self.wrong(format!("{to}, which is no control plane's, is answered"));
                }
                Sent::Pfcp(_, bytes) => {
                    self.note_sequence(plane, &bytes);
                    let bytes = self.embellished(plane, bytes);
                    self.send(Link::FromUserPlane(plane), Datagram::Pfcp(bytes));
                }
                Sent::Gtpu(_, bytes) => {
                    self.send(Link::FromUserPlane(plane), Datagram::Gtpu(bytes));
                }
                Sent::Frame(PortIndex(port), frame) => {
                    if let Some(line) = Line::of_frame(plane, PortIndex(port), &frame) {
                        self.instants.push_back(Instant::ToHome(line, frame));
                    }
                }
                Sent::Internet(packet) => self.instants.push_back(Instant::Internet(packet)),
            }
        }
        for worker in work {
            let after = Duration::from_micros(self.random.random_range(1..300));
            self.later(after, Event::Work(plane, self.plane_lives[plane], worker));
        }
        self.arm(Who::UserPlane(plane));
    }
}
