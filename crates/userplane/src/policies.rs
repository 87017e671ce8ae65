//! Policies of the document: their numbers at the workers, and their compilation beside these.
//!
//! A session names a policy, and the document says what the policy is. Either may come first. A policy has a number as soon as one of
//! both names it; packets of its sessions are dropped (`policy-missing`) until it is compiled. A changed policy is compiled by a thread of
//! its own, while the workers use the former one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acl::Rule;
use config::UserPlaneDocument;
use config::model::{Acl, Algorithm, Policer, UndeterminedTransport, Unmatched};
use dataplane::{
    CompiledPolicy, Hits, MeterSettings, Overhead, PolicerSettings, PolicyIndex, PolicyRules, Rate,
};
use northbound::TrafficPolicyState;
use policy::Name;
use tokio::sync::mpsc;

type Numbers = BTreeMap<Name, PolicyIndex>;

/// Numbers of policies, by name. Copies are the same numbers.
#[derive(Clone, Debug)]
pub struct PolicyNumbers {
    numbers: Arc<Mutex<Numbers>>,
    most: u16,
}

impl PolicyNumbers {
    /// Numbers from 1 to `most`.
    pub fn new(most: u16) -> Self {
        PolicyNumbers {
            numbers: Arc::default(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        // whoever panics here leaves a map behind that is as good as before
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of a policy. `None`: no number is free.
    pub fn of(&self, name: &Name) -> Option<PolicyIndex> {
        let mut numbers = self.lock();
        if let Some(number) = numbers.get(name) {
            return Some(*number);
        }
        let taken: BTreeSet<PolicyIndex> = numbers.values().copied().collect();
        let all = (1..=self.most).filter_map(NonZeroU16::new).map(PolicyIndex);
        let free = all.into_iter().find(|number| !taken.contains(number))?;
        numbers.insert(name.clone(), free);
        Some(free)
    }

    /// The policy with a number.
    pub fn name(&self, number: PolicyIndex) -> Option<Name> {
        let numbers = self.lock();
        let mut all = numbers.iter();
        all.find(|(_, of)| **of == number)
            .map(|(name, _)| name.clone())
    }

    /// All policies that have numbers, in the order of their names.
    pub fn all(&self) -> Vec<(Name, PolicyIndex)> {
        let numbers = self.lock();
        let all = numbers.iter();
        all.map(|(name, number)| (name.clone(), *number)).collect()
    }

    /// Whether less than half of the numbers are free: time to look for those that nobody names.
    fn are_scarce(&self) -> bool {
        self.lock().len() > usize::from(self.most / 2)
    }

    /// Frees the numbers of policies that nobody names.
    fn retain(&self, is_named: impl Fn(&Name, PolicyIndex) -> bool) {
        self.lock().retain(|name, number| is_named(name, *number));
    }
}

impl Default for PolicyNumbers {
    fn default() -> Self {
        PolicyNumbers::new(dataplane::Limits::default().policies)
    }
}

/// A rule's place in the configuration: the name of its ACL, and its number.
pub(crate) type RulePlace = (Arc<str>, u32);

/// A policy as the document says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Definition {
    rules: PolicyRules,
    places: Vec<RulePlace>,
}

impl Definition {
    /// Definition of each policy of a document.
    fn all(document: &UserPlaneDocument) -> BTreeMap<Name, Arc<Definition>> {
        let policies = document.policies.iter();
        let named = policies.filter_map(|(name, policy)| Some((Name::new(name)?, policy)));
        let defined = named.map(|(name, policy)| {
            let mut definition = Definition::default();
            for acl in &policy.acls {
                let acl_name: Arc<str> = acl.as_str().into();
                let Some(acl) = document.acls.get(acl) else {
                    continue; // the document was checked
                };
                for (number, rule) in &acl.rules {
                    definition.rules.rules.push(rule.0.clone());
                    definition.rules.is_counted |= acl.count;
                    definition.places.push((acl_name.clone(), *number));
                }
            }
            let is_open = policy.acls.is_empty() || policy.unmatched == Unmatched::Permit;
            definition.rules.unmatched_pass = is_open;
            definition.rules.denies_undetermined = !policy.acls.is_empty()
                && policy.undetermined_transport == UndeterminedTransport::Deny;
            let policer = policy.policer.as_ref();
            let policer = policer.and_then(|name| document.policers.get(name));
            definition.rules.policer = policer.map(policer_settings);
            (name, Arc::new(definition))
        });
        defined.collect()
    }
}

/// Octets between Ethernet's header and the IP packet with PPPoE (RFC 2516 §4).
const PPPOE: u8 = 8;
/// Header, check sequence and two tags of an Ethernet frame, without preamble and gap.
const ETHERNET: u8 = 14 + 4 + 2 * 4;
/// LLC and padding in front of an Ethernet frame in AAL5, which goes without its check sequence (RFC 2684 §5.2).
const LLC: u8 = 10;

/// What a policer of the configuration is at the workers.
fn policer_settings(policer: &Policer) -> PolicerSettings {
    // 100 ms of the rate
    let usual = |rate: Rate| {
        let octets = rate.0 * 1000 / 8 / 10;
        u32::try_from(octets).unwrap_or(u32::MAX).max(15_000)
    };
    let cir = Rate(policer.committed_rate.into());
    let [pir, eir] = [policer.peak_rate, policer.excess_rate]
        .map(|rate| rate.map_or(cir, |rate| Rate(rate.into())));
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
        overhead: match policer.overhead {
            config::model::Overhead::Ip => Overhead::IP,
            config::model::Overhead::Ethernet => Overhead::ethernet(2, PPPOE),
            config::model::Overhead::Atm => Overhead::atm(LLC + 14 + PPPOE),
            config::model::Overhead::Ptm => Overhead::ptm(ETHERNET + PPPOE),
        },
        is_colour_aware: policer.colour_aware,
        yellow_mark: policer.yellow_mark.as_deref().and_then(acl::dscp_value),
    }
}

/// A policy that the workers have.
struct InForce {
    definition: Arc<Definition>,
    compiled: Arc<CompiledPolicy>,
}

impl InForce {
    /// The rules that were the first to match a packet, and how often.
    fn hits(&self) -> impl Iterator<Item = (&RulePlace, &Rule, Hits)> {
        let Definition { rules, places } = &*self.definition;
        let rules = places.iter().zip(&rules.rules);
        let counted = rules.zip(self.compiled.hits());
        let counted = counted.map(|((place, rule), hits)| (place, rule, hits));
        counted.filter(|(_, _, hits)| *hits != Hits::default())
    }
}

/// Compilation that was asked for.
struct Job {
    name: Name,
    definition: Arc<Definition>,
}

/// Compilation that is done.
pub(crate) struct Done {
    name: Name,
    definition: Arc<Definition>,
    result: Result<Arc<CompiledPolicy>, acl::TooLarge>,
}

/// How a policy stands with the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub state: TrafficPolicyState,
    /// Rules of the document.
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
    wanted: BTreeMap<Name, Arc<Definition>>,
    in_force: BTreeMap<Name, InForce>,
    /// Why a policy as it is wanted cannot be put in force.
    failed: BTreeMap<Name, String>,
    jobs: std::sync::mpsc::Sender<Job>,
    pub done: mpsc::UnboundedReceiver<Done>,
    /// Hits of rules in policies that were replaced.
    earlier: BTreeMap<RulePlace, (Rule, Hits)>,
}

