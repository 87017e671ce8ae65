//! Restores the control plane's state from the store after a restart.

use super::persist::{
    ENDING_PREFIX, KnownUserPlane, NUMBER_PREFIX, RECONFIGURE_KEY, SESSION_PREFIX,
    STORE_RECOVERY_KEY, TEID_KEY, USER_PLANE_PREFIX, number,
};
use super::{ControlPlane, Now};
use crate::accounting::{ACCOUNTING_PREFIX, RecordKind};
use crate::alarms::Alarms;
use crate::counters::Counter;
use crate::entry::{
    Account, Ending, Entry, LastSent, PadrTags, Reports, Rules, Stage, Started, Who,
};
use crate::evaluate::AaaAnswer;
use crate::fallback::{AcceptedBy, LAST_ANSWER_PREFIX, LastAnswer};
use crate::generations::GENERATION_KEY;
use crate::history::{BLOCK_PREFIX, Outbox, events};
use crate::next_pools::{NEXT_POOLS_PREFIX, NextPools};
use crate::radius_sockets::{RADIUS_PORT_PREFIX, RadiusPorts};
use crate::rare::Rare;
use crate::records::{BEFORE_FOURTH, Fourth, Owed, Record, Second, Seventh, Third, from_bytes};
use crate::session_ids::SessionIdAllocator;
use crate::sessions::SessionTable;
use crate::store::{Live, Record as StoreRecord};
use crate::teids::Teids;
use crate::topology::{GroupId, InstanceId, Numbers, SegmentId, Seid, Topology};
use crate::trends::{self, PoolKey, TREND_PREFIX, Trend};
use core::net::Ipv4Addr;
use core::time::Duration;
use policy::Access;
use policy::{Bindings, Overrides};
use rand::Rng;
use session::{Cause, Link, ReconfigureKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// State that was read from the store.
#[derive(Default)]
pub struct Restored {
    pub(crate) recovery_time_stamp: u32,
    user_planes: BTreeMap<String, KnownUserPlane>,
    numbers: Numbers,
    sessions: Vec<(Seid, Record)>,
    endings: BTreeMap<Seid, Ending>,
    owed: Vec<(Seid, RecordKind, Owed)>,
    last_generation: u64,
    radius_ports: RadiusPorts,
    reconfigure_key: Option<[u8; 32]>,
    teids: Option<Teids>,
    last_answers: Vec<(Arc<[u8]>, LastAnswer)>,
    next_pools: Vec<(Arc<[u8]>, NextPools)>,
    trends: Vec<(PoolKey, Trend)>,
    /// Blocks of events that the history may not have.
    blocks: Vec<(u64, Vec<u8>)>,
    /// Last block that the history has.
    last_block: u64,
    /// Raised alarms, as the history has them.
    alarms: Alarms,
    /// Identifies the machine's current boot.
    pub(super) boot: u32,
    /// Records that the store lacks and gets first.
    news: Vec<StoreRecord>,
}

impl Restored {
    /// Reads the live records of the store. `ntp_seconds` is the time since 1900; an empty store gets it as recovery time stamp. `boot`
    /// identifies the machine's current boot (`/proc/sys/kernel/random/boot_id`): within one boot, [`Now::at`] continues.
    ///
    /// # Errors
    /// A text for the operator that names the damaged record.
    pub fn read(live: Live, ntp_seconds: u32, boot: &str) -> Result<Self, String> {
        let mut restored = Restored {
            boot: crc32c::crc32c(boot.as_bytes()).max(1),
            ..Restored::default()
        };
        for (key, value) in live {
            restored
                .take(&key, &value)
                .map_err(|why| format!("record `{}` of the store: {why}", key.escape_ascii()))?;
        }
        if restored.recovery_time_stamp == 0 {
            restored.recovery_time_stamp = ntp_seconds;
            let stamp = StoreRecord::put(STORE_RECOVERY_KEY, ntp_seconds.to_be_bytes());
            restored.news.push(stamp);
        }
        Ok(restored)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if key == STORE_RECOVERY_KEY {
            self.recovery_time_stamp = u32::from_be_bytes(number(value)?);
        } else if key == GENERATION_KEY {
            self.last_generation = u64::from_be_bytes(number(value)?);
        } else if let Some(name) = key.strip_prefix(USER_PLANE_PREFIX) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.user_planes.insert(name, KnownUserPlane::read(value)?);
        } else if let Some(name) = key.strip_prefix(NUMBER_PREFIX) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.numbers
                .insert(name, u16::from_be_bytes(number(value)?));
        } else if let Some(socket) = key.strip_prefix(RADIUS_PORT_PREFIX) {
            let [family, high, low] = number(socket)?;
            let socket = (family == b'6', u16::from_be_bytes([high, low]));
            let port = u16::from_be_bytes(number(value)?);
            self.radius_ports.insert(socket, port);
        } else if key == RECONFIGURE_KEY {
            self.reconfigure_key = Some(number(value)?);
        } else if key == TEID_KEY {
            let (key, rest) = value.split_at_checked(32).ok_or("too short")?;
            let (plain_until, plain_ports) = rest.split_at_checked(8).ok_or("too short")?;
            self.teids = Some(Teids {
                key: number(key)?,
                plain_until: u64::from_be_bytes(number(plain_until)?),
                plain_ports: u16::from_be_bytes(number(plain_ports)?),
            });
        } else if let Some(seid) = key.strip_prefix(SESSION_PREFIX) {
            let seid = seid_of(seid)?;
            if seid.generation() == 0 {
                return Err("its identifier is not a session identifier".into());
            }
            self.sessions.push((seid, Record::from_bytes(value)?));
        } else if let Some(seid) = key.strip_prefix(ENDING_PREFIX) {
            self.endings.insert(seid_of(seid)?, from_bytes(value)?);
        } else if let Some(key) = key.strip_prefix(ACCOUNTING_PREFIX) {
            let (which, seid) = key.split_last().ok_or("without a session")?;
            let which = RecordKind::stored(*which).ok_or("of an unknown kind")?;
            self.owed
                .push((seid_of(seid)?, which, Owed::from_bytes(value)?));
        } else if let Some(key) = key.strip_prefix(LAST_ANSWER_PREFIX) {
            let answer = LastAnswer::from_bytes(value)?;
            self.last_answers.push((key.into(), answer));
        } else if let Some(key) = key.strip_prefix(NEXT_POOLS_PREFIX) {
            let pools = NextPools::from_bytes(value)?;
            self.next_pools.push((key.into(), pools));
        } else if let Some(pool) = key.strip_prefix(TREND_PREFIX) {
            self.trends.push(trends::read(pool, value)?);
        } else if let Some(block) = key.strip_prefix(BLOCK_PREFIX) {
            let block = u64::from_be_bytes(number(block)?);
            self.blocks.push((block, value.to_vec()));
        } else {
            return Err("unknown; was it written by a later version?".into());
        }
        Ok(())
    }

    /// Notes that the history has every block up to this one, so that the store can delete its copies.
    #[must_use]
    pub fn behind_history(mut self, last_block: u64) -> Self {
        self.last_block = last_block;
        self
    }

    /// Sets the alarms that were raised and not cleared.
    #[must_use]
    pub(crate) fn with_alarms(mut self, alarms: Alarms) -> Self {
        self.alarms = alarms;
        self
    }

    /// Raised alarms, with what became of them in blocks that the history does not have.
    pub(super) fn take_alarms(&mut self) -> Alarms {
        let mut alarms = std::mem::take(&mut self.alarms);
        let new = self.blocks.iter().filter(|(n, _)| *n > self.last_block);
        let new = new.flat_map(|(_, block)| events(block));
        new.for_each(|event| alarms.replay(&event));
        alarms
    }

    pub(super) fn take_last_answers(&mut self) -> Vec<(Arc<[u8]>, LastAnswer)> {
        std::mem::take(&mut self.last_answers)
    }

    pub(super) fn take_next_pools(&mut self) -> Vec<(Arc<[u8]>, NextPools)> {
        std::mem::take(&mut self.next_pools)
    }

    pub(super) fn take_trends(&mut self) -> Vec<(PoolKey, Trend)> {
        std::mem::take(&mut self.trends)
    }

    /// Outbox of events, and the blocks to send to the history again.
    pub(super) fn take_outbox(&mut self) -> (Outbox, Vec<(u64, Vec<u8>)>) {
        Outbox::resume(self.last_block, std::mem::take(&mut self.blocks))
    }

    /// Number of sessions to resume.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Ports that the RADIUS sockets had. A server recognises a retransmission by its port, too.
    pub fn radius_ports(&self) -> &RadiusPorts {
        &self.radius_ports
    }

    /// Allocated numbers. Stores of version 2 have them only in their sessions.
    pub(super) fn take_numbers(&mut self) -> Numbers {
        let mut numbers = self.numbers.clone();
        for (_, record) in &self.sessions {
            let key = format!("group {} {}", record.user_plane, record.group);
            numbers.entry(key).or_insert(record.group_number);
        }
        numbers
    }

    /// Numbers in the store.
    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Recovery time stamp of the user plane's run that had our sessions.
    pub(super) fn recovery_of(&self, user_plane: &str) -> Option<u32> {
        self.user_planes.get(user_plane).map(|known| known.recovery)
    }

    /// Adds the user planes, ports, groups and segments of stored sessions to the topology. Unconfigured ones are retired, and their
    /// sessions end.
    pub(super) fn find_places(&self, topology: &mut Topology) {
        for (name, known) in &self.user_planes {
            let nowhere = Ipv4Addr::UNSPECIFIED.into();
            topology.user_plane_of(name, known.address.unwrap_or(nowhere));
        }
        for name in self.numbers.keys() {
            let Some((plane, port)) = name.strip_prefix("port ").and_then(|n| n.split_once(' '))
            else {
                continue;
            };
            let plane = topology.user_plane_of(plane, Ipv4Addr::UNSPECIFIED.into());
            if topology.find_port(plane, port.as_bytes()).is_none() {
                let group = format!("{}/{port}", topology.user_plane(plane).node_id);
                let group = topology.group_of(plane, &group);
                topology.port_of(plane, port, group);
            }
        }
        for (_, record) in &self.sessions {
            let plane = topology.user_plane_of(&record.user_plane, Ipv4Addr::UNSPECIFIED.into());
            let group = topology.group_of(plane, &record.group);
            topology.instance_of(&record.instance);
            let name = String::from_utf8_lossy(&record.circuit.logical_port);
            let port = topology.port_of(plane, &name, group);
            if topology.find_segment(port, &record.circuit.tags).is_none() {
                topology.segment_of(port, GONE_SEGMENT);
            }
        }
        topology.find_carriers();
    }

    /// Key of the DHCPv6 server's Reconfigure messages. An empty store, or one of an earlier version, gets this new one.
    pub(super) fn reconfigure_key(&mut self, new: [u8; 32]) -> ReconfigureKey {
        let key = *self.reconfigure_key.get_or_insert_with(|| {
            self.news.push(StoreRecord::put(RECONFIGURE_KEY, new));
            new
        });
        ReconfigureKey(key)
    }

    /// Source of TEIDs. An empty store, or one of an earlier version, gets this new key; the sessions and ports in it keep their TEIDs.
    pub(super) fn teids(&mut self, new: [u8; 32], now: Now) -> Teids {
        let plain_until = self.highest_generation(now);
        let ports = self.numbers.iter();
        let ports = ports.filter(|(name, _)| name.starts_with("port "));
        // Stores of version 2 do not have the ports.
        let unknown = if self.sessions.is_empty() {
            0
        } else {
            u16::MAX
        };
        let plain_ports = ports.map(|(_, number)| number + 1).max().unwrap_or(unknown);
        let teids = self.teids.get_or_insert_with(|| {
            let (until, ports) = (plain_until.to_be_bytes(), plain_ports.to_be_bytes());
            let value = [&new[..], &until, &ports].concat();
            self.news.push(StoreRecord::put(TEID_KEY, value));
            Teids {
                key: new,
                plain_until,
                plain_ports,
            }
        });
        teids.clone()
    }

    pub(super) fn first_records(&mut self) -> Vec<StoreRecord> {
        std::mem::take(&mut self.news)
    }

    /// Generation that no earlier run has exceeded. Stores of version 1 do not have it. Then it is the wall time in milliseconds,
    /// which is higher below an average of 1,000 sessions per second, and at least higher than every stored one.
    pub(super) fn highest_generation(&self, now: Now) -> u64 {
        let stored = self.sessions.iter().map(|(seid, _)| seid.generation());
        let least = stored.max().unwrap_or(0).max(self.last_generation);
        least.max(u64::from(now.unix) * 1000)
    }
}

