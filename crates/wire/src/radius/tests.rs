use ipnet::Ipv6Net;
use proptest::prelude::*;

use super::*;

const SECRET: &[u8] = b"xyzzy5461";

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|octet| u8::from_str_radix(octet, 16).unwrap())
        .collect()
}

/// RFC 2865 §7.1.
const NEMO_REQUEST: &str = "01 00 00 38 0f 40 3f 94 73 97 80 57 bd 83 d5 cb 98 f4 22 7a 01 06 6e 65 6d 6f 02 12 0d be 70 \
     8d 93 d4 13 ce 31 96 e4 3f 78 2a 0a ee 04 06 c0 a8 01 10 05 06 00 00 00 03";
const NEMO_ACCEPT: &str = "02 00 00 26 86 fe 22 0e 76 24 ba 2a 10 05 f6 bf 9b 55 e0 b2 06 06 00 00 00 01 0f 06 00 00 00 00 \
     0e 06 c0 a8 01 03";
/// RFC 2865 §7.2.
const FLOPSY_REQUEST: &str = "01 01 00 47 2a ee 86 f0 8d 0d 55 96 9c a5 97 8e 0d 33 67 a2 01 08 66 6c 6f 70 73 79 03 13 16 \
     e9 75 57 c3 16 18 58 95 f2 93 ff 63 44 07 72 75 04 06 c0 a8 01 10 05 06 00 00 00 14 06 06 00 00 00 02 07 06 00 00 00 01";
const FLOPSY_ACCEPT: &str = "02 01 00 38 15 ef bc 7d ab 26 cf a3 dc 34 d9 c0 3c 86 01 a4 06 06 00 00 00 02 07 06 00 00 00 01 \
     08 06 ff ff ff fe 0a 06 00 00 00 02 0d 06 00 00 00 01 0c 06 00 00 05 dc";
/// A Disconnect-Request for the session `51`.
const DISCONNECT: &str = "28 07 00 2a c3 36 41 a9 8d df d8 43 ad 92 91 ea ea 0e d9 1f 50 12 df 4c 19 e5 d2 21 ab d4 fb 3b 8b 38 57 e7 9a 12 2c 04 35 31";

#[test]
fn reads_and_writes_the_requests_of_rfc_2865() {
    for example in [NEMO_REQUEST, FLOPSY_REQUEST] {
        let bytes = hex(example);
        let mut out = Vec::new();
        Packet::parse(&bytes).unwrap().emit(&mut out).unwrap();
        assert_eq!(out, bytes);
    }
    let nemo = Packet::parse(&hex(NEMO_REQUEST)).unwrap();
    assert_eq!(
        nemo.get(Kind::USER_NAME),
        Some(&Value::Octets(b"nemo".to_vec()))
    );
    assert_eq!(
        nemo.get(Kind::NAS_IP_ADDRESS),
        Some(&Value::Ipv4([192, 168, 1, 16].into()))
    );
    assert_eq!(nemo.get(Kind::NAS_PORT), Some(&Value::Integer(3)));
}

#[test]
fn hides_the_password_of_rfc_2865() {
    let nemo = Packet::parse(&hex(NEMO_REQUEST)).unwrap();
    let hidden = hide_password(b"arctangent", &nemo.authenticator, SECRET).unwrap();
    assert_eq!(
        nemo.get(Kind::USER_PASSWORD),
        Some(&Value::Octets(hidden.clone()))
    );
    assert_eq!(
        reveal_password(&hidden, &nemo.authenticator, SECRET).unwrap(),
        b"arctangent"
    );
}

#[test]
fn verifies_the_replies_of_rfc_2865() {
    for (request, reply) in [(NEMO_REQUEST, NEMO_ACCEPT), (FLOPSY_REQUEST, FLOPSY_ACCEPT)] {
        let request = Packet::parse(&hex(request)).unwrap().authenticator;
        let mut reply = hex(reply);
        let accept = verify_response(&reply, &request, SECRET, Missing::Allow).unwrap();
        assert_eq!(accept.code, Code::ACCESS_ACCEPT);
        assert!(verify_response(&reply, &request, SECRET, Missing::Refuse).is_err());
        assert!(verify_response(&reply, &request, b"another", Missing::Allow).is_err());
        assert!(verify_response(&reply, &[0; 16], SECRET, Missing::Allow).is_err());
        *reply.last_mut().unwrap() ^= 1;
        assert!(verify_response(&reply, &request, SECRET, Missing::Allow).is_err());
    }
}

#[test]
fn answers_a_chap_challenge() {
    // MD5(07 "wonderland" 00 01 … 0f), computed with another implementation of MD5.
    let challenge: Vec<u8> = (0..16).collect();
    let response = chap_response(7, b"wonderland", &challenge);
    assert_eq!(
        response.to_vec(),
        hex("13 03 d9 7e 48 80 a5 fc cd d7 cf 37 25 f2 6e 18")
    );
}

