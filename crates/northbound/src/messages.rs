//! What is asked and answered. Fields are named as they are printed by `--json`.

use crate::Ledger;
use serde::{Deserialize, Serialize};

/// A question or an order to a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Every session of the control plane.
    ShowSessions,
    /// One session with its counters, read from the user plane now.
    ShowSession {
        /// The session's id as [`Session::id`] prints it.
        id: String,
    },
    /// Every user plane of the control plane.
    ShowUserPlanes,
    /// The ports of a user plane.
    ShowPorts,
    /// The named counters of whatever was refused or dropped, of the daemon that is asked.
    ShowDrops,
    /// End a session as an administrator's reset.
    ClearSession {
        /// The session's id.
        id: String,
    },
    /// Compare what the daemon that is asked holds with the owners of it, in both directions.
    CheckLedger {
        /// Give back what has no owner, and book what is missing.
        repair: bool,
    },
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "kebab-case")]
pub enum Response {
    /// To [`Request::ShowSessions`], in order of id.
    Sessions {
        /// The sessions.
        sessions: Vec<Session>,
    },
    /// To [`Request::ShowSession`].
    Session {
        /// The session.
        session: Box<Session>,
    },
    /// To [`Request::ShowUserPlanes`].
    UserPlanes {
        /// The user planes in the order of the configuration.
        user_planes: Vec<UserPlane>,
    },
    /// To [`Request::ShowPorts`].
    Ports {
        /// The ports in the order of the configuration.
        ports: Vec<Port>,
    },
    /// To [`Request::ShowDrops`].
    Drops {
        /// Every counter, those that are zero too.
        drops: Vec<DropCounter>,
    },
    /// To [`Request::CheckLedger`].
    Ledger {
        /// What is held, and what differs.
        ledger: Ledger,
    },
    /// An order was carried out.
    Done,
    /// The request could not be answered.
    Error {
        /// What was wrong, for a person.
        message: String,
    },
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// Discovery is done, the link or the subscriber's identity is not.
    Connecting,
    /// At least one address family is open.
    Online,
    /// Ending: waiting for the user plane's last counters.
    Closing,
}

/// Octets and packets of IP, headers included, without PPP, PPPoE, VLAN and Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Traffic {
    pub up_packets: u64,
    pub up_octets: u64,
    pub down_packets: u64,
    pub down_octets: u64,
}

/// A subscriber's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The session's id, also its Acct-Session-Id; unique for the lifetime of the store.
    pub id: String,
    /// How far it has come.
    pub state: SessionState,
    /// The user's name, empty before authentication.
    pub user: String,
    /// The node id of the user plane that carries it.
    pub user_plane: String,
    /// The logical port of that user plane.
    pub port: String,
    /// The outer VLAN id; `None` when untagged.
    pub s_tag: Option<u16>,
    /// The inner VLAN id; `None` when there is at most one tag.
    pub c_tag: Option<u16>,
    /// The subscriber's MAC address, `aa:bb:cc:dd:ee:ff`.
    pub mac: String,
    /// The PPPoE session id.
    pub pppoe_session_id: u16,
    /// The subscriber group that the session belongs to.
    pub group: String,
    /// The network instance (VRF) of its addresses.
    pub network_instance: String,
    /// Its IPv4 address, once granted.
    pub ipv4: Option<String>,
    /// Its IPv6 prefix, once granted.
    pub ipv6_prefix: Option<String>,
    /// Seconds since the first address family opened; 0 before.
    pub online_seconds: u64,
    /// What the user plane counted: as last reported, or read now for [`Request::ShowSession`].
    pub traffic: Traffic,
}

/// How a user plane stands with the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserPlaneState {
    /// No association since the control plane started.
    NeverSeen,
    /// Associated; not every port is open yet, or not every session is put back or audited.
    Restoring,
    /// Associated, and it has everything that it is to have.
    Associated,
    /// The association has ended; the sessions are kept.
    Lost,
}

/// A user plane as the control plane sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPlane {
    /// Its PFCP Node ID.
    pub node_id: String,
    /// Where it serves PFCP and GTP-U.
    pub address: String,
    /// How it stands.
    pub state: UserPlaneState,
    /// Seconds since the association came or went; since the control plane's start if there was none.
    pub since_seconds: u64,
    /// When it started, as its Recovery Time Stamp says, in seconds since 1970; `None` if it was never seen.
    pub started_at: Option<u64>,
    /// How often it came back with another Recovery Time Stamp since the control plane started.
    pub restarts: u32,
    /// Sessions on it, those that are not online among them.
    pub sessions: usize,
    /// Its access ports.
    pub access_ports: Vec<UserPlanePort>,
}

/// An access port of a user plane as the control plane sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPlanePort {
    /// The logical port's name.
    pub name: String,
    /// Whether subscribers can dial in on it.
    pub open: bool,
}

/// A port of a user plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Port {
    /// The logical port's name.
    pub name: String,
    /// `access` or `core`.
    pub role: String,
    /// The DPDK device that carries it.
    pub device: String,
    /// Its own MAC address.
    pub mac: String,
    pub rx_packets: u64,
    pub rx_octets: u64,
    pub tx_packets: u64,
    pub tx_octets: u64,
    /// Frames that the device did not take.
    pub tx_dropped: u64,
}

/// A named counter of refused or dropped packets, messages or set-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCounter {
    /// `user-plane` or `control-plane`.
    pub plane: String,
    /// The counter's name.
    pub name: String,
    /// How often since the daemon started.
    pub count: u64,
    /// One sentence: what it means.
    pub meaning: String,
}
