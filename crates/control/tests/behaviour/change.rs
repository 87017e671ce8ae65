//! A configuration that changes under running sessions: it concerns whom it concerns, and does what was planned.

use crate::world::radius::number;
use crate::world::{Choice, World};
use control::counters::Counter;
use control::plane::Effect;
use core::net::IpAddr;
use core::time::Duration;
use northbound::{PolicySetting, Request, Response};
use policy::{PacketSettings, Rate};
use proptest::prelude::*;
use wire::eth::Frame;
use wire::pfcp::SluiceFeatures;
use wire::radius::Kind;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn texts(effects: &[Effect]) -> String {
    let lines = effects
        .iter()
        .map(|effect| format!("{} ({})", effect.text, effect.ends));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_mtu_of_those_who_are_online_changes_and_nobody_ends() {
    let mut w = World::new(1000, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    assert!(
        before
            .iter()
            .all(|s| s.forwarding.packets.mtu == Some(1492))
    );
    let done = w
        .configure(&["set subscriber-profiles home mtu 1400"])
        .unwrap();
    assert!(
        texts(&done).contains("the MTU of 1000 sessions of profile home changes (false)"),
        "{}",
        texts(&done)
    );
    w.run(SECOND);
    let after = w.up.subscribers();
    assert!(after.iter().all(|s| s.forwarding.packets.mtu == Some(1400)));
    assert_eq!((w.online(), after.len()), (1000, 1000));
    w.configure(&["delete subscriber-profiles home mtu"])
        .unwrap();
    w.run(SECOND);
    assert_eq!(
        w.up.subscribers(),
        before,
        "a change and its reverse change nothing"
    );
    w.assert_balanced();
}

#[test]
fn sessions_of_a_port_that_gets_another_device_end_and_are_told_beforehand() {
    let mut w = World::new(20, Choice::default());
    w.dial_all();
    let done = w.configure(&[OTHER_DEVICE]).unwrap();
    let text = texts(&done);
    assert!(
        text.contains("20 sessions end: port access0 of up1 gets other devices (true)"),
        "{text}"
    );
    w.run(MINUTE);
    assert_eq!((w.online(), w.up.subscribers().len()), (0, 0));
    w.assert_balanced();
    // The same device again is no change.
    let same = w.configure(&[OTHER_DEVICE]).unwrap();
    assert!(!texts(&same).contains("end"));
}

/// More sessions than are changed at once.
const MANY: usize = 400;
const OTHER_DEVICE: &str = "set user-planes up1 ports access0 device net_af_packet9,iface=acc9";

#[test]
fn who_comes_by_the_other_device_while_those_of_before_still_end_stays() {
    let mut w = World::new(MANY, Choice::default());
    w.dial_all();
    w.configure(&[OTHER_DEVICE]).unwrap();
    let left = w.online();
    assert!((1..MANY).contains(&left), "{left} are left after a portion");
    assert!(w.plane.is_retiring(), "their user plane waits for them");
    w.dial(0);
    assert_eq!(w.online(), left + 1);
    w.run(SECOND);
    assert_eq!((w.online(), w.up.subscribers().len()), (1, 1));
    assert!(!w.plane.is_retiring());
    w.assert_balanced();
}

#[test]
fn what_a_change_has_left_to_do_is_done_by_the_next_run() {
    for (line, mtu, online) in [
        ("set subscriber-profiles home mtu 1400", 1400, MANY),
        ("delete user-planes up1 ports access0", 1492, 0),
    ] {
        let mut w = World::new(MANY, Choice::default());
        w.dial_all();
        w.configure(&[line]).unwrap();
        let done = mtus(&w).into_iter().filter(|of| *of == 1400).count();
        assert!(done < MANY && w.online() > 0, "{line} is done at once");
        w.restart_control_plane();
        w.run(MINUTE);
        assert_eq!((w.online(), mtus(&w)), (online, vec![mtu; online]));
        w.assert_balanced();
    }
}

#[test]
fn a_change_before_the_one_before_it_is_carried_out_takes_its_place() {
    let mut w = World::new(MANY, Choice::default());
    w.dial_all();
    for line in [
        "set subscriber-profiles home mtu 1400",
        "set access-profiles pppoe router-advertisements interval 900",
        "set subscriber-profiles home mtu 1300",
        "delete users home7",
    ] {
        w.configure(&[line]).unwrap();
    }
    w.run(SECOND);
    assert_eq!((w.online(), mtus(&w)), (MANY - 1, vec![1300; MANY - 1]));
    w.assert_balanced();
}

#[test]
fn whoever_has_to_end_does_not_wait_for_policies_that_the_user_plane_does_not_answer() {
    let mut w = World::new(900, Choice::default());
    w.dial_all();
    w.up.silent_about_changes = true;
    w.configure(&["set subscriber-profiles home mtu 1400"])
        .unwrap();
    w.run(SECOND / 10);
    w.configure(&["delete users home7"]).unwrap();
    w.run(SECOND / 10);
    assert_eq!(w.online(), 899);
    w.up.silent_about_changes = false;
    w.run(MINUTE);
    assert_eq!((w.online(), mtus(&w)), (899, vec![1400; 899]));
    w.assert_balanced();
}

/// The MTUs that the user plane has for its subscribers.
fn mtus(w: &World) -> Vec<u16> {
    let packets = w.up.subscribers().into_iter().map(|s| s.forwarding.packets);
    packets.map(|packets| packets.largest_packet()).collect()
}

/// What an operator is told of a session's MTU.
fn mtu_row(w: &mut World, id: &str) -> Option<PolicySetting> {
    let subscriber = id.to_owned();
    let Ok(Response::Subscriber { found, .. }) = w.call(Request::FindSubscriber {
        subscriber,
        from: 0,
    }) else {
        panic!("an answer")
    };
    let mut policy = found.subscribers[0].policy.iter();
    policy.find(|setting| setting.name == "mtu").cloned()
}

#[test]
fn a_policy_that_nobody_has_accepted_is_not_in_force_whatever_else_changes() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let id = w.sessions()[0].id.clone();
    w.up.silent_about_changes = true;
    for line in [
        "set subscriber-profiles home mtu 1400",
        "set subscriber-profiles home session-timeout 7200",
        "set subscriber-profiles home session-timeout 3600",
    ] {
        w.configure(&[line]).unwrap();
        let mtu = mtu_row(&mut w, &id).unwrap();
        assert_eq!(
            (&*mtu.value, mtu.wanted.as_deref()),
            ("1492", Some("1400")),
            "{line}"
        );
    }
    w.up.silent_about_changes = false;
    w.run(MINUTE);
    let mtu = mtu_row(&mut w, &id).unwrap();
    assert_eq!((&*mtu.value, mtu.wanted.as_deref()), ("1400", None));
    assert_eq!((w.online(), mtus(&w)), (1, vec![1400]));
    w.assert_balanced();
}

#[test]
fn a_change_that_is_taken_back_while_it_is_under_way_is_taken_back() {
    for least_mtu in [0, 1450] {
        let mut w = World::new(3, Choice::default());
        w.dial_all();
        w.be_late();
        w.configure(&["set subscriber-profiles home mtu 1400"])
            .unwrap();
        w.configure(&["delete subscriber-profiles home mtu"])
            .unwrap();
        w.up.least_mtu = least_mtu;
        w.answer_late();
        w.run(SECOND);
        assert_eq!((w.online(), mtus(&w)), (3, vec![1492; 3]), "{least_mtu}");
        let id = w.sessions()[0].id.clone();
        let mtu = mtu_row(&mut w, &id).unwrap();
        assert_eq!((&*mtu.value, mtu.wanted.as_deref()), ("1492", None));
        w.assert_balanced();
    }
}

#[test]
fn a_change_while_the_path_is_being_lost_is_told_when_it_is_back() {
    for seconds in 0..60 {
        let mut w = World::with_patient_homes(1);
        w.dial_all();
        w.cut = true;
        w.run(Duration::from_secs(seconds));
        w.configure(&["set subscriber-profiles home mtu 1400"])
            .unwrap();
        w.run(2 * MINUTE);
        w.cut = false;
        w.run(MINUTE);
        let found = (w.online(), mtus(&w));
        assert_eq!(found, (1, vec![1400]), "{seconds} s after the path was cut");
        w.assert_balanced();
    }
}

#[test]
fn a_policy_that_the_user_plane_refuses_leaves_the_one_before_in_force() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    w.up.least_mtu = 1450;
    let change = ["set subscriber-profiles home mtu 1400"];
    w.configure(&change).unwrap();
    w.run(MINUTE);
    assert_eq!((w.online(), mtus(&w)), (3, vec![1492; 3]));
    assert_eq!(w.count(Counter::PolicyRefused), 3);
    let id = w.sessions()[0].id.clone();
    let mtu = mtu_row(&mut w, &id);
    let mtu = mtu
        .as_ref()
        .map(|s| (&*s.value, s.wanted.as_deref(), &*s.origin));
    assert_eq!(mtu, Some(("1492", Some("1400"), "profile")));
    // An audit, and a restart, find nothing to put right and ask again.
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!((w.online(), mtus(&w)), (3, vec![1492; 3]));
    assert_eq!(w.count(Counter::PolicyRefused), 3);
    // One that can be carried out is.
    w.configure(&["set subscriber-profiles home mtu 1460"])
        .unwrap();
    w.run(SECOND);
    assert_eq!((w.online(), mtus(&w)), (3, vec![1460; 3]));
    w.assert_balanced();
}

