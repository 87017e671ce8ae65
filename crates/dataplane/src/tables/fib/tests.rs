//! Against a naive model, with a reader that runs beside, and down to nothing again.
use super::memory::Kind;
use super::*;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use proptest::prelude::*;
use std::collections::HashMap;

const HERE: InstanceIndex = InstanceIndex(0);

/// Large arrays from a few prefixes on, so that a few changes meet every kind of chunk.
pub(super) const SMALL: [Policy; 2] = [
    Policy {
        wide: if cfg!(miri) {
            &[]
        } else {
            &[(0, Kind::Array16)]
        },
        many: 12,
        ..Policy::V4
    },
    Policy {
        wide: if cfg!(miri) { &[] } else { Policy::V6.wide },
        many: 10,
        ..Policy::V6
    },
];

/// Tables in which large arrays come early; for the interpreter, which is slow, without those.
pub(crate) fn small() -> Writer {
    let lines = if cfg!(miri) { 1 << 9 } else { 1 << 19 };
    Writer::with(2, 10_000, lines, SMALL).unwrap()
}

pub(super) fn session(n: u32) -> Option<Destination> {
    Some(Destination::Session(SessionIndex(n)))
}

fn prefix(address: IpAddr, len: u8) -> IpNet {
    IpNet::new(address, len).unwrap().trunc()
}

fn lookup(reader: &Reader, address: IpAddr, alone: bool) -> Option<Destination> {
    let found = match address {
        IpAddr::V4(a) => {
            let address = u32::from(a);
            reader.touch_v4(reader.table(HERE), address);
            let found = reader.lookup_v4(HERE, address);
            if let Some(found) = alone.then_some(found) {
                let mut all = [Target::NONE; 3];
                let addresses = [address, !address, address ^ 1];
                reader.lookup_v4_all(HERE, &addresses, &mut all);
                let one_by_one = addresses.map(|address| reader.lookup_v4(HERE, address));
                assert_eq!((all, all[0]), (one_by_one, found));
            }
            found
        }
        IpAddr::V6(a) => {
            let address = u128::from(a);
            reader.touch_v6(reader.table(HERE), address);
            let found = reader.lookup_v6(HERE, address);
            // Only without another thread's changes in between both are the same.
            if let Some(found) = alone.then_some(found) {
                let mut all = [Target::NONE; 3];
                let addresses = [address, !address, address ^ 1 << 70];
                reader.lookup_v6_all(HERE, &addresses, &mut all);
                let one_by_one = addresses.map(|address| reader.lookup_v6(HERE, address));
                assert_eq!((all, all[0]), (one_by_one, found));
            }
            found
        }
    };
    found.destination()
}

/// Longest match by looking at all prefixes, or by asking for every length.
fn naive(all: &HashMap<IpNet, u32>, address: IpAddr) -> Option<Destination> {
    if all.len() < 64 {
        let covering = all.iter().filter(|(net, _)| net.contains(&address));
        let longest = covering.max_by_key(|(net, _)| net.prefix_len());
        return longest.and_then(|(_, n)| session(*n));
    }
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let mut lengths = (0..=longest).rev();
    lengths.find_map(|len| session(*all.get(&prefix(address, len))?))
}

/// A prefix that comes or changes, or goes.
type Step = (IpNet, Option<u32>);

/// Does everything, and looks after each step; then takes away what is left, in the order of `last`.
fn agrees(steps: &[Step], asked: &[IpAddr], last: impl Fn(&mut Vec<IpNet>)) {
    let (mut writer, mut all) = (small(), HashMap::new());
    let fresh = writer.counts();
    let reader = writer.reader();
    let edges = |net: &IpNet| [net.network(), net.broadcast()];
    let asked: Vec<_> = (asked.iter().copied())
        .chain(steps.iter().flat_map(|(net, _)| edges(net)))
        .collect();
    let check = |all: &HashMap<_, _>, step: &dyn std::fmt::Debug| {
        for &address in &asked {
            let (found, wanted) = (lookup(&reader, address, true), naive(all, address));
            assert_eq!(found, wanted, "{address} after {step:?}");
        }
    };
    for step @ &(net, to) in steps {
        let was = match to {
            Some(n) => all.insert(net, n),
            None => all.remove(&net),
        };
        let to = to.and_then(session);
        let said = writer.set(HERE, net, Owner::Route, to).unwrap();
        assert_eq!(said, was.and_then(session));
        check(&all, step);
    }
    let mut rest: Vec<_> = all.keys().copied().collect();
    rest.sort();
    last(&mut rest);
    for net in rest {
        writer.set(HERE, net, Owner::Route, None).unwrap();
        all.remove(&net);
        check(&all, &net);
    }
    assert_eq!(emptied(&mut writer, &[&reader]), fresh);
}

