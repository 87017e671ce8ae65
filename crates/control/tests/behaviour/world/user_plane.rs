//! A user plane that only keeps rules.

use super::{CP, PORT, UP, at};
use core::time::Duration;
use pfcp::bng::{DecodedRules, RuleSet, SubscriberRules};
use pfcp::{Config, Features, Node, RequestId, Role};
use policy::{Bindings, PacketSettings, Setting, TrafficPolicies};
use std::collections::{BTreeMap, BTreeSet};
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{
    Cause, FSeid, KnownSettings, Lanes, Message, NodeId, ReportType, SessionEstablishmentRequest,
    SessionReportRequest, SluiceFeatures,
};

/// Workers of a user plane.
pub const WORKERS: u16 = 4;

/// What a user plane knows: rules by its own SEID.
pub struct UserPlane {
    pub(super) node: Node,
    takes_settings: bool,
    sessions: BTreeMap<u64, Held>,
    next_seid: u64,
    /// Sessions that were deleted without anybody hearing of it, which are told of when they are deleted again.
    departed: BTreeMap<u64, Held>,
    /// Sessions that the audit under way has named.
    named: BTreeSet<u64>,
    epoch: u32,
    /// The cause that establishments of subscribers' sessions are refused with.
    pub refuse: Option<Cause>,
    /// The cause that deletions are refused with.
    pub refuse_deletions: Option<Cause>,
    /// So many default sessions are refused, as by one that does not know the port yet.
    pub refuse_defaults: u32,
    /// The cause that changes of nets are refused with.
    pub refuse_nets: Option<Cause>,
    /// Changes of subscribers' rules to a smaller MTU are refused.
    pub least_mtu: u16,
    /// Changes of subscribers' rules are carried out, and nobody is told.
    pub silent_about_changes: bool,
    /// Changes of subscribers' rules wait here, if there is such a place, until [`super::World::answer_late`].
    pub(super) late: Option<Vec<(RequestId, u64, Message)>>,
    /// Maximum number of further audit blocks whose answers name as many unknown sessions as fit, each with new SEIDs.
    pub invents_sessions: usize,
    /// Blocks of audits that it answered.
    pub audited: usize,
    /// Reports say that sessions are idle.
    pub says_idle: bool,
    /// Whether its reports say that the subscriber answers no echo requests.
    pub says_gone: bool,
    /// Its reports tell of address families.
    tells_families: bool,
    /// Sessions are not deleted, and nobody is told why.
    pub keeps_all: bool,
    /// How often one was to be deleted meanwhile.
    pub kept: usize,
    /// Nobody is told whether nets were taken.
    pub silent_about_nets: bool,
    /// What was answered to reports.
    pub told: Vec<Cause>,
    /// The last report of its own accord, and the control plane's SEID.
    pub last_report: Option<(u64, SessionReportRequest)>,
}

/// A session: its rules, what they come to, and the control plane's SEID.
struct Held {
    rules: RuleSet,
    decoded: DecodedRules,
    cp_seid: u64,
    /// Usage reports so far.
    reports: u32,
}

impl Held {
    fn new(rules: RuleSet, cp_seid: u64) -> Self {
        let decoded = rules.decode().expect("rules that can be served");
        Held {
            rules,
            decoded,
            cp_seid,
            reports: 0,
        }
    }

