//! Attributes of vendors in an Access-Accept, in octets, and the settings that they become.

use std::path::Path;
use std::sync::Arc;

use super::*;
use aaa::dictionary::Dictionary;
use aaa::mapping::{AttributeMapping, MappingError, Mappings, Setting, Unit, UnusableRate};
use aaa::{AccessAccept, NotEnforced};
use policy::Rate;

const CISCO: u32 = 9;
const HUAWEI: u32 = 2011;
const REDBACK: u32 = 2352;
const ERX: u32 = 4874;
const NOKIA: u32 = 6527;
const WISPR: u32 = 14122;
const MIKROTIK: u32 = 14988;
const MICROSOFT: u32 = 311;
const ACME: u32 = 32473;

/// Vendor-Specific with one attribute of a vendor.
fn vsa(vendor: u32, number: u8, value: &[u8]) -> (Kind, Value) {
    let inner = [&[number, value.len() as u8 + 2], value].concat();
    let octets = [&vendor.to_be_bytes(), &inner[..]].concat();
    (Kind::VENDOR_SPECIFIC, octets.into())
}

fn pair(text: &str) -> (Kind, Value) {
    vsa(CISCO, 1, text.as_bytes())
}

/// What a client with these settings says of an Access-Accept with these attributes.
fn answer(change: impl Fn(&mut ClientConfig), attributes: &[(Kind, Value)]) -> Outcome {
    let mut config = config(1, 0);
    change(&mut config);
    let mut client = client(config);
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    let bytes = reply(&sent, Code::ACCESS_ACCEPT, attributes);
    client.handle(ZERO, sent.socket, sent.to, &bytes);
    let (_, mut done) = drain(&mut client);
    done.remove(0).1
}

fn accepted(outcome: Outcome) -> AccessAccept {
    match outcome {
        Outcome::Accept(accept) => *accept,
        other => panic!("{other:?}"),
    }
}

fn shipped(attributes: &[(Kind, Value)]) -> AccessAccept {
    accepted(answer(|_| {}, attributes))
}

fn with(mappings: &[AttributeMapping], attributes: &[(Kind, Value)]) -> AccessAccept {
    let mappings = Arc::new(Mappings::new(acme(), mappings).unwrap());
    accepted(answer(|c| c.mappings = mappings.clone(), attributes))
}

/// The shipped dictionary and an operator's.
fn acme() -> Arc<Dictionary> {
    let text = "VENDOR Acme 32473\nBEGIN-VENDOR Acme\n\
        ATTRIBUTE Acme-Down 1 integer\nATTRIBUTE Acme-Hidden 2 string encrypt=1\nATTRIBUTE Acme-Data 3 octets\n\
        ATTRIBUTE Acme-Text 4 string\nATTRIBUTE Acme-Part 5.1 integer\nEND-VENDOR Acme\n";
    let read = |_: &Path| Ok(text.to_owned());
    let loaded = Dictionary::shipped().load(&["acme".into()], read);
    Arc::new(loaded.unwrap())
}

fn map(attribute: &str, setting: Setting, unit: Option<Unit>) -> AttributeMapping {
    AttributeMapping {
        attribute: attribute.into(),
        key: None,
        setting,
        unit,
    }
}

fn dns(texts: &[&str]) -> AccessAccept {
    AccessAccept {
        dns: texts.iter().map(|text| text.parse().unwrap()).collect(),
        ..AccessAccept::default()
    }
}

const V4: [u8; 4] = [192, 0, 2, 53];
const V4_TOO: [u8; 4] = [192, 0, 2, 54];
const V6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53];

