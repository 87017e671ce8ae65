//! Two workers on two cores beside one: where each receives its own sessions' packets, and where each receives the other's.
use crate::frames::{Family, Size, Spec, Way};
use crate::pin;
use crate::report::{Entry, Samples};
use crate::routes::Routes;
use crate::whole::SESSIONS;
use crate::world::{Stock, World};
use anyhow::{Context, Result};
use dataplane::Worker;
use dpdk::{Eal, Pool, tsc};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const WORKERS: u32 = 2;
/// Packets that come to each worker: what is handed over always finds room.
const PACKETS: usize = 2048;
/// Passes of a round, whose median is the round's figure.
const PASSES: usize = 24;

/// Who works, and whose packets each worker receives.
#[derive(Clone, Copy, PartialEq)]
enum Steering {
    /// Worker 0 its own, and the other none.
    One,
    /// Each its own.
    Own,
    /// Each the other's: every packet is handed over.
    Other,
}

pub fn measure(
    eal: &Eal,
    pool: Pool,
    routes: Routes,
    stock: &mut Stock,
    core: usize,
    rounds: usize,
) -> Result<Vec<Entry>> {
    let mut world = World::shared(eal, pool, "two", SESSIONS, routes, WORKERS as u16)?;
    let mut entries = Vec::new();
    for (way, id, handed, word) in [
        (Way::Up, "workers", "workers-handed-over", "uplink"),
        (
            Way::Down,
            "workers-down",
            "workers-down-handed-over",
            "downlink",
        ),
    ] {
        let mut samples = [const { Samples(Vec::new()) }; 3];
        for _ in 0..rounds {
            let all = [Steering::One, Steering::Own, Steering::Other];
            for (steering, samples) in all.into_iter().zip(&mut samples) {
                let mut passes = Samples::default();
                for _ in 0..PASSES {
                    passes
                        .0
                        .push(pass(&mut world, stock, eal, core, way, steering)?);
                }
                samples.0.push(passes.median());
            }
        }
        let [one, own, other] = &samples;
        let name = format!("{word}: two workers on two cores against one, own packets");
        let entry = Entry::new(id, name, "cycles", own);
        let entry = match way {
            Way::Up => entry.faster_at_least("one worker", one, 1.8),
            Way::Down => entry.beside("one worker", one, |own, peer| peer / own),
        };
        entries.push(of(entry));
        let name = format!("{word}: two workers that hand every packet over to each other");
        let entry = Entry::new(handed, name, "cycles", other);
        entries.push(of(entry.beside("own packets", own, |own, peer| own / peer)));
    }
    world.check_drops()?;
    Ok(entries)
}

fn of(mut entry: Entry) -> Entry {
    (entry.sessions, entry.routes) = (Some(SESSIONS), Some(600_000));
    entry.frame = Some("64".into());
    entry
}

/// TSC cycles from the first packet to the last, divided by all packets. Every octet that comes out is looked at.
fn pass(
    world: &mut World,
    stock: &mut Stock,
    eal: &Eal,
    core: usize,
    way: Way,
    steering: Steering,
) -> Result<f64> {
    let working = if steering == Steering::One {
        1
    } else {
        WORKERS
    };
    let mut random = SmallRng::seed_from_u64(tsc());
    // By receiver.
    let mut specs = Vec::new();
    for receiver in 0..working {
        let owner = match steering {
            Steering::Other => WORKERS - 1 - receiver,
            _ => receiver,
        };
        let spec = |_| {
            let (family, size) = (Family::V4, Size::Octets(64));
            let mut spec = Spec::random(way, family, size, SESSIONS, &world.routes, &mut random);
            spec.session = spec.session / WORKERS * WORKERS + owner;
            spec
        };
        specs.push(((0..PACKETS).map(spec).collect::<Vec<_>>(), owner as usize));
    }
    let World {
        workers,
        homes,
        routers,
        ..
    } = world;
    let (from, to) = match way {
        Way::Up => (homes, routers),
        Way::Down => (routers, homes),
    };
    for ((specs, _), peer) in specs.iter().zip(from) {
        stock.make(
            PACKETS,
            |i| specs[i].input(way),
            |_, mbuf| peer.to_port.send(mbuf).ok().context("the ring is full"),
        )?;
    }
    // A packet that is handed over is work twice.
    let work = if steering == Steering::Other { 2 } else { 1 } * PACKETS;
    let cycles = work_off(&mut workers[..working as usize], eal, core, work)?;
    for (specs, owner) in &specs {
        stock.unload(PACKETS, &mut to[*owner].from_port, |i| specs[i].output(way))?;
    }
    Ok(cycles as f64 / (PACKETS * working as usize) as f64)
}

/// Has each worker do so much on a core of its own, all at once; TSC cycles from the first one's begin to the last one's end.
fn work_off(workers: &mut [Worker], eal: &Eal, core: usize, work: usize) -> Result<u64> {
    let (ready, all) = (AtomicUsize::new(0), workers.len());
    let run = |worker: &mut Worker| {
        ready.fetch_add(1, SeqCst);
        while ready.load(SeqCst) < all {}
        let begin = tsc();
        let mut done = 0;
        while done < work {
            done += worker.step();
        }
        (begin, tsc())
    };
    let (first, others) = workers.split_first_mut().context("a worker")?;
    std::thread::scope(|threads| {
        let spawn = |(worker, n): (_, usize)| {
            let run = &run;
            threads.spawn(move || -> Result<_> {
                pin((core + n) % 2)?;
                let _registered = eal.register_thread()?;
                Ok(run(worker))
            })
        };
        let others: Vec<_> = others.iter_mut().zip(1..).map(spawn).collect();
        let mut times = vec![run(first)];
        for thread in others {
            times.push(thread.join().expect("the worker's thread")?);
        }
        let begin = times.iter().map(|(begin, _)| *begin).min();
        let end = times.iter().map(|(_, end)| *end).max();
        Ok(end.unwrap_or_default() - begin.unwrap_or_default())
    })
}
