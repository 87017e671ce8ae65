//! The host that stands for the internet: it counts what reaches it.

use anyhow::Result;
use sluice::lab::topology::{Lab, Place};
use std::net::UdpSocket;
use std::time::Duration;

/// A UDP port of the internet host, both families.
pub struct Listener {
    socket: UdpSocket,
}

impl Listener {
    /// Listens on a port.
    pub fn open(lab: &Lab, port: u16) -> Result<Self> {
        let socket = lab
            .netns(Place::Internet)
            .within(|| UdpSocket::bind(("::", port)))??;
        Ok(Listener { socket })
    }

    /// The texts that arrive until nothing has come for `quiet`.
    pub fn arrived(&self, quiet: Duration) -> Result<Vec<String>> {
        self.socket.set_read_timeout(Some(quiet))?;
        let mut texts = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            texts.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        Ok(texts)
    }
}
