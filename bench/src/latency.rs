//! How long a packet is in the graph when it is not alone: a generator on one core, the worker on another.
use crate::frames::{Family, Size, Way};
use crate::pin;
use crate::report::{Entry, Samples};
use crate::whole::SESSIONS;
use crate::world::{HOT, Scenario, Stock, Traffic, World};
use anyhow::{Result, ensure};
use dpdk::{BURST, Burst, Consumer, Eal, Mbuf, Producer, tsc, tsc_hz};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Packets under way at most.
const WINDOW: usize = 2 * HOT;
/// Of each load's figures.
const ROUNDS: usize = 3;
/// Seconds of each.
const SECONDS: f64 = 1.5;

/// Rates of which latencies are measured, of the largest that this generator and the worker manage together.
const LOADS: [(f64, &str); 2] = [(0.5, "50"), (0.9, "90")];

/// What is told of a distribution: a suffix, a name, and which part of the packets was not slower.
const QUANTILES: [(&str, &str, f64); 3] = [
    ("p99", "99 %", 0.99),
    ("p99.99", "99.99 %", 0.9999),
    ("worst", "worst", 1.0),
];

/// Measures both ways.
pub fn measure(eal: &Eal, world: &mut World, stock: &mut Stock, core: usize) -> Result<Vec<Entry>> {
    let other = if core == 0 { 1 } else { 0 };
    let stop = AtomicBool::new(false);
    let World {
        workers,
        homes,
        routers,
        routes,
        ..
    } = world;
    let (worker, home, router) = (&mut workers[0], &mut homes[0], &mut routers[0]);
    let mut entries = Vec::new();
    std::thread::scope(|threads| {
        let stop = &stop;
        let polling = threads.spawn(move || -> Result<()> {
            pin(core)?;
            let _registered = eal.register_thread()?;
            while !stop.load(Relaxed) {
                worker.step();
            }
            Ok(())
        });
        pin(other)?;
        let mut both = || -> Result<()> {
            for way in [Way::Up, Way::Down] {
                let (to, from) = match way {
                    Way::Up => (&mut home.to_port, &mut router.from_port),
                    Way::Down => (&mut router.to_port, &mut home.from_port),
                };
                let scenario = Scenario {
                    way,
                    family: Family::V4,
                    size: Size::Octets(64),
                    sessions: SESSIONS,
                    packets: HOT,
                };
                let traffic = Traffic::new(scenario, routes);
                let mut generator = Generator::new(&traffic, way, to, from, stock);
                let result = generator.measure(way, tsc_hz(eal) as f64, &mut entries);
                stock.take(generator.idle);
                result?;
            }
            Ok(())
        };
        let result = both();
        stop.store(true, Relaxed);
        let polled = polling.join().expect("the worker's thread");
        result.and(polled)
    })?;
    pin(core)?;
    Ok(entries)
}

/// Sends packets at a rate, and takes the time of each.
struct Generator<'a> {
    headers: Vec<Vec<u8>>,
    next: usize,
    to: &'a mut Producer,
    from: &'a mut Consumer,
    idle: Vec<Mbuf>,
}

/// Ticks that the packets of one run took, and how many came in a tick.
struct Run {
    ticks: Vec<u32>,
    rate: f64,
}

impl<'a> Generator<'a> {
    fn new(
        traffic: &Traffic,
        way: Way,
        to: &'a mut Producer,
        from: &'a mut Consumer,
        stock: &mut Stock,
    ) -> Self {
        Generator {
            headers: (0..1 << 15).map(|n| traffic.spec(n).input(way)).collect(),
            next: 0,
            to,
            from,
            idle: stock.give(WINDOW),
        }
    }

    fn measure(&mut self, way: Way, second: f64, entries: &mut Vec<Entry>) -> Result<()> {
        let word = format!("{way:?}").to_lowercase();
        let most = self.run(f64::INFINITY, second)?.rate;
        let rate = Samples(vec![most * second / 1e6]);
        let name = format!("{word}link: largest rate from core to core");
        entries.push(Entry::new(
            &format!("latency-{word}-rate"),
            name,
            "Mpps",
            &rate,
        ));
        for (load, percent) in LOADS {
            let mut figures = [const { Samples(Vec::new()) }; 4];
            for _ in 0..ROUNDS {
                let mut run = self.run(most * load, second)?;
                if run.rate < 0.98 * load * most {
                    eprintln!(
                        "    {word}link at {percent} %: the machine is too busy to keep the rate"
                    );
                    continue;
                }
                run.ticks.sort_unstable();
                let microseconds = |ticks: f64| ticks / second * 1e6;
                let n = run.ticks.len();
                let mean = run.ticks.iter().map(|&t| t as f64).sum::<f64>() / n as f64;
                figures[3].0.push(microseconds(mean));
                for (figure, (.., part)) in figures.iter_mut().zip(QUANTILES) {
                    let at = ((n - 1) as f64 * part) as usize;
                    figure.0.push(microseconds(run.ticks[at] as f64));
                }
            }
            if figures[0].0.is_empty() {
                continue;
            }
            let names = QUANTILES.map(|(suffix, name, _)| (suffix, name));
            for ((suffix, name), figure) in
                names.into_iter().chain([("mean", "mean")]).zip(&figures)
            {
                let id = format!("latency-{word}-{percent}-{suffix}");
                let name = format!("{word}link at {percent} %: latency, {name}");
                entries.push(Entry::new(&id, name, "us", figure));
            }
        }
        Ok(())
    }

    /// Sends packets for a while, so many a tick.
    fn run(&mut self, rate: f64, second: f64) -> Result<Run> {
        let mut ticks = Vec::with_capacity((SECONDS * 40e6) as usize);
        let length = (SECONDS * second) as u64;
        let mut burst = Burst::new();
        let (start, mut sent) = (tsc(), 0u64);
        let mut now = start;
        while now - start < length {
            let due = ((now - start) as f64 * rate) as u64;
            let n = due.saturating_sub(sent).min(BURST as u64 / 2);
            sent += self.send(n as usize, now, &mut burst)?;
            now = tsc();
            self.receive(now, &mut burst, &mut ticks);
        }
        let took = now - start;
        while self.idle.len() < WINDOW && tsc() - now < second as u64 {
            self.receive(tsc(), &mut burst, &mut ticks);
        }
        ensure!(
            ticks.len() as u64 == sent,
            "{} of {sent} packets came out",
            ticks.len()
        );
        Ok(Run {
            ticks,
            rate: sent as f64 / took as f64,
        })
    }

    /// Up to `n` packets, as far as there are any that are not under way.
    fn send(&mut self, n: usize, now: u64, burst: &mut Burst) -> Result<u64> {
        let n = n.min(self.idle.len());
        for mut mbuf in self.idle.drain(self.idle.len() - n..) {
            let frame = &self.headers[self.next];
            self.next = (self.next + 1) % self.headers.len();
            mbuf.reset();
            ensure!(mbuf.append(frame), "a packet buffer is too small");
            // The worker leaves these words of a packet that it forwards alone.
            mbuf.set_meta([now as u32, (now >> 32) as u32]);
            ensure!(burst.push(mbuf).is_ok(), "a burst is full");
        }
        Ok(self.to.send_burst(burst) as u64)
    }

    fn receive(&mut self, now: u64, burst: &mut Burst, ticks: &mut Vec<u32>) {
        self.from.recv_burst(burst);
        while let Some(mbuf) = burst.pop() {
            let [low, high] = mbuf.meta();
            let sent = (high as u64) << 32 | low as u64;
            ticks.push(u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
            self.idle.push(mbuf);
        }
    }
}