fn request() -> Packet {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 9, [7; 16]);
    packet.push(Kind::USER_NAME, b"alice");
    packet.push(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, b"up1 eth 1/1:100.7");
    packet.push(Kind::CLASS, b"gold");
    packet
}

#[test]
fn an_access_request_proves_its_sender() {
    let bytes = request().emit_access_request(SECRET).unwrap();
    assert_eq!(
        bytes[HEADER_LEN..HEADER_LEN + 2],
        [80, 18],
        "the Message-Authenticator comes first"
    );
    let received = verify_access_request(&bytes, SECRET).unwrap();
    assert_eq!(received.attributes[1..], request().attributes);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(
            verify_access_request(&changed, SECRET).is_err(),
            "octet {at} changed"
        );
    }
    let mut without = Vec::new();
    request().emit(&mut without).unwrap();
    assert!(verify_access_request(&without, SECRET).is_err());
}

/// Signed with another implementation: MD5 and HMAC-MD5 of Python's standard library.
#[test]
fn a_dynamic_request_is_signed_as_rfc_5176_says() {
    let mut packet = Packet::new(Code::DISCONNECT_REQUEST, 7, [9; 16]);
    packet.push(Kind::ACCT_SESSION_ID, "51");
    let bytes = packet.emit_dynamic_request(SECRET).unwrap();
    assert_eq!(bytes, hex(DISCONNECT));
    let received = verify_dynamic_request(&bytes, SECRET, Missing::Refuse).unwrap();
    assert_eq!(received.attributes[1..], packet.attributes);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let changed = verify_dynamic_request(&changed, SECRET, Missing::Allow);
        assert!(changed.is_err(), "octet {at} changed");
    }
    let mut without = Vec::new();
    packet.emit(&mut without).unwrap();
    sign_accounting_request(&mut without, SECRET);
    assert!(verify_dynamic_request(&without, SECRET, Missing::Allow).is_ok());
    assert!(verify_dynamic_request(&without, SECRET, Missing::Refuse).is_err());
    let accounting = request().emit_accounting_request(SECRET).unwrap();
    assert!(verify_dynamic_request(&accounting, SECRET, Missing::Allow).is_err());
}

#[test]
fn a_reply_proves_its_sender() {
    let mut reply = Packet::new(Code::ACCESS_ACCEPT, 9, [0; 16]);
    reply.push(Kind::CLASS, b"gold");
    let bytes = reply.emit_response(&[7; 16], SECRET).unwrap();
    let received = verify_response(&bytes, &[7; 16], SECRET, Missing::Refuse).unwrap();
    assert_eq!(received.attributes[1..], reply.attributes);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(
            verify_response(&changed, &[7; 16], SECRET, Missing::Refuse).is_err(),
            "octet {at} changed"
        );
    }
}

/// CVE-2024-3596: who can find a collision of MD5 has a right Response Authenticator, but no Message-Authenticator.
#[test]
fn a_wrong_message_authenticator_is_refused_under_a_right_authenticator() {
    for length in [16, 15] {
        let mut reply = Packet::new(Code::ACCESS_ACCEPT, 9, [7; 16]);
        reply.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; length]);
        let mut out = Vec::new();
        reply.emit(&mut out).unwrap();
        use md5::{Digest, Md5};
        let digest = Md5::new()
            .chain_update(&out)
            .chain_update(SECRET)
            .finalize();
        out[4..HEADER_LEN].copy_from_slice(&digest);
        for missing in [Missing::Refuse, Missing::Allow] {
            let refused = verify_response(&out, &[7; 16], SECRET, missing).unwrap_err();
            assert_eq!(refused, Malformed("RADIUS: wrong Message-Authenticator"));
        }
    }
}

#[test]
fn an_accounting_request_proves_its_sender() {
    let mut packet = Packet::new(Code::ACCOUNTING_REQUEST, 3, [0; 16]);
    packet.push(Kind::ACCT_STATUS_TYPE, values::ACCT_STATUS_TYPE_START);
    let bytes = packet.emit_accounting_request(SECRET).unwrap();
    assert_eq!(
        verify_accounting_request(&bytes, SECRET)
            .unwrap()
            .attributes,
        packet.attributes
    );
    assert!(verify_accounting_request(&bytes, b"another").is_err());
}

