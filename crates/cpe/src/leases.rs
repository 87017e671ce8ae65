//! DHCPv6 from the home's side (RFC 8415): a delegated prefix, and an address where the gateway says that it has one.

use crate::home::{Home, Received, Timer};
use core::net::Ipv6Addr;
use core::time::Duration;
use ipnet::Ipv6Net;
use wire::dhcpv6::reconfigure;
use wire::dhcpv6::{self, Ia, IaAddress, IaPrefix, Message, Opt, status};
use wire::nd::RouterAdvertisement;
use wire::{ppp, udp};

/// After this many messages the pause between two of them stops to grow.
const DOUBLINGS: u8 = 5;
/// A server that has not answered so many requests is given up (REQ_MAX_RC, RFC 8415 §7.6).
const MOST_REQUESTS: u8 = 10;
/// Numbers of a home's identity associations.
const ADDRESS_IA: u32 = 1;
const PREFIX_IA: u32 = 2;
/// An infinite lifetime.
const INFINITE: u32 = u32::MAX;
/// DUID-LL of an Ethernet address (RFC 8415 §11.4).
const DUID_LL: [u8; 4] = [0, 3, 0, 1];

/// How a home asks for a delegated prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Whether it takes a Reply to its Solicit (RFC 8415 §18.2.1).
    pub rapid_commit: bool,
}

/// What a home does to get or keep its leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    #[default]
    Idle,
    Solicit,
    Request,
    /// It has leases.
    Bound,
    Renew,
    Rebind,
}

/// Leases of a home, and the exchange about them.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    phase: Phase,
    /// DUID of the server that has given or offered them.
    server: Vec<u8>,
    transaction: u32,
    began: Duration,
    tries: u8,
    /// Key for Reconfigure messages, and the highest number against replay.
    key: Option<([u8; reconfigure::KEY_LEN], u64)>,
    /// Whether the gateway has addresses (M flag, RFC 4861 §4.2).
    is_managed: bool,
    pub(crate) address: Option<Ipv6Addr>,
    pub(crate) prefixes: Vec<Ipv6Net>,
    renew_at: Duration,
    rebind_at: Duration,
    expire_at: Duration,
}

impl Leases {
    fn has_any(&self) -> bool {
        self.address.is_some() || !self.prefixes.is_empty()
    }

    /// Whether an address is the home's own by its leases.
    pub(crate) fn cover(&self, address: Ipv6Addr) -> bool {
        self.address == Some(address) || self.prefixes.iter().any(|net| net.contains(&address))
    }
}

/// Leases in a server's answer.
#[derive(Default)]
struct Answer {
    address: Option<Ipv6Addr>,
    prefixes: Vec<Ipv6Net>,
    /// T1, T2 and the longest valid lifetime, in seconds.
    times: [u32; 3],
    /// Statuses of associations without leases.
    statuses: Vec<u16>,
}

impl Home {
    /// The prefixes that are delegated to it.
    pub fn delegated(&self) -> &[Ipv6Net] {
        &self.leases.prefixes
    }

    /// The address that it has by DHCPv6.
    pub fn leased_address(&self) -> Option<Ipv6Addr> {
        self.leases.address
    }

    /// A Router Advertisement has come: it begins to ask if the M or O flag is set (RFC 7084, WPD-4), unless it has begun.
    pub(crate) fn may_ask_for_leases(&mut self, now: Duration, ra: &RouterAdvertisement) {
        let is_idle = self.config.delegation.is_some() && self.leases.phase == Phase::Idle;
        if is_idle && (ra.managed || ra.other) {
            self.leases.is_managed = ra.managed;
            self.begin_exchange(now, Phase::Solicit);
        }
    }

    /// It forgets its leases.
    pub(crate) fn forget_leases(&mut self) {
        self.leases = Leases::default();
        self.disarm(Timer::Leases);
    }

    /// It gives its leases back before it hangs up (RFC 8415 §18.2.7), and does not wait for the answer.
    pub(crate) fn release_leases(&mut self, now: Duration) {
        if self.leases.has_any() {
            self.leases.transaction = self.random.next() as u32 >> 8;
            self.send_message(now, dhcpv6::RELEASE);
            self.forget_leases();
        }
    }

    fn begin_exchange(&mut self, now: Duration, phase: Phase) {
        self.leases.transaction = self.random.next() as u32 >> 8;
        (self.leases.phase, self.leases.began, self.leases.tries) = (phase, now, 0);
        self.send_again(now);
    }

