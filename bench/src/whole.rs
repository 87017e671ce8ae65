//! The whole path, from ring to ring, with everything that a product does to a packet.
use crate::frames::{Family, Size, Way};
use crate::layout::Layout;
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::testpmd;
use crate::world::{COLD, HOT, Plan, RUN, Scenario, Stock, Traffic, World};
use anyhow::Result;
use dpdk::{Eal, Pool};
use std::time::{Duration, Instant};

/// What is done to each packet in every figure; nothing is switched off.
pub const FEATURES: [&str; 12] = [
    "mbufs",
    "rings",
    "qinq",
    "pppoe",
    "anti-spoof-mac",
    "anti-spoof-address",
    "mss",
    "lookup",
    "mtu",
    "ttl-and-checksum",
    "session-counters",
    "drop-counters",
];

/// Sessions that are there in every figure; those that have traffic are the first of them.
pub const SESSIONS: u32 = 131_072;
/// The table of most figures.
const ROUTES: usize = 600_000;
/// The tables: a default route and so many others. Of IPv6 there are as many as the real table has, at most.
const TABLES: [usize; 4] = [1, 50_000, ROUTES, 968_000];
/// Network instances, and the routes of all of them together: small tables, and such as have IPv4's large array, of which there is
/// no room for 64.
const INSTANCES: [(u16, usize); 2] = [(64, 64_000), (8, ROUTES)];

/// Uplink IPv6 beside IPv4, and both mixed in a burst beside the mean of both; hot and cold.
const FAMILIES: [&str; 4] = ["up-v6-hot", "up-v6-cold", "up-v6-mix-hot", "up-v6-mix-cold"];

/// A scenario, its table and what was measured.
struct Figure {
    scenario: Scenario,
    table: usize,
    traffic: Traffic,
    samples: Samples,
}

/// Every scenario that is measured, with its table.
fn scenarios() -> Vec<(Scenario, usize)> {
    let ways = [Way::Up, Way::Down];
    let mut all: Vec<_> = ways.into_iter().flat_map(plain).collect();
    all.extend(ways.into_iter().flat_map(split));
    all.extend(ways.into_iter().flat_map(over_instances));
    all
}

/// Those of one instance, and of segments with many sessions.
fn plain(way: Way) -> Vec<(Scenario, usize)> {
    let mut all = Vec::new();
    for packets in [HOT, COLD] {
        for sessions in [4096, 32_768, SESSIONS] {
            all.push((Scenario::plain(way, sessions, packets), ROUTES));
        }
        for table in TABLES.into_iter().filter(|&table| table != ROUTES) {
            all.push((Scenario::plain(way, SESSIONS, packets), table));
        }
    }
    for size in [Size::Octets(128), Size::Octets(512), Size::Imix] {
        let plain = Scenario::plain(way, SESSIONS, COLD);
        all.push((Scenario { size, ..plain }, ROUTES));
    }
    for family in [Family::V6, Family::Both] {
        for packets in [HOT, COLD] {
            let plain = Scenario::plain(way, SESSIONS, packets);
            all.push((Scenario { family, ..plain }, ROUTES));
        }
    }
    all
}

/// Those of 4,096 segments, with one session each that has traffic, and with 32.
fn split(way: Way) -> Vec<(Scenario, usize)> {
    let mut all = Vec::new();
    for packets in [HOT, COLD] {
        for sessions in [4096, SESSIONS] {
            let scenario = Scenario {
                layout: Layout::SPLIT,
                ..Scenario::plain(way, sessions, packets)
            };
            all.push((scenario, ROUTES));
        }
    }
    all
}

/// Those of several instances.
fn over_instances(way: Way) -> Vec<(Scenario, usize)> {
    let mut all = Vec::new();
    for (instances, table) in INSTANCES {
        for packets in [HOT, COLD] {
            for in_runs in [false, true] {
                let scenario = Scenario {
                    layout: Layout::over(instances),
                    in_runs,
                    ..Scenario::plain(way, SESSIONS, packets)
                };
                all.push((scenario, table));
            }
        }
    }
    all
}

/// Whether it is one of those that [`families`] compares.
fn is_of_families(scenario: Scenario) -> bool {
    let plain = Scenario::plain(Way::Up, SESSIONS, scenario.packets);
    let family = scenario.family;
    scenario == Scenario { family, ..plain }
}

