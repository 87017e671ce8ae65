//! DHCPv6 on a session's link, by scripts.
use crate::support::*;
use policy::Role;
use session::*;
use std::time::Duration;
use wire::dhcpv6::{self, reconfigure};
use wire::udp::Datagram;

/// A message from a client's port to a server's, in PPP.
fn dhcpv6_frame(source: &str, destination: &str, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0x57];
    let datagram = Datagram {
        source_port: 546,
        destination_port: 547,
        payload: message,
    };
    datagram.emit_packet_v6(
        source.parse().unwrap(),
        destination.parse().unwrap(),
        &mut frame,
    );
    frame
}

fn without_leases(grant: &mut Ipv6Grant) {
    replace(grant, Role::Host, []);
    replace(grant, Role::Delegated, []);
}

fn with_leases() -> Grant {
    let mut grant = ipv6_only();
    let ipv6 = grant.ipv6.as_mut().unwrap();
    replace(ipv6, Role::Host, ["2001:db8:5::7/128"]);
    replace(ipv6, Role::Delegated, ["2001:db8:7700::/56"]);
    grant
}

/// Solicit with Rapid Commit, client identifier and IA_PD 2.
const SOLICIT: &[u8] = &[
    1, 0, 0, 5, 0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 9, 0, 14, 0, 0, 0, 25, 0, 12, 0, 0, 0, 2,
    0, 0, 0, 0, 0, 0, 0, 0,
];

#[test]
fn a_prefix_is_told_by_dhcpv6_only_when_its_rules_are_installed() {
    let mut line = Line::new();
    line.authenticate(with_leases());
    line.negotiate_ipv6cp();
    let solicit = dhcpv6_frame("fe80::9", "ff02::1:2", SOLICIT);
    assert_eq!(
        line.send_discarded(&solicit),
        "IPv6 packet before IPv6 is up"
    );
    line.command(Command::Installed(Family::Ipv6));
    let (_, ra) = line.expect_advertisement();
    assert!(ra.managed && ra.other);
    line.expect(Output::Up(Family::Ipv6));
    line.send_frame(&solicit);
    let reply = line.expect_ipv6();
    // from the gateway's link-local address and port 547 to the client's and 546
    assert_eq!(reply[6..8], [17, 64]);
    assert_eq!((reply[23], reply[39]), (0x34, 9));
    assert_eq!(reply[40..44], [2, 35, 2, 34]);
    assert_eq!(reply[48..52], [7, 0, 0, 5]);
    let prefix = [
        26, 0, 25, 0, 0, 0x38, 0x40, 0, 1, 0x51, 0x80, 56, 0x20, 1, 0x0d, 0xb8, 0x77, 0,
    ];
    assert!(reply.windows(prefix.len()).any(|octets| octets == prefix));
}

#[test]
fn flags_of_advertisements_say_what_dhcpv6_has() {
    let flags = |change: fn(&mut Ipv6Grant)| {
        let mut grant = with_leases();
        change(grant.ipv6.as_mut().unwrap());
        let mut line = Line::new();
        line.authenticate(grant);
        let ra = line.open_ipv6cp();
        (ra.managed, ra.other)
    };
    assert_eq!(flags(|_| {}), (true, true));
    assert_eq!(flags(|grant| replace(grant, Role::Host, [])), (false, true));
    assert_eq!(
        flags(|grant| replace(grant, Role::Delegated, [])),
        (true, true)
    );
    assert_eq!(flags(without_leases), (false, false));
}

#[test]
fn dhcpv6_with_a_wrong_checksum_or_address_is_discarded() {
    let mut line = Line::new();
    line.authenticate(with_leases());
    line.open_ipv6cp();
    for (source, destination, why) in [
        (
            "::",
            "ff02::1:2",
            "DHCPv6 from a source that gets no answer",
        ),
        (
            "ff02::1",
            "ff02::1:2",
            "DHCPv6 from a source that gets no answer",
        ),
        (
            "fe80::9",
            "ff05::1:3",
            "DHCPv6 to an address that is not ours",
        ),
        (
            "fe80::9",
            "fe80::77",
            "DHCPv6 to an address that is not ours",
        ),
        (
            "fe80::9",
            "fe80::1234",
            "DHCPv6 message to all servers that is unicast",
        ),
    ] {
        assert_eq!(
            line.send_discarded(&dhcpv6_frame(source, destination, SOLICIT)),
            why
        );
    }
    let good = dhcpv6_frame("fe80::9", "ff02::1:2", SOLICIT);
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(line.send_discarded(&bad), "UDP checksum is wrong");
    let mut other_port = good.clone();
    (other_port[45], other_port[49]) = (other_port[45] + 1, other_port[49].wrapping_sub(1));
    line.send_discarded(&other_port);
    line.send_frame(&good);
    line.expect_ipv6();
}

