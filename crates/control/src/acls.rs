//! What is said of changed ACLs and policies before a commit: rules that never match, classes without packets, and policies that are too large.

use config::model::{Acl, Acls, Policer, TrafficClass, TrafficPolicy};
use config::{Configuration, Fault, Path};
use northbound::Effect;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of rules that are named; the others are counted.
const MOST: usize = 20;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// For whoever commits the change.
    pub remarks: Vec<Effect>,
    /// Why it cannot be committed.
    pub faults: Vec<Fault>,
}

/// Looks at the ACLs and policies by which two configurations differ. Takes milliseconds for each thousand rules.
pub(crate) fn examine(before: &Configuration, new: &Configuration) -> Findings {
    let mut found = Findings::default();
    let changed = new
        .acls
        .iter()
        .filter(|(name, acl)| before.acls.get(*name) != Some(*acl));
    let never = changed.flat_map(|(name, acl)| shadowed(name, acl));
    let policies = new.policies.iter();
    let policies = policies.filter(|(name, policy)| !has_same_rules(before, new, name, policy));
    let never = never
        .chain(policies.flat_map(|(name, policy)| shadowed_by_others(&new.acls, name, policy)));
    let never: Vec<String> = never.collect();
    let more = never.len().saturating_sub(MOST);
    let rest = (more > 0).then(|| format!("{more} more rules never match"));
    let texts = never.into_iter().take(MOST).chain(rest);
    found.remarks.extend(texts.map(remark));
    for (name, policy) in &new.policies {
        let policers = |of: &Configuration| -> Vec<Option<Policer>> {
            let of_classes = policy.classes.values().map(|class| &class.policer);
            let names = of_classes.chain([&policy.policer]);
            let policer = |name: &Option<String>| of.policers.get(name.as_ref()?).cloned();
            names.map(policer).collect()
        };
        let former = before.policies.get(name);
        let same_rules = has_same_rules(before, new, name, policy);
        if same_rules && policers(before) == policers(new) {
            continue;
        }
        if former.is_some() {
            let text = format!("policy {name} changes for the packets of all its sessions");
            found.remarks.push(remark(text));
        }
        let empty = empty_classes(&new.acls, name, policy);
        found.remarks.extend(empty.map(remark));
        if !same_rules && let Err(why) = acl::Classifier::new(&rules_of(&new.acls, policy)) {
            found.faults.push(Fault {
                line: 0,
                path: Path::from_iter(["policies", name, "acls"]),
                message: format!("{why}: give the ACLs fewer or simpler rules"),
            });
        }
    }
    found
}

/// Whether a policy is what it was, with the same rules.
fn has_same_rules(
    before: &Configuration,
    new: &Configuration,
    name: &str,
    policy: &TrafficPolicy,
) -> bool {
    let is_same = before.policies.get(name) == Some(policy);
    is_same && acls_of(&before.acls, policy).eq(acls_of(&new.acls, policy))
}

fn remark(text: String) -> Effect {
    Effect {
        text,
        sessions: 0,
        ends: false,
    }
}

/// Rules of an ACL that an earlier one keeps from ever matching.
fn shadowed(name: &str, acl: &Acl) -> Vec<String> {
    let numbers: Vec<&u32> = acl.rules.keys().collect();
    let rules: Vec<acl::Rule> = acl.rules.values().map(|rule| rule.0.clone()).collect();
    let never = acl::shadowed(&rules).into_iter();
    let text = |(rule, earlier): (usize, usize)| {
        format!(
            "rule {} of ACL {name} never matches: rule {} matches all of its packets",
            numbers[rule], numbers[earlier]
        )
    };
    never.map(text).collect()
}

/// Rules that never match in a policy, since a rule of an ACL before theirs matches all of their packets.
fn shadowed_by_others(acls: &Acls, name: &str, policy: &TrafficPolicy) -> Vec<String> {
    let rules = rules_of(acls, policy);
    // more rules than that are refused, and each one is compared with all before it
    if policy.acls.len() < 2 || rules.len() > acl::MOST_RULES {
        return Vec::new();
    }
    let listed = policy.acls.iter();
    let listed = listed.filter_map(|name| Some((name, acls.get(name)?)));
    let places: Vec<(&String, &u32)> = listed
        .flat_map(|(name, acl)| acl.rules.keys().map(move |number| (name, number)))
        .collect();
    let never = acl::shadowed(&rules).into_iter();
    let never = never.map(|(rule, earlier)| (places[rule], places[earlier]));
    // those of one ACL are told of the ACL
    let never = never.filter(|((acl, _), (by, _))| acl != by);
    let text = |((acl, rule), (by, earlier))| {
        format!(
            "rule {rule} of ACL {acl} never matches in policy {name}: rule {earlier} of ACL {by} matches all of its packets"
        )
    };
    never.map(text).collect()
}

/// Classes of a policy that nothing in the configuration puts packets into. RADIUS may, by NAS-Filter-Rule.
fn empty_classes<'a>(
    acls: &'a Acls,
    name: &'a str,
    policy: &'a TrafficPolicy,
) -> impl Iterator<Item = String> {
    let rules = acls_of(acls, policy).flat_map(|acl| acl.rules.values());
    let named: BTreeSet<&str> = rules.filter_map(|rule| rule.0.class()).collect();
    let is_empty = move |(class, of): &(&String, &TrafficClass)| {
        of.dscp.is_empty() && of.vlan_priority.is_empty() && !named.contains(class.as_str())
    };
    let empty = policy.classes.iter().filter(is_empty);
    empty.map(move |(class, _)| {
        format!(
            "no packet comes into class {class} of policy {name}, unless a rule of RADIUS says so: it has neither `dscp` nor \
                `vlan-priority`, and no rule of the policy's ACLs has `class {class}`"
        )
    })
}

