//! A subscriber dials in: discovery, the bounds of what one may make us hold, and the session's identifiers.

use super::rivals::{NoPlace, Place};
use super::tunnel::Refused;
use super::{CameBy, ControlPlane, Now};
use crate::counters::Counter;
use crate::entry::{Entry, LineIds, Noted, PadrTags, Stage};
use crate::lanes::LaneChoice;
use crate::rare::Rare;
use crate::session_ids::Home;
use crate::topology::{GroupId, InstanceId, SegmentId, Seid, UserPlaneId};
use policy::Access;
use rand::Rng;
use session::discovery::{Answer, Padr, Refusal};
use session::{Cause, Circuit, Link};
use wire::eth::PPPOE_DISCOVERY;

impl ControlPlane {
    pub(super) fn on_discovery(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: Circuit,
        payload: &[u8],
    ) -> Result<(), Refused> {
        let port = self.topology.segment(segment).port;
        let answer = self
            .access(segment)
            .discovery
            .on_frame(now.at, &circuit, payload);
        match answer {
            // who cannot serve a PADI must not answer it (RFC 2516 §5.2)
            Answer::Offer(offer) => {
                let line = self.line_of_padi(segment, payload);
                let answers = self.check_back_off(now, segment, &circuit, line);
                answers.map_err(|(counter, _)| counter)?;
                self.on_padi(now, segment, circuit, payload, &offer)?;
            }
            Answer::Reply(reply) => self.send_by_default(port, &circuit, &reply),
            Answer::Admit(padr) => {
                let place = self.find_place(now, segment, &circuit, &padr);
                let admitted = place.and_then(|place| match place {
                    Place::Free => self.admit(now, segment, &circuit, &padr),
                    Place::Known => Ok(()),
                });
                self.refuse_padr(segment, &circuit, &padr, admitted);
            }
            // the user plane sends a session's PADT through the session's own tunnel
            Answer::Terminate { .. } => return Err(Counter::UnknownTunnel),
            Answer::Ignore(why) if why.0.contains("cookie") => {
                tracing::debug!(?circuit, "PADR with a cookie that is not ours, or too old");
                return Err(Counter::BadCookie);
            }
            Answer::Ignore(why) => {
                tracing::debug!(?circuit, why = why.0, "discovery packet ignored");
                return Err(Counter::DiscoveryIgnored);
            }
        }
        Ok(())
    }

