use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{CONFIGURED_AS, Setup, Site};
use anyhow::{Result, ensure};
use lab::topology::{ACCESS_PORT, INTERNET_V4, INTERNET_V6};
use serde::Deserialize;

/// What `sluice show workers` says of a worker.
#[derive(Debug, Deserialize)]
struct Worker {
    number: u32,
    busy_cycles: u64,
    bursts: u64,
    rx_packets: u64,
    handed_over: u64,
    taken_over: u64,
}

/// AF_XDP on a veth has one queue: worker 0 receives and sends everything, and worker 1 has the sessions with odd ids.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let setup = Setup {
        workers: 2,
        ..Setup::default()
    };
    let stage = fixture.stage(&setup)?;
    let numbers = [7, 8, 9, 10];
    let homes = numbers.map(|n| Home::build(stage.vm, n));
    let homes = homes.into_iter().collect::<Result<Vec<_>>>()?;
    let mut local = Vec::new();
    for home in &homes {
        local.push(home.dial("alice", "wonderland")?.local);
    }
    let both = |site: &Site| -> Result<[u64; 2]> {
        let mut sessions = [0, 0];
        for session in site.sessions()? {
            sessions[session.pppoe_session_id as usize % 2] += 1;
        }
        Ok(sessions)
    };
    let sessions = both(stage.site)?;
    ensure!(
        sessions.iter().all(|n| *n > 0),
        "each worker was to have a session: {sessions:?}"
    );
    let talk = || -> Result<()> {
        for (home, next) in homes.iter().zip(local.iter().cycle().skip(1)) {
            home.ping(&INTERNET_V4.to_string(), 3)?;
            home.ping(&INTERNET_V6.to_string(), 3)?;
            // To the neighbour, who may be the other worker's.
            home.ping(&next.to_string(), 3)?;
        }
        Ok(())
    };
    let have_sent = |packets: u64| -> Result<()> {
        for number in numbers {
            let traffic = stage.site.session_of(number)?.traffic.unwrap_or_default();
            ensure!(
                traffic.up_packets >= packets && traffic.down_packets >= packets,
                "home {number}: {traffic:?}"
            );
        }
        Ok(())
    };
    for home in &homes {
        home.wait_ipv6()?;
    }
    talk()?;
    have_sent(12)?;
    let told: Vec<Worker> =
        serde_json::from_str(&stage.site.sluice().run(&["show", "workers", "--json"])?)?;
    for worker in &told {
        println!("        {worker:?}");
    }
    let [first, second] = &told[..] else {
        anyhow::bail!("{} workers are shown", told.len());
    };
    ensure!(
        (first.number, second.number) == (0, 1) && first.bursts > 0 && second.busy_cycles > 0,
        "{told:?}"
    );
    ensure!(
        second.rx_packets == 0
            && second.taken_over > 0
            && second.handed_over > 0
            && first.taken_over > 0,
        "worker 1 was to work for worker 0 and to send by its queues: {told:?}"
    );
    // All sessions go to one worker, to the other one, and back, while the homes talk to each other.
    let name = format!("{CONFIGURED_AS}/{ACCESS_PORT}/all");
    for worker in ["1", "0", "1"] {
        let moved = stage
            .site
            .sluice()
            .run(&["move", "aggregate", &name, "--worker", worker])?;
        println!("        {}", moved.trim());
        talk()?;
    }
    have_sent(48)?;
    stage.site.sluice().ledger().map(drop)?;
    let drops = stage.site.drops()?;
    ensure!(
        drops.count("hand-over-full")? == 0,
        "packets were lost between workers"
    );
    for home in &homes {
        home.hang_up()?;
    }
    stage.site.wait_empty(PATIENCE)?;
    stage.site.sluice().ledger().map(drop)
}
