//! The sockets towards the kernel.

use std::io;

use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, Socket, SocketAddr, TokioSocket};
use tracing::warn;

use super::message::{Fact, fact};
use super::request::{Request, dumps};

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;

/// A netlink datagram of the kernel is at most 32 KiB unless the reader asks for less.
const BUFFER: usize = 64 * 1024;
/// Room for bursts of route changes before the kernel answers with ENOBUFS.
const RECEIVE_BUFFER: usize = 8 * 1024 * 1024;

/// RTNLGRP_LINK, _NEIGH, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE.
const GROUPS: [u32; 6] = [1, 3, 5, 7, 9, 11];

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// The socket for changes. The kernel handles a request within `send`, so the answer
/// is there when it returns, and reading it does not block the loop.
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

    /// Sends one request and returns the kernel's verdict.
    pub fn request(&mut self, request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | NLM_F_ACK | request.flags;
        send(&self.socket, request.message, flags, self.sequence)?;
        let mut verdict = None;
        while verdict.is_none() {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            for_each_message(&self.buffer, |message| {
                if message.header.sequence_number != self.sequence {
                    return;
                }
                if let NetlinkPayload::Error(error) = message.payload {
                    verdict = Some(match error.code {
                        None => Ok(()),
                        Some(code) => Err(io::Error::from_raw_os_error(-code.get())),
                    });
                }
            });
        }
        verdict.unwrap_or(Ok(()))
    }
}

/// A reading of everything, one datagram at a time so that the loop stays live.
pub struct Dump {
    socket: Socket,
    buffer: Vec<u8>,
    stage: usize,
    /// The kernel changed the table under the reader (`NLM_F_DUMP_INTR`).
    interrupted: bool,
}

const NLM_F_DUMP_INTR: u16 = 0x10;

impl Dump {
    /// Starts reading.
    pub fn start() -> io::Result<Self> {
        let mut dump = Self {
            socket: open()?,
            buffer: Vec::with_capacity(BUFFER),
            stage: 0,
            interrupted: false,
        };
        dump.ask()?;
        Ok(dump)
    }

    /// Whether what was read is not one consistent state, so that it has to be read again.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn ask(&mut self) -> io::Result<()> {
        let Some(message) = dumps().into_iter().nth(self.stage) else {
            return Ok(());
        };
        self.stage += 1;
        send(
            &self.socket,
            message,
            NLM_F_REQUEST | NLM_F_DUMP,
            self.stage as u32,
        )
    }

    /// The next portion; `None` when everything has been read.
    pub fn read(&mut self) -> io::Result<Option<Vec<Fact>>> {
        if self.stage > dumps().len() {
            return Ok(None);
        }
        self.buffer.clear();
        self.socket.recv(&mut self.buffer, 0)?;
        let (mut facts, mut done, mut failure) = (Vec::new(), false, None);
        let mut interrupted = false;
        for_each_message(&self.buffer, |message| {
            interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
            match message.payload {
                NetlinkPayload::InnerMessage(inner) => facts.extend(fact(&message.header, &inner)),
                NetlinkPayload::Done(_) => done = true,
                NetlinkPayload::Error(error) => {
                    failure = error.code.map(|c| io::Error::from_raw_os_error(-c.get()));
                    done = true;
                }
                _ => {}
            }
        });
        self.interrupted |= interrupted;
        if let Some(error) = failure {
            return Err(error);
        }
        if done {
            let last = self.stage == dumps().len();
            self.ask()?;
            self.stage += usize::from(last);
        }
        Ok(Some(facts))
    }
}

/// The stream of changes.
pub struct Monitor {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

/// What came from the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// These facts, in order.
    Facts(Vec<Fact>),
    /// The kernel had to drop messages (ENOBUFS): read everything again.
    Overrun,
}

impl Monitor {
    /// Subscribes to changes of links, addresses, neighbours and routes.
    pub fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        socket.socket_mut().bind_auto()?;
        socket
            .socket_ref()
            .set_rx_buf_sz(RECEIVE_BUFFER as libc::c_int)?;
        for group in GROUPS {
            socket.socket_mut().add_membership(group)?;
        }
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Waits for the next changes.
    pub async fn next(&mut self) -> io::Result<Change> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer).await {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Change::Overrun);
                }
                Err(error) => return Err(error),
            }
            let mut facts = Vec::new();
            for_each_message(&self.buffer, |message| {
                if let NetlinkPayload::InnerMessage(inner) = message.payload {
                    facts.extend(fact(&message.header, &inner));
                }
            });
            if !facts.is_empty() {
                return Ok(Change::Facts(facts));
            }
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

/// Takes a datagram apart. A message that cannot be read is skipped with a warning:
/// a kernel newer than the library must not stop the gateway.
fn for_each_message(
    mut datagram: &[u8],
    mut each: impl FnMut(NetlinkMessage<RouteNetlinkMessage>),
) {
    while datagram.len() >= 16 {
        let length = u32::from_ne_bytes([datagram[0], datagram[1], datagram[2], datagram[3]]);
        let length = length as usize;
        if length < 16 || length > datagram.len() {
            warn!(
                length,
                left = datagram.len(),
                "netlink: a message with a wrong length"
            );
            return;
        }
        match NetlinkMessage::deserialize(&datagram[..length]) {
            Ok(message) => each(message),
            Err(error) => warn!(%error, "netlink: skipped a message that cannot be read"),
        }
        datagram = &datagram[length.next_multiple_of(4).min(datagram.len())..];
    }
}
