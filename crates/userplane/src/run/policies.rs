//! Answers of the management interface about ACLs and policies.

use std::collections::BTreeMap;
use std::ops::Bound;

use dataplane::{
    LastDenial, PacketSettings, PolicyIndex, PolicyState, SessionEntry, SessionIndex, WAITS,
};
use mi::{Answer, ListAclRulesResponse, Response, SessionPlace};
use northbound::{
    AclRule, ClassCounts, CompiledFamily, CompiledPolicy, Denial, DenialReason, DirectionPolicy,
    PAGE, PolicerKind, PolicerOwner, QUEUE_WAITS, QueueLimit, QueueState, Refusal, SessionPolicer,
    SessionPolicy, TrafficPolicy, TrafficPolicyState,
};
use policy::{Direction, Name};
use tokio::sync::oneshot;

use super::packets::port_name;
use super::queues::word;
use super::{ForWorker, UserPlane};
use crate::policies::PolicyKey;

// what the workers count by is what clients read
const _: () = {
    let mut at = 0;
    while at < WAITS.len() {
        assert!(WAITS[at].as_millis() == QUEUE_WAITS[at] as u128);
        at += 1;
    }
    assert!(WAITS.len() == QUEUE_WAITS.len());
};

/// Maximum number of questions about sessions that wait for the workers.
const MOST: usize = 64;

/// A question about the policies of a session.
struct Question {
    index: SessionIndex,
    /// The worker's answer for packets from the subscriber, once it is there. The one for packets to it comes behind.
    up: Option<Option<PolicyState>>,
    reply: oneshot::Sender<Answer>,
}

/// Questions that the workers have not answered yet.
#[derive(Default)]
pub(super) struct Questions(Vec<Question>);

impl Questions {
    /// Notes a question; gives the way for the answer back if too many wait.
    fn note(
        &mut self,
        index: SessionIndex,
        reply: oneshot::Sender<Answer>,
    ) -> Result<(), oneshot::Sender<Answer>> {
        self.0.retain(|question| !question.reply.is_closed());
        if self.0.len() >= MOST {
            return Err(reply);
        }
        self.0.push(Question {
            index,
            up: None,
            reply,
        });
        Ok(())
    }

    /// Notes the first half of the answer to those about a session.
    fn answer_up(&mut self, index: SessionIndex, state: Option<PolicyState>) {
        let of_session = self.0.iter_mut().filter(|question| question.index == index);
        of_session.for_each(|question| question.up = Some(state));
    }

    /// Takes those about a session whose answer has its first half.
    fn take(&mut self, index: SessionIndex) -> Vec<Question> {
        let is_answered =
            |question: &mut Question| question.index == index && question.up.is_some();
        self.0.extract_if(.., is_answered).collect()
    }
}

