//! SQLite as the history uses it.

use config::folder;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Way in which SQLite uses the file system: it keeps other processes away, and needs no shared memory for that.
const VFS: &str = "unix-excl";
/// How long a writer or a reader waits for the other one.
const PATIENCE: Duration = Duration::from_secs(5);

/// A kind of database.
pub(super) struct Format {
    /// Version of the tables (`user_version`).
    pub version: i64,
    /// Statements that make the tables.
    pub tables: &'static str,
    /// `FULL`: what is written is there after a loss of power. `NORMAL`: it may be the state of a moment before.
    pub synchronous: &'static str,
}

/// Opens a database for writing, and makes it if it is not there.
pub(super) fn open(path: &Path, format: &Format) -> rusqlite::Result<Connection> {
    own(path).map_err(other)?;
    let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS)?;
    connection.busy_timeout(PATIENCE)?;
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = {};
         PRAGMA journal_size_limit = 16777216; PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384;",
        format.synchronous
    ))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        let (tables, version) = (format.tables, format.version);
        let all = format!("BEGIN IMMEDIATE; {tables} PRAGMA user_version = {version}; COMMIT;");
        connection.execute_batch(&all)?;
    } else if version != format.version {
        let why = format!("{} is of a later version of Sluice", path.display());
        return Err(rusqlite::Error::ToSqlConversionFailure(why.into()));
    }
    // The names of the database and its log are on the disk, too.
    folder::sync_name(path).map_err(other)?;
    Ok(connection)
}

/// Opens a database for one question. Its writer has it open, or nobody.
pub(super) fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(path, flags, VFS)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Whether the database is not what was written.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, QueryReturnedNoRows,
    };
    match error.sqlite_error_code() {
        // the last one is a table that is not there
        Some(code) => matches!(
            code,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown
        ),
        None => matches!(
            error,
            FromSqlConversionFailure(..)
                | IntegralValueOutOfRange(..)
                | InvalidColumnType(..)
                | QueryReturnedNoRows
        ),
    }
}

/// The error as one of the system.
pub(super) fn as_io(error: rusqlite::Error) -> io::Error {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Gives a database that cannot be read a name under which somebody can examine it, with the log that belongs to it. A connection that is
/// still open leaves the log of another database in its place alone: SQLite sees that its own has another name.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    let name = |n: u32| path.with_extension(format!("damaged.{n}"));
    let free = (1..).map(name).find(|name| !name.exists());
    let free = free.unwrap_or_else(|| name(0));
    for suffix in ["", "-wal"] {
        match fs::rename(with(path, suffix), with(&free, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Only its owner can read the database, and the files that SQLite makes beside it: it says who was online where.
pub(super) fn own(path: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new();
    file.create(true).append(true).mode(0o600).open(path)?;
    Ok(())
}

/// The error beside those of SQLite.
fn other(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
