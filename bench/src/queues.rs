//! Queues of subscribers in random order: our scheduler beside DPDK's.
use crate::circulation::{Address, CLASSES, Circulation, Population, Side};
use crate::report::{Entry, Samples};
use anyhow::{Context, Result, ensure};
use dataplane::{FrameChain, Overhead, Rate, WaitingFrame};
use dpdk::peers::{Sched, claim};
use dpdk::{BURST, Burst, Eal, Mbuf, Pool, tsc, tsc_hz};
use scheduler::{
    AggregateSettings, Discipline, Management, PORT, QueueProfile, QueueSettings, Scheduler,
    Settings, SubscriberIndex, SubscriberSettings,
};

/// What the port sends: 100 Gbit/s.
pub const PORT_KBPS: u64 = 100_000_000;
/// Octets of a frame, and what it takes on the wire beside them.
pub const FRAME: u32 = 512;
pub const WIRE: u32 = 24;
/// Frames of a subscriber that waits all the time.
pub const FRAMES: u32 = 5;
/// Subscribers of an aggregate.
const AGGREGATE: u32 = 64;
/// The port waits as often as this at most until a burst is full.
const TRIES: usize = BURST;

/// What subscribers have.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    /// A rate, and all rates together are nine tenths of the port's: each frame waits for its subscriber's rate.
    Rates,
    /// All that there is, in aggregates. All rates together are twice the port's: most frames wait for the port.
    Full,
    /// A rate, and no frame that waits when another comes.
    Idle,
}

struct Case {
    id: &'static str,
    name: &'static str,
    subscribers: u32,
    load: Load,
    /// Whether DPDK's scheduler does the same in turns.
    has_peer: bool,
}

const FEW: Case = Case {
    id: "sched-4k",
    name: "queues of 4,096 subscribers that are never empty: in and out",
    subscribers: 4096,
    load: Load::Rates,
    has_peer: true,
};
const MANY: Case = Case {
    id: "sched-128k",
    name: "queues of 131,072 subscribers beside 4,096",
    subscribers: 131_072,
    load: Load::Rates,
    has_peer: false,
};
const PLAIN: Case = Case {
    id: "sched-32k",
    name: "queues of 32,768 subscribers that are never empty: in and out",
    subscribers: 32_768,
    load: Load::Rates,
    has_peer: true,
};
const FULL: Case = Case {
    id: "sched-32k-full",
    name: "the same with aggregates, committed rates, weights and CoDel",
    subscribers: 32_768,
    load: Load::Full,
    has_peer: true,
};
const IDLE: Case = Case {
    id: "sched-idle",
    name: "queues of 32,768 subscribers that are empty when a packet comes: in and out",
    subscribers: 32_768,
    load: Load::Idle,
    has_peer: true,
};

/// Part of all ids.
pub const ID: &str = "sched";

/// Cycles for a packet that comes and one that leaves.
pub fn measure(eal: &Eal, pool: Pool, rounds: usize) -> Result<Vec<Entry>> {
    let measure = |cases: &[&Case]| measure_in_turns(eal, pool, cases, rounds);
    let sizes = measure(&[&FEW, &MANY])?;
    let (few, many) = (&sizes[0], &sizes[1]);
    let many = MANY.entry(&many.own).ratio_at_most(FEW.id, &few.own, 1.35);
    let mut entries = vec![few.entry(&FEW), many];
    for (case, cycles, part) in [(&PLAIN, 75.0, 0.25), (&FULL, 100.0, 0.5)] {
        let both = &measure(&[case])?[0];
        let mut ratio = case
            .entry(&both.own)
            .ratio_at_most("rte_sched", &both.peer, part);
        ratio.id += "-ratio";
        ratio.name = "the same beside rte_sched".into();
        entries.extend([both.entry(case).at_most(cycles), ratio]);
    }
    entries.push(measure(&[&IDLE])?[0].entry(&IDLE).at_most(60.0));
    Ok(entries)
}

/// Samples of ours and of DPDK's.
#[derive(Default)]
struct Both {
    own: Samples,
    peer: Samples,
}

impl Both {
    fn entry(&self, case: &Case) -> Entry {
        let entry = case.entry(&self.own);
        entry.beside("rte_sched", &self.peer, |own, peer| own / peer)
    }
}

fn measure_in_turns(eal: &Eal, pool: Pool, cases: &[&Case], rounds: usize) -> Result<Vec<Both>> {
    let mut flows = Vec::new();
    for case in cases {
        eprintln!("  {}", case.id);
        let ours = Circulation::new(case.population(), pool, Ours::new(case, tsc_hz(eal)))?;
        let theirs = match case.has_peer {
            true => Some(Circulation::new(
                case.population(),
                pool,
                Theirs::new(case, eal)?,
            )?),
            false => None,
        };
        flows.push((ours, theirs, Both::default()));
    }
    for _ in 0..rounds {
        for (ours, theirs, both) in &mut flows {
            both.own.0.push(ours.round()?);
            if let Some(theirs) = theirs {
                both.peer.0.push(theirs.round()?);
            }
        }
    }
    Ok(flows.into_iter().map(|(.., both)| both).collect())
}

