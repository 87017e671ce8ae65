//! What a meter is told: algorithm, rates and bursts, and whether they make sense.
use super::TICK_PARTS;
use policy::Rate;
use thiserror::Error;

/// Rates and bursts of a [`Meter`](super::Meter). Bursts are in octets as [`Overhead`](super::Overhead) charges them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterSettings {
    /// Single rate three colour marker (RFC 2697).
    SingleRate {
        /// Committed information rate: both bursts fill at it.
        cir: Rate,
        /// Committed burst size: octets that are green at once. 0 if no packet is green.
        cbs: u32,
        /// Excess burst size: octets that are yellow at once. 0 if no packet is yellow.
        ebs: u32,
    },
    /// Two rate three colour marker (RFC 2698).
    TwoRate {
        /// Peak information rate of green and yellow packets together; not below `cir`.
        pir: Rate,
        /// Peak burst size.
        pbs: u32,
        /// Committed information rate of green packets.
        cir: Rate,
        /// Committed burst size.
        cbs: u32,
    },
    /// Differentiated service two-rate three-colour marker (RFC 4115).
    TwoRateDifferentiated {
        /// Committed information rate of green packets.
        cir: Rate,
        /// Committed burst size.
        cbs: u32,
        /// Excess information rate of yellow packets.
        eir: Rate,
        /// Excess burst size.
        ebs: u32,
    },
}

/// Octets that may always come at once: ten packets of Ethernet's size.
const LEAST_BURST: u32 = 15_000;

/// Why a meter cannot have its settings. Names are those of the RFCs: CIR, CBS, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MeterError {
    /// A rate is zero.
    #[error("{0} is 0 kbit/s")]
    NoRate(&'static str),
    /// A rate is larger than [`MeterSettings::MOST_RATE`].
    #[error("{0} is above 1 Tbit/s")]
    RateTooHigh(&'static str),
    /// No packet of the largest size could ever have this burst's colour.
    #[error("{name} is {octets} octets, less than the largest packet of {largest} octets")]
    BurstTooSmall {
        /// Name of the burst.
        name: &'static str,
        /// The burst.
        octets: u32,
        /// Octets that the largest packet is charged.
        largest: u32,
    },
    /// Green packets have a higher rate than green and yellow ones together (RFC 2698 §2).
    #[error("PIR is below CIR")]
    PeakBelowCommitted,
    /// A burst takes longer to fill than the clock can count.
    #[error("{0} takes too long to fill at its rate")]
    BurstTooLong(&'static str),
}

/// Bursts fill in less time than this, in parts of ticks: 320 days at 2.6 GHz. The sum of two bursts and of any time that the clock shows in
/// eight years is within 64 bits.
const MOST_TIME: u128 = 1 << 60;

impl MeterSettings {
    /// Largest rate of a meter: 1 Tbit/s. Above 300 Gbit/s an octet takes less than a part of a tick.
    pub const MOST_RATE: Rate = Rate(1_000_000_000);

    /// The settings with a session's own rate in place of the peak rate, or of the committed one where there is no other. Bursts take the
    /// same time as before, and the committed rate is not above it.
    pub fn limited_to(self, rate: Option<Rate>) -> Self {
        let Some(rate) = rate else {
            return self;
        };
        // the time of a burst stays
        let scaled = |octets: u32, from: Rate, to: Rate| {
            let octets = u128::from(octets) * u128::from(to.0) / u128::from(from.0.max(1));
            u32::try_from(octets).unwrap_or(u32::MAX).max(LEAST_BURST)
        };
        let least = |cir: Rate, cbs: u32| match cir <= rate {
            true => (cir, cbs),
            false => (rate, scaled(cbs, cir, rate)),
        };
        match self {
            MeterSettings::SingleRate { cir, cbs, ebs } => {
                let burst = |octets| {
                    if octets == 0 {
                        0
                    } else {
                        scaled(octets, cir, rate)
                    }
                };
                MeterSettings::SingleRate {
                    cir: rate,
                    cbs: burst(cbs),
                    ebs: burst(ebs),
                }
            }
            MeterSettings::TwoRate { pir, pbs, cir, cbs } => {
                let (pbs, (cir, cbs)) = (scaled(pbs, pir, rate), least(cir, cbs));
                let pir = rate;
                MeterSettings::TwoRate { pir, pbs, cir, cbs }
            }
            MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } => {
                let (cir, cbs) = least(cir, cbs);
                // at least a little, as no meter has a rate of 0
                let rest = Rate((rate.0 - cir.0).max(1));
                let ebs = scaled(ebs, eir, rest);
                MeterSettings::TwoRateDifferentiated {
                    cir,
                    cbs,
                    eir: rest,
                    ebs,
                }
            }
        }
    }

    /// Whether a meter can have these settings if packets are charged up to `largest` octets and `hz` ticks are a second. Says what
    /// is wrong first.
    pub fn check(&self, largest: u32, hz: u64) -> Result<(), MeterError> {
        match *self {
            MeterSettings::SingleRate { cir, cbs, ebs } => {
                // One of both may be zero (RFC 2697 §2).
                let cbs_if_needed = if ebs == 0 || cbs != 0 { largest } else { 0 };
                let ebs_if_needed = if ebs != 0 { largest } else { 0 };
                check_bucket(["CIR", "CBS"], cir, cbs, cbs_if_needed, hz)?;
                check_bucket(["CIR", "EBS"], cir, ebs, ebs_if_needed, hz)
            }
            MeterSettings::TwoRate { pir, pbs, cir, cbs } => {
                check_bucket(["CIR", "CBS"], cir, cbs, largest, hz)?;
                check_bucket(["PIR", "PBS"], pir, pbs, largest, hz)?;
                match pir < cir {
                    true => Err(MeterError::PeakBelowCommitted),
                    false => Ok(()),
                }
            }
            MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } => {
                check_bucket(["CIR", "CBS"], cir, cbs, largest, hz)?;
                check_bucket(["EIR", "EBS"], eir, ebs, largest, hz)
            }
        }
    }
}

