//! Specs come out of rules as they went in, and what cannot be done is refused.
use super::*;
use policy::{
    Access, Binding, Bindings, FilterRules, Name, PacketSettings, Rate, Role, TrafficPolicies,
    Treatment,
};
use wire::eth::{TPID_8021AD, Tag};
use wire::pfcp::*;

mod bindings;
mod default_session;
mod refused;
mod usage;

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
        forwarding: Forwarding::new(
            Bindings::of(
                Some([100, 64, 0, 2].into()),
                Some("2001:db8:0:1::/64".parse().unwrap()),
            ),
            Treatment {
                network_instance: "default".to_owned(),
                packets: PacketSettings::with_mtu(1492),
                ..Default::default()
            },
        ),
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
fn net(slot: u16, net: &str) -> PoolNet {
    PoolNet {
        slot,
        network_instance: "default".to_owned(),
        net: net.parse().unwrap(),
    }
}

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
            rate_up: Some(Rate::kbps(20_000)),
            ..spec
        },
        PacketSettings {
            rate_down: Some(Rate::MOST),
            ..spec
        },
        PacketSettings {
            keepalive: Some(policy::Keepalive {
                interval: 30,
                failures: 3,
            }),
            ..spec
        },
        PacketSettings {
            subscriber_rate_up: Some(Rate::kbps(40_000)),
            ..spec
        },
        PacketSettings {
            subscriber_rate_down: Some(Rate::MOST),
            ..spec
        },
        PacketSettings {
            priority_source: policy::PrioritySource::Dscp,
            ..spec
        },
        PacketSettings {
            committed_rate_up: Some(Rate::kbps(1)),
            ..spec
        },
        PacketSettings {
            committed_rate_down: Some(Rate::MOST),
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
fn a_policy_is_a_predefined_rule_of_its_directions_data() {
    let before = spec();
    let policies = |up, down| TrafficPolicies {
        policy_up: Name::new(up),
        policy_down: Name::new(down),
        filter_rules: None,
    };
    let mut told = before.clone();
    let mut rules = established(before.establish());
    let mut digests = vec![before.digest()];
    // one direction, the other one, both, another name, none
    for (up, down) in [("a", ""), ("", "a"), ("a", "b"), ("c", "b"), ("", "")] {
        let mut spec = spec();
        spec.forwarding.policies = policies(up, down);
        let decoded = subscriber_rules(&established(spec.establish()));
        assert_eq!(decoded.forwarding.policies, spec.forwarding.policies);
        assert_eq!(decoded, spec.decoded());
        let change = spec.change_from(&told.told()).expect("a difference");
        rules = modified(&rules, change);
        assert_eq!(subscriber_rules(&rules), decoded);
        digests.push(spec.digest());
        told = spec;
    }
    assert_eq!(digests.pop(), Some(digests[0]), "as without one");
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

#[test]
fn rules_of_a_subscriber_are_carried_once_told_again_and_part_of_the_digest() {
    let before = spec();
    let mut told = before.clone();
    let mut rules = established(before.establish());
    let mut digests = vec![before.digest()];
    for text in ["deny in ip from any to any", "a\0b", ""] {
        let mut spec = spec();
        spec.forwarding.policies.filter_rules = FilterRules::new(text);
        let decoded = subscriber_rules(&established(spec.establish()));
        assert_eq!(decoded.forwarding.policies, spec.forwarding.policies);
        assert_eq!(decoded, spec.decoded());
        // an open address family is what they are for
        let control = subscriber_rules(&established(spec.establish_control()));
        assert_eq!(control.forwarding.policies, TrafficPolicies::default());
        let change = spec.change_from(&told.told()).expect("a difference");
        assert_eq!((change.update_qers.len(), change.update_pdrs.len()), (1, 0));
        rules = modified(&rules, change);
        assert_eq!(subscriber_rules(&rules), decoded);
        digests.push(spec.digest());
        told = spec;
    }
    assert_eq!(digests.pop(), Some(digests[0]), "as without any");
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 3);
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

fn pdr(request: &mut SessionEstablishmentRequest, id: u16) -> &mut CreatePdr {
    request
        .create_pdrs
        .iter_mut()
        .find(|pdr| pdr.pdr_id == id)
        .unwrap()
}

fn endpoint(request: &mut SessionEstablishmentRequest, id: u8) -> &mut CreateTrafficEndpoint {
    request
        .create_traffic_endpoints
        .iter_mut()
        .find(|endpoint| endpoint.id == id)
        .unwrap()
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
