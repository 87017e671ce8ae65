//! Netlink sockets.

use std::io;

use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tracing::warn;

use super::message::{Fact, fact};
use super::request::{DUMPS, Request};
use super::route;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;

/// A netlink datagram of the kernel is at most 32 KiB unless the reader asks for less.
const BUFFER: usize = 64 * 1024;
/// Receive buffer for bursts of changes, in octets. The kernel answers ENOBUFS when it is full. A change of a route takes up to
/// 1.3 KiB, so this is room for some 50,000 changes. It uses memory only while they wait.
pub const RECEIVE_BUFFER: usize = 64 * 1024 * 1024;
/// Maximum number of messages that are taken together.
const PORTION: usize = 256;

/// RTNLGRP_LINK, _NEIGH, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE, _NEXTHOP.
const GROUPS: [u32; 7] = [1, 3, 5, 7, 9, 11, 32];

/// linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Socket for requests that change the kernel's tables. The kernel handles a request within `send`, so its answer is there when
/// `send` returns, and reading it does not block the loop.
pub struct Requester {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Requester {
    /// Opens the socket in the process's network namespace.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            socket: open()?,
            buffer: Vec::with_capacity(BUFFER),
            sequence: 0,
        })
    }

    /// Sends one request and returns the kernel's result.
    pub fn request(&mut self, request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | NLM_F_ACK | request.flags;
        send(&self.socket, request.message, flags, self.sequence)?;
        let mut verdict = None;
        while verdict.is_none() {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            for message in messages(&self.buffer) {
                if message.sequence == self.sequence && message.kind == NLMSG_ERROR {
                    verdict = Some(message.error());
                }
            }
        }
        verdict.unwrap_or(Ok(()))
    }
}

/// Reading of the kernel's tables, one after another, one datagram at a time.
pub struct Dump {
    socket: Socket,
    buffer: Vec<u8>,
    /// Index in [`DUMPS`] of the table being read.
    stage: usize,
}

/// Portion of a reading.
#[derive(Debug)]
pub struct Portion {
    /// Its facts.
    pub facts: Vec<Fact>,
    /// Whether the kernel changed the table during the reading (`NLM_F_DUMP_INTR`).
    pub interrupted: bool,
    /// Whether it is the last one of this table.
    pub last: bool,
}

const NLM_F_DUMP_INTR: u16 = 0x10;

impl Dump {
    /// Starts with the first table.
    pub fn start() -> io::Result<Self> {
        let dump = Self {
            socket: open()?,
            buffer: Vec::with_capacity(BUFFER),
            stage: 0,
        };
        dump.ask()?;
        Ok(dump)
    }

    /// Index in [`DUMPS`] of the table being read.
    pub fn stage(&self) -> usize {
        self.stage
    }

    /// Reads the same table again from its beginning.
    pub fn again(&mut self) -> io::Result<()> {
        self.ask()
    }

    /// Continues with the next table. Returns whether there is one.
    pub fn next_table(&mut self) -> io::Result<bool> {
        self.stage += 1;
        let more = self.stage < DUMPS.len();
        if more {
            self.ask()?;
        }
        Ok(more)
    }

    fn ask(&self) -> io::Result<()> {
        let (kind, header, family) = DUMPS[self.stage];
        let mut bytes = vec![0; 16 + header];
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        bytes[16] = family;
        self.socket.send(&bytes, 0).map(drop)
    }

    /// The next portion of the table.
    pub fn read(&mut self) -> io::Result<Portion> {
        self.buffer.clear();
        self.socket.recv(&mut self.buffer, 0)?;
        let mut portion = Portion {
            facts: Vec::new(),
            interrupted: false,
            last: false,
        };
        for message in messages(&self.buffer) {
            portion.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
            match message.kind {
                NLMSG_DONE => portion.last = true,
                NLMSG_ERROR => message.error()?,
                _ => portion.facts.extend(message.fact()),
            }
        }
        Ok(portion)
    }
}

/// Stream of changes.
pub struct Monitor {
    socket: AsyncFd<Socket>,
    buffer: Vec<u8>,
}

