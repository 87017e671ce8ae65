//! VLANs that move from worker to worker while packets come: nothing is lost but for lack of room, and each flow stays in order.
use crate::frames::{GATEWAY, Home, frame, v4};
use crate::world::*;
use dataplane::*;
use policy::{Direction, Rate};
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const WORKERS: u16 = 4;
/// Outer VLANs of the homes: both are of one segment.
const VLANS: [u16; 2] = [100, 101];
/// When tests begin: later than the machine's time.
const BEGIN: Duration = Duration::from_secs(1 << 26);
const MS: Duration = Duration::from_millis(1);

/// Homes of VLAN 100, and of 101 behind them: each second one. Their ids are of all lanes.
fn homes(count: u16) -> Vec<Home> {
    let home = |n: u16| Home {
        index: u32::from(n),
        port: ACCESS,
        tags: vec![(0x88a8, VLANS[usize::from(n % 2)]), (0x8100, 1 + n)],
        id: 256 + n,
        mac: [2, 0, 0, 0, 1, n as u8],
        v4: [100, 64, 0, 1 + n as u8],
        v6: [0x20, 1, 0x0d, 0xb8, 0, 0, 1, n as u8],
        mtu: 1492,
    };
    (0..count).map(home).collect()
}

/// A generator of numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

/// Places of sessions: of each worker those that no session has.
#[derive(Clone)]
struct Places {
    at: BTreeMap<u32, u32>,
    next: [u32; WORKERS as usize],
}

impl Places {
    fn new(homes: &[Home]) -> Self {
        Places {
            at: homes.iter().map(|home| (home.index, home.index)).collect(),
            next: core::array::from_fn(|worker| 4 * 100 + worker as u32),
        }
    }

    /// Begins to move one VLAN or both to some worker; whether the data plane takes that now.
    fn move_some(&mut self, w: &mut World, homes: &[Home], random: &mut Random) -> bool {
        let vlans = [&VLANS[..1], &VLANS[1..], &VLANS][random.below(3)];
        let worker = random.below(usize::from(WORKERS)) as u16;
        let mut moved = self.clone();
        let relocation = moved.relocation(homes, vlans, worker);
        let taken = w.controller.relocate(relocation).is_ok();
        if taken {
            *self = moved;
        }
        taken
    }

    /// Where the sessions of VLANs go.
    fn relocation(&mut self, homes: &[Home], vlans: &[u16], worker: u16) -> Relocation {
        let mut sessions = Vec::new();
        for home in homes.iter().filter(|home| vlans.contains(&home.tags[0].1)) {
            let at = self.at.get_mut(&home.index).unwrap();
            if *at % u32::from(WORKERS) == u32::from(worker) {
                continue;
            }
            let next = &mut self.next[usize::from(worker)];
            *at = match home.index % u32::from(WORKERS) == u32::from(worker) {
                true => home.index,
                false => *next,
            };
            *next += u32::from(WORKERS);
            sessions.push((SessionIndex(home.index), SessionIndex(*at)));
        }
        Relocation {
            port: PortIndex(ACCESS),
            vlans: vlans.iter().map(|vlan| *vlan..=*vlan).collect(),
            worker,
            sessions,
        }
    }
}

fn world(queues: u16) -> World {
    World::wide(WORKERS, queues)
}

/// A packet of a home's flow in a direction, with its number.
fn up(home: &Home, n: u32) -> Vec<u8> {
    home.sends_ip(&v4(home.v4, INTERNET, 64, 0, &n.to_be_bytes()))
}

fn down(home: &Home, n: u32) -> Vec<u8> {
    let packet = v4(INTERNET, home.v4, 64, 0, &n.to_be_bytes());
    frame(GATEWAY, ROUTER, &packet)
}

/// From one home to another.
fn across(from: &Home, to: &Home, n: u32) -> Vec<u8> {
    from.sends_ip(&v4(from.v4, to.v4, 64, 0, &n.to_be_bytes()))
}

/// Source, destination and number of a packet that came out; and that the hop was counted once.
fn seen(bytes: &[u8]) -> ([u8; 8], u32) {
    let ip = bytes.len() - 24;
    let packet = &bytes[ip..];
    assert_eq!((packet[0], packet[8]), (0x45, 63), "{bytes:x?}");
    let flow = packet[12..20].try_into().unwrap();
    (flow, u32::from_be_bytes(packet[20..24].try_into().unwrap()))
}

/// Every flow has come in order.
struct InOrder(BTreeMap<[u8; 8], u32>);

impl InOrder {
    fn take(&mut self, w: &mut World) -> u64 {
        let all = w.receive();
        for (_, bytes) in &all {
            let (flow, n) = seen(bytes);
            let last = self.0.insert(flow, n);
            assert!(
                last.is_none_or(|last| last < n),
                "{n} after {last:?} of {flow:?}, moving: {}",
                w.controller.is_moving()
            );
        }
        all.len() as u64
    }
}