impl Case {
    fn entry(&self, own: &Samples) -> Entry {
        let mut entry = Entry::new(self.id, self.name, "cycles", own);
        entry.sessions = Some(self.subscribers);
        entry
    }

    /// A subscriber's rate in kbit/s, of frames with all that they take on the wire.
    fn rate(&self) -> u64 {
        let share = PORT_KBPS / u64::from(self.subscribers);
        match self.load {
            Load::Rates => share * 9 / 10,
            Load::Full => share * 2,
            Load::Idle => PORT_KBPS / 100,
        }
    }

    /// Of classes.
    fn weights(&self) -> [u8; CLASSES] {
        match self.load {
            Load::Full => [4, 3, 2, 1],
            Load::Rates | Load::Idle => [1; CLASSES],
        }
    }

    fn population(&self) -> Population {
        match self.load {
            Load::Idle => Population::idle(self.subscribers),
            Load::Rates | Load::Full => Population::waiting(self.subscribers, FRAMES),
        }
    }
}

/// Our scheduler. Its clock goes on as the port sends.
struct Ours {
    scheduler: Scheduler<FrameChain>,
    left: Burst,
    now: f64,
    /// Ticks that a frame takes on the port, and those of a burst that comes.
    frame: f64,
    burst: f64,
}

impl Ours {
    fn new(case: &Case, hz: u64) -> Self {
        let mut scheduler = Scheduler::new(Settings {
            hz,
            rate: Some(Rate::kbps(PORT_KBPS)),
            // less than half of the room is used, as it mostly is
            most_packets: (2 * FRAMES * case.subscribers) as usize,
            key: 0,
        });
        scheduler.reserve(case.subscribers as usize);
        let profile = scheduler.add_profile(&QueueProfile {
            classes: Vec::from(case.weights().map(|weight| QueueSettings {
                discipline: Discipline::Weighted(weight),
                management: match case.load {
                    Load::Full => QueueSettings::default().management,
                    Load::Rates | Load::Idle => Management::TailDrop,
                },
                ..QueueSettings::default()
            })),
            overhead: Overhead::octets(WIRE as i16),
        });
        let mut parent = PORT;
        for at in 0..case.subscribers {
            let mut settings = SubscriberSettings {
                profile,
                rate: Some(Rate::kbps(case.rate())),
                committed: None,
                weight: 1,
                header: 0,
            };
            if case.load == Load::Full {
                if at % AGGREGATE == 0 {
                    parent = scheduler.add_aggregate(&AggregateSettings {
                        parent: PORT,
                        // three quarters of its subscribers' rates
                        rate: Some(Rate::kbps(case.rate() * u64::from(AGGREGATE) * 3 / 4)),
                    });
                }
                settings.committed = Some(Rate::kbps(case.rate() / 4));
                settings.weight = 1 + (at % 4) as u16;
            }
            scheduler.add(parent, &settings);
        }
        let frame = f64::from((FRAME + WIRE) * 8) * hz as f64 / (PORT_KBPS * 1000) as f64;
        let busy = if case.load == Load::Idle { 0.5 } else { 0.999 };
        Ours {
            scheduler,
            left: Burst::new(),
            now: hz as f64,
            frame,
            burst: frame * BURST as f64 / busy,
        }
    }

    /// Takes frames, or lets them leave at once. Returns how many are lost.
    fn offer(&mut self, coming: &mut Vec<(Address, Mbuf)>) -> usize {
        let now = self.now as u64;
        let to = |address: &Address| (SubscriberIndex(address.subscriber), address.class);
        for (to, class) in coming.iter().map(|(address, _)| to(address)) {
            self.scheduler.prefetch_subscriber(to);
            self.scheduler.prefetch_queue(to, class);
        }
        for (to, class) in coming.iter().map(|(address, _)| to(address)) {
            self.scheduler.prefetch_last(to, class);
        }
        let mut lost = 0;
        for (address, frame) in coming.drain(..) {
            let (to, class) = to(&address);
            match self.scheduler.offer(to, class, WaitingFrame(frame), now) {
                Ok(None) => {}
                Ok(Some(frame)) => lost += usize::from(self.left.push(frame.0).is_err()),
                Err(_) => lost += 1,
            }
        }
        lost
    }
}

/// A frame that says in its first octets where it goes. It has no more of them in its buffer.
fn descriptor(pool: Pool, to: Address) -> Result<Mbuf> {
    let number = to.subscriber * CLASSES as u32 + to.class as u32;
    let frame = pool.packet(&number.to_be_bytes());
    frame
        .and_then(|frame| claim(frame, FRAME))
        .context("no buffer is free")
}

