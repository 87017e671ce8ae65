use super::*;
use proptest::prelude::*;

fn duid() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 3..20)
}

/// Every option that a message can have, with these values in them.
fn options(data: &[u8], word: u16, number: u32, address: Ipv6Addr) -> Vec<Opt<'_>> {
    let status = || {
        Opt::Status(Status {
            code: word,
            message: data,
        })
    };
    let leases = vec![
        Opt::Address(IaAddress {
            address,
            preferred_lifetime: number,
            valid_lifetime: u32::from(word),
            options: vec![status()],
        }),
        Opt::Prefix(IaPrefix {
            preferred_lifetime: number,
            valid_lifetime: u32::from(word),
            length: word as u8,
            prefix: address,
            options: vec![Opt::Unknown(67, data)],
        }),
        status(),
    ];
    let association = Ia {
        id: number,
        t1: 1,
        t2: u32::MAX,
        options: leases,
    };
    let auth = Auth {
        protocol: 3,
        algorithm: 1,
        method: 0,
        replay: u64::from(number) << 16,
        information: data,
    };
    vec![
        Opt::ClientId(data),
        Opt::ServerId(data),
        Opt::IaNa(association.clone()),
        Opt::IaPd(association),
        Opt::OptionRequest(vec![word, 23]),
        Opt::Preference(word as u8),
        Opt::ElapsedTime(word),
        Opt::Auth(auth),
        status(),
        Opt::RapidCommit,
        Opt::ReconfigureMessage(5),
        Opt::ReconfigureAccept,
        Opt::DnsServers(vec![address, Ipv6Addr::LOCALHOST]),
        Opt::InformationRefreshTime(number),
        Opt::SolMaxRt(number),
        Opt::InfMaxRt(number),
        Opt::Unknown(0x4000 | word, data),
    ]
}

proptest! {
    #[test]
    fn emit_then_parse(
        kind in SOLICIT..=INFORMATION_REQUEST, transaction in 0u32..1 << 24, data in duid(), word: u16, number: u32,
        address: [u8; 16], order in Just((0..17usize).collect::<Vec<_>>()).prop_shuffle(), count in 0usize..18,
    ) {
        let all = options(&data, word, number, address.into());
        let options = order.iter().take(count).map(|&at| all[at].clone()).collect();
        let message = Message { kind, transaction, options };
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn a_message_that_is_cut_off_is_refused_or_shorter(data in duid(), cut: prop::sample::Index) {
        let message = Message { kind: REPLY, transaction: 7, options: options(&data, 6, 9, Ipv6Addr::LOCALHOST) };
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let cut = Message::parse(&bytes[..cut.index(bytes.len())]);
        prop_assert!(cut.is_err() || cut.is_ok_and(|cut| message.options.starts_with(&cut.options)));
    }

    #[test]
    fn whatever_parses_is_written_as_it_was(kind in 0u8..13, body: Vec<u8>) {
        let bytes = [vec![kind, 0, 0, 1], body].concat();
        if let Ok(message) = Message::parse(&bytes) {
            let mut written = Vec::new();
            message.emit(&mut written);
            prop_assert_eq!(written, bytes);
        }
    }

    #[test]
    fn a_changed_octet_never_panics(data in duid(), at: prop::sample::Index, octet: u8) {
        let message = Message { kind: SOLICIT, transaction: 7, options: options(&data, 6, 9, Ipv6Addr::LOCALHOST) };
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] = octet;
        if let Ok(message) = Message::parse(&bytes) {
            let mut written = Vec::new();
            message.emit(&mut written);
            prop_assert_eq!(written, bytes);
        }
    }
}

#[test]
fn options_of_a_wrong_length_refuse_the_message() {
    for (code, length) in [
        (7, 0),
        (8, 1),
        (14, 1),
        (6, 3),
        (23, 15),
        (3, 11),
        (11, 10),
        (13, 1),
    ] {
        let mut bytes = vec![SOLICIT, 0, 0, 1, 0, code, 0, length];
        bytes.extend(vec![0; length.into()]);
        assert!(Message::parse(&bytes).is_err(), "option {code}");
    }
}

#[test]
fn a_lease_outside_of_an_association_is_unknown() {
    let mut bytes = vec![REPLY, 0, 0, 1, 0, 5, 0, 24];
    bytes.extend([0; 24]);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.options, [Opt::Unknown(5, &[0; 24])]);
}

#[test]
fn messages_of_relays_are_refused() {
    for kind in [0, 12, 13, 255] {
        let bytes = [kind, 0, 0, 1];
        let unknown = Malformed("DHCPv6 message type is unknown");
        assert_eq!(Message::parse(&bytes), Err(unknown));
    }
}

#[test]
fn a_key_is_not_shown() {
    let auth = Auth {
        protocol: Auth::RECONFIGURE_KEY,
        algorithm: 1,
        method: 0,
        replay: 5,
        information: &[0xab; 17],
    };
    assert_eq!(format!("{auth:?}"), "Auth { protocol: 3, replay: 5, .. }");
}
