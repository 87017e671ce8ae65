//! Parsing, session and anti-spoof alone, beside one bulk lookup of the same keys in `rte_hash`.
use crate::frames::{ACCESS, Way};
use crate::layout::Layout;
use crate::report::{Entry, Samples};
use crate::whole::SESSIONS;
use crate::world::{COLD, Scenario, Stock, Traffic, World};
use anyhow::{Result, ensure};
use dataplane::stages::Admission;
use dpdk::{BURST, Eal, peers::Hash, tsc};

/// Measures both in turns.
pub fn measure(eal: &Eal, world: &mut World, stock: &mut Stock, rounds: usize) -> Result<Entry> {
    // Its buckets overflow before it is full.
    let mut hash = Hash::new(eal, "sessions", 2 * SESSIONS)?;
    for session in 0..SESSIONS {
        hash.add(key(session))?;
    }
    let scenario = Scenario::plain(Way::Up, SESSIONS, COLD);
    let mut traffic = Traffic::new(scenario, &world.routes);
    let mut admission = Admission::default();
    let (mut own, mut peer) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        for _ in 0..16 {
            ours.0
                .push(admit(&mut traffic, world, stock, &mut admission)?);
            theirs.0.push(find(&traffic, &hash)?);
            traffic.advance();
        }
        own.0.push(ours.median());
        peer.0.push(theirs.median());
    }
    let name = "parse + session + anti-spoof, beside rte_hash bulk";
    let mut entry = Entry::new("session-vs-hash", name, "cycles", &own);
    (entry.sessions, entry.frame, entry.headers) =
        (Some(SESSIONS), Some("64".into()), Some("cold"));
    Ok(entry.faster_at_least("rte_hash_lookup_bulk", &peer, 1.5))
}

/// Port, outer VLAN and session id: what a session is found by.
fn key(session: u32) -> u64 {
    let layout = Layout::PLAIN;
    u64::from(layout.outer_vlan(session)) << 16 | u64::from(layout.pppoe_id(session))
}

/// Cycles a packet, rings not included.
fn admit(
    traffic: &mut Traffic,
    world: &mut World,
    stock: &mut Stock,
    admission: &mut Admission,
) -> Result<f64> {
    let mut bursts = traffic.bursts(stock)?;
    let begin = tsc();
    let mut passed = 0;
    for burst in &mut bursts {
        passed += admission.pass(&mut world.workers[0], ACCESS, burst);
    }
    let took = tsc() - begin;
    stock.take_back(bursts);
    ensure!(passed == COLD, "{passed} of {COLD} packets were admitted");
    Ok(took as f64 / COLD as f64)
}

/// Cycles a key.
fn find(traffic: &Traffic, hash: &Hash) -> Result<f64> {
    let keys: Vec<u64> = (0..COLD).map(|n| key(traffic.spec(n).session)).collect();
    let mut places = vec![[0; BURST]; COLD / BURST];
    let begin = tsc();
    for (keys, places) in keys.chunks(BURST).zip(&mut places) {
        hash.find(keys, places);
    }
    let took = tsc() - begin;
    let found = places.iter().flatten().filter(|place| **place >= 0).count();
    ensure!(found == COLD, "{found} of {COLD} keys were found");
    Ok(took as f64 / COLD as f64)
}
