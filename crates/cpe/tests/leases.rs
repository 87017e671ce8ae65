//! DHCPv6 of a home, against messages written answer by answer.
mod line;

use core::net::Ipv6Addr;
use core::time::Duration;
use cpe::{Delegation, HomeConfig, Received};
use line::{GATEWAY_ID, Line, config, ppp_of, session_frame};
use wire::dhcpv6::{self, Ia, IaAddress, IaPrefix, Message, Opt, Status, reconfigure, status};
use wire::{ipv6, nd, ppp, udp};

const SERVER: &[u8] = &[0, 4, 1, 2, 3];
const KEY: [u8; 16] = [9; 16];

/// A message that the home sent, as octets.
struct Asked(Vec<u8>);

impl Asked {
    fn message(&self) -> Message<'_> {
        Message::parse(&self.0).unwrap()
    }

    fn kind(&self) -> u8 {
        self.0[0]
    }

    fn prefixes(&self) -> Vec<(Ipv6Addr, u8)> {
        let message = self.message();
        let associations = message.options.iter().filter_map(|option| match option {
            Opt::IaPd(ia) => Some(ia),
            _ => None,
        });
        associations
            .flat_map(|ia| ia.prefixes().map(|p| (p.prefix, p.length)))
            .collect()
    }
}

/// A home that asks for leases, to which an advertisement with the O flag has come.
fn home(rapid_commit: bool, managed: bool) -> Line {
    let mut line = open_home(rapid_commit);
    advertise(&mut line, managed, true);
    line
}

fn open_home(rapid_commit: bool) -> Line {
    let mut line = Line::new(HomeConfig {
        ipv4: false,
        echo_interval: None,
        delegation: Some(Delegation { rapid_commit }),
        ..config()
    });
    line.connect();
    line.open_link(None);
    let request = line.controls().remove(0);
    line.open_ipv6(&request);
    line.sent();
    line
}

fn advertise(line: &mut Line, managed: bool, other: bool) {
    line.nd(nd::Message::RouterAdvertisement(nd::RouterAdvertisement {
        router_lifetime: 1800,
        managed,
        other,
        options: vec![nd::Opt::Prefix(nd::PrefixInformation {
            prefix: "2001:db8:100:7::".parse().unwrap(),
            length: 64,
            on_link: true,
            autonomous: true,
            valid_lifetime: u32::MAX,
            preferred_lifetime: u32::MAX,
        })],
        ..Default::default()
    }));
}

/// The only message that the home has sent.
fn asked(line: &mut Line) -> Asked {
    let frame = ppp_of(&line.one());
    let packet = ipv6::Packet::parse(frame.strip_prefix(&[0, 0x57]).unwrap()).unwrap();
    let header = packet.header;
    assert_eq!(header.destination, dhcpv6::ALL_SERVERS);
    assert_eq!(
        header.source,
        ipv6::link_local(ipv6::interface_id(line.home.ipv6().unwrap()))
    );
    let datagram = udp::Datagram::parse_v6(packet.payload, header.source, header.destination);
    let datagram = datagram.unwrap();
    assert_eq!(
        (datagram.source_port, datagram.destination_port),
        (546, 547)
    );
    Asked(datagram.payload.to_vec())
}

fn hear(line: &mut Line, payload: &[u8]) -> Received<'static> {
    let source = ipv6::link_local(GATEWAY_ID);
    let to = ipv6::link_local(ipv6::interface_id(line.home.ipv6().unwrap()));
    let mut frame = ppp::IPV6.to_be_bytes().to_vec();
    udp::Datagram {
        source_port: 547,
        destination_port: 546,
        payload,
    }
    .emit_packet_v6(source, to, &mut frame);
    match line.home.handle_frame(line.now, &session_frame(&frame)) {
        Received::Quiet => Received::Quiet,
        Received::Stray(why) => Received::Stray(why),
        Received::Datagram(_) => panic!("a datagram for nobody"),
    }
}

fn pd(prefix: &str, length: u8) -> Opt<'static> {
    Opt::IaPd(Ia {
        id: 2,
        t1: 100,
        t2: 160,
        options: vec![Opt::Prefix(IaPrefix {
            preferred_lifetime: 200,
            valid_lifetime: 400,
            length,
            prefix: prefix.parse().unwrap(),
            options: Vec::new(),
        })],
    })
}

fn na(address: &str) -> Opt<'static> {
    Opt::IaNa(Ia {
        id: 1,
        t1: 100,
        t2: 160,
        options: vec![Opt::Address(IaAddress {
            address: address.parse().unwrap(),
            preferred_lifetime: 200,
            valid_lifetime: 400,
            options: Vec::new(),
        })],
    })
}

fn refused(code: u16) -> Opt<'static> {
    Opt::IaPd(Ia {
        options: vec![Opt::Status(Status { code, message: b"" })],
        ..Ia::new(2)
    })
}

