//! Who exceeds a rate of its own: a few, by the keys of their buckets.
use crate::protection::{CIRCUIT, HoldDown, Level, Offence, Place};
use crate::punt::PuntClass;
use core::time::Duration;

/// Places of a set, and sets.
const WAYS: usize = 8;
const SETS: usize = 128;

/// A place is free again when its offender has sent nothing above its rate for so many seconds.
const IDLE: u64 = 60;

#[derive(Clone, Copy)]
struct Offender {
    /// With times as they were when it was noted first.
    what: Offence,
    /// In ticks: the first and the last packet above the rate, and until when it is held down.
    first: u64,
    last: u64,
    until: u64,
    /// Packets above the rate since it was held down last.
    since: u32,
    /// Something has changed since it was reported.
    news: bool,
}

/// See the top of the file.
pub(crate) struct Offenders {
    sets: Box<[[Option<Offender>; WAYS]]>,
    second: u64,
    /// Until when (ticks) somebody is held down.
    held: u64,
    /// Packets of those that found no place.
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

    /// Whether somebody is held down.
    pub fn anybody_held(&self, now: u64) -> bool {
        now < self.held
    }

    /// Whether a key is held down. The packet is counted if so.
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

    /// Notes a packet above a rate. With `hold`, the key is held down if there were enough of them.
    pub fn note(
        &mut self,
        key: u64,
        class: &'static PuntClass,
        level: Level,
        place: &Place<'_>,
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
        let offender = set[at].get_or_insert_with(|| Offender::new(key, class, level, place, now));
        offender.what.mac = place.mac;
        offender.what.dropped += 1;
        (offender.last, offender.news) = (now, true);
        offender.since = offender.since.saturating_add(1);
        let until = hold.and_then(|hold| offender.hold(now, hold, second));
        self.held = self.held.max(until.unwrap_or(0));
        self.news = true;
    }

    /// Gives each report that there is something new in to `tell`, as long as it takes them.
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
    fn new(key: u64, class: &'static PuntClass, level: Level, place: &Place<'_>, now: u64) -> Self {
        let mut circuit = [0; CIRCUIT];
        let shown = match level {
            Level::Mac | Level::Line => place.ids[0],
            Level::Vlan | Level::Port => &[],
        };
        circuit
            .iter_mut()
            .zip(shown)
            .for_each(|(to, from)| *to = *from);
        let vlans = match level {
            Level::Mac | Level::Line => place.vlans,
            Level::Vlan => [place.vlans[0], None],
            Level::Port => [None; 2],
        };
        let what = Offence {
            key,
            class,
            level,
            port: place.port,
            vlans,
            mac: place.mac,
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

    /// Has it been quiet for long?
    fn is_over(&self, now: u64, second: u64) -> bool {
        now > self.last + IDLE * second && now > self.until
    }

    /// Holds it down if it has earned that: until when.
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
