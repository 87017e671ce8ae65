use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::scenario::{Crowd, Scenario};
use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use northbound::DropCounter;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 10;
/// Packets a second of all homes: each is sent 240 a second of some 100 octets, and sends 160.
const TRAFFIC: u32 = 4000;
/// A setting, its value in kbit/s, and the counter of packets above it. A home is sent some 200 kbit/s; what waits for the port's rate
/// has left in a few seconds.
const LIMITS: [(&str, &str, &str); 3] = [
    (
        "subscriber-profiles home rate-down",
        "8",
        "rate-exceeded-down",
    ),
    ("subscriber-profiles home rate-up", "8", "rate-exceeded-up"),
    (
        "user-planes up1 ports core0 egress-rate",
        "80",
        "egress-queue-full",
    ),
];

/// The most packets of the gateway itself that a full queue of a port drops meanwhile.
const OWN: u64 = 3;

/// Packets above a rate are lost, all others arrive, and whatever is lost is counted by its name; as long as the rate is there, also
/// when a daemon died meanwhile.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let mut crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let sluice = Sluice::of(lab);
    for (setting, rate, counter) in LIMITS {
        let none = lost(&mut crowd, counter, &sluice, |_| Ok(true))?;
        ensure!(none == (0, 0), "without {setting}: {none:?} are lost");
        sluice.configure(&format!("set {setting} {rate}"))?;
        let (lost_now, dropped) = lost(&mut crowd, counter, &sluice, |n| Ok(n > 100))?;
        println!("        {setting} {rate}: {lost_now} packets lost, {dropped} {counter}");
        ensure!(
            is_all(counter, lost_now, dropped),
            "{setting}: {lost_now} packets are lost, {dropped} are {counter}"
        );
        scenario.gateway.kill(Daemon::ControlPlane)?;
        scenario
            .gateway
            .wait_ready(Daemon::ControlPlane, PATIENCE)?;
        let (lost_now, dropped) = lost(&mut crowd, counter, &sluice, |n| Ok(n > 100))?;
        ensure!(
            is_all(counter, lost_now, dropped),
            "after a restart: {lost_now}, {dropped}"
        );
        sluice.configure(&format!("delete {setting}"))?;
        // what waits for the rate leaves
        crowd.hush();
        crowd.speak();
    }
    crowd.check()?;
    sluice.ledger()?;
    crowd.hang_up(&scenario, PATIENCE)?;
    scenario.close()
}

/// Whether as many packets of homes are lost as were dropped. What the gateway itself sends, such as ARP and neighbour discovery, leaves by
/// the port too, and waits in its queue.
pub(super) fn is_all(counter: &str, lost: u64, dropped: u64) -> bool {
    let own = match counter {
        "egress-queue-full" => OWN,
        _ => 0,
    };
    (lost..=lost + own).contains(&dropped)
}

/// Lets homes talk for a second at least, and until enough was dropped; how many packets were lost, and how many were dropped with this
/// counter.
pub(super) fn lost(
    crowd: &mut Crowd,
    counter: &str,
    sluice: &Sluice,
    is_enough: impl Fn(u64) -> Result<bool>,
) -> Result<(u64, u64)> {
    let (before, dropped) = (crowd.hush(), count(sluice, counter)?);
    crowd.speak();
    let begun = Instant::now();
    sleep(Duration::from_secs(1));
    while !is_enough(count(sluice, counter)? - dropped)? {
        ensure!(begun.elapsed() < PATIENCE, "nothing is {counter}");
        sleep(Duration::from_millis(200));
    }
    let after = crowd.hush();
    let lost = (0..2).map(|up| after[up].since(&before[up]).1).sum();
    let dropped = count(sluice, counter)? - dropped;
    crowd.speak();
    Ok((lost, dropped))
}

/// How many packets were dropped for a reason, at both user planes.
pub(super) fn count(sluice: &Sluice, reason: &str) -> Result<u64> {
    let text = sluice.run(&["show", "drops", "--json"])?;
    let drops: Vec<DropCounter> =
        serde_json::from_str(&text).with_context(|| format!("not drops: {text}"))?;
    let of = drops.iter().filter(|drop| drop.name == reason);
    Ok(of.map(|drop| drop.count).sum())
}
