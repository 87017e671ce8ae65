//! A full table of the internet: the networks of Debian's libloc-database that have an origin, announced by FRR to the
//! gateway's own FRR, which puts them into the kernel, from where the user plane has them.

use super::frr::{MEETING, of_how_to, router_by_bgp, wait, with_site};
use crate::access_network::AccessNetwork;
use crate::backbone::{Backbone, Router, TAP};
use crate::fixture::Fixture;
use crate::guard;
use crate::leak_check::cpu_time;
use crate::site::{Site, UP};
use crate::soak::number;
use anyhow::{Context, Result, ensure};
use ipnet::IpNet;
use lab::topology::{Lab, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of a full table, what there is time for in every run.
const SOME: usize = 100_000;
const HOMES: u16 = 40;
/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Routes that are there besides: the core's own, and default routes.
const OTHERS: u64 = 100;
/// What the lab has addresses of.
const OURS: [&str; 7] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "192.0.2.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001:db8::/32",
];

/// A part of the table; `ROUTES` says how much of it.
pub fn some(fixture: &mut Fixture) -> Result<()> {
    let wanted = number("ROUTES")?.map(|routes| routes as usize);
    run(fixture, wanted.unwrap_or(SOME))
}

/// The whole table.
pub fn all(fixture: &mut Fixture) -> Result<()> {
    run(fixture, usize::MAX)
}

fn run(fixture: &mut Fixture, most: usize) -> Result<()> {
    guard::limit_to("frr-full", 4 * PATIENCE);
    let table = table(most)?;
    with_site(fixture, "frr-full", |lab, site| {
        let [gateway, _] = of_how_to()?;
        let backbone = Backbone::build(lab, &["bgpd"], &without_bfd(&gateway), |router| {
            configure(router, &table)
        })?;
        guard::limit_to("frr-full", 4 * PATIENCE);
        let case = Case {
            lab,
            site,
            backbone: &backbone,
            nets: table.len() as u64,
        };
        let done = case.run().with_context(|| backbone.tails());
        backbone.close().and(done)
    })
}

/// The networks, without what the lab has addresses of, or as many of them, evenly spread.
fn table(most: usize) -> Result<Vec<IpNet>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/prefixes.py");
    // Debian's interpreter: the module belongs to it.
    let listed = Command::new("/usr/bin/python3").arg(script).output()?;
    let said = String::from_utf8_lossy(&listed.stderr);
    ensure!(
        listed.status.success(),
        "no networks (Debian's packages libloc-database and python3-location): {said}"
    );
    let ours: Vec<IpNet> = OURS.iter().filter_map(|net| net.parse().ok()).collect();
    let text = String::from_utf8(listed.stdout)?;
    let nets = text.lines().filter_map(|line| line.parse::<IpNet>().ok());
    let others = |net: &IpNet| !ours.iter().any(|ours| ours.contains(net));
    let nets: Vec<IpNet> = nets.filter(others).collect();
    let step = nets.len().div_ceil(most);
    Ok(nets.into_iter().step_by(step).collect())
}

