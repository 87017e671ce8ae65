//! Strangers on the network between the planes, and a user plane that lies: they repeat what was said yesterday, forge the planes'
//! addresses, answer with other sequence numbers, and report sessions that there are not.

use super::{CONTROL, Event, Gateway, STRANGER, USER_PLANE, moment};
use crate::forgery;
use control::Input;
use core::time::Duration;
use northbound::{Request, Response};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use wire::pfcp::{Cause, Packet, SEQUENCE_MASK, is_about_session, is_request, ntp_seconds};

/// The port from which a user plane lies, so that it hears the answers apart from all others.
const LIES: u16 = 4444;
/// Datagrams of today that a stranger remembers.
const RECENT: usize = 500;
/// From one datagram to the next, at most.
const PAUSE: Duration = Duration::from_millis(5);
/// As far from every sequence number in use as can be.
const FAR: u32 = 1 << 23;

/// The plane to which a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    Control,
    UserPlane,
}

impl Towards {
    const BOTH: [Towards; 2] = [Towards::Control, Towards::UserPlane];

    /// The address of the other plane.
    fn forged(self) -> SocketAddr {
        let address = match self {
            Towards::Control => USER_PLANE,
            Towards::UserPlane => CONTROL,
        };
        SocketAddr::new(address, wire::pfcp::PORT)
    }
}

/// Datagrams that a plane must have counted.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// From an address that is not configured.
    unknown: u64,
    /// Answers to requests that were not made.
    replies: u64,
    /// Yesterday's requests about sessions.
    old: u64,
    /// Reports of sessions that there are not.
    reports: u64,
}

/// What strangers know, and what they did.
pub(super) struct Intruders {
    random: StdRng,
    /// What is heard is kept for tomorrow.
    is_recording: bool,
    yesterday: Vec<(Towards, Vec<u8>)>,
    today: VecDeque<(Towards, Vec<u8>)>,
    /// The sequence number of the last request to each plane.
    last: [u32; 2],
    sent: [Sent; 2],
}

impl Intruders {
    pub fn new(seed: u64) -> Self {
        Intruders {
            random: StdRng::seed_from_u64(seed),
            is_recording: false,
            yesterday: Vec::new(),
            today: VecDeque::new(),
            last: [0; 2],
            sent: [Sent::default(); 2],
        }
    }

    /// Somebody's datagram of yesterday.
    fn old(&mut self) -> Option<(Towards, Vec<u8>)> {
        let number = self.random.random_range(0..self.yesterday.len().max(1));
        self.yesterday.get(number).cloned()
    }

    /// An answer of today, with a sequence number of no request.
    fn reply(&mut self) -> Option<(Towards, Vec<u8>)> {
        let is_reply = |(_, bytes): &&(Towards, Vec<u8>)| !is_request(bytes[1]);
        let replies: Vec<_> = self.today.iter().filter(is_reply).collect();
        let number = self.random.random_range(0..replies.len().max(1));
        let (towards, mut bytes) = replies.get(number).copied()?.clone();
        let asked = match towards {
            Towards::Control => Towards::UserPlane,
            Towards::UserPlane => Towards::Control,
        };
        let sequence = self.last[asked as usize].wrapping_add(FAR) & SEQUENCE_MASK;
        forgery::set_sequence(&mut bytes, sequence);
        Some((towards, bytes))
    }
}

impl Gateway {
    /// From now on, or no longer, strangers record what they repeat tomorrow.
    pub fn record(&mut self, recording: bool) {
        self.intruders.is_recording = recording;
    }

    /// Strangers send so many datagrams.
    pub fn let_intruders_in(&mut self, datagrams: u32) {
        self.later(Duration::ZERO, Event::Intrude(datagrams));
    }

    /// A plane sends a PFCP datagram. Returns whether it is for the other plane.
    pub(super) fn listen_in(&mut self, towards: Towards, to: SocketAddr, bytes: &[u8]) -> bool {
        let other = match towards {
            Towards::Control => Towards::UserPlane.forged(),
            Towards::UserPlane => Towards::Control.forged(),
        };
        if to.ip() == other.ip() && to.port() == LIES {
            self.check_answer_to_lie(bytes);
            return false;
        }
        if to.ip() != other.ip() {
            self.wrong(format!("{to}, which is no plane's, is answered"));
            return false;
        }
        let intruders = &mut self.intruders;
        if is_request(bytes[1]) {
            intruders.last[towards as usize] = forgery::sequence(bytes);
        }
        if intruders.is_recording {
            intruders.yesterday.push((towards, bytes.to_vec()));
        }
        intruders.today.truncate(RECENT - 1);
        intruders.today.push_front((towards, bytes.to_vec()));
        true
    }

    /// What a liar hears: that it is refused.
    fn check_answer_to_lie(&mut self, bytes: &[u8]) {
        let parsed = wire::pfcp::parse(bytes);
        let cause = parsed.ok().and_then(|parsed| parsed.packet.message.cause());
        if cause == Some(Cause::REQUEST_ACCEPTED) {
            let said = crate::describe::pfcp(bytes);
            self.wrong(format!("a user plane that lies is told {said}"));
        }
    }

