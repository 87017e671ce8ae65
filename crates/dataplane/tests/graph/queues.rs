//! Sessions whose packets wait for their rate.
use crate::cases::homes;
use crate::frames::{GATEWAY, Home, frame, v4};
use crate::world::*;
use dataplane::*;
use policy::{Direction, Rate};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
/// Octets of an IP packet.
const PACKET: usize = 1000;
/// When tests begin: later than the machine's time.
pub const BEGIN: Duration = Duration::from_secs(1 << 26);
pub const MS: Duration = Duration::from_millis(1);
/// A packet each millisecond.
pub const RATE: Rate = Rate::kbps(PACKET as u64 * 8);

fn policy(number: u16) -> PolicyIndex {
    PolicyIndex(NonZeroU16::new(number).unwrap())
}

/// Rules with queues, of which each holds 20,000 octets.
pub fn rules() -> PolicyRules {
    let class = QueueSettings {
        limit: 20_000,
        management: Management::TailDrop,
        ..QueueSettings::default()
    };
    let profile = QueueProfile {
        classes: vec![class; MOST_CLASSES + 1],
        ..QueueProfile::default()
    };
    PolicyRules {
        unmatched_pass: true,
        queues: Some(QueueRules { profile, weight: 1 }),
        ..PolicyRules::default()
    }
}

pub fn set_policy(w: &mut World, number: u16, rules: Option<&PolicyRules>) {
    let compiler = w.controller.policy_compiler();
    let compiled = rules.map(|rules| Arc::new(compiler.compile(rules).unwrap()));
    w.controller.set_policy(policy(number), compiled).unwrap();
    w.settle();
}

pub fn set_session(w: &mut World, home: &Home, number: Option<u16>, rate: Option<Rate>) {
    let mut entry = World::entry(home);
    entry.packets.rate_down = rate;
    entry.policies.down = number.map(policy);
    w.controller.set_session(entry).unwrap();
    w.settle();
}

/// A world in which the first home has queues.
fn world(workers: u16, queues: u16) -> (Vec<Home>, World) {
    let (homes, mut w) = (homes(), World::shared(workers, queues));
    w.online(&homes);
    w.settle_at(BEGIN);
    set_policy(&mut w, 1, Some(&rules()));
    set_session(&mut w, &homes[0], Some(1), Some(RATE));
    (homes, w)
}

/// So many packets from the internet to a home, numbered from `first` on.
pub fn send(w: &mut World, home: &Home, first: u8, n: u8) {
    for number in first..first + n {
        let packet = v4(INTERNET, home.v4, 64, 0, &[number; PACKET - 20]);
        w.send(CORE, &frame(GATEWAY, ROUTER, &packet));
    }
}

/// The numbers of those that left until a time.
fn left(w: &mut World, at: Duration) -> Vec<u8> {
    w.settle_at(at);
    let all = w.receive().into_iter();
    all.map(|(_, frame)| *frame.last().unwrap()).collect()
}

/// Those that leave in the next second, from so many milliseconds on.
fn rest(w: &mut World, from: u32) -> Vec<u8> {
    (from..from + 1000)
        .flat_map(|ms| left(w, BEGIN + ms * MS))
        .collect()
}

#[test]
fn packets_leave_at_the_rate_and_are_counted_when_they_leave() {
    for (workers, queues) in [(1, 1), (4, 4), (4, 1)] {
        let (homes, mut w) = world(workers, queues);
        send(&mut w, &homes[0], 0, 30);
        let mut all = left(&mut w, BEGIN);
        // one, and one more for a millisecond without packets
        assert!(all.len() <= 2, "{all:?}");
        // 19 frames are 20,000 octets
        let most = 30 - w.drops()["queue-full"] as usize;
        assert!((19..=21).contains(&most), "{most}");
        for ms in 1..30 {
            all.extend(left(&mut w, BEGIN + ms * MS));
            let wanted = ms as usize..=ms as usize + 2;
            assert!(
                wanted.contains(&all.len()) || all.len() == most,
                "{} after {ms} ms",
                all.len()
            );
            w.events();
            let usage = w.usage(homes[0].index).ipv4;
            assert_eq!(usage.down_packets, all.len() as u64);
            assert_eq!(usage.down_octets, (all.len() * PACKET) as u64);
        }
        // by several queues they come in another order
        let ordered = all.iter().copied().eq(0..most as u8);
        assert!(ordered || queues > 1, "{all:?}");
        assert_eq!(w.next_departure(), None);
    }
}

