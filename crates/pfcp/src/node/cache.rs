//! Answers that were given, so that a request that comes again gets the same one (TS 29.244 §6.4).
use core::hash::Hasher;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::hash::DefaultHasher;

type Key = (SocketAddr, u32);

#[derive(Debug)]
struct Entry {
    /// Of the request's octets: a peer that restarted may use a number again for something else.
    fingerprint: u64,
    answer: Option<Vec<u8>>,
    expires: Duration,
}

/// What is known of a request.
pub(super) enum Known<'a> {
    /// Nothing: it is to be handled now.
    New,
    /// It is being handled.
    InProgress,
    /// It was answered.
    Answered(&'a [u8]),
    /// Too many are being handled.
    Overload,
}

/// The requests of one peer, bounded in number and time.
#[derive(Debug)]
pub(super) struct ResponseCache {
    entries: HashMap<Key, Entry>,
    /// By age; an entry that was replaced since is here twice, and its first place is void.
    order: VecDeque<(Duration, Key)>,
    capacity: usize,
}

impl ResponseCache {
    pub fn new(capacity: usize) -> Self {
        ResponseCache {
            entries: HashMap::new(),
            order: VecDeque::new(),
            capacity: capacity.max(1),
        }
    }

    /// Looks a request up, and remembers it if it is new.
    pub fn look_up(
        &mut self,
        now: Duration,
        keep: Duration,
        key: Key,
        request: &[u8],
    ) -> Known<'_> {
        self.expire(now);
        let fingerprint = fingerprint(request);
        let same = self
            .entries
            .get(&key)
            .is_some_and(|entry| entry.fingerprint == fingerprint);
        if !same {
            if !self.make_room() {
                return Known::Overload;
            }
            let expires = now + keep;
            self.entries.insert(
                key,
                Entry {
                    fingerprint,
                    answer: None,
                    expires,
                },
            );
            self.order.push_back((expires, key));
            return Known::New;
        }
        match self
            .entries
            .get(&key)
            .and_then(|entry| entry.answer.as_deref())
        {
            Some(answer) => Known::Answered(answer),
            None => Known::InProgress,
        }
    }

    /// Keeps the answer, unless the request has been forgotten meanwhile.
    pub fn answer(&mut self, key: Key, answer: &[u8]) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.answer = Some(answer.to_vec());
        }
    }

    /// Drops the oldest entries down to the bound. Those without an answer are not dropped: their requests would be
    /// handled twice.
    fn make_room(&mut self) -> bool {
        while self.order.len() >= self.capacity {
            let Some(&(expires, key)) = self.order.front() else {
                break;
            };
            match self.entries.get(&key) {
                Some(entry) if entry.expires == expires && entry.answer.is_none() => return false,
                Some(entry) if entry.expires == expires => drop(self.entries.remove(&key)),
                _ => {}
            }
            self.order.pop_front();
        }
        true
    }

    fn expire(&mut self, now: Duration) {
        while let Some(&(expires, key)) = self.order.front() {
            if expires > now {
                break;
            }
            if self
                .entries
                .get(&key)
                .is_some_and(|entry| entry.expires == expires)
            {
                self.entries.remove(&key);
            }
            self.order.pop_front();
        }
    }
}

fn fingerprint(request: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(request);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(5);

    fn key(sequence: u32) -> Key {
        (SocketAddr::from(([192, 0, 2, 1], 8805)), sequence)
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_request_that_comes_again_gets_its_answer_until_it_expires() {
        let mut cache = ResponseCache::new(8);
        assert!(matches!(
            cache.look_up(at(0), KEEP, key(1), b"request"),
            Known::New
        ));
        assert!(matches!(
            cache.look_up(at(1), KEEP, key(1), b"request"),
            Known::InProgress
        ));
        cache.answer(key(1), b"answer");
        assert!(matches!(
            cache.look_up(at(2), KEEP, key(1), b"request"),
            Known::Answered(b"answer")
        ));
        assert!(matches!(
            cache.look_up(at(6), KEEP, key(1), b"request"),
            Known::New
        ));
    }

    #[test]
    fn the_same_number_for_another_request_is_new() {
        let mut cache = ResponseCache::new(8);
        assert!(matches!(
            cache.look_up(at(0), KEEP, key(1), b"request"),
            Known::New
        ));
        cache.answer(key(1), b"answer");
        assert!(matches!(
            cache.look_up(at(1), KEEP, key(1), b"other"),
            Known::New
        ));
        cache.answer(key(1), b"other answer");
        // The first place in the order expires at 5 s and must not take the second entry along.
        assert!(matches!(
            cache.look_up(at(5), KEEP, key(1), b"other"),
            Known::Answered(b"other answer")
        ));
    }

    #[test]
    fn answered_requests_make_room_and_open_ones_do_not() {
        let mut cache = ResponseCache::new(2);
        for sequence in 0..2 {
            assert!(matches!(
                cache.look_up(at(0), KEEP, key(sequence), b"r"),
                Known::New
            ));
        }
        assert!(matches!(
            cache.look_up(at(0), KEEP, key(2), b"r"),
            Known::Overload
        ));
        cache.answer(key(0), b"a");
        assert!(matches!(
            cache.look_up(at(0), KEEP, key(2), b"r"),
            Known::New
        ));
        assert!(matches!(
            cache.look_up(at(0), KEEP, key(1), b"r"),
            Known::InProgress
        ));
        assert_eq!(cache.entries.len(), 2);
    }
}
