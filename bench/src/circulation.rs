//! Frames of subscribers in circulation: those that leave queues come again, but not soon, and in another order.
use crate::report::Samples;
use anyhow::{Result, ensure};
use dpdk::{BURST, Mbuf, Pool};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Classes of a subscriber.
pub const CLASSES: usize = 4;
/// Frames for each subscriber in a pass.
const PASSES: usize = 8;
/// Packets before the first that is measured: until nobody may send at once because it has not sent before.
const WARM: usize = 500_000;

/// Where a frame goes.
#[derive(Clone, Copy)]
pub struct Address {
    pub subscriber: u32,
    pub class: usize,
}

/// What frames wait in.
pub trait Side {
    /// A new frame, as it comes in.
    fn frame(&mut self, pool: Pool, to: Address) -> Result<Mbuf>;

    /// Where a frame goes that comes in.
    fn address(&self, frame: &Mbuf) -> Result<Address>;

    /// A frame that has left, as it comes in again.
    fn renew(&mut self, frame: Mbuf) -> Result<Mbuf> {
        Ok(frame)
    }

    /// Takes some frames of a burst; none is lost, and none leaves.
    fn take(&mut self, coming: &mut Vec<(Address, Mbuf)>) -> Result<()>;

    /// All frames that are to wait do so.
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes a burst from the beginning, and lets another one leave, of about as many. Says how long it took.
    fn turn(&mut self, coming: &mut Vec<(Address, Mbuf)>, left: &mut Vec<Mbuf>) -> Result<u64>;
}

/// How many frames there are.
#[derive(Clone, Copy)]
pub struct Population {
    pub subscribers: u32,
    /// Of each subscriber.
    pub frames: u32,
    /// Of all subscribers, those that are on their way.
    pub away: u32,
}

impl Population {
    /// Each subscriber has so many frames, of which one of ten is on its way: it waits all the time.
    pub fn waiting(subscribers: u32, frames: u32) -> Self {
        Population {
            subscribers,
            frames,
            away: subscribers * frames / 10,
        }
    }

    /// Each subscriber has one frame, which is on its way: none waits when another comes.
    pub fn idle(subscribers: u32) -> Self {
        Population {
            subscribers,
            frames: 1,
            away: subscribers,
        }
    }

    /// Whether frames wait.
    pub fn waits(self) -> bool {
        self.frames > 1
    }

    /// Where each frame goes.
    pub fn addresses(self) -> impl Iterator<Item = Address> {
        let address = move |n| {
            let subscriber = n / self.frames;
            let class = (subscriber + n % self.frames) as usize % CLASSES;
            Address { subscriber, class }
        };
        (0..self.subscribers * self.frames).map(address)
    }
}

/// Frames on their way to a side and from it.
pub struct Circulation<S> {
    pub side: S,
    away: Vec<Mbuf>,
    coming: Vec<(Address, Mbuf)>,
    left: Vec<Mbuf>,
    random: SmallRng,
    population: Population,
}

impl<S: Side> Circulation<S> {
    /// With frames from a pool.
    pub fn new(population: Population, pool: Pool, side: S) -> Result<Self> {
        let mut all = Circulation {
            side,
            away: Vec::new(),
            coming: Vec::new(),
            left: Vec::new(),
            random: SmallRng::seed_from_u64(11),
            population,
        };
        all.fill(pool)?;
        all.side.start()?;
        for _ in 0..(WARM / all.subscribers()).max(PASSES) {
            all.pass()?;
        }
        Ok(all)
    }

    fn subscribers(&self) -> usize {
        self.population.subscribers as usize
    }

    /// All frames but those on their way wait, in random order.
    fn fill(&mut self, pool: Pool) -> Result<()> {
        let (mut frames, away) = (Vec::new(), self.population.away as usize);
        for to in self.population.addresses() {
            frames.push(self.side.frame(pool, to)?);
        }
        frames.shuffle(&mut self.random);
        for frame in frames.split_off(away) {
            self.coming.push((self.side.address(&frame)?, frame));
            if self.coming.len() == BURST {
                self.side.take(&mut self.coming)?;
            }
        }
        self.side.take(&mut self.coming)?;
        for frame in frames.split_off(away - BURST) {
            self.coming.push((self.side.address(&frame)?, frame));
        }
        self.away = frames;
        Ok(())
    }

    /// Cycles a packet: the median of some passes.
    pub fn round(&mut self) -> Result<f64> {
        let mut passes = Samples::default();
        for _ in 0..PASSES {
            passes.0.push(self.pass()?);
        }
        self.check()?;
        Ok(passes.median())
    }

    /// As many packets as there are subscribers.
    fn pass(&mut self) -> Result<f64> {
        let (mut took, mut n) = (0, 0);
        for _ in 0..self.subscribers() / BURST {
            took += self.side.turn(&mut self.coming, &mut self.left)?;
            n += self.left.len();
            for frame in self.left.drain(..) {
                let frame = self.side.renew(frame)?;
                let at = self.random.random_range(0..self.away.len());
                let frame = core::mem::replace(&mut self.away[at], frame);
                self.coming.push((self.side.address(&frame)?, frame));
            }
        }
        Ok(took as f64 / n as f64)
    }

    /// Whether a frame waits for nearly every subscriber, if that is meant. (DPDK empties the queues of one after the other, if they may.)
    fn check(&self) -> Result<()> {
        let mut away = vec![0; self.subscribers()];
        let coming = self.coming.iter().map(|(_, frame)| frame);
        for frame in self.away.iter().chain(coming) {
            away[self.side.address(frame)?.subscriber as usize] += 1;
        }
        let frames = self.population.frames;
        let without = away.iter().filter(|away| **away >= frames).count();
        ensure!(
            !self.population.waits() || without <= self.subscribers() / 10,
            "{without} subscribers have nothing that waits"
        );
        Ok(())
    }
}
