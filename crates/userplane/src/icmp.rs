//! ICMP errors that the gateway itself sends.
//!
//! Only packets that RFC 1122 §3.2.2, RFC 1812 §4.3.2.7 and RFC 4443 §2.4 (e) allow get an error. A token bucket limits the rate
//! (RFC 4443 §2.4 (f)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::bucket::Bucket;
use wire::{icmp, ipv4, ipv6};

/// Code of "destination unreachable" (RFC 792): fragmentation is needed and forbidden.
const FRAGMENTATION_NEEDED: u8 = 4;

/// Maximum rate of each kind for a network instance, in errors per second.
const RATE: u32 = 200;
/// Maximum burst of each kind.
const BURST: u32 = 50;

/// RFC 1812 §4.3.2.3: as much of the packet as fits into 576 octets.
const V4_QUOTE: usize = 576 - 20 - 8;
/// RFC 4443 §3.3: as much as fits into the minimum IPv6 MTU.
const V6_QUOTE: usize = 1280 - 40 - 8;

/// Source of the ICMP errors of one network instance.
#[derive(Debug)]
pub struct ErrorSource {
    v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
    /// Each kind has its own rate: a traceroute must not keep other hosts from learning a path MTU.
    expired: Bucket,
    too_big: Bucket,
    /// Errors that were not sent because of the rate limit.
    pub suppressed: u64,
}

/// Type, code and the four octets behind the checksum.
type Kind = (u8, u8, [u8; 4]);

impl ErrorSource {
    /// Creates a source. It sends from the first gateway address of each family; without one, it sends no errors of that family.
    pub fn new(gateway: &[IpAddr]) -> Self {
        let mut source = Self {
            v4: None,
            v6: None,
            expired: Bucket::full(RATE, BURST),
            too_big: Bucket::full(RATE, BURST),
            suppressed: 0,
        };
        source.set_sources(gateway);
        source
    }

    /// Replaces the gateway's addresses.
    pub fn set_sources(&mut self, gateway: &[IpAddr]) {
        self.v4 = gateway.iter().find_map(|a| match a {
            IpAddr::V4(a) => Some(*a),
            IpAddr::V6(_) => None,
        });
        self.v6 = gateway.iter().find_map(|a| match a {
            IpAddr::V6(a) => Some(*a),
            IpAddr::V4(_) => None,
        });
    }

    /// Error for a packet whose TTL or hop limit ran out: a whole IP packet.
    pub fn time_exceeded(&mut self, now: Duration, packet: &[u8]) -> Option<Vec<u8>> {
        let error = match packet.first()? >> 4 {
            4 => v4_error(self.v4?, packet, (icmp::V4_TIME_EXCEEDED, 0, [0; 4]))?,
            6 => v6_error(self.v6?, packet, (icmp::V6_TIME_EXCEEDED, 0, [0; 4]))?,
            _ => return None,
        };
        let sent = self.expired.take(now);
        self.limit(sent, error)
    }

    /// Error for a packet that must not be fragmented and exceeds its next hop's MTU (RFC 1191 §4, RFC 4443 §3.2): a whole IP
    /// packet. `own`: the packet is from the kernel. The error then comes from the packet's destination, because the kernel
    /// ignores errors from its own addresses.
    pub fn too_big(
        &mut self,
        now: Duration,
        packet: &[u8],
        mtu: u16,
        own: bool,
    ) -> Option<Vec<u8>> {
        let [high, low] = mtu.to_be_bytes();
        let rest = [0, 0, high, low];
        let error = match packet.first()? >> 4 {
            4 => {
                let to = ipv4::Packet::parse(packet).ok()?.header.destination;
                let from = if own { to } else { self.v4? };
                v4_error(
                    from,
                    packet,
                    (icmp::V4_UNREACHABLE, FRAGMENTATION_NEEDED, rest),
                )?
            }
            6 => {
                let to = ipv6::Packet::parse(packet).ok()?.header.destination;
                let from = if own { to } else { self.v6? };
                v6_error(from, packet, (icmp::V6_TOO_BIG, 0, rest))?
            }
            _ => return None,
        };
        let sent = self.too_big.take(now);
        self.limit(sent, error)
    }

    fn limit(&mut self, sent: bool, error: Vec<u8>) -> Option<Vec<u8>> {
        self.suppressed += u64::from(!sent);
        sent.then_some(error)
    }
}

