use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    // Of a /30 network, broadcast and gateway are not for subscribers: one address is left, as is one /64.
    let setup = Setup {
        ipv4_pool: ("100.64.0.0/30".into(), 30),
        ipv6_pool: ("2001:db8:100::/64".into(), 64),
        ..Setup::default()
    };
    let stage = fixture.stage(&setup)?;
    let (first, second) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    first.dial("alice", "wonderland")?;
    let before = stage.site.drops()?;
    second.start_pppd("carol", "singer")?;
    let status = second.wait_exit(PATIENCE)?;
    ensure!(
        status != 0,
        "pppd ended well without an address:\n{}",
        second.log()?
    );
    let grown = stage.site.drops()?;
    ensure!(
        grown.count("ipv4-pool-exhausted")? > before.count("ipv4-pool-exhausted")?,
        "not counted: {:?}",
        grown.since(&before)
    );
    first.ping(&INTERNET_V4.to_string(), 3)?;

    // What the first one gives back is the second one's.
    first.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    second.dial("carol", "singer")?;
    second.ping(&INTERNET_V4.to_string(), 2)?;
    second.hang_up()
}