/// The counts once nothing rests any more.
fn emptied(writer: &mut Writer, readers: &[&Reader]) -> Counts {
    for _ in 0..3 {
        readers.iter().for_each(|reader| reader.pass());
        writer.store.settle();
    }
    writer.counts()
}

/// Few different octets, so that prefixes meet.
fn octet() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0u8), 1 => Just(1), 1 => Just(0x80), 1 => Just(0xff), 1 => any::<u8>()]
}

fn v4() -> impl Strategy<Value = IpAddr> {
    any_octets::<4>().prop_map(IpAddr::from)
}

fn v6() -> impl Strategy<Value = IpAddr> {
    any_octets::<16>().prop_map(IpAddr::from)
}

fn any_octets<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    proptest::collection::vec(octet(), N).prop_map(|v| v.try_into().unwrap())
}

fn steps(address: impl Strategy<Value = IpAddr>, longest: u8) -> impl Strategy<Value = Vec<Step>> {
    let to = prop_oneof![3 => (0..9u32).prop_map(Some), 1 => Just(None)];
    // Most near one another, as prefixes are.
    let len = prop_oneof![1 => 0..=longest, 2 => Just(longest), 2 => 16..=longest.min(64)];
    let step = (address, len, to).prop_map(|(address, len, to)| (prefix(address, len), to));
    proptest::collection::vec(step, 0..if cfg!(miri) { 8 } else { 60 })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 96 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn finds_what_a_naive_search_finds_v4(
        steps in steps(v4(), 32),
        asked in proptest::collection::vec(v4(), 0..8),
        turn in any::<bool>(),
    ) {
        agrees(&steps, &asked, |rest| if turn { rest.reverse() });
    }

    #[test]
    fn finds_what_a_naive_search_finds_v6(
        steps in steps(v6(), 128),
        asked in proptest::collection::vec(v6(), 0..8),
        turn in any::<bool>(),
    ) {
        agrees(&steps, &asked, |rest| if turn { rest.reverse() });
    }
}

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// An address near others, and a prefix around it.
    fn net(&mut self, v4: bool) -> IpNet {
        let (bits, len) = (self.next(), self.next());
        match v4 {
            true => {
                let address = 0x0a00_0000 | (bits as u32 & 0x0003_03ff);
                prefix(IpAddr::V4(address.into()), 12 + (len % 21) as u8)
            }
            false => {
                let address = 0x2001_0db8_u128 << 96 | (bits as u128 & 0x0303_07ff) << 64;
                prefix(IpAddr::V6(address.into()), 28 + (len % 37) as u8)
            }
        }
    }
}

#[test]
fn a_reader_beside_sees_old_or_new_and_nothing_else() {
    let changes = if cfg!(miri) { 16 } else { 20_000 };
    let mut random = Random(88172645463325252);
    let asked: Vec<IpAddr> = (0..if cfg!(miri) { 4 } else { 12 })
        .map(|n| random.net(n % 2 == 0).network())
        .collect();
    // What is said step by step, and each address's answer after it.
    let (mut all, mut steps, mut answers) = (HashMap::new(), vec![], vec![]);
    let after = |all: &HashMap<_, _>| asked.iter().map(|a| naive(all, *a)).collect::<Vec<_>>();
    answers.push(after(&all));
    for n in 0..changes {
        let net = random.net(random.0.is_multiple_of(2));
        let to = (!random.next().is_multiple_of(3)).then_some(n);
        match to {
            Some(n) => all.insert(net, n),
            None => all.remove(&net),
        };
        steps.push((net, to));
        answers.push(after(&all));
    }
    let mut writer = small();
    let reader = writer.reader();
    let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let looked = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (reader, mut looked) = (reader, 0);
            while done.load(SeqCst) < steps.len() {
                for (place, address) in asked.iter().enumerate() {
                    let from = done.load(SeqCst);
                    let found = lookup(&reader, *address, false);
                    let to = begun.load(SeqCst);
                    let mut possible = answers[from..=to].iter();
                    assert!(
                        possible.any(|answers| answers[place] == found),
                        "{address}: {found:?} between {from} and {to}"
                    );
                }
                reader.pass();
                looked += 1;
            }
            looked
        });
        for (n, (net, to)) in steps.iter().enumerate() {
            begun.store(n + 1, SeqCst);
            let set = writer.set(HERE, *net, Owner::Route, to.and_then(session));
            set.unwrap();
            done.store(n + 1, SeqCst);
            if cfg!(miri) {
                std::thread::yield_now();
            }
        }
        looking.join().unwrap()
    });
    println!("{looked} rounds beside {changes} changes");
    for net in all.into_keys() {
        writer.set(HERE, net, Owner::Route, None).unwrap();
    }
    let fresh = Counts::default();
    assert_eq!(emptied(&mut writer, &[]), fresh, "the reader is gone");
}