#[test]
fn other_sessions_do_not_wait() {
    let (homes, mut w) = world(1, 1);
    send(&mut w, &homes[0], 0, 10);
    send(&mut w, &homes[1], 100, 10);
    let all = left(&mut w, BEGIN);
    assert_eq!(all.iter().filter(|number| **number >= 100).count(), 10);
    assert!(all.len() <= 12, "{all:?}");
    assert_eq!(all.len() + rest(&mut w, 0).len(), 20);
}

#[test]
fn what_waits_is_kept_when_policy_and_rate_change() {
    let (homes, mut w) = world(1, 1);
    send(&mut w, &homes[0], 0, 15);
    let mut all = left(&mut w, BEGIN);
    // another version of the policy, another policy, and a rate that is a hundred times as high
    let mut others = rules();
    others.queues.as_mut().unwrap().weight = 7;
    set_policy(&mut w, 1, Some(&others));
    set_policy(&mut w, 2, Some(&rules()));
    let faster = Rate::kbps(RATE.get() * 100);
    set_session(&mut w, &homes[0], Some(2), Some(faster));
    assert!(all.len() <= 2);
    // with another packet behind them
    send(&mut w, &homes[0], 15, 1);
    all.extend(left(&mut w, BEGIN + MS));
    all.extend(left(&mut w, BEGIN + 2 * MS));
    assert!(all.iter().copied().eq(0..16), "{all:?}");
    // without queues there is no wait, and what waits goes at its rate
    send(&mut w, &homes[0], 16, 10);
    set_session(&mut w, &homes[0], None, None);
    send(&mut w, &homes[0], 26, 1);
    let all = left(&mut w, BEGIN + 3 * MS);
    assert!(all.contains(&26), "{all:?}");
    assert_eq!(all.len() + rest(&mut w, 4).len(), 11);
    assert_eq!(w.drops(), Default::default());
}

/// 18 packets come at the former rate, and nothing after them. Whether what is changed then holds at once: all leave within four
/// milliseconds at ten times the rate.
fn follows(change: impl Fn(&mut World, &Home, Rate), factor: u64) {
    let (homes, mut w) = world(1, 1);
    change(&mut w, &homes[0], RATE);
    send(&mut w, &homes[0], 0, 18);
    let mut all = left(&mut w, BEGIN);
    assert!(all.len() <= 2, "{all:?}");
    change(&mut w, &homes[0], Rate::kbps(RATE.get() * factor));
    for ms in 1..4 {
        all.extend(left(&mut w, BEGIN + ms * MS));
    }
    assert_eq!(all.len() == 18, factor == 10, "{all:?}");
    all.extend(rest(&mut w, 4));
    assert!(all.iter().copied().eq(0..18), "{all:?}");
    assert_eq!(w.drops(), Default::default());
}

/// What waits does not go on at the rate of before until another packet comes.
#[test]
fn a_new_rate_holds_at_once_for_what_waits() {
    for factor in [10, 1] {
        let of_session =
            |w: &mut World, home: &Home, rate| set_session(w, home, Some(1), Some(rate));
        follows(of_session, factor);
    }
}

/// The same for a class, whose rate is that of a new version of the policy.
#[test]
fn a_new_rate_of_a_class_holds_at_once_for_what_waits() {
    for factor in [10, 1] {
        let of_class = |w: &mut World, home: &Home, rate| {
            let mut rules = rules();
            rules.queues.as_mut().unwrap().profile.classes[0].rate = Some(rate);
            set_policy(w, 1, Some(&rules));
            if rate == RATE {
                set_session(w, home, Some(1), None);
            }
        };
        follows(of_class, factor);
    }
}

