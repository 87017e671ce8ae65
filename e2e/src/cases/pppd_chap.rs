use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{DNS, Setup};
use anyhow::{Result, ensure};
use lab::gateway::SUBSCRIBER_GATEWAY_V4;
use lab::topology::{INTERNET_V4, SUBSCRIBERS_V4};
use northbound::SessionState;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    let granted = home.dial("alice", "wonderland")?;
    ensure!(
        home.log()?.contains("CHAP authentication succeeded"),
        "not by CHAP:\n{}",
        home.log()?
    );
    ensure!(
        SUBSCRIBERS_V4.contains(&granted.local),
        "{granted:?} is not from the pool {SUBSCRIBERS_V4}"
    );
    ensure!(
        granted.remote == SUBSCRIBER_GATEWAY_V4 && granted.dns == DNS,
        "{granted:?}"
    );
    let [first, second, third, _] = granted.local.octets();
    let resolv = home.must("cat /etc/ppp/resolv.conf")?;
    ensure!(
        DNS.iter().all(|server| resolv.contains(server)),
        "resolv.conf lacks {DNS:?}: {resolv}"
    );
    home.ping(&INTERNET_V4.to_string(), 5)?;

    let session = stage.site.session_of(7)?;
    ensure!(
        session.state() == SessionState::Online && session.user == "alice",
        "{session:?}"
    );
    ensure!(
        session.ipv4 == Some(granted.local.to_string()),
        "{session:?}"
    );
    let traffic = session.traffic.unwrap_or_default();
    ensure!(
        traffic.up_packets >= 5 && traffic.down_packets >= 5,
        "{traffic:?}"
    );

    // An address that RADIUS chose (Framed-IP-Address) comes before the pool.
    let other = Home::build(stage.vm, 8)?;
    let granted = other.dial("bob", "builder")?;
    ensure!(granted.local.to_string() == "100.64.7.77", "{granted:?}");
    other.ping(&INTERNET_V4.to_string(), 2)?;
    // So is the MTU (Framed-MTU).
    let said = stage.site.sluice().run(&["explain", "bob"])?;
    ensure!(said.contains("MTU 1400 (aaa)"), "{said}");
    let routes = stage.site.exported_routes(stage.lab)?;
    let net = format!("{first}.{second}.{third}.0/24");
    ensure!(
        routes.contains(&net) && routes.contains("100.64.7.0/24"),
        "not announced: {routes}"
    );
    other.hang_up()?;
    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    let lab = stage.lab;
    stage
        .site
        .wait_for("the announced nets to be withdrawn", PATIENCE, |site| {
            Ok(site.exported_routes(lab)?.is_empty())
        })
}
