//! What the worker shows of its tables is what it was told, no more and no less.
use crate::cases::homes;
use crate::world::*;
use dataplane::*;
use std::collections::BTreeSet;

fn inspect(w: &mut World) -> Vec<Held> {
    let (mut all, mut next) = (vec![], Some(Part::FIRST));
    while let Some(part) = next {
        w.controller.inspect(part).unwrap();
        assert_eq!(w.controller.inspect(part), Err(Busy), "one at a time");
        w.settle();
        let piece = w.controller.poll_piece().expect("a piece");
        assert_eq!(piece.part, part);
        all.extend(piece.found);
        next = piece.next;
    }
    all
}

#[test]
fn everything_that_was_set_is_shown_and_nothing_else() {
    let mut w = World::new();
    let homes = homes();
    w.online(&homes);
    let found = inspect(&mut w);
    let sessions: Vec<_> = found
        .iter()
        .filter(|h| matches!(h, Held::Session { .. }))
        .collect();
    assert_eq!(sessions.len(), homes.len());
    for home in &homes {
        let entry = World::entry(home);
        let session = Held::Session {
            entry: entry.clone(),
            whole: true,
        };
        assert!(sessions.contains(&&session), "{home:?}");
        for net in host_routes(&entry) {
            let route = Held::HostRoute(InstanceIndex(0), net, entry.index);
            assert!(found.contains(&route), "{route:?}");
        }
    }
    let host_routes = found.iter().filter(|h| matches!(h, Held::HostRoute(..)));
    assert_eq!(host_routes.count(), 2 * homes.len());

    let routes: BTreeSet<String> = found
        .iter()
        .filter_map(|held| match held {
            Held::Route(instance, net, to) => Some(format!("{instance:?} {net} {to:?}")),
            _ => None,
        })
        .collect();
    let given = World::table().into_iter();
    let given = given.map(|(i, net, to)| (InstanceIndex(i), net.parse().unwrap(), to));
    let first = [InstanceIndex(0), InstanceIndex(1)];
    let first = first
        .into_iter()
        .flat_map(|i| first_routes().map(move |(net, to)| (i, net, to)));
    let expected = given
        .chain(first)
        .map(|(i, net, to)| format!("{i:?} {net} {to:?}"));
    assert_eq!(routes, expected.collect());

    let neighbours: Vec<u32> = found
        .iter()
        .filter_map(|held| match held {
            Held::Adjacency(index, _) => Some(index.0),
            _ => None,
        })
        .collect();
    assert_eq!(neighbours, [0, 1]);
    assert!(
        !found
            .iter()
            .any(|held| matches!(held, Held::StrayId { .. }))
    );

    for home in &homes {
        w.controller
            .remove_session(SessionIndex(home.index))
            .unwrap();
    }
    w.settle();
    w.events();
    let left = inspect(&mut w);
    assert!(
        !left
            .iter()
            .any(|h| matches!(h, Held::Session { .. } | Held::HostRoute(..)))
    );
}

#[test]
fn tables_of_many_pieces_are_shown_whole() {
    let limits = Limits {
        instances: 2,
        sessions: 1000,
        adjacencies: 700,
        ..Limits::default()
    };
    let mut w = World::with(no_policing(), limits);
    let home = &homes()[0];
    for n in 0..1000u32 {
        let entry = SessionEntry {
            index: SessionIndex(n),
            pppoe_session_id: n as u16 * 60 + 1,
            ipv4: Some((0x6441_0000 + n).into()),
            ipv6: None,
            ..World::entry(home)
        };
        w.controller.set_session(entry).unwrap();
    }
    w.settle();
    assert_eq!(w.events(), []);
    let found = inspect(&mut w);
    let whole = |h: &&Held| matches!(h, Held::Session { whole: true, .. });
    assert_eq!(found.iter().filter(whole).count(), 1000);
    let routed = |h: &&Held| matches!(h, Held::HostRoute(..));
    assert_eq!(found.iter().filter(routed).count(), 1000);
}

#[test]
fn a_host_route_that_another_took_is_not_the_sessions_any_more() {
    let mut w = World::new();
    let homes = homes();
    w.online(&homes);
    let entry = World::entry(&homes[0]);
    let net = host_routes(&entry).next().unwrap();
    w.controller
        .remove_host_route(InstanceIndex(0), net)
        .unwrap();
    w.settle();
    let broken = Held::Session {
        entry: entry.clone(),
        whole: false,
    };
    assert!(inspect(&mut w).contains(&broken));
    // set again it is whole, and counts on
    w.controller.set_session(entry.clone()).unwrap();
    w.settle();
    let mended = Held::Session { entry, whole: true };
    assert!(inspect(&mut w).contains(&mended));
}
