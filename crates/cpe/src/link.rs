//! LCP from the home's side (RFC 1661): the link is agreed on, kept, and ended.

use crate::home::{End, Home, Timer};
use crate::negotiate::Step;
use crate::progress::State;
use crate::random::Random;
use crate::terms::{Auth, Link};
use core::time::Duration;
use wire::lcp::{self, Echo, ProtocolReject};
use wire::ppp::{self, Control};

/// Terminate-Requests without an answer before the home just leaves (Max-Terminate).
const MAX_TERMINATE: u8 = 2;

impl Link {
    pub(crate) fn new(auth: Auth, random: &mut Random) -> Self {
        Link {
            auth,
            mru: Some(1492),
            magic: Some(random.magic()),
            spare_magic: random.magic(),
            peer_mru: 1492,
            proof: None,
        }
    }
}

impl Home {
    pub(crate) fn open_link(&mut self, now: Duration) {
        self.state = State::Link;
        let request = self.link.start();
        self.send_ppp(&request);
        self.arm(Timer::Link, now + self.config.restart);
    }

    pub(crate) fn repeat_link(&mut self, now: Duration) {
        match self.link.repeat() {
            Some(request) => {
                self.send_ppp(&request);
                self.arm(Timer::Link, now + self.config.restart);
            }
            None => self.give_up(End::Silence(State::Link)),
        }
    }

    pub(crate) fn handle_lcp(&mut self, now: Duration, payload: &[u8]) {
        let Ok(packet) = Control::parse(payload) else {
            return;
        };
        match packet.code {
            _ if self.state == State::Closing => self.handle_lcp_while_closing(now, &packet),
            ppp::CONFIGURE_REQUEST..=ppp::CONFIGURE_REJECT => self.configure_link(now, &packet),
            ppp::TERMINATE_REQUEST => {
                self.send_lcp(ppp::TERMINATE_ACK, packet.id, &[]);
                self.wait_for_end(now, End::Terminated);
            }
            lcp::PROTOCOL_REJECT => self.protocol_rejected(now, packet.data),
            lcp::ECHO_REQUEST => self.answer_echo(&packet),
            lcp::ECHO_REPLY => self.echoes_missed = 0,
            // RFC 1661 §4.1: an open link that the gateway has left is negotiated anew.
            ppp::TERMINATE_ACK if self.state != State::Link => {
                self.close_networks();
                self.disarm(Timer::Answer);
                self.disarm(Timer::Echo);
                self.open_link(now);
            }
            ppp::TERMINATE_ACK | ppp::CODE_REJECT => {}
            lcp::DISCARD_REQUEST | lcp::IDENTIFICATION | lcp::TIME_REMAINING => {}
            _ => {
                let id = self.fresh_id();
                self.send_lcp(ppp::CODE_REJECT, id, payload);
            }
        }
    }

    fn handle_lcp_while_closing(&mut self, now: Duration, packet: &Control) {
        match packet.code {
            ppp::TERMINATE_REQUEST => {
                self.send_lcp(ppp::TERMINATE_ACK, packet.id, &[]);
                // Both hang up at once: the gateway's PADT is what we wait for now.
                self.arm(Timer::Answer, now + self.config.restart);
            }
            ppp::TERMINATE_ACK => self.leave(),
            _ => {}
        }
    }

    fn configure_link(&mut self, now: Duration, packet: &Control) {
        let mut answers = Vec::new();
        let step = self.link.receive(packet, &mut answers);
        if step == Step::Reopened {
            // RFC 1661 §3.4: the link goes down, and whatever stands on it.
            self.close_networks();
            self.disarm(Timer::Answer);
            self.disarm(Timer::Echo);
            self.state = State::Link;
        }
        answers.iter().for_each(|answer| self.send_ppp(answer));
        self.rearm(now, Timer::Link, step, self.link.is_pending());
        match step {
            Step::Agreed => self.link_opened(now),
            Step::Failed => self.give_up(End::NoAgreement(State::Link)),
            Step::None | Step::Reopened => {}
        }
    }

