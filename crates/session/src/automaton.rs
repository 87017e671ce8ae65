//! Option negotiation automaton of RFC 1661 §4 as a pure function: state and event in, state and actions out. LCP, IPCP and
//! IPV6CP use it; [`crate::layer`] carries out its actions.
use core::ops::BitOr;
use serde::{Deserialize, Serialize};

/// States of RFC 1661 §4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The lower layer is down, no Open was requested.
    Initial,
    /// The lower layer is down, Open was requested.
    Starting,
    /// The lower layer is up, no Open was requested.
    Closed,
    /// Open was requested, but the negotiation ended. The peer may start it again.
    Stopped,
    /// Terminate-Request sent, Close was requested.
    Closing,
    /// As Closing, but Open was requested.
    Stopping,
    /// Configure-Request sent.
    ReqSent,
    /// Configure-Request sent, and acknowledged by the peer.
    AckRcvd,
    /// Configure-Request sent, and the peer's acknowledged.
    AckSent,
    /// Both Configure-Requests acknowledged.
    Opened,
}

/// Events of RFC 1661 §4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Up,
    Down,
    Open,
    Close,
    /// TO+: the restart timer expired, and retries are left.
    Timeout,
    /// TO-: the restart timer expired, and no retries are left.
    LastTimeout,
    /// RCR+: an acceptable Configure-Request.
    GoodRequest,
    /// RCR-: an unacceptable Configure-Request.
    BadRequest,
    /// RCA: Configure-Ack.
    Ack,
    /// RCN: Configure-Nak or Configure-Reject.
    Nak,
    /// RTR: Terminate-Request.
    TerminateRequest,
    /// RTA: Terminate-Ack.
    TerminateAck,
    /// RUC: unknown code.
    UnknownCode,
    /// RXJ+: a rejection that does not prevent the protocol.
    PermittedReject,
    /// RXJ-: a rejection that prevents the protocol.
    FatalReject,
    /// RXR: Echo-Request, Echo-Reply or Discard-Request.
    Echo,
}

/// Set of actions of RFC 1661 §4.4. They are carried out in the order of their bits, which suits every entry of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u16);

impl Actions {
    pub(crate) const NONE: Actions = Actions(0);
    /// This-Layer-Down.
    pub(crate) const TLD: Actions = Actions(1);
    /// Initialize-Restart-Count.
    pub(crate) const IRC: Actions = Actions(1 << 1);
    /// Zero-Restart-Count.
    pub(crate) const ZRC: Actions = Actions(1 << 2);
    /// Send-Configure-Request.
    pub(crate) const SCR: Actions = Actions(1 << 3);
    /// Send-Terminate-Request.
    pub(crate) const STR: Actions = Actions(1 << 4);
    /// Send-Configure-Ack.
    pub(crate) const SCA: Actions = Actions(1 << 5);
    /// Send-Configure-Nak or -Reject.
    pub(crate) const SCN: Actions = Actions(1 << 6);
    /// Send-Terminate-Ack.
    pub(crate) const STA: Actions = Actions(1 << 7);
    /// Send-Code-Reject.
    pub(crate) const SCJ: Actions = Actions(1 << 8);
    /// Send-Echo-Reply.
    pub(crate) const SER: Actions = Actions(1 << 9);
    /// This-Layer-Started.
    pub(crate) const TLS: Actions = Actions(1 << 10);
    /// This-Layer-Finished.
    pub(crate) const TLF: Actions = Actions(1 << 11);
    /// This-Layer-Up.
    pub(crate) const TLU: Actions = Actions(1 << 12);

    pub(crate) const fn has(self, action: Actions) -> bool {
        self.0 & action.0 != 0
    }
}

impl BitOr for Actions {
    type Output = Actions;

    fn bitor(self, other: Actions) -> Actions {
        Actions(self.0 | other.0)
    }
}

impl State {
    /// Whether the restart timer runs (RFC 1661 §4.1, the states with a TO column).
    pub(crate) const fn is_timed(self) -> bool {
        matches!(
            self,
            State::Closing | State::Stopping | State::ReqSent | State::AckRcvd | State::AckSent
        )
    }

    /// Whether a negotiation is under way or done.
    pub(crate) const fn is_running(self) -> bool {
        matches!(
            self,
            State::ReqSent | State::AckRcvd | State::AckSent | State::Opened
        )
    }

    /// Whether the lower layer is up, so that packets are valid.
    pub(crate) const fn is_lower_up(self) -> bool {
        !matches!(self, State::Initial | State::Starting)
    }
}

/// State table of RFC 1661 §4.1. An event that the table marks as impossible changes nothing.
pub(crate) fn transition(state: State, event: Event) -> (State, Actions) {
    match event {
        Event::Up | Event::Down | Event::Open | Event::Close => on_administration(state, event),
        _ if !state.is_lower_up() => (state, Actions::NONE),
        Event::Timeout | Event::LastTimeout => on_timeout(state, event),
        Event::GoodRequest | Event::BadRequest => on_request(state, event),
        Event::Ack | Event::Nak => on_reply(state, event),
        Event::TerminateRequest | Event::TerminateAck => on_termination(state, event),
        Event::PermittedReject | Event::FatalReject => on_reject(state, event),
        Event::UnknownCode => (state, Actions::SCJ),
        Event::Echo if state == State::Opened => (state, Actions::SER),
        Event::Echo => (state, Actions::NONE),
    }
}