impl UserPlane {
    /// Rules of an ACL after a given one, or from the first on.
    ///
    /// # Errors
    /// The document in force has no such ACL.
    pub(super) fn list_acl_rules(&self, name: &str, after: Option<&AclRule>) -> Answer {
        let Some(acl) = self.document.acls.get(name) else {
            let known: Vec<&str> = self.document.acls.keys().map(String::as_str).collect();
            return Err(Refusal::NotFound(match known.is_empty() {
                true => format!("ACL `{name}` does not exist: no ACL is configured"),
                false => format!(
                    "ACL `{name}` does not exist. There is: {}",
                    known.join(", ")
                ),
            }));
        };
        let hits = match acl.count {
            true => self.policies.hits(name, acl),
            false => BTreeMap::new(),
        };
        let counted = |number, of: fn(&dataplane::Hits) -> u64| {
            let hits = hits.get(number).copied().unwrap_or_default();
            acl.count.then(|| of(&hits))
        };
        let behind = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.number));
        let all = acl.rules.range((behind, Bound::Unbounded));
        let rows = all.map(|(number, rule)| AclRule {
            user_plane: self.name.clone(),
            acl: name.into(),
            number: *number,
            text: rule.0.to_string(),
            packets: counted(number, |hits| hits.packets),
            octets: counted(number, |hits| hits.octets),
        });
        let mut rules: Vec<AclRule> = rows.take(PAGE + 1).collect();
        let more = rules.len() > PAGE;
        rules.truncate(PAGE);
        Ok(Response::AclRules(ListAclRulesResponse { rules, more }))
    }

    /// Policies of the document, and those that only sessions name.
    pub(super) fn list_policies(&self) -> Vec<TrafficPolicy> {
        let mut all = self.engine.sessions_by_policy();
        for name in self.policies.names() {
            all.entry(name.clone()).or_default();
        }
        let row = |(name, sessions): (Name, u64)| {
            let standing = self.policies.standing(&PolicyKey::named(&name));
            TrafficPolicy {
                user_plane: self.name.clone(),
                name: name.as_str().into(),
                state: standing.state.into(),
                rules: standing.rules as u64,
                octets: standing.octets.map(|octets| octets as u64),
                sessions,
                trouble: standing.trouble.unwrap_or_default(),
            }
        };
        all.into_iter().map(row).collect()
    }

    /// The session at a place.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn session_at(&self, place: &SessionPlace) -> Result<&SessionEntry, Refusal> {
        let is_there = |entry: &&SessionEntry| {
            place.pppoe_session_id == entry.pppoe_session_id
                && place.mac == entry.peer_mac.0
                && place.vids == entry.tags.vids()
                && place.port == port_name(&self.ports, entry.port)
        };
        let found = self.engine.subscribers().find(is_there);
        found.ok_or_else(|| Refusal::NotFound("it does not have this session".into()))
    }

    /// Asks the session's worker what its policies have done; [`UserPlane::tell_session_policy`] answers.
    pub(super) fn ask_session_policy(
        &mut self,
        place: &SessionPlace,
        reply: oneshot::Sender<Answer>,
    ) {
        // A failed reply is ignored: the caller may have gone away.
        let index = match self.session_at(place) {
            Ok(entry) => entry.index,
            Err(refusal) => {
                let _ = reply.send(Err(refusal));
                return;
            }
        };
        match self.questions.note(index, reply) {
            Ok(()) => {
                for direction in Direction::BOTH {
                    self.for_worker(ForWorker::ReadPolicy(index, direction));
                }
            }
            Err(reply) => {
                let why = format!("{MOST} questions about sessions wait already");
                let _ = reply.send(Err(Refusal::Busy(why)));
            }
        }
    }

    /// Passes on what the policies of a session have done.
    pub(super) fn tell_session_policy(
        &mut self,
        index: SessionIndex,
        direction: Direction,
        state: Option<PolicyState>,
    ) {
        if direction == Direction::Up {
            return self.questions.answer_up(index, state);
        }
        for Question { up, reply, .. } in self.questions.take(index) {
            let packets = self.engine.subscriber(index).map(|entry| entry.packets);
            let direction = |direction, state: PolicyState| DirectionPolicy {
                rule_watch: self.rule_watch(index, direction),
                policers: packets.map_or_else(Vec::new, |packets| {
                    self.policers(state.policy, &packets, direction)
                }),
                ..self.direction(state)
            };
            let policy = SessionPolicy {
                up: up.flatten().map(|state| direction(Direction::Up, state)),
                down: state.map(|state| direction(Direction::Down, state)),
                worker: Some(self.controller.worker_of(index).into()),
            };
            let _ = reply.send(Ok(Response::SessionPolicy(policy.into())));
        }
    }

    /// Policers of a session's packets in a direction. None while the workers have no form of its policy: all of its packets are dropped.
    fn policers(
        &self,
        number: Option<PolicyIndex>,
        packets: &PacketSettings,
        direction: Direction,
    ) -> Vec<SessionPolicer> {
        let policy = number.and_then(|number| self.policies.in_force(number));
        if number.is_some() && policy.is_none() {
            return Vec::new();
        }
        let key = number.and_then(|number| self.policies.numbers.key(number));
        let classes = key.iter().flat_map(|key| self.policies.classes(key));
        let classes: Vec<&str> = classes.collect();
        let policers = self.policies.compiler.policers(policy, packets, direction);
        let shown = policers.into_iter().map(|policer| {
            let class = match policer.owner {
                dataplane::PolicerOwner::Class(position) => classes.get(position).copied(),
                _ => None,
            };
            SessionPolicer {
                owner: owner(policer.owner).into(),
                class: class.unwrap_or_default().to_owned(),
                kind: kind(policer.kind).into(),
                committed_rate: policer.committed.bits_per_second,
                committed_burst: policer.committed.burst,
                second_rate: policer.second.map(|second| second.bits_per_second),
                second_burst: policer.second.map(|second| second.burst),
            }
        });
        shown.collect()
    }

    /// What the workers have of a policy. `None`: nothing.
    fn compiled(&self, number: PolicyIndex) -> Option<CompiledPolicy> {
        let policy = self.policies.in_force(number)?;
        let [ipv4, ipv6] = policy.sizes().map(|size| CompiledFamily {
            rules: size.rules as u64,
            octets: size.octets as u64,
        });
        Some(CompiledPolicy {
            number: number.0.get().into(),
            compilation: policy.compilation(),
            rules: policy.rules() as u64,
            octets: policy.octets() as u64,
            ipv4: Some(ipv4),
            ipv6: Some(ipv6),
        })
    }

    fn direction(&self, did: PolicyState) -> DirectionPolicy {
        let key_of = |number: PolicyIndex| self.policies.numbers.key(number);
        let key = did.policy.and_then(key_of);
        let names = key.iter().flat_map(|key| self.policies.classes(key));
        let counts = did.classes.iter().flatten();
        let classes = names.zip(counts).map(|(name, counts)| ClassCounts {
            name: name.to_owned(),
            passed_packets: counts.passed,
            yellow_packets: counts.yellow,
            exceeded_packets: counts.exceeded,
        });
        let classes = classes.collect();
        let of_none = key.iter().map(|_| "");
        let names = of_none.chain(key.iter().flat_map(|key| self.policies.classes(key)));
        let queues = names.zip(did.queues.iter().flatten());
        let queues = queues.map(|(class, state)| QueueState {
            class: class.to_owned(),
            waiting_octets: state.waiting_octets.into(),
            most_octets: state.most_octets.into(),
            packets: state.packets,
            octets: state.octets,
            full_drops: state.full_drops,
            delay_drops: state.delay_drops,
            marks: state.marks,
            waits: state.waits.to_vec(),
            limited_by: state.limit.map_or(QueueLimit::Unspecified, word).into(),
        });
        let queues = queues.collect();
        let standing = key.as_ref().map(|key| self.policies.standing(key));
        let state = standing.as_ref().map(|standing| standing.state);
        let drops_all = standing.as_ref().is_some_and(|s| s.octets.is_none());
        DirectionPolicy {
            name: key.map(|key| key.to_string()).unwrap_or_default(),
            state: state.unwrap_or(TrafficPolicyState::Unspecified).into(),
            drops_all,
            trouble: standing.and_then(|s| s.trouble).unwrap_or_default(),
            denied_packets: did.denied_packets,
            denied_octets: did.denied_octets,
            exceeded_packets: did.exceeded_packets,
            yellow_packets: did.yellow_packets,
            subscriber_exceeded_packets: did.subscriber_exceeded_packets,
            classes,
            queues,
            last_denial: did.last_denial.map(|denial| self.denial(denial)),
            rule_watch: None,
            compiled: did.policy.and_then(|number| self.compiled(number)),
            policers: Vec::new(),
        }
    }

    fn denial(&self, LastDenial { rule, compilation }: LastDenial) -> Denial {
        let because = |reason: DenialReason| Denial {
            reason: reason.into(),
            ..Denial::default()
        };
        let Some(position) = rule else {
            return because(DenialReason::Unmatched);
        };
        match self.policies.rule(compilation, position) {
            None => because(DenialReason::Replaced),
            Some((place, rule)) => {
                let (acl, number) = place.shown();
                Denial {
                    acl: acl.to_owned(),
                    rule: number,
                    text: rule.to_string(),
                    ..because(DenialReason::Rule)
                }
            }
        }
    }
}

