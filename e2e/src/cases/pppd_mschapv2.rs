use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// pppd's own exit status for it (pppd(8)).
const AUTHENTICATION_FAILED: i32 = 19;
/// Nothing but MS-CHAPv2.
const OPTIONS: &str = "refuse-eap refuse-pap refuse-chap refuse-mschap";
const SUCCEEDED: &str = "CHAP authentication succeeded";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    // CHAP is asked for first, and pppd chooses MS-CHAPv2 by a Nak
    let setup = Setup {
        authentication: "chap, pap, mschapv2",
        ..Setup::default()
    };
    let stage = fixture.stage(&setup)?;
    let home = Home::build(stage.vm, 7)?;
    comes_in(&home, "alice", "wonderland")?;
    home.hang_up()?;
    is_refused(&home, "alice", "looking-glass")?;
    is_asked_again(&Home::build(stage.vm, 8)?)?;

    stage.site.wait_empty(PATIENCE)?;
    stage.site.sluice().configure(
        "delete access-profiles pppoe authentication
         set access-profiles pppoe authentication mschapv2
         delete access-profiles pppoe server-group
         set users zoe password at-home",
    )?;
    comes_in(&home, "zoe", "at-home")?;
    home.hang_up()?;
    is_refused(&home, "zoe", "abroad")?;
    stage.site.wait_empty(PATIENCE)
}

/// pppd ends if the gateway does not prove that it, or its server, knows the password.
fn comes_in(home: &Home<'_>, user: &str, password: &str) -> Result<()> {
    home.start_pppd_with(user, password, OPTIONS)?;
    home.wait_online()?;
    home.ping(&INTERNET_V4.to_string(), 3)?;
    let log = home.log()?;
    for said in ["<auth chap MS-v2>", "rcvd [CHAP Success id=", SUCCEEDED] {
        ensure!(log.contains(said), "no {said}:\n{log}");
    }
    Ok(())
}

fn is_refused(home: &Home<'_>, user: &str, password: &str) -> Result<()> {
    home.start_pppd_with(user, password, OPTIONS)?;
    let status = home.wait_exit(PATIENCE)?;
    let log = home.log()?;
    ensure!(
        status == AUTHENTICATION_FAILED,
        "pppd ended with {status}:\n{log}"
    );
    for said in ["\"E=691 R=0 C=", "authentication failed"] {
        ensure!(log.contains(said), "no {said}:\n{log}");
    }
    Ok(())
}

/// RADIUS asks for a new proof of this subscriber every five seconds (Termination-Action).
fn is_asked_again(home: &Home<'_>) -> Result<()> {
    comes_in(home, "frank", "again")?;
    let begun = Instant::now();
    while home.log()?.matches("rcvd [CHAP Success id=").count() < 3 {
        ensure!(
            begun.elapsed() < PATIENCE,
            "not asked again:\n{}",
            home.log()?
        );
        sleep(Duration::from_millis(500));
    }
    home.ping(&INTERNET_V4.to_string(), 3)?;
    home.hang_up()
}
