//! Instructions of each way through the graph, for 64 packets in one round of the worker. They do not depend on the machine's
//! load: the program `instructions` compares them with `bench/instructions`. An example, and no benchmark for cargo: that would be built with
//! panics that unwind, and everything below it once more.
#![allow(missing_docs)] // of what macros make

use bench::frames::{CORE, Family, Size, Spec, Way};
use bench::layout::Layout;
use bench::routes::{Prefixes, Routes};
use bench::rules::{Rule, rules};
use bench::world::{Plan, World};
use dataplane::{
    InstanceIndex, Policies, PolicyIndex, PolicyRules, QueueProfile, QueueRules, Rate,
    SessionEntry, SourceCheck,
};
use dpdk::{BURST, Eal, EalOptions, Pool, tsc, tsc_hz};
use gungraun::{library_benchmark, library_benchmark_group, main};
use ipnet::{Ipv4Net, Ipv6Net};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::num::NonZeroU16;
use std::sync::Arc;

/// A worker that has a burst before it. Nothing of it is taken down: that would count.
struct Round {
    world: Box<World>,
    /// The time that the worker goes by: it does nothing that is due now and then.
    now: u64,
    /// Packets that come and that leave queues.
    packets: usize,
}

fn pool() -> (Eal, Pool) {
    let options = EalOptions {
        memory_mib: 64,
        huge_pages: false,
    };
    let eal = Eal::start(&options).expect("EAL");
    (eal, eal.pool("packets", 1023).expect("a pool"))
}

/// So many that the table has its large form.
fn routes() -> Routes {
    let mut random = SmallRng::seed_from_u64(1);
    let mut v4 =
        || Ipv4Net::new_assert(random.random_range(0x0100_0000..0xdf00_0000u32).into(), 24).trunc();
    let v4 = (0..5000).map(|_| v4()).collect();
    let mut v6 =
        || Ipv6Net::new_assert((0x2a00 << 112 | random.random::<u128>() >> 16).into(), 48).trunc();
    let v6 = (0..5000).map(|_| v6()).collect();
    Routes::first(&Prefixes { v4, v6 }, 5000)
}

/// Packets of subscribers, or to them.
fn forwarded(way: Way, family: Family, octets: u16) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    prepared(|world| {
        let size = Size::Octets(octets);
        let mut input =
            || Spec::random(way, family, size, 64, &world.routes[0], &mut random).input(way);
        (way, (0..BURST).map(|_| input()).collect())
    })
}

/// Packets to subscribers, whose sources are checked strictly.
fn checked(family: Family, octets: u16) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    prepared(|world| {
        let set = (world.controller).set_source_check(CORE, SourceCheck::Strict);
        set.expect("room");
        let (way, size) = (Way::Down, Size::Octets(octets));
        let mut input =
            || Spec::random(way, family, size, 64, &world.routes[0], &mut random).input(way);
        (way, (0..BURST).map(|_| input()).collect())
    })
}

/// Packets of machines behind subscribers' routers, whose networks RADIUS or a delegation named.
fn behind_routers(family: Family, octets: u16) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    prepared(|world| {
        for session in 0..64 {
            let lan = match family {
                Family::V6 => lan_v6(session).into(),
                _ => lan_v4(session).into(),
            };
            let entry = SessionEntry {
                routed: Box::new([lan]),
                ..Layout::PLAIN.entry(session)
            };
            world.controller.set_session(entry).expect("room");
        }
        let mut input = || {
            let (way, size) = (Way::Up, Size::Octets(octets));
            let mut frame =
                Spec::random(way, family, size, 64, &world.routes[0], &mut random).input(way);
            let session = u32::from(u16::from_be_bytes([frame[24], frame[25]]))
                - u32::from(Layout::PLAIN.pppoe_id(0));
            let ip = &mut frame[30..];
            match ip[0] >> 4 {
                4 => {
                    ip[12..16].copy_from_slice(&lan_v4(session).broadcast().octets());
                    (ip[10], ip[11]) = (0, 0);
                    let sum = wire::checksum::of(&ip[..20]).to_be_bytes();
                    (ip[10], ip[11]) = (sum[0], sum[1]);
                }
                _ => ip[8..24].copy_from_slice(&lan_v6(session).broadcast().octets()),
            }
            frame
        };
        (Way::Up, (0..BURST).map(|_| input()).collect())
    })
}

/// Packets of subscribers, which pass a policy of 150 rules of their family.
fn filtered(family: Family, octets: u16) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    prepared(|world| {
        let index = PolicyIndex(NonZeroU16::MIN);
        let compiler = world.controller.policy_compiler();
        let policy = compiler.compile(&policy(family)).expect("a policy");
        let set = world.controller.set_policy(index, Some(Arc::new(policy)));
        set.expect("room");
        for session in 0..64 {
            let set = world.controller.set_session(policed(session, index));
            set.expect("room");
        }
        let (way, size) = (Way::Up, Size::Octets(octets));
        let mut input =
            || Spec::random(way, family, size, 64, &world.routes[0], &mut random).input(way);
        (way, (0..BURST).map(|_| input()).collect())
    })
}

