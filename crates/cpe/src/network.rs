//! IPCP, IPV6CP and router discovery from the home's side (RFC 1332, 5072, 4861, 4862).

use crate::Family;
use crate::home::{End, Home, Output, Timer};
use crate::negotiate::{Negotiation, Step, Terms};
use crate::progress::State;
use crate::random::Random;
use crate::terms::Ipv6;
use core::net::Ipv6Addr;
use core::time::Duration;
use wire::nd::{Message, Opt, Packet, PrefixInformation, RouterAdvertisement};
use wire::ppp::{self, Control};
use wire::{ipv6, nd};

/// After this many solicitations the pause between two of them stops to grow.
const SOLICITATION_DOUBLINGS: u8 = 4;
/// Address bits that a host chooses itself, and the only prefix length that leaves room for them (RFC 4862 §5.5.3).
const HOST_PREFIX: u8 = 64;

impl Ipv6 {
    pub(crate) fn new(random: &mut Random) -> Self {
        Ipv6 {
            interface_id: random.interface_id(),
            spare: random.interface_id(),
            peer: None,
        }
    }
}

impl Home {
    pub(crate) fn open_networks(&mut self, now: Duration) {
        self.state = State::Network;
        if self.config.ipv4 {
            let request = self.ipv4.start();
            self.send_ppp(&request);
            self.arm(Timer::Ipv4, now + self.config.restart);
        }
        if self.config.ipv6 {
            let request = self.ipv6.start();
            self.send_ppp(&request);
            self.arm(Timer::Ipv6, now + self.config.restart);
        }
        self.judge_progress(now);
    }

    pub(crate) fn repeat_ipv4(&mut self, now: Duration) {
        match self.ipv4.repeat() {
            Some(request) => {
                self.send_ppp(&request);
                self.arm(Timer::Ipv4, now + self.config.restart);
            }
            None => self.lacks_ipv4(now),
        }
    }

    pub(crate) fn repeat_ipv6(&mut self, now: Duration) {
        match self.ipv6.repeat() {
            Some(request) => {
                self.send_ppp(&request);
                self.arm(Timer::Ipv6, now + self.config.restart);
            }
            None => self.lacks_ipv6(now),
        }
    }

    pub(crate) fn handle_ipcp(&mut self, now: Duration, payload: &[u8]) {
        let Ok(packet) = Control::parse(payload) else {
            return;
        };
        let was_open = self.ipv4.is_open();
        let (step, answers) = negotiate(&mut self.ipv4, &packet, payload, &mut self.next_id);
        answers.iter().for_each(|answer| self.send_ppp(answer));
        self.rearm(now, Timer::Ipv4, step, self.ipv4.is_pending());
        if was_open && !self.ipv4.is_open() {
            self.output(Output::Down(Family::V4));
        }
        match step {
            Step::Agreed => {
                let address = self.ipv4.terms.address;
                self.progress.ipv4.get_or_insert(now);
                self.output(Output::Up(address.into()));
            }
            Step::Failed => self.lacks_ipv4(now),
            Step::None | Step::Reopened => {}
        }
        self.judge_progress(now);
    }

    pub(crate) fn handle_ipv6cp(&mut self, now: Duration, payload: &[u8]) {
        let Ok(packet) = Control::parse(payload) else {
            return;
        };
        let was_open = self.ipv6.is_open();
        let (step, answers) = negotiate(&mut self.ipv6, &packet, payload, &mut self.next_id);
        answers.iter().for_each(|answer| self.send_ppp(answer));
        self.rearm(now, Timer::Ipv6, step, self.ipv6.is_pending());
        if was_open && !self.ipv6.is_open() {
            self.lose_prefix();
            self.forget_leases();
            self.disarm(Timer::Router);
        }
        match step {
            Step::Agreed => {
                self.solicitations = 0;
                self.solicit(now);
            }
            Step::Failed => self.lacks_ipv6(now),
            Step::None | Step::Reopened => {}
        }
        self.judge_progress(now);
    }

    pub(crate) fn lacks_ipv4(&mut self, now: Duration) {
        if self.ipv4.is_open() {
            self.output(Output::Down(Family::V4));
        }
        self.ipv4.stop();
        self.disarm(Timer::Ipv4);
        self.lacking[Family::V4 as usize] = true;
        self.judge_progress(now);
    }

    pub(crate) fn lacks_ipv6(&mut self, now: Duration) {
        self.lose_prefix();
        self.forget_leases();
        self.ipv6.stop();
        self.disarm(Timer::Ipv6);
        self.disarm(Timer::Router);
        self.lacking[Family::V6 as usize] = true;
        self.judge_progress(now);
    }

    /// Network or Online, by what is up; a link that carries no family at all is given up.
    fn judge_progress(&mut self, now: Duration) {
        if !matches!(self.state, State::Network | State::Online) {
            return;
        }
        let up = [self.ipv4.is_open(), self.slaac.is_some()];
        if self.lacking == [true, true] {
            self.terminate(now, End::NoAgreement(State::Network));
        } else if up
            .iter()
            .zip(self.lacking)
            .all(|(&up, lacking)| up || lacking)
        {
            self.progress.online.get_or_insert(now);
            if std::mem::replace(&mut self.state, State::Online) != State::Online {
                self.output(Output::Online);
            }
        } else {
            self.state = State::Network;
        }
    }

