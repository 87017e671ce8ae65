//! Several sessions of one MAC address in the same VLANs: how many there may be, and which of them gives way to a new one.
//!
//! A router that was switched off says no goodbye, and comes back although its session seems to be there. Two clients behind one MAC
//! address look the same. What tells them apart (`docs/decisions/0031-sessions-of-one-mac.md`): a repeated PADR has the offer and the
//! Host-Uniq of the first; a client that begins anew has its Host-Uniq and another offer; and a session that is alive answers LCP echo
//! requests.

use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::entry::{LineIds, Stage};
use crate::session_ids::Home;
use crate::sessions::{LineKey, line_key};
use crate::topology::{PortId, SegmentId};
use core::time::Duration;
use policy::Access;
use session::discovery::{Padr, Refusal};
use session::{Cause, Circuit, Command, Status};
use std::collections::{HashMap, VecDeque};
use wire::eth::PPPOE_DISCOVERY;

/// Time in which a session must answer when a new one claims its place.
const PROOF_TIME: Duration = Duration::from_secs(1);
/// Maximum number of PADRs that wait for such answers.
const MOST_CLAIMS: usize = 4096;

/// PADR that claims the place of a session which may be dead.
struct Claim {
    segment: SegmentId,
    circuit: Circuit,
    padr: Padr,
}

/// Claims that wait for their decision, one of each line.
#[derive(Default)]
pub(super) struct Claims {
    by_line: HashMap<LineKey, Claim>,
    /// Times of the decisions, in their order.
    due: VecDeque<(Duration, LineKey)>,
}

/// What a PADR finds on its access line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// There is a place for its session.
    Free,
    /// It came before: it was answered again, or waits for its answer.
    Known,
}

