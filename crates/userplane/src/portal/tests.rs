use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const PORTAL: &str = "http://portal.example/pay?from=sluice";
const HOME: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 64, 0, 9)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 9)),
];
const SERVER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1)),
];

/// The subscriber's segment as a packet of a family.
fn packet(
    family: usize,
    flags: u8,
    [sequence, acknowledgment]: [u32; 2],
    payload: &[u8],
) -> Vec<u8> {
    let header = Header {
        source_port: 40_000,
        destination_port: 80,
        sequence,
        acknowledgment,
        flags,
        window: 1_000,
    };
    let segment = Segment {
        header,
        options: &[],
        payload,
    };
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    match (HOME[family], SERVER[family]) {
        (IpAddr::V4(home), IpAddr::V4(server)) => {
            segment.emit_v4(home, server, &mut bytes);
            let header = ipv4::Header::new(ipv4::TCP, home, server);
            let (options, payload) = (&[][..], &bytes[..]);
            ipv4::Packet {
                header,
                options,
                payload,
            }
            .emit(&mut out);
        }
        (IpAddr::V6(home), IpAddr::V6(server)) => {
            segment.emit_v6(home, server, &mut bytes);
            let header = ipv6::Header::new(ipv6::TCP, home, server);
            ipv6::Packet {
                header,
                payload: &bytes,
            }
            .emit(&mut out);
        }
        _ => unreachable!("both are of one family"),
    }
    out
}

/// The header and the data of an answer, which is from the server to the subscriber.
fn read(family: usize, bytes: &[u8]) -> (Header, String) {
    let segment = match (HOME[family], SERVER[family]) {
        (IpAddr::V4(home), IpAddr::V4(server)) => {
            let packet = ipv4::Packet::parse(bytes).unwrap();
            assert_eq!(
                (packet.header.source, packet.header.destination),
                (server, home)
            );
            Segment::parse_v4(packet.payload, server, home).unwrap()
        }
        (IpAddr::V6(home), IpAddr::V6(server)) => {
            let packet = ipv6::Packet::parse(bytes).unwrap();
            assert_eq!(
                (packet.header.source, packet.header.destination),
                (server, home)
            );
            Segment::parse_v6(packet.payload, server, home).unwrap()
        }
        _ => unreachable!("both are of one family"),
    };
    let ports = (segment.header.source_port, segment.header.destination_port);
    assert_eq!(ports, (80, 40_000));
    (
        segment.header,
        String::from_utf8(segment.payload.to_vec()).unwrap(),
    )
}

/// The gateway's first sequence number, as the answer to a SYN has it.
fn connect(responder: &Responder, family: usize) -> u32 {
    let syn = responder.answer(&packet(family, SYN, [7, 0], &[]), PORTAL);
    let (header, text) = read(family, &syn.unwrap());
    assert_eq!(
        (header.flags, header.acknowledgment, &*text),
        (SYN | ACK, 8, "")
    );
    header.sequence
}

#[test]
fn a_connection_is_answered_and_ends() {
    let responder = Responder::default();
    for family in [0, 1] {
        let ask = |flags, numbers, payload: &[u8]| {
            let answer = responder.answer(&packet(family, flags, numbers, payload), PORTAL);
            answer.map(|answer| read(family, &answer))
        };
        let first = connect(&responder, family).wrapping_add(1);
        assert_eq!(ask(ACK, [8, first], &[]), None, "the connection is there");
        let request = b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n";
        let (header, text) = ask(PSH | ACK, [8, first], request).unwrap();
        assert_eq!(header.flags, FIN | PSH | ACK);
        assert_eq!(
            (header.sequence, header.acknowledgment),
            (first, 8 + request.len() as u32)
        );
        assert!(text.starts_with("HTTP/1.1 302 Found\r\n"));
        assert!(text.contains(&format!("\r\nLocation: {PORTAL}\r\n")));
        assert!(text.ends_with("\r\n\r\n"));
        // The answer was lost: the same once more.
        let again = ask(PSH | ACK, [8, first], request).unwrap();
        assert_eq!(again, (header, text.clone()));
        // All has arrived, and the subscriber's side ends too.
        let (own, theirs) = (first + text.len() as u32 + 1, 8 + request.len() as u32);
        assert_eq!(ask(ACK, [theirs, own], &[]), None);
        let (header, text) = ask(FIN | ACK, [theirs, own], &[]).unwrap();
        assert_eq!((header.flags, &*text), (ACK, ""));
        assert_eq!((header.sequence, header.acknowledgment), (own, theirs + 1));
    }
}

#[test]
fn a_connection_of_before_is_reset() {
    let responder = Responder::default();
    for family in [0, 1] {
        let first = connect(&responder, family);
        let all = response(PORTAL).len() as u32 + 2;
        for (flags, own) in [
            (ACK, first),
            (ACK, first.wrapping_add(all + 1)),
            (PSH | ACK, first.wrapping_sub(1000)),
            (SYN | ACK, first.wrapping_add(1)),
        ] {
            let answer = responder.answer(&packet(family, flags, [500, own], b"data"), PORTAL);
            let (header, text) = read(family, &answer.unwrap());
            assert_eq!((header.flags, header.sequence, &*text), (RST, own, ""));
        }
    }
    let other = Responder::default();
    assert_ne!(
        connect(&responder, 0),
        connect(&other, 0),
        "another process"
    );
}

#[test]
fn what_needs_no_answer_gets_none() {
    let responder = Responder::default();
    let first = connect(&responder, 0);
    for (flags, payload) in [(RST, &b""[..]), (RST | ACK, b""), (0, b"data"), (FIN, b"")] {
        let packet = packet(0, flags, [8, first + 1], payload);
        assert_eq!(responder.answer(&packet, PORTAL), None);
    }
    let mut broken = packet(0, SYN, [7, 0], &[]);
    *broken.last_mut().unwrap() ^= 1;
    assert_eq!(responder.answer(&broken, PORTAL), None, "checksum");
    let mut datagram = packet(1, SYN, [7, 0], &[]);
    datagram[6] = ipv6::UDP;
    assert_eq!(responder.answer(&datagram, PORTAL), None, "not TCP");
    assert_eq!(responder.answer(&[], PORTAL), None);
}

proptest! {
    /// An answer is never longer than the largest segment, acknowledges what came, and is never answered by another answer without an end.
    #[test]
    fn answers_are_sound(family in 0..2usize, flags: u8, numbers: [u32; 2], near: Option<u16>, payload in prop::collection::vec(any::<u8>(), 0..600)) {
        let responder = Responder::default();
        let first = connect(&responder, family);
        let [sequence, far] = numbers;
        let acknowledgment = near.map_or(far, |near| first.wrapping_add(near.into()));
        let asked = packet(family, flags, [sequence, acknowledgment], &payload);
        if let Some(answer) = responder.answer(&asked, PORTAL) {
            let (header, text) = read(family, &answer);
            prop_assert!(text.len() <= 536, "what any TCP takes (RFC 9293 section 3.7.1)");
            if header.flags & ACK != 0 {
                let taken = payload.len() as u32 + (flags & (SYN | FIN)).count_ones();
                prop_assert_eq!(header.acknowledgment, sequence.wrapping_add(taken));
            }
        }
    }

    #[test]
    fn nothing_panics(bytes: Vec<u8>) {
        let _ = Responder::default().answer(&bytes, PORTAL);
    }
}
