//! What a user plane is told to be, while it forwards: the difference between what is there and a document is worked out
//! and made, and nothing else is touched.
//!
//! Everything that can be checked is checked first. What fails after that (a device that its driver refuses, an interface
//! that somebody else has) is undone by the same way: what was before is a document, too.
//!
//! The kernel's interfaces outlive that: one that is not wanted any more is parked, and ended when all is done, so that
//! whoever wants it meanwhile finds it with its routes and neighbours.
//!
//! New ports are opened before others are changed or closed, so that a fault ends nothing. Where a new one needs what an
//! old one has (the same device, another role), the old one has to go first. Subinterfaces and TAPs that do not stay where they
//! are go before any is made: two ports may exchange them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::{Duration, Instant};

use config::model::{Port as PortDocument, PortRole};
use config::{Capabilities, Fault, HoldSessions, Path, UserPlaneDocument};
use dataplane::{InstanceIndex, PortIndex};
use dpdk::{Eal, Pool};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::compile::Layout;
use crate::run::UserPlane;

mod devices;
mod ports;

pub use devices::Kept;
pub(crate) use devices::Parked;
pub use ports::{Part, Port};

/// The only network instance that can be served: the process's own network namespace.
const DEFAULT_INSTANCE: &str = "default";
/// How long the worker may take for what it is told.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Where ports get their devices and buffers from.
#[derive(Clone, Copy)]
pub struct Source {
    /// DPDK.
    pub eal: Eal,
    /// Packets of all ports.
    pub pool: Pool,
    /// The queues that a port is to have: as many as there are workers.
    pub queues: u16,
}

/// What a user plane of so many sessions can do. Of what ports take, half of what there is: new ones have theirs before old
/// ones give theirs back.
pub fn capabilities(max_sessions: u32) -> Capabilities {
    let limits = dataplane::Limits::default();
    Capabilities {
        network_instances: vec![DEFAULT_INSTANCE.to_owned()],
        drivers: dpdk::drivers().map(str::to_owned).collect(),
        ports: dpdk::MAX_PORTS as u32 / 2,
        interfaces: (limits.interfaces / 2).into(),
        segments: (limits.segments / 2).into(),
        sessions: max_sessions,
        subinterfaces: true,
    }
}

/// Asks a user plane that runs, from beside its loop: for tests, which look into its tables and see what it says of a document
/// that is no message. An operator's way in is Mi.
#[derive(Clone, Debug)]
pub struct Management(mpsc::Sender<Ask>);

/// A question, and where its answer goes.
#[derive(Debug)]
pub(crate) enum Ask {
    Reconfigure(
        Box<UserPlaneDocument>,
        oneshot::Sender<Result<(), Vec<Fault>>>,
    ),
    Capabilities(oneshot::Sender<Capabilities>),
    Tables(oneshot::Sender<BTreeSet<String>>),
}

