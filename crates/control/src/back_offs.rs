//! Back-off of MAC addresses and access lines whose set-ups fail, and lock-out of access lines whose logins are rejected.
//!
//! Only known access lines have any: on other lines a home could fail with its neighbour's MAC address, and keep the neighbour out.

use crate::subscribers::Identity;
use crate::topology::PortId;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use wire::eth::MacAddr;

/// Maximum number of senders that are remembered. Above it, the one that is remembered for longest is forgotten.
const MOST: usize = 65_536;

/// Time after the last failure, and after the end of the last hold, for which a sender is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The set-ups of a line are held after so many times the failures after which those of a MAC address are.
const LINE_TIMES: u32 = 4;

/// What fails on an access line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// Set-ups of a MAC address.
    OfMac(MacAddr),
    /// Set-ups of MAC addresses that are not held themselves: of a client that changes its address all the time. A client that fails with one
    /// address does not keep the others of its line out.
    OfLine,
    /// Logins.
    Logins,
}

/// Sender of discovery packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    line: Identity,
    what: What,
}

impl Sender {
    /// A MAC address on an access line. `None` if the line is not known.
    pub fn of_mac(line: Identity, mac: MacAddr) -> Option<Self> {
        let what = What::OfMac(mac);
        let is_known = matches!(line, Identity::Circuit(..) | Identity::Vlans(..));
        is_known.then_some(Sender { line, what })
    }

    /// Something else of its access line.
    pub fn with(&self, what: What) -> Self {
        let line = self.line.clone();
        Sender { line, what }
    }

    /// What fails.
    pub fn what(&self) -> What {
        self.what
    }

    /// Port of the access line.
    pub fn port(&self) -> Option<PortId> {
        match self.line {
            Identity::Circuit(port, _) | Identity::Vlans(port, ..) => Some(port),
            Identity::Mac(..) | Identity::User(_) => None,
        }
    }

    /// Access line.
    pub fn line(&self) -> &Identity {
        &self.line
    }
}

/// After how many failures a sender is held, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Failures in a row; 0: never.
    pub after: u32,
    /// Time of the first hold. Each further failure doubles it.
    pub first: Duration,
    /// Longest hold.
    pub longest: Duration,
}

impl Rule {
    /// Times in seconds.
    pub fn new(after: u32, first: u32, longest: u32) -> Self {
        let [first, longest] = [first, longest].map(|time| Duration::from_secs(time.into()));
        Rule {
            after,
            first,
            longest,
        }
    }

    /// The rule of a line whose MAC addresses have this one.
    pub fn of_line(self) -> Self {
        let after = self.after * LINE_TIMES;
        Rule { after, ..self }
    }
}

/// Sender whose set-ups fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Outer and inner VLAN id of the last failure.
    pub vlans: [Option<u16>; 2],
    /// MAC address of the last failure.
    pub mac: MacAddr,
    /// Failures in a row.
    failures: u32,
    /// Number of holds.
    pub holds: u32,
    /// Discovery packets without an answer.
    pub unanswered: u64,
    /// Times of the first and the last failure.
    pub since: Duration,
    last: Duration,
    /// End of the hold.
    until: Duration,
}

impl Failing {
    /// Time until the hold ends.
    pub fn held(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }

    fn forget_at(&self) -> Duration {
        self.last.max(self.until) + REMEMBERED
    }
}

/// Senders whose set-ups fail, bounded.
#[derive(Debug, Default)]
pub(crate) struct BackOffs {
    all: HashMap<Arc<Sender>, Failing>,
    /// Each remembered sender once, with a time at which it may be forgotten.
    by_age: VecDeque<(Duration, Arc<Sender>)>,
}

impl BackOffs {
    /// Whether nobody failed lately.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Counts a failure, for which there is room. Returns the time of the hold that begins with it.
    pub fn fail(
        &mut self,
        now: Duration,
        sender: Sender,
        rule: Rule,
        vlans: [Option<u16>; 2],
        mac: MacAddr,
    ) -> Option<Duration> {
        let sender = Arc::new(sender);
        let failing = self.all.entry(sender.clone()).or_insert_with(|| {
            self.by_age.push_back((now + REMEMBERED, sender));
            Failing {
                vlans,
                mac,
                failures: 0,
                holds: 0,
                unanswered: 0,
                since: now,
                last: now,
                until: Duration::ZERO,
            }
        });
        (failing.vlans, failing.mac, failing.last) = (vlans, mac, now);
        failing.failures = failing.failures.saturating_add(1);
        let further = failing.failures.checked_sub(rule.after)?;
        let hold = rule.first.saturating_mul(1 << further.min(16));
        let hold = hold.min(rule.longest);
        failing.until = now + hold;
        failing.holds = failing.holds.saturating_add(1);
        Some(hold)
    }

