//! Two workers on two cores beside one: where each receives its own sessions' packets, and where each receives the other's; with
//! tables that lie in memory, and with some that the caches hold. Two workers that share nothing at all show what the machine's two
//! cores can do.

use crate::frames::{Family, Size, Spec, Way};
use crate::pin;
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::whole::SESSIONS;
use crate::world::{Plan, SPECS, Stock, World};
use anyhow::{Context, Result, ensure};
use dataplane::Worker;
use dpdk::{Eal, MemoryPeer, Pool, tsc};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Workers that work.
const WORKERS: usize = 2;
/// Workers of a world. The first and the last work: DPDK's memory port counts packets of neighbouring queues in one cache line, which
/// the ports of network cards do not.
const ALL: usize = 8;
/// Packets that come to each worker: what is handed over always finds room.
const PACKETS: usize = 2048;
/// Passes of a round, and those after which its cores are warm: the median of the others is the round's figure. (A core that
/// has rested does not fetch far lines ahead at first.)
const PASSES: usize = 144;
const WARM: usize = 120;

/// Who works, and whose packets each worker receives.
#[derive(Clone, Copy, PartialEq)]
enum Steering {
    /// Worker 0 its own, and the other none.
    One,
    /// Each its own.
    Own,
    /// Each the other's: every packet is handed over.
    Other,
    /// Each its own, and each has tables and packet buffers of its own: they share nothing.
    Apart,
}

/// How many times as fast as one worker two have to be where the caches hold all tables: what is shared there is ours.
const ALONE: f64 = 1.9;
/// How fast two workers have to be beside two that share nothing.
const SHARING: f64 = 0.95;

/// Tables of some size, and two workers that have them.
struct Case {
    /// Whether the caches hold them.
    is_small: bool,
    /// What is measured.
    steerings: &'static [Steering],
    sessions: u32,
    routes: usize,
    world: World,
    /// A world of its own for each worker. Its other worker rests, as beside the one that is compared with.
    apart: Vec<World>,
}

impl Case {
    /// Tables of 131,072 sessions and 600,000 routes.
    fn large(eal: &Eal, pool: Pool, prefixes: &Prefixes) -> Result<Self> {
        let (sessions, routes) = (SESSIONS, 600_000);
        Ok(Case {
            is_small: false,
            steerings: &[Steering::One, Steering::Own, Steering::Other],
            sessions,
            routes,
            world: world(eal, pool, "two", sessions, Routes::first(prefixes, routes))?,
            apart: Vec::new(),
        })
    }

    /// Tables of 4,096 sessions and a default route.
    fn small(eal: &Eal, pools: [Pool; WORKERS], prefixes: &Prefixes) -> Result<Self> {
        let (sessions, routes) = (4096, 1);
        let world = |pool, name: &str| {
            let routes = Routes::first(prefixes, routes);
            world(eal, pool, name, sessions, routes)
        };
        Ok(Case {
            is_small: true,
            steerings: &[Steering::One, Steering::Own, Steering::Apart],
            sessions,
            routes,
            world: world(pools[0], "few")?,
            apart: vec![world(pools[0], "one")?, world(pools[1], "other")?],
        })
    }

    /// Where the workers of a steering are.
    fn worlds(&mut self, steering: Steering) -> &mut [World] {
        match steering {
            Steering::Apart => &mut self.apart,
            _ => std::slice::from_mut(&mut self.world),
        }
    }

    /// The rows of one way: each worker with its own packets, and what else was measured.
    fn rows(&self, way: Way, [one, own, third]: &[Samples; 3]) -> Vec<Entry> {
        let (word, down) = match way {
            Way::Up => ("uplink", ""),
            Way::Down => ("downlink", "-down"),
        };
        let (small, tables) = match self.is_small {
            true => ("-small", ", small tables"),
            false => ("", ""),
        };
        let id = format!("workers{small}{down}");
        let name = format!("{word}{tables}: two workers on two cores against one, own packets");
        let entry = Entry::new(&id, name, "cycles", own);
        let mut all = vec![match way {
            _ if self.is_small => entry.faster_at_least("one worker", one, ALONE),
            Way::Up => entry.faster_at_least("one worker", one, 1.8),
            Way::Down => entry.beside("one worker", one, |own, peer| peer / own),
        }];
        if self.steerings.contains(&Steering::Other) {
            let name = format!("{word}: two workers that hand every packet over to each other");
            let handed = Entry::new(&format!("{id}-handed-over"), name, "cycles", third);
            all.push(handed.beside("own packets", own, |own, peer| own / peer));
        }
        if self.steerings.contains(&Steering::Apart) {
            let name =
                format!("{word}{tables}: two workers on two cores against one, sharing nothing");
            let apart = Entry::new(&format!("{id}-apart"), name, "cycles", third);
            all.push(apart.beside("one worker", one, |own, peer| peer / own));
            let name = format!("{word}{tables}: two workers against two that share nothing");
            let shared = Entry::new(&format!("{id}-shared"), name, "cycles", own);
            all.push(shared.faster_at_least("sharing nothing", third, SHARING));
        }
        for entry in &mut all {
            (entry.sessions, entry.routes) = (Some(self.sessions), Some(self.routes));
            entry.frame = Some("64".into());
        }
        all
    }
}

