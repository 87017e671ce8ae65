//! Random trees and loads: against a fluid reference, and with subscribers that come, go and change all the time.
mod common;
use common::*;
use core::time::Duration;
use policy::Rate;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scheduler::*;

/// Divides what is there among wants by weight; who wants less than its share leaves the rest to the others.
fn divide(there: f64, wants: &[(f64, f64)]) -> Vec<f64> {
    let mut given = vec![0.0; wants.len()];
    let mut left = there;
    loop {
        let open = |at: &usize| given[*at] < wants[*at].0 - 1e-6;
        let open: Vec<usize> = (0..wants.len()).filter(open).collect();
        let weights: f64 = open.iter().map(|at| wants[*at].1).sum();
        if left < 1e-6 || open.is_empty() {
            return given;
        }
        let before = left;
        for at in open {
            let part = (before * wants[at].1 / weights).min(wants[at].0 - given[at]);
            given[at] += part;
            left -= part;
        }
    }
}

/// More than any port here has.
const UNLIMITED: u64 = 1_000_000;

/// A random site: rate, and its VLANs.
#[derive(Clone, Debug)]
struct Site {
    kbps: u64,
    vlans: Vec<Vlan>,
}

/// Rate, and homes.
#[derive(Clone, Debug)]
struct Vlan {
    kbps: u64,
    homes: Vec<Home>,
}

/// Rate, committed rate in percent of what it can be without promising too much, weight, octets of its packets, weights of its classes.
#[derive(Clone, Debug)]
struct Home {
    kbps: u64,
    committed: u64,
    weight: u16,
    octets: u32,
    classes: Vec<u8>,
}

fn home_strategy() -> impl Strategy<Value = Home> {
    (
        5_000u64..40_000,
        prop_oneof![Just(0u64), 10u64..80],
        1u16..10,
        200u32..1500,
        proptest::collection::vec(1u8..6, 1..=CLASSES),
    )
        .prop_map(|(kbps, committed, weight, octets, classes)| Home {
            kbps,
            committed,
            weight,
            octets,
            classes,
        })
}

fn site_strategy() -> impl Strategy<Value = Site> {
    let homes = proptest::collection::vec(home_strategy(), 1..6);
    let vlan = (15_000u64..80_000, homes).prop_map(|(kbps, homes)| Vlan { kbps, homes });
    let vlans = proptest::collection::vec(vlan, 1..4);
    (20_000u64..120_000, vlans).prop_map(|(kbps, mut vlans)| {
        // A home or VLAN makes up for a millisecond of its rate, in which a port as slow as these sends few packets. So whoever's part is near
        // its rate misses some of it, and the others of its site have that, which are too few here.
        if vlans.len() > 1 {
            let homes = vlans.iter_mut().flat_map(|vlan| &mut vlan.homes);
            homes.for_each(|home| home.kbps = UNLIMITED);
        }
        Site { kbps, vlans }
    })
}

/// Whoever shares what is above it: by its weight, and no more than it wants beyond what it has for sure.
struct Sharer {
    own: f64,
    more: f64,
    weight: f64,
    below: Vec<Sharer>,
}

impl Sharer {
    /// A home that wants as much as it can have; `own` is its committed rate, on the wire.
    fn home(home: &Home, own: f64) -> Self {
        Sharer {
            own,
            more: wire(home.kbps, home) - own,
            weight: home.weight.into(),
            below: Vec::new(),
        }
    }

    /// An aggregate with a rate.
    fn aggregate(kbps: u64, below: Vec<Sharer>) -> Self {
        let own = below.iter().map(|below| below.own).sum();
        let more: f64 = below.iter().map(|below| below.more).sum();
        Sharer {
            own,
            more: more.min(kbps as f64 - own),
            weight: below.iter().map(|below| below.weight).sum(),
            below,
        }
    }

    /// What each home under it gets in the end, if it gets so much more than what it has for sure.
    fn divide(&self, more: f64) -> Vec<f64> {
        if self.below.is_empty() {
            return vec![self.own + more];
        }
        let wants = self.below.iter().map(|below| (below.more, below.weight));
        let parts = divide(more, &wants.collect::<Vec<_>>());
        let parts = self.below.iter().zip(parts);
        parts.flat_map(|(below, more)| below.divide(more)).collect()
    }
}

/// A rate of IP packets of a home as it is on the wire, in kbit/s.
fn wire(kbps: u64, home: &Home) -> f64 {
    kbps as f64 * f64::from(home.octets + 24) / f64::from(home.octets)
}

