//! Homes that always have something to send, on a clock of the test's own.
#![allow(dead_code)] // each test uses a part
pub mod senders;
use policy::Rate;
use scheduler::*;
use std::collections::VecDeque;
use std::time::Duration;

/// A tick is a nanosecond.
pub const HZ: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;
/// Between two rounds of a worker.
pub const ROUND: u64 = 10_000;
/// Packets that leave in a round at most, where there are several workers.
pub const BURST: usize = 64;
/// Octets that a frame takes on the wire beside its own.
pub const WIRE: u32 = 24;

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub octets: u32,
    pub stamp: u32,
    pub to: SubscriberIndex,
    pub class: usize,
    /// When it came.
    pub came: u64,
    pub flow: u32,
    pub ecn: Ecn,
}

impl Packet for Frame {
    fn octets(&self) -> u32 {
        self.octets
    }
    fn stamp(&self) -> u32 {
        self.stamp
    }
    fn set_stamp(&mut self, stamp: u32) {
        self.stamp = stamp;
    }
    fn flow(&self, _key: u64) -> u32 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        assert!(self.ecn.is_capable());
        self.ecn = Ecn::Congested;
    }
}

pub type Tree = Scheduler<VecDeque<Frame>>;

pub fn tree(kbps: Option<u64>) -> Tree {
    tree_with_room(kbps, 1 << 20)
}

/// A port at which so many packets may wait.
pub fn tree_with_room(kbps: Option<u64>, most_packets: usize) -> Tree {
    Scheduler::new(Settings {
        hz: HZ,
        rate: kbps.map(Rate::kbps),
        most_packets,
        key: 7,
    })
}

pub fn aggregate<C: Chain>(
    tree: &mut Scheduler<C>,
    parent: AggregateIndex,
    kbps: Option<u64>,
) -> AggregateIndex {
    tree.add_aggregate(&AggregateSettings {
        parent,
        rate: kbps.map(Rate::kbps),
    })
}

/// Settings of a home without anything special.
pub fn home(profile: ProfileIndex, kbps: Option<u64>) -> SubscriberSettings {
    SubscriberSettings {
        profile,
        rate: kbps.map(Rate::kbps),
        committed: None,
        weight: 1,
        header: 0,
    }
}

/// All classes that there may be, which are dropped from only at their limit.
pub fn plain() -> QueueProfile {
    plain_of(CLASSES)
}

/// So many of them.
pub fn plain_of(classes: usize) -> QueueProfile {
    let class = QueueSettings {
        management: Management::TailDrop,
        ..QueueSettings::default()
    };
    QueueProfile {
        classes: vec![class; classes],
        ..QueueProfile::default()
    }
}

/// The same classes with another management.
pub fn managed(management: Management) -> QueueProfile {
    let mut profile = plain();
    for class in &mut profile.classes {
        class.management = management;
    }
    profile
}

/// What keeps queues short, with the values that the RFCs recommend.
pub const CODEL: Management = Management::CoDel {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
};
pub const FQ_CODEL: Management = Management::FqCoDel {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
};
pub const DUAL_PI2: Management = Management::DualPi2 {
    target: Duration::from_millis(15),
};

/// A source of packets for a class of a home.
#[derive(Clone, Copy)]
pub struct Source {
    pub to: SubscriberIndex,
    pub class: usize,
    pub octets: u32,
}

impl Source {
    pub fn new(to: SubscriberIndex, octets: u32) -> Self {
        Source {
            to,
            class: 0,
            octets,
        }
    }

    pub fn frame(&self, now: u64) -> Frame {
        Frame {
            octets: self.octets,
            stamp: 0,
            to: self.to,
            class: self.class,
            came: now,
            flow: 0,
            ecn: Ecn::NotCapable,
        }
    }
}

/// Lets time pass from one point to another, with so many octets waiting in each source's queue at any time; what leaves goes to `leave`.
pub fn pass(
    tree: &mut Tree,
    sources: &[Source],
    (from, to): (u64, u64),
    mut leave: impl FnMut(u64, Frame),
) {
    let mut now = from;
    while now < to {
        for source in sources {
            let least = 4 * source.octets.max(16_000);
            while tree.state(source.to, source.class).octets < least {
                if tree
                    .enqueue(source.to, source.class, source.frame(now), now)
                    .is_err()
                {
                    break;
                }
            }
        }
        tree.dequeue(
            now,
            usize::MAX,
            &mut |_, frame| leave(now, frame),
            &mut |_, _| (),
        );
        now += ROUND;
    }
}

/// Octets of each source that leave in a time.
pub fn octets(tree: &mut Tree, sources: &[Source], times: (u64, u64)) -> Vec<u64> {
    let mut all = vec![0; sources.len()];
    pass(tree, sources, times, |_, frame| {
        let of = |source: &Source| (source.to, source.class) == (frame.to, frame.class);
        // what others sent before may still be waiting
        if let Some(at) = sources.iter().position(of) {
            all[at] += u64::from(frame.octets);
        }
    });
    all
}

/// The schedulers of so many workers that share the rate of a port.
pub fn workers(kbps: u64, n: u16) -> Vec<Tree> {
    let shared = SharedRate::new(Rate::kbps(kbps), n);
    let mut trees: Vec<Tree> = (0..n).map(|_| tree(None)).collect();
    for (tree, worker) in trees.iter_mut().zip(0..) {
        tree.share_rate(Some((shared.clone(), worker)));
    }
    trees
}

/// A source of packets at a worker.
pub type Flow = (usize, Source);

/// As [`pass`], for several workers, who have their rounds in an order that changes. `leave` gets the number of the flow.
pub fn pass_all(
    trees: &mut [Tree],
    flows: &[Flow],
    (from, to): (u64, u64),
    mut leave: impl FnMut(u64, usize, Frame),
) {
    for now in (from..to).step_by(ROUND as usize) {
        let first = now / ROUND % 7;
        for turn in 0..trees.len() {
            let worker = (turn + first as usize) % trees.len();
            let tree = &mut trees[worker];
            for (_, source) in flows.iter().filter(|(at, _)| *at == worker) {
                let least = 4 * source.octets.max(16_000);
                while tree.state(source.to, source.class).octets < least
                    && (tree.enqueue(source.to, source.class, source.frame(now), now)).is_ok()
                {
                }
            }
            let of = |frame: &Frame| {
                flows.iter().position(|(at, source)| {
                    (*at, source.to, source.class) == (worker, frame.to, frame.class)
                })
            };
            let leave = &mut |_, frame: Frame| {
                // what others sent before may still be waiting
                if let Some(flow) = of(&frame) {
                    leave(now, flow, frame);
                }
            };
            tree.dequeue(now, BURST, leave, &mut |_, _| ());
        }
    }
}

/// Octets on the wire of each flow that leave in a time.
pub fn wire_of_all(trees: &mut [Tree], flows: &[Flow], times: (u64, u64)) -> Vec<u64> {
    let mut all = vec![0; flows.len()];
    pass_all(trees, flows, times, |_, flow, frame| {
        all[flow] += u64::from(frame.octets + WIRE);
    });
    all
}

/// Whether a number is as wanted but for so many parts of a thousand, and a packet.
pub fn is_near(found: u64, wanted: u64, permille: u64) -> bool {
    found.abs_diff(wanted) <= wanted * permille / 1000 + 1600
}

/// Octets in a time at a rate.
pub fn at_rate(kbps: u64, time: u64) -> u64 {
    (u128::from(kbps) * u128::from(time) / 8_000_000) as u64
}