/// What a full device does not take is not overtaken by what comes when it has room again.
#[test]
fn frames_without_queues_keep_their_order_at_a_full_device() {
    let (homes, mut w) = world(1, 1);
    // the port has queues from the first packet on that has one
    send(&mut w, &homes[0], 0, 1);
    assert_eq!(left(&mut w, BEGIN), [0]);
    let numbers = || (0..200).cycle();
    for number in numbers().take(280) {
        send(&mut w, &homes[1], number, 1);
        w.settle();
    }
    let mut all: Vec<u8> = w
        .receive()
        .iter()
        .map(|(_, frame)| *frame.last().unwrap())
        .collect();
    assert_eq!((all.len(), w.drops()), (256, Default::default()));
    send(&mut w, &homes[1], 80, 20);
    all.extend(left(&mut w, BEGIN));
    assert!(all.iter().copied().eq(numbers().take(300)), "{all:?}");
}

/// Though nobody waits before it. What has no queue is dropped then.
#[test]
fn what_a_full_device_does_not_take_waits_in_its_queue() {
    let (homes, mut w) = world(1, 1);
    set_policy(&mut w, 1, Some(&without_limits()));
    set_session(&mut w, &homes[0], Some(1), None);
    let numbers = || (0..200).cycle();
    for number in numbers().take(400) {
        send(&mut w, &homes[0], number, 1);
        w.settle();
    }
    assert_eq!(w.drops(), Default::default());
    send(&mut w, &homes[1], 201, 1);
    w.settle();
    assert_eq!(w.drops()["tx-queue-full"], 1);
    let mut all = Vec::new();
    for ms in 1..10 {
        all.extend(left(&mut w, BEGIN + ms * MS));
    }
    assert!(all.iter().copied().eq(numbers().take(400)), "{all:?}");
    assert_eq!(w.usage(homes[0].index).ipv4.down_packets, 400);
}

#[test]
fn what_waits_is_dropped_when_its_session_ends_and_the_next_one_has_its_own() {
    let (homes, mut w) = world(1, 1);
    send(&mut w, &homes[0], 0, 10);
    let before = left(&mut w, BEGIN).len() as u64;
    let index = SessionIndex(homes[0].index);
    w.controller.remove_session(index).unwrap();
    w.settle_at(BEGIN);
    assert_eq!(w.drops()["queue-purged"], 10 - before);
    assert_eq!(w.next_departure(), None);
    set_session(&mut w, &homes[0], Some(1), Some(RATE));
    send(&mut w, &homes[0], 50, 5);
    let all = rest(&mut w, 10);
    assert_eq!(all, [50, 51, 52, 53, 54]);
    w.events();
    w.controller.read_policy(index, Direction::Down).unwrap();
    w.settle();
    let told = w.events();
    let state = told.iter().find_map(|event| match event {
        Event::PolicyState { state, .. } => state.as_deref().copied(),
        _ => None,
    });
    let queue = state.and_then(|state| state.queues).unwrap()[0];
    assert_eq!((queue.packets, queue.waiting_octets), (5, 0));
}

#[test]
fn a_port_that_goes_takes_what_waits_with_it() {
    let (homes, mut w) = world(1, 1);
    send(&mut w, &homes[0], 0, 10);
    let before = left(&mut w, BEGIN).len() as u64;
    let port = homes[0].port;
    w.remove(port);
    assert_eq!(w.drops()["queue-purged"], 10 - before);
    assert_eq!(w.next_departure(), None);
}

