//! What the command line writes for others: bash completes with it, groff sets it.

use std::process::{Command, Output};

fn run(command: &mut Command) -> Output {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    done
}

fn sluice(words: &[&str]) -> Output {
    run(Command::new(env!("CARGO_BIN_EXE_sluice")).args(words))
}

#[test]
fn bash_completes_commands() {
    let written = String::from_utf8(sluice(&["completions", "bash"]).stdout).unwrap();
    let script = written
        + "\nCOMP_WORDS=(sluice show user); COMP_CWORD=2; _sluice sluice user show; echo \"${COMPREPLY[@]}\"";
    // an argument has at most 128 KiB
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completions");
    std::fs::write(&path, script).unwrap();
    let done = run(Command::new("bash").arg(path));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "user-planes\n");
}

#[test]
fn a_password_from_a_pipe_is_hashed() {
    let script = format!(
        "echo wonderland | {} hash-password",
        env!("CARGO_BIN_EXE_sluice")
    );
    let done = run(Command::new("bash").args(["-c", &script]));
    let hash = String::from_utf8(done.stdout).unwrap();
    assert_eq!(config::password::check(hash.trim_end()), Ok(()));
    assert!(config::password::verify(hash.trim_end(), b"wonderland"));
}

#[test]
fn every_command_has_a_page_that_groff_sets_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    sluice(&["man", folder.path().to_str().unwrap()]);
    let pages: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    for page in ["sluice", "sluice-configure", "sluice-show-user-planes"] {
        let path = folder.path().join(format!("{page}.1"));
        assert!(path.exists(), "no page for {page} among {pages:?}");
    }
    for page in pages {
        let path = page.unwrap().path();
        let done = run(Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(&path));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.is_empty(), "{}: {said}", path.display());
    }
}
