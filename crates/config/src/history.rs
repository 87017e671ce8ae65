//! The versions of the configuration on disk: one YAML file each, that an engineer can read, and with care even put in place.
//!
//! A version is written whole beside the others, made durable and then given its name: whenever the machine dies, there is the
//! old one or the new one. A damaged file is never passed over in silence.

use crate::MAX_DOCUMENT;
use crate::check::{self, Checked};
use crate::folder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// How many versions are kept.
pub const KEPT: usize = 100;
/// How many octets all versions may have together. Above it, only [`KEPT_OF_LARGE`] are kept.
const LARGE: u64 = 1 << 30;
/// How many versions are kept in any case, however large they are.
const KEPT_OF_LARGE: usize = 10;
/// What the first line of a version begins with.
const HEADER: &str = "# sluice ";

/// Who made a version, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Version {
    /// Its number; they count from 1.
    pub version: u64,
    /// When, in seconds since 1970.
    pub at: u64,
    /// Who: the name of a user of this machine, or what of the system itself.
    pub by: String,
    /// Why.
    pub comment: String,
    /// If it is not confirmed by then (seconds since 1970), the one before comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_by: Option<u64>,
    /// SHA-256 of what follows the first line, in hexadecimal.
    sha256: String,
}

/// Why the versions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The operating system refused something.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A version would be larger than what is read again.
    #[error("the configuration has {} MB: expected at most {} MiB", .0 / 1_000_000, MAX_DOCUMENT >> 20)]
    TooLarge(usize),
    /// There is no such version.
    #[error(
        "version {0} does not exist: `sluice show configuration versions` lists the stored versions"
    )]
    Unknown(u64),
}

/// Every version that is kept; the last one is in force.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
    versions: BTreeMap<u64, Version>,
    /// Size of each version's file, in octets.
    octets: BTreeMap<u64, u64>,
    current: Checked,
}

impl History {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// The folder cannot be read or written, or the version in force is damaged or not one of this model.
    pub fn open(folder: &Path) -> Result<Self, HistoryError> {
        let wrong = |path: &Path| {
            let path = path.to_owned();
            move |source| HistoryError::Io { path, source }
        };
        folder::make(folder).map_err(wrong(folder))?;
        let mut history = History {
            folder: folder.to_owned(),
            versions: BTreeMap::new(),
            octets: BTreeMap::new(),
            current: Checked::default(),
        };
        for entry in fs::read_dir(folder).map_err(wrong(folder))? {
            let path = entry.map_err(wrong(folder))?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.ends_with(".new") {
                fs::remove_file(&path).map_err(wrong(&path))?; // its writer died before it had its name
                continue;
            }
            if let Some(number) = number(&name) {
                let (version, _) = read(&path, number)?;
                history.versions.insert(number, version);
                let octets = fs::metadata(&path).map_err(wrong(&path))?.len();
                history.octets.insert(number, octets);
            }
        }
        // what was renamed and not synced before a death may yet go away: what is used from here on must not
        folder::sync(folder).map_err(wrong(folder))?;
        if let Some(last) = history.version() {
            history.current = history.load(last)?;
        }
        Ok(history)
    }

    /// The number of the version in force; `None` if there was never one.
    pub fn version(&self) -> Option<u64> {
        self.versions.keys().next_back().copied()
    }

    /// What is in force.
    pub fn current(&self) -> &Checked {
        &self.current
    }

