//! What forwarding loses while a policy is compiled on another core, and when the worker swaps it.
use crate::flows::{Flows, Through};
use crate::frames::Way;
use crate::pin;
use crate::pipeline::{ROUTES, plain};
use crate::policies::{compiled, give, number, of_rules};
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::rules::rules;
use crate::whole::SESSIONS;
use crate::world::{COLD, Plan, Stock, World};
use anyhow::{Result, ensure};
use dataplane::{CompiledPolicy, Controller, Policies, PolicyRules, Worker};
use dpdk::{Consumer, Eal, MemoryPeer, Pool, Producer};
use std::sync::Arc;

/// What ids of figures begin with.
pub const ID: &str = "acl-swap";
/// Rules of the policy: those of netElastic's templates.
const RULES: usize = 4000;
const SWAPS: usize = 20;
/// Passes of packets before each swap, by which its loss is measured.
const BEFORE: usize = 30;
/// Percent of the rate that may be lost.
const MOST: f64 = 10.0;

/// What was lost at a swap, in percent of the rate before.
struct Lost {
    /// By the median pass while the policy is compiled.
    compiling: f64,
    /// By the pass in which the worker takes it.
    swapped: f64,
}

/// A worker's packets are all from sessions that have the policy.
pub fn measure(
    eal: &Eal,
    pool: Pool,
    stock: &mut Stock,
    prefixes: &Prefixes,
    core: usize,
) -> Result<Vec<Entry>> {
    let (routes, list) = (Routes::first(prefixes, ROUTES), rules(false, RULES));
    let policy = of_rules(&list)?;
    let mut flows = Flows::new(plain(Way::Up, 64, COLD), &routes, &[list]);
    let mut world = World::new(eal, pool, "swap", Plan::plain(SESSIONS, routes))?;
    let mut current = compiled(&world.controller, &policy)?;
    world
        .controller
        .set_policy(number(1), Some(current.clone()))?;
    give(&mut world, |_, packets| {
        let up = Some(number(1));
        (packets, Policies { up, down: None })
    })?;
    let mut all = Vec::new();
    for n in 1..=SWAPS {
        eprintln!("  a policy is swapped, {n} of {SWAPS}");
        let (lost, next) = swap(&mut world, &mut flows, stock, &policy, &current, core)?;
        all.push(lost);
        current = next;
    }
    world.check_drops()?;
    Ok(entries(&all))
}

/// Packets pass before, while another thread compiles, and until the worker gives the former policy up for the new one, which is
/// returned.
fn swap(
    world: &mut World,
    flows: &mut Flows,
    stock: &mut Stock,
    policy: &PolicyRules,
    current: &Arc<CompiledPolicy>,
    core: usize,
) -> Result<(Lost, Arc<CompiledPolicy>)> {
    let mut pass = |side: &mut Side<'_>| flows.pass(side, 0, stock);
    let (controller, mut side) = Side::of(world);
    let before = (0..2 * BEFORE).map(|_| pass(&mut side));
    // The first half warms up.
    let before = before.skip(BEFORE).collect::<Result<_>>()?;
    let holders = Arc::strong_count(current);
    let (mut compiling, mut swapped) = (Vec::new(), None);
    let next = std::thread::scope(|threads| {
        let thread = threads.spawn(move || say(controller, policy, if core == 0 { 1 } else { 0 }));
        while swapped.is_none() {
            let is_told = thread.is_finished();
            let cycles = pass(&mut side)?;
            match Arc::strong_count(current) < holders {
                true => swapped = Some(cycles),
                false => compiling.push(cycles),
            }
            ensure!(!is_told || swapped.is_some(), "the former policy stays");
        }
        thread.join().expect("the thread that compiles")
    })?;
    ensure!(!compiling.is_empty(), "compiled within a pass");
    let (before, compiling) = (Samples(before).median(), Samples(compiling).median());
    let lost = |cycles: f64| 100.0 * (1.0 - before / cycles);
    let lost = Lost {
        compiling: lost(compiling),
        swapped: lost(swapped.expect("a pass with a swap")),
    };
    Ok((lost, next))
}

/// Compiles the policy anew and tells the worker, on another core than its own.
fn say(
    controller: &mut Controller,
    policy: &PolicyRules,
    core: usize,
) -> Result<Arc<CompiledPolicy>> {
    pin(core)?;
    let next = compiled(controller, policy)?;
    controller.set_policy(number(1), Some(next.clone()))?;
    Ok(next)
}

/// The worker and its ports, while another thread has the controller.
struct Side<'a> {
    worker: &'a mut Worker,
    home: &'a mut MemoryPeer,
    router: &'a mut MemoryPeer,
}

impl<'a> Side<'a> {
    fn of(world: &'a mut World) -> (&'a mut Controller, Self) {
        let side = Side {
            worker: &mut world.workers[0],
            home: &mut world.homes[0],
            router: &mut world.routers[0],
        };
        (&mut world.controller, side)
    }
}

impl Through for Side<'_> {
    fn ends(&mut self, _way: Way) -> (&mut Producer, &mut Consumer) {
        (&mut self.home.to_port, &mut self.router.from_port)
    }

    fn run(&mut self) {
        while self.worker.step() > 0 {}
    }
}

/// The larger loss of both, and each.
fn entries(all: &[Lost]) -> Vec<Entry> {
    let entry = |end: &str, what: &str, of: fn(&Lost) -> f64| {
        let samples = Samples(all.iter().map(of).collect());
        let name = format!("uplink, {RULES} rules: rate lost while they are {what}, of {SWAPS}");
        Entry {
            sessions: Some(SESSIONS),
            routes: Some(ROUTES),
            ..Entry::new(&format!("{ID}{end}"), name, "%", &samples)
        }
    };
    let larger = |lost: &Lost| lost.compiling.max(lost.swapped);
    vec![
        entry("", "compiled beside it or swapped", larger).at_most(MOST),
        entry("-compiling", "compiled beside it", |lost| lost.compiling),
        entry("-swapped", "swapped", |lost| lost.swapped),
    ]
}