#[test]
fn a_policy_whose_answer_is_lost_is_told_again_until_it_is_known() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    w.up.silent_about_changes = true;
    w.configure(&["set subscriber-profiles home mtu 1400"])
        .unwrap();
    w.run(2 * MINUTE);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (3, 0));
    w.up.silent_about_changes = false;
    w.run(MINUTE);
    assert_eq!((w.online(), mtus(&w)), (3, vec![1400; 3]));
    w.assert_balanced();
}

#[test]
fn a_policy_that_changes_while_the_user_plane_is_away_is_told_when_it_is_back() {
    for dies in [false, true] {
        let mut w = World::with_patient_homes(3);
        w.dial_all();
        w.cut = true;
        w.run(MINUTE);
        w.configure(&["set subscriber-profiles home mtu 1400"])
            .unwrap();
        if dies {
            w.restart_control_plane();
        }
        w.run(MINUTE);
        assert_eq!((w.online(), mtus(&w)), (3, vec![1492; 3]));
        w.cut = false;
        w.run(MINUTE);
        assert_eq!((w.online(), mtus(&w)), (3, vec![1400; 3]));
        w.assert_balanced();
    }
}

#[test]
fn what_is_sent_to_a_subscriber_has_the_priority_of_its_profile() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    w.configure(&["set subscriber-profiles home vlan-priority 5"])
        .unwrap();
    w.run(SECOND);
    let subscribers = w.up.subscribers();
    assert_eq!(subscribers[0].forwarding.packets.vlan_priority, 5);
    // An echo request, and the answer to one that dials in, which has no policy yet.
    w.heard.clear();
    w.run(MINUTE);
    let priorities = |w: &World| {
        let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
        let tags = frames.map(|frame| frame.header.tags.outer.unwrap());
        tags.map(|tag| tag.pcp).collect::<Vec<u8>>()
    };
    let echoes = priorities(&w);
    assert!(
        !echoes.is_empty() && echoes.iter().all(|pcp| *pcp == 5),
        "{echoes:?}"
    );
    w.hang_up(0);
    w.run(SECOND);
    w.heard.clear();
    w.dial(0);
    w.run(SECOND);
    assert_eq!(priorities(&w)[0], 0);
    assert_eq!(priorities(&w).last(), Some(&5));
}

