//! What the control plane refused, dropped or lost, by name.

use northbound::DropCounter;

macro_rules! counters {
    ($($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)*) => {
        /// Why something was refused, dropped or lost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($(#[doc = $meaning])+ $variant,)* }

        impl Counter {
            /// Every counter.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];

            /// The name that operators see.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }

            /// One sentence.
            pub fn meaning(self) -> String {
                match self { $(Counter::$variant => concat!($($meaning),+).trim().to_owned(),)* }
            }
        }
    };
}

counters! {
    /// A frame came through a tunnel, or was sent into one, that belongs to no session and to none that has ended.
    UnknownTunnel = "unknown-tunnel",
    /// A frame came through the tunnel of a session that has ended, or a user plane did not have a session's tunnel yet or any more:
    /// expected when sessions end and after restarts.
    StaleTunnel = "stale-tunnel",
    /// A GTP-U packet from an address that is no configured user plane's.
    UnknownUserPlane = "unknown-user-plane",
    /// A redirected frame could not be read.
    MalformedFrame = "malformed-frame",
    /// A frame in a session's tunnel carried another session's MAC address or PPPoE session id.
    ForeignFrame = "foreign-frame",
    /// A PADI or PADR came from a port or S-VLAN that is in no access segment.
    UnknownSegment = "unknown-segment",
    /// A discovery packet was not answered: another service was asked for, or it was not meant for us.
    DiscoveryIgnored = "discovery-ignored",
    /// A PADR was refused: its AC-Cookie is not ours, or too old.
    BadCookie = "bad-cookie",
    /// A PADR was refused: as many sessions as configured exist.
    SessionTableFull = "session-table-full",
    /// A PADR was refused: every PPPoE session id of its access segment is in use or resting.
    SessionIdsExhausted = "session-ids-exhausted",
    /// The oldest session that was not online yet gave way to a new one.
    HalfOpenShed = "half-open-shed",
    /// A session was replaced: its subscriber dialled in anew.
    Redialled = "redialled",
    /// No IPv4 address was left for a subscriber.
    Ipv4PoolExhausted = "ipv4-pool-exhausted",
    /// No IPv6 prefix was left for a subscriber.
    Ipv6PoolExhausted = "ipv6-pool-exhausted",
    /// An address, prefix or route that AAA chose is in use, reserved, or overlaps a pool or what another subscriber has.
    FixedAddressUnusable = "fixed-address-unusable",
    /// A subscriber was refused by AAA.
    AuthenticationRejected = "authentication-rejected",
    /// A subscriber was refused because no AAA server answered.
    AuthenticationUnavailable = "authentication-unavailable",
    /// A Start or Stop was not recorded: too many waited for a server already, or it did not fit into RADIUS.
    AccountingLost = "accounting-lost",
    /// A user plane refused a change of a session's policy: the policy before stays in force.
    PolicyRefused = "policy-refused",
    /// A user plane refused a request about a session.
    UserPlaneRefused = "user-plane-refused",
    /// A user plane did not answer a request about a session.
    UserPlaneSilent = "user-plane-silent",
    /// A PADR was refused: its user plane is not associated.
    UserPlaneAbsent = "user-plane-absent",
    /// A PADI was not answered, or a PADR refused: the user plane is drained and takes no new sessions.
    Drained = "drained",
    /// A PADI was not answered, or a PADR refused: the store's disk is slow, full or failing, and takes no new sessions.
    StoreBehind = "store-behind",
    /// A session ended with its user plane, which the configuration has no more and which did not say in time what was used last.
    TakenOutUnheard = "taken-out-unheard",
    /// A usage report named no session.
    UnknownReport = "unknown-report",
    /// A stored session could not be resumed after a restart and was ended.
    NotResumed = "not-resumed",
    /// An event is not in the history: too much waited for its disk already.
    HistoryLost = "history-lost",
    /// An attempt to dial in that came to nothing is not in the history: there were more than 100 a second for long.
    AttemptsNotKept = "attempts-not-kept",
}

/// The counters' values.
#[derive(Clone, Debug)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; Counter::ALL.len()])
    }
}

impl Counters {
    /// Counts one.
    pub fn count(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    /// How often it was counted.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// All of them, for `show drops`.
    pub fn rows(&self) -> Vec<DropCounter> {
        let row = |&c: &Counter| row(c.name(), self.get(c), c.meaning());
        Counter::ALL.iter().map(row).collect()
    }
}

/// A row of the control plane for `show drops`.
pub fn row(name: &str, count: u64, meaning: String) -> DropCounter {
    DropCounter {
        plane: "control-plane".into(),
        name: name.into(),
        count,
        meaning,
    }
}

/// The RADIUS client's part of `show drops`.
pub(crate) fn radius_rows(clients: impl Iterator<Item = aaa::Counters>) -> Vec<DropCounter> {
    let clients: Vec<aaa::Counters> = clients.collect();
    let sum = |one: fn(&aaa::Counters) -> u64| clients.iter().map(one).sum::<u64>();
    [
        ("radius-unauthentic-reply", sum(|c| c.unauthentic_replies), "A RADIUS reply had a wrong authenticator, or no Message-Authenticator: check the shared secret."),
        ("radius-unexpected-reply", sum(|c| c.unexpected_replies), "A RADIUS reply answered nothing that was asked."),
        ("radius-mismatched-reply", sum(|c| c.mismatched_replies), "A RADIUS reply was of a kind that does not answer the request."),
        ("radius-unusable-accept", sum(|c| c.unusable_accepts), "An Access-Accept asked for what the gateway cannot do; the subscriber was refused."),
        ("radius-unanswered", sum(|c| c.unanswered), "A RADIUS request was given up: no server answered."),
        ("radius-postponed", sum(|c| c.postponed), "A Start or Stop was put off: no server answered. It is offered again."),
        ("radius-queue-full", sum(|c| c.queue_full), "A RADIUS request was not made because too many were open."),
        ("radius-unsendable", sum(|c| c.unsendable), "A RADIUS request did not fit into a packet."),
    ]
    .into_iter()
    .map(|(name, count, meaning)| row(name, count, meaning.into()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own_and_a_meaning() {
        let names: std::collections::HashSet<_> = Counter::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        assert!(Counter::ALL.iter().all(|c| c.meaning().ends_with('.')));
        let mut counters = Counters::default();
        counters.count(Counter::BadCookie);
        let rows = counters.rows();
        assert_eq!(rows.iter().map(|r| r.count).sum::<u64>(), 1);
        assert_eq!(rows[Counter::BadCookie as usize].count, 1);
    }
}
