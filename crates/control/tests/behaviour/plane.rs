//! The control plane against emulated homes and a user plane that keeps rules: what sessions acquire, what they give
//! back, and what happens when something dies or runs out.

use crate::world::{Choice, World};
use control::Input;
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, State};
use northbound::{
    AaaRole, PAGE, Refusal, Request, Response, SessionState, Traffic, UserPlaneState,
};
use std::collections::BTreeSet;
use wire::pfcp::Cause;
use wire::pppoe::AccessLine;
use wire::radius::Kind;

const MINUTE: Duration = Duration::from_secs(60);

/// Two addresses, one of them the gateway's.
const TINY: &str = "{prefix: 100.64.0.0/30, net-length: 30}";

fn assert_nothing_left(w: &mut World) {
    assert_eq!(w.sessions(), [], "sessions");
    assert_eq!(w.up.subscribers(), [], "rules");
    assert_eq!(w.up.nets(), [] as [String; 0], "nets");
    assert_eq!(w.stored_sessions(), 0, "records");
    assert_eq!(w.stored_records(), 0, "accounting records");
}

#[test]
fn homes_come_and_go_and_leave_nothing() {
    let mut w = World::new(50, Choice::default());
    for _ in 0..3 {
        w.dial_all();
        assert_eq!(w.online(), 50);
        let sessions = w.sessions();
        assert!(sessions.iter().all(|s| s.state() == SessionState::Online));
        let addresses: std::collections::BTreeSet<_> = sessions
            .iter()
            .flat_map(|s| [&s.ipv4, &s.ipv6_prefix])
            .collect();
        assert_eq!(addresses.len(), 100, "every address once");
        assert_eq!(w.up.nets().len(), 2, "a net of each family");
        assert_eq!(w.stored_sessions(), 50);
        let rules = w.up.subscribers();
        assert!(
            rules
                .iter()
                .all(|s| s.forwarding.bindings.iter().count() == 2 && s.redirect_nd)
        );
        (0..50).for_each(|n| w.hang_up(n));
        w.run(MINUTE);
        assert_nothing_left(&mut w);
    }
}

/// Behind a VLAN id that it shares with others, each address would have ids of its own, and they would be the segment's before long.
#[test]
fn a_line_that_changes_its_mac_address_all_the_time_has_a_few_session_ids() {
    let distinct = |settings: &[&str]| {
        let mut w = World::new(1, Choice::default());
        w.configure(settings).unwrap();
        let mut ids = BTreeSet::new();
        for n in 0..20 {
            let mut config = w.homes[0].config().clone();
            (config.tags.inner, config.mac) = (None, [2, 0, 0, 9, 9, n].into());
            config.access_line.clear();
            let line = AccessLine {
                circuit_id: Some(b"olt1 1/2/3"),
                ..AccessLine::default()
            };
            line.emit(&mut config.access_line);
            w.homes[0] = Home::new(config, w.now.as_millis() as u64);
            w.dial_all();
            let [session] = &w.sessions()[..] else {
                panic!("it is not online");
            };
            ids.insert(session.pppoe_session_id);
            w.hang_up(0);
            w.run(Duration::from_secs(1));
        }
        w.assert_balanced();
        ids.len()
    };
    let trusted = distinct(&[]);
    let untrusted = distinct(&["set access-profiles pppoe trust-line-tags false"]);
    assert_eq!((trusted, untrusted), (8, 20));
}

