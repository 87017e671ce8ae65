//! Files that their owner alone may read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Writes a file as a whole: whoever reads it sees what it was before, or this. It belongs to the owner of its folder, because root
/// makes tokens for the daemon.
///
/// # Errors
/// What the system says.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
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
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    config::folder::sync(folder)
}
