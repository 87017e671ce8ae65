//! Resource audit in the background: the worker's tables piece by piece, then the kernel's twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dataplane::{InstanceIndex, Part};
use mi::{Answer, Response};
use northbound::{Ledger, Refusal};
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::{Fib, ForWorker, UserPlane};
use crate::engine::WorkerCommand;
use crate::fib::{Meaning, Reading, Snapshot};
use crate::ledger::{Shown, Wrong};
use crate::netlink::message::Fact;
use crate::netlink::request;
use crate::netlink::scan::Scan;

/// Routes compared before other sources get their turn. Packets for the control thread, BFD's among them, wait meanwhile.
const COMPARED: usize = 1024;
/// Time between two readings of the kernel's tables. Changes that the first one saw too early have been handled by then.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// Resource audit under way.
pub(super) struct Check {
    reply: oneshot::Sender<Answer>,
    /// Whether differences are to be repaired.
    repair: bool,
    /// Result from before the repair.
    before: Option<Ledger>,
    shown: Shown,
    kernel: Kernel,
}

impl Check {
    /// Notes a change of the kernel's tables.
    pub(super) fn hear(&mut self, change: &Fact) {
        if let Kernel::Reading(scan, _) = &mut self.kernel {
            scan.hear(change);
        }
    }
}

enum Kernel {
    /// Not yet: the worker comes first.
    Later,
    /// To be read at this time. The second reading has the result of the first.
    At(Duration, Option<Reading>),
    /// Being read.
    Reading(Box<Scan>, Option<Reading>),
    /// Being compared.
    Comparing(Box<Comparing>),
}

/// Reading of the kernel's tables that is compared in portions.
struct Comparing {
    snapshot: Snapshot,
    reading: Reading,
    then: Then,
}

enum Then {
    /// Compares the reading with announcements and mirror. The second time it has the earlier result.
    Confirm(Option<Reading>),
    /// Compares the mirror with the dataplane's routes.
    Mean(Meaning),
}

impl UserPlane {
    pub(super) fn check_ledger(&mut self, repair: bool, reply: oneshot::Sender<Answer>) {
        if self.check.is_some() || self.moving.is_some() {
            let message = "a resource audit or a move of an aggregate is under way: try again when it is done".into();
            let _ = reply.send(Err(Refusal::Busy(message)));
            return;
        }
        self.begin_check(repair, None, reply);
    }

    fn begin_check(
        &mut self,
        repair: bool,
        before: Option<Ledger>,
        reply: oneshot::Sender<Answer>,
    ) {
        self.check = Some(Box::new(Check {
            reply,
            repair,
            before,
            shown: Shown::default(),
            kernel: Kernel::Later,
        }));
        self.for_worker(ForWorker::Inspect(Part::FIRST));
    }

    /// Queues a command for the worker. An audit does not judge what the command changes.
    pub(super) fn for_worker(&mut self, command: ForWorker) {
        if let Some(check) = &mut self.check {
            let touched = &mut check.shown.touched;
            match &command {
                ForWorker::Session(WorkerCommand::Set(entry)) => {
                    touched.sessions.insert(entry.index);
                }
                ForWorker::Session(WorkerCommand::Remove(index)) => {
                    touched.sessions.insert(*index);
                }
                ForWorker::SetRoute(instance, net, _) | ForWorker::RemoveRoute(instance, net) => {
                    touched.routes.insert((*instance, *net));
                }
                ForWorker::SetAdjacency(index, _) => {
                    touched.adjacencies.insert(*index);
                }
                _ => {}
            }
        }
        self.backlog.push_back(command);
    }

    /// Compares a piece that the worker shows, and requests the next.
    pub(super) fn judge_piece(&mut self) {
        let Some(piece) = self.controller.poll_piece() else {
            return;
        };
        self.settle(); // whatever has changed is on its way to the worker, and is not judged
        let Some(check) = &mut self.check else {
            return;
        };
        let fibs: BTreeMap<InstanceIndex, &Fib> = self
            .instances
            .iter()
            .map(|(index, instance)| (*index, &instance.fib))
            .collect();
        check.shown.judge(&self.engine, &fibs, &piece);
        match piece.next {
            Some(next) => self.for_worker(ForWorker::Inspect(next)),
            None => check.kernel = Kernel::At(Duration::ZERO, None),
        }
    }

    /// When the audit continues.
    pub(super) fn check_at(&self) -> Option<Duration> {
        match self.check.as_ref()?.kernel {
            Kernel::Later => None,
            Kernel::At(at, _) => Some(self.kernel.read_at().map_or(at, |read| read.max(at))),
            Kernel::Reading(..) | Kernel::Comparing(_) => Some(Duration::ZERO),
        }
    }

    /// Reads or compares a portion of the kernel's tables for the audit, once all known changes are handled.
    pub(super) fn read_for_check(&mut self) {
        let now = self.clock.now().monotonic;
        let (follows, due) = (self.follows_kernel(), self.kernel.read_at().is_some());
        let Some(check) = &mut self.check else {
            return;
        };
        match std::mem::replace(&mut check.kernel, Kernel::Later) {
            Kernel::Later => {}
            Kernel::At(at, first) if at > now || !follows || due => {
                check.kernel = Kernel::At(at, first);
            }
            Kernel::Comparing(comparing) if !follows => {
                check.kernel = Kernel::Comparing(comparing);
            }
            Kernel::Comparing(comparing) => self.compare_portion(comparing),
            Kernel::At(_, first) => match Scan::start() {
                Ok(scan) => check.kernel = Kernel::Reading(Box::new(scan), first),
                Err(error) => self.check_failed(&error),
            },
            Kernel::Reading(mut scan, first) => {
                let done = scan.read().and_then(|last| match last {
                    true => scan.go_on(),
                    false => Ok(None),
                });
                match done {
                    Ok(None) => check.kernel = Kernel::Reading(scan, first),
                    Ok(Some(snapshot)) => self.kernel_read(snapshot, first),
                    Err(error) => self.check_failed(&error),
                }
            }
        }
    }

