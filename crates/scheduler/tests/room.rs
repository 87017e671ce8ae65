//! Room for packets that wait: who is busy alone has most of it, and nobody takes what others need.
mod common;
use common::*;
use scheduler::*;
use std::collections::BTreeMap;

/// Packets that may wait.
const ROOM: usize = 8192;
const MANAGEMENTS: [Management; 4] = [Management::TailDrop, CODEL, FQ_CODEL, DUAL_PI2];

/// Homes that do more than they may have, those that do not, and what came of their packets.
struct Load {
    tree: Tree,
    /// Whose queues never have enough: with packets in so many classes.
    hostile: Vec<SubscriberIndex>,
    classes: usize,
    /// Who send so many packets at once every 10 ms.
    polite: Vec<SubscriberIndex>,
    burst: usize,
    refused: BTreeMap<(bool, &'static str), u64>,
    sent: [u64; 2],
    /// The most that have waited.
    most: usize,
}

impl Load {
    fn new(tree: Tree, hostile: Vec<SubscriberIndex>, polite: Vec<SubscriberIndex>) -> Self {
        Load {
            tree,
            hostile,
            classes: 1,
            polite,
            burst: 1,
            refused: BTreeMap::new(),
            sent: [0; 2],
            most: 0,
        }
    }

    fn offer(&mut self, to: SubscriberIndex, class: usize, flow: u32, now: u64) {
        let source = Source {
            class,
            ..Source::new(to, 1000)
        };
        let frame = Frame {
            flow,
            ..source.frame(now)
        };
        match self.tree.offer(to, class, frame, now) {
            Ok(None) => {}
            Ok(Some(frame)) => self.count(frame),
            Err((refused, frame)) => {
                let kind = match refused {
                    Refused::Unknown => "unknown",
                    Refused::ClassFull => "class",
                    Refused::SubscriberFull => "subscriber",
                    Refused::AggregateFull => "aggregate",
                    Refused::PortFull => "port",
                };
                let is_polite = self.polite.contains(&frame.to);
                *self.refused.entry((is_polite, kind)).or_default() += 1;
            }
        }
    }

    fn count(&mut self, frame: Frame) {
        self.sent[usize::from(self.polite.contains(&frame.to))] += 1;
    }

    fn run(&mut self, times: (u64, u64)) {
        let mut turn = 0;
        for now in (times.0..times.1).step_by(10 * ROUND as usize) {
            for _ in 0..400 {
                turn += 1;
                let to = self.hostile[turn % self.hostile.len()];
                let class = turn / self.hostile.len() % self.classes;
                self.offer(to, class, turn as u32 % 5, now);
            }
            if now % (10 * MS) == 0 {
                for n in 0..self.polite.len() * self.burst {
                    self.offer(self.polite[n / self.burst], 0, 7, now);
                }
            }
            self.most = self.most.max(self.tree.waiting());
            let mut left = Vec::new();
            let leave = &mut |_, frame| left.push(frame);
            self.tree.dequeue(now, usize::MAX, leave, &mut |_, _| ());
            left.into_iter().for_each(|frame| self.count(frame));
        }
    }

    /// Nobody comes any more, and all that waits leaves.
    fn empty(&mut self, mut now: u64) {
        while let Some(at) = self.tree.deadline() {
            now = now.max(at);
            let mut left = Vec::new();
            let leave = &mut |_, frame| left.push(frame);
            self.tree.dequeue(now, 64, leave, &mut |_, _| ());
            left.into_iter().for_each(|frame| self.count(frame));
        }
    }

    fn refused(&self, is_polite: bool) -> BTreeMap<&'static str, u64> {
        let of = self.refused.iter().filter(|((of, _), _)| *of == is_polite);
        of.map(|((_, kind), n)| (*kind, *n)).collect()
    }

    /// The polite ones have lost nothing, and have got all they were sent.
    fn holds_for_the_polite(&mut self, bursts: u64) {
        self.empty(bursts * 10 * MS);
        assert_eq!(self.refused(true), BTreeMap::new());
        let wanted = bursts * (self.polite.len() * self.burst) as u64;
        assert_eq!(self.sent[1], wanted);
        assert!(self.most <= ROOM && self.most >= ROOM / 2, "{}", self.most);
        assert_eq!(self.tree.waiting(), 0);
    }
}

fn settings(management: Management, limit: u32) -> QueueProfile {
    let mut profile = managed(management);
    profile.classes.iter_mut().for_each(|class| {
        class.limit = limit;
        // what waits for long is dropped late, as that is not what is looked at here
        if let Management::CoDel { target, .. } | Management::FqCoDel { target, .. } =
            &mut class.management
        {
            *target = std::time::Duration::from_secs(60);
        }
    });
    profile
}

