use crate::access_network::AccessNetwork;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::leak_check::left;
use crate::site::{Setup, Site};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 40;
/// Routes that a predecessor could have left behind.
const STRAYS: [(&str, &str); 2] = [("-4", "100.99.0.0/24"), ("-6", "2001:db8:99::/56")];

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    site.sluice().ledger()?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    let ledger = site.sluice().ledger()?;
    let homes = u64::from(HOMES);
    for (kind, held) in [
        ("address", 2 * homes),
        ("PPPoE session id", homes),
        ("TEID", homes),
        ("forwarding entry", homes),
        ("host route", 2 * homes),
        ("kernel route", 2),
    ] {
        ensure!(ledger.held(kind) == held, "{kind}: not {held}: {ledger:#?}");
    }

    strays(lab, site)?;
    let (homes, _) = network.hang_up(PATIENCE)?;
    ensure!(
        homes.ends.is_empty(),
        "a repair ended sessions: {:?}",
        homes.ends
    );
    site.wait_empty(PATIENCE)?;
    let emptied = Instant::now();
    loop {
        let ledger = site.sluice().ledger()?;
        if left(&ledger).is_empty() {
            return Ok(());
        }
        // after a case in which the control plane came back, nets stay until it has had its time to tell them again
        ensure!(emptied.elapsed() < PATIENCE, "left: {:#?}", left(&ledger));
        sleep(Duration::from_millis(500));
    }
}

/// What has no owner is found, told and taken away; what has one stays.
fn strays(lab: &Lab, site: &Site) -> Result<()> {
    let netns = lab.netns(Place::UserPlane(UserPlane::One));
    for (family, net) in STRAYS {
        netns.run(&[
            "ip",
            family,
            "route",
            "add",
            net,
            "dev",
            "sl-default",
            "proto",
            "96",
        ])?;
    }
    let told = site.sluice().run(&["check", "--ledger"]);
    let told = told
        .err()
        .context("two routes without an owner were not found")?;
    ensure!(
        told.to_string().contains("--repair"),
        "not what to do: {told}"
    );
    let repaired = site.sluice().run(&["check", "--ledger", "--repair"])?;
    let routes = site.exported_routes(lab)?;
    for (_, net) in STRAYS {
        let line = format!("kernel route {net}");
        let said = repaired.lines().find(|told| told.contains(&line));
        ensure!(
            said.is_some_and(|told| told.ends_with("(repaired)")),
            "{repaired}"
        );
        ensure!(!routes.contains(net), "still there: {routes}");
    }
    site.sluice().ledger().map(drop)
}
