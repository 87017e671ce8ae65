use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Result, ensure};

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.start_pppd("alice", "wonderland")?;
    // pppd prints the interface's session as soon as PADS has come.
    stage.site.wait_for("PADO and PADS", PATIENCE, |_| {
        let log = home.log()?;
        Ok(log.contains("PADO") && log.contains("PADS") && log.contains("PPP session is"))
    })?;
    let log = home.log()?;
    let id = log
        .lines()
        .find_map(|line| line.strip_prefix("PPP session is "))
        .unwrap_or_default()
        .trim()
        .to_owned();
    ensure!(
        !id.is_empty() && id != "0",
        "the session id is {id:?} in\n{log}"
    );
    let session = stage.site.session_of(7)?;
    ensure!(
        session.pppoe_session_id.to_string() == id,
        "pppd has session {id}, sluice shows {session:?}"
    );
    ensure!(
        session.mac == home.mac() && session.s_tag == Some(100),
        "{session:?}"
    );
    home.hang_up()
}
