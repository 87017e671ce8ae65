//! What others have published of their systems, and our cost of the same work where the packet path does it.
//!
//! A budget is what such a system had for a packet: cores times their clock, divided by the rate of packets. Ours is measured between
//! rings, which have no driver and no DMA: [`RESERVE`] is added for them. Times are those of the time stamp counter, which is not the
//! core's clock: they are converted to cycles of the published clock.
use crate::circulation::{Circulation, Population};
use crate::downlink::{self, Downlink, Load};
use crate::flows::{Flows, Kind};
use crate::frames::{CORE, Family, Size, Way};
use crate::policies::{compiled, give, number, of_both_families, of_rules, with_two_rates};
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::rules::{Rule, lists};
use crate::whole::FEATURES;
use crate::world::{COLD, Plan, Stock, World};
use anyhow::Result;
use dataplane::{Management, PacketSettings, Policies, PolicyRules, Rate, SourceCheck};
use dpdk::{Eal, Pool, tsc_hz};
use std::collections::BTreeSet;

/// The group of all of them.
const GROUP: &str = "published";

/// Cycles a packet for what is not measured here.
const RESERVE: f64 = 100.0;

/// Cores, their clock in GHz, and the packets that they forwarded, in millions a second.
#[derive(Clone, Copy)]
struct Published {
    cores: f64,
    ghz: f64,
    mpps: f64,
}

impl Published {
    /// Cycles for a packet.
    fn budget(self) -> f64 {
        self.cores * self.ghz * 1000.0 / self.mpps
    }
}

/// What limits a session's packets; none exceeds it.
#[derive(Clone, Copy, PartialEq)]
enum Limit {
    None,
    /// The session's own rate.
    Rate,
    /// A meter of two rates in the session's policy.
    TwoRates,
}

/// The packets of one way, and what is done with them.
#[derive(Clone, Copy)]
struct Part {
    way: Way,
    /// Of all packets of the test.
    share: f64,
    size: Size,
    /// Rules of each policy, and how many policies the sessions have, each one of them.
    rules: usize,
    policies: usize,
    limit: Limit,
    /// Whether packets wait in queues of four classes of each subscriber, in a segment with a rate.
    is_queued: bool,
}

impl Part {
    /// All packets, without a policy.
    const fn plain(way: Way, size: Size) -> Part {
        Part {
            way,
            share: 1.0,
            size,
            rules: 0,
            policies: 1,
            limit: Limit::None,
            is_queued: false,
        }
    }

    const fn queued(self) -> Part {
        Part {
            is_queued: true,
            ..self
        }
    }

    const fn share(self, share: f64) -> Part {
        Part { share, ..self }
    }

    const fn rules(self, policies: usize, rules: usize) -> Part {
        Part {
            rules,
            policies,
            ..self
        }
    }

    const fn limit(self, limit: Limit) -> Part {
        Part { limit, ..self }
    }
}

/// A published test.
struct Test {
    id: &'static str,
    name: &'static str,
    published: Published,
    family: Family,
    sessions: u32,
    routes: usize,
    /// Whether sources of packets to subscribers must have a way back.
    is_checked: bool,
    parts: &'static [Part],
}

/// hBRAS, "more than 126,000" PPPoE sessions, 600,000 rules for destinations, 128 octets: less than 40 Gb/s (33.8 million packets a second)
/// in software on a server whose cores the paper does not name: eight of 2.6 GHz are taken. Half of it would be the 80 Gb/s that its
/// switch had.
const H_TPUT: Test = Test {
    id: "h-tput",
    name: "hBRAS: 128 octets, up and down",
    published: Published {
        cores: 8.0,
        ghz: 2.6,
        mpps: 33.8,
    },
    family: Family::V4,
    sessions: 131_072,
    routes: 600_000,
    is_checked: false,
    parts: &[
        Part::plain(Way::Up, Size::Octets(128)).share(0.5),
        Part::plain(Way::Down, Size::Octets(128)).share(0.5),
    ],
};