#[test]
#[cfg_attr(miri, ignore = "large tables")]
fn large_tables_become_large_and_small_again() {
    let mut writer = Writer::new(2, 50_000).unwrap();
    let mut random = Random(88172645463325252);
    let mut all = HashMap::new();
    let reader = writer.reader();
    for n in 0..30_000 {
        let net = match (n % 2, random.next()) {
            (0, bits) => prefix(
                IpAddr::V4((bits as u32).into()),
                8 + (bits >> 40) as u8 % 25,
            ),
            (_, bits) => {
                let address = (0x2000 << 112) | (bits as u128 & 0x3ff_ffff_ffff) << 64;
                prefix(IpAddr::V6(address.into()), 20 + (bits >> 50) as u8 % 45)
            }
        };
        all.insert(net, n);
        writer.set(HERE, net, Owner::Route, session(n)).unwrap();
    }
    let default = |n| [("0.0.0.0/0", n), ("::/0", n + 1)].map(|(net, n)| (net.parse().unwrap(), n));
    let check = |all: &HashMap<IpNet, u32>, random: &mut Random| {
        for net in all.keys().take(5_000) {
            for address in [net.network(), net.broadcast()] {
                assert_eq!(
                    lookup(&reader, address, true),
                    naive(all, address),
                    "{address}"
                );
            }
        }
        for _ in 0..5_000 {
            let address = IpAddr::V4((random.next() as u32).into());
            assert_eq!(
                lookup(&reader, address, true),
                naive(all, address),
                "{address}"
            );
        }
    };
    check(&all, &mut random);
    for n in [100_000, 200_000] {
        for (net, n) in default(n) {
            writer.set(HERE, net, Owner::Route, session(n)).unwrap();
            all.insert(net, n);
        }
        check(&all, &mut random);
    }
    assert!(writer.counts().octets > 64 << 20, "{:?}", writer.counts());
    let gone: Vec<_> = all.keys().copied().collect();
    for (n, net) in gone.into_iter().enumerate() {
        writer.set(HERE, net, Owner::Route, None).unwrap();
        all.remove(&net);
        if n % 6_000 == 0 {
            check(&all, &mut random);
        }
        reader.pass();
    }
    assert_eq!(emptied(&mut writer, &[&reader]), Counts::default());
}

#[test]
fn an_instance_with_a_few_routes_takes_little() {
    let mut writer = small();
    for net in crate::nodes::lookup::unroutable() {
        let set = writer.set(HERE, net, Owner::Route, Some(Destination::Discard));
        set.unwrap();
    }
    writer
        .set(HERE, "0.0.0.0/0".parse().unwrap(), Owner::Route, session(1))
        .unwrap();
    assert!(writer.counts().octets < 2048, "{:?}", writer.counts());
}

#[test]
fn instances_have_routes_of_their_own() {
    let mut writer = small();
    let reader = writer.reader();
    let (net, address) = ("10.0.0.0/8".parse().unwrap(), 0x0a01_0203);
    let other = InstanceIndex(1);
    writer.set(other, net, Owner::Route, session(1)).unwrap();
    let found = [HERE, other, InstanceIndex(2)].map(|i| reader.lookup_v4(i, address));
    let wanted = [None, session(1), None];
    assert_eq!(found.map(Target::destination), wanted);
    assert_eq!(
        writer.set(InstanceIndex(2), net, Owner::Route, None),
        Err(Refused)
    );
    assert_eq!(writer.exact(other, net), session(1));
    assert_eq!(writer.exact(HERE, net), None);
}

