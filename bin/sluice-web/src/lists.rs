//! Lists in files of the state folder: tokens, users, one-time links. Commands change a file while the server runs; the server reads it
//! again when it has changed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum length of a name, in octets.
const NAME: usize = 64;

/// Entry of a list.
pub trait Entry: Serialize + DeserializeOwned {
    /// What it is called: its command, and in the plural its file.
    const KIND: &'static str;
    /// Maximum number of entries.
    const MOST: usize;

    /// Its name.
    fn name(&self) -> &str;
}

/// File of a list.
#[derive(Debug)]
pub struct ListFile<T> {
    path: PathBuf,
    entries: PhantomData<fn() -> T>,
}

impl<T> Clone for ListFile<T> {
    fn clone(&self) -> Self {
        ListFile {
            path: self.path.clone(),
            entries: PhantomData,
        }
    }
}

impl<T: Entry> ListFile<T> {
    /// The file in this state folder.
    pub fn of(state: &Path) -> Self {
        ListFile {
            path: state.join(format!("{}s.json", T::KIND)),
            entries: PhantomData,
        }
    }

    /// The entries; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is no such list.
    pub fn read(&self) -> Result<Vec<T>, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        match fs::read(&self.path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| said(&error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(said(&error)),
        }
    }

    /// Adds an entry whose name no other has.
    ///
    /// # Errors
    /// The name cannot be used or is taken, the list is full, or the file cannot be changed.
    pub fn add(&self, entry: T) -> Result<(), String> {
        let kind = T::KIND;
        check_name(entry.name())?;
        self.change(|entries| {
            if entries.iter().any(|other| other.name() == entry.name()) {
                return Err(format!(
                    "there is a {kind} `{}` already: choose another name, or remove that one first",
                    entry.name()
                ));
            }
            push(entries, entry)
        })
    }

    /// Changes the entry of this name.
    ///
    /// # Errors
    /// There is none, or the file cannot be changed.
    pub fn change_one(&self, name: &str, change: impl FnOnce(&mut T)) -> Result<(), String> {
        self.change(|entries| {
            let entry = entries.iter_mut().find(|entry| entry.name() == name);
            entry.map(change).ok_or_else(|| nobody::<T>(name))
        })
    }

    /// Removes the entry of this name.
    ///
    /// # Errors
    /// There is none, or the file cannot be changed.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.name() != name);
            match entries.len() == before {
                true => Err(nobody::<T>(name)),
                false => Ok(()),
            }
        })
    }

    /// Changes the file as a whole: whoever reads it sees the old one or the new one. Changes wait for each other.
    ///
    /// # Errors
    /// Those of `change`, after which the file is as it was; or it cannot be read or written.
    pub fn change<R>(
        &self,
        change: impl FnOnce(&mut Vec<T>) -> Result<R, String>,
    ) -> Result<R, String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let said = |error: std::io::Error| format!("{}: {error}", self.path.display());
        config::folder::make(folder).map_err(said)?;
        let lock = File::open(folder).map_err(said)?;
        lock.lock().map_err(said)?;
        let mut entries = self.read()?;
        let done = change(&mut entries)?;
        let text = serde_json::to_vec_pretty(&entries).map_err(|error| error.to_string())?;
        config::folder::replace(&self.path, &text).map_err(said)?;
        Ok(done)
    }
}

/// Adds an entry to a list that has room for it.
///
/// # Errors
/// The list is full.
pub fn push<T: Entry>(entries: &mut Vec<T>, entry: T) -> Result<(), String> {
    if entries.len() >= T::MOST {
        return Err(format!(
            "there are {} {}s already: remove some that nobody uses",
            T::MOST,
            T::KIND
        ));
    }
    entries.push(entry);
    Ok(())
}

/// Checks that a name can be used. It stands in logs, and in who did something.
///
/// # Errors
/// It cannot; the sentence says what is expected.
pub fn check_name(name: &str) -> Result<(), String> {
    let visible = name.chars().all(|c| c.is_ascii_graphic());
    match visible && (1..=NAME).contains(&name.len()) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is no name: expected 1 to {NAME} visible ASCII characters without blanks"
        )),
    }
}

