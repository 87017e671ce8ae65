//! [`wire::dhcpv6`] and the server of a session whose IPv6 is up: any packets, and messages that are addressed as they should be.
use crate::{Step, script, steps};
use core::net::Ipv6Addr;
use core::time::Duration;
use ipnet::Ipv6Net;
use policy::{Access, Binding, Bindings, Role};
use session::*;
use std::sync::Arc;
use wire::dhcpv6::{self, Ia, Message, Opt};
use wire::eth::PPPOE_SESSION;
use wire::udp::Datagram;
use wire::{ipv6, ppp, pppoe};

const SESSION_ID: u16 = 7;
const OURS: u64 = 0x1234;
const PEER: u64 = 9;
const CLIENT: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9];
/// The least packet that every link of IPv6 carries (RFC 8200 §5).
const LEAST_MTU: usize = 1280;

/// What a step does, by `op % 8`.
mod op {
    /// An IPv6 packet as it is.
    pub const RAW: u8 = 0;
    /// A message as it is, in a datagram to all servers.
    pub const MESSAGE: u8 = 1;
    /// A message of a type with both identifiers as they should be, and these options.
    pub const ADDRESSED: u8 = 2;
    /// The same to our own address.
    pub const UNICAST: u8 = 3;
    /// Another grant: bit 0 an address, bits 1 and 2 prefixes.
    pub const GRANT: u8 = 4;
    /// So many tenths of a second pass.
    pub const WAIT: u8 = 5;
}

struct World {
    link: Link,
    config: Arc<SessionConfig>,
    grant: Ipv6Grant,
    now: Duration,
}

/// Takes one input: an octet for the first grant, then steps.
pub fn run(input: &[u8]) {
    let Some((&first, script)) = input.split_first() else {
        return;
    };
    let mut world = World::new(first);
    steps(script).for_each(|step| world.step(step));
}

fn grant(has: u8) -> Ipv6Grant {
    let prefix = |n: u16| Ipv6Net::new(Ipv6Addr::new(0x2001, 0xdb8, 0x7700 + n, 0, 0, 0, 0, 0), 48);
    let prefixes = [0, 1, 2, 62][usize::from(has >> 1 & 3)];
    let link = Binding::link("2001:db8:7::/64".parse().expect("a prefix"));
    let address = || Binding::host("2001:db8:5::7".parse().expect("an address"));
    let delegated = (0..prefixes).map(|n| prefix(n).expect("a prefix").into());
    let delegated = delegated.map(|net| Binding::new(Role::Delegated, net));
    let host = (has & 1 != 0).then(address);
    Ipv6Grant {
        bindings: Bindings::new(delegated.chain([link]).chain(host)).expect("bindings"),
        dns: vec!["2001:db8::53".parse().expect("an address"); usize::from(has >> 3 & 7)].into(),
        interface_id: None,
    }
}

impl World {
    fn new(first: u8) -> Self {
        let grant = grant(first);
        let snapshot = Snapshot {
            magic: 1,
            peer_magic: 2,
            mru: 1492,
            peer_mru: 1492,
            mru_limit: 1492,
            auth: Passed::Chap,
            auth_attempt: 1,
            auth_id: 1,
            request_ids: [1; 3],
            grant: Grant {
                ipv4: None,
                ipv6: Some(grant.clone()),
            },
            interface_id: OURS,
            peer_interface_id: PEER,
            ipv4: false,
            ipv6: true,
        };
        let config = Arc::new(SessionConfig::default());
        let now = Duration::from_secs(100);
        let access = Access::Pppoe(SESSION_ID);
        let mut world = World {
            link: Link::restore(access, config.clone(), snapshot, 42, now),
            config,
            grant,
            now,
        };
        world.drain();
        world
    }

    fn step(&mut self, step: Step<'_>) {
        match step.op & 7 {
            op::RAW => _ = self.hear(step.data),
            op::MESSAGE => self.message(dhcpv6::ALL_SERVERS, step.data),
            op::ADDRESSED => self.addressed(dhcpv6::ALL_SERVERS, step),
            op::UNICAST => self.addressed(ipv6::link_local(OURS), step),
            op::GRANT => {
                self.grant = grant(step.octet(0));
                let ipv6 = Some(self.grant.clone());
                let command = Command::SetGrant(Grant { ipv4: None, ipv6 });
                self.link
                    .command(self.now, command)
                    .expect("a live session");
                self.drain();
            }
            op::WAIT => {
                self.now += Duration::from_millis(100) * u32::from(step.number());
                self.link.on_timeout(self.now, Watch::Nobody);
                self.drain();
            }
            _ => {}
        }
    }

    fn addressed(&mut self, to: Ipv6Addr, step: Step<'_>) {
        let kind = step.octet(0);
        let duid = self.config.dhcp.duid;
        let one_server = [
            dhcpv6::REQUEST,
            dhcpv6::RENEW,
            dhcpv6::RELEASE,
            dhcpv6::DECLINE,
        ];
        let mut message = vec![kind, 0, 0, step.octet(1)];
        Opt::ClientId(CLIENT).emit(&mut message);
        if one_server.contains(&kind) {
            Opt::ServerId(duid.as_bytes()).emit(&mut message);
        }
        message.extend(step.data.get(2..).unwrap_or_default());
        self.message(to, &message);
    }

    fn message(&mut self, to: Ipv6Addr, payload: &[u8]) {
        read(payload);
        let packet = self.packet_to(to, payload);
        self.hear(&packet);
    }