/// Packets of subscribers without a policy, beside one that has one.
fn beside_policies(family: Family, octets: u16) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    prepared(|world| {
        let index = PolicyIndex(NonZeroU16::MIN);
        let set = world.controller.set_session(policed(64, index));
        set.expect("room");
        let (way, size) = (Way::Up, Size::Octets(octets));
        let mut input =
            || Spec::random(way, family, size, 64, &world.routes[0], &mut random).input(way);
        (way, (0..BURST).map(|_| input()).collect())
    })
}

/// Packets to subscribers with queues, which are empty or have one packet each: then those leave, and the others wait.
fn queued(family: Family, octets: u16, waits: bool) -> Round {
    let mut random = SmallRng::seed_from_u64(2);
    let make = |world: &mut World| {
        let index = PolicyIndex(NonZeroU16::MIN);
        let policy = PolicyRules {
            unmatched_pass: true,
            queues: Some(QueueRules {
                profile: QueueProfile::default(),
                weight: 1,
            }),
            ..PolicyRules::default()
        };
        let policy = world.controller.policy_compiler().compile(&policy);
        let policy = Arc::new(policy.expect("a policy"));
        let set = world.controller.set_policy(index, Some(policy));
        set.expect("room");
        for session in 0..64 {
            let mut entry = Layout::PLAIN.entry(session);
            entry.policies.down = Some(index);
            // a packet takes 8 ms, and the first of all one less
            entry.packets.rate_down = Some(Rate::kbps(u64::from(octets - 14)));
            world.controller.set_session(entry).expect("room");
        }
        let mut input = |session| {
            let (way, size) = (Way::Down, Size::Octets(octets));
            let mut spec = Spec::random(way, family, size, 64, &world.routes[0], &mut random);
            spec.session = session;
            spec.input(way)
        };
        (Way::Down, (0..64).map(&mut input).collect())
    };
    match waits {
        false => prepared_after(make, 1, BURST),
        true => prepared_after(make, 2, 2 * BURST),
    }
}

/// A session whose subscriber's packets pass a policy.
fn policed(session: u32, index: PolicyIndex) -> SessionEntry {
    SessionEntry {
        policies: Policies {
            up: Some(index),
            down: None,
        },
        ..Layout::PLAIN.entry(session)
    }
}

/// Whichever rule matches, the packet passes.
fn policy(family: Family) -> PolicyRules {
    let passing = |rule: Rule| Rule {
        permits: true,
        ..rule
    };
    let rules = rules(family == Family::V6, 150).into_iter();
    let rules = rules.map(|rule| passing(rule).own());
    PolicyRules {
        rules: rules.collect(),
        denies_undetermined: true,
        ..PolicyRules::default()
    }
}

fn lan_v4(session: u32) -> Ipv4Net {
    Ipv4Net::new_assert((0x0a00_0000 | session << 8).into(), 24)
}

fn lan_v6(session: u32) -> Ipv6Net {
    Ipv6Net::new_assert((0x2001_0db9 << 96 | u128::from(session) << 72).into(), 56)
}

/// What is not forwarded like nearly all packets are, by its name.
fn other(name: &str) -> Round {
    prepared(|world| {
        let (way, frame) = rare(world, name);
        (way, vec![frame; BURST])
    })
}

/// A worker that has a burst before it. The same went through already: what happens once has happened.
fn prepared(make: impl FnOnce(&mut World) -> (Way, Vec<Vec<u8>>)) -> Round {
    prepared_after(make, 1, BURST)
}

/// The same, which came so many times at the same moment, 7.5 ms ago. Of all that come and leave then, there are so many packets.
fn prepared_after(
    make: impl FnOnce(&mut World) -> (Way, Vec<Vec<u8>>),
    times: usize,
    packets: usize,
) -> Round {
    let (eal, pool, mut world) = world();
    let (way, frames) = make(&mut world);
    while world.step() > 0 {}
    let now = tsc();
    for time in 0..=times {
        for frame in &frames {
            send(&mut world, pool, way, frame);
        }
        if time < times {
            assert_eq!(world.workers[0].step_at(now), BURST);
            clear(&mut world);
        }
    }
    Round {
        world: Box::new(world),
        now: now + tsc_hz(&eal) * 3 / 400,
        packets,
    }
}

fn world() -> (Eal, Pool, World) {
    let (eal, pool) = pool();
    let world = World::new(&eal, pool, "w", Plan::plain(64, routes())).expect("a world");
    (eal, pool, world)
}

