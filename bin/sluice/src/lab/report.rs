//! What a run has come to.

use super::outage::Outages;
use lab::daemon::Daemon;
use lab::topology::UserPlane;
use lab::{access_network, internet};
use serde::Serialize;
use std::collections::BTreeMap;
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
    /// Packets that did not arrive and were sent while their user plane was dead or stopped, or without their session, or
    /// shortly before or after.
    packets_lost_in_outages: u64,
    /// Sessions and attempts that ended without the home having hung up.
    sessions_ended: u32,
    /// How often each daemon was started again.
    restarts: BTreeMap<&'static str, u32>,
    /// What makes this run a failure, in words.
    #[serde(skip)]
    problems: Vec<String>,
    /// What happened besides: where a person has a hand in the lab, sessions may end and packets with them.
    #[serde(skip)]
    notes: Vec<String>,
}

/// What a report is made of.
pub(super) struct Run<'r> {
    pub homes: u32,
    /// Homes that were online at the end.
    pub online: u32,
    pub before_dialling: Duration,
    /// The homes of each user plane.
    pub networks: &'r [access_network::Status],
    pub internet: &'r internet::Status,
    /// What was left in the gateway.
    pub left: &'r [String],
    pub outages: &'r Outages,
    pub restarts: &'r [(Daemon, u32)],
    pub unattended: bool,
}

