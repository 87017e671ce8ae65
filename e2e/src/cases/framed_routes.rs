use crate::fixture::{Fixture, Stage};
use crate::frr::Frr;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::radius::{ALONE, SECRET, radclient};
use crate::site::{Setup, UP, daemon, join_core};
use anyhow::{Context, Result, bail, ensure};
use lab::process::Process;
use lab::topology::{CP_MANAGEMENT_V4, INTERNET_V4, INTERNET_V6, Place};
use nix::sys::signal::Signal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What RADIUS gives erin, outside of the pools: an address, the prefixes of the link, and the networks behind the router.
const OWN: &str = "198.18.7.1";
const NETWORK_V4: &str = "198.18.7.0/29";
const NETWORK_V6: &str = "2001:db8:77::/48";
const LINKS: [&str; 2] = ["2001:db8:78:1::/64", "2001:db8:78:2::/64"];
/// Metric of the networks, and the one that a change of authorization gives them.
const METRIC: u32 = 7;
const CHANGED: u32 = 9;
/// Machines behind the router, and one that claims to be behind it.
const BEHIND: [&str; 2] = ["198.18.7.2", "2001:db8:77:1::2"];
const NOT_BEHIND: &str = "198.18.7.9";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let mut stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    let granted = home.dial("erin", "router")?;
    ensure!(granted.local.to_string() == OWN, "{granted:?}");
    home.wait_ipv6()?;
    let router = Frr::start(
        stage.lab,
        stage.lab.netns(Place::UserPlane(UP)),
        "gateway",
        &[],
        "",
    )?;
    home.must(&format!(
        "for a in {} {} {NOT_BEHIND}; do ip addr add $a dev lo; done",
        BEHIND[0], BEHIND[1]
    ))?;
    announced(&mut stage, Some(METRIC))?;
    behind(&stage, &home)?;
    from_each_prefix(&stage, &home)?;
    shown(&stage, METRIC)?;
    not_behind(&mut stage, &home)?;
    seen_by(&router, METRIC)?;
    changed(&mut stage)?;
    seen_by(&router, CHANGED)?;
    router.stop()?;
    behind(&stage, &home)?;
    shown(&stage, CHANGED)?;

    // Neither plane forgets them when it dies.
    let session = stage.site.session_of(7)?.id;
    kill(&mut stage.site.cp)?;
    behind(&stage, &home)?;
    stage.site.cp = daemon(
        stage.lab,
        Place::ControlPlane,
        "sluice-cp",
        &file(&stage, "cp.yaml"),
    )?;
    announced(&mut stage, Some(CHANGED))?;
    kill(&mut stage.site.up)?;
    stage.site.up = daemon(
        stage.lab,
        Place::UserPlane(UP),
        "sluice-up",
        &file(&stage, "up.yaml"),
    )?;
    join_core(stage.lab, &mut stage.site.up)?;
    announced(&mut stage, Some(CHANGED))?;
    behind(&stage, &home)?;
    from_each_prefix(&stage, &home)?;
    let now = stage.site.session_of(7)?.id;
    ensure!(now == session, "another session: {now}, before {session}");

    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    announced(&mut stage, None)?;
    recorded(&mut stage)
}

fn kill(daemon: &mut Process) -> Result<()> {
    daemon.signal(Signal::SIGKILL)?;
    daemon.stop()
}

fn file(stage: &Stage<'_>, name: &str) -> PathBuf {
    stage.lab.dir().join(name)
}

