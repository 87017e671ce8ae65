//! Alarms: faults that last, each with the resource that it concerns (RFC 8632, X.733).
//!
//! The control plane collects the [`Condition`]s that hold once a second. [`Alarms`] compares them with the raised alarms and
//! reports the changes as events. A delay before raising and clearing keeps an alarm from flapping.

use crate::history::{Event, What};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Perceived severity of an alarm (X.733).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Service is out: act at once.
    Critical,
    /// Service is degraded: act soon.
    Major,
    /// Service is not affected yet: act before it is.
    Minor,
    /// A fault may follow.
    Warning,
}

/// Kind of fault. The history stores its position in this list: new kinds come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// A user plane is not associated.
    UserPlaneLost,
    /// A user plane does not have its current configuration.
    ConfigurationNotInForce,
    /// A RADIUS server does not answer.
    ServerOut,
    /// No server of a group answers.
    ServerGroupOut,
    /// As many of a pool's addresses are allocated as its `alarm-threshold` says.
    PoolAlmostExhausted,
    /// All addresses of a pool are allocated.
    PoolExhausted,
    /// The maximum number of sessions is reached.
    SessionTableFull,
    /// A version of the configuration is not confirmed yet.
    CommitUnconfirmed,
    /// Writes to the store take long.
    StoreSlow,
    /// The history cannot be written.
    HistoryNotWritten,
    /// Events were deleted early because the history is too small.
    HistoryTooSmall,
    /// A part of the history cannot be read.
    HistoryDamaged,
    /// The store cannot be written.
    StoreNotWritten,
    /// A user plane's machine gives it no huge pages, or no cores for its workers.
    HostLacking,
    /// Sockets of a RADIUS server group cannot be bound.
    ServerSocketsMissing,
    /// The port for changes of authorization cannot be bound.
    DynamicPortMissing,
    /// An access line floods the gateway.
    LineFlooding,
    /// A member of a port's LAG is not used.
    LagMemberUnused,
    /// No member of a port's LAG is used.
    LagDown,
    /// Several workers keep the rate of an aggregate, each for its own sessions.
    AggregateSplit,
}

impl Fault {
    /// Name of the alarm.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::UserPlaneLost => "user-plane-lost",
            Fault::ConfigurationNotInForce => "configuration-not-in-force",
            Fault::ServerOut => "aaa-server-out",
            Fault::ServerGroupOut => "aaa-group-out",
            Fault::PoolAlmostExhausted => "pool-almost-exhausted",
            Fault::PoolExhausted => "pool-exhausted",
            Fault::SessionTableFull => "session-table-full",
            Fault::CommitUnconfirmed => "commit-unconfirmed",
            Fault::StoreSlow => "store-slow",
            Fault::StoreNotWritten => "store-not-written",
            Fault::HistoryNotWritten => "history-not-written",
            Fault::HistoryTooSmall => "history-too-small",
            Fault::HistoryDamaged => "history-damaged",
            Fault::HostLacking => "host-lacking",
            Fault::ServerSocketsMissing => "aaa-sockets-missing",
            Fault::DynamicPortMissing => "coa-port-missing",
            Fault::LineFlooding => "line-flooding",
            Fault::LagMemberUnused => "lag-member-unused",
            Fault::LagDown => "lag-down",
            Fault::AggregateSplit => "aggregate-split",
        }
    }

    /// Severity of the alarm.
    pub const fn severity(self) -> Severity {
        match self {
            Fault::UserPlaneLost
            | Fault::ServerGroupOut
            | Fault::SessionTableFull
            | Fault::StoreNotWritten => Severity::Critical,
            Fault::ConfigurationNotInForce
            | Fault::PoolExhausted
            | Fault::ServerSocketsMissing
            | Fault::DynamicPortMissing
            | Fault::StoreSlow
            | Fault::LagDown
            | Fault::HistoryNotWritten => Severity::Major,
            Fault::ServerOut
            | Fault::PoolAlmostExhausted
            | Fault::HistoryDamaged
            | Fault::LineFlooding
            | Fault::LagMemberUnused
            | Fault::AggregateSplit => Severity::Minor,
            Fault::CommitUnconfirmed | Fault::HistoryTooSmall | Fault::HostLacking => {
                Severity::Warning
            }
        }
    }

    /// Time for which the fault must hold before it is raised, and be over before it is cleared.
    const fn delays(self) -> [Duration; 2] {
        const fn seconds(raise: u64, clear: u64) -> [Duration; 2] {
            [Duration::from_secs(raise), Duration::from_secs(clear)]
        }
        match self {
            // after a start of the control plane, user planes return within 2 s
            Fault::UserPlaneLost => seconds(3, 0),
            Fault::ConfigurationNotInForce => seconds(10, 0),
            Fault::PoolAlmostExhausted
            | Fault::PoolExhausted
            | Fault::SessionTableFull
            | Fault::LineFlooding => seconds(0, 60),
            // while it moves, one reading may find its sessions at both workers
            Fault::AggregateSplit => seconds(3, 10),
            // when a user plane starts, both ends take a second to agree
            Fault::LagMemberUnused | Fault::LagDown => seconds(3, 10),
            Fault::StoreSlow => seconds(2, 10),
            // a user plane that is lost for a moment says nothing of its machine meanwhile
            Fault::StoreNotWritten | Fault::HistoryNotWritten | Fault::HostLacking => {
                seconds(0, 10)
            }
            Fault::ServerOut
            | Fault::ServerGroupOut
            | Fault::ServerSocketsMissing
            | Fault::DynamicPortMissing
            | Fault::CommitUnconfirmed
            | Fault::HistoryTooSmall
            | Fault::HistoryDamaged => seconds(0, 0),
        }
    }
}

