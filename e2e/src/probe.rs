//! A TAP on the access bridge through which the harness sends and takes frames as they are.

use crate::guard::PATIENCE;
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use std::io::ErrorKind;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tun_rs::SyncDevice;

/// The TAP's name.
const NAME: &str = "probe";

/// What the kernel says of a bridge's port that forwards.
const FORWARDING: &str = "3";

/// A port of the access network that can pretend to be anybody.
pub struct Probe(SyncDevice);

impl Probe {
    /// Joins the access network.
    pub fn join(lab: &Lab) -> Result<Self> {
        let tap = lab.tap(UP, NAME)?;
        // The bridge must not learn from forged senders, or answers to the real home would come here.
        lab.netns(Place::Access(UP))
            .run(&["bridge", "link", "set", "dev", NAME, "learning", "off"])?;
        wait_forwarding(lab)?;
        Ok(Probe(tap))
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        self.0.send(frame).context("cannot send a frame").map(drop)
    }

    /// The next frame that came, if there is one.
    pub fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut frame = vec![0; 2048];
        match self.0.recv(&mut frame) {
            Ok(length) => {
                frame.truncate(length);
                Ok(Some(frame))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error).context("cannot receive a frame"),
        }
    }
}

/// Waits until the bridge takes frames from the TAP: it does a moment after the TAP is up.
fn wait_forwarding(lab: &Lab) -> Result<()> {
    let (access, start) = (lab.netns(Place::Access(UP)), Instant::now());
    let state = format!("/sys/class/net/{NAME}/brport/state");
    while access.run(&["cat", &state])?.trim() != FORWARDING {
        ensure!(
            start.elapsed() < PATIENCE,
            "the access network does not forward what the probe sends"
        );
        sleep(Duration::from_millis(20));
    }
    Ok(())
}
