//! A session as the control plane keeps it, and as it is stored.

use crate::evaluate::AaaAnswer;
use crate::history::Families;
use crate::topology::{GroupId, InstanceId, SegmentId, Seid};
use core::net::Ipv4Addr;
use core::time::Duration;
use ipnet::{IpNet, Ipv6Net};
use pfcp::bng::Usage;
use policy::{Binding, Forwarding, Overrides, Policy, Role};
use serde::{Deserialize, Serialize};
use session::{Circuit, Session};
use std::sync::Arc;
use wire::eth::MacAddr;

/// A session.
pub(crate) struct Entry {
    pub seid: Seid,
    pub segment: SegmentId,
    /// The group that it began in.
    pub group: GroupId,
    /// The group's MAC address then: its subscriber knows the gateway by it.
    pub gateway_mac: MacAddr,
    pub instance: InstanceId,
    pub circuit: Circuit,
    pub pppoe_id: u16,
    /// What the access node says of the line (TR-101), for AAA.
    pub line: LineIds,
    pub stage: Stage,
    /// The PPP session, from PADS on.
    pub link: Option<Box<Session>>,
    pub rules: Rules,
    pub who: Who,
    /// The group of servers that let it in, to which its records go; without one the users did.
    pub servers: Option<Arc<str>>,
    /// What AAA said about its policy.
    pub answer: AaaAnswer,
    /// The policy in force. Its bindings are the addresses that the session holds, in `instance`.
    pub policy: Arc<Policy>,
    /// The policy that is wanted in its place, while the user plane has not accepted it yet.
    pub proposed: Option<Arc<Policy>>,
    pub account: Account,
    /// What the history was told.
    pub noted: Noted,
    /// The store has a record of it.
    pub stored: bool,
}

/// What the history was told of a session, and what it is to be told yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// When it dialled in, in seconds since 1970; 0 after a restart.
    pub dialled: u32,
    pub refused: bool,
    pub online: bool,
    pub addresses: Families,
    /// Who ends it.
    pub by: Option<Box<str>>,
}

/// Circuit and remote id of the subscriber's line (TR-101, RFC 4679).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineIds {
    pub circuit_id: Option<Box<[u8]>>,
    pub remote_id: Option<Box<[u8]>>,
}

/// How far a session has come.
pub(crate) enum Stage {
    /// Its PADR was accepted; PADS waits for the user plane.
    Admitted(Box<session::discovery::Padr>),
    /// PADS is out; no address family is open yet.
    Connecting,
    /// At least one address family was open.
    Online,
    /// It ended; the user plane has not given its last counters yet.
    Closing(Ending),
}

/// How a session ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub cause: session::Cause,
    /// How long it lasted.
    pub lasted: Duration,
    /// Seconds since 1970.
    pub unix: u32,
}

/// What the user plane has of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The user plane's SEID, once it has answered.
    pub up_seid: Option<u64>,
    /// What that was before it was told the whole session anew.
    pub up_seid_before: Option<u64>,
    /// The URR by which it measures: another each time that it is told the whole session.
    pub urr_id: u32,
    /// It was asked to take the session and has not answered yet.
    pub establishing: bool,
    /// It was asked to take the session, and the association ended before it had answered: it may have it under a name that
    /// we do not know.
    pub unsettled: bool,
    /// It did not know the name by which the session was to be deleted, and was told the whole session once more to learn by
    /// which name it has it, and what that has to report.
    pub sought: bool,
    /// It refused to delete the session, and is asked again then.
    pub delete_at: Option<Duration>,
    /// It counts among those that are being put back at once.
    pub put_back: bool,
    /// Families whose rules were asked for: IPv4, IPv6.
    pub families: [bool; 2],
    /// What it was told last about packets, and before the modification that is under way.
    pub last_sent: Forwarding,
    pub sent_before: Forwarding,
    /// The proposed policy that the modification under way carries.
    pub sending: Option<Arc<Policy>>,
    /// A modification is under way. Only one at a time is: PFCP says nothing of the order in which two arrive.
    pub modifying: bool,
    /// Counts modifications, so that a late answer is known as such.
    pub modification: u8,
    /// Counts how often each family was wanted, so that what was done for an earlier time is known as such.
    pub asked: [u8; 2],
}

