//! Sessions and accounting records in the store, in every version that a store may have.

use crate::entry::{LineIds, Reports, Sequence};
use crate::evaluate::AaaAnswer;
use crate::fallback::AcceptedBy;
use crate::names::WrittenNames;
use crate::topology::{MAX_SESSIONS, Seid, SubscriberId};
use crate::without_effect::WithoutEffect;
use core::net::Ipv4Addr;
use ipnet::Ipv6Net;
use pfcp::bng::{Usage, Volume};
use policy::{Overrides, Policy};
use serde::{Deserialize, Serialize};
use session::Circuit;
use wire::access_loop::AccessLoop;
use wire::eth::MacAddr;

/// Session in the store. The first octet of the stored value is [`RECORD_VERSION`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub user_plane: String,
    pub group: String,
    /// Number of the group at that time. It determines the TEIDs.
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
    /// Start of the session in seconds since 1970.
    pub started_unix: Option<u32>,
    /// Packets and octets up, packets and octets down, of both address families.
    pub usage: StoredVolume,
    pub interim_seconds: Option<u32>,
    pub timeout_seconds: Option<u32>,
    pub link: session::Snapshot,
    /// Fields that version 2 added.
    #[serde(skip)]
    pub second: Second,
    /// Fields that version 3 added.
    #[serde(skip)]
    pub third: Option<Third>,
    /// Fields that version 4 added.
    #[serde(skip)]
    pub fourth: Option<Fourth>,
    /// Fields that version 5 added.
    #[serde(skip)]
    pub fifth: Option<Fifth>,
    /// Fields that version 6 added.
    #[serde(skip)]
    pub sixth: Option<Sixth>,
    /// Fields that version 7 added.
    #[serde(skip)]
    pub seventh: Option<Seventh>,
    /// Fields that version 8 added.
    #[serde(skip)]
    pub eighth: Option<Eighth>,
    /// Fields that version 9 added.
    #[serde(skip)]
    pub ninth: Option<Ninth>,
}

/// Packets and octets up, packets and octets down.
pub(crate) type StoredVolume = [u64; 4];

/// Fields that version 2 added to [`Record`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Boot of the machine to whose clock `started_at` belongs; 0 for none.
    pub boot: u32,
    /// [`Started::at`] in milliseconds.
    pub started_at: u64,
    /// [`Started::before`].
    pub before: u32,
    /// Reports by URR [`BEFORE_FOURTH`]; version 4 has all of them.
    pub numbers: Sequence,
}

/// Fields that version 3 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Third {
    pub gateway_mac: MacAddr,
    pub servers: Option<String>,
    pub profile: Option<String>,
    /// [`Account::of_aaa`].
    pub of_aaa: [bool; 2],
}

/// Only URR before version 4.
pub(crate) const BEFORE_FOURTH: u32 = 1;

/// Fields that version 4 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fourth {
    /// [`Rules::urr_id`].
    pub urr_id: u32,
    pub reports: Reports,
    /// Seconds that the session had lasted when this was stored.
    pub lasted: u32,
}

/// Fields that version 5 added to [`Record`]. From version 5 on, they replace the earlier fields with the same meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fifth {
    pub answer: AaaAnswer,
    /// Policy in force.
    pub policy: Policy,
}

/// Fields that version 6 added to [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sixth {
    /// Subscriber's handle, and whether it is known by its user name instead of its access line.
    pub subscriber: Option<(SubscriberId, bool)>,
}

/// Fields that version 7 added to [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seventh {
    /// Who accepted the subscriber. Before version 7 it was the server group, or without one the configured users.
    pub accepted_by: AcceptedBy,
}

/// Fields that version 8 added to [`Record`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Eighth {
    /// [`Entry::service`].
    pub service: Box<[u8]>,
    /// [`Entry::names`].
    pub names: Option<Box<WrittenNames>>,
    /// Session with which its subscriber began.
    pub first: Option<Seid>,
    /// [`Entry::access_loop`].
    pub access_loop: Option<Box<AccessLoop>>,
    /// [`Entry::state`].
    pub state: Box<[u8]>,
    /// [`Entry::without_effect`].
    pub without_effect: Option<Box<WithoutEffect>>,
}

/// Fields that version 9 added to [`Record`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ninth {
    /// [`Usage::ipv6`].
    pub ipv6: StoredVolume,
    /// Of all of it if [`Usage::lacks_families`], else of nothing. Before version 9 no family was known.
    pub unknown: StoredVolume,
}

/// Stored accounting record that no server has acknowledged yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Owed {
    /// Socket and identifier, if the record may have been sent. A retransmission must be identical.
    pub slot: Option<(u16, u8)>,
    pub attributes: Box<[u8]>,
    /// Server group that receives it; version 2 had only one group.
    #[serde(skip)]
    pub servers: Option<String>,
}

/// Layout version of a stored session. A later version is rejected. Version 1 had only [`Record`].
pub(crate) const RECORD_VERSION: u8 = 9;

/// Encodes a value for the store, with the version first.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    extend(value, vec![RECORD_VERSION])
}

/// Encodes a value behind others.
pub(crate) fn extend(value: &impl Serialize, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("a record has a size that serde can state")
}

/// Decodes a value of [`to_bytes`].
pub(crate) fn from_bytes<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, String> {
    let (_, value, _) = from_bytes_with_rest(bytes)?;
    Ok(value)
}

