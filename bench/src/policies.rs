//! What sessions have beside what `whole` gives them: policies and rates.
use crate::layout::Layout;
use crate::rules::{Rule, rules};
use crate::world::World;
use anyhow::Result;
use dataplane::{
    CompiledPolicy, Controller, MeterSettings, Overhead, PacketSettings, PolicerSettings, Policies,
    PolicyClass, PolicyIndex, PolicyRules, Rate, SessionEntry,
};
use std::num::NonZeroU16;
use std::sync::Arc;

/// 100 Mb/s, and twice as much at most. What the bench sends is less, so that all packets are green.
const TWO_RATES: MeterSettings = MeterSettings::TwoRate {
    cir: Rate::kbps(100_000),
    cbs: 1 << 17,
    pir: Rate::kbps(200_000),
    pbs: 1 << 18,
};

/// Number of a policy, from 1 on.
pub fn number(n: usize) -> PolicyIndex {
    let n = u16::try_from(n).ok().and_then(NonZeroU16::new);
    PolicyIndex(n.expect("a policy's number"))
}

/// The policy of these rules, which drops what none matches. Without rules every packet passes.
pub fn of_rules(list: &[Rule]) -> Result<PolicyRules> {
    let rules = list.iter().map(|rule| rule.to_string().parse());
    Ok(PolicyRules {
        rules: rules.collect::<Result<_, _>>()?,
        unmatched_pass: list.is_empty(),
        denies_undetermined: !list.is_empty(),
        ..PolicyRules::default()
    })
}

/// The same, whose rules mark what they permit.
pub fn marking(list: &[Rule], mark: &str) -> Result<PolicyRules> {
    let text = |rule: &Rule| match rule.permits {
        true => format!("{rule} mark {mark}"),
        false => rule.to_string(),
    };
    let rules = list.iter().map(|rule| text(rule).parse());
    Ok(PolicyRules {
        rules: rules.collect::<Result<_, _>>()?,
        ..of_rules(list)?
    })
}

/// The same, whose rules put what they permit into one of three classes, which share the rules evenly. Each has a meter of two rates.
pub fn with_classes(list: &[Rule]) -> Result<PolicyRules> {
    let names = ["a", "b", "c"];
    let text = |(rule, class): (&Rule, &&str)| match rule.permits {
        true => format!("{rule} class {class}"),
        false => rule.to_string(),
    };
    let rules = list.iter().zip(names.iter().cycle());
    let classes = names.iter().map(|name| PolicyClass {
        name: (*name).into(),
        dscps: 0,
        priorities: 0,
        policer: Some(two_rates()),
        mark: None,
    });
    Ok(PolicyRules {
        rules: rules
            .map(|rule| text(rule).parse())
            .collect::<Result<_, _>>()?,
        classes: classes.collect(),
        ..of_rules(list)?
    })
}

/// The same with a meter of two rates (RFC 2698), which no packet exceeds.
pub fn with_two_rates(rules: PolicyRules) -> PolicyRules {
    PolicyRules {
        policer: Some(two_rates()),
        ..rules
    }
}

fn two_rates() -> PolicerSettings {
    PolicerSettings {
        meter: TWO_RATES,
        overhead: Overhead::IP,
        is_colour_aware: false,
        yellow_mark: None,
    }
}

/// Compiled for a controller's worker.
pub fn compiled(controller: &Controller, rules: &PolicyRules) -> Result<Arc<CompiledPolicy>> {
    Ok(Arc::new(controller.policy_compiler().compile(rules)?))
}

/// So many rules of each family. The last one permits every packet.
pub fn of_both_families(n: usize) -> Vec<Rule> {
    let mut list = rules(false, n);
    list.pop();
    list.extend(rules(true, n));
    list
}

/// Gives every session its policies and rates.
pub fn give(
    world: &mut World,
    of: impl Fn(u32, PacketSettings) -> (PacketSettings, Policies),
) -> Result<()> {
    for n in 0..world.sessions {
        world.settle()?;
        let entry = Layout::PLAIN.entry(n);
        let (packets, policies) = of(n, entry.packets);
        world.controller.set_session(SessionEntry {
            packets,
            policies,
            ..entry
        })?;
    }
    while world.step() > 0 {}
    world.settle()
}
