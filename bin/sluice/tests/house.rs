//! The table of rooms in ARCHITECTURE.md is the one that Cargo builds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Which rooms each room uses, by folder and crate.
type House = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the root of the repository")
}

/// The dependencies of every crate on others of the workspace, without those of tests and build scripts.
fn built() -> House {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root());
    cargo.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let metadata = cargo.output().expect("cargo runs").stdout;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let names: BTreeSet<String> = packages.iter().map(|p| text(&p["name"])).collect();
    let room = |package: &serde_json::Value| {
        let manifest = text(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().expect("a folder");
        let folder = folder.strip_prefix(root()).expect("a crate of ours");
        let uses = package["dependencies"].as_array().expect("a list").iter();
        let uses = uses
            .filter(|d| d["kind"].is_null())
            .map(|d| text(&d["name"]));
        let uses = uses.filter(|name| names.contains(name)).collect();
        (folder.to_str().expect("a name").to_owned(), uses)
    };
    packages.iter().map(room).collect()
}

/// The rows of the table: a folder, what lives there, and what it uses.
fn written() -> House {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let quoted = |cell: &str| -> Vec<String> {
        let parts = cell.split('`').skip(1).step_by(2);
        parts.map(str::to_owned).collect()
    };
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| room |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let room = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let uses = cells.last().expect("a cell");
        (
            quoted(cells[0]).remove(0),
            quoted(uses).into_iter().collect(),
        )
    };
    rows.map(room).collect()
}

#[test]
fn rooms_use_what_the_table_says() {
    let (built, written) = (built(), written());
    assert!(built.len() > 15, "{built:?}");
    for (folder, uses) in &built {
        assert_eq!(
            written.get(folder),
            Some(uses),
            "`{folder}` in ARCHITECTURE.md"
        );
    }
    assert_eq!(written.len(), built.len(), "rooms that are no crates");
}
