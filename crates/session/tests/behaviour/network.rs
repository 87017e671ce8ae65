//! IPCP, IPV6CP and neighbor discovery, by scripts.
use crate::support::*;
use ipnet::Ipv6Net;
use policy::{Binding, Bindings};
use proptest::prelude::*;
use session::*;
use std::time::Duration;
use wire::nd::{Message, Opt, Packet};

const RA_INTERVAL: Duration = Duration::from_secs(600);

fn ipv4_only() -> Grant {
    Grant {
        ipv6: None,
        ..grant()
    }
}

#[test]
fn the_address_is_released_only_when_its_rules_are_installed() {
    let mut line = Line::new();
    line.authenticate(ipv4_only());
    let (id, options) = line.expect_kind(IPCP, 1);
    assert_eq!(options, [3, 6, 100, 64, 0, 1]);
    line.send(
        IPCP,
        1,
        1,
        &[3, 6, 0, 0, 0, 0, 129, 6, 0, 0, 0, 0, 131, 6, 0, 0, 0, 0],
    );
    line.expect_packet(
        IPCP,
        3,
        1,
        &[3, 6, 100, 64, 0, 7, 129, 6, 9, 9, 9, 9, 131, 6, 1, 1, 1, 1],
    );
    let wanted = [3, 6, 100, 64, 0, 7, 129, 6, 9, 9, 9, 9, 131, 6, 1, 1, 1, 1];
    line.send(IPCP, 1, 2, &wanted);
    line.expect(Output::Install(Family::Ipv4));
    line.expect_silence();
    // The peer is impatient: still nothing is acknowledged, and nothing is asked for twice.
    line.send(IPCP, 1, 3, &wanted);
    line.send(IPCP, 2, id, &options);
    line.expect_silence();
    assert!(!line.is_up(Family::Ipv4));
    line.command(Command::Installed(Family::Ipv4));
    line.expect_packet(IPCP, 2, 3, &wanted);
    line.expect(Output::Up(Family::Ipv4));
    assert!(
        line.link
            .command(line.now, Command::Installed(Family::Ipv4))
            .is_err()
    );
}

#[test]
fn a_peer_that_changes_its_mind_while_rules_are_installed_is_corrected() {
    let mut line = Line::new();
    line.authenticate(ipv4_only());
    let (id, options) = line.expect_kind(IPCP, 1);
    line.send(IPCP, 2, id, &options);
    line.send(IPCP, 1, 1, &home_ipcp());
    line.expect(Output::Install(Family::Ipv4));
    line.send(IPCP, 1, 2, &[3, 6, 10, 0, 0, 1]);
    line.expect_packet(IPCP, 3, 2, &home_ipcp());
    // The request that was held is void: the peer has replaced it.
    line.command(Command::Installed(Family::Ipv4));
    line.expect_silence();
    line.send(IPCP, 1, 3, &home_ipcp());
    line.expect_packet(IPCP, 2, 3, &home_ipcp());
    line.expect(Output::Up(Family::Ipv4));
}

#[test]
fn an_ipv4_subscriber_is_refused_ipv6_and_the_other_way_round() {
    let mut line = Line::new();
    line.authenticate(ipv4_only());
    line.open_ipcp();
    line.send(IPV6CP, 1, 1, &home_ipv6cp());
    line.expect_kind(LCP, 8);
    let mut line = Line::new();
    line.authenticate(ipv6_only());
    line.open_ipv6cp();
    line.send(IPCP, 1, 1, &home_ipcp());
    line.expect_kind(LCP, 8);
    assert_eq!(line.link.status().phase, Phase::Network);
}