/// netElastic's vBNG with Intel, one port upstream: 25 Gb/s in frames of 256 octets (11.3 million packets a second), for which one core
/// of 2.6 GHz would do.
const N_PORT: Test = Test {
    id: "n-port-plain",
    name: "netElastic, a port: 256 octets up, plain",
    published: Published {
        cores: 1.0,
        ghz: 2.6,
        mpps: 11.3,
    },
    family: Family::V4,
    sessions: 32_000,
    routes: 50_000,
    is_checked: false,
    parts: &[N_PLAIN],
};
const N_PLAIN: Part = Part::plain(Way::Up, Size::Octets(256));
const N_ACL: Test = Test {
    id: "n-port-acl",
    name: "netElastic, a port: 256 octets up, 4,000 rules",
    parts: &[N_PLAIN.rules(1, 4000)],
    ..N_PORT
};
const N_RATE: Test = Test {
    id: "n-port-rate",
    name: "netElastic, a port: 256 octets up, a rate for each user",
    parts: &[N_PLAIN.limit(Limit::Rate)],
    ..N_PORT
};
const N_BOTH: Test = Test {
    id: "n-port",
    name: "netElastic, a port: 256 octets up, 4,000 rules and a rate for each user",
    parts: &[N_PLAIN.rules(1, 4000).limit(Limit::Rate)],
    ..N_PORT
};

/// The same, both ways: 300 Gb/s in frames of 256 octets (146.5 million packets a second if nothing between frames is counted, the
/// reading that is hardest for us) on 48 cores of a Xeon 8276L.
const N_ALL: Test = Test {
    id: "n-all",
    name: "netElastic: 256 octets up and down, four lists of 4,000 rules and a committed rate each way",
    published: Published {
        cores: 48.0,
        ghz: 2.2,
        mpps: 146.5,
    },
    sessions: 64_000,
    parts: &[
        N_PLAIN.rules(4, 4000).limit(Limit::Rate).share(0.5),
        Part {
            way: Way::Down,
            share: 0.5,
            ..N_PLAIN.rules(4, 4000).limit(Limit::Rate)
        },
    ],
    ..N_PORT
};

/// Intel's reference pipeline, 16 instances on 24 cores of a Xeon 6152: 334 Gb/s, 69.8 million packets a second down and 31.3 up. Down they
/// go through four levels of scheduling. The sessions are those of one instance.
const I_TPUT: Test = Test {
    id: "i-tput",
    name: "Intel's pipeline: 128 octets up, 150 rules and two rates; 512 down, sources checked, four levels of queues",
    published: Published {
        cores: 24.0,
        ghz: 2.1,
        mpps: 69.8 + 31.3,
    },
    family: Family::V4,
    sessions: 4000,
    routes: 4000,
    is_checked: true,
    parts: &[
        Part::plain(Way::Up, Size::Octets(128))
            .rules(1, 150)
            .limit(Limit::TwoRates)
            .share(0.31),
        Part::plain(Way::Down, Size::Octets(512))
            .queued()
            .share(0.69),
    ],
};

/// Nokia's VSR-BNG as EANTC tested it, on 18 cores of 2.3 GHz: 31 million packets a second in frames of 100 octets. Every entry of a list
/// of 100 is compared; here the last one matches. More policers than one each way are not in ours.
const B_PPS: Test = Test {
    id: "b-pps",
    name: "Nokia's BNG: 100 octets up and down, 100 rules and two rates each way, queues down",
    published: Published {
        cores: 18.0,
        ghz: 2.3,
        mpps: 31.0,
    },
    family: Family::Both,
    sessions: 16_000,
    routes: 600_000,
    is_checked: false,
    parts: &both_ways(Size::Octets(100)),
};
/// The same with frames of 559 octets on the average: 79.2 Gb/s, which are all that its ports take.
const B_IMIX: Test = Test {
    id: "b-imix",
    name: "Nokia's BNG: a mixture of sizes up and down, 100 rules and two rates each way, queues down",
    published: Published {
        mpps: 17.1,
        ..B_PPS.published
    },
    parts: &both_ways(Size::LargeImix),
    ..B_PPS
};

