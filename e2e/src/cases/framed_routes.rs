use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP, daemon, join_core};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{INTERNET_V4, INTERNET_V6, Place};
use nix::sys::signal::Signal;
use std::path::PathBuf;

/// What RADIUS gives erin, outside of the pools: an address, and the networks behind the router.
const OWN: &str = "198.18.7.1";
const NETWORK_V4: &str = "198.18.7.0/29";
const NETWORK_V6: &str = "2001:db8:77::/48";
/// Machines behind the router, and one that claims to be behind it.
const BEHIND: [&str; 2] = ["198.18.7.2", "2001:db8:77:1::2"];
const NOT_BEHIND: &str = "198.18.7.9";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let mut stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    let granted = home.dial("erin", "router")?;
    ensure!(granted.local.to_string() == OWN, "{granted:?}");
    home.wait_ipv6()?;
    home.must(&format!(
        "for a in {} {} {NOT_BEHIND}; do ip addr add $a dev lo; done",
        BEHIND[0], BEHIND[1]
    ))?;
    announced(&mut stage, true)?;
    behind(&stage, &home)?;
    shown(&stage)?;
    not_behind(&mut stage, &home)?;

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
    announced(&mut stage, true)?;
    kill(&mut stage.site.up)?;
    stage.site.up = daemon(
        stage.lab,
        Place::UserPlane(UP),
        "sluice-up",
        &file(&stage, "up.yaml"),
    )?;
    join_core(stage.lab, &mut stage.site.up)?;
    announced(&mut stage, true)?;
    behind(&stage, &home)?;
    let now = stage.site.session_of(7)?.id;
    ensure!(now == session, "another session: {now}, before {session}");

    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    announced(&mut stage, false)
}

fn kill(daemon: &mut Process) -> Result<()> {
    daemon.signal(Signal::SIGKILL)?;
    daemon.stop()
}

fn file(stage: &Stage<'_>, name: &str) -> PathBuf {
    stage.lab.dir().join(name)
}

/// The kernel of the user plane has a route to each, for routing protocols; or to none any more.
fn announced(stage: &mut Stage<'_>, wanted: bool) -> Result<()> {
    let lab = stage.lab;
    stage
        .site
        .wait_for("erin's routes are as they should be", PATIENCE, |site| {
            let routes = site.exported_routes(lab)?;
            let has = |net: &str| routes.lines().any(|line| line.starts_with(net));
            let nets = [OWN, NETWORK_V4, NETWORK_V6];
            Ok(nets.iter().all(|net| has(&format!("{net} ")) == wanted))
        })
}

/// Machines behind the router reach the internet, and it reaches them.
fn behind(stage: &Stage<'_>, home: &Home<'_>) -> Result<()> {
    let limit = PATIENCE.as_secs().to_string();
    for (from, to) in [
        (BEHIND[0], INTERNET_V4.to_string()),
        (BEHIND[1], INTERNET_V6.to_string()),
    ] {
        // The first packets may be lost: they wait for neighbours.
        home.must(&format!(
            "for n in $(seq 20); do ping -c 3 -W 1 -I {from} {to} | grep ' 0% packet loss' && exit 0; done; exit 1"
        ))
        .with_context(|| format!("from {from} to {to}"))?;
        let internet = stage.lab.netns(Place::Internet);
        internet
            .run(&["ping", "-c", "3", "-i", "0.2", "-w", &limit, from])
            .with_context(|| format!("from the internet to {from}"))?;
    }
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
fn shown(stage: &Stage<'_>) -> Result<()> {
    let session = stage.site.session_of(7)?;
    ensure!(
        session.routes == [NETWORK_V4, NETWORK_V6],
        "{:?}",
        session.routes
    );
    let sluice = stage.site.sluice();
    for address in BEHIND {
        let said = sluice.run(&["explain", address])?;
        ensure!(
            said.contains("erin") && said.contains(&format!("{NETWORK_V4} and {NETWORK_V6}")),
            "`explain {address}` does not find the subscriber:\n{said}"
        );
    }
    sluice.ledger().map(drop)
}
