//! Sessions of the control plane, in memory and in the store.

use crate::evaluate::AaaAnswer;
use crate::fallback::AcceptedBy;
use crate::jitter::Jitter;
use crate::names::WrittenNames;
use crate::sessions::{LineKey, line_key};
use crate::topology::{
    GroupId, InstanceId, MAX_SESSIONS, SegmentId, Seid, SubscriberId, UserPlaneId,
};
use crate::without_effect::WithoutEffect;
use aaa::{AccessAccept, RequestKey};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use ipnet::{IpNet, Ipv6Net};
use pfcp::bng::{Told, Usage};
use policy::{Access, Binding, Bindings, Forwarding, Overrides, Policy, Role};
use serde::{Deserialize, Serialize};
use session::discovery::Padr;
use session::{Circuit, Link, Phase, Status};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::access_loop::AccessLoop;
use wire::eth::MacAddr;

/// Session of a subscriber.
pub(crate) struct Entry {
    pub seid: Seid,
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
    /// Ids of the access line from the access node (TR-101), for AAA.
    pub line: LineIds,
    /// Characteristics of the access loop from the access node (TR-101), for AAA.
    pub access_loop: Option<Box<AccessLoop>>,
    /// PPPoE service name that the subscriber asked for.
    pub service: Box<[u8]>,
    /// Its subscriber; with identities by user name `None` before authentication.
    pub subscriber: Option<SubscriberId>,
    pub stage: Stage,
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
    /// AAA's answer, as far as the policy depends on it.
    pub answer: AaaAnswer,
    /// State of the last Access-Accept, for the re-authentication that it asks for. Empty: none.
    pub state: Box<[u8]>,
    /// Attributes of AAA's answer that have no effect.
    pub without_effect: Option<Box<WithoutEffect>>,
    /// Number of the last request for an answer without a proof (Authorize-Only). It identifies late answers.
    pub authorization: u8,
    /// Access-Accept that waits for an address which another session still has.
    pub waiting: Option<Box<AccessAccept>>,
    /// Sessions that wait for an address of this one.
    pub heirs: Vec<Seid>,
    /// Policy in force. Its bindings are the session's addresses, in `instance`.
    pub policy: Arc<Policy>,
    /// Policy that replaces it when the user plane has accepted it.
    pub proposed: Option<Proposal>,
    /// What RADIUS servers want of the session and is not done yet, in order. A change that comes first is under way.
    pub requests: VecDeque<PendingRequest>,
    pub account: Account,
    /// Bindings in its last accounting record.
    pub recorded: Bindings,
    /// State of the session's events in the history.
    pub noted: Noted,
    /// Whether the store has a record of the session.
    pub stored: bool,
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
    /// Administrator who ends it.
    pub by: Option<Box<str>>,
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
    Closing(Ending),
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

/// Policy that is to replace the one in force.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub policy: Arc<Policy>,
    /// Change of authorization that it carries out, if any.
    pub change: Option<ChangeKey>,
}

impl Authorization {
    /// A session's bindings with the changed routes.
    fn bindings(&self, before: &Bindings) -> Bindings {
        let is_ipv4 = |net: &IpNet| matches!(net, IpNet::V4(_));
        let is_replaced = |binding: &Binding| {
            let mut same_family = self
                .routes
                .iter()
                .filter(|n| is_ipv4(n) == binding.is_ipv4());
            binding.role == Role::Route && (self.is_whole || same_family.next().is_some())
        };
        let stays = |net: &IpNet| self.routes.contains(net);
        let kept = before.filtered(|b| !is_replaced(b) || stays(&b.prefix));
        let claimed = self
            .claimed
            .iter()
            .map(|net| Binding::new(Role::Route, *net));
        // the claim was checked, and one that contradicts what the subscriber has got since is left out
        claimed.fold(kept, |all, route| all.with(route).unwrap_or(all))
    }
}

impl Proposal {
    /// Whether both are the same proposal.
    pub fn is(&self, other: &Proposal) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy) && self.change == other.change
    }
}

/// Name of what a RADIUS server wants of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKey {
    /// A request of the server (RFC 5176), which waits for its answer.
    Request(RequestKey),
    /// The server's answer to a new question; the number is unique in a session for as long as it matters.
    Answer(u8),
}

impl ChangeKey {
    /// Request that waits for an answer.
    pub fn request(self) -> Option<RequestKey> {
        match self {
            ChangeKey::Request(key) => Some(key),
            ChangeKey::Answer(_) => None,
        }
    }
}