fn address(frame: &Mbuf) -> Result<Address> {
    let octets = frame.data().first_chunk();
    let number = u32::from_be_bytes(*octets.context("a frame without an address")?);
    Ok(Address {
        subscriber: number / CLASSES as u32,
        class: number as usize % CLASSES,
    })
}

impl Side for Ours {
    fn frame(&mut self, pool: Pool, to: Address) -> Result<Mbuf> {
        descriptor(pool, to)
    }

    fn address(&self, frame: &Mbuf) -> Result<Address> {
        address(frame)
    }

    fn take(&mut self, coming: &mut Vec<(Address, Mbuf)>) -> Result<()> {
        let now = self.now as u64;
        for (to, frame) in coming.drain(..) {
            let subscriber = SubscriberIndex(to.subscriber);
            let result = self
                .scheduler
                .enqueue(subscriber, to.class, WaitingFrame(frame), now);
            ensure!(result.is_ok(), "a frame has found no room");
        }
        Ok(())
    }

    fn turn(&mut self, coming: &mut Vec<(Address, Mbuf)>, all: &mut Vec<Mbuf>) -> Result<u64> {
        self.now += self.burst;
        let mut tries = 0;
        let begin = tsc();
        let mut lost = self.offer(coming);
        let left = &mut self.left;
        loop {
            let most = BURST - left.len();
            self.scheduler.dequeue(
                self.now as u64,
                most,
                &mut |_, frame: WaitingFrame| lost += usize::from(left.push(frame.0).is_err()),
                &mut |_, dropped| drop(dropped),
            );
            tries += 1;
            let next = self.scheduler.deadline();
            if left.len() == BURST || tries == TRIES || next.is_none() {
                break;
            }
            // nobody may send: the port waits
            self.now = (self.now + self.frame).max(next.unwrap_or(0) as f64);
        }
        let took = tsc() - begin;
        ensure!(lost == 0, "{lost} frames are lost");
        ensure!(left.len() == BURST, "{} of a burst have left", left.len());
        left.take_all(|frame| all.push(frame));
        Ok(took)
    }
}

/// DPDK's, on the clock of the machine.
struct Theirs {
    port: Sched,
    coming: Burst,
    left: Burst,
}

impl Theirs {
    fn new(case: &Case, eal: &Eal) -> Result<Self> {
        let octets = |kbps| kbps * 125;
        let (rate, pipe) = (octets(PORT_KBPS), octets(case.rate()));
        Ok(Theirs {
            port: Sched::new(eal, case.subscribers, rate, pipe, case.weights())?,
            coming: Burst::new(),
            left: Burst::new(),
        })
    }
}

impl Side for Theirs {
    fn frame(&mut self, pool: Pool, to: Address) -> Result<Mbuf> {
        let frame = descriptor(pool, to)?;
        let frame = self.port.address(frame, to.subscriber, to.class as u32);
        frame.context("a frame that is not whole")
    }

    fn address(&self, frame: &Mbuf) -> Result<Address> {
        address(frame)
    }

    fn take(&mut self, coming: &mut Vec<(Address, Mbuf)>) -> Result<()> {
        let n = coming.len();
        for (_, frame) in coming.drain(..) {
            ensure!(self.coming.push(frame).is_ok(), "more than a burst");
        }
        let queued = self.port.enqueue(&mut self.coming);
        ensure!(queued == n, "{queued} of {n} frames have found room");
        Ok(())
    }

    fn turn(&mut self, coming: &mut Vec<(Address, Mbuf)>, all: &mut Vec<Mbuf>) -> Result<u64> {
        for (_, frame) in coming.drain(..) {
            ensure!(self.coming.push(frame).is_ok(), "more than a burst");
        }
        let begin = tsc();
        let queued = self.port.enqueue(&mut self.coming);
        let n = self.port.dequeue(&mut self.left);
        let took = tsc() - begin;
        ensure!(queued == BURST && n == BURST, "{queued} frames in, {n} out");
        self.left.take_all(|frame| all.push(frame));
        Ok(took)
    }
}

/// Octets of memory that a subscriber takes. `allocated` says how many this process has allocated.
pub fn memory(allocated: impl Fn() -> usize) -> Entry {
    let before = allocated();
    let scheduler = Ours::new(&FULL, 1_000_000_000).scheduler;
    let each = (allocated() - before) as f64 / f64::from(FULL.subscribers);
    drop(scheduler);
    let name = "memory of a subscriber with four queues, with its part of an aggregate of 64";
    let mut entry = Entry::new("memory-queue", name, "octets", &Samples(vec![each]));
    entry.sessions = Some(FULL.subscribers);
    entry.at_most(1000.0)
}