#[test]
fn cisco() {
    let accept = shipped(&[
        pair("ip:addr-pool=homes"),
        pair("ipv6:addr-pool*homes6"),
        pair("ip:dns-servers=192.0.2.53 192.0.2.54"),
        pair("ipv6:ipv6-dns-servers-addr=2001:db8::53"),
        pair("ip:route=198.51.100.0 255.255.255.0 0.0.0.0 7"),
        pair("ip:route#2=203.0.113.64/26"),
        pair("ip:route=10.0.0.0"),
        pair("ipv6:route=2001:db8:77::/48"),
        pair("ip:sub-qos-policy-in=gold"),
        pair("no key"),
        vsa(CISCO, 255, &[0, 1, 0, 0]),
    ]);
    let expected = AccessAccept {
        framed_pool: Some("homes".into()),
        framed_ipv6_pool: Some("homes6".into()),
        framed_routes: [
            "198.51.100.0/24 0.0.0.0 7",
            "203.0.113.64/26",
            "10.0.0.0/8",
            "2001:db8:77::/48",
        ]
        .map(|net| net.parse().unwrap())
        .into(),
        not_enforced: [
            "Cisco-AVPair ip:sub-qos-policy-in",
            "Cisco-AVPair",
            "Cisco-Xmit-Rate",
        ]
        .map(str::to_owned)
        .into(),
        ..dns(&["192.0.2.53", "192.0.2.54", "2001:db8::53"])
    };
    assert_eq!(accept, expected);
    let odd = shipped(&[
        pair("ip:route=vrf red 10.0.0.0 255.0.0.0"),
        pair("ip:addr-pool="),
        pair("ip:dns-servers=192.0.2.53 x"),
    ]);
    let ignored = ["ip:route", "ip:addr-pool", "ip:dns-servers"];
    assert_eq!(
        odd.ignored,
        ignored.map(|key| format!("Cisco-AVPair {key}"))
    );
}

#[test]
fn juniper() {
    let accept = shipped(&[
        vsa(ERX, 5, &V4_TOO), // the secondary one comes first
        vsa(ERX, 4, &V4),
        vsa(ERX, 47, &V6),
        vsa(ERX, 2, b"homes"),
        vsa(ERX, 157, b"homes6"),
        vsa(ERX, 1, b"red"),
    ]);
    let expected = AccessAccept {
        framed_pool: Some("homes".into()),
        framed_ipv6_pool: Some("homes6".into()),
        not_enforced: vec!["ERX-Virtual-Router-Name".into()],
        ..dns(&["192.0.2.53", "192.0.2.54", "2001:db8::53"])
    };
    assert_eq!(accept, expected);
    assert_eq!(shipped(&[vsa(ERX, 48, &V6)]), dns(&["2001:db8::53"]));
}

#[test]
fn junipers_policies_are_of_their_directions_and_do_not_contradict() {
    // ERX-Ingress-Policy-Name is of packets from the subscriber, ERX-Egress-Policy-Name of packets to it
    let both = [vsa(ERX, 10, b"slow"), vsa(ERX, 11, b"kids")];
    let expected = AccessAccept {
        policy_up: Some("slow".into()),
        policy_down: Some("kids".into()),
        ..AccessAccept::default()
    };
    assert_eq!(shipped(&both), expected);
    let same = [vsa(ERX, 10, b"slow"), (Kind::FILTER_ID, "slow.in".into())];
    assert_eq!(shipped(&same).unusable, None);
    for contradicting in [
        [vsa(ERX, 10, b"slow"), vsa(ERX, 10, b"kids")],
        [vsa(ERX, 11, b"slow"), vsa(ERX, 11, b"kids")],
        [vsa(ERX, 10, b"slow"), (Kind::FILTER_ID, "kids.in".into())],
        [vsa(ERX, 11, b"slow"), (Kind::FILTER_ID, "kids.out".into())],
        [vsa(ERX, 10, b""), vsa(ERX, 11, b"kids")],
    ] {
        let unusable = shipped(&contradicting).unusable;
        assert!(unusable.is_some(), "{contradicting:?}");
    }
}

#[test]
fn nokia() {
    let accept = shipped(&[
        vsa(NOKIA, 9, &V4),
        vsa(NOKIA, 10, &V4_TOO),
        vsa(NOKIA, 105, &V6),
        vsa(NOKIA, 106, &V6), // the same once more
        vsa(NOKIA, 13, b"gold"),
        vsa(NOKIA, 181, b"homes6"),
        vsa(NOKIA, 12, b"sub"),
    ]);
    let expected = AccessAccept {
        filter_id: Some("gold".into()),
        framed_ipv6_pool: Some("homes6".into()),
        not_enforced: vec!["Alc-Subsc-Prof-Str".into()],
        ..dns(&["192.0.2.53", "192.0.2.54", "2001:db8::53"])
    };
    assert_eq!(accept, expected);
}

