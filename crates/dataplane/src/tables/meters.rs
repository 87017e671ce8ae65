//! Meters of sessions whose policies have a policer: one cache line for each direction, which packets of other sessions do not touch.
use crate::compiled::PolicerSettings;
use crate::police::{Colour, Meter, MeterSettings, Tokens};

/// A session's meter of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct MeterLine {
    meter: Meter,
    /// Packets beyond the committed rate, which passed.
    pub yellow: u64,
    /// The compilation that has the meter's policer; 0: none.
    made_of: u32,
}

const _: () = assert!(size_of::<MeterLine>() == 64);

impl MeterLine {
    /// Whether the meter is one of this compilation's policer.
    #[inline(always)]
    pub fn is_of(&self, compilation: u32) -> bool {
        self.made_of == compilation
    }

    /// Tokens of the meter.
    #[inline(always)]
    pub fn tokens(&mut self) -> &mut Tokens {
        self.meter.tokens()
    }

    /// Lets the next packet make the meter anew, with the tokens that it has.
    pub fn forget(&mut self) {
        self.made_of = 0;
    }

    /// When the meter's second bucket is full, in parts of ticks.
    pub fn full_at(&self) -> u64 {
        self.meter.full_at()
    }

    /// Makes the meter of a compilation's policer. It goes on with the tokens of the former one, and has no more than the bucket of the
    /// session's rate, which is full at a time in parts of ticks, so that a change is no burst.
    pub fn renew(
        &mut self,
        (compilation, settings): (u32, MeterSettings),
        full_at: u64,
        now: u64,
        hz: u64,
    ) {
        let meter = Meter::new(settings, hz).continuing(self.meter, now);
        self.meter = meter.with_less(full_at, now);
        self.made_of = compilation;
    }

    /// The colour of a packet of so many octets of IP, which comes with a colour.
    #[inline(always)]
    pub fn colour(
        &mut self,
        policer: &PolicerSettings,
        octets: usize,
        incoming: Colour,
        now: u64,
    ) -> Colour {
        let charged = policer.overhead.charged(octets as u32);
        self.meter.colour(charged, incoming, now)
    }
}
