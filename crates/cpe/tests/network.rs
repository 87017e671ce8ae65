//! A home against a scripted gateway: addresses and packets.

mod line;

use core::net::IpAddr;
use core::time::Duration;
use cpe::{Datagram, End, Family, HomeConfig, Homes, Output, Received, State};
use line::*;
use proptest::prelude::*;
use wire::icmp::Message;
use wire::lcp::ProtocolReject;
use wire::{eth, icmp, ipv4, ipv6, lcp, nd, ppp, udp};

const V4: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(100, 64, 0, 9));

fn v6(line: &Line) -> IpAddr {
    line.home.ipv6().unwrap().into()
}

#[test]
fn a_home_comes_online_with_both_families_and_name_servers() {
    let line = Line::online();
    assert_eq!(line.home.state(), State::Online);
    let events = [Output::Up(V4), Output::Up(v6(&line)), Output::Online];
    assert_eq!(line.events, events);
    let address = line.home.ipv6().unwrap();
    assert_eq!(address.segments()[..4], [0x2001, 0xdb8, 0x100, 7]);
    assert_eq!(
        ipv6::interface_id(address) >> 57 & 1,
        0,
        "the identifier claims to be globally unique"
    );
    let dns: Vec<IpAddr> = line.home.dns().collect();
    assert_eq!(
        dns,
        ["192.0.2.53", "192.0.2.54", "2001:db8::53"].map(|a| a.parse::<IpAddr>().unwrap())
    );
}

#[test]
fn name_servers_that_the_gateway_does_not_know_are_not_asked_for_again() {
    let mut line = Line::new(HomeConfig {
        ipv6: false,
        ..config()
    });
    line.connect();
    line.open_link(None);
    let request = line.controls().remove(0);
    line.control(
        ppp::IPCP,
        ppp::CONFIGURE_REJECT,
        request.id,
        &[129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0],
    );
    let second = line.controls().remove(0);
    assert_eq!(second.data, [3, 6, 0, 0, 0, 0]);
    line.control(
        ppp::IPCP,
        ppp::CONFIGURE_NAK,
        second.id,
        &[3, 6, 100, 64, 0, 9],
    );
    let third = line.controls().remove(0);
    line.control(ppp::IPCP, ppp::CONFIGURE_REQUEST, 1, &[3, 6, 100, 64, 0, 1]);
    // An Ack that is not word for word ours agrees to nothing.
    line.control(
        ppp::IPCP,
        ppp::CONFIGURE_ACK,
        third.id,
        &[3, 6, 100, 64, 0, 8],
    );
    line.control(ppp::IPCP, ppp::CONFIGURE_ACK, second.id, &third.data);
    assert_eq!(line.home.ipv4(), None);
    line.control(ppp::IPCP, ppp::CONFIGURE_ACK, third.id, &third.data);
    assert_eq!(line.events, [Output::Up(V4), Output::Online]);
    assert_eq!(line.home.state(), State::Online);
}

#[test]
fn a_gateway_without_ipv6_still_serves_ipv4_and_one_with_neither_is_left() {
    let mut line = Line::new(config());
    line.connect();
    line.open_link(None);
    let requests = line.controls();
    let reject = |line: &mut Line, protocol| {
        let mut data = Vec::new();
        ProtocolReject {
            protocol,
            information: &[1, 1, 0, 4],
        }
        .emit(&mut data);
        line.control(ppp::LCP, lcp::PROTOCOL_REJECT, 1, &data);
    };
    reject(&mut line, ppp::IPV6CP);
    assert_eq!(line.home.state(), State::Network);
    line.open_ipv4(&requests[0]);
    assert_eq!(line.home.state(), State::Online);
    line.sent();
    reject(&mut line, ppp::IPCP);
    assert_eq!(line.home.state(), State::Closing);
    assert_eq!(line.controls().remove(0).code, ppp::TERMINATE_REQUEST);
    line.wait();
    line.wait();
    line.sent();
    assert_eq!(
        line.events.last(),
        Some(&Output::Ended(End::NoAgreement(State::Network)))
    );
}

