//! What is counted.

use super::plane::{Came, Plane};
use dataplane::{AggregateState, Edge, FragmentCounters, Node, Shown, Usage};
use std::collections::BTreeMap;
use std::fmt;

/// Counters by name. Those at 0 are not there.
#[derive(Default)]
pub struct Counters {
    all: BTreeMap<String, u64>,
    /// Packets that left, were dropped, and were punted.
    out: u64,
    dropped: u64,
    punted: u64,
}

/// A line each, by name.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.all.iter();
        all.try_for_each(|(name, n)| writeln!(f, "{name}: {n}"))
    }
}

impl Counters {
    fn count(&mut self, name: String, n: u64) {
        if n > 0 {
            *self.all.entry(name).or_default() += n;
        }
    }

    /// Counts what came of a round whose packets entered the graph at `source`.
    pub fn add(&mut self, came: &Came, source: Node) {
        for edge in &came.path {
            let (from, to) = (edge.from().name(), edge.to().name());
            self.count(format!("edge {from} > {to} ({})", edge.label()), 1);
        }
        for (reason, n) in &came.dropped {
            let passed = came.path.iter().rev().map(|edge: &Edge| edge.to());
            let mut passed = passed.chain([source]);
            let node = passed.find(|node| reason.nodes().contains(node));
            // A node that says nothing of this drop is not among them: the cases' test finds that.
            let node = node.map_or("?", Node::name);
            self.count(format!("drop {node} {}", reason.name()), *n);
            self.dropped += n;
        }
        self.out += came.out.len() as u64;
        for punted in &came.punted {
            let class = punted.kind.class();
            match class.shown {
                Shown::Copy => self.count(format!("copies {}", class.name), 1),
                Shown::Notice => {}
                Shown::Packet => self.punted += 1,
            }
        }
    }

    /// Adds what the data plane counted itself. What is wrong, if the packets in are not those out, dropped and punted,
    /// by what was seen and by those counters.
    pub fn finish(&mut self, plane: &mut Plane, sent: u64) -> Result<(), String> {
        let (mut rx, mut tx) = (plane.controller.injected(), 0);
        for port in plane.controller.ports() {
            let name = &plane.names.ports()[usize::from(port.index.0)];
            (rx, tx) = (rx + port.rx_packets, tx + port.tx_packets);
            for (what, n) in [
                ("in octets", port.rx_octets),
                ("in packets", port.rx_packets),
                ("out octets", port.tx_octets),
                ("out packets", port.tx_packets),
            ] {
                self.count(format!("port {name} {what}"), n);
            }
        }
        for port in plane.controller.ports() {
            let queues = plane.queues(port.index);
            let name = &plane.names.ports()[usize::from(port.index.0)];
            queues.iter().for_each(|state| self.queues(name, state));
        }
        self.count("injected".into(), plane.controller.injected());
        let mut punts = 0;
        for punted in plane.controller.punts() {
            let name = punted.class.name;
            self.count(format!("punt {name}"), punted.packets);
            self.count(format!("punt {name} policed"), punted.policed);
            if punted.class.shown == Shown::Packet {
                punts += punted.packets;
            }
        }
        for session in 0..plane.names.sessions().len() {
            let usage = plane.usage(session).unwrap_or_default();
            self.usage(&plane.names.sessions()[session], usage);
        }
        let drops = plane.controller.drops();
        let drops: u64 = drops.iter().map(|drop| drop.packets).sum();
        for (what, n) in [("in", rx), ("out", tx), ("drops", drops), ("punts", punts)] {
            self.count(format!("balance {what}"), n);
        }
        // In the place of a packet there may be fragments.
        let cut = plane.controller.fragments();
        self.count("fragmented packets".into(), cut.packets);
        self.count("fragmented to".into(), cut.fragments);
        let seen = [sent, self.out, self.dropped, self.punted];
        balance(seen, [rx, tx, drops, punts], cut)
    }

    fn queues(&mut self, port: &str, state: &AggregateState) {
        self.count(format!("queues {port} packets"), state.packets);
        self.count(format!("queues {port} drops"), state.drops);
        let limits = ["class", "subscriber", "aggregate", "port"];
        for (limit, n) in limits.into_iter().zip(state.limits) {
            self.count(format!("queues {port} limited by {limit}"), n);
        }
    }

    fn usage(&mut self, session: &str, usage: Usage) {
        for (family, volume) in [("IPv4", usage.ipv4), ("IPv6", usage.ipv6)] {
            for (what, n) in [
                ("down octets", volume.down_octets),
                ("down packets", volume.down_packets),
                ("up octets", volume.up_octets),
                ("up packets", volume.up_packets),
            ] {
                self.count(format!("session {session} {family} {what}"), n);
            }
        }
    }
}

/// What is wrong, if packets in are not packets out, dropped and punted, as they were seen or as they were counted.
fn balance(seen: [u64; 4], counted: [u64; 4], cut: FragmentCounters) -> Result<(), String> {
    let [sent, out, drops, punts] = seen;
    if seen == counted && sent + cut.fragments == out + drops + punts + cut.packets {
        return Ok(());
    }
    let sum = |[a, b, c, d]: [u64; 4]| format!("{a} = {b} + {c} + {d}");
    Err(format!(
        "packets in are not packets out + drops + punts: seen {}, counted {}; fragmented {} to {}",
        sum(seen),
        sum(counted),
        cut.packets,
        cut.fragments
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_lost_or_made_is_noticed() {
        let cut = FragmentCounters {
            packets: 1,
            fragments: 3,
        };
        let good = [9, 8, 2, 1];
        assert_eq!(balance(good, good, cut), Ok(()));
        for wrong in [
            [9, 7, 2, 1],
            [9, 9, 2, 1],
            [9, 8, 1, 1],
            [9, 8, 2, 2],
            [8, 8, 2, 1],
        ] {
            assert!(balance(wrong, wrong, cut).is_err(), "{wrong:?}");
            let said = balance(good, wrong, cut).unwrap_err();
            assert!(said.contains("seen 9 = 8 + 2 + 1, counted "), "{said}");
        }
    }
}
