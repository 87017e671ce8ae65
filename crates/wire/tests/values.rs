//! Values as their constructors make them: what is in them, and nothing else.
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::checksum::pseudo_v6;
use wire::eth::{MacAddr, Tag, Tags};
use wire::pfcp::{Cause, MacAddresses, OuterHeaderCreation, UeIpAddress};

const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, 0);

/// RFC 8200 §8.1: addresses, a length of 32 bits, and the next header in the last octet.
#[test]
fn the_pseudo_header_of_ipv6_is_summed_up_as_a_whole() {
    let other = Ipv6Addr::LOCALHOST;
    let sum = pseudo_v6(V6, other, 58, 0x0001_0002).finish();
    assert_eq!(!sum, 0x2001 + 0xdb8 + 7 + 1 + 1 + 2 + 58);
}

#[test]
fn tags_without_priority_have_their_vlans() {
    let marked = |vid| Tag {
        pcp: 5,
        dei: true,
        ..Tag::new(vid)
    };
    let tags = Tags {
        outer: Some(marked(100)),
        inner: Some(marked(7)),
    };
    let plain = Tags {
        outer: Some(Tag::new(100)),
        inner: Some(Tag::new(7)),
    };
    assert_eq!(tags.without_priority(), plain);
}

/// TS 29.244 §8.2.1: 1 to 63 are for what was accepted.
#[test]
fn causes_below_64_are_acceptances() {
    assert!(Cause(1).is_accepted() && Cause(63).is_accepted());
    assert!(!Cause(0).is_accepted() && !Cause(64).is_accepted());
}

#[test]
fn frames_from_a_station_are_known_by_their_source() {
    let station = MacAddr([2, 0, 0, 0, 0, 7]);
    let expected = MacAddresses {
        source: Some(station),
        destination: None,
        upper_source: None,
        upper_destination: None,
    };
    assert_eq!(MacAddresses::from_station(station), expected);
}

#[test]
fn a_subscribers_address_is_of_one_family() {
    let v4 = UeIpAddress::v4(V4);
    assert_eq!((v4.ipv4, v4.ipv6, v4.prefix_length), (Some(V4), None, None));
    let v6 = UeIpAddress::v6(V6, 64);
    assert_eq!((v6.ipv4, v6.ipv6, v6.prefix_length), (None, Some(V6), None));
    assert_eq!(UeIpAddress::v6(V6, 56).prefix_length, Some(56));
}

#[test]
fn a_tunnel_has_its_identifier_and_one_address() {
    let by_v4 = OuterHeaderCreation::gtpu(9, V4.into());
    assert_eq!(
        (by_v4.teid, by_v4.ipv4, by_v4.ipv6),
        (Some(9), Some(V4), None)
    );
    let by_v6 = OuterHeaderCreation::gtpu(9, V6.into());
    assert_eq!(
        (by_v6.teid, by_v6.ipv4, by_v6.ipv6),
        (Some(9), None, Some(V6))
    );
}