#[test]
fn sessions_share_the_rate_of_their_port() {
    let (homes, mut w) = world(1, 1);
    let two: Vec<&Home> = homes
        .iter()
        .filter(|home| home.port == homes[0].port)
        .take(2)
        .collect();
    // the port has half of what both may have, and twice as much for the second
    let wire = (PACKET + 24 + 22 + 8) as u64;
    let rate = Rate::kbps(wire * 8);
    let mut weighted = rules();
    weighted.queues.as_mut().unwrap().weight = 2;
    set_policy(&mut w, 2, Some(&weighted));
    set_session(&mut w, two[0], Some(1), Some(RATE));
    set_session(&mut w, two[1], Some(2), Some(RATE));
    w.controller
        .set_egress_rate(PortIndex(homes[0].port), Some(rate))
        .unwrap();
    w.settle();
    let mut all = Vec::new();
    for ms in 0..300 {
        if ms % 10 == 0 {
            send(&mut w, two[0], 0, 12);
            send(&mut w, two[1], 100, 12);
        }
        all.extend(left(&mut w, BEGIN + ms * MS));
    }
    let second = all.iter().filter(|number| **number >= 100).count();
    assert!((290..=305).contains(&all.len()), "{}", all.len());
    assert!((190..=210).contains(&second), "{second} of {}", all.len());
    rest(&mut w, 300);
}

/// Sessions of a VLAN have its rate and that of the segment, which another VLAN has the rest of.
#[test]
fn segments_and_their_vlans_have_rates() {
    let (homes, mut w) = world(1, 1);
    let vlan = |home: &Home| World::entry(home).tags.outer.map_or(0, |tag| tag.vid);
    let of_port = homes.iter().filter(|home| home.port == homes[0].port);
    let of_segment: Vec<&Home> = of_port
        .filter(|home| (100..200).contains(&vlan(home)))
        .collect();
    let first = of_segment[0];
    let second = of_segment.iter().find(|home| vlan(home) != vlan(first));
    let two = [first, second.expect("a home of another VLAN")];
    for home in two {
        set_session(&mut w, home, Some(1), Some(Rate::kbps(RATE.get() * 10)));
    }
    // frames with tags: two a millisecond in the segment, one and a half in a VLAN
    let wire = (PACKET + 24 + 22 + 8) as u64 * 8;
    let rates = |segment, vlan: Option<u64>| SegmentRates {
        id: 0,
        vlans: vec![100..=199],
        rate: Some(Rate::kbps(segment)),
        vlan_rate: vlan.map(Rate::kbps),
    };
    let port = PortIndex(first.port);
    let mut begin = 0;
    let mut shares = |w: &mut World, rates: SegmentRates, both: bool| {
        w.controller.set_segment_rates(port, &[rates]).unwrap();
        let mut all = Vec::new();
        for ms in begin..begin + 400 {
            if ms % 4 == 0 {
                send(w, two[0], 0, 10);
                send(w, two[1], 100, if both { 10 } else { 0 });
            }
            let left = left(w, BEGIN + ms * MS);
            // the first hundred milliseconds are those of the rates before
            all.extend(left.into_iter().filter(|_| ms >= begin + 100));
        }
        begin += 400;
        let second = all.iter().filter(|number| **number >= 100).count();
        (all.len() - second, second)
    };
    let near = |found: usize, wanted: usize| found.abs_diff(wanted) <= wanted / 50 + 3;
    let (first, second) = shares(&mut w, rates(2 * wire, None), true);
    assert!(near(first, 300) && near(second, 300), "{first} {second}");
    let (first, second) = shares(&mut w, rates(2 * wire, Some(wire * 3 / 2)), false);
    assert!(near(first, 450) && second < 10, "{first} {second}");
    let (first, second) = shares(&mut w, rates(4 * wire, Some(wire)), true);
    assert!(near(first, 300) && near(second, 300), "{first} {second}");
    rest(&mut w, begin);
}

/// The worker of a home, of four.
fn worker(home: &Home) -> u16 {
    home.id % 4
}

