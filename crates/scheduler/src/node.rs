//! A node of the tree: the port, or an aggregate.
use crate::blocks::Blocks;
use crate::calendar::Calendar;
use crate::child::{Band, Child, Places, Share, begin, slot};
use crate::measure::Counts;
use policy::Rate;
use policy::pace::Pace;

/// Number of an aggregate. [`PORT`] is the port itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateIndex(pub u32);

/// The root of the tree.
pub const PORT: AggregateIndex = AggregateIndex(0);

/// Settings of an aggregate. Where its parent is short, its share is that of all subscribers under it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateSettings {
    /// Where its packets go next: the port, or another aggregate.
    pub parent: AggregateIndex,
    /// The most that it gets, in octets of frames with preamble, gap and check sequence. `None`: as much as its parent.
    pub rate: Option<Rate>,
}

/// What a frame takes on the wire beside its octets: check sequence, preamble, gap (IEEE 802.3).
pub(crate) const WIRE: u32 = 24;
/// The least that a frame takes there.
const LEAST: u32 = 84;
/// Slots of a calendar of virtual times: packets of 1,500 octets of a child with weight 1 are 24 of them apart.
pub(crate) const SLOTS: usize = Turns::SLOTS;
type Turns = Calendar<4>;

/// Slots after which virtual time begins again, since 64 bits are 280 TB of a child with weight 1: then all are ahead of it for once, and are put
/// back as far as the calendar reaches.
const AGE: u64 = slot(1 << 63);

pub(crate) struct Node {
    /// When it may send.
    pub next: u64,
    pub pace: Pace,
    /// Virtual time of its next packet among the children of its parent, in each band.
    pub tags: [u64; 2],
    /// Weights of the subscribers under it, and the share that they are.
    weights: u64,
    share: Share,
    pub parent: u32,
    pub places: Places,
    /// It is gone, and its number may be given again when it is in no calendar.
    pub is_vacant: bool,
    /// Subscribers and aggregates under it.
    pub children: u32,
    /// Packets that wait under it. (The port's are counted by the scheduler.)
    pub waiting: u32,
    /// Packets that it has sent, and their octets on the wire.
    pub packets: u64,
    pub octets: u64,
    pub counts: Box<Counts>,
    bands: [Turns; 2],
}

impl Node {
    pub fn new(settings: &AggregateSettings, hz: u64) -> Self {
        Node {
            next: 0,
            pace: Pace::new(settings.rate, hz),
            tags: [0; 2],
            weights: 0,
            share: Share::new(0),
            parent: settings.parent.0,
            places: Places::default(),
            is_vacant: false,
            children: 0,
            waiting: 0,
            packets: 0,
            octets: 0,
            counts: Box::default(),
            bands: Default::default(),
        }
    }

    /// The weights of subscribers under it are others.
    pub fn weigh(&mut self, less: u16, more: u16) {
        self.weights = self.weights + u64::from(more) - u64::from(less);
        self.share = Share::new(self.weights);
    }

    /// Whether another node may have its number.
    pub fn is_free_number(&self) -> bool {
        self.is_vacant && self.places.is_nowhere() && self.band().is_none()
    }

    /// The band of the child that is next. `None`: none is there.
    #[inline(always)]
    pub fn band(&self) -> Option<Band> {
        let has = |band: &Band| !self.bands[*band as usize].is_empty();
        Band::ALL.into_iter().find(has)
    }

    #[inline(always)]
    pub fn has(&self, band: Band) -> bool {
        !self.bands[band as usize].is_empty()
    }

    /// Whether there is no child in a band or before it.
    #[inline(always)]
    pub fn is_free(&self, band: Band) -> bool {
        !self.has(Band::Guaranteed) && (band == Band::Guaranteed || !self.has(Band::Excess))
    }

    /// This node, as a band of its parent has it.
    #[inline(always)]
    pub fn entry(&self, at: u32, band: Band) -> Entry {
        Entry {
            child: Child::Node(at),
            tag: self.tags[band as usize],
        }
    }

