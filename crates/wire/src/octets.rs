//! What each codec writes and reads, octet by octet, written by hand from the standards: both ends of most connections here
//! use these codecs, so a mistake that writing and reading share would not be noticed otherwise.

use crate::eth::{Frame, Header, MacAddr, Tag, Tags};
use crate::nd::{Message, PrefixInformation, RouterAdvertisement};
use crate::radius::{Code, Kind, Value};
use crate::*;
use core::fmt::Debug;
use core::net::Ipv6Addr;

/// The octets of a text in hexadecimal; what follows a `#` in a line is a comment.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap());
    let digits: Vec<u8> = lines
        .flat_map(|line| line.chars().filter_map(|c| c.to_digit(16)))
        .map(|digit| digit as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// `emit` writes these octets, and `parse` reads `value` from them.
fn agree<T: PartialEq + Debug>(
    text: &str,
    value: T,
    emit: impl Fn(&T, &mut Vec<u8>),
    parse: impl Fn(&'static [u8]) -> Result<T>,
) {
    let octets: &'static [u8] = hex(text).leak();
    let mut written = Vec::new();
    emit(&value, &mut written);
    assert_eq!(written, octets, "{value:?}");
    assert_eq!(parse(octets), Ok(value));
}

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn ethernet_with_tags() {
    let header = Header {
        destination: MacAddr::BROADCAST,
        source: MAC,
        tags: Tags {
            outer: Some(Tag {
                pcp: 6,
                dei: true,
                tpid: eth::TPID_8021AD,
                vid: 0x123,
            }),
            inner: Some(Tag::new(0xabc)),
        },
        ethertype: eth::PPPOE_DISCOVERY,
    };
    let octets: &'static [u8] = hex("
        ffffffffffff 020000000001
        88a8 d123            # IEEE 802.1Q §9.6: PCP 6, DEI 1, VID
        8100 0abc
        8863 09")
    .leak();
    let mut written = Vec::new();
    header.emit(&mut written);
    assert_eq!(written, octets[..22]);
    let payload = &[9][..];
    assert_eq!(Frame::parse(octets), Ok(Frame { header, payload }));
}

#[test]
fn arp_and_ip() {
    let request = arp::Packet {
        operation: arp::REQUEST,
        sender_mac: MAC,
        sender_ip: [192, 0, 2, 1].into(),
        target_mac: MacAddr::ZERO,
        target_ip: [192, 0, 2, 2].into(),
    };
    let octets = "0001 0800 06 04 0001 020000000001 c0000201 000000000000 c0000202"; // RFC 826
    agree(octets, request, |p, out| p.emit(out), arp::Packet::parse);
    let reply = arp::Packet {
        operation: arp::REPLY,
        ..request
    };
    let octets = "0001 0800 06 04 0002 020000000001 c0000201 000000000000 c0000202";
    agree(octets, reply, |p, out| p.emit(out), arp::Packet::parse);

    let ipv4 = ipv4::Packet {
        header: ipv4::Header {
            traffic_class: 0xb8,
            identification: 0x1234,
            dont_fragment: true,
            ttl: 64,
            ..ipv4::Header::new(ipv4::UDP, [192, 0, 2, 1].into(), [198, 51, 100, 5].into())
        },
        options: &[],
        payload: b"abcd",
    };
    // RFC 791 §3.1: DF is the second of the flags
    let octets = "45 b8 0018 1234 4000 40 11 3baf c0000201 c6336405 61626364";
    agree(octets, ipv4, |p, out| p.emit(out), ipv4::Packet::parse);

    let ipv6 = ipv6::Packet {
        header: ipv6::Header {
            traffic_class: 0xb8,
            flow_label: 0xabcde,
            hop_limit: 7,
            ..ipv6::Header::new(ipv6::UDP, address("2001:db8::1"), address("2001:db8::2"))
        },
        payload: b"ab",
    };
    let octets = "6b8abcde 0002 11 07              # RFC 8200 §3
        20010db8000000000000000000000001 20010db8000000000000000000000002 6162";
    agree(octets, ipv6, |p, out| p.emit(out), ipv6::Packet::parse);

    let datagram = udp::Datagram {
        source_port: 547,
        destination_port: 546,
        payload: b"hi",
    };
    let (from, to) = (address("fe80::1"), address("fe80::2"));
    agree(
        "0223 0222 000a 9627 6869", // RFC 768
        datagram,
        |d, out| d.emit_v6(from, to, out),
        |octets| udp::Datagram::parse_v6(octets, from, to),
    );
    let mut packet = Vec::new();
    datagram.emit_packet_v6(from, to, &mut packet);
    let octets = "60000000 000a 11 40              # RFC 8200 §3
        fe800000000000000000000000000001 fe800000000000000000000000000002 0223 0222 000a 9627 6869";
    assert_eq!(packet, hex(octets));

    let (from, to) = ([192, 0, 2, 1].into(), [198, 51, 100, 5].into());
    agree(
        "0223 0222 000a a6f1 6869",
        datagram,
        |d, out| d.emit_v4(from, to, out),
        |octets| udp::Datagram::parse_v4(octets, from, to),
    );
}

#[test]
fn icmp_errors() {
    let (from, to) = (address("fe80::1"), address("fe80::2"));
    let too_big = icmp::Message {
        kind: icmp::V6_TOO_BIG,
        code: 0,
        rest: 1492u32.to_be_bytes(),
        payload: &[0xaa, 0xbb],
    };
    agree(
        "02 00 5027 000005d4 aabb", // RFC 4443 §3.2: type 2, the MTU in the second word
        too_big,
        |m, out| m.emit_v6(from, to, out),
        |octets| icmp::Message::parse_v6(octets, from, to),
    );
    let needed = icmp::Message {
        kind: icmp::V4_UNREACHABLE,
        code: 4,
        ..too_big
    };
    agree(
        "03 04 4c6c 0000 05d4 aabb", // RFC 1191 §4: the MTU in the second half of the second word
        needed,
        |m, out| m.emit_v4(out),
        icmp::Message::parse_v4,
    );
    let numbers = [
        (icmp::V4_ECHO_REPLY, 0), // RFC 792
        (icmp::V4_ECHO_REQUEST, 8),
        (icmp::V4_TIME_EXCEEDED, 11),
        (icmp::V6_UNREACHABLE, 1), // RFC 4443
        (icmp::V6_TIME_EXCEEDED, 3),
        (icmp::V6_ECHO_REQUEST, 128),
        (icmp::V6_ECHO_REPLY, 129),
    ];
    assert!(numbers.iter().all(|(ours, standard)| ours == standard));
}

#[test]
fn neighbour_discovery() {
    let advertisement = RouterAdvertisement {
        hop_limit: 64,
        managed: true,
        other: true,
        router_lifetime: 1800,
        reachable_time: 30_000,
        retransmit_time: 1000,
        options: vec![
            nd::Opt::SourceLinkLayer(MAC),
            nd::Opt::Mtu(1492),
            nd::Opt::Prefix(PrefixInformation {
                prefix: address("2001:db8:0:1::"),
                length: 64,
                on_link: false,
                autonomous: true,
                valid_lifetime: 2_592_000,
                preferred_lifetime: 604_800,
            }),
            nd::Opt::Rdnss {
                lifetime: 1800,
                servers: vec![address("2001:db8::53")],
            },
        ],
        ..Default::default()
    };
    let packet = nd::Packet {
        source: address("fe80::1"),
        destination: address("ff02::1"),
        message: Message::RouterAdvertisement(advertisement),
    };
    let octets = "
        60000000 0058 3a ff fe800000000000000000000000000001 ff020000000000000000000000000001
        86 00 2669                   # RFC 4861 §4.2: type 134
        40 c0 0708                   # hop limit; M and O; router lifetime
        00007530 000003e8            # reachable time, retransmission time
        01 01 020000000001           # §4.6.1: source link-layer address
        05 01 0000 000005d4          # §4.6.4: MTU
        03 04 40 40                  # §4.6.2: length in bits; L bit 7, A bit 6
          00278d00 00093a80 00000000 # valid, preferred, reserved
          20010db8000000010000000000000000
        19 03 0000 00000708          # RFC 8106 §5.1: RDNSS
          20010db8000000000000000000000053";
    agree(octets, packet, |p, out| p.emit(out), nd::Packet::parse);

    let packet = nd::Packet {
        source: address("fe80::1"),
        destination: address("fe80::2"),
        message: Message::NeighborAdvertisement {
            router: true,
            solicited: true,
            override_cache: true,
            target: address("2001:db8::1"),
            options: vec![nd::Opt::TargetLinkLayer(MAC)],
        },
    };
    let octets = "
        60000000 0020 3a ff fe800000000000000000000000000001 fe800000000000000000000000000002
        88 00 68e3 e0000000          # RFC 4861 §4.4: type 136; R, S, O
        20010db8000000000000000000000001
        02 01 020000000001           # §4.6.1: target link-layer address";
    agree(octets, packet, |p, out| p.emit(out), nd::Packet::parse);
    assert_eq!(
        (nd::ROUTER_SOLICITATION, nd::NEIGHBOR_SOLICITATION),
        (133, 135)
    );
}

#[test]
fn discovery_of_pppoe() {
    let line = "0105 0011                    # Vendor-Specific
          00000de9                   # the Broadband Forum
          01 05 6f6c743031           # TR-101 §3.9.2: Agent Circuit ID
          02 04 6c6e3437             # Agent Remote ID";
    let line_data = &hex(line)[8..];
    let tags = vec![
        pppoe::Tag::ServiceName(b""),
        pppoe::Tag::AcName(b"bng"),
        pppoe::Tag::HostUniq(&[7, 8]),
        pppoe::Tag::AcCookie(&[9]),
        pppoe::Tag::RelaySessionId(&[1, 2]),
        pppoe::Tag::MaxPayload(1500),
        pppoe::Tag::Vendor(pppoe::VENDOR_BBF, line_data.to_vec().leak()),
    ];
    let packet = pppoe::Discovery {
        code: pppoe::PADR,
        session_id: 0,
        tags,
    };
    let octets = format!(
        "11 19 0000 0037             # RFC 2516 §4: version 1, type 1; PADR; session 0; length
        0101 0000                    # Service-Name, of any service
        0102 0003 626e67             # AC-Name
        0103 0002 0708               # Host-Uniq
        0104 0001 09                 # AC-Cookie
        0110 0002 0102               # Relay-Session-Id
        0120 0002 05dc               # RFC 4638: PPP-Max-Payload
        {line}"
    );
    agree(
        &octets,
        packet.clone(),
        |p, out| p.emit(out),
        pppoe::Discovery::parse,
    );
    let found = packet.access_line().unwrap();
    assert_eq!(found.circuit_id, Some(&b"olt01"[..]));
    assert_eq!(found.remote_id, Some(&b"ln47"[..]));

    let refused = pppoe::Discovery {
        code: pppoe::PADS,
        session_id: 0,
        tags: vec![
            pppoe::Tag::ServiceNameError(b"a"),
            pppoe::Tag::AcSystemError(b"b"),
            pppoe::Tag::GenericError(b"c"),
        ],
    };
    let octets = "11 65 0000 000f 0201 0001 61 0202 0001 62 0203 0001 63"; // RFC 2516 appendix A
    agree(
        octets,
        refused,
        |p, out| p.emit(out),
        pppoe::Discovery::parse,
    );
    let codes = [pppoe::PADI, pppoe::PADO, pppoe::PADT, pppoe::SESSION];
    assert_eq!(codes, [0x09, 0x07, 0xa7, 0x00]);
}

#[test]
fn options_of_lcp_ipcp_and_ipv6cp() {
    let emit_all = |options: &[lcp::Opt<'_>], out: &mut Vec<u8>| {
        options.iter().for_each(|option| option.emit(out));
    };
    // RFC 1661 §6.1, §6.2 and §6.4; RFC 1994 §3: CHAP c223 with algorithm 5, MD5
    agree(
        "01 04 05d4  03 05 c223 05  05 06 12345678",
        vec![
            lcp::Opt::Mru(1492),
            lcp::Opt::Auth(lcp::Auth::ChapMd5),
            lcp::Opt::Magic(0x1234_5678),
        ],
        |options, out| emit_all(options, out),
        lcp::Opt::parse_all,
    );
    agree(
        "03 05 c223 81", // RFC 2759 §3
        vec![lcp::Opt::Auth(lcp::Auth::MsChapV2)],
        |options, out| emit_all(options, out),
        lcp::Opt::parse_all,
    );
    agree(
        "03 04 c023", // RFC 1334 §2
        vec![lcp::Opt::Auth(lcp::Auth::Pap)],
        |options, out| emit_all(options, out),
        lcp::Opt::parse_all,
    );
    let servers = [1, 2, 3, 4, 5].map(|last| [192, 0, 2, last].into());
    let [own, dns, nbns, second_dns, second_nbns] = servers;
    agree(
        // RFC 1332 §3.3; RFC 1877 §1.1 to §1.4
        "03 06 c0000201  81 06 c0000202  82 06 c0000203  83 06 c0000204  84 06 c0000205",
        vec![
            ipcp::Opt::Address(own),
            ipcp::Opt::PrimaryDns(dns),
            ipcp::Opt::PrimaryNbns(nbns),
            ipcp::Opt::SecondaryDns(second_dns),
            ipcp::Opt::SecondaryNbns(second_nbns),
        ],
        |options, out| options.iter().for_each(|option| option.emit(out)),
        ipcp::Opt::parse_all,
    );
    agree(
        "01 0a 0200000000000007", // RFC 5072 §4.1
        vec![ipv6cp::Opt::InterfaceId(0x0200_0000_0000_0007)],
        |options, out| options.iter().for_each(|option| option.emit(out)),
        ipv6cp::Opt::parse_all,
    );
}

#[test]
fn packets_of_ppp() {
    let packet = ppp::Control {
        code: ppp::CONFIGURE_REQUEST,
        id: 9,
        data: &[1, 4, 5, 0xd4],
    };
    agree(
        "c021 01 09 0008 010405d4", // RFC 1661 §5.1, behind the protocol field
        packet,
        |p, out| p.emit(ppp::LCP, out),
        |octets| ppp::Control::parse(&octets[2..]),
    );
    let codes = [
        ppp::CONFIGURE_ACK,
        ppp::CONFIGURE_NAK,
        ppp::CONFIGURE_REJECT,
        ppp::TERMINATE_REQUEST,
        ppp::TERMINATE_ACK,
        ppp::CODE_REJECT,
        lcp::PROTOCOL_REJECT,
        lcp::ECHO_REQUEST,
        lcp::ECHO_REPLY,
        lcp::DISCARD_REQUEST,
    ];
    assert!(codes.into_iter().eq(2..=11), "RFC 1661 §5");
    let protocols = [ppp::IPV4, ppp::IPV6, ppp::IPCP, ppp::IPV6CP, ppp::CCP];
    assert_eq!(protocols, [0x0021, 0x0057, 0x8021, 0x8057, 0x80fd]);
    let request = pap::Packet::Request {
        id: 7,
        peer_id: b"ab",
        password: b"xyz",
    };
    agree(
        "c023 01 07 000b 02 6162 03 78797a", // RFC 1334 §2.2.1: name, then password
        request,
        |p, out| p.emit(out),
        |octets| pap::Packet::parse(&octets[2..]),
    );
    let refusal = pap::Packet::Nak {
        id: 7,
        message: b"no",
    };
    agree(
        "c023 03 07 0007 02 6e6f",
        refusal,
        |p, out| p.emit(out),
        |octets| pap::Packet::parse(&octets[2..]),
    );
    let challenge = chap::Packet::Challenge {
        id: 7,
        value: &[1, 2, 3],
        name: b"bng",
    };
    agree(
        "c223 01 07 000b 03 010203 626e67", // RFC 1994 §4.1: value, then name
        challenge,
        |p, out| p.emit(out),
        |octets| chap::Packet::parse(&octets[2..]),
    );
    let failure = chap::Packet::Failure {
        id: 7,
        message: b"no",
    };
    agree(
        "c223 04 07 0006 6e6f", // §4.2
        failure,
        |p, out| p.emit(out),
        |octets| chap::Packet::parse(&octets[2..]),
    );
}

#[test]
fn signalling_of_gtp_u() {
    let emit = |packet: &gtpu::Packet<'_>, out: &mut Vec<u8>| packet.emit(out).unwrap();
    agree(
        "30 ff 0002 00000010 6869", // TS 29.281 §5.1: version 1, PT; G-PDU; length; TEID
        gtpu::Packet::Gpdu {
            teid: 0x10,
            payload: b"hi",
        },
        emit,
        gtpu::Packet::parse,
    );
    agree(
        "32 01 0004 00000000 1234 00 00", // §7.2.1: with sequence number, TEID 0
        gtpu::Packet::EchoRequest { sequence: 0x1234 },
        emit,
        gtpu::Packet::parse,
    );
    agree(
        "32 02 0006 00000000 1234 00 00 0e00", // §7.2.2 and §8.2: Recovery 0
        gtpu::Packet::EchoResponse { sequence: 0x1234 },
        emit,
        gtpu::Packet::parse,
    );
    agree(
        "32 1a 0010 00000000 0000 00 00   # §7.3.1
        10 00000063                       # §8.3: TEID Data I
        85 0004 c0000202                  # §8.4: GTP-U Peer Address",
        gtpu::Packet::ErrorIndication {
            teid: 99,
            peer: [192, 0, 2, 2].into(),
        },
        emit,
        gtpu::Packet::parse,
    );
    let moved = gtpu::Packet::EndMarker { teid: 0x10 };
    agree("30 fe 0000 00000010", moved, emit, gtpu::Packet::parse); // §7.3.2
}

/// The attributes that say who was where and how much it was; FreeRADIUS reads them by its own dictionary elsewhere.
#[test]
fn attributes_of_radius() {
    let mut packet = radius::Packet::new(Code::ACCOUNTING_REQUEST, 3, [0xee; 16]);
    for (kind, number) in [
        (Kind::ACCT_INPUT_OCTETS, 0x11),
        (Kind::ACCT_OUTPUT_OCTETS, 0x22),
        (Kind::ACCT_INPUT_PACKETS, 0x33),
        (Kind::ACCT_OUTPUT_PACKETS, 0x44),
        (Kind::ACCT_INPUT_GIGAWORDS, 0x55),
        (Kind::ACCT_OUTPUT_GIGAWORDS, 0x66),
        (Kind::ACCT_SESSION_TIME, 0x77),
        (Kind::ACCT_TERMINATE_CAUSE, 9),
    ] {
        packet.push(kind, number);
    }
    packet.push(Kind::FRAMED_IP_ADDRESS, Value::Ipv4([100, 64, 0, 2].into()));
    let prefix = "2001:db8:0:7::/64".parse().unwrap();
    packet.push(Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(prefix));
    packet.push(Kind::FRAMED_INTERFACE_ID, Value::InterfaceId(7));
    packet.push(Kind::EVENT_TIMESTAMP, Value::Time(0x6553_f100));
    packet.push(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, b"olt");
    packet.push(Kind::ADSL_FORUM_AGENT_REMOTE_ID, b"ln");
    let octets = "
        04 03 007b eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee # RFC 2866 §3: Accounting-Request
        2a 06 00000011               # §5.3: Acct-Input-Octets, from the user
        2b 06 00000022               # §5.4: Acct-Output-Octets, to the user
        2f 06 00000033               # §5.8: Acct-Input-Packets
        30 06 00000044               # §5.9: Acct-Output-Packets
        34 06 00000055               # RFC 2869 §5.1: Acct-Input-Gigawords
        35 06 00000066               # RFC 2869 §5.2: Acct-Output-Gigawords
        2e 06 00000077               # §5.7: Acct-Session-Time
        31 06 00000009               # §5.10: Acct-Terminate-Cause, NAS Error
        08 06 64400002               # RFC 2865 §5.8: Framed-IP-Address
        61 0c 00 40 20010db800000007 # RFC 3162 §2.3: reserved, prefix length, as much of the prefix as it takes
        60 0a 0000000000000007       # RFC 3162 §2.2: Framed-Interface-Id
        37 06 6553f100               # RFC 2869 §5.3: Event-Timestamp
        1a 0b 00000de9 01 05 6f6c74  # RFC 4679 §3.3.1: Agent-Circuit-Id
        1a 0a 00000de9 02 04 6c6e    # RFC 4679 §3.3.2: Agent-Remote-Id";
    let emit = |packet: &radius::Packet, out: &mut Vec<u8>| packet.emit(out).unwrap();
    agree(octets, packet, emit, radius::Packet::parse);
}

#[test]
fn addresses_and_prefixes_of_dhcpv6() {
    use dhcpv6::{Auth, Ia, IaAddress, IaPrefix, Opt, Status, status};
    let address = dhcpv6::Opt::Address(IaAddress {
        address: address("2001:db8:5::7"),
        preferred_lifetime: 14_400,
        valid_lifetime: 86_400,
        options: Vec::new(),
    });
    let prefix = Opt::Prefix(IaPrefix {
        preferred_lifetime: 14_400,
        valid_lifetime: 86_400,
        length: 56,
        prefix: "2001:db8:7700::".parse().unwrap(),
        options: Vec::new(),
    });
    let association = |id, option| Ia {
        id,
        t1: 7200,
        t2: 11_520,
        options: vec![option],
    };
    let none = Opt::Status(Status {
        code: status::NO_PREFIX_AVAIL,
        message: b"no",
    });
    let key = Auth {
        protocol: Auth::RECONFIGURE_KEY,
        algorithm: 1,
        method: 0,
        replay: 9,
        information: &[1, 0xaa],
    };
    let reply = dhcpv6::Message {
        kind: dhcpv6::REPLY,
        transaction: 0x0a_0b0c,
        options: vec![
            Opt::ClientId(&[0, 3, 0, 1, 2, 0, 0, 0, 0, 9]),
            Opt::ServerId(&[0, 4, 1]),
            Opt::IaNa(association(1, address)),
            Opt::IaPd(association(2, prefix)),
            Opt::IaPd(association(3, none)),
            Opt::Preference(255),
            Opt::Auth(key),
            Opt::RapidCommit,
            Opt::ReconfigureAccept,
            Opt::DnsServers(vec!["2001:db8::53".parse().unwrap()]),
            Opt::SolMaxRt(3600),
            Opt::InfMaxRt(3600),
        ],
    };
    let octets = "
        07 0a0b0c                         # RFC 8415 §8: Reply
        0001 000a 00030001020000000009    # §21.2: DUID-LL
        0002 0003 000401                  # §21.3
        0003 0028 00000001 00001c20 00002d00 # §21.4: IAID, T1, T2
          0005 0018 20010db8000500000000000000000007 00003840 00015180 # §21.6: preferred, valid
        0019 0029 00000002 00001c20 00002d00 # §21.21
          001a 0019 00003840 00015180 38 20010db8770000000000000000000000 # §21.22: preferred, valid, length, prefix
        0019 0014 00000003 00001c20 00002d00
          000d 0004 0006 6e6f             # §21.13
        0007 0001 ff                      # §21.8
        000b 000d 03 01 00 0000000000000009 01aa # §21.11
        000e 0000                         # §21.14
        0014 0000                         # §21.20
        0017 0010 20010db8000000000000000000000053 # RFC 3646 §3
        0052 0004 00000e10                # §21.24
        0053 0004 00000e10                # §21.25";
    agree(octets, reply, |m, out| m.emit(out), dhcpv6::Message::parse);

    let request = dhcpv6::Message {
        kind: dhcpv6::INFORMATION_REQUEST,
        transaction: 1,
        options: vec![
            Opt::OptionRequest(vec![Opt::DNS_SERVERS, Opt::INFORMATION_REFRESH_TIME]),
            Opt::ElapsedTime(100),
            Opt::InformationRefreshTime(600),
            Opt::ReconfigureMessage(dhcpv6::RENEW),
        ],
    };
    let octets = "
        0b 000001
        0006 0004 0017 0020               # RFC 8415 §21.7
        0008 0002 0064                    # §21.9
        0020 0004 00000258                # §21.23
        0013 0001 05                      # §21.19";
    agree(
        octets,
        request,
        |m, out| m.emit(out),
        dhcpv6::Message::parse,
    );
    assert_eq!(dhcpv6::ALL_SERVERS.to_string(), "ff02::1:2"); // §7.1
}
