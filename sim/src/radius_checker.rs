//! Checks of the accounting records that the RADIUS servers got: each session has exactly one Start and one Stop.
//!
//! A record is one datagram, however often it is sent, so that a server recognises a repetition. It is the same for every
//! server. Its counters never decrease, those of both address families are those of the session, and its times are right.

use crate::traffic::Octets;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::radius::{Kind, Packet, Value, values};

/// Time in which a server recognises a repeated datagram.
const MEMORY: Duration = Duration::from_secs(300);
/// Maximum difference in seconds between Acct-Session-Time and the times of Start and Stop. Both are whole seconds.
const ROUNDING: u32 = 2;

/// Identity of a datagram: the server, and the client's socket, identifier and authenticator.
type Datagram = (usize, u16, u8, [u8; 16]);

/// An accounting record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    status: u32,
    event: u32,
    /// Acct-Session-Time.
    lasted: u32,
    /// In and out by address family.
    octets: Octets,
}

/// Redback's attributes for octets by address family, in the order of [`Octets`]: octets below 2^32, and those above.
const FAMILIES: [[u8; 2]; 4] = [[214, 218], [215, 219], [220, 224], [221, 225]];
/// Redback's private enterprise number.
const REDBACK: u32 = 2352;

/// Records of one session.
#[derive(Clone, Debug, Default)]
pub struct Account {
    entries: Vec<Entry>,
    /// Datagrams of its Start and its Stop, by server.
    datagrams: BTreeMap<(u32, usize), Datagram>,
    /// Number of Starts and Stops that all servers stored.
    written: BTreeMap<u32, u32>,
}

/// Records of all sessions. The servers share one checker.
#[derive(Default)]
pub struct RadiusChecker {
    accounts: BTreeMap<String, Account>,
    /// Whether the client's wall clock was set. Then the times of two records do not tell the time between them.
    pub clock_was_set: bool,
    /// Time of each datagram's last arrival.
    seen: BTreeMap<Datagram, Duration>,
}

fn number(packet: &Packet, kind: Kind) -> u32 {
    match packet.get(kind) {
        Some(Value::Integer(n) | Value::Time(n)) => *n,
        _ => 0,
    }
}

/// A number of Redback, which the codec's dictionary does not know.
fn redback(packet: &Packet, number: u8) -> Option<u64> {
    let mut all = packet.all(Kind::VENDOR_SPECIFIC).filter_map(Value::octets);
    all.find_map(
        |octets| match octets.strip_prefix(&REDBACK.to_be_bytes())? {
            [attribute, 6, value @ ..] if *attribute == number => {
                Some(u32::from_be_bytes(value.try_into().ok()?).into())
            }
            _ => None,
        },
    )
}

/// Octets by address family; none in a record that does not tell of them.
fn octets_of_families(packet: &Packet) -> Option<Octets> {
    let mut octets = Octets::default();
    for (octets, [low, high]) in octets.iter_mut().zip(FAMILIES) {
        *octets = redback(packet, high)? << 32 | redback(packet, low)?;
    }
    Some(octets)
}

/// Octets of a record, which says of both families together what it says of each.
///
/// # Errors
/// A record that does not tell of the families, or whose sums are others.
fn octets(record: &Packet) -> Result<Octets, String> {
    let of = |low, high| u64::from(number(record, high)) << 32 | u64::from(number(record, low));
    let sums = [
        of(Kind::ACCT_INPUT_OCTETS, Kind::ACCT_INPUT_GIGAWORDS),
        of(Kind::ACCT_OUTPUT_OCTETS, Kind::ACCT_OUTPUT_GIGAWORDS),
    ];
    if record.get(Kind::ACCT_SESSION_TIME).is_none() {
        return Ok(Octets::default()); // a Start
    }
    let Some(octets) = octets_of_families(record) else {
        // what a user plane that lies says may be more than can be counted
        return match sums.contains(&u64::MAX) {
            true => Ok([u64::MAX; 4]),
            false => Err("a record without address families".into()),
        };
    };
    let [up, down, up_v6, down_v6] = octets;
    match [up.checked_add(up_v6), down.checked_add(down_v6)] == sums.map(Some) {
        true => Ok(octets),
        false => Err(format!(
            "{octets:?} of each address family are not {sums:?}"
        )),
    }
}