/// Who the subscriber is, as AAA says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub username: Box<[u8]>,
    pub class: Box<[Vec<u8>]>,
    pub attempt: u8,
}

/// What is recorded of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// When its first address family opened.
    pub started: Option<Started>,
    /// What it carried, as far as the user plane has told.
    pub usage: Usage,
    pub next_interim: Option<Duration>,
    /// When its granted time is over.
    pub ends_at: Option<Duration>,
    /// Which of the user plane's reports are in `usage`.
    pub reports: Reports,
}

/// When a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// On the clock of timers; if it began before the machine's present run, when it was resumed in this one.
    pub at: Duration,
    /// How many seconds it had lasted by then.
    pub before: u32,
    /// Seconds since 1970.
    pub unix: u32,
}

impl Account {
    /// How long the session has lasted.
    pub fn lasted(&self, now: Duration) -> Duration {
        let lasted = |s: Started| {
            now.saturating_sub(s.at)
                .saturating_add(Duration::from_secs(s.before.into()))
        };
        self.started.map_or(Duration::ZERO, lasted)
    }

    /// When the next interim record is due: at multiples of the interval since the start, whatever died in between.
    pub fn arm_interim(&mut self, now: Duration, interval: Option<Duration>) {
        let lasted = self.lasted(now);
        self.next_interim = interval.map(|interval| {
            let interval = interval.max(Duration::from_secs(1));
            let since = lasted.as_nanos() % interval.as_nanos();
            now + interval - Duration::from_nanos(since as u64)
        });
    }

    /// When the time that was granted from the start is over.
    pub fn arm_timeout(&mut self, now: Duration, granted: Option<Duration>) {
        let lasted = self.lasted(now);
        self.ends_at = granted.map(|granted| now + granted.saturating_sub(lasted));
    }
}

/// The usage reports that were added up, so that one which comes again adds nothing: each says what was used since the one
/// before, and a user plane repeats it until it knows that it is safe. They are kept apart by the URR that they are of, the
/// latest first: what was reported by the rule before may come again when the next one counts already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reports([(u32, Sequence); 6]);

impl Reports {
    /// Those by one rule.
    pub fn of(urr_id: u32, numbers: Sequence) -> Self {
        let mut reports = Reports::default();
        reports.0[0] = (urr_id, numbers);
        reports
    }

    /// Whether a report is new. It is not from then on.
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

/// Sequence (UR-SEQN) of the reports by one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    /// One more than the highest; 0: none came.
    next: u32,
    /// The highest and the 31 before it, the highest in the lowest bit.
    seen: u32,
}

impl Sequence {
    /// Whether a number is new. It is not from then on.
    fn is_new(&mut self, number: u32) -> bool {
        if number >= self.next {
            let ahead = number - self.next + 1;
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = number.saturating_add(1);
            return true;
        }
        let bit = 1u32.checked_shl(self.next - 1 - number).unwrap_or(0);
        let new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

impl Entry {
    /// Not online yet.
    pub fn is_half_open(&self) -> bool {
        matches!(self.stage, Stage::Admitted(_) | Stage::Connecting)
    }

    pub fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    /// Its IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.policy.forwarding.bindings.ipv4()
    }

    /// Its IPv6 prefix.
    pub fn ipv6(&self) -> Option<Ipv6Net> {
        self.policy.forwarding.bindings.ipv6()
    }

    /// What is routed to it besides: delegated prefixes, and networks behind its router.
    pub fn routes(&self) -> impl Iterator<Item = IpNet> {
        let bindings = self.policy.forwarding.bindings.iter();
        let routed = bindings.filter(|b| matches!(b.role, Role::Delegated | Role::Route));
        routed.map(|binding| binding.prefix)
    }

    /// The session holds a binding from now on, which contradicts none that it has.
    pub fn hold(&mut self, binding: Binding) {
        let bindings = &mut Arc::make_mut(&mut self.policy).forwarding.bindings;
        if let Ok(with) = bindings.with(binding) {
            *bindings = with;
        }
    }

    /// Takes away the bindings for which `which` is true.
    pub fn let_go(&mut self, which: impl Fn(&Binding) -> bool) -> Vec<Binding> {
        let bindings = &mut Arc::make_mut(&mut self.policy).forwarding.bindings;
        let gone = bindings.iter().filter(|b| which(b)).copied().collect();
        *bindings = bindings.filtered(|binding| !which(binding));
        gone
    }

    /// Whether it was given a policy, and is not ending.
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

    /// What the user plane is to be told of a policy now.
    pub fn forwarding(&self, policy: &Policy) -> Forwarding {
        policy
            .forwarding
            .with_bindings(|binding| self.is_open(binding))
    }

    /// When the session next wants time to pass.
    pub fn wake_at(&self) -> Option<Duration> {
        let link = self.link.as_ref().and_then(|link| link.poll_at());
        let account = [self.account.next_interim, self.account.ends_at];
        let times = [link, self.rules.delete_at].into_iter().chain(account);
        times.flatten().min()
    }
}

/// A session in the store. The first octet of the stored value is [`RECORD_VERSION`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub user_plane: String,
    pub group: String,
    /// The group's number when it was stored: TEIDs follow from it.
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
    /// Seconds since 1970 when it began.
    pub started_unix: Option<u32>,
    /// Packets and octets up, packets and octets down.
    pub usage: [u64; 4],
    pub interim_seconds: Option<u32>,
    pub timeout_seconds: Option<u32>,
    pub link: session::Snapshot,
    /// What version 2 put behind all this.
    #[serde(skip)]
    pub second: Second,
    /// What version 3 put behind that.
    #[serde(skip)]
    pub third: Option<Third>,
    /// What version 4 put behind that.
    #[serde(skip)]
    pub fourth: Option<Fourth>,
    /// What version 5 put behind that.
    #[serde(skip)]
    pub fifth: Option<Fifth>,
}

