//! Verified traffic: every packet says who sent it to whom, and every arrival is held against that.

use crate::Family;
use core::fmt;

/// A sender or receiver of verified packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The host that stands for the internet.
    Internet,
    /// A home by its number.
    Home(u32),
}

impl Party {
    const INTERNET: u32 = u32::MAX;

    const fn number(self) -> u32 {
        match self {
            Party::Internet => Self::INTERNET,
            Party::Home(number) => number,
        }
    }

    const fn of(number: u32) -> Self {
        match number {
            Self::INTERNET => Party::Internet,
            number => Party::Home(number),
        }
    }
}

/// What a packet says of its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When it was sent, in nanoseconds on its sender's clock.
    pub sent: u64,
    /// How many different packets of its stream had come to the reflector that sent it back, it included; 0: nobody has sent it
    /// back. After 2^32 packets the number begins anew.
    pub reflected: u32,
}

/// What a packet says of itself, in the payload of its UDP datagram.
///
/// ```
/// use cpe::{Family, Label, Party, Stamp};
///
/// let (from, to) = (Party::Home(7), Party::Internet);
/// let label = Label { run: 42, from, to, family: Family::V6, sequence: 1, stamp: Stamp::default() };
/// let mut payload = Vec::new();
/// label.emit(200, &mut payload);
/// assert_eq!(payload.len(), 200);
/// assert_eq!(Label::parse(&payload), Some(label));
/// payload[100] ^= 1;
/// assert_eq!(Label::parse(&payload), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// A number of this run alone: a packet of an earlier one is not taken for ours.
    pub run: u64,
    /// Who sent it.
    pub from: Party,
    /// Whom it is for.
    pub to: Party,
    /// The address family that it travels in.
    pub family: Family,
    /// Counts the packets of one sender to one receiver in one family, from 0.
    pub sequence: u64,
    /// When it was sent, and whether it is on its way back.
    pub stamp: Stamp,
}

impl Label {
    const MAGIC: [u8; 4] = *b"SLCE";
    /// The least size of a payload: the label and its checksum.
    pub const MIN_SIZE: usize = 45;

    /// Appends a payload of `size` octets, at least [`Label::MIN_SIZE`].
    pub fn emit(&self, size: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(size.max(Self::MIN_SIZE));
        out.extend_from_slice(&Self::MAGIC);
        out.extend_from_slice(&self.run.to_be_bytes());
        out.extend_from_slice(&self.from.number().to_be_bytes());
        out.extend_from_slice(&self.to.number().to_be_bytes());
        out.push(self.family as u8);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.stamp.sent.to_be_bytes());
        out.extend_from_slice(&self.stamp.reflected.to_be_bytes());
        let filler = size.saturating_sub(Self::MIN_SIZE);
        // The filler differs from packet to packet, so that a stale buffer shows.
        out.extend((0..filler).map(|i| (self.sequence as u8).wrapping_add(i as u8)));
        let sum = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&sum.to_be_bytes());
    }

    /// Reads a payload back; `None` if it is not one or was changed on its way.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let (body, sum) = payload.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*sum) {
            return None;
        }
        let (magic, rest) = body.split_first_chunk::<4>()?;
        let (run, rest) = rest.split_first_chunk::<8>()?;
        let (from, rest) = rest.split_first_chunk::<4>()?;
        let (to, rest) = rest.split_first_chunk::<4>()?;
        let (family, rest) = rest.split_first()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (sent, rest) = rest.split_first_chunk::<8>()?;
        let (reflected, _) = rest.split_first_chunk::<4>()?;
        if *magic != Self::MAGIC {
            return None;
        }
        Some(Label {
            run: u64::from_be_bytes(*run),
            from: Party::of(u32::from_be_bytes(*from)),
            to: Party::of(u32::from_be_bytes(*to)),
            family: Family::ALL.into_iter().find(|f| *f as u8 == *family)?,
            sequence: u64::from_be_bytes(*sequence),
            stamp: Stamp {
                sent: u64::from_be_bytes(*sent),
                reflected: u32::from_be_bytes(*reflected),
            },
        })
    }
}

/// Where a payload turned up, and whom the addresses around it name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who received it.
    pub at: Party,
    /// Whose address the source address is, if anybody's.
    pub from: Option<Party>,
    /// The family of the packet around it.
    pub family: Family,
}

/// What an arrival was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Right, and the newest of its stream.
    InOrder,
    /// Right, but a later one came before it.
    Late,
    /// It, or one too old to tell, was here before.
    Duplicate,
    /// Not for this receiver, or not from whom it says.
    Misdelivered,
    /// Changed on its way, or not of this run.
    Corrupt,
}