impl RadiusChecker {
    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.accounts.len()
    }

    /// Octets in each session's Stop, by its Acct-Session-Id, which is its SEID.
    pub fn carried(&self) -> impl Iterator<Item = (u64, Octets)> {
        self.accounts.iter().filter_map(|(id, account)| {
            let stop = |entry: &&Entry| entry.status == values::ACCT_STATUS_TYPE_STOP;
            let octets = account.entries.iter().find(stop)?.octets;
            Some((u64::from_str_radix(id, 16).ok()?, octets))
        })
    }

    /// Stores and checks a record that a server got from a socket of the client.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn record(
        &mut self,
        now: Duration,
        server: usize,
        socket: u16,
        record: &Packet,
    ) -> Result<(), String> {
        let id = record.get(Kind::ACCT_SESSION_ID).and_then(Value::octets);
        let id = String::from_utf8_lossy(id.unwrap_or_default()).into_owned();
        let entry = Entry {
            status: number(record, Kind::ACCT_STATUS_TYPE),
            event: number(record, Kind::EVENT_TIMESTAMP),
            lasted: number(record, Kind::ACCT_SESSION_TIME),
            octets: octets(record)?,
        };
        let datagram = (server, socket, record.identifier, record.authenticator);
        let before = self.seen.insert(datagram, now);
        let repeated = before.is_some_and(|at| now - at < MEMORY);
        let kinds = [
            values::ACCT_STATUS_TYPE_ACCOUNTING_ON,
            values::ACCT_STATUS_TYPE_ACCOUNTING_OFF,
        ];
        if kinds.contains(&entry.status) {
            return match self.accounts.iter().find(|(_, account)| account.is_open()) {
                Some((id, _)) if !repeated => Err(format!("{entry:?} would end session {id}")),
                _ => Ok(()),
            };
        }
        let account = self.accounts.entry(id.clone()).or_default();
        account
            .take(entry, datagram, repeated, self.clock_was_set)
            .map_err(|why| format!("accounting of session {id}: {why}"))
    }

    /// Sessions without one Start and one Stop after every subscriber has left. If no server was out of reach for longer than
    /// [`MEMORY`], each Start and Stop must have been stored `once`.
    pub fn unbalanced(&self, once: bool) -> Option<String> {
        let wrong = |account: &Account| {
            let kinds = [
                values::ACCT_STATUS_TYPE_START,
                values::ACCT_STATUS_TYPE_STOP,
            ];
            let written = kinds.map(|kind| account.written.get(&kind).copied().unwrap_or(0));
            written.contains(&0) || once && written != [1, 1]
        };
        let accounts = self.accounts.iter();
        let found: Vec<_> = accounts.filter(|(_, account)| wrong(account)).collect();
        (!found.is_empty()).then(|| format!("sessions without one Start and one Stop: {found:?}"))
    }

    /// Starts and Stops that were written more than once, by a server or by several.
    pub fn doubled(&self) -> u32 {
        let written = self.accounts.values().flat_map(|a| a.written.values());
        written.map(|times| times.saturating_sub(1)).sum()
    }
}

impl Account {
    /// Whether it has a record and no Stop.
    fn is_open(&self) -> bool {
        let stop = values::ACCT_STATUS_TYPE_STOP;
        self.entries.iter().all(|entry| entry.status != stop)
    }

    fn take(
        &mut self,
        new: Entry,
        datagram: Datagram,
        repeated: bool,
        clock_was_set: bool,
    ) -> Result<(), String> {
        if new.status != values::ACCT_STATUS_TYPE_INTERIM_UPDATE {
            *self.written.entry(new.status).or_default() += u32::from(!repeated);
            let first = self.datagrams.entry((new.status, datagram.0));
            if *first.or_insert(datagram) != datagram {
                return Err(format!("{new:?} came again as another datagram"));
            }
        }
        if self.entries.contains(&new) {
            return Ok(()); // sent again
        }
        for old in &self.entries {
            old.fits(&new)?;
            new.fits(old)?;
            if !clock_was_set {
                old.dates(&new)?;
                new.dates(old)?;
            }
        }
        self.entries.push(new);
        Ok(())
    }
}

impl Entry {
    /// Whether this record and a `later` one contradict each other.
    fn fits(&self, later: &Entry) -> Result<(), String> {
        let only_once = self.status != values::ACCT_STATUS_TYPE_INTERIM_UPDATE;
        if only_once && self.status == later.status {
            return Err(format!("{self:?} has another like it: {later:?}"));
        }
        if later.lasted <= self.lasted {
            return Ok(());
        }
        if later.status == values::ACCT_STATUS_TYPE_START {
            return Err(format!("{self:?} came before the Start {later:?}"));
        }
        if self.status == values::ACCT_STATUS_TYPE_STOP {
            return Err(format!("{later:?} came after the Stop {self:?}"));
        }
        if self
            .octets
            .iter()
            .zip(&later.octets)
            .any(|(old, new)| new < old)
        {
            return Err(format!("counters go back from {self:?} to {later:?}"));
        }
        Ok(())
    }

    /// Whether the time between the Start and a later record is that record's session time.
    fn dates(&self, later: &Entry) -> Result<(), String> {
        let started = self.status == values::ACCT_STATUS_TYPE_START;
        if started && later.event.wrapping_sub(self.event).abs_diff(later.lasted) > ROUNDING {
            return Err(format!(
                "{later:?} does not say how long it is since {self:?}"
            ));
        }
        Ok(())
    }
}
