//! Properties of the codec, and kept cases.
use super::*;
use crate::eth::MacAddr;
use codec::{Elements, put};
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;

/// Octets that a value is made from. Past their end there are zeros, so that proptest's shrinking works.
pub(super) struct Entropy(std::vec::IntoIter<u8>);

impl Entropy {
    fn octet(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.octet()) % choices.len()]
    }

    pub fn option<T: Sample>(&mut self) -> Option<T> {
        (self.octet() & 1 != 0).then(|| T::sample(self))
    }

    pub fn list<T: Sample>(&mut self) -> Vec<T> {
        (0..self.octet() % 4).map(|_| T::sample(self)).collect()
    }

    fn text(&mut self) -> String {
        (0..self.octet() % 12)
            .map(|_| char::from(b'a' + self.octet() % 26))
            .collect()
    }

    fn below(&mut self, bound: u64) -> u64 {
        u64::sample(self) % bound
    }
}

/// A value of any kind, made from octets.
pub(super) trait Sample: Sized {
    fn sample(e: &mut Entropy) -> Self;
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Sample for $int {
            fn sample(e: &mut Entropy) -> Self {
                let mut octets = [0; size_of::<$int>()];
                octets.fill_with(|| e.octet());
                <$int>::from_le_bytes(octets)
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 u128);

macro_rules! samples {
    ($( $ty:ty: |$e:ident| $make:expr; )*) => {$(
        impl Sample for $ty {
            fn sample($e: &mut Entropy) -> Self {
                $make
            }
        }
    )*};
}

impl Sample for (u8, Vec<u8>) {
    fn sample(e: &mut Entropy) -> Self {
        (u8::sample(e), Vec::sample(e))
    }
}

impl Sample for (u64, u64) {
    fn sample(e: &mut Entropy) -> Self {
        (u64::sample(e), u64::sample(e))
    }
}

samples! {
    super::Audit: |e| super::Audit { epoch: u32::sample(e), last: e.octet() & 1 == 0, sessions: e.list() };
    super::AuditResult: |e| super::AuditResult { wrong: e.list(), unknown_sessions: e.list() };
    super::Settings: |e| super::Settings(e.list());
    bool: |e| e.octet() & 1 != 0;
    String: |e| e.text();
    Vec<u8>: |e| e.text().into_bytes();
    Ipv4Addr: |e| u32::sample(e).into();
    Ipv6Addr: |e| u128::sample(e).into();
    MacAddr: |e| MacAddr(core::array::from_fn(|_| e.octet()));
    Cause: |e| Cause(e.octet());
    OuterHeaderRemoval: |e| OuterHeaderRemoval(e.octet());
    BbfOuterHeaderRemoval: |e| BbfOuterHeaderRemoval(e.octet());
    BbfUpFeatures: |e| BbfUpFeatures(e.octet());
    BbfOuterHeaderCreation: |e| BbfOuterHeaderCreation {
        description: u16::sample(e),
        tunnel_id: u16::sample(e),
        session_id: u16::sample(e),
    };
    VerificationTimers: |e| VerificationTimers { interval: u16::sample(e), count: e.octet() };
    KnownSettings: |e| KnownSettings::of(u64::sample(e).to_be_bytes());
    Lanes: |e| Lanes(core::array::from_fn(|_| e.octet()));
    MagicNumbers: |e| MagicNumbers { transmitted: u32::sample(e), received: u32::sample(e) };
    GateStatus: |e| GateStatus { uplink_open: bool::sample(e), downlink_open: bool::sample(e) };
    EntityAddress: |e| EntityAddress { ipv4: e.option(), ipv6: e.option() };
    BitRate: |e| BitRate { uplink_kbps: e.below(1 << 40), downlink_kbps: e.below(1 << 40) };
    VlanTag: |e| VlanTag {
        vid: e.option().map(|vid: u16| vid & 0xfff),
        pcp: e.option().map(|pcp: u8| pcp & 7),
        dei: e.option(),
    };
    MacAddresses: |e| MacAddresses {
        source: e.option(),
        destination: e.option(),
        upper_source: e.option(),
        upper_destination: e.option(),
    };
    SdfFilter: |e| SdfFilter {
        flow_description: e.option(),
        traffic_class: e.option(),
        spi: e.option(),
        flow_label: e.option().map(|label: u32| label & 0xf_ffff),
        filter_id: e.option(),
    };
    VolumeMeasurement: |e| VolumeMeasurement {
        total_octets: e.option(),
        uplink_octets: e.option(),
        downlink_octets: e.option(),
        total_packets: e.option(),
        uplink_packets: e.option(),
        downlink_packets: e.option(),
    };
    FSeid: |e| {
        let (ipv4, ipv6) = addresses(e);
        FSeid { seid: u64::sample(e), ipv4, ipv6 }
    };
    FTeid: |e| {
        let (ipv4, ipv6) = addresses(e);
        match bool::sample(e) {
            true => FTeid::Given { teid: u32::sample(e), ipv4, ipv6 },
            false => FTeid::Choose { ipv4: ipv4.is_some(), ipv6: ipv6.is_some(), id: e.option() },
        }
    };
    OuterHeaderCreation: |e| {
        let (ipv4, ipv6) = addresses(e);
        OuterHeaderCreation {
            teid: e.option(),
            ipv4,
            ipv6,
            port: e.option(),
            c_tag: e.option(),
            s_tag: e.option(),
        }
    };
    UeIpAddress: |e| {
        let (ipv4, ipv6): (Option<Ipv4Addr>, Option<Ipv6Addr>) = (e.option(), e.option());
        let (bits, length) = (e.option(), e.option());
        UeIpAddress {
            destination: bool::sample(e),
            ipv4,
            ipv6,
            delegation_bits: bits.map(|bits: u8| bits % 65),
            prefix_length: length.filter(|_| bits.is_none()).map(|length: u8| length % 129),
            choose_ipv4: bool::sample(e) && ipv4.is_none(),
            choose_ipv6: bool::sample(e) && ipv6.is_none(),
        }
    };
    PppProtocol: |e| match e.octet() % 3 {
        0 => PppProtocol::Control,
        1 => PppProtocol::Data,
        _ => PppProtocol::Specific(u16::sample(e)),
    };
    FailedRule: |e| match e.octet() % 4 {
        0 => FailedRule::Pdr(u16::sample(e)),
        1 => FailedRule::Far(u32::sample(e)),
        2 => FailedRule::Qer(u32::sample(e)),
        _ => FailedRule::Urr(u32::sample(e)),
    };
    NodeId: |e| match e.octet() % 3 {
        0 => NodeId::Ipv4(e.option().unwrap_or(Ipv4Addr::LOCALHOST)),
        1 => NodeId::Ipv6(e.option().unwrap_or(Ipv6Addr::LOCALHOST)),
        _ => NodeId::Fqdn(format!("a{}.b{}", e.text(), e.text())),
    };
    Packet: |e| {
        let message = Message::sample(e);
        Packet {
            seid: message.is_about_session().then(|| u64::sample(e)),
            sequence: u32::sample(e) & SEQUENCE_MASK,
            message,
        }
    };
}

/// At least one of the two.
fn addresses(e: &mut Entropy) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
    let ipv6 = e.option();
    (
        if ipv6.is_none() {
            Some(Ipv4Addr::sample(e))
        } else {
            e.option()
        },
        ipv6,
    )
}

/// "Set to nothing" is not told from "clear" on the wire, and means the same.
impl Sample for Change<String> {
    fn sample(e: &mut Entropy) -> Self {
        Some(e.text())
            .filter(|text| !text.is_empty())
            .map_or(Change::Clear, Change::Set)
    }
}

macro_rules! changes {
    ($($ty:ty)*) => {$(
        impl Sample for Change<$ty> {
            fn sample(e: &mut Entropy) -> Self {
                e.option().map_or(Change::Clear, Change::Set)
            }
        }
    )*};
}

changes!(u8 u16 OuterHeaderRemoval OuterHeaderCreation BbfOuterHeaderRemoval BbfOuterHeaderCreation);

fn packets() -> impl Strategy<Value = Packet> {
    prop::collection::vec(any::<u8>(), 0..1500)
        .prop_map(|bytes| Packet::sample(&mut Entropy(bytes.into_iter())))
}

fn emitted(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn emit_then_parse_is_identity(packet in packets()) {
        let received = parse(&emitted(&packet)).unwrap();
        prop_assert_eq!(received.ignored, 0);
        prop_assert_eq!(received.packet, packet);
    }

    /// Arbitrary octets, also behind a header that is in order.
    #[test]
    fn any_octets_are_parsed_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..256), kind in 0u8..60, dress in any::<bool>()) {
        if dress && bytes.len() >= 4 {
            let length = (bytes.len() - 4) as u16;
            bytes[0] = VERSION << 5 | u8::from(is_about_session(kind));
            bytes[1] = kind;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
        }
        if let Ok(received) = parse(&bytes) {
            let _ = received.packet.emit(&mut Vec::new());
        }
    }

    /// One octet of a good message is changed: it may be refused, and what is accepted can be sent again.
    #[test]
    fn damaged_messages_do_not_panic(packet in packets(), at in any::<prop::sample::Index>(), octet in any::<u8>()) {
        let mut bytes = emitted(&packet);
        let at = at.index(bytes.len());
        bytes[at] = octet;
        if let Ok(received) = parse(&bytes) {
            let again = emitted(&received.packet);
            prop_assert_eq!(parse(&again).unwrap().packet, received.packet);
        }
    }

    #[test]
    fn cut_messages_do_not_panic(packet in packets()) {
        cut_everywhere(&emitted(&packet));
    }
}

