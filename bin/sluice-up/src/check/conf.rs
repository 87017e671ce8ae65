//! What a check is told of the gateway.

use config::model::{Ipv4Options, PrioritySource, SourceCheck};
use config::{Document, Fault, SvlanSet};
use dataplane::{
    Discipline, HoldDown, Levels, Management, MeterSettings, Overhead, PacketSettings,
    PolicerSettings, PolicyClass, PolicyRules, PuntLimits, PuntRate, QueueProfile, QueueRules,
    QueueSettings, Rate as BitRate, SampleRate, Segment, SegmentRates,
};
use ipnet::{IpNet, Ipv6Net};
use policy::{Direction, FilterRules, TrafficPolicies};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use userplane::configure::priority_source;
use userplane::policies::{PolicyKey, rules_behind};
use wire::eth::{MacAddr, TPID_8021AD, TPID_8021Q, Tag, Tags};

/// The gateway: what the control thread would tell the data plane.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Conf {
    /// The network instances, by name.
    #[serde(default = "instances")]
    pub network_instances: Vec<String>,
    /// The ports, by name.
    pub ports: BTreeMap<String, Port>,
    /// What is forwarded of packets with IPv4 options.
    #[serde(default)]
    pub ipv4_options: Ipv4Options,
    /// The port by which packets come whose interface is not named as a port is.
    #[serde(default)]
    pub input: Option<String>,
    /// Neighbours on core ports, by name.
    #[serde(default)]
    pub adjacencies: BTreeMap<String, Adjacency>,
    /// Adjacencies that share the flows to where they lead, by name.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// Policies of the packets of a direction, by name.
    #[serde(default)]
    pub policies: BTreeMap<String, Policy>,
    /// The subscribers' sessions, by name.
    #[serde(default)]
    pub sessions: BTreeMap<String, Session>,
    /// Of each network instance where prefixes lead. Sessions bring their host routes with them.
    #[serde(default)]
    pub routes: BTreeMap<String, BTreeMap<IpNet, Destination>>,
    /// Packet buffers. Half of them are for packets that arrive.
    #[serde(default = "buffers")]
    pub buffers: u32,
    /// Workers: 1, 2, 4, 8 or 16. A session is that one's which its PPPoE session id leaves when it is divided by them.
    #[serde(default = "one")]
    pub workers: u16,
    /// Packets that may wait on their way from one worker to another.
    #[serde(default = "queue")]
    pub hand_over_queue: u32,
    /// How much may be punted; what is not said is as in the user plane.
    #[serde(default)]
    pub punts: Punts,
}

/// A port.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Port {
    role: PortRole,
    /// The gateway's address there; of an access port, towards its sessions that do not say another.
    #[serde(default = "mac")]
    pub mac: MacAddr,
    /// Packets that may wait to be sent, and that may come at once.
    #[serde(default = "queue")]
    pub queue: u32,
    /// The queues of the port, one for each of the first workers; packets come by that of worker 0.
    #[serde(default = "one")]
    pub queues: u16,
    /// Rate at which packets leave by it, in kbit/s.
    #[serde(default)]
    pub egress_rate: Option<u64>,
    /// It was there, and is gone before the first packet comes.
    #[serde(default)]
    pub removed: bool,
    /// Access: its segments; without any it is one of all VLANs.
    #[serde(default)]
    pub segments: BTreeMap<String, AccessSegment>,
    /// Core: the instance of what it carries without a tag.
    #[serde(default = "default_instance")]
    pub network_instance: String,
    /// Core: the largest IP packet.
    #[serde(default = "port_mtu")]
    pub mtu: u16,
    /// Core: how the sources of what comes without a tag are checked.
    #[serde(default)]
    pub source_check: SourceCheck,
    /// Core: its subinterfaces, by name.
    #[serde(default)]
    pub subinterfaces: BTreeMap<String, Subinterface>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PortRole {
    Access,
    Core,
}

