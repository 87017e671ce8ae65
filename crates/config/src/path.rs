//! Where something is in the configuration.

use std::fmt;

/// A place: the names from the root on. It is written as it is typed at the command line: `user-planes up1 ports core0 mtu`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<String>);

impl Path {
    /// The names from the root on.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether it is the whole configuration.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Goes one step further.
    pub fn push(&mut self, step: impl Into<String>) {
        self.0.push(step.into());
    }

    /// Goes a step back.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// The place below this one.
    #[must_use]
    pub fn join(&self, step: impl Into<String>) -> Path {
        let mut path = self.clone();
        path.push(step);
        path
    }

    /// The place above this one.
    pub fn parent(&self) -> Option<Path> {
        let (_, above) = self.0.split_last()?;
        Some(Path(above.to_vec()))
    }

    /// Whether `other` is this place or below it.
    pub fn contains(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Reads what a person typed: words, those with blanks in double quotes.
    ///
    /// # Errors
    /// A text that says what is wrong with the quotes.
    pub fn parse(text: &str) -> Result<Path, String> {
        words(text).map(Path)
    }
}

impl<S: Into<String>> FromIterator<S> for Path {
    fn from_iter<I: IntoIterator<Item = S>>(steps: I) -> Self {
        Path(steps.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            f.write_str(&quoted(step))?;
        }
        Ok(())
    }
}

/// A word as it has to be typed: in double quotes where it has blanks or quotes, or nothing in it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"' && c != '\\';
    if !word.is_empty() && word.chars().all(plain) && word != "|" {
        return word.to_owned();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Splits what a person typed into words.
///
/// # Errors
/// A text that says what is wrong with the quotes.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start().chars();
    while let Some(first) = rest.clone().next() {
        let mut word = String::new();
        if first == '"' {
            rest.next();
            loop {
                match rest.next() {
                    None => return Err(format!("a quote is not closed: \"{word}")),
                    Some('"') => break,
                    Some('\\') => match rest.next() {
                        Some('n') => word.push('\n'),
                        Some(c) => word.push(c),
                        None => return Err(format!("a quote is not closed: \"{word}")),
                    },
                    Some(c) => word.push(c),
                }
            }
        } else {
            while let Some(c) = rest.clone().next().filter(|c| !c.is_whitespace()) {
                word.push(c);
                rest.next();
            }
        }
        words.push(word);
        rest = rest.as_str().trim_start().chars();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_printed_can_be_typed(steps in prop::collection::vec("[^\\r\\x00-\\x08]*", 0..5)) {
            let path = Path::from_iter(steps);
            prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }
    }

    #[test]
    fn an_open_quote_is_said() {
        assert!(
            Path::parse("users \"al ice")
                .unwrap_err()
                .contains("not closed")
        );
    }
}