#[test]
fn attributes_that_do_not_fit_their_type_are_kept_as_invalid() {
    let cases = [
        (Kind::SESSION_TIMEOUT, vec![0, 0, 1]),
        (Kind::FRAMED_IP_ADDRESS, vec![10, 0, 0, 1, 0]),
        (Kind::FRAMED_IPV6_PREFIX, vec![0]),
        (Kind::FRAMED_IPV6_PREFIX, vec![0, 129]),
        (Kind::FRAMED_IPV6_PREFIX, vec![0, 64, 0x20, 1]),
        (Kind::FRAMED_IPV6_PREFIX, vec![0, 8, 0x20, 1]),
        (Kind::FRAMED_INTERFACE_ID, vec![0; 7]),
        (Kind::REPLY_MESSAGE, vec![0xff]),
        (Kind::VENDOR_SPECIFIC, vec![0, 0, 13]),
        (Kind::VENDOR_SPECIFIC, hex("00 00 0d e9")),
        (
            Kind::VENDOR_SPECIFIC,
            hex("00 00 0d e9 01 04 61 62 02 09 61"),
        ),
    ];
    for (kind, octets) in cases {
        let mut bytes = hex("02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
        bytes.extend([kind.number, octets.len() as u8 + 2]);
        bytes.extend(&octets);
        bytes[3] = bytes.len() as u8;
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(
            packet.attributes,
            [Attribute {
                kind,
                value: Value::Invalid(octets)
            }]
        );
    }
}

#[test]
fn a_prefix_may_come_with_more_octets_than_it_needs() {
    let mut bytes = hex(
        "02 00 00 28 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 61 14 00 40 20 01 0d b8 00 00 00 01",
    );
    bytes.extend([0; 8]);
    let packet = Packet::parse(&bytes).unwrap();
    let prefix: Ipv6Net = "2001:db8:0:1::/64".parse().unwrap();
    assert_eq!(
        packet.get(Kind::FRAMED_IPV6_PREFIX),
        Some(&Value::Ipv6Prefix(prefix))
    );
}

#[test]
fn one_vendor_attribute_may_hold_several() {
    let bytes = hex(
        "01 00 00 22 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 1a 0e 00 00 0d e9 01 04 61 62 02 04 63 64",
    );
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(
        packet.get(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID),
        Some(&Value::Octets(b"ab".to_vec()))
    );
    assert_eq!(
        packet.get(Kind::ADSL_FORUM_AGENT_REMOTE_ID),
        Some(&Value::Octets(b"cd".to_vec()))
    );
}

#[test]
fn long_values_are_spread_where_that_is_allowed() {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 0, [0; 16]);
    packet.push(Kind::EAP_MESSAGE, vec![5; 600]);
    let mut out = Vec::new();
    packet.emit(&mut out).unwrap();
    assert_eq!(out.len(), HEADER_LEN + 600 + 3 * 2);
    assert_eq!(Packet::parse(&out).unwrap(), packet);
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 0, [0; 16]);
    packet.push(Kind::USER_NAME, vec![5; 254]);
    assert!(packet.emit(&mut Vec::new()).is_err());
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 0, [0; 16]);
    packet.push(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, vec![5; 248]);
    assert!(packet.emit(&mut Vec::new()).is_err());
}

#[test]
fn a_packet_longer_than_allowed_is_not_written() {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 0, [0; 16]);
    packet.push(Kind::EAP_MESSAGE, vec![5; 4096]);
    assert!(packet.emit(&mut Vec::new()).is_err());
}

#[test]
fn padding_behind_the_packet_is_ignored_and_every_truncation_refused() {
    let whole = request().emit_access_request(SECRET).unwrap();
    let mut padded = whole.clone();
    padded.extend([1, 2, 3]);
    assert_eq!(Packet::parse(&padded), Packet::parse(&whole));
    assert!(verify_access_request(&padded, SECRET).is_ok());
    for end in 0..whole.len() {
        assert!(Packet::parse(&whole[..end]).is_err());
    }
}

#[test]
fn passwords_are_not_shown() {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 0, [0; 16]);
    packet.push(Kind::USER_PASSWORD, b"hunter2");
    assert!(!format!("{packet:?}").contains("hunter2"));
}

#[test]
fn the_dictionary_has_each_number_once() {
    let mut kinds: Vec<Kind> = Kind::all().collect();
    kinds.sort();
    assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(Kind::STATEFUL_IPV6_ADDRESS_POOL.number, 172);
    assert_eq!(
        format!("{:?}", Kind::ADSL_FORUM_AGENT_REMOTE_ID),
        "ADSL-Forum-Agent-Remote-Id"
    );
}

