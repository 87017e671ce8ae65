//! Use of the pools in the last week, and the date on which each will be full if it goes on like that.

use crate::journal::Journal;
use crate::records::{from_bytes, to_bytes};
use crate::store::Record as StoreRecord;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Prefix of the keys of trends in the store, followed by the family (`4` or `6`) and the pool's name.
pub(crate) const TREND_PREFIX: &[u8] = b"pool-trend/";

/// Time between two samples, in seconds.
const INTERVAL: u32 = 3600;
/// Number of samples: those of a week.
const MOST: u32 = 168;
/// Time that the samples must span, in hours: use goes up and down within a day.
const LEAST: u32 = 48;
/// A later date says nothing, in hours: ten years.
const LATEST: f64 = 10.0 * 365.0 * 24.0;

/// Pool of a family.
pub(crate) type PoolKey = (bool, String);

/// Use of one pool: numbers of allocated units by hours since 1970, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trend(VecDeque<(u32, u64)>);

impl Trend {
    /// Adds the sample of an hour. Samples of later hours are gone: the clock was set back.
    fn add(&mut self, hour: u32, used: u64) {
        self.0.retain(|(of, _)| *of < hour && hour - of < MOST);
        self.0.push_back((hour, used));
    }

    /// Time in seconds since 1970 at which so many units will be in use, by the line through the samples (least squares). `None`: the
    /// use does not grow, the pool is full, or there are too few samples.
    pub fn full_at(&self, size: u64) -> Option<u64> {
        let (&(first, _), &(last, used)) = (self.0.front()?, self.0.back()?);
        let (hours, left) = (last - first, size.checked_sub(used)?);
        if hours < LEAST || left == 0 {
            return None;
        }
        let count = self.0.len() as f64;
        let points = self.0.iter();
        let points = points.map(|(hour, used)| (f64::from(hour - first), *used as f64));
        let sums = points
            .clone()
            .fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        let (mean_x, mean_y) = (sums.0 / count, sums.1 / count);
        let (products, squares) = points.fold((0.0, 0.0), |(products, squares), (x, y)| {
            let x = x - mean_x;
            (products + x * (y - mean_y), squares + x * x)
        });
        let slope = products / squares;
        let grows = slope * f64::from(hours) >= 1.0;
        let to_go = left as f64 / slope;
        let seconds = (f64::from(last) + to_go) * f64::from(INTERVAL);
        (grows && to_go < LATEST).then_some(seconds as u64)
    }
}

/// Trends of all pools.
#[derive(Debug, Default)]
pub(crate) struct Trends {
    by_pool: BTreeMap<PoolKey, Trend>,
    /// Hour of the last samples.
    sampled: u32,
}

impl Trends {
    /// Trends from the store.
    pub fn resume(stored: impl IntoIterator<Item = (PoolKey, Trend)>) -> Self {
        Trends {
            by_pool: stored.into_iter().collect(),
            sampled: 0,
        }
    }

    /// Takes a sample of each pool if an hour has begun, and forgets pools that are not there any more.
    pub fn sample(
        &mut self,
        unix: u32,
        usage: impl Iterator<Item = (PoolKey, u64)>,
        journal: &mut Journal,
    ) {
        let hour = unix / INTERVAL;
        if hour == std::mem::replace(&mut self.sampled, hour) {
            return;
        }
        let mut before = std::mem::take(&mut self.by_pool);
        for (pool, used) in usage {
            let mut trend = before.remove(&pool).unwrap_or_default();
            trend.add(hour, used);
            journal.add(StoreRecord::put(key(&pool), to_bytes(&trend)));
            self.by_pool.insert(pool, trend);
        }
        let gone = before.keys().map(|pool| StoreRecord::delete(key(pool)));
        gone.for_each(|record| journal.add(record));
    }

    /// Trend of a pool.
    pub fn of(&self, pool: &PoolKey) -> Option<&Trend> {
        self.by_pool.get(pool)
    }
}

fn key((is_ipv4, name): &PoolKey) -> Vec<u8> {
    let family: &[u8] = if *is_ipv4 { b"4" } else { b"6" };
    [TREND_PREFIX, family, name.as_bytes()].concat()
}

/// Decodes a record of the store, whose key follows [`TREND_PREFIX`].
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<(PoolKey, Trend), String> {
    let (family, name) = key.split_first().ok_or("without a pool")?;
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(((*family == b'4', name), from_bytes(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEEK: u32 = 168;

    fn trend(hours: u32, used: impl Fn(u32) -> u64) -> Trend {
        let mut trend = Trend::default();
        (0..hours).for_each(|hour| trend.add(500_000 + hour, used(hour)));
        trend
    }

    #[test]
    fn a_pool_that_grows_by_ten_a_day_is_full_when_the_rest_is_used() {
        // 1,000 and ten a day; after a week 70 more, so that 930 of 2,000 are left
        let growing = trend(WEEK, |hour| 1000 + u64::from(hour) * 10 / 24);
        let days = (growing.full_at(2000).unwrap() / 3600 - 500_000 - 167) / 24;
        assert!((92..=94).contains(&days), "{days}");
        // with the ups and downs of a day
        let daily = |hour: u32| 1000 + u64::from(hour) * 10 / 24 + u64::from(hour % 24);
        let days = (trend(WEEK, daily).full_at(2000).unwrap() / 3600 - 500_000) / 24;
        assert!((75..=105).contains(&days), "{days}");
    }

    #[test]
    fn there_is_no_date_without_growth() {
        assert_eq!(trend(WEEK, |_| 1000).full_at(2000), None);
        assert_eq!(
            trend(WEEK, |hour| 1000 - u64::from(hour)).full_at(2000),
            None
        );
        let growing = |hour: u32| 1000 + u64::from(hour);
        assert_eq!(
            trend(LEAST, growing).full_at(2000),
            None,
            "too early to say"
        );
        assert_eq!(trend(WEEK, growing).full_at(1167), None, "it is full");
        assert_eq!(trend(WEEK, growing).full_at(u64::MAX), None, "in ages");
        assert_eq!(Trend::default().full_at(10), None);
    }

    #[test]
    fn a_week_is_kept_whatever_the_clock_does() {
        let mut trend = trend(1000, u64::from);
        assert_eq!((trend.0.len(), trend.0[0].0), (168, 500_000 + 832));
        trend.add(500_990, 7);
        assert_eq!(trend.0.back(), Some(&(500_990, 7)));
        assert!(trend.0.iter().is_sorted());
        trend.add(600_000, 8);
        assert_eq!(trend.0.len(), 1, "all else is older than a week");
    }

    proptest! {
        #[test]
        fn whatever_is_stored_gives_a_date_or_none(
            samples in prop::collection::vec((any::<u32>(), any::<u64>()), 0..200),
            size in any::<u64>(),
        ) {
            let mut trend = Trend::default();
            samples.iter().for_each(|(hour, used)| trend.add(*hour, *used));
            let last = trend.0.back().map_or(0, |(hour, _)| u64::from(*hour) * 3600);
            prop_assert!(trend.full_at(size).is_none_or(|at| at >= last));
            prop_assert!(trend.0.len() <= MOST as usize);
        }
    }
}
