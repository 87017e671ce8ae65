//! Policers that the packets of a session pass, with the rates and bursts that its worker keeps.
use super::{CompiledPolicy, PolicyCompiler};
use crate::police::{Kept, MeterRates, MeterSettings, Policer};
use crate::tables::{homes, sessions::own_rates};
use policy::{Direction, PacketSettings};

/// Whose packets a policer polices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicerOwner {
    /// Those of a class, by its position in the policy.
    Class(usize),
    /// Those of the session, by the policer of its policy.
    Policy,
    /// Those of the session, by its own rate alone.
    Session,
    /// Those of all sessions of the subscriber.
    Subscriber,
}

/// How a policer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicerKind {
    /// One rate, above which packets are dropped.
    SingleBucket,
    /// RFC 2697.
    SingleRate,
    /// RFC 2698.
    TwoRate,
    /// RFC 4115.
    TwoRateDifferentiated,
}

/// A policer of a session's packets of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPolicer {
    /// Whose packets it polices.
    pub owner: PolicerOwner,
    /// How it works.
    pub kind: PolicerKind,
    /// The only rate, or the committed one.
    pub committed: Kept,
    /// The peak rate, or the excess one. `None`: there is one bucket.
    pub second: Option<Kept>,
}

impl SessionPolicer {
    fn metered(owner: PolicerOwner, settings: MeterSettings, hz: u64) -> Self {
        let [committed, second] = MeterRates::new(settings, hz).kept(hz);
        SessionPolicer {
            owner,
            kind: match settings {
                MeterSettings::SingleRate { .. } => PolicerKind::SingleRate,
                MeterSettings::TwoRate { .. } => PolicerKind::TwoRate,
                MeterSettings::TwoRateDifferentiated { .. } => PolicerKind::TwoRateDifferentiated,
            },
            committed,
            second: Some(second),
        }
    }
}

impl PolicyCompiler {
    /// Policers of a session's packets in a direction, in the order in which they pass them. `policy` is the session's, if it has one. The
    /// worker makes them of the same settings by the same code, when the first packet needs them.
    pub fn policers(
        &self,
        policy: Option<&CompiledPolicy>,
        packets: &PacketSettings,
        direction: Direction,
    ) -> Vec<SessionPolicer> {
        let hz = self.hz;
        let bucket = |owner, rate| {
            let committed = Policer::new(rate, hz).kept(hz)?;
            Some(SessionPolicer {
                owner,
                kind: PolicerKind::SingleBucket,
                committed,
                second: None,
            })
        };
        let [committed, rate] = own_rates(packets, direction);
        let classes = policy.and_then(CompiledPolicy::classes).into_iter();
        let of_classes = classes.flat_map(|classes| classes.meters(direction));
        let of_classes = of_classes.map(|(position, settings)| {
            SessionPolicer::metered(PolicerOwner::Class(position), settings, hz)
        });
        let policer = policy.and_then(CompiledPolicy::policer);
        let waits = direction == Direction::Down && policy.is_some_and(|p| p.queues().is_some());
        let of_session = match policer {
            Some(policer) => {
                let settings = policer.meter.of_session(committed, rate);
                Some(SessionPolicer::metered(PolicerOwner::Policy, settings, hz))
            }
            None if waits => None,
            None => bucket(PolicerOwner::Session, rate),
        };
        let of_home = bucket(PolicerOwner::Subscriber, homes::rate(packets, direction));
        of_classes.chain(of_session).chain(of_home).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::{PolicerSettings, PolicyClass, PolicyRules};
    use policy::{Overhead, Rate};

    const COMPILER: PolicyCompiler = PolicyCompiler {
        workers: 1,
        hz: 2_600_000_000,
    };

    fn policer(cir: u64, pir: u64) -> PolicerSettings {
        let [cir, pir] = [cir, pir].map(Rate::kbps);
        PolicerSettings {
            meter: MeterSettings::TwoRate {
                pir,
                pbs: 1_250_000,
                cir,
                cbs: 250_000,
            },
            overhead: Overhead::default(),
            is_colour_aware: false,
            yellow_mark: None,
        }
    }

    fn class(name: &str, policer: Option<PolicerSettings>) -> PolicyClass {
        PolicyClass {
            name: name.into(),
            dscps: 0,
            priorities: 0,
            policer,
            mark: None,
        }
    }

    #[test]
    fn policers_have_the_session_s_own_rates_and_come_in_the_order_of_packets() {
        let classes = vec![class("video", None), class("voice", Some(policer(64, 128)))];
        let rules = PolicyRules {
            classes,
            policer: Some(policer(20_000, 100_000)),
            ..PolicyRules::default()
        };
        let compiled = COMPILER.compile(&rules).unwrap();
        let packets = PacketSettings {
            rate_down: Rate::new(50_000),
            subscriber_rate_down: Rate::new(80_000),
            ..PacketSettings::default()
        };
        let shown = |policy, direction| -> Vec<_> {
            let policers = COMPILER.policers(policy, &packets, direction);
            let rate = |kept: Kept| (kept.bits_per_second / 1000, kept.burst);
            let row = |p: SessionPolicer| (p.owner, rate(p.committed), p.second.map(rate));
            policers.into_iter().map(row).collect()
        };
        let voice = (
            PolicerOwner::Class(1),
            (64, 250_000),
            Some((128, 1_250_000)),
        );
        // the peak burst takes as long at the session's rate as at the policer's
        let limited = (
            PolicerOwner::Policy,
            (20_000, 250_000),
            Some((50_000, 625_000)),
        );
        let down = shown(Some(&compiled), Direction::Down);
        assert_eq!(down[..2], [voice, limited]);
        assert_eq!(down[2].0, PolicerOwner::Subscriber);
        let whole = (
            PolicerOwner::Policy,
            (20_000, 250_000),
            Some((100_000, 1_250_000)),
        );
        assert_eq!(shown(Some(&compiled), Direction::Up), [voice, whole]);
        let alone = shown(None, Direction::Down);
        let owners: Vec<_> = alone.iter().map(|(owner, ..)| *owner).collect();
        assert_eq!(owners, [PolicerOwner::Session, PolicerOwner::Subscriber]);
        assert!(shown(None, Direction::Up).is_empty());
    }
}
