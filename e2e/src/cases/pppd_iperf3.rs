use crate::home::Home;
use crate::iperf::{self, Server};
use crate::rig::Rig;
use crate::site::Setup;
use anyhow::{Result, ensure};
use sluice::lab::topology::{INTERNET_V4, INTERNET_V6};

/// A path that loses or reorders packets falls far below what even an emulated home reaches.
const ENOUGH: f64 = 2_000_000.0;

pub fn run(rig: &mut Rig) -> Result<()> {
    let stage = rig.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    home.wait_ipv6()?;
    let _server = Server::start(stage.lab)?;
    for address in [INTERNET_V4.to_string(), INTERNET_V6.to_string()] {
        for (options, way) in [("-t 2", "up"), ("-t 2 -R", "down")] {
            let rate = iperf::run(&home, &address, options)?;
            println!("        {address} {way}: {:.0} Mbit/s", rate / 1e6);
            ensure!(rate > ENOUGH, "only {rate:.0} bit/s {way} with {address}");
        }
    }
    home.hang_up()
}