#[test]
fn a_user_plane_that_is_too_old_for_a_policy_costs_nobody_its_session() {
    let mut w = World::new(2, Choice::default());
    w.with_earlier_user_plane(SluiceFeatures::default());
    w.run(MINUTE);
    w.dial(0);
    w.run(SECOND);
    assert_eq!(w.online(), 1);
    w.configure(&["set subscriber-profiles home vlan-priority 5"])
        .unwrap();
    w.run(MINUTE);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (1, 1));
    // One that dials in now is told, and the operator can read why.
    w.dial(1);
    w.run(SECOND);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (1, 2));
    w.configure(&["delete subscriber-profiles home vlan-priority"])
        .unwrap();
    w.dial(1);
    w.run(SECOND);
    assert_eq!(w.online(), 2);
    w.assert_balanced();
}

#[test]
fn a_setting_that_a_user_plane_does_not_know_is_refused_by_name_and_others_are_taken() {
    let mut w = World::new(2, Choice::default());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::BINDINGS);
    w.run(MINUTE);
    w.dial(0);
    w.run(SECOND);
    w.configure(&["set subscriber-profiles home vlan-priority 5"])
        .unwrap();
    w.run(SECOND);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (1, 0));
    w.configure(&["set subscriber-profiles home rate-down 1000"])
        .unwrap();
    w.run(SECOND);
    w.dial(1);
    w.run(SECOND);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (1, 2));
    let packets = w.up.subscribers()[0].forwarding.packets;
    assert_eq!((packets.vlan_priority, packets.rate_down), (5, None));
    w.assert_balanced();
}

