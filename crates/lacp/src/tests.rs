//! Two systems on the ends of the same links, on a clock of their own.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use wire::lacp::State;

const STEP: Duration = Duration::from_millis(10);

fn settings(system: u8) -> Settings {
    Settings {
        system: MacAddr([2, 0, 0, 0, 0, system]),
        ..Settings::default()
    }
}

/// Two groups, and the links between their members.
struct World {
    now: Duration,
    ends: [Group; 2],
    /// The other end of each end's members: system and member.
    wires: Vec<[usize; 2]>,
    /// LACPDUs under way: when, to which end and member.
    flying: VecDeque<(Duration, usize, usize, Vec<u8>)>,
    /// Links by which nothing passes although they are up.
    cut: Vec<bool>,
    sent: [Vec<Duration>; 2],
}

impl World {
    fn new(a: Settings, b: Settings, members: usize) -> Self {
        World {
            now: Duration::ZERO,
            ends: [Group::new(a, members), Group::new(b, members)],
            wires: (0..members).map(|member| [member, member]).collect(),
            flying: VecDeque::new(),
            cut: vec![false; members],
            sent: Default::default(),
        }
    }

    fn up(mut self) -> Self {
        for wire in 0..self.wires.len() {
            self.link(wire, true);
        }
        self
    }

    fn link(&mut self, wire: usize, up: bool) {
        for (end, member) in self.wires[wire].into_iter().enumerate() {
            self.ends[end].set_link(self.now, member, up);
        }
    }

