use crate::guard::PATIENCE;
use crate::home::Home;
use crate::radius::ALONE;
use crate::rig::Rig;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use sluice::lab::topology::INTERNET_V4;

pub fn run(rig: &mut Rig) -> Result<()> {
    let stage = rig.stage(&Setup::default())?;
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
    stage.site.wait_empty(PATIENCE)?;

    let records = ALONE.accounting(stage.lab, "alice")?;
    let stop = records.last().context("no record")?;
    ensure!(
        format!("{stop:?}").contains("Admin-Reset"),
        "the record does not say who ended it: {stop:#?}"
    );
    let log = std::fs::read_to_string(stage.site.cp.log())?;
    let told = log
        .lines()
        .find(|line| line.contains(&id) && line.contains("by=\"root\""));
    ensure!(told.is_some(), "the log does not say who ended it:\n{log}");
    Ok(())
}