/// Four workers whose homes at a port have queues, a weight for each and a rate of the port; they send by so many queues. Returns the octets that
/// each home gets in 600 milliseconds of which it sends in those that `sends` says, by the hundred of them.
fn shared(
    queues: u16,
    weight: impl Fn(u16) -> u16,
    sends: impl Fn(u16, usize) -> bool,
) -> (Vec<Home>, Vec<[u64; 6]>) {
    let (homes, mut w) = world(4, queues);
    let homes: Vec<Home> = homes
        .into_iter()
        .filter(|home| home.port == ACCESS)
        .collect();
    for home in &homes {
        let mut rules = rules();
        rules.queues.as_mut().unwrap().weight = weight(worker(home));
        set_policy(&mut w, home.index as u16 + 2, Some(&rules));
        let rate = Rate::kbps(RATE.get() * 40);
        set_session(&mut w, home, Some(home.index as u16 + 2), Some(rate));
    }
    // two packets a millisecond for each
    let wire = (PACKET + 24 + 22 + 8) as u64;
    let rate = Rate::kbps(wire * 8 * homes.len() as u64 * 2);
    let port = PortIndex(ACCESS);
    w.controller.set_egress_rate(port, Some(rate)).unwrap();
    w.settle();
    let mut got = vec![[0; 6]; homes.len()];
    // twentieths of milliseconds
    for step in 0..12_000 {
        let hundred = step as usize / 2_000;
        if step % 20 == 0 {
            for (number, home) in homes.iter().enumerate() {
                if sends(worker(home), hundred) {
                    (0..18).for_each(|_| send(&mut w, home, number as u8, 1));
                }
            }
        }
        w.settle_at(BEGIN + step * MS / 20);
        for (_, frame) in w.receive() {
            let number = usize::from(*frame.last().unwrap());
            got[number][hundred] += frame.len() as u64 + 24;
        }
    }
    let (sum, most) = (got.iter().flatten().sum::<u64>(), rate.get() * 600 / 8);
    assert!(
        sum <= most + 3_000 && sum > most * 98 / 100,
        "{sum} of {most}"
    );
    rest(&mut w, 600);
    (homes, got)
}

/// Each worker has its homes' part of the rate; what the homes of one do not want, those of the others have, and no longer than that.
#[test]
fn the_rate_of_a_port_is_shared_among_workers_by_demand() {
    // also where three workers send by the queue of the fourth
    for queues in [4, 1] {
        let of = |home: &Home| worker(home) == 0;
        let (homes, got) = shared(
            queues,
            |_| 1,
            |worker, hundred| worker != 0 || hundred % 2 == 0,
        );
        let first = homes.iter().filter(|home| of(home)).count();
        assert!(first > 0 && first < homes.len());
        for (home, got) in homes.iter().zip(&got) {
            for (hundred, got) in got.iter().enumerate() {
                let wire = (PACKET + 24 + 22 + 8) as u64;
                let (all, active) = (homes.len() as u64 * 200 * wire, homes.len() - first);
                let wanted = match (hundred % 2, of(home)) {
                    (0, _) => 200 * wire,
                    (_, true) => 0,
                    (_, false) => all / active as u64,
                };
                // what waits of the hundred before, and the change
                let most = wanted / 10 + 30 * wire;
                assert!(
                    got.abs_diff(wanted) <= most,
                    "{hundred}: {got} of {wanted}, {home:?}"
                );
            }
        }
    }
}

/// Those of one worker have three times the weight of the others.
#[test]
fn weights_hold_among_the_homes_of_all_workers() {
    let weight = |worker| if worker == 0 { 3 } else { 1 };
    let (homes, got) = shared(4, weight, |_, _| true);
    let weights: u64 = homes
        .iter()
        .map(|home| u64::from(weight(worker(home))))
        .sum();
    let all: u64 = got.iter().flatten().sum();
    for (home, got) in homes.iter().zip(&got) {
        let (sent, weight) = (got.iter().sum::<u64>(), u64::from(weight(worker(home))));
        let wanted = all * weight / weights;
        assert!(
            sent.abs_diff(wanted) <= wanted / 20,
            "{sent} of {wanted}, {got:?}"
        );
    }
}

