use crate::access_network::AccessNetwork;
use crate::backbone::{Backbone, Router, difference, of_gateway, of_zebra};
use crate::fixture::Fixture;
use crate::guard;
use crate::site::{Setup, Site, UP};
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab};
use serde_json::Value;
use std::net::IpAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The gateway's and the routers' autonomous systems.
const GATEWAY_AS: u32 = 64512;
const CORE_AS: u32 = 64500;
const HOMES: u16 = 40;
/// With each of two routers over both families.
const BFD_SESSIONS: usize = 4;
/// Routes that flap.
const FLAPPING: u32 = 12_000;
/// How often they flap.
const ROUNDS: u32 = 3;
/// How long routing protocols may take to find each other, and FRR to follow what flaps.
pub(super) const MEETING: Duration = Duration::from_secs(120);

/// Gives a case a lab of its own, with a gateway that serves homes.
pub(super) fn with_site(
    fixture: &mut Fixture,
    name: &'static str,
    case: impl FnOnce(&Lab, &mut Site) -> Result<()>,
) -> Result<()> {
    let lab = fixture.without_site()?.part("frr")?;
    let setup = Setup {
        delegates: true,
        ..Setup::default()
    };
    let mut site = Site::start(&lab, &setup)?;
    let done = case(&lab, &mut site);
    let done = done.with_context(|| site.tails());
    guard::limit(name);
    site.stop()?;
    match done {
        Ok(()) => lab.close(),
        Err(error) => {
            lab.close_keeping_logs()?;
            Err(error)
        }
    }
}

pub fn bgp(fixture: &mut Fixture) -> Result<()> {
    with_site(fixture, "frr-bgp", |lab, site| {
        let daemons = ["bfdd", "bgpd"];
        let [gateway, _] = of_how_to()?;
        let mut backbone = Backbone::build(lab, &daemons, &gateway, router_by_bgp)?;
        let done = bgp_with(lab, site, &mut backbone);
        let done = done.with_context(|| backbone.tails());
        backbone.close().and(done)
    })
}

fn bgp_with(lab: &Lab, site: &mut Site, backbone: &mut Backbone) -> Result<()> {
    for net in ["0.0.0.0/0", "::/0", &host_v4(), &host_v6()] {
        wait_hops(site, net, 2)?;
    }
    wait("BFD to be up", MEETING, || {
        let sessions: Vec<Value> = backbone.gateway.show("show bfd peers json")?;
        if sessions.len() != BFD_SESSIONS {
            return Ok(Some(format!("BFD has {} sessions", sessions.len())));
        }
        let down = sessions
            .into_iter()
            .find(|session| session["status"] != "up");
        Ok(down.map(|session| format!("BFD is not up: {session}")))
    })?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(MEETING)?;
    learned(lab, site, backbone)?;
    spread(backbone, &network)?;
    same(site, backbone)?;
    flap(site, backbone, &network)?;
    die(site, backbone, &network)?;
    site.sluice().ledger()?;
    let (homes, _) = network.hang_up(MEETING)?;
    ensure!(homes.ends.is_empty(), "sessions ended: {:?}", homes.ends);
    site.wait_empty(MEETING)?;
    // Nets that nobody has an address of any more are withdrawn.
    let second = backbone.routers[1].daemons()?;
    wait("the subscribers' nets to go", MEETING, || {
        Ok(second
            .ask("show ip route bgp")?
            .contains("100.64.")
            .then_some(String::new()))
    })
}

/// Every router has the nets that the gateway announces.
fn learned(lab: &Lab, site: &Site, backbone: &Backbone) -> Result<()> {
    let announced = site.exported_routes(lab)?;
    let nets: Vec<&str> = announced
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let delegated = announced
        .lines()
        .filter(|line| line.starts_with("2001:db8:4"));
    ensure!(
        nets.len() == 3 && delegated.count() == 1,
        "a block of addresses, of prefixes and of delegated prefixes: {announced}"
    );
    for router in &backbone.routers {
        wait("the subscribers' nets", MEETING, || {
            let frr = router.daemons()?;
            let has = frr.ask("show ip route")? + &frr.ask("show ipv6 route")?;
            let missing = nets.iter().find(|net| !has.contains(**net));
            Ok(missing.map(|net| format!("{} has no route to {net}: {has}", router.name())))
        })?;
    }
    Ok(())
}

/// Both routers get flows, and nothing is lost.
fn spread(backbone: &Backbone, network: &AccessNetwork) -> Result<()> {
    let passed = || -> Result<[u64; 2]> {
        let [one, two] = &backbone.routers;
        Ok([one.passed_on()?, two.passed_on()?])
    };
    let before = passed()?;
    let lossless = lossless(network, || {
        sleep(Duration::from_secs(2));
        Ok(())
    });
    lossless.context("by two routers")?;
    let now = passed()?;
    let shares = [now[0] - before[0], now[1] - before[1]];
    println!("        the two routers passed on {shares:?} packets");
    ensure!(
        shares.iter().all(|share| share * 5 > shares[0] + shares[1]),
        "flows are not spread: {shares:?}"
    );
    Ok(())
}

