//! Reading and following the kernel's tables.

use tracing::info;

use super::{BACKLOG, UserPlane};
use crate::netlink::socket::Change;

/// Maximum number of routes that are updated before other sources get their turn.
const SWEEP: usize = 512;

impl UserPlane {
    pub(super) fn kernel_changed(&mut self, change: Change) {
        if let (Some(check), Change::Facts(facts)) = (&mut self.check, &change) {
            facts.iter().for_each(|fact| check.hear(fact));
        }
        let now = self.clock.now().monotonic;
        // One network namespace, one instance.
        let fib = self
            .instances
            .values_mut()
            .next()
            .map(|instance| &mut instance.fib);
        self.kernel.take(now, change, fib);
    }

    /// Reads a portion of the kernel's tables during a reading; otherwise updates a portion of the routes.
    pub(super) fn read_tables(&mut self) {
        let now = self.clock.now().monotonic;
        let fib = self
            .instances
            .values_mut()
            .next()
            .map(|instance| &mut instance.fib);
        self.kernel.read(now, fib);
        // Only while the worker keeps up.
        if self.kernel.is_reading() || self.backlog.len() > BACKLOG / 2 {
            return;
        }
        for instance in self.instances.values_mut() {
            if instance.fib.is_sweeping() && !instance.fib.sweep(SWEEP) {
                info!(
                    instance = instance.name,
                    routes = instance.fib.routes(),
                    "kernel tables read"
                );
            }
        }
    }

    /// Whether the dataplane has been sent everything that is known of the kernel's tables.
    pub(super) fn follows_kernel(&self) -> bool {
        let mut instances = self.instances.values();
        !self.kernel.is_reading() && !instances.any(|instance| instance.fib.is_sweeping())
    }
}
