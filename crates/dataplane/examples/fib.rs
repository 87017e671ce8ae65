//! What routes cost: cycles of the time stamp counter for a lookup, the time of a full table, of a change, and of a change of the
//! default route. Random prefixes of the lengths that the internet's tables have.
use dataplane::fib::{Owner, Reader, Target, Writer};
use dataplane::{AdjacencyIndex, Destination, InstanceIndex};
use dpdk::tsc;
use ipnet::IpNet;
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

const HERE: InstanceIndex = InstanceIndex(0);
const BATCH: usize = 64;

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One of these, as often as is said.
    fn pick<T: Copy>(&mut self, of: &[(u64, T)]) -> T {
        let mut n = self.next() % of.iter().map(|(often, _)| often).sum::<u64>();
        let found = of.iter().find(|(often, _)| {
            let here = n < *often;
            n = n.wrapping_sub(*often);
            here
        });
        found.expect("n is below the sum").1
    }

    /// Any of the unicast addresses; lengths by how many of a thousand routes have them.
    fn v4(&mut self) -> IpNet {
        let lengths = [
            (600, 24),
            (110, 22),
            (100, 23),
            (45, 20),
            (40, 21),
            (30, 19),
            (25, 16),
        ];
        let more = [
            (14, 18),
            (8, 17),
            (10, 32),
            (6, 29),
            (5, 28),
            (3, 15),
            (4, 14),
        ];
        let len = self.pick(&[&lengths[..], &more[..]].concat());
        let address = 0x0100_0000 + (self.next() % 0xdf00_0000) as u32;
        net(IpAddr::V4(address.into()), len)
    }

    /// An operator's /32 or /29, or something within one: some have hundreds, most a few.
    fn v6(&mut self, operators: &[u128]) -> IpNet {
        let lengths = [
            (470, 48),
            (120, 32),
            (70, 44),
            (60, 40),
            (60, 36),
            (35, 29),
            (35, 46),
        ];
        let more = [
            (30, 47),
            (30, 33),
            (25, 42),
            (25, 45),
            (20, 56),
            (20, 64),
            (10, 35),
        ];
        let len = self.pick(&[&lengths[..], &more[..]].concat());
        // The smaller the more often.
        let share = (self.next() >> 40) as f64 / (1 << 24) as f64;
        let operator = operators[(share * share * share * operators.len() as f64) as usize];
        let within = (self.next() as u128) << 64 & (u128::MAX >> 32);
        net(IpAddr::V6((operator | within).into()), len)
    }

    fn operators(&mut self) -> Vec<u128> {
        let registries = [
            (30, (0x2a00, 4)),
            (25, (0x2400, 4)),
            (20, (0x2600, 4)),
            (15, (0x2800, 4)),
            (10, (0x2c00, 8)),
        ];
        let mut operator = || {
            let (high, bits) = self.pick(&registries);
            let within = (self.next() as u128) << 96 & (u128::MAX >> (16 - bits));
            ((high as u128) << 112 | within) & u128::MAX << 96
        };
        (0..60_000).map(|_| operator()).collect()
    }

    /// An address in a prefix.
    fn within(&mut self, net: &IpNet) -> IpAddr {
        let low = (self.next() as u128) << 64 | self.next() as u128;
        match net {
            IpNet::V4(net) => {
                let mask = u32::from(net.hostmask());
                IpAddr::V4((u32::from(net.network()) | low as u32 & mask).into())
            }
            IpNet::V6(net) => {
                let mask = u128::from(net.hostmask());
                IpAddr::V6((u128::from(net.network()) | low & mask).into())
            }
        }
    }
}

fn net(address: IpAddr, len: u8) -> IpNet {
    IpNet::new(address, len).expect("a length").trunc()
}

/// The time that this thread has worked: the machine may have other things to do.
fn now() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    let time = nix::time::clock_gettime(clock).expect("a clock");
    Duration::from(time)
}

fn to(n: u32) -> Option<Destination> {
    Some(Destination::Adjacency(AdjacencyIndex(n % 64)))
}

fn load(writer: &mut Writer, nets: &[IpNet]) -> Result<Duration, Box<dyn Error>> {
    let begin = now();
    for (n, net) in nets.iter().enumerate() {
        writer.set(HERE, *net, Owner::Route, to(n as u32))?;
    }
    Ok(now() - begin)
}

