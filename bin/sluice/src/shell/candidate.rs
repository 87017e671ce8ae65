//! The configuration that is being edited: a version, what was done to it, and where in it one is.

use config::edit::{Edit, EditError, difference, get};
use config::{Path, Verb, schema};
use serde_json::Value;

/// A candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The version that it was made of.
    pub base: u64,
    before: Value,
    tree: Value,
    /// It is what this version was, and nothing was done to it since: its secrets, which are not shown, are that one's.
    version: Option<u64>,
    /// Where `edit` has led.
    pub here: Path,
}

impl Candidate {
    /// Nothing is changed yet.
    pub fn new(base: u64, tree: Value) -> Self {
        Candidate {
            base,
            before: tree.clone(),
            tree,
            version: None,
            here: Path::default(),
        }
    }

    /// As it is now.
    pub fn tree(&self) -> &Value {
        &self.tree
    }

    /// The whole becomes another tree.
    pub fn replace(&mut self, tree: Value) {
        self.tree = tree;
        self.version = None;
        self.settle();
    }

    /// The whole becomes what a version was.
    pub fn roll_back(&mut self, version: u64, tree: Value) {
        self.replace(tree);
        self.version = Some(version);
    }

    /// The version that it is, if it is just that.
    pub fn is_version(&self) -> Option<u64> {
        self.version
    }

    /// Sets or deletes something below where we are.
    ///
    /// # Errors
    /// The model has no such place, or there is nothing to delete.
    pub fn edit(&mut self, verb: Verb, words: &[String]) -> Result<(), EditError> {
        let words: Path = self.here.steps().iter().chain(words).cloned().collect();
        let edit = Edit { verb, words };
        edit.apply(&mut self.tree)?;
        self.version = None;
        self.settle();
        Ok(())
    }

    /// Goes to a place below where we are.
    ///
    /// # Errors
    /// A text that says what may be edited.
    pub fn go(&mut self, words: &[String]) -> Result<(), String> {
        let path: Path = self.here.steps().iter().chain(words).cloned().collect();
        match schema::root().find(&path) {
            Some(schema) if schema.leaf().is_none() => {
                self.here = path;
                Ok(())
            }
            Some(_) => Err(format!("`{path}` is one value: `set` changes it")),
            None => Err(format!("there is no `{path}` in the model")),
        }
    }

    /// Goes up; at the top it stays there.
    pub fn up(&mut self) {
        self.here = self.here.parent().unwrap_or_default();
    }

    /// What was done.
    pub fn edits(&self) -> Vec<Edit> {
        difference(&self.before, &self.tree)
    }

    /// What is below a place.
    pub fn below(&self, words: &[String]) -> Option<&Value> {
        let path: Path = self.here.steps().iter().chain(words).cloned().collect();
        get(&self.tree, &path)
    }

    /// Where we are may have been deleted.
    fn settle(&mut self) {
        let entry = |path: &Path| {
            let above = path.parent().and_then(|above| schema::root().find(&above));
            above.is_some_and(|s| matches!(s.kind, schema::Kind::Entries { .. }))
        };
        while entry(&self.here) && get(&self.tree, &self.here).is_none() {
            self.up();
        }
    }
}

/// What differs, under the place that it is in: what goes with `-`, what comes with `+`.
pub fn compare(before: &Value, after: &Value) -> Vec<String> {
    let mut places: Vec<Path> = difference(before, after).iter().map(Edit::place).collect();
    places.dedup();
    let (mut lines, mut last) = (Vec::new(), None);
    for place in places {
        let above = place.parent().unwrap_or_default();
        let name = config::quoted(place.steps().last().map_or("", String::as_str));
        if last.as_ref() != Some(&above) {
            let shown = if above.is_root() {
                String::new()
            } else {
                format!(" {above}")
            };
            lines.push(format!("[edit{shown}]"));
            last = Some(above);
        }
        let (old, new) = (values(before, &place), values(after, &place));
        // of a list in another order, all of it
        let other_order = old.iter().all(|v| new.contains(v)) && old.len() == new.len();
        let gone = old.iter().filter(|v| other_order || !new.contains(v));
        lines.extend(gone.map(|v| format!("-  {name}{v}")));
        let come = new.iter().filter(|v| other_order || !old.contains(v));
        lines.extend(come.map(|v| format!("+  {name}{v}")));
    }
    lines
}

