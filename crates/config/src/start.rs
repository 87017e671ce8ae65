//! Start files of the daemons: name, sockets and folders. A daemon reads its start file once, at the start; every other setting is
//! in [`crate::model`].

use crate::{Addresses, CpuList, Document, Fault};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Start file of `sluice-cp`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ControlPlane {
    /// PFCP Node ID: a host name of at most 255 octets.
    pub node_id: String,
    /// Addresses for PFCP (UDP 8805) and GTP-U (UDP 2152): one for each address family that a user plane uses.
    pub address: Addresses,
    /// Unix socket of the local API.
    #[serde(default = "cp_socket")]
    pub api_socket: PathBuf,
    /// Folder for sessions, accounting records and configuration versions.
    #[serde(default = "cp_state")]
    pub state: PathBuf,
    /// RADIUS dictionaries in FreeRADIUS' format, beside the shipped ones. Default: none.
    #[serde(default)]
    pub dictionaries: Vec<PathBuf>,
    /// TLS credentials for user planes on other machines. User planes on this machine need none.
    #[serde(default)]
    pub management: Option<Tls>,
    /// Configuration for the first start, when the state folder has no version yet. Default: an empty configuration.
    #[serde(default)]
    pub initial_configuration: Option<PathBuf>,
}

/// Start file of `sluice-up`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserPlane {
    /// PFCP Node ID: a host name of at most 255 octets.
    pub node_id: String,
    /// Address for PFCP (UDP 8805) and GTP-U (UDP 2152).
    pub address: IpAddr,
    /// Control planes that may associate, at least one. The user plane sets up an association with each, and drops PFCP messages from all
    /// other addresses.
    #[serde(default)]
    pub control_planes: Vec<IpAddr>,
    /// Unix socket of the management interface.
    #[serde(default = "up_socket")]
    pub api_socket: PathBuf,
    /// Network endpoints of the management interface.
    #[serde(default)]
    pub management: Option<Management>,
    /// Folder for the last document from the management interface.
    #[serde(default = "up_state")]
    pub state: PathBuf,
    /// Document for the first start, in the format of the management interface. It is for a user plane whose control plane does not
    /// use the management interface.
    #[serde(default)]
    pub initial_configuration: Option<PathBuf>,
    /// Packet memory in MiB, 64 to 65,536.
    #[serde(default = "memory")]
    pub memory: u32,
    /// Whether packet memory uses huge pages. `true`: the user plane does not start without them. Default: where enough are free.
    #[serde(default)]
    pub huge_pages: Option<bool>,
    /// Maximum number of subscriber sessions, 1 to 1,048,576.
    #[serde(default = "max_sessions")]
    pub max_sessions: u32,
    /// Number of worker threads: 1, 2, 4, 8 or 16. Each needs a CPU core.
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

/// Management interface on the network: with mutual TLS, or without TLS on a loopback address.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Management {
    /// Addresses and TCP ports.
    pub listen: Vec<SocketAddr>,
    /// TLS credentials.
    #[serde(default)]
    pub tls: Option<Tls>,
}

/// TLS credentials in PEM files.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tls {
    /// Our certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of our certificate.
    pub key: PathBuf,
    /// Certificate of the authority that signed the peer's certificate.
    pub authority: PathBuf,
}

/// Start file of `sluice-web`, which needs none.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Web {
    /// Addresses and TCP ports for HTTPS, 1 to 8. Default: 127.0.0.1:8443. Beyond loopback, `hosts` is needed.
    pub listen: Vec<SocketAddr>,
    /// Names and addresses by which clients call this server, without ports. Requests for any other are refused, and the generated
    /// certificate is for these. Default: localhost, 127.0.0.1, [::1].
    pub hosts: Vec<String>,
    /// Unix socket of the control plane's local API.
    pub api_socket: PathBuf,
    /// Folder for tokens, users, one-time links, the generated certificate, and how far each destination has got.
    pub state: PathBuf,
    /// Certificate for HTTPS and gNMI. Default: one is generated at the first start.
    pub tls: Option<ServerCertificate>,
    /// Certificates of the authorities that sign those of clients, in PEM. With it, only clients with such a certificate may connect; each
    /// needs its token or sign-in as well. Default: clients need no certificate.
    pub client_authority: Option<PathBuf>,
    /// Destinations of events by their names, at most 16. Each gets the events that happen after it was named here. Default: none.
    pub destinations: BTreeMap<String, Destination>,
    /// gNMI over TLS. Default: it is not served.
    pub gnmi: Option<Gnmi>,
}

/// Destination of events: a syslog server or a webhook.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Destination {
    /// Where it is: `syslog+udp://HOST:PORT`, `syslog+tcp://HOST:PORT`, `syslog+tls://HOST:PORT`, or `https://HOST/PATH` of a webhook.
    /// `http` is for webhooks on this machine.
    pub to: String,
    /// Certificates of the authorities that may have signed its certificate, in PEM. Default: those of the system.
    #[serde(default)]
    pub authority: Option<PathBuf>,
    /// File with the secret that signs what a webhook gets: 16 to 1,024 octets.
    #[serde(default)]
    pub secret: Option<PathBuf>,
    /// Kinds of events, such as `[alarm-raised, alarm-cleared]`. Default: all kinds.
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// Where gNMI is served, with the certificate, the `hosts`, the tokens and the users of HTTPS.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Gnmi {
    /// Addresses and TCP ports, 1 to 8. Default: 127.0.0.1:9339, the port that IANA has assigned. Beyond loopback, `hosts` is needed.
    pub listen: Vec<SocketAddr>,
}