/// An access segment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AccessSegment {
    s_vlans: SvlanSet,
    /// Rate at which packets leave to its sessions whose policies have queues, in kbit/s.
    #[serde(default)]
    egress_rate: Option<u64>,
}

/// A subinterface of a core port.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Subinterface {
    /// Its VLAN.
    pub vlan_id: u16,
    /// The instance of what it carries.
    #[serde(default = "default_instance")]
    pub network_instance: String,
    /// The largest IP packet.
    #[serde(default = "port_mtu")]
    pub mtu: u16,
    /// How the sources of what comes are checked.
    #[serde(default)]
    pub source_check: SourceCheck,
    /// Where the priority of its tags comes from.
    #[serde(default)]
    pub priority_source: PrioritySource,
}

/// A neighbour.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Adjacency {
    /// The port or subinterface.
    pub port: String,
    /// Its address; without one it is not known yet.
    #[serde(default)]
    pub mac: Option<MacAddr>,
}

/// A session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Session {
    /// The access port.
    pub port: String,
    /// Its VLAN tags, outer first: `VID` or `TPID:VID`.
    #[serde(default)]
    tags: Vec<String>,
    /// Priority in the tags of what is sent to it, 0 to 7.
    #[serde(default)]
    vlan_priority: u8,
    /// Rates from and to the subscriber above which packets are dropped, in kbit/s.
    #[serde(default)]
    rate_up: Option<BitRate>,
    #[serde(default)]
    rate_down: Option<BitRate>,
    /// Number of the subscriber, whose sessions together have these rates.
    #[serde(default)]
    pub subscriber: u64,
    #[serde(default)]
    subscriber_rate_up: Option<BitRate>,
    #[serde(default)]
    subscriber_rate_down: Option<BitRate>,
    /// Where the priority in the tags of IP packets comes from.
    #[serde(default)]
    priority_source: PrioritySource,
    /// Policies of what comes from and goes to the subscriber. One that is not among `policies` is not known (yet).
    #[serde(default)]
    pub policy_up: Option<String>,
    #[serde(default)]
    pub policy_down: Option<String>,
    /// Rules of the subscriber, as NAS-Filter-Rule has them: they come before those of the policies.
    #[serde(default)]
    filter_rules: Vec<String>,
    /// The subscriber's address.
    pub mac: MacAddr,
    /// The gateway's address towards it, if not that of the port.
    #[serde(default)]
    pub gateway_mac: Option<MacAddr>,
    /// The PPPoE session id.
    pub pppoe_session_id: u16,
    /// The network instance.
    #[serde(default = "default_instance")]
    pub network_instance: String,
    /// The largest IP packet that the subscriber takes.
    #[serde(default = "session_mtu")]
    pub mtu: u16,
    /// The IPv4 address.
    #[serde(default)]
    pub ipv4: Option<Ipv4Addr>,
    /// The IPv6 prefix, a /64.
    #[serde(default)]
    pub ipv6: Option<Ipv6Net>,
    /// What else it may send from. `routes` say that it is behind the session.
    #[serde(default)]
    pub routed: Vec<IpNet>,
    /// Copies of its packets are punted.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// It was there, and is gone before the first packet comes.
    #[serde(default)]
    pub removed: bool,
    /// It goes so many milliseconds after the first packet, if packets wait then.
    #[serde(default)]
    pub ends_after: Option<u64>,
}

/// A policy of the packets of a direction.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policy {
    /// Rules, the first one that matches decides.
    rules: Vec<String>,
    /// Packets pass that no rule matches.
    #[serde(default)]
    unmatched_pass: bool,
    /// Packets are matched whose transport header is not seen.
    #[serde(default)]
    matches_undetermined: bool,
    /// Classes of what passes the rules, by name.
    #[serde(default)]
    classes: BTreeMap<String, Class>,
    /// Code point of what neither a rule nor a class marks.
    #[serde(default)]
    mark: Option<String>,
    /// Packets wait in queues for the session's rate, which all have these settings.
    #[serde(default)]
    queues: Option<Queues>,
    /// Policer of what passes the rules.
    #[serde(default)]
    policer: Option<Policer>,
}

