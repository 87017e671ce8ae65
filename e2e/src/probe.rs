//! A TAP on the access bridge through which the harness sends and takes frames as they are.

use crate::site::UP;
use anyhow::{Context, Result};
use sluice::lab::topology::{Lab, Place};
use std::io::ErrorKind;
use tun_rs::SyncDevice;

/// The TAP's name.
const NAME: &str = "probe";

/// A port of the access network that can pretend to be anybody.
pub struct Probe(SyncDevice);

impl Probe {
    /// Joins the access network.
    pub fn join(lab: &Lab) -> Result<Self> {
        let tap = lab.tap(UP, NAME)?;
        // The bridge must not learn from forged senders, or answers to the real home would come here.
        lab.netns(Place::Access(UP))
            .run(&["bridge", "link", "set", "dev", NAME, "learning", "off"])?;
        Ok(Probe(tap))
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        self.0.send(frame).context("cannot send a frame").map(drop)
    }

    /// Takes a frame that the access network has for it, or for a MAC address that nobody is known to have; how long it is.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        match self.0.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error).context("cannot take a frame"),
        }
    }
}
