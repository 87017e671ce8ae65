//! A home that asks every second whether the gateway is there, and gives up after three seconds, outlives ten without the control plane.

use super::accounting_on::start;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::thread::sleep;
use std::time::Duration;

/// How long there is no control plane.
const ABSENCE: Duration = Duration::from_secs(10);

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    let options = "lcp-echo-interval 1 lcp-echo-failure 3";
    home.start_pppd_with("alice", "wonderland", options)?;
    home.wait_online()?;
    let session = stage.site.session_of(7)?.id;
    let capture = Capture::between_planes(stage.lab, "echo-replies")?;

    kill(Pid::from_raw(stage.site.cp.id()), Signal::SIGKILL)?;
    stage.site.cp.stop()?;
    sleep(ABSENCE);
    home.ping(&INTERNET_V4.to_string(), 3)?;
    start(stage.lab, stage.site)?;
    sleep(Duration::from_secs(3));
    home.ping(&INTERNET_V4.to_string(), 3)?;
    ensure!(
        stage.site.session_of(7)?.id == session,
        "another session: {:?}",
        stage.site.sessions()?
    );
    // pppd writes only its first echo request into its log
    let log = home.log()?;
    ensure!(!log.contains("No response to"), "{log}");
    let from_home = format!("ip.src == {} && lcp && ppp.code == 9", UP.management());
    let passed_on = tshark(&capture.finish()?, &from_home, &["frame.number"])?;
    ensure!(
        passed_on.is_empty(),
        "echo requests of the home reach the control plane: {passed_on:?}"
    );
    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)
}