    /// Sends the message of the present phase, less and less often (RFC 8415 §15).
    fn send_again(&mut self, now: Duration) {
        let kind = match self.leases.phase {
            Phase::Idle | Phase::Bound => return,
            Phase::Solicit => dhcpv6::SOLICIT,
            Phase::Request => dhcpv6::REQUEST,
            Phase::Renew => dhcpv6::RENEW,
            Phase::Rebind => dhcpv6::REBIND,
        };
        self.send_message(now, kind);
        let pause = self.config.restart * (1 << self.leases.tries.min(DOUBLINGS));
        self.leases.tries = self.leases.tries.saturating_add(1);
        let latest = match self.leases.phase {
            Phase::Renew => self.leases.rebind_at,
            Phase::Rebind => self.leases.expire_at,
            _ => Duration::MAX,
        };
        self.arm(Timer::Leases, now.saturating_add(pause).min(latest));
    }

    pub(crate) fn leases_due(&mut self, now: Duration) {
        match self.leases.phase {
            Phase::Idle => {}
            Phase::Bound => self.begin_exchange(now, Phase::Renew),
            Phase::Renew if now >= self.leases.rebind_at => {
                self.begin_exchange(now, Phase::Rebind);
            }
            Phase::Rebind if now >= self.leases.expire_at => {
                (self.leases.address, self.leases.prefixes) = (None, Vec::new());
                self.begin_exchange(now, Phase::Solicit);
            }
            Phase::Request if self.leases.tries >= MOST_REQUESTS => {
                self.begin_exchange(now, Phase::Solicit);
            }
            Phase::Solicit | Phase::Request | Phase::Renew | Phase::Rebind => self.send_again(now),
        }
    }

    fn send_message(&mut self, now: Duration, kind: u8) {
        let duid = self.duid();
        let leases = &self.leases;
        let elapsed = now.saturating_sub(leases.began).as_millis() / 10;
        let mut options = vec![
            Opt::ClientId(&duid),
            Opt::ElapsedTime(u16::try_from(elapsed).unwrap_or(u16::MAX)),
            Opt::OptionRequest(vec![Opt::DNS_SERVERS, Opt::SOL_MAX_RT]),
        ];
        if [dhcpv6::REQUEST, dhcpv6::RENEW, dhcpv6::RELEASE].contains(&kind) {
            options.push(Opt::ServerId(&leases.server));
        }
        if kind != dhcpv6::RELEASE {
            options.push(Opt::ReconfigureAccept);
        }
        let delegation = self.config.delegation;
        if kind == dhcpv6::SOLICIT && delegation.is_some_and(|one| one.rapid_commit) {
            options.push(Opt::RapidCommit);
        }
        options.extend(leases.associations());
        let (mut payload, mut packet) = (Vec::new(), Vec::new());
        Message {
            kind,
            transaction: leases.transaction,
            options,
        }
        .emit(&mut payload);
        udp::Datagram {
            source_port: dhcpv6::CLIENT_PORT,
            destination_port: dhcpv6::SERVER_PORT,
            payload: &payload,
        }
        .emit_packet_v6(self.link_local(), dhcpv6::ALL_SERVERS, &mut packet);
        self.send_packet(ppp::IPV6, &packet);
    }

    fn duid(&self) -> Vec<u8> {
        [&DUID_LL[..], &self.config.mac.0].concat()
    }

    /// Takes a message of a server.
    pub(crate) fn handle_dhcpv6<'f>(&mut self, now: Duration, payload: &[u8]) -> Received<'f> {
        let Ok(message) = Message::parse(payload) else {
            return Received::Stray("not a DHCPv6 message");
        };
        if message.client_id() != Some(&self.duid()) {
            return Received::Stray("another client's DHCPv6 message");
        }
        let Some(server) = message.server_id() else {
            return Received::Stray("a DHCPv6 message without a server");
        };
        if message.kind == dhcpv6::RECONFIGURE {
            return self.reconfigured(now, payload, &message);
        }
        if message.transaction != self.leases.transaction {
            // of an exchange that is over
            return Received::Quiet;
        }
        let answer = Answer::read(&message);
        self.leases.key = reconfigure::key_of(&message).or(self.leases.key);
        let commits = message.options.contains(&Opt::RapidCommit);
        match (message.kind, self.leases.phase) {
            (dhcpv6::ADVERTISE, Phase::Solicit) if answer.has_any() => {
                self.leases.server = server.to_vec();
                (self.leases.address, self.leases.prefixes) = (answer.address, answer.prefixes);
                self.begin_exchange(now, Phase::Request);
            }
            (dhcpv6::REPLY, Phase::Solicit) if commits => {
                self.leases.server = server.to_vec();
                self.take(now, answer);
            }
            (dhcpv6::REPLY, Phase::Request | Phase::Renew | Phase::Rebind) => {
                self.take(now, answer);
            }
            _ => {}
        }
        Received::Quiet
    }

