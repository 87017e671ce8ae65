//! What a meter is told: algorithm, rates and bursts.
use policy::Rate;

/// Rates and bursts of a [`Meter`](super::Meter). Bursts are in octets as [`Overhead`](policy::Overhead) charges them; a packet that is
/// charged more than a burst never has its colour.
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

impl MeterSettings {
    /// A rate alone, with the usual burst: no packet is yellow.
    pub fn of_rate(rate: Rate) -> Self {
        MeterSettings::SingleRate {
            cir: rate,
            cbs: MeterSettings::usual_burst(rate),
            ebs: 0,
        }
    }

    /// Octets of a burst where nothing else is said: 100 ms of the rate, and ten packets of Ethernet's size at least.
    pub fn usual_burst(rate: Rate) -> u32 {
        let octets = rate.get() * 1000 / 8 / 10;
        u32::try_from(octets).unwrap_or(u32::MAX).max(LEAST_BURST)
    }

    /// The settings with a session's own rates: a committed one, and one in place of the peak rate.
    pub fn of_session(self, committed: Option<Rate>, rate: Option<Rate>) -> Self {
        match self.committed_to(committed).limited_to(rate) {
            MeterSettings::TwoRate { pir, pbs, cir, cbs } if cir > pir => MeterSettings::TwoRate {
                pir,
                pbs,
                cir: pir,
                cbs: scaled(cbs, cir, pir),
            },
            settings => settings,
        }
    }

    /// The settings of two rates with a session's own committed rate. Its burst takes the same time as before.
    fn committed_to(self, rate: Option<Rate>) -> Self {
        let Some(rate) = rate else {
            return self;
        };
        match self {
            MeterSettings::SingleRate { .. } => self,
            MeterSettings::TwoRate { pir, pbs, cir, cbs } => MeterSettings::TwoRate {
                pir,
                pbs,
                cir: rate,
                cbs: scaled(cbs, cir, rate),
            },
            MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } => {
                MeterSettings::TwoRateDifferentiated {
                    cir: rate,
                    cbs: scaled(cbs, cir, rate),
                    eir,
                    ebs,
                }
            }
        }
    }

    /// The settings with a session's own rate in place of the peak rate, or of the committed one where there is no other. Bursts take the
    /// same time as before, and the committed rate is not above it.
    fn limited_to(self, rate: Option<Rate>) -> Self {
        let Some(rate) = rate else {
            return self;
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
                let rest = Rate::kbps((rate.get() - cir.get()).max(1));
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
}

/// A burst that takes as much time at another rate.
fn scaled(octets: u32, from: Rate, to: Rate) -> u32 {
    let octets = u128::from(octets) * u128::from(to.get()) / u128::from(from.get());
    u32::try_from(octets).unwrap_or(u32::MAX).max(LEAST_BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_committed_rate_of_the_session_is_within_its_peak_rate() {
        let two = MeterSettings::TwoRate {
            pir: Rate::kbps(100_000),
            pbs: 1_250_000,
            cir: Rate::kbps(20_000),
            cbs: 250_000,
        };
        let rates = |committed, rate| match two.of_session(Rate::new(committed), Rate::new(rate)) {
            MeterSettings::TwoRate { pir, cir, cbs, .. } => (pir.get(), cir.get(), cbs),
            other => panic!("{other:?}"),
        };
        assert_eq!(rates(0, 0), (100_000, 20_000, 250_000));
        assert_eq!(rates(40_000, 0), (100_000, 40_000, 500_000));
        assert_eq!(rates(200_000, 0), (100_000, 100_000, 1_250_000));
        assert_eq!(rates(200_000, 400_000), (400_000, 200_000, 2_500_000));
        assert_eq!(rates(40_000, 10_000), (10_000, 10_000, 125_000));
        let differentiated = MeterSettings::TwoRateDifferentiated {
            cir: Rate::kbps(20_000),
            cbs: 250_000,
            eir: Rate::kbps(80_000),
            ebs: 1_000_000,
        };
        let rates = |committed, rate| match differentiated
            .of_session(Rate::new(committed), Rate::new(rate))
        {
            MeterSettings::TwoRateDifferentiated { cir, eir, .. } => (cir.get(), eir.get()),
            other => panic!("{other:?}"),
        };
        assert_eq!(rates(40_000, 0), (40_000, 80_000));
        assert_eq!(rates(40_000, 100_000), (40_000, 60_000));
        assert_eq!(rates(40_000, 30_000), (30_000, 1));
    }

    #[test]
    fn a_sessions_rate_takes_the_place_of_the_largest() {
        let two = MeterSettings::TwoRate {
            pir: Rate::kbps(100_000),
            pbs: 1_000_000,
            cir: Rate::kbps(20_000),
            cbs: 200_000,
        };
        assert_eq!(two.limited_to(None), two);
        let limited = |kbps| two.limited_to(Some(Rate::kbps(kbps)));
        let of = |pir, pbs, cir, cbs| MeterSettings::TwoRate {
            pir: Rate::kbps(pir),
            pbs,
            cir: Rate::kbps(cir),
            cbs,
        };
        assert_eq!(limited(50_000), of(50_000, 500_000, 20_000, 200_000));
        assert_eq!(limited(200_000), of(200_000, 2_000_000, 20_000, 200_000));
        assert_eq!(limited(10_000), of(10_000, 100_000, 10_000, 100_000));
        assert_eq!(limited(1), of(1, 15_000, 1, 15_000));
        let differentiated = MeterSettings::TwoRateDifferentiated {
            cir: Rate::kbps(20_000),
            cbs: 200_000,
            eir: Rate::kbps(80_000),
            ebs: 800_000,
        };
        for kbps in [1, 19_999, 20_000, 20_001, 50_000, 1_000_000] {
            let limited = differentiated.limited_to(Some(Rate::kbps(kbps)));
            let MeterSettings::TwoRateDifferentiated { cir, cbs, eir, ebs } = limited else {
                panic!("{limited:?}")
            };
            assert!(cir.get() + eir.get() <= kbps + 1, "{limited:?}");
            assert!(
                cir.get().min(eir.get()) > 0 && cbs.min(ebs) >= LEAST_BURST,
                "{limited:?}"
            );
        }
    }
}