#[test]
fn an_ncp_that_closes_does_not_end_the_link_and_may_come_back() {
    let mut line = Line::open();
    line.send(IPCP, 5, 9, &[]);
    line.expect_packet(IPCP, 6, 9, &[]);
    line.expect(Output::Down(Family::Ipv4));
    assert!(line.is_up(Family::Ipv6));
    line.pass(3 * SECOND);
    line.expect_silence();
    line.send(IPCP, 1, 10, &home_ipcp());
    let (id, options) = line.expect_kind(IPCP, 1);
    line.expect(Output::Install(Family::Ipv4));
    line.send(IPCP, 2, id, &options);
    line.command(Command::Installed(Family::Ipv4));
    line.expect_packet(IPCP, 2, 10, &home_ipcp());
    line.expect(Output::Up(Family::Ipv4));
    line.send(IPV6CP, 5, 11, &[]);
    line.expect_packet(IPV6CP, 6, 11, &[]);
    line.expect(Output::Down(Family::Ipv6));
    assert_eq!(line.link.status().phase, Phase::Network);
    // No advertisements without IPv6.
    line.send_discarded(&ipv6_frame(
        "fe80::9",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    ));
}

#[test]
fn a_repeated_request_on_an_open_ncp_keeps_the_rules() {
    let mut line = Line::open();
    line.send(IPCP, 1, 20, &home_ipcp());
    let (id, options) = line.expect_kind(IPCP, 1);
    line.expect_packet(IPCP, 2, 20, &home_ipcp());
    line.send(IPCP, 2, id, &options);
    line.expect_silence();
    assert!(line.is_up(Family::Ipv4));
    // Another address is corrected; if the peer then falls silent, the family is down.
    line.send(IPCP, 1, 21, &[3, 6, 10, 0, 0, 1]);
    line.expect_kind(IPCP, 1);
    line.expect_packet(IPCP, 3, 21, &home_ipcp());
    line.pass(30 * SECOND);
    assert!(line.take_outputs().contains(&Output::Down(Family::Ipv4)));
    assert!(line.is_up(Family::Ipv6));
}

