//! What the daemon says and how it ends when it cannot start.

use std::process::{Command, Output};

const START: &str = "node-id: up1
address: 127.0.0.1
control-planes: [127.0.0.2]
api-socket: DIRECTORY/up.sock
state: DIRECTORY/state
memory: 64
initial-configuration: document.yaml
";
const DOCUMENT: &str = "ports:
  access0: {role: access, device: 'net_af_packet0,iface=absent0'}
  core0: {role: core, device: 'net_af_packet1,iface=absent1', tap: sl-cli-core0}
network-instances:
  default: {interface: sl-cli-default, gateway: [100.64.0.1]}
";

fn replace(text: &str, from: &str, to: &str) -> String {
    match from {
        "" => text.into(),
        from => text.replace(from, to),
    }
}

/// What the daemon says of both files with something replaced.
fn run(from: &str, to: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("up.yaml");
    let start = replace(START, from, to);
    let start = start.replace("DIRECTORY", directory.path().to_str().unwrap());
    std::fs::write(&file, start).unwrap();
    let document = replace(DOCUMENT, from, to);
    std::fs::write(directory.path().join("document.yaml"), document).unwrap();
    let daemon = Command::new(env!("CARGO_BIN_EXE_sluice-up"))
        .arg(&file)
        .args(arguments)
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = daemon.unwrap();
    let said = [stdout, stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (status.code(), said)
}

#[test]
fn a_good_configuration_passes_the_check() {
    let (code, said) = run("", "", &["--check"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_wrong_configuration_is_exit_code_2_with_file_line_and_expectation() {
    for (from, to, expected) in [
        (
            "control-planes: [127.0.0.2]",
            "control-planes: []",
            "`control-planes` names none",
        ),
        ("role: access", "role: acess", "document.yaml:2: "),
        ("default: {", "red: {", "expected"),
        (
            "address: 127.0.0.1",
            "address: 0.0.0.0",
            "expected an address of this machine",
        ),
    ] {
        let (code, said) = run(from, to, &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(".yaml") && said.contains(expected), "{said}");
    }
    let (code, said) = run("", "", &["--no-such-option"]);
    assert_eq!(code, Some(2), "{said}");
}

/// It is for the first start: what was brought since is in force.
#[test]
fn the_initial_document_may_go_once_another_was_brought() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("up.yaml");
    // Nothing can be made below a file: that far it gets.
    let socket = format!("{}/up.sock", file.display());
    let start = START.replace("DIRECTORY/up.sock", &socket);
    let start = start.replace("DIRECTORY", directory.path().to_str().unwrap());
    std::fs::write(&file, start).unwrap();
    let state = directory.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let run = |check: &[&str]| {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_sluice-up"));
        let output = daemon.arg(&file).args(check).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("document.yaml: cannot be read"), "{said}");
    std::fs::write(state.join("document"), "what was brought").unwrap();
    let (code, said) = run(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(!said.contains("document.yaml"), "{said}");
    let (code, said) = run(&["--check"]);
    assert_eq!(code, Some(2), "{said}");
}

/// Needs root for DPDK: without it the daemon fails for another reason.
#[test]
fn a_port_that_does_not_exist_is_named_and_nothing_is_left() {
    let (code, said) = run("", "", &[]);
    assert_eq!(code, Some(1), "{said}");
    let links = Command::new("ip").args(["link", "show"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&links.stdout).contains("sl-cli"));
    assert!(said.contains("absent0"), "needs root (`make unit`): {said}");
}

#[test]
fn the_help_and_the_man_pages_name_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_sluice-up"));
        let output = program.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let help = run(&["--help"]);
    assert!(
        help.contains("\n  check ") && help.contains("<START>"),
        "{help}"
    );
    run(&["man", directory.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(directory.path().join("sluice-up-check.1")).unwrap();
    assert!(
        page.contains("COUNTERS") && page.contains("pcapng"),
        "{page}"
    );
}

#[test]
fn the_machine_is_looked_at_for_a_start_file_or_for_the_defaults() {
    let subjects = |said: &str| {
        let json = &said[..said.rfind(']').unwrap() + 1];
        let all: Vec<serde_json::Value> = serde_json::from_str(json).unwrap();
        let mend = all.iter().any(|finding| !finding["mend"].is_null());
        let names = all
            .iter()
            .map(|finding| finding["subject"].as_str().unwrap().to_owned());
        (mend, names.take(5).collect::<Vec<_>>())
    };
    let check = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_sluice-up"));
        let output = program
            .args(["check", "--host"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = check(&["--json"]);
    let (mend, names) = subjects(&said);
    assert_eq!(code, Some(i32::from(mend)), "{said}");
    let all = [
        "huge pages",
        "worker cores",
        "isolation",
        "NUMA",
        "clock source",
    ];
    assert_eq!(names, all);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("up.yaml");
    std::fs::write(
        &file,
        START.replace("memory: 64", "memory: 64\nhuge-pages: false"),
    )
    .unwrap();
    let (_, said) = check(&[file.to_str().unwrap()]);
    assert!(
        said.contains("huge pages          ok    not used"),
        "{said}"
    );
    std::fs::write(&file, START.replace("memory: 64", "memory: 1")).unwrap();
    assert_eq!(check(&[file.to_str().unwrap()]).0, Some(2));
    let mut program = Command::new(env!("CARGO_BIN_EXE_sluice-up"));
    let output = program.args(["check", "conf.yaml"]).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "a capture needs all four files"
    );
}
