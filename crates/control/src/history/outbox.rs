//! Blocks of events between the control plane, its store and the history.

use super::Event;
use crate::store::Record;
use core::time::Duration;
use std::collections::VecDeque;

/// The store's keys of blocks; behind it the block's number (u64, big endian).
pub(crate) const BLOCK_PREFIX: &[u8] = b"history/";
/// What may wait for the history, in octets; beyond it events are lost, and counted.
const MOST_OCTETS: usize = 64 << 20;
/// A block that waits is closed when it has this size: one record of the store, and far less than a segment.
const LONG_BLOCK: usize = 256 << 10;
/// Events of dialling in vain that are kept in a second, in the long run, and at once: a street whose server is out, or
/// somebody who makes up MAC addresses, must not push out the history of all others.
const ATTEMPTS: (f64, f64) = (100.0, 20_000.0);

/// What is on its way into the history.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Of the last block that was given a number.
    last: u64,
    /// The events of the block that is being put together.
    open: Vec<u8>,
    /// Blocks that the history does not have yet, by number and size.
    waiting: VecDeque<(u64, usize)>,
    octets: usize,
    /// Blocks that the history has and the store does not know of yet.
    done: Vec<u64>,
    attempts: Bucket,
}

impl Outbox {
    /// Goes on behind a history that has blocks up to `last`; `stored` are those that the store has. Those of them that the
    /// history does not have are given back, to be handed to it again.
    pub fn resume(last: u64, stored: Vec<(u64, Vec<u8>)>) -> (Self, Vec<(u64, Vec<u8>)>) {
        let mut outbox = Outbox {
            last,
            ..Outbox::default()
        };
        let (again, done): (Vec<_>, Vec<_>) = stored.into_iter().partition(|(n, _)| *n > last);
        outbox.done = done.into_iter().map(|(number, _)| number).collect();
        for (number, block) in &again {
            outbox.last = outbox.last.max(*number);
            outbox.wait(*number, block.len());
        }
        (outbox, again)
    }

    /// Puts an event down; false if there is no room for it.
    pub fn add(&mut self, event: &Event<'_>) -> bool {
        let room = self.octets + self.open.len() < MOST_OCTETS;
        if room {
            event.emit(&mut self.open);
        }
        room
    }

    /// Whether one more event of dialling in vain is kept.
    pub fn takes_attempt(&mut self, now: Duration) -> bool {
        self.attempts.take(now)
    }

    /// Whether there is a block to be stored.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the block that is open has grown long, because the store takes none.
    pub fn is_long(&self) -> bool {
        self.open.len() >= LONG_BLOCK
    }

    /// What waits for the history, in octets.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.octets >= MOST_OCTETS
    }

    /// Whether everything is where it belongs.
    pub fn is_settled(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty() && self.done.is_empty()
    }

    /// Writes the block that is open, if there is one, into a batch of the store, and forgets there what the history has.
    /// The block is to be handed to the history when that batch is on the disk.
    pub fn store(&mut self, batch: &mut Vec<Record>) -> Option<(u64, Vec<u8>)> {
        self.forget(batch);
        if self.open.is_empty() {
            return None;
        }
        self.last += 1;
        let block = std::mem::take(&mut self.open);
        self.wait(self.last, block.len());
        batch.push(Record::put(key(self.last), block.clone()));
        Some((self.last, block))
    }

    /// Has the store forget what the history has.
    pub fn forget(&mut self, batch: &mut Vec<Record>) {
        batch.extend(self.done.drain(..).map(|n| Record::delete(key(n))));
    }

    fn wait(&mut self, number: u64, octets: usize) {
        self.waiting.push_back((number, octets));
        self.octets += octets;
    }

    /// The history has everything up to this block on the disk.
    pub fn on_kept(&mut self, number: u64) {
        while let Some((first, octets)) = self.waiting.front().copied()
            && first <= number
        {
            self.waiting.pop_front();
            self.octets -= octets;
            self.done.push(first);
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    [BLOCK_PREFIX, &number.to_be_bytes()].concat()
}

/// A bucket of tokens that fills with time.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Default for Bucket {
    fn default() -> Self {
        Bucket {
            tokens: ATTEMPTS.1,
            at: Duration::ZERO,
        }
    }
}

impl Bucket {
    fn take(&mut self, now: Duration) -> bool {
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * ATTEMPTS.0).min(ATTEMPTS.1);
        self.at = now;
        let there = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(there));
        there
    }
}
