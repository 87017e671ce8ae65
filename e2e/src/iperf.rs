//! iperf3 between a home and the internet host.

use crate::guard::PATIENCE;
use crate::home::Home;
use anyhow::{Context, Result, bail, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use serde_json::Value;

/// Octets of a segment, about.
const SEGMENT: f64 = 1400.0;

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

/// What became of a TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Bits per second that arrived.
    pub rate: f64,
    /// How many segments of a thousand were sent again.
    pub again: f64,
}

impl Sent {
    /// No more segments were sent again than so many of a thousand.
    pub fn check(self, again: f64) -> Result<()> {
        ensure!(
            self.rate > 0.0 && self.again <= again,
            "{:.1} segments of a thousand were sent again, {again} are right",
            self.again
        );
        Ok(())
    }
}

/// Sends TCP to the home, and pings from there meanwhile: bits per second that arrived, and the median of the pings' times in milliseconds.
/// The sender fills every queue (Reno): one that takes care not to, such as BBR, which a machine may use by default, would say nothing about it.
pub fn run_with_pings(home: &Home, server: &str) -> Result<(f64, f64)> {
    let report = "/tmp/iperf3.json";
    let command = format!(
        "iperf3 -c {server} -J -t 5 -O 3 -R -C reno > {report} & sleep 3; ping -c 22 -i 0.2 {server}; wait; echo; cat {report}"
    );
    let done = home.run(&command, PATIENCE)?;
    let (pings, report) = done
        .output
        .split_once("\n{")
        .with_context(|| format!("no report: {}", done.output))?;
    let report: Value =
        serde_json::from_str(&format!("{{{report}")).context("iperf3 printed no JSON")?;
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
    Ok((rate.context("no rate")?, median(pings)?))
}

/// The median of the times that ping printed, in milliseconds.
pub fn median(pings: &str) -> Result<f64> {
    let times = pings.lines().filter_map(|line| {
        let time = line.split_once("time=")?.1;
        time.split_whitespace().next()?.parse().ok()
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2);
    middle
        .copied()
        .with_context(|| format!("no times: {pings}"))
}

/// Sends TCP with these options, `-R` towards the home.
pub fn run(home: &Home, server: &str, options: &str) -> Result<Sent> {
    let command = format!("iperf3 -c {server} -J {options}");
    let done = home.run(&command, PATIENCE)?;
    if done.status != 0 {
        bail!("`{command}` ended with {}: {}", done.status, done.output);
    }
    let report: Value = serde_json::from_str(&done.output).context("iperf3 printed no JSON")?;
    let of = |sum: &str, name: &str| report["end"][sum][name].as_f64();
    let sent = || {
        let segments = of("sum_sent", "bytes")? / SEGMENT;
        Some(Sent {
            rate: of("sum_received", "bits_per_second")?,
            again: 1000.0 * of("sum_sent", "retransmits")? / segments,
        })
    };
    sent().with_context(|| format!("not all is in iperf3's report: {report}"))
}
