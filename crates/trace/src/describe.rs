//! What a control message says, in one line. Any octets are described somehow: they may come from anybody.

use northbound::{TracedPacket, TracedPath};
use std::net::IpAddr;
use wire::eth::{Frame, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::nd;
use wire::ppp::{self, Control};
use wire::pppoe::{self, Tag};
use wire::{chap, icmp, ipcp, ipv4, ipv6, ipv6cp, lcp, pap, pfcp, radius};

mod dhcpv6;

/// Texts of others are cut to so many characters.
const TEXT: usize = 60;

/// What a packet says, in one line.
pub fn describe(packet: &TracedPacket) -> String {
    let described = match packet.path() {
        TracedPath::Radius => radius(&packet.octets),
        TracedPath::Pfcp => pfcp(&packet.octets),
        TracedPath::Access | TracedPath::Sample => frame(&packet.octets),
        TracedPath::Unspecified => None,
    };
    described.unwrap_or_else(|| format!("{} octets that cannot be read", packet.octets.len()))
}

/// A text of others, without what a terminal would obey.
fn text(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let clean = text.chars().map(|c| if c.is_control() { '.' } else { c });
    clean.take(TEXT).collect()
}

/// Name and value, where there is a value.
fn said(name: &str, octets: &[u8]) -> Option<String> {
    (!octets.is_empty()).then(|| format!("{name} {}", text(octets)))
}

fn joined(head: impl Into<String>, parts: impl IntoIterator<Item = String>) -> String {
    let head = [head.into()].into_iter();
    head.chain(parts).collect::<Vec<_>>().join(" ")
}

fn frame(octets: &[u8]) -> Option<String> {
    let frame = Frame::parse(octets).ok()?;
    match frame.header.ethertype {
        PPPOE_DISCOVERY => discovery(frame.payload),
        // what is only the first octets of a packet does not hold what its header says
        PPPOE_SESSION => session(frame.payload.get(pppoe::HEADER_LEN..)?),
        _ => None,
    }
}

fn discovery(octets: &[u8]) -> Option<String> {
    let packet = pppoe::Discovery::parse(octets).ok()?;
    let code = match packet.code {
        pppoe::PADI => "PADI".into(),
        pppoe::PADO => "PADO".into(),
        pppoe::PADR => "PADR".into(),
        pppoe::PADS => "PADS".into(),
        pppoe::PADT => "PADT".into(),
        other => format!("PPPoE code {other:#04x}"),
    };
    let session = (packet.session_id != 0).then(|| format!("session {}", packet.session_id));
    let tags = packet.tags.iter().filter_map(|tag| match tag {
        Tag::ServiceName(name) => said("service", name),
        Tag::AcName(name) => said("from", name),
        Tag::MaxPayload(octets) => Some(format!("max-payload {octets}")),
        Tag::ServiceNameError(why) => said("service-name-error", why),
        Tag::AcSystemError(why) => said("ac-system-error", why),
        Tag::GenericError(why) => said("error", why),
        _ => None,
    });
    Some(joined(code, session.into_iter().chain(tags)))
}

fn session(octets: &[u8]) -> Option<String> {
    let frame = ppp::Frame::parse(octets).ok()?;
    match frame.protocol {
        ppp::LCP => link(frame.payload),
        ppp::PAP => password(frame.payload),
        ppp::CHAP => challenge(frame.payload),
        ppp::IPCP => ipcp(frame.payload),
        ppp::IPV6CP => ipv6cp(frame.payload),
        ppp::CCP => Some(control("CCP", Control::parse(frame.payload).ok()?, vec![])),
        ppp::IPV4 => ip(frame.payload),
        ppp::IPV6 => ip(frame.payload),
        other => Some(format!("PPP protocol {other:#06x}")),
    }
}

/// A packet of LCP or an NCP.
fn control(protocol: &str, packet: Control<'_>, options: Vec<String>) -> String {
    let code = match packet.code {
        ppp::CONFIGURE_REQUEST => "Configure-Request",
        ppp::CONFIGURE_ACK => "Configure-Ack",
        ppp::CONFIGURE_NAK => "Configure-Nak",
        ppp::CONFIGURE_REJECT => "Configure-Reject",
        ppp::TERMINATE_REQUEST => "Terminate-Request",
        ppp::TERMINATE_ACK => "Terminate-Ack",
        ppp::CODE_REJECT => "Code-Reject",
        lcp::PROTOCOL_REJECT => "Protocol-Reject",
        lcp::ECHO_REQUEST => "Echo-Request",
        lcp::ECHO_REPLY => "Echo-Reply",
        lcp::DISCARD_REQUEST => "Discard-Request",
        lcp::IDENTIFICATION => "Identification",
        lcp::TIME_REMAINING => "Time-Remaining",
        _ => "",
    };
    let code = match code {
        "" => format!("code {}", packet.code),
        code => code.to_owned(),
    };
    joined(format!("{protocol} {code} id {}", packet.id), options)
}

fn is_configure(packet: &Control<'_>) -> bool {
    (ppp::CONFIGURE_REQUEST..=ppp::CONFIGURE_REJECT).contains(&packet.code)
}

fn link(octets: &[u8]) -> Option<String> {
    let packet = Control::parse(octets).ok()?;
    let words = match packet.code {
        _ if is_configure(&packet) => {
            let options = lcp::Opt::parse_all(packet.data).ok()?;
            let word = |option: &lcp::Opt<'_>| match option {
                lcp::Opt::Mru(mru) => format!("mru {mru}"),
                lcp::Opt::Auth(lcp::Auth::Pap) => "auth PAP".into(),
                lcp::Opt::Auth(lcp::Auth::ChapMd5) => "auth CHAP".into(),
                lcp::Opt::Auth(lcp::Auth::MsChapV2) => "auth MS-CHAPv2".into(),
                lcp::Opt::Auth(lcp::Auth::Other(protocol, _)) => format!("auth {protocol:#06x}"),
                lcp::Opt::Magic(magic) => format!("magic {magic:08x}"),
                lcp::Opt::Unknown(option) => format!("option {}", option.kind),
            };
            options.iter().map(word).collect()
        }
        lcp::PROTOCOL_REJECT => {
            let reject = lcp::ProtocolReject::parse(packet.data).ok()?;
            vec![format!("protocol {:#06x}", reject.protocol)]
        }
        ppp::TERMINATE_REQUEST => said("because", packet.data).into_iter().collect(),
        _ => vec![],
    };
    Some(control("LCP", packet, words))
}

