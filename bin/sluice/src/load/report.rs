//! What a load has come to: as JSON, and as tables for people.

mod tables;

use crate::cli::units::counted;
use cpe::{Counts, Family, Histogram};
use lab::access_network::{HomeOutcome, Outcome, SetUps, Status};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Homes of a kind that the JSON names one by one.
const NAMED: usize = 1000;

/// What a report is made of.
pub(super) struct Run<'r> {
    pub(super) interface: &'r str,
    pub(super) status: &'r Status,
    pub(super) outcome: &'r Outcome,
    /// Whether somebody has ended it before its time.
    pub(super) interrupted: bool,
    /// Whether packets go by a reflector.
    pub(super) reflected: bool,
    /// CPU time of this process until the homes were online, and altogether.
    pub(super) cpu: [Duration; 2],
    /// The most memory that this process has used, in octets.
    pub(super) memory: u64,
    /// Set-ups until the homes were online.
    pub(super) set_ups: u64,
    /// How often every home has received a packet in both families.
    pub(super) rounds: u64,
    /// More lost packets than this share of all, in percent, are a failure.
    pub(super) max_loss: Option<f64>,
    /// Whether homes ask for delegated prefixes.
    pub(super) delegation: bool,
}

/// The result of `sluice load`; its JSON is what `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    interface: String,
    /// Number of homes.
    homes: u32,
    /// Homes that were online at the end.
    online: u32,
    /// Homes that had a delegated prefix then; `None`: they ask for none.
    delegated: Option<u32>,
    /// Homes that were not online, although they had their time.
    failed: u32,
    /// Whether it was ended before its time.
    interrupted: bool,
    /// From the first PADI until the homes were told to hang up, in seconds.
    seconds: f64,
    set_ups: SetUpReport,
    /// How often homes have left in order to come back.
    flaps: u64,
    /// Sessions that ended without the home having left.
    sessions_lost: u32,
    /// Why attempts failed and sessions were lost, and how often.
    reasons: BTreeMap<String, u32>,
    /// The first of the homes that failed.
    failed_homes: Vec<FailedHome>,
    traffic: Option<TrafficReport>,
    tool: Tool,
    /// Why the exit status is not 0; empty: it is.
    problems: Vec<String>,
    /// What to know besides.
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct SetUpReport {
    /// Set-ups that succeeded, those of homes that came back included.
    count: u64,
    /// Attempts that failed.
    attempts_failed: u32,
    /// Homes that came online a second, from the first PADI to the last home's first set-up.
    per_second: f64,
    /// The same until 99 % of the homes had come online: a few that try again after `--redial` do not count.
    per_second_of_most: f64,
    /// How long each step took.
    milliseconds: BTreeMap<&'static str, Quantiles>,
}

/// Durations in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Quantiles {
    count: u64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

#[derive(Clone, Debug, Serialize)]
struct FailedHome {
    user: String,
    line: String,
    /// Why its last attempt failed, or its session was lost; `None`: nothing was said.
    reason: Option<String>,
    attempts_failed: u32,
    sessions_lost: u32,
}

