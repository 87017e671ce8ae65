//! Rules that can never be the first match.

mod drawn;

use acl::reference::{Packet, first_match};
use acl::{Rule, shadowed};
use drawn::{Dice, Edges};

fn pairs(texts: &[&str]) -> Vec<(usize, usize)> {
    let rules: Vec<Rule> = texts.iter().map(|text| text.parse().expect(text)).collect();
    shadowed(&rules)
}

#[test]
fn pairs_of_rules() {
    let table = [
        (
            "ip from any to any",
            "tcp from 10.0.0.0/8 to any 80 established dscp ef length 40",
            true,
        ),
        ("ip from any to any frag", "tcp from any to any", false),
        ("tcp from any to any", "ip from any to any", false),
        ("tcp from any to any", "tcp from any to any frag", true),
        ("tcp from any 0-65535 to any", "tcp from any to any", false),
        (
            "tcp from any to any 80-90",
            "tcp from any to any 80-82,85",
            true,
        ),
        (
            "tcp from any to any 80-90",
            "tcp from any to any 80-82,91",
            false,
        ),
        (
            "tcp from any to any established",
            "tcp from any to any tcpflags syn,ack",
            true,
        ),
        (
            "tcp from any to any established",
            "tcp from any to any tcpflags syn",
            false,
        ),
        (
            "tcp from any to any established",
            "tcp from any to any",
            false,
        ),
        (
            "icmp from any to any icmptypes 0-8",
            "icmp from any to any icmptypes 3,8",
            true,
        ),
        (
            "icmp from any to any",
            "1 from 10.0.0.0/8 to any icmptypes 3,8",
            true,
        ),
        (
            "ip from any to any dscp ef,be",
            "ip from any to any dscp ef",
            true,
        ),
        ("ip from any to any dscp ef,be", "ip from any to any", false),
        (
            "ip from any to any length 0-65535",
            "ip from any to any",
            true,
        ),
        (
            "ip from any to any length 100-200",
            "ip from any to any length 150-201",
            false,
        ),
        ("ip from 0.0.0.0/0 to any", "icmp from any to any", true),
        ("ip from 0.0.0.0/0 to any", "ip from any to any", false),
        ("ip from ::/0 to any", "ip from any to 10.0.0.0/8", false),
        (
            "ip from any to 10.0.0.0/8",
            "ip from any to 10.0.0.0/9",
            true,
        ),
        (
            "ip from any to 10.0.0.0/8",
            "ip from any to ::a00:0/104",
            false,
        ),
        ("ip from assigned to any", "ip from 10.0.0.1 to any", true),
    ];
    for (earlier, later, expected) in table {
        let found = pairs(&[&format!("permit {earlier}"), &format!("deny {later}")]);
        assert_eq!(!found.is_empty(), expected, "{earlier} before {later}");
    }
}

#[test]
fn directions_count() {
    let (of_in, of_out, of_both) = (
        "permit in ip from any to any",
        "permit out ip from any to any",
        "permit ip from any to any",
    );
    assert_eq!(pairs(&[of_in, of_out, of_both]), []);
    assert_eq!(pairs(&[of_both, of_in, of_out]), [(1, 0), (2, 0)]);
    assert_eq!(pairs(&[of_in, of_out, of_in, of_out]), [(2, 0), (3, 1)]);
}

#[test]
fn a_shadowed_rule_is_never_the_first_match() {
    let mut found = 0;
    for seed in 0..400 {
        let dice = &mut Dice::new(seed);
        let rules = drawn::rules(dice, 1 + seed % 60);
        let shadowed = shadowed(&rules);
        let edges = Edges::of(&rules);
        found += shadowed.len();
        for _ in 0..500 {
            for packet in [
                Packet::V4(edges.packet4(dice)),
                Packet::V6(edges.packet6(dice)),
            ] {
                let first = first_match(&rules, packet);
                assert!(
                    !shadowed.iter().any(|(rule, _)| Some(*rule) == first),
                    "seed {seed}: {packet:?}"
                );
            }
        }
        for (rule, earlier) in shadowed {
            assert!(earlier < rule);
            let pair = [rules[rule].clone(), rules[earlier].clone()];
            for _ in 0..20 {
                for packet in [
                    Packet::V4(edges.packet4(dice)),
                    Packet::V6(edges.packet6(dice)),
                ] {
                    let later = first_match(&pair[..1], packet).is_some();
                    assert!(
                        !later || first_match(&pair[1..], packet).is_some(),
                        "seed {seed}: {pair:?}"
                    );
                }
            }
        }
    }
    assert!(found > 100, "{found} shadowed rules");
}