#[test]
fn another_grant_counts_from_the_next_message_on() {
    let mut line = Line::new();
    line.authenticate(with_leases());
    line.open_ipv6cp();
    let mut grant = with_leases();
    let ipv6 = grant.ipv6.as_mut().unwrap();
    replace(ipv6, Role::Delegated, ["2001:db8:8800::/56"]);
    line.command(Command::SetGrant(grant));
    line.send_frame(&dhcpv6_frame("fe80::9", "ff02::1:2", SOLICIT));
    let reply = line.expect_ipv6();
    let holds = |prefix: &[u8]| reply.windows(prefix.len()).any(|octets| octets == prefix);
    assert!(holds(&[56, 0x20, 1, 0x0d, 0xb8, 0x88, 0]));
    assert!(!holds(&[56, 0x20, 1, 0x0d, 0xb8, 0x77, 0]));
}

/// A message of a client that takes Reconfigure messages.
fn with_accept(message: &[u8]) -> Vec<u8> {
    [message, &[0, 20, 0, 0]].concat()
}

/// IA_PD 2 without a prefix.
const IA_PD: [u8; 16] = [0, 25, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
/// Information-request of the same client.
const INFORMATION_REQUEST: &[u8] = &[11, 0, 0, 7, 0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 9];

/// Renew of the same client to this server.
fn renew(options: &[u8]) -> Vec<u8> {
    let client = [
        5, 0, 0, 6, 0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 9, 0, 2, 0, 18,
    ];
    let duid = SessionConfig::default().dhcp.duid;
    [&client[..], duid.as_bytes(), options].concat()
}

/// The answer to a message.
#[track_caller]
fn ask(line: &mut Line, message: &[u8]) -> Vec<u8> {
    line.send_frame(&dhcpv6_frame("fe80::9", "ff02::1:2", message));
    expect_dhcpv6(line)
}

/// The key that a Reply gives, and its number against replay.
fn key_of(reply: &[u8]) -> ([u8; 16], u64) {
    reconfigure::key_of(&dhcpv6::Message::parse(reply).unwrap()).expect("a key")
}

/// Message types that the Reconfigure messages ask for which the link has sent.
fn reconfigured(line: &mut Line) -> Vec<u8> {
    let outputs = line.take_outputs();
    let packets = outputs.iter().filter_map(ppp_of);
    let messages = packets.filter_map(|frame| match frame {
        [0, 0x57, packet @ ..] if packet[6] == 17 => Some(&packet[48..]),
        _ => None,
    });
    let asked = messages.map(|message| {
        let at = message.windows(4).position(|code| code == [0, 19, 0, 1]);
        message[at.expect("a Reconfigure") + 4]
    });
    asked.collect()
}

/// Message of the packet that the link sends next.
fn expect_dhcpv6(line: &mut Line) -> Vec<u8> {
    let packet = line.expect_ipv6();
    assert_eq!(packet[40..44], [2, 35, 2, 34]);
    packet[48..].to_vec()
}

fn renumbered(prefix: &str) -> Grant {
    let mut grant = with_leases();
    replace(grant.ipv6.as_mut().unwrap(), Role::Delegated, [prefix]);
    grant
}

fn quiet_config() -> SessionConfig {
    SessionConfig {
        echo_interval: Duration::ZERO,
        ra: RaConfig {
            interval: Duration::from_secs(1_000_000),
            ..RaConfig::default()
        },
        ..SessionConfig::default()
    }
}

/// A line with leases on which nothing is sent by itself: the first advertisements are over.
fn quiet_line() -> Line {
    let mut line = Line::with(quiet_config());
    line.authenticate(with_leases());
    line.open_ipv6cp();
    line.pass(60 * SECOND);
    line.take_outputs();
    line
}

#[test]
fn a_changed_prefix_is_told_by_reconfigure_until_the_client_renews_rfc8415_18_3_11() {
    let mut line = quiet_line();
    let reply = ask(&mut line, &with_accept(SOLICIT));
    let (key, first) = key_of(&reply);

    line.command(Command::SetGrant(with_leases()));
    line.expect_silence();
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    let mut last = first;
    for pause in [0, 2, 4, 8, 16] {
        line.pass(pause * SECOND);
        let message = expect_dhcpv6(&mut line);
        assert_eq!(message[..4], [10, 0, 0, 0]);
        assert!(message.windows(5).any(|octets| octets == [0, 19, 0, 1, 5]));
        assert!(reconfigure::is_signed(&message, &key));
        let at = message.len() - 17 - 8;
        let replay = u64::from_be_bytes(message[at..at + 8].try_into().unwrap());
        assert!(replay > last);
        last = replay;
        line.expect_silence();
    }
    ask(&mut line, &renew(&IA_PD));
    line.pass(600 * SECOND);
    line.expect_silence();
    // it has not said again that it takes them
    line.command(Command::SetGrant(renumbered("2001:db8:9900::/56")));
    line.expect_silence();
}

#[test]
fn a_client_that_does_not_answer_gets_eight_of_them_rfc8415_7_6() {
    let mut line = quiet_line();
    ask(&mut line, &with_accept(SOLICIT));
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    line.pass(3600 * SECOND);
    assert_eq!(line.take_outputs().len(), 8);
}

#[test]
fn a_client_that_takes_no_reconfigure_gets_neither_key_nor_message() {
    let mut line = quiet_line();
    line.send_frame(&dhcpv6_frame("fe80::9", "ff02::1:2", SOLICIT));
    let reply = expect_dhcpv6(&mut line);
    let reply = dhcpv6::Message::parse(&reply).unwrap();
    assert_eq!(reconfigure::key_of(&reply), None);
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    line.pass(60 * SECOND);
    line.expect_silence();
}

/// A line whose client waits for a prefix that has changed: a Reconfigure has told it to renew.
fn told_to_renew() -> Line {
    let mut line = quiet_line();
    ask(&mut line, &with_accept(SOLICIT));
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
    line
}

#[test]
fn an_information_request_does_not_end_a_reconfigure_that_asks_for_a_renew_rfc8415_18_3_11() {
    for information in [
        INFORMATION_REQUEST.to_vec(),
        with_accept(INFORMATION_REQUEST),
    ] {
        let mut line = told_to_renew();
        ask(&mut line, &information);
        line.pass(2 * SECOND);
        assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
        ask(&mut line, &with_accept(&renew(&IA_PD)));
        line.pass(600 * SECOND);
        line.expect_silence();
        // a client with leases is told to renew, whatever else it has asked for
        ask(&mut line, &information);
        line.command(Command::SetGrant(renumbered("2001:db8:9900::/56")));
        assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
    }
}

#[test]
fn a_renew_does_not_end_a_reconfigure_that_asks_for_an_information_request_rfc8415_18_3_11() {
    let mut line = quiet_line();
    ask(&mut line, &with_accept(INFORMATION_REQUEST));
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    assert_eq!(reconfigured(&mut line), [dhcpv6::INFORMATION_REQUEST]);
    ask(&mut line, &with_accept(&renew(&IA_PD)));
    line.pass(2 * SECOND);
    assert_eq!(reconfigured(&mut line), [dhcpv6::INFORMATION_REQUEST]);
    ask(&mut line, &with_accept(INFORMATION_REQUEST));
    line.pass(600 * SECOND);
    line.expect_silence();
    // with leases it renews
    ask(&mut line, &with_accept(&renew(&IA_PD)));
    line.command(Command::SetGrant(renumbered("2001:db8:9900::/56")));
    assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
}

#[test]
fn a_reconfigure_waits_while_ipv6cp_is_negotiated_again() {
    let mut line = told_to_renew();
    let renegotiate = |line: &mut Line| {
        line.send(IPV6CP, 1, 20, &home_ipv6cp());
        let (id, options) = line.expect_kind(IPV6CP, 1);
        line.expect_packet(IPV6CP, 2, 20, &home_ipv6cp());
        (id, options)
    };
    let (id, options) = renegotiate(&mut line);
    line.pass(2 * SECOND);
    line.expect_silence();
    line.send(IPV6CP, 2, id, &options);
    assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);

    ask(&mut line, &with_accept(&renew(&IA_PD)));
    let (id, options) = renegotiate(&mut line);
    line.command(Command::SetGrant(renumbered("2001:db8:9900::/56")));
    line.expect_silence();
    line.send(IPV6CP, 2, id, &options);
    assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
}

