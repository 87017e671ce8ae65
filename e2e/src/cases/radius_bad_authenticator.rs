use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Aaa, Setup};
use anyhow::{Context, Result, ensure};

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup {
        aaa: Aaa::Forger,
        ..Setup::default()
    })?;
    let before = stage.site.drops()?;
    let home = Home::build(stage.vm, 7)?;
    home.start_pppd("alice", "wonderland")?;
    // Nobody vouches for the subscriber, so the gateway must not let it in and says so in CHAP.
    let status = home.wait_exit(PATIENCE)?;
    ensure!(status == 19, "pppd ended with {status}:\n{}", home.log()?);
    let answered = stage.site.forger.as_ref().context("no forger")?.answered();
    ensure!(answered > 0, "the forger was not asked");
    let after = stage.site.drops()?;
    let counted =
        after.count("radius-unauthentic-reply")? - before.count("radius-unauthentic-reply")?;
    ensure!(
        counted == answered,
        "{answered} forged replies, {counted} counted: {:?}",
        after.since(&before)
    );
    stage.site.wait_empty(PATIENCE)
}