/// Lets something happen under traffic, of which nothing may be lost.
fn lossless(network: &AccessNetwork, happens: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = network.hush();
    network.speak();
    happens()?;
    let now = network.hush();
    network.speak();
    let (sent, arrived) = (now.0 - before.0, now.1 - before.1);
    ensure!(
        sent > 0 && sent == arrived,
        "{} of {sent} packets were lost",
        sent - arrived
    );
    Ok(())
}

/// The forwarding table has what zebra says, once it has settled.
fn same(site: &Site, backbone: &Backbone) -> Result<()> {
    wait("the gateway to have what FRR says", MEETING, || {
        let theirs = match of_zebra(&backbone.gateway, &["bgp", "ospf", "ospf6"]) {
            Ok(theirs) => theirs,
            Err(error) => return Ok(Some(error.to_string())), // it is at it
        };
        Ok(difference(&of_gateway(&site.routes()?)?, &theirs))
    })
}

/// Routes come and go at both routers while homes talk.
fn flap(site: &Site, backbone: &Backbone, network: &AccessNetwork) -> Result<()> {
    let lines = |verb: &str, every: u32| -> String {
        let some = (0..FLAPPING).filter(|n| n % every == 0);
        let line = |n: u32| match n % 4 {
            0 => format!(
                "route {verb} 2001:db8:{:x}:{n:x}::/64 dev lo\n",
                0x4000 + n % 7
            ),
            _ => format!(
                "route {verb} {}.{}.{}.0/24 dev lo\n",
                20 + n % 60,
                n >> 8,
                n & 255
            ),
        };
        some.map(line).collect()
    };
    // Tables that become large for the first time take a moment, in which BFD may lose its patience.
    for router in &backbone.routers {
        router.batch(&lines("add", 1))?;
    }
    same(site, backbone)?;
    for net in ["0.0.0.0/0", "::/0", &host_v4(), &host_v6()] {
        wait_hops(site, net, 2)?;
    }
    let begun = Instant::now();
    let flapping = lossless(network, || {
        for round in 1..=ROUNDS {
            // One router withdraws a part of what the other one has, while the other one adds and withdraws.
            backbone.routers[0].batch(&lines("del", 2))?;
            backbone.routers[1].batch(&lines("del", 3))?;
            sleep(Duration::from_secs(1));
            for (router, every) in [(0, 1), (1, 1 + round % 2)] {
                backbone.routers[router].batch(&lines("add", every))?;
            }
        }
        Ok(())
    });
    flapping.context("while routes flapped")?;
    same(site, backbone)?;
    let routes = of_gateway(&site.routes()?)?.len();
    ensure!(routes > FLAPPING as usize / 2, "only {routes} routes");
    println!(
        "        {routes} routes by neighbours after {ROUNDS} rounds of flapping in {:.1?}, {} overruns",
        begun.elapsed(),
        site.drops()?.count("netlink-overrun")?
    );
    for router in &backbone.routers {
        router.batch(&lines("del", 1))?;
    }
    same(site, backbone)?;
    site.sluice().ledger().map(drop)
}

/// A router dies: the other one gets everything.
fn die(site: &Site, backbone: &mut Backbone, network: &AccessNetwork) -> Result<()> {
    let before = network.hush();
    network.speak();
    sleep(Duration::from_millis(500));
    let [one, _] = &mut backbone.routers;
    let died = Instant::now();
    one.netns.ip("link set core down")?;
    if let Some(frr) = &mut one.frr {
        frr.kill()?;
    }
    for net in ["0.0.0.0/0", &host_v4(), &host_v6()] {
        wait_hops(site, net, 1)?;
    }
    let cut = died.elapsed();
    let heard = network.hear_all(MEETING)?;
    let after = network.hush();
    network.speak();
    let (sent, arrived) = (after.0 - before.0, after.1 - before.1);
    println!(
        "        a router died: nothing leads there after {cut:.2?}, every home was heard of {heard:.2?} later; {} of {sent} packets were lost",
        sent - arrived
    );
    ensure!(sent > arrived, "no packet was lost: did it have any?");
    noticed_by_bfd(backbone)?;
    let lossless = lossless(network, || {
        sleep(Duration::from_secs(1));
        Ok(())
    });
    lossless.context("by the router that is left")
}