fn password(octets: &[u8]) -> Option<String> {
    Some(match pap::Packet::parse(octets).ok()? {
        pap::Packet::Request { id, peer_id, .. } => {
            format!(
                "PAP Authenticate-Request id {id} {} password ***",
                text(peer_id)
            )
        }
        pap::Packet::Ack { id, message } => joined(
            format!("PAP Authenticate-Ack id {id}"),
            said("message", message),
        ),
        pap::Packet::Nak { id, message } => joined(
            format!("PAP Authenticate-Nak id {id}"),
            said("message", message),
        ),
    })
}

fn challenge(octets: &[u8]) -> Option<String> {
    Some(match chap::Packet::parse(octets).ok()? {
        chap::Packet::Challenge { id, name, .. } => {
            joined(format!("CHAP Challenge id {id}"), said("from", name))
        }
        chap::Packet::Response { id, name, .. } => {
            format!("CHAP Response id {id} {} value ***", text(name))
        }
        // RFC 2759 §5: MS-CHAPv2's has a proof, whose 40 digits are masked
        chap::Packet::Success { id, message } if message.starts_with(b"S=") => {
            let rest = message.get(42..).unwrap_or_default();
            let rest = rest.strip_prefix(b" M=").unwrap_or(rest);
            let head = format!("CHAP Success id {id} proof ***");
            joined(head, said("message", rest))
        }
        chap::Packet::Success { id, message } => {
            joined(format!("CHAP Success id {id}"), said("message", message))
        }
        chap::Packet::Failure { id, message } => {
            joined(format!("CHAP Failure id {id}"), said("message", message))
        }
    })
}

