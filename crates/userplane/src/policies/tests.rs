//! Policies by documents that follow each other.

use super::*;
use config::model::TrafficPolicy;
use policy::{Direction, FilterRules, TrafficPolicies as Named};
use std::num::NonZeroU16;

const DENY: &str = "deny tcp from any to any 25";
const PERMIT: &str = "permit ip from any to any";

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn number(number: u16) -> PolicyIndex {
    PolicyIndex(NonZeroU16::new(number).unwrap())
}

/// A document with policies of an ACL each, which has the policy's name and these rules, numbered by tens.
fn document(policies: &[(&str, &[&str])]) -> UserPlaneDocument {
    let mut document = UserPlaneDocument::default();
    for (name, rules) in policies {
        let rules = (1..).zip(*rules);
        let rules: String = rules
            .map(|(number, rule)| format!("  {number}0: {rule}\n"))
            .collect();
        let acl = serde_saphyr::from_str(&format!("count: true\nrules:\n{rules}"));
        let policy = TrafficPolicy {
            acls: vec![(*name).to_owned()],
            ..TrafficPolicy::default()
        };
        document
            .acls
            .insert((*name).to_owned(), Arc::new(acl.unwrap()));
        document.policies.insert((*name).to_owned(), policy);
    }
    document
}

/// A policy with one rule more than a classifier may have.
fn too_large(name: &str) -> UserPlaneDocument {
    document(&[(name, &[DENY; acl::MOST_RULES + 1])])
}

fn key(text: &str) -> PolicyKey {
    PolicyKey::named(&name(text))
}

/// Rules of a subscriber, in front of a policy.
fn with_rules(rules: &[&str], policy: Option<&str>) -> PolicyKey {
    PolicyKey {
        policy: policy.map(name),
        rules: FilterRules::new(&rules.join("\0")),
    }
}

struct Bench(TrafficPolicies);

impl Bench {
    fn new(most: u16) -> Self {
        let compiler = PolicyCompiler {
            workers: 1,
            hz: 1_000_000_000,
        };
        Bench(TrafficPolicies::start(PolicyNumbers::new(most), compiler).unwrap())
    }

    /// Follows a document in which nothing is removed.
    fn follow(&mut self, document: &UserPlaneDocument) {
        assert!(self.0.follow(document).is_empty());
    }

    /// Takes the next compilation.
    fn compiled(&mut self) -> Option<PolicyChange> {
        let done = self.0.done.blocking_recv().unwrap();
        self.0.compiled(done)
    }

    fn state(&self, of: &str) -> TrafficPolicyState {
        self.0.standing(&key(of)).state
    }
}

#[test]
fn numbers_are_stable_and_freed_only_when_nobody_names_them() {
    let numbers = PolicyNumbers::new(4);
    let [a, b, c] = ["a", "b", "c"].map(|text| numbers.of(&key(text)).unwrap());
    assert_eq!([a, b, c], [1, 2, 3].map(number));
    assert_eq!(numbers.clone().of(&key("b")), Some(b), "copies agree");
    assert_eq!(numbers.key(c), Some(key("c")));
    assert!(numbers.are_scarce());
    let (claimed, claim) = numbers.claim(&key("c")).unwrap();
    assert_eq!(claimed, c);
    numbers.retain(|wanted| *wanted == key("a"));
    assert_eq!((numbers.key(a), numbers.key(b)), (Some(key("a")), None));
    assert!(!numbers.are_scarce());
    assert_eq!(numbers.of(&key("c")), Some(c));
    assert_eq!(numbers.of(&key("d")), Some(b), "the first that is free");
    assert_eq!(numbers.of(&key("e")), Some(number(4)));
    assert_eq!(numbers.of(&key("f")), None);
    drop(claim);
    numbers.retain(|_| false);
    assert_eq!(numbers.key(c), None);
}