fn world(eal: &Eal, pool: Pool, name: &str, sessions: u32, routes: Routes) -> Result<World> {
    let plan = Plan {
        workers: ALL as u16,
        ..Plan::plain(sessions, routes)
    };
    World::new(eal, pool, name, plan)
}

pub fn measure(
    eal: &Eal,
    pool: Pool,
    prefixes: &Prefixes,
    core: usize,
    rounds: usize,
) -> Result<Vec<Entry>> {
    let pools = [pool, eal.pool("second", 33_000)?];
    let mut cases = [
        Case::large(eal, pool, prefixes)?,
        Case::small(eal, pools, prefixes)?,
    ];
    let mut stocks = [
        Stock::some(pools[0], PACKETS)?,
        Stock::some(pools[1], PACKETS)?,
    ];
    let mut entries = Vec::new();
    for way in [Way::Up, Way::Down] {
        let mut figures = [const { [const { Samples(Vec::new()) }; 3] }; 2];
        let specs = cases.each_ref().map(|case| specs(way, case));
        for _ in 0..rounds {
            for ((case, specs), figures) in cases.iter_mut().zip(&specs).zip(&mut figures) {
                let steerings = case.steerings.iter().copied();
                for (steering, samples) in steerings.zip(figures) {
                    let work = Work {
                        way,
                        steering,
                        specs,
                    };
                    let figure = work.round(case.worlds(steering), &mut stocks, eal, core)?;
                    samples.0.push(figure);
                }
            }
        }
        let [large, small] = &cases;
        let mut of_large = large.rows(way, &figures[0]);
        let of_small = small.rows(way, &figures[1]);
        let shared = of_small.last().and_then(|shared| shared.met);
        let verdict = verdict(of_large[0].ratio, of_small[0].ratio, shared);
        of_large[0].name += verdict;
        entries.extend(of_large.into_iter().chain(of_small));
    }
    for case in &cases {
        case.world.check_drops()?;
        case.apart.iter().try_for_each(World::check_drops)?;
    }
    Ok(entries)
}

/// Whether what two workers lack with large tables is ours, the memory's, or the cores'. `shared`: whether two workers with small
/// tables are as fast as two that share nothing.
fn verdict(large: Option<f64>, small: Option<f64>, shared: Option<bool>) -> &'static str {
    let reached = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio >= ALONE);
    match (reached(large), reached(small), shared) {
        (true, ..) => "",
        (_, true, _) => " (small tables reach 1.9: the rest is memory)",
        (.., Some(true)) => " (two that share nothing are no faster: memory and cores)",
        _ => " (small tables miss 1.9 too: not memory alone)",
    }
}

/// Different packets, as many as in the other figures.
fn specs(
    way: Way,
    Case {
        sessions, world, ..
    }: &Case,
) -> Vec<Spec> {
    let mut random = SmallRng::seed_from_u64(3);
    let (family, size, routes) = (Family::V4, Size::Octets(64), &world.routes[0]);
    let spec = |_| Spec::random(way, family, size, *sessions, routes, &mut random);
    (0..SPECS).map(spec).collect()
}

/// Waits for all without sleeping: whoever sleeps wakes up too late.
struct Together {
    all: usize,
    arrived: AtomicUsize,
}

impl Together {
    fn of(all: usize) -> Self {
        Together {
            all,
            arrived: AtomicUsize::new(0),
        }
    }

    /// Nobody waits for this one any more.
    fn give_up(&self) {
        self.arrived.fetch_add(usize::MAX / 4, SeqCst);
    }

    /// For the `n`th time, from 1 on.
    fn wait(&self, n: usize) {
        self.arrived.fetch_add(1, SeqCst);
        while self.arrived.load(SeqCst) < n * self.all {
            std::hint::spin_loop();
        }
    }
}

/// What is to be done.
#[derive(Clone, Copy)]
struct Work<'a> {
    way: Way,
    steering: Steering,
    specs: &'a [Spec],
}

