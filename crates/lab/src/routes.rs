//! The internet host's routes: it stands for the routers that learn from user planes which nets they announce.
//!
//! A user plane announces a subscriber net as a kernel route in its own namespace; FRR would pass it on. Here a thread
//! for each user plane hears of them by netlink, and the internet host gets the same net by that user plane's core
//! address. A net that moves is told in either order: what comes replaces, and only one's own is taken back.

use crate::netns::Netns;
use crate::topology::{Lab, Place, UserPlane};
use anyhow::{Context, Result};
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The kernel's number for routes that a user plane announces.
const PROTO_SLUICE: u8 = 96;
/// RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE.
const GROUPS: [u32; 2] = [7, 11];
/// Room for as many changes as a thread may be late for.
const RECEIVE_BUFFER: i32 = 8 << 20;
/// A netlink datagram of the kernel.
const DATAGRAM: usize = 32 << 10;
/// How often a thread looks whether it is to end, in milliseconds.
const LOOK: u8 = 100;

/// ESRCH: there is no such route.
const NO_ROUTE: i32 = nix::errno::Errno::ESRCH as i32;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

/// The threads that follow the user planes' routes; they end when this is dropped, and the internet host's routes with them.
#[derive(Debug)]
pub struct Routes {
    internet: Netns,
    running: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Routes {
    /// Follows these user planes from now on: call it before they start.
    pub fn follow(lab: &Lab, ups: &[UserPlane]) -> Result<Self> {
        let running = Arc::new(AtomicBool::new(true));
        let mut routes = Routes {
            internet: lab.netns(Place::Internet).clone(),
            running: Arc::clone(&running),
            threads: Vec::new(),
        };
        for &up in ups {
            let follower = Follower {
                up,
                announced: lab.netns(Place::UserPlane(up)).within(listener)??,
                internet: lab
                    .netns(Place::Internet)
                    .within(|| Socket::new(NETLINK_ROUTE))??,
                running: Arc::clone(&running),
            };
            let thread = std::thread::Builder::new()
                .name(format!("routes-{}", up.name()))
                .spawn(move || follower.run())
                .context("cannot start a thread for routes")?;
            routes.threads.push(thread);
        }
        Ok(routes)
    }

    /// Has a thread ended by itself?
    pub fn failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Whoever watches has seen that it failed.
            let _ = thread.join();
        }
        // What was withdrawn last may not have been heard of, and leads the next gateway's subscribers astray.
        for family in ["-4", "-6"] {
            let protocol = PROTO_SLUICE.to_string();
            let flush = ["ip", family, "route", "flush", "proto", &protocol];
            // The lab may be gone already.
            let _ = self.internet.run(&flush);
        }
    }
}

fn listener() -> std::io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.set_rx_buf_sz(RECEIVE_BUFFER)?;
    socket.set_non_blocking(true)?;
    for group in GROUPS {
        socket.add_membership(group)?;
    }
    Ok(socket)
}

struct Follower {
    up: UserPlane,
    announced: Socket,
    internet: Socket,
    running: Arc<AtomicBool>,
}

impl Follower {
    fn run(&self) -> Result<()> {
        let mut datagram = Vec::with_capacity(DATAGRAM);
        while self.running.load(Ordering::Relaxed) {
            let mut wanted = [PollFd::new(self.announced.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, PollTimeout::from(LOOK)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error).context("cannot wait for routes"),
            }
            datagram.clear();
            self.announced
                .recv(&mut datagram, 0)
                .context("cannot hear of routes")?;
            self.pass_on(&datagram)?;
        }
        Ok(())
    }

    fn pass_on(&self, mut datagram: &[u8]) -> Result<()> {
        while !datagram.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(datagram)?;
            let length = (message.header.length as usize).next_multiple_of(4);
            datagram = datagram.get(length..).unwrap_or_default();
            let (message, flags) = match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => (
                    self.by_this(&route).map(RouteNetlinkMessage::NewRoute),
                    NLM_F_CREATE | NLM_F_REPLACE,
                ),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRoute(route)) => {
                    (self.by_this(&route).map(RouteNetlinkMessage::DelRoute), 0)
                }
                _ => (None, 0),
            };
            if let Some(message) = message {
                self.change(message, flags)?;
            }
        }
        Ok(())
    }

    /// The internet host's route for a net that the user plane announces; `None` if the route is another one.
    fn by_this(&self, route: &RouteMessage) -> Option<RouteMessage> {
        if route.header.protocol != RouteProtocol::Other(PROTO_SLUICE) {
            return None;
        }
        let destination = route.attributes.iter().find_map(|a| match a {
            RouteAttribute::Destination(to) => Some(to.clone()),
            _ => None,
        })?;
        let gateway = match route.header.address_family {
            AddressFamily::Inet => RouteAddress::from(self.up.core_v4()),
            _ => RouteAddress::from(self.up.core_v6()),
        };
        let mut by_this = RouteMessage::default();
        by_this.header = RouteHeader {
            address_family: route.header.address_family,
            destination_prefix_length: route.header.destination_prefix_length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: route.header.protocol,
            scope: netlink_packet_route::route::RouteScope::Universe,
            kind: netlink_packet_route::route::RouteType::Unicast,
            ..RouteHeader::default()
        };
        by_this.attributes = vec![
            RouteAttribute::Destination(destination),
            RouteAttribute::Gateway(gateway),
        ];
        // another metric is another route: without it, the end of the old one would take the new one away
        let metric = |a: &&RouteAttribute| matches!(a, RouteAttribute::Priority(_));
        let metric = route.attributes.iter().find(metric);
        by_this.attributes.extend(metric.cloned());
        Some(by_this)
    }

    fn change(&self, message: RouteNetlinkMessage, flags: u16) -> Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.internet.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        let (answer, _) = self.internet.recv_from_full()?;
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)?.payload {
            // What is to go may be gone: another user plane's took its place.
            NetlinkPayload::Error(error) if error.code.is_some_and(|c| c.get() != -NO_ROUTE) => {
                Err(error.to_io()).context("cannot change the internet's routes")
            }
            _ => Ok(()),
        }
    }
}
