//! Who knows the subscribers: RADIUS servers or the users file.

use crate::topology::Seid;
use aaa::{
    AccessRequest, AccountingRecord, Authentic, Client, ClientConfig, Nas, Outcome, Output, Secret,
    ServerConfig, Users,
};
use config::{Aaa, ControlPlane};
use core::net::SocketAddr;
use core::time::Duration;
use northbound::DropCounter;
use slab::Slab;
use std::collections::VecDeque;

/// Who asked to come in; the attempt tells this question from earlier ones of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub seid: Seid,
    pub attempt: u8,
}

/// What the owner has to take care of.
pub(crate) enum Heard {
    Transmit {
        socket: u16,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
    Answer(Asked, Outcome),
    /// A server has a record, or one that is not to be kept was given up.
    Accounted(u64),
}

/// UDP sockets for RADIUS, of each address family: 256 accounting records can be under way on each.
pub(crate) const RADIUS_SOCKETS: u16 = 16;

/// AAA, behind one face.
pub(crate) struct Authority {
    source: Source,
    asked: Slab<Asked>,
}

enum Source {
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
        let source = match &config.aaa {
            Aaa::UsersFile(path) => Source::File {
                users: Users::load(path).map_err(|error| error.to_string())?,
                outputs: VecDeque::new(),
            },
            Aaa::Radius(radius) => Source::Radius {
                client: Box::new(Client::new(client_config(config, radius), seed)),
                interim: (radius.interim_interval > 0)
                    .then(|| Duration::from_secs(radius.interim_interval.into())),
            },
        };
        Ok(Authority {
            source,
            asked: Slab::new(),
        })
    }

    pub fn authenticate(&mut self, now: Duration, seid: Seid, attempt: u8, request: AccessRequest) {
        let token = self.asked.insert(Asked { seid, attempt }) as u64;
        match &mut self.source {
            Source::Radius { client, .. } => client.authenticate(now, token, request),
            Source::File { users, outputs } => {
                let outcome = users.authenticate(&request);
                outputs.push_back(Output::Done { token, outcome });
            }
        }
    }

    /// What a record says, for [`Client::account`].
    pub fn attributes(&self, record: &AccountingRecord) -> Result<Box<[u8]>, String> {
        match &self.source {
            Source::Radius { client, .. } => client
                .accounting_attributes(record)
                .map_err(|error| error.to_string()),
            Source::File { .. } => Err("nobody keeps records".into()),
        }
    }

    /// The RADIUS client, to which accounting records go; [`Heard::Accounted`] tells what became of one.
    pub fn client(&mut self) -> Option<&mut Client> {
        match &mut self.source {
            Source::Radius { client, .. } => Some(client),
            Source::File { .. } => None,
        }
    }

    /// The interim interval of sessions whose server names none; `None`: no interim records.
    pub fn default_interim(&self) -> Option<Duration> {
        match &self.source {
            Source::Radius { interim, .. } => *interim,
            Source::File { .. } => None,
        }
    }

    /// The questions that wait for an answer, by their tokens.
    pub fn questions(&self) -> impl Iterator<Item = (u64, &Asked)> {
        self.asked
            .iter()
            .map(|(token, asked)| (token as u64, asked))
    }

    /// The tokens of the questions that whoever knows the subscribers has.
    pub fn open_tokens(&self) -> Vec<u64> {
        match &self.source {
            Source::Radius { client, .. } => client.open_tokens().collect(),
            Source::File { outputs, .. } => {
                let done = outputs.iter().filter_map(|output| match output {
                    Output::Done { token, .. } => Some(*token),
                    _ => None,
                });
                done.collect()
            }
        }
    }

    /// Forgets a question that nobody will answer.
    pub fn forget(&mut self, token: u64) {
        self.asked.try_remove(token as usize);
    }

    /// Whether accounting records reach anybody.
    pub fn accounts(&self) -> bool {
        matches!(self.source, Source::Radius { .. })
    }

    pub fn authentic(&self) -> Authentic {
        match &self.source {
            Source::Radius { .. } => Authentic::Radius,
            Source::File { .. } => Authentic::Local,
        }
    }

    pub fn handle(&mut self, now: Duration, socket: u16, from: SocketAddr, bytes: &[u8]) {
        if let Source::Radius { client, .. } = &mut self.source {
            client.handle(now, socket, from, bytes);
        }
    }

    pub fn poll(&mut self) -> Option<Heard> {
        let output = match &mut self.source {
            Source::Radius { client, .. } => client.poll_output(),
            Source::File { outputs, .. } => outputs.pop_front(),
        };
        Some(match output? {
            Output::Transmit { socket, to, bytes } => Heard::Transmit { socket, to, bytes },
            Output::Done { token, outcome } => {
                Heard::Answer(self.asked.remove(token as usize), outcome)
            }
            Output::Accounted { token, .. } => Heard::Accounted(token),
        })
    }

    pub fn poll_at(&self) -> Option<Duration> {
        match &self.source {
            Source::Radius { client, .. } => client.poll_at(),
            Source::File { .. } => None,
        }
    }

    pub fn on_timeout(&mut self, now: Duration) {
        if let Source::Radius { client, .. } = &mut self.source {
            client.on_timeout(now);
        }
    }

    /// The client's counters for `show drops`.
    pub fn rows(&self) -> Vec<DropCounter> {
        match &self.source {
            Source::Radius { client, .. } => crate::counters::radius_rows(&client.counters()),
            Source::File { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
impl Authority {
    /// Breaks the books: a question that nobody was asked.
    pub fn invent_question(&mut self, asked: Asked) {
        self.asked.insert(asked);
    }
}

fn client_config(config: &ControlPlane, radius: &config::RadiusServers) -> ClientConfig {
    let identifier = radius.nas_identifier.clone();
    let mut client = ClientConfig::new(Nas {
        identifier: identifier.unwrap_or_else(|| config.node_id.clone()),
        ipv4: config.address.ipv4,
        ipv6: config.address.ipv6,
    });
    client.max_sockets = RADIUS_SOCKETS;
    for server in &radius.servers.value {
        let at = |port| ServerConfig {
            timeout: Duration::from_secs(radius.timeout.into()),
            retries: u32::from(radius.tries).saturating_sub(1),
            dead_time: Duration::from_secs(radius.dead_time.into()),
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