    fn run(&mut self, for_: Duration) {
        let until = self.now + for_;
        while self.now < until {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let arrived = self.flying.iter().take_while(|(at, ..)| *at <= self.now);
        let arrived = arrived.count();
        for (_, end, member, bytes) in self.flying.drain(..arrived).collect::<Vec<_>>() {
            self.ends[end].receive(self.now, member, &bytes);
        }
        for end in 0..2 {
            self.ends[end].on_timeout(self.now);
            while let Some((member, pdu)) = self.ends[end].poll_transmit(self.now) {
                self.sent[end].push(self.now);
                let wire = self.wires.iter().position(|wire| wire[end] == member);
                let Some(wire) = wire.filter(|wire| !self.cut[*wire]) else {
                    continue;
                };
                let mut bytes = Vec::new();
                pdu.emit(&mut bytes);
                let to = 1 - end;
                (self.flying).push_back((self.now + STEP, to, self.wires[wire][to], bytes));
            }
        }
        for group in &self.ends {
            assert!(
                group.poll_at().is_none_or(|at| at > self.now),
                "it has done all that it had to"
            );
        }
    }

    fn used(&self) -> [(u16, u16); 2] {
        [0, 1].map(|end| (self.ends[end].receives(), self.ends[end].sends()))
    }

    fn standings(&self, end: usize) -> Vec<&'static str> {
        self.ends[end]
            .members()
            .map(|(standing, ..)| standing.name())
            .collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn links_are_used_at_once_when_both_ends_agree_and_no_more_when_one_fails() {
    let mut world = World::new(settings(1), settings(2), 3).up();
    world.run(SECOND / 4);
    assert_eq!(world.used(), [(0b111, 0b111); 2]);
    world.link(1, false);
    assert_eq!(world.used(), [(0b101, 0b101); 2], "at once");
    world.run(10 * SECOND);
    assert_eq!(world.standings(0), ["used", "link-down", "used"]);
    world.link(1, true);
    world.run(SECOND / 4);
    assert_eq!(world.used(), [(0b111, 0b111); 2]);
}

#[test]
fn a_link_by_which_nothing_comes_is_left_after_three_seconds() {
    let mut world = World::new(settings(1), settings(2), 2).up();
    world.run(5 * SECOND);
    world.cut[0] = true;
    world.run(Duration::from_millis(1900));
    assert_eq!(
        world.used(),
        [(0b11, 0b11); 2],
        "LACPDUs come once a second"
    );
    world.run(Duration::from_millis(1200));
    assert_eq!(world.used(), [(0b10, 0b10); 2]);
    world.run(4 * SECOND);
    assert_eq!(world.standings(0), ["silent", "used"]);
    assert_eq!(world.ends[0].members().next().unwrap().1, None, "forgotten");
    world.cut[0] = false;
    world.run(Duration::from_millis(1200));
    assert_eq!(world.used(), [(0b11, 0b11); 2]);
}

#[test]
fn nothing_is_sent_to_who_does_not_receive_yet() {
    let mut world = World::new(settings(1), settings(2), 2).up();
    for _ in 0..100 {
        world.step();
        let [(a_receives, a_sends), (b_receives, b_sends)] = world.used();
        // What is under way says so a step earlier.
        assert!(a_sends & !b_receives == 0 && b_sends & !a_receives == 0);
    }
    assert_eq!(world.used(), [(0b11, 0b11); 2]);
}

#[test]
fn a_link_to_another_switch_is_not_used() {
    let mut world = World::new(settings(1), settings(2), 3).up();
    world.run(SECOND);
    let mut stranger = Group::new(settings(3), 1);
    stranger.set_link(world.now, 0, true);
    let (_, pdu) = stranger.poll_transmit(world.now).unwrap();
    let mut bytes = Vec::new();
    pdu.emit(&mut bytes);
    world.cut[2] = true;
    world.ends[0].receive(world.now, 2, &bytes);
    assert_eq!(world.standings(0), ["used", "used", "other-partner"]);
    assert_eq!(world.ends[0].sends(), 0b011);

    let mut own = Group::new(settings(1), 2);
    own.set_link(world.now, 0, true);
    let (_, pdu) = own.poll_transmit(world.now).unwrap();
    let mut bytes = Vec::new();
    pdu.emit(&mut bytes);
    own.set_link(world.now, 1, true);
    own.receive(world.now, 1, &bytes);
    assert_eq!(own.members().nth(1).unwrap().0, Standing::Looped);
    assert_eq!(own.sends(), 0);
}

#[test]
fn links_that_are_not_to_be_aggregated_are_used_alone() {
    let mut world = World::new(settings(1), settings(2), 2).up();
    world.run(SECOND);
    let mut group = Group::new(settings(1), 2);
    for member in 0..2 {
        group.set_link(world.now, member, true);
        let (_, mut pdu) = world.ends[1]
            .clone()
            .poll_transmit(world.now + 30 * SECOND)
            .unwrap();
        pdu.actor.port = member as u16 + 1;
        pdu.actor.state.remove(State::AGGREGATION);
        let mut bytes = Vec::new();
        pdu.emit(&mut bytes);
        group.receive(world.now, member, &bytes);
    }
    assert_eq!(group.receives(), 0b01);
}

#[test]
fn somebody_has_to_begin() {
    let passive = |system| Settings {
        mode: Mode::Passive,
        ..settings(system)
    };
    let mut world = World::new(passive(1), passive(2), 1).up();
    world.run(100 * SECOND);
    assert_eq!((world.used(), world.sent[0].len()), ([(0, 0); 2], 0));
    assert_eq!(world.standings(0), ["silent"]);
    world.ends[1].set(world.now, settings(2));
    world.run(2 * SECOND);
    assert_eq!(world.used(), [(1, 1); 2]);
}

#[test]
fn without_the_protocol_links_that_are_up_are_used() {
    let off = |system| Settings {
        mode: Mode::Off,
        minimum: 2,
        ..settings(system)
    };
    let mut world = World::new(off(1), off(2), 3).up();
    assert_eq!(world.used(), [(0b111, 0b111); 2]);
    world.run(100 * SECOND);
    assert_eq!(
        (world.used(), world.sent[0].len()),
        ([(0b111, 0b111); 2], 0)
    );
    world.link(0, false);
    assert_eq!(world.used(), [(0b110, 0b110); 2]);
    world.link(1, false);
    assert_eq!(world.standings(0), ["link-down", "link-down", "too-few"]);
    assert_eq!(world.used(), [(0, 0); 2]);
    // From one to the other while it runs.
    for end in 0..2 {
        let mode = Mode::Active;
        world.ends[end].set(
            world.now,
            Settings {
                mode,
                ..settings(end as u8 + 1)
            },
        );
    }
    assert_eq!(world.used(), [(0, 0); 2], "the partner has to agree");
    world.run(2 * SECOND);
    assert_eq!(world.used(), [(0b100, 0b100); 2]);
    world.ends[0].set(world.now, off(1));
    world.ends[0].set(
        world.now,
        Settings {
            minimum: 1,
            ..off(1)
        },
    );
    assert_eq!(world.used()[0], (0b100, 0b100));
}

#[test]
fn fewer_than_the_minimum_are_not_used() {
    let two = Settings {
        minimum: 2,
        ..settings(1)
    };
    let mut world = World::new(two, settings(2), 2).up();
    world.run(SECOND);
    assert_eq!(world.used(), [(0b11, 0b11); 2]);
    world.link(0, false);
    world.run(SECOND);
    assert_eq!(world.used()[0], (0, 0));
    assert_eq!(
        world.used()[1].1,
        0,
        "the other end sends nothing to who receives nothing"
    );
    assert_eq!(world.standings(0), ["link-down", "too-few"]);
}

#[test]
fn slow_partners_are_told_each_thirty_seconds() {
    let slow = |system| Settings {
        fast: false,
        ..settings(system)
    };
    let mut world = World::new(slow(1), slow(2), 1).up();
    world.run(10 * SECOND);
    let before = world.sent[0].len();
    world.run(300 * SECOND);
    assert_eq!(world.sent[0].len() - before, 10);
    assert_eq!(world.used(), [(1, 1); 2]);
    // Fast on one side: the other sends each second.
    world.ends[1].set(world.now, settings(2));
    world.run(5 * SECOND);
    let before = world.sent[0].len();
    world.run(30 * SECOND);
    assert_eq!(world.sent[0].len() - before, 30);
    assert_eq!(world.used(), [(1, 1); 2]);
}

#[test]
fn a_partner_that_was_restarted_is_used_again_within_a_second() {
    let mut world = World::new(settings(1), settings(2), 2).up();
    world.run(5 * SECOND);
    world.ends[1] = Group::new(settings(2), 2);
    for member in 0..2 {
        world.ends[1].set_link(world.now, member, true);
    }
    world.run(STEP * 2);
    assert_eq!(world.ends[0].sends(), 0, "it receives nothing");
    world.run(Duration::from_millis(1200));
    assert_eq!(world.used(), [(0b11, 0b11); 2]);
}

#[test]
fn what_is_no_lacpdu_is_counted_and_a_marker_answered() {
    let mut group = Group::new(settings(1), 1);
    let mut marker = vec![2, 1, 1, 16];
    marker.resize(110, 7);
    assert_eq!(group.receive(SECOND, 0, &marker), None, "its link is down");
    group.set_link(SECOND, 0, true);
    assert_eq!(
        group.receive(SECOND, 0, &marker).map(|answer| answer[2]),
        Some(2)
    );
    assert_eq!(group.receive(SECOND, 0, &[1, 1, 1]), None);
    assert_eq!(group.receive(SECOND, 5, &marker), None);
    let (_, _, counters) = group.members().next().unwrap();
    assert_eq!((counters.received, counters.malformed), (0, 1));
}

#[derive(Clone, Debug)]
enum Change {
    Link(usize, bool),
    Cut(usize, bool),
    Settings(usize, bool, bool, u16),
    Restart(usize),
    Noise(usize, usize, Vec<u8>),
    Wait(u16),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (0..3usize, any::<bool>()).prop_map(|(wire, up)| Change::Link(wire, up)),
        2 => (0..3usize, any::<bool>()).prop_map(|(wire, cut)| Change::Cut(wire, cut)),
        1 => (0..2usize, any::<bool>(), any::<bool>(), 1..3u16)
            .prop_map(|(end, passive, fast, minimum)| Change::Settings(end, passive, fast, minimum)),
        1 => (0..2usize).prop_map(Change::Restart),
        1 => (0..2usize, 0..4usize, prop::collection::vec(any::<u8>(), 0..120))
            .prop_map(|(end, member, noise)| Change::Noise(end, member, noise)),
        4 => (1..800u16).prop_map(Change::Wait),
    ];
    prop::collection::vec(change, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happened: once the links are up and let LACPDUs pass, all are used; nothing is used whose link is down; no end sends more
    /// than three LACPDUs a second by a member.
    #[test]
    fn what_is_whole_is_used_in_the_end(changes in changes()) {
        let mut world = World::new(settings(1), settings(2), 3).up();
        let mut up = [true; 3];
        for change in changes {
            match change {
                Change::Link(wire, to) => {
                    up[wire] = to;
                    world.link(wire, to);
                }
                Change::Cut(wire, to) => world.cut[wire] = to,
                Change::Settings(end, passive, fast, minimum) => {
                    let mode = if passive && end == 1 { Mode::Passive } else { Mode::Active };
                    let now = world.now;
                    world.ends[end].set(now, Settings { mode, fast, minimum, ..settings(end as u8 + 1) });
                }
                Change::Restart(end) => {
                    world.ends[end] = Group::new(settings(end as u8 + 1), 3);
                    for (member, up) in up.into_iter().enumerate() {
                        let now = world.now;
                        world.ends[end].set_link(now, member, up);
                    }
                    world.sent[end].clear();
                }
                Change::Noise(end, member, noise) => {
                    let now = world.now;
                    world.ends[end].receive(now, member, &noise);
                }
                Change::Wait(steps) => world.run(STEP * u32::from(steps)),
            }
            let down: u16 = up.iter().zip(0..).map(|(up, bit)| u16::from(!up) << bit).sum();
            for (receives, sends) in world.used() {
                prop_assert!((receives | sends) & down == 0 && sends & !receives == 0);
            }
            for sent in &world.sent {
                // three members
                prop_assert!(sent.windows(10).all(|ten| ten[9] - ten[0] >= SECOND), "{sent:?}");
            }
        }
        world.cut.fill(false);
        for wire in 0..3 {
            world.link(wire, true);
        }
        world.run(100 * SECOND);
        prop_assert_eq!(world.used(), [(0b111, 0b111); 2]);
    }
}

fn mbps(speed: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(speed)
}

/// Links of different speeds are not used together: those that are used stay so, and one of another speed is used if none of these is left.
#[test]
fn only_links_of_the_same_speed_are_used_together() {
    for mode in [Mode::Active, Mode::Off] {
        let own = Settings {
            mode,
            ..settings(1)
        };
        let other = Settings {
            mode,
            ..settings(2)
        };
        let mut world = World::new(own, other, 3);
        for (member, speed) in [1_000, 10_000, 10_000].into_iter().enumerate() {
            let ends = world.ends.iter_mut();
            ends.for_each(|end| end.set_speed(member, mbps(speed)));
        }
        let mut world = world.up();
        world.run(SECOND);
        let slow = ["used", "other-speed", "other-speed"];
        let fast = ["other-speed", "used", "used"];
        // the first one that was there
        assert_eq!(world.used(), [(0b001, 0b001); 2], "{mode:?}");
        assert_eq!([world.standings(0), world.standings(1)], [slow; 2]);
        world.link(0, false);
        world.run(SECOND);
        assert_eq!(world.used(), [(0b110, 0b110); 2]);
        assert_eq!(world.standings(0), ["link-down", "used", "used"]);
        world.link(0, true);
        world.run(SECOND);
        assert_eq!(world.standings(0), fast);
        // it was negotiated anew
        let ends = world.ends.iter_mut();
        ends.for_each(|end| end.set_speed(0, mbps(10_000)));
        world.run(SECOND);
        assert_eq!(world.used(), [(0b111, 0b111); 2]);
    }
}