    /// Asks for a Router Advertisement, less and less often (RFC 4861 §6.3.7, RFC 7559).
    pub(crate) fn solicit(&mut self, now: Duration) {
        let message = Message::RouterSolicitation {
            options: Vec::new(),
        };
        self.send_nd(self.link_local(), ipv6::ALL_ROUTERS, message);
        let doublings = self.solicitations.min(SOLICITATION_DOUBLINGS);
        let pause = self.config.restart.saturating_mul(1 << doublings);
        self.solicitations = self.solicitations.saturating_add(1);
        self.arm(Timer::Router, now + pause);
    }

    /// Router and neighbor discovery. Our addresses cannot clash with the peer's on this link, whose interface
    /// identifiers IPV6CP has kept apart, so there is no duplicate address detection (RFC 5072 §5).
    pub(crate) fn handle_nd(&mut self, now: Duration, packet: Packet) {
        match packet.message {
            Message::RouterAdvertisement(ra) if packet.source == self.peer_link_local() => {
                self.advertised(now, &ra)
            }
            Message::NeighborSolicitation { target, .. }
                if !packet.source.is_unspecified() && self.owns(target) =>
            {
                let message = Message::NeighborAdvertisement {
                    router: false,
                    solicited: true,
                    override_cache: true,
                    target,
                    options: Vec::new(),
                };
                self.send_nd(target, packet.source, message);
            }
            _ => {}
        }
    }

    fn owns(&self, address: Ipv6Addr) -> bool {
        address == self.link_local() || Some(address) == self.slaac
    }

    fn peer_link_local(&self) -> Ipv6Addr {
        self.ipv6
            .terms
            .peer
            .map_or(Ipv6Addr::UNSPECIFIED, ipv6::link_local)
    }

    fn advertised(&mut self, now: Duration, ra: &RouterAdvertisement) {
        let usable = |p: &&PrefixInformation| {
            p.autonomous && p.length == HOST_PREFIX && p.valid_lifetime > 0
        };
        let prefixes = ra.options.iter().filter_map(|option| match option {
            Opt::Prefix(prefix) => Some(prefix),
            _ => None,
        });
        let Some(prefix) = prefixes
            .into_iter()
            .find(usable)
            .filter(|_| ra.router_lifetime > 0)
        else {
            return;
        };
        self.dns_v6 = ra
            .options
            .iter()
            .filter_map(rdnss)
            .flatten()
            .copied()
            .collect();
        self.disarm(Timer::Router);
        match prefix.valid_lifetime {
            u32::MAX => self.disarm(Timer::Prefix),
            seconds => self.arm(Timer::Prefix, now + Duration::from_secs(seconds.into())),
        }
        let network = prefix.prefix.to_bits() & !u128::from(u64::MAX);
        let address = Ipv6Addr::from_bits(network | u128::from(self.ipv6.terms.interface_id));
        self.progress.ipv6.get_or_insert(now);
        if self.slaac.replace(address) != Some(address) {
            self.output(Output::Up(address.into()));
        }
        self.may_ask_for_leases(now, ra);
        self.judge_progress(now);
    }

    pub(crate) fn prefix_expired(&mut self, now: Duration) {
        self.lose_prefix();
        self.solicitations = 0;
        self.solicit(now);
        self.judge_progress(now);
    }

    pub(crate) fn lose_prefix(&mut self) {
        self.disarm(Timer::Prefix);
        self.dns_v6.clear();
        if self.slaac.take().is_some() {
            self.output(Output::Down(Family::V6));
        }
    }

    fn send_nd(&mut self, source: Ipv6Addr, destination: Ipv6Addr, message: Message) {
        let mut packet = Vec::with_capacity(96);
        nd::Packet {
            source,
            destination,
            message,
        }
        .emit(&mut packet);
        self.send_packet(ppp::IPV6, &packet);
    }
}

fn rdnss(option: &Opt) -> Option<&Vec<Ipv6Addr>> {
    match option {
        Opt::Rdnss { lifetime, servers } if *lifetime > 0 => Some(servers),
        _ => None,
    }
}

/// A packet of IPCP or IPV6CP, whose codes beyond configuration are the same.
fn negotiate<T: Terms>(
    negotiation: &mut Negotiation<T>,
    packet: &Control,
    whole: &[u8],
    next_id: &mut u8,
) -> (Step, Vec<Vec<u8>>) {
    let mut answers = Vec::new();
    let reply = |code, id, data: &[u8]| {
        let mut frame = Vec::with_capacity(data.len() + 6);
        Control { code, id, data }.emit(T::PROTOCOL, &mut frame);
        frame
    };
    let step = match packet.code {
        ppp::CONFIGURE_REQUEST..=ppp::CONFIGURE_REJECT => negotiation.receive(packet, &mut answers),
        ppp::TERMINATE_REQUEST => {
            answers.push(reply(ppp::TERMINATE_ACK, packet.id, &[]));
            // The family closes; the link stays (RFC 1661 §3.7).
            Step::Failed
        }
        ppp::TERMINATE_ACK | ppp::CODE_REJECT => Step::None,
        _ => {
            *next_id = next_id.wrapping_add(1);
            answers.push(reply(ppp::CODE_REJECT, *next_id, whole));
            Step::None
        }
    };
    (step, answers)
}
