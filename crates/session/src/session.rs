//! PPP session from PADS to its end: the phases of RFC 1661 §3, composed of the layers.
use crate::auth::Authenticator;
use crate::automaton::{Event, State};
use crate::ipcp::{self, Ipcp};
use crate::ipv6cp::Ipv6cp;
use crate::keepalive::Keepalive;
use crate::layer::{Core, Layer, Notes, REJECTED_PART};
use crate::lcp::Lcp;
use crate::router::{self, Ends, Router};
use crate::time::{Deadline, Rng};
use crate::types::{
    Cause, Command, Discarded, Family, Grant, Ipv6Grant, Output, Phase, Random, RulesState,
    SessionConfig, Status, Watch,
};
use core::time::Duration;
use std::sync::Arc;
use wire::lcp::{self as lcp_wire, ProtocolReject};
use wire::ppp::{self, Control, Frame};

/// What PPP sends.
#[derive(Debug)]
pub(crate) enum Ppp {
    /// A PPP frame from its protocol field on.
    Frame(Vec<u8>),
    /// The session has ended, with this text for the peer.
    End(&'static str),
}

/// PPP session, server side.
pub(crate) struct Session {
    pub(crate) core: Core,
    pub(crate) phase: Phase,
    pub(crate) lcp: Layer<Lcp>,
    pub(crate) auth: Authenticator,
    pub(crate) ipcp: Layer<Ipcp>,
    pub(crate) ipv6cp: Layer<Ipv6cp>,
    pub(crate) has_ipv4: bool,
    pub(crate) ipv6: Option<Box<Ipv6Grant>>,
    pub(crate) ipv4_rules: RulesState,
    pub(crate) ipv6_rules: RulesState,
    /// IPv4 and IPv6: the family was up, or the peer's request was acknowledged, and then the peer was out of reach.
    lost: [bool; 2],
    pub(crate) keepalive: Keepalive,
    pub(crate) router: Router,
    /// Cause of its end.
    cause: Option<Cause>,
    reject_id: u8,
    /// Whether the peer has sent nothing sensible since it was asked for a sign of life.
    is_silent: bool,
}

impl Session {
    pub(crate) fn new(
        config: Arc<SessionConfig>,
        max_payload: Option<u16>,
        random: Random,
        now: Duration,
    ) -> Self {
        let mut rng = Rng(random.seed);
        let magic = if random.magic == 0 {
            rng.nonzero_u32()
        } else {
            random.magic
        };
        let interface_id = if random.interface_id == 0 {
            rng.nonzero_u64()
        } else {
            random.interface_id
        };
        let lcp = Layer::new(Lcp::new(&config, max_payload, magic));
        let start = Deadline::after(now, config.start_delay);
        let setup = Deadline::after(now, config.setup_timeout);
        let mut session = Session {
            phase: Phase::Establish,
            lcp,
            auth: Authenticator::new(&random),
            ipcp: Layer::new(Ipcp::new(ipcp::NO_GRANT)),
            ipv6cp: Layer::new(Ipv6cp::new(interface_id, None)),
            has_ipv4: false,
            ipv6: None,
            ipv4_rules: RulesState::Off,
            ipv6_rules: RulesState::Off,
            lost: [false; 2],
            keepalive: Keepalive::off(),
            router: Router::silent(),
            cause: None,
            reject_id: 0,
            is_silent: false,
            core: Core::new(config, rng, now),
        };
        session.core.work().start = start;
        session.core.work().setup = setup;
        session.start_if_due(now);
        session
    }

    fn start_if_due(&mut self, now: Duration) {
        if self
            .core
            .work_left()
            .is_some_and(|work| work.start.is_due(now))
        {
            self.start();
        }
    }

    /// Starts LCP if it is not started.
    fn start(&mut self) {
        let work = self.core.work_left();
        let start = work.map(|work| core::mem::replace(&mut work.start, Deadline::NEVER));
        if start.is_some_and(|start| start != Deadline::NEVER) {
            self.lcp.on_event(&mut self.core, Event::Open);
            self.lcp.on_event(&mut self.core, Event::Up);
        }
    }

