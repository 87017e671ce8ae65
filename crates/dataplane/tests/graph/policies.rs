//! Policies of sessions that change while packets come.
use crate::cases::homes;
use crate::frames::{Home, seal, v4};
use crate::world::*;
use dataplane::*;
use std::num::NonZeroU16;
use std::ops::Range;
use std::sync::Arc;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
/// What passes by the policies 1 and 2; each denies what the other permits.
const PASSES: [&str; 2] = ["tcp", "udp"];

fn policy(number: usize) -> PolicyIndex {
    PolicyIndex(NonZeroU16::new(number as u16).unwrap())
}

fn set_policies(w: &mut World) {
    for (number, denied) in [(1, PASSES[1]), (2, PASSES[0])] {
        let passes = PASSES[number - 1];
        let texts = [("deny", denied), ("permit", passes)];
        let rules = texts.map(|(action, what)| format!("{action} {what} from any to any"));
        let rules = PolicyRules {
            rules: rules.map(|rule| rule.parse().unwrap()).into(),
            ..PolicyRules::default()
        };
        let compiled = w.controller.policy_compiler().compile(&rules).unwrap();
        let compiled = Some(Arc::new(compiled));
        w.controller.set_policy(policy(number), compiled).unwrap();
    }
}

fn set_session(w: &mut World, home: &Home, number: usize) {
    let mut entry = World::entry(home);
    entry.policies.up = Some(policy(number));
    w.controller.set_session(entry).unwrap();
}

/// The policy by which a packet passes: odd ones are TCP, even ones UDP.
fn passes_by(n: u16) -> usize {
    if n % 2 == 1 { 1 } else { 2 }
}

fn numbered(home: &Home, n: u16) -> Vec<u8> {
    let mut payload = [0; 20];
    payload[..2].copy_from_slice(&n.to_be_bytes());
    payload[12] = 5 << 4;
    let mut packet = v4(home.v4, INTERNET, 64, 0, &payload);
    if passes_by(n) == 1 {
        packet[9] = 6;
        seal(&mut packet);
    }
    packet
}

/// Packets of a home, which come by the same queue.
struct Flow<'a> {
    home: &'a Home,
    queue: usize,
    next: u16,
    seed: u64,
}

impl Flow<'_> {
    fn random(&mut self, n: usize) -> usize {
        self.seed = (self.seed)
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        (self.seed >> 33) as usize % n
    }

    fn send(&mut self, w: &mut World) {
        for _ in 0..self.random(40) {
            let frame = self.home.sends_ip(&numbered(self.home, self.next));
            let mbuf = w.pool.packet(&frame).unwrap();
            w.send_by(self.home.port, self.queue, mbuf);
            self.next += 1;
        }
    }

    /// The numbers of what has passed, in their order.
    fn passed(&self, w: &mut World) -> Vec<u16> {
        let number = |frame: &[u8]| u16::from_be_bytes([frame[34], frame[35]]);
        let all = w.receive();
        all.iter().map(|(_, frame)| number(frame)).collect()
    }
}

/// What passes of a range by a policy.
fn by(number: usize, of: Range<u16>) -> impl Iterator<Item = u16> {
    of.filter(move |n| passes_by(*n) == number)
}

#[test]
fn each_packet_passes_by_the_former_or_the_new_policy_of_its_session_and_after_the_answer_by_the_new_one()
 {
    for (workers, queues) in [(1, 1), (2, 2), (2, 1)] {
        let (all, mut w) = (homes(), World::shared(workers, queues));
        let home = &all[0];
        let queue = home.index as usize % usize::from(queues);
        let mut flow = Flow {
            home,
            queue,
            next: 0,
            seed: 7,
        };
        set_policies(&mut w);
        set_session(&mut w, home, 1);
        w.settle();
        let (mut total, mut between) = (0, 0);
        for round in 0..200 {
            let (former, new) = (1 + round % 2, 2 - round % 2);
            let begin = flow.next;
            flow.send(&mut w);
            for _ in 0..flow.random(4) {
                w.step_one(flow.random(workers.into()));
                flow.send(&mut w);
            }
            set_session(&mut w, home, new);
            // answered when everything before it is done
            let index = SessionIndex(home.index);
            w.controller.read_usage(index).unwrap();
            while w.events().is_empty() {
                w.step_one(flow.random(workers.into()));
                if flow.next - begin < 160 {
                    flow.send(&mut w);
                }
            }
            let answered = flow.next;
            flow.send(&mut w);
            w.settle();
            let passed = flow.passed(&mut w);
            let changes_at = |n: u16| by(former, begin..n).chain(by(new, n..flow.next));
            let change = (begin..=answered).find(|n| changes_at(*n).eq(passed.iter().copied()));
            let change = change.unwrap_or_else(|| panic!("{begin}, {answered}: {passed:?}"));
            between += usize::from(change > begin && change < answered);
            total += passed.len() as u64;
        }
        assert!(between > 20, "it changes among packets: {between}");
        let denied = u64::from(flow.next) - total;
        assert_eq!(w.drops(), [("denied-up", denied)].into());
    }
}
