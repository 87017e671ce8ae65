//! The cases of the packet path: folders of `cases`. What each of them is, `CONTRIBUTING.md` says.
//!
//! `sluice-up check` has to give the kept `out.pcapng` and `counters` for `conf.yaml` and `in.pcapng`, which is what
//! `in.txt` says; `UPDATE=1` keeps what there is now. `EXPECT` was written by hand, and tshark has to agree with it.

mod expect;
mod frames;

use dataplane::{Edge, Node, PuntKind};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folders() -> Vec<PathBuf> {
    let all = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")).unwrap();
    let mut all: Vec<_> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// The plainest of them.
fn uplink() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/uplink")
}

/// Runs a check.
fn check(conf: &Path, input: &Path, out: &Path, counters: &Path) -> Output {
    let mut check = Command::new(env!("CARGO_BIN_EXE_sluice-up"));
    check.arg("check").args([conf, input, out, counters]);
    check.output().unwrap()
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

/// Compares a kept file with what it should be, or keeps that.
fn agrees(file: &Path, now: &[u8]) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, now).unwrap();
    }
    assert!(
        fs::read(file).unwrap_or_default() == now,
        "{} is not what it was: if that is right, run `UPDATE=1 cargo test -p sluice-up --test cases`",
        file.display()
    );
}

#[test]
fn every_case_comes_out_as_it_did_and_as_it_has_to() {
    for folder in folders() {
        let name = folder.file_name().unwrap().display().to_string();
        let text = fs::read_to_string(folder.join("in.txt")).unwrap();
        let input = frames::capture(&text).unwrap_or_else(|why| panic!("{name}/in.txt: {why}"));
        agrees(&folder.join("in.pcapng"), &input);

        let results = tempfile::tempdir().unwrap();
        let [out, counters] = ["out.pcapng", "counters"].map(|file| results.path().join(file));
        let (conf, input) = (folder.join("conf.yaml"), folder.join("in.pcapng"));
        let output = check(&conf, &input, &out, &counters);
        assert!(output.status.success(), "{name}: {}", said(&output));

        expect::judge(&name, &folder.join("EXPECT"), &said(&output), &out);
        agrees(&folder.join("out.pcapng"), &fs::read(&out).unwrap());
        agrees(&folder.join("counters"), &fs::read(&counters).unwrap());
    }
}

#[test]
fn every_edge_drop_and_punt_of_the_graph_has_a_case() {
    let counters = folders().into_iter().map(|folder| folder.join("counters"));
    let counters: String = counters
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let names = counters
        .lines()
        .map(|line| line.rsplit_once(": ").unwrap().0);
    let of_graph = |name: &&str| name.starts_with("edge ") || name.starts_with("drop ");
    let taken: BTreeSet<_> = names.filter(of_graph).map(str::to_owned).collect();
    let edges = Edge::ALL.iter().map(|edge| {
        let (from, to) = (edge.from().name(), edge.to().name());
        format!("edge {from} > {to} ({})", edge.label())
    });
    let drops = Node::ALL.iter().flat_map(|node| {
        let drops = node.drops();
        drops.map(move |drop| format!("drop {} {}", node.name(), drop.name()))
    });
    let all: BTreeSet<_> = edges.chain(drops).collect();
    let missing: Vec<_> = all.difference(&taken).collect();
    assert!(missing.is_empty(), "in no case: {missing:#?}");
    for class in PuntKind::ALL {
        let one = [
            format!("punt {}: ", class.name),
            format!("copies {}: ", class.name),
        ];
        assert!(
            one.iter().any(|one| counters.contains(one)),
            "in no case: {one:?}"
        );
    }
    let unknown: Vec<_> = taken.difference(&all).collect();
    assert!(unknown.is_empty(), "the graph does not name: {unknown:#?}");
}

/// What a check says that is given the case `uplink` with something replaced in `conf.yaml`.
fn with_conf(from: &str, to: &str) -> (Option<i32>, String) {
    let folder = uplink();
    let results = tempfile::tempdir().unwrap();
    let conf = fs::read_to_string(folder.join("conf.yaml")).unwrap();
    assert!(conf.contains(from));
    let file = results.path().join("conf.yaml");
    fs::write(&file, conf.replacen(from, to, 1)).unwrap();
    let [out, counters] = ["out.pcapng", "counters"].map(|file| results.path().join(file));
    let output = check(&file, &folder.join("in.pcapng"), &out, &counters);
    (output.status.code(), said(&output))
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (from, to, expected) in [
        (
            "role: access",
            "role: access\n    speed: 10",
            "conf.yaml:6: ",
        ),
        (
            "port: core0",
            "port: core9",
            "adjacencies router: there is no core port or subinterface `core9`",
        ),
        (
            "adjacency router",
            "adjacency ruoter",
            "there is no adjacency `ruoter`",
        ),
        (
            "adjacency router",
            "router",
            "`router` is no destination: expected `adjacency NAME`",
        ),
        (
            "  access0:",
            "  access7:",
            "there is no access port `access0`",
        ),
    ] {
        let (code, said) = with_conf(from, to);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_capture_without_names_comes_in_by_the_port_that_is_named() {
    let folder = uplink();
    let results = tempfile::tempdir().unwrap();
    let [pcap, file, out, counters] =
        ["in.pcap", "conf.yaml", "out", "counters"].map(|file| results.path().join(file));
    // A classic pcap, as tcpdump writes it.
    let frame = [0u8; 60];
    let words = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1, 7, 0, 60, 60];
    let mut octets: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
    octets.extend(frame);
    fs::write(&pcap, &octets).unwrap();
    let conf = fs::read_to_string(folder.join("conf.yaml")).unwrap();
    fs::write(&file, &conf).unwrap();
    let output = check(&file, &pcap, &out, &counters);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("`input` has to name the port"),
        "{}",
        said(&output)
    );
    fs::write(&file, conf + "input: access0\n").unwrap();
    let output = check(&file, &pcap, &out, &counters);
    assert_eq!(
        said(&output),
        "1: drop unexpected-type [access-rx > classify-access]\n"
    );
    // One that was cut is not taken for the whole.
    octets[36] = 61;
    fs::write(&pcap, &octets).unwrap();
    let output = check(&file, &pcap, &out, &counters);
    assert!(
        said(&output).contains("60 of 61 octets"),
        "{}",
        said(&output)
    );
}

/// As nobody, and without anything that only root may do.
#[test]
fn no_privilege_is_needed() {
    let folder = uplink();
    let results = tempfile::tempdir().unwrap();
    let program = results.path().join("sluice-up");
    fs::copy(env!("CARGO_BIN_EXE_sluice-up"), &program).unwrap();
    for file in ["conf.yaml", "in.pcapng"] {
        fs::copy(folder.join(file), results.path().join(file)).unwrap();
    }
    let mut check = Command::new(program);
    check.args(["check", "conf.yaml", "in.pcapng", "/dev/null", "/dev/null"]);
    check.current_dir(results.path());
    if nix::unistd::geteuid().is_root() {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(results.path(), open).unwrap();
        check.uid(65534).gid(65534);
    }
    let output = check.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
