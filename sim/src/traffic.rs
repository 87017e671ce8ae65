//! What each session carried, as its subscriber's line saw it: what accounting has to say in the end.
//!
//! Both directions are counted outside of the gateway: what a home sent and nobody dropped, and what came to its line. That is
//! what a user plane counts, so without a fault the two are the same to the octet. Accounting never says more. It may say less
//!
//! - of a session whose user plane died, because that took along what it had not reported;
//! - of a session of which an answer with counters got lost, came late, was for an earlier life of the control plane, came from a
//!   user plane that had been stopped, or came to a control plane that was dead, was stopped, or
//!   died before it had that on its disk: a user plane forgets what it answered;
//! - of sessions that a user plane removed without being asked for their counters: no more than it says itself that it
//!   did (`unreported-octets`).

use crate::plan::USER_PLANES;
use core::time::Duration;
use std::collections::BTreeMap;

/// What came so long before nothing waited for the disk is on it.
const WRITTEN: Duration = Duration::from_secs(10);

/// Octets of IP packets from and to a subscriber.
pub type Octets = [u64; 2];

/// A session.
#[derive(Clone, Copy, Debug)]
struct Session {
    plane: usize,
    octets: Octets,
    /// Its user plane died while it was there, or forgot what nobody heard.
    torn: bool,
    /// When counters came in an answer.
    heard: Option<Duration>,
}

/// Every session by its SEID.
#[derive(Default)]
pub struct Traffic {
    sessions: BTreeMap<u64, Session>,
    /// What each user plane says that it has not reported, over all its lives.
    unreported: [u64; USER_PLANES],
    /// When nothing of the control plane's waited for its disk, last.
    written: Duration,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    /// From the subscriber.
    Up,
    /// To the subscriber.
    Down,
}

impl Traffic {
    /// A session carried a packet of so many octets.
    pub fn carry(&mut self, seid: u64, plane: usize, direction: Direction, octets: usize) {
        let new = Session {
            plane,
            octets: [0; 2],
            torn: false,
            heard: None,
        };
        let session = self.sessions.entry(seid).or_insert(new);
        session.octets[direction as usize] += octets as u64;
    }

    /// Counters of a session came to the control plane in an answer.
    pub fn heard(&mut self, now: Duration, seid: u64) {
        if let Some(session) = self.sessions.get_mut(&seid) {
            session.heard = Some(now);
        }
    }

    /// Counters of a session got lost with the answer that they were in, or may have.
    pub fn lost(&mut self, seid: u64) {
        if let Some(session) = self.sessions.get_mut(&seid) {
            session.torn = true;
        }
    }

    /// Nothing waits for the control plane's disk.
    pub fn written(&mut self, now: Duration) {
        self.written = now;
    }

    /// The control plane died: what it heard since the disk had everything, or shortly before, may not be there.
    pub fn forgotten(&mut self) {
        for session in self.sessions.values_mut() {
            session.torn |= session.heard.is_some_and(|at| at + WRITTEN > self.written);
        }
    }

    /// A user plane died with these sessions; so many octets it had not reported of others.
    pub fn died(&mut self, plane: usize, sessions: impl Iterator<Item = u64>, unreported: u64) {
        self.unreported[plane] += unreported;
        for seid in sessions {
            if let Some(session) = self.sessions.get_mut(&seid) {
                session.torn = true;
            }
        }
    }

    /// What is wrong with what accounting says in the end of each session; otherwise, of how many sessions it says exactly
    /// what they carried, as it has to. `unreported`: what the user planes that live have not reported.
    ///
    /// # Errors
    /// The first session that was accounted wrongly.
    pub fn compare(
        &self,
        accounts: impl Iterator<Item = (u64, Octets)>,
        unreported: impl Iterator<Item = u64>,
    ) -> Result<u64, String> {
        let mut exact = 0;
        let mut missing: [Vec<(u64, Octets, Octets)>; USER_PLANES] = Default::default();
        let accounts: BTreeMap<u64, Octets> = accounts.collect();
        if let Some(seid) = self
            .sessions
            .keys()
            .find(|seid| !accounts.contains_key(seid))
        {
            return Err(format!(
                "session {seid:016x} carried packets and was not accounted for"
            ));
        }
        for (seid, said) in accounts {
            let Some(session) = self.sessions.get(&seid) else {
                if said != [0; 2] {
                    return Err(format!(
                        "session {seid:016x} carried nothing, and accounting says {said:?}"
                    ));
                }
                continue;
            };
            let Session {
                octets,
                plane,
                torn,
                ..
            } = *session;
            if said[0] > octets[0] || said[1] > octets[1] {
                return Err(format!(
                    "accounting of session {seid:016x} says {said:?}, and it carried {octets:?}"
                ));
            }
            if said == octets {
                exact += 1;
            } else if !torn {
                missing[plane].push((seid, octets, said));
            }
        }
        for ((plane, missing), now) in (1..).zip(missing).zip(unreported) {
            let of = |octets: &Octets| octets.iter().sum::<u64>();
            let lost: u64 = missing
                .iter()
                .map(|(_, octets, said)| of(octets) - of(said))
                .sum();
            let unreported = self.unreported[plane - 1] + now;
            if lost > unreported {
                return Err(format!(
                    "{lost} octets of sessions of up{plane} are in no accounting record, and it says of {unreported} that \
                     nobody asked for them: {missing:x?}"
                ));
            }
        }
        Ok(exact)
    }
}
