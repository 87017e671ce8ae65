//! What each session carried, as its subscriber's line saw it: what accounting has to say in the end.
//!
//! Both directions are counted outside of the gateway, each address family for itself: what a home sent and nobody dropped, and
//! what came to its line. That is what a user plane counts, so without a fault the two are the same to the octet. Accounting never
//! says more. It may say less
//!
//! - of a session whose user plane died, or counted from nothing again, before its Stop was recorded, because that took along
//!   what it had not reported;
//! - of sessions whose user plane was taken out while it did not answer: no more sessions than the control plane says
//!   (`taken-out-unheard`);
//! - of sessions that a user plane removed without being asked for their counters: no more than it says itself that it
//!   did (`unreported-octets`).
//!
//! A user plane that lies about its own sessions is believed, so that accounting may say anything of these.

use crate::plan::USER_PLANES;
use std::collections::{BTreeMap, BTreeSet};

/// Octets of IPv4 packets from and to a subscriber, and those of IPv6 packets.
pub type Octets = [u64; 4];

/// A session.
#[derive(Clone, Copy, Debug)]
struct Session {
    plane: usize,
    octets: Octets,
    /// Its user plane died, or began to count anew, while it was there.
    torn: bool,
}

/// Every session by its SEID.
#[derive(Default)]
pub struct Traffic {
    sessions: BTreeMap<u64, Session>,
    /// What each user plane says that it has not reported, over all its lives.
    unreported: [u64; USER_PLANES],
    /// Sessions that the control plane gave up with their user planes, over all its lives.
    given_up: u64,
    /// Sessions about which their own user planes lied.
    spoiled: BTreeSet<u64>,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    /// From the subscriber.
    Up,
    /// To the subscriber.
    Down,
}

/// A packet that a session carried.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Is it an IPv6 packet?
    pub is_v6: bool,
    /// Its octets.
    pub octets: usize,
}

impl Traffic {
    /// A session carried a packet.
    pub fn carry(&mut self, seid: u64, plane: usize, direction: Direction, packet: Carried) {
        let new = Session {
            plane,
            octets: [0; 4],
            torn: false,
        };
        let session = self.sessions.entry(seid).or_insert(new);
        let place = 2 * usize::from(packet.is_v6) + direction as usize;
        session.octets[place] += packet.octets as u64;
    }

    /// A user plane lies about what a session of its own carried.
    pub fn spoil(&mut self, seid: u64) {
        self.spoiled.insert(seid);
    }

    /// A user plane died, and with it what it had not reported of its sessions, or repeats until it is acknowledged: but for
    /// `closed`, whose last records are with a server. So many octets it had not reported of sessions that it removed.
    pub fn died(&mut self, plane: usize, closed: &BTreeSet<u64>, unreported: u64) {
        self.unreported[plane] += unreported;
        self.recounted(plane, closed);
    }

    /// A user plane counts from nothing again.
    pub fn recounted(&mut self, plane: usize, closed: &BTreeSet<u64>) {
        for (seid, session) in &mut self.sessions {
            session.torn |= session.plane == plane && !closed.contains(seid);
        }
    }

    /// The control plane died; of so many sessions it says that they went with a user plane that did not answer.
    pub fn control_died(&mut self, given_up: u64) {
        self.given_up += given_up;
    }

    /// What is wrong with what accounting says in the end of each session; otherwise, of how many sessions it says exactly
    /// what they carried, as it has to. `unreported`: what the user planes that live have not reported; `given_up`: as in
    /// [`Traffic::control_died`], of the control plane that lives.
    ///
    /// # Errors
    /// The first session that was accounted wrongly.
    pub fn compare(
        &self,
        accounts: impl Iterator<Item = (u64, Octets)>,
        unreported: impl Iterator<Item = u64>,
        given_up: u64,
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
        let honest = accounts
            .into_iter()
            .filter(|(seid, _)| !self.spoiled.contains(seid));
        for (seid, said) in honest {
            let Some(session) = self.sessions.get(&seid) else {
                if said != [0; 4] {
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
            if (0..4).any(|place| said[place] > octets[place]) {
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
        let mut given_up = self.given_up + given_up;
        for ((plane, missing), now) in (1..).zip(missing).zip(unreported) {
            let of = |octets: &Octets| octets.iter().sum::<u64>();
            let lost: u64 = missing
                .iter()
                .map(|(_, octets, said)| of(octets) - of(said))
                .sum();
            let unreported = self.unreported[plane - 1] + now;
            if lost > unreported && missing.len() as u64 <= given_up {
                given_up -= missing.len() as u64;
            } else if lost > unreported {
                return Err(format!(
                    "{lost} octets of sessions of up{plane} are in no accounting record, and it says of {unreported} that \
                     nobody asked for them: {missing:x?}"
                ));
            }
        }
        Ok(exact)
    }
}