/// Policer of two rates (RFC 2698), in kbit/s, with bursts in octets.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Policer {
    committed_rate: BitRate,
    committed_burst: u32,
    peak_rate: BitRate,
    peak_burst: u32,
    /// Packets come with the colour of their drop precedence.
    #[serde(default)]
    colour_aware: bool,
    /// Code point of yellow packets.
    #[serde(default)]
    yellow_mark: Option<String>,
}

impl Policer {
    fn settings(&self) -> Result<PolicerSettings, String> {
        Ok(PolicerSettings {
            meter: MeterSettings::TwoRate {
                pir: self.peak_rate,
                pbs: self.peak_burst,
                cir: self.committed_rate,
                cbs: self.committed_burst,
            },
            overhead: Overhead::IP,
            is_colour_aware: self.colour_aware,
            yellow_mark: self.yellow_mark.as_deref().map(dscp).transpose()?,
        })
    }
}

/// Queues of a policy.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Queues {
    /// Octets of frames that wait at most.
    limit: u32,
    /// What keeps frames from waiting for long, if anything does.
    #[serde(default)]
    aqm: Option<Aqm>,
    /// Position of the class whose packets come first, from 1; 0: none has.
    #[serde(default)]
    strict: usize,
}

impl Queues {
    /// Of packets in no class, and of so many classes.
    fn rules(self, classes: usize) -> QueueRules {
        let management = self.aqm.map_or(Management::TailDrop, Aqm::management);
        let class = |at| QueueSettings {
            discipline: match at == self.strict && at > 0 {
                true => Discipline::Strict,
                false => Discipline::Weighted(1),
            },
            rate: None,
            limit: self.limit,
            longest_wait: None,
            management,
        };
        QueueRules {
            profile: QueueProfile {
                classes: (0..=classes).map(class).collect(),
                ..QueueProfile::default()
            },
            weight: 1,
        }
    }
}

/// Active queue management, with its target and interval in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Aqm {
    Codel([u64; 2]),
    FqCodel([u64; 2]),
    Dualpi2(u64),
}

impl Aqm {
    fn management(self) -> Management {
        match self {
            Aqm::Codel(times) => {
                let [target, interval] = times.map(Duration::from_millis);
                Management::CoDel { target, interval }
            }
            Aqm::FqCodel(times) => {
                let [target, interval] = times.map(Duration::from_millis);
                Management::FqCoDel { target, interval }
            }
            Aqm::Dualpi2(target) => Management::DualPi2 {
                target: Duration::from_millis(target),
            },
        }
    }
}

/// A class of packets.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Class {
    /// Code points of the packets in it that no rule puts into a class.
    #[serde(default)]
    dscp: Vec<String>,
    /// Priorities of the packets in it that neither a rule nor their code point puts into a class, 0 to 7.
    #[serde(default)]
    vlan_priority: Vec<u8>,
    /// Rate of the class, in kbit/s; 15,000 octets may come at once.
    #[serde(default)]
    rate: Option<BitRate>,
    /// Code point of its packets.
    #[serde(default)]
    mark: Option<String>,
}

impl Class {
    fn of(&self, name: &str) -> Result<PolicyClass, String> {
        let dscps = self.dscp.iter().map(|text| dscp(text));
        let dscps = dscps.collect::<Result<Vec<u8>, _>>()?;
        Ok(PolicyClass {
            name: name.into(),
            dscps: dscps.iter().fold(0, |set, dscp| set | 1 << dscp),
            priorities: priorities(&self.vlan_priority)?,
            policer: self.rate.map(|rate| PolicerSettings {
                meter: MeterSettings::SingleRate {
                    cir: rate,
                    cbs: 15_000,
                    ebs: 0,
                },
                overhead: Overhead::IP,
                is_colour_aware: false,
                yellow_mark: None,
            }),
            mark: self.mark.as_deref().map(dscp).transpose()?,
        })
    }
}

