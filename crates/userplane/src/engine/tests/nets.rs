//! Announced prefixes while control planes return, replace their default sessions, and leave.

use super::*;

const NETS: [&str; 2] = ["100.64.0.0/24", "100.64.1.0/24"];

fn tell(bench: &mut Bench, seid: u64, nets: &[&str]) {
    for message in DefaultSpec::add_nets(&default_spec(nets).nets) {
        bench.modify(seid, message);
    }
}

/// A control plane that had announced prefixes returns, and has established its default session again.
fn returned() -> (Bench, u64) {
    let mut bench = Bench::new();
    bench.default_session(&NETS);
    bench.nets.clear();
    bench.engine.peer_up(bench.now, cp());
    let seid = bench.default_session(&[]);
    assert_eq!(bench.nets, [], "nobody wants them now, but somebody will");
    (bench, seid)
}

fn withdrawn(nets: &[&str]) -> Vec<(bool, Announcement)> {
    nets.iter().map(|text| (false, net(text).into())).collect()
}

#[test]
fn a_control_plane_that_came_back_has_ten_seconds_to_tell_its_nets_again() {
    let (mut bench, seid) = returned();
    tell(&mut bench, seid, &NETS[..1]);
    bench.pass(9);
    assert_eq!(bench.nets, [], "the first one is wanted, as before");
    bench.pass(1);
    assert_eq!(
        bench.nets,
        withdrawn(&NETS[1..]),
        "the second one was not told again"
    );
}

#[test]
fn nets_that_are_told_after_the_audit_were_announced_all_the_while() {
    let (mut bench, seid) = returned();
    bench.audit(seid, true, &[]);
    tell(&mut bench, seid, &NETS);
    bench.pass(10);
    assert_eq!(bench.nets, []);
}

#[test]
fn nets_wait_for_a_control_plane_that_is_lost_again() {
    let (mut bench, _) = returned();
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(1000);
    assert_eq!(bench.nets, []);
    bench.engine.peer_up(bench.now, cp());
    let seid = bench.default_session(&[]);
    tell(&mut bench, seid, &NETS);
    bench.pass(10);
    assert_eq!(bench.nets, []);
    // Held twice, but not for ever.
    bench.modify(seid, DefaultSpec::remove_nets(&[0, 1]).remove(0));
    assert_eq!(bench.nets, withdrawn(&NETS));
}

#[test]
fn a_default_session_that_is_replaced_later_on_takes_its_nets_along() {
    let (mut bench, seid) = returned();
    tell(&mut bench, seid, &NETS);
    bench.pass(10);
    assert_eq!(bench.nets, []);
    bench.default_session(&[]);
    assert_eq!(bench.nets, withdrawn(&NETS));
}

#[test]
fn nothing_is_held_for_a_control_plane_that_is_forgotten() {
    let (mut bench, _) = returned();
    bench.engine.forget_peer(cp());
    bench.run();
    assert_eq!(bench.nets, withdrawn(&NETS));
}

#[test]
fn nets_come_and_go_with_the_default_session() {
    let mut bench = Bench::new();
    let spec = default_spec(&["100.64.0.0/24", "2001:db8:64::/56"]);
    let to = bench.send(0, spec.establish().0);
    let Message::SessionEstablishmentResponse(response) = bench.answer(to) else {
        panic!()
    };
    assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
    let seid = response.up_f_seid.unwrap().seid;
    assert_eq!(
        bench.nets,
        [
            (true, net("100.64.0.0/24").into()),
            (true, net("2001:db8:64::/56").into())
        ]
    );
    assert!(bench.entries.is_empty());
    bench.nets.clear();
    let more = PoolNet {
        slot: 9,
        network_instance: "default".into(),
        net: net("100.64.1.0/24"),
    };
    for request in DefaultSpec::add_nets(&[more]) {
        assert_eq!(bench.modify(seid, request).cause, Cause::REQUEST_ACCEPTED);
    }
    for request in DefaultSpec::remove_nets(&[0]) {
        assert_eq!(bench.modify(seid, request).cause, Cause::REQUEST_ACCEPTED);
    }
    assert_eq!(
        bench.nets,
        [
            (true, net("100.64.1.0/24").into()),
            (false, net("100.64.0.0/24").into())
        ]
    );
    bench.nets.clear();
    assert_eq!(bench.delete(seid).cause, Cause::REQUEST_ACCEPTED);
    assert_eq!(
        bench.nets,
        [
            (false, net("100.64.1.0/24").into()),
            (false, net("2001:db8:64::/56").into())
        ]
    );
    assert_eq!(bench.engine.discovery_tunnel(PORT), None);
}

/// A session with an address outside its group's prefixes, and with a network behind its router.
fn with_routes() -> SessionSpec {
    let mut spec = spec(7);
    let host = Binding {
        is_announced: true,
        ..Binding::host([203, 0, 113, 1].into())
    };
    let route = Binding::new(Role::Route, net("203.0.113.0/29"));
    spec.forwarding.bindings = Bindings::new([host, route]).unwrap();
    spec
}

