//! OpenConfig's `platform`: the daemons and the ports. A worker is a thread and no CPU, and no table knows the machines.

use super::{OpenConfig, Origin, leaf, list, model, port_name, rows, text};
use crate::model::{Model, Node};
use northbound::catalogue::{ASSOCIATIONS, PORTS};
use serde_json::{Value, json};

/// Types and states of components are identities of this module, which their values name (RFC 7951 section 6.8).
const TYPES: &str = "openconfig-platform-types";

/// Daemons, and ports with their user planes as parents.
pub const COMPONENTS: OpenConfig = OpenConfig {
    top: "components",
    origins: &[Origin::Table(&ASSOCIATIONS), Origin::Table(&PORTS)],
    make: components,
    tells_changes: true,
    model: nodes,
};

fn nodes() -> Model {
    let state = vec![
        leaf("type", "SOFTWARE_MODULE or PORT."),
        leaf(
            "oper-status",
            "ACTIVE: a user plane is associated and answers, a port's link is up, another daemon runs. Otherwise INACTIVE.",
        ),
        leaf("software-version", "Version of `sluice-web`."),
        leaf("parent", "User plane of a port."),
    ];
    let about = "Name of the port, as a component.";
    let subcomponent = list("A port.", "name", about, Vec::new(), Vec::new());
    let subcomponents = vec![("subcomponent".into(), subcomponent)];
    let subcomponents = Node::container("Ports of a user plane.", subcomponents);
    let name = "`control-plane`, `sluice-web`, a user plane's node id, or a user plane and a port with a / between them.";
    let more = vec![("subcomponents".into(), subcomponents)];
    let component = list("A daemon or port.", "name", name, state, more);
    // the version whose names these are
    let module = ("openconfig-platform", "0.14.0");
    model(module, COMPONENTS.top, ("component", component))
}

fn components(origins: &[&Value]) -> Value {
    let ports: Vec<&Value> = rows(origins[1], &PORTS).collect();
    // whoever reads this has heard from both
    let mut all = vec![
        component("control-plane", "SOFTWARE_MODULE", true),
        component("sluice-web", "SOFTWARE_MODULE", true),
    ];
    all[1]["state"]["software-version"] = env!("CARGO_PKG_VERSION").into();
    for association in rows(origins[0], &ASSOCIATIONS) {
        let node = text(association, "node_id");
        let own = ports.iter().filter(|port| text(port, "user_plane") == node);
        let own = own.map(|port| port_name(node, text(port, "name")));
        let own = own.map(|name| json!({"name": name, "state": {"name": name}}));
        let own: Vec<Value> = own.collect();
        let is_up = text(association, "state") == "up";
        let mut user_plane = component(node, "SOFTWARE_MODULE", is_up);
        if !own.is_empty() {
            user_plane["subcomponents"] = json!({"subcomponent": own});
        }
        all.push(user_plane);
    }
    all.extend(ports.into_iter().map(|port| {
        let node = text(port, "user_plane");
        let name = port_name(node, text(port, "name"));
        let mut component = component(&name, "PORT", port["link_up"] == true);
        component["state"]["parent"] = node.into();
        component
    }));
    json!({"component": all})
}

fn component(name: &str, of_type: &str, is_active: bool) -> Value {
    let status = match is_active {
        true => "ACTIVE",
        false => "INACTIVE",
    };
    json!({
        "name": name,
        "state": {
            "name": name,
            "type": format!("{TYPES}:{of_type}"),
            "oper-status": format!("{TYPES}:{status}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_plane_has_its_ports_as_parts() {
        let associations = json!({"associations": [
            {"node_id": "up1", "state": "up"},
            {"node_id": "up2", "state": "lost"},
        ]});
        let ports = json!({"ports": [{"user_plane": "up1", "name": "core0", "link_up": false}]});
        let made = components(&[&associations, &ports]);
        let names = made["component"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|one| text(one, "name")).collect();
        let expected = ["control-plane", "sluice-web", "up1", "up2", "up1/core0"];
        assert_eq!(names, expected);
        let state = |number: usize, leaf: &str| made["component"][number]["state"][leaf].clone();
        assert_eq!(state(2, "oper-status"), "openconfig-platform-types:ACTIVE");
        assert_eq!(
            state(3, "oper-status"),
            "openconfig-platform-types:INACTIVE"
        );
        assert_eq!(
            state(4, "oper-status"),
            "openconfig-platform-types:INACTIVE"
        );
        assert_eq!(state(4, "type"), "openconfig-platform-types:PORT");
        assert_eq!(state(4, "parent"), "up1");
        let part = &made["component"][2]["subcomponents"]["subcomponent"][0];
        assert_eq!(part["state"]["name"], "up1/core0");
        assert!(made["component"][3].get("subcomponents").is_none());
    }
}