    /// Forgets the failures of a sender.
    pub fn succeed(&mut self, sender: &Sender) {
        if let Some(failing) = self.all.get_mut(sender) {
            (failing.failures, failing.until) = (0, Duration::ZERO);
        }
    }

    /// Whether a sender is held; counts its packet if so.
    pub fn is_held(&mut self, now: Duration, sender: &Sender) -> bool {
        let failing = self.all.get_mut(sender);
        let held = failing.filter(|failing| now < failing.until);
        held.is_some_and(|failing| {
            failing.unanswered += 1;
            true
        })
    }

    /// Forgets all senders but these.
    pub fn retain(&mut self, mut keeps: impl FnMut(&Sender, &Failing) -> bool) {
        let all = &mut self.all;
        all.retain(|sender, failing| keeps(sender, failing));
        self.by_age.retain(|(_, sender)| all.contains_key(sender));
    }

    /// Senders that were held, with their failures.
    pub fn held(&self) -> impl Iterator<Item = (&Sender, &Failing)> {
        let all = self
            .all
            .iter()
            .map(|(sender, failing)| (&**sender, failing));
        all.filter(|(_, failing)| failing.holds > 0)
    }

    /// Makes room for a failure of a sender. Returns whether another sender with recent failures had to be forgotten.
    pub fn make_room(&mut self, now: Duration, sender: &Sender) -> bool {
        self.forget_old(now);
        if self.all.contains_key(sender) || self.all.len() < MOST {
            return false;
        }
        let oldest = self.by_age.pop_front();
        oldest.is_some_and(|(_, oldest)| self.all.remove(&oldest).is_some())
    }

    /// Forgets senders without recent failures.
    fn forget_old(&mut self, now: Duration) {
        let is_due = |(at, _): &mut (Duration, Arc<Sender>)| *at <= now;
        while let Some((_, sender)) = self.by_age.pop_front_if(is_due) {
            match self.all.get(&sender).map(Failing::forget_at) {
                Some(at) if at > now => self.by_age.push_back((at, sender)),
                _ => {
                    self.all.remove(&sender);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(n: u32) -> Sender {
        let [.., a, b] = n.to_be_bytes();
        let line = Identity::Vlans(PortId(1), 100, 7);
        Sender::of_mac(line, MacAddr([2, 0, 0, 0, a, b])).expect("the line is known")
    }

    fn fail(back_offs: &mut BackOffs, at: Duration, n: u32) -> Option<Duration> {
        let rule = Rule::new(2, 5, 60);
        back_offs.make_room(at, &sender(n));
        back_offs.fail(at, sender(n), rule, [Some(100), Some(7)], MacAddr::ZERO)
    }

    #[test]
    fn a_hold_doubles_up_to_the_longest_and_is_forgotten_in_time() {
        let mut back_offs = BackOffs::default();
        let mut now = Duration::ZERO;
        let mut holds = Vec::new();
        for _ in 0..8 {
            let hold = fail(&mut back_offs, now, 1).unwrap_or_default();
            assert_eq!(back_offs.is_held(now, &sender(1)), !hold.is_zero());
            assert!(!back_offs.is_held(now + hold, &sender(1)));
            holds.push(hold.as_secs());
            now += hold;
        }
        assert_eq!(holds, [0, 5, 10, 20, 40, 60, 60, 60]);
        assert_eq!(fail(&mut back_offs, now + REMEMBERED, 1), None);
        assert_eq!(back_offs.all.len(), 1);
    }

    #[test]
    fn so_many_senders_are_remembered_and_in_the_end_none() {
        let mut back_offs = BackOffs::default();
        let now = Duration::from_secs(1);
        for n in 0..MOST as u32 {
            fail(&mut back_offs, now, n);
        }
        assert_eq!((back_offs.all.len(), back_offs.by_age.len()), (MOST, MOST));
        assert!(!back_offs.make_room(now, &sender(9)), "it is known");
        assert!(back_offs.make_room(now, &sender(0).with(What::OfLine)));
        assert!(!back_offs.all.contains_key(&sender(0)), "the oldest one");
        fail(&mut back_offs, now, 0);
        assert_eq!((back_offs.all.len(), back_offs.by_age.len()), (MOST, MOST));
        back_offs.forget_old(now + REMEMBERED);
        assert!(back_offs.is_empty() && back_offs.by_age.is_empty());
    }

    #[test]
    fn lines_that_nobody_knows_have_none() {
        let line = Identity::Mac(PortId(1), Some(100), MacAddr::ZERO);
        assert_eq!(Sender::of_mac(line, MacAddr::ZERO), None);
    }
}
