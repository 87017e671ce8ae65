//! Jitter of interim accounting records, so that those of sessions that began together are spread.

use crate::topology::Seid;
use core::time::Duration;

/// Jitter of a session's interim records: the same for a record whenever its time is computed, and of its own for each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter {
    pub seid: Seid,
    /// Maximum variation of the time between two records, in percent of the interval.
    pub percent: u8,
}

impl Jitter {
    /// Time of a record since the session's start. It is away from its multiple of the interval by up to half of the variation, so that
    /// the time between two records varies by up to all of it, and the interval is kept on the average.
    pub fn time_of(self, number: u32, interval: Duration) -> Duration {
        let multiple = interval.saturating_mul(number);
        let widest = interval.mul_f64(f64::from(self.percent) / 200.0);
        let share = share(self.seid.0 ^ u64::from(number).rotate_right(20));
        (multiple + widest.mul_f64(2.0 * share)).saturating_sub(widest)
    }
}

/// Number from 0 to 1 that looks random and depends on the seed alone (the finalizer of SplitMix64).
fn share(seed: u64) -> f64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Account, Started};

    #[test]
    fn the_time_between_interim_records_varies_as_much_as_it_may() {
        let at = Duration::from_secs;
        for percent in [1, 10, 50] {
            let longest = at(100).mul_f64(1.0 + f64::from(percent) / 100.0);
            let shortest = at(100).mul_f64(1.0 - f64::from(percent) / 100.0);
            let (mut gaps, mut firsts) = (Vec::new(), Vec::new());
            for seid in (1..20).map(Seid) {
                let jitter = Jitter { seid, percent };
                let mut account = Account {
                    started: Some(Started {
                        at: Duration::ZERO,
                        before: 0,
                        unix: 0,
                    }),
                    ..Account::default()
                };
                let mut now = Duration::ZERO;
                for number in 1..200 {
                    account.arm_interim(now, Some(at(100)), jitter);
                    let next = account.next_interim.get().unwrap();
                    account.arm_interim((now + next) / 2, Some(at(100)), jitter);
                    assert_eq!(
                        account.next_interim.get(),
                        Some(next),
                        "whenever it is computed"
                    );
                    assert!(next.abs_diff(at(100) * number) <= (longest - at(100)) / 2);
                    gaps.extend((number > 1).then(|| next - now));
                    firsts.extend((number == 1).then_some(next));
                    now = next;
                }
            }
            assert!(gaps.iter().all(|gap| (shortest..=longest).contains(gap)));
            let varies = (longest - shortest).mul_f64(0.7);
            let (most, least) = (gaps.iter().max().unwrap(), gaps.iter().min().unwrap());
            assert!(*most - *least > varies, "{least:?} {most:?}");
            firsts.sort();
            firsts.dedup();
            assert_eq!(firsts.len(), 19, "each session has its own");
        }
    }
}
