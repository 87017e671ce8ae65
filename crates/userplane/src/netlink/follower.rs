//! Follows the kernel's tables. It reads them completely at first and whenever changes were missed, and then applies each change.
//!
//! Changes that arrive during a reading are kept and applied after it, in order. Each change states a complete fact, so it does
//! no harm if the reading included it already.

use std::io;
use std::time::Duration;

use tracing::{error, warn};

use super::message::Fact;
use super::scan::Scan;
use super::socket::{Change, Monitor};
use crate::fib::Fib;

/// Maximum number of changes kept during a reading. Above it, the reading starts again.
const MOST_KEPT: usize = 1 << 18;
/// Time between a failed reading and the next one.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Follower of the kernel's tables.
pub struct Follower {
    monitor: Monitor,
    reading: Option<Reading>,
    /// Time of the next reading, if one is due.
    read_at: Option<Duration>,
    /// How often changes were missed.
    pub overruns: u64,
}

/// Reading of the kernel's tables under way.
struct Reading {
    scan: Scan,
    /// Changes since the reading began.
    kept: Vec<Fact>,
}

impl Follower {
    /// Starts with a reading as soon as possible, and follows the changes of `monitor`.
    pub fn new(monitor: Monitor) -> Self {
        Self {
            monitor,
            reading: None,
            read_at: Some(Duration::ZERO),
            overruns: 0,
        }
    }

    /// Schedules a reading at this time or earlier.
    pub fn read_again(&mut self, at: Duration) {
        self.read_at = Some(self.read_at.map_or(at, |before| before.min(at)));
    }

    /// Time of the next reading, if one is due.
    pub fn read_at(&self) -> Option<Duration> {
        self.read_at
    }

    /// Whether a reading is under way.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Waits for the next changes. No change is lost when the future is dropped.
    pub async fn next(&mut self) -> io::Result<Change> {
        self.monitor.next().await
    }

    /// Handles changes.
    pub fn take(&mut self, now: Duration, change: Change, fib: Option<&mut Fib>) {
        let Change::Facts(facts) = change else {
            warn!("the kernel dropped netlink messages: reading its tables again");
            return self.missed(now);
        };
        if let Some(reading) = &mut self.reading {
            facts.iter().for_each(|fact| reading.scan.hear(fact));
            reading.kept.extend(facts);
            if reading.kept.len() > MOST_KEPT {
                warn!(
                    "the kernel's tables change faster than they can be read: reading them again"
                );
                self.missed(now);
            }
        } else if let Some(fib) = fib {
            facts.into_iter().for_each(|fact| fib.apply(fact));
        }
    }

    fn missed(&mut self, now: Duration) {
        self.overruns += 1;
        self.reading = None;
        self.read_at = Some(now);
    }

    /// Reads one portion, if a reading is under way or due.
    pub fn read(&mut self, now: Duration, fib: Option<&mut Fib>) {
        if self.reading.is_none() && self.read_at.is_some_and(|at| at <= now) {
            self.read_at = None;
            let kept = Vec::new();
            match Scan::start() {
                Ok(scan) => self.reading = Some(Reading { scan, kept }),
                Err(error) => self.failed(now, &error),
            }
        }
        if let Err(error) = self.read_portion(now, fib) {
            self.reading = None;
            self.failed(now, &error);
        }
    }

    fn read_portion(&mut self, now: Duration, fib: Option<&mut Fib>) -> io::Result<()> {
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        if !reading.scan.read()? {
            return Ok(());
        }
        // Takes every change of the table until now.
        while let Some(change) = self.monitor.try_next()? {
            self.take(now, change, None);
        }
        let Some(mut reading) = self.reading.take() else {
            return Ok(());
        };
        let Some(snapshot) = reading.scan.go_on()? else {
            self.reading = Some(reading);
            return Ok(());
        };
        if reading.scan.doubtful {
            warn!("the kernel's routes changed too much while they were read: reading them again");
            self.read_again(now + READ_AGAIN);
        }
        if let Some(fib) = fib {
            fib.replace(snapshot);
            reading.kept.into_iter().for_each(|fact| fib.apply(fact));
        }
        Ok(())
    }

    fn failed(&mut self, now: Duration, error: &io::Error) {
        error!(%error, "cannot read the kernel's tables; trying again in a second");
        self.read_again(now + READ_AGAIN);
    }
}