#[test]
fn what_is_taken_out_rests_while_a_reader_stands_still() {
    let mut writer = small();
    let (still, moving) = (writer.reader(), writer.reader());
    let net = "2001:db8::/48".parse().unwrap();
    let mut flap = |times| {
        for n in 0..times {
            writer.set(HERE, net, Owner::Route, session(n)).unwrap();
            writer.set(HERE, net, Owner::Route, None).unwrap();
            moving.pass();
        }
        (writer.counts().octets, writer.counts().resting)
    };
    let (_, one) = flap(10);
    assert_eq!(flap(10), (0, 2 * one), "nothing is used again");
    still.pass();
    flap(2);
    still.pass();
    assert!(flap(1).1 < one);
    drop(still);
    flap(2);
    let (_, resting) = flap(1);
    assert!(resting < one, "{resting} of {one}");
}

#[test]
fn a_full_table_refuses_and_counts() {
    let mut writer = Writer::with(1, 3, 1 << 9, SMALL).unwrap();
    let nets = ["10.0.0.0/8", "2001:db8::/32", "10.1.0.0/16", "10.2.0.0/16"];
    let [a, b, c, d] = nets.map(|net| net.parse::<IpNet>().unwrap());
    for net in [a, b, c] {
        assert_eq!(writer.set(HERE, net, Owner::Route, session(1)), Ok(None));
    }
    assert_eq!(writer.set(HERE, d, Owner::Route, session(1)), Err(Refused));
    assert_eq!(writer.counts().refused, 1);
    assert_eq!(writer.set(HERE, b, Owner::Route, None), Ok(session(1)));
    assert_eq!(writer.set(HERE, d, Owner::Route, session(1)), Ok(None));
}

#[test]
fn a_sessions_route_covers_one_of_the_same_prefix_and_leaves_it() {
    let mut writer = small();
    let reader = writer.reader();
    let net: IpNet = "2001:db8:0:7::/64".parse().unwrap();
    let inside = "2001:db8:0:7::1".parse().unwrap();
    let mut say = |owner, to| {
        writer.set(HERE, net, owner, to).unwrap();
        let said = writer.after(HERE, None).next();
        let said = said.map(|(_, said)| [said.by(Owner::Route), said.by(Owner::Session)]);
        let exact = writer.exact(HERE, net);
        assert_eq!(lookup(&reader, inside, true), exact);
        (exact, said, writer.counts().prefixes)
    };
    let discard = Some(Destination::Discard);
    assert_eq!(say(Owner::Session, session(7)).0, session(7));
    let both = Some([discard, session(7)]);
    assert_eq!(say(Owner::Route, discard), (session(7), both, 1));
    assert_eq!(say(Owner::Session, None).0, discard);
    assert_eq!(say(Owner::Route, None), (None, None, 0));
}

#[test]
fn prefixes_are_told_in_order_from_anywhere() {
    let mut writer = small();
    let nets = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/24",
        "::/0",
        "2001:db8::/32",
    ];
    let nets = nets.map(|net| net.parse::<IpNet>().unwrap());
    for net in nets {
        writer.set(HERE, net, Owner::Route, session(1)).unwrap();
    }
    let told = |after| {
        writer
            .after(HERE, after)
            .map(|(net, _)| net)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(None), nets);
    for n in 0..nets.len() {
        assert_eq!(told(Some(nets[n])), nets[n + 1..]);
    }
}

#[test]
fn destinations_survive_their_four_bytes() {
    let all = [
        Destination::Adjacency(AdjacencyIndex(1 << 28)),
        Destination::Session(SessionIndex(0x1fff_ffff)),
        Destination::Local,
        Destination::Discard,
        Destination::Connected(PortIndex(65535)),
        Destination::Group(GroupIndex(1 << 20)),
    ];
    for to in all {
        assert_eq!(Target::of(to).destination(), Some(to));
    }
    assert_eq!(Target::default().destination(), None);
}