/// The kernel of the user plane has a route to each, those to networks with this metric, for routing protocols; or to none any more.
fn announced(stage: &mut Stage<'_>, metric: Option<u32>) -> Result<()> {
    let lab = stage.lab;
    stage
        .site
        .wait_for("erin's routes are as they should be", PATIENCE, |site| {
            let routes = site.exported_routes(lab)?;
            let to = |net: &str| -> Vec<&str> {
                let begins = format!("{net} ");
                let lines = routes.lines();
                lines.filter(|line| line.starts_with(&begins)).collect()
            };
            let nets = [OWN, LINKS[0], LINKS[1]];
            let own = nets
                .iter()
                .all(|net| to(net).len() == usize::from(metric.is_some()));
            let has = |net: &str| match metric {
                None => to(net).is_empty(),
                Some(metric) => {
                    let said = format!("metric {metric} ");
                    to(net).len() == 1
                        && to(net)
                            .iter()
                            .all(|line| format!("{line} ").contains(&said))
                }
            };
            Ok(own && has(NETWORK_V4) && has(NETWORK_V6))
        })
}

/// FRR has the metric of the kernel's routes.
fn seen_by(router: &Frr, metric: u32) -> Result<()> {
    for (family, net) in [("ip", NETWORK_V4), ("ipv6", NETWORK_V6)] {
        let routes: serde_json::Value = router.show(&format!("show {family} route {net} json"))?;
        let all = routes[net].as_array().map_or(&[][..], Vec::as_slice);
        let metrics: Vec<u64> = all.iter().filter_map(|r| r["metric"].as_u64()).collect();
        ensure!(metrics == [u64::from(metric)], "{net}: {routes:#}");
    }
    Ok(())
}

/// Another metric is carried out live, and the kernel has a route all the while.
fn changed(stage: &mut Stage<'_>) -> Result<()> {
    let lab = stage.lab;
    let client = "set aaa dynamic-authorization clients radclient";
    let address = IpAddr::from(CP_MANAGEMENT_V4);
    stage.site.sluice().configure(&format!(
        "{client} address {address}\n{client} secret-key {SECRET}"
    ))?;
    let mut watch = lab.netns(Place::UserPlane(UP)).command("ip");
    watch.args(["-o", "monitor", "route"]);
    let mut watch = Process::spawn(lab.dir(), "route-monitor", watch)?;
    let request = format!(
        "User-Name = erin, Framed-IPv6-Prefix = {}, Framed-Route = \"{NETWORK_V4} 0.0.0.0 {CHANGED}\", \
         Framed-IPv6-Route = \"{NETWORK_V6} :: {CHANGED}\"",
        LINKS[1]
    );
    let said = radclient(lab, address, "coa", SECRET, &request, PATIENCE)?;
    ensure!(said.contains("Received CoA-ACK"), "{said}");
    announced(stage, Some(CHANGED))?;
    let seen = |log: &Path| -> Result<Vec<String>> {
        let text = std::fs::read_to_string(log)?;
        let of_ours = |line: &&str| line.contains("proto 96");
        Ok(text.lines().filter(of_ours).map(str::to_owned).collect())
    };
    let log = watch.log().to_owned();
    watch.wait_until("both changes", PATIENCE, || {
        seen(&log).is_ok_and(|lines| lines.len() >= 4)
    })?;
    let lines = seen(&log)?;
    watch.stop()?;
    for net in [NETWORK_V4, NETWORK_V6] {
        let about: Vec<&String> = lines.iter().filter(|line| line.contains(net)).collect();
        let [new, old] = &about[..] else {
            bail!("not one route more and one less: {lines:#?}");
        };
        let metrics = [(new, CHANGED), (old, METRIC)];
        let has = |(line, metric): (&&String, u32)| line.contains(&format!("metric {metric}"));
        ensure!(
            metrics.map(|(line, metric)| has((line, metric))) == [true; 2],
            "{about:#?}"
        );
        ensure!(
            !new.contains("Deleted") && old.contains("Deleted"),
            "{about:#?}"
        );
    }
    Ok(())
}

