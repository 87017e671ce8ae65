//! Specs come out of rules as they went in, and what cannot be done is refused.
use super::*;
use policy::{Access, Binding, Bindings, PacketSettings, Rate, Role};
use wire::eth::{TPID_8021AD, Tag};
use wire::pfcp::*;

fn spec() -> SessionSpec {
    SessionSpec {
        node_id: NodeId::Ipv4([192, 0, 2, 1].into()),
        cp_f_seid: FSeid::new(0x1122, [192, 0, 2, 1].into()),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags {
                outer: Some(Tag {
                    tpid: TPID_8021AD,
                    ..Tag::new(100)
                }),
                inner: Some(Tag::new(7)),
            },
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            gateway_mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
        },
        access: Access::Pppoe(0x1001),
        subscriber: Some(77),
        uplink: Tunnel {
            teid: 0x10,
            address: [192, 0, 2, 1].into(),
        },
        downlink: Tunnel {
            teid: 0x20,
            address: [192, 0, 2, 2].into(),
        },
        forwarding: Forwarding {
            network_instance: "default".to_owned(),
            bindings: Bindings::of(
                Some([100, 64, 0, 2].into()),
                Some("2001:db8:0:1::/64".parse().unwrap()),
            ),
            packets: PacketSettings::with_mtu(1492),
        },
        urr_id: 1,
        usage_period: Some(600),
        echo_magic: Some(0x1122_3344),
    }
}

/// The session while some families are closed.
fn spec_with(ipv4: bool, ipv6: bool) -> SessionSpec {
    let mut spec = spec();
    let is_open = |binding: &Binding| match binding.prefix {
        IpNet::V4(_) => ipv4,
        IpNet::V6(_) => ipv6,
    };
    spec.forwarding = spec.forwarding.with_bindings(is_open);
    spec
}

const FAMILIES: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

fn default_spec(nets: Vec<PoolNet>) -> DefaultSpec {
    DefaultSpec {
        node_id: NodeId::Fqdn("cp.example".to_owned()),
        cp_f_seid: FSeid::new(1, [192, 0, 2, 1].into()),
        logical_port: Some(b"access0".to_vec()),
        uplink: Tunnel {
            teid: 1,
            address: [192, 0, 2, 1].into(),
        },
        downlink: Some(Tunnel {
            teid: 2,
            address: [192, 0, 2, 2].into(),
        }),
        nets,
    }
}

/// Over the wire and back.
fn carried<T: Into<Message>>(message: T) -> Message {
    let mut bytes = Vec::new();
    Packet::session(1, 1, message).emit(&mut bytes).unwrap();
    let received = parse(&bytes).unwrap();
    assert_eq!(received.ignored, 0);
    received.packet.message
}

fn established(request: SessionEstablishmentRequest) -> RuleSet {
    let Message::SessionEstablishmentRequest(request) = carried(request) else {
        panic!("another message")
    };
    RuleSet::establish(request).unwrap()
}

fn modified(rules: &RuleSet, request: SessionModificationRequest) -> RuleSet {
    let Message::SessionModificationRequest(request) = carried(request) else {
        panic!("another message")
    };
    rules.modify(&request).unwrap()
}

fn subscriber_rules(rules: &RuleSet) -> SubscriberRules {
    match rules.decode() {
        Ok(DecodedRules::Session(decoded)) => *decoded,
        other => panic!("not a subscriber's session: {other:?}"),
    }
}

fn refused(request: SessionEstablishmentRequest) -> Rejection {
    RuleSet::establish(request)
        .and_then(|rules| rules.decode())
        .unwrap_err()
}

#[test]
fn a_spec_knows_what_its_rules_come_to() {
    for (ipv4, ipv6) in FAMILIES {
        let spec = spec_with(ipv4, ipv6);
        let decoded = subscriber_rules(&established(spec.establish()));
        assert_eq!(spec.decoded(), decoded);
    }
}

