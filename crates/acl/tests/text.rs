//! The text of rules: what is read, what is refused with which words, and what is written.

mod drawn;

use acl::{Action, Address, Direction, LONGEST_CLASS, Rule};
use drawn::{Dice, Style};
use proptest::prelude::*;

fn canonical(text: &str) -> String {
    let rule = text.parse::<Rule>();
    rule.unwrap_or_else(|error| panic!("{text}: {error}"))
        .to_string()
}

fn refusal(text: &str) -> String {
    let refused = text.parse::<Rule>();
    refused.expect_err(text).to_string()
}

#[test]
fn canonical_texts() {
    let table = [
        ("permit ip from any to any", "permit ip from any to any"),
        (
            "  deny   in 17 from any to  any 53 ",
            "deny in udp from any to any 53",
        ),
        (
            "permit out tcp from 192.0.2.1/32 80,443,79 to assigned",
            "permit out tcp from 192.0.2.1 79-80,443 to assigned",
        ),
        (
            "permit tcp from any 0-65535 to any 5-9,7-10",
            "permit tcp from any 0-65535 to any 5-10",
        ),
        (
            "deny ipv6-icmp from 2001:DB8::/32 to any icmptypes 128-129,1",
            "deny icmpv6 from 2001:db8::/32 to any icmptypes 1,128-129",
        ),
        (
            "deny 1 from 0.0.0.0/0 to any",
            "deny icmp from 0.0.0.0/0 to any",
        ),
        (
            "redirect 6 from any to any  8080,80 setup",
            "redirect tcp from any to any 80,8080 setup",
        ),
        (
            "deny 255 from any to ::1 frag",
            "deny 255 from any to ::1 frag",
        ),
        (
            "permit tcp from any to any class voice mark 46 length 40 dscp 10,cs0,1 tcpflags !ack,syn setup established",
            "permit tcp from any to any established setup tcpflags syn,!ack dscp be,1,af11 length 40 mark ef class voice",
        ),
    ];
    // The last one asks for SYN without ACK, and ACK or RST: SYN with RST.
    for (text, expected) in table {
        assert_eq!(canonical(text), expected);
    }
}

#[test]
fn what_a_rule_says_of_itself() {
    let rule: Rule = "permit in tcp from assigned to 192.0.2.0/24 443 mark af21 class a-b_c.9"
        .parse()
        .unwrap();
    assert_eq!(
        (rule.action(), rule.direction()),
        (Action::Permit, Some(Direction::In))
    );
    assert_eq!(
        (rule.protocol(), rule.source()),
        (Some(6), Address::Assigned)
    );
    assert_eq!(
        rule.destination(),
        Address::Prefix("192.0.2.0/24".parse().unwrap())
    );
    assert_eq!((rule.mark(), rule.class()), (Some(18), Some("a-b_c.9")));
    assert!(rule.concerns_ipv4() && !rule.concerns_ipv6());
    let rule: Rule = "deny icmpv6 from any to any".parse().unwrap();
    assert!(!rule.concerns_ipv4() && rule.concerns_ipv6());
    let rule: Rule = "deny out ip from any to any".parse().unwrap();
    assert_eq!(
        (rule.direction(), rule.protocol()),
        (Some(Direction::Out), None)
    );
    assert!(rule.concerns_ipv4() && rule.concerns_ipv6());
}

const OPTION: &str = "expected ports of the destination, or one of the options `established`, `setup`, `tcpflags`, \
    `icmptypes`, `frag`, `dscp`, `length`, `mark` and `class`";
const NO_PORTS: &str = "only tcp, udp, sctp, dccp and udplite have ports";
const FRAG: &str =
    "`frag`: fragments other than the first one have no ports, TCP flags or ICMP types";

