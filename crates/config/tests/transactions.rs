//! Any sequence of edits, commits, rollbacks, locks, confirmations and crashes leaves what a simple model has.

use config::history::{History, HistoryError};
use config::transactions::{Author, Change, Refusal, Transactions};
use config::{Checked, Edit, check};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn open(folder: &Path) -> Transactions {
    Transactions::new(History::open(folder).unwrap())
}

fn author(lock: Option<u64>) -> Author {
    Author {
        name: "alice".into(),
        lock,
        at: 1_000,
    }
}

fn edits(lines: &[&str]) -> Vec<Edit> {
    lines
        .iter()
        .map(|line| Edit::parse(line).unwrap())
        .collect()
}

/// Commits edits onto the version in force.
fn put_in_force(
    transactions: &mut Transactions,
    candidate: Checked,
    comment: &str,
    confirm_by: Option<u64>,
) -> Result<u64, Refusal> {
    let (version, _) = transactions.commit(candidate, &author(None), comment, confirm_by)?;
    Ok(version)
}

fn commit(
    transactions: &mut Transactions,
    lines: &[&str],
    confirm_by: Option<u64>,
) -> Result<u64, Refusal> {
    let change = Change::Edits {
        base: transactions.version(),
        edits: edits(lines),
    };
    transactions.may_commit(&author(None), &change)?;
    let candidate = transactions.candidate(&change)?;
    put_in_force(transactions, candidate, "why not", confirm_by)
}

#[test]
fn versions_say_who_when_and_why_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = open(folder.path());
    assert_eq!(
        (transactions.version(), transactions.current()),
        (0, &Checked::default())
    );
    commit(&mut transactions, &["set limits half-open 5"], None).unwrap();
    commit(
        &mut transactions,
        &["set limits half-open 6", "set users a password x"],
        None,
    )
    .unwrap();
    let again = open(folder.path());
    assert_eq!(again.current(), transactions.current());
    let told: Vec<_> = again
        .history()
        .versions()
        .map(|v| (v.version, v.by.as_str(), v.comment.as_str(), v.at))
        .collect();
    assert_eq!(
        told,
        [(1, "alice", "why not", 1000), (2, "alice", "why not", 1000)]
    );
    let back = transactions.candidate(&Change::Version(1)).unwrap();
    assert_eq!(back.configuration.limits.half_open, 5);
    assert!(matches!(
        transactions.candidate(&Change::Version(9)),
        Err(Refusal::History(HistoryError::Unknown(9)))
    ));
    assert!(matches!(
        commit(&mut transactions, &[], None),
        Err(Refusal::Nothing)
    ));
}

#[test]
fn a_lock_keeps_others_out_until_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = open(folder.path());
    let lock = transactions.acquire("bob", 7).unwrap();
    let said = commit(&mut transactions, &["set limits half-open 5"], None)
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("bob has locked the configuration"),
        "{said}"
    );
    assert!(transactions.acquire("alice", 8).is_err());
    let change = Change::Edits {
        base: 0,
        edits: edits(&["set limits half-open 5"]),
    };
    transactions
        .may_commit(&author(Some(lock)), &change)
        .unwrap();
    transactions.unlock(lock + 1);
    assert!(transactions.may_commit(&author(None), &change).is_err());
    transactions.unlock(lock);
    transactions.may_commit(&author(None), &change).unwrap();
}

#[test]
fn what_is_not_confirmed_goes_and_nobody_confirms_it_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = open(folder.path());
    commit(&mut transactions, &["set limits half-open 5"], None).unwrap();
    commit(&mut transactions, &["set limits half-open 6"], Some(1300)).unwrap();
    let said = commit(&mut transactions, &["set limits half-open 7"], None)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("version 2 by alice is not confirmed yet") && said.contains("`rollback 1`"),
        "{said}"
    );

    let mut after_a_crash = open(folder.path());
    assert_eq!(after_a_crash.history().confirm_by(), Some(1300));
    let (before, comment) = after_a_crash.unconfirmed().unwrap().unwrap();
    assert_eq!(before.configuration.limits.half_open, 5);
    put_in_force(&mut after_a_crash, before, &comment, None).unwrap();
    assert_eq!(after_a_crash.version(), 3);
    assert_eq!(after_a_crash.current().configuration.limits.half_open, 5);
    assert!(after_a_crash.unconfirmed().unwrap().is_none());

    commit(&mut after_a_crash, &["set limits half-open 8"], Some(1300)).unwrap();
    assert_eq!(after_a_crash.confirm().unwrap(), 4);
    assert!(after_a_crash.confirm().is_err());
    assert_eq!(open(folder.path()).history().confirm_by(), None);
}

