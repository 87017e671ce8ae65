//! Sessions of the control plane, in memory and in the store.

use crate::authorization::{PendingRequest, Proposal};
use crate::evaluate::AaaAnswer;
use crate::fallback::AcceptedBy;
use crate::jitter::Jitter;
use crate::names::WrittenNames;
use crate::plane::CameBy;
use crate::rare::{Part, Rare};
use crate::sessions::{LineKey, line_key};
use crate::topology::{GroupId, InstanceId, SegmentId, Seid, SubscriberId, UserPlaneId};
use crate::without_effect::WithoutEffect;
use aaa::AccessAccept;
use core::net::Ipv4Addr;
use core::time::Duration;
use core::{iter, mem};
use ipnet::{IpNet, Ipv6Net};
use pfcp::bng::{Told, Usage};
use policy::{Access, Binding, Bindings, Forwarding, Policy, Role};
use serde::{Deserialize, Serialize};
use session::discovery::Padr;
use session::{Circuit, Deadline, Link, Phase, Status};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use wire::access_loop::AccessLoop;
use wire::eth::MacAddr;

/// Session of a subscriber.
pub(crate) struct Entry {
    pub seid: Seid,
    /// Of its control tunnel, in both directions.
    pub teid: u32,
    pub user_plane: UserPlaneId,
    pub segment: SegmentId,
    /// Subscriber group in which the session began.
    pub group: GroupId,
    /// Virtual MAC address of the group at that time. The subscriber keeps using it.
    pub gateway_mac: MacAddr,
    pub instance: InstanceId,
    pub circuit: Circuit,
    /// How it is attached to its access line.
    pub access: Access,
    /// Tags of its PADR, for AAA.
    pub tags: Rare<PadrTags>,
    /// Its subscriber; with identities by user name `None` before authentication.
    pub subscriber: Option<SubscriberId>,
    pub stage: Stage,
    pub came_by: CameBy,
    /// What speaks on its access line, once PADS was sent.
    pub link: Option<Box<Link>>,
    pub rules: Rules,
    pub who: Who,
    /// Names in requests to its server group, if that has templates. They stay the same once it has started.
    pub names: Option<Box<WrittenNames>>,
    /// Server group that authenticated the session and gets its accounting records; `None` for a local user.
    pub servers: Option<Arc<str>>,
    /// Who accepted the subscriber.
    pub accepted_by: AcceptedBy,
    /// AAA's answer, as far as the policy depends on it. Homes with the same answer share it.
    pub answer: Arc<AaaAnswer>,
    /// State of the last Access-Accept, for the re-authentication that it asks for. Empty: none.
    pub state: Box<[u8]>,
    /// Attributes of AAA's answer that have no effect.
    pub without_effect: Option<Box<WithoutEffect>>,
    /// Number of the last request for an answer without a proof (Authorize-Only). It identifies late answers.
    pub authorization: u8,
    /// Policy in force. Its bindings are the session's addresses, in `instance`.
    pub policy: Policy,
    pub under_way: Rare<UnderWay>,
    pub account: Account,
    /// Bindings in its last accounting record.
    pub recorded: Bindings,
    /// State of the session's events in the history.
    pub noted: Noted,
    /// Whether the store has a record of the session.
    pub stored: bool,
}

/// What is under way for a session.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// Access-Accept that waits for an address which another session still has.
    pub waiting: Option<Box<AccessAccept>>,
    /// Sessions that wait for an address of this one.
    pub heirs: Vec<Seid>,
    /// Policy that replaces the one in force when the user plane has accepted it.
    pub proposed: Option<Proposal>,
    /// Proposed policy in the pending modification.
    pub sending: Option<Box<Sending>>,
    /// What RADIUS servers want of the session and is not done yet, in order. A change that comes first is under way.
    pub requests: VecDeque<PendingRequest>,
    /// User plane's SEID before the session was established again.
    pub up_seid_before: Option<u64>,
    /// Time of the next attempt to delete the session, after the user plane rejected one.
    pub delete_at: Option<Duration>,
    /// Administrator who ends the session.
    pub ended_by: Option<Box<str>>,
}

impl Part for UnderWay {
    fn nothing() -> &'static Self {
        static NOTHING: UnderWay = UnderWay {
            waiting: None,
            heirs: Vec::new(),
            proposed: None,
            sending: None,
            requests: VecDeque::new(),
            up_seid_before: None,
            delete_at: None,
            ended_by: None,
        };
        &NOTHING
    }

    fn is_nothing(&self) -> bool {
        let is_ending =
            self.up_seid_before.is_some() || self.delete_at.is_some() || self.ended_by.is_some();
        let is_changing =
            self.proposed.is_some() || self.sending.is_some() || !self.requests.is_empty();
        self.waiting.is_none() && self.heirs.is_empty() && !is_ending && !is_changing
    }
}

