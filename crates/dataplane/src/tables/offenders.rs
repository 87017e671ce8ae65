//! The offenders: a bounded set of senders above a rate, by the keys of their buckets.
use crate::protection::{CIRCUIT, HoldDown, Level, Offence, Origin};
use crate::punt::PuntClass;
use core::time::Duration;

/// Entries of a set, and number of sets.
const WAYS: usize = 8;
const SETS: usize = 128;

/// Seconds without a packet above the rate after which an entry can be reused.
const IDLE: u64 = 60;

#[derive(Clone, Copy)]
struct Offender {
    /// The report; its times are computed when it is sent.
    what: Offence,
    /// In ticks: first and last packet above the rate, and end of the hold-down.
    first: u64,
    last: u64,
    until: u64,
    /// Packets above the rate since the last hold-down.
    since: u32,
    /// Changed since the last report.
    news: bool,
}

/// Bounded set of offenders.
pub(crate) struct Offenders {
    sets: Box<[[Option<Offender>; WAYS]]>,
    second: u64,
    /// End of the last hold-down, in ticks.
    held: u64,
    /// Packets of offenders for which there was no entry.
    pub unnamed: u64,
    news: bool,
}

impl Offenders {
    /// `hz` ticks are a second.
    pub fn new(hz: u64) -> Self {
        Offenders {
            sets: (0..SETS).map(|_| [None; WAYS]).collect(),
            second: hz,
            held: 0,
            unnamed: 0,
            news: false,
        }
    }

    fn set(&mut self, key: u64) -> &mut [Option<Offender>; WAYS] {
        &mut self.sets[key as usize % SETS]
    }

    /// Whether any offender is held down.
    pub fn anybody_held(&self, now: u64) -> bool {
        now < self.held
    }

    /// Whether a key is held down; counts the packet if so.
    pub fn is_held(&mut self, key: u64, now: u64) -> bool {
        let mut there = self.set(key).iter_mut().flatten();
        let Some(offender) = there.find(|it| it.what.key == key && now < it.until) else {
            return false;
        };
        offender.last = now;
        offender.what.dropped += 1;
        offender.news = true;
        self.news = true;
        true
    }

    /// Ends all hold-downs.
    pub fn release(&mut self) {
        for offender in self.sets.iter_mut().flatten().flatten() {
            (offender.until, offender.news) = (0, true);
        }
        (self.held, self.news) = (0, true);
    }

    /// Counts a packet above a rate. With `hold`, holds the key down after enough of them.
    pub fn note(
        &mut self,
        key: u64,
        class: &'static PuntClass,
        level: Level,
        origin: &Origin<'_>,
        now: u64,
        hold: Option<HoldDown>,
    ) {
        let second = self.second;
        let set = self.set(key);
        let known = |it: &Option<Offender>| it.is_some_and(|it| it.what.key == key);
        let over = |it: &Option<Offender>| it.is_none_or(|it| it.is_over(now, second));
        let at = set
            .iter()
            .position(known)
            .or_else(|| set.iter().position(over));
        let Some(at) = at else {
            self.unnamed += 1;
            return;
        };
        if over(&set[at]) {
            set[at] = None;
        }
        let offender = set[at].get_or_insert_with(|| Offender::new(key, class, level, origin, now));
        offender.what.mac = origin.mac;
        offender.what.dropped += 1;
        (offender.last, offender.news) = (now, true);
        offender.since = offender.since.saturating_add(1);
        let until = hold.and_then(|hold| offender.hold(now, hold, second));
        self.held = self.held.max(until.unwrap_or(0));
        self.news = true;
    }

    /// Counts a packet above a rate of a known offender. Returns `false` if the key has no entry.
    pub fn count(&mut self, key: u64, now: u64) -> bool {
        let second = self.second;
        let mut there = self.set(key).iter_mut().flatten();
        let known = there.find(|it| it.what.key == key && !it.is_over(now, second));
        let Some(offender) = known else {
            return false;
        };
        offender.what.dropped += 1;
        (offender.last, offender.news) = (now, true);
        self.news = true;
        true
    }

    /// Passes changed entries to `tell` until it refuses one.
    pub fn report(&mut self, now: u64, mut tell: impl FnMut(Offence) -> bool) {
        if !core::mem::take(&mut self.news) {
            return;
        }
        let second = self.second;
        for offender in self
            .sets
            .iter_mut()
            .flatten()
            .flatten()
            .filter(|it| it.news)
        {
            offender.news = !tell(offender.report(now, second));
            self.news |= offender.news;
        }
    }
}

impl Offender {
    fn new(
        key: u64,
        class: &'static PuntClass,
        level: Level,
        origin: &Origin<'_>,
        now: u64,
    ) -> Self {
        let mut circuit = [0; CIRCUIT];
        let shown = match level {
            Level::Mac | Level::Line => origin.ids[0],
            Level::Vlan | Level::Port => &[],
        };
        circuit
            .iter_mut()
            .zip(shown)
            .for_each(|(to, from)| *to = *from);
        let vlans = match level {
            Level::Mac | Level::Line => origin.vlans,
            Level::Vlan => [origin.vlans[0], None],
            Level::Port => [None; 2],
        };
        let what = Offence {
            key,
            class,
            level,
            port: origin.port,
            vlans,
            mac: origin.mac,
            circuit,
            dropped: 0,
            since: Duration::ZERO,
            strikes: 0,
            held_for: Duration::ZERO,
        };
        Offender {
            what,
            first: now,
            last: now,
            until: 0,
            since: 0,
            news: true,
        }
    }

    /// Whether the entry can be reused.
    fn is_over(&self, now: u64, second: u64) -> bool {
        now > self.last + IDLE * second && now > self.until
    }

    /// Holds it down after enough packets above the rate. Returns the end in ticks.
    fn hold(&mut self, now: u64, hold: HoldDown, second: u64) -> Option<u64> {
        if hold.after == 0 || self.since < hold.after {
            return None;
        }
        let doubled = hold.first.saturating_mul(1 << self.what.strikes.min(16));
        let ticks = doubled.min(hold.longest).as_millis() * u128::from(second) / 1000;
        self.until = now + ticks as u64;
        self.since = 0;
        self.what.strikes = self.what.strikes.saturating_add(1);
        Some(self.until)
    }

    fn report(&self, now: u64, second: u64) -> Offence {
        let time = |ticks: u64| {
            let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(second);
            Duration::from_nanos(nanoseconds as u64)
        };
        Offence {
            since: time(now.saturating_sub(self.first)),
            held_for: time(self.until.saturating_sub(now)),
            ..self.what
        }
    }
}