#[test]
fn a_reconfigure_ends_with_ipv6cp() {
    let mut line = told_to_renew();
    line.send(IPV6CP, 5, 20, &[]);
    line.expect_packet(IPV6CP, 6, 20, &[]);
    line.expect(Output::Down(Family::Ipv6));
    line.pass(60 * SECOND);
    assert!(reconfigured(&mut line).is_empty());
    // the next client has not said yet that it takes them
    line.send(IPV6CP, 1, 21, &home_ipv6cp());
    let (id, options) = line.expect_kind(IPV6CP, 1);
    line.expect_packet(IPV6CP, 2, 21, &home_ipv6cp());
    line.send(IPV6CP, 2, id, &options);
    line.expect(Output::Install(Family::Ipv6));
    line.command(Command::Installed(Family::Ipv6));
    line.take_outputs();
    line.command(Command::SetGrant(renumbered("2001:db8:9900::/56")));
    assert!(reconfigured(&mut line).is_empty());
}

#[test]
fn a_renew_whose_answer_is_too_long_does_not_end_a_reconfigure() {
    let mut line = told_to_renew();
    let renew = with_accept(&renew(&IA_PD.repeat(60)));
    assert_eq!(
        line.send_discarded(&dhcpv6_frame("fe80::9", "ff02::1:2", &renew)),
        "DHCPv6 message whose answer is too long"
    );
    line.pass(2 * SECOND);
    assert_eq!(reconfigured(&mut line), [dhcpv6::RENEW]);
}

