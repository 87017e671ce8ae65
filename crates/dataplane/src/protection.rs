//! Protection by line: packets to the control thread have a rate for each MAC address, access line, VLAN and port, below the rate of
//! their kind, so that one sender cannot use up the rate of all.
//!
//! [`PuntKind`](crate::PuntKind) declares the rates of each kind. The node `punt` asks [`Guard`] for every packet. The worker reports
//! senders above a rate to the control thread ([`Offence`]).
use crate::api::{PortIndex, PuntRate, SessionIndex};
use crate::drops::DropReason;
use crate::nodes::Part;
use crate::police::Rate;
use crate::punt::{EachKind, PuntClass, PuntKind, PuntLimits, Subject};
use crate::tables::buckets::Buckets;
use crate::tables::offenders::Offenders;
use core::hash::{BuildHasher, Hash, Hasher};
use core::time::Duration;
use foldhash::quality::RandomState;
use std::collections::HashSet;
use std::sync::Arc;
use wire::eth::{Frame, MacAddr};

/// Level of a rate. The levels are asked in this order, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A MAC address on an access line, or on the link of a core port. The same address has another rate on another line.
    Mac,
    /// An access line: both VLAN ids, or else circuit and remote id of the access node (TR-101), unless they are [`Untrusted`]. With
    /// neither, the line is unknown and has no rate.
    Line,
    /// The outer VLAN of an access port.
    Vlan,
    /// A port, or a subinterface of a core port.
    Port,
}

impl Level {
    /// All levels, in the order in which they are asked.
    pub const ALL: [Level; 4] = [Level::Mac, Level::Line, Level::Vlan, Level::Port];

    /// Name in the configuration and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Mac => "mac",
            Level::Line => "line",
            Level::Vlan => "vlan",
            Level::Port => "port",
        }
    }

    /// Rate with its burst: two seconds' packets for a MAC address or line, because a router that starts asks several times; half a
    /// second's for many together.
    fn rate(self, per_second: u32) -> PuntRate {
        let burst = match self {
            Level::Mac | Level::Line => per_second.saturating_mul(2),
            Level::Vlan | Level::Port => per_second / 2,
        };
        PuntRate { per_second, burst }
    }
}

/// Packets per second by level; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// [`Level::Mac`].
    pub mac: Option<u32>,
    /// [`Level::Line`].
    pub line: Option<u32>,
    /// [`Level::Vlan`].
    pub vlan: Option<u32>,
    /// [`Level::Port`].
    pub port: Option<u32>,
}

impl Levels {
    /// No rates.
    pub const NONE: Levels = Levels {
        mac: None,
        line: None,
        vlan: None,
        port: None,
    };

    /// The rate of a level.
    pub const fn of(&self, level: Level) -> Option<u32> {
        match level {
            Level::Mac => self.mac,
            Level::Line => self.line,
            Level::Vlan => self.vlan,
            Level::Port => self.port,
        }
    }
}

/// Hold-down: time for which all discovery packets of a MAC address on its access line are dropped. The line must be known by two VLAN
/// ids or by ids of the access node: otherwise another home could forge the address and have it held down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// Packets above the rate after which it begins; 0: never.
    pub after: u32,
    /// Time of the first hold-down. Each further one is twice as long.
    pub first: Duration,
    /// Longest hold-down.
    pub longest: Duration,
}

impl Default for HoldDown {
    fn default() -> Self {
        HoldDown {
            after: 100,
            first: Duration::from_secs(10),
            longest: Duration::from_secs(300),
        }
    }
}

/// Access ports and their outer VLAN ids (0: untagged) where circuit and remote id do not name lines, because a home can have chosen them.
pub type Untrusted = HashSet<(PortIndex, u16)>;

/// Octets of a circuit id that an [`Offence`] has room for: as many as TR-101 permits.
pub const CIRCUIT: usize = 63;