/// Decodes a value of [`to_bytes`]. Returns its version, and what was encoded behind it.
pub(crate) fn from_bytes_with_rest<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> Result<(u8, T, &'a [u8]), String> {
    let (version, mut rest) = version(bytes)?;
    match version {
        2..=RECORD_VERSION => Ok((version, take(&mut rest)?, rest)),
        other => Err(unknown(other)),
    }
}

fn version(bytes: &[u8]) -> Result<(u8, &[u8]), String> {
    let (version, rest) = bytes.split_first().ok_or("empty record")?;
    Ok((*version, rest))
}

fn unknown(version: u8) -> String {
    format!("record of version {version}, expected one up to {RECORD_VERSION}")
}

impl Record {
    /// Encodes the record in the version that its fields need. A record of an earlier version keeps that version.
    pub fn to_bytes(&self) -> Vec<u8> {
        let version = match (&self.third, &self.fourth, &self.fifth, &self.sixth) {
            (Some(_), Some(_), Some(_), Some(_)) => match (&self.seventh, &self.eighth) {
                (Some(_), Some(_)) if self.ninth.is_some() => RECORD_VERSION,
                (Some(_), Some(_)) => 8,
                (Some(_), None) => 7,
                (None, _) => 6,
            },
            (Some(_), Some(_), Some(_), None) => 5,
            (Some(_), Some(_), None, _) => 4,
            (Some(_), None, ..) => 3,
            (None, ..) => 2,
        };
        let mut bytes = extend(&self.second, extend(self, vec![version]));
        if let Some(third) = &self.third {
            bytes = extend(third, bytes);
        }
        if let (4.., Some(fourth)) = (version, &self.fourth) {
            bytes = extend(fourth, bytes);
        }
        if let (5.., Some(fifth)) = (version, &self.fifth) {
            let AaaAnswer { profile, overrides } = &fifth.answer;
            bytes = extend(&(profile, overrides.encoded()), bytes);
            bytes = extend(&fifth.policy.to_bytes(), bytes);
        }
        if let (6.., Some(sixth)) = (version, &self.sixth) {
            bytes = extend(sixth, bytes);
        }
        if let (7.., Some(seventh)) = (version, &self.seventh) {
            bytes = extend(seventh, bytes);
        }
        if let (8.., Some(eighth)) = (version, &self.eighth) {
            bytes = extend(eighth, bytes);
        }
        if let (9.., Some(ninth)) = (version, &self.ninth) {
            bytes = extend(ninth, bytes);
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (version, rest) = version(bytes)?;
        if !(1..=RECORD_VERSION).contains(&version) {
            return Err(unknown(version));
        }
        let (mut record, rest): (Record, _) =
            postcard::take_from_bytes(rest).map_err(|e| e.to_string())?;
        let mut rest = rest;
        if version > 1 {
            record.second = take(&mut rest)?;
        }
        if version > 2 {
            record.third = Some(take(&mut rest)?);
        }
        if version > 3 {
            record.fourth = Some(take(&mut rest)?);
        }
        if version > 4 {
            let (profile, overrides): (_, Vec<(u8, Vec<u8>)>) = take(&mut rest)?;
            let overrides = Overrides::decoded(&overrides)?;
            let answer = AaaAnswer { profile, overrides };
            let policy: Vec<u8> = take(&mut rest)?;
            let policy = Policy::from_bytes(&policy)?;
            record.fifth = Some(Fifth { answer, policy });
        }
        if version > 5 {
            let sixth: Sixth = take(&mut rest)?;
            if sixth.subscriber.is_some_and(|(id, _)| id.0 >= MAX_SESSIONS) {
                return Err("its subscriber's handle is out of range".into());
            }
            record.sixth = Some(sixth);
        }
        if version > 6 {
            record.seventh = Some(take(&mut rest)?);
        }
        if version > 7 {
            record.eighth = Some(take(&mut rest)?);
        }
        if version > 8 {
            record.ninth = Some(take(&mut rest)?);
        }
        Ok(record)
    }
}

/// Decodes the next of several values.
pub(crate) fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Result<T, String> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|e| e.to_string())?;
    *bytes = rest;
    Ok(value)
}

impl Owed {
    pub fn to_bytes(&self) -> Vec<u8> {
        extend(&self.servers, to_bytes(self))
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (version, mut owed, mut rest): (_, Owed, _) = from_bytes_with_rest(bytes)?;
        if version > 2 {
            owed.servers = take(&mut rest)?;
        }
        Ok(owed)
    }
}

impl Record {
    /// The session's usage.
    pub fn usage(&self) -> Usage {
        let ninth = self.ninth.unwrap_or(Ninth {
            unknown: self.usage,
            ..Ninth::default()
        });
        Usage {
            total: volume(self.usage),
            ipv6: volume(ninth.ipv6),
            lacks_families: ninth.unknown != StoredVolume::default(),
        }
    }
}

pub(crate) fn stored_volume(v: Volume) -> StoredVolume {
    [v.up_packets, v.up_octets, v.down_packets, v.down_octets]
}

fn volume([up_packets, up_octets, down_packets, down_octets]: StoredVolume) -> Volume {
    Volume {
        up_packets,
        up_octets,
        down_packets,
        down_octets,
    }
}
