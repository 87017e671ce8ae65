//! A store that writes nothing for a while: running sessions go on, nobody new comes online, records wait within their
//! bound, and when there is room again everything goes on.

use crate::world::radius::number;
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use wire::radius::Kind;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const START: u32 = 1;
const STOP: u32 = 2;
const INTERIM: u32 = 3;

#[test]
fn running_sessions_stay_and_nobody_new_is_let_in_until_the_store_writes_again() {
    let mut w = World::new(4, Choice::default());
    w.dial(0);
    w.dial(1);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 2);
    w.stall_disk();
    w.dial(2);
    w.run(5 * MINUTE);
    assert_eq!(w.online(), 2, "the links are watched, and answered");
    // who cannot serve a PADI does not answer it (RFC 2516 §5.2)
    let heard = w.heard.len();
    w.dial(3);
    assert_eq!((w.heard.len(), w.count(Counter::StoreBehind)), (heard, 1));
    w.disk_recovers();
    w.dial(2);
    w.dial(3);
    w.run(MINUTE);
    assert_eq!((w.online(), w.stored_sessions()), (4, 4));
}

#[test]
fn a_store_that_answers_in_time_turns_nobody_away() {
    let mut w = World::new(20, Choice::default());
    for n in 0..20 {
        w.stall_disk();
        w.dial(n);
        w.run(SECOND / 2);
        w.disk_recovers();
    }
    w.run(10 * SECOND);
    assert_eq!((w.online(), w.count(Counter::StoreBehind)), (20, 0));
}

#[test]
fn records_wait_in_memory_up_to_their_bound_and_are_counted_beyond_it() {
    let choice = Choice {
        accounting_records: 3,
        ..Choice::radius()
    };
    let mut w = World::new(8, choice);
    w.dial_all();
    assert_eq!(w.radius.kinds(), [START; 8]);
    w.stall_disk();
    (0..8).for_each(|n| w.hang_up(n));
    w.run(5 * MINUTE);
    assert_eq!(
        w.radius.kinds(),
        [START; 8],
        "none is sent that is not stored"
    );
    assert_eq!(w.count(Counter::AccountingLost), 5);
    w.disk_recovers();
    w.run(MINUTE);
    assert_eq!(w.radius.kinds()[8..], [STOP; 3]);
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 0));
}

#[test]
fn of_the_interim_records_that_wait_only_the_latest_arrives() {
    let mut w = World::new(1, Choice::radius());
    w.radius.accept = vec![(Kind::ACCT_INTERIM_INTERVAL, 60.into())];
    w.dial_all();
    w.stall_disk();
    w.run(5 * MINUTE);
    assert_eq!(w.radius.kinds(), [START], "none is sent that is not stored");
    w.disk_recovers();
    assert_eq!(w.radius.kinds(), [START, INTERIM]);
    let last = &w.radius.records[1];
    // whenever the user plane is asked it has counted 1,000 octets more
    assert_eq!(number(last, Kind::ACCT_INPUT_OCTETS), 5000);
    assert_eq!(number(last, Kind::ACCT_SESSION_TIME), 300);
}

#[test]
fn who_hangs_up_while_nothing_is_stored_has_no_session_when_it_is() {
    let mut w = World::new(2, Choice::radius());
    w.dial_all();
    w.stall_disk();
    w.hang_up(0);
    w.run(MINUTE);
    // as long as the disk has it, a control plane that dies goes on with the session, and finds its subscriber gone
    w.restart_control_plane();
    assert_eq!(w.sessions().len(), 2);
    w.run(10 * MINUTE);
    assert_eq!(w.sessions().len(), 1);
    assert_eq!(w.radius.kinds(), [START, START, STOP]);
}