#[test]
fn what_is_watched_is_what_there_is() {
    let mut w = World::new(5, Choice::default());
    let seen = |w: &World| {
        let state = w.plane.overview(w.now);
        let s = state.sessions.unwrap();
        let pools = state.pools.iter();
        let used: Vec<u64> = pools.map(|pool| pool.used).collect();
        (
            [s.connecting, s.online, s.closing],
            [s.begun, s.opened, s.ended],
            used,
        )
    };
    assert_eq!(seen(&w), ([0; 3], [0; 3], vec![0, 0]));
    w.dial_all();
    assert_eq!(seen(&w), ([0, 5, 0], [5, 5, 0], vec![5, 5]));
    let state = w.plane.overview(w.now);
    assert!(state.pools.iter().all(|pool| pool.size > 5), "{state:?}");
    assert!(state.user_planes[0].associated, "{state:?}");
    // its last counters are not heard
    let id = w.sessions()[0].id.clone();
    w.cut = true;
    let by = "root".into();
    w.call(Request::ClearSession { id, by }).unwrap();
    for _ in 0..12 {
        if seen(&w).0[2] == 0 {
            w.run(Duration::from_secs(1));
        }
    }
    assert_eq!(seen(&w).0, [0, 4, 1]);
    assert_eq!(seen(&w).1, [5, 5, 1]);
    w.restart_control_plane();
    assert_eq!(seen(&w).0, [0, 4, 1]);
    w.cut = false;
    w.run(MINUTE);
    assert_eq!(seen(&w).0[2], 0);
}

#[test]
fn a_wrong_password_is_told_and_leaves_nothing() {
    let mut w = World::new(1, Choice::default());
    let right = w.homes[0].config().clone();
    w.homes[0] = cpe::Home::new(
        cpe::HomeConfig {
            password: "wrong".into(),
            ..right
        },
        1,
    );
    w.homes[0].dial(w.now);
    w.settle();
    w.run(MINUTE);
    assert_ne!(w.homes[0].state(), State::Online);
    assert!(w.count(Counter::AuthenticationRejected) >= 1);
    assert_nothing_left(&mut w);
}

#[test]
fn the_address_is_released_only_when_the_session_is_on_disk() {
    let mut w = World::new(1, Choice::default());
    w.disk_stalls = true;
    w.dial(0);
    w.run(Duration::from_secs(2));
    assert_eq!((w.homes[0].ipv4(), w.homes[0].ipv6()), (None, None));
    assert_eq!(w.stored_sessions(), 1, "handed to the disk");
    w.disk_recovers();
    assert!(w.homes[0].ipv4().is_some());
    w.run(Duration::from_secs(5));
    assert_eq!(w.homes[0].state(), State::Online);
}

#[test]
fn an_end_that_the_user_plane_did_not_hear_of_is_told_again() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let id = w.sessions()[0].id.clone();
    // Longer than a request is repeated, and shorter than it takes to give the path up.
    w.cut = true;
    w.call(Request::ClearSession {
        id,
        by: "root".into(),
    })
    .unwrap();
    w.run(Duration::from_millis(11_500));
    assert!(w.count(Counter::UserPlaneSilent) >= 1);
    w.cut = false;
    w.run(MINUTE);
    assert_nothing_left(&mut w);
}

#[test]
fn a_full_table_refuses_the_newcomer_alone() {
    let mut w = World::new(
        4,
        Choice {
            sessions: 3,
            ..Choice::default()
        },
    );
    w.dial_all();
    assert_eq!(w.online(), 3);
    assert!(w.count(Counter::SessionTableFull) >= 1);
    w.hang_up(0);
    w.dial(3);
    w.run(MINUTE);
    assert_eq!(w.homes[3].state(), State::Online, "there is room again");
}

#[test]
fn an_empty_pool_refuses_its_family_alone() {
    let mut w = World::new(
        2,
        Choice {
            ipv4_pool: Some(TINY),
            ..Choice::default()
        },
    );
    w.dial_all();
    assert_eq!(w.count(Counter::Ipv4PoolExhausted), 1);
    let with_ipv4 = w.homes.iter().filter(|h| h.ipv4().is_some()).count();
    let with_ipv6 = w.homes.iter().filter(|h| h.ipv6().is_some()).count();
    assert_eq!((with_ipv4, with_ipv6), (1, 2));
}