/// What homes have sent and received.
fn usage(w: &mut World, homes: &[Home]) -> Vec<(u64, u64)> {
    let all = homes.iter().map(|home| w.usage(home.index).ipv4);
    all.map(|v4| (v4.up_packets, v4.down_packets)).collect()
}

#[test]
fn flows_stay_in_order_and_nothing_is_lost_while_their_vlans_move() {
    for (queues, seed) in [(1, 1), (2, 2), (4, 3), (4, 4)] {
        let (all, mut w) = (homes(24), world(queues));
        w.online(&all);
        let (mut places, mut random) = (Places::new(&all), Random(seed));
        let (mut order, mut sent, mut came, mut moves) = (InOrder(BTreeMap::new()), 0, 0, 0);
        let mut counts = vec![(0, 0); all.len()];
        while moves < 60 {
            // at times more than a worker takes in one round
            let has_room = u64::from(sent) - came < 500;
            let most = if has_room {
                [12, 12, 12, 300][random.below(4)]
            } else {
                1
            };
            for _ in 0..random.below(most) {
                let of = random.below(all.len());
                let home = &all[of];
                // a flow comes by one queue
                let queue = of % usize::from(queues);
                let (port, bytes) = match random.below(3) {
                    0 => (ACCESS, up(home, sent)),
                    1 => (CORE, down(home, sent)),
                    _ => {
                        let to = (of + 5) % all.len();
                        counts[to].1 += 1;
                        (ACCESS, across(home, &all[to], sent))
                    }
                };
                match port {
                    CORE => counts[of].1 += 1,
                    _ => counts[of].0 += 1,
                }
                let mbuf = w.pool.packet(&bytes).expect("a buffer");
                w.send_by(port, queue, mbuf);
                sent += 1;
            }
            w.step_one(random.below(usize::from(WORKERS)));
            came += order.take(&mut w);
            if random.below(3) == 0 {
                w.controller.catch_up();
            }
            if random.below(30) == 0 && !w.controller.is_moving() {
                moves += u32::from(places.move_some(&mut w, &all, &mut random));
            }
        }
        w.settle();
        came += order.take(&mut w);
        assert_eq!(w.drops(), BTreeMap::new(), "{queues} {seed}");
        assert_eq!(came, u64::from(sent));
        assert_eq!(usage(&mut w, &all), counts);
        for home in &all {
            let at = w.controller.place_of(SessionIndex(home.index));
            assert_eq!(at, SessionIndex(places.at[&home.index]));
        }
    }
}

/// Moves VLANs and waits until that is done.
fn relocate(w: &mut World, places: &mut Places, homes: &[Home], vlans: &[u16], worker: u16) {
    let relocation = places.relocation(homes, vlans, worker);
    w.controller.relocate(relocation).unwrap();
    assert!(w.controller.is_moving());
    w.settle();
    assert!(!w.controller.is_moving());
}

fn policy(number: u16) -> PolicyIndex {
    PolicyIndex(NonZeroU16::new(number).unwrap())
}

/// A policy whose packets wait, in queues of flows.
fn queues() -> PolicyRules {
    let profile = QueueProfile {
        classes: vec![QueueSettings::default(); MOST_CLASSES + 1],
        ..QueueProfile::default()
    };
    PolicyRules {
        unmatched_pass: true,
        queues: Some(QueueRules { profile, weight: 1 }),
        ..PolicyRules::default()
    }
}

/// A packet of 1,000 octets each millisecond.
const RATE: Rate = Rate::kbps(1000 * 8);

/// A packet of 1,000 octets of one of two flows, with its number at the end.
fn large(home: &Home, n: u32) -> Vec<u8> {
    let mut data = vec![0; 980];
    data[976..].copy_from_slice(&n.to_be_bytes());
    let packet = v4([192, 0, 2, (n % 2) as u8], home.v4, 64, 0, &data);
    frame(GATEWAY, ROUTER, &packet)
}