#[test]
fn a_second_lcp_request_takes_the_link_down_and_up_again() {
    let mut line = Line::online();
    line.sent();
    line.events.clear();
    line.control(ppp::LCP, ppp::CONFIGURE_REQUEST, 77, &link_options(None));
    assert_eq!(line.home.state(), State::Link);
    assert_eq!(
        line.events,
        [Output::Down(Family::V6), Output::Down(Family::V4)]
    );
    let sent = line.controls();
    assert_eq!(
        [sent[0].code, sent[1].code],
        [ppp::CONFIGURE_REQUEST, ppp::CONFIGURE_ACK]
    );
    line.control(ppp::LCP, ppp::CONFIGURE_ACK, sent[0].id, &sent[0].data);
    let requests = line.controls();
    line.open_ipv4(&requests[0]);
    line.open_ipv6(&requests[1]);
    line.advertise(u32::MAX);
    assert_eq!(line.home.state(), State::Online);
}

#[test]
fn one_family_that_closes_leaves_the_other_and_the_link() {
    let mut line = Line::online();
    line.sent();
    line.events.clear();
    line.control(ppp::IPV6CP, ppp::TERMINATE_REQUEST, 4, &[]);
    assert_eq!(line.controls().remove(0).code, ppp::TERMINATE_ACK);
    assert_eq!(line.events, [Output::Down(Family::V6)]);
    assert_eq!(
        (line.home.ipv4().map(IpAddr::from), line.home.state()),
        (Some(V4), State::Online)
    );
}

#[test]
fn solicitations_go_on_until_a_prefix_comes() {
    let mut line = Line::new(HomeConfig {
        ipv4: false,
        echo_interval: None,
        ..config()
    });
    line.connect();
    line.open_link(None);
    let request = line.controls().remove(0);
    line.open_ipv6(&request);
    for pause in [3, 6, 12, 24, 48, 48] {
        let sent = ppp_of(&line.one());
        let packet = nd::Packet::parse(&sent[2..]).unwrap();
        assert_eq!(packet.destination, ipv6::ALL_ROUTERS);
        assert!(matches!(
            packet.message,
            nd::Message::RouterSolicitation { .. }
        ));
        assert_eq!(line.wait(), Duration::from_secs(pause));
    }
    assert_eq!(line.home.state(), State::Network);
    line.advertise(3600);
    assert_eq!(line.home.state(), State::Online);
    // Nobody renews the prefix: the address goes, and the questions begin again.
    line.sent();
    assert_eq!(line.wait(), Duration::from_secs(3600));
    assert_eq!(line.home.state(), State::Network);
    assert_eq!(line.sent().len(), 1);
    assert_eq!(line.events.last(), Some(&Output::Down(Family::V6)));
}

#[test]
fn an_advertisement_of_another_sender_counts_for_nothing() {
    let mut line = Line::new(HomeConfig {
        ipv4: false,
        ..config()
    });
    line.connect();
    line.open_link(None);
    let request = line.controls().remove(0);
    line.open_ipv6(&request);
    let mut frame = ppp::IPV6.to_be_bytes().to_vec();
    let message = nd::Message::RouterAdvertisement(nd::RouterAdvertisement {
        router_lifetime: 1800,
        options: vec![nd::Opt::Prefix(nd::PrefixInformation {
            prefix: "2001:db8:bad::".parse().unwrap(),
            length: 64,
            on_link: true,
            autonomous: true,
            valid_lifetime: 1,
            preferred_lifetime: 1,
        })],
        ..Default::default()
    });
    nd::Packet {
        source: ipv6::link_local(1),
        destination: ipv6::ALL_NODES,
        message,
    }
    .emit(&mut frame);
    line.ppp(&frame);
    assert_eq!(line.home.ipv6(), None);
}

