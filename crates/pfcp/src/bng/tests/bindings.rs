//! Bindings in the rules of a session, and in their digest.
use super::*;

#[test]
fn a_change_of_bindings_is_a_change_of_rules() {
    for (before, now) in FAMILIES.into_iter().flat_map(|a| FAMILIES.map(|b| (a, b))) {
        let before = spec_with(before.0, before.1);
        let now = spec_with(now.0, now.1);
        let rules = established(before.establish());
        match now.change_from(&before.told()) {
            Some(change) => assert_eq!(subscriber_rules(&modified(&rules, change)), now.decoded()),
            None => assert_eq!(before, now),
        }
    }
    let mut elsewhere = spec();
    elsewhere.forwarding.network_instance = "other".into();
    elsewhere.forwarding.bindings = Bindings::of(Some([10, 0, 0, 9].into()), None);
    let change = elsewhere.change_from(&spec().told()).unwrap();
    let rules = modified(&established(spec().establish()), change);
    assert_eq!(subscriber_rules(&rules), elsewhere.decoded());
}

#[test]
fn a_subscriber_that_becomes_known_is_told_in_a_change() {
    let unknown = SessionSpec {
        subscriber: None,
        ..spec()
    };
    let rules = established(unknown.establish());
    assert_eq!(subscriber_rules(&rules).subscriber, None);
    let change = spec().change_from(&unknown.told()).unwrap();
    assert_eq!(
        subscriber_rules(&modified(&rules, change)),
        spec().decoded()
    );
    assert_ne!(unknown.digest(), spec().digest());
    assert_eq!(
        unknown.change_from(&spec().told()),
        None,
        "it is never taken away"
    );
}

#[test]
fn every_kind_of_binding_is_carried_told_again_and_part_of_the_digest() {
    let spec = with_all_bindings();
    let rules = established(spec.establish());
    assert_eq!(subscriber_rules(&rules), spec.decoded());
    let packed = rules.clone().pack().unwrap();
    assert_eq!(RuleSet::unpack(&packed), Some(rules.clone()));
    for left_out in spec.forwarding.bindings.iter() {
        let mut less = spec.clone();
        less.forwarding.bindings = spec.forwarding.bindings.filtered(|b| b != left_out);
        assert_ne!(less.digest(), spec.digest(), "{left_out}");
        let change = less.change_from(&spec.told()).unwrap();
        assert_eq!(subscriber_rules(&modified(&rules, change)), less.decoded());
        let change = spec.change_from(&less.told()).unwrap();
        let before = established(less.establish());
        assert_eq!(subscriber_rules(&modified(&before, change)), spec.decoded());
        if left_out.role == Role::Route {
            continue; // it is always announced
        }
        let other = Binding {
            is_announced: !left_out.is_announced,
            ..*left_out
        };
        let mut announced = less.clone();
        announced.forwarding.bindings = less.forwarding.bindings.with(other).unwrap();
        assert_ne!(announced.digest(), spec.digest(), "{left_out}");
        let change = announced.change_from(&spec.told()).unwrap();
        assert_eq!(
            subscriber_rules(&modified(&rules, change)),
            announced.decoded()
        );
    }
}

#[test]
fn routes_that_one_direction_alone_knows_are_refused() {
    for id in [2, 3] {
        let mut request = with_all_bindings().establish();
        endpoint(&mut request, id).framed_routes.pop();
        let rejection = refused(request);
        assert_eq!(rejection.offending_ie, Some(ie::UE_IP_ADDRESS));
    }
    let no_metric = "203.0.113.0/29 0.0.0.0 near";
    for route in ["203.0.113.1/29", "home", "", "2001:db8::/32", no_metric] {
        let mut request = with_all_bindings().establish();
        for id in [2, 3] {
            endpoint(&mut request, id).framed_routes = vec![route.into()];
        }
        let rejection = refused(request);
        assert_eq!(rejection.offending_ie, Some(ie::FRAMED_ROUTE), "{route}");
    }
}

#[test]
fn a_route_has_its_metric_and_the_digest_too() {
    let mut spec = with_all_bindings();
    let without = spec.clone();
    spec.forwarding.bindings = Bindings::new(without.forwarding.bindings.iter().map(|b| Binding {
        metric: (b.role == Role::Route).then_some(7),
        ..*b
    }))
    .unwrap();
    let mut request = spec.establish();
    assert_eq!(
        endpoint(&mut request, 3).framed_routes[1],
        "203.0.113.0/29 0.0.0.0 7"
    );
    assert_eq!(
        endpoint(&mut request, 6).framed_ipv6_routes[2],
        "2001:db8:ff::/48 :: 7"
    );
    let rules = established(request);
    assert_eq!(subscriber_rules(&rules), spec.decoded());
    assert_ne!(spec.digest(), without.digest());
    let change = without.change_from(&spec.told()).unwrap();
    assert_eq!(
        subscriber_rules(&modified(&rules, change)),
        without.decoded()
    );
}

/// The version before refuses two prefixes of the link.
#[test]
fn further_link_prefixes_are_named_as_delegated_ones() {
    let mut spec = with_all_bindings();
    let further = Binding {
        is_announced: true,
        ..Binding::link("2001:db8:0:9::/64".parse().unwrap())
    };
    let before = spec.clone();
    spec.forwarding.bindings = spec.forwarding.bindings.with(further).unwrap();
    let told = subscriber_rules(&established(spec.establish()));
    assert_eq!(told, spec.decoded());
    assert_eq!(told.digest(), spec.digest());
    let told = told.forwarding.bindings;
    assert_eq!(told.ipv6(), spec.forwarding.bindings.ipv6());
    assert!(
        told.iter()
            .any(|b| b.prefix == further.prefix && b.role == Role::Delegated && b.is_announced)
    );
    let change = spec.change_from(&before.told()).unwrap();
    let rules = established(before.establish());
    assert_eq!(subscriber_rules(&modified(&rules, change)), spec.decoded());
}
