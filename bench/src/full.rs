//! The uplink with everything on, beside the path of DPDK's libraries (`pipeline`): the same packets, sessions, routes and rules.
//! Every session has a policy of rules that mark, and a rate that no packet exceeds.
use crate::flows::{Flows, Through};
use crate::frames::Way;
use crate::layout::Layout;
use crate::pipeline::{GREEN_SERVICE, Path, ROUTES, RULES, uplink};
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::rules::{Rule, rules};
use crate::whole::{FEATURES, SESSIONS};
use crate::world::{COLD, HOT, Plan, Stock, World};
use anyhow::{Context, Result};
use dataplane::{
    CompiledPolicy, PacketSettings, Policies, PolicyCompiler, PolicyIndex, PolicyRules, Rate,
};
use dataplane::{SessionEntry, Worker};
use dpdk::peers::allow_wide_vectors;
use dpdk::{Consumer, Eal, Pool, Producer};
use std::num::NonZeroU16;
use std::sync::Arc;

/// What ids of figures begin with.
pub const IDS: [&str; 3] = ["up-full", "up-acl", "full-vs-pipeline"];

/// Ends of ids, frames that come in, in octets, how many packets go round, and the cycles that are aimed at.
const FIGURES: [(&str, u16, usize, Option<f64>); 4] = [
    ("hot", 64, HOT, Some(105.0)),
    ("cold", 64, COLD, Some(115.0)),
    ("128-hot", 128, HOT, None),
    ("128-cold", 128, COLD, None),
];

/// 10 Gbit/s.
const RATE: Rate = Rate::kbps(10_000_000);

/// What is on for the sessions' packets beside what `whole` has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    /// The rules.
    Rules,
    /// The rules, which mark what they permit, and a rate.
    Everything,
}

impl On {
    const ALL: [On; 3] = [On::Nothing, On::Rules, On::Everything];

    /// Number of the policy.
    fn policy(self) -> Option<PolicyIndex> {
        NonZeroU16::new(self as u16).map(PolicyIndex)
    }

    /// What rules say.
    fn text(self, rule: &Rule) -> String {
        match self == On::Everything && rule.permits {
            true => format!("{rule} mark af11"),
            false => rule.to_string(),
        }
    }

    /// Type of service that all packets have in the end.
    fn service(self) -> u8 {
        if self == On::Everything {
            GREEN_SERVICE
        } else {
            0
        }
    }
}

impl Through for World {
    fn ends(&mut self) -> (&mut Producer, &mut Consumer) {
        (&mut self.homes[0].to_port, &mut self.routers[0].from_port)
    }

    fn run(&mut self) {
        self.workers.iter_mut().for_each(run);
    }
}

fn run(worker: &mut Worker) {
    while worker.step() > 0 {}
}

/// Packets that go through all, and what was measured of each.
struct Figure {
    end: &'static str,
    most: Option<f64>,
    flows: Flows,
    /// By what is on.
    own: [Samples; 3],
    rules_alone: Samples,
    peer: Samples,
}