/// Measures everything in `rounds` rounds, each of which takes all scenarios and testpmd once.
pub fn measure(
    eal: &Eal,
    pool: Pool,
    core: usize,
    stock: &mut Stock,
    prefixes: &Prefixes,
    rounds: usize,
    only: &str,
) -> Result<Vec<Entry>> {
    let mut wanted = scenarios();
    let compares = FAMILIES.iter().any(|id| id.contains(only));
    wanted.retain(|(scenario, table)| {
        let is_compared = compares && *table == ROUTES && is_of_families(*scenario);
        is_compared || id(*scenario, *table).contains(only)
    });
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut worlds: Vec<World> = Vec::new();
    let mut made: Vec<(Layout, usize)> = Vec::new();
    for (Scenario { layout, .. }, table) in &wanted {
        if !made.contains(&(*layout, *table)) {
            let Layout { instances, .. } = *layout;
            let name = format!("w{}", worlds.len());
            eprintln!("  {SESSIONS} sessions, {table} routes{}", spread(*layout));
            let plan = Plan {
                sessions: SESSIONS,
                layout: *layout,
                routes: Routes::shares(prefixes, *table, instances),
                workers: 1,
            };
            worlds.push(World::new(eal, pool, &name, plan)?);
            made.push((*layout, *table));
        }
    }
    let at = |scenario: Scenario, table| {
        let place = made.iter().position(|&m| m == (scenario.layout, table));
        place.expect("a world that is wanted")
    };
    let figure = |(scenario, table)| Figure {
        scenario,
        table,
        traffic: Traffic::new(scenario, &worlds[at(scenario, table)].routes),
        samples: Samples::default(),
    };
    let mut figures: Vec<Figure> = wanted.into_iter().map(figure).collect();
    let mut mac = Samples::default();
    for round in 1..=rounds {
        eprintln!("  whole path, round {round} of {rounds}");
        let first = &mut figures[0];
        warm(first, &mut worlds[at(first.scenario, first.table)], stock)?;
        for f in &mut figures {
            let world = &mut worlds[at(f.scenario, f.table)];
            f.samples
                .0
                .push(pass(f.scenario, &mut f.traffic, world, stock)?);
        }
        mac.0.push(testpmd::mac(core)?);
    }
    for world in &worlds {
        world.check_drops()?;
    }
    Ok(entries(&figures, &mac))
}

/// How long a core works before it is measured.
pub const WARM: Duration = Duration::from_millis(40);

/// A core that has rested, as this one does while testpmd is at work, does not fetch far lines ahead for up to 20 ms (AMD's
/// of the generation Zen 4): it works until then.
fn warm(first: &mut Figure, world: &mut World, stock: &mut Stock) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < WARM {
        first.traffic.pass(world, stock)?;
    }
    Ok(())
}

/// The median of a few passes: so long that an interruption is no figure.
fn pass(
    scenario: Scenario,
    traffic: &mut Traffic,
    world: &mut World,
    stock: &mut Stock,
) -> Result<f64> {
    let passes = if scenario.packets == HOT { 48 } else { 6 };
    let mut samples = Samples::default();
    // The first warms up.
    traffic.pass(world, stock)?;
    for _ in 0..passes {
        samples.0.push(traffic.pass(world, stock)?);
    }
    Ok(samples.median())
}

fn entries(figures: &[Figure], mac: &Samples) -> Vec<Entry> {
    let of = |scenario, table| {
        let mut figures = figures.iter();
        figures.find(|f| f.table == table && f.scenario == scenario)
    };
    let find = |way, sessions, packets| of(Scenario::plain(way, sessions, packets), ROUTES);
    let mut all = Vec::new();
    if let Some(up) = find(Way::Up, SESSIONS, HOT) {
        let ratio = entry("up-vs-mac", "uplink / testpmd mac, hot", up);
        all.push(ratio.ratio_at_most("testpmd mac", mac, 4.5));
    }
    for (way, id, hot, cold) in [
        (Way::Up, "up-cycles", 65.0, 75.0),
        (Way::Down, "down-cycles", 60.0, 75.0),
    ] {
        for (packets, target) in [(HOT, hot), (COLD, cold)] {
            let found = find(way, SESSIONS, packets);
            all.extend(found.map(|f| entry(id, label(f), f).at_most(target)));
        }
    }
    for (way, id, target) in [(Way::Up, "scale-up", 1.35), (Way::Down, "scale-down", 1.9)] {
        let (large, small) = (find(way, SESSIONS, COLD), find(way, 4096, COLD));
        if let Some((large, small)) = large.zip(small) {
            let name = format!("{}link, 131,072 / 4,096 sessions", word(way));
            let scale = entry(id, name, large);
            all.push(scale.ratio_at_most("4,096 sessions", &small.samples, target));
        }
    }
    all.extend(
        [HOT, COLD]
            .into_iter()
            .flat_map(|packets| families(figures, packets)),
    );
    for (instances, table) in INSTANCES {
        let mixed = Scenario {
            layout: Layout::over(instances),
            ..Scenario::plain(Way::Up, SESSIONS, COLD)
        };
        let in_runs = Scenario {
            in_runs: true,
            ..mixed
        };
        if let Some((mixed, in_runs)) = of(mixed, table).zip(of(in_runs, table)) {
            all.push(likely(instances, mixed, in_runs));
        }
    }
    for f in figures {
        let entry = entry(&id(f.scenario, f.table), label(f), f);
        let layout = Layout::PLAIN;
        let plain = of(
            Scenario {
                layout,
                ..f.scenario
            },
            f.table,
        );
        all.push(match plain.filter(|_| f.scenario.layout == Layout::SPLIT) {
            Some(plain) => entry.beside("large segments", &plain.samples, |own, peer| own / peer),
            None => entry,
        });
    }
    let peer = Entry::new(
        "testpmd-mac",
        "testpmd mac over a ring, 64 octets, hot",
        "cycles",
        mac,
    );
    all.push(peer);
    all
}