/// Condition that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Kind of fault.
    pub fault: Fault,
    /// User plane, server or pool that it concerns; empty for the control plane as a whole.
    pub resource: String,
    /// Description and what to do, for the operator.
    pub text: String,
}

/// Alarm that is raised and not cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Condition that raised it.
    pub condition: Condition,
    /// Time at which it was raised, in seconds since 1970.
    pub raised: u32,
    /// The latest acknowledgement. It ends with the alarm.
    pub acknowledged: Option<Acknowledgement>,
    /// Time since which the condition is over, while the alarm waits to be cleared.
    over: Option<Duration>,
}

impl Alarm {
    /// An alarm that was raised at this time.
    fn new(condition: Condition, raised: u32) -> Self {
        Alarm {
            condition,
            raised,
            acknowledged: None,
            over: None,
        }
    }
}

/// What an operator says who knows of an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The operator.
    pub by: String,
    /// Time of the acknowledgement, in seconds since 1970.
    pub at: u32,
    /// Comment; empty: none.
    pub comment: String,
}

/// Change of an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Raised(Condition),
    Cleared(Condition),
}

type Key = (Fault, String);

/// Raised alarms.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    raised: BTreeMap<Key, Alarm>,
    /// Conditions that do not hold for long enough yet, with the time since which they hold.
    waiting: BTreeMap<Key, Duration>,
}

impl Alarms {
    /// Takes over what an event of an earlier run says; events come in their order.
    pub fn replay(&mut self, event: &Event<'_>) {
        match event.what {
            What::Alarm {
                raised: true,
                fault,
                resource,
                text,
            } => {
                let condition = Condition {
                    fault,
                    resource: resource.to_owned(),
                    text: text.to_owned(),
                };
                let key = (fault, resource.to_owned());
                self.raised.insert(key, Alarm::new(condition, event.unix));
            }
            What::Alarm {
                fault, resource, ..
            } => {
                self.raised.remove(&(fault, resource.to_owned()));
            }
            What::Acknowledged {
                fault,
                resource,
                by,
                comment,
            } => {
                let by = Acknowledgement {
                    by: by.to_owned(),
                    at: event.unix,
                    comment: comment.to_owned(),
                };
                self.acknowledge(fault, resource, by);
            }
            What::Subscriber(..) | What::System { .. } => {}
        }
    }

    /// Acknowledges an alarm, if it is raised.
    pub fn acknowledge(&mut self, fault: Fault, resource: &str, by: Acknowledgement) {
        if let Some(alarm) = self.raised.get_mut(&(fault, resource.to_owned())) {
            alarm.acknowledged = Some(by);
        }
    }

    /// Raised alarms, the most severe first.
    pub fn raised(&self) -> Vec<&Alarm> {
        let mut all: Vec<&Alarm> = self.raised.values().collect();
        all.sort_by_key(|alarm| (alarm.condition.fault.severity(), alarm.raised));
        all
    }

    /// Whether an alarm is raised.
    pub fn is_raised(&self, fault: Fault, resource: &str) -> bool {
        self.raised.contains_key(&(fault, resource.to_owned()))
    }

    /// Takes the conditions that hold now and returns the changes.
    pub fn look(&mut self, at: Duration, unix: u32, holds: Vec<Condition>) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut waiting = BTreeMap::new();
        let mut holding = BTreeMap::new();
        for condition in holds {
            holding.insert((condition.fault, condition.resource.clone()), condition);
        }
        self.raised.retain(|key, alarm| {
            if holding.contains_key(key) {
                alarm.over = None;
                return true;
            }
            let over = *alarm.over.get_or_insert(at);
            let stays = at.saturating_sub(over) < key.0.delays()[1];
            if !stays {
                changes.push(Change::Cleared(alarm.condition.clone()));
            }
            stays
        });
        for (key, condition) in holding {
            if let Some(alarm) = self.raised.get_mut(&key) {
                alarm.condition.text = condition.text;
                continue;
            }
            let since = self.waiting.get(&key).copied().unwrap_or(at);
            if at.saturating_sub(since) < key.0.delays()[0] {
                waiting.insert(key, since);
                continue;
            }
            changes.push(Change::Raised(condition.clone()));
            self.raised.insert(key, Alarm::new(condition, unix));
        }
        self.waiting = waiting;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(fault: Fault, resource: &str) -> Condition {
        Condition {
            fault,
            resource: resource.into(),
            text: "x".into(),
        }
    }

