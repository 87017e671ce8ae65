//! Datagrams on their way out.

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// What the kernel takes at once (UDP_MAX_SEGMENTS, 64 before Linux 6.9).
const MOST: usize = 64;
/// The largest buffer: a UDP payload of either family, and so of any single datagram.
const LARGEST: usize = 65_507;

/// Datagrams to one peer that wait to be sent together: all of one size, only the last may be shorter.
#[derive(Debug, Default)]
pub struct Batch {
    to: Option<SocketAddr>,
    size: usize,
    /// The last one is shorter than the others.
    complete: bool,
    octets: Vec<u8>,
}

impl Batch {
    /// Adds a datagram. False if it cannot go with those that wait: then they are to be sent first. An empty batch
    /// takes any.
    pub fn push(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        match self.to {
            None => (self.to, self.size) = (Some(to), datagram.len()),
            Some(peer) if peer == to && self.takes(datagram.len()) => {}
            Some(_) => return false,
        }
        self.complete = datagram.len() < self.size;
        self.octets.extend_from_slice(datagram);
        true
    }

    fn takes(&self, length: usize) -> bool {
        let fits = self.octets.len() + length <= LARGEST && self.len() < MOST;
        fits && !self.complete && (1..=self.size).contains(&length)
    }

    /// How many datagrams wait.
    pub fn len(&self) -> usize {
        match self.to {
            None => 0,
            Some(_) => self.octets.len().div_ceil(self.size.max(1)).max(1),
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.to.is_none()
    }

    /// To whom they go; `None` if none waits.
    pub fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    /// Sends what waits, as far as the socket takes it now. Nothing waits any more then. Says how many were not
    /// sent: to their protocol these are lost on the way.
    pub fn try_send(&mut self, socket: &UdpSocket) -> usize {
        match self.attempt(socket) {
            Ok(lost) => lost,
            Err(_) => {
                let lost = self.len();
                self.clear();
                lost
            }
        }
    }

    /// The same, but waits until the socket takes them.
    pub async fn send(&mut self, socket: &UdpSocket) -> usize {
        loop {
            let sent = self.attempt(socket);
            match sent {
                Ok(lost) => return lost,
                Err(_) if socket.writable().await.is_ok() => {}
                Err(_) => return self.try_send(socket),
            }
        }
    }

    /// Sends what waits and says how many were lost. An error means that the socket is full; what was not sent waits.
    fn attempt(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let Some(to) = self.to else {
            return Ok(0);
        };
        if self.len() > 1 {
            match send_segments(socket, to, &self.octets, self.size) {
                Ok(()) => {
                    self.clear();
                    return Ok(0);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
                // They do not fit into the path's MTU, or the network card computes no checksums: one by one they go. An
                // ICMP error about an earlier datagram is out of the way now as well.
                Err(_) => {}
            }
        }
        let mut lost = 0;
        while !self.is_empty() {
            let first = self.size.min(self.octets.len());
            match socket.try_send_to(&self.octets[..first], to) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
                sent => lost += usize::from(sent.is_err()),
            }
            self.octets.drain(..first);
            if self.octets.is_empty() {
                self.clear();
            }
        }
        Ok(lost)
    }

    fn clear(&mut self) {
        self.octets.clear();
        (self.to, self.size, self.complete) = (None, 0, false);
    }
}

fn send_segments(socket: &UdpSocket, to: SocketAddr, octets: &[u8], size: usize) -> io::Result<()> {
    let size = u16::try_from(size).map_err(|_| ErrorKind::InvalidInput)?;
    let to = SockaddrStorage::from(to);
    socket.try_io(Interest::WRITABLE, || {
        let octets = [IoSlice::new(octets)];
        let segments = [ControlMessage::UdpGsoSegments(&size)];
        sendmsg(
            socket.as_raw_fd(),
            &octets,
            &segments,
            MsgFlags::empty(),
            Some(&to),
        )?;
        Ok(())
    })
}

#[cfg(test)]
impl Batch {
    /// Empties the batch: its octets, the size of each datagram and how many there are.
    pub(crate) fn take(&mut self) -> (Vec<u8>, usize, usize) {
        let taken = (self.octets.clone(), self.size, self.len());
        self.clear();
        taken
    }
}
