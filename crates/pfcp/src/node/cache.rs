//! Answers that were given, so that a request that comes again gets the same one (TS 29.244 §6.4).
//!
//! Entries are kept by age: each age takes the requests of a quarter of the time for which they are kept, and is dropped as a whole. So
//! memory follows the rate of requests, and none is left a while after the last one. At 30,000 requests a second, with answers of 60
//! octets that are kept for 25 seconds, it is about 140 MB for each peer; at 1,000 it is 5 MB. An idle peer's heartbeats need less
//! than 1 kB.
use core::hash::Hasher;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::hash::DefaultHasher;

/// Port of the peer, which is one address, and sequence number.
type Key = (u16, u32);

/// Number of ages in the time for which entries are kept.
const AGES: u32 = 4;

#[derive(Debug)]
struct Entry {
    /// Of the request's octets: a peer that restarted may use a number again for something else.
    fingerprint: u64,
    /// Place of the answer in its age's answers, and its length.
    answer: Option<(u32, u16)>,
}

/// Requests that came within the same time.
#[derive(Debug)]
struct Age {
    began: Duration,
    entries: HashMap<Key, Entry>,
    answers: Vec<u8>,
}

impl Age {
    fn octets(&self) -> usize {
        // A hash table has an octet for each place beside the entry.
        self.entries.capacity() * (size_of::<(Key, Entry)>() + 1) + self.answers.capacity()
    }
}

/// What is known of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<'a> {
    /// Nothing: it is to be handled now.
    New,
    /// It is being handled.
    InProgress,
    /// It was answered.
    Answered(&'a [u8]),
}

/// The requests of one peer, bounded in time and memory.
#[derive(Debug)]
pub(super) struct ResponseCache {
    /// The oldest in front.
    ages: VecDeque<Age>,
    keep: Duration,
    /// Maximum memory, in octets.
    most: usize,
}

impl ResponseCache {
    /// Entries are kept for `keep`, or up to a quarter longer.
    pub fn new(keep: Duration, most: usize) -> Self {
        ResponseCache {
            ages: VecDeque::new(),
            keep,
            most,
        }
    }

    /// Looks a request up.
    pub fn look_up(&mut self, now: Duration, key: Key, request: &[u8]) -> Known<'_> {
        self.expire(now);
        let mut ages = self.ages.iter().rev();
        let found = ages.find_map(|age| Some((age, age.entries.get(&key)?)));
        match found {
            Some((age, entry)) if entry.fingerprint == fingerprint(request) => {
                let answer = entry.answer.and_then(|(from, length)| {
                    let (from, length) = (from as usize, usize::from(length));
                    age.answers.get(from..from + length)
                });
                answer.map_or(Known::InProgress, Known::Answered)
            }
            _ => Known::New,
        }
    }

    /// Remembers a new request; `false` if there is no memory left. No answer makes room for it: its request would be handled twice.
    pub fn begin(&mut self, now: Duration, key: Key, request: &[u8]) -> bool {
        let octets: usize = self.ages.iter().map(Age::octets).sum();
        if octets >= self.most {
            return false;
        }
        let is_young = |age: &Age| now < age.began + self.keep / AGES;
        if !self.ages.back().is_some_and(is_young) {
            self.ages.push_back(Age {
                began: now,
                entries: HashMap::new(),
                answers: Vec::new(),
            });
        }
        // A number that is used again for something else is found in the younger age first.
        if let Some(age) = self.ages.back_mut() {
            let entry = Entry {
                fingerprint: fingerprint(request),
                answer: None,
            };
            age.entries.insert(key, entry);
        }
        true
    }

    /// Keeps the answer, unless the request has been forgotten meanwhile.
    pub fn answer(&mut self, key: Key, answer: &[u8]) {
        for age in self.ages.iter_mut().rev() {
            let Some(entry) = age.entries.get_mut(&key) else {
                continue;
            };
            if let (Ok(from), Ok(length)) = (age.answers.len().try_into(), answer.len().try_into())
            {
                entry.answer = Some((from, length));
                age.answers.extend_from_slice(answer);
            }
            return;
        }
    }

    /// Drops what is too old.
    pub fn expire(&mut self, now: Duration) {
        let life = self.keep + self.keep / AGES;
        while self.ages.front().is_some_and(|age| age.began + life <= now) {
            self.ages.pop_front();
        }
    }
}

/// The first octet does not count: it says whether another message follows in the datagram.
fn fingerprint(request: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(request.get(1..).unwrap_or_default());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(25);

    fn key(sequence: u32) -> Key {
        (8805, sequence)
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_request_that_comes_again_gets_its_answer_until_it_expires() {
        let mut cache = ResponseCache::new(KEEP, 1 << 20);
        assert_eq!(cache.look_up(at(0), key(1), b"request"), Known::New);
        assert!(cache.begin(at(0), key(1), b"request"));
        assert_eq!(cache.look_up(at(1), key(1), b"request"), Known::InProgress);
        cache.answer(key(1), b"answer");
        let known = Known::Answered(b"answer");
        assert_eq!(cache.look_up(at(2), key(1), b"request"), known);
        assert!(cache.begin(at(24), key(2), b"request"));
        assert_eq!(cache.look_up(at(25), key(1), b"request"), known);
        assert_eq!(cache.look_up(at(32), key(1), b"request"), Known::New);
        assert_eq!(cache.look_up(at(32), key(2), b"request"), Known::InProgress);
    }

    #[test]
    fn the_same_number_for_another_request_is_new() {
        let mut cache = ResponseCache::new(KEEP, 1 << 20);
        for (second, request) in [(0, b"one"), (4, b"two"), (9, b"six")] {
            assert_eq!(cache.look_up(at(second), key(1), request), Known::New);
            assert!(cache.begin(at(second), key(1), request));
            cache.answer(key(1), request);
        }
        assert_eq!(
            cache.look_up(at(26), key(1), b"six"),
            Known::Answered(b"six")
        );
        let other_port = (40_000, 1);
        assert_eq!(cache.look_up(at(26), other_port, b"six"), Known::New);
    }

    #[test]
    fn memory_has_a_bound_and_is_free_again_later() {
        let mut cache = ResponseCache::new(KEEP, 10_000);
        let all = (0..).take_while(|n| cache.begin(at(0), key(*n), b"r"));
        let taken = all.count() as u32;
        assert!((100..300).contains(&taken), "{taken}");
        assert_eq!(cache.look_up(at(1), key(0), b"r"), Known::InProgress);
        cache.expire(at(32));
        assert!(cache.ages.is_empty() && cache.begin(at(32), key(0), b"r"));
    }

    /// What the description of this module says.
    #[test]
    fn memory_follows_the_rate() {
        let mut cache = ResponseCache::new(KEEP, usize::MAX);
        let rate = 3_000; // a tenth, so that the test is quick
        for n in 0..rate * 40 {
            let now = Duration::from_secs(1) * n / rate;
            cache.expire(now);
            assert!(cache.begin(now, key(n), b"r"));
            cache.answer(key(n), &[0; 60]);
        }
        let octets: usize = cache.ages.iter().map(Age::octets).sum();
        assert!((10_000_000..14_500_000).contains(&octets), "{octets}");
        assert!(cache.ages.len() <= 6);
    }
}