const fn both_ways(size: Size) -> [Part; 2] {
    let up = Part::plain(Way::Up, size)
        .rules(1, 100)
        .limit(Limit::TwoRates)
        .share(0.5);
    let way = Way::Down;
    [up, Part { way, ..up }.queued()]
}

/// Tests of one world follow each other.
const TESTS: [Test; 9] = [
    H_TPUT, N_PORT, N_ACL, N_RATE, N_BOTH, N_ALL, I_TPUT, B_PPS, B_IMIX,
];

/// 100 Mb/s, which no session's packets exceed.
const RATE: Rate = Rate::kbps(100_000);
/// Numbers of policies that a part of a test has for itself.
const NUMBERS: usize = 8;
/// Frames of each subscriber whose packets wait.
const FRAMES: u32 = 3;
/// Larger frames than this do not fit into buffers for headers.
const SMALL: u16 = 100;

/// Where packets come from.
#[derive(Clone, Copy)]
pub struct Pools {
    pub plain: Pool,
    /// Those that wait: with headers alone, and whole ones.
    pub small: Pool,
    pub whole: Pool,
}

/// All tests whose id contains `only`, or all of the group.
pub fn measure(
    eal: &Eal,
    pools: Pools,
    stock: &mut Stock,
    prefixes: &Prefixes,
    rounds: usize,
    only: &str,
) -> Result<Vec<Entry>> {
    let is_wanted = |test: &&Test| GROUP.contains(only) || test.id.contains(only);
    let wanted: Vec<&Test> = TESTS.iter().filter(is_wanted).collect();
    let mut entries = Vec::new();
    for tests in wanted.chunk_by(|a, b| (a.sessions, a.routes) == (b.sessions, b.routes)) {
        eprintln!("  published: {}", tests[0].name);
        let routes = Routes::first(prefixes, tests[0].routes);
        let mut runs = Vec::new();
        for test in tests {
            runs.push(Run::new(test, runs.len(), &routes, |load| {
                let pool = match load.size {
                    Size::Octets(..=SMALL) => pools.small,
                    _ => pools.whole,
                };
                let routes = Routes::first(prefixes, test.routes);
                downlink::circulate(eal, pool, load, routes)
            })?);
        }
        let plan = Plan::plain(tests[0].sessions, routes);
        let mut world = World::new(eal, pools.plain, tests[0].id, plan)?;
        for run in &runs {
            run.compile(&mut world)?;
        }
        for _ in 0..rounds {
            for run in &mut runs {
                run.round(&mut world, stock)?;
            }
        }
        world.check_drops()?;
        let ghz = tsc_hz(eal) as f64 / 1e9;
        entries.extend(runs.iter().flat_map(|run| run.entries(ghz)));
        entries.extend(cost(&runs));
    }
    Ok(entries)
}

/// What all features of netElastic's port cost beside none.
fn cost(runs: &[Run]) -> Option<Entry> {
    let of = |id| runs.iter().find(|run| run.test.id == id);
    let (plain, both) = (of(N_PORT.id)?, of(N_BOTH.id)?);
    let name = format!("{} / plain", N_BOTH.name);
    let entry = Entry::new("n-port-cost", name, "cycles", &both.sides[0].samples);
    Some(entry.ratio_at_most("plain", &plain.sides[0].samples, 1.5))
}

/// A test at work.
struct Run {
    test: &'static Test,
    sides: Vec<Side>,
}

/// A part of a test: its lists, its packets and what was measured.
struct Side {
    part: Part,
    /// Number of its first policy.
    first: usize,
    lists: Vec<Vec<Rule>>,
    packets: Packets,
    samples: Samples,
}

/// How packets go round.
enum Packets {
    /// Through a world that the tests share.
    Through(Flows),
    /// Through one of their own, in which they wait.
    Queued(Box<Circulation<Downlink>>),
}