/// The home has an address in each prefix of its link, and both reach the internet and are reached.
fn from_each_prefix(stage: &Stage<'_>, home: &Home<'_>) -> Result<()> {
    for prefix in LINKS {
        let network = prefix.trim_end_matches(":/64");
        let shown = home.must(&format!(
            "for i in $(seq 100); do ip -6 -o addr show dev ppp0 scope global | grep {network} && exit 0; usleep 100000; done; \
             exit 1"
        ))?;
        let words = shown.split_whitespace();
        let address = words.skip_while(|word| *word != "inet6").nth(1);
        let address = address.and_then(|word| word.split('/').next());
        let address = address.with_context(|| format!("no address in {prefix}: {shown}"))?;
        both_ways(stage, home, address, &INTERNET_V6.to_string())?;
    }
    Ok(())
}

/// RADIUS has heard of both prefixes and of both metrics.
fn recorded(stage: &mut Stage<'_>) -> Result<()> {
    let detail = ALONE.detail(stage.lab);
    let wanted = [
        format!("Framed-IPv6-Prefix = {}", LINKS[0]),
        format!("Framed-IPv6-Prefix = {}", LINKS[1]),
        format!("Framed-Route = \"{NETWORK_V4} 0.0.0.0 {METRIC}\""),
        format!("Framed-IPv6-Route = \"{NETWORK_V6} :: {CHANGED}\""),
    ];
    stage
        .site
        .wait_for("the accounting records", PATIENCE, |_| {
            let text = std::fs::read_to_string(&detail)?;
            Ok(wanted.iter().all(|said| text.contains(said)))
        })
}

/// Machines behind the router reach the internet, and it reaches them.
fn behind(stage: &Stage<'_>, home: &Home<'_>) -> Result<()> {
    both_ways(stage, home, BEHIND[0], &INTERNET_V4.to_string())?;
    both_ways(stage, home, BEHIND[1], &INTERNET_V6.to_string())
}

fn both_ways(stage: &Stage<'_>, home: &Home<'_>, from: &str, to: &str) -> Result<()> {
    let limit = PATIENCE.as_secs().to_string();
    // The first packets may be lost: they wait for neighbours.
    home.must(&format!(
        "for n in $(seq 20); do ping -c 3 -W 1 -I {from} {to} | grep ' 0% packet loss' && exit 0; done; exit 1"
    ))
    .with_context(|| format!("from {from} to {to}"))?;
    let internet = stage.lab.netns(Place::Internet);
    internet
        .run(&["ping", "-c", "3", "-i", "0.2", "-w", &limit, from])
        .with_context(|| format!("from the internet to {from}"))?;
    Ok(())
}

/// An address that is not routed to the subscriber is no source of its.
fn not_behind(stage: &mut Stage<'_>, home: &Home<'_>) -> Result<()> {
    let spoofed = "spoofed-source-v4";
    let before = stage.site.drops()?.count(spoofed)?;
    let ping = format!("ping -c 3 -W 1 -I {NOT_BEHIND} {INTERNET_V4}");
    home.run(&ping, PATIENCE)?;
    stage
        .site
        .wait_for("its packets among spoofed-source-v4", PATIENCE, |site| {
            Ok(site.drops()?.count(spoofed)? == before + 3)
        })
}

/// People see what is routed to whom, and find the subscriber by a machine behind its router.
fn shown(stage: &Stage<'_>, metric: u32) -> Result<()> {
    let session = stage.site.session_of(7)?;
    let networks = [NETWORK_V4, NETWORK_V6].map(|net| format!("{net} metric {metric}"));
    let routes = [&[LINKS[1].to_owned()][..], &networks].concat();
    ensure!(session.routes == routes, "{:?}", session.routes);
    let sluice = stage.site.sluice();
    for address in [BEHIND[0], BEHIND[1], "2001:db8:78:2::5"] {
        let said = sluice.run(&["explain", address])?;
        ensure!(
            said.contains("erin") && said.contains(&routes.join(" and ")),
            "`explain {address}` does not find the subscriber:\n{said}"
        );
    }
    sluice.ledger().map(drop)
}