#[test]
fn what_waits_goes_along_in_the_order_of_each_flow_and_leaves_at_the_rate() {
    let (all, mut w) = (homes(6), world(1));
    w.online(&all);
    w.settle_at(BEGIN);
    let compiler = w.controller.policy_compiler();
    let compiled = Arc::new(compiler.compile(&queues()).unwrap());
    w.controller.set_policy(policy(1), Some(compiled)).unwrap();
    let (home, mut places) = (&all[2], Places::new(&all));
    let mut entry = World::entry(home);
    (entry.packets.rate_down, entry.policies.down) = (Some(RATE), Some(policy(1)));
    w.controller.set_session(entry).unwrap();
    w.settle();
    let (mut sent, mut came, mut last) = (0, 0, [None; 2]);
    for ms in 0..200 {
        w.settle_at(BEGIN + ms * MS);
        if ms < 60 {
            for _ in 0..2 {
                w.send(CORE, &large(home, sent));
                sent += 1;
            }
        }
        if ms % 7 == 3 {
            let worker = (ms / 7 % 4) as u16;
            relocate(&mut w, &mut places, &all, &[100], worker);
        }
        for (_, bytes) in w.receive() {
            let n = u32::from_be_bytes(*bytes.last_chunk().unwrap());
            let last = &mut last[n as usize % 2];
            assert!(last.is_none_or(|last| last < n), "{n} after {last:?}");
            (*last, came) = (Some(n), came + 1);
        }
        // each worker makes up for a millisecond
        assert!(came <= ms + 2 + ms / 7, "{came} within {ms} ms");
    }
    let drops: u64 = w.drops().values().sum();
    assert_eq!(u64::from(came) + drops, u64::from(sent), "{:?}", w.drops());
    assert!(drops < 20, "{:?}", w.drops());
    let usage = w.usage(home.index).ipv4;
    assert_eq!(usage.down_packets, u64::from(came));
    assert_eq!(usage.down_octets, 1000 * u64::from(came));
}

#[test]
fn tokens_and_what_was_counted_go_along() {
    let (all, mut w) = (homes(8), world(1));
    w.online(&all);
    w.settle_at(BEGIN);
    let (home, mut places) = (&all[2], Places::new(&all));
    let mut entry = World::entry(home);
    entry.packets.rate_down = Some(Rate::kbps(100));
    entry.packets.subscriber_rate_up = Some(Rate::kbps(100));
    w.controller.set_session(entry).unwrap();
    // another session of the subscriber, in the same VLAN and at the same worker
    let mut other = World::entry(&all[6]);
    other.packets.subscriber_rate_up = Some(Rate::kbps(100));
    w.controller.set_session(other).unwrap();
    let sent = |w: &mut World| {
        for n in 0..20 {
            w.send(CORE, &large(home, n));
            let packet = v4(home.v4, INTERNET, 64, 0, &[0; 980]);
            w.send(ACCESS, &home.sends_ip(&packet));
        }
        w.settle();
        let mut ports = [0; 2];
        let all = w.receive().into_iter();
        all.for_each(|(port, _)| ports[usize::from(port)] += 1);
        ports
    };
    // bursts are of 15,000 octets
    assert_eq!(sent(&mut w), [15, 15]);
    for worker in [1, 3, 2] {
        relocate(&mut w, &mut places, &all, &[100], worker);
        assert_eq!(sent(&mut w), [0, 0]);
    }
    let down = Direction::Down;
    let index = SessionIndex(home.index);
    for direction in Direction::BOTH {
        w.controller.read_policy(index, direction).unwrap();
        w.settle();
        let [
            Event::PolicyState {
                index: of,
                state: Some(state),
                ..
            },
        ] = &w.events()[..]
        else {
            panic!("a state");
        };
        let exceeded = match direction == down {
            true => state.exceeded_packets,
            false => state.subscriber_exceeded_packets,
        };
        assert_eq!((*of, exceeded), (index, 5 + 3 * 20));
    }
}

#[test]
fn sessions_come_go_and_change_where_their_vlan_is() {
    let (all, mut w) = (homes(8), world(1));
    let (first, mut places) = (&all[..6], Places::new(&all[..6]));
    w.online(first);
    let relocation = places.relocation(first, &[100], 3);
    w.controller.relocate(relocation).unwrap();
    // sessions' commands wait
    assert_eq!(w.controller.set_session(World::entry(&all[6])), Err(Busy));
    w.settle();
    assert_eq!(w.controller.owner(PortIndex(ACCESS), 100), Some(3));
    assert_eq!(w.controller.owner(PortIndex(ACCESS), 101), None);
    // one that comes has a place of the worker, whatever its lane is
    let wrong = World::entry(&all[6]);
    let right = SessionEntry {
        index: SessionIndex(4 * 50 + 3),
        ..wrong.clone()
    };
    w.controller.set_session(wrong).unwrap();
    w.controller.set_session(right).unwrap();
    w.settle();
    let refused = Event::SessionRefused {
        index: SessionIndex(6),
        reason: Refusal::Malformed,
    };
    assert_eq!(w.events(), [refused]);
    let passes = |w: &mut World, home: &Home| {
        w.send(ACCESS, &up(home, 1));
        w.send(CORE, &down(home, 1));
        w.settle();
        w.receive().len() == 2
    };
    assert!(passes(&mut w, &all[6]) && all[..6].iter().all(|home| passes(&mut w, home)));
    // a change of a session that has moved
    let mut entry = World::entry(&all[0]);
    entry.ipv4 = Some([100, 64, 0, 99].into());
    w.controller.set_session(entry.clone()).unwrap();
    let moved = Home {
        v4: [100, 64, 0, 99],
        ..all[0].clone()
    };
    w.settle();
    assert!(passes(&mut w, &moved));
    w.send(CORE, &down(&all[0], 1));
    w.settle();
    assert_eq!(w.drops()["discard-route"], 1);
    // it goes, and another one has its index at its own worker
    w.controller.remove_session(SessionIndex(0)).unwrap();
    w.settle();
    let gone = w.events();
    assert!(
        matches!(gone[..], [Event::Usage { index: SessionIndex(0), removed: true, usage }]
            if usage.ipv4.up_packets == 2),
        "{gone:?}"
    );
    w.controller.forget_place(SessionIndex(0));
    assert_eq!(w.controller.place_of(SessionIndex(0)), SessionIndex(0));
    let next = Home {
        index: 0,
        id: 260,
        ..all[7].clone()
    };
    w.online(std::slice::from_ref(&next));
    assert!(passes(&mut w, &next));
}

