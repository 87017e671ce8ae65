//! UDP port for the requests of RADIUS servers (RFC 5176).

use super::{RADIUS_QUEUE, bind, send};
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

type Request = (SocketAddr, Vec<u8>);

/// The port on each of the control plane's addresses.
pub(super) struct Dynamic {
    addresses: config::Addresses,
    sockets: Vec<Open>,
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
            sender,
            requests,
        }
    }

    /// Listens on this port and no other.
    pub fn listen(&mut self, port: Option<u16>) {
        self.sockets.clear();
        let Some(port) = port else { return };
        for own in self.addresses.iter() {
            match bind(own, port) {
                Ok(socket) => {
                    let socket = Arc::new(socket);
                    let hearing = tokio::spawn(hear(socket.clone(), self.sender.clone()));
                    self.sockets.push(Open {
                        own,
                        socket,
                        hearing: hearing.abort_handle(),
                    });
                }
                Err(error) => {
                    tracing::error!(%error, "RADIUS servers cannot change or end sessions: the port of \
                    `aaa dynamic-authorization` is not open. Commit another port, or end the program that has it and restart")
                }
            }
        }
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
