//! Keys and records of the control plane in the store.

use super::{ControlPlane, Now};
use crate::entry::{Ending, Sequence};
use crate::evaluate::AaaAnswer;
use crate::records::{
    Eighth, Fifth, Fourth, Ninth, Record, Second, Seventh, Sixth, StoredVolume, Third,
    stored_volume, to_bytes,
};
use crate::store::Record as StoreRecord;
use crate::topology::{Seid, UserPlaneId};
use core::net::IpAddr;
use core::time::Duration;
use policy::Access;

/// Key of the control plane's PFCP Recovery Time Stamp (u32, big endian). It stays the same as long as the store exists.
pub const STORE_RECOVERY_KEY: &[u8] = b"recovery-time-stamp";
/// Key of the secret that authenticates DHCPv6's Reconfigure messages (32 octets).
pub(super) const RECONFIGURE_KEY: &[u8] = b"reconfigure-key";
/// Key of [`Teids`](crate::teids::Teids): 32 octets, then the last generation before it (u64, big endian).
pub(super) const TEID_KEY: &[u8] = b"teid-key";
pub(super) const USER_PLANE_PREFIX: &[u8] = b"user-plane/";
pub(super) const SESSION_PREFIX: &[u8] = b"session/";
/// Prefix of the keys of ended sessions that their user plane still has.
pub(super) const ENDING_PREFIX: &[u8] = b"ending/";
/// Prefix of the keys of numbers, followed by a name of [`crate::topology::Numbers`]; the value is the number (u16, big endian).
pub(super) const NUMBER_PREFIX: &[u8] = b"number/";

/// Stored state of a user plane.
pub(super) struct KnownUserPlane {
    /// Recovery time stamp of its run that had our sessions.
    pub recovery: u32,
    /// Its address; version 2 does not have it.
    pub address: Option<IpAddr>,
}