fn send(world: &mut World, pool: Pool, way: Way, frame: &[u8]) {
    let ring = match way {
        Way::Up => &mut world.homes[0].to_port,
        Way::Down => &mut world.routers[0].to_port,
    };
    let mbuf = pool.packet(frame).expect("a buffer");
    ring.send(mbuf).expect("room in the ring");
}

/// Takes away what has come out.
fn clear(world: &mut World) {
    while world.homes[0].from_port.recv().is_some() || world.routers[0].from_port.recv().is_some() {
    }
    world.controller.recv_punts(1000, |_| ());
}

/// The frame, after what has to be there for it.
fn rare(world: &mut World, name: &str) -> (Way, Vec<u8>) {
    let mut random = SmallRng::seed_from_u64(3);
    let mut spec = |way, octets| {
        let size = Size::Octets(octets);
        Spec::random(way, Family::V4, size, 64, &world.routes[0], &mut random)
    };
    let mut up = spec(Way::Up, 64).input(Way::Up);
    let mut down = spec(Way::Down, 64).input(Way::Down);
    match name {
        "discovery" => (up[20], up[21], up[24], up[25]) = (0x88, 0x63, 0, 0),
        "control" => (up[28], up[29]) = (0xc0, 0x21),
        "unknown_session" => up[24] = 0xee,
        "spoofed" => up[45] ^= 0x80,
        "expired" => {
            // The checksum rises by what the time to live falls.
            (up[38], up[40]) = (1, up[40] + 63);
        }
        "arp" => (down[12], down[13]) = (0x08, 0x06),
        "no_route" => {
            let everything = "0.0.0.0/0".parse().expect("a prefix");
            let set = world.controller.remove_route(InstanceIndex(0), everything);
            set.expect("room for a command");
            (down[30], down[31], down[32], down[33]) = (223, 255, 255, 254);
            let header = &mut down[14..34];
            (header[10], header[11]) = (0, 0);
            let sum = wire::checksum::of(header).to_be_bytes();
            (header[10], header[11]) = (sum[0], sum[1]);
        }
        "fragments" => {
            down = {
                let mut large = spec(Way::Down, 1514).input(Way::Down);
                // May be fragmented: the bit goes, and the checksum rises by it.
                large[20] = 0;
                let sum = u16::from_be_bytes([large[24], large[25]]) as u32 + 0x4000;
                let sum = (sum & 0xffff) + (sum >> 16);
                (large[24], large[25]) = ((sum >> 8) as u8, sum as u8);
                large
            }
        }
        _ => panic!("no such frame: {name}"),
    }
    match name {
        "arp" | "no_route" | "fragments" => (Way::Down, down),
        _ => (Way::Up, up),
    }
}

#[library_benchmark]
#[bench::up_v4(args = (Way::Up, Family::V4, 64), setup = forwarded)]
#[bench::up_v6(args = (Way::Up, Family::V6, 96), setup = forwarded)]
#[bench::up_tcp(args = (Way::Up, Family::V4, 128), setup = forwarded)]
#[bench::down_v4(args = (Way::Down, Family::V4, 64), setup = forwarded)]
#[bench::down_v6(args = (Way::Down, Family::V6, 96), setup = forwarded)]
#[bench::down_tcp(args = (Way::Down, Family::V4, 128), setup = forwarded)]
#[bench::down_strict_v4(args = (Family::V4, 64), setup = checked)]
#[bench::down_strict_v6(args = (Family::V6, 96), setup = checked)]
#[bench::down_queues_v4(args = (Family::V4, 64, false), setup = queued)]
#[bench::down_waiting_v4(args = (Family::V4, 64, true), setup = queued)]
#[bench::down_waiting_v6(args = (Family::V6, 96, true), setup = queued)]
#[bench::up_routed_v4(args = (Family::V4, 64), setup = behind_routers)]
#[bench::up_delegated_v6(args = (Family::V6, 96), setup = behind_routers)]
#[bench::up_policy_off(args = (Family::V4, 64), setup = beside_policies)]
#[bench::up_policy_v4(args = (Family::V4, 64), setup = filtered)]
#[bench::up_policy_v6(args = (Family::V6, 96), setup = filtered)]
#[bench::discovery(args = ("discovery"), setup = other)]
#[bench::control(args = ("control"), setup = other)]
#[bench::unknown_session(args = ("unknown_session"), setup = other)]
#[bench::spoofed(args = ("spoofed"), setup = other)]
#[bench::expired(args = ("expired"), setup = other)]
#[bench::arp(args = ("arp"), setup = other)]
#[bench::no_route(args = ("no_route"), setup = other)]
#[bench::fragments(args = ("fragments"), setup = other)]
fn round(mut round: Round) -> Round {
    let packets = round.world.workers[0].step_at(round.now);
    assert_eq!(packets, round.packets);
    round
}

library_benchmark_group!(name = ways; benchmarks = round);
main!(library_benchmark_groups = ways);
