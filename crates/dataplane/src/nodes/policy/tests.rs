use super::*;
use crate::api::*;
use crate::compiled::{Hits, MOST_CLASSES, PolicyClass, PolicyCompiler, PolicyRules, RuleHits};
use crate::police::MeterSettings;
use crate::queues::QueueRules;
use crate::tables::classes::ClassCounts;
use crate::tables::policies::Passes;
use crate::tables::sessions::Sources;
use core::num::NonZeroU16;
use dpdk::HEAD;
use policy::Overhead;
use policy::{PacketSettings, Rate};
use scheduler::{QueueProfile, QueueSettings};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::eth::{MacAddr, Tags};

mod classes;
mod homes;
mod policers;

const HZ: u64 = Sessions::HZ;
const INDEX: SessionIndex = SessionIndex(1);
const IP: usize = HEAD + 14;

fn entry(packets: PacketSettings, policies: Policies) -> SessionEntry {
    SessionEntry {
        index: INDEX,
        port: PortIndex(0),
        tags: Tags::NONE,
        peer_mac: MacAddr([2; 6]),
        gateway_mac: MacAddr([4; 6]),
        pppoe_session_id: 7,
        instance: InstanceIndex(0),
        packets,
        policies,
        subscriber: 0,
        ipv4: None,
        ipv6: None,
        routed: [].into(),
    }
}

/// One session, and a policy with the number 1.
struct World {
    sessions: Sessions,
    policies: CompiledPolicies,
    w: Window,
    /// How many packets there were.
    packets: usize,
}

impl World {
    fn new(packets: PacketSettings, policies: Policies) -> Self {
        let mut sessions = Sessions::with(8, &[0..=4095]);
        sessions.set(entry(packets, policies), Sources::default(), 0);
        World {
            sessions,
            policies: CompiledPolicies::new(8),
            w: Window::default(),
            packets: 0,
        }
    }

    fn set(&mut self, packets: PacketSettings) {
        self.sessions
            .set(entry(packets, Policies::default()), Sources::default(), 0);
    }

    fn compile(&mut self, rules: &[&str], change: impl Fn(&mut PolicyRules)) {
        let rules: Vec<acl::Rule> = rules.iter().map(|text| text.parse().unwrap()).collect();
        let mut policy = PolicyRules {
            rules,
            ..PolicyRules::default()
        };
        change(&mut policy);
        let compiled = PolicyCompiler { workers: 1, hz: HZ }
            .compile(&policy)
            .unwrap();
        self.policies.set(number(), Some(Arc::new(compiled)));
    }

