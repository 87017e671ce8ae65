//! The control plane's RADIUS sockets and their ports. A server recognises a retransmission by its port, too, so a socket has the same
//! port after a restart.

use crate::journal::Journal;
use crate::radius_streams::RadiusServers;
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Local ports of the RADIUS sockets, by address family (`true` is IPv6) and number.
pub type RadiusPorts = BTreeMap<(bool, u16), u16>;

/// Where the sockets of a server group are bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RadiusBinding {
    /// Server group.
    pub group: String,
    /// Local address of the sockets' address family. `None`: the kernel selects it.
    pub source: Option<IpAddr>,
    /// Linux VRF device. `None`: the main routing table.
    pub vrf: Option<String>,
}

impl RadiusBinding {
    /// Where it is, for operators: ` at ADDRESS in VRF DEVICE`, with another word for `at`. Empty: nowhere in particular.
    pub(crate) fn place(&self, at: &str) -> String {
        let source = self.source.map(|source| format!(" {at} {source}"));
        let vrf = self.vrf.as_ref().map(|vrf| format!(" in VRF {vrf}"));
        [source, vrf].into_iter().flatten().collect()
    }
}

/// RADIUS socket to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RadiusSocket {
    /// Port that it had before, if it had one.
    pub port: Option<u16>,
    /// Where it is bound.
    pub binding: RadiusBinding,
}

/// Prefix of the keys of RADIUS ports, followed by the address family (`4` or `6`) and the socket's number (u16, big endian); the value
/// is a port (u16, big endian).
pub(crate) const RADIUS_PORT_PREFIX: &[u8] = b"radius-port/";

/// Requested sockets, and the ports that the store has.
#[derive(Debug)]
pub(crate) struct RadiusSockets {
    ports: RadiusPorts,
    requested: BTreeMap<(bool, u16), RadiusBinding>,
    /// Servers over TCP and TLS that were told last.
    servers: RadiusServers,
}

impl RadiusSockets {
    /// None is requested yet; these ports are stored.
    pub fn new(ports: RadiusPorts) -> Self {
        RadiusSockets {
            ports,
            requested: BTreeMap::new(),
            servers: RadiusServers::new(),
        }
    }

    /// Sockets to open, each with its previous port if it had one; nothing if they are the same as before.
    pub fn update(
        &mut self,
        wanted: BTreeMap<(bool, u16), RadiusBinding>,
    ) -> Option<BTreeMap<(bool, u16), RadiusSocket>> {
        if wanted == self.requested {
            return None;
        }
        self.requested = wanted;
        let socket = |(socket, binding): (&(bool, u16), &RadiusBinding)| {
            let (port, binding) = (self.ports.get(socket).copied(), binding.clone());
            (*socket, RadiusSocket { port, binding })
        };
        Some(self.requested.iter().map(socket).collect())
    }

    /// Servers over TCP and TLS; nothing if they are the same as before.
    pub fn update_servers(&mut self, servers: RadiusServers) -> Option<RadiusServers> {
        if servers == self.servers {
            return None;
        }
        self.servers = servers;
        Some(self.servers.clone())
    }

    /// Stores the ports of the sockets that were opened.
    pub fn on_open(&mut self, ports: RadiusPorts, journal: &mut Journal) {
        journal.add_changes(&self.ports, &ports, |(ipv6, number)| {
            let family = if *ipv6 { b"6" } else { b"4" };
            [RADIUS_PORT_PREFIX, family, &number.to_be_bytes()].concat()
        });
        self.ports = ports;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Record;

    #[test]
    fn a_socket_asks_for_the_port_that_it_had_and_a_changed_port_is_stored() {
        let mut journal = Journal::new(Vec::new());
        let mut sockets = RadiusSockets::new([((false, 0), 1645), ((true, 1), 2000)].into());
        assert_eq!(sockets.update(BTreeMap::new()), None);
        let anywhere = RadiusBinding::default();
        let wanted = [((false, 0), anywhere.clone()), ((false, 1), anywhere)];
        let asked = sockets.update(wanted.clone().into());
        let ports = asked.unwrap().into_values().map(|socket| socket.port);
        assert_eq!(ports.collect::<Vec<_>>(), [Some(1645), None]);
        assert_eq!(sockets.update(wanted.clone().into()), None);
        let mut bound = BTreeMap::from(wanted);
        bound.get_mut(&(false, 0)).unwrap().vrf = Some("mgmt".into());
        assert_eq!(sockets.update(bound.clone()).unwrap().len(), 2);
        assert_eq!(sockets.update(bound), None);

        sockets.on_open(
            [((false, 0), 1645), ((false, 1), 3000)].into(),
            &mut journal,
        );
        let stored = [
            Record::delete(*b"radius-port/6\x00\x01"),
            Record::put(*b"radius-port/4\x00\x01", 3000u16.to_be_bytes()),
        ];
        assert_eq!(journal.take_batch(), stored);
    }
}
