//! Meters of sessions whose policies have a policer: one cache line for each direction, which packets of other sessions do not touch.
use crate::compiled::Policer;
use crate::police::{Colour, Meter};
use policy::Rate;

/// A session's meter of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct MeterLine {
    meter: Meter,
    /// Packets beyond the committed rate, which passed.
    pub yellow: u32,
    /// Number of the policer that the meter is made of; 0: none.
    made_of: u32,
}

const _: () = assert!(size_of::<MeterLine>() == 64);

impl MeterLine {
    /// Whether the meter is one of this policer.
    #[inline(always)]
    pub fn is_of(&self, policer: &Policer) -> bool {
        self.made_of == policer.number
    }

    /// Lets the next packet make the meter anew, with the tokens that it has.
    pub fn forget(&mut self) {
        self.made_of = 0;
    }

    /// Makes the meter of a policer and the session's own rate. It goes on with the tokens of the former one, so that a change is no burst.
    #[cold]
    #[inline(never)]
    pub fn renew(&mut self, policer: &Policer, rate: Option<Rate>, now: u64, hz: u64) {
        let settings = policer.settings.meter.limited_to(rate);
        self.meter = Meter::new(settings, hz).continuing(self.meter, now);
        self.made_of = policer.number;
    }

    /// The colour of a packet of so many octets of IP, which comes with a colour.
    #[inline(always)]
    pub fn colour(
        &mut self,
        policer: &Policer,
        octets: usize,
        incoming: Colour,
        now: u64,
    ) -> Colour {
        let charged = policer.settings.overhead.charged(octets as u32);
        let colour = self.meter.colour(charged, incoming, now);
        self.yellow = self
            .yellow
            .wrapping_add(u32::from(colour == Colour::Yellow));
        colour
    }
}