fn nobody<T: Entry>(name: &str) -> String {
    let kind = T::KIND;
    format!("there is no {kind} `{name}`: `sluice-web {kind} list` lists them")
}

/// What a file was when it was read; [`None`]: it was not there.
type Version = Option<(u64, i64, i64, u64)>;

/// Entries of a file that is read again when it has changed.
#[derive(Debug)]
pub struct List<T> {
    file: ListFile<T>,
    read: Mutex<(Version, Vec<T>)>,
}

impl<T: Entry> List<T> {
    /// The entries of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(file: ListFile<T>) -> Result<Self, String> {
        let read = (version(&file.path), file.read()?);
        Ok(List {
            file,
            read: Mutex::new(read),
        })
    }

    /// The file.
    pub fn file(&self) -> &ListFile<T> {
        &self.file
    }

    /// Looks at the entries as they are now.
    pub fn look<R>(&self, look: impl FnOnce(&[T]) -> R) -> R {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let there = version(&self.file.path);
        if read.0 != there {
            // nobody is let in by a file that cannot be read
            let entries = self.file.read().unwrap_or_else(|error| {
                tracing::error!(
                    error,
                    "a list cannot be read: nobody whom it names is let in"
                );
                Vec::new()
            });
            *read = (there, entries);
        }
        look(&read.1)
    }
}

fn version(path: &Path) -> Version {
    let there = fs::metadata(path).ok()?;
    // the time of the last change of content, owner or mode: a file that could not be read may be readable then
    Some((there.ino(), there.ctime(), there.ctime_nsec(), there.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::os::unix::fs::PermissionsExt;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Guest {
        name: String,
        seat: u32,
    }

    impl Entry for Guest {
        const KIND: &'static str = "guest";
        const MOST: usize = 3;

        fn name(&self) -> &str {
            &self.name
        }
    }

    fn guest(name: &str) -> Guest {
        Guest {
            name: name.into(),
            seat: 1,
        }
    }

    #[test]
    fn names_are_unique_and_a_list_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(&folder.path().join("web"));
        for wrong in ["", "a b", "naïve", &"x".repeat(NAME + 1)] {
            assert!(file.add(guest(wrong)).is_err(), "{wrong}");
        }
        file.add(guest("a")).unwrap();
        let said = file.add(guest("a")).unwrap_err();
        assert!(said.contains("there is a guest `a` already"), "{said}");
        file.add(guest("b")).unwrap();
        file.add(guest("c")).unwrap();
        let said = file.add(guest("d")).unwrap_err();
        assert!(said.contains("there are 3 guests already"), "{said}");
        file.remove("b").unwrap();
        for said in [file.remove("b"), file.change_one("b", |_| ())] {
            assert!(said.unwrap_err().contains("`sluice-web guest list`"));
        }
        file.add(guest("d")).unwrap();
    }

    #[test]
    fn the_file_is_for_its_owner_alone_and_a_refused_change_leaves_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        file.add(guest("a")).unwrap();
        let path = folder.path().join("guests.json");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused: Result<(), String> = file.change(|entries| {
            entries.clear();
            Err("no".into())
        });
        assert_eq!(refused, Err("no".into()));
        assert_eq!(file.read(), Ok(vec![guest("a")]));
    }

    #[test]
    fn a_changed_file_is_read_again_and_one_that_cannot_be_read_has_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        let list = List::open(file.clone()).unwrap();
        assert_eq!(list.look(<[Guest]>::len), 0);
        file.add(guest("a")).unwrap();
        file.change_one("a", |guest| guest.seat = 2).unwrap();
        assert_eq!(list.look(|guests| guests[0].seat), 2);
        fs::write(folder.path().join("guests.json"), "{}").unwrap();
        assert_eq!(list.look(<[Guest]>::len), 0);
        assert!(List::open(file).is_err());
    }

    #[test]
    fn changes_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        file.add(guest("a")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        file.change_one("a", |guest| guest.seat += 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap()[0].seat, 21);
    }
}
