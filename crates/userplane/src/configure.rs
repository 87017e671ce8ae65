//! Reconfigures a running user plane. It computes the difference between the current state and a document, and applies only that.
//!
//! Everything that can be checked is checked first. A later step can still fail: a driver rejects a device, or another process
//! has the interface. Then the previous document is applied again in the same way.
//!
//! Kernel interfaces survive that: an interface that is no longer wanted is parked, and removed at the end. A port that wants it
//! meanwhile finds it with its routes and neighbours.
//!
//! New ports are opened before others are changed or closed, so that a fault ends no session. Where a new port needs what an old
//! one has (the same device, another role), the old port is closed first. Subinterfaces and TAPs that move are released before
//! any is created, because two ports may exchange them.
//!
//! Drivers open and close devices in threads of their own. Devices of new ports are opened before their document is applied (`opening`).
//! For others the control thread waits, and goes on with LACP and punted packets meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use config::model::{
    Ipv4Options, Port as PortDocument, PortRole, PrioritySource, Protection, SourceCheck,
};
use config::{Capabilities, Fault, HoldSessions, Path, UserPlaneDocument};
use dataplane::PortIndex;
use dpdk::{Eal, Pool};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::compile::Layout;
use crate::run::UserPlane;

mod devices;
mod opening;
mod ports;
mod protection;

pub use devices::Kept;
pub(crate) use devices::Parked;
pub(crate) use opening::{Change, Opened, Opening};
pub use ports::{Part, Port};

/// The only supported network instance: the process's own network namespace.
const DEFAULT_INSTANCE: &str = "default";
/// Maximum time for the worker to carry out what a reconfiguration commands.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Where ports get their devices and buffers from.
#[derive(Clone, Copy)]
pub struct Source {
    /// DPDK.
    pub eal: Eal,
    /// Packets of all ports.
    pub pool: Pool,
    /// Queues of each port: one for each worker.
    pub queues: u16,
}

/// Capabilities of a user plane with this maximum of sessions. Limits of interfaces and segments are halved: a reconfiguration opens new
/// ports before it closes old ones. Of ports there are too few for that; see [`UserPlane::check`].
pub fn capabilities(max_sessions: u32) -> Capabilities {
    let limits = dataplane::Limits::default();
    Capabilities {
        network_instances: vec![DEFAULT_INSTANCE.to_owned()],
        drivers: dpdk::drivers().map(str::to_owned).collect(),
        ports: dpdk::MAX_PORTS.into(),
        interfaces: (limits.interfaces / 2).into(),
        segments: (limits.segments / 2).into(),
        sessions: max_sessions,
        subinterfaces: true,
    }
}

/// Handle on a running user plane for tests: they read its tables and reconfigure it without a management message. Operators use
/// the management interface (Mi).
#[derive(Clone, Debug)]
pub struct Management(mpsc::Sender<Ask>);