#[test]
fn neighbor_solicitations_and_pings_are_answered() {
    let mut line = Line::online();
    line.sent();
    let target = line.home.ipv6().unwrap();
    line.nd(nd::Message::NeighborSolicitation {
        target,
        options: vec![],
    });
    let sent = ppp_of(&line.one());
    let answer = nd::Packet::parse(&sent[2..]).unwrap();
    assert!(
        matches!(answer.message, nd::Message::NeighborAdvertisement { target: t, solicited: true, .. } if t == target)
    );
    line.nd(nd::Message::NeighborSolicitation {
        target: ipv6::link_local(99),
        options: vec![],
    });
    assert!(line.sent().is_empty());

    let (mut message, mut frame) = (Vec::new(), ppp::IPV4.to_be_bytes().to_vec());
    Message::echo(icmp::V4_ECHO_REQUEST, 1, 2, b"ping").emit_v4(&mut message);
    let header = ipv4::Header::new(ipv4::ICMP, [100, 64, 0, 1].into(), [100, 64, 0, 9].into());
    ipv4::Packet {
        header,
        options: &[],
        payload: &message,
    }
    .emit(&mut frame);
    line.ppp(&frame);
    let sent = ppp_of(&line.one());
    let packet = ipv4::Packet::parse(&sent[2..]).unwrap();
    assert_eq!(
        (packet.header.source, packet.header.destination),
        ([100, 64, 0, 9].into(), [100, 64, 0, 1].into())
    );
    assert_eq!(
        Message::parse_v4(packet.payload).unwrap(),
        Message::echo(icmp::V4_ECHO_REPLY, 1, 2, b"ping")
    );

    let (mut message, mut frame) = (Vec::new(), ppp::IPV6.to_be_bytes().to_vec());
    let gateway = ipv6::link_local(GATEWAY_ID);
    Message::echo(icmp::V6_ECHO_REQUEST, 1, 2, b"ping").emit_v6(gateway, target, &mut message);
    ipv6::Packet {
        header: ipv6::Header::new(ipv6::ICMPV6, gateway, target),
        payload: &message,
    }
    .emit(&mut frame);
    line.ppp(&frame);
    let sent = ppp_of(&line.one());
    let packet = ipv6::Packet::parse(&sent[2..]).unwrap();
    let reply = Message::parse_v6(packet.payload, target, gateway).unwrap();
    assert_eq!(reply, Message::echo(icmp::V6_ECHO_REPLY, 1, 2, b"ping"));
}

#[test]
fn datagrams_leave_from_the_homes_own_address_inside_its_session() {
    let line = Line::online();
    let frame = line
        .home
        .datagram("198.51.100.2".parse().unwrap(), 1, 2, b"up")
        .unwrap();
    let sent = ppp_of(&frame);
    let packet = ipv4::Packet::parse(&sent[2..]).unwrap();
    let (from, to) = (packet.header.source, packet.header.destination);
    assert_eq!(
        (from, to),
        ([100, 64, 0, 9].into(), [198, 51, 100, 2].into())
    );
    let datagram = udp::Datagram::parse_v4(packet.payload, from, to).unwrap();
    assert_eq!(
        datagram,
        udp::Datagram {
            source_port: 1,
            destination_port: 2,
            payload: b"up"
        }
    );

    let frame = line
        .home
        .datagram("2001:db8:ffff::2".parse().unwrap(), 1, 2, b"up")
        .unwrap();
    let sent = ppp_of(&frame);
    let packet = ipv6::Packet::parse(&sent[2..]).unwrap();
    assert_eq!(Some(packet.header.source), line.home.ipv6());
    assert!(
        udp::Datagram::parse_v6(
            packet.payload,
            packet.header.source,
            packet.header.destination
        )
        .is_ok()
    );
    assert_eq!(Line::new(config()).home.datagram(V4, 1, 2, b"up"), None);
}

fn datagram_to(to: [u8; 4]) -> Vec<u8> {
    let (from, to) = ([198, 51, 100, 2].into(), to.into());
    let (mut segment, mut frame) = (Vec::new(), ppp::IPV4.to_be_bytes().to_vec());
    udp::Datagram {
        source_port: 5,
        destination_port: 6,
        payload: b"down",
    }
    .emit_v4(from, to, &mut segment);
    ipv4::Packet {
        header: ipv4::Header::new(ipv4::UDP, from, to),
        options: &[],
        payload: &segment,
    }
    .emit(&mut frame);
    session_frame(&frame)
}

#[test]
fn packets_of_a_family_that_is_not_open_are_discarded_in_silence() {
    let mut line = Line::new(config());
    line.connect();
    line.open_link(None);
    line.sent();
    let now = line.now;
    let early = datagram_to([100, 64, 0, 9]);
    assert_eq!(line.home.handle_frame(now, &early), Received::Quiet);
    line.advertise(3600);
    assert_eq!((line.home.ipv6(), line.sent().len()), (None, 0));
}