fn on_administration(state: State, event: Event) -> (State, Actions) {
    use State::*;
    match (event, state) {
        (Event::Up, Initial) => (Closed, Actions::NONE),
        (Event::Up, Starting) => (ReqSent, Actions::IRC | Actions::SCR),
        (Event::Down, Closed | Closing) => (Initial, Actions::NONE),
        (Event::Down, Stopped) => (Starting, Actions::TLS),
        (Event::Down, Stopping | ReqSent | AckRcvd | AckSent) => (Starting, Actions::NONE),
        (Event::Down, Opened) => (Starting, Actions::TLD),
        (Event::Open, Initial) => (Starting, Actions::TLS),
        (Event::Open, Closed) => (ReqSent, Actions::IRC | Actions::SCR),
        (Event::Open, Closing) => (Stopping, Actions::NONE),
        (Event::Close, Starting) => (Initial, Actions::TLF),
        (Event::Close, Stopped) => (Closed, Actions::NONE),
        (Event::Close, Stopping) => (Closing, Actions::NONE),
        (Event::Close, ReqSent | AckRcvd | AckSent) => (Closing, Actions::IRC | Actions::STR),
        (Event::Close, Opened) => (Closing, Actions::TLD | Actions::IRC | Actions::STR),
        _ => (state, Actions::NONE),
    }
}

fn on_timeout(state: State, event: Event) -> (State, Actions) {
    use State::*;
    match (event, state) {
        (Event::Timeout, Closing | Stopping) => (state, Actions::STR),
        (Event::Timeout, ReqSent | AckRcvd) => (ReqSent, Actions::SCR),
        (Event::Timeout, AckSent) => (AckSent, Actions::SCR),
        (Event::LastTimeout, Closing) => (Closed, Actions::TLF),
        (Event::LastTimeout, Stopping | ReqSent | AckRcvd | AckSent) => (Stopped, Actions::TLF),
        _ => (state, Actions::NONE),
    }
}

fn on_request(state: State, event: Event) -> (State, Actions) {
    use State::*;
    let good = event == Event::GoodRequest;
    let answer = if good { Actions::SCA } else { Actions::SCN };
    let asked = if good { AckSent } else { ReqSent };
    match state {
        Closed => (Closed, Actions::STA),
        Stopped => (asked, Actions::IRC | Actions::SCR | answer),
        ReqSent | AckSent => (asked, answer),
        AckRcvd if good => (Opened, Actions::SCA | Actions::TLU),
        AckRcvd => (AckRcvd, Actions::SCN),
        Opened => (asked, Actions::TLD | Actions::SCR | answer),
        _ => (state, Actions::NONE),
    }
}

fn on_reply(state: State, event: Event) -> (State, Actions) {
    use State::*;
    match (event, state) {
        (_, Closed | Stopped) => (state, Actions::STA),
        (Event::Ack, ReqSent) => (AckRcvd, Actions::IRC),
        (Event::Ack, AckSent) => (Opened, Actions::IRC | Actions::TLU),
        (Event::Nak, ReqSent | AckSent) => (state, Actions::IRC | Actions::SCR),
        // Crossed connections: starts over.
        (_, AckRcvd) => (ReqSent, Actions::SCR),
        (_, Opened) => (ReqSent, Actions::TLD | Actions::SCR),
        _ => (state, Actions::NONE),
    }
}

fn on_termination(state: State, event: Event) -> (State, Actions) {
    use State::*;
    match (event, state) {
        (Event::TerminateRequest, Opened) => (Stopping, Actions::TLD | Actions::ZRC | Actions::STA),
        (Event::TerminateRequest, AckRcvd | AckSent) => (ReqSent, Actions::STA),
        (Event::TerminateRequest, _) => (state, Actions::STA),
        (_, Closing) => (Closed, Actions::TLF),
        (_, Stopping) => (Stopped, Actions::TLF),
        (_, AckRcvd) => (ReqSent, Actions::NONE),
        (_, Opened) => (ReqSent, Actions::TLD | Actions::SCR),
        _ => (state, Actions::NONE),
    }
}

fn on_reject(state: State, event: Event) -> (State, Actions) {
    use State::*;
    match (event, state) {
        (Event::PermittedReject, AckRcvd) => (ReqSent, Actions::NONE),
        (Event::FatalReject, Closed | Closing) => (Closed, Actions::TLF),
        (Event::FatalReject, Opened) => (Stopping, Actions::TLD | Actions::IRC | Actions::STR),
        (Event::FatalReject, _) => (Stopped, Actions::TLF),
        _ => (state, Actions::NONE),
    }
}

#[cfg(test)]
#[path = "automaton_tests.rs"]
mod tests;
