//! Authenticator for PAP (RFC 1334), CHAP-MD5 (RFC 1994) and MS-CHAPv2 (RFC 2759). AAA decides whether a proof is right.
use crate::layer::Core;
use crate::lcp::AuthProtocol;
use crate::snapshot::Passed;
use crate::time::Deadline;
use crate::types::{AuthMethod, AuthReply, AuthRequest, Discarded, Grant, Output, Random};
use sha2::{Digest, Sha256};
use wire::mschapv2::{self, AUTHENTICATION_FAILURE};
use wire::{chap, pap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The link is down.
    Idle,
    /// The peer has to authenticate.
    Asked,
    /// AAA has to decide.
    Waiting,
    /// The peer is authenticated.
    Passed,
    /// Authentication failed.
    Failed,
}

pub(crate) struct Authenticator {
    protocol: AuthProtocol,
    stage: Stage,
    /// Identifier of the challenge, or of the PAP request to be answered.
    id: u8,
    attempt: u8,
    tries: u8,
    challenge: [u8; 16],
    /// AAA's proof for a peer of MS-CHAPv2, for a Success that is repeated. Most sessions have none.
    proof: Option<Box<[u8; 20]>>,
    /// Whether nothing that the peer has sent since says that it received our Success.
    unheard: bool,
}

impl Authenticator {
    pub(crate) fn new(random: &Random) -> Self {
        Authenticator {
            protocol: AuthProtocol::Chap,
            stage: Stage::Idle,
            id: random.chap_id,
            attempt: 0,
            tries: 0,
            challenge: random.chap_challenge,
            proof: None,
            unheard: false,
        }
    }

    /// Authenticator that accepted its peer before a restart. Its challenge is used up.
    pub(crate) fn passed(passed: Passed, attempt: u8, id: u8) -> Self {
        let (protocol, proof) = match passed {
            Passed::Pap => (AuthProtocol::Pap, None),
            Passed::Chap => (AuthProtocol::Chap, None),
            Passed::MsChapV2 { proof } => (AuthProtocol::MsChapV2, proof.map(Box::new)),
        };
        Authenticator {
            protocol,
            stage: Stage::Passed,
            id,
            attempt,
            tries: 0,
            challenge: [0; 16],
            proof,
            unheard: false,
        }
    }

    pub(crate) fn protocol(&self) -> AuthProtocol {
        self.protocol
    }

    /// How the peer was accepted.
    pub(crate) fn result(&self) -> Passed {
        match self.protocol {
            AuthProtocol::Pap => Passed::Pap,
            AuthProtocol::Chap => Passed::Chap,
            AuthProtocol::MsChapV2 => Passed::MsChapV2 {
                proof: self.proof.as_deref().copied(),
            },
        }
    }

    pub(crate) fn attempt(&self) -> u8 {
        self.attempt
    }

    pub(crate) fn id(&self) -> u8 {
        self.id
    }