impl Default for Gnmi {
    fn default() -> Self {
        Gnmi {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 9339))],
        }
    }
}

/// Certificate of a server in PEM files.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerCertificate {
    /// Certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
}

impl Default for Web {
    fn default() -> Self {
        Web {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))],
            hosts: ["localhost", "127.0.0.1", "[::1]"].map(String::from).into(),
            api_socket: cp_socket(),
            state: "/var/lib/sluice/web".into(),
            tls: None,
            client_authority: None,
            destinations: BTreeMap::new(),
            gnmi: None,
        }
    }
}

impl ControlPlane {
    /// Folder of the configuration versions.
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

/// Checks that a number is in a range.
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
        if self.control_planes.is_empty() {
            let message = "`control-planes` names none, so that nobody could control this user plane: expected the PFCP address of \
                each control plane that may associate, such as `control-planes: [192.0.2.1]`";
            return Err(Fault::of_document(message));
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

impl Document for Web {
    fn check(&self) -> Result<(), Fault> {
        let fault = |message: String| Err(Fault::of_document(message));
        let gnmi = self.gnmi.as_ref().map(|gnmi| &gnmi.listen);
        let listens = [("listen", Some(&self.listen)), ("gnmi: listen", gnmi)];
        let listens = listens.map(|(name, all)| Some((name, all?)));
        for (name, all) in listens.iter().flatten() {
            let sockets = all.len();
            if !(1..=8).contains(&sockets) {
                return fault(format!("`{name}` has {sockets} addresses: expected 1 to 8"));
            }
        }
        let hosts = self.hosts.len();
        if !(1..=32).contains(&hosts) {
            return fault(format!("`hosts` has {hosts} names: expected 1 to 32"));
        }
        for host in &self.hosts {
            // an IPv6 address as it stands in a URL
            let address = host
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            let fits = match address {
                Some(address) => address.parse::<Ipv6Addr>().is_ok(),
                None => (1..=253).contains(&host.len()) && host.chars().all(name),
            };
            if !fits {
                return fault(format!(
                    "`hosts` has `{host}`: expected a name, an IPv4 address, or an IPv6 address in brackets, without a port"
                ));
            }
        }
        if self.destinations.len() > 16 {
            let n = self.destinations.len();
            return fault(format!("`destinations` has {n}: expected at most 16"));
        }
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = |name: &&String| (1..=32).contains(&name.len()) && name.chars().all(fits);
        if let Some(name) = self.destinations.keys().find(|name| !is_name(name)) {
            return fault(format!(
                "`destinations` has `{name}`: expected a name of 1 to 32 small letters, digits and hyphens"
            ));
        }
        let all = listens
            .iter()
            .flatten()
            .flat_map(|(name, all)| all.iter().map(move |at| (name, at)));
        let mut open = all.filter(|(_, at)| !at.ip().is_loopback());
        match open.next() {
            Some((name, at)) if self.hosts == Web::default().hosts => fault(format!(
                "`{name}` has {at}, and `hosts` does not say by which names clients call this server: expected such as \
                    `hosts: [gateway.example.net]`"
            )),
            _ => Ok(()),
        }
    }
}

/// A document is checked against the user plane's capabilities ([`crate::capabilities::Capabilities::check`]).
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
            let text = format!(
                "{{node-id: up1, address: 192.0.2.2, control-planes: [192.0.2.1], {text}}}"
            );
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

    #[test]
    fn a_web_server_beyond_loopback_names_its_hosts() {
        let read = |text: &str| {
            let read: Web = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
            read.check().map_err(|fault| fault.to_string())?;
            Ok::<_, String>(read)
        };
        let default = read("{}").unwrap();
        assert!(default.listen[0].ip().is_loopback());
        assert!(default.gnmi.is_none());
        let gnmi = read("gnmi: {}").unwrap().gnmi.unwrap();
        assert_eq!(gnmi.listen, ["127.0.0.1:9339".parse().unwrap()]);
        for right in [
            "listen: ['[::1]:9000']",
            "{listen: ['192.0.2.1:443'], hosts: [gateway.example.net, '[2001:db8::1]']}",
        ] {
            assert!(read(right).is_ok(), "{right}: {:?}", read(right));
        }
        for (wrong, says) in [
            ("listen: ['0.0.0.0:8443']", "by which names clients call"),
            (
                "gnmi: {listen: ['0.0.0.0:9339']}",
                "`gnmi: listen` has 0.0.0.0:9339",
            ),
            ("listen: []", "expected 1 to 8"),
            ("gnmi: {listen: []}", "`gnmi: listen` has 0 addresses"),
            ("hosts: ['localhost:8443']", "without a port"),
            ("hosts: ['[::1]:8443']", "without a port"),
            ("hosts: ['a b']", "`hosts` has `a b`"),
            ("tokens: x", "unknown field"),
            ("destinations: {../noc: {to: x}}", "has `../noc`"),
            ("destinations: {noc: {kinds: []}}", "missing field `to`"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_user_plane_names_its_control_planes() {
        let refused = |text: &str| {
            let text = format!("{{node-id: up1, address: 192.0.2.2{text}}}");
            let read: UserPlane = serde_saphyr::from_str(&text).unwrap();
            read.check().err().map(|fault| fault.to_string())
        };
        for text in ["", ", control-planes: []"] {
            let said = refused(text).expect("a fault");
            assert!(
                said.contains("such as `control-planes: [192.0.2.1]`"),
                "{said}"
            );
        }
        assert_eq!(refused(", control-planes: [192.0.2.1]"), None);
    }
}
