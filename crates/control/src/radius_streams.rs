//! Connections of the RADIUS clients to servers over TCP and TLS.

use crate::radius_sockets::RadiusBinding;
use aaa::Connection;
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Connection of a server group to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RadiusConnection {
    /// Number of the group.
    pub group: u16,
    /// Connection of the group's client.
    pub connection: Connection,
}

/// How the connections of a server group to a server are opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RadiusServer {
    /// Where they come from.
    pub binding: RadiusBinding,
    /// Credentials for TLS. `None`: TCP without TLS.
    pub tls: Option<RadiusTls>,
}

/// Credentials for TLS, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RadiusTls {
    /// Certificates of the authorities that may sign the server's certificate.
    pub authority: PathBuf,
    /// Our certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of our certificate.
    pub key: PathBuf,
    /// Name that the server's certificate must have.
    pub server_name: String,
}

/// Servers over TCP and TLS, by the number of the server group and the server's address and port.
pub type RadiusServers = BTreeMap<(u16, SocketAddr), RadiusServer>;
