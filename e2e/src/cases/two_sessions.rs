use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;
use std::collections::BTreeSet;

const IDENTITY: &str = "access-profiles pppoe subscriber-identity";
const LIMIT: &str = "access-profiles pppoe sessions-per-subscriber";

/// A user with two lines, where the user name is the subscriber.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    configure(&stage, &format!("set {IDENTITY} user-name"))?;
    let capture = Capture::between_planes(stage.lab, "two-sessions")?;
    let (first, second) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    first.dial("alice", "wonderland")?;
    second.dial("alice", "wonderland")?;
    first.ping(&INTERNET_V4.to_string(), 3)?;
    second.ping(&INTERNET_V4.to_string(), 3)?;
    shown(&stage, "2 sessions, 2 online")?;
    let said = capture.finish()?;
    let field = "pfcp.qer_correlation_id";
    let established = tshark(&said, &format!("pfcp.msg_type == 50 && {field}"), &[field])?;
    ensure!(
        established.is_empty(),
        "told before it is known: {established:?}"
    );
    let told = tshark(&said, &format!("pfcp.msg_type == 52 && {field}"), &[field])?;
    let handles: BTreeSet<&String> = told.iter().collect();
    ensure!(
        told.len() == 2 && handles.len() == 1,
        "the sessions have not one QER Correlation ID: {told:?}"
    );

    first.hang_up()?;
    stage.site.wait_for("one session", PATIENCE, |site| {
        Ok(site.sessions()?.len() == 1)
    })?;
    second.ping(&INTERNET_V4.to_string(), 3)?;
    shown(&stage, "1 session, 1 online")?;

    configure(&stage, &format!("set {LIMIT} 1"))?;
    first.start_pppd("alice", "wonderland")?;
    first.wait_exit(PATIENCE)?;
    ensure!(
        first.log()?.contains("too many sessions"),
        "pppd is not told why:\n{}",
        first.log()?
    );
    second.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    first.dial("alice", "wonderland")?;
    configure(&stage, &format!("delete {LIMIT}"))?;
    configure(&stage, &format!("delete {IDENTITY}"))?;
    first.hang_up()?;
    stage.site.wait_empty(PATIENCE)
}

fn shown(stage: &Stage<'_>, sessions: &str) -> Result<()> {
    let page = stage.site.sluice().run(&["show", "subscriber", "alice"])?;
    ensure!(
        page.starts_with("subscriber        alice\n") && page.contains(sessions),
        "expected {sessions}:\n{page}"
    );
    Ok(())
}

fn configure(stage: &Stage<'_>, edit: &str) -> Result<()> {
    stage.site.sluice().configure(edit)
}
