//! Backup: a copy of the history, made while it is written.

use super::database::Reader;
use super::sqlite::{self, as_io};
use config::folder;
use nix::sys::statvfs::statvfs;
use northbound::{BackupResponse, Refusal};
use rusqlite::InterruptHandle;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Name of the latest copy in the history's directory, and of one that is not complete.
const NAME: &str = "backup.db";
const UNFINISHED: &str = "backup.part";
/// Octets that have to stay free: the daemon's store may be on the same disk.
pub(super) const RESERVE: u64 = 256 << 20;

/// How often whoever asked for it hears how far it is.
const SECOND: Duration = Duration::from_secs(1);

/// How far it is.
pub(super) type Part = Result<BackupResponse, Refusal>;

/// A backup that is to be made.
#[derive(Debug)]
pub(super) struct Backup {
    connection: rusqlite::Connection,
    directory: PathBuf,
    /// Octets that it will take, about.
    octets: u64,
}

impl Backup {
    /// Prepares a copy of the history, behind which so many octets stay free.
    ///
    /// # Errors
    /// There is not enough room for it; or the system's error.
    pub fn prepare(reader: &Reader, reserve: u64) -> io::Result<Self> {
        let connection = reader.connect().map_err(as_io)?;
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        let used =
            number("page_count").map_err(as_io)? - number("freelist_count").map_err(as_io)?;
        let octets = used * number("page_size").map_err(as_io)?;
        let directory = reader.directory().to_owned();
        discard(&directory.join(UNFINISHED))?;
        let disk = statvfs(&directory)?;
        let free = disk.blocks_available() * disk.fragment_size();
        if free < octets + reserve {
            let why = format!(
                "{} has {} MiB free: a copy of the history takes {} MiB, and {} MiB have to stay free",
                directory.display(),
                free >> 20,
                octets >> 20,
                reserve >> 20
            );
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        Ok(Backup {
            connection,
            directory,
            octets,
        })
    }

    /// Makes the copy in a blocking thread, and says each second how far it is. It ends early when nobody listens any more.
    ///
    /// # Errors
    /// The system's error. The copy before is still there.
    pub async fn run(self, parts: &mpsc::Sender<Part>) -> io::Result<BackupResponse> {
        let of = self.octets;
        let unfinished = self.directory.join(UNFINISHED);
        let interrupt = Interrupt(self.connection.get_interrupt_handle());
        let mut made = spawn_blocking(move || self.make());
        let made = loop {
            tokio::select! {
                made = &mut made => break made,
                () = parts.closed() => {
                    drop(interrupt);
                    break made.await;
                }
                () = sleep(SECOND) => {
                    let octets = fs::metadata(&unfinished).map_or(0, |file| file.len());
                    let path = None;
                    // one that does not listen to all of it misses some
                    let _ = parts.try_send(Ok(BackupResponse { octets, of, path }));
                }
            }
        };
        let (path, octets) = made.expect("a copy does not panic")?;
        tracing::info!(path = %path.display(), octets, "the history is copied");
        let path = Some(path.display().to_string());
        Ok(BackupResponse { octets, of, path })
    }

    /// Makes the copy: the history as it is at one instant. It takes the place of the one before when it is complete and on the disk. Returns its
    /// path and size.
    fn make(self) -> io::Result<(PathBuf, u64)> {
        let (unfinished, path) = (self.directory.join(UNFINISHED), self.directory.join(NAME));
        let made = self.write(&unfinished, &path);
        if made.is_err() {
            discard(&unfinished)?;
        }
        made
    }

    fn write(&self, unfinished: &Path, path: &Path) -> io::Result<(PathBuf, u64)> {
        // SQLite writes into an empty file that is there, which only its owner can read
        sqlite::own(unfinished)?;
        let name = unfinished.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        let copied = self.connection.execute("VACUUM INTO ?1", [name]);
        copied.map_err(as_io)?;
        let file = File::open(unfinished)?;
        file.sync_all()?;
        fs::rename(unfinished, path)?;
        folder::sync_name(path)?;
        Ok((path.to_owned(), file.metadata()?.len()))
    }
}

/// Ends the copy with whoever wants it: a daemon that ends does not wait for it.
struct Interrupt(InterruptHandle);

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// Removes a copy that is not complete, of a daemon that was killed meanwhile perhaps.
fn discard(unfinished: &Path) -> io::Result<()> {
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