#[test]
fn rates_of_the_profile_reach_the_user_plane_and_end_with_it() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let rates = |w: &World| {
        let packets = w.up.subscribers()[0].forwarding.packets;
        (packets.rate_up, packets.rate_down)
    };
    w.configure(&["set subscriber-profiles home rate-down 50000"])
        .unwrap();
    w.run(SECOND);
    assert_eq!(rates(&w), (None, Some(Rate::kbps(50_000))));
    w.configure(&["set subscriber-profiles home rate-up 10000"])
        .unwrap();
    w.run(SECOND);
    assert_eq!(
        rates(&w),
        (Some(Rate::kbps(10_000)), Some(Rate::kbps(50_000)))
    );
    w.configure(&[
        "delete subscriber-profiles home rate-up",
        "delete subscriber-profiles home rate-down",
    ])
    .unwrap();
    w.run(SECOND);
    assert_eq!((w.online(), rates(&w)), (1, (None, None)));
    w.assert_balanced();
}

#[test]
fn who_is_online_hears_of_other_name_servers_by_router_advertisements() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let server = "2001:db8::54".parse::<IpAddr>().unwrap();
    assert!(!w.homes[0].dns().any(|known| known == server));
    w.configure(&[&format!("set subscriber-profiles home dns {server}")])
        .unwrap();
    w.run(20 * MINUTE);
    assert!(w.homes[0].dns().any(|known| known == server));
    assert_eq!(w.online(), 1);
}

#[test]
fn a_user_plane_that_is_replaced_by_an_older_one_has_what_it_can_do() {
    let mut w = World::with_patient_homes(2);
    w.configure(&["set subscriber-profiles home vlan-priority 5"])
        .unwrap();
    w.dial_all();
    w.with_earlier_user_plane(SluiceFeatures::default());
    w.run(2 * MINUTE);
    let packets = w.up.subscribers().into_iter().map(|s| s.forwarding.packets);
    let packets: Vec<PacketSettings> = packets.collect();
    assert_eq!(packets, [PacketSettings::with_mtu(1492); 2]);
    assert_eq!(w.online(), 2);
    assert!(w.count(Counter::PolicyRefused) > 0, "nobody would know");
    // An audit finds nothing to put right.
    let names = w.up.names();
    w.restart_control_plane();
    w.run(2 * MINUTE);
    assert_eq!((w.online(), w.up.names()), (2, names));
    w.assert_balanced();
}

#[test]
fn an_idle_session_ends_and_its_record_says_why() {
    let mut w = World::new(1, Choice::radius());
    w.radius.accept = vec![(Kind::IDLE_TIMEOUT, 600.into())];
    w.dial_all();
    let packets = w.up.subscribers()[0].forwarding.packets;
    assert_eq!(packets.idle_timeout, Some(Duration::from_secs(600)));
    w.user_plane_reports(500);
    w.run(SECOND);
    assert_eq!(w.online(), 1, "a report alone ends nothing");
    w.up.says_idle = true;
    w.user_plane_reports(0);
    w.run(MINUTE);
    assert_eq!(
        (w.online(), w.sessions().len(), w.stored_sessions()),
        (0, 0, 0)
    );
    let stop = w.radius.records.last().unwrap();
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 4, "idle timeout");
    assert_eq!(number(stop, Kind::ACCT_INPUT_OCTETS), 500 + 70);
    w.assert_balanced();
}

#[test]
fn without_an_idle_timeout_nobody_is_idle() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    w.up.says_idle = true;
    w.user_plane_reports(0);
    w.run(MINUTE);
    assert_eq!(w.online(), 1);
}