/// Name of the segment for sessions whose S-VLAN is no longer in any segment. Names of configured segments have no blanks.
const GONE_SEGMENT: &str = "no longer configured";

fn seid_of(key: &[u8]) -> Result<Seid, String> {
    Ok(Seid(u64::from_be_bytes(number(key)?)))
}

/// Start of a session. Within one boot of the machine the monotonic clock gives its duration, even if the wall clock was set. After a
/// reboot only the wall clock gives it.
fn restore_start(now: Now, record: &Record, boot: u32) -> Option<Started> {
    let unix = record.started_unix?;
    let Second {
        started_at, before, ..
    } = record.second;
    let lasted = record.fourth.as_ref().map_or(0, |fourth| fourth.lasted);
    Some(match record.second.boot == boot {
        true => Started {
            at: Duration::from_millis(started_at),
            before,
            unix,
        },
        false => Started {
            at: now.at,
            // less than was told of it already: the clock was set back since
            before: now.unix.saturating_sub(unix).max(lasted),
            unix,
        },
    })
}

impl ControlPlane {
    /// Resumes the stored sessions.
    pub(super) fn resume(&mut self, restored: Restored, now: Now) {
        let mut entries = Vec::new();
        let mut without_address = Vec::new();
        let mut ids: BTreeMap<SegmentId, Vec<u16>> = BTreeMap::new();
        let mut members = Vec::new();
        for (seid, record) in restored.sessions {
            let sixth = record.sixth;
            let first = record.eighth.as_ref().and_then(|eighth| eighth.first);
            let started = restore_start(now, &record, restored.boot);
            let ending = restored.endings.get(&seid).copied();
            let mut entry = self.resume_one(now, seid, record, started, ending);
            if let Err(why) = self.reserve_bindings(now, &mut entry)
                && !entry.is_closing()
            {
                without_address.push((seid, why));
            }
            let member = self.stored_subscriber(&entry, sixth, first);
            entry.rules.last_sent = LastSent {
                subscriber: member.as_ref().map(|member| member.id.0),
                forwarding: entry.forwarding(&entry.policy),
            };
            members.extend(member);
            let Access::Pppoe(id) = entry.access;
            ids.entry(entry.segment).or_default().push(id);
            entries.push(entry);
        }
        for (segment, allocated) in ids {
            self.session_ids
                .insert(segment, SessionIdAllocator::with_allocated(allocated));
        }
        let indexes: Vec<u32> = entries.iter().map(|entry| entry.seid.index()).collect();
        // sessions come in the order in which they began
        self.sessions = SessionTable::resume(entries);
        self.resume_subscribers(members);
        self.update_aaa(now, &restored.owed);
        self.resume_records(now, restored.owed);
        self.announce_groups(now);
        for index in indexes {
            if self.entry(index).has_policy() {
                self.renew_policy(now, index);
            }
            self.set_grant(now, index);
            self.arm_times(now, index);
            self.resume_account(now, index);
            self.carry_out(now, index);
        }
        self.end_without_address(now, without_address);
        self.persist_numbers();
        self.end_without_place(now);
    }

