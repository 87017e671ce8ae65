use crate::fixture::Fixture;
use crate::home::Home;
use crate::site::Setup;
use crate::site::UP;
use anyhow::Result;
use lab::gateway::{SUBSCRIBER_GATEWAY_V4, SUBSCRIBER_GATEWAY_V6};

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    home.wait_ipv6()?;
    home.ping(&SUBSCRIBER_GATEWAY_V4.to_string(), 3)?;
    home.ping(&SUBSCRIBER_GATEWAY_V6.to_string(), 3)?;
    // The gateway's addresses on the core link are its own as well.
    home.ping(&UP.core_v4().to_string(), 3)?;
    home.ping(&UP.core_v6().to_string(), 3)?;
    home.hang_up()
}
