use super::{Adoption, Keeper, MOST_COMMENT, MOST_CONFIRM, ToPlane, adopt, author, bounded};
use crate::management::Management;
use crate::world::{Choice, World, checked};
use config::edit::Edit;
use config::history::History;
use config::transactions::Transactions;
use northbound::{
    CommitRequest, ConfigurationRequest, ConfigurationResponse, Refusal as Refused, change,
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

/// A subscriber dials in when the version without its port is on the disk, just before the control plane gets it.
#[tokio::test]
async fn a_version_that_can_no_longer_be_applied_is_taken_back() {
    let mut w = World::new(1, Choice::default());
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = Transactions::new(History::open(folder.path()).unwrap());
    let first = checked(&Choice::default().document(1));
    let alice = author("alice".into(), 0);
    transactions.commit(first, &alice, "", None).unwrap();
    let (to_plane, mut asks) = mpsc::channel(1);
    let (call, calls) = mpsc::channel(1);
    let keeper = Keeper::new(
        transactions,
        Management::new(None, to_plane.clone()),
        Box::new(|_| ()),
        to_plane,
        calls,
        watch::channel(Vec::new()).0,
    );
    tokio::spawn(keeper.run());
    let edits = northbound::Edits {
        base: 1,
        edits: vec![northbound::Edit {
            words: ["user-planes", "up1", "ports", "access0"]
                .map(str::to_owned)
                .into(),
            delete: true,
        }],
    };
    let commit = CommitRequest {
        change: Some(northbound::Change {
            change: Some(change::Change::Edits(edits)),
        }),
        ..CommitRequest::default()
    };
    let (reply, mut answer) = oneshot::channel();
    let by = "alice".into();
    let request = ConfigurationRequest::Commit { by, commit };
    call.send((request, reply)).await.unwrap();
    let answer = loop {
        tokio::select! {
            answer = &mut answer => break answer.unwrap().unwrap(),
            ask = asks.recv() => match ask.unwrap() {
                ToPlane::BeginPlan(new, reply) => drop(reply.send(w.plane.begin_plan(new))),
                ToPlane::PlanMore(plan, reply) => {
                    drop(reply.send(w.plane.plan_more(w.moment(), plan)));
                }
                ToPlane::Adopt(adoption, reply) => {
                    let committed = History::open(folder.path()).unwrap();
                    assert_eq!(committed.version(), Some(2));
                    w.dial_all();
                    drop(reply.send(adopt(w.moment(), &mut w.plane, adoption)));
                }
                _ => (),
            },
        }
    };
    let ConfigurationResponse::Committed(answer) = answer else {
        panic!("{answer:?}");
    };
    let why = &answer.faults[0].message;
    assert!(why.contains("1 session end"), "{why}");
    let kept = History::open(folder.path()).unwrap();
    assert_eq!((kept.version(), w.online()), (Some(1), 1));
}