/// What a RADIUS server wants of a session and is not done yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingRequest {
    pub key: ChangeKey,
    pub wanted: Wanted,
}

/// What a RADIUS server wants of a session.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Its end.
    End,
    /// Other values.
    Change(Box<Authorization>),
}

/// Values in place of those that AAA gave before.
#[derive(Clone, Debug)]
pub(crate) struct Authorization {
    pub answer: AaaAnswer,
    /// Whether it is a whole answer: what it does not say is taken away. Otherwise that stays.
    pub is_whole: bool,
    /// All Class attributes.
    pub class: Box<[Vec<u8>]>,
    /// Networks behind the subscriber's router, in place of those of the same families.
    pub routes: Box<[IpNet]>,
    /// Those of the routes that are allocated for the change and are not the session's yet.
    pub claimed: Vec<IpNet>,
    /// Address of the RADIUS server that asked for the change. `None`: the gateway has asked.
    pub by: Option<IpAddr>,
}

/// State of a session's rules at the user plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// User plane's SEID, once it has answered.
    pub up_seid: Option<u64>,
    /// User plane's SEID before the session was established again.
    pub up_seid_before: Option<u64>,
    /// URR ID. Each establishment uses another one.
    pub urr_id: u32,
    /// Whether a session establishment is pending.
    pub establishing: bool,
    /// Whether the association ended during a session establishment. The user plane may have the session under an unknown SEID.
    pub unsettled: bool,
    /// Whether the user plane did not know the SEID of a deletion, so that the session was established again to learn its SEID and its
    /// counters.
    pub sought: bool,
    /// Time of the next attempt to delete the session, after the user plane rejected one.
    pub delete_at: Option<Duration>,
    /// Whether the session counts in the resync window.
    pub put_back: bool,
    /// Address families whose rules were requested: IPv4, IPv6.
    pub families: [bool; 2],
    /// What was sent last, and what was sent before the pending modification.
    pub last_sent: Told,
    pub sent_before: Told,
    /// Proposed policy in the pending modification.
    pub sending: Option<Proposal>,
    /// Whether a modification is pending. There is at most one, because PFCP does not keep the order of two.
    pub modifying: bool,
    /// Number of the last modification. It identifies late answers.
    pub modification: u8,
    /// Number of requests for each address family. It identifies results of earlier requests.
    pub asked: [u8; 2],
}

/// Identity of the subscriber, as authenticated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub username: Box<[u8]>,
    pub class: Box<[Vec<u8>]>,
    pub attempt: u8,
}

/// Accounting state of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Time at which its first address family opened.
    pub started: Option<Started>,
    /// Usage that the user plane has reported.
    pub usage: Usage,
    pub next_interim: Option<Duration>,
    /// Time at which its session time-out ends it.
    pub ends_at: Option<Duration>,
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
        self.next_interim = interval.and_then(|interval| {
            let interval = interval.max(Duration::from_secs(1));
            let passed = (lasted.as_nanos() / interval.as_nanos()) as u32;
            let to_come = (passed.max(1)..).map(|number| jitter.time_of(number, interval));
            let next = to_come.into_iter().find(|at| *at > lasted);
            next.map(|at| now + (at - lasted))
        });
    }

    /// Sets the time at which the session time-out ends the session.
    pub fn arm_timeout(&mut self, now: Duration, granted: Option<Duration>) {
        let lasted = self.lasted(now);
        self.ends_at = granted.map(|granted| now + granted.saturating_sub(lasted));
    }
}

/// Usage reports that were counted, so that a repeated report is not counted twice. Each report has the usage since the previous one,
/// and a user plane repeats it until it is acknowledged. Reports are kept by URR, the latest URR first, because a report of the previous
/// URR may be repeated when the next URR already counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reports([(u32, Sequence); 6]);

impl Reports {
    /// Reports of one URR.
    pub fn of(urr_id: u32, numbers: Sequence) -> Self {
        let mut reports = Reports::default();
        reports.0[0] = (urr_id, numbers);
        reports
    }

