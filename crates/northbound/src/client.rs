//! The command line's side of the socket.

use crate::{Request, Response};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens on the socket.
    #[error("nothing answers at {}: {source}", path.display())]
    Unreachable {
        /// The socket's path.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The connection broke or the time ran out before the answer.
    #[error("the answer did not come: {0}")]
    Broken(#[from] io::Error),
    /// The daemon answered with something that this version does not know.
    #[error("the answer is not one that this version knows: {0}")]
    Unknown(#[from] serde_json::Error),
}

/// Asks the daemon at `path` and waits up to `timeout` for each read of its answer.
pub fn call(path: &Path, request: &Request, timeout: Duration) -> Result<Response, CallError> {
    let mut stream = UnixStream::connect(path).map_err(|source| CallError::Unreachable {
        path: path.to_owned(),
        source,
    })?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(CallError::Broken(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_str(&answer)?)
}