fn priorities(numbers: &[u8]) -> Result<u8, String> {
    numbers.iter().try_fold(0, |set, priority| match priority {
        0..8 => Ok(set | 1 << priority),
        _ => Err(format!("{priority} is no priority")),
    })
}

fn dscp(text: &str) -> Result<u8, String> {
    acl::dscp_value(text).ok_or_else(|| format!("`{text}` is no code point"))
}

impl Policy {
    /// What it is compiled from.
    pub fn rules(&self) -> Result<PolicyRules, String> {
        let rule = |text: &String| {
            let rule = text.parse();
            rule.map_err(|why: acl::RuleError| format!("{text}: {why}"))
        };
        let classes = self.classes.iter().map(|(name, class)| class.of(name));
        Ok(PolicyRules {
            classes: classes.collect::<Result<_, _>>()?,
            mark: self.mark.as_deref().map(dscp).transpose()?,
            rules: self.rules.iter().map(rule).collect::<Result<_, _>>()?,
            unmatched_pass: self.unmatched_pass,
            denies_undetermined: !self.matches_undetermined,
            queues: self.queues.map(|queues| queues.rules(self.classes.len())),
            policer: self.policer.as_ref().map(Policer::settings).transpose()?,
            ..PolicyRules::default()
        })
    }
}

/// How many packets are copied.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sample {
    one_in: u32,
    per_second: u32,
}

impl From<Sample> for SampleRate {
    fn from(sample: Sample) -> Self {
        SampleRate {
            one_in: sample.one_in.max(1),
            per_second: sample.per_second,
        }
    }
}

/// Where a prefix leads.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum Destination {
    /// `adjacency NAME`
    Adjacency(String),
    /// `group NAME`
    Group(String),
    /// `session NAME`
    Session(String),
    /// `connected PORT`
    Connected(String),
    /// `local`
    Local,
    /// `discard`
    Discard,
}

impl TryFrom<String> for Destination {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["adjacency", name] => Destination::Adjacency(name.into()),
            ["group", name] => Destination::Group(name.into()),
            ["session", name] => Destination::Session(name.into()),
            ["connected", port] => Destination::Connected(port.into()),
            ["local"] => Destination::Local,
            ["discard"] => Destination::Discard,
            _ => {
                return Err(format!(
                    "`{text}` is no destination: expected `adjacency NAME`, `group NAME`, `session NAME`, `connected PORT`, `local` or `discard`"
                ));
            }
        })
    }
}

/// How much may be punted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Punts {
    per_session: Option<Rate>,
    hold_down: Option<Hold>,
    pub queue: Option<u32>,
    /// By the kinds' names.
    #[serde(flatten)]
    kinds: BTreeMap<String, Kind>,
}

/// What is said of a kind; without a level's rate it has none.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Kind {
    per_second: u32,
    burst: u32,
    mac: Option<u32>,
    line: Option<u32>,
    vlan: Option<u32>,
    port: Option<u32>,
}

/// Packets, and seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Hold {
    after: u32,
    first: u64,
    longest: u64,
}

impl From<Hold> for HoldDown {
    fn from(hold: Hold) -> Self {
        HoldDown {
            after: hold.after,
            first: Duration::from_secs(hold.first),
            longest: Duration::from_secs(hold.longest),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Rate {
    per_second: u32,
    burst: u32,
}

impl From<Rate> for PuntRate {
    fn from(Rate { per_second, burst }: Rate) -> Self {
        PuntRate { per_second, burst }
    }
}

impl Punts {
    /// With the user plane's own where nothing is said.
    pub fn limits(&self) -> Result<PuntLimits, String> {
        let mut limits = PuntLimits::default();
        limits.per_session = self.per_session.map_or(limits.per_session, PuntRate::from);
        limits.hold_down = self.hold_down.map_or(limits.hold_down, HoldDown::from);
        self.kinds.iter().try_fold(limits, |limits, (name, kind)| {
            let Kind {
                per_second,
                burst,
                mac,
                line,
                vlan,
                port,
            } = *kind;
            let levels = Levels {
                mac,
                line,
                vlan,
                port,
            };
            let with = limits.with(name, PuntRate { per_second, burst });
            let with = with.and_then(|limits| limits.with_levels(name, levels));
            with.ok_or_else(|| format!("punts: there is no kind {name}"))
        })
    }
}

fn instances() -> Vec<String> {
    vec![default_instance()]
}
fn default_instance() -> String {
    "default".into()
}
fn mac() -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0xfe])
}
fn buffers() -> u32 {
    8191
}

