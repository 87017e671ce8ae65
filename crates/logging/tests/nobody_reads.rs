//! A daemon whose log nobody reads: it goes on, and says later what is missing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lines that are more than wait, and more than a pipe has room for.
const LINES: usize = 6_000;

/// Logs from many places, as each may log 100 lines a second.
macro_rules! log_at {
    ($text:expr; $($place:literal)*) => {
        $(for _ in 0..100 { tracing::error!(place = $place, "{}", $text); })*
    };
}

/// Runs in a process of its own: what it prints to standard output says how far it is.
#[test]
#[ignore = "a part of a_daemon_goes_on_and_says_what_is_missing, in a process of its own"]
fn logs_as_much_as_it_can() {
    let (_set_level, written) = logging::start();
    let text = "x".repeat(80);
    let begun = Instant::now();
    for _ in 0..LINES / 1000 {
        log_at!(text; 0 1 2 3 4 5 6 7 8 9);
        // the next second, in which each place may log again
        let passed = begun.elapsed().subsec_nanos();
        std::thread::sleep(Duration::from_nanos(u64::from(1_000_000_000 - passed)));
    }
    println!("it went on for {:?}", begun.elapsed());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    tracing::error!("somebody reads again");
    drop(written);
    println!("the end");
}

#[test]
fn a_daemon_goes_on_and_says_what_is_missing() {
    // one that stands still is ended
    let mut daemon = Command::new("timeout");
    daemon
        .arg("60")
        .arg(std::env::current_exe().unwrap())
        .args(["logs_as_much_as_it_can", "--exact", "--ignored"])
        .arg("--nocapture")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut daemon = daemon.spawn().unwrap();
    let mut said = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let mut wait_for = |text: &str| {
        let mut said = said.by_ref().map(Result::unwrap);
        assert!(said.any(|line| line.contains(text)), "no line {text}");
    };
    // nobody reads its log until then
    wait_for("it went on for");
    let mut log = daemon.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    std::thread::sleep(Duration::from_millis(500));
    drop(daemon.stdin.take());
    wait_for("the end");
    assert!(daemon.wait().unwrap().success());

    let log = reader.join().unwrap();
    let written = log.lines().filter(|line| line.contains("xxxx")).count();
    assert!((1..LINES).contains(&written), "{written} lines");
    let missing = log
        .lines()
        .find_map(|line| line.split_once(" lines are missing"));
    let missing: usize = missing.expect("it says so").0.parse().unwrap();
    assert_eq!(written + missing, LINES);
    let last = log.lines().last().unwrap();
    assert!(last.contains("somebody reads again"), "{last}");
}