/// What the queues of a port at the only worker tell, by part.
fn parts(w: &mut World, port: PortIndex) -> Vec<PartState> {
    let (mut from, mut found, mut room) = (Some(0), Vec::new(), 1);
    while let Some(number) = from {
        w.controller.read_queues(0, port, (number, room)).unwrap();
        w.step();
        let answer = w.events().into_iter().find_map(|event| match event {
            Event::Queues { next, parts, all } => Some((next, parts, all)),
            _ => None,
        });
        let (next, parts, all) = answer.expect("an answer");
        assert!(parts.len() <= room);
        from = next;
        if next.is_none() && all > room {
            (from, room) = (Some(0), all);
        }
        found = parts;
    }
    found
}

/// The queues that the resource audit sees: their places, of which session they are, and whether it knows them.
fn places(w: &mut World) -> Vec<(u32, Option<SessionIndex>, bool)> {
    let (mut part, mut all) = (Some(Part::FIRST), Vec::new());
    while let Some(next) = part {
        w.controller.inspect(next).unwrap();
        w.settle();
        let piece = w.controller.poll_piece().expect("a piece");
        all.extend(piece.found.iter().filter_map(|held| match held {
            Held::Queues {
                place,
                session,
                whole,
                ..
            } => Some((*place, *session, *whole)),
            _ => None,
        }));
        part = piece.next;
    }
    all
}

fn held(w: &mut World) -> Vec<(Option<SessionIndex>, bool)> {
    let all = places(w).into_iter();
    all.map(|(_, session, whole)| (session, whole)).collect()
}

#[test]
fn parts_of_a_port_tell_what_waits_there_and_go_with_their_last_session() {
    let (homes, mut w) = world(1, 1);
    let vlan = |home: &Home| World::entry(home).tags.outer.map_or(0, |tag| tag.vid);
    let home = homes
        .iter()
        .find(|home| home.port == ACCESS && (100..200).contains(&vlan(home)))
        .unwrap();
    let port = PortIndex(ACCESS);
    w.controller
        .remove_session(SessionIndex(homes[0].index))
        .unwrap();
    w.settle_at(BEGIN);
    let tags = 4 * World::entry(home).tags.count();
    let wire = (PACKET + 24 + 22 + tags) as u64 * 8;
    let rates = SegmentRates {
        id: 3,
        vlans: vec![100..=199],
        rate: Some(Rate::kbps(4 * wire)),
        vlan_rate: Some(Rate::kbps(wire)),
    };
    w.controller
        .set_segment_rates(port, std::slice::from_ref(&rates))
        .unwrap();
    set_session(&mut w, home, Some(1), Some(Rate::kbps(RATE.get() * 10)));
    assert_eq!(parts(&mut w, port).len(), 1, "nobody has queues yet");
    assert_eq!(held(&mut w), []);
    // two packets a millisecond come, and one leaves
    let mut left_so_far = 0;
    for half in 0..400 {
        send(&mut w, home, 0, 1);
        left_so_far += left(&mut w, BEGIN + half * MS / 2).len() as u64;
    }
    let found = parts(&mut w, port);
    let shown: Vec<_> = found.iter().map(|part| (part.part, part.rate)).collect();
    let expected = [
        (PortPart::Port, None),
        (PortPart::Segment(3), rates.rate),
        (PortPart::Vlan(3, vlan(home)), rates.vlan_rate),
    ];
    assert_eq!(shown, expected);
    let drops = w.drops()["queue-full"];
    for part in &found {
        let counts = part.counts;
        assert_eq!(counts.packets, left_so_far);
        assert_eq!(counts.octets, left_so_far * wire / 8);
        assert_eq!(counts.drops, drops);
        assert_eq!(counts.waiting.subscribers, 1);
        assert_eq!(counts.waiting.waiting_subscribers, 1);
        assert!(
            (15_000..=20_000).contains(&counts.waiting.octets),
            "{counts:?}"
        );
        let [class, subscriber, aggregate, port] = counts.limits;
        assert_eq!([class, subscriber, port], [0; 3], "{counts:?}");
        assert!(aggregate > 3, "{counts:?}");
    }
    let index = SessionIndex(home.index);
    assert_eq!(held(&mut w), [(Some(index), true)]);
    w.controller.read_policy(index, Direction::Down).unwrap();
    w.step();
    let limit = w.events().into_iter().find_map(|event| match event {
        Event::PolicyState { state, .. } => state?.queues?[0].limit,
        _ => None,
    });
    assert_eq!(limit, Some(Limit::Aggregate));
    // without the rate of VLANs, its own is gone as soon as the session has sent by the segment alone
    let without = SegmentRates {
        vlan_rate: None,
        ..rates
    };
    w.controller.set_segment_rates(port, &[without]).unwrap();
    send(&mut w, home, 0, 1);
    left(&mut w, BEGIN + 200 * MS);
    let found: Vec<_> = parts(&mut w, port).iter().map(|part| part.part).collect();
    assert_eq!(found, [PortPart::Port, PortPart::Segment(3)]);
    w.controller.remove_session(index).unwrap();
    w.settle();
    let found = parts(&mut w, port);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].counts.waiting, Waiting::default());
    assert_eq!(held(&mut w), []);
}

