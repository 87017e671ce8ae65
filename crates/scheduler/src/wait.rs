//! Where subscribers and aggregates wait: on the wheel for a time, or in the calendars of their parents for their turn.
use crate::child::{Band, Child, Timer};
use crate::choice::Choice;
use crate::node::Entry;
use crate::packet::Chain;
use crate::schedule::ROOT;
use crate::subscriber::{Kind, LINE_CLASSES, NEVER, classes};
use crate::tree::Scheduler;
use crate::turns::TOGETHER;

/// A slot of the wheel, in parts of ticks: 2^14 ticks, 6 microseconds.
pub(crate) const WHEEL_SLOT: u32 = 18;

impl<C: Chain> Scheduler<C> {
    /// Moves the wheel on, before it is used after a time without packets.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self) {
        self.wheel
            .catch_up(&mut self.blocks, self.now >> WHEEL_SLOT);
    }

    /// Puts a subscriber that has packets where it has to wait: on the wheel, or among the children of its aggregate. Nothing changes if
    /// it is there already.
    pub(crate) fn wake(&mut self, at: usize, now: u64) {
        if let Some((parent, band)) = self.stand(at, 0, now) {
            self.wake_node(parent, band, now);
        }
    }

    /// The same, but for what has to be done for the parent, which is returned with the band in which it has another child. `served`: octets
    /// that the subscriber has sent just now.
    #[inline(always)]
    pub(crate) fn stand(&mut self, at: usize, served: u32, now: u64) -> Option<(u32, Band)> {
        let subscriber = &self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        match self.choose(subscriber, profile, now) {
            Choice::Nothing => None,
            Choice::Limited => {
                let next = subscriber.next;
                self.set_timer(at, Timer::Subscriber(at as u32), next);
                None
            }
            Choice::ClassesLimited => {
                let limited = self.limited(subscriber, profile, now);
                self.set_class_timers(at, limited, now);
                None
            }
            Choice::Class(_, band) => {
                if band == Band::Excess {
                    self.await_guarantee(at);
                }
                self.enter(at, band, served)
            }
        }
    }

    /// A subscriber that waits for its share may be guaranteed something before its turn comes.
    #[inline(always)]
    fn await_guarantee(&mut self, at: usize) {
        let subscriber = &self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let (strict, strict_next) = (subscriber.backlog & profile.strict, subscriber.strict_next);
        let next = subscriber.committed_next;
        if next != NEVER {
            self.set_timer(at, Timer::Committed(at as u32), next);
        }
        if strict != 0 {
            self.set_class_timers(at, strict, strict_next);
        }
    }

    /// Lets timers run for the times at which classes may send, from one on.
    #[inline(never)]
    fn set_class_timers(&mut self, at: usize, mask: u8, from: u64) {
        for class in classes(mask) {
            let number = self.number(at, class);
            let (line, place) = (number / LINE_CLASSES, number % LINE_CLASSES);
            let next = self.subscribers[line].class_next[place].max(from);
            self.set_timer(line, Timer::Class(line as u32, place), next);
        }
    }

    /// Lets a timer of a line run, unless it does.
    #[inline(always)]
    fn set_timer(&mut self, at: usize, timer: Timer, time: u64) {
        let places = &mut self.subscribers[at].places;
        if !places.has(timer) {
            places.set(timer);
            self.wheel
                .insert(&mut self.blocks, wheel_slot(time), timer.id());
        }
    }

    /// Puts a subscriber into a band of its parent, unless it is there.
    #[inline(always)]
    fn enter(&mut self, at: usize, band: Band, served: u32) -> Option<(u32, Band)> {
        let subscriber = &mut self.subscribers[at];
        if subscriber.places.is_in(band) {
            return None;
        }
        subscriber.places.enter(band);
        let parent = subscriber.parent;
        self.insert_subscriber(at, band, served);
        Some((parent, band))
    }

    /// Puts a node that has a child in this band where it has to wait, and those above it.
    fn wake_node(&mut self, mut at: u32, band: Band, now: u64) {
        while at != ROOT {
            let node = &self.nodes[at as usize];
            if node.places.is_in(band) || self.waits_for_rate(at, now) {
                return;
            }
            self.nodes[at as usize].places.enter(band);
            at = self.insert_node(at, band);
        }
    }

    /// Wakes a node in each band in which it has children.
    pub(crate) fn wake_node_in_all(&mut self, at: u32, now: u64) {
        for band in Band::ALL {
            if self.nodes[at as usize].has(band) {
                self.wake_node(at, band, now);
            }
        }
    }

    /// Puts a node on the way of a packet that has left where it has to wait, if it has more.
    #[inline(always)]
    pub(crate) fn return_node(&mut self, at: u32, now: u64) {
        let node = &self.nodes[at as usize];
        let misses = Band::ALL.map(|band| node.has(band) && !node.places.is_in(band));
        if misses == [false; 2] || self.waits_for_rate(at, now) {
            return;
        }
        for band in Band::ALL {
            if misses[band as usize] {
                self.nodes[at as usize].places.enter(band);
                self.insert_node(at, band);
            }
        }
    }

    /// Whether a node has to wait for its rate; if so, its timer runs.
    #[inline(always)]
    fn waits_for_rate(&mut self, at: u32, now: u64) -> bool {
        let node = &mut self.nodes[at as usize];
        let (waits, timer) = (node.next > now, Timer::Node(at));
        if waits && !node.places.has(timer) {
            node.places.set(timer);
            self.wheel
                .insert(&mut self.blocks, wheel_slot(node.next), timer.id());
        }
        waits
    }

    /// Puts a subscriber into a calendar of its parent. `served`: octets that it has sent just now.
    #[inline(always)]
    pub(crate) fn insert_subscriber(&mut self, at: usize, band: Band, served: u32) {
        let subscriber = &mut self.subscribers[at];
        let parent = &mut self.nodes[subscriber.parent as usize];
        let entry = |tag| Entry {
            child: Child::Subscriber(at as u32),
            tag,
        };
        match band {
            // its committed rate ends what it is guaranteed: so a packet counts there until the next one alone
            Band::Guaranteed => {
                let tag = parent.now(band) + subscriber.share.time(served);
                parent.insert(&mut self.blocks, band, entry(tag));
            }
            Band::Excess => {
                subscriber.tag = parent.insert(&mut self.blocks, band, entry(subscriber.tag));
            }
        }
    }

    /// The same for a node. Returns its parent.
    #[inline(always)]
    pub(crate) fn insert_node(&mut self, at: u32, band: Band) -> u32 {
        let node = &self.nodes[at as usize];
        let (parent, entry) = (node.parent, node.entry(at, band));
        let tag = self.nodes[parent as usize].insert(&mut self.blocks, band, entry);
        self.nodes[at as usize].tags[band as usize] = tag;
        parent
    }

    /// Wakes those whose time has come: some at once, so that their lines come together.
    pub(crate) fn expire(&mut self, now: u64) {
        let (mut due, last) = ([0; TOGETHER], now >> WHEEL_SLOT);
        loop {
            let n = self.wheel.take(&mut self.blocks, last, &mut due);
            if n == 0 {
                break;
            }
            for id in &due[..n] {
                self.prefetch_timer(Timer::of(*id));
            }
            for id in &due[..n] {
                self.fire(Timer::of(*id), now);
            }
        }
        self.catch_up();
    }

    /// A timer has run out.
    pub(crate) fn fire(&mut self, timer: Timer, now: u64) {
        match timer {
            Timer::Node(at) => {
                self.nodes[at as usize].places.clear(timer);
                self.wake_node_in_all(at, now);
            }
            Timer::Subscriber(at) | Timer::Committed(at) | Timer::Class(at, _) => {
                let line = &mut self.subscribers[at as usize];
                line.places.clear(timer);
                let subscriber = match line.kind {
                    Kind::Further => line.other,
                    _ => at,
                };
                self.wake(subscriber as usize, now);
                self.release(at);
            }
        }
    }
}

/// The slot of the wheel at whose beginning a time is over.
fn wheel_slot(time: u64) -> u64 {
    (time + (1 << WHEEL_SLOT) - 1) >> WHEEL_SLOT
}
