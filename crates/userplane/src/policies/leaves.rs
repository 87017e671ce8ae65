//! Every setting of `acls`, `policers` and `policies` changes what the workers are told of a policy. That packets are treated so is
//! `crates/dataplane`'s to show.

use super::definition::Definition;
use config::{Edit, Path, schema};
use std::collections::BTreeSet;

/// A policy that has one of everything, for cases that say nothing else.
const BASE: &[&str] = &[
    "set user-planes up1 address 127.0.0.1",
    "set user-planes up1 management /run/up1.sock",
    "set policers p algorithm single-rate",
    "set policers p committed-rate 1000",
    "set acls a rules 10 permit udp from any to any 53",
    "set policies x acls a",
    "set policies x policer p",
    "set policies x classes voice dscp ef",
];
const TWO_RATES: &[&str] = &[
    "set policers p algorithm two-rate",
    "set policers p peak-rate 2000",
];
const DIFFERENTIATED: &[&str] = &[
    "set policers p algorithm two-rate-differentiated",
    "set policers p excess-rate 500",
];
/// It lets packets wait.
const QUEUES: &[&str] = &[
    "delete policies x policer",
    "set policies x above-rate wait",
];
const STRICT: &[&str] = &[
    "delete policies x policer",
    "set policies x above-rate wait",
    "set policies x queue rate 500",
    "set policies x classes voice queue rate 500",
];

/// What else is configured, and what is set then; behind a semicolon what that needs.
const CASES: &[(&[&str], &str)] = &[
    (&[], "acls a rules 10 deny udp from any to any 53"),
    (&[], "acls a count true"),
    (
        &[],
        "policers p algorithm two-rate; policers p peak-rate 2000",
    ),
    (&[], "policers p committed-rate 1001"),
    (&[], "policers p committed-burst 20000"),
    (TWO_RATES, "policers p peak-rate 2001"),
    (TWO_RATES, "policers p peak-burst 30001"),
    (DIFFERENTIATED, "policers p excess-rate 501"),
    (&[], "policers p excess-burst 20000"),
    (&[], "policers p overhead atm"),
    (&[], "policers p colour-aware true"),
    (&[], "policers p yellow-mark af12"),
    (
        &["set acls b rules 5 deny ip from any to any"],
        "policies x acls b",
    ),
    (
        &[
            "set policers q algorithm single-rate",
            "set policers q committed-rate 7",
        ],
        "policies x policer q",
    ),
    (&[], "policies x classes voice dscp cs5"),
    (&[], "policies x classes voice vlan-priority 5"),
    (&[], "policies x classes voice policer p"),
    (&[], "policies x classes voice mark af41"),
    (QUEUES, "policies x classes voice queue weight 7"),
    (QUEUES, "policies x classes voice queue rate 7"),
    (QUEUES, "policies x classes voice queue limit 7000"),
    (QUEUES, "policies x classes voice queue longest-wait 7000"),
    (QUEUES, "policies x classes voice queue aqm dualpi2"),
    (QUEUES, "policies x classes voice queue target-delay 0"),
    (STRICT, "policies x classes voice queue strict true"),
    (&[], "policies x mark be"),
    (&["delete policies x policer"], "policies x above-rate wait"),
    (QUEUES, "policies x queue weight 7"),
    (QUEUES, "policies x queue rate 7"),
    (QUEUES, "policies x queue limit 7000"),
    (QUEUES, "policies x queue longest-wait 7000"),
    (QUEUES, "policies x queue aqm codel"),
    (QUEUES, "policies x queue target-delay 0"),
    (STRICT, "policies x queue strict true"),
    (QUEUES, "policies x overhead ethernet"),
    (QUEUES, "policies x weight 7"),
    (&[], "policies x portal https://portal.example/"),
    (&[], "policies x unmatched permit"),
    (&[], "policies x undetermined-transport match"),
];

/// What the workers are told of the policy.
fn told(lines: &[&str]) -> String {
    let mut tree = serde_json::json!({});
    for line in lines {
        let edit = Edit::parse(line).unwrap_or_else(|why| panic!("{line}: {why:?}"));
        edit.apply(&mut tree)
            .unwrap_or_else(|why| panic!("{line}: {why:?}"));
    }
    let checked = config::check::check(&tree).unwrap_or_else(|why| panic!("{lines:?}: {why:?}"));
    let document = checked.configuration.document_for("up1").unwrap();
    let all: Vec<_> = Definition::all(&document).collect();
    let [(_, policy)] = &all[..] else {
        panic!("{} policies", all.len());
    };
    format!("{:?}", policy.source())
}

#[test]
fn every_setting_of_a_policy_is_told_to_the_workers() {
    for (beside, set) in CASES {
        let before = [BASE, beside].concat();
        let set: Vec<String> = set.split("; ").map(|set| format!("set {set}")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let after = [before.as_slice(), &set].concat();
        assert_ne!(told(&before), told(&after), "{set:?}");
    }
}

#[test]
fn every_setting_of_a_policy_has_a_case() {
    let pattern = |set: &str| {
        schema::root()
            .pattern(&Path::parse(set).unwrap())
            .to_string()
    };
    let cases: BTreeSet<String> = CASES.iter().map(|(_, set)| pattern(set)).collect();
    let leaves = schema::root().leaves().into_iter();
    let leaves = leaves.map(|(path, _)| path.to_string());
    let parts = ["acls ", "policers ", "policies "];
    let without: Vec<String> = leaves
        .filter(|leaf| parts.iter().any(|part| leaf.starts_with(part)))
        .filter(|leaf| !cases.contains(leaf))
        .collect();
    assert!(without.is_empty(), "settings without a case: {without:#?}");
}
