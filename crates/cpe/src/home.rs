//! A home's router: dials, proves who it is, gets its addresses, and hangs up.

use crate::Family;
use crate::leases::{Delegation, Leases};
use crate::negotiate::{Negotiation, Step};
use crate::progress::{Progress, State};
use crate::random::Random;
use crate::terms::{Auth, Ipv4, Ipv6, Link};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use std::collections::VecDeque;
use wire::eth::{self, Frame, Header, MacAddr, Tags};
use wire::{ipv6, ppp, pppoe};

/// Everything about a home that does not change.
#[derive(Clone)]
pub struct HomeConfig {
    /// The router's MAC address.
    pub mac: MacAddr,
    /// The tags of its line: S-tag and C-tag for QinQ.
    pub tags: Tags,
    /// Data of the vendor tag that the access node adds to discovery packets (TR-101); empty: it adds none.
    pub access_line: Vec<u8>,
    /// Service that it asks for; empty: any.
    pub service: String,
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// How it proves who it is.
    pub auth: Auth,
    /// Whether it wants IPv4.
    pub ipv4: bool,
    /// Whether it wants IPv6.
    pub ipv6: bool,
    /// How it asks for a prefix for its own network, and for an address, by DHCPv6; `None`: it asks for neither.
    pub delegation: Option<Delegation>,
    /// How long it waits for an answer before it repeats itself (RFC 1661's Restart timer: 3 s).
    pub restart: Duration,
    /// How often it asks whether the gateway is still there.
    pub echo_interval: Option<Duration>,
    /// So many questions without an answer end the session.
    pub echo_failures: u8,
}

impl HomeConfig {
    /// A dual-stack home behind QinQ, with RFC 1661's timers.
    pub fn new(
        mac: MacAddr,
        s_tag: u16,
        c_tag: u16,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Self {
        HomeConfig {
            mac,
            tags: Tags::qinq(s_tag, c_tag),
            access_line: Vec::new(),
            service: String::new(),
            user: user.into(),
            password: password.into(),
            auth: Auth::Any,
            ipv4: true,
            ipv6: true,
            delegation: None,
            restart: Duration::from_secs(3),
            echo_interval: Some(Duration::from_secs(30)),
            echo_failures: 4,
        }
    }
}

/// Without the password.
impl fmt::Debug for HomeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HomeConfig {
            mac, tags, user, ..
        } = self;
        write!(
            f,
            "HomeConfig {{ mac: {mac}, tags: {tags}, user: {user:?}, .. }}"
        )
    }
}

/// Why a session, or the attempt at one, is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// We hung up.
    HungUp,
    /// The gateway ended it.
    Terminated,
    /// PADS said no.
    Refused(String),
    /// User or password is wrong; the gateway's words.
    AuthRejected(String),
    /// Nobody answered at this stage.
    Silence(State),
    /// The two sides could not agree at this stage.
    NoAgreement(State),
    /// Echo requests went unanswered.
    LinkLost,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::HungUp => f.write_str("hung up"),
            End::Terminated => f.write_str("ended by the gateway"),
            End::Refused(text) => write!(f, "refused: {text}"),
            End::AuthRejected(text) if text.is_empty() => f.write_str("authentication failed"),
            End::AuthRejected(text) => write!(f, "authentication failed: {text}"),
            End::Silence(state) => write!(f, "no answer at stage {state:?}"),
            End::NoAgreement(state) => write!(f, "no agreement at stage {state:?}"),
            End::LinkLost => f.write_str("echo requests went unanswered"),
        }
    }
}

/// What a home does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this Ethernet frame.
    Frame(Vec<u8>),
    /// This address is ours to use, or another than before.
    Up(IpAddr),
    /// The family has no address any more.
    Down(Family),
    /// [`State::Online`] was reached.
    Online,
    /// The session, or the attempt, is over.
    Ended(End),
}

/// What a frame turned out to be, beyond what the home deals with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'f> {
    /// Nothing for anybody else.
    Quiet,
    /// A datagram to the home's own address.
    Datagram(Datagram<'f>),
    /// Should not have come here, or not like this.
    Stray(&'static str),
}

/// A UDP datagram that a home received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'f> {
    /// Who sent it.
    pub source: IpAddr,
    /// From which port.
    pub source_port: u16,
    /// To which port of ours.
    pub destination_port: u16,
    /// The data.
    pub payload: &'f [u8],
}