fn answer(line: &mut Line, asked: &Asked, kind: u8, options: &[Opt<'_>]) {
    let message = asked.message();
    let ids = [
        Opt::ClientId(message.client_id().unwrap()),
        Opt::ServerId(SERVER),
    ];
    let mut payload = Vec::new();
    Message {
        kind,
        transaction: message.transaction,
        options: ids.into_iter().chain(options.iter().cloned()).collect(),
    }
    .emit(&mut payload);
    assert_eq!(hear(line, &payload), Received::Quiet);
}

fn bound() -> Line {
    let mut line = home(true, false);
    let solicit = asked(&mut line);
    let prefix = [Opt::RapidCommit, pd("2001:db8:7700::", 56)];
    answer(&mut line, &solicit, dhcpv6::REPLY, &prefix);
    line
}

fn has(line: &Line, prefixes: &[&str]) {
    let prefixes: Vec<_> = prefixes.iter().map(|net| net.parse().unwrap()).collect();
    assert_eq!(line.home.delegated(), prefixes);
}

#[test]
fn four_messages_bring_an_address_and_a_prefix() {
    let mut line = home(false, true);
    let solicit = asked(&mut line);
    assert_eq!(solicit.kind(), dhcpv6::SOLICIT);
    assert!(!solicit.message().options.contains(&Opt::RapidCommit));
    let offer = [
        na("2001:db8:5::7"),
        pd("2001:db8:7700::", 56),
        Opt::Preference(255),
    ];
    answer(&mut line, &solicit, dhcpv6::ADVERTISE, &offer);
    let request = asked(&mut line);
    assert_eq!(request.kind(), dhcpv6::REQUEST);
    assert_eq!(request.message().server_id(), Some(SERVER));
    assert_eq!(
        request.prefixes(),
        [("2001:db8:7700::".parse().unwrap(), 56)]
    );
    answer(&mut line, &request, dhcpv6::REPLY, &offer[..2]);
    has(&line, &["2001:db8:7700::/56"]);
    assert_eq!(
        line.home.leased_address(),
        Some("2001:db8:5::7".parse().unwrap())
    );
}

#[test]
fn rapid_commit_brings_a_prefix_by_two_messages_and_no_address_without_m() {
    let mut line = home(true, false);
    let solicit = asked(&mut line);
    let message = solicit.message();
    assert!(message.options.contains(&Opt::RapidCommit));
    assert!(!message.options.iter().any(|o| matches!(o, Opt::IaNa(_))));
    drop(message);
    // a Reply without Rapid Commit is none to a Solicit
    answer(
        &mut line,
        &solicit,
        dhcpv6::REPLY,
        &[pd("2001:db8:7700::", 56)],
    );
    has(&line, &[]);
    let prefix = [Opt::RapidCommit, pd("2001:db8:7700::", 56)];
    answer(&mut line, &solicit, dhcpv6::REPLY, &prefix);
    has(&line, &["2001:db8:7700::/56"]);
}

/// RFC 7084, WPD-4.
#[test]
fn it_asks_when_an_advertisement_says_that_there_is_something_to_ask_for() {
    for (managed, other) in [(true, false), (false, true)] {
        let mut line = open_home(true);
        advertise(&mut line, false, false);
        assert!(line.sent().is_empty());
        advertise(&mut line, managed, other);
        assert_eq!(asked(&mut line).kind(), dhcpv6::SOLICIT);
    }
}

#[test]
fn it_asks_less_and_less_often() {
    let mut line = home(true, false);
    asked(&mut line);
    let pauses: Vec<u64> = (0..7)
        .map(|_| {
            let passed = line.wait();
            assert_eq!(asked(&mut line).kind(), dhcpv6::SOLICIT);
            passed.as_secs()
        })
        .collect();
    assert_eq!(pauses, [3, 6, 12, 24, 48, 96, 96]);
}

#[test]
fn it_renews_then_rebinds_then_forgets() {
    let mut line = bound();
    assert_eq!(line.wait(), Duration::from_secs(100));
    let renew = asked(&mut line);
    assert_eq!(renew.kind(), dhcpv6::RENEW);
    assert_eq!(renew.message().server_id(), Some(SERVER));
    answer(
        &mut line,
        &renew,
        dhcpv6::REPLY,
        &[pd("2001:db8:7700::", 56)],
    );
    assert_eq!(line.wait(), Duration::from_secs(100));
    let begin = line.now;
    let mut kinds = Vec::new();
    loop {
        let kind = asked(&mut line).kind();
        if kind == dhcpv6::SOLICIT {
            break;
        }
        if kinds.last() != Some(&kind) {
            kinds.push(kind);
        }
        line.wait();
    }
    assert_eq!(kinds, [dhcpv6::RENEW, dhcpv6::REBIND]);
    assert_eq!(line.now - begin, Duration::from_secs(300));
    has(&line, &[]);
}

#[test]
fn a_prefix_that_is_withdrawn_is_replaced() {
    let mut line = bound();
    line.wait();
    let renew = asked(&mut line);
    let Opt::IaPd(mut ia) = pd("2001:db8:8800::", 56) else {
        unreachable!()
    };
    ia.options.push(Opt::Prefix(IaPrefix {
        preferred_lifetime: 0,
        valid_lifetime: 0,
        length: 56,
        prefix: "2001:db8:7700::".parse().unwrap(),
        options: Vec::new(),
    }));
    answer(&mut line, &renew, dhcpv6::REPLY, &[Opt::IaPd(ia)]);
    has(&line, &["2001:db8:8800::/56"]);
}

#[test]
fn without_a_binding_it_requests_and_without_a_prefix_it_solicits() {
    let mut line = bound();
    line.wait();
    let renew = asked(&mut line);
    answer(
        &mut line,
        &renew,
        dhcpv6::REPLY,
        &[refused(status::NO_BINDING)],
    );
    let request = asked(&mut line);
    assert_eq!(request.kind(), dhcpv6::REQUEST);
    answer(
        &mut line,
        &request,
        dhcpv6::REPLY,
        &[refused(status::NO_PREFIX_AVAIL)],
    );
    has(&line, &[]);
    line.wait();
    assert_eq!(asked(&mut line).kind(), dhcpv6::SOLICIT);
}

#[test]
fn it_gives_back_what_it_has_before_it_hangs_up() {
    let mut line = bound();
    line.home.hang_up(line.now);
    let sent = line.sent();
    let release = ppp_of(&sent[0]);
    assert_eq!(
        (&release[..2], release[50]),
        (&[0, 0x57][..], dhcpv6::RELEASE)
    );
    assert_eq!(ppp_of(&sent[1])[..3], [0xc0, 0x21, 5]);
    has(&line, &[]);
}

#[test]
fn only_a_signed_and_new_reconfigure_makes_it_renew() {
    let mut line = home(true, false);
    let solicit = asked(&mut line);
    assert!(solicit.message().options.contains(&Opt::ReconfigureAccept));
    let information = reconfigure::key_information(&KEY);
    let options = [
        Opt::RapidCommit,
        pd("2001:db8:7700::", 56),
        reconfigure::key_option(10, &information),
    ];
    answer(&mut line, &solicit, dhcpv6::REPLY, &options);
    let client = solicit.message().client_id().unwrap().to_vec();
    let mut tell = |key: &[u8; 16], replay| {
        let mut payload = Vec::new();
        reconfigure::Reconfigure {
            server: SERVER,
            client: &client,
            answer: dhcpv6::RENEW,
            replay,
        }
        .emit(key, &mut payload);
        let received = hear(&mut line, &payload);
        (received, line.sent().len())
    };
    let stray = Received::Stray("a Reconfigure that is not signed");
    assert_eq!(tell(&[8; 16], 11), (stray, 0));
    assert_eq!(tell(&KEY, 10), (Received::Quiet, 0));
    assert_eq!(tell(&KEY, 11), (Received::Quiet, 1));
    assert_eq!(tell(&KEY, 11), (Received::Quiet, 0));
}

/// As a host on its network would; and what comes to such a host is taken.
#[test]
fn datagrams_come_from_and_go_to_its_own_network() {
    let line = bound();
    let internet = "2001:db8:ffff::1".parse().unwrap();
    let source_of = |line: &Line| {
        let frame = line.home.datagram(internet, 5, 6, b"data").unwrap();
        let ppp = ppp_of(&frame);
        let packet = ipv6::Packet::parse(ppp.strip_prefix(&[0, 0x57]).unwrap()).unwrap();
        packet.header.source
    };
    let host: Ipv6Addr = "2001:db8:7700::1".parse().unwrap();
    assert_eq!(source_of(&line), host);
    let mut line = line;
    let mut frame = ppp::IPV6.to_be_bytes().to_vec();
    udp::Datagram {
        source_port: 6,
        destination_port: 5,
        payload: b"reply",
    }
    .emit_packet_v6("2001:db8:ffff::1".parse().unwrap(), host, &mut frame);
    let frame = session_frame(&frame);
    let received = line.home.handle_frame(line.now, &frame);
    assert!(matches!(received, Received::Datagram(d) if d.payload == b"reply"));
    assert_eq!(
        source_of(&home(true, false)),
        home(true, false).home.ipv6().unwrap()
    );
}

#[test]
fn a_message_for_another_client_is_a_stray() {
    let mut line = home(true, false);
    asked(&mut line);
    let mut payload = Vec::new();
    Message {
        kind: dhcpv6::REPLY,
        transaction: 1,
        options: vec![Opt::ClientId(SERVER), Opt::ServerId(SERVER)],
    }
    .emit(&mut payload);
    let stray = Received::Stray("another client's DHCPv6 message");
    assert_eq!(hear(&mut line, &payload), stray);
    assert_eq!(
        hear(&mut line, &[1]),
        Received::Stray("not a DHCPv6 message")
    );
}