/// Minimum and median of the batches' cycles a lookup.
fn measure(reader: &Reader, nets: &[IpNet], random: &mut Random) -> (f64, f64) {
    let asked: Vec<IpAddr> = (0..1 << 16)
        .map(|_| {
            let net = &nets[(random.next() % nets.len() as u64) as usize];
            random.within(net)
        })
        .collect();
    let v4: Vec<u32> = asked
        .iter()
        .filter_map(|a| Some(u32::from(v4(a)?)))
        .collect();
    let v6: Vec<u128> = asked
        .iter()
        .filter_map(|a| Some(u128::from(v6(a)?)))
        .collect();
    let mut sum = 0;
    let mut batches = vec![];
    let mut found = [Target::default(); BATCH];
    for _ in 0..8 {
        for batch in v4.chunks_exact(BATCH) {
            let begin = tsc();
            batch.iter().for_each(|a| reader.touch_v4(HERE, *a));
            for address in batch {
                sum += reader.lookup_v4(HERE, *address).destination().is_some() as u64;
            }
            batches.push(tsc() - begin);
        }
        for batch in v6.chunks_exact(BATCH) {
            let begin = tsc();
            reader.lookup_v6_all(HERE, batch, &mut found);
            let all = found.iter();
            sum += all.filter(|to| to.destination().is_some()).count() as u64;
            batches.push(tsc() - begin);
        }
    }
    assert_eq!(
        sum,
        (batches.len() * BATCH) as u64,
        "every address has a route"
    );
    batches.sort_unstable();
    let each = |batch: u64| batch as f64 / BATCH as f64;
    (each(batches[0]), each(batches[batches.len() / 2]))
}

fn v4(address: &IpAddr) -> Option<std::net::Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}

fn v6(address: &IpAddr) -> Option<std::net::Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random(88172645463325252);
    let operators = random.operators();
    let mut million = std::collections::HashSet::new();
    while million.len() < 1_000_000 {
        million.insert(random.v4());
    }
    let v4: Vec<IpNet> = million.into_iter().collect();
    let mut quarter = std::collections::HashSet::new();
    while quarter.len() < 250_000 {
        quarter.insert(random.v6(&operators));
    }
    let v6: Vec<IpNet> = quarter.into_iter().collect();
    for (name, nets) in [
        ("v4 600,000", &v4[..600_000]),
        ("v4 1,000,000", &v4),
        ("v6 250,000", &v6),
    ] {
        let mut writer = Writer::new(1, 1 << 21)?;
        let reader = writer.reader();
        let took = load(&mut writer, nets)?;
        let (least, median) = measure(&reader, nets, &mut random);
        let octets = writer.counts().octets >> 20;
        println!(
            "{name}: loaded in {took:?}, {octets} MiB, lookup minimum {least:.1} median {median:.1} cycles"
        );
    }
    let mut writer = Writer::new(1, 1 << 21)?;
    let reader = writer.reader();
    let both = load(&mut writer, &v4)? + load(&mut writer, &v6)?;
    println!("both: loaded in {both:?}, {:?}", writer.counts());
    for (name, nets) in [("v4", &v4), ("v6", &v6)] {
        let mut times = vec![];
        for n in 0..10_000 {
            let net = nets[(random.next() % nets.len() as u64) as usize];
            let mut change = |to| {
                let begin = now();
                writer.set(HERE, net, Owner::Route, to).expect("room");
                times.push(now() - begin);
                reader.pass();
            };
            // goes, comes again, and leads elsewhere
            [None, to(n), to(n + 1)].into_iter().for_each(&mut change);
        }
        times.sort_unstable();
        let at = |share: usize| times[times.len() * share / 1000];
        println!(
            "{name} change: median {:?}, 99 % {:?}, 99.9 % {:?}, worst {:?}",
            at(500),
            at(990),
            at(999),
            times[times.len() - 1]
        );
    }
    for default in ["0.0.0.0/0", "::/0"] {
        let default = default.parse()?;
        for step in [to(1), to(2), None] {
            let begin = now();
            writer.set(HERE, default, Owner::Route, step)?;
            println!("{default} to {step:?}: {:?}", now() - begin);
        }
    }
    Ok(())
}
