use super::{MOST_COMMENT, MOST_CONFIRM, Wish, adopt, author, bounded};
use crate::world::{Choice, World};
use config::edit::Edit;
use config::history::History;
use config::transactions::{Refusal, Transactions};
use northbound::{CommitRequest, Refusal as Refused};

/// A version without the port that the home of this world is behind.
fn without_port(w: &World, end_sessions: bool) -> Wish {
    let mut tree = w.tree.clone();
    let edit = Edit::parse("delete user-planes up1 ports access0").unwrap();
    edit.apply(&mut tree).unwrap();
    Wish {
        candidate: config::check::check(&tree).unwrap(),
        author: author("alice".into(), 0),
        comment: String::new(),
        confirm_by: None,
        back: false,
        end_sessions,
    }
}

#[test]
fn whoever_dials_in_between_the_plan_and_the_commit_is_not_ended_unasked() {
    let mut w = World::new(1, Choice::default());
    let folder = tempfile::tempdir().unwrap();
    let mut transactions = Transactions::new(History::open(folder.path()).unwrap());
    let wish = without_port(&w, false);
    let planned = w.plan(&wish.candidate.configuration);
    assert!(planned.unwrap().iter().all(|effect| !effect.ends));
    w.dial_all();
    let now = w.moment();
    let written = transactions.write(&wish.candidate, &wish.author, "", None);
    let refused = adopt(now, &mut w.plane, wish, |candidate| {
        let (version, _) = transactions.commit(written.unwrap(), candidate)?;
        Ok(version)
    });
    let refused = refused.unwrap_err();
    let Refusal::Faults(faults) = refused else {
        panic!("{refused:?}");
    };
    let message = &faults[0].message;
    assert!(message.contains("1 session end"), "{message}");
    assert_eq!((w.online(), transactions.version()), (1, 0));

    let wish = without_port(&w, true);
    let written = transactions.write(&wish.candidate, &wish.author, "", None);
    let adopted = adopt(now, &mut w.plane, wish, |candidate| {
        let (version, _) = transactions.commit(written.unwrap(), candidate)?;
        Ok(version)
    });
    w.settle();
    assert_eq!((adopted.unwrap(), w.online()), (1, 0));
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
