//! Searches of access lists by our classifier, beside DPDK's `rte_acl` in whatever form and way is its fastest.
use crate::report::{Entry, Samples};
use crate::rules::{Rule, Tuple, lists, traffic};
use acl::{Classifier, Packet4, Packet6, Upper};
use anyhow::{Context, Result, ensure};
use dpdk::peers::{
    Acl, AclCalls, AclForm, AclLists, AclRule, AclV4, AclV6, V4_KEY, V6_KEY, allow_wide_vectors,
};
use dpdk::{BURST, Eal, Error, tsc};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Packets that are looked up.
const PACKETS: usize = 1 << 16;
/// Each packet is looked up so often in a round.
const PASSES: usize = 4;

/// Lists of one kind.
struct Case {
    id: &'static str,
    is_v6: bool,
    /// Rules of each list: Intel's reference pipeline has 150, netElastic's templates 4,000.
    rules: usize,
    /// Lists, of which each packet of a burst needs any.
    lists: usize,
    /// Cycles a packet that are aimed at.
    most: Option<f64>,
}

/// Of IPv4, and of IPv6.
const MOST: [Option<f64>; 2] = [Some(28.0), Some(45.0)];

const CASES: [Case; 6] = [
    Case::new("acl-150", false, 150, 1, MOST[0]),
    Case::new("acl-4000", false, 4000, 1, MOST[0]),
    Case::new("acl-150-8", false, 150, 8, MOST[0]),
    Case::new("acl-150-64", false, 150, 64, None),
    Case::new("acl-v6", true, 150, 1, MOST[1]),
    Case::new("acl-v6-4000", true, 4000, 1, MOST[1]),
];

/// A family of packets, of which `KEY` octets are looked at.
trait Family<const KEY: usize> {
    fn key(tuple: &Tuple) -> [u8; KEY];

    /// The place of the first rule by our classifier.
    fn first_match(classifier: &Classifier, ip: &[u8; KEY]) -> Option<u32>;

    /// The list as `rte_acl` has it.
    fn peer(eal: &Eal, name: &str, rules: &[AclRule]) -> Result<Acl<KEY>, Error>;
}

struct V4;
struct V6;

/// All that is measured of access lists whose id contains `part`.
pub fn measure(eal: &Eal, part: &str, rounds: usize) -> Result<Vec<Entry>> {
    allow_wide_vectors(eal)?;
    let is_wanted = |case: &&Case| case.id.contains(part) || part.starts_with(case.id);
    let mut entries = Vec::new();
    for case in CASES.iter().filter(is_wanted) {
        eprintln!("  access lists: {}", case.name());
        entries.extend(match case.is_v6 {
            false => case.measure::<V4, V4_KEY>(eal, rounds)?,
            true => case.measure::<V6, V6_KEY>(eal, rounds)?,
        });
    }
    Ok(entries)
}

impl Case {
    const fn new(
        id: &'static str,
        is_v6: bool,
        rules: usize,
        lists: usize,
        most: Option<f64>,
    ) -> Self {
        Case {
            id,
            is_v6,
            rules,
            lists,
            most,
        }
    }

    fn name(&self) -> String {
        let family = if self.is_v6 { "IPv6" } else { "IPv4" };
        let lists = match self.lists {
            1 => String::new(),
            n => format!(", {n} lists mixed"),
        };
        format!("{} rules, {family}{lists}", self.rules)
    }

