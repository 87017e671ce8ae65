//! Who knows the subscribers: RADIUS servers or the users file.

use aaa::{
    AccessRequest, AccountingRecord, Authentic, Client, ClientConfig, Nas, Output, Secret,
    ServerConfig, Users,
};
use config::{Aaa, ControlPlane};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use northbound::DropCounter;
use std::collections::VecDeque;

/// AAA, behind one face.
pub(crate) enum Authority {
    Radius {
        client: Box<Client>,
        /// Interim interval where the server sends none.
        interim: Option<Duration>,
    },
    /// The file knows who may come in; accounting has nobody to go to.
    File {
        users: Users,
        outputs: VecDeque<Output>,
    },
}

impl Authority {
    /// Reads the users file if there is one.
    pub fn new(config: &ControlPlane, seed: [u8; 32]) -> Result<Self, String> {
        Ok(match &config.aaa {
            Aaa::UsersFile(path) => Authority::File {
                users: Users::load(path).map_err(|error| error.to_string())?,
                outputs: VecDeque::new(),
            },
            Aaa::Radius(radius) => Authority::Radius {
                client: Box::new(Client::new(client_config(config, radius), seed)),
                interim: (radius.interim_interval > 0)
                    .then(|| Duration::from_secs(radius.interim_interval.into())),
            },
        })
    }

    pub fn authenticate(&mut self, now: Duration, token: u64, request: AccessRequest) {
        match self {
            Authority::Radius { client, .. } => client.authenticate(now, token, request),
            Authority::File { users, outputs } => {
                let outcome = users.authenticate(&request);
                outputs.push_back(Output::Done { token, outcome });
            }
        }
    }

    pub fn account(&mut self, now: Duration, token: u64, record: AccountingRecord) {
        if let Authority::Radius { client, .. } = self {
            client.account(now, token, record);
        }
    }

    /// The interim interval of sessions whose server names none; `None`: no interim records.
    pub fn default_interim(&self) -> Option<Duration> {
        match self {
            Authority::Radius { interim, .. } => *interim,
            Authority::File { .. } => None,
        }
    }

    /// Whether accounting records reach anybody.
    pub fn accounts(&self) -> bool {
        matches!(self, Authority::Radius { .. })
    }

    pub fn authentic(&self) -> Authentic {
        match self {
            Authority::Radius { .. } => Authentic::Radius,
            Authority::File { .. } => Authentic::Local,
        }
    }

    pub fn handle(&mut self, now: Duration, socket: u16, from: SocketAddr, bytes: &[u8]) {
        if let Authority::Radius { client, .. } = self {
            client.handle(now, socket, from, bytes);
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        match self {
            Authority::Radius { client, .. } => client.poll_output(),
            Authority::File { outputs, .. } => outputs.pop_front(),
        }
    }

    pub fn poll_at(&self) -> Option<Duration> {
        match self {
            Authority::Radius { client, .. } => client.poll_at(),
            Authority::File { .. } => None,
        }
    }

    pub fn on_timeout(&mut self, now: Duration) {
        if let Authority::Radius { client, .. } = self {
            client.on_timeout(now);
        }
    }

    /// The client's counters for `show drops`.
    pub fn rows(&self) -> Vec<DropCounter> {
        match self {
            Authority::Radius { client, .. } => crate::counters::radius_rows(&client.counters()),
            Authority::File { .. } => Vec::new(),
        }
    }
}

fn client_config(config: &ControlPlane, radius: &config::RadiusServers) -> ClientConfig {
    let identifier = radius.nas_identifier.clone();
    let mut client = ClientConfig::new(Nas {
        identifier: identifier.unwrap_or_else(|| config.node_id.clone()),
        ipv4: match config.address {
            IpAddr::V4(a) => Some(a),
            IpAddr::V6(_) => None,
        },
        ipv6: match config.address {
            IpAddr::V6(a) => Some(a),
            IpAddr::V4(_) => None,
        },
    });
    for server in &radius.servers.value {
        let at = |port| ServerConfig {
            timeout: Duration::from_secs(radius.timeout.into()),
            retries: u32::from(radius.tries).saturating_sub(1),
            require_message_authenticator: server.require_message_authenticator,
            ..ServerConfig::new(
                SocketAddr::new(server.address, port),
                Secret::new(server.secret.reveal()),
            )
        };
        client.authentication.push(at(server.authentication_port));
        client.accounting.push(at(server.accounting_port));
    }
    client
}
