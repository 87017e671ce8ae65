//! The internet's side of the lab: a host that sends to every home, and holds against the homes what comes from them.

use crate::access_network::{PORT, family_of, overhead, size_of};
use crate::netns::Netns;
use crate::octets::OctetsByHome;
use crate::roll::Roll;
use anyhow::{Context, Result};
use cpe::{Arrival, Counts, Family, Label, Pace, Party, Stamp, Verdict, Verifier};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Room for what comes while the thread does not run.
const BUFFER: usize = 16 << 20;
/// Between two looks at the sockets: what comes meanwhile is taken in one go.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest time without a look at the orders.
const LONGEST_REST: Duration = Duration::from_millis(100);
/// Datagrams taken from one socket at one go.
const BURST: usize = 512;

/// A home has an address in this family, or none any more.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Whose.
    pub home: u32,
    /// Which family.
    pub family: Family,
    /// The address.
    pub address: Option<IpAddr>,
}

/// What the host has sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// Verified packets sent, to the homes of each user plane.
    pub sent: [u64; 2],
    /// Verified packets that were right, from the homes of each user plane.
    pub received: [u64; 2],
    /// What was found of all that came.
    pub counts: Counts,
    /// When, after an [`Internet::call`], something had come from every home in both families; the latest call that got so
    /// far.
    pub all_heard: Option<Instant>,
    /// Octets of the IP packets among them.
    pub octets: u64,
    /// Datagrams that could not be sent.
    pub unsent: u64,
}

/// The thread of the internet host.
pub struct Internet {
    reach: Sender<Reach>,
    status: Arc<Mutex<Status>>,
    sending: Arc<AtomicBool>,
    calling: Arc<AtomicBool>,
    running: Arc<AtomicBool>,
    octets: OctetsByHome,
    /// Until it is joined.
    thread: Option<JoinHandle<Result<()>>>,
}

/// Nobody may find its port taken because something else went wrong.
impl Drop for Internet {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Who wants to know how it went has closed it.
            let _ = thread.join();
        }
    }
}

impl Internet {
    /// A host with these addresses inside the namespace.
    ///
    /// It sends to each of `homes` homes, those from number `second` on at the second user plane, once in `interval` in
    /// each family.
    pub fn open(
        namespace: &Netns,
        addresses: [IpAddr; 2],
        homes: u32,
        second: u32,
        interval: Duration,
        run: u64,
    ) -> Result<Self> {
        let sockets = namespace.within(|| -> Result<[UdpSocket; 2]> {
            Ok([socket(addresses[0])?, socket(addresses[1])?])
        })??;
        let (reach, inbox) = channel();
        let status = Arc::new(Mutex::new(Status::default()));
        let [sending, calling, running] =
            [true, false, true].map(|begin| Arc::new(AtomicBool::new(begin)));
        let octets = OctetsByHome::new(homes as usize);
        let mut host = Host {
            sockets,
            inbox,
            shared: Arc::clone(&status),
            sending: Arc::clone(&sending),
            calling: Arc::clone(&calling),
            running: Arc::clone(&running),
            octets: octets.clone(),
            status: Status::default(),
            verifier: Verifier::new(run, homes),
            roll: Roll::new(homes as usize),
            pace: Pace::new(homes, interval, Duration::ZERO),
            second,
            reached: vec![[None; 2]; homes as usize],
            owners: HashMap::new(),
            sequences: vec![[0; 2]; homes as usize],
            run,
        };
        let thread = std::thread::Builder::new()
            .name("internet".into())
            .spawn(move || host.run())
            .context("cannot start the internet's thread")?;
        Ok(Internet {
            reach,
            status,
            sending,
            calling,
            running,
            octets,
            thread: Some(thread),
        })
    }

    /// Where homes are made known.
    pub fn reach(&self) -> Sender<Reach> {
        self.reach.clone()
    }

    /// What was sent and received so far.
    pub fn status(&self) -> Status {
        *locked(&self.status)
    }

    /// Octets of the IPv4 and the IPv6 packets that came from each home so far.
    pub fn octets(&self) -> Vec<[u64; 2]> {
        self.octets.read()
    }

    /// Sends no more.
    pub fn quiet(&self) {
        self.sending.store(false, Ordering::Relaxed);
    }

    /// Sends again.
    pub fn speak(&self) {
        self.sending.store(true, Ordering::Relaxed);
    }

    /// Notes from now on from whom something has come.
    pub fn call(&self) {
        self.calling.store(true, Ordering::Relaxed);
    }

    /// Has the thread ended by itself?
    pub fn failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread.
    pub fn close(mut self) -> Result<Status> {
        self.running.store(false, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done?,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
        Ok(*locked(&self.status))
    }
}

/// A status is whole even if a thread died while it was held.
fn locked(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A socket for verified packets on an address of this host.
pub(crate) fn socket(address: IpAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, PORT))
        .with_context(|| format!("cannot listen on {address} port {PORT}"))?;
    socket.set_nonblocking(true)?;
    // Without privileges there is as much room as the system permits everybody.
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &BUFFER))?;
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &BUFFER))?;
    // The homes put no fragments together: what is too large for a path is told, and not sent there again.
    match address {
        IpAddr::V4(_) => set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?,
        IpAddr::V6(_) => set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO)?,
    }
    Ok(socket)
}

/// Where a home is reached.
#[derive(Clone, Copy)]
struct Reached {
    address: IpAddr,
    /// A packet could be sent there: its net was announced by then.
    announced: bool,
}

