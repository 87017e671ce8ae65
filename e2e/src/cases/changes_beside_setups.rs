use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::leak_check::{complete_records, nothing_left};
use crate::radius::{SECRET, radclient};
use crate::scenario::{Crowd, Scenario};
use crate::silent_homes::SilentHomes;
use anyhow::{Context, Result, ensure};
use lab::topology::{CP_MANAGEMENT_V4, Lab};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Homes whose sessions RADIUS changes again and again.
const CHANGED: u32 = 200;
/// Changes of each run of radclient.
const CHANGES: u32 = 2_000;
/// Homes that connect at once beside them.
const HOMES: u16 = 2_000;
/// How often they do.
const ROUNDS: u16 = 5;

/// RADIUS changes sessions, some at a time, while 2,000 homes connect as fast as the machine lets them, and leave again. All of it
/// is done. How fast it was, is printed: daemons, homes, FreeRADIUS and radclient share the machine.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    guard::limit("changes beside set-ups");
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let sluice = Sluice::of(lab);
    let client = "set aaa dynamic-authorization clients tests";
    sluice.configure(&format!(
        "{client} address {CP_MANAGEMENT_V4}\n{client} secret-key {SECRET}"
    ))?;
    let silent = SilentHomes::dial(lab, "home9000", CHANGED)?;
    let sessions = scenario.gateway.sessions()?;
    let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
    ensure!(ids.len() == CHANGED as usize, "{} sessions", ids.len());

    let over = AtomicBool::new(false);
    let (changes, setups) = std::thread::scope(|scope| {
        let changes = scope.spawn(|| change(lab, &ids, &over));
        let setups = connect(lab, &scenario);
        over.store(true, Ordering::Relaxed);
        let changes = changes.join().expect("no panic");
        (changes, setups)
    });
    let (changes, setups) = (changes?, setups?);
    println!("        {changes:.0} changes acknowledged and {setups:.0} homes set up a second");
    silent.hang_up()?;
    nothing_left(lab, &scenario)?;
    let sessions = complete_records(lab, &scenario)?.sessions();
    let expected = CHANGED as usize + usize::from(HOMES) * usize::from(ROUNDS);
    ensure!(
        sessions == expected,
        "{sessions} sessions on record, not {expected}"
    );
    scenario.close()
}

/// Changes sessions until it is over; how many a second were acknowledged, of all that were asked for.
fn change(lab: &Lab, ids: &[String], over: &AtomicBool) -> Result<f64> {
    let (begin, mut done) = (Instant::now(), 0);
    while !over.load(Ordering::Relaxed) {
        let request = |n: u32| {
            let (id, mtu) = (
                &ids[n as usize % ids.len()],
                1400 + (done + n) / CHANGED % 90,
            );
            format!("Acct-Session-Id = \"{id}\", Framed-MTU = {mtu}\n")
        };
        let requests: Vec<String> = (0..CHANGES).map(request).collect();
        let to = CP_MANAGEMENT_V4.into();
        let said = radclient(lab, to, "coa", SECRET, &requests.join("\n"), PATIENCE)?;
        let acks = said.matches("Received CoA-ACK").count();
        ensure!(
            acks == CHANGES as usize,
            "{acks} of {CHANGES} changes are acknowledged"
        );
        done += CHANGES;
    }
    Ok(f64::from(done) / begin.elapsed().as_secs_f64())
}

/// Homes connect, all at once, and leave; how many a second came online while they did.
fn connect(lab: &Lab, scenario: &Scenario) -> Result<f64> {
    let mut took = Duration::ZERO;
    for round in 1..=ROUNDS {
        guard::limit("homes that connect");
        let crowd = Crowd::dial(lab, HOMES, u32::from(HOMES))?;
        took += crowd.wait_online(scenario, PATIENCE)?;
        crowd.check().with_context(|| format!("round {round}"))?;
        crowd.hang_up(scenario, PATIENCE)?;
    }
    Ok(f64::from(HOMES) * f64::from(ROUNDS) / took.as_secs_f64())
}
