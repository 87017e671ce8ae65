//! UDP port for the requests of RADIUS servers (RFC 5176).

use super::{RADIUS_QUEUE, bind_in, send};
use crate::alarms::{Condition, Fault};
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

type Request = (SocketAddr, Vec<u8>);

/// The port on each of the control plane's addresses.
pub(super) struct Dynamic {
    addresses: config::Addresses,
    sockets: Vec<Open>,
    /// Sockets that could not be opened, and why. They are tried again.
    missing: Vec<(SocketAddr, io::Error)>,
    sender: mpsc::Sender<Request>,
    /// Requests in order. When the loop is behind, they wait in the sockets.
    pub requests: mpsc::Receiver<Request>,
}

struct Open {
    own: IpAddr,
    socket: Arc<UdpSocket>,
    hearing: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

impl Dynamic {
    pub fn new(addresses: config::Addresses) -> Self {
        let (sender, requests) = mpsc::channel(RADIUS_QUEUE);
        Dynamic {
            addresses,
            sockets: Vec::new(),
            missing: Vec::new(),
            sender,
            requests,
        }
    }

    /// Listens on this port and no other.
    pub fn listen(&mut self, port: Option<u16>) {
        self.sockets.clear();
        self.missing.clear();
        let Some(port) = port else { return };
        let addresses: Vec<IpAddr> = self.addresses.iter().collect();
        for own in addresses {
            self.open(SocketAddr::new(own, port));
        }
        for Condition { text, .. } in self.conditions() {
            tracing::error!("{text}");
        }
    }

    /// Tries again to open the missing sockets.
    pub fn open_missing(&mut self) {
        for (at, _) in std::mem::take(&mut self.missing) {
            self.open(at);
        }
    }

    fn open(&mut self, at: SocketAddr) {
        match bind_in(at, None) {
            Ok(socket) => {
                let socket = Arc::new(socket);
                let hearing = tokio::spawn(hear(socket.clone(), self.sender.clone()));
                self.sockets.push(Open {
                    own: at.ip(),
                    socket,
                    hearing: hearing.abort_handle(),
                });
            }
            Err(error) => self.missing.push((at, error)),
        }
    }

    /// Addresses on which the port is not open, and what to do.
    pub fn conditions(&self) -> Vec<Condition> {
        let missing = self.missing.iter();
        let conditions = missing.map(|(at, error)| Condition {
            fault: Fault::DynamicPortMissing,
            resource: at.to_string(),
            text: format!(
                "UDP {at} cannot be bound: {error}. RADIUS servers cannot change or end sessions there. End the program that has \
                the port, or change `aaa dynamic-authorization port`"
            ),
        });
        conditions.collect()
    }

    /// Answers from the address of the server's family, to which the request went.
    pub async fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let open = self
            .sockets
            .iter()
            .find(|open| open.own.is_ipv4() == to.is_ipv4());
        if let Some(open) = open {
            send(&open.socket, to, bytes).await;
        }
    }
}

async fn hear(socket: Arc<UdpSocket>, requests: mpsc::Sender<Request>) {
    let mut buffer = [0; wire::radius::MAX_LEN];
    loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer).await
            && requests
                .send((from, buffer[..length].to_vec()))
                .await
                .is_err()
        {
            return;
        }
    }
}