    /// The ratio to the peer, and the cycles if some are aimed at.
    fn measure<F: Family<KEY>, const KEY: usize>(
        &self,
        eal: &Eal,
        rounds: usize,
    ) -> Result<Vec<Entry>> {
        let lists = lists(self.is_v6, self.rules, self.lists);
        let packets = Packets::new(self.is_v6, &lists, F::key);
        let own = |list: &Vec<Rule>| {
            let rules: Vec<_> = list.iter().map(Rule::own).collect();
            Classifier::new(&rules)
        };
        let classifiers = lists.iter().map(own).collect::<Result<Vec<_>, _>>()?;
        let mut peer = Peer::new::<F>(eal, &lists)?;
        let mut samples = Samples::default();
        for _ in 0..rounds {
            let cycles = packets.each_burst(|which, keys, found| {
                for ((found, key), list) in found.iter_mut().zip(keys).zip(which) {
                    let first = F::first_match(&classifiers[usize::from(*list)], key);
                    *found = first.map_or(0, |place| place + 1);
                }
            });
            samples.0.push(cycles.context("our classifier")?);
            peer.round(&packets)?;
        }
        let best = peer.best()?;
        let name = format!("{} / rte_acl, {}", self.name(), best.name());
        let entry = Entry::new(self.id, name, "cycles", &samples);
        let ratio = entry.ratio_at_most("rte_acl", &best.samples, 1.0);
        let cycles = |most| {
            let id = format!("{}-cycles", self.id);
            Entry::new(&id, self.name(), "cycles", &samples).at_most(most)
        };
        Ok([ratio].into_iter().chain(self.most.map(cycles)).collect())
    }
}

/// Keys, the lists that they are searched in, and the numbers of the rules that a plain search finds, counted from 1.
struct Packets<const KEY: usize> {
    keys: Vec<[u8; KEY]>,
    lists: Vec<u8>,
    expected: Vec<u32>,
}

impl<const KEY: usize> Packets<KEY> {
    fn new(is_v6: bool, lists: &[Vec<Rule>], key: fn(&Tuple) -> [u8; KEY]) -> Self {
        let of_list = |(number, list): (usize, &Vec<Rule>)| {
            let traffic = traffic(is_v6, list, PACKETS / lists.len());
            traffic
                .into_iter()
                .map(move |(tuple, place)| (key(&tuple), number as u8, place as u32 + 1))
        };
        let mut all: Vec<_> = lists.iter().enumerate().flat_map(of_list).collect();
        all.shuffle(&mut SmallRng::seed_from_u64(9));
        Packets {
            keys: all.iter().map(|(key, _, _)| *key).collect(),
            lists: all.iter().map(|(_, list, _)| *list).collect(),
            expected: all.iter().map(|(_, _, rule)| *rule).collect(),
        }
    }

    /// Median cycles a packet over bursts, whose keys are in the first cache. Fails if a search finds something else than it should.
    fn each_burst(
        &self,
        mut find: impl FnMut(&[u8; BURST], &[[u8; KEY]; BURST], &mut [u32; BURST]),
    ) -> Result<f64> {
        let mut samples = Samples::default();
        let (mut which, mut keys) = ([0; BURST], [[0; KEY]; BURST]);
        for _ in 0..PASSES {
            let bursts = self.keys.chunks_exact(BURST);
            let bursts = bursts.zip(self.lists.chunks_exact(BURST));
            for ((own, lists), expected) in bursts.zip(self.expected.chunks_exact(BURST)) {
                keys.copy_from_slice(own);
                which.copy_from_slice(lists);
                let mut found = [0; BURST];
                let begin = tsc();
                find(&which, &keys, &mut found);
                samples.0.push((tsc() - begin) as f64 / BURST as f64);
                ensure!(found == expected, "a rule is not the first that matches");
            }
        }
        Ok(samples.median())
    }
}

/// A form of `rte_acl`, how it is called, and what that costs.
struct Contender {
    form: AclForm,
    calls: AclCalls,
    samples: Samples,
}

impl Contender {
    fn name(&self) -> String {
        let form = match self.form {
            AclForm::Scalar => "scalar",
            AclForm::Sse => "SSE",
            AclForm::Avx2 => "AVX2",
            AclForm::Avx512x16 => "AVX-512 x16",
            AclForm::Avx512x32 => "AVX-512 x32",
        };
        match self.calls {
            AclCalls::Each => format!("{form}, a call for each packet"),
            AclCalls::Parts => form.into(),
        }
    }
}

/// `rte_acl` in every form and way.
struct Peer<const KEY: usize> {
    lists: AclLists<KEY>,
    is_single: bool,
    contenders: Vec<Contender>,
}

