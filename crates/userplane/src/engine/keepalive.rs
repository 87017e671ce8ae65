//! Keepalive: subscribers who are silent for a while are asked with LCP echo requests (RFC 1661 §5.8), and the control plane is told who
//! does not answer.
//!
//! A check of a session begins with a query for its counters. Packets of the subscriber since the last check are a sign of life as good as
//! an answer: whoever sends is not asked. And since the worker has to answer first, nobody is taken for dead because the worker stood still.

use std::ops::RangeInclusive;
use std::time::Duration;

use dataplane::SessionIndex;
use policy::Keepalive;
use rand::Rng;
use wire::lcp::ECHO_REQUEST;

use super::echoes::echo_frame;
use super::peers::Path;
use super::{Engine, Now, Operation, Output, WorkerCommand};
use crate::compile::CompiledSession;
use crate::table::Seid;

/// How a session's subscriber is watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// `None`: the control plane watches it.
    rule: Option<Keepalive>,
    /// Packets from the subscriber, counted at the last check.
    packets: u64,
    /// Echo requests since the last sign of life.
    missed: u16,
    /// Number of the last echo request, if it is not answered yet.
    asked: Option<u8>,
    /// Number of the next echo request.
    id: u8,
    /// Time of the next check.
    pub check_at: Option<Duration>,
}

impl Watch {
    /// Number of echo requests whose time for an answer is over, if the subscriber is gone by that. `packets`: from the subscriber, counted
    /// now.
    pub fn unanswered(&self, packets: u64) -> Option<u16> {
        let is_gone = self.missed > self.rule?.failures.into() && packets == self.packets;
        is_gone.then(|| self.missed - 1)
    }

    /// Takes an answer to an echo request as a sign of life. Returns whether it answers ours.
    pub fn answered(&mut self, id: u8) -> bool {
        self.missed = 0;
        self.asked.take_if(|asked| *asked == id).is_some()
    }

    /// Notes that the subscriber lives.
    pub fn alive(&mut self) {
        self.missed = 0;
    }

    /// Compares the counted packets from the subscriber. Returns the number of the echo request that it gets; `None` if it was heard.
    fn check(&mut self, packets: u64) -> Option<u8> {
        if packets != self.packets {
            self.packets = packets;
            self.missed = 0;
            return None;
        }
        self.id = self.id.wrapping_add(1);
        self.missed = self.missed.saturating_add(1);
        self.asked = Some(self.id);
        self.asked
    }
}

/// The rule of a session; `None` if the control plane has to watch it.
fn rule(compiled: &CompiledSession) -> Option<Keepalive> {
    match compiled {
        CompiledSession::Subscriber {
            entry,
            echo_magic: Some(_),
            ..
        } => entry.packets.keepalive,
        _ => None,
    }
}

impl<T: Copy> Engine<T> {
    /// Follows a change of the session's policy. The first check comes after a random part of the interval, so that sessions that begin
    /// together are not asked together.
    pub(super) fn follow_keepalive(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let rule = rule(&session.compiled);
        if rule == session.watch.rule {
            return;
        }
        session.watch = Watch {
            rule,
            packets: session.counters.total.up_packets,
            id: session.watch.id,
            ..Watch::default()
        };
        self.arm_check(now, index, 10..=110);
    }

    /// Sets the time of the next check, after so many percent of the interval.
    fn arm_check(&mut self, now: Now, index: SessionIndex, percent: RangeInclusive<u32>) {
        let percent = self.random.random_range(percent);
        let (Some(seid), Some(session)) = (self.table.seid(index), self.table.get_mut(index))
        else {
            return;
        };
        let interval = |rule: Keepalive| Duration::from_secs(rule.interval.into()) * percent / 100;
        let rule = session.watch.rule;
        session.watch.check_at = rule.map(|rule| now.monotonic + interval(rule));
        if let Some(at) = session.watch.check_at {
            self.arm_timer(at, seid);
        }
    }

    /// Queries the counters for a check.
    pub(super) fn check_due(&mut self, now: Now, seid: Seid) {
        if let Some(session) = self.table.get_mut(seid.index)
            && matches!(session.operation, Operation::None)
        {
            session.operation = Operation::Check;
            self.worker(WorkerCommand::Read(seid.index));
        }
        self.arm_check(now, seid.index, 90..=110);
    }

    /// Handles the counters for a check: asks a silent subscriber, and reports one that has not answered for too long, with its usage. It is
    /// reported again in each interval until it is heard or its session ends, so a control plane that is away misses nobody.
    pub(super) fn checked(&mut self, now: Now, index: SessionIndex) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let CompiledSession::Subscriber {
            entry,
            echo_magic: Some(magic),
            ..
        } = &session.compiled
        else {
            return;
        };
        let packets = session.counters.total.up_packets;
        let Some(id) = session.watch.check(packets) else {
            return;
        };
        let request = echo_frame(entry, ECHO_REQUEST, id, *magic, &[]);
        let port = entry.port;
        let is_reachable = self.peers.get(&session.peer).map(|peer| peer.path) == Some(Path::Alive);
        let is_gone = session.watch.unanswered(packets).is_some();
        self.outputs.push_back(Output::Send(port, request));
        if is_gone && is_reachable {
            self.report(now, index);
        }
    }
}
