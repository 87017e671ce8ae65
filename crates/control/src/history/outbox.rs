//! Outbox of event blocks, from the control plane through its store to the history.

use super::Event;
use crate::journal::Journal;
use crate::store::Record;
use core::time::Duration;
use std::collections::VecDeque;

/// Prefix of the store's keys of blocks, followed by the block's number (u64, big endian).
pub(crate) const BLOCK_PREFIX: &[u8] = b"history/";
/// Maximum size of events that wait for the history, in octets. Above it, events are lost and counted.
const MOST_OCTETS: usize = 64 << 20;
/// Size at which a waiting block is closed: one record of the store, and much smaller than a segment.
const LONG_BLOCK: usize = 256 << 10;
/// Maximum number of failed connection attempts in the history: average per second, and burst. Many homes without a RADIUS server, or
/// forged MAC addresses, must not displace the history of all others.
const ATTEMPTS: (f64, f64) = (100.0, 20_000.0);

/// Events that the history does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Number of the last block.
    last: u64,
    /// Events of the open block.
    open: Vec<u8>,
    /// Blocks that the history does not have yet, with number and size.
    waiting: VecDeque<(u64, usize)>,
    /// Octets of these blocks.
    octets: usize,
    /// Blocks that the history has and the store has not deleted yet.
    done: Vec<u64>,
    attempts: Bucket,
}

impl Outbox {
    /// Continues after a history with blocks up to `last`; `stored` are the blocks in the store. Returns those that the history does not
    /// have, to send them again.
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

    /// Adds an event. Returns false if there is no room for it.
    pub fn add(&mut self, event: &Event<'_>) -> bool {
        let room = !self.is_full();
        if room {
            event.emit(&mut self.open);
        }
        room
    }

    /// Whether the rate limit admits one more failed connection attempt.
    pub fn takes_attempt(&mut self, now: Duration) -> bool {
        self.attempts.take(now)
    }

    /// Whether there is no block to store.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the open block is long, because the store takes none.
    pub fn is_long(&self) -> bool {
        self.open.len() >= LONG_BLOCK
    }

    /// Size of events that wait for the history, in octets.
    pub fn octets(&self) -> usize {
        self.octets + self.open.len()
    }

    /// Whether there is no room for more events.
    pub fn is_full(&self) -> bool {
        self.octets() >= MOST_OCTETS
    }

    /// Whether the history has every event and the store has deleted its copies.
    pub fn is_settled(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty() && self.done.is_empty()
    }

    /// Adds the open block, if there is one, to a batch of the store, and deletes blocks that the history has. The block goes to the
    /// history when that batch is on disk.
    pub fn store(&mut self, journal: &mut Journal) -> Option<(u64, Vec<u8>)> {
        self.forget(journal);
        if self.open.is_empty() {
            return None;
        }
        self.last += 1;
        let block = std::mem::take(&mut self.open);
        self.wait(self.last, block.len());
        journal.add(Record::put(key(self.last), block.clone()));
        Some((self.last, block))
    }

    /// Deletes the blocks from the store that the history has.
    pub fn forget(&mut self, journal: &mut Journal) {
        journal.extend(self.done.drain(..).map(|n| Record::delete(key(n))));
    }

    fn wait(&mut self, number: u64, octets: usize) {
        self.waiting.push_back((number, octets));
        self.octets += octets;
    }

    /// Notes that the history has synced every block up to this one.
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

/// Token bucket.
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
