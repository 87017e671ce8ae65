//! OpenConfig's `interfaces`, as far as the table of ports has it.

use super::{OpenConfig, Origin, leaf, list, model, port_name, rows, text};
use crate::model::{Model, Node, Type};
use northbound::catalogue::PORTS;
use serde_json::{Map, Value, json};

/// Counters with the columns that they are.
const COUNTERS: [(&str, &str); 6] = [
    ("in-pkts", "rx_packets"),
    ("in-octets", "rx_octets"),
    ("in-discards", "rx_lost"),
    ("out-pkts", "tx_packets"),
    ("out-octets", "tx_octets"),
    ("out-discards", "tx_dropped"),
];

/// Ports.
pub const INTERFACES: OpenConfig = OpenConfig {
    top: "interfaces",
    origins: &[Origin::Table(&PORTS)],
    make: |origins| {
        let interfaces: Vec<Value> = rows(origins[0], &PORTS).map(interface).collect();
        json!({"interface": interfaces})
    },
    tells_changes: false,
    model: nodes,
};

fn nodes() -> Model {
    let counters = COUNTERS.map(|(name, column)| {
        let node = Node::leaf(format!("Column `{column}` of ports."), Type::Counter);
        (name.to_owned(), node)
    });
    let counters = Node::container("Counters.", counters.into());
    let state = vec![
        leaf("oper-status", "UP or DOWN."),
        ("counters".into(), counters),
    ];
    let name = "User plane and logical port, with a / between them.";
    let interface = list("A port.", "name", name, state, Vec::new());
    // the version whose names these are
    let module = ("openconfig-interfaces", "3.0.0");
    model(module, INTERFACES.top, ("interface", interface))
}

fn interface(row: &Value) -> Value {
    let name = port_name(text(row, "user_plane"), text(row, "name"));
    let status = match row["link_up"] == true {
        true => "UP",
        false => "DOWN",
    };
    let counters = COUNTERS.iter().map(|(name, column)| {
        let count = row[*column].as_u64().unwrap_or_default();
        ((*name).to_owned(), count.into())
    });
    let counters: Map<String, Value> = counters.collect();
    json!({
        "name": name,
        "state": {"name": name, "oper-status": status, "counters": counters},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_an_interface() {
        let row = json!({"user_plane": "up1", "name": "core0", "link_up": true, "rx_octets": 1500});
        let interfaces = (INTERFACES.make)(&[&json!({"ports": [row]})]);
        let interface = &interfaces["interface"][0];
        assert_eq!(interface["name"], "up1/core0");
        assert_eq!(interface["state"]["oper-status"], "UP");
        assert_eq!(interface["state"]["counters"]["in-octets"], 1500);
        assert_eq!(interface["state"]["counters"]["out-discards"], 0);
        for (_, column) in COUNTERS {
            assert!(PORTS.columns.iter().any(|c| c.field == column), "{column}");
        }
    }
}
