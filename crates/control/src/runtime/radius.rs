//! Sockets of the RADIUS clients. They keep their ports, so that servers recognize repeated requests and their answers reach us.

use super::{PORTION, RADIUS_QUEUE, bind_in, send, unknown};
use crate::alarms::{Condition, Fault};
use crate::plane::{RadiusBinding, RadiusPorts, RadiusSocket};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Address family (is it IPv6?) and number of a socket.
type Name = (bool, u16);

/// Portion of datagrams, each with the server that sent it.
pub(super) type Replies = Vec<(SocketAddr, Vec<u8>)>;

/// Sockets of the RADIUS clients.
pub(super) struct Radius {
    sockets: BTreeMap<Name, Open>,
    /// Sockets that could not be opened, and why. They are tried again.
    missing: BTreeMap<Name, (RadiusSocket, io::Error)>,
    sender: mpsc::Sender<(u16, Replies)>,
    /// Replies, with the number of their socket.
    pub replies: mpsc::Receiver<(u16, Replies)>,
}

struct Open {
    socket: Arc<UdpSocket>,
    port: u16,
    binding: RadiusBinding,
    hearing: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

impl Radius {
    pub fn new() -> Self {
        let (sender, replies) = mpsc::channel(RADIUS_QUEUE / PORTION);
        Radius {
            sockets: BTreeMap::new(),
            missing: BTreeMap::new(),
            sender,
            replies,
        }
    }

    /// Opens the wanted sockets and closes the others. Returns their ports.
    pub fn follow(&mut self, wanted: BTreeMap<Name, RadiusSocket>) -> RadiusPorts {
        let stays = |name: &Name, open: &mut Open| {
            wanted.get(name).is_some_and(|w| w.binding == open.binding)
        };
        self.sockets.retain(stays);
        self.missing.clear();
        for (name, socket) in wanted {
            if !self.sockets.contains_key(&name) {
                self.open(name, socket);
            }
        }
        for Condition { resource, text, .. } in self.conditions() {
            tracing::error!(group = resource, "{text}");
        }
        self.ports()
    }

    /// Tries again to open the missing sockets. Returns the ports of all if one was opened.
    pub fn open_missing(&mut self) -> Option<RadiusPorts> {
        let before = self.missing.len();
        for (name, (socket, _)) in std::mem::take(&mut self.missing) {
            self.open(name, socket);
        }
        (self.missing.len() < before).then(|| self.ports())
    }

    /// Ports of the sockets. A missing socket keeps its port in the store.
    pub fn ports(&self) -> RadiusPorts {
        let open = self.sockets.iter().map(|(name, open)| (*name, open.port));
        let missing = self.missing.iter();
        let missing = missing.filter_map(|(name, (socket, _))| Some((*name, socket.port?)));
        open.chain(missing).collect()
    }

    fn open(&mut self, name: Name, socket: RadiusSocket) {
        match self.try_open(name, &socket) {
            Ok(open) => drop(self.sockets.insert(name, open)),
            Err(error) => drop(self.missing.insert(name, (socket, error))),
        }
    }

    fn try_open(&self, (ipv6, number): Name, wanted: &RadiusSocket) -> io::Result<Open> {
        let socket = Arc::new(bind_again(ipv6, wanted)?);
        let port = socket.local_addr()?.port();
        let task = tokio::spawn(hear(socket.clone(), number, self.sender.clone()));
        Ok(Open {
            socket,
            port,
            binding: wanted.binding.clone(),
            hearing: task.abort_handle(),
        })
    }

    /// Our end towards a server. Without a configured address, the kernel selects it.
    pub fn own(&self, number: u16, server: SocketAddr) -> SocketAddr {
        let open = self.sockets.get(&(server.is_ipv6(), number));
        let port = open.map_or(0, |open| open.port);
        match open.and_then(|open| open.binding.source) {
            Some(source) => SocketAddr::new(source, port),
            None => unknown(server, port),
        }
    }

    pub async fn send(&self, number: u16, to: SocketAddr, bytes: &[u8]) {
        if let Some(open) = self.sockets.get(&(to.is_ipv6(), number)) {
            send(&open.socket, to, bytes).await;
        }
    }

    /// Server groups of which a socket is missing, and what to do.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut groups: BTreeMap<(&str, bool), (&RadiusBinding, &io::Error)> = BTreeMap::new();
        for (&(ipv6, _), (socket, error)) in &self.missing {
            let binding = &socket.binding;
            groups
                .entry((&binding.group, ipv6))
                .or_insert((binding, error));
        }
        groups
            .into_iter()
            .map(|((group, ipv6), (binding, error))| Condition {
                fault: Fault::ServerSocketsMissing,
                resource: group.to_owned(),
                text: why(ipv6, binding, error),
            })
            .collect()
    }
}

/// What is missing, and what to do.
fn why(ipv6: bool, binding: &RadiusBinding, error: &io::Error) -> String {
    let family = if ipv6 { "IPv6" } else { "IPv4" };
    let leaf = if ipv6 { "source-ipv6" } else { "source-ipv4" };
    let group = &binding.group;
    let at = binding.place("at");
    let advice = match (&binding.source, &binding.vrf) {
        (_, Some(vrf)) if error.raw_os_error() == Some(nix::libc::ENODEV) => format!(
            "This machine has no device {vrf}: create it, or change `aaa server-groups {group} vrf`"
        ),
        (Some(source), _) => format!(
            "Give {source} to an interface of this machine, or change `aaa server-groups {group} {leaf}`"
        ),
        _ => "Check the limits of the process".to_owned(),
    };
    format!(
        "no {family} server of group {group} can be asked: its UDP sockets cannot be bound{at}: {error}. {advice}; it is tried again \
         every second"
    )
}

/// Binds a socket's previous port, or another one if there is none or it is taken.
fn bind_again(ipv6: bool, wanted: &RadiusSocket) -> io::Result<UdpSocket> {
    let any: IpAddr = match ipv6 {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    let RadiusBinding { source, vrf, .. } = &wanted.binding;
    let bind = |port| bind_in(SocketAddr::new(source.unwrap_or(any), port), vrf.as_deref());
    match wanted.port.map(bind) {
        Some(Err(error)) if error.kind() == io::ErrorKind::AddrInUse => {
            tracing::warn!(
                port = wanted.port,
                "the port of a RADIUS socket is taken, and it gets another one: servers may \
                store accounting records in flight from the old port twice"
            );
            bind(0)
        }
        Some(bound) => bound,
        None => bind(0),
    }
}

/// Passes replies to the loop. When the loop is behind, they wait in the socket.
async fn hear(socket: Arc<UdpSocket>, number: u16, replies: mpsc::Sender<(u16, Replies)>) {
    let mut buffer = [0; wire::radius::MAX_LEN];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let mut portion = vec![(from, buffer[..length].to_vec())];
        while portion.len() < PORTION
            && let Ok((length, from)) = socket.try_recv_from(&mut buffer)
        {
            portion.push((from, buffer[..length].to_vec()));
        }
        if replies.send((number, portion)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
impl Radius {
    /// Makes the missing sockets' addresses this one, as if the machine had got theirs.
    pub fn give_addresses(&mut self, address: IpAddr) {
        for (socket, _) in self.missing.values_mut() {
            socket.binding.source = Some(address);
        }
    }
}