    /// A packet of a session meets the node. Of every other one the rules were asked before, with those of the burst: that makes no difference.
    fn pass<R>(
        &mut self,
        (index, direction): (SessionIndex, Direction),
        (family, total, now): (Family, usize, u64),
        node: impl FnOnce(&mut Sessions, &CompiledPolicies, Examined<'_>) -> R,
    ) -> R {
        self.packets += 1;
        let matched = match Passes::of(self.sessions.get(index).unwrap(), direction) {
            Passes::By(policy) if self.packets.is_multiple_of(2) => {
                let compiled = self.policies.get(policy);
                compiled.map(|compiled| matched(compiled, &self.w, family, IP))
            }
            _ => None,
        };
        let packet = Examined {
            w: &mut self.w,
            family,
            ip: IP,
            total,
            origin: Origin::Gateway,
            matched: matched.unwrap_or(Matched::OPEN),
            now,
        };
        node(&mut self.sessions, &self.policies, packet)
    }

    fn pass_down(
        &mut self,
        index: SessionIndex,
        packet: (Family, usize, u64),
    ) -> Result<Option<Queued>, DropReason> {
        let way = (index, Direction::Down);
        self.pass(way, packet, |sessions, policies, packet| {
            down(sessions, policies, index, packet)
        })
    }

    /// Of so many octets of IPv6.
    fn down(&mut self, octets: usize, now: u64) -> Result<(), DropReason> {
        self.pass_down(INDEX, (Family::V6, octets, now)).map(|_| ())
    }

    /// Of so many octets of IPv6, which were counted.
    fn up(&mut self, octets: usize, now: u64) -> Result<(), DropReason> {
        self.leaves_up(octets, now).map_err(|leave| match leave {
            Exit::Drop(reason) => reason,
            other => panic!("neither passed nor dropped: {other:?}"),
        })
    }

    /// The same; how it leaves if it does not pass.
    fn leaves_up(&mut self, octets: usize, now: u64) -> Result<(), Exit> {
        let slot = self.sessions.slot(0, 0, 7).unwrap();
        assert!(self.sessions.up(slot).is_policed());
        let is_full = self.sessions.up(slot).counts.count(Family::V6, octets);
        assert!(!is_full);
        let packet = (Family::V6, octets, now);
        self.pass(
            (INDEX, Direction::Up),
            packet,
            |sessions, policies, packet| up(sessions, policies, slot, packet),
        )
    }

    /// A packet of IPv4 with these octets.
    fn down_v4(&mut self, octets: &[u8]) -> Result<(), DropReason> {
        let frame = [&[0; 14], octets].concat();
        self.w = Window::of(&frame);
        self.pass_down(INDEX, (Family::V4, octets.len(), 9))
            .map(|_| ())
    }
}

fn number() -> PolicyIndex {
    PolicyIndex(NonZeroU16::new(1).unwrap())
}

fn policies() -> Policies {
    Policies {
        up: None,
        down: Some(number()),
    }
}

/// UDP over IPv4 to a port, with a DSCP field.
fn udp(port: u16, tos: u8) -> Vec<u8> {
    let mut octets = vec![
        0x45, tos, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7,
    ];
    let sum = wire::checksum::of(&octets);
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets.extend([0, 53]);
    octets.extend(port.to_be_bytes());
    octets.extend([0, 8, 0, 0]);
    octets
}

#[test]
fn what_is_above_the_rate_is_dropped_and_not_counted() {
    let packets = PacketSettings {
        rate_up: Some(Rate::kbps(1000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, Policies::default());
    // a burst of 15,000 octets, then 125,000 octets a second
    let at_once = (0..20).filter(|_| world.up(1500, 9).is_ok()).count();
    assert_eq!(at_once, 10);
    assert_eq!(world.up(1500, 9), Err(DropReason::RateExceededUp));
    assert_eq!(world.up(1500, 9 + HZ * 1500 / 125_000), Ok(()));
    let usage = world.sessions.usage(INDEX).unwrap();
    assert_eq!((usage.ipv6.up_packets, usage.ipv6.up_octets), (11, 16_500));
    // the other direction has no limit
    assert!((0..100).all(|_| world.down(1500, 9).is_ok()));
}

#[test]
fn a_change_of_something_else_leaves_the_tokens_as_they_are() {
    let packets = PacketSettings {
        rate_down: Some(Rate::kbps(1000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, Policies::default());
    while world.down(1500, 9).is_ok() {}
    let mtu = PacketSettings {
        mtu: Some(1400),
        ..packets
    };
    world.set(mtu);
    assert!(world.down(1400, 9).is_err());
    assert!(world.sessions.is_whole(INDEX) && world.sessions.any_policed());
    // without a rate there is nothing to do, but its tokens do not come back by that
    world.set(PacketSettings::with_mtu(1492));
    assert!(!world.sessions.any_policed());
    assert!(world.sessions.policy(INDEX, Direction::Down).is_none());
    world.set(packets);
    assert!(world.down(1400, 9).is_err());
    world.sessions.remove(INDEX).unwrap();
    assert!(!world.sessions.any_policed());
    // the next session at its place begins anew
    world.set(packets);
    assert_eq!(world.down(1400, 9), Ok(()));
}

#[test]
fn what_a_rule_redirects_leaves_for_the_control_thread_and_is_not_counted() {
    let both = Policies {
        up: Some(number()),
        down: Some(number()),
    };
    let mut world = World::new(PacketSettings::with_mtu(1492), both);
    let rules = [
        "redirect tcp from any to any 80",
        "permit ip from any to any",
    ];
    world.compile(&rules, |policy| {
        policy.is_counted = true;
        policy.portal = Some("http://portal/".into());
    });
    let tcp = |port: u16| {
        let mut octets = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
        octets.extend([0x20; 32]);
        octets.extend([0x30, 0x39]);
        octets.extend(port.to_be_bytes());
        octets.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        Window::of(&[&[0; 14], &octets[..]].concat())
    };
    world.w = tcp(80);
    let redirected = Exit::Punt(PuntKind::Redirect(INDEX), Part::WHOLE);
    assert_eq!(world.leaves_up(60, 9), Err(redirected));
    // to a subscriber, the same rule denies
    assert_eq!(world.down(60, 9), Err(DropReason::DeniedDown));
    world.w = tcp(443);
    assert_eq!(
        (world.leaves_up(60, 9), world.down(60, 9)),
        (Ok(()), Ok(()))
    );
    let usage = world.sessions.usage(INDEX).unwrap();
    assert_eq!((usage.ipv6.up_packets, usage.ipv6.up_octets), (1, 60));
    let compiled = world.policies.get(number()).unwrap();
    assert_eq!(compiled.portal(), Some("http://portal/"));
    let hits: Vec<u64> = compiled.hits().iter().map(|hits| hits.packets).collect();
    assert_eq!(hits, [2, 2]);
}

#[test]
fn the_first_rule_decides_and_what_it_denies_takes_no_tokens() {
    let packets = PacketSettings {
        rate_down: Some(Rate::kbps(1000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, policies());
    assert_eq!(world.down_v4(&udp(80, 0)), Err(DropReason::PolicyMissing));
    let rules = [
        "deny udp from any to any 25",
        "permit udp from any to any 1-100",
    ];
    world.compile(&rules, |_| {});
    for _ in 0..1000 {
        assert_eq!(world.down_v4(&udp(25, 0)), Err(DropReason::DeniedDown));
    }
    assert_eq!(world.down_v4(&udp(80, 0)), Ok(()));
    assert_eq!(
        world.down_v4(&udp(101, 0)),
        Err(DropReason::DeniedDown),
        "unmatched"
    );
    let first = world.policies.get(number()).unwrap().compilation();
    world.compile(&rules, |policy| {
        policy.is_counted = true;
        policy.unmatched_pass = true;
    });
    assert_ne!(world.policies.get(number()).unwrap().compilation(), first);
    assert_eq!(world.down_v4(&udp(101, 0)), Ok(()));
    let line = world.sessions.policy(INDEX, Direction::Down).unwrap();
    assert_eq!((line.denied, line.denied_octets), (1001, 28_028));
    assert_eq!((line.denied_by, line.exceeded), (0, 0));
    assert_eq!(line.denied_in, first, "the policy that denied is told");
    let last_denial = LastDenial {
        rule: None,
        compilation: first,
    };
    let [up, down] =
        Direction::BOTH.map(|way| world.sessions.policy_state(INDEX, way, &world.policies));
    assert_eq!(up, None);
    assert_eq!(down.unwrap().last_denial, Some(last_denial));
    assert_eq!(down.unwrap().denied_packets, 1001);
    let hits = world.policies.get(number()).unwrap().hits();
    assert_eq!(hits, [Hits::default(); 2], "those of another policy");
}

#[test]
fn a_watched_session_counts_each_rule_and_what_no_rule_decides() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let rules = [
        "deny udp from any to any 25",
        "permit udp from any to any 53",
    ];
    let drop_unseen = |policy: &mut PolicyRules| {
        policy.denies_undetermined = true;
    };
    world.compile(&rules, drop_unseen);
    let watch = |world: &mut World, is_begun: bool| {
        let compiled = world.policies.get(number()).unwrap();
        let hits = Arc::new(RuleHits::of(compiled));
        let told = is_begun.then(|| hits.clone());
        let way = (INDEX, Direction::Down);
        let is_watched = world.policies.watches.set(way, told);
        let line = world.sessions.policy(INDEX, Direction::Down).unwrap();
        line.is_watched = is_watched;
        hits
    };
    let send = |world: &mut World| {
        for port in [25, 53, 53, 80] {
            let _ = world.down_v4(&udp(port, 0));
        }
        // no ports are in it
        let mut cut = udp(53, 0)[..20].to_vec();
        cut[3] = 20;
        let unseen = world.down_v4(&cut);
        assert_eq!(unseen, Err(DropReason::UndeterminedTransport));
    };
    let read = |hits: &RuleHits| {
        let all = hits.rules().chain([hits.unmatched(), hits.undetermined()]);
        all.map(|hits| (hits.packets, hits.octets))
            .collect::<Vec<_>>()
    };
    send(&mut world);
    let hits = watch(&mut world, true);
    send(&mut world);
    let once = [(1, 28), (2, 56), (1, 28), (1, 20)];
    assert_eq!(read(&hits), once);
    // a change of the session does not end it
    let changed = entry(PacketSettings::with_mtu(1400), policies());
    world.sessions.set(changed, Sources::default(), 0);
    assert!(world.sessions.is_whole(INDEX));
    send(&mut world);
    assert_eq!(read(&hits)[0], (2, 56));
    // counters of another compilation are not touched
    world.compile(&rules[1..], drop_unseen);
    send(&mut world);
    assert_eq!(read(&hits)[0], (2, 56));
    let ended = watch(&mut world, false);
    send(&mut world);
    assert_eq!(read(&ended), [(0, 0); 3]);
    assert_eq!(read(&hits)[0], (2, 56));
}

/// Of a packet in a policy without rules, what no rule decides is said, unless the policy has to know its transport header.
#[test]
fn without_rules_every_packet_has_the_same_verdict_unless_its_header_has_to_be_known() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let mut cut = udp(53, 0)[..20].to_vec();
    cut[3] = 20;
    for (unmatched_pass, denies_undetermined) in
        [(true, false), (true, true), (false, false), (false, true)]
    {
        world.compile(&[], |policy| {
            (policy.unmatched_pass, policy.denies_undetermined) =
                (unmatched_pass, denies_undetermined);
        });
        let of_all = match unmatched_pass {
            true => Ok(()),
            false => Err(DropReason::DeniedDown),
        };
        let of_cut = match denies_undetermined {
            true => Err(DropReason::UndeterminedTransport),
            false => of_all,
        };
        // whenever the rules are asked
        for _ in 0..2 {
            assert_eq!(world.down_v4(&udp(53, 0)), of_all);
        }
        for _ in 0..2 {
            assert_eq!(world.down_v4(&cut), of_cut);
        }
    }
}

#[test]
fn what_passes_a_policy_with_queues_waits_in_one() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    world.compile(&["permit ip from any to any"], |policy| {
        policy.queues = Some(QueueRules {
            profile: QueueProfile::default(),
            weight: 1,
        });
    });
    let compiled = world.policies.get(number()).unwrap();
    let queued = Queued {
        class: 0,
        compilation: compiled.compilation(),
    };
    for _ in 0..2 {
        let packet = (Family::V6, 100, 9);
        assert_eq!(world.pass_down(INDEX, packet), Ok(Some(queued)));
    }
}

#[test]
fn a_mark_replaces_the_code_point_and_leaves_ecn() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let rules = [
        "permit udp from any to any 53 mark ef",
        "permit ip from any to any",
    ];
    let each = Hits {
        packets: 512,
        octets: 512 * 28,
    };
    for (is_counted, hits) in [(true, vec![each; 2]), (false, vec![])] {
        world.compile(&rules, |policy| policy.is_counted = is_counted);
        for tos in (0..=255).flat_map(|tos| [tos; 2]) {
            assert_eq!(world.down_v4(&udp(53, tos)), Ok(()));
            assert_eq!(world.w.u8(IP + 1), 46 << 2 | tos & 3);
            assert!(world.w.sums_up(IP), "{tos}");
        }
        for tos in (0..=255).flat_map(|tos| [tos; 2]) {
            assert_eq!(world.down_v4(&udp(54, tos)), Ok(()));
            assert_eq!(world.w.u8(IP + 1), tos);
        }
        assert_eq!(world.policies.get(number()).unwrap().hits(), hits);
    }
    assert!(world.sessions.is_whole(INDEX), "it has no rate");
}

/// Twice 8,000 kbit/s at most, of which 1,000 kbit/s are green.
fn policer() -> PolicerSettings {
    PolicerSettings {
        meter: MeterSettings::TwoRate {
            pir: Rate::kbps(8_000),
            pbs: 100_000,
            cir: Rate::kbps(1_000),
            cbs: 15_000,
        },
        overhead: Overhead::IP,
        is_colour_aware: true,
        yellow_mark: Some(12),
    }
}

/// A packet of 1,000 octets to a port.
fn kilobyte(port: u16, tos: u8) -> Vec<u8> {
    let mut packet = udp(port, tos);
    packet.resize(1000, 0);
    packet[2..4].copy_from_slice(&1000u16.to_be_bytes());
    packet[10..12].fill(0);
    let sum = wire::checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[0; 14], &packet[..]].concat()
}

/// What becomes of 2,000 packets to a session within a second, and the code points with which they leave.
fn outcomes(world: &mut World, index: SessionIndex, from: u64, frame: &[u8]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for n in 0..2000 {
        world.w = Window::of(frame);
        let now = from + n * HZ / 2000;
        let done = world.pass_down(index, (Family::V4, 1000, now));
        match done {
            Ok(_) => outcomes.passed += 1,
            Err(reason) => *outcomes.dropped.entry(reason.name()).or_insert(0) += 1,
        }
        if done.is_ok() {
            *outcomes.dscps.entry(world.w.u8(IP + 1) >> 2).or_insert(0) += 1;
        }
        assert!(world.w.sums_up(IP));
    }
    outcomes
}

#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    passed: usize,
    dropped: BTreeMap<&'static str, usize>,
    dscps: BTreeMap<u8, usize>,
}

/// How many of 2,000 packets of 1,000 octets pass within a second, and how many of these are yellow.
fn second(world: &mut World, from: u64, tos: u8) -> (usize, usize) {
    let outcomes = outcomes(world, INDEX, from, &kilobyte(80, tos));
    (
        outcomes.passed,
        outcomes.dscps.get(&12).copied().unwrap_or(0),
    )
}

/// A class with a rate of so many packets of 1,000 octets a second, after 15; 0: without one.
fn class(name: &str, dscps: &[u8], packets: u64, mark: Option<u8>) -> PolicyClass {
    let policer = Rate::new(packets * 8).map(|cir| PolicerSettings {
        meter: MeterSettings::SingleRate {
            cir,
            cbs: 15_000,
            ebs: 0,
        },
        overhead: Overhead::IP,
        is_colour_aware: false,
        yellow_mark: None,
    });
    PolicyClass {
        name: name.into(),
        dscps: dscps.iter().fold(0, |set, dscp| set | 1 << dscp),
        priorities: 0,
        policer,
        mark,
    }
}

const EF: u8 = 46;

/// As many classes as there may be, each with its code point, mark and rate.
fn with_all_classes(policy: &mut PolicyRules) {
    let all = (1..=MOST_CLASSES as u8).map(|n| {
        let mark = 2 * n;
        class(
            &format!("class{n}"),
            &[8 * n],
            50 * u64::from(n),
            Some(mark),
        )
    });
    policy.classes = all.collect();
}