/// A worker's begin and end in each pass, TSC.
type Times = Vec<(u64, u64)>;

impl Work<'_> {
    /// Who works.
    fn workers(self) -> usize {
        if self.steering == Steering::One {
            1
        } else {
            WORKERS
        }
    }

    /// Who works in a world.
    fn of_a_world(self) -> usize {
        match self.steering {
            Steering::Apart => 1,
            _ => WORKERS,
        }
    }

    /// The packets that have this owner in a pass.
    fn owned(self, owner: usize, pass: usize) -> Vec<Spec> {
        let from = (pass * WORKERS + owner) * PACKETS % SPECS;
        let owned = |spec: &Spec| {
            let mut spec = *spec;
            spec.session = spec.session / ALL as u32 * ALL as u32 + (owner * (ALL - 1)) as u32;
            spec
        };
        self.specs[from..from + PACKETS].iter().map(owned).collect()
    }

    /// The median of some passes: TSC cycles from the first one's begin to the last one's end, divided by all packets.
    fn round(
        self,
        worlds: &mut [World],
        stocks: &mut [Stock; WORKERS],
        eal: &Eal,
        core: usize,
    ) -> Result<f64> {
        let together = Together::of(self.workers());
        let sides = worlds.iter_mut();
        let sides = sides.flat_map(|world| {
            world
                .sides(self.way)
                .step_by(ALL - 1)
                .take(self.of_a_world())
        });
        let places = sides.zip(stocks).enumerate();
        let times: Vec<Result<Times>> = std::thread::scope(|threads| {
            let together = &together;
            let one = |(own, ((worker, from, to), stock))| {
                let place = Place {
                    own: own % self.of_a_world(),
                    worker,
                    from,
                    to,
                    stock,
                };
                threads.spawn(move || {
                    pin((core + own) % WORKERS)?;
                    let _registered = eal.register_thread()?;
                    let times = place.passes(self, together);
                    times.inspect_err(|_| together.give_up())
                })
            };
            let running: Vec<_> = places.take(self.workers()).map(one).collect();
            let ended = running.into_iter();
            ended
                .map(|thread| thread.join().expect("the worker's thread"))
                .collect()
        });
        let times = times.into_iter().collect::<Result<Vec<_>>>()?;
        let mut samples = Samples::default();
        for pass in WARM..PASSES {
            let begin = times
                .iter()
                .map(|all| all[pass].0)
                .min()
                .context("a worker")?;
            let end = times
                .iter()
                .map(|all| all[pass].1)
                .max()
                .context("a worker")?;
            samples
                .0
                .push((end - begin) as f64 / (PACKETS * self.workers()) as f64);
        }
        Ok(samples.median())
    }
}

/// A worker and what it works with, all of it on its own core.
struct Place<'a> {
    own: usize,
    worker: &'a mut Worker,
    from: &'a mut MemoryPeer,
    to: &'a mut MemoryPeer,
    stock: &'a mut Stock,
}

impl Place<'_> {
    /// Each time: makes the packets, works, and looks at every octet that comes out.
    fn passes(self, work: Work<'_>, together: &Together) -> Result<Times> {
        let (other, way) = (WORKERS - 1 - self.own, work.way);
        let mut times = Vec::new();
        // Each other's packets, which each has to work on twice.
        let (owner, rounds) = match work.steering {
            Steering::Other => (other, 2),
            _ => (self.own, 1),
        };
        for pass in 0..PASSES {
            let (received, sent) = (work.owned(owner, pass), work.owned(self.own, pass));
            let from = &mut self.from.to_port;
            self.stock.make(
                PACKETS,
                |i| received[i].input(way),
                |_, mbuf| {
                    ensure!(from.send(mbuf).is_ok(), "the ring is full");
                    Ok(())
                },
            )?;
            together.wait(2 * pass + 1);
            let begin = tsc();
            let mut done = 0;
            while done < rounds * PACKETS {
                done += self.worker.step();
            }
            times.push((begin, tsc()));
            self.stock
                .unload(PACKETS, &mut self.to.from_port, |i| sent[i].output(way))?;
            together.wait(2 * pass + 2);
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn only_large_tables_that_are_slower_alone_show_memory() {
        let says = |large, small, shared| verdict(Some(large), Some(small), Some(shared));
        assert_eq!(says(1.9, 1.5, false), "");
        assert!(says(1.5, 1.9, true).contains("the rest is memory"));
        assert!(says(1.5, 1.8, false).contains("not memory alone"));
        assert!(says(1.5, 1.8, true).contains("no faster"));
    }
}