    fn look(alarms: &mut Alarms, second: u64, holds: &[Condition]) -> Vec<Change> {
        let at = Duration::from_secs(second);
        alarms.look(at, second as u32, holds.to_vec())
    }

    #[test]
    fn an_alarm_is_raised_once_and_cleared_once() {
        let mut alarms = Alarms::default();
        let one = condition(Fault::ServerOut, "one");
        let two = condition(Fault::ServerGroupOut, "radius");
        let raised = look(&mut alarms, 1, std::slice::from_ref(&one));
        assert_eq!(raised, [Change::Raised(one.clone())]);
        let both = [one.clone(), two.clone()];
        assert_eq!(look(&mut alarms, 2, &both), [Change::Raised(two.clone())]);
        assert_eq!(look(&mut alarms, 3, &both), []);
        let severities: Vec<Severity> = alarms
            .raised()
            .iter()
            .map(|alarm| alarm.condition.fault.severity())
            .collect();
        assert_eq!(severities, [Severity::Critical, Severity::Minor]);
        assert_eq!(alarms.raised()[1].raised, 1);
        assert_eq!(look(&mut alarms, 4, &[two]), [Change::Cleared(one)]);
    }

    /// The history of earlier releases depends on these positions.
    #[test]
    fn the_positions_of_the_kinds_stay() {
        let positions = [
            (Fault::UserPlaneLost, 0),
            (Fault::StoreSlow, 8),
            (Fault::HistoryNotWritten, 9),
            (Fault::HistoryDamaged, 11),
            (Fault::StoreNotWritten, 12),
            (Fault::HostLacking, 13),
            (Fault::ServerSocketsMissing, 14),
            (Fault::DynamicPortMissing, 15),
            (Fault::LineFlooding, 16),
            (Fault::LagMemberUnused, 17),
            (Fault::LagDown, 18),
            (Fault::AggregateSplit, 19),
        ];
        for (fault, position) in positions {
            assert_eq!(postcard::to_allocvec(&fault), Ok(vec![position]));
        }
    }

    #[test]
    fn a_flapping_condition_is_neither_raised_nor_cleared_each_time() {
        let mut alarms = Alarms::default();
        let lost = condition(Fault::UserPlaneLost, "up1");
        for second in [1, 3, 5] {
            assert_eq!(look(&mut alarms, second, std::slice::from_ref(&lost)), []);
            assert_eq!(look(&mut alarms, second + 1, &[]), []);
        }
        look(&mut alarms, 10, std::slice::from_ref(&lost));
        let raised = look(&mut alarms, 13, std::slice::from_ref(&lost));
        assert_eq!(raised, [Change::Raised(lost)]);
        let full = condition(Fault::PoolAlmostExhausted, "homes");
        look(&mut alarms, 20, std::slice::from_ref(&full));
        for second in (21..200).step_by(30) {
            look(&mut alarms, second, &[]);
            let still = look(&mut alarms, second + 15, std::slice::from_ref(&full));
            assert_eq!(still, []);
        }
        look(&mut alarms, 300, &[]);
        assert_eq!(look(&mut alarms, 360, &[]), [Change::Cleared(full)]);
    }

    #[test]
    fn an_acknowledgement_ends_with_the_alarm() {
        let mut alarms = Alarms::default();
        let lost = condition(Fault::UserPlaneLost, "up1");
        let acknowledged = |alarms: &Alarms| alarms.raised()[0].acknowledged.clone();
        let by = |name: &str| Acknowledgement {
            by: name.into(),
            at: 14,
            comment: "power cut".into(),
        };
        alarms.acknowledge(Fault::UserPlaneLost, "up1", by("early"));
        for second in 10..14 {
            look(&mut alarms, second, std::slice::from_ref(&lost));
        }
        assert_eq!(acknowledged(&alarms), None, "nothing was raised then");
        alarms.acknowledge(Fault::UserPlaneLost, "up2", by("alice"));
        assert_eq!(acknowledged(&alarms), None, "another resource");
        alarms.acknowledge(Fault::UserPlaneLost, "up1", by("alice"));
        alarms.acknowledge(Fault::UserPlaneLost, "up1", by("bob"));
        look(&mut alarms, 15, std::slice::from_ref(&lost));
        assert_eq!(acknowledged(&alarms), Some(by("bob")), "the latest one");
        look(&mut alarms, 16, &[]);
        for second in 17..21 {
            look(&mut alarms, second, std::slice::from_ref(&lost));
        }
        assert_eq!(acknowledged(&alarms), None, "it is another alarm");
    }

    #[test]
    fn an_alarm_that_was_raised_before_a_restart_keeps_its_time() {
        let lost = condition(Fault::UserPlaneLost, "up1");
        let mut alarms = Alarms::default();
        alarms.replay(&Event {
            unix: 7,
            what: What::Alarm {
                raised: true,
                fault: lost.fault,
                resource: &lost.resource,
                text: &lost.text,
            },
        });
        assert_eq!(look(&mut alarms, 20, std::slice::from_ref(&lost)), []);
        assert_eq!(alarms.raised()[0].raised, 7);
        assert_eq!(look(&mut alarms, 21, &[]), [Change::Cleared(lost)]);
    }
}
