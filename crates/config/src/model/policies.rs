//! What happens to subscribers' packets: ACLs, and policies that are made of them.

use crate::values::AclRule;
pub use policy::MOST_CLASSES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// `permit|deny|redirect PROTOCOL from SOURCE [PORTS] to DESTINATION [PORTS] [OPTIONS]`. How it is written in full: docs/how-to/policies.md.
    #[schemars(
        with = "BTreeMap<String, AclRule>",
        extend("x-key" = "the rule's number, 1 to 4,294,967,295; rules with lower numbers come first", "x-key-format" = "rule-number")
    )]
    pub rules: BTreeMap<u32, AclRule>,
    /// Whether packets and octets are counted for each rule (`show acl`). Costs a memory access for each packet.
    pub count: bool,
}

/// ACLs by name. They are shared: all of them together can have a million rules.
pub type Acls = BTreeMap<String, Arc<Acl>>;

/// How shared ACLs are written: as if they were not shared.
pub(super) mod shared {
    use super::{Acl, Acls};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(acls: &Acls, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(acls.iter().map(|(name, acl)| (name, &**acl)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Acls, D::Error> {
        let acls = BTreeMap::<String, Acl>::deserialize(deserializer)?.into_iter();
        Ok(acls.map(|(name, acl)| (name, Arc::new(acl))).collect())
    }
}

/// Replaces ACLs by equal ones of another configuration. Comparing the two is quick from then on.
pub fn share_acls(acls: &mut Acls, others: &Acls) {
    for (name, acl) in acls {
        if let Some(other) = others.get(name)
            && other == acl
        {
            *acl = other.clone();
        }
    }
}

/// Policer: meters packets by a committed rate and a peak or excess rate. Green and yellow packets pass, red ones are dropped (`rate-exceeded-up`,
/// `rate-exceeded-down`). Each session has a meter of its own. A change reaches online sessions at once, without a burst.
/// Bursts have room for the largest packet (`max-mru` of the access profiles), as `overhead` charges it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policer {
    /// How colours are found.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Committed rate: packets within it are green. A smaller rate of the session (subscriber profile, user, RADIUS) takes its place, with
    /// `single-rate` also a larger one.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub committed_rate: u32,
    /// Octets that are green at once. Default: as many as come in 100 ms, at least 15,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_600, max = 1_000_000_000), extend("x-unit" = "octets"))]
    pub committed_burst: Option<u32>,
    /// `two-rate` alone, which needs it: rate of green and yellow packets together. The rate of the session takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub peak_rate: Option<u32>,
    /// `two-rate` alone: octets that are green or yellow at once. Default: as many as come at the peak rate in 100 ms, at least 15,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_600, max = 1_000_000_000), extend("x-unit" = "octets"))]
    pub peak_burst: Option<u32>,
    /// `two-rate-differentiated` alone, which needs it: rate of yellow packets beside the green ones. The rate of the session takes the place
    /// of both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub excess_rate: Option<u32>,
    /// `single-rate` and `two-rate-differentiated`: octets that are yellow at once. Default: as many as come at the excess rate (`single-rate`:
    /// the committed one) in 100 ms, at least 15,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_600, max = 1_000_000_000), extend("x-unit" = "octets"))]
    pub excess_burst: Option<u32>,
    /// What a packet is charged: its own octets, or what it takes on the access line.
    #[serde(default)]
    pub overhead: Overhead,
    /// Whether packets come with the colour of their drop precedence (RFC 2597): AFx2 is yellow, AFx3 is red. Otherwise all come green.
    #[serde(default)]
    pub colour_aware: bool,
    /// DSCP that yellow packets get, such as `af12`. Default: they keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "dscp", "x-example" = "af12"))]
    pub yellow_mark: Option<String>,
}

/// Class of the packets of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficClass {
    /// DSCPs of the packets in the class that no rule of an ACL puts into one (`class` in the rule). Default: rules alone put packets into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-format" = "dscp", "x-example" = "ef"))]
    pub dscp: Vec<String>,
    /// Priorities (IEEE 802.1p) of the packets in the class that neither a rule nor their DSCP puts into one. A packet has that of the VLAN tag (the
    /// outer one) with which it came to the gateway, and 0 without a tag. A packet from another subscriber has 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 0, max = 7)), extend("x-example" = "5"))]
    pub vlan_priority: Vec<u8>,
    /// Policer of the class (`class-exceeded-up`, `class-exceeded-down`), with a meter of its own in each session. What it lets pass must
    /// pass the policer of the policy, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/policers"))]
    pub policer: Option<String>,
    /// DSCP that packets of the class get, such as `ef`. Default: `mark` of the policy. A rule's `mark` takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "dscp", "x-example" = "ef"))]
    pub mark: Option<String>,
    /// Queue of the packets of the class to each subscriber, where `above-rate` is `wait`. Packets from a subscriber do not wait: its `rate`
    /// polices them (`class-exceeded-up`), if the class has no policer. Default: the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// Queue of packets to a subscriber. The rate of the session is divided among the queues that are not empty: strict ones first, the others
/// by weight. `show session` shows how long they are and what was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Queue {
    /// Whether its packets come before all those of queues that are not strict. Needs `rate`. While others wait as well, strict queues together
    /// leave them a ninth of the session's rate, which may be below `rate`.
    pub strict: bool,
    /// Share in what strict queues leave, beside the other queues of the subscriber.
    #[schemars(range(min = 1, max = 255))]
    pub weight: u8,
    /// Rate that its packets do not exceed. Default: that of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub rate: Option<u32>,
    /// Octets of frames that wait at most (`queue-full`); a single frame always may.
    #[schemars(range(min = 1_600, max = 100_000_000), extend("x-unit" = "octets"))]
    pub limit: u32,
    /// A packet that has waited for longer is dropped when its turn comes (`queue-delay`), since nobody needs it any more: 20,000 for calls.
    /// Default: none is. User planes of before know nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 10_000_000), extend("x-unit" = "us"))]
    pub longest_wait: Option<u32>,
    /// What keeps its packets from waiting for long. Packets whose senders understand marks (ECN, RFC 3168) are marked in place of being
    /// dropped (`queue-delay`). User planes of before have `codel` alone, and refuse another one.
    #[serde(skip_serializing_if = "Aqm::is_default")]
    pub aqm: Aqm,
    /// Delay that packets may have for long. Default: 5 ms, with `dualpi2` 15 ms for packets that are not of L4S. 0: packets are dropped only
    /// at the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000), extend("x-unit" = "ms"))]
    pub target_delay: Option<u16>,
}

/// Active queue management (RFC 7567).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aqm {
    /// While the delay is longer than it should be for 100 ms, a packet is dropped, and later more, so that senders send less (RFC 8289).
    Codel,
    /// The same for each flow (addresses, protocol, ports), with a queue of its own: flows have their turns, so that one with few packets does
    /// not wait for one with many (RFC 8290).
    #[default]
    FqCodel,
    /// L4S (RFC 9330): packets whose senders ask for it by ECT(1) have a queue of their own, are marked as soon as they wait, and hardly wait;
    /// the others get as much (RFC 9332).
    Dualpi2,
}

