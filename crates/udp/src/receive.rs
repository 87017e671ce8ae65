//! Datagrams as they come in.

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// More than any datagram, and than what the kernel puts together.
const LARGEST: usize = 65_536;

/// From now on the socket may get several datagrams at once, so that it has to be read by a [`Receiver`]. Where the kernel
/// does not know how (before Linux 5.0), they come one at a time.
pub fn receive_batches(socket: &UdpSocket) {
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
}

/// From now on a [`Receiver`] says when datagrams came.
pub fn receive_times(socket: &UdpSocket) {
    let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
}

/// Where datagrams are received into.
#[derive(Debug)]
pub struct Receiver {
    buffer: Vec<u8>,
    control: Vec<u8>,
}

impl Default for Receiver {
    fn default() -> Self {
        Receiver {
            buffer: vec![0; LARGEST],
            control: nix::cmsg_space!(i32, TimeSpec),
        }
    }
}

impl Receiver {
    /// Takes what comes next in the socket: at least one datagram.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; what the system says, which may be an ICMP message about an earlier datagram.
    pub fn try_recv(&mut self, socket: &UdpSocket) -> io::Result<Datagrams<'_>> {
        let Self { buffer, control } = self;
        let (length, from, size, came) = socket.try_io(Interest::READABLE, || {
            let mut into = [IoSliceMut::new(buffer)];
            let flags = MsgFlags::empty();
            let message = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut into,
                Some(&mut control[..]),
                flags,
            )?;
            let (mut size, mut came) = (None, None);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::UdpGroSegments(octets) => {
                        size = usize::try_from(octets).ok()
                    }
                    ControlMessageOwned::ScmTimestampns(at) => came = Some(Duration::from(at)),
                    _ => {}
                }
            }
            let from = message.address.as_ref().and_then(address);
            Ok((message.bytes, from, size, came))
        })?;
        let from = from.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
        Ok(Datagrams {
            came,
            ..Datagrams::new(from, &self.buffer[..length], size)
        })
    }
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || from.as_sockaddr_in().map(|from| SocketAddr::from(*from));
    let v6 = || from.as_sockaddr_in6().map(|from| SocketAddr::from(*from));
    v4().or_else(v6)
}

/// Datagrams of one peer, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Datagrams<'a> {
    /// Who sent them.
    pub from: SocketAddr,
    /// When the first of them came, since 1970; `None` without [`receive_times`].
    pub came: Option<Duration>,
    rest: Option<&'a [u8]>,
    size: usize,
}

impl<'a> Datagrams<'a> {
    /// `size`: that of each but the last; of none the whole is one datagram.
    fn new(from: SocketAddr, octets: &'a [u8], size: Option<usize>) -> Self {
        Datagrams {
            from,
            came: None,
            rest: Some(octets),
            size: size.filter(|size| *size > 0).unwrap_or(octets.len()),
        }
    }
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (first, rest) = rest.split_at(self.size.min(rest.len()));
        self.rest = Some(rest).filter(|rest| !rest.is_empty());
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use proptest::prelude::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 8805))
    }

    #[test]
    fn an_empty_datagram_is_one() {
        assert_eq!(Datagrams::new(peer(), &[], None).count(), 1);
        assert_eq!(Datagrams::new(peer(), &[], Some(7)).count(), 1);
    }

    proptest! {
        /// Whatever size the kernel states, every octet comes in one datagram, in order.
        #[test]
        fn any_size_cuts_what_is_there(octets in prop::collection::vec(any::<u8>(), 0..300), size: Option<usize>) {
            let cut: Vec<&[u8]> = Datagrams::new(peer(), &octets, size).collect();
            prop_assert_eq!(cut.concat(), &octets[..]);
            prop_assert!(cut.len() == 1 || cut.iter().all(|datagram| !datagram.is_empty()));
        }

        /// What batches are made of is what the receiver cuts them into.
        #[test]
        fn a_batch_is_cut_into_what_was_pushed(lengths in prop::collection::vec(0_usize..6, 1..200)) {
            let (mut batch, mut said, mut cut) = (Batch::default(), Vec::new(), Vec::new());
            for (number, length) in lengths.into_iter().enumerate() {
                let datagram = vec![number as u8; length];
                if !batch.push(peer(), &datagram) {
                    cut.extend(batch.take_segments());
                    prop_assert!(batch.push(peer(), &datagram), "an empty batch takes any");
                }
                said.push(datagram);
            }
            cut.extend(batch.take_segments());
            prop_assert_eq!(cut, said);
        }
    }

    impl Batch {
        /// Empties the batch into what a receiver gets of it.
        fn take_segments(&mut self) -> Vec<Vec<u8>> {
            let (octets, size, length) = self.take();
            let cut: Vec<Vec<u8>> = Datagrams::new(peer(), &octets, Some(size))
                .map(<[u8]>::to_vec)
                .collect();
            assert_eq!(cut.len(), length);
            cut
        }
    }
}