    /// Every version that is kept, the oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.versions.values()
    }

    /// A version as it was.
    ///
    /// # Errors
    /// It is not kept any more, cannot be read, or is not one of this model.
    pub fn load(&self, number: u64) -> Result<Checked, HistoryError> {
        if !self.versions.contains_key(&number) {
            return Err(HistoryError::Unknown(number));
        }
        let path = self.path(number);
        let (_, text) = read(&path, number)?;
        check::read(&text).map_err(|faults| {
            let mut why = format!("version {number} is not a configuration of this program:");
            for fault in faults.iter().take(10) {
                let _ = write!(why, "\n  {fault}");
            }
            HistoryError::Damaged { path, why }
        })
    }

    /// Makes a configuration the one in force. It is durable when this returns, with its number and the configuration before it. Takes long
    /// if the configuration is large, and so does letting go of the one before.
    ///
    /// # Errors
    /// It could not be written, or is too large to be read again: the one before stays in force.
    pub fn commit(
        &mut self,
        checked: Checked,
        at: u64,
        by: &str,
        comment: &str,
        confirm_by: Option<u64>,
    ) -> Result<(u64, Checked), HistoryError> {
        let number = self.version().unwrap_or(0) + 1;
        let text = crate::write(&checked.tree, true);
        // it was read in another form, or put together by edits
        if text.len() > MAX_DOCUMENT {
            return Err(HistoryError::TooLarge(text.len()));
        }
        let version = Version {
            version: number,
            at,
            by: by.into(),
            comment: comment.into(),
            confirm_by,
            sha256: digest(&text),
        };
        let octets = self.put(&version, &text)?;
        self.name(number)?;
        self.octets.insert(number, octets);
        self.versions.insert(number, version);
        let former = std::mem::replace(&mut self.current, checked);
        self.prune();
        Ok((number, former))
    }

    /// Takes the last commit back: what was in force before it is again. It is durable when this returns.
    ///
    /// # Errors
    /// The version could not be removed from the disk, and will be in force after the next start.
    pub fn take_back(&mut self, former: Checked) -> Result<(), HistoryError> {
        let Some((number, _)) = self.versions.pop_last() else {
            return Ok(());
        };
        self.octets.remove(&number);
        self.current = former;
        let path = self.path(number);
        let removed = fs::remove_file(&path).and_then(|()| folder::sync(&self.folder));
        removed.map_err(|source| HistoryError::Io { path, source })
    }

    /// The version in force needs no confirmation any more.
    ///
    /// # Errors
    /// It could not be written: it still needs one.
    pub fn confirm(&mut self) -> Result<(), HistoryError> {
        let Some(mut version) = self.version().map(|last| self.versions[&last].clone()) else {
            return Ok(());
        };
        if version.confirm_by.take().is_some() {
            let (_, text) = read(&self.path(version.version), version.version)?;
            let octets = self.put(&version, &text)?;
            self.name(version.version)?;
            self.octets.insert(version.version, octets);
            self.versions.insert(version.version, version);
        }
        Ok(())
    }

    /// When the version in force is given up unless somebody confirms it, in seconds since 1970.
    pub fn confirm_by(&self) -> Option<u64> {
        self.versions.values().next_back()?.confirm_by
    }

    /// The last version that needs no confirmation: what comes back when the one in force is not confirmed.
    pub fn last_confirmed(&self) -> Option<u64> {
        let confirmed = |version: &&Version| version.confirm_by.is_none();
        self.versions
            .values()
            .rev()
            .find(confirmed)
            .map(|version| version.version)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}.yaml"))
    }

    /// Writes a version beside those that have their names, and syncs it. Returns its size in octets.
    fn put(&self, version: &Version, text: &str) -> Result<u64, HistoryError> {
        let path = self.path(version.version);
        let written = || -> io::Result<u64> {
            let header = serde_json::to_string(version)?;
            let mut file = File::create(path.with_extension("new"))?;
            rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?; // there are secrets in it
            writeln!(file, "{HEADER}{header}")?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(file.metadata()?.len())
        };
        written().map_err(|source| HistoryError::Io { path, source })
    }

    /// Gives a version that was written its name.
    fn name(&self, number: u64) -> Result<(), HistoryError> {
        let path = self.path(number);
        let named = fs::rename(path.with_extension("new"), &path);
        let named = named.and_then(|()| folder::sync(&self.folder));
        named.map_err(|source| HistoryError::Io { path, source })
    }

    /// Lets go of what is too old; the last confirmed one is kept in any case.
    fn prune(&mut self) {
        let confirmed = self.last_confirmed();
        let is_large = |history: &History| {
            history.versions.len() > KEPT_OF_LARGE && history.octets.values().sum::<u64>() > LARGE
        };
        while self.versions.len() > KEPT || is_large(self) {
            let oldest = self
                .versions
                .keys()
                .copied()
                .find(|n| Some(*n) != confirmed);
            let Some(oldest) = oldest else { return };
            // one that cannot be removed is tried again when the folder is opened anew
            let _ = fs::remove_file(self.path(oldest));
            self.versions.remove(&oldest);
            self.octets.remove(&oldest);
        }
    }
}