#[test]
fn a_subscriber_for_whom_nothing_is_left_is_sent_away() {
    let mut w = World::new(
        2,
        Choice {
            ipv4_pool: Some(TINY),
            ipv6_pool: None,
            ..Choice::default()
        },
    );
    w.dial(0);
    w.dial(1);
    w.run(Duration::from_secs(3));
    assert_eq!(w.online(), 1);
    assert!(w.count(Counter::Ipv4PoolExhausted) >= 1);
    assert_eq!(w.sessions().len(), 1);
}

#[test]
fn sessions_that_wait_for_us_do_not_give_way_to_new_ones() {
    let mut w = World::new(
        20,
        Choice {
            half_open: 5,
            ..Choice::default()
        },
    );
    w.disk_stalls = true; // nobody gets online
    (0..20).for_each(|n| w.dial(n));
    w.run(Duration::from_secs(3));
    assert!(w.count(Counter::HalfOpenFull) >= 15, "no PADO");
    assert_eq!(w.count(Counter::HalfOpenShed), 0);
    let users: Vec<String> = w.sessions().into_iter().map(|s| s.user).collect();
    assert_eq!(users, ["home0", "home1", "home2", "home3", "home4"]);
    w.disk_recovers();
    w.run(Duration::from_secs(1));
    for _ in 0..3 {
        let others: Vec<usize> = (0..20)
            .filter(|n| w.homes[*n].state() != State::Online)
            .collect();
        others.into_iter().for_each(|n| w.switch_off_and_on(n));
        (0..20).for_each(|n| w.dial(n));
        w.run(Duration::from_secs(1));
    }
    assert_eq!(w.online(), 20, "all come in, five at a time");
    w.assert_balanced();
}

#[test]
fn sessions_whose_homes_say_nothing_give_way_to_new_ones() {
    let mut w = World::new(
        12,
        Choice {
            half_open: 5,
            ..Choice::default()
        },
    );
    let mut padrs = Vec::new();
    for n in 0..10 {
        w.dial(n);
        padrs.push(w.asked_for.last().expect("a PADR").clone());
        w.hang_up(n);
    }
    w.run(Duration::from_secs(1));
    assert_eq!(w.plane.session_count(), 0);
    // five ask for a session, and then say nothing
    padrs[..5].iter().for_each(|padr| w.redirect(padr));
    assert_eq!(w.plane.session_count(), 5);
    w.dial(10);
    assert_eq!(w.count(Counter::HalfOpenFull), 1, "they may still answer");
    w.run(Duration::from_secs(2));
    // five more do so, and take their places
    for padr in &padrs[5..] {
        w.redirect(padr);
        let counts = w.plane.overview(w.now).sessions;
        assert_eq!(counts.map(|counts| counts.connecting), Some(5));
    }
    assert_eq!(w.count(Counter::HalfOpenShed), 5);
    w.run(Duration::from_secs(2));
    w.dial(11);
    w.run(Duration::from_secs(1));
    assert_eq!(w.homes[11].state(), State::Online);
    w.run(Duration::from_secs(30));
    assert_eq!(w.homes[10].state(), State::Online);
    w.assert_balanced();
}

#[test]
fn a_home_that_dials_anew_while_it_connects_begins_anew() {
    let mut w = World::new(1, Choice::default());
    w.disk_stalls = true; // it is let in, and gets no address
    w.dial(0);
    w.switch_off_and_on(0);
    w.dial(0);
    assert_eq!(w.count(Counter::Redialled), 1);
    assert_eq!(w.homes[0].state(), State::Network);
}

#[test]
fn a_home_that_dials_anew_replaces_its_session() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    w.switch_off_and_on(0); // it was switched off and on
    w.dial_all();
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.sessions().len(), 1);
    assert_eq!(w.count(Counter::Redialled), 1);
    assert_eq!(w.up.subscribers().len(), 1);
}

