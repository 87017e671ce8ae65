//! Policies of packets: their numbers at the workers, and their compilation beside these.
//!
//! A session names a policy, and the document says what the policy is. Either may come first. A policy has a number as soon as one of
//! both names it; packets of its sessions are dropped (`policy-missing`) until it is compiled. A changed policy is compiled by a thread of
//! its own, while the workers use the former one. A session may also have rules of its own. Then its policy is those rules and the named
//! one's behind them, for as long as a session has both.

mod definition;
mod numbers;

use std::collections::BTreeMap;
use std::sync::Arc;

use acl::Rule;
use config::UserPlaneDocument;
use config::model::Acl;
use dataplane::{CompiledPolicy, Hits, PolicyCompiler, PolicyIndex};
use northbound::TrafficPolicyState;
use policy::Name;
use tokio::sync::mpsc;

use definition::Definition;
pub(crate) use definition::RulePlace;
pub use definition::rules_behind;
pub use numbers::{Claim, NoRule, PolicyKey, PolicyNumbers};

/// A policy that the workers have.
struct InForce {
    definition: Arc<Definition>,
    compiled: Arc<CompiledPolicy>,
}

impl InForce {
    /// The rules that were the first to match a packet, and how often.
    fn hits(&self) -> impl Iterator<Item = (RulePlace<'_>, &Rule, Hits)> {
        let counted = self.definition.rules().zip(self.compiled.hits());
        let counted = counted.map(|((place, rule), hits)| (place, rule, hits));
        counted.filter(|(_, _, hits)| *hits != Hits::default())
    }
}

/// Compilation that was asked for.
struct Job {
    key: PolicyKey,
    definition: Arc<Definition>,
}

/// Compilation that is done.
pub(crate) struct Done {
    key: PolicyKey,
    definition: Arc<Definition>,
    result: Result<Arc<CompiledPolicy>, acl::TooLarge>,
}

/// How a policy stands with the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub state: TrafficPolicyState,
    /// Number of rules.
    pub rules: usize,
    /// Memory of what the workers have, in octets. `None`: they have nothing.
    pub octets: Option<usize>,
    /// Why the policy cannot be compiled, and what to do.
    pub trouble: Option<String>,
}

/// A change for the workers.
pub(crate) struct PolicyChange {
    pub number: PolicyIndex,
    pub policy: Option<Arc<CompiledPolicy>>,
}

/// The policies of the user plane.
pub(crate) struct TrafficPolicies {
    pub numbers: PolicyNumbers,
    wanted: BTreeMap<PolicyKey, Arc<Definition>>,
    in_force: BTreeMap<PolicyKey, InForce>,
    /// Why a policy as it is wanted cannot be put in force.
    failed: BTreeMap<PolicyKey, String>,
    /// What compiles for the workers.
    pub compiler: PolicyCompiler,
    jobs: std::sync::mpsc::Sender<Job>,
    pub done: mpsc::UnboundedReceiver<Done>,
    /// Hits of rules in policies that were replaced, by the name of the ACL and the number.
    earlier: BTreeMap<(Arc<str>, u32), (Rule, Hits)>,
}

