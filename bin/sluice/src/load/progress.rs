//! How a load is getting on, on the standard error: a bar on a terminal, a line now and then elsewhere.

use crate::cli::units::{count, counted, duration};
use crate::screen;
use cpe::State;
use lab::access_network::Status;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the bar is drawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Columns of the bar.
const BAR: usize = 20;

/// What a load is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Homes come online.
    SettingUp,
    /// Homes are online, for so long.
    Running(Duration),
    /// Those that have left are awaited.
    Returning,
    /// Packets under way are awaited.
    Settling,
    /// Homes hang up.
    Leaving,
}

/// Shows it.
#[derive(Debug)]
pub struct Progress {
    homes: u32,
    is_terminal: bool,
    shown: Option<Instant>,
    /// The stage that was shown last, and when it began.
    stage: Option<(Stage, Instant)>,
    /// Set-ups at the last look.
    before: (Instant, u64),
    rate: f64,
}

impl Progress {
    /// Of so many homes.
    pub fn new(homes: u32) -> Self {
        Progress {
            homes,
            is_terminal: io::stderr().is_terminal(),
            shown: None,
            stage: None,
            before: (Instant::now(), 0),
            rate: 0.0,
        }
    }

    /// Shows how it is getting on; most calls come too early and do nothing.
    pub fn show(&mut self, stage: Stage, status: &Status, rounds: u64) {
        let is_new = self.stage.is_none_or(|(shown, _)| shown != stage);
        if is_new {
            self.stage = Some((stage, Instant::now()));
        }
        let every = if self.is_terminal { REDRAW } else { LINE_EVERY };
        if !is_new && self.shown.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        self.measure(status);
        let since = self.stage.map_or(Duration::ZERO, |(_, at)| at.elapsed());
        let text = self.text(stage, since, status, rounds);
        let mut out = io::stderr();
        // A terminal that has gone away must not keep the homes from hanging up.
        let _ = match self.is_terminal {
            true => {
                let width = screen::size().map_or(80, |(width, _)| width.max(20));
                let line: String = text.chars().take(width - 1).collect();
                write!(out, "\r{line}\x1b[K").and_then(|()| out.flush())
            }
            false => writeln!(out, "{text}"),
        };
    }

    /// Leaves the terminal as it was, for the report.
    pub fn finish(&mut self) {
        if self.is_terminal && self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Set-ups a second since the last look.
    fn measure(&mut self, status: &Status) {
        let (at, set_ups) = self.before;
        let passed = at.elapsed().as_secs_f64();
        if passed > 0.1 {
            self.rate = (status.set_ups - set_ups) as f64 / passed;
            self.before = (Instant::now(), status.set_ups);
        }
    }

    fn text(&self, stage: Stage, since: Duration, status: &Status, rounds: u64) -> String {
        let online = status.at(State::Online);
        let (what, done, time) = match stage {
            Stage::SettingUp => {
                let share = f64::from(status.ever_online) / f64::from(self.homes);
                ("setting up", share, duration(since.as_secs()))
            }
            Stage::Running(length) => {
                let share = since.as_secs_f64() / length.as_secs_f64().max(1e-3);
                let [now, end] = [since, length].map(|time| duration(time.as_secs()));
                ("running", share, format!("{now} of {end}"))
            }
            Stage::Returning => (
                "waiting for homes that left",
                1.0,
                duration(since.as_secs()),
            ),
            Stage::Settling => (
                "waiting for packets under way",
                1.0,
                duration(since.as_secs()),
            ),
            Stage::Leaving => {
                let offline = f64::from(status.at(State::Offline));
                (
                    "hanging up",
                    offline / f64::from(self.homes),
                    duration(since.as_secs()),
                )
            }
        };
        let mut text = format!(
            "{what:10} {} {online} of {} homes online, {:.0} set-ups/s, {time}",
            bar(done),
            self.homes,
            self.rate
        );
        if status.sent > 0 {
            text.push_str(&format!(", {} packets sent", count(status.sent)));
        }
        if rounds > 0 {
            text.push_str(&format!(", round {rounds} complete"));
        }
        if status.flaps > 0 {
            text.push_str(&format!(", {} flaps", status.flaps));
        }
        let ends: u32 = status.ends.values().sum();
        if ends > 0 {
            text.push_str(&format!(", {}", counted(ends, "failure")));
        }
        text
    }
}

fn bar(share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * BAR as f64) as usize;
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_is_done() {
        assert_eq!(bar(0.0), "[--------------------]");
        assert_eq!(bar(0.5), "[##########----------]");
        assert_eq!(bar(7.0), "[####################]");
    }

    #[test]
    fn a_line_says_where_it_stands() {
        let mut status = Status {
            ever_online: 50,
            sent: 1200,
            flaps: 3,
            ..Status::default()
        };
        status.states.insert(State::Online, 40);
        status.ends.insert("refused".into(), 2);
        let text = Progress::new(100).text(
            Stage::Running(Duration::from_secs(70)),
            Duration::from_secs(7),
            &status,
            2,
        );
        assert_eq!(
            text,
            "running    [##------------------] 40 of 100 homes online, 0 set-ups/s, 7s of 1m 10s, 1.2 k packets sent, \
             round 2 complete, 3 flaps, 2 failures"
        );
    }
}