#[test]
fn huawei() {
    let accept = shipped(&[
        vsa(HUAWEI, 2, &20_000_000u32.to_be_bytes()),
        vsa(HUAWEI, 5, &100_000_000u32.to_be_bytes()),
        vsa(HUAWEI, 135, &V4),
        vsa(HUAWEI, 136, &V4_TOO),
        vsa(HUAWEI, 154, &V6),
        vsa(HUAWEI, 88, b"homes"),
        vsa(HUAWEI, 31, b"gold"),
    ]);
    let expected = AccessAccept {
        rate_up: Rate::new(20_000),
        rate_down: Rate::new(100_000),
        framed_pool: Some("homes".into()),
        not_enforced: vec!["Huawei-Qos-Profile-Name".into()],
        ..dns(&["192.0.2.53", "192.0.2.54", "2001:db8::53"])
    };
    assert_eq!(accept, expected);
}

#[test]
fn microsoft_redback_and_the_standard() {
    let both = dns(&["192.0.2.53", "192.0.2.54"]);
    let microsoft = [vsa(MICROSOFT, 28, &V4), vsa(MICROSOFT, 29, &V4_TOO)];
    assert_eq!(shipped(&microsoft), both);
    let redback = [
        vsa(REDBACK, 1, &V4),
        vsa(REDBACK, 2, &V4_TOO),
        vsa(REDBACK, 36, b"homes"),
        vsa(REDBACK, 4, b"red"),
    ];
    let expected = AccessAccept {
        framed_pool: Some("homes".into()),
        not_enforced: vec!["Context-Name".into()],
        ..both
    };
    assert_eq!(shipped(&redback), expected);
    let server = (Kind::DNS_SERVER_IPV6_ADDRESS, Value::Ipv6(V6.into()));
    assert_eq!(shipped(&[server]), dns(&["2001:db8::53"]));
}

/// A rate that Mikrotik-Rate-Limit should say.
fn unusable(setting: Setting, text: &str) -> UnusableRate {
    UnusableRate {
        setting,
        attribute: "Mikrotik-Rate-Limit".into(),
        value: text.into(),
    }
}

#[test]
fn mikrotik_and_wispr() {
    let limit = |text: &str| shipped(&[vsa(MIKROTIK, 8, text.as_bytes())]);
    let rates = |up, down| AccessAccept {
        rate_up: Rate::new(up),
        rate_down: Rate::new(down),
        ..AccessAccept::default()
    };
    assert_eq!(limit("5M/20M"), rates(5_000, 20_000));
    assert_eq!(limit("512k/1G"), rates(512, 1_000_000));
    assert_eq!(limit("64000"), rates(64, 64));
    let burst = AccessAccept {
        not_enforced: vec!["Mikrotik-Rate-Limit (what follows the rates)".into()],
        ..rates(5_000, 20_000)
    };
    assert_eq!(limit("5M/20M 10M/40M 4M/16M 8/8"), burst);
    let ignored = |text: &str, settings: &[Setting]| AccessAccept {
        ignored: vec!["Mikrotik-Rate-Limit".into()],
        unusable_rates: settings.iter().map(|s| unusable(*s, text)).collect(),
        ..AccessAccept::default()
    };
    let (up, down) = (Setting::RateUp, Setting::RateDown);
    for odd in ["", "/", "fast", "-5M", "0/0", "5MM/1.5M", "500G"] {
        assert_eq!(limit(odd), ignored(odd, &[up, down]), "{odd}");
    }
    let half = AccessAccept {
        rate_down: Rate::new(20_000),
        ..ignored("0/20M", &[up])
    };
    assert_eq!(limit("0/20M"), half);
    let half = AccessAccept {
        rate_up: Rate::new(5_000),
        ..ignored("5M/20T", &[down])
    };
    assert_eq!(limit("5M/20T"), half);
    let wispr = [
        vsa(WISPR, 7, &2_000_500u32.to_be_bytes()),
        vsa(WISPR, 8, &8_000_000u32.to_be_bytes()),
    ];
    assert_eq!(shipped(&wispr), rates(2_000, 8_000));
}

