//! What passes without delay: frames on subscribers' lines, and packets through the core to the internet and back.

use super::stops::Waiting;
use super::{Event, Instant, Phase, RUN, Who, World};
use crate::access_network::Line;
use crate::describe;
use crate::internet::{INTERNET, TRAFFIC_PORT, datagram_of, reply_to};
use crate::plan::Part;
use crate::traffic::{Carried, Direction};
use core::time::Duration;
use cpe::{Arrival, Family, Label, Party, Received, Stamp, Verdict};
use dataplane::PortIndex;
use rand::Rng;
use std::net::IpAddr;
use wire::eth::{Frame, PPPOE_SESSION};
use wire::{ppp, pppoe};

impl World<'_> {
    pub(super) fn settle_instants(&mut self) {
        while let Some(instant) = self.instants.pop_front() {
            match instant {
                Instant::FromHome(home, frame) => self.leave_home(home, &frame),
                Instant::ToHome(line, frame) => self.reach_home(line, &frame),
                Instant::Internet(packet) => self.at_internet(&packet),
            }
        }
    }

    pub(super) fn leave_home(&mut self, home: usize, frame: &[u8]) {
        let line = self.houses[home].line;
        let Line { plane, port, .. } = line;
        if self.is_stopped(Part::UserPlane(plane)) {
            let frame = Waiting::Frame(home, frame.to_vec());
            return self.keep_waiting(Part::UserPlane(plane), frame);
        }
        let Some(up) = &mut self.planes[plane] else {
            return;
        };
        let dropped = up.on_frame(PortIndex(port), frame);
        match dropped {
            Some(why) => {
                self.say(|| format!("home{home} {} (dropped: {why})", describe::frame(frame)))
            }
            None => self.count(line, frame, Direction::Up),
        }
        self.drain_user_plane(plane);
    }

    pub(super) fn reach_home(&mut self, line: Line, frame: &[u8]) {
        let Some(home) = line.home() else { return };
        self.say(|| format!("home{home} gets {}", describe::frame(frame)));
        self.count(line, frame, Direction::Down);
        let house = &mut self.houses[home];
        if !house.is_for(frame) {
            return self.answer_falsely(home, frame); // or for those who lived there before
        }
        match house.home.handle_frame(self.now, frame) {
            Received::Quiet => {}
            Received::Datagram(datagram) => {
                let family = if datagram.source.is_ipv4() {
                    Family::V4
                } else {
                    Family::V6
                };
                let at = Party::Home(home as u32);
                let from = INTERNET
                    .contains(&datagram.source)
                    .then_some(Party::Internet);
                let payload = datagram.payload.to_vec();
                house.heard[family as usize] += 1;
                self.summary.replies += 1;
                let verdict = self.at_homes.check(Arrival { at, from, family }, &payload);
                if verdict != Verdict::InOrder {
                    self.wrong(format!(
                        "{verdict:?} at home{home}: {:?}",
                        Label::parse(&payload)
                    ));
                }
            }
            // A control packet that was under way while the session was replaced by another one.
            Received::Stray("another session's packet" | "not a PPPoE session packet") => {}
            Received::Stray(_) if self.houses[home].is_misunderstood => {}
            Received::Stray(why) => {
                let frame = describe::frame(frame);
                self.wrong(format!("home{home} got {frame}: {why}"));
            }
        }
        self.drain_home(home);
    }

    /// What a session carried is counted as its line saw it.
    fn count(&mut self, line: Line, frame: &[u8], direction: Direction) {
        if let Some((pppoe_id, packet)) = carried(frame)
            && let Some(seid) = self.checks.session_on(line, pppoe_id)
        {
            self.traffic.carry(seid, line.plane, direction, packet);
        }
    }

    pub(super) fn drain_home(&mut self, home: usize) {
        while let Some(output) = self.houses[home].home.poll_output() {
            match output {
                cpe::Output::Frame(frame) => {
                    self.say(|| format!("home{home} {}", describe::frame(&frame)));
                    let noisy = self.noisy(home, &frame);
                    self.instants.push_back(Instant::FromHome(home, frame));
                    let noisy = noisy.map(|frame| Instant::FromHome(home, frame));
                    self.instants.extend(noisy);
                }
                cpe::Output::Up(address) => {
                    self.summary.online += 1;
                    self.check_address(home, address);
                    self.say(|| format!("home{home} has {address}"));
                }
                cpe::Output::Online => {}
                cpe::Output::Down(family) => self.say(|| format!("home{home} lost {family:?}")),
                cpe::Output::Ended(end) => {
                    self.say(|| format!("home{home} ended: {end}"));
                    self.houses[home].is_misunderstood = false;
                    if self.phase == Phase::Calm {
                        let after = Duration::from_millis(self.random.random_range(500..3_000));
                        self.later(after, Event::Redial(home));
                    }
                }
            }
        }
        self.arm(Who::Home(home));
    }

    /// What a noisy line makes of a PPP control packet of a home's session: some bits behind the PPPoE header are flipped. Packets of the
    /// address families are left alone, as what a session carries is counted.
    fn noisy(&mut self, home: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let at = control_packet(frame).filter(|_| self.houses[home].noise > 0)?;
        let house = &mut self.houses[home];
        house.noise -= 1;
        house.is_misunderstood = true;
        let mut noisy = frame.to_vec();
        for _ in 0..self.random.random_range(1..4) {
            let octet = self.random.random_range(at..frame.len());
            noisy[octet] ^= 1 << self.random.random_range(0..8);
        }
        self.say(|| format!("home{home} noisy {}", describe::frame(&noisy)));
        Some(noisy)
    }

    /// A packet of a home comes to the internet, which answers.
    pub(super) fn at_internet(&mut self, packet: &[u8]) {
        let Some((source, payload)) = datagram_of(packet) else {
            return;
        };
        let Some(label) = Label::parse(&payload) else {
            return self.wrong("a damaged packet at the internet".into());
        };
        let family = if source.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        let from = self.owner(source, label.from);
        let arrival = Arrival {
            at: Party::Internet,
            from,
            family,
        };
        let verdict = self.at_internet.check(arrival, &payload);
        if verdict != Verdict::InOrder {
            return self.wrong(format!(
                "{verdict:?} at the internet from {source} of {from:?}: {label:?}"
            ));
        }
        let reply = Label {
            from: Party::Internet,
            to: label.from,
            ..label
        };
        let reply = reply_to(source, &reply);
        let Some(plane) = self.route(source) else {
            return;
        };
        self.leave_core(plane, &reply);
    }

    /// A packet comes from the core to a user plane.
    pub(super) fn leave_core(&mut self, plane: usize, packet: &[u8]) {
        if self.is_stopped(Part::UserPlane(plane)) {
            let packet = Waiting::Packet(plane, packet.to_vec());
            return self.keep_waiting(Part::UserPlane(plane), packet);
        }
        if let Some(up) = &mut self.planes[plane] {
            up.on_packet(packet);
            self.drain_user_plane(plane);
        }
    }

    /// The user plane that announces an address, in the longest net.
    pub(super) fn route(&self, address: IpAddr) -> Option<usize> {
        let announced = self.planes.iter().enumerate().flat_map(|(n, up)| {
            let nets = up.iter().flat_map(|up| &up.nets);
            nets.filter(|announced| announced.net.contains(&address))
                .map(move |announced| (announced.net.prefix_len(), n))
        });
        announced.max().map(|(_, n)| n)
    }

    pub(super) fn talk(&mut self, home: usize) {
        for family in Family::ALL {
            let house = &mut self.houses[home];
            let label = Label {
                run: RUN,
                from: Party::Home(home as u32),
                to: Party::Internet,
                family,
                sequence: house.sent[family as usize],
                stamp: Stamp::default(),
            };
            let mut payload = Vec::new();
            label.emit(self.random.random_range(40..200), &mut payload);
            let to = INTERNET[family as usize];
            if let Some(frame) = house
                .home
                .datagram(to, TRAFFIC_PORT, TRAFFIC_PORT, &payload)
            {
                house.sent[family as usize] += 1;
                self.instants.push_back(Instant::FromHome(home, frame));
            }
        }
        let after = Duration::from_millis(self.random.random_range(2_000..20_000));
        self.later(after, Event::Talk(home));
    }
}

