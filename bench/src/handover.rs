//! A model of many workers: what a packet costs that comes to any of them. All workers run on one core, one after the other, so
//! the cost of moving a packet's lines from core to core is not in it.
use crate::frames::Way;
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::whole::SESSIONS;
use crate::world::{Plan, Scenario, Stock, Traffic, World};
use anyhow::{Result, bail, ensure};
use dataplane::Worker;
use dpdk::{Eal, MemoryPeer, Pool, tsc};

const ROUTES: usize = 600_000;
/// Packets of a pass: a ring between two workers, which holds 2,048, gets 1,024 or 256 of them.
const PACKETS: usize = 4096;
/// Passes of a round, and the first of them, which warm the core.
const PASSES: usize = 16;
const WARM: usize = 4;

pub fn measure(eal: &Eal, pool: Pool, prefixes: &Prefixes, rounds: usize) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for workers in [4, 16] {
        let plan = Plan {
            workers,
            ..Plan::plain(SESSIONS, Routes::first(prefixes, ROUTES))
        };
        let mut model = Model {
            world: World::new(eal, pool, &format!("over{workers}"), plan)?,
            stock: Stock::some(pool, PACKETS)?,
        };
        for way in [Way::Up, Way::Down] {
            entries.extend(model.measure(way, rounds)?);
        }
        model.world.check_drops()?;
    }
    Ok(entries)
}

/// Cycles a packet.
#[derive(Clone, Copy)]
struct Costs {
    /// Of all workers together.
    all: f64,
    /// Of the worker that receives everything, a packet received.
    receiver: f64,
    /// Of the others, a packet taken over.
    owners: f64,
}

struct Model {
    world: World,
    stock: Stock,
}

impl Model {
    fn measure(&mut self, way: Way, rounds: usize) -> Result<[Entry; 3]> {
        let scenario = Scenario::plain(way, SESSIONS, PACKETS);
        let mut traffic = Traffic::new(scenario, &self.world.routes);
        let [mut all, mut receiver, mut owners, mut own] = [const { Samples(Vec::new()) }; 4];
        for _ in 0..rounds {
            own.0.push(self.round(&mut traffic, way, false)?.all);
            let handed = self.round(&mut traffic, way, true)?;
            all.0.push(handed.all);
            receiver.0.push(handed.receiver);
            owners.0.push(handed.owners);
        }
        let workers = self.world.workers.len();
        let (word, down) = match way {
            Way::Up => ("uplink", ""),
            Way::Down => ("downlink", "-down"),
        };
        let row = |part: &str, what: &str, samples: &Samples| {
            let id = format!("handover-{workers}{down}{part}");
            let name = format!("{word}, {workers} workers on one core, packets to any: {what}");
            let entry = Entry::new(&id, name, "cycles", samples);
            let mut entry = entry.beside("own packets", &own, |own, peer| own / peer);
            (entry.sessions, entry.routes) = (Some(SESSIONS), Some(ROUTES));
            entry.frame = Some("64".into());
            entry
        };
        Ok([
            row("", "both", &all),
            row("-receiver", "the receiver", &receiver),
            row("-owner", "the owner", &owners),
        ])
    }

    /// The medians of some passes.
    fn round(&mut self, traffic: &mut Traffic, way: Way, is_handed: bool) -> Result<Costs> {
        let mut passes = Vec::new();
        for pass in 0..PASSES {
            let costs = self.pass(traffic, way, is_handed)?;
            if pass >= WARM {
                passes.push(costs);
            }
        }
        let median = |of: fn(&Costs) -> f64| Samples(passes.iter().map(of).collect()).median();
        Ok(Costs {
            all: median(|costs| costs.all),
            receiver: median(|costs| costs.receiver),
            owners: median(|costs| costs.owners),
        })
    }

    /// Cycles of a pass. All packets come to worker 0, or each to its owner; then the workers run one after the other. Every octet
    /// that comes out is compared.
    fn pass(&mut self, traffic: &mut Traffic, way: Way, is_handed: bool) -> Result<Costs> {
        let World {
            workers,
            homes,
            routers,
            ..
        } = &mut self.world;
        let (from, to) = match way {
            Way::Up => (homes, routers),
            Way::Down => (routers, homes),
        };
        let owned = owned(traffic, workers.len());
        let mut work: Vec<usize> = owned.iter().map(Vec::len).collect();
        if is_handed {
            work[0] = PACKETS;
            let all: Vec<usize> = (0..PACKETS).collect();
            put(&mut self.stock, traffic, way, &all, &mut from[0])?;
        } else {
            for (packets, from) in owned.iter().zip(from) {
                put(&mut self.stock, traffic, way, packets, from)?;
            }
        }
        let mut took = Vec::new();
        for (worker, packets) in workers.iter_mut().zip(&work) {
            took.push(run(worker, *packets)? as f64);
        }
        for (peer, packets) in to.iter_mut().zip(&owned) {
            let output = |i: usize| traffic.spec(packets[i]).output(way);
            self.stock
                .unload(packets.len(), &mut peer.from_port, output)?;
        }
        traffic.advance();
        let others: f64 = took[1..].iter().sum();
        Ok(Costs {
            all: (took[0] + others) / PACKETS as f64,
            receiver: took[0] / work[0] as f64,
            owners: others / work[1..].iter().sum::<usize>() as f64,
        })
    }
}

/// The packets of a pass that each worker owns.
fn owned(traffic: &Traffic, workers: usize) -> Vec<Vec<usize>> {
    let mut owned = vec![Vec::new(); workers];
    for n in 0..PACKETS {
        let session = traffic.spec(n).session as usize;
        owned[session % workers].push(n);
    }
    owned
}

/// Puts packets before a worker.
fn put(
    stock: &mut Stock,
    traffic: &Traffic,
    way: Way,
    packets: &[usize],
    to: &mut MemoryPeer,
) -> Result<()> {
    stock.make(
        packets.len(),
        |i| traffic.spec(packets[i]).input(way),
        |_, mbuf| {
            ensure!(to.to_port.send(mbuf).is_ok(), "the ring is full");
            Ok(())
        },
    )
}

/// Lets a worker do everything for the packets before it; TSC cycles.
fn run(worker: &mut Worker, packets: usize) -> Result<u64> {
    let begin = tsc();
    let mut done = 0;
    while done < packets {
        match worker.step() {
            0 => bail!("{done} of {packets} packets are before the worker"),
            n => done += n,
        }
    }
    Ok(tsc() - begin)
}