    /// Restores a session from its parts, in the network phase.
    pub(crate) fn resume(
        core: Core,
        lcp: Layer<Lcp>,
        auth: Authenticator,
        ipcp: Layer<Ipcp>,
        ipv6cp: Layer<Ipv6cp>,
    ) -> Self {
        Session {
            phase: Phase::Network,
            lcp,
            auth,
            ipcp,
            ipv6cp,
            has_ipv4: false,
            ipv6: None,
            ipv4_rules: RulesState::Off,
            ipv6_rules: RulesState::Off,
            lost: [false; 2],
            keepalive: Keepalive::off(),
            router: Router::silent(),
            cause: None,
            reject_id: 0,
            is_silent: false,
            core,
        }
    }

    /// Handles a PPP frame from its protocol field on. A malformed or unexpected one changes nothing and returns an error.
    pub(crate) fn on_ppp(&mut self, now: Duration, frame: &[u8]) -> Result<(), Discarded> {
        self.begin(now)?;
        // The peer speaks, so it listens.
        self.start();
        self.on_frame(frame)?;
        self.is_silent = false;
        Ok(())
    }

    /// Handles a PADT of the subscriber.
    pub(crate) fn on_padt(&mut self, now: Duration) -> Result<(), Discarded> {
        self.begin(now)?;
        self.finish(Cause::UserRequest, false);
        Ok(())
    }

    /// Carries out a command of its owner. An unexpected one changes nothing and returns an error.
    pub(crate) fn command(&mut self, now: Duration, command: Command) -> Result<(), Discarded> {
        self.begin(now)?;
        match command {
            Command::Auth { attempt, reply } => return self.on_auth_reply(attempt, reply),
            Command::Installed(family) => return self.on_installed(family),
            Command::Reauthenticate => return self.reauthenticate(),
            Command::Probe => self.probe(),
            Command::Terminate(cause) => {
                // goodbye goes over a link that was started
                self.start();
                self.close(cause);
            }
            Command::Abandon(cause) => self.finish(cause, true),
            Command::Configure(config) => self.reconfigure(config),
            Command::SetGrant(grant) => self.set_grant(grant),
        }
        Ok(())
    }