#[test]
fn a_session_that_was_replaced_goes_although_the_control_plane_dies_over_its_end() {
    let mut w = World::new(1, Choice::default());
    // otherwise the new session would not wait for the goodbye to end
    w.configure(&["set subscriber-profiles home sticky-addresses false"])
        .unwrap();
    w.dial_all();
    w.up.keeps_all = true; // the end is not acknowledged
    w.switch_off_and_on(0);
    w.dial(0);
    w.run(Duration::from_secs(2));
    assert_eq!(
        (w.homes[0].state(), w.stored_sessions()),
        (State::Online, 2)
    );
    w.up.keeps_all = false;
    w.restart_control_plane();
    w.run(Duration::from_secs(20));
    assert_eq!((w.homes[0].state(), w.sessions().len()), (State::Online, 1));
    assert_eq!((w.up.subscribers().len(), w.stored_sessions()), (1, 1));
}

#[test]
fn a_silent_home_is_given_up() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    w.homes.remove(1);
    w.run(Duration::from_secs(200));
    assert_eq!(w.sessions().len(), 1);
    assert_eq!(w.homes[0].state(), State::Online);
}

#[test]
fn a_refusal_of_the_user_plane_reaches_the_home() {
    let mut w = World::new(1, Choice::default());
    w.up.refuse = Some(Cause::NO_RESOURCES_AVAILABLE);
    w.dial(0);
    w.run(MINUTE);
    assert_ne!(w.homes[0].state(), State::Online);
    assert!(w.count(Counter::UserPlaneRefused) >= 1);
    assert_nothing_left(&mut w);
    w.up.refuse = None;
    w.dial_all();
    assert_eq!(w.online(), 1);
}

#[test]
fn a_restarted_control_plane_goes_on() {
    let mut w = World::new(10, Choice::default());
    w.dial_all();
    let before = w.sessions();
    w.restart_control_plane();
    w.run(5 * MINUTE); // echoes of both sides
    assert_eq!(w.online(), 10);
    let after = w.sessions();
    let what = |s: &northbound::Session| {
        (
            s.id.clone(),
            s.ipv4.clone(),
            s.ipv6_prefix.clone(),
            s.user.clone(),
        )
    };
    assert_eq!(
        before.iter().map(what).collect::<Vec<_>>(),
        after.iter().map(what).collect::<Vec<_>>()
    );
    assert!(
        after.iter().all(|s| s.online_seconds >= 300),
        "time goes on"
    );
    assert_eq!(
        w.up.subscribers().len(),
        10,
        "the user plane kept its rules"
    );
    (0..10).for_each(|n| w.hang_up(n));
    w.run(MINUTE);
    assert_nothing_left(&mut w);
}