#[test]
fn a_peer_without_ipv6_says_so_and_stays() {
    let mut line = Line::new();
    line.authenticate(grant());
    let outputs = line.take_outputs();
    let frames: Vec<_> = outputs.iter().map(ppp_of).collect();
    let [Some(ipcp), Some(ipv6cp)] = frames[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(ipv6cp[..2], [0x80, 0x57]);
    line.send(LCP, 8, 1, ipv6cp);
    line.send(IPCP, 2, ipcp[3], &ipcp[6..]);
    line.send(IPCP, 1, 7, &home_ipcp());
    line.expect(Output::Install(Family::Ipv4));
    line.command(Command::Installed(Family::Ipv4));
    line.pass(25 * SECOND);
    let outputs = line.take_outputs();
    assert!(
        outputs
            .iter()
            .filter_map(ppp_of)
            .all(|frame| frame[..2] != [0x80, 0x57]),
        "asked again"
    );
    assert!(line.is_up(Family::Ipv4));
}

#[test]
fn rejected_ncp_options_are_left_out() {
    let mut line = Line::new();
    line.authenticate(ipv4_only());
    let (id, options) = line.expect_kind(IPCP, 1);
    line.send(IPCP, 4, id, &options);
    let (id, options) = line.expect_kind(IPCP, 1);
    assert!(options.is_empty());
    line.send(IPCP, 2, id, &[]);
    // Compression and NetBIOS are not ours to give.
    line.send(
        IPCP,
        1,
        1,
        &[
            2, 6, 0, 0x2d, 15, 1, 3, 6, 100, 64, 0, 7, 130, 6, 0, 0, 0, 0,
        ],
    );
    line.expect_packet(IPCP, 4, 1, &[2, 6, 0, 0x2d, 15, 1, 130, 6, 0, 0, 0, 0]);
}

fn ipv6_frame(source: &str, destination: &str, message: Message) -> Vec<u8> {
    let mut frame = vec![0x00, 0x57];
    Packet {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        message,
    }
    .emit(&mut frame);
    frame
}

fn expect_ra(line: &mut Line) -> Packet {
    let (packet, ra) = line.expect_advertisement();
    assert_eq!(ra.router_lifetime, 1800);
    let Opt::Prefix(prefix) = ra.options[0] else {
        panic!()
    };
    assert_eq!(
        (prefix.prefix.to_string().as_str(), prefix.length),
        ("2001:db8:0:7::", 64)
    );
    assert!(prefix.autonomous && prefix.valid_lifetime > prefix.preferred_lifetime);
    assert_eq!(
        ra.options[1],
        Opt::Rdnss {
            lifetime: 1800,
            servers: vec!["2620:fe::fe".parse().unwrap()]
        }
    );
    packet
}

#[test]
fn the_prefix_is_released_only_when_its_rules_are_installed() {
    let mut line = Line::new();
    line.authenticate(ipv6_only());
    line.negotiate_ipv6cp();
    let solicitation = ipv6_frame(
        "fe80::9",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    );
    line.send_discarded(&solicitation);
    line.command(Command::Installed(Family::Ipv6));
    let ra = expect_ra(&mut line);
    assert_eq!(
        (
            ra.source.to_string().as_str(),
            ra.destination.to_string().as_str()
        ),
        ("fe80::1234", "fe80::9")
    );
    line.expect(Output::Up(Family::Ipv6));
    line.send_frame(&solicitation);
    assert_eq!(expect_ra(&mut line).destination.to_string(), "fe80::9");
    line.send_frame(&ipv6_frame(
        "fe80::77",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    ));
    assert_eq!(expect_ra(&mut line).destination.to_string(), "fe80::77");
    line.send_frame(&ipv6_frame(
        "::",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    ));
    assert_eq!(expect_ra(&mut line).destination.to_string(), "fe80::9");
}

#[test]
fn advertisements_are_repeated() {
    let mut line = Line::open_with(SessionConfig {
        echo_interval: Duration::ZERO,
        ..SessionConfig::default()
    });
    for nth in 1..8 {
        let before = line.now;
        line.pass_to_next();
        let gap = line.now - before;
        let (low, high) = if nth <= 3 {
            (Duration::ZERO, 16 * SECOND)
        } else {
            (RA_INTERVAL / 3, RA_INTERVAL)
        };
        assert!((low..=high).contains(&gap), "{nth}: {gap:?}");
        expect_ra(&mut line);
    }
}

#[test]
fn who_is_not_on_the_link_gets_no_advertisement_and_without_ipv6_nobody_does() {
    let mut line = Line::open_with(SessionConfig {
        echo_interval: Duration::ZERO,
        ..SessionConfig::default()
    });
    let solicit = |source| {
        let message = Message::RouterSolicitation { options: vec![] };
        ipv6_frame(source, "ff02::2", message)
    };
    assert_eq!(
        line.send_discarded(&solicit("2001:db8:0:7::9")),
        "ND from a source that is not link-local"
    );
    // RFC 4861 §6.1.1: it has crossed a router
    let mut routed = solicit("fe80::9");
    routed[9] -= 1;
    line.send_discarded(&routed);
    line.send(IPV6CP, 5, 11, &[]);
    line.expect_packet(IPV6CP, 6, 11, &[]);
    line.expect(Output::Down(Family::Ipv6));
    assert_eq!(
        line.send_discarded(&solicit("fe80::9")),
        "IPv6 packet before IPv6 is up"
    );
    line.pass(2 * RA_INTERVAL);
    line.expect_silence();
}

/// Prefixes of the next Router Advertisement, with their valid and preferred lifetimes.
fn advertised(line: &mut Line) -> Vec<(String, u32, u32)> {
    let (_, ra) = line.expect_advertisement();
    let prefixes = ra.options.into_iter().filter_map(|option| match option {
        Opt::Prefix(p) => Some((p.prefix.to_string(), p.valid_lifetime, p.preferred_lifetime)),
        _ => None,
    });
    prefixes.collect()
}

/// The grant of a session with these prefixes of its link; without any, none of IPv6.
fn with_links(prefixes: impl IntoIterator<Item = Ipv6Net>) -> Grant {
    let links = prefixes.into_iter().map(Binding::link);
    let bindings = Bindings::new(links).unwrap();
    let ipv6 = grant().ipv6.filter(|_| !bindings.is_empty());
    let ipv6 = ipv6.map(|ipv6| Ipv6Grant { bindings, ..ipv6 });
    Grant { ipv6, ..grant() }
}

#[test]
fn other_prefixes_are_advertised_at_once_and_the_old_ones_withdrawn_three_times() {
    let mut line = Line::open_with(SessionConfig {
        echo_interval: Duration::ZERO,
        ..SessionConfig::default()
    });
    let prefix = |n: u16| format!("2001:db8:0:{n}::");
    let set = |line: &mut Line, prefixes: &[u16]| {
        let prefixes = prefixes.iter().map(|n| format!("{}/64", prefix(*n)));
        let prefixes = prefixes.map(|prefix| prefix.parse().unwrap());
        line.command(Command::SetGrant(with_links(prefixes)));
    };
    let lives = |n: u16| (prefix(n), 86_400, 14_400);
    let withdrawn = |n: u16| (prefix(n), 0, 0);
    set(&mut line, &[7, 8]);
    assert_eq!(advertised(&mut line), [lives(7), lives(8)]);
    line.pass_to_next();
    assert_eq!(advertised(&mut line), [lives(7), lives(8)]);
    set(&mut line, &[8, 9]);
    let both = [lives(8), lives(9), withdrawn(7)];
    assert_eq!(advertised(&mut line), both);
    let solicitation = ipv6_frame(
        "fe80::9",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    );
    for _ in 0..2 {
        line.send_frame(&solicitation);
        assert_eq!(advertised(&mut line), both, "who asks is told, too");
        let before = line.now;
        line.pass_to_next();
        assert!(line.now - before <= 16 * SECOND);
        assert_eq!(advertised(&mut line), both);
    }
    line.pass_to_next();
    assert_eq!(advertised(&mut line), both[..2]);
    // one that comes back is withdrawn no more
    set(&mut line, &[9]);
    assert_eq!(advertised(&mut line), [lives(9), withdrawn(8)]);
    set(&mut line, &[8]);
    assert_eq!(advertised(&mut line), [lives(8), withdrawn(9)]);
}

#[test]
fn who_begins_ppp_anew_without_a_prefix_is_told_that_it_is_gone() {
    let mut line = Line::open();
    line.command(Command::SetGrant(with_links([
        "2001:db8:0:7::/64".parse().unwrap(),
        "2001:db8:0:8::/64".parse().unwrap(),
    ])));
    assert_eq!(advertised(&mut line).len(), 2);
    line.send(LCP, 1, 50, &home_lcp());
    let outputs = line.take_outputs();
    let mut frames = outputs.iter().filter_map(ppp_of);
    let request = frames.find(|frame| frame[2] == 1).unwrap();
    line.send(LCP, 2, request[3], &request[6..]);
    let attempt = line.answer_challenge();
    let reply = accept(ipv6_only());
    line.command(Command::Auth { attempt, reply });
    line.expect_kind(CHAP, 3);
    line.negotiate_ipv6cp();
    line.command(Command::Installed(Family::Ipv6));
    let told = advertised(&mut line);
    let gone = ("2001:db8:0:8::".to_owned(), 0, 0);
    assert_eq!((told.len(), &told[1]), (2, &gone), "{told:?}");
}

#[test]
fn the_gateway_answers_for_its_own_address_only() {
    let mut line = Line::open();
    let target = "fe80::1234".parse().unwrap();
    let ask = |target| Message::NeighborSolicitation {
        target,
        options: vec![],
    };
    line.send_frame(&ipv6_frame("fe80::9", "ff02::1:ff00:1234", ask(target)));
    let answer = Packet::parse(&line.expect_ipv6()).unwrap();
    let na = |solicited| Message::NeighborAdvertisement {
        router: true,
        solicited,
        override_cache: true,
        target,
        options: vec![],
    };
    assert_eq!(
        (answer.message, answer.destination),
        (na(true), "fe80::9".parse().unwrap())
    );
    line.send_frame(&ipv6_frame("::", "ff02::1:ff00:1234", ask(target)));
    let answer = Packet::parse(&line.expect_ipv6()).unwrap();
    assert_eq!(
        (answer.message, answer.destination),
        (na(false), "ff02::1".parse().unwrap())
    );
    line.send_discarded(&ipv6_frame(
        "::",
        "ff02::1:ff00:9",
        ask("fe80::9".parse().unwrap()),
    ));
    line.send_discarded(&ipv6_frame("fe80::9", "ff02::1", na(false)));
    line.send_discarded(&ipv6_frame(
        "2001:db8::1",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    ));
}

#[test]
fn a_family_that_was_lost_while_the_peer_was_out_of_reach_is_asked_for_when_it_is_heard() {
    let mut line = Line::open();
    line.send(IPCP, 1, 20, &home_ipcp());
    line.pass(30 * SECOND);
    assert!(line.take_outputs().contains(&Output::Down(Family::Ipv4)));
    line.send(LCP, 10, 1, &HOME_MAGIC);
    let (id, options) = line.expect_kind(IPCP, 1);
    line.expect_silence();
    line.send(IPCP, 2, id, &options);
    line.send(IPCP, 1, 21, &home_ipcp());
    line.expect(Output::Install(Family::Ipv4));
    line.command(Command::Installed(Family::Ipv4));
    line.expect_packet(IPCP, 2, 21, &home_ipcp());
    line.expect(Output::Up(Family::Ipv4));
    // One that hung up this family itself is left alone.
    line.send(IPCP, 5, 22, &[]);
    line.expect_packet(IPCP, 6, 22, &[]);
    line.expect(Output::Down(Family::Ipv4));
    line.pass(3 * SECOND);
    line.take_outputs();
    line.send(LCP, 10, 2, &HOME_MAGIC);
    line.expect_silence();
}

#[test]
fn a_family_whose_peer_may_believe_it_open_is_asked_for_when_it_is_heard() {
    let mut line = Line::new();
    line.authenticate(ipv6_only());
    line.send(IPV6CP, 1, 7, &home_ipv6cp());
    line.pass(30 * SECOND);
    line.take_outputs();
    line.send(LCP, 10, 1, &HOME_MAGIC);
    let (id, options) = line.expect_kind(IPV6CP, 1);
    line.send(IPV6CP, 2, id, &options);
    line.send(IPV6CP, 1, 8, &home_ipv6cp());
    line.expect_packet(IPV6CP, 2, 8, &home_ipv6cp());
    assert_eq!(line.next(), Output::Install(Family::Ipv6));
}

#[test]
fn a_family_that_the_peer_never_asked_for_is_left_alone() {
    let mut line = Line::new();
    line.authenticate(grant());
    let mut outputs = line.take_outputs();
    outputs.pop(); // our request for IPv6, which is never answered
    line.push(outputs);
    line.open_ipcp();
    line.pass(31 * SECOND);
    line.take_outputs();
    line.send(LCP, 10, 1, &HOME_MAGIC);
    line.expect_silence();
}

#[test]
fn an_open_session_goes_on_after_a_restart() {
    let line = Line::open();
    let snapshot = line.link.snapshot().unwrap();
    let text = serde_json::to_string(&snapshot).unwrap();
    let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
    // The clock of another process starts elsewhere.
    let now = Duration::from_secs(5);
    let mut line = Line::around(restored(snapshot.clone(), now), now);
    assert_eq!(line.link.snapshot(), Some(snapshot));
    line.expect_silence();
    assert!(line.is_up(Family::Ipv4) && line.is_up(Family::Ipv6));
    assert_eq!(line.link.status().mtu, 1492);
    line.send(LCP, 9, 1, &HOME_MAGIC);
    line.expect_packet(LCP, 10, 1, &OUR_MAGIC.to_be_bytes());
    line.send_frame(&ipv6_frame(
        "fe80::9",
        "ff02::2",
        Message::RouterSolicitation { options: vec![] },
    ));
    assert_eq!(expect_ra(&mut line).source.to_string(), "fe80::1234");
    line.pass(30 * SECOND);
    line.expect_kind(LCP, 9);
    // The peer never saw our Configure-Ack: it asks again, and gets it.
    line.send(IPCP, 1, 30, &home_ipcp());
    line.expect_kind(IPCP, 1);
    line.expect_packet(IPCP, 2, 30, &home_ipcp());
    line.send(LCP, 5, 9, &[]);
    line.pass(3 * SECOND);
    assert!(
        line.take_outputs()
            .contains(&Output::Closed(Cause::UserRequest))
    );
}

#[test]
fn a_peer_that_begins_anew_after_a_restart_is_asked_as_often_as_ever() {
    let line = Line::open();
    let snapshot = line.link.snapshot().unwrap();
    let mut line = Line::around(restored(snapshot, line.now), line.now);
    line.send(IPCP, 1, 30, &home_ipcp());
    let (id, _) = line.expect_kind(IPCP, 1);
    line.expect_packet(IPCP, 2, 30, &home_ipcp());
    // Its Ack is lost: we ask again, and nothing has ended.
    line.pass(3 * SECOND);
    assert_eq!(line.expect_kind(IPCP, 1).0, id);
    line.expect_silence();
    assert!(line.is_up(Family::Ipv4));
}

/// A verdict is on an attempt: one from before a restart must not be taken for the verdict on a later attempt.
#[test]
fn attempts_are_counted_on_after_a_restart() {
    let line = Line::open();
    let first = line.link.snapshot().unwrap();
    assert_eq!(first.auth_attempt, 1);
    let mut line = Line::around(restored(first.clone(), line.now), line.now);
    assert_eq!(line.link.snapshot(), Some(first));
    // The peer begins anew.
    line.send(LCP, 1, 50, &home_lcp());
    let outputs = line.take_outputs();
    let mut frames = outputs.iter().filter_map(ppp_of);
    let request = frames.find(|frame| frame[..3] == [0xc0, 0x21, 1]).unwrap();
    line.send(LCP, 2, request[3], &request[6..]);
    assert_eq!(line.answer_challenge(), 2);
}

#[test]
fn a_family_that_was_not_up_is_negotiated_from_our_side_after_a_restart() {
    let mut line = Line::new();
    line.authenticate(grant());
    let ipv6cp = line.take_outputs();
    assert_eq!(ipv6cp.len(), 2);
    let snapshot = line.link.snapshot().unwrap();
    let mut line = Line::around(restored(snapshot, line.now), line.now);
    assert!(!line.is_up(Family::Ipv4));
    let (id, options) = line.expect_kind(IPCP, 1);
    line.expect_kind(IPV6CP, 1);
    line.send(IPCP, 1, 30, &home_ipcp());
    line.expect(Output::Install(Family::Ipv4));
    line.send(IPCP, 2, id, &options);
    line.command(Command::Installed(Family::Ipv4));
    line.expect_packet(IPCP, 2, 30, &home_ipcp());
    line.expect(Output::Up(Family::Ipv4));
}

#[test]
fn before_authentication_there_is_nothing_to_keep() {
    let mut line = Line::new();
    assert_eq!(line.link.snapshot(), None);
    line.open_lcp();
    assert_eq!(line.link.snapshot(), None);
}

/// One step of a storm.
#[derive(Clone, Debug)]
enum Step {
    Frame(Vec<u8>),
    Pass(u16),
    Verdict(bool),
    Installed(Family),
    Reauthenticate,
    Terminate,
    Padt,
    /// Gives the session's own last frame back as an answer: an Ack, a Nak, a Reject, or itself.
    Echo(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let protocols = vec![LCP, LCP, PAP, CHAP, IPCP, IPV6CP, 0x0057, 0x80fd];
    let options = prop::sample::select(vec![
        home_lcp(),
        home_ipcp(),
        home_ipv6cp(),
        vec![],
        vec![1, 1],
        vec![1, 4, 5, 220],
    ]);
    prop_oneof![
        8 => (prop::sample::select(protocols.clone()), 1u8..13, any::<u8>(), options).prop_map(|(p, c, i, d)| Step::Frame(packet(p, c, i, &d))),
        2 => (prop::sample::select(protocols), any::<Vec<u8>>()).prop_map(|(p, d)| Step::Frame([&p.to_be_bytes()[..], &d].concat())),
        1 => any::<Vec<u8>>().prop_map(Step::Frame),
        4 => any::<u16>().prop_map(Step::Pass),
        3 => any::<bool>().prop_map(Step::Verdict),
        4 => prop_oneof![Just(Family::Ipv4), Just(Family::Ipv6)].prop_map(Step::Installed),
        2 => Just(Step::Reauthenticate),
        1 => Just(Step::Terminate),
        1 => Just(Step::Padt),
        12 => (1u8..5).prop_map(Step::Echo),
    ]
}

/// What the owner of a session may rely on, whatever the peer does.
#[derive(Default)]
struct Promises {
    installed: [Option<bool>; 2],
    closed: bool,
    last: Vec<u8>,
    attempt: u8,
}

impl Promises {
    fn keep(&mut self, output: Output) {
        assert!(!self.closed, "{output:?} after Closed");
        let slot = |f: Family| f as usize;
        if let Some(frame) = ppp_of(&output) {
            self.last = frame.to_vec();
        }
        match output {
            Output::Install(f) => assert_eq!(self.installed[slot(f)].replace(false), None),
            Output::Up(f) => assert_eq!(self.installed[slot(f)], Some(true), "up before its rules"),
            Output::Down(f) => assert!(
                self.installed[slot(f)].take().is_some(),
                "down without install"
            ),
            Output::Authenticate(request) => self.attempt = request.attempt,
            Output::Frame(_) => {}
            Output::Closed(_) => {
                assert_eq!(self.installed, [None; 2], "rules left behind");
                self.closed = true;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whatever_the_peer_does_the_promises_hold(steps in prop::collection::vec(step(), 1..60), open: bool) {
        let mut line = if open { Line::open() } else { Line::new() };
        let mut promises = Promises { installed: [open.then_some(true); 2], ..Promises::default() };
        for step in steps {
            for output in line.take_outputs() {
                promises.keep(output);
            }
            let command = match step {
                Step::Frame(frame) => {
                    let _ = line.pass_frame(&frame);
                    None
                }
                Step::Pass(millis) => {
                    line.pass(Duration::from_millis(millis.into()));
                    continue;
                }
                Step::Verdict(good) => Some(Command::Auth {
                    attempt: promises.attempt,
                    reply: if good { accept(grant()) } else { AuthReply::Reject { message: vec![1; 300], error: None } },
                }),
                Step::Installed(family) => {
                    if let Some(done) = &mut promises.installed[family as usize] {
                        *done = true;
                    }
                    Some(Command::Installed(family))
                }
                Step::Reauthenticate => Some(Command::Reauthenticate),
                Step::Terminate => Some(Command::Terminate(Cause::AdminReset)),
                Step::Padt => {
                    let _ = line.send_padt();
                    None
                }
                Step::Echo(code) => {
                    if let Some(octet) = promises.last.get_mut(2) {
                        *octet = code;
                    }
                    let _ = line.pass_frame(&promises.last);
                    None
                }
            };
            if let Some(command) = command {
                let _ = line.link.command(line.now, command);
            }
            line.pass(Duration::ZERO);
            while let Some(output) = line.link.poll_output() {
                promises.keep(output);
            }
            prop_assert!(line.link.poll_at().is_none_or(|at| at > line.now));
        }
        // Nothing lives for ever that the operator has ended.
        let _ = line.link.command(line.now, Command::Terminate(Cause::AdminReset));
        while let Some(output) = line.link.poll_output() {
            promises.keep(output);
        }
        line.pass(Duration::from_secs(10));
        for output in line.take_outputs() {
            promises.keep(output);
        }
        prop_assert!(promises.closed);
        prop_assert_eq!(line.link.poll_at(), None);
    }
}
