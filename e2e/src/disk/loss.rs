//! What a loss of power leaves of a disk: everything that was synced, and of the rest anything.

use super::image::{Change, Image};

/// With so many changes that are not synced every choice of them is tried, and with more only some.
const ALL_CHOICES: usize = 4;

/// A disk as it goes from change to change.
#[derive(Default)]
pub struct Loss {
    /// What is certain.
    certain: Image,
    /// Changes that no sync has made certain yet.
    pending: Vec<Change>,
}

/// What becomes of a change that was not synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Kept,
    /// Of what was written the first half is there.
    Half,
    /// The file has its new length, and zeros where octets were written.
    Zeros,
}

impl Loss {
    /// The next change or sync happens.
    pub fn take(&mut self, change: &Change) {
        match change {
            Change::Sync(node) => {
                for done in self.pending.extract_if(.., |c| c.subject() == *node) {
                    self.certain.apply(&done);
                }
            }
            Change::Make {
                node, is_folder, ..
            } => {
                // It may be synced before its name is.
                self.certain.make(*node, *is_folder);
                self.pending.push(change.clone());
            }
            _ => self.pending.push(change.clone()),
        }
    }

    /// What may be on the disk if the power is lost now.
    pub fn states(&self) -> Vec<Image> {
        let choices = self.choices();
        choices.iter().map(|fates| self.state(fates)).collect()
    }

    fn state(&self, fates: &[Fate]) -> Image {
        let mut image = self.certain.clone();
        for (change, fate) in self.pending.iter().zip(fates) {
            if let Some(left) = left(change, *fate) {
                image.apply(&left);
            }
        }
        image
    }

    fn choices(&self) -> Vec<Vec<Fate>> {
        let count = self.pending.len();
        let kept_if = |keep: &dyn Fn(usize) -> bool| -> Vec<Fate> {
            let fate = |n| if keep(n) { Fate::Kept } else { Fate::Lost };
            (0..count).map(fate).collect()
        };
        let mut choices = Vec::new();
        if count <= ALL_CHOICES {
            choices.extend((0..1 << count).map(|set: usize| kept_if(&|n| set >> n & 1 == 1)));
        } else {
            let is_name = |n: usize| self.pending[n].is_of_names();
            choices.extend([kept_if(&|_| false), kept_if(&|_| true)]);
            choices.extend([kept_if(&is_name), kept_if(&|n| !is_name(n))]);
            for one in 0..count {
                choices.extend([kept_if(&|n| n != one), kept_if(&|n| n < one)]);
            }
        }
        for (one, change) in self.pending.iter().enumerate() {
            if matches!(change, Change::Write { .. }) {
                for fate in [Fate::Half, Fate::Zeros] {
                    let mut fates = kept_if(&|_| true);
                    fates[one] = fate;
                    choices.push(fates);
                }
            }
        }
        choices
    }
}

/// What is left of a change.
fn left(change: &Change, fate: Fate) -> Option<Change> {
    let mut change = change.clone();
    if let Change::Write { octets, .. } = &mut change {
        match fate {
            Fate::Half => octets.truncate(octets.len() / 2),
            Fate::Zeros => octets.fill(0),
            Fate::Lost | Fate::Kept => {}
        }
    }
    (fate != Fate::Lost).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::super::image::{Node, ROOT};
    use super::*;

    fn make(name: &str, node: u64) -> Change {
        Change::Make {
            folder: ROOT,
            name: name.into(),
            node,
            is_folder: false,
        }
    }

    fn write(file: u64, text: &str) -> Change {
        Change::Write {
            file,
            at: 0,
            octets: text.into(),
        }
    }

    /// What each state has under this name, `None` among it where it has nothing.
    fn contents(changes: &[Change], name: &str) -> Vec<Option<String>> {
        let mut loss = Loss::default();
        changes.iter().for_each(|change| loss.take(change));
        let content = |image: &Image| {
            let Node::File(content) = image.node(image.find(ROOT, name)?)? else {
                return None;
            };
            Some(String::from_utf8_lossy(content).into_owned())
        };
        let mut found: Vec<_> = loss.states().iter().map(content).collect();
        found.sort();
        found.dedup();
        found
    }

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn what_is_not_synced_may_be_there_or_not_or_in_part() {
        let changes = [make("a", 2), write(2, "text")];
        let zeros = some("\0\0\0\0");
        let all = [None, some(""), zeros, some("te"), some("text")];
        assert_eq!(contents(&changes, "a"), all);
    }

    #[test]
    fn a_synced_file_may_lack_its_name_and_a_synced_name_its_content() {
        let file = [make("a", 2), write(2, "text"), Change::Sync(2)];
        assert_eq!(contents(&file, "a"), [None, some("text")]);
        let name = [make("a", 2), Change::Sync(ROOT), write(2, "text")];
        let all = [some(""), some("\0\0\0\0"), some("te"), some("text")];
        assert_eq!(contents(&name, "a"), all);
        let both = [&file[..], &[Change::Sync(ROOT)]].concat();
        assert_eq!(contents(&both, "a"), [some("text")]);
    }

    #[test]
    fn a_rename_is_there_as_a_whole_or_not_at_all() {
        let rename = Change::Rename {
            folder: ROOT,
            from: "b".into(),
            to: "a".into(),
            node: 3,
        };
        let changes = [
            make("a", 2),
            write(2, "old"),
            Change::Sync(2),
            make("b", 3),
            write(3, "new"),
            Change::Sync(3),
            Change::Sync(ROOT),
            rename,
        ];
        assert_eq!(contents(&changes, "a"), [some("new"), some("old")]);
        assert_eq!(contents(&changes, "b"), [None, some("new")]);
        let synced = [&changes[..], &[Change::Sync(ROOT)]].concat();
        assert_eq!(contents(&synced, "a"), [some("new")]);
    }
}