impl<const KEY: usize> Peer<KEY> {
    fn new<F: Family<KEY>>(eal: &Eal, lists: &[Vec<Rule>]) -> Result<Self> {
        let ways: &[AclCalls] = match lists.len() {
            1 => &[AclCalls::Parts],
            _ => &[AclCalls::Parts, AclCalls::Each],
        };
        let forms = AclForm::available(eal)?.into_iter();
        let all = forms.flat_map(|form| ways.iter().map(move |calls| (form, *calls)));
        let contender = |(form, calls)| Contender {
            form,
            calls,
            samples: Samples::default(),
        };
        let list = |(number, list): (usize, &Vec<Rule>)| {
            let name = format!("list{number}");
            F::peer(eal, &name, &peers(list))
        };
        let is_single = lists.len() == 1;
        let lists = lists.iter().enumerate().map(list);
        Ok(Peer {
            lists: AclLists::new(lists.collect::<Result<_, _>>()?)?,
            is_single,
            contenders: all.map(contender).collect(),
        })
    }

    fn round(&mut self, packets: &Packets<KEY>) -> Result<()> {
        for contender in &mut self.contenders {
            self.lists.choose(contender.form)?;
            let lists = &self.lists;
            let cycles = match self.is_single {
                true => packets.each_burst(|_, keys, found| lists.first().find(keys, found)),
                false => packets.each_burst(|which, keys, found| {
                    lists.find(contender.calls, which, keys, found);
                }),
            };
            let cycles = cycles.with_context(|| contender.name())?;
            contender.samples.0.push(cycles);
        }
        Ok(())
    }

    fn best(self) -> Result<Contender> {
        let all = self.contenders.into_iter();
        let best = all.min_by(|a, b| a.samples.median().total_cmp(&b.samples.median()));
        best.context("no form of rte_acl is available")
    }
}

/// The list as `rte_acl` has it.
pub fn peers(list: &[Rule]) -> Vec<AclRule> {
    list.iter().map(Rule::peer).collect()
}

/// The form that searches this list of IPv4 fastest.
pub fn fastest(eal: &Eal, list: &[Rule]) -> Result<AclForm> {
    let lists = [list.to_vec()];
    let packets = Packets::new(false, &lists, V4::key);
    let mut peer = Peer::new::<V4>(eal, &lists)?;
    peer.round(&packets)?;
    Ok(peer.best()?.form)
}

#[inline(always)]
fn long(octets: &[u8], at: usize) -> u64 {
    u64::from(word(octets, at)) << 32 | u64::from(word(octets, at + 4))
}

/// How much of the upper-layer header our classifier may ask for. Keys end behind the ports; no rule of these asks for flags.
fn upper(protocol: u8) -> Upper {
    match protocol {
        6 => Upper::Flags,
        17 => Upper::Ports,
        _ => Upper::Unread,
    }
}

#[inline(always)]
fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

impl Family<V4_KEY> for V4 {
    fn key(tuple: &Tuple) -> [u8; V4_KEY] {
        tuple.key_v4()
    }

    #[inline(always)]
    fn first_match(classifier: &Classifier, ip: &[u8; V4_KEY]) -> Option<u32> {
        let ports = word(ip, 20);
        classifier.first_match_v4(&Packet4 {
            source: word(ip, 12),
            destination: word(ip, 16),
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            protocol: ip[9],
            upper: upper(ip[9]),
            ..Packet4::default()
        })
    }

    fn peer(eal: &Eal, name: &str, rules: &[AclRule]) -> Result<Acl<V4_KEY>, Error> {
        AclV4::new(eal, name, rules)
    }
}

impl Family<V6_KEY> for V6 {
    fn key(tuple: &Tuple) -> [u8; V6_KEY] {
        tuple.key_v6()
    }

    #[inline(always)]
    fn first_match(classifier: &Classifier, ip: &[u8; V6_KEY]) -> Option<u32> {
        let address = |at| u128::from(long(ip, at)) << 64 | u128::from(long(ip, at + 8));
        let ports = word(ip, 40);
        classifier.first_match_v6(&Packet6 {
            source: address(8),
            destination: address(24),
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            protocol: ip[6],
            upper: upper(ip[6]),
            ..Packet6::default()
        })
    }

    fn peer(eal: &Eal, name: &str, rules: &[AclRule]) -> Result<Acl<V6_KEY>, Error> {
        AclV6::new(eal, name, rules)
    }
}
