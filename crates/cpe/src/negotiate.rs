//! How a client agrees on options with its peer: what LCP, IPCP and IPV6CP have in common (RFC 1661 §5.1–5.4).
//!
//! A client's negotiation only ever starts, agrees, or fails, so it needs two facts, not the automaton's ten states:
//! whether the peer has acknowledged our request, and whether we have acknowledged the peer's.

use wire::ppp::{self, Control};

/// Requests that are repeated without an answer before the peer counts as silent (Max-Configure).
const MAX_TRIES: u8 = 10;
/// Naks and Rejects, sent and received, after which there is no agreement to be had (Max-Failure, both ways).
const MAX_REFUSALS: u8 = 10;

/// What one protocol asks for and accepts.
pub(crate) trait Terms {
    /// The PPP protocol number.
    const PROTOCOL: u16;
    /// Writes the options that we ask for.
    fn request(&self, out: &mut Vec<u8>);
    /// Judges the options that the peer asks for; `None` if they cannot be read.
    fn judge(&mut self, options: &[u8]) -> Option<Judgement>;
    /// The peer would rather have these values; false if we cannot live with them.
    fn naked(&mut self, options: &[u8]) -> bool;
    /// The peer does not know these options; false if we cannot live without them.
    fn rejected(&mut self, options: &[u8]) -> bool;
}

/// What we say to the peer's options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Accept,
    /// Rather these.
    Suggest(Vec<u8>),
    /// None of these.
    Refuse(Vec<u8>),
}

/// What a packet of the peer has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    None,
    /// Both sides have agreed.
    Agreed,
    /// They had agreed, and the peer starts again.
    Reopened,
    /// There is no agreement to be had.
    Failed,
}

#[derive(Debug)]
pub(crate) struct Negotiation<T> {
    pub(crate) terms: T,
    id: u8,
    tries: u8,
    refusals: u8,
    started: bool,
    ours: bool,
    theirs: bool,
}

impl<T: Terms> Negotiation<T> {
    pub(crate) fn new(terms: T) -> Self {
        Negotiation {
            terms,
            id: 0,
            tries: 0,
            refusals: 0,
            started: false,
            ours: false,
            theirs: false,
        }
    }

    /// Have both sides agreed?
    pub(crate) fn is_open(&self) -> bool {
        self.ours && self.theirs
    }

    /// Has it begun and not agreed yet, so that requests have to be repeated?
    pub(crate) fn is_pending(&self) -> bool {
        self.started && !self.is_open()
    }

    /// Begins, or begins anew: the first request, as a PPP frame.
    pub(crate) fn start(&mut self) -> Vec<u8> {
        (self.tries, self.refusals) = (0, 0);
        (self.started, self.theirs) = (true, false);
        self.fresh_request()
    }

    /// Forgets what was agreed; nothing is sent.
    pub(crate) fn stop(&mut self) {
        (self.started, self.ours, self.theirs) = (false, false, false);
    }

    /// The request once more, because no agreement came in time; `None` when that was done often enough.
    pub(crate) fn repeat(&mut self) -> Option<Vec<u8>> {
        self.tries += 1;
        if self.tries >= MAX_TRIES {
            return None;
        }
        // In state Ack-Rcvd the timer leads back to Req-Sent (RFC 1661 §4.1).
        self.ours = false;
        Some(self.frame_of_request())
    }

    /// Takes a configure packet (codes 1 to 4); answers go to `out` as PPP frames.
    pub(crate) fn receive(&mut self, packet: &Control, out: &mut Vec<Vec<u8>>) -> Step {
        if !self.started {
            return Step::None;
        }
        let was_open = self.is_open();
        match packet.code {
            ppp::CONFIGURE_REQUEST => self.their_request(packet, was_open, out),
            ppp::CONFIGURE_ACK => {
                let mut asked = Vec::new();
                self.terms.request(&mut asked);
                // An Ack repeats the request to the letter, or it is none of ours (RFC 1661 §5.2).
                self.ours |= packet.id == self.id && packet.data == asked;
            }
            _ if packet.id != self.id || self.ours => {}
            code => {
                self.refusals += 1;
                let bearable = match code {
                    ppp::CONFIGURE_NAK => self.terms.naked(packet.data),
                    _ => self.terms.rejected(packet.data),
                };
                if !bearable {
                    return Step::Failed;
                }
                out.push(self.fresh_request());
            }
        }
        match (was_open, self.is_open()) {
            _ if self.refusals > MAX_REFUSALS => Step::Failed,
            (false, true) => Step::Agreed,
            (true, false) => Step::Reopened,
            _ => Step::None,
        }
    }

    fn their_request(&mut self, packet: &Control, was_open: bool, out: &mut Vec<Vec<u8>>) {
        let Some(judgement) = self.terms.judge(packet.data) else {
            return;
        };
        if was_open {
            // RFC 1661 §4.1: a Configure-Request in state Opened sends our own before the answer.
            out.push(self.start());
        }
        self.theirs = judgement == Judgement::Accept;
        self.refusals += u8::from(!self.theirs);
        out.push(match judgement {
            Judgement::Accept => frame::<T>(ppp::CONFIGURE_ACK, packet.id, packet.data),
            Judgement::Suggest(options) => frame::<T>(ppp::CONFIGURE_NAK, packet.id, &options),
            Judgement::Refuse(options) => frame::<T>(ppp::CONFIGURE_REJECT, packet.id, &options),
        });
    }

    fn fresh_request(&mut self) -> Vec<u8> {
        self.id = self.id.wrapping_add(1);
        self.ours = false;
        self.frame_of_request()
    }

    fn frame_of_request(&self) -> Vec<u8> {
        let mut options = Vec::with_capacity(32);
        self.terms.request(&mut options);
        frame::<T>(ppp::CONFIGURE_REQUEST, self.id, &options)
    }
}

fn frame<T: Terms>(code: u8, id: u8, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 6);
    Control { code, id, data }.emit(T::PROTOCOL, &mut out);
    out
}