    /// Sets the start of sessions of version 1, which stored it only after the session could be online.
    fn resume_account(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        if matches!(entry.stage, Stage::Online) && entry.account.started.is_none() {
            self.begin_account(now, index);
            self.persist(now, index);
        }
    }

    /// Ends the sessions whose addresses cannot be allocated again, each with the reason. The user plane still has their rules and
    /// counters, so their last counters go into an Accounting-Stop like those of any other session.
    fn end_without_address(&mut self, now: Now, sessions: Vec<(Seid, String)>) {
        for (seid, why) in sessions {
            self.counters.count(Counter::NotResumed);
            tracing::error!(session = %seid, why, "cannot resume a stored session: it ends");
            if let Some(index) = self.sessions.find(seid) {
                self.end(now, index, Cause::NasError);
            }
        }
    }

    fn resume_one(
        &mut self,
        now: Now,
        seid: Seid,
        record: Record,
        started: Option<Started>,
        ending: Option<Ending>,
    ) -> Entry {
        let (segment, group, instance) = self.find_scope(&record);
        let port = self.topology.segment(segment).port;
        let user_plane = self.topology.port(port).user_plane;
        let access = Access::Pppoe(record.pppoe_id);
        let seconds = |s: Option<u32>| s.map(|s| Duration::from_secs(s.into()));
        let usage = record.usage();
        let third = record.third.unwrap_or_else(|| {
            // version 2 knew one group of servers, and no times but those of AAA
            let profile = self.view().access_profile(segment);
            Third {
                gateway_mac: self.topology.group(group).virtual_mac,
                servers: profile.server_group.clone(),
                profile: None,
                of_aaa: [
                    record.interim_seconds.is_some(),
                    record.timeout_seconds.is_some(),
                ],
            }
        });
        let fourth = record.fourth.unwrap_or_else(|| Fourth {
            urr_id: BEFORE_FOURTH,
            reports: Reports::of(BEFORE_FOURTH, record.second.numbers),
            lasted: 0,
        });
        let (answer, policy) = match record.fifth {
            Some(fifth) => (fifth.answer, Some(fifth.policy)),
            None => {
                let [interim_of_aaa, timeout_of_aaa] = third.of_aaa;
                let overrides = Overrides {
                    interim_interval: interim_of_aaa.then(|| seconds(record.interim_seconds)),
                    session_timeout: timeout_of_aaa.then(|| seconds(record.timeout_seconds)),
                    ..Overrides::default()
                };
                let profile = third.profile.map(Into::into);
                (AaaAnswer { profile, overrides }, None)
            }
        };
        let has_policy = policy.is_some();
        let accepted_by = match (record.seventh, &third.servers) {
            (Some(Seventh { accepted_by }), _) => accepted_by,
            (None, Some(_)) => AcceptedBy::Servers,
            (None, None) => AcceptedBy::Users,
        };
        // earlier versions stored what a user's entry in the configuration said
        let answer = match record.seventh {
            None if accepted_by.is_user() => AaaAnswer::default(),
            _ => answer,
        };
        let eighth = record.eighth.unwrap_or_default();
        let account = Account {
            started,
            usage,
            reports: fourth.reports,
            ..Account::default()
        };
        let mut entry = Entry {
            teid: self.teids.of_session(seid, group),
            gateway_mac: third.gateway_mac,
            tags: Rare::new(PadrTags {
                line: record.line,
                access_loop: eighth.access_loop,
                service: eighth.service,
            }),
            stage: match ending {
                Some(ending) => Stage::Closing(Box::new(ending)),
                None if started.is_some() || record.families != [false; 2] => Stage::Online,
                None => Stage::Connecting,
            },
            rules: Rules {
                up_seid: Some(record.up_seid).filter(|seid| *seid != 0),
                unsettled: record.up_seid == 0,
                urr_id: fourth.urr_id,
                families: record.families,
                ..Rules::default()
            },
            who: Who {
                username: record.username.into_boxed_slice(),
                class: record.class.into_boxed_slice(),
                attempt: 0,
            },
            names: eighth.names,
            state: eighth.state,
            without_effect: eighth.without_effect,
            servers: third.servers.map(|name| self.server_groups.get(name)),
            accepted_by,
            answer: Arc::new(answer),
            policy: policy.unwrap_or_default(),
            account,
            stored: true,
            ..Entry::new(
                seid,
                user_plane,
                segment,
                group,
                instance,
                record.circuit,
                access,
            )
        };
        if !has_policy {
            // earlier versions stored its addresses alone
            let bindings = Bindings::of(record.ipv4, record.ipv6);
            entry.policy.forwarding.bindings = bindings;
        }
        if ending.is_none() {
            entry.link = Some(Box::new(self.restore_link(now, &entry, record.link)));
        }
        if !has_policy {
            entry.policy = self.view().evaluate(&entry).0;
        }
        self.share_stored(&mut entry);
        entry.noted = entry.noted_before();
        entry.recorded = entry.bindings_to_record();
        entry
    }

