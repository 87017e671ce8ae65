//! The uplink with everything on, beside the path of DPDK's libraries (`pipeline`): the same packets, sessions, routes and rules.
//! Every session has a policy of rules that mark, and a rate that no packet exceeds. IPv6 and both families mixed are beside IPv4.
use crate::flows::{Flows, Kind};
use crate::frames::{Family, Way};
use crate::pipeline::{GREEN_SERVICE, Path, ROUTES, RULES, plain, uplink};
use crate::policies::{
    compiled, give, marking, number, of_both_families, of_rules, with_classes, with_two_rates,
};
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::rules::{Rule, rules};
use crate::whole::{FEATURES, SESSIONS};
use crate::world::{COLD, HOT, Plan, Stock, World};
use anyhow::{Context, Result};
use dataplane::{PacketSettings, Policies, PolicyRules, Rate};
use dpdk::peers::allow_wide_vectors;
use dpdk::{Eal, Pool};

/// What ids of figures begin with.
pub const IDS: [&str; 4] = ["up-full", "up-acl", "full-vs-pipeline", "meter-3+1"];

/// Cycles that policers of three classes and of the session are to add at most.
const CLASSES_ADD: f64 = 30.0;

/// Ends of ids, frames that come in, in octets, how many packets go round, and the cycles that are aimed at.
const FIGURES: [(&str, u16, usize, Option<f64>); 4] = [
    ("hot", 64, HOT, Some(105.0)),
    ("cold", 64, COLD, Some(115.0)),
    ("128-hot", 128, HOT, None),
    ("128-cold", 128, COLD, None),
];

/// Families in frames of 64 octets: what ids have, and how many times what `up-full` costs is aimed at.
const FAMILIES: [(Family, &str, Option<f64>); 3] = [
    (Family::V4, "v4-trtcm", None),
    (Family::V6, "v6", Some(1.5)),
    (Family::Both, "mix", Some(1.5)),
];

/// 10 Gbit/s.
const RATE: Rate = Rate::kbps(10_000_000);
/// What rules mark with: the code point of [`GREEN_SERVICE`].
const MARK: &str = "af11";

/// What is on for the sessions' packets beside what `whole` has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    /// The rules.
    Rules,
    /// The rules, which mark what they permit, and a rate.
    Everything,
    /// As many rules of IPv6 too, which mark as well, and a meter of two rates.
    BothFamilies,
    /// The rules, each of which puts packets into one of three classes with a meter; and a meter of two rates around them.
    Classes,
}

impl On {
    /// What the families are measured beside.
    const IPV4: [On; 3] = [On::Nothing, On::Rules, On::Everything];

    fn policy(self, list: &[Rule]) -> Result<Option<PolicyRules>> {
        Ok(Some(match self {
            On::Nothing => return Ok(None),
            On::Rules => of_rules(list)?,
            On::Everything => marking(list, MARK)?,
            On::BothFamilies => with_two_rates(marking(&of_both_families(RULES), MARK)?),
            On::Classes => with_two_rates(with_classes(list)?),
        }))
    }

    /// Type of service that all packets have in the end.
    fn service(self) -> u8 {
        match self {
            On::Nothing | On::Rules | On::Classes => 0,
            On::Everything | On::BothFamilies => GREEN_SERVICE,
        }
    }
}

/// Packets that go through all, and what was measured of each.
struct Figure {
    end: &'static str,
    octets: u16,
    most: Option<f64>,
    flows: Flows,
    /// By what is on.
    own: [Samples; 3],
    rules_alone: Samples,
    /// What classes and meters add to the rules.
    classes_alone: Samples,
    peer: Samples,
}

/// Packets of IPv6, or of both families.
struct OfFamily {
    id: &'static str,
    most: Option<f64>,
    flows: Flows,
    samples: Samples,
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
    let mut figures = FIGURES.map(|figure| Figure::new(figure, &routes, &list));
    let mut families = families(&routes);
    let mut world = World::new(eal, pool, "full", Plan::plain(SESSIONS, routes))?;
    for on in On::IPV4 {
        set(&mut world, on, &list)?;
    }
    for round in 1..=rounds {
        eprintln!("  everything on, round {round} of {rounds}");
        for on in On::IPV4 {
            switch(&mut world, on)?;
            figures[0].flows.warm(&mut world, on.service(), stock)?;
            for f in &mut figures {
                f.measure(on, &mut world, stock)?;
            }
        }
        // While a policy has a meter, packets of all that have one ask for lines of meters.
        let forget =
            |world: &mut World, on: On| world.controller.set_policy(number(on as usize), None);
        set(&mut world, On::Classes, &list)?;
        switch(&mut world, On::Classes)?;
        for f in &mut figures {
            f.measure_classes(&mut world, stock)?;
        }
        forget(&mut world, On::Classes)?;
        set(&mut world, On::BothFamilies, &list)?;
        switch(&mut world, On::BothFamilies)?;
        for f in &mut families {
            f.flows.all(&mut world, GREEN_SERVICE, stock)?;
            let cycles = f.flows.measure(&mut world, GREEN_SERVICE, stock)?;
            f.samples.0.push(cycles);
        }
        forget(&mut world, On::BothFamilies)?;
        figures[0].flows.warm(&mut peer, GREEN_SERVICE, stock)?;
        for f in &mut figures {
            let cycles = f.flows.measure(&mut peer, GREEN_SERVICE, stock);
            f.peer
                .0
                .push(cycles.context("the path of DPDK's libraries")?);
        }
    }
    world.check_drops()?;
    let of_ipv4 = figures.iter().flat_map(Figure::entries);
    Ok(of_ipv4
        .chain(families.iter().map(|f| f.entry(&figures)))
        .collect())
}

