//! What a run has come to.

use super::{internet, street};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

/// The result of a lab; its JSON is what `sluice lab --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many homes there were.
    homes: u32,
    /// How many of them were online at the end.
    online: u32,
    /// From the start of the command to the first home with all its addresses.
    seconds_to_first: Option<f64>,
    /// Homes that came online per second, from the first PADI to the last address.
    sessions_per_second: f64,
    /// Verified packets sent, both ways.
    packets_sent: u64,
    /// Verified packets that arrived where they should, unchanged, each once.
    packets_received: u64,
    /// Packets that arrived elsewhere, changed, or twice.
    packets_wrong: u64,
    /// What makes this run a failure, in words.
    #[serde(skip)]
    problems: Vec<String>,
    /// What happened besides: where a person has a hand in the lab, sessions may end and packets with them.
    #[serde(skip)]
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(
        homes: u32,
        online: u32,
        before_dialling: Duration,
        street: &street::Status,
        internet: &internet::Status,
        left: &[String],
        unattended: bool,
    ) -> Self {
        let wrong = street.counts.wrong() + internet.counts.wrong();
        let rate = street.last_online.map_or(0.0, |last| {
            f64::from(street.ever_online) / last.as_secs_f64().max(1e-3)
        });
        let mut report = Report {
            homes,
            online,
            seconds_to_first: street
                .first_online
                .map(|first| rounded((before_dialling + first).as_secs_f64(), 1000.0)),
            sessions_per_second: rounded(rate, 10.0),
            packets_sent: street.sent + internet.sent,
            packets_received: street.counts.received + internet.counts.received,
            packets_wrong: wrong,
            problems: Vec::new(),
            notes: Vec::new(),
        };
        report.find_problems(street, internet, left);
        let ends = report.endings_and_losses(street, internet);
        if unattended {
            report.problems.extend(ends);
        } else {
            report.notes.extend(ends);
        }
        report
    }

    fn endings_and_losses(
        &self,
        street: &street::Status,
        internet: &internet::Status,
    ) -> Vec<String> {
        let mut found = Vec::new();
        if self.online < self.homes {
            found.push(format!(
                "{} of {} homes were not online",
                self.homes - self.online,
                self.homes
            ));
        }
        for (why, times) in &street.ends {
            found.push(format!(
                "sessions or attempts that ended by themselves: {times} ({why})"
            ));
        }
        for (way, sent, received) in [
            ("up", street.sent, internet.counts.received),
            ("down", internet.sent, street.counts.received),
        ] {
            if received < sent {
                found.push(format!(
                    "{} of {sent} packets were lost on their way {way}",
                    sent - received
                ));
            }
        }
        if street.unsent + internet.unsent > 0 {
            found.push(format!(
                "{} packets could not even be sent",
                street.unsent + internet.unsent
            ));
        }
        found
    }

    fn find_problems(
        &mut self,
        street: &street::Status,
        internet: &internet::Status,
        left: &[String],
    ) {
        let problems = &mut self.problems;
        if self.packets_wrong > 0 {
            problems.push(format!(
                "packets were wrong: at the homes {}; at the internet {}",
                street.counts, internet.counts
            ));
        }
        for (what, times) in &street.strays {
            problems.push(format!("{times} times a home received {what}"));
        }
        if self.online > 0 && self.packets_received == 0 {
            problems.push("no packet arrived at all".into());
        }
        const SHOWN: usize = 5;
        for what in left.iter().take(SHOWN) {
            problems.push(format!(
                "left in the gateway after every home had hung up: {what}"
            ));
        }
        if left.len() > SHOWN {
            problems.push(format!(
                "and {} more left in the gateway",
                left.len() - SHOWN
            ));
        }
    }

    /// Came every home online, was every packet right, and was nothing left behind?
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn with_problem(mut self, problem: String) -> Self {
        self.problems.push(problem);
        self
    }

    /// Prints it: one line of JSON, or sentences; problems always go to the standard error.
    pub(super) fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
        } else {
            let first = self
                .seconds_to_first
                .map_or("never".into(), |s| format!("after {s:.2} s"));
            let Report {
                homes,
                online,
                sessions_per_second: rate,
                ..
            } = self;
            writeln!(
                out,
                "{online} of {homes} homes online, the first {first}, {rate} a second"
            )?;
            let Report {
                packets_sent: sent,
                packets_received: received,
                packets_wrong: wrong,
                ..
            } = self;
            writeln!(
                out,
                "{sent} verified packets sent, {received} received, {wrong} wrong"
            )?;
            if self.is_good() {
                writeln!(
                    out,
                    "after the homes left, sessions, pools and kernel routes were empty; all is cleaned up"
                )?;
            }
        }
        for note in &self.notes {
            writeln!(io::stderr(), "{note}")?;
        }
        for problem in &self.problems {
            writeln!(io::stderr(), "sluice lab: {problem}")?;
        }
        Ok(())
    }
}

fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpe::Counts;

    fn statuses() -> (street::Status, internet::Status) {
        let street = street::Status {
            first_online: Some(Duration::from_millis(250)),
            last_online: Some(Duration::from_secs(2)),
            ever_online: 10,
            sent: 100,
            counts: Counts {
                received: 90,
                ..Counts::default()
            },
            ..street::Status::default()
        };
        let internet = internet::Status {
            sent: 90,
            counts: Counts {
                received: 100,
                ..Counts::default()
            },
            ..internet::Status::default()
        };
        (street, internet)
    }

    fn report(
        street: &street::Status,
        internet: &internet::Status,
        online: u32,
        left: &[String],
    ) -> Report {
        Report::new(
            10,
            online,
            Duration::from_secs(1),
            street,
            internet,
            left,
            true,
        )
    }

    #[test]
    fn the_json_is_what_was_promised() {
        let (street, internet) = statuses();
        let report = report(&street, &internet, 10, &[]);
        assert!(report.is_good());
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"homes":10,"online":10,"seconds_to_first":1.25,"sessions_per_second":5.0,"packets_sent":190,"packets_received":190,"packets_wrong":0}"#
        );
    }

    #[test]
    fn whatever_goes_wrong_makes_the_run_a_failure() {
        let (street, internet) = statuses();
        assert!(
            !report(&street, &internet, 9, &[]).is_good(),
            "a home was not online"
        );
        assert!(
            !report(&street, &internet, 10, &["session 1".into()]).is_good(),
            "something was left"
        );
        let lost = internet::Status {
            sent: 91,
            ..internet
        };
        assert!(
            !report(&street, &lost, 10, &[]).is_good(),
            "a packet was lost"
        );
        let twice = Counts {
            duplicated: 1,
            ..internet.counts
        };
        assert!(
            !report(
                &street,
                &internet::Status {
                    counts: twice,
                    ..internet
                },
                10,
                &[]
            )
            .is_good(),
            "one came twice"
        );
        let mut ended = street.clone();
        ended.ends.insert("ended by the gateway".into(), 1);
        assert!(
            !report(&ended, &internet, 10, &[]).is_good(),
            "a session ended by itself"
        );
        // A person may have ended it.
        let attended = Report::new(10, 10, Duration::ZERO, &ended, &internet, &[], false);
        assert!(attended.is_good() && attended.notes.len() == 1);
    }
}