    fn check_failed(&mut self, error: &std::io::Error) {
        if let Some(check) = self.check.take() {
            let message = format!("cannot read the kernel's tables: {error}");
            let _ = check.reply.send(Err(Refusal::Failed(message)));
        }
    }

    fn kernel_read(&mut self, snapshot: Snapshot, first: Option<Reading>) {
        let Some(instance) = self.instances.values().next() else {
            return self.conclude_check(None);
        };
        let comparing = Comparing {
            reading: instance.fib.read(&snapshot),
            snapshot,
            then: Then::Confirm(first),
        };
        self.check_goes_on(Kernel::Comparing(comparing.into()));
    }

    fn compare_portion(&mut self, mut comparing: Box<Comparing>) {
        let Some(instance) = self.instances.values().next() else {
            return self.conclude_check(None);
        };
        let Comparing {
            snapshot,
            reading,
            then,
        } = &mut *comparing;
        let goes_on = match then {
            Then::Confirm(_) => instance.fib.read_on(snapshot, reading, COMPARED),
            Then::Mean(meaning) => instance.fib.compare_on(meaning, COMPARED),
        };
        if goes_on {
            return self.check_goes_on(Kernel::Comparing(comparing));
        }
        let Comparing {
            snapshot,
            mut reading,
            then,
        } = *comparing;
        match then {
            Then::Confirm(None) => {
                let at = self.clock.now().monotonic + SECOND_LOOK;
                self.check_goes_on(Kernel::At(at, Some(reading)));
            }
            Then::Confirm(Some(first)) => {
                reading.confirm(&first);
                self.check_goes_on(Kernel::Comparing(Box::new(Comparing {
                    snapshot,
                    reading,
                    then: Then::Mean(Meaning::default()),
                })));
            }
            Then::Mean(meaning) => self.conclude_check(Some((snapshot, reading, meaning))),
        }
    }

    fn check_goes_on(&mut self, kernel: Kernel) {
        if let Some(check) = &mut self.check {
            check.kernel = kernel;
        }
    }

    /// Completes the audit. Without a network instance nothing of the kernel is compared.
    fn conclude_check(&mut self, of_kernel: Option<(Snapshot, Reading, Meaning)>) {
        let Some(check) = self.check.take() else {
            return;
        };
        let Check {
            reply,
            repair,
            before,
            shown,
            ..
        } = *check;
        let mut ledger = Ledger::of(&self.name);
        let reports: BTreeSet<u64> = self.node.open_tokens().collect();
        self.engine.compare(&mut ledger, &reports);
        let wrong = shown.compare(&mut ledger);
        let unresolved = of_kernel.map(|(snapshot, reading, meaning)| {
            let unresolved = meaning.compare(&mut ledger);
            reading.compare(&mut ledger);
            (unresolved, snapshot)
        });
        if repair && !ledger.is_balanced() {
            warn!(
                findings = ledger.findings.len(),
                "the resource audit found differences: repairing"
            );
            self.engine.repair(&reports);
            self.repair_worker(wrong);
            if let Some((unresolved, snapshot)) = unresolved {
                self.repair_kernel(unresolved, &snapshot);
            }
            return self.begin_check(false, Some(ledger), reply);
        }
        if let Some(before) = before {
            ledger = ledger.after_repair_of(before);
        }
        info!(balanced = ledger.is_balanced(), "resource audit done");
        let _ = reply.send(Ok(Response::Ledger { ledger })); // whoever asked may have gone
    }

    /// Sends the worker the expected state again and removes the rest. What has changed since the comparison is sent in its
    /// current state.
    fn repair_worker(&mut self, wrong: Wrong) {
        for index in wrong.sessions {
            self.engine.tell_again(index);
        }
        self.settle_engine();
        for place in wrong.ids {
            self.for_worker(ForWorker::RemoveStrayId(place));
        }
        for place in wrong.queues {
            self.for_worker(ForWorker::RemoveStrayQueues(place));
        }
        for (instance, net) in wrong.host_routes {
            self.for_worker(ForWorker::RemoveHostRoute(instance, net));
        }
        let Some(instance) = self.instances.values().next() else {
            return;
        };
        let (fib, mut commands) = (&instance.fib, Vec::new());
        for (instance, net) in wrong.routes {
            commands.push(match fib.installed(net) {
                Some(to) => ForWorker::SetRoute(instance, net, to),
                None => ForWorker::RemoveRoute(instance, net),
            });
        }
        let hops = wrong.adjacencies.into_iter();
        commands.extend(hops.map(|index| ForWorker::SetAdjacency(index, fib.neighbour(index))));
        commands
            .into_iter()
            .for_each(|command| self.for_worker(command));
    }

    /// Repairs the kernel's tables by reading them again: announcements without an owner are withdrawn, missing ones are added.
    fn repair_kernel(&mut self, unresolved: Vec<ipnet::IpNet>, snapshot: &Snapshot) {
        let Some(instance) = self.instances.values_mut().next() else {
            return;
        };
        for link in instance.fib.down_in(snapshot) {
            if let Err(error) = self.requester.request(request::link_up(link)) {
                warn!(link, %error, "cannot bring an interface up");
            }
        }
        // An operator who orders a repair does not wait for control planes to repeat announcements of the last run.
        instance.fib.end_keeping();
        instance.fib.repair(unresolved);
        self.read_again();
    }
}
