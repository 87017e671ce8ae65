//! OpenConfig's `interfaces`, as far as the table of ports has it.

use crate::model::{Kind, Model, Node, Parts, Type};
use serde_json::{Map, Value, json};

/// The table that it is made of.
pub const TABLE: &northbound::catalogue::Table = &northbound::catalogue::PORTS;
/// Counters with the columns that they are.
const COUNTERS: [(&str, &str); 6] = [
    ("in-pkts", "rx_packets"),
    ("in-octets", "rx_octets"),
    ("in-discards", "rx_lost"),
    ("out-pkts", "tx_packets"),
    ("out-octets", "tx_octets"),
    ("out-discards", "tx_dropped"),
];

/// The model. Its version is the one of `openconfig-interfaces` whose names these are.
pub fn interfaces() -> Model {
    let leaf = |name: &str, about: &str| (name.to_owned(), Node::leaf(about, Type::Text));
    let counters = COUNTERS.map(|(name, column)| {
        let node = Node::leaf(format!("Column `{column}` of ports."), Type::Counter);
        (name.to_owned(), node)
    });
    let counters = Node::container("Counters.", counters.into());
    let state: Parts = vec![
        leaf(
            "name",
            "User plane and logical port, with a / between them.",
        ),
        leaf("oper-status", "UP or DOWN."),
        ("counters".into(), counters),
    ];
    let interface = Node {
        about: "A port.".into(),
        kind: Kind::List {
            keys: vec!["name".into()],
            parts: vec![
                leaf("name", "User plane and logical port."),
                ("state".into(), Node::container("State.", state)),
            ],
            of_values: false,
        },
    };
    Model {
        name: "openconfig-interfaces",
        organization: "OpenConfig working group",
        version: "3.0.0",
        top: "interfaces",
        node: Node::container("Ports.", vec![("interface".into(), interface)]),
        is_configuration: false,
    }
}

/// The interfaces of rows of the table.
pub fn of_ports(rows: &[Value]) -> Value {
    let interface = |row: &Value| {
        let text = |column: &str| row[column].as_str().unwrap_or_default();
        let name = format!("{}/{}", text("user_plane"), text("name"));
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
    };
    let interfaces: Vec<Value> = rows.iter().map(interface).collect();
    json!({"interface": interfaces})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_an_interface() {
        let row = json!({"user_plane": "up1", "name": "core0", "link_up": true, "rx_octets": 1500});
        let interfaces = of_ports(&[row]);
        let interface = &interfaces["interface"][0];
        assert_eq!(interface["name"], "up1/core0");
        assert_eq!(interface["state"]["oper-status"], "UP");
        assert_eq!(interface["state"]["counters"]["in-octets"], 1500);
        assert_eq!(interface["state"]["counters"]["out-discards"], 0);
        for (_, column) in COUNTERS {
            assert!(TABLE.columns.iter().any(|c| c.field == column), "{column}");
        }
    }
}
