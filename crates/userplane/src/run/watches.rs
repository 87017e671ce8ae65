//! Sessions of which the hits of each rule are counted, for somebody who asked for it.
//!
//! Counters belong to a compilation of the session's policy. They are made here, and the worker gets them whenever it gets the session or
//! a policy anew. With another policy, hits begin at 0. Every second, watches end whose time is over.

use std::sync::Arc;
use std::time::Duration;

use dataplane::{Hits, MAX_WATCHED, Policies, PolicyIndex, RuleHits, SessionEntry, SessionIndex};
use mi::{Answer, Response, SessionPlace};
use northbound::{MatchKind, Refusal, RuleHits as ShownHits, RuleWatch};
use policy::Direction;

use super::{ForWorker, UserPlane, WorkerCommand};
use crate::policies::TrafficPolicies;

/// Sessions that are watched.
#[derive(Default)]
pub(super) struct RuleWatches(Vec<Watch>);

struct Watch {
    index: SessionIndex,
    /// When it ends.
    until: Duration,
    /// What the worker has of the session.
    policies: Policies,
    /// From the subscriber, and to it.
    directions: [Counted; 2],
}

/// A direction of a session.
#[derive(Default)]
struct Counted {
    /// `None`: no policy is in force.
    hits: Option<Arc<RuleHits>>,
    /// Whether the worker has the counters, as far as it had the session when it got them.
    is_told: bool,
}

impl Watch {
    /// The policy of a direction.
    fn policy(&self, direction: Direction) -> Option<PolicyIndex> {
        match direction {
            Direction::Up => self.policies.up,
            Direction::Down => self.policies.down,
        }
    }

    /// Counters that the worker has to get: the policy of the direction is another one than these count, or it has the session anew.
    fn renewed(&mut self, direction: Direction, policies: &TrafficPolicies) -> Option<ForWorker> {
        let number = self.policy(direction);
        let compiled = number.and_then(|number| policies.in_force(number));
        let counted = &mut self.directions[place_of(direction)];
        let compilation = counted.hits.as_ref().map(|hits| hits.compilation());
        let is_same = compilation == compiled.map(|compiled| compiled.compilation());
        if is_same && counted.is_told {
            return None;
        }
        if !is_same {
            counted.hits = compiled.map(|compiled| Arc::new(RuleHits::of(compiled)));
        }
        counted.is_told = true;
        let hits = counted.hits.clone();
        Some(ForWorker::WatchRules(self.index, direction, hits))
    }
}

