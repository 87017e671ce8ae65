use super::{Adoption, Keeper, MOST_COMMENT, MOST_CONFIRM, ToPlane, adopt, author, bounded};
use crate::management::Management;
use crate::world::{Choice, World, checked};
use config::edit::Edit;
use config::history::History;
use config::transactions::Transactions;
use northbound::{
    CommitRequest, CommitResponse, ConfigurationRequest, ConfigurationResponse, Refusal as Refused,
    change,
};
use tokio::sync::{mpsc, oneshot, watch};

/// A version without the port that the home of this world is behind.
fn without_port(w: &World, end_sessions: bool) -> Adoption {
    let mut tree = w.tree.clone();
    let edit = Edit::parse("delete user-planes up1 ports access0").unwrap();
    edit.apply(&mut tree).unwrap();
    Adoption {
        configuration: config::check::check(&tree).unwrap().configuration,
        version: 1,
        by: "alice".into(),
        comment: String::new(),
        back: false,
        end_sessions,
    }
}

#[test]
fn whoever_dials_in_between_the_plan_and_the_commit_is_not_ended_unasked() {
    let mut w = World::new(1, Choice::default());
    let adoption = without_port(&w, false);
    let planned = w.plan(&adoption.configuration);
    assert!(planned.unwrap().iter().all(|effect| !effect.ends));
    w.dial_all();
    let now = w.moment();
    let faults = adopt(now, &mut w.plane, adoption).unwrap_err();
    let message = &faults[0].message;
    assert!(message.contains("1 session end"), "{message}");
    w.settle();
    assert_eq!(w.online(), 1);

    let adoption = without_port(&w, true);
    adopt(now, &mut w.plane, adoption).unwrap();
    w.settle();
    assert_eq!(w.online(), 0);
}

#[test]
fn a_comment_and_a_confirm_time_out_that_are_too_long_are_the_callers_fault() {
    let commit = |comment: usize, confirm_within| CommitRequest {
        comment: "é".repeat(comment),
        confirm_within,
        ..CommitRequest::default()
    };
    assert_eq!(bounded(&commit(MOST_COMMENT, MOST_CONFIRM)), Ok(()));
    for wrong in [commit(MOST_COMMENT + 1, 0), commit(0, MOST_CONFIRM + 1)] {
        let refused = bounded(&wrong);
        assert!(matches!(refused, Err(Refused::Invalid(_))), "{refused:?}");
    }
}

/// The task that changes the configuration, with its first version, and what stands for the control plane's loop.
struct Task {
    folder: tempfile::TempDir,
    calls: mpsc::Sender<(
        ConfigurationRequest,
        oneshot::Sender<Result<ConfigurationResponse, Refused>>,
    )>,
    asks: mpsc::Receiver<ToPlane>,
}

impl Task {
    fn new(document: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut transactions = Transactions::new(History::open(folder.path()).unwrap());
        let alice = author("alice".into(), 0);
        let first = checked(document);
        transactions.commit(first, &alice, "", None).unwrap();
        let (to_plane, asks) = mpsc::channel(1);
        let (calls, answered) = mpsc::channel(1);
        let keeper = Keeper::new(
            transactions,
            Management::new(None, to_plane.clone()),
            Box::new(|_| ()),
            to_plane,
            answered,
            watch::channel(Vec::new()).0,
        );
        tokio::spawn(keeper.run());
        Task {
            folder,
            calls,
            asks,
        }
    }

    /// Commits a change, as Alice. `meanwhile` comes just before the control plane gets it.
    async fn commit(
        &mut self,
        w: &mut World,
        change: change::Change,
        mut meanwhile: impl FnMut(&mut World),
    ) -> CommitResponse {
        let commit = CommitRequest {
            change: Some(northbound::Change {
                change: Some(change),
            }),
            ..CommitRequest::default()
        };
        let (reply, mut answer) = oneshot::channel();
        let by = "alice".into();
        let request = ConfigurationRequest::Commit { by, commit };
        self.calls.send((request, reply)).await.unwrap();
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer.unwrap().unwrap(),
                ask = self.asks.recv() => match ask.unwrap() {
                    ToPlane::BeginPlan(new, reply) => drop(reply.send(w.plane.begin_plan(new))),
                    ToPlane::PlanMore(plan, reply) => {
                        drop(reply.send(w.plane.plan_more(w.moment(), plan)));
                    }
                    ToPlane::Adopt(adoption, reply) => {
                        meanwhile(w);
                        drop(reply.send(adopt(w.moment(), &mut w.plane, adoption)));
                    }
                    ToPlane::IsRetiring(reply) => drop(reply.send(false)),
                    _ => (),
                },
            }
        };
        match answer {
            ConfigurationResponse::Committed(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The version that is on the disk.
    fn version(&self) -> Option<u64> {
        History::open(self.folder.path()).unwrap().version()
    }
}

/// One edit of a version.
fn edits(base: u64, line: &str) -> change::Change {
    let mut words = line.split(' ').map(str::to_owned);
    let delete = words.next().as_deref() == Some("delete");
    let edit = northbound::Edit {
        words: words.collect(),
        delete,
    };
    change::Change::Edits(northbound::Edits {
        base,
        edits: vec![edit],
    })
}

/// A subscriber dials in when the version without its port is on the disk, just before the control plane gets it.
#[tokio::test]
async fn a_version_that_can_no_longer_be_applied_is_taken_back() {
    let mut w = World::new(1, Choice::default());
    let mut task = Task::new(&Choice::default().document(1));
    let folder = task.folder.path().to_owned();
    let change = edits(1, "delete user-planes up1 ports access0");
    let answer = task.commit(&mut w, change, |w| {
        let committed = History::open(&folder).unwrap();
        assert_eq!(committed.version(), Some(2));
        w.dial_all();
    });
    let answer = answer.await;
    let why = &answer.faults[0].message;
    assert!(why.contains("1 session end"), "{why}");
    assert_eq!((task.version(), w.online()), (Some(1), 1));
}

/// What a version of before took is there until somebody changes it, and again for whoever goes back to it.
#[tokio::test]
async fn a_contradiction_is_refused_in_a_change_and_in_no_way_back() {
    let mut w = World::new(1, Choice::default());
    let (pppoe, policers) = (
        "  pppoe:\n    max-mru: 9000\n",
        "policers: {video: {committed-rate: 1000, algorithm: single-rate, committed-burst: 2000}}\n",
    );
    let first = Choice::default().document(1);
    let first = first.replace("  pppoe:\n", pppoe) + policers;
    let mut task = Task::new(&first);
    let mut commit = async |change| task.commit(&mut w, change, |_| ()).await;
    let another = commit(edits(1, "set policers video committed-rate 2000")).await;
    assert_eq!(
        (another.version, another.faults.len()),
        (2, 0),
        "{another:?}"
    );
    let mended = commit(edits(2, "set policers video committed-burst 9000")).await;
    assert_eq!((mended.version, mended.faults.len()), (3, 0), "{mended:?}");
    let wrong = commit(edits(3, "set policers video committed-burst 8000")).await;
    let why = &wrong.faults[0].message;
    assert!(why.contains("expected at least 9000"), "{wrong:?}");
    let back = commit(change::Change::Version(1)).await;
    assert_eq!((back.version, back.faults.len()), (4, 0), "{back:?}");
}