#[test]
fn numbers_against_replay_rise_though_the_clock_is_set_back_rfc8415_20_3() {
    let mut line = quiet_line();
    let at = |seconds| {
        let mut config = quiet_config();
        config.dhcp.epoch = Duration::from_secs(seconds);
        Command::Configure(config.into())
    };
    line.command(at(2_000_000));
    let (_, first) = key_of(&ask(&mut line, &with_accept(SOLICIT)));
    line.command(at(1_000_000));
    // forgotten in between
    ask(&mut line, SOLICIT);
    let (_, second) = key_of(&ask(&mut line, &with_accept(SOLICIT)));
    assert_eq!(second, first + 1);
}

#[test]
fn changed_flags_and_name_servers_are_advertised_at_once() {
    let mut line = quiet_line();
    let change = |line: &mut Line, change: fn(&mut Ipv6Grant)| {
        let mut grant = with_leases();
        change(grant.ipv6.as_mut().unwrap());
        line.command(Command::SetGrant(grant));
        let (_, ra) = line.expect_advertisement();
        line.expect_silence();
        ra
    };
    let ra = change(&mut line, |grant| replace(grant, Role::Host, []));
    assert_eq!((ra.managed, ra.other), (false, true));
    let ra = change(&mut line, without_leases);
    assert_eq!((ra.managed, ra.other), (false, false));
    let ra = change(&mut line, |grant| grant.dns = Box::default());
    assert_eq!(ra.options.len(), 1, "{ra:?}");
    // as often as at the beginning
    line.pass(60 * SECOND);
    assert_eq!(line.take_outputs().len(), 3);
    // other leases under the same flags are DHCPv6's
    line.command(Command::SetGrant(with_leases()));
    line.expect_advertisement();
    line.command(Command::SetGrant(renumbered("2001:db8:8800::/56")));
    line.expect_silence();
}