/// As when a port is opened again.
#[test]
fn sessions_of_a_port_that_had_none_begin_where_their_vlan_was_said_to_be() {
    let (all, mut w) = (homes(8), world(1));
    let access = PortIndex(ACCESS);
    let of_none = w.controller.set_owners(access, [(100, WORKERS)]);
    assert_eq!(of_none, Err(PortError::Unknown(access)));
    w.controller.set_owners(access, [(100, 3)]).unwrap();
    assert!(!w.controller.is_moving());
    let of = [100, 101].map(|vlan| w.controller.owner(access, vlan));
    assert_eq!(of, [Some(3), None]);
    for (home, n) in all.iter().zip(0..) {
        let index = match home.tags[0].1 {
            100 => 4 * (50 + n) + 3,
            _ => home.index,
        };
        let entry = SessionEntry {
            index: SessionIndex(index),
            ..World::entry(home)
        };
        w.controller.set_session(entry).unwrap();
        w.send(ACCESS, &up(home, 1));
        w.send(CORE, &down(home, 1));
    }
    w.settle();
    assert_eq!((w.events(), w.receive().len()), (vec![], 2 * all.len()));
}

/// The same with the workers on threads.
#[test]
fn flows_stay_in_order_while_their_vlans_move_between_threads() {
    let (all, mut w) = (homes(24), world(1));
    w.online(&all);
    let stop = Arc::new(AtomicBool::new(false));
    let threads = w.take_workers().into_iter().map(|worker| {
        let stop = stop.clone();
        std::thread::spawn(move || worker.run(&stop))
    });
    let threads: Vec<_> = threads.collect();
    let (mut places, mut random) = (Places::new(&all), Random(9));
    let (mut order, mut sent, mut came, mut moves) = (InOrder(BTreeMap::new()), 0, 0, 0);
    let begin = std::time::Instant::now();
    while moves < 200 || came < u64::from(sent) {
        let is_late = || format!("{moves} moves, {came} of {sent}: {:?}", w.drops());
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", is_late());
        // no ring is ever full
        let has_room = u64::from(sent) - came < 200;
        for _ in 0..if has_room && moves < 200 { 20 } else { 0 } {
            let home = &all[random.below(all.len())];
            let other = &all[random.below(all.len())];
            let (port, bytes) = match random.below(3) {
                0 => (ACCESS, up(home, sent)),
                1 => (CORE, down(home, sent)),
                _ => (ACCESS, across(home, other, sent)),
            };
            w.send(port, &bytes);
            sent += 1;
        }
        came += order.take(&mut w);
        w.controller.catch_up();
        if moves < 200 && !w.controller.is_moving() {
            moves += u32::from(places.move_some(&mut w, &all, &mut random));
        }
    }
    stop.store(true, Relaxed);
    let joined = threads.into_iter().map(|thread| thread.join().is_ok());
    assert!(joined.collect::<Vec<_>>().into_iter().all(|joined| joined));
    assert_eq!(w.drops(), BTreeMap::new());
}

#[test]
fn what_finds_no_room_while_it_is_held_is_counted() {
    let (all, mut w) = (homes(6), world(1));
    w.online(&all);
    let relocation = Places::new(&all).relocation(&all, &[100, 101], 0);
    w.controller.relocate(relocation).unwrap();
    w.step();
    for n in 0..5000 {
        w.send(ACCESS, &up(&all[n % 6], n as u32));
        w.step_one(0);
    }
    w.settle();
    assert_eq!(w.drops()["hand-over-full"], 5000 - 4096);
    let sent: u64 = usage(&mut w, &all).iter().map(|(up, _)| up).sum();
    assert_eq!(sent, 4096);
}
