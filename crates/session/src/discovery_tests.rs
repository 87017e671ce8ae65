use super::*;
use proptest::prelude::*;
use wire::access_loop::LoopValue;
use wire::eth::{MacAddr, Tag as Vlan, Tags as Vlans};

const LIFETIME: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::from_secs(1_000_000);

fn server(service_names: &[&str], max_payload: Option<u16>) -> Discovery {
    Discovery::new(DiscoveryConfig {
        ac_name: "bng1".into(),
        service_names: service_names.iter().map(|s| s.to_string()).collect(),
        accepts_any_service: service_names.is_empty(),
        cookie_key: [7; 32],
        cookie_lifetime: LIFETIME,
        trusts_access_line: true,
        max_payload,
    })
}

fn home() -> Circuit {
    Circuit {
        logical_port: (*b"access0").into(),
        tags: Vlans::qinq(100, 7),
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
    }
}

fn packet(code: u8, session_id: u16, tags: &[Tag<'_>]) -> Vec<u8> {
    emit(code, session_id, tags.to_vec())
}

/// Tags of the PADO for a PADI with these tags.
fn offer<'a>(server: &Discovery, tags: &[Tag<'_>], buffer: &'a mut Vec<u8>) -> Vec<Tag<'a>> {
    match server.on_frame(NOW, &home(), &packet(pppoe::PADI, 0, tags)) {
        Answer::Offer(reply) => *buffer = reply,
        other => panic!("{other:?}"),
    }
    let pado = Packet::parse(buffer).unwrap();
    assert_eq!((pado.code, pado.session_id), (pppoe::PADO, 0));
    pado.tags
}

fn cookie_of(server: &Discovery) -> Vec<u8> {
    let mut buffer = Vec::new();
    let tags = offer(server, &[Tag::ServiceName(b"")], &mut buffer);
    tags.iter()
        .find_map(|t| {
            if let Tag::AcCookie(c) = t {
                Some(c.to_vec())
            } else {
                None
            }
        })
        .unwrap()
}

fn request(server: &Discovery, now: Duration, circuit: &Circuit, cookie: &[u8]) -> Answer {
    server.on_frame(
        now,
        circuit,
        &packet(
            pppoe::PADR,
            0,
            &[Tag::ServiceName(b""), Tag::AcCookie(cookie)],
        ),
    )
}

#[test]
fn an_offer_gives_back_what_is_not_ours() {
    let mut buffer = Vec::new();
    let asked = [
        Tag::ServiceName(b"internet"),
        Tag::HostUniq(&[1, 2]),
        Tag::RelaySessionId(b"relay"),
        Tag::MaxPayload(1500),
    ];
    let tags = offer(&server(&[], None), &asked, &mut buffer);
    assert!(tags.contains(&Tag::AcName(b"bng1")));
    assert!(asked[..3].iter().all(|t| tags.contains(t)), "{tags:?}");
    assert!(
        !tags.contains(&asked[3]),
        "our ports carry no more than 1492"
    );
}

#[test]
fn max_payload_is_agreed_on_only_above_1492_and_up_to_ours() {
    for (asked, agreed) in [
        (1500, Some(1500)),
        (9000, Some(1500)),
        (1492, None),
        (1000, None),
    ] {
        let mut buffer = Vec::new();
        let tags = offer(
            &server(&[], Some(1500)),
            &[Tag::ServiceName(b""), Tag::MaxPayload(asked)],
            &mut buffer,
        );
        let got = tags.iter().find_map(|t| {
            if let Tag::MaxPayload(m) = t {
                Some(*m)
            } else {
                None
            }
        });
        assert_eq!(got, agreed, "{asked}");
    }
}

#[test]
fn services_are_matched() {
    let ours = server(&["gold", "silver"], None);
    let mut buffer = Vec::new();
    let tags = offer(&ours, &[Tag::ServiceName(b"")], &mut buffer);
    for name in [&b""[..], b"gold", b"silver"] {
        assert!(tags.contains(&Tag::ServiceName(name)));
    }
    let tags = offer(&ours, &[Tag::ServiceName(b"gold")], &mut buffer);
    assert_eq!(
        tags.iter()
            .filter(|t| **t == Tag::ServiceName(b"gold"))
            .count(),
        1
    );
    let bronze = [Tag::ServiceName(b"bronze")];
    assert!(matches!(
        ours.on_frame(NOW, &home(), &packet(pppoe::PADI, 0, &bronze)),
        Answer::Ignore(_)
    ));
    let cookie = cookie_of(&ours);
    let padr = packet(
        pppoe::PADR,
        0,
        &[bronze[0], Tag::AcCookie(&cookie), Tag::HostUniq(b"u")],
    );
    let Answer::Reply(reply) = ours.on_frame(NOW, &home(), &padr) else {
        panic!()
    };
    let pads = Packet::parse(&reply).unwrap();
    assert_eq!((pads.code, pads.session_id), (pppoe::PADS, 0));
    assert!(pads.tags.contains(&Tag::HostUniq(b"u")));
    assert!(
        pads.tags
            .iter()
            .any(|t| matches!(t, Tag::ServiceNameError(_)))
    );
}

