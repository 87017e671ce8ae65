//! The tree: who is in it, and with which settings.
use crate::blocks::{Blocks, ROOM as BLOCK};
use crate::calendar::Calendar;
use crate::measure::LEAST_WAIT;
use crate::node::{AggregateIndex, AggregateSettings, Node, PORT, SLOTS as NODE_SLOTS};
use crate::packet::Chain;
use crate::profile::{Compiled, QueueProfile, stamp};
use crate::queue::{Queue, Tally, WAITS};
use crate::schedule::ROOT;
use crate::shared::Claimant;
use crate::sub_queues::SubQueues;
use crate::subscriber::{
    Kind, LINE_CLASSES, ProfileIndex, Subscriber, SubscriberIndex, SubscriberSettings,
};
use policy::Rate;
use policy::pace::{Pace, parts};

/// Settings of a port's scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Ticks in a second.
    pub hz: u64,
    /// The most that leaves, in octets of frames with preamble, gap and check sequence. `None`: as much as the caller asks for.
    pub rate: Option<Rate>,
    /// Packets that wait at most, also after any [`Scheduler::set_room`].
    pub most_packets: usize,
    /// Secret by which flows get their numbers.
    pub key: u64,
}

/// Levels of aggregates at most.
const LEVELS: usize = 2;
/// Who waits for a time: 4,096 slots.
pub(crate) type Wheel = Calendar<64>;
/// Part of a second that the port makes up for if the worker comes too late for it.
const PORT_SLACK: u64 = 5_000;
/// Part of a second that a subscriber or aggregate makes up for if it could not or did not send: its burst, beside a packet.
const SLACK: u64 = 1_000;
/// Part of a second that strict classes make up for before they have to leave something to others: bursts of theirs come first as a whole.
const STRICT_SLACK: u64 = 50;

/// Packets of subscribers, and the order in which they leave by a port.
pub struct Scheduler<C: Chain> {
    pub(crate) hz: u64,
    pub(crate) blocks: Blocks,
    pub(crate) wheel: Wheel,
    pub(crate) nodes: Vec<Node>,
    /// Subscribers, and lines of further classes.
    pub(crate) subscribers: Vec<Subscriber>,
    /// [`LINE_CLASSES`] for each of them.
    pub(crate) queues: Vec<Queue<C>>,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) sub_queues: SubQueues<C>,
    /// Packets that were dropped as their class had too many.
    pub(crate) overflowed: C,
    /// [`WAITS`] in units of stamps.
    pub(crate) waits: [u32; WAITS.len()],
    /// [`LEAST_WAIT`] likewise.
    pub(crate) least_wait: u32,
    pub(crate) profiles: Vec<Compiled>,
    /// Numbers of aggregates that are gone, some of which may still be in a calendar.
    pub(crate) vacant_nodes: Vec<u32>,
    /// Numbers of lines that are vacant and in no calendar.
    pub(crate) free: Vec<u32>,
    /// Packets that wait.
    pub(crate) waiting: usize,
    pub(crate) most_packets: usize,
    /// Nobody is refused for room while fewer packets wait.
    pub(crate) plenty: usize,
    /// Whether some waited for their turn after the last packet had left.
    pub(crate) is_short: bool,
    /// The last time that the caller has said.
    pub(crate) now: u64,
    pub(crate) port_slack: u64,
    /// The port's rate, if other workers have it too.
    pub(crate) share: Option<Box<Claimant>>,
    pub(crate) slack: u64,
    pub(crate) strict_slack: u64,
}

impl<C: Chain> Scheduler<C> {
    /// The port alone.
    pub fn new(settings: Settings) -> Self {
        let port = AggregateSettings {
            parent: PORT,
            rate: settings.rate,
        };
        let mut scheduler = Scheduler {
            hz: settings.hz,
            blocks: Blocks::default(),
            wheel: Calendar::default(),
            nodes: vec![Node::new(&port, settings.hz)],
            subscribers: Vec::new(),
            queues: Vec::new(),
            tallies: Vec::new(),
            sub_queues: SubQueues::new(settings.most_packets, settings.key),
            overflowed: C::default(),
            waits: WAITS.map(|bound| stamp(bound, settings.hz)),
            least_wait: stamp(LEAST_WAIT, settings.hz),
            profiles: Vec::new(),
            vacant_nodes: Vec::new(),
            free: Vec::new(),
            waiting: 0,
            most_packets: 0,
            plenty: 0,
            is_short: false,
            now: 0,
            port_slack: parts(settings.hz / PORT_SLACK),
            share: None,
            slack: parts(settings.hz / SLACK),
            strict_slack: parts(settings.hz / STRICT_SLACK),
        };
        scheduler.set_room(settings.most_packets);
        scheduler
    }

