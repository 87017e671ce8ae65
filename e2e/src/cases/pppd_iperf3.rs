use super::policies::sessions;
use crate::fixture::{Fixture, Stage};
use crate::home::Home;
use crate::iperf::{self, Server};
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6};

/// Of a thousand segments so many are sent again at most: the window is small, so that no queue runs over.
const AGAIN: f64 = 1.0;

/// Of the rate of a policer TCP gets so much at least, and no more than all of it.
const OF_RATE: core::ops::RangeInclusive<f64> = 0.8..=1.02;
/// The same of a queue that is kept short. Reno halves its window each time, so that beside a path that is long in comparison it has three
/// quarters of the rate. A busy machine makes the path long, and after a pause of it packets have waited for long, too.
const OF_QUEUES: core::ops::RangeInclusive<f64> = 0.5..=1.02;
/// Bits a second that a policer lets pass.
const RATE: f64 = 20e6;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    home.wait_ipv6()?;
    let _server = Server::start(stage.lab)?;
    for address in [INTERNET_V4.to_string(), INTERNET_V6.to_string()] {
        for (options, way) in [("-t 2 -w 128K", "up"), ("-t 2 -w 128K -R", "down")] {
            let sent = iperf::run(&home, &address, options)?;
            println!(
                "        {address} {way}: {:.0} Mbit/s, {:.2} of a thousand segments sent again",
                sent.rate / 1e6,
                sent.again
            );
            sent.check(AGAIN)
                .with_context(|| format!("{way} with {address}"))?;
        }
    }
    limited(&stage, &home)?;
    queued(&stage, &home)?;
    home.hang_up()
}

/// The same through a policer each way.
fn limited(stage: &Stage<'_>, home: &Home) -> Result<()> {
    let sluice = stage.site.sluice();
    sluice.configure(&format!(
        "set policers plan algorithm single-rate
set policers plan committed-rate {:.0}
set policies plan policer plan
set subscriber-profiles standard policy-up plan
set subscriber-profiles standard policy-down plan",
        RATE / 1000.0
    ))?;
    for (options, way) in [("-t 5 -O 1", "up"), ("-t 5 -O 1 -R", "down")] {
        let sent = iperf::run(home, &INTERNET_V4.to_string(), options)?;
        println!(
            "        {way} through a policer: {:.1} Mbit/s",
            sent.rate / 1e6
        );
        ensure!(OF_RATE.contains(&(sent.rate / RATE)), "{way}: {sent:?}");
    }
    sluice.configure(
        "delete subscriber-profiles standard policy-up
delete subscriber-profiles standard policy-down
delete policies plan
delete policers plan",
    )
}

/// What keeps the delay of pings short beside TCP that fills the home's rate, what has to be set for it, and the part of the delay of a full queue
/// that they may have. A part and no time: on a busy machine, host and guest add milliseconds of their own. What is strict passes a queue that is
/// full, so that CoDel has no part in it.
const WAYS: [(&str, &str, f64); 4] = [
    (
        "CoDel",
        "delete policies plan queue target-delay
set policies plan queue aqm codel",
        0.3,
    ),
    ("DualPI2", "set policies plan queue aqm dualpi2", 0.4),
    ("FQ-CoDel", "delete policies plan queue aqm", 0.06),
    (
        // the sixth of eight queues, with those before it
        "a strict class",
        "set policies plan queue target-delay 0
set acls plan rules 10 permit icmp from any to any class pings
set policies plan classes pings queue strict true
set policies plan classes pings queue rate 1000
set policies plan classes a dscp cs1
set policies plan classes b dscp cs2
set policies plan classes c dscp cs3
set policies plan classes d dscp cs4
set policies plan classes x dscp cs5
set policies plan classes y dscp cs6",
        0.1,
    ),
];
/// Milliseconds that pings wait in a queue that is full, at least: half of what 262,144 octets take at `RATE`.
const FULL: f64 = 50.0;

/// TCP to the home through a queue, and pings meanwhile.
fn queued(stage: &Stage<'_>, home: &Home) -> Result<()> {
    let sluice = stage.site.sluice();
    sluice.configure(&format!(
        "set acls plan rules 10 permit icmp from any to any
set acls plan rules 20 permit ip from any to any
set policies plan acls plan
set policies plan above-rate wait
set policies plan queue target-delay 0
set subscriber-profiles standard rate-down {:.0}
set subscriber-profiles standard policy-down plan",
        RATE / 1000.0
    ))?;
    let idle = iperf::median(&home.ping(&INTERNET_V4.to_string(), 20)?)?;
    let full = delay(home, "a full queue", idle)?;
    ensure!(full >= FULL, "a full queue delays pings by {full} ms only");
    for (way, commands, part) in WAYS {
        sluice.configure(commands)?;
        let more = delay(home, way, idle)?;
        ensure!(
            more <= part * full,
            "{way}: {more} ms more, {full} in a full queue"
        );
    }
    marked(stage, home)?;
    sluice.configure(
        "delete subscriber-profiles standard policy-down
delete subscriber-profiles standard rate-down
delete policies plan
delete acls plan",
    )
}

/// TCP that understands marks (RFC 3168 §6.1) is told by them, and nothing of it is lost.
fn marked(stage: &Stage<'_>, home: &Home) -> Result<()> {
    let sluice = stage.site.sluice();
    // with room for what comes before TCP has reacted
    sluice.configure(
        "delete policies plan queue target-delay
set policies plan queue limit 4000000",
    )?;
    home.must("sysctl -qw net.ipv4.tcp_ecn=1")?;
    let sent = iperf::run(home, &INTERNET_V4.to_string(), "-t 5 -R -C reno")?;
    let sessions = sessions(&sluice)?;
    let session = sessions.first().context("a session")?;
    let page = sluice.run(&["show", "session", &session.id])?;
    let rows = page.lines().filter(|line| line.contains("queue "));
    rows.for_each(|row| println!("        {}", row.trim()));
    ensure!(OF_QUEUES.contains(&(sent.rate / RATE)), "{sent:?}");
    sent.check(AGAIN).context("with marks")?;
    ensure!(
        page.contains("queue pings") && page.contains("marked for it"),
        "{page}"
    );
    // it had nothing but its plan to wait for, and now it waits for nothing
    ensure!(is_limited(&page, "plan (rate down"), "{page}");
    let start = std::time::Instant::now();
    while !is_limited(&sluice.run(&["show", "session", &session.id])?, "nothing") {
        ensure!(start.elapsed() < crate::guard::PATIENCE, "it still waits");
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    Ok(())
}

/// Whether the page of a session says what its packets wait for.
fn is_limited(page: &str, by: &str) -> bool {
    let mut rows = page
        .lines()
        .filter_map(|row| row.strip_prefix("limited by"));
    rows.any(|row| row.trim_start().starts_with(by))
}

/// How many milliseconds longer a ping takes beside TCP, which gets the home's rate.
fn delay(home: &Home, way: &str, idle: f64) -> Result<f64> {
    let (rate, loaded) = iperf::run_with_pings(home, &INTERNET_V4.to_string())?;
    println!(
        "        {way}: {:.1} Mbit/s, a ping takes {idle:.1} ms idle and {loaded:.1} ms beside it",
        rate / 1e6
    );
    ensure!(OF_QUEUES.contains(&(rate / RATE)), "{way}: {rate}");
    Ok(loaded - idle)
}
