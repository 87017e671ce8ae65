//! The Linux kernel's forwarding between two veths, for orientation.
use crate::report::{Entry, Samples};
use anyhow::{Context, Result, ensure};
use dpdk::tsc;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where packets go that are forwarded, and those that the router's end of the first veth is not addressed by.
const FORWARDED: &str = "198.51.100.1";
const IGNORED: &str = "203.0.113.1";

/// A sender, a router and what is behind it, each a network namespace.
const PLACES: [&str; 3] = ["slbench-from", "slbench-router", "slbench-to"];

/// Cycles that the kernel needs to forward a packet: what sending one that is forwarded costs more than sending one
/// that the router ignores.
pub fn measure(rounds: usize) -> Result<Entry> {
    let _places = Places::make()?;
    let mut samples = Samples::default();
    for _ in 0..rounds {
        let [forwarded, ignored] = [FORWARDED, IGNORED].map(cost);
        samples.0.push(forwarded? - ignored?);
    }
    ensure!(Places::arrived()? > 1000, "the kernel did not forward");
    let name = "Linux forwarding between two veths, IPv4";
    let mut entry = Entry::new("kernel-veth", name, "cycles", &samples);
    (entry.frame, entry.routes) = (Some("64".into()), Some(2));
    Ok(entry)
}

/// Sends for a while from the first place, in a process of its own.
fn cost(to: &str) -> Result<f64> {
    let own = std::env::current_exe()?;
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", PLACES[0]])
        .arg(own)
        .args(["--send-to", to]);
    let said = command.output()?;
    ensure!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(String::from_utf8(said.stdout)?.trim().parse()?)
}

/// What the process does: sends packets of 64 octets for half a second, and prints the cycles of each. Everything up to
/// the other end of the last veth happens within the call.
pub fn send(to: &str) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((to, 9))?;
    let packet = [0; 64 - 14 - 20 - 8];
    let (begin, until, mut sent) = (tsc(), Instant::now() + Duration::from_millis(500), 0u64);
    while Instant::now() < until {
        for _ in 0..256 {
            socket.send(&packet)?;
        }
        sent += 256;
    }
    println!("{}", (tsc() - begin) as f64 / sent as f64);
    Ok(())
}

struct Places;

impl Places {
    fn make() -> Result<Self> {
        let [from, router, to] = PLACES;
        let places = Places;
        places.remove();
        for place in PLACES {
            ip(&format!("netns add {place}"))?;
        }
        ip(&format!(
            "-n {from} link add out type veth peer name left netns {router}"
        ))?;
        ip(&format!(
            "-n {router} link add right type veth peer name in netns {to}"
        ))?;
        for (place, links) in [
            (from, "out"),
            (router, "left"),
            (router, "right"),
            (to, "in"),
        ] {
            ip(&format!("-n {place} link set {links} up"))?;
        }
        ip(&format!(
            "-n {router} link set left address 02:00:00:00:00:01"
        ))?;
        ip(&format!("-n {from} address add 192.0.2.1/24 dev out"))?;
        ip(&format!("-n {router} address add 192.0.2.2/24 dev left"))?;
        ip(&format!("-n {router} address add 192.0.3.1/24 dev right"))?;
        ip(&format!(
            "-n {from} neighbour add 192.0.2.2 lladdr 02:00:00:00:00:01 dev out nud permanent"
        ))?;
        // Nobody has these addresses: where a packet arrives, it is not looked at any further.
        ip(&format!(
            "-n {from} neighbour add 192.0.2.3 lladdr 02:00:00:00:00:77 dev out nud permanent"
        ))?;
        ip(&format!(
            "-n {router} neighbour add 192.0.3.2 lladdr 02:00:00:00:00:77 dev right nud permanent"
        ))?;
        ip(&format!("-n {from} route add {FORWARDED} via 192.0.2.2"))?;
        ip(&format!("-n {from} route add {IGNORED} via 192.0.2.3"))?;
        ip(&format!("-n {router} route add {FORWARDED} via 192.0.3.2"))?;
        ip(&format!(
            "netns exec {router} sysctl -q -w net.ipv4.ip_forward=1"
        ))?;
        Ok(places)
    }

    /// Packets that the last place received.
    fn arrived() -> Result<u64> {
        let counter = "/sys/class/net/in/statistics/rx_packets";
        let said = Command::new("ip")
            .args(["netns", "exec", PLACES[2], "cat", counter])
            .output()?;
        Ok(String::from_utf8(said.stdout)?.trim().parse()?)
    }

    fn remove(&self) {
        for place in PLACES {
            let _ = Command::new("ip").args(["netns", "del", place]).output();
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.context("ip (Debian's package iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {arguments}: {}", said.trim());
    Ok(())
}
