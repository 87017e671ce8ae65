use crate::rig::Rig;
use crate::site::{Setup, Site};
use crate::street::Street;
use anyhow::{Context, Result, ensure};
use northbound::Ledger;
use sluice::lab::topology::{Lab, Place, UserPlane};
use std::time::Duration;

const HOMES: u16 = 40;
/// What is held as long as the planes are connected.
const STAYS: [&str; 8] = [
    "access port",
    "default session",
    "route",
    "resolved route",
    "next hop",
    "mirrored route",
    "mirrored neighbour",
    "device",
];
/// Routes that a predecessor could have left behind.
const STRAYS: [(&str, &str); 2] = [("-4", "100.99.0.0/24"), ("-6", "2001:db8:99::/56")];

pub fn run(rig: &mut Rig) -> Result<()> {
    let (lab, site) = rig.site(&Setup::default())?;
    balanced(site)?;
    let street = Street::dial(lab, HOMES)?;
    street.wait_online(Duration::from_secs(20))?;
    let ledger = balanced(site)?;
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
    let (homes, _) = street.hang_up(Duration::from_secs(20))?;
    ensure!(
        homes.ends.is_empty(),
        "a repair ended sessions: {:?}",
        homes.ends
    );
    site.wait_empty(Duration::from_secs(20))?;
    let ledger = balanced(site)?;
    let left = ledger.accounts.iter().filter(|a| a.booked + a.owned > 0);
    let left: Vec<_> = left.filter(|a| !STAYS.contains(&&*a.kind)).collect();
    ensure!(left.is_empty(), "something is left: {left:#?}");
    Ok(())
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
    let told = site.sluice(&["check", "--ledger"]);
    let told = told
        .err()
        .context("two routes without an owner were not found")?;
    ensure!(
        told.to_string().contains("--repair"),
        "not what to do: {told}"
    );
    let repaired = site.sluice(&["check", "--ledger", "--repair"])?;
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
    balanced(site).map(drop)
}

fn balanced(site: &Site) -> Result<Ledger> {
    let text = site.sluice(&["check", "--ledger", "--json"])?;
    serde_json::from_str(&text).with_context(|| format!("not a ledger: {text}"))
}
