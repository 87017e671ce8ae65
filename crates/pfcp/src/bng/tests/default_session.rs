//! Rules of the default session of an access port.
use super::*;

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