fn v4_error(source: Ipv4Addr, bytes: &[u8], (kind, code, rest): Kind) -> Option<Vec<u8>> {
    let packet = ipv4::Packet::parse(bytes).ok()?;
    let header = packet.header;
    // No error about a later fragment, about a packet to or from a group, or about another ICMP error.
    let from = header.source;
    let unanswerable = header.fragment_offset != 0
        || header.destination.is_multicast()
        || header.destination.is_broadcast()
        || from.is_multicast()
        || from.is_broadcast()
        || from.is_unspecified()
        || from.is_loopback()
        || (header.protocol == ipv4::ICMP
            && !matches!(
                packet.payload.first(),
                Some(&icmp::V4_ECHO_REQUEST | &icmp::V4_ECHO_REPLY)
            ));
    if unanswerable {
        return None;
    }
    let quote = &bytes[..bytes.len().min(V4_QUOTE)];
    let message = icmp::Message {
        kind,
        code,
        rest,
        payload: quote,
    };
    let mut payload = Vec::with_capacity(quote.len() + 8);
    message.emit_v4(&mut payload);
    let mut out = Vec::with_capacity(payload.len() + 20);
    // RFC 1812 §4.3.2.5: precedence 6, internetwork control.
    let header = ipv4::Header {
        traffic_class: 0xc0,
        ..ipv4::Header::new(ipv4::ICMP, source, from)
    };
    ipv4::Packet {
        header,
        options: &[],
        payload: &payload,
    }
    .emit(&mut out);
    Some(out)
}

