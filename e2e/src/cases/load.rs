use crate::access_network::PASSWORD;
use crate::accounting::text;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::leak_check::{Footprint, complete_records, cpu_time, nothing_left};
use crate::load_tool::{LoadTool, Report, reflector};
use crate::scenario::Scenario;
use crate::site::UP;
use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::gateway::Gateway;
use lab::topology::Lab;
use northbound::{Session, SessionState};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u64 = 500;
/// Percent of the packets that a busy machine may lose.
const LOSS: f64 = 1.0;
/// Lines like those of other homes, under names that FreeRADIUS knows.
const LINES: &str = "--vlan 300-301.1-4000 --circuit-id olt1/%d:%s.%c";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let mut reflector = reflector(lab)?;
    let mut tool = LoadTool::start(
        lab,
        &format!(
            "--homes {HOMES} --rate 150 --duration 12 {LINES} --password {PASSWORD} --flap 10 --flap-off 1 \
             --delegation --reflector 198.51.100.2 --reflector 2001:db8:ffff::2 --max-loss {LOSS}"
        ),
    )?;
    tool.wait_said("running")?;
    let users = online(lab)?;
    // One home in ten may be away for its second.
    ensure!(
        (HOMES * 9 / 10..=HOMES).contains(&(users.len() as u64)),
        "{} users are online at the gateway",
        users.len()
    );
    let (passed, report) = tool.finish()?;
    ensure!(passed, "the exit status is not 0");
    reflector.stop()?;
    nothing_left(lab, &scenario)?;
    compare(lab, &scenario, &report)?;
    scenario.close()
}

/// Users who are online, as an operator sees them.
fn online(lab: &Lab) -> Result<BTreeSet<String>> {
    let text = Sluice::of(lab).run(&["show", "sessions", "--json"])?;
    let sessions: Vec<Session> = serde_json::from_str(&text)?;
    let online = sessions.into_iter();
    let online = online.filter(|s| s.state() == SessionState::Online);
    Ok(online.map(|session| session.user).collect())
}

/// What the tool says of sessions and packets is what the gateway has told FreeRADIUS.
fn compare(lab: &Lab, scenario: &Scenario, report: &Report) -> Result<()> {
    let records = complete_records(lab, scenario)?;
    let (set_ups, flaps) = (report.number("/set_ups/count")?, report.number("/flaps")?);
    ensure!(
        report.number("/online")? == HOMES && report.number("/failed")? == 0,
        "homes failed"
    );
    ensure!(
        report.number("/delegated")? == HOMES,
        "homes without a delegated prefix"
    );
    ensure!(
        flaps > 20 && set_ups == HOMES + flaps,
        "{set_ups} set-ups after {flaps} flaps"
    );
    ensure!(
        records.sessions() as u64 == set_ups,
        "FreeRADIUS knows {} sessions of {set_ups}",
        records.sessions()
    );
    let mut counted = [0; 2];
    for stop in records.stops() {
        for (sum, way) in counted.iter_mut().zip(["Input", "Output"]) {
            *sum += text(stop, &format!("Acct-{way}-Packets"))?.parse::<u64>()?;
        }
    }
    let of = |what: &str| -> Result<u64> {
        let families = ["ipv4", "ipv6"].map(|f| report.number(&format!("/traffic/{f}/{what}")));
        families.into_iter().sum()
    };
    let (packets, lost) = ([of("sent")?, of("received")?], of("lost")?);
    println!("        packets of the tool: {packets:?}, {lost} lost; of the gateway: {counted:?}");
    // What is lost, is lost before or behind the gateway's counters.
    let differ = (0..2).any(|way| packets[way].abs_diff(counted[way]) > lost);
    ensure!(!differ && packets[0] > 5 * HOMES, "they differ");
    let total = |quantile: &str| report.float(&format!("/set_ups/milliseconds/total/{quantile}"));
    ensure!(
        0.0 < total("p50")? && total("p50")? <= total("p99")? && total("p99")? <= total("max")?,
        "the percentiles are in no order"
    );
    let rate = report.float("/set_ups/per_second")?;
    ensure!((10.0..=160.0).contains(&rate), "{rate} homes a second");
    Ok(())
}

/// The homes of [`many`], and how many of them dial in a second.
const MANY: [u32; 2] = [10_000, 2_000];

/// As many homes as an operator may want, as fast as they may come, without and with delegated prefixes; what that costs the tool and the
/// daemons.
pub fn many(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let gateway = Gateway::start(lab, &[UP], &many_users())?;
    for delegation in ["", "--delegation"] {
        guard::limit("very many homes on one interface");
        cost(lab, &gateway, delegation)?;
        let left = gateway.wait_until_empty(lab, PATIENCE)?;
        ensure!(left.is_empty(), "{} things are left", left.len());
    }
    gateway.stop()
}

fn many_users() -> Vec<(String, String)> {
    let users = (1..=MANY[0]).map(|n| (format!("home{n}"), PASSWORD.to_owned()));
    users.collect()
}

