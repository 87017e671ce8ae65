use crate::home::Home;
use crate::rig::Rig;
use crate::site::Setup;
use anyhow::{Result, ensure};
use sluice::lab::topology::INTERNET_V4;

pub fn run(rig: &mut Rig) -> Result<()> {
    let setup = Setup {
        authentication: "pap",
        ..Setup::default()
    };
    let stage = rig.stage(&setup)?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    ensure!(
        home.log()?.contains("PAP authentication succeeded"),
        "not by PAP:\n{}",
        home.log()?
    );
    home.ping(&INTERNET_V4.to_string(), 3)?;
    home.hang_up()
}
