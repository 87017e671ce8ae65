//! What the daemon says and how it ends when it cannot start.

use config::history::History;
use std::path::Path;
use std::process::Command;

fn run(file: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_sluice-cp"));
    let output = daemon.arg(file).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// It is for the first start: the versions since are what counts.
#[test]
fn the_initial_configuration_may_go_once_there_is_a_version() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().display();
    let file = directory.path().join("cp.yaml");
    // Nothing can be made below a file: that far it gets.
    let start = format!(
        "node-id: cp1\naddress: 127.0.0.1\napi-socket: {folder}/cp.yaml/cp.sock\nstate: {folder}/state\n\
         initial-configuration: sluice.yaml\n"
    );
    std::fs::write(&file, start).unwrap();
    let (code, said) = run(&file, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("sluice.yaml: cannot be read"), "{said}");

    let configuration = directory.path().join("state/configuration");
    let mut history = History::open(&configuration).unwrap();
    let first = config::check::read("logging: {level: debug}\n").unwrap();
    history.commit(first, 0, "test", "", None).unwrap();
    let (code, said) = run(&file, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(!said.contains("sluice.yaml"), "{said}");
    let (code, said) = run(&file, &["--check"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_dictionary_that_cannot_be_understood_is_named_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cp.yaml");
    let start = "node-id: cp1\naddress: 127.0.0.1\ninitial-configuration: sluice.yaml\ndictionaries: [acme]\n";
    std::fs::write(&file, start).unwrap();
    let mapping =
        "aaa: {mappings: {acme: {attribute: Acme-Down, setting: rate-down, unit: kbit/s}}}\n";
    std::fs::write(directory.path().join("sluice.yaml"), mapping).unwrap();
    let check = || run(&file, &["--check"]);
    let (code, said) = check();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("acme: the file cannot be read: "), "{said}");

    let acme = directory.path().join("acme");
    std::fs::write(&acme, "VENDOR Acme 32473\nATTRIBUTE Acme-Down 1\n").unwrap();
    let (code, said) = check();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("acme:2: `ATTRIBUTE Acme-Down 1`: expected "),
        "{said}"
    );

    std::fs::write(&acme, "VENDOR Acme 32473\n").unwrap();
    let (code, said) = check();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no dictionary has the attribute `Acme-Down`"),
        "{said}"
    );

    std::fs::write(
        &acme,
        "VENDOR Acme 32473\nATTRIBUTE Acme-Down 1 integer Acme\n",
    )
    .unwrap();
    let (code, said) = check();
    assert_eq!(code, Some(0), "{said}");
}