/// Whether a folder has a version of the configuration, readable or not.
pub fn has_version(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| number(&entry.file_name().to_string_lossy()).is_some())
}

/// The number of the version in a file of this name.
fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".yaml")?.parse().ok()
}

fn digest(text: &str) -> String {
    let mut hex = String::new();
    for octet in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{octet:02x}");
    }
    hex
}

/// The header and the document of a version.
fn read(path: &Path, number: u64) -> Result<(Version, String), HistoryError> {
    let damaged = |why: &str| HistoryError::Damaged {
        path: path.to_owned(),
        why: format!("{why}. Move the file away to go on with the version before it"),
    };
    let text = fs::read_to_string(path).map_err(|source| HistoryError::Io {
        path: path.to_owned(),
        source,
    })?;
    let (header, text) = text.split_once('\n').unwrap_or((&text, ""));
    let header = header
        .strip_prefix(HEADER)
        .ok_or_else(|| damaged("it does not have the header of a version"))?;
    let version: Version = serde_json::from_str(header)
        .map_err(|error| damaged(&format!("its first line: {error}")))?;
    if version.version != number {
        return Err(damaged(&format!(
            "its header says version {}",
            version.version
        )));
    }
    if version.sha256 != digest(text) {
        return Err(damaged("it is not as it was written: the checksum differs"));
    }
    Ok((version, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn commit(history: &mut History, tree: serde_json::Value) -> Result<u64, HistoryError> {
        let checked = Checked {
            tree,
            ..Checked::default()
        };
        let (number, _) = history.commit(checked, 0, "test", "", None)?;
        Ok(number)
    }

    #[test]
    fn large_versions_are_kept_within_a_bound_and_some_in_any_case() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(folder.path()).unwrap();
        let (few, many) = (KEPT_OF_LARGE as u64, KEPT as u64);
        for number in 1..=few + 5 {
            assert_eq!(commit(&mut history, json!({})).unwrap(), number);
        }
        // as if they were large
        history
            .octets
            .values_mut()
            .for_each(|octets| *octets = LARGE / few);
        commit(&mut history, json!({})).unwrap();
        let kept = |history: &History| history.versions().map(|v| v.version).collect::<Vec<_>>();
        let newest = few + 6;
        assert_eq!(
            kept(&history),
            (newest - few + 1..=newest).collect::<Vec<_>>()
        );
        assert!(!history.path(newest - few).exists());
        // small ones again: those that are large go as they get old
        for _ in 0..many {
            commit(&mut history, json!({})).unwrap();
        }
        assert_eq!(kept(&history).len(), KEPT);
    }

    #[test]
    fn a_commit_that_is_taken_back_is_not_there_after_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(folder.path()).unwrap();
        commit(&mut history, json!({"logging": {"level": "info"}})).unwrap();
        let other = json!({"logging": {"level": "debug"}});
        let checked = check::check(&other).unwrap();
        let (number, former) = history.commit(checked, 0, "test", "", None).unwrap();
        assert_eq!((number, history.version()), (2, Some(2)));
        history.take_back(former).unwrap();
        let tree = json!({"logging": {"level": "info"}});
        assert_eq!(
            (history.version(), &history.current().tree),
            (Some(1), &tree)
        );
        let again = History::open(folder.path()).unwrap();
        assert_eq!((again.version(), &again.current().tree), (Some(1), &tree));
        assert_eq!(commit(&mut history, other).unwrap(), 2);
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(folder.path()).unwrap();
        let huge = json!({"users": {"a": {"password": "x".repeat(MAX_DOCUMENT)}}});
        let refused = commit(&mut history, huge).unwrap_err().to_string();
        assert!(refused.contains("expected at most 96 MiB"), "{refused}");
        assert_eq!(history.version(), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