#[derive(Clone, Debug, Serialize)]
struct TrafficReport {
    /// `homes`: from home to home; `reflector`: to the reflector and back.
    to: &'static str,
    /// How often every home has received a packet in both families, since all homes were online.
    rounds: u64,
    ipv4: FamilyReport,
    ipv6: FamilyReport,
    /// Packets at the wrong home, or from it.
    misdelivered: u64,
    /// Packets that were changed on their way.
    corrupt: u64,
    /// The first of the homes that lost packets.
    homes_with_loss: Vec<HomeWithLoss>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct FamilyReport {
    sent: u64,
    /// Different packets that came where they should; by a reflector, back to their home.
    received: u64,
    lost: u64,
    /// Lost between home and reflector, of the homes that got an answer; only with a reflector, and if any home got one.
    lost_up: Option<u64>,
    /// Lost between reflector and home, likewise.
    lost_down: Option<u64>,
    /// Homes that sent packets and got no answer, so that nobody knows where theirs were lost; only with a reflector.
    homes_without_answer: Option<u32>,
    lost_percent: f64,
    /// Received packets that a later one came before.
    reordered: u64,
    /// Packets that came more than once.
    duplicated: u64,
    homes_with_loss: u32,
    /// One way from home to home, both ways by a reflector.
    delay_milliseconds: Quantiles,
}

#[derive(Clone, Debug, Serialize)]
struct HomeWithLoss {
    user: String,
    line: String,
    sent: [u64; 2],
    lost: [u64; 2],
}

/// What this process itself needed and was too slow for.
#[derive(Clone, Copy, Debug, Serialize)]
struct Tool {
    cpu_seconds: f64,
    /// The most memory that it has used.
    memory_bytes: u64,
    /// CPU time of a set-up until all homes were online, traffic included.
    cpu_microseconds_per_set_up: f64,
    /// Frames that could not be sent.
    unsent_frames: u64,
    /// Verified packets among them, which are counted as lost.
    unsent_packets: u64,
    /// Frames that came and were lost, because this process was too slow for them.
    overflowed_frames: u64,
}

impl Report {
    pub(super) fn new(run: &Run) -> Self {
        let (status, outcome) = (run.status, run.outcome);
        let failed = failed_homes(run);
        let mut report = Report {
            interface: run.interface.to_owned(),
            homes: outcome.homes.len() as u32,
            online: outcome.homes.iter().filter(|h| h.is_online).count() as u32,
            delegated: run.delegation.then(|| delegated(outcome)),
            failed: failed.len() as u32,
            interrupted: run.interrupted,
            seconds: rounded(outcome.hung_up.as_secs_f64()),
            set_ups: set_ups(status, outcome),
            flaps: status.flaps,
            sessions_lost: outcome.homes.iter().map(|h| h.sessions.lost).sum(),
            reasons: status.ends.clone(),
            failed_homes: failed.into_iter().take(NAMED).map(failed_home).collect(),
            traffic: (status.sent > 0).then(|| traffic(run)),
            tool: tool(run),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        report.find_problems(run);
        report
    }

    /// Whether every home did what it should, and every packet too.
    pub(super) fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds something to know.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn find_problems(&mut self, run: &Run) {
        let mut problems = Vec::new();
        if run.status.ever_online == 0 {
            problems.push("no home came online".into());
        } else if self.failed > 0 {
            problems.push(format!(
                "{} of {} homes were not online at the end",
                self.failed, self.homes
            ));
        }
        if let Some(delegated) = self.delegated.filter(|delegated| *delegated < self.online) {
            problems.push(format!(
                "{} of {} homes that were online had no delegated prefix",
                self.online - delegated,
                self.online
            ));
        }
        if self.sessions_lost > 0 {
            let lost = counted(self.sessions_lost, "session");
            problems.push(format!("{lost} ended without the home's doing"));
        }
        if let Some(traffic) = &self.traffic {
            problems.extend(traffic.problems(run.max_loss));
        }
        for (what, times) in &run.status.strays {
            problems.push(format!("{}: {what}", counted(*times, "stray frame")));
        }
        self.problems = problems;
        self.notes.extend(self.tool.notes());
        if let Some(traffic) = &self.traffic {
            self.notes.extend(traffic.notes());
        }
    }
}

impl Tool {
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.overflowed_frames > 0 {
            let frames = counted(self.overflowed_frames, "frame");
            notes.push(format!(
                "this machine was too slow for {frames}, which may be among the lost packets"
            ));
        }
        if self.unsent_frames > 0 {
            let mut note = format!("{} could not be sent", counted(self.unsent_frames, "frame"));
            if self.unsent_packets > 0 {
                let packets = counted(self.unsent_packets, "verified packet");
                note.push_str(&format!(", {packets} among them, which count as lost"));
            }
            notes.push(note);
        }
        notes
    }
}

impl TrafficReport {
    fn notes(&self) -> Vec<String> {
        let families = [("IPv4", &self.ipv4), ("IPv6", &self.ipv6)];
        let unanswered = families.into_iter().filter_map(|(name, family)| {
            let homes = family.homes_without_answer.filter(|homes| *homes > 0)?;
            let homes = counted(homes, "home");
            Some(format!(
                "{homes} got no {name} answer: whether their packets were lost on the way up or down is unknown"
            ))
        });
        unanswered.collect()
    }