/// Messages, and the error that some were dropped. The error may come while no message waits, and then no more messages come
/// until it has been read.
const WANTED: Interest = Interest::READABLE.add(Interest::ERROR);

/// Item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// These facts, in order.
    Facts(Vec<Fact>),
    /// The kernel had to drop messages (ENOBUFS): read everything again.
    Overrun,
}

impl Monitor {
    /// Subscribes to changes of links, addresses, neighbours, routes and next hop objects. `room` is the size of the receive
    /// buffer in octets ([`RECEIVE_BUFFER`]).
    pub fn open(room: usize) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &room).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &room)?;
        }
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        // The socket owns its descriptor. The newer function `register_with_interest` (unsafe) asks for just that.
        #[expect(deprecated)]
        let socket = AsyncFd::with_interest(socket, WANTED)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Waits for the next changes. No change is lost when the future is dropped.
    pub async fn next(&mut self) -> io::Result<Change> {
        loop {
            let mut ready = self.socket.ready(WANTED).await?;
            let (change, drained) = take(ready.get_inner(), &mut self.buffer)?;
            if drained {
                ready.clear_ready();
            }
            if let Some(change) = change {
                return Ok(change);
            }
        }
    }

    /// A portion of the waiting changes.
    pub fn try_next(&mut self) -> io::Result<Option<Change>> {
        loop {
            match take(self.socket.get_ref(), &mut self.buffer)? {
                (None, false) => {}
                (change, _) => return Ok(change),
            }
        }
    }
}

/// A portion of the waiting changes, and whether none is left.
fn take(socket: &Socket, buffer: &mut Vec<u8>) -> io::Result<(Option<Change>, bool)> {
    let (mut facts, mut drained) = (Vec::new(), false);
    for _ in 0..PORTION {
        buffer.clear();
        match socket.recv(buffer, 0) {
            Ok(_) => facts.extend(messages(buffer).filter_map(|m| m.fact())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                drained = true;
                break;
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                empty(socket, buffer)?;
                return Ok((Some(Change::Overrun), true));
            }
            Err(error) => return Err(error),
        }
    }
    let change = (!facts.is_empty()).then_some(Change::Facts(facts));
    Ok((change, drained))
}

/// Discards the waiting messages: the tables are read again anyway. Until the socket is empty, the kernel drops further messages
/// without notice (netlink_overrun).
fn empty(socket: &Socket, buffer: &mut Vec<u8>) -> io::Result<()> {
    loop {
        buffer.clear();
        match socket.recv(buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => return Err(error),
            _ => {}
        }
    }
}

fn send(
    socket: &Socket,
    message: RouteNetlinkMessage,
    flags: u16,
    sequence: u32,
) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).map(|_| ())
}

/// Netlink message, parsed in place.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    whole: &'a [u8],
}

impl Message<'_> {
    /// The fact in the message. An unreadable message is skipped with a warning: a kernel newer than the library must not stop
    /// the gateway.
    fn fact(&self) -> Option<Fact> {
        if let Some(fact) = route::fact(self.kind, self.flags, &self.whole[16..]) {
            return fact;
        }
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(self.whole) {
            Ok(message) => match message.payload {
                NetlinkPayload::InnerMessage(inner) => fact(&inner),
                _ => None,
            },
            Err(error) => {
                warn!(%error, "netlink: skipped an unreadable message");
                None
            }
        }
    }

    /// Result in an NLMSG_ERROR: 0, or a negative error number.
    fn error(&self) -> io::Result<()> {
        let code = self.whole[16..].first_chunk::<4>();
        match code.map_or(0, |code| i32::from_ne_bytes(*code)) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(-code)),
        }
    }
}

/// Splits a datagram into messages.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let header = datagram.first_chunk::<16>()?;
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let Some(whole) = datagram.get(..length).filter(|_| length >= 16) else {
            let left = datagram.len();
            warn!(length, left, "netlink: a message with a wrong length");
            return None;
        };
        datagram = datagram
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some(Message {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            whole,
        })
    })
}