/// A port whose rate a worker keeps is its own part; frames without queues are no subscribers.
#[test]
fn a_port_tells_its_rate() {
    let (homes, mut w) = world(1, 1);
    let port = PortIndex(homes[0].port);
    let wire = (PACKET + 24 + 22 + 8) as u64 * 8;
    let rate = Some(Rate::kbps(wire));
    set_session(
        &mut w,
        &homes[0],
        Some(1),
        Some(Rate::kbps(RATE.get() * 10)),
    );
    w.controller.set_egress_rate(port, rate).unwrap();
    for ms in 0..200 {
        send(&mut w, &homes[0], 0, 2);
        left(&mut w, BEGIN + ms * MS);
    }
    let found = parts(&mut w, port);
    assert_eq!((found.len(), found[0].rate), (1, rate));
    let counts = found[0].counts;
    assert_eq!(counts.waiting.subscribers, 1);
    let [class, subscriber, aggregate, port] = counts.limits;
    assert!(
        [class, subscriber, aggregate] == [0; 3] && port > 3,
        "{counts:?}"
    );
    rest(&mut w, 200);
}

#[test]
fn stray_queues_are_removed_with_what_waits_in_them() {
    let (homes, mut w) = world(1, 1);
    send(&mut w, &homes[0], 0, 10);
    let before = left(&mut w, BEGIN).len() as u64;
    let [(place, ..)] = places(&mut w)[..] else {
        panic!("one session has queues");
    };
    // those of frames without a queue are before them, and stay
    w.controller.remove_stray_queues(place - 1).unwrap();
    w.controller.remove_stray_queues(place).unwrap();
    w.settle_at(BEGIN);
    assert_eq!(held(&mut w), []);
    assert_eq!(w.drops()["queue-purged"], 10 - before);
    // the session makes itself others
    send(&mut w, &homes[0], 20, 3);
    assert_eq!(rest(&mut w, 1), [20, 21, 22]);
    assert_eq!(held(&mut w), [(Some(SessionIndex(homes[0].index)), true)]);
}

/// The rules of [`rules`] with a limit that is no limit.
fn without_limits() -> PolicyRules {
    let mut rules = rules();
    let queues = rules.queues.as_mut().unwrap();
    let classes = queues.profile.classes.iter_mut();
    classes.for_each(|class| class.limit = 100 << 20);
    rules
}

