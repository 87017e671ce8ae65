//! NAS-Filter-Rule (RFC 4849): rules of one subscriber.

use acl::Rule;
use policy::FilterRules;
use wire::radius::{Kind, Value};

/// Reads the rules of a packet, whose NAS-Filter-Rules these are. `None`: there are none.
///
/// # Errors
/// What is wrong, for operators. An answer with a rule that cannot be used counts as a rejection (RFC 4849 §1.3).
pub(crate) fn read<'a>(
    attributes: impl Iterator<Item = &'a Value>,
) -> Result<Option<FilterRules>, String> {
    let Some(text) = joined(attributes) else {
        return Ok(None);
    };
    let texts = text.split(|octet| *octet == 0);
    let texts = texts.filter(|text| !text.is_empty());
    let rules: Vec<String> = texts.map(rule).collect::<Result<_, _>>()?;
    let text = rules.join("\0");
    match FilterRules::new(&text) {
        Some(rules) => Ok(Some(rules)),
        None if rules.is_empty() => Err(format!("{} has no rule", name())),
        None => Err(format!(
            "the rules of {} have {} octets, {} are permitted",
            name(),
            text.len(),
            FilterRules::MOST
        )),
    }
}

fn name() -> &'static str {
    Kind::NAS_FILTER_RULE.name().unwrap_or("attribute")
}

/// The attributes one behind the other, as each may have a part of a rule, a rule, or several (RFC 4849 §2). The beginning of an attribute
/// is the beginning of a rule, too, if it has a rule's first word: many servers write a rule into each attribute, without NUL.
fn joined<'a>(attributes: impl Iterator<Item = &'a Value>) -> Option<Vec<u8>> {
    let mut joined = None;
    for octets in attributes.filter_map(Value::octets) {
        let text = joined.get_or_insert_with(Vec::new);
        if octets.starts_with(b"permit ") || octets.starts_with(b"deny ") {
            text.push(0);
        }
        text.extend_from_slice(octets);
    }
    joined
}

/// The canonical text of a rule.
fn rule(text: &[u8]) -> Result<String, String> {
    let wrong = |why: String| format!("{} `{}`: {why}", name(), text.escape_ascii());
    let read = std::str::from_utf8(text).map_err(|_| wrong("not UTF-8".into()))?;
    let rule: Rule = read
        .parse()
        .map_err(|why: acl::RuleError| wrong(why.to_string()))?;
    match rule.direction() {
        Some(_) => Ok(rule.to_string()),
        None => Err(wrong(
            "the direction is missing: expected `in` (from the subscriber) or `out` (to it) behind the action".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DENY: &str = "deny in tcp from any to any 25";
    const PERMIT: &str = "permit in ip from any to any";

    fn of(attributes: &[&[u8]]) -> Result<Option<String>, String> {
        let values: Vec<Value> = attributes
            .iter()
            .map(|octets| Value::Octets(octets.to_vec()))
            .collect();
        let rules = read(values.iter())?;
        Ok(rules.map(|rules| rules.to_string()))
    }

    #[test]
    fn rules_are_separated_by_nul_wherever_attributes_begin() {
        assert_eq!(of(&[]), Ok(None));
        let both = format!("{DENY}\0{PERMIT}");
        let expected = Ok(Some(format!("{DENY}; {PERMIT}")));
        for at in 0..both.len() {
            let (first, second) = both.as_bytes().split_at(at);
            assert_eq!(of(&[first, second]), expected, "split at {at}");
        }
        let padded = format!("\0{DENY}\0\0{PERMIT}\0");
        assert_eq!(of(&[padded.as_bytes()]), expected);
        // a rule in each attribute, with and without NUL
        assert_eq!(of(&[DENY.as_bytes(), PERMIT.as_bytes()]), expected);
        let ended = format!("{DENY}\0");
        assert_eq!(of(&[ended.as_bytes(), PERMIT.as_bytes()]), expected);
    }

    #[test]
    fn a_rule_is_kept_in_its_canonical_form() {
        let text = b"permit  out 6 from 192.0.2.1/32 80,81 to assigned";
        let canonical = "permit out tcp from 192.0.2.1 80-81 to assigned";
        assert_eq!(of(&[text]), Ok(Some(canonical.to_owned())));
    }

    #[test]
    fn what_is_no_rule_is_refused_by_name() {
        let refused = |text: &[u8]| of(&[PERMIT.as_bytes(), b"\0", text]).unwrap_err();
        assert_eq!(
            refused(b"deny in tcp from any to 192.0.2.1/24"),
            "NAS-Filter-Rule `deny in tcp from any to 192.0.2.1/24`: `192.0.2.1/24`: bits are set beyond the prefix length, \
             `192.0.2.0/24` is the prefix"
        );
        let why = refused(b"deny tcp from any to any 25");
        assert!(why.contains("the direction is missing"), "{why}");
        let why = refused(b"deny in tcp from any to assigned");
        assert!(why.contains("the subscriber is the source"), "{why}");
        let why = refused(b"\xff\x1b");
        assert_eq!(why, r"NAS-Filter-Rule `\xff\x1b`: not UTF-8");
        assert_eq!(of(&[b"\0\0"]), Err("NAS-Filter-Rule has no rule".into()));
        let values = [Value::Octets(PERMIT.into()), Value::Invalid(b"x".into())];
        assert!(read(values.iter()).is_err(), "it must not be left out");
    }

    #[test]
    fn rules_have_a_largest_length() {
        let most = FilterRules::MOST / (PERMIT.len() + 1);
        let rules = |number| vec![PERMIT; number].join("\0");
        assert!(of(&[rules(most).as_bytes()]).is_ok());
        let why = of(&[rules(most + 1).as_bytes()]).unwrap_err();
        assert!(why.ends_with("octets, 4096 are permitted"), "{why}");
    }

    proptest! {
        #[test]
        fn any_octets_are_rules_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(rules)) = of(&[&octets]) {
                let again = rules.replace("; ", "\0");
                prop_assert_eq!(of(&[again.as_bytes()]), Ok(Some(rules)));
            }
        }
    }
}