#[test]
fn a_restarted_user_plane_is_told_its_sessions_again() {
    let mut w = World::new(200, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    w.restart_user_plane();
    assert_eq!(w.up.subscribers(), []);
    w.run(5 * MINUTE);
    assert_eq!(before, w.up.subscribers());
    assert_eq!(w.up.nets(), ["100.64.0.0/24", "2001:db8:100::/56"]);
    assert_eq!(w.online(), 200);
}

/// A request that was under way for longer than the user plane that knew it lived is carried out by the next.
#[test]
fn a_session_that_an_old_request_replaces_gets_its_rules_back() {
    let mut w = World::with_patient_homes(3);
    w.dial_all();
    let (before, old) = (w.up.subscribers(), w.establishments.clone());
    assert_eq!(
        old.len(),
        1 + 3,
        "the default session's, and one of each home"
    );
    w.restart_user_plane();
    w.user_plane_calls();
    w.arrive_late(&old);
    assert_eq!(before, w.up.subscribers());
    assert_eq!(w.up.nets(), ["100.64.0.0/24", "2001:db8:100::/56"]);
    assert_eq!(w.online(), 3);

    (0..3).for_each(|n| w.hang_up(n));
    w.run(MINUTE);
    w.restart_user_plane();
    w.user_plane_calls();
    w.arrive_late(&old);
    assert_eq!(w.up.subscribers(), [], "nobody has them any more");
}

/// PFCP says nothing of the order in which two requests arrive.
#[test]
fn changes_of_a_session_s_rules_do_not_overtake_one_another() {
    let mut w = World::with_patient_homes(1);
    w.dial_all();
    let before = w.up.subscribers();
    w.held_up = Some(Vec::new());
    w.begin_ppp_anew(0);
    let mut late = w.held_up.take().unwrap();
    assert!(!late.is_empty());
    late.reverse();
    w.arrive_late(&late);
    w.run(MINUTE);
    assert_eq!(w.up.subscribers(), before);
    assert_eq!(w.sessions().len(), 1);
}

#[test]
fn an_answer_that_comes_twice_does_not_end_a_session_a_second_time() {
    let mut w = World::with_patient_homes(1);
    w.dial(0);
    w.up.keeps_all = true;
    w.hang_up(0);
    w.arrive_late(&w.establishments.clone()); // the user plane knows them, and answers as before
    assert_eq!(
        w.up.kept, 1,
        "the answer to the first has the last counters"
    );
}

#[test]
fn a_net_that_is_wanted_again_while_it_is_withdrawn_is_told_to_the_next_user_plane() {
    let choice = Choice {
        ipv4_pool: Some("{prefix: 203.0.113.24/30, net-length: 30}"),
        ..Choice::default()
    };
    let mut w = World::new(1, choice);
    w.dial(0);
    w.up.silent_about_nets = true;
    w.hang_up(0);
    w.dial(0);
    w.restart_user_plane();
    w.sessions(); // asks it for counters: it knows of no association
    w.run(MINUTE);
    assert!(w.up.nets().contains(&"203.0.113.24/30".into()));
    w.hang_up(0);
    w.run(MINUTE);
    assert_nothing_left(&mut w);
}

#[test]
fn a_restarted_user_plane_that_calls_is_told_its_sessions_at_once() {
    let mut w = World::new(200, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    w.restart_user_plane();
    w.user_plane_calls();
    assert_eq!(before, w.up.subscribers(), "no time has passed");
    w.run(5 * MINUTE);
    assert_eq!(w.online(), 200);
}

#[test]
fn a_second_user_plane_of_the_same_name_is_refused_and_disturbs_nobody() {
    let mut w = World::new(10, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    let heard = w.call_as("192.0.2.66", "up1");
    assert_eq!(heard, []);
    // A peer with an unknown name gets no answer as well.
    let heard = w.call_as("192.0.2.66", "up66");
    assert_eq!(heard, []);
    let drops = match w.call(Request::ListDrops) {
        Ok(Response::Drops { drops }) => drops,
        other => panic!("{other:?}"),
    };
    let unknown = drops.iter().find(|d| d.name == "pfcp-unknown-peer");
    assert_eq!(unknown.expect("a counter").count, 2);
    w.run(5 * MINUTE);
    assert_eq!(w.up.subscribers(), before);
    assert_eq!(w.online(), 10);
}

#[test]
fn whoever_hangs_up_while_the_user_plane_is_away_is_cleaned_up_later() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    let id = w.sessions()[0].id.clone();
    w.cut = true;
    w.run(2 * MINUTE); // the path is found dead; the homes give up, and nobody hears them
    assert_eq!(
        w.up.subscribers().len(),
        2,
        "the user plane holds what it has"
    );
    let states: Vec<_> = w.sessions().iter().map(|s| s.state()).collect();
    assert_eq!(states, [SessionState::Online; 2]);
    w.cut = false;
    w.run(4 * MINUTE); // now their silence counts
    assert!(w.sessions().iter().all(|s| s.id != id));
    (0..2).for_each(|n| w.hang_up(n));
    w.run(2 * MINUTE);
    assert_nothing_left(&mut w);
}

#[test]
fn silence_counts_for_nothing_while_the_user_plane_cannot_be_reached() {
    let mut w = World::with_patient_homes(3);
    w.dial_all();
    let before: Vec<_> = w.sessions().into_iter().map(|s| s.id).collect();
    w.cut = true;
    w.run(10 * MINUTE); // many times the patience of the keepalive
    w.cut = false;
    w.run(10 * MINUTE);
    let after: Vec<_> = w.sessions().into_iter().map(|s| s.id).collect();
    assert_eq!(after, before);
    assert_eq!(w.online(), 3);
}

#[test]
fn a_frame_of_another_home_in_a_session_s_tunnel_is_refused() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    let rules = w.up.subscribers();
    let [a, b] = [&rules[0], &rules[1]];
    let mut frame = Vec::new();
    let header = wire::eth::Header {
        destination: b.circuit.gateway_mac,
        source: b.circuit.mac,
        tags: b.circuit.tags,
        ethertype: wire::eth::PPPOE_DISCOVERY,
    };
    header.emit(&mut frame);
    let policy::Access::Pppoe(session_id) = b.access;
    frame.extend(session::discovery::padt(session_id, "forged"));
    w.tunnel(a.tunnel.uplink.teid, &frame);
    w.settle();
    assert_eq!(w.count(Counter::ForeignFrame), 1);
    assert_eq!(w.sessions().len(), 2);
    w.tunnel(0xdead_beef, &frame);
    assert_eq!(w.count(Counter::UnknownTunnel), 1);
}

#[test]
fn an_operator_looks_and_ends() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    let id = w.sessions()[0].id.clone();
    let Ok(Response::Session { session }) = w.call(Request::GetSession { id: id.clone() }) else {
        panic!()
    };
    let traffic = session.traffic.unwrap();
    assert_eq!(
        (traffic.up_octets, traffic.down_octets),
        (2000, 4000),
        "read now, and once for the list"
    );
    let Ok(Response::Session { session }) = w.call(Request::GetSession { id: id.clone() }) else {
        panic!()
    };
    let traffic = session.traffic.unwrap();
    assert_eq!(traffic.up_octets, 3000, "what is reported adds up");
    let of = |family: Option<Traffic>| family.map(|t| (t.up_octets, t.down_octets));
    let families = (of(session.ipv4_traffic), of(session.ipv6_traffic));
    assert_eq!(families, (Some((2700, 5400)), Some((300, 600))));
    assert_eq!(
        w.call(Request::ClearSession {
            id: id.clone(),
            by: "root".into()
        }),
        Ok(Response::Done)
    );
    w.run(Duration::from_secs(1));
    assert!(w.sessions().iter().all(|s| s.id != id));
    assert!(matches!(
        w.call(Request::ClearSession {
            id,
            by: "root".into()
        }),
        Err(Refusal::NotFound(_))
    ));
    assert!(matches!(
        w.call(Request::GetSession {
            id: "nonsense".into()
        }),
        Err(Refusal::NotFound(_))
    ));
}