/// IPv6 beside IPv4, and a mixture in each burst beside the mean of both, if they were measured.
fn families(figures: &[Figure], packets: usize) -> Vec<Entry> {
    let plain = Scenario::plain(Way::Up, SESSIONS, packets);
    let of = |family| {
        let wanted = (Scenario { family, ..plain }, ROUTES);
        let mut figures = figures.iter();
        figures.find(|f| (f.scenario, f.table) == wanted)
    };
    let [Some(v4), Some(v6), Some(both)] = [Family::V4, Family::V6, Family::Both].map(of) else {
        return Vec::new();
    };
    let headers = headers(plain);
    let id = format!("up-v6-{headers}");
    let ratio = entry(&id, format!("uplink, IPv6 / IPv4, {headers}"), v6);
    let id = format!("up-v6-mix-{headers}");
    let name = format!("uplink, IPv4 and IPv6 mixed / mean of both, {headers}");
    let mixed = entry(&id, name, both);
    let rounds = v4.samples.0.iter().zip(&v6.samples.0);
    let mean = Samples(rounds.map(|(v4, v6)| (v4 + v6) / 2.0).collect());
    vec![
        ratio.ratio_at_most("IPv4", &v4.samples, 1.5),
        mixed.ratio_at_most("mean of both", &mean, 1.0),
    ]
}

/// What it costs that a worker takes a packet's instance for that of the one before.
fn likely(instances: u16, mixed: &Figure, in_runs: &Figure) -> Entry {
    let name = format!("uplink, {instances} instances at random / {RUN} packets of each");
    let id = format!("likely-instance-{instances}");
    let entry = Entry::new(&id, name, "cycles", &mixed.samples);
    entry.beside("in runs", &in_runs.samples, |own, peer| own / peer)
}

/// A figure's id: way, family, frame, sessions, routes, segments or instances, headers.
fn id(scenario: Scenario, table: usize) -> String {
    let family = format!("{:?}", scenario.family).to_lowercase();
    let size = match scenario.size {
        Size::Octets(octets) => octets.to_string(),
        Size::Imix => "imix".into(),
        Size::LargeImix => "large-imix".into(),
    };
    let (way, sessions, headers) = (word(scenario.way), scenario.sessions, headers(scenario));
    let spread = spread(scenario.layout).replace(' ', "-");
    let runs = if scenario.in_runs { "-runs" } else { "" };
    format!("{way}-{family}-{size}-{sessions}-{table}{spread}{runs}-{headers}")
}

/// What is to be said of a layout that is not the plain one.
fn spread(layout: Layout) -> String {
    match layout {
        Layout { is_split: true, .. } => " 4K segments".into(),
        Layout { instances: 1, .. } => String::new(),
        Layout { instances, .. } => format!(" {instances} instances"),
    }
}

fn word(way: Way) -> &'static str {
    match way {
        Way::Up => "up",
        Way::Down => "down",
    }
}

fn headers(scenario: Scenario) -> &'static str {
    if scenario.packets == HOT {
        "hot"
    } else {
        "cold"
    }
}

fn frame(f: &Figure) -> String {
    match f.scenario.size {
        Size::Octets(octets) => octets.to_string(),
        Size::Imix => "IMIX".into(),
        Size::LargeImix => "large IMIX".into(),
    }
}

fn label(f: &Figure) -> String {
    let family = match f.scenario.family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
        Family::Both => "IPv4+6",
    };
    let (way, frame, headers) = (word(f.scenario.way), frame(f), headers(f.scenario));
    let sessions = f.scenario.sessions / 1024;
    let routes = match f.table {
        0..1000 => f.table.to_string(),
        n => format!("{}K", n / 1000),
    };
    let spread = spread(f.scenario.layout);
    let runs = if f.scenario.in_runs { " in runs" } else { "" };
    format!(
        "{way}link {family} {frame} {sessions}K sessions {routes} routes{spread}{runs} {headers}"
    )
}

fn entry(id: &str, name: impl Into<String>, f: &Figure) -> Entry {
    Entry {
        features: FEATURES.to_vec(),
        frame: Some(frame(f)),
        sessions: Some(f.scenario.sessions),
        routes: Some(f.table),
        headers: Some(headers(f.scenario)),
        ..Entry::new(id, name, "cycles", &f.samples)
    }
}
