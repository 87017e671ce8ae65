//! The core as a network of its own: two routers that speak to the gateway by its core link, and the host behind them.
//!
//! ```text
//!  sluice-up1            sluice-inet        sluice-r1
//!  sl-default            bridge lan ─┬──── core │ inet ──┐ the host's lo:
//!  sl-core0 = core0 ════ core-up1    ├──── core │ inet ──┤ 198.51.100.2,
//!  FRR                               ┘      sluice-r2    ┘ 2001:db8:ffff::2
//! ```
//!
//! The host has its default route by the second router: the first one may die.

use crate::frr::Frr;
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use lab::netns::Netns;
use lab::topology::{
    CORE_V4_LEN, CORE_V6_LEN, INTERNET_V4, INTERNET_V6, Lab, Place, SUBSCRIBERS_V4, SUBSCRIBERS_V6,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Stdio;

/// The gateway's TAP on the core link.
pub const TAP: &str = "sl-core0";

/// A router of the core.
pub struct Router {
    number: u8,
    /// Its namespace.
    pub netns: Netns,
    /// Its daemons.
    pub frr: Option<Frr>,
}

impl Router {
    /// Its address on the core link.
    pub fn v4(&self) -> Ipv4Addr {
        let [a, b, c, _] = INTERNET_V4.octets();
        Ipv4Addr::new(a, b, c, 10 + self.number)
    }

    /// Its address on the core link.
    pub fn v6(&self) -> Ipv6Addr {
        let mut segments = INTERNET_V6.segments();
        segments[7] = 0x10 + u16::from(self.number);
        segments.into()
    }

    /// Whether it is the one that may die, by which the host has no route.
    pub fn is_first(&self) -> bool {
        self.number == 1
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("r{}", self.number)
    }

    /// Its daemons, which run.
    pub fn daemons(&self) -> Result<&Frr> {
        self.frr.as_ref().context("the router has no daemons")
    }

    /// Packets that it has passed on to the host.
    pub fn passed_on(&self) -> Result<u64> {
        let text = self
            .netns
            .run(&["cat", "/sys/class/net/inet/statistics/tx_packets"])?;
        Ok(text.trim().parse()?)
    }

    /// Runs many lines of `ip` inside, and goes on where one fails.
    pub fn batch(&self, lines: &str) -> Result<()> {
        let mut command = self.netns.command("ip");
        command.args(["-force", "-batch", "-"]);
        let command = command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take().context("piped")?;
        stdin.write_all(lines.as_bytes())?;
        drop(stdin);
        child.wait()?;
        Ok(())
    }

    fn build(&self, inet: &Netns) -> Result<()> {
        if self.netns.exists() {
            self.netns.delete()?;
        }
        self.netns.create()?;
        self.netns.without_duplicate_detection()?;
        let (n, r) = (self.number, self.netns.name());
        inet.ip(&format!(
            "link add lan-r{n} type veth peer name core netns {r}\n\
             link add r{n} type veth peer name inet netns {r}\n"
        ))?;
        inet.silence(&[&format!("lan-r{n}")])?;
        inet.offloads_off(&format!("lan-r{n}"))?;
        self.netns.offloads_off("core")?;
        inet.ip(&format!(
            "link set lan-r{n} master lan up\n\
             addr add 10.77.{n}.2/30 dev r{n}\n\
             addr add 2001:db8:77:{n}::2/64 dev r{n} nodad\n\
             link set r{n} up\n"
        ))?;
        for switch in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
            self.netns.run(&["sysctl", "-q", "-w", switch])?;
        }
        let (four, six) = (self.v4(), self.v6());
        self.netns.ip(&format!(
            "addr add {four}/{CORE_V4_LEN} dev core\n\
             addr add {six}/{CORE_V6_LEN} dev core nodad\n\
             link set core up\n\
             addr add 10.77.{n}.1/30 dev inet\n\
             addr add 2001:db8:77:{n}::1/64 dev inet nodad\n\
             link set inet up\n\
             route add {INTERNET_V4}/32 via 10.77.{n}.2\n\
             route add {INTERNET_V6}/128 via 2001:db8:77:{n}::2\n"
        ))
    }
}

/// The core, with the gateway's own daemons.
pub struct Backbone {
    /// The gateway's daemons.
    pub gateway: Frr,
    /// The routers, the first of which may die.
    pub routers: [Router; 2],
}