#[test]
fn framed_mtu_comes_before_the_profile_s_and_outlives_a_restart() {
    let mut w = World::new(3, Choice::radius());
    w.radius.accept = vec![(Kind::FRAMED_MTU, 1400.into())];
    w.dial(0);
    w.run(SECOND);
    // One that no subscriber profile could have is not used.
    w.radius.accept = vec![(Kind::FRAMED_MTU, 64.into())];
    w.dial(1);
    w.run(SECOND);
    assert_eq!(mtus(&w), [1400, 1492]);
    w.restart_control_plane();
    w.configure(&["set subscriber-profiles home mtu 1450"])
        .unwrap();
    w.run(MINUTE);
    assert_eq!((w.online(), mtus(&w)), (2, vec![1400, 1450]));
    w.assert_balanced();
}

#[test]
fn a_change_that_concerns_no_session_sends_and_stores_nothing_about_one() {
    let mut w = World::new(1000, Choice::default());
    w.dial_all();
    let said = w.said;
    let done = w
        .configure(&[
            "set users somebody password else",
            "set subscriber-profiles gold mtu 1300",
            "set ipv4-pools more prefix 100.80.0.0/16",
            "set access-profiles other ac-name other",
        ])
        .unwrap();
    assert!(
        done.iter().all(|effect| effect.sessions == 0),
        "{}",
        texts(&done)
    );
    assert_eq!(w.said, said, "no datagram, and no record");
    assert_eq!(w.online(), 1000);
    w.run(SECOND);
    w.assert_balanced();
}

#[test]
fn sessions_of_a_port_that_goes_end_and_the_port_is_closed() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    let nets = w.up.nets();
    let done = w
        .configure(&["delete user-planes up1 ports access0"])
        .unwrap();
    assert!(
        texts(&done).contains("3 sessions end: port access0 of up1 is removed (true)"),
        "{}",
        texts(&done)
    );
    w.run(MINUTE);
    assert_eq!(
        (
            w.plane.session_count(),
            w.up.subscribers().len(),
            w.stored_sessions()
        ),
        (0, 0, 0)
    );
    assert_eq!(w.up.default_sessions(), 0);
    assert!(w.numbers().is_empty(), "{:?}", w.numbers());
    w.assert_balanced();
    let port = [
        "set user-planes up1 ports access0 role access",
        "set user-planes up1 ports access0 device a",
        "set user-planes up1 ports access0 segments all access-profile pppoe",
    ];
    w.configure(&port).unwrap();
    w.run(SECOND);
    w.dial_all();
    assert_eq!((w.online(), w.up.nets().len()), (3, nets.len()));
    w.assert_balanced();
}

#[test]
fn a_port_that_comes_back_is_open_however_far_its_farewell_was() {
    for milliseconds in (0..4000).step_by(100) {
        let mut w = World::new(1, Choice::default());
        w.configure(&["delete user-planes up1 ports access0"])
            .unwrap();
        w.run(Duration::from_millis(milliseconds));
        let port = [
            "set user-planes up1 ports access0 role access",
            "set user-planes up1 ports access0 device a",
            "set user-planes up1 ports access0 segments all access-profile pppoe",
        ];
        w.configure(&port).unwrap();
        w.run(5 * SECOND);
        w.assert_balanced();
        w.dial_all();
        assert_eq!(w.online(), 1, "after {milliseconds} ms");
    }
}

#[test]
fn a_port_that_is_refused_though_its_user_plane_knows_it_by_now_is_asked_for_again() {
    let mut w = World::new(1, Choice::default());
    w.configure(&["delete user-planes up1 ports access0"])
        .unwrap();
    w.run(5 * SECOND);
    (w.cut, w.up.refuse_defaults) = (true, 1);
    w.configure(&[
        "set user-planes up1 ports access0 role access",
        "set user-planes up1 ports access0 device a",
        "set user-planes up1 ports access0 segments all access-profile pppoe",
    ])
    .unwrap();
    // it has its document before the request reaches it, and the answer is of before that
    let now = w.moment();
    w.plane.user_plane_was_told(now, "up1");
    w.cut = false;
    w.run(5 * SECOND);
    assert_eq!((w.up.refuse_defaults, w.up.default_sessions()), (0, 1));
    w.dial_all();
    assert_eq!(w.online(), 1);
    w.assert_balanced();
}

