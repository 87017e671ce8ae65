//! Every setting that concerns the control plane is set, changed and deleted at run time, and looked at where it takes
//! effect. Each of these cases must fail when its own setting does not reach the control plane.

mod cases;
pub mod probes;

use crate::world::World;
use cases::cases;
use config::schema;
use probes::quiet;
use std::collections::BTreeSet;

/// Parts of the configuration that take effect on user planes alone.
const OF_USER_PLANES: [&str; 4] = ["acls ", "policers ", "policies ", "protection "];

/// What takes effect elsewhere: on user planes, and in the daemon around the control plane.
const ELSEWHERE: [&str; 27] = [
    "logging level",
    "network-instances * interface",
    "user-planes * hold-sessions",
    "user-planes * ipv4-options",
    "user-planes * management",
    "user-planes * ports * addresses",
    "user-planes * ports * device",
    "user-planes * ports * egress-rate",
    "user-planes * ports * lag lacp",
    "user-planes * ports * lag lacp-rate",
    "user-planes * ports * lag members",
    "user-planes * ports * lag minimum-links",
    "user-planes * ports * lag system-priority",
    "user-planes * ports * mtu",
    "user-planes * ports * segments * egress-rate",
    "user-planes * ports * segments * vlan-egress-rate",
    "user-planes * ports * network-instance",
    "user-planes * ports * source-check",
    "user-planes * ports * subinterfaces * addresses",
    "user-planes * ports * subinterfaces * mtu",
    "user-planes * ports * subinterfaces * network-instance",
    "user-planes * ports * subinterfaces * priority-source",
    "user-planes * ports * subinterfaces * source-check",
    "user-planes * ports * subinterfaces * tap",
    "user-planes * ports * subinterfaces * vlan-id",
    "user-planes * ports * tap",
    "user-planes * worker-rate",
];

const DOCUMENT: &str = "
network-instances:
  default: {gateway: [100.64.0.1]}
  red: {gateway: [10.1.0.1]}
  blue: {gateway: [10.2.0.1]}
user-planes:
  up1:
    address: 192.0.2.2
    management: /run/up1.sock
    ports:
      access0: {role: access, device: a, segments: {all: {access-profile: pppoe}}}
subscriber-groups: {east: {}, west: {}}
access-profiles:
  pppoe: {subscriber-profile: home}
  other: {subscriber-profile: slow}
  third: {subscriber-profile: slower}
subscriber-profiles:
  home: {sticky-addresses: false}
  slow: {mtu: 1300}
  slower: {mtu: 1200}
ipv4-pools:
  homes: {prefix: 100.64.0.0/24}
  more: {prefix: 100.80.0.0/24}
  most: {prefix: 100.81.0.0/24}
  reds: {prefix: 10.1.1.0/24, network-instance: red}
  blues: {prefix: 10.2.1.0/24, network-instance: blue}
ipv6-pools:
  homes: {prefix: '2001:db8:100::/48'}
  more: {prefix: '2001:db8:180::/48'}
  most: {prefix: '2001:db8:181::/48'}
  lans: {prefix: '2001:db8:4000::/48', prefix-length: 56}
  sites: {prefix: '2001:db8:4001::/48', prefix-length: 60}
  routers: {prefix: '2001:db8:5000::/112', prefix-length: 128}
  uplinks: {prefix: '2001:db8:5001::/112', prefix-length: 128}
aaa:
  servers:
    one: {address: 192.0.2.9, secret-key: testing123}
    two: {address: 192.0.2.10, secret-key: testing123}
    three: {address: 192.0.2.11, secret-key: testing123}
  server-groups:
    radius: {servers: [one]}
    second: {servers: [two]}
    third: {servers: [three]}
users:
  home0: {password: secret0}
  home1: {password: secret1}
  home2: {password: secret2}
  home3: {password: secret3}
";

/// A setting, two values of it, what is seen then, and where.
#[derive(Clone)]
struct Case {
    place: &'static str,
    values: [&'static str; 2],
    seen: [&'static str; 2],
    probe: fn(&mut World) -> String,
    /// What else is configured.
    beside: &'static [&'static str],
}

/// What is seen at first, with one value, with another, and without (again).
fn run(case: &Case, frozen: bool) -> Vec<String> {
    let mut w = World::of(4, DOCUMENT);
    if !case.beside.is_empty() {
        w.configure(case.beside).unwrap();
    }
    let place = config::Path::parse(case.place).unwrap();
    let leaf = schema::root().find(&place).expect(case.place);
    let is_list = matches!(leaf.kind, schema::Kind::LeafList(_));
    let before = config::edit::get(&w.tree, &place).cloned();
    w.frozen = frozen.then(|| place.clone());
    let mut seen = vec![(case.probe)(&mut w)];
    for value in case.values {
        quiet_for_pools(&mut w, case.place);
        let mut lines = Vec::new();
        if is_list && config::edit::get(&w.tree, &place).is_some() {
            lines.push(format!("delete {}", case.place));
        }
        lines.push(format!("set {} {value}", case.place));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        w.configure(&lines)
            .unwrap_or_else(|faults| panic!("{lines:?}: {faults:?}"));
        seen.push((case.probe)(&mut w));
    }
    quiet_for_pools(&mut w, case.place);
    let mut lines = Vec::new();
    if !leaf.required && config::edit::get(&w.tree, &place).is_some() {
        lines.push(format!("delete {}", case.place));
    }
    match before {
        Some(serde_json::Value::Array(values)) => {
            let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
            lines.extend(
                values
                    .iter()
                    .filter_map(text)
                    .map(|v| format!("set {} {v}", case.place)),
            );
        }
        Some(value) => {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("set {} {text}", case.place));
        }
        None => {}
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    w.configure(&lines)
        .unwrap_or_else(|faults| panic!("{lines:?}: {faults:?}"));
    seen.push((case.probe)(&mut w));
    seen
}

/// A pool in use, or a gateway in one, is not changed.
fn quiet_for_pools(w: &mut World, place: &str) {
    if place.contains("-pools") || place.contains("gateway") {
        quiet(w);
    }
}

/// Whether what was seen is what is to be seen.
fn verdict(case: &Case, seen: &[String]) -> Result<(), String> {
    let [first, one, other, last] = seen else {
        return Err("four looks".into());
    };
    let differs = first != one && one != other;
    let found = one.contains(case.seen[0]) && other.contains(case.seen[1]);
    match first == last && differs && found {
        true => Ok(()),
        false => Err(format!("{}: {seen:#?}", case.place)),
    }
}

#[test]
fn every_setting_takes_effect_at_run_time_and_its_case_would_notice_if_not() {
    let mut wrong = Vec::new();
    for case in cases() {
        wrong.extend(verdict(&case, &run(&case, false)).err());
        if verdict(&case, &run(&case, true)).is_ok() {
            wrong.push(format!("{}: its case does not notice", case.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_setting_has_a_case() {
    let pattern = |place: &str| {
        schema::root()
            .pattern(&config::Path::parse(place).unwrap())
            .to_string()
    };
    let cases: BTreeSet<String> = cases().iter().map(|case| pattern(case.place)).collect();
    let leaves = schema::root()
        .leaves()
        .into_iter()
        .map(|(path, _)| path.to_string());
    let without: Vec<String> = leaves
        .filter(|leaf| !cases.contains(leaf) && !ELSEWHERE.contains(&&**leaf))
        .filter(|leaf| !OF_USER_PLANES.iter().any(|part| leaf.starts_with(part)))
        .collect();
    assert!(without.is_empty(), "settings without a case: {without:#?}");
}