#[test]
fn a_hundred_versions_are_kept_and_the_one_that_would_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = open(folder.path());
    for n in 0..120 {
        commit(
            &mut transactions,
            &[&format!("set limits half-open {}", n + 1)],
            None,
        )
        .unwrap();
    }
    let kept: Vec<u64> = transactions
        .history()
        .versions()
        .map(|v| v.version)
        .collect();
    assert_eq!(kept, Vec::from_iter(21..=120));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 100);
    assert_eq!(
        transactions
            .load(21)
            .unwrap()
            .configuration
            .limits
            .half_open,
        21
    );
}

#[test]
fn a_damaged_version_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = open(folder.path());
    commit(&mut transactions, &["set limits half-open 5"], None).unwrap();
    commit(&mut transactions, &["set limits half-open 6"], None).unwrap();
    let newest = folder.path().join("000002.yaml");
    let text = fs::read_to_string(&newest).unwrap();
    for (damaged, why) in [
        (
            text.replace("half-open: 6", "half-open: 9"),
            "checksum differs",
        ),
        (text[..text.len() / 2].to_owned(), "its first line"),
        (String::new(), "does not have the header"),
    ] {
        fs::write(&newest, damaged).unwrap();
        let said = History::open(folder.path()).unwrap_err().to_string();
        assert!(
            said.contains("000002.yaml")
                && said.contains(why)
                && said.contains("Move the file away"),
            "{said}"
        );
    }
    fs::remove_file(&newest).unwrap();
    assert_eq!(
        open(folder.path()).current().configuration.limits.half_open,
        5
    );
}

#[test]
fn secrets_in_versions_are_nobody_elses_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    commit(
        &mut open(folder.path()),
        &["set users a password hunter2"],
        None,
    )
    .unwrap();
    let mode = fs::metadata(folder.path().join("000001.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0);
}

/// What happens to a store of configurations.
#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<u8>, Option<u64>),
    CommitOf(u64, u8),
    Rollback(u64),
    Confirm,
    GiveUp,
    /// The process dies after it has written so much of a new version.
    Crash(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop::collection::vec(0u8..40, 1..4), prop::option::weighted(0.2, Just(1300)))
            .prop_map(|(edits, confirm)| Step::Commit(edits, confirm)),
        2 => (0u64..8, 0u8..40).prop_map(|(base, edit)| Step::CommitOf(base, edit)),
        1 => (0u64..12).prop_map(Step::Rollback),
        1 => Just(Step::Confirm),
        1 => Just(Step::GiveUp),
        2 => (0usize..400).prop_map(Step::Crash),
    ]
}

/// Few places, so that edits meet.
fn edit(n: u8) -> Edit {
    let name = ["a", "b"][usize::from(n) % 2];
    Edit::parse(&match n / 2 {
        0..4 => format!("set limits half-open {}", n + 1),
        4..8 => format!("set users {name} password secret{n}"),
        8..10 => format!("delete users {name}"),
        10..12 => format!("set ipv4-pools {name} prefix 10.{n}.0.0/16"),
        12..14 => format!("delete ipv4-pools {name}"),
        14..16 => "set network-instances default".to_owned(),
        16 => "delete network-instances".to_owned(),
        17 => "delete".to_owned(),
        18 => format!("set subscriber-profiles {name} dns 192.0.2.{n}"),
        _ => format!("delete subscriber-profiles {name} dns"),
    })
    .unwrap()
}

/// The simplest thing that could keep versions: a list of trees, and whether each was confirmed.
#[derive(Default)]
struct Model(Vec<(serde_json::Value, bool)>);