#[test]
fn a_cookie_is_good_for_its_line_and_time_only() {
    let ours = server(&[], None);
    let cookie = cookie_of(&ours);
    let admitted = |now, circuit: &Circuit, cookie: &[u8]| {
        matches!(request(&ours, now, circuit, cookie), Answer::Admit(_))
    };
    assert!(admitted(NOW, &home(), &cookie));
    assert!(admitted(NOW + LIFETIME, &home(), &cookie));
    assert!(!admitted(
        NOW + LIFETIME + Duration::from_micros(1),
        &home(),
        &cookie
    ));
    assert!(!admitted(NOW, &home(), &cookie[..cookie.len() - 1]));
    assert!(!admitted(NOW, &home(), &[&cookie[..], &[0]].concat()));
    assert!(!admitted(NOW, &home(), &[]));
    for octet in 0..cookie.len() {
        let mut forged = cookie.clone();
        forged[octet] ^= 1;
        assert!(!admitted(NOW, &home(), &forged));
    }
    let others = [
        Circuit {
            mac: MacAddr([2, 0, 0, 0, 0, 2]),
            ..home()
        },
        Circuit {
            tags: Vlans::qinq(100, 8),
            ..home()
        },
        Circuit {
            tags: Vlans::single(100),
            ..home()
        },
        Circuit {
            tags: Vlans::NONE,
            ..home()
        },
        Circuit {
            logical_port: (*b"access1").into(),
            ..home()
        },
    ];
    assert!(others.iter().all(|c| !admitted(NOW, c, &cookie)));
    let tags = Vlans {
        outer: Some(Vlan {
            pcp: 5,
            dei: true,
            ..Vlan::new(100)
        }),
        ..Vlans::qinq(100, 7)
    };
    assert!(
        admitted(NOW, &Circuit { tags, ..home() }, &cookie),
        "priorities do not tell lines apart"
    );
    assert!(matches!(
        request(&ours, NOW, &home(), &cookie),
        Answer::Admit(padr) if padr.offer == number(NOW)
    ));
    let other_key = DiscoveryConfig {
        cookie_key: [8; 32],
        ..ours.config.clone()
    };
    assert!(matches!(
        request(&Discovery::new(other_key), NOW, &home(), &cookie),
        Answer::Ignore(_)
    ));
}

#[test]
fn a_request_says_what_the_access_node_knows() {
    let ours = server(&[], None);
    let cookie = cookie_of(&ours);
    let mut line = Vec::new();
    pppoe::AccessLine {
        circuit_id: Some(b"olt1 1/2/3"),
        remote_id: Some(b"line 9"),
        others: vec![(0x81, &[0, 0, 0x27, 0x10]), (0x82, &[1])],
    }
    .emit(&mut line);
    let tags = [
        Tag::ServiceName(b""),
        Tag::AcCookie(&cookie),
        Tag::HostUniq(b"u"),
        Tag::Vendor(pppoe::VENDOR_BBF, &line),
    ];
    let Answer::Admit(padr) = ours.on_frame(NOW, &home(), &packet(pppoe::PADR, 0, &tags)) else {
        panic!()
    };
    assert_eq!(padr.circuit_id.as_deref(), Some(&b"olt1 1/2/3"[..]));
    assert_eq!(padr.remote_id.as_deref(), Some(&b"line 9"[..]));
    let access_loop = padr.access_loop.as_ref().unwrap();
    let values: Vec<_> = access_loop.values().collect();
    assert_eq!(values, [(LoopValue::ActualRateUp, 10_000)]);
    let pads = ours.pads(&padr, 77);
    let pads = Packet::parse(&pads).unwrap();
    assert_eq!((pads.code, pads.session_id), (pppoe::PADS, 77));
    assert_eq!(pads.tags, [Tag::ServiceName(b""), Tag::HostUniq(b"u")]);
    let full = ours.refuse(&padr, Refusal::System("no session id is free"));
    let full = Packet::parse(&full).unwrap();
    assert_eq!(full.session_id, 0);
    assert!(
        full.tags
            .contains(&Tag::AcSystemError(b"no session id is free"))
    );
}

