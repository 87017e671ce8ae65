use super::*;
use crate::attributes::authorization;
use proptest::prelude::*;
use wire::radius::Packet;

#[test]
fn every_shipped_mapping_is_sound() {
    let mut rules = Rules::new();
    for mapping in shipped::mappings() {
        assert_eq!(
            add(&Dictionary::shipped(), &mapping, &mut rules),
            Ok(()),
            "{mapping:?}"
        );
    }
}

#[test]
fn the_manual_has_every_shipped_mapping() {
    let manual = include_str!("../../../../docs/reference/radius.md");
    for mapping in shipped::mappings() {
        let words = [Some(mapping.attribute), mapping.key];
        for word in words.into_iter().flatten() {
            assert!(manual.contains(&word), "{word}");
        }
    }
}

/// Attributes of vendors whose values may be anything.
fn attributes() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..24),
        "[a-z0-9:=*#/. kMG-]{0,40}".prop_map(String::into_bytes),
    ];
    let vendor = prop_oneof![
        Just(9u32),
        Just(2011),
        Just(2352),
        Just(4874),
        Just(6527),
        Just(14122),
        Just(14988),
        any::<u32>()
    ];
    let number = prop_oneof![0u8..16, any::<u8>()];
    let vsa = (vendor, number, value.clone()).prop_map(|(vendor, number, value)| {
        let inner = [&[number, value.len() as u8 + 2], &value[..]].concat();
        let head = [26, inner.len() as u8 + 6];
        [&head, &vendor.to_be_bytes()[..], &inner].concat()
    });
    let standard = (any::<u8>(), value)
        .prop_map(|(number, value)| [&[number, value.len() as u8 + 2], &value[..]].concat());
    let one = prop_oneof![vsa, standard];
    prop::collection::vec(one, 0..12).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn any_answer_is_read_within_bounds(attributes in attributes()) {
        let length = (20 + attributes.len() as u16).to_be_bytes();
        let bytes = [&[2, 1], &length[..], &[0; 16], &attributes].concat();
        let packet = Packet::parse(&bytes).unwrap();
        let accept = authorization(&packet, &Mappings::shipped());
        for rate in [accept.rate_up, accept.rate_down].into_iter().flatten() {
            prop_assert!((8..=400_000_000).contains(&rate.get()));
        }
        prop_assert!(accept.dns.len() <= 8);
        prop_assert!(accept.vlan_priority.is_none_or(|priority| priority <= 7));
        let named = accept.ignored.len() + accept.not_enforced.len() + accept.unknown.len();
        prop_assert!(named <= 3 * packet.attributes.len() + 8);
    }
}
