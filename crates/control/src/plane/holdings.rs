//! What the control plane holds, for those who check that nothing is held twice, or for nobody.

use super::ControlPlane;
use super::persist::{SESSION_PREFIX, session_key};
use crate::entry::{Entry, Record, Stage};
use crate::store::Record as StoreRecord;
use crate::topology::{Seid, TunnelOwner, UserPlaneId};
use core::net::Ipv4Addr;
use ipnet::Ipv6Net;
use session::Circuit;

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldStage {
    /// No address family has been open yet.
    HalfOpen,
    /// At least one was.
    Online,
    /// It ended; its user plane has not let go of it yet.
    Closing,
}

/// A session and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Its name; printed, it is the Acct-Session-Id.
    pub seid: Seid,
    /// The user plane that it is on.
    pub user_plane: UserPlaneId,
    /// Our end of its tunnel.
    pub teid: u32,
    /// Where the subscriber is.
    pub circuit: &'a Circuit,
    /// Its PPPoE session id.
    pub pppoe_id: u16,
    /// The address.
    pub ipv4: Option<Ipv4Addr>,
    /// The prefix.
    pub ipv6: Option<Ipv6Net>,
    /// How far it has come.
    pub stage: HeldStage,
    /// The store has a record of it, or will with the next batch.
    pub stored: bool,
}

/// A session in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its name.
    pub seid: Seid,
    /// Where the subscriber is.
    pub circuit: Circuit,
    /// Its PPPoE session id.
    pub pppoe_id: u16,
    /// The address, if its rules were wanted.
    pub ipv4: Option<Ipv4Addr>,
    /// The prefix, if its rules were wanted.
    pub ipv6: Option<Ipv6Net>,
}

impl StoredSession {
    /// The store's key of a session.
    pub fn key(seid: Seid) -> Vec<u8> {
        session_key(seid)
    }

    /// Reads an entry of the store; `None` if it is no session's.
    pub fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let seid = key.strip_prefix(SESSION_PREFIX)?.try_into().ok()?;
        let record = Record::from_bytes(value).ok()?;
        let [ipv4, ipv6] = record.families;
        Some(StoredSession {
            seid: Seid(u64::from_be_bytes(seid)),
            circuit: record.circuit,
            pppoe_id: record.pppoe_id,
            ipv4: record.ipv4.filter(|_| ipv4),
            ipv6: record.ipv6.filter(|_| ipv6),
        })
    }

    /// The entry that a store would have of this session, were it like the one of `value` in everything else: so
    /// measurements get stores of any size that consist of real sessions.
    ///
    /// # Errors
    /// Why `value` is not the value of a session's entry.
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
    /// Every session with what it holds.
    pub fn held(&self) -> impl Iterator<Item = Held<'_>> {
        self.sessions.iter().map(|(_, entry)| self.held_by(entry))
    }

    fn held_by<'a>(&self, entry: &'a Entry) -> Held<'a> {
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        Held {
            seid: entry.seid,
            user_plane: port.user_plane,
            teid: TunnelOwner::Session(entry.group, entry.seid.index()).teid(),
            circuit: &entry.circuit,
            pppoe_id: entry.pppoe_id,
            ipv4: entry.ipv4(),
            ipv6: entry.ipv6(),
            stage: match entry.stage {
                Stage::Admitted(_) | Stage::Connecting => HeldStage::HalfOpen,
                Stage::Online => HeldStage::Online,
                Stage::Closing(_) => HeldStage::Closing,
            },
            stored: entry.stored,
        }
    }
}
