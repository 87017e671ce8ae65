//! DHCPv6 messages in one line.

use super::hex;
use wire::dhcpv6::{self, Auth, CLIENT_PORT, Ia, Message, Opt, SERVER_PORT, Status, status};
use wire::ipv6;
use wire::udp::Datagram;

/// Describes a packet if it is one of DHCPv6.
pub(super) fn describe(packet: &ipv6::Packet<'_>) -> Option<String> {
    let ipv6::Header {
        source,
        destination,
        next_header,
        ..
    } = packet.header;
    if next_header != ipv6::UDP {
        return None;
    }
    let datagram = Datagram::parse(packet.payload).ok()?;
    if ![CLIENT_PORT, SERVER_PORT].contains(&datagram.destination_port) {
        return None;
    }
    let what = match Datagram::parse_v6(packet.payload, source, destination) {
        Ok(datagram) => message(datagram.payload),
        Err(malformed) => format!("malformed: {malformed}"),
    };
    Some(format!("DHCPv6 {source} > {destination} {what}"))
}

fn message(bytes: &[u8]) -> String {
    let message = match Message::parse(bytes) {
        Ok(message) => message,
        Err(malformed) => return format!("malformed: {malformed}"),
    };
    let name = dhcpv6::name(message.kind).unwrap_or("message");
    let mut text = format!("{name} id={:#08x}", message.transaction);
    for option in &message.options {
        text.push(' ');
        text.push_str(&describe_option(option));
    }
    text
}

fn describe_option(option: &Opt<'_>) -> String {
    match option {
        Opt::ClientId(duid) => format!("client={}", hex(duid)),
        Opt::ServerId(duid) => format!("server={}", hex(duid)),
        Opt::IaNa(ia) => association("IA_NA", ia),
        Opt::IaPd(ia) => association("IA_PD", ia),
        Opt::Address(lease) => {
            let address = lease.address.to_string();
            leased(&address, lease.valid_lifetime, lease.preferred_lifetime)
        }
        Opt::Prefix(lease) => {
            let prefix = format!("{}/{}", lease.prefix, lease.length);
            leased(&prefix, lease.valid_lifetime, lease.preferred_lifetime)
        }
        Opt::OptionRequest(codes) => format!("options={codes:?}"),
        Opt::Preference(preference) => format!("preference={preference}"),
        Opt::ElapsedTime(hundredths) => format!("elapsed={hundredths}"),
        // its information may be a key
        Opt::Auth(Auth {
            protocol, replay, ..
        }) => format!("Auth({protocol}) replay={replay}"),
        Opt::Status(status) => describe_status(status),
        Opt::RapidCommit => "Rapid-Commit".into(),
        Opt::ReconfigureMessage(kind) => match dhcpv6::name(*kind) {
            Some(name) => format!("Reconfigure-Message={name}"),
            None => format!("Reconfigure-Message={kind}"),
        },
        Opt::ReconfigureAccept => "Reconfigure-Accept".into(),
        Opt::DnsServers(servers) => format!("DNS={servers:?}"),
        Opt::InformationRefreshTime(seconds) => format!("refresh={seconds}"),
        Opt::SolMaxRt(seconds) => format!("SOL_MAX_RT={seconds}"),
        Opt::InfMaxRt(seconds) => format!("INF_MAX_RT={seconds}"),
        Opt::Unknown(code, data) => format!("option {code}, {} octets", data.len()),
    }
}

fn association(name: &str, ia: &Ia<'_>) -> String {
    let mut text = format!("{name}({})", ia.id);
    if (ia.t1, ia.t2) != (0, 0) {
        text.push_str(&format!(" T1={} T2={}", ia.t1, ia.t2));
    }
    for option in &ia.options {
        text.push(' ');
        text.push_str(&describe_option(option));
    }
    text
}

fn leased(what: &str, valid: u32, preferred: u32) -> String {
    format!("{what} valid={valid} preferred={preferred}")
}

fn describe_status(status: &Status<'_>) -> String {
    match status::name(status.code) {
        Some(name) => name.into(),
        None => format!("status {}", status.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::dhcpv6::IaPrefix;

    fn described(message: &Message<'_>) -> String {
        let mut payload = Vec::new();
        message.emit(&mut payload);
        let (source, destination) = (ipv6::link_local(9), dhcpv6::ALL_SERVERS);
        let mut datagram = Vec::new();
        Datagram {
            source_port: CLIENT_PORT,
            destination_port: SERVER_PORT,
            payload: &payload,
        }
        .emit_v6(source, destination, &mut datagram);
        let header = ipv6::Header::new(ipv6::UDP, source, destination);
        describe(&ipv6::Packet {
            header,
            payload: &datagram,
        })
        .unwrap()
    }

    #[test]
    fn messages_are_named_and_keys_are_not_shown() {
        let prefix = Opt::Prefix(IaPrefix {
            preferred_lifetime: 5,
            valid_lifetime: 9,
            length: 56,
            prefix: "2001:db8::".parse().unwrap(),
            options: Vec::new(),
        });
        let message = Message {
            kind: dhcpv6::REPLY,
            transaction: 0xabc,
            options: vec![
                Opt::ClientId(&[0, 3, 0, 1]),
                Opt::IaPd(Ia {
                    id: 1,
                    t1: 2,
                    t2: 4,
                    options: vec![prefix],
                }),
                Opt::IaNa(Ia {
                    options: vec![Opt::Status(Status {
                        code: status::NO_ADDRS_AVAIL,
                        message: b"no address",
                    })],
                    ..Ia::new(7)
                }),
                Opt::Auth(Auth {
                    protocol: Auth::RECONFIGURE_KEY,
                    algorithm: 1,
                    method: 0,
                    replay: 1,
                    information: &[0xab; 17],
                }),
            ],
        };
        assert_eq!(
            described(&message),
            "DHCPv6 fe80::9 > ff02::1:2 Reply id=0x000abc client=0x00030001 \
             IA_PD(1) T1=2 T2=4 2001:db8::/56 valid=9 preferred=5 IA_NA(7) NoAddrsAvail Auth(3) replay=1"
        );
    }
}
