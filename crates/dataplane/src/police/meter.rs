//! Meters of three colours in 48 octets: RFC 2697, RFC 2698 and RFC 4115, on arrival times instead of token counts.
use super::{Kept, MeterSettings};
use core::hint::select_unpredictable;
use policy::Rate;
use policy::pace::{PARTS, parts};

/// How well a packet conforms to a policy. The order is from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// Within the committed rate and burst.
    #[default]
    Green,
    /// Beyond the committed rate, but within the peak or excess one.
    Yellow,
    /// Beyond both.
    Red,
}

/// Tokens of a meter's two buckets. Each is one word, the time at which the bucket is full, and has as many tokens as come in its burst's
/// time less the time until then. The first bucket is C of all three algorithms. The second one is P of RFC 2698 and E of RFC 4115. The
/// default are full buckets.
///
/// In RFC 2697 the tokens that C has no room for go to E. The second word is then the time at which C and E are both full. Tokens come to
/// C and E together at the CIR until that time, whichever of them they go to, so the sum is a bucket like others: green and yellow packets
/// take from it, only green ones take from C, and what it lacks beyond what C lacks is what E lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    committed: u64,
    second: u64,
}

/// Rates and bursts of a meter, as it needs them: constants, which many meters may share. The default has no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeterRates {
    /// Time in which the committed burst comes.
    committed_burst: u64,
    /// Time in which the peak or excess burst comes.
    second_burst: u64,
    committed_octet: u32,
    second_octet: u32,
    committed_shift: u8,
    second_shift: u8,
    /// RFC 2697: tokens that the committed bucket has no room for go to the second.
    overflows: bool,
    /// RFC 2698: green packets need tokens of both buckets.
    peaks: bool,
}

/// A meter that gives each packet a colour. The default meter has no limit: each packet keeps its colour.
///
/// A packet that finds exactly as many tokens as it is charged octets gets them. Times of packets are rounded down to a sixteenth of a tick,
/// so that at most the tokens of so much time are given away for each packet: 0.3 octets at 100 Gbit/s and 2.6 GHz.
///
/// Ranges: rates from 1 kbit/s to 1 Tbit/s (above 300 Gbit/s an octet takes less than a part of a tick), packets of up to 2^32 - 1 octets,
/// and times below 2^59 ticks (seven years at 2.6 GHz).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    tokens: Tokens,
    rates: MeterRates,
}

const _: () = assert!(size_of::<Meter>() <= 48 && size_of::<Tokens>() == 16);

/// Time of an octet in parts of ticks: `mantissa` / 2^`shift`, right to 2^-31 of itself.
#[derive(Clone, Copy)]
struct OctetTime {
    mantissa: u32,
    shift: u8,
}

impl OctetTime {
    /// Right for up to 2^40 kbit/s and up to 2^36 ticks a second.
    fn new(rate: Rate, hz: u64) -> Self {
        let bits = (u128::from(hz) * 8) << PARTS;
        let time = (bits << 63) / (u128::from(rate.get()) * 1000);
        let excess = (u128::BITS - time.leading_zeros()).saturating_sub(32);
        OctetTime {
            mantissa: (time >> excess) as u32,
            shift: 63 - excess as u8,
        }
    }

    /// Time of so many octets, rounded down.
    #[inline(always)]
    fn of(self, octets: u32) -> u64 {
        (u64::from(octets) * u64::from(self.mantissa)) >> self.shift
    }

    /// The rate, with a burst that comes in a time; both rounded. Without a limit it is 0.
    fn kept(self, burst: u64, hz: u64) -> Kept {
        let mantissa = u128::from(self.mantissa);
        let rounded = |value: u128| (value + mantissa / 2).checked_div(mantissa).unwrap_or(0);
        let bits = (u128::from(hz) * 8) << PARTS;
        Kept {
            bits_per_second: rounded(bits << self.shift) as u64,
            burst: rounded(u128::from(burst) << self.shift) as u64,
        }
    }

