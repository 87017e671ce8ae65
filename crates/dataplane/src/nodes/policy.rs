//! Node `policy`: does the policy of the session permit the packet?
//!
//! Only sessions whose policy has something to do for each packet come here. The rules come first, so that what they deny takes no
//! tokens. Out: back to where the packet came from. Drops: `denied-up`, `denied-down`, `undetermined-transport`, `policy-missing`,
//! `rate-exceeded-up`, `rate-exceeded-down`.
use crate::api::SessionIndex;
use crate::compiled::{CompiledPolicy, Matched, PolicerSettings};
use crate::drops::DropReason;
use crate::nodes::fields;
use crate::nodes::ip::{self, Family};
use crate::police::Colour;
use crate::tables::meters::MeterLine;
use crate::tables::policies::{CompiledPolicies, PolicyLine};
use crate::tables::sessions::Sessions;
use dpdk::Window;
use policy::Direction;

/// What the policies look at.
pub(crate) struct Examined<'a> {
    pub w: &'a mut Window,
    pub family: Family,
    /// Where the IP header is.
    pub ip: usize,
    /// Octets of the IP packet.
    pub total: usize,
    /// What the rules say, if they were asked with those of the whole burst.
    pub matched: Matched,
    /// Time (TSC).
    pub now: u64,
}

/// A packet from the subscriber of an upstream entry, which the session has counted already.
#[inline(always)]
pub(crate) fn up(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    slot: u32,
    packet: Examined<'_>,
) -> Result<(), DropReason> {
    let index = sessions.index(slot);
    let (family, total) = (packet.family, packet.total);
    permit(sessions, policies, index, Direction::Up, packet).map_err(|refused| {
        sessions.up(slot).counts.uncount(family, total);
        match refused {
            Refused::Denied => DropReason::DeniedUp,
            Refused::Exceeded => DropReason::RateExceededUp,
            Refused::Other(reason) => reason,
        }
    })
}

/// A packet to a subscriber, which the session counts later.
#[inline(always)]
pub(crate) fn down(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    index: SessionIndex,
    packet: Examined<'_>,
) -> Result<(), DropReason> {
    let permitted = permit(sessions, policies, index, Direction::Down, packet);
    permitted.map_err(|refused| match refused {
        Refused::Denied => DropReason::DeniedDown,
        Refused::Exceeded => DropReason::RateExceededDown,
        Refused::Other(reason) => reason,
    })
}

/// Why a packet does not pass.
enum Refused {
    /// By a rule.
    Denied,
    /// It is above the rate.
    Exceeded,
    Other(DropReason),
}

/// Rules, then the policer of the policy, or without one the session's rate.
#[inline(always)]
fn permit(
    sessions: &mut Sessions,
    policies: &CompiledPolicies,
    index: SessionIndex,
    direction: Direction,
    mut packet: Examined<'_>,
) -> Result<(), Refused> {
    let worker = sessions.shard.own;
    let Some(line) = sessions.policy(index, direction) else {
        return Ok(());
    };
    let Some(policy) = line.policy else {
        return within_rate(line, packet.total, packet.now);
    };
    // nothing passes unfiltered while the policy is being made
    let compiled = policies.get(policy);
    let compiled = compiled.ok_or(Refused::Other(DropReason::PolicyMissing))?;
    follow_rules(line, compiled, worker, &mut packet)?;
    let Some(policer) = compiled.policer() else {
        return within_rate(line, packet.total, packet.now);
    };
    match sessions.policy_and_meter(index, direction, compiled, packet.now) {
        Some((line, meter)) => metered(line, meter, policer, packet),
        None => Ok(()),
    }
}

#[inline(always)]
fn within_rate(line: &mut PolicyLine, total: usize, now: u64) -> Result<(), Refused> {
    if !line.policer.has_limit() || line.policer.permits(total, now) {
        return Ok(());
    }
    line.exceeded += 1;
    Err(Refused::Exceeded)
}

/// Green and yellow packets pass, red ones do not.
#[inline(always)]
fn metered(
    line: &mut PolicyLine,
    meter: &mut MeterLine,
    policer: &PolicerSettings,
    packet: Examined<'_>,
) -> Result<(), Refused> {
    let Examined { w, family, ip, .. } = packet;
    let incoming = policer.incoming(fields::dscp(w, family, ip));
    match meter.colour(policer, packet.total, incoming, packet.now) {
        Colour::Green => {}
        Colour::Yellow => {
            if let Some(dscp) = policer.yellow_mark {
                fields::mark(w, family, ip, dscp);
            }
        }
        Colour::Red => {
            line.exceeded += 1;
            return Err(Refused::Exceeded);
        }
    }
    Ok(())
}

