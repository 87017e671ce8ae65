//! The host that stands for the internet: it counts what reaches it.

use crate::guard::PATIENCE;
use anyhow::Result;
use lab::topology::{Lab, Place};
use std::net::UdpSocket;
use std::time::Duration;

/// What is too much follows within this time.
const FOLLOWS: Duration = Duration::from_millis(300);

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

    /// Waits for so many texts, and whether more follow: these, and those.
    pub fn expect(&self, count: u64) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        let mut buffer = [0; 2048];
        loop {
            let is_more = texts.len() as u64 >= count;
            let patience = if is_more { FOLLOWS } else { PATIENCE };
            self.socket.set_read_timeout(Some(patience))?;
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    texts.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                }
                Err(_) => return Ok(texts),
            }
        }
    }
}