#[test]
fn a_digest_is_that_of_the_version_before() {
    let before = [
        0x61c4_d5b9_f783_e077,
        0xf7a2_13a1_7cfd_daa1,
        0x7edd_0d31_b346_063e,
        0x65ae_ab8f_9e83_3c3e,
    ];
    let digests = FAMILIES.map(|(ipv4, ipv6)| spec_with(ipv4, ipv6).digest());
    assert_eq!(digests, before);
}

/// Settings with one of them changed, for each setting that reaches packets.
fn changed_settings() -> Vec<PacketSettings> {
    let spec = spec().forwarding.packets;
    let changed = vec![
        PacketSettings::with_mtu(1400),
        PacketSettings {
            vlan_priority: 5,
            ..spec
        },
        PacketSettings {
            idle_timeout: Some(core::time::Duration::from_secs(600)),
            ..spec
        },
        PacketSettings {
            idle_both_ways: true,
            ..spec
        },
        PacketSettings {
            rate_up: Some(Rate(20_000)),
            ..spec
        },
        PacketSettings {
            rate_down: Some(Rate::MOST),
            ..spec
        },
    ];
    let names = |settings: &PacketSettings| spec.differences(settings).map(|s| s.name);
    let seen: Vec<&str> = changed.iter().flat_map(names).collect();
    let declared: Vec<&str> = PacketSettings::SETTINGS.iter().map(|s| s.name).collect();
    assert_eq!(seen, declared, "each setting once");
    changed
}

#[test]
fn every_setting_is_carried_told_again_and_part_of_the_digest() {
    let before = spec();
    let rules = established(before.establish());
    for packets in changed_settings() {
        let mut spec = spec();
        spec.forwarding.packets = packets;
        let decoded = subscriber_rules(&established(spec.establish()));
        assert_eq!(decoded, spec.decoded());
        assert_ne!(spec.digest(), before.digest());
        let change = spec.change_from(&before.told()).expect("a difference");
        let changed = modified(&rules, change);
        assert_eq!(subscriber_rules(&changed), decoded);
        let back = before.change_from(&spec.told()).expect("a difference");
        assert_eq!(
            subscriber_rules(&modified(&changed, back)),
            before.decoded()
        );
    }
    assert_eq!(before.change_from(&before.told()), None);
}

#[test]
fn settings_that_nobody_can_carry_out_are_refused() {
    let refused_settings = |settings: Vec<(u8, Vec<u8>)>| {
        let mut request = spec().establish();
        let far = request.create_fars.iter_mut().find(|far| far.far_id == 4);
        let parameters = far.and_then(|far| far.forwarding_parameters.as_mut());
        parameters.expect("a way to the subscriber").settings = Some(Settings(settings));
        refused(request)
    };
    for settings in [
        vec![(5, vec![8])],       // a priority that no tag has
        vec![(5, vec![])],        // no value
        vec![(5, vec![1, 2])],    // octets are left over
        vec![(200, vec![1])],     // of a later version
        vec![(1, vec![1, 0, 5])], // the MTU has an element
    ] {
        let rejection = refused_settings(settings);
        let far = Some(FailedRule::Far(4));
        assert_eq!(
            (rejection.offending_ie, rejection.failed_rule),
            (Some(own::SETTINGS), far)
        );
    }
}

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