impl TrafficPolicies {
    /// None yet, for so many workers.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(numbers: PolicyNumbers, workers: u16) -> std::io::Result<Self> {
        let (jobs, asked) = std::sync::mpsc::channel::<Job>();
        let (finished, done) = mpsc::unbounded_channel();
        let compile = move || {
            for Job { name, definition } in asked {
                let result = CompiledPolicy::new(&definition.rules, workers).map(Arc::new);
                let done = Done {
                    name,
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
            jobs,
            done,
            earlier: BTreeMap::new(),
        })
    }

    /// Follows a document: asks for the compilation of what is new or different, and returns the policies that the workers have to forget.
    /// `used` are the policies that sessions name.
    pub fn follow(
        &mut self,
        document: &UserPlaneDocument,
        used: impl FnOnce() -> BTreeMap<PolicyIndex, u64>,
    ) -> Vec<PolicyChange> {
        let wanted = Definition::all(document);
        for (name, definition) in &wanted {
            let before = self.wanted.get(name);
            if before.is_none_or(|before| before != definition) {
                self.failed.remove(name);
                let job = Job {
                    name: name.clone(),
                    definition: definition.clone(),
                };
                // the thread ends only with the user plane
                let _ = self.jobs.send(job);
            }
        }
        let gone = self
            .in_force
            .keys()
            .filter(|name| !wanted.contains_key(*name));
        let gone: Vec<Name> = gone.cloned().collect();
        self.failed.retain(|name, _| wanted.contains_key(name));
        self.wanted = wanted;
        let forgotten = gone.iter().filter_map(|name| self.replace(name, None));
        let forgotten = forgotten.collect();
        self.earlier.retain(|(acl, number), (rule, _)| {
            let acl = document.acls.get(&**acl);
            let configured = acl.and_then(|acl| acl.rules.get(number));
            configured.is_some_and(|configured| configured.0 == *rule)
        });
        if self.numbers.are_scarce() {
            let (wanted, used) = (&self.wanted, used());
            self.numbers
                .retain(|name, number| wanted.contains_key(name) || used.contains_key(&number));
        }
        forgotten
    }