fn cost(lab: &Lab, gateway: &Gateway, delegation: &str) -> Result<()> {
    let [homes, rate] = MANY;
    let daemons = [Daemon::ControlPlane, Daemon::UserPlane(UP)].map(|daemon| gateway.id(daemon));
    let [cp, up] = daemons;
    let (cp, up) = (cp?, up?);
    let held =
        || -> Result<[u64; 2]> { Ok([Footprint::of(cp)?.memory, Footprint::of(up)?.memory]) };
    let used = || -> Result<[Duration; 2]> { Ok([cpu_time(cp)?, cpu_time(up)?]) };
    let (empty, before) = (held()?, used()?);
    let options = format!(
        "--homes {homes} --rate {rate} --duration 5 --pps 0 --vlan 300-309.1-4000 --password {PASSWORD} {delegation}"
    );
    let mut tool = LoadTool::start(lab, &options)?;
    tool.wait_said("running")?;
    let full = held()?;
    let (passed, report) = tool.finish()?;
    let after = used()?;
    let octets = [0, 1].map(|one| full[one].saturating_sub(empty[one]) * 1024 / u64::from(homes));
    let cpu = [0, 1].map(|one| (after[one] - before[one]).as_micros() / u128::from(homes));
    println!(
        "        {} of {rate} homes a second {delegation}; a set-up and end: {} us of CPU in the control plane, {} in the user plane, \
         {} in the tool; a session: {} octets in the control plane, {} in the user plane; the tool: {} MiB",
        report.float("/set_ups/per_second")?,
        cpu[0],
        cpu[1],
        report.float("/tool/cpu_microseconds_per_set_up")?,
        octets[0],
        octets[1],
        report.number("/tool/memory_bytes")? >> 20
    );
    ensure!(passed, "the exit status is not 0");
    Ok(())
}

/// How long the homes of [`very_many_sessions`] leave and come back, as fast as they may.
const ROUND: &str = "--rate 2000 --duration 60 --flap 2000 --flap-off 1 --pps 0 --delegation";

/// The planes keep their answers to each other's requests for half a minute, in case they are asked for again.
const ANSWERS_KEPT: Duration = Duration::from_secs(40);

/// Very many sessions come and go, all homes leaving after each round. What the daemons hold then varies, as allocators give back more or less
/// of it. The least that each held after a round of the second half is what it held in the first half, within 1 %. The first tenth does not
/// count: bounded memories of what has ended fill in it.
pub fn very_many_sessions(fixture: &mut Fixture, wanted: u64) -> Result<()> {
    let lab = fixture.without_site()?;
    let [homes, _] = MANY;
    guard::limit("very many sessions that come and go");
    let gateway = Gateway::start(lab, &[UP], &many_users())?;
    let mut sessions = 0;
    let mut least = [[u64::MAX; 2]; 2];
    while sessions < wanted {
        guard::limit("very many sessions that come and go");
        let options =
            format!("--homes {homes} {ROUND} --vlan 300-309.1-4000 --password {PASSWORD}");
        let (passed, report) = LoadTool::start(lab, &options)?.finish()?;
        ensure!(passed, "the exit status is not 0");
        let left = gateway.wait_until_empty(lab, PATIENCE)?;
        ensure!(left.is_empty(), "{} things are left", left.len());
        sleep(ANSWERS_KEPT);
        let held = |daemon| anyhow::Ok(Footprint::of(gateway.id(daemon)?)?.memory);
        let now = [held(Daemon::ControlPlane)?, held(Daemon::UserPlane(UP))?];
        sessions += report.number("/set_ups/count")?;
        if sessions > wanted / 10 {
            let least = &mut least[usize::from(sessions > wanted / 2)];
            *least = [0, 1].map(|daemon| now[daemon].min(least[daemon]));
        }
        println!(
            "        {sessions} sessions have come and gone; control plane and user plane hold {now:?} KiB"
        );
    }
    for (before, after) in least[0].into_iter().zip(least[1]) {
        ensure!(
            after <= before.saturating_add(before / 100),
            "{after} KiB after {before} KiB"
        );
    }
    gateway.stop()
}

pub fn interrupted(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    // In the middle of it: from home to home, without a reflector.
    let mut tool = LoadTool::start(
        lab,
        &format!("--homes 60 --rate 100 --duration 600 {LINES} --password {PASSWORD}"),
    )?;
    tool.wait_said("running")?;
    sleep(Duration::from_secs(2));
    tool.interrupt()?;
    let (passed, report) = tool.finish()?;
    ensure!(passed, "an end that was asked for is no failure");
    let received = report.number("/traffic/ipv6/received")?;
    ensure!(
        received > 0 && report.number("/traffic/ipv6/lost")? == 0,
        "{received} packets came from home to home"
    );
    nothing_left(lab, &scenario)?;

    let wrong = format!("--homes 3 --rate 3 --duration 1 {LINES} --password wrong --redial 60");
    let mut tool = LoadTool::start(lab, &wrong)?;
    tool.wait_said("3 failures")?;
    tool.interrupt()?;
    let (passed, report) = tool.finish()?;
    ensure!(!passed && report.number("/failed")? == 3, "{report:?}");
    ensure!(report.failures("authentication failed") == 3, "{report:?}");
    nothing_left(lab, &scenario)?;
    scenario.close()?;

    // Nobody is there.
    let begun = Instant::now();
    let tool = LoadTool::start(lab, "--homes 2 --rate 2 --duration 1 --pps 0")?;
    sleep(Duration::from_secs(1));
    tool.interrupt()?;
    let (passed, report) = tool.finish()?;
    ensure!(!passed && report.number("/online")? == 0, "{report:?}");
    ensure!(begun.elapsed() < PATIENCE, "it took {:?}", begun.elapsed());
    Ok(())
}