fn one() -> u16 {
    1
}
fn queue() -> u32 {
    256
}
fn port_mtu() -> u16 {
    1500
}
fn session_mtu() -> u16 {
    1492
}

impl Port {
    /// Does it lead to subscribers?
    pub fn is_access(&self) -> bool {
        self.role == PortRole::Access
    }

    /// Its segments, as the data plane knows them.
    pub fn segments(&self) -> Vec<Segment> {
        if self.segments.is_empty() {
            return Segment::whole_port();
        }
        let segment = |(id, segment): (u16, &AccessSegment)| {
            let vlans = segment.s_vlans.members().map(|vlan| vlan.unwrap_or(0));
            let mut vlans: Vec<_> = vlans.map(|vlan| vlan..=vlan).collect();
            vlans.dedup(); // untagged frames count as VLAN 0
            Segment { id, vlans }
        };
        (0..).zip(self.segments.values()).map(segment).collect()
    }

    /// The rates of its segments.
    pub fn segment_rates(&self) -> Vec<SegmentRates> {
        let rates = self.segments().into_iter().zip(self.segments.values());
        let rates = rates.map(|(Segment { id, vlans }, segment)| SegmentRates {
            id,
            vlans,
            rate: segment.egress_rate.and_then(BitRate::new),
            vlan_rate: None,
        });
        rates.filter(|rates| rates.rate.is_some()).collect()
    }
}

impl Session {
    /// Its tags.
    pub fn tags(&self) -> Result<Tags, String> {
        let mut tags = self.tags.iter().map(|text| tag(text));
        let all = Tags {
            outer: tags.next().transpose()?,
            inner: tags.next().transpose()?,
        };
        match tags.next() {
            None => Ok(all),
            Some(_) => Err("more than two tags".into()),
        }
    }

    /// What the packets of a direction pass, if the subscriber has rules of its own for it.
    pub fn own_policy(
        &self,
        conf: &Conf,
        direction: Direction,
    ) -> Result<Option<PolicyRules>, String> {
        let named = TrafficPolicies {
            filter_rules: FilterRules::new(&self.filter_rules.join("\0")),
            ..TrafficPolicies::default()
        };
        let key = PolicyKey::of(&named, direction).map_err(|why| why.to_string())?;
        let Some(own) = key.and_then(|key| key.rules) else {
            return Ok(None);
        };
        let name = match direction {
            Direction::Up => self.policy_up.as_ref(),
            Direction::Down => self.policy_down.as_ref(),
        };
        let policy = name.and_then(|name| conf.policies.get(name));
        let rules = policy.map(Policy::rules).transpose()?;
        Ok(rules_behind(&own, rules.unwrap_or_default()))
    }

    /// How its packets are treated.
    pub fn packets(&self) -> Result<PacketSettings, String> {
        let packets = PacketSettings {
            vlan_priority: self.vlan_priority,
            rate_up: self.rate_up,
            rate_down: self.rate_down,
            subscriber_rate_up: self.subscriber_rate_up,
            subscriber_rate_down: self.subscriber_rate_down,
            priority_source: priority_source(self.priority_source),
            ..PacketSettings::with_mtu(self.mtu)
        };
        match packets.check() {
            Ok(()) => Ok(packets),
            Err(setting) => Err(format!("no packet can have this {}", setting.label)),
        }
    }
}