    /// Reports so many octets up, and twice as many down; a tenth of them are IPv6, if the report tells.
    fn report(&mut self, octets: u64, tells_families: bool) -> wire::pfcp::UsageReport {
        let usage = match &self.decoded {
            DecodedRules::Session(decoded) => decoded.usage,
            DecodedRules::Default(_) => None,
        };
        self.reports += 1;
        wire::pfcp::UsageReport {
            urr_id: usage.expect("a subscriber's session").urr_id,
            sequence: self.reports - 1,
            volume: Some(wire::pfcp::VolumeMeasurement {
                uplink_octets: Some(octets),
                downlink_octets: Some(2 * octets),
                ..Default::default()
            }),
            ipv6_volume: tells_families.then(|| wire::pfcp::VolumeMeasurement {
                uplink_octets: Some(octets / 10),
                downlink_octets: Some(octets / 5),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

impl UserPlane {
    /// One that leaves the keepalive to the control plane, so that silence of homes is its affair.
    pub(super) fn new(recovery: u32) -> Self {
        Self::with_settings(recovery, |setting| setting.name != "keepalive")
    }

    /// One that takes every setting. It reports silence only when told to.
    pub(super) fn watching(recovery: u32) -> Self {
        Self::with_settings(recovery, |_| true)
    }

    fn with_settings(recovery: u32, takes: impl Fn(&Setting) -> bool) -> Self {
        let all = PacketSettings::SETTINGS
            .iter()
            .chain(TrafficPolicies::SETTINGS);
        let taken = all.filter(|setting| takes(setting));
        let features = Features {
            sluice: Some(
                SluiceFeatures::SETTINGS
                    | SluiceFeatures::BINDINGS
                    | SluiceFeatures::ECHO_REPLIES
                    | SluiceFeatures::METRICS,
            ),
            lanes: Some(Lanes::even(WORKERS)),
            known_settings: Some(KnownSettings::of(taken.map(|setting| setting.id))),
            ..Features::default()
        };
        Self::with_features(recovery, features)
    }

    /// One of before, which says neither its lanes nor which settings it knows.
    pub(super) fn of_before(recovery: u32, sluice: SluiceFeatures) -> Self {
        let features = Features {
            sluice: Some(sluice),
            ..Features::default()
        };
        Self::with_features(recovery, features)
    }

    fn with_features(recovery: u32, features: Features) -> Self {
        let mut config = Config::new(Role::User, NodeId::Fqdn("up1".into()), recovery);
        config.features = features;
        let sluice = features.sluice.unwrap_or_default();
        let mut node = Node::new(config);
        node.add_peer(Duration::ZERO, at(CP, 8805));
        UserPlane {
            node,
            takes_settings: sluice.contains(SluiceFeatures::SETTINGS),
            sessions: BTreeMap::new(),
            next_seid: 100,
            departed: BTreeMap::new(),
            named: Default::default(),
            epoch: 0,
            refuse: None,
            refuse_deletions: None,
            refuse_defaults: 0,
            refuse_nets: None,
            least_mtu: 0,
            silent_about_changes: false,
            late: None,
            invents_sessions: 0,
            audited: 0,
            says_idle: false,
            says_gone: false,
            tells_families: features.known_settings.is_some(),
            keeps_all: false,
            kept: 0,
            silent_about_nets: false,
            told: Vec::new(),
            last_report: None,
        }
    }

    pub(super) fn decoded(&self) -> impl DoubleEndedIterator<Item = &DecodedRules> {
        self.sessions.values().map(|held| &held.decoded)
    }

    /// What there is of subscribers, in order of the PPPoE session id. Their URRs have the same name here: each time that one is
    /// told anew it has another.
    pub fn subscribers(&self) -> Vec<SubscriberRules> {
        let session = |f: &DecodedRules| match f {
            DecodedRules::Session(s) => {
                let mut decoded = (**s).clone();
                decoded.usage.as_mut().expect("it is measured").urr_id = 1;
                Some(decoded)
            }
            DecodedRules::Default(_) => None,
        };
        let mut sessions: Vec<SubscriberRules> = self.decoded().filter_map(session).collect();
        sessions.sort_by_key(|s| s.access);
        sessions
    }

    /// What it calls subscribers' sessions: each establishment gives another name.
    pub fn names(&self) -> Vec<u64> {
        let subscribers = self.sessions.iter();
        let subscribers =
            subscribers.filter(|(_, held)| matches!(held.decoded, DecodedRules::Session(_)));
        subscribers.map(|(seid, _)| *seid).collect()
    }

    /// TEID of a default session.
    pub fn default_tunnel(&self) -> u32 {
        let default = self.decoded().find_map(|decoded| match decoded {
            DecodedRules::Default(d) => Some(d.tunnel.uplink.teid),
            DecodedRules::Session(_) => None,
        });
        default.expect("a default session")
    }

    /// How many default sessions there are.
    pub fn default_sessions(&self) -> usize {
        let default = |decoded: &&DecodedRules| matches!(decoded, DecodedRules::Default(_));
        self.decoded().filter(default).count()
    }

    pub fn nets(&self) -> Vec<String> {
        let nets = self.decoded().flat_map(|decoded| match decoded {
            DecodedRules::Default(d) => d.nets.as_slice(),
            DecodedRules::Session(_) => &[],
        });
        nets.map(|n| n.net.to_string()).collect()
    }

    fn audit(&mut self, audit: &wire::pfcp::Audit) -> wire::pfcp::AuditResult {
        self.audited += 1;
        if self.epoch != audit.epoch {
            self.epoch = audit.epoch;
            self.named.clear();
        }
        let mut result = wire::pfcp::AuditResult::default();
        for (place, (seid, digest)) in audit.sessions.iter().enumerate() {
            self.named.insert(*seid);
            let held = self.sessions.get(seid).map(|held| &held.decoded);
            if !matches!(held, Some(DecodedRules::Session(s)) if s.digest() == *digest) {
                result.wrong.push(place as u16);
            }
        }
        if audit.last {
            let unnamed = self.sessions.iter().filter(|(seid, held)| {
                matches!(held.decoded, DecodedRules::Session(_)) && !self.named.contains(seid)
            });
            let unknown_sessions = unnamed.take(AUDIT_BLOCK);
            result.unknown_sessions = unknown_sessions
                .map(|(seid, held)| (held.cp_seid, *seid))
                .collect();
            self.named
                .extend(result.unknown_sessions.iter().map(|(_, seid)| seid)); // each is told once
        }
        if self.invents_sessions > 0 {
            self.invents_sessions -= 1;
            let first = (self.audited * AUDIT_BLOCK) as u64;
            let invented = (first..).map(|n| (n << 20, 1 << 32 | n));
            result.unknown_sessions = invented.take(AUDIT_BLOCK).collect();
        }
        result
    }

    /// One session is gone, or its rules are damaged; nobody is told.
    pub fn forget_one(&mut self) {
        self.take_one();
    }

    /// The default sessions are gone.
    #[allow(dead_code)] // the ledger's own tests'
    pub fn forget_default(&mut self) {
        let subscriber = |held: &Held| matches!(held.decoded, DecodedRules::Session(_));
        self.sessions.retain(|_, held| subscriber(held));
    }

    #[allow(dead_code)] // the ledger's own tests'
    pub fn forget_last(&mut self) {
        let subscriber =
            |(_, held): &(&u64, &Held)| matches!(held.decoded, DecodedRules::Session(_));
        let seid = *self.sessions.iter().rfind(subscriber).expect("a session").0;
        self.sessions.remove(&seid);
    }

    fn take_one(&mut self) -> (u64, Held) {
        let subscriber =
            |(_, held): &(&u64, &Held)| matches!(held.decoded, DecodedRules::Session(_));
        let seid = *self.sessions.iter().find(subscriber).expect("a session").0;
        (seid, self.sessions.remove(&seid).expect("a session"))
    }

    /// One session was deleted, and nobody heard the answer.
    pub fn depart_one(&mut self) {
        let (seid, held) = self.take_one();
        self.departed.insert(seid, held);
    }

    /// One session has another name; nobody is told.
    pub fn rename_one(&mut self) {
        let (_, held) = self.take_one();
        self.next_seid += 1;
        self.sessions.insert(self.next_seid, held);
    }

    pub fn damage_one(&mut self) {
        let sessions = self.sessions.values_mut();
        let mut subscribers = sessions.filter_map(|held| match &mut held.decoded {
            DecodedRules::Session(decoded) => Some(decoded),
            DecodedRules::Default(_) => None,
        });
        let forwarding = &mut subscribers.next().expect("a session").forwarding;
        forwarding.bindings = Bindings::of(None, forwarding.bindings.ipv6());
    }

    /// The last session has lost the rules of its subscriber.
    pub fn damage_rules(&mut self) {
        let last = self.sessions.values_mut().next_back();
        match last.map(|held| &mut held.decoded) {
            Some(DecodedRules::Session(decoded)) => {
                decoded.forwarding.policies.filter_rules = None;
            }
            _ => panic!("a session"),
        }
    }

    /// Routes of all sessions have another metric than they were told.
    pub fn change_metrics(&mut self, metric: u32) {
        for held in self.sessions.values_mut() {
            if let DecodedRules::Session(decoded) = &mut held.decoded {
                let bindings = &mut decoded.forwarding.bindings;
                *bindings = bindings.with_metrics(|_| Some(metric));
            }
        }
    }

    pub(super) fn is_default(&self, seid: u64) -> bool {
        let held = self.sessions.get(&seid);
        held.is_some_and(|held| matches!(held.decoded, DecodedRules::Default(_)))
    }

    pub(super) fn serve(&mut self, seid: u64, message: Message) -> (u64, Message) {
        match message {
            Message::SessionEstablishmentRequest(m) => {
                let cp = m.cp_f_seid.seid;
                let m = self.as_received(m);
                let rules = RuleSet::establish(m).expect("an establishment that can be served");
                let held = Held::new(rules, cp);
                let refuse = match &held.decoded {
                    DecodedRules::Session(_) => self.refuse,
                    DecodedRules::Default(decoded) => {
                        let unknown = decoded.logical_port.as_deref() != Some(PORT);
                        let not_yet = self.refuse_defaults > 0;
                        self.refuse_defaults = self.refuse_defaults.saturating_sub(1);
                        (unknown || not_yet).then_some(Cause::REQUEST_REJECTED)
                    }
                };
                if let Some(cause) = refuse {
                    let refusal = wire::pfcp::SessionEstablishmentResponse {
                        node_id: NodeId::Fqdn("up1".into()),
                        cause,
                        ..Default::default()
                    };
                    return (cp, refusal.into());
                }
                self.sessions.retain(|_, held| held.cp_seid != cp);
                self.next_seid += 1;
                self.sessions.insert(self.next_seid, held);
                let response = wire::pfcp::SessionEstablishmentResponse {
                    node_id: NodeId::Fqdn("up1".into()),
                    cause: Cause::REQUEST_ACCEPTED,
                    up_f_seid: Some(FSeid::new(self.next_seid, UP.parse().unwrap())),
                    ..Default::default()
                };
                (cp, response.into())
            }
            Message::SessionModificationRequest(m) => self.modify(seid, &m),
            Message::SessionDeletionRequest(_) => {
                if let Some(cause) = self.refuse_deletions {
                    let refusal = wire::pfcp::SessionDeletionResponse {
                        cause,
                        ..Default::default()
                    };
                    let held = self.sessions.get(&seid);
                    return (held.map_or(0, |held| held.cp_seid), refusal.into());
                }
                let gone = self.sessions.remove(&seid);
                let mut gone = gone.or_else(|| self.departed.remove(&seid));
                let tells = self.tells_families;
                let subscribers = gone.iter_mut();
                let subscribers =
                    subscribers.filter(|held| matches!(held.decoded, DecodedRules::Session(_)));
                let response = wire::pfcp::SessionDeletionResponse {
                    usage_reports: subscribers.map(|held| held.report(70, tells)).collect(),
                    cause: match gone {
                        Some(_) => Cause::REQUEST_ACCEPTED,
                        None => Cause::SESSION_CONTEXT_NOT_FOUND,
                    },
                    ..Default::default()
                };
                (gone.map_or(0, |held| held.cp_seid), response.into())
            }
            other => panic!("the control plane asks {}", other.name()),
        }
    }

    /// What it makes of a request: an element that it does not know is skipped.
    fn as_received(&self, mut m: SessionEstablishmentRequest) -> SessionEstablishmentRequest {
        if !self.takes_settings {
            let fars = m.create_fars.iter_mut();
            let parameters = fars.filter_map(|far| far.forwarding_parameters.as_mut());
            parameters.for_each(|parameters| parameters.settings = None);
        }
        m
    }

    fn modify(&mut self, seid: u64, m: &wire::pfcp::SessionModificationRequest) -> (u64, Message) {
        let mut response = wire::pfcp::SessionModificationResponse {
            cause: Cause::REQUEST_ACCEPTED,
            ..Default::default()
        };
        let Some(held) = self.sessions.get_mut(&seid) else {
            response.cause = Cause::SESSION_CONTEXT_NOT_FOUND;
            return (0, response.into());
        };
        let cp_seid = held.cp_seid;
        if let Some(audit) = &m.audit {
            response.audit_result = Some(self.audit(audit));
            return (cp_seid, response.into());
        }
        let is_default = matches!(held.decoded, DecodedRules::Default(_));
        if let Some(cause) = self.refuse_nets.filter(|_| is_default) {
            response.cause = cause;
            return (cp_seid, response.into());
        }
        let rules = held
            .rules
            .modify(m)
            .expect("a modification that can be served");
        if let Ok(DecodedRules::Session(decoded)) = rules.decode()
            && decoded.forwarding.packets.largest_packet() < self.least_mtu
        {
            response.cause = Cause::RULE_CREATION_FAILURE;
            return (cp_seid, response.into());
        }
        *held = Held {
            reports: held.reports,
            ..Held::new(rules, cp_seid)
        };
        let (queries, tells) = (m.query_urrs.iter(), self.tells_families);
        response.usage_reports = queries.map(|_| held.report(1000, tells)).collect();
        (cp_seid, response.into())
    }

    /// Reports so many octets up, and twice as many down, of every session.
    pub(super) fn report(&mut self, now: Duration, octets: u64) {
        let report_type = match self.says_idle || self.says_gone {
            true => ReportType::USAGE | ReportType::INACTIVITY,
            false => ReportType::USAGE,
        };
        for held in self.sessions.values_mut() {
            if let DecodedRules::Session(_) = held.decoded {
                let report = SessionReportRequest {
                    report_type,
                    usage_reports: vec![held.report(octets, self.tells_families)],
                    unanswered_echoes: self.says_gone.then_some(3),
                };
                self.last_report = Some((held.cp_seid, report.clone()));
                let asked = self
                    .node
                    .request(now, at(CP, 8805), held.cp_seid, report, 0);
                asked.expect("an association");
            }
        }
    }

    /// Reports the same once more.
    pub(super) fn report_again(&mut self, now: Duration, report: (u64, SessionReportRequest)) {
        let (cp_seid, report) = report;
        let asked = self.node.request(now, at(CP, 8805), cp_seid, report, 0);
        asked.expect("an association");
    }
}
