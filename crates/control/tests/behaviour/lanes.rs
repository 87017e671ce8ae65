//! Which worker gets a session: the one with the fewest, or the one that has the subscriber's other sessions.

use crate::world::user_plane::WORKERS;
use crate::world::{Choice, World};
use core::time::Duration;
use cpe::{Home, HomeConfig};
use policy::Access;
use wire::eth::Tags;
use wire::pfcp::{Lanes, SluiceFeatures};

const HOMES: usize = 40;

/// A world in which each home has an access segment of its own.
fn world_of_small_segments() -> World {
    let one = |n: usize| format!("s{n}: {{access-profile: pppoe, s-vlans: '{}'}}", 100 + n);
    let segments: Vec<String> = (0..HOMES).map(one).collect();
    let document = Choice::default().document(HOMES);
    let document = document.replace("all: {access-profile: pppoe}", &segments.join(", "));
    let mut w = World::of(HOMES, &document);
    for n in 0..HOMES {
        on_line(&mut w, n, 100 + n as u16);
    }
    w
}

/// Puts a home on the access line of these VLAN ids.
fn on_line(w: &mut World, home: usize, s_tag: u16) {
    let config = HomeConfig {
        tags: Tags::qinq(s_tag, 1),
        ..w.homes[home].config().clone()
    };
    w.homes[home] = Home::new(config, home as u64);
}

/// Workers of the sessions, in the order of these.
fn workers(w: &World) -> Vec<u8> {
    let rules = w.up.subscribers().into_iter();
    let worker = |Access::Pppoe(id)| Lanes::even(WORKERS).worker(id);
    rules.map(|rules| worker(rules.access)).collect()
}

fn loads(w: &World) -> Vec<usize> {
    let workers = workers(w);
    let load = |worker| workers.iter().filter(|w| u16::from(**w) == worker).count();
    (0..WORKERS).map(load).collect()
}

#[test]
fn each_worker_has_as_many_sessions_though_each_is_the_first_of_its_segment() {
    let mut w = world_of_small_segments();
    w.dial_all();
    let share = HOMES / usize::from(WORKERS);
    assert_eq!(loads(&w), vec![share; WORKERS.into()]);

    // those that one worker loses come back to it, after a restart too
    let of_first = |w: &World| -> Vec<usize> {
        let workers = workers(w).into_iter().enumerate();
        workers
            .filter(|(_, worker)| *worker == 1)
            .map(|(n, _)| n)
            .collect()
    };
    let gone = of_first(&w);
    gone.iter().for_each(|home| w.hang_up(*home));
    w.settle();
    assert_eq!(loads(&w)[1], 0);
    w.restart_control_plane();
    w.run(Duration::from_secs(5));
    gone.iter().for_each(|home| w.dial(*home));
    w.run(Duration::from_secs(30));
    assert_eq!(w.online(), HOMES);
    assert_eq!(loads(&w), vec![share; WORKERS.into()]);
}

#[test]
fn the_sessions_of_a_subscriber_are_one_workers() {
    let mut w = world_of_small_segments();
    for home in 0..HOMES {
        on_line(&mut w, home, 100 + home as u16 % 10);
    }
    w.dial_all();
    let mut homes: Vec<(u32, u8)> = (w.up.subscribers().into_iter())
        .map(|rules| rules.subscriber.expect("a handle"))
        .zip(workers(&w))
        .collect();
    homes.sort_unstable();
    homes.dedup();
    assert_eq!(homes.len(), 10, "each subscriber has one worker: {homes:?}");
    assert!(
        loads(&w).iter().all(|sessions| [8, 12].contains(sessions)),
        "{:?}",
        loads(&w)
    );
}

#[test]
fn a_user_plane_that_does_not_say_its_lanes_gets_ids_in_turn() {
    let mut w = World::new(HOMES, Choice::default());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS);
    w.dial_all();
    let rules = w.up.subscribers().into_iter();
    let ids: Vec<u16> = rules
        .map(|rules| match rules.access {
            Access::Pppoe(id) => id,
        })
        .collect();
    assert!(ids.iter().copied().eq(1..=HOMES as u16), "{ids:?}");
}

/// A segment, or each of its outer VLANs, that has a rate.
#[test]
fn sessions_that_share_a_rate_are_one_workers() {
    for (setting, groups) in [("egress-rate", 1), ("vlan-egress-rate", 10)] {
        let document = Choice::default().document(HOMES);
        let shared = format!("all: {{access-profile: pppoe, {setting}: 1000}}");
        let document = document.replace("all: {access-profile: pppoe}", &shared);
        let mut w = World::of(HOMES, &document);
        for home in 0..HOMES {
            on_line(&mut w, home, 100 + home as u16 % groups);
        }
        w.dial_all();
        let mut of_group: Vec<(u16, u8)> = (w.up.subscribers().into_iter())
            .map(|rules| rules.circuit.tags.outer.map_or(0, |tag| tag.vid) % groups)
            .zip(workers(&w))
            .collect();
        of_group.sort_unstable();
        of_group.dedup();
        assert_eq!(
            of_group.len(),
            usize::from(groups),
            "{setting}: {of_group:?}"
        );
        let mut workers: Vec<u8> = of_group.iter().map(|(_, worker)| *worker).collect();
        workers.sort_unstable();
        workers.dedup();
        assert_eq!(workers.len(), usize::from(groups.min(WORKERS)), "{setting}");
    }
}