/// All that is measured of it. What is on changes for the sessions of one world, so that tables have their places in memory.
pub fn measure(
    eal: &Eal,
    pool: Pool,
    stock: &mut Stock,
    prefixes: &Prefixes,
    rounds: usize,
) -> Result<Vec<Entry>> {
    allow_wide_vectors(eal)?;
    let (routes, list) = (Routes::first(prefixes, ROUTES), rules(false, RULES));
    let mut peer = Path::new(eal, pool, "full-peer", uplink(eal, &routes, &list)?)?;
    let figure = |(end, octets, packets, most)| Figure {
        end,
        most,
        flows: Flows::new(Way::Up, octets, packets, &routes, &list),
        own: Default::default(),
        rules_alone: Samples::default(),
        peer: Samples::default(),
    };
    let mut figures = FIGURES.map(figure);
    let mut world = World::new(eal, pool, "full", Plan::plain(SESSIONS, routes))?;
    for on in On::ALL {
        if let Some(index) = on.policy() {
            let policy = compiled(world.controller.policy_compiler(), on, &list)?;
            world.controller.set_policy(index, Some(Arc::new(policy)))?;
        }
    }
    for round in 1..=rounds {
        eprintln!("  everything on, round {round} of {rounds}");
        for on in On::ALL {
            switch(&mut world, on)?;
            let service = on.service();
            figures[0].flows.warm(&mut world, service, stock)?;
            for f in &mut figures {
                f.measure(on, &mut world, stock)?;
            }
        }
        figures[0].flows.warm(&mut peer, GREEN_SERVICE, stock)?;
        for f in &mut figures {
            let cycles = f.flows.measure(&mut peer, GREEN_SERVICE, stock);
            f.peer
                .0
                .push(cycles.context("the path of DPDK's libraries")?);
        }
    }
    world.check_drops()?;
    Ok(figures.iter().flat_map(Figure::entries).collect())
}

fn compiled(compiler: PolicyCompiler, on: On, list: &[Rule]) -> Result<CompiledPolicy> {
    let rules = list.iter().map(|rule| on.text(rule).parse());
    let rules = PolicyRules {
        rules: rules.collect::<Result<_, _>>()?,
        unmatched_pass: false,
        denies_undetermined: true,
        ..PolicyRules::default()
    };
    Ok(compiler.compile(&rules)?)
}

/// Lets all sessions have what is on.
fn switch(world: &mut World, on: On) -> Result<()> {
    for n in 0..SESSIONS {
        world.settle()?;
        let entry = Layout::PLAIN.entry(n);
        world.controller.set_session(SessionEntry {
            packets: PacketSettings {
                rate_up: (on == On::Everything).then_some(RATE),
                ..entry.packets
            },
            policies: Policies {
                up: on.policy(),
                down: None,
            },
            ..entry
        })?;
    }
    world.run();
    world.settle()
}

impl Figure {
    fn measure(&mut self, on: On, world: &mut World, stock: &mut Stock) -> Result<()> {
        let cycles = self.flows.measure(world, on.service(), stock)?;
        self.own[on as usize].0.push(cycles);
        if on == On::Rules {
            let without = self.own[On::Nothing as usize].0.last();
            self.rules_alone.0.extend(without.map(|w| cycles - w));
        }
        Ok(())
    }

    /// With everything on, the same beside the peer, and what the rules alone add.
    fn entries(&self) -> [Entry; 3] {
        let octets = self.flows.octets;
        let size = format!("IPv4 {octets} octets {}", self.flows.headers());
        let everything = &self.own[On::Everything as usize];
        let plain = &self.own[On::Nothing as usize];
        let entry = |id: &str, name: String, samples: &Samples| Entry {
            features: FEATURES
                .into_iter()
                .chain(["acl-150", "rate", "dscp"])
                .collect(),
            frame: Some(octets.to_string()),
            sessions: Some(SESSIONS),
            routes: Some(ROUTES),
            ..Entry::new(&format!("{id}-{}", self.end), name, "cycles", samples)
        };
        let name = format!("uplink with {RULES} rules, marks and rates, {size}");
        let full = entry(IDS[0], name, everything);
        let full = full.beside("uplink without them", plain, |own, plain| own / plain);
        let name = format!("{RULES} rules in the uplink: what they add, {size}");
        let rules = entry(IDS[1], name, &self.rules_alone);
        let rules = rules.beside("uplink without them", plain, |added, plain| added / plain);
        let name = format!("uplink with everything on / path of DPDK's libraries, {size}");
        let ratio = entry(IDS[2], name, everything);
        [
            match self.most {
                Some(most) => full.at_most(most),
                None => full,
            },
            rules,
            ratio.ratio_at_most("path of DPDK's libraries", &self.peer, 0.6),
        ]
    }
}