fn tag(text: &str) -> Result<Tag, String> {
    let (tpid, vid) = text.split_once(':').unwrap_or(("8100", text));
    let tpid = u16::from_str_radix(tpid, 16).ok();
    let tpid = tpid.filter(|tpid| [TPID_8021Q, TPID_8021AD].contains(tpid));
    let vid = vid.parse().ok().filter(|vid| *vid <= 4095);
    match (tpid, vid) {
        (Some(tpid), Some(vid)) => Ok(Tag {
            tpid,
            ..Tag::new(vid)
        }),
        _ => Err(format!(
            "`{text}` is no VLAN tag: expected such as `100` or `88a8:100`"
        )),
    }
}

impl Document for Conf {
    fn check(&self) -> Result<(), Fault> {
        self.faults().map_err(Fault::of_document)
    }
}

impl Conf {
    /// Names that nothing has, and what no single value shows.
    fn faults(&self) -> Result<(), String> {
        let subinterfaces = self
            .ports
            .values()
            .flat_map(|port| port.subinterfaces.keys());
        let core = self.ports.iter().filter(|(_, port)| !port.is_access());
        let core: Vec<_> = core.map(|(name, _)| name).chain(subinterfaces).collect();
        let instance = |place: &str, name: &String| match self.network_instances.contains(name) {
            true => Ok(()),
            false => Err(format!("{place}: there is no network instance `{name}`")),
        };
        let on_core = |place: &str, name: &String| match core.contains(&name) {
            true => Ok(()),
            false => Err(format!(
                "{place}: there is no core port or subinterface `{name}`"
            )),
        };
        for (name, port) in &self.ports {
            let place = format!("ports {name}");
            match port.role {
                PortRole::Access if !port.subinterfaces.is_empty() => {
                    return Err(format!("{place}: subinterfaces are of core ports"));
                }
                PortRole::Core if !port.segments.is_empty() => {
                    return Err(format!("{place}: segments are of access ports"));
                }
                _ => instance(&place, &port.network_instance)?,
            }
            for (name, part) in &port.subinterfaces {
                instance(
                    &format!("{place} subinterfaces {name}"),
                    &part.network_instance,
                )?;
                if self.ports.contains_key(name) {
                    return Err(format!("{place}: a port has the name `{name}`, too"));
                }
            }
        }
        for (name, adjacency) in &self.adjacencies {
            on_core(&format!("adjacencies {name}"), &adjacency.port)?;
        }
        for (name, members) in &self.groups {
            let unknown = (members.iter()).find(|member| !self.adjacencies.contains_key(*member));
            if let Some(member) = unknown {
                return Err(format!("groups {name}: there is no adjacency `{member}`"));
            }
        }
        for (name, session) in &self.sessions {
            let place = format!("sessions {name}");
            if !self.ports.get(&session.port).is_some_and(Port::is_access) {
                return Err(format!(
                    "{place}: there is no access port `{}`",
                    session.port
                ));
            }
            instance(&place, &session.network_instance)?;
            session.tags().map_err(|why| format!("{place}: {why}"))?;
            session.packets().map_err(|why| format!("{place}: {why}"))?;
        }
        for (of, routes) in &self.routes {
            instance("routes", of)?;
            for (prefix, to) in routes {
                let place = format!("routes {of} {prefix}");
                let (kind, name, known) = match to {
                    Destination::Adjacency(name) => {
                        ("adjacency", name, self.adjacencies.contains_key(name))
                    }
                    Destination::Group(name) => ("group", name, self.groups.contains_key(name)),
                    Destination::Session(name) => {
                        ("session", name, self.sessions.contains_key(name))
                    }
                    Destination::Connected(port) => {
                        on_core(&place, port)?;
                        continue;
                    }
                    Destination::Local | Destination::Discard => continue,
                };
                if !known {
                    return Err(format!("{place}: there is no {kind} `{name}`"));
                }
            }
        }
        match &self.input {
            Some(port) if !self.ports.contains_key(port) => {
                Err(format!("input: there is no port `{port}`"))
            }
            _ => Ok(()),
        }
    }
}
