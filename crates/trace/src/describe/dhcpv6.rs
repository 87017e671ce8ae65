//! What a message of DHCPv6 says.

use super::joined;
use wire::dhcpv6::{self, CLIENT_PORT, Ia, Message, Opt, SERVER_PORT, status};
use wire::{ipv6, udp};

/// One line, if the packet is whole and carries such a message.
pub(super) fn describe(octets: &[u8]) -> Option<String> {
    let packet = ipv6::Packet::parse(octets).ok()?;
    if packet.header.next_header != ipv6::UDP {
        return None;
    }
    let datagram = udp::Datagram::parse(packet.payload).ok()?;
    if ![CLIENT_PORT, SERVER_PORT].contains(&datagram.destination_port) {
        return None;
    }
    let message = Message::parse(datagram.payload).ok()?;
    let name = dhcpv6::name(message.kind)?;
    let words = message.options.iter().filter_map(|option| match option {
        Opt::IaNa(ia) => Some(association("IA_NA", ia)),
        Opt::IaPd(ia) => Some(association("IA_PD", ia)),
        Opt::Status(answer) => Some(status_name(answer.code)),
        Opt::RapidCommit => Some("rapid-commit".into()),
        Opt::ReconfigureMessage(kind) => Some(format!("wants {}", dhcpv6::name(*kind)?)),
        Opt::DnsServers(servers) => Some(format!("dns {}", servers.first()?)),
        _ => None,
    });
    Some(joined(format!("DHCPv6 {name}"), words))
}

fn association(name: &str, ia: &Ia<'_>) -> String {
    let words = ia.options.iter().filter_map(|option| match option {
        Opt::Address(lease) => Some(lease.address.to_string()),
        Opt::Prefix(lease) => Some(format!("{}/{}", lease.prefix, lease.length)),
        Opt::Status(answer) => Some(status_name(answer.code)),
        _ => None,
    });
    joined(name, words)
}

fn status_name(code: u16) -> String {
    match status::name(code) {
        Some(name) => name.into(),
        None => format!("status {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::dhcpv6::{IaPrefix, Status};

    #[test]
    fn a_message_is_named_with_its_prefixes_and_statuses() {
        let prefix = Opt::Prefix(IaPrefix {
            preferred_lifetime: 1,
            valid_lifetime: 2,
            length: 56,
            prefix: "2001:db8:7700::".parse().unwrap(),
            options: Vec::new(),
        });
        let none = Opt::Status(Status {
            code: status::NO_ADDRS_AVAIL,
            message: b"",
        });
        let of = |id, option| Ia {
            options: vec![option],
            ..Ia::new(id)
        };
        let message = Message {
            kind: dhcpv6::REPLY,
            transaction: 1,
            options: vec![
                Opt::ServerId(&[0, 4, 1]),
                Opt::IaNa(of(1, none)),
                Opt::IaPd(of(2, prefix)),
                Opt::DnsServers(vec!["2001:db8::53".parse().unwrap()]),
            ],
        };
        let (source, destination) = (ipv6::link_local(1), ipv6::link_local(9));
        let (mut payload, mut packet) = (Vec::new(), Vec::new());
        message.emit(&mut payload);
        udp::Datagram {
            source_port: SERVER_PORT,
            destination_port: CLIENT_PORT,
            payload: &payload,
        }
        .emit_packet_v6(source, destination, &mut packet);
        assert_eq!(
            describe(&packet).unwrap(),
            "DHCPv6 Reply IA_NA NoAddrsAvail IA_PD 2001:db8:7700::/56 dns 2001:db8::53"
        );
        assert_eq!(describe(&packet[..packet.len() - 1]), None);
    }
}
