//! Policies by documents that follow each other.

use super::*;
use config::model::TrafficPolicy;

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
        document.acls.insert((*name).to_owned(), acl.unwrap());
        document.policies.insert((*name).to_owned(), policy);
    }
    document
}

/// A policy with one rule more than a classifier may have.
fn too_large(name: &str) -> UserPlaneDocument {
    document(&[(name, &[DENY; acl::MOST_RULES + 1])])
}

/// No session names a policy.
fn nobody() -> BTreeMap<PolicyIndex, u64> {
    BTreeMap::new()
}

struct Bench(TrafficPolicies);

impl Bench {
    fn new(most: u16) -> Self {
        Bench(TrafficPolicies::start(PolicyNumbers::new(most), 1).unwrap())
    }

    /// Follows a document in which nothing is removed.
    fn follow(&mut self, document: &UserPlaneDocument) {
        assert!(self.0.follow(document, nobody).is_empty());
    }

    /// Takes the next compilation.
    fn compiled(&mut self) -> Option<PolicyChange> {
        let done = self.0.done.blocking_recv().unwrap();
        self.0.compiled(done)
    }

    fn state(&self, of: &str) -> TrafficPolicyState {
        self.0.standing(&name(of)).state
    }
}

#[test]
fn numbers_are_stable_and_freed_only_when_nobody_names_them() {
    let numbers = PolicyNumbers::new(4);
    let [a, b, c] = ["a", "b", "c"].map(|text| numbers.of(&name(text)).unwrap());
    assert_eq!([a, b, c], [1, 2, 3].map(number));
    assert_eq!(numbers.clone().of(&name("b")), Some(b), "copies agree");
    assert_eq!(numbers.name(c), Some(name("c")));
    assert!(numbers.are_scarce());
    numbers.retain(|name, number| name.as_str() == "a" || number == c);
    assert_eq!((numbers.name(a), numbers.name(b)), (Some(name("a")), None));
    assert!(!numbers.are_scarce());
    assert_eq!(numbers.of(&name("c")), Some(c));
    assert_eq!(numbers.of(&name("d")), Some(b), "the first that is free");
    assert_eq!(numbers.of(&name("e")), Some(number(4)));
    assert_eq!(numbers.of(&name("f")), None);
    let all: Vec<_> = numbers
        .all()
        .into_iter()
        .map(|(_, number)| number)
        .collect();
    assert_eq!(all, [a, c, b, number(4)]);
}

#[test]
fn a_document_frees_numbers_that_neither_it_nor_a_session_names() {
    let mut bench = Bench::new(4);
    let numbers = bench.0.numbers.clone();
    let [used, unused] = ["used", "unused"].map(|text| numbers.of(&name(text)).unwrap());
    bench.follow(&document(&[("own", &[PERMIT])]));
    assert!(bench.compiled().is_some());
    assert_eq!(numbers.of(&name("unused")), Some(unused));
    let same = document(&[("own", &[PERMIT])]);
    bench.0.follow(&same, || BTreeMap::from([(used, 1)]));
    assert_eq!(numbers.name(unused), None);
    assert_eq!(numbers.of(&name("used")), Some(used));
    assert_eq!(numbers.of(&name("own")), Some(number(3)));
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
    assert_eq!(place, &("home".into(), 10));
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
    let forgotten = bench.0.follow(&document(&[("office", &[DENY])]), nobody);
    let [change] = &forgotten[..] else {
        panic!("{} changes", forgotten.len());
    };
    assert!(change.policy.is_none() && change.number == numbers[0]);
    assert_eq!(bench.state("home"), TrafficPolicyState::Missing);
    assert_eq!(bench.0.standing(&name("home")).octets, None);
    assert_eq!(bench.state("office"), TrafficPolicyState::InForce);
    assert_eq!(bench.0.names().collect::<Vec<_>>(), [&name("office")]);
}

#[test]
fn a_policy_that_is_too_large_keeps_the_former_one_and_says_why() {
    let mut bench = Bench::new(4);
    bench.follow(&document(&[("home", &[DENY])]));
    assert!(bench.compiled().is_some());
    let former = bench.0.standing(&name("home"));
    assert_eq!((former.rules, &former.trouble), (1, &None));
    bench.follow(&too_large("home"));
    assert_eq!(bench.state("home"), TrafficPolicyState::Compiling);
    assert!(bench.compiled().is_none());
    let standing = bench.0.standing(&name("home"));
    assert_eq!(standing.state, TrafficPolicyState::TooLarge);
    assert_eq!(standing.rules, acl::MOST_RULES + 1);
    assert_eq!(standing.octets, former.octets, "of the former one");
    let why = "8193 rules, 8192 are permitted: give it fewer or simpler rules";
    assert_eq!(standing.trouble.as_deref(), Some(why));
    // one without a former one
    bench.0.follow(&too_large("office"), nobody);
    assert!(bench.compiled().is_none());
    assert_eq!(bench.0.standing(&name("office")).octets, None);
    bench.follow(&document(&[("office", &[DENY])]));
    assert_eq!(bench.state("office"), TrafficPolicyState::Compiling);
    assert!(bench.compiled().is_some());
    assert_eq!(bench.state("office"), TrafficPolicyState::InForce);
}

#[test]
fn a_policy_without_a_number_says_so() {
    let mut bench = Bench::new(1);
    let other = bench.0.numbers.of(&name("other")).unwrap();
    let own = document(&[("own", &[DENY])]);
    bench.0.follow(&own, || BTreeMap::from([(other, 1)]));
    assert!(bench.compiled().is_none());
    let trouble = bench.0.standing(&name("own")).trouble;
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
    let forgotten = bench.0.follow(&document(&[]), nobody);
    assert_eq!((forgotten.len(), bench.0.earlier.len()), (1, 0));
}