/// A session with every kind of binding: of the pools, fixed ones, and some that are announced.
fn with_all_bindings() -> SessionSpec {
    let binding = |role, prefix: &str, is_announced| Binding {
        is_announced,
        ..Binding::new(role, prefix.parse().unwrap())
    };
    let mut spec = spec();
    spec.forwarding.bindings = Bindings::new([
        binding(Role::Host, "203.0.113.1/32", true),
        binding(Role::Host, "2001:db8:5::1/128", false),
        binding(Role::Link, "2001:db8:0:7::/64", true),
        binding(Role::Delegated, "2001:db8:7700::/56", false),
        binding(Role::Delegated, "2001:db8:8800::/64", true),
        binding(Role::Route, "203.0.113.0/29", true),
        binding(Role::Route, "2001:db8:ff::/48", true),
    ])
    .unwrap();
    spec
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

#[test]
fn a_digest_changes_with_every_fact() {
    let decoded = spec().decoded();
    let tunnel = |change: &dyn Fn(&mut ControlTunnel)| {
        let mut tunnel = decoded.tunnel;
        change(&mut tunnel);
        tunnel
    };
    let of = |change: &dyn Fn(&mut SubscriberRules)| {
        let mut other = decoded.clone();
        change(&mut other);
        other.digest()
    };
    let uplink = tunnel(&|t| t.uplink.teid = 11);
    let address = tunnel(&|t| t.uplink.address = "2001:db8::1".parse().unwrap());
    let mut digests = vec![
        decoded.digest(),
        of(&|f| f.circuit.tags.inner = None),
        of(&|f| f.access = Access::Pppoe(1)),
        of(&|f| f.tunnel = uplink),
        of(&|f| f.tunnel = address),
        of(&|f| f.subscriber = None),
        of(&|f| f.usage = None),
        of(&|f| f.usage.as_mut().unwrap().period = None),
        of(&|f| f.forwarding.network_instance = "other".into()),
        of(&|f| f.forwarding = spec_with(true, false).forwarding),
        of(&|f| f.forwarding = spec_with(false, true).forwarding),
        of(&|f| f.forwarding = spec_with(false, false).forwarding),
        of(&|f| f.redirect_nd = false),
        of(&|f| f.redirect_dhcpv6 = false),
    ];
    let all = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), all);
}

#[test]
fn packed_rules_are_the_same_rules() {
    let spec = spec();
    for request in [spec.establish_control(), spec.establish()] {
        let rules = established(request);
        let packed = rules.clone().pack().unwrap();
        assert!(packed.len() < 1500, "{} octets", packed.len());
        assert_eq!(RuleSet::unpack(&packed), Some(rules));
    }
    assert_eq!(RuleSet::unpack(b"anything else"), None);
}

#[test]
fn a_session_grows_by_families_and_shrinks_again() {
    let spec = spec();
    let control = established(spec.establish_control());
    let decoded = subscriber_rules(&control);
    assert_eq!(decoded.circuit, spec.circuit);
    assert_eq!(decoded.access, Access::Pppoe(0x1001));
    assert_eq!(
        decoded.tunnel,
        ControlTunnel {
            uplink: spec.uplink,
            downlink: Some(spec.downlink)
        }
    );
    assert_eq!(decoded.subscriber, Some(77));
    let usage = UsageRule {
        urr_id: 1,
        volume: true,
        packets: true,
        duration: true,
        period: Some(600),
    };
    assert_eq!(decoded.usage, Some(usage));
    assert_eq!(decoded.forwarding, Forwarding::default());

    let with_ipv4 = modified(&control, spec.add_family(Family::Ipv4).unwrap());
    let decoded = subscriber_rules(&with_ipv4);
    assert_eq!(decoded.forwarding, spec_with(true, false).forwarding);
    assert!(!decoded.redirect_nd);

    let with_both = modified(&with_ipv4, spec.add_family(Family::Ipv6).unwrap());
    let decoded = subscriber_rules(&with_both);
    assert_eq!(decoded.forwarding, spec.forwarding);
    assert!(decoded.redirect_nd && decoded.redirect_dhcpv6);
    assert_eq!(subscriber_rules(&established(spec.establish())), decoded);

    let with_ipv6 = modified(&with_both, spec.remove_family(Family::Ipv4));
    let left = subscriber_rules(&with_ipv6).forwarding;
    assert_eq!(left, spec_with(false, true).forwarding);
    let bare = modified(&with_ipv6, spec.remove_family(Family::Ipv6));
    assert_eq!(bare, control);
}

