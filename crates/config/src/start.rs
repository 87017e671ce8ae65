//! What a daemon has to know before it can be told anything: its name, its sockets and its folders. Small files that are read
//! at the start and never again; everything else is in [`crate::model`].

use crate::{Addresses, CpuList, Document, Fault};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// How `sluice-cp` starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ControlPlane {
    /// Its PFCP Node ID: a host name, at most 255 octets.
    pub node_id: String,
    /// Where PFCP (UDP 8805) and GTP-U (UDP 2152) are served: an address of each family that a user plane has.
    pub address: Addresses,
    /// Where the local API listens.
    #[serde(default = "cp_socket")]
    pub api_socket: PathBuf,
    /// The folder of its state: sessions, records and the versions of the configuration.
    #[serde(default = "cp_state")]
    pub state: PathBuf,
    /// Who we are towards user planes on other machines, and whom we trust; on this machine none is needed.
    #[serde(default)]
    pub management: Option<Tls>,
    /// The configuration to begin with, where there is no version of it yet; without it, with an empty one.
    #[serde(default)]
    pub initial_configuration: Option<PathBuf>,
}

/// How `sluice-up` starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlane {
    /// Its PFCP Node ID: a host name, at most 255 octets.
    pub node_id: String,
    /// Where PFCP (UDP 8805) and GTP-U (UDP 2152) are served.
    pub address: IpAddr,
    /// The control planes that may associate, each called as soon as there is no association with it. Empty: whoever
    /// calls is let in, and none is called.
    #[serde(default)]
    pub control_planes: Vec<IpAddr>,
    /// Where its management interface listens on this machine.
    #[serde(default = "up_socket")]
    pub api_socket: PathBuf,
    /// Where its management interface listens beside that.
    #[serde(default)]
    pub management: Option<Management>,
    /// The folder of its state: what it was last told over its management interface.
    #[serde(default = "up_state")]
    pub state: PathBuf,
    /// The document to begin with, as the management interface would bring it, where none was ever brought: for user planes
    /// whose control plane has no management interface.
    #[serde(default)]
    pub initial_configuration: Option<PathBuf>,
    /// MiB of packet memory, 64 to 65,536.
    #[serde(default = "memory")]
    pub memory: u32,
    /// Whether packet memory is of huge pages. `true`: it does not start without. Default: where enough of them are free.
    #[serde(default)]
    pub huge_pages: Option<bool>,
    /// The most subscriber sessions, 1 to 1,048,576.
    #[serde(default = "max_sessions")]
    pub max_sessions: u32,
    /// Threads that forward packets, a core each: 1, 2, 4, 8 or 16.
    #[serde(default = "workers")]
    pub workers: u16,
    /// Cores that the workers are bound to: `none`, or one for each worker, such as `2-5`. Default: chosen among those that
    /// the process may use, where there is one more than workers.
    #[serde(default)]
    pub worker_cores: Option<WorkerCores>,
}

/// Where workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerCores {
    /// Wherever the system lets them.
    None,
    /// The first worker on the first of these, and so on.
    Cores(CpuList),
}

impl<'de> Deserialize<'de> for WorkerCores {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // one core may be read as a number
        let text = String::deserialize(d)?;
        match text.as_str() {
            "none" => Ok(WorkerCores::None),
            cores => cores
                .parse()
                .map(WorkerCores::Cores)
                .map_err(serde::de::Error::custom),
        }
    }
}

/// A management interface on the network: by mutual TLS, or without it on a loopback address.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Management {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// Who we are and whom we trust.
    #[serde(default)]
    pub tls: Option<Tls>,
}

/// Files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// Our certificate, and those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that has signed the other side's certificate.
    pub authority: PathBuf,
}

impl ControlPlane {
    /// The folder of the versions of the configuration.
    pub fn configuration(&self) -> PathBuf {
        self.state.join("configuration")
    }
}