fn place_of(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

impl RuleWatches {
    /// Watches a session until a time, or longer or shorter than before. False: too many are watched already.
    fn begin(&mut self, index: SessionIndex, policies: Policies, until: Duration) -> bool {
        if let Some(watch) = self.0.iter_mut().find(|watch| watch.index == index) {
            watch.until = until;
            return true;
        }
        let has_room = self.0.len() < MAX_WATCHED;
        if has_room {
            self.0.push(Watch {
                index,
                until,
                policies,
                directions: Default::default(),
            });
        }
        has_room
    }

    /// Follows a session that the worker is about to get. What the worker had of it is told anew.
    fn set(&mut self, entry: &SessionEntry) {
        if let Some(watch) = self.0.iter_mut().find(|w| w.index == entry.index) {
            watch.policies = entry.policies;
            for counted in &mut watch.directions {
                counted.is_told = false;
            }
        }
    }

    /// What the worker has to learn, if policies or sessions have changed.
    fn renew(&mut self, policies: &TrafficPolicies) -> Vec<ForWorker> {
        let ways = self
            .0
            .iter_mut()
            .flat_map(|watch| Direction::BOTH.map(|direction| watch.renewed(direction, policies)));
        ways.flatten().collect()
    }

    /// Ends watches; what the worker has to learn.
    fn end(&mut self, is_over: impl Fn(&Watch) -> bool) -> Vec<ForWorker> {
        let ended = self.0.extract_if(.., |watch| is_over(watch));
        let forget = |watch: Watch| {
            Direction::BOTH.map(|direction| ForWorker::WatchRules(watch.index, direction, None))
        };
        ended.flat_map(forget).collect()
    }
}

impl UserPlane {
    /// Watches a session for so many seconds; 0 ends it.
    pub(super) fn watch_rules(&mut self, place: &SessionPlace, seconds: u32) -> Answer {
        let now = self.clock.now().monotonic;
        self.end_watches(now);
        let entry = self.session_at(place)?;
        let until = now + Duration::from_secs(seconds.into());
        let (index, policies) = (entry.index, entry.policies);
        if seconds > 0 && !self.watches.begin(index, policies, until) {
            let why = format!(
                "the rules of {MAX_WATCHED} sessions are watched: wait until one of these watches ends, or end one with \
                    `--seconds 0`"
            );
            return Err(Refusal::Busy(why));
        }
        let ended = match seconds {
            0 => self.watches.end(|watch| watch.index == index),
            _ => Vec::new(),
        };
        self.tell(ended);
        self.renew_watches();
        Ok(Response::WatchingRules)
    }

    /// Ends watches whose time is over.
    pub(super) fn end_watches(&mut self, now: Duration) {
        let ended = self.watches.end(|watch| watch.until <= now);
        self.tell(ended);
    }

    /// Gives the workers counters of the policies that the watched sessions have now.
    pub(super) fn renew_watches(&mut self) {
        let renewed = self.watches.renew(&self.policies);
        self.tell(renewed);
    }

    /// Follows a session of which the worker has been told something.
    pub(super) fn follow_watched(&mut self, command: &WorkerCommand) {
        if self.watches.0.is_empty() {
            return;
        }
        match command {
            WorkerCommand::Set(entry) => self.watches.set(entry),
            WorkerCommand::Remove(index) => {
                let ended = self.watches.end(|watch| watch.index == *index);
                self.tell(ended);
            }
            WorkerCommand::Read(_) | WorkerCommand::Forget(_) => {}
        }
    }

    fn tell(&mut self, commands: Vec<ForWorker>) {
        for command in commands {
            self.for_worker(command);
        }
    }

    /// Hits of the rules by the packets of a session. `None`: it is not watched.
    pub(super) fn rule_watch(
        &self,
        index: SessionIndex,
        direction: Direction,
    ) -> Option<RuleWatch> {
        let watch = self.watches.0.iter().find(|watch| watch.index == index)?;
        let hits = watch.directions[place_of(direction)].hits.as_ref();
        let left = watch.until.saturating_sub(self.clock.now().monotonic);
        Some(RuleWatch {
            seconds_left: left.as_secs() as u32,
            hits: hits.map_or_else(Vec::new, |hits| shown(hits, &self.policies)),
        })
    }
}

/// The rules that were hit, in the order in which they are tried, and then what no rule decided.
fn shown(hits: &RuleHits, policies: &TrafficPolicies) -> Vec<ShownHits> {
    let row = |kind: MatchKind, Hits { packets, octets }| ShownHits {
        kind: kind.into(),
        packets,
        octets,
        ..ShownHits::default()
    };
    let rules = policies.rules(hits.compilation());
    let of_rules = rules.into_iter().flatten().zip(hits.rules());
    let of_rules = of_rules.map(|((place, rule), hits)| {
        let (acl, number) = place.shown();
        ShownHits {
            acl: acl.to_owned(),
            rule: number,
            text: rule.to_string(),
            ..row(MatchKind::Rule, hits)
        }
    });
    let others = [
        row(MatchKind::Unmatched, hits.unmatched()),
        row(MatchKind::UndeterminedTransport, hits.undetermined()),
    ];
    let all = of_rules.chain(others);
    all.filter(|row| row.packets > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_bounded_and_end() {
        let mut watches = RuleWatches::default();
        let begin = |watches: &mut RuleWatches, index, seconds| {
            let until = Duration::from_secs(seconds);
            watches.begin(SessionIndex(index), Policies::default(), until)
        };
        for index in 0..MAX_WATCHED as u32 {
            assert!(begin(&mut watches, index, 60));
        }
        assert!(!begin(&mut watches, 99, 60), "there is no room");
        assert!(begin(&mut watches, 3, 10), "it is there already");
        let over = |now: Duration| move |watch: &Watch| watch.until <= now;
        assert!(watches.end(over(Duration::from_secs(9))).is_empty());
        let told = watches.end(over(Duration::from_secs(10)));
        let ended = told
            .iter()
            .filter(|command| matches!(command, ForWorker::WatchRules(SessionIndex(3), _, None)));
        assert_eq!((ended.count(), told.len()), (2, 2), "both directions");
        assert!(begin(&mut watches, 99, 60), "one has gone");
    }
}
