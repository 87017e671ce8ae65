//! Reads rules by what they say.
use super::facts::Facts;
use super::rules::{Rejection, RuleSet};

pub(super) fn facts(rules: &RuleSet) -> Result<Facts, Rejection> {
    let _ = rules;
    Err(Rejection::of(
        wire::pfcp::Cause::SERVICE_NOT_SUPPORTED,
        wire::pfcp::ie::PDI,
    ))
}
