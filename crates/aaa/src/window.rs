//! How many requests a server may have unanswered at a time, separately for authentications and accounting records.
//!
//! A server that is slower than requests come has a queue. If that is longer than the time after which a request is repeated and given
//! up, the server only serves requests for which nobody waits any more, and never recovers. So the number of unanswered requests follows
//! what the server does, as in congestion control (RFC 5681): it grows with each answer in time, and is halved when one is late.

use core::time::Duration;

/// Unanswered requests of a server of which nothing is known.
const FIRST: usize = 1024;
/// Unanswered requests that a server may always have.
const LEAST: usize = 16;

/// Window of a server.
pub(crate) struct Window {
    size: usize,
    /// Size from which it grows by one with each window of answers, and not with each answer.
    threshold: usize,
    /// Answers since it last grew.
    answers: usize,
    /// Whether a request was answered in time since it was last halved.
    is_answered: bool,
    /// Time until which it is not halved again: what was sent before may be late as well.
    steady_until: Duration,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            size: FIRST,
            threshold: usize::MAX,
            answers: 0,
            is_answered: true,
            steady_until: Duration::ZERO,
        }
    }
}

impl Window {
    /// Requests that may be unanswered at a time.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether one more request may be sent beside so many unanswered ones.
    pub(crate) fn has_room(&self, unanswered: usize) -> bool {
        unanswered < self.size
    }

    /// A request was answered before it was repeated. Without enough requests to fill it the window does not grow.
    pub(crate) fn grow(&mut self, unanswered: usize) {
        self.is_answered = true;
        if 2 * unanswered < self.size {
            return;
        }
        self.answers += 1;
        if self.size < self.threshold || self.answers >= self.size {
            (self.size, self.answers) = (self.size + 1, 0);
        }
    }

    /// A request was not answered in this time, and is repeated. A server that answers nothing at all for a while has not become slower.
    pub(crate) fn shrink(&mut self, now: Duration, timeout: Duration) {
        if self.steady_until > now {
            return;
        }
        self.size = LEAST.max(self.size / 2);
        if core::mem::take(&mut self.is_answered) {
            self.threshold = self.size;
        }
        self.steady_until = now + timeout;
    }
}

/// Authentications that may always wait to be sent.
const LEAST_WAITING: u64 = 64;
/// Seconds for which an authentication may wait to be sent.
const PATIENCE: u64 = 4;

/// Number of authentications that servers answered in this second and in the one before.
#[derive(Default)]
pub(crate) struct Answers {
    second: u64,
    now: u64,
    before: u64,
}

impl Answers {
    /// Counts an answer.
    pub(crate) fn count(&mut self, now: Duration) {
        let second = now.as_secs();
        if second > self.second {
            let before = if second == self.second + 1 {
                self.now
            } else {
                0
            };
            (self.second, self.now, self.before) = (second, 0, before);
        }
        self.now += 1;
    }

    /// Number of authentications that may wait: as many as are answered while a subscriber is patient.
    pub(crate) fn in_patience(&self, now: Duration) -> usize {
        let rate = match now.as_secs().saturating_sub(self.second) {
            0 => self.now.max(self.before),
            1 => self.now,
            _ => 0,
        };
        (PATIENCE * rate).max(LEAST_WAITING) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn size(window: &Window) -> usize {
        let size = window.size();
        assert!(window.has_room(size - 1) && !window.has_room(size));
        size
    }

    #[test]
    fn a_window_is_halved_once_for_what_was_sent_together_and_never_closed() {
        let mut window = Window::default();
        assert_eq!(size(&window), 1024);
        (0..50).for_each(|_| window.shrink(SECOND, SECOND));
        assert_eq!(size(&window), 512);
        (1..50).for_each(|n| window.shrink(n * 2 * SECOND, SECOND));
        assert_eq!(size(&window), 16);
    }

    #[test]
    fn a_window_grows_with_answers_as_long_as_it_is_used() {
        let mut window = Window::default();
        (0..100).for_each(|_| window.grow(10));
        assert_eq!(size(&window), 1024);
        (0..100).for_each(|_| window.grow(800));
        assert_eq!(size(&window), 1124);
    }

    #[test]
    fn after_silence_it_grows_fast_to_where_it_was_and_then_slowly() {
        let mut window = Window::default();
        (1..50).for_each(|n| window.shrink(n * 2 * SECOND, SECOND));
        (0..496).for_each(|_| window.grow(1000));
        assert_eq!(size(&window), 512);
        (0..511).for_each(|_| window.grow(1000));
        assert_eq!(size(&window), 512);
        window.grow(1000);
        assert_eq!(size(&window), 513);
    }

    #[test]
    fn as_many_may_wait_as_are_answered_in_four_seconds() {
        let mut answers = Answers::default();
        let at = |milliseconds| Duration::from_millis(milliseconds);
        assert_eq!(answers.in_patience(at(0)), 64);
        (0..100).for_each(|n| answers.count(at(5_000 + n)));
        assert_eq!(answers.in_patience(at(5_500)), 400, "of this second");
        answers.count(at(6_000));
        assert_eq!(answers.in_patience(at(6_100)), 400, "of the one before");
        assert_eq!(answers.in_patience(at(7_100)), 64);
        assert_eq!(answers.in_patience(at(60_000)), 64);
    }
}