#[test]
fn a_port_that_goes_while_nobody_is_there_to_do_it_goes_later() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    w.cut = true;
    w.configure(&["delete user-planes up1 ports access0"])
        .unwrap();
    w.run(MINUTE);
    w.restart_control_plane();
    w.run(MINUTE);
    w.cut = false;
    w.run(2 * MINUTE);
    assert_eq!(
        (
            w.plane.session_count(),
            w.up.subscribers().len(),
            w.stored_sessions()
        ),
        (0, 0, 0)
    );
    assert_eq!(w.up.default_sessions(), 0);
    assert!(w.numbers().is_empty(), "{:?}", w.numbers());
}

#[test]
fn a_user_plane_whose_time_is_over_goes_with_what_it_did_not_answer() {
    for seconds in 0..40 {
        let mut w = World::new(1, Choice::default());
        w.dial_all();
        w.cut = true;
        w.run(seconds * SECOND);
        w.configure(&["delete user-planes up1"]).unwrap();
        for _ in 0..20 {
            // a busy machine: much is due at once
            w.now += 5 * SECOND;
            w.plane.on_timeout(w.moment());
            w.run(Duration::ZERO);
        }
        let left = (w.plane.session_count(), w.stored_sessions());
        assert_eq!(left, (0, 0), "cut off for {seconds} s");
        w.assert_balanced();
    }
}

#[test]
fn a_user_plane_that_goes_is_released() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    let done = w.configure(&["delete user-planes up1"]).unwrap();
    assert!(
        texts(&done).contains("3 sessions end: user plane up1 is removed (true)"),
        "{}",
        texts(&done)
    );
    w.run(MINUTE);
    assert_eq!(
        (
            w.plane.session_count(),
            w.up.subscribers().len(),
            w.stored_sessions()
        ),
        (0, 0, 0)
    );
    assert!(w.numbers().is_empty(), "{:?}", w.numbers());
    assert!(!w.store.keys().any(|key| key.starts_with(b"user-plane/")));
    w.assert_balanced();
}

#[test]
fn a_group_that_moves_keeps_its_sessions_and_their_numbers_over_a_restart() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    let before = w.up.subscribers();
    let lines = [
        "set subscriber-groups east virtual-mac 02:00:00:00:00:77",
        "set user-planes up1 ports access0 subscriber-group east",
    ];
    w.configure(&lines).unwrap();
    w.run(SECOND);
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.up.subscribers(), before, "who is online stays as it is");
    assert_eq!(w.online(), 3);
    w.assert_balanced();
    w.hang_up(0);
    w.run(SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    let macs: Vec<_> =
        w.up.subscribers()
            .iter()
            .map(|s| s.circuit.gateway_mac)
            .collect();
    assert!(macs.contains(&[2, 0, 0, 0, 0, 0x77].into()), "{macs:?}");
    assert_eq!(w.online(), 3);
    w.assert_balanced();
}

#[test]
fn what_subscribers_have_is_not_taken_away() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    for (lines, says) in [
        (
            vec!["delete ipv4-pools homes"],
            "2 sessions have addresses that the changed pool",
        ),
        (
            vec!["set ipv4-pools homes prefix 100.99.0.0/16"],
            "such as 100.64.0.",
        ),
        (
            vec!["set network-instances default gateway 100.64.0.2"],
            "such as 100.64.0.2",
        ),
        (
            vec!["set user-planes up1 address 2001:db8::2"],
            "expected one of ours of that family",
        ),
    ] {
        let faults = w.configure(&lines).expect_err(says);
        assert!(faults[0].to_string().contains(says), "{faults:?}");
    }
    w.configure(&["set ipv4-pools homes prefix 100.64.0.0/12"])
        .unwrap();
    assert_eq!(w.online(), 2);
    w.assert_balanced();
}

#[test]
fn a_session_timeout_counts_from_the_beginning_of_the_session() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    w.homes
        .iter_mut()
        .for_each(|home| *home = cpe::Home::new(home.config().clone(), 7));
    let done = w
        .configure(&["set subscriber-profiles home session-timeout 30"])
        .unwrap();
    assert!(texts(&done).contains("the session timeout of 2 sessions of profile home changes"));
    w.run(10 * SECOND);
    assert_eq!(w.plane.session_count(), 2);
    w.run(25 * SECOND);
    assert_eq!(w.plane.session_count(), 0);
    w.assert_balanced();
}