/// Sender above a rate, as a worker reports it: once a second while there is something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offence {
    /// Identifies the offender in its worker. It stays the same while the offence lasts.
    pub key: u64,
    /// Kind of the packets.
    pub class: &'static PuntClass,
    /// Level of the exceeded rate.
    pub level: Level,
    /// The port or subinterface.
    pub port: PortIndex,
    /// Outer and inner VLAN id.
    pub vlans: [Option<u16>; 2],
    /// The MAC address; for a wider level, the last one that was seen.
    pub mac: MacAddr,
    /// Begin of the circuit id, with zeros behind it. Zeros alone where both VLAN ids name the line.
    pub circuit: [u8; CIRCUIT],
    /// Packets dropped since it began.
    pub dropped: u64,
    /// Time since it began.
    pub since: Duration,
    /// Number of hold-downs.
    pub strikes: u32,
    /// Time until the hold-down ends.
    pub held_for: Duration,
}

/// Packet for the control thread.
#[derive(Clone, Copy)]
pub(crate) struct Punted<'a> {
    pub kind: PuntKind,
    /// The part that the control thread gets.
    pub part: Part,
    /// The port that it came in by.
    pub port: PortIndex,
    pub frame: &'a [u8],
}

/// Origin of a packet: port, VLANs, MAC address and ids of the access node.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub port: PortIndex,
    pub vlans: [Option<u16>; 2],
    pub mac: MacAddr,
    /// Circuit and remote id, where they are what names the line.
    pub ids: [&'a [u8]; 2],
}

impl<'a> Origin<'a> {
    /// Origin of a packet of a kind whose rates have levels.
    fn of(packet: &Punted<'a>, untrusted: &Untrusted) -> Self {
        let Punted {
            kind,
            part,
            port,
            frame,
        } = *packet;
        // What the kernel gets begins with the addresses, without the tag that stood behind them.
        let (port, frame, has_line) = match kind.subject() {
            Subject::Interface(port) => {
                let frame = frame.get(part.strip.into()..).unwrap_or_default();
                (port, frame, false)
            }
            _ => (port, frame, true),
        };
        let mut origin = Origin {
            port,
            vlans: [None; 2],
            mac: MacAddr::ZERO,
            ids: [&[]; 2],
        };
        let Ok(Frame { header, payload }) = Frame::parse(frame) else {
            return origin;
        };
        origin.mac = header.source;
        if has_line {
            let (outer, inner) = header.tags.vids();
            // VLAN id 0 is a priority, which the home can have added, and no VLAN (IEEE 802.1Q §9.6).
            origin.vlans = [outer, inner.filter(|vid| *vid != 0)];
        }
        // Two VLAN ids are the access node's word. Ids beside them can be the home's own, and each would have a bucket.
        if matches!(kind, PuntKind::Discovery)
            && let [outer, None] = origin.vlans
            && !untrusted.contains(&(port, outer.unwrap_or(0)))
        {
            origin.ids = wire::pppoe::line_ids(payload);
        }
        origin
    }

    /// Whether it has an id.
    fn has_ids(&self) -> bool {
        self.ids.iter().any(|id| !id.is_empty())
    }

    /// Whether the line is known.
    fn names_line(&self) -> bool {
        self.vlans[1].is_some() || self.has_ids()
    }

