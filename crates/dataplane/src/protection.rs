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
use wire::eth::{MacAddr, TPID_8021AD, TPID_8021Q};

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

/// Keys of the levels, so that nobody can choose packets whose keys are alike.
#[derive(Clone, Copy)]
struct Seeds([u64; 2]);

impl Seeds {
    fn new() -> Self {
        let random = std::hash::RandomState::new();
        Seeds([0, 1].map(|n: u64| random.hash_one(n) | 1))
    }

    /// A key for some words, even in all bits.
    fn key(self, words: &[u64]) -> u64 {
        let Seeds([mut key, factor]) = self;
        for word in words {
            let product = u128::from(key ^ word) * u128::from(factor);
            key = product as u64 ^ (product >> 64) as u64 ^ key.rotate_left(23);
        }
        let product = u128::from(key) * u128::from(factor);
        product as u64 ^ (product >> 64) as u64
    }
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
        match kind.subject() {
            // What the kernel gets begins with the addresses, without the tag that stood behind them.
            Subject::Interface(port) => Place {
                port,
                vlans: [None; 2],
                mac: source(frame.get(part.strip.into()..).unwrap_or_default()),
                ids: [&[]; 2],
            },
            _ => Self::on_access_port(port, frame, matches!(kind, PuntKind::Discovery)),
        }
    }

    fn on_access_port(port: PortIndex, frame: &'a [u8], discovery: bool) -> Self {
        let word = |at: usize| {
            frame.get(at..at + 2).map_or(0, |w| {
                [w[0], w[1]]
                    .into_iter()
                    .fold(0, |word, octet| word << 8 | u16::from(octet))
            })
        };
        let (mut at, mut vlans) = (12, [None; 2]);
        for vlan in &mut vlans {
            if !matches!(word(at), TPID_8021Q | TPID_8021AD) {
                break;
            }
            *vlan = Some(word(at + 2) & 0xfff);
            at += 4;
        }
        let ids = match discovery {
            true => wire::pppoe::line_ids(frame.get(at + 2..).unwrap_or_default()),
            false => [&[][..]; 2],
        };
        Place {
            port,
            vlans,
            mac: source(frame),
            ids,
        }
    }

    /// Is it known from which line it comes?
    fn names_line(&self) -> bool {
        self.vlans[1].is_some() || self.ids.iter().any(|id| !id.is_empty())
    }

    /// The key of a level; a line that nobody knows has that of its VLANs.
    fn key(&self, seeds: Seeds, kind: usize, level: Level) -> u64 {
        let vlan = |n: usize| self.vlans[n].map_or(0, |vid| u64::from(vid) + 1);
        let vlans = vlan(0) << 32 | vlan(1);
        let head = (level as u64) << 32 | (kind as u64) << 16 | u64::from(self.port.0);
        match level {
            Level::Mac => {
                let MacAddr([a, b, c, d, e, f]) = self.mac;
                let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
                seeds.key(&[head, vlans, self.line(seeds), mac])
            }
            Level::Line => seeds.key(&[head, vlans, self.line(seeds)]),
            Level::Vlan => seeds.key(&[head, vlan(0)]),
            Level::Port => seeds.key(&[head]),
        }
    }

    /// A number for the ids of the access node; 0 without.
    fn line(&self, seeds: Seeds) -> u64 {
        match self.ids {
            [[], []] => 0,
            [circuit, remote] => octets(seeds, remote) ^ octets(seeds, circuit).rotate_left(1),
        }
    }
}

fn source(frame: &[u8]) -> MacAddr {
    let octets = frame.get(6..).and_then(<[u8]>::first_chunk);
    MacAddr(octets.copied().unwrap_or_default())
}

fn octets(seeds: Seeds, octets: &[u8]) -> u64 {
    octets.chunks(8).fold(octets.len() as u64, |key, chunk| {
        let word = chunk
            .iter()
            .fold(0, |word, octet| word << 8 | u64::from(*octet));
        seeds.key(&[key, word])
    })
}

/// Places for buckets: of 10,000 lines that connect in a second, each with one packet of a MAC address, a twentieth is not full at a time.
const BUCKETS: usize = 32_768;

/// A worker's rates by level, and those who exceed them.
pub(crate) struct Guard {
    levels: EachKind<Option<[Option<Rate>; 4]>>,
    hold: HoldDown,
    second: u64,
    seeds: Seeds,
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
            seeds: Seeds::new(),
            buckets: Buckets::new(BUCKETS),
            offenders: Offenders::new(hz),
        };
        guard.set(limits);
        guard
    }

    /// Changes the rates.
    pub fn set(&mut self, limits: &PuntLimits) {
        self.hold = limits.hold_down;
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
        let key = |level| place.key(self.seeds, kind.number(), level);
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
