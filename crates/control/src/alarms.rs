//! Alarms: what is wrong for longer than a moment, and whom it concerns (RFC 8632, X.733).
//!
//! An alarm holds no state of its own but since when it is there: whoever knows says each second which [`Condition`]s hold,
//! and what changed of that is told as events. What comes and goes is held back for a while, so that it does not flap.

use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How severe an alarm is (X.733's perceived severity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Service is out: act at once.
    Critical,
    /// Service is degraded: act soon.
    Major,
    /// Nothing is out; act before it is.
    Minor,
    /// Something may become a fault.
    Warning,
}

/// What is wrong. The history has it by its place here: what is new comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// A user plane is not associated.
    UserPlaneLost,
    /// What is in force on a user plane is not the configuration.
    ConfigurationNotInForce,
    /// A RADIUS server does not answer.
    ServerOut,
    /// No server of a group answers.
    ServerGroupOut,
    /// Nine of ten addresses of a pool are given out.
    PoolAlmostExhausted,
    /// All addresses of a pool are given out.
    PoolExhausted,
    /// As many sessions as may be are there.
    SessionTableFull,
    /// A version of the configuration waits to be confirmed.
    CommitUnconfirmed,
    /// The store takes long to write.
    StoreSlow,
    /// The history cannot be written.
    HistoryNotWritten,
    /// Events went before their time, for want of room.
    HistoryTooSmall,
    /// A part of the history cannot be read.
    HistoryDamaged,
    /// The store cannot be written.
    StoreNotWritten,
    /// A user plane's machine gives it no huge pages, or no cores for its workers.
    HostLacking,
}

impl Fault {
    /// The alarm's name.
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
        }
    }

    /// How severe it is.
    pub const fn severity(self) -> Severity {
        match self {
            Fault::UserPlaneLost
            | Fault::ServerGroupOut
            | Fault::SessionTableFull
            | Fault::StoreNotWritten => Severity::Critical,
            Fault::ConfigurationNotInForce
            | Fault::PoolExhausted
            | Fault::StoreSlow
            | Fault::HistoryNotWritten => Severity::Major,
            Fault::ServerOut | Fault::PoolAlmostExhausted | Fault::HistoryDamaged => {
                Severity::Minor
            }
            Fault::CommitUnconfirmed | Fault::HistoryTooSmall | Fault::HostLacking => {
                Severity::Warning
            }
        }
    }

    /// For how long it has to hold until it is raised, and to be over until it is cleared.
    const fn patience(self) -> [Duration; 2] {
        const fn seconds(raise: u64, clear: u64) -> [Duration; 2] {
            [Duration::from_secs(raise), Duration::from_secs(clear)]
        }
        match self {
            // after a start of ours they come back within a second or two
            Fault::UserPlaneLost => seconds(3, 0),
            Fault::ConfigurationNotInForce => seconds(10, 0),
            Fault::PoolAlmostExhausted | Fault::PoolExhausted | Fault::SessionTableFull => {
                seconds(0, 60)
            }
            Fault::StoreSlow => seconds(2, 10),
            // a user plane that is lost for a moment says nothing of its machine meanwhile
            Fault::StoreNotWritten | Fault::HistoryNotWritten | Fault::HostLacking => {
                seconds(0, 10)
            }
            Fault::ServerOut
            | Fault::ServerGroupOut
            | Fault::CommitUnconfirmed
            | Fault::HistoryTooSmall
            | Fault::HistoryDamaged => seconds(0, 0),
        }
    }
}

/// Something that is wrong now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What.
    pub fault: Fault,
    /// With whom: a user plane, a server, a pool; empty: the control plane as a whole.
    pub resource: String,
    /// In words, and what to do.
    pub text: String,
}

/// An alarm that was raised and not cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// What is wrong, with whom.
    pub condition: Condition,
    /// Since when, in seconds since 1970.
    pub raised: u32,
    /// When it was last found to be over, while it waits to be cleared.
    over: Option<Duration>,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Raised(Condition),
    Cleared(Condition),
}

type Key = (Fault, String);

/// What is raised.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    raised: BTreeMap<Key, Alarm>,
    /// What holds, but not for long enough yet, and since when.
    waiting: BTreeMap<Key, Duration>,
}

impl Alarms {
    /// Goes on with those that were raised when an earlier run ended.
    pub fn resume(before: impl IntoIterator<Item = (Condition, u32)>) -> Self {
        let raised = before.into_iter().map(|(condition, raised)| {
            let key = (condition.fault, condition.resource.clone());
            let alarm = Alarm {
                condition,
                raised,
                over: None,
            };
            (key, alarm)
        });
        Alarms {
            raised: raised.collect(),
            waiting: BTreeMap::new(),
        }
    }

    /// The alarms that are raised, the most severe first.
    pub fn raised(&self) -> Vec<&Alarm> {
        let mut all: Vec<&Alarm> = self.raised.values().collect();
        all.sort_by_key(|alarm| (alarm.condition.fault.severity(), alarm.raised));
        all
    }

    /// What holds now; what has changed by that.
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
            let stays = at.saturating_sub(over) < key.0.patience()[1];
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
            if at.saturating_sub(since) < key.0.patience()[0] {
                waiting.insert(key, since);
                continue;
            }
            changes.push(Change::Raised(condition.clone()));
            let alarm = Alarm {
                condition,
                raised: unix,
                over: None,
            };
            self.raised.insert(key, alarm);
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

    /// What the history has of releases before is read by this.
    #[test]
    fn the_places_of_what_may_be_wrong_stay() {
        let places = [
            (Fault::UserPlaneLost, 0),
            (Fault::StoreSlow, 8),
            (Fault::HistoryNotWritten, 9),
            (Fault::HistoryDamaged, 11),
            (Fault::StoreNotWritten, 12),
            (Fault::HostLacking, 13),
        ];
        for (fault, place) in places {
            assert_eq!(postcard::to_allocvec(&fault), Ok(vec![place]));
        }
    }

    #[test]
    fn what_flaps_is_neither_raised_nor_cleared_at_each_turn() {
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
    fn what_was_raised_before_a_restart_keeps_its_time() {
        let lost = condition(Fault::UserPlaneLost, "up1");
        let mut alarms = Alarms::resume([(lost.clone(), 7)]);
        assert_eq!(look(&mut alarms, 20, std::slice::from_ref(&lost)), []);
        assert_eq!(alarms.raised()[0].raised, 7);
        assert_eq!(look(&mut alarms, 21, &[]), [Change::Cleared(lost)]);
    }
}