fn value(kind: Kind) -> BoxedStrategy<Value> {
    let long = if kind.vendor == 0 { MAX_VALUE } else { 247 };
    let octets = move || prop::collection::vec(any::<u8>(), 0..=long);
    match kind.data_type() {
        DataType::Octets if kind == Kind::EAP_MESSAGE => prop::collection::vec(any::<u8>(), 0..900)
            .prop_map(Value::Octets)
            .boxed(),
        // Inside the attributes of vendors that are not in the dictionary.
        DataType::Octets if kind == Kind::VENDOR_SPECIFIC => octets()
            .prop_filter("another vendor", |octets| {
                octets.len() >= 4 && octets[..4] != [0, 0, 0x0d, 0xe9]
            })
            .prop_map(Value::Octets)
            .boxed(),
        DataType::Octets => octets().prop_map(Value::Octets).boxed(),
        DataType::Text => "\\PC{0,60}".prop_map(Value::Text).boxed(),
        DataType::Integer => any::<u32>().prop_map(Value::Integer).boxed(),
        DataType::Time => any::<u32>().prop_map(Value::Time).boxed(),
        DataType::Ipv4 => any::<[u8; 4]>()
            .prop_map(|octets| Value::Ipv4(octets.into()))
            .boxed(),
        DataType::Ipv6 => any::<[u8; 16]>()
            .prop_map(|octets| Value::Ipv6(octets.into()))
            .boxed(),
        DataType::InterfaceId => any::<u64>().prop_map(Value::InterfaceId).boxed(),
        DataType::Ipv6Prefix => (any::<[u8; 16]>(), 0u8..=128)
            .prop_map(|(octets, length)| {
                Value::Ipv6Prefix(Ipv6Net::new_assert(octets.into(), length).trunc())
            })
            .boxed(),
    }
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let kinds: Vec<Kind> = Kind::all()
        .chain([Kind::standard(200), Kind::standard(255)])
        .collect();
    prop::sample::select(kinds)
        .prop_flat_map(|kind| value(kind).prop_map(move |value| Attribute { kind, value }))
}

fn packet() -> impl Strategy<Value = Packet> {
    let attributes = prop::collection::vec(attribute(), 0..8).prop_filter(
        "parts of two messages would join",
        |attributes| {
            attributes
                .iter()
                .filter(|attribute| attribute.kind == Kind::EAP_MESSAGE)
                .count()
                < 2
        },
    );
    (any::<u8>(), any::<u8>(), any::<[u8; 16]>(), attributes).prop_map(
        |(code, identifier, authenticator, attributes)| Packet {
            code: Code(code),
            identifier,
            authenticator,
            attributes,
        },
    )
}

proptest! {
    #[test]
    fn what_was_written_reads_the_same(packet in packet()) {
        let mut out = Vec::new();
        packet.emit(&mut out).unwrap();
        prop_assert_eq!(Packet::parse(&out), Ok(packet));
    }

    #[test]
    fn any_bytes_parse_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(&bytes);
        let _ = verify_access_request(&bytes, SECRET);
        let _ = verify_accounting_request(&bytes, SECRET);
    }

    #[test]
    fn a_header_with_any_attributes_parses_or_is_refused(attributes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut bytes = vec![2, 0, 0, HEADER_LEN as u8 + attributes.len() as u8];
        bytes.extend([0; 16]);
        bytes.extend(&attributes);
        if let Ok(packet) = Packet::parse(&bytes) {
            let mut again = Vec::new();
            packet.emit(&mut again).unwrap();
            prop_assert_eq!(Packet::parse(&again), Ok(packet));
        }
        let _ = super::crypto::verify_message_authenticator(&bytes, &[0; 16], SECRET, Missing::Allow);
    }

    #[test]
    fn every_password_comes_back(password in "[^\0]{0,32}", authenticator in any::<[u8; 16]>()) {
        let hidden = hide_password(password.as_bytes(), &authenticator, SECRET).unwrap();
        prop_assert_eq!(hidden.len() % 16, 0);
        prop_assert_eq!(reveal_password(&hidden, &authenticator, SECRET).unwrap(), password.into_bytes());
    }
}

#[test]
fn a_packet_has_at_most_4096_octets() {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, 1, [0; 16]);
    (0..15).for_each(|_| packet.push(Kind::CLASS, vec![1; MAX_VALUE]));
    packet.push(Kind::CLASS, vec![1; MAX_LEN - HEADER_LEN - 15 * 255 - 2]);
    let mut out = Vec::new();
    packet.emit(&mut out).unwrap();
    assert_eq!(
        (out.len(), Packet::parse(&out)),
        (MAX_LEN, Ok(packet.clone()))
    );
    packet.push(Kind::CLASS, vec![]);
    assert!(packet.emit(&mut out).is_err());
}

#[test]
fn codes_have_the_names_of_their_rfcs() {
    let names = [
        (Code::ACCESS_ACCEPT, "Access-Accept"),
        (Code::STATUS_SERVER, "Status-Server"),
        (Code::DISCONNECT_NAK, "Disconnect-NAK"),
    ];
    for (code, name) in names {
        assert_eq!(
            (code.name(), format!("{code:?}")),
            (Some(name), name.into())
        );
    }
    assert_eq!(format!("{:?}", Code(99)), "Code(99)");
}