    /// Begins to handle an input.
    fn begin(&mut self, now: Duration) -> Result<(), Discarded> {
        self.core.begin(now);
        match self.phase {
            Phase::Closed => Err(Discarded("session is over")),
            _ => Ok(()),
        }
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output<Ppp>> {
        self.core.next_output()
    }

    pub(crate) fn poll_at(&self) -> Option<Duration> {
        if self.phase == Phase::Closed {
            return None;
        }
        self.core
            .deadline()
            .min(self.keepalive.at)
            .min(self.router.at)
            .min(self.reconfigure_at())
            .get()
    }

    fn reconfigure(&mut self, config: Arc<SessionConfig>) {
        let before = std::mem::replace(&mut self.core.config, config);
        let open = matches!(self.phase, Phase::Authenticate | Phase::Network);
        if open && self.core.config.echo_interval != before.echo_interval {
            self.keepalive.stop();
            self.keepalive.resume(&mut self.core);
        }
    }

    fn set_grant(&mut self, grant: Grant) {
        if let (true, Some(ipv4)) = (self.has_ipv4, grant.ipv4) {
            self.ipcp.options.grant.dns = ipv4.dns;
        }
        let (Some(before), Some(ipv6)) = (&mut self.ipv6, grant.ipv6) else {
            return;
        };
        let ipv6 = Ipv6Grant {
            interface_id: before.interface_id,
            ..ipv6
        };
        let is_told = |grant: &Ipv6Grant| {
            let (told, tells) = (&grant.bindings, &ipv6.bindings);
            told.ipv6_address() == tells.ipv6_address()
                && told.delegated().eq(tells.delegated())
                && grant.dns == ipv6.dns
        };
        let (is_told, is_advertised) =
            (is_told(before), router::is_advertised_alike(before, &ipv6));
        **before = ipv6;
        if self.ipv6_rules < RulesState::Installed {
            return;
        }
        let ends = ends(&self.ipv6cp);
        // otherwise the first advertisement has them
        if !is_advertised && self.ipv6cp.state() == State::Opened {
            self.router.advertise_change(&mut self.core, ends, before);
        }
        if !is_told {
            self.router.reconfigure.begin(self.core.now());
            self.send_reconfigure();
        }
    }

    /// Handles expired timers, while the subscriber is watched in this way.
    pub(crate) fn on_timeout(&mut self, now: Duration, watch: Watch) {
        if self.begin(now).is_err() {
            return;
        }
        match watch {
            Watch::Link => {}
            // The answer to an own request says that a family that was given up can be asked for again.
            Watch::UserPlane if self.lost.contains(&true) => {}
            Watch::UserPlane => self.keepalive.leave_to_user_plane(&mut self.core),
            Watch::Nobody => {
                self.keepalive.excuse(&mut self.core);
                self.auth.excuse(&mut self.core);
            }
        }
        self.start_if_due(now);
        let notes = self.lcp.on_timeout(&mut self.core);
        self.after_lcp(notes);
        if self.auth.on_timeout(&mut self.core).is_err() {
            self.close(Cause::AuthFailed);
        }
        if Layer::<Ipcp>::is_due(&self.core) || Layer::<Ipv6cp>::is_due(&self.core) {
            self.auth.remind(&mut self.core);
        }
        let may_be_open = self.ipv4_rules != RulesState::Off || self.ipcp.state() == State::AckSent;
        let notes = self.ipcp.on_timeout(&mut self.core);
        self.lost[0] |= notes.finished && may_be_open;
        self.after_ipcp(notes);
        let may_be_open =
            self.ipv6_rules != RulesState::Off || self.ipv6cp.state() == State::AckSent;
        let notes = self.ipv6cp.on_timeout(&mut self.core);
        self.lost[1] |= notes.finished && may_be_open;
        self.after_ipv6cp(notes);
        if self
            .keepalive
            .on_timeout(&mut self.core, self.lcp.options.magic)
            .is_err()
        {
            self.finish(Cause::LostCarrier, true);
        }
        if self.router.at.take_if_due(now) {
            self.advertise();
        }
        self.send_reconfigure();
        let work = self.core.work_left();
        if work.is_some_and(|work| work.setup.take_if_due(now)) {
            self.close(Cause::NegotiationFailed);
        }
    }

    pub(crate) fn status(&self) -> Status {
        let peer = self.ipv6cp.options.peer;
        Status {
            phase: self.phase,
            is_silent: self.is_silent,
            magic: self.lcp.options.magic,
            mtu: self.lcp.options.peer_mru,
            peer_interface_id: (peer != 0).then_some(peer),
            waits_for_verdict: self.auth.is_waiting(),
            needs_proof: self.auth.needs_proof(),
            rules: [self.ipv4_rules, self.ipv6_rules],
        }
    }

    fn on_frame(&mut self, bytes: &[u8]) -> Result<(), Discarded> {
        let frame = Frame::parse(bytes)?;
        match frame.protocol {
            ppp::LCP => self.on_lcp(Control::parse(frame.payload)?),
            ppp::PAP if self.is_authenticating() => self.auth.on_pap(&mut self.core, frame.payload),
            ppp::CHAP if self.is_authenticating() => {
                self.auth.on_chap(&mut self.core, frame.payload)
            }
            // RFC 1661 §3.4 and §3.5: until the peer is authenticated everything else is silently discarded.
            _ if self.phase != Phase::Network => {
                Err(Discarded("protocol has no place in this phase"))
            }
            _ => {
                self.auth.heard();
                self.on_network(frame)
            }
        }
    }

    /// Handles a frame of a peer that is authenticated.
    fn on_network(&mut self, frame: Frame<'_>) -> Result<(), Discarded> {
        match frame.protocol {
            ppp::IPCP if self.has_ipv4 => self.on_ipcp(Control::parse(frame.payload)?),
            ppp::IPV6CP if self.ipv6.is_some() => {
                let notes =
                    self.ipv6cp
                        .on_packet(&mut self.core, Control::parse(frame.payload)?, false)?;
                self.after_ipv6cp(notes);
                Ok(())
            }
            ppp::IPV6 => self.on_ipv6(frame.payload),
            ppp::IPV4 => Err(Discarded("IPv4 packet on the way of control packets")),
            _ => {
                self.reject_protocol(frame);
                Ok(())
            }
        }
    }

    fn is_authenticating(&self) -> bool {
        matches!(self.phase, Phase::Authenticate | Phase::Network)
    }

    fn on_lcp(&mut self, packet: Control<'_>) -> Result<(), Discarded> {
        let magic = self.lcp.options.magic;
        let is_open = self.lcp.state() == State::Opened;
        match packet.code {
            lcp_wire::ECHO_REQUEST if self.lcp.on_event(&mut self.core, Event::Echo).echo => {
                return Keepalive::on_request(&mut self.core, magic, packet.id, packet.data);
            }
            lcp_wire::ECHO_REPLY if is_open => {
                self.keepalive.on_reply(&mut self.core, packet.data)?;
                self.ask_again();
                return Ok(());
            }
            lcp_wire::PROTOCOL_REJECT if is_open => return self.on_protocol_reject(packet.data),
            lcp_wire::PROTOCOL_REJECT | lcp_wire::ECHO_REQUEST | lcp_wire::ECHO_REPLY => {
                return Err(Discarded("LCP packet for an open link, which this is not"));
            }
            // RFC 1661 §5.9 and RFC 1570 ask for nothing but to listen.
            lcp_wire::DISCARD_REQUEST | lcp_wire::IDENTIFICATION | lcp_wire::TIME_REMAINING => {
                return Ok(());
            }
            _ => {}
        }
        let hangs_up = packet.code == ppp::TERMINATE_REQUEST;
        let was_negotiating = self.lcp.state().is_running() && !is_open;
        if hangs_up && self.lcp.state().is_running() {
            self.cause.get_or_insert(Cause::UserRequest);
        }
        let notes = self.lcp.on_packet(&mut self.core, packet, false)?;
        self.after_lcp(notes);
        // The automaton would go on asking a peer that is no longer there.
        if hangs_up && was_negotiating {
            self.finish(Cause::UserRequest, true);
        }
        Ok(())
    }

    fn after_lcp(&mut self, notes: Notes) {
        if notes.down {
            self.on_link_down();
        }
        if let Some(cause) = notes.give_up {
            self.close(cause);
        }
        if notes.finished {
            self.finish(Cause::NegotiationFailed, true);
        }
        if notes.up {
            self.phase = Phase::Authenticate;
            self.keepalive.start(&mut self.core);
            self.auth.start(&mut self.core, self.lcp.options.auth);
        }
    }

    /// Closes all upper layers after LCP has left Opened, whether the session ends or PPP restarts.
    fn on_link_down(&mut self) {
        self.phase = if self.cause.is_some() {
            Phase::Terminate
        } else {
            Phase::Establish
        };
        self.core.work().setup = match self.phase {
            Phase::Terminate => Deadline::NEVER,
            _ => Deadline::after(self.core.now(), self.core.config.setup_timeout),
        };
        self.keepalive.stop();
        self.auth.stop(&mut self.core);
        self.ipcp.on_event(&mut self.core, Event::Down);
        self.ipv6cp.on_event(&mut self.core, Event::Down);
        self.settle_rules();
        self.lost = [false; 2];
        self.has_ipv4 = false;
        self.ipv6 = None;
    }

    fn on_auth_reply(
        &mut self,
        attempt: u8,
        reply: crate::types::AuthReply,
    ) -> Result<(), Discarded> {
        match self.auth.on_reply(&mut self.core, attempt, reply)? {
            None => self.close(Cause::AuthFailed),
            Some(grant) if self.phase == Phase::Authenticate => self.start_network(grant),
            Some(_) => {}
        }
        Ok(())
    }

    fn probe(&mut self) {
        self.is_silent = true;
        // before and after, only the peer's own packets are signs of life (RFC 1661 §5.8)
        if self.lcp.state() == State::Opened {
            let magic = self.lcp.options.magic;
            self.keepalive.probe(&mut self.core, magic);
        }
    }

    fn reauthenticate(&mut self) -> Result<(), Discarded> {
        match self.phase {
            Phase::Network => self.auth.start_again(&mut self.core),
            _ => Err(Discarded("the peer is not authenticated yet")),
        }
    }

    fn start_network(&mut self, grant: Grant) {
        self.phase = Phase::Network;
        if let Some(ipv4) = grant.ipv4 {
            self.has_ipv4 = true;
            self.ipcp = Layer::new(Ipcp::new(ipv4));
            self.ipcp.on_event(&mut self.core, Event::Open);
            self.ipcp.on_event(&mut self.core, Event::Up);
        }
        if let Some(ipv6) = grant.ipv6 {
            self.ipv6cp = Layer::new(Ipv6cp::new(self.ipv6cp.options.ours, ipv6.interface_id));
            self.ipv6 = Some(Box::new(ipv6));
            self.ipv6cp.on_event(&mut self.core, Event::Open);
            self.ipv6cp.on_event(&mut self.core, Event::Up);
        }
    }

    /// Starts the negotiation of address families that are ready for it.
    pub(crate) fn begin_waiting_families(&mut self) {
        if self.ipcp.state() == State::Starting {
            self.ipcp.on_event(&mut self.core, Event::Up);
        }
        if self.ipv6cp.state() == State::Starting {
            self.ipv6cp.on_event(&mut self.core, Event::Up);
        }
    }

    /// Negotiates an address family again that was given up while the peer was unreachable. The peer considers it open and does not request
    /// it.
    fn ask_again(&mut self) {
        let [ipv4, ipv6] = std::mem::take(&mut self.lost);
        if ipv4 && self.ipcp.state() == State::Stopped {
            self.ipcp.on_event(&mut self.core, Event::Down);
        }
        if ipv6 && self.ipv6cp.state() == State::Stopped {
            self.ipv6cp.on_event(&mut self.core, Event::Down);
        }
        self.begin_waiting_families();
    }

    fn on_ipcp(&mut self, packet: Control<'_>) -> Result<(), Discarded> {
        if packet.code == ppp::CONFIGURE_REQUEST {
            // Whatever is said about this one, the one before is answered by it.
            self.forget_held();
        }
        let hold = self.ipv4_rules < RulesState::Installed;
        let notes = self.ipcp.on_packet(&mut self.core, packet, hold)?;
        if notes.held {
            self.core.work().held = Some((packet.id, packet.data.into()));
        }
        self.after_ipcp(notes);
        Ok(())
    }

    fn after_ipcp(&mut self, mut notes: Notes) {
        if notes.give_up.is_some() {
            notes = self.ipcp.on_event(&mut self.core, Event::FatalReject);
        }
        if notes.held && self.ipv4_rules == RulesState::Off {
            self.ipv4_rules = RulesState::Asked;
            self.core.output(Output::Install(Family::Ipv4));
        }
        if notes.up {
            self.report_up(Family::Ipv4);
        }
        self.settle_rules();
    }

    fn after_ipv6cp(&mut self, mut notes: Notes) {
        if notes.give_up.is_some() {
            notes = self.ipv6cp.on_event(&mut self.core, Event::FatalReject);
        }
        if notes.up {
            match self.ipv6_rules {
                RulesState::Off => {
                    self.ipv6_rules = RulesState::Asked;
                    self.core.output(Output::Install(Family::Ipv6));
                }
                RulesState::Asked => {}
                RulesState::Installed | RulesState::Up => {
                    self.advertise();
                    self.send_reconfigure();
                    self.report_up(Family::Ipv6);
                }
            }
        }
        self.settle_rules();
    }

    fn on_installed(&mut self, family: Family) -> Result<(), Discarded> {
        if *self.rules(family) != RulesState::Asked {
            return Err(Discarded("rules installed that were not asked for"));
        }
        *self.rules_mut(family) = RulesState::Installed;
        match family {
            Family::Ipv4 => {
                let held = self.core.work_left().and_then(|work| work.held.take());
                if let Some((id, options)) = held {
                    let notes = self.ipcp.release(&mut self.core, id, &options);
                    self.after_ipcp(notes);
                }
            }
            Family::Ipv6 if self.ipv6cp.state() == State::Opened => {
                self.advertise();
                self.report_up(Family::Ipv6);
            }
            Family::Ipv6 => {}
        }
        Ok(())
    }

    fn report_up(&mut self, family: Family) {
        if *self.rules(family) != RulesState::Up {
            *self.rules_mut(family) = RulesState::Up;
            self.end_setup();
            self.core.output(Output::Up(family));
        }
    }

    /// Removes the rules of an address family whose NCP has stopped. A renegotiated family keeps them, because its addresses do not change.
    fn settle_rules(&mut self) {
        if self.ipv4_rules != RulesState::Off && !self.ipcp.state().is_running() {
            self.ipv4_rules = RulesState::Off;
            self.forget_held();
            self.core.output(Output::Down(Family::Ipv4));
        }
        if self.ipv6_rules != RulesState::Off && !self.ipv6cp.state().is_running() {
            self.ipv6_rules = RulesState::Off;
            self.router.silence();
            self.core.output(Output::Down(Family::Ipv6));
        }
    }

    fn on_ipv6(&mut self, packet: &[u8]) -> Result<(), Discarded> {
        match self.ipv6.as_deref() {
            Some(grant) if self.ipv6_rules >= RulesState::Installed => {
                self.router
                    .on_packet(&mut self.core, ends(&self.ipv6cp), grant, packet)
            }
            _ => Err(Discarded("IPv6 packet before IPv6 is up")),
        }
    }

    fn advertise(&mut self) {
        if let Some(grant) = &self.ipv6 {
            self.router
                .advertise(&mut self.core, ends(&self.ipv6cp), grant);
        }
    }

    /// Sends the Reconfigure that is due. Until IPV6CP is open it waits, because the peer discards IPv6 packets (RFC 5072 §2).
    fn send_reconfigure(&mut self) {
        if self.ipv6cp.state() == State::Opened {
            self.router
                .reconfigure
                .on_timeout(&mut self.core, ends(&self.ipv6cp));
        }
    }

    fn reconfigure_at(&self) -> Deadline {
        match self.ipv6cp.state() {
            State::Opened => self.router.reconfigure.at(),
            _ => Deadline::NEVER,
        }
    }

    fn on_protocol_reject(&mut self, data: &[u8]) -> Result<(), Discarded> {
        match ProtocolReject::parse(data)?.protocol {
            ppp::LCP => {
                let notes = self.lcp.on_event(&mut self.core, Event::FatalReject);
                self.after_lcp(notes);
            }
            ppp::PAP | ppp::CHAP => self.close(Cause::AuthFailed),
            ppp::IPCP | ppp::IPV4 => {
                let notes = self.ipcp.on_event(&mut self.core, Event::FatalReject);
                self.after_ipcp(notes);
            }
            ppp::IPV6CP | ppp::IPV6 => {
                let notes = self.ipv6cp.on_event(&mut self.core, Event::FatalReject);
                self.after_ipv6cp(notes);
            }
            _ => return Err(Discarded("Protocol-Reject of what we never send")),
        }
        Ok(())
    }

    fn reject_protocol(&mut self, frame: Frame<'_>) {
        self.reject_id = self.reject_id.wrapping_add(1);
        let information = &frame.payload[..frame.payload.len().min(REJECTED_PART)];
        let mut data = Vec::with_capacity(information.len() + 2);
        ProtocolReject {
            protocol: frame.protocol,
            information,
        }
        .emit(&mut data);
        self.core
            .send(ppp::LCP, lcp_wire::PROTOCOL_REJECT, self.reject_id, &data);
    }

    /// Sends an LCP Terminate-Request. The session ends when the peer has answered, or after the time-out.
    fn close(&mut self, cause: Cause) {
        if self.phase == Phase::Closed {
            return;
        }
        self.cause.get_or_insert(cause);
        self.phase = Phase::Terminate;
        self.end_setup();
        self.auth.stop(&mut self.core);
        let notes = self.lcp.on_event(&mut self.core, Event::Close);
        self.after_lcp(notes);
        if !self.lcp.state().is_timed() {
            self.finish(cause, true);
        }
    }

    fn finish(&mut self, cause: Cause, tell_peer: bool) {
        if self.phase == Phase::Closed {
            return;
        }
        let cause = *self.cause.get_or_insert(cause);
        self.on_link_down();
        self.phase = Phase::Closed;
        if tell_peer {
            let end = Output::Frame(Ppp::End(cause.text()));
            self.core.output(end);
        }
        self.core.output(Output::Closed(cause));
    }

    fn forget_held(&mut self) {
        if let Some(work) = self.core.work_left() {
            work.held = None;
        }
    }

    /// Stops the time-out of the set-up.
    fn end_setup(&mut self) {
        if let Some(work) = self.core.work_left() {
            work.setup = Deadline::NEVER;
        }
    }

    fn rules(&self, family: Family) -> &RulesState {
        match family {
            Family::Ipv4 => &self.ipv4_rules,
            Family::Ipv6 => &self.ipv6_rules,
        }
    }

    fn rules_mut(&mut self, family: Family) -> &mut RulesState {
        match family {
            Family::Ipv4 => &mut self.ipv4_rules,
            Family::Ipv6 => &mut self.ipv6_rules,
        }
    }
}

fn ends(ipv6cp: &Layer<Ipv6cp>) -> Ends {
    Ends {
        ours: ipv6cp.options.ours,
        peer: ipv6cp.options.peer,
    }
}
