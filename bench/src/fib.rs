//! Destination lookups beside DPDK's, a full table, and changes to it.
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::whole::SESSIONS;
use anyhow::{Context, Result, ensure};
use dataplane::fib::{Owner, Reader, Target, Writer};
use dataplane::{AdjacencyIndex, Destination, InstanceIndex, SessionIndex};
use dpdk::{BURST, Eal, peers, tsc, tsc_hz};
use ipnet::{IpNet, Ipv4Net};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const HERE: InstanceIndex = InstanceIndex(0);
/// Routes of the lookups, of each family as many as there are up to that.
const ROUTES: usize = 600_000;
/// Addresses that are looked up.
const ADDRESSES: usize = 1 << 16;
/// Second-level blocks of DPDK's tables.
const BLOCKS: u32 = 1 << 15;
/// Changes of which the median is taken.
const CHANGES: usize = 3000;

/// All that is measured of routes.
pub fn measure(eal: &Eal, prefixes: &Prefixes, rounds: usize) -> Result<Vec<Entry>> {
    let routes = Routes::first(prefixes, ROUTES);
    let mut entries = lookups(eal, &routes, rounds)?;
    let second = tsc_hz(eal) as f64;
    let [load, v4, v6, default] = changes(prefixes, second)?;
    let full = prefixes.v4.len() + SESSIONS as usize;
    let name = format!("loading {full} IPv4 routes, host routes among them");
    entries.push(routes_of(
        Entry::new("fib-load", name, "s", &load).at_most(2.0),
        full,
    ));
    let name = "a change of an IPv4 route, /16 to /32";
    entries.push(routes_of(
        Entry::new("fib-change", name, "us", &v4).at_most(10.0),
        full,
    ));
    let name = "a change of an IPv6 route";
    let all = prefixes.v6.len();
    entries.push(routes_of(Entry::new("fib-change-v6", name, "us", &v6), all));
    let name = "a change of the default IPv4 route, in the control thread";
    entries.push(routes_of(
        Entry::new("fib-default", name, "ms", &default).at_most(20.0),
        full,
    ));
    Ok(entries)
}

fn routes_of(entry: Entry, routes: usize) -> Entry {
    Entry {
        routes: Some(routes),
        ..entry
    }
}

fn lookups(eal: &Eal, routes: &Routes, rounds: usize) -> Result<Vec<Entry>> {
    let mut writer = Writer::new(1, 1 << 21)?;
    let reader = writer.reader();
    let most = 2 * routes.v4.len() as u32;
    let mut fib = peers::Fib::new(eal, "fib4", most, BLOCKS)?;
    let mut fib6 = peers::Fib6::new(eal, "fib6", most, 3 << 17)?;
    for (net, to) in routes.all() {
        writer.set(HERE, net, Owner::Route, neighbour(to))?;
        match net {
            IpNet::V4(net) => fib.add(net.network().into(), net.prefix_len(), to.into())?,
            IpNet::V6(net) => fib6.add(net.network().octets(), net.prefix_len(), to.into())?,
        }
    }
    let mut random = SmallRng::seed_from_u64(4);
    let v4: Vec<_> = (0..ADDRESSES)
        .map(|_| routes.pick_v4(&mut random))
        .collect();
    let v6: Vec<_> = (0..ADDRESSES)
        .map(|_| routes.pick_v6(&mut random))
        .collect();
    let mut figures = [const { Samples(Vec::new()) }; 4];
    for _ in 0..rounds {
        let round = [
            ours_v4(&reader, &v4)?,
            theirs_v4(&fib, &v4)?,
            ours_v6(&reader, &v6)?,
            theirs_v6(&fib6, &v6)?,
        ];
        for (figure, cycles) in figures.iter_mut().zip(round) {
            figure.0.push(cycles);
        }
    }
    let [own4, peer4, own6, peer6] = figures;
    let name = "IPv4 lookup, random addresses in random routes";
    let fib4 = Entry::new("fib4", name, "cycles", &own4);
    let name = "IPv6 lookup, random addresses in random routes";
    let fib6 = Entry::new("fib6", name, "cycles", &own6);
    Ok(vec![
        routes_of(
            fib4.faster_at_least("rte_fib, 4-byte entries", &peer4, 1.0),
            routes.v4.len(),
        ),
        routes_of(
            fib6.faster_at_least("rte_fib6, 4-byte entries", &peer6, 1.3),
            routes.v6.len(),
        ),
    ])
}

fn neighbour(n: u32) -> Option<Destination> {
    Some(Destination::Adjacency(AdjacencyIndex(n)))
}