/// The values in a place, as they stand behind its name; of an entry or a part of the model, that it is there.
fn values(tree: &Value, place: &Path) -> Vec<String> {
    match get(tree, place) {
        None => Vec::new(),
        Some(Value::Object(_)) => vec![String::new()],
        Some(Value::Array(list)) => list
            .iter()
            .map(|v| format!(" {}", shown(place, v)))
            .collect(),
        Some(value) => vec![format!(" {}", shown(place, value))],
    }
}

/// A value, unless it is a secret.
fn shown(place: &Path, value: &Value) -> String {
    let secret = schema::root()
        .find(place)
        .and_then(|s| s.leaf())
        .is_some_and(|leaf| leaf.secret);
    match value {
        _ if secret => config::MASK.into(),
        Value::String(text) => config::quoted(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Candidate {
        Candidate::new(
            3,
            config::check::read(include_str!("../../../../deploy/examples/sluice.yaml"))
                .unwrap()
                .tree,
        )
    }

    fn words(line: &str) -> Vec<String> {
        config::words(line).unwrap()
    }

    #[test]
    fn one_moves_through_the_candidate_and_edits_where_one_is() {
        let mut candidate = example();
        candidate.go(&words("user-planes up1")).unwrap();
        candidate.go(&words("ports core0")).unwrap();
        candidate.edit(Verb::Set, &words("mtu 9000")).unwrap();
        let edits: Vec<String> = candidate.edits().iter().map(ToString::to_string).collect();
        assert_eq!(edits, ["set user-planes up1 ports core0 mtu 9000"]);
        assert!(
            candidate
                .go(&words("mtu"))
                .unwrap_err()
                .contains("`set` changes it")
        );
        assert!(
            candidate
                .go(&words("nothing"))
                .unwrap_err()
                .contains("no `user-planes up1 ports core0 nothing`")
        );
        candidate.up();
        candidate.edit(Verb::Delete, &words("core0")).unwrap();
        assert_eq!(candidate.here.to_string(), "user-planes up1 ports");
        candidate.here = Path::default();
        candidate.edit(Verb::Delete, &words("user-planes")).unwrap();
        assert_eq!(candidate.below(&words("user-planes")), None);
    }

    #[test]
    fn who_deletes_where_one_is_finds_oneself_above() {
        let mut candidate = example();
        candidate.go(&words("user-planes up1")).unwrap();
        let mut tree = candidate.tree().clone();
        Edit::parse("delete user-planes up1")
            .unwrap()
            .apply(&mut tree)
            .unwrap();
        candidate.replace(tree);
        assert_eq!(candidate.here.to_string(), "user-planes");
    }

    #[test]
    fn a_comparison_shows_what_goes_and_what_comes_and_no_secret() {
        let mut candidate = example();
        for line in [
            "user-planes up1 ports core0 mtu 9000",
            "limits sessions 5",
            "users test@sluice password hunter2",
            "subscriber-profiles gold dns 192.0.2.54",
            "subscriber-groups west",
        ] {
            candidate.edit(Verb::Set, &words(line)).unwrap();
        }
        candidate
            .edit(Verb::Delete, &words("user-planes up2"))
            .unwrap();
        candidate
            .edit(
                Verb::Delete,
                &words("user-planes up1 ports access0 subscriber-group"),
            )
            .unwrap();
        let lines = compare(&example().tree, candidate.tree());
        assert_eq!(
            lines.join("\n"),
            "[edit limits]\n\
             +  sessions 5\n\
             [edit subscriber-groups]\n\
             +  west\n\
             [edit subscriber-profiles gold]\n\
             +  dns 192.0.2.54\n\
             [edit user-planes]\n\
             -  up2\n\
             [edit user-planes up1 ports access0]\n\
             -  subscriber-group east\n\
             [edit user-planes up1 ports core0]\n\
             +  mtu 9000\n\
             [edit users test@sluice]\n\
             -  password ********\n\
             +  password ********"
        );
    }
}
