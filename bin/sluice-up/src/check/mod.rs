//! `sluice-up check CONF IN OUT COUNTERS` runs a capture's packets through the real packet graph, over ports in memory. It needs
//! no port, no kernel and no privilege. `sluice-up check --host` compares the machine with what a user plane needs.
//!
//! Packets with the same time arrive in one burst. The worker's clock follows the capture, so that the same input always gives
//! the same output.

mod conf;
mod counters;
mod host;
mod input;
mod plane;

use conf::Conf;
use config::Error;
use counters::Counters;
use dataplane::{Edge, Node};
use input::{Input, Way};
use plane::{Came, Plane};
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use wire::pcap::{self, Capture, ETHERNET, RAW_IP};

/// Run the packets of a capture through the user plane's packet graph, without ports; or check the machine
///
/// Prints the result of each packet and the nodes that it passes. Packets with the same time arrive in one burst. The
/// policers use the clock of the capture. Exit codes: 1 if the counts of packets in, out, dropped and punted do not match,
/// 2 if CONF or IN is invalid.
///
/// With --host: checks the machine instead. Exit codes: 1 if something needs mending, 2 if START is invalid.
#[derive(clap::Args)]
pub struct Check {
    /// Check this machine: huge pages, cores, isolation, NUMA, clock source. START is the user plane's start file; without it
    /// the defaults apply. Huge pages of a running user plane are not free
    #[arg(long, value_name = "START", num_args = 0..=1)]
    host: Option<Option<PathBuf>>,
    /// Print JSON
    #[arg(long, requires = "host")]
    json: bool,
    /// Configuration of the gateway: ports, sessions, routes, adjacencies (YAML; examples are in bin/sluice-up/cases)
    #[arg(required_unless_present = "host", conflicts_with = "host")]
    conf: Option<PathBuf>,
    /// Input packets (pcap or pcapng). The interface name or CONF's `input` names the port. The gateway's own IP packets are on
    /// interface `gateway/INSTANCE`, its own frames on `gateway/PORT`
    #[arg(value_name = "IN", required_unless_present = "host")]
    input: Option<PathBuf>,
    /// Output capture (pcapng): sent packets on interfaces with the ports' names, punted packets on `punt` and `punt-ip`
    #[arg(value_name = "OUT", required_unless_present = "host")]
    output: Option<PathBuf>,
    /// Counters: ports, drops, punts, sessions, edges of the graph
    #[arg(required_unless_present = "host")]
    counters: Option<PathBuf>,
}

/// Reason for which a check fails.
enum Failure {
    /// The input is invalid.
    Wrong(String),
    /// The check failed, or its result is inconsistent.
    Broken(String),
}

impl From<dpdk::Error> for Failure {
    fn from(error: dpdk::Error) -> Self {
        Failure::Broken(error.to_string())
    }
}

impl From<dataplane::Error> for Failure {
    fn from(error: dataplane::Error) -> Self {
        Failure::Broken(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Wrong(error.to_string())
    }
}

fn wrong(file: &Path, why: impl Display) -> Failure {
    Failure::Wrong(format!("{}: {why}", file.display()))
}

fn broken(file: &Path, why: impl Display) -> Failure {
    Failure::Broken(format!("{}: {why}", file.display()))
}

impl Check {
    /// Does it.
    pub fn run(&self) -> ExitCode {
        let done = match &self.host {
            Some(start) => host::check(start.as_deref(), self.json),
            None => self.pass(),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure::Broken(said)) => {
                eprintln!("{said}");
                ExitCode::FAILURE
            }
            Err(Failure::Wrong(said)) => {
                eprintln!("{said}");
                ExitCode::from(crate::WRONG_CONFIGURATION)
            }
        }
    }

    fn pass(&self) -> Result<(), Failure> {
        let files = [&self.conf, &self.input, &self.output, &self.counters];
        let [about, packets, output, counted] =
            files.map(|file| file.as_deref().expect("it is required"));
        let conf: Conf = config::load(about)?;
        let file = fs::read(packets).map_err(|error| wrong(packets, error))?;
        let capture = Capture::parse(&file).map_err(|error| wrong(packets, error))?;
        let mut plane = Plane::new(&conf, about)?;
        let input = Input::new(&conf, &plane.names, &capture).map_err(|why| wrong(packets, why))?;

        let mut out = Output::new(&plane);
        let mut counters = Counters::default();
        let mut said = io::stdout().lock();
        let begin = capture.packets.first().map_or(0, |packet| packet.at);
        for round in input.rounds() {
            round.send(&mut plane).map_err(|why| wrong(packets, why))?;
            let at = capture.packets[round.first].at;
            let came = plane.round(Duration::from_nanos(at.saturating_sub(begin)));
            let path = path(&came.path);
            out.add(at, &came, &plane, &round.to_string(), &path);
            counters.add(&came, round.way.node(&conf));
            // `sluice-up check ... | head` is no error.
            let _ = writeln!(said, "{round}: {} [{path}]", came.fate(&plane.names));
        }
        let balance = counters.finish(&mut plane, capture.packets.len() as u64);
        fs::write(output, out.file).map_err(|error| broken(output, error))?;
        fs::write(counted, counters.to_string()).map_err(|error| broken(counted, error))?;
        balance.map_err(Failure::Broken)
    }
}

impl Way {
    /// Where packets that come this way enter the graph.
    fn node(&self, conf: &Conf) -> Node {
        match self {
            Way::Port(name) if conf.ports[name].is_access() => Node::AccessRx,
            Way::Port(_) => Node::CoreRx,
            Way::Frame(_) | Way::Route(_) => Node::Gateway,
        }
    }
}

/// The nodes that packets pass, one path after the other.
fn path(edges: &[Edge]) -> String {
    let (mut out, mut last) = (String::new(), None);
    for edge in edges {
        let (from, to) = (edge.from().name(), edge.to().name());
        match last {
            None => out.push_str(from),
            Some(last) if last == from => {}
            Some(_) => {
                out.push_str(", ");
                out.push_str(from);
            }
        }
        out.push_str(" > ");
        out.push_str(to);
        last = Some(to);
    }
    out
}

/// The capture of what leaves.
struct Output {
    file: Vec<u8>,
    /// The place of `punt` among its interfaces; `punt-ip` is behind it.
    punt: usize,
}

impl Output {
    fn new(plane: &Plane) -> Self {
        let mut file = Vec::new();
        pcap::begin("sluice-up check", &mut file);
        let names = plane.names.ports();
        let ports = names.iter().map(|name| (name.as_str(), ETHERNET));
        for (name, link) in ports.chain([("punt", ETHERNET), ("punt-ip", RAW_IP)]) {
            let name = Some(name);
            pcap::Interface { name, link }.emit(&mut file);
        }
        let punt = names.len();
        Output { file, punt }
    }

    /// Adds what came of a round; comments say which, what it is, and its path.
    fn add(&mut self, at: u64, came: &Came, plane: &Plane, round: &str, path: &str) {
        let mut emit = |interface, octets: &[u8], what: &str| {
            let packet = pcap::Packet {
                interface,
                at,
                length: octets.len() as u32,
                octets,
            };
            packet.emit(&format!("{round}: {what}: {path}"), None, &mut self.file);
        };
        for (port, frame) in &came.out {
            emit(*port, frame, "out");
        }
        for punted in &came.punted {
            let interface = self.punt + usize::from(punted.is_ip());
            let what = format!("punt {}", plane.names.punt(punted.kind));
            emit(interface, &punted.octets, &what);
        }
    }
}