impl Test {
    /// A part whose packets wait, in a world of its own.
    fn load(&self, part: &Part) -> Result<Load> {
        let lists = part.lists(self.family);
        let policies = lists.iter().map(|list| part.rules_of(list));
        Ok(Load {
            name: self.id,
            family: self.family,
            size: part.size,
            sessions: self.sessions,
            policies: policies.collect::<Result<_>>()?,
            lists,
            management: Management::TailDrop,
            is_checked: self.is_checked,
            has_segments: true,
            population: Population::waiting(self.sessions, FRAMES),
        })
    }

    /// What is on beside what `whole` has.
    fn features(&self) -> Vec<&'static str> {
        let lists = self.parts.iter().filter_map(|part| match part.rules {
            100 => Some("acl-100"),
            150 => Some("acl-150"),
            4000 => Some("acl-4000"),
            _ => None,
        });
        let limits = self.parts.iter().filter_map(|part| match part.limit {
            Limit::None => None,
            Limit::Rate => Some("rate"),
            Limit::TwoRates => Some("trtcm"),
        });
        let check = self.is_checked.then_some("source-check");
        let queues = self.parts.iter().any(|part| part.is_queued);
        let queues = queues.then_some("queues");
        let own: BTreeSet<_> = lists.chain(limits).chain(check).chain(queues).collect();
        FEATURES.into_iter().chain(own).collect()
    }
}

impl Run {
    /// The `nth` of its world. `queued` lets packets of a load wait.
    fn new(
        test: &'static Test,
        nth: usize,
        routes: &Routes,
        queued: impl Fn(Load) -> Result<Circulation<Downlink>>,
    ) -> Result<Self> {
        let mut sides = Vec::new();
        for (at, part) in test.parts.iter().enumerate() {
            let kind = Kind {
                way: part.way,
                family: test.family,
                size: part.size,
                sessions: test.sessions,
                packets: COLD,
            };
            let lists = part.lists(test.family);
            let packets = match part.is_queued {
                true => Packets::Queued(Box::new(queued(test.load(part)?)?)),
                false => Packets::Through(Flows::new(kind, routes, &lists)),
            };
            sides.push(Side {
                part: *part,
                first: 1 + (nth * test.parts.len() + at) * NUMBERS,
                packets,
                lists,
                samples: Samples::default(),
            });
        }
        Ok(Run { test, sides })
    }

    fn compile(&self, world: &mut World) -> Result<()> {
        for side in self.sides.iter().filter(|side| side.part.has_policy()) {
            for (at, list) in side.lists.iter().enumerate() {
                let policy = side.part.rules_of(list)?;
                let policy = compiled(&world.controller, &policy)?;
                world
                    .controller
                    .set_policy(number(side.first + at), Some(policy))?;
                world.settle()?;
            }
        }
        Ok(())
    }

    /// Gives the sessions what the test has, and measures each way.
    fn round(&mut self, world: &mut World, stock: &mut Stock) -> Result<()> {
        let check = match self.test.is_checked {
            true => SourceCheck::Strict,
            false => SourceCheck::Off,
        };
        world.controller.set_source_check(CORE, check)?;
        let of = |way| {
            let of_world = self.sides.iter().filter(|side| !side.part.is_queued);
            of_world.into_iter().find(|side| side.part.way == way)
        };
        let (up, down) = (of(Way::Up), of(Way::Down));
        let rate = |side: Option<&Side>| side.filter(|s| s.part.limit == Limit::Rate).map(|_| RATE);
        let policy = |side: Option<&Side>, n| side.and_then(|side| side.policy(n));
        give(world, |n, packets| {
            let packets = PacketSettings {
                rate_up: rate(up),
                rate_down: rate(down),
                ..packets
            };
            let (up, down) = (policy(up, n), policy(down, n));
            (packets, Policies { up, down })
        })?;
        for side in &mut self.sides {
            let cycles = match &mut side.packets {
                Packets::Queued(packets) => downlink::round(packets)?,
                Packets::Through(flows) => {
                    flows.all(world, 0, stock)?;
                    flows.measure(world, 0, stock)?
                }
            };
            side.samples.0.push(cycles);
        }
        Ok(())
    }