    fn problems(&self, max_loss: Option<f64>) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, family) in [("IPv4", &self.ipv4), ("IPv6", &self.ipv6)] {
            if family.sent > 0 && family.received == 0 {
                let hint = match self.to {
                    "homes" => ": subscribers may be kept apart; try a reflector, or --pps 0",
                    _ => "",
                };
                problems.push(format!("no {name} packet has arrived{hint}"));
            } else if max_loss.is_some_and(|most| family.lost_percent > most) {
                let lost = family.lost_percent;
                problems.push(format!("{lost} % of the {name} packets were lost"));
            }
            if family.duplicated > 0 {
                let twice = family.duplicated;
                problems.push(format!("{twice} {name} packets came twice"));
            }
        }
        if self.misdelivered + self.corrupt > 0 {
            problems.push(format!(
                "{} packets came to the wrong home, and {} were changed",
                self.misdelivered, self.corrupt
            ));
        }
        problems
    }
}

fn delegated(outcome: &Outcome) -> u32 {
    let homes = outcome.homes.iter();
    homes
        .filter(|home| home.is_online && home.has_prefix)
        .count() as u32
}

/// Homes that were not online at the end. Who was interrupted may have had no time.
fn failed_homes<'r>(run: &Run<'r>) -> Vec<&'r HomeOutcome> {
    let had_no_time = |home: &HomeOutcome| {
        let sessions = &home.sessions;
        run.interrupted && sessions.failed == 0 && sessions.lost == 0
    };
    let homes = run.outcome.homes.iter();
    let failed = homes.filter(|home| !home.is_online && !had_no_time(home));
    failed.collect()
}

fn failed_home(home: &HomeOutcome) -> FailedHome {
    FailedHome {
        user: home.user.clone(),
        line: home.line.clone(),
        reason: home.sessions.last_end.clone(),
        attempts_failed: home.sessions.failed,
        sessions_lost: home.sessions.lost,
    }
}

fn set_ups(status: &Status, outcome: &Outcome) -> SetUpReport {
    let SetUps {
        discovery,
        link,
        authentication,
        ipv4,
        ipv6,
        total,
    } = &outcome.set_ups;
    let steps = [
        ("discovery", discovery),
        ("lcp", link),
        ("authentication", authentication),
        ("ipcp", ipv4),
        ("ipv6", ipv6),
        ("total", total),
    ];
    let per_second = |homes: u32, until: Option<Duration>| {
        let rate = |until: Duration| f64::from(homes) / until.as_secs_f64().max(1e-3);
        rounded(until.map_or(0.0, rate))
    };
    let (all, ever) = (outcome.homes.len() as u32, status.ever_online);
    SetUpReport {
        count: status.set_ups,
        attempts_failed: outcome.homes.iter().map(|h| h.sessions.failed).sum(),
        per_second: per_second(ever, status.last_online),
        per_second_of_most: per_second(all - all / 100, status.most_online),
        milliseconds: steps
            .map(|(step, times)| (step, Quantiles::of(times)))
            .into(),
    }
}