impl Backbone {
    /// Puts two routers between a gateway that runs and the host, and starts everybody's daemons with what `configure` says
    /// for the gateway and for a router.
    pub fn build(
        lab: &Lab,
        daemons: &[&str],
        gateway: &str,
        configure: impl Fn(&Router) -> String,
    ) -> Result<Self> {
        let inet = lab.netns(Place::Internet);
        let core = UP.core_link();
        inet.silence(&[core])?;
        inet.ip(&format!(
            "addr flush dev {core}\n\
             link add lan type bridge stp_state 0 mcast_snooping 0\n\
             link set {core} master lan\n\
             addr add {INTERNET_V4}/32 dev lo\n\
             addr add {INTERNET_V6}/128 dev lo nodad\n"
        ))?;
        inet.silence(&["lan"])?;
        inet.ip("link set lan up")?;
        let suffix = inet.name().strip_prefix("sluice-inet").unwrap_or_default();
        let mut routers = [1, 2].map(|number| Router {
            number,
            netns: Netns::named(format!("sluice-r{number}{suffix}")),
            frr: None,
        });
        for router in &routers {
            router.build(inet)?;
        }
        inet.ip(&format!(
            "route add {SUBSCRIBERS_V4} via 10.77.2.1\nroute add {SUBSCRIBERS_V6} via 2001:db8:77:2::1\n"
        ))?;
        let up = lab.netns(Place::UserPlane(UP));
        up.ip("route del default\nroute del ::/0\n")?;
        for router in &mut routers {
            let (name, told) = (router.name(), configure(router));
            router.frr = Some(Frr::start(lab, &router.netns, &name, daemons, &told)?);
        }
        Ok(Backbone {
            gateway: Frr::start(lab, up, "gateway", daemons, gateway)?,
            routers,
        })
    }

    /// What every daemon logged last.
    pub fn tails(&self) -> String {
        let routers = self.routers.iter().filter_map(|router| router.frr.as_ref());
        routers.chain([&self.gateway]).map(Frr::tails).collect()
    }

    /// Ends the daemons and removes the routers.
    pub fn close(self) -> Result<()> {
        self.gateway.stop()?;
        for router in self.routers {
            if let Some(frr) = router.frr {
                frr.stop()?;
            }
            router.netns.delete()?;
        }
        Ok(())
    }
}

/// Routes by prefix, with the addresses of their next hops.
pub type Table = BTreeMap<String, BTreeSet<IpAddr>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZebraRoute {
    protocol: String,
    #[serde(default)]
    installed: bool,
    #[serde(default)]
    selected: bool,
    #[serde(default)]
    nexthops: Vec<ZebraHop>,
}

#[derive(Deserialize)]
struct ZebraHop {
    #[serde(default)]
    fib: bool,
    ip: Option<IpAddr>,
}

/// The routes that zebra has of these protocols and has put into the kernel.
pub fn of_zebra(frr: &Frr, protocols: &[&str]) -> Result<Table> {
    let mut table = Table::new();
    for family in ["ip", "ipv6"] {
        let routes: BTreeMap<String, Vec<ZebraRoute>> =
            frr.show(&format!("show {family} route json"))?;
        for (prefix, routes) in routes {
            let ours = |route: &&ZebraRoute| protocols.contains(&route.protocol.as_str());
            let mut used = routes.iter().filter(|route| route.selected);
            if let Some(route) = used.find(ours) {
                ensure!(route.installed, "zebra has not installed {prefix}");
                let hops = route.nexthops.iter().filter(|hop| hop.fib);
                table.insert(prefix, hops.filter_map(|hop| hop.ip).collect());
            }
        }
    }
    Ok(table)
}

/// The routes by neighbours of a user plane's forwarding table, without those to the neighbours themselves.
pub fn of_gateway(routes: &[northbound::Route]) -> Result<Table> {
    let mut table = Table::new();
    for route in routes {
        let Some(first) = &route.next_hop else {
            continue;
        };
        let further = route.further.iter().filter_map(|hop| hop.address.as_ref());
        let hops = std::iter::once(first).chain(further);
        let hops: Result<BTreeSet<IpAddr>, _> = hops.map(|hop| hop.parse()).collect();
        let prefix: ipnet::IpNet = route.prefix.parse()?;
        if prefix.prefix_len() != prefix.max_prefix_len() || first.parse() != Ok(prefix.addr()) {
            table.insert(route.prefix.clone(), hops?);
        }
    }
    Ok(table)
}

/// The first differences of two tables, and how many there are.
pub fn difference(ours: &Table, theirs: &Table) -> Option<String> {
    let all: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differs = |prefix: &&&String| ours.get(**prefix) != theirs.get(**prefix);
    let differing: Vec<&&String> = all.iter().filter(differs).collect();
    let shown = differing.iter().take(5).map(|prefix| {
        let (ours, theirs) = (ours.get(**prefix), theirs.get(**prefix));
        format!("{prefix}: the gateway has {ours:?}, FRR {theirs:?}")
    });
    let shown = shown.collect::<Vec<_>>().join("; ");
    (!differing.is_empty()).then(|| format!("{} differ: {shown}", differing.len()))
}
