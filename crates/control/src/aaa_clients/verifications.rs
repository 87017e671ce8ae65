//! Passwords of local users that helper threads compare with their hashes. Here is which ones are under way.

use super::AcceptedBy;
use core::time::Duration;
use std::collections::BTreeMap;

/// Maximum number of passwords that are under way. At 25 ms each, two threads need about three seconds for them.
pub const MOST_VERIFICATIONS: usize = 256;
/// Time in which a password must be verified. Subscribers repeat a request after some seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Passwords under way, by ticket.
#[derive(Debug, Default)]
pub(super) struct Verifications {
    all: BTreeMap<u64, Verification>,
    last_ticket: u64,
}

/// Password under way.
#[derive(Debug)]
pub(super) struct Verification {
    /// Token of the authentication; `None` after the deadline. The helper threads still have it then.
    pub token: Option<u64>,
    pub by: AcceptedBy,
    pub username: Vec<u8>,
    pub deadline: Duration,
}

impl Verifications {
    /// Begins one. Returns its ticket and its deadline, or nothing if too many are under way.
    pub fn begin(
        &mut self,
        now: Duration,
        token: u64,
        by: AcceptedBy,
        username: Vec<u8>,
    ) -> Option<(u64, Duration)> {
        if self.all.len() >= MOST_VERIFICATIONS {
            return None;
        }
        self.last_ticket += 1;
        let deadline = now + PATIENCE;
        let verification = Verification {
            token: Some(token),
            by,
            username,
            deadline,
        };
        self.all.insert(self.last_ticket, verification);
        Some((self.last_ticket, deadline))
    }

    /// Ends one that a helper thread has done, or given up.
    pub fn end(&mut self, ticket: u64) -> Option<Verification> {
        self.all.remove(&ticket)
    }

    /// Next deadline. The deadlines have the order of the tickets.
    pub fn next_deadline(&self) -> Option<Duration> {
        let mut waiting = self.all.values().filter(|one| one.token.is_some());
        waiting.next().map(|one| one.deadline)
    }

    /// Tokens of authentications whose deadline has passed.
    pub fn take_late(&mut self, now: Duration) -> Vec<(u64, AcceptedBy)> {
        let late = self.all.values_mut().filter(|one| one.deadline <= now);
        late.filter_map(|one| Some((one.token.take()?, one.by)))
            .collect()
    }

    /// Tokens of the authentications that wait.
    pub fn tokens(&self) -> impl Iterator<Item = u64> {
        self.all.values().filter_map(|one| one.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_late_keeps_its_place_until_a_thread_has_done_with_it() {
        let mut all = Verifications::default();
        let mut begin = |at: u64, token: u64| {
            let at = Duration::from_secs(at);
            all.begin(at, token, AcceptedBy::Users, Vec::new())
        };
        let (first, deadline) = begin(10, 1).unwrap();
        for token in 2..=MOST_VERIFICATIONS as u64 {
            assert!(begin(11, token).is_some());
        }
        assert_eq!(begin(11, 999), None);
        assert_eq!(all.next_deadline(), Some(deadline));
        assert_eq!(all.take_late(deadline), [(1, AcceptedBy::Users)]);
        assert_eq!(all.take_late(deadline), [], "once");
        assert_eq!(all.tokens().count(), MOST_VERIFICATIONS - 1);
        assert_eq!(all.next_deadline(), Some(deadline + Duration::from_secs(1)));
        let mut begin = || all.begin(deadline, 999, AcceptedBy::Users, Vec::new());
        assert_eq!(begin(), None);
        assert_eq!(all.end(first).map(|one| one.token), Some(None));
        assert!(all.end(first).is_none());
        assert!(
            all.begin(deadline, 999, AcceptedBy::Users, Vec::new())
                .is_some()
        );
    }
}