#[test]
fn every_kind_of_tagging_comes_back() {
    let single = Tags::single(100);
    let service = Tags {
        outer: Some(Tag {
            tpid: TPID_8021AD,
            ..Tag::new(100)
        }),
        inner: None,
    };
    for tags in [Tags::NONE, single, service, Tags::qinq(4095, 1)] {
        let mut spec = spec();
        spec.circuit.tags = tags;
        assert_eq!(
            subscriber_rules(&established(spec.establish()))
                .circuit
                .tags,
            tags
        );
    }
}

#[test]
fn a_session_without_interim_reports_or_over_ipv6() {
    let mut spec = spec();
    spec.usage_period = None;
    spec.uplink.address = "2001:db8::1".parse().unwrap();
    spec.downlink.address = "2001:db8::2".parse().unwrap();
    let decoded = subscriber_rules(&established(spec.establish()));
    assert_eq!(decoded.usage.unwrap().period, None);
    assert_eq!(
        decoded.tunnel,
        ControlTunnel {
            uplink: spec.uplink,
            downlink: Some(spec.downlink)
        }
    );
}

/// The reader goes by what rules say: other ids and another order come to the same.
#[test]
fn rule_ids_do_not_matter() {
    let mut request = spec().establish();
    let decoded = subscriber_rules(&RuleSet::establish(request.clone()).unwrap());
    let other = |id: u32| 1000 - 7 * id;
    let other_endpoint = |id: u8| 200 - 3 * id;
    for pdr in &mut request.create_pdrs {
        pdr.pdr_id = other(pdr.pdr_id.into()) as u16;
        pdr.far_id = pdr.far_id.map(other);
        pdr.pdi
            .traffic_endpoints
            .iter_mut()
            .for_each(|id| *id = other_endpoint(*id));
    }
    for far in &mut request.create_fars {
        far.far_id = other(far.far_id);
        if let Some(id) = far
            .forwarding_parameters
            .as_mut()
            .and_then(|p| p.linked_traffic_endpoint.as_mut())
        {
            *id = other_endpoint(*id);
        }
    }
    request
        .create_traffic_endpoints
        .iter_mut()
        .for_each(|endpoint| endpoint.id = other_endpoint(endpoint.id));
    request.create_pdrs.reverse();
    request.create_fars.reverse();
    request.create_traffic_endpoints.reverse();
    assert_eq!(
        subscriber_rules(&RuleSet::establish(request).unwrap()),
        decoded
    );
}

fn net(slot: u16, net: &str) -> PoolNet {
    PoolNet {
        slot,
        network_instance: "default".to_owned(),
        net: net.parse().unwrap(),
    }
}

fn default_rules(rules: &RuleSet) -> DefaultRules {
    match rules.decode() {
        Ok(DecodedRules::Default(decoded)) => decoded,
        other => panic!("not a default session: {other:?}"),
    }
}

#[test]
fn the_default_session_announces_nets() {
    let nets: Vec<PoolNet> = (0..30)
        .map(|i| net(i, &format!("100.64.{i}.0/24")))
        .collect();
    let spec = default_spec(nets.clone());
    let (establishment, more) = spec.establish();
    assert_eq!(more.len(), 2);
    let mut rules = established(establishment);
    for request in more {
        rules = modified(&rules, request);
    }
    let decoded = default_rules(&rules);
    assert_eq!(decoded.logical_port.as_deref(), Some(&b"access0"[..]));
    assert_eq!(
        decoded.tunnel,
        ControlTunnel {
            uplink: spec.uplink,
            downlink: spec.downlink
        }
    );
    let announced: Vec<_> = decoded.nets.iter().map(|net| net.net).collect();
    assert_eq!(
        announced,
        nets.iter().map(|net| net.net).collect::<Vec<_>>()
    );

    for request in DefaultSpec::add_nets(&[net(40, "2001:db8::/56")]) {
        rules = modified(&rules, request);
    }
    let slots: Vec<u16> = (0..30).collect();
    for request in DefaultSpec::remove_nets(&slots) {
        rules = modified(&rules, request);
    }
    let left: Vec<_> = default_rules(&rules)
        .nets
        .into_iter()
        .map(|net| net.net.to_string())
        .collect();
    assert_eq!(left, ["2001:db8::/56"]);
}