/// Edits that a small configuration bears, most of them in any order.
const EDITS: [&str; 31] = [
    "set subscriber-profiles home mtu 1400",
    "set subscriber-profiles home mtu 1300",
    "delete subscriber-profiles home mtu",
    "set subscriber-profiles home session-timeout 300",
    "delete subscriber-profiles home session-timeout",
    "set subscriber-profiles gold mtu 1200",
    "delete subscriber-profiles gold",
    "set users home0 subscriber-profile gold",
    "delete users home0 subscriber-profile",
    "set users home1 rate-down 20000",
    "delete users home1 rate-down",
    "set users home2 routes 203.0.113.0/28",
    "set users home2 ipv4-address 203.0.113.77",
    "delete users home3",
    "set access-profiles pppoe echo-interval 5",
    "delete access-profiles pppoe echo-interval",
    "set access-profiles pppoe subscriber-profile gold",
    "set access-profiles pppoe subscriber-profile home",
    "set subscriber-groups east virtual-mac 02:00:00:00:00:77",
    "set user-planes up1 ports access0 subscriber-group east",
    "delete user-planes up1 ports access0 subscriber-group",
    "set user-planes up1 ports access0 segments all s-vlans 100-199",
    "set user-planes up1 ports access0 segments all s-vlans 200",
    "delete user-planes up1 ports access0 segments all s-vlans",
    "set user-planes up1 ports access0 role core",
    "set user-planes up1 ports access0 role access",
    "set ipv4-pools homes net-length 26",
    "delete ipv4-pools homes net-length",
    "set ipv4-pools more prefix 100.80.0.0/24",
    "delete ipv4-pools more",
    "set limits half-open 3",
];

#[derive(Clone, Debug)]
enum Step {
    Edit(usize),
    Dial(usize),
    HangUp(usize),
    Pass(u64),
    RestartControlPlane,
    RestartUserPlane,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..EDITS.len()).prop_map(Step::Edit),
        4 => (0..6usize).prop_map(Step::Dial),
        2 => (0..6usize).prop_map(Step::HangUp),
        3 => (1..20_000u64).prop_map(Step::Pass),
        1 => Just(Step::RestartControlPlane),
        1 => Just(Step::RestartUserPlane),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_changed_the_books_balance_and_the_rules_are_those_of_a_fresh_start(steps in steps()) {
        let mut w = World::new(6, Choice::default());
        for step in steps {
            match step {
                // one that contradicts what is there, or what subscribers have, is refused
                Step::Edit(n) if w.can_edit(EDITS[n]) => drop(w.configure(&[EDITS[n]])),
                Step::Edit(_) => {}
                Step::Dial(n) => w.dial(n),
                Step::HangUp(n) => w.hang_up(n),
                Step::Pass(milliseconds) => w.run(Duration::from_millis(milliseconds)),
                Step::RestartControlPlane => w.restart_control_plane(),
                Step::RestartUserPlane => w.restart_user_plane(),
            }
        }
        // whoever still tries to dial in gives up
        let trying = |w: &World, n: &usize| w.homes[*n].state() != cpe::State::Online;
        let trying: Vec<usize> = (0..6).filter(|n| trying(&w, n)).collect();
        trying.into_iter().for_each(|n| w.hang_up(n));
        // nobody's time is over while what there is is compared
        let timeout = "delete subscriber-profiles home session-timeout";
        if w.can_edit(timeout) {
            w.configure(&[timeout]).unwrap();
        }
        w.run(2 * MINUTE);
        w.assert_balanced();
        let (rules, nets, numbers) = (w.up.subscribers(), w.up.nets(), w.numbers());
        w.restart_control_plane();
        w.run(10 * SECOND);
        prop_assert_eq!(&w.up.subscribers(), &rules);
        w.restart_user_plane();
        w.user_plane_calls();
        w.run(10 * SECOND);
        let mut both = [w.up.nets(), nets];
        both.iter_mut().for_each(|nets| nets.sort());
        prop_assert_eq!(&both[0], &both[1]);
        prop_assert_eq!(w.up.subscribers(), rules);
        prop_assert_eq!(w.numbers(), numbers);
        w.assert_balanced();
    }
}
