//! Sessions that are idle: their counters stand still for longer than their policy allows, and the control plane is told.

use std::time::Duration;

use dataplane::{PacketSettings, SessionIndex};
use pfcp::bng::Usage;

use super::peers::Path;
use super::{Engine, Now, Operation, WorkerCommand};
use crate::compile::CompiledSession;
use crate::table::Seid;

/// The counters of a session are looked at so often during its idle timeout. So an idle session is noticed when it has been
/// idle for 9/8 of that time at the latest.
const LOOKS: u32 = 8;
/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is known of the idleness of a session.
#[derive(Debug, Default)]
pub(super) struct Idleness {
    /// The idle timeout, and whether packets to the subscriber count.
    rule: Option<(Duration, bool)>,
    /// How many packets counted at the last look, and since when they are so many.
    packets: u64,
    since: Duration,
    /// When the next look is due.
    pub look_at: Option<Duration>,
    /// It is idle now. Its reports say so.
    pub is_idle: bool,
}

impl Idleness {
    fn counted(&self, counters: Usage) -> u64 {
        match self.rule {
            Some((_, true)) => counters.up_packets.wrapping_add(counters.down_packets),
            _ => counters.up_packets,
        }
    }

    /// A look at the counters. True if the session has become idle.
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
    /// Brings a session's idleness in line with its policy. Another timeout is counted from now on.
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

    /// The counters are to be looked at.
    pub(super) fn look_due(&mut self, now: Now, seid: Seid) {
        if let Some(session) = self.table.get_mut(seid.index)
            && matches!(session.operation, Operation::None)
        {
            session.operation = Operation::Look;
            self.worker(WorkerCommand::Read(seid.index));
        }
        self.arm_look(now, seid.index);
    }

    /// The counters are there. A session that has become idle is reported, and so is what it has used.
    pub(super) fn looked(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let path = self.peers.get(&session.peer).map(|peer| peer.path);
        // A control plane that is away is told when it is back: by the next look.
        let is_reachable = path == Some(Path::Alive);
        if is_reachable && session.idleness.look(now.monotonic, session.counters) {
            self.report(now, index);
        }
    }
}
