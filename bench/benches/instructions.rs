//! Instructions of each way through the graph, for 64 packets in one round of the worker. They do not depend on the machine's
//! load: `scripts/instructions` compares them with `bench/instructions`.
#![allow(missing_docs)] // of what macros make

use bench::frames::{Family, Size, Spec, Way};
use bench::routes::{Prefixes, Routes};
use bench::world::World;
use dpdk::{BURST, Eal, EalOptions, Pool};
use gungraun::{library_benchmark, library_benchmark_group, main};
use ipnet::{Ipv4Net, Ipv6Net};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A worker that has a burst before it. Nothing of it is taken down: that would count.
struct Round {
    world: Box<World>,
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

/// Packets of subscribers, or to them. Others went the same way before: what happens once has happened.
fn forwarded(way: Way, family: Family, octets: u16) -> Round {
    let (_, pool, mut world) = world();
    let mut random = SmallRng::seed_from_u64(2);
    for first in [true, false] {
        for _ in 0..BURST {
            let size = Size::Octets(octets);
            let spec = Spec::random(
                way,
                family,
                size,
                world.sessions,
                &world.routes,
                &mut random,
            );
            send(&mut world, pool, way, &spec.input(way));
        }
        if first {
            assert_eq!(world.worker.step(), BURST);
            while world
                .home
                .from_port
                .recv()
                .or(world.router.from_port.recv())
                .is_some()
            {}
        }
    }
    Round {
        world: Box::new(world),
    }
}

fn world() -> (Eal, Pool, World) {
    let (eal, pool) = pool();
    let world = World::new(&eal, pool, "w", 64, routes()).expect("a world");
    (eal, pool, world)
}

fn send(world: &mut World, pool: Pool, way: Way, frame: &[u8]) {
    let ring = match way {
        Way::Up => &mut world.home.to_port,
        Way::Down => &mut world.router.to_port,
    };
    let mbuf = pool.packet(frame).expect("a buffer");
    ring.send(mbuf).expect("room in the ring");
}

#[library_benchmark]
#[bench::up_v4(args = (Way::Up, Family::V4, 64), setup = forwarded)]
#[bench::up_v6(args = (Way::Up, Family::V6, 96), setup = forwarded)]
#[bench::down_v4(args = (Way::Down, Family::V4, 64), setup = forwarded)]
#[bench::down_v6(args = (Way::Down, Family::V6, 96), setup = forwarded)]
fn forward(mut round: Round) -> Round {
    assert_eq!(round.world.worker.step(), BURST);
    round
}

library_benchmark_group!(name = ways; benchmarks = forward);
main!(library_benchmark_groups = ways);
