//! The classifier and the law agree.

mod drawn;

use acl::reference::{Packet, first_match};
use acl::{Classifier, MOST_OCTETS, MOST_RULES, Rule, TooLarge, surely_fits};
use drawn::{Dice, Edges};

const PACKETS: u64 = 1000;

/// Compares one set of so many rules with the law, for packets at the rules' edges. Returns how many matched a rule.
fn compare(seed: u64, count: u64) -> u64 {
    let dice = &mut Dice::new(seed);
    let rules = drawn::rules(dice, count);
    let classifier = Classifier::new(&rules).expect("not too large");
    let edges = Edges::of(&rules);
    let mut matched = 0;
    for _ in 0..PACKETS / 2 {
        let (v4, v6) = (edges.packet4(dice), edges.packet6(dice));
        let found = [
            classifier.first_match_v4(&v4),
            classifier.first_match_v6(&v6),
        ];
        for (packet, found) in [Packet::V4(v4), Packet::V6(v6)].into_iter().zip(found) {
            let expected = first_match(&rules, packet);
            let found = found.map(|rule| rule as usize);
            assert_eq!(
                found,
                expected,
                "seed {seed}, {count} rules, {packet:?}: {:?}",
                rule_text(&rules, expected)
            );
            matched += u64::from(found.is_some());
        }
    }
    matched
}

fn rule_text(rules: &[Rule], number: Option<usize>) -> Option<String> {
    number.map(|number| rules[number].to_string())
}

/// 2,500 sets of rules, of 1 to 200.
fn small(quarter: u64) {
    let mut matched = 0;
    for seed in quarter * 2500..(quarter + 1) * 2500 {
        let few = Dice::new(!seed).below(4) > 0;
        let count = 1 + Dice::new(!seed).below(if few { 40 } else { 200 });
        matched += compare(seed, count);
    }
    let packets = 2500 * PACKETS;
    assert!(
        matched > packets / 4 && matched < packets * 9 / 10,
        "{matched} of {packets} packets match"
    );
}

#[test]
fn small_lists_1() {
    small(0);
}

#[test]
fn small_lists_2() {
    small(1);
}

#[test]
fn small_lists_3() {
    small(2);
}

#[test]
fn small_lists_4() {
    small(3);
}

#[test]
fn large_lists() {
    for seed in 0..20 {
        compare(seed, 1000 + seed * 7192 / 19);
    }
}

#[test]
fn no_rules() {
    let classifier = Classifier::new(&[]).unwrap();
    assert_eq!(classifier.first_match_v4(&acl::Packet4::default()), None);
    assert_eq!(classifier.first_match_v6(&acl::Packet6::default()), None);
}

#[test]
fn too_many_rules() {
    let rule: Rule = "deny ip from any to any".parse().unwrap();
    let rules = vec![rule; MOST_RULES + 1];
    assert_eq!(Classifier::new(&rules).err(), Some(TooLarge::Rules(8193)));
    let classifier = Classifier::new(&rules[1..]).unwrap();
    assert_eq!(classifier.first_match_v4(&acl::Packet4::default()), Some(0));
}

#[test]
fn what_surely_fits_fits() {
    let mut surely = 0;
    for seed in 0..200 {
        let dice = &mut Dice::new(seed);
        let count = 1 + dice.below(if seed % 20 == 0 { 4000 } else { 300 });
        let rules = drawn::rules(dice, count);
        if surely_fits(&rules) {
            surely += 1;
            let octets = Classifier::new(&rules).expect("it fits").octets();
            assert!(octets < MOST_OCTETS, "seed {seed}");
        }
    }
    assert!(surely > 100, "{surely}");
}