impl Aqm {
    fn is_default(&self) -> bool {
        *self == Aqm::default()
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            strict: false,
            weight: 1,
            rate: None,
            limit: 262_144,
            longest_wait: None,
            aqm: Aqm::default(),
            target_delay: None,
        }
    }
}

/// What happens to packets to a subscriber that are above the rate of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AboveRate {
    /// Policing: they are dropped (`rate-exceeded-down`).
    #[default]
    Drop,
    /// Shaping: they wait in queues, one for each class and one for packets in no class.
    Wait,
}

impl AboveRate {
    /// Whether packets are dropped, which user planes of before know as well.
    fn is_drop(&self) -> bool {
        *self == AboveRate::Drop
    }
}

/// Whether a weight is the default.
fn is_one(weight: &u16) -> bool {
    *weight == 1
}

/// How a policer finds colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// One rate, two bursts (srTCM, RFC 2697).
    SingleRate,
    /// A committed and a peak rate (trTCM, RFC 2698).
    #[default]
    TwoRate,
    /// A committed and an excess rate beside it (RFC 4115).
    TwoRateDifferentiated,
}

/// What a packet is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overhead {
    /// The octets of the IP packet.
    #[default]
    Ip,
    /// Those of the Ethernet frame with PPPoE and two tags, preamble and gap: 54 octets more, at least 84.
    Ethernet,
    /// Those of the ATM cells that carry the frame with PPPoE, LLC and AAL5 (RFC 2684): 53 for each 48.
    Atm,
    /// Those of the frame with PPPoE and two tags in PTM (VDSL2): 65 for each 64.
    Ptm,
}