fn v6_error(source: Ipv6Addr, bytes: &[u8], (kind, code, rest): Kind) -> Option<Vec<u8>> {
    let packet = ipv6::Packet::parse(bytes).ok()?;
    let header = packet.header;
    let from = header.source;
    let is_error = header.next_header == ipv6::ICMPV6
        && packet
            .payload
            .first()
            .is_none_or(|kind| *kind < 128 || *kind == 137);
    let unanswerable = header.destination.is_multicast()
        || from.is_multicast()
        || from.is_unspecified()
        || from.is_loopback()
        || from.is_unicast_link_local()
        || is_error;
    if unanswerable {
        return None;
    }
    let quote = &bytes[..bytes.len().min(V6_QUOTE)];
    let message = icmp::Message {
        kind,
        code,
        rest,
        payload: quote,
    };
    let mut payload = Vec::with_capacity(quote.len() + 8);
    message.emit_v6(source, from, &mut payload);
    let mut out = Vec::with_capacity(payload.len() + 40);
    let header = ipv6::Header::new(ipv6::ICMPV6, source, from);
    ipv6::Packet {
        header,
        payload: &payload,
    }
    .emit(&mut out);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(100, 64, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1)),
    ];

    fn v4(change: impl FnOnce(&mut ipv4::Header), payload: &[u8]) -> Vec<u8> {
        let home = [100, 64, 0, 9].into();
        let mut header = ipv4::Header::new(ipv4::UDP, home, [203, 0, 113, 1].into());
        change(&mut header);
        let mut out = Vec::new();
        ipv4::Packet {
            header,
            options: &[],
            payload,
        }
        .emit(&mut out);
        out
    }

    fn v6(change: impl FnOnce(&mut ipv6::Header), payload: &[u8]) -> Vec<u8> {
        let home = "2001:db8:64::9".parse().unwrap();
        let mut header = ipv6::Header::new(ipv6::UDP, home, "2001:db8::1".parse().unwrap());
        change(&mut header);
        let mut out = Vec::new();
        ipv6::Packet { header, payload }.emit(&mut out);
        out
    }

    #[test]
    fn the_sender_is_told_from_the_gateways_address() {
        let mut source = ErrorSource::new(&GATEWAY);
        let packet = v4(|_| {}, &[7; 1000]);
        let error = source.time_exceeded(Duration::ZERO, &packet).unwrap();
        assert_eq!(error.len(), 576);
        let error = ipv4::Packet::parse(&error).unwrap();
        assert_eq!(IpAddr::V4(error.header.source), GATEWAY[0]);
        assert_eq!(error.header.destination, Ipv4Addr::new(100, 64, 0, 9));
        let message = icmp::Message::parse_v4(error.payload).unwrap();
        assert_eq!((message.kind, message.code), (icmp::V4_TIME_EXCEEDED, 0));
        assert_eq!(message.payload, &packet[..V4_QUOTE]);

        let packet = v6(|_| {}, &[7; 1400]);
        let error = source.time_exceeded(Duration::ZERO, &packet).unwrap();
        assert_eq!(error.len(), 1280);
        let error = ipv6::Packet::parse(&error).unwrap();
        assert_eq!(IpAddr::V6(error.header.source), GATEWAY[1]);
        let header = error.header;
        let message =
            icmp::Message::parse_v6(error.payload, header.source, header.destination).unwrap();
        assert_eq!((message.kind, message.code), (icmp::V6_TIME_EXCEEDED, 0));
    }

    #[test]
    fn what_must_not_be_answered_is_not() {
        let mut source = ErrorSource::new(&GATEWAY);
        for packet in [
            v4(|h| h.fragment_offset = 10, &[]),
            v4(|h| h.destination = [224, 0, 0, 5].into(), &[]),
            v4(|h| h.source = [0; 4].into(), &[]),
            v4(|h| h.protocol = ipv4::ICMP, &[icmp::V4_TIME_EXCEEDED, 0]),
            v6(|h| h.destination = ipv6::ALL_NODES, &[]),
            v6(|h| h.source = "fe80::1".parse().unwrap(), &[]),
            v6(|h| h.next_header = ipv6::ICMPV6, &[icmp::V6_TOO_BIG, 0]),
            v6(|h| h.next_header = ipv6::ICMPV6, &[]),
            vec![],
            vec![0x45, 0],
            vec![0x10; 40],
        ] {
            assert_eq!(
                source.time_exceeded(Duration::ZERO, &packet),
                None,
                "{packet:?}"
            );
        }
        // An echo request gets an error: traceroute -I needs it.
        let ping = v4(|h| h.protocol = ipv4::ICMP, &[icmp::V4_ECHO_REQUEST, 0]);
        assert!(source.time_exceeded(Duration::ZERO, &ping).is_some());
        let ping = v6(
            |h| h.next_header = ipv6::ICMPV6,
            &[icmp::V6_ECHO_REQUEST, 0],
        );
        assert!(source.time_exceeded(Duration::ZERO, &ping).is_some());
    }

    #[test]
    fn the_sender_of_what_is_too_big_is_told_what_fits() {
        let mut source = ErrorSource::new(&GATEWAY);
        let packet = v4(|h| h.dont_fragment = true, &[7; 1480]);
        let bytes = source.too_big(Duration::ZERO, &packet, 1492, false);
        let bytes = bytes.unwrap();
        let error = ipv4::Packet::parse(&bytes).unwrap();
        assert_eq!(IpAddr::V4(error.header.source), GATEWAY[0]);
        assert_eq!(error.header.destination, Ipv4Addr::new(100, 64, 0, 9));
        let message = icmp::Message::parse_v4(error.payload).unwrap();
        assert_eq!((message.kind, message.code), (3, 4));
        assert_eq!(message.rest, [0, 0, 0x05, 0xd4]);
        assert_eq!(message.payload, &packet[..V4_QUOTE]);

        let packet = v6(|_| {}, &[7; 1460]);
        let bytes = source.too_big(Duration::ZERO, &packet, 1400, false);
        let bytes = bytes.unwrap();
        let error = ipv6::Packet::parse(&bytes).unwrap();
        let header = error.header;
        assert_eq!(IpAddr::V6(header.source), GATEWAY[1]);
        let message =
            icmp::Message::parse_v6(error.payload, header.source, header.destination).unwrap();
        assert_eq!((message.kind, message.code), (2, 0));
        assert_eq!(message.rest, [0, 0, 0x05, 0x78]);
        assert_eq!(message.payload, &packet[..V6_QUOTE]);

        // For its own packets, the kernel gets the error as if the other end had sent it.
        let own = source.too_big(Duration::ZERO, &packet, 1400, true);
        let own = own.unwrap();
        let error = ipv6::Packet::parse(&own).unwrap().header;
        assert_eq!(error.source, "2001:db8::1".parse::<Ipv6Addr>().unwrap());
        let errors = [
            v4(|h| h.fragment_offset = 10, &[7; 1500]),
            v4(|h| h.protocol = ipv4::ICMP, &[icmp::V4_UNREACHABLE; 1500]),
            v6(|h| h.next_header = ipv6::ICMPV6, &[icmp::V6_TOO_BIG; 1500]),
        ];
        assert!(errors.iter().all(|packet| {
            let answer = source.too_big(Duration::ZERO, packet, 1400, false);
            answer.is_none()
        }));
        // Traceroutes have used up their budget.
        let expired = v4(|_| {}, &[]);
        while source.time_exceeded(Duration::ZERO, &expired).is_some() {}
        let told = source.too_big(Duration::ZERO, &packet, 1400, false);
        assert!(told.is_some());
    }

    #[test]
    fn errors_are_limited() {
        let mut source = ErrorSource::new(&GATEWAY);
        let packet = v4(|_| {}, &[]);
        let sent = |source: &mut ErrorSource, now| {
            (0..1000)
                .filter(|_| source.time_exceeded(now, &packet).is_some())
                .count()
        };
        assert_eq!(sent(&mut source, Duration::from_secs(5)), BURST as usize);
        assert_eq!(sent(&mut source, Duration::from_millis(5100)), 20);
        assert_eq!(source.suppressed, 2000 - u64::from(BURST) - 20);
        assert_eq!(
            ErrorSource::new(&[]).time_exceeded(Duration::ZERO, &packet),
            None
        );
    }
}
