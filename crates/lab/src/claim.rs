//! Who has a lab: its directory, the lock in it, and what somebody left who had it before.

use crate::netns::Netns;
use crate::process;
use crate::topology::Place;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Below this lives a directory for each lab: a real disk, because the control plane's store is in it.
const HOME: &str = "/var/lib/sluice-lab";
/// The file in a lab's directory that whoever has the lab holds locked.
const LOCK: &str = "lock";
/// The most labs of one family side by side.
const MOST_NUMBERED: u32 = 99;

/// The directory of the lab `name`: configuration, sockets, logs, pid files and the store.
pub fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(if name.is_empty() { "default" } else { name })
}

/// The right to a lab's name, as long as it lives.
#[derive(Debug)]
pub(super) struct Claim {
    name: String,
    _lock: Flock<File>,
}

impl Claim {
    /// Claims a name; an error if somebody has it.
    pub fn of(name: &str) -> Result<Self> {
        let claimed = Self::try_of(name)?;
        claimed.with_context(|| {
            let lock = directory(name).join(LOCK);
            format!(
                "a lab of this name is running already (it holds {})",
                lock.display()
            )
        })
    }

    /// Claims the first of the names `FAMILY-1`, `FAMILY-2` and so on that nobody has.
    pub fn numbered(family: &str) -> Result<Self> {
        for number in 1..=MOST_NUMBERED {
            if let Some(claim) = Self::try_of(&format!("{family}-{number}"))? {
                return Ok(claim);
            }
        }
        bail!("{MOST_NUMBERED} labs of the family {family} are running already")
    }

    /// Claims a name unless somebody has it.
    fn try_of(name: &str) -> Result<Option<Self>> {
        check_name(name)?;
        let dir = directory(name);
        loop {
            fs::create_dir_all(&dir)
                .with_context(|| format!("cannot make {} (are you root?)", dir.display()))?;
            let path = dir.join(LOCK);
            let mut options = OpenOptions::new();
            let file = match options.write(true).create(true).truncate(false).open(&path) {
                // Whoever had the name has just removed the directory.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.with_context(|| format!("cannot write {}", path.display()))?,
            };
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, error)) => return Err(error).context(path.display().to_string()),
            };
            // A file that was removed while this waited for it is nobody's lock any more.
            let ours = lock.metadata()?.ino();
            if fs::metadata(&path).is_ok_and(|there| there.ino() == ours) {
                let name = name.to_owned();
                return Ok(Some(Claim { name, _lock: lock }));
            }
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends what an earlier run under this name left, and empties the directory; the ids of the processes that had to be
    /// ended.
    pub fn clear(&self) -> Result<Vec<i32>> {
        let ended = end(&self.name)?;
        for part in parts(&self.name)? {
            fs::remove_dir_all(directory(&part))?;
        }
        empty(&directory(&self.name))?;
        Ok(ended)
    }
}

fn check_name(name: &str) -> Result<()> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let mut words = name.split('.');
    let sound = name.is_empty() || words.all(|word| !word.is_empty() && word.bytes().all(letter));
    if name.len() > 24 || !sound {
        bail!(
            "a lab's name has at most 24 letters, digits and dashes, and dots between them, not {name:?}"
        );
    }
    Ok(())
}

/// Clears away the labs `FAMILY-1`, `FAMILY-2` and so on that ended without doing it themselves, with their directories.
pub fn clear_dead(family: &str) -> Result<()> {
    for name in names()? {
        let number = name.strip_prefix(family).and_then(|n| n.strip_prefix('-'));
        if number.is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        if let Some(claim) = Claim::try_of(&name)? {
            claim.clear()?;
            fs::remove_dir_all(directory(&name))?;
        }
    }
    Ok(())
}

/// Ends what runs in the lab `name`, then in the labs that belong to it, and removes their namespaces; the ids of the
/// processes that had to be ended. The lab has to be the caller's own, or nobody's.
pub fn end(name: &str) -> Result<Vec<i32>> {
    let mut ended = Vec::new();
    // Its own processes go first: one of them may have started another one's, and would start them again.
    for lab in std::iter::once(name.to_owned()).chain(parts(name)?) {
        let namespaces = namespaces(&lab)?;
        ended.extend(process::end_leftovers(&directory(&lab), &namespaces)?);
        remove(&namespaces)?;
    }
    Ok(ended)
}

/// The names of all labs that have a directory; the one without a name is not among them.
fn names() -> Result<Vec<String>> {
    let entries = match fs::read_dir(HOME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {HOME}"))?,
    };
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
    let names: Result<Vec<Option<String>>> = entries.map(name).collect();
    Ok(names?.into_iter().flatten().collect())
}

/// The names of the labs that belong to a lab, or did.
pub fn parts(name: &str) -> Result<Vec<String>> {
    let is_part = |other: &String| !name.is_empty() && is_part(other, name);
    Ok(names()?.into_iter().filter(is_part).collect())
}

fn is_part(other: &str, name: &str) -> bool {
    other
        .strip_prefix(name)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// The namespaces of a lab: those of its places, and what else was made under its name.
fn namespaces(name: &str) -> Result<Vec<Netns>> {
    let mut found: Vec<Netns> = Place::ALL.map(|place| place.netns(name)).into();
    let is_more = |netns: &Netns| lab_of(netns) == Some(name) && !found.contains(netns);
    let more: Vec<Netns> = Netns::all()?.into_iter().filter(is_more).collect();
    found.extend(more);
    found.retain(Netns::exists);
    Ok(found)
}

/// The lab with a name that a namespace belongs to.
fn lab_of(netns: &Netns) -> Option<&str> {
    let (_, lab) = netns.name().strip_prefix("sluice-")?.split_once('-')?;
    Some(lab)
}

/// Removes namespaces, as far as they exist: all that can be, whatever else fails.
pub(super) fn remove(places: &[Netns]) -> Result<()> {
    let mut done = Ok(());
    for place in places.iter().filter(|place| place.exists()) {
        let deleted = place.delete();
        // Somebody else who ends the same lab may have been faster.
        if place.exists() {
            done = done.and(deleted);
        }
    }
    done
}

/// Empties the lab's directory, but for the lock that this run holds.
fn empty(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for wrong in [
            "../x",
            "a/b",
            "a b",
            "..",
            ".a",
            "a.",
            "aaaaaaaaaaaaaaaaaaaaaaaaa",
        ] {
            assert!(Claim::of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_belongs_to_a_lab_is_told_from_what_belongs_to_another() {
        let namespace = Netns::named;
        assert_eq!(lab_of(&namespace("sluice-r1-e2e-1.frr")), Some("e2e-1.frr"));
        assert_eq!(lab_of(&namespace("sluice-up1")), None);
        assert_eq!(lab_of(&namespace("other-up1-e2e-1")), None);
        assert!(is_part("e2e-1.frr", "e2e-1"));
        assert!(!is_part("e2e-1", "e2e-1") && !is_part("e2e-12", "e2e-1"));
    }
}
