//! Kinds of events by their words.

use crate::EventKind;
use serde_json::{Value, from_value, json};

impl EventKind {
    /// Kinds by their words, with commas between them: `alarm-raised,ended`.
    ///
    /// # Errors
    /// A word is no kind; the sentence names those that are.
    pub fn list(words: &str) -> Result<Vec<EventKind>, String> {
        let words = words.split(',').map(str::trim);
        let read = |word: &str| {
            let known = from_value(Value::from(word)).ok();
            let known = known.filter(|kind| *kind != EventKind::Unspecified);
            known.ok_or_else(|| format!("`{word}` is no kind of event: expected {}", all()))
        };
        words.filter(|word| !word.is_empty()).map(read).collect()
    }
}

/// The words of all kinds.
fn all() -> String {
    let kinds = (1..).map_while(|number| EventKind::try_from(number).ok());
    let words = kinds.filter_map(|kind| json!(kind).as_str().map(str::to_owned));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_their_words() {
        let read = EventKind::list("alarm-raised, ended");
        assert_eq!(read, Ok(vec![EventKind::AlarmRaised, EventKind::Ended]));
        assert_eq!(EventKind::list(""), Ok(Vec::new()));
        for wrong in ["raised", "unspecified", "Ended"] {
            let said = EventKind::list(wrong).unwrap_err();
            assert!(
                said.contains("online, refused") && said.ends_with("counted"),
                "{said}"
            );
        }
    }
}
