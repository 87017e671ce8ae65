//! What the store holds of the control plane, and how it goes on from there after a restart.

use super::{ControlPlane, KnownUserPlanes, Now};
use crate::bank::Bank;
use crate::counters::Counter;
use crate::entry::{
    Account, Entry, Record, Rules, Stage, Started, Who, usage_from_array, usage_to_array,
};
use crate::store::{Live, Record as StoreRecord};
use crate::topology::{GroupId, InstanceId, MAX_SESSIONS, SegmentId, Seid, UserPlaneId};
use core::time::Duration;
use rand::Rng;
use session::Session;
use std::collections::BTreeMap;

/// The store's key of our PFCP Recovery Time Stamp (u32, big endian): kept as long as the store is.
pub const STORE_RECOVERY_KEY: &[u8] = b"recovery-time-stamp";
const USER_PLANE_PREFIX: &[u8] = b"user-plane/";
pub(super) const SESSION_PREFIX: &[u8] = b"session/";

/// What the store held.
#[derive(Default)]
pub struct Restored {
    pub(crate) recovery_time_stamp: u32,
    /// The store was empty: the recovery time stamp is new.
    fresh: bool,
    pub(crate) user_planes: KnownUserPlanes,
    sessions: Vec<(Seid, Record)>,
}

impl Restored {
    /// Reads what is alive in the store. `ntp_seconds`: the time since 1900, the recovery time stamp of an empty store.
    ///
    /// # Errors
    /// A text for the operator that names the damaged record.
    pub fn read(live: Live, ntp_seconds: u32) -> Result<Self, String> {
        let mut restored = Restored {
            recovery_time_stamp: ntp_seconds,
            fresh: true,
            ..Restored::default()
        };
        for (key, value) in live {
            restored
                .take(&key, &value)
                .map_err(|why| format!("record `{}` of the store: {why}", key.escape_ascii()))?;
        }
        Ok(restored)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let number = || {
            let octets = value
                .try_into()
                .map_err(|_| "not a number of 4 octets".to_owned());
            octets.map(u32::from_be_bytes)
        };
        if key == STORE_RECOVERY_KEY {
            self.recovery_time_stamp = number()?;
            self.fresh = false;
        } else if let Some(name) = key.strip_prefix(USER_PLANE_PREFIX) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.user_planes.insert(name, number()?);
        } else if let Some(seid) = key.strip_prefix(SESSION_PREFIX) {
            let seid = seid
                .try_into()
                .map_err(|_| "not the key of a session".to_owned())?;
            let seid = Seid(u64::from_be_bytes(seid));
            self.sessions.push((seid, Record::from_bytes(value)?));
        } else {
            return Err("unknown; was it written by a later version?".into());
        }
        Ok(())
    }

    /// How many sessions there are to resume.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn first_records(&self) -> Vec<StoreRecord> {
        let stamp = self.recovery_time_stamp.to_be_bytes();
        let record = StoreRecord::put(STORE_RECOVERY_KEY, stamp);
        self.fresh.then_some(record).into_iter().collect()
    }

    /// Milliseconds of wall time: later than whatever an earlier run counted up to, at fewer than 1,000 sessions a second on
    /// average over its life, and in any case later than what is stored.
    pub(super) fn first_generation(&self, now: Now) -> u64 {
        let stored = self.sessions.iter().map(|(seid, _)| seid.generation());
        stored.max().unwrap_or(0).max(u64::from(now.unix) * 1000)
    }
}

pub(super) fn session_key(seid: Seid) -> Vec<u8> {
    [SESSION_PREFIX, &seid.0.to_be_bytes()].concat()
}

impl ControlPlane {
    /// Writes the session into the batch that is being put together, if there is something worth keeping.
    pub(super) fn persist(&mut self, index: u32) {
        let entry = &self.sessions[index as usize];
        let (Some(up_seid), Some(link)) = (entry.rules.up_seid, &entry.link) else {
            return;
        };
        let Some(snapshot) = link.snapshot() else {
            return;
        };
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let seconds = |d: Option<Duration>| d.map(|d| d.as_secs() as u32);
        let record = Record {
            user_plane: self.topology.user_plane(port.user_plane).node_id.clone(),
            group: self.topology.group(port.group).name.clone(),
            group_number: port.group.0,
            instance: self.topology.instance(entry.instance).name.clone(),
            circuit: entry.circuit.clone(),
            pppoe_id: entry.pppoe_id,
            line: entry.line.clone(),
            up_seid,
            families: entry.rules.families,
            username: entry.who.username.to_vec(),
            class: entry.who.class.to_vec(),
            ipv4: entry.ipv4,
            ipv6: entry.ipv6,
            started_unix: entry.account.started.map(|s| s.unix),
            usage: usage_to_array(entry.account.usage),
            interim_seconds: seconds(entry.account.interim),
            timeout_seconds: seconds(entry.account.session_timeout),
            link: snapshot,
        };
        let record = StoreRecord::put(session_key(entry.seid), record.to_bytes());
        self.records.push(record);
        self.entry(index).stored = true;
    }

    /// Remembers which run of a user plane has our sessions.
    pub(super) fn persist_user_plane(&mut self, plane: UserPlaneId) {
        if let Some(recovery) = self.user_planes.recovery(plane) {
            let name = self.topology.user_plane(plane).node_id.as_bytes();
            let key = [USER_PLANE_PREFIX, name].concat();
            self.records
                .push(StoreRecord::put(key, recovery.to_be_bytes()));
        }
    }