fn cp_socket() -> PathBuf {
    "/run/sluice/cp.sock".into()
}
fn up_socket() -> PathBuf {
    "/run/sluice/up.sock".into()
}
fn cp_state() -> PathBuf {
    "/var/lib/sluice/cp".into()
}
fn up_state() -> PathBuf {
    "/var/lib/sluice/up".into()
}
/// Default of [`UserPlane::memory`].
pub const fn memory() -> u32 {
    256
}
fn max_sessions() -> u32 {
    131_072
}

/// Default of [`UserPlane::workers`].
pub const fn workers() -> u16 {
    1
}

/// A number between two others, these included.
fn within(name: &str, number: u32, range: core::ops::RangeInclusive<u32>) -> Result<(), Fault> {
    if range.contains(&number) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    let message = format!("`{name}` is {number}: expected {least} to {most}");
    Err(Fault::of_document(message))
}

fn node_id(name: &str) -> Result<(), Fault> {
    match name.len() {
        1..=255 => Ok(()),
        n => Err(Fault::of_document(format!(
            "`node-id` has {n} octets: expected 1 to 255"
        ))),
    }
}

impl Document for ControlPlane {
    fn check(&self) -> Result<(), Fault> {
        node_id(&self.node_id)
    }
}

impl Document for UserPlane {
    fn check(&self) -> Result<(), Fault> {
        node_id(&self.node_id)?;
        within("memory", self.memory, 64..=65_536)?;
        within("max-sessions", self.max_sessions, 1..=1 << 20)?;
        if !self.workers.is_power_of_two() || self.workers > 16 {
            let message = format!("`workers` is {}: expected 1, 2, 4, 8 or 16", self.workers);
            return Err(Fault::of_document(message));
        }
        if let Some(WorkerCores::Cores(cores)) = &self.worker_cores
            && cores.len() != usize::from(self.workers)
        {
            let (n, workers) = (cores.len(), self.workers);
            let message = format!(
                "`worker-cores` has {n} cores for {workers} workers: expected one for each"
            );
            return Err(Fault::of_document(message));
        }
        let unusable = self.address.is_unspecified() || self.address.is_multicast();
        if unusable {
            return Err(Fault::of_document(format!(
                "`address` is {}: expected an address of this machine that the control plane reaches",
                self.address
            )));
        }
        let management = self.management.iter();
        let open = management
            .filter(|m| m.tls.is_none())
            .flat_map(|m| &m.listen);
        match open.clone().find(|at| !at.ip().is_loopback()) {
            Some(at) => Err(Fault::of_document(format!(
                "`management` listens at {at} without `tls`: anyone who reaches it could change the configuration. Expected \
                    `tls: {{certificate: …, key: …, authority: …}}`, or a loopback address"
            ))),
            None => Ok(()),
        }
    }
}

/// What is wrong with a document shows when it is held against what the user plane can do
/// ([`crate::capabilities::Capabilities::check`]).
impl Document for crate::UserPlaneDocument {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_a_core_each_or_none() {
        let read = |text: &str| {
            let text = format!("{{node-id: up1, address: 192.0.2.2, {text}}}");
            let read: UserPlane = serde_saphyr::from_str(&text).map_err(|e| e.to_string())?;
            read.check().map_err(|fault| fault.to_string())?;
            Ok::<_, String>(read)
        };
        let cores = |text: &str| Some(WorkerCores::Cores(text.parse().unwrap()));
        assert_eq!(read("").unwrap().worker_cores, None);
        assert_eq!(read("worker-cores: 3").unwrap().worker_cores, cores("3"));
        let two = read("workers: 2, worker-cores: '2,3', huge-pages: false").unwrap();
        assert_eq!(
            (two.worker_cores, two.huge_pages),
            (cores("2-3"), Some(false))
        );
        let none = read("worker-cores: none").unwrap();
        assert_eq!(none.worker_cores, Some(WorkerCores::None));
        for (wrong, says) in [
            ("worker-cores: 2-3", "has 2 cores for 1 workers"),
            ("worker-cores: all", "`all` is no list of cores"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
