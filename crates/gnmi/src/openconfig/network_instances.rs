//! OpenConfig's `network-instances`: which there are, and which ports belong to each.
//!
//! Access ports belong to none: each of their sessions may be in another. Forwarding tables (`afts`) are left out, because OpenConfig has
//! one for each instance, and here every user plane has its own.

use super::{OpenConfig, Origin, entries, leaf, list, model, port_name, text};
use crate::model::{Model, Node, Type};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The network instance that always exists.
const DEFAULT: &str = "default";

/// Network instances of the configuration in force.
pub const NETWORK_INSTANCES: OpenConfig = OpenConfig {
    top: "network-instances",
    origins: &[Origin::Configuration],
    make: |origins| network_instances(origins[0]),
    tells_changes: true,
    model: nodes,
};

fn nodes() -> Model {
    let vlan = Type::Integer(0, u32::MAX.into());
    let state = vec![
        leaf("interface", "User plane and core port."),
        (
            "subinterface".into(),
            Node::leaf("VLAN id of a sub-interface.", vlan),
        ),
    ];
    let id = "User plane, and core port or sub-interface, with a / between them.";
    let interface = list("A core port or sub-interface.", "id", id, state, Vec::new());
    let interfaces = vec![("interface".into(), interface)];
    let interfaces = Node::container("Its core ports and sub-interfaces.", interfaces);
    let instance = list(
        "A network instance (VRF).",
        "name",
        "Name of the network instance.",
        vec![leaf("type", "DEFAULT_INSTANCE or L3VRF.")],
        vec![("interfaces".into(), interfaces)],
    );
    // the version whose names these are
    let module = ("openconfig-network-instance", "2.0.0");
    model(
        module,
        NETWORK_INSTANCES.top,
        ("network-instance", instance),
    )
}

fn network_instances(configuration: &Value) -> Value {
    let interfaces = interfaces(configuration);
    let names = entries(&configuration["network-instances"]).map(|one| text(one, "name"));
    let names: BTreeSet<&str> = names.chain([DEFAULT]).collect();
    let instance = |name: &str| {
        // types are identities of this module, which their values name (RFC 7951 section 6.8)
        let of_type = match name {
            DEFAULT => "openconfig-network-instance-types:DEFAULT_INSTANCE",
            _ => "openconfig-network-instance-types:L3VRF",
        };
        let mut instance = json!({"name": name, "state": {"name": name, "type": of_type}});
        let own = interfaces.iter().filter(|(of, _)| *of == name);
        let own: Vec<&Value> = own.map(|(_, interface)| interface).collect();
        if !own.is_empty() {
            instance["interfaces"] = json!({"interface": own});
        }
        instance
    };
    let instances: Vec<Value> = names.into_iter().map(instance).collect();
    json!({"network-instance": instances})
}

/// Core ports and sub-interfaces, each with its network instance.
fn interfaces(configuration: &Value) -> Vec<(&str, Value)> {
    let mut all = Vec::new();
    for user_plane in entries(&configuration["user-planes"]) {
        let node = text(user_plane, "name");
        for port in entries(&user_plane["ports"]).filter(|port| port["role"] == "core") {
            let interface = port_name(node, text(port, "name"));
            let own = json!({"id": interface, "interface": interface});
            all.push((instance_of(port), own));
            for below in entries(&port["subinterfaces"]) {
                let id = port_name(node, text(below, "name"));
                let vlan = &below["vlan-id"];
                let own = json!({"id": id, "interface": interface, "subinterface": vlan});
                all.push((instance_of(below), own));
            }
        }
    }
    let shaped =
        |(instance, state): (_, Value)| (instance, json!({"id": state["id"], "state": state}));
    all.into_iter().map(shaped).collect()
}

fn instance_of(port: &Value) -> &str {
    port["network-instance"].as_str().unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_ports_and_sub_interfaces_belong_to_instances() {
        let made = network_instances(&json!({
            "network-instances": [{"name": "voice"}],
            "user-planes": [{"name": "up1", "ports": [
                {"name": "access0", "role": "access"},
                {"name": "core0", "role": "core", "subinterfaces": [
                    {"name": "v300", "vlan-id": 300, "network-instance": "voice"},
                ]},
            ]}],
        }));
        let voice = json!({"id": "up1/v300", "interface": "up1/core0", "subinterface": 300});
        let default = json!({"id": "up1/core0", "interface": "up1/core0"});
        for (number, name, of_type, state) in [
            (0, "default", "DEFAULT_INSTANCE", default),
            (1, "voice", "L3VRF", voice),
        ] {
            let instance = &made["network-instance"][number];
            assert_eq!(instance["name"], name);
            assert!(text(&instance["state"], "type").ends_with(&format!(":{of_type}")));
            let interfaces = json!([{"id": state["id"], "state": state}]);
            assert_eq!(instance["interfaces"]["interface"], interfaces);
        }
    }
}