/// The access node adds its tag behind those of the home (TR-101 §3.9.2).
#[test]
fn the_last_access_line_is_the_access_nodes() {
    let ours = server(&[], None);
    let cookie = cookie_of(&ours);
    let line = |circuit_id: &[u8], remote_id: &[u8]| {
        let mut line = Vec::new();
        let (circuit_id, remote_id) = (Some(circuit_id), Some(remote_id));
        pppoe::AccessLine {
            circuit_id,
            remote_id,
            others: Vec::new(),
        }
        .emit(&mut line);
        line
    };
    let (forged, own) = (line(b"neighbour", b"neighbour"), line(b"olt1 1/2/3", b""));
    let tags = [
        Tag::ServiceName(b""),
        Tag::AcCookie(&cookie),
        Tag::Vendor(pppoe::VENDOR_BBF, &forged),
        Tag::Vendor(9, b"other"),
        Tag::Vendor(pppoe::VENDOR_BBF, &own),
    ];
    let Answer::Admit(padr) = ours.on_frame(NOW, &home(), &packet(pppoe::PADR, 0, &tags)) else {
        panic!()
    };
    assert_eq!(padr.circuit_id.as_deref(), Some(&b"olt1 1/2/3"[..]));
    assert_eq!(padr.remote_id, None, "an empty id names no line");
}

#[test]
fn a_line_that_is_not_trusted_names_itself_by_nothing() {
    let config = DiscoveryConfig {
        trusts_access_line: false,
        ..server(&[], None).config
    };
    let ours = Discovery::new(config);
    let cookie = cookie_of(&ours);
    let tags = [
        Tag::ServiceName(b""),
        Tag::AcCookie(&cookie),
        Tag::Vendor(pppoe::VENDOR_BBF, b"\x01\x04home\x81\x04\0\0\0\x09"),
    ];
    let Answer::Admit(padr) = ours.on_frame(NOW, &home(), &packet(pppoe::PADR, 0, &tags)) else {
        panic!()
    };
    assert_eq!((padr.circuit_id, padr.access_loop), (None, None));
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let ours = server(&[], None);
    let name = Tag::ServiceName(b"");
    let long = [0; 257];
    let cases = [
        packet(pppoe::PADI, 0, &[]),
        packet(pppoe::PADI, 5, &[name]),
        packet(pppoe::PADI, 0, &[name, name]),
        packet(pppoe::PADI, 0, &[name, Tag::HostUniq(&long)]),
        packet(pppoe::PADR, 0, &[name]),
        packet(pppoe::PADT, 0, &[]),
        packet(pppoe::PADO, 0, &[name]),
        packet(pppoe::PADS, 9, &[name]),
        packet(0x42, 0, &[name]),
        vec![],
    ];
    for case in cases {
        assert!(
            matches!(ours.on_frame(NOW, &home(), &case), Answer::Ignore(_)),
            "{case:02x?}"
        );
    }
    let padi = packet(pppoe::PADI, 0, &[name]);
    let broadcast = Circuit {
        mac: MacAddr::BROADCAST,
        ..home()
    };
    assert!(matches!(
        ours.on_frame(NOW, &broadcast, &padi),
        Answer::Ignore(_)
    ));
}

#[test]
fn termination_goes_both_ways() {
    let ours = server(&[], None);
    assert_eq!(
        ours.on_frame(NOW, &home(), &padt(9, "bye")),
        Answer::Terminate { session_id: 9 }
    );
    let bytes = padt(9, "bye");
    assert_eq!(
        Packet::parse(&bytes).unwrap().tags,
        [Tag::GenericError(b"bye")]
    );
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_arbitrary_is_admitted(payload: Vec<u8>, code in prop::sample::select(vec![9u8, 0x19, 0xa7, 7]), tags: Vec<u8>) {
        let ours = server(&[], Some(1500));
        ours.on_frame(NOW, &home(), &payload);
        let mut framed = Vec::new();
        pppoe::Packet { code, session_id: 0, payload: &tags }.emit(&mut framed);
        let answer = ours.on_frame(NOW, &home(), &framed);
        prop_assert!(!matches!(answer, Answer::Admit(_)));
    }

    /// An answer always fits into a frame, so that a PADI causes no amplification.
    #[test]
    fn an_offer_fits_into_a_frame(uniq in prop::collection::vec(any::<u8>(), 0..300), relay in prop::collection::vec(any::<u8>(), 0..300)) {
        let padi = packet(pppoe::PADI, 0, &[Tag::ServiceName(b""), Tag::HostUniq(&uniq), Tag::RelaySessionId(&relay)]);
        if let Answer::Offer(reply) = server(&[], None).on_frame(NOW, &home(), &padi) {
            prop_assert!(reply.len() <= 1500);
        }
    }
}
