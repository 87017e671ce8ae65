//! The control plane's RADIUS sockets and their ports. A server recognises a retransmission by its port, too, so a socket has the same
//! port after a restart.

use crate::journal::Journal;
use std::collections::{BTreeMap, BTreeSet};

/// Local ports of the RADIUS sockets, by address family (`true` is IPv6) and number.
pub type RadiusPorts = BTreeMap<(bool, u16), u16>;

/// Prefix of the keys of RADIUS ports, followed by the address family (`4` or `6`) and the socket's number (u16, big endian); the value
/// is a port (u16, big endian).
pub(crate) const RADIUS_PORT_PREFIX: &[u8] = b"radius-port/";

/// Requested sockets, and the ports that the store has.
#[derive(Debug)]
pub(crate) struct RadiusSockets {
    ports: RadiusPorts,
    requested: BTreeSet<(bool, u16)>,
}

impl RadiusSockets {
    /// None is requested yet; these ports are stored.
    pub fn new(ports: RadiusPorts) -> Self {
        RadiusSockets {
            ports,
            requested: BTreeSet::new(),
        }
    }

    /// Sockets to open, each with its previous port if it had one; nothing if they are the same as before.
    pub fn update(
        &mut self,
        wanted: BTreeSet<(bool, u16)>,
    ) -> Option<BTreeMap<(bool, u16), Option<u16>>> {
        if wanted == self.requested {
            return None;
        }
        self.requested = wanted;
        let port = |socket: &(bool, u16)| (*socket, self.ports.get(socket).copied());
        Some(self.requested.iter().map(port).collect())
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
        assert_eq!(sockets.update(BTreeSet::new()), None);
        let wanted = BTreeSet::from([(false, 0), (false, 1)]);
        let asked = sockets.update(wanted.clone());
        let expected = [((false, 0), Some(1645)), ((false, 1), None)];
        assert_eq!(asked, Some(expected.into()));
        assert_eq!(sockets.update(wanted), None);

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
