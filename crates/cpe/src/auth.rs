//! PAP (RFC 1334) and CHAP with MD5 (RFC 1994) from the home's side.

use crate::home::{End, Home, Timer};
use crate::progress::State;
use crate::terms::Proof;
use core::time::Duration;
use md5::{Digest, Md5};
use wire::{chap, pap};

/// PAP requests, or pauses without a challenge, before the home gives up.
const MAX_TRIES: u8 = 10;

impl Home {
    /// The link is open: proves who it is, if the gateway wants to know.
    pub(crate) fn authenticate(&mut self, now: Duration) {
        self.state = State::Authentication;
        self.tries = 0;
        match self.link.terms.proof {
            None => self.authenticated(now),
            Some(Proof::Pap) => self.send_pap(now),
            // The gateway begins; the timer only bounds the wait.
            Some(Proof::Chap) => self.arm(Timer::Answer, now + self.config.restart),
        }
    }

    pub(crate) fn authenticate_again(&mut self, now: Duration) {
        self.tries += 1;
        match self.link.terms.proof {
            _ if self.tries >= MAX_TRIES => self.give_up(End::Silence(State::Authentication)),
            Some(Proof::Pap) => self.send_pap(now),
            _ => self.arm(Timer::Answer, now + self.config.restart),
        }
    }

    fn send_pap(&mut self, now: Duration) {
        let id = self.fresh_id();
        let mut frame = Vec::new();
        let (peer_id, password) = (self.config.user.as_bytes(), self.config.password.as_bytes());
        pap::Packet::Request {
            id,
            peer_id,
            password,
        }
        .emit(&mut frame);
        self.send_ppp(&frame);
        self.arm(Timer::Answer, now + self.config.restart);
    }

    pub(crate) fn handle_pap(&mut self, now: Duration, payload: &[u8]) {
        if self.state != State::Authentication || self.link.terms.proof != Some(Proof::Pap) {
            return;
        }
        match pap::Packet::parse(payload) {
            Ok(pap::Packet::Ack { id, .. }) if id == self.next_id => self.authenticated(now),
            Ok(pap::Packet::Nak { id, message }) if id == self.next_id => {
                self.rejected(now, message)
            }
            _ => {}
        }
    }

    pub(crate) fn handle_chap(&mut self, now: Duration, payload: &[u8]) {
        let open = matches!(
            self.state,
            State::Authentication | State::Network | State::Online
        );
        if !open || self.link.terms.proof != Some(Proof::Chap) {
            return;
        }
        match chap::Packet::parse(payload) {
            // A challenge may come again at any time, and each one is answered (RFC 1994 §4.1).
            Ok(chap::Packet::Challenge { id, value, .. }) => self.answer_challenge(id, value),
            Ok(chap::Packet::Success { .. }) if self.state == State::Authentication => {
                self.authenticated(now)
            }
            Ok(chap::Packet::Failure { message, .. }) => self.rejected(now, message),
            _ => {}
        }
    }

    fn answer_challenge(&mut self, id: u8, challenge: &[u8]) {
        let response = chap_response(id, self.config.password.as_bytes(), challenge);
        let mut frame = Vec::new();
        chap::Packet::Response {
            id,
            value: &response,
            name: self.config.user.as_bytes(),
        }
        .emit(&mut frame);
        self.send_ppp(&frame);
    }

    fn authenticated(&mut self, now: Duration) {
        self.disarm(Timer::Answer);
        self.progress.authenticated.get_or_insert(now);
        self.open_networks(now);
    }

    fn rejected(&mut self, now: Duration, message: &[u8]) {
        let text = String::from_utf8_lossy(message).into_owned();
        self.terminate(now, End::AuthRejected(text));
    }
}

/// MD5 over identifier, secret and challenge (RFC 1994 §4.1).
fn chap_response(id: u8, secret: &[u8], challenge: &[u8]) -> [u8; 16] {
    Md5::new()
        .chain_update([id])
        .chain_update(secret)
        .chain_update(challenge)
        .finalize()
        .into()
}
