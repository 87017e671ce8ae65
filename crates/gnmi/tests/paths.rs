//! Paths, values and edits of whatever a client may send.

use config::Edit;
use gnmi::edits::edits;
use gnmi::model::{Kind, model, models};
use gnmi::operations::{Operation, Verb};
use gnmi::path::{Path, Step, node_of, of_words};
use gnmi::proto::{Path as Sent, PathElem};
use gnmi::select::{leaves, select};
use gnmi::shape;
use gnmi::value::{Encoding, decode};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A path of its text, as a client would send it.
fn sent(text: &str) -> Sent {
    let element = |step: &str| {
        let (name, keys) = step.split_once('[').unwrap_or((step, ""));
        let keys = keys.trim_end_matches(']').split("][");
        let keys = keys.filter_map(|key| key.split_once('='));
        PathElem {
            name: name.into(),
            key: keys
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        }
    };
    let steps = text.split('/').filter(|step| !step.is_empty());
    Sent {
        elem: steps.map(element).collect(),
        ..Sent::default()
    }
}

fn path(text: &str) -> Path {
    Path::read(None, &sent(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn tree() -> Value {
    json!({
        "ipv4-pools": {"homes": {"prefix": "100.64.0.0/16", "net-length": 26}, "more": {}},
        "network-instances": {"default": {"gateway": ["100.64.0.1", "192.0.2.1"]}},
        "acls": {"base": {"rules": {"10": "permit ip from any to any"}}},
    })
}

/// The configuration after these operations.
fn after(operations: &[(Verb, &str, Value)]) -> Result<Value, String> {
    let operation = |(verb, at, value): &(Verb, &str, Value)| Operation {
        verb: *verb,
        path: path(at),
        value: value.clone(),
    };
    let operations: Vec<_> = operations.iter().map(operation).collect();
    let mut tree = tree();
    for edit in edits(&tree, &operations)? {
        edit.apply(&mut tree).map_err(|error| error.to_string())?;
    }
    Ok(tree)
}

#[test]
fn every_name_of_the_configuration_is_a_node_and_no_part_is_called_as_a_key() {
    for (place, _) in config::schema::root().leaves() {
        let found = of_words(&place);
        let node = node_of(&found).unwrap_or_else(|| panic!("{place}"));
        let is_value = matches!(node.kind, Kind::Leaf(_) | Kind::LeafList(_));
        let of_values = matches!(
            node.kind,
            Kind::List {
                of_values: true,
                ..
            }
        );
        assert!(is_value || of_values, "{place} is {found}");
    }
    fn unique(node: &gnmi::model::Node) {
        let mut names: Vec<_> = node.parts().iter().map(|(name, _)| name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        node.parts().iter().for_each(|(_, part)| unique(part));
    }
    models().iter().for_each(|model| unique(&model.node));
}

#[test]
fn a_path_is_read_with_its_prefix_and_without_modules() {
    let prefix = sent("/sluice-configuration:configuration");
    let read = Path::read(Some(&prefix), &sent("ipv4-pools[name=homes]/prefix")).unwrap();
    assert_eq!(
        read.to_string(),
        "/configuration/ipv4-pools[name=homes]/prefix"
    );
    assert!(read.is_exact() && !path("/configuration/ipv4-pools/prefix").is_exact());
    assert!(!path("/configuration/ipv4-pools[name=*]").is_exact());
    for (wrong, says) in [
        (
            "/nothing",
            "expected one of configuration, state, interfaces, components, network-instances",
        ),
        ("/configuration/ipv4-pool", "`ipv4-pool` is not known"),
        ("/configuration/ipv4-pools[id=1]", "no such keys"),
        ("/configuration/limits/sessions/more", "nothing below"),
        ("/state[name=x]", "has no keys"),
    ] {
        let said = Path::read(None, &sent(wrong)).unwrap_err();
        assert!(said.contains(says), "{said}");
    }
    let long = Sent {
        elem: vec![PathElem::default(); 1_000_000],
        ..Sent::default()
    };
    assert!(
        Path::read(None, &long)
            .unwrap_err()
            .contains("more than 32 steps")
    );
    let other = Sent {
        origin: "cli".into(),
        ..Sent::default()
    };
    assert!(
        Path::read(None, &other)
            .unwrap_err()
            .contains("origin `cli`")
    );
}

#[test]
fn a_path_leads_to_what_is_there() {
    let node = &model("configuration").unwrap().node;
    let value = shape::configuration(node, &tree());
    let found = |text: &str| {
        let path = path(text);
        let top = Path {
            steps: path.steps[..1].to_vec(),
        };
        let found = select(node, &value, &top, &path.steps[1..]);
        let found = found
            .iter()
            .map(|found| (found.path.to_string(), found.value.clone()));
        found.collect::<Vec<_>>()
    };
    let prefix = "/configuration/ipv4-pools[name=homes]/prefix";
    assert_eq!(found(prefix), [(prefix.into(), json!("100.64.0.0/16"))]);
    assert_eq!(found("/configuration/ipv4-pools/prefix").len(), 1);
    assert_eq!(found("/configuration/*/prefix"), found(prefix));
    assert_eq!(found("/configuration/ipv4-pools").len(), 2);
    assert_eq!(found("/configuration/ipv4-pools[name=nobody]"), []);
    let rule = "/configuration/acls[name=base]/rules[name=10]/value";
    assert_eq!(
        found(rule),
        [(rule.into(), json!("permit ip from any to any"))]
    );
    let whole = select(node, &value, &path("/configuration"), &[]);
    let all = leaves(&whole[0]);
    assert!(all.iter().any(|leaf| leaf.path == path(prefix)), "{all:?}");
}

#[test]
fn a_set_is_made_of_edits() {
    let pool = "/configuration/ipv4-pools[name=homes]";
    let replaced = after(&[(Verb::Replace, pool, json!({"prefix": "100.96.0.0/16"}))]).unwrap();
    assert_eq!(
        replaced["ipv4-pools"]["homes"],
        json!({"prefix": "100.96.0.0/16"})
    );
    let updated = after(&[(Verb::Update, pool, json!({"net-length": "27"}))]).unwrap();
    let homes = json!({"prefix": "100.64.0.0/16", "net-length": 27});
    assert_eq!(updated["ipv4-pools"]["homes"], homes);
    let gateway = "/configuration/network-instances[name=default]/gateway";
    for verb in [Verb::Replace, Verb::Update] {
        let values = after(&[(verb, gateway, json!(["192.0.2.9"]))]).unwrap();
        assert_eq!(
            values["network-instances"]["default"]["gateway"],
            json!(["192.0.2.9"])
        );
    }
    let instance = "/configuration/network-instances[name=default]";
    let thrice = after(&[
        (Verb::Replace, instance, json!({"gateway": ["192.0.2.7"]})),
        (Verb::Update, instance, json!({"gateway": ["192.0.2.8"]})),
        (Verb::Update, gateway, json!(["192.0.2.9"])),
    ]);
    assert_eq!(
        thrice.unwrap()["network-instances"]["default"]["gateway"],
        json!(["192.0.2.9"])
    );
    let rules = "/configuration/acls[name=base]/rules";
    let more = json!([{"name": 20, "value": "deny ip from any to any"}]);
    let two = after(&[(Verb::Update, rules, more.clone())]).unwrap();
    assert_eq!(two["acls"]["base"]["rules"].as_object().unwrap().len(), 2);
    let one = after(&[(Verb::Replace, rules, more)]).unwrap();
    assert_eq!(one["acls"]["base"]["rules"].as_object().unwrap().len(), 1);
    let gone = after(&[(
        Verb::Delete,
        "/configuration/users[name=nobody]",
        Value::Null,
    )]);
    assert_eq!(gone.unwrap(), tree());
    let whole =
        json!({"sluice-configuration:ipv4-pools": [{"name": "only", "prefix": "10.0.0.0/8"}]});
    let only = after(&[(Verb::Replace, "/configuration", whole)]).unwrap();
    assert_eq!(
        only,
        json!({"ipv4-pools": {"only": {"prefix": "10.0.0.0/8"}}})
    );
    for (at, value, says) in [
        (pool, json!({"name": "other"}), "is not that of the entry"),
        (pool, json!([]), "expected an object"),
        ("/configuration/ipv4-pools", json!([{}]), "has no `name`"),
        (
            "/configuration/ipv4-pools[name=homes]/name",
            json!("x"),
            "cannot be changed",
        ),
        (
            "/configuration/ipv4-pools/prefix",
            json!("x"),
            "`name` is missing",
        ),
        ("/configuration/*/prefix", json!("x"), "cannot be set"),
        (
            "/state/ports",
            json!([]),
            "only what is below /configuration",
        ),
        (
            "/configuration/limits/sessions",
            json!({}),
            "expected one value",
        ),
        (
            "/configuration/acls[name=base]/rules[name=10]",
            json!({}),
            "an entry has no `value`",
        ),
        (
            "/configuration/acls[name=base]/rules",
            json!([{"name": "20"}]),
            "an entry has no `value`",
        ),
        (
            "/configuration/network-instances[name=default]/gateway",
            json!([{}]),
            "expected a list of values",
        ),
    ] {
        let said = after(&[(Verb::Update, at, value)]).unwrap_err();
        assert!(said.contains(says) && said.starts_with(at), "{said}");
    }
}

#[test]
fn what_is_there_already_is_no_edit() {
    let pool = json!({"prefix": "100.64.0.0/16", "net-length": "26"});
    let gateways = json!(["100.64.0.1", "192.0.2.1"]);
    let rule = json!({"value": "permit ip from any to any"});
    let operation = |verb, at, value| Operation {
        verb,
        path: path(at),
        value,
    };
    for (at, value) in [
        ("/configuration/ipv4-pools[name=homes]", pool),
        (
            "/configuration/network-instances[name=default]/gateway",
            gateways,
        ),
        ("/configuration/acls[name=base]/rules[name=10]", rule),
    ] {
        for verb in [Verb::Replace, Verb::Update] {
            let again = operation(verb, at, value.clone());
            assert_eq!(edits(&tree(), &[again]), Ok(vec![]), "{verb:?} {at}");
        }
    }
    let pool = "/configuration/ipv4-pools[name=homes]";
    let without = operation(Verb::Delete, pool, Value::Null);
    assert_eq!(edits(&tree(), &[without]).unwrap().len(), 1);
}

#[test]
fn rfc_7951_has_texts_for_wide_numbers_and_modules_at_the_top() {
    let node = &model("state").unwrap().node.part("ports").unwrap();
    let row = json!({"user_plane": "up1", "rx_octets": 5, "link_up": true});
    let plain = Encoding::Json.encode("sluice-state", node, &row);
    assert_eq!(decode(Some(&plain)).unwrap(), row);
    let ietf = Encoding::JsonIetf.encode("sluice-state", node, &row);
    let expected = json!({"sluice-state:user_plane": "up1", "sluice-state:rx_octets": "5", "sluice-state:link_up": true});
    assert_eq!(decode(Some(&ietf)).unwrap(), expected);
    let limits = model("configuration").unwrap().node.part("limits").unwrap();
    let sessions =
        Encoding::JsonIetf.encode("sluice-configuration", limits, &json!({"sessions": 7}));
    let sessions = decode(Some(&sessions)).unwrap();
    assert_eq!(sessions, json!({"sluice-configuration:sessions": 7}));
}

#[test]
fn rows_are_columns_and_have_every_key() {
    let table = gnmi::model::table("qos-aggregates").unwrap();
    let node = model("state").unwrap().node.part("qos-aggregates").unwrap();
    let row =
        json!({"user_plane": "up1", "port": "core0", "segment": "", "packets": 3, "stranger": 1});
    let shaped = shape::rows(table, node, &[row]);
    assert_eq!(shaped[0]["s_tag"], "");
    assert_eq!(shaped[0]["packets"], 3);
    assert!(shaped[0].get("stranger").is_none());
    let planes = model("state").unwrap().node.part("user-planes").unwrap();
    let row = json!({"node_id": "up1", "drain": {"rate": 20, "waits": false}, "access_ports": [{"name": "a", "open": true}]});
    let shaped = shape::rows(gnmi::model::table("user-planes").unwrap(), planes, &[row]);
    assert_eq!(shaped[0]["drain"], json!({"rate": 20, "waits": false}));
    assert_eq!(
        shaped[0]["access_ports"],
        json!([{"name": "a", "open": true}])
    );
}

/// Names that lead somewhere more often than any text would.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("configuration".to_owned()),
        Just("ipv4-pools".to_owned()),
        Just("acls".to_owned()),
        Just("rules".to_owned()),
        Just("value".to_owned()),
        Just("prefix".to_owned()),
        Just("gateway".to_owned()),
        Just("network-instances".to_owned()),
        Just("*".to_owned()),
        ".{0,8}",
    ]
}

fn any_path() -> impl Strategy<Value = Sent> {
    let key = (prop_oneof![Just("name".to_owned()), ".{0,4}"], ".{0,4}");
    let keys = prop::collection::hash_map(key.0, key.1, 0..2);
    let element = (name(), keys).prop_map(|(name, key)| PathElem {
        name,
        key: key.into_iter().collect(),
    });
    let top = Just(PathElem {
        name: "configuration".into(),
        ..PathElem::default()
    });
    (top, prop::collection::vec(element, 0..6)).prop_map(|(top, mut elem)| {
        elem.insert(0, top);
        Sent {
            elem,
            ..Sent::default()
        }
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|parts| Value::Object(parts.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is sent, there are edits that can be carried out, or a sentence that names the path.
    #[test]
    fn any_set_is_edits_or_a_sentence(sent in any_path(), value in any_value(), verb in 0..3_u8) {
        let Ok(path) = Path::read(None, &sent) else { return Ok(()) };
        let said = path.to_string();
        let verb = [Verb::Delete, Verb::Replace, Verb::Update][usize::from(verb)];
        let operation = Operation { verb, path, value };
        match edits(&tree(), &[operation]) {
            Ok(edits) => {
                let mut tree = tree();
                for edit in edits {
                    prop_assert!(edit.apply(&mut tree).is_ok());
                }
            }
            Err(why) => prop_assert!(why.starts_with(&said), "{}", why),
        }
    }

    /// A path that is read is the same when it is sent again.
    #[test]
    fn a_path_stays_the_same(sent in any_path()) {
        if let Ok(path) = Path::read(None, &sent) {
            prop_assert_eq!(Path::read(None, &path.to_sent()), Ok(path));
        }
    }

    /// What is read of the configuration brings it back when it replaces the whole.
    #[test]
    fn the_configuration_survives_a_round_trip(length in 24..30_u8, name in "[a-z]{1,8}") {
        let mut before = tree();
        Edit::parse(&format!("set ipv4-pools {name} net-length {length}")).unwrap().apply(&mut before).unwrap();
        let node = &model("configuration").unwrap().node;
        let value = shape::configuration(node, &before);
        let sent = Encoding::JsonIetf.encode("sluice-configuration", node, &value);
        let path = Path { steps: vec![Step::to("configuration")] };
        let operation = Operation { verb: Verb::Replace, path, value: decode(Some(&sent)).unwrap() };
        let mut after = json!({"users": {"a": {}}});
        for edit in edits(&after, &[operation]).unwrap() {
            edit.apply(&mut after).unwrap();
        }
        prop_assert_eq!(after, before);
    }
}
