//! What AAA says of a subscriber is obeyed: at the start, and when the subscriber authenticates again.

use crate::next_pools::{addresses, is_walled};
use crate::world::{Choice, World};
use control::counters::Counter;
use control::plane::Effect;
use core::time::Duration;
use northbound::{Password, Request, Response};
use wire::radius::{Kind, Value};

const SECOND: Duration = Duration::from_secs(1);

/// A world with a second pool of each family, into which only AAA lets a subscriber.
fn world() -> World {
    let mut w = World::new(1, Choice::radius());
    w.configure(&[
        "set ipv4-pools walled prefix 100.127.0.0/24",
        "set ipv6-pools walled6 prefix 2001:db8:f000::/48",
        "set subscriber-profiles home ipv4-pools homes",
        "set subscriber-profiles home ipv6-pools homes",
    ])
    .unwrap();
    w
}

#[test]
fn a_pool_that_aaa_names_is_used_in_place_of_the_profiles() {
    let mut w = world();
    w.radius.accept = vec![
        (Kind::FRAMED_POOL, "walled".into()),
        (Kind::FRAMED_IPV6_POOL, "walled6".into()),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(is_walled(&mut w, 0), [true; 2]);

    // paid meanwhile
    w.radius.accept.clear();
    w.hang_up(0);
    w.run(10 * SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_walled(&mut w, 0), [false; 2]);
}

#[test]
fn who_authenticates_again_moves_to_the_pool_that_aaa_names_now() {
    let mut w = world();
    w.dial(0);
    w.run(10 * SECOND);
    let before = addresses(&mut w, 0);
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    assert_eq!(addresses(&mut w, 0), before, "nothing has changed");
    w.radius.accept = vec![(Kind::FRAMED_POOL, "walled".into())];
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(is_walled(&mut w, 0), [true, false]);
    assert_eq!(addresses(&mut w, 0).1, before.1);
    w.assert_balanced();
}

#[test]
fn a_pool_that_is_not_there_refuses_the_subscriber_by_name() {
    for (kind, pool) in [
        (Kind::FRAMED_POOL, "walled6"),
        (Kind::FRAMED_IPV6_POOL, "nowhere"),
    ] {
        let mut w = world();
        w.radius.accept = vec![(kind, pool.into())];
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(w.online(), 0);
        assert!(w.count(Counter::AuthenticationRejected) > 0);
    }
}

#[test]
fn the_time_out_of_an_accept_counts_from_that() {
    let mut w = world();
    let timeout = |seconds: u32| vec![(Kind::SESSION_TIMEOUT, seconds.into())];
    w.radius.accept = timeout(600);
    w.dial(0);
    w.run(500 * SECOND);
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    w.restart_control_plane();
    w.run(390 * SECOND);
    assert_eq!(
        w.online(),
        1,
        "900 s since its begin, 400 s since it authenticated"
    );
    w.run(250 * SECOND);
    assert_eq!(w.online(), 0);

    w.radius.accept.clear();
    w.dial(0);
    w.run(100 * SECOND);
    w.radius.accept = timeout(60);
    w.begin_ppp_anew(0);
    w.run(50 * SECOND);
    assert_eq!(w.online(), 1);
    w.run(30 * SECOND);
    assert_eq!(w.online(), 0, "it had none before");
}

#[test]
fn the_longest_time_out_stays_the_longest() {
    let mut w = world();
    w.radius.accept = vec![(Kind::SESSION_TIMEOUT, u32::MAX.into())];
    w.dial(0);
    w.run(100 * SECOND);
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    w.restart_control_plane();
    w.run(500 * SECOND);
    assert_eq!(w.online(), 1);
}

#[test]
fn attributes_with_odd_values_are_ignored_and_counted() {
    let mut w = world();
    w.radius.accept = vec![
        (Kind::FILTER_ID, "home".into()),
        (Kind::FILTER_ID, "nowhere".into()),
        (Kind::SESSION_TIMEOUT, Value::Invalid(vec![1, 2])),
        (Kind::FRAMED_IP_ADDRESS, Value::Ipv4([224, 0, 0, 1].into())),
        (Kind::IDLE_TIMEOUT, 3600.into()),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(w.count(Counter::AttributeIgnored), 3);
    assert!(addresses(&mut w, 0).0.unwrap().starts_with("100.64."));
}

/// Attribute of a vendor.
fn vendor(vendor: u32, number: u8, value: &[u8]) -> (Kind, Value) {
    (Kind { vendor, number }, value.into())
}

#[test]
fn what_vendors_attributes_say_reaches_the_user_plane_and_the_subscriber() {
    let mut w = world();
    w.radius.accept = vec![
        vendor(14988, 8, b"5M/20M"),       // Mikrotik-Rate-Limit
        vendor(6527, 9, &[192, 0, 2, 77]), // Alc-Primary-Dns
        vendor(4874, 2, b"walled"),        // ERX-Address-Pool-Name
        vendor(9, 1, b"ip:route=192.0.2.8/29"),
        vendor(6527, 12, b"gold"), // Alc-Subsc-Prof-Str
        vendor(32473, 1, b"x"),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    let subscriber = w.up.subscribers().remove(0);
    let packets = subscriber.forwarding.packets;
    assert_eq!(packets.rate_up, Some(policy::Rate::kbps(5_000)));
    assert_eq!(packets.rate_down, Some(policy::Rate::kbps(20_000)));
    let bindings = format!("{:?}", subscriber.forwarding.bindings);
    assert!(bindings.contains("192.0.2.8/29"), "{bindings}");
    let dns: Vec<String> = w.homes[0].dns().map(|a| a.to_string()).collect();
    assert_eq!(dns, ["192.0.2.77", "2001:db8::53"]);
    assert_eq!(is_walled(&mut w, 0), [true, false]);
    let counts = [
        Counter::AttributeIgnored,
        Counter::AttributeNotEnforced,
        Counter::AttributeUnknown,
    ];
    assert_eq!(counts.map(|counter| w.count(counter)), [0, 1, 1]);
}

#[test]
fn a_rate_in_a_wrong_unit_leaves_the_profiles() {
    let mut w = world();
    w.configure(&["set subscriber-profiles home rate-up 7000"])
        .unwrap();
    // 500,000,000 kbit/s, which nobody has: Mikrotik-Rate-Limit
    w.radius.accept = vec![vendor(14988, 8, b"500000M/9M")];
    w.dial(0);
    w.run(10 * SECOND);
    let packets = w.up.subscribers().remove(0).forwarding.packets;
    assert_eq!(packets.rate_up, Some(policy::Rate::kbps(7_000)));
    assert_eq!(packets.rate_down, Some(policy::Rate::kbps(9_000)));
    assert_eq!(w.count(Counter::AttributeIgnored), 1);
}

#[test]
fn a_rate_that_cannot_be_used_never_becomes_no_limit() {
    // WISPr-Bandwidth-Max-Up and -Down, Mikrotik-Rate-Limit
    let max = |number, rate: u32| vendor(14122, number, &rate.to_be_bytes());
    let limit = |text: &str| vendor(14988, 8, text.as_bytes());
    for (attribute, setting) in [
        (max(7, 0), "rate-up"),
        (max(8, 0), "rate-down"),
        (vendor(14122, 7, b"x"), "rate-up"),
        (limit("fast/9M"), "rate-up"),
        (limit("9M/0"), "rate-down"),
    ] {
        let mut w = world();
        w.radius.accept = vec![attribute.clone()];
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(w.online(), 0, "{attribute:?}");
        assert!(w.count(Counter::AuthenticationRejected) > 0);
        let (accepted, reason, _) = tested(&mut w, "home0", "pppoe");
        assert!(!accepted && reason.contains("is no rate"), "{reason}");

        w.configure(&[&format!("set subscriber-profiles home {setting} 7000")])
            .unwrap();
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(w.online(), 1, "{attribute:?}");
        assert_eq!(w.count(Counter::AttributeIgnored), 1);
    }
}

#[test]
fn a_rate_below_the_least_one_is_the_least_one() {
    let mut w = world();
    // 5,000 bit/s
    w.radius.accept = vec![vendor(14122, 7, &5_000u32.to_be_bytes())];
    w.dial(0);
    w.run(10 * SECOND);
    let packets = w.up.subscribers().remove(0).forwarding.packets;
    assert_eq!(packets.rate_up, Some(policy::Rate::kbps(8)));
    assert_eq!(w.count(Counter::AttributeIgnored), 0);
}

#[test]
fn a_mapping_of_an_attribute_that_no_dictionary_has_is_refused() {
    let mut w = world();
    let lines = [
        "set aaa mappings acme attribute Acme-Down",
        "set aaa mappings acme setting dns",
    ];
    let faults = w.configure(&lines).unwrap_err();
    let said = format!("{faults:?}");
    assert!(
        said.contains("no dictionary has the attribute `Acme-Down`"),
        "{said}"
    );
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
}

/// What a test of AAA says: whether the user is accepted, the reason, and each value with its source.
fn tested(w: &mut World, user: &str, profile: &str) -> (bool, String, Vec<String>) {
    let test = Request::TestAaa {
        user: user.into(),
        password: Password("secret0".into()),
        access_profile: profile.into(),
    };
    match w.call(test) {
        Ok(Response::AaaTested(tested)) => {
            let results = tested.results.into_iter();
            let results = results.map(|r| format!("{} {} ({})", r.name, r.value, r.origin));
            (tested.accepted, tested.reason, results.collect())
        }
        Err(refusal) => (false, format!("{refusal:?}"), Vec::new()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_test_shows_what_each_attribute_comes_to_and_leaves_nothing_behind() {
    let mut w = world();
    let specific = b"\x00\x00\x3a\x8c\x08\x072M/8M".to_vec(); // Mikrotik-Rate-Limit
    w.radius.accept = vec![
        (Kind::FRAMED_POOL, "walled".into()),
        (Kind::FRAMED_ROUTE, "198.18.0.0/24".into()),
        (Kind::VENDOR_SPECIFIC, Value::Octets(specific)),
        (Kind::SESSION_TIMEOUT, 3600.into()),
        (Kind::IDLE_TIMEOUT, Value::Invalid(vec![1])),
        (Kind::PORT_LIMIT, 2.into()),
        (Kind::TERMINATION_ACTION, 1.into()),
        (Kind::FRAMED_ROUTING, 1.into()),
        (Kind::REPLY_MESSAGE, "welcome".into()),
    ];
    let (accepted, reason, results) = tested(&mut w, "home0", "");
    assert!(accepted, "{reason}");
    let expected = [
        "IPv4 pool walled (aaa)",
        "session limit 2 (aaa)",
        "route 198.18.0.0/24 (aaa)",
        "MTU 1492 (link)",
        "rate up 2000 kbit/s (aaa)",
        "rate down 8000 kbit/s (aaa)",
        "keepalive 30 s, 3 failures (access-profile)",
        "session timeout 3600 s (aaa)",
        "action at the session timeout re-authentication (aaa)",
        "name servers 192.0.2.53, 2001:db8::53 (profile)",
        "Idle-Timeout  (ignored)",
        "Framed-Routing  (not enforced)",
    ];
    assert_eq!(results, expected);
    w.radius.accept = vec![(Kind::FRAMED_POOL, "nowhere".into())];
    let (accepted, reason, _) = tested(&mut w, "home0", "pppoe");
    assert!(!accepted && reason.contains("`nowhere`"), "{reason}");
    let (_, reason, _) = tested(&mut w, "home0", "other");
    assert!(reason.contains("`other` does not exist"), "{reason}");
    w.radius.dead = true;
    let test = Request::TestAaa {
        user: "home0".into(),
        password: Password("secret0".into()),
        access_profile: String::new(),
    };
    assert!(!format!("{test:?}").contains("secret0"));
    assert!(w.sessions().is_empty() && w.radius.records.is_empty());
    w.assert_balanced();
}

#[test]
fn an_answer_that_names_an_unknown_policy_refuses_the_subscriber_by_name() {
    for filter in ["nowhere.in", "nowhere.out"] {
        let mut w = world();
        w.configure(&["set policies walled"]).unwrap();
        w.radius.accept = vec![(Kind::FILTER_ID, filter.into())];
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(w.online(), 0, "{filter}");
        assert!(w.count(Counter::AuthenticationRejected) > 0);
        let (accepted, reason, _) = tested(&mut w, "home0", "pppoe");
        let why = "AAA names the policy `nowhere`, which is not configured";
        assert_eq!((accepted, reason.as_str()), (false, why));

        let known = filter.replace("nowhere", "walled");
        w.radius.accept = vec![(Kind::FILTER_ID, known.as_str().into())];
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(w.online(), 1, "{known}");
    }
}

#[test]
fn who_deletes_a_policy_is_told_whose_packets_are_dropped() {
    let mut w = World::new(2, Choice::radius());
    let policies = ["open", "walled", "spare"].map(|name| format!("set policies {name}"));
    w.configure(&policies.each_ref().map(String::as_str))
        .unwrap();
    w.radius.accept = vec![
        (Kind::FILTER_ID, "walled.in".into()),
        (Kind::FILTER_ID, "walled.out".into()),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    w.radius.accept = vec![(Kind::FILTER_ID, "open.in".into())];
    w.dial(1);
    w.run(10 * SECOND);
    let dropped = |effects: Vec<Effect>| {
        let dropped = effects
            .into_iter()
            .filter(|effect| effect.text.contains("policy-missing"));
        dropped.collect::<Vec<_>>()
    };
    let edits = ["delete policies walled", "delete policies spare"];
    let [effect] = &dropped(w.configure(&edits).unwrap())[..] else {
        panic!("one policy is missed")
    };
    assert_eq!((effect.sessions, effect.ends), (1, false));
    assert!(
        effect.text.contains("packets of 1 session are dropped"),
        "{}",
        effect.text
    );
    assert!(
        effect.text.contains("policy walled, which is deleted"),
        "{}",
        effect.text
    );
    // a policy that has been missing before is not this change's doing
    let told = dropped(w.configure(&["delete policies open"]).unwrap());
    assert!(
        told.len() == 1 && told[0].text.contains("policy open"),
        "{told:?}"
    );
}

#[test]
fn a_session_shows_what_of_its_answer_has_no_effect() {
    let mut w = world();
    w.radius.accept = vec![
        (
            Kind::ROUTE_IPV6_INFORMATION,
            Value::Ipv6Prefix("2001:db8:7700::/56".parse().unwrap()),
        ),
        (Kind::FRAMED_ROUTING, 1.into()),
        (Kind::IDLE_TIMEOUT, Value::Invalid(vec![1])),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    let expected = [
        "Idle-Timeout (ignored)",
        "Route-IPv6-Information (not enforced)",
        "Framed-Routing (not enforced)",
    ];
    assert_eq!(w.sessions().remove(0).without_effect, expected);
    w.restart_control_plane();
    w.run(10 * SECOND);
    assert_eq!(w.sessions().remove(0).without_effect, expected);
    w.radius.accept.clear();
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    assert_eq!(w.sessions().remove(0).without_effect, [""; 0]);
}