/// Median cycles a lookup over bursts of them. Fails if one finds something else than it should.
pub fn each_burst<A: Copy>(
    addresses: &[(A, u32)],
    mut find: impl FnMut(&mut [A], &mut [u32; BURST]) -> u64,
) -> Result<f64> {
    let mut samples = Samples::default();
    for _ in 0..4 {
        for burst in addresses.chunks_exact(BURST) {
            let mut asked: Vec<A> = burst.iter().map(|(address, _)| *address).collect();
            let mut found = [0; BURST];
            samples
                .0
                .push(find(&mut asked, &mut found) as f64 / BURST as f64);
            let right = burst.iter().zip(found).all(|((_, to), found)| *to == found);
            ensure!(right, "a lookup found something else than it should");
        }
    }
    Ok(samples.median())
}

fn neighbour_of(target: Target) -> u32 {
    match target.destination() {
        Some(Destination::Adjacency(AdjacencyIndex(n))) => n,
        _ => u32::MAX,
    }
}

fn ours_v4(reader: &Reader, addresses: &[(u32, u32)]) -> Result<f64> {
    let mut targets = [Target::default(); BURST];
    each_burst(addresses, |asked, found| {
        let begin = tsc();
        reader.lookup_v4_all(HERE, asked, &mut targets);
        let took = tsc() - begin;
        *found = targets.map(neighbour_of);
        took
    })
}

fn theirs_v4(fib: &peers::Fib, addresses: &[(u32, u32)]) -> Result<f64> {
    let mut to = [0; BURST];
    each_burst(addresses, |asked, found| {
        let begin = tsc();
        fib.find(asked, &mut to);
        let took = tsc() - begin;
        *found = to.map(|to| to as u32);
        took
    })
}

fn ours_v6(reader: &Reader, addresses: &[(u128, u32)]) -> Result<f64> {
    let mut targets = [Target::default(); BURST];
    each_burst(addresses, |asked, found| {
        let begin = tsc();
        reader.lookup_v6_all(HERE, asked, &mut targets);
        let took = tsc() - begin;
        *found = targets.map(neighbour_of);
        took
    })
}

fn theirs_v6(fib: &peers::Fib6, addresses: &[(u128, u32)]) -> Result<f64> {
    let octets: Vec<([u8; 16], u32)> = addresses
        .iter()
        .map(|(a, to)| (a.to_be_bytes(), *to))
        .collect();
    let mut to = [0; BURST];
    each_burst(&octets, |asked, found| {
        let begin = tsc();
        fib.find(asked, &mut to);
        let took = tsc() - begin;
        *found = to.map(|to| to as u32);
        took
    })
}

/// Seconds of a full table, microseconds of a change of each family, and milliseconds of one of the default route.
fn changes(prefixes: &Prefixes, second: f64) -> Result<[Samples; 4]> {
    let mut random = SmallRng::seed_from_u64(5);
    let mut nets: Vec<(IpNet, Option<Destination>)> = Vec::new();
    let v4 = prefixes.v4.iter().map(|net| IpNet::V4(*net));
    nets.extend(v4.map(|net| (net, neighbour(random.random_range(0..256)))));
    let hosts = (0..SESSIONS).map(|n| Ipv4Net::new_assert((0x6440_0000 + n).into(), 32));
    nets.extend(
        hosts
            .zip(0..)
            .map(|(net, n)| (net.into(), Some(Destination::Session(SessionIndex(n))))),
    );
    let mut load = Samples::default();
    let mut writer = None;
    for _ in 0..3 {
        drop(writer.take());
        let mut fresh = Writer::new(1, 1 << 21)?;
        let begin = tsc();
        for (net, to) in &nets {
            fresh.set(HERE, *net, Owner::Route, *to)?;
        }
        load.0.push((tsc() - begin) as f64 / second);
        writer = Some(fresh);
    }
    let mut writer = writer.context("a table")?;
    for net in &prefixes.v6 {
        writer.set(HERE, IpNet::V6(*net), Owner::Route, neighbour(1))?;
    }
    let reader = writer.reader();
    let mut change = |nets: &[IpNet]| -> Result<Samples> {
        let mut samples = Samples::default();
        for n in 0..CHANGES {
            let net = nets[random.random_range(0..nets.len())];
            // It goes, comes again, and leads elsewhere.
            for to in [None, neighbour(2), neighbour(n as u32 % 256)] {
                let begin = tsc();
                writer.set(HERE, net, Owner::Route, to)?;
                samples.0.push((tsc() - begin) as f64 / second * 1e6);
                reader.pass();
            }
        }
        Ok(samples)
    };
    let long = nets
        .iter()
        .map(|(net, _)| *net)
        .filter(|net| net.prefix_len() >= 16);
    let v4 = change(&long.collect::<Vec<_>>())?;
    let v6 = change(
        &prefixes
            .v6
            .iter()
            .map(|net| IpNet::V6(*net))
            .collect::<Vec<_>>(),
    )?;
    let mut default = Samples::default();
    for n in 0..20 {
        let begin = tsc();
        writer.set(HERE, Ipv4Net::default().into(), Owner::Route, neighbour(n))?;
        default.0.push((tsc() - begin) as f64 / second * 1e3);
        reader.pass();
    }
    Ok([load, v4, v6, default])
}