const ALONE: [&str; 2] = ["203.0.113.0/29", "203.0.113.1/32"];

fn announced(nets: &[&str]) -> Vec<(bool, Announcement)> {
    nets.iter().map(|text| (true, net(text).into())).collect()
}

#[test]
fn what_a_session_has_alone_is_announced_as_long_as_it_is_there() {
    let mut bench = Bench::new();
    let spec = with_routes();
    let seid = bench.established_whole(&spec);
    assert_eq!(bench.nets, announced(&ALONE));
    let entry = bench.entry(seid);
    assert_eq!(entry.ipv4, spec.forwarding.bindings.ipv4());
    assert_eq!(*entry.routed, [net("203.0.113.0/29")]);
    bench.nets.clear();

    let mut less = spec.clone();
    let is_host = |binding: &Binding| binding.role == Role::Host;
    less.forwarding.bindings = spec.forwarding.bindings.filtered(is_host);
    let change = less.change_from(&spec.told()).unwrap();
    bench.modify(seid, change);
    assert_eq!(bench.nets, withdrawn(&ALONE[..1]));
    assert!(bench.entry(seid).routed.is_empty());
    bench.nets.clear();
    bench.delete(seid);
    assert_eq!(bench.nets, withdrawn(&ALONE[1..]));
}

/// Another metric is another announcement, and there is no moment without one.
#[test]
fn a_route_with_another_metric_is_announced_before_the_old_one_goes() {
    let mut bench = Bench::new();
    let mut spec = with_routes();
    let seid = bench.established_whole(&spec);
    let mut metric = None;
    for next in [Some(5), Some(9), None] {
        bench.nets.clear();
        let told = spec.told();
        let bindings = spec.forwarding.bindings.with_metrics(|_| next);
        spec.forwarding.bindings = bindings;
        bench.modify(seid, spec.change_from(&told).unwrap());
        let of = |metric| Announcement::new(net(ALONE[0]), metric);
        assert_eq!(bench.nets, [(true, of(next)), (false, of(metric))]);
        metric = next;
        assert!(bench.ledger().0.is_balanced());
    }
    bench.nets.clear();
    bench.delete(seid);
    assert_eq!(bench.nets, withdrawn(&ALONE));
}

/// Whatever its role, a binding is in the session's entry, by which packets to it and from it are its own.
#[test]
fn bindings_of_every_role_are_in_the_workers_entry_and_audited() {
    let others = [
        (Role::Host, "2001:db8:5::1/128"),
        (Role::Delegated, "2001:db8:7700::/56"),
        (Role::Route, "203.0.113.0/29"),
        (Role::Route, "2001:db8:ff::/48"),
    ]
    .map(|(role, prefix)| Binding::new(role, net(prefix)));
    let mut bench = Bench::new();
    let mut spec = spec(7);
    let own = spec.forwarding.bindings.clone();
    spec.forwarding.bindings = Bindings::new(own.iter().copied().chain(others)).unwrap();
    let seid = bench.established_whole(&spec);
    let entry = bench.entry(seid);
    assert_eq!((entry.ipv4, entry.ipv6), (own.ipv4(), own.ipv6()));
    assert_eq!(*entry.routed, others.map(|binding| binding.prefix));
    let (index, routed) = (entry.index, entry.routed.clone());
    for left_out in &routed {
        let lost = routed.iter().filter(|net| *net != left_out).copied();
        bench.entries.get_mut(&index).unwrap().routed = lost.collect();
        let (ledger, _) = bench.ledger();
        assert!(!ledger.is_balanced(), "{left_out}");
        bench.repair();
        assert!(bench.ledger().0.is_balanced(), "{left_out}");
        assert_eq!(bench.entry(seid).routed, routed);
    }
}

#[test]
fn a_change_of_routes_that_the_worker_refuses_is_taken_back() {
    let mut bench = Bench::new();
    let spec = with_routes();
    let seid = bench.established_whole(&spec);
    bench.nets.clear();
    let mut other = spec.clone();
    let route = Binding::new(Role::Route, net("198.51.100.0/24"));
    other.forwarding.bindings = spec.forwarding.bindings.with(route).unwrap();
    bench.refuse = Some(Refusal::AddressTaken);
    let change = other.change_from(&spec.told()).unwrap();
    let response = bench.modify(seid, change);
    assert_ne!(response.cause, Cause::REQUEST_ACCEPTED);
    let net = net("198.51.100.0/24");
    assert_eq!(bench.nets, [(true, net.into()), (false, net.into())]);
    assert!(bench.ledger().0.is_balanced());
}

/// A control plane that got no answer establishes its session again: routing protocols do not notice.
#[test]
fn a_session_that_is_established_anew_is_announced_all_the_while() {
    let mut bench = Bench::new();
    bench.established_whole(&with_routes());
    bench.nets.clear();
    let seid = bench.established_whole(&with_routes());
    assert_eq!(bench.nets, []);
    bench.delete(seid);
    assert_eq!(bench.nets, withdrawn(&ALONE));
}
