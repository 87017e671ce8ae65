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
