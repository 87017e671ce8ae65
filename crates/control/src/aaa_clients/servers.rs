//! RADIUS servers and server groups as the configuration has them.

use super::{AaaClients, RADIUS_SOCKETS};
use crate::radius_sockets::RadiusBinding;
use crate::radius_streams::{RadiusServer, RadiusServers, RadiusTls};
use aaa::{ClientConfig, Nas, Secret, ServerConfig};
use config::Configuration;
use config::model::{FamilyCounters, NotEnforced, Selection, Server, ServerGroup, Tls, Transport};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Where requests of a server group come from.
#[derive(Default)]
pub(super) struct Source {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
    vrf: Option<String>,
}

impl Source {
    pub fn of(group: &ServerGroup) -> Self {
        Source {
            ipv4: group.source_ipv4,
            ipv6: group.source_ipv6,
            vrf: group.vrf.clone(),
        }
    }

    pub fn binding(&self, group: &str, ipv6: bool) -> RadiusBinding {
        RadiusBinding {
            group: group.to_owned(),
            source: match ipv6 {
                true => self.ipv6.map(IpAddr::from),
                false => self.ipv4.map(IpAddr::from),
            },
            vrf: self.vrf.clone(),
        }
    }
}

/// How a server is connected to; `None` if it is one over UDP.
fn stream(name: &str, group: &ServerGroup, server: &Server) -> Option<RadiusServer> {
    let tls = match server.transport {
        Transport::Udp => return None,
        Transport::Tcp => None,
        Transport::Tls => Some(credentials(server.address, &server.tls)),
    };
    let binding = Source::of(group).binding(name, server.address.is_ipv6());
    Some(RadiusServer { binding, tls })
}

fn credentials(address: IpAddr, tls: &Tls) -> RadiusTls {
    let file = |path: &Option<String>| path.clone().unwrap_or_default().into();
    let name = tls.server_name.clone();
    RadiusTls {
        authority: file(&tls.authority),
        certificate: file(&tls.certificate),
        key: file(&tls.key),
        server_name: name.unwrap_or_else(|| address.to_string()),
    }
}

fn transport(stream: Option<&RadiusServer>) -> aaa::Transport {
    let Some(stream) = stream else {
        return aaa::Transport::Datagram;
    };
    let mut hasher = DefaultHasher::new();
    stream.hash(&mut hasher);
    aaa::Transport::Stream {
        settings: hasher.finish(),
    }
}

/// A server for authentication and for accounting.
fn server_configs(server: &Server, transport: aaa::Transport) -> [ServerConfig; 2] {
    let interval = Duration::from_secs(server.status_interval.into());
    server.ports().map(|port| ServerConfig {
        transport,
        timeout: Duration::from_secs(server.timeout.into()),
        retries: server.retransmit_attempts.into(),
        dead_time: Duration::from_secs(server.dead_time.into()),
        require_message_authenticator: server.require_message_authenticator,
        status_interval: server.status_server.then_some(interval),
        ..ServerConfig::new(
            SocketAddr::new(server.address, port),
            Secret::new(server.secret()),
        )
    })
}

impl AaaClients {
    /// Identity of the gateway towards the servers of a group; `None`: the control plane's own.
    pub fn nas(&self, group: Option<&ServerGroup>) -> Nas {
        let identifier = group.and_then(|group| group.nas_identifier.clone());
        let source = group.map(Source::of).unwrap_or_default();
        Nas {
            identifier: identifier.unwrap_or_else(|| self.node_id.clone()),
            ipv4: source.ipv4.or(self.addresses.ipv4),
            ipv6: source.ipv6.or(self.addresses.ipv6),
        }
    }

    /// Configuration of a group's client; without the group, one without servers.
    pub(super) fn client_config(
        &self,
        group: Option<(&str, &ServerGroup)>,
        servers: &BTreeMap<String, Server>,
    ) -> ClientConfig {
        let mut client = ClientConfig::new(self.nas(group.map(|(_, group)| group)));
        client.max_sockets = RADIUS_SOCKETS;
        client.mappings = self.mappings.clone();
        let Some((name, group)) = group else {
            return client;
        };
        client.selection = match group.selection {
            Selection::Balanced => aaa::Selection::Balanced,
            Selection::Ordered => aaa::Selection::Ordered,
        };
        client.not_enforced = match group.not_enforced {
            NotEnforced::Reject => aaa::NotEnforced::Reject,
            NotEnforced::Accept => aaa::NotEnforced::Accept,
        };
        client.family_counters = match group.family_counters {
            FamilyCounters::None => aaa::FamilyCounters::None,
            FamilyCounters::Erx => aaa::FamilyCounters::Erx,
            FamilyCounters::Redback => aaa::FamilyCounters::Redback,
        };
        for server in group.servers.iter().filter_map(|name| servers.get(name)) {
            let stream = stream(name, group, server);
            let [authentication, accounting] = server_configs(server, transport(stream.as_ref()));
            client.authentication.push(authentication);
            client.accounting.push(accounting);
        }
        client
    }

    /// Servers over TCP and TLS of all groups.
    pub fn stream_servers(&self, configuration: &Configuration) -> RadiusServers {
        let aaa = &configuration.aaa;
        let mut found = RadiusServers::new();
        for (name, group) in &aaa.server_groups {
            let Some(number) = self.groups.get(name).map(|group| group.number) else {
                continue;
            };
            let servers = group.servers.iter();
            for server in servers.filter_map(|name| aaa.servers.get(name)) {
                let Some(stream) = stream(name, group, server) else {
                    continue;
                };
                for port in server.ports() {
                    let at = SocketAddr::new(server.address, port);
                    found.insert((number, at), stream.clone());
                }
            }
        }
        found
    }
}