/// Where the packet begins, behind its protocol, in a frame with a PPP control packet (RFC 1661 §2).
fn control_packet(frame: &[u8]) -> Option<usize> {
    const LINK_CONTROL: u16 = 0x8000;
    let parsed = Frame::parse(frame).ok()?;
    let packet = pppoe::Packet::parse(parsed.payload).ok()?;
    let data = ppp::Frame::parse(packet.payload).ok()?;
    let is_control = parsed.header.ethertype == PPPOE_SESSION
        && packet.code == pppoe::SESSION
        && data.protocol >= LINK_CONTROL;
    let at = parsed.header.len() + pppoe::HEADER_LEN + 2;
    (is_control && at < frame.len()).then_some(at)
}

/// The PPPoE session id of a frame with one of our packets in it, and that packet.
fn carried(frame: &[u8]) -> Option<(u16, Carried)> {
    let frame = Frame::parse(frame).ok()?;
    let packet = pppoe::Packet::parse(frame.payload).ok()?;
    let data = ppp::Frame::parse(packet.payload).ok()?;
    if frame.header.ethertype != PPPOE_SESSION || ![ppp::IPV4, ppp::IPV6].contains(&data.protocol) {
        return None;
    }
    let (_, payload) = datagram_of(data.payload)?;
    Label::parse(&payload)?;
    let inside = Carried {
        is_v6: data.protocol == ppp::IPV6,
        octets: data.payload.len(),
    };
    Some((packet.session_id, inside))
}