    /// The test's verdict, and what each way costs here.
    fn entries(&self, ghz: f64) -> Vec<Entry> {
        let Test {
            id,
            name,
            published,
            ..
        } = self.test;
        let rounds = 0..self.sides[0].samples.0.len();
        let cycles = |round: usize| -> f64 {
            let sides = self.sides.iter();
            let all = sides.map(|side| side.part.share * side.samples.0[round]);
            all.sum::<f64>() / ghz * published.ghz + RESERVE
        };
        let samples = Samples(rounds.map(cycles).collect());
        let name = format!("{name}: ours + 100, cycles of {} GHz", published.ghz);
        let verdict = Entry::new(id, name, "cycles", &samples).within(published.budget());
        let sides = self.sides.iter().map(|side| side.entry(self.test));
        let all = [verdict].into_iter().chain(sides);
        let known = |entry| Entry {
            features: self.test.features(),
            sessions: Some(self.test.sessions),
            routes: Some(self.test.routes),
            headers: Some("cold"),
            ..entry
        };
        all.map(known).collect()
    }
}

impl Part {
    /// Of those in the world that the tests share.
    fn has_policy(&self) -> bool {
        !self.is_queued && (self.rules > 0 || self.limit == Limit::TwoRates)
    }

    /// The policy of a list.
    fn rules_of(&self, list: &[Rule]) -> Result<PolicyRules> {
        let policy = of_rules(list)?;
        Ok(match self.limit {
            Limit::TwoRates => with_two_rates(policy),
            Limit::None | Limit::Rate => policy,
        })
    }

    /// Different lists, one for each policy. Their last rules alone permit packets, so that no other one ends a search.
    fn lists(&self, family: Family) -> Vec<Vec<Rule>> {
        let lists = match (self.rules, family) {
            (0, _) => vec![Vec::new()],
            (n, Family::V4) => lists(false, n, self.policies),
            (n, Family::V6) => lists(true, n, self.policies),
            (n, Family::Both) => vec![of_both_families(n)],
        };
        let rule = |rule: Rule| Rule {
            permits: rule == Rule::LAST,
            ..match self.way {
                Way::Up => rule,
                Way::Down => rule.reversed(),
            }
        };
        let of = |list: Vec<Rule>| list.into_iter().map(rule).collect();
        lists.into_iter().map(of).collect()
    }
}

impl Side {
    /// The policy of a session.
    fn policy(&self, session: u32) -> Option<dataplane::PolicyIndex> {
        let at = session as usize % self.lists.len();
        self.part.has_policy().then(|| number(self.first + at))
    }

    /// What the way costs here, without the reserve.
    fn entry(&self, test: &Test) -> Entry {
        let word = match self.part.way {
            Way::Up => "up",
            Way::Down => "down",
        };
        let frame = match self.part.size {
            Size::Octets(octets) => octets.to_string(),
            Size::Imix | Size::LargeImix => "mixture".into(),
        };
        let name = format!("{}: {word}, as measured", test.name);
        let id = format!("{}-{word}", test.id);
        Entry {
            frame: Some(frame),
            ..Entry::new(&id, name, "cycles", &self.samples)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_those_that_were_published() {
        let budgets = TESTS.map(|test| (test.id, test.published.budget().round()));
        let expected = [
            ("h-tput", 615.0),
            ("n-port-plain", 230.0),
            ("n-port-acl", 230.0),
            ("n-port-rate", 230.0),
            ("n-port", 230.0),
            ("n-all", 721.0),
            ("i-tput", 499.0),
            ("b-pps", 1335.0),
            ("b-imix", 2421.0),
        ];
        assert_eq!(budgets, expected);
    }

    #[test]
    fn shares_of_a_test_are_all_of_its_packets() {
        for test in TESTS {
            let all: f64 = test.parts.iter().map(|part| part.share).sum();
            assert!((all - 1.0).abs() < 1e-9, "{}", test.id);
        }
    }
}
