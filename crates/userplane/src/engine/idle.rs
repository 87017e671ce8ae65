//! Idle sessions: their counters stay unchanged for their idle timeout, and the control plane is told.

use std::time::Duration;

use dataplane::{PacketSettings, SessionIndex};
use pfcp::bng::{Usage, Volume};

use super::peers::Path;
use super::{Engine, Now, Operation, WorkerCommand};
use crate::compile::CompiledSession;
use crate::table::Seid;

/// Checks of a session's counters during its idle timeout. An idle session is noticed after 9/8 of the timeout at the latest.
const LOOKS: u32 = 8;
/// Minimum time between two checks.
const SHORTEST: Duration = Duration::from_secs(1);

/// Idle state of a session; nothing without an idle timeout.
#[derive(Debug, Default)]
pub(super) struct Idleness(Option<Box<Idle>>);

#[derive(Debug)]
struct Idle {
    /// Idle timeout, and whether packets to the subscriber count.
    rule: Rule,
    /// Packets counted at the last change, and the time of that change.
    packets: u64,
    since: Duration,
    /// Time of the next check.
    look_at: Duration,
    is_idle: bool,
}

type Rule = (Duration, bool);

impl Idleness {
    /// Idleness that begins now.
    fn begin(now: Duration, rule: Option<Rule>, counters: Usage) -> Self {
        let idle = rule.map(|rule| Idle {
            rule,
            packets: counted(rule, counters),
            since: now,
            look_at: now + interval(rule),
            is_idle: false,
        });
        Idleness(idle.map(Box::new))
    }

    fn rule(&self) -> Option<Rule> {
        self.0.as_ref().map(|idle| idle.rule)
    }

    /// Time of the next check.
    pub fn look_at(&self) -> Option<Duration> {
        self.0.as_ref().map(|idle| idle.look_at)
    }

    /// Whether the session is idle now. Its reports say so.
    pub fn is_idle(&self) -> bool {
        self.0.as_ref().is_some_and(|idle| idle.is_idle)
    }

    /// Checks the counters. Returns true if the session has become idle.
    fn look(&mut self, now: Duration, counters: Usage) -> bool {
        let Some(idle) = &mut self.0 else {
            return false;
        };
        let packets = counted(idle.rule, counters);
        if packets != idle.packets {
            (idle.packets, idle.since, idle.is_idle) = (packets, now, false);
        }
        let (timeout, _) = idle.rule;
        let is_idle = now.saturating_sub(idle.since) >= timeout;
        let becomes = is_idle && !idle.is_idle;
        idle.is_idle = is_idle;
        becomes
    }
}

fn counted((_, both_ways): Rule, counters: Usage) -> u64 {
    let Volume {
        up_packets,
        down_packets,
        ..
    } = counters.total;
    match both_ways {
        true => up_packets.wrapping_add(down_packets),
        false => up_packets,
    }
}

/// Time between two checks.
fn interval((timeout, _): Rule) -> Duration {
    (timeout / LOOKS).max(SHORTEST)
}

fn rule(packets: &PacketSettings) -> Option<Rule> {
    Some((packets.idle_timeout?, packets.idle_both_ways))
}

impl<T: Copy> Engine<T> {
    /// Follows a change of the session's policy. A new timeout starts now.
    pub(super) fn follow_idle_timeout(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let CompiledSession::Subscriber { entry, .. } = &session.compiled else {
            return;
        };
        let rule = rule(&entry.packets);
        if rule == session.idleness.rule() {
            return;
        }
        session.idleness = Idleness::begin(now.monotonic, rule, session.counters);
        self.arm_look(index);
    }

    fn arm_look(&mut self, index: SessionIndex) {
        let session = self.table.get(index);
        let at = session.and_then(|session| session.idleness.look_at());
        if let (Some(at), Some(seid)) = (at, self.table.seid(index)) {
            self.arm_timer(at, seid);
        }
    }

    /// Queries the counters for the idle check.
    pub(super) fn look_due(&mut self, now: Now, seid: Seid) {
        if let Some(session) = self.table.get_mut(seid.index) {
            if let Some(idle) = &mut session.idleness.0 {
                idle.look_at = now.monotonic + interval(idle.rule);
            }
            if matches!(session.operation, Operation::None) {
                session.operation = Operation::Look;
                self.worker(WorkerCommand::Read(seid.index));
            }
        }
        self.arm_look(seid.index);
    }

    /// Handles the counters for the idle check. Reports a session that has become idle, with its usage.
    pub(super) fn looked(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let path = self.peers.get(&session.peer).map(|peer| peer.path);
        // A control plane that is away is told by the first check after it returns.
        let is_reachable = path == Some(Path::Alive);
        if is_reachable && session.idleness.look(now.monotonic, session.counters) {
            self.report(now, index);
        }
    }
}
