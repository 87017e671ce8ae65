//! Rules that subscribers have from RADIUS (NAS-Filter-Rule): bounded, and kept once for all sessions that have the same.

use crate::acls;
use acl::{Classifier, Rule, TooLarge};
use config::Configuration;
use policy::{Direction, FilterRules, Name, TrafficPolicies};
use std::collections::BTreeMap;

/// Maximum number of different sets of rules that sessions have at a time. A user plane compiles a policy of each, for each direction and
/// for each policy behind it, and has room for 4,096 policies.
const MOST: usize = 1024;

/// A direction, and the policy in front of which rules are in it.
type Combination = (Direction, Option<Name>);
/// Whether rules fit there, or why not.
type Fit = Result<(), String>;

/// Sets of rules that sessions have, each with the combinations in which it was tried.
#[derive(Default)]
pub(crate) struct FilterSets(BTreeMap<FilterRules, BTreeMap<Combination, Fit>>);

impl FilterSets {
    /// Lets a session's rules be those of other sessions that have the same.
    ///
    /// # Errors
    /// Text for the operator: the sessions have too many different sets already.
    pub fn share(&mut self, rules: &mut Option<FilterRules>) -> Result<(), String> {
        let Some(own) = rules else {
            return Ok(());
        };
        if let Some((known, _)) = self.0.get_key_value(own) {
            *own = known.clone();
            return Ok(());
        }
        if self.0.len() >= MOST {
            self.0.retain(|rules, _| rules.is_shared());
        }
        if self.0.len() >= MOST {
            return Err(format!(
                "sessions have {MOST} different sets of NAS-Filter-Rules, the most that there may be: let subscribers have the same \
                 rules, or name a policy by Filter-Id (`{own}`)"
            ));
        }
        // a copy, so that only sessions share it
        *own = own.unshared();
        self.0.insert(own.clone(), BTreeMap::new());
        Ok(())
    }

    /// Whether a session's own rules can be compiled together with the ACLs of its policies, as its user plane will. Each combination is
    /// tried once. That takes microseconds for each rule, and milliseconds for each thousand rules if these tell many ports apart.
    ///
    /// # Errors
    /// Text for the operator: they are too large together.
    pub fn check(
        &mut self,
        policies: &TrafficPolicies,
        configuration: &Configuration,
    ) -> Result<(), String> {
        let Some(rules) = &policies.filter_rules else {
            return Ok(());
        };
        for direction in Direction::BOTH {
            let name = policies.of(direction);
            let combination = (direction, name.cloned());
            let known = self.0.get(rules).and_then(|tried| tried.get(&combination));
            let fit = known.cloned().unwrap_or_else(|| {
                let policy = name.and_then(|name| configuration.policies.get(name.as_str()));
                let of_policy = policy.map(|policy| acls::rules_of(&configuration.acls, policy));
                fit(own_rules(rules, direction), of_policy.unwrap_or_default()).map_err(|why| {
                    let behind = name.map_or(String::new(), |name| format!(" with policy {name}"));
                    format!(
                        "NAS-Filter-Rule{behind} is too large: {why}. Let AAA send fewer rules, or give the ACLs of the policy fewer or \
                            simpler ones"
                    )
                })
            });
            if let Some(tried) = self.0.get_mut(rules) {
                tried.insert(combination, fit.clone());
            }
            fit?;
        }
        Ok(())
    }

    /// Lets all combinations be tried anew, since ACLs or policies may have changed.
    pub fn forget_checks(&mut self) {
        self.0.values_mut().for_each(BTreeMap::clear);
    }
}

/// Whether rules can be compiled in front of those of a policy. Only where that is in doubt are they compiled. Without rules of its own, the policy
/// is one of the configuration, which was checked at its commit.
fn fit(own: Vec<Rule>, of_policy: Vec<Rule>) -> Result<(), TooLarge> {
    if own.is_empty() {
        return Ok(());
    }
    let rules = [own, of_policy].concat();
    match acl::surely_fits(&rules) {
        true => Ok(()),
        false => Classifier::new(&rules).map(drop),
    }
}