impl KnownUserPlane {
    pub fn read(value: &[u8]) -> Result<Self, String> {
        let (recovery, address) = value.split_at_checked(4).ok_or("too short")?;
        let address = match address.len() {
            0 => None,
            4 => Some(IpAddr::from(number::<4>(address)?)),
            _ => Some(IpAddr::from(number::<16>(address)?)),
        };
        Ok(KnownUserPlane {
            recovery: u32::from_be_bytes(number(recovery)?),
            address,
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.recovery.to_be_bytes().to_vec();
        match self.address {
            Some(IpAddr::V4(address)) => bytes.extend(address.octets()),
            Some(IpAddr::V6(address)) => bytes.extend(address.octets()),
            None => {}
        }
        bytes
    }
}

pub(super) fn number<const N: usize>(octets: &[u8]) -> Result<[u8; N], String> {
    let octets = octets.try_into();
    octets.map_err(|_| format!("not a number of {N} octets"))
}

pub(super) fn user_plane_key(name: &str) -> Vec<u8> {
    [USER_PLANE_PREFIX, name.as_bytes()].concat()
}

pub(super) fn session_key(seid: Seid) -> Vec<u8> {
    [SESSION_PREFIX, &seid.0.to_be_bytes()].concat()
}

pub(super) fn ending_key(seid: Seid) -> Vec<u8> {
    [ENDING_PREFIX, &seid.0.to_be_bytes()].concat()
}

impl ControlPlane {
    /// Adds the session's record to the current batch, if it has something to keep. A session that is being restored has no SEID on
    /// its user plane, but its reported usage is kept. The history gets the same state of an online session as the store, and accounting
    /// a change of its bindings.
    pub(super) fn persist(&mut self, now: Now, index: u32) -> bool {
        let entry = &self.sessions[index];
        let up_seid = entry.rules.up_seid.or(entry.stored.then_some(0));
        let snapshot = entry.link.as_ref().and_then(|link| link.snapshot());
        let (Some(up_seid), Some(snapshot)) = (up_seid, snapshot) else {
            return false;
        };
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let seconds = |d: Option<Duration>| d.map(|d| d.as_secs() as u32);
        let (answer, control) = (&entry.answer, &entry.policy.control);
        let Access::Pppoe(pppoe_id) = entry.access;
        let record = Record {
            user_plane: self.topology.user_plane(port.user_plane).node_id.clone(),
            group: self.topology.group(entry.group).name.clone(),
            group_number: entry.group.0,
            instance: self.topology.instance(entry.instance).name.clone(),
            circuit: entry.circuit.clone(),
            pppoe_id,
            line: entry.tags.line.clone(),
            up_seid,
            families: entry.rules.families,
            username: entry.who.username.to_vec(),
            class: entry.who.class.to_vec(),
            ipv4: entry.ipv4(),
            ipv6: entry.ipv6(),
            started_unix: entry.account.started.map(|s| s.unix),
            usage: stored_volume(entry.account.usage.total),
            interim_seconds: seconds(control.interim_interval),
            timeout_seconds: seconds(control.session_timeout),
            link: snapshot,
            second: Second {
                boot: self.boot,
                started_at: entry.account.started.map_or(0, |s| s.at.as_millis() as u64),
                before: entry.account.started.map_or(0, |s| s.before),
                numbers: Sequence::default(),
            },
            third: Some(Third {
                gateway_mac: entry.gateway_mac,
                servers: entry.servers.as_deref().map(str::to_owned),
                profile: answer.profile.as_deref().map(str::to_owned),
                of_aaa: [
                    answer.overrides.interim_interval.is_some(),
                    answer.overrides.session_timeout.is_some(),
                ],
            }),
            fourth: Some(Fourth {
                urr_id: entry.rules.urr_id,
                reports: entry.account.reports.clone(),
                lasted: entry.account.lasted(now.at).as_secs() as u32,
            }),
            fifth: Some(Fifth {
                answer: AaaAnswer::clone(answer),
                policy: entry.policy.clone(),
            }),
            sixth: Some(Sixth {
                subscriber: self.known_by(entry),
            }),
            seventh: Some(Seventh {
                accepted_by: entry.accepted_by,
            }),
            eighth: Some(Eighth {
                service: entry.tags.service.clone(),
                names: entry.names.clone(),
                first: self.first_session(entry),
                access_loop: entry.tags.access_loop.clone(),
                state: entry.state.clone(),
                without_effect: entry.without_effect.clone(),
            }),
            ninth: Some(Ninth {
                ipv6: stored_volume(entry.account.usage.ipv6),
                unknown: match entry.account.usage.lacks_families {
                    true => stored_volume(entry.account.usage.total),
                    false => StoredVolume::default(),
                },
            }),
        };
        let record = StoreRecord::put(session_key(entry.seid), record.to_bytes());
        self.journal.add(record);
        self.entry(index).stored = true;
        if self.entry(index).noted.online {
            self.note_bindings(now, index);
        }
        self.record_bindings(now, index);
        true
    }

    /// Stores the end of a stored session.
    pub(super) fn persist_ending(&mut self, index: u32, ending: Ending) {
        let entry = &self.sessions[index];
        if entry.stored {
            let record = StoreRecord::put(ending_key(entry.seid), to_bytes(&ending));
            self.journal.add(record);
        }
    }

    /// Stores changed numbers.
    pub(super) fn persist_numbers(&mut self) {
        let mut numbers = self.topology.numbers();
        numbers.extend(self.aaa.numbers());
        let key = |name: &String| [NUMBER_PREFIX, name.as_bytes()].concat();
        self.journal.add_changes(&self.numbers, &numbers, key);
        self.numbers = numbers;
    }

    /// Stores the recovery time stamp of the user plane's run that has our sessions.
    pub(super) fn persist_user_plane(&mut self, plane: UserPlaneId) {
        if let Some(recovery) = self.user_planes.recovery(plane) {
            let known = KnownUserPlane {
                recovery,
                address: Some(self.topology.user_plane(plane).address),
            };
            let key = user_plane_key(&self.topology.user_plane(plane).node_id);
            self.journal.add(StoreRecord::put(key, known.to_bytes()));
        }
    }
}