#[test]
fn a_rate_that_no_subscriber_has_is_ignored_by_name() {
    let acme = [map(
        "Acme-Down",
        Setting::RateDown,
        Some(Unit::MbitPerSecond),
    )];
    let rate = |rate: u32| with(&acme, &[vsa(ACME, 1, &rate.to_be_bytes())]).rate_down;
    assert_eq!(rate(1), Rate::new(1_000));
    assert_eq!(rate(400_000), Rate::new(400_000_000));
    assert_eq!(rate(400_001), None, "kbit/s for Mbit/s, maybe");
    assert_eq!(rate(0), None);
    let bits = |bits: u32| {
        let accept = shipped(&[vsa(WISPR, 8, &bits.to_be_bytes())]);
        (accept.rate_down, accept.ignored)
    };
    assert_eq!(bits(8_000), (Rate::new(8), vec![]));
    let name = || vec!["WISPr-Bandwidth-Max-Down".to_owned()];
    assert_eq!(bits(7_999), (Rate::new(8), vec![]), "the least rate");
    assert_eq!(bits(1), (Rate::new(8), vec![]));
    assert_eq!(bits(0), (None, name()));
}

#[test]
fn a_rate_that_another_attribute_says_is_not_missing() {
    let zero = vsa(MIKROTIK, 8, b"0/0");
    let down = vsa(WISPR, 8, &8_000_000u32.to_be_bytes());
    for both in [[zero.clone(), down.clone()], [down, zero]] {
        let accept = shipped(&both);
        assert_eq!(accept.rate_down, Rate::new(8_000));
        let missing = [unusable(Setting::RateUp, "0/0")];
        assert_eq!(accept.unusable_rates, missing);
    }
    // a standard attribute that its codec cannot read
    let broken = [(Kind::FRAMED_MTU, Value::Invalid(vec![1]))];
    let mtu = map("Framed-MTU", Setting::RateUp, Some(Unit::KbitPerSecond));
    let missing = with(&[mtu], &broken).unusable_rates;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].attribute, "Framed-MTU");
}

#[test]
fn an_operators_mapping_says_a_setting_in_a_unit() {
    let minutes = Some(Unit::Minute);
    let text = |setting, unit, value: &str| {
        let acme = [map("acme-text", setting, unit)];
        with(&acme, &[vsa(ACME, 4, value.as_bytes())])
    };
    let of = |seconds| Some(Duration::from_secs(seconds));
    let timeout = text(Setting::SessionTimeout, minutes, "90");
    assert_eq!(timeout.session_timeout, of(5400));
    assert_eq!(text(Setting::IdleTimeout, None, "90").idle_timeout, of(90));
    let never = text(Setting::IdleTimeout, None, "0");
    assert_eq!((never.idle_timeout, never.ignored), (None, vec![]));
    assert_eq!(text(Setting::Mtu, None, "1480").framed_mtu, Some(1480));
    let priority = text(Setting::VlanPriority, None, "5");
    assert_eq!(priority.vlan_priority, Some(5));
    let profile = text(Setting::Profile, None, "gold");
    assert_eq!(profile.filter_id.as_deref(), Some("gold"));
    let kbit = Some(Unit::KbitPerSecond);
    let rates = text(Setting::RateDownUp, kbit, "20000/5000");
    assert_eq!(
        (rates.rate_up, rates.rate_down),
        (Rate::new(5_000), Rate::new(20_000))
    );
    let one = |setting| text(setting, kbit, "20000");
    let rate = Rate::new(20_000);
    assert_eq!(one(Setting::RateUp).rate_up, rate);
    assert_eq!(one(Setting::RateDown).rate_down, rate);
    assert_eq!(one(Setting::CommittedRateUp).committed_rate_up, rate);
    assert_eq!(one(Setting::CommittedRateDown).committed_rate_down, rate);
    assert_eq!(one(Setting::SubscriberRateUp).subscriber_rate_up, rate);
    assert_eq!(one(Setting::SubscriberRateDown).subscriber_rate_down, rate);
    let mut nothing = text(Setting::Nothing, None, "x");
    assert_eq!(nothing, AccessAccept::default());
    for (setting, odd) in [
        (Setting::VlanPriority, "8"),
        (Setting::Mtu, "575"),
        (Setting::Mtu, "9217"),
        (Setting::SessionTimeout, "4294967296"),
        (Setting::Route, "::/0"),
        (Setting::Route, "0.0.0.0 0.0.0.0"),
        (Setting::Dns, "0.0.0.0"),
        (Setting::Dns, ""),
    ] {
        nothing.ignored = vec!["Acme-Text".into()];
        assert_eq!(text(setting, None, odd), nothing, "{odd}");
    }
}

