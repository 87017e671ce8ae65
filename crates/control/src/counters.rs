//! Counters of what the control plane rejected, dropped or lost.

use northbound::DropCounter;

macro_rules! counters {
    ($($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)*) => {
        /// Reason for which something was rejected, dropped or lost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($(#[doc = $meaning])+ $variant,)* }

        impl Counter {
            /// Every counter.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];

            /// Name that operators see.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }

            /// Meaning in one sentence.
            pub fn meaning(self) -> String {
                match self { $(Counter::$variant => concat!($($meaning),+).trim().to_owned(),)* }
            }
        }
    };
}

counters! {
    /// A frame used a tunnel that belongs to no current or recent session.
    UnknownTunnel = "unknown-tunnel",
    /// A frame came through the tunnel of an ended session, or the user plane did not have a session's tunnel: expected when sessions
    /// end and after restarts.
    StaleTunnel = "stale-tunnel",
    /// A GTP-U packet came from an address of no configured user plane.
    UnknownUserPlane = "unknown-user-plane",
    /// A redirected frame was malformed.
    MalformedFrame = "malformed-frame",
    /// A frame in a session's tunnel carried another session's MAC address or PPPoE session id.
    ForeignFrame = "foreign-frame",
    /// A PADI or PADR came from a port or S-VLAN outside all access segments, or with an inner tag that is no C-tag (0x8100).
    UnknownSegment = "unknown-segment",
    /// A discovery packet was not answered: it requested another service or was not for this gateway.
    DiscoveryIgnored = "discovery-ignored",
    /// A PADI was not answered: too many others waited for their answers (65,536, or 16 MiB of them), because of `pado-delay` or because the
    /// gateway was busy.
    OffersFull = "offers-full",
    /// A PADR was rejected: its AC-Cookie is invalid or too old.
    BadCookie = "bad-cookie",
    /// A PADI was not answered, or a PADR rejected: the configured maximum of sessions is reached.
    SessionTableFull = "session-table-full",
    /// A PADI was not answered, or a PADR rejected: every PPPoE session id of its access segment is in use, or was released less than
    /// 60 seconds ago.
    SessionIdsExhausted = "session-ids-exhausted",
    /// A session was rejected: its subscriber or user name has as many as the access profile (`sessions-per-subscriber`,
    /// `sessions-per-user`) or Port-Limit allows.
    SubscriberLimit = "subscriber-limit",
    /// A PADR was rejected: its MAC address has as many sessions as the access profile allows (`sessions-per-mac`), and all of them
    /// answer.
    MacLimit = "mac-limit",
    /// A PADR was rejected: its VLAN has as many sessions as the access profile allows (`sessions-per-vlan`).
    VlanLimit = "vlan-limit",
    /// A PADR was rejected: its access port has as many sessions as the access profile allows (`sessions-per-port`).
    AccessPortLimit = "access-port-limit",
    /// A PADI was not answered, or a PADR rejected: set-ups of its MAC address or line failed (`setup-back-off`; `show protection`).
    SetupBackOff = "setup-back-off",
    /// A PADI was not answered, or a PADR rejected: logins of its access line were rejected (`lock-out`; `show protection`).
    LineLockedOut = "line-locked-out",
    /// A sender was forgotten with its failed set-ups: 65,536 are remembered.
    BackOffsFull = "back-offs-full",
    /// A PADR was rejected: too many others waited for sessions of their MAC addresses to answer.
    ClaimsFull = "claims-full",
    /// A PADI was not answered, or a PADR rejected: as many sessions as `limits half-open` allows are being set up.
    HalfOpenFull = "half-open-full",
    /// A PADI was not answered, nor repeated within 12 seconds: meanwhile more authentications waited for the RADIUS servers than they
    /// answer in 4 seconds.
    AaaCongested = "aaa-congested",
    /// A PADI was not answered, nor repeated within 12 seconds: meanwhile control packets waited for more than 100 ms. The control plane
    /// lacks CPU time.
    ControlPlaneBusy = "control-plane-busy",
    /// A half-open session was ended for a new one: its subscriber had not authenticated within 2 seconds.
    HalfOpenShed = "half-open-shed",
    /// A session was replaced: its subscriber reconnected.
    Redialled = "redialled",
    /// No IPv4 address was free for a subscriber.
    Ipv4PoolExhausted = "ipv4-pool-exhausted",
    /// No IPv6 prefix was free for a subscriber.
    Ipv6PoolExhausted = "ipv6-pool-exhausted",
    /// An address, prefix or route from AAA is in use or reserved, or overlaps a pool or another subscriber's addresses.
    FixedAddressUnusable = "fixed-address-unusable",
    /// A known attribute of an Access-Accept was ignored: its value cannot be used, or it came more often than it may.
    AttributeIgnored = "attribute-ignored",
    /// An attribute of an Access-Accept had no effect: a dictionary knows it, and no mapping says what it means.
    AttributeNotEnforced = "attribute-not-enforced",
    /// An attribute of an Access-Accept was ignored: no dictionary knows it.
    AttributeUnknown = "attribute-unknown",
    /// AAA rejected a subscriber.
    AuthenticationRejected = "authentication-rejected",
    /// A subscriber was rejected because AAA could not decide: no server answered, or too much waited for an answer.
    AuthenticationUnavailable = "authentication-unavailable",
    /// A subscriber was accepted by the local users because no RADIUS server answered.
    FallbackLocalUsers = "fallback-local-users",
    /// A subscriber was accepted by its last Access-Accept because no RADIUS server answered.
    FallbackLastPolicy = "fallback-last-policy",
    /// The oldest answer for `fallback: last-policy` was removed early: there are as many as `limits sessions` allows.
    LastAnswersFull = "last-answers-full",
    /// The oldest pools of a CoA-Request for a next connection were removed early: there are as many as `limits sessions` allows.
    NextPoolsFull = "next-pools-full",
    /// A pool of a CoA-Request had no effect at the next connection: the subscriber's network instance does not have it any more.
    NextPoolGone = "next-pool-gone",
    /// A subscriber that is offline was forgotten with the addresses that it had from pools (`sticky-addresses`): as many are remembered as
    /// `limits sessions` allows.
    StickyAddressesFull = "sticky-addresses-full",
    /// A subscriber was rejected: too many passwords of local users waited to be compared with their hashes.
    PasswordQueueFull = "password-queue-full",
    /// A subscriber was rejected: its password was not compared with its hash within 5 seconds.
    PasswordLate = "password-late",
    /// A Start or Stop was lost: too many records waited for a server, or it did not fit into RADIUS.
    AccountingLost = "accounting-lost",
    /// A user plane rejected a change of a session's policy: the previous policy stays in force.
    PolicyRefused = "policy-refused",
    /// A user plane rejected a request about a session.
    UserPlaneRefused = "user-plane-refused",
    /// A user plane did not answer a request about a session.
    UserPlaneSilent = "user-plane-silent",
    /// A PADI was not answered, or a PADR rejected: its user plane is not associated.
    UserPlaneAbsent = "user-plane-absent",
    /// A PADI was not answered, or a PADR rejected: the user plane is drained and takes no new sessions.
    Drained = "drained",
    /// A PADI was not answered, or a PADR rejected: the store's disk is slow, full or failing.
    StoreBehind = "store-behind",
    /// A session ended without its last counters: its user plane was removed and did not report them in time.
    TakenOutUnheard = "taken-out-unheard",
    /// A usage report named an unknown session.
    UnknownReport = "unknown-report",
    /// A stored session was not resumed after a restart, and ended.
    NotResumed = "not-resumed",
    /// An event was lost: too many events waited for the history's disk.
    HistoryLost = "history-lost",
    /// A failed connection attempt is not in the history: there were more than 100 a second for a long time.
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
        ("radius-unexpected-reply", sum(|c| c.unexpected_replies), "A RADIUS reply matched no open request."),
        ("radius-mismatched-reply", sum(|c| c.mismatched_replies), "A RADIUS reply had a code that does not answer the \
            request."),
        ("radius-unusable-accept", sum(|c| c.unusable_accepts), "An Access-Accept required something that the gateway does \
            not support; the subscriber was rejected."),
        ("radius-unanswered", sum(|c| c.unanswered), "A RADIUS request was given up: no server answered."),
        ("radius-postponed", sum(|c| c.postponed), "A Start or Stop was postponed: no server answered. It is retried."),
        ("radius-queue-full", sum(|c| c.queue_full), "A RADIUS request was not sent because too many were open."),
        ("radius-probe-unsent", sum(|c| c.probes_unsent), "A Status-Server was not sent because every identifier was in use."),
        ("radius-connection-failed", sum(|c| c.connection_failures), "A connection to a RADIUS server over TCP or TLS could not be opened, \
            or ended without an answer: `show aaa-servers` says why."),
        ("radius-withdrawn", sum(|c| c.withdrawn), "An authentication was dropped before it was sent: its session had ended."),
        ("radius-record-shortened", sum(|c| c.shortened), "An accounting record went without routes and delegated prefixes, which do \
            not fit into its 4,096 octets."),
        ("radius-unsendable", sum(|c| c.unsendable), "A RADIUS request did not fit into a packet."),
    ]
    .into_iter()
    .map(|(name, count, meaning)| row(name, count, meaning.into()))
    .collect()
}

/// The part of the requests of RADIUS servers in `show drops`.
pub(crate) fn dynamic_rows(c: aaa::DynamicCounters) -> Vec<DropCounter> {
    [
        ("coa-rejected", c.rejected, "A CoA- or Disconnect-Request was rejected; the log says why."),
        ("coa-unknown-client", c.unknown_clients, "A CoA- or Disconnect-Request came from an address that is not in `aaa \
            dynamic-authorization clients`."),
        ("coa-unauthentic", c.unauthentic, "A CoA- or Disconnect-Request had a wrong authenticator, or no \
            Message-Authenticator: check the shared secret."),
        ("coa-untimely", c.untimely, "A CoA- or Disconnect-Request was too old, or had no Event-Timestamp: check both clocks."),
        ("coa-repeated", c.repeated, "A CoA- or Disconnect-Request came again. It got the same answer."),
        ("coa-dropped", c.dropped, "A CoA- or Disconnect-Request was dropped: there were too many in the last minute."),
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
