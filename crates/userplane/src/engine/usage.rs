//! What sessions used, and when the control plane is told.

use std::cmp::Reverse;
use std::time::Duration;

use dataplane::SessionIndex;
use pfcp::bng::UsageMeter;
use tracing::warn;
use wire::pfcp::{Cause, ReportType, SessionReportRequest, UsageReport, UsageReportTrigger};

use super::peers::Path;
use super::{After, Engine, Now, Operation, Output, Unacknowledged, WorkerCommand};
use crate::compile::Compiled;
use crate::table::Seid;

impl<T: Copy> Engine<T> {
    /// Brings the meter in line with the rules, with counters as they stand now. The
    /// reports are those that the answer to a modification carries.
    pub(super) fn follow_usage_rule(
        &mut self,
        now: Now,
        index: SessionIndex,
        query: bool,
    ) -> Vec<UsageReport> {
        let Some(session) = self.table.get_mut(index) else {
            return Vec::new();
        };
        let Compiled::Subscriber { usage, .. } = &session.compiled else {
            return Vec::new();
        };
        let (usage, counters) = (*usage, session.counters);
        let old_period = session.meter.and_then(|meter| meter.rule().period);
        let mut reports = Vec::new();
        match (&mut session.meter, usage) {
            (Some(meter), Some(rule)) => {
                // A rule under another id is another rule: the old one ends.
                if meter.rule().urr_id != rule.urr_id {
                    reports.push(meter.report(counters, now.ntp, UsageReportTrigger::TERMINATION));
                    *meter = UsageMeter::new(rule, counters, now.ntp);
                } else {
                    meter.set_rule(rule);
                    if query {
                        let trigger = UsageReportTrigger::IMMEDIATE;
                        reports.push(meter.report(counters, now.ntp, trigger));
                    }
                }
            }
            (Some(meter), None) => {
                reports.push(meter.report(counters, now.ntp, UsageReportTrigger::TERMINATION));
                session.meter = None;
            }
            (None, Some(rule)) => session.meter = Some(UsageMeter::new(rule, counters, now.ntp)),
            (None, None) => {}
        }
        let period = usage.and_then(|rule| rule.period);
        if period != old_period {
            self.arm(
                index,
                period.map(|seconds| now.monotonic + period_of(seconds)),
            );
        }
        reports
    }

    fn arm(&mut self, index: SessionIndex, at: Option<Duration>) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        session.report_at = at;
        if let Some(at) = at {
            self.timers.push(Reverse((at, seid)));
        }
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Now) {
        self.end_hold(now);
        self.end_telling(now);
        while let Some(Reverse((at, seid))) = self.timers.peek().copied()
            && at <= now.monotonic
        {
            self.timers.pop();
            // Timers are not looked for when they become void; they are found void here.
            let due = self
                .table
                .resolve(seid)
                .is_some_and(|s| s.report_at == Some(at));
            if due {
                self.report_due(now, seid, at);
            }
        }
    }

    fn report_due(&mut self, now: Now, seid: Seid, at: Duration) {
        let Some(session) = self.table.get_mut(seid.index) else {
            return;
        };
        let period = session
            .meter
            .and_then(|meter| meter.rule().period)
            .map(period_of);
        // What was missed while the process slept is not made up for.
        let next = period.map(|period| (at + period).max(now.monotonic));
        let path = self.peers.get(&session.peer).map(|peer| peer.path);
        let reachable = path == Some(Path::Alive);
        let idle = matches!(session.operation, Operation::None);
        match &mut session.unacknowledged {
            // Whatever is not reported now is part of the next report.
            _ if !reachable || !idle => {}
            Some(kept) if kept.in_flight => {}
            Some(kept) => {
                kept.in_flight = true;
                let report = kept.report.clone();
                self.send_report(seid, report);
            }
            None => {
                session.operation = Operation::Report;
                self.worker(WorkerCommand::Read(seid.index));
            }
        }
        self.arm(seid.index, next);
    }

    /// The counters for a periodic report are there.
    pub(super) fn report(&mut self, now: Now, index: SessionIndex) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let counters = session.counters;
        let Some(meter) = &mut session.meter else {
            return;
        };
        let report = meter.report(counters, now.ntp, UsageReportTrigger::PERIODIC);
        session.unacknowledged = Some(Unacknowledged {
            report: report.clone(),
            in_flight: true,
        });
        self.send_report(seid, report);
    }

    fn send_report(&mut self, seid: Seid, report: UsageReport) {
        let Some(session) = self.table.resolve(seid) else {
            return;
        };
        let message = SessionReportRequest {
            report_type: ReportType::USAGE,
            usage_reports: vec![report],
            ..Default::default()
        };
        self.outputs.push_back(Output::Report {
            peer: session.peer,
            seid: session.cp_seid,
            token: seid.to_u64(),
            message: message.into(),
        });
    }

    /// How a report ended: the control plane's answer, or `None` if there was none.
    pub fn reported(&mut self, token: u64, answer: Option<Cause>) {
        let seid = Seid::from_u64(token);
        if self.table.resolve(seid).is_none() {
            return;
        }
        let Some(session) = self.table.get_mut(seid.index) else {
            return;
        };
        match answer {
            Some(Cause::SESSION_CONTEXT_NOT_FOUND) => {
                let cp_seid = session.cp_seid;
                warn!(
                    cp_seid = format_args!("{cp_seid:#x}"),
                    "the control plane does not know a session that it had established: removed"
                );
                self.remove(seid.index, After::Nothing);
            }
            Some(cause) if cause.is_accepted() => session.unacknowledged = None,
            _ => {
                if let Some(kept) = &mut session.unacknowledged {
                    kept.in_flight = false;
                    self.counters.reports_kept += 1;
                }
            }
        }
    }
}

/// A Measurement Period of 0 would be no end of reports.
fn period_of(seconds: u32) -> Duration {
    Duration::from_secs(seconds.max(1).into())
}