/// Everything that the thread owns.
struct Host {
    sockets: [UdpSocket; 2],
    inbox: Receiver<Reach>,
    shared: Arc<Mutex<Status>>,
    sending: Arc<AtomicBool>,
    calling: Arc<AtomicBool>,
    running: Arc<AtomicBool>,
    octets: OctetsByHome,
    status: Status,
    verifier: Verifier,
    roll: Roll,
    pace: Pace,
    /// The first home at the second user plane.
    second: u32,
    /// Where to send, by home and family.
    reached: Vec<[Option<Reached>; 2]>,
    /// Whose address it is, or was last: what a home sent before it left may still arrive.
    owners: HashMap<IpAddr, u32>,
    sequences: Vec<[u64; 2]>,
    run: u64,
}

impl Host {
    fn run(&mut self) -> Result<()> {
        let start = Instant::now();
        let (mut buffer, mut spoke) = ([0; 2048], true);
        while self.running.load(Ordering::Relaxed) {
            if self.calling.swap(false, Ordering::Relaxed) {
                self.roll.call();
            }
            let busy = self.receive(&mut buffer)?;
            let speaks = self.sending.load(Ordering::Relaxed);
            if speaks && !spoke {
                self.pace.restart(start.elapsed());
            }
            spoke = speaks;
            if speaks {
                self.learn();
                self.send(start.elapsed());
            }
            self.status.counts = self.verifier.counts();
            *locked(&self.shared) = self.status;
            if !busy {
                self.rest(start.elapsed())?;
            }
        }
        Ok(())
    }

    fn rest(&self, now: Duration) -> Result<()> {
        std::thread::sleep(PAUSE);
        let mut left = LONGEST_REST;
        if self.sending.load(Ordering::Relaxed) && !self.owners.is_empty() {
            left = left.min(self.pace.next_at().saturating_sub(now + PAUSE));
        }
        let [four, six] = self
            .sockets
            .each_ref()
            .map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN));
        match poll(&mut [four, six], PollTimeout::from(left.as_millis() as u8)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait for the internet's sockets"),
        }
    }

    /// Takes what has come; true if there may be more.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let mut busy = false;
        for family in Family::ALL {
            let mut count = 0;
            while count < BURST {
                match self.sockets[family as usize].recv_from(buffer) {
                    Ok((length, from)) => {
                        // A home makes its address known before it sends, so whoever sent this is known now.
                        self.learn();
                        self.received(family, from, &buffer[..length]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error).context("cannot read the internet's sockets"),
                }
                count += 1;
            }
            busy |= count == BURST;
        }
        Ok(busy)
    }

    fn received(&mut self, family: Family, from: SocketAddr, payload: &[u8]) {
        let octets = payload.len() + overhead(family);
        self.status.octets += octets as u64;
        let owner = self.owners.get(&from.ip()).filter(|_| from.port() == PORT);
        let owner = owner.copied();
        if let Some(home) = owner {
            self.octets.add(home, family, octets);
        }
        let arrival = Arrival {
            at: Party::Internet,
            from: owner.map(Party::Home),
            family,
        };
        let right = [Verdict::InOrder, Verdict::Late];
        if right.contains(&self.verifier.check(arrival, payload))
            && let Some(home) = owner
        {
            self.status.received[self.user_plane_of(home)] += 1;
            if self.roll.note(home as usize, family) {
                self.status.all_heard = Some(Instant::now());
            }
        }
    }

    fn user_plane_of(&self, home: u32) -> usize {
        usize::from(home >= self.second)
    }

    fn learn(&mut self) {
        for Reach {
            home,
            family,
            address,
        } in self.inbox.try_iter()
        {
            let reached = address.map(|address| Reached {
                address,
                announced: false,
            });
            self.reached[home as usize][family as usize] = reached;
            if let Some(address) = address {
                debug_assert_eq!(family_of(address), family);
                self.owners.insert(address, home);
            }
        }
    }

    fn send(&mut self, now: Duration) {
        for home in self.pace.due(now) {
            // Like the homes themselves, only where both families are there.
            if let [Some(four), Some(six)] = self.reached[home as usize] {
                self.send_one(home, Family::V4, four);
                self.send_one(home, Family::V6, six);
            }
        }
    }

    fn send_one(&mut self, home: u32, family: Family, to: Reached) {
        let sequence = &mut self.sequences[home as usize][family as usize];
        let (from, to_home) = (Party::Internet, Party::Home(home));
        let mut payload = Vec::with_capacity(1500);
        let label = Label {
            run: self.run,
            from,
            to: to_home,
            family,
            sequence: *sequence,
            stamp: Stamp::default(),
        };
        label.emit(size_of(*sequence) - overhead(family), &mut payload);
        match self.sockets[family as usize].send_to(&payload, (to.address, PORT)) {
            Ok(_) => {}
            // No user plane announces the home's net: either not yet, or not any more, and then the packet is lost.
            Err(error) if error.kind() == ErrorKind::NetworkUnreachable => {
                if !to.announced {
                    return;
                }
            }
            // Larger than what the gateway said that the path takes (RFC 1191, RFC 8201): a smaller one comes next.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                *sequence += 1;
                return;
            }
            Err(_) => {
                self.status.unsent += 1;
                return;
            }
        }
        *sequence += 1;
        self.status.sent[self.user_plane_of(home)] += 1;
        let reached = Reached {
            announced: true,
            ..to
        };
        self.reached[home as usize][family as usize] = Some(reached);
    }
}