/// Cuts a message at every octet: once as a datagram that was cut, once with a header that has been made to fit.
fn cut_everywhere(bytes: &[u8]) {
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "cut at {end}");
        if end >= 4 {
            let mut cut = bytes[..end].to_vec();
            cut[2..4].copy_from_slice(&((end - 4) as u16).to_be_bytes());
            let _ = parse(&cut);
        }
    }
}

/// A message with everything in it: every element of every group, at least once.
fn full(kind: usize) -> Packet {
    // Ones take every option, and lists come out three long.
    let mut entropy = Entropy(vec![0xff; 200_000].into_iter());
    let all = messages_of_every_kind(&mut entropy);
    let message = all.into_iter().nth(kind).unwrap();
    Packet {
        seid: message.is_about_session().then_some(1),
        sequence: 1,
        message,
    }
}

fn messages_of_every_kind(e: &mut Entropy) -> Vec<Message> {
    vec![
        HeartbeatRequest::sample(e).into(),
        HeartbeatResponse::sample(e).into(),
        AssociationSetupRequest::sample(e).into(),
        AssociationSetupResponse::sample(e).into(),
        AssociationUpdateRequest::sample(e).into(),
        AssociationUpdateResponse::sample(e).into(),
        AssociationReleaseRequest::sample(e).into(),
        AssociationReleaseResponse::sample(e).into(),
        VersionNotSupportedResponse::sample(e).into(),
        SessionEstablishmentRequest::sample(e).into(),
        SessionEstablishmentResponse::sample(e).into(),
        SessionModificationRequest::sample(e).into(),
        SessionModificationResponse::sample(e).into(),
        SessionDeletionRequest::sample(e).into(),
        SessionDeletionResponse::sample(e).into(),
        SessionReportRequest::sample(e).into(),
        SessionReportResponse::sample(e).into(),
    ]
}