    /// Makes room for so many subscribers in all, so that none that is added moves the others. One whose packets come in more than four classes
    /// counts as two.
    pub fn reserve(&mut self, subscribers: usize) {
        let more = subscribers.saturating_sub(self.subscribers.len());
        self.subscribers.reserve_exact(more);
        self.queues.reserve_exact(more * LINE_CLASSES);
        self.tallies.reserve_exact(more * LINE_CLASSES);
        self.reserve_entries(subscribers);
        C::large_pages(self.subscribers.spare_capacity_mut());
        C::large_pages(self.queues.spare_capacity_mut());
    }

    /// Adds a profile.
    pub fn add_profile(&mut self, profile: &QueueProfile) -> ProfileIndex {
        let compiled = self.compiled(profile);
        self.profiles.push(compiled);
        ProfileIndex(self.profiles.len() as u16 - 1)
    }

    /// Changes a profile, for all subscribers that have it. What waits goes on waiting, also in a class that there is no more: it leaves by the
    /// default settings of a class.
    pub fn set_profile(&mut self, profile: ProfileIndex, settings: &QueueProfile) {
        self.profiles[usize::from(profile.0)] = self.compiled(settings);
    }

    fn compiled(&mut self, profile: &QueueProfile) -> Compiled {
        let compiled = Compiled::new(profile, self.hz);
        if compiled
            .classes
            .iter()
            .any(|class| class.aqm.has_sub_queues())
        {
            self.sub_queues.reserve();
        }
        compiled
    }

    /// Adds an aggregate.
    ///
    /// # Panics
    /// If there is no such parent, or it is in the second level of aggregates.
    pub fn add_aggregate(&mut self, settings: &AggregateSettings) -> AggregateIndex {
        let is_first_level = settings.parent == PORT;
        let above = &self.nodes[settings.parent.0 as usize];
        assert!(
            is_first_level || above.parent == PORT.0,
            "more than {LEVELS} levels"
        );
        self.nodes[settings.parent.0 as usize].children += 1;
        let node = Node::new(settings, self.hz);
        let is_free = |at: &u32| self.nodes[*at as usize].is_free_number();
        if let Some(place) = self.vacant_nodes.iter().position(is_free) {
            let at = self.vacant_nodes.swap_remove(place);
            self.nodes[at as usize] = node;
            return AggregateIndex(at);
        }
        self.nodes.push(node);
        self.reserve_entries(self.subscribers.capacity());
        AggregateIndex(self.nodes.len() as u32 - 1)
    }

    /// Removes an aggregate under which nobody stands, and returns its parent. Its number may be given again.
    ///
    /// # Panics
    /// If there is no such aggregate, it is the port, or somebody stands under it.
    pub fn remove_aggregate(&mut self, aggregate: AggregateIndex) -> AggregateIndex {
        let node = &mut self.nodes[aggregate.0 as usize];
        assert!(aggregate != PORT && !node.is_vacant && node.children == 0);
        node.is_vacant = true;
        let parent = node.parent;
        self.vacant_nodes.push(aggregate.0);
        self.nodes[parent as usize].children -= 1;
        AggregateIndex(parent)
    }

    /// How many numbers of subscribers have been given. Some may stand for further classes of others.
    pub fn subscribers(&self) -> u32 {
        self.subscribers.len() as u32
    }

    /// Whether nobody stands under an aggregate, or the port.
    ///
    /// # Panics
    /// If there is no such aggregate.
    pub fn is_unused(&self, aggregate: AggregateIndex) -> bool {
        self.nodes[aggregate.0 as usize].children == 0
    }

    /// The aggregate that a subscriber stands under, or the port; `None`: there is no such subscriber.
    pub fn parent(&self, SubscriberIndex(at): SubscriberIndex) -> Option<AggregateIndex> {
        let subscriber = self.subscribers.get(at as usize)?;
        subscriber
            .is_there()
            .then_some(AggregateIndex(subscriber.parent))
    }

    /// Changes the rate of an aggregate or of the port. What waits goes on waiting.
    pub fn set_rate(&mut self, aggregate: AggregateIndex, rate: Option<Rate>) {
        let (now, pace) = (self.now, Pace::new(rate, self.hz));
        let node = &mut self.nodes[aggregate.0 as usize];
        let left = node.next.saturating_sub(now);
        node.next = node.next.min(now) + pace.rescaled(left, node.pace);
        node.pace = pace;
        if aggregate != PORT {
            self.catch_up();
            self.wake_node_in_all(aggregate.0, now);
        }
    }