    /// Whether a report is new. Marks it as counted.
    pub fn is_new(&mut self, urr_id: u32, number: u32) -> bool {
        let known = self.0.iter_mut().find(|(id, _)| *id == urr_id);
        if let Some((_, numbers)) = known {
            return numbers.is_new(number);
        }
        self.0.rotate_right(1);
        self.0[0] = (urr_id, Sequence::default());
        self.0[0].1.is_new(number)
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
            user_plane,
            segment,
            group,
            gateway_mac: MacAddr::default(),
            instance,
            circuit,
            access,
            line: LineIds::default(),
            access_loop: None,
            service: Box::default(),
            subscriber: None,
            stage: Stage::Connecting,
            link: None,
            rules: Rules::default(),
            who: Who::default(),
            names: None,
            servers: None,
            accepted_by: AcceptedBy::default(),
            answer: AaaAnswer::default(),
            state: Box::default(),
            without_effect: None,
            authorization: 0,
            waiting: None,
            heirs: Vec::new(),
            policy: Arc::default(),
            proposed: None,
            requests: VecDeque::new(),
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

    pub fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// Whether the session's end has begun. It is then not in the index of access lines or in the half-open list, and counts against no
    /// limit.
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
        self.stage = Stage::Closing(ending);
        self.link = None;
        self.proposed = None;
        self.account.next_interim = None;
        self.account.ends_at = None;
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

    /// Its IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.policy.forwarding.bindings.ipv4()
    }

    /// Its IPv6 prefix.
    pub fn ipv6(&self) -> Option<Ipv6Net> {
        self.policy.forwarding.bindings.ipv6()
    }

    /// Other prefixes that are routed to the session: delegated prefixes, and networks behind its router.
    pub fn routes(&self) -> impl Iterator<Item = IpNet> {
        let bindings = self.policy.forwarding.bindings.iter();
        let routed = bindings.filter(|b| matches!(b.role, Role::Delegated | Role::Route));
        routed.map(|binding| binding.prefix)
    }

    /// Adds a binding. It must not contradict the session's other bindings.
    pub fn hold(&mut self, binding: Binding) {
        let bindings = &mut Arc::make_mut(&mut self.policy).forwarding.bindings;
        if let Ok(with) = bindings.with(binding) {
            *bindings = with;
        }
    }

    /// Removes the bindings for which `which` returns true, and returns them.
    pub fn let_go(&mut self, which: impl Fn(&Binding) -> bool) -> Vec<Binding> {
        let bindings = &mut Arc::make_mut(&mut self.policy).forwarding.bindings;
        let gone = bindings.iter().filter(|b| which(b)).copied().collect();
        *bindings = bindings.filtered(|binding| !which(binding));
        gone
    }

    /// Change of authorization that is under way.
    pub fn change(&self) -> Option<(ChangeKey, &Authorization)> {
        match self.requests.front()? {
            PendingRequest {
                key,
                wanted: Wanted::Change(change),
            } => Some((*key, change)),
            _ => None,
        }
    }

    /// The same, to be altered.
    pub fn change_mut(&mut self) -> Option<&mut Authorization> {
        match &mut self.requests.front_mut()?.wanted {
            Wanted::Change(change) => Some(change),
            Wanted::End => None,
        }
    }

    /// AAA's answer with the change that is under way.
    pub fn wanted_answer(&self) -> Cow<'_, AaaAnswer> {
        match self.change() {
            Some((_, change)) if change.is_whole => Cow::Borrowed(&change.answer),
            Some((_, change)) => Cow::Owned(self.answer.changed_by(&change.answer)),
            None => Cow::Borrowed(&self.answer),
        }
    }

    /// The session's bindings with the change that is under way.
    pub fn wanted_bindings(&self) -> Cow<'_, Bindings> {
        let bindings = &self.policy.forwarding.bindings;
        match self.change() {
            Some((_, change)) if change.is_whole || !change.routes.is_empty() => {
                Cow::Owned(change.bindings(bindings))
            }
            _ => Cow::Borrowed(bindings),
        }
    }

    /// Makes a change that was under way part of AAA's answer.
    pub fn adopt_change(&mut self) -> Option<(ChangeKey, Box<Authorization>)> {
        let answer = self.wanted_answer().into_owned();
        let is_change = |first: &mut PendingRequest| matches!(first.wanted, Wanted::Change(_));
        let PendingRequest { key, wanted } = self.requests.pop_front_if(is_change)?;
        let Wanted::Change(change) = wanted else {
            return None;
        };
        self.answer = answer;
        if change.is_whole || !change.class.is_empty() {
            self.who.class.clone_from(&change.class);
        }
        Some((key, change))
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
        let account = [self.account.next_interim, self.account.ends_at];
        let times = [link, self.rules.delete_at].into_iter().chain(account);
        times.flatten().min()
    }
}

