//! Runs of these tests on one machine, from whatever folder: those that load the machine wait until they are alone.

use anyhow::{Context, Result};
use lab::claim::directory;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};

/// The right to run cases; over when dropped.
pub struct Turn {
    _lock: Flock<File>,
}

impl Turn {
    /// To run cases that others may run beside.
    pub fn beside_others() -> Result<Self> {
        Self::take(FlockArg::LockSharedNonblock, FlockArg::LockShared)
    }

    /// To run cases that nobody else may run beside.
    pub fn alone() -> Result<Self> {
        Self::take(FlockArg::LockExclusiveNonblock, FlockArg::LockExclusive)
    }

    fn take(at_once: FlockArg, later: FlockArg) -> Result<Self> {
        let dir = directory("e2e");
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot make {} (are you root?)", dir.display()))?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join("turn"))?;
        let lock = match Flock::lock(file, at_once) {
            Err((file, Errno::EWOULDBLOCK)) => {
                println!("another run is at work on this machine: waiting for our turn");
                Flock::lock(file, later).map_err(|(_, error)| error)?
            }
            taken => taken.map_err(|(_, error)| error)?,
        };
        Ok(Turn { _lock: lock })
    }
}
