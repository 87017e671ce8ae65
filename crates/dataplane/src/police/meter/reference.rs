//! The RFCs' meters as they are written: counts of tokens, as exact fractions.
use super::{Colour, MeterSettings};

/// Tokens are counted in parts of an octet, so that a whole number of them comes in each tick at any rate.
pub struct Reference {
    settings: MeterSettings,
    hz: u64,
    /// Tokens of the committed bucket.
    committed: i128,
    /// Tokens of the peak or excess bucket.
    second: i128,
    /// Time of the counts in ticks.
    at: u64,
    /// Packets and octets so far.
    seen: [i128; 2],
}

/// Committed rate in kbit/s and burst in octets; the same of the second bucket.
pub fn buckets(settings: MeterSettings) -> [(u64, u32); 2] {
    match settings {
        MeterSettings::SingleRate { cir, cbs, ebs } => [(cir.get(), cbs), (cir.get(), ebs)],
        MeterSettings::TwoRate { pir, pbs, cir, cbs } => [(cir.get(), cbs), (pir.get(), pbs)],
        MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } => {
            [(cir.get(), cbs), (eir.get(), ebs)]
        }
    }
}

impl Reference {
    /// Full buckets at time 0.
    pub fn new(settings: MeterSettings, hz: u64) -> Self {
        let mut made = Reference {
            settings,
            hz,
            committed: 0,
            second: 0,
            at: 0,
            seen: [0; 2],
        };
        [made.committed, made.second] = buckets(settings).map(|(_, burst)| made.octets(burst));
        made
    }

    fn octets(&self, octets: u32) -> i128 {
        i128::from(octets) * 8 * i128::from(self.hz)
    }

    /// RFC 2697 §3, RFC 2698 §3, RFC 4115 §3: tokens come.
    pub fn advance(&mut self, now: u64) {
        let time = i128::from(now - self.at);
        self.at = now;
        let [(rate, burst), (second_rate, second_burst)] = buckets(self.settings);
        let (most, most_second) = (self.octets(burst), self.octets(second_burst));
        let all = self.committed + time * i128::from(rate) * 1000;
        self.committed = all.min(most);
        let for_second = match self.settings {
            MeterSettings::SingleRate { .. } => all - self.committed,
            _ => time * i128::from(second_rate) * 1000,
        };
        self.second = (self.second + for_second).min(most_second);
    }

    /// The colour by the text.
    pub fn colour(&self, octets: u32, incoming: Colour) -> Colour {
        let size = self.octets(octets);
        let (committed, second) = (self.committed >= size, self.second >= size);
        match self.settings {
            MeterSettings::TwoRate { .. } => {
                if incoming == Colour::Red || !second {
                    Colour::Red
                } else if incoming == Colour::Yellow || !committed {
                    Colour::Yellow
                } else {
                    Colour::Green
                }
            }
            _ => {
                if incoming == Colour::Green && committed {
                    Colour::Green
                } else if incoming != Colour::Red && second {
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
        }
    }

    /// Takes the tokens of a packet of this colour.
    pub fn take(&mut self, octets: u32, colour: Colour) {
        let size = self.octets(octets);
        let peak = matches!(self.settings, MeterSettings::TwoRate { .. });
        if colour == Colour::Green {
            self.committed -= size;
        }
        if colour == Colour::Yellow || (colour == Colour::Green && peak) {
            self.second -= size;
        }
        self.seen = [self.seen[0] + 1, self.seen[1] + i128::from(octets)];
    }

    /// Whether a count is so near to a packet's size that rounding decides: each packet and each burst is rounded by less than a part of a
    /// tick, which E of RFC 2697 sees twice, and times of octets are right to 2^-31.
    pub fn is_close(&self, octets: u32) -> bool {
        let [(rate, burst), (second_rate, second_burst)] = buckets(self.settings);
        let [packets, sum] = self.seen;
        let part = i128::from(rate.max(second_rate)) * 1000 / 16 + 1;
        let largest = i128::from(burst.max(second_burst));
        let relative = ((largest + sum + i128::from(octets)) * 8 * i128::from(self.hz)) >> 30;
        let tolerance = 2 * (packets + 2) * part + relative;
        let size = self.octets(octets);
        [self.committed, self.second]
            .iter()
            .any(|tokens| (tokens - size).abs() <= tolerance)
    }
}