fn owner(of: dataplane::PolicerOwner) -> PolicerOwner {
    match of {
        dataplane::PolicerOwner::Class(_) => PolicerOwner::Class,
        dataplane::PolicerOwner::Policy => PolicerOwner::Policy,
        dataplane::PolicerOwner::Session => PolicerOwner::Session,
        dataplane::PolicerOwner::Subscriber => PolicerOwner::Subscriber,
    }
}

fn kind(of: dataplane::PolicerKind) -> PolicerKind {
    match of {
        dataplane::PolicerKind::SingleBucket => PolicerKind::SingleBucket,
        dataplane::PolicerKind::SingleRate => PolicerKind::SingleRate,
        dataplane::PolicerKind::TwoRate => PolicerKind::TwoRate,
        dataplane::PolicerKind::TwoRateDifferentiated => PolicerKind::TwoRateDifferentiated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_bounded_and_those_of_one_session_are_answered_together() {
        let mut questions = Questions::default();
        let mut waiting = Vec::new();
        for number in 0..MOST as u32 {
            let (reply, answer) = oneshot::channel();
            assert!(questions.note(SessionIndex(number % 2), reply).is_ok());
            waiting.push(answer);
        }
        let (reply, _) = oneshot::channel();
        assert!(questions.note(SessionIndex(7), reply).is_err());
        waiting.pop();
        let (reply, _answer) = oneshot::channel();
        let has_room = questions.note(SessionIndex(7), reply).is_ok();
        assert!(has_room, "somebody has gone");
        assert_eq!(questions.take(SessionIndex(0)).len(), 0, "half is missing");
        questions.answer_up(SessionIndex(0), None);
        questions.answer_up(SessionIndex(7), None);
        // somebody who has gone makes room for one who asks between the two halves, and waits for those of its own
        drop(waiting.pop());
        let (reply, _later) = oneshot::channel();
        assert!(questions.note(SessionIndex(0), reply).is_ok());
        assert_eq!(questions.take(SessionIndex(0)).len(), MOST / 2 - 1);
        assert_eq!(questions.take(SessionIndex(0)).len(), 0);
        assert_eq!(questions.take(SessionIndex(7)).len(), 1);
    }
}
