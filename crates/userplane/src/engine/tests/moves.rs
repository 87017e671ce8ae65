//! VLANs that are moved to another worker.

use super::*;

use std::collections::BTreeSet;

use northbound::Ledger;
use policy::Rate;

#[test]
fn sessions_of_a_moved_vlan_have_places_of_its_worker() {
    let mut bench = Bench::with(1000, 4);
    bench.default_session(&[]);
    let index = |seid| Seid::from_u64(seid).index;
    let worker = |place: SessionIndex| place.0 % 4;
    let seids = [1, 2, 3, 5].map(|n| bench.established(&spec(n)));
    assert_eq!(seids.map(|seid| worker(index(seid))), [1, 2, 3, 1]);
    let vlans = vec![100..=100];
    assert_eq!(bench.engine.to_move(PORT, &[101..=199], 2), []);
    assert_eq!(bench.engine.to_move(PortIndex(1), &vlans, 2), []);
    let sessions = bench.engine.to_move(PORT, &vlans, 2);
    assert_eq!(sessions, [seids[0], seids[2], seids[3]].map(index));
    let moved = bench.engine.relocate(PORT, vlans.clone(), 2, sessions);
    assert_eq!((moved.port, moved.worker), (PORT, 2));
    let mut places: Vec<SessionIndex> = moved.sessions.iter().map(|(_, place)| *place).collect();
    places.push(index(seids[1]));
    assert!(places.iter().all(|place| worker(*place) == 2));
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 4, "no two have one place");
    assert_eq!(bench.engine.to_move(PORT, &vlans, 2), []);

    // a subscriber has one of another VLAN, which does not move along: that matters if they share a rate
    for (rate, split) in [(None, 0), (Some(Rate::kbps(100)), 1)] {
        let mut rated = [spec(11), spec(13)];
        rated[1].circuit.tags = Tags::qinq(200, 13);
        for spec in &mut rated {
            spec.forwarding.packets.subscriber_rate_up = rate;
        }
        let two = rated.map(|spec| bench.established_whole(&spec));
        assert_eq!(bench.engine.split_by_move(PORT, &vlans, 2), split);
        assert_eq!(bench.engine.split_by_move(PORT, &vlans, 1), 0);
        for seid in two {
            bench.delete(seid);
        }
    }

    // one that comes, and those that go
    let later = index(bench.established(&spec(7)));
    assert!(worker(later) == 2 && !places.contains(&later));
    let mut ledger = Ledger::default();
    bench.engine.compare(&mut ledger, &BTreeSet::new());
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    bench.delete(seids[0]);
    bench.delete(seids[1]);
    assert_eq!(bench.forgotten, [index(seids[0])]);

    // with the port the VLAN's worker is forgotten
    bench.engine.end_port(PORT);
    bench.run();
    bench.default_session(&[]);
    let again = index(bench.established(&spec(9)));
    assert_eq!(worker(again), 1);
}