/// How many arrivals were found to be what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Right ones, each counted once.
    pub received: u64,
    /// Those of them that came late.
    pub late: u64,
    /// Came twice.
    pub duplicated: u64,
    /// Came to the wrong one, or from the wrong one.
    pub misdelivered: u64,
    /// Came changed.
    pub corrupt: u64,
}

impl Counts {
    /// Everything that should not have come.
    pub const fn wrong(&self) -> u64 {
        self.duplicated + self.misdelivered + self.corrupt
    }
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.received += other.received;
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.misdelivered += other.misdelivered;
        self.corrupt += other.corrupt;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            received,
            late,
            duplicated,
            misdelivered,
            corrupt,
        } = self;
        write!(
            f,
            "{received} received ({late} late), {duplicated} twice, {misdelivered} misdelivered, {corrupt} corrupt"
        )
    }
}

/// Holds the arrivals at one end (all homes, or the internet host) against what they say of themselves.
#[derive(Clone, Debug)]
pub struct Verifier {
    run: u64,
    /// One for each home and family: of the home that receives, or, at the internet, of the home that sends.
    streams: Vec<Window>,
    counts: Counts,
}

impl Verifier {
    /// A verifier for packets of `run` between `homes` homes and the internet, or from home to home where each home gets packets
    /// from one other home alone.
    pub fn new(run: u64, homes: u32) -> Self {
        let streams = vec![Window::default(); homes as usize * Family::ALL.len()];
        Verifier {
            run,
            streams,
            counts: Counts::default(),
        }
    }

    /// Judges one arrival and counts it.
    pub fn check(&mut self, arrival: Arrival, payload: &[u8]) -> Verdict {
        self.check_label(arrival, Label::parse(payload))
    }

    /// The same for a label that has been read; `None` if there is no sound one.
    pub fn check_label(&mut self, arrival: Arrival, label: Option<Label>) -> Verdict {
        let verdict = self.judge(arrival, label);
        match verdict {
            Verdict::InOrder => self.counts.received += 1,
            Verdict::Late => {
                self.counts.received += 1;
                self.counts.late += 1;
            }
            Verdict::Duplicate => self.counts.duplicated += 1,
            Verdict::Misdelivered => self.counts.misdelivered += 1,
            Verdict::Corrupt => self.counts.corrupt += 1,
        }
        verdict
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many right packets of a home and family came.
    pub fn received(&self, home: u32, family: Family) -> u64 {
        self.of(home, family).received
    }

    /// What was counted of a home and family; what is wrong in other ways than by coming twice is nobody's.
    pub fn of(&self, home: u32, family: Family) -> Counts {
        let stream = home as usize * Family::ALL.len() + family as usize;
        self.streams
            .get(stream)
            .map_or_else(Counts::default, Window::counts)
    }

    /// Counts something that came but was not even readable as a packet for this receiver.
    pub fn count_misdelivered(&mut self) {
        self.counts.misdelivered += 1;
    }

    fn judge(&mut self, arrival: Arrival, label: Option<Label>) -> Verdict {
        let label = match label {
            Some(label) if label.run == self.run => label,
            _ => return Verdict::Corrupt,
        };
        if label.to != arrival.at
            || Some(label.from) != arrival.from
            || label.family != arrival.family
        {
            return Verdict::Misdelivered;
        }
        let home = match (label.from, label.to) {
            (Party::Home(home), Party::Internet) | (_, Party::Home(home)) => home as usize,
            (Party::Internet, Party::Internet) => return Verdict::Misdelivered,
        };
        match self
            .streams
            .get_mut(home * Family::ALL.len() + label.family as usize)
        {
            Some(stream) => stream.arrived(label.sequence),
            None => Verdict::Misdelivered,
        }
    }
}

/// Which of a stream's latest sequence numbers came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The highest number that came.
    highest: u64,
    /// Bit i: `highest - i` came; 0: nothing has come.
    came: u128,
    received: u64,
    late: u64,
    duplicated: u64,
}

impl Window {
    /// Different packets that came.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    fn counts(&self) -> Counts {
        Counts {
            received: self.received,
            late: self.late,
            duplicated: self.duplicated,
            ..Counts::default()
        }
    }

    pub(crate) fn arrived(&mut self, sequence: u64) -> Verdict {
        if self.came == 0 || sequence > self.highest {
            let ahead = sequence - self.highest;
            self.came = u32::try_from(ahead)
                .ok()
                .and_then(|by| self.came.checked_shl(by))
                .unwrap_or(0)
                | 1;
            self.highest = sequence;
            self.received += 1;
            return Verdict::InOrder;
        }
        let behind = self.highest - sequence;
        if behind >= u128::BITS.into() || self.came >> behind & 1 == 1 {
            self.duplicated += 1;
            return Verdict::Duplicate;
        }
        self.came |= 1 << behind;
        self.received += 1;
        self.late += 1;
        Verdict::Late
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
