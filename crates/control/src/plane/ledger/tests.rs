//! Each kind is broken on purpose: the ledger finds it, a repair puts it right, and nobody loses more than has to be.

use super::*;
use crate::addresses::{Holder, Kind};
use crate::lanes::LaneChoice;
use crate::session_ids::Home;
use crate::topology::InstanceId;
use crate::world::{Choice, World};
use core::time::Duration;
use northbound::{Fault, Refusal, Request as Call, Response};
use policy::Bindings;
use wire::pfcp::Lanes;

const HERE: InstanceId = InstanceId(0);
const GROUP: GroupId = GroupId(0);
const PORT: PortId = PortId(0);
const PLANE: UserPlaneId = UserPlaneId(0);

fn host(address: core::net::Ipv4Addr) -> Net {
    let net = core::net::IpAddr::from(address).into();
    let instance = HERE;
    Net { instance, net }
}

fn check(w: &mut World, repair: bool) -> Ledger {
    match w.call(Call::CheckLedger { repair }) {
        Ok(Response::Ledger { ledger }) => ledger,
        other => panic!("{other:?}"),
    }
}

fn online(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

/// Breaks something, and says how it is found, what is left of it after a repair, and who is online then.
fn broken(what: impl FnOnce(&mut ControlPlane, Now), kind: &str, fault: Fault) -> World {
    let mut w = online(4);
    let ledger = check(&mut w, false);
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    let now = w.moment();
    what(&mut w.plane, now);
    for _ in 0..2 {
        let ledger = check(&mut w, false);
        let found = |f: &northbound::Finding| f.kind == kind && f.fault() == fault && !f.repaired;
        assert!(
            ledger.findings.iter().any(found),
            "{kind}: {:#?}",
            ledger.findings
        );
        assert!(!ledger.is_balanced());
    }
    let ledger = check(&mut w, true);
    assert!(
        ledger.findings.iter().any(|f| f.kind == kind && f.repaired),
        "{kind}"
    );
    w.run(Duration::from_secs(5));
    let ledger = check(&mut w, false);
    assert!(ledger.is_balanced(), "{kind}: {:#?}", ledger.findings);
    w
}

fn net(text: &str) -> Net {
    Net {
        instance: HERE,
        net: text.parse().unwrap(),
    }
}

#[test]
fn homes_that_come_and_go_keep_it_balanced_and_leave_nothing() {
    let mut w = online(20);
    let ledger = check(&mut w, false);
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    let held = [
        "session",
        "address",
        "prefix block",
        "PPPoE session id",
        "timer",
    ];
    assert_eq!(held.map(|kind| ledger.held(kind)), [20, 40, 2, 20, 20]);
    (0..20).for_each(|n| w.hang_up(n));
    w.run(Duration::from_secs(60));
    let ledger = check(&mut w, false);
    let held = ledger.accounts.iter().filter(|a| a.booked + a.owned > 0);
    let held: Vec<&str> = held.map(|a| &*a.kind).collect();
    assert_eq!(held, ["access port"]);
    assert!(ledger.is_balanced());
}

#[test]
fn addresses() {
    let stray = |plane: &mut ControlPlane, _: Now| {
        let home = Holder {
            instance: HERE,
            group: GROUP,
            session: 77,
        };
        for kind in [Kind::Ipv4Address, Kind::Link] {
            let given = (plane.addresses).allocate(home, kind, &[], std::iter::empty());
            given.unwrap().unwrap();
        }
        let (fixed, none) = (net("203.0.113.7/32").net, Bindings::default());
        let given = (plane.addresses).give_fixed(home, Kind::Ipv4Address, fixed, &none);
        given.unwrap();
    };
    let w = broken(stray, "address", Fault::WithoutOwner);
    assert_eq!(w.online(), 4);

    let lost = |plane: &mut ControlPlane, _: Now| {
        let address = plane.sessions[0].ipv4().unwrap();
        plane.addresses.take(host(address));
    };
    let w = broken(lost, "address", Fault::Missing);
    assert_eq!(w.online(), 4);

    let twice = |plane: &mut ControlPlane, _: Now| {
        let address = plane.sessions[0].ipv4().unwrap();
        let entry = &mut plane.sessions[1];
        let own = entry.ipv4().unwrap();
        entry.let_go(|binding| binding.is_ipv4());
        entry.hold(policy::Binding::host(address.into()));
        plane.addresses.take(host(own));
    };
    let w = broken(twice, "address", Fault::Twice);
    assert_eq!(w.online(), 3, "who had it first keeps it");
}

#[test]
fn bindings_of_every_role() {
    use policy::{Binding, Role};
    for (role, prefix) in [
        (Role::Host, "2001:db8:5::1/128"),
        (Role::Delegated, "2001:db8:7700::/56"),
        (Role::Route, "203.0.113.0/29"),
    ] {
        let net = net(prefix);
        let binding = Binding {
            is_announced: true,
            ..Binding::new(role, net.net)
        };
        let stray = |plane: &mut ControlPlane, _: Now| {
            let nobody = Holder {
                instance: HERE,
                group: GROUP,
                session: 77,
            };
            let none = Bindings::default();
            plane.addresses.give_prefix(nobody, net.net, &none).unwrap();
        };
        let mut w = broken(stray, "address", Fault::WithoutOwner);
        assert_eq!((w.online(), check(&mut w, false).held("address")), (4, 8));

        let lost = |plane: &mut ControlPlane, _: Now| plane.sessions[0].hold(binding);
        let mut w = broken(lost, "address", Fault::Missing);
        assert_eq!((w.online(), check(&mut w, false).held("address")), (4, 9));

        let twice = |plane: &mut ControlPlane, now: Now| {
            lost(plane, now);
            plane.sessions[1].hold(binding);
            let home = Holder {
                instance: HERE,
                group: GROUP,
                session: 0,
            };
            let none = Bindings::default();
            plane.addresses.give_prefix(home, net.net, &none).unwrap();
        };
        let w = broken(twice, "address", Fault::Twice);
        assert_eq!(w.online(), 3, "who had it first keeps it");
    }
}

#[test]
fn nets() {
    let stray = |plane: &mut ControlPlane, now: Now| {
        let topology = &plane.topology;
        let net = net("198.18.7.0/24");
        plane.user_planes.announce(now.at, GROUP, net, topology);
    };
    let w = broken(stray, "prefix block", Fault::WithoutOwner);
    assert_eq!((w.online(), w.up.nets().len()), (4, 2));

    let lost = |plane: &mut ControlPlane, now: Now| {
        let topology = &plane.topology;
        let net = net("100.64.0.0/24");
        plane.user_planes.withdraw(now.at, GROUP, net, topology);
    };
    let w = broken(lost, "prefix block", Fault::Missing);
    assert_eq!(w.up.nets().len(), 2);

    let untold = |plane: &mut ControlPlane, _: Now| plane.user_planes.lose_announcement(GROUP);
    let w = broken(untold, "announced prefix block", Fault::Missing);
    assert_eq!(w.online(), 4);
    let stuck = |plane: &mut ControlPlane, _: Now| plane.user_planes.invent_telling(GROUP);
    broken(stuck, "wait", Fault::Missing);
}

#[test]
fn nets_are_told_anew_to_a_user_plane_that_lost_the_session_which_carries_them() {
    let mut w = online(1);
    w.up.forget_default();
    let (now, net) = (w.moment(), net("198.18.7.0/24"));
    let topology = &w.plane.topology;
    w.plane.user_planes.announce(now.at, GROUP, net, topology);
    w.run(Duration::from_secs(1));
    assert_eq!(w.up.nets().len(), 3);
}

#[test]
fn nets_that_were_refused_are_told_with_the_next() {
    let mut w = online(1);
    let lend = |w: &mut World, text: &str| {
        let (now, topology) = (w.moment(), &w.plane.topology);
        w.plane
            .user_planes
            .announce(now.at, GROUP, net(text), topology);
        w.run(Duration::from_secs(1));
        w.up.nets().len()
    };
    w.up.refuse_nets = Some(wire::pfcp::Cause::NO_RESOURCES_AVAILABLE);
    assert_eq!(lend(&mut w, "198.18.7.0/24"), 2);
    w.up.refuse_nets = None;
    assert_eq!(lend(&mut w, "198.18.8.0/24"), 4);
}

#[test]
fn session_ids_and_lines() {
    let kind = "PPPoE session id";
    let stray = |plane: &mut ControlPlane, now: Now| {
        plane
            .session_ids
            .get_mut(&SegmentId(0))
            .unwrap()
            .allocate(&LaneChoice::new(Lanes::even(1), 0), Home::NOBODY, now.at)
            .unwrap();
    };
    broken(stray, kind, Fault::WithoutOwner);
    let lost = |plane: &mut ControlPlane, now: Now| {
        let policy::Access::Pppoe(id) = plane.sessions[2].access;
        plane
            .session_ids
            .get_mut(&SegmentId(0))
            .unwrap()
            .release(id, Home::NOBODY, now.at);
    };
    let w = broken(lost, kind, Fault::Missing);
    assert_eq!(w.online(), 4);

    let kind = "access line";
    let stray = |plane: &mut ControlPlane, _: Now| plane.sessions.add_stray(77);
    broken(stray, kind, Fault::WithoutOwner);
    let lost = |plane: &mut ControlPlane, _: Now| plane.sessions.lose_indexes();
    let mut w = broken(lost, kind, Fault::Missing);
    // whoever dials in anew replaces its session, and has not two
    let config = w.homes[0].config().clone();
    w.homes[0] = cpe::Home::new(config, 99);
    w.dial(0);
    w.run(Duration::from_secs(10));
    assert_eq!(w.sessions().len(), 4);
}

#[test]
fn sessions_of_user_names() {
    let kind = "session of a user name";
    let stray = |plane: &mut ControlPlane, _: Now| plane.sessions.add_stray(77);
    broken(stray, kind, Fault::WithoutOwner);
    let lost = |plane: &mut ControlPlane, _: Now| plane.sessions.lose_indexes();
    let w = broken(lost, kind, Fault::Missing);
    assert_eq!(w.plane.sessions.of_user(b"home0").count(), 1);
}

#[test]
fn timers() {
    let stray = |plane: &mut ControlPlane, now: Now| {
        plane
            .sessions
            .wheel()
            .arm(500, now.at + Duration::from_secs(3600));
    };
    broken(stray, "timer", Fault::WithoutOwner);
    let lost = |plane: &mut ControlPlane, _: Now| plane.sessions.wheel().cancel(1);
    let w = broken(lost, "timer", Fault::Missing);
    assert_eq!(w.online(), 4);
    let late = |plane: &mut ControlPlane, now: Now| {
        plane
            .sessions
            .wheel()
            .arm(1, now.at + Duration::from_secs(86_400));
    };
    broken(late, "timer", Fault::Missing);
}

#[test]
fn counts() {
    let more = |plane: &mut ControlPlane, _: Now| plane.sessions.miscount_half_open(2);
    broken(more, "half-open count", Fault::WithoutOwner);
    let put_back = |plane: &mut ControlPlane, _: Now| plane.user_planes.set_resyncing(PLANE, 3);
    broken(put_back, "put back", Fault::WithoutOwner);
}

#[test]
fn requests_and_questions() {
    let stray = |plane: &mut ControlPlane, _: Now| {
        plane
            .user_planes
            .invent_request(Request::Modify(Seid::new(1, 0), 0));
    };
    broken(stray, "PFCP request", Fault::WithoutOwner);
    let stray = |plane: &mut ControlPlane, _: Now| {
        let (seid, attempt) = (Seid::new(1, 0), 1);
        plane
            .aaa
            .invent_pending(crate::aaa_clients::PendingAuth::Session { seid, attempt });
    };
    broken(stray, "AAA request", Fault::WithoutOwner);
    let lost = |plane: &mut ControlPlane, _: Now| plane.user_planes.lose_port(PORT);
    let mut w = broken(lost, "access port", Fault::Missing);
    w.hang_up(0);
    w.run(Duration::from_secs(10));
    w.dial(0);
    w.run(Duration::from_secs(10));
    assert_eq!(w.online(), 4, "the port is open again");
}

#[test]
fn whoever_waits_for_what_nobody_does() {
    let told = |plane: &mut ControlPlane, _: Now| plane.sessions[0].rules.up_seid = None;
    let w = broken(told, "wait", Fault::Missing);
    assert_eq!(w.online(), 4, "put back");

    let closing = |plane: &mut ControlPlane, _: Now| {
        let seid = plane.sessions[0].seid;
        let ending = crate::entry::Ending {
            cause: session::Cause::LostCarrier,
            lasted: Duration::ZERO,
            unix: 0,
        };
        plane.sessions.close(seid.index(), ending);
    };
    let mut w = broken(closing, "wait", Fault::Missing);
    assert_eq!(w.sessions().len(), 3, "it has ended");
    let put_back = |plane: &mut ControlPlane, now: Now| {
        closing(plane, now);
        let rules = &mut plane.sessions[0].rules;
        (rules.up_seid, rules.establishing, rules.put_back) = (None, true, true);
        plane.user_planes.set_resyncing(PLANE, 1);
    };
    broken(put_back, "wait", Fault::Missing);

    let listing = crate::plane::call::Listing {
        asked: 3,
        most: 2,
        filter: crate::plane::filter::Filter::default(),
    };
    w.plane.listings.insert(77, listing);
    let ledger = check(&mut w, false);
    assert!(
        ledger
            .findings
            .iter()
            .any(|f| f.kind == "wait" && f.what.contains("counters"))
    );
    let lost = w.call(Call::CheckLedger { repair: true });
    assert!(
        matches!(lost, Ok(Response::Sessions { .. })),
        "the lost call is answered first"
    );
    assert!(check(&mut w, false).findings.iter().all(|f| f.repaired));
}

#[test]
fn a_family_that_waits_for_a_batch_that_nobody_writes() {
    let mut w = World::new(1, Choice::default());
    w.disk_stalls = true;
    w.dial(0);
    w.run(Duration::from_secs(2));
    let ledger = check(&mut w, false);
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    w.plane.journal.mistake_batch();
    let ledger = check(&mut w, false);
    assert!(
        ledger.findings.iter().any(|f| f.kind == "wait"),
        "{ledger:#?}"
    );
    check(&mut w, true);
    w.disk_recovers();
    w.run(Duration::from_secs(10));
    assert_eq!(w.online(), 1);
    assert!(check(&mut w, false).is_balanced());
}

#[test]
fn user_planes_are_audited_and_put_right() {
    let mut w = online(4);
    let rules = |ledger: &Ledger| ledger.held("rules");
    assert_eq!(rules(&check(&mut w, false)), 4);
    w.up.damage_one();
    w.up.forget_last();
    let ledger = check(&mut w, false);
    let told: Vec<_> = ledger
        .findings
        .iter()
        .map(|f| (&*f.kind, f.fault(), f.repaired))
        .collect();
    assert_eq!(told, [("rules", Fault::Missing, true); 2]);
    assert_eq!(w.up.subscribers().len(), 4);
    let ledger = check(&mut w, false);
    assert!(
        ledger.is_balanced() && ledger.findings.is_empty(),
        "{ledger:#?}"
    );

    // what only the user plane has goes
    let index = w.plane.sessions.find(w.plane.sessions[0].seid).unwrap();
    w.plane.entry(index).rules.up_seid = None;
    let now = w.moment();
    w.plane.release(now, index, session::Cause::LostCarrier);
    let ledger = check(&mut w, false);
    let found = &ledger.findings[0];
    assert_eq!(
        (&*found.kind, found.fault()),
        ("rules", Fault::WithoutOwner)
    );
    w.run(Duration::from_secs(1));
    assert_eq!(w.up.subscribers().len(), 3);

    // an audit that does not come to an end is not waited for for ever
    w.cut = true;
    let now = w.moment();
    let call = |repair| Call::CheckLedger { repair };
    w.plane.handle(
        now,
        crate::Input::Call {
            ticket: 5,
            call: call(false),
        },
    );
    w.settle();
    let other = w.call(call(false));
    assert!(
        matches!(other, Err(Refusal::Busy(_))),
        "the first is answered: {other:?}"
    );
    w.run(Duration::from_secs(120));
    w.cut = false;
    w.run(Duration::from_secs(60));
    assert!(check(&mut w, false).is_balanced());
}

#[test]
fn an_audit_whose_default_session_is_gone_begins_again_on_a_new_one() {
    let mut w = online(4);
    w.up.forget_default();
    w.up.damage_one();
    let told: Vec<_> = check(&mut w, false)
        .findings
        .into_iter()
        .map(|f| (f.kind.clone(), f.fault(), f.repaired))
        .collect();
    assert_eq!(told, [("rules".into(), Fault::Missing, true)]);
    assert_eq!(w.up.nets().len(), 2);
    assert!(check(&mut w, false).findings.is_empty());
}

#[test]
fn an_answer_about_an_audit_that_was_replaced_is_not_taken_for_one_about_the_next() {
    let mut w = online(100);
    let names = |w: &World| -> Vec<_> {
        w.plane
            .sessions
            .entries()
            .map(|e| e.rules.up_seid)
            .collect()
    };
    let before = names(&w);
    w.up.damage_one();
    let now = w.moment();
    for ticket in [5, 6] {
        let call = Call::CheckLedger { repair: false };
        w.plane.handle(now, crate::Input::Call { ticket, call });
    }
    w.settle();
    let told_again = names(&w)
        .iter()
        .zip(&before)
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!(told_again, 1, "the one that was damaged");
}
