//! The text of a rule, read word by word.

use std::net::IpAddr;
use std::str::{FromStr, SplitAsciiWhitespace};
use std::sync::Arc;

use ipnet::IpNet;

use super::names::{self, dscp_value};
use super::{
    Action, Address, Direction, Family, Flags, LONGEST_TEXT, MOST_RANGES, Ranges, Rule, RuleError,
    is_class_name,
};

const ACTION: &str = "`permit`, `deny` or `redirect`";
const PROTOCOL: &str = "`ip`, a protocol's number from 0 to 255, or its name";
const ADDRESS: &str = "`any`, `assigned`, an address or a prefix";
const PORTS: &str = "ports from 0 to 65535, such as `80,443,1000-2000`";
const TYPES: &str = "ICMP types from 0 to 255, such as `8,0,3-5`";
const TCP_FLAGS: &str = "flags of fin, syn, rst, psh, ack and urg, such as `syn,!ack`";
const DSCPS: &str = "code points such as `ef,af41,10`";
const DSCP: &str = "a code point: a name such as `ef`, or a number from 0 to 63";
const LENGTH: &str = "octets from 0 to 65535, such as `1500` or `100-1500`";
const OPTION: &str = "ports of the destination, or one of the options `established`, `setup`, \
    `tcpflags`, `icmptypes`, `frag`, `dscp`, `length`, `mark` and `class`";
const CLASS: &str = "a class's name of at most 32 letters, digits, `-`, `_` and `.`";

impl FromStr for Rule {
    type Err = RuleError;

    /// Reads a rule. Words are separated by any number of spaces.
    fn from_str(text: &str) -> Result<Rule, RuleError> {
        if text.len() > LONGEST_TEXT {
            return Err(RuleError::TooLong(text.len()));
        }
        let mut words = Words(text.split_ascii_whitespace().peekable());
        let mut rule = head(&mut words)?;
        while let Some(word) = words.0.next() {
            option(&mut rule, word, &mut words)?;
        }
        check_flags(&rule)?;
        check_frag(&rule)?;
        match rule.to_string().len() {
            length if length > LONGEST_TEXT => Err(RuleError::TooLong(length)),
            _ => Ok(rule),
        }
    }
}

struct Words<'a>(std::iter::Peekable<SplitAsciiWhitespace<'a>>);