/// What version 2 added to [`Record`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Tells the machine's run, of whose clock `started_at` is; 0: none.
    pub boot: u32,
    /// [`Started::at`] in milliseconds.
    pub started_at: u64,
    /// [`Started::before`].
    pub before: u32,
    /// Reports by URR [`BEFORE_FOURTH`]; version 4 has all of them.
    pub numbers: Sequence,
}

/// What version 3 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Third {
    pub gateway_mac: MacAddr,
    pub servers: Option<String>,
    pub profile: Option<String>,
    /// [`Account::of_aaa`].
    pub of_aaa: [bool; 2],
}

/// The only URR that there was before version 4.
pub(crate) const BEFORE_FOURTH: u32 = 1;

/// What version 4 added to [`Record`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fourth {
    /// [`Rules::urr_id`].
    pub urr_id: u32,
    pub reports: Reports,
    /// How many seconds it had lasted when this was stored.
    pub lasted: u32,
}

/// What version 5 added to [`Record`]. Of the earlier fields that say the same, versions before it alone are believed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fifth {
    pub answer: AaaAnswer,
    /// The policy in force.
    pub policy: Policy,
}

/// An accounting record that no server has yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Owed {
    /// Socket and identifier, if it may have been sent: what is sent again has to be the same.
    pub slot: Option<(u16, u8)>,
    pub attributes: Box<[u8]>,
    /// The group of servers that it is for; version 2 knew only one.
    #[serde(skip)]
    pub servers: Option<String>,
}

/// The layout of what is stored of a session; a later one is refused, not guessed. Version 1 knew nothing but [`Record`].
pub(crate) const RECORD_VERSION: u8 = 5;

/// A value of the store, behind the version.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    extend(value, vec![RECORD_VERSION])
}

fn extend(value: &impl Serialize, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("a record has a size that serde can state")
}

/// Reads what [`to_bytes`] has written.
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
    /// As of the version that has what it has: an earlier one's stays one of that.
    pub fn to_bytes(&self) -> Vec<u8> {
        let version = match (&self.third, &self.fourth, &self.fifth) {
            (Some(_), Some(_), Some(_)) => RECORD_VERSION,
            (Some(_), Some(_), None) => 4,
            (Some(_), None, _) => 3,
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
        Ok(record)
    }
}

/// Reads the next of several values.
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
            account.arm_interim(at(now), Some(at(60)));
            assert_eq!(account.next_interim, Some(at(next)), "at {now}");
        }
        account.arm_timeout(at(500), Some(at(1000)));
        assert_eq!(account.ends_at, Some(at(1075)));
    }
}