/// Whoever lists very many sessions gets them a page at a time, and each of those that stay once, whatever comes and goes.
#[test]
fn sessions_are_listed_a_page_at_a_time() {
    let mut w = World::new(PAGE + 100, Choice::default());
    w.dial_all();
    let page_of = |w: &mut World, from, most| match w.call(Request::ListSessions {
        from,
        most,
        filter: Box::default(),
    }) {
        Ok(Response::Sessions { sessions, next }) => (sessions, next),
        other => panic!("{other:?}"),
    };
    let page = |w: &mut World, from| page_of(w, from, PAGE);
    let (two, next) = page_of(&mut w, 0, 2);
    let (third, _) = page_of(&mut w, next.expect("there are more"), 1);
    let (first, next) = page(&mut w, 0);
    assert_eq!(first.len(), PAGE);
    let few = two.iter().chain(&third).map(|session| &session.id);
    assert!(few.eq(first[..3].iter().map(|session| &session.id)));
    for session in &first[..10] {
        let id = session.id.clone();
        w.call(Request::ClearSession {
            id,
            by: "root".into(),
        })
        .unwrap();
    }
    w.run(Duration::from_secs(1));
    let (second, next) = page(&mut w, next.expect("there are more"));
    assert_eq!((second.len(), next), (100, None));
    let ids: BTreeSet<_> = first.iter().chain(&second).map(|s| &s.id).collect();
    assert_eq!(ids.len(), PAGE + 100);
}