/// Lets the worker have the policy of what is on.
fn set(world: &mut World, on: On, list: &[Rule]) -> Result<()> {
    if let Some(policy) = on.policy(list)? {
        let policy = compiled(&world.controller, &policy)?;
        (world.controller).set_policy(number(on as usize), Some(policy))?;
    }
    world.settle()
}

/// Each family, hot and cold.
fn families(routes: &Routes) -> Vec<OfFamily> {
    let lists = [of_both_families(RULES)];
    let of = |(family, id, most): (Family, &'static str, Option<f64>), packets| OfFamily {
        id,
        most,
        flows: Flows::new(
            Kind {
                family,
                ..plain(Way::Up, 64, packets)
            },
            routes,
            &lists,
        ),
        samples: Samples::default(),
    };
    let hot = FAMILIES.map(|family| of(family, HOT));
    hot.into_iter()
        .chain(FAMILIES.map(|family| of(family, COLD)))
        .collect()
}

/// Lets all sessions have what is on.
fn switch(world: &mut World, on: On) -> Result<()> {
    let up = (on != On::Nothing).then(|| number(on as usize));
    let rate_up = (on == On::Everything).then_some(RATE);
    give(world, |_, packets| {
        let packets = PacketSettings { rate_up, ..packets };
        (packets, Policies { up, down: None })
    })
}

/// What every figure with everything on says of itself.
fn full(id: &str, name: String, octets: u16, samples: &Samples) -> Entry {
    Entry {
        features: FEATURES
            .into_iter()
            .chain(["acl-150", "rate", "dscp"])
            .collect(),
        frame: Some(octets.to_string()),
        sessions: Some(SESSIONS),
        routes: Some(ROUTES),
        ..Entry::new(id, name, "cycles", samples)
    }
}

impl OfFamily {
    /// Beside the figure of IPv4 with as many packets.
    fn entry(&self, figures: &[Figure]) -> Entry {
        let headers = self.flows.headers();
        let of_ipv4 = figures.iter().find(|f| f.end == headers);
        let of_ipv4 = &of_ipv4.expect("IPv4").own[On::Everything as usize];
        let family = match self.flows.kind.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
            Family::Both => "IPv4 and IPv6 mixed",
        };
        let id = format!("{}-{}-{headers}", IDS[0], self.id);
        let name = format!(
            "uplink with {RULES} rules of each family, marks and two rates, {family} / {}, {headers}",
            IDS[0]
        );
        let entry = full(&id, name, 64, &self.samples);
        match self.most {
            Some(most) => entry.ratio_at_most(IDS[0], of_ipv4, most),
            None => entry.beside(IDS[0], of_ipv4, |own, peer| own / peer),
        }
    }
}

impl Figure {
    fn new(
        (end, octets, packets, most): (&'static str, u16, usize, Option<f64>),
        routes: &Routes,
        list: &[Rule],
    ) -> Self {
        Figure {
            end,
            octets,
            most,
            flows: Flows::new(plain(Way::Up, octets, packets), routes, &[list.to_vec()]),
            own: Default::default(),
            rules_alone: Samples::default(),
            classes_alone: Samples::default(),
            peer: Samples::default(),
        }
    }

    fn measure(&mut self, on: On, world: &mut World, stock: &mut Stock) -> Result<()> {
        let cycles = self.flows.measure(world, on.service(), stock)?;
        self.own[on as usize].0.push(cycles);
        if on == On::Rules {
            let without = self.own[On::Nothing as usize].0.last();
            self.rules_alone.0.extend(without.map(|w| cycles - w));
        }
        Ok(())
    }

    /// With classes and meters, after the rules alone in the same round.
    fn measure_classes(&mut self, world: &mut World, stock: &mut Stock) -> Result<()> {
        let service = On::Classes.service();
        self.flows.all(world, service, stock)?;
        let cycles = self.flows.measure(world, service, stock)?;
        let rules = self.own[On::Rules as usize].0.last();
        self.classes_alone
            .0
            .extend(rules.map(|rules| cycles - rules));
        Ok(())
    }

    /// With everything on, the same beside the peer, and what the rules alone add, and meters to them.
    fn entries(&self) -> [Entry; 4] {
        let octets = self.octets;
        let size = format!("IPv4 {octets} octets {}", self.flows.headers());
        let everything = &self.own[On::Everything as usize];
        let plain = &self.own[On::Nothing as usize];
        let entry = |id: &str, name: String, samples: &Samples| {
            full(&format!("{id}-{}", self.end), name, octets, samples)
        };
        let name = format!("uplink with {RULES} rules, marks and rates, {size}");
        let own = entry(IDS[0], name, everything);
        let own = own.beside("uplink without them", plain, |own, plain| own / plain);
        let name = format!("{RULES} rules in the uplink: what they add, {size}");
        let rules = entry(IDS[1], name, &self.rules_alone);
        let rules = rules.beside("uplink without them", plain, |added, plain| added / plain);
        let name = format!("uplink with everything on / path of DPDK's libraries, {size}");
        let ratio = entry(IDS[2], name, everything);
        let name = format!(
            "meters of three classes and of the session: what they add to the rules, {size}"
        );
        let classes = entry(IDS[3], name, &self.classes_alone);
        [
            match self.most {
                Some(most) => own.at_most(most),
                None => own,
            },
            rules,
            ratio.ratio_at_most("path of DPDK's libraries", &self.peer, 0.6),
            classes.at_most(CLASSES_ADD),
        ]
    }
}
