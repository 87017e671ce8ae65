use super::*;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<[u8; 16]>().prop_map(Ipv6Addr::from)
}

fn option() -> impl Strategy<Value = Opt> {
    let prefix = (address(), 0u8..=128, any::<(bool, bool, u32, u32)>()).prop_map(
        |(prefix, length, (l, a, v, p))| {
            Opt::Prefix(PrefixInformation {
                prefix,
                length,
                on_link: l,
                autonomous: a,
                valid_lifetime: v,
                preferred_lifetime: p,
            })
        },
    );
    prop_oneof![
        any::<[u8; 6]>().prop_map(|m| Opt::SourceLinkLayer(MacAddr(m))),
        any::<[u8; 6]>().prop_map(|m| Opt::TargetLinkLayer(MacAddr(m))),
        any::<u32>().prop_map(Opt::Mtu),
        prefix,
        (any::<u32>(), prop::collection::vec(address(), 1..4))
            .prop_map(|(lifetime, servers)| Opt::Rdnss { lifetime, servers }),
        (30u8.., 0usize..4, any::<u8>()).prop_map(|(kind, n, fill)| Opt::Unknown {
            kind,
            data: vec![fill; 8 * n + 6]
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let options = || prop::collection::vec(option(), 0..4);
    prop_oneof![
        options().prop_map(|options| Message::RouterSolicitation { options }),
        (
            any::<(u8, bool, bool, u16, u32, u32)>(),
            0u8..0x40,
            options()
        )
            .prop_map(|(f, other_flags, options)| {
                Message::RouterAdvertisement(RouterAdvertisement {
                    hop_limit: f.0,
                    managed: f.1,
                    other: f.2,
                    other_flags,
                    router_lifetime: f.3,
                    reachable_time: f.4,
                    retransmit_time: f.5,
                    options,
                })
            }),
        (address(), options())
            .prop_map(|(target, options)| Message::NeighborSolicitation { target, options }),
        (any::<(bool, bool, bool)>(), address(), options()).prop_map(
            |((r, s, o), target, options)| {
                Message::NeighborAdvertisement {
                    router: r,
                    solicited: s,
                    override_cache: o,
                    target,
                    options,
                }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn emit_then_parse(source in address(), destination in address(), message in message()) {
        let packet = Packet { source, destination, message };
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        for n in 0..bytes.len() {
            prop_assert!(Packet::parse(&bytes[..n]).is_err());
        }
    }

    #[test]
    fn parse_never_panics(bytes: Vec<u8>) {
        let _ = Packet::parse(&bytes);
        let _ = Opt::parse_all(&bytes);
    }

    /// Behind a right checksum too, where arbitrary bytes never get.
    #[test]
    fn parse_never_panics_behind_the_checksum(kind in 133u8..137, body: Vec<u8>) {
        let mut bytes = vec![kind, 0, 0, 0];
        bytes.extend_from_slice(&body);
        let (s, d) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        let sum = pseudo_v6(s, d, ipv6::ICMPV6, bytes.len() as u32).bytes(&bytes).finish();
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        prop_assert_ne!(Message::parse(&bytes, s, d), Err(Malformed("ND checksum is wrong")));
    }
}

#[test]
fn option_lengths_of_zero_and_beyond_the_end_are_refused() {
    assert!(Opt::parse_all(&[1, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(Opt::parse_all(&[1, 2, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(Opt::parse_all(&[1]).is_err());
    assert_eq!(Opt::parse_all(&[]), Ok(vec![]));
}

#[test]
fn a_packet_that_crossed_a_router_is_refused() {
    let mut bytes = Vec::new();
    Packet {
        source: "fe80::1".parse().unwrap(),
        destination: ipv6::ALL_ROUTERS,
        message: Message::RouterSolicitation { options: vec![] },
    }
    .emit(&mut bytes);
    bytes[7] = 254;
    assert!(Packet::parse(&bytes).unwrap_err().0.contains("hop limit"));
}

#[test]
fn a_prefix_with_flags_or_a_length_that_no_rfc_knows_is_kept_as_it_is() {
    let mut option = vec![3, 4, 64, 0xc0];
    option.extend([0; 12]);
    option.extend([0x20; 16]);
    let is_prefix = |option: &[u8]| {
        let parsed = Opt::parse_all(option).unwrap();
        matches!(parsed[..], [Opt::Prefix(_)])
    };
    assert!(is_prefix(&option));
    for (at, octet) in [(2, 129), (3, 0xc1)] {
        let mut odd = option.clone();
        odd[at] = octet;
        assert!(!is_prefix(&odd), "octet {at}");
        let mut out = Vec::new();
        Opt::parse_all(&odd).unwrap()[0].emit(&mut out);
        assert_eq!(out, odd);
    }
}