/// 4,000 homes of an aggregate want thirty times what it has, and 50 of another one half of what that has: whether both are access nodes or
/// VLANs of one, these lose nothing, and are refused nothing.
#[test]
fn an_aggregate_does_not_take_the_room_of_another() {
    for management in MANAGEMENTS {
        for levels in [1, 2] {
            let mut tree = tree_with_room(Some(10_000_000), ROOM);
            let parent = match levels {
                1 => PORT,
                _ => aggregate(&mut tree, PORT, Some(2_000_000)),
            };
            let sites = [(); 2].map(|()| aggregate(&mut tree, parent, Some(1_000_000)));
            let profile = tree.add_profile(&settings(management, 256 << 10));
            let [hostile, polite] = [(sites[0], 4000), (sites[1], 50)].map(|(site, n)| {
                let settings = home(profile, Some(100_000));
                (0..n).map(|_| tree.add(site, &settings)).collect()
            });
            let mut load = Load::new(tree, hostile, polite);
            load.burst = 10;
            load.run((0, 200 * MS));
            let waits = |site| load.tree.aggregate_state(site).waiting_packets as usize;
            let has = waits(sites[0]);
            assert!(has > ROOM / 2 && has <= ROOM * 2 / 3, "{has}");
            assert_eq!(waits(PORT), load.tree.waiting());
            load.holds_for_the_polite(20);
            let refused = load.refused(false);
            assert!(refused["aggregate"] > 10_000, "{refused:?}");
            assert_eq!(refused.len(), 1, "{refused:?}");
            for site in sites.into_iter().chain([parent]) {
                assert_eq!(load.tree.aggregate_state(site).waiting_packets, 0);
            }
        }
    }
}

/// A home with limits beyond all room in eight classes, and 200 homes beside it in its aggregate.
#[test]
fn a_subscriber_does_not_take_the_room_of_others() {
    for management in MANAGEMENTS {
        let mut tree = tree_with_room(Some(10_000_000), ROOM);
        let site = aggregate(&mut tree, PORT, Some(2_000_000));
        let large = tree.add_profile(&settings(management, 100 << 20));
        let profile = tree.add_profile(&settings(management, 256 << 10));
        let hostile = vec![tree.add(site, &home(large, Some(50_000)))];
        let settings = home(profile, Some(100_000));
        let polite = (0..200).map(|_| tree.add(site, &settings)).collect();
        let mut load = Load::new(tree, hostile, polite);
        (load.classes, load.burst) = (CLASSES, 5);
        load.run((0, 200 * MS));
        load.holds_for_the_polite(20);
        let refused = load.refused(false);
        assert!(refused["subscriber"] > 10_000, "{refused:?}");
        assert_eq!(refused.len(), 1, "{refused:?}");
    }
}

/// Also in an aggregate that is short of everything, who asks for less than a share of its rate finds room.
#[test]
fn a_home_that_asks_for_little_finds_room_beside_many_that_ask_for_much() {
    for management in MANAGEMENTS {
        let mut tree = tree_with_room(Some(10_000_000), ROOM);
        let site = aggregate(&mut tree, PORT, Some(1_000_000));
        let profile = tree.add_profile(&settings(management, 256 << 10));
        let settings = home(profile, Some(100_000));
        let [hostile, polite] =
            [1000, 3].map(|n| (0..n).map(|_| tree.add(site, &settings)).collect());
        let mut load = Load::new(tree, hostile, polite);
        load.run((0, 1_000 * MS));
        load.holds_for_the_polite(100);
        assert!(load.refused(false)["aggregate"] > 100_000);
    }
}

/// How much of the room a busy one has that is alone, and how much is left for others.
#[test]
fn who_is_busy_alone_has_at_least_half_of_the_room() {
    let fill = |homes: usize| {
        let mut tree = tree_with_room(Some(1), ROOM);
        let site = aggregate(&mut tree, PORT, None);
        let vlan = aggregate(&mut tree, site, None);
        let profile = tree.add_profile(&settings(Management::TailDrop, 100 << 20));
        let homes: Vec<_> = (0..homes)
            .map(|_| tree.add(vlan, &home(profile, None)))
            .collect();
        for n in 0..ROOM * 2 {
            let frame = Source::new(homes[n % homes.len()], 100).frame(0);
            let _ = tree.enqueue(frame.to, 0, frame, 0);
        }
        tree.waiting()
    };
    assert_eq!(fill(1), ROOM / 2);
    // of 4 parts that are free, 2 times 2 are the VLAN's less 2 times that of its access node
    assert!(fill(1000).abs_diff(ROOM * 4 / 7) < 10, "{}", fill(1000));
}

/// The first packet of a class finds room although another class has taken all of its home's.
#[test]
fn what_is_urgent_finds_room_behind_what_is_not() {
    let mut tree = tree_with_room(Some(1), 100);
    let profile = tree.add_profile(&settings(Management::TailDrop, 100 << 20));
    let home = tree.add(PORT, &home(profile, None));
    let mut put = |class| {
        let source = Source {
            class,
            ..Source::new(home, 100)
        };
        let put = tree.enqueue(home, class, source.frame(0), 0);
        put.map_err(|(refused, _)| refused)
    };
    let taken = (0..100).take_while(|_| put(1).is_ok()).count();
    assert_eq!(taken, 50);
    assert_eq!(put(0), Ok(()));
    assert_eq!([put(0), put(1)], [Err(Refused::SubscriberFull); 2]);
}

