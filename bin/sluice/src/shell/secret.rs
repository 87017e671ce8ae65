//! Lines without the secrets in them, for the history file and for messages: whatever stands behind the name of a secret is one.

use config::{MASK, quoted, schema};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A line up to where a secret begins, with a mask in its place; all of it if it has none. A quote that is not closed may have
/// one in it.
pub fn without(line: &str) -> String {
    let Ok(words) = config::words(line) else {
        return match cut(line) {
            "" => MASK.into(),
            before => format!("{before} {MASK}"),
        };
    };
    match words.iter().position(|word| is_secret(word)) {
        Some(at) if at + 1 < words.len() => {
            let before: Vec<String> = words[..=at].iter().map(|word| quoted(word)).collect();
            format!("{} {MASK}", before.join(" "))
        }
        _ => line.into(),
    }
}

/// What stands before the first quote or behind the first name of a secret, whichever comes first.
fn cut(line: &str) -> &str {
    let quote = line.find('"').unwrap_or(line.len());
    let before = &line[..quote];
    let mut end = 0;
    for word in before.split_inclusive(char::is_whitespace) {
        end += word.len();
        if is_secret(word.trim_end()) {
            break;
        }
    }
    line[..end].trim_end()
}

fn is_secret(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let leaves = schema::root().leaves().into_iter();
        let secret = leaves.filter(|(_, schema)| schema.leaf().is_some_and(|leaf| leaf.secret));
        secret
            .filter_map(|(place, _)| place.steps().last().cloned())
            .collect()
    });
    NAMES.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_left_however_it_is_typed() {
        for (line, left) in [
            (
                "set users a password hunter2",
                "set users a password ********",
            ),
            (
                "set users a password my hunter2",
                "set users a password ********",
            ),
            (
                "set users a password \"my hunter2\"",
                "set users a password ********",
            ),
            (
                "set users a password \"my hunter2",
                "set users a password ********",
            ),
            (
                "set users a password my \"hunter2",
                "set users a password ********",
            ),
            ("set users \"a b\" password \"hunter2", "set users ********"),
            ("\"hunter2", "********"),
            (
                "set \"password\" hunter2 | match x",
                "set password ********",
            ),
            (
                "run set aaa servers a secret-key hunter2",
                "run set aaa servers a secret-key ********",
            ),
        ] {
            assert_eq!(without(line), left, "{line}");
        }
        for line in [
            "show  sessions | match \"a b\"",
            "delete users a password",
            "set subscriber-profiles home mtu 1400",
            "",
        ] {
            assert_eq!(without(line), line);
        }
    }
}
