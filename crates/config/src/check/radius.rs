//! RADIUS servers and server groups: what excludes each other, and what is missing.

use super::whole::Found;
use crate::Path;
use crate::model::{Aaa, Server, ServerGroup, Transport};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

impl Found {
    pub(super) fn radius(&mut self, aaa: &Aaa) {
        for (name, server) in &aaa.servers {
            let here = Path::from_iter(["aaa", "servers", name]);
            self.server_secret(&here, server);
            self.server_tls(&here, server);
        }
        for (name, group) in &aaa.server_groups {
            let here = Path::from_iter(["aaa", "server-groups", name]);
            self.server_group(&here, group);
            self.doubled_servers(&here, group, aaa);
        }
    }

    fn server_secret(&mut self, here: &Path, server: &Server) {
        if server.secret_key.is_none() && server.transport != Transport::Tls {
            let why = "a server without `transport: tls` needs a shared secret: expected the secret that the server knows";
            self.at(here, "secret-key", why.into());
        }
    }

    fn server_tls(&mut self, here: &Path, server: &Server) {
        let (tls, here) = (&server.tls, here.join("tls"));
        let files = [
            ("authority", &tls.authority),
            ("certificate", &tls.certificate),
            ("key", &tls.key),
        ];
        let parts = files.into_iter().chain([("server-name", &tls.server_name)]);
        if server.transport != Transport::Tls {
            for (part, _) in parts.filter(|(_, value)| value.is_some()) {
                let why = "this is for `transport: tls` only: delete it, or change `transport`";
                self.at(&here, part, why.into());
            }
            return;
        }
        for (part, path) in files {
            if path.as_ref().is_none_or(|path| !path.starts_with('/')) {
                let why = "expected the absolute path of a PEM file on the control plane's machine";
                self.at(&here, part, why.into());
            }
        }
    }

    fn server_group(&mut self, here: &Path, group: &ServerGroup) {
        if group.servers.is_empty() {
            let why = "the group has no server: expected at least one";
            self.at(here, "servers", why.into());
        }
        let sources = [
            ("source-ipv4", group.source_ipv4.map(IpAddr::from)),
            ("source-ipv6", group.source_ipv6.map(IpAddr::from)),
        ];
        for (part, source) in sources {
            if let Some(source) = source.filter(|ip| ip.is_unspecified() || ip.is_multicast()) {
                self.at(here, part, format!("`{source}` is not a unicast address"));
            }
        }
    }

    /// A connection is known by its server's address and port.
    fn doubled_servers(&mut self, here: &Path, group: &ServerGroup, aaa: &Aaa) {
        let mut known: BTreeMap<(usize, SocketAddr), &String> = BTreeMap::new();
        for name in &group.servers {
            let Some(server) = aaa.servers.get(name) else {
                continue;
            };
            if server.transport == Transport::Udp {
                continue;
            }
            for (role, port) in server.ports().into_iter().enumerate() {
                let at = SocketAddr::new(server.address, port);
                if let Some(other) = known.insert((role, at), name) {
                    let why = format!(
                        "`{other}` and `{name}` are both at {at}: expected different servers"
                    );
                    self.at(here, "servers", why);
                    break;
                }
            }
        }
    }
}