#[test]
fn a_default_session_without_a_way_down() {
    let mut spec = default_spec(Vec::new());
    spec.downlink = None;
    spec.logical_port = None;
    let decoded = default_rules(&established(spec.establish().0));
    assert_eq!(
        (decoded.tunnel.downlink, decoded.logical_port),
        (None, None)
    );
}

/// Changes one thing of a good request and states what is answered.
fn case(offending: IeId, cause: Cause, change: impl FnOnce(&mut SessionEstablishmentRequest)) {
    let mut request = spec().establish();
    assert!(
        RuleSet::establish(request.clone())
            .unwrap()
            .decode()
            .is_ok()
    );
    change(&mut request);
    let rejection = refused(request);
    assert_eq!(
        (rejection.cause, rejection.offending_ie),
        (cause, Some(offending)),
        "{rejection}"
    );
}

fn pdr(request: &mut SessionEstablishmentRequest, id: u16) -> &mut CreatePdr {
    request
        .create_pdrs
        .iter_mut()
        .find(|pdr| pdr.pdr_id == id)
        .unwrap()
}

fn far(request: &mut SessionEstablishmentRequest, id: u32) -> &mut CreateFar {
    request
        .create_fars
        .iter_mut()
        .find(|far| far.far_id == id)
        .unwrap()
}

fn endpoint(request: &mut SessionEstablishmentRequest, id: u8) -> &mut CreateTrafficEndpoint {
    request
        .create_traffic_endpoints
        .iter_mut()
        .find(|endpoint| endpoint.id == id)
        .unwrap()
}

const FAILED: Cause = Cause::RULE_CREATION_FAILURE;

#[test]
fn references_to_nothing_are_refused() {
    case(ie::FAR_ID, Cause::CONDITIONAL_IE_MISSING, |r| {
        pdr(r, 3).far_id = None
    });
    case(ie::FAR_ID, FAILED, |r| pdr(r, 3).far_id = Some(99));
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        pdr(r, 3).pdi.traffic_endpoints = vec![99]
    });
    case(ie::URR_ID, FAILED, |r| pdr(r, 3).urr_ids = vec![99]);
    case(ie::QER_ID, FAILED, |r| pdr(r, 3).qer_ids = vec![99]);
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        far(r, 4)
            .forwarding_parameters
            .as_mut()
            .unwrap()
            .linked_traffic_endpoint = Some(99);
    });
    case(ie::PDR_ID, FAILED, |r| pdr(r, 4).pdr_id = 3);
}

#[test]
fn contradictions_are_refused() {
    case(ie::TRAFFIC_ENDPOINT_ID, FAILED, |r| {
        endpoint(r, 2).c_tag = Some(VlanTag::vid(8))
    });
    case(bbf_ie::PPPOE_SESSION_ID, FAILED, |r| {
        endpoint(r, 5).pppoe_session_id = Some(9)
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        endpoint(r, 3).ue_ip_addresses = vec![UeIpAddress::v4([100, 64, 0, 3].into())];
    });
    // An address that may be sent from, but is not sent to.
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        r.create_pdrs.retain(|pdr| pdr.pdr_id != 4)
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        pdr(r, 3).pdi.ppp_protocols = vec![PppProtocol::Specific(0x0057)]
    });
    case(ie::PRECEDENCE, FAILED, |r| pdr(r, 5).precedence = 200);
    case(bbf_ie::MTU, FAILED, |r| {
        far(r, 7).forwarding_parameters.as_mut().unwrap().mtu = Some(1480)
    });
    case(ie::NETWORK_INSTANCE, FAILED, |r| {
        endpoint(r, 6).network_instance = Some("other".to_owned())
    });
}