/// Octets between Ethernet's header and the IP packet with PPPoE (RFC 2516 §4).
const PPPOE: u8 = 8;
/// Header, check sequence and two tags of an Ethernet frame, without preamble and gap.
const ETHERNET: u8 = 14 + 4 + 2 * 4;
/// LLC and padding in front of an Ethernet frame in AAL5, which goes without its check sequence (RFC 2684 §5.2).
const LLC: u8 = 10;

/// What packets are charged.
impl From<Overhead> for policy::Overhead {
    fn from(overhead: Overhead) -> Self {
        match overhead {
            Overhead::Ip => policy::Overhead::IP,
            Overhead::Ethernet => policy::Overhead::ethernet(2, PPPOE),
            Overhead::Atm => policy::Overhead::atm(LLC + 14 + PPPOE),
            Overhead::Ptm => policy::Overhead::ptm(ETHERNET + PPPOE),
        }
    }
}

/// Policy of the packets of one direction. Subscriber profiles, users and RADIUS name it (`policy-up`, `policy-down`, Filter-Id). A change
/// reaches online sessions at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficPolicy {
    /// ACLs, in the order in which they are tried: at most 8,000 rules together. Default: every packet passes.
    #[schemars(extend("x-reference" = "/acls"))]
    pub acls: Vec<String>,
    /// Policer of the packets that `acls` lets pass, of all classes. Default: the rate of the session alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reference" = "/policers"))]
    pub policer: Option<String>,
    /// Classes of the packets that `acls` lets pass, at most 7. A packet is in the class that the rule names, or else in that of its DSCP, or in
    /// none. Sessions count the packets of each class (`show session`). User planes of before know nothing of them, or of three at most.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "x-key" = "the class's name, as rules of ACLs name it",
        "x-key-format" = "class",
        "maxProperties" = MOST_CLASSES
    ))]
    pub classes: BTreeMap<String, TrafficClass>,
    /// DSCP that packets get which neither a rule nor their class marks: with `be`, what subscribers write there does not count. Default: they
    /// keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-format" = "dscp", "x-example" = "be"))]
    pub mark: Option<String>,
    /// Whether the rate of the session (`rate-down` of subscriber profile, user, RADIUS) polices or shapes packets to the subscriber. Those from
    /// the subscriber are always policed. Default: drop. User planes of before know nothing of queues.
    #[serde(skip_serializing_if = "AboveRate::is_drop")]
    pub above_rate: AboveRate,
    /// Queue of packets in no class to each subscriber, where `above-rate` is `wait`. Packets from a subscriber do not wait, and in no class they
    /// have the rate of the session alone. Default: the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Where `above-rate` is `wait`, what a packet takes of the rates of the session and of its classes: its own octets, or those on the access
    /// line. Default: ip.
    #[serde(skip_serializing_if = "Overhead::is_ip")]
    pub overhead: Overhead,
    /// Share of a session beside other sessions with queues where the rate of their port (`egress-rate`) is short. Default: 1.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: u16,
    /// Where rules with `redirect` lead subscribers: the gateway answers their HTTP requests with this address in the place of the server that
    /// was asked. It starts with `http://` or `https://`. User planes of before know nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), extend("x-format" = "portal", "x-example" = "https://portal.example/"))]
    pub portal: Option<String>,
    /// What happens to packets that no rule of `acls` matches.
    pub unmatched: Unmatched,
    /// What happens to packets whose transport header the gateway cannot see or trust: their options or extension headers reach beyond the
    /// first 96 octets of the frame, the packet ends in the header (RFC 1858 §3, RFC 7112), or it is the fragment of TCP that could
    /// overwrite the flags (RFC 1858 §4).
    pub undetermined_transport: UndeterminedTransport,
}

impl Overhead {
    /// Whether it is the default.
    fn is_ip(&self) -> bool {
        *self == Overhead::Ip
    }
}

impl Default for TrafficPolicy {
    fn default() -> Self {
        TrafficPolicy {
            acls: Vec::new(),
            policer: None,
            classes: BTreeMap::new(),
            mark: None,
            above_rate: AboveRate::default(),
            queue: None,
            overhead: Overhead::default(),
            weight: 1,
            portal: None,
            unmatched: Unmatched::default(),
            undetermined_transport: UndeterminedTransport::default(),
        }
    }
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

/// What happens to packets whose transport header is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UndeterminedTransport {
    /// They are dropped.
    #[default]
    Deny,
    /// Rules without ports, flags and types decide.
    Match,
}