    /// Renews its leases, if the server that they are from tells it to (RFC 8415 §16.11, §18.2.11).
    fn reconfigured<'f>(
        &mut self,
        now: Duration,
        payload: &[u8],
        message: &Message<'_>,
    ) -> Received<'f> {
        let Some((key, last)) = self.leases.key else {
            return Received::Stray("a Reconfigure without a key");
        };
        let replay = message.options.iter().find_map(|option| match option {
            Opt::Auth(auth) => Some(auth.replay),
            _ => None,
        });
        let signed = replay.filter(|_| reconfigure::is_signed(payload, &key));
        let Some(replay) = signed else {
            return Received::Stray("a Reconfigure that is not signed");
        };
        if replay <= last {
            return Received::Quiet; // a copy on its way
        }
        self.leases.key = Some((key, replay));
        let wanted = Opt::ReconfigureMessage(dhcpv6::RENEW);
        if self.leases.phase == Phase::Bound && message.options.contains(&wanted) {
            self.begin_exchange(now, Phase::Renew);
        }
        Received::Quiet
    }

    /// Takes the leases of a Reply (RFC 8415 §18.2.10.1). Without any it goes on asking, from the beginning.
    fn take(&mut self, now: Duration, answer: Answer) {
        let has_any = answer.has_any();
        (self.leases.address, self.leases.prefixes) = (answer.address, answer.prefixes);
        if answer.statuses.contains(&status::NO_BINDING) {
            return self.begin_exchange(now, Phase::Request);
        }
        if !has_any {
            if self.leases.phase != Phase::Solicit {
                self.leases.phase = Phase::Solicit;
                self.leases.transaction = self.random.next() as u32 >> 8;
            }
            return;
        }
        let [t1, t2, valid] = answer.times.map(|seconds| match seconds {
            INFINITE => Duration::MAX,
            seconds => now + Duration::from_secs(seconds.into()),
        });
        let leases = &mut self.leases;
        (leases.renew_at, leases.rebind_at, leases.expire_at) = (t1, t2, valid);
        leases.phase = Phase::Bound;
        self.arm(Timer::Leases, t1);
    }
}

impl Leases {
    /// The associations of a message, with the leases that it has or was offered.
    fn associations(&self) -> Vec<Opt<'static>> {
        let address = self.address.map(|address| {
            Opt::Address(IaAddress {
                address,
                preferred_lifetime: 0,
                valid_lifetime: 0,
                options: Vec::new(),
            })
        });
        let prefixes = self.prefixes.iter().map(|net| {
            Opt::Prefix(IaPrefix {
                preferred_lifetime: 0,
                valid_lifetime: 0,
                length: net.prefix_len(),
                prefix: net.network(),
                options: Vec::new(),
            })
        });
        let addresses = self.is_managed.then(|| {
            Opt::IaNa(Ia {
                options: address.into_iter().collect(),
                ..Ia::new(ADDRESS_IA)
            })
        });
        let prefixes = Opt::IaPd(Ia {
            options: prefixes.collect(),
            ..Ia::new(PREFIX_IA)
        });
        addresses.into_iter().chain([prefixes]).collect()
    }
}

impl Answer {
    fn read(message: &Message<'_>) -> Self {
        let mut answer = Answer::default();
        for option in &message.options {
            match option {
                Opt::IaNa(ia) if ia.id == ADDRESS_IA => answer.read_association(ia),
                Opt::IaPd(ia) if ia.id == PREFIX_IA => answer.read_association(ia),
                _ => {}
            }
        }
        answer
    }

    fn has_any(&self) -> bool {
        self.address.is_some() || !self.prefixes.is_empty()
    }

    fn read_association(&mut self, ia: &Ia<'_>) {
        let mut times: Option<(u32, u32)> = None;
        for lease in ia.addresses().filter(|lease| lease.valid_lifetime > 0) {
            self.address = Some(lease.address);
            times = Some((lease.preferred_lifetime, lease.valid_lifetime));
        }
        for lease in ia.prefixes().filter(|lease| lease.valid_lifetime > 0) {
            if let Ok(net) = Ipv6Net::new(lease.prefix, lease.length) {
                self.prefixes.push(net);
                times = Some((lease.preferred_lifetime, lease.valid_lifetime));
            }
        }
        let Some((preferred, valid)) = times else {
            self.statuses.extend(ia.status());
            return;
        };
        // 0: as the client likes (§14.2)
        let t1 = if ia.t1 == 0 { preferred / 2 } else { ia.t1 };
        let t2 = if ia.t2 == 0 { preferred / 5 * 4 } else { ia.t2 };
        self.times = match self.times {
            [0, 0, 0] => [t1, t2, valid],
            [a, b, c] => [a.min(t1), b.min(t2), c.max(valid)],
        };
    }
}
