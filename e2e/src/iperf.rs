//! iperf3 between a home and the internet host.

use crate::guard::PATIENCE;
use crate::home::Home;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use sluice::lab::process::Process;
use sluice::lab::topology::{Lab, Place};

/// An iperf3 server on the internet host; ended when dropped.
pub struct Server(#[allow(dead_code, reason = "lives as long as the server is needed")] Process);

impl Server {
    /// Starts it and waits until it listens.
    pub fn start(lab: &Lab) -> Result<Self> {
        let mut command = lab.netns(Place::Internet).command("iperf3");
        command.args(["-s", "--forceflush"]);
        let mut process = Process::spawn(lab.dir(), "iperf3", command)?;
        let log = process.log().to_owned();
        process.wait_until("listening", PATIENCE, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("listening"))
        })?;
        Ok(Server(process))
    }
}

/// Sends TCP with these options, `-R` towards the home; the bits per second that arrived.
pub fn run(home: &Home, server: &str, options: &str) -> Result<f64> {
    let command = format!("iperf3 -c {server} -J {options}");
    let done = home.run(&command, PATIENCE)?;
    if done.status != 0 {
        bail!("`{command}` ended with {}: {}", done.status, done.output);
    }
    let report: Value = serde_json::from_str(&done.output).context("iperf3 printed no JSON")?;
    let rate = &report["end"]["sum_received"]["bits_per_second"];
    rate.as_f64()
        .with_context(|| format!("no rate in iperf3's report: {report}"))
}
