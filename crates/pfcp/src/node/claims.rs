//! What is said in a peer's name and would cost sessions, until the peer itself confirms it.
//!
//! PFCP has no authentication: one forged datagram can say that a peer was restarted, or that the association ends, and sessions would
//! be deleted or told again. So the peer is asked, at the address and port that are known, and only its answer is acted upon:
//!
//! - A new Recovery Time Stamp: a Heartbeat Request. Its answer has the new time stamp, or the claim is false.
//! - A new association with the same time stamp, as of a control plane that was restarted and kept its sessions, or the end of the
//!   association: an Association Update Request that changes nothing. Whoever has no association rejects it with the cause "No
//!   established PFCP Association" (TS 29.244 §8.2.1); whoever has one accepts it.
//!
//! A peer that does not answer has lost the path. A real restart costs one round trip more.
use super::peer::{Peer, Purpose, State};
use super::{Doubt, DownReason, Node, RequestId, Timer, TimerKey};
use core::net::SocketAddr;
use core::time::Duration;
use wire::pfcp::*;

/// How far ahead of our wall clock a peer's may be, in seconds: a day.
const CLOCKS_DIFFER: i32 = 86_400;

/// What was said in a peer's name and is not confirmed yet.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// It wants an association, in place of one that is known. The last one who said so counts.
    setup: Option<Setup>,
    /// A heartbeat had another time stamp.
    restart: bool,
    /// The association ends. That was said so many questions ago.
    release: Option<u8>,
    /// When the question about the association is repeated.
    ask_timer: Option<TimerKey>,
}

/// An association setup, with the octets of the request.
#[derive(Debug)]
pub(super) struct Setup {
    pub id: RequestId,
    pub bytes: Vec<u8>,
    pub request: AssociationSetupRequest,
}

/// Whether a time stamp is before another one. They wrap around in 2036.
fn is_before(stamp: u32, other: u32) -> bool {
    (stamp.wrapping_sub(other) as i32) < 0
}