#[test]
fn a_document_frees_numbers_that_neither_it_nor_a_session_names() {
    let mut bench = Bench::new(4);
    let numbers = bench.0.numbers.clone();
    let used = numbers.claim(&key("used")).unwrap();
    let unused = numbers.of(&key("unused")).unwrap();
    bench.follow(&document(&[("own", &[PERMIT])]));
    assert!(bench.compiled().is_some());
    assert_eq!(numbers.of(&key("unused")), Some(unused));
    bench.follow(&document(&[("own", &[PERMIT])]));
    assert_eq!(numbers.key(unused), None);
    assert_eq!(numbers.of(&key("used")), Some(used.0));
    assert_eq!(numbers.of(&key("own")), Some(number(3)));
}

#[test]
fn a_document_that_changes_during_a_compilation_wins_over_the_older_result() {
    let mut bench = Bench::new(4);
    bench.follow(&document(&[("home", &[DENY])]));
    bench.follow(&document(&[("home", &[DENY, PERMIT])]));
    assert!(bench.compiled().is_none(), "the older one");
    assert_eq!(bench.state("home"), TrafficPolicyState::Compiling);
    let change = bench.compiled().unwrap();
    let policy = change.policy.unwrap();
    assert_eq!(policy.hits().len(), 2);
    assert_eq!(bench.state("home"), TrafficPolicyState::InForce);
    // the same again is not compiled again
    bench.follow(&document(&[("home", &[DENY, PERMIT])]));
    assert!(bench.0.done.try_recv().is_err());
    let (place, rule) = bench.0.rule(policy.compilation(), 0).unwrap();
    assert_eq!(place.shown(), ("home", 10));
    assert_eq!(rule.to_string(), DENY);
    assert!(bench.0.rule(policy.compilation(), 2).is_none());
    bench.follow(&document(&[("home", &[PERMIT])]));
    assert!(bench.compiled().is_some());
    let replaced = bench.0.rule(policy.compilation(), 0);
    assert!(replaced.is_none(), "a position says nothing any more");
}

#[test]
fn a_removed_policy_is_forgotten_by_the_workers() {
    let mut bench = Bench::new(4);
    bench.follow(&document(&[("home", &[DENY]), ("office", &[DENY])]));
    let numbers = [(); 2].map(|()| bench.compiled().unwrap().number);
    let forgotten = bench.0.follow(&document(&[("office", &[DENY])]));
    let [change] = &forgotten[..] else {
        panic!("{} changes", forgotten.len());
    };
    assert!(change.policy.is_none() && change.number == numbers[0]);
    assert_eq!(bench.state("home"), TrafficPolicyState::Missing);
    assert_eq!(bench.0.standing(&key("home")).octets, None);
    assert_eq!(bench.state("office"), TrafficPolicyState::InForce);
    assert_eq!(bench.0.names().collect::<Vec<_>>(), [&name("office")]);
}

#[test]
fn a_policy_that_is_too_large_keeps_the_former_one_and_says_why() {
    let mut bench = Bench::new(4);
    bench.follow(&document(&[("home", &[DENY])]));
    assert!(bench.compiled().is_some());
    let former = bench.0.standing(&key("home"));
    assert_eq!((former.rules, &former.trouble), (1, &None));
    bench.follow(&too_large("home"));
    assert_eq!(bench.state("home"), TrafficPolicyState::Compiling);
    assert!(bench.compiled().is_none());
    let standing = bench.0.standing(&key("home"));
    assert_eq!(standing.state, TrafficPolicyState::TooLarge);
    assert_eq!(standing.rules, acl::MOST_RULES + 1);
    assert_eq!(standing.octets, former.octets, "of the former one");
    let why = "8193 rules, 8192 are permitted: give it fewer or simpler rules";
    assert_eq!(standing.trouble.as_deref(), Some(why));
    // one without a former one
    bench.0.follow(&too_large("office"));
    assert!(bench.compiled().is_none());
    assert_eq!(bench.0.standing(&key("office")).octets, None);
    bench.follow(&document(&[("office", &[DENY])]));
    assert_eq!(bench.state("office"), TrafficPolicyState::Compiling);
    assert!(bench.compiled().is_some());
    assert_eq!(bench.state("office"), TrafficPolicyState::InForce);
}