    /// The time at this rate of the tokens that come in a time at another rate, rounded down, and at most `most`.
    fn instead_of(self, other: OctetTime, time: u64, most: u64) -> u64 {
        let scaled = u128::from(time) * u128::from(self.mantissa) / u128::from(other.mantissa);
        let same = match other.shift.checked_sub(self.shift) {
            // `time` is less than 2^60, mantissas differ by a factor of less than two, and shifts by less than 64: within 128 bits.
            Some(slower) => scaled << slower,
            None => scaled >> (self.shift - other.shift),
        };
        same.min(u128::from(most)) as u64
    }
}

/// The sum of two bursts and of any time that the clock shows in seven years is within 64 bits.
const LONGEST_BURST: u64 = 1 << 60;

impl Default for MeterRates {
    fn default() -> Self {
        MeterRates {
            committed_burst: u64::MAX,
            second_burst: u64::MAX,
            committed_octet: 0,
            second_octet: 0,
            committed_shift: 0,
            second_shift: 0,
            overflows: false,
            peaks: false,
        }
    }
}

impl MeterRates {
    /// `hz` ticks are a second. No burst is larger than what comes in 2^60 parts of a tick: 320 days at 2.6 GHz.
    pub fn new(settings: MeterSettings, hz: u64) -> Self {
        let ([cir, rate], [cbs, burst]) = match settings {
            MeterSettings::SingleRate { cir, cbs, ebs } => ([cir, cir], [cbs, ebs]),
            MeterSettings::TwoRate { pir, pbs, cir, cbs } => ([cir, pir], [cbs, pbs]),
            MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } => ([cir, eir], [cbs, ebs]),
        };
        let [committed, second] = [cir, rate].map(|rate| OctetTime::new(rate, hz));
        MeterRates {
            committed_burst: committed.of(cbs).min(LONGEST_BURST),
            second_burst: second.of(burst).min(LONGEST_BURST),
            committed_octet: committed.mantissa,
            second_octet: second.mantissa,
            committed_shift: committed.shift,
            second_shift: second.shift,
            overflows: matches!(settings, MeterSettings::SingleRate { .. }),
            peaks: matches!(settings, MeterSettings::TwoRate { .. }),
        }
    }

    fn has_limit(&self) -> bool {
        self.committed_octet != 0
    }

    /// The committed rate, and the peak or excess one, as the meter keeps them; `hz` is that of [`MeterRates::new`].
    pub fn kept(&self, hz: u64) -> [Kept; 2] {
        let [committed, second] = self.octet_times();
        [
            committed.kept(self.committed_burst, hz),
            second.kept(self.second_burst, hz),
        ]
    }

    #[inline(always)]
    fn octet_times(&self) -> [OctetTime; 2] {
        [
            OctetTime {
                mantissa: self.committed_octet,
                shift: self.committed_shift,
            },
            OctetTime {
                mantissa: self.second_octet,
                shift: self.second_shift,
            },
        ]
    }

    /// The colour of a packet that is charged so many octets and comes at `now` with a colour. A meter that does not know colours is told
    /// that it comes green. No packet gets a better colour than it had. A packet takes no tokens of a bucket that has too few.
    #[inline(always)]
    pub fn colour(&self, tokens: &mut Tokens, octets: u32, incoming: Colour, now: u64) -> Colour {
        let now = parts(now);
        let [committed_cost, second_cost] = self.octet_times().map(|time| time.of(octets));
        let later = |time| select_unpredictable(time > now, time, now);
        let (committed, second) = (later(tokens.committed), later(tokens.second));
        let base = select_unpredictable(self.overflows, committed, now);
        let in_committed = committed + committed_cost - now <= self.committed_burst;
        let in_second = second + second_cost - base <= self.second_burst;
        // Bits instead of branches: the colour of the next packet is hard to predict.
        let green = (incoming == Colour::Green) & in_committed & (in_second | !self.peaks);
        let yellow = (incoming != Colour::Red) & in_second & !green;
        let from_second = yellow | (green & (self.overflows | self.peaks));
        tokens.committed = committed + select_unpredictable(green, committed_cost, 0);
        tokens.second = second + select_unpredictable(from_second, second_cost, 0);
        let worse = select_unpredictable(yellow, Colour::Yellow, Colour::Red);
        select_unpredictable(green, Colour::Green, worse)
    }

    /// Tokens that a meter of unknown rates had, as those of these rates: as much time passes until the buckets are full, but none of them
    /// is emptier than empty. So a change is no burst.
    pub fn adopted(&self, tokens: Tokens, now: u64) -> Tokens {
        let now = parts(now);
        let committed = tokens.committed.clamp(now, now + self.committed_burst);
        let base = if self.overflows { committed } else { now };
        Tokens {
            committed,
            second: tokens.second.clamp(base, base + self.second_burst),
        }
    }

    /// Times in which the tokens came that there are at `now`, a time in parts of ticks.
    fn times(&self, tokens: Tokens, now: u64) -> [u64; 2] {
        let (committed, second) = (tokens.committed.max(now), tokens.second.max(now));
        let base = if self.overflows { committed } else { now };
        [
            self.committed_burst.saturating_sub(committed - now),
            self.second_burst.saturating_sub(second - base),
        ]
    }
}

