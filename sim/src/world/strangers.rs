//! A stranger on the network between the planes: it forges the planes' addresses, repeats what it recorded, and guesses tunnels.

use super::scene::{control_address, impostor_address, plane_address, plane_name};
use super::{BEGIN, Datagram, Event, Phase, World};
use crate::forgery;
use crate::plan::{Link, Part, USER_PLANES};
use crate::user_plane::{Sent, gtpu_at};
use control::Input;
use control::plane::{Held, HeldStage};
use core::time::Duration;
use rand::Rng;
use std::collections::VecDeque;
use wire::gtpu;
use wire::pfcp::ntp_seconds;

/// The most datagrams that it recorded.
const RECORDED: usize = 2_000;
/// Associations that are disturbed after this time were not only coming about.
const SETTLED: Duration = Duration::from_secs(60);
/// Tunnels that it tries at a time.
const GUESSES: u32 = 30;

/// What a stranger recorded: PFCP datagrams between the planes.
#[derive(Default)]
pub(super) struct Recorded(VecDeque<(Link, Vec<u8>)>);

impl Recorded {
    pub fn add(&mut self, link: Link, datagram: &Datagram) {
        let between_planes = matches!(link, Link::ToUserPlane(_) | Link::FromUserPlane(_));
        if let Datagram::Pfcp(bytes) = datagram
            && between_planes
        {
            self.0.truncate(RECORDED - 1);
            self.0.push_front((link, bytes.clone()));
        }
    }
}

impl World<'_> {
    /// A stranger sends something, and goes on so often.
    pub(super) fn intrude(&mut self, plane: usize, more: u32) {
        if self.phase != Phase::Storm {
            return;
        }
        // Before, the planes get to know each other.
        if self.now > BEGIN + SETTLED {
            self.note_associations();
        }
        match self.random.random_range(0..4) {
            0 => self.repeat_recorded(),
            1 => self.guess_tunnels(plane),
            _ => self.claim_falsely(plane),
        }
        if let Some(more) = more.checked_sub(1) {
            let after = Duration::from_millis(self.random.random_range(1..3_000));
            self.later(after, Event::Intrude(plane, more));
        }
    }

    /// Something that was sent before, as whoever sent it.
    fn repeat_recorded(&mut self) {
        let recorded = self.recorded.0.len();
        if recorded == 0 {
            return;
        }
        let (link, bytes) = self.recorded.0[self.random.random_range(0..recorded)].clone();
        let (plane, to_control) = match link {
            Link::FromUserPlane(plane) => (plane, true),
            Link::ToUserPlane(plane) => (plane, false),
            _ => return,
        };
        self.send_as_stranger(plane, to_control, true, bytes);
    }

    fn send_as_stranger(&mut self, plane: usize, to_control: bool, forged: bool, bytes: Vec<u8>) {
        let link = Link::Stranger {
            plane,
            to_control,
            forged,
        };
        self.send(link, Datagram::Pfcp(bytes));
    }

    /// Something that would cost sessions if it were true.
    fn claim_falsely(&mut self, plane: usize) {
        let (to_control, forged) = (self.random.random_bool(0.5), self.random.random_bool(0.7));
        let name = match to_control {
            true => plane_name(plane),
            false => "cp1".to_owned(),
        };
        let stamp = self.some_time_stamp();
        let packet = forgery::false_claim(&mut self.random, name, to_control, stamp);
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_ok() {
            self.send_as_stranger(plane, to_control, forged, bytes);
        }
    }

    /// One that a part may have had, or not.
    fn some_time_stamp(&mut self) -> u32 {
        let plane = self.random.random_range(0..USER_PLANES);
        let part = match self.random.random_bool(0.5) {
            true => Part::Control,
            false => Part::UserPlane(plane),
        };
        let now = ntp_seconds(self.moment(part).unix.into());
        let since = (self.now - self.origin(part)).as_secs() as u32;
        match self.random.random_range(0..4) {
            0 => self.random.random(),
            1 => now - since, // when it started
            2 => now,
            _ => now - self.random.random_range(0..2_000),
        }
    }

    /// Tunnels as they would be if they were counted up, and others.
    fn guess_tunnels(&mut self, plane: usize) {
        for _ in 0..GUESSES {
            let teid = match self.random.random_range(0..3) {
                0 => self.random.random_range(1..10),
                1 => self.random.random_range(1..5) << 20 | self.random.random_range(0..60),
                _ => self.random.random(),
            };
            let forged = self.random.random_bool(0.5);
            match self.random.random_bool(0.5) {
                true => self.try_control_tunnel(plane, teid, forged),
                false => self.try_user_plane_tunnel(plane, teid, forged),
            }
        }
    }

    /// A subscriber's PADT, in a tunnel that is not its own.
    fn try_control_tunnel(&mut self, plane: usize, teid: u32, forged: bool) {
        let stopped = self.is_stopped(Part::Control);
        let Some(known) = self.session(plane, true).filter(|_| !stopped) else {
            return;
        };
        let mut bytes = Vec::new();
        if teid == known.teid || gtpu::emit_gpdu(teid, &known.padt, &mut bytes).is_err() {
            return;
        }
        let from = match forged {
            true => plane_address(plane, self.plan.over_ipv6),
            false => impostor_address(plane, self.plan.over_ipv6),
        };
        self.control_input(Input::Gtpu {
            from: gtpu_at(from),
            bytes: &bytes,
        });
        let is_it = |held: Held<'_>| held.seid.0 == known.seid && held.stage == HeldStage::Online;
        let mut control = self.control.iter();
        if !control.any(|control| control.held().any(is_it)) {
            self.wrong(format!("a stranger ended a session by tunnel {teid:x}"));
        }
    }

    /// A frame for a subscriber, in a tunnel that no session has.
    fn try_user_plane_tunnel(&mut self, plane: usize, teid: u32, forged: bool) {
        let moment = self.moment(Part::UserPlane(plane));
        let held = self.control.iter().flat_map(|control| control.held());
        let is_real = held.into_iter().any(|held| held.teid == teid);
        if is_real || self.is_stopped(Part::UserPlane(plane)) {
            return;
        }
        let from = match forged {
            true => control_address(self.plan.over_ipv6),
            false => impostor_address(plane, self.plan.over_ipv6),
        };
        let mut bytes = Vec::new();
        let made = gtpu::emit_gpdu(teid, &[0; 60], &mut bytes);
        let Some(up) = self.planes[plane].as_mut().filter(|_| made.is_ok()) else {
            return;
        };
        up.on_gtpu(moment, gtpu_at(from), &bytes);
        let mut reached = None;
        while let Some(sent) = up.poll_sent() {
            let is_indication = matches!(sent, Sent::Gtpu(..)) && forged;
            if !is_indication {
                reached = Some(sent);
            }
        }
        if let Some(sent) = reached {
            self.wrong(format!("a stranger reached {sent:?} by tunnel {teid:x}"));
        }
    }
}