/// What a home waits for. Each has at most one deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// An answer in discovery or authentication, or to a Terminate-Request.
    Answer,
    /// Agreement on the link.
    Link,
    /// Agreement on IPv4.
    Ipv4,
    /// Agreement on IPv6.
    Ipv6,
    /// A Router Advertisement.
    Router,
    /// The end of the prefix's lifetime.
    Prefix,
    /// The next message about leases.
    Leases,
    /// The next echo request.
    Echo,
}

impl Timer {
    pub(crate) const ALL: [Timer; 8] = [
        Timer::Answer,
        Timer::Link,
        Timer::Ipv4,
        Timer::Ipv6,
        Timer::Router,
        Timer::Prefix,
        Timer::Leases,
        Timer::Echo,
    ];
}

/// Former sessions that a home remembers.
const MAX_FORMER: usize = 8;

/// An emulated home: a client of PPPoE and PPP with its state machines, without I/O and without a clock.
///
/// Give it frames and time, drain [`Home::poll_output`] after each, and call [`Home::on_timeout`] at [`Home::poll_at`].
#[derive(Debug)]
pub struct Home {
    pub(crate) config: HomeConfig,
    pub(crate) random: Random,
    /// Proof of a gateway that knows the password, by MS-CHAPv2, after the last response.
    pub(crate) expected_proof: Option<Box<[u8; 20]>>,
    pub(crate) state: State,
    pub(crate) progress: Progress,
    /// Sessions that ended without a word to the gateway, the oldest first; at most [`MAX_FORMER`].
    former: VecDeque<u16>,
    /// The access concentrator, once it has offered.
    pub(crate) concentrator: MacAddr,
    pub(crate) host_uniq: u64,
    /// Cookie and relay tag of the offer, to be given back, as they stand in the PADR.
    pub(crate) offer: Vec<u8>,
    pub(crate) session_id: u16,
    pub(crate) link: Negotiation<Link>,
    pub(crate) ipv4: Negotiation<Ipv4>,
    pub(crate) ipv6: Negotiation<Ipv6>,
    /// The address from the Router Advertisement's prefix.
    pub(crate) slaac: Option<Ipv6Addr>,
    /// Link-local address when IPV6CP was last open before it began anew: what was under way then still goes there.
    pub(crate) former_link_local: Option<Ipv6Addr>,
    pub(crate) dns_v6: Vec<Ipv6Addr>,
    pub(crate) leases: Leases,
    /// Families that the gateway does not have, by [`Family`].
    pub(crate) lacking: [bool; 2],
    /// How often the present question was asked.
    pub(crate) tries: u8,
    pub(crate) solicitations: u8,
    pub(crate) echoes_missed: u8,
    pub(crate) next_id: u8,
    /// Why we are hanging up.
    pub(crate) ending: Option<End>,
    pub(crate) timers: [Option<Duration>; Timer::ALL.len()],
    outputs: VecDeque<Output>,
}

impl Home {
    /// A home that has not dialled yet. Homes with the same seed choose the same random numbers.
    pub fn new(config: HomeConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Home {
            state: State::Offline,
            progress: Progress::default(),
            former: VecDeque::new(),
            concentrator: MacAddr::ZERO,
            host_uniq: 0,
            offer: Vec::new(),
            session_id: 0,
            link: Negotiation::new(Link::new(config.auth, &mut random)),
            ipv4: Negotiation::new(Ipv4::default()),
            ipv6: Negotiation::new(Ipv6::new(&mut random)),
            slaac: None,
            former_link_local: None,
            dns_v6: Vec::new(),
            leases: Leases::default(),
            lacking: [!config.ipv4, !config.ipv6],
            tries: 0,
            solicitations: 0,
            echoes_missed: 0,
            next_id: 0,
            ending: None,
            timers: [None; Timer::ALL.len()],
            outputs: VecDeque::new(),
            config,
            random,
            expected_proof: None,
        }
    }

    /// What does not change.
    pub fn config(&self) -> &HomeConfig {
        &self.config
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        self.state
    }

    /// How fast the present attempt has come so far, or the last one came.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Its PPPoE session, once it has one.
    pub fn session_id(&self) -> Option<u16> {
        (self.session_id != 0).then_some(self.session_id)
    }

