use super::*;
use proptest::prelude::*;

fn bytes(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), range)
}

proptest! {
    #[test]
    fn packet_emit_then_parse(code: u8, session_id: u16, payload: Vec<u8>, padding: Vec<u8>) {
        let packet = Packet { code, session_id, payload: &payload };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        prop_assert!((0..bytes.len()).all(|n| Packet::parse(&bytes[..n]).is_err()));
        bytes.extend_from_slice(&padding);
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
    }

    #[test]
    fn discovery_emit_then_parse(code: u8, session_id: u16, v in bytes(0..30), w: u16, vendor: u32, order in Just((0..11usize).collect::<Vec<_>>()).prop_shuffle()) {
        let all = [
            Tag::ServiceName(&v), Tag::AcName(&v), Tag::HostUniq(&v), Tag::AcCookie(&v), Tag::Vendor(vendor, &v),
            Tag::RelaySessionId(&v), Tag::MaxPayload(w), Tag::ServiceNameError(&v), Tag::AcSystemError(&v),
            Tag::GenericError(&v), Tag::Unknown(0x0300 | w, &v),
        ];
        let packet = Discovery { code, session_id, tags: order.iter().map(|&i| all[i]).collect() };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        prop_assert_eq!(Discovery::parse(&bytes), Ok(packet));
    }

    #[test]
    fn access_line_emit_then_parse(a in prop::option::of(bytes(1..64)), b in prop::option::of(bytes(1..64)), other in bytes(0..8)) {
        let line = AccessLine {
            circuit_id: a.as_deref(),
            remote_id: b.as_deref(),
            others: vec![(0x81, &other[..]), (0x82, &other[..])],
        };
        let mut bytes = Vec::new();
        line.emit(&mut bytes);
        prop_assert_eq!(AccessLine::parse(&bytes), line);
    }

    #[test]
    fn the_ids_of_a_line_are_those_that_a_whole_reading_finds(bytes: Vec<u8>, tags in prop::collection::vec((0u8..4, bytes(0..40)), 0..5), cut in 0usize..8) {
        let agrees = |bytes: &[u8]| {
            let line = Discovery::parse(bytes).ok();
            let line = line.as_ref().and_then(|discovery| discovery.access_line());
            let ids = line.map(|line| [line.circuit_id, line.remote_id].map(Option::unwrap_or_default));
            line_ids(bytes) == ids.unwrap_or_default()
        };
        prop_assert!(agrees(&bytes));
        let options = |data: &[u8]| [&[1, data.len() as u8], data, &[2, 2], data].concat();
        let lines: Vec<_> = tags.iter().map(|(_, data)| options(data)).collect();
        let tags = tags.iter().zip(&lines).map(|((kind, data), line)| match kind {
            0 => Tag::Vendor(VENDOR_BBF, line),
            1 => Tag::Vendor(7, data),
            2 => Tag::ServiceName(data),
            _ => Tag::Unknown(0x0105, data),
        });
        let mut bytes = Vec::new();
        Discovery { code: PADI, session_id: 0, tags: tags.collect() }.emit(&mut bytes);
        prop_assert!(agrees(&bytes));
        bytes.truncate(bytes.len().saturating_sub(cut));
        prop_assert!(agrees(&bytes));
    }

    #[test]
    fn parse_never_panics(bytes: Vec<u8>, payload: Vec<u8>) {
        let _ = Packet::parse(&bytes);
        let _ = Discovery::parse(&bytes);
        let _ = AccessLine::parse(&bytes);
        let mut packet = Vec::new();
        Packet { code: PADI, session_id: 0, payload: &payload }.emit(&mut packet);
        if let Ok(packet) = Discovery::parse(&packet) {
            let _ = packet.access_line();
        }
    }
}

#[test]
fn a_length_beyond_the_frame_is_refused() {
    assert_eq!(
        Packet::parse(&[0x11, 0, 0, 1, 0, 3, 0xc0, 0x21]),
        Err(Malformed("PPPoE length beyond the frame"))
    );
    assert!(Packet::parse(&[0x11, 0, 0, 1, 0xff, 0xff, 0xc0, 0x21]).is_err());
    assert!(Packet::parse(&[0x11, 0, 0, 1, 0, 2, 0xc0, 0x21]).is_ok());
    assert!(Packet::parse(&[0x21, 0, 0, 1, 0, 0]).is_err());
}

#[test]
fn an_access_line_is_read_up_to_an_option_that_is_cut_off() {
    for rest in [&[2u8, 9, b'x'][..], &[0x81], &[0x81, 4, 0, 0, 1]] {
        let data = [&[1, 3, b'o', b'l', b't'][..], rest].concat();
        let line = AccessLine::parse(&data);
        assert_eq!(line.circuit_id, Some(&b"olt"[..]));
        assert_eq!((line.remote_id, line.others), (None, vec![]));
    }
}

#[test]
fn an_id_that_cannot_be_one_drops_no_other_option() {
    let long = [b'x'; 248];
    for bad in [&b""[..], &long] {
        let mut data = Vec::new();
        AccessLine {
            circuit_id: Some(bad),
            remote_id: Some(b"line 9"),
            others: vec![(0x81, &[0, 0, 0, 1])],
        }
        .emit(&mut data);
        let line = AccessLine::parse(&data);
        assert_eq!(
            (line.circuit_id, line.remote_id),
            (None, Some(&b"line 9"[..]))
        );
        assert!(line.others.contains(&(0x81, &[0, 0, 0, 1][..])));
    }
}

#[test]
fn a_tag_beyond_the_packet_is_refused() {
    assert!(Discovery::parse(&[0x11, PADI, 0, 0, 0, 4, 1, 1, 0, 1, 9]).is_err());
    assert!(Discovery::parse(&[0x11, PADI, 0, 0, 0, 3, 1, 1, 0]).is_err());
}

#[test]
fn nothing_is_read_after_end_of_list() {
    let packet = [0x11, PADI, 0, 0, 0, 10, 1, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    assert_eq!(
        Discovery::parse(&packet).unwrap().tags,
        [Tag::ServiceName(b"")]
    );
}

#[test]
fn known_tags_of_the_wrong_length_are_kept_as_unknown() {
    let packet = [
        0x11, PADI, 0, 0, 0, 12, 1, 0x20, 0, 1, 5, 1, 5, 0, 3, 0, 0, 13,
    ];
    let tags = Discovery::parse(&packet).unwrap().tags;
    assert_eq!(
        tags,
        [
            Tag::Unknown(0x0120, &[5]),
            Tag::Unknown(0x0105, &[0, 0, 13])
        ]
    );
}