    /// Goes on with the sessions that the store held.
    pub(super) fn resume(&mut self, restored: Restored, now: Now) {
        let mut entries = Vec::new();
        let mut ids: BTreeMap<SegmentId, Vec<u16>> = BTreeMap::new();
        for (seid, record) in restored.sessions {
            match self.resume_one(now, seid, record) {
                Ok(entry) => {
                    ids.entry(entry.segment).or_default().push(entry.pppoe_id);
                    self.by_place
                        .insert(super::admit::place(entry.segment, &entry.circuit), seid);
                    if entry.is_half_open() {
                        self.half_open += 1;
                        self.admitted.push_back(seid);
                    }
                    entries.push((seid.index() as usize, Box::new(entry)));
                }
                Err(why) => {
                    self.counters.count(Counter::NotResumed);
                    tracing::error!(session = %seid, why, "stored session cannot be resumed: it is dropped");
                    self.records.push(StoreRecord::delete(session_key(seid)));
                }
            }
        }
        for (segment, taken) in ids {
            self.banks[usize::from(segment.0)] = Bank::with_taken(taken);
        }
        let indexes: Vec<u32> = entries.iter().map(|(index, _)| *index as u32).collect();
        self.sessions = entries.into_iter().collect();
        for index in indexes {
            self.carry_out(now, index);
        }
    }

    fn resume_one(&mut self, now: Now, seid: Seid, record: Record) -> Result<Entry, String> {
        let (segment, group, instance) = self.find_home(&record)?;
        if seid.index() >= MAX_SESSIONS || seid.generation() == 0 {
            return Err("its identifier is none that we give".into());
        }
        self.reserve_addresses(now, group, instance, &record)?;
        let seconds = |s: u32| Duration::from_secs(s.into());
        let started = record.started_unix.map(|unix| Started {
            at: now
                .at
                .saturating_sub(seconds(now.unix.saturating_sub(unix))),
            unix,
        });
        let interim = record.interim_seconds.map(seconds);
        let session_timeout = record.timeout_seconds.map(seconds);
        let seed = self.random.random();
        let link = Session::restore(self.session_config.clone(), record.link, seed, now.at);
        let began = |interval: Option<Duration>| started.and(interval);
        Ok(Entry {
            seid,
            segment,
            instance,
            circuit: record.circuit,
            pppoe_id: record.pppoe_id,
            line: record.line,
            stage: match started {
                Some(_) => Stage::Online,
                None => Stage::Connecting,
            },
            link: Some(Box::new(link)),
            rules: Rules {
                up_seid: Some(record.up_seid),
                families: record.families,
                ..Rules::default()
            },
            who: Who {
                username: record.username.into_boxed_slice(),
                class: record.class.into_boxed_slice(),
                attempt: 0,
            },
            ipv4: record.ipv4,
            ipv6: record.ipv6,
            account: Account {
                started,
                usage: usage_from_array(record.usage),
                interim,
                next_interim: began(interim).map(|interval| now.at + interval),
                ends_at: began(session_timeout).map(|granted| {
                    let spent = now.unix.saturating_sub(started.map_or(0, |s| s.unix));
                    now.at + granted.saturating_sub(seconds(spent))
                }),
                session_timeout,
            },
            stored: true,
        })
    }

    /// Where the configuration of today has what the record names.
    fn find_home(&self, record: &Record) -> Result<(SegmentId, GroupId, InstanceId), String> {
        let plane = self
            .topology
            .user_planes()
            .find(|(_, u)| u.node_id == record.user_plane);
        let (plane, _) = plane.ok_or(format!(
            "user plane `{}` is not configured",
            record.user_plane
        ))?;
        let name = &record.circuit.logical_port;
        let port = self.topology.find_port(plane, name);
        let port = port.ok_or(format!("port `{}` is not configured", name.escape_ascii()))?;
        let segment = self.topology.find_segment(port, &record.circuit.tags);
        let segment = segment.ok_or("its S-VLAN is in no access segment")?;
        let group = self.topology.port(port).group;
        if group.0 != record.group_number || self.topology.group(group).name != record.group {
            return Err(format!(
                "its subscriber group `{}` was moved or renamed",
                record.group
            ));
        }
        let instance = self
            .topology
            .instances()
            .find(|(_, i)| i.name == record.instance);
        let (instance, _) = instance.ok_or(format!(
            "network instance `{}` is not configured",
            record.instance
        ))?;
        Ok((segment, group, instance))
    }

    fn reserve_addresses(
        &mut self,
        now: Now,
        group: GroupId,
        instance: InstanceId,
        record: &Record,
    ) -> Result<(), String> {
        let mut nets = Vec::new();
        if let Some(address) = record.ipv4 {
            let given = self.addresses.give_ipv4(instance, group, Some(address));
            nets.extend(
                given
                    .map_err(|error| format!("{address}: {error}"))?
                    .new_net,
            );
        }
        if let Some(prefix) = record.ipv6 {
            match self.addresses.give_ipv6(instance, group, Some(prefix)) {
                Ok(given) => nets.extend(given.new_net),
                Err(error) => {
                    if let Some(address) = record.ipv4 {
                        self.addresses.take_ipv4(instance, address);
                    }
                    return Err(format!("{prefix}: {error}"));
                }
            }
        }
        nets.into_iter()
            .for_each(|net| self.user_planes.lend(now.at, group, net, &self.topology));
        Ok(())
    }
}
