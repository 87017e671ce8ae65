use crate::accounting::is;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::radius::ALONE;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    home.ping(&INTERNET_V4.to_string(), 3)?;
    let id = stage.site.session_of(7)?.id;

    let shown = stage.site.sluice().run(&["show", "session", &id])?;
    ensure!(shown.contains("alice"), "not the session:\n{shown}");
    let unknown = stage.site.sluice().run(&["clear", "session", "1"]);
    ensure!(unknown.is_err(), "there is no session 1: {unknown:?}");
    stage.site.sluice().run(&["clear", "session", &id])?;
    home.wait_exit(PATIENCE)?;
    ensure!(
        home.log()?.contains("LCP terminated by peer"),
        "pppd was not told: {}",
        home.log()?
    );
    stage.site.wait_empty(PATIENCE)?;

    let (lab, mut cause) = (stage.lab, None);
    stage.site.wait_for("Accounting-Stop", PATIENCE, |_| {
        let records = ALONE.accounting_of(lab, &id)?;
        let stop = records.iter().find(|record| is(record, "Stop"));
        cause = stop.and_then(|stop| stop.get("Acct-Terminate-Cause").cloned());
        Ok(stop.is_some())
    })?;
    ensure!(
        cause.as_deref() == Some("Admin-Reset"),
        "the record does not say who ended it: {cause:?}"
    );
    let log = std::fs::read_to_string(stage.site.cp.log())?;
    let told = log
        .lines()
        .find(|line| line.contains(&id) && line.contains("by=\"root\""));
    ensure!(told.is_some(), "the log does not say who ended it:\n{log}");
    Ok(())
}
