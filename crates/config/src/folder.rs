//! Folders that what is acknowledged lies in: a file that is synced is lost with the folder whose name is not.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Makes a folder and those above it that are missing. Their names are on the disk when this returns.
///
/// # Errors
/// What the system says.
pub fn make(folder: &Path) -> io::Result<()> {
    let above = above(folder);
    // Who made one that is there may have died before its name was on the disk.
    if !folder.is_dir() {
        make(above)?;
        match fs::create_dir(folder) {
            Err(_) if folder.is_dir() => {} // somebody else was faster
            made => made?,
        }
    }
    sync(above)
}

/// Waits until the names in a folder are on the disk.
///
/// # Errors
/// What the system says.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Waits until the name of a file or folder is on the disk.
///
/// # Errors
/// What the system says.
pub fn sync_name(path: &Path) -> io::Result<()> {
    sync(above(path))
}

/// Writes a file as a whole: whoever reads it sees what it was before, or this, also after a loss of power. Its owner alone may read it, who
/// is that of its folder: root makes tokens for a daemon.
///
/// # Errors
/// What the system says.
pub fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    let folder = above(path);
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&new)?;
    let owner = fs::metadata(folder)?;
    if file.metadata()?.uid() != owner.uid() {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync(folder)
}

/// The folder that a path is in.
pub fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| *above != Path::new(""));
    above.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_its_owner_alone_may_read_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(file.with_extension("new"), "from a life before").unwrap();
        for octets in ["first and longer", "second"] {
            replace(&file, octets.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), octets);
        }
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(replace(&place.path().join("none/file"), b"").is_err());
    }

    #[test]
    fn missing_folders_are_made_and_a_file_in_their_place_is_told() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b/c");
        make(&folder).unwrap();
        assert!(folder.is_dir());
        make(&folder).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        assert!(make(&folder.join("file")).is_err());
        assert!(make(&folder.join("file/below")).is_err());
        assert_eq!(above(Path::new("a")), Path::new("."));
    }
}
