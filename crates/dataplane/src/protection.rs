//! Protection by line: what one access line, MAC address, VLAN or port sends to the control thread has a rate of its own below that of
//! the kind, so that one of them does not use up what is there for all.
//!
//! [`PuntKind`](crate::PuntKind) declares the rates of each kind, the node `punt` asks [`Guard`] for every packet, and the control thread
//! is told of those who exceed them ([`Offence`]).
use crate::api::{PortIndex, PuntRate};
use crate::drops::DropReason;
use crate::nodes::Part;
use crate::police::Rate;
use crate::punt::{EachKind, PuntClass, PuntKind, PuntLimits, Subject};
use crate::tables::buckets::Buckets;
use crate::tables::offenders::Offenders;
use core::hash::BuildHasher;
use core::time::Duration;
use foldhash::quality::RandomState;
use wire::eth::{Frame, MacAddr};

/// Whose rate it is. They are asked in this order, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A MAC address on an access line, or on the link of a core port. Elsewhere the same address has another rate.
    Mac,
    /// An access line: circuit and remote id of the access node (TR-101), or else both VLAN ids. Where there is neither, nobody knows
    /// the line.
    Line,
    /// The outer VLAN of an access port.
    Vlan,
    /// A port, or a subinterface of a core port.
    Port,
}

impl Level {
    /// All, in the order in which they are asked.
    pub const ALL: [Level; 4] = [Level::Mac, Level::Line, Level::Vlan, Level::Port];

    /// The name, as configuration and tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Mac => "mac",
            Level::Line => "line",
            Level::Vlan => "vlan",
            Level::Port => "port",
        }
    }

    /// What a rate lets through: one MAC address or line as much at once as in two seconds, as a router that begins asks several times;
    /// many together as much as in half a second.
    fn rate(self, per_second: u32) -> PuntRate {
        let burst = match self {
            Level::Mac | Level::Line => per_second.saturating_mul(2),
            Level::Vlan | Level::Port => per_second / 2,
        };
        PuntRate { per_second, burst }
    }
}

/// Packets in a second, by level; `None` where there is no rate.
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
    /// Without rates.
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

/// When discovery of a MAC address on its access line is not listened to at all for a while. Only lines that are known have it: where
/// neither ids of the access node nor two VLAN ids name one, a stranger could have another's address held down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// After so many packets above a rate; 0: never.
    pub after: u32,
    /// For so long. Each further time is twice as long.
    pub first: Duration,
    /// At most for so long.
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

/// Octets of a circuit id that an [`Offence`] has room for: as many as TR-101 permits.
pub const CIRCUIT: usize = 63;

/// Who exceeds a rate, as the worker reports it once a second while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offence {
    /// What tells it from the worker's other offenders. It stays the same while it lasts.
    pub key: u64,
    /// What comes too fast.
    pub class: &'static PuntClass,
    /// Whose rate is exceeded.
    pub level: Level,
    /// The port or subinterface.
    pub port: PortIndex,
    /// Outer and inner VLAN id.
    pub vlans: [Option<u16>; 2],
    /// The MAC address; of a wider level, the last one that was seen.
    pub mac: MacAddr,
    /// Begin of the circuit id, with zeros behind it.
    pub circuit: [u8; CIRCUIT],
    /// Packets that were dropped since it began.
    pub dropped: u64,
    /// How long ago it began.
    pub since: Duration,
    /// How often it was held down.
    pub strikes: u32,
    /// How long it is still held down.
    pub held_for: Duration,
}

/// Where a packet comes from.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub port: PortIndex,
    pub vlans: [Option<u16>; 2],
    pub mac: MacAddr,
    /// Circuit and remote id.
    pub ids: [&'a [u8]; 2],
}

impl<'a> Place<'a> {
    /// The place of a packet of a kind whose rates have levels.
    fn of(kind: PuntKind, part: Part, port: PortIndex, frame: &'a [u8]) -> Self {
        // What the kernel gets begins with the addresses, without the tag that stood behind them.
        let (port, frame, has_line) = match kind.subject() {
            Subject::Interface(port) => {
                let frame = frame.get(part.strip.into()..).unwrap_or_default();
                (port, frame, false)
            }
            _ => (port, frame, true),
        };
        let mut place = Place {
            port,
            vlans: [None; 2],
            mac: MacAddr::ZERO,
            ids: [&[]; 2],
        };
        let Ok(Frame { header, payload }) = Frame::parse(frame) else {
            return place;
        };
        place.mac = header.source;
        if has_line {
            place.vlans = header.tags.vids().into();
        }
        if matches!(kind, PuntKind::Discovery) {
            place.ids = wire::pppoe::line_ids(payload);
        }
        place
    }

    /// Is it known from which line it comes?
    fn names_line(&self) -> bool {
        self.vlans[1].is_some() || self.ids.iter().any(|id| !id.is_empty())
    }

    /// The key of a level; a line that nobody knows has that of its VLANs.
    fn key(&self, keys: &RandomState, kind: usize, level: Level) -> u64 {
        let head = (level, kind, self.port.0);
        match level {
            Level::Mac => keys.hash_one((head, self.vlans, self.ids, self.mac)),
            Level::Line => keys.hash_one((head, self.vlans, self.ids)),
            Level::Vlan => keys.hash_one((head, self.vlans[0])),
            Level::Port => keys.hash_one(head),
        }
    }
}

/// Places for buckets: of 10,000 lines that connect in a second, each with one packet of a MAC address, a twentieth is not full at a time.
const BUCKETS: usize = 32_768;

/// A worker's rates by level, and those who exceed them.
pub(crate) struct Guard {
    levels: EachKind<Option<[Option<Rate>; 4]>>,
    hold: HoldDown,
    second: u64,
    /// At random, so that nobody can choose packets whose keys are alike.
    keys: RandomState,
    buckets: Buckets,
    pub offenders: Offenders,
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

    /// Whether a packet that came by `port` is within the rates.
    pub fn admit(
        &mut self,
        kind: PuntKind,
        part: Part,
        port: PortIndex,
        frame: &[u8],
        now: u64,
    ) -> Result<(), DropReason> {
        let Some(rates) = self.levels[kind.number()] else {
            return Ok(());
        };
        let place = Place::of(kind, part, port, frame);
        let key = |level| place.key(&self.keys, kind.number(), level);
        if self.offenders.anybody_held(now) && self.offenders.is_held(key(Level::Mac), now) {
            return Err(DropReason::HeldDown);
        }
        for (level, rate) in Level::ALL.into_iter().zip(rates) {
            let Some(rate) = rate.filter(|_| level != Level::Line || place.names_line()) else {
                continue;
            };
            let key = key(level);
            if !self.buckets.take(key, now, rate) {
                let discovery = matches!(kind, PuntKind::Discovery);
                let held = discovery && level == Level::Mac && place.names_line();
                let hold = held.then_some(self.hold);
                self.offenders
                    .note(key, kind.class(), level, &place, now, hold);
                return Err(DropReason::LinePoliced);
            }
        }
        Ok(())
    }
}