    /// Its IPv4 address, once IPCP is open.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.ipv4.is_open().then_some(self.ipv4.terms.address)
    }

    /// Its global IPv6 address, once a Router Advertisement has brought a prefix.
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.slaac
    }

    /// The name servers of IPCP and of the Router Advertisement.
    pub fn dns(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let v4 = self
            .ipv4
            .terms
            .dns
            .iter()
            .flatten()
            .filter(|a| !a.is_unspecified());
        v4.map(|&a| a.into())
            .chain(self.dns_v6.iter().map(|&a| a.into()))
    }

    /// Starts to look for an access concentrator, if offline.
    pub fn dial(&mut self, now: Duration) {
        if self.state == State::Offline {
            self.progress = Progress {
                dialled: Some(now),
                ..Progress::default()
            };
            self.discover(now);
        }
    }

    /// Loses its power for a moment: it forgets everything, and the gateway is not told.
    ///
    /// It is offline then, and dials another way with another seed. What still comes for its old session is no mistake of the
    /// gateway's.
    pub fn reboot(&mut self, seed: u64) {
        let mut former = std::mem::take(&mut self.former);
        former.extend(self.session_id());
        while former.len() > MAX_FORMER {
            former.pop_front();
        }
        *self = Home::new(self.config.clone(), seed);
        self.former = former;
    }

    /// Leaves the session at once, with a PADT alone.
    pub fn leave_at_once(&mut self) {
        match self.state {
            State::Offline => {}
            State::Discovery => self.end(End::HungUp),
            _ => self.give_up(End::HungUp),
        }
    }

    /// Ends the session in good order, whatever state it is in.
    pub fn hang_up(&mut self, now: Duration) {
        match self.state {
            State::Offline | State::Closing => {}
            State::Discovery => self.end(End::HungUp),
            _ => {
                self.release_leases(now);
                self.terminate(now, End::HungUp);
            }
        }
    }

    /// Takes an Ethernet frame off the line.
    pub fn handle_frame<'f>(&mut self, now: Duration, bytes: &'f [u8]) -> Received<'f> {
        match Frame::parse(bytes) {
            Ok(frame) => self.handle(now, &frame),
            Err(_) => Received::Stray("not an Ethernet frame"),
        }
    }

    pub(crate) fn handle<'f>(&mut self, now: Duration, frame: &Frame<'f>) -> Received<'f> {
        let header = &frame.header;
        if header.destination != self.config.mac || header.tags.vids() != self.config.tags.vids() {
            return Received::Stray("another home's frame");
        }
        match header.ethertype {
            eth::PPPOE_DISCOVERY => self.handle_discovery(now, header.source, frame.payload),
            eth::PPPOE_SESSION => self.handle_session(now, header.source, frame.payload),
            _ => Received::Stray("neither discovery nor session"),
        }
    }

    fn handle_session<'f>(
        &mut self,
        now: Duration,
        from: MacAddr,
        payload: &'f [u8],
    ) -> Received<'f> {
        if self.session_id == 0 {
            // What was under way when the session ended.
            return Received::Quiet;
        }
        let is_former = |id: u16| id != self.session_id && self.former.contains(&id);
        let packet = match pppoe::Packet::parse(payload) {
            Ok(packet) if packet.code == pppoe::SESSION => packet,
            _ => return Received::Stray("not a PPPoE session packet"),
        };
        if is_former(packet.session_id) {
            return Received::Quiet;
        }
        if packet.session_id != self.session_id || from != self.concentrator {
            return Received::Stray("another session's packet");
        }
        match ppp::Frame::parse(packet.payload) {
            Ok(frame) => self.handle_ppp(now, &frame),
            Err(_) => Received::Stray("not a PPP frame"),
        }
    }

    fn handle_ppp<'f>(&mut self, now: Duration, frame: &ppp::Frame<'f>) -> Received<'f> {
        let networking = matches!(self.state, State::Network | State::Online);
        match frame.protocol {
            ppp::LCP => self.handle_lcp(now, frame.payload),
            ppp::PAP => self.handle_pap(now, frame.payload),
            ppp::CHAP => self.handle_chap(now, frame.payload),
            // Before the link is open everything else is discarded in silence (RFC 1661 §3.4, §3.5).
            _ if !networking => {}
            ppp::IPCP => self.handle_ipcp(now, frame.payload),
            ppp::IPV6CP => self.handle_ipv6cp(now, frame.payload),
            ppp::IPV4 => return self.handle_ipv4(frame.payload),
            ppp::IPV6 => return self.handle_ipv6(now, frame.payload),
            _ => self.reject_protocol(frame),
        }
        Received::Quiet
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Home::on_timeout`] is due.
    pub fn poll_at(&self) -> Option<Duration> {
        self.timers.iter().flatten().min().copied()
    }

    /// Does whatever is due at `now`.
    pub fn on_timeout(&mut self, now: Duration) {
        for timer in Timer::ALL {
            let deadline = &mut self.timers[timer as usize];
            if deadline.is_some_and(|at| at <= now) {
                *deadline = None;
                self.expired(now, timer);
            }
        }
    }

    fn expired(&mut self, now: Duration, timer: Timer) {
        match (timer, self.state) {
            (Timer::Answer, State::Discovery) => self.ask_again(now),
            (Timer::Answer, State::Authentication) => self.authenticate_again(now),
            (Timer::Answer, State::Closing) => self.terminate_again(now),
            (Timer::Answer, _) => {}
            (Timer::Link, _) => self.repeat_link(now),
            (Timer::Ipv4, _) => self.repeat_ipv4(now),
            (Timer::Ipv6, _) => self.repeat_ipv6(now),
            (Timer::Router, _) => self.solicit(now),
            (Timer::Prefix, _) => self.prefix_expired(now),
            (Timer::Leases, _) => self.leases_due(now),
            (Timer::Echo, _) => self.send_echo(now),
        }
    }

    pub(crate) fn arm(&mut self, timer: Timer, at: Duration) {
        self.timers[timer as usize] = Some(at);
    }

    pub(crate) fn disarm(&mut self, timer: Timer) {
        self.timers[timer as usize] = None;
    }

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends a frame of the line to `destination`.
    pub(crate) fn send(
        &mut self,
        destination: MacAddr,
        ethertype: u16,
        payload: impl FnOnce(&mut Vec<u8>),
    ) {
        let header = Header {
            destination,
            source: self.config.mac,
            tags: self.config.tags,
            ethertype,
        };
        let mut bytes = Vec::with_capacity(96);
        header.emit(&mut bytes);
        payload(&mut bytes);
        self.output(Output::Frame(bytes));
    }

    /// Sends a PPP frame of the session.
    pub(crate) fn send_ppp(&mut self, payload: &[u8]) {
        let packet = pppoe::Packet {
            code: pppoe::SESSION,
            session_id: self.session_id,
            payload,
        };
        self.send(self.concentrator, eth::PPPOE_SESSION, |out| {
            packet.emit(out)
        });
    }

    /// The session is over: everything that it brought is forgotten.
    pub(crate) fn end(&mut self, end: End) {
        self.close_networks();
        self.link.stop();
        self.link.terms = Link::new(self.config.auth, &mut self.random);
        self.timers = [None; Timer::ALL.len()];
        (self.state, self.session_id, self.concentrator) = (State::Offline, 0, MacAddr::ZERO);
        self.offer.clear();
        self.ending = None;
        self.output(Output::Ended(end));
    }

    /// Both families are down and start from nothing next time.
    pub(crate) fn close_networks(&mut self) {
        self.lose_prefix();
        self.forget_leases();
        if self.ipv4.is_open() {
            self.output(Output::Down(Family::V4));
        }
        self.ipv4.stop();
        self.ipv4.terms = Ipv4::default();
        if self.ipv6.is_open() {
            self.former_link_local = Some(self.link_local());
        }
        self.ipv6.stop();
        self.ipv6.terms = Ipv6::new(&mut self.random);
        self.lacking = [!self.config.ipv4, !self.config.ipv6];
        for timer in [Timer::Ipv4, Timer::Ipv6, Timer::Router, Timer::Prefix] {
            self.disarm(timer);
        }
    }

    /// The step of a negotiation: its timer runs exactly as long as it is pending.
    pub(crate) fn rearm(&mut self, now: Duration, timer: Timer, step: Step, pending: bool) {
        match (pending, step) {
            (false, _) => self.disarm(timer),
            (true, _) if self.timers[timer as usize].is_none() || step == Step::Reopened => {
                self.arm(timer, now + self.config.restart);
            }
            (true, _) => {}
        }
    }

    /// Our link-local address, once IPV6CP is open.
    pub(crate) fn link_local(&self) -> Ipv6Addr {
        ipv6::link_local(self.ipv6.terms.interface_id)
    }

    pub(crate) fn fresh_id(&mut self) -> u8 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }
}
