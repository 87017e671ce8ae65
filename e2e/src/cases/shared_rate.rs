use super::policies::change;
use crate::access_network::AccessNetwork;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::SECRET;
use crate::site::{CONFIGURED_AS, Setup, Site};
use anyhow::{Context, Result, ensure};
use lab::topology::{ACCESS_PORT, CP_MANAGEMENT_V4};
use serde::Deserialize;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 8;
/// Rate of the access port in kbit/s: less than half of what all homes are sent.
const RATE: u32 = 40;
/// Weight of the homes that have more.
const WEIGHT: f64 = 3.0;
/// What waits for an earlier share has left.
const SETTLED: Duration = Duration::from_secs(5);
/// A home is sent some 100 packets meanwhile.
const LONG: Duration = Duration::from_secs(10);

/// The homes of two workers share the rate of their port: by weight, whichever worker has them; what those of one worker do not want, the
/// others have. The rate of a segment is each worker's, until all of its sessions are at one.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let setup = Setup {
        workers: 2,
        ..Setup::default()
    };
    let (lab, site) = fixture.site(&setup)?;
    let client = "set aaa dynamic-authorization clients tests";
    let policy = |name, weight| {
        format!(
            "set policies {name} above-rate wait
set policies {name} queue limit 2000
set policies {name} queue target-delay 0
set policies {name} weight {weight}"
        )
    };
    site.sluice().configure(&format!(
        "{client} address {CP_MANAGEMENT_V4}
{client} secret-key {SECRET}
{}
{}
set acls closed rules 10 deny ip from any to any
set policies closed acls closed
set subscriber-profiles standard policy-down light
set user-planes {CONFIGURED_AS} ports {ACCESS_PORT} egress-rate {RATE}",
        policy("light", 1.0),
        policy("heavy", WEIGHT)
    ))?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    let homes = Workers::of(site)?;

    let [first, second] = homes.rates(&network);
    let (equal, both) = (first / second, first + second);
    println!("        {RATE} kbit/s of the port: {first:.1} and {second:.1} of IP at each worker");
    ensure!((0.75..1.33).contains(&equal), "{first} and {second} kbit/s");

    change(lab, &homes.ids[1], "Filter-Id = heavy.out")?;
    let [first, second] = homes.rates(&network);
    println!("        weights 1 and {WEIGHT}: {first:.1} and {second:.1}");
    let is_weight = (WEIGHT * 0.7..WEIGHT * 1.4).contains(&(second / first));
    ensure!(is_weight, "{first} and {second} kbit/s");

    change(lab, &homes.ids[1], "Filter-Id = closed.out")?;
    let [first, second] = homes.rates(&network);
    println!("        nothing for the homes of the second: {first:.1} and {second:.1}");
    let is_rest = second < both * 0.05 && first > both * 0.75;
    ensure!(is_rest, "{first} and {second} kbit/s of {both}");

    change(lab, &homes.ids[1], "Filter-Id = light.out")?;
    let port = format!("user-planes {CONFIGURED_AS} ports {ACCESS_PORT}");
    site.sluice().configure(&format!(
        "delete {port} egress-rate
set {port} segments all egress-rate {RATE}"
    ))?;
    let [first, second] = homes.rates(&network);
    println!(
        "        the rate of the segment, with sessions at both workers: {first:.1} and {second:.1}"
    );
    let is_twice = (1.5..2.5).contains(&((first + second) / both));
    ensure!(is_twice, "{first} and {second} kbit/s of twice {both}");

    let name = format!("{CONFIGURED_AS}/{ACCESS_PORT}/all");
    let is_told = |site: &Site| -> Result<bool> {
        let alarms = site.sluice().run(&["show", "alarms"])?;
        Ok(alarms.contains("aggregate-split") && alarms.contains(&name))
    };
    site.wait_for("the alarm", PATIENCE, |site| is_told(site))?;
    let ensure_kept = |first: f64, second: f64| -> Result<()> {
        let (is_one, equal) = ((first + second) / both, first / second);
        ensure!(
            (0.8..1.2).contains(&is_one) && (0.75..1.33).contains(&equal),
            "{first} and {second} kbit/s of {both}"
        );
        Ok(())
    };
    let moved = ["move", "aggregate", &name, "--worker", "1"];
    println!("        {}", site.sluice().run(&moved)?.trim());
    let [first, second] = homes.rates(&network);
    println!("        the same at worker 1: {first:.1} and {second:.1}");
    ensure_kept(first, second)?;
    let is_at_one = |site: &mut Site| -> Result<bool> {
        let words = ["show", "qos", "aggregates", &name, "--json"];
        let told: Vec<Aggregate> = serde_json::from_str(&site.sluice().run(&words)?)?;
        Ok(matches!(
            told[..],
            [Aggregate {
                worker: Some(1),
                workers: 1
            }]
        ))
    };
    ensure!(is_at_one(site)?, "the segment is not at worker 1 alone");
    site.wait_for("no alarm", PATIENCE, |site| Ok(!is_told(site)?))?;

    site.restart_user_plane(lab)?;
    // Until the sessions are back, the user plane has no such segment, and the command says so and fails.
    site.wait_for("the segment at worker 1 again", PATIENCE, |site| {
        let all_back = site.sessions()?.len() == usize::from(HOMES);
        Ok(all_back && is_at_one(site).unwrap_or(false))
    })?;
    let [first, second] = homes.rates(&network);
    println!("        the same after the user plane was killed: {first:.1} and {second:.1}");
    ensure_kept(first, second)?;

    site.sluice()
        .configure(&format!("delete {port} segments all egress-rate"))?;
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    site.sluice().ledger().map(drop)
}

/// What `sluice show qos aggregates` says of the segment.
#[derive(Debug, Deserialize)]
struct Aggregate {
    worker: Option<u32>,
    workers: u32,
}

/// The homes of each worker.
struct Workers {
    /// Their sessions.
    ids: [Vec<String>; 2],
    /// Their numbers among all homes.
    numbers: [Vec<usize>; 2],
}

impl Workers {
    /// With two workers the last bit of a session id says whose the session is.
    fn of(site: &Site) -> Result<Self> {
        let mut workers = Workers {
            ids: Default::default(),
            numbers: Default::default(),
        };
        for session in site.sessions()? {
            let worker = session.pppoe_session_id as usize % 2;
            let line = session.c_tag.context("a home without a line")?;
            workers.numbers[worker].push(line as usize - 1);
            workers.ids[worker].push(session.id);
        }
        let half = usize::from(HOMES / 2);
        let counts = workers.ids.each_ref().map(Vec::len);
        ensure!(counts == [half; 2], "{counts:?} sessions at the workers");
        Ok(workers)
    }

    /// What the homes of each worker are sent, in kbit/s of IP.
    fn rates(&self, network: &AccessNetwork) -> [f64; 2] {
        sleep(SETTLED);
        let (before, begun) = (network.received(), Instant::now());
        sleep(LONG);
        let (after, took) = (network.received(), begun.elapsed());
        self.numbers.each_ref().map(|numbers| {
            let octets = numbers.iter().map(|home| after[*home] - before[*home]);
            octets.sum::<u64>() as f64 * 8.0 / 1000.0 / took.as_secs_f64()
        })
    }
}