impl Model {
    fn get(&self, version: u64) -> serde_json::Value {
        match version {
            0 => Checked::default().tree,
            n => self.0[n as usize - 1].0.clone(),
        }
    }

    fn waits(&self) -> bool {
        self.0.last().is_some_and(|(_, confirmed)| !confirmed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn versions_are_what_a_list_would_have(steps in prop::collection::vec(any_step(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let mut transactions = open(folder.path());
        let mut model = Model::default();
        for step in steps {
            let last = model.0.len() as u64;
            match step {
                Step::Commit(numbers, confirm_by) => {
                    let mut tree = model.get(last);
                    let list: Vec<Edit> = numbers.iter().map(|n| edit(*n)).collect();
                    let applied = list.iter().try_for_each(|edit| edit.apply(&mut tree));
                    let good = applied.is_ok() && check::check(&tree).is_ok();
                    let changes = check::check(&tree).is_ok_and(|c| c.tree != model.get(last)) || last == 0;
                    let change = Change::Edits { base: last, edits: list };
                    let done = transactions.may_commit(&author(None), &change)
                        .and_then(|()| transactions.candidate(&change))
                        .and_then(|candidate| put_in_force(&mut transactions, candidate, "", confirm_by));
                    prop_assert_eq!(done.is_ok(), good && changes && !model.waits(), "{:?}", done);
                    if done.is_ok() {
                        model.0.push((check::check(&tree).unwrap().tree, confirm_by.is_none()));
                    }
                }
                // of what others have changed since, nothing is lost
                Step::CommitOf(base, number) if base <= last && !model.waits() => {
                    let change = Change::Edits { base, edits: vec![edit(number)] };
                    if let Ok(candidate) = transactions.candidate(&change) {
                        let tree = candidate.tree.clone();
                        let place = edit(number).place();
                        for theirs in config::edit::difference(&model.get(base), &model.get(last)) {
                            let elsewhere = !place.contains(&theirs.place()) && !theirs.place().contains(&place);
                            if elsewhere {
                                let get = |tree| config::edit::get(tree, &theirs.place()).cloned();
                                prop_assert_eq!(get(&tree), get(&model.get(last)), "{}", theirs);
                            }
                        }
                        if put_in_force(&mut transactions, candidate, "", None).is_ok() {
                            model.0.push((tree, true));
                        }
                    }
                }
                Step::CommitOf(..) => {}
                Step::Rollback(version) => {
                    let change = Change::Version(version);
                    let done = transactions.candidate(&change)
                        .and_then(|candidate| put_in_force(&mut transactions, candidate, "", None));
                    let known = version <= last;
                    let changes = known && (model.get(version) != model.get(last) || last == 0 || model.waits());
                    prop_assert_eq!(done.is_ok(), changes);
                    if changes {
                        model.0.push((model.get(version), true));
                    }
                }
                Step::Confirm => {
                    prop_assert_eq!(transactions.confirm().is_ok(), model.waits());
                    if let Some((_, confirmed)) = model.0.last_mut() {
                        *confirmed = true;
                    }
                }
                Step::GiveUp => {
                    let before = transactions.unconfirmed().unwrap();
                    prop_assert_eq!(before.is_some(), model.waits());
                    if let Some((before, comment)) = before {
                        put_in_force(&mut transactions, before, &comment, None).unwrap();
                        let confirmed = model.0.iter().rposition(|(_, confirmed)| *confirmed);
                        let tree = model.get(confirmed.map_or(0, |n| n as u64 + 1));
                        model.0.push((tree, true));
                    }
                }
                Step::Crash(written) => {
                    let next = folder.path().join(format!("{:06}.new", last + 1));
                    let whole = "# sluice {\"version\":".repeat(30);
                    fs::write(next, &whole[..written]).unwrap();
                    transactions = open(folder.path());
                }
            }
            prop_assert_eq!(transactions.version(), model.0.len() as u64);
            prop_assert_eq!(&transactions.current().tree, &model.get(transactions.version()));
        }
    }
}
