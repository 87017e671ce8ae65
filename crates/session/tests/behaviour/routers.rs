//! DHCPv6 as the routers speak it that stand in homes.
//!
//! OpenWrt's client is odhcp6c: which options it sends in which order, how it derives its next message from an answer, and what it
//! demands of one, is told from its published source. Of AVM's FRITZ!Box the settings of its menu "IPv6" are known: Rapid Commit,
//! a prefix of a wanted length, and an address by DHCPv6 or from the Router Advertisement. The order of its options is not.
use crate::support::*;
use policy::Role;
use session::*;
use std::net::Ipv6Addr;
use std::process::Command as Process;
use std::time::Duration;
use wire::dhcpv6::{self, Auth, Ia, IaAddress, IaPrefix, Message, Opt, reconfigure};
use wire::udp::Datagram;

/// DUID-LL of a router (RFC 8415 §11.4).
const DUID: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 9];
const LINK_LOCAL: &str = "fe80::9";
/// What the session has.
const ADDRESS: &str = "2001:db8:5::7";
const PREFIX: &str = "2001:db8:7700::";

/// A router on a line, and what the gateway has answered.
struct Home {
    line: Line,
    answers: Vec<Vec<u8>>,
}

impl Home {
    /// One whose line has nothing more to say by itself.
    fn of(grant: Grant) -> Self {
        let mut line = Line::with(SessionConfig {
            echo_interval: Duration::ZERO,
            ra: RaConfig {
                interval: 1_000_000 * SECOND,
                ..RaConfig::default()
            },
            ..SessionConfig::default()
        });
        line.authenticate(grant);
        line.open_ipv6cp();
        line.pass(60 * SECOND);
        line.take_outputs();
        let answers = Vec::new();
        Home { line, answers }
    }

    /// Sends a message to all servers, as a router does whatever kind it is, and gives the answer.
    #[track_caller]
    fn ask(&mut self, kind: u8, options: Vec<Opt<'_>>) -> Vec<u8> {
        let transaction = 0x0d_c600 + u32::from(kind);
        let mut payload = Vec::new();
        let asked = Message {
            kind,
            transaction,
            options,
        };
        asked.emit(&mut payload);
        let datagram = Datagram {
            source_port: dhcpv6::CLIENT_PORT,
            destination_port: dhcpv6::SERVER_PORT,
            payload: &payload,
        };
        let mut frame = vec![0, 0x57];
        let source = LINK_LOCAL.parse().unwrap();
        datagram.emit_packet_v6(source, dhcpv6::ALL_SERVERS, &mut frame);
        self.line.send_frame(&frame);
        let answer = self.answer();
        assert_eq!(Message::parse(&answer).unwrap().transaction, transaction);
        answer
    }

    /// The message that the gateway sends next.
    #[track_caller]
    fn answer(&mut self) -> Vec<u8> {
        let packet = self.line.expect_ipv6();
        let message = packet[48..].to_vec();
        self.answers.push(packet);
        message
    }
}