/// Tags of a PADR that few subscribers send, or few access nodes add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PadrTags {
    /// Ids of the access line (TR-101).
    pub line: LineIds,
    /// Characteristics of the access loop (TR-101).
    pub access_loop: Option<Box<AccessLoop>>,
    /// PPPoE service name that the subscriber asks for.
    pub service: Box<[u8]>,
}

impl Part for PadrTags {
    fn nothing() -> &'static Self {
        static NOTHING: LazyLock<PadrTags> = LazyLock::new(PadrTags::default);
        &NOTHING
    }

    fn is_nothing(&self) -> bool {
        self == Self::nothing()
    }
}

/// State of a session's events in the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// Time of its PADR in seconds since 1970; 0 after a restart.
    pub dialled: u32,
    pub refused: bool,
    pub online: bool,
    /// Bindings in the last event.
    pub bindings: Bindings,
}

/// Circuit and remote id of the subscriber's line (TR-101, RFC 4679).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LineIds {
    pub circuit_id: Option<Box<[u8]>>,
    pub remote_id: Option<Box<[u8]>>,
}

impl LineIds {
    /// What the access node added to a PADR.
    pub fn of(padr: &Padr) -> Self {
        let boxed = |octets: &Option<Vec<u8>>| octets.clone().map(Vec::into_boxed_slice);
        LineIds {
            circuit_id: boxed(&padr.circuit_id),
            remote_id: boxed(&padr.remote_id),
        }
    }

    /// What the access node added to a PADI, if its tags are trusted.
    pub fn of_padi(payload: &[u8], trusted: bool) -> Self {
        let ids = wire::pppoe::line_ids(payload);
        let [circuit_id, remote_id] = ids.map(|id| (trusted && !id.is_empty()).then(|| id.into()));
        LineIds {
            circuit_id,
            remote_id,
        }
    }

    /// Whether there is one of the two.
    pub fn is_known(&self) -> bool {
        self.circuit_id.is_some() || self.remote_id.is_some()
    }
}

/// Stage of a session.
pub(crate) enum Stage {
    /// Its PADR is accepted, and PADS waits for the user plane's answer.
    Admitted(Box<Padr>),
    /// PADS was sent, and no address family is open yet.
    Connecting,
    /// At least one address family has been open.
    Online,
    /// It has ended, and the user plane has not reported its last counters yet.
    Closing(Box<Ending>),
}

/// Cause and time of a session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub cause: session::Cause,
    /// Duration of the session.
    pub lasted: Duration,
    /// Seconds since 1970.
    pub unix: u32,
}

/// State of a session's rules at the user plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// User plane's SEID, once it has answered.
    pub up_seid: Option<u64>,
    /// URR ID. Each establishment uses another one.
    pub urr_id: u32,
    /// Whether a session establishment is pending.
    pub establishing: bool,
    /// Whether the association ended during a session establishment. The user plane may have the session under an unknown SEID.
    pub unsettled: bool,
    /// Whether the user plane did not know the SEID of a deletion, so that the session was established again to learn its SEID and its
    /// counters.
    pub sought: bool,
    /// Whether the session counts in the resync window.
    pub put_back: bool,
    /// Address families whose rules were requested: IPv4, IPv6.
    pub families: [bool; 2],
    /// What was sent last.
    pub last_sent: LastSent,
    /// Whether a modification is pending. There is at most one, because PFCP does not keep the order of two.
    pub modifying: bool,
    /// Number of the last modification. It identifies late answers.
    pub modification: u8,
    /// Number of requests for each address family. It identifies results of earlier requests.
    pub asked: [u8; 2],
}

/// A policy that was proposed to the user plane.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub proposal: Proposal,
    /// What was sent before.
    pub sent_before: LastSent,
}

/// What was sent of a session last.
pub(crate) type LastSent = Told;

/// Identity of the subscriber, as authenticated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub username: Box<[u8]>,
    pub class: Box<[Vec<u8>]>,
    pub attempt: u8,
}

/// Accounting state of a session.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// Time at which its first address family opened.
    pub started: Option<Started>,
    /// Usage that the user plane has reported.
    pub usage: Usage,
    pub next_interim: Deadline,
    /// Time at which its session time-out ends it.
    pub ends_at: Deadline,
    /// Usage reports that are in `usage`.
    pub reports: Reports,
}