#[test]
fn what_is_missing_is_named() {
    let missing = Cause::CONDITIONAL_IE_MISSING;
    case(bbf_ie::LOGICAL_PORT, missing, |r| {
        endpoint(r, 1).logical_port = None
    });
    case(ie::MAC_ADDRESS, missing, |r| {
        endpoint(r, 1).mac_address = None
    });
    case(bbf_ie::PPPOE_SESSION_ID, missing, |r| {
        endpoint(r, 1).pppoe_session_id = None
    });
    case(ie::F_TEID, missing, |r| endpoint(r, 4).f_teid = None);
    case(ie::MEASUREMENT_PERIOD, missing, |r| {
        r.create_urrs[0].measurement_period = None
    });
    case(ie::CREATE_PDR, missing, |r| {
        r.create_pdrs.retain(|pdr| pdr.pdr_id != 1)
    });
}

#[test]
fn what_nothing_enforces_is_refused() {
    let rate = BitRate {
        uplink_kbps: 0,
        downlink_kbps: 1,
    };
    case(ie::MBR, FAILED, |r| {
        r.create_qers[0].maximum_bit_rate = Some(rate)
    });
    case(ie::GBR, FAILED, |r| {
        r.create_qers[0].guaranteed_bit_rate = Some(BitRate::default())
    });
    case(ie::GATE_STATUS, FAILED, |r| {
        r.create_qers[0].gate_status.uplink_open = false
    });
    case(ie::REPORTING_TRIGGERS, FAILED, |r| {
        r.create_urrs[0].reporting_triggers = ReportingTriggers::VOLUME_QUOTA;
    });
    case(ie::APPLY_ACTION, FAILED, |r| {
        far(r, 4).apply_action = ApplyAction::BUFF
    });
    case(ie::ACTIVATE_PREDEFINED_RULES, FAILED, |r| {
        pdr(r, 3).predefined_rules = vec!["gold".to_owned()]
    });
    case(ie::F_TEID, Cause::INVALID_F_TEID_ALLOCATION_OPTION, |r| {
        endpoint(r, 4).f_teid = Some(FTeid::default())
    });
    case(ie::SDF_FILTER, FAILED, |r| {
        pdr(r, 5).pdi.sdf_filters[0].flow_description =
            Some("permit out ip from any to any".to_owned());
    });
    case(ie::PDN_TYPE, Cause::SERVICE_NOT_SUPPORTED, |r| {
        r.pdn_type = Some(PdnType::Ipv4v6)
    });
    case(ie::S_TAG, FAILED, |r| {
        endpoint(r, 1).s_tag = Some(VlanTag {
            pcp: Some(3),
            ..VlanTag::vid(100)
        })
    });
    case(ie::FRAMED_ROUTE, FAILED, |r| {
        endpoint(r, 1).framed_routes = vec!["10.0.0.0/8".to_owned()]
    });
    case(ie::UE_IP_ADDRESS, FAILED, |r| {
        endpoint(r, 6).ue_ip_addresses = vec![UeIpAddress::v6("2001:db8::".parse().unwrap(), 56)];
    });
    case(ie::CREATE_URR, FAILED, |r| {
        let second = CreateUrr {
            urr_id: 2,
            ..r.create_urrs[0].clone()
        };
        r.create_urrs.push(second);
    });
}

#[test]
fn a_refused_modification_changes_nothing() {
    let rules = established(spec().establish_control());
    let request = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr { pdr_id: 1 }, RemovePdr { pdr_id: 99 }],
        ..Default::default()
    };
    let rejection = rules.modify(&request).unwrap_err();
    assert_eq!(rejection.failed_rule, Some(FailedRule::Pdr(99)));
    assert_eq!(rules, established(spec().establish_control()));
}