/// Session in the store. The first octet of the stored value is [`RECORD_VERSION`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub user_plane: String,
    pub group: String,
    /// Number of the group at that time. It determines the TEIDs.
    pub group_number: u16,
    pub instance: String,
    pub circuit: Circuit,
    pub pppoe_id: u16,
    pub line: LineIds,
    pub up_seid: u64,
    pub families: [bool; 2],
    pub username: Vec<u8>,
    pub class: Vec<Vec<u8>>,
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Net>,
    /// Start of the session in seconds since 1970.
    pub started_unix: Option<u32>,
    /// Packets and octets up, packets and octets down.
    pub usage: [u64; 4],
    pub interim_seconds: Option<u32>,
    pub timeout_seconds: Option<u32>,
    pub link: session::Snapshot,
    /// Fields that version 2 added.
    #[serde(skip)]
    pub second: Second,
    /// Fields that version 3 added.
    #[serde(skip)]
    pub third: Option<Third>,
    /// Fields that version 4 added.
    #[serde(skip)]
    pub fourth: Option<Fourth>,
    /// Fields that version 5 added.
    #[serde(skip)]
    pub fifth: Option<Fifth>,
    /// Fields that version 6 added.
    #[serde(skip)]
    pub sixth: Option<Sixth>,
    /// Fields that version 7 added.
    #[serde(skip)]
    pub seventh: Option<Seventh>,
    /// Fields that version 8 added.
    #[serde(skip)]
    pub eighth: Option<Eighth>,
}

/// Fields that version 2 added to [`Record`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Boot of the machine to whose clock `started_at` belongs; 0 for none.
    pub boot: u32,
    /// [`Started::at`] in milliseconds.
    pub started_at: u64,
    /// [`Started::before`].
    pub before: u32,
    /// Reports by URR [`BEFORE_FOURTH`]; version 4 has all of them.
    pub numbers: Sequence,
}

/// Fields that version 3 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Third {
    pub gateway_mac: MacAddr,
    pub servers: Option<String>,
    pub profile: Option<String>,
    /// [`Account::of_aaa`].
    pub of_aaa: [bool; 2],
}

/// Only URR before version 4.
pub(crate) const BEFORE_FOURTH: u32 = 1;

/// Fields that version 4 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fourth {
    /// [`Rules::urr_id`].
    pub urr_id: u32,
    pub reports: Reports,
    /// Seconds that the session had lasted when this was stored.
    pub lasted: u32,
}

/// Fields that version 5 added to [`Record`]. From version 5 on, they replace the earlier fields with the same meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fifth {
    pub answer: AaaAnswer,
    /// Policy in force.
    pub policy: Policy,
}

/// Fields that version 6 added to [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sixth {
    /// Subscriber's handle, and whether it is known by its user name instead of its access line.
    pub subscriber: Option<(SubscriberId, bool)>,
}

/// Fields that version 7 added to [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seventh {
    /// Who accepted the subscriber. Before version 7 it was the server group, or without one the configured users.
    pub accepted_by: AcceptedBy,
}

/// Fields that version 8 added to [`Record`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Eighth {
    /// [`Entry::service`].
    pub service: Box<[u8]>,
    /// [`Entry::names`].
    pub names: Option<Box<WrittenNames>>,
    /// Session with which its subscriber began.
    pub first: Option<Seid>,
    /// [`Entry::access_loop`].
    pub access_loop: Option<Box<AccessLoop>>,
    /// [`Entry::state`].
    pub state: Box<[u8]>,
    /// [`Entry::without_effect`].
    pub without_effect: Option<Box<WithoutEffect>>,
}

/// Stored accounting record that no server has acknowledged yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Owed {
    /// Socket and identifier, if the record may have been sent. A retransmission must be identical.
    pub slot: Option<(u16, u8)>,
    pub attributes: Box<[u8]>,
    /// Server group that receives it; version 2 had only one group.
    #[serde(skip)]
    pub servers: Option<String>,
}

/// Layout version of a stored session. A later version is rejected. Version 1 had only [`Record`].
pub(crate) const RECORD_VERSION: u8 = 8;

/// Encodes a value for the store, with the version first.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    extend(value, vec![RECORD_VERSION])
}

fn extend(value: &impl Serialize, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("a record has a size that serde can state")
}

/// Decodes a value of [`to_bytes`].
pub(crate) fn from_bytes<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, String> {
    match version(bytes)? {
        (2..=RECORD_VERSION, rest) => postcard::from_bytes(rest).map_err(|e| e.to_string()),
        (other, _) => Err(unknown(other)),
    }
}

fn version(bytes: &[u8]) -> Result<(u8, &[u8]), String> {
    let (version, rest) = bytes.split_first().ok_or("empty record")?;
    Ok((*version, rest))
}

