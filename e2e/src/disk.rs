//! A disk of the tests' own: a file system in memory, served by FUSE, that records every change and every sync in order.
//!
//! From the record follows what any loss of power would have left ([`loss`]). The disk is mounted in a mount namespace of
//! its own ([`apart`]), so it goes with the process that serves it, whatever ends that.

pub mod image;
pub mod loss;
mod serve;

use anyhow::{Context, Result};
use fuser::{BackgroundSession, Config, MountOption};
use image::Change;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serve::{Recorder, Recording};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A mounted disk; unmounted when dropped. Who uses it must have ended by then.
pub struct Disk {
    recording: Arc<Mutex<Recording>>,
    _session: BackgroundSession,
}

impl Disk {
    /// An empty disk at this folder, which exists.
    pub fn mount(at: &Path) -> Result<Self> {
        let recording = Arc::<Mutex<Recording>>::default();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("sluice-e2e".into())];
        let session = fuser::spawn_mount(Recorder(recording.clone()), at, &config);
        let session = session.with_context(|| {
            format!(
                "cannot mount a disk by FUSE at {} (is there /dev/fuse?)",
                at.display()
            )
        })?;
        Ok(Disk {
            recording,
            _session: session,
        })
    }

    /// How many changes and syncs there were so far.
    pub fn position(&self) -> usize {
        serve::lock(&self.recording).changes.len()
    }

    /// Every change and sync so far.
    pub fn changes(&self) -> Vec<Change> {
        serve::lock(&self.recording).changes.clone()
    }
}

/// Does the work on a thread in a mount namespace of its own; processes that it starts are in there, too.
pub fn apart<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let enter = || -> Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)
            .context("cannot make a mount namespace (are you root?)")?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        Ok(())
    };
    let done = std::thread::scope(|scope| scope.spawn(|| enter().and_then(|()| work())).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// An empty file system in memory at this folder, for as long as the mount namespace lasts; with tmpfs' own options.
pub fn memory(at: &Path, options: Option<&str>) -> Result<()> {
    mount(Some("memory"), at, Some("tmpfs"), MsFlags::empty(), options)
        .with_context(|| format!("cannot mount at {}", at.display()))
}
