//! Durations, counted by size.

use core::fmt;
use core::time::Duration;

/// Each doubling of a duration is cut into this many equal parts, as a power of two.
const PARTS: u32 = 5;
/// Counters: every duration below 2^64 ns has one.
const COUNTERS: usize = (64 - PARTS as usize + 1) << PARTS;

/// A histogram of durations, exact to 1/32 (about 3 %) whatever their size.
///
/// ```
/// use core::time::Duration;
///
/// let mut times = cpe::Histogram::default();
/// (1..=100).for_each(|ms| times.record(Duration::from_millis(ms)));
/// let median = times.quantile(0.5).unwrap().as_secs_f64();
/// assert!((median - 0.05).abs() < 0.05 / 32.0);
/// assert_eq!(times.max(), Some(Duration::from_millis(100)));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counters: Box<[u64; COUNTERS]>,
    count: u64,
    sum: u128,
    /// Smallest and largest, in ns.
    range: [u64; 2],
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counters: Box::new([0; COUNTERS]),
            count: 0,
            sum: 0,
            range: [u64::MAX, 0],
        }
    }
}

impl Histogram {
    /// Counts a duration; above 584 years it counts as that.
    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counters[counter_of(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        let [least, most] = self.range;
        self.range = [least.min(nanos), most.max(nanos)];
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest one.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.range[1]))
    }

    /// Their mean.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(self.count.into())?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// The duration that a share of them, 0 to 1, does not exceed.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        if share >= 1.0 {
            return self.max();
        }
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let found = self.counters.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let [least, most] = self.range;
        Some(Duration::from_nanos(middle_of(found).clamp(least, most)))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantiles = [0.5, 0.99].map(|share| self.quantile(share));
        write!(f, "Histogram {{ {} counted, {quantiles:?} }}", self.count)
    }
}

/// The counter of a number of nanoseconds: below 2^PARTS each has its own.
fn counter_of(nanos: u64) -> usize {
    let doublings = nanos.max(1).ilog2().saturating_sub(PARTS);
    ((doublings << PARTS) as u64 + (nanos >> doublings)) as usize
}

/// The middle of what a counter counts.
fn middle_of(counter: usize) -> u64 {
    let doublings = (counter >> PARTS).saturating_sub(1) as u32;
    let least = ((counter - ((doublings as usize) << PARTS)) as u64) << doublings;
    least + ((1 << doublings) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_counted_has_no_quantiles() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.quantile(0.5), empty.max(), empty.mean()),
            (None, None, None)
        );
    }

    #[test]
    fn quantiles_of_unequal_shares_are_told_apart() {
        let mut times = Histogram::default();
        (0..990).for_each(|_| times.record(Duration::from_micros(100)));
        (0..10).for_each(|_| times.record(Duration::from_secs(2)));
        let close = |share: f64| times.quantile(share).map(|t| t.as_secs_f64());
        assert!((close(0.5).unwrap() - 1e-4).abs() < 4e-6);
        assert!((close(0.99).unwrap() - 1e-4).abs() < 4e-6);
        assert!((close(0.991).unwrap() - 2.0).abs() < 0.07);
        assert_eq!(times.quantile(1.0), times.max());
        assert_eq!(times.mean().unwrap().as_micros(), 20_099);
    }

    proptest! {
        #[test]
        fn a_counter_is_close_to_what_it_counts(nanos: u64) {
            let middle = middle_of(counter_of(nanos));
            let off = middle.abs_diff(nanos);
            prop_assert!(off <= nanos >> PARTS, "{nanos} is counted as {middle}");
        }

        #[test]
        fn larger_durations_have_no_smaller_counters(a: u64, b: u64) {
            prop_assert_eq!(counter_of(a.min(b)) <= counter_of(a.max(b)), true);
            prop_assert!(counter_of(a) < COUNTERS);
        }
    }
}
