//! What a run has come to, home by home and step by step.

use cpe::{Counts, Family, Histogram, Progress};
use std::time::Duration;

/// How long the steps of setting up a session took, of every set-up that succeeded.
#[derive(Clone, Debug, Default)]
pub struct SetUps {
    /// From the first PADI to PADS.
    pub discovery: Histogram,
    /// From PADS to the agreement on the link (LCP).
    pub link: Histogram,
    /// From the agreement on the link to the gateway's word that user and password are right.
    pub authentication: Histogram,
    /// From there to an IPv4 address (IPCP).
    pub ipv4: Histogram,
    /// From the same moment to an IPv6 prefix (IPV6CP and Router Advertisement).
    pub ipv6: Histogram,
    /// From the first PADI until everything was there.
    pub total: Histogram,
}

impl SetUps {
    /// A home has come online like this.
    pub(super) fn record(&mut self, progress: &Progress) {
        let Progress {
            dialled,
            session,
            link,
            authenticated,
            ipv4,
            ipv6,
            online,
        } = *progress;
        for (histogram, from, to) in [
            (&mut self.discovery, dialled, session),
            (&mut self.link, session, link),
            (&mut self.authentication, link, authenticated),
            (&mut self.ipv4, authenticated, ipv4),
            (&mut self.ipv6, authenticated, ipv6),
            (&mut self.total, dialled, online),
        ] {
            if let (Some(from), Some(to)) = (from, to) {
                histogram.record(to.saturating_sub(from));
            }
        }
    }
}

/// What became of a home.
#[derive(Clone, Debug)]
pub struct HomeOutcome {
    /// Its user name.
    pub user: String,
    /// Its line's tags.
    pub line: String,
    /// Whether it was online when it was told to hang up.
    pub is_online: bool,
    /// Whether a prefix was delegated to it then.
    pub has_prefix: bool,
    /// What is known about its sessions.
    pub sessions: Sessions,
    /// Verified packets that it has sent, in each family.
    pub sent: [u64; 2],
    /// What has arrived of them, if that is known here: at the other home, or, behind a reflector, back at this one.
    pub arrived: Option<[Counts; 2]>,
    /// How many of them had come to the reflector, as far as it has said; `None` without one.
    pub reflected: Option<[u64; 2]>,
}

impl HomeOutcome {
    /// Packets of a family that are lost.
    pub fn lost(&self, family: Family) -> Option<u64> {
        let arrived = self.arrived?[family as usize].received;
        Some(self.sent[family as usize].saturating_sub(arrived))
    }
}

/// The sessions of a home.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Set-ups that succeeded.
    pub set_up: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// Sessions that ended without the home having left.
    pub lost: u32,
    /// Why the last attempt failed or the last session was lost.
    pub last_end: Option<String>,
    /// When the set-up was over that was counted last.
    pub(super) counted: Option<Duration>,
}

/// What an access network has come to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How long set-ups took.
    pub set_ups: SetUps,
    /// How long the verified packets that came were under way, in each family: one way from home to home, both ways behind a
    /// reflector.
    pub delays: [Histogram; 2],
    /// Every home, by number.
    pub homes: Vec<HomeOutcome>,
    /// When the homes were told to hang up, since the beginning.
    pub hung_up: Duration,
}