/// Reason for which a PADR gets no session: a counter, and a text for the subscriber.
pub(super) type NoPlace = (Counter, &'static str);

impl ControlPlane {
    /// Finds a place for the session of a PADR among those of its MAC address. A session that must go has ended then.
    pub(super) fn find_place(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
    ) -> Result<Place, NoPlace> {
        let rivals = self.rivals(segment, circuit);
        let find = |is: &dyn Fn(&CameBy) -> bool| {
            let mut rivals = rivals.iter().copied();
            rivals.find(|index| is(&self.sessions[*index].came_by))
        };
        let repeated = find(&|came_by| came_by.is_repeated_by(padr));
        let same_client = find(&|came_by| came_by.is_of_client(padr));
        if let Some(index) = repeated {
            self.repeat_pads(index, padr);
            return Ok(Place::Known);
        }
        self.check_back_off(now, segment, circuit, || LineIds::of(padr))?;
        self.check_replaceable(now, segment, circuit, padr, &rivals)?;
        if let Some(index) = same_client {
            self.give_way(now, index);
        } else if self.must_one_go(segment, circuit, padr, &rivals) {
            let half_open = rivals.iter().find(|i| self.sessions[**i].is_half_open());
            match half_open {
                Some(index) => self.give_way(now, *index),
                None => return self.claim(now, segment, circuit, padr, &rivals),
            }
        }
        Ok(Place::Free)
    }

    /// Whether one of the sessions of a MAC address may end for a new one. Where no new one can begin, it stays; a full table has room when
    /// it has ended.
    fn check_replaceable(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
        rivals: &[u32],
    ) -> Result<(), NoPlace> {
        let connects = |index: &u32| self.sessions[*index].is_half_open();
        let connects = rivals.iter().any(connects);
        let home = || Home::of(&circuit.tags, circuit.mac, &LineIds::of(padr));
        match self.check_room(now, segment, home) {
            Err((Counter::SessionTableFull, _)) => Ok(()),
            Err((Counter::HalfOpenFull, _)) if connects => Ok(()),
            room => room,
        }
    }

    /// Sessions of a MAC address in the same VLANs, the oldest first. Those that end do not count.
    fn rivals(&self, segment: SegmentId, circuit: &Circuit) -> Vec<u32> {
        let own = self.sessions.on_line(line_key(segment, circuit));
        own.filter(|index| !self.sessions[*index].is_ending())
            .collect()
    }

    /// Whether a MAC address has a session in the same VLANs that does not end.
    pub(super) fn has_rivals(&self, segment: SegmentId, circuit: &Circuit) -> bool {
        let mut own = self.sessions.on_line(line_key(segment, circuit));
        own.any(|index| !self.sessions[index].is_ending())
    }

    /// Whether a MAC address has as many sessions in the same VLANs as it may.
    fn is_mac_full(&self, segment: SegmentId, rivals: &[u32]) -> bool {
        let most = self.view().access_profile(segment).sessions_per_mac;
        rivals.len() >= usize::from(most)
    }

    /// Whether the VLAN and the port of a new session have room for it. Sessions that are closing do not count, nor do those of the MAC
    /// address that end.
    pub(super) fn check_limits(
        &self,
        segment: SegmentId,
        circuit: &Circuit,
    ) -> Result<(), NoPlace> {
        let profile = self.view().access_profile(segment);
        let (vlan, port) = (profile.sessions_per_vlan, profile.sessions_per_port);
        let line = line_key(segment, circuit);
        let own = self.sessions.on_line(line);
        let going = own
            .filter(|index| self.sessions[*index].is_ending())
            .count() as u64;
        if vlan > 0 && self.sessions.in_vlan(line) - going >= u64::from(vlan) {
            return Err((Counter::VlanLimit, "too many sessions in this VLAN"));
        }
        let on_port = || self.on_port(self.topology.segment(segment).port) - going;
        if port > 0 && on_port() >= u64::from(port) {
            return Err((Counter::AccessPortLimit, "too many sessions on this port"));
        }
        Ok(())
    }

    /// Number of sessions on an access port that are not closing.
    fn on_port(&self, port: PortId) -> u64 {
        let segments = self.topology.segments();
        let segments = segments.filter(|(_, segment)| segment.port == port);
        segments.map(|(id, _)| self.sessions.in_segment(id)).sum()
    }

    /// Whether one of the sessions of a MAC address must go before it may have another one, because of any limit.
    fn must_one_go(
        &self,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
        rivals: &[u32],
    ) -> bool {
        let identity = self.line_identity(segment, circuit, &LineIds::of(padr));
        let is_limited = |identity| self.check_session_limit(segment, &identity, None).is_err();
        let is_full =
            || identity.is_some_and(is_limited) || self.check_limits(segment, circuit).is_err();
        self.is_mac_full(segment, rivals) || !rivals.is_empty() && is_full()
    }

    /// Lets a PADR wait until the sessions of its MAC address have answered.
    fn claim(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
        rivals: &[u32],
    ) -> Result<Place, NoPlace> {
        let line = line_key(segment, circuit);
        let Claims { by_line, due } = &mut self.claims;
        if let Some(claim) = by_line.get_mut(&line) {
            // the latest PADR has the claim: a router may have been switched off once more since the one before
            claim.padr = padr.clone();
            return Ok(Place::Known);
        }
        if by_line.len() >= MOST_CLAIMS {
            return Err((Counter::ClaimsFull, "gateway is busy"));
        }
        let claim = Claim {
            segment,
            circuit: circuit.clone(),
            padr: padr.clone(),
        };
        by_line.insert(line, claim);
        due.push_back((now.at + PROOF_TIME, line));
        for index in rivals {
            self.drive(now, *index, Command::Probe);
        }
        Ok(Place::Known)
    }

    /// Decides the claims whose time has come.
    pub(super) fn decide_claims(&mut self, now: Now) {
        let is_due = |(at, _): &mut (Duration, LineKey)| *at <= now.at;
        while let Some((_, line)) = self.claims.due.pop_front_if(is_due) {
            let Some(claim) = self.claims.by_line.remove(&line) else {
                continue;
            };
            let (segment, circuit, padr) = (claim.segment, &claim.circuit, &claim.padr);
            if !self.topology.has_segment(segment)
                || !self.topology.has_place(segment, circuit.tags.vids().0)
            {
                continue; // it was removed meanwhile
            }
            let rivals = self.rivals(segment, circuit);
            let place = self.place_of_silent(now, segment, circuit, padr, &rivals);
            let admitted = place.and_then(|()| self.admit(now, segment, circuit, padr));
            self.refuse_padr(segment, circuit, padr, admitted);
        }
    }

    /// Time of the next decision about a claim.
    pub(super) fn claim_at(&self) -> Option<Duration> {
        self.claims.due.front().map(|(at, _)| *at)
    }

    /// Ends the oldest session of a MAC address that did not answer, if one must go.
    fn place_of_silent(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
        rivals: &[u32],
    ) -> Result<(), NoPlace> {
        if !self.must_one_go(segment, circuit, padr, rivals) {
            return Ok(());
        }
        self.check_replaceable(now, segment, circuit, padr, rivals)?;
        let silent = rivals.iter().find(|index| self.is_silent(**index));
        match silent {
            Some(index) => self.give_way(now, *index),
            None if self.is_mac_full(segment, rivals) => {
                return Err((Counter::MacLimit, "too many sessions of this MAC address"));
            }
            None => {} // another limit is reached, and refuses the session
        }
        Ok(())
    }

    /// Whether a session's subscriber was asked for a sign of life and gave none. While the path to its user plane is interrupted, its
    /// silence is excused.
    fn is_silent(&self, index: u32) -> bool {
        let status = self.sessions[index].status();
        let is_silent = status.is_none_or(|status: Status| status.is_silent);
        is_silent && self.user_planes.is_answering(self.plane_of(index))
    }

    fn give_way(&mut self, now: Now, index: u32) {
        self.counters.count(Counter::Redialled);
        if self.sessions[index].waits_for_login() {
            self.count_failed_set_up(now, index);
        }
        self.abandon(now, index, Cause::NasRequest);
    }

    /// Answers a repeated PADR with the PADS of its session, which may have been lost. Until the user plane is ready, PADS is still to
    /// come.
    fn repeat_pads(&mut self, index: u32, padr: &Padr) {
        let entry = &self.sessions[index];
        if !matches!(entry.stage, Stage::Admitted(_)) {
            let Access::Pppoe(id) = entry.access;
            let pads = self.access(entry.segment).discovery.pads(padr, id);
            self.send_to_session(index, PPPOE_DISCOVERY, &pads);
        }
    }

    /// Counts a PADR that got no session, and answers it with a PADS that says why (RFC 2516 §5.4).
    pub(super) fn refuse_padr(
        &mut self,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
        admitted: Result<(), NoPlace>,
    ) {
        if let Err((counter, text)) = admitted {
            let port = self.topology.segment(segment).port;
            let discovery = &self.access(segment).discovery;
            let refusal = discovery.refuse(padr, Refusal::System(text));
            self.send_by_default(port, circuit, &refusal);
            self.counters.count(counter);
        }
    }
}

/// The PADR by which a session began. Unknown after a restart, when cookies of before are no longer valid.
#[derive(Debug, Default)]
pub(crate) struct CameBy {
    /// Number of the offer; 0 if unknown.
    offer: u64,
    host_uniq: Option<Box<[u8]>>,
}

impl CameBy {
    pub fn of(padr: &Padr) -> Self {
        CameBy {
            offer: padr.offer,
            host_uniq: padr.host_uniq.clone().map(Vec::into_boxed_slice),
        }
    }

    /// Whether a PADR of the line is the same one again.
    fn is_repeated_by(&self, padr: &Padr) -> bool {
        self.offer == padr.offer && self.host_uniq.as_deref() == padr.host_uniq.as_deref()
    }

    /// Whether a PADR of the line is the same client's. Host-Uniq tells the requests of a host apart (RFC 2516 appendix A).
    fn is_of_client(&self, padr: &Padr) -> bool {
        self.host_uniq.is_some() && self.host_uniq.as_deref() == padr.host_uniq.as_deref()
    }
}
