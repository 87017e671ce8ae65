//! How long a packet is in the daemon's worker: a generator on one core, [`Worker::run`](dataplane::Worker::run) on another, asleep
//! where it is when a user plane has little to do.
use crate::frames::Way;
use crate::pin;
use crate::report::{Entry, Samples};
use crate::whole::SESSIONS;
use crate::world::{HOT, Scenario, Stock, Traffic, World};
use anyhow::{Result, ensure};
use dpdk::{BURST, Burst, Consumer, Eal, Mbuf, Producer, tsc, tsc_hz};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Packets under way at most.
const WINDOW: usize = 2 * HOT;
/// Of each load's figures.
const ROUNDS: usize = 3;
/// Seconds of each.
const SECONDS: f64 = 1.5;

/// Packets a second of a port that is idle to the worker.
const FEW: f64 = 5000.0;
/// Microseconds that such a packet may wait in the median.
const FEW_WAIT: f64 = 60.0;

/// Jumps from nothing to the full rate, each behind such a rest and so long (seconds).
const JUMPS: usize = 20;
const REST: Duration = Duration::from_millis(10);
const JUMP: f64 = 0.005;
/// What a port's queue holds; what comes when so many wait is lost.
const DESCRIPTORS: usize = 1024;

/// Rates of which latencies are measured, of the largest that this generator and the worker manage together.
const LOADS: [(f64, &str); 2] = [(0.5, "50"), (0.9, "90")];

/// What is told of a distribution: a suffix, a name, and which part of the packets was not slower.
const QUANTILES: [(&str, &str, f64); 3] = [
    ("p99", "99 %", 0.99),
    ("p99.99", "99.99 %", 0.9999),
    ("worst", "worst", 1.0),
];

/// Measures both ways.
pub fn measure(eal: &Eal, world: World, stock: &mut Stock, core: usize) -> Result<Vec<Entry>> {
    let other = if core == 0 { 1 } else { 0 };
    let stop = AtomicBool::new(false);
    let World {
        controller: _controller,
        mut workers,
        mut homes,
        mut routers,
        routes,
        ..
    } = world;
    let (worker, home, router) = (workers.remove(0), &mut homes[0], &mut routers[0]);
    let mut entries = Vec::new();
    std::thread::scope(|threads| {
        let stop = &stop;
        let polling = threads.spawn(move || -> Result<()> {
            pin(core)?;
            worker.run(stop);
            Ok(())
        });
        pin(other)?;
        let mut both = || -> Result<()> {
            for way in [Way::Up, Way::Down] {
                let (to, from) = match way {
                    Way::Up => (&mut home.to_port, &mut router.from_port),
                    Way::Down => (&mut router.to_port, &mut home.from_port),
                };
                let scenario = Scenario::plain(way, SESSIONS, HOT);
                let traffic = Traffic::new(scenario, &routes);
                let mut generator = Generator::new(&traffic, way, to, from, stock);
                let second = tsc_hz(eal) as f64;
                let result = generator.measure(way, second, &mut entries);
                let more = stock.give(4 * DESCRIPTORS);
                generator.idle.extend(more);
                let result = result.and_then(|most| {
                    entries.push(generator.few(way, second)?);
                    entries.push(generator.jumps(way, most, second)?);
                    Ok(())
                });
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

    /// Latencies at some loads; the largest rate, in packets a tick.
    fn measure(&mut self, way: Way, second: f64, entries: &mut Vec<Entry>) -> Result<f64> {
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
        Ok(most)
    }

    /// How long a packet waits where there are few.
    fn few(&mut self, way: Way, second: f64) -> Result<Entry> {
        let mut medians = Samples::default();
        for _ in 0..ROUNDS {
            let mut ticks = self.run(FEW / second, second)?.ticks;
            ticks.sort_unstable();
            medians.0.push(ticks[ticks.len() / 2] as f64 / second * 1e6);
        }
        let word = format!("{way:?}").to_lowercase();
        let name = format!("{word}link at 5,000 packets a second: latency, median");
        let entry = Entry::new(&format!("wait-{word}"), name, "us", &medians);
        Ok(entry.at_most(FEW_WAIT))
    }

    /// What is lost when a port goes from nothing to its full rate: the one that the worker takes a port for which says none, or
    /// what this machine manages.
    fn jumps(&mut self, way: Way, most: f64, second: f64) -> Result<Entry> {
        let rate = most.min(dataplane::ASSUMED_RATE as f64 / second);
        let mut lost = Samples::default();
        for _ in 0..JUMPS {
            std::thread::sleep(REST);
            lost.0.push(self.jump(rate, second)? as f64);
        }
        let word = format!("{way:?}").to_lowercase();
        let name = format!(
            "{word}link: packets lost in a jump from nothing to {:.0} Mpps, 1,024 descriptors",
            rate * second / 1e6
        );
        let entry = Entry::new(&format!("jump-{word}"), name, "packets", &lost);
        Ok(entry.at_most(0.0))
    }

    /// How many packets of a jump find the queue full.
    fn jump(&mut self, rate: f64, second: f64) -> Result<u64> {
        let (mut burst, mut ticks) = (Burst::new(), Vec::new());
        let all = self.idle.len();
        let (start, mut sent, mut lost) = (tsc(), 0, 0);
        let mut now = start;
        while now - start < (JUMP * second) as u64 {
            let due = ((now - start) as f64 * rate) as u64;
            let n = due.saturating_sub(sent + lost).min(BURST as u64 / 2);
            let room = DESCRIPTORS.saturating_sub(self.to.len()) as u64;
            lost += n.saturating_sub(room);
            sent += self.send(n.min(room) as usize, now, &mut burst)?;
            now = tsc();
            self.receive(now, &mut burst, &mut ticks);
        }
        while self.idle.len() < all && tsc() - now < second as u64 {
            self.receive(tsc(), &mut burst, &mut ticks);
        }
        ensure!(self.idle.len() == all, "packets did not come out");
        Ok(lost)
    }

    /// Sends packets for a while, so many a tick.
    fn run(&mut self, rate: f64, second: f64) -> Result<Run> {
        let mut ticks = Vec::with_capacity((SECONDS * 40e6) as usize);
        let all = self.idle.len();
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
        while self.idle.len() < all && tsc() - now < second as u64 {
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
