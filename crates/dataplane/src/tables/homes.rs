//! Rates of all sessions of a subscriber together. A subscriber's sessions are all of one worker, if its access line tells who it is.
use crate::police::Policer;
use core::num::NonZeroU32;
use policy::{Direction, PacketSettings, Rate};
use std::collections::HashMap;

/// A subscriber with a rate, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(NonZeroU32);

/// One cache line: the policers of both directions, and how many packets they have dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct HomeLine {
    policers: [Policer; 2],
    exceeded: [u64; 2],
}

const _: () = assert!(size_of::<HomeLine>() == 64);

/// A subscriber whose sessions have a rate together.
struct Holder {
    home: Home,
    sessions: u32,
}

/// All of them of a worker.
pub(crate) struct Homes {
    lines: dpdk::Table<HomeLine>,
    /// By the subscriber's handle.
    holders: HashMap<u64, Holder>,
    free: Vec<Home>,
}

/// The rate of a subscriber's sessions together.
pub(crate) fn rate(packets: &PacketSettings, direction: Direction) -> Option<Rate> {
    match direction {
        Direction::Up => packets.subscriber_rate_up,
        Direction::Down => packets.subscriber_rate_down,
    }
}

/// Whether a session's subscriber has a rate for all of its sessions, in either direction.
pub(crate) fn is_limited(packets: &PacketSettings) -> bool {
    Direction::BOTH
        .iter()
        .any(|direction| rate(packets, *direction).is_some())
}

impl Homes {
    /// Room for the subscribers of so many sessions. A worker allocates nothing later.
    pub fn new(sessions: usize) -> Result<Self, dpdk::Error> {
        // one more, as a session joins its new subscriber before it leaves the former one
        let most = sessions + 1;
        Ok(Homes {
            lines: dpdk::Table::new(most)?,
            holders: HashMap::with_capacity(most),
            free: Vec::with_capacity(most),
        })
    }

    /// Takes note of one more session of a subscriber, and of the rates that it says: those of the session that was set last count. What
    /// the subscriber has sent keeps its tokens away from it.
    pub fn join(&mut self, subscriber: u64, packets: &PacketSettings, hz: u64) -> Home {
        let next = self.lines.len() as u32 + 1;
        let (lines, free) = (&mut self.lines, &mut self.free);
        let holder = self.holders.entry(subscriber).or_insert_with(|| {
            let home = free.pop().unwrap_or_else(|| {
                lines.resize(next as usize, HomeLine::default());
                Home(NonZeroU32::new(next).unwrap_or(NonZeroU32::MIN))
            });
            Holder { home, sessions: 0 }
        });
        holder.sessions += 1;
        let line = &mut lines[place(holder.home)];
        let policers = Direction::BOTH.map(|direction| Policer::new(rate(packets, direction), hz));
        for (there, policer) in line.policers.iter_mut().zip(policers) {
            *there = policer.with_tokens_of(*there);
        }
        holder.home
    }

    /// One session of a subscriber is gone, or has no such rate any more.
    pub fn leave(&mut self, subscriber: u64) {
        let Some(holder) = self.holders.get_mut(&subscriber) else {
            return;
        };
        holder.sessions -= 1;
        if holder.sessions == 0 {
            let home = holder.home;
            self.holders.remove(&subscriber);
            self.lines[place(home)] = HomeLine::default();
            self.free.push(home);
        }
    }

    /// Whether a packet of so many octets is within the rate of all sessions of the subscriber.
    #[inline(never)]
    pub fn permits(&mut self, home: Home, direction: Direction, octets: usize, now: u64) -> bool {
        let Some(line) = self.lines.get_mut(place(home)) else {
            return true;
        };
        let policer = &mut line.policers[direction as usize];
        let is_within = !policer.has_limit() || policer.permits(octets, now);
        line.exceeded[direction as usize] += u64::from(!is_within);
        is_within
    }

    /// What a subscriber has. Each of its sessions takes it along to another worker.
    pub fn line(&self, subscriber: u64) -> Option<HomeLine> {
        let holder = self.holders.get(&subscriber)?;
        Some(self.lines[place(holder.home)])
    }

    /// Gives a subscriber what it had at another worker, if it has come with its first session.
    pub fn adopt(&mut self, subscriber: u64, line: HomeLine) {
        let Some(holder) = self.holders.get(&subscriber).filter(|of| of.sessions == 1) else {
            return;
        };
        let here = &mut self.lines[place(holder.home)];
        here.exceeded = line.exceeded;
        for (here, before) in here.policers.iter_mut().zip(line.policers) {
            *here = here.with_tokens_of(before);
        }
    }

    /// The home of a subscriber, if it has a rate.
    pub fn of(&self, subscriber: u64) -> Option<Home> {
        self.holders.get(&subscriber).map(|holder| holder.home)
    }

    /// Packets that were above the rate of all sessions of the subscriber together.
    pub fn exceeded(&self, home: Home, direction: Direction) -> u64 {
        self.lines[place(home)].exceeded[direction as usize]
    }
}

fn place(Home(number): Home) -> usize {
    number.get() as usize - 1
}