    /// Somebody sends something false, and goes on so often.
    pub(super) fn intrude(&mut self, more: u32) {
        match self.intruders.random.random_range(0..5) {
            0 => self.repeat_yesterday(),
            1 => self.send_from_elsewhere(),
            2 => self.answer_unasked(),
            3 => self.report_falsely(),
            _ => self.claim_falsely(),
        }
        if let Some(more) = more.checked_sub(1) {
            let pause = self.intruders.random.random_range(Duration::ZERO..PAUSE);
            self.later(pause, Event::Intrude(more));
        }
    }

    /// A datagram comes to a plane.
    fn send_falsely(&mut self, towards: Towards, from: SocketAddr, bytes: &[u8]) {
        match towards {
            Towards::Control => self.input(Input::Pfcp { from, bytes }),
            Towards::UserPlane => {
                let now = moment(self.now);
                if let Some(up) = &mut self.up {
                    up.on_pfcp(now, from, bytes);
                }
                self.drain_user_plane();
            }
        }
    }

    fn repeat_yesterday(&mut self) {
        let Some((towards, bytes)) = self.intruders.old() else {
            return;
        };
        let sent = &mut self.intruders.sent[towards as usize];
        match is_request(bytes[1]) {
            true => sent.old += u64::from(is_about_session(bytes[1])),
            false => sent.replies += 1,
        }
        self.send_falsely(towards, towards.forged(), &bytes);
    }

    fn send_from_elsewhere(&mut self) {
        let number = self.intruders.random.random_range(0..RECENT);
        let Some((towards, bytes)) = self.intruders.today.get(number).cloned() else {
            return;
        };
        self.intruders.sent[towards as usize].unknown += 1;
        let from = SocketAddr::new(STRANGER, wire::pfcp::PORT);
        self.send_falsely(towards, from, &bytes);
    }

    fn answer_unasked(&mut self) {
        if let Some((towards, bytes)) = self.intruders.reply() {
            self.intruders.sent[towards as usize].replies += 1;
            self.send_falsely(towards, towards.forged(), &bytes);
        }
    }

    /// Usage of a session that there is not, under a sequence number that the user plane may use.
    fn report_falsely(&mut self) {
        let Intruders {
            random, last, sent, ..
        } = &mut self.intruders;
        let sent = &mut sent[Towards::Control as usize];
        sent.reports += 1;
        let ahead = 1_000 + sent.reports as u32;
        let sequence = last[Towards::Control as usize].wrapping_add(ahead) & SEQUENCE_MASK;
        let seid = random.random();
        let report = forgery::report(random, seid, sequence, 1, [1 << 40; 2]);
        let from = SocketAddr::new(USER_PLANE, LIES);
        self.say_falsely(Towards::Control, from, &report);
    }

    /// Something that would cost sessions if it were true, as the other plane.
    fn claim_falsely(&mut self) {
        let now = ntp_seconds(moment(self.now).unix.into());
        let random = &mut self.intruders.random;
        let towards = Towards::BOTH[random.random_range(0..2)];
        let stamp = match random.random_range(0..3) {
            0 => random.random(),
            1 => now,
            _ => now - random.random_range(0..200_000),
        };
        let to_control = towards == Towards::Control;
        let name = if to_control { "up1" } else { "cp1" };
        let claim = forgery::false_claim(random, name.to_owned(), to_control, stamp);
        self.say_falsely(towards, towards.forged(), &claim);
    }

    fn say_falsely(&mut self, towards: Towards, from: SocketAddr, packet: &Packet) {
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_ok() {
            self.send_falsely(towards, from, &bytes);
        }
    }

    /// What each plane counted of what it did not believe, by the names that operators see.
    pub fn drops(&mut self) -> [BTreeMap<String, u64>; 2] {
        let call = Request::ListDrops;
        self.input(Input::Call { ticket: 1, call });
        let Some(Ok(Response::Drops { drops })) = self.answer.take() else {
            return Default::default();
        };
        let control = drops.into_iter().map(|row| (row.name, row.count));
        let counters = self.up.iter().flat_map(|up| up.pfcp_counters().named());
        let user_plane = counters.map(|(name, count, _)| (name.to_owned(), count));
        [control.collect(), user_plane.collect()]
    }

    /// Everything that strangers sent since then is counted.
    ///
    /// # Errors
    /// What is not. Otherwise how many datagrams the planes doubted.
    pub fn check_counted(&mut self, before: &[BTreeMap<String, u64>; 2]) -> Result<u64, String> {
        let after = self.drops();
        let mut doubted = 0;
        for towards in Towards::BOTH {
            let n = towards as usize;
            let rise =
                |name: &str| after[n].get(name).unwrap_or(&0) - before[n].get(name).unwrap_or(&0);
            let sent = self.intruders.sent[n];
            let unknown = rise("pfcp-unknown-peer");
            if unknown != sent.unknown {
                return Err(format!("{unknown} are counted at {towards:?} of {sent:?}"));
            }
            let least = [
                ("pfcp-unexpected-response", sent.replies),
                ("pfcp-old-sequence", sent.old),
                ("unknown-report", sent.reports),
                ("pfcp-time-stamp", 1),
            ];
            for (name, least) in least {
                if rise(name) < least {
                    let rise = rise(name);
                    return Err(format!("{name} is {rise} at {towards:?}, after {sent:?}"));
                }
                doubted += rise(name);
            }
            doubted += unknown;
        }
        Ok(doubted)
    }
}