#[test]
fn what_is_for_another_is_a_stray() {
    let mut line = Line::online();
    let good = datagram_to([100, 64, 0, 9]);
    let datagram = Datagram {
        source: "198.51.100.2".parse().unwrap(),
        source_port: 5,
        destination_port: 6,
        payload: b"down",
    };
    let now = line.now;
    assert_eq!(
        line.home.handle_frame(now, &good),
        Received::Datagram(datagram)
    );
    let stray = |line: &mut Line, bytes: &[u8]| {
        matches!(line.home.handle_frame(now, bytes), Received::Stray(_))
    };
    assert!(
        stray(&mut line, &datagram_to([100, 64, 0, 8])),
        "another address"
    );
    let changes = [
        ("mac", 5),
        ("S-tag", 15),
        ("C-tag", 19),
        ("concentrator", 8),
        ("session", 25),
        ("data", good.len() - 1),
    ];
    for (what, octet) in changes {
        let mut bad = good.clone();
        bad[octet] ^= 1;
        assert!(stray(&mut line, &bad), "{what}");
    }
    assert!(stray(&mut line, &good[..40]), "cut off");
}

proptest! {
    #[test]
    fn no_frame_makes_a_home_panic_or_speak_for_another(
        ethertype in prop_oneof![Just(eth::PPPOE_DISCOVERY), Just(eth::PPPOE_SESSION), any::<u16>()],
        protocol in prop_oneof![
            Just(ppp::LCP), Just(ppp::IPCP), Just(ppp::IPV6CP), Just(ppp::PAP), Just(ppp::CHAP),
            Just(ppp::IPV4), Just(ppp::IPV6), any::<u16>()
        ],
        code in 0u8..14,
        body: Vec<u8>,
        framed: bool,
    ) {
        let mut line = Line::online();
        line.sent();
        let mut payload = body.clone();
        if framed {
            payload.clear();
            ppp::Control { code, id: 1, data: &body }.emit(protocol, &mut payload);
        }
        let mut bytes = match ethertype {
            eth::PPPOE_SESSION => session_frame(&payload),
            _ => header(GATEWAY, HOME, ethertype),
        };
        bytes.extend_from_slice(&body);
        let now = line.now;
        line.home.handle_frame(now, &bytes);
        for sent in line.sent() {
            prop_assert_eq!(&sent[6..12], &HOME.0);
        }
        for _ in 0..40 {
            if line.home.poll_at().is_none() {
                break;
            }
            line.wait();
        }
    }
}

#[test]
fn ten_thousand_homes_share_one_loop() {
    let config = |n: u32| {
        let [_, a, b, c] = n.to_be_bytes();
        HomeConfig::new(
            [2, 0, 0, a, b, c].into(),
            100 + (n / 4000) as u16,
            (n % 4000) as u16 + 1,
            format!("h{n}"),
            "x",
        )
    };
    let mut homes = Homes::new((0..10_000).map(config), 1);
    let start = Duration::from_secs(1);
    (0..10_000).for_each(|n| homes.dial(n, start));
    let mut asked = vec![0u32; 10_000];
    let mut ended = 0;
    loop {
        while let Some((n, output)) = homes.poll_output() {
            match output {
                Output::Frame(_) => asked[n as usize] += 1,
                Output::Ended(End::Silence(State::Discovery)) => ended += 1,
                other => panic!("{other:?}"),
            }
        }
        let Some(at) = homes.poll_at() else { break };
        homes.on_timeout(at);
    }
    assert!(asked.iter().all(|&n| n == 8));
    assert_eq!(ended, 10_000);
    // The seed gives each its own numbers.
    homes.dial(0, start);
    homes.dial(1, start);
    let uniq = |output: Option<(u32, Output)>| match output {
        Some((_, Output::Frame(bytes))) => host_uniq(&bytes),
        other => panic!("{other:?}"),
    };
    assert_ne!(uniq(homes.poll_output()), uniq(homes.poll_output()));
}