/// However many ports stand still, half of the buffers are free for packets that arrive, and another port has room for those that wait there.
#[test]
fn ports_that_stand_still_leave_room_and_buffers_to_others() {
    for (workers, queues) in [(1, 1), (4, 4)] {
        // so many that the ports fill up, and not the share of each
        let home = |n| match n % 2 {
            0 => Home::new(n, ACCESS, &[(0x8100, 100)]),
            _ => Home::new(n, ACCESS2, &[(0x8100, 300)]),
        };
        let homes: Vec<Home> = (1..=60).map(home).collect();
        let mut w = World::shared(workers, queues);
        w.online(&homes);
        w.settle_at(BEGIN);
        set_policy(&mut w, 1, Some(&without_limits()));
        let all = w.pool.available() as usize;
        for home in &homes {
            set_session(&mut w, home, Some(1), Some(Rate::kbps(1)));
        }
        w.controller
            .set_egress_rate(PortIndex(CORE), Some(Rate::kbps(1_000_000)))
            .unwrap();
        for _ in 0..20 {
            for home in &homes {
                send(&mut w, home, 0, 20);
                w.settle();
            }
        }
        let free = w.pool.available() as usize;
        assert!(free >= all / 2, "{free} of {all}");
        let drops = w.drops();
        assert!(drops.keys().all(|name| name.contains("queues-full")));
        if workers == 1 {
            assert!(drops["port-queues-full"] > 1000, "{drops:?}");
            assert!(free <= all * 3 / 4, "{free} of {all}");
        }
        let packet = v4(homes[0].v4, INTERNET, 64, 0, &[7; PACKET - 20]);
        // of the room a fifth is free beside two ports that have twice as much each, and a third port takes half of that
        let n = all / workers as usize / 20;
        for _ in 0..n / 20 {
            (0..20).for_each(|_| w.send(homes[0].port, &homes[0].sends_ip(&packet)));
            w.settle();
        }
        assert_eq!(w.drops(), drops);
        let sent = (0..100).map(|ms| {
            w.settle_at(BEGIN + ms * MS);
            let left = w.receive().into_iter();
            left.filter(|(port, _)| *port == CORE).count()
        });
        assert_eq!(sent.sum::<usize>(), n / 20 * 20);
        for port in [ACCESS, ACCESS2] {
            w.remove(port);
        }
        assert_eq!(w.pool.available() as usize, all);
    }
}

/// What waited and has left, or was taken away, leaves its room to what comes next by any port.
#[test]
fn room_is_free_again_when_nothing_waits_there() {
    let (homes, mut w) = (homes(), World::shared(1, 1));
    w.online(&homes);
    w.settle_at(BEGIN);
    set_policy(&mut w, 1, Some(&without_limits()));
    let all = w.pool.available() as usize;
    // who is alone has half of the room
    let fills = |w: &mut World, home: &Home| {
        set_session(w, home, Some(1), Some(Rate::kbps(1)));
        for _ in 0..all / 40 {
            send(w, home, 0, 20);
            w.settle();
        }
        let waiting = all - w.pool.available() as usize;
        assert!(waiting.abs_diff(all / 4) < 30, "{waiting} of {all}");
    };
    let remove = |w: &mut World, home: &Home| {
        let index = SessionIndex(home.index);
        w.controller.remove_session(index).unwrap();
        w.settle();
    };
    fills(&mut w, &homes[0]);
    assert!(w.drops()["subscriber-queues-full"] > 100);
    let fast = Rate::kbps(10_000_000);
    set_session(&mut w, &homes[0], Some(1), Some(fast));
    // with the next packet that comes
    send(&mut w, &homes[0], 0, 1);
    (1..50).for_each(|ms| drop(left(&mut w, BEGIN + ms * MS)));
    assert_eq!(w.pool.available() as usize, all);
    fills(&mut w, &homes[4]);
    remove(&mut w, &homes[4]);
    fills(&mut w, &homes[1]);
    remove(&mut w, &homes[1]);
    fills(&mut w, &homes[5]);
    w.remove(ACCESS2);
    fills(&mut w, &homes[2]);
    w.remove(ACCESS);
}
