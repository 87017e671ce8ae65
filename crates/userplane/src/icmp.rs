//! The gateway's own ICMP errors.
//!
//! Only what RFC 1122 §3.2.2, RFC 1812 §4.3.2.7 and RFC 4443 §2.4 (e) allow is answered,
//! and never more often than a token bucket says (RFC 4443 §2.4 (f)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use wire::{icmp, ipv4, ipv6};

/// Errors a second, for a whole network instance.
const RATE: u32 = 200;
/// Errors at once.
const BURST: u32 = 50;

/// RFC 1812 §4.3.2.3: as much of the packet as fits into 576 octets.
const V4_QUOTE: usize = 576 - 20 - 8;
/// RFC 4443 §3.3: as much as fits into the minimum IPv6 MTU.
const V6_QUOTE: usize = 1280 - 40 - 8;

/// Makes the errors of one network instance.
#[derive(Debug)]
pub struct ErrorSource {
    v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
    tokens: f64,
    filled: Duration,
    /// Errors that were due but not sent because of the limit.
    pub suppressed: u64,
}

impl ErrorSource {
    /// Errors come from the first gateway address of each family; without one, none are sent.
    pub fn new(gateway: &[IpAddr]) -> Self {
        let mut source = Self {
            v4: None,
            v6: None,
            tokens: f64::from(BURST),
            filled: Duration::ZERO,
            suppressed: 0,
        };
        source.set_sources(gateway);
        source
    }

    /// The gateway's addresses are others now.
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

    /// The answer to a packet whose TTL or hop limit ran out: a whole IP packet.
    pub fn time_exceeded(&mut self, now: Duration, packet: &[u8]) -> Option<Vec<u8>> {
        let error = match packet.first()? >> 4 {
            4 => v4_time_exceeded(self.v4?, packet)?,
            6 => v6_time_exceeded(self.v6?, packet)?,
            _ => return None,
        };
        self.may_send(now).then_some(error)
    }

    fn may_send(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * f64::from(RATE)).min(f64::from(BURST));
        if self.tokens < 1.0 {
            self.suppressed += 1;
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

fn v4_time_exceeded(source: Ipv4Addr, bytes: &[u8]) -> Option<Vec<u8>> {
    let packet = ipv4::Packet::parse(bytes).ok()?;
    let header = packet.header;
    // Never about a fragment but the first, about a packet to or from a group, or about
    // another ICMP error.
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
        kind: icmp::V4_TIME_EXCEEDED,
        code: 0,
        rest: [0; 4],
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

fn v6_time_exceeded(source: Ipv6Addr, bytes: &[u8]) -> Option<Vec<u8>> {
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
        kind: icmp::V6_TIME_EXCEEDED,
        code: 0,
        rest: [0; 4],
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
        // A ping is answered: that is how traceroute -I works.
        let ping = v4(|h| h.protocol = ipv4::ICMP, &[icmp::V4_ECHO_REQUEST, 0]);
        assert!(source.time_exceeded(Duration::ZERO, &ping).is_some());
        let ping = v6(
            |h| h.next_header = ipv6::ICMPV6,
            &[icmp::V6_ECHO_REQUEST, 0],
        );
        assert!(source.time_exceeded(Duration::ZERO, &ping).is_some());
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