#[test]
fn an_operator_sees_how_a_user_plane_stands() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    w.run(MINUTE);
    let seen = |w: &mut World| match w.call(Request::ListUserPlanes) {
        Ok(Response::UserPlanes { mut user_planes }) if user_planes.len() == 1 => {
            user_planes.remove(0)
        }
        other => panic!("{other:?}"),
    };
    let up = seen(&mut w);
    assert_eq!((up.node_id.as_str(), up.sessions), ("up1", 2));
    assert_eq!((up.state(), up.restarts), (UserPlaneState::Associated, 0));
    assert!(up.since_seconds >= 60 && up.access_ports[0].open);

    w.cut = true;
    w.restart_user_plane();
    w.run(MINUTE);
    let up = seen(&mut w);
    assert_eq!((up.state(), up.sessions), (UserPlaneState::Lost, 2));
    assert!(up.since_seconds < 60 && !up.access_ports[0].open);

    w.cut = false;
    w.run(MINUTE);
    let up = seen(&mut w);
    assert_eq!((up.state(), up.restarts), (UserPlaneState::Associated, 1));

    w.cut = true;
    w.restart_control_plane();
    assert_eq!(seen(&mut w).state(), UserPlaneState::NeverSeen);
}

/// A user plane that comes back is shown as restoring until what it has was compared.
#[test]
fn an_operator_sees_that_a_user_plane_is_audited() {
    let state = |w: &mut World| match w.call(Request::ListUserPlanes) {
        Ok(Response::UserPlanes { user_planes }) => user_planes[0].state(),
        other => panic!("{other:?}"),
    };
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    w.cut = true;
    w.run(MINUTE);
    assert_eq!(state(&mut w), UserPlaneState::Lost);
    w.cut = false;
    w.held_up = Some(Vec::new());
    let mut seconds = 0;
    while state(&mut w) == UserPlaneState::Lost && seconds < 60 {
        w.run(Duration::from_secs(1));
        seconds += 1;
    }
    assert_eq!(state(&mut w), UserPlaneState::Restoring);
    let asked = w.held_up.take().unwrap();
    w.arrive_late(&asked);
    w.run(MINUTE);
    assert_eq!(state(&mut w), UserPlaneState::Associated);
}

