//! A user plane that is drained: nobody new, and those that it has end at the wanted rate.

use crate::world::radius::number;
use crate::world::{Choice, World};
use control::counters::Counter;
use control::plane::Effect;
use core::time::Duration;
use northbound::{Drain, Request, Response, UserPlane};
use proptest::prelude::*;
use wire::radius::Kind;

const SECOND: Duration = Duration::from_secs(1);
const DRAIN: &str = "set user-planes up1 admin-state shutting-down";
const STOP: &str = "set user-planes up1 admin-state unlocked";
/// Acct-Terminate-Cause Admin-Reboot (RFC 2866 §5.10).
const ADMIN_REBOOT: u32 = 7;

fn text(effects: &[Effect]) -> String {
    let lines = effects
        .iter()
        .map(|effect| format!("{} ({}, {})", effect.text, effect.sessions, effect.ends));
    lines.collect::<Vec<_>>().join("\n")
}

fn shown(w: &mut World) -> UserPlane {
    match w.call(Request::ListUserPlanes) {
        Ok(Response::UserPlanes { user_planes }) => user_planes[0].clone(),
        other => panic!("{other:?}"),
    }
}

fn drain(w: &mut World) -> Drain {
    shown(w).drain.expect("it is drained")
}

fn at_rate(rate: u32) -> String {
    format!("set user-planes up1 end-sessions {rate}")
}

#[test]
fn whoever_is_there_stays_and_nobody_else_is_answered() {
    let mut w = World::new(3, Choice::default());
    w.dial(0);
    w.dial(1);
    w.run(5 * SECOND);
    let done = text(&w.configure(&[DRAIN]).unwrap());
    let expected = "user plane up1 takes no new sessions; its 2 sessions stay (0, false)";
    assert!(done.contains(expected), "{done}");
    w.heard.clear();
    w.dial(2);
    w.run(20 * SECOND);
    assert_eq!(w.online(), 2);
    assert!(w.count(Counter::Drained) > 1);
    let discovery = wire::eth::PPPOE_DISCOVERY.to_be_bytes();
    let answered = w
        .heard
        .iter()
        .filter(|frame| frame.windows(2).any(|two| two == discovery));
    assert_eq!(answered.count(), 0, "a PADI was answered");
    let row = shown(&mut w);
    let drain = row.drain.unwrap();
    assert_eq!((row.sessions, drain.sessions_before), (2, 2));
    assert_eq!(
        (drain.rate, drain.remaining_seconds, drain.waits),
        (0, None, false)
    );

    let done = text(&w.configure(&[STOP]).unwrap());
    assert!(
        done.contains("user plane up1 takes new sessions again"),
        "{done}"
    );
    w.dial(2);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 3);
    assert_eq!(shown(&mut w).drain, None);
    w.assert_balanced();
}

#[test]
fn sessions_end_at_the_wanted_rate_and_their_records_say_why() {
    let mut w = World::new(60, Choice::radius());
    w.dial_all();
    let done = text(&w.configure(&[DRAIN, &at_rate(10)]).unwrap());
    let expected = "ends its 60 sessions: 10 a second, in about 6 s (60, true)";
    assert!(done.contains(expected), "{done}");
    for seconds in 1..6 {
        w.run(SECOND);
        let left = w.plane.session_count();
        assert!(
            (59 - 10 * seconds..=61 - 10 * seconds).contains(&left),
            "{left} after {seconds} s"
        );
        let drain = drain(&mut w);
        assert_eq!((drain.sessions_before, drain.rate), (60, 10));
        assert_eq!(drain.remaining_seconds, Some((left as u64).div_ceil(10)));
    }
    w.run(2 * SECOND);
    assert_eq!((w.plane.session_count(), w.up.subscribers().len()), (0, 0));
    assert_eq!(w.stored_sessions(), 0);
    let stops = w.radius.records.iter();
    let causes: Vec<u32> = stops
        .filter(|record| number(record, Kind::ACCT_STATUS_TYPE) == 2)
        .map(|record| number(record, Kind::ACCT_TERMINATE_CAUSE))
        .collect();
    assert_eq!(causes, [ADMIN_REBOOT; 60]);
    assert_eq!(drain(&mut w).remaining_seconds, Some(0));
    w.assert_balanced();
}

#[test]
fn a_drain_goes_on_after_a_restart_of_either_plane_and_waits_while_they_are_cut_apart() {
    let mut w = World::new(90, Choice::default());
    w.dial_all();
    w.configure(&[DRAIN, &at_rate(10)]).unwrap();
    w.run(SECOND);
    // some time may go by until it is seen that the user plane answers
    for restart in [World::restart_control_plane, World::restart_user_plane] {
        let before = w.plane.session_count();
        restart(&mut w);
        w.run(2 * SECOND);
        let ended = before - w.plane.session_count();
        assert!(ended <= 22, "{ended} of {before}");
    }
    let left = w.plane.session_count();
    assert!(
        (1..79).contains(&left),
        "{left}: it goes on, and there is something left"
    );

    w.cut = true;
    w.run(20 * SECOND);
    let cut = w.plane.session_count();
    assert!(
        left - cut <= 20,
        "{cut}: their subscribers could not be told"
    );
    assert!(drain(&mut w).waits && drain(&mut w).remaining_seconds.is_none());
    w.cut = false;
    w.run(40 * SECOND);
    assert_eq!((w.plane.session_count(), w.up.subscribers().len()), (0, 0));
    assert!(!drain(&mut w).waits);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    w.assert_balanced();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is ordered in whatever order, nobody comes in while it is drained, no more end than were ordered, and the
    /// books balance.
    #[test]
    fn drains_that_come_and_go_leave_nothing(
        orders in proptest::collection::vec((0_u8..6, 1_u32..40, 100_u64..3000), 1..12)
    ) {
        let mut w = World::new(30, Choice::default());
        w.dial_all();
        let (mut drained, mut rate) = (false, 0);
        for (what, number, milliseconds) in orders {
            let before = w.plane.session_count();
            match what {
                0 => { w.configure(&[DRAIN]).unwrap(); drained = true; }
                1 => { w.configure(&[STOP]).unwrap(); drained = false; }
                2 => { w.configure(&[&at_rate(number)]).unwrap(); rate = number; }
                3 => { w.configure(&[&at_rate(0)]).unwrap(); rate = 0; }
                4 => w.restart_control_plane(),
                _ => (0..30).for_each(|n| w.dial(n)),
            }
            let sessions = w.plane.session_count();
            w.run(Duration::from_millis(milliseconds));
            let after = w.plane.session_count();
            if drained {
                prop_assert!(after <= sessions.max(before), "{after} from {sessions}");
            }
            let most = if drained { u64::from(rate) * milliseconds / 1000 + 1 + u64::from(rate) } else { 0 };
            let kept = what == 5 || after as u64 + most >= sessions as u64;
            prop_assert!(kept, "{after} of {sessions} after {milliseconds} ms at {rate}");
            let row = shown(&mut w);
            prop_assert_eq!(row.drain.is_some(), drained);
            prop_assert_eq!(row.sessions as usize, after);
        }
        w.run(10 * SECOND);
        w.assert_balanced();
    }
}