impl Meter {
    /// A meter with full buckets; `hz` ticks are a second. No burst is larger than what comes in 2^60 parts of a tick: 320 days at 2.6 GHz.
    pub fn new(settings: MeterSettings, hz: u64) -> Self {
        Meter {
            tokens: Tokens::default(),
            rates: MeterRates::new(settings, hz),
        }
    }

    /// Whether there is a packet whose colour it changes.
    pub fn has_limit(&self) -> bool {
        self.rates.has_limit()
    }

    /// Whether two meters have the same settings, whatever tokens there are.
    pub fn agrees(self, other: Meter) -> bool {
        self.rates == other.rates
    }

    /// The colour of a packet that is charged so many octets and comes at `now` with a colour. A meter that does not know colours is told
    /// that it comes green. No packet gets a better colour than it had. A packet takes no tokens of a bucket that has too few.
    #[inline(always)]
    pub fn colour(&mut self, octets: u32, incoming: Colour, now: u64) -> Colour {
        self.rates.colour(&mut self.tokens, octets, incoming, now)
    }

    /// When its second bucket is full, in parts of ticks.
    pub(crate) fn full_at(&self) -> u64 {
        self.tokens.second
    }

    /// The same meter with no more tokens than a bucket would leave it that is full at a time in parts of ticks ([`MeterRates::adopted`]).
    pub(crate) fn with_less(self, full_at: u64, now: u64) -> Self {
        let one = Tokens {
            committed: full_at,
            second: full_at,
        };
        let less = self.rates.adopted(one, now);
        Meter {
            tokens: Tokens {
                committed: self.tokens.committed.max(less.committed),
                second: self.tokens.second.max(less.second),
            },
            ..self
        }
    }

    /// What its buckets have.
    #[inline(always)]
    pub(crate) fn tokens(&mut self) -> &mut Tokens {
        &mut self.tokens
    }

    /// The same settings with the tokens that another meter has at `now`, as far as there is room for them. Buckets of a meter
    /// without a limit are full. E is what P has beyond C if one of the meters has a peak rate and the other has none.
    pub fn continuing(self, before: Meter, now: u64) -> Self {
        if !self.has_limit() || !before.has_limit() {
            return self;
        }
        let now = parts(now);
        let (rates, former) = (self.rates, before.rates);
        let [committed, second] = former.times(before.tokens, now);
        let ([from, second_from], [to, second_to]) = (former.octet_times(), rates.octet_times());
        // A sum of two of them is within 64 bits.
        let most = u64::MAX / 2;
        let of_committed = second_to.instead_of(from, committed, most);
        let of_second = second_to.instead_of(second_from, second, most);
        let of_second = match (former.peaks, rates.peaks) {
            (true, false) => of_second.saturating_sub(of_committed),
            (false, true) => of_second + of_committed,
            _ => of_second,
        };
        let in_committed = to.instead_of(from, committed, rates.committed_burst);
        let committed = now + rates.committed_burst - in_committed;
        let base = if rates.overflows { committed } else { now };
        let second = base + rates.second_burst - of_second.min(rates.second_burst);
        Meter {
            tokens: Tokens { committed, second },
            rates,
        }
    }
}

#[cfg(test)]
mod tests;
