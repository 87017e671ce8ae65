//! Those who say what is not so: a user plane that speaks of others' sessions or falsely of its own, and a home that sends
//! whatever it likes.

use super::scene::{plane_address, plane_name};
use super::{Datagram, Event, Instant, Phase, World};
use crate::forgery;
use crate::plan::{HOMES, Link, Part, USER_PLANES};
use crate::user_plane::gtpu_at;
use control::Input;
use control::plane::{Held, HeldStage};
use core::time::Duration;
use rand::Rng;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{
    AssociationSetupRequest, Cause, Message, NodeId, Packet, Received, SEQUENCE_MASK, is_request,
};
use wire::{gtpu, pppoe};

/// The port from which a user plane lies, so that it hears the answers apart from all others.
pub(super) const LIES: u16 = 4444;
/// The last octet but one of the MAC addresses that homes make up; that of a household is how many lived there before.
const MADE_UP: core::ops::Range<u8> = 100..200;
/// Reports of sessions that there are not, at a time.
const UNKNOWN_SESSIONS: u32 = 40;
/// Added to the SEIDs of sessions that a user plane makes up: it gives none as high to a session that it has.
const HIGH: u64 = 1 << 63;

/// A session of somebody else, as a liar may have learned of it.
pub(super) struct Known {
    pub seid: u64,
    pub teid: u32,
    pub padt: Vec<u8>,
}

impl Known {
    fn of(held: &Held<'_>) -> Option<Self> {
        let mut payload = Vec::new();
        let packet = pppoe::Packet {
            code: pppoe::PADT,
            session_id: held.pppoe_id,
            payload: &[],
        };
        packet.emit(&mut payload);
        let header = Header {
            destination: MacAddr([2, 0, 0, 0, 0, 1]),
            source: held.circuit.mac,
            tags: held.circuit.tags,
            ethertype: PPPOE_DISCOVERY,
        };
        let mut padt = Vec::new();
        header.emit(&mut padt);
        padt.extend(payload);
        (held.stage == HeldStage::Online).then_some(Known {
            seid: held.seid.0,
            teid: held.teid,
            padt,
        })
    }
}

