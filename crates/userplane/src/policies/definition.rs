//! What policies are, by the document and by rules of subscribers.

use std::sync::Arc;
use std::time::Duration;

use acl::{Action, Rule};
use config::UserPlaneDocument;
use config::model::{
    AboveRate, Acl, Algorithm, Aqm, Policer, Queue, TrafficClass, TrafficPolicy,
    UndeterminedTransport, Unmatched,
};
use dataplane::{
    Discipline, Management, MeterSettings, PolicerSettings, PolicyClass, PolicyRules, QueueProfile,
    QueueRules, QueueSettings, Rate,
};
use policy::{FilterRules, Name};

use super::numbers::PolicyKey;

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulePlace<'a> {
    /// The configuration: the name of its ACL, and its number.
    Acl(&'a Arc<str>, u32),
    /// A subscriber's own rules: its position among those of the direction, from 1.
    Subscriber(u32),
}

impl<'a> RulePlace<'a> {
    /// Name of the ACL, empty for a subscriber's own rule, and the number.
    pub fn shown(self) -> (&'a str, u32) {
        match self {
            RulePlace::Acl(acl, number) => (acl, number),
            RulePlace::Subscriber(position) => ("", position),
        }
    }
}

/// What a policy is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// Rules of a subscriber, which come first.
    own: Vec<Rule>,
    /// ACLs in the order in which they are tried. They are the document's: all policies together can have millions of rules.
    acls: Vec<(Arc<str>, Arc<Acl>)>,
    /// Everything but the rules.
    pub settings: PolicyRules,
}

impl Definition {
    /// Definition of each policy of a document.
    pub fn all(document: &UserPlaneDocument) -> impl Iterator<Item = (PolicyKey, Definition)> {
        let policies = document.policies.iter();
        policies.filter_map(|(name, policy)| {
            let key = PolicyKey::named(&Name::new(name)?);
            Some((key, Definition::named(document, policy)))
        })
    }

    /// Definition of a policy. `None`: the document lacks its part of it.
    pub fn of(document: &UserPlaneDocument, key: &PolicyKey) -> Option<Definition> {
        let policy = match &key.policy {
            Some(name) => Some(document.policies.get(name.as_str())?),
            None => None,
        };
        let named = policy.map(|policy| Definition::named(document, policy));
        let named = named.unwrap_or_default();
        match &key.rules {
            None => Some(named),
            Some(rules) => {
                let has_acls = policy.is_some_and(|policy| !policy.acls.is_empty());
                named.behind(rules, has_acls)
            }
        }
    }

    /// A policy of a document alone.
    fn named(document: &UserPlaneDocument, policy: &TrafficPolicy) -> Definition {
        let acls = policy.acls.iter();
        // the document was checked: it has them all
        let acls =
            acls.filter_map(|name| Some((name.as_str().into(), document.acls.get(name)?.clone())));
        let acls: Vec<(Arc<str>, Arc<Acl>)> = acls.collect();
        let policer = policy.policer.as_ref();
        let policer = policer.and_then(|name| document.policers.get(name));
        let classes = policy.classes.iter();
        let classes = classes.map(|(name, class)| class_of(document, name, class));
        let settings = PolicyRules {
            rules: Vec::new(),
            unmatched_pass: policy.acls.is_empty() || policy.unmatched == Unmatched::Permit,
            denies_undetermined: !policy.acls.is_empty()
                && policy.undetermined_transport == UndeterminedTransport::Deny,
            is_counted: acls
                .iter()
                .any(|(_, acl)| acl.count && !acl.rules.is_empty()),
            classes: classes.collect(),
            mark: policy.mark.as_deref().and_then(acl::dscp_value),
            policer: policer.map(policer_settings),
            queues: queues(policy),
            portal: policy.portal.as_deref().map(Arc::from),
        };
        Definition {
            own: Vec::new(),
            acls,
            settings,
        }
    }

    /// Its rules in the order in which they are tried, each with its place.
    pub fn rules(&self) -> impl Iterator<Item = (RulePlace<'_>, &Rule)> {
        let own = (1..).map(RulePlace::Subscriber).zip(&self.own);
        let of_acls = self.acls.iter().flat_map(|(name, acl)| {
            let rules = acl.rules.iter();
            rules.map(move |(number, rule)| (RulePlace::Acl(name, *number), &rule.0))
        });
        own.chain(of_acls)
    }

    /// How many rules it has.
    pub fn size(&self) -> usize {
        let of_acls = self.acls.iter().map(|(_, acl)| acl.rules.len());
        self.own.len() + of_acls.sum::<usize>()
    }

    /// What it is compiled from.
    pub fn source(&self) -> PolicyRules {
        PolicyRules {
            rules: self.rules().map(|(_, rule)| rule.clone()).collect(),
            ..self.settings.clone()
        }
    }