    /// Whether the peer hangs up without a proof of AAA (RFC 2759 §5).
    pub(crate) fn needs_proof(&self) -> bool {
        self.protocol == AuthProtocol::MsChapV2
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Starts the authentication when the link comes up, with a new challenge each time.
    pub(crate) fn start(&mut self, core: &mut Core, protocol: AuthProtocol) {
        if self.attempt > 0 {
            self.id = self.id.wrapping_add(1);
            self.renew_challenge(core);
        }
        self.attempt = self.attempt.wrapping_add(1);
        self.protocol = protocol;
        self.proof = None;
        self.stage = Stage::Asked;
        self.tries = core.config.max_configure;
        // With PAP the peer sends first. The session's setup time-out limits the wait.
        if protocol != AuthProtocol::Pap {
            self.send_challenge(core);
        }
    }

    /// Challenges a peer again that is authenticated.
    pub(crate) fn start_again(&mut self, core: &mut Core) -> Result<(), Discarded> {
        match (self.stage, self.protocol) {
            (Stage::Passed, AuthProtocol::Pap) => {
                return Err(Discarded("a peer cannot be asked again for PAP"));
            }
            (Stage::Passed, protocol) => self.start(core, protocol),
            _ => return Err(Discarded("the peer is being authenticated")),
        }
        Ok(())
    }

    /// Goes on challenging a peer that cannot be reached.
    pub(crate) fn excuse(&mut self, core: &mut Core) {
        self.tries = self.tries.max(u8::from(Self::is_due(core)));
    }

    /// Stops when the link goes down.
    pub(crate) fn stop(&mut self, core: &mut Core) {
        self.stage = Stage::Idle;
        repeat(core, Deadline::NEVER);
    }

    /// Whether the peer has not answered its challenge in time.
    fn is_due(core: &Core) -> bool {
        core.timer(|work| work.challenge).is_due(core.now())
    }

    /// Sends the challenge again. Returns an error if the peer has not answered the last one.
    pub(crate) fn on_timeout(&mut self, core: &mut Core) -> Result<(), NoAnswer> {
        if !Self::is_due(core) {
            return Ok(());
        }
        repeat(core, Deadline::NEVER);
        if self.tries == 0 {
            self.stage = Stage::Failed;
            return Err(NoAnswer);
        }
        // A peer answers a repeated challenge with another challenge of its own. The identifier tells which answer is meant, as
        // RFC 1994 §4.1 asks for; otherwise it would be compared with a proof for the one before.
        if self.protocol == AuthProtocol::MsChapV2 {
            self.id = self.id.wrapping_add(1);
        }
        self.send_challenge(core);
        Ok(())
    }

    pub(crate) fn on_pap(&mut self, core: &mut Core, payload: &[u8]) -> Result<(), Discarded> {
        let pap::Packet::Request {
            id,
            peer_id,
            password,
        } = pap::Packet::parse(payload)?
        else {
            return Err(Discarded("PAP reply, but we are the authenticator"));
        };
        if self.protocol != AuthProtocol::Pap {
            return Err(Discarded("PAP, but CHAP was agreed"));
        }
        self.id = id;
        match self.stage {
            Stage::Asked => {
                self.ask(
                    core,
                    peer_id,
                    AuthMethod::Pap {
                        password: password.to_vec(),
                    },
                );
                Ok(())
            }
            Stage::Passed | Stage::Failed => {
                self.send_result_again(core);
                Ok(())
            }
            Stage::Waiting => Err(Discarded("PAP request repeated, AAA has not answered yet")),
            Stage::Idle => Err(Discarded("PAP while the link is down")),
        }
    }

    pub(crate) fn on_chap(&mut self, core: &mut Core, payload: &[u8]) -> Result<(), Discarded> {
        let chap::Packet::Response { id, value, name } = chap::Packet::parse(payload)? else {
            return Err(Discarded("CHAP packet of an authenticator, which we are"));
        };
        if self.protocol == AuthProtocol::Pap {
            return Err(Discarded("CHAP, but PAP was agreed"));
        }
        if id != self.id {
            return Err(Discarded("CHAP response to another challenge"));
        }
        match self.stage {
            Stage::Asked => {
                let method = self.response(id, value)?;
                repeat(core, Deadline::NEVER);
                self.ask(core, name, method);
                Ok(())
            }
            // It answers a challenge from before a restart, and nobody knows the proof for it.
            Stage::Passed if self.needs_proof() && self.proof.is_none() => {
                Err(Discarded("MS-CHAPv2 response without an open challenge"))
            }
            // The peer did not receive our result (RFC 1994 §4.2, RFC 2759 §5).
            Stage::Passed | Stage::Failed => {
                self.send_result_again(core);
                Ok(())
            }
            Stage::Waiting => Err(Discarded(
                "CHAP response repeated, AAA has not answered yet",
            )),
            Stage::Idle => Err(Discarded("CHAP while the link is down")),
        }
    }

    /// Passes AAA's result on to the peer.
    pub(crate) fn on_reply(
        &mut self,
        core: &mut Core,
        attempt: u8,
        reply: AuthReply,
    ) -> Result<Option<Grant>, Discarded> {
        if attempt != self.attempt || self.stage != Stage::Waiting {
            return Err(Discarded(
                "verdict on an authentication that is no longer open",
            ));
        }
        let (grant, message, proof) = match reply {
            AuthReply::Accept { proof: None, .. } if self.needs_proof() => {
                self.fail(core, None, b"");
                return Ok(None);
            }
            AuthReply::Accept {
                grant,
                message,
                proof,
            } => (grant, message, proof),
            AuthReply::Reject { message, error } => {
                self.fail(core, error, &message);
                return Ok(None);
            }
        };
        self.stage = Stage::Passed;
        self.unheard = true;
        self.proof = proof.map(Box::new);
        self.send_success(core, &message);
        Ok(Some(grant))
    }

    fn fail(&mut self, core: &mut Core, error: Option<u32>, message: &[u8]) {
        self.stage = Stage::Failed;
        self.send_failure(core, error.unwrap_or(AUTHENTICATION_FAILURE), message);
    }

    /// What the peer proves with its response.
    fn response(&self, id: u8, value: &[u8]) -> Result<AuthMethod, Discarded> {
        let challenge = self.challenge;
        if self.protocol == AuthProtocol::MsChapV2 {
            return Ok(AuthMethod::MsChapV2 {
                id,
                challenge,
                response: mschapv2::Response::parse(value)?,
            });
        }
        Ok(AuthMethod::Chap {
            id,
            challenge,
            response: value
                .try_into()
                .map_err(|_| Discarded("CHAP response is no MD5"))?,
        })
    }

    fn ask(&mut self, core: &mut Core, username: &[u8], method: AuthMethod) {
        self.stage = Stage::Waiting;
        let request = AuthRequest {
            attempt: self.attempt,
            username: username.to_vec(),
            method,
        };
        core.output(Output::Authenticate(request));
    }

    fn send_challenge(&mut self, core: &mut Core) {
        self.tries = self.tries.saturating_sub(1);
        repeat(
            core,
            Deadline::after(core.now(), core.config.restart_interval),
        );
        let mut frame = Vec::with_capacity(64);
        chap::Packet::Challenge {
            id: self.id,
            value: &self.challenge,
            name: core.config.name.as_bytes(),
        }
        .emit(&mut frame);
        core.send_frame(frame);
    }

    /// Sends the result again to a peer that did not receive it.
    fn send_result_again(&self, core: &mut Core) {
        match self.stage {
            Stage::Passed => self.send_success(core, b""),
            _ => self.send_failure(core, AUTHENTICATION_FAILURE, b""),
        }
    }

    /// Notes that the peer received our Success: it goes on to the network layer.
    pub(crate) fn heard(&mut self) {
        self.unheard = false;
    }

    /// Sends the Success again to a peer that has sent nothing since. A peer that did not receive it discards everything else, and most
    /// of them do not repeat their response.
    pub(crate) fn remind(&self, core: &mut Core) {
        if self.unheard && self.stage == Stage::Passed {
            self.send_success(core, b"");
        }
    }

    fn send_success(&self, core: &mut Core, message: &[u8]) {
        let (id, message) = (self.id, shortened(message));
        let mut frame = Vec::with_capacity(message.len() + 8);
        match self.protocol {
            AuthProtocol::Pap => pap::Packet::Ack { id, message }.emit(&mut frame),
            AuthProtocol::Chap => chap::Packet::Success { id, message }.emit(&mut frame),
            AuthProtocol::MsChapV2 => {
                let proof = self.proof.as_deref().copied().unwrap_or_default();
                let message = &mschapv2::Success { proof, message }.to_text();
                chap::Packet::Success { id, message }.emit(&mut frame);
            }
        }
        core.send_frame(frame);
    }

    /// `error`: code of MS-CHAPv2. The other protocols have none.
    fn send_failure(&self, core: &mut Core, error: u32, message: &[u8]) {
        let (id, message) = (self.id, shortened(message));
        let mut frame = Vec::with_capacity(message.len() + 8);
        match self.protocol {
            AuthProtocol::Pap => pap::Packet::Nak { id, message }.emit(&mut frame),
            AuthProtocol::Chap => chap::Packet::Failure { id, message }.emit(&mut frame),
            AuthProtocol::MsChapV2 => {
                let failure = mschapv2::Failure { error, message };
                let message = &failure.to_text(&self.challenge);
                chap::Packet::Failure { id, message }.emit(&mut frame);
            }
        }
        core.send_frame(frame);
    }

    /// Challenges must be unique and unpredictable (RFC 1994 §2.3). The seed is secret, and the hash does not reveal it.
    fn renew_challenge(&mut self, core: &mut Core) {
        let digest = Sha256::new()
            .chain_update(b"CHAP challenge")
            .chain_update(core.rng.next().to_be_bytes())
            .chain_update(core.rng.next().to_be_bytes())
            .chain_update(self.challenge)
            .finalize();
        self.challenge.copy_from_slice(&digest[..16]);
    }
}

/// Sets the time at which the challenge is repeated.
fn repeat(core: &mut Core, at: Deadline) {
    core.set_timer(at, |work| &mut work.challenge);
}

/// PAP's length field has one octet. Longer texts are useless with CHAP, too.
fn shortened(message: &[u8]) -> &[u8] {
    &message[..message.len().min(255)]
}

/// The peer answered none of our challenges.
pub(crate) struct NoAnswer;