impl World<'_> {
    /// A user plane says something that it may not, and goes on so often.
    pub(super) fn lie(&mut self, plane: usize, more: u32) {
        if self.phase != Phase::Storm || self.planes[plane].is_none() {
            return;
        }
        match self.random.random_range(0..6) {
            0 => self.report_of_others(plane),
            1 => self.report_unknown_sessions(plane),
            2 => self.end_others(plane),
            3 => self.report_falsely(plane),
            4 => self.inventions[plane] = self.random.random_range(1..100),
            _ => self.claim_another_name(plane),
        }
        if let Some(more) = more.checked_sub(1) {
            let after = Duration::from_millis(self.random.random_range(10..2_000));
            self.later(after, Event::Lie(plane, more));
        }
    }

    /// A user plane sends a request, or an answer.
    pub(super) fn note_sequence(&mut self, plane: usize, bytes: &[u8]) {
        if is_request(bytes[1]) {
            self.last_sequences[plane] = forgery::sequence(bytes);
        }
    }

    /// A number that the user plane may use for a request now.
    fn some_sequence(&mut self, plane: usize) -> u32 {
        let ahead = self.random.random_range(0..1_000);
        self.last_sequences[plane].wrapping_add(ahead) & SEQUENCE_MASK
    }

    /// A session that is this user plane's, or that is not.
    pub(super) fn session(&mut self, plane: usize, own: bool) -> Option<Known> {
        let held = self.control.as_ref()?.held();
        let found = held.filter(|held| (usize::from(held.user_plane.0) == plane) == own);
        let found: Vec<Known> = found.filter_map(|held| Known::of(&held)).collect();
        let chosen = self.random.random_range(0..found.len().max(1));
        found.into_iter().nth(chosen)
    }

    fn say_falsely(&mut self, link: Link, packet: &Packet) {
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_ok() {
            self.send(link, Datagram::Pfcp(bytes));
        }
    }

    /// A usage report of a session.
    fn report(&mut self, plane: usize, seid: u64, number: u32, octets: [u64; 2]) -> Packet {
        let sequence = self.some_sequence(plane);
        forgery::report(&mut self.random, seid, sequence, number, octets)
    }

    fn report_of_others(&mut self, plane: usize) {
        if let Some(known) = self.session(plane, false) {
            let (number, down) = self.random.random();
            let report = self.report(plane, known.seid, number, [1 << 40, down]);
            self.say_falsely(Link::FromLiar(plane), &report);
        }
    }

    fn report_unknown_sessions(&mut self, plane: usize) {
        for _ in 0..UNKNOWN_SESSIONS {
            let (seid, number, down) = self.random.random();
            let report = self.report(plane, seid, number, [1 << 40, down]);
            self.say_falsely(Link::FromLiar(plane), &report);
        }
    }

    /// Usage of a session of its own, of which nobody else knows better: more than there is room for, under numbers that
    /// come again.
    fn report_falsely(&mut self, plane: usize) {
        let Some(known) = self.session(plane, true) else {
            return;
        };
        self.traffic.spoil(known.seid);
        for _ in 0..self.random.random_range(1..4) {
            let number = [0, 1, u32::MAX - 1, u32::MAX][self.random.random_range(0..4)];
            let up = [1 << 63, u64::MAX, 1][self.random.random_range(0..3)];
            let down = self.random.random();
            let report = self.report(plane, known.seid, number, [up, down]);
            self.say_falsely(Link::FromUserPlane(plane), &report);
        }
    }

    /// What a user plane sends: the answers to an audit name as many unknown sessions as fit, while it makes some up.
    pub(super) fn embellished(&mut self, plane: usize, bytes: Vec<u8>) -> Vec<u8> {
        if self.phase != Phase::Storm || self.inventions[plane] == 0 {
            return bytes;
        }
        let Ok(Received { mut packet, .. }) = wire::pfcp::parse(&bytes) else {
            return bytes;
        };
        let Message::SessionModificationResponse(response) = &mut packet.message else {
            return bytes;
        };
        let Some(result) = &mut response.audit_result else {
            return bytes;
        };
        self.inventions[plane] -= 1;
        let random = &mut self.random;
        let invented = std::iter::repeat_with(|| (random.random(), HIGH | random.random::<u64>()));
        let fit = AUDIT_BLOCK - result.unknown_sessions.len();
        result.unknown_sessions.extend(invented.take(fit));
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("a block fits");
        bytes
    }

    /// A PADT of a subscriber, in its own tunnel, from a user plane that does not have the session.
    fn end_others(&mut self, plane: usize) {
        let stopped = self.is_stopped(Part::Control);
        let Some(known) = self.session(plane, false).filter(|_| !stopped) else {
            return;
        };
        let mut bytes = Vec::new();
        if gtpu::emit_gpdu(known.teid, &known.padt, &mut bytes).is_ok() {
            self.say(|| format!("up{} ends another's session", plane + 1));
            let from = gtpu_at(plane_address(plane, self.plan.over_ipv6));
            let bytes = &*bytes;
            self.control_input(Input::Gtpu { from, bytes });
            let is_it =
                |held: Held<'_>| held.seid.0 == known.seid && held.stage == HeldStage::Online;
            let mut control = self.control.iter();
            if !control.any(|control| control.held().any(is_it)) {
                self.wrong(format!("up{} ended another's session", plane + 1));
            }
        }
    }

    fn claim_another_name(&mut self, plane: usize) {
        let name = plane_name((plane + 1) % USER_PLANES);
        if !self
            .configuration
            .configuration
            .user_planes
            .contains_key(&name)
        {
            return; // nobody has it now
        }
        let request = AssociationSetupRequest {
            node_id: NodeId::Fqdn(name),
            recovery_time_stamp: self.random.random(),
            ..AssociationSetupRequest::default()
        };
        let request = Packet::node(self.random.random_range(0..1 << 24), request);
        self.say_falsely(Link::FromLiar(plane), &request);
    }

    /// What a liar hears: that it is refused.
    pub(super) fn check_lie(&mut self, bytes: &[u8]) {
        let parsed = wire::pfcp::parse(bytes);
        let cause = parsed.ok().and_then(|parsed| parsed.packet.message.cause());
        if cause == Some(Cause::REQUEST_ACCEPTED) {
            let said = crate::describe::pfcp(bytes);
            self.wrong(format!("a user plane that lies is told {said}"));
        }
    }

    /// A home asks for sessions under names that it makes up, and says what nobody understands; it goes on so often.
    pub(super) fn misbehave(&mut self, home: usize, more: u32) {
        if self.phase != Phase::Storm {
            return;
        }
        for _ in 0..self.random.random_range(1..10) {
            let frame = self.hostile_frame(home);
            self.leave_home(home, &frame);
        }
        self.settle_instants();
        if let Some(more) = more.checked_sub(1) {
            let after = Duration::from_millis(self.random.random_range(1..500));
            self.later(after, Event::Misbehave(home, more));
        }
    }

    /// On the home's own line, which it cannot choose; everything else it can.
    fn hostile_frame(&mut self, home: usize) -> Vec<u8> {
        let other = self.random.random_range(0..HOMES);
        let others = self.houses[other].home.config().mac;
        let source = match self.random.random_bool(0.2) && other != home {
            true => others,
            false => MacAddr([
                2,
                0,
                0,
                0,
                self.random.random_range(MADE_UP),
                self.houses[home].line.place,
            ]),
        };
        let code =
            [pppoe::PADI, pppoe::PADI, pppoe::PADR, pppoe::PADT, 0][self.random.random_range(0..5)];
        let mut payload = vec![0; self.random.random_range(0..60)];
        if code == pppoe::PADI {
            payload = vec![1, 1, 0, 0]; // any service (RFC 2516 §A)
        } else {
            self.random.fill(&mut payload[..]);
        }
        let ethertype = if code == 0 {
            PPPOE_SESSION
        } else {
            PPPOE_DISCOVERY
        };
        let session_id = if code == pppoe::PADT || code == 0 {
            self.random.random_range(1..80)
        } else {
            0
        };
        self.frame_of(
            home,
            source,
            ethertype,
            &pppoe::Packet {
                code,
                session_id,
                payload: &payload,
            },
        )
    }

    fn frame_of(
        &self,
        home: usize,
        source: MacAddr,
        ethertype: u16,
        packet: &pppoe::Packet<'_>,
    ) -> Vec<u8> {
        let destination = match packet.code {
            pppoe::PADI => MacAddr::BROADCAST,
            _ => MacAddr([2, 0, 0, 0, 0, 1]),
        };
        let tags = self.houses[home].home.config().tags;
        let mut frame = Vec::new();
        Header {
            destination,
            source,
            tags,
            ethertype,
        }
        .emit(&mut frame);
        packet.emit(&mut frame);
        frame
    }

    /// A frame for a name that a home made up: an offer is taken, to have the gateway hold a session for nobody.
    pub(super) fn answer_falsely(&mut self, home: usize, bytes: &[u8]) {
        let Ok(frame) = Frame::parse(bytes) else {
            return;
        };
        let (Ok(offer), name) = (
            pppoe::Packet::parse(frame.payload),
            frame.header.destination,
        ) else {
            return;
        };
        if offer.code == pppoe::PADO && MADE_UP.contains(&name.0[4]) && self.phase == Phase::Storm {
            let padr = pppoe::Packet {
                code: pppoe::PADR,
                ..offer
            };
            let mut taken = self.frame_of(home, name, PPPOE_DISCOVERY, &padr);
            taken[..6].copy_from_slice(&frame.header.source.0);
            self.instants.push_back(Instant::FromHome(home, taken));
        }
    }
}