/// The gateway's FRR gave the first router up because of BFD, not because BGP's hold time was over.
fn noticed_by_bfd(backbone: &Backbone) -> Result<()> {
    let first = &backbone.routers[0];
    for address in [IpAddr::from(first.v4()), first.v6().into()] {
        let command = format!("show bgp neighbors {address} json");
        let said: Value = backbone.gateway.show(&command)?;
        let neighbour = said[address.to_string()].as_object();
        let neighbour = neighbour.with_context(|| format!("no neighbour: {said}"))?;
        let last = neighbour.iter().filter(|(key, _)| key.starts_with("last"));
        let why = last.map(|(key, value)| format!("{key}: {value}"));
        let why = why.collect::<Vec<_>>().join(", ");
        ensure!(
            why.contains("BFD"),
            "{address} was not given up because of BFD: {why}"
        );
    }
    Ok(())
}

pub fn ospf(fixture: &mut Fixture) -> Result<()> {
    with_site(fixture, "frr-ospf", |lab, site| {
        let daemons = ["ospfd", "ospf6d"];
        let [_, gateway] = of_how_to()?;
        let backbone = Backbone::build(lab, &daemons, &gateway, router_by_ospf)?;
        let done = ospf_with(lab, site, &backbone);
        let done = done.with_context(|| backbone.tails());
        backbone.close().and(done)
    })
}

fn ospf_with(lab: &Lab, site: &mut Site, backbone: &Backbone) -> Result<()> {
    for net in ["0.0.0.0/0", "::/0", &host_v4(), &host_v6()] {
        wait_hops(site, net, 2)?;
    }
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(MEETING)?;
    learned(lab, site, backbone)?;
    spread(backbone, &network)?;
    same(site, backbone)?;
    site.sluice().ledger()?;
    network.hang_up(MEETING)?;
    site.wait_empty(MEETING)
}

fn host_v4() -> String {
    format!("{INTERNET_V4}/32")
}

fn host_v6() -> String {
    format!("{INTERNET_V6}/128")
}

/// Waits until a route has so many next hops, all resolved.
fn wait_hops(site: &Site, net: &str, count: usize) -> Result<()> {
    wait(&format!("{net} by {count} routers"), MEETING, || {
        let routes = site.routes()?;
        let route = routes.iter().find(|route| route.prefix == net);
        let hops = route.map_or(0, |route| {
            let further = route.further.iter().filter(|hop| hop.mac.is_some());
            usize::from(route.mac.is_some()) + further.count()
        });
        Ok((hops != count).then(|| format!("{route:?}")))
    })
}

/// Waits until nothing is wrong any more.
pub(super) fn wait(
    what: &str,
    limit: Duration,
    mut wrong: impl FnMut() -> Result<Option<String>>,
) -> Result<()> {
    let start = Instant::now();
    while let Some(wrong) = wrong()? {
        ensure!(
            start.elapsed() < limit,
            "waited {limit:?} for {what}: {wrong}"
        );
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The gateway's configurations as the how-to has them: for BGP and for OSPF.
pub(super) fn of_how_to() -> Result<[String; 2]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/frr.md");
    let text = std::fs::read_to_string(page)?;
    let blocks = text.split("```frr\n").skip(1);
    let blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned()));
    let blocks: Vec<String> = blocks.collect();
    let count = blocks.len();
    blocks
        .try_into()
        .ok()
        .with_context(|| format!("{count} configurations of two"))
}

/// A neighbour of a router.
fn neighbour(address: &str) -> String {
    format!(
        " neighbor {address} remote-as {GATEWAY_AS}
 neighbor {address} timers 3 9
 neighbor {address} timers connect 1
 neighbor {address} bfd
"
    )
}

/// A router gives a default route and whatever is in its kernel.
pub(super) fn router_by_bgp(router: &Router) -> String {
    let (four, six) = (UP.core_v4().to_string(), UP.core_v6().to_string());
    let family = |family: &str, address: &str| {
        format!(
            " address-family {family} unicast
  redistribute kernel
  neighbor {address} activate
  neighbor {address} default-originate
 exit-address-family
"
        )
    };
    format!(
        "router bgp {CORE_AS}
 bgp router-id {}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
{}{}{}{}exit
",
        router.v4(),
        neighbour(&four),
        neighbour(&six),
        family("ipv4", &four),
        family("ipv6", &six),
    )
}

/// A router gives a default route and whatever is in its kernel.
fn router_by_ospf(router: &Router) -> String {
    let id = router.v4();
    format!(
        "interface core
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ipv6 ospf6 area 0
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
exit
router ospf
 ospf router-id {id}
 timers throttle spf 10 100 1000
 default-information originate always
 redistribute kernel
exit
router ospf6
 ospf6 router-id {id}
 timers throttle spf 10 100 1000
 default-information originate always
 redistribute kernel
exit
"
    )
}
