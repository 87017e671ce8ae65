//! The last document survives whatever ends the user plane, and is not taken for what it is not.

use mi::{Document, Keep, Kept, KeptError};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn document(generation: u64) -> Document {
    // of another length each time, and over several pages
    let ports = "\"access0\", ".repeat(1000 + generation as usize % 7 * 100);
    Document::new(generation, format!("{{\"ports\": [{ports}\"core0\"]}}"))
}

fn store(kept: &Kept, document: &Document) {
    kept.begin(document).unwrap();
    kept.finish().unwrap();
}

fn kept(folder: &Path) -> Option<Document> {
    Kept::open(folder).unwrap().document().unwrap()
}

#[test]
fn a_death_between_any_two_steps_leaves_the_old_one_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("up/state");
    assert_eq!(kept(&folder), None, "nothing yet");
    let (old, new) = (document(1), document(2));
    store(&Kept::open(&folder).unwrap(), &old);
    assert_eq!(kept(&folder).as_ref(), Some(&old));

    // it died while it wrote the new one: at any octet, or before any
    let next = folder.join("document.next");
    Kept::open(&folder).unwrap().begin(&new).unwrap();
    let whole = fs::read(&next).unwrap();
    for length in [0, 1, 20, 100, whole.len() / 2, whole.len() - 1, whole.len()] {
        fs::write(&next, &whole[..length]).unwrap();
        assert_eq!(kept(&folder).as_ref(), Some(&old), "{length} octets of it");
        assert!(!next.exists(), "cleared away");
    }
    // it died after the new one had taken its name
    let again = Kept::open(&folder).unwrap();
    again.begin(&new).unwrap();
    fs::rename(&next, folder.join("document")).unwrap();
    assert_eq!(kept(&folder), Some(new));
}

#[test]
fn one_that_was_given_up_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Kept::open(dir.path()).unwrap();
    store(&kept, &document(1));
    kept.begin(&document(2)).unwrap();
    kept.give_up().unwrap();
    kept.finish().unwrap_err();
    assert_eq!(kept.document().unwrap(), Some(document(1)));
}

#[test]
fn any_damage_is_noticed_and_the_next_document_heals_it() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Kept::open(dir.path()).unwrap();
    let good = Document::new(17, "{\"ports\": {\"access0\": {}}}".into());
    store(&kept, &good);
    let file = dir.path().join("document");
    let whole = fs::read(&file).unwrap();
    let refused = |octets: &[u8]| {
        fs::write(&file, octets).unwrap();
        match kept.document() {
            Err(error @ KeptError::Damaged { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    for place in 0..whole.len() {
        for change in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[place] ^= change;
            refused(&damaged);
        }
        refused(&whole[..place]);
    }
    refused(&[&whole[..], b" "].concat());
    let told = refused(b"");
    assert!(
        told.contains("document") && told.contains("control plane sends"),
        "{told}"
    );

    store(&kept, &document(18));
    assert_eq!(kept.document().unwrap(), Some(document(18)));
}

/// Where the child writes.
const FOLDER: &str = "SLUICE_TEST_KEPT";

/// A process that keeps one document after the other is killed again and again: whatever it had acknowledged is there, or
/// the one after it. The child is this test itself.
#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    if let Ok(folder) = std::env::var(FOLDER) {
        let kept = Kept::open(Path::new(&folder)).unwrap();
        let first = kept.document().unwrap().map_or(0, |last| last.generation);
        for generation in first + 1.. {
            store(&kept, &document(generation));
            println!("kept {generation}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "what_was_acknowledged_is_there_after_a_kill",
                "--nocapture",
            ])
            .env(FOLDER, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = || {
            let line = said.find_map(|line| line.ok()?.strip_prefix("kept ")?.parse().ok());
            line.inspect(|generation: &u64| last = last.max(*generation))
        };
        acknowledged().expect("a document");
        std::thread::sleep(Duration::from_micros(round * 137));
        child.kill().unwrap();
        child.wait().unwrap();
        while acknowledged().is_some() {}
        let there = kept(dir.path()).unwrap();
        assert_eq!(there, document(there.generation), "whole");
        assert!(
            [last, last + 1].contains(&there.generation),
            "{last}: {}",
            there.generation
        );
        last = there.generation;
    }
    println!("{last} documents were kept in 30 lives");
}