    /// Lets what a stored session has be that of other sessions with the same. The bound of rules held when they were stored.
    fn share_stored(&mut self, entry: &mut Entry) {
        let mut answer = AaaAnswer::clone(&entry.answer);
        if let Some(rules) = &mut answer.overrides.filter_rules {
            let _ = self.filter_sets.share(rules);
        }
        entry.answer = self.answers.get(answer);
        if entry.policy.forwarding.policies.filter_rules.is_some() {
            let rules = &mut entry.policy.forwarding.policies.filter_rules;
            let _ = self.filter_sets.share(rules);
        }
        self.share_policy(&mut entry.policy);
    }

    /// Link of a stored session. Further prefixes of the link and the addresses of its DHCPv6 server are among the session's bindings.
    fn restore_link(&mut self, now: Now, entry: &Entry, mut snapshot: session::Snapshot) -> Link {
        let bindings = &entry.policy.forwarding.bindings;
        if let (Some(ipv6), Some(_)) = (&mut snapshot.grant.ipv6, bindings.ipv6()) {
            ipv6.bindings = bindings.clone();
        }
        let seed = self.random.random();
        let config = self.access(entry.segment).session.clone();
        Link::restore(entry.access, config, snapshot, seed, now.at)
    }

    /// Segment, group and network instance of a stored session. Missing ones are added to the topology, retired.
    fn find_scope(&mut self, record: &Record) -> (SegmentId, GroupId, InstanceId) {
        let topology = &mut self.topology;
        let plane = topology.user_plane_of(&record.user_plane, Ipv4Addr::UNSPECIFIED.into());
        let group = topology.group_of(plane, &record.group);
        let name = String::from_utf8_lossy(&record.circuit.logical_port);
        let port = topology.port_of(plane, &name, group);
        let segment = topology.find_segment(port, &record.circuit.tags);
        let segment = segment.unwrap_or_else(|| topology.segment_of(port, GONE_SEGMENT));
        (segment, group, topology.instance_of(&record.instance))
    }
}
