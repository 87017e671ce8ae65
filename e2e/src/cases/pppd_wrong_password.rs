use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::Place;

/// pppd's own exit status for it (pppd(8)).
const AUTHENTICATION_FAILED: i32 = 19;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
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
    Ok(())
}