impl Report {
    pub(super) fn new(run: Run) -> Self {
        let (network, internet) = (access_network::Status::of_all(run.networks), run.internet);
        let rate = network.last_online.map_or(0.0, |last| {
            f64::from(network.ever_online) / last.as_secs_f64().max(1e-3)
        });
        let first = network
            .first_online
            .map(|first| run.before_dialling + first);
        let restarts = run.restarts.iter();
        let mut report = Report {
            homes: run.homes,
            online: run.online,
            seconds_to_first: first.map(|first| rounded(first.as_secs_f64(), 1000.0)),
            sessions_per_second: rounded(rate, 10.0),
            packets_sent: network.sent + internet.sent.iter().sum::<u64>(),
            packets_received: network.counts.received + internet.counts.received,
            packets_wrong: network.counts.wrong() + internet.counts.wrong(),
            packets_lost_in_outages: 0,
            sessions_ended: network.ends.values().sum(),
            restarts: restarts.map(|(daemon, n)| (daemon.name(), *n)).collect(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        report.find_problems(&network, internet, run.left);
        let mut ends = run.outages.deaths.clone();
        ends.extend(report.endings(&network, internet));
        ends.extend(report.losses(&run));
        if run.unattended {
            report.problems.extend(ends);
        } else {
            report.notes.extend(ends);
        }
        report
    }

    fn endings(
        &self,
        network: &access_network::Status,
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
        for (why, times) in &network.ends {
            found.push(format!(
                "sessions or attempts that ended by themselves: {times} ({why})"
            ));
        }
        if network.unsent + internet.unsent > 0 {
            found.push(format!(
                "{} packets could not even be sent",
                network.unsent + internet.unsent
            ));
        }
        found
    }

    /// Packets that were lost without an outage; those of outages are noted for what they are.
    fn losses(&mut self, run: &Run) -> Vec<String> {
        let mut found = Vec::new();
        for (up, network) in UserPlane::ALL.into_iter().zip(run.networks) {
            let at_risk = run.outages.at_risk(up);
            let up_index = up as usize;
            let ways = [
                ("up", network.sent, run.internet.received[up_index]),
                ("down", run.internet.sent[up_index], network.counts.received),
            ];
            for ((way, sent, received), at_risk) in ways.into_iter().zip(at_risk) {
                let name = up.name();
                let lost = sent.saturating_sub(received);
                let in_outage = lost.min(at_risk);
                if in_outage > 0 {
                    self.packets_lost_in_outages += in_outage;
                    self.notes.push(format!(
                        "{in_outage} of {at_risk} packets that were sent around the time when {name} did not forward were lost on their way {way}"
                    ));
                }
                if lost > in_outage {
                    let lost = lost - in_outage;
                    found.push(format!(
                        "{lost} of {sent} packets were lost on their way {way} through {name}"
                    ));
                }
            }
        }
        found
    }

    fn find_problems(
        &mut self,
        network: &access_network::Status,
        internet: &internet::Status,
        left: &[String],
    ) {
        let problems = &mut self.problems;
        if self.packets_wrong > 0 {
            problems.push(format!(
                "packets were wrong: at the homes {}; at the internet {}",
                network.counts, internet.counts
            ));
        }
        for (what, times) in &network.strays {
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
                packets_lost_in_outages: lost,
                ..
            } = self;
            writeln!(
                out,
                "{sent} verified packets sent, {received} received, {wrong} wrong"
            )?;
            for (daemon, times) in self.restarts.iter().filter(|(_, times)| **times > 0) {
                writeln!(out, "{daemon} was started again, {times} times")?;
            }
            if *lost > 0 {
                writeln!(out, "{lost} packets were lost in outages of a user plane")?;
            }
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

    fn statuses() -> ([access_network::Status; 2], internet::Status) {
        let network = access_network::Status {
            first_online: Some(Duration::from_millis(250)),
            last_online: Some(Duration::from_secs(2)),
            ever_online: 5,
            sent: 50,
            counts: Counts {
                received: 45,
                ..Counts::default()
            },
            ..access_network::Status::default()
        };
        let internet = internet::Status {
            sent: [45, 45],
            received: [50, 50],
            counts: Counts {
                received: 100,
                ..Counts::default()
            },
            ..internet::Status::default()
        };
        ([network.clone(), network], internet)
    }

    const RESTARTS: [(Daemon, u32); 2] = [
        (Daemon::ControlPlane, 0),
        (Daemon::UserPlane(UserPlane::Two), 1),
    ];

    /// A good run.
    fn run<'r>(
        networks: &'r [access_network::Status],
        internet: &'r internet::Status,
        outages: &'r Outages,
    ) -> Run<'r> {
        Run {
            homes: 10,
            online: 10,
            before_dialling: Duration::from_secs(1),
            networks,
            internet,
            left: &[],
            outages,
            restarts: &RESTARTS,
            unattended: true,
        }
    }

    #[test]
    fn the_json_is_what_was_promised() {
        let ((networks, internet), outages) = (statuses(), Outages::default());
        let report = Report::new(run(&networks, &internet, &outages));
        assert!(report.is_good(), "{:?}", report.problems);
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"homes":10,"online":10,"seconds_to_first":1.25,"sessions_per_second":5.0,"packets_sent":190,"packets_received":190,"packets_wrong":0,"packets_lost_in_outages":0,"sessions_ended":0,"restarts":{"cp":0,"up2":1}}"#
        );
    }

    #[test]
    fn whatever_goes_wrong_makes_the_run_a_failure() {
        let ((networks, internet), outages) = (statuses(), Outages::default());
        let good = |run| Report::new(run).is_good();
        let offline = Run {
            online: 9,
            ..run(&networks, &internet, &outages)
        };
        assert!(!good(offline), "a home was not online");
        let left = Run {
            left: &["session 1".into()],
            ..run(&networks, &internet, &outages)
        };
        assert!(!good(left), "something was left");
        let mut changed = internet;
        changed.sent[1] += 1;
        let lost = run(&networks, &changed, &outages);
        assert!(!good(lost), "a packet was lost");
        let mut changed = internet;
        changed.counts.duplicated = 1;
        assert!(!good(run(&networks, &changed, &outages)), "one came twice");
        let mut ended = networks.clone();
        ended[1].ends.insert("ended by the gateway".into(), 1);
        let by_itself = run(&ended, &internet, &outages);
        assert!(!good(by_itself), "a session ended by itself");
        let mut died = Outages::default();
        died.deaths.push("sluice-cp died".into());
        assert!(!good(run(&networks, &internet, &died)), "a daemon died");
        // A person may have ended it; that it ended is told all the same.
        let attended = Report::new(Run {
            unattended: false,
            ..run(&ended, &internet, &outages)
        });
        assert!(attended.is_good() && attended.notes.len() == 1);
        assert_eq!(attended.sessions_ended, 1);
    }

    #[test]
    fn what_an_outage_explains_is_counted_apart_and_no_more_than_that() {
        let (networks, mut internet) = statuses();
        internet.sent[1] += 30;
        let mut outages = Outages::default();
        outages.note(UserPlane::Two, false, [0, 30]);
        let report = Report::new(run(&networks, &internet, &outages));
        assert!(report.is_good(), "{:?}", report.problems);
        assert_eq!(report.packets_lost_in_outages, 30);
        // One more than were at risk; and the other user plane had no outage.
        for up in UserPlane::ALL {
            let mut more = internet;
            more.sent[up as usize] += 1;
            let report = Report::new(run(&networks, &more, &outages));
            assert!(!report.is_good());
            assert_eq!(report.packets_lost_in_outages, 30);
        }
    }
}