    fn packet_to(&self, to: Ipv6Addr, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        Datagram {
            source_port: dhcpv6::CLIENT_PORT,
            destination_port: dhcpv6::SERVER_PORT,
            payload: &payload[..payload.len().min(1400)],
        }
        .emit_packet_v6(ipv6::link_local(PEER), to, &mut packet);
        packet
    }

    /// The link gets a packet; the number of its answers.
    fn hear(&mut self, packet: &[u8]) -> usize {
        let frame = [&ppp::IPV6.to_be_bytes(), packet].concat();
        let mut bytes = Vec::new();
        pppoe::Packet {
            code: pppoe::SESSION,
            session_id: SESSION_ID,
            payload: &frame[..frame.len().min(0xffff)],
        }
        .emit(&mut bytes);
        let taken = self.link.on_frame(self.now, PPPOE_SESSION, &bytes);
        let answers = self.drain();
        assert!(
            answers <= usize::from(taken.is_ok()),
            "more than one answer"
        );
        answers
    }

    /// Looks at what is sent; the number of DHCPv6 messages.
    fn drain(&mut self) -> usize {
        let mut messages = 0;
        while let Some(output) = self.link.poll_output() {
            let Output::Frame(frame) = output else {
                continue;
            };
            let packet = pppoe::Packet::parse(&frame.payload).expect("a frame of ours");
            let Some(packet) = packet.payload.strip_prefix(&ppp::IPV6.to_be_bytes()) else {
                continue;
            };
            let parsed = ipv6::Packet::parse(packet).expect("a packet of ours");
            if parsed.header.next_header == ipv6::UDP {
                assert!(packet.len() <= LEAST_MTU, "a packet that does not fit");
                messages += 1;
                self.check(&parsed);
            }
        }
        messages
    }

    /// What an answer gives is what the session has.
    fn check(&self, packet: &ipv6::Packet<'_>) {
        let ipv6::Header {
            source,
            destination,
            ..
        } = packet.header;
        assert_eq!(source, ipv6::link_local(OURS));
        let datagram = Datagram::parse_v6(packet.payload, source, destination);
        let payload = datagram.expect("a datagram of ours").payload;
        read(payload);
        let message = Message::parse(payload).expect("a message of ours");
        assert_eq!(message.server_id(), Some(self.config.dhcp.duid.as_bytes()));
        for option in &message.options {
            if let Opt::IaNa(ia) | Opt::IaPd(ia) = option {
                self.check_association(ia);
            }
        }
    }

    fn check_association(&self, ia: &Ia<'_>) {
        for lease in ia.addresses().filter(|lease| lease.valid_lifetime > 0) {
            assert_eq!(Some(lease.address), self.grant.bindings.ipv6_address());
        }
        for lease in ia.prefixes().filter(|lease| lease.valid_lifetime > 0) {
            let net = Ipv6Net::new(lease.prefix, lease.length).expect("a prefix");
            assert!(
                self.grant.bindings.delegated().any(|own| own == net),
                "another's prefix"
            );
        }
    }
}

/// A message that can be read is the same after it was written.
fn read(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        let mut written = Vec::new();
        message.emit(&mut written);
        assert_eq!(written, bytes);
    }
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let options = |options: &[Opt<'_>]| {
        let mut octets = Vec::new();
        options.iter().for_each(|option| option.emit(&mut octets));
        octets
    };
    let both = options(&[
        Opt::IaNa(Ia::new(1)),
        Opt::IaPd(Ia::new(2)),
        Opt::OptionRequest(vec![23, 82]),
        Opt::ElapsedTime(0),
    ]);
    let rapid = options(&[Opt::IaPd(Ia::new(2)), Opt::RapidCommit]);
    let settings = options(&[Opt::OptionRequest(vec![23, 32, 83])]);
    let of = |kind: u8, options: &[u8]| [&[kind, 1], options].concat();
    let all = |first: u8, steps: Vec<(u8, Vec<u8>)>| [vec![first], script(steps)].concat();
    let every = 1..=11;
    vec![
        all(
            0x0b,
            every.map(|kind| (op::ADDRESSED, of(kind, &both))).collect(),
        ),
        all(
            0x02,
            vec![
                (op::ADDRESSED, of(dhcpv6::SOLICIT, &rapid)),
                (op::GRANT, vec![0x0d]),
                (op::ADDRESSED, of(dhcpv6::RENEW, &both)),
                (op::UNICAST, of(dhcpv6::RELEASE, &both)),
                (op::WAIT, vec![1, 0]),
                (op::ADDRESSED, of(dhcpv6::INFORMATION_REQUEST, &settings)),
            ],
        ),
        all(0x3f, vec![(op::ADDRESSED, of(dhcpv6::REBIND, &both))]),
        all(
            0x03,
            vec![(op::MESSAGE, [&[1, 0, 0, 1][..], &both].concat())],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_answered_for() {
        let mut world = World::new(0x0b);
        let mut association = Vec::new();
        Opt::IaPd(Ia::new(2)).emit(&mut association);
        let mut answers = |kind: u8| {
            let duid = world.config.dhcp.duid;
            let mut message = vec![kind, 0, 0, 1];
            Opt::ClientId(CLIENT).emit(&mut message);
            if kind == dhcpv6::REQUEST {
                Opt::ServerId(duid.as_bytes()).emit(&mut message);
            }
            message.extend(&association);
            let packet = world.packet_to(dhcpv6::ALL_SERVERS, &message);
            world.hear(&packet)
        };
        assert_eq!((answers(dhcpv6::SOLICIT), answers(dhcpv6::REQUEST)), (1, 1));
        assert_eq!((answers(dhcpv6::CONFIRM), answers(dhcpv6::REPLY)), (0, 0));
    }
}
