//! Writes down what pppd and the gateway say to each other, for the conformance cases of `crates/session`.

use crate::fixture::Fixture;
use crate::guard;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::Capture;
use crate::vm;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, Place};
use std::path::Path;
use std::time::Duration;

/// Records every exchange into `dir/NAME/exchange.pcap`.
pub fn run(dir: &Path) -> Result<()> {
    guard::start()?;
    guard::limit("recording");
    let mut fixture = Fixture::new()?;
    let pap = Setup {
        authentication: "pap",
        ..Setup::default()
    };
    record(&mut fixture, dir, "chap", &Setup::default(), |home| {
        home.dial("alice", "wonderland")?;
        home.wait_ipv6()?;
        home.ping(&INTERNET_V4.to_string(), 2)?;
        home.hang_up()
    })?;
    record(&mut fixture, dir, "pap", &pap, |home| {
        home.dial("alice", "wonderland")?;
        home.wait_ipv6()?;
        home.hang_up()
    })?;
    record(
        &mut fixture,
        dir,
        "wrong-password",
        &Setup::default(),
        |home| {
            home.start_pppd("mallory", "guess")?;
            let status = home.wait_exit(Duration::from_secs(20))?;
            ensure!(status == 19, "pppd ended with {status}");
            Ok(())
        },
    )?;
    fixture.close()
}

fn record(
    fixture: &mut Fixture,
    dir: &Path,
    name: &str,
    setup: &Setup,
    act: impl Fn(&Home) -> Result<()>,
) -> Result<()> {
    let stage = fixture.stage(setup)?;
    let capture = Capture::start(stage.lab, Place::Access(UP), vm::TAP, "exchange")?;
    let home = Home::build(stage.vm, 7)?;
    act(&home)?;
    stage.site.wait_empty(Duration::from_secs(5))?;
    let file = capture.finish()?;
    let to = dir.join(name);
    std::fs::create_dir_all(&to)?;
    std::fs::copy(&file, to.join("exchange.pcap"))
        .with_context(|| format!("cannot write {}", to.display()))?;
    println!("{}", to.join("exchange.pcap").display());
    Ok(())
}