/// Without room, a class of flows takes a packet of one flow for a packet of another that has more.
#[test]
fn without_room_the_flow_that_has_the_most_gives_way() {
    let mut tree = tree_with_room(Some(1), 100);
    let profile = tree.add_profile(&settings(FQ_CODEL, 100 << 20));
    let home = tree.add(PORT, &home(profile, None));
    let frame = |flow| Frame {
        flow,
        ..Source::new(home, 100).frame(0)
    };
    let taken = (0..100).take_while(|_| tree.enqueue(home, 0, frame(1), 0).is_ok());
    assert_eq!(taken.count(), 50);
    let waiting = tree.waiting();
    for flow in 2..12 {
        let Err((Refused::SubscriberFull, given)) = tree.enqueue(home, 0, frame(flow), 0) else {
            panic!("there is no room");
        };
        assert_eq!((given.flow, tree.waiting()), (1, waiting));
    }
    let mut flows = BTreeMap::<u32, u32>::new();
    tree.remove(home, &mut |frame| {
        *flows.entry(frame.flow).or_default() += 1
    });
    let wanted = [(1, 40)].into_iter().chain((2..12).map(|flow| (flow, 1)));
    assert!(flows.iter().map(|(flow, n)| (*flow, *n)).eq(wanted));
    assert_eq!(tree.waiting(), 0);
}

/// What a subscriber has is counted with 16 bits, which is enough however much room there is.
#[test]
fn a_subscriber_has_an_end_where_room_has_none() {
    for management in MANAGEMENTS {
        let mut tree = tree(Some(1));
        let profile = tree.add_profile(&settings(management, 100 << 20));
        let home = tree.add(PORT, &home(profile, None));
        let mut last = Ok(());
        for _ in 0..70_000 {
            let frame = Source::new(home, 100).frame(0);
            last = (tree.enqueue(home, 0, frame, 0)).map_err(|(refused, _)| refused);
        }
        assert_eq!(tree.waiting(), 65_534);
        assert_eq!(last, Err(Refused::SubscriberFull));
    }
}

/// What waits is counted where its home stands, wherever that is put, and not any more when it is gone.
#[test]
fn what_waits_goes_with_its_home() {
    let mut tree = tree_with_room(Some(1), ROOM);
    let site = aggregate(&mut tree, PORT, Some(1000));
    let vlans = [(); 2].map(|()| aggregate(&mut tree, site, Some(1000)));
    let profile = tree.add_profile(&settings(FQ_CODEL, 100 << 10));
    let homes = vlans.map(|vlan| tree.add(vlan, &home(profile, Some(100))));
    for class in 0..CLASSES {
        for home in homes {
            let frame = Source::new(home, 1000).frame(0);
            assert!(tree.enqueue(home, class, frame, 0).is_ok());
        }
    }
    let waits = |tree: &Tree| {
        let at = [vlans[0], vlans[1], site, PORT];
        at.map(|at| tree.aggregate_state(at).waiting_packets)
    };
    assert_eq!(waits(&tree), [8, 8, 16, 16]);
    tree.place(homes[0], vlans[1]);
    assert_eq!(waits(&tree), [0, 16, 16, 16]);
    tree.place(homes[0], PORT);
    assert_eq!(waits(&tree), [0, 8, 8, 16]);
    tree.remove(homes[1], &mut |_| ());
    assert_eq!(waits(&tree), [0, 0, 0, 8]);
    tree.remove(homes[0], &mut |_| ());
    assert_eq!(waits(&tree), [0; 4]);
}

/// The room may change: then no more packets come than there is room for, and those that wait leave.
#[test]
fn room_may_become_less() {
    let mut tree = tree_with_room(Some(1000), 1000);
    let profile = tree.add_profile(&settings(CODEL, 100 << 20));
    let homes = [(); 4].map(|()| tree.add(PORT, &home(profile, Some(100))));
    let put = |tree: &mut Tree| {
        let frames = homes.map(|home| Source::new(home, 100).frame(0));
        frames.map(|frame| tree.enqueue(frame.to, 0, frame, 0).is_ok())
    };
    while put(&mut tree).contains(&true) {}
    assert_eq!(tree.waiting(), 500);
    tree.set_room(300);
    assert_eq!(put(&mut tree), [false; 4]);
    let mut left = 0;
    while let Some(at) = tree.deadline().filter(|_| left < 400) {
        left += tree.dequeue(at, 64, &mut |_, _| (), &mut |_, _| ());
    }
    assert_eq!(put(&mut tree), [true; 4]);
}