    /// Takes a compiled policy; what the workers have to learn. `None`: a later document says something else, or the policy is too large.
    pub fn compiled(&mut self, done: Done) -> Option<PolicyChange> {
        let Done {
            name,
            definition,
            result,
        } = done;
        if self.wanted.get(&name) != Some(&definition) {
            return None;
        }
        match result {
            Ok(compiled) => {
                let (rules, octets) = (definition.places.len(), compiled.octets());
                tracing::info!(policy = %name, rules, octets, "policy compiled");
                self.replace(
                    &name,
                    Some(InForce {
                        definition,
                        compiled,
                    }),
                )
            }
            Err(why) => {
                tracing::error!(policy = %name, %why, "policy cannot be compiled: its sessions keep the former one, and without one \
                    their packets are dropped (`policy-missing`). Give it fewer or simpler rules");
                let trouble = format!("{why}: give it fewer or simpler rules");
                self.failed.insert(name, trouble);
                None
            }
        }
    }

    /// Puts a policy in force, or takes it away. What its rules have counted stays.
    fn replace(&mut self, name: &Name, policy: Option<InForce>) -> Option<PolicyChange> {
        let Some(number) = self.numbers.of(name) else {
            let trouble = format!(
                "{} other policies are named: remove some of them",
                self.numbers.most
            );
            self.failed.insert(name.clone(), trouble);
            return None;
        };
        let compiled = policy.as_ref().map(|policy| policy.compiled.clone());
        let former = match policy {
            Some(policy) => self.in_force.insert(name.clone(), policy),
            None => self.in_force.remove(name),
        };
        for (place, rule, hits) in former.iter().flat_map(InForce::hits) {
            let none = || (rule.clone(), Hits::default());
            let (of, sum) = self.earlier.entry(place.clone()).or_insert_with(none);
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
        let earlier = earlier.map(|(place, (rule, hits))| (place, rule, *hits));
        let now = self.in_force.values().flat_map(InForce::hits);
        let mut sums = BTreeMap::new();
        for ((of, number), rule, hits) in earlier.chain(now) {
            let configured = acl.rules.get(number).filter(|_| **of == *name);
            if configured.is_some_and(|configured| configured.0 == *rule) {
                add(sums.entry(*number).or_default(), hits);
            }
        }
        sums
    }

    /// The rule that denied a packet, with its place. `None`: it is of a policy that has been replaced since.
    pub fn rule(&self, compilation: u32, position: u16) -> Option<(&RulePlace, &Rule)> {
        let mut in_force = self.in_force.values();
        let policy = in_force.find(|policy| policy.compiled.compilation() == compilation)?;
        let Definition { rules, places } = &*policy.definition;
        let position = usize::from(position);
        Some((places.get(position)?, rules.rules.get(position)?))
    }

    /// Names of the document's policies, in their order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.wanted.keys()
    }

    /// How a policy stands with the workers.
    pub fn standing(&self, name: &Name) -> Standing {
        let (wanted, in_force) = (self.wanted.get(name), self.in_force.get(name));
        let trouble = self.failed.get(name).cloned();
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
            rules: wanted.map_or(0, |wanted| wanted.places.len()),
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
mod tests;
