//! PAP (RFC 1334), CHAP with MD5 (RFC 1994) and MS-CHAPv2 (RFC 2759) from the home's side.

use crate::home::{End, Home, Timer};
use crate::progress::State;
use crate::terms::Proof;
use core::time::Duration;
use md5::{Digest, Md5};
use wire::mschapv2::{self, Exchange};
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
            Some(Proof::Chap | Proof::MsChapV2) => {
                self.arm(Timer::Answer, now + self.config.restart)
            }
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
        let proof = self.link.terms.proof;
        if !open || !matches!(proof, Some(Proof::Chap | Proof::MsChapV2)) {
            return;
        }
        match chap::Packet::parse(payload) {
            // A challenge may come again at any time, and each one is answered (RFC 1994 §4.1).
            Ok(chap::Packet::Challenge { id, value, .. }) => self.answer_challenge(id, value),
            Ok(chap::Packet::Success { message, .. }) if !self.believes(message) => {
                self.rejected(now, b"the gateway does not know the password");
            }
            Ok(chap::Packet::Success { .. }) if self.state == State::Authentication => {
                self.authenticated(now)
            }
            Ok(chap::Packet::Failure { message, .. }) => {
                let failure = mschapv2::Failure::parse(message);
                self.rejected(now, failure.map_or(message, |failure| failure.message));
            }
            _ => {}
        }
    }

    fn answer_challenge(&mut self, id: u8, challenge: &[u8]) {
        let response = match self.link.terms.proof {
            Some(Proof::MsChapV2) => match challenge.try_into() {
                Ok(challenge) => self.mschapv2_response(challenge),
                Err(_) => return, // RFC 2759 §3: it has 16 octets
            },
            _ => chap_response(id, self.config.password.as_bytes(), challenge).to_vec(),
        };
        let mut frame = Vec::new();
        chap::Packet::Response {
            id,
            value: &response,
            name: self.config.user.as_bytes(),
        }
        .emit(&mut frame);
        self.send_ppp(&frame);
    }

    fn mschapv2_response(&mut self, challenge: [u8; 16]) -> Vec<u8> {
        let halves = [self.random.next(), self.random.next()].map(u64::to_be_bytes);
        let peer_challenge = core::array::from_fn(|n| halves[n / 8][n % 8]);
        let password = self.config.password.as_bytes();
        let exchange = Exchange {
            challenge,
            peer_challenge,
            username: self.config.user.as_bytes(),
        };
        let nt_response = exchange.nt_response(password);
        let proof = exchange.authenticator_response(password, &nt_response);
        self.expected_proof = Some(Box::new(proof));
        let response = mschapv2::Response {
            peer_challenge,
            nt_response,
        };
        response.to_value()
    }

    /// Whether a Success comes from someone who knows the password, too (RFC 2759 §5). With CHAP nobody can say.
    fn believes(&self, message: &[u8]) -> bool {
        let proof = mschapv2::Success::parse(message).map(|success| success.proof);
        self.link.terms.proof != Some(Proof::MsChapV2)
            || proof.ok().as_ref() == self.expected_proof.as_deref()
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
