//! What a dropped packet costs from the verdict to the freed buffer.
use crate::frames::Way;
use crate::report::{Entry, Samples};
use crate::world::{COLD, Scenario, Stock, Traffic, World};
use anyhow::Result;
use dataplane::stages::Drops;
use dpdk::{Pool, tsc};

/// Drops every packet of some bursts, with what the worker does for that.
pub fn measure(world: &mut World, pool: Pool, rounds: usize) -> Result<Entry> {
    let scenario = Scenario::plain(Way::Up, world.sessions, COLD);
    let mut traffic = Traffic::new(scenario, &world.routes);
    let (mut samples, mut drops) = (Samples::default(), Drops::default());
    for _ in 0..rounds {
        // They are freed, so each round has its own.
        let mut stock = Stock::some(pool, COLD)?;
        let mut took = 0;
        for burst in &mut traffic.bursts(&mut stock)? {
            drops.judge(burst);
            let begin = tsc();
            drops.settle(&mut world.workers[0]);
            took += tsc() - begin;
        }
        samples.0.push(took as f64 / COLD as f64);
        traffic.advance();
    }
    let name = "a dropped packet, from the verdict to the freed buffer";
    let mut entry = Entry::new("drop-cycles", name, "cycles", &samples);
    entry.frame = Some("64".into());
    Ok(entry.at_most(40.0))
}