    /// This policy behind rules of a subscriber. Without ACLs, packets that no rule matches are dropped if the last rule permits, and pass if
    /// it denies (RFC 6733 §4.3.1). With ACLs, these have the last word. `None`: a text is no rule.
    fn behind(mut self, rules: &FilterRules, has_acls: bool) -> Option<Definition> {
        let first = rules
            .iter()
            .map(str::parse)
            .collect::<Result<Vec<Rule>, _>>();
        let first = first.ok()?;
        if !has_acls {
            let last = first.last()?;
            self.settings.unmatched_pass = last.action() == Action::Deny;
            self.settings.denies_undetermined = true;
        }
        self.own = first;
        Some(self)
    }
}

/// What a policy with these rules is compiled from, behind rules of a subscriber. For `sluice-up check`, which has no document. `None`: a text is
/// no rule.
pub fn rules_behind(own: &FilterRules, mut policy: PolicyRules) -> Option<PolicyRules> {
    let rules = std::mem::take(&mut policy.rules);
    let named = Definition {
        settings: policy,
        ..Definition::default()
    };
    let Definition { own, settings, .. } = named.behind(own, !rules.is_empty())?;
    Some(PolicyRules {
        rules: [own, rules].concat(),
        ..settings
    })
}

/// What a class of the configuration is at the workers.
fn class_of(document: &UserPlaneDocument, name: &str, class: &TrafficClass) -> PolicyClass {
    let dscps = class.dscp.iter().filter_map(|dscp| acl::dscp_value(dscp));
    let policer = class.policer.as_ref();
    let policer = policer.and_then(|name| document.policers.get(name));
    PolicyClass {
        name: name.into(),
        dscps: dscps.fold(0, |set, dscp| set | 1 << dscp),
        priorities: class
            .vlan_priority
            .iter()
            .fold(0, |set, priority| set | 1 << priority),
        policer: policer.map(policer_settings),
        mark: class.mark.as_deref().and_then(acl::dscp_value),
    }
}

/// The queues of a policy at the workers: of packets in no class, and of each class.
fn queues(policy: &TrafficPolicy) -> Option<QueueRules> {
    if policy.above_rate == AboveRate::Drop {
        return None;
    }
    let of_classes = policy.classes.values().map(|class| &class.queue);
    let all = [&policy.queue].into_iter().chain(of_classes);
    let all = all.map(|queue| queue_settings(&queue.clone().unwrap_or_default()));
    Some(QueueRules {
        profile: QueueProfile {
            classes: all.collect(),
            overhead: policy.overhead.into(),
        },
        weight: policy.weight,
    })
}

/// Delays that are acceptable, in milliseconds: RFC 8289 §4.4, and RFC 9332, Appendix A.1.
const TARGET: u16 = 5;
const TARGET_DUAL: u16 = 15;
/// Time in which senders are expected to react to a drop (RFC 8289 §4.3).
const INTERVAL: Duration = Duration::from_millis(100);

fn queue_settings(queue: &Queue) -> QueueSettings {
    QueueSettings {
        discipline: match queue.strict {
            true => Discipline::Strict,
            false => Discipline::Weighted(queue.weight),
        },
        rate: queue.rate.map(|rate| Rate::kbps(rate.into())),
        limit: queue.limit,
        longest_wait: queue
            .longest_wait
            .map(|wait| Duration::from_micros(wait.into())),
        management: management(queue),
    }
}

/// What keeps packets from waiting for long.
fn management(queue: &Queue) -> Management {
    let usual = match queue.aqm {
        Aqm::Codel | Aqm::FqCodel => TARGET,
        Aqm::Dualpi2 => TARGET_DUAL,
    };
    let target = queue.target_delay.unwrap_or(usual);
    let target = Duration::from_millis(target.into());
    let interval = INTERVAL;
    match queue.aqm {
        _ if target.is_zero() => Management::TailDrop,
        Aqm::Codel => Management::CoDel { target, interval },
        Aqm::FqCodel => Management::FqCoDel { target, interval },
        Aqm::Dualpi2 => Management::DualPi2 { target },
    }
}

/// What a policer of the configuration is at the workers.
fn policer_settings(policer: &Policer) -> PolicerSettings {
    let usual = MeterSettings::usual_burst;
    let cir = Rate::kbps(policer.committed_rate.into());
    let [pir, eir] = [policer.peak_rate, policer.excess_rate]
        .map(|rate| rate.map_or(cir, |rate| Rate::kbps(rate.into())));
    let cbs = policer.committed_burst.unwrap_or_else(|| usual(cir));
    let pbs = policer.peak_burst.unwrap_or_else(|| usual(pir));
    let ebs = policer.excess_burst.unwrap_or_else(|| usual(eir));
    PolicerSettings {
        meter: match policer.algorithm {
            Algorithm::SingleRate => MeterSettings::SingleRate { cir, cbs, ebs },
            Algorithm::TwoRate => MeterSettings::TwoRate { pir, pbs, cir, cbs },
            Algorithm::TwoRateDifferentiated => {
                MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs }
            }
        },
        overhead: policer.overhead.into(),
        is_colour_aware: policer.colour_aware,
        yellow_mark: policer.yellow_mark.as_deref().and_then(acl::dscp_value),
    }
}