fn ipcp(octets: &[u8]) -> Option<String> {
    let packet = Control::parse(octets).ok()?;
    let mut words = Vec::new();
    if is_configure(&packet) {
        for option in ipcp::Opt::parse_all(packet.data).ok()? {
            words.push(match option {
                ipcp::Opt::Address(address) => format!("address {address}"),
                ipcp::Opt::PrimaryDns(address) => format!("dns {address}"),
                ipcp::Opt::SecondaryDns(address) => format!("second-dns {address}"),
                ipcp::Opt::PrimaryNbns(address) => format!("nbns {address}"),
                ipcp::Opt::SecondaryNbns(address) => format!("second-nbns {address}"),
                ipcp::Opt::Unknown(option) => format!("option {}", option.kind),
            });
        }
    }
    Some(control("IPCP", packet, words))
}

fn ipv6cp(octets: &[u8]) -> Option<String> {
    let packet = Control::parse(octets).ok()?;
    let mut words = Vec::new();
    if is_configure(&packet) {
        for option in ipv6cp::Opt::parse_all(packet.data).ok()? {
            words.push(match option {
                ipv6cp::Opt::InterfaceId(id) => format!("interface-id {id:016x}"),
                ipv6cp::Opt::Unknown(option) => format!("option {}", option.kind),
            });
        }
    }
    Some(control("IPV6CP", packet, words))
}

/// An IP packet, of which perhaps only the first octets are there: addresses, and what it carries.
fn ip(octets: &[u8]) -> Option<String> {
    if let Ok(packet) = nd::Packet::parse(octets) {
        return Some(neighbour(&packet.message));
    }
    if let Some(described) = dhcpv6::describe(octets) {
        return Some(described);
    }
    let address = |at: usize, length: usize| -> Option<IpAddr> {
        let octets = octets.get(at..at + length)?;
        let v4 = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
        v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
    };
    let (version, header) = (octets.first()? >> 4, octets.first()? & 0xf);
    let (source, destination, next, behind) = match version {
        4 => (
            address(12, 4)?,
            address(16, 4)?,
            *octets.get(9)?,
            usize::from(header) * 4,
        ),
        6 => (address(8, 16)?, address(24, 16)?, *octets.get(6)?, 40),
        _ => return None,
    };
    let inner = octets.get(behind..).unwrap_or_default();
    let ends = format!("{source} > {destination}");
    Some(format!("{} {ends}", carried(next, inner)))
}

fn carried(next: u8, inner: &[u8]) -> String {
    let port = |at: usize| {
        let port = inner.get(at..at + 2)?;
        Some(u16::from_be_bytes([port[0], port[1]]))
    };
    let ports = match (port(0), port(2)) {
        (Some(source), Some(destination)) => format!(" {source} > {destination}"),
        _ => String::new(),
    };
    match (next, inner.first()) {
        (ipv4::UDP, _) if port(2) == Some(547) => "DHCPv6".into(),
        (ipv4::UDP, _) => format!("UDP{ports}"),
        (ipv4::TCP, _) => format!("TCP{ports}"),
        (ipv4::ICMP, Some(&icmp::V4_ECHO_REQUEST)) => "ICMP echo request".into(),
        (ipv4::ICMP, Some(&icmp::V4_ECHO_REPLY)) => "ICMP echo reply".into(),
        (ipv4::ICMP, Some(kind)) => format!("ICMP type {kind}"),
        (ipv6::ICMPV6, Some(&icmp::V6_ECHO_REQUEST)) => "ICMPv6 echo request".into(),
        (ipv6::ICMPV6, Some(&icmp::V6_ECHO_REPLY)) => "ICMPv6 echo reply".into(),
        (ipv6::ICMPV6, Some(kind)) => format!("ICMPv6 type {kind}"),
        (next, _) => format!("IP protocol {next}"),
    }
}

fn neighbour(message: &nd::Message) -> String {
    match message {
        nd::Message::RouterSolicitation { .. } => "ND Router-Solicitation".into(),
        nd::Message::RouterAdvertisement(advertisement) => {
            let options = advertisement
                .options
                .iter()
                .filter_map(|option| match option {
                    nd::Opt::Prefix(prefix) => {
                        Some(format!("prefix {}/{}", prefix.prefix, prefix.length))
                    }
                    nd::Opt::Mtu(mtu) => Some(format!("mtu {mtu}")),
                    nd::Opt::Rdnss { servers, .. } => Some(format!("dns {}", servers.first()?)),
                    _ => None,
                });
            joined("ND Router-Advertisement", options)
        }
        nd::Message::NeighborSolicitation { target, .. } => {
            format!("ND Neighbor-Solicitation {target}")
        }
        nd::Message::NeighborAdvertisement { target, .. } => {
            format!("ND Neighbor-Advertisement {target}")
        }
    }
}

