use crate::fixture::Fixture;
use crate::home::Home;
use crate::iperf::{self, Server};
use crate::site::Setup;
use anyhow::{Context, Result};
use lab::topology::{INTERNET_V4, INTERNET_V6};

/// Of a thousand segments so many are sent again at most: the window is small, so that no queue runs over.
const AGAIN: f64 = 1.0;

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
    home.hang_up()
}
