use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::topology::Place;
use northbound::Offender;

/// pppd's own exit status for it (pppd(8)).
const AUTHENTICATION_FAILED: i32 = 19;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let mut stage = fixture.stage(&Setup::default())?;
    let routes = || {
        stage
            .lab
            .netns(Place::UserPlane(UP))
            .run(&["ip", "route", "show", "table", "all"])
    };
    let before = routes()?;
    let capture = Capture::between_planes(stage.lab, "wrong-password")?;
    let home = Home::build(stage.vm, 7)?;
    home.start_pppd("mallory", "guess")?;
    let status = home.wait_exit(PATIENCE)?;
    ensure!(
        status == AUTHENTICATION_FAILED,
        "pppd ended with {status}:\n{}",
        home.log()?
    );
    ensure!(
        home.log()?.contains("CHAP authentication failed"),
        "{}",
        home.log()?
    );

    stage.site.wait_empty(PATIENCE)?;
    ensure!(
        routes()? == before,
        "routes before: {before}\nnow: {}",
        routes()?
    );
    // Every set of rules that was established was also deleted, and the user plane said so.
    let file = capture.finish()?;
    let count = |filter: &str| tshark(&file, filter, &["pfcp.seid"]).map(|lines| lines.len());
    let (made, deleted) = (
        count("pfcp.msg_type == 50")?,
        count("pfcp.msg_type == 55 && pfcp.cause == 1")?,
    );
    ensure!(
        made > 0 && made == deleted,
        "{made} PFCP sessions were established, {deleted} deleted"
    );
    backs_off(&mut stage)
}

/// pppd tries again for ever: after five rejections it is answered later and later, until an operator ends that. Nobody else waits.
fn backs_off(stage: &mut Stage<'_>) -> Result<()> {
    let sluice = stage.site.sluice();
    let home = Home::build(stage.vm, 8)?;
    home.start_pppd_with("mallory", "guess", "persist maxfail 0 holdoff 1")?;
    let held = || -> Result<Option<Offender>> {
        let text = sluice.run(&["show", "protection", "--json"])?;
        let rows: Vec<Offender> = serde_json::from_str(&text).with_context(|| text.clone())?;
        let row = rows.into_iter().find(|row| row.c_tag == Some(8));
        Ok(row.filter(|row| row.held_seconds > 5 && row.dropped > 0))
    };
    let shown = "the home in `show protection`";
    stage
        .site
        .wait_for(shown, PATIENCE, |_| Ok(held()?.is_some()))?;
    let row = held()?.context("it is held for more than 5 s")?;
    ensure!(
        (row.kind.as_str(), row.level.as_str()) == ("failed-set-ups", "mac") && row.holds >= 2,
        "{row:?}"
    );
    let said = sluice.run(&["explain", "mallory"])?;
    ensure!(
        said.contains(&format!("MAC address {} are not answered for", row.mac)),
        "{said}"
    );
    let other = Home::build(stage.vm, 9)?;
    other.dial("alice", "wonderland")?;
    other.hang_up()?;

    home.hang_up()?;
    sluice.run(&["clear", "back-off", &row.mac])?;
    ensure!(held()?.is_none(), "it is held after all");
    home.dial("bob", "builder")?;
    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)
}
