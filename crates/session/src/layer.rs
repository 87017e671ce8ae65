//! One control protocol: the automaton with its restart timer, identifiers and messages. A [`Protocol`] defines what the options
//! mean.
use crate::automaton::{Actions, Event, State, transition};
use crate::session::Ppp;
use crate::time::{Deadline, Rng, nanoseconds};
use crate::types::{Cause, Discarded, Output, SessionConfig};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::ppp::{self, Control};

/// State that all parts of a session share.
pub(crate) struct Core {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) rng: Rng,
    /// Time of the input that is being handled, in nanoseconds.
    now: u64,
    work: Option<Box<Work>>,
}

/// What a session has only while it is set up, or handles an input. An open one is silent for most of its life.
pub(crate) struct Work {
    outputs: VecDeque<Output<Ppp>>,
    /// IPCP's acceptable Configure-Request (identifier and options) that waits for the rules.
    pub(crate) held: Option<(u8, Box<[u8]>)>,
    /// Time at which LCP starts without a packet from the peer.
    pub(crate) start: Deadline,
    /// Time-out of a session without an open address family.
    pub(crate) setup: Deadline,
    /// Time at which a challenge is repeated.
    pub(crate) challenge: Deadline,
    /// Restart timers of LCP, IPCP and IPV6CP.
    restart: [Deadline; 3],
}

impl Default for Work {
    fn default() -> Self {
        Work {
            outputs: VecDeque::new(),
            held: None,
            start: Deadline::NEVER,
            setup: Deadline::NEVER,
            challenge: Deadline::NEVER,
            restart: [Deadline::NEVER; 3],
        }
    }
}

impl Work {
    fn is_done(&self) -> bool {
        let is_timed = self.deadline() != Deadline::NEVER;
        self.outputs.is_empty() && self.held.is_none() && !is_timed
    }

    fn deadline(&self) -> Deadline {
        let restart = self.restart.into_iter().min();
        let first = self.start.min(self.setup).min(self.challenge);
        first.min(restart.unwrap_or(Deadline::NEVER))
    }
}

impl Core {
    pub(crate) fn new(config: Arc<SessionConfig>, rng: Rng, now: Duration) -> Self {
        Core {
            config,
            rng,
            now: nanoseconds(now),
            work: None,
        }
    }

    /// Time of the input that is being handled.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Begins to handle an input.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.now = nanoseconds(now);
    }

    /// The session's work, to add to it.
    pub(crate) fn work(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    /// The session's work, if there may be any.
    pub(crate) fn work_left(&mut self) -> Option<&mut Work> {
        self.work.as_deref_mut()
    }

    /// Time of the next step of the work.
    pub(crate) fn deadline(&self) -> Deadline {
        self.timer(Work::deadline)
    }

    /// Sets a timer of the work.
    pub(crate) fn set_timer(&mut self, at: Deadline, of: impl Fn(&mut Work) -> &mut Deadline) {
        if at != Deadline::NEVER {
            *of(self.work()) = at;
        } else if let Some(work) = self.work_left() {
            *of(work) = at;
        }
    }

    /// A timer of the work.
    pub(crate) fn timer(&self, of: impl Fn(&Work) -> Deadline) -> Deadline {
        self.work.as_deref().map_or(Deadline::NEVER, of)
    }

    pub(crate) fn output(&mut self, output: Output<Ppp>) {
        self.work().outputs.push_back(output);
    }

    /// Takes the next output. After the last one, the memory of work that is done is given back.
    pub(crate) fn next_output(&mut self) -> Option<Output<Ppp>> {
        let output = self.work.as_mut()?.outputs.pop_front();
        if output.is_none() {
            self.work.take_if(|work| work.is_done());
        }
        output
    }

    pub(crate) fn send(&mut self, protocol: u16, code: u8, id: u8, data: &[u8]) {
        let mut frame = Vec::with_capacity(data.len() + 6);
        Control { code, id, data }.emit(protocol, &mut frame);
        self.send_frame(frame);
    }

    pub(crate) fn send_frame(&mut self, frame: Vec<u8>) {
        self.output(Output::Frame(Ppp::Frame(frame)));
    }
}

/// Result of judging a peer's Configure-Request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All options are acceptable.
    Ack,
    /// These options should have these values.
    Nak(Vec<u8>),
    /// These options are rejected.
    Reject(Vec<u8>),
    /// No agreement is possible.
    GiveUp(Cause),
}

/// Options of a control protocol.
pub(crate) trait Protocol {
    /// Number of the protocol.
    const NUMBER: u16;
    /// Place of its restart timer.
    const TIMER: usize;