/// tshark takes every answer for DHCPv6, and finds nothing wrong with it.
#[track_caller]
fn judge(answers: &[Vec<u8>]) {
    let ethernet = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
    let frames = answers
        .iter()
        .map(|packet| [&ethernet, &packet[..]].concat());
    let frames: Vec<_> = frames.map(|frame| (SECOND, frame)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.pcapng");
    std::fs::write(&file, pcap::write(&frames)).unwrap();
    let wrong =
        "!dhcpv6 || _ws.malformed || _ws.expert.severity >= 0x600000 || udp.checksum.status == 0";
    let output = Process::new("tshark")
        .args(["-o", "udp.check_checksum:TRUE", "-Y", wrong, "-r"])
        .arg(&file)
        .output()
        .expect("tshark, which scripts/packages installs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

fn leases(address: bool) -> Grant {
    let mut grant = ipv6_only();
    let ipv6 = grant.ipv6.as_mut().unwrap();
    let host = address.then(|| format!("{ADDRESS}/128"));
    replace(ipv6, Role::Host, host.as_deref());
    replace(ipv6, Role::Delegated, [&*format!("{PREFIX}/56")]);
    grant
}

/// odhcp6c in the state in which an answer left it.
#[derive(Default)]
struct Odhcp6c {
    server: Vec<u8>,
    addresses: Vec<Ipv6Addr>,
    prefixes: Vec<(Ipv6Addr, u8)>,
    /// Preferred and valid lifetime, and T1 and T2, as last told.
    lifetimes: (u32, u32),
}

impl Odhcp6c {
    /// Its options in its order.
    fn options(&self, kind: u8) -> Vec<Opt<'_>> {
        let asking = [dhcpv6::SOLICIT, dhcpv6::REQUEST].contains(&kind);
        let mut options = vec![
            Opt::ElapsedTime(0),
            Opt::OptionRequest(vec![21, 22, 23, 24, 12, 31, 56, 64, 67, 82, 83, 94, 95, 96]),
            Opt::ClientId(&DUID),
        ];
        if !self.server.is_empty() && kind != dhcpv6::REBIND {
            options.push(Opt::ServerId(&self.server));
        }
        if asking {
            options.push(Opt::ReconfigureAccept);
        }
        // Client FQDN (RFC 4704): flags, and "OpenWrt" as a domain name
        options.push(Opt::Unknown(39, b"\0\x07OpenWrt"));
        let soliciting = kind == dhcpv6::SOLICIT;
        // lifetimes are given back in a Request alone
        let (preferred_lifetime, valid_lifetime) = match kind {
            dhcpv6::REQUEST => self.lifetimes,
            _ => (0, 0),
        };
        if soliciting || !self.addresses.is_empty() {
            let leases = self.addresses.iter().map(|address| {
                Opt::Address(IaAddress {
                    address: *address,
                    preferred_lifetime,
                    valid_lifetime,
                    options: Vec::new(),
                })
            });
            options.push(Opt::IaNa(Ia {
                options: leases.collect(),
                ..Ia::new(1)
            }));
        }
        if soliciting || !self.prefixes.is_empty() {
            let leases = self.prefixes.iter().map(|(prefix, length)| {
                Opt::Prefix(IaPrefix {
                    preferred_lifetime,
                    valid_lifetime,
                    length: *length,
                    prefix: *prefix,
                    options: Vec::new(),
                })
            });
            options.push(Opt::IaPd(Ia {
                options: leases.collect(),
                ..Ia::new(1)
            }));
        }
        options
    }

    /// Takes an answer by its rules: it throws away one without its own identifier or the server's, with a lease outside an
    /// association, with an association of another number, with a T1 after T2 or a preferred lifetime after the valid one, and it
    /// has nothing to wait for if T1 is 0.
    #[track_caller]
    fn take(&mut self, answer: &[u8]) {
        let message = Message::parse(answer).unwrap();
        assert_eq!(message.client_id(), Some(&DUID[..]));
        let server = message.server_id().expect("a server");
        assert!(self.server.is_empty() || self.server == server);
        self.server = server.to_vec();
        (self.addresses, self.prefixes) = Default::default();
        for option in &message.options {
            match option {
                Opt::IaNa(ia) => {
                    for lease in ia.addresses() {
                        self.lifetimes = times(ia, lease.preferred_lifetime, lease.valid_lifetime);
                        self.addresses.push(lease.address);
                    }
                }
                Opt::IaPd(ia) => {
                    // one whose lifetime is over is withdrawn
                    for lease in ia.prefixes().filter(|lease| lease.valid_lifetime > 0) {
                        self.lifetimes = times(ia, lease.preferred_lifetime, lease.valid_lifetime);
                        self.prefixes.push((lease.prefix, lease.length));
                    }
                }
                Opt::Address(_) | Opt::Prefix(_) => panic!("{option:?} outside an association"),
                Opt::Status(status) => assert_eq!(status.code, dhcpv6::status::SUCCESS),
                _ => {}
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, home: &mut Home, kind: u8) -> Vec<u8> {
        let answer = home.ask(kind, self.options(kind));
        self.take(&answer);
        answer
    }
}

#[track_caller]
fn times(ia: &Ia<'_>, preferred: u32, valid: u32) -> (u32, u32) {
    assert_eq!(ia.id, 1);
    assert!(0 < ia.t1 && ia.t1 <= ia.t2 && ia.t2 <= valid, "{ia:?}");
    assert!(0 < preferred && preferred <= valid, "{ia:?}");
    (preferred, valid)
}

#[test]
fn openwrt_asks_renews_rebinds_and_gives_back() {
    let mut home = Home::of(leases(true));
    let mut router = Odhcp6c::default();
    let all = (
        vec![ADDRESS.parse().unwrap()],
        vec![(PREFIX.parse().unwrap(), 56)],
    );
    for (kind, answered) in [
        (dhcpv6::SOLICIT, dhcpv6::ADVERTISE),
        (dhcpv6::REQUEST, dhcpv6::REPLY),
        (dhcpv6::RENEW, dhcpv6::REPLY),
        (dhcpv6::REBIND, dhcpv6::REPLY),
    ] {
        let answer = router.ask(&mut home, kind);
        assert_eq!(answer[0], answered);
        assert_eq!((router.addresses.clone(), router.prefixes.clone()), all);
        let message = Message::parse(&answer).unwrap();
        let dns = vec!["2620:fe::fe".parse().unwrap()];
        assert!(message.options.contains(&Opt::DnsServers(dns)));
        home.line.pass(60 * SECOND);
    }
    // it waits for no more than that the Release is answered
    let released = home.ask(dhcpv6::RELEASE, router.options(dhcpv6::RELEASE));
    assert_eq!(released[0], dhcpv6::REPLY);
    home.line.expect_silence();
    judge(&home.answers);
}

#[test]
fn openwrt_settles_for_a_prefix_where_there_is_no_address() {
    let mut home = Home::of(leases(false));
    let mut router = Odhcp6c::default();
    let advertise = router.ask(&mut home, dhcpv6::SOLICIT);
    // said inside the association: beside it, the client would take the whole as refused
    let message = Message::parse(&advertise).unwrap();
    let none = message.options.iter().find_map(|option| match option {
        Opt::IaNa(ia) => ia.status(),
        _ => None,
    });
    assert_eq!(none, Some(dhcpv6::status::NO_ADDRS_AVAIL));
    for kind in [dhcpv6::REQUEST, dhcpv6::RENEW, dhcpv6::REBIND] {
        router.ask(&mut home, kind);
        assert!(router.addresses.is_empty());
        assert_eq!(router.prefixes, [(PREFIX.parse().unwrap(), 56)]);
    }
    judge(&home.answers);
}

#[test]
fn openwrt_renews_when_it_is_told_to() {
    let mut home = Home::of(leases(true));
    let mut router = Odhcp6c::default();
    router.ask(&mut home, dhcpv6::SOLICIT);
    let reply = router.ask(&mut home, dhcpv6::REQUEST);
    let (key, _) = reconfigure::key_of(&Message::parse(&reply).unwrap()).expect("a key");

    let mut grant = leases(true);
    let ipv6 = grant.ipv6.as_mut().unwrap();
    replace(ipv6, Role::Delegated, ["2001:db8:8800::/56"]);
    home.line.command(Command::SetGrant(grant));
    let told = home.answer();
    // it compares the transaction id with 0, and takes no authentication of another length than 28
    assert_eq!(told[..4], [dhcpv6::RECONFIGURE, 0, 0, 0]);
    assert!(reconfigure::is_signed(&told, &key));
    let message = Message::parse(&told).unwrap();
    assert_eq!(message.client_id(), Some(&DUID[..]));
    assert_eq!(message.server_id(), Some(&router.server[..]));
    let renew = Opt::ReconfigureMessage(dhcpv6::RENEW);
    assert!(message.options.contains(&renew));
    let signed = message.options.iter().any(|option| {
        matches!(option, Opt::Auth(auth) if auth.protocol == Auth::RECONFIGURE_KEY
            && auth.algorithm == 1 && auth.information.len() == 17)
    });
    assert!(signed, "{message:?}");

    router.ask(&mut home, dhcpv6::RENEW);
    assert_eq!(router.prefixes, [("2001:db8:8800::".parse().unwrap(), 56)]);
    judge(&home.answers);
}

const FRITZBOX_IAID: u32 = 0x0a00_0009;

/// What a FRITZ!Box is set to ask for.
fn fritzbox(rapid: bool, address: bool, length: Option<u8>) -> Vec<Opt<'static>> {
    let mut options = vec![Opt::ClientId(&DUID), Opt::ElapsedTime(0)];
    if rapid {
        options.push(Opt::RapidCommit);
    }
    options.push(Opt::OptionRequest(vec![23, 64]));
    if address {
        options.push(Opt::IaNa(Ia::new(FRITZBOX_IAID)));
    }
    let wanted = length.map(|length| {
        Opt::Prefix(IaPrefix {
            preferred_lifetime: 0,
            valid_lifetime: 0,
            length,
            prefix: Ipv6Addr::UNSPECIFIED,
            options: Vec::new(),
        })
    });
    options.push(Opt::IaPd(Ia {
        options: wanted.into_iter().collect(),
        ..Ia::new(FRITZBOX_IAID)
    }));
    options
}

/// What an answer to a FRITZ!Box gives: addresses, and prefixes with their lengths.
fn given(answer: &[u8]) -> (Vec<Ipv6Addr>, Vec<(Ipv6Addr, u8)>) {
    let mut given = (Vec::new(), Vec::new());
    for option in Message::parse(answer).unwrap().options {
        match option {
            Opt::IaNa(ia) => given.0.extend(ia.addresses().map(|lease| lease.address)),
            Opt::IaPd(ia) => {
                assert_eq!(ia.id, FRITZBOX_IAID);
                let prefixes = ia.prefixes().map(|lease| (lease.prefix, lease.length));
                given.1.extend(prefixes);
            }
            _ => {}
        }
    }
    given
}

#[test]
fn a_fritzbox_has_its_prefix_after_two_messages_or_four() {
    let mut answers = Vec::new();
    for length in [None, Some(48), Some(56), Some(62), Some(64)] {
        for address in [false, true] {
            // whatever length it would like, the session has one prefix
            let wanted = (
                address
                    .then(|| ADDRESS.parse().unwrap())
                    .into_iter()
                    .collect(),
                vec![(PREFIX.parse().unwrap(), 56)],
            );
            let mut home = Home::of(leases(true));
            let reply = home.ask(dhcpv6::SOLICIT, fritzbox(true, address, length));
            assert_eq!((reply[0], given(&reply)), (dhcpv6::REPLY, wanted));

            let asked = || fritzbox(false, address, length);
            let advertise = home.ask(dhcpv6::SOLICIT, asked());
            assert_eq!(advertise[0], dhcpv6::ADVERTISE);
            let message = Message::parse(&advertise).unwrap();
            let server = Opt::ServerId(message.server_id().expect("a server"));
            let request = [asked(), vec![server]].concat();
            let again = home.ask(dhcpv6::REQUEST, request);
            assert_eq!(again[0], dhcpv6::REPLY);
            assert_eq!(given(&again), given(&advertise));
            assert_eq!(given(&again), given(&reply));
            answers.extend(home.answers);
        }
    }
    judge(&answers);
}
