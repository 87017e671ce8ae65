//! The reflector on the core side of a gateway: sends each verified packet back to the home that sent it.

use crate::access_network::family_of;
use crate::internet;
use anyhow::{Context, Result, ensure};
use cpe::Family;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Streams that are told apart: two for each home of a run.
const STREAMS: usize = 1 << 20;
/// Datagrams taken from one socket at one go.
const BURST: usize = 512;

/// UDP sockets of this host that reflect what comes to them.
pub struct Reflector {
    sockets: Vec<UdpSocket>,
    packets: cpe::Reflector,
    unsent: u64,
}

/// What a reflector has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reflected {
    /// Verified packets that were sent back.
    pub reflected: u64,
    /// Datagrams that were not answered: no verified packets, damaged, or of too many homes.
    pub refused: u64,
    /// Answers that this host could not send.
    pub unsent: u64,
}

impl Reflector {
    /// Listens on UDP port [`PORT`](crate::access_network::PORT) of these addresses of this host.
    pub fn open(addresses: &[IpAddr]) -> Result<Self> {
        ensure!(!addresses.is_empty(), "no address to listen on");
        let sockets = addresses.iter().map(|&address| internet::socket(address));
        Ok(Reflector {
            sockets: sockets.collect::<Result<_>>()?,
            packets: cpe::Reflector::new(STREAMS),
            unsent: 0,
        })
    }

    /// Reflects for so long.
    pub fn run(&mut self, duration: Duration) -> Result<()> {
        let start = Instant::now();
        let (mut buffer, mut answer) = ([0; 2048], Vec::with_capacity(2048));
        while let Some(left) = duration.checked_sub(start.elapsed()) {
            let mut wanted: Vec<PollFd> = self.sockets.iter().map(readable).collect();
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut wanted, left) {
                // A signal: whoever called may want to know.
                Err(nix::errno::Errno::EINTR) => return Ok(()),
                Err(error) => return Err(error).context("cannot wait for packets"),
                Ok(_) => {}
            }
            for socket in 0..self.sockets.len() {
                self.serve(socket, &mut buffer, &mut answer)?;
            }
        }
        Ok(())
    }

    /// Answers what has come to a socket.
    fn serve(&mut self, socket: usize, buffer: &mut [u8], answer: &mut Vec<u8>) -> Result<()> {
        let socket = &self.sockets[socket];
        for _ in 0..BURST {
            let (length, from) = match socket.recv_from(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An ICMP error about an answer that was sent before.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                received => received.context("cannot read the reflector's socket")?,
            };
            answer.clear();
            if self.packets.reflect(&buffer[..length], answer)
                && socket.send_to(answer, from).is_err()
            {
                self.unsent += 1;
            }
        }
        Ok(())
    }

    /// What it has done so far.
    pub fn reflected(&self) -> Reflected {
        Reflected {
            reflected: self.packets.reflected(),
            refused: self.packets.refused(),
            unsent: self.unsent,
        }
    }
}

fn readable(socket: &UdpSocket) -> PollFd<'_> {
    PollFd::new(socket.as_fd(), PollFlags::POLLIN)
}

/// The first address of each family that an interface of this host has; link-local ones do not count.
///
/// # Errors
/// There is no such interface, or it has no address.
pub fn addresses_of(interface: &str) -> Result<Vec<IpAddr>> {
    let mut found: Vec<IpAddr> = Vec::new();
    for entry in getifaddrs().context("cannot list the interfaces' addresses")? {
        let is_up = entry.flags.contains(InterfaceFlags::IFF_UP);
        let Some(address) = entry.address.filter(|_| is_up) else {
            continue;
        };
        let four = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let six = address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
        let usable = |address: &IpAddr| match address {
            IpAddr::V4(address) => !address.is_link_local(),
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
        let Some(address) = four.or(six).filter(usable) else {
            continue;
        };
        let is_first = |family: Family| found.iter().all(|&other| family_of(other) != family);
        if entry.interface_name == interface && is_first(family_of(address)) {
            found.push(address);
        }
    }
    ensure!(
        !found.is_empty(),
        "interface {interface} is not up, or has no address"
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_network::PORT;
    use cpe::{Label, Party, Stamp};
    use std::net::Ipv4Addr;

    #[test]
    fn the_loopbacks_addresses_are_found_and_reflect() {
        assert!(addresses_of("nosuchif").is_err());
        assert!(
            addresses_of("lo")
                .unwrap()
                .contains(&Ipv4Addr::LOCALHOST.into())
        );
        // Other than the lab's homes, tests may run at the same time.
        let mut reflector = Reflector::open(&[Ipv4Addr::new(127, 9, 8, 7).into()]).unwrap();
        let home = UdpSocket::bind("127.0.0.1:0").unwrap();
        home.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut payload = Vec::new();
        let label = Label {
            run: 3,
            from: Party::Home(1),
            to: Party::Internet,
            family: Family::V4,
            sequence: 0,
            stamp: Stamp::default(),
        };
        label.emit(100, &mut payload);
        home.send_to(&payload, ("127.9.8.7", PORT)).unwrap();
        home.send_to(b"something else", ("127.9.8.7", PORT))
            .unwrap();
        reflector.run(Duration::from_millis(200)).unwrap();
        let mut buffer = [0; 200];
        let (length, from) = home.recv_from(&mut buffer).unwrap();
        let answer = Label::parse(&buffer[..length]).unwrap();
        assert_eq!(from.to_string(), format!("127.9.8.7:{PORT}"));
        assert_eq!((answer.to, answer.stamp.reflected), (Party::Home(1), 1));
        let done = Reflected {
            reflected: 1,
            refused: 1,
            unsent: 0,
        };
        assert_eq!(reflector.reflected(), done);
    }
}