    /// Puts a child in its turn, by its virtual time in the band, which is returned. A child that had nothing to send for a while has no claim
    /// for that, and what it was guaranteed in the past costs it no more than the calendar reaches.
    #[inline(always)]
    pub fn insert(&mut self, blocks: &mut Blocks, band: Band, entry: Entry) -> u64 {
        let calendar = &mut self.bands[band as usize];
        if calendar.slot() >= AGE {
            calendar.go_back(AGE);
        }
        let now = calendar.slot();
        let tag = entry.tag.clamp(begin(now), begin(now + SLOTS as u64) - 1);
        calendar.put(blocks, slot(tag), entry.child.id());
        tag
    }

    /// Takes the child out that is next, and says in which slot it was.
    #[inline]
    pub fn pop(&mut self, blocks: &mut Blocks, band: Band) -> Option<(Child, u64)> {
        let calendar = &mut self.bands[band as usize];
        let id = calendar.pop(blocks, u64::MAX)?;
        Some((Child::of(id), calendar.slot()))
    }

    /// The virtual time at which a band has arrived.
    #[inline(always)]
    pub fn now(&self, band: Band) -> u64 {
        begin(self.bands[band as usize].slot())
    }

    /// The child that is next.
    #[inline(always)]
    pub fn first(&self, blocks: &Blocks) -> Option<Child> {
        let calendar = &self.bands[self.band()? as usize];
        calendar.next(blocks).map(Child::of)
    }

    /// Virtual time of the child of a band that is next, in slots, or of the last one; and whether one is there.
    pub fn turn(&self, band: Band) -> (u64, bool) {
        let calendar = &self.bands[band as usize];
        (calendar.position(), !calendar.is_empty())
    }

    /// The numbers of children that wait in a band, in the order of their turns, as many as there is room for. Returns how many.
    pub fn waiting(&self, blocks: &Blocks, band: Band, into: &mut [u32]) -> usize {
        self.bands[band as usize].next_ones(blocks, into)
    }

    /// Packets that it may send now, at most. `past`: no time before it is made up for.
    pub fn most_packets(&self, past: u64, now: u64) -> usize {
        let time = now.saturating_sub(self.next.max(past));
        let packets = time.checked_div(self.pace.time(LEAST));
        packets.map_or(usize::MAX, |packets| packets as usize + 1)
    }

    /// A packet of so many octets leaves, and counts in the virtual times of some bands. `past`: no time before it is made up for.
    #[inline(always)]
    pub fn charge(&mut self, octets: u32, counts: [bool; 2], past: u64) {
        let octets = octets + WIRE;
        self.packets += 1;
        self.octets += u64::from(octets);
        self.next = self.next.max(past) + self.pace.time(octets);
        let time = self.share.time(octets);
        for (tag, counts) in self.tags.iter_mut().zip(counts) {
            *tag += time * u64::from(counts);
        }
    }
}

/// A child that waits for its turn.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub child: Child,
    /// Virtual time of its next packet in the band.
    pub tag: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two children that always have packets have their shares also when virtual time comes to its end, after 280 TB of one that is alone.
    #[test]
    fn shares_hold_however_much_was_sent() {
        let settings = AggregateSettings {
            parent: PORT,
            rate: None,
        };
        let (mut blocks, mut node) = (Blocks::default(), Node::new(&settings, 1));
        let end = slot(u64::MAX) - 4 * SLOTS as u64;
        node.bands[Band::Excess as usize].catch_up(&mut blocks, end);
        let shares = [1, 3].map(Share::new);
        let (mut tags, mut sent) = ([0; 2], [0u32; 2]);
        let insert = |node: &mut Node, blocks: &mut Blocks, tags: &mut [u64; 2], at: u32| {
            let entry = Entry {
                child: Child::Subscriber(at),
                tag: tags[at as usize],
            };
            tags[at as usize] = node.insert(blocks, Band::Excess, entry);
        };
        for at in 0..2 {
            insert(&mut node, &mut blocks, &mut tags, at);
        }
        for _ in 0..10_000 {
            let Some((Child::Subscriber(at), due)) = node.pop(&mut blocks, Band::Excess) else {
                panic!("both wait");
            };
            let child = at as usize;
            if slot(tags[child]) <= due {
                tags[child] += shares[child].time(1500);
                sent[child] += 1;
            }
            insert(&mut node, &mut blocks, &mut tags, at);
        }
        assert!(sent[0] > 2_000, "{sent:?}");
        assert!((sent[1] * 100 / sent[0]).abs_diff(300) < 5, "{sent:?}");
    }
}