#[test]
fn a_policy_without_a_number_says_so() {
    let mut bench = Bench::new(1);
    let _session = bench.0.numbers.claim(&key("other")).unwrap();
    let own = document(&[("own", &[DENY])]);
    bench.0.follow(&own);
    assert!(bench.compiled().is_none());
    let trouble = bench.0.standing(&key("own")).trouble;
    assert!(trouble.unwrap().starts_with("1 other policies"));
}

#[test]
fn hits_of_a_replaced_policy_stay_as_long_as_their_rule_is_configured() {
    let mut bench = Bench::new(4);
    let hits = Hits {
        packets: 3,
        octets: 180,
    };
    let first = document(&[("home", &[DENY, PERMIT])]);
    bench.follow(&first);
    assert!(bench.compiled().is_some());
    for (number, rule) in &first.acls["home"].rules {
        let place = ("home".into(), *number);
        bench.0.earlier.insert(place, (rule.0.clone(), hits));
    }
    let shown = |bench: &Bench, of: &UserPlaneDocument| bench.0.hits("home", &of.acls["home"]);
    assert_eq!(shown(&bench, &first).len(), 2);
    assert!(bench.0.hits("office", &first.acls["home"]).is_empty());
    // rule 20 is another one now
    let second = document(&[("home", &[DENY, "deny ip from any to any"])]);
    assert_eq!(shown(&bench, &second), BTreeMap::from([(10, hits)]));
    bench.follow(&second);
    assert!(bench.compiled().is_some());
    assert_eq!(shown(&bench, &second), BTreeMap::from([(10, hits)]));
    assert_eq!(bench.0.earlier.len(), 1);
    let forgotten = bench.0.follow(&document(&[]));
    assert_eq!((forgotten.len(), bench.0.earlier.len()), (1, 0));
}

#[test]
fn rules_of_a_direction_are_its_own() {
    let texts = [
        "deny in tcp from any to any 25",
        "permit out ip from any to assigned",
        "permit in ip from any to any",
    ];
    let policies = |rules: &str| Named {
        policy_up: Some(name("home")),
        policy_down: None,
        filter_rules: FilterRules::new(rules),
    };
    let both = policies(&texts.join("\0"));
    let [up, down] = Direction::BOTH.map(|way| PolicyKey::of(&both, way).unwrap().unwrap());
    assert_eq!(up, with_rules(&[texts[0], texts[2]], Some("home")));
    assert_eq!(down, with_rules(&[texts[1]], None));
    assert_eq!(up.to_string(), "NAS-Filter-Rule, home");
    assert_eq!(down.to_string(), "NAS-Filter-Rule");
    let up_only = policies(texts[0]);
    assert_eq!(PolicyKey::of(&up_only, Direction::Down), Ok(None));
    for wrong in ["deny tcp from any to any 25", "anything", "\0"] {
        let read = Direction::BOTH.map(|way| PolicyKey::of(&policies(wrong), way));
        assert!(read.iter().all(Result::is_err), "{wrong}");
    }
}

#[test]
fn without_acls_the_last_rule_says_what_becomes_of_other_packets() {
    let with_policer = TrafficPolicy {
        policer: Some("slow".into()),
        ..TrafficPolicy::default()
    };
    let mut document = document(&[("home", &[PERMIT])]);
    document.policies.insert("slow".into(), with_policer);
    let pass = |last: &str, policy: Option<&str>| {
        let key = with_rules(&["deny in tcp from any to any", last], policy);
        let definition = Definition::of(&document, &key).unwrap();
        let settings = &definition.settings;
        (
            definition.size(),
            settings.unmatched_pass,
            settings.denies_undetermined,
        )
    };
    let (permit, deny) = (
        "permit in udp from any to any",
        "deny in gre from any to any",
    );
    for policy in [None, Some("slow")] {
        assert_eq!(pass(permit, policy), (2, false, true));
        assert_eq!(pass(deny, policy), (2, true, true));
    }
    // the ACLs behind them have the last word
    assert_eq!(pass(deny, Some("home")), (3, false, true));
    let missing = with_rules(&[permit], Some("nowhere"));
    assert_eq!(Definition::of(&document, &missing), None);
    let of_home = Definition::of(&document, &with_rules(&[permit], Some("home"))).unwrap();
    let places = of_home.rules().map(|(place, _)| place.shown());
    assert_eq!(places.collect::<Vec<_>>(), [("", 1), ("home", 10)]);
}

