//! How long commands take while very many homes are online and some come and go.

use super::document::OTHER_LINES;
use super::rows::{Rows, Target};
use crate::access_network::PASSWORD;
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::load_tool::LoadTool;
use anyhow::Result;
use lab::topology::{Lab, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The commands, which an operator types when a subscriber calls.
const COMMANDS: [&str; 5] = [
    "show subscriber home77",
    "explain home77",
    "show user-planes",
    "show pools",
    "show aaa-servers",
];
/// How often each is asked.
const TIMES: u32 = 20;
/// Between two.
const PAUSE: Duration = Duration::from_millis(30);
/// The longest that each may take, its process included, in milliseconds.
const LONGEST: f64 = 50.0;
/// The number of the first home that comes and goes.
const FIRST: u32 = 200_001;

/// Homes that come and go at a user plane.
pub struct Restless(LoadTool);

impl Restless {
    /// Begins with as many as are online at once.
    pub fn start(lab: &Lab) -> Result<Self> {
        let words = format!(
            "--homes 400 --first {FIRST} --rate 400 --duration 3600 --pps 0 --vlan {OTHER_LINES} --password {PASSWORD} \
             --delegation --flap 100 --flap-off 1 --flap-how terminate"
        );
        let mut tool = LoadTool::start_at(lab, UserPlane::Two, "flap", &words)?;
        tool.wait_said_within("running ", PATIENCE)?;
        Ok(Restless(tool))
    }

    /// All leave; how many sessions they had.
    pub fn leave(self) -> Result<u64> {
        self.0.interrupt()?;
        let (_, report) = self.0.finish()?;
        report.number("/set_ups/count")
    }
}

/// Asks while homes come and go at a user plane; how many sessions those had.
pub fn ask(lab: &Lab, rows: &mut Rows, part: &'static str) -> Result<u64> {
    let restless = Restless::start(lab)?;
    let mut worst = [Duration::ZERO; COMMANDS.len()];
    for _ in 0..TIMES {
        for (command, worst) in COMMANDS.iter().zip(&mut worst) {
            *worst = took(lab, command)?.max(*worst);
            sleep(PAUSE);
        }
    }
    for (command, worst) in COMMANDS.iter().zip(worst) {
        let what = format!("`sluice {command}`, the slowest of {TIMES}");
        let millis = worst.as_secs_f64() * 1000.0;
        rows.aim(part, what, (millis, "ms"), Target::Most(LONGEST));
    }
    restless.leave()
}

fn took(lab: &Lab, command: &str) -> Result<Duration> {
    let words: Vec<&str> = command.split(' ').collect();
    let asked = Instant::now();
    Sluice::of(lab).run(&words)?;
    Ok(asked.elapsed())
}