    /// Adds a subscriber under an aggregate or the port.
    ///
    /// # Panics
    /// If there is no such aggregate or profile.
    pub fn add(
        &mut self,
        parent: AggregateIndex,
        settings: &SubscriberSettings,
    ) -> SubscriberIndex {
        let at = self.add_line(Subscriber {
            parent: parent.0,
            kind: Kind::Whole,
            ..Subscriber::VACANT
        });
        self.nodes[parent.0 as usize].children += 1;
        self.set(SubscriberIndex(at), settings);
        SubscriberIndex(at)
    }

    /// Changes a subscriber's settings. What waits goes on waiting, at the new rate.
    ///
    /// # Panics
    /// If there is no such profile.
    pub fn set(&mut self, subscriber: SubscriberIndex, settings: &SubscriberSettings) {
        assert!(usize::from(settings.profile.0) < self.profiles.len());
        let at = subscriber.0 as usize;
        let line = &mut self.subscribers[at];
        let former = line.weight;
        line.set(settings, self.now, self.hz);
        let (parent, weight) = (line.parent, line.weight);
        self.weigh(parent, former, weight);
        self.shed(at);
        self.catch_up();
        self.wake(at, self.now);
    }

    /// Puts a subscriber under another aggregate or the port. What waits goes on waiting; if it has had its turn in sight, until that comes.
    ///
    /// # Panics
    /// If there is no such aggregate.
    pub fn place(&mut self, subscriber: SubscriberIndex, parent: AggregateIndex) {
        assert!((parent.0 as usize) < self.nodes.len());
        let subscriber = &mut self.subscribers[subscriber.0 as usize];
        let former = core::mem::replace(&mut subscriber.parent, parent.0);
        let (packets, weight) = (u32::from(subscriber.waiting), subscriber.weight);
        self.weigh(former, weight, 0);
        self.weigh(parent.0, 0, weight);
        self.count_above(former, |waiting| *waiting -= packets);
        self.count_above(parent.0, |waiting| *waiting += packets);
        self.nodes[former as usize].children -= 1;
        self.nodes[parent.0 as usize].children += 1;
    }

    /// Removes a subscriber. `gone` gets the packets that waited.
    pub fn remove(&mut self, subscriber: SubscriberIndex, gone: &mut impl FnMut(C::Packet)) {
        self.take_out(subscriber, &mut |_, packet| gone(packet));
    }

    /// The same; `gone` gets each packet with its class, and those of a flow in their order.
    pub fn take_out(
        &mut self,
        subscriber: SubscriberIndex,
        gone: &mut impl FnMut(usize, C::Packet),
    ) {
        let line = &mut self.subscribers[subscriber.0 as usize];
        if !line.is_there() {
            return;
        }
        let further = (line.kind == Kind::Extended).then_some(line.other);
        line.backlog = 0;
        let (parent, packets, weight) = (line.parent, line.waiting, line.weight);
        self.weigh(parent, weight, 0);
        self.nodes[parent as usize].children -= 1;
        self.count_above(parent, |waiting| *waiting -= u32::from(packets));
        let further = further.map(|line| (line, LINE_CLASSES));
        for (line, first) in further.into_iter().chain([(subscriber.0, 0)]) {
            self.purge(line as usize, &mut |class, packet| {
                gone(first + class, packet)
            });
            self.vacate(line);
        }
    }

    /// The weights of subscribers under an aggregate are others. The port divides what it has, and has no share itself.
    fn weigh(&mut self, mut at: u32, less: u16, more: u16) {
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            node.weigh(less, more);
            at = node.parent;
        }
    }

    /// Takes all packets of the classes of a line.
    fn purge(&mut self, line: usize, gone: &mut impl FnMut(usize, C::Packet)) {
        let queues = &mut self.queues[line * LINE_CLASSES..(line + 1) * LINE_CLASSES];
        for (class, queue) in queues.iter_mut().enumerate() {
            queue.purge(&mut self.sub_queues, &mut |packet| {
                self.waiting -= 1;
                gone(class, packet);
            });
        }
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Room for the entries of so many lines in the calendars, so that packets allocate nothing. Each has eight at most: six timers, and
    /// one in each band. A slot may have a block that is not full.
    pub(crate) fn reserve_entries(&mut self, subscribers: usize) {
        let children = subscribers + self.nodes.len();
        let slots = Wheel::SLOTS + (2 * children).min(2 * NODE_SLOTS * self.nodes.len());
        self.blocks.reserve(8 * children / BLOCK + slots + 1);
    }
}