#[test]
fn updates_set_and_clear() {
    let rules = established(spec().establish());
    let parameters = UpdateForwardingParameters {
        mtu: Some(Change::Set(1400)),
        ..Default::default()
    };
    let change = |far_id| UpdateFar {
        far_id,
        forwarding_parameters: Some(parameters.clone()),
        ..Default::default()
    };
    let request = SessionModificationRequest {
        update_fars: vec![change(4), change(7)],
        ..Default::default()
    };
    let decoded = subscriber_rules(&modified(&rules, request));
    assert_eq!(decoded.forwarding.packets.mtu, Some(1400));

    let parameters = UpdateForwardingParameters {
        mtu: Some(Change::Clear),
        ..Default::default()
    };
    let update = UpdateFar {
        far_id: 4,
        forwarding_parameters: Some(parameters),
        ..Default::default()
    };
    let request = SessionModificationRequest {
        update_fars: vec![update],
        ..Default::default()
    };
    let rejection = modified(&rules, request).decode().unwrap_err();
    assert_eq!(
        (rejection.offending_ie, rejection.failed_rule),
        (Some(bbf_ie::MTU), Some(FailedRule::Far(4)))
    );
}

#[test]
fn reports_say_what_was_added() {
    let rule = UsageRule {
        urr_id: 1,
        volume: true,
        packets: true,
        duration: true,
        period: None,
    };
    let volume = |up_octets, down_octets| Volume {
        up_packets: up_octets / 100,
        up_octets,
        down_packets: 0,
        down_octets,
    };
    let at = |up: u64, down| Usage::of_families(volume(up - up / 5, down), volume(up / 5, 0));
    let mut meter = UsageMeter::new(rule, at(0, 0), 1000);
    let first = meter.report(at(500, 70), 1060, UsageReportTrigger::PERIODIC);
    let last = meter.report(at(700, 71), 1100, UsageReportTrigger::TERMINATION);
    assert_eq!((first.sequence, last.sequence), (0, 1));
    assert_eq!((first.duration, last.duration), (Some(60), Some(40)));
    assert_eq!(last.start_time, first.end_time);
    assert_eq!(
        Usage::of_report(&first).plus(Usage::of_report(&last)),
        at(700, 71)
    );
    assert_eq!(last.volume.unwrap().total_octets, Some(201));
    assert_eq!(last.ipv6_volume.unwrap().total_octets, Some(40));
    assert_eq!(
        at(700, 71).families(),
        Some([volume(560, 71), volume(140, 0)])
    );
}

/// A user plane of another make, or of an earlier version, does not tell of IPv6. What it counted is of no family.
#[test]
fn a_report_without_families_is_in_the_total_alone() {
    let old = |up_octets| UsageReport {
        volume: Some(VolumeMeasurement {
            uplink_octets: Some(up_octets),
            ..Default::default()
        }),
        ..Default::default()
    };
    let volume = |up_octets| Volume {
        up_octets,
        ..Volume::default()
    };
    let new = Usage::of_families(volume(5), volume(7));
    let sum = new.plus(Usage::of_report(&old(100)));
    assert_eq!((sum.total, sum.ipv6), (volume(112), volume(7)));
    assert_eq!(
        (new.families(), sum.families()),
        (Some([volume(5), volume(7)]), None)
    );
    // one that has nothing to tell hides nothing
    let idle = new.plus(Usage::of_report(&old(0)));
    assert_eq!(idle, new);
}

proptest::proptest! {
    /// Whatever rules come over the wire, they are read or refused.
    #[test]
    fn damaged_rules_are_read_or_refused(
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0u8..), 1..6),
        default in proptest::prelude::any::<bool>(),
    ) {
        let request = if default {
            default_spec(vec![net(0, "100.64.0.0/24"), net(1, "2001:db8::/56")]).establish().0
        } else {
            spec().establish()
        };
        let mut bytes = Vec::new();
        Packet::session(0, 1, request).emit(&mut bytes).unwrap();
        for (at, octet) in changes {
            let at = at.index(bytes.len());
            bytes[at] = octet;
        }
        if let Ok(Received { packet: Packet { message: Message::SessionEstablishmentRequest(request), .. }, .. }) = parse(&bytes) {
            let _ = RuleSet::establish(request).and_then(|rules| rules.decode());
        }
    }
}