fn traffic(run: &Run) -> TrafficReport {
    let homes = &run.outcome.homes;
    let lossy = |home: &&HomeOutcome| losses(home).iter().any(|lost| *lost > 0);
    let counts = run.status.counts;
    let named = |home: &HomeOutcome| HomeWithLoss {
        user: home.user.clone(),
        line: home.line.clone(),
        sent: home.sent,
        lost: losses(home),
    };
    // What was not even a packet for its home has its own sentence.
    let strays: u64 = run.status.strays.values().map(|n| u64::from(*n)).sum();
    TrafficReport {
        to: if run.reflected { "reflector" } else { "homes" },
        rounds: run.rounds,
        ipv4: family(run, Family::V4),
        ipv6: family(run, Family::V6),
        misdelivered: counts.misdelivered.saturating_sub(strays),
        corrupt: counts.corrupt,
        homes_with_loss: homes.iter().filter(lossy).take(NAMED).map(named).collect(),
    }
}

fn losses(home: &HomeOutcome) -> [u64; 2] {
    Family::ALL.map(|family| home.lost(family).unwrap_or(0))
}

fn family(run: &Run, family: Family) -> FamilyReport {
    let (homes, of) = (&run.outcome.homes, family as usize);
    let mut all = Counts::default();
    let arrived = homes.iter().filter_map(|home| home.arrived);
    arrived.for_each(|counts| all += counts[of]);
    let sent: u64 = homes.iter().map(|home| home.sent[of]).sum();
    let lost: u64 = homes.iter().filter_map(|home| home.lost(family)).sum();
    let directions = run.reflected.then(|| Directions::of(homes, family));
    let [lost_up, lost_down] = directions
        .as_ref()
        .and_then(|d| d.lost)
        .map_or([None; 2], |l| l.map(Some));
    let homes_with_loss = homes.iter().filter(|home| losses(home)[of] > 0).count() as u32;
    FamilyReport {
        sent,
        received: all.received,
        lost,
        lost_up,
        lost_down,
        homes_without_answer: directions.map(|d| d.unanswered),
        lost_percent: rounded(100.0 * lost as f64 / sent.max(1) as f64),
        reordered: all.late,
        duplicated: all.duplicated,
        homes_with_loss,
        delay_milliseconds: Quantiles::of(&run.outcome.delays[of]),
    }
}

/// What the reflector's answers say of a family.
struct Directions {
    /// Packets lost on their way up and down, of homes that got an answer; `None` if no home got one.
    lost: Option<[u64; 2]>,
    /// Homes that sent packets and got no answer. How many of their packets came to the reflector, nobody has said.
    unanswered: u32,
}

impl Directions {
    fn of(homes: &[HomeOutcome], family: Family) -> Self {
        let mut all = Directions {
            lost: None,
            unanswered: 0,
        };
        for home in homes {
            let sent = home.sent[family as usize];
            let received = home
                .arrived
                .map_or(0, |counts| counts[family as usize].received);
            match home.reflected {
                Some(reflected) if received > 0 => {
                    let reflected = reflected[family as usize];
                    let [up, down] = all.lost.get_or_insert_default();
                    *up += sent.saturating_sub(reflected);
                    *down += reflected.saturating_sub(received);
                }
                _ => all.unanswered += u32::from(sent > 0),
            }
        }
        all
    }
}

fn tool(run: &Run) -> Tool {
    let [set_up, total] = run.cpu.map(|time| time.as_secs_f64());
    Tool {
        cpu_seconds: rounded(total),
        memory_bytes: run.memory,
        cpu_microseconds_per_set_up: rounded(1e6 * set_up / run.set_ups.max(1) as f64),
        unsent_frames: run.status.unsent,
        unsent_packets: run.status.unsent_packets,
        overflowed_frames: run.status.overflowed,
    }
}

impl Quantiles {
    fn of(times: &Histogram) -> Self {
        let millis = |time: Option<Duration>| rounded(1e3 * time.unwrap_or_default().as_secs_f64());
        let at = |share| millis(times.quantile(share));
        Quantiles {
            count: times.count(),
            mean: millis(times.mean()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: millis(times.max()),
        }
    }
}

/// To a thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
