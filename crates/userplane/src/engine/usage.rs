//! Usage of sessions, and when it is reported.

use std::collections::BTreeSet;
use std::time::Duration;

use dataplane::SessionIndex;
use pfcp::bng::{Usage, UsageMeter};
use tracing::warn;
use wire::pfcp::{Cause, ReportType, SessionReportRequest, UsageReport, UsageReportTrigger};

use super::peers::Path;
use super::{
    After, Engine, MAX_KEPT, MAX_RULES, Now, Operation, Output, Session, Unacknowledged,
    WorkerCommand,
};
use crate::compile::CompiledSession;
use crate::table::Seid;

impl<T: Copy> Engine<T> {
    /// Adjusts the meter to the rules, with the current counters. The returned reports go into the answer to a modification.
    pub(super) fn follow_usage_rule(
        &mut self,
        now: Now,
        index: SessionIndex,
        query: bool,
    ) -> Vec<UsageReport> {
        let peer = self.table.get(index).map(|session| session.peer);
        let keeps = peer.is_some_and(|peer| self.audits(&peer));
        let Some(session) = self.table.get_mut(index) else {
            return Vec::new();
        };
        let CompiledSession::Subscriber { usage, .. } = &session.compiled else {
            return Vec::new();
        };
        let (usage, counters) = (*usage, session.counters);
        // Nobody acknowledges an answer, so its reports are kept.
        let full = keeps && session.unacknowledged.is_full();
        let old_period = session.meter.and_then(|meter| meter.rule().period);
        let fresh = match (&mut session.meter, usage) {
            (Some(meter), Some(rule)) if meter.rule().urr_id == rule.urr_id => {
                meter.set_rule(rule);
                let trigger = UsageReportTrigger::IMMEDIATE;
                (query && !full).then(|| meter.report(counters, now.ntp, trigger))
            }
            // A rule with another id is another rule: the old one ends.
            (meter, rule) => {
                let trigger = UsageReportTrigger::TERMINATION;
                let last = meter.as_mut();
                let last = last.map(|meter| meter.report(counters, now.ntp, trigger));
                *meter = rule.map(|rule| UsageMeter::new(rule, counters, now.ntp));
                last
            }
        };
        let reports = match keeps && (query || fresh.is_some()) {
            true => session.unacknowledged.with(fresh),
            false => Vec::from_iter(fresh),
        };
        let period = usage.and_then(|rule| rule.period);
        if period != old_period {
            self.arm(
                index,
                period.map(|seconds| now.monotonic + period_of(seconds)),
            );
        }
        if query && full {
            self.report_kept(index);
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
            self.arm_timer(at, seid);
        }
    }

    pub(super) fn report_due(&mut self, now: Now, seid: Seid, at: Duration) {
        let Some(session) = self.table.get_mut(seid.index) else {
            return;
        };
        let period = session
            .meter
            .and_then(|meter| meter.rule().period)
            .map(period_of);
        // Reports that were missed while the process slept are not made up for.
        let next = period.map(|period| (at + period).max(now.monotonic));
        let path = self.peers.get(&session.peer).map(|peer| peer.path);
        let reachable = path == Some(Path::Alive);
        let idle = matches!(session.operation, Operation::None);
        // Usage that is not reported now is part of the next report.
        if reachable && idle && session.unacknowledged.in_flight == 0 {
            if session.unacknowledged.is_full() {
                self.report_kept(seid.index);
            } else {
                session.operation = Operation::Report;
                self.worker(WorkerCommand::Read(seid.index));
            }
        }
        self.arm(seid.index, next);
    }

    /// Handles the counters for a periodic report.
    pub(super) fn report(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let Some(meter) = &mut session.meter else {
            return;
        };
        if session.unacknowledged.is_full() {
            return self.report_kept(index);
        }
        let trigger = UsageReportTrigger::PERIODIC;
        let report = meter.report(session.counters, now.ntp, trigger);
        session.unacknowledged.reports.push(report);
        self.report_kept(index);
    }

    /// Sends the unacknowledged reports, unless some are under way.
    fn report_kept(&mut self, index: SessionIndex) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let kept = &mut session.unacknowledged;
        if kept.in_flight > 0 {
            return;
        }
        kept.in_flight = kept.reports.len();
        let unanswered_echoes = session.watch.unanswered(session.counters.total.up_packets);
        let report_type = match session.idleness.is_idle() || unanswered_echoes.is_some() {
            true => ReportType::USAGE | ReportType::INACTIVITY,
            false => ReportType::USAGE,
        };
        let message = SessionReportRequest {
            report_type,
            usage_reports: kept.reports.clone(),
            unanswered_echoes,
        };
        self.outputs.push_back(Output::Report {
            peer: session.peer,
            seid: session.cp_seid,
            token: seid.to_u64(),
            message: message.into(),
        });
    }

    /// Handles the outcome of a report: the control plane's answer, or `None` if there was none.
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
                    "the control plane does not know a session that it established: removed"
                );
                self.remove(seid.index, After::Nothing);
            }
            Some(cause) if cause.is_accepted() => session.unacknowledged.acknowledge(),
            _ => {
                session.unacknowledged.in_flight = 0;
                self.counters.reports_kept += 1;
            }
        }
    }
}

impl<T> Session<T> {
    /// Takes over the unacknowledged reports of the session that this one replaces. Returns whether it can. Two rules with the
    /// same id would have reports with the same number, and a control plane remembers the reports of only a few rules of a
    /// session.
    pub(super) fn inherit(&mut self, reports: &[UsageReport]) -> bool {
        let own = self.compiled.usage().map(|rule| rule.urr_id);
        let used = |report: &&UsageReport| Usage::of_report(report) != Usage::default();
        let used: Vec<UsageReport> = reports.iter().filter(used).cloned().collect();
        let kept = &mut self.unacknowledged;
        let rules = kept.reports.iter().chain(&used).map(|r| r.urr_id);
        let rules: BTreeSet<u32> = rules.filter(|id| Some(*id) != own).collect();
        let can = used.iter().all(|r| Some(r.urr_id) != own) && rules.len() <= MAX_RULES;
        if can {
            // Behind the reports under way: an acknowledgement counts from the oldest.
            let at = kept.in_flight;
            kept.reports.splice(at..at, used);
        }
        can
    }
}

impl Unacknowledged {
    /// Whether kept reports have to be acknowledged before there is a new one.
    fn is_full(&self) -> bool {
        self.reports.len() >= MAX_KEPT
    }

    /// Reports for an answer: the kept ones and a fresh one, which is kept if there is room.
    fn with(&mut self, fresh: Option<UsageReport>) -> Vec<UsageReport> {
        let mut told = self.reports.clone();
        told.extend(fresh.clone());
        self.reports.extend(fresh.filter(|_| !self.is_full()));
        told
    }

    /// Drops the reports that were under way: the control plane has them.
    fn acknowledge(&mut self) {
        let acknowledged = std::mem::take(&mut self.in_flight);
        self.reports.drain(..acknowledged);
    }
}

/// A Measurement Period of 0 would cause endless reports, so the minimum is 1 s.
fn period_of(seconds: u32) -> Duration {
    Duration::from_secs(seconds.max(1).into())
}