#[test]
fn an_updated_rule_is_as_if_it_had_been_made_so() {
    let mut wanted = spec().establish();
    let (far_id, urr_id) = (wanted.create_fars[0].far_id, wanted.create_urrs[0].urr_id);
    let unmetered = wanted.create_pdrs.iter_mut();
    let pdr = unmetered.rev().find(|pdr| pdr.urr_ids.is_empty()).unwrap();
    assert_ne!((pdr.precedence, pdr.far_id), (9, Some(far_id)));
    let update = UpdatePdr {
        pdr_id: pdr.pdr_id,
        precedence: Some(9),
        far_id: Some(far_id),
        urr_ids: vec![urr_id],
        ..Default::default()
    };
    (pdr.precedence, pdr.far_id) = (9, Some(far_id));
    pdr.urr_ids = vec![urr_id];
    let request = SessionModificationRequest {
        update_pdrs: vec![update],
        ..Default::default()
    };
    let rules = established(spec().establish());
    assert_eq!(modified(&rules, request), established(wanted));
}

/// The lowest value is looked at first (TS 29.244 §8.2.11): what a subscriber may not send as data is taken out before the data.
#[test]
fn neighbour_discovery_comes_before_data() {
    let request = spec().establish();
    let named = |pdr: &&CreatePdr| !pdr.pdi.sdf_filters.is_empty();
    let redirect = request.create_pdrs.iter().find(named).unwrap();
    assert_eq!(redirect.precedence, 50);
    let data = request.create_pdrs.iter().filter(|pdr| !named(pdr));
    assert!(data.map(|pdr| pdr.precedence).all(|other| other > 50));
}

#[test]
fn the_magic_number_of_echo_replies_comes_and_goes_with_the_address_families() {
    let (closed, open) = (spec_with(false, false), spec());
    let rules = established(closed.establish_control());
    assert_eq!(subscriber_rules(&rules).echo_magic, None);
    let rules = modified(&rules, open.change_from(&closed.told()).unwrap());
    assert_eq!(subscriber_rules(&rules).echo_magic, open.echo_magic);
    assert_eq!(
        RuleSet::unpack(&rules.clone().pack().unwrap()).unwrap(),
        rules
    );
    // a change of something else leaves it
    let mut slower = open.clone();
    slower.forwarding.packets.mtu = Some(1400);
    let change = slower.change_from(&open.told()).unwrap();
    assert_eq!(change.lcp_connectivity, None);
    let rules = modified(&rules, change);
    assert_eq!(subscriber_rules(&rules).echo_magic, open.echo_magic);
    // LCP was negotiated again
    let rules = modified(&rules, closed.change_from(&slower.told()).unwrap());
    assert_eq!(subscriber_rules(&rules).echo_magic, None);
    let other = SessionSpec {
        echo_magic: Some(7),
        ..spec()
    };
    let rules = modified(&rules, other.change_from(&closed.told()).unwrap());
    assert_eq!(subscriber_rules(&rules), other.decoded());
    // an audit must not differ because of what a user plane of before was not told
    let silent = SessionSpec {
        echo_magic: None,
        ..other.clone()
    };
    assert_eq!(silent.digest(), other.digest());
}

#[test]
fn a_user_plane_that_should_send_echo_requests_itself_refuses() {
    let mut request = spec().establish();
    let connectivity = request.lcp_connectivity.as_mut().expect("a magic number");
    connectivity.timers = Some(VerificationTimers {
        interval: 30,
        count: 3,
    });
    let refusal = RuleSet::establish(request).unwrap_err();
    assert_eq!(refusal.cause, Cause::SERVICE_NOT_SUPPORTED);
    assert_eq!(refusal.offending_ie, Some(bbf_ie::PPP_LCP_CONNECTIVITY));
}
