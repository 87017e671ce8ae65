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

/// Idle state of a session.
#[derive(Debug, Default)]
pub(super) struct Idleness {
    /// Idle timeout, and whether packets to the subscriber count.
    rule: Option<(Duration, bool)>,
    /// Packets counted at the last change, and the time of that change.
    packets: u64,
    since: Duration,
    /// Time of the next check.
    pub look_at: Option<Duration>,
    /// Whether the session is idle now. Its reports say so.
    pub is_idle: bool,
}

impl Idleness {
    fn counted(&self, counters: Usage) -> u64 {
        let Volume {
            up_packets,
            down_packets,
            ..
        } = counters.total;
        match self.rule {
            Some((_, true)) => up_packets.wrapping_add(down_packets),
            _ => up_packets,
        }
    }

    /// Checks the counters. Returns true if the session has become idle.
    fn look(&mut self, now: Duration, counters: Usage) -> bool {
        let Some((timeout, _)) = self.rule else {
            return false;
        };
        let packets = self.counted(counters);
        if packets != self.packets {
            (self.packets, self.since, self.is_idle) = (packets, now, false);
        }
        let is_idle = now.saturating_sub(self.since) >= timeout;
        let becomes = is_idle && !self.is_idle;
        self.is_idle = is_idle;
        becomes
    }
}

fn rule(packets: &PacketSettings) -> Option<(Duration, bool)> {
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
        if rule == session.idleness.rule {
            return;
        }
        let idleness = &mut session.idleness;
        *idleness = Idleness {
            rule,
            since: now.monotonic,
            ..Idleness::default()
        };
        idleness.packets = idleness.counted(session.counters);
        self.arm_look(now, index);
    }

    fn arm_look(&mut self, now: Now, index: SessionIndex) {
        let (Some(seid), Some(session)) = (self.table.seid(index), self.table.get_mut(index))
        else {
            return;
        };
        let interval = |(timeout, _): (Duration, bool)| (timeout / LOOKS).max(SHORTEST);
        let rule = session.idleness.rule;
        session.idleness.look_at = rule.map(|rule| now.monotonic + interval(rule));
        if let Some(at) = session.idleness.look_at {
            self.arm_timer(at, seid);
        }
    }

    /// Queries the counters for the idle check.
    pub(super) fn look_due(&mut self, now: Now, seid: Seid) {
        if let Some(session) = self.table.get_mut(seid.index)
            && matches!(session.operation, Operation::None)
        {
            session.operation = Operation::Look;
            self.worker(WorkerCommand::Read(seid.index));
        }
        self.arm_look(now, seid.index);
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
