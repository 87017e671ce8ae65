//! Queues of flows, from a pool that all classes of all subscribers share while they have packets.
use crate::packet::Chain;
use crate::queue::Fifo;

/// No queue.
pub(crate) const NONE: u32 = 0;

/// A queue of packets of a class: a cache line.
#[repr(align(64))]
pub(crate) struct SubQueue<C> {
    pub fifo: Fifo<C>,
    /// What it may still send in this round, in octets, or by how much another queue is before it.
    pub credit: i32,
    /// How long its last packet has waited, in units of stamps, and how much of a mark or drop is due.
    pub delay: u32,
    pub due: f32,
    /// The next one of its list, or of those that are free.
    pub next: u32,
    /// Whose it is, and of which flow.
    owner: (u32, u32),
    /// The next one whose owner has the same place in the index.
    chained: u32,
}

impl<C: Chain> SubQueue<C> {
    fn new(owner: (u32, u32)) -> Self {
        SubQueue {
            fifo: Fifo::default(),
            credit: 0,
            delay: 0,
            due: 0.0,
            next: NONE,
            owner,
            chained: NONE,
        }
    }
}

/// All of them. Number 0 is none.
pub(crate) struct SubQueues<C> {
    all: Vec<SubQueue<C>>,
    free: u32,
    /// First queue of each place; a power of two of them.
    index: Vec<u32>,
    most: usize,
    /// Secret, so that nobody can make flows that share a place.
    pub key: u64,
}

impl<C: Chain> SubQueues<C> {
    /// An empty pool for at most so many.
    pub fn new(most: usize, key: u64) -> Self {
        SubQueues {
            all: Vec::new(),
            free: NONE,
            index: Vec::new(),
            most,
            key,
        }
    }

    /// Makes room for all, so that packets allocate nothing. Memory that is not used is not touched.
    pub fn reserve(&mut self) {
        if self.all.is_empty() {
            self.all.reserve_exact(self.most + 1);
            self.all.push(SubQueue::new((0, 0)));
            self.index = vec![NONE; self.most.next_power_of_two()];
        }
    }

    #[inline(always)]
    pub fn get(&mut self, at: u32) -> &mut SubQueue<C> {
        &mut self.all[at as usize]
    }

    /// Asks for the line of a queue.
    #[inline(always)]
    pub fn prefetch(&self, at: u32) {
        if let Some(queue) = self.all.get(at as usize) {
            C::prefetch(queue);
        }
    }

    /// The place of a flow in the index. Its number is as good as random.
    #[inline(always)]
    fn place(&self, (queue, flow): (u32, u32)) -> usize {
        let mixed = flow ^ queue.wrapping_mul(0x9e37_79b1);
        mixed as usize & (self.index.len() - 1)
    }

    /// The queue of a flow.
    #[inline(always)]
    pub fn find(&self, owner: (u32, u32)) -> Option<u32> {
        let mut at = self.index[self.place(owner)];
        while at != NONE {
            let queue = &self.all[at as usize];
            if queue.owner == owner {
                return Some(at);
            }
            at = queue.chained;
        }
        None
    }

    /// A new queue for a flow; `None` if there are as many as may be.
    pub fn add(&mut self, owner: (u32, u32)) -> Option<u32> {
        let at = self.take(owner)?;
        let place = self.place(owner);
        self.all[at as usize].chained = core::mem::replace(&mut self.index[place], at);
        Some(at)
    }

    /// A new queue that is not looked for.
    pub fn take(&mut self, owner: (u32, u32)) -> Option<u32> {
        let queue = SubQueue::new(owner);
        if self.free != NONE {
            let at = self.free;
            self.free = self.all[at as usize].next;
            self.all[at as usize] = queue;
            return Some(at);
        }
        let at = self.all.len();
        (at <= self.most).then(|| {
            self.all.push(queue);
            at as u32
        })
    }

    /// Gives back a queue that was added.
    pub fn remove(&mut self, at: u32) {
        let queue = &self.all[at as usize];
        let (place, chained) = (self.place(queue.owner), queue.chained);
        let mut before = self.index[place];
        if before == at {
            self.index[place] = chained;
            return self.give(at);
        }
        while self.all[before as usize].chained != at {
            before = self.all[before as usize].chained;
        }
        self.all[before as usize].chained = chained;
        self.give(at);
    }

    /// Gives back a queue that was taken.
    pub fn give(&mut self, at: u32) {
        self.all[at as usize].next = core::mem::replace(&mut self.free, at);
    }
}