/// Start of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Monotonic time of the start; after a reboot of the machine, the time at which the session was resumed.
    pub at: Duration,
    /// Seconds that the session had lasted at that time.
    pub before: u32,
    /// Seconds since 1970.
    pub unix: u32,
}

impl Default for Account {
    fn default() -> Self {
        Account {
            started: None,
            usage: Usage::default(),
            next_interim: Deadline::NEVER,
            ends_at: Deadline::NEVER,
            reports: Reports::default(),
        }
    }
}

impl Account {
    /// Duration of the session so far.
    pub fn lasted(&self, now: Duration) -> Duration {
        let lasted = |s: Started| {
            now.saturating_sub(s.at)
                .saturating_add(Duration::from_secs(s.before.into()))
        };
        self.started.map_or(Duration::ZERO, lasted)
    }

    /// Sets the time of the next interim record: a multiple of the interval since the start with its jitter, also after restarts.
    pub fn arm_interim(&mut self, now: Duration, interval: Option<Duration>, jitter: Jitter) {
        let lasted = self.lasted(now);
        let next = interval.and_then(|interval| {
            let interval = interval.max(Duration::from_secs(1));
            let passed = (lasted.as_nanos() / interval.as_nanos()) as u32;
            let to_come = (passed.max(1)..).map(|number| jitter.time_of(number, interval));
            let next = to_come.into_iter().find(|at| *at > lasted);
            next.map(|at| Deadline::after(now, at - lasted))
        });
        self.next_interim = next.unwrap_or(Deadline::NEVER);
    }

    /// Sets the time at which the session time-out ends the session.
    pub fn arm_timeout(&mut self, now: Duration, granted: Option<Duration>) {
        let lasted = self.lasted(now);
        let at = granted.map(|granted| Deadline::after(now, granted.saturating_sub(lasted)));
        self.ends_at = at.unwrap_or(Deadline::NEVER);
    }
}

/// Usage reports that were counted, so that a repeated report is not counted twice. Each report has the usage since the previous one,
/// and a user plane repeats it until it is acknowledged. Reports are kept by URR, the latest URR first, because a report of the previous
/// URR may be repeated when the next URR already counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredReports", into = "StoredReports")]
pub(crate) struct Reports {
    latest: UrrReports,
    /// Those of the URRs before. Few sessions had any.
    earlier: Option<Box<[UrrReports; 5]>>,
}

/// Id of a URR, and its reports. Without reports there is no URR.
type UrrReports = (u32, Sequence);

type StoredReports = [UrrReports; 6];

impl From<StoredReports> for Reports {
    fn from([latest, earlier @ ..]: StoredReports) -> Self {
        let earlier = Some(earlier).filter(|earlier| *earlier != [UrrReports::default(); 5]);
        Reports {
            latest,
            earlier: earlier.map(Box::new),
        }
    }
}

impl From<Reports> for StoredReports {
    fn from(reports: Reports) -> Self {
        let [a, b, c, d, e] = reports
            .earlier
            .map_or(Default::default(), |earlier| *earlier);
        [reports.latest, a, b, c, d, e]
    }
}

impl Reports {
    /// Reports of one URR.
    pub fn of(urr_id: u32, numbers: Sequence) -> Self {
        Reports {
            latest: (urr_id, numbers),
            earlier: None,
        }
    }

    /// Whether a report is new. Marks it as counted.
    pub fn is_new(&mut self, urr_id: u32, number: u32) -> bool {
        let earlier = self.earlier.iter_mut().flat_map(|earlier| &mut **earlier);
        let known = iter::once(&mut self.latest)
            .chain(earlier)
            .find(|(id, _)| *id == urr_id);
        if let Some((_, numbers)) = known {
            return numbers.is_new(number);
        }
        let before = mem::replace(&mut self.latest, (urr_id, Sequence::default()));
        if before != UrrReports::default() {
            let earlier = self.earlier.get_or_insert_default();
            earlier.rotate_right(1);
            earlier[0] = before;
        }
        self.latest.1.is_new(number)
    }
}

/// Sequence numbers (UR-SEQN) of the reports of one URR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    /// Highest number plus 1, modulo 2^32.
    next: u32,
    /// Bitmap of the highest number and the 31 before it. The lowest bit is the highest number. 0 before the first report.
    seen: u32,
}