#[test]
fn a_mapping_replaces_the_shipped_one_and_the_standard_meaning() {
    let mbit = Some(Unit::MbitPerSecond);
    let rate = map("WISPr-Bandwidth-Max-Down", Setting::RateUp, mbit);
    let accept = with(&[rate], &[vsa(WISPR, 8, &20u32.to_be_bytes())]);
    assert_eq!(
        (accept.rate_up, accept.rate_down),
        (Rate::new(20_000), None)
    );

    let kbit = Some(Unit::KbitPerSecond);
    let filter = map("Filter-Id", Setting::RateDownUp, kbit);
    let accept = with(&[filter], &[(Kind::FILTER_ID, "20000/5000".into())]);
    assert_eq!(
        (accept.rate_up, accept.rate_down),
        (Rate::new(5_000), Rate::new(20_000))
    );
    assert_eq!((accept.filter_id, accept.ignored.len()), (None, 0));

    // one without a key is for the keys that no other has
    let rest = map("Cisco-AVPair", Setting::Nothing, None);
    let pairs = [pair("ip:addr-pool=homes"), pair("ip:inacl=7"), pair("x")];
    let accept = with(&[rest], &pairs);
    assert_eq!(accept.framed_pool.as_deref(), Some("homes"));
    assert!(accept.not_enforced.is_empty());
}

#[test]
fn one_attribute_may_say_several_settings() {
    let kbit = Some(Unit::KbitPerSecond);
    let both = [
        map("Acme-Down", Setting::RateDown, kbit),
        map("Acme-Down", Setting::RateUp, kbit),
    ];
    let accept = with(&both, &[vsa(ACME, 1, &20_000u32.to_be_bytes())]);
    assert_eq!(
        (accept.rate_up, accept.rate_down),
        (Rate::new(20_000), Rate::new(20_000))
    );
}

#[test]
fn of_two_values_for_a_setting_the_standard_ones_and_then_the_first_counts() {
    let accept = shipped(&[
        vsa(ERX, 2, b"other"),
        (Kind::FRAMED_POOL, "homes".into()),
        vsa(MIKROTIK, 8, b"5M/20M"),
        vsa(WISPR, 8, &8_000_000u32.to_be_bytes()),
        vsa(WISPR, 7, &5_000_000u32.to_be_bytes()),
    ]);
    assert_eq!(accept.framed_pool.as_deref(), Some("homes"));
    assert_eq!(
        (accept.rate_up, accept.rate_down),
        (Rate::new(5_000), Rate::new(20_000))
    );
    let ignored = ["ERX-Address-Pool-Name", "WISPr-Bandwidth-Max-Down"];
    assert_eq!(accept.ignored, ignored);
}

#[test]
fn dns_servers_are_bounded() {
    let servers: Vec<String> = (1..=9).map(|n| format!("192.0.2.{n}")).collect();
    let accept = shipped(&[pair(&format!("ip:dns-servers={}", servers.join(",")))]);
    assert_eq!(accept.dns.len(), 8);
    assert_eq!(accept.ignored, ["Cisco-AVPair"]);
}

#[test]
fn what_a_dictionary_knows_and_what_none_knows_is_told_apart() {
    let accept = shipped(&[
        (Kind::USER_NAME, b"alice@isp".into()),
        (Kind::FRAMED_COMPRESSION, 1.into()),
        (Kind::FRAMED_ROUTING, 0.into()),
        (Kind::FRAMED_ROUTING, 3.into()),
        (Kind::TERMINATION_ACTION, 0.into()),
        (Kind::FRAMED_IP_NETMASK, Value::Ipv4([255; 4].into())),
        (Kind::CLASS, b"x".into()),
        (Kind::standard(64), vec![0, 0, 0, 3].into()),
        (Kind::standard(200), b"x".into()),
        vsa(CISCO, 99, b"x"),
        vsa(ACME, 1, &[0, 0, 0, 1]),
        (Kind::ADSL_FORUM_ACTUAL_DATA_RATE_UPSTREAM, 7.into()),
    ]);
    let not_enforced = [
        "User-Name",
        "Framed-Routing",
        "Tunnel-Type",
        "Actual-Data-Rate-Upstream",
    ];
    assert_eq!(accept.not_enforced, not_enforced);
    assert_eq!(
        accept.unknown,
        ["Attr-200", "Attr-26.9.99", "Attr-26.32473"]
    );
    assert_eq!(accept.ignored, Vec::<String>::new());
    // a vendor's attribute that does not add up
    let broken = (Kind::VENDOR_SPECIFIC, vec![0, 0, 0, 9, 1, 9, 9].into());
    assert_eq!(shipped(&[broken]).ignored, ["Attr-26.9"]);
    assert_eq!(
        shipped(&[vsa(ERX, 4, &[1, 2])]).ignored,
        ["ERX-Primary-Dns"]
    );
}