    /// Reads the ids of the line from a PADI, if its segment trusts them.
    fn line_of_padi<'a>(
        &self,
        segment: SegmentId,
        payload: &'a [u8],
    ) -> impl FnOnce() -> LineIds + use<'a> {
        let trusted = self.view().access_profile(segment).trust_line_tags;
        move || LineIds::of_padi(payload, trusted)
    }

    /// The network instance that a session is in until AAA has spoken.
    fn first_instance(&self, segment: SegmentId) -> InstanceId {
        let profile = self.view().profile(segment);
        let instance = self.topology.find_instance(&profile.network_instance);
        instance.expect("the topology has those of all profiles")
    }

    /// Begins a session for a valid PADR that has a place on its line, or says why not.
    pub(super) fn admit(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
    ) -> Result<(), NoPlace> {
        let port = self.topology.port(self.topology.segment(segment).port);
        let (plane, group) = (port.user_plane, port.group);
        let line = LineIds::of(padr);
        let home = Home::of(&circuit.tags, circuit.mac, &line);
        self.check_room(now, segment, || home)?;
        self.check_limits(segment, circuit)?;
        let identity = self.line_identity(segment, circuit, &line);
        if let Some(identity) = &identity
            && let Err(why) = self.check_session_limit(segment, identity, None)
        {
            tracing::info!(why, mac = %circuit.mac, "a subscriber is refused");
            return Err((Counter::SubscriberLimit, "too many sessions"));
        }
        let of_aggregate = self.lane_of_aggregate(plane, segment, circuit);
        let of_home = || self.lane_of_home(plane, identity.as_ref()?);
        let lane = of_aggregate.or_else(of_home);
        let access = self.make_room(now, (plane, segment), home, lane)?;
        let index = self.sessions.next_index();
        let (seid, teid) = self.next_seid(index, group);
        let instance = self.first_instance(segment);
        let entry = Entry {
            teid,
            gateway_mac: self.topology.group(group).virtual_mac,
            tags: Rare::new(PadrTags {
                line,
                access_loop: padr.access_loop.clone(),
                service: padr.service_name.clone().into_boxed_slice(),
            }),
            subscriber: identity.map(|identity| self.subscribers.join(identity, seid)),
            stage: Stage::Admitted(Box::new(padr.clone())),
            came_by: CameBy::of(padr),
            noted: Noted {
                dialled: now.unix,
                ..Noted::default()
            },
            ..Entry::new(
                seid,
                plane,
                segment,
                group,
                instance,
                circuit.clone(),
                access,
            )
        };
        self.sessions.insert(now.at, entry);
        self.establish(now, index);
        Ok(())
    }

    /// Identifiers of the next session. Its TEID is no other session's.
    fn next_seid(&mut self, index: u32, group: GroupId) -> (Seid, u32) {
        loop {
            let seid = Seid::new(self.generations.next(&mut self.journal), index);
            let teid = self.teids.of_session(seid, group);
            let is_free = self.sessions.in_tunnel(teid).is_none()
                && self.user_planes.port_in_tunnel(teid).is_none();
            if is_free {
                return (seid, teid);
            }
        }
    }

    /// Whether a PADI is answered: a session can be had. A session of the same MAC address may leave its place.
    pub(super) fn check_offer(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        payload: &[u8],
    ) -> Result<(), Refused> {
        let group = self.view().access_profile(segment).server_group.as_deref();
        if self.aaa.is_congested(now.at, group) {
            return Err(Counter::AaaCongested);
        }
        let line = self.line_of_padi(segment, payload);
        let home = || Home::of(&circuit.tags, circuit.mac, &line());
        let room = self.check_room(now, segment, home);
        match room.and_then(|()| self.check_limits(segment, circuit)) {
            Err((
                Counter::SessionTableFull
                | Counter::HalfOpenFull
                | Counter::VlanLimit
                | Counter::AccessPortLimit,
                _,
            )) if self.has_rivals(segment, circuit) => Ok(()),
            room => room.map_err(|(counter, _)| counter),
        }
    }

    /// Whether a segment has room for one session more of a home now.
    pub(super) fn check_room(
        &mut self,
        now: Now,
        segment: SegmentId,
        home: impl FnOnce() -> Home,
    ) -> Result<(), NoPlace> {
        let port = self.topology.port(self.topology.segment(segment).port);
        let plane = port.user_plane;
        if self.is_drained(plane) {
            return Err((Counter::Drained, "gateway takes no new sessions"));
        }
        if !self.user_planes.is_up(plane) {
            return Err((Counter::UserPlaneAbsent, "gateway is not ready"));
        }
        let takes = self.takes_sessions(now);
        takes.map_err(|counter| (counter, "gateway is not ready"))?;
        let ids = self.session_ids.get(&segment);
        if ids.is_some_and(|ids| !ids.has_free(home, now.at)) {
            return Err((Counter::SessionIdsExhausted, "no session id left"));
        }
        if self.sessions.len() >= self.configuration.limits.sessions as usize {
            return Err((Counter::SessionTableFull, "no session left"));
        }
        if self.is_half_open_full() && self.sessions.silent(now.at).is_none() {
            return Err((Counter::HalfOpenFull, "gateway is busy"));
        }
        Ok(())
    }

    fn is_half_open_full(&self) -> bool {
        self.sessions.half_open() >= self.configuration.limits.half_open as usize
    }

    /// Allocates a PPPoE session id for one session more, for which a silent half-open one may have to go. The lane is that of the
    /// subscriber's other sessions, so that one worker has them all, or one of the worker with the fewest sessions.
    fn make_room(
        &mut self,
        now: Now,
        (plane, segment): (UserPlaneId, SegmentId),
        home: Home,
        lane: Option<u8>,
    ) -> Result<Access, NoPlace> {
        if self.is_half_open_full()
            && let Some(silent) = self.sessions.silent(now.at)
        {
            self.counters.count(Counter::HalfOpenShed);
            self.abandon(now, silent, Cause::NasRequest);
        }
        let lanes = self.user_planes.lanes(plane);
        let lane = lane.unwrap_or_else(|| self.sessions.lightest_lane(plane, &lanes));
        let lane = LaneChoice::new(lanes, lane);
        let ids = self.session_ids.entry(segment).or_default();
        let id = ids.allocate(&lane, home, now.at);
        id.map(Access::Pppoe)
            .ok_or((Counter::SessionIdsExhausted, "no session id left"))
    }

    /// The user plane is ready for the session's control packets: PADS goes out and PPP begins.
    pub(super) fn confirm(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let Stage::Admitted(padr) = &entry.stage else {
            return;
        };
        let access = self.access(entry.segment);
        let Access::Pppoe(id) = entry.access;
        let pads = access.discovery.pads(padr, id);
        let (config, max_payload) = (access.session.clone(), padr.max_payload);
        let random = session::Random {
            magic: self.random.random(),
            chap_challenge: self.random.random(),
            chap_id: self.random.random(),
            interface_id: self.random.random(),
            seed: self.random.random(),
        };
        let entry = self.entry(index);
        let link = Link::new(entry.access, config, max_payload, random, now.at);
        entry.link = Some(Box::new(link));
        entry.stage = Stage::Connecting;
        self.send_to_session(index, PPPOE_DISCOVERY, &pads);
        self.carry_out(now, index);
    }

    /// The user plane cannot take the session: PADS says so, and the session is released.
    pub(super) fn refuse(&mut self, now: Now, index: u32, counter: Counter) {
        self.counters.count(counter);
        let entry = &self.sessions[index];
        if let Stage::Admitted(padr) = &entry.stage {
            let discovery = &self.access(entry.segment).discovery;
            let refusal =
                discovery.refuse(padr, Refusal::System("gateway cannot take the session"));
            let (port, circuit) = (
                self.topology.segment(entry.segment).port,
                entry.circuit.clone(),
            );
            self.send_by_default(port, &circuit, &refusal);
        }
        self.release(now, index, Cause::NasError);
    }
}

#[cfg(test)]
mod tests;