/// Question, with the channel for its answer.
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

    /// Reconfigures the user plane to match a document.
    ///
    /// # Errors
    /// Faults with their places in the document. The user plane keeps its previous configuration, unless the last fault says
    /// otherwise.
    pub async fn reconfigure(&self, document: UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let ask = |reply| Ask::Reconfigure(document.into(), reply);
        let ended = || Err(vec![Fault::of_document("the user plane stops")]);
        self.ask(ask).await.unwrap_or_else(ended)
    }

    /// Capabilities of the user plane; `None` once it has ended.
    pub async fn capabilities(&self) -> Option<Capabilities> {
        self.ask(Ask::Capabilities).await
    }

    /// Configuration and routes as the worker's tables and the kernel's devices hold them: one line each, by names. `None` once
    /// the user plane has ended.
    pub async fn tables(&self) -> Option<BTreeSet<String>> {
        self.ask(Ask::Tables).await
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.0.send(ask(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// Fault at a path of the document.
fn fault(path: &Path, message: impl Display) -> Fault {
    Fault {
        line: 0,
        path: path.clone(),
        message: message.to_string(),
    }
}

impl UserPlane {
    /// Handle for tests that query the user plane while it runs.
    pub fn management(&self) -> Management {
        self.management.clone()
    }

    /// Capabilities of this user plane.
    pub fn capabilities(&self) -> Capabilities {
        capabilities(self.max_sessions)
    }

    pub(crate) fn asked(&mut self, ask: Ask) {
        // A failed reply is ignored: the caller may have gone away.
        match ask {
            Ask::Reconfigure(document, reply) => {
                let faults = self.capabilities().check(&document);
                if faults.is_empty() {
                    return self.change(Change::Tested(document, reply));
                }
                let _ = reply.send(Err(faults));
            }
            Ask::Capabilities(reply) => {
                let _ = reply.send(self.capabilities());
            }
            Ask::Tables(reply) => {
                let _ = reply.send(self.tables());
            }
        }
    }

    /// Faults of a document, right in itself, that can be found without applying it.
    pub fn check(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        let mut faults = self.missing_interfaces(document);
        faults.extend(self.too_many_at_once(document));
        faults
    }

    /// Fault of a document whose new ports have no room beside the old ones, which close only when the new ones are open.
    fn too_many_at_once(&self, document: &UserPlaneDocument) -> Option<Fault> {
        let devices = |port: &PortDocument| port.devices().count();
        let new = document.ports.iter();
        let new = new.filter(|(name, port)| !self.is_blocked(name, port));
        let new: usize = new.map(|(_, port)| devices(port)).sum();
        let old: usize = self.ports.values().map(|port| devices(&port.config)).sum();
        let all: usize = document.ports.values().map(devices).sum();
        let most = dpdk::MAX_PORTS.into();
        (all <= most && old + new > most).then(|| {
            let text = format!(
                "{old} devices of open ports and {new} of new ones are more than {most} at once: delete old ports in a commit of their own first"
            );
            fault(&Path::from_iter(["ports"]), text)
        })
    }

    /// Applies a document: all of it or nothing.
    ///
    /// # Errors
    /// Faults with their places in the document. If the previous configuration cannot be restored either, the last fault says so;
    /// what could be restored is in force.
    pub fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let faults = self.capabilities().check(document);
        if !faults.is_empty() {
            return Err(faults);
        }
        self.put_in_force(document)
    }

    /// As [`UserPlane::reconfigure`], with a document that is right in itself.
    pub(crate) fn put_in_force(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        let faults = self.check(document);
        if !faults.is_empty() {
            return Err(faults);
        }
        let result = self.reconcile(document).map_err(|fault| {
            warn!(%fault, "the configuration is rejected: restoring the previous one");
            self.close_unused();
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
        for defaults in std::mem::take(&mut self.off_ports).into_values() {
            self.engine.end_defaults(&defaults);
        }
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

    /// Faults for the Linux interfaces that new ports name and this machine lacks.
    fn missing_interfaces(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        let new = document.ports.iter().filter(|(name, port)| {
            let known = self.ports.get(*name);
            known.is_none_or(|known| !known.config.devices().eq(port.devices()))
        });
        let mut missing = Vec::new();
        for (name, port) in new {
            let interfaces = port
                .devices()
                .filter_map(config::capabilities::linux_interface);
            for interface in interfaces {
                if nix::net::if_::if_nametoindex(interface).is_err() {
                    let why = format!("this machine has no network interface `{interface}`");
                    missing.push(fault(&ports::devices_at(name, port), why));
                }
            }
        }
        missing
    }

    /// Applies the difference between the current state and a checked document.
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
        // Ports release everything that moves before any port takes it.
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
            let returns = to.ports.get(name).is_some_and(is_access);
            self.remove_port(name, returns)?;
        }
        for (name, port) in blocked {
            self.add_port(name, port)?;
        }
        self.close_instances(to)?;
        self.limit_punts(&to.protection)?;
        self.distrust(&to.untrusted_segments)?;
        self.set_ipv4_options(to.ipv4_options)?;
        self.follow_policies(to);
        self.engine.set_hold(match to.hold_sessions {
            HoldSessions::Forever => None,
            HoldSessions::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
        });
        Ok(())
    }

    /// Sets how much the workers pass on that is for the gateway itself.
    fn limit_punts(&mut self, protection: &Protection) -> Result<(), Fault> {
        let path = Path::from_iter(["protection"]);
        self.catch_up(&path)?;
        let set = self
            .controller
            .set_punt_limits(&protection::limits(protection));
        set.map_err(|busy| fault(&path, busy))
    }

    /// Says on which VLANs circuit and remote ids name no lines.
    fn distrust(&mut self, segments: &BTreeMap<String, BTreeSet<String>>) -> Result<(), Fault> {
        let path = Path::from_iter(["untrusted-segments"]);
        self.catch_up(&path)?;
        let there = segments
            .iter()
            .filter_map(|(name, of)| Some((self.ports.get(name)?, of)));
        let vlans = there.flat_map(|(port, of)| {
            let ranges = of.iter().filter_map(|segment| port.vlans_of(segment));
            let vlans = ranges.flatten().flatten();
            vlans.map(|vlan| (port.index, vlan))
        });
        let vlans = vlans.collect();
        let set = self.controller.set_untrusted(vlans);
        set.map_err(|busy| fault(&path, busy))
    }

    /// Sets which packets with IPv4 options the workers forward.
    fn set_ipv4_options(&mut self, options: Ipv4Options) -> Result<(), Fault> {
        let path = Path::from_iter(["ipv4-options"]);
        self.catch_up(&path)?;
        let set = self.controller.set_ipv4_options(ipv4_options(options));
        set.map_err(|busy| fault(&path, busy))
    }

    /// Follows the policies of a document. New and changed ones are compiled first.
    fn follow_policies(&mut self, to: &UserPlaneDocument) {
        let forgotten = self.policies.follow(to);
        self.policy_changes.extend(forgotten);
        self.set_policies();
    }

    /// Whether a new port needs something that an existing port has.
    fn is_blocked(&self, name: &str, new: &PortDocument) -> bool {
        let wanted: BTreeSet<String> = ports::claims(name, new).collect();
        let taken = self.ports.iter().flat_map(|(name, port)| port.claims(name));
        self.ports.contains_key(name) || taken.into_iter().any(|claim| wanted.contains(&claim))
    }

    /// Updates the names of ports and instances for PFCP and the tunnels.
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
        let instances = self.instances.iter();
        self.engine.set_layout(Layout {
            access_ports: named.into_iter().collect(),
            instances: instances
                .map(|(index, instance)| (instance.name.clone(), *index))
                .collect(),
            policies: self.policies.numbers.clone(),
            address: Some(self.address),
        });
        // Port positions have changed.
        self.watchdog = Default::default();
    }

    /// Waits until the worker has taken all commands and its queue has room for more.
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

    /// Waits until the worker releases a port, and closes it.
    fn await_removed(&mut self, index: PortIndex, path: &Path) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            if let Some(removed) = self.controller.poll_removed() {
                let there = removed.index == index;
                // Without a thread it is dropped all the same.
                let _ = self.meanwhile(|| drop(removed));
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
        self.go_on();
        Ok(())
    }

    /// Does in a thread of its own what may take a driver seconds. What cannot wait goes on meanwhile.
    fn meanwhile<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("driver".to_owned());
            let working = thread.spawn_scoped(scope, work)?;
            while !working.is_finished() {
                self.settle();
                self.go_on();
            }
            working.join().or_else(|panic| resume_unwind(panic))
        })
    }

    /// What goes on while a document is applied: punted packets are passed on, so that the workers' queues do not fill up, and LACP and the
    /// links of LAGs have their times.
    fn go_on(&mut self) {
        self.drain_worker();
        self.drive_lags();
        std::thread::sleep(LOOK_AGAIN);
    }

    /// A free interface index.
    fn free_place(&self, path: &Path) -> Result<PortIndex, Fault> {
        let taken: BTreeSet<PortIndex> = self.ports.values().flat_map(|p| p.places()).collect();
        let all = (0..self.controller.limits().interfaces).map(PortIndex);
        let mut free = all.filter(|index| !taken.contains(index));
        free.next()
            .ok_or_else(|| fault(path, "no room for more ports and sub-interfaces"))
    }
}

/// The dataplane's word for a setting of IPv4 options.
pub fn ipv4_options(options: Ipv4Options) -> dataplane::Ipv4Options {
    match options {
        Ipv4Options::Forward => dataplane::Ipv4Options::Forward,
        Ipv4Options::DropSourceRoutes => dataplane::Ipv4Options::DropSourceRoutes,
        Ipv4Options::Drop => dataplane::Ipv4Options::Drop,
    }
}

/// The dataplane's word for a check of sources.
pub fn source_check(check: SourceCheck) -> dataplane::SourceCheck {
    match check {
        SourceCheck::Off => dataplane::SourceCheck::Off,
        SourceCheck::Loose => dataplane::SourceCheck::Loose,
        SourceCheck::Strict => dataplane::SourceCheck::Strict,
    }
}

/// The dataplane's word for where a priority comes from.
pub fn priority_source(source: PrioritySource) -> policy::PrioritySource {
    match source {
        PrioritySource::Fixed => policy::PrioritySource::Fixed,
        PrioritySource::Dscp => policy::PrioritySource::Dscp,
    }
}

/// Whether a port is an access port.
fn is_access(port: &PortDocument) -> bool {
    port.role == PortRole::Access
}