impl Node {
    /// A peer wants an association.
    pub(super) fn on_claimed_setup(&mut self, now: Duration, setup: Setup) {
        let (peer, stamp) = (setup.id.peer, setup.request.recovery_time_stamp);
        if !self.is_plausible(now, peer, stamp) {
            self.doubt(setup.id.reply_to, Doubt::TimeStamp);
            let packet = Packet::node(setup.id.sequence, setup.request);
            self.refuse(setup.id.reply_to, &packet, Cause::REQUEST_REJECTED);
            return self.ask_for_stamp(now, peer);
        }
        let is_another = !self.is_associated(peer) || self.known_stamp(peer) != Some(stamp);
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.claims.setup = Some(setup);
        }
        match is_another {
            true => self.send_heartbeat_now(now, peer),
            false => self.ask(now, peer),
        }
    }

    pub(super) fn known_stamp(&self, peer: SocketAddr) -> Option<u32> {
        let info = self.peers.get(&peer)?.info.as_ref()?;
        Some(info.recovery_time_stamp)
    }

    /// Whether a peer may have started at this time: not before it did when it was last heard of, and not in the future. A peer whose
    /// clock was set back is found out by what it answers to us.
    fn is_plausible(&self, now: Duration, peer: SocketAddr, stamp: u32) -> bool {
        let wall = self.config.clock.wrapping_add(now.as_secs() as u32);
        let is_ahead = stamp.wrapping_sub(wall) as i32 > CLOCKS_DIFFER;
        let goes_back = |known| is_before(stamp, known);
        !is_ahead && !self.known_stamp(peer).is_some_and(goes_back)
    }

    /// Asks a peer when it started, whatever others say.
    fn ask_for_stamp(&mut self, now: Duration, peer: SocketAddr) {
        if self.is_associated(peer) {
            return self.send_heartbeat_now(now, peer);
        }
        let asks = |entry: &Peer| entry.configured && entry.state == State::Down;
        if self.peers.get(&peer).is_some_and(asks) {
            self.arm_setup(peer, now);
        }
    }

    /// A heartbeat had a time stamp; another one than that of the association has to be confirmed.
    pub(super) fn on_claimed_stamp(&mut self, now: Duration, id: RequestId, stamp: u32) {
        let known = self.known_stamp(id.peer);
        if !self.is_associated(id.peer) || known == Some(stamp) {
            return;
        }
        match self.is_plausible(now, id.peer, stamp) {
            false => self.doubt(id.reply_to, Doubt::TimeStamp),
            true => {
                if let Some(entry) = self.peers.get_mut(&id.peer) {
                    entry.claims.restart = true;
                }
            }
        }
        self.send_heartbeat_now(now, id.peer);
    }

    /// A peer says that the association ends. It was answered already, so that it has no association when it is asked.
    pub(super) fn on_claimed_release(&mut self, now: Duration, peer: SocketAddr) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.claims.release = Some(0);
        }
        self.ask(now, peer);
    }

    /// Asks a peer whether there is an association.
    fn ask(&mut self, now: Duration, peer: SocketAddr) {
        let asks = |entry: &Peer| entry.awaits(Purpose::Ask);
        if !self.peers.get(&peer).is_none_or(asks) {
            let request = AssociationUpdateRequest {
                node_id: self.config.node_id.clone(),
                ..Default::default()
            };
            self.send_node_request(now, peer, request, Purpose::Ask);
        }
    }

    pub(super) fn ask_again(&mut self, now: Duration, peer: SocketAddr) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.claims.ask_timer = None;
            self.ask(now, peer);
        }
    }

    /// A peer says, because it was asked, whether there is an association.
    pub(super) fn on_asked(&mut self, now: Duration, peer: SocketAddr, cause: Cause) {
        match cause {
            Cause::NO_ESTABLISHED_ASSOCIATION => self.on_no_association(now, peer),
            _ => self.on_still_associated(now, peer),
        }
    }

    fn on_no_association(&mut self, now: Duration, peer: SocketAddr) {
        let known = self.known_stamp(peer);
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let is_released = entry.claims.release.take().is_some();
        let of_this_run = |setup: &mut Setup| known == Some(setup.request.recovery_time_stamp);
        let setup = entry.claims.setup.take_if(of_this_run);
        if is_released {
            self.go_down(now, peer, DownReason::Released);
        }
        match setup {
            Some(setup) => self.accept_setup(now, setup),
            None if !is_released => self.go_down(now, peer, DownReason::Forgotten),
            None => {}
        }
    }

    fn on_still_associated(&mut self, now: Duration, peer: SocketAddr) {
        let (known, most) = (self.known_stamp(peer), self.config.n1);
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let of_this_run = |setup: &mut Setup| known == Some(setup.request.recovery_time_stamp);
        let is_denied = entry.claims.setup.take_if(of_this_run).is_some();
        // Our answer to its release may be late or lost: it has the association as long as it repeats the request.
        let is_over = entry
            .claims
            .release
            .take_if(|asked| *asked >= most)
            .is_some();
        if let Some(asked) = &mut entry.claims.release {
            *asked += 1;
            let timer = self.arm(now + self.config.t1, Timer::Ask(peer));
            self.disarm_ask(peer);
            if let Some(entry) = self.peers.get_mut(&peer) {
                entry.claims.ask_timer = Some(timer);
            }
        }
        if is_denied || is_over {
            self.doubt(peer, Doubt::Denied);
        }
    }

    /// A peer says, because it was asked, when it started.
    pub(super) fn on_stamp(&mut self, now: Duration, peer: SocketAddr, stamp: u32) {
        let (is_up, known) = (self.is_associated(peer), self.known_stamp(peer));
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let was_restart = core::mem::take(&mut entry.claims.restart);
        let of_another_run =
            |setup: &mut Setup| !is_up || known != Some(setup.request.recovery_time_stamp);
        let setup = entry.claims.setup.take_if(of_another_run);
        let is_true = |setup: &Setup| setup.request.recovery_time_stamp == stamp;
        let is_same = known == Some(stamp);
        let is_denied = setup.as_ref().is_some_and(|setup| !is_true(setup));
        if is_denied || was_restart && is_same {
            self.doubt(peer, Doubt::Denied);
        }
        match setup.filter(is_true) {
            Some(setup) => self.accept_setup(now, setup),
            None if !is_same => self.go_down(now, peer, DownReason::Restarted),
            None => {}
        }
    }

    /// Nothing is claimed any more: the association is another one, or there is none.
    pub(super) fn forget_claims(&mut self, peer: SocketAddr) {
        self.disarm_ask(peer);
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.claims = Claims::default();
        }
    }

    /// A question was not answered: the path is lost, whatever was said in the peer's name.
    pub(super) fn on_silence(&mut self, now: Duration, peer: SocketAddr) {
        self.forget_claims(peer);
        self.go_down(now, peer, DownReason::PathLost);
    }

    fn disarm_ask(&mut self, peer: SocketAddr) {
        let entry = self.peers.get_mut(&peer);
        if let Some(timer) = entry.and_then(|entry| entry.claims.ask_timer.take()) {
            self.timers.remove(&timer);
        }
    }
}