#[test]
fn refused_words() {
    let ports = "expected ports from 0 to 65535, such as `80,443,1000-2000`";
    let address = "expected `any`, `assigned`, an address or a prefix";
    let table = [
        ("", "the rule ends too early: expected `permit`, `deny` or `redirect`".to_owned()),
        ("allow ip from any to any", "`allow`: expected `permit`, `deny` or `redirect`".into()),
        ("permit", "the rule ends too early: expected `ip`, a protocol's number from 0 to 255, or its name".into()),
        ("permit inn ip from any to any", "`inn`: expected `ip`, a protocol's number from 0 to 255, or its name".into()),
        ("permit 256 from any to any", "`256`: expected `ip`, a protocol's number from 0 to 255, or its name".into()),
        ("permit ip any to any", "`any`: expected `from`".into()),
        ("permit ip from any any", "`any`: expected `to`, or ports of the source".into()),
        ("permit tcp from any 25 any", "`any`: expected `to`".into()),
        ("permit ip from any", "the rule ends too early: expected `to`, or ports of the source".into()),
        ("permit ip from any to", format!("the rule ends too early: {address}")),
        ("permit ip from 10.0.0 to any", format!("`10.0.0`: {address}")),
        ("permit ip from 10.0.0.0/33 to any", format!("`10.0.0.0/33`: {address}")),
        ("permit ip from 10.1.2.3/8 to any", "`10.1.2.3/8`: bits are set beyond the prefix length, `10.0.0.0/8` is the prefix".into()),
        ("permit ip from any to 2001:db8::1/64", "`2001:db8::1/64`: bits are set beyond the prefix length, `2001:db8::/64` is the prefix".into()),
        ("permit tcp from any 80, to any", format!("`80,`: {ports}")),
        ("permit tcp from any to any 65536", format!("`65536`: {ports}")),
        ("permit tcp from any to any 9-5", format!("`9-5`: {ports}")),
        ("permit ip from any to any www", format!("`www`: {OPTION}")),
        ("permit ip from any to any\u{7}", format!("`any\\u{{7}}`: {address}")),
        ("permit tcp from any to any tcpflags syn,xyz", "`syn,xyz`: expected flags of fin, syn, rst, psh, ack and urg, such as `syn,!ack`".into()),
        ("permit icmp from any to any icmptypes 256", "`256`: expected ICMP types from 0 to 255, such as `8,0,3-5`".into()),
        ("permit ip from any to any dscp ef,64", "`ef,64`: expected code points such as `ef,af41,10`".into()),
        ("permit ip from any to any length", "the rule ends too early: expected octets from 0 to 65535, such as `1500` or `100-1500`".into()),
        ("permit ip from any to any length 9-1", "`9-1`: expected octets from 0 to 65535, such as `1500` or `100-1500`".into()),
        ("permit ip from any to any mark best", "`best`: expected a code point: a name such as `ef`, or a number from 0 to 63".into()),
    ];
    for (text, expected) in table {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let class = "expected a class's name of at most 32 letters, digits, `-`, `_` and `.`";
    for name in ["voice!", "stra\u{df}e", &"x".repeat(LONGEST_CLASS + 1)] {
        let text = format!("permit ip from any to any class {name}");
        assert_eq!(refusal(&text), format!("`{name}`: {class}"));
    }
}

#[test]
fn refused_combinations() {
    let table = [
        (
            "redirect ip from any to any",
            "`redirect`: only for protocol tcp with ports of the destination, such as `to any 80`",
        ),
        (
            "redirect tcp from any 80 to any",
            "`redirect`: only for protocol tcp with ports of the destination, such as `to any 80`",
        ),
        (
            "redirect in tcp from any to any 80",
            "`redirect`: only for rules of an ACL, which have no direction",
        ),
        (
            "redirect tcp from any to any 80 mark ef",
            "`mark`: only for action permit",
        ),
        (
            "permit ip from !10.0.0.0/8 to any",
            "`!10.0.0.0/8`: `!` before an address is not supported, write a rule with the other action first",
        ),
        (
            "permit ip from 10.0.0.0/8 to 2001:db8::/32",
            "`2001:db8::/32`: source and destination are of different address families",
        ),
        (
            "permit icmp from any to 2001:db8::/32",
            "`icmp`: is for IPv4, `icmpv6` is for IPv6",
        ),
        (
            "permit icmpv6 from 10.0.0.0/8 to any",
            "`icmpv6`: is for IPv6, `icmp` is for IPv4",
        ),
        (
            "permit ip from assigned to assigned",
            "`assigned`: only one side is the subscriber's",
        ),
        (
            "permit in ip from any to assigned",
            "`assigned`: the subscriber is the source of direction `in`",
        ),
        (
            "permit out ip from assigned to any",
            "`assigned`: the subscriber is the destination of direction `out`",
        ),
        (
            "permit ip from any to any established",
            "`established`: only for protocol tcp",
        ),
        (
            "permit udp from any to any setup",
            "`setup`: only for protocol tcp",
        ),
        (
            "permit udp from any to any tcpflags syn",
            "`tcpflags`: only for protocol tcp",
        ),
        (
            "permit udp from any to any icmptypes 8",
            "`icmptypes`: only for protocols icmp and icmpv6",
        ),
        (
            "deny ip from any to any mark ef",
            "`mark`: only for action permit",
        ),
        (
            "deny ip from any to any class voice",
            "`class`: only for action permit",
        ),
        (
            "permit ip from any to any frag frag",
            "`frag`: is given twice",
        ),
        (
            "permit ip from any to any dscp ef dscp ef",
            "`dscp`: is given twice",
        ),
        (
            "permit ip from any to any ipoptions rr",
            "`ipoptions`: is not supported",
        ),
        (
            "permit tcp from any to any tcpflags syn,!syn",
            "`tcpflags`: no packet has all flags that the rule asks for",
        ),
        (
            "permit tcp from any to any setup tcpflags ack",
            "`tcpflags`: no packet has all flags that the rule asks for",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(refusal(text), expected, "{text}");
    }
    assert_eq!(
        refusal("permit ip from any 25 to any"),
        format!("`25`: {NO_PORTS}")
    );
    assert_eq!(
        refusal("permit gre from any to any 25"),
        format!("`25`: {NO_PORTS}")
    );
    for with in [
        "tcp from any to any established frag",
        "tcp from any to any frag setup",
        "udp from any 1 to any frag",
        "udp from any to any 1 frag",
        "icmp from any to any frag icmptypes 8",
    ] {
        assert_eq!(refusal(&format!("permit {with}")), FRAG);
    }
}

#[test]
fn bounds() {
    let ports = |number: usize| {
        (0..number)
            .map(|port| (port * 2).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    canonical(&format!(
        "deny tcp from any {} to any {}",
        ports(64),
        ports(64)
    ));
    let refused = refusal(&format!("deny tcp from any to any {}", ports(65)));
    assert!(
        refused.ends_with("more than 64 ports and ranges"),
        "{refused}"
    );
    let spaces = |number: usize| format!("deny ip from any to any{}", " ".repeat(number));
    canonical(&spaces(1024 - 23));
    assert_eq!(
        refusal(&spaces(1025 - 23)),
        "the rule has 1025 octets, 1024 are permitted"
    );
    let port = |number: u32| match 10_000 + number * 3 {
        low if number < 13 => format!("{low}-{}", low + 1),
        low => low.to_string(),
    };
    let ports: Vec<String> = (0..64).map(port).collect();
    let rule = format!(
        "deny tcp from any {0} to any {0} dscp {1}",
        ports.join(","),
        "8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48"
    );
    let spaces = " ".repeat(1024 - rule.len());
    assert!(
        refusal(&(rule + &spaces)).ends_with("1024 are permitted"),
        "too long as canonical text"
    );
}

proptest! {
    #[test]
    fn canonical_text_is_the_same_rule(seed: u64) {
        let mut dice = Dice::new(seed);
        let style = Style::draw(&mut dice);
        let text = drawn::rule(&mut dice, style);
        let rule: Rule = text.parse().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let canonical = rule.to_string();
        let again: Rule = canonical.parse().map_err(|error| TestCaseError::fail(format!("{canonical}: {error}")))?;
        prop_assert_eq!(&again, &rule, "{} and {}", text, canonical);
        prop_assert_eq!(again.to_string(), canonical);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Rule>();
    }

    #[test]
    fn any_words_are_read_or_refused(words in prop::collection::vec(word(), 0..20), whole: bool) {
        let head = if whole { "permit tcp from any to any " } else { "" };
        if let Ok(rule) = format!("{head}{}", words.join(" ")).parse::<Rule>() {
            prop_assert_eq!(rule.to_string().parse(), Ok(rule));
        }
    }
}

/// A word of the grammar, or nearly one.
fn word() -> impl Strategy<Value = String> {
    let known = "permit deny in out ip tcp udp icmp icmpv6 from to any assigned 10.0.0.0/8 10.0.0.1 2001:db8::/32 ::1 25 \
        80,443 1-65535 established setup tcpflags syn,!ack icmptypes 8,0 frag dscp ef,1 length 1500 mark cs1 class x-1";
    let known: Vec<String> = known.split_whitespace().map(str::to_owned).collect();
    prop_oneof![
        20 => prop::sample::select(known),
        1 => "[!-~]{0,6}",
        1 => "[0-9,!-]{0,6}",
        1 => any::<String>(),
    ]
}
