//! Folders that what is acknowledged lies in: a file that is synced is lost with the folder whose name is not.

use std::fs::{self, File};
use std::io;
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

/// The folder that a path is in.
pub fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| *above != Path::new(""));
    above.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

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
