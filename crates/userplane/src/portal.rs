//! Answers to connections that a rule redirects: whatever a subscriber asks of a server, it is sent to the portal of its policy.
//!
//! The gateway answers in the server's name and keeps nothing: its own sequence numbers are a keyed hash of addresses and ports, as of SYN
//! cookies (RFC 4987 §3.6), and its only answer fits into one segment, behind which the connection ends. What is lost, the subscriber's TCP
//! asks for again. Only HTTP without TLS can be redirected; other connections end at once instead of timing out.
//!
//! ```
//! use userplane::portal::Responder;
//! use wire::{ipv4, tcp};
//!
//! let (home, server) = ([100, 64, 0, 9].into(), [203, 0, 113, 1].into());
//! let header = tcp::Header {
//!     source_port: 40_000,
//!     destination_port: 80,
//!     sequence: 7,
//!     acknowledgment: 0,
//!     flags: tcp::SYN,
//!     window: 65_535,
//! };
//! let (mut segment, mut packet) = (Vec::new(), Vec::new());
//! tcp::Segment { header, options: &[], payload: &[] }.emit_v4(home, server, &mut segment);
//! let header = ipv4::Header::new(ipv4::TCP, home, server);
//! ipv4::Packet { header, options: &[], payload: &segment }.emit(&mut packet);
//!
//! let answer = Responder::default().answer(&packet, "http://portal.example/").unwrap();
//! let answer = ipv4::Packet::parse(&answer).unwrap();
//! let segment = tcp::Segment::parse_v4(answer.payload, server, home).unwrap();
//! assert_eq!((segment.header.flags, segment.header.acknowledgment), (tcp::SYN | tcp::ACK, 8));
//! ```

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use wire::tcp::{ACK, FIN, Header, MAXIMUM_SEGMENT_SIZE, PSH, RST, SYN, Segment};
use wire::{ipv4, ipv6};

/// Largest segment that subscribers are asked to send: what fits into the smallest IPv6 packet (RFC 8200 §5) with both headers.
const LARGEST_SEGMENT: u16 = 1280 - 40 - 20;
/// Octets that the gateway takes, all of which it forgets.
const WINDOW: u16 = u16::MAX;

/// Answers redirected connections.
#[derive(Debug, Default)]
pub struct Responder {
    /// Of this process alone: a connection that was begun with the one before is reset.
    keys: RandomState,
}

impl Responder {
    /// Answer to an IP packet of a subscriber, another IP packet: `portal` is the address (URL) to which its connection is redirected. `None`:
    /// the packet is no sound TCP segment, or needs no answer.
    pub fn answer(&self, packet: &[u8], portal: &str) -> Option<Vec<u8>> {
        match packet.first()? >> 4 {
            4 => self.answer_v4(packet, portal),
            6 => self.answer_v6(packet, portal),
            _ => None,
        }
    }

    fn answer_v4(&self, packet: &[u8], portal: &str) -> Option<Vec<u8>> {
        let packet = ipv4::Packet::parse(packet).ok()?;
        let (home, server) = (packet.header.source, packet.header.destination);
        if packet.header.protocol != ipv4::TCP {
            return None;
        }
        let segment = Segment::parse_v4(packet.payload, home, server).ok()?;
        let answer = self.reply(&segment, [home.into(), server.into()], portal)?;
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        answer.segment().emit_v4(server, home, &mut payload);
        ipv4::Packet {
            header: ipv4::Header {
                dont_fragment: true,
                ..ipv4::Header::new(ipv4::TCP, server, home)
            },
            options: &[],
            payload: &payload,
        }
        .emit(&mut out);
        Some(out)
    }

    fn answer_v6(&self, packet: &[u8], portal: &str) -> Option<Vec<u8>> {
        let packet = ipv6::Packet::parse(packet).ok()?;
        let (home, server) = (packet.header.source, packet.header.destination);
        if packet.header.next_header != ipv6::TCP {
            return None;
        }
        let segment = Segment::parse_v6(packet.payload, home, server).ok()?;
        let answer = self.reply(&segment, [home.into(), server.into()], portal)?;
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        answer.segment().emit_v6(server, home, &mut payload);
        let header = ipv6::Header::new(ipv6::TCP, server, home);
        ipv6::Packet {
            header,
            payload: &payload,
        }
        .emit(&mut out);
        Some(out)
    }

    /// The server's part of RFC 9293 §3.10.7, without a state.
    fn reply(&self, segment: &Segment<'_>, ends: [IpAddr; 2], portal: &str) -> Option<Answer> {
        let theirs = segment.header;
        let ports = [theirs.source_port, theirs.destination_port];
        let first = self.keys.hash_one((ends, ports)) as u32;
        let expected = theirs.sequence.wrapping_add(segment.taken());
        let answer = |flags, sequence| Answer {
            header: Header {
                source_port: theirs.destination_port,
                destination_port: theirs.source_port,
                sequence,
                acknowledgment: expected,
                flags,
                window: WINDOW,
            },
            text: String::new(),
        };
        if theirs.flags & RST != 0 {
            return None;
        }
        if theirs.flags & (SYN | ACK) == SYN {
            return Some(answer(SYN | ACK, first));
        }
        if theirs.flags & ACK == 0 {
            return None;
        }
        let text = response(portal);
        // how much of SYN, response and FIN has arrived
        let arrived = theirs.acknowledgment.wrapping_sub(first);
        let all = text.len() as u32 + 2;
        if theirs.flags & SYN != 0 || !(1..=all).contains(&arrived) {
            return Some(Answer::reset(theirs));
        }
        match (segment.taken(), arrived) {
            (0, _) => None,
            (_, 1) => Some(Answer {
                text,
                ..answer(FIN | PSH | ACK, theirs.acknowledgment)
            }),
            _ => Some(answer(ACK, theirs.acknowledgment)),
        }
    }
}

/// The gateway's segment.
struct Answer {
    header: Header,
    text: String,
}

impl Answer {
    /// To a segment of a connection that there is not (RFC 9293 §3.10.7.1).
    fn reset(theirs: Header) -> Self {
        Answer {
            header: Header {
                source_port: theirs.destination_port,
                destination_port: theirs.source_port,
                sequence: theirs.acknowledgment,
                acknowledgment: 0,
                flags: RST,
                window: 0,
            },
            text: String::new(),
        }
    }

    fn segment(&self) -> Segment<'_> {
        const SIZE: [u8; 2] = LARGEST_SEGMENT.to_be_bytes();
        let options: &[u8] = match self.header.flags & SYN {
            0 => &[],
            _ => &[MAXIMUM_SEGMENT_SIZE, 4, SIZE[0], SIZE[1]],
        };
        Segment {
            header: self.header,
            options,
            payload: self.text.as_bytes(),
        }
    }
}

/// The response that leads to the portal (RFC 9110 §15.4.3), which nobody may keep.
fn response(portal: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {portal}\r\nCache-Control: no-store\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests;
