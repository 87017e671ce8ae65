//! Numbers of lines: each has room for a few classes and their queues. A subscriber has one, and another one while it has further classes.
//!
//! What is for those alone is marked as cold: so it takes no registers from the packets of all others. Their own it costs a call.
use crate::packet::Chain;
use crate::queue::{Queue, Tally};
use crate::subscriber::{Kind, LINE_CLASSES, NO_LINE, Subscriber};
use crate::tree::Scheduler;

impl<C: Chain> Scheduler<C> {
    /// The number of the queue of a class. There is no queue with it if there is no such subscriber, or it has no line for the class.
    #[inline(always)]
    pub(crate) fn number(&self, at: usize, class: usize) -> usize {
        match class < LINE_CLASSES {
            true => at * LINE_CLASSES + class,
            false => self.further_number(at, class),
        }
    }

    #[cold]
    fn further_number(&self, at: usize, class: usize) -> usize {
        let subscriber = self.subscribers.get(at);
        let subscriber = subscriber.filter(|subscriber| subscriber.kind == Kind::Extended);
        let line = subscriber.map_or(NO_LINE, |subscriber| subscriber.other);
        line as usize * LINE_CLASSES + class - LINE_CLASSES
    }

    /// Whether a subscriber with further classes has a queue for packets of a class.
    pub(crate) fn has_queue(&self, (at, class): (usize, usize)) -> bool {
        let subscriber = self.subscribers.get(at);
        let subscriber = subscriber.filter(|subscriber| subscriber.kind == Kind::Extended);
        subscriber.is_some_and(|subscriber| class < self.known(subscriber))
    }

    /// How many classes a subscriber has: the first four whatever its profile says, so that their packets ask nothing more.
    fn known(&self, subscriber: &Subscriber) -> usize {
        let profile = &self.profiles[usize::from(subscriber.profile)];
        LINE_CLASSES.max(profile.len.into())
    }

    /// The queue for packets of a class, which is made for a further class that has none. `None`: there is no such subscriber, or its profile has no
    /// such class.
    pub(crate) fn make_queue(&mut self, at: usize, class: usize) -> Option<usize> {
        let subscriber = self.subscribers.get(at)?;
        if !subscriber.is_there() || class >= self.known(subscriber) {
            return None;
        }
        if subscriber.kind == Kind::Whole {
            self.extend(at);
        }
        Some(self.number(at, class))
    }

    /// The subscriber and the class of a queue.
    pub(crate) fn owner(&self, number: usize) -> (usize, usize) {
        let (line, place) = (number / LINE_CLASSES, number % LINE_CLASSES);
        let there = &self.subscribers[line];
        match there.kind {
            Kind::Further => (there.other as usize, place + LINE_CLASSES),
            _ => (line, place),
        }
    }

    /// A number for a line, with empty queues.
    pub(crate) fn add_line(&mut self, line: Subscriber) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.subscribers.push(Subscriber::VACANT);
            let queues = self.subscribers.len() * LINE_CLASSES;
            self.tallies.resize(queues, Tally::default());
            self.queues.resize_with(queues, Queue::default);
            self.reserve_entries(self.subscribers.len());
            self.subscribers.len() as u32 - 1
        });
        let queues = at as usize * LINE_CLASSES..(at as usize + 1) * LINE_CLASSES;
        self.queues[queues.clone()].fill_with(Queue::default);
        self.tallies[queues].fill(Tally::default());
        self.subscribers[at as usize] = line;
        at
    }

    /// Gives a subscriber a line for its further classes, of which the first packet has come.
    fn extend(&mut self, at: usize) {
        let further = self.add_line(Subscriber {
            kind: Kind::Further,
            other: at as u32,
            ..Subscriber::VACANT
        });
        let subscriber = &mut self.subscribers[at];
        (subscriber.kind, subscriber.other) = (Kind::Extended, further);
    }

    /// Takes the line of further classes back if the profile has none any more, and nothing waits in them.
    pub(crate) fn shed(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let is_needed = subscriber.backlog >> LINE_CLASSES != 0 || profile.has_further();
        if subscriber.kind == Kind::Extended && !is_needed {
            let further = core::mem::replace(&mut subscriber.other, NO_LINE);
            subscriber.kind = Kind::Whole;
            self.vacate(further);
        }
    }

    /// A number stands for nothing any more.
    pub(crate) fn vacate(&mut self, at: u32) {
        self.subscribers[at as usize].kind = Kind::Vacant;
        self.release(at);
    }

    /// The number of a vacant line that is in no calendar any more may be given again.
    pub(crate) fn release(&mut self, at: u32) {
        let line = &self.subscribers[at as usize];
        if line.kind == Kind::Vacant && line.places.is_nowhere() {
            self.free.push(at);
        }
    }
}