impl Sequence {
    /// Whether a number is new. Marks it as counted.
    fn is_new(&mut self, number: u32) -> bool {
        let highest = self.next.wrapping_sub(1);
        if self.seen == 0 || number > highest {
            let ahead = number.wrapping_sub(highest);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = number.wrapping_add(1);
            return true;
        }
        let bit = 1u32.checked_shl(highest - number).unwrap_or(0);
        let new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

impl Entry {
    /// A session that connects and has nothing yet.
    pub fn new(
        seid: Seid,
        user_plane: UserPlaneId,
        segment: SegmentId,
        group: GroupId,
        instance: InstanceId,
        circuit: Circuit,
        access: Access,
    ) -> Self {
        Entry {
            seid,
            teid: 0,
            user_plane,
            segment,
            group,
            gateway_mac: MacAddr::default(),
            instance,
            circuit,
            access,
            tags: Rare::default(),
            subscriber: None,
            stage: Stage::Connecting,
            came_by: CameBy::default(),
            link: None,
            rules: Rules::default(),
            who: Who::default(),
            names: None,
            servers: None,
            accepted_by: AcceptedBy::default(),
            answer: Arc::default(),
            state: Box::default(),
            without_effect: None,
            authorization: 0,
            policy: Policy::default(),
            under_way: Rare::default(),
            account: Account::default(),
            recorded: Bindings::default(),
            noted: Noted::default(),
            stored: false,
        }
    }

    /// Whether the session is not online yet.
    pub fn is_half_open(&self) -> bool {
        matches!(self.stage, Stage::Admitted(_) | Stage::Connecting)
    }

    /// Whether its subscriber has not said yet who it is, and may still do so.
    pub fn is_unauthenticated(&self) -> bool {
        self.is_half_open() && self.who.username.is_empty() && !self.is_ending()
    }

    /// Whether the next step of the set-up is its subscriber's: it was sent PADS, and has not said yet who it is.
    pub fn waits_for_login(&self) -> bool {
        matches!(self.stage, Stage::Connecting) && self.who.username.is_empty()
    }

    pub fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// Whether the session's end has begun. It then counts against no limit of its own line, MAC address or subscriber.
    pub fn is_ending(&self) -> bool {
        let over = |status: Status| matches!(status.phase, Phase::Terminate | Phase::Closed);
        self.is_closing() || self.status().is_some_and(over)
    }

    /// State of its link, once PADS was sent.
    pub fn status(&self) -> Option<Status> {
        self.link.as_ref().map(|link| link.status())
    }

    /// Makes it a session that waits for its last counters.
    pub fn close(&mut self, ending: Ending) {
        self.stage = Stage::Closing(Box::new(ending));
        self.link = None;
        self.take_proposed();
        self.account.next_interim = Deadline::NEVER;
        self.account.ends_at = Deadline::NEVER;
    }

    /// Takes the policy that was to replace the one in force.
    pub fn take_proposed(&mut self) -> Option<Proposal> {
        self.under_way.held()?.proposed.take()
    }

    /// Takes the proposed policy that was in the pending modification.
    pub fn take_sending(&mut self) -> Option<Box<Sending>> {
        self.under_way.held()?.sending.take()
    }

    /// Takes the user plane's SEID of before.
    pub fn take_seid_before(&mut self) -> Option<u64> {
        self.under_way.held()?.up_seid_before.take()
    }

    /// User-Name in requests to RADIUS servers.
    pub fn sent_name(&self) -> &[u8] {
        let names = self.names.as_ref();
        let written = names.and_then(|names| names.user_name.as_deref());
        written.unwrap_or(&self.who.username)
    }

    /// Key of its access line.
    pub fn line_key(&self) -> LineKey {
        line_key(self.segment, &self.circuit)
    }

    /// Its segment and group, which stay the same.
    pub fn place(&self) -> (SegmentId, GroupId) {
        (self.segment, self.group)
    }

    /// Its outer VLAN.
    pub fn s_vlan(&self) -> Option<u16> {
        self.circuit.tags.vids().0
    }

    /// Its IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.policy.forwarding.bindings.ipv4()
    }

    /// Its first IPv6 prefix of the link.
    pub fn ipv6(&self) -> Option<Ipv6Net> {
        self.policy.forwarding.bindings.ipv6()
    }

    /// All its IPv6 prefixes of the link.
    pub fn links(&self) -> impl Iterator<Item = Ipv6Net> {
        self.policy.forwarding.bindings.links()
    }

    /// Other prefixes that are routed to the session: further ones of the link, delegated prefixes, and networks behind its router.
    pub fn routes(&self) -> impl Iterator<Item = &Binding> {
        let others = self.policy.forwarding.bindings.others();
        others.filter(|binding| binding.role != Role::Host)
    }

    /// Gives the session's routes other metrics.
    pub fn set_metrics(&mut self, metric: impl Fn(&Binding) -> Option<u32>) {
        let bindings = &mut self.policy.forwarding.bindings;
        *bindings = bindings.with_metrics(metric);
    }

    /// Adds a binding. It must not contradict the session's other bindings.
    pub fn hold(&mut self, binding: Binding) {
        let bindings = &mut self.policy.forwarding.bindings;
        if let Ok(with) = bindings.with(binding) {
            *bindings = with;
        }
    }

    /// Removes the bindings for which `which` returns true, and returns them.
    pub fn let_go(&mut self, which: impl Fn(&Binding) -> bool) -> Vec<Binding> {
        let bindings = &mut self.policy.forwarding.bindings;
        let gone = bindings.iter().filter(|b| which(b)).copied().collect();
        *bindings = bindings.filtered(|binding| !which(binding));
        gone
    }

    /// User name by which the session is found: its subscriber has said it, and the session is not closing.
    pub fn user_key(&self) -> Option<&[u8]> {
        let is_there = !self.who.username.is_empty() && !self.is_closing();
        is_there.then_some(&*self.who.username)
    }

    /// Whether the session has a policy and is not ending.
    pub fn has_policy(&self) -> bool {
        !self.is_closing() && !self.policy.forwarding.bindings.is_empty()
    }

    /// Whether the family of a binding is open to packets.
    pub fn is_open(&self, binding: &Binding) -> bool {
        let [ipv4, ipv6] = self.rules.families;
        match binding.prefix {
            IpNet::V4(_) => ipv4,
            IpNet::V6(_) => ipv6,
        }
    }

    /// Forwarding part of a policy for the address families that are open now.
    pub fn forwarding(&self, policy: &Policy) -> Forwarding {
        policy
            .forwarding
            .with_bindings(|binding| self.is_open(binding))
    }

    /// Time of the session's next timer.
    pub fn wake_at(&self) -> Option<Duration> {
        let link = self.link.as_ref().and_then(|link| link.poll_at());
        let account = self.account.next_interim.min(self.account.ends_at).get();
        let times = [link, self.under_way.delete_at, account];
        times.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_once_in_whatever_order_they_come() {
        let mut reports = Reports::default();
        let numbers = [0, 0, 3, 1, 3, 2, 1, 40, 39, 8, 40];
        let new = [0, 3, 1, 2, 40, 39];
        let taken = numbers.into_iter().filter(|n| reports.is_new(7, *n));
        let taken: Vec<u32> = taken.collect();
        assert_eq!(taken, new, "8 is too old to be told from a repetition");
        assert!(reports.is_new(7, u32::MAX) && !reports.is_new(7, u32::MAX - 40));
        // Another rule counts from the beginning, and those of the one before are known as long as they may come again.
        assert!(reports.is_new(9, 0) && !reports.is_new(9, 0) && reports.is_new(9, 1));
        assert!((10..14).all(|rule| reports.is_new(rule, 0)));
        assert!(!reports.is_new(7, 40) && !reports.is_new(9, 1));
        let stored = StoredReports::from(reports.clone());
        let ids = stored.map(|(id, _)| id);
        assert_eq!(ids, [13, 12, 11, 10, 9, 7]);
        assert_eq!(Reports::from(stored), reports);
    }

    #[test]
    fn interim_records_keep_to_their_multiples() {
        let at = Duration::from_secs;
        let mut account = Account {
            started: Some(Started {
                at: at(100),
                before: 25,
                unix: 0,
            }),
            ..Account::default()
        };
        for (now, next) in [(100, 135), (134, 135), (135, 195), (500, 555)] {
            let none = Jitter {
                seid: Seid(7),
                percent: 0,
            };
            account.arm_interim(at(now), Some(at(60)), none);
            assert_eq!(account.next_interim.get(), Some(at(next)), "at {now}");
        }
        account.arm_timeout(at(500), Some(at(1000)));
        assert_eq!(account.ends_at.get(), Some(at(1075)));
    }

    #[test]
    fn the_page_about_performance_has_the_sizes() {
        let page = include_str!("../../../docs/performance.md");
        let sizes = [
            ("control::Entry", size_of::<Entry>()),
            ("session::Link", size_of::<Link>()),
            ("session::Ipv6Grant", size_of::<session::Ipv6Grant>()),
            ("policy::Binding", size_of::<Binding>()),
        ];
        for (name, size) in sizes {
            let row = format!("| `{name}` | {size} |");
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