    /// Writes our options, as we want them now.
    fn request(&self, out: &mut Vec<u8>);

    /// Judges the peer's options, and adopts them if they are acceptable. With `may_nak` false, we have asked for changes often
    /// enough: unacceptable options are rejected, and no values are proposed (RFC 1661 §4.6).
    fn judge(&mut self, options: &[u8], may_nak: bool, rng: &mut Rng)
    -> Result<Verdict, Discarded>;

    /// Handles a Nak: the peer wants other values in our options.
    fn naked(
        &mut self,
        options: &[u8],
        config: &SessionConfig,
        rng: &mut Rng,
    ) -> Result<(), Refusal>;

    /// Handles a Reject: the peer does not want these options of ours.
    fn rejected(&mut self, options: &[u8]) -> Result<(), Refusal>;
}

/// Why an answer to our request is unusable.
pub(crate) enum Refusal {
    Discard(Discarded),
    GiveUp(Cause),
}

impl From<wire::Malformed> for Refusal {
    fn from(malformed: wire::Malformed) -> Self {
        Refusal::Discard(malformed.into())
    }
}

/// Effects of an event on the layers above and below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// This-Layer-Up.
    pub(crate) up: bool,
    /// This-Layer-Down.
    pub(crate) down: bool,
    /// This-Layer-Finished.
    pub(crate) finished: bool,
    /// Send-Echo-Reply: the peer's Echo-Request has to be answered.
    pub(crate) echo: bool,
    /// An acceptable Configure-Request waits for [`Layer::release`].
    pub(crate) held: bool,
    /// No agreement is possible.
    pub(crate) give_up: Option<Cause>,
}

/// Data for the messages of one event.
#[derive(Clone, Copy, Default)]
struct Answer<'a> {
    /// Identifier of the packet to answer.
    id: u8,
    /// Configure-Nak or Configure-Reject.
    code: u8,
    data: &'a [u8],
}

/// Running control protocol: six octets besides the options. Its restart timer is in [`Work`].
pub(crate) struct Layer<P> {
    pub(crate) options: P,
    state: State,
    /// Identifier of our last request.
    id: u8,
    /// Whether our last Configure-Request has been answered. A second answer to it is discarded.
    answered: bool,
    /// Transmissions that are left.
    tries: u8,
    /// Naks and Rejects sent since the last Ack.
    refused: u8,
    /// Naks and Rejects received since the last Ack.
    refusals: u8,
}

impl<P: Protocol> Layer<P> {
    pub(crate) fn new(options: P) -> Self {
        Self::in_state(options, State::Initial, 0, 0)
    }