/// Whether a bucket of so many octets can be; the names are those of its rate and of its burst.
fn check_bucket(
    [rate_name, name]: [&'static str; 2],
    rate: Rate,
    octets: u32,
    largest: u32,
    hz: u64,
) -> Result<(), MeterError> {
    if rate == Rate(0) {
        return Err(MeterError::NoRate(rate_name));
    }
    if rate > MeterSettings::MOST_RATE {
        return Err(MeterError::RateTooHigh(rate_name));
    }
    if octets < largest {
        return Err(MeterError::BurstTooSmall {
            name,
            octets,
            largest,
        });
    }
    let bits = (u128::from(octets) * 8) << TICK_PARTS.bits;
    match bits * u128::from(hz) / (u128::from(rate.0) * 1000) < MOST_TIME {
        true => Ok(()),
        false => Err(MeterError::BurstTooLong(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 2_600_000_000;

    fn single(cir: u64, cbs: u32, ebs: u32) -> Result<(), MeterError> {
        let cir = Rate(cir);
        MeterSettings::SingleRate { cir, cbs, ebs }.check(9216, HZ)
    }

    fn two(pir: u64, pbs: u32, cir: u64, cbs: u32) -> Result<(), MeterError> {
        let (pir, cir) = (Rate(pir), Rate(cir));
        MeterSettings::TwoRate { pir, pbs, cir, cbs }.check(9216, HZ)
    }

    fn differentiated(cir: u64, cbs: u32, eir: u64, ebs: u32) -> Result<(), MeterError> {
        let (cir, eir) = (Rate(cir), Rate(eir));
        MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs }.check(9216, HZ)
    }

    fn too_small(name: &'static str, octets: u32) -> Result<(), MeterError> {
        Err(MeterError::BurstTooSmall {
            name,
            octets,
            largest: 9216,
        })
    }

    #[test]
    fn what_is_sound_passes() {
        assert_eq!(single(64, 1_000_000_000, 1_000_000_000), Ok(()));
        assert_eq!(single(100_000_000, 9216, 0), Ok(()));
        assert_eq!(single(64, 0, 9216), Ok(()));
        assert_eq!(two(100, 9216, 100, 1_000_000_000), Ok(()));
        assert_eq!(differentiated(100_000_000, 9216, 64, 9216), Ok(()));
    }

    #[test]
    fn a_sessions_rate_takes_the_place_of_the_largest() {
        let two = MeterSettings::TwoRate {
            pir: Rate(100_000),
            pbs: 1_000_000,
            cir: Rate(20_000),
            cbs: 200_000,
        };
        assert_eq!(two.limited_to(None), two);
        let limited = |kbps| two.limited_to(Some(Rate(kbps)));
        let of = |pir, pbs, cir, cbs| MeterSettings::TwoRate {
            pir: Rate(pir),
            pbs,
            cir: Rate(cir),
            cbs,
        };
        assert_eq!(limited(50_000), of(50_000, 500_000, 20_000, 200_000));
        assert_eq!(limited(200_000), of(200_000, 2_000_000, 20_000, 200_000));
        assert_eq!(limited(10_000), of(10_000, 100_000, 10_000, 100_000));
        assert_eq!(limited(1), of(1, 15_000, 1, 15_000));
        let differentiated = MeterSettings::TwoRateDifferentiated {
            cir: Rate(20_000),
            cbs: 200_000,
            eir: Rate(80_000),
            ebs: 800_000,
        };
        for kbps in [1, 19_999, 20_000, 20_001, 50_000, 1_000_000] {
            let limited = differentiated.limited_to(Some(Rate(kbps)));
            assert_eq!(limited.check(9216, HZ), Ok(()), "{kbps}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(single(0, 9216, 0), Err(MeterError::NoRate("CIR")));
        assert_eq!(two(0, 9216, 1, 9216), Err(MeterError::NoRate("PIR")));
        let no_excess = differentiated(1, 9216, 0, 9216);
        assert_eq!(no_excess, Err(MeterError::NoRate("EIR")));
        let too_high = single(1_000_000_001, 9216, 0);
        assert_eq!(too_high, Err(MeterError::RateTooHigh("CIR")));
        assert_eq!(single(64, 0, 0), too_small("CBS", 0));
        assert_eq!(single(64, 9215, 0), too_small("CBS", 9215));
        assert_eq!(single(64, 9216, 9215), too_small("EBS", 9215));
        assert_eq!(two(64, 9215, 64, 9216), too_small("PBS", 9215));
        assert_eq!(differentiated(64, 9216, 64, 0), too_small("EBS", 0));
        let below = two(63, 9216, 64, 9216);
        assert_eq!(below, Err(MeterError::PeakBelowCommitted));
        let too_long = single(1, u32::MAX, 0);
        assert_eq!(too_long, Err(MeterError::BurstTooLong("CBS")));
        assert_eq!(below.unwrap_err().to_string(), "PIR is below CIR");
    }
}
