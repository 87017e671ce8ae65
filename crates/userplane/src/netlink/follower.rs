//! Follows the kernel's tables: reads them whole at first and whenever changes of them were missed, then change by change.
//!
//! Changes that come during a reading are kept and made behind it, in their order: each says how something is, so that it
//! does no harm if the reading knew it already.

use std::io;
use std::time::Duration;

use tracing::{error, warn};

use super::message::Fact;
use super::scan::Scan;
use super::socket::{Change, Monitor};
use crate::fib::Fib;

/// Changes that are kept during a reading; if there are more, it begins again.
const MOST_KEPT: usize = 1 << 18;
/// How long to wait after a reading that failed.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Whoever follows the kernel's tables.
pub struct Follower {
    monitor: Monitor,
    reading: Option<Reading>,
    /// When the tables are to be read.
    read_at: Option<Duration>,
    /// How often changes were missed.
    pub overruns: u64,
}

/// A reading of the kernel's tables.
struct Reading {
    scan: Scan,
    /// What has changed since it began.
    kept: Vec<Fact>,
}

impl Follower {
    /// Reads the tables as soon as it may, and follows them by this stream.
    pub fn new(monitor: Monitor) -> Self {
        Self {
            monitor,
            reading: None,
            read_at: Some(Duration::ZERO),
            overruns: 0,
        }
    }

    /// Has the tables read at this time or before.
    pub fn read_again(&mut self, at: Duration) {
        self.read_at = Some(self.read_at.map_or(at, |before| before.min(at)));
    }

    /// When the tables are to be read.
    pub fn read_at(&self) -> Option<Duration> {
        self.read_at
    }

    /// Whether they are being read.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Waits for the next changes. Nothing is lost when this is given up.
    pub async fn next(&mut self) -> io::Result<Change> {
        self.monitor.next().await
    }

    /// Takes in what has changed.
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

    /// Reads one portion, if the tables are being read or are to be.
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
        // Every change of the table until now has to be heard of.
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