    /// Layer of a session that continues after a restart. An open one has all of its `tries` left: the peer's Ack restored them
    /// (RFC 1661 §4.4), and the peer may start again without an Initialize-Restart-Count of ours.
    pub(crate) fn in_state(options: P, state: State, id: u8, tries: u8) -> Self {
        Layer {
            options,
            state,
            id,
            answered: true,
            tries,
            refused: 0,
            refusals: 0,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn id(&self) -> u8 {
        self.id
    }

    /// Whether its restart timer has expired.
    pub(crate) fn is_due(core: &Core) -> bool {
        core.timer(|work| work.restart[P::TIMER]).is_due(core.now())
    }

    /// Handles an event that no packet caused.
    pub(crate) fn on_event(&mut self, core: &mut Core, event: Event) -> Notes {
        if event == Event::Up {
            (self.refused, self.refusals) = (0, 0);
        }
        self.step(core, event, Answer::default())
    }

    /// Handles the restart timer, if it is due.
    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> Notes {
        if !Self::is_due(core) {
            return Notes::default();
        }
        Self::restart(core, Deadline::NEVER);
        let event = if self.tries > 0 {
            Event::Timeout
        } else {
            Event::LastTimeout
        };
        self.step(core, event, Answer::default())
    }

    /// Handles a packet of this protocol. It knows the codes that all protocols share; every other code is unknown. With `hold`,
    /// an acceptable Configure-Request is not answered before [`Layer::release`].
    pub(crate) fn on_packet(
        &mut self,
        core: &mut Core,
        packet: Control<'_>,
        hold: bool,
    ) -> Result<Notes, Discarded> {
        if !self.state.is_lower_up() {
            return Err(Discarded("control packet for a layer that is down"));
        }
        let answer = Answer {
            id: packet.id,
            code: 0,
            data: packet.data,
        };
        match packet.code {
            ppp::CONFIGURE_REQUEST => self.on_request(core, packet, hold),
            ppp::CONFIGURE_ACK => self.on_ack(core, packet),
            ppp::CONFIGURE_NAK | ppp::CONFIGURE_REJECT => self.on_refusal(core, packet),
            ppp::TERMINATE_REQUEST => Ok(self.step(core, Event::TerminateRequest, answer)),
            ppp::TERMINATE_ACK => Ok(self.step(core, Event::TerminateAck, answer)),
            ppp::CODE_REJECT => {
                let rejected = packet.data.first().copied().unwrap_or(0);
                let fatal = (ppp::CONFIGURE_REQUEST..=ppp::CODE_REJECT).contains(&rejected);
                let event = if fatal {
                    Event::FatalReject
                } else {
                    Event::PermittedReject
                };
                Ok(self.step(core, event, answer))
            }
            code => {
                let mut rejected = vec![code, packet.id];
                rejected.extend_from_slice(&((packet.data.len() + 4) as u16).to_be_bytes());
                rejected.extend_from_slice(packet.data);
                rejected.truncate(REJECTED_PART);
                Ok(self.step(
                    core,
                    Event::UnknownCode,
                    Answer {
                        data: &rejected,
                        ..answer
                    },
                ))
            }
        }
    }

    /// Answers the held Configure-Request.
    pub(crate) fn release(&mut self, core: &mut Core, id: u8, options: &[u8]) -> Notes {
        self.step(
            core,
            Event::GoodRequest,
            Answer {
                id,
                code: 0,
                data: options,
            },
        )
    }

    fn on_request(
        &mut self,
        core: &mut Core,
        packet: Control<'_>,
        hold: bool,
    ) -> Result<Notes, Discarded> {
        if matches!(self.state, State::Closed | State::Closing | State::Stopping) {
            let answer = Answer {
                id: packet.id,
                ..Answer::default()
            };
            return Ok(self.step(core, Event::BadRequest, answer));
        }
        let may_nak = self.refused < core.config.max_failure;
        let (code, data) = match self.options.judge(packet.data, may_nak, &mut core.rng)? {
            Verdict::Ack if hold => return Ok(self.hold(core)),
            Verdict::Ack => {
                let answer = Answer {
                    id: packet.id,
                    code: 0,
                    data: packet.data,
                };
                return Ok(self.step(core, Event::GoodRequest, answer));
            }
            Verdict::Nak(options) => (ppp::CONFIGURE_NAK, options),
            Verdict::Reject(options) => (ppp::CONFIGURE_REJECT, options),
            Verdict::GiveUp(cause) => {
                return Ok(Notes {
                    give_up: Some(cause),
                    ..Notes::default()
                });
            }
        };
        self.refused = self.refused.saturating_add(1);
        if self.refused > core.config.max_failure.saturating_mul(PATIENCE) {
            return Ok(Notes {
                give_up: Some(Cause::NegotiationFailed),
                ..Notes::default()
            });
        }
        Ok(self.step(
            core,
            Event::BadRequest,
            Answer {
                id: packet.id,
                code,
                data: &data,
            },
        ))
    }

    /// Holds the peer's request, while our own half of the negotiation goes on. This does what RFC 1661 does for an acceptable
    /// request, without the Configure-Ack.
    fn hold(&mut self, core: &mut Core) -> Notes {
        let notes = match self.state {
            State::Stopped => {
                self.state = State::ReqSent;
                self.run(
                    core,
                    Actions::IRC | Actions::SCR,
                    Event::GoodRequest,
                    Answer::default(),
                )
            }
            _ => Notes::default(),
        };
        Notes {
            held: true,
            ..notes
        }
    }

    fn on_ack(&mut self, core: &mut Core, packet: Control<'_>) -> Result<Notes, Discarded> {
        self.expect_answer(packet.id)?;
        let mut ours = Vec::with_capacity(32);
        self.options.request(&mut ours);
        if packet.data != ours {
            return Err(Discarded("Configure-Ack of other options than ours"));
        }
        self.answered = true;
        self.refusals = 0;
        Ok(self.step(
            core,
            Event::Ack,
            Answer {
                id: packet.id,
                ..Answer::default()
            },
        ))
    }

    fn on_refusal(&mut self, core: &mut Core, packet: Control<'_>) -> Result<Notes, Discarded> {
        self.expect_answer(packet.id)?;
        let result = match packet.code {
            ppp::CONFIGURE_NAK => self.options.naked(packet.data, &core.config, &mut core.rng),
            _ => self.options.rejected(packet.data),
        };
        self.refusals = self.refusals.saturating_add(1);
        match result {
            Err(Refusal::Discard(discarded)) => return Err(discarded),
            Err(Refusal::GiveUp(cause)) => {
                return Ok(Notes {
                    give_up: Some(cause),
                    ..Notes::default()
                });
            }
            Ok(()) if self.refusals > core.config.max_failure.saturating_mul(PATIENCE) => {
                return Ok(Notes {
                    give_up: Some(Cause::NegotiationFailed),
                    ..Notes::default()
                });
            }
            Ok(()) => self.answered = true,
        }
        Ok(self.step(
            core,
            Event::Nak,
            Answer {
                id: packet.id,
                ..Answer::default()
            },
        ))
    }

    /// In Closed and Stopped, every answer gets a Terminate-Ack, whatever its identifier.
    fn expect_answer(&self, id: u8) -> Result<(), Discarded> {
        let waiting = id == self.id && !self.answered;
        if waiting || matches!(self.state, State::Closed | State::Stopped) {
            return Ok(());
        }
        Err(Discarded("answer to no Configure-Request of ours"))
    }

    fn step(&mut self, core: &mut Core, event: Event, answer: Answer<'_>) -> Notes {
        let (state, actions) = transition(self.state, event);
        self.state = state;
        self.run(core, actions, event, answer)
    }

    /// Carries out the actions in the order of RFC 1661's table, then sets the timer.
    fn run(
        &mut self,
        core: &mut Core,
        actions: Actions,
        event: Event,
        answer: Answer<'_>,
    ) -> Notes {
        if actions.has(Actions::IRC) {
            let terminating = actions.has(Actions::STR);
            self.tries = if terminating {
                core.config.max_terminate
            } else {
                core.config.max_configure
            };
        }
        if actions.has(Actions::ZRC) {
            self.tries = 0;
        }
        self.send_requests(core, actions, event);
        self.send_answers(core, actions, answer);
        let restart = core.timer(|work| work.restart[P::TIMER]);
        if !self.state.is_timed() {
            Self::restart(core, Deadline::NEVER);
        } else if actions.has(Actions::SCR | Actions::STR | Actions::ZRC)
            || restart == Deadline::NEVER
        {
            let at = Deadline::after(core.now(), core.config.restart_interval);
            Self::restart(core, at);
        }
        Notes {
            up: actions.has(Actions::TLU),
            down: actions.has(Actions::TLD),
            finished: actions.has(Actions::TLF),
            echo: actions.has(Actions::SER),
            ..Notes::default()
        }
    }

    fn restart(core: &mut Core, at: Deadline) {
        core.set_timer(at, |work| &mut work.restart[P::TIMER]);
    }

    fn send_requests(&mut self, core: &mut Core, actions: Actions, event: Event) {
        if !actions.has(Actions::SCR | Actions::STR) {
            return;
        }
        self.tries = self.tries.saturating_sub(1);
        // A retransmission keeps its identifier; everything else gets a new one (RFC 1661 §5.1).
        if event != Event::Timeout {
            self.id = self.id.wrapping_add(1);
        }
        if actions.has(Actions::STR) {
            return core.send(P::NUMBER, ppp::TERMINATE_REQUEST, self.id, &[]);
        }
        self.answered = false;
        let mut options = Vec::with_capacity(32);
        self.options.request(&mut options);
        core.send(P::NUMBER, ppp::CONFIGURE_REQUEST, self.id, &options);
    }

    fn send_answers(&mut self, core: &mut Core, actions: Actions, answer: Answer<'_>) {
        if actions.has(Actions::SCA) {
            self.refused = 0;
            core.send(P::NUMBER, ppp::CONFIGURE_ACK, answer.id, answer.data);
        }
        if actions.has(Actions::SCN) {
            core.send(P::NUMBER, answer.code, answer.id, answer.data);
        }
        if actions.has(Actions::STA) {
            core.send(P::NUMBER, ppp::TERMINATE_ACK, answer.id, &[]);
        }
        if actions.has(Actions::SCJ) {
            // Any identifier will do: nobody answers a Code-Reject.
            core.send(P::NUMBER, ppp::CODE_REJECT, answer.id, answer.data);
        }
    }
}

/// Maximum number of octets of a rejected packet that are sent back. They must fit into any MRU.
pub(crate) const REJECTED_PART: usize = 64;

/// Limit of refusals, given or received, as a multiple of Max-Failure. Above it we give up. RFC 1661 leaves this open; without a
/// limit, a peer could negotiate for ever.
const PATIENCE: u8 = 4;
