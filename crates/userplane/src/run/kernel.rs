//! The kernel's tables: read whole at first and whenever changes of them were missed, then change by change.

use std::io;

use tracing::{error, info, warn};

use super::{READ_AGAIN, UserPlane};
use crate::fib::Snapshot;
use crate::netlink::socket::{Change, Dump};

impl UserPlane {
    pub(super) fn kernel_changed(&mut self, change: Change) {
        match change {
            Change::Facts(facts) => {
                // One network namespace, one instance.
                let Some(instance) = self.instances.first_mut() else {
                    return;
                };
                facts.into_iter().for_each(|fact| instance.fib.apply(fact));
            }
            Change::Overrun => {
                self.counters.overruns += 1;
                warn!("the kernel dropped netlink messages: reading its tables again");
                self.read_at = Some(self.clock.now().monotonic);
            }
        }
    }

    /// Reads one portion of the kernel's tables, if they are being read.
    pub(super) fn read_tables(&mut self) {
        let now = self.clock.now().monotonic;
        if self.reading.is_none() && self.read_at.is_some_and(|at| at <= now) {
            self.read_at = None;
            match Dump::start() {
                Ok(dump) => self.reading = Some((dump, Snapshot::default())),
                Err(error) => self.reading_failed(&error),
            }
        }
        let Some((dump, snapshot)) = &mut self.reading else {
            return;
        };
        match dump.read() {
            Ok(Some(facts)) => facts.into_iter().for_each(|fact| snapshot.add(fact)),
            Ok(None) => self.tables_read(),
            Err(error) => {
                self.reading = None;
                self.reading_failed(&error);
            }
        }
    }

    fn tables_read(&mut self) {
        let Some((dump, snapshot)) = self.reading.take() else {
            return;
        };
        if dump.interrupted() {
            self.read_at = Some(self.clock.now().monotonic);
            return;
        }
        let Some(instance) = self.instances.first_mut() else {
            return;
        };
        instance.fib.replace(snapshot);
        info!(
            instance = instance.name,
            routes = instance.fib.routes(),
            "kernel tables read"
        );
    }

    fn reading_failed(&mut self, error: &io::Error) {
        error!(%error, "cannot read the kernel's tables; trying again in a second");
        self.read_at = Some(self.clock.now().monotonic + READ_AGAIN);
    }
}