impl<'a> Words<'a> {
    fn expect(&mut self, expected: &'static str) -> Result<&'a str, RuleError> {
        self.0.next().ok_or(RuleError::Ended(expected))
    }

    /// The next word by `read`, which returns nothing for a word that it does not know.
    fn read<T>(
        &mut self,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, RuleError> {
        let word = self.expect(expected)?;
        read(word).ok_or_else(|| unexpected(word, expected))
    }

    fn keyword(&mut self, keyword: &str, expected: &'static str) -> Result<(), RuleError> {
        self.read(expected, |word| (word == keyword).then_some(()))
    }

    fn starts_with_digit(&mut self) -> bool {
        let word = self.0.peek();
        word.is_some_and(|word| word.starts_with(|first: char| first.is_ascii_digit()))
    }
}

/// A word as a message shows it: without control characters.
fn shown(word: &str) -> String {
    word.escape_debug().to_string()
}

fn unexpected(word: &str, expected: &'static str) -> RuleError {
    RuleError::Unexpected(shown(word), expected)
}

fn misplaced<T>(word: &str, problem: &'static str) -> Result<T, RuleError> {
    Err(RuleError::Misplaced(shown(word), problem))
}

/// Everything before the options.
fn head(words: &mut Words) -> Result<Rule, RuleError> {
    let action = words.read(ACTION, |word| match word {
        "permit" => Some(Action::Permit),
        "deny" => Some(Action::Deny),
        "redirect" => Some(Action::Redirect),
        _ => None,
    })?;
    let direction = match words.0.peek() {
        Some(&"in") => Some(Direction::In),
        Some(&"out") => Some(Direction::Out),
        _ => None,
    };
    if direction.is_some() {
        words.0.next();
    }
    let protocol = words.read(PROTOCOL, protocol)?;
    words.keyword("from", "`from`")?;
    let (source, source_ports) = side(words, protocol)?;
    let expected = match source_ports.is_any() {
        true => "`to`, or ports of the source",
        false => "`to`",
    };
    words.keyword("to", expected)?;
    let destination_word = words.0.peek().copied().unwrap_or_default();
    let (destination, destination_ports) = side(words, protocol)?;
    let rule = Rule {
        action,
        direction,
        protocol,
        source,
        destination,
        source_ports,
        destination_ports,
        flags: Flags::default(),
        icmp_types: Ranges::default(),
        frag: false,
        dscp: None,
        length: None,
        mark: None,
        class: None,
    };
    check_families(&rule, destination_word)?;
    check_assigned(&rule)?;
    check_redirect(&rule)?;
    Ok(rule)
}

fn protocol(word: &str) -> Option<Option<u8>> {
    if word == "ip" {
        return Some(None);
    }
    let number = names::protocol(word).or_else(|| number(word, 255).map(|number| number as u8));
    number.map(Some)
}

/// Address and ports of one side.
fn side(words: &mut Words, protocol: Option<u8>) -> Result<(Address, Ranges), RuleError> {
    let address = address(words.expect(ADDRESS)?)?;
    if !words.starts_with_digit() {
        return Ok((address, Ranges::default()));
    }
    let word = words.expect(PORTS)?;
    let ranges = ranges(word, u16::MAX).ok_or_else(|| unexpected(word, PORTS))?;
    if ranges.len() > MOST_RANGES {
        return Err(RuleError::TooManyRanges(shown(word)));
    }
    if !protocol.is_some_and(|protocol| names::WITH_PORTS.contains(&protocol)) {
        return misplaced(word, "only tcp, udp, sctp, dccp and udplite have ports");
    }
    Ok((address, Ranges::new(ranges)))
}

fn address(word: &str) -> Result<Address, RuleError> {
    match word {
        "any" => return Ok(Address::Any),
        "assigned" => return Ok(Address::Assigned),
        _ if word.starts_with('!') => {
            return misplaced(
                word,
                "`!` before an address is not supported, write a rule with the other action first",
            );
        }
        _ => {}
    }
    if let Ok(address) = word.parse::<IpAddr>() {
        return Ok(Address::Prefix(IpNet::from(address)));
    }
    let prefix: IpNet = word.parse().map_err(|_| unexpected(word, ADDRESS))?;
    match prefix.trunc() == prefix {
        true => Ok(Address::Prefix(prefix)),
        false => Err(RuleError::HostBits(shown(word), prefix.trunc())),
    }
}

fn check_families(rule: &Rule, destination_word: &str) -> Result<(), RuleError> {
    let source = Family::of_address(&rule.source);
    let destination = Family::of_address(&rule.destination);
    if let (Some(source), Some(destination)) = (source, destination)
        && source != destination
    {
        return misplaced(
            destination_word,
            "source and destination are of different address families",
        );
    }
    let addresses = source.or(destination);
    match (rule.protocol.and_then(Family::of_protocol), addresses) {
        (Some(Family::V4), Some(Family::V6)) => {
            misplaced("icmp", "is for IPv4, `icmpv6` is for IPv6")
        }
        (Some(Family::V6), Some(Family::V4)) => {
            misplaced("icmpv6", "is for IPv6, `icmp` is for IPv4")
        }
        _ => Ok(()),
    }
}

fn check_assigned(rule: &Rule) -> Result<(), RuleError> {
    let assigned = (
        rule.source == Address::Assigned,
        rule.destination == Address::Assigned,
    );
    match (assigned, rule.direction) {
        ((true, true), _) => misplaced("assigned", "only one side is the subscriber's"),
        ((_, true), Some(Direction::In)) => {
            misplaced("assigned", "the subscriber is the source of direction `in`")
        }
        ((true, _), Some(Direction::Out)) => misplaced(
            "assigned",
            "the subscriber is the destination of direction `out`",
        ),
        _ => Ok(()),
    }
}

/// What is not TCP has no connection that could be answered, and a subscriber's own rules name no portal.
fn check_redirect(rule: &Rule) -> Result<(), RuleError> {
    if rule.action != Action::Redirect {
        return Ok(());
    }
    if rule.direction.is_some() {
        return misplaced(
            "redirect",
            "only for rules of an ACL, which have no direction",
        );
    }
    if rule.protocol != Some(names::TCP) || rule.destination_ports.is_any() {
        return misplaced(
            "redirect",
            "only for protocol tcp with ports of the destination, such as `to any 80`",
        );
    }
    Ok(())
}

/// Reads an option, whose name is `word`, into the rule.
fn option(rule: &mut Rule, word: &str, words: &mut Words) -> Result<(), RuleError> {
    let given = match word {
        "established" => std::mem::replace(&mut rule.flags.established, true),
        "setup" => std::mem::replace(&mut rule.flags.setup, true),
        "frag" => std::mem::replace(&mut rule.frag, true),
        "tcpflags" => {
            let given = rule.flags.set | rule.flags.clear != 0;
            (rule.flags.set, rule.flags.clear) = words.read(TCP_FLAGS, tcp_flags)?;
            given
        }
        "icmptypes" => {
            let types = words.read(TYPES, |word| ranges(word, 255))?;
            !std::mem::replace(&mut rule.icmp_types, Ranges::new(types)).is_any()
        }
        "dscp" => rule.dscp.replace(words.read(DSCPS, dscps)?).is_some(),
        "length" => rule.length.replace(words.read(LENGTH, length)?).is_some(),
        "mark" => rule.mark.replace(words.read(DSCP, dscp_value)?).is_some(),
        "class" => rule.class.replace(words.read(CLASS, class)?).is_some(),
        "ipoptions" | "tcpoptions" => return misplaced(word, "is not supported"),
        _ => return Err(unexpected(word, OPTION)),
    };
    if given {
        return misplaced(word, "is given twice");
    }
    check_option(rule, word)
}

/// Whether the option is one for the rule's protocol and action.
fn check_option(rule: &Rule, word: &str) -> Result<(), RuleError> {
    match (word, rule.protocol) {
        ("established" | "setup" | "tcpflags", protocol) if protocol != Some(names::TCP) => {
            misplaced(word, "only for protocol tcp")
        }
        ("icmptypes", protocol) if !matches!(protocol, Some(names::ICMP | names::ICMPV6)) => {
            misplaced(word, "only for protocols icmp and icmpv6")
        }
        ("mark" | "class", _) if rule.action != Action::Permit => {
            misplaced(word, "only for action permit")
        }
        _ => Ok(()),
    }
}

fn check_flags(rule: &Rule) -> Result<(), RuleError> {
    let possible = (0..64).any(|flags| rule.flags.contains(flags));
    let option = if rule.flags.set | rule.flags.clear != 0 {
        "tcpflags"
    } else {
        "setup"
    };
    match possible {
        true => Ok(()),
        false => misplaced(option, "no packet has all flags that the rule asks for"),
    }
}

/// RFC 6733 §4.3.1: frag may not be used together with ports or TCP flags. A fragment has no ICMP type either.
fn check_frag(rule: &Rule) -> Result<(), RuleError> {
    let unread = rule.source_ports.is_any()
        && rule.destination_ports.is_any()
        && rule.flags.is_any()
        && rule.icmp_types.is_any();
    if rule.frag && !unread {
        return misplaced(
            "frag",
            "fragments other than the first one have no ports, TCP flags or ICMP types",
        );
    }
    Ok(())
}

/// A decimal number up to `highest`, without sign.
pub(super) fn number(text: &str, highest: u16) -> Option<u16> {
    let is_decimal = text.bytes().all(|octet| octet.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_decimal)?;
    (number <= highest).then_some(number)
}

/// A number, or two with `-` between them, the lower one first.
fn range(text: &str, highest: u16) -> Option<(u16, u16)> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let range = (number(low, highest)?, number(high, highest)?);
    (range.0 <= range.1).then_some(range)
}

fn ranges(word: &str, highest: u16) -> Option<Vec<(u16, u16)>> {
    word.split(',').map(|part| range(part, highest)).collect()
}

fn length(word: &str) -> Option<(u16, u16)> {
    range(word, u16::MAX)
}

fn class(word: &str) -> Option<Arc<str>> {
    is_class_name(word).then(|| word.into())
}

/// A set of code points: bit n is for code point n.
fn dscps(word: &str) -> Option<u64> {
    word.split(',')
        .try_fold(0, |set, part| Some(set | 1 << dscp_value(part)?))
}

/// Flags that are set, and flags that are not.
fn tcp_flags(word: &str) -> Option<(u8, u8)> {
    word.split(',').try_fold((0, 0), |(set, clear), part| {
        let name = part.strip_prefix('!').unwrap_or(part);
        let bit = names::TCP_FLAGS.iter().position(|flag| *flag == name)?;
        Some(match part == name {
            true => (set | 1 << bit, clear),
            false => (set, clear | 1 << bit),
        })
    })
}