/// Rules of a direction. What is no rule was refused when it came.
fn own_rules(rules: &FilterRules, direction: Direction) -> Vec<Rule> {
    let wanted = match direction {
        Direction::Up => acl::Direction::In,
        Direction::Down => acl::Direction::Out,
    };
    let rules = rules.iter().filter_map(|text| text.parse::<Rule>().ok());
    rules
        .filter(|rule| rule.direction() == Some(wanted))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn rules(number: usize) -> Option<FilterRules> {
        FilterRules::new(&format!("deny in tcp from any to any {number}"))
    }

    #[test]
    fn sets_are_shared_bounded_and_freed_with_their_last_session() {
        let mut sets = FilterSets::default();
        let mut sessions: Vec<_> = (0..MOST).map(rules).collect();
        for session in &mut sessions {
            assert_eq!(sets.share(session), Ok(()));
        }
        let mut another = rules(7);
        assert_eq!(sets.share(&mut another), Ok(()), "it is known");
        let mut further = rules(MOST);
        let why = sets.share(&mut further).unwrap_err();
        assert!(
            why.starts_with("sessions have 1024 different sets"),
            "{why}"
        );
        assert!(why.contains("to any 1024"), "{why}");
        assert_eq!(sets.share(&mut None), Ok(()));
        sessions[7] = None;
        assert!(sets.share(&mut further).is_err(), "one more has it");
        drop(another);
        assert_eq!(sets.share(&mut further), Ok(()));
    }

    #[test]
    fn what_only_a_last_answer_has_takes_no_room() {
        let mut sets = FilterSets::default();
        let last_answer = rules(1);
        let mut session = last_answer.clone();
        assert_eq!(sets.share(&mut session), Ok(()));
        drop(session);
        sets.0.retain(|rules, _| rules.is_shared());
        assert!(sets.0.is_empty());
    }

    /// 1,016 sets of ports in each of 64 parts, of 1,024 that a classifier can nearly tell apart.
    const OFFSETS: usize = 508;

    /// A rule whose 64 ranges of ports begin at an offset of each of 64 parts.
    fn periodic(action: &str, offset: usize) -> String {
        let ranges = (0..64).map(|part| 1024 * part + offset);
        let ranges: Vec<String> = ranges
            .map(|port| format!("{port}-{}", port + 511))
            .collect();
        format!("{action} tcp from any to any {}", ranges.join(","))
    }

    /// Policies of an ACL that tells nearly as many ports apart as a classifier can, and of one that does not.
    fn with_offsets(offsets: usize) -> Arc<Configuration> {
        let periodic = (0..offsets).map(|offset| periodic("deny", offset));
        let parts = (1..64).map(|part| format!("deny tcp from any to any 0-{}", 1024 * part - 1));
        let rules = (1..).zip(periodic.chain(parts));
        let rules: String = rules
            .map(|(number, rule)| format!("    {number}: {rule}\n"))
            .collect();
        let text = format!(
            "acls:\n  ports:\n   rules:\n{rules}  few: {{rules: {{1: deny ip from any to any}}}}\n\
            policies: {{large: {{acls: [ports]}}, small: {{acls: [few]}}}}\n"
        );
        config::check::read(&text).unwrap().configuration
    }

    #[test]
    fn rules_that_do_not_fit_in_front_of_a_policy_are_refused_by_its_name() {
        let configuration = with_offsets(OFFSETS);
        let named = |up: &str, down: &str, rules: &str| TrafficPolicies {
            policy_up: Name::new(up),
            policy_down: Name::new(down),
            filter_rules: FilterRules::new(rules),
        };
        let one = &periodic("deny in", OFFSETS);
        let four = (0..4).map(|more| periodic("deny in", OFFSETS + more));
        let four = &four.collect::<Vec<String>>().join("\0");
        let mut sets = FilterSets::default();
        for rules in [one, four] {
            sets.share(&mut FilterRules::new(rules)).unwrap();
        }
        let mut check = |up, down, rules| sets.check(&named(up, down, rules), &configuration);
        assert_eq!(check("large", "large", one), Ok(()));
        // they are for the way up
        assert_eq!(check("small", "large", four), Ok(()));
        assert_eq!(check("large", "large", ""), Ok(()));
        assert_eq!(check("nowhere", "", four), Ok(()));
        for _ in 0..2 {
            let why = check("large", "large", four).unwrap_err();
            let words = "NAS-Filter-Rule with policy large is too large: the rules tell more than 65,535 sets of ports";
            assert!(why.starts_with(words), "{why}");
        }
        // nothing is tried again, until the configuration has changed
        let larger = with_offsets(OFFSETS + 4);
        let known = named("large", "large", one);
        assert_eq!(sets.check(&known, &larger), Ok(()));
        sets.forget_checks();
        let why = sets.check(&known, &larger).unwrap_err();
        assert_eq!(sets.check(&known, &configuration), Err(why));
        sets.forget_checks();
        assert_eq!(sets.check(&known, &configuration), Ok(()));
    }
}