#[test]
fn many_sessions_with_the_same_rules_have_one_policy_until_the_last_is_gone() {
    let mut bench = Bench::new(4);
    let numbers = bench.0.numbers.clone();
    let document = document(&[("home", &[PERMIT])]);
    bench.follow(&document);
    assert!(bench.compiled().is_some());
    let rules = with_rules(&["deny in tcp from any to any 25"], Some("home"));
    let mut sessions: Vec<Claim> = (0..10_000)
        .map(|_| numbers.claim(&rules).unwrap())
        .collect();
    bench.0.take_news(&document);
    let change = bench.compiled().unwrap();
    assert_eq!(change.number, sessions[0].0);
    let policy = change.policy.unwrap();
    let (place, rule) = bench.0.rule(policy.compilation(), 0).unwrap();
    assert_eq!(place, RulePlace::Subscriber(1));
    assert_eq!(rule.to_string(), "deny in tcp from any to any 25");
    bench.0.take_news(&document);
    assert!(bench.0.done.try_recv().is_err(), "one compilation");
    assert_eq!(bench.0.names().count(), 1, "of the document");
    assert!(bench.0.forget_unused().is_empty());
    sessions.truncate(1);
    assert!(bench.0.forget_unused().is_empty());
    sessions.clear();
    let [forgotten] = &bench.0.forget_unused()[..] else {
        panic!("it is not forgotten");
    };
    assert!(forgotten.policy.is_none() && forgotten.number == change.number);
    assert!(numbers.key(change.number).is_some(), "not free yet");
    assert!(bench.0.forget_unused().is_empty());
    assert_eq!(numbers.key(change.number), None);
}

#[test]
fn rules_that_are_named_again_are_compiled_again() {
    let mut bench = Bench::new(4);
    let numbers = bench.0.numbers.clone();
    let none = UserPlaneDocument::default();
    let rules = with_rules(&["deny in tcp from any to any 25"], None);
    drop(numbers.claim(&rules));
    bench.0.take_news(&none);
    assert!(bench.compiled().is_some());
    assert_eq!(bench.0.forget_unused().len(), 1);
    let again = numbers.claim(&rules).unwrap();
    bench.0.take_news(&none);
    assert!(bench.0.forget_unused().is_empty());
    assert_eq!(bench.compiled().unwrap().number, again.0);
    assert_eq!(bench.0.standing(&rules).state, TrafficPolicyState::InForce);
}

#[test]
fn rules_follow_the_policy_behind_them() {
    let mut bench = Bench::new(4);
    let numbers = bench.0.numbers.clone();
    let rules = with_rules(&["deny in tcp from any to any 25"], Some("home"));
    let _session = numbers.claim(&rules).unwrap();
    bench.0.take_news(&UserPlaneDocument::default());
    assert_eq!(bench.0.standing(&rules).state, TrafficPolicyState::Missing);
    bench.follow(&document(&[("home", &[PERMIT])]));
    assert!(bench.compiled().is_some() && bench.compiled().is_some());
    assert_eq!(bench.0.standing(&rules).rules, 2);
    bench.follow(&document(&[("home", &[DENY, PERMIT])]));
    assert!(bench.compiled().is_some() && bench.compiled().is_some());
    assert_eq!(bench.0.standing(&rules).rules, 3);
    let forgotten = bench.0.follow(&document(&[]));
    assert_eq!(forgotten.len(), 2, "both: packets are dropped");
    let few = PolicyNumbers::new(1);
    assert!(few.claim(&rules).is_some());
    assert!(few.claim(&with_rules(&[DENY], None)).is_none());
}