/// A machine that is busy with a full table for minutes is no place for BFD's timers.
fn without_bfd(configuration: &str) -> String {
    let lines = configuration.lines().filter(|line| !line.ends_with(" bfd"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The first router has the table, and does not speak yet.
fn configure(router: &Router, table: &[IpNet]) -> String {
    let told = without_bfd(&router_by_bgp(router));
    if !router.is_first() {
        return told;
    }
    let lines = table.iter().map(|net| format!("route add {net} dev lo\n"));
    if let Err(error) = router.batch(&lines.collect::<String>()) {
        println!("        the router has no routes: {error:#}");
    }
    told.replacen("exit\n", &format!("{}exit\n", speak(false)), 1)
}

/// Whether a router speaks to the gateway.
fn speak(speaks: bool) -> String {
    let no = if speaks { "no " } else { "" };
    let (four, six) = (UP.core_v4(), UP.core_v6());
    format!(" {no}neighbor {four} shutdown\n {no}neighbor {six} shutdown\n")
}

struct Case<'a> {
    lab: &'a Lab,
    site: &'a mut Site,
    backbone: &'a Backbone,
    nets: u64,
}

impl Case<'_> {
    fn run(self) -> Result<()> {
        let network = AccessNetwork::dial(self.lab, HOMES)?;
        network.wait_online(MEETING)?;
        self.until("the router to have the table", |case| {
            let router = case.backbone.routers[0].daemons()?;
            let of = |family: &str| -> Result<u64> {
                let bgp: Value = router.show(&format!("show bgp {family} unicast summary json"))?;
                Ok(bgp["ribCount"].as_u64().unwrap_or(0))
            };
            Ok(of("ipv4")? + of("ipv6")? >= case.nets)
        })?;
        // The other router has found the gateway as well.
        network.hear_all(MEETING)?;
        self.under_traffic(&network, "the table came", Self::load)?;
        self.under_traffic(&network, "it was compared", Self::same)?;
        self.under_traffic(&network, "the ledger was checked", Self::balance)?;
        self.under_traffic(&network, "the table went", Self::withdraw)?;
        self.balance()?;
        let (homes, _) = network.hang_up(MEETING)?;
        ensure!(homes.ends.is_empty(), "sessions ended: {:?}", homes.ends);
        self.site.wait_empty(MEETING)
    }

    /// Lets something happen while the homes talk: the gateway drops nothing. On two cores that are busy with routes, a queue
    /// between the homes, the routers and the host may run over.
    fn under_traffic(
        &self,
        network: &AccessNetwork,
        what: &str,
        happens: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let (before, drops) = (network.hush(), self.site.drops()?);
        network.speak();
        let ping = self.ping()?;
        let done = happens(self);
        let answered = ping.end()?;
        done?;
        let after = network.hush();
        network.speak();
        let sent = after.0 - before.0;
        let lost = sent - (after.1 - before.1);
        let now = self.site.drops()?;
        println!(
            "        while {what} the homes lost {lost} of {sent} packets, and the gateway answered a router within {answered} ms"
        );
        let mut ours = now.since(&drops);
        // The first packet to a router that nobody has spoken to yet.
        ours.retain(|(_, name, _)| *name != "no-adjacency");
        ensure!(ours.is_empty(), "the gateway dropped packets: {ours:?}");
        ensure!(lost * 100 <= sent, "that is too many");
        Ok(())
    }

    /// A router asks the gateway itself, on whose control thread the answers depend as BFD's do.
    fn ping(&self) -> Result<Ping> {
        let router = &self.backbone.routers[1];
        let mut ping = router.netns.command("ping");
        ping.args(["-q", "-i", "0.05", &UP.core_v4().to_string()]);
        Ok(Ping(ping.stdout(Stdio::piped()).spawn()?))
    }

    /// The router speaks, and the gateway's FRR puts all that it hears into the kernel.
    fn load(&self) -> Result<()> {
        let (resident, processor) = (self.resident()?, self.processor()?);
        let begun = Instant::now();
        self.have_speak(true)?;
        self.until("FRR to put everything into the kernel", |case| {
            Ok(case.of_zebra()? >= case.nets)
        })?;
        let took = begun.elapsed();
        self.until("the user plane to have it", |case| {
            Ok(case.of_gateway()? >= case.nets)
        })?;
        let late = begun.elapsed() - took;
        let nets = self.nets;
        println!(
            "        FRR put {nets} routes into the kernel in {:.1} s, {:.0} a second; the user plane had them {:.2} s later",
            took.as_secs_f64(),
            nets as f64 / took.as_secs_f64(),
            late.as_secs_f64(),
        );
        let more = self.resident()?.saturating_sub(resident);
        println!(
            "        sluice-up worked {:.1} s, missed changes {} times, and takes {} MB more, {} octets a route",
            self.processor()? - processor,
            self.site.drops()?.count("netlink-overrun")?,
            more >> 20,
            more / nets,
        );
        for (daemon, octets) in self.backbone.gateway.memory()? {
            println!("        {daemon}: {} MB", octets >> 20);
        }
        Ok(())
    }

    /// The router is silent again, and everything goes.
    fn withdraw(&self) -> Result<()> {
        let begun = Instant::now();
        self.have_speak(false)?;
        self.until("FRR to take everything back", |case| {
            Ok(case.of_zebra()? < OTHERS)
        })?;
        let took = begun.elapsed();
        self.until("the user plane to have nothing of it", |case| {
            Ok(case.of_gateway()? < OTHERS)
        })?;
        println!(
            "        FRR took them back in {:.1} s; the user plane {:.2} s later, {} MB resident",
            took.as_secs_f64(),
            (begun.elapsed() - took).as_secs_f64(),
            self.resident()? >> 20
        );
        Ok(())
    }

    fn have_speak(&self, speaks: bool) -> Result<()> {
        let router = self.backbone.routers[0].daemons()?;
        let bgp = router_by_bgp(&self.backbone.routers[0]);
        let begin = bgp.lines().next().context("no router")?;
        router.tell(&format!("{begin}\n{}exit\n", speak(speaks)))
    }

    fn balance(&self) -> Result<()> {
        let begun = Instant::now();
        self.site.sluice().ledger()?;
        println!("        the ledger balances, after {:.1?}", begun.elapsed());
        Ok(())
    }

    /// The forwarding table has what the kernel has.
    fn same(&self) -> Result<()> {
        wait("the gateway to have what the kernel has", PATIENCE, || {
            let kernel = self.of_kernel()?;
            let routes = self.site.routes()?;
            let ours: BTreeMap<IpNet, &str> = routes
                .iter()
                .filter_map(|route| Some((route.prefix.parse().ok()?, route.next_hop.as_deref()?)))
                .collect();
            let differs = |(net, hop): &(&IpNet, &IpAddr)| {
                ours.get(*net).and_then(|ours| ours.parse().ok()) != Some(**hop)
            };
            let differing = kernel.iter().filter(differs).count();
            let enough = kernel.len() as u64 >= self.nets;
            let strange = ours.len() as u64 > kernel.len() as u64 + OTHERS;
            Ok((differing > 0 || !enough || strange).then(|| {
                let (ours, theirs) = (ours.len(), kernel.len());
                format!("{ours} routes of {theirs}, {differing} of which differ")
            }))
        })
    }

    /// The kernel's routes from FRR that have one next hop.
    fn of_kernel(&self) -> Result<BTreeMap<IpNet, IpAddr>> {
        let up = self.lab.netns(Place::UserPlane(UP));
        let of = |family| up.run(&["ip", family, "route", "show", "proto", "bgp", "dev", TAP]);
        let text = of("-4")? + &of("-6")?;
        let route = |line: &str| {
            let mut words = line.split(' ');
            let net = words.next()?;
            let whole = || net.parse::<IpAddr>().ok().map(IpNet::from);
            let hop = words.skip_while(|word| *word != "via").nth(1)?;
            Some((net.parse().ok().or_else(whole)?, hop.parse().ok()?))
        };
        Ok(text.lines().filter_map(route).collect())
    }

    /// How many routes FRR has put into the kernel.
    fn of_zebra(&self) -> Result<u64> {
        let of = |family: &str| -> Result<u64> {
            let command = format!("show {family} route summary json");
            let summary: Value = self.backbone.gateway.show(&command)?;
            let routes = summary["routes"].as_array().context("no routes")?;
            let bgp = routes.iter().find(|route| route["type"] == "ebgp");
            Ok(bgp.and_then(|route| route["fib"].as_u64()).unwrap_or(0))
        };
        Ok(of("ip")? + of("ipv6")?)
    }

    /// How many routes of the user plane lead to a neighbour.
    fn of_gateway(&self) -> Result<u64> {
        let neighbours = self.site.neighbours()?;
        Ok(neighbours.iter().map(|neighbour| neighbour.routes).sum())
    }

    fn until(&self, what: &str, done: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        wait(what, PATIENCE, || match done(self)? {
            true => Ok(None),
            false => {
                sleep(LOOK_AGAIN);
                Ok(Some("not yet".into()))
            }
        })
    }

    /// Seconds that the user plane has had of a processor.
    fn processor(&self) -> Result<f64> {
        Ok(cpu_time(self.site.up.id())?.as_secs_f64())
    }

    /// Octets of memory that the user plane has.
    fn resident(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.site.up.id()))?;
        let pages = text.split(' ').nth(1).context("no resident set")?;
        Ok(pages.parse::<u64>()? * 4096)
    }
}

/// A ping that goes on.
struct Ping(Child);

impl Ping {
    /// Ends it; the longest time that an answer took, in milliseconds.
    fn end(self) -> Result<String> {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT)?;
        let said = String::from_utf8(self.0.wait_with_output()?.stdout)?;
        // rtt min/avg/max/mdev = 0.043/0.058/0.102/0.020 ms
        let most = said
            .rsplit_once("= ")
            .and_then(|(_, times)| times.split('/').nth(2));
        most.map(str::to_owned)
            .with_context(|| format!("no answer: {said}"))
    }
}
