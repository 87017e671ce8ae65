//! What is announced while control planes come back, replace their default sessions, and leave.

use super::*;

const NETS: [&str; 2] = ["100.64.0.0/24", "100.64.1.0/24"];

/// Establishes the default session; returns our name for it.
fn establish(bench: &mut Bench, nets: &[&str]) -> u64 {
    let to = bench.send(0, default_spec(nets).establish().0);
    let Message::SessionEstablishmentResponse(response) = bench.answer(to) else {
        panic!("another answer")
    };
    response.up_f_seid.unwrap().seid
}

fn tell(bench: &mut Bench, seid: u64, nets: &[&str]) {
    for message in DefaultSpec::add_nets(&default_spec(nets).nets) {
        bench.modify(seid, message);
    }
}

/// A control plane that announced its nets comes back, and has opened its default session anew.
fn returned() -> (Bench, u64) {
    let mut bench = Bench::new();
    let seid = establish(&mut bench, &NETS);
    bench.audit(seid, true, &[]);
    bench.nets.clear();
    bench.engine.peer_up(bench.now, cp());
    let seid = establish(&mut bench, &[]);
    assert_eq!(bench.nets, [], "nobody wants them now, but somebody will");
    (bench, seid)
}

fn withdrawn(nets: &[&str]) -> Vec<(bool, IpNet)> {
    nets.iter().map(|text| (false, net(text))).collect()
}

#[test]
fn nets_stay_announced_while_a_control_plane_that_came_back_tells_them_again() {
    let (mut bench, seid) = returned();
    tell(&mut bench, seid, &NETS[..1]);
    assert_eq!(bench.nets, [], "the first one is wanted, as before");
    bench.audit(seid, true, &[]);
    assert_eq!(
        bench.nets,
        withdrawn(&NETS[1..]),
        "the second one was not told again"
    );
}

#[test]
fn a_control_plane_that_never_audits_has_ten_seconds_to_tell_its_nets_again() {
    let (mut bench, seid) = returned();
    tell(&mut bench, seid, &NETS[..1]);
    bench.pass(9);
    assert_eq!(bench.nets, []);
    bench.pass(1);
    assert_eq!(bench.nets, withdrawn(&NETS[1..]));
}

#[test]
fn nets_wait_for_a_control_plane_that_is_lost_again() {
    let (mut bench, _) = returned();
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(1000);
    assert_eq!(bench.nets, []);
    bench.engine.peer_up(bench.now, cp());
    let seid = establish(&mut bench, &[]);
    tell(&mut bench, seid, &NETS);
    bench.audit(seid, true, &[]);
    assert_eq!(bench.nets, []);
    // Held twice, but not for ever.
    bench.modify(seid, DefaultSpec::remove_nets(&[0, 1]).remove(0));
    assert_eq!(bench.nets, withdrawn(&NETS));
}

#[test]
fn a_default_session_that_is_replaced_after_the_audit_takes_its_nets_along() {
    let (mut bench, seid) = returned();
    tell(&mut bench, seid, &NETS);
    bench.audit(seid, true, &[]);
    assert_eq!(bench.nets, []);
    establish(&mut bench, &[]);
    assert_eq!(bench.nets, withdrawn(&NETS));
}

#[test]
fn nothing_is_held_for_a_control_plane_that_is_forgotten() {
    let (mut bench, _) = returned();
    bench.engine.forget_peer(cp());
    bench.run();
    assert_eq!(bench.nets, withdrawn(&NETS));
}