impl Management {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (sender, asked) = mpsc::channel(16);
        (Self(sender), asked)
    }

    /// Has the user plane be what a document says.
    ///
    /// # Errors
    /// What cannot be done, and where in the document; the user plane is as it was before. A fault that says otherwise is
    /// the last one.
    pub async fn reconfigure(&self, document: UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let ask = |reply| Ask::Reconfigure(document.into(), reply);
        let ended = || Err(vec![Fault::of_document("the user plane stops")]);
        self.ask(ask).await.unwrap_or_else(ended)
    }

    /// What the user plane can do; `None` when it ends.
    pub async fn capabilities(&self) -> Option<Capabilities> {
        self.ask(Ask::Capabilities).await
    }

    /// What the worker's tables and the kernel's devices hold of the document and of routes, a line each, by names; `None`
    /// when the user plane ends.
    pub async fn tables(&self) -> Option<BTreeSet<String>> {
        self.ask(Ask::Tables).await
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.0.send(ask(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// A fault at a place.
fn fault(path: &Path, message: impl Display) -> Fault {
    Fault {
        line: 0,
        path: path.clone(),
        message: message.to_string(),
    }
}

impl UserPlane {
    /// For tests that ask it while it runs.
    pub fn management(&self) -> Management {
        self.management.clone()
    }

    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        capabilities(self.max_sessions)
    }

    pub(crate) fn asked(&mut self, ask: Ask) {
        // Whoever asked may have gone away.
        match ask {
            Ask::Reconfigure(document, reply) => {
                let _ = reply.send(self.reconfigure(&document));
            }
            Ask::Capabilities(reply) => {
                let _ = reply.send(self.capabilities());
            }
            Ask::Tables(reply) => {
                let _ = reply.send(self.tables());
            }
        }
    }

    /// What of a document cannot be done, as far as that shows without doing it.
    pub fn check(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        let mut faults = self.capabilities().check(document);
        faults.extend(self.missing_interfaces(document));
        faults
    }

    /// Becomes what a document says; all of it or nothing.
    ///
    /// # Errors
    /// What cannot be done, and where in the document. If putting back what was before fails as well, the last fault says
    /// so, and what could be put back is there.
    pub fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let faults = self.check(document);
        if !faults.is_empty() {
            return Err(faults);
        }
        let result = self.reconcile(document).map_err(|fault| {
            warn!(%fault, "the configuration is rejected: restoring the previous one");
            let before = self.document.clone();
            let worse = self.reconcile(&before).err().map(|worse| Fault {
                message: format!(
                    "cannot restore the previous configuration: {}",
                    worse.message
                ),
                ..worse
            });
            std::iter::once(fault).chain(worse).collect()
        });
        self.renew_names();
        if result.is_ok() {
            self.document = document.clone();
            (self.set_level)(document.log_level);
            info!(
                ports = self.ports.len(),
                instances = self.instances.len(),
                "configured"
            );
        }
        self.end_parked();
        self.keep_devices();
        if result.is_ok() {
            self.forget_earlier();
        }
        result
    }

    /// The Linux interfaces that ports are to be opened on and that are not there.
    fn missing_interfaces(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        let new = document.ports.iter().filter(|(name, port)| {
            let known = self.ports.get(*name);
            known.is_none_or(|known| known.config.device != port.device)
        });
        let missing = new.filter_map(|(name, port)| {
            let interface = config::capabilities::linux_interface(&port.device)?;
            nix::net::if_::if_nametoindex(interface).err()?;
            let path = Path::from_iter(["ports", name, "device"]);
            Some(fault(
                &path,
                format!("this machine has no network interface `{interface}`"),
            ))
        });
        missing.collect()
    }

    /// Makes the difference between what is there and a document that was checked.
    fn reconcile(&mut self, to: &UserPlaneDocument) -> Result<(), Fault> {
        self.open_instances(to)?;
        let stays = |(name, port): &(&String, &ports::Port)| {
            to.ports.get(*name).is_some_and(|new| port.stays(new))
        };
        let (staying, going): (Vec<_>, Vec<_>) = self.ports.iter().partition(stays);
        let names = |ports: Vec<(&String, _)>| -> Vec<String> {
            ports.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let (staying, going) = (names(staying), names(going));
        let new = to.ports.iter().filter(|(name, _)| !staying.contains(name));
        let (free, blocked): (Vec<_>, Vec<_>) =
            new.partition(|(name, port)| !self.is_blocked(name, port));
        for (name, port) in free {
            self.add_port(name, port)?;
        }
        // What one has and another is to have is nobody's in between.
        for name in &staying {
            self.let_go(name, to.ports.get(name))?;
        }
        for name in &going {
            self.let_go(name, None)?;
        }
        for name in &staying {
            self.change_port(name, &to.ports[name])?;
        }
        for name in &going {
            self.remove_port(name)?;
        }
        for (name, port) in blocked {
            self.add_port(name, port)?;
        }
        self.close_instances(to)?;
        self.engine.set_hold(match to.hold_sessions {
            HoldSessions::Forever => None,
            HoldSessions::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
        });
        Ok(())
    }

    /// Whether a new port needs what another one has now.
    fn is_blocked(&self, name: &str, new: &PortDocument) -> bool {
        let wanted: BTreeSet<String> = ports::claims(name, new).collect();
        let taken = self.ports.iter().flat_map(|(name, port)| port.claims(name));
        self.ports.contains_key(name) || taken.into_iter().any(|claim| wanted.contains(&claim))
    }

    /// What PFCP and the tunnels call ports and instances by.
    fn renew_names(&mut self) {
        let access = self
            .ports
            .iter()
            .filter(|(_, port)| is_access(&port.config));
        let named: BTreeMap<Vec<u8>, _> = access
            .map(|(name, port)| (name.clone().into_bytes(), (port.index, port.mac)))
            .collect();
        let tunnels = named
            .iter()
            .map(|(name, (index, _))| (*index, name.clone()));
        self.redirection.set_ports(tunnels.collect());
        let instances = self.instances.iter().zip(0..);
        self.engine.set_layout(Layout {
            access_ports: named.into_iter().collect(),
            instances: instances
                .map(|(instance, index)| (instance.name.clone(), InstanceIndex(index)))
                .collect(),
            address: Some(self.address),
        });
        // Positions have changed.
        self.watchdog = Default::default();
    }

    /// Waits until the worker has everything that it was told, and has room for more.
    fn catch_up(&mut self, path: &Path) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            self.settle();
            let written = self.controller.catch_up();
            if written && self.backlog.is_empty() && self.controller.free_commands() > 0 {
                return Ok(());
            }
            self.wait_for_worker(begun, path)?;
        }
    }

    /// Waits until the worker lets go of a port, and closes it.
    fn await_removed(&mut self, index: PortIndex, path: &Path) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            if let Some(removed) = self.controller.poll_removed() {
                let there = removed.index == index;
                drop(removed);
                if there {
                    return Ok(());
                }
            }
            self.wait_for_worker(begun, path)?;
        }
    }

    fn wait_for_worker(&mut self, begun: Instant, path: &Path) -> Result<(), Fault> {
        if begun.elapsed() > PATIENCE {
            return Err(fault(
                path,
                "the worker cannot keep up: try again when there is less traffic",
            ));
        }
        // Its queue of events must not fill up.
        self.drain_worker();
        std::thread::sleep(LOOK_AGAIN);
        Ok(())
    }

    /// A place for an interface that has none.
    fn free_place(&self, path: &Path) -> Result<PortIndex, Fault> {
        let taken: BTreeSet<PortIndex> = self.ports.values().flat_map(|p| p.places()).collect();
        let all = (0..self.controller.limits().interfaces).map(PortIndex);
        let mut free = all.filter(|index| !taken.contains(index));
        free.next()
            .ok_or_else(|| fault(path, "no room for more ports and sub-interfaces"))
    }
}

/// Whether a port leads to subscribers.
fn is_access(port: &PortDocument) -> bool {
    port.role == PortRole::Access
}