#[test]
fn discovery_for_another_concentrator_is_left_alone() {
    let mut w = World::new(1, Choice::default());
    w.homes[0].dial(w.now);
    let Some(cpe::Output::Frame(mut padi)) = w.homes[0].poll_output() else {
        panic!("a PADI");
    };
    padi[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
    w.redirect(&padi);
    assert_eq!(w.count(Counter::DiscoveryIgnored), 1);
    padi[..6].copy_from_slice(&[0xff; 6]);
    w.redirect(&padi);
    w.run(Duration::from_secs(10));
    assert_eq!(w.homes[0].state(), State::Online);
}

#[test]
fn a_fixed_address_is_given_once() {
    let mut w = World::new(2, Choice::radius());
    let address: std::net::Ipv4Addr = "100.64.7.7".parse().unwrap();
    w.radius.accept = vec![(Kind::FRAMED_IP_ADDRESS, wire::radius::Value::Ipv4(address))];
    w.dial_all();
    let who: Vec<_> = w.homes.iter().filter_map(|h| h.ipv4()).collect();
    assert_eq!(who, [address]);
    assert_eq!(w.count(Counter::FixedAddressUnusable), 1);
    assert_eq!(w.online(), 2, "the other one has IPv6 alone");
}

#[test]
fn an_operator_sees_the_radius_servers() {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    let Ok(Response::AaaServers { servers }) = w.call(Request::ListAaaServers) else {
        panic!("an answer")
    };
    let rows: Vec<_> = servers
        .iter()
        .map(|row| (row.role(), row.requests))
        .collect();
    // Accounting-On and a Start
    let expected = [(AaaRole::Authentication, 1), (AaaRole::Accounting, 2)];
    assert_eq!(rows, expected, "{servers:?}");
}

#[test]
fn without_any_server_a_subscriber_is_refused_and_others_stay() {
    let mut w = World::new(2, Choice::radius());
    w.dial(0);
    w.run(Duration::from_secs(10));
    w.radius.dead = true;
    w.dial(1);
    w.run(MINUTE);
    assert!(w.count(Counter::AuthenticationUnavailable) >= 1);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_ne!(w.homes[1].state(), State::Online);
    w.radius.dead = false;
    w.dial_all();
    assert_eq!(w.online(), 2);
}

#[test]
fn a_session_that_only_the_user_plane_has_is_deleted_there() {
    let mut w = World::new(200, Choice::default());
    w.dial_all();
    let lost: Vec<Vec<u8>> = w
        .store
        .keys()
        .filter(|k| k.starts_with(b"session/"))
        .take(150)
        .cloned()
        .collect();
    lost.iter().for_each(|key| drop(w.store.remove(key)));
    w.homes.clear(); // nobody dials again, nobody answers
    w.restart_control_plane();
    w.run(Duration::from_secs(5));
    assert_eq!(w.plane.session_count(), 50);
    assert_eq!(
        w.up.subscribers().len(),
        50,
        "the other 150 are unknown sessions, of more than one block"
    );
}

#[test]
fn an_audit_puts_back_what_the_user_plane_lost_or_changed() {
    let mut w = World::new(100, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    w.up.forget_one();
    w.up.damage_one();
    assert_ne!(w.up.subscribers(), before);
    w.restart_control_plane();
    w.run(Duration::from_secs(5));
    assert_eq!(w.up.subscribers(), before);
    assert_eq!(w.online(), 100);
}

/// It is deleted because it ends, and once more because the audit misses it.
#[test]
fn a_session_that_ends_while_an_audit_misses_it_leaves_nothing_at_the_user_plane() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let (now, call) = (w.moment(), Request::CheckLedger { repair: true });
    w.plane.handle(now, Input::Call { ticket: 1, call });
    w.homes[0].leave_at_once();
    while let Some(output) = w.homes[0].poll_output() {
        if let cpe::Output::Frame(frame) = output {
            w.redirect(&frame);
        }
    }
    w.up.forget_one();
    w.run(Duration::from_secs(5));
    assert_eq!(w.plane.session_count(), 0);
    assert!(w.up.subscribers().is_empty());
}

#[test]
fn a_port_that_the_user_plane_does_not_have_keeps_no_audit_from_the_others() {
    let access_ports = "a: {role: access, device: a}, access0: {role: access, device: b}";
    let mut w = World::new(
        3,
        Choice {
            access_ports,
            ..Choice::default()
        },
    );
    w.dial_all();
    let before = w.up.subscribers();
    assert_eq!(before.len(), 3);
    w.up.forget_one();
    w.restart_control_plane();
    w.run(Duration::from_secs(5));
    assert_eq!(w.up.subscribers(), before);
}

#[test]
fn an_audit_finds_what_changed_while_the_path_was_cut() {
    let mut w = World::with_patient_homes(3);
    w.dial_all();
    let before = w.up.subscribers();
    w.cut = true;
    w.run(Duration::from_secs(45)); // the path is found dead, the sessions live
    w.up.forget_one();
    w.cut = false;
    w.run(MINUTE);
    assert_eq!(w.up.subscribers(), before);
    assert_eq!(w.sessions().len(), 3);
}