    /// Key of a level. An unknown line has the key of its VLANs.
    fn key(&self, keys: &RandomState, kind: usize, level: Level) -> u64 {
        let vlan = |n: usize| self.vlans[n].map_or(0, |vid| u64::from(vid) + 1);
        let of_line = matches!(level, Level::Mac | Level::Line);
        let outer = if level == Level::Port { 0 } else { vlan(0) };
        let inner = if of_line { vlan(1) } else { 0 };
        // Few words instead of a field at a time: it costs half of the instructions.
        let head = (level as u64) << 24 | (kind as u64) << 16 | u64::from(self.port.0);
        let mut hasher = keys.build_hasher();
        hasher.write_u64(head << 32 | outer << 16 | inner);
        if level == Level::Mac {
            let MacAddr([a, b, c, d, e, f]) = self.mac;
            hasher.write_u64(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        }
        if of_line && self.has_ids() {
            self.ids.hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Places for buckets: of 10,000 lines that connect in a second, each with one packet of a MAC address, a twentieth is not full at a time.
const BUCKETS: usize = 32_768;

/// A worker's rates by level, and the senders above them.
pub(crate) struct Guard {
    levels: EachKind<Option<[Option<Rate>; 4]>>,
    hold: HoldDown,
    second: u64,
    /// Random, so that a sender cannot choose packets whose keys collide.
    keys: RandomState,
    buckets: Buckets,
    pub offenders: Offenders,
    pub untrusted: Arc<Untrusted>,
}

impl Guard {
    /// `hz` ticks are a second.
    pub fn new(limits: &PuntLimits, hz: u64) -> Self {
        let mut guard = Guard {
            levels: [None; PuntKind::ALL.len()],
            hold: limits.hold_down,
            second: hz,
            keys: RandomState::default(),
            buckets: Buckets::new(BUCKETS),
            offenders: Offenders::new(hz),
            untrusted: Arc::default(),
        };
        guard.set(limits);
        guard
    }

    /// Changes the rates. Another rule for hold-downs ends those of the former one.
    pub fn set(&mut self, limits: &PuntLimits) {
        if self.hold != limits.hold_down {
            self.hold = limits.hold_down;
            self.offenders.release();
        }
        let rate = |levels: &Levels, level: Level| {
            let rate = levels.of(level).map(|rate| level.rate(rate));
            rate.map(|rate| Rate::new(rate, self.second))
        };
        self.levels = limits.levels().map(|levels| {
            let rates = Level::ALL.map(|level| rate(&levels, level));
            rates.iter().any(Option::is_some).then_some(rates)
        });
    }

    /// Counts a packet above the rate of its session. There is no hold-down: it would end the session.
    pub fn note_session(&mut self, packet: &Punted<'_>, session: SessionIndex, now: u64) {
        let kind = packet.kind;
        // Index and MAC address identify the session's line. The frame is parsed for a new offender only.
        let mut hasher = self.keys.build_hasher();
        hasher.write_u64((kind.number() as u64) << 32 | u64::from(session.0));
        hasher.write(packet.frame.first_chunk::<12>().unwrap_or(&[0; 12]));
        let key = hasher.finish();
        if !self.offenders.count(key, now) {
            let origin = Origin::of(packet, &self.untrusted);
            (self.offenders).note(key, kind.class(), Level::Mac, &origin, now, None);
        }
    }

    /// Admits a packet if it is within all rates.
    pub fn admit(&mut self, packet: &Punted<'_>, now: u64) -> Result<(), DropReason> {
        let kind = packet.kind;
        let Some(rates) = self.levels[kind.number()] else {
            return Ok(());
        };
        let origin = Origin::of(packet, &self.untrusted);
        let key = |level| origin.key(&self.keys, kind.number(), level);
        if self.offenders.anybody_held(now) && self.offenders.is_held(key(Level::Mac), now) {
            return Err(DropReason::HeldDown);
        }
        for (level, rate) in Level::ALL.into_iter().zip(rates) {
            let Some(rate) = rate.filter(|_| level != Level::Line || origin.names_line()) else {
                continue;
            };
            let key = key(level);
            if !self.buckets.take(key, now, rate) {
                let discovery = matches!(kind, PuntKind::Discovery);
                let held = discovery && level == Level::Mac && origin.names_line();
                let hold = held.then_some(self.hold);
                self.offenders
                    .note(key, kind.class(), level, &origin, now, hold);
                return Err(DropReason::LinePoliced);
            }
        }
        Ok(())
    }
}