/// What the rules say of the packet at `ip`. Nothing of it needs to have been checked: what the rules say of a header that is not sound
/// is as worthless as the packet.
#[inline(always)]
pub(crate) fn matched(compiled: &CompiledPolicy, w: &Window, family: Family, ip: usize) -> Matched {
    let total = ip::total(family, w, ip);
    match family {
        Family::V4 => {
            let read = fields::read_v4(w, ip, total);
            if read.is_undetermined && compiled.denies_undetermined() {
                return Matched::UNDETERMINED;
            }
            compiled.of_v4(&read.packet)
        }
        Family::V6 => {
            let read = fields::read_v6(w, ip, total);
            if read.is_undetermined && compiled.denies_undetermined() {
                return Matched::UNDETERMINED;
            }
            compiled.of_v6(&read.packet)
        }
    }
}

#[inline(never)]
fn matched_late(compiled: &CompiledPolicy, packet: &Examined<'_>) -> Matched {
    matched(compiled, packet.w, packet.family, packet.ip)
}

/// The first rule that matches decides.
#[inline(always)]
fn follow_rules(
    line: &mut PolicyLine,
    compiled: &CompiledPolicy,
    worker: u16,
    packet: &mut Examined<'_>,
) -> Result<(), Refused> {
    let mut matched = packet.matched;
    if matched.verdict.is_open() {
        matched = matched_late(compiled, packet);
    }
    if matched.verdict.is_undetermined() {
        return Err(Refused::Other(DropReason::UndeterminedTransport));
    }
    compiled.count(matched, packet.total, worker);
    if !matched.verdict.permits() {
        line.denied += 1;
        line.denied_octets += packet.total as u64;
        line.denied_by = matched.rule;
        line.denied_in = compiled.compilation();
        return Err(Refused::Denied);
    }
    if let Some(dscp) = matched.verdict.mark() {
        fields::mark(packet.w, packet.family, packet.ip, dscp);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::*;
    use crate::compiled::{Hits, PolicyRules};
    use crate::police::{MeterSettings, Overhead};
    use crate::tables::sessions::Sources;
    use core::num::NonZeroU16;
    use dpdk::HEAD;
    use policy::{PacketSettings, Rate};
    use std::sync::Arc;
    use wire::eth::{MacAddr, Tags};

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
    }

    impl World {
        fn new(packets: PacketSettings, policies: Policies) -> Self {
            let mut sessions = Sessions::with(8, &[0..=4095]);
            sessions.set(entry(packets, policies), Sources::default(), 0);
            World {
                sessions,
                policies: CompiledPolicies::new(8),
                w: Window::default(),
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
                is_counted: true,
                ..PolicyRules::default()
            };
            change(&mut policy);
            let compiled = CompiledPolicy::new(&policy, 1).unwrap();
            self.policies.set(number(), Some(Arc::new(compiled)));
        }

        fn examined(w: &mut Window, family: Family, total: usize, now: u64) -> Examined<'_> {
            Examined {
                w,
                family,
                ip: IP,
                total,
                matched: Matched::OPEN,
                now,
            }
        }

        /// Of so many octets of IPv6.
        fn down(&mut self, octets: usize, now: u64) -> Result<(), DropReason> {
            let packet = World::examined(&mut self.w, Family::V6, octets, now);
            down(&mut self.sessions, &self.policies, INDEX, packet)
        }

        /// Of so many octets of IPv6, which were counted.
        fn up(&mut self, octets: usize, now: u64) -> Result<(), DropReason> {
            let slot = self.sessions.slot(0, 0, 7).unwrap();
            assert!(self.sessions.up(slot).is_policed());
            let is_full = self.sessions.up(slot).counts.count(Family::V6, octets);
            assert!(!is_full);
            let packet = World::examined(&mut self.w, Family::V6, octets, now);
            up(&mut self.sessions, &self.policies, slot, packet)
        }

        /// A packet of IPv4 with these octets.
        fn down_v4(&mut self, octets: &[u8]) -> Result<(), DropReason> {
            let frame = [&[0; 14], octets].concat();
            self.w = Window::of(&frame);
            let packet = World::examined(&mut self.w, Family::V4, octets.len(), 9);
            down(&mut self.sessions, &self.policies, INDEX, packet)
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
            rate_up: Some(Rate(1000)),
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
            rate_down: Some(Rate(1000)),
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
        // without a rate there is no line any more, and the next session at its place begins anew
        world.set(PacketSettings::with_mtu(1492));
        assert!(!world.sessions.any_policed());
        assert!(world.sessions.policy(INDEX, Direction::Down).is_none());
        world.set(packets);
        assert_eq!(world.down(1400, 9), Ok(()));
        world.sessions.remove(INDEX).unwrap();
        assert!(!world.sessions.any_policed());
    }

    #[test]
    fn the_first_rule_decides_and_what_it_denies_takes_no_tokens() {
        let packets = PacketSettings {
            rate_down: Some(Rate(1000)),
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
        world.compile(&rules, |policy| policy.unmatched_pass = true);
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
        let [up, down] = world.sessions.policy_states(INDEX);
        assert_eq!(up, None);
        assert_eq!(down.unwrap().last_denial, Some(last_denial));
        assert_eq!(down.unwrap().denied_packets, 1001);
        let hits = world.policies.get(number()).unwrap().hits();
        assert_eq!(hits, [Hits::default(); 2], "those of another policy");
    }

    #[test]
    fn a_mark_replaces_the_code_point_and_leaves_ecn() {
        let mut world = World::new(PacketSettings::with_mtu(1492), policies());
        world.compile(
            &[
                "permit udp from any to any 53 mark ef",
                "permit ip from any to any",
            ],
            |_| {},
        );
        for tos in 0..=255 {
            assert_eq!(world.down_v4(&udp(53, tos)), Ok(()));
            assert_eq!(world.w.u8(IP + 1), 46 << 2 | tos & 3);
            assert!(world.w.sums_up(IP), "{tos}");
            assert_eq!(world.down_v4(&udp(54, tos)), Ok(()));
            assert_eq!(world.w.u8(IP + 1), tos);
        }
        let hits = world.policies.get(number()).unwrap().hits();
        let each = Hits {
            packets: 256,
            octets: 256 * 28,
        };
        assert_eq!(hits, [each; 2]);
        assert!(world.sessions.is_whole(INDEX), "it has no rate");
    }

    /// Twice 8,000 kbit/s at most, of which 1,000 kbit/s are green.
    fn policer() -> PolicerSettings {
        PolicerSettings {
            meter: MeterSettings::TwoRate {
                pir: Rate(8_000),
                pbs: 100_000,
                cir: Rate(1_000),
                cbs: 15_000,
            },
            overhead: Overhead::IP,
            is_colour_aware: true,
            yellow_mark: Some(12),
        }
    }

    /// How many of a thousand packets of 1,000 octets a second pass within a second, and how many of these are yellow.
    fn second(world: &mut World, from: u64, tos: u8) -> (usize, usize) {
        let mut packet = udp(80, tos);
        packet.resize(1000, 0);
        packet[2..4].copy_from_slice(&1000u16.to_be_bytes());
        packet[10..12].fill(0);
        let sum = wire::checksum::of(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let (mut passed, mut yellow) = (0, 0);
        for n in 0..2000 {
            world.w = Window::of(&[&[0; 14], &packet[..]].concat());
            let now = from + n * HZ / 2000;
            let examined = World::examined(&mut world.w, Family::V4, 1000, now);
            let done = down(&mut world.sessions, &world.policies, INDEX, examined);
            passed += usize::from(done.is_ok());
            yellow += usize::from(done.is_ok() && world.w.u8(IP + 1) >> 2 == 12);
            assert!(world.w.sums_up(IP));
        }
        (passed, yellow)
    }

    #[test]
    fn a_policer_colours_marks_and_drops() {
        let mut world = World::new(PacketSettings::with_mtu(1492), policies());
        let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
        world.compile(&["permit ip from any to any"], with);
        // a burst of 100 packets and 1,000 a second; a burst of 15 and 125 a second are green
        let (passed, first) = second(&mut world, HZ, 0);
        assert!(passed.abs_diff(1100) <= 2, "{passed}");
        assert!((passed - first).abs_diff(140) <= 2, "{first} of {passed}");
        // what comes yellow (AF12) takes no green tokens, and what comes red (AF13) does not pass
        let (passed, yellow) = second(&mut world, 3 * HZ, 12 << 2);
        assert_eq!(passed, yellow);
        let yellow_packets = first + yellow;
        let (passed, _) = second(&mut world, 5 * HZ, 14 << 2);
        assert_eq!(passed, 0);
        let [_, down] = world.sessions.policy_states(INDEX);
        let down = down.unwrap();
        assert_eq!(down.yellow_packets, yellow_packets as u64);
        assert!(down.exceeded_packets > 2000 && world.sessions.is_whole(INDEX));
    }

    #[test]
    fn a_sessions_rate_takes_the_place_of_the_peak_rate_without_a_burst() {
        let mut world = World::new(PacketSettings::with_mtu(1492), policies());
        let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
        world.compile(&["permit ip from any to any"], with);
        second(&mut world, HZ, 0);
        let packets = PacketSettings {
            rate_down: Some(Rate(4_000)),
            ..PacketSettings::with_mtu(1492)
        };
        world
            .sessions
            .set(entry(packets, policies()), Sources::default(), 0);
        let (passed, _) = second(&mut world, 2 * HZ, 0);
        assert!(passed.abs_diff(500) <= 5, "{passed}");
        // the policy is swapped: again no burst
        world.compile(&["permit ip from any to any"], with);
        let (passed, _) = second(&mut world, 3 * HZ, 0);
        assert!(passed.abs_diff(500) <= 5, "{passed}");
    }
}
