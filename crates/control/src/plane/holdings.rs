//! Sessions and their resources, for tests and the simulation, which check for leaks and duplicates.

use super::ControlPlane;
use super::persist::{SESSION_PREFIX, session_key};
use crate::entry::{Entry, Stage};
use crate::records::Record;
use crate::store::Record as StoreRecord;
use crate::topology::{Seid, UserPlaneId};
use core::net::Ipv4Addr;
use ipnet::Ipv6Net;
use policy::{Access, Bindings};
use session::Circuit;

/// Stage of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldStage {
    /// No address family has been open yet.
    HalfOpen,
    /// At least one address family has been open.
    Online,
    /// The session has ended, and its user plane has not deleted it yet.
    Closing,
}

/// Session with its resources.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// SEID of the session. Printed, it is the Acct-Session-Id.
    pub seid: Seid,
    /// User plane of the session.
    pub user_plane: UserPlaneId,
    /// Control plane's end of its tunnel.
    pub teid: u32,
    /// Access line and MAC addresses.
    pub circuit: &'a Circuit,
    /// PPPoE session id.
    pub pppoe_id: u16,
    /// IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 prefix.
    pub ipv6: Option<Ipv6Net>,
    /// These, and all else that is routed to the session.
    pub bindings: &'a Bindings,
    /// Size of the largest IP packet to the subscriber, in octets.
    pub mtu: u16,
    /// Stage of the session.
    pub stage: HeldStage,
    /// Whether the store has a record of it, or gets one with the next batch.
    pub stored: bool,
}

/// Session in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// SEID of the session.
    pub seid: Seid,
    /// Access line and MAC addresses.
    pub circuit: Circuit,
    /// PPPoE session id.
    pub pppoe_id: u16,
    /// IPv4 address, if its rules were requested.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 prefix, if its rules were requested.
    pub ipv6: Option<Ipv6Net>,
    /// Size of the largest IP packet to the subscriber, in octets.
    pub mtu: u16,
}

impl StoredSession {
    /// Key of a session in the store.
    pub fn key(seid: Seid) -> Vec<u8> {
        session_key(seid)
    }

    /// Decodes an entry of the store; `None` if it is not a session's.
    pub fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let seid = key.strip_prefix(SESSION_PREFIX)?.try_into().ok()?;
        let record = Record::from_bytes(value).ok()?;
        let [ipv4, ipv6] = record.families;
        let packets = record.fifth.map(|fifth| fifth.policy.forwarding.packets);
        Some(StoredSession {
            seid: Seid(u64::from_be_bytes(seid)),
            circuit: record.circuit,
            pppoe_id: record.pppoe_id,
            ipv4: record.ipv4.filter(|_| ipv4),
            ipv6: record.ipv6.filter(|_| ipv6),
            mtu: packets.unwrap_or_default().largest_packet(),
        })
    }

    /// Delegated prefixes in an entry of the store, if the session's rules for IPv6 were requested.
    pub fn delegated(value: &[u8]) -> Vec<Ipv6Net> {
        let record = Record::from_bytes(value).ok();
        let record = record.filter(|record| record.families[1]);
        let policy = record.and_then(|record| record.fifth).map(|f| f.policy);
        policy.map_or(Vec::new(), |p| p.forwarding.bindings.delegated().collect())
    }

    /// Entry of a store for this session, with all other fields taken from `value`. Measurements make large stores from it.
    ///
    /// # Errors
    /// The reason for which `value` is not the value of a session's entry.
    pub fn like(self, value: &[u8]) -> Result<StoreRecord, String> {
        let record = Record {
            up_seid: self.seid.0,
            circuit: self.circuit,
            pppoe_id: self.pppoe_id,
            families: [self.ipv4.is_some(), self.ipv6.is_some()],
            ipv4: self.ipv4,
            ipv6: self.ipv6,
            ..Record::from_bytes(value)?
        };
        Ok(StoreRecord::put(session_key(self.seid), record.to_bytes()))
    }
}

impl ControlPlane {
    /// All sessions with their resources.
    pub fn held(&self) -> impl Iterator<Item = Held<'_>> {
        self.sessions.iter().map(|(_, entry)| self.held_by(entry))
    }

    fn held_by<'a>(&self, entry: &'a Entry) -> Held<'a> {
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let Access::Pppoe(pppoe_id) = entry.access;
        Held {
            seid: entry.seid,
            user_plane: port.user_plane,
            teid: entry.teid,
            circuit: &entry.circuit,
            pppoe_id,
            ipv4: entry.ipv4(),
            ipv6: entry.ipv6(),
            bindings: &entry.policy.forwarding.bindings,
            mtu: entry.policy.forwarding.packets.largest_packet(),
            stage: match entry.stage {
                Stage::Admitted(_) | Stage::Connecting => HeldStage::HalfOpen,
                Stage::Online => HeldStage::Online,
                Stage::Closing(_) => HeldStage::Closing,
            },
            stored: entry.stored,
        }
    }
}
