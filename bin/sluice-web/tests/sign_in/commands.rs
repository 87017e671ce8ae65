//! Commands about users and links.

use super::{Browser, PASSWORD, add, run};
use crate::{Web, program};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn commands_say_who_there_is_and_what_is_wrong() {
    let web = Web::start();
    add(&web, "alice", "view");
    add(&web, "bob", "configure");
    let listed = run(&web, &["user", "list"], "").unwrap();
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][..2], ["alice", "view"]);
    assert_eq!(lines[1][..2], ["bob", "configure"]);
    for (words, input, says) in [
        (
            &["user", "add", "carol", "--role", "view"][..],
            "elevenchars",
            "at least 12",
        ),
        (
            &["user", "add", "carol", "--role", "view"],
            "",
            "the input is empty",
        ),
        (
            &["user", "add", "a b", "--role", "view"],
            PASSWORD,
            "no name",
        ),
        (
            &["user", "add", "alice", "--role", "view"],
            PASSWORD,
            "a user `alice` already",
        ),
        (&["user", "add", "carol"], PASSWORD, "--role"),
        (&["user", "password", "carol"], PASSWORD, "user list"),
        (
            &["user", "role", "carol", "--role", "view"],
            "",
            "user list",
        ),
        (&["user", "remove", "carol"], "", "user list"),
        (&["link", "--role", "view"], "", "--at ADDRESS:PORT"),
        (
            &["link", "--role", "view", "--at", "evil.example:1"],
            "",
            "`hosts`",
        ),
        (
            &["link", "--role", "view", "--minutes", "0"],
            "",
            "0 is not in 1..=1440",
        ),
    ] {
        let said = run(&web, words, input).unwrap_err();
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(
            !said.contains("elevenchars") && !said.contains(PASSWORD),
            "{said}"
        );
    }
    let file = web.folder().join("web/users.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("$argon2id$") && !text.contains(PASSWORD),
        "{text}"
    );
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// `script` gives the program a terminal.
#[test]
fn on_a_terminal_a_password_is_asked_twice_and_not_shown() {
    let web = Web::start();
    let words = ["user", "add", "alice", "--role", "view"];
    let program = program(&web.folder(), &words);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let line: Vec<_> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let typed = |lines: &[&str]| {
        let mut script = std::process::Command::new("script");
        script.args([
            "--quiet",
            "--return",
            "--echo",
            "never",
            "--command",
            &line.join(" "),
        ]);
        script
            .arg("/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut script = script
            .spawn()
            .expect("script, of Debian's package bsdutils");
        let (mut input, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let (mut seen, mut prompts) = (Vec::new(), 0);
        let mut octet = [0];
        while std::io::Read::read(&mut output, &mut octet).unwrap() == 1 {
            seen.push(octet[0]);
            // a line is typed once it is asked for
            if seen.ends_with(b": ") && prompts < lines.len() {
                writeln!(input, "{}", lines[prompts]).unwrap();
                prompts += 1;
            }
        }
        let well = script.wait().unwrap().success();
        (well, String::from_utf8_lossy(&seen).into_owned())
    };
    let (well, seen) = typed(&[PASSWORD, "another horse battery"]);
    assert!(!well && seen.contains("the two differ"), "{seen}");
    let (well, seen) = typed(&[PASSWORD, PASSWORD]);
    assert!(well, "{seen}");
    assert_eq!(seen.matches(": ").count(), 2, "{seen}");
    assert!(!seen.contains(PASSWORD), "{seen}");
    Browser::signed_in(&web, "alice");
}
