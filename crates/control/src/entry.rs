//! A session as the control plane keeps it, and as it is stored.

use crate::topology::{InstanceId, SegmentId, Seid};
use core::net::Ipv4Addr;
use core::time::Duration;
use ipnet::Ipv6Net;
use pfcp::bng::Usage;
use serde::{Deserialize, Serialize};
use session::{Circuit, Session};

/// A session.
pub(crate) struct Entry {
    pub seid: Seid,
    pub segment: SegmentId,
    pub instance: InstanceId,
    pub circuit: Circuit,
    pub pppoe_id: u16,
    /// What the access node says of the line (TR-101), for AAA.
    pub line: LineIds,
    pub stage: Stage,
    /// The PPP session, from PADS on.
    pub link: Option<Box<Session>>,
    pub rules: Rules,
    pub who: Who,
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Net>,
    pub account: Account,
    /// The store has a record of it.
    pub stored: bool,
}

/// Circuit and remote id of the subscriber's line (TR-101, RFC 4679).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineIds {
    pub circuit_id: Option<Box<[u8]>>,
    pub remote_id: Option<Box<[u8]>>,
}

/// How far a session has come.
pub(crate) enum Stage {
    /// Its PADR was accepted; PADS waits for the user plane.
    Admitted(Box<session::discovery::Padr>),
    /// PADS is out; no address family is open yet.
    Connecting,
    /// At least one address family was open.
    Online,
    /// It ended for this reason; the user plane has not given its last counters yet.
    Closing(session::Cause),
}

/// What the user plane has of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// The user plane's SEID, once it has answered.
    pub up_seid: Option<u64>,
    /// It was asked to take the session and has not answered yet.
    pub establishing: bool,
    /// Families whose rules were asked for: IPv4, IPv6.
    pub families: [bool; 2],
    /// Families that the last establishment named.
    pub named: [bool; 2],
    /// Counts what was asked about each family, so that an answer to what is no longer wanted is known as such.
    pub asked: [u8; 2],
}

/// Who the subscriber is, as AAA says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub username: Box<[u8]>,
    pub class: Box<[Vec<u8>]>,
    pub attempt: u8,
}

/// What is recorded of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// When its first address family opened.
    pub started: Option<Started>,
    /// What it carried, as far as the user plane has told.
    pub usage: Usage,
    /// Between interim records; `None` for none.
    pub interim: Option<Duration>,
    pub next_interim: Option<Duration>,
    /// When its granted time is over.
    pub ends_at: Option<Duration>,
    /// Granted time from its start.
    pub session_timeout: Option<Duration>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub at: Duration,
    /// Seconds since 1970.
    pub unix: u32,
}

impl Entry {
    /// Not online yet.
    pub fn is_half_open(&self) -> bool {
        matches!(self.stage, Stage::Admitted(_) | Stage::Connecting)
    }

    pub fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// When the session next wants time to pass.
    pub fn wake_at(&self) -> Option<Duration> {
        let link = self.link.as_ref().and_then(|link| link.poll_at());
        [link, self.account.next_interim, self.account.ends_at]
            .into_iter()
            .flatten()
            .min()
    }
}

/// A session in the store. The first octet of the stored value is [`RECORD_VERSION`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub user_plane: String,
    pub group: String,
    /// The group's number when it was stored: TEIDs follow from it.
    pub group_number: u16,
    pub instance: String,
    pub circuit: Circuit,
    pub pppoe_id: u16,
    pub line: LineIds,
    pub up_seid: u64,
    pub families: [bool; 2],
    pub username: Vec<u8>,
    pub class: Vec<Vec<u8>>,
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Net>,
    /// Seconds since 1970 when its first family opened.
    pub started_unix: Option<u32>,
    /// Packets and octets up, packets and octets down.
    pub usage: [u64; 4],
    pub interim_seconds: Option<u32>,
    pub timeout_seconds: Option<u32>,
    pub link: session::Snapshot,
}

/// The layout of [`Record`]; another one is refused, not guessed.
pub(crate) const RECORD_VERSION: u8 = 1;

impl Record {
    pub fn to_bytes(&self) -> Vec<u8> {
        let start = vec![RECORD_VERSION];
        postcard::to_extend(self, start).expect("a record has a size that serde can state")
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        match bytes.split_first() {
            Some((&RECORD_VERSION, rest)) => postcard::from_bytes(rest).map_err(|e| e.to_string()),
            Some((version, _)) => Err(format!(
                "record of version {version}, expected {RECORD_VERSION}"
            )),
            None => Err("empty record".into()),
        }
    }
}

pub(crate) fn usage_to_array(u: Usage) -> [u64; 4] {
    [u.up_packets, u.up_octets, u.down_packets, u.down_octets]
}

pub(crate) fn usage_from_array(
    [up_packets, up_octets, down_packets, down_octets]: [u64; 4],
) -> Usage {
    Usage {
        up_packets,
        up_octets,
        down_packets,
        down_octets,
    }
}