#[test]
fn a_server_group_may_reject_what_is_not_carried_out() {
    let reject = |config: &mut ClientConfig| config.not_enforced = NotEnforced::Reject;
    let profile = vsa(NOKIA, 12, b"sub");
    let reason = RejectReason::NotEnforced("Alc-Subsc-Prof-Str".into());
    assert_eq!(rejected(answer(reject, &[profile])), reason);
    assert!(reason.to_string().contains("Alc-Subsc-Prof-Str"));
    let unknown = accepted(answer(reject, &[vsa(ACME, 1, b"x")]));
    assert_eq!(unknown.unknown, ["Attr-26.32473"]);
}

#[test]
fn new_mappings_count_from_the_next_answer_on() {
    let mut client = client(config(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    let nothing = map("WISPr-Bandwidth-Max-Up", Setting::Nothing, None);
    let mut changed = config(1, 0);
    changed.mappings = Arc::new(Mappings::new(acme(), &[nothing]).unwrap());
    changed.not_enforced = NotEnforced::Reject;
    client.reconfigure(ZERO, changed);
    let rate = vsa(WISPR, 7, &5_000_000u32.to_be_bytes());
    let bytes = reply(&sent, Code::ACCESS_ACCEPT, &[rate]);
    client.handle(ZERO, sent.socket, sent.to, &bytes);
    let accept = accepted(drain(&mut client).1.remove(0).1);
    assert_eq!(accept, AccessAccept::default());
}

#[test]
fn a_wrong_mapping_is_refused_by_name() {
    let kbit = Some(Unit::KbitPerSecond);
    let name = |name: &str| name.to_owned();
    let mut key = map("Acme-Down", Setting::RateDown, kbit);
    key.key = Some("x".into());
    let cases = [
        (
            map("Acme-Up", Setting::Dns, None),
            MappingError::UnknownAttribute(name("Acme-Up")),
        ),
        (
            map("Acme-Part", Setting::Mtu, None),
            MappingError::NotInPackets(name("Acme-Part")),
        ),
        (
            map("Acme-Hidden", Setting::Profile, None),
            MappingError::Encrypted(name("Acme-Hidden")),
        ),
        (
            map("Acme-Data", Setting::Profile, None),
            MappingError::WrongType(name("Acme-Data")),
        ),
        (
            map("Acme-Down", Setting::Profile, None),
            MappingError::WrongType(name("Acme-Down")),
        ),
        (key, MappingError::KeyWithoutText(name("Acme-Down"))),
        (
            map("Acme-Down", Setting::RateDown, None),
            MappingError::WrongUnit("a `unit` of the rate: bit/s, kbit/s or Mbit/s"),
        ),
        (
            map("Acme-Down", Setting::RateDown, Some(Unit::Second)),
            MappingError::WrongUnit("a `unit` of the rate: bit/s, kbit/s or Mbit/s"),
        ),
        (
            map("Acme-Down", Setting::IdleTimeout, kbit),
            MappingError::WrongUnit("a `unit` of time, seconds or minutes"),
        ),
        (
            map("Acme-Down", Setting::Mtu, kbit),
            MappingError::WrongUnit("no `unit`, because the setting has none"),
        ),
    ];
    for (mapping, error) in cases {
        let refused = Mappings::new(acme(), std::slice::from_ref(&mapping));
        assert_eq!(refused.unwrap_err(), [(0, error)], "{mapping:?}");
    }
    let twice = vec![map("Acme-Down", Setting::Mtu, None); 2];
    let refused = Mappings::new(acme(), &twice).unwrap_err();
    assert_eq!(refused, [(1, MappingError::Twice(name("Acme-Down")))]);
}
