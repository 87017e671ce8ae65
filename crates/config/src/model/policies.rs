//! What happens to subscribers' packets: ACLs, and policies that are made of them.

use crate::values::AclRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of ACLs.
pub const MOST_ACLS: usize = 256;
/// Maximum number of rules of an ACL.
pub const MOST_ACL_RULES: usize = 4_000;
/// Maximum number of rules of all ACLs of a policy.
pub const MOST_POLICY_RULES: usize = 8_000;

/// Access control list. Its rules are tried in the order of their numbers, and the first one that matches decides. A change applies to all
/// packets at once: no packet is treated by a mixture of the old and the new rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Acl {
    /// Rules, at most 4,000. Each is written as RADIUS and PFCP write filters (IPFilterRule, RFC 6733 §4.3.1):
    /// `permit|deny PROTOCOL from SOURCE [PORTS] to DESTINATION [PORTS] [OPTIONS]`. How it is written in full: docs/how-to/policies.md.
    #[schemars(
        with = "BTreeMap<String, AclRule>",
        extend("x-key" = "the rule's number, 1 to 4,294,967,295; rules with lower numbers come first", "x-key-format" = "rule-number")
    )]
    pub rules: BTreeMap<u32, AclRule>,
    /// Whether packets and octets are counted for each rule (`show acl`). Costs a memory access for each packet.
    pub count: bool,
}

/// Policy of the packets of one direction. Subscriber profiles, users and RADIUS name it (`policy-up`, `policy-down`, Filter-Id). A change
/// reaches online sessions at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficPolicy {
    /// ACLs, in the order in which they are tried: at most 8,000 rules together. Default: every packet passes.
    #[schemars(extend("x-reference" = "/acls"))]
    pub acls: Vec<String>,
    /// What happens to packets that no rule of `acls` matches.
    pub unmatched: Unmatched,
    /// What happens to packets whose ports the gateway does not see, because their options or extension headers reach beyond the first 96
    /// octets of the frame.
    pub deep_headers: DeepHeaders,
}

/// What happens to packets that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unmatched {
    /// They are dropped.
    #[default]
    Deny,
    /// They pass.
    Permit,
}

/// What happens to packets with long chains of extension headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeepHeaders {
    /// They are dropped.
    #[default]
    Deny,
    /// Rules without ports, flags and types decide.
    Match,
}