fn acls_of<'a>(acls: &'a Acls, policy: &'a TrafficPolicy) -> impl Iterator<Item = &'a Arc<Acl>> {
    policy.acls.iter().filter_map(|name| acls.get(name))
}

/// Rules of a policy's ACLs, in the order in which they are tried.
pub(crate) fn rules_of(acls: &Acls, policy: &TrafficPolicy) -> Vec<acl::Rule> {
    let rules = acls_of(acls, policy).flat_map(|acl| acl.rules.values());
    rules.map(|rule| rule.0.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Findings {
        let new = config::check::read(text).unwrap().configuration;
        examine(&Configuration::default(), &new)
    }

    #[test]
    fn a_rule_behind_one_that_takes_all_its_packets_is_named() {
        let text = "acls: {base: {rules: {
            10: deny tcp from any to 192.0.2.0/24 1-1023,
            20: permit tcp from 10.0.0.0/8 to 192.0.2.7 80,
            30: permit ip from any to any,
            40: deny udp from any to any}}}";
        let found = of(text);
        let texts: Vec<&str> = found.remarks.iter().map(|e| e.text.as_str()).collect();
        let wanted = [
            "rule 20 of ACL base never matches: rule 10 matches all of its packets",
            "rule 40 of ACL base never matches: rule 30 matches all of its packets",
        ];
        assert_eq!(texts, wanted);
        assert!(found.faults.is_empty());
        // what stays as it was is not told again
        let same = config::check::read(text).unwrap().configuration;
        assert!(examine(&same, &same).remarks.is_empty());
    }

    #[test]
    fn a_rule_behind_one_of_another_acl_of_its_policy_is_named() {
        let text = "acls: {
    base: {rules: {10: deny tcp from any to any 25, 20: permit tcp from any to 192.0.2.0/24}},
    service: {rules: {
        10: permit tcp from any to 192.0.2.7 80,
        20: permit tcp from any to any 80,
        30: deny tcp from any to 192.0.2.8 80}}}
policies: {
    both: {acls: [base, service]}, other: {acls: [service, base]}, one: {acls: [service]}}";
        let inside = "rule 30 of ACL service never matches: rule 20 matches all of its packets";
        let both = [10, 30].map(|rule| {
            format!("rule {rule} of ACL service never matches in policy both: rule 20 of ACL base matches all of its packets")
        });
        let texts = |before: &Configuration, new: &str| -> Vec<String> {
            let new = config::check::read(new).unwrap().configuration;
            let remarks = examine(before, &new).remarks.into_iter();
            let texts = remarks.map(|remark| remark.text);
            texts.filter(|text| text.contains("matches all")).collect()
        };
        let nothing = Configuration::default();
        assert_eq!(texts(&nothing, text), [inside, &both[0], &both[1]]);
        // another order is a change, and an ACL that changes is one of all policies that have it
        let before = config::check::read(text).unwrap().configuration;
        let turned = text.replace("[service, base]", "[base, service]");
        let other = both.clone().map(|text| text.replace("both", "other"));
        assert_eq!(texts(&before, &turned), other);
        let without = text.replace(",\n        30: deny tcp from any to 192.0.2.8 80", "");
        assert_eq!(texts(&before, &without), both[..1]);
        assert!(texts(&before, text).is_empty());
    }

    #[test]
    fn a_class_that_nothing_maps_to_is_named() {
        let found = of(
            "acls: {base: {rules: {10: permit udp from any to any class calls}}}
policies: {home: {acls: [base], classes: {
    calls: {}, video: {dscp: [af41]}, game: {vlan-priority: [4]}, work: {mark: af21}}}}",
        );
        let texts: Vec<&str> = found.remarks.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].starts_with("no packet comes into class work of policy home"));
        assert!(found.faults.is_empty());
    }

    #[test]
    fn a_policy_that_changes_is_named() {
        let read = |rule: &str, rate: u32| {
            let text = format!(
                "acls: {{a: {{rules: {{10: {rule}}}}}, b: {{}}}}
policers: {{p: {{algorithm: single-rate, committed-rate: {rate}}}}}
policies: {{with: {{acls: [a]}}, without: {{acls: [b]}}, policed: {{policer: p}}}}"
            );
            config::check::read(&text).unwrap().configuration
        };
        let deny = "deny tcp from any to any 25";
        let texts = |rule, rate| {
            let found = examine(&read(deny, 1000), &read(rule, rate));
            let texts = found.remarks.into_iter().map(|remark| remark.text);
            texts.collect::<Vec<_>>()
        };
        assert!(texts(deny, 1000).is_empty());
        let with = texts("deny tcp from any to any 26", 1000);
        assert_eq!(
            with,
            ["policy with changes for the packets of all its sessions"]
        );
        let policed = texts(deny, 2000);
        assert_eq!(
            policed,
            ["policy policed changes for the packets of all its sessions"]
        );
    }

    #[test]
    fn many_are_counted() {
        let rules: String = (1..=100)
            .map(|n| format!("{n}: deny ip from any to any, "))
            .collect();
        let found = of(&format!("acls: {{all: {{rules: {{{rules}}}}}}}"));
        assert_eq!(found.remarks.len(), MOST + 1);
        assert_eq!(found.remarks[MOST].text, "79 more rules never match");
    }
}
