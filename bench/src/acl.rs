//! Searches of access lists by DPDK's `rte_acl`, in every form that the machine has.
use crate::fib::each_burst;
use crate::report::{Entry, Samples};
use crate::rules::{Rule, Tuple, rules, traffic};
use anyhow::{Context, Result};
use dpdk::peers::{Acl, AclForm, AclRule, AclV4, AclV6, allow_wide_vectors};
use dpdk::{Eal, tsc};

/// Rules of the lists: Intel's reference pipeline has 150, netElastic's templates 4,000.
pub const LISTS: [usize; 2] = [150, 4000];
/// Packets that are looked up.
const PACKETS: usize = 1 << 16;

/// All that is measured of access lists.
pub fn measure(eal: &Eal, rounds: usize) -> Result<Vec<Entry>> {
    allow_wide_vectors(eal)?;
    let mut entries = Vec::new();
    for n in LISTS {
        let list = rules(false, n);
        let acl = AclV4::new(eal, "v4", &peers(&list))?;
        let packets = keys(false, &list, Tuple::key_v4);
        let forms = each_form(eal, acl, &packets, rounds)?;
        entries.extend(entries_of("v4", "IPv4", n, forms)?);
        let list = rules(true, n);
        let acl = AclV6::new(eal, "v6", &peers(&list))?;
        let packets = keys(true, &list, Tuple::key_v6);
        let forms = each_form(eal, acl, &packets, rounds)?;
        entries.extend(entries_of("v6", "IPv6", n, forms)?);
    }
    Ok(entries)
}

/// The list as `rte_acl` has it.
pub fn peers(list: &[Rule]) -> Vec<AclRule> {
    list.iter().map(Rule::peer).collect()
}

/// The form that searches this list of IPv4 fastest.
pub fn fastest(eal: &Eal, list: &[Rule]) -> Result<AclForm> {
    let acl = AclV4::new(eal, "fastest", &peers(list))?;
    let packets = keys(false, list, Tuple::key_v4);
    let (form, _) = best(each_form(eal, acl, &packets, 1)?)?;
    Ok(form)
}

/// Keys of the list's traffic, and what `rte_acl` has to find.
fn keys<K>(is_v6: bool, list: &[Rule], key: fn(&Tuple) -> K) -> Vec<(K, u32)> {
    let traffic = traffic(is_v6, list, PACKETS).into_iter();
    let keys = traffic.map(|(tuple, place)| (key(&tuple), place as u32 + 1));
    keys.collect()
}

/// Cycles a search of each form, in turns.
fn each_form<const KEY: usize>(
    eal: &Eal,
    mut acl: Acl<KEY>,
    packets: &[([u8; KEY], u32)],
    rounds: usize,
) -> Result<Vec<(AclForm, Samples)>> {
    let available = AclForm::available(eal)?.into_iter();
    let mut forms: Vec<_> = available.map(|form| (form, Samples::default())).collect();
    for _ in 0..rounds {
        for (form, samples) in &mut forms {
            acl.choose(*form)?;
            let cycles = each_burst(packets, |keys, found| {
                let begin = tsc();
                acl.find(keys, found);
                tsc() - begin
            });
            samples.0.push(cycles.with_context(|| format!("{form:?}"))?);
        }
    }
    Ok(forms)
}

fn best(forms: Vec<(AclForm, Samples)>) -> Result<(AclForm, Samples)> {
    let forms = forms.into_iter();
    let best = forms.min_by(|(_, a), (_, b)| a.median().total_cmp(&b.median()));
    best.context("no form of rte_acl is available")
}

/// One for each form, and one for the best of them.
fn entries_of(
    id: &str,
    family: &str,
    n: usize,
    forms: Vec<(AclForm, Samples)>,
) -> Result<Vec<Entry>> {
    let entry = |end: &str, form: AclForm, what: &str, samples: &Samples| {
        let id = format!("acl-{id}-{n}-peer{end}");
        let name = format!("rte_acl, {family}, {n} rules, {}{what}", word(form));
        Entry::new(&id, name, "cycles", samples)
    };
    let of_form = |(form, samples): &(AclForm, Samples)| {
        let end = format!("-{form:?}").to_lowercase();
        entry(&end, *form, "", samples)
    };
    let mut entries: Vec<_> = forms.iter().map(of_form).collect();
    let (form, samples) = best(forms)?;
    entries.push(entry("", form, ": the best", &samples));
    Ok(entries)
}

fn word(form: AclForm) -> &'static str {
    match form {
        AclForm::Scalar => "scalar",
        AclForm::Sse => "SSE",
        AclForm::Avx2 => "AVX2",
        AclForm::Avx512x16 => "AVX-512 x16",
        AclForm::Avx512x32 => "AVX-512 x32",
    }
}