    fn link_opened(&mut self, now: Duration) {
        self.echoes_missed = 0;
        self.progress.link.get_or_insert(now);
        if let Some(interval) = self.config.echo_interval {
            self.arm(Timer::Echo, now + interval);
        }
        self.authenticate(now);
    }

    fn answer_echo(&mut self, packet: &Control) {
        let Ok(echo) = Echo::parse(packet.data) else {
            return;
        };
        // Only an open link answers; our own magic number would mean a looped line (RFC 1661 §5.8).
        if self.link.is_open() && (echo.magic == 0 || Some(echo.magic) != self.link.terms.magic) {
            let mut data = Vec::with_capacity(packet.data.len());
            Echo {
                magic: self.link.terms.magic.unwrap_or(0),
                data: echo.data,
            }
            .emit(&mut data);
            self.send_lcp(lcp::ECHO_REPLY, packet.id, &data);
        }
    }

    pub(crate) fn send_echo(&mut self, now: Duration) {
        let Some(interval) = self.config.echo_interval else {
            return;
        };
        if self.echoes_missed == self.config.echo_failures {
            return self.give_up(End::LinkLost);
        }
        self.echoes_missed += 1;
        let magic = self.link.terms.magic.unwrap_or(0).to_be_bytes();
        let id = self.fresh_id();
        self.send_lcp(lcp::ECHO_REQUEST, id, &magic);
        self.arm(Timer::Echo, now + interval);
    }

    /// A protocol that we do not speak (RFC 1661 §5.7); the copy is cut to what the peer takes.
    pub(crate) fn reject_protocol(&mut self, frame: &ppp::Frame) {
        let room = usize::from(self.link.terms.peer_mru).saturating_sub(8);
        let information = &frame.payload[..frame.payload.len().min(room)];
        let mut data = Vec::with_capacity(information.len() + 2);
        ProtocolReject {
            protocol: frame.protocol,
            information,
        }
        .emit(&mut data);
        let id = self.fresh_id();
        self.send_lcp(lcp::PROTOCOL_REJECT, id, &data);
    }

    fn protocol_rejected(&mut self, now: Duration, data: &[u8]) {
        match ProtocolReject::parse(data).map(|r| r.protocol) {
            Ok(ppp::IPCP | ppp::IPV4) => self.lacks_ipv4(now),
            Ok(ppp::IPV6CP | ppp::IPV6) => self.lacks_ipv6(now),
            _ => {}
        }
    }

    /// Hangs up in good order: Terminate-Request, Terminate-Ack, PADT.
    pub(crate) fn terminate(&mut self, now: Duration, end: End) {
        self.close_networks();
        self.timers = [None; Timer::ALL.len()];
        self.state = State::Closing;
        self.ending = Some(end);
        self.tries = 0;
        self.send_terminate(now);
    }

    pub(crate) fn terminate_again(&mut self, now: Duration) {
        let asked = self.tries > 0 && self.tries < MAX_TERMINATE;
        if asked {
            self.send_terminate(now)
        } else {
            self.leave()
        }
    }

    fn send_terminate(&mut self, now: Duration) {
        self.tries += 1;
        let id = self.fresh_id();
        self.send_lcp(ppp::TERMINATE_REQUEST, id, &[]);
        self.arm(Timer::Answer, now + self.config.restart);
    }

    /// The gateway ends the session: its PADT follows, or ours after a while.
    fn wait_for_end(&mut self, now: Duration, end: End) {
        self.close_networks();
        self.timers = [None; Timer::ALL.len()];
        self.state = State::Closing;
        self.ending = Some(end);
        self.tries = 0;
        self.arm(Timer::Answer, now + self.config.restart);
    }

    /// Ends the session at once, with a PADT.
    pub(crate) fn give_up(&mut self, end: End) {
        self.send_padt();
        self.end(end);
    }

    fn leave(&mut self) {
        let end = self.ending.take().unwrap_or(End::HungUp);
        self.give_up(end);
    }

    fn send_lcp(&mut self, code: u8, id: u8, data: &[u8]) {
        let mut frame = Vec::with_capacity(data.len() + 6);
        Control { code, id, data }.emit(ppp::LCP, &mut frame);
        self.send_ppp(&frame);
    }
}