impl TrafficPolicies {
    /// None yet, for the workers that `compiler` is for.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(numbers: PolicyNumbers, compiler: PolicyCompiler) -> std::io::Result<Self> {
        let (jobs, asked) = std::sync::mpsc::channel::<Job>();
        let (finished, done) = mpsc::unbounded_channel();
        let compile = move || {
            for Job { key, definition } in asked {
                let result = compiler.compile(&definition.source()).map(Arc::new);
                let done = Done {
                    key,
                    definition,
                    result,
                };
                if finished.send(done).is_err() {
                    return; // the user plane has ended
                }
            }
        };
        let thread = std::thread::Builder::new().name("policies".to_owned());
        thread.spawn(compile)?;
        Ok(TrafficPolicies {
            numbers,
            wanted: BTreeMap::new(),
            in_force: BTreeMap::new(),
            failed: BTreeMap::new(),
            compiler,
            jobs,
            done,
            earlier: BTreeMap::new(),
        })
    }

    /// Follows a document: asks for the compilation of what is new or different, and returns the policies that the workers have to forget.
    pub fn follow(&mut self, document: &UserPlaneDocument) -> Vec<PolicyChange> {
        let with_rules = self.numbers.with_rules().into_iter().map(|(key, _)| key);
        let with_rules: Vec<_> = with_rules
            .filter_map(|key| Some((key.clone(), Definition::of(document, &key)?)))
            .collect();
        let former = std::mem::take(&mut self.wanted);
        for (key, definition) in Definition::all(document).chain(with_rules) {
            match former.get(&key) {
                Some(same) if **same == definition => {
                    self.wanted.insert(key, same.clone());
                }
                _ => self.want(key, definition),
            }
        }
        let wanted = &self.wanted;
        let in_force = self.in_force.keys();
        let gone = in_force.filter(|key| !wanted.contains_key(*key));
        let gone: Vec<PolicyKey> = gone.cloned().collect();
        self.failed.retain(|key, _| wanted.contains_key(key));
        let forgotten = gone.iter().filter_map(|key| self.replace(key, None));
        let forgotten = forgotten.collect();
        self.earlier.retain(|(acl, number), (rule, _)| {
            let acl = document.acls.get(&**acl);
            let configured = acl.and_then(|acl| acl.rules.get(number));
            configured.is_some_and(|configured| configured.0 == *rule)
        });
        if self.numbers.are_scarce() {
            self.numbers.retain(|key| self.wanted.contains_key(key));
        }
        forgotten
    }

    /// Asks for the compilation of a policy.
    fn want(&mut self, key: PolicyKey, definition: Definition) {
        let definition = Arc::new(definition);
        self.failed.remove(&key);
        self.wanted.insert(key.clone(), definition.clone());
        // the thread ends only with the user plane
        let _ = self.jobs.send(Job { key, definition });
    }

    /// Asks for the compilation of the policies with rules that sessions have begun to name. `document` is the one that was followed last.
    pub fn take_news(&mut self, document: &UserPlaneDocument) {
        for key in self.numbers.news() {
            if !self.wanted.contains_key(&*key)
                && let Some(definition) = Definition::of(document, &key)
            {
                self.want(PolicyKey::clone(&key), definition);
            }
        }
    }

    /// Returns policies with rules that no session names any more, which the workers have to forget. Their numbers are free when the next call
    /// finds them forgotten, so that no other policy has such a number before.
    pub fn forget_unused(&mut self) -> Vec<PolicyChange> {
        let with_rules = self.numbers.with_rules().into_iter();
        let unused = with_rules.filter(|(_, is_claimed)| !is_claimed);
        let unused: Vec<PolicyKey> = unused.map(|(key, _)| key).collect();
        if unused.is_empty() {
            return Vec::new();
        }
        let (wanted, in_force) = (&mut self.wanted, &self.in_force);
        unused.iter().for_each(|key| {
            wanted.remove(key);
        });
        let is_kept = |key: &PolicyKey| wanted.contains_key(key) || in_force.contains_key(key);
        self.numbers
            .retain(|key| key.rules.is_none() || is_kept(key));
        self.failed.retain(|key, _| wanted.contains_key(key));
        let forgotten = unused.iter().filter(|key| self.in_force.contains_key(key));
        let forgotten: Vec<PolicyKey> = forgotten.cloned().collect();
        let changes = forgotten.iter().filter_map(|key| self.replace(key, None));
        changes.collect()
    }

    /// Takes a compiled policy; what the workers have to learn. `None`: a later document says something else, or the policy is too large.
    pub fn compiled(&mut self, done: Done) -> Option<PolicyChange> {
        let Done {
            key,
            definition,
            result,
        } = done;
        if self.wanted.get(&key) != Some(&definition) {
            return None;
        }
        match result {
            Ok(compiled) => {
                let (rules, octets) = (definition.size(), compiled.octets());
                tracing::info!(policy = %key, rules, octets, "policy compiled");
                self.replace(
                    &key,
                    Some(InForce {
                        definition,
                        compiled,
                    }),
                )
            }
            Err(why) => {
                tracing::error!(policy = %key, %why, "policy cannot be compiled: its sessions keep the former one, and without one \
                    their packets are dropped (`policy-missing`). Give it fewer or simpler rules");
                let trouble = format!("{why}: give it fewer or simpler rules");
                self.failed.insert(key, trouble);
                None
            }
        }
    }

    /// Puts a policy in force, or takes it away. What its rules have counted stays.
    fn replace(&mut self, key: &PolicyKey, policy: Option<InForce>) -> Option<PolicyChange> {
        let Some(number) = self.numbers.of(key) else {
            let trouble = format!(
                "{} other policies are named: remove some of them",
                self.numbers.most()
            );
            self.failed.insert(key.clone(), trouble);
            return None;
        };
        let compiled = policy.as_ref().map(|policy| policy.compiled.clone());
        let former = match policy {
            Some(policy) => self.in_force.insert(key.clone(), policy),
            None => self.in_force.remove(key),
        };
        for (place, rule, hits) in former.iter().flat_map(InForce::hits) {
            let RulePlace::Acl(acl, position) = place else {
                continue;
            };
            let none = || (rule.clone(), Hits::default());
            let earlier = self.earlier.entry((acl.clone(), position));
            let (of, sum) = earlier.or_insert_with(none);
            if of != rule {
                (*of, *sum) = none();
            }
            add(sum, hits);
        }
        Some(PolicyChange {
            number,
            policy: compiled,
        })
    }

    /// How often each rule of an ACL was the first to match, in all policies, by its number. A rule that was changed begins anew.
    pub fn hits(&self, name: &str, acl: &Acl) -> BTreeMap<u32, Hits> {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|((of, number), (rule, hits))| (of, *number, rule, *hits));
        let now = self.in_force.values().flat_map(InForce::hits);
        let now = now.filter_map(|(place, rule, hits)| match place {
            RulePlace::Acl(of, number) => Some((of, number, rule, hits)),
            RulePlace::Subscriber(_) => None,
        });
        let mut sums = BTreeMap::new();
        for (of, number, rule, hits) in earlier.chain(now) {
            let configured = acl.rules.get(&number).filter(|_| **of == *name);
            if configured.is_some_and(|configured| configured.0 == *rule) {
                add(sums.entry(number).or_default(), hits);
            }
        }
        sums
    }

    /// The rule that denied a packet, with its place. `None`: it is of a policy that has been replaced since.
    pub fn rule(&self, compilation: u32, position: u16) -> Option<(RulePlace<'_>, &Rule)> {
        self.rules(compilation)?.nth(position.into())
    }

    /// The rules of a compilation, each with its place. `None`: it has been replaced since.
    pub fn rules(&self, compilation: u32) -> Option<impl Iterator<Item = (RulePlace<'_>, &Rule)>> {
        let mut in_force = self.in_force.values();
        let policy = in_force.find(|policy| policy.compiled.compilation() == compilation)?;
        Some(policy.definition.rules())
    }

    /// The policy with a number, as it is in force.
    pub fn in_force(&self, number: PolicyIndex) -> Option<&CompiledPolicy> {
        let policy = self.in_force.get(&self.numbers.key(number)?)?;
        Some(&policy.compiled)
    }

    /// Names of the document's policies, in their order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        let alone = self.wanted.keys().filter(|key| key.rules.is_none());
        alone.filter_map(|key| key.policy.as_ref())
    }

    /// Names of the classes of a policy that is in force, in their order.
    pub fn classes(&self, key: &PolicyKey) -> impl Iterator<Item = &str> {
        let policy = self.in_force.get(key).into_iter();
        policy.flat_map(|policy| {
            policy
                .definition
                .settings
                .classes
                .iter()
                .map(|class| &*class.name)
        })
    }

    /// How a policy stands with the workers.
    pub fn standing(&self, key: &PolicyKey) -> Standing {
        let (wanted, in_force) = (self.wanted.get(key), self.in_force.get(key));
        let trouble = self.failed.get(key).cloned();
        let state = match (wanted, in_force) {
            (None, _) => TrafficPolicyState::Missing,
            _ if trouble.is_some() => TrafficPolicyState::TooLarge,
            (Some(wanted), Some(policy)) if policy.definition == *wanted => {
                TrafficPolicyState::InForce
            }
            _ => TrafficPolicyState::Compiling,
        };
        Standing {
            state,
            rules: wanted.map_or(0, |wanted| wanted.size()),
            octets: in_force.map(|policy| policy.compiled.octets()),
            trouble,
        }
    }
}

fn add(sum: &mut Hits, hits: Hits) {
    sum.packets += hits.packets;
    sum.octets += hits.octets;
}

#[cfg(test)]
mod leaves;
#[cfg(test)]
mod tests;
