//! The model as its users meet it: documents, faults, edits.

use config::schema::{self, Kind, Type};
use config::{Checked, Edit, Path, check, edit, write};
use proptest::prelude::*;
use serde_json::Value;

const EXAMPLE: &str = include_str!("../../../deploy/examples/sluice.yaml");

fn example() -> Checked {
    check::read(EXAMPLE).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// What is said of the example with something replaced.
fn said(from: &str, to: &str) -> Vec<String> {
    assert!(EXAMPLE.contains(from), "{from}");
    let faults = check::read(&EXAMPLE.replacen(from, to, 1)).expect_err(to);
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn the_example_is_good_and_its_values_arrive() {
    let read = example().configuration;
    let up1 = read.document_for("up1").unwrap();
    assert_eq!(up1.network_instances["default"].interface, "sl-default");
    assert_eq!(up1.ports["core0"].subinterfaces["v300"].mtu, 1500);
    assert_eq!(
        up1.ports["access0"].subscriber_group, None,
        "only the control plane has to know"
    );
    let first = &read.aaa.servers["first"];
    assert_eq!((first.secret(), first.ports()), ("change-me", [1812, 1813]));
    assert_eq!(read.limits.half_open, 8192);
    assert!(!format!("{read:?}").contains("change-me"));
}

#[test]
fn a_fault_names_its_line_its_place_and_the_nearest_that_is_right() {
    for (from, to, expected) in [
        (
            "role: access",
            "rolle: access",
            "line 14: user-planes up1 ports access0 rolle: `rolle` is not a setting here: did you mean `role`?",
        ),
        (
            "role: access",
            "role: acess",
            "line 14: user-planes up1 ports access0 role: `acess` is not a value here: did you mean `access`? expected one of access, core",
        ),
        (
            "subscriber-group: east",
            "subscriber-group: eats",
            "`subscriber-groups` has no `eats`: did you mean `east`?",
        ),
        (
            "192.0.2.2  ",
            "192.0.2.300",
            "line 10: user-planes up1 address: `192.0.2.300` is not valid here: expected an IP address",
        ),
        (
            "vlan-id: 300",
            "vlan-id: 4095",
            "expected a number from 1 to 4094",
        ),
        (
            "prefix: 100.64.0.0/16",
            "prefix: '2001:db8::/40'",
            "ipv4-pools homes prefix: `2001:db8::/40` is not valid here: expected an IPv4 prefix",
        ),
        (
            "prefix: 100.64.0.0/16",
            "prefix: 100.64.0.1/16",
            "expected an IPv4 prefix",
        ),
        (
            "100.64.0.0/16}",
            "100.64.0.0/16, net-length: 12}",
            "expected a number from 16 to 30",
        ),
        (
            "homes: {prefix: 100.64.0.0/16}",
            "homes: {prefix: 100.64.0.0/16}\n  more: {prefix: 100.64.9.0/24}",
            "overlaps with 100.64.0.0/16 of pool `homes`",
        ),
        (
            "'untagged,200'",
            "150-200",
            "segment `business` has some of these VLANs",
        ),
        (
            "v300: {",
            "v300: {tap: sl-core0, ",
            "both create the kernel interface `sl-core0`",
        ),
        (
            "    role: core",
            "    role: access",
            "this is valid for core ports only",
        ),
        (
            "    authentication: [",
            "    dhcpv6-valid-lifetime: 600\n    authentication: [",
            "access-profiles pppoe dhcpv6-valid-lifetime: less than `dhcpv6-preferred-lifetime`: expected at least 14400",
        ),
        (
            "servers: [first, second]",
            "servers: []",
            "the group has no server",
        ),
        (
            "secret-key: change-me",
            "auth-port: 1812",
            "secret-key: a server without `transport: tls` needs a shared secret",
        ),
        (
            "secret-key: change-me",
            "transport: tls, tls: {authority: ca.pem}",
            "tls authority: expected the absolute path of a PEM file",
        ),
        (
            "secret-key: change-me",
            "transport: tls, tls: {authority: /ca.pem, certificate: /own.pem}",
            "tls key: expected the absolute path of a PEM file",
        ),
        (
            "secret-key: change-me",
            "secret-key: change-me, tls: {key: /own.key}",
            "tls key: this is for `transport: tls` only",
        ),
        (
            "servers: [first, second]",
            "servers: [first, second], source-ipv4: 224.0.0.1",
            "source-ipv4: `224.0.0.1` is not a unicast address",
        ),
        (
            "servers: [first, second]",
            "servers: [first, second], vrf: a-name-too-long-",
            "expected the name of a kernel interface: 1 to 15 octets",
        ),
        (
            "servers: [first, second]",
            "servers: [first, first]",
            "`first` is listed twice",
        ),
        (
            "secret-key: change-me",
            "secret-key: '********'",
            "expected the secret itself",
        ),
        (
            "  east: {}",
            "  east: {}\n  east: {}",
            "line 35: subscriber-groups east: this setting is already in line 34",
        ),
        (
            "address: 192.0.2.2  ",
            "#",
            "line 9: user-planes up1: `address` is missing: expected an IP address",
        ),
        ("users:", "users: &a", "anchors"),
        ("users:", "users: !!map", "tags"),
        ("users:", "users: [", "this is not valid YAML"),
        ("users:", "---\nusers:", "second YAML document"),
        ("users:", "? [a]\n: b\nusers:", "this is not a valid name"),
    ] {
        let said = said(from, to);
        assert!(
            said.iter().any(|fault| fault.contains(expected)),
            "{to}: {said:#?}\nlacks {expected}"
        );
    }
}

#[test]
fn what_names_no_network_instance_needs_the_default_one() {
    let said = check::read("ipv4-pools: {a: {prefix: 10.0.0.0/16}}").unwrap_err();
    assert!(
        said[0].message.contains("set network-instances default"),
        "{said:?}"
    );
}

#[test]
fn times_of_router_advertisements_fit_each_other() {
    let said = |times: &str| {
        let text = format!("access-profiles: {{a: {{router-advertisements: {{{times}}}}}}}");
        check::read(&text).err().map(|faults| faults[0].to_string())
    };
    assert_eq!(said("interval: 1800, router-lifetime: 0"), None);
    assert_eq!(said("valid-lifetime: 60, preferred-lifetime: 60"), None);
    for (times, expected) in [
        ("interval: 1801", "from 4 to 1800"),
        (
            "interval: 600, router-lifetime: 599",
            "router-lifetime: expected 0, or at least `interval`, which is 600",
        ),
        (
            "valid-lifetime: 60, preferred-lifetime: 61",
            "preferred-lifetime: expected at most `valid-lifetime`, which is 60",
        ),
    ] {
        let said = said(times).expect(times);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn two_clients_with_one_address_are_a_fault() {
    let said = |second: &str| {
        let first = "first: {address: 192.0.2.9, secret-key: first}";
        let second = format!("second: {{address: {second}, secret-key: second}}");
        let text = format!("aaa: {{dynamic-authorization: {{clients: {{{first}, {second}}}}}}}");
        check::read(&text).err().map(|faults| faults[0].to_string())
    };
    assert_eq!(said("192.0.2.10"), None);
    let said = said("192.0.2.9").unwrap();
    let at = "aaa dynamic-authorization clients second address";
    assert!(
        said.contains(at) && said.contains("client `first` has it, too"),
        "{said}"
    );
}

#[test]
fn a_user_has_one_secret_and_not_too_many_routes() {
    let said = |user: &str| {
        let faults = check::read(&format!("users:\n  a: {{{user}}}\n"));
        faults.err().map(|faults| faults[0].to_string())
    };
    let routes: Vec<String> = (0..33).map(|n| format!("203.0.113.{n}/32")).collect();
    assert_eq!(said("password: x"), None);
    assert_eq!(
        said(&format!(
            "password: x, routes: [{}]",
            routes[1..].join(", ")
        )),
        None
    );
    for (user, expected) in [
        (String::new(), "neither `password` nor `password-hash`"),
        (
            "password: x, password-hash: y".into(),
            "`password` is set, too",
        ),
        (
            "password-hash: hunter2".into(),
            "not a hash: expected argon2id",
        ),
        (
            format!("password: x, routes: [{}]", routes.join(", ")),
            "33 routes: expected at most 32",
        ),
        (
            "password: x, routes: [203.0.113.1/24]".into(),
            "expected an IPv4 or IPv6 prefix",
        ),
    ] {
        let said = said(&user).unwrap();
        assert!(said.contains(expected), "{user}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_policy_has_seven_classes_at_most() {
    let said = |names: &[&str]| -> Vec<String> {
        let classes = names.iter().map(|name| format!("      {name}: {{}}\n"));
        let classes: String = classes.collect();
        let faults = check::read(&format!("policies:\n  home:\n    classes:\n{classes}"));
        let faults = faults.err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    };
    let names = ["a", "i", "b", "c", "h", "d", "e", "f", "g"];
    let most = config::model::MOST_CLASSES;
    assert_eq!(names[..7].len(), most);
    let manual = include_str!("../../../docs/reference/configuration.schema.json");
    assert!(manual.contains(&format!("that `acls` lets pass, at most {most}.")));
    assert_eq!(said(&names[..7]), [""; 0]);
    let beyond = |line, name, all| {
        format!(
            "line {line}: policies home classes {name}: class `{name}` is beyond the 7 that a policy may have: {all} classes"
        )
    };
    assert_eq!(said(&names[..8]), [beyond(5, "i", 8)]);
    assert_eq!(said(&names), [beyond(5, "i", 9), beyond(8, "h", 9)]);
}

/// Lines of a document, each with a number of its own.
fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect()
}

#[test]
fn there_are_not_too_many_acls_rules_and_policies() {
    let said = |text: String| -> Vec<String> {
        let faults = check::read(&text).err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    };
    let acl = |name: &str, count| {
        let rules = numbered(count, |n| {
            format!("      {n}: deny tcp from any to any {n}\n")
        });
        format!("  {name}:\n    rules:\n{rules}")
    };
    let most = format!("acls:\n{}", acl("a", 4_000));
    assert_eq!(said(most), [""; 0]);
    let rules = said(format!("acls:\n{}", acl("a", 4_001)));
    let why = "line 3: acls a rules: 4001 rules: expected at most 4000";
    assert_eq!(rules, [why]);

    let acls = |count| numbered(count, |n| format!("  a{n}: {{}}\n"));
    assert_eq!(said(format!("acls:\n{}", acls(256))), [""; 0]);
    let why = "line 1: acls: 257 ACLs: expected at most 256";
    assert_eq!(said(format!("acls:\n{}", acls(257))), [why]);

    let policies = |count| numbered(count, |n| format!("  p{n}: {{}}\n"));
    assert_eq!(said(format!("policies:\n{}", policies(4_096))), [""; 0]);
    let why = "line 1: policies: 4097 policies: expected at most 4096";
    assert_eq!(said(format!("policies:\n{}", policies(4_097))), [why]);

    let all = |last| {
        let of = [acl("a", 4_000), acl("b", 4_000), acl("c", last)].concat();
        format!("acls:\n{of}policies:\n  home:\n    acls: [a, b, c]\n")
    };
    assert_eq!(
        said(all(0).replace("  c:\n    rules:\n", "  c: {}\n")),
        [""; 0]
    );
    let together = said(all(1));
    assert_eq!(together.len(), 1, "{together:?}");
    let why = "policies home acls: 8001 rules together: expected at most 8000";
    assert!(together[0].contains(why), "{together:?}");
}

#[test]
fn a_policer_has_the_rates_and_bursts_of_its_algorithm() {
    let said = |policer: &str| -> Vec<String> {
        let faults = check::read(&format!(
            "policers:\n  a: {{committed-rate: 20, {policer}}}\n"
        ));
        let faults = faults.err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    };
    for good in [
        "peak-rate: 20",
        "peak-rate: 30, peak-burst: 5000, committed-burst: 5000",
        "algorithm: single-rate",
        "algorithm: single-rate, excess-burst: 5000",
        "algorithm: two-rate-differentiated, excess-rate: 1, excess-burst: 5000",
    ] {
        assert_eq!(said(good), [""; 0], "{good}");
    }
    for (policer, expected) in [
        (
            "algorithm: two-rate",
            ["a: `peak-rate` is missing: `two-rate` needs it"].as_slice(),
        ),
        (
            "peak-rate: 19",
            &["a peak-rate: this is below `committed-rate`: expected at least 20"],
        ),
        (
            "peak-rate: 20, excess-burst: 5000",
            &["a excess-burst: `two-rate` has none"],
        ),
        (
            "algorithm: single-rate, peak-rate: 30, excess-rate: 30",
            &[
                "a peak-rate: `single-rate` has none",
                "a excess-rate: `single-rate` has none",
            ],
        ),
        (
            "algorithm: two-rate-differentiated, peak-rate: 30",
            &[
                "a peak-rate: `two-rate-differentiated` has none",
                "a: `excess-rate` is missing: `two-rate-differentiated` needs it",
            ],
        ),
    ] {
        let said = said(policer);
        assert_eq!(said.len(), expected.len(), "{policer}: {said:?}");
        for part in expected {
            assert!(
                said.iter().any(|fault| fault.contains(part)),
                "{policer}: {said:?}"
            );
        }
    }
}

#[test]
fn what_is_redirected_has_a_portal_to_go_to() {
    let said = |policy: &str| -> Vec<String> {
        let acls = "acls: {walled: {rules: {20: redirect tcp from any to any 80}}}";
        let faults = check::read(&format!(
            "{acls}\npolicies: {{walled: {{acls: [walled], {policy}}}}}\n"
        ));
        let faults = faults.err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    };
    for good in [
        "portal: 'http://portal.example/pay?a=b'",
        "portal: 'https://192.0.2.80:8443'",
    ] {
        assert_eq!(said(good), [""; 0], "{good}");
    }
    let nowhere = said("unmatched: deny");
    assert_eq!(nowhere.len(), 1);
    let why = "rule 20 of `walled` redirects, and this policy does not say where to: add `portal`";
    assert!(nowhere[0].contains(why), "{nowhere:?}");
    let long = format!("'http://portal.example/{}'", "x".repeat(255));
    for bad in [
        "portal.example",
        "'ftp://portal.example/'",
        "'http://'",
        "'http:///pay'",
        "\"http://portal.example/\\r\\nSet-Cookie: a=b\"",
        "'http://portal.example/a b'",
        &long,
    ] {
        let said = said(&format!("portal: {bad}"));
        assert_eq!(said.len(), 1, "{bad}: {said:?}");
        assert!(said[0].contains("portal: "), "{said:?}");
    }
}

#[test]
fn a_rule_of_an_acl_is_for_no_direction_and_no_subscriber() {
    let said = |rule: &str| {
        let faults = check::read(&format!("acls: {{a: {{rules: {{10: {rule}}}}}}}\n"));
        faults.err().map(|faults| faults[0].to_string())
    };
    assert_eq!(said("permit tcp from any to 192.0.2.1 80"), None);
    let direction = said("permit out tcp from any to 192.0.2.1 80").unwrap();
    assert!(direction.contains("has no direction"), "{direction}");
    for rule in [
        "permit ip from assigned to any",
        "permit ip from any to assigned",
    ] {
        let said = said(rule).unwrap();
        assert!(
            said.contains("does not know whose it is: expected `any`"),
            "{said}"
        );
    }
}

#[test]
fn every_fault_is_found_at_once() {
    let text = "userz: {}\nlimits: {sessions: many}\nipv4-pools:\n  a: {prefix: x}\n  b: {}\n";
    let lines: Vec<u64> = check::read(text)
        .unwrap_err()
        .iter()
        .map(|fault| fault.line)
        .collect();
    assert_eq!(lines, [1, 2, 4, 5]);
}

#[test]
fn hostile_documents_are_refused() {
    let huge = format!("users: {{a: {{password: {}}}}}", "x".repeat(100 << 20));
    assert!(
        check::read(&huge).unwrap_err()[0]
            .message
            .contains("expected at most 96 MiB")
    );
    let deep = "{a: ".repeat(100_000);
    assert!(!check::read(&deep).unwrap_err().is_empty());
    let deep = "[".repeat(100_000);
    assert!(!check::read(&deep).unwrap_err().is_empty());
    let cyclic = "users: &a {b: *a}";
    assert!(!check::read(cyclic).unwrap_err().is_empty());
    let secret = check::read("users: {a: {password: [hunter2]}}").unwrap_err();
    assert!(!format!("{secret:?}").contains("hunter2"));
}

#[test]
fn every_node_is_explained() {
    fn walk(path: &Path, schema: &schema::Schema) {
        assert!(
            path.is_root() || path.steps().last().unwrap() == "*" || schema.doc.len() > 10,
            "{path}: {:?}",
            schema.doc
        );
        match &schema.kind {
            Kind::Container(parts) => parts
                .iter()
                .for_each(|(name, part)| walk(&path.join(name), part)),
            Kind::Entries {
                key,
                reference,
                entry,
                ..
            } => {
                assert!(key != "its name", "{path}: what is the name of?");
                assert!(
                    reference
                        .as_ref()
                        .is_none_or(|r| schema::root().find(r).is_some()),
                    "{path}"
                );
                walk(&path.join("*"), entry);
            }
            Kind::Leaf(leaf) | Kind::LeafList(leaf) => {
                if let Type::Word(words) = &leaf.leaf_type {
                    assert!(
                        words.iter().all(|(_, doc)| !doc.is_empty()),
                        "{path}: {words:?}"
                    );
                }
                if let Some(reference) = &leaf.reference {
                    let target = schema::root().find(reference);
                    assert!(
                        target.is_some_and(|t| matches!(t.kind, Kind::Entries { .. })),
                        "{path}"
                    );
                }
            }
        }
    }
    walk(&Path::default(), schema::root());
}

#[test]
fn the_defaults_of_the_schema_are_those_of_the_types() {
    let find = |path: &str| {
        schema::root()
            .find(&Path::parse(path).unwrap())
            .unwrap()
            .leaf()
            .unwrap()
            .default
            .clone()
    };
    assert_eq!(find("limits half-open").as_deref(), Some("8192"));
    assert_eq!(find("user-planes x ports y mtu").as_deref(), Some("1500"));
    assert_eq!(
        find("user-planes x hold-sessions").as_deref(),
        Some("forever")
    );
    assert_eq!(
        find("access-profiles x authentication").as_deref(),
        Some("chap pap")
    );
    assert_eq!(find("logging level").as_deref(), Some("info"));
}

#[test]
fn what_is_written_is_read_again() {
    let tree = example().tree;
    let text = write(&tree, true);
    assert_eq!(check::read(&text).unwrap().tree, tree, "{text}");
    let shown = write(&tree, false);
    assert!(!shown.contains("change-me") && shown.contains("'********'"));
}

#[test]
fn edits_are_typed_as_they_are_read() {
    let mut tree = example().tree;
    let mut edit = |line: &str| {
        Edit::parse(line)
            .unwrap()
            .apply(&mut tree)
            .map_err(|e| e.to_string())
    };
    edit("set user-planes up1 ports core0 mtu 9000").unwrap();
    edit("set subscriber-profiles standard dns 192.0.2.54").unwrap();
    edit("delete subscriber-profiles standard dns 192.0.2.53").unwrap();
    edit("set subscriber-groups west").unwrap();
    edit("delete users").unwrap();
    let wrong = [
        (
            "set user-planes up1 ports core0 mut 9000",
            "`mut` is not known here",
        ),
        (
            "set user-planes up1 ports core0 mtu",
            "the value is missing: expected a number from 1280 to 9600 (octets)",
        ),
        (
            "set user-planes up1 ports core0 mtu 9000 1",
            "more than one value",
        ),
        (
            "delete users",
            "cannot delete `users`: it is not configured",
        ),
        (
            "delete user-planes up1 ports core0 mtu 1500",
            "another value",
        ),
        ("set users x password", "the value is missing"),
    ];
    for (line, why) in wrong {
        let said = edit(line).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let secret = Edit::parse("set users x password hunter2").unwrap();
    assert_eq!(secret.to_string(), "set users x password ********");
    let unquoted = Edit::parse("set users x password my hunter2").unwrap();
    assert_eq!(unquoted.to_string(), "set users x password ********");
    let now = check::check(&tree).unwrap().configuration;
    assert_eq!(now.user_planes["up1"].ports["core0"].mtu, 9000);
    assert_eq!(now.subscriber_profiles["standard"].dns.len(), 2);
    assert!(now.users.is_empty() && now.subscriber_groups.contains_key("west"));
}

#[test]
fn who_edits_the_same_meets_a_conflict_and_nobody_else_does() {
    let base = example().tree;
    let edit = |line: &str| Edit::parse(line).unwrap();
    let mut theirs = base.clone();
    edit("set user-planes up1 ports core0 mtu 9000")
        .apply(&mut theirs)
        .unwrap();
    edit("delete users test@sluice").apply(&mut theirs).unwrap();
    let merge = |line: &str| edit::merge(&base, &[edit(line)], &theirs);
    let merged = merge("set limits half-open 5").unwrap();
    assert_eq!(
        (merged["limits"]["half-open"].as_u64(), merged.get("users")),
        (Some(5), None)
    );
    assert_eq!(
        merge("set user-planes up1 ports core0 mtu 9000").unwrap(),
        theirs,
        "both want the same"
    );
    assert_eq!(merge("delete users").unwrap(), theirs);
    for line in [
        "set user-planes up1 ports core0 mtu 2000",
        "delete user-planes up1",
        "set users test@sluice password new",
    ] {
        assert_eq!(merge(line).unwrap_err().len(), 1, "{line}");
    }
}

/// A word for a place of the model, often a right one.
fn value(schema: &schema::Leaf) -> BoxedStrategy<String> {
    let names = prop::sample::select(vec!["a", "b", "c"])
        .prop_map(str::to_owned)
        .boxed();
    if schema.reference.is_some() {
        return names;
    }
    match &schema.leaf_type {
        Type::Boolean => prop::bool::ANY.prop_map(|b| b.to_string()).boxed(),
        Type::Integer(min, max) => (*min..=*max).prop_map(|n| n.to_string()).boxed(),
        Type::Word(words) => {
            prop::sample::select(words.iter().map(|(w, _)| w.clone()).collect::<Vec<_>>()).boxed()
        }
        Type::Text(Some(_)) => prop::sample::select(vec![
            "192.0.2.1",
            "2001:db8::/48",
            "10.0.0.0/8",
            "x",
            "forever",
            "/run/x",
        ])
        .prop_map(str::to_owned)
        .boxed(),
        Type::Text(None) => {
            "\\PC{0,9}|[\\x00-\\x20\\x7f-\\xa0\\u{2028}\\u{feff}#:'\"-]{1,5}".boxed()
        }
    }
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let leaves = schema::root().leaves();
    prop::sample::select(leaves).prop_flat_map(|(path, schema)| {
        let names = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 4);
        let steps = path.steps().to_vec();
        (
            names,
            value(schema.leaf().unwrap()),
            0..=steps.len(),
            prop::bool::weighted(0.3),
        )
            .prop_map(move |(names, value, depth, delete)| {
                let mut names = names.into_iter();
                let name = |step: &String| match step.as_str() {
                    "*" => names.next().unwrap().to_owned(),
                    step => step.to_owned(),
                };
                let mut words: Vec<String> = steps.iter().map(name).collect();
                if delete {
                    words.truncate(depth.max(1));
                    return Edit::delete(words.into_iter().collect());
                }
                words.push(value);
                Edit::set(words.into_iter().collect())
            })
    })
}

fn any_tree() -> impl Strategy<Value = Value> {
    prop::collection::vec(any_edit(), 0..40).prop_map(|edits| {
        let mut tree = Value::Object(serde_json::Map::new());
        for edit in edits {
            let _ = edit.apply(&mut tree);
        }
        tree
    })
}

proptest! {
    #[test]
    fn a_difference_and_its_reverse_change_nothing(from in any_tree(), to in any_tree()) {
        let mut tree = from.clone();
        for edit in edit::difference(&from, &to) {
            edit.apply(&mut tree).unwrap();
        }
        prop_assert_eq!(&tree, &to);
        for edit in edit::difference(&to, &from) {
            edit.apply(&mut tree).unwrap();
        }
        prop_assert_eq!(&tree, &from);
        prop_assert_eq!(edit::difference(&from, &from), vec![]);
    }

    #[test]
    fn an_edit_that_is_printed_is_the_same_when_it_is_typed(edit in any_edit()) {
        let secret = edit.to_string().contains(config::MASK);
        let typed = Edit::parse(&edit.to_string()).unwrap();
        prop_assert!(secret || typed == edit);
    }

    #[test]
    fn any_tree_survives_being_written(tree in any_tree()) {
        let text = write(&tree, true);
        let (node, faults) = config::tree::parse(&text);
        prop_assert!(node.is_some() && faults.is_empty(), "{}\n{:?}", text, faults);
        match (check::check(&tree), check::read(&text)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (Err(one), Err(other)) => prop_assert_eq!(one.len(), other.len(), "{}", text),
            (one, other) => prop_assert!(false, "{one:?}\n{other:?}\n{text}"),
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "[ \\n:{}\\[\\],'\"a-c&*!|>#%@-]{0,80}") {
        let _ = check::read(&text);
    }
}

#[test]
fn two_servers_over_tcp_or_tls_at_one_address_are_no_group() {
    let document = |ports: &str| {
        let tls = "transport: tls, tls: {authority: /a, certificate: /c, key: /k}";
        format!(
            "aaa:
  servers:
    one: {{address: 192.0.2.9, {tls}}}
    two: {{address: 192.0.2.9, {tls}{ports}}}
  server-groups: {{main: {{servers: [one, two]}}}}
"
        )
    };
    let faults = check::read(&document("")).unwrap_err();
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let expected = "`one` and `two` are both at 192.0.2.9:2083: expected different servers";
    assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
    let good = check::read(&document(", auth-port: 2084, acct-port: 2084")).unwrap();
    let one = &good.configuration.aaa.servers["one"];
    assert_eq!((one.secret(), one.ports()), ("radsec", [2083, 2083]));
}