fn unknown(version: u8) -> String {
    format!("record of version {version}, expected one up to {RECORD_VERSION}")
}

impl Record {
    /// Encodes the record in the version that its fields need. A record of an earlier version keeps that version.
    pub fn to_bytes(&self) -> Vec<u8> {
        let version = match (&self.third, &self.fourth, &self.fifth, &self.sixth) {
            (Some(_), Some(_), Some(_), Some(_)) => match (&self.seventh, &self.eighth) {
                (Some(_), Some(_)) => RECORD_VERSION,
                (Some(_), None) => 7,
                (None, _) => 6,
            },
            (Some(_), Some(_), Some(_), None) => 5,
            (Some(_), Some(_), None, _) => 4,
            (Some(_), None, ..) => 3,
            (None, ..) => 2,
        };
        let mut bytes = extend(&self.second, extend(self, vec![version]));
        if let Some(third) = &self.third {
            bytes = extend(third, bytes);
        }
        if let (4.., Some(fourth)) = (version, &self.fourth) {
            bytes = extend(fourth, bytes);
        }
        if let (5.., Some(fifth)) = (version, &self.fifth) {
            let AaaAnswer { profile, overrides } = &fifth.answer;
            bytes = extend(&(profile, overrides.encoded()), bytes);
            bytes = extend(&fifth.policy.to_bytes(), bytes);
        }
        if let (6.., Some(sixth)) = (version, &self.sixth) {
            bytes = extend(sixth, bytes);
        }
        if let (7.., Some(seventh)) = (version, &self.seventh) {
            bytes = extend(seventh, bytes);
        }
        if let (8.., Some(eighth)) = (version, &self.eighth) {
            bytes = extend(eighth, bytes);
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (version, rest) = version(bytes)?;
        if !(1..=RECORD_VERSION).contains(&version) {
            return Err(unknown(version));
        }
        let (mut record, rest): (Record, _) =
            postcard::take_from_bytes(rest).map_err(|e| e.to_string())?;
        let mut rest = rest;
        if version > 1 {
            record.second = take(&mut rest)?;
        }
        if version > 2 {
            record.third = Some(take(&mut rest)?);
        }
        if version > 3 {
            record.fourth = Some(take(&mut rest)?);
        }
        if version > 4 {
            let (profile, overrides): (_, Vec<(u8, Vec<u8>)>) = take(&mut rest)?;
            let overrides = Overrides::decoded(&overrides)?;
            let answer = AaaAnswer { profile, overrides };
            let policy: Vec<u8> = take(&mut rest)?;
            let policy = Policy::from_bytes(&policy)?;
            record.fifth = Some(Fifth { answer, policy });
        }
        if version > 5 {
            let sixth: Sixth = take(&mut rest)?;
            if sixth.subscriber.is_some_and(|(id, _)| id.0 >= MAX_SESSIONS) {
                return Err("its subscriber's handle is out of range".into());
            }
            record.sixth = Some(sixth);
        }
        if version > 6 {
            record.seventh = Some(take(&mut rest)?);
        }
        if version > 7 {
            record.eighth = Some(take(&mut rest)?);
        }
        Ok(record)
    }
}

/// Decodes the next of several values.
fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Result<T, String> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|e| e.to_string())?;
    *bytes = rest;
    Ok(value)
}

impl Owed {
    pub fn to_bytes(&self) -> Vec<u8> {
        extend(&self.servers, to_bytes(self))
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (version, rest) = version(bytes)?;
        if !(2..=RECORD_VERSION).contains(&version) {
            return Err(unknown(version));
        }
        let (mut owed, rest): (Owed, _) =
            postcard::take_from_bytes(rest).map_err(|e| e.to_string())?;
        if version > 2 {
            owed.servers = postcard::from_bytes(rest).map_err(|e| e.to_string())?;
        }
        Ok(owed)
    }
}

pub(crate) fn usage_to_array(u: Usage) -> [u64; 4] {
    [u.up_packets, u.up_octets, u.down_packets, u.down_octets]
}

pub(crate) fn usage_from_array(
    [up_packets, up_octets, down_packets, down_octets]: [u64; 4],
) -> Usage {
    Usage {
        up_packets,
        up_octets,
        down_packets,
        down_octets,
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
            assert_eq!(account.next_interim, Some(at(next)), "at {now}");
        }
        account.arm_timeout(at(500), Some(at(1000)));
        assert_eq!(account.ends_at, Some(at(1075)));
    }
}