/// Which attributes say the most.
const ATTRIBUTES: [radius::Kind; 11] = [
    radius::Kind::ACCT_STATUS_TYPE,
    radius::Kind::USER_NAME,
    radius::Kind::REPLY_MESSAGE,
    radius::Kind::FRAMED_IP_ADDRESS,
    radius::Kind::FRAMED_IPV6_PREFIX,
    radius::Kind::FILTER_ID,
    radius::Kind::SESSION_TIMEOUT,
    radius::Kind::ACCT_INTERIM_INTERVAL,
    radius::Kind::ACCT_TERMINATE_CAUSE,
    radius::Kind::NAS_PORT_ID,
    radius::Kind::ACCT_SESSION_ID,
];

fn radius(octets: &[u8]) -> Option<String> {
    let packet = radius::Packet::parse(octets).ok()?;
    let head = format!("{:?} id {}", packet.code, packet.identifier);
    let words = ATTRIBUTES.iter().filter_map(|kind| {
        let value = packet.get(*kind)?;
        Some(format!("{} {}", kind.name()?, attribute(*kind, value)))
    });
    Some(joined(head, words))
}

fn attribute(kind: radius::Kind, value: &radius::Value) -> String {
    use wire::radius::Value;
    match value {
        Value::Integer(1) if kind == radius::Kind::ACCT_STATUS_TYPE => "Start".into(),
        Value::Integer(2) if kind == radius::Kind::ACCT_STATUS_TYPE => "Stop".into(),
        Value::Integer(3) if kind == radius::Kind::ACCT_STATUS_TYPE => "Interim-Update".into(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => self::text(text.as_bytes()),
        Value::Octets(octets) => text(octets),
        Value::Ipv4(address) => address.to_string(),
        Value::Ipv6(address) => address.to_string(),
        Value::Ipv6Prefix(prefix) => prefix.to_string(),
        Value::InterfaceId(id) => format!("{id:016x}"),
        Value::Time(seconds) => seconds.to_string(),
        Value::Invalid(octets) => format!("{} octets that are wrong", octets.len()),
    }
}

fn pfcp(octets: &[u8]) -> Option<String> {
    use wire::pfcp::Message;
    let packet = pfcp::parse(octets).ok()?.packet;
    let name = match packet.message.kind() {
        50 | 51 => "Session-Establishment",
        52 | 53 => "Session-Modification",
        54 | 55 => "Session-Deletion",
        56 | 57 => "Session-Report",
        _ => "message",
    };
    let way = if packet.message.is_request() {
        "Request"
    } else {
        "Response"
    };
    let head = format!("PFCP {name}-{way} {}", packet.sequence);
    let rules = |pdrs: usize, fars: usize, urrs: usize, qers: usize| {
        format!("{pdrs} PDR {fars} FAR {urrs} URR {qers} QER")
    };
    let words = match &packet.message {
        Message::SessionEstablishmentRequest(m) => vec![
            format!("session {:016x}", m.cp_f_seid.seid),
            rules(
                m.create_pdrs.len(),
                m.create_fars.len(),
                m.create_urrs.len(),
                m.create_qers.len(),
            ),
        ],
        Message::SessionModificationRequest(m) if !m.query_urrs.is_empty() => {
            vec!["asks for counters".into()]
        }
        Message::SessionModificationRequest(m) => vec![rules(
            m.create_pdrs.len() + m.update_pdrs.len() + m.remove_pdrs.len(),
            m.create_fars.len() + m.update_fars.len() + m.remove_fars.len(),
            m.create_urrs.len() + m.update_urrs.len() + m.remove_urrs.len(),
            m.create_qers.len() + m.update_qers.len() + m.remove_qers.len(),
        )],
        other => other
            .cause()
            .map(|cause| cause.to_string())
            .into_iter()
            .collect(),
    };
    Some(joined(head, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described(path: TracedPath, octets: &[u8]) -> String {
        describe(&TracedPacket {
            path: path.into(),
            octets: octets.to_vec(),
            ..TracedPacket::default()
        })
    }

    const PATHS: [TracedPath; 4] = [
        TracedPath::Access,
        TracedPath::Radius,
        TracedPath::Pfcp,
        TracedPath::Sample,
    ];

    fn ppp(protocol: u16, packet: &[u8]) -> Vec<u8> {
        let mut octets = vec![2; 12];
        octets.extend([0x88, 0x64]);
        let payload = [&protocol.to_be_bytes(), packet].concat();
        let packet = pppoe::Packet {
            code: 0,
            session_id: 7,
            payload: &payload,
        };
        packet.emit(&mut octets);
        octets
    }

    proptest! {
        #[test]
        fn any_octets_are_described_in_one_clean_line(
            mut octets in prop::collection::vec(any::<u8>(), 0..160), protocol in any::<u8>(), kind in 0u8..4,
        ) {
            match kind {
                0 => {}
                1 => octets = ppp([ppp::LCP, ppp::PAP, ppp::CHAP, ppp::IPCP, ppp::IPV6CP, ppp::IPV4, ppp::IPV6][usize::from(protocol) % 7], &octets),
                2 if octets.len() > 20 => {
                    let length = octets.len() as u16;
                    octets[2..4].copy_from_slice(&length.to_be_bytes());
                }
                _ if octets.len() > 16 => {
                    let length = octets.len() as u16 - 4;
                    (octets[0], octets[1]) = (0x21, 50 + octets[1] % 8);
                    octets[2..4].copy_from_slice(&length.to_be_bytes());
                }
                _ => {}
            }
            for path in PATHS {
                let line = described(path, &octets);
                prop_assert!(!line.is_empty() && !line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    #[test]
    fn messages_say_what_matters() {
        let request = [
            1, 7, 0, 19, 1, 4, 0x05, 0xd4, 3, 5, 0xc2, 0x23, 5, 5, 6, 1, 2, 3, 4,
        ];
        let lcp = described(TracedPath::Access, &ppp(ppp::LCP, &request));
        assert_eq!(
            lcp,
            "LCP Configure-Request id 7 mru 1492 auth CHAP magic 01020304"
        );
        let request = [1, 7, 0, 9, 3, 5, 0xc2, 0x23, 0x81];
        let lcp = described(TracedPath::Access, &ppp(ppp::LCP, &request));
        assert_eq!(lcp, "LCP Configure-Request id 7 auth MS-CHAPv2");
        let mut success = Vec::new();
        chap::Packet::Success {
            id: 1,
            message: format!("S={} M=hello", "*".repeat(40)).as_bytes(),
        }
        .emit(&mut success);
        let success = described(TracedPath::Access, &ppp(ppp::CHAP, &success[2..]));
        assert_eq!(success, "CHAP Success id 1 proof *** message hello");
        let mut pap = Vec::new();
        pap::Packet::Request {
            id: 1,
            peer_id: b"al\x1bice",
            password: b"*****",
        }
        .emit(&mut pap);
        let pap = described(TracedPath::Access, &ppp(ppp::PAP, &pap[2..]));
        assert_eq!(pap, "PAP Authenticate-Request id 1 al.ice password ***");
        let accept = [&[2, 9, 0, 26][..], &[0; 16], &[8, 6, 100, 64, 0, 9]].concat();
        let accept = described(TracedPath::Radius, &accept);
        assert_eq!(accept, "Access-Accept id 9 Framed-IP-Address 100.64.0.9");
        let cut = [
            &[0x45, 0, 5, 0xdc][..],
            &[0; 5],
            &[17, 0, 0, 100, 64, 0, 9, 192, 0, 2, 7],
        ]
        .concat();
        let cut = [cut, vec![0x10, 0, 0, 53]].concat();
        let sample = described(TracedPath::Sample, &ppp(ppp::IPV4, &cut));
        assert_eq!(sample, "UDP 4096 > 53 100.64.0.9 > 192.0.2.7");
    }
}