/// Classes with these weights.
fn weighted(weights: &[u8]) -> QueueProfile {
    let mut profile = plain_of(weights.len());
    for (class, weight) in profile.classes.iter_mut().zip(weights) {
        class.discipline = Discipline::Weighted(*weight);
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn each_home_gets_what_a_fluid_would(
        sites in proptest::collection::vec(site_strategy(), 1..5),
        load in 2u64..12,
        n in 1u16..5,
    ) {
        let wanted = |vlan: &Vlan| vlan.kbps.min(vlan.homes.iter().map(|home| home.kbps).sum());
        let wanted = |site: &Site| site.kbps.min(site.vlans.iter().map(wanted).sum());
        let port = sites.iter().map(wanted).sum::<u64>() * load / 10;
        // one worker has a site
        let mut trees = match n {
            1 => vec![tree(Some(port))],
            _ => workers(port, n),
        };
        let (mut flows, mut sharers) = (Vec::<Flow>::new(), Vec::new());
        let mut homes = 0;
        // for each flow its home, and its part of what that has
        let mut parts = Vec::new();
        for (at, site) in sites.iter().enumerate() {
            let worker = at % trees.len();
            let tree = &mut trees[worker];
            let of_site = aggregate(tree, PORT, Some(site.kbps));
            let mut vlans = Vec::new();
            for vlan in &site.vlans {
                let of_vlan = aggregate(tree, of_site, Some(vlan.kbps));
                // what may be promised: half of the home's part of the port, the site and the VLAN
                let part = (port / sites.len() as u64).min(site.kbps) / site.vlans.len() as u64;
                let part = part.min(vlan.kbps) / vlan.homes.len() as u64 / 2;
                let mut below = Vec::new();
                for home in &vlan.homes {
                    let kbps = (part * home.committed / 100).min(home.kbps);
                    below.push(Sharer::home(home, wire(kbps, home)));
                    let settings = SubscriberSettings {
                        profile: tree.add_profile(&weighted(&home.classes)),
                        rate: Some(Rate::kbps(home.kbps)),
                        committed: Rate::new(kbps),
                        weight: home.weight,
                        header: 0,
                    };
                    let (number, to) = (homes, tree.add(of_vlan, &settings));
                    homes += 1;
                    let all: f64 = home.classes.iter().copied().map(f64::from).sum();
                    for (class, weight) in home.classes.iter().enumerate() {
                        let source = Source { class, ..Source::new(to, home.octets) };
                        flows.push((worker, source));
                        parts.push((number, f64::from(*weight) / all));
                    }
                }
                vlans.push(Sharer::aggregate(vlan.kbps, below));
            }
            sharers.push(Sharer::aggregate(site.kbps, vlans));
        }
        wire_of_all(&mut trees, &flows, (0, 300 * MS));
        let sent = wire_of_all(&mut trees, &flows, (300 * MS, 2_300 * MS));
        let all = Sharer::aggregate(port, sharers);
        let reference = all.divide(all.more);
        let mut of_homes = vec![0; homes];
        for (sent, (home, _)) in sent.iter().zip(&parts) {
            of_homes[*home] += sent;
        }
        for (at, (wire, wanted)) in of_homes.iter().zip(&reference).enumerate() {
            let [wanted, all] = [*wanted as u64, port].map(|kbps| at_rate(kbps, 2_000 * MS));
            // What a home or site misses whose share is about its own rate, its neighbours have.
            let most = wanted * 3 / 100 + all / 50 + 1600;
            prop_assert!(wire.abs_diff(wanted) <= most, "home {at}: {wire} of {wanted} octets; {reference:?}");
        }
        for (at, (sent, (home, part))) in sent.iter().zip(&parts).enumerate() {
            let wanted = (of_homes[*home] as f64 * part) as u64;
            // what the home has in all may be few packets
            let most = wanted * 3 / 100 + 2 * 1600;
            prop_assert!(sent.abs_diff(wanted) <= most, "class {at}: {sent} of {wanted} octets");
        }
    }
}

/// In = out + drops + what waits, whatever happens, and nobody is served who is gone.
#[test]
fn nothing_is_lost_while_subscribers_come_go_and_change() {
    for seed in 0..20 {
        let mut random = SmallRng::seed_from_u64(seed);
        // room for all, or short
        let room = [1 << 20, 300][seed as usize % 2];
        let mut tree = tree_with_room(Some(200_000), room);
        let managements = [
            (Management::TailDrop, 4),
            (CODEL, CLASSES),
            (FQ_CODEL, 6),
            (DUAL_PI2, 1),
        ]
        .map(|(management, classes)| {
            let mut profile = managed(management);
            profile.classes.truncate(classes);
            profile.classes[0].limit = 20_000;
            profile.classes[0].longest_wait = Some(Duration::from_millis(3));
            if let Some(last) = profile.classes.get_mut(5) {
                last.rate = Some(Rate::kbps(100));
            }
            profile
        });
        let profiles = managements
            .each_ref()
            .map(|profile| tree.add_profile(profile));
        let sites: Vec<AggregateIndex> = (0..8)
            .map(|n| {
                let parent = if n < 4 { PORT } else { AggregateIndex(n - 3) };
                aggregate(&mut tree, parent, Some(30_000))
            })
            .collect();
        let settings = |random: &mut SmallRng| SubscriberSettings {
            profile: profiles[random.random_range(0..4)],
            rate: random
                .random_bool(0.8)
                .then(|| Rate::kbps(random.random_range(64..50_000))),
            committed: random
                .random_bool(0.3)
                .then(|| Rate::kbps(random.random_range(1..5_000))),
            weight: random.random_range(0..20),
            header: random.random_range(0..40),
        };
        let mut homes: Vec<SubscriberIndex> = Vec::new();
        let [mut came, mut left, mut dropped, mut refused, mut purged] = [0u64; 5];
        let mut now = 0;
        // a change each millisecond, and often two
        for _ in 0..60_000 {
            now += random.random_range(0..40_000);
            match random.random_range(0..80) {
                0 => homes.push(tree.add(sites[random.random_range(0..8)], &settings(&mut random))),
                1 if !homes.is_empty() => {
                    let home = homes.swap_remove(random.random_range(0..homes.len()));
                    tree.remove(home, &mut |_| purged += 1);
                }
                2 if !homes.is_empty() => tree.set(
                    homes[random.random_range(0..homes.len())],
                    &settings(&mut random),
                ),
                3 => tree.set_rate(
                    sites[random.random_range(0..8)],
                    Some(Rate::kbps(random.random_range(1_000..60_000))),
                ),
                4 => tree.set_profile(
                    profiles[random.random_range(0..4)],
                    &managements[random.random_range(0..4)],
                ),
                5 if !homes.is_empty() => tree.place(
                    homes[random.random_range(0..homes.len())],
                    sites[random.random_range(0..8)],
                ),
                6 => tree.set_room(random.random_range(room / 2..=room)),
                _ => {}
            }
            for _ in 0..random.random_range(0..8) {
                if homes.is_empty() {
                    break;
                }
                let to = homes[random.random_range(0..homes.len())];
                let class = random.random_range(0..CLASSES);
                let source = Source {
                    class,
                    ..Source::new(to, random.random_range(1..2000))
                };
                let frame = Frame {
                    flow: random.random_range(0..9),
                    ecn: Ecn::of(random.random_range(0..4)),
                    ..source.frame(now)
                };
                came += 1;
                match tree.offer(to, class, frame, now) {
                    Ok(frame) => left += u64::from(frame.is_some()),
                    Err(_) => refused += 1,
                }
            }
            let most = random.random_range(0..64);
            tree.dequeue(
                now,
                most,
                &mut |_, frame| {
                    assert!(homes.contains(&frame.to), "it is gone");
                    left += 1;
                },
                &mut |_, _| dropped += 1,
            );
            assert_eq!(
                came,
                left + dropped + refused + purged + tree.waiting() as u64
            );
            assert!(tree.waiting() <= room);
            let packets = |at: &[AggregateIndex]| -> u64 {
                let states = at.iter().map(|site| tree.aggregate_state(*site));
                states.map(|state| state.waiting_packets).sum()
            };
            let (first, second) = sites.split_at(4);
            assert!(packets(second) <= packets(first));
            // what was dropped is given away with what leaves next
            assert!(packets(first) <= tree.waiting() as u64);
        }
        assert!(left > 1000 && purged > 0, "{left} {purged}");
        // and with nothing more coming, all that waits leaves
        while let Some(at) = tree.deadline() {
            now = now.max(at);
            tree.dequeue(now, 64, &mut |_, _| left += 1, &mut |_, _| dropped += 1);
        }
        assert_eq!(tree.waiting(), 0);
        for site in sites {
            assert_eq!(tree.aggregate_state(site).waiting_packets, 0);
        }
        assert_eq!(came, left + dropped + refused + purged);
        let state = |home: &SubscriberIndex| {
            (0..CLASSES)
                .map(|class| tree.state(*home, class).octets)
                .sum::<u32>()
        };
        assert!(homes.iter().all(|home| state(home) == 0));
        // and no number is lost: all can be given again when the last timer has come by
        homes
            .drain(..)
            .for_each(|home| tree.remove(home, &mut |_| ()));
        tree.dequeue(now + 100_000 * MS, 64, &mut |_, _| (), &mut |_, _| ());
        let numbers = tree.subscribers();
        (0..numbers).for_each(|_| {
            tree.add(PORT, &settings(&mut random));
        });
        assert_eq!(tree.subscribers(), numbers);
    }
}