#[test]
fn full_messages_of_every_kind_in_every_truncation() {
    for kind in 0..17 {
        let packet = full(kind);
        let bytes = emitted(&packet);
        assert_eq!(parse(&bytes).unwrap().packet, packet);
        cut_everywhere(&bytes);
    }
}

fn refusal(bytes: &[u8]) -> (Cause, Option<IeId>) {
    match parse(bytes) {
        Err(ParseError::Refused {
            cause,
            offending_ie,
            ..
        }) => (cause, offending_ie),
        other => panic!("not refused: {other:?}"),
    }
}

/// A message with a body of these elements.
fn with_body(kind: u8, elements: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![VERSION << 5 | u8::from(is_about_session(kind)), kind, 0, 0];
    if is_about_session(kind) {
        bytes.extend_from_slice(&[0; 8]);
    }
    bytes.extend_from_slice(&[0, 0, 1, 0]);
    for (kind, payload) in elements {
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        bytes.extend_from_slice(payload);
    }
    let length = (bytes.len() - 4) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

#[test]
fn missing_and_wrong_elements_are_named() {
    let missing = Cause::MANDATORY_IE_MISSING;
    assert_eq!(
        refusal(&with_body(1, &[])),
        (missing, Some(ie::RECOVERY_TIME_STAMP))
    );
    assert_eq!(
        refusal(&with_body(5, &[(60, &[0, 1, 2, 3, 4])])),
        (missing, Some(ie::RECOVERY_TIME_STAMP))
    );
    assert_eq!(
        refusal(&with_body(1, &[(96, &[1, 2, 3])])),
        (Cause::INVALID_LENGTH, Some(ie::RECOVERY_TIME_STAMP))
    );
    let incorrect = Cause::MANDATORY_IE_INCORRECT;
    assert_eq!(
        refusal(&with_body(9, &[(60, &[3, 1, 2, 3, 4])])),
        (incorrect, Some(ie::NODE_ID))
    );
    // Inside groups the innermost element is named: a PDI without its source interface.
    assert_eq!(
        refusal(&with_body(52, &[(1, &[0, 2, 0, 0])])),
        (missing, Some(ie::SOURCE_INTERFACE))
    );
    assert_eq!(
        refusal(&with_body(52, &[(1, &[0, 56, 0, 9, 1])])),
        (Cause::INVALID_LENGTH, Some(ie::PDR_ID))
    );
}

#[test]
fn a_session_without_rules_is_refused() {
    let mut request = SessionEstablishmentRequest::sample(&mut Entropy(vec![].into_iter()));
    request.create_pdrs.clear();
    let bytes = emitted(&Packet::session(0, 1, request));
    assert_eq!(
        refusal(&bytes),
        (Cause::MANDATORY_IE_MISSING, Some(ie::CREATE_PDR))
    );
}

#[test]
fn unknown_and_repeated_elements_are_skipped_and_counted() {
    let time = [0, 0, 0, 7];
    // An unknown type, a BBF one that is not for heartbeats, an unknown enterprise, and the time stamp twice.
    let bytes = with_body(
        1,
        &[
            (999, b"?"),
            (0x8000, &[0x0d, 0xe9, 1]),
            (0x8001, &[1, 2, 3]),
            (96, &time),
            (96, &[0, 0, 0, 8]),
        ],
    );
    let received = parse(&bytes).unwrap();
    assert_eq!(received.ignored, 4);
    assert_eq!(
        received.packet.message,
        HeartbeatRequest {
            recovery_time_stamp: 7
        }
        .into()
    );
}

#[test]
fn elements_may_be_longer_than_we_know_them() {
    let bytes = with_body(1, &[(96, &[0, 0, 0, 7, 9, 9])]);
    assert_eq!(
        parse(&bytes).unwrap().packet.message,
        HeartbeatRequest {
            recovery_time_stamp: 7
        }
        .into()
    );
}

#[test]
fn an_enterprise_element_without_its_enterprise_is_refused() {
    let bytes = with_body(1, &[(96, &[0; 4]), (0x8000, &[1])]);
    assert_eq!(
        refusal(&bytes),
        (Cause::INVALID_LENGTH, Some(IeId::standard(0x8000)))
    );
}

#[test]
fn an_empty_element_of_an_update_clears() {
    let far = UpdateFar {
        far_id: 1,
        forwarding_parameters: Some(UpdateForwardingParameters {
            outer_header_creation: Some(Change::Clear),
            network_instance: Some(Change::Set("default".to_owned())),
            ..Default::default()
        }),
        ..Default::default()
    };
    let request = SessionModificationRequest {
        update_fars: vec![far],
        ..Default::default()
    };
    let packet = Packet::session(1, 1, request);
    let bytes = emitted(&packet);
    assert!(
        bytes.windows(4).any(|window| window == [0, 84, 0, 0]),
        "Outer Header Creation of length 0"
    );
    assert_eq!(parse(&bytes).unwrap().packet, packet);
}

#[test]
fn other_versions_are_told_apart() {
    let mut bytes = emitted(&Packet::node(
        0x0a0b0c,
        HeartbeatRequest {
            recovery_time_stamp: 1,
        },
    ));
    bytes[0] = 2 << 5;
    assert_eq!(
        parse(&bytes),
        Err(ParseError::Version {
            version: 2,
            kind: 1,
            sequence: 0x0a0b0c
        })
    );
    let mut bytes = emitted(&Packet::session(1, 0x0a0b0c, SessionDeletionRequest {}));
    bytes[0] = 7 << 5 | 1;
    assert_eq!(
        parse(&bytes),
        Err(ParseError::Version {
            version: 7,
            kind: 54,
            sequence: 0x0a0b0c
        })
    );
    bytes.truncate(4);
    assert_eq!(
        parse(&bytes),
        Err(ParseError::Version {
            version: 7,
            kind: 54,
            sequence: 0
        })
    );
}

#[test]
fn headers_that_do_not_fit_are_dropped() {
    let mut session = emitted(&Packet::session(1, 2, SessionDeletionRequest {}));
    session[0] &= !1;
    assert!(matches!(parse(&session), Err(ParseError::Malformed(_))));
    let mut unknown = emitted(&Packet::node(
        5,
        HeartbeatRequest {
            recovery_time_stamp: 1,
        },
    ));
    unknown[1] = 99;
    assert!(matches!(
        parse(&unknown),
        Err(ParseError::UnknownMessage(Header {
            kind: 99,
            sequence: 5,
            seid: None
        }))
    ));
}

#[test]
fn octets_behind_a_message_are_ignored() {
    let packet = Packet::node(
        5,
        HeartbeatRequest {
            recovery_time_stamp: 1,
        },
    );
    let mut bytes = emitted(&packet);
    bytes.extend_from_slice(&[0xff; 9]);
    assert_eq!(parse(&bytes).unwrap().packet, packet);
}

#[test]
fn a_message_that_does_not_fit_a_datagram_is_not_sent() {
    let net = |pdr_id| CreatePdr {
        pdr_id,
        pdi: Pdi {
            framed_routes: vec!["192.0.2.0/24".repeat(4)],
            ..Default::default()
        },
        ..Default::default()
    };
    let request = SessionModificationRequest {
        create_pdrs: (0..1000).map(net).collect(),
        ..Default::default()
    };
    let mut bytes = vec![1];
    assert!(Packet::session(1, 1, request).emit(&mut bytes).is_err());
    assert_eq!(bytes, [1]);
}

/// One element by itself.
fn element<T: codec::Value>(id: IeId, value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(id, value, &mut bytes);
    bytes
}

#[test]
fn tags_are_not_in_the_order_of_a_tag() {
    let tag = VlanTag {
        vid: Some(0xabc),
        pcp: Some(5),
        dei: Some(true),
    };
    assert_eq!(element(ie::C_TAG, &tag), [0, 134, 0, 3, 0x07, 0xad, 0xbc]);
    assert_eq!(
        element(ie::S_TAG, &VlanTag::vid(100)),
        [0, 135, 0, 3, 0x04, 0x00, 100]
    );
}

#[test]
fn elements_of_the_bbf_on_the_wire() {
    let session_id = element(bbf_ie::PPPOE_SESSION_ID, &0x1001u16);
    assert_eq!(session_id, [0x80, 0x04, 0, 4, 0x0d, 0xe9, 0x10, 0x01]);
    let removal = element(bbf_ie::OUTER_HEADER_REMOVAL, &BbfOuterHeaderRemoval::PPP);
    assert_eq!(removal, [0x80, 0x03, 0, 3, 0x0d, 0xe9, 3]);
    let creation = element(
        bbf_ie::OUTER_HEADER_CREATION,
        &BbfOuterHeaderCreation::CPR_NSH,
    );
    assert_eq!(creation, [0x80, 0x02, 0, 8, 0x0d, 0xe9, 1, 0, 0, 0, 0, 0]);
    assert_eq!(
        element(bbf_ie::PPP_PROTOCOL, &PppProtocol::Control),
        [0x80, 0x05, 0, 3, 0x0d, 0xe9, 4]
    );
    let ipv6 = element(bbf_ie::PPP_PROTOCOL, &PppProtocol::Specific(0x57));
    assert_eq!(ipv6, [0x80, 0x05, 0, 5, 0x0d, 0xe9, 1, 0, 0x57]);
}

fn read<T: codec::Value>(payload: &[u8]) -> Result<T, Cause> {
    T::read(payload, &mut 0).map_err(|fault| fault.cause)
}

#[test]
fn what_implementations_disagree_on_is_accepted_either_way() {
    assert_eq!(read(&[1, 0, 0, 0]), Ok(BbfUpFeatures::PPPOE));
    assert_eq!(read(&[0, 0, 0, 1]), Ok(BbfUpFeatures::PPPOE));
    assert_eq!(read::<BbfUpFeatures>(&[1]), Err(Cause::INVALID_LENGTH));
    assert_eq!(read(&[1, 0]), Ok(BbfOuterHeaderCreation::CPR_NSH));
    assert_eq!(
        read::<BbfOuterHeaderCreation>(&[1, 0, 0, 1]),
        Err(Cause::INVALID_LENGTH)
    );
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let incorrect = Cause::MANDATORY_IE_INCORRECT;
    assert_eq!(read::<FSeid>(&[0; 9]), Err(incorrect));
    assert_eq!(read::<FTeid>(&[0; 5]), Err(incorrect));
    // CHOOSE together with an address; a prefix of 129 bits; 65 bits less than 64.
    assert_eq!(read::<UeIpAddress>(&[0x12, 1, 2, 3, 4]), Err(incorrect));
    assert_eq!(read::<UeIpAddress>(&[0x40, 129]), Err(incorrect));
    assert_eq!(read::<UeIpAddress>(&[0x08, 65]), Err(incorrect));
    assert_eq!(read::<PppProtocol>(&[3]), Err(incorrect));
    assert_eq!(read::<Interface>(&[4]), Err(incorrect));
    assert_eq!(read::<OuterHeaderCreation>(&[0, 1]), Err(incorrect));
    assert_eq!(read::<NodeId>(&[2, 3, b'a', b'.', b'b']), Err(incorrect));
    assert_eq!(read::<NodeId>(&[2]), Err(Cause::INVALID_LENGTH));
}

#[test]
fn a_name_may_end_in_the_root() {
    assert_eq!(
        read(&[2, 2, b'c', b'p', 0]),
        Ok(NodeId::Fqdn("cp".to_owned()))
    );
}

#[test]
fn prefix_lengths() {
    let prefix = "2001:db8::".parse().unwrap();
    assert_eq!(UeIpAddress::v6(prefix, 64).prefix_length, None);
    assert_eq!(UeIpAddress::v6(prefix, 56).ipv6_length(), 56);
    let delegated = UeIpAddress {
        ipv6: Some(prefix),
        delegation_bits: Some(8),
        ..Default::default()
    };
    assert_eq!(delegated.ipv6_length(), 56);
}

#[test]
fn a_walk_ends_at_the_first_element_that_is_cut() {
    let mut walk = Elements::new(&[0, 1, 0, 9, 1]);
    assert!(walk.next().unwrap().is_err());
    assert!(walk.next().is_none());
}

proptest! {
    #[test]
    fn any_octets_come_apart_into_what_is_there(mut bytes in prop::collection::vec(any::<u8>(), 0..200), marked in any::<bool>()) {
        if let (true, Some(first)) = (marked, bytes.first_mut()) {
            *first = 0x24;
        }
        let (first, rest) = split(&bytes);
        prop_assert_eq!([first, rest].concat(), bytes.clone());
        prop_assert!(rest.is_empty() || first.len() >= 4);
    }

    #[test]
    fn messages_of_a_datagram_come_apart(sequences in prop::collection::vec(0u32..1 << 24, 1..8)) {
        let mut datagram = Vec::new();
        for (n, sequence) in sequences.iter().enumerate() {
            let from = datagram.len();
            let request = HeartbeatRequest { recovery_time_stamp: 7 };
            Packet::node(*sequence, request).emit(&mut datagram).unwrap();
            if n + 1 < sequences.len() {
                mark_followed(&mut datagram[from..]);
            }
        }
        let mut rest = &datagram[..];
        for sequence in &sequences {
            let (first, behind) = split(rest);
            prop_assert_eq!(parse(first).unwrap().packet.sequence, *sequence);
            let mut alone = first.to_vec();
            mark_alone(&mut alone);
            prop_assert_eq!(alone[0], 0x20);
            rest = behind;
        }
        prop_assert!(rest.is_empty());
    }
}
