//! The diagram of the graph in ARCHITECTURE.md is drawn from its edges: `UPDATE=1` draws it anew.
use dataplane::{Edge, Node};
use std::fmt::Write;

const BEGIN: &str = "<!-- the graph: drawn by crates/dataplane/tests/diagram.rs -->\n";
const END: &str = "<!-- the end of the graph -->\n";

/// What Mermaid knows a node by.
fn id(node: Node) -> String {
    node.name().replace('-', "_")
}

fn diagram() -> String {
    let mut out = String::from("\n```mermaid\nflowchart LR\n");
    for &node in Node::ALL {
        // where packets come in and go out is round
        let inner = |way: fn(Edge) -> Node| Edge::ALL.iter().any(|&edge| way(edge) == node);
        let (open, close) = match inner(Edge::to) && inner(Edge::from) {
            true => ("[", "]"),
            false => ("([", "])"),
        };
        writeln!(out, "    {}{open}{}{close}", id(node), node.name()).unwrap();
    }
    for (n, edge) in Edge::ALL.iter().enumerate() {
        let same = |other: &&Edge| (other.from(), other.to()) == (edge.from(), edge.to());
        if Edge::ALL[..n].iter().any(|other| same(&other)) {
            continue;
        }
        let labels: Vec<_> = Edge::ALL.iter().filter(same).map(|e| e.label()).collect();
        let (from, to) = (id(edge.from()), id(edge.to()));
        writeln!(out, "    {from} -->|\"{}\"| {to}", labels.join(", ")).unwrap();
    }
    out.push_str("```\n\n| node | drops |\n|---|---|\n");
    for node in Node::ALL {
        let drops: Vec<_> = node.drops().map(|drop| drop.name()).collect();
        if !drops.is_empty() {
            writeln!(out, "| {} | {} |", node.name(), drops.join(", ")).unwrap();
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_diagram_is_that_of_the_graph() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("where it begins");
    let (drawn, after) = rest.split_once(END).expect("where it ends");
    let diagram = diagram();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, [before, BEGIN, &diagram, END, after].concat()).unwrap();
        return;
    }
    assert!(
        drawn == diagram,
        "the graph in ARCHITECTURE.md is not that of the code: run `UPDATE=1 cargo test -p dataplane --test diagram`"
    );
}
