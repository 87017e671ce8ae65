use crate::fixture::Fixture;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V6, SUBSCRIBERS_V6};

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    let address = home.wait_ipv6()?;
    ensure!(
        SUBSCRIBERS_V6.contains(&address),
        "{address} is not from the pool {SUBSCRIBERS_V6}"
    );
    let route = home.must("ip -6 route show default")?;
    ensure!(
        route.contains("proto ra"),
        "the default route is not by RA: {route}"
    );
    home.ping(&INTERNET_V6.to_string(), 5)?;

    let session = stage.site.session_of(7)?;
    let prefix = session
        .ipv6_prefix
        .as_deref()
        .context("no prefix in the session")?;
    let (network, length) = prefix
        .split_once('/')
        .context("a prefix without a length")?;
    let network: std::net::Ipv6Addr = network.parse()?;
    ensure!(
        length == "64" && network.segments()[..4] == address.segments()[..4],
        "{address} is not in {prefix}"
    );
    home.hang_up()
}
